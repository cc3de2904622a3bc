"""The base class of rows in any place.

`RankingData` has its rows in memory. A `RowSource` calls functions on parts in other places, and merges the results. To
support a new place for rows, write a class with the method `statistics`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, NoReturn, Protocol, Self

import numpy as np

from truerank.core.checks import is_dask
from truerank.core.errors import InvalidInputError, Remedy
from truerank.core.names import resolve
from truerank.core.threads import Workers
from truerank.core.types import Scorer
from truerank.data.grouping import at_places, offsets_of
from truerank.data.ranking_data import Judgements, RankingData
from truerank.data.rows import Description, HeldPart, Merge, add, beside


class Part(Protocol):
    """A part of whole queries, at the location of its rows, with the results that a fit keeps between statistics."""

    number: int  # among the parts
    hold: bool  # whether the rows stay in memory; else every access to `data` reads them again
    memory: dict[str, Any]  # results that a fit stores, by name

    @property
    def data(self) -> RankingData:
        """The rows, in grouped order."""

    def columns(self, chosen: Sequence[int], names: Sequence[str] | None) -> Any:
        """Return columns (n, k) of the rows, given as positions in `names`."""


class RowSource(ABC):
    """Base class of rows in parts of whole queries, for rows that are not in one `RankingData`.

    A subclass implements `statistics` and calls `describe()` at the end of its `__init__`, which sets the attributes
    below. If parts can lose their memory of a fit, it also overrides `mark`, `note`, `rewind` and `retried`.

    Attributes
    ----------
    n_rows, n_queries, n_features : int
    feature_names : list of str or None
    category_names : dict of column name to list of str, or None
    query_ids : array (m,)
        Names of the queries, part by part.
    query_weight : float64 array (m,) or None
    """

    n_features: int
    n_rows: int
    n_queries: int
    feature_names: list[str] | None
    category_names: dict[str, list[str]] | None
    query_ids: np.ndarray
    query_weight: np.ndarray | None
    sample_weight: None = None  # rows of parts are weighed where they live
    part_jobs: int | None = 1  # threads of a statistic in one part; None means 1
    alone: Part | None = None  # the part, if the rows of a fit are one part in memory

    @abstractmethod
    def statistics(self, function: Callable[..., Any], *state: Any, merge: Merge = add, keep: bool = False) -> Any:
        """Return `function(part, *state)` of every part, merged in the order of the parts.

        Parameters
        ----------
        function : function of a module
        *state
            Further arguments, which the function must not change.
        merge : function of two answers
            `add`, `beside` (concatenates lists) or `largest` of `truerank.data.rows`, or another function.
        keep : bool
            Whether the function changes `part.memory`.
        """

    @contextmanager
    def fitting(self, ranker: Scorer, valid: RowSource | None) -> Iterator[None]:
        """Run a fit, at whose start the memory of each part is empty."""
        for one in (self, valid):
            if one is not None:
                one.statistics(_forget, keep=True)
        yield

    def mark(self) -> int:
        """Return the current position in the kept statistics, for `rewind`."""
        return 0

    def rewind(self, mark: int) -> None:  # noqa: B027 - a place that loses no part has nothing to do
        """Declare that statistics kept since `mark` need not be repeated if a part is lost."""

    def note(self, function: Callable[..., Any], *state: Any) -> None:  # noqa: B027
        """Register a statistic that replaces the finished statistics."""

    def remembered(self, what: str, work: Callable[[], Any]) -> Any:
        """Return `work()`, whose statistics are needed only for its result."""
        return work()

    def retried(self, work: Callable[[], Any]) -> Any:
        """Return `work()`, and repeat it from its start if a part is lost during the work."""
        return work()

    def together(self, program: Callable[..., Any], *arguments: Any) -> Any:
        """Return `program(communicator, workers, parts, *arguments)` for all parts, in this process."""
        alone = SimpleNamespace(rank=0, size=1, tell=None, hear=None)
        with Workers(None) as workers:
            return program(alone, workers, self.statistics(_itself, merge=beside), *arguments)

    def inside(self, outer: RowSource, name: str) -> Self:
        """Return the rows for a fit inside a fit to `outer`, here without change."""
        return self

    def in_memory(self, user: str) -> NoReturn:
        """Raise an error, because `user` requires rows in memory."""
        raise InvalidInputError(
            f"{user} requires rows in memory, but the rows are in parts. Pass `data.gather()` if they fit in memory",
            code="on-a-cluster",
        )

    def in_parts(self, n_jobs: int | None) -> RowSource:
        """Return the rows as the parts of a fit; `n_jobs` is the number of threads for rows in memory."""
        return self

    def beside(self, rows: RankingData) -> RowSource:
        """Return rows of this process as a part in the same place."""
        return HeldRows([rows])

    def take_queries(self, chosen: Any) -> Any:
        """Return the data of some queries (bool (m,), or numbers), and copy their rows to this process."""
        return self.sample(chosen)

    def as_grouped(self) -> Self:
        """Return the rows, whose order already is the grouped order."""
        return self

    def describe(self) -> Description:
        """Return the properties of all parts together."""
        return self._take(self.each(RankingData.describe))

    def _take(self, shapes: list[Description]) -> Description:
        widths = [shape.n_features for shape in shapes]
        if len(set(widths)) > 1:
            other = next(i for i, width in enumerate(widths) if width != widths[0])
            raise InvalidInputError(
                f"partition {other} has {widths[other]} features and partition 0 has {widths[0]}. All partitions must "
                "have the same number. For LETOR files that lack the last features, pass n_features"
            )
        for i, shape in enumerate(shapes):
            if shape.categories != shapes[0].categories:
                raise InvalidInputError(
                    f"partition {i} and partition 0 have different numbers for the texts of a column. List all texts: "
                    'categories={"column": ["a", "b"]}',
                    code="different-categories",
                )
        self.n_features, self.feature_names = widths[0], shapes[0].names
        self.category_names = shapes[0].categories
        self.rows_by_part = np.array([shape.n_rows for shape in shapes], dtype=np.int64)
        self.first_rows = offsets_of(self.rows_by_part)
        self.n_rows = int(self.first_rows[-1])
        self.queries_by_part = np.array([len(shape.queries) for shape in shapes], dtype=np.int64)
        queries = [query for shape in shapes for query in shape.queries]
        self.query_ids, self.n_queries = np.array(queries), len(queries)
        weights = [shape.query_weight for shape in shapes]
        self.query_weight = None
        if any(weight is not None for weight in weights):
            filled = (np.ones(n) if weight is None else weight for n, weight in zip(self.queries_by_part, weights))
            self.query_weight = np.concatenate(list(filled))
        kinds = {shape.inputs for shape in shapes if shape.n_rows}
        inputs = "decimal" if kinds <= {"decimal"} else "close" if "close" in kinds else "float64"
        if inputs != "decimal" and all(shape.float32 for shape in shapes):
            inputs = "float32"
        heaviest = [shape.largest_weight for shape in shapes if shape.largest_weight is not None]
        merged: dict[str, Any] = {name: getattr(shapes[0], name) for name in ("n_features", "names", "categories")}
        for rule, names in ((all, ("judged", "dense", "finite", "float32")), (any, ("missing", "weighs_rows"))):
            merged |= {name: rule(getattr(shape, name) for shape in shapes) for name in names}
        self.description = Description(
            n_rows=self.n_rows,
            queries=queries,
            query_weight=self.query_weight,
            inputs=inputs,
            close_columns=sorted({column for shape in shapes for column in shape.close_columns}),
            largest_grade=max(shape.largest_grade for shape in shapes),
            largest_weight=max(heaviest, default=None),
            **merged,
        )
        return self.description

    @property
    def weight_by_query(self) -> np.ndarray:
        """The weight of each query, float64 (m,), by default 1."""
        return np.ones(self.n_queries) if self.query_weight is None else self.query_weight

    def judgements(self) -> Judgements:
        """Return grades and offsets of all parts: 16 bytes for each row."""
        if not self.description.judged:
            raise InvalidInputError(
                "the data have no grades (y), which measures and training require",
                remedies=[Remedy("to RankingData", y=...)],
            )
        return self.without_features().judgements()

    @property
    def query_index(self) -> np.ndarray:
        """Number of each row's query, int64 (n,), partition by partition."""
        return self.without_features().query_index

    def without_features(self) -> RankingData:
        """Return grades, queries and weights of all partitions in one `RankingData` without X."""
        return RankingData.concatenate(self.each(RankingData.without_features))

    def sample(self, queries: np.ndarray) -> RankingData:
        """Return the rows of the queries with these numbers, in this process and in the order of the parts."""
        chosen = np.zeros(self.n_queries, dtype=bool)
        chosen[queries] = True
        wanted = np.split(chosen, np.cumsum(self.queries_by_part)[:-1])
        return RankingData.concatenate(self.statistics(_taken, wanted, merge=beside))

    def gather(self) -> RankingData:
        """Return all rows in one `RankingData` in this process."""
        return RankingData.concatenate(self.each(RankingData.as_grouped))

    @property
    def X(self) -> RowsElsewhere:
        """A stand-in for the matrix of features, with its shape and linear scores."""
        return RowsElsewhere(self)

    def each(self, function: Callable[..., Any], *state: Any) -> list[Any]:
        """Return a list with `function(rows, *state)` for the `RankingData` of each part."""
        return list(self.statistics(_each, function, state, merge=beside))

    def ranked(self, model: Scorer) -> list[tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]]:
        """Return for each part query ids, offsets, document ids or None, and scores in grouped order."""
        return self.each(_ranked, model)

    def scores(self, model: Scorer) -> np.ndarray:
        """Return scores (n,) of all rows by a fitted ranker, in grouped order, part by part."""
        return np.concatenate(self.each(RankingData.scores, model))

    def restore(self, values: np.ndarray) -> list[np.ndarray]:
        """Return values (n,) in grouped order as a list by partition, in the order of its rows, as `predict` does."""
        parts = zip(np.split(values, self.first_rows[1:-1]), self.each(attrgetter("order")))
        return [own if order is None else at_places(own, order) for own, order in parts]

    def grouped_scores(self, scores: Any) -> np.ndarray:
        """Return scores (n,) in grouped order, from the list that `predict` returned."""
        if len(scores) != self.n_parts:
            raise InvalidInputError(
                f"scores must be a list of {self.n_parts} arrays, one for each partition, as predict returns them, got "
                f"{type(scores).__name__} of length {len(scores)}",
                argument="scores",
            )
        grouped = []
        for number, (values, order) in enumerate(zip(scores, self.each(attrgetter("order")))):
            values, n = np.asarray(values, dtype=np.float64), int(self.rows_by_part[number])
            if values.shape != (n,):
                raise InvalidInputError(
                    f"partition {number} has {n} rows, but its scores have shape {values.shape}. "
                    "Pass the scores as predict returns them"
                )
            grouped.append(values if order is None else values[order])
        return np.concatenate(grouped)

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.rows_by_part)


Rows = RankingData | RowSource
"""Rows grouped by query, in memory or in parts."""


class HeldRows(RowSource):
    """Parts in this process."""

    def __init__(self, parts: Sequence[RankingData]) -> None:
        self.parts = [HeldPart(rows, number) for number, rows in enumerate(parts)]
        self.describe()

    def statistics(self, function: Callable[..., Any], *state: Any, merge: Merge = add, keep: bool = False) -> Any:
        return reduce(merge, [function(part, *state) for part in self.parts])


class OnePart(RowSource):
    """The rows of a `RankingData` as the only part of a fit, which uses `n_jobs` threads; nothing is copied."""

    def __init__(self, data: RankingData, n_jobs: int | None) -> None:
        self.alone, self.part_jobs = HeldPart(data), n_jobs
        self.n_rows, self.n_queries, self.n_features = data.n_rows, data.n_queries, data.n_features
        self.feature_names, self.category_names = data.feature_names, data.category_names
        self.query_ids, self.query_weight = data.query_ids, data.query_weight
        self.rows_by_part, self.queries_by_part = np.array([data.n_rows]), np.array([data.n_queries])
        self.first_rows = offsets_of(self.rows_by_part)

    def statistics(self, function: Callable[..., Any], *state: Any, merge: Merge = add, keep: bool = False) -> Any:
        return function(self.alone, *state)


class RowsElsewhere:
    """A matrix of rows in another place, with the shape and linear scores that a validation curve needs."""

    def __init__(self, data: RowSource) -> None:
        self._data, self.shape = data, (data.n_rows, data.n_features)

    def linear_scores(self, coef: np.ndarray) -> np.ndarray:
        """Return `linear_scores` of all rows (n,)."""
        return np.concatenate(self._data.each(_linear_scores, coef))


def elsewhere(X: Any) -> Any:
    """Return rows in another place as a `RowSource`, or Dask rows as `DaskBlocks`; None for all other objects."""
    if isinstance(X, RowSource):
        return X
    return resolve("truerank.cluster.data:DaskBlocks")(X) if is_dask(X) else None


def as_parts(X: object) -> RowSource | None:
    """Return X if it is a `RowSource`, else None."""
    return X if isinstance(X, RowSource) else None


def rows_elsewhere(X: Any, y: Any = None, qid: Any = None) -> RowSource | None:
    """Return rows in another place as a `RowSource` with its own y and qid, or None for rows in memory."""
    there = elsewhere(X)
    return there if there is None or isinstance(there, RowSource) else there.source(y, qid)


def validation_rows(data: RowSource, eval_set: Any) -> RowSource:
    """Return the validation queries of a fit to `data`, moved to the place of `data`."""
    if isinstance(eval_set, tuple | list) and len(eval_set) == 3:
        there = rows_elsewhere(*eval_set)
        eval_set = RankingData(*eval_set) if there is None else there
    if isinstance(eval_set, RankingData):
        eval_set = data.beside(eval_set)
    if not isinstance(eval_set, RowSource):
        raise InvalidInputError(f"eval_set must be (X, y, qid) or ranking data, got {type(eval_set).__name__}")
    return eval_set


# Statistics of a part.


def ask(part: Part, name: str, method: str, *arguments: Any) -> Any:
    """Return the result of a method of an object that a fit keeps in the memory of a part."""
    return getattr(part.memory[name], method)(*arguments)


def _forget(part: Part) -> None:
    part.memory.clear()


def _itself(part: Part) -> list[Part]:
    return [part]


def _taken(part: Part, wanted: list[np.ndarray]) -> list[RankingData]:
    return [part.data.take_queries(wanted[part.number])]


def _each(part: Part, function: Callable[..., Any], state: tuple[Any, ...]) -> list[Any]:
    return [function(part.data, *state)]


def _ranked(rows: RankingData, model: Scorer) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]:
    return rows.query_ids, rows.offsets, rows.doc_ids, rows.scores(model)


def _linear_scores(rows: RankingData, coef: np.ndarray) -> np.ndarray:
    from truerank.matrices.rows import linear_scores

    return linear_scores(rows.X, np.array(coef))
