"""Section 4.5 of the AdaRank paper as figures: wrong pairs, queries by their pairs, what was trained, the bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reproductions.protocol import Fold
from truerank import AdaRank
from truerank.report.figures import Figure

_STEP = 1000  # pairs in a class of figures 7 and 8
_LAST = 10  # number of the class that holds all longer queries
_PAIR_NAMES = {
    "pairs(2, 0)": "definitely – not",
    "pairs(2, 1)": "definitely – partially",
    "pairs(1, 0)": "partially – not",
}
_COMPARED = ("AdaRank-MAP", "AdaRank-NDCG", "SVM-MAP", "RankSVM", "RankBoost", "ListNet")


def learning_curves(fold: Fold, rounds: int) -> dict[str, Any]:
    """AdaRank on a fold's training queries with two updates: mean training AP by round, and Theorem 1's bound."""
    curves: dict[str, Any] = {"fold": fold.name, "queries": fold.train.n_queries}
    for update in ("paper", "compound"):
        ranker = AdaRank("AP", update=update, n_estimators=rounds, patience=rounds).fit(fold.train)
        curves[update] = {name: ranker.history_[name].tolist() for name in ("train", "train_active", "bound")}
    return curves


def discussion_figures(part: dict[str, Any], curves: dict[str, Any]) -> list[Figure]:
    """Figures 6 to 11 from one collection's results on the published folds."""
    scheme = "wide" if "wide" in part["official"] else "plain"
    rows = part["official"][scheme]
    shown = [name for name in _COMPARED if name in rows]
    where = f"OHSUMED, {part['queries']} queries, five published folds, {scheme} grids, convention {part['convention']}"
    return [
        _wrong_pairs(rows, shown, where),
        *_by_number_of_pairs(part, rows, shown, where),
        *_trained_measures(rows, where),
        *_learning_curve(curves),
    ]


def _wrong_pairs(rows: dict[str, Any], shown: list[str], where: str) -> Figure:
    series = {name: [rows[name]["wrong_pairs"][p] for p in _PAIR_NAMES] for name in shown}
    return Figure(
        "figure-06-wrong-pairs", "bars", "Wrongly ordered pairs by their grades", "grades of the pair",
        "share of pairs in the wrong order (mean over test queries)", list(_PAIR_NAMES.values()), series,
        note=f"{where}. Lower is better.",
    )  # fmt: skip


def _by_number_of_pairs(
    part: dict[str, Any], rows: dict[str, Any], shown: list[str], where: str
) -> tuple[Figure, Figure]:
    pairs = np.array(part["pairs_by_query"])
    group = np.minimum(pairs // _STEP, _LAST)
    counts = np.bincount(group, minlength=_LAST + 1)
    kept = np.flatnonzero(counts)
    labels = [f"{k}–{k + 1}" if k < _LAST else f"over {_LAST}" for k in kept]
    seven = Figure(
        "figure-07-queries-by-pairs", "bars", "Queries by their number of document pairs", "thousands of pairs",
        "queries", labels, {"queries": counts[kept].astype(float).tolist()}, note=f"{where}. Pairs of different grade.",
    )  # fmt: skip
    series, errors = {}, {}
    for name in shown:
        ap = np.array(rows[name]["ap_by_query"])
        series[name] = [float(np.mean(ap[group == k])) for k in kept]
        # One query has no spread: its bar gets no whisker.
        errors[name] = [_standard_error(ap[group == k]) for k in kept]
    eight = Figure(
        "figure-08-map-by-pairs", "bars", "MAP by the query's number of document pairs", "thousands of pairs", "MAP",
        labels, series, errors=errors, note=f"{where}. Whiskers: standard error over the queries of a class.",
    )  # fmt: skip
    return seven, eight


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _trained_measures(rows: dict[str, Any], where: str) -> list[Figure]:
    trained = {"AdaRank-MAP": "trained on AP", "AdaRank-NDCG": "trained on nDCG"}
    present = [name for name in trained if name in rows]
    figures = []
    for number, measure in ((9, "MAP"), (10, "nDCG@5")):
        series = {trained[name]: rows[name]["train"][measure] for name in present}
        labels = [str(k + 1) for k in range(len(next(iter(series.values()), [])))]
        values = [v for row in series.values() for v in row]
        low = np.floor((min(values, default=0.0) - 0.02) * 50) / 50
        figures.append(
            Figure(
                f"figure-{number:02d}-training-{measure.lower().replace('@', '-')}", "bars",
                f"{measure} on the training queries, by what AdaRank was trained on", "fold", f"{measure}, training",
                labels, series, ylim=(max(0.0, float(low)), float(max(values, default=1.0)) + 0.02), note=f"{where}. "
                "The axis does not start at 0.",
            )
        )  # fmt: skip
    return figures


def _learning_curve(curves: dict[str, Any]) -> tuple[Figure, Figure]:
    """The curves, and apart from them the bound, which soon leaves their range."""
    note = f"OHSUMED {curves['fold']}, {curves['queries']} training queries; constant queries left out."
    rounds = max(len(curves[update]["train_active"]) for update in ("compound", "paper"))
    series = {f'update="{update}"': _padded(curves[update]["train_active"], rounds) for update in ("compound", "paper")}
    values = [v for row in series.values() for v in row if v == v]
    x = list(range(1, rounds + 1))
    curve = Figure(
        "figure-11-learning-curve", "lines", "AdaRank's learning curve", "round", "MAP, training", x, series,
        ylim=(min(values) - 0.01, max(values) + 0.01), note=f"{note} The axis does not start at 0.",
    )  # fmt: skip
    few = min(rounds, 10)
    both = {"training MAP": curves["paper"]["train_active"][:few], "Theorem 1's bound": curves["paper"]["bound"][:few]}
    bound = Figure(
        "figure-11-bound", "lines", 'Training MAP and its bound, update="paper"', "round", "MAP, training", x[:few],
        {name: _padded(row, few) for name, row in both.items()}, ylim=(-2.0, 1.0), note=note,
    )  # fmt: skip
    return curve, bound


def _padded(values: list[float], size: int) -> list[float]:
    return [math.nan if v is None else v for v in values] + [math.nan] * (size - len(values))
