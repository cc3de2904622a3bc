"""What the calibration figures show, as data: for `calibration.plots` to draw and for tests to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from truerank.calibration.diagnostics import Reliability

_DENSITY_BINS, _LOG_ODDS_BINS = 60, 24


@dataclass(frozen=True)
class CalibrationFigure:
    """One figure.

    Attributes
    ----------
    name : str
        Stem of its file name.
    kind : {"densities", "log-odds", "reliability"}
    title, xlabel, ylabel : str
    x : float64 array
        Grid of scores for curves.
    curves : mapping of str to array
        Fitted curves over `x`.
    points : mapping of str to (x, y) arrays
        Empirical values: histogram heights, log-odds of bins, expected against observed.
    reliability : Reliability, optional
    intervals : mapping of str to (low, high) arrays
        95% intervals of the points of the same name, in "log-odds".
    one_class : mapping of str to bool array
        Which of those points stand for documents of one class only.
    ylim : (float, float), optional
    note : str
    """

    name: str
    kind: Literal["densities", "log-odds", "reliability"]
    title: str
    xlabel: str
    ylabel: str
    x: np.ndarray = field(default_factory=lambda: np.empty(0))
    curves: Mapping[str, np.ndarray] = field(default_factory=dict)
    points: Mapping[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    intervals: Mapping[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    one_class: Mapping[str, np.ndarray] = field(default_factory=dict)
    reliability: Reliability | None = None
    ylim: tuple[float, float] | None = None
    note: str = ""


def density_figure(
    name: str, title: str, calibrator: Any, scores: Sequence[tuple[str, np.ndarray, np.ndarray]]
) -> CalibrationFigure:
    """Class-conditional densities against histograms: figure 4 of Bennett (2003).

    `scores` lists (label, scores (n,), positive (n,)): training and test.
    """
    every = np.concatenate([values for _, values, _ in scores])
    low, high = np.quantile(every, [0.001, 0.999])
    margin = 0.05 * (high - low)
    edges = np.linspace(low - margin, high + margin, _DENSITY_BINS + 1)
    x = np.linspace(edges[0], edges[-1], 1201)
    negative, positive = calibrator.classes_
    points = {}
    for label, values, is_positive in scores:
        for sign, some in (("-", values[~is_positive]), ("+", values[is_positive])):
            heights, _ = np.histogram(some, edges)
            points[f"{label}, class {sign}"] = ((edges[1:] + edges[:-1]) / 2, heights / (len(some) * np.diff(edges)))
    curves = {"fit, class -": calibrator.density(x, negative), "fit, class +": calibrator.density(x, positive)}
    return CalibrationFigure(name, "densities", title, "score s(d)", "p(s | class)", x, curves, points)


def normals_figure(name: str, title: str, calibrators: Mapping[str, Any]) -> CalibrationFigure:
    """Densities of several calibrators over the scores they were fitted to: figures 2 and 3 of Bennett (2003).

    The paper sets symmetric normals (figure 2) against asymmetric ones on real scores (figure 3), whose tails cross.
    The grid spans the fitted modes by four scales to each side.
    """
    ends = []
    for calibrator in calibrators.values():
        scales = [getattr(calibrator, a) for a in ("sigma_", "sigma_l_", "sigma_r_") if hasattr(calibrator, a)]
        mode = calibrator.mu_ if hasattr(calibrator, "mu_") else calibrator.theta_
        reach = 4.0 * np.max(scales, axis=0)
        ends += [float((mode - reach).min()), float((mode + reach).max())]
    x = np.linspace(min(ends), max(ends), 1201)
    curves = {
        f"{kind}, class {sign}": calibrator.density(x, label)
        for kind, calibrator in calibrators.items()
        for sign, label in zip("-+", calibrator.classes_)
    }
    return CalibrationFigure(name, "densities", title, "score s(d)", "p(s | class)", x, curves)


def log_odds_figure(
    name: str,
    title: str,
    calibrators: Mapping[str, Any],
    scores: Sequence[tuple[str, np.ndarray, np.ndarray]],
) -> CalibrationFigure:
    """Fitted log-odds against empirical ones in bins of scores: figure 5 of Bennett (2003).

    Borders of the bins are quantiles of the scores with each class counting half. A bin with p positives and n
    negatives stands at its mean score and log((p + ½)/(n + ½)), with the interval of Jeffreys' prior, Beta(p + ½,
    n + ½). Every bin is there: to leave out those of one class would lift the low ones and lower the high ones.
    """
    from scipy.special import betaincinv, logit

    points, intervals, one_class, ends = {}, {}, {}, []
    for label, values, positive in scores:
        share = np.where(positive, 0.5 / max(positive.sum(), 1), 0.5 / max((~positive).sum(), 1))
        order = np.argsort(values, kind="stable")
        mass = np.cumsum(share[order])
        place = np.minimum((mass / mass[-1] * _LOG_ODDS_BINS).astype(np.int64), _LOG_ODDS_BINS - 1)
        counts = np.bincount(place, minlength=_LOG_ODDS_BINS)
        kept = counts > 0
        p = np.bincount(place, weights=positive[order], minlength=_LOG_ODDS_BINS)[kept]
        n = counts[kept] - p
        points[label] = (
            np.bincount(place, weights=values[order], minlength=_LOG_ODDS_BINS)[kept] / counts[kept],
            np.log((p + 0.5) / (n + 0.5)),
        )
        intervals[label] = tuple(logit(betaincinv(p + 0.5, n + 0.5, tail)) for tail in (0.025, 0.975))
        one_class[label] = (p == 0) | (n == 0)
        # Longer tails would leave little space for the middle, where the classes meet.
        ends.append(values[order][np.searchsorted(mass, [0.02 * mass[-1], 0.98 * mass[-1]])])
    low, high = float(np.min(ends)), float(np.max(ends))
    margin = 0.03 * (high - low) or 1.0
    x = np.linspace(low - margin, high + margin, 801)
    curves = {label: calibrator.log_odds(x) for label, calibrator in calibrators.items()}
    limit = 1.25 * max((float(np.abs(y).max()) for _, y in points.values()), default=8.0)
    return CalibrationFigure(
        name, "log-odds", title, "score s(d)", "log P(+ | s) - log P(- | s)", x, curves, points, intervals, one_class,
        ylim=(-limit, limit), note="points: bins of scores with 95% intervals; hollow: documents of one class only",
    )  # fmt: skip


def reliability_figure(name: str, title: str, diagram: Reliability, note: str = "") -> CalibrationFigure:
    """A reliability diagram with its consistency bands."""
    return CalibrationFigure(
        name, "reliability", title, "predicted probability", "observed share", reliability=diagram, note=note
    )
