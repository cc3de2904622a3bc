"""Draw the picture of a method, after the blocks of its page: run scripts/make_method_pictures.py."""

import numpy as np
from matplotlib import pyplot

from truerank.losses.worst_rankings import RankingOracle

relevant = np.array([1, 0, 1, 0, 0, 1, 0, 0, 0, 0])
scores = np.array([1.9, 1.0, 0.8, 0.3, 0.0, -0.3, -0.6, -0.9, -1.2, -1.5])  # from high to low
(loss,), c = RankingOracle("AP", relevant, np.array([0, 10]))(scores)

half, R, N = c * 21 / 2, 3, 7  # c is -2b/(RN) or 2(R-a)/(RN), with a and b
is_relevant = relevant == 1  # documents of the other kind before it
ranks = {"perfect": np.empty(10), "by score": np.arange(1.0, 11), "most violated": np.empty(10)}
ranks["perfect"][is_relevant], ranks["perfect"][~is_relevant] = np.arange(1, R + 1), np.arange(R + 1, R + N + 1)
ranks["most violated"][is_relevant] = np.arange(1, R + 1) - half[is_relevant]
ranks["most violated"][~is_relevant] = np.arange(1, N + 1) + R - half[~is_relevant]
aps = [evaluate(relevant, -rank, "AP")["AP"] for rank in ranks.values()]

figure, axes = pyplot.subplots(figsize=(6.4, 4), dpi=120)
for i, hit in enumerate(is_relevant):
    places = [rank[i] for rank in ranks.values()]
    axes.plot(range(3), places, "o-", color="#d55e00" if hit else "#9aa5ad", linewidth=2.5 if hit else 1, markersize=9)
axes.set_xticks(range(3), [f"{name}\nAP {ap:.2f}" for name, ap in zip(ranks, aps)])
axes.set(ylim=(10.5, 0.5), ylabel="rank", title=f"orange: relevant; slack of the query {loss + c @ scores:.2f}")
figure.tight_layout()
figure.savefig("method-svm-map.png")
