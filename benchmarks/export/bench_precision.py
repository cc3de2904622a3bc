"""Trees trained on float32 numbers, float64 numbers and decimal texts, scored by the programs that read their exports.

    python -m benchmarks export/bench_precision

Largest difference from `predict` on the same rows, held as float32 and as float64. Rows of the kind that the model was
trained on should be within 1e-5. Uses MSLR's sample where TRUERANK_DATA has it, and made-up rows otherwise.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np

from truerank import ObliviousBoosting, RankingData, export_model, read_letor
from truerank.core.float32 import INPUTS
from truerank.core.printing import table
from truerank.export.form import form_of
from truerank.export.run import evaluators

FORMATS = ("lightgbm", "xgboost", "catboost", "onnx")
SETTINGS = {"n_estimators": 100, "depth": 6}


def collection() -> RankingData:
    """Judged rows in decimal texts."""
    path = Path(os.environ.get("TRUERANK_DATA", "")) / "mslr-web10k-sample" / "fold1.train.5k.txt.gz"
    if path.is_file():
        return read_letor(path)
    rng = np.random.default_rng(0)
    X = np.round(rng.lognormal(size=(2000, 20)), 4)
    return RankingData(X, np.clip(np.round(X[:, 0] * X[:, 1]), 0, 4), np.repeat(np.arange(40), 50))


def of_kind(X: np.ndarray, kind: str) -> np.ndarray:
    """Rows of one kind of numbers: float32, the decimals that give these back, or float64 with all its digits."""
    if kind == "float64":
        return X / 3
    single = X.astype(np.float32)
    if kind == "float32":
        return single
    return np.array([float(str(value)) for value in single.ravel()]).reshape(X.shape)


def differences(data: RankingData, leaves: str = "constant", **settings: int) -> list[tuple[str, str, str, str, float]]:
    """Kind in training, format, program, precision of the rows, and the largest difference from `predict`."""
    found = []
    for kind in ("float32", "float64", "decimal"):
        rows = of_kind(data.X, kind)
        model = ObliviousBoosting(leaves, **(settings or SETTINGS)).fit(data.replaced(X=rows))
        assert model.inputs_ == kind
        form = form_of(model)
        for format in FORMATS:
            content = export_model(model, format, force=True)
            for precision in (np.float32, np.float64):
                given = rows.astype(precision)
                expected = model.predict(given)
                for program, score in evaluators(content, form, format).items():
                    if program != "mimic":
                        difference = float(np.abs(score(given.astype(np.float64)) - expected).max())
                        found.append((kind, format, program, precision.__name__, difference))
    return found


def _own(kind: str, precision: str) -> str:
    return "training's" if (kind == "float32") == (precision == "float32") else ""


def run() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    rows = [
        [INPUTS[kind], program, precision, f"{difference:.1e}", _own(kind, precision)]
        for kind, _, program, precision, difference in differences(collection())
    ]  # fmt: skip
    print(table(rows, ["trained on", "program", "rows held as", "largest difference", "kind of rows"]))


if __name__ == "__main__":
    run()
