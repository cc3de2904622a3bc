"""One C99 file: `NAME_score` and `NAME_score_rows` have the bits of `predict`, missing values included.

Compile without contraction of products and sums (`-std=c99`, or `-ffp-contract=off` elsewhere) and without -ffast-math.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.export.arrays import arrays_of
from truerank.export.form import ModelForm
from truerank.export.texts import PLAIN, identifier

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
        if (v != v) { own += absent[c]; continue; }
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
# 256 rows at a time, whatever the number that is left: with the count known, and all questions of a tree in one
# expression without a branch, compilers compare several rows in one instruction at -O2 already.
_OBLIVIOUS = """
static CLONES void add_many(const double *x, size_t rows, SUM *out) {
    static THREAD double block[N_USED][272];
    static THREAD int leaf[256];
    SUM sum[256];
    size_t i;
    int k, t, level, missing = 0;
    for (i = 0; i < rows; i++) {
        for (k = 0; k < N_USED; k++) {
            double v = x[i * N_FEATURES + used[k]];
            block[k][i] = v;
            missing |= v != v;
        }
        sum[i] = out[i];
    }
    for (; i < 256; i++) {
        for (k = 0; k < N_USED; k++) block[k][i] = 0;
        sum[i] = 0;
    }
    for (t = 0; t < N_TREES; t++) {
        const double *value = values + ((size_t)t << DEPTH);
        if (!missing) {
POINTERS
            for (i = 0; i < 256; i++) leaf[i] = QUESTIONS;
        } else {
            for (i = 0; i < 256; i++) leaf[i] = 0;
            for (level = 0; level < DEPTH; level++) {
                const double *v = block[columns[t * DEPTH + level]];
                double border = borders[t * DEPTH + level];
                int bit = 1 << level;
                if (missing_right[t * DEPTH + level])
                    for (i = 0; i < 256; i++) leaf[i] |= v[i] <= border ? 0 : bit;
                else
                    for (i = 0; i < 256; i++) leaf[i] |= v[i] > border ? bit : 0;
            }
        }
        for (i = 0; i < 256; i++) sum[i] += (SUM)value[leaf[i]];
    }
    for (i = 0; i < rows; i++) out[i] = sum[i];
}

static void add_row(const double *x, SUM *out) {
    int t, level;
    for (t = 0; t < N_TREES; t++) {
        int leaf = 0;
        for (level = 0; level < DEPTH; level++) {
            int at = t * DEPTH + level;
            double v = x[used[columns[at]]];
            leaf |= (v > borders[at] || (v != v && missing_right[at])) << level;
        }
        *out += (SUM)values[((size_t)t << DEPTH) + leaf];
    }
}

static void add_block(const double *x, size_t rows, SUM *out) {
    size_t i;
    if (rows >= 24) add_many(x, rows, out);
    else for (i = 0; i < rows; i++) add_row(x + i * N_FEATURES, out + i);
}
"""
# A leaf is its own child: all rows take the same number of steps, and none waits for another's.
_TREES = """
static void add_block(const double *x, size_t rows, SUM *out) {
    static THREAD double block[N_USED][72];
    int node[64];
    size_t i;
    int k, t, step, special = HAS_ZERO_MISSING;
    for (k = 0; k < N_USED; k++)
        for (i = 0; i < rows; i++) {
            double v = x[i * N_FEATURES + used[k]];
            block[k][i] = v;
            special |= v != v;
        }
    for (t = 0; t < N_TREES; t++) {
        for (i = 0; i < rows; i++) node[i] = roots[t];
        for (step = 0; step < heights[t]; step++) {
            if (!special)
                for (i = 0; i < rows; i++) {
                    int q = node[i];
                    node[i] = children[2 * q + (block[columns[q]][i] > thresholds[q])];
                }
            else
                for (i = 0; i < rows; i++) {
                    int q = node[i], kind = missing[q];
                    double v = block[columns[q]][i];
                    int lost = v != v || (kind > 1 && v <= 1e-35 && v >= -1e-35);
                    node[i] = children[2 * q + (lost ? kind & 1 : v > thresholds[q])];
                }
        }
        for (i = 0; i < rows; i++) out[i] += (SUM)values[node[i]];
    }
}
"""
_FUZZY = """
static double body(const double *x, double total) {
    int state[N_USED], place[N_USED];
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
    for (t = 0; t < N_TREES; t++) {
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
    double z[N_USED], monomial[N_MONOMIALS], own;
    int i, t, level, j;
    for (i = 0; i < N_USED; i++) {
        double v = x[used[i]];
        z[i] = v != v ? 0.0 : ((v < low[i] ? low[i] : v > high[i] ? high[i] : v) - mean[i]) / scale[i];
    }
    monomial[0] = 1.0;
    for (t = 0; t < N_TREES; t++) {
        const double *value;
        int leaf = 0;
        for (level = 0; level < DEPTH; level++) {
            double v = x[features[t * DEPTH + level]];
            if (v > borders[t * DEPTH + level] || (v != v && missing_right[t * DEPTH + level])) leaf |= 1 << level;
        }
        value = values + ((t << DEPTH) + leaf) * N_MONOMIALS;
        own = value[0];
        for (j = 1; j < N_MONOMIALS; j++) {
            monomial[j] = monomial[table[2 * j]] * z[columns[t * DEPTH + table[2 * j + 1]]];
            own += value[j] * monomial[j];
        }
        total += own;
    }
    return total;
}
"""
_BODIES = {"linear": _LINEAR, "stumps": _STUMPS, "fuzzy": _FUZZY, "polynomial": _POLYNOMIAL}
_START = """
static double linear_start(const double *x) {
    double own = 0;
    int i;
    for (i = 0; i < N_START; i++) {
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
    for (m = 0; m < N_MEMBERS; m++) {
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
    """Return the file's text. A comment at the top describes how to call it."""
    prefix = identifier(name)
    if not prefix or prefix[0].isdigit():
        raise InvalidInputError(f"the name must begin as a name in C does, got {name!r}")
    arrays, numbers, start, intercept = _arrays_and_sizes(form)
    blocked = form.kind in ("oblivious", "trees")
    steep_borders = "log_p" in arrays
    text = [
        f"/* Scores of the model {prefix}, written by truerank. C99, no dependencies but math.h.",
        f" *   double {prefix}_score(const double *x)                  one row of {form.n_features} numbers",
        f" *   void {prefix}_score_rows(const double *x, size_t n, double *scores)    n rows",
        " * nan is a missing value. Compile with -std=c99 or -ffp-contract=off, without -ffast-math. */",
        "#include <math.h>",
        "#include <stddef.h>",
        "",
        f"#define SUM {'float' if form.float32_sums else 'double'}",
        "#if defined(__GNUC__)",
        "#define THREAD __thread",
        "#else",
        "#define THREAD",
        "#endif",
        # Compiled for several processors, of which the program takes its own: more rows in one instruction.
        "#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)",
        '#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))',
        "#else",
        "#define CLONES",
        "#endif",
        *(f"#define {key} {value}" for key, value in numbers.items()),
        f"const char *const {prefix}_features[N_FEATURES] = {{{', '.join(map(_string, form.names))}}};",
        *(_array(key, value) for key, value in arrays.items()),
    ]
    steep = _STEEP if steep_borders else ("", "")
    if form.linear_start is not None:
        text.append(_START)
    if form.calibration is not None:
        text.append(_PROBABILITY)
    if blocked:
        text.append(_oblivious(numbers["DEPTH"]) if form.kind == "oblivious" else _TREES)
        text += _block_rows(form, prefix, start, intercept, 256 if form.kind == "oblivious" else 64)
    else:
        text.append(_BODIES[form.kind].replace("STEEP_ABOVE", steep[0]).replace("STEEP_BELOW", steep[1]))
        text += _single_rows(form, prefix, start, intercept)
    return "\n".join(text) + "\n"


def _arrays_and_sizes(form: ModelForm) -> tuple[dict[str, Any], dict[str, int], float, float]:
    """The arrays of the file, its `#define`s, and the constants before and after the sum."""
    arrays = arrays_of(form)
    start, intercept = arrays.pop("start"), arrays.pop("intercept")
    numbers: dict[str, int] = {"N_FEATURES": form.n_features}
    if form.kind == "linear":
        numbers |= {"LANES": arrays.pop("lanes"), "N_COLUMNS": len(arrays["columns"])}
    elif form.kind == "stumps":
        numbers["N_COLUMNS"] = len(arrays["columns"])
    elif form.kind == "trees":
        arrays = _with_leaves_as_nodes(form)
        numbers |= {"N_USED": len(arrays["used"]), "N_TREES": len(arrays["roots"])}
        numbers["HAS_ZERO_MISSING"] = int((arrays["missing"] > 1).any())
    else:
        numbers["N_TREES"], numbers["DEPTH"] = arrays["missing_right"].shape
        if form.kind == "oblivious":
            arrays["used"] = np.unique(arrays["features"])
            arrays["columns"] = np.searchsorted(arrays["used"], arrays.pop("features"))
        if "table" in arrays:
            numbers["N_MONOMIALS"] = len(arrays["table"])
        numbers["N_USED"] = len(arrays["used"])
    if "steep" in arrays and "log_p" not in arrays:
        del arrays["steep"], arrays["border_place"]
    if form.linear_start is not None:
        numbers["N_START"] = len(arrays["start_columns"])
    if form.calibration is not None:
        numbers["N_MEMBERS"] = len(arrays["member_kinds"])
    if numbers.get("N_USED") == 0:
        numbers["N_USED"] = 1
        arrays["used"] = np.zeros(1, dtype=np.int64)
    return arrays, numbers, start, intercept


def _oblivious(depth: int) -> str:
    """The block of oblivious trees, with the questions of one tree spelt out."""
    pointers = [
        f"            const double *v{k} = block[columns[t * DEPTH + {k}]], b{k} = borders[t * DEPTH + {k}];"
        for k in range(depth)
    ]
    pointers = [line.replace(", b", "; const double b") for line in pointers]
    questions = " | ".join(f"(v{k}[i] > b{k} ? {1 << k} : 0)" for k in range(depth)) or "0"
    return _OBLIVIOUS.replace("POINTERS", "\n".join(pointers)).replace("QUESTIONS", questions)


def _with_leaves_as_nodes(form: ModelForm) -> dict[str, Any]:
    """Number nodes and leaves together. A leaf is its own child, so that all rows take the same number of steps."""
    trees = form.body.trees
    nodes, leaves = len(trees.features), len(trees.values)
    heights = np.zeros(nodes, dtype=np.int64)
    for node in reversed(range(nodes)):  # a child stands after its parent
        heights[node] = 1 + max(heights[child] if child >= 0 else 0 for child in (trees.left[node], trees.right[node]))
    roots, *sides = (
        np.where(child >= 0, child, nodes + ~child).astype(np.int32) for child in (trees.roots, trees.left, trees.right)
    )
    own = np.arange(nodes, nodes + leaves, dtype=np.int32)
    used = np.unique(trees.features)
    return {
        "used": used,
        "roots": roots,
        "heights": np.array([heights[root] if root < nodes else 0 for root in roots], dtype=np.int64),
        "columns": np.append(np.searchsorted(used, trees.features), np.zeros(leaves, dtype=np.int64)),
        "thresholds": np.append(trees.thresholds, np.full(leaves, np.inf)),
        "missing": np.append(trees.missing_right + 2 * trees.zero_missing, np.zeros(leaves)).astype(np.uint8),
        "children": np.column_stack([np.append(side, own) for side in sides]),
        "values": np.append(np.zeros(nodes), trees.values),
    } | {key: value for key, value in arrays_of(form).items() if key.startswith(("norm_", "start_", "member_"))
         or key in ("knots", "centres", "quadratic", "linear", "constant")}  # fmt: skip


def _first(form: ModelForm, start: float) -> str:
    return f"{start!r} + linear_start(z)" if form.linear_start is not None else repr(start)


def _last(form: ModelForm, value: str, intercept: float) -> str:
    text = f"{value} + {intercept!r}" if intercept else value
    return f"probability({text})" if form.calibration is not None else text


def _normalised(form: ModelForm, indent: str) -> list[str]:
    assert form.normalizers is not None
    operation = "x[k] * norm_first[k] + norm_second[k]"
    if not form.normalizers.affine:
        operation = "(x[k] - norm_first[k]) / norm_second[k]"
    return [f"{indent}for (k = 0; k < N_FEATURES; k++) z[k] = {operation};"]


def _single_rows(form: ModelForm, prefix: str, start: float, intercept: float) -> list[str]:
    text = ["", f"double {prefix}_score(const double *x) {{"]
    if form.normalizers is not None:
        text += ["    double z[N_FEATURES];", "    int k;", *_normalised(form, "    ")]
    else:
        text.append("    const double *z = x;")
    return [
        *text,
        f"    return {_last(form, f'body(z, {_first(form, start)})', intercept)};",
        "}", "",
        f"void {prefix}_score_rows(const double *x, size_t n, double *scores) {{",
        "    size_t i;",
        f"    for (i = 0; i < n; i++) scores[i] = {prefix}_score(x + i * N_FEATURES);",
        "}",
    ]  # fmt: skip


def _block_rows(form: ModelForm, prefix: str, start: float, intercept: float, size: int) -> list[str]:
    rows = ["        const double *rows = x + i * N_FEATURES;"]
    text = ["", f"void {prefix}_score_rows(const double *x, size_t n, double *scores) {{", "    size_t i, j;"]
    if form.normalizers is not None:
        return [
            "", f"double {prefix}_score(const double *x) {{", "    double z[N_FEATURES];", "    SUM total;",
            "    int k;",
            *_normalised(form, "    "), f"    total = (SUM)({_first(form, start)});", "    add_block(z, 1, &total);",
            f"    return {_last(form, '(double)total', intercept)};", "}",
            *text[:2], "    size_t i;",
            f"    for (i = 0; i < n; i++) scores[i] = {prefix}_score(x + i * N_FEATURES);", "}",
        ]  # fmt: skip
    first = _first(form, start).replace("(z)", "(rows + j * N_FEATURES)")
    return [
        *text,
        f"    for (i = 0; i < n; i += {size}) {{",
        *rows,
        f"        SUM total[{size}];",
        f"        size_t count = n - i < {size} ? n - i : {size};",
        f"        for (j = 0; j < count; j++) total[j] = (SUM)({first});",
        "        add_block(rows, count, total);",
        f"        for (j = 0; j < count; j++) scores[i + j] = {_last(form, '(double)total[j]', intercept)};",
        "    }",
        "}",
        "",
        f"double {prefix}_score(const double *x) {{",
        "    double result;",
        f"    {prefix}_score_rows(x, 1, &result);",
        "    return result;",
        "}",
    ]


def _array(name: str, value: object) -> str:
    flat = np.atleast_1d(np.asarray(value)).ravel()
    kind = "double" if flat.dtype.kind == "f" else "int"
    words = [_number(item) for item in flat.tolist()] or ["0"]
    lines = [", ".join(words[i : i + 16]) for i in range(0, len(words), 16)]
    return f"static const {kind} {name}[{len(words)}] = {{\n" + ",\n".join(lines) + "\n};"


def _number(item: Any) -> str:
    if isinstance(item, float):
        return repr(item) if np.isfinite(item) else ("-INFINITY" if item < 0 else "INFINITY")
    return str(int(item))


def _string(text: str) -> str:
    plain = [chr(byte) if chr(byte) in PLAIN else f"\\{byte:03o}" for byte in text.encode()]
    return f'"{"".join(plain)}"'
