"""Preferences as judgements, and the preference measures of trec_eval 10.0.

A judgement group holds the preferences of one person, at one time, about a topic. Each line gives a document a level;
within a subgroup the higher level is preferred. A ranked list *fulfils* a preference if it ranks the preferred document
higher, or retrieves only the preferred document (the preference is then *implied*). Documents are numbered by rank,
followed by the documents that were not retrieved, by name. So document i is ranked above document j if i < j and i was
retrieved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, takewhile
from typing import NamedTuple

Pairs = list[tuple[int, int]]  # (preferred document, other document)


class Preference(NamedTuple):
    """A line in a file of preferences."""

    group: bytes
    subgroup: bytes
    document: bytes
    level: float


class Counts(NamedTuple):
    """The fulfilled and possible preferences of a group, by how many of the two documents were retrieved."""

    ful_ret: int
    poss_ret: int
    ful_imp: int
    poss_imp: int
    absent: int

    @classmethod
    def of(cls, pairs: Pairs, n_ret: int) -> Counts:
        """Count pairs by whether both, one, or no document was retrieved (numbers below n_ret)."""
        ret = [a < b for a, b in pairs if a < n_ret and b < n_ret]
        imp = [a < n_ret for a, b in pairs if (a < n_ret) != (b < n_ret)]
        return cls(sum(ret), len(ret), sum(imp), len(imp), len(pairs) - len(ret) - len(imp))


class Group:
    """The preferences of a judgement group as `pairs`, their `counts`, and documents by relevance (a level above 0)."""

    def __init__(self, pairs: Pairs, levels: Iterable[tuple[int, float]], n_ret: int) -> None:
        self.pairs, self.counts = pairs, Counts.of(pairs, n_ret)
        relevant = [(level > 0.0, document < n_ret) for document, level in levels]
        self.n_rel, self.n_rel_ret = sum(rel for rel, _ in relevant), relevant.count((True, True))
        self.n_nonrel, self.n_nonrel_ret = len(relevant) - self.n_rel, relevant.count((False, True))

    def with_nonrelevant(self, n: int, n_ret: int, retrieved_only: bool) -> Pairs:
        """Return the preferences over the relevant documents and the first n other documents."""
        raise NotImplementedError


class Classes(Group):
    """A group of one subgroup with classes of documents of equal levels, the highest level first.

    `pool` collects the documents of all groups of this kind.
    """

    def __init__(self, rows: list[tuple[int, float]], n_ret: int, pool: list[int]) -> None:
        self.classes = [[d for d, _ in same] for _, same in groupby(rows, key=lambda row: row[1])]
        pairs = _between(self.classes, self.classes)
        if any(a == b for a, b in pairs):
            raise ValueError("a document has two levels in one judgement subgroup")
        super().__init__(pairs, rows, n_ret)
        self._pool = pool
        pool += [d for d, _ in rows]
        self._last = len(pool) - len(self.classes[-1])

    def with_nonrelevant(self, n: int, n_ret: int, retrieved_only: bool) -> Pairs:
        """Return the preferences with the last class cut to n documents.

        If several levels are at or below 0, the last class may have fewer documents; trec_eval then takes the next
        group.
        """
        rest = self._pool[self._last : self._last + n]
        if len(rest) < n:
            raise ValueError("a judgement group has several levels at or below 0, for which the measure has no value")
        classes = [*self.classes, rest]
        if retrieved_only:  # up to the first document that was not retrieved
            classes = [list(takewhile(lambda d: d < n_ret, same)) for same in classes]
        *levels, last, rest = classes
        return _between([*levels, last], [*levels, [], rest])  # the last class is also compared with its own start


class Relation(Group):
    """A group of several subgroups with all preferences, also by transitivity (a over b and b over c give a over c)."""

    def __init__(self, subgroups: Iterable[list[tuple[int, float]]], n: int, n_ret: int) -> None:
        above, self.levels = [0] * n, [-1.0] * n  # above[a]: bits of the documents that a is preferred to
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
        pairs = [(a, b) for a in range(n) for b in range(n) if above[a] >> b & 1]
        super().__init__(pairs, [(d, level) for d, level in enumerate(self.levels) if level >= 0.0], n_ret)

    def with_nonrelevant(self, n: int, n_ret: int, retrieved_only: bool) -> Pairs:
        """Return the preferences with only the first documents of level 0; trec_eval counts all relevant documents."""
        end = n_ret if retrieved_only else len(self.levels)
        left_out = {d for d, level in enumerate(self.levels) if level == 0.0}
        left_out -= set(sorted(d for d in left_out if d < end)[: self.n_rel])
        pairs = [(a, b) for a, b in self.pairs if a not in left_out and b not in left_out]
        return [(a, b) for a, b in pairs if a < n_ret and b < n_ret] if retrieved_only else pairs


def _between(preferred: Sequence[Sequence[int]], others: Sequence[Sequence[int]]) -> Pairs:
    """Return pairs of a document and a document of a later class."""
    return [(a, b) for k, same in enumerate(preferred) for later in others[k + 1 :] for a in same for b in later]


class Judged(NamedTuple):
    """A topic's groups of preferences over its judged documents, of which the first `n_ret` were retrieved."""

    groups: Sequence[Group]
    n_ret: int

    @classmethod
    def of(cls, preferences: Sequence[Preference], ranked: Sequence[bytes]) -> Judged:
        """Join preferences with the retrieved documents, best first."""
        if any(row.level != row.level for row in preferences):
            raise ValueError("the level of a preference is not a number")
        judged = {row.document for row in preferences}
        retrieved = [document for document in ranked if document in judged]
        n_ret = len(retrieved)
        order = {document: k for k, document in enumerate([*retrieved, *sorted(judged.difference(retrieved))])}
        rows = sorted((r.group, r.subgroup, -r.level, order[r.document]) for r in preferences)
        groups: list[Group] = []
        pool: list[int] = []
        for _, of_group in groupby(rows, key=lambda row: row[0]):
            parts = [[(d, -level) for _, _, level, d in part] for _, part in groupby(of_group, key=lambda row: row[1])]
            groups.append(Classes(parts[0], n_ret, pool) if len(parts) == 1 else Relation(parts, len(order), n_ret))
        return cls(groups, n_ret)


Part = Callable[[Counts], tuple[int, int]]  # fulfilled and possible preferences


def _all(c: Counts) -> tuple[int, int]:
    return c.ful_ret + c.ful_imp, c.poss_ret + c.poss_imp + c.absent


def _retrieved(c: Counts) -> tuple[int, int]:
    return c.ful_ret, c.poss_ret


def _implied(c: Counts) -> tuple[int, int]:
    return c.ful_ret + c.ful_imp, c.poss_ret + c.poss_imp


def _simple(part: Part) -> Callable[[Judged], float]:
    """Return the share of fulfilled preferences, over all groups together."""

    def compute(t: Judged) -> float:
        parts = [part(group.counts) for group in t.groups]
        possible = sum(p for _, p in parts)
        return sum(f for f, _ in parts) / possible if possible else 0.0

    return compute


def _by_group(part: Part) -> Callable[[Judged], float]:
    """Return the mean over groups of the share of fulfilled preferences."""

    def compute(t: Judged) -> float:
        total = 0.0
        for group in t.groups:
            fulfilled, possible = part(group.counts)
            if possible:
                total += fulfilled / possible
        return total / len(t.groups) if total > 0.0 else 0.0

    return compute


def _balanced(retrieved_only: bool) -> Callable[[Judged], float]:
    """Return the mean over groups, each with as many documents of level 0 as relevant documents."""

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
                pairs = group.with_nonrelevant(relevant, t.n_ret, retrieved_only)
                fulfilled, possible = sum(a < b and a < t.n_ret for a, b in pairs), len(pairs)
            total += fulfilled / possible if possible else -math.nan
        return total / len(t.groups) if total > 0.0 else 0.0

    return compute


def _by_pair(retrieved_only: bool, absent: bool) -> Callable[[Judged], float]:
    """Return the share of groups that prefer the higher ranked document, averaged over pairs of documents."""

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
