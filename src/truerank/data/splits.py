"""Folds of whole queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import seed_of, stream
from truerank.core.types import ArrayLike, Matrix, RandomState
from truerank.data.grouping import group_rows, name_order


def query_folds(
    n_queries: int,
    n_splits: int,
    *,
    shuffle: bool = True,
    random_state: RandomState = None,
    query_ids: np.ndarray | None = None,
) -> list[np.ndarray]:
    """Return the numbers of the queries in each of `n_splits` folds, ascending.

    With `query_ids` (m,), shuffled queries are drawn by name and not by number.
    """
    n_splits = check_positive_int(n_splits, "n_splits, the number of folds,", 2)
    if n_queries < n_splits:
        raise InvalidInputError(
            f"cannot make {n_splits} folds of {n_queries} queries; there must be at least one query for each fold",
            code="too-few-queries",
        )
    order = stream(seed_of(random_state), "query-folds").permutation(n_queries) if shuffle else np.arange(n_queries)
    if query_ids is not None and shuffle:
        order = name_order(query_ids)[order]
    return [np.sort(part) for part in np.array_split(order, n_splits)]


class QueryKFold:
    """k folds of whole queries, for scikit-learn's model selection. Their sizes differ by at most one query.

    With metadata routing (`sklearn.set_config(enable_metadata_routing=True)`), `GridSearchCV(ranker, grid,
    cv=QueryKFold()).fit(X, y, qid=qid)` and `cross_validate(ranker, X, y, cv=QueryKFold(), params={"qid": qid})` also
    pass the queries to the ranker. Without routing, `groups=qid` gives the same folds, but no queries to the ranker.

    Parameters
    ----------
    n_splits : int, default 5
    shuffle : bool, default True
        Draw queries by their names, independent of the order of the rows; else folds are consecutive queries.
    random_state : int or generator, optional
        Default: seed 0.

    Examples
    --------
    >>> qid = ["a", "a", "b", "c", "c"]
    >>> [test.tolist() for train, test in QueryKFold(3, shuffle=False).split(qid, qid=qid)]
    [[0, 1], [2], [3, 4]]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = True, random_state: RandomState = None) -> None:
        self.n_splits, self.shuffle, self.random_state = n_splits, shuffle, random_state

    def split(
        self,
        X: Matrix | Sequence[Any],
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the row numbers of the training and the test rows of each fold, in the caller's row order.

        Raises
        ------
        InvalidInputError
            Without `qid` and `groups`, and with fewer queries than folds.
        """
        qid = groups if qid is None else qid
        if qid is None:
            raise InvalidInputError(
                "QueryKFold needs the query of each row: pass qid (with scikit-learn's metadata routing on: "
                "sklearn.set_config(enable_metadata_routing=True) and params={'qid': qid}; GridSearchCV: fit(X, y, "
                "qid=qid)) or groups=qid",
                argument="qid",
            )
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        grouping = group_rows(qid, n_rows)
        query, n_queries = grouping.restore(grouping.query_index), grouping.n_queries
        for fold in query_folds(
            n_queries, self.n_splits, shuffle=self.shuffle, random_state=self.random_state, query_ids=grouping.query_ids
        ):
            in_test = np.zeros(n_queries, dtype=bool)
            in_test[fold] = True
            test = in_test[query]
            yield np.flatnonzero(~test), np.flatnonzero(test)

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None, *, qid: object = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def get_metadata_routing(self) -> Any:
        """Return the request for `qid` and `groups`, which scikit-learn passes to `split`."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=type(self).__name__)
        request.split.add_request(param="qid", alias=True)
        request.split.add_request(param="groups", alias=True)
        return request

    def __repr__(self) -> str:
        return f"QueryKFold(n_splits={self.n_splits}, shuffle={self.shuffle}, random_state={self.random_state!r})"
