"""Several numbers at once, inside intrinsics: what stands at places all over an array, and one number in every lane.

A loop that reads places which it has just computed is not put into wide registers by the compiler, who cannot know that
what it writes is not what it reads. So such loops are laid out by hand. Where a processor has no instruction that reads
many places, the compiler reads one after the other.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

_BIT, _NUMBER, _ADDRESS = ir.IntType(1), ir.IntType(32), ir.IntType(64)


def in_all(builder: Any, number: Any, lanes: int) -> Any:
    """A vector of `lanes` times the number."""
    unset = ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined)
    one = builder.insert_element(unset, number, _NUMBER(0))
    return builder.shuffle_vector(one, unset, ir.Constant(ir.VectorType(_NUMBER, lanes), [0] * lanes))


def gather(builder: Any, start: Any, index: Any, element: Any, bytes_apart: int) -> Any:
    """The elements, of LLVM's type `element`, that stand `index` (a vector of int32) times so many bytes after `start`.

    Elements may overlap: `bytes_apart` may be less than their size.
    """
    lanes = index.type.count
    numbers, pointer = ir.VectorType(_ADDRESS, lanes), element.as_pointer()
    first = in_all(builder, builder.ptrtoint(start, _ADDRESS), lanes)
    way = builder.mul(builder.zext(index, numbers), ir.Constant(numbers, [bytes_apart] * lanes))
    places = builder.inttoptr(builder.add(first, way), ir.VectorType(pointer, lanes))
    elements, wanted = ir.VectorType(element, lanes), ir.VectorType(_BIT, lanes)
    name = f"llvm.masked.gather.v{lanes}{element.intrinsic_name}.v{lanes}{pointer.intrinsic_name}"
    function = builder.module.globals.get(name) or ir.Function(
        builder.module, ir.FunctionType(elements, [places.type, _NUMBER, wanted, elements]), name
    )
    arguments = [places, _NUMBER(bytes_apart), ir.Constant(wanted, [1] * lanes), ir.Constant(elements, ir.Undefined)]
    return builder.call(function, arguments)
