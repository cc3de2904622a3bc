"""Draw docs/images/gain.png: the gain of trees over BM25, query by query, of the search engineer's tutorial.

python scripts/make_readme_picture.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import matplotlib
import numpy as np

from truerank import compare, read_table
from truerank.cli import main

matplotlib.use("Agg")
from matplotlib import pyplot

with tempfile.TemporaryDirectory() as folder:
    table, out = f"{folder}/judgements.parquet", f"{folder}/model.txt"
    assert main(["sample", folder]) == 0
    assert main(["cross-validate", table, "--set", "leaves=constant", "--scores", out]) == 0
    data = read_table(table)
    scores = {"bm25": data.X[:, 0], "trees": data.grouped(np.loadtxt(out))}
result = compare(data, scores, "nDCG@10", baseline="bm25")
pair = result.pairs[0]
gains = np.sort(result.per_query["trees"] - result.per_query["bm25"])[::-1]
figure, axes = pyplot.subplots(figsize=(7.2, 2.6), dpi=150)
axes.bar(np.arange(len(gains)), gains, width=0.8, color=np.where(gains >= 0, "#2f6f8f", "#b5562f"))
axes.axhline(pair.difference, color="black", linewidth=1)
axes.axhspan(pair.low, pair.high, color="black", alpha=0.12, linewidth=0)
axes.set_xticks([])
axes.set_xlabel(f"{len(gains)} queries, each tested by a model of the other folds")
axes.set_ylabel("nDCG@10, trees - BM25")
axes.set_title(
    f"mean gain {pair.difference:+.3f} [{pair.low:+.3f}, {pair.high:+.3f}]: {pair.wins} won, {pair.losses} lost, "
    f"{pair.ties} equal, p = {pair.p:.1g}",
    fontsize=9,
    loc="left",
)
for side in ("top", "right", "bottom"):
    axes.spines[side].set_visible(False)
figure.tight_layout()
figure.savefig(Path(__file__).parents[1] / "docs" / "images" / "gain.png", metadata={"Software": None})
