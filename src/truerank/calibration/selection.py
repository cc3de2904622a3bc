"""Which calibrator? A comparison by cross-validated log loss with paired tests."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truerank.calibration.base import Calibrator, as_scores, as_weight, two_classes
from truerank.calibration.classifier import make_calibrator
from truerank.calibration.densities import DensityCalibrator
from truerank.calibration.diagnostics import losses
from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError, TruerankWarning
from truerank.core.random_streams import seed_of, stream
from truerank.data.grouping import group_rows
from truerank.registry import CALIBRATORS

# In order of trust. The order and the rule below were settled on halves of training scores, not on test rows.
DEFAULT_METHODS = ("spline", "beta", "platt", "asymmetric-laplace", "isotonic", "temperature")
FEW_ROWS = 20
# Standard errors by which a method must be better than one that is trusted more.
MARGIN, MARGIN_OF_FEW = 0.5, 2.0


@dataclass(frozen=True)
class Comparison:
    """One method against the chosen one.

    Attributes
    ----------
    method : str
    log_loss : float
        Mean of -log P(actual class) over held-out rows, in nats.
    brier : float
    difference : float
        Mean log loss less that of the chosen method.
    p : float
        Two-sided paired t-test of that difference over rows, or over groups where these were given; 1 for the chosen.
    """

    method: str
    log_loss: float
    brier: float
    difference: float
    p: float


@dataclass(frozen=True)
class CalibratorChoice:
    """What `choose_calibrator` found.

    Attributes
    ----------
    method : str
    calibrator : Calibrator
        The chosen method, fitted on all rows.
    comparisons : list of Comparison
        In the order of the methods.
    n_positive, n_negative : int
    """

    method: str
    calibrator: Calibrator = field(repr=False)
    comparisons: list[Comparison] = field(repr=False)
    n_positive: int
    n_negative: int


def choose_calibrator(
    scores: Any,
    y: Any,
    *,
    methods: Sequence[Any] = DEFAULT_METHODS,
    monotone: bool = True,
    groups: Any = None,
    cv: int = 5,
    n_repeats: int = 2,
    sample_weight: Any = None,
    random_state: Any = None,
) -> CalibratorChoice:
    """Compare calibrators by cross-validated log loss and fit one that is as good as the best.

    Of the methods in order of trust the first is taken whose mean log loss exceeds the lowest by at most half a
    standard error of the paired difference. With fewer than 20 rows in a class the margin is two standard errors, and
    fitted densities take no part: a scale from a handful of rows can cost hundreds of nats on a single new one.

    Parameters
    ----------
    scores : array (n,)
        Held-out scores, as for `Calibrator.fit`.
    y : array (n,)
        Two classes.
    methods : sequence of str or Calibrator
        What to compare, in order of trust.
    monotone : bool, default True
        Give methods that are named their monotone form: a higher score never gets a lower probability.
    groups : array (n,), optional
        Rows that belong together (the queries of a ranker): kept in one fold, and tested as one.
    cv : int, default 5
        Folds, stratified by class where there are no groups; lowered to the rows of the rarer class.
    n_repeats : int, default 2
        Draws of the folds; losses are averaged over them.
    sample_weight : array (n,), optional
    random_state : int or generator, optional

    Returns
    -------
    CalibratorChoice

    Warns
    -----
    TruerankWarning
        With fewer than 20 rows in a class: the comparison then rests on a handful of losses. With fewer than two there
        is none: "platt" is taken where it is among the methods, else the first.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> choice = choose_calibrator(rng.laplace(size=2000) + 3 * y, y, methods=["gaussian", "laplace"])
    >>> choice.method, len(choice.comparisons)
    ('laplace', 2)
    """
    values = as_scores(scores, "choose_calibrator")
    _, positive = two_classes(y, len(values))
    weight = as_weight(sample_weight, len(values))
    if not methods:
        raise InvalidInputError(f"methods is empty; known are: {', '.join(CALIBRATORS)}")
    names = [method if isinstance(method, str) else repr(method) for method in methods]
    cv, n_repeats = check_positive_int(cv, "cv", 2), check_positive_int(n_repeats, "n_repeats")
    n_positive = int(positive.sum())
    rarest = min(n_positive, len(positive) - n_positive)
    if rarest < FEW_ROWS:
        warnings.warn(
            f"only {n_positive} positive and {len(positive) - n_positive} negative rows: the choice of a calibrator "
            "rests on very few of them; collect more, or settle on a method beforehand (platt is the safest)",
            TruerankWarning,
            stacklevel=2,
        )
    group = None if groups is None else _group_numbers(groups, len(values))
    seed = seed_of(random_state)
    log_loss, brier = np.zeros((len(methods), len(values))), np.zeros((len(methods), len(values)))
    if rarest >= 2:
        for repeat in range(n_repeats):
            for test in _folds(positive, group, min(cv, rarest), stream(seed, "choose-calibrator", repeat)):
                train = ~test
                for k, method in enumerate(methods):
                    fitted = _quietly_fitted(
                        method, monotone, values[train], positive[train], None if weight is None else weight[train]
                    )
                    loss = losses(positive[test], fitted.log_odds(values[test]))
                    log_loss[k, test] += loss.log_loss / n_repeats
                    brier[k, test] += loss.squared_error / n_repeats
    means = np.average(log_loss, axis=1, weights=weight)
    few = rarest < FEW_ROWS
    allowed = [k for k, method in enumerate(methods) if not (few and _fits_densities(method))] or [0]
    lowest = min(allowed, key=lambda k: means[k])
    margin = MARGIN_OF_FEW if few else MARGIN
    best = next(k for k in allowed if k == lowest or _paired_t(log_loss[k] - log_loss[lowest], weight, group) <= margin)
    if rarest < 2 and "platt" in names:
        best = names.index("platt")
    comparisons = [
        Comparison(
            names[k], float(means[k]), float(np.average(brier[k], weights=weight)), float(means[k] - means[best]),
            1.0 if k == best else _paired_p(log_loss[k] - log_loss[best], weight, group),
        )
        for k in range(len(methods))
    ]  # fmt: skip
    chosen = _quietly_fitted(methods[best], monotone, values, positive, weight)
    return CalibratorChoice(names[best], chosen, comparisons, n_positive, len(positive) - n_positive)


def _quietly_fitted(
    method: Any, monotone: bool, scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None
) -> Calibrator:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruerankWarning)
        return make_calibrator(method, monotone=monotone).fit(scores, positive, weight)


def _group_numbers(groups: Any, n_rows: int) -> np.ndarray:
    grouping = group_rows(groups, n_rows)
    number = np.repeat(np.arange(len(grouping.offsets) - 1), np.diff(grouping.offsets))
    if grouping.order is None:
        return number
    result = np.empty(n_rows, dtype=np.int64)
    result[grouping.order] = number
    return result


def _folds(
    positive: np.ndarray, group: np.ndarray | None, n_splits: int, generator: np.random.Generator
) -> list[np.ndarray]:
    """Masks of the test rows of each fold: by group, or stratified by class."""
    if group is not None:
        n_groups = int(group.max()) + 1
        n_splits = min(n_splits, n_groups)
        if n_splits < 2:
            raise InvalidInputError("groups must name at least two groups")
        part = np.empty(n_groups, dtype=np.int64)
        part[generator.permutation(n_groups)] = np.arange(n_groups) % n_splits
        fold = part[group]
    else:
        fold = np.empty(len(positive), dtype=np.int64)
        for rows in (np.flatnonzero(positive), np.flatnonzero(~positive)):
            fold[generator.permutation(rows)] = np.arange(len(rows)) % n_splits
    return [fold == k for k in range(n_splits)]


def _fits_densities(method: Any) -> bool:
    return isinstance(make_calibrator(method), DensityCalibrator)


def _paired_t(difference: np.ndarray, weight: np.ndarray | None, group: np.ndarray | None) -> float:
    """Student's t of a mean of 0, over rows or sums of groups; 0 where nothing differs."""
    values = difference if weight is None else difference * weight
    if group is not None:
        values = np.bincount(group, weights=values)
    n = len(values)
    spread = float(values.std(ddof=1)) if n > 1 else 0.0
    mean = float(values.mean())
    if spread == 0.0:
        return 0.0 if mean == 0.0 else math.copysign(math.inf, mean)
    return mean / (spread / math.sqrt(n))


def _paired_p(difference: np.ndarray, weight: np.ndarray | None, group: np.ndarray | None) -> float:
    """Two-sided p-value of a mean of 0, over rows or sums of groups."""
    from scipy.special import stdtr

    n = len(difference) if group is None else int(group.max()) + 1
    return float(2.0 * stdtr(max(n - 1, 1), -abs(_paired_t(difference, weight, group))))
