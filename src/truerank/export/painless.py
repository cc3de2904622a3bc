"""A Painless script with the model in its parameters, for OpenSearch and Elasticsearch without a plugin.

The file is a JSON object `{"script": {"lang", "source", "params"}}`, for `script_score` in a rescorer. The source is
the same for all models of one kind, so that an engine compiles it once. Features are doc values (`doc[name]`), or, with
`params.table`, rows by the value of the field `params.key`. Scores of a script must not be negative and are float32:
the smallest sufficient `params.shift` is added, and lower scores become 0.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from truerank.export.arrays import arrays_of
from truerank.export.form import Fuzzy, Linear, ModelForm, Oblivious, Plain, Polynomial, Stumps

_FEATURES = """
double[] x = new double[params.names.size()];
if (params.table == null) {
  for (int k = 0; k < x.length; ++k) {
    def field = doc[params.names[k]];
    x[k] = field.size() == 0 ? params.absent : field.value;
  }
} else {
  def row = params.table[doc[params.key].value];
  for (int k = 0; k < x.length; ++k) { x[k] = row == null || row[k] == null ? params.absent : row[k]; }
}
for (int k = 0; k < x.length; ++k) { if (x[k] >= 1.7e308) { x[k] = Double.NaN; } }
"""
_NORMALISE = {
    True: "for (int k = 0; k < x.length; ++k) { x[k] = x[k] * params.norm_first[k] + params.norm_second[k]; }\n",
    False: "for (int k = 0; k < x.length; ++k) { x[k] = (x[k] - params.norm_first[k]) / params.norm_second[k]; }\n",
}
_START = """
double linear_start = 0;
for (int i = 0; i < params.start_columns.size(); ++i) {
  double v = x[params.start_columns[i]];
  if (v == v) {
    double low = params.start_low[i]; double high = params.start_high[i];
    linear_start += params.start_slope[i] * (Math.min(Math.max(v, low), high) - params.start_mean[i]);
  }
}
total += linear_start;
"""
_LINEAR = """
List columns = params.columns; List weights = params.weights;
double own = 0;
for (int j = 0; j < columns.size(); ++j) { int k = columns.get(j); double w = weights.get(j); own += x[k] * w; }
total += own;
"""
_STUMPS = """
List steps = params.steps; List starts = params.starts; List values = params.values;
for (int c = 0; c < params.columns.size(); ++c) {
  double v = x[params.columns[c]];
  if (v != v) { total += params.absent_values[c]; }
  else {
    int a = starts.get(c); int z = starts.get(c + 1);
    while (a < z) { int m = (a + z) / 2; double s = steps.get(m); if (s < v) { a = m + 1; } else { z = m; } }
    double own = values.get(a + c); total += own;
  }
}
"""
_OBLIVIOUS = """
List features = params.features; List borders = params.borders; List right = params.missing_right;
List values = params.values; int depth = params.depth;
for (int t = 0; t < params.trees; ++t) {
  int leaf = 0;
  for (int level = 0; level < depth; ++level) {
    int at = t * depth + level; int k = features.get(at); double v = x[k]; double c = borders.get(at);
    if (v > c) { leaf |= 1 << level; }
    else if (v != v) { int side = right.get(at); if (side == 1) { leaf |= 1 << level; } }
  }
  double own = values.get((t << depth) + leaf); total += own;
}
"""
_TREES = """
List features = params.features; List thresholds = params.thresholds; List missing = params.missing;
List children = params.children; List values = params.values;
for (int t = 0; t < params.roots.size(); ++t) {
  int node = params.roots[t];
  while (node >= 0) {
    int k = features.get(node); int kind = missing.get(node); double v = x[k]; double c = thresholds.get(node);
    int side = v > c ? 1 : 0;
    if (v != v || (kind > 1 && Math.abs(v) <= 1e-35)) { side = kind & 1; }
    node = children.get(2 * node + side);
  }
  double own = values.get(-1 - node); total += own;
}
"""
_FUZZY = """
List lower = params.lower; List upper = params.upper; List first = params.first; List columns = params.columns;
List values = params.values; List states = params.border_states; List lefts = params.left_factor;
List rights = params.right_factor; List sides = params.missing_right;
int depth = params.depth; boolean some = params.some_steep;
int n = params.used.size(); int[] state = new int[n]; int[] place = new int[n];
double[] above = new double[n]; double[] below = new double[n];
for (int i = 0; i < n; ++i) {
  double v = x[params.used[i]]; int a = first.get(i); int z = first.get(i + 1); int j = a; int e = z;
  if (v != v) { state[i] = -1; place[i] = 2 * a + i; continue; }
  while (j < e) { int m = (j + e) / 2; double u = upper.get(m); if (u < v) { j = m + 1; } else { e = m; } }
  state[i] = 2 * (j - a);
  if (j < z) { double l = lower.get(j); if (v >= l) { state[i] += 1; } }
  place[i] = 2 * a + i + state[i];
  above[i] = params.up[place[i]]; below[i] = params.down[place[i]];
}
double[] work = new double[1 << depth];
for (int t = 0; t < params.trees; ++t) {
  for (int q = 0; q < 1 << depth; ++q) { work[q] = values.get((t << depth) + q); }
  for (int level = depth - 1; level >= 0; level -= 1) {
    int at = t * depth + level; int i = columns.get(at); int limit = states.get(at);
    int half = 1 << level; double r = 0;
    if (state[i] < 0) { int side = sides.get(at); r = side; }
    else if (state[i] > limit) {
      double share = above[i]; double f = lefts.get(at);
      if (some && params.steep[i] == 1) {
        share *= Math.exp(params.log_p * (params.state_start[place[i]] - params.border_place[at] + 1.0));
      }
      r = 1.0 - share * f;
    } else {
      double share = below[i]; double f = rights.get(at);
      if (some && params.steep[i] == 1) {
        share *= Math.exp(params.log_p * (params.border_place[at] - params.state_stop[place[i]]));
      }
      r = share * f;
    }
    for (int q = 0; q < half; ++q) { work[q] = work[q] + r * (work[q + half] - work[q]); }
  }
  total += work[0];
}
"""
_POLYNOMIAL = """
List features = params.features; List borders = params.borders; List right = params.missing_right;
List values = params.values; List columns = params.columns; List table = params.table_of_monomials;
int depth = params.depth; int size = params.monomials; int n = params.used.size();
double[] z = new double[n]; double[] monomial = new double[size]; monomial[0] = 1.0;
for (int i = 0; i < n; ++i) {
  double v = x[params.used[i]]; double low = params.low[i]; double high = params.high[i];
  if (v != v) { z[i] = 0; } else { z[i] = (Math.min(Math.max(v, low), high) - params.mean[i]) / params.scale[i]; }
}
for (int t = 0; t < params.trees; ++t) {
  int leaf = 0;
  for (int level = 0; level < depth; ++level) {
    int at = t * depth + level; int k = features.get(at); double v = x[k]; double c = borders.get(at);
    if (v > c) { leaf |= 1 << level; }
    else if (v != v) { int side = right.get(at); if (side == 1) { leaf |= 1 << level; } }
  }
  int base = ((t << depth) + leaf) * size; double own = values.get(base);
  for (int j = 1; j < size; ++j) {
    int earlier = table.get(2 * j); int level = table.get(2 * j + 1); int k = columns.get(t * depth + level);
    monomial[j] = monomial[earlier] * z[k]; double y = values.get(base + j); own += y * monomial[j];
  }
  total += own;
}
"""
_BODIES = {"linear": _LINEAR, "stumps": _STUMPS, "oblivious": _OBLIVIOUS, "trees": _TREES, "fuzzy": _FUZZY,
           "polynomial": _POLYNOMIAL}  # fmt: skip
_PROBABILITY = """
List kinds = params.member_kinds; List firsts = params.member_starts; List knots = params.knots;
double least = 1.0; double sum = 0;
for (int m = 0; m < kinds.size(); ++m) {
  int kind = kinds.get(m); int piece = firsts.get(m); int end = firsts.get(m + 1);
  while (piece < end) {
    int half = (piece + end) / 2; double knot = knots.get(half);
    if (knot < total) { piece = half + 1; } else { end = half; }
  }
  piece += m;
  double p = 0;
  if (kind == 1) {
    double tail = Math.log1p(Math.exp(-Math.abs(total)));
    p = params.quadratic[piece] * (Math.min(total, 0.0) - tail)
      - params.linear[piece] * (Math.min(-total, 0.0) - tail) + params.constant[piece];
  } else {
    double d = total - params.centres[piece];
    p = (params.quadratic[piece] * d + params.linear[piece]) * d + params.constant[piece];
  }
  if (kind != 2) { p = p >= 0 ? 1.0 / (1.0 + Math.exp(-p)) : Math.exp(p) / (1.0 + Math.exp(p)); }
  sum += params.member_shares[m] * p;
  if (params.member_closes[m] == 1) { least = Math.min(least, sum); sum = 0; }
}
total = least;
"""
_LARGEST = float(np.finfo(np.float64).max)


def write(form: ModelForm, name: str, inputs: object, least: float | None = None) -> str:
    """Return the JSON text, which does not contain `name`.

    `least` is the score that the shift makes 0. By default it is a lower bound of the trees' scores, or, for linear
    models and polynomial leaves, the least score of generated rows.
    """
    source = "".join([
        _FEATURES,
        "" if form.normalizers is None else _NORMALISE[form.normalizers.affine],
        "double total = params.start;\n",
        "" if form.linear_start is None else _START,
        _BODIES[form.kind],
        "total += params.intercept;\n",
        "" if form.calibration is None else _PROBABILITY,
        "return Math.max(0.0, total + params.shift);\n",
    ])  # fmt: skip
    arrays = arrays_of(form)
    absent = 0.0 if getattr(form.model, "reads_missing_as_zero", False) else _LARGEST
    params: dict[str, Any] = {"names": list(form.names), "absent": absent}
    if "steep" in arrays:
        params["some_steep"] = "log_p" in arrays
        if not params["some_steep"]:
            del arrays["steep"], arrays["border_place"]
    params |= {key: _plain(value) for key, value in arrays.items()}
    params["shift"] = least_shift(form) if least is None else max(0.0, -float(least))
    script = {"lang": "painless", "source": source, "params": params}
    return json.dumps({"script": script}, ensure_ascii=False, allow_nan=False) + "\n"


def least_shift(form: ModelForm) -> float:
    """Return the smallest shift, at least 0, with which no score is negative."""
    if form.calibration is not None:
        return 0.0
    body = form.body
    least = form.start + form.intercept
    if isinstance(body, Stumps):
        # Each feature's step function by itself.
        arrays = arrays_of(form)
        parts = np.split(arrays["values"], (arrays["starts"][1:-1] + np.arange(1, len(arrays["columns"]))))
        least += sum(min(float(part.min()), float(a)) for part, a in zip(parts, arrays["absent_values"]) if len(part))
    elif isinstance(body, Oblivious | Fuzzy):
        least += float(body.trees.values.min(axis=1, initial=np.inf).sum()) if body.trees.n_trees else 0.0
    elif isinstance(body, Plain):
        trees = body.trees
        least += float(sum(trees.nested(lambda leaf: float(trees.values[leaf]), lambda node, a, b: min(a, b))))
    if isinstance(body, Linear | Polynomial) or form.linear_start is not None:
        from truerank.export.certificate import made_up_rows, reference_scores

        least = float(reference_scores(form, made_up_rows(form)).min())
    return max(0.0, -least)


def _plain(value: object) -> Any:
    """Return a flat list of numbers; inf becomes the largest float64."""
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind == "f":
        value = np.clip(value, -_LARGEST, _LARGEST)
    return (value.astype(np.int64) if value.dtype.kind == "b" else value).ravel().tolist()
