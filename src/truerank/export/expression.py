"""Evaluate a scoring program with known arrays and an unknown row; the result is one expression of the row.

Loops are executed, because their bounds are known. A test of the row divides the evaluation, and each variable becomes
a choice between its values on the two sides. An array index may be a choice, too; the element is then a choice between
elements. Equal parts of the expression are one object, so that a printer can write them once.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from truerank.export.program import Program

_MANY = 64  # numbers of a choice that a part of the row multiplies one by one
_SIGNS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%", ast.LShift: "<<", ast.BitOr: "|",
    ast.BitAnd: "&", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_KNOWN: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod,
    "<<": operator.lshift, "|": operator.or_, "&": operator.and_, "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "abs": abs, "min": min, "max": max,
    "exp": np.exp, "log1p": np.log1p,
}  # fmt: skip
TESTS = ("==", "!=", "<", "<=", ">", ">=", "isNan", "||", "&&")

Value = Any  # a number, a Part, or a list of these


class Part:
    """A part of an expression, with a sign and its operands (numbers or parts).

    The signs are those of Python and "feature" (of a name), "isNan", "||", "&&", "if" (a choice: a test, the value
    where it holds, and the value where it does not), and "mix" of r, a and b, which is a + r (b - a).
    """

    def __init__(self, sign: str, operands: tuple[Any, ...]) -> None:
        self.sign, self.operands = sign, operands
        values = operands[1:] if sign == "if" else ()
        parts = [own for own in values if isinstance(own, Part)]
        self.depth: int = 1 + max((own.depth for own in parts), default=0)
        self.leaves: int = len(values) - len(parts) + sum(own.leaves for own in parts)
        # Whether the values of a choice are numbers, and whether these are integers.
        self.numbers: bool = sign == "if" and all(own.numbers for own in parts)
        self.integers: bool = self.numbers and all(
            own.integers if isinstance(own, Part) else isinstance(own, int) for own in values
        )


def expression_of(program: Program, names: tuple[str, ...]) -> Value:
    """Return the score of a program, which was not rounded to float32, as an expression of the features `names`."""
    variables: dict[str, Value] = {}
    _Evaluation(program, names).run(program.statements, variables)
    return variables["return"]


class _Evaluation:
    def __init__(self, program: Program, names: tuple[str, ...]) -> None:
        self._parts: dict[tuple[Any, ...], Part] = {}
        self._fixed: dict[str, Value] = {key: np.asarray(value).tolist() for key, value in program.arrays.items()}
        self._fixed[program.row] = [self._part("feature", name) for name in names]

    def _part(self, sign: str, *operands: Any) -> Part:
        key = (sign, *(id(own) if isinstance(own, Part) else repr(own) for own in operands))
        if key not in self._parts:
            self._parts[key] = Part(sign, operands)
        return self._parts[key]

    def run(self, statements: list[ast.stmt], variables: dict[str, Value]) -> None:
        """Run statements, which change the variables."""
        for own in statements:
            if isinstance(own, ast.For):
                assert isinstance(own.iter, ast.Call)
                for number in range(*(self._value(one, variables) for one in own.iter.args)):
                    variables[_name(own.target)] = number
                    self.run(own.body, variables)
            elif isinstance(own, ast.While):
                self._repeat(own, variables)
            elif isinstance(own, ast.If):
                self._branch(own, variables)
            elif isinstance(own, ast.Return):
                variables["return"] = self._value(own.value, variables)
            else:
                assert isinstance(own, ast.Assign | ast.AnnAssign), ast.dump(own)
                target = own.targets[0] if isinstance(own, ast.Assign) else own.target
                value, holder, place = self._value(own.value, variables), variables, _name(target)
                if isinstance(target, ast.Subscript):
                    holder, place = variables[_name(target.value)], self._value(target.slice, variables)
                holder[place] = value

    def _branch(self, own: ast.If, variables: dict[str, Value]) -> None:
        held, test = self._value(own.test, variables), own.test
        if isinstance(test, ast.Compare) and getattr(left := self._value(test.left, variables), "integers", False):
            # As a number, a choice among integers has one test for all branches.
            held = self._part(_SIGNS[type(test.ops[0])], left, self._value(test.comparators[0], variables))
        if not isinstance(held, Part):
            self.run(own.body if held else own.orelse, variables)
            return
        yes, no = ({key: [*one] if isinstance(one, list) else one for key, one in variables.items()} for _ in range(2))
        self.run(own.body, yes)
        self.run(own.orelse, no)
        self._join(held, yes, no, variables)

    def _repeat(self, own: ast.While, variables: dict[str, Value]) -> None:
        """Run a loop; if its test is a choice, run the rest of the loop on both sides of the choice."""
        assert isinstance(own.test, ast.Compare)
        declared = [_name(one.target) for one in own.body if isinstance(one, ast.AnnAssign)]
        while True:
            for name in declared:  # which are known within the loop
                variables.pop(name, None)
            tested = self._value(own.test.left, variables)
            if isinstance(tested, Part):
                break
            if not self._value(own.test, variables):
                return
            self.run(own.body, variables)
        test = tested.operands[0]
        yes, no = _sides(variables, test)
        self._repeat(own, yes)
        self._repeat(own, no)
        self._join(test, yes, no, variables)

    def _join(self, test: Part, yes: dict[str, Value], no: dict[str, Value], variables: dict[str, Value]) -> None:
        for key, one in (no | yes).items():
            other: Value = no.get(key, one)
            if isinstance(one, list):
                variables[key] = [self._choice(test, *pair) for pair in zip(one, other)]
            else:
                variables[key] = self._choice(test, one, other)

    def _value(self, own: ast.expr | None, variables: dict[str, Value]) -> Value:
        if isinstance(own, ast.Constant):
            return own.value
        if isinstance(own, ast.Name):
            return variables[own.id] if own.id in variables else self._fixed[own.id]
        if isinstance(own, ast.BoolOp):
            return self._both(own, self._value(own.values[0], variables), variables)
        if isinstance(own, ast.Subscript):
            return self._element(self._value(own.value, variables), self._value(own.slice, variables))
        if isinstance(own, ast.List):
            return [self._value(own.elts[0], variables)]
        if isinstance(own, ast.IfExp):
            return self._choice(*(self._value(one, variables) for one in (own.test, own.body, own.orelse)))
        if isinstance(own, ast.UnaryOp):
            return self._apply("*", -1, self._value(own.operand, variables))
        if isinstance(own, ast.BinOp | ast.Compare):
            left, sign, right = (
                (own.left, own.op, own.right) if isinstance(own, ast.BinOp) else
                (own.left, own.ops[0], own.comparators[0])
            )  # fmt: skip
            return self._apply(_SIGNS[type(sign)], self._value(left, variables), self._value(right, variables))
        assert isinstance(own, ast.Call), own
        operands = [self._value(one, variables) for one in own.args]
        name = _name(own.func)
        return self._place(*operands) if name == "bisect_left" else self._apply(name, *operands)

    def _both(self, own: ast.BoolOp, held: Value, variables: dict[str, Value]) -> Value:
        """Return `and` or `or` of two tests, of which the first is `held`; the second is evaluated where it can change
        the result."""
        ends = isinstance(own.op, ast.Or)  # the value of the first test that decides
        if isinstance(held, Part) and held.sign == "if":
            test, *each = held.operands
            return self._choice(test, *(self._both(own, *pair) for pair in zip(each, _sides(variables, test))))
        other = ends if held is ends else self._value(own.values[1], variables)
        if not isinstance(held, Part) or not isinstance(other, Part):
            return held if other is not ends and isinstance(held, Part) else other
        if held.sign == ">" and other.sign == "isNan" and held.operands[0] is other.operands[0]:
            return self._part("not", self._part("<=", *held.operands))
        return self._part("||" if ends else "&&", held, other)

    def _element(self, array: list[Value], place: Value) -> Value:
        if not isinstance(place, Part):
            return array[place]
        test, yes, no = place.operands
        return self._choice(test, self._element(array, yes), self._element(array, no))

    def _place(self, items: list[float], x: Part, first: int, last: int) -> Value:
        """Return the number of `items`, from `first` on, that are below x, by bisection."""
        while first < last and items[first] == -np.inf:
            first += 1
        while first < last and items[last - 1] == np.inf:
            last -= 1
        if first == last:
            return first
        middle = (first + last) // 2
        below, above = self._place(items, x, first, middle), self._place(items, x, middle + 1, last)
        return self._choice(self._part("<=", x, items[middle]), below, above)

    def _apply(self, sign: str, a: Value, b: Value = None) -> Value:
        if not isinstance(a, Part) and not isinstance(b, Part):
            return _KNOWN[sign](a) if b is None else _KNOWN[sign](a, b)
        if sign in ("==", "!=") and a is b:
            missing = self._part("isNan", a)
            return missing if sign == "!=" else self._part("not", missing)
        if sign == ">" and b == np.inf:
            return False
        if sign in "+*" and (a == 0 or (sign == "*" and a == 1)):
            return 0.0 if sign == "*" and a == 0 else b
        if sign == "+" and b == 0:
            return a
        test = self._divides(sign, a, b) or self._divides(sign, b, a)
        if test is not None:
            (a, b), (c, d) = ([_side(own, test, side) for own in (a, b)] for side in (1, 2))
            return self._choice(test, self._apply(sign, a, b), self._apply(sign, c, d))
        if sign == "+" and getattr(b, "sign", "") == "*" and getattr(b.operands[1], "sign", "") == "-":
            share, (far, near) = b.operands[0], b.operands[1].operands
            if near == a:
                return self._part("mix", share, near, far)
        return self._part(sign, a) if b is None else self._part(sign, a, b)

    def _divides(self, sign: str, a: Value, b: Value) -> Part | None:
        """Return the test of a choice `a` if the operation applies to each of its values, else None."""
        if getattr(a, "sign", "") != "if":
            return None
        test: Part = a.operands[0]
        alike = getattr(b, "sign", "") == "if" and b.operands[0] is test
        few = a.numbers and a.leaves <= _MANY and sign == "*" and isinstance(b, Part)
        return test if a.integers or alike or few or (a.numbers and sign in TESTS) else None

    def _choice(self, test: Value, yes: Value, no: Value) -> Value:
        if not isinstance(test, Part):
            return yes if test else no
        if test.sign == "not":
            return self._choice(test.operands[0], no, yes)
        if test.sign == "if":
            first, a, b = test.operands
            return self._choice(first, self._choice(a, yes, no), self._choice(b, yes, no))
        yes, no = _side(yes, test, 1), _side(no, test, 2)
        if yes is no or (not isinstance(yes, Part) and not isinstance(no, Part) and yes == no):
            return yes
        if test.sign == "isNan" and getattr(no, "sign", "") == "if" and no.operands[0].sign == ">":
            asked, above, below = no.operands
            if asked.operands[0] is test.operands[0] and yes == above:
                return self._choice(self._part("<=", *asked.operands), below, above)
            if asked.operands[0] is test.operands[0] and yes == below:
                return no
        for begun, more in _starts(yes):  # a sum that both sides continue stays one sum
            for other, rest in _starts(no):
                if begun is other:
                    return self._part("+", begun, self._choice(test, more, rest))
        return self._part("if", test, yes, no)


def _name(own: ast.expr) -> str:
    return own.id if isinstance(own, ast.Name) else ""


def _starts(value: Value) -> list[tuple[Part, Value]]:
    """Return the ways to write a value as a part plus the rest."""
    if not isinstance(value, Part):
        return []
    return [(value, 0.0), *([value.operands] if value.sign == "+" and isinstance(value.operands[0], Part) else [])]


def _side(value: Value, test: Part, side: int) -> Value:
    """Return a value where a test holds (1) or does not hold (2)."""
    if isinstance(value, Part) and value.sign == "if" and value.operands[0] is test:
        return value.operands[side]
    return value


def _sides(variables: dict[str, Value], test: Part) -> list[dict[str, Value]]:
    """Return the variables where a test holds, and where it does not."""
    return [{key: _side(value, test, side) for key, value in variables.items()} for side in (1, 2)]
