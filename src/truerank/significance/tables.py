"""The result of a comparison: tables for people and for papers, and groups without a significant difference."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.names import resolve
from truerank.core.printing import counted, plain, styled_table, table
from truerank.core.results import Result, data_frame
from truerank.data.remarks import FORBIDS, Remark, in_order
from truerank.measures.conventions import titled
from truerank.significance.intervals import Interval, Verdict
from truerank.significance.paired import LEVEL, OF_MEANS, TIED, differences_of, gain_by
from truerank.significance.paper_table import letter, paper_table
from truerank.significance.ranks import RANKS, groups_alike, rank_sets, ranks_shown
from truerank.significance.unjudged import about_unjudged

if TYPE_CHECKING:
    from truerank.significance.bayes import Practical

SPARE = ("Cohen's d", "detectable, 80 % power", "ties averaged", "W/L/T", "95% interval", "p")
"""Columns that are dropped first if a table is too wide."""
CHOSEN = "If you chose among systems on these queries, put all of them into one comparison."
_INTERVAL_OF = {"sign": "share of wins", "wilcoxon": "pseudo-median"}
_MOVED_BY_TIES = 0.0005  # the fourth digit may change by rounding alone


class PairComparison(NamedTuple):
    """The comparison of ranker `a` with ranker `b`.

    The interval from `low` to `high` is for this pair alone and agrees with `p`; NaN without an interval. It is the 95
    % interval of the mean difference, of the share of wins (sign test) or of the pseudo-median (Wilcoxon's test).
    `simultaneous` is the interval of the mean difference that agrees with the correction "max-t"
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

    def cells(self, test: str = "randomisation") -> tuple[str, ...]:
        """Return the rankers, the difference, its interval, and wins/losses/ties as cells; see `Comparison.columns`."""
        sign = "" if test == "sign" else "+"
        interval = "" if math.isnan(self.low) else f"[{self.low:{sign}.4f}, {self.high:{sign}.4f}]"
        figures = [f"{self.difference:+.4f} {interval}".rstrip()]
        if test not in OF_MEANS:
            figures = [f"{self.difference:+.4f}", interval]
        return (f"{self.a} against {self.b}", *figures, f"{self.wins}/{self.losses}/{self.ties}")

    @property
    def marked(self) -> str:
        """The adjusted p, with ** if it is below 0.05; empty without a p."""
        return "" if math.isnan(self.p_adjusted) else f"{self.p_adjusted:.4f}{'**' if self.p_adjusted < LEVEL else ''}"


class Influence(NamedTuple):
    """A pair without one query: the difference, the adjusted p, and whether p `changes` to the other side of 0.05."""

    query: str
    difference: float
    p_adjusted: float
    changes: bool


FEW_PAIRS = 30  # that are printed one by one


@dataclass(repr=False, eq=False)
class Comparison(Result):
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
    about: str | Callable[[str], str] = ""  # printed below the table
    look: int = 1  # number of this comparison on the same queries
    level: float = LEVEL  # of this look: of the intervals of pairs, and before `p_adjusted` is multiplied

    KIND: ClassVar[str] = "comparison"
    SHOWN: ClassVar = ("intervals", "effects", "ranks")  # further columns of the paper's table

    @property
    def interval_of(self) -> str:
        """The quantity of the intervals: mean difference, share of wins or pseudo-median."""
        return _INTERVAL_OF.get(self.test, "mean difference")

    @property
    def columns(self) -> list[str]:
        """The headings of `PairComparison.cells` without the first."""
        if self.test in OF_MEANS:
            return [f"difference, {self._percent}%", "W/L/T"]
        return ["difference", f"{self.interval_of}, {self._percent}%", "W/L/T"]

    @property
    def _percent(self) -> str:
        return f"{100 * (1 - self.level):.4g}"

    @property
    def counted(self) -> str:
        """The number of comparisons in words, such as "6 comparisons (3 pairs × 2 measures)"."""
        n, pairs = self.n_comparisons, len(self.pairs)
        text = counted(n, "comparison")
        return text if n == pairs else f"{text} ({counted(pairs, 'pair')} × {n // pairs} measures)"

    @property
    def caption(self) -> str:
        """The measure, convention, queries, test and correction in a line."""
        about = f"{self.measure or 'values'}, convention {titled(self.convention)}" if self.convention else self.measure
        return f"{about}; {self.method}".removeprefix("; ")

    @property
    def method(self) -> str:
        """The caption without the measure and its convention."""
        sure = [pair.verdict for pair in self.pairs if pair.verdict is not None and pair.verdict.not_worse]
        unseen = f"; {min(sure, key=lambda one: one.n).unseen}" if sure else ""
        return f"{self.tested}; each interval is for one pair alone{unseen}"

    @property
    def tested(self) -> str:
        """The queries, test and correction in a line."""
        queries = sorted(pair.queries for pair in self.pairs)
        count = ("" if queries[0] == queries[-1] else f"{queries[0]} to ") + counted(queries[-1], "query")
        corrected = "p not corrected" if self.correction == "none" else f"p corrected by {self.correction}"
        below = ""
        if self.correction == "max-t":
            corrected = "p corrected by max-T"
            if self.n_comparisons > 1:
                corrected += " and Holm, 4 : 1," if self.divided else " alone, since Holm needs too many resamples,"
                below = " (by random signs, can be below p)" if self.test == "t" else ""
        below += f" and look {self.look} at these queries (times {LEVEL / self.level:g})" if self.look > 1 else ""
        return (
            f"{count}; {self.test} test, two-sided"
            + (f" ({self.n_resamples} resamples)" if self.test == "randomisation" else "")
            + f"; {corrected} for {self.counted}{below}, ** where it is below 0.05"
        )

    @property
    def best(self) -> PairComparison:
        """The pair of the summary: the best other system with the baseline, or the two best systems."""
        order = sorted(self.means, key=lambda name: -self._sign * self.means[name])
        first, second = (order[0], order[1]) if self.baseline is None else (
            next(name for name in order if name != self.baseline), self.baseline
        )  # fmt: skip
        return next(pair for pair in self.pairs if {pair.a, pair.b} == {first, second})

    @property
    def summary(self) -> str:
        """A sentence on whether the best system is better than the baseline, or why there is no verdict."""
        pair, forbids = self.best, next((one for one in self.remarks if one.severity == FORBIDS), None)
        if forbids is not None:
            return f"No verdict: {forbids.text}."
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
        """Return the ranker that the test finds better if p is small, which may have the lower mean."""
        return pair.a if gain_by(self.test, self._differences(pair.a, pair.b)) > 0 else pair.b

    @property
    def finding(self) -> str:
        """A sentence with the figures of the summary's pair."""
        pair, systems = self.best, len(self.means)
        low, high, kind = pair.low, pair.high, f"{self._percent} % interval"
        kind += "" if self.test in OF_MEANS else f" of the {self.interval_of}"
        if systems > 2 and pair.simultaneous is not None:  # the best of several
            low, high, kind = *pair.simultaneous[1:], f"simultaneous {self._percent} % interval, single step,"
        chosen = ""
        if systems > 2 and self.baseline is not None:
            chosen = f"{pair.a} has the best mean of the {systems - 1} systems that are compared with {pair.b}. "
        interval = "" if math.isnan(low) else f" ({kind} {low:+.4f} to {high:+.4f})"
        tested = "" if math.isnan(pair.p) else f" (p = {pair.p_adjusted:.3g} after correction)"
        return (
            f"{chosen}{self.measure or 'The mean'} is {self.means[pair.a]:.4f} for {pair.a} and "
            f"{self.means[pair.b]:.4f} for {pair.b}: a difference of {pair.difference:+.4f}{interval}. "
            f"Of {counted(pair.queries, 'query')}, {pair.wins} gain, {pair.losses} lose and {pair.ties} do not "
            f"change{tested}."
        )

    def _judging(self, pair: PairComparison) -> tuple[str, bool]:
        """Return a note on few judged documents of a pair, and whether unjudged documents can reverse the result."""
        for found in self.unjudged[0].get("unjudged", ()):
            if (found["a"], found["b"]) == (pair.a, pair.b):
                low, high = found["low"], found["high"]
                text = (
                    f"{100 * found['share_a']:.3g} % and {100 * found['share_b']:.3g} % of their documents are judged"
                )
                if low is None or high is None:
                    return f" ({text}; bounds for unjudged documents are not known for {self.measure})", False
                ends = f"depending on the unjudged documents, the difference is {low:+.4f} to {high:+.4f}"
                return f" ({text}; {ends})", low <= 0 <= high
        return "", False

    @cached_property
    def unjudged(self) -> tuple[dict[str, Any], list[str]]:
        """The shares of judged documents and the pairs in doubt, for JSON and as sentences; empty if all are judged."""
        judged = getattr(self.experiment, "judged", None)
        if not judged or self.by is None:
            return {}, []
        return about_unjudged(self.by, judged, [(pair.a, pair.b) for pair in self.pairs])

    @property
    def remarks(self) -> list[Remark]:
        """The remarks on the experiment, and on pairs in doubt because of unjudged documents."""
        found = self.unjudged[0].get("unjudged", ())
        pairs = [f"{one['a']} against {one['b']}" for one in found]
        shown = ", ".join(pairs[:3]) + (" …" if len(pairs) > 3 else "")
        shares = {one[side]: one[f"share_{side}"] for one in found for side in "ab"}
        outside = [name for name, share in shares.items() if share < 1.0 == max(shares.values())]
        if outside:  # all that a system in the pool ranks to the pool's depth is judged
            shown += f"; {', '.join(outside)} probably did not contribute to the pool (see pool_bias)"
        own = [Remark("unjudged-documents", shown, len(pairs), pairs)] if pairs else []
        return in_order([*super().remarks, *own])

    def sentences(self) -> list[str]:
        """Return sentences on pairs without an interval, and on p-values that another seed may move across 0.05."""
        lines, alike = [], dict[str, list[str]]()
        for pair in self.pairs:
            count = pair.wins + pair.losses
            differ = f"{count} of {counted(pair.queries, 'query')} differ{'s' * (pair.queries == 1)}"
            if not count:
                differ = "no query differs"
            elif math.isinf(pair.effect):
                differ = f"all {pair.queries} queries differ by the same amount"
            if math.isnan(pair.low):
                lacks = "no p and no interval" if math.isnan(pair.p) else "no interval"
                alike.setdefault(f"{lacks}: {differ}", []).append(f"{pair.a} against {pair.b}")
            if pair.error and abs(pair.p_adjusted - LEVEL) < 2.0 * pair.error:
                lines.append(
                    f"{pair.a} against {pair.b}: the Monte Carlo error of the corrected p {pair.p_adjusted:.4f} is "
                    f"{pair.error:.4f}; another seed may give a p on the other side of 0.05"
                )
        for why, pairs in alike.items():
            more = f" and {counted(len(pairs) - 3, 'other pair')} have" if len(pairs) > 3 else ""
            shown = ", ".join(pairs[:3])
            lines.append(f"{shown}{more or (' has' if len(pairs) == 1 else ' have')} {why}")
        return lines[:30]

    def influence(self, a: str, b: str) -> Influence | None:
        """Compare `a` with `b` without the single query that matters most; all comparisons are repeated without it.

        The query is chosen so that, without it, Student's t is nearest to 0 if the adjusted p is below 0.05, else
        farthest from 0. The result is None for fewer than three queries, and if another comparison has no other query.
        """
        index = next((i for i, pair in enumerate(self.pairs) if {pair.a, pair.b} == {a, b}), None)
        if index is None:
            raise InvalidInputError(f"{a!r} and {b!r} were not compared", code="not-compared")
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
        """The lowest and highest rank of each system, at once with 95 % confidence; see `ranks.rank_sets`.

        Empty unless a test of means compared all pairs of at least three systems with a correction for the family.
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

    def methods_text(self, seed: Any = None) -> str:
        """Return the paragraph of a paper on data, measure, test and correction, and BibTeX of the cited methods."""
        return str(resolve("truerank.significance.methods_text:methods_text")({self.measure: self}, self._topics, seed))

    def practical(self, rope: float) -> Practical:
        """Return the probabilities that each pair is better, equivalent within ±`rope`, and worse; see `cautious`."""
        pairs = [(pair.a, pair.b) for pair in self.pairs]
        d = np.stack([self._differences(a, b) for a, b in pairs], axis=1)
        practical = resolve("truerank.significance.bayes:practical")
        found: Practical = practical(pairs, d, rope, self.per_query, by=self.by, measure=self.measure)
        found.experiment = self.experiment
        return found

    @property
    def _sign(self) -> float:
        return 1.0 if self.higher_is_better else -1.0

    def _differences(self, a: str, b: str) -> np.ndarray:
        """Return differences by query (m,), positive where `a` is better."""
        ours, theirs = (np.asarray(self.per_query[name], dtype=np.float64) for name in (a, b))
        return self._sign * differences_of(ours, theirs)

    def ties_matter(self) -> bool:
        """Return whether averaging over the orders of tied documents moves a ranker's mean by more than 0.0005."""
        return any(abs(mean - self.means[name]) > _MOVED_BY_TIES for name, mean in self.tie_averaged.items())

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
        moved = ("gains", "losses_most")
        figures = {
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
            "pairs": [
                pair._asdict()
                | {
                    "verdict": None if pair.verdict is None else pair.verdict.kinds,
                    "verdict_text": None if pair.verdict is None else str(pair.verdict),
                }
                | ({} if self.query_ids is None else dict(zip(moved, self.moved_most(pair.a, pair.b))))
                for pair in self.pairs
            ],
        }
        return figures | self.unjudged[0]

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each pair."""
        return data_frame([pair._asdict() | {"verdict": pair.verdict and pair.verdict.words} for pair in self.pairs])

    def to_latex(self, show: Sequence[str] = (), rope: float | None = None) -> str:
        """Return the table of a paper for the package booktabs; for `show` and `rope` see `paper_table`."""
        return paper_table({self.measure: self}, "latex", self._topics, show, rope)

    @property
    def _topics(self) -> str | None:
        coverage = getattr(self.experiment, "coverage", None)
        return None if coverage is None else str(coverage)

    def systems_table(self, style: str = "text") -> str:
        """Return the table of rankers by mean, compared with the baseline, in style text, markdown, latex or html."""
        against = {pair.a: pair for pair in self.pairs} if self.baseline is not None else {}
        groups = [] if against else self.groups  # with a baseline, the column of differences holds the same
        letters = dict.fromkeys(self.means, "")
        for number, group in enumerate(groups):
            for name in group:
                letters[name] += ("," if letters[name] else "") + letter(number)
        ties = self.ties_matter()
        header = ["", "ranker", self.measure or "mean", *(["ties averaged"] if ties else []), "95% interval"]
        header += ["group"] if groups else []
        header += ["ranks"] if self.rank_sets else []
        margin = any(pair.verdict is not None for pair in self.pairs)
        last = ["verdict"] if margin else []
        header += [*self.columns, "p", f"p, {self.correction}", "Cohen's d", *last] if against else []
        rows: list[list[Any]] = []
        for place, name in enumerate(sorted(self.means, key=lambda one: -self._sign * self.means[one]), 1):
            interval, pair = self.intervals[name], against.get(name)
            row: list[Any] = [place, name, self.means[name], *([self.tie_averaged.get(name)] if ties else [])]
            row += ["" if math.isnan(interval.low) else f"[{interval.low:.4f}, {interval.high:.4f}]"]
            row += [letters[name]] if groups else []
            row += [ranks_shown(self.rank_sets[name])] if self.rank_sets else []
            if against and pair is None:
                row += ["(baseline)", *[""] * (len(self.columns) - 1), None, None, None, *[""] * margin]
            elif pair is not None:
                row += [*pair.cells(self.test)[1:], pair.p, pair.marked, plain(pair.effect), *_verdict(pair)]
            rows.append(row)
        return styled_table(rows, header, style, "" if style == "text" else self.caption, SPARE)

    @property
    def _pair_columns(self) -> list[str]:
        header = ["rankers", "mean", "against", *self.columns, "p", f"p, {self.correction}", "Cohen's d"]
        return [*header, "detectable, 80 % power", *(["verdict"] if self.pairs[0].verdict is not None else [])]

    def _pair_rows(self) -> list[list[Any]]:
        return [
            [rankers, self.means[pair.a], self.means[pair.b], *figures, pair.p, pair.marked,
             plain(pair.effect), pair.detectable, *_verdict(pair)]
            for pair in self.pairs
            for rankers, *figures in [pair.cells(self.test)]
        ]  # fmt: skip

    def pairs_table(self, style: str = "text") -> str:
        """Return the table of the compared pairs, in a style of `systems_table`."""
        caption = "" if style == "text" else self.caption
        return styled_table(self._pair_rows(), self._pair_columns, style, caption, SPARE)

    def _table(self, style: str) -> str:
        return self.systems_table(style)

    def text(self, style: str = "text") -> str:
        """Return the tables with all notes, in a style of `systems_table`."""
        parts = [self.systems_table(style)]
        if self.baseline is None:
            shown = sum(pair.p_adjusted < LEVEL for pair in self.pairs)
            if len(self.pairs) <= FEW_PAIRS or style != "text":
                parts.append(self.pairs_table(style))
            groups = ". Systems that share a letter in `group` do not" if self.groups else ""
            ranks = f". {RANKS}" if self.rank_sets else ""
            parts.append(f"{shown} of {counted(len(self.pairs), 'pair')} differ significantly{groups}{ranks}")
        parts += self._by_queries(self.pairs if len(self.pairs) <= 5 else [])
        detectable = sorted(pair.detectable for pair in self.pairs if not math.isnan(pair.detectable))
        power = "no detectable difference, because fewer than five queries differ, or all differ by the same amount"
        if detectable:
            which = "by a corrected p below 0.05" if self.n_comparisons > 1 else "by p below 0.05"
            median = ", median of the pairs" if len(detectable) > 1 else ""
            power = f"detectable difference at 80 % power {detectable[len(detectable) // 2]:.4f} ({which}{median})"
        if any(pair.verdict is not None for pair in self.pairs):
            power += "; better and worse follow the corrected p, other verdicts are for one pair alone"
        parts.append(f"{self.caption}; {power}" if style == "text" else power)
        about = self.about if isinstance(self.about, str) else self.about(style)
        parts += [*self.sentences(), *([about] if about else [])]
        if self.ties_matter():
            parts.append(
                f"ties change a mean by more than 0.0005. The values follow the rule of the convention "
                f"{self.convention}; `ties averaged` is independent of it"
            )
        if self.smallest_p >= LEVEL and not all(math.isnan(pair.p) for pair in self.pairs):
            parts.append(
                f"no difference can be significant: too few queries differ, so that {self.counted} cannot have a "
                f"corrected p below {self.smallest_p:.3g}. Use more queries or compare fewer systems"
            )
        if self.by is not None and self.by.AGGREGATE == "sum":
            parts.append(f"{self.measure}: means over queries here; `truerank evaluate` prints the total")
        return "\n\n".join([*parts, *self.unjudged[1]])

    def _by_queries(self, pairs: Sequence[PairComparison]) -> list[str]:
        """Return the queries that move each pair most, and the queries that alone decide a pair."""
        rows, parts = [], []
        for pair in pairs:
            moved = [
                ", ".join(f"{query} {difference:+.4f}" for query, difference in some)
                for some in self.moved_most(pair.a, pair.b)
            ]
            rows += [[f"{pair.a} against {pair.b}", *moved]] if any(moved) else []
            one = self.influence(pair.a, pair.b)
            if one is not None and one.changes:
                parts.append(
                    f"query {one.query} alone decides {pair.a} against {pair.b}: without this query, the difference is "
                    f"{one.difference:+.4f} (corrected p {one.p_adjusted:.4f})"
                )
        return [*([table(rows, ["queries that differ most", "gains", "losses"])] if rows else []), *parts]

    def __str__(self) -> str:
        return "\n\n".join([self.summary, self.text(), CHOSEN])

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.per_query)}; {self.measure}, {self.test})"


class Comparisons(Result, dict[str, Comparison]):
    """Comparisons of the same rankers by name of measure; p is corrected for all of them together."""

    KIND = "comparison"

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
        return first if len(found) == 1 else first | {"measures": found}

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each measure and pair."""
        return resolve("pandas:concat")({name: one.to_frame() for name, one in self.items()}, names=["measure"])

    def to_latex(self, show: Sequence[str] = (), rope: float | None = None) -> str:
        """Return the table of a paper for the package booktabs; for `show` and `rope` see `paper_table`."""
        return paper_table(self, "latex", next(iter(self.values()))._topics, show, rope)

    def methods_text(self, seed: Any = None) -> str:
        """Return the paragraph of a paper on data, measures, test and correction, and BibTeX of the cited methods."""
        topics = next(iter(self.values()))._topics
        return str(resolve("truerank.significance.methods_text:methods_text")(self, topics, seed))

    def _table(self, style: str) -> str:
        first = next(iter(self.values()))
        rows = [[measure, *row] for measure, one in self.items() for row in one._pair_rows()]
        header = ["measure", *first._pair_columns]
        conventions = dict.fromkeys(one.convention for one in self.values())
        caption = f"{', '.join(self)}, convention {', '.join(map(titled, conventions))}; {first.method}"
        return styled_table(rows, header, style, caption)

    def text(self, style: str = "text") -> str:
        """Return `Comparison.text` of all measures."""
        return "\n\n".join(one.text(style) for one in self.values())

    def __str__(self) -> str:
        return "\n\n".join([super().__str__(), *remarks_below(self)])


def remarks_below(compared: Mapping[str, Comparison]) -> list[str]:
    """Return the lines below tables of comparisons by measure: their sentences, and the remark on selection."""
    of_which = [f"{name}: " if len(compared) > 1 else "" for name in compared]
    lines = [f"{name}{line}" for name, one in zip(of_which, compared.values()) for line in one.sentences()]
    return [*lines, CHOSEN]


def _verdict(pair: PairComparison) -> list[str]:
    return [] if pair.verdict is None else [pair.verdict.words]
