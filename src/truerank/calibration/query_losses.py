"""Compute losses of a query by name or by function, and statistics of the query's scores that predict the losses.

A loss has one value for the ranking, or one for each number of documents shown:

| name | kind | loss of a query |
| --- | --- | --- |
| `no-relevant@k` | answer | 1 where none of its first k documents is relevant |
| `irrelevant@k` | answer | share of its first k documents that are not relevant |
| `1-MEASURE` | answer | 1 minus the measure, as in `1-nDCG@10` |
| `missed-relevant` | missed | share of the relevant documents in its list that are not shown |
| `no-relevant-shown` | missed | 1 where none of the relevant documents in its list is shown |
| `irrelevant-shown` | shown | share of the shown documents that are not relevant |

A loss of the kind "missed" never rises when more is shown. Losses about depth are NaN, and count in no mean, for a
query without relevant documents (kind "missed") or without a shown document (`irrelevant-shown`). With the suffix
`-overall`, as in `no-relevant-shown-overall`, the loss of these queries is 0, and the mean is that of all queries.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from truerank.core.checks import check_choice, check_function
from truerank.core.errors import InvalidInputError
from truerank.data.grouping import query_of_rows, ranks_by_query, sums_by_query
from truerank.data.ranking_data import Judgements
from truerank.measures import parse_measure

_OVERALL = "-overall"
_OWN = {"missed-relevant": "missed", "no-relevant-shown": "missed", "irrelevant-shown": "shown"}
BY_DEPTH = _OWN | {name + _OVERALL: kind for name, kind in _OWN.items()}
_DENOMINATORS = {"missed": "relevant documents in their lists", "shown": "a shown document"}
STATISTICS = ("best", "mean-top", "gap", "mean", "spread", "size", "agreement")


class QueryLoss(NamedTuple):
    """A loss in [0, 1] with its name, its kind, the cutoff k in its name, and the function if the user passed one."""

    name: str
    kind: str
    k: int | None = None
    function: Callable[..., float] | None = None

    def of_rankings(self, grades: np.ndarray, offsets: np.ndarray, rel: float) -> np.ndarray:
        """Return the losses of queries, sorted best first: (m,), or at depths 0, 1, …, n_q of each query (n + m,)."""
        values = self._values(grades, offsets, rel)
        bad = values[~((values >= 0) & (values <= 1))]
        if len(bad) and self.name not in BY_DEPTH:
            raise InvalidInputError(
                f"the loss {self.name} must be in [0, 1], got {bad[0]}. Rescale it", argument="loss"
            )
        return values

    def _values(self, grades: np.ndarray, offsets: np.ndarray, rel: float) -> np.ndarray:
        sizes, query, relevant = np.diff(offsets), query_of_rows(offsets), grades >= rel
        if self.function is not None:
            lists = np.split(grades, offsets[1:-1])
            if self.kind == "answer":
                return np.array([self.function(one) for one in lists], dtype=np.float64)
            return np.array([self.function(one, d) for one in lists for d in range(len(one) + 1)], dtype=np.float64)
        if self.name.startswith("1-"):
            in_order = -np.arange(len(grades), dtype=np.float64)  # scores without ties
            loss = 1.0 - parse_measure(self.name[2:]).per_query(Judgements(grades, offsets), in_order)
            return np.where(np.abs(loss) < 1e-12, 0.0, loss)  # a measure of 1 may round to more
        if self.kind == "answer":
            first = np.arange(len(grades)) - offsets[query] < (self.k or 1)
            found = sums_by_query((relevant & first).astype(np.float64), offsets)
            return 1.0 * (found == 0) if self.name.startswith("no-") else 1.0 - found / np.minimum(sizes, self.k or 1)
        depth = np.concatenate([np.arange(size + 1) for size in sizes])
        seen = np.concatenate([[0], np.cumsum(relevant)])
        start = np.repeat(offsets[:-1], sizes + 1)
        found, total = seen[start + depth] - seen[start], np.repeat(seen[offsets[1:]], sizes + 1) - seen[start]
        of = depth if self.kind == "shown" else total
        loss = 1.0 * (found == 0) if self.name.startswith("no-") else 1.0 - found / np.maximum(of, 1)
        return np.where(of > 0, loss, 0.0 if self.name.endswith(_OVERALL) else np.nan)


def denominator(name: str, kind: str) -> str:
    """Describe the queries over which a loss about depth is averaged.

    >>> denominator("missed-relevant", "missed")
    'the queries with relevant documents in their lists'
    """
    own = _DENOMINATORS[kind]
    if name in _OWN:
        return f"the queries with {own}"
    return f"all queries (0 for those without {own})" if name in BY_DEPTH else "all queries"


def parse_loss(loss: object, kind: str | None = None) -> QueryLoss:
    """Return the loss with a name, or the loss of a function, whose kind is "answer" by default.

    >>> parse_loss("no-relevant@3")
    QueryLoss(name='no-relevant@3', kind='answer', k=3, function=None)
    """
    if callable(loss):
        kind = check_choice("answer" if kind is None else kind, "kind", ("answer", "missed", "shown"))
        check_function(loss, "loss", "grades" if kind == "answer" else "grades, depth")
        return QueryLoss(getattr(loss, "__name__", "function"), kind, None, loss)
    name = str(loss)
    found = re.fullmatch(r"(?:no-relevant|irrelevant)@([1-9]\d*)|1-[^@]+(?:@([1-9]\d*))?", name)
    if found is None and name not in BY_DEPTH:
        names = ["no-relevant@3", "irrelevant@10", "1-nDCG@10", *BY_DEPTH]
        raise InvalidInputError(
            f"unknown loss {loss!r}. Choose one of {', '.join(names)} (k and measure can differ)", argument="loss"
        )
    own = BY_DEPTH.get(name, "answer")
    if kind not in (None, own):
        raise InvalidInputError(
            f"kind={kind!r} contradicts the loss {name}, which has the kind {own!r}. Omit kind", argument="kind"
        )
    if name.startswith("1-"):
        parse_measure(name[2:])  # an unknown measure is an error before anything is fitted
    k = found and (found[1] or found[2])
    return QueryLoss(name, own, int(k) if k else None)


def list_statistics(scores: np.ndarray, offsets: np.ndarray, k: int) -> np.ndarray:
    """Return the `STATISTICS` of each result list, float64 (m, 7), or (m, 6) without further runs.

    The columns are the highest score, the mean of the k highest, the highest minus the second (0 for one document),
    mean and standard deviation of all, the logarithm of their number, and the mean share of the further runs that
    contain the first k documents. The first column of `scores` (n, r) ranks; NaN in a further column means that this
    run lacks the document.
    """
    own, sizes, query = scores[:, 0], np.diff(offsets), query_of_rows(offsets)
    ranked = own[np.lexsort((-own, query))]
    best, second = ranked[offsets[:-1]], ranked[offsets[:-1] + np.minimum(1, sizes - 1)]
    top, n_top = ranks_by_query(own, offsets) <= k, np.minimum(sizes, k)
    mean = sums_by_query(own, offsets) / sizes
    spread = np.sqrt(sums_by_query((own - mean[query]) ** 2, offsets) / sizes)
    mean_top = sums_by_query(np.where(top, own, 0.0), offsets) / n_top
    columns = [best, mean_top, best - second, mean, spread, np.log(sizes)]
    if scores.shape[1] > 1:
        held = (~np.isnan(scores[:, 1:])).mean(axis=1)
        columns.append(sums_by_query(np.where(top, held, 0.0), offsets) / n_top)
    return np.stack(columns, axis=1)
