"""Run the text of an export for all rows at once, by the rules of its language: Painless, C, or Vespa's expressions.

A `Parser` turns a text into functions of a `Frame` and of the rows that reach a statement. A value is one number for
all rows, or an array with one number for each row. The parser knows what the printers write, and refuses everything
else: unknown names and signs, fractions in place of integers, indices beyond the end of an array.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError

Reached = Any  # None for all rows, or the numbers of those that reach a statement
Expression = Callable[["Frame", Reached], Any]
# From loosely to tightly binding; `||` and `&&` evaluate their right side only where it matters.
_LEVELS: tuple[dict[str, Any], ...] = (
    {"||": None},
    {"&&": None},
    {"|": np.bitwise_or},
    {"&": np.bitwise_and},
    {"==": np.equal, "!=": np.not_equal},
    {"<=": np.less_equal, ">=": np.greater_equal, "<": np.less, ">": np.greater},
    {"<<": np.left_shift},
    {"+": np.add, "-": np.subtract},
    {"*": np.multiply, "/": np.divide, "%": np.fmod},
)
_TYPES = ("double", "int", "def", "List")
_TOKEN = (
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<end>$)"
    r"|(?P<sign>\|\||&&|<<|[<>=!]=|\+\+|--|[-+*/%<>()\[\]{},;:?.=&|]))"
)
_MOST = 1_000_000  # turns of one loop


class Constants(np.ndarray):
    """An array that is the same for all rows."""


class Logged(np.ndarray):
    """A numeric field of the documents; nan is `null`."""


@dataclass
class Local:
    """A local array of numbers (size, n)."""

    cells: np.ndarray


@dataclass
class Frame:
    """The variables of one call for n rows, and what all calls share."""

    n: int
    values: dict[str, Any]
    shared: Mapping[str, Any] = field(default_factory=dict)

    def part(self, value: Any, rows: Reached) -> Any:
        """Return a value for some rows."""
        varies = isinstance(value, np.ndarray) and not isinstance(value, Constants) and value.ndim
        return value[rows] if varies and rows is not None else value

    def read(self, name: str, rows: Reached) -> Any:
        """Return a variable for some rows."""
        return self.part(self.values[name] if name in self.values else self.shared[name], rows)

    def assign(self, name: str, value: Any, rows: Reached) -> None:
        """Assign a value to a variable in some rows."""
        if rows is not None and (name in self.values or np.ndim(value)):
            whole = np.array(np.broadcast_to(self.values.get(name, 0), self.n), dtype=np.asarray(value).dtype)
            whole[rows] = value
            value = whole
        self.values[name] = value


def constants(values: Any) -> Constants:
    """Return numbers as an array of constants."""
    array = np.asarray(values)
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64).view(Constants)


def refuse_if(wrong: object, what: str, *values: object) -> None:
    """Raise the error of a text that cannot be evaluated, if something is wrong; `values` fill the text `what`."""
    if wrong:
        raise InvalidInputError(
            f"the exported text cannot be evaluated: {what.format(*values)}. Export to another format, and report this "
            "as an error of truerank",
            code="expression",
        )


class Parser:
    """A parser of one text.

    Parameters
    ----------
    text : str
    names : mapping
        Names that the language knows: functions, and objects with members.
    features : sequence of str
        Names of features that may contain brackets and points, as Vespa's do.
    doubles : bool
        Whether every number is a double.
    """

    def __init__(
        self, text: str, names: Mapping[str, Any], features: Sequence[str] = (), doubles: bool = False
    ) -> None:
        self.names, self.doubles, self.at = names, doubles, 0
        self.functions: dict[str, tuple[list[str], Expression]] = {}
        self.kinds = dict.fromkeys(names, "def")
        longest = "|".join(re.escape(name) for name in sorted(features, key=len, reverse=True))
        token = re.compile(rf"\s*(?P<feature>(?:{longest})(?![\w.(]))|{_TOKEN}" if features else _TOKEN)
        self.tokens: list[tuple[str, str]] = []
        place = 0
        while not self.tokens or self.tokens[-1][0] != "end":
            found: Any = token.match(text, place)
            refuse_if(found is None, "unexpected character at {!r}", text[place : place + 30])
            self.tokens.append((str(found.lastgroup), found[str(found.lastgroup)] or "the end"))
            place = found.end()

    @property
    def word(self) -> str:
        """Next token."""
        return self.tokens[self.at][1]

    def take(self, *words: str) -> str:
        """Return the next token, which must be one of `words` if there are any."""
        kind, word = self.tokens[self.at]
        wrong = word not in words if words else kind == "end"
        refuse_if(wrong, "expected one of {}, got {!r}", words or "more", word)
        self.at += 1
        return word

    def accept(self, word: str) -> bool:
        """Skip the next token if it is `word`, and return whether it was."""
        self.at += (found := self.word == word)
        return found

    def several(self, read: Callable[[], Any], end: str) -> list[Any]:
        """Read a list with commas, up to `end`."""
        found = []
        while not self.accept(end):
            found.append(read())
            if self.word != end:
                self.take(",")
        return found

    # Statements.

    def program(self) -> Expression:
        """Read functions and then statements, up to the end."""
        own = []
        while self.word != "the end":
            if self.word in _TYPES and self.tokens[self.at + 2][1] == "(":
                self._function()
            else:
                own.append(self.statement())
        return _sequence(own)

    def whole(self) -> Expression:
        """Read a text of one expression."""
        value = self.expression()
        self.take("the end")
        return value

    def _function(self) -> None:
        self.take(*_TYPES)
        name = self.take()
        self.take("(")
        self.functions[name] = self.several(self._argument, ")"), self.statement()

    def _argument(self) -> str:
        self.accept("const")
        kind = self.take(*_TYPES)
        kind = "List" if self.accept("*") else kind
        self.kinds[self.word] = kind
        return self.take()

    def statement(self) -> Expression:
        """Read a statement."""
        if self.accept("{"):
            own = []
            while not self.accept("}"):
                own.append(self.statement())
            return _sequence(own)
        if self.accept("if"):
            test, yes = self._condition(), self.statement()
            return _branch(test, yes, self.statement() if self.accept("else") else _sequence([]))
        if self.accept("while"):
            return _loop(self._condition(), self.statement())
        if self.accept("for"):
            self.take("(")
            first, test = self.statement(), self.expression()
            self.take(";")
            step = self._assignment()
            self.take(")")
            return _sequence([first, _loop(test, _sequence([self.statement(), step]))])
        own_line = self._assignment()
        self.take(";")
        return own_line

    def _condition(self) -> Expression:
        self.take("(")
        test = self.expression()
        self.take(")")
        return test

    def _assignment(self) -> Expression:
        """Read an assignment, with or without a declaration, or a return."""
        if self.word in ("++", "--"):
            step, name = 1 if self.take() == "++" else -1, self.take()
            return lambda own, rows: own.assign(name, own.read(name, rows) + step, rows)
        if self.accept("return"):
            value = self.expression()
            refuse_if(self.tokens[self.at + 1][1] not in ("}", "the end"), "statements follow a return")
            return lambda own, rows: own.assign("return", value(own, rows), rows)
        kind = self.take() if self.word in _TYPES else ""
        array = bool(kind) and self.accept("[") and bool(self.take("]"))
        name = self.take()
        if kind and (array or self.word == "["):
            self.kinds[name], number = f"{kind}[]", np.float64 if kind == "double" else np.int64
            for word in ("=", "new", kind) if array else ():
                self.take(word)
            self.take("[")
            size = self.expression()
            for word in ("]",) if array else ("]", "=", "{", "0", "}"):
                self.take(word)
            return lambda own, rows: own.values.update({name: Local(np.zeros((int(size(own, None)), own.n), number))})
        kind = kind or self.kinds.get(name, "")
        refuse_if(not kind, "{!r} is not declared", name)
        if self.accept("["):
            index = self.expression()
            for word in ("]", "="):
                self.take(word)
            value = _converted(kind.removesuffix("[]"), self.expression())
            return lambda own, rows: _store(own, own.values[name], index(own, rows), value(own, rows), rows)
        self.take("=")
        value = _converted(kind, self.expression())
        self.kinds[name] = kind
        return lambda own, rows: own.assign(name, value(own, rows), rows)

    # Expressions.

    def expression(self, level: int = 0) -> Expression:
        """Read an expression."""
        if level == len(_LEVELS):
            return self._unary()
        left = self.expression(level + 1) if level else self._chain(0, self.expression(1))
        if level:
            return self._chain(level, left)
        if not self.accept("?"):
            return left
        yes = self.expression()
        self.take(":")
        return _choice(left, yes, self.expression())

    def _chain(self, level: int, left: Expression) -> Expression:
        while self.word in _LEVELS[level]:
            sign = self.take()
            right = self.expression(level + 1)
            if sign == "||":
                left = _choice(left, lambda own, rows: True, right)
            elif sign == "&&":
                left = _choice(left, right, lambda own, rows: False)
            else:
                left = _operation(sign, _LEVELS[level][sign], left, right)
        return left

    def _unary(self) -> Expression:
        if self.accept("-"):
            operand = self._unary()
            return lambda own, rows: -operand(own, rows)
        if self.word == "(" and self.tokens[self.at + 1][1] in (*_TYPES, "float"):
            self.take("(")
            kind = self.take()
            self.take(")")
            return _converted(kind, self._unary())
        value = self._primary()
        while self.word in (".", "["):
            if self.take() == "[":
                value = _element(value, self.expression())
                self.take("]")
            else:
                name = self.take()
                value = _member(value, name, self.several(self.expression, ")") if self.accept("(") else None)
        return value

    def _primary(self) -> Expression:
        kind, word = self.tokens[self.at][0], self.take()
        if word == "(":
            value = self.expression()
            self.take(")")
            return value
        if kind == "number":
            number: Any = float(word) if self.doubles or not word.isdigit() else int(word)
            return lambda own, rows: number
        if word == "null":
            return lambda own, rows: None
        if kind == "name" and self.accept("("):
            return self._called(word, self.several(self.expression, ")"))
        refuse_if(word not in self.kinds, "unknown name {!r}", word)
        return lambda own, rows: own.read(word, rows)

    def _called(self, name: str, arguments: list[Expression]) -> Expression:
        if name == "if" and len(arguments) == 3:
            return _choice(*arguments)
        names, body = self.functions.get(name, ([], None))
        function: Any = self.names.get(name)
        wrong = len(names) != len(arguments) if body else not callable(function)
        refuse_if(wrong, "unknown function {!r} of {} arguments", name, len(arguments))

        def run(own: Frame, rows: Reached) -> Any:
            values = [argument(own, rows) for argument in arguments]
            if body is None:
                return function(*values)
            inner = Frame(own.n if rows is None else len(rows), dict(zip(names, values)), own.shared)
            body(inner, None)
            return inner.values["return"]

        return run


def _converted(kind: str, value: Expression) -> Expression:
    """Return the value after conversion to the type `kind` of a variable."""

    def number(own: Frame, rows: Reached) -> Any:
        found = value(own, rows)
        whole = np.asarray(found).dtype.kind in "ib"
        wrong = found is None or (kind == "int" and not (whole and np.all(np.abs(found) < 2**31)))
        refuse_if(wrong, "{!r:.40} is not of the type {}", found, kind)
        if kind == "float":
            return np.asarray(found).astype(np.float32).astype(np.float64)[()]
        return np.asarray(found, dtype=np.int64 if kind == "int" else np.float64)[()]

    return number if kind in ("int", "float", "double") else value


def _sequence(statements: list[Expression]) -> Expression:
    def run(own: Frame, rows: Reached) -> None:
        for statement in statements:
            statement(own, rows)

    return run


def _divided(test: Expression, own: Frame, rows: Reached) -> tuple[Any, Any, Any]:
    """Return the rows that pass a test, the rows that fail, and the test by row, or whether all rows pass."""
    found = np.asarray(test(own, rows)).astype(bool)
    if found.ndim == 0 or found.all() or not found.any():
        return rows, rows, bool(found.all())
    every = np.arange(own.n) if rows is None else rows
    return every[found], every[~found], found


def _branch(test: Expression, yes: Expression, no: Expression) -> Expression:
    def run(own: Frame, rows: Reached) -> None:
        first, second, found = _divided(test, own, rows)
        if found is not False:
            yes(own, first)
        if found is not True:
            no(own, second)

    return run


def _loop(test: Expression, body: Expression) -> Expression:
    def run(own: Frame, rows: Reached) -> None:
        for _ in range(_MOST):
            rows, _, found = _divided(test, own, rows)
            if found is False:
                return
            body(own, rows)
        refuse_if(True, "a loop does not end within {} turns", _MOST)

    return run


def _choice(test: Expression, yes: Expression, no: Expression) -> Expression:
    """Evaluate each side of a choice only for the rows that reach it."""

    def run(own: Frame, rows: Reached) -> Any:
        first, second, found = _divided(test, own, rows)
        if isinstance(found, bool):
            return (yes if found else no)(own, rows)
        sides = [np.asarray(yes(own, first)), np.asarray(no(own, second))]
        result = np.empty(len(found), dtype=np.result_type(*sides))
        result[found], result[~found] = sides
        return result

    return run


def _operation(sign: str, function: Callable[[Any, Any], Any], left: Expression, right: Expression) -> Expression:
    def run(own: Frame, rows: Reached) -> Any:
        a, b = left(own, rows), right(own, rows)
        if a is None or b is None:
            other = b if a is None else a
            null = np.asarray(np.isnan(other) if isinstance(other, Logged) else other is None)
            return null if sign == "==" else ~null
        if sign == "/" and np.asarray(a).dtype.kind == np.asarray(b).dtype.kind == "i":
            return np.trunc(np.divide(a, b)).astype(np.int64)
        return function(a, b)

    return run


def _place(cells: Any, k: Any) -> Any:
    places = np.asarray(k)
    refuse_if(
        places.dtype.kind != "i" or np.any(places < 0) or np.any(places >= len(cells)), "an index is out of range"
    )
    return k


def _element(value: Expression, index: Expression) -> Expression:
    def run(own: Frame, rows: Reached) -> Any:
        array, k = value(own, rows), index(own, rows)
        if isinstance(array, Mapping):
            return array.get(k)
        if not isinstance(array, Local):
            found = array[_place(array, k)]
            return found.view(np.ndarray) if isinstance(found, np.ndarray) else found
        if np.ndim(k) and rows is None:
            return array.cells[_place(array.cells, k), np.arange(own.n)]
        return array.cells[_place(array.cells, k)] if rows is None else array.cells[_place(array.cells, k), rows]

    return run


def _store(own: Frame, array: Local, k: Any, value: Any, rows: Reached) -> None:
    array.cells[_place(array.cells, k), np.arange(own.n) if rows is None else rows] = value


def _member(value: Expression, name: str, arguments: list[Expression] | None) -> Expression:
    """Return a member of an object, or the result of its method."""
    if name == "get" and arguments is not None and len(arguments) == 1:
        return _element(value, arguments[0])

    def run(own: Frame, rows: Reached) -> Any:
        found: Any
        whole = value(own, rows)
        if isinstance(whole, Mapping):
            found = whole.get(name)
        else:
            found = len(whole.cells) if isinstance(whole, Local) else lambda: len(whole)
            refuse_if(name != ("length" if isinstance(whole, Local) else "size"), "unknown member {!r}", name)
        used = "an attribute" if arguments is None else "a method"
        refuse_if(callable(found) != (arguments is not None), "{!r} is used as {}", name, used)
        if arguments is not None:
            found = found(*(argument(own, rows) for argument in arguments))
        return found if arguments else own.part(found, rows)

    return run


def in_parts(score: Callable[[np.ndarray], Any], size: int = 8192) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that scores rows (n, p) in parts and ignores overflow."""

    def whole(X: np.ndarray) -> np.ndarray:
        scores = np.empty(len(X))
        with np.errstate(all="ignore"):
            for start in range(0, len(X), size):
                scores[start : start + size] = score(X[start : start + size])
        return scores

    return whole
