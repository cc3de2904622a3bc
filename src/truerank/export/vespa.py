"""A rank profile of Vespa: each part of the model is a function, and `second-phase` ranks by their sum.

`run_profile` evaluates such a profile in float64, from left to right.

Vespa evaluates expressions in float64. Features have Vespa's names, such as `bm25(title)` or `attribute(age)`, or are
functions of the inherited profile. A missing number is nan, like an attribute without a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError, Remedy
from truerank.export.arrays import Arrays, arrays_of
from truerank.export.calibration import BETA, PROBABILITY, Calibration, Member
from truerank.export.form import ModelForm, as_plain, identifier
from truerank.export.interpreter import Frame, Parser, in_parts

_FEATURE = re.compile(r"[A-Za-z_@][A-Za-z0-9_@$]*(\([A-Za-z0-9_@$., ]*\))?(\.[A-Za-z0-9_]+)*")
_WORDS = ("if", "min", "max", "exp", "log", "abs", "isNan")  # functions of the expressions written here
_LARGEST = float(np.finfo(np.float64).max)
_DEEPEST = 200
_FUNCTION = re.compile(r"^    function (\w+)\(\) \{\n        expression \{\n(.*?)\n        \}\n    \}$", re.M | re.S)
_RESULT = re.compile(r"^    second-phase \{\n        expression: (\w+)\n    \}$", re.M)
_CALLS: dict[str, Callable[..., Any]] = {
    "min": np.minimum, "max": np.maximum, "exp": np.exp, "log": np.log, "isNan": np.isnan, "abs": np.abs,
}  # fmt: skip


class _Profile:
    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.functions: list[tuple[str, str]] = []

    def add(self, name: str, expression: str) -> str:
        name = f"{self.prefix}_{name}"
        self.functions.append((name, expression))
        return name


def write(form: ModelForm, name: str, inputs: str) -> str:
    """Return the text of the file `NAME.profile`."""
    bad = next((own for own in form.names if own in _WORDS or not _FEATURE.fullmatch(own)), None)
    if bad is not None:
        raise InvalidInputError(
            f"{bad!r} is no feature of Vespa, such as bm25(title), attribute(age) or age",
            argument="feature_names",
            value=bad,
            remedies=[Remedy(feature_names=[...])],
        )
    prefix = identifier(name)
    prefix = prefix if prefix[:1].isalpha() else f"m{prefix}"
    while any(own.startswith(prefix) for own in form.names):
        prefix += "_"
    profile = _Profile(prefix)
    if form.kind in ("oblivious", "trees"):
        # Questions and a linear start read normalised columns.
        whole = as_plain(replace(form, linear_start=None, normalizers=None))
        form = replace(form, body=whole.body)
    arrays = arrays_of(form)
    x = list(form.names)
    if form.normalizers is not None:
        x = _normalised(profile, form, x)
    terms = [_number(form.start)]
    if form.linear_start is not None:
        terms.append(profile.add("linear_start", _linear_start(arrays, x)))
    body = {"linear": _linear, "stumps": _stumps, "trees": _trees, "fuzzy": _fuzzy, "polynomial": _polynomial}
    terms += body[form.kind](profile, form, arrays, x)
    if form.intercept:
        terms.append(_number(form.intercept))
    result = profile.add("score", "\n+ ".join(terms))
    if form.calibration is not None:
        result = profile.add("probability", _probability(profile, form.calibration, result))
    return _text(prefix, profile.functions, result)


def _text(name: str, functions: list[tuple[str, str]], result: str) -> str:
    lines = [f"rank-profile {name} inherits default {{"]
    for own, expression in functions:
        lines += [f"    function {own}() {{", "        expression {", *expression.splitlines(), "        }", "    }"]
    return "\n".join([*lines, "    second-phase {", f"        expression: {result}", "    }", "}", ""])


def _number(value: float) -> str:
    text = repr(float(np.clip(value, -_LARGEST, _LARGEST)) + 0.0)
    return f"({text})" if text.startswith("-") else text


def _if(condition: str, yes: str, no: str) -> str:
    return yes if yes == no else f"if ({condition}, {yes}, {no})"


def _question(x: str, border: float, missing_right: bool, left: str, right: str) -> str:
    """Return a Vespa expression for the side of a border on which x is; a comparison with nan is false."""
    if border == np.inf:
        return _if(f"isNan({x})", right if missing_right else left, left)
    if missing_right:
        return _if(f"{x} <= {_number(border)}", left, right)
    return _if(f"{x} > {_number(border)}", right, left)


def _normalised(profile: _Profile, form: ModelForm, x: list[str]) -> list[str]:
    own = form.normalizers
    assert own is not None
    result = list(x)
    for k in form.used.tolist():
        first, second = _number(own.first[k]), _number(own.second[k])
        result[k] = profile.add(
            f"x{k}", f"{x[k]} * {first} + {second}" if own.affine else f"({x[k]} - {first}) / {second}"
        )
    return result


def _clipped(x: str, low: float, high: float) -> str:
    return f"min(max({x}, {_number(low)}), {_number(high)})"


def _linear_start(arrays: Arrays, x: list[str]) -> str:
    parts = ["0.0"]
    for i, k in enumerate(arrays["start_columns"].tolist()):
        clipped = _clipped(x[k], arrays["start_low"][i], arrays["start_high"][i])
        own = f"{_number(arrays['start_slope'][i])} * ({clipped} - {_number(arrays['start_mean'][i])})"
        parts.append(_if(f"isNan({x[k]})", "0.0", own))
    return "\n+ ".join(parts)


def _linear(profile: _Profile, form: ModelForm, arrays: Arrays, x: list[str]) -> list[str]:
    """Add products in the order of `predict`: in eight sums if there are many columns."""
    columns, weights, until = arrays["columns"].tolist(), arrays["weights"].tolist(), arrays["lanes"]
    parts = [f"{x[k]} * {_number(w)}" for k, w in zip(columns, weights)]
    if not until:
        return ["(" + "\n+ ".join(parts) + ")"] if parts else []
    a, b, c, d, e, f, g, h = (f"({' + '.join(parts[lane:until:8])})" for lane in range(8))
    sums = [f"((({a}\n+ {e}) + ({c}\n+ {g})) + (({b}\n+ {f}) + ({d}\n+ {h})))", *parts[until:]]
    return ["(" + "\n+ ".join(sums) + ")"]


def _stumps(profile: _Profile, form: ModelForm, arrays: Arrays, x: list[str]) -> list[str]:
    steps, starts, values = arrays["steps"].tolist(), arrays["starts"].tolist(), arrays["values"].tolist()
    terms = []
    for c, k in enumerate(arrays["columns"].tolist()):
        own = steps[starts[c] : starts[c + 1]]
        heights = [_number(value) for value in values[starts[c] + c : starts[c + 1] + c + 1]]
        if own and own[0] == -np.inf:  # below every number
            own, heights = own[1:], heights[1:]
        terms.append(_if(f"isNan({x[k]})", _number(arrays["absent_values"][c]), _piece(x[k], own, heights)))
    return ["(" + "\n+ ".join(["0.0", *terms]) + ")"]


def _trees(profile: _Profile, form: ModelForm, arrays: Arrays, x: list[str]) -> list[str]:
    trees = form.body.trees

    def split(node: int, left: tuple[int, str], right: tuple[int, str]) -> tuple[int, str]:
        name, threshold, side = x[trees.features[node]], trees.thresholds[node], trees.missing_right[node]
        (deep, a), (deeper, b) = left, right
        text = _question(name, threshold, side, a, b)
        if trees.zero_missing[node] and threshold != np.inf:
            question = _question(name, threshold, False, a, b)
            text = _if(f"isNan({name}) || abs({name}) <= 1e-35", b if side else a, question)
        return 1 + max(deep, deeper), text

    built = trees.nested(lambda leaf: (0, _number(trees.values[leaf])), split)
    deepest = max((depth for depth, _ in built), default=0)
    if deepest > _DEEPEST:
        raise InvalidInputError(
            f"a tree has the depth {deepest}, and an expression can have at most {_DEEPEST} levels. Export it as "
            "lightgbm, whose JSON Vespa reads, or as onnx",
            code="too-deep",
        )
    return [text for _, text in built]


def _fuzzy(profile: _Profile, form: ModelForm, arrays: Arrays, x: list[str]) -> list[str]:
    first, lower, upper = arrays["first"].tolist(), arrays["lower"].tolist(), arrays["upper"].tolist()
    steep = arrays["steep"].astype(bool) if "log_p" in arrays else np.zeros(len(arrays["used"]), dtype=bool)
    lookups = {"above": arrays["up"], "below": arrays["down"]}
    if steep.any():
        lookups |= {"low": arrays["state_start"], "high": arrays["state_stop"]}
    called: dict[tuple[str, int], str] = {}
    for i, k in enumerate(arrays["used"].tolist()):
        a, z = first[i], first[i + 1]
        states = np.arange(2 * (z - a) + 1, dtype=np.float64)
        found = _search(x[k], lower[a:z], upper[a:z], states.tolist())
        called["state", i] = profile.add(f"state{i}", _if(f"isNan({x[k]})", "(-1.0)", found))
        for title, table in lookups.items():
            if title in ("low", "high") and not steep[i]:
                continue
            own = table[2 * a + i : 2 * z + i + 1].tolist()
            called[title, i] = profile.add(f"{title}{i}", _search(x[k], lower[a:z], upper[a:z], own))
    rights: dict[tuple[float, ...], str] = {}
    trees = []
    columns, values, depth = arrays["columns"], arrays["values"].tolist(), arrays["columns"].shape[1]
    fields = ("columns", "border_states", "left_factor", "right_factor", "border_place", "missing_right")
    for t in range(len(columns)):
        shares = []
        for level in range(depth):
            key = tuple(float(arrays[field][t, level]) for field in fields)
            if key not in rights:
                text = _share(called, int(key[0]), key, bool(steep[int(key[0])]), arrays)
                rights[key] = profile.add(f"right{len(rights)}", text)
            shares.append(rights[key])
        trees.append(_between(shares, values[t]))
    return trees


def _search(x: str, lower: list[float], upper: list[float], values: list[float]) -> str:
    """Return `values[s]` of the state s of x: 2j + 1 within place j, 2j between places j - 1 and j."""

    def search(a: int, z: int) -> str:
        if a < z:
            m = (a + z) // 2
            return _if(f"{x} <= {_number(upper[m])}", search(a, m), search(m + 1, z))
        if a == len(upper):
            return _number(values[2 * a])
        return _if(f"{x} >= {_number(lower[a])}", _number(values[2 * a + 1]), _number(values[2 * a]))

    return search(0, len(upper))


def _share(called: dict[tuple[str, int], str], i: int, key: tuple[float, ...], steep: bool, arrays: Arrays) -> str:
    _, limit, left, right, place, missing_right = key
    above, below = called["above", i], called["below", i]
    if steep:
        log_p = _number(arrays["log_p"])
        above = f"{above} * exp({log_p} * ({called['low', i]} - {_number(place)} + 1.0))"
        below = f"{below} * exp({log_p} * ({_number(place)} - {called['high', i]}))"
    state = called["state", i]
    inside = f"if ({state} > {_number(limit)}, 1.0 - {above} * {_number(left)}, {below} * {_number(right)})"
    return f"if ({state} < 0.0, {_number(missing_right)}, {inside})"


def _between(shares: list[str], values: list[float]) -> str:
    """Return the average of the leaves; each level halves their number."""
    texts = [_number(value) for value in values]
    for level in range(len(shares) - 1, -1, -1):
        half, r = 1 << level, shares[level]
        texts = [
            texts[q] if texts[q] == texts[q + half] else f"((1.0 - {r}) * {texts[q]} + {r} * {texts[q + half]})"
            for q in range(half)
        ]
    return texts[0]


def _polynomial(profile: _Profile, form: ModelForm, arrays: Arrays, x: list[str]) -> list[str]:
    z = []
    for i, k in enumerate(arrays["used"].tolist()):
        clipped = _clipped(x[k], arrays["low"][i], arrays["high"][i])
        own = f"({clipped} - {_number(arrays['mean'][i])}) / {_number(arrays['scale'][i])}"
        z.append(profile.add(f"z{i}", _if(f"isNan({x[k]})", "0.0", own)))
    features, depth = arrays["features"], arrays["features"].shape[1]
    terms = []
    for t in range(len(features)):
        names = [z[k] for k in arrays["columns"][t].tolist()]
        monomials = [""]
        for earlier, level in arrays["table_of_monomials"][1:].tolist():
            monomials.append(f"{monomials[earlier]} * {names[level]}" if earlier else names[level])
        texts = []
        for own in arrays["values"][t]:
            parts = [_number(own[0])] + [
                f"{_number(c)} * ({monomial})" for c, monomial in zip(own[1:], monomials[1:]) if c
            ]
            texts.append(f"({' + '.join(parts)})" if len(parts) > 1 else parts[0])
        for level in range(depth - 1, -1, -1):
            half, border = 1 << level, arrays["borders"][t, level]
            name, side = x[features[t, level]], arrays["missing_right"][t, level]
            texts = [_question(name, border, side, a, b) for a, b in zip(texts[:half], texts[half:])]
        terms.append(texts[0])
    return terms


def _probability(profile: _Profile, calibration: Calibration, score: str) -> str:
    least, total = "", "0.0"
    for place, (share, member, closes) in enumerate(calibration.members()):
        own = profile.add(f"member{place}", _member(member, score))
        if member.kind != PROBABILITY:
            own = profile.add(f"member{place}_p", f"1.0 / (1.0 + exp(-1.0 * {own}))")
        total += f" + {_number(share)} * {own}"
        if closes:
            least, total = f"min({least}, {total})" if least else f"min(1.0, {total})", "0.0"
    return least


def _member(member: Member, score: str) -> str:
    """Return the log-odds, or the probability, of one calibrator."""
    quadratic, linear, constant, centres = (
        [_number(v) for v in part] for part in (member.quadratic, member.linear, member.constant, member.centres)
    )
    if member.kind == BETA:
        tail = f"log(1.0 + exp(-1.0 * abs({score})))"
        log_p, log_q = f"(min({score}, 0.0) - {tail})", f"(min(0.0 - {score}, 0.0) - {tail})"
        return f"{quadratic[0]} * {log_p} - {linear[0]} * {log_q} + {constant[0]}"
    pieces = []
    for k, centre in enumerate(centres):
        d = f"({score} - {centre})"
        pieces.append(f"({quadratic[k]} * {d} + {linear[k]}) * {d} + {constant[k]}")
    return _piece(score, member.knots.tolist(), pieces)


def _piece(x: str, knots: list[float], pieces: list[str]) -> str:
    """Return `pieces[k]` if x is above k of the knots."""
    if not knots:
        return pieces[0]
    m = len(knots) // 2
    below, above = _piece(x, knots[:m], pieces[: m + 1]), _piece(x, knots[m + 1 :], pieces[m + 1 :])
    return _if(f"{x} > {_number(knots[m])}", above, below)


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
