"""The measures of NIST's trec_eval 10.0, computed from one topic's ranked judgements in its order of operations.

`RANKED` lists the measures in the order of trec_eval's output. Sums run over the ranks in order, in double precision,
so that the printed digits equal the digits of the C program. If trec_eval divides zero by zero, the value is nan, which
trec_eval prints as `-nan`.

Symbols: R is the number of relevant documents of the topic, n of retrieved documents, hits of relevant documents
retrieved; r_i is the grade at rank i, g_i its gain. In the code, places are ranks counted from 0.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeVar

Row = TypeVar("Row")
Pairs = Sequence[tuple[str, float]]  # parameters `grade=gain`; a grade that is not named is its own gain

UNPOOLED, UNJUDGED = -1, -2  # grades of retrieved documents that the qrels do not list, or list with a negative grade
SMALLEST = 0.00001  # of values whose geometric mean is taken
EPSILON = 0.00001  # of the counts in infAP
LONG = 10_000  # topics with more grades than this are not kept for the next run
TEN_CUTS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
TENTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FIFTHS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
_LOG2: list[float] = []
_POWERS: dict[float, list[float]] = {}


def discounts(n: int) -> list[float]:
    """Return log2(i + 2), the discount at index i, for i from 0 to at least n - 1."""
    for i in range(len(_LOG2), n):
        _LOG2.append(math.log2(i + 2))
    return _LOG2


def divided(a: float, b: float) -> float:
    """Return a / b as the processor computes it: infinite, or nan, where b is 0."""
    if b:
        return a / b
    return -math.nan if a == 0.0 or a != a else math.copysign(math.inf, a)


def rounded(x: float) -> int:
    """Return the nearest integer; halves are rounded away from zero (C's lround)."""
    whole = int(x)
    return whole + (x - whole >= 0.5) - (whole - x >= 0.5)


class Ranked:
    """A topic's retrieved documents in ranked order, with the counts that the measures share.

    `pooled` has (place, grade) of the documents that the qrels list, `n` is the number of retrieved documents.
    `at_level` counts judged documents of each grade from 0, retrieved or not; it may be longer than `n_levels`, one
    more than the highest grade. `R` counts relevant documents, of grade `level` or more. `n_collection` is the number
    of documents in the collection, for utility. `truncates` selects the interpolated precision of version 9.
    """

    def __init__(
        self, pooled: list[tuple[int, int]], n: int, at_level: list[int], n_levels: int, n_relevant: int, level: int
    ) -> None:
        self.pooled, self.n, self.at_level, self.n_levels, self.level = pooled, n, at_level, n_levels, level
        self.R = n_relevant
        self.judged = [place for place, grade in pooled if grade >= 0]
        self.hits = [place for place, grade in pooled if grade >= level]
        self.n_hits = len(self.hits)
        self.n_collection = 0
        self.truncates = False
        self._graded: dict[tuple[tuple[str, float], ...], tuple[list[tuple[int, float]], list[float]]] = {}

    @cached_property
    def _positive(self) -> list[tuple[int, int]]:
        return [(place, grade) for place, grade in self.pooled if grade > 0]

    @cached_property
    def grades(self) -> list[int]:
        """The grade at each rank."""
        grades = [UNPOOLED] * self.n
        for place, grade in self.pooled:
            grades[place] = grade
        return grades

    @cached_property
    def precision_sums(self) -> list[float]:
        """Sums of the precision at the first 0, 1, ... relevant documents."""
        sums = [0.0]
        for k, place in enumerate(self.hits, 1):
            sums.append(sums[-1] + k / (place + 1))
        return sums

    @cached_property
    def best_precision(self) -> list[float]:
        """The largest precision at the k-th relevant document or below it, for k from 0."""
        best = [divided(self.n_hits, self.n)] * (self.n_hits + 1)
        for k in range(self.n_hits, 0, -1):
            best[k - 1] = best[k] = max(best[k], k / (self.hits[k - 1] + 1))
        return best

    @cached_property
    def bpref(self) -> float:
        """Binary preference: see `RANKED`."""
        n_nonrelevant = sum(self.at_level[: self.level])
        value, above = 0.0, 0
        for _, grade in self.pooled:
            if grade < 0:
                continue
            if grade < self.level:
                above += 1
            elif above:
                value += 1.0 - divided(min(above, self.R), min(n_nonrelevant, self.R))
            else:
                value += 1.0
        return value / self.R if self.R else value

    def hits_in(self, k: int) -> int:
        """Return the number of relevant documents among the first k."""
        return bisect_left(self.hits, k)

    def gains(self, pairs: Pairs) -> Gains:
        """Return the gains of the grades under `grade=gain` parameters."""
        known = gains_of.__wrapped__ if self.n_levels > LONG else gains_of
        return known(tuple(pairs), tuple(self.at_level[: self.n_levels]))

    def graded(self, pairs: Pairs) -> tuple[list[tuple[int, float]], list[float]]:
        """Return (place, gain) of the documents with a gain other than 0, and DCG up to the first 0, 1, ... of them."""
        key = tuple(pairs)
        if key not in self._graded:
            terms = self.with_gains(self.gains(pairs).by_grade)
            self._graded[key] = terms, _discounted(terms, self.n)
        return self._graded[key]

    def with_gains(self, by_grade: dict[int, float]) -> list[tuple[int, float]]:
        """Return (place, gain) of the documents with a gain other than 0."""
        rows: Iterable[tuple[int, int]] = self._positive
        if by_grade.get(UNPOOLED) or by_grade.get(UNJUDGED):
            rows = enumerate(self.grades)
        elif by_grade.get(0):
            rows = self.pooled
        return [(place, gain) for place, grade in rows if (gain := by_grade.get(grade))]


class Gains(NamedTuple):
    """Gains of a topic's grades.

    `by_grade` is {grade: gain}; other grades have gain 0. `ideal` has the positive gains of the judged documents in the
    best order, as far as trec_eval reads them. `sums` is the DCG of the first 0, 1, ... of these gains. `costs` has
    their sums for G, which `normalised_gain` extends. `largest` is the gain of the last level, and `after` the value
    after the ideal gains.
    """

    by_grade: dict[int, float]
    ideal: list[float]
    sums: list[float]
    costs: list[float]
    largest: float
    after: float


@lru_cache(maxsize=4096)
def gains_of(pairs: tuple[tuple[str, float], ...], at_level: tuple[int, ...]) -> Gains:
    """Return the gains of grades 0, 1, ... with `at_level` judged documents each."""
    rows = [(int(name), gain, 0) for name, gain in pairs if _is_integer(name)]
    places = {row[0]: k for k, row in reversed(list(enumerate(rows)))}
    for grade, count in enumerate(at_level):
        known = places.get(grade)
        if known is None:
            rows.append((grade, float(grade), count))
        else:
            rows[known] = (grade, rows[known][1], count)
    # trec_eval compares gains by the whole part of their difference, which is no order.
    rows = merge_sorted(rows, lambda a, b: int(a[1] - b[1]) <= 0)
    by_grade: dict[int, float] = {}
    for grade, gain, _ in rows:
        by_grade.setdefault(grade, gain)
    ideal: list[float] = []
    after = 0.0
    for _, gain, count in reversed(rows if rows and rows[-1][1] > 0.0 else []):
        if gain <= 0.0 and count:
            after = gain
            break
        ideal += [gain] * count
    sums = _discounted(list(enumerate(ideal)), len(ideal))
    return Gains(by_grade, ideal, sums, [], rows[-1][1] if rows else 0.0, after)


def _discounted(terms: Sequence[tuple[int, float]], n: int) -> list[float]:
    """Return the sums of gain / log2(place + 2) over the first 0, 1, ... terms; places are below n."""
    sums, log2 = [0.0], discounts(n)
    for place, gain in terms:
        sums.append(sums[-1] + gain / log2[place])
    return sums


def _is_integer(text: str) -> bool:
    return text[text[:1] in ("+", "-") :].isdigit() and text.isascii() and len(text) < 20


def merge_sorted(rows: list[Row], comes_first: Callable[[Row, Row], bool]) -> list[Row]:
    """Sort with an order that may contradict itself, so that the outcome depends on the algorithm.

    The algorithm is the merge sort of the GNU C library. `comes_first(a, b)`: a may be placed before b. The cost is O(n
    log n).
    """
    if len(rows) < 2:
        return rows
    middle = len(rows) // 2
    left, right = merge_sorted(rows[:middle], comes_first), merge_sorted(rows[middle:], comes_first)
    merged: list[Row] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if comes_first(left[i], right[j]):
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]


def logarithm(value: float) -> float:
    """Return log(max(value, 0.00001)), whose mean gives the geometric mean."""
    return math.log(max(value, SMALLEST))


def set_F(t: Ranked, x: Sequence[float]) -> float:
    """(x + 1) P R / (x P + R) of the retrieved set (van Rijsbergen 1979)."""
    if not t.n_hits:
        return 0.0
    precision, recall = t.n_hits / t.n, t.n_hits / t.R
    return divided((x[0] + 1.0) * precision * recall, x[0] * precision + recall)


def utility(t: Ranked, c: Sequence[float]) -> float:
    """c1 rel_ret + c2 nonrel_ret + c3 rel_not_ret + c4 nonrel_not_ret."""
    hits = t.n_hits
    return c[0] * hits + c[1] * (t.n - hits) + c[2] * (t.R - hits) + c[3] * (t.n_collection + hits - t.n - t.R)


def inf_ap(t: Ranked) -> float:
    """Inferred AP, for a pool of which a sample was judged (Yilmaz and Aslam 2006)."""
    value, nonrelevant, unjudged, relevant = 0.0, 0, 0, 0
    for j, grade in t.pooled:
        if grade == UNJUDGED:
            unjudged += 1
        elif grade < t.level:
            nonrelevant += 1
        else:
            relevant += 1
            above = relevant - 1
            if j == 0:
                value += 1.0
            else:
                value += 1.0 / (j + 1.0) + (j / (j + 1.0)) * ((above + nonrelevant + unjudged) / j) * (
                    (above + EPSILON) / (above + nonrelevant + 2 * EPSILON)
                )
    return value / t.R if t.R else value


def _wanted_hits(t: Ranked, share: float) -> int:
    return int(share * t.R + 0.9) if t.truncates else rounded(share * t.R)


def interpolated(t: Ranked, share: float) -> float:
    """The largest precision at or below the rank where a share of R is reached.

    Version 10 rounds share · R to the nearest count; version 9 adds 0.9 and truncates. 0 where it is not reached.
    """
    wanted = _wanted_hits(t, share)
    return 0.0 if wanted > t.n_hits else t.best_precision[max(wanted, 0)]


def eleven_points(t: Ranked, shares: Sequence[float]) -> float:
    """The mean of interpolated precision over the shares.

    The shares are passed from the last to the first. A share above an earlier one counts as share 0.
    """
    total, last, passed = 0.0, t.n_hits, False
    for share in reversed(shares):
        wanted = _wanted_hits(t, share)
        if passed or wanted <= t.n_hits:
            last = max(wanted, 0) if wanted <= last else 0
            passed = True
            total += t.best_precision[last]
    return total / len(shares)


def multiple_of_R(t: Ranked, share: float) -> float:
    """The precision at rank share · R, which is rounded up if its fraction is at least 0.1."""
    k = int(share * t.R + 0.9)
    return t.hits_in(k) / k if k > 0 else 0.0


def yaap(t: Ranked) -> float:
    """log((1 + s) / (1 + R - s)) with s the sum of the precision at the relevant documents (Robertson)."""
    s = t.precision_sums[-1]
    return math.log(divided(1.0 + s, 1.0 + t.R - s))


def bin_gain(t: Ranked) -> float:
    """The mean over relevant documents of 1 / log2(2 + documents above that are not relevant)."""
    total = 0.0
    for k, place in enumerate(t.hits):
        total += 1.0 / math.log2(2 + place - k)
    return total / t.R if t.n_hits else 0.0


def rel_string(t: Ranked, length: Sequence[float]) -> str:
    """The grades of the first documents as characters: digits, > above 9, - not pooled, . not judged."""
    signs = {UNPOOLED: "-", UNJUDGED: "."}
    return "".join(signs.get(g) or (">" if g > 9 else str(g)) for g in t.grades[: max(int(length[0]), 0)])


def dcg(t: Ranked, pairs: Pairs) -> float:
    """Σ g_i / log2(i + 1) over the ranks i."""
    return t.graded(pairs)[1][-1]


def ndcg(t: Ranked, pairs: Pairs) -> float:
    """DCG over the largest DCG that the judged documents allow (Järvelin and Kekäläinen 2002)."""
    ideal = t.gains(pairs).sums[-1]
    return dcg(t, pairs) / ideal if ideal > 0.0 else 0.0


def ndcg_cut(t: Ranked, k: int) -> float:
    """nDCG of the first k documents; gains are the grades."""
    terms, sums = t.graded(())
    ideal = t.gains(()).sums
    found, best = sums[bisect_left(terms, (k,))], ideal[min(k, len(ideal) - 1)]
    return found / best if best > 0.0 else found


def ndcg_rel(t: Ranked, pairs: Pairs) -> float:
    """The mean of nDCG at each relevant document; a document that was not retrieved counts nDCG of the whole list."""
    gains = t.gains(pairs)
    (terms, sums), n_ideal = t.graded(pairs), len(gains.ideal)
    total, n_hits = 0.0, 0
    for (place, gain), actual in zip(terms, sums[1:]):
        if gain > 0.0:
            total += divided(actual, gains.sums[min(place + 1, n_ideal)])
            n_hits += 1
    total += divided((n_ideal - n_hits) * sums[-1], gains.sums[-1])
    return divided(total, n_ideal) if total > 0.0 else 0.0


def r_ndcg(t: Ranked, pairs: Pairs) -> float:
    """The mean of nDCG at the ranks where the ideal list changes its gain, and at its end."""
    if not t.R:
        return 0.0
    gains = t.gains(pairs)
    best, log2 = gains.ideal, discounts(max(t.n, len(gains.ideal) + 1))
    documents = iter([*t.graded(pairs)[0], (t.n, 0.0)])
    place, gain = next(documents)
    actual = ideal = total = 0.0
    n_changes, old = 0, gains.largest
    for i, now in enumerate([*best, gains.after] if old > 0.0 else []):
        if now != old:
            if ideal > 0.0:
                total += actual / ideal
                n_changes += 1
            old = now
        if place == i < t.n:
            actual += gain / log2[i]
            place, gain = next(documents)
        if now > 0.0:
            ideal += now / log2[i]
    if t.n > (len(best) + 1 if gains.largest > 0.0 else 0):
        while place < t.n:
            actual += gain / log2[place]
            place, gain = next(documents)
        if ideal > 0.0:
            total += actual / ideal
            n_changes += 1
    return divided(total, n_changes)


def normalised_gain(t: Ranked, pairs: Pairs) -> float:
    """Σ g_i / log2(2 + c_i - s_i) over the ideal sum of gains.

    s_i is the sum of gains up to rank i, and c_i that of the ideal list with at least 1 for each rank.
    """
    gains = t.gains(pairs)
    best, costs = gains.ideal, gains.costs
    for k in range(len(costs), t.n):
        costs.append((costs[-1] if k else 0.0) + (max(best[k], 1.0) if k < len(best) else 1.0))
    value = got = total = 0.0
    for place, gain in t.graded(pairs)[0]:
        got += gain
        x = 2 + costs[place] - got
        value += divided(gain, math.log2(x) if x > 0.0 else -math.inf if x == 0.0 else -math.nan)
    for gain in best:
        total += gain
    return value / total if total > 0.0 else 0.0


def _powers(pairs: Pairs, n: int) -> tuple[float, list[float]]:
    """Return the persistence p, by default 0.9, and the powers p^0 to p^n by repeated multiplication."""
    p = next((value for name, value in reversed(list(pairs)) if name == "p"), 0.9)
    powers = _POWERS.setdefault(p, [1.0])
    while len(powers) < n + 1:
        powers.append(powers[-1] * p)
    return p, powers


def rbp(t: Ranked, pairs: Pairs) -> float:
    """(1 - p) Σ g_i p^(i - 1) (Moffat and Zobel 2008); a topic with gains outside [0, 1] is scaled to [0, 1]."""
    by_grade = t.gains(pairs).by_grade
    low, high = min([0.0, *by_grade.values()]), max([0.0, *by_grade.values()])
    if low < 0.0 or high > 1.0:
        by_grade = {grade: (gain - low) / (high - low) for grade, gain in by_grade.items()}
    total, (p, powers) = 0.0, _powers(pairs, t.n)
    for place, gain in t.with_gains(by_grade):
        total += gain * powers[place]
    return (1.0 - p) * total


def rbp_resid(t: Ranked, pairs: Pairs) -> float:
    """The most that documents without a grade, retrieved or not, could add to RBP."""
    if len(t.judged) == t.n:
        return 0.0
    total, (p, powers) = 0.0, _powers(pairs, t.n)
    for power, grade in zip(powers, t.grades):
        if grade < 0:
            if 0.0 <= p < 1.0 and total + power == total:  # the powers below are too small to count as well
                break
            total += power
    return powers[t.n] + (1 - p) * total


class TrecFigure(NamedTuple):
    """A measure of trec_eval.

    The kinds "count" and "value" have no parameters. "cutoffs" and "shares" give a value for each parameter, "numbers"
    and "pairs" one value for all. `compute` is a function of a topic's judgements and the parameters. `mean` is the
    rule that combines topics: "mean", "sum", "geometric", "topics" or "none". `formula` is for the help if the function
    has no docstring. `needs` names the judgements: "qrels", "qrels_jg", "prefs", or "" for any.
    """

    kind: str
    compute: Callable[..., float | str]
    default: Sequence[float] = ()
    mean: str = "mean"
    formula: str = ""
    needs: str = "qrels"

    def values(self, topic: object, parameters: Sequence[object]) -> list[float | str]:
        """Return the values for a topic, in the order of the parameters."""
        if self.kind in ("cutoffs", "shares"):
            return [self.compute(topic, parameter) for parameter in parameters]
        return [self.compute(topic) if self.kind in ("count", "value") else self.compute(topic, parameters)]


def _count(compute: Callable[[Ranked], int], formula: str) -> TrecFigure:
    return TrecFigure("count", compute, (), "sum", formula)


def _value(compute: Callable[[Ranked], float], formula: str, mean: str = "mean") -> TrecFigure:
    return TrecFigure("value", compute, (), mean, formula)


def _at(compute: Callable[[Ranked, int], float], formula: str, cuts: Sequence[int] = TEN_CUTS) -> TrecFigure:
    return TrecFigure("cutoffs", compute, cuts, "mean", formula)


def _average_precision(t: Ranked) -> float:
    return t.precision_sums[-1] / t.R if t.n_hits else 0.0


_BPREF = (
    "Σ over retrieved relevant documents of 1 - min(nonrelevant above, R) / min(N, R), over R, with N judged documents "
    "that are not relevant (Buckley and Voorhees 2004)"
)
# In the order of trec_eval's output.
RANKED: dict[str, TrecFigure] = {
    "num_ret": _count(lambda t: t.n, "n"),
    "num_rel": _count(lambda t: t.R, "R"),
    "num_rel_ret": _count(lambda t: t.n_hits, "the number of relevant documents retrieved"),
    "map": _value(_average_precision, "the sum of the precision at each relevant document, over R"),
    "gm_map": _value(lambda t: logarithm(_average_precision(t)), "the geometric mean of map", "geometric"),
    "Rprec": _value(lambda t: t.hits_in(t.R) / t.R if t.R else 0.0, "the precision at rank R"),
    "bpref": _value(lambda t: t.bpref, _BPREF),
    "recip_rank": _value(
        lambda t: 1.0 / (t.hits[0] + 1) if t.n_hits else 0.0, "1 / rank of the first relevant document"
    ),
    "iprec_at_recall": TrecFigure("shares", interpolated, TENTHS),
    "P": _at(lambda t, k: t.hits_in(k) / k, "hits within rank k, over k; empty ranks count as not relevant"),
    "relstring": TrecFigure("numbers", rel_string, (10.0,), "none"),
    "recall": _at(lambda t, k: t.hits_in(k) / t.R if t.R else 0.0, "hits within rank k, over R"),
    "infAP": TrecFigure("value", inf_ap),
    "gm_bpref": _value(lambda t: logarithm(t.bpref), "the geometric mean of bpref", "geometric"),
    "Rprec_mult": TrecFigure("shares", multiple_of_R, FIFTHS),
    "utility": TrecFigure("numbers", utility, (1.0, -1.0, 0.0, 0.0)),
    "11pt_avg": TrecFigure("numbers", eleven_points, TENTHS),
    "binG": TrecFigure("value", bin_gain),
    "G": TrecFigure("pairs", normalised_gain),
    "dcg": TrecFigure("pairs", dcg),
    "ideal_dcg": TrecFigure("pairs", lambda t, pairs: t.gains(pairs).sums[-1], formula="the largest DCG possible"),
    "ndcg": TrecFigure("pairs", ndcg),
    "ndcg_rel": TrecFigure("pairs", ndcg_rel),
    "Rndcg": TrecFigure("pairs", r_ndcg),
    "ndcg_cut": TrecFigure("cutoffs", ndcg_cut, TEN_CUTS),
    "map_cut": _at(lambda t, k: t.precision_sums[t.hits_in(k)] / t.R if t.R else 0.0, "map of the first k documents"),
    "relative_P": _at(lambda t, k: t.hits_in(k) / min(k, t.R) if t.R else 0.0, "hits within rank k, over min(k, R)"),
    "success": _at(lambda t, k: float(t.hits_in(k) > 0), "1 where a relevant document is within rank k", (1, 5, 10)),
    "set_P": _value(lambda t: t.n_hits / t.n if t.n else 0.0, "hits / n"),
    "set_relative_P": _value(lambda t: t.n_hits / min(t.n, t.R) if t.n and t.R else 0.0, "hits / min(n, R)"),
    "set_recall": _value(lambda t: t.n_hits / t.R if t.R else 0.0, "hits / R"),
    "set_map": _value(lambda t: (t.n_hits * t.n_hits) / (t.n * t.R) if t.n and t.R else 0.0, "set_P times set_recall"),
    "set_F": TrecFigure("numbers", set_F, (1.0,)),
    "num_nonrel_judged_ret": _count(
        lambda t: len(t.judged) - t.n_hits, "the number of judged documents retrieved that are not relevant"
    ),
    "yaap": TrecFigure("value", yaap),
    "rbp": TrecFigure("pairs", rbp),
    "rbp_resid": TrecFigure("pairs", rbp_resid),
    "unj": _at(
        lambda t, k: (min(k, t.n) - bisect_left(t.judged, k)) / k,
        "the share of the first k documents without a judgement",
        (5, 10, 20),
    ),
}
