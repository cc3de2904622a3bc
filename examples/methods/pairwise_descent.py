"""Draw the picture of a method, after the blocks of its page: run scripts/make_method_pictures.py."""

import numpy as np
from matplotlib import pyplot

from truerank import RankingData, ZScoreInQuery

X = ZScoreInQuery().fit_transform(train.X, qid=train.qid)
data = RankingData(X, train.y, qid=train.qid)
pairs = []
for start, stop in zip(data.offsets[:-1], data.offsets[1:]):
    better, worse = np.nonzero(np.subtract.outer(data.y[start:stop], data.y[start:stop]) > 0)
    pairs.append(data.X[start + better] - data.X[start + worse])
Z, lam = np.concatenate(pairs), 1e-3


def objective(w):
    return lam / 2 * w @ w + np.maximum(0, 1 - Z @ w).mean()


best = objective(RankSVM(C=1 / (lam * len(Z)), loss="hinge", scale="never").fit(data).coef_)
steps = np.unique(np.geomspace(100, 100_000, 13).astype(int))
figure, axes = pyplot.subplots(figsize=(6.4, 3.6), dpi=120)
for average, colour, name in ((False, "#9aa5ad", "last weights"), (True, "#0072b2", "mean of the second half")):
    for seed in range(3):
        gaps = []
        for t in steps:
            settings = {"alpha": lam, "max_iter": t, "scale": "never", "random_state": seed}
            one = PairwiseDescent(average=int(t) // 2 if average else False, **settings).fit(data)
            gaps.append(objective(one.coef_) / best - 1)
        axes.loglog(steps, gaps, color=colour, linewidth=1.5, label=name if seed == 0 else None)
axes.loglog(steps, gaps[0] * steps[0] / steps, color="black", linestyle=":", label="1/t")
axes.set(xlabel="steps", ylabel="objective above the optimum, relative", title=f"{len(Z):,} pairs, three seeds")
axes.legend()
figure.tight_layout()
figure.savefig("method-pairwise-descent.png")
