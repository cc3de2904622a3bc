"""Divide whole queries into random folds, folds by time, or the published folds of a collection."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from truerank.core.checks import check_positive_int, column_labels
from truerank.core.errors import InvalidInputError, Remedy
from truerank.core.random_streams import seed_of, stream
from truerank.core.types import ArrayLike, Matrix, RandomState
from truerank.data.grouping import Grouping, group_rows, is_missing, name_order, value_of_each_query
from truerank.data.ranking_data import RankingData


def query_folds(
    n_queries: int,
    n_splits: int,
    *,
    shuffle: bool = True,
    random_state: RandomState = None,
    query_ids: np.ndarray | None = None,
) -> list[np.ndarray]:
    """Return the numbers, ascending, of the queries in each of `n_splits` folds.

    With `query_ids` (m,), shuffled queries are drawn by name, not by number.
    """
    n_splits = check_positive_int(n_splits, "n_splits, the number of folds,", 2)
    if n_queries < n_splits:
        raise InvalidInputError(
            f"{n_splits} folds require at least {n_splits} queries, got {n_queries}. Use fewer folds",
            code="too-few-queries",
        )
    order = stream(seed_of(random_state), "query-folds").permutation(n_queries) if shuffle else np.arange(n_queries)
    if query_ids is not None and shuffle:
        order = name_order(query_ids)[order]
    return [np.sort(part) for part in np.array_split(order, n_splits)]


class Fold(NamedTuple):
    """A fold with its name, and the numbers of its training, validation and test queries; `valid` may be empty."""

    name: str
    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray


class FoldedData(RankingData):
    """Judged rankings with published folds, as `read_folds` returns them; parts of the data are plain `RankingData`.

    `cross_validate` and `tune` use the `folds` (a tuple of `Fold`) unless `cv` is given.
    """

    __slots__ = ("folds",)

    folds: tuple[Fold, ...]

    @classmethod
    def of(cls, data: RankingData, folds: Sequence[Fold]) -> FoldedData:
        """Return the data with the given folds, without a copy."""
        self = cls.__new__(cls)
        for name in (*Grouping.__slots__, *RankingData.__slots__):
            setattr(self, name, getattr(data, name))
        self.folds = tuple(folds)
        return self


class Splitter(Protocol):
    """The interface of a scikit-learn splitter."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        """Yield the numbers of training and test rows."""


CV = int | Splitter | Sequence[Fold]


def folds_of(
    data: Any, cv: CV | None = None, *, validate: bool = False, random_state: RandomState = None
) -> list[Fold]:
    """Return the folds of the queries of data, for `cv` of `cross_validate`.

    Parameters
    ----------
    data : RankingData or RowSource
    cv : int, splitter or sequence of Fold, optional
        The number k of folds drawn by query names, a splitter (query ids are its groups), or folds. The default is the
        `stated_folds` of the data.
    validate : bool, default False
        If True and `folds` is a number, the fold before the test fold is used for validation.

    Raises
    ------
    InvalidInputError
        If a query is tested twice.
    """
    cv = stated_folds(data, cv)
    none, every = np.zeros(0, dtype=np.int64), np.arange(data.n_queries)
    if hasattr(cv, "split") and not isinstance(cv, str):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of splitters that do not use groups
            splits = list(cv.split(np.zeros((data.n_queries, 1)), None, data.query_ids))
        folds = [Fold(str(k), train, none, test) for k, (train, test) in enumerate(splits, 1)]
    elif isinstance(cv, Sequence) and not isinstance(cv, str):
        folds = list(cv)
    else:
        k = check_positive_int(cv, "cv", 2)
        if validate and k < 3:
            raise InvalidInputError(
                argument="cv", expected="3 or more folds (training, validation and test queries)", value=k,
                remedies=[Remedy("to train without validation queries", validate=False)],
            )  # fmt: skip
        tests = query_folds(data.n_queries, k, random_state=random_state, query_ids=data.query_ids)
        folds = []
        for k, test in enumerate(tests):
            valid = tests[k - 1] if validate else none
            folds.append(Fold(str(k + 1), np.setdiff1d(every, np.concatenate([test, valid])), valid, test))
    tested, times = np.unique(np.concatenate([none, *(fold.test for fold in folds)]), return_counts=True)
    if len(twice := tested[times > 1]):
        what = f"cv: query {(own := data.query_ids[twice[0]])} is in several test sets. Test each query once"
        raise InvalidInputError(what, argument="cv", value=own)
    return folds


def stated_folds(data: Any, cv: CV | None) -> CV:
    """Return `cv`, or by default the published folds of the data, else the number 5."""
    return getattr(data, "folds", 5) if cv is None else cv


def tested_queries(folds: Sequence[Fold]) -> np.ndarray:
    """Return the numbers of the queries that a fold tests, ascending."""
    return np.unique(np.concatenate([fold.test for fold in folds])) if folds else np.zeros(0, dtype=np.int64)


class _QuerySplitter:
    """Splits of whole queries for scikit-learn's model selection; `_parts` returns training and test queries."""

    n_splits: int

    def _parts(self, grouping: Grouping) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        raise NotImplementedError

    def split(
        self,
        X: Matrix | Sequence[Any],
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the row numbers of the training and the test rows of each fold, in the caller's row order.

        A data frame may have the queries in its column `qid`.

        Raises
        ------
        InvalidInputError
            Without `qid`, `groups` or a column `qid`, and with fewer queries than folds.
        """
        qid = groups if qid is None else qid
        if qid is None and "qid" in column_labels(X):
            qid = np.asarray(X["qid"])  # type: ignore[call-overload]
        if qid is None:
            raise InvalidInputError(
                f"{type(self).__name__} requires the query of each row. Pass a data frame with a column 'qid', or "
                "groups=qid, or qid (with sklearn.set_config(enable_metadata_routing=True) and "
                f"params={{'qid': qid}}; GridSearchCV: fit(X, y, qid=qid))",
                argument="qid",
            )
        grouping = group_rows(qid, X.shape[0] if hasattr(X, "shape") else len(X))
        query = grouping.restore(grouping.query_index)
        for sides in self._parts(grouping):
            train, test = (np.flatnonzero(np.isin(query, side)) for side in sides)
            yield train, test

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


class QueryKFold(_QuerySplitter):
    """k folds of whole queries, for scikit-learn's model selection. The sizes of folds differ by at most one query.

    With metadata routing (`sklearn.set_config(enable_metadata_routing=True)`), `GridSearchCV(ranker, grid,
    cv=QueryKFold()).fit(X, y, qid=qid)` and `cross_validate(ranker, X, y, cv=QueryKFold(), params={"qid": qid})` also
    pass the queries to the ranker. Without routing, `groups=qid` gives the same folds, but no queries to the ranker.

    Parameters
    ----------
    n_splits : int, default 5
    shuffle : bool, default True
        Whether to draw queries by name, independent of the order of rows; else folds are consecutive queries.
    random_state : int or generator, default 0
        None means seed 0, but scikit-learn's successive halving rejects None.

    Examples
    --------
    >>> qid = ["a", "a", "b", "c", "c"]
    >>> [test.tolist() for train, test in QueryKFold(3, shuffle=False).split(qid, qid=qid)]
    [[0, 1], [2], [3, 4]]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = True, random_state: RandomState = 0) -> None:
        self.n_splits, self.shuffle, self.random_state = n_splits, shuffle, random_state

    def _parts(self, grouping: Grouping) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        every, n = np.arange(grouping.n_queries), grouping.n_queries
        settings = {"shuffle": self.shuffle, "random_state": self.random_state}
        for test in query_folds(n, self.n_splits, query_ids=grouping.query_ids, **settings):  # type: ignore[arg-type]
            yield np.setdiff1d(every, test), test

    def __repr__(self) -> str:
        return f"QueryKFold(n_splits={self.n_splits}, shuffle={self.shuffle}, random_state={self.random_state!r})"


class QueryTimeSplit(_QuerySplitter):
    """Splits of whole queries by time (forward chaining). Each fold tests a period, and trains on all earlier queries.

    The queries are divided into `n_splits` + 1 periods with about equal numbers of queries. Queries of the same time
    are in the same period. The first period is never tested.

    Parameters
    ----------
    time : mapping or Series by query id, or array-like (n,)
        Times as numbers, dates, or other sortable values. An array has the time of each row that is split, constant
        within a query; `cross_validate(cv=…)` splits queries, in the order of `data.query_ids`.
    n_splits : int, default 5

    Examples
    --------
    >>> splitter = QueryTimeSplit({"a": 2024, "b": 2022, "c": 2023}, n_splits=2)
    >>> [(train.tolist(), test.tolist()) for train, test in splitter.split(range(3), groups=["a", "b", "c"])]
    [([1], [2]), ([1, 2], [0])]
    """

    def __init__(self, time: Mapping[Any, Any] | ArrayLike, n_splits: int = 5) -> None:
        self.time, self.n_splits = time, check_positive_int(n_splits, "n_splits")

    def _parts(self, grouping: Grouping) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        times = value_of_each_query(self.time, grouping, "time")
        if lacking := [query for query, time in zip(grouping.query_ids.tolist(), times) if is_missing(time)]:
            raise InvalidInputError(
                f"{len(lacking)} of {grouping.n_queries} queries have no time, such as {lacking[0]!r}", argument="time",
                remedies=["add their times, or leave these queries out"], code="missing-time",
            )  # fmt: skip
        rank = np.unique(times, return_inverse=True)[1]
        order = np.argsort(rank, kind="stable")
        shares = np.arange(1, self.n_splits + 1) / (self.n_splits + 1)
        borders = rank[order[(shares * len(order)).astype(np.int64)]]  # the first time of each later period
        if len(order) <= self.n_splits or borders[0] == 0 or (np.diff(borders) <= 0).any():
            raise InvalidInputError(
                f"cannot make {self.n_splits + 1} periods of {grouping.n_queries} queries with {rank.max() + 1} "
                f"different times, because each period requires several times",
                argument="n_splits", remedies=["give a smaller n_splits"], code="too-few-times",
            )  # fmt: skip
        for start, stop in pairwise([*borders, rank.max() + 1]):
            yield np.flatnonzero(rank < start), np.flatnonzero((rank >= start) & (rank < stop))

    def __repr__(self) -> str:
        return f"QueryTimeSplit(n_splits={self.n_splits})"
