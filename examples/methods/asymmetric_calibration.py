"""Draw the picture of a method, after the blocks of its page: run scripts/make_method_pictures.py."""

from matplotlib import pyplot

relevant = vali.y >= 1
logistic = LogisticCalibrator().fit(scores, relevant)
low, high = np.quantile(scores, [0.002, 0.985])
grid, (a, b) = np.linspace(low, high, 400), np.sort(calibrator.theta_)
figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6), dpi=120)
for cls, colour, name in ((False, "#0072b2", "not relevant"), (True, "#d55e00", "relevant")):
    left.hist(scores[relevant == cls], bins=np.linspace(low, high, 60), density=True, color=colour, alpha=0.35)
    left.plot(grid, calibrator.density(grid, cls), color=colour, label=name)
left.set(xlabel="score", ylabel="density", title="bars: observed, lines: fitted")
ends = np.quantile(scores, np.linspace(0, 1, 16)[1:-1])
place = np.searchsorted(ends, scores)
for k in range(15):
    inside = place == k
    hits, n = relevant[inside].sum(), inside.sum()
    right.plot(np.median(scores[inside]), np.log((hits + 0.5) / (n - hits + 0.5)), "o", color="black")
right.plot(grid, calibrator.log_odds(grid), color="#0072b2", linewidth=2, label="asymmetric Laplace")
right.plot(grid, logistic.log_odds(grid), color="#e69f00", linestyle="--", label="logistic regression")
right.set(xlabel="score", ylabel="log-odds", title="points: shares in 15 groups of scores")
for axes in (left, right):
    axes.set_xlim(low, high)
    axes.axvspan(a, b, color="black", alpha=0.07)
    for letter, x in zip("ABC", ((low + a) / 2, (a + b) / 2, (b + high) / 2)):
        axes.text(x, 0.92, letter, transform=axes.get_xaxis_transform(), ha="center", fontsize=13)
    axes.legend(loc="center right" if axes is left else "lower right")
figure.tight_layout()
figure.savefig("method-asymmetric-calibration.png")
