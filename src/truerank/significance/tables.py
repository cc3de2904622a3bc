"""The result of a comparison: tables for people and for papers, and groups without a significant difference."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.printing import Tabular, counted, latex_escaped, plain, styled_table
from truerank.measures.conventions import titled
from truerank.significance.intervals import Interval, Verdict
from truerank.significance.paired import LEVEL, OF_MEANS, TIED, differences_of

MOST_GROUPS = 200
CHOSEN = "If you chose among systems on these queries, put all of them into one comparison."
_INTERVAL_OF = {"sign": "share of wins", "wilcoxon": "pseudo-median"}
_MOVED_BY_TIES = 0.0005  # the fourth digit may change by rounding alone


class PairComparison(NamedTuple):
    """The comparison of ranker `a` with ranker `b`.

    The interval from `low` to `high` is of this pair alone and agrees with `p`; NaN if there is none. It is the 95 %
    interval of the mean difference, of the share of wins (sign test) or of the pseudo-median (Wilcoxon's test).
    `simultaneous` is the interval of the mean difference that agrees with the correction "max-t"
    (`simultaneous_intervals`), and None with other corrections.
    `detectable` is the true difference that is found with 80 % power after the correction: the power of
    `queries_needed` at 0.05 divided by the number of comparisons. With "max-t", it is the smaller of the differences
    that its two parts find. `detectable` is NaN if fewer than five queries differ.
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
    n_resamples: int  # random signs, or all 2^n of them; more for more pairs
    query_ids: list[str] | None
    tie_averaged: dict[str, float]
    higher_is_better: bool
    smallest_p: float
    n_comparisons: int  # that p is corrected for: pairs times measures
    divided: bool  # whether Holm's part of "max-t" has a share of the level
    _again: Callable[..., Any] = field(repr=False)
    _number: int = 0  # of this measure
    about: str = ""  # printed below the table
    look: int = 1  # number of this comparison on the same queries
    level: float = LEVEL  # of this look: of the intervals of pairs, and before `p_adjusted` is multiplied

    @property
    def interval_of(self) -> str:
        """The quantity of the intervals: mean difference, share of wins or pseudo-median."""
        return _INTERVAL_OF.get(self.test, "mean difference")

    @property
    def columns(self) -> list[str]:
        """Headings of `PairComparison.cells`, without the first."""
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
        """Measure, convention, queries, test and correction."""
        about = f"{self.measure or 'values'}, convention {titled(self.convention)}" if self.convention else self.measure
        return f"{about}; {self.method}".removeprefix("; ")

    @property
    def method(self) -> str:
        """The caption without the measure and its convention."""
        sure = [pair.verdict for pair in self.pairs if pair.verdict is not None and pair.verdict.not_worse]
        unseen = f"; {min(sure, key=lambda one: one.n).unseen}" if sure else ""
        return f"{self.tested}; intervals are of each pair alone{unseen}"

    @property
    def tested(self) -> str:
        """Queries, test and correction."""
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

    def remarks(self) -> list[str]:
        """Return sentences on pairs without an interval, and on p that another seed may move across 0.05."""
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
        """Compare `a` with `b` without the single query that matters most; all comparisons are tested again without it.

        This is the query without which Student's t is nearest to 0 if the adjusted p is below 0.05, else farthest from
        0. The result is None for fewer than three queries, and if only this query has a value in another comparison.
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

    @property
    def _sign(self) -> float:
        return 1.0 if self.higher_is_better else -1.0

    def _differences(self, a: str, b: str) -> np.ndarray:
        """Differences by query (m,), positive where `a` is better."""
        ours, theirs = (np.asarray(self.per_query[name], dtype=np.float64) for name in (a, b))
        return self._sign * differences_of(ours, theirs)

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
        """Return what `truerank compare` prints as JSON."""
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
        return plain(figures)

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
                row += [*pair.cells(self.test)[1:], pair.p, pair.marked, plain(pair.effect), *_verdict(pair)]
            rows.append(row)
        return styled_table(rows, header, style, "" if style == "text" else self.caption)

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
        """Return the table of the pairs that were compared, in a style of `systems_table`."""
        return styled_table(self._pair_rows(), self._pair_columns, style, "" if style == "text" else self.caption)

    def _table(self, style: str) -> str:
        return self.systems_table(style)

    def __str__(self) -> str:
        about = [self.about] if self.about else []
        lines = [self.pairs_table(), "", self.caption, *self.remarks(), *about, CHOSEN]
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
        return "\n".join([styled_table(rows, header, style, caption), *([*remarks, CHOSEN] if style == "text" else [])])


def _verdict(pair: PairComparison) -> list[str]:
    return [] if pair.verdict is None else [pair.verdict.words]


def letter(number: int) -> str:
    """Return the letter of a group or system: a … z, then a1 … z1, a2 …"""
    return chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")


def groups_alike(means: Sequence[float], different: np.ndarray) -> list[list[int]]:
    """Return groups of systems such that two systems share a group exactly if they do not differ significantly.

    Piepho's insert and absorb: start with one group of all systems. Each significant pair splits the groups that hold
    both systems, and groups within other groups are removed. If that needs more than `MOST_GROUPS` groups, the groups
    are the longest sequences in the order of means without a significant difference. In this case, systems without a
    common group may also not differ significantly.

    `different` (k, k) is symmetric. Groups may overlap. Groups are sorted by their best member.

    References
    ----------
    Piepho: An algorithm for a letter-based representation of all-pairwise comparisons. J. Comput. Graph. Stat. 13
    (2004), 456-466.

    Examples
    --------
    >>> apart = np.zeros((3, 3), dtype=bool)
    >>> apart[0, 2] = apart[2, 0] = True
    >>> groups_alike([0.5, 0.4, 0.3], apart)
    [[0, 1], [1, 2]]
    """
    order = np.argsort(-np.asarray(means, dtype=np.float64), kind="stable").tolist()
    k = len(order)
    groups = [(1 << k) - 1]  # sets of places in the order of means, as bits
    for i in range(k):
        for j in range(i + 1, k):
            if not different[order[i], order[j]]:
                continue
            pair = 1 << i | 1 << j
            kept = [group for group in groups if group & pair != pair]
            parts = {group & ~(1 << one) for group in groups if group & pair == pair for one in (i, j)}
            for part in sorted(parts, key=int.bit_count, reverse=True):
                if not any(part & group == part for group in kept):
                    kept.append(part)
            groups = kept
            if len(groups) > MOST_GROUPS:
                return _runs_alike(order, different)
    found = [[i for i in range(k) if group >> i & 1] for group in groups]
    return [[order[i] for i in group] for group in sorted(found)]


def _runs_alike(order: list[int], different: np.ndarray) -> list[list[int]]:
    """Return the longest sequences in the order of means without a significant difference."""
    groups: list[list[int]] = []
    reached = 0
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and not different[order[stop], order[start:stop]].any():
            stop += 1
        if stop > reached:
            groups.append(order[start:stop])
            reached = stop
    return groups


def paper_table(results: Mapping[str, Comparison], style: str = "latex", topics: str | None = None) -> str:
    """Return a table of systems by measures, with the best mean of each measure in bold.

    `results` are comparisons of the same systems by measure. Style "latex" is a complete table for the package
    booktabs. "csv" has a row for each system and measure, with intervals and p. `topics` describes the topics of the
    means in the caption.

    With a baseline, + and - mark the means that are significantly better and worse (corrected p below 0.05). Without a
    baseline each system has a letter, and a mean has the letters of the systems that it is significantly better than.
    """
    if style == "csv":
        return _csv(results)
    first = next(iter(results.values()))
    order = sorted(first.means, key=lambda name: -first._sign * first.means[name])
    letters = {} if first.baseline is not None else {name: letter(k) for k, name in enumerate(order)}
    rows = []
    for name in order:
        cells = [name + (f" ({letters[name]})" if letters else "")]
        for one in results.values():
            best = one._sign * one.means[name] == max(one._sign * mean for mean in one.means.values())
            text = f"{one.means[name]:.4f}"
            if best:
                text = rf"\textbf{{{text}}}" if style == "latex" else f"**{text}**"
            mark = _mark(one, name, letters)
            if mark:
                text += rf"\textsuperscript{{{mark}}}" if style == "latex" else f"<sup>{mark}</sup>"
            cells.append(text)
        rows.append(cells)
    caption = _caption(results, letters, topics)
    if style == "markdown":
        lines = [["ranker", *results], ["---", *["--:"] * len(results)], *rows]
        return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + (
            f"\n\n{caption}"
        )
    body = [" & ".join([latex_escaped(name), *cells]) + r" \\" for name, *cells in rows]
    return "\n".join([
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_escaped(caption)}}}".replace("×", r"$\times$").replace("<", "$<$"),
        rf"\begin{{tabular}}{{l{'r' * len(results)}}}",
        r"\toprule",
        " & ".join(["ranker", *map(latex_escaped, results)]) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ])  # fmt: skip


def _mark(one: Comparison, name: str, letters: Mapping[str, str]) -> str:
    """Return the mark of a mean: + or - against the baseline, or the letters of the systems that are worse."""
    found = ""
    for pair in one.pairs:
        if not pair.p_adjusted < LEVEL or name not in (pair.a, pair.b):
            continue
        gain = one._sign * (one.means[pair.a] - one.means[pair.b]) * (1 if pair.a == name else -1)
        other = pair.b if pair.a == name else pair.a
        if letters:
            found += letters[other] if gain > 0 else ""
        elif pair.a == name:
            found += "+" if gain > 0 else "-"
    return "".join(sorted(found))


def _caption(results: Mapping[str, Comparison], letters: Mapping[str, str], topics: str | None) -> str:
    first = next(iter(results.values()))
    conventions = ", ".join(dict.fromkeys(one.convention for one in results.values()))
    tested = first.tested.replace(", ** where it is below 0.05", "")
    marks = (
        "letters name the systems that a mean is significantly better than"
        if letters
        else f"+ and - mark means that are significantly better and worse than {first.baseline}"
    )
    about = [f"{', '.join(results)}, convention {conventions}", *([topics] if topics else []), tested, marks]
    return f"{'; '.join(about)} (p < {LEVEL})."


def _csv(results: Mapping[str, Comparison]) -> str:
    header = ["measure", "convention", "ranker", "mean", "low", "high", "against", "difference", "difference_low"]
    header += ["difference_high", "p", "p_adjusted", "wins", "losses", "ties"]
    rows: list[list[Any]] = []
    for measure, one in results.items():
        for name, mean in one.means.items():
            own = one.intervals[name]
            for pair in [pair for pair in one.pairs if pair.a == name] or [None]:  # type: ignore[list-item]
                row: list[Any] = [measure, one.convention, name, mean, own.low, own.high]
                if pair is not None:
                    row += [pair.b, pair.difference, pair.low, pair.high, pair.p, pair.p_adjusted]
                    row += [pair.wins, pair.losses, pair.ties]
                rows.append([*row, *[""] * (len(header) - len(row))])
    shown = io.StringIO()
    writer = csv.writer(shown, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([["" if isinstance(v, float) and math.isnan(v) else v for v in row] for row in rows])
    return shown.getvalue().rstrip("\n")
