"""What a query loses: by name or by function, once for its ranking, or for each depth at which the ranking may be cut.

| name | kind | a query loses |
| --- | --- | --- |
| `no-relevant@k` | answer | 1 where none of its first k documents is relevant |
| `irrelevant@k` | answer | the share of its first k documents that are not relevant |
| `1-MEASURE` | answer | 1 less the measure, as in `1-nDCG@10` (measures as `evaluate` names them) |
| `missed-relevant` | missed | the share of its relevant documents that are not shown |
| `no-relevant-shown` | missed | 1 where it has a relevant document and none is shown |
| `irrelevant-shown` | shown | the share of the shown documents that are not relevant; 0 where none is shown |

A query without relevant documents loses 0 under the losses of kind "missed", whatever is shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError
from truerank.data.grouping import query_of_rows, sums_by_query
from truerank.data.ranking_data import Judgements

KINDS = ("answer", "missed", "shown")
BY_DEPTH = {"missed-relevant": "missed", "no-relevant-shown": "missed", "irrelevant-shown": "shown"}


@dataclass(frozen=True)
class QueryLoss:
    """A loss in [0, 1].

    Attributes
    ----------
    name : str
    kind : {"answer", "missed", "shown"}
        "answer": of a query that is answered. "missed": at a depth, and never higher where more is shown. "shown": at a
        depth, any other.
    k : int or None
        How many documents it looks at, where its name says so.
    function : callable, optional
        Grades (n_q,) best first, and the number shown for a loss by depth, to a number in [0, 1].
    """

    name: str
    kind: str
    k: int | None = None
    function: Callable[..., float] | None = None

    def of_rankings(self, grades: np.ndarray, offsets: np.ndarray, rel: float) -> np.ndarray:
        """Losses of queries whose documents stand best first: float64 (m,).

        A loss by depth gives float64 (n + m,) instead: of each query the losses at the depths 0, 1, …, n_q.
        """
        values = self._values(grades, offsets, rel)
        if not ((values >= 0) & (values <= 1)).all():
            bad = values[~((values >= 0) & (values <= 1))][0]
            raise InvalidInputError(f"the loss {self.name} must lie in [0, 1], got {bad}; rescale it")
        return values

    def _values(self, grades: np.ndarray, offsets: np.ndarray, rel: float) -> np.ndarray:
        sizes, query, relevant = np.diff(offsets), query_of_rows(offsets), grades >= rel
        if self.function is not None:
            lists = np.split(grades, offsets[1:-1])
            if self.kind == "answer":
                return np.array([self.function(one) for one in lists], dtype=np.float64)
            return np.array([self.function(one, d) for one in lists for d in range(len(one) + 1)], dtype=np.float64)
        if self.name.startswith("1-"):
            from truerank.measures import parse_measure

            judged = Judgements(grades, offsets)
            # Equal scores would be ties: the order of the rows is the ranking.
            return 1.0 - parse_measure(self.name[2:]).per_query(judged, -np.arange(len(grades), dtype=np.float64))
        if self.kind == "answer":
            first = np.arange(len(grades)) - offsets[query] < (self.k or 1)
            found = sums_by_query((relevant & first).astype(np.float64), offsets)
            if self.name.startswith("no-"):
                return (found == 0).astype(np.float64)
            return 1.0 - found / np.minimum(sizes, self.k or 1)
        depth = np.concatenate([np.arange(size + 1) for size in sizes])
        seen = np.concatenate([[0], np.cumsum(relevant)])
        total = np.repeat(seen[offsets[1:]] - seen[offsets[:-1]], sizes + 1)
        found = seen[np.repeat(offsets[:-1], sizes + 1) + depth] - np.repeat(seen[offsets[:-1]], sizes + 1)
        if self.name == "missed-relevant":
            return np.where(total > 0, 1.0 - found / np.maximum(total, 1), 0.0)
        if self.name == "no-relevant-shown":
            return ((total > 0) & (found == 0)).astype(np.float64)
        return np.where(depth > 0, 1.0 - found / np.maximum(depth, 1), 0.0)


def parse_loss(loss: object, kind: str | None = None) -> QueryLoss:
    """The loss behind a name, or of a function, whose kind is "answer" unless given.

    Raises
    ------
    InvalidInputError
        On an unknown name, a missing k, or a kind that the name contradicts.

    Examples
    --------
    >>> parse_loss("no-relevant@3")
    QueryLoss(name='no-relevant@3', kind='answer', k=3, function=None)
    """
    if callable(loss):
        kind = check_choice("answer" if kind is None else kind, "kind", KINDS)
        return QueryLoss(getattr(loss, "__name__", "function"), kind, None, loss)
    name = str(loss)
    at_k = re.fullmatch(r"(?:no-relevant|irrelevant)@([1-9]\d*)", name)
    measure = re.fullmatch(r"1-[^@]+(?:@([1-9]\d*))?", name)
    if at_k is None and measure is None and name not in BY_DEPTH:
        names = ["no-relevant@3", "irrelevant@10", "1-nDCG@10", *BY_DEPTH]
        raise InvalidInputError(f"unknown loss {loss!r}; losses are {', '.join(names)} (any k, any measure)")
    own = BY_DEPTH.get(name, "answer")
    if kind not in (None, own):
        raise InvalidInputError(f"the loss {name} is of the kind {own!r}, got kind={kind!r}; leave kind out")
    found = at_k or measure
    if measure is not None:
        from truerank.measures import parse_measure

        parse_measure(name[2:])  # an unknown measure is an error here, before anything is fitted
    return QueryLoss(name, own, None if found is None or found[1] is None else int(found[1]))
