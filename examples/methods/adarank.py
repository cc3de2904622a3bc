"""Draw the picture of a method, after the blocks of its page: run scripts/make_method_pictures.py."""

import numpy as np
from matplotlib import pyplot

rounds = min(ranker.n_iter_, 20)
chosen, alpha = ranker.history_["feature"][:rounds], ranker.history_["alpha"][:rounds]
weights = [np.ones(train.n_queries)]
for feature, a in zip(chosen, alpha):
    measure = evaluate(train, train.X[:, feature], "AP").per_query["AP"]
    weights.append(weights[-1] * np.exp(-a * measure))
weights = np.array([w / w.sum() for w in weights[:rounds]]) * train.n_queries
hardest_last = np.argsort(weights[-1])

figure, (left, right) = pyplot.subplots(1, 2, figsize=(8, 3.4), dpi=120)
image = left.imshow(
    weights[:, hardest_last].T,
    aspect="auto",
    origin="lower",
    cmap="viridis",
    extent=(0.5, rounds + 0.5, 0, len(hardest_last)),
)
figure.colorbar(image, ax=left, label="weight, 1 at the start")
left.set(
    xlabel="round", ylabel="training queries, sorted", title="weights of the queries", xticks=range(1, rounds + 1, 3)
)
for name, colour in (("train", "#0072b2"), ("validation", "#d55e00")):
    right.plot(range(1, rounds + 1), ranker.history_[name][:rounds], color=colour, label=name)
right.axvline(ranker.best_round_, color="#777777", linestyle=":", label="kept round")
right.set(xlabel="round", ylabel="MAP", title="the measure", xticks=range(1, rounds + 1, 3))
right.legend()
figure.tight_layout()
figure.savefig("method-adarank.png")
