"""Make tests/features/golden/ranx_fusion.json: fused scores of small tie-free runs, computed by ranx.

`PYTHONPATH=src:tests python scripts/make_ranx_fusion.py`, with the extra `peers` installed
(`NUMBA_DISABLE_JIT=1` spares the minute that ranx compiles).
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import ranx

from support.made_up_runs import random_runs

WEIGHTS = [0.5, 2.0, 1.0, 0.25]  # of the four runs
METHODS = {
    "rrf": ("rrf", None, None),
    "comb-sum": ("sum", "min-max", None),
    "comb-mnz": ("mnz", "min-max", None),
    "comb-anz": ("anz", "min-max", None),
    "comb-max": ("max", "min-max", None),
    "comb-min": ("min", "min-max", None),
    "comb-med": ("med", "min-max", None),
    "borda": ("bordafuse", None, None),
    "weighted-sum": ("wsum", "min-max", {"weights": WEIGHTS}),
    "weighted-mnz": ("wmnz", "min-max", {"weights": WEIGHTS}),
    "weighted-borda": ("w_bordafuse", None, {"weights": WEIGHTS}),
}


def main() -> None:
    runs = random_runs(11, n_topics=3, n_documents=10, ties=False)
    fused = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (method, norm, params) in METHODS.items():
            result = ranx.fuse([ranx.Run(run) for run in runs.values()], method=method, norm=norm, params=params)
            fused[name] = {topic: dict(scores) for topic, scores in result.to_dict().items()}
    target = Path(__file__).parents[1] / "tests" / "features" / "golden" / "ranx_fusion.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({"ranx": "0.3.21", "weights": WEIGHTS, "runs": runs, "fused": fused}, indent=1) + "\n")


if __name__ == "__main__":
    main()
