"""What the calibration figures show, as data: for `report.calibration_plots` to draw and for tests to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from truerank.calibration.diagnostics import Reliability


@dataclass(frozen=True)
class CalibrationFigure:
    """One figure.

    Attributes
    ----------
    name : str
        Stem of its file name.
    kind : {"densities", "log-odds", "reliability", "deciles"}
    title, xlabel, ylabel : str
    x : float64 array
        Grid of scores for curves.
    curves : mapping of str to array
        Fitted curves over `x`.
    points : mapping of str to (x, y) arrays
        Empirical values: histogram heights, log-odds of bins, expected against observed.
    reliability : Reliability, optional
    errors : array, optional
        Half-widths of the error bars of "deciles".
    ylim : (float, float), optional
    note : str
    """

    name: str
    kind: Literal["densities", "log-odds", "reliability", "deciles"]
    title: str
    xlabel: str
    ylabel: str
    x: np.ndarray = field(default_factory=lambda: np.empty(0))
    curves: Mapping[str, np.ndarray] = field(default_factory=dict)
    points: Mapping[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    reliability: Reliability | None = None
    errors: np.ndarray | None = None
    ylim: tuple[float, float] | None = None
    note: str = ""


def density_figure(
    name: str, title: str, calibrator: Any, scores: Sequence[tuple[str, np.ndarray, np.ndarray]], *, n_bins: int = 60
) -> CalibrationFigure:
    """Class-conditional densities against histograms: figure 4 of Bennett (2003).

    `scores` lists (label, scores (n,), positive (n,)): training and test.
    """
    every = np.concatenate([values for _, values, _ in scores])
    low, high = np.quantile(every, [0.001, 0.999])
    margin = 0.05 * (high - low)
    edges = np.linspace(low - margin, high + margin, n_bins + 1)
    x = np.linspace(edges[0], edges[-1], 1201)
    negative, positive = calibrator.classes_
    points = {}
    for label, values, is_positive in scores:
        for sign, some in (("-", values[~is_positive]), ("+", values[is_positive])):
            heights, _ = np.histogram(some, edges)
            points[f"{label}, class {sign}"] = ((edges[1:] + edges[:-1]) / 2, heights / (len(some) * np.diff(edges)))
    curves = {"fit, class -": calibrator.density(x, negative), "fit, class +": calibrator.density(x, positive)}
    return CalibrationFigure(name, "densities", title, "score s(d)", "p(s | class)", x, curves, points)


def log_odds_figure(
    name: str,
    title: str,
    calibrators: Mapping[str, Any],
    scores: Sequence[tuple[str, np.ndarray, np.ndarray]],
    *,
    n_bins: int = 30,
) -> CalibrationFigure:
    """Fitted log-odds against empirical ones in bins of scores: figure 5 of Bennett (2003).

    Bins have equal numbers of documents; a bin with p positives and n negatives stands at log((p + ½)/(n + ½)), and
    bins of one class only are left out.
    """
    points, lows, highs = {}, [], []
    for label, values, positive in scores:
        order = np.argsort(values, kind="stable")
        places, heights = [], []
        # Narrow bins where both classes meet: equal numbers of the rarer class's neighbourhood.
        meeting = order[(values[order] >= values[positive].min()) & (values[order] <= values[~positive].max())]
        for part in np.array_split(meeting, n_bins):
            p, n = int(positive[part].sum()), int((~positive[part]).sum())
            if p and n:
                places.append(float(values[part].mean()))
                heights.append(float(np.log((p + 0.5) / (n + 0.5))))
        points[label] = (np.array(places), np.array(heights))
        lows.append(min(places, default=0.0))
        highs.append(max(places, default=1.0))
    low, high = min(lows), max(highs)
    margin = 0.15 * (high - low) or 1.0
    x = np.linspace(low - margin, high + margin, 801)
    curves = {label: calibrator.log_odds(x) for label, calibrator in calibrators.items()}
    heights_all = np.concatenate([y for _, y in points.values()])
    limit = 1.6 * float(np.abs(heights_all).max()) if len(heights_all) else 8.0
    return CalibrationFigure(
        name, "log-odds", title, "score s(d)", "log P(+ | s) - log P(- | s)", x, curves, points, ylim=(-limit, limit)
    )


def reliability_figure(name: str, title: str, diagram: Reliability, note: str = "") -> CalibrationFigure:
    """A reliability diagram with its consistency bands."""
    return CalibrationFigure(
        name, "reliability", title, "predicted probability", "observed share", reliability=diagram, note=note
    )


def decile_figure(name: str, title: str, deciles: Sequence[Mapping[str, float]], note: str = "") -> CalibrationFigure:
    """Expected against observed relevant documents, a point a decile of the queries."""
    expected, observed, errors = (
        np.array([row[key] for row in deciles]) for key in ("expected", "observed", "standard_error")
    )
    return CalibrationFigure(
        name, "deciles", title, "expected relevant documents in the top 5", "observed",
        points={"decile of queries": (expected, observed)}, errors=1.96 * errors, note=note,
    )  # fmt: skip
