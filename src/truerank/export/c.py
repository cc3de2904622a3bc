"""A C99 file: `NAME_score` and `NAME_score_rows` return the bits of `predict`, also for missing values.

Compile with `-std=c99` or `-ffp-contract=off`, and without `-ffast-math`.
"""

from __future__ import annotations

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.types import ArrayLike
from truerank.export.arrays import arrays_of
from truerank.export.form import PLAIN, ModelForm, identifier

_LINEAR = """
static double body(const double *x, double total) {
    double lane[8] = {0}, own;
    int j;
    for (j = 0; j < LANES; j++) lane[j % 8] += x[columns[j]] * weights[j];
    own = ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
    for (j = LANES; j < N_COLUMNS; j++) own += x[columns[j]] * weights[j];
    return total + own;
}
"""
_STUMPS = """
static double body(const double *x, double total) {
    double own = 0;
    int c;
    for (c = 0; c < N_COLUMNS; c++) {
        double v = x[columns[c]];
        int base = starts[c], left = starts[c + 1] - base;
        if (v != v) { own += absent_values[c]; continue; }
        while (left > 1) {
            int half = left >> 1;
            if (steps[base + half - 1] < v) base += half;
            left -= half;
        }
        own += values[base + c + (steps[base] < v)];
    }
    return total + own;
}
"""
_OBLIVIOUS = """
static double body(const double *x, double total) {
    SUM sum = (SUM)total;
    int t, level;
    for (t = 0; t < TREES; t++) {
        int leaf = 0;
        for (level = 0; level < DEPTH; level++) {
            int at = t * DEPTH + level;
            double v = x[features[at]];
            leaf |= (v > borders[at] || (v != v && missing_right[at])) << level;
        }
        sum += (SUM)values[((size_t)t << DEPTH) + leaf];
    }
    return sum;
}
"""
_TREES = """
static double body(const double *x, double total) {
    SUM sum = (SUM)total;
    int t;
    for (t = 0; t < TREES; t++) {
        int node = roots[t];
        while (node >= 0) {
            double v = x[features[node]];
            int kind = missing[node];
            int lost = v != v || (kind > 1 && v <= 1e-35 && v >= -1e-35);
            node = children[2 * node + (lost ? kind & 1 : v > thresholds[node])];
        }
        sum += (SUM)values[~node];
    }
    return sum;
}
"""
_FUZZY = """
static double body(const double *x, double total) {
    int state[N_USED + 1], place[N_USED + 1];
    double work[1 << DEPTH];
    int i, t, level, q;
    for (i = 0; i < N_USED; i++) {
        double v = x[used[i]];
        int a = first[i], j = a, left = first[i + 1] - a;
        if (v != v) { state[i] = -1; place[i] = 2 * a + i; continue; }
        while (left > 0) {
            int half = left >> 1;
            if (upper[j + half] < v) { j += half + 1; left -= half + 1; } else left = half;
        }
        state[i] = 2 * (j - a) + (j < first[i + 1] && v >= lower[j]);
        place[i] = 2 * a + i + state[i];
    }
    for (t = 0; t < TREES; t++) {
        for (q = 0; q < 1 << DEPTH; q++) work[q] = values[(t << DEPTH) + q];
        for (level = DEPTH - 1; level >= 0; level--) {
            int at = t * DEPTH + level, k = columns[at], half = 1 << level;
            double right;
            if (state[k] < 0) right = missing_right[at] ? 1.0 : 0.0;
            else if (state[k] > border_states[at]) {
                double share = up[place[k]];
                STEEP_ABOVE
                right = 1.0 - share * left_factor[at];
            } else {
                double share = down[place[k]];
                STEEP_BELOW
                right = share * right_factor[at];
            }
            for (q = 0; q < half; q++) work[q] = work[q] + right * (work[q + half] - work[q]);
        }
        total += work[0];
    }
    return total;
}
"""
_STEEP = (
    "if (steep[k]) share = share * exp(log_p[0] * (state_start[place[k]] - border_place[at] + 1.0));",
    "if (steep[k]) share = share * exp(log_p[0] * (border_place[at] - state_stop[place[k]]));",
)
_POLYNOMIAL = """
static double body(const double *x, double total) {
    double z[N_USED + 1], monomial[MONOMIALS], own;
    int i, t, level, j;
    for (i = 0; i < N_USED; i++) {
        double v = x[used[i]];
        z[i] = v != v ? 0.0 : ((v < low[i] ? low[i] : v > high[i] ? high[i] : v) - mean[i]) / scale[i];
    }
    monomial[0] = 1.0;
    for (t = 0; t < TREES; t++) {
        const double *value;
        int leaf = 0;
        for (level = 0; level < DEPTH; level++) {
            double v = x[features[t * DEPTH + level]];
            if (v > borders[t * DEPTH + level] || (v != v && missing_right[t * DEPTH + level])) leaf |= 1 << level;
        }
        value = values + ((t << DEPTH) + leaf) * MONOMIALS;
        own = value[0];
        for (j = 1; j < MONOMIALS; j++) {
            monomial[j] = monomial[table_of_monomials[2 * j]] * z[columns[t * DEPTH + table_of_monomials[2 * j + 1]]];
            own += value[j] * monomial[j];
        }
        total += own;
    }
    return total;
}
"""
_BODIES = {"linear": _LINEAR, "stumps": _STUMPS, "oblivious": _OBLIVIOUS, "trees": _TREES, "fuzzy": _FUZZY,
           "polynomial": _POLYNOMIAL}  # fmt: skip
_COUNTED = ("columns", "used", "start_columns", "member_kinds")
_START = """
static double linear_start(const double *x) {
    double own = 0;
    int i;
    for (i = 0; i < N_START_COLUMNS; i++) {
        double v = x[start_columns[i]];
        if (v == v)
            own += start_slope[i] * ((v < start_low[i] ? start_low[i] : v > start_high[i] ? start_high[i] : v)
                                     - start_mean[i]);
    }
    return own;
}
"""
_PROBABILITY = """
static double probability(double s) {
    double least = 1.0, total = 0.0;
    int m;
    for (m = 0; m < N_MEMBER_KINDS; m++) {
        int low = member_starts[m], high = member_starts[m + 1], k;
        double p;
        while (low < high) {
            int middle = (low + high) / 2;
            if (knots[middle] < s) low = middle + 1; else high = middle;
        }
        k = low + m;
        if (member_kinds[m] == 1) {
            double tail = log1p(exp(-fabs(s)));
            p = quadratic[k] * ((s < 0 ? s : 0.0) - tail) - linear[k] * ((s > 0 ? -s : 0.0) - tail) + constant[k];
        } else {
            double d = s - centres[k];
            p = (quadratic[k] * d + linear[k]) * d + constant[k];
        }
        if (member_kinds[m] != 2) p = p >= 0 ? 1.0 / (1.0 + exp(-p)) : exp(p) / (1.0 + exp(p));
        total += member_shares[m] * p;
        if (member_closes[m]) {
            if (total < least) least = total;
            total = 0.0;
        }
    }
    return least;
}
"""


def write(form: ModelForm, name: str, inputs: str) -> str:
    """Return the file's text. A comment at the top shows the calls."""
    prefix = identifier(name)
    if not prefix or prefix[0].isdigit():
        raise InvalidInputError(f"the name must begin as a name in C does, got {name!r}")
    arrays = arrays_of(form)
    start, intercept = arrays.pop("start"), arrays.pop("intercept")
    sizes = {key.upper(): arrays.pop(key) for key in ("lanes", "trees", "depth", "monomials") if key in arrays}
    lengths = {f"N_{key.upper()}": len(arrays[key]) for key in _COUNTED if key in arrays}
    steep = _STEEP
    if "log_p" not in arrays:
        steep = ("", "")
        arrays.pop("steep", None)
        arrays.pop("border_place", None)
    text = [
        f"/* Scores of the model {prefix}, written by truerank. C99, no dependencies but math.h.",
        f" *   double {prefix}_score(const double *x)                  one row of {form.n_features} numbers",
        f" *   void {prefix}_score_rows(const double *x, size_t n, double *scores)    n rows",
        " * nan is a missing value. Compile with -std=c99 or -ffp-contract=off, without -ffast-math. */",
        "#include <math.h>",
        "#include <stddef.h>",
        "",
        f"#define SUM {'float' if form.float32_sums else 'double'}",
        f"#define N_FEATURES {form.n_features}",
        *(f"#define {key} {value}" for key, value in (sizes | lengths).items()),
        f"const char *const {prefix}_features[N_FEATURES] = {{{', '.join(map(_string, form.names))}}};",
        *(_array(key, value) for key, value in arrays.items()),
    ]
    if form.linear_start is not None:
        text.append(_START)
    if form.calibration is not None:
        text.append(_PROBABILITY)
    text.append(_BODIES[form.kind].replace("STEEP_ABOVE", steep[0]).replace("STEEP_BELOW", steep[1]))
    text += _rows(form, prefix, start, intercept)
    return "\n".join(text) + "\n"


def _rows(form: ModelForm, prefix: str, start: float, intercept: float) -> list[str]:
    rows = ["    const double *z = x;"]
    if form.normalizers is not None:
        operation = "(x[k] - norm_first[k]) / norm_second[k]"
        if form.normalizers.affine:
            operation = "x[k] * norm_first[k] + norm_second[k]"
        rows = ["    double z[N_FEATURES];", "    int k;", f"    for (k = 0; k < N_FEATURES; k++) z[k] = {operation};"]
    first = f"{start!r} + linear_start(z)" if form.linear_start is not None else repr(start)
    total = f"body(z, {first}) + {intercept!r}" if intercept else f"body(z, {first})"
    return [
        "",
        f"double {prefix}_score(const double *x) {{",
        *rows,
        f"    return {f'probability({total})' if form.calibration is not None else total};",
        "}",
        "",
        f"void {prefix}_score_rows(const double *x, size_t n, double *scores) {{",
        "    size_t i;",
        f"    for (i = 0; i < n; i++) scores[i] = {prefix}_score(x + i * N_FEATURES);",
        "}",
    ]


def _array(name: str, value: ArrayLike) -> str:
    flat = np.ravel(value)
    kind = "double" if flat.dtype.kind == "f" else "int"
    numbers = flat.astype(np.int64) if kind == "int" else flat
    words = [repr(item).replace("inf", "INFINITY") for item in numbers.tolist()] or ["0"]
    lines = [", ".join(words[i : i + 16]) for i in range(0, len(words), 16)]
    return f"static const {kind} {name}[{len(words)}] = {{\n" + ",\n".join(lines) + "\n};"


def _string(text: str) -> str:
    plain = [chr(byte) if chr(byte) in PLAIN else f"\\{byte:03o}" for byte in text.encode()]
    return f'"{"".join(plain)}"'
