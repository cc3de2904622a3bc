"""Make tests/features/golden/ranx_fusion.json: fused scores of small tie-free runs, computed by ranx.

`PYTHONPATH=src:tests python scripts/make_ranx_fusion.py`, with the extra `peers` installed. ranx compiles for a minute.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import ranx

from support.made_up_runs import random_runs

METHODS = {
    "rrf": ("rrf", None),
    "comb-sum": ("sum", "min-max"),
    "comb-mnz": ("mnz", "min-max"),
    "comb-anz": ("anz", "min-max"),
    "comb-max": ("max", "min-max"),
    "comb-min": ("min", "min-max"),
    "comb-med": ("med", "min-max"),
    "isr": ("isr", None),
    "borda": ("bordafuse", None),
}


def main() -> None:
    runs = random_runs(11, n_topics=3, n_documents=10, ties=False)
    fused = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (method, norm) in METHODS.items():
            result = ranx.fuse([ranx.Run(run) for run in runs.values()], method=method, norm=norm)
            fused[name] = {topic: dict(scores) for topic, scores in result.to_dict().items()}
    target = Path(__file__).parents[1] / "tests" / "features" / "golden" / "ranx_fusion.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({"ranx": "0.3.21", "runs": runs, "fused": fused}, indent=1) + "\n")


if __name__ == "__main__":
    main()
