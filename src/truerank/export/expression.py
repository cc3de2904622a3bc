"""Evaluate the ranking expressions that `export.vespa` writes, in float64 from left to right."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError

_FUNCTION = re.compile(r"^    function (\w+)\(\) \{\n        expression \{\n(.*?)\n        \}\n    \}$", re.M | re.S)
_RESULT = re.compile(r"^    second-phase \{\n        expression: (\w+)\n    \}$", re.M)
_LEVELS: tuple[dict[str, Callable[[Any, Any], Any]], ...] = (
    {"||": np.logical_or},
    {"<=": np.less_equal, ">=": np.greater_equal, "<": np.less, ">": np.greater},
    {"+": np.add, "-": np.subtract},
    {"*": np.multiply, "/": np.divide},
)
_CALLS: dict[str, Callable[..., Any]] = {
    "min": np.minimum, "max": np.maximum, "exp": np.exp, "log": np.log, "isNan": np.isnan, "abs": np.abs,
}  # fmt: skip


def run_profile(text: str, names: tuple[str, ...]) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that scores rows (n, p) of the features `names` by the second phase of a rank profile."""
    result = _RESULT.search(text)
    functions = [(name, _parsed(body, names)) for name, body in _FUNCTION.findall(text)]
    if result is None or result[1] not in [name for name, _ in functions]:
        raise InvalidInputError("the rank profile has no second-phase expression of its functions")

    def score(X: np.ndarray) -> np.ndarray:
        values = {name: X[:, k] for k, name in enumerate(names)}
        rows = np.arange(len(X))
        with np.errstate(all="ignore"):
            for name, tree in functions:
                values[name] = np.broadcast_to(np.asarray(_value(tree, values, rows), dtype=np.float64), len(X))
        return np.array(values[result[1]])

    return score


def _tokens(text: str, names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Kind (feature, number, word or sign) and text of each token, and a last one of the kind "end"."""
    features = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    token = re.compile(rf"\s*(?:(?P<feature>(?:{features})(?![\w.(]))|(?P<number>\d[\d.]*(?:[eE][+-]?\d+)?)|"
                       r"(?P<word>\w+)|(?P<sign>\|\||<=|>=|[-+*/<>(),])|(?P<end>$))")  # fmt: skip
    tokens: list[tuple[str, str]] = []
    place = 0
    while not tokens or tokens[-1][0] != "end":
        found = token.match(text, place)
        if found is None:
            raise InvalidInputError(f"unknown sign in an expression: {text[place : place + 30]!r}")
        tokens.append((str(found.lastgroup), found[str(found.lastgroup)]))
        place = found.end()
    return tokens


def _parsed(text: str, names: tuple[str, ...]) -> Any:
    """Nested tuples: ("number", v), ("name", n), ("call", f, arguments), ("if", c, a, b), ("chain", operands, ops)."""
    tokens = _tokens(text, names)[::-1]

    def expect(kind: str, word: str) -> None:
        found = tokens.pop()
        if found != (kind, word):
            raise InvalidInputError(f"expected {word or kind!r} in an expression, got {found[1] or found[0]!r}")

    def expression() -> Any:
        operands, signs = [operand()], []
        while tokens[-1][0] == "sign" and tokens[-1][1] not in "(),":
            signs.append(tokens.pop()[1])
            operands.append(operand())
        return _grouped(operands, signs, 0)

    def operand() -> Any:
        kind, word = tokens.pop()
        if word == "-" and tokens[-1][0] == "number":
            kind, word = "number", f"-{tokens.pop()[1]}"
        if kind == "number":
            return ("number", float(word))
        if word == "(":
            inside = expression()
            expect("sign", ")")
            return inside
        if kind == "word" and tokens[-1] == ("sign", "("):
            arguments = []
            while tokens[-1][1] in ("(", ","):
                tokens.pop()
                arguments.append(expression())
            expect("sign", ")")
            if word != "if" and word not in _CALLS:
                raise InvalidInputError(f"unknown function {word!r} in an expression")
            return ("if", *arguments) if word == "if" else ("call", _CALLS[word], arguments)
        if kind in ("sign", "end"):
            raise InvalidInputError(f"unexpected {word or kind!r} in an expression")
        return ("name", word)

    tree = expression()
    expect("end", "")
    return tree


def _grouped(operands: list[Any], signs: list[str], level: int) -> Any:
    if not signs:
        return operands[0]
    own = [place for place, sign in enumerate(signs) if sign in _LEVELS[level]]
    if not own:
        return _grouped(operands, signs, level + 1)
    cuts = [-1, *own, len(signs)]
    parts = [_grouped(operands[a + 1 : z + 1], signs[a + 1 : z], level + 1) for a, z in zip(cuts[:-1], cuts[1:])]
    return ("chain", parts, [_LEVELS[level][signs[place]] for place in own])


def _value(tree: Any, values: dict[str, np.ndarray], rows: np.ndarray) -> Any:
    """Evaluate an expression for some rows; each side of an `if` only for the rows that reach it."""
    kind = tree[0]
    if kind == "number":
        return tree[1]
    if kind == "name":
        if tree[1] not in values:
            raise InvalidInputError(f"unknown feature or function {tree[1]!r} in an expression")
        return values[tree[1]][rows]
    if kind == "call":
        return tree[1](*(_value(argument, values, rows) for argument in tree[2]))
    if kind == "chain":
        result = _value(tree[1][0], values, rows)
        for part, operation in zip(tree[1][1:], tree[2]):
            result = operation(result, _value(part, values, rows))
        return result
    yes = np.broadcast_to(np.asarray(_value(tree[1], values, rows), dtype=bool), len(rows))
    if yes.all() or not yes.any():
        return _value(tree[2] if len(yes) and yes[0] else tree[3], values, rows)
    result = np.empty(len(rows))
    result[yes] = _value(tree[2], values, rows[yes])
    result[~yes] = _value(tree[3], values, rows[~yes])
    return result
