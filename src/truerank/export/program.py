"""Write the scoring program of a model: one function of a row, in a small subset of Python.

The subset has typed local variables, arrays of numbers, counted loops, `while`, `if`, comparisons, arithmetic and a few
functions. Python runs the text as it is, `curly.py` translates it to Painless and C, and `expression.py` makes it one
expression, for Vespa. All of them compute in the order of `predict`, with its bits.
"""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from truerank.export.arrays import Arrays, arrays_of
from truerank.export.form import ModelForm

_NORMALISE = """
x: list[float] = [0.0] * n_features
for k in range(n_features):
    x[k] = {}
"""
_START = """
begun: float = 0.0
for i in range(n_start_columns):
    v: float = x[start_columns[i]]
    if v == v:
        begun = begun + start_slope[i] * (min(max(v, start_low[i]), start_high[i]) - start_mean[i])
total = total + begun
"""
_LINEAR = """
lane: list[float] = [0.0] * 8
for j in range(lanes):
    lane[j % 8] = lane[j % 8] + x[columns[j]] * weights[j]
own: float = ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]))
for j in range(lanes, n_columns):
    own = own + x[columns[j]] * weights[j]
total = total + own
"""
_STUMPS = """
own: float = 0.0
for c in range(n_columns):
    v: float = x[columns[c]]
    if v != v:
        own = own + absent_values[c]
    else:
        own = own + values[bisect_left(steps, v, starts[c], starts[c + 1]) + c]
total = total + own
"""
_LEAF = """
    leaf: int = 0
    for level in range(depth):
        at: int = t * depth + level
        v: float = x[features[at]]
        leaf = leaf | ((1 if v > borders[at] or (v != v and missing_right[at] == 1) else 0) << level)
"""
_OBLIVIOUS = f"""
for t in range(trees):{_LEAF}    total = SUM(total + values[(t << depth) + leaf])
"""
_TREES = """
for t in range(trees):
    node: int = roots[t]
    while node >= 0:
        v: float = x[features[node]]
        kind: int = missing[node]
        side: int = 1 if v > thresholds[node] else 0
        if v != v or (kind > 1 and abs(v) <= 1e-35):
            side = kind & 1
        node = children[2 * node + side]
    total = SUM(total + values[-1 - node])
"""
_FUZZY = """
state: list[int] = [0] * (n_used + 1)
place: list[int] = [0] * (n_used + 1)
for i in range(n_used):
    v: float = x[used[i]]
    if v != v:
        state[i] = -1
    else:
        j: int = bisect_left(upper, v, first[i], first[i + 1])
        state[i] = 2 * (j - first[i]) + (1 if j < first[i + 1] and v >= lower[j] else 0)
        place[i] = 2 * first[i] + i + state[i]
work: list[float] = [0.0] * leaves
for t in range(trees):
    for q in range(leaves):
        work[q] = values[(t << depth) + q]
    for level in range(depth - 1, -1, -1):
        at: int = t * depth + level
        i: int = columns[at]
        half: int = 1 << level
        right: float = 0.0
        share: float = 0.0
        if state[i] < 0:
            right = missing_right[at]
        elif state[i] > border_states[at]:
            share = up[place[i]]
            if steep[i] == 1:
                share = share * exp(log_p * (state_start[place[i]] - border_place[at] + 1.0))
            right = 1.0 - share * left_factor[at]
        else:
            share = down[place[i]]
            if steep[i] == 1:
                share = share * exp(log_p * (border_place[at] - state_stop[place[i]]))
            right = share * right_factor[at]
        for q in range(half):
            work[q] = work[q] + right * (work[q + half] - work[q])
    total = total + work[0]
"""
_POLYNOMIAL = f"""
z: list[float] = [0.0] * (n_used + 1)
for i in range(n_used):
    v: float = x[used[i]]
    if v == v:
        z[i] = (min(max(v, low[i]), high[i]) - mean[i]) / scale[i]
monomial: list[float] = [1.0] * monomials
monomial[0] = 1.0
for t in range(trees):{_LEAF}
    base: int = ((t << depth) + leaf) * monomials
    own: float = values[base]
    for j in range(1, monomials):
        k: int = columns[t * depth + table_of_monomials[2 * j + 1]]
        monomial[j] = monomial[table_of_monomials[2 * j]] * z[k]
        own = own + values[base + j] * monomial[j]
    total = total + own
"""
_BODIES = {"linear": _LINEAR, "stumps": _STUMPS, "oblivious": _OBLIVIOUS, "trees": _TREES, "fuzzy": _FUZZY,
           "polynomial": _POLYNOMIAL}  # fmt: skip
_PROBABILITY = """
least: float = 1.0
chance: float = 0.0
for m in range(n_member_kinds):
    piece: int = bisect_left(knots, total, member_starts[m], member_starts[m + 1]) + m
    p: float = 0.0
    if member_kinds[m] == 1:
        tail: float = log1p(exp(-abs(total)))
        p = quadratic[piece] * (min(total, 0.0) - tail) - linear[piece] * (min(-total, 0.0) - tail) + constant[piece]
    else:
        d: float = total - centres[piece]
        p = (quadratic[piece] * d + linear[piece]) * d + constant[piece]
    if member_kinds[m] != 2:
        p = 1.0 / (1.0 + exp(-p)) if p >= 0.0 else exp(p) / (1.0 + exp(p))
    chance = chance + member_shares[m] * p
    if member_closes[m] == 1:
        least = min(least, chance)
        chance = 0.0
total = least
"""
# Where a language has no such function.
BISECT = """
def bisect_left(items: list[float], v: float, first: int, last: int) -> int:
    low: int = first
    high: int = last
    while low < high:
        middle: int = (low + high) // 2
        if items[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low
"""


@dataclass(frozen=True)
class Program:
    """A function `score(row)` as text, and the numbers and flat arrays of numbers that it reads, by name."""

    text: str
    arrays: Arrays

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """Statements of the body of the function."""
        (function,) = ast.parse(self.text).body
        assert isinstance(function, ast.FunctionDef)
        return function.body

    @property
    def row(self) -> str:
        """Name of the argument of the function."""
        return self.text.partition("(")[2].partition(":")[0]


def program_of(form: ModelForm) -> Program:
    """Return the program of a form. `rounded(v)`, in sums of float32 alone, is v as float32."""
    row, parts, body = "x", [], _BODIES[form.kind].replace("SUM", "rounded" if form.float32_sums else "")
    if form.normalizers is not None:
        row, affine = "row", form.normalizers.affine
        parts = [_NORMALISE.format(f"{row}[k] * norm_first[k] + norm_second[k]" if affine
                                   else f"({row}[k] - norm_first[k]) / norm_second[k]")]  # fmt: skip
    arrays = arrays_of(form) | {"n_features": form.n_features}
    arrays["leaves"] = 1 << arrays.get("depth", 0)
    if "log_p" not in arrays:
        body = _without(body, "if steep")
    parts += ["total: float = start\n", _START if form.linear_start is not None else "", body]
    parts += ["total = total + intercept\n", _PROBABILITY if form.calibration is not None else "", "return total\n"]
    text = f"def score({row}: list[float]) -> float:\n" + textwrap.indent("".join(parts), "    ")
    arrays |= {f"n_{key}": len(value) for key, value in arrays.items() if np.ndim(value)}
    names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    return Program(text, {key: _flat(value) for key, value in arrays.items() if key in names})


def _without(text: str, start: str) -> str:
    """Return the text without statements of two lines that begin with `start`."""
    lines = text.splitlines(keepends=True)
    gone = [k for k, line in enumerate(lines) if line.lstrip().startswith(start)]
    return "".join(line for k, line in enumerate(lines) if k not in gone and k - 1 not in gone)


def _flat(value: Any) -> Any:
    """Return an int, a float, or a flat array of int64 or float64 numbers."""
    array = np.asarray(value)
    array = array.astype(np.float64 if array.dtype.kind == "f" else np.int64).ravel()
    return array if np.ndim(value) else array[0].item()
