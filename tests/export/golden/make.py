"""Golden files: scores of small exports by the real programs, which Maven fetches.

PYTHONPATH=src:. python tests/export/golden/make.py
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
from benchmarks.export.bench_formats import JARS, JavaPrograms

from truerank import AdaRank, ObliviousBoosting, RankBoost, RankingData, export_model
from truerank.export.compared_rows import border_cases
from truerank.export.form import form_of


def main() -> None:
    """Write one file for each program."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(200, 6)), 2)
    y = np.clip(np.round(X[:, 0] + X[:, 1] ** 2), 0, 2)
    data = RankingData(X, y, np.repeat(np.arange(10), 20))
    models = {
        "linear": AdaRank(measure="AP").fit(data),
        "stumps": RankBoost(20).fit(data),
        "trees": ObliviousBoosting(leaves="constant", n_estimators=6, depth=3).fit(data),
    }
    with tempfile.TemporaryDirectory() as folder:
        java = JavaPrograms(Path(folder))
        assert not java.missing, java.missing
        for format, programs in JARS.items():
            for program in programs:
                entries = {}
                for name, model in models.items():
                    form = form_of(model)
                    rows = np.concatenate([X[:20], border_cases(form, X, True, "decimal")[:120]])
                    text = str(export_model(model, format, certify=data))
                    if format == "opensearch-ltr":  # RankLib's text, also of a linear model
                        coef = model.coef_.tolist() if name == "linear" else []
                        pairs = " ".join(f"{k + 1}:{weight!r}" for k, weight in enumerate(coef))
                        text = f"## Coordinate Ascent\n{pairs}" if coef else text
                    scores = java.scores(program, text, rows, form.names)
                    entries[name] = {"format": format, "text": text, "rows": rows.tolist(), "scores": scores.tolist()}
                target = Path(__file__).parent / f"{program}.json"
                target.write_text(json.dumps(entries, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
