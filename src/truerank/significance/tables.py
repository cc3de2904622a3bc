"""Results of comparisons and their figures. `comparison_text` and `paper_table` write them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError
from truerank.core.names import resolve
from truerank.core.printing import counted
from truerank.core.results import Result, data_frame
from truerank.data.remarks import FORBIDS, Remark, in_order
from truerank.significance import comparison_text
from truerank.significance.intervals import Interval, Verdict
from truerank.significance.paired import LEVEL, OF_MEANS, TIED, differences_of, gain_by
from truerank.significance.paper_table import paper_table, tied_means
from truerank.significance.ranks import groups_alike, rank_sets
from truerank.significance.unjudged import about_unjudged

if TYPE_CHECKING:
    from truerank.significance.bayes import Practical
    from truerank.significance.gate import GateLine

_INTERVAL_OF = {"sign": "share of wins", "wilcoxon": "pseudo-median"}
MOVED_BY_TIES = 0.0005  # the fourth digit may change by rounding alone


class PairComparison(NamedTuple):
    """The comparison of ranker `a` with ranker `b`.

    The interval from `low` to `high` is for this pair alone and agrees with `p`; NaN without an interval. For
    `test="sign"` the interval is for the share of wins, for "wilcoxon" the pseudo-median, else the mean difference, at
    95 %. `simultaneous` is the interval of the mean difference that agrees with the correction "max-t"
    (`simultaneous_intervals`), and None with other corrections.
    `detectable` is the true difference that is found with 80 % power after the correction: the power of
    `queries_needed` at 0.05 divided by the number of comparisons. With "max-t", it is the smaller of the differences
    that max-T and Holm's part find. `detectable` is NaN if fewer than five queries differ.
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
    simultaneous: Interval | None = None

    @property
    def marked(self) -> str:
        """The adjusted p, with ** if it is below 0.05; empty without a p."""
        return "" if math.isnan(self.p_adjusted) else f"{self.p_adjusted:.4f}{'**' if self.p_adjusted < LEVEL else ''}"


class Influence(NamedTuple):
    """A pair without one query, with the difference, the adjusted p, and whether p `changes` sides of 0.05."""

    query: str
    difference: float
    p_adjusted: float
    changes: bool


class Compared(Result):
    """A comparison by one measure or several."""

    KIND = "comparison"

    @property
    def by_measure(self) -> Mapping[str, Comparison]:
        """The comparisons by name of measure."""
        raise NotImplementedError

    @property
    def first(self) -> Comparison:
        """The comparison by the first measure."""
        return next(iter(self.by_measure.values()))

    @property
    def topics_text(self) -> str | None:
        """The topics of the means of runs in words; None without runs."""
        return getattr(self.experiment, "topics_text", None) or None

    def to_latex(self, show: Sequence[str] = (), rope: float | None = None) -> str:
        """Return the table of a paper for the package booktabs; for `show` and `rope` see `paper_table`."""
        first = self.first
        return paper_table(self.by_measure, "latex", self.topics_text, show, first.rope if rope is None else rope)

    def methods_text(self, seed: Any = None) -> str:
        """Return the paragraph of a paper on data, measures, test and correction, and BibTeX of the cited methods."""
        first, write = self.first, resolve("truerank.significance.methods_text:methods_text")
        return str(write(self.by_measure, self.topics_text, first.seed if seed is None else seed))

    def _asked(self) -> dict[str, Any]:
        """Return the requested figures: practical equivalence, and the paragraph of a paper."""
        more = dict[str, Any]()
        if self.first.rope is not None:
            more["practical"] = {name: one.practical()._figures() for name, one in self.by_measure.items()}
        return more | {"methods": self.methods_text()} if self.first.cite else more


@dataclass(repr=False, eq=False)
class Comparison(Compared):
    """The comparison of several rankers by one measure.

    `tie_averaged` has the mean of each ranker over all orders of its tied documents, if known. Tables include it if it
    differs from the mean by more than 0.0005 for a ranker, because the mean then depends on the convention's rule for
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
    n_resamples: int  # random signs, or all 2^n of them; more for more pairs
    query_ids: list[str] | None
    tie_averaged: dict[str, float]
    higher_is_better: bool
    smallest_p: float
    n_comparisons: int  # that p is corrected for: pairs times measures
    divided: bool  # whether Holm's part of "max-t" has a share of the level
    _again: Callable[..., Any] = field(repr=False)
    _number: int = 0  # of this measure
    by: Any = field(default=None, repr=False)  # the Measure, if it is known
    about: str = ""  # printed below the table
    segments: Mapping[str, list[GateLine]] = field(default_factory=dict, repr=False)  # by system
    look: int = 1  # number of this comparison on the same queries
    level: float = LEVEL  # of this look: of the intervals of pairs, and before `p_adjusted` is multiplied
    rope: float | None = None  # largest difference that does not matter, of `practical`
    cite: bool = False  # whether `to_dict` has `methods_text`
    seed: Any = None  # of random signs

    SHOWN: ClassVar = ("intervals", "effects", "ranks")  # further columns of the paper's table

    @property
    def interval_of(self) -> str:
        """The quantity of the intervals: mean difference, share of wins or pseudo-median."""
        return _INTERVAL_OF.get(self.test, "mean difference")

    @property
    def tested(self) -> str:
        """Queries, test and correction in words."""
        return comparison_text.tested(self)

    @cached_property
    def order(self) -> list[str]:
        """The rankers by falling mean; by rising mean if lower is better."""
        means = self._sign * np.array(list(self.means.values()))
        names = list(self.means)
        return [names[place] for place in np.argsort(-means, kind="stable")]

    @cached_property
    def best(self) -> PairComparison:
        """The pair of the summary: the baseline and the best other system, or the two best systems."""
        first, second = self.order[:2]
        if self.baseline is not None:
            first, second = second if first == self.baseline else first, self.baseline
        return self.pairs[self._place(first, second)]

    @property
    def summary(self) -> str:
        """A sentence on whether the best system is better than the baseline, or why there is no verdict."""
        for one in self.remarks:
            if one.severity == FORBIDS:
                return f"No verdict: {one.text}."
        pair = self.best
        judged, reversible = self._judging(pair)
        if reversible:
            return f"No verdict on {pair.a} and {pair.b}, since unjudged documents can reverse it{judged}."
        if math.isnan(pair.p):
            return f"No verdict on {pair.a} and {pair.b}: {counted(pair.queries, 'query')} cannot be tested{judged}."
        better, worse = (pair.a, pair.b) if pair.difference > 0 else (pair.b, pair.a)
        if pair.p_adjusted < LEVEL and better == self.favoured(pair):
            return f"{better} is better than {worse}{judged}."
        if pair.p_adjusted < LEVEL:
            return f"The {self.test} test favours {worse}, but {better} has the better mean{judged}."
        if pair.verdict is not None and pair.verdict.kinds != ("undecided",):
            alone = f"compared with {pair.b}" + ", by this pair alone" * (len(self.means) > 2)
            return f"{pair.a} is {pair.verdict.words}, {alone}{judged}."
        return f"These queries do not show a difference between {pair.a} and {pair.b}{judged}."

    def favoured(self, pair: PairComparison) -> str:
        """Return the ranker that the test finds better if p is small; its mean may be lower."""
        return pair.a if gain_by(self.test, self._differences(pair.a, pair.b)) > 0 else pair.b

    def _judging(self, pair: PairComparison) -> tuple[str, bool]:
        """Return a note on few judged documents of a pair, and whether unjudged documents can reverse the result."""
        for found in self.unjudged[0].get("unjudged", ()):
            if (found["a"], found["b"]) == (pair.a, pair.b):
                low, high = found["low"], found["high"]
                shares = [f"{100 * found[side]:.3g} %" for side in ("share_a", "share_b")]
                text = f"{shares[0]} of the documents of {pair.a} and {shares[1]} of {pair.b} are judged"
                if low is None or high is None:
                    return f" ({text}; bounds for unjudged documents are not known for {self.measure})", False
                ends = f"depending on the unjudged documents, the difference is {low:+.4f} to {high:+.4f}"
                return f" ({text}; {ends})", low <= 0 <= high
        return "", False

    @cached_property
    def unjudged(self) -> tuple[dict[str, Any], list[str]]:
        """The shares of judged documents and the pairs in doubt, for JSON and as sentences; empty if all are judged."""
        rankings = getattr(self.experiment, "rankings", None)
        if not rankings or self.by is None:
            return {}, []
        return about_unjudged(self.by, rankings, [(pair.a, pair.b) for pair in self.pairs])

    @property
    def remarks(self) -> list[Remark]:
        """The remarks on the experiment, on ties, and on pairs in doubt because of unjudged documents."""
        found, tied = self.unjudged[0].get("unjudged", ()), self.moved_by_ties
        own = list(super().remarks)
        if tied:
            own.append(
                Remark("ties", f"{self.measure} with ties averaged is {tied_means(self)}", len(tied), list(tied))
            )
        if not found:
            return in_order(own)
        pairs = [f"{one['a']} against {one['b']}" for one in found]
        shown = ", ".join(pairs[:3]) + (" …" if len(pairs) > 3 else "")
        shares = {one[side]: one[f"share_{side}"] for one in found for side in "ab"}
        outside = [name for name, share in shares.items() if share < 1.0 == max(shares.values())]
        if outside:  # all that a system in the pool ranks to the pool's depth is judged
            shown += f"; {', '.join(outside)} probably did not contribute to the pool (see pool_bias)"
        return in_order([*own, Remark("unjudged-documents", shown, len(pairs), pairs)])

    def _place(self, a: str, b: str) -> int:
        """Return the number of the pair of two rankers."""
        for index, pair in enumerate(self.pairs):
            if {pair.a, pair.b} == {a, b}:
                return index
        few = "; ".join(f"{pair.a!r} and {pair.b!r}" for pair in self.pairs[:3])
        listed = f"Choose a pair such as {few} ({counted(len(self.pairs), 'pair')} in all)"
        raise InvalidInputError(f"{a!r} and {b!r} were not compared. {listed}", code="not-compared")

    def influence(self, a: str, b: str) -> Influence | None:
        """Compare `a` with `b` without the single query that matters most; all comparisons are repeated without it.

        The query is chosen so that, without it, Student's t is nearest to 0 if the adjusted p is below 0.05, else
        farthest from 0. The result is None for fewer than three queries, and if another comparison has no other query.
        """
        index = self._place(a, b)
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
        variances[variances <= 1e-12 * (own**2).max()] = 0.0  # equal differences
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.nan_to_num(np.abs(means) / np.sqrt(variances))  # without each query, but for a factor
        most = t.min() if shown else t.max()
        left_out = int(known[np.argmax(np.abs(t - most) <= TIED * most)])  # the first of equal queries
        try:
            found = self._again(without=left_out)[0][self._number][index]
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

    @cached_property
    def rank_sets(self) -> dict[str, tuple[int, int]]:
        """The lowest and highest rank of each system, simultaneously with 95 % confidence; see `ranks.rank_sets`.

        Empty for fewer than three systems or with a baseline. Requires test "randomisation" or "t", and correction
        "max-t", "holm" or "bonferroni"; otherwise empty.
        """
        names = list(self.means)
        families = ("max-t", "holm", "bonferroni")
        if self.baseline is not None or len(names) < 3 or self.test not in OF_MEANS or self.correction not in families:
            return {}
        better = np.zeros((len(names), len(names)), dtype=bool)
        for pair in self.pairs:
            if pair.p_adjusted < LEVEL:
                winner, loser = (pair.a, pair.b) if pair.difference > 0 else (pair.b, pair.a)
                better[names.index(winner), names.index(loser)] = True
        return dict(zip(names, rank_sets(better)))

    def practical(self, rope: float | None = None) -> Practical:
        """Return the probabilities of better, equivalent within ±`rope`, and worse of each pair; see `cautious`.

        By default, `rope` is that of the comparison. An experiment with segments adds those of each segment; see
        `segments_posterior`.
        """
        rope = self.rope if rope is None else rope
        pairs = [(pair.a, pair.b) for pair in self.pairs]
        d = np.stack([self._differences(a, b) for a, b in pairs], axis=1)
        practical = resolve("truerank.significance.bayes:practical")
        masks = {} if self.experiment is None else self.experiment.segment_masks()
        found: Practical = practical(pairs, d, rope, self.per_query, by=self.by, measure=self.measure, masks=masks)
        found.experiment = self.experiment
        return found

    @property
    def _sign(self) -> float:
        return 1.0 if self.higher_is_better else -1.0

    def _differences(self, a: str, b: str) -> np.ndarray:
        """Return differences by query (m,), positive where `a` is better."""
        ours, theirs = np.array([self.per_query[a], self.per_query[b]], dtype=np.float64)
        return self._sign * differences_of(ours, theirs)

    @cached_property
    def moved_by_ties(self) -> dict[str, float]:
        """The means over all orders of tied documents of the rankers that they move by more than 0.0005."""
        averaged = self.tie_averaged.items()
        return {name: mean for name, mean in averaged if abs(mean - self.means[name]) > MOVED_BY_TIES}

    def moved_most(self, a: str, b: str, n: int = 3) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
        """Return up to `n` queries on which `a` gains most against `b`, and loses most, with differences."""
        difference = self._differences(a, b)
        labels = self.query_ids or [str(i) for i in range(len(difference))]
        there = np.flatnonzero(~np.isnan(difference) & (difference != 0))
        order = there[np.argsort(-difference[there], kind="stable")]
        gains = [(labels[i], float(difference[i])) for i in order[:n] if difference[i] > 0]
        losses = [(labels[i], float(difference[i])) for i in order[::-1][:n] if difference[i] < 0]
        return gains, losses

    def _figures(self) -> dict[str, Any]:
        figures: dict[str, Any] = {
            "baseline": self.baseline,
            "measure": self.measure,
            "convention": self.convention,
            "test": self.test,
            "correction": self.correction,
            "means": self.means,
            "tie_averaged": self.tie_averaged,
            "intervals": {name: interval[1:] for name, interval in self.intervals.items()},
            "smallest_p": self.smallest_p,
            "comparisons": self.n_comparisons,
            "look": self.look,
            "level": self.level,
            "interval_of": self.interval_of,
            "groups": self.groups,
            "rank_sets": self.rank_sets,
            "pairs": list[dict[str, Any]](),
        }
        for pair in self.pairs:
            own, verdict = pair._asdict(), pair.verdict
            own |= {"verdict": verdict and verdict.kinds, "verdict_text": None if verdict is None else str(verdict)}
            if self.query_ids is not None:
                own["gains"], own["losses_most"] = self.moved_most(pair.a, pair.b)
            figures["pairs"].append(own)
        return figures | self.unjudged[0] | self._asked()

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each pair."""
        return data_frame([pair._asdict() | {"verdict": pair.verdict and pair.verdict.words} for pair in self.pairs])

    @property
    def by_measure(self) -> Mapping[str, Comparison]:
        """This comparison by its measure."""
        return {self.measure: self}

    def _table(self, style: str) -> str:
        return comparison_text.systems_table(self, style)

    def text(self, style: str = "text") -> str:
        """Return the tables with all that is known about them, as "text", "markdown", "latex" or "html"."""
        check_choice(style, "style", ("text", "markdown", "latex", "html"))
        return comparison_text.tables(self, style)

    def __str__(self) -> str:
        return "\n\n".join([self.summary, self.text(), comparison_text.CHOSEN])

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.per_query)}; {self.measure}, {self.test})"


class Comparisons(Compared, dict[str, Comparison]):
    """Comparisons of the same rankers by name of measure; p is corrected for all of them together."""

    @property
    def by_measure(self) -> Mapping[str, Comparison]:
        """These comparisons."""
        return self

    @property
    def summary(self) -> str:
        """The summary of the first measure."""
        name, first = next(iter(self.items()))
        return f"{name}: {first.summary}"

    @property
    def remarks(self) -> list[Remark]:
        """The remarks of all measures, each once."""
        each = {(one.code, one.where): one for comparison in self.values() for one in comparison.remarks}
        return in_order(each.values())

    def _figures(self) -> dict[str, Any]:
        found = {name: one._figures() for name, one in self.items()}
        first = next(iter(found.values()))
        return (first if len(found) == 1 else first | {"measures": found}) | self._asked()

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each measure and pair."""
        return resolve("pandas:concat")({name: one.to_frame() for name, one in self.items()}, names=["measure"])

    def _table(self, style: str) -> str:
        return comparison_text.pairs_table(self, style)

    def text(self, style: str = "text") -> str:
        """Return `Comparison.text` of all measures."""
        return "\n\n".join(one.text(style) for one in self.values())

    def __str__(self) -> str:
        return "\n\n".join([super().__str__(), *comparison_text.remarks_below(self)])
