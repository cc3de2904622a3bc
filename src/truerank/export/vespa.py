"""A rank profile of Vespa: the program of the model as one expression, whose repeated parts are functions.

`run_profile` evaluates such a profile in float64, from left to right.

Vespa evaluates expressions in float64. Features have Vespa's names, such as `bm25(title)` or `attribute(age)`, or are
functions of the inherited profile. A missing number is nan, like an attribute without a value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError, Remedy
from truerank.export.expression import TESTS, Part, expression_of
from truerank.export.form import ModelForm, identifier
from truerank.export.interpreter import Frame, Parser, in_parts
from truerank.export.program import program_of

_FEATURE = re.compile(r"[A-Za-z_@][A-Za-z0-9_@$]*(\([A-Za-z0-9_@$., ]*\))?(\.[A-Za-z0-9_]+)*")
_WORDS = ("if", "min", "max", "exp", "log", "abs", "isNan")  # functions of the expressions written here
_LARGEST = float(np.finfo(np.float64).max)
_DEEPEST = 200
_SHORT = 24  # characters of a part that is written where it is used
_FEW = 3  # terms of a sum on one line
_FORMS = {
    "if": "if ({}, {}, {})", "isNan": "isNan({})", "min": "min({}, {})", "max": "max({}, {})",
    "abs": "abs({})", "exp": "exp({})", "log1p": "log(1.0 + {})", "mix": "((1.0 - {0}) * {1} + {0} * {2})",
}  # fmt: skip
_FUNCTION = re.compile(r"^    function (\w+)\(\) \{\n        expression \{\n(.*?)\n        \}\n    \}$", re.M | re.S)
_RESULT = re.compile(r"^    second-phase \{\n        expression: (\w+)\n    \}$", re.M)
_CALLS: dict[str, Callable[..., Any]] = {
    "min": np.minimum, "max": np.maximum, "exp": np.exp, "log": np.log, "isNan": np.isnan, "abs": np.abs,
}  # fmt: skip


def write(form: ModelForm, name: str, inputs: str) -> str:
    """Return the text of the file `NAME.profile`."""
    bad = next((own for own in form.names if own in _WORDS or not _FEATURE.fullmatch(own)), None)
    if bad is not None:
        raise InvalidInputError(
            f"{bad!r} is not a feature of Vespa. Features are, for example, bm25(title), attribute(age) or age",
            argument="feature_names",
            value=bad,
            remedies=[Remedy(feature_names=[...])],
        )
    prefix = identifier(name)
    prefix = prefix if prefix[:1].isalpha() else f"m{prefix}"
    while any(own.startswith(prefix) for own in form.names):
        prefix += "_"
    result = expression_of(program_of(replace(form, float32_sums=False)), form.names)
    depth = result.depth if isinstance(result, Part) else 0
    if depth > _DEEPEST:
        raise InvalidInputError(
            f"a tree has the depth {depth}, but an expression can have at most {_DEEPEST} levels. Export it as "
            "lightgbm, whose JSON Vespa reads, or as onnx",
            code="too-deep",
        )
    printer = _Printer(prefix, result)
    last = printer.add("score" if form.calibration is None else "probability", printer.text(result))
    return _text(prefix, printer.functions, last)


class _Printer:
    """A printer of expressions. Long parts that occur more than once become functions."""

    def __init__(self, prefix: str, whole: Any) -> None:
        self.prefix, self.functions = prefix, list[tuple[str, str]]()
        self._texts: dict[Part, str] = {}
        self._counts = Counter[Part]()
        waiting = [whole] if isinstance(whole, Part) else []
        while waiting:
            whole = waiting.pop()
            for own in (*whole.operands, *whole.operands[:1] * (whole.sign == "mix")):  # which has its share twice
                if isinstance(own, Part):
                    self._counts[own] += 1
                    if self._counts[own] == 1:
                        waiting.append(own)

    def add(self, name: str, expression: str) -> str:
        """Add a function, and return its name."""
        self.functions.append((f"{self.prefix}_{name}", expression))
        return self.functions[-1][0]

    def text(self, own: Any) -> str:
        """Return the text of a part or of a number."""
        if not isinstance(own, Part):
            return _number(own)
        if own not in self._texts:
            text = self._written(own)
            if self._counts[own] > 1 and len(text) > _SHORT and own.sign not in TESTS:
                text = self.add(f"part{len(self.functions)}", text)
            self._texts[own] = text
        return self._texts[own]

    def _written(self, own: Part) -> str:
        if own.sign == "feature":
            return str(own.operands[0])
        if own.sign == "+":
            terms, first = [own.operands[1]], own.operands[0]
            while isinstance(first, Part) and first.sign == "+" and self._counts[first] == 1:
                terms.append(first.operands[1])
                first = first.operands[0]
            words = [self.text(first), *(self._operand(term, "+-") for term in reversed(terms))]
            return ("\n+ " if len(words) > _FEW else " + ").join(words)
        words = [self._operand(one, "+-*/" if own.sign in ("-", "*", "/", "mix") else "") for one in own.operands]
        return _FORMS.get(own.sign, f"{{}} {own.sign} {{}}").format(*words)

    def _operand(self, own: Any, signs: str) -> str:
        """Return the text of an operand, in parentheses if it is not a function and its sign is among `signs`."""
        text = self.text(own)
        return f"({text})" if isinstance(own, Part) and own.sign in signs and " " in text else text


def _text(name: str, functions: list[tuple[str, str]], result: str) -> str:
    lines = [f"rank-profile {name} inherits default {{"]
    for own, expression in functions:
        lines += [f"    function {own}() {{", "        expression {", *expression.splitlines(), "        }", "    }"]
    return "\n".join([*lines, "    second-phase {", f"        expression: {result}", "    }", "}", ""])


def _number(value: float) -> str:
    text = repr(float(np.clip(value, -_LARGEST, _LARGEST)) + 0.0)
    return f"({text})" if text.startswith("-") else text


def run_profile(text: str, names: tuple[str, ...]) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that scores rows (n, p) of the features `names` by the second phase of a rank profile."""
    result, functions = _RESULT.search(text), []
    known: dict[str, Any] = _CALLS | dict.fromkeys(names)
    for name, body in _FUNCTION.findall(text):
        functions.append((name, Parser(body, known, names, doubles=True).whole()))
        known = known | {name: None}
    if result is None or result[1] not in dict(functions):
        raise InvalidInputError("the rank profile has no second-phase expression of its functions", code="expression")

    def score(X: np.ndarray) -> np.ndarray:
        own = Frame(len(X), {name: X[:, k] for k, name in enumerate(names)})
        for name, function in functions:
            own.values[name] = np.asarray(function(own, None), dtype=np.float64)[()]
        return np.asarray(own.values[result[1]])

    return in_parts(score)
