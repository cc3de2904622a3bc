"""Compare several rankers on the same queries: differences, intervals, p-values and corrections."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError
from truerank.core.types import ArrayLike, Correction, RandomState, Test
from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure, mean_of
from truerank.significance.corrections import (
    FEWEST,
    MOST,
    Family,
    benjamini_hochberg,
    bonferroni,
    divided_step_down,
    holm,
    own_level,
    simultaneous_intervals,
    small_and_steady,
)
from truerank.significance.intervals import (
    Interval,
    Verdict,
    checked_margin,
    failing_loss,
    measure_interval,
)
from truerank.significance.paired import (
    LEVEL,
    OF_MEANS,
    TESTS,
    Paired,
    as_sample,
    differences_of,
    paired_tests,
)
from truerank.significance.power import detectable_differences
from truerank.significance.tables import Comparison, PairComparison

if TYPE_CHECKING:
    from truerank.significance.history import History

_CORRECTIONS: dict[str, Callable[[Any], np.ndarray]] = {
    "holm": holm,
    "bonferroni": bonferroni,
    "benjamini-hochberg": benjamini_hochberg,
    "none": lambda p: np.asarray(p, dtype=np.float64),
}
CORRECTIONS = ("max-t", *_CORRECTIONS)


class MeasuredValues(NamedTuple):
    """Values of one measure by ranker and query, for `compare_measures`; for `tie_averaged` see `Comparison`.

    Intervals of means end at the limits of `by`, as in `evaluate`.
    """

    per_query: Mapping[str, np.ndarray]
    measure: str = ""
    convention: str = ""
    higher_is_better: bool = True
    tie_averaged: Mapping[str, float] | None = None
    by: Measure | None = None


class CompareOptions(TypedDict, total=False):
    """Arguments of comparisons of values."""

    baseline: str | None
    test: Test
    correction: Correction | None
    margin: float | None
    random_state: RandomState
    query_ids: Sequence[Any] | np.ndarray | None


def compare_values(
    per_query: Mapping[str, np.ndarray],
    *,
    measure: str = "",
    convention: str = "",
    higher_is_better: bool = True,
    tie_averaged: Mapping[str, float] | None = None,
    **options: Unpack[CompareOptions],
) -> Comparison:
    """Compare rankers by their values (m,) on the same queries in the same order; see `Experiment.compare`.

    `options` are `baseline`, `test`, `correction`, `margin`, `random_state` and `query_ids`. With
    `higher_is_better=False` (errors), the lower value wins a query, and its difference is positive.

    Examples
    --------
    >>> values = {"old": np.array([0.2, 0.4, 0.1, 0.5, 0.3, 0.2]), "new": np.array([0.3, 0.6, 0.4, 0.6, 0.5, 0.3])}
    >>> pair = compare_values(values, test="t").pairs[0]
    >>> pair.a, round(pair.difference, 4), round(pair.low, 4), round(pair.high, 4), pair.p < 0.05
    ('new', 0.1667, 0.081, 0.2524, True)
    """
    values = MeasuredValues(per_query, measure, convention, higher_is_better, tie_averaged)
    return compare_measures([values], **options)[0]


def compare_measures(
    measured: Sequence[MeasuredValues],
    *,
    baseline: str | None = "first",
    test: str = "randomisation",
    correction: str | None = None,
    margin: float | None = None,
    random_state: RandomState = 0,
    query_ids: Sequence[Any] | np.ndarray | None = None,
    history: History | None = None,
    judgements: Judgements | None = None,
    rope: float | None = None,
    cite: bool = False,
) -> list[Comparison]:
    """Compare rankers on the same queries by each measure; p is corrected for all pairs and measures.

    With a `history` and the queries' `judgements`, p and intervals belong to the next look at these queries.
    """
    check_choice(test, "test", TESTS)
    correction = ("max-t" if test in OF_MEANS else "holm") if correction is None else correction
    check_choice(correction, "correction", CORRECTIONS)
    if correction == "max-t" and test not in OF_MEANS:
        raise InvalidInputError(
            f"correction 'max-t' requires test 'randomisation' or 't', got {test!r}. Choose correction 'holm'",
            argument="correction",
        )
    if margin is not None and test not in OF_MEANS:
        raise InvalidInputError(f"margin requires test 'randomisation' or 't', got {test!r}", argument="margin")
    margin = checked_margin(margin)
    names = list(measured[0].per_query)
    if baseline == "first" and "first" not in names:
        baseline = names[0]
    places = _places(names, baseline)
    looked: AbstractContextManager[tuple[int, float]] = nullcontext((1, LEVEL))
    if history is not None and judgements is not None:
        own = {f"{one.measure}, {one.convention}": one.per_query for one in measured}
        tested = sorted(sorted((names[a], names[b])) for a, b in places)
        looked = history.looking(judgements, own, tested, test, correction, margin)
    with looked as (look, level):
        pairs_of = partial(_compared_pairs, measured, places, test, correction, margin, random_state, level)
        pairs, smallest, n_resamples, divided = pairs_of()
    found = []
    for number, (one, own_pairs) in enumerate(zip(measured, pairs)):
        means, intervals = dict[str, float](), dict[str, Interval]()
        for name, given in one.per_query.items():
            values = np.asarray(given, dtype=np.float64)
            means[name], intervals[name] = mean_of(values), measure_interval(one.by, values)
        found.append(
            Comparison(
                one.measure, one.convention, test, correction, baseline, means, dict(one.per_query), intervals,
                own_pairs, n_resamples, None if query_ids is None else list(map(str, query_ids)),
                dict(one.tie_averaged or {}), one.higher_is_better, smallest, len(places) * len(measured), divided,
                pairs_of, number, by=one.by, look=look, level=level, rope=rope, cite=cite, seed=random_state,
            )
        )  # fmt: skip
    return found


def _places(names: list[str], baseline: str | None) -> list[tuple[int, int]]:
    """Return the indices of the rankers of each pair: each ranker against the baseline, or all pairs for None."""
    if len(names) < 2:
        raise InvalidInputError(f"a comparison requires at least two rankers, got {len(names)}", code="one-ranker")
    if baseline is None:
        return list(combinations(range(len(names)), 2))
    if baseline not in names:
        raise InvalidInputError(
            f"there is no ranker {baseline!r}. Choose the baseline among: {', '.join(names)}", argument="baseline"
        )
    against = names.index(baseline)
    return [(place, against) for place in range(len(names)) if place != against]


def _compared_pairs(
    measured: Sequence[MeasuredValues],
    places: list[tuple[int, int]],
    test: str,
    correction: str,
    margin: float | None,
    random_state: RandomState,
    level: float,
    without: int | None = None,
) -> tuple[list[list[PairComparison]], float, int, bool]:
    """Return pairs by measure, the smallest possible p, the number of resamples, and if Holm has a share of the level.

    `without` is the index of a query to leave out.
    """
    names = list(measured[0].per_query)
    d, losses_of_one = _differences(measured, places, margin, without)
    k = d.shape[1]
    family_of = np.repeat(np.arange(len(measured)), len(places))
    family, joint, n_resamples = None, None, resamples_for(1 if correction == "max-t" else k, level)
    if correction == "max-t" and k > 1:
        family = divided_step_down(d, family_of, level=level, random_state=random_state)
        joint = simultaneous_intervals(d, family_of, level=1.0 - level, random_state=random_state)
        n_resamples = family.n_resamples
    own = None if family is None else family.p
    tested = paired_tests(test, d, n_resamples=n_resamples, random_state=random_state, own=own, level=level)
    sampled = test == "randomisation" and 2 ** len(d) > n_resamples
    adjusted, error, smallest = _corrected(tested, correction, sampled, family)
    looks = LEVEL / level  # p is compared with 0.05 at every look
    adjusted, error, smallest = np.minimum(1.0, looks * adjusted), looks * error, looks * smallest
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = np.where(tested.mean == 0, 0.0, tested.mean / tested.deviation)
    effect[tested.topics < 2] = math.nan
    wins, losses = (d > 0).sum(axis=0), (d < 0).sum(axis=0)
    shares = np.full(k, level if correction == "none" else level / k)
    if family is not None:
        h = int(np.count_nonzero(wins + losses))
        shares = np.where(small_and_steady(d, family_of) | (h < 2), own_level(h, level, family.divided), 0.0)
    detectable = detectable_differences(d, shares, critical=None if joint is None else joint.critical)
    figures = (
        tested.topics, tested.mean, tested.low, tested.high, wins, losses, tested.topics - wins - losses, tested.p,
        adjusted, detectable, effect, error,
    )  # fmt: skip
    low, high = (tested.low, tested.high) if joint is None else joint[:2]
    together = joint is not None or (k == 1 and test in OF_MEANS)
    pairs = []
    for k, ((i, j), row, *ends) in enumerate(
        zip(places * len(measured), zip(*map(np.ndarray.tolist, figures)), low, high)
    ):
        decided = None
        if margin is not None:
            found = Interval(*row[1:4]), row[8] / looks, row[0], tested.deviation[k].item()
            decided = Verdict(*found, margin, losses_of_one[k], level)
        simultaneous = Interval(row[1], *map(float, ends)) if together else None
        pairs.append(PairComparison._make((names[i], names[j], *row, decided, simultaneous)))
    n = len(places)
    by_measure = [pairs[k : k + n] for k in range(0, len(pairs), n)]
    return by_measure, min(1.0, smallest), tested.n_resamples, family is None or family.divided


def _differences(
    measured: Sequence[MeasuredValues], places: list[tuple[int, int]], margin: float | None, without: int | None
) -> tuple[np.ndarray, list[float | None]]:
    """Return differences (queries, pairs of all measures), positive where the first is better; losses with a margin.

    A loss is the loss on one query that fails (`failing_loss`).
    """
    first, second = np.array(places).T
    columns, losses = [], list[float | None]()
    for one in measured:
        sign = 1.0 if one.higher_is_better else -1.0  # more is better
        values = sign * as_values(one.per_query)
        values = values if without is None else np.delete(values, without, axis=1)
        columns.append(differences_of(values[first], values[second]))
        if margin is not None:
            rises = one.higher_is_better
            losses += [failing_loss(values[j], values[i], one.by) if rises else None for i, j in places]
    return np.concatenate(columns).T, losses


def _corrected(
    tested: Paired, correction: str, sampled: bool, family: Family | None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return p corrected for all pairs (k,), its standard error from resampling (k,), and the smallest possible p."""
    known = np.nan_to_num(tested.p, nan=1.0)
    smallest = float(tested.smallest.min())
    if family is not None:  # by signs, whatever the test of a pair alone
        return np.where(np.isnan(tested.p), np.nan, family.p_adjusted), family.error, max(smallest, family.smallest)
    error = np.sqrt(known * (1.0 - known) / tested.n_resamples) if sampled else np.zeros(len(known))
    if correction == "max-t":  # a single comparison
        return tested.p, error, smallest
    adjusted = _CORRECTIONS[correction](known)
    error *= np.divide(adjusted, known, out=np.ones(len(known)), where=known > 0)
    smallest *= 1 if correction in ("none", "benjamini-hochberg") else len(known)
    return np.where(np.isnan(tested.p), np.nan, adjusted), error, smallest


def as_values(per_query: Mapping[str, ArrayLike]) -> np.ndarray:
    """Return the values of rankers by query, float64 (rankers, m)."""
    values = [as_sample(own, name, nan=True) for name, own in per_query.items()]
    if len(set(map(len, values))) > 1:
        lengths = ", ".join(f"{name} {len(own)}" for name, own in zip(per_query, values))
        raise InvalidInputError(f"a comparison requires the same queries for every ranker, got {lengths} values")
    return np.array(values)


def resamples_for(n_tests: int, level: float = 0.05) -> int:
    """Return the resamples with which the smallest p times the number of tests is half the level (10,000 to 400,000).

    The smallest p of B resamples is 1/(B + 1), and Holm multiplies it by the number of tests. Fewer resamples cannot
    show significance.

    >>> resamples_for(1), resamples_for(4950)
    (10000, 198000)
    """
    return int(min(MOST, max(FEWEST, math.ceil(2 * n_tests / level))))
