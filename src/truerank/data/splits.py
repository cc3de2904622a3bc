"""Splits that never tear a query: k folds by query."""

from __future__ import annotations

from collections.abc import Iterator
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
    """Numbers of the queries in each of `n_splits` folds, sizes differing by one at most, each fold ascending.

    Without `shuffle` the folds are consecutive runs of queries. With `query_ids` (m,) queries are drawn by their names
    and not by their places, so that the folds do not change with the order of the rows.
    """
    n_splits = check_positive_int(n_splits, "n_splits, the number of folds,", 2)
    if n_queries < n_splits:
        raise InvalidInputError(
            f"cannot make {n_splits} folds of {n_queries} queries; there can be one fold a query at most"
        )
    order = stream(seed_of(random_state), "query-folds").permutation(n_queries) if shuffle else np.arange(n_queries)
    if query_ids is not None and shuffle:
        order = name_order(query_ids)[order]
    return [np.sort(part) for part in np.array_split(order, n_splits)]


class QueryKFold:
    """k folds of whole queries, for scikit-learn's model selection.

    The numbers of queries differ by one at most, where scikit-learn's `GroupKFold` balances rows, or shuffles by the
    sorted names, and takes five times as long; and `qid` is asked for by its own name.

    With metadata routing on (`sklearn.set_config(enable_metadata_routing=True)`) it asks for `qid` by itself, so that
    `GridSearchCV(ranker, grid, cv=QueryKFold()).fit(X, y, qid=qid)` and `cross_validate(ranker, X, y,
    cv=QueryKFold(), params={"qid": qid})` need no more, and the queries reach the ranker's fit and score as well.

    With routing off, `groups=qid` makes the same folds, which serves estimators that know no queries; a ranker's `fit`
    does not see `groups`, and would take the training rows as one query (an error beyond 1,000 rows).

    Parameters
    ----------
    n_splits : int, default 5
    shuffle : bool, default True
        Draw queries by their names, so that the folds do not change with the order of the rows; otherwise take
        them in order of first appearance.
    random_state : int or generator, optional
        None means seed 0: the same folds every time.

    Examples
    --------
    >>> qid = ["a", "a", "b", "c", "c"]
    >>> [test.tolist() for train, test in QueryKFold(3, shuffle=False).split(qid, qid=qid)]
    [[0, 1], [2], [3, 4]]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = True, random_state: RandomState = None) -> None:
        self.n_splits, self.shuffle, self.random_state = n_splits, shuffle, random_state

    def split(
        self, X: Any, y: ArrayLike | None = None, groups: ArrayLike | None = None, *, qid: ArrayLike | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Row numbers of the training and the test rows of each fold, in the caller's row order.

        Raises
        ------
        InvalidInputError
            When neither `qid` nor `groups` came, or there are fewer queries than folds.
        """
        qid = groups if qid is None else qid
        if qid is None:
            raise InvalidInputError(
                "QueryKFold needs the query of each row: pass qid (with scikit-learn's metadata routing on: "
                "sklearn.set_config(enable_metadata_routing=True) and params={'qid': qid}) or groups=qid"
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

    def get_n_splits(
        self,
        X: Matrix | None = None,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
    ) -> int:
        """Number of folds."""
        return self.n_splits

    def get_metadata_routing(self) -> Any:
        """What scikit-learn should pass to `split`: `qid`, and `groups` where a caller gives that."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=type(self).__name__)
        request.split.add_request(param="qid", alias=True)
        request.split.add_request(param="groups", alias=True)
        return request

    def __repr__(self) -> str:
        return f"QueryKFold(n_splits={self.n_splits}, shuffle={self.shuffle}, random_state={self.random_state!r})"
