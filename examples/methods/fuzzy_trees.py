"""Draw the picture of a method, after the blocks of its page: run scripts/make_method_pictures.py."""

import numpy as np
from matplotlib import pyplot


def share_below(values, c, p):
    """Equation 4 for sorted values, normalised: P(x ≤ c) of each."""
    n, b, i = len(values), np.searchsorted(values, c, side="right"), np.arange(len(values))
    Z = (1 + p - p ** (i + 1.0) - p ** (n - i * 1.0)) / (1 - p)
    above = (p ** np.maximum(i - b + 1.0, 0) - p ** (i + 1.0)) / ((1 - p) * Z)
    below = 1 - (p ** np.maximum(b - i * 1.0, 0) - p ** (n - i * 1.0)) / ((1 - p) * Z)
    return np.where(values > c, above, below)


column = np.argmax(rankers["fuzzy"].feature_importances_)
name, values = train.feature_names[column], np.sort(train.X[:, column])
figure, (first, second, third) = pyplot.subplots(1, 3, figsize=(11, 3.4), dpi=120)
first.hist(values, bins=60, color="#9aa5ad", weights=np.full(len(values), 1 / len(values)) * 10, label="values")
for share, colour in ((0.5, "#0072b2"), (0.85, "#d55e00")):
    c = np.quantile(values, share)
    first.plot(values, share_below(values, c, 1 - 1 / (0.1 * len(values))), color=colour, label=f"border at {c:.2f}")
    first.axvline(c, color=colour, linestyle=":")
first.set(xlabel=name, ylabel="P(left of the border)", title="equation 4")
first.legend()

row = np.argmax(test.y)
copies = np.repeat(test.X[[row]], 600, axis=0)
copies[:, column] = np.linspace(*np.quantile(values, [0.01, 1]), 600)
for kind, colour in (("constant", "#9aa5ad"), ("fuzzy", "#0072b2")):
    second.plot(copies[:, column], rankers[kind].predict(copies), color=colour, label=kind)
    third.plot(np.sort(moved[kind]), np.arange(test.n_queries) + 1, color=colour, drawstyle="steps-post", label=kind)
second.set(xlabel=f"{name} of one document", ylabel="score", title="steps and a smooth score")
third.set(xlabel="share of pairs that change", ylabel="queries with at most this", title="stability")
second.legend()
third.legend()
figure.tight_layout()
figure.savefig("method-fuzzy-trees.png")
