"""The figures of Bennett (2003): densities over histograms of scores, and log-odds over those of bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reproductions.plots import COLOURS, Figure, Points

_DENSITY_BINS, _LOG_ODDS_BINS = 60, 24
_FITTED = {"-": "#003a5c", "+": "#7a4f00"}  # of the lines by class, darker than the histograms
Scores = Sequence[tuple[str, np.ndarray, np.ndarray]]  # label, scores (n,), positive (n,): training and test


def density_figure(name: str, title: str, calibrators: Mapping[str, Any], scores: Scores) -> Figure:
    """Class-conditional densities against histograms: figures 2 to 4 of Bennett (2003).

    The paper sets symmetric normals (figure 2) against asymmetric ones (figure 3) on real scores, and asymmetric
    Laplace densities against the scores (figure 4).
    """
    every = np.concatenate([values for _, values, _ in scores])
    low, high = np.quantile(every, [0.001, 0.999])
    margin = 0.05 * (high - low)
    edges = np.linspace(low - margin, high + margin, _DENSITY_BINS + 1)
    x = np.linspace(edges[0], edges[-1], 1201)
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, _DENSITY_BINS - 1)
    series: dict[str, np.ndarray] = {}
    styles: dict[str, dict[str, Any]] = {}
    for (label, values, positive), style in zip(scores, ("-", ":")):
        for sign, colour, some in (("-", COLOURS[0], values[~positive]), ("+", COLOURS[1], values[positive])):
            series[f"{label}, class {sign}"] = (np.histogram(some, edges)[0] / (len(some) * np.diff(edges)))[place]
            styles[f"{label}, class {sign}"] = {"color": colour, "linestyle": style, "linewidth": 0.9}
    tallest = max(float(y.max()) for y in series.values())
    for (label, calibrator), style in zip(calibrators.items(), ("-", "--")):
        for sign, of_class in zip("-+", calibrator.classes_):
            series[f"{label}, class {sign}"] = calibrator.density(x, of_class)
            styles[f"{label}, class {sign}"] = {"color": _FITTED[sign], "linestyle": style, "linewidth": 2.0}
    fitted = max(float(y.max()) for y in series.values())
    top = 1.15 * max(tallest, min(fitted, 1.5 * tallest))
    return Figure(name, "lines", title, "score s(d)", "p(s | class)", x, series, styles=styles, ylim=(0.0, top))


def log_odds_figure(name: str, title: str, calibrators: Mapping[str, Any], scores: Scores) -> Figure:
    """Fitted log-odds against empirical ones in bins of scores: figure 5 of Bennett (2003).

    Borders of the bins are quantiles of the scores with each class counting half. A bin with p positives and n
    negatives stands at its mean score and log((p + ½)/(n + ½)), with the interval of Jeffreys' prior, Beta(p + ½,
    n + ½). Every bin is there: to leave out those of one class would lift the low ones and lower the high ones.
    """
    from scipy.special import betaincinv, logit

    points, ends = {}, []
    for label, values, positive in scores:
        share = np.where(positive, 0.5 / max(positive.sum(), 1), 0.5 / max((~positive).sum(), 1))
        order = np.argsort(values, kind="stable")
        mass = np.cumsum(share[order])
        place = np.minimum((mass / mass[-1] * _LOG_ODDS_BINS).astype(np.int64), _LOG_ODDS_BINS - 1)
        counts = np.bincount(place, minlength=_LOG_ODDS_BINS)
        kept = counts > 0
        p = np.bincount(place, weights=positive[order], minlength=_LOG_ODDS_BINS)[kept]
        n = counts[kept] - p
        means = np.bincount(place, weights=values[order], minlength=_LOG_ODDS_BINS)[kept] / counts[kept]
        low, high = (logit(betaincinv(p + 0.5, n + 0.5, tail)) for tail in (0.025, 0.975))
        points[label] = Points(means, np.log((p + 0.5) / (n + 0.5)), low, high, (p == 0) | (n == 0))
        # Longer tails would leave little space for the middle, where the classes meet.
        ends.append(values[order][np.searchsorted(mass, [0.02 * mass[-1], 0.98 * mass[-1]])])
    low, high = float(np.min(ends)), float(np.max(ends))
    margin = 0.03 * (high - low) or 1.0
    x = np.linspace(low - margin, high + margin, 801)
    curves = {label: calibrator.log_odds(x) for label, calibrator in calibrators.items()}
    limit = 1.25 * max((float(np.abs(one.y).max()) for one in points.values()), default=8.0)
    return Figure(
        name, "lines", title, "score s(d)", "log P(+ | s) - log P(- | s)", x, curves, points=points,
        ylim=(-limit, limit), note="points: bins of scores with 95% intervals; hollow: documents of one class only",
    )  # fmt: skip
