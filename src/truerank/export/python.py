"""A Python file without dependencies: `score(x)` returns the bits of `predict`, also for missing values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.export.arrays import arrays_of
from truerank.export.form import ModelForm, comment

_LINEAR = """
def _body(x, total):
    sums = [0.0] * 8
    for j in range(lanes):
        sums[j % 8] += x[columns[j]] * weights[j]
    a, b, c, d, e, f, g, h = sums
    own = ((a + e) + (c + g)) + ((b + f) + (d + h))
    for j in range(lanes, len(columns)):
        own += x[columns[j]] * weights[j]
    return total + own
"""
_STUMPS = """
def _body(x, total):
    own = 0.0
    for c, k in enumerate(columns):
        if x[k] != x[k]:
            own += absent_values[c]
        else:
            own += values[bisect_left(steps, x[k], starts[c], starts[c + 1]) + c]
    return total + own
"""
_OBLIVIOUS = """
def _body(x, total):
    for t in range(len(features)):
        leaf = 0
        for level in range(len(features[t])):
            v = x[features[t][level]]
            if v > borders[t][level] or (v != v and missing_right[t][level]):
                leaf |= 1 << level
        total = _round(total + values[t][leaf])
    return total
"""
_TREES = """
def _body(x, total):
    for node in roots:
        while node >= 0:
            v, kind = x[features[node]], missing[node]
            if v != v or (kind > 1 and abs(v) <= 1e-35):
                node = children[node][kind & 1]
            else:
                node = children[node][v > thresholds[node]]
        total = _round(total + values[~node])
    return total
"""
_FUZZY = """
def _body(x, total):
    state, place = [], []
    for i, k in enumerate(used):
        v, a, z = x[k], first[i], first[i + 1]
        if v != v:
            s = -1
        else:
            j = bisect_left(upper, v, a, z)
            s = 2 * (j - a) + (j < z and v >= lower[j])
        state.append(s)
        place.append(2 * a + i + max(s, 0))
    for t in range(len(columns)):
        v = values[t]
        for level in range(len(columns[t]) - 1, -1, -1):
            i = columns[t][level]
            if state[i] < 0:
                right = 1.0 if missing_right[t][level] else 0.0
            elif state[i] > border_states[t][level]:
                share = up[place[i]]
                if steep[i]:
                    share = share * exp(log_p * (state_start[place[i]] - border_place[t][level] + 1.0))
                right = 1.0 - share * left_factor[t][level]
            else:
                share = down[place[i]]
                if steep[i]:
                    share = share * exp(log_p * (border_place[t][level] - state_stop[place[i]]))
                right = share * right_factor[t][level]
            half = 1 << level
            v = [v[q] + right * (v[q + half] - v[q]) for q in range(half)]
        total += v[0]
    return total
"""
_POLYNOMIAL = """
def _body(x, total):
    z = []
    for i, k in enumerate(used):
        v = x[k]
        z.append(0.0 if v != v else (min(max(v, low[i]), high[i]) - mean[i]) / scale[i])
    for t in range(len(features)):
        leaf = 0
        for level in range(len(features[t])):
            v = x[features[t][level]]
            if v > borders[t][level] or (v != v and missing_right[t][level]):
                leaf |= 1 << level
        own, powers = values[t][leaf][0], [1.0]
        for j in range(1, monomials):
            earlier, level = table_of_monomials[j]
            powers.append(powers[earlier] * z[columns[t][level]])
            own += values[t][leaf][j] * powers[j]
        total += own
    return total
"""
_BODIES = {"linear": _LINEAR, "stumps": _STUMPS, "oblivious": _OBLIVIOUS, "trees": _TREES, "fuzzy": _FUZZY,
           "polynomial": _POLYNOMIAL}  # fmt: skip
_START = """
def _linear_start(x):
    own = 0.0
    for i, k in enumerate(start_columns):
        v = x[k]
        if v == v:
            own += start_slope[i] * (min(max(v, start_low[i]), start_high[i]) - start_mean[i])
    return own
"""
_PROBABILITY = """
def _probability(s):
    least, total = 1.0, 0.0
    for m, kind in enumerate(member_kinds):
        k = bisect_left(knots, s, member_starts[m], member_starts[m + 1]) + m
        if kind == 1:
            tail = log1p(exp(-abs(s)))
            p = quadratic[k] * (min(s, 0.0) - tail) - linear[k] * (min(-s, 0.0) - tail) + constant[k]
        else:
            d = s - centres[k]
            p = (quadratic[k] * d + linear[k]) * d + constant[k]
        if kind != 2:
            p = 1.0 / (1.0 + exp(-p)) if p >= 0.0 else exp(p) / (1.0 + exp(p))
        total += member_shares[m] * p
        if member_closes[m]:
            least, total = min(least, total), 0.0
    return least
"""
_ROUND = {
    False: "\ndef _round(x):\n    return x\n",
    True: '\ndef _round(x):\n    return unpack("f", pack("f", x))[0]\n',
}
_MAIN = '''
def score_rows(rows):
    """Scores of several rows."""
    return [score(x) for x in rows]


if __name__ == "__main__":
    import sys

    for line in sys.stdin:
        if line.strip():
            print(repr(score([float(word) for word in line.replace(",", " ").split()])))
'''


def write(form: ModelForm, name: str, inputs: str, params: Mapping[str, Any] | None = None) -> str:
    """Return a file with `FEATURES`, `score(x)` and `score_rows(rows)`, which also scores rows of standard input.

    `params` holds numbers, and arrays as flat lists, that replace those of the form.
    """
    arrays = arrays_of(form)
    for key, value in (params or {}).items():
        if key in arrays:
            own = np.asarray(arrays[key])
            arrays[key] = np.array(value, dtype=own.dtype).reshape(own.shape)
    text = [
        f"# Scores of the model {comment(name)}, written by truerank.",
        f"# `score(x)` expects {form.n_features} numbers in the order of FEATURES, nan if missing; higher is better.",
        "from bisect import bisect_left",
        "from math import exp, log1p",
        *(["from struct import pack, unpack"] if form.float32_sums else []),
        "",
        'inf, nan = float("inf"), float("nan")',
        f"FEATURES = {form.names!a}",
        *(f"{key} = {np.asarray(value).tolist()!r}" for key, value in arrays.items()),
        "",
        _ROUND[form.float32_sums] if form.kind in ("oblivious", "trees") else "",
        _BODIES[form.kind],
    ]
    if form.linear_start is not None:
        text.append(_START)
    if form.calibration is not None:
        text.append(_PROBABILITY)
    text += ["", "def score(x):", f'    """{"P(relevant)" if form.calibration else "Score"} of one row."""']
    if form.normalizers is not None:
        operation = "v * a + b" if form.normalizers.affine else "(v - a) / b"
        text.append(f"    x = [{operation} for v, a, b in zip(x, norm_first, norm_second)]")
    text.append("    total = start + _linear_start(x)" if form.linear_start is not None else "    total = start")
    text.append("    total = _body(x, total) + intercept" if form.intercept else "    total = _body(x, total)")
    text += ["    return _probability(total)" if form.calibration is not None else "    return total", "", _MAIN]
    return "\n".join(text)
