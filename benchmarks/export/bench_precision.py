"""Trees trained on four kinds of numbers, scored by the programs that read their exports.

    python -m benchmarks export/bench_precision

Largest difference from `predict` on the same rows, held as float32 and as float64. Rows of the kind that the model was
trained on should be within 1e-5. A program with float32 features cannot tell "close" numbers apart; the last column is
the difference that a certificate on generated rows states for such numbers. Uses MSLR's sample where TRUERANK_DATA has
it, and generated rows otherwise.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from truerank import ObliviousBoosting, RankingData, export_model, read_letor
from truerank.core.float32 import INPUTS
from truerank.core.printing import table
from truerank.export.form import form_of
from truerank.export.formats import reason_against
from truerank.export.run import evaluators

FORMATS = ("lightgbm", "xgboost", "onnx")
LEAVES = ("constant", "fuzzy", "polynomial")
SETTINGS = {"n_estimators": 100, "depth": 6}


def collection() -> RankingData:
    """Judged rows in decimal texts."""
    path = Path(os.environ.get("TRUERANK_DATA", "")) / "mslr-web10k-sample" / "fold1.train.5k.txt.gz"
    if path.is_file():
        return read_letor(path)
    rng = np.random.default_rng(0)
    X = np.round(rng.lognormal(size=(2000, 20)), 4)
    return RankingData(X, np.clip(np.round(X[:, 0] * X[:, 1]), 0, 4), np.repeat(np.arange(40), 50))


def of_kind(X: np.ndarray, kind: str, whole: Sequence[int] = ()) -> np.ndarray:
    """Rows of one kind of numbers; the columns `whole` keep their values.

    "float32", the decimals that give these back, "float64" with all its digits, or "close": float64 in which a fiftieth
    of the values of each column has a neighbour at a distance of 1e-9.
    """
    single = X.astype(np.float32)
    if kind == "float32":
        return single
    if kind == "decimal":
        rows = np.array([float(str(value)) for value in single.ravel()]).reshape(X.shape)
    else:
        rows = X / 3
        if kind == "close":
            few = len(rows) // 50
            rows[:few] = rows[few : 2 * few] + 1e-9
    rows[:, whole] = X[:, whole]
    return rows


def differences(
    data: RankingData, leaves: str = "constant", categorical: Sequence[int] = (), **settings: int
) -> list[tuple[str, str, str, str, float, float]]:
    """Kind in training, format, program, precision of the rows, largest difference, and that of merged numbers."""
    found = []
    for kind in INPUTS:
        rows = of_kind(data.X, kind, categorical)
        own = dict(settings or SETTINGS) | ({"categorical": list(categorical)} if categorical else {})
        model = ObliviousBoosting(leaves, **own).fit(data.replaced(X=rows))
        assert model.inputs_ == kind
        exported = model.over_statistics()
        form = form_of(exported)
        for format in FORMATS:
            if reason_against(form, format):
                continue
            content = export_model(exported, format, force=True)
            for precision in (np.float32, np.float64):
                given = rows.astype(precision)
                expected, encoded = model.predict(given), model.encoded(given.astype(np.float64))
                for program, score in evaluators(content, form, format).items():
                    if program != "mimic":
                        difference = float(np.abs(score(encoded) - expected).max())
                        merged = content.certificate.merged_difference
                        found.append((kind, format, program, precision.__name__, difference, merged))
    return found


def _own(kind: str, precision: str) -> str:
    return "training's" if (kind == "float32") == (precision == "float32") else ""


def run() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    rows = [
        [leaves, INPUTS[kind], program, precision, f"{difference:.1e}", _own(kind, precision), f"{merged:.1e}"]
        for leaves in LEAVES
        for kind, _, program, precision, difference, merged in differences(collection(), leaves)
    ]  # fmt: skip
    heads = ["leaves", "trained on", "program", "rows held as", "largest difference", "kind of rows", "merged numbers"]
    print(table(rows, heads))


if __name__ == "__main__":
    run()
