"""Translate a program to a language with braces (C or Painless) by a table from nodes to text."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

_SIGNS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "/", ast.Mod: "%", ast.LShift: "<<",
    ast.BitOr: "|", ast.BitAnd: "&", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.And: "&&", ast.Or: "||",
}  # fmt: skip
_PLAIN = (ast.Constant, ast.Name, ast.Subscript, ast.Call)


class Curly:
    """A printer of C. Subclasses override the parts in which another language differs.

    Parameters
    ----------
    arrays : dict
        Constant numbers and arrays that the program reads.

    Attributes
    ----------
    kinds : dict
        "int" or "float" for each constant, and for each argument that is an array.
    """

    types: ClassVar[dict[str, str]] = {"int": "int", "float": "double"}
    functions: ClassVar[dict[str, str]] = {"abs": "fabs", "min": "fmin", "max": "fmax", "rounded": "(double)(float)"}

    def __init__(self, arrays: dict[str, Any]) -> None:
        self.kinds = {key: "float" if np.asarray(value).dtype.kind == "f" else "int" for key, value in arrays.items()}

    def local_array(self, kind: str, name: str, size: str) -> str:
        """Return the declaration of an array of zeros."""
        return f"{self.types[kind]} {name}[{size}] = {{0}};"

    def argument(self, kind: str, name: str) -> str:
        """Return the declaration of an argument that is an array of constants."""
        return f"const {self.types[kind]} *{name}"

    def element(self, name: str, index: str) -> str:
        """Return an element of an array."""
        return f"{name}[{index}]"

    def block(self, statements: Sequence[ast.stmt], indent: str) -> list[str]:
        """Return the lines of some statements."""
        return [f"{indent}{line}" for statement in statements for line in self._statement(statement)]

    def function(self, text: str, before: str = "") -> list[str]:
        """Return the lines of a function of a program."""
        (own,) = ast.parse(text).body
        assert isinstance(own, ast.FunctionDef)
        arguments = []
        for argument in own.args.args:
            assert argument.annotation is not None
            if isinstance(argument.annotation, ast.Name):
                arguments.append(f"{self.types[argument.annotation.id]} {argument.arg}")
            else:
                self.kinds[argument.arg] = _kind(argument.annotation)
                arguments.append(self.argument(self.kinds[argument.arg], argument.arg))
        result = self.types[ast.unparse(own.returns)] if own.returns is not None else "void"
        return [f"{before}{result} {own.name}({', '.join(arguments)}) {{", *self.block(own.body, "    "), "}"]

    def _statement(self, own: ast.stmt) -> list[str]:
        if isinstance(own, ast.AnnAssign) and isinstance(own.annotation, ast.Name):
            return [f"{self.types[own.annotation.id]} {self.text(own.target)} = {self.text(own.value)};"]
        if isinstance(own, ast.AnnAssign):
            assert isinstance(own.value, ast.BinOp)
            return [self.local_array(_kind(own.annotation), self.text(own.target), self.text(own.value.right))]
        if isinstance(own, ast.Assign):
            return [f"{self.text(own.targets[0])} = {self.text(own.value)};"]
        if isinstance(own, ast.Return):
            return [f"return {self.text(own.value)};"]
        if isinstance(own, ast.For):
            assert isinstance(own.iter, ast.Call)
            k, down = self.text(own.target), len(own.iter.args) == 3
            first, last = ["0", *map(self.text, own.iter.args)][-2 if not down else 1 :][:2]
            step = f"{k} > {last}; --{k}" if down else f"{k} < {last}; ++{k}"
            return [f"for (int {k} = {first}; {step}) {{", *self.block(own.body, "    "), "}"]
        if isinstance(own, ast.While):
            return [f"while ({self.text(own.test)}) {{", *self.block(own.body, "    "), "}"]
        assert isinstance(own, ast.If), ast.dump(own)
        other = ["} else {", *self.block(own.orelse, "    "), "}"] if own.orelse else ["}"]
        return [f"if ({self.text(own.test)}) {{", *self.block(own.body, "    "), *other]

    def text(self, own: ast.expr | None) -> str:
        """Return the text of an expression."""
        if isinstance(own, ast.Constant):
            return repr(own.value)
        if isinstance(own, ast.Name):
            return own.id
        if isinstance(own, ast.BinOp):
            return f"{self._part(own.left)} {_SIGNS[type(own.op)]} {self._part(own.right)}"
        if isinstance(own, ast.Compare):
            return f"{self._part(own.left)} {_SIGNS[type(own.ops[0])]} {self._part(own.comparators[0])}"
        if isinstance(own, ast.BoolOp):
            return f" {_SIGNS[type(own.op)]} ".join(map(self._part, own.values))
        if isinstance(own, ast.IfExp):
            return f"{self._part(own.test)} ? {self._part(own.body)} : {self._part(own.orelse)}"
        if isinstance(own, ast.UnaryOp):
            return f"-{self._part(own.operand)}"
        if isinstance(own, ast.Subscript):
            return self.element(self.text(own.value), self.text(own.slice))
        assert isinstance(own, ast.Call), own
        name = self.text(own.func)
        return f"{self.functions.get(name, name)}({', '.join(map(self.text, own.args))})"

    def _part(self, own: ast.expr) -> str:
        return self.text(own) if isinstance(own, _PLAIN) else f"({self.text(own)})"


def _kind(annotation: ast.expr) -> str:
    """Return the type of the elements of `list[…]`."""
    assert isinstance(annotation, ast.Subscript)
    return ast.unparse(annotation.slice)
