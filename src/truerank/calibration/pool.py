"""Average the probabilities of several calibrators with weights from their held-out losses, or choose one of them.

    P(+ | s) = Σ_k w_k P_k(+ | s),        w_k ∝ exp(-max(D_k/4, n/2 log(1 + m_k²/v_k)) - d_k/8)

D_k is the cross-validated log loss of method k in nats, summed over the n rows, less the lowest one. m_k and v_k are
the mean and variance of this difference over rows, or over sums of groups. d_k is the number of parameters.

On a few hundred rows the lowest loss is often luck. A single method chosen by this loss can be wrong on every row, but
the loss of an average exceeds that of member k by at most -log w_k for each row. The second term of the maximum is
about z²/2 for a difference of z standard errors: it is large for a small difference that nearly every row has. With
many rows one method gets all the weight. `benchmarks/calibration/bench_choice.py` compares the constants.

References
----------
G. Leung, A. R. Barron (2006). Information theory and mixing least-squares regressions. IEEE Transactions on Information
Theory 52. Y. Yao, A. Vehtari, D. Simpson, A. Gelman (2018). Using stacking to average Bayesian predictive
distributions. Bayesian Analysis 13 (pseudo-Bayesian model averaging by cross-validated losses).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp

from truerank.calibration import CALIBRATORS
from truerank.calibration.base import Calibrator, make_calibrator, probability_pairs, quietly
from truerank.calibration.densities import DensityCalibrator
from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError, warn
from truerank.core.fitting import fits_whole
from truerank.core.parameters import parameters
from truerank.core.random_streams import seed_of, stream
from truerank.core.types import ArrayLike, RandomState
from truerank.data.grouping import at_places, group_rows, name_order
from truerank.significance.paired import Outcome, differences_of, paired_t

MEMBERS = ("spline", "beta", "platt", "asymmetric-laplace", "hybrid", "isotonic", "temperature", "identity")
POOL = "pool"
DEFAULT_METHODS = (POOL, *MEMBERS)
FEW_ROWS = 20
# Standard errors by which the lowest loss must be lower than that of a more trusted method; the second with few rows.
MARGIN, MARGIN_OF_FEW = 0.5, 2.0
_EXPONENT = 0.25
_PENALTY = 1.0 / 8.0
# Isotonic regression counts as many as the spline.
_PARAMETERS = {"identity": 0, "temperature": 1, "logistic": 2, "platt": 2, "beta": 3, "gaussian": 4, "laplace": 4}
_MANY_PARAMETERS = 6
SMALLEST_WEIGHT = 0.01
# A method with this share of the largest weight needs a gain of 18 nats in the next folds to reach 1 %.
_NEGLIGIBLE = SMALLEST_WEIGHT**2
_WRONG = 700.0  # log-odds


@parameters
class PooledCalibrator(Calibrator):
    """Average the probabilities of calibrators, with weights from their cross-validated log losses (module docstring).

    Each member is fitted to all rows, and members with a weight below 1 % are dropped. With fewer than 20 rows in a
    class, fitted densities are left out, because one new row could raise their loss by hundreds of nats. If a class has
    fewer than two rows, or rows of fewer than two groups, no fold can be held out that leaves the class in training:
    the only member is "platt", or the first method if "platt" is not among the methods.

    "beta" and "identity" read scores as log-odds in nats. A pool that contains "beta" or "identity" depends on the
    scale of the scores.

    Parameters
    ----------
    methods : sequence of str or Calibrator, optional
        Default: spline, beta, platt, asymmetric-laplace, hybrid, isotonic, temperature and identity.
    monotone : bool, default True
        Use the monotone form of methods given by name: the average then never falls as the score rises.
    cv : int, default 5
        Folds, stratified by class (or of whole groups); at most the number of rows of the rarer class. Copies of a row
        may be in different folds, unlike a `sample_weight`.
    n_repeats : int, default 2
        Draws of the folds; losses are averaged over them.
    random_state : int or generator, optional
        Seed of the folds. Without `groups` the folds, and so the probabilities, depend on the order of the rows.

    Attributes
    ----------
    methods_ : list of str
        Names of the members, by descending weight.
    weights_ : float64 array (k,)
    calibrators_ : list of Calibrator
    prior_ : float64 array (2,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> pool = PooledCalibrator(["platt", "isotonic", "beta"]).fit(rng.normal(size=500) + 2 * y, y)
    >>> pool.methods_, float(pool.weights_.sum().round(9))
    (['platt', 'beta', 'isotonic'], 1.0)
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "methods_": "list[m] of str",
        "weights_": "float64[m] in (0, inf)",
        "calibrators_": "list[m] of Calibrator",
    }

    methods: Any = None
    _: KW_ONLY
    monotone: bool = True
    cv: int = 5
    n_repeats: int = 2
    random_state: Any = None

    @fits_whole
    def fit(self, scores: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None) -> Any:
        """Fit as `Calibrator.fit`; rows with equal `groups` (n,), such as a query's documents, stay in one fold."""
        values, positive, weight = self._take(scores, y, sample_weight)
        group = kept_groups(groups, sample_weight, np.size(scores))
        methods = self._known_methods()
        log_odds, _ = self.cross_validated(methods, values, positive, weight, group, drop=True)
        self._fit_members(methods, log_odds, values, positive, weight, group)

    def fit_and_hold_out(
        self,
        scores: np.ndarray,
        positive: np.ndarray,
        weight: np.ndarray | None,
        group: np.ndarray | None = None,
        drop: bool = False,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Fit to checked rows; return log-odds by fits to other folds: (methods, repeats, n), pooled (repeats, n)."""
        methods = self._known_methods()
        log_odds, fold = self.cross_validated(methods, scores, positive, weight, group, drop)
        self._fit_members(methods, log_odds, scores, positive, weight, group)
        return log_odds, _held_out_pool(log_odds, fold, methods, positive, weight, group)

    def _known_methods(self) -> list[Any]:
        methods = list(MEMBERS if self.methods is None else self.methods)
        if not methods:
            raise InvalidInputError(
                f"methods has no calibrator. Choose some of: {', '.join(CALIBRATORS)}", argument="methods"
            )
        return methods

    def _fit_members(
        self,
        methods: list[Any],
        log_odds: np.ndarray,
        scores: np.ndarray,
        positive: np.ndarray,
        weight: Any,
        group: Any,
    ) -> None:
        share = pool_weights(
            methods, held_out_losses(log_odds, positive).mean(axis=1), rarest_class(positive, group), weight, group
        )
        if not np.ptp(scores):
            # Equal scores leave only the prior, which Platt's calibrator returns.
            methods, share = ["platt"], np.ones(1)
        order, self.weights_ = kept_members(share)
        self.methods_ = [method_name(methods[k]) for k in order]
        self.calibrators_: list[Calibrator] = [
            quietly_fitted(methods[k], self.monotone, scores, positive, weight) for k in order
        ]

    def cross_validated(
        self,
        methods: Sequence[Any],
        scores: np.ndarray,
        positive: np.ndarray,
        weight: np.ndarray | None,
        group: np.ndarray | None,
        drop: bool = False,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return log-odds (methods, repeats, n) by fits to the other folds, and the folds (repeats, n).

        The log-odds are 0 where a class has fewer than two rows, so that no fold can be held out. With `drop`, methods
        with a negligible weight after a fold of the first repeat are not fitted again: their log-odds are wrong in all
        rows, so that they get no weight.
        """
        cv, n_repeats = check_positive_int(self.cv, "cv", 2), check_positive_int(self.n_repeats, "n_repeats")
        rarest = rarest_class(positive, group)
        log_odds = np.zeros((len(methods), n_repeats, len(scores)))
        fold = np.zeros((n_repeats, len(scores)), dtype=np.int64)
        seed, left, known = seed_of(self.random_state), list(range(len(methods))), np.zeros(len(scores), dtype=bool)
        for repeat in range(n_repeats if rarest >= 2 else 0):
            log_odds[:, repeat] = log_odds[:, 0]
            fold[repeat] = folds_of(positive, group, min(cv, rarest), stream(seed, "choose-calibrator", repeat))
            for number in range(int(fold[repeat].max()) + 1):
                test = fold[repeat] == number
                train = ~test
                part = None if weight is None else weight[train]
                for k in left:
                    fitted = quietly_fitted(methods[k], self.monotone, scores[train], positive[train], part)
                    log_odds[k, repeat, test] = fitted.log_odds(scores[test])
                if drop and repeat == 0:
                    known |= test
                    loss = held_out_losses(log_odds[:, 0, known], positive[known])
                    share = pool_weights(
                        methods, loss, rarest, *(p if p is None else p[known] for p in (weight, group))
                    )
                    log_odds[share <= _NEGLIGIBLE * share.max(), 0] = np.where(positive, -_WRONG, _WRONG)
                    left = np.flatnonzero(share > _NEGLIGIBLE * share.max()).tolist()
        return log_odds, fold

    def _log_odds(self, scores: np.ndarray) -> np.ndarray:
        return pooled_log_odds(np.stack([part.log_odds(scores) for part in self.calibrators_]), self.weights_)


def kept_members(share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the members with at least 1 % of the weight, and their weights, in descending order."""
    order = np.argsort(-share, kind="stable")
    order = order[share[order] >= SMALLEST_WEIGHT]
    return order, share[order] / np.where(share < SMALLEST_WEIGHT, 0.0, share).sum()


def _held_out_pool(
    log_odds: np.ndarray,
    fold: np.ndarray,
    methods: Sequence[Any],
    positive: np.ndarray,
    weight: np.ndarray | None,
    group: np.ndarray | None,
) -> np.ndarray:
    result = np.empty(log_odds.shape[1:])
    for repeat in range(log_odds.shape[1]):
        loss = held_out_losses(log_odds[:, repeat], positive)
        for number in range(int(fold[repeat].max()) + 1):
            rows = fold[repeat] == number
            others = [None if part is None else part[~rows] for part in (weight, group)]
            share = pool_weights(methods, loss[:, ~rows], rarest_class(positive, group), *others)
            kept = share > 0.0
            result[repeat, rows] = pooled_log_odds(log_odds[kept, repeat][:, rows], share[kept])
    return result


def pooled_log_odds(log_odds: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return log-odds of the average probability, float64 (n,), from log-odds (k, n); nothing saturates."""
    log_weights = np.log(weights)[:, None]
    # log P(+) and log P(-): each exact where the other is near 0.
    plus, minus = -np.logaddexp(0.0, -log_odds), -np.logaddexp(0.0, log_odds)
    return np.asarray(logsumexp(plus + log_weights, axis=0) - logsumexp(minus + log_weights, axis=0))


def pool_weights(
    methods: Sequence[Any],
    loss: np.ndarray,
    rarest: int,
    weight: np.ndarray | None = None,
    group: np.ndarray | None = None,
) -> np.ndarray:
    """Return the weights (k,) of the module docstring from cross-validated log losses (k, n).

    `rarest` is the number of rows of the rarer class.
    """
    if rarest < 2:
        alone = np.zeros(len(methods))
        alone[list(methods).index("platt") if "platt" in methods else 0] = 1.0
        return alone
    parameters = np.array([_PARAMETERS.get(method_name(method), _MANY_PARAMETERS) for method in methods])
    sound = np.array([rarest >= FEW_ROWS or not fits_densities(method) for method in methods])
    if not sound.any():
        sound[:] = True
    loss, share = loss[sound], np.zeros(len(methods))
    w = np.ones(loss.shape[1]) if weight is None else weight
    behind = loss - loss[np.argmin(loss @ w)]
    if group is not None:
        place = np.unique(group, return_inverse=True)[1]
        behind = np.stack([np.bincount(place, weights=row * w) for row in behind])
        w = np.ones(behind.shape[1])
    mean = np.average(behind, axis=1, weights=w)
    variance = np.average((behind - mean[:, None]) ** 2, axis=1, weights=w)
    with np.errstate(divide="ignore", invalid="ignore"):
        steady = np.where(mean > 0.0, 0.5 * w.sum() * np.log1p(mean * mean / variance), 0.0)
    log_weight = -np.maximum(_EXPONENT * (behind @ w), steady) - _PENALTY * parameters[sound]
    share[sound] = np.exp(log_weight - log_weight.max())
    return share / share.sum()


def held_out_losses(log_odds: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """Return -log P(actual class) in nats, of the shape of `log_odds` (…, n)."""
    return np.logaddexp(0.0, np.where(positive, -log_odds, log_odds))


def kept_groups(groups: ArrayLike | None, sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Return the group of each row with a weight above 0, numbered by name: the order of rows changes no fold."""
    if groups is None:
        return None
    grouping = group_rows(groups, n_rows)
    rank = at_places(np.arange(grouping.n_queries), name_order(grouping.query_ids))
    group = rank[grouping.restore(grouping.query_index)]
    kept = slice(None) if sample_weight is None else np.broadcast_to(sample_weight, n_rows) > 0
    group = np.unique(group[kept], return_inverse=True)[1]
    if not group.any():
        raise InvalidInputError("groups must have at least two different values, got one", argument="groups")
    return group


def rarest_class(positive: np.ndarray, group: np.ndarray | None = None) -> int:
    """Return the number of rows of the rarer class, and at most 1 if a class has rows of one group only."""
    alone = group is not None and min(len(np.unique(group[side])) for side in (positive, ~positive)) < 2
    return min(int(positive.sum()), int((~positive).sum()), 1 if alone else len(positive))


def method_name(method: object) -> str:
    """Return the name of a method, or the text of a calibrator."""
    return method if isinstance(method, str) else repr(method)


def fits_densities(method: object) -> bool:
    """Return whether a method fits densities."""
    return isinstance(make_calibrator(method), DensityCalibrator)


def quietly_fitted(
    method: object, monotone: bool, scores: np.ndarray, y: ArrayLike, weight: np.ndarray | None
) -> Calibrator:
    """Return a fitted calibrator, without its warnings (such as those of separable folds)."""
    with quietly():
        return make_calibrator(method, monotone=monotone).fit(scores, y, weight)


def folds_of(labels: np.ndarray, group: np.ndarray | None, n_splits: int, generator: np.random.Generator) -> np.ndarray:
    """Return the number of each row's fold (n,), by group or stratified by label."""
    if group is not None:
        rows = np.bincount(group)
        order, number = generator.permutation(len(rows)), np.arange(len(rows)) % min(n_splits, len(rows))
        part = np.empty_like(number)
        part[order] = number
        if min(len(np.unique(part[group[labels == label]])) for label in np.unique(labels)) < 2:
            # All rows of a class are in one fold, so the others would train without it. Neighbours in an order by the
            # classes that a group has get different folds.
            share = np.bincount(group, weights=labels) / rows
            classes = (share > 0.0).astype(np.int64) + (share == 1.0)
            part[order[np.argsort(classes[order], kind="stable")]] = number
        return part[group]
    fold = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels)[::-1]:
        rows = np.flatnonzero(labels == label)
        fold[generator.permutation(rows)] = np.arange(len(rows)) % n_splits
    return fold


@dataclass(frozen=True)
class MethodComparison:
    """Comparison of one method with the chosen one, over held-out rows."""

    method: str
    log_loss: float  # mean of -log P(actual class), in nats
    brier: float
    difference: float  # mean log loss minus that of the chosen method
    p: float  # paired t-test of the difference over rows, or over groups if given; 1 for the chosen method


@dataclass(frozen=True)
class CalibratorChoice:
    """Result of `choose_calibrator`."""

    method: str
    calibrator: Calibrator = field(repr=False)  # the chosen method, fitted on all rows
    comparisons: list[MethodComparison] = field(repr=False)  # in the order of the methods
    n_positive: int
    n_negative: int
    # Weights of the members of a pool in descending order, or of the one method.
    weights: dict[str, float] = field(default_factory=dict)
    # P(positive) of rows with a weight, (n,), by fits to the other folds (first draw); None if a class has one row.
    held_out: np.ndarray | None = field(default=None, repr=False)


def choose_calibrator(
    scores: ArrayLike,
    y: ArrayLike,
    *,
    methods: Sequence[Any] = DEFAULT_METHODS,
    monotone: bool = True,
    groups: ArrayLike | None = None,
    cv: int = 5,
    n_repeats: int = 2,
    sample_weight: Any = None,
    random_state: RandomState = None,
) -> CalibratorChoice:
    """Compare calibrators by cross-validated log loss, and fit their pool or one that is as good as the best.

    With "pool" among the methods (the default), the result is a `PooledCalibrator` of the others, or a single method
    with at least 99 % of the weight under its own name. Without "pool", it is the first method whose mean log loss
    exceeds the lowest by at most half a standard error of the paired difference (two with fewer than 20 rows in a
    class, where fitted densities are excluded).

    Parameters
    ----------
    scores : array (n,)
        Held-out scores, as for `Calibrator.fit`.
    y : array (n,)
        Two classes.
    methods : sequence of str or Calibrator
        Methods to compare, most trusted first.
    groups : array (n,), optional
        Group of each row (such as its query), which stays in one fold and is tested as one unit.
    monotone, cv, n_repeats, sample_weight, random_state
        As in `PooledCalibrator`.

    Returns
    -------
    CalibratorChoice

    Warns
    -----
    TruerankWarning
        If a class has fewer than 20 rows. With fewer than two rows, methods are not compared: the result is "platt" if
        it is among the methods, else the first method.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> choice = choose_calibrator(rng.laplace(size=2000) + 3 * y, y, methods=["gaussian", "laplace"])
    >>> choice.method, len(choice.comparisons)
    ('laplace', 2)
    """
    if len(methods) == 1 and methods[0] == POOL:
        methods = DEFAULT_METHODS
    names = [method_name(method) for method in methods]
    singles = [k for k, name in enumerate(names) if name != POOL]
    given = [methods[k] for k in singles]
    pool = PooledCalibrator(given, monotone=monotone, cv=cv, n_repeats=n_repeats, random_state=random_state)
    members = pool._known_methods()
    values, positive, weight = pool._take(scores, y, sample_weight, "choose_calibrator")
    group = kept_groups(groups, sample_weight, np.size(scores))
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    rarest = rarest_class(positive, group)
    if rarest < FEW_ROWS and len(names) > 1:  # a single method is no choice
        warn(
            f"the data have only {n_positive} positive and {n_negative} negative rows, too few to choose a calibrator "
            "reliably. Collect more rows, or choose a method beforehand (platt is the safest)"
        )
    calibrator: Calibrator = pool
    if POOL in names:
        log_odds, pooled = pool.fit_and_hold_out(values, positive, weight, group)
        held_out = dict.fromkeys([k for k, name in enumerate(names) if name == POOL], pooled)
    else:
        log_odds, held_out = pool.cross_validated(members, values, positive, weight, group)[0], {}
    held_out |= dict(zip(singles, log_odds))
    log_loss, brier = np.stack([_mean_losses(held_out[k], positive) for k in range(len(methods))], axis=1)
    if POOL in names:
        weights = dict(zip(pool.methods_, pool.weights_.tolist()))
        alone = len(weights) == 1 and pool.methods_[0] in names
        best = names.index(pool.methods_[0] if alone else POOL)
        calibrator = pool.calibrators_[0] if alone else pool
    else:
        best = _first_as_good_as_the_best(methods, names, log_loss, weight, group, rarest)
        calibrator, weights = quietly_fitted(methods[best], monotone, values, positive, weight), {names[best]: 1.0}
    # A method is fitted to the divided scores of positive and other rows.
    calibrator.unit_, calibrator.classes_ = pool.unit_, pool.classes_
    means = np.average(log_loss, axis=1, weights=weight)
    comparisons = [
        MethodComparison(
            name, float(means[k]), float(np.average(brier[k], weights=weight)), float(means[k] - means[best]),
            1.0 if k == best else _paired(log_loss[k], log_loss[best], weight, group).p,
        )
        for k, name in enumerate(names)
    ]  # fmt: skip
    p = probability_pairs(held_out[best][0])[:, 1] if rarest >= 2 else None
    return CalibratorChoice(names[best], calibrator, comparisons, n_positive, n_negative, weights, p)


def _mean_losses(log_odds: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log loss and squared error of each row (n,), averaged over the repeats, from log-odds (repeats, n)."""
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
    """Return the number of the first method whose mean log loss exceeds the lowest by no more than the margin."""
    if rarest < 2:
        return names.index("platt") if "platt" in names else 0
    means = np.average(log_loss, axis=1, weights=weight)
    few = rarest < FEW_ROWS
    allowed = [k for k, method in enumerate(methods) if not (few and fits_densities(method))] or [0]
    lowest = min(allowed, key=lambda k: means[k])
    margin = MARGIN_OF_FEW if few else MARGIN
    return next(
        k for k in allowed if k == lowest or _paired(log_loss[k], log_loss[lowest], weight, group).statistic <= margin
    )


def _paired(a: np.ndarray, b: np.ndarray, weight: np.ndarray | None, group: np.ndarray | None) -> Outcome:
    """Return the paired t-test over rows or sums of groups; without a difference t is 0 and p 1."""
    difference = differences_of(a, b)
    values = difference if weight is None else difference * weight
    if group is not None:
        values = np.bincount(group, weights=values)
    return paired_t(values, np.zeros(len(values)))
