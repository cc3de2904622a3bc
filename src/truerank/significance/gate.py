"""Decide whether retrieval is as good as before, from values by query: PASS, FAIL or INCONCLUSIVE.

A commit FAILs if a loss is significant, PASSes if a loss above δ is excluded, and is INCONCLUSIVE otherwise.

* The whole set and all segments are one family. FAIL requires that the simultaneous interval of a difference is below
  0, the estimate is below -δ, and enough queries differ (six at the level 0.05). With N looks at the same queries, the
  level is 0.05/N. With several looks, the intervals are Student's with Bonferroni's correction, because random signs
  underestimate a skewed tail. The longer end is corrected for skewness (Hall 1992). Each deviation is then at least the
  root mean square of all deviations, since a segment without a rare loss underestimates it.
* If no query gains as much as the mean query loses, a FAIL of the whole set requires that the loss remains significant
  after one more query is added, which gains what a query of the baseline can gain.
* PASS requires that the whole set is "better", or "not worse by more than δ" (`significance.intervals.Verdict`).
* Floors (least means, largest losses) are a separate family, with the level 0.05/N divided by the number of floors.

A commit that changes nothing FAILs with a probability of at most 0.05 over all segments and looks, plus 0.05 for the
floors, on resampled collections (`python -m validation gate`).

References
----------
P. Hall (1992). On the removal of skewness by transformation. Journal of the Royal Statistical Society B 54.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from truerank.core.checks import check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.printing import counted, styled_table
from truerank.core.results import Result
from truerank.core.types import RandomState
from truerank.measures.base import Measure
from truerank.significance.corrections import simultaneous_intervals
from truerank.significance.intervals import (
    Interval,
    Verdict,
    checked_margin,
    decided,
    failing_loss,
    is_share,
    measure_interval,
    student_quantile,
)
from truerank.significance.paired import LEVEL, differences_of, moments, share_interval, smallest_p

ALL_QUERIES = "all queries"
PASS, FAIL, INCONCLUSIVE = "PASS", "FAIL", "INCONCLUSIVE"
EXIT_CODES = {PASS: 0, FAIL: 1, INCONCLUSIVE: 3, "pass": 0, "fail": 1}
_MOST_LOST = 5  # queries that are listed
_SAME = 1e-9  # differences that rounding alone makes


class GateLine(NamedTuple):
    """One line of a gate, for the whole set, a segment, or a floor. Figures that do not apply to the line are NaN."""

    name: str
    n: int
    verdict: str = ""  # PASS, FAIL, or "" where the line neither passes nor fails
    about: str = ""
    new: float = math.nan
    old: float = math.nan
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan


class Floor(NamedTuple):
    """A bound on the mean of one system. `bound` is the least mean, or the largest mean if `most` is set.

    `values` (m,) are NaN for queries that the mean leaves out. For a largest mean, the values are losses of 0 or 1.
    """

    name: str
    values: np.ndarray
    bound: float
    most: bool = False
    measure: Measure | None = None


@dataclass(frozen=True)
class Gate(Result):
    """The decision of a gate and the reason.

    Attributes
    ----------
    verdict : "PASS", "FAIL" or "INCONCLUSIVE"
    reason : str
        The reason of the verdict, in one sentence.
    lines : list of GateLine
        The whole set, the floors, and the segments.
    least_margin : float
        The least δ with which a commit that changes nothing passes; NaN if the measure has no such δ.
    least_queries : int or None
        The number of queries with which a commit that changes nothing passes at the margin.
    needed : int or None
        The approximate number of queries that decide, if the gate is inconclusive and the number is known.
    lost : list of (str, float)
        The queries with the largest losses, with their differences.
    look, looks : int
        The number of this look at the same queries, and the number of looks that share the level.
    notes : list of str
    about : dict
        The measure, its convention, the names of the systems, the margin, the level of the intervals.
    inconclusive : "pass", "fail" or None
        The verdict whose exit code an inconclusive gate returns.
    """

    verdict: str
    reason: str
    lines: list[GateLine]
    least_margin: float
    least_queries: int | None
    needed: int | None
    lost: list[tuple[str, float]]
    look: int = 1
    looks: int = 1
    notes: list[str] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    inconclusive: str | None = None
    experiment: Any = field(default=None, repr=False)
    KIND: ClassVar[str] = "gate"

    @property
    def summary(self) -> str:
        """The verdict in one sentence."""
        return f"{self.verdict}: {self.reason}"

    @property
    def exit_code(self) -> int:
        """The exit code: 0 for PASS, 1 for FAIL, 3 for INCONCLUSIVE unless `inconclusive` names another verdict."""
        return EXIT_CODES[self.inconclusive if self.verdict == INCONCLUSIVE and self.inconclusive else self.verdict]

    def _figures(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "summary": self.summary,
            **self.about,
            "look": self.look,
            "looks": self.looks,
            "least_margin": self.least_margin,
            "least_queries": self.least_queries,
            "needed": self.needed,
            "lines": [one._asdict() for one in self.lines],
            "lost_most": [{"query": query, "difference": value} for query, value in self.lost],
            "notes": self.notes,
        }

    def _table(self, style: str) -> str:
        return lines_table(self.lines, self.about.get("level", LEVEL), style)

    def to_markdown(self) -> str:
        """Return the summary for a pull request."""
        lines = [f"**{self.verdict}**: {self.reason}", "", self._table("markdown"), ""]
        return "\n".join([*lines, *(f"- {text}" for text in self._more())]) + "\n"

    def _more(self) -> list[str]:
        if not self.lost:
            return self.notes
        return ["lost most: " + ", ".join(f"{query} {value:+.4f}" for query, value in self.lost), *self.notes]

    def __str__(self) -> str:
        return "\n".join([self.summary, "", self._table("text"), "", *self._more()])


def lines_table(lines: Sequence[GateLine], level: float, style: str, caption: str = "") -> str:
    """Return lines as a table in a style of `styled_table`; `level` is the level of the intervals."""
    rows: list[list[Any]] = []
    for one in lines:
        form = ".4f" if math.isnan(one.difference) else "+.4f"
        ends = "" if math.isnan(one.low) else f"{one.low:{form}} to {one.high:{form}}"
        rows.append([one.name, one.n, one.new, one.old, _signed(one.difference), ends, one.verdict, one.about])
    header = ["", "n", "new", "old", "difference", f"{100 * (1 - level):.4g} % interval", "verdict", ""]
    if not any(row[-1] for row in rows):
        header, rows = header[:-1], [row[:-1] for row in rows]
    return styled_table(rows, header, style, caption)


def _signed(value: float) -> str:
    return "" if math.isnan(value) else f"{value:+.4f}"


def least_margin(loss: float, n: int) -> float:
    """Return the δ above which n queries without any difference pass: L (1 + t)/(n + 1).

    L is the mean of the baseline's values, and t is Student's 0.975 quantile with n degrees of freedom.

    >>> [round(least_margin(0.5, n), 4) for n in (20, 74, 200)]
    [0.0735, 0.02, 0.0074]
    """
    return loss * (1.0 + student_quantile(1.0 - LEVEL / 2.0, n)) / (n + 1)


def least_queries(loss: float, margin: float) -> int | None:
    """Return the least n for which `least_margin(loss, n)` is below the margin.

    >>> [least_queries(loss, 0.02) for loss in (0.3, 0.5, 0.8)]
    [45, 74, 119]
    """
    return _least(lambda n: least_margin(loss, n) < margin, 0)


def failing_ends(differences: np.ndarray, level: float, random_state: RandomState = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends (h,) of the simultaneous intervals of means, or NaN without an interval.

    `differences` (n, h) has a column for the whole set and for each segment, NaN for queries outside the segment.
    """
    if level >= LEVEL:
        found = simultaneous_intervals(differences, level=1.0 - level, random_state=random_state)
        return found.low, found.high
    n, mean, deviation = moments(differences)
    there = deviation > 0
    pooled = math.sqrt((deviation**2).sum() / max(there.sum(), 1))
    t = np.array([student_quantile(1.0 - level / (2.0 * len(n)), int(k) - 1) if k > 1 else math.nan for k in n])
    scale = np.where(there, np.maximum(deviation, pooled), math.nan)
    skewness = np.nansum((differences - mean) ** 3, axis=0) / (n * np.where(there, deviation, 1.0) ** 3)
    return mean - scale * skewed_half(t, -skewness, n), mean + scale * skewed_half(t, skewness, n)


def skewed_half(t: np.ndarray, skewness: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return the distance from a mean to the upper end of its interval, in deviations: t/√n, or more if gains are rare.

    If the skewness g of the n differences is positive, this is x with H(x) = t/√n, where Hall's transformation H(x) = x
    - g x²/3 + g² x³/27 - g/(6n) makes the t-statistic nearly symmetric.

    >>> skewed_half(np.full(3, 3.0), np.array([-1.0, 0.0, 1.0]), np.array(25)).round(3).tolist()
    [0.6, 0.6, 0.802]
    """
    g, x = np.maximum(skewness, 0.0), t / np.sqrt(n)
    used = np.where(g > 1e-6, g, 1.0)
    return np.where(g > 1e-6, 3.0 / used * (1.0 - np.cbrt(1.0 - used * (x + used / (6.0 * n)))), x)


def fails(differences: np.ndarray, high: np.ndarray, margin: float, level: float) -> np.ndarray:
    """Return which means of differences (n, h) have a significant loss.

    A loss requires an interval below 0, an estimate below -δ, and k differing queries such that p = 2^(1-k) is below
    the level. Equal differences, which have no interval, require this p for all h means together.
    """
    _, mean, deviation = moments(differences)
    least = smallest_p(np.count_nonzero(np.nan_to_num(differences), axis=0))
    shown = np.where(deviation > 0, (high < 0) & (least < level), least * len(mean) < level)
    return shown & (mean < -margin)


def decide_gate(
    new: np.ndarray,
    old: np.ndarray,
    margin: float = 0.02,
    *,
    segments: Mapping[str, np.ndarray] | None = None,
    floors: Sequence[Floor] = (),
    looks: int = 1,
    look: int = 1,
    measure: Measure | None = None,
    query_ids: Sequence[Any] | None = None,
    random_state: RandomState = 0,
) -> Gate:
    """Decide from the values (m,) of a measure by query, which are NaN for queries without a value.

    Parameters
    ----------
    new, old : arrays (m,)
        Values of the new system and of the baseline.
    margin : float, default=0.02
        The loss δ > 0 that is too small to matter, in the unit of the measure.
    segments : mapping of str to bool array (m,), optional
        The queries of each segment.
    floors : sequence of Floor
    looks, look : int
        Looks that share the level, and the number of this one. A look beyond `looks` is inconclusive.
    measure : Measure, optional
        The measure of the values. By default, higher is better, and no value is negative.
    query_ids : sequence (m,), optional
    random_state : seed of the resamples of simultaneous intervals

    Returns
    -------
    Gate

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> old = rng.random(200)
    >>> decide_gate(np.clip(old + rng.normal(0.0, 0.02, 200), 0.0, 1.0), old).verdict
    'PASS'
    >>> decide_gate(old - 0.1 * (rng.random(200) < 0.6), old).verdict
    'FAIL'
    """
    delta = checked_margin(margin)
    if delta is None:
        raise InvalidInputError(
            "margin must be a number above 0, got None. Pass the largest loss to accept, such as margin=0.01"
        )
    looks, look = check_positive_int(looks, "looks"), check_positive_int(look, "look")
    level, sign = LEVEL / looks, 1.0 if measure is None or measure.higher_is_better else -1.0
    new, old = np.asarray(new, dtype=np.float64), np.asarray(old, dtype=np.float64)
    d = sign * differences_of(new, old)
    masks = with_all_queries(segments or {}, len(d))
    lines = segment_lines(new, old, masks, level, margin=delta, sign=sign, random_state=random_state)
    gain = _unseen_gain(d[~np.isnan(d)], old, measure)
    lines = [_unless_hidden(one, k, masks[one.name], d, old, level, measure) for k, one in enumerate(lines)]
    bounds = [_floor(one, level / len(floors), level) for one in floors]
    loss = failing_loss(old, new, measure)
    found = decided("t", d[~np.isnan(d)], delta, loss)
    if not lines[0].verdict and _passes(found):
        lines[0] = lines[0]._replace(verdict=PASS)
    order = [k for k in np.argsort(np.nan_to_num(d), kind="stable").tolist() if d[k] < 0][:_MOST_LOST]
    names = [str(k) for k in range(len(d))] if query_ids is None else list(map(str, query_ids))
    verdict, reason, needed = _verdict(lines, bounds, found, delta, level, look, looks, gain)
    notes = []
    if loss:
        notes.append(
            f"a changed system without a gain passes with {counted(found.n, 'query')} only if the margin is above "
            f"{least_margin(loss, found.n):.3g}. At the margin {delta:g} it requires {least_queries(loss, delta)} "
            f"queries or more"
        )
    if verdict == PASS and found.interval.high < 0:
        notes.append(
            f"worse, but by less than {delta:g}. Replace the baseline only by a better system, because such losses add "
            "up"
        )
    if found.not_worse and verdict == PASS and not found.better:
        notes.append(found.unseen)
    return Gate(
        verdict, reason, [lines[0], *bounds, *lines[1:]],
        math.nan if loss is None else least_margin(loss, found.n),
        None if not loss else least_queries(loss, delta),
        needed, [(names[k], sign * float(d[k])) for k in order], look, looks, notes,
        {"margin": delta, "level": level, "queries": found.n},
    )  # fmt: skip


def with_all_queries(segments: Mapping[str, np.ndarray], n: int) -> dict[str, np.ndarray]:
    """Return masks of the n queries by name, first of all queries, then of each segment."""
    if ALL_QUERIES in segments:
        raise InvalidInputError(
            f"a segment is called {ALL_QUERIES!r}, the name of the whole set. Rename the segment", argument="segments"
        )
    return {ALL_QUERIES: np.ones(n, dtype=bool), **segments}


def segment_lines(
    new: np.ndarray, old: np.ndarray, masks: Mapping[str, np.ndarray], level: float, *, margin: float, sign: float,
    words: tuple[str, str] = (FAIL, ""), random_state: RandomState = None,
) -> list[GateLine]:  # fmt: skip
    """Return a line for each set of queries (m,), with simultaneous intervals; the first set has values.

    `sign` is -1 for measures whose lower values are better. `words` are the verdicts for a loss whose estimate is above
    the margin, and for a gain (`fails`).
    """
    d = sign * differences_of(new, old)
    columns = np.column_stack([np.where(mask, d, np.nan) for mask in masks.values()])
    filled = ~np.isnan(columns).all(axis=0)
    if not filled[0]:
        raise InvalidInputError("no query has a value of both systems. Pass values of the same queries")
    n, mean, _ = moments(columns[:, filled])
    low, high = failing_ends(columns[:, filled], level, random_state)
    failed, gained = fails(columns[:, filled], high, margin, level), fails(-columns[:, filled], -low, 0.0, level)
    lines, number = [], iter(range(len(n)))
    for (name, mask), there in zip(masks.items(), filled.tolist()):
        if not there:
            lines.append(GateLine(name, 0, about="no query has a value"))
            continue
        k, kept = next(number), mask & ~np.isnan(d)
        ends = sorted((sign * float(low[k]), sign * float(high[k])))
        means = float(new[kept].mean()), float(old[kept].mean())
        own = *means, sign * float(mean[k]), *ends
        lines.append(GateLine(name, int(n[k]), words[0] if failed[k] else words[1] if gained[k] else "", "", *own))
    return lines


def _unless_hidden(
    line: GateLine, k: int, mask: np.ndarray, d: np.ndarray, old: np.ndarray, level: float, measure: Measure | None
) -> GateLine:
    """Return a line without its FAIL if one more query with a gain would hide the loss.

    The rule applies to all queries (line k = 0), and to segments whose queries all lose the same.
    """
    x = d[mask & ~np.isnan(d)]
    if line.verdict != FAIL or (k and np.ptp(x) > _SAME):
        return line
    gain = _unseen_gain(x, old[mask], measure)
    if not gain or _loses(line.n, float(x.mean()), float(x.std(ddof=1)), level, gain):
        return line
    return line._replace(verdict="", about=f"one more query with a gain of {gain:.3g} would hide the loss")


def _unseen_gain(d: np.ndarray, old: np.ndarray, measure: Measure | None) -> float:
    """Return the possible gain of one more query if no query gains as much as the mean query loses, else 0.

    The gain is the mean difference between 1 and the baseline's values `old`; measures without this limit have no gain.
    """
    bounded = measure is None or (measure.higher_is_better and is_share(measure))
    return max(0.0, 1.0 - float(np.nanmean(old))) if bounded and len(d) and d.max() <= -d.mean() else 0.0


def _loses(n: int, mean: float, deviation: float, level: float, gain: float) -> bool:
    """Return whether Student's interval of n differences is below 0, also with one more difference of `gain`."""
    if gain:
        deviation = math.sqrt(((n - 1) * deviation**2 + n / (n + 1) * (gain - mean) ** 2) / n)
        n, mean = n + 1, (n * mean + gain) / (n + 1)
    return mean + student_quantile(1.0 - level / 2.0, n - 1) * deviation / math.sqrt(n) < 0


def _mean_of(line: GateLine) -> str:
    if not line.n:
        return line.about
    ends = "no interval" if math.isnan(line.low) else f"interval {line.low:.4f} to {line.high:.4f}"
    return f"{line.new:.4f} with {counted(line.n, 'query')}, {ends}"


def _passes(found: Verdict) -> bool:
    return found.better or found.not_worse or not (found.interval.estimate or found.deviation)


def _verdict(
    lines: list[GateLine], floors: list[GateLine], found: Verdict, margin: float, level: float, look: int, looks: int,
    unseen: float,
) -> tuple[str, str, int | None]:  # fmt: skip
    """Return the verdict, the reason, and how many queries decide if the verdict is inconclusive."""
    whole, (mean, low, high) = lines[0], found.interval
    shown = f"{whole.new:.4f} against {whole.old:.4f} with {counted(found.n, 'query')}"
    flip = -1.0 if mean * whole.difference < 0 else 1.0  # less is better: what is printed is new less old
    ends = "" if math.isnan(low) else " [{:+.4f}, {:+.4f}]".format(*sorted((flip * low, flip * high)))
    gain = f"{flip * mean:+.4f}{ends}"
    if look > looks:
        return INCONCLUSIVE, (
            f"this is look {look} at these queries, but the level is divided by {looks} looks. Use new gold queries, "
            f"or plan more looks"
        ), None  # fmt: skip
    if failed := [one for one in lines if one.verdict == FAIL]:
        where = [f"{one.name} ({one.difference:+.4f})" for one in failed[:3]]
        more = f" and {len(failed) - 3} more" if len(failed) > 3 else ""
        return FAIL, f"there is a significant loss, estimated above {margin:g}, in {', '.join(where)}{more}", None
    if failed := [one for one in floors if one.verdict == FAIL]:
        return FAIL, "; ".join(f"{one.name} is violated: {_mean_of(one)}" for one in failed), None
    open_floors = [one for one in floors if one.verdict != PASS]
    if _passes(found) and not open_floors:
        if found.better:
            return PASS, f"the new system is better, {gain}: {shown}", None
        if not (mean or found.deviation):
            return PASS, f"the results are identical: {shown}", None
        return PASS, f"the new system is not worse by more than {margin:g}, {gain}: {shown}", None
    if _passes(found):
        return INCONCLUSIVE, "; ".join(f"{one.name} is not confirmed: {_mean_of(one)}" for one in open_floors), None
    needed = queries_to_decide(found, margin, level / sum(one.n > 0 for one in lines), gain=unseen)
    more = "more queries cannot decide a difference near the margin" if needed is None else (
        f"about {needed} such queries are needed to decide"
    )  # fmt: skip
    if found.loss is None:
        more = '"not worse" is undefined where values can be negative or lower is better'
    loss = "the data do not show whether the loss"
    if whole.about:
        loss = f"there is a loss, but {whole.about}; the data do not show whether it"
    elif max(flip * whole.low, flip * whole.high) < 0:
        loss = "there is a significant loss, but the data do not show whether it"
    elif found.worse:
        loss = "the data do not show, at the level divided among looks and segments, whether the loss"
    return INCONCLUSIVE, f"{loss} is at most {margin:g}: {gain}, {shown}; {more}", needed


def queries_to_decide(
    found: Verdict, margin: float, level: float = LEVEL, most: float = 1e6, gain: float = 0.0
) -> int | None:
    """Return about how many queries with the given mean and deviation PASS or FAIL, or None above `most`.

    `level` is the level of a FAIL of the whole set: with segments, a share of the family's level, by Bonferroni. `gain`
    is the gain of one more query, with which the loss must still be significant.

    >>> d = np.tile([-0.1, 0.1], 15)  # the mean 0, the deviation 0.102
    >>> queries_to_decide(decided("t", d, 0.02, 0.5), 0.02)
    161
    """
    mean, deviation = found.interval.estimate, found.deviation

    def decides(n: int) -> bool:
        half = student_quantile(1.0 - LEVEL / 2.0, n - 1) * deviation / math.sqrt(n)
        if mean < -margin:
            return smallest_p(n) < level and _loses(n, mean, deviation, level, gain)
        more = Verdict(Interval(mean, mean - half, mean + half), 1.0, n, deviation, margin, found.loss)
        return mean - half > 0 or more.not_worse

    return _least(decides, found.n, most)


def _least(holds: Callable[[int], bool], few: int, most: float = math.inf) -> int | None:
    """Return the least n > `few` from which on a condition holds, if it does not hold at `few`; None above `most`."""
    many = max(1, 2 * few)
    while not holds(many):
        few, many = many, 2 * many
        if many > most:
            return None
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if holds(middle) else (middle, many)
    return many


def _floor(floor: Floor, level: float, shown: float) -> GateLine:
    """Return whether a bound on a mean is met, and the interval at 1 - level that decides.

    If the heading of the table has another level (`shown`), the line states the level of the floor.
    """
    values = floor.values[~np.isnan(floor.values)]
    n, bound = len(values), check_number(floor.bound, floor.name)
    if not n:
        return GateLine(floor.name, 0, about="no query has a value")
    about = "" if level == shown else f"{100 * (1 - level):.4g} % interval"
    mean = float(values.mean())
    low, high = floor_interval(values, level, floor.measure, floor.most)
    if floor.most:
        verdict = FAIL if low > bound else PASS if high <= bound else ""
    else:
        verdict = FAIL if high < bound else PASS if low >= bound else ""
    return GateLine(floor.name, n, verdict, about, mean, low=low, high=high)


def floor_interval(
    values: np.ndarray, level: float, measure: Measure | None = None, losses: bool = False
) -> tuple[float, float]:
    """Return the interval of one mean that decides on a floor.

    `losses`, and values between 0 and 1 that are all 0 or 1, have Clopper and Pearson's interval, because Student's
    lower end is above a true mean near 1 in up to 18 % of samples. If all values are 1, the lower end is level^(1/n);
    if all are 0, the upper end is 1 - level^(1/n). Other equal values have no interval. All other values have Student's
    interval within the measure's limits.

    >>> [round(end, 4) for end in floor_interval(np.ones(20), 0.05)], floor_interval(np.full(9, 0.5), 0.05)
    ([0.8609, 1.0], (nan, nan))
    """
    n, ones = len(values), int(np.count_nonzero(values))
    binary = (measure is None or is_share(measure)) and bool(np.isin(values, (0.0, 1.0)).all())
    if binary and ones in (0, n) and not losses:
        return (level ** (1.0 / n), 1.0) if ones else (0.0, 1.0 - level ** (1.0 / n))
    if losses or binary:
        return share_interval(ones, n - ones, level)
    return measure_interval(measure, values, level=1.0 - level)[1:]
