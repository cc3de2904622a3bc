"""Write a Painless script with the model in its parameters, for OpenSearch and Elasticsearch without a plugin.

The file is a JSON object `{"script": {"lang", "source", "params"}}`, for `script_score` in a rescorer. The source is
the same for all models of one kind, so that an engine compiles it once. Features are doc values (`doc[name]`), or, with
`params.table`, rows by the value of the field `params.key`. Scores of a script must not be negative and are float32:
the smallest sufficient `params.shift` is added, and lower scores become 0.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

import numpy as np

from truerank.export.arrays import arrays_of
from truerank.export.compared_rows import made_up_rows, reference_scores
from truerank.export.curly import Curly
from truerank.export.form import Fuzzy, Linear, ModelForm, Oblivious, Plain, Polynomial, Stumps
from truerank.export.program import BISECT, program_of

_FEATURES = """
double[] ROW = new double[params.names.size()];
if (params.table == null) {
  for (int k = 0; k < ROW.length; ++k) {
    def field = doc[params.names[k]];
    ROW[k] = field.size() == 0 ? params.absent[k] : field.value;
  }
} else {
  def logged = params.table[doc[params.key].value];
  for (int k = 0; k < ROW.length; ++k) { ROW[k] = logged == null || logged[k] == null ? params.absent[k] : logged[k]; }
}
for (int k = 0; k < ROW.length; ++k) { if (ROW[k] >= 1.7e308) { ROW[k] = Double.NaN; } }
"""
_LARGEST = float(np.finfo(np.float64).max)


class _Painless(Curly):
    """A printer of Painless: constants are lists of the parameters, whose elements have no type."""

    functions: ClassVar[dict[str, str]] = Curly.functions | {
        name: f"Math.{name}" for name in ("abs", "min", "max", "exp", "log1p")
    }

    def local_array(self, kind: str, name: str, size: str) -> str:
        return f"{self.types[kind]}[] {name} = new {self.types[kind]}[{size}];"

    def argument(self, kind: str, name: str) -> str:
        return f"List {name}"

    def element(self, name: str, index: str) -> str:
        return f"(({self.types[self.kinds[name]]}){name}.get({index}))" if name in self.kinds else f"{name}[{index}]"

    def declared(self, name: str, value: object) -> str:
        """Return the type of a parameter."""
        return "List" if isinstance(value, np.ndarray) else self.types[self.kinds[name]]


def write(form: ModelForm, name: str, inputs: str, least: float | None = None) -> str:
    """Return the JSON text, which does not contain `name`.

    `least` is the score that the shift makes 0. By default it is a lower bound of the trees' scores, or, for linear
    models and polynomial leaves, the least score of generated rows.
    """
    program = program_of(form)
    printer = _Painless(program.arrays)
    source = [
        *(printer.function(BISECT) if "bisect_left" in program.text else []),
        _FEATURES.replace("ROW", program.row).strip(),
        *(f"{printer.declared(key, value)} {key} = params.{key};" for key, value in program.arrays.items()),
        *printer.block(program.statements[:-1], ""),
        "return Math.max(0.0, total + params.shift);",
    ]
    absent = np.where(form.reads_zero, 0.0, _LARGEST).tolist()
    params: dict[str, Any] = {"names": list(form.names), "absent": absent}
    params |= {key: _plain(value) for key, value in program.arrays.items()}
    params["shift"] = least_shift(form, inputs) if least is None else max(0.0, -float(least))
    script = {"lang": "painless", "source": "\n".join(source) + "\n", "params": params}
    return json.dumps({"script": script}, ensure_ascii=False, allow_nan=False) + "\n"


def least_shift(form: ModelForm, inputs: str) -> float:
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
        least = float(reference_scores(form, made_up_rows(form, inputs)).min())
    return max(0.0, -least)


def _plain(value: Any) -> Any:
    """Convert to a number or a list of numbers; inf becomes the largest float64."""
    if not isinstance(value, np.ndarray):
        return value
    return (np.clip(value, -_LARGEST, _LARGEST) if value.dtype.kind == "f" else value).tolist()
