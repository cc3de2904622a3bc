"""Compare several rankers on the same queries: differences, intervals, p-values, and their correction."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError
from truerank.core.printing import Tabular, counted, styled_table
from truerank.core.types import ArrayLike, MeasureLike, RandomState
from truerank.data.ranking_data import Judgements
from truerank.data.row_source import RowSource
from truerank.io.trec import as_qrels, judge_run
from truerank.measures import DEFAULT_CONVENTION, mean_of, parse_measures
from truerank.measures.base import Measure
from truerank.measures.conventions import titled
from truerank.measures.coverage import over_topics, settle_topics
from truerank.measures.evaluation import is_qrels, judged, runs_by_name, scores_in_order
from truerank.significance.corrections import benjamini_hochberg, bonferroni, holm
from truerank.significance.families import step_down_max_t
from truerank.significance.intervals import Interval, mean_interval, measure_interval
from truerank.significance.paired import LEVEL, OF_MEANS, TESTS, Paired, paired_tests
from truerank.significance.pairwise import groups_alike, resamples_for
from truerank.significance.power import detectable_differences
from truerank.significance.signs import smallest_p
from truerank.significance.two_samples import as_sample
from truerank.significance.verdicts import Verdict, checked_margin

_CORRECTIONS: dict[str, Callable[[Any], np.ndarray]] = {
    "holm": holm,
    "bonferroni": bonferroni,
    "benjamini-hochberg": benjamini_hochberg,
    "none": lambda p: np.asarray(p, dtype=np.float64),
}
CORRECTIONS = ("max-t", *_CORRECTIONS)
_INTERVAL_OF = {"sign": "share of wins", "wilcoxon": "pseudo-median"}
_MOVED_BY_TIES = 0.0005  # the fourth digit may change by rounding alone


class PairComparison(NamedTuple):
    """The comparison of ranker `a` with ranker `b`.

    The interval from `low` to `high` is of this pair alone and agrees with `p`; NaN if there is none. It is the 95 %
    interval of the mean difference, of the share of wins (sign test) or of the pseudo-median (Wilcoxon's test).
    `detectable` is the true difference that a paired t-test finds with 80 % power, at 0.05 divided by the number of
    comparisons: the power of `queries_needed`. `detectable` is NaN if fewer than five queries differ.
    """

    a: str
    b: str
    queries: int  # for which both rankers have a value
    difference: float  # mean, positive where `a` is better
    low: float
    high: float
    wins: int  # queries on which `a` is better
    losses: int
    ties: int
    p: float  # of this pair alone
    p_adjusted: float  # corrected for all comparisons
    detectable: float
    effect: float  # Cohen's d: mean difference over the standard deviation of the differences
    error: float = 0.0  # Monte Carlo standard error of `p_adjusted`
    verdict: Verdict | None = None  # None without a margin

    def cells(self, test: str = "randomisation") -> tuple[str, ...]:
        """Return the rankers, the difference, its interval, and wins/losses/ties; see `Comparison.columns`."""
        sign = "" if test == "sign" else "+"
        interval = "" if math.isnan(self.low) else f"[{self.low:{sign}.4f}, {self.high:{sign}.4f}]"
        figures = [f"{self.difference:+.4f} {interval}".rstrip()]
        if test not in OF_MEANS:
            figures = [f"{self.difference:+.4f}", interval]
        return (f"{self.a} against {self.b}", *figures, f"{self.wins}/{self.losses}/{self.ties}")

    @property
    def marked(self) -> str:
        """The adjusted p, with ** if it is below 0.05; empty if there is none."""
        return "" if math.isnan(self.p_adjusted) else f"{self.p_adjusted:.4f}{'**' if self.p_adjusted < LEVEL else ''}"


class Influence(NamedTuple):
    """A pair without one query: its difference and adjusted p, and whether p `changes` to the other side of 0.05."""

    query: str
    difference: float
    p_adjusted: float
    changes: bool


class MeasuredValues(NamedTuple):
    """Values of one measure by ranker and query, for `compare_measures`; `tie_averaged` is that of `Comparison`.

    Intervals of means end at the limits of `by`, as those of `evaluate` do.
    """

    per_query: Mapping[str, np.ndarray]
    measure: str = ""
    convention: str = ""
    higher_is_better: bool = True
    tie_averaged: Mapping[str, float] | None = None
    by: Measure | None = None


@dataclass(repr=False, eq=False)
class Comparison(Tabular):
    """The result of `compare_rankers`.

    `tie_averaged` holds the mean of each ranker over all orders of its tied documents, if it is known. Tables show it
    if it differs from the mean by more than 0.0005 for some ranker, which then depends on the convention's rule for
    ties. `smallest_p` is the smallest adjusted p that the numbers of nonzero differences and comparisons allow.
    """

    measure: str
    convention: str
    test: str
    correction: str
    baseline: str | None  # None if every pair was compared
    means: dict[str, float]  # by ranker
    per_query: dict[str, np.ndarray]  # float64 (m,) by ranker
    intervals: dict[str, Interval]  # Student's, of each mean
    pairs: list[PairComparison]
    n_resamples: int  # random signs, or all 2^n of them; with Holm and Bonferroni more for more pairs
    query_ids: list[str] | None
    tie_averaged: dict[str, float]
    higher_is_better: bool
    smallest_p: float
    n_comparisons: int  # that p is corrected for: pairs times measures
    _again: Callable[[int], list[PairComparison]] = field(repr=False)
    about: str = ""  # printed below the table

    @property
    def interval_of(self) -> str:
        """The quantity of the intervals: mean difference, share of wins or pseudo-median."""
        return _INTERVAL_OF.get(self.test, "mean difference")

    @property
    def columns(self) -> list[str]:
        """Headings of `PairComparison.cells`, without the first."""
        if self.test in OF_MEANS:
            return ["difference, 95%", "W/L/T"]
        return ["difference", f"{self.interval_of}, 95%", "W/L/T"]

    @property
    def counted(self) -> str:
        """The number of comparisons in words, such as "6 comparisons (3 pairs × 2 measures)"."""
        n, pairs = self.n_comparisons, len(self.pairs)
        text = counted(n, "comparison")
        return text if n == pairs else f"{text} ({counted(pairs, 'pair')} × {n // pairs} measures)"

    @property
    def caption(self) -> str:
        """Measure, convention, queries, test and correction."""
        about = f"{self.measure or 'values'}, convention {titled(self.convention)}" if self.convention else self.measure
        return f"{about}; {self.method}".removeprefix("; ")

    @property
    def method(self) -> str:
        """The caption without the measure and its convention."""
        return f"{self.tested}; intervals are of each pair alone"

    @property
    def tested(self) -> str:
        """Queries, test and correction."""
        queries = sorted(pair.queries for pair in self.pairs)
        count = ("" if queries[0] == queries[-1] else f"{queries[0]} to ") + counted(queries[-1], "query")
        name = "max-T" if self.correction == "max-t" else self.correction
        corrected = "p not corrected" if name == "none" else f"p corrected by {name}"
        return (
            f"{count}; {self.test} test, two-sided"
            + (f" ({self.n_resamples} resamples)" if self.test == "randomisation" else "")
            + f"; {corrected} for {self.counted}, ** where it is below 0.05"
        )

    def remarks(self) -> list[str]:
        """Return at most 30 sentences on pairs without an interval, and on p that another seed may move across 0.05."""
        lines = []
        for pair in self.pairs:
            count = pair.wins + pair.losses
            differ = f"{count} of {counted(pair.queries, 'query')} differ{'s' * (pair.queries == 1)}"
            if not count:
                differ = "no query differs"
            elif math.isinf(pair.effect):
                differ = f"all {pair.queries} queries differ by the same amount"
            if math.isnan(pair.low):
                lacks = "no p and no interval" if math.isnan(pair.p) else "no interval"
                lines.append(f"{pair.a} against {pair.b} has {lacks}: {differ}")
            if pair.error and abs(pair.p_adjusted - LEVEL) < 2.0 * pair.error:
                lines.append(
                    f"{pair.a} against {pair.b}: the Monte Carlo error of the corrected p {pair.p_adjusted:.4f} is "
                    f"{pair.error:.4f}; another seed may give a p on the other side of 0.05"
                )
        return lines[:30]

    def influence(self, a: str, b: str) -> Influence | None:
        """Compare `a` with `b` without the single query that matters most; all comparisons are tested again without it.

        This is the query without which Student's t is nearest to 0 if the adjusted p is below 0.05, else farthest from
        0. The result is None for fewer than three queries, and if only this query has a value in another comparison.
        """
        index = next((i for i, pair in enumerate(self.pairs) if {pair.a, pair.b} == {a, b}), None)
        if index is None:
            raise InvalidInputError(f"{a!r} and {b!r} were not compared")
        pair, flip = self.pairs[index], 1.0 if self.pairs[index].a == a else -1.0
        d = self._differences(pair.a, pair.b)
        known = np.flatnonzero(~np.isnan(d))
        if len(known) < 3:
            return None
        shown = pair.p_adjusted < LEVEL
        own, n = d[known], len(known)
        centred = own - own.mean()
        means = (own.sum() - own) / (n - 1)
        variances = np.maximum(centred @ centred - centred**2 * n / (n - 1), 0.0) / (n - 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.nan_to_num(np.abs(means) / np.sqrt(variances))  # without each query, but for a factor
        left_out = int(known[np.argmin(t) if shown else np.argmax(t)])
        try:
            found = self._again(left_out)[index]
        except InvalidInputError:  # another comparison of the family has a value for this query alone
            return None
        query = str(left_out) if self.query_ids is None else self.query_ids[left_out]
        return Influence(query, flip * found.difference, found.p_adjusted, shown != (found.p_adjusted < LEVEL))

    @cached_property
    def groups(self) -> list[list[str]]:
        """Groups of rankers without a significant difference, by falling mean; empty unless all pairs were tested."""
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

    def _differences(self, a: str, b: str) -> np.ndarray:
        """Differences by query (m,), positive where `a` is better."""
        ours, theirs = (np.asarray(self.per_query[name], dtype=np.float64) for name in (a, b))
        return self._sign * (ours - theirs)

    def ties_matter(self) -> bool:
        """Whether averaging over the orders of tied documents moves some ranker's mean by more than 0.0005."""
        return any(abs(mean - self.means[name]) > _MOVED_BY_TIES for name, mean in self.tie_averaged.items())

    def moved_most(self, a: str, b: str, n: int = 3) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
        """Return at most `n` queries on which `a` gains most against `b`, and loses most, with their differences."""
        difference = self._differences(a, b)
        labels = self.query_ids or [str(i) for i in range(len(difference))]
        there = np.flatnonzero(~np.isnan(difference) & (difference != 0))
        order = there[np.argsort(-difference[there], kind="stable")]
        gains = [(labels[i], float(difference[i])) for i in order[:n] if difference[i] > 0]
        losses = [(labels[i], float(difference[i])) for i in order[::-1][:n] if difference[i] < 0]
        return gains, losses

    def to_dict(self) -> dict[str, Any]:
        """Return what `truerank compare --json` prints."""
        return {
            "baseline": self.baseline,
            "measure": self.measure,
            "convention": self.convention,
            "test": self.test,
            "correction": self.correction,
            "means": self.means,
            "tie_averaged": self.tie_averaged,
            "intervals": {name: [_known(end) for end in interval[1:]] for name, interval in self.intervals.items()},
            "smallest_p": self.smallest_p,
            "comparisons": self.n_comparisons,
            "interval_of": self.interval_of,
            "groups": self.groups,
            "pairs": [
                {name: _known(value) for name, value in pair._asdict().items()}
                | {"verdict": None if pair.verdict is None else list(pair.verdict.kinds)}
                | self._moved(pair)
                for pair in self.pairs
            ],
        }

    def _moved(self, pair: PairComparison) -> dict[str, Any]:
        return {} if self.query_ids is None else dict(zip(("gains", "losses_most"), self.moved_most(pair.a, pair.b)))

    def systems_table(self, style: str = "text") -> str:
        """Return the table of rankers by mean with the baseline's comparison; style text, markdown, latex or html."""
        against = {pair.a: pair for pair in self.pairs} if self.baseline is not None else {}
        groups = [] if against else self.groups  # with a baseline, the column of differences holds the same
        letters = dict.fromkeys(self.means, "")
        for number, group in enumerate(groups):
            for name in group:
                letters[name] += ("," if letters[name] else "") + letter(number)
        ties = self.ties_matter()
        header = ["", "ranker", self.measure or "mean", *(["ties averaged"] if ties else []), "95% interval"]
        header += ["group"] if groups else []
        margin = any(pair.verdict is not None for pair in self.pairs)
        last = ["verdict"] if margin else []
        header += [*self.columns, "p", f"p, {self.correction}", "Cohen's d", *last] if against else []
        rows: list[list[Any]] = []
        for place, name in enumerate(sorted(self.means, key=lambda one: -self._sign * self.means[one]), 1):
            interval, pair = self.intervals[name], against.get(name)
            row: list[Any] = [place, name, self.means[name], *([self.tie_averaged.get(name)] if ties else [])]
            row += ["" if math.isnan(interval.low) else f"[{interval.low:.4f}, {interval.high:.4f}]"]
            row += [letters[name]] if groups else []
            if against and pair is None:
                row += ["(baseline)", *[""] * (len(self.columns) - 1), None, None, None, *[""] * margin]
            elif pair is not None:
                row += [*pair.cells(self.test)[1:], _known(pair.p), pair.marked, _known(pair.effect), *_verdict(pair)]
            rows.append(row)
        return styled_table(rows, header, style, "" if style == "text" else self.caption)

    @property
    def _pair_columns(self) -> list[str]:
        header = ["rankers", "mean", "against", *self.columns, "p", f"p, {self.correction}", "Cohen's d"]
        return [*header, "detectable, 80 % power", *(["verdict"] if self.pairs[0].verdict is not None else [])]

    def _pair_rows(self) -> list[list[Any]]:
        return [
            [rankers, self.means[pair.a], self.means[pair.b], *figures, _known(pair.p), pair.marked,
             _known(pair.effect), _known(pair.detectable), *_verdict(pair)]
            for pair in self.pairs
            for rankers, *figures in [pair.cells(self.test)]
        ]  # fmt: skip

    def pairs_table(self, style: str = "text") -> str:
        """Return the table of the pairs that were compared, in a style of `systems_table`."""
        return styled_table(self._pair_rows(), self._pair_columns, style, "" if style == "text" else self.caption)

    def _table(self, style: str) -> str:
        return self.systems_table(style)

    def __str__(self) -> str:
        lines = [self.pairs_table(), "", self.caption, *self.remarks(), *([self.about] if self.about else [])]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.per_query)}; {self.measure}, {self.test})"


class Comparisons(Tabular, dict[str, Comparison]):
    """Comparisons of the same rankers by name of measure; p is corrected for all of them together."""

    def _table(self, style: str) -> str:
        first = next(iter(self.values()))
        rows = [[measure, *row] for measure, one in self.items() for row in one._pair_rows()]
        header = ["measure", *first._pair_columns]
        conventions = dict.fromkeys(one.convention for one in self.values())
        caption = f"{', '.join(self)}, convention {', '.join(map(titled, conventions))}; {first.method}"
        remarks = [f"{name}: {line}" for name, one in self.items() for line in one.remarks()]
        return "\n".join([styled_table(rows, header, style, caption), *(remarks if style == "text" else [])])


def compare_rankers(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    doc_ids: ArrayLike | None = None,
    measure: MeasureLike = "nDCG@10",
    baseline: str | None = "first",
    test: str = "randomisation",
    correction: str | None = None,
    convention: str | None = None,
    topics: str | None = None,
    margin: float | None = None,
    random_state: RandomState = 0,
) -> Any:
    """Compare rankers by their scores of the same judged documents, or runs over the same qrels.

    Parameters
    ----------
    y : array-like (n,), RankingData, ClusterRankingData or Judgements; or qrels
        As for `evaluate`.
    scores : mapping of name to array-like (n,); with qrels runs by name, or a list of them
    qid : array-like (n,), optional
        None means one query, for which no test is possible.
    doc_ids : array-like (n,) of str, optional
        Break ties under `trec`.
    measure : str, Measure or callable; or several: "AP nDCG@10", or a list
    baseline : str or None
        Every other ranker is compared with this one, by default the first of `scores`; None compares all pairs.
    test : {"randomisation", "t", "wilcoxon", "sign"}
    correction : "max-t", "holm", "bonferroni", "benjamini-hochberg", "none" or None, default None
        For all pairs and measures together. The default is step-down max-T for tests of the mean ("randomisation",
        "t"), and Holm's for "wilcoxon" and "sign".
    convention : str, optional
        By default ranklib for rows and trec for runs.
    topics : "common", "all" or None, default None
        Required for runs with different topics: compare over the topics that all runs have, or over all topics of the
        qrels, where a topic that a run lacks counts 0 (trec_eval -c).
    margin : float, optional
        A difference δ, in the unit of the measure, that is too small to matter. Each pair gets a `verdict`. The test
        must be "randomisation" or "t".
    random_state : seed of the random signs

    Raises
    ------
    InvalidInputError
        If runs have different topics and `topics` is None.

    Returns
    -------
    Comparison, or Comparisons of several measures by name
        Prints as a table, with ** after an adjusted p below 0.05. `.pairs` holds each comparison.

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
    if isinstance(y, RowSource) and isinstance(scores, Mapping):
        y, scores = y.judgements(), {name: y.grouped_scores(one) for name, one in scores.items()}
    if is_qrels(y):
        runs = runs_by_name(scores)
        if runs is None:
            raise InvalidInputError("compare_rankers requires runs by name: {'bm25': run, …}")
        measures = over_topics(parse_measures(measure, convention or "trec"), topics)
        qrels = as_qrels(y)
        found = {name: judge_run(qrels, run) for name, run in runs.items()}
        strange = next((name for name, (_, values) in found.items() if not len(values)), None)
        if strange is not None:
            raise InvalidInputError(f"run {strange!r} and the qrels share no topic; they do not belong together")
        found, _ = settle_topics(found, topics)
        judgements = next(iter(found.values()))[0]
    else:
        if topics is not None:
            raise InvalidInputError("topics is about runs over qrels; score rows of the same queries without it")
        if not isinstance(scores, Mapping):
            raise InvalidInputError("compare_rankers requires scores by name: {'ranker': scores, …}")
        measures = parse_measures(measure, convention or DEFAULT_CONVENTION)
        judgements, order = judged(y, qid, doc_ids)
        found = {
            str(name): (judgements, scores_in_order(given, judgements, order, f"scores of {name!r}"))
            for name, given in scores.items()
        }
    results = compare_measures(
        [judged_values(one, found) for one in measures.values()], baseline=baseline, test=test, correction=correction,
        margin=margin, random_state=random_state, query_ids=judgements.query_ids,
    )  # fmt: skip
    several = len(results) > 1 or isinstance(measure, list | tuple)
    return Comparisons(zip(measures, results)) if several else results[0]


def judged_values(by: Measure, judged: Mapping[str, tuple[Judgements, np.ndarray]]) -> MeasuredValues:
    """Return a measure's values from judgements and scores by ranker; an error unless it is a mean over queries.

    Means over all orders of tied documents are added if the measure has a closed form for them.
    """
    by.check_mean()

    def values(measure: Measure) -> dict[str, np.ndarray]:
        return {name: measure.per_query(*one) for name, one in judged.items()}

    averaged = by(ties="average") if by.TIE_AVERAGE and by.setting("ties") != "average" else None
    ties = {} if averaged is None else {name: mean_of(own) for name, own in values(averaged).items()}
    return MeasuredValues(values(by), by.name, by.convention, by.higher_is_better, ties, by)


def compare_values(
    per_query: Mapping[str, np.ndarray],
    *,
    measure: str = "",
    convention: str = "",
    higher_is_better: bool = True,
    tie_averaged: Mapping[str, float] | None = None,
    **options: Any,
) -> Comparison:
    """Compare rankers by their values (m,) on the same queries in the same order; see `compare_rankers`.

    `options` are `baseline`, `test`, `correction`, `margin`, `random_state` and `query_ids`. With
    `higher_is_better=False` (errors), `a` wins where it is lower, and its difference is then positive.

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
) -> list[Comparison]:
    """Compare the same rankers on the same queries by each measure; p is corrected for all pairs and measures."""
    check_choice(test, "test", TESTS)
    correction = ("max-t" if test in OF_MEANS else "holm") if correction is None else correction
    check_choice(correction, "correction", CORRECTIONS)
    if correction == "max-t" and test not in OF_MEANS:
        raise InvalidInputError(f"correction 'max-t' is of means, and test {test!r} is not; choose 'holm'")
    if margin is not None and test not in OF_MEANS:
        raise InvalidInputError(f"margin is about means, and test {test!r} is not; choose 'randomisation' or 't'")
    margin = checked_margin(margin)
    names = list(measured[0].per_query)
    if len(names) < 2:
        raise InvalidInputError(f"a comparison needs at least two rankers, got {len(names)}")
    if baseline == "first" and "first" not in names:
        baseline = names[0]
    if baseline is None:
        places = list(combinations(range(len(names)), 2))
    elif baseline in names:
        against = names.index(baseline)
        places = [(place, against) for place in range(len(names)) if place != against]
    else:
        raise InvalidInputError(f"baseline {baseline!r} is none of {', '.join(names)}")
    family = len(places) * len(measured)
    n_resamples = 10_000 if correction == "max-t" else resamples_for(family)
    pairs_of = partial(_compared_pairs, measured, places, test, correction, margin, n_resamples, random_state)
    pairs, smallest, n_resamples = pairs_of()
    return [
        Comparison(
            one.measure, one.convention, test, correction, baseline,
            means={name: mean_of(np.asarray(own, dtype=np.float64)) for name, own in one.per_query.items()},
            per_query=dict(one.per_query),
            intervals={name: _interval(own, one.by) for name, own in one.per_query.items()},
            pairs=own_pairs,
            n_resamples=n_resamples,
            query_ids=None if query_ids is None else [str(name) for name in query_ids],
            tie_averaged=dict(one.tie_averaged or {}),
            higher_is_better=one.higher_is_better,
            smallest_p=smallest,
            n_comparisons=family,
            _again=partial(_without, pairs_of, number),
        )
        for number, (one, own_pairs) in enumerate(zip(measured, pairs))
    ]  # fmt: skip


def _without(pairs_of: Callable[..., Any], number: int, query: int) -> list[PairComparison]:
    return list(pairs_of(without=query)[0][number])


def _compared_pairs(
    measured: Sequence[MeasuredValues],
    places: list[tuple[int, int]],
    test: str,
    correction: str,
    margin: float | None,
    n_resamples: int,
    random_state: RandomState,
    without: int | None = None,
) -> tuple[list[list[PairComparison]], float, int]:
    """Return the pairs by measure, the smallest possible p and the resamples; `without` leaves out a query."""
    names = list(measured[0].per_query)
    first, second = (np.array(one) for one in zip(*places))
    columns, sizes = [], []
    for one in measured:
        sign = 1.0 if one.higher_is_better else -1.0  # more is better
        values = sign * as_values(one.per_query)
        values = values if without is None else np.delete(values, without, axis=1)
        size = np.nansum(np.abs(values), axis=1)
        columns.append(values[first] - values[second])
        sizes.append(size[first] + size[second])
    d = np.concatenate(columns).T
    options: dict[str, Any] = {
        "magnitude": np.concatenate(sizes), "n_resamples": n_resamples, "random_state": random_state,
    }  # fmt: skip
    tested = paired_tests(test, d, **options)
    sampled = test == "randomisation" and 2 ** len(d) > n_resamples
    family_of = np.repeat(np.arange(len(measured)), len(places))
    adjusted, error, smallest = _corrected(tested, d, correction, sampled, family_of, options)
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = np.where(tested.mean == 0, 0.0, tested.mean / tested.deviation)
    effect[tested.topics < 2] = math.nan
    wins, losses = (d > 0).sum(axis=0), (d < 0).sum(axis=0)
    figures = (
        tested.topics, tested.mean, tested.low, tested.high, wins, losses, tested.topics - wins - losses, tested.p,
        adjusted, detectable_differences(d, LEVEL / d.shape[1]), effect, error,
    )  # fmt: skip
    pairs = []
    for (i, j), row in zip(places * len(measured), zip(*(one.tolist() for one in figures))):
        interval = Interval(*row[1:4])
        decided = None if margin is None else Verdict(interval, margin)
        pairs.append(PairComparison._make((names[i], names[j], *row, decided)))
    n = len(places)
    return [pairs[k : k + n] for k in range(0, len(pairs), n)], min(1.0, smallest), tested.n_resamples


def _corrected(
    tested: Paired, d: np.ndarray, correction: str, sampled: bool, family_of: np.ndarray, options: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return p corrected for all pairs (k,), its standard error from resampling (k,), and the smallest possible p."""
    known = np.nan_to_num(tested.p, nan=1.0)
    smallest = float(tested.smallest.min())
    if correction == "max-t" and len(known) > 1:  # by signs, whatever the test of a pair alone
        smallest = max(smallest, float(smallest_p(np.count_nonzero(np.nan_to_num(d), axis=0)).min()))
    error = np.sqrt(known * (1.0 - known) / tested.n_resamples) if sampled else np.zeros(len(known))
    if correction != "max-t":
        adjusted = _CORRECTIONS[correction](known)
        error *= np.divide(adjusted, known, out=np.ones(len(known)), where=known > 0)
        smallest *= 1 if correction in ("none", "benjamini-hochberg") else len(known)
    elif len(known) == 1:
        adjusted = known
    else:
        family = step_down_max_t(d, family_of, **options)
        adjusted = np.maximum(known, family.p_adjusted)
        error = np.where(adjusted > family.p_adjusted, error, family.error)
    return np.where(np.isnan(tested.p), np.nan, adjusted), error, smallest


def as_values(per_query: Mapping[str, ArrayLike]) -> np.ndarray:
    """Values by query of some rankers, float64 (rankers, m)."""
    values = [as_sample(own, name, nan=True) for name, own in per_query.items()]
    if len({len(own) for own in values}) > 1:
        lengths = ", ".join(f"{name} {len(own)}" for name, own in zip(per_query, values))
        raise InvalidInputError(f"a comparison needs values of the same queries for every ranker; got {lengths} values")
    return np.array(values)


def _verdict(pair: PairComparison) -> list[str]:
    return [] if pair.verdict is None else [pair.verdict.words]


def _interval(values: ArrayLike, by: Measure | None) -> Interval:
    values = np.asarray(values, dtype=np.float64)
    if np.isnan(values).all():
        return Interval(0.0, math.nan, math.nan)
    return mean_interval(values) if by is None else measure_interval(by, values)


def _known(value: object) -> Any:
    """Return a number as it is, and None in place of one that is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def letter(number: int) -> str:
    """Return the letter of a group or system: a … z, then a1 … z1, a2 …"""
    return chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")
