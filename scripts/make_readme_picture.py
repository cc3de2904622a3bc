"""Draw docs/images/gain.png: the gain of trees over BM25, query by query, on the shipped sample's test queries.

python scripts/make_readme_picture.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

from truerank import ObliviousBoosting, compare_rankers, load_sample
from truerank.data.splits import query_folds

matplotlib.use("Agg")
from matplotlib import pyplot

data = load_sample("cranfield-text")
parts = query_folds(data.n_queries, 5, random_state=0, query_ids=data.query_ids)  # as `truerank sample`
train, test = data.take_queries(np.sort(np.concatenate(parts[2:]))), data.take_queries(parts[1])
scores = {"bm25": test.X[:, 0], "trees": ObliviousBoosting().fit(train).predict(test)}
result = compare_rankers(test, scores, measure="nDCG@10", baseline="bm25")
pair = result.pairs[0]
gains = np.sort(result.per_query["trees"] - result.per_query["bm25"])[::-1]
figure, axes = pyplot.subplots(figsize=(7.2, 2.6), dpi=150)
axes.bar(np.arange(len(gains)), gains, width=0.8, color=np.where(gains >= 0, "#2f6f8f", "#b5562f"))
axes.axhline(pair.difference, color="black", linewidth=1)
axes.axhspan(pair.low, pair.high, color="black", alpha=0.12, linewidth=0)
axes.set_xticks([])
axes.set_xlabel(f"{len(gains)} test queries, each one bar")
axes.set_ylabel("nDCG@10, trees less BM25")
axes.set_title(
    f"mean gain {pair.difference:+.3f} [{pair.low:+.3f}, {pair.high:+.3f}]: {pair.wins} won, {pair.losses} lost, "
    f"{pair.ties} level, p = {pair.p:.1g}",
    fontsize=9,
    loc="left",
)
for side in ("top", "right", "bottom"):
    axes.spines[side].set_visible(False)
figure.tight_layout()
figure.savefig(Path(__file__).parents[1] / "docs" / "images" / "gain.png", metadata={"Software": None})
