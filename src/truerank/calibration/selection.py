"""Which calibrator? A comparison by cross-validated log loss with paired tests."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truerank.calibration.base import Calibrator, as_scores, as_weight, two_classes
from truerank.calibration.names import CALIBRATORS
from truerank.calibration.pool import (
    FEW_ROWS,
    MEMBERS,
    PooledCalibrator,
    cross_validated_log_odds,
    fits_densities,
    group_numbers,
    held_out_losses,
    method_name,
    quietly_fitted,
    rarest_class,
)
from truerank.core.errors import InvalidInputError, TruerankWarning

POOL = "pool"
DEFAULT_METHODS = (POOL, *MEMBERS)
# Standard errors by which a method must be better than one that is trusted more, where one of several is to be taken.
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
    weights : dict of str to float
        What the probabilities are an average of: the members of a pool by falling weight, or the one method.
    """

    method: str
    calibrator: Calibrator = field(repr=False)
    comparisons: list[Comparison] = field(repr=False)
    n_positive: int
    n_negative: int
    weights: dict[str, float] = field(default_factory=dict)


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

    With "pool" among the methods (it is by default) that is a `PooledCalibrator` of the others: their probabilities
    averaged with weights that follow from their losses. Where one of them has at least 99% of the weight it is taken
    alone, under its own name.

    Without "pool" one method is taken: of the methods in order of trust the first whose mean log loss exceeds the
    lowest by at most half a standard error of the paired difference. With fewer than 20 rows in a class the margin is
    two standard errors, and fitted densities take no part.

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
    classes, positive = two_classes(y, len(values))
    weight = as_weight(sample_weight, len(values))
    labels = classes[positive.astype(np.int64)]
    if weight is not None and not weight.all():
        kept = weight > 0
        values, positive, labels, weight = values[kept], positive[kept], labels[kept], weight[kept]
        groups = None if groups is None else group_numbers(groups, len(kept))[kept]
    if len(methods) == 1 and methods[0] == POOL:
        methods = DEFAULT_METHODS
    names = [method_name(method) for method in methods]
    singles = [k for k, name in enumerate(names) if name != POOL]
    if not singles:
        raise InvalidInputError(f"methods is empty; known are: {', '.join(CALIBRATORS)}")
    members = [methods[k] for k in singles]
    rarest = rarest_class(positive)
    if rarest < FEW_ROWS:
        warnings.warn(
            f"only {int(positive.sum())} positive and {int((~positive).sum())} negative rows: the choice of a "
            "calibrator rests on very few of them; collect more, or settle on a method beforehand (platt is the "
            "safest)",
            TruerankWarning,
            stacklevel=2,
        )
    group = None if groups is None else group_numbers(groups, len(values))
    calibrator: Calibrator
    log_loss, brier = np.empty((2, len(methods), len(values)))
    if POOL in names:
        pool = PooledCalibrator(members, monotone=monotone, cv=cv, n_repeats=n_repeats, random_state=random_state)
        held_out = pool.fit_and_hold_out(values, labels, weight, group)
        log_odds = held_out.members
        log_loss[names.index(POOL)], brier[names.index(POOL)] = _mean_losses(held_out.pool, positive)
    else:
        log_odds, _ = cross_validated_log_odds(
            members, monotone, values, positive, weight, group, cv, n_repeats, random_state
        )
    for k, by_others in zip(singles, log_odds):
        log_loss[k], brier[k] = _mean_losses(by_others, positive)
    if POOL in names:
        weights = dict(zip(pool.methods_, pool.weights_.tolist()))
        alone = len(weights) == 1 and pool.methods_[0] in names
        best = names.index(pool.methods_[0] if alone else POOL)
        calibrator = pool.calibrators_[0] if alone else pool
    else:
        best = _first_as_good_as_the_best(methods, names, log_loss, weight, group, rarest)
        calibrator, weights = quietly_fitted(methods[best], monotone, values, labels, weight), {names[best]: 1.0}
    means = np.average(log_loss, axis=1, weights=weight)
    comparisons = [
        Comparison(
            names[k], float(means[k]), float(np.average(brier[k], weights=weight)), float(means[k] - means[best]),
            1.0 if k == best else _paired_p(log_loss[k] - log_loss[best], weight, group),
        )
        for k in range(len(methods))
    ]  # fmt: skip
    return CalibratorChoice(names[best], calibrator, comparisons, int(positive.sum()), int((~positive).sum()), weights)


def _mean_losses(log_odds: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log loss and squared error of each row (n,), averaged over the repeats, from log-odds (repeats, n)."""
    wrong = np.exp(-2.0 * np.logaddexp(0.0, np.where(positive, log_odds, -log_odds)))
    return held_out_losses(log_odds, positive).mean(axis=0), wrong.mean(axis=0)


def _first_as_good_as_the_best(
    methods: Sequence[Any],
    names: list[str],
    log_loss: np.ndarray,
    weight: np.ndarray | None,
    group: np.ndarray | None,
    rarest: int,
) -> int:
    """Number of the first method whose mean log loss exceeds the lowest by no more than the margin."""
    if rarest < 2:
        return names.index("platt") if "platt" in names else 0
    means = np.average(log_loss, axis=1, weights=weight)
    few = rarest < FEW_ROWS
    allowed = [k for k, method in enumerate(methods) if not (few and fits_densities(method))] or [0]
    lowest = min(allowed, key=lambda k: means[k])
    margin = MARGIN_OF_FEW if few else MARGIN
    return next(k for k in allowed if k == lowest or _paired_t(log_loss[k] - log_loss[lowest], weight, group) <= margin)


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
