"""Documents sorted by score within their queries: one sort that all measures share, ties put right afterwards.

Queries of similar length are sorted together as the rows of one matrix by an unstable (vectorised) sort; only the runs
of equal scores are then put into the order that the tie rule asks for, all of them by one sort of packed integers.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import Judgements
from truerank.measures.derived import Hits, hits_of, tie_order

Kind = Literal["stable"] | None
TIES = ("stable", "trec", "average", "optimistic", "pessimistic", "end")


class Ranking:
    """Scores of judged documents, sorted when a measure first asks for it.

    Parameters
    ----------
    judgements : Judgements
    scores : array (n,) or (k, n)
        In the judgements' row order; finite or infinite, not NaN.
    """

    __slots__ = ("_condensed", "_orders", "_sorted", "judgements", "scores", "single")

    def __init__(self, judgements: Judgements, scores: Any) -> None:
        array = np.asarray(scores)
        if array.dtype.kind not in "fiub":
            try:
                array = array.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise InvalidInputError(f"scores must be numbers: {error}") from error
        self.single = array.ndim == 1
        if array.ndim not in (1, 2) or array.shape[-1] != judgements.n_rows:
            raise InvalidInputError(
                f"scores must have one entry for each of the {judgements.n_rows} documents, shape (n,) or (k, n); got "
                f"shape {array.shape}"
            )
        self.judgements = judgements
        self.scores = array.reshape(-1, judgements.n_rows)
        self._sorted: dict[str, _Sorted] = {}
        self._orders: dict[tuple[str, str], Ordered] = {}
        self._condensed: Ranking | None = None

    def ordered(self, ties: str, compare: str) -> Ordered:
        """The documents in ranked order under a tie rule, comparing scores as float64 or float32."""
        if ties == "trec" and self.judgements.tie_keys is None:
            ties = "stable"
        key = (ties, compare)
        if key not in self._orders:
            if compare not in self._sorted:
                self._sorted[compare] = _Sorted(self.judgements, self.scores, np.dtype(compare))
            base = self._sorted[compare]
            self._orders[key] = Ordered(self.judgements, base, base.rows_under(ties))
        return self._orders[key]

    def judged_only(self) -> Ranking:
        """The ranking without its unjudged documents."""
        judgements = self.judgements
        if judgements.judged is None or judgements.judged.all():
            return self
        if self._condensed is None:
            if "judged_only" not in judgements.cache:
                judgements.cache["judged_only"] = _without_unjudged(judgements)
            self._condensed = Ranking(judgements.cache["judged_only"], self.scores[:, judgements.judged])
            self._condensed.single = self.single
        return self._condensed


class Ordered:
    """Documents of k rankings in ranked order within their queries.

    Attributes
    ----------
    judgements : Judgements
    rows : int64 array (k, n)
        `rows[:, offsets[i] + j]` is the row of the document at rank j + 1 of query i. Where the tie rule is an average,
        any order within the runs of equal scores.
    """

    __slots__ = ("_grades", "_hit_ranks", "_sorted", "judgements", "rows")

    def __init__(self, judgements: Judgements, base: _Sorted, rows: np.ndarray) -> None:
        self.judgements, self.rows, self._sorted = judgements, rows, base
        self._grades: np.ndarray | None = None
        self._hit_ranks: dict[float, np.ndarray] = {}

    @property
    def k(self) -> int:
        """Number of rankings."""
        return self.rows.shape[0]

    @property
    def grades(self) -> np.ndarray:
        """Grades in ranked order, (k, n)."""
        if self._grades is None:
            self._grades = self.judgements.grades[self.rows]
        return self._grades

    def hits(self, rel: float) -> Hits:
        """The documents of grade `rel` and above."""
        return hits_of(self.judgements, rel)

    def hit_ranks(self, rel: float) -> np.ndarray:
        """Ranks (1-based) of the relevant documents, ascending within each query: int64 (k, h)."""
        if rel not in self._hit_ranks:
            hits = self.hits(rel)
            k, n = self.rows.shape
            places = np.flatnonzero(hits.mask[self.rows]).reshape(k, -1)
            first = hits.first_row - 1
            self._hit_ranks[rel] = places - (first if k == 1 else first + n * np.arange(k)[:, None])
        return self._hit_ranks[rel]

    @property
    def tied(self) -> np.ndarray:
        """Whether the document at a place has the score of the one before it in its query: bool (k, n)."""
        return self._sorted.tied


class _Sorted:
    """Rows in descending order of score within each query, in any order among ties, and where the ties are."""

    __slots__ = ("_any", "judgements", "rows", "tied")

    def __init__(self, judgements: Judgements, scores: np.ndarray, dtype: np.dtype) -> None:
        self.judgements = judgements
        k, n = scores.shape
        falling = np.empty((k, n + 1), dtype=dtype)  # one more column: what the padding of short queries points at
        with np.errstate(over="ignore"):  # beyond float32's range: infinite, as it is in trec_eval
            np.negative(scores, out=falling[:, :n], casting="unsafe", dtype=dtype) if scores.dtype.kind == "f" else (
                np.multiply(scores, -1.0, out=falling[:, :n], casting="unsafe")
            )
        falling[:, n] = np.inf
        body = falling[:, :n]
        total = np.add.reduce(body, axis=None)
        kind: Kind = None
        if not np.isfinite(total):
            if np.isnan(body).any():
                place = np.argwhere(np.isnan(body))[0]
                raise InvalidInputError(f"scores must be numbers: document {place[1]} (row of the data) has nan")
            kind = "stable"  # a score of -inf equals the padding; a stable sort leaves the padding last
        self.rows = _sort(judgements, falling, kind)
        ranked = np.take_along_axis(body, self.rows, axis=1) if k > 1 else body[0][self.rows[0]][None]
        tied = np.empty((k, n), dtype=bool)
        if n:
            np.equal(ranked[:, 1:], ranked[:, :-1], out=tied[:, 1:])
            starts = judgements.offsets[:-1]
            tied[:, starts[starts < n]] = False
        self.tied = tied
        self._any = bool(tied.any())

    def rows_under(self, ties: str) -> np.ndarray:
        if ties in ("average", "end") or not self._any:
            return self.rows
        k, n = self.rows.shape
        tied = self.tied.ravel()
        member = tied.copy()
        member[:-1] |= tied[1:]
        places = np.flatnonzero(member)
        rows = self.rows.ravel()
        run = np.cumsum(~tied[places])
        permutation = tie_order(self.judgements, ties)
        bits = max(1, int(n - 1).bit_length())
        key = rows[places] if permutation is None else permutation.rank[rows[places]]
        key = np.sort((run << bits) | key)
        key &= (1 << bits) - 1
        result = rows.copy()
        result[places] = key if permutation is None else permutation.row[key]
        return result.reshape(k, n)


def _sort(judgements: Judgements, falling: np.ndarray, kind: Kind) -> np.ndarray:
    """Rows (k, n) of ascending `falling` (k, n + 1) within each query."""
    k, n = falling.shape[0], falling.shape[1] - 1
    if "blocks" not in judgements.cache:
        judgements.cache["blocks"] = _blocks(judgements.offsets)
    out: np.ndarray | None = None
    for block in judgements.cache["blocks"]:
        index, start = block.index, block.start
        q, length = block.shape
        if index is None:  # queries of one length that stand side by side
            matrix = falling[:, start : start + q * length].reshape(k, q, length)
            local = np.argsort(matrix, axis=-1, kind=kind)
            local += block.first[:, None]
            if q * length == n:
                return local.reshape(k, n)
            ranked = local.reshape(k, q * length)
        else:
            matrix = falling[:, index]
            local = np.argsort(matrix, axis=-1, kind=kind)
            local += block.first[:, None]
            ranked = local.reshape(k, q * length)
        if out is None:
            out = np.empty((k, n), dtype=np.int64)
        if index is None:
            out[:, start : start + q * length] = ranked
        elif block.full is None:
            out[:, index.ravel()] = ranked
        else:
            out[:, block.target] = ranked[:, block.full]
    return np.zeros((k, 0), dtype=np.int64) if out is None else out


class _Block:
    """Queries of similar length that are sorted as the rows of one matrix.

    `index` (q, length) points at rows, n being the padding; None where the rows stand side by side from `start`.
    `first` is each query's first row, `full` the flat places of the matrix that are no padding after the sort, and
    `target` where they go.
    """

    __slots__ = ("first", "full", "index", "shape", "start", "target")

    def __init__(self, queries: np.ndarray, offsets: np.ndarray) -> None:
        sizes = offsets[queries + 1] - offsets[queries]
        length = int(sizes.max())
        self.first = offsets[queries]
        self.shape = (len(queries), length)
        self.start = int(self.first[0])
        self.full: np.ndarray | None = None
        self.target: np.ndarray | None = None
        self.index: np.ndarray | None = None
        if (sizes == length).all():
            if not np.all(np.diff(queries) == 1):
                self.index = self.first[:, None] + np.arange(length)
            return
        column = np.arange(length)
        index = self.first[:, None] + column
        inside = column < sizes[:, None]
        self.index = np.where(inside, index, int(offsets[-1]))
        self.full = np.flatnonzero(inside)
        self.target = index[inside]


def _blocks(offsets: np.ndarray) -> list[_Block]:
    """Queries cut into blocks of similar length so that padding costs little and blocks are few."""
    sizes = np.diff(offsets)
    queries = np.argsort(sizes, kind="stable")[::-1]
    queries = queries[sizes[queries] > 0]
    blocks = []
    position = 0
    ordered = sizes[queries]
    below = np.concatenate([[0], np.cumsum(ordered)])
    while position < len(queries):
        length = ordered[position]
        count = np.arange(1, len(queries) - position + 1)
        real = below[position + 1 :] - below[position]
        wasted = length * count - real
        # A block costs about as much as sorting a thousand documents; padding may cost that or an eighth of the whole.
        fits = np.flatnonzero(wasted <= np.maximum(1000, real // 8))
        # Cells must stay bounded too: one matrix of at most 2^22 cells unless a single query is longer.
        last = int(fits[-1]) + 1
        blocks.append(_Block(np.sort(queries[position : position + last]), offsets))
        position += last
    return blocks


def _without_unjudged(judgements: Judgements) -> Judgements:
    judged = judgements.judged
    assert judged is not None  # the caller has looked
    query = np.repeat(np.arange(judgements.n_queries), np.diff(judgements.offsets))[judged]
    counts = np.bincount(query, minlength=judgements.n_queries)
    return Judgements(
        judgements.grades[judged],
        np.concatenate([[0], np.cumsum(counts)]),
        tie_keys=None if judgements.tie_keys is None else judgements.tie_keys[judged],
        query_ids=judgements.query_ids,
        missing_grades=judgements.missing_grades,
        missing_offsets=judgements.missing_offsets,
    )
