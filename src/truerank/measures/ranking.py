"""Sort documents by score within their queries, once for all measures.

An unstable (vectorised) sort comes first; one sort of packed integers then orders equal scores by the tie rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.checks import as_array, as_numbers
from truerank.core.errors import InvalidInputError
from truerank.core.types import ArrayLike
from truerank.data.grouping import offsets_of, query_of_rows, sums_by_query
from truerank.data.ranking_data import Judgements
from truerank.measures.derived import BY_ID, Hits, TieOrder, as_read, blocks_of, hits_of, kept, tie_order

TIES = ("stable", "trec", "ascending", "average", "optimistic", "pessimistic", "end")


class Ranking:
    """Scores of judged documents, sorted on the first use by a measure.

    Parameters
    ----------
    judgements : Judgements
    scores : array (n,) or (k, n)
        Scores in the row order of the judgements, finite or infinite, not NaN.
    """

    __slots__ = ("_condensed", "_orders", "_sorted", "hit_ranks", "judgements", "scores", "single")

    def __init__(self, judgements: Judgements, scores: ArrayLike) -> None:
        array = as_array(scores, "scores")
        if array.dtype.kind not in "fiub":
            array = as_numbers(array, "scores")
        self.single = array.ndim == 1
        if array.ndim not in (1, 2) or array.shape[-1] != judgements.n_rows:
            raise InvalidInputError(
                f"scores must have one entry for each of the {judgements.n_rows} documents, shape (n,) or (k, n), got "
                f"the shape {array.shape}"
            )
        self.judgements = judgements
        self.scores = array[None] if self.single else array
        self._sorted: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._orders: dict[tuple[str, str], Ordered] = {}
        self._condensed: Ranking | None = None
        self.hit_ranks: list[Any] = []  # cache of `measures/kernel.py`

    def ordered(self, ties: str, compare: str) -> Ordered:
        """Return the documents in ranked order under a tie rule; scores are compared as float64 or float32."""
        if ties in BY_ID and self.judgements.tie_keys is None:
            ties = "stable"
        if compare not in self._sorted:
            self._sorted[compare] = _sorted_rows(self.judgements, self.scores, np.dtype(compare))
        key = (ties, compare)
        if key not in self._orders:
            self._orders[key] = Ordered(self.judgements, *self._sorted[compare], ties)
        return self._orders[key]

    def as_read(self, rule: str) -> Ranking:
        """Return the ranking with the grades that a program reads (`grades` of measures)."""
        judgements = as_read(self.judgements, rule)
        return self if judgements is None else self.regraded(judgements)

    def regraded(self, judgements: Judgements) -> Ranking:
        """Return the ranking with other grades of the same rows, for which nothing is sorted again."""
        result = Ranking(judgements, self.scores[0] if self.single else self.scores)
        result._sorted = self._sorted  # a sort does not depend on grades
        return result

    def judged_only(self) -> Ranking:
        """Return the ranking without unjudged documents and documents of negative grade, as in trec_eval."""
        known = self.judgements.known
        if known.all():
            return self
        if self._condensed is None:
            self._condensed = Ranking(_without_unjudged(self.judgements), self.scores[:, known])
            self._condensed.single = self.single
        return self._condensed


class Ordered:
    """Documents of `k` rankings in ranked order within their queries, under the tie rule `ties`.

    `rows[:, offsets[i] + j]` is the row of the document at rank j + 1 of query i, int64 (k, n). If the tie rule is an
    average, equal scores are ordered by falling grade, so that sums have the same bits for any order of the rows.
    `tied`, bool (k, n), marks documents whose score equals the score of the previous document of their query.
    """

    __slots__ = ("_hit_places", "any_tied", "judgements", "k", "rows", "tied", "ties")

    def __init__(self, judgements: Judgements, rows: np.ndarray, tied: np.ndarray, ties: str) -> None:
        self.judgements, self.tied, self.ties = judgements, tied, ties
        self.any_tied = bool(tied.any())
        order = tie_order(judgements, "optimistic" if ties in ("average", "end") else ties) if self.any_tied else None
        self.rows = _settled(rows, tied, order) if self.any_tied else rows
        self.k = len(rows)
        self._hit_places: dict[Hits, np.ndarray] = {}

    @property
    def grades(self) -> np.ndarray:
        """Grades in ranked order, (k, n)."""
        return self.judgements.grades[self.rows]

    def hits(self, rel: float) -> Hits:
        """Return the documents with a grade of at least `rel`."""
        return hits_of(self.judgements, rel)

    def hit_ranks(self, rel: float) -> np.ndarray:
        """Return the ranks (from 1) of the relevant documents, ascending within each query: int64 (k, h)."""
        return self.hit_places(self.hits(rel)) + 1

    def hit_places(self, hits: Hits) -> np.ndarray:
        """Return the number of documents above each hit, ascending within each query: int64 (k, h)."""
        if hits not in self._hit_places:
            k, n = self.rows.shape
            first = hits.first_row if k == 1 else hits.first_row + n * np.arange(k)[:, None]
            self._hit_places[hits] = np.flatnonzero(hits.mask[self.rows]).reshape(k, -1) - first
        return self._hit_places[hits]

    def hit_groups(self, hits: Hits) -> tuple[np.ndarray, np.ndarray]:
        """Return for each hit (k, h) the numbers of documents above its run of equal scores and in this run."""
        start, length = self.groups()
        k, n = self.rows.shape
        first = hits.first_row if k == 1 else hits.first_row + n * np.arange(k)[:, None]
        group = (np.cumsum(~self.tied.ravel()) - 1)[(self.hit_places(hits) + first).ravel()]
        return start[group].reshape(k, -1) - first, length[group].reshape(k, -1)

    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the flat first positions of the runs of equal scores in the (k, n) documents, and their lengths."""
        starts = np.flatnonzero(~self.tied)
        return starts, np.diff(np.append(starts, self.tied.size))

    def smoothed(self, values: np.ndarray) -> np.ndarray:
        """Return the expected value at each position (k, n) of values by row (n,), over all orders of ties."""
        ranked = values[self.rows]
        if not self.tied.any():
            return ranked
        starts, lengths = self.groups()
        means = np.add.reduceat(ranked.ravel(), starts) / lengths
        return np.repeat(means, lengths).reshape(ranked.shape)

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Return sums by query (k, m) of values by position (k, n)."""
        return np.ascontiguousarray(sums_by_query(values.T, self.judgements.offsets).T)

    def running(self, values: np.ndarray) -> np.ndarray:
        """Return running sums (k, n) within each query of values by position (k, n)."""
        offsets = self.judgements.offsets
        first = np.repeat(offsets[:-1], np.diff(offsets))
        total = np.cumsum(values, axis=1)
        return total - (total[:, first] - values[:, first])

    def count_above(self, mask: np.ndarray, hits: Hits) -> np.ndarray:
        """Return the number of marked rows above each hit, int64 (k, h), from a mask (n,) that marks no hits."""
        above = self.running(mask[self.rows].astype(np.int64))
        return np.take_along_axis(above, self.hit_places(hits) + hits.first_row, axis=1)


def _sorted_rows(judgements: Judgements, scores: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in descending order of score within each query, with ties in any order, and the positions of ties."""
    k, n = scores.shape
    falling = np.empty((k, n + 1), dtype=dtype)  # the last column is the padding of short queries
    with np.errstate(over="ignore"):  # infinite beyond the range of float32, as in trec_eval
        np.multiply(scores, -1.0, out=falling[:, :n], casting="unsafe")
    falling[:, n] = np.inf
    body = falling[:, :n]
    with np.errstate(all="ignore"):
        finite = np.isfinite(np.add.reduce(body, axis=None))
    if not finite and np.isnan(body).any():
        place = np.argwhere(np.isnan(body))[0]
        raise InvalidInputError(
            f"scores must be numbers, but row {place[1] + 1} of the data has nan", argument="scores"
        )
    # A score of -inf equals the padding; a stable sort leaves the padding last.
    rows = blocks_of(judgements).argsort(falling, stable=not finite)
    ranked = np.take_along_axis(body, rows, axis=1) if k > 1 else body[0][rows[0]][None]
    tied = np.empty((k, n), dtype=bool)
    if n:
        np.equal(ranked[:, 1:], ranked[:, :-1], out=tied[:, 1:])
        starts = judgements.offsets[:-1]
        tied[:, starts[starts < n]] = False
    return rows, tied


def _settled(rows: np.ndarray, tied: np.ndarray, order: TieOrder | None) -> np.ndarray:
    """Return the rows (k, n) with runs of equal scores in a total order, or in row order for None."""
    shape, rows, tied = rows.shape, rows.ravel(), tied.ravel()
    member = tied.copy()
    member[:-1] |= tied[1:]
    places = np.flatnonzero(member)
    run = np.cumsum(~tied[places])
    bits = max(1, int(shape[1] - 1).bit_length())
    key = rows[places] if order is None else order.rank[rows[places]]
    key = np.sort((run << bits) | key, kind="stable")  # the runs are in order already: this kind is fast then
    key &= (1 << bits) - 1
    result = rows.copy()
    result[places] = key if order is None else order.row[key]
    return result.reshape(shape)


@kept
def _without_unjudged(judgements: Judgements) -> Judgements:
    judged = judgements.known
    query = query_of_rows(judgements.offsets)[judged]
    counts = np.bincount(query, minlength=judgements.n_queries)
    return Judgements(
        judgements.grades[judged],
        offsets_of(counts),
        tie_keys=None if judgements.tie_keys is None else judgements.tie_keys[judged],
        query_ids=judgements.query_ids,
        missing_grades=judgements.missing_grades,
        missing_offsets=judgements.missing_offsets,
    )
