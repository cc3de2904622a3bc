"""The measures of NIST's trec_eval 10.0, computed from one topic's ranked judgements in its order of operations.

Each function takes a `Ranked` list and the parameters of the measure, and returns one number (or one for each cutoff).
Sums run over the ranks in order, in double precision, so that the printed digits are those of the C program. Where
trec_eval divides zero by zero, the value is nan, which it prints as `-nan`.

Symbols: R relevant documents of the topic, n retrieved documents, r_i grade at rank i, g_i its gain.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeVar

Row = TypeVar("Row")

UNPOOLED, UNJUDGED = -1, -2  # grades of retrieved documents that the qrels do not list, or list with a negative grade
SMALLEST = 0.00001  # of values whose geometric mean is taken
EPSILON = 0.00001  # of the counts in infAP
LONG = 10_000  # counts by grade of a topic that are not kept for the next run
_LOG2: list[float] = []


def discounts(n: int) -> list[float]:
    """Return log2(i + 2), the discount of the document after i others, for i from 0 to at least n - 1."""
    for i in range(len(_LOG2), n):
        _LOG2.append(math.log2(i + 2))
    return _LOG2


def divided(a: float, b: float) -> float:
    """Return a / b as the processor computes it: infinite, or nan, where b is 0."""
    if b:
        return a / b
    return math.nan if a == 0.0 or a != a else math.copysign(math.inf, a)


def rounded(x: float) -> int:
    """Return the nearest integer; halves go away from zero (C's lround)."""
    whole = int(x)
    return whole + (1 if x - whole >= 0.5 else 0) - (1 if whole - x >= 0.5 else 0)


class Ranked:
    """A topic's retrieved documents as grades in ranked order, with the counts that the measures share.

    Attributes
    ----------
    grades : list of int (n,)
        Grades by rank; `UNPOOLED` and `UNJUDGED` where there is none.
    at_level : list of int
        Judged documents of each grade from 0, retrieved or not; may be longer than `n_levels`.
    n_levels : int
        One more than the highest grade of the topic.
    level : int
        Lowest relevant grade, at least 0.
    pooled : list of (int, int)
        (place, grade) of the documents that the qrels list; places count from 0.
    hits : list of int
        Places of relevant documents.
    truncates : bool
        Whether interpolated precision counts as in version 9.
    """

    def __init__(self, grades: list[int], at_level: list[int], n_levels: int, n_relevant: int, level: int) -> None:
        self.grades, self.at_level, self.n_levels, self.level = grades, at_level, n_levels, level
        self.n, self.R = len(grades), n_relevant
        self.pooled = [(i, grade) for i, grade in enumerate(grades) if grade != UNPOOLED]
        self.hits = [i for i, grade in self.pooled if grade >= level]
        self.n_hits = len(self.hits)
        self.n_collection = 0
        self.truncates = False

    @cached_property
    def unjudged(self) -> list[int]:
        """Places of retrieved documents without a grade."""
        return [i for i, grade in enumerate(self.grades) if grade < 0]

    @cached_property
    def precision_sums(self) -> list[float]:
        """Sums of the precision at the first 0, 1, ... relevant documents."""
        sums = [0.0]
        for k, i in enumerate(self.hits, 1):
            sums.append(sums[-1] + k / (i + 1))
        return sums

    def hits_in(self, k: int) -> int:
        """Relevant documents among the first k."""
        return bisect_left(self.hits, k)

    @cached_property
    def positive(self) -> list[tuple[int, int]]:
        """(place, grade) of the documents with a grade above 0."""
        return [(i, grade) for i, grade in self.pooled if grade > 0]

    @cached_property
    def bpref(self) -> float:
        """Binary preference, see `bpref`."""
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

    def gains(self, pairs: Sequence[tuple[str, float]]) -> Gains:
        """Gains of the grades under `grade=gain` parameters."""
        known = gains_of.__wrapped__ if self.n_levels > LONG else gains_of
        return known(tuple(pairs), tuple(self.at_level[: self.n_levels]))

    def graded(self, by_grade: dict[int, float]) -> list[tuple[int, float]]:
        """(place, gain) of the documents with a gain other than 0."""
        if any(by_grade.get(grade) for grade in (0, UNPOOLED, UNJUDGED)):
            return [(i, by_grade[grade]) for i, grade in enumerate(self.grades) if by_grade.get(grade)]
        return [(i, by_grade[grade]) for i, grade in self.positive if by_grade.get(grade)]


class Gains(NamedTuple):
    """Gains of a topic's grades.

    by_grade: {grade: gain}; other grades have gain 0. ideal: positive gains of the judged documents in the best order,
    as far as trec_eval goes through them. largest: gain of the last level. after: what follows the ideal gains.
    """

    by_grade: dict[int, float]
    ideal: list[float]
    largest: float
    after: float


@lru_cache(maxsize=4096)
def gains_of(pairs: tuple[tuple[str, float], ...], at_level: tuple[int, ...]) -> Gains:
    """Gains of grades 0, 1, ... with `at_level` judged documents each; a grade that is not named is its own gain."""
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
    return Gains(by_grade, ideal, rows[-1][1] if rows else 0.0, after)


def _is_integer(text: str) -> bool:
    return text[text[:1] in ("+", "-") :].isdigit() and text.isascii() and len(text) < 20


def merge_sorted(rows: list[Row], comes_first: Callable[[Row, Row], bool]) -> list[Row]:
    """Sort with an order that may contradict itself, which makes the outcome depend on the algorithm.

    This is the merge sort of the GNU C library. `comes_first(a, b)`: a may stand before b. O(n log n).
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


Cutoffs = Sequence[int]


# Counts, and measures of the retrieved set.


def num_ret(t: Ranked) -> float:
    """Return n."""
    return t.n


def num_rel(t: Ranked) -> float:
    """Return R."""
    return t.R


def num_rel_ret(t: Ranked) -> float:
    """Return the number of relevant documents retrieved."""
    return t.n_hits


def num_nonrel_judged_ret(t: Ranked) -> float:
    """Return the number of documents retrieved that were judged and are not relevant."""
    return t.n - len(t.unjudged) - t.n_hits


def set_P(t: Ranked) -> float:
    """Return the precision of the retrieved set."""
    return t.n_hits / t.n if t.n else 0.0


def set_recall(t: Ranked) -> float:
    """Return the recall of the retrieved set."""
    return t.n_hits / t.R if t.R else 0.0


def set_relative_P(t: Ranked) -> float:
    """Return the precision of the retrieved set over the largest one possible: hits / min(n, R)."""
    return t.n_hits / min(t.n, t.R) if t.n and t.R else 0.0


def set_map(t: Ranked) -> float:
    """Return set precision times set recall."""
    return (t.n_hits * t.n_hits) / (t.n * t.R) if t.n and t.R else 0.0


def set_F(t: Ranked, x: Sequence[float]) -> float:
    """Return (x + 1) P R / (x P + R) of the retrieved set (van Rijsbergen 1979)."""
    if not t.n_hits:
        return 0.0
    precision, recall = t.n_hits / t.n, t.n_hits / t.R
    return divided((x[0] + 1.0) * precision * recall, x[0] * precision + recall)


def utility(t: Ranked, c: Sequence[float]) -> float:
    """Return c1 rel_ret + c2 nonrel_ret + c3 rel_not_ret + c4 nonrel_not_ret."""
    hits = t.n_hits
    return c[0] * hits + c[1] * (t.n - hits) + c[2] * (t.R - hits) + c[3] * (t.n_collection + hits - t.n - t.R)


# Binary measures of the ranking.


def average_precision(t: Ranked) -> float:
    """Return the sum of the precision at each relevant document over R."""
    return t.precision_sums[-1] / t.R if t.n_hits else 0.0


def gm_map(t: Ranked) -> float:
    """Return log(max(AP, 0.00001)), whose mean gives the geometric mean of AP."""
    return math.log(max(average_precision(t), SMALLEST))


def r_precision(t: Ranked) -> float:
    """Return the precision at rank R."""
    return t.hits_in(min(t.n, t.R)) / t.R if t.n and t.R else 0.0


def recip_rank(t: Ranked) -> float:
    """Return 1 / rank of the first relevant document."""
    return 1.0 / (t.hits[0] + 1) if t.n_hits else 0.0


def bpref(t: Ranked) -> float:
    """Return the share of judged documents that are not relevant below the relevant ones (Buckley and Voorhees 2004).

    Σ over retrieved relevant documents of 1 - min(nonrelevant above, R) / min(N, R), over R, with N judged documents
    that are not relevant.
    """
    return t.bpref


def gm_bpref(t: Ranked) -> float:
    """Return log(max(bpref, 0.00001))."""
    return math.log(max(t.bpref, SMALLEST))


def inf_ap(t: Ranked) -> float:
    """Return inferred AP for a pool of which a sample was judged (Yilmaz and Aslam 2006)."""
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


def interpolated(t: Ranked, shares: Sequence[float]) -> list[float]:
    """Return the largest precision at or below the rank where each share of R is reached.

    Version 10 rounds the share times R to the nearest count; version 9 (`truncates`) adds 0.9 and truncates.
    """
    counts = [int(share * t.R + 0.9) if t.truncates else rounded(share * t.R) for share in shares]
    values = [0.0] * len(shares)
    cut = len(counts) - 1
    while cut >= 0 and counts[cut] > t.n_hits:
        cut -= 1
    best = divided(t.n_hits, t.n)
    for seen in range(t.n_hits, 0, -1):
        precision = seen / (t.hits[seen - 1] + 1)
        if best < precision:
            best = precision
        while cut >= 0 and seen == counts[cut]:
            values[cut] = best
            cut -= 1
    for k in range(cut + 1):
        values[k] = best
    return values


def eleven_points(t: Ranked, shares: Sequence[float]) -> float:
    """Return the mean of interpolated precision over the shares, 0 for shares that are not reached."""
    total = 0.0
    for value in reversed(interpolated(t, shares)):
        total += value
    return total / len(shares)


def precision(t: Ranked, cutoffs: Cutoffs) -> list[float]:
    """Return P@k; ranks that are not filled count as not relevant."""
    return [t.hits_in(k) / k for k in cutoffs]


def recall(t: Ranked, cutoffs: Cutoffs) -> list[float]:
    """Return recall at each cutoff."""
    return [t.hits_in(k) / t.R if t.R else 0.0 for k in cutoffs]


def relative_precision(t: Ranked, cutoffs: Cutoffs) -> list[float]:
    """Return hits / min(k, R) at each cutoff."""
    return [t.hits_in(k) / min(k, t.R) if t.R else 0.0 for k in cutoffs]


def success(t: Ranked, cutoffs: Cutoffs) -> list[float]:
    """Return 1 where a relevant document stands within the cutoff."""
    return [1.0 if t.hits_in(k) else 0.0 for k in cutoffs]


def map_cut(t: Ranked, cutoffs: Cutoffs) -> list[float]:
    """Return AP of the first k documents, over R."""
    return [t.precision_sums[t.hits_in(k)] / t.R if t.R else 0.0 for k in cutoffs]


def unjudged_share(t: Ranked, cutoffs: Cutoffs) -> list[float]:
    """Return the share of the first k documents that were not judged."""
    return [bisect_left(t.unjudged, k) / k for k in cutoffs]


def multiples_of_R(t: Ranked, shares: Sequence[float]) -> list[float]:
    """Return the precision at ranks share * R, each rounded up from a tenth on."""
    values = []
    for share in shares:
        k = int(share * t.R + 0.9)
        values.append(t.hits_in(k) / k if k > 0 else 0.0)
    return values


def yaap(t: Ranked) -> float:
    """Return log((1 + s) / (1 + R - s)) with s the sum of precision at relevant documents (Robertson)."""
    s = t.precision_sums[-1]
    return math.log(divided(1.0 + s, 1.0 + t.R - s))


def bin_gain(t: Ranked) -> float:
    """Return the mean over relevant documents of 1 / log2(2 + documents above that are not relevant)."""
    total = 0.0
    for k, i in enumerate(t.hits):
        total += 1.0 / math.log2(2 + i - k)
    return total / t.R if t.n_hits else 0.0


def rel_string(t: Ranked, length: Sequence[float]) -> str:
    """Return the grades of the first documents as characters: digits, > above 9, - not pooled, . not judged."""
    signs = {UNPOOLED: "-", UNJUDGED: "."}
    return "".join(signs.get(g) or (">" if g > 9 else str(g)) for g in t.grades[: max(int(length[0]), 0)])


# Graded measures. Pairs are parameters `grade=gain`; a grade that is not named is its own gain.

Pairs = Sequence[tuple[str, float]]


def dcg(t: Ranked, pairs: Pairs) -> float:
    """Return Σ g_i / log2(i + 1) over ranks i from 1."""
    total, log2 = 0.0, discounts(t.n)
    for i, gain in t.graded(t.gains(pairs).by_grade):
        total += gain / log2[i]
    return total


def ideal_dcg(t: Ranked, pairs: Pairs) -> float:
    """Return the largest DCG that the judged documents allow."""
    best = t.gains(pairs).ideal
    total, log2 = 0.0, discounts(len(best))
    for i, gain in enumerate(best):
        total += gain / log2[i]
    return total


def ndcg(t: Ranked, pairs: Pairs) -> float:
    """Return DCG / ideal DCG (Järvelin and Kekäläinen 2002, with discount log2(i + 1))."""
    ideal = ideal_dcg(t, pairs)
    return dcg(t, pairs) / ideal if ideal > 0.0 else 0.0


def ndcg_cut(t: Ranked, cutoffs: Cutoffs) -> list[float]:
    """Return nDCG of the first k documents; gains are the grades."""
    best = [g for g in range(t.n_levels - 1, 0, -1) for _ in range(t.at_level[g])]
    log2 = discounts(max(t.n, len(best)))
    ranked = _sums_at([(i, g / log2[i]) for i, g in t.positive], cutoffs)
    ideal = _sums_at([(i, g / log2[i]) for i, g in enumerate(best)], cutoffs)
    return [a / b if b > 0.0 else a for a, b in zip(ranked, ideal)]


def _sums_at(terms: list[tuple[int, float]], cutoffs: Cutoffs) -> list[float]:
    """Return the sum of the terms at places below each of the increasing cutoffs."""
    sums, total, at = [], 0.0, 0
    for k in cutoffs:
        while at < len(terms) and terms[at][0] < k:
            total += terms[at][1]
            at += 1
        sums.append(total)
    return sums


def ndcg_rel(t: Ranked, pairs: Pairs) -> float:
    """Return the mean of nDCG at every relevant document; those not retrieved have that of the whole list."""
    gains = t.gains(pairs)
    best, by_grade = gains.ideal, gains.by_grade
    log2 = discounts(max(t.n, len(best)))
    actual, ideal, total, n_hits = 0.0, 0.0, 0.0, 0
    at = 0
    for i, gain in t.graded(by_grade):
        while at < len(best) and at <= i:
            ideal += best[at] / log2[at]
            at += 1
        actual += gain / log2[i]
        if gain > 0.0:
            total += divided(actual, ideal)
            n_hits += 1
    for k in range(at, len(best)):
        ideal += best[k] / log2[k]
    total += divided((len(best) - n_hits) * actual, ideal)
    return total / len(best) if total > 0.0 else 0.0


def r_ndcg(t: Ranked, pairs: Pairs) -> float:
    """Return the mean of nDCG at the ranks where the ideal list changes its gain, and at its end."""
    if not t.R:
        return 0.0
    gains = t.gains(pairs)
    best, log2 = gains.ideal, discounts(max(t.n, len(gains.ideal) + 1))
    documents = iter([*t.graded(gains.by_grade), (t.n, 0.0)])
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
    """Return Σ g_i / log2(2 + c_i - s_i) over the ideal sum of gains (G of trec_eval).

    s_i is the sum of gains up to rank i, and c_i that of the ideal list with at least 1 for each rank.
    """
    gains = t.gains(pairs)
    best = gains.ideal
    costs, at, value, got = 0.0, 0, 0.0, 0.0
    for i, gain in t.graded(gains.by_grade):
        while at <= i:
            costs += best[at] if at < len(best) and best[at] >= 1.0 else 1.0
            at += 1
        got += gain
        value += divided(gain, _log2(2 + costs - got))
    total = 0.0
    for gain in best:
        total += gain
    return value / total if total > 0.0 else 0.0


def _log2(x: float) -> float:
    return math.log2(x) if x > 0.0 else (-math.inf if x == 0.0 else math.nan)


def _persistence(pairs: Pairs) -> float:
    return next((value for name, value in reversed(list(pairs)) if name == "p"), 0.9)


_POWERS: dict[float, list[float]] = {}


def _powers(p: float, n: int) -> list[float]:
    """Return p^0 to p^n, each the one before times p."""
    powers = _POWERS.setdefault(p, [1.0])
    while len(powers) < n + 1:
        powers.append(powers[-1] * p)
    return powers


def rbp(t: Ranked, pairs: Pairs) -> float:
    """Return (1 - p) Σ g_i p^(i - 1) (Moffat and Zobel 2008); gains outside [0, 1] are scaled to it in each topic."""
    p, by_grade = _persistence(pairs), t.gains(pairs).by_grade
    low, high = min([0.0, *by_grade.values()]), max([0.0, *by_grade.values()])
    if low < 0.0 or high > 1.0:
        by_grade = {grade: (gain - low) / (high - low) for grade, gain in by_grade.items()}
    total, powers = 0.0, _powers(p, t.n)
    for i, gain in t.graded(by_grade):
        total += gain * powers[i]
    return (1.0 - p) * total


def rbp_resid(t: Ranked, pairs: Pairs) -> float:
    """Return what documents without a grade, retrieved or below the list's end, could add to RBP."""
    p, total = _persistence(pairs), 0.0
    powers = _powers(p, t.n)
    for i in t.unjudged:
        total += powers[i]
    return powers[t.n] + (1 - p) * total if t.unjudged else 0.0


TenCuts = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
Tenths = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
Fifths = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)


class Measure(NamedTuple):
    """A measure of trec_eval.

    kind: what its parameters are and how it is printed. "count" and "value" have none; "cutoffs" and "shares" give a
    value for each; "numbers" and "pairs" give one. mean: how topics are joined, "mean", "sum", "geometric" or "none".
    """

    kind: str
    compute: Callable[..., float | list[float] | str]
    default: Sequence[float] = ()
    mean: str = "mean"


# In the order of trec_eval's output.
RANKED: dict[str, Measure] = {
    "num_ret": Measure("count", num_ret, mean="sum"),
    "num_rel": Measure("count", num_rel, mean="sum"),
    "num_rel_ret": Measure("count", num_rel_ret, mean="sum"),
    "map": Measure("value", average_precision),
    "gm_map": Measure("value", gm_map, mean="geometric"),
    "Rprec": Measure("value", r_precision),
    "bpref": Measure("value", bpref),
    "recip_rank": Measure("value", recip_rank),
    "iprec_at_recall": Measure("shares", interpolated, Tenths),
    "P": Measure("cutoffs", precision, TenCuts),
    "relstring": Measure("numbers", rel_string, (10.0,), "none"),
    "recall": Measure("cutoffs", recall, TenCuts),
    "infAP": Measure("value", inf_ap),
    "gm_bpref": Measure("value", gm_bpref, mean="geometric"),
    "Rprec_mult": Measure("shares", multiples_of_R, Fifths),
    "utility": Measure("numbers", utility, (1.0, -1.0, 0.0, 0.0)),
    "11pt_avg": Measure("numbers", eleven_points, Tenths),
    "binG": Measure("value", bin_gain),
    "G": Measure("pairs", normalised_gain),
    "dcg": Measure("pairs", dcg),
    "ideal_dcg": Measure("pairs", ideal_dcg),
    "ndcg": Measure("pairs", ndcg),
    "ndcg_rel": Measure("pairs", ndcg_rel),
    "Rndcg": Measure("pairs", r_ndcg),
    "ndcg_cut": Measure("cutoffs", ndcg_cut, TenCuts),
    "map_cut": Measure("cutoffs", map_cut, TenCuts),
    "relative_P": Measure("cutoffs", relative_precision, TenCuts),
    "success": Measure("cutoffs", success, (1, 5, 10)),
    "set_P": Measure("value", set_P),
    "set_relative_P": Measure("value", set_relative_P),
    "set_recall": Measure("value", set_recall),
    "set_map": Measure("value", set_map),
    "set_F": Measure("numbers", set_F, (1.0,)),
    "num_nonrel_judged_ret": Measure("count", num_nonrel_judged_ret, mean="sum"),
    "yaap": Measure("value", yaap),
    "rbp": Measure("pairs", rbp),
    "rbp_resid": Measure("pairs", rbp_resid),
    "unj": Measure("cutoffs", unjudged_share, (5, 10, 20)),
}
