"""Preferences as judgements, and trec_eval 10.0's measures of them.

A judgement group is what one person at one time prefers about a topic; its lines give documents a level, and within a
subgroup a higher level is preferred. A preference between two documents is *fulfilled* by a list that ranks them so,
also where only the preferred one was retrieved (*implied*). Documents are numbered by rank, those not retrieved after
them by name, so that number i is ranked above number j where i < j and i was retrieved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, takewhile
from typing import NamedTuple


class Preference(NamedTuple):
    """A line of a file of preferences."""

    group: bytes
    subgroup: bytes
    document: bytes
    level: float


class Counts(NamedTuple):
    """Preferences of a judgement group: fulfilled and possible, both retrieved, one retrieved; neither retrieved."""

    ful_ret: int
    poss_ret: int
    ful_imp: int
    poss_imp: int
    absent: int


class Group:
    """The preferences of one judgement group over documents 0 ... n - 1, of which the first n_ret were retrieved."""

    def __init__(self, pairs: list[tuple[int, int]], n_ret: int) -> None:
        self.pairs = pairs  # (preferred, other)
        self.counts = Counts(*_count(pairs, n_ret))
        self.n_rel = self.n_rel_ret = self.n_nonrel = self.n_nonrel_ret = 0

    def add_documents(self, levels: Sequence[tuple[int, float]], n_ret: int) -> None:
        """Count relevant documents, those of a level above 0, and the others."""
        for document, level in levels:
            if level > 0.0:
                self.n_rel += 1
                self.n_rel_ret += document < n_ret
            else:
                self.n_nonrel += 1
                self.n_nonrel_ret += document < n_ret


class Classes(Group):
    """A group of one subgroup: documents in classes of equal level, the highest first."""

    def __init__(self, rows: list[tuple[int, float]], n_ret: int, pool: list[int]) -> None:
        self.classes = [[d for d, _ in same] for _, same in groupby(rows, key=lambda row: row[1])]
        pairs = []
        for k, preferred in enumerate(self.classes):
            for others in self.classes[k + 1 :]:
                pairs += [(a, b) for a in preferred for b in others]
        if any(a == b for a, b in pairs):
            raise ValueError("a document has two levels in one judgement subgroup")
        super().__init__(pairs, n_ret)
        self.add_documents(rows, n_ret)
        self._pool = pool  # documents of all groups, those of this one from its end on
        pool += [d for d, _ in rows]
        self._last = len(pool) - len(self.classes[-1])

    def with_nonrelevant(self, n: int, n_ret: int, retrieved_only: bool) -> tuple[int, int]:
        """Preferences fulfilled and possible with the last class cut to n documents.

        With several levels at or below 0 the last class may have fewer; trec_eval then goes on with the next group's.
        """
        rest = self._pool[self._last : self._last + n]
        if len(rest) < n:
            raise ValueError("a judgement group has several levels at or below 0, for which the measure has no value")
        classes = [*self.classes, rest]
        if retrieved_only:  # up to the first that was not retrieved
            classes = [list(takewhile(lambda d: d < n_ret, same)) for same in classes]
        *levels, last, rest = classes
        found = [
            (a, b)
            for k, preferred in enumerate([*levels, last])
            for others in [*levels[k + 1 :], rest]
            for a in preferred
            for b in others
        ]
        return sum(a < b and a < n_ret for a, b in found), len(found)


class Relation(Group):
    """A group of several subgroups: preferences are joined, with those that follow (a over b, b over c)."""

    def __init__(self, subgroups: Iterator[list[tuple[int, float]]], n: int, n_ret: int) -> None:
        above, self.levels = [0] * n, [-1.0] * n  # bits of the documents that each is preferred to
        for rows in subgroups:
            for k, (a, level) in enumerate(rows):
                if (self.levels[a] > 0.0 and level == 0.0) or (self.levels[a] == 0.0 and level > 0.0):
                    raise ValueError("a document has level 0 and another level in one judgement group")
                self.levels[a] = level
                for b, other in rows[k + 1 :]:
                    if other != level and b != a:
                        above[a] |= 1 << b
        for k in range(n):
            for a in range(n):
                if above[a] >> k & 1:
                    above[a] |= above[k]
        if any(above[a] >> a & 1 for a in range(n)):
            raise ValueError("preferences of one judgement group contradict each other")
        super().__init__([(a, b) for a in range(n) for b in range(n) if above[a] >> b & 1], n_ret)
        self.add_documents([(d, level) for d, level in enumerate(self.levels) if level >= 0.0], n_ret)

    def with_nonrelevant(self, n: int, n_ret: int, retrieved_only: bool) -> tuple[int, int]:
        """Preferences fulfilled and possible with only the first n documents of level 0."""
        end = n_ret if retrieved_only else len(self.levels)
        kept = self.n_rel + 1
        zeros = [d for d in range(end) if self.levels[d] == 0.0]
        first = zeros[kept - 1] if len(zeros) >= kept else end
        found = [
            (a, b)
            for a, b in self.pairs
            if not (a >= first and self.levels[a] == 0.0) and not (b >= first and self.levels[b] == 0.0)
            if not retrieved_only or (a < n_ret and b < n_ret)
        ]
        return sum(a < b and a < n_ret for a, b in found), len(found)


def _count(pairs: list[tuple[int, int]], n_ret: int) -> tuple[int, int, int, int, int]:
    ful_ret = poss_ret = ful_imp = poss_imp = absent = 0
    for a, b in pairs:
        if a < n_ret and b < n_ret:
            poss_ret += 1
            ful_ret += a < b
        elif a < n_ret or b < n_ret:
            poss_imp += 1
            ful_imp += a < n_ret
        else:
            absent += 1
    return ful_ret, poss_ret, ful_imp, poss_imp, absent


class Judged(NamedTuple):
    """A topic's groups of preferences over its n judged documents, n_ret of them retrieved."""

    groups: Sequence[Classes | Relation]
    n: int
    n_ret: int

    @classmethod
    def of(cls, preferences: Sequence[Preference], ranked: Sequence[bytes]) -> Judged:
        """Join preferences with the documents retrieved, best first."""
        judged = {row.document for row in preferences}
        retrieved = [document for document in ranked if document in judged]
        order = {document: k for k, document in enumerate([*retrieved, *sorted(judged.difference(retrieved))])}
        rows = sorted((r.group, r.subgroup, -r.level, order[r.document]) for r in preferences)
        groups: list[Classes | Relation] = []
        pool: list[int] = []
        for _, of_group in groupby(rows, key=lambda row: row[0]):
            parts = [[(d, -level) for _, _, level, d in part] for _, part in groupby(of_group, key=lambda row: row[1])]
            if len(parts) == 1:
                groups.append(Classes(parts[0], len(retrieved), pool))
            else:
                groups.append(Relation(iter(parts), len(order), len(retrieved)))
        return cls(groups, len(order), len(retrieved))


Part = Callable[[Counts], tuple[int, int]]


def _all(c: Counts) -> tuple[int, int]:
    return c.ful_ret + c.ful_imp, c.poss_ret + c.poss_imp + c.absent


def _retrieved(c: Counts) -> tuple[int, int]:
    return c.ful_ret, c.poss_ret


def _implied(c: Counts) -> tuple[int, int]:
    return c.ful_ret + c.ful_imp, c.poss_ret + c.poss_imp


def _simple(part: Part) -> Callable[[Judged], float]:
    """Preferences fulfilled over those possible, all groups together."""

    def compute(t: Judged) -> float:
        parts = [part(group.counts) for group in t.groups]
        possible = sum(p for _, p in parts)
        return sum(f for f, _ in parts) / possible if possible else 0.0

    return compute


def _by_group(part: Part) -> Callable[[Judged], float]:
    """The same within each group, averaged over groups."""

    def compute(t: Judged) -> float:
        total = 0.0
        for group in t.groups:
            fulfilled, possible = part(group.counts)
            if possible:
                total += fulfilled / possible
        return total / len(t.groups) if total > 0.0 else 0.0

    return compute


def _balanced(retrieved_only: bool) -> Callable[[Judged], float]:
    """The mean over groups, each with as many documents of level 0 as relevant ones."""

    def compute(t: Judged) -> float:
        total = 0.0
        for group in t.groups:
            relevant, others = group.n_rel, group.n_nonrel
            if retrieved_only:
                relevant, others = group.n_rel_ret, group.n_nonrel_ret
            if relevant >= others:
                fulfilled, possible = (_retrieved if retrieved_only else _all)(group.counts)
                fulfilled += group.n_rel_ret * (relevant - others)
                possible += group.n_rel * (relevant - others)
            else:
                fulfilled, possible = group.with_nonrelevant(relevant, t.n_ret, retrieved_only)
            total += fulfilled / possible if possible else math.nan
        return total / len(t.groups) if total > 0.0 else 0.0

    return compute


def _by_pair(retrieved_only: bool, absent: bool) -> Callable[[Judged], float]:
    """The share of groups that prefer what the list ranks higher, averaged over pairs of documents."""

    def compute(t: Judged) -> float:
        count: dict[tuple[int, int], int] = {}
        for group in t.groups:
            for pair in group.pairs:
                count[pair] = count.get(pair, 0) + 1
        total, n_pairs = 0.0, 0
        joined = sorted({(min(pair), max(pair)) for pair in count})
        both = [pair for pair in joined if pair[1] < t.n_ret]
        one = [] if retrieved_only else [pair for pair in joined if pair[0] < t.n_ret <= pair[1]]
        for a, b in both + one:
            n_pairs += 1
            agree = count.get((a, b), 0)
            total += agree / (agree + count.get((b, a), 0))
        if absent:
            n_pairs += sum(a >= t.n_ret for a, _ in joined)
        return total / n_pairs if n_pairs else 0.0

    return compute


# In the order of trec_eval's output; the first three are counts.
PREFERENCES: dict[str, Callable[[Judged], float]] = {
    "prefs_num_prefs_poss": lambda t: sum(_all(group.counts)[1] for group in t.groups),
    "prefs_num_prefs_ful": lambda t: sum(_all(group.counts)[0] for group in t.groups),
    "prefs_num_prefs_ful_ret": lambda t: sum(group.counts.ful_ret for group in t.groups),
    "prefs_simp": _simple(_all),
    "prefs_pair": _by_pair(retrieved_only=False, absent=True),
    "prefs_avgjg": _by_group(_all),
    "prefs_avgjg_Rnonrel": _balanced(retrieved_only=False),
    "prefs_simp_ret": _simple(_retrieved),
    "prefs_pair_ret": _by_pair(retrieved_only=True, absent=False),
    "prefs_avgjg_ret": _by_group(_retrieved),
    "prefs_avgjg_Rnonrel_ret": _balanced(retrieved_only=True),
    "prefs_simp_imp": _simple(_implied),
    "prefs_pair_imp": _by_pair(retrieved_only=False, absent=False),
    "prefs_avgjg_imp": _by_group(_implied),
}
