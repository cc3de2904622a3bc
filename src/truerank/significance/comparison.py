"""Compare several rankers on the same queries: wins and losses, a test, a correction for the family."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError
from truerank.core.printing import Tabular, styled_table, table
from truerank.data.ranking_data import Judgements
from truerank.io.trec import as_qrels, judge_run
from truerank.measures import DEFAULT_CONVENTION, mean_of, parse_measures
from truerank.measures.base import Measure
from truerank.measures.evaluation import is_qrels, judged, runs_by_name, scores_in_order
from truerank.significance.corrections import benjamini_hochberg, bonferroni, holm
from truerank.significance.intervals import Interval, bootstrap_interval, smallest_detectable_difference
from truerank.significance.pairwise import (
    effect_size,
    groups_alike,
    pairwise_bootstrap,
    pairwise_randomisation,
    resamples_for,
    tukey_hsd,
)
from truerank.significance.two_samples import (
    Outcome,
    paired_differences,
    paired_t,
    randomisation,
    sign_test,
    wilcoxon,
    win_loss,
)

TESTS = ("randomisation", "t", "wilcoxon", "sign")
_CORRECTIONS: dict[str, Callable[[Any], np.ndarray]] = {
    "holm": holm,
    "bonferroni": bonferroni,
    "benjamini-hochberg": benjamini_hochberg,
    "none": lambda p: np.asarray(p, dtype=np.float64),
}
CORRECTIONS = (*_CORRECTIONS, "tukey")
LEVEL = 0.05
_MOVED_BY_TIES = 0.0005  # a unit of the fourth digit moves by rounding alone


class PairComparison(NamedTuple):
    """Ranker `a` against ranker `b`: `wins` counts the queries on which `a` has the better value.

    `difference` is the mean of a's values less b's (b's less a's where less is better, so that gains are positive) over
    the `queries` that both have a value for, with its bootstrap interval `low` to `high`; `detectable` the smallest
    true difference that a paired t-test on them would find four times in five; `effect` is Cohen's d of the paired
    values.
    """

    a: str
    b: str
    queries: int
    difference: float
    low: float
    high: float
    wins: int
    losses: int
    ties: int
    p: float
    p_adjusted: float
    detectable: float
    effect: float

    def cells(self) -> tuple[str, str, str]:
        """As tables show it: the rankers, the difference with its interval, wins/losses/ties with ** below .05."""
        return (
            f"{self.a} against {self.b}",
            f"{self.difference:+.4f} [{self.low:+.4f}, {self.high:+.4f}]",
            f"{self.wins}/{self.losses}/{self.ties}{'**' if self.p_adjusted < LEVEL else ''}",
        )


@dataclass(repr=False, eq=False)
class Comparison(Tabular):
    """What `compare_rankers` found.

    Attributes
    ----------
    measure, convention, test, correction : str
    baseline : str or None
        None where every pair was compared.
    means : dict of str to float
        Mean of each ranker.
    per_query : dict of str to float64 array (m,)
    intervals : dict of str to Interval
        Bootstrap interval of each mean.
    pairs : list of PairComparison
    n_resamples : int
        Of the randomisation test, the more the more pairs, so that a correction can still show something.
    query_ids : list of str or None
    tie_averaged : dict of str to float
        Mean of each ranker over all orders of its tied documents, where it is known; the tables show it beside the mean
        where they differ by more than .0005 for some ranker, because the convention's rule for ties then decides.
    """

    measure: str
    convention: str
    test: str
    correction: str
    baseline: str | None
    means: dict[str, float]
    per_query: dict[str, np.ndarray]
    intervals: dict[str, Interval]
    pairs: list[PairComparison]
    n_resamples: int
    query_ids: list[str] | None
    tie_averaged: dict[str, float]
    higher_is_better: bool

    @property
    def smallest_p(self) -> float:
        """The smallest adjusted p that the test could give here; above .05 nothing can be shown."""
        # Of the 2^n ways to swap n queries' values two are extreme; of Tukey's (k (k - 1))^n, k (k - 1) are.
        n_queries = max(pair.queries for pair in self.pairs)
        if self.correction == "tukey":
            k = len(self.per_query)
            return max(1 / 10_001, float(k * (k - 1)) ** (1 - n_queries))
        if self.test in ("t", "wilcoxon"):  # continuous, or approximated by what is
            return 0.0
        smallest = 2.0 ** (1 - n_queries)
        if self.test == "randomisation":
            smallest = max(smallest, 1 / (self.n_resamples + 1))
        family = 1 if self.correction in ("none", "benjamini-hochberg") else len(self.pairs)
        return min(1.0, family * smallest)

    @cached_property
    def groups(self) -> list[list[str]]:
        """Rankers that cannot be told apart, by falling mean; empty where not all pairs were tested."""
        names = list(self.means)
        if self.baseline is not None and len(names) > 2:
            return []
        different = np.zeros((len(names), len(names)), dtype=bool)
        for pair in self.pairs:
            first, second = names.index(pair.a), names.index(pair.b)
            different[first, second] = different[second, first] = pair.p_adjusted < LEVEL
        means = [self._sign * mean for mean in self.means.values()]
        return [[names[i] for i in group] for group in groups_alike(means, different)]

    @property
    def _sign(self) -> float:
        return 1.0 if self.higher_is_better else -1.0

    def ties_matter(self) -> bool:
        """Whether averaging over the orders of tied documents moves some ranker's mean by more than .0005."""
        return any(abs(mean - self.means[name]) > _MOVED_BY_TIES for name, mean in self.tie_averaged.items())

    def moved_most(self, a: str, b: str, n: int = 3) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
        """The queries on which `a` gains most against `b`, and loses most, with the differences; at most `n` each."""
        ours, theirs = (np.asarray(self.per_query[name], dtype=np.float64) for name in (a, b))
        difference = self._sign * (ours - theirs)
        labels = self.query_ids or [str(i) for i in range(len(difference))]
        there = np.flatnonzero(~np.isnan(difference) & (difference != 0))
        order = there[np.argsort(-difference[there], kind="stable")]
        gains = [(labels[i], float(difference[i])) for i in order[:n] if difference[i] > 0]
        losses = [(labels[i], float(difference[i])) for i in order[::-1][:n] if difference[i] < 0]
        return gains, losses

    def to_dict(self) -> dict[str, Any]:
        """What `truerank compare --json` prints."""
        return {
            "baseline": self.baseline,
            "measure": self.measure,
            "convention": self.convention,
            "test": self.test,
            "correction": self.correction,
            "means": self.means,
            "tie_averaged": self.tie_averaged,
            "intervals": {name: [interval.low, interval.high] for name, interval in self.intervals.items()},
            "smallest_p": self.smallest_p,
            "groups": self.groups,
            "pairs": [pair._asdict() | self._moved(pair) for pair in self.pairs],
        }

    def _moved(self, pair: PairComparison) -> dict[str, Any]:
        if self.query_ids is None:
            return {}
        gains, losses = self.moved_most(pair.a, pair.b)
        return {"gains": gains, "losses_most": losses}

    def systems_table(self, style: str = "text") -> str:
        """The rankers, the best mean first: interval, groups, and what the comparison with the baseline says.

        Parameters
        ----------
        style : {"text", "markdown", "latex", "html"}
        """
        against = {pair.a: pair for pair in self.pairs} if self.baseline is not None else {}
        letters = dict.fromkeys(self.means, "")
        for number, group in enumerate(self.groups):
            for name in group:
                letters[name] += ("," if letters[name] else "") + _letter(number)
        ties = self.ties_matter()
        header = ["", "ranker", self.measure or "mean", *(["ties averaged"] if ties else []), "95% interval"]
        header += ["alike"] if self.groups else []
        header += ["difference, 95%", "W/L/T", "p", f"p, {self.correction}", "effect d"] if against else []
        rows: list[list[Any]] = []
        for place, name in enumerate(sorted(self.means, key=lambda one: -self._sign * self.means[one]), 1):
            interval, pair = self.intervals[name], against.get(name)
            row: list[Any] = [place, name, self.means[name], *([self.tie_averaged.get(name)] if ties else [])]
            row += [f"[{interval.low:.4f}, {interval.high:.4f}]"]
            row += [letters[name]] if self.groups else []
            if against and pair is None:
                row += ["(baseline)", "", None, None, None]
            elif pair is not None:
                row += [*pair.cells()[1:], pair.p, pair.p_adjusted, pair.effect]
            rows.append(row)
        return styled_table(rows, header, style)

    def pairs_table(self, style: str = "text") -> str:
        """The pairs that were compared, as `systems_table`."""
        rows = [[*pair.cells(), pair.p, pair.p_adjusted, pair.effect, pair.detectable] for pair in self.pairs]
        header = ["rankers", "difference, 95%", "W/L/T", "p", f"p, {self.correction}", "effect d", "shows"]
        return styled_table(rows, header, style)

    def _table(self, style: str) -> str:
        return self.systems_table(style)

    def __str__(self) -> str:
        rows = [
            [
                rankers,
                self.means[pair.a],
                self.means[pair.b],
                difference,
                f"{pair.wins}/{pair.losses}{'**' if pair.p_adjusted < LEVEL else ''}",
                pair.ties,
                pair.p,
                pair.p_adjusted,
                pair.detectable,
            ]
            for pair in self.pairs
            for rankers, difference, _ in [pair.cells()]
        ]
        header = ["rankers", "mean", "against", "difference, 95%", "wins/losses", "ties", "p", f"p, {self.correction}"]
        return table(rows, [*header, "shows"])

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.per_query)}; {self.measure}, {self.test})"


class Comparisons(Tabular, dict[str, Comparison]):
    """Comparisons of the same rankers by several measures, by their names; p-values are corrected within each."""

    def _table(self, style: str) -> str:
        rows = [
            [measure, rankers, one.means[pair.a], one.means[pair.b], difference, record, pair.p, pair.p_adjusted]
            for measure, one in self.items()
            for pair in one.pairs
            for rankers, difference, record in [pair.cells()]
        ]
        correction = next(iter(self.values())).correction
        header = ["measure", "rankers", "mean", "against", "difference, 95%", "W/L/T", "p", f"p, {correction}"]
        return styled_table(rows, header, style)


def compare_rankers(
    y: Any,
    scores: Any,
    *,
    qid: Any = None,
    doc_ids: Any = None,
    measure: Any = "nDCG@10",
    baseline: str | None = "first",
    test: str = "randomisation",
    correction: str = "holm",
    convention: str | None = None,
    random_state: Any = 0,
) -> Any:
    """Compare rankers by their scores of the same judged documents, or runs over the same qrels.

    Parameters
    ----------
    y : array-like (n,), RankingData, ClusterRankingData or Judgements; or qrels
        As for `evaluate`.
    scores : mapping of name to array-like (n,); with qrels runs by name, or a list of them
        A query that a run lacks counts 0, unless the measure says `missing_topics='skip'`.
    qid : array-like (n,), optional
        None means one query (on which no test can show anything).
    doc_ids : array-like (n,) of str, optional
        Break ties under `trec`.
    measure : str, Measure or callable; or several: "AP nDCG@10", or a list
    baseline : str or None
        Every other ranker is compared with this one, by default the first of `scores`; None compares all pairs.
    test : {"randomisation", "t", "wilcoxon", "sign"}
    correction : {"holm", "bonferroni", "benjamini-hochberg", "tukey", "none"}
        Of the p-values of all pairs compared; "tukey" is Tukey's HSD by randomisation, over all rankers.
    convention : str, optional
        By default ranklib for rows and trec for runs.
    random_state : seed of the randomisation test and the bootstrap

    Returns
    -------
    Comparison, or Comparisons of several measures by name
        Prints as a table, with ** after wins/losses where the adjusted p is below .05; `.pairs` holds each comparison.
        `to_markdown()`, `to_latex()`.

    Examples
    --------
    >>> y, qid = [1, 0, 1, 0, 1, 0], [1, 1, 2, 2, 3, 3]
    >>> result = compare_rankers(y, {"old": [1, 2, 1, 2, 1, 2], "new": [2, 1, 2, 1, 1, 2]}, qid=qid, measure="RR")
    >>> pair = result.pairs[0]
    >>> pair.a, pair.b, pair.wins, pair.losses, pair.ties
    ('new', 'old', 2, 0, 1)
    >>> compare_rankers(y, {"old": [1] * 6, "new": y}, qid=qid, measure="RR P@1")["P@1"].means["new"]
    1.0
    """
    if getattr(y, "is_cluster_data", False):
        if not isinstance(scores, Mapping):
            raise InvalidInputError("compare_rankers takes rankers, or lists of scores, by name: {'ranker': scores, …}")
        y, scores = y.judgements(), {name: y.grouped_scores(one) for name, one in scores.items()}
    if is_qrels(y):
        runs = runs_by_name(scores)
        if runs is None:
            raise InvalidInputError("compare_rankers takes runs by name: {'bm25': run, …}")
        measures = over_all_topics(parse_measures(measure, convention or "trec"))
        qrels = as_qrels(y)
        found = {name: judge_run(qrels, run) for name, run in runs.items()}
        strange = next((name for name, (_, values) in found.items() if not len(values)), None)
        if strange is not None:
            raise InvalidInputError(f"run {strange!r} and the qrels share no topic; they do not belong together")
        judgements = next(iter(found.values()))[0]
    else:
        if not isinstance(scores, Mapping):
            raise InvalidInputError("compare_rankers takes scores by name: {'ranker': scores, …}")
        measures = parse_measures(measure, convention or DEFAULT_CONVENTION)
        judgements, order = judged(y, qid, doc_ids)
        found = {
            str(name): (judgements, scores_in_order(given, judgements, order, f"scores of {name!r}"))
            for name, given in scores.items()
        }
    compared = Comparisons(
        {
            name: compare_judged(
                one, found, measure=one.name, baseline=baseline, test=test, correction=correction,
                random_state=random_state, query_ids=judgements.query_ids,
            )
            for name, one in measures.items()
        }
    )  # fmt: skip
    several = len(compared) > 1 or isinstance(measure, list | tuple)
    return compared if several else next(iter(compared.values()))


def over_all_topics(measures: Mapping[str, Measure]) -> dict[str, Measure]:
    """The measures by which runs are compared: a topic that a run lacks counts 0, unless a measure itself skips it."""
    return {
        name: measure if measure.gives("missing_topics") else measure(missing_topics="zero")
        for name, measure in measures.items()
    }


def compare_judged(by: Measure, judged: Mapping[str, tuple[Judgements, np.ndarray]], **options: Any) -> Comparison:
    """As `compare_values`, from judgements and scores by ranker; an error for a measure that is no mean over queries.

    Means over all orders of tied documents are left out where the measure has no closed form of them, or is one.
    """
    by.check_mean()

    def values(measure: Measure) -> dict[str, np.ndarray]:
        return {name: measure.per_query(*one) for name, one in judged.items()}

    averaged = by(ties="average") if by.TIE_AVERAGE and by.setting("ties") != "average" else None
    ties = {} if averaged is None else {name: mean_of(own) for name, own in values(averaged).items()}
    return compare_values(
        values(by), convention=by.convention, higher_is_better=by.higher_is_better, tie_averaged=ties, **options
    )


def compare_values(
    per_query: Mapping[str, np.ndarray],
    *,
    baseline: str | None = "first",
    measure: str = "",
    convention: str = "",
    test: str = "randomisation",
    correction: str = "holm",
    random_state: Any = 0,
    query_ids: Sequence[Any] | np.ndarray | None = None,
    higher_is_better: bool = True,
    tie_averaged: Mapping[str, float] | None = None,
) -> Comparison:
    """As `compare_rankers`, from per-query values (m,) by ranker that stand in the same order of queries.

    `tie_averaged` holds the means over all orders of tied documents.
    With `higher_is_better=False` (`pairs(2,0)` and other errors) wins, and differences above 0, are where `a` is lower.
    """
    check_choice(test, "test", TESTS)
    check_choice(correction, "correction", CORRECTIONS)
    names = list(per_query)
    if len(names) < 2:
        raise InvalidInputError(f"a comparison needs at least two rankers, got {len(names)}")
    if baseline == "first" and "first" not in per_query:
        baseline = names[0]
    if baseline is None:
        places = list(combinations(range(len(names)), 2))
    elif baseline in names:
        against = names.index(baseline)
        places = [(place, against) for place in range(len(names)) if place != against]
    else:
        raise InvalidInputError(f"baseline {baseline!r} is none of {', '.join(names)}")
    values = {name: np.asarray(own, dtype=np.float64) for name, own in per_query.items()}
    n_resamples = resamples_for(len(places))
    more = values if higher_is_better else {name: -own for name, own in values.items()}  # of which more is better
    return Comparison(
        measure, convention, test, correction, baseline,
        means={name: mean_of(own) for name, own in values.items()},
        per_query=dict(per_query),
        intervals={name: _interval(own, random_state) for name, own in values.items()},
        pairs=_compared_pairs(more, places, test, correction, n_resamples, random_state),
        n_resamples=n_resamples,
        query_ids=None if query_ids is None else [str(name) for name in query_ids],
        tie_averaged=dict(tie_averaged or {}),
        higher_is_better=higher_is_better,
    )  # fmt: skip


def _compared_pairs(
    values: dict[str, np.ndarray],
    places: list[tuple[int, int]],
    test: str,
    correction: str,
    n_resamples: int,
    random_state: Any,
) -> list[PairComparison]:
    """The pairs at these places of the rankers, more of whose values (m,) is better."""
    names, complete = list(values), _complete(list(values.values()))
    chosen = [(names[first], names[second]) for first, second in places]
    if test == "randomisation" and complete is not None:
        tested = pairwise_randomisation(complete, places, n_resamples=n_resamples, random_state=random_state)
    else:
        tested = np.array([_tested(test, values[a], values[b], n_resamples, random_state).p for a, b in chosen])
    if correction != "tukey":
        adjusted = _CORRECTIONS[correction](tested)
    elif complete is not None:
        adjusted = tukey_hsd(complete, places, random_state=random_state)
    else:
        raise InvalidInputError(
            "Tukey's HSD needs a value of every ranker for every query; these skip different queries: choose another "
            "correction, or a measure with missing_topics='zero'"
        )
    if complete is not None:
        ends = np.stack(pairwise_bootstrap(complete, places, random_state=random_state), axis=1)
    else:
        options: dict[str, Any] = {"n_resamples": 2_000, "random_state": random_state}
        ends = np.array([bootstrap_interval(values[a], values[b], **options)[1:] for a, b in chosen])
    pairs = []
    for (a, b), (low, high), p, p_adjusted in zip(chosen, ends.tolist(), tested.tolist(), adjusted.tolist()):
        both = values[a], values[b]
        difference = paired_differences(*both)
        one = PairComparison(
            a, b, len(difference), float(difference.mean()), low, high, *win_loss(*both), p, p_adjusted,
            smallest_detectable_difference(*both), effect_size(*both),
        )  # fmt: skip
        pairs.append(one)
    return pairs


def _complete(values: list[np.ndarray]) -> np.ndarray | None:
    """Values (k, m) of the queries that all rankers have a value for; None where they skip different ones."""
    if len({np.shape(one) for one in values}) > 1:
        return None  # the first pair's test says what is wrong
    matrix = np.array(values, dtype=np.float64)
    skipped = np.isnan(matrix)
    if matrix.ndim != 2 or (skipped != skipped[0]).any() or np.isinf(matrix).any() or skipped.all():
        return None
    return np.ascontiguousarray(matrix[:, ~skipped[0]])


def _interval(values: np.ndarray, random_state: Any) -> Interval:
    if np.isnan(values).all():
        return Interval(0.0, 0.0, 0.0)
    return bootstrap_interval(values, n_resamples=2_000, random_state=random_state)


def _letter(number: int) -> str:
    """a … z, then a1 … z1, a2 …"""
    return chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")


def _tested(test: str, a: np.ndarray, b: np.ndarray, n_resamples: int, random_state: Any) -> Outcome:
    if test == "randomisation":
        return randomisation(a, b, n_resamples=n_resamples, random_state=random_state)
    return {"t": paired_t, "wilcoxon": wilcoxon, "sign": sign_test}[test](a, b)
