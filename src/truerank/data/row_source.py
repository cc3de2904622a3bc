"""Where rows are: the protocol that learners, evaluation and calibration ask, and its base for rows in parts.

`RankingData` answers of its own rows. A `RowSource` asks its parts, wherever they are, and merges what they say: a new
place for rows is one class with `statistics`, and everything of truerank takes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from truerank.core.checks import is_dask
from truerank.core.errors import InvalidInputError
from truerank.core.names import resolve
from truerank.core.threads import Workers
from truerank.core.types import Scorer
from truerank.data.grouping import at_places, offsets_of
from truerank.data.ranking_data import Judgements, RankingData
from truerank.data.rows import Description, HeldPart, Merge, add, beside


class Part(Protocol):
    """Some whole queries where they live, and what a fit remembers of them between two statistics."""

    number: int
    """Its place among the parts."""
    hold: bool
    """Whether the rows stay in memory; else every look at `data` reads them anew."""
    memory: dict[str, Any]
    """What a fit derives from the rows, by name."""

    @property
    def data(self) -> RankingData:
        """The rows, in grouped order."""
        ...

    def columns(self, chosen: Sequence[int], names: Sequence[str] | None) -> Any:
        """Some columns (n, k) of the rows by number, of those with these `names`."""
        ...


@runtime_checkable
class Rows(Protocol):
    """Rows grouped by query."""

    query_ids: np.ndarray
    query_weight: np.ndarray | None

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        ...

    @property
    def n_queries(self) -> int:
        """Number of queries m."""
        ...

    @property
    def n_features(self) -> int:
        """Number of columns p."""
        ...

    def statistics(self, function: Callable[..., Any], *state: Any, merge: Merge = ..., keep: bool = False) -> Any:
        """`function(part, *state)` of every part, merged; with `keep` it changes what the part remembers."""
        ...

    def scores(self, model: Any) -> np.ndarray:
        """Scores (n,), in grouped order, by a fitted ranker."""
        ...

    def judgements(self) -> Judgements:
        """Grades and offsets of all rows."""
        ...

    def sample(self, queries: np.ndarray) -> RankingData:
        """The rows of some queries, by number, in this process."""
        ...

    def describe(self) -> Description:
        """What is known of the rows."""
        ...


class RowSource(ABC):
    """Rows in parts of whole queries, which `statistics` asks; the base of every place of rows but this process.

    A subclass implements `statistics`, sets whatever that needs, and calls `describe()` at the end of its `__init__`,
    which sets the attributes below. What parts remember of a fit they may lose: then the subclass brings them back to
    where they were (`mark`, `note`, `rewind` and `retried` say how far that is; here they do nothing).

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

    @abstractmethod
    def statistics(self, function: Callable[..., Any], *state: Any, merge: Merge = add, keep: bool = False) -> Any:
        """`function(part, *state)` of every part, merged in the order of the parts.

        Parameters
        ----------
        function : function of a module
            What a part adds; it may read and change `part.memory`.
        *state
            The same for all parts. A function changes nothing of it.
        merge : function of two answers
            `add`, `beside` (lists one after the other) or `largest` of `truerank.data.rows`, or one of your own.
        keep : bool
            Whether the function changes what the part remembers.
        """

    # What a fit of several statistics tells the place of its rows.

    @contextmanager
    def fitting(self, ranker: Scorer, valid: RowSource | None) -> Iterator[None]:
        """Around a fit: parts begin with an empty memory."""
        for one in (self, valid):
            if one is not None:
                one.statistics(_forget, keep=True)
        yield

    def mark(self) -> int:
        """A place in what has been kept so far, for `rewind`."""
        return 0

    def rewind(self, mark: int) -> None:  # noqa: B027 - a place that loses no part has nothing to do
        """What was kept since `mark` needs not be done again where a part is lost."""

    def note(self, function: Callable[..., Any], *state: Any) -> None:  # noqa: B027
        """A statistic that stands for kept ones which have been done."""

    def remembered(self, what: str, work: Callable[[], Any]) -> Any:
        """`work()`, several statistics whose result alone is of interest."""
        return work()

    def retried(self, work: Callable[[], Any]) -> Any:
        """`work()`, from its beginning once more where a part was lost in it."""
        return work()

    def together(self, program: Callable[..., Any], *arguments: Any) -> Any:
        """What `program(communicator, workers, parts, *arguments)` returns: here of all parts, in this process."""
        with Workers(None) as workers:
            return program(Alone(), workers, self.statistics(_itself, merge=beside), *arguments)

    def inside(self, outer: RowSource, name: str) -> Self:
        """The same rows for a fit inside one to `outer`."""
        return self

    def beside(self, rows: RankingData) -> RowSource:
        """Rows of this process as a part in the same place."""
        return HeldRows([rows])

    def take_queries(self, chosen: Any) -> Any:
        """The data of some queries (bool (m,), or their numbers): here their rows come to this process."""
        return self.sample(chosen)

    def as_grouped(self) -> Self:
        """The same rows, whose grouped order counts as the caller's."""
        return self

    # What is known of the rows.

    def describe(self) -> Description:
        """Ask all parts what they hold."""
        return self._take(self.statistics(_describe, merge=beside))

    def _take(self, shapes: list[Description]) -> Description:
        widths = [shape.n_features for shape in shapes]
        if len(set(widths)) > 1:
            other = next(i for i, width in enumerate(widths) if width != widths[0])
            raise InvalidInputError(
                f"partition {other} has {widths[other]} features and partition 0 has {widths[0]}; all must have the "
                "same (LETOR files that lack the last features need n_features)"
            )
        for i, shape in enumerate(shapes):
            if shape.categories != shapes[0].categories:
                raise InvalidInputError(
                    f"partition {i} numbers the texts of a column otherwise than partition 0; name them all: "
                    'categories={"column": ["a", "b"]}'
                )
        self.n_features, self.feature_names = widths[0], shapes[0].names
        self.category_names = shapes[0].categories
        counts = [shape.n_rows for shape in shapes]
        self.rows_by_part = np.array(counts, dtype=np.int64)
        self.first_rows = offsets_of(self.rows_by_part)
        self.queries_by_part = np.array([len(shape.queries) for shape in shapes], dtype=np.int64)
        queries = [query for shape in shapes for query in shape.queries]
        self.query_ids, self.n_rows, self.n_queries = np.array(queries), sum(counts), len(queries)
        weights = [shape.query_weight for shape in shapes]
        self.query_weight = None
        if any(weight is not None for weight in weights):
            filled = [np.ones(n) if weight is None else weight for n, weight in zip(self.queries_by_part, weights)]
            self.query_weight = np.concatenate(filled)
        kinds = {shape.inputs for shape in shapes if shape.n_rows}
        inputs = "decimal" if kinds <= {"decimal"} else "close" if "close" in kinds else "float64"
        if inputs != "decimal" and all(shape.float32 for shape in shapes):
            inputs = "float32"
        self.description = Description(
            n_rows=self.n_rows,
            queries=queries,
            n_features=self.n_features,
            names=self.feature_names,
            categories=self.category_names,
            query_weight=self.query_weight,
            judged=all(shape.judged for shape in shapes),
            dense=all(shape.dense for shape in shapes),
            finite=all(shape.finite for shape in shapes),
            inputs=inputs,
            float32=all(shape.float32 for shape in shapes),
            missing=any(shape.missing for shape in shapes),
            weighs_rows=any(shape.weighs_rows for shape in shapes),
            largest_grade=max(shape.largest_grade for shape in shapes),
            largest_weight=max(
                (shape.largest_weight for shape in shapes if shape.largest_weight is not None), default=None
            ),
        )
        return self.description

    @property
    def weight_by_query(self) -> np.ndarray:
        """Weight of each query, float64 (m,): 1 where none was given."""
        return np.ones(self.n_queries) if self.query_weight is None else self.query_weight

    def judgements(self) -> Judgements:
        """Grades and offsets of all partitions, gathered here: 16 bytes a row; X stays where it is."""
        if not self.description.judged:
            raise InvalidInputError("these data have no grades (y); measures and training need them")
        return self.without_features().judgements()

    @property
    def query_index(self) -> np.ndarray:
        """Number of each row's query, int64 (n,), partition by partition; gathered here."""
        return self.without_features().query_index

    def without_features(self) -> RankingData:
        """Grades, queries and weights of all partitions in one `RankingData` on the client, without X."""
        return RankingData.concatenate(self.statistics(_light, merge=beside))

    def sample(self, queries: np.ndarray) -> RankingData:
        """The rows of some queries, by number, in this process; queries in the order of the parts."""
        chosen = np.zeros(self.n_queries, dtype=bool)
        chosen[queries] = True
        wanted = np.split(chosen, np.cumsum(self.queries_by_part)[:-1])
        return RankingData.concatenate(self.statistics(_taken, wanted, merge=beside))

    def gather(self) -> RankingData:
        """All rows in one `RankingData` on the client: for data that fit there."""
        return RankingData.concatenate(self.statistics(_rows, merge=beside))

    @property
    def X(self) -> RowsElsewhere:
        """A stand-in for the matrix of features, which knows its shape and linear scores (gathered here)."""
        return RowsElsewhere(self)

    # Scores.

    def each(self, function: Callable[..., Any], *state: Any) -> list[np.ndarray]:
        """`function(rows, *state)` of the rows of each part (list of arrays (n_i,)), in the order of its rows."""
        return list(self.statistics(_each, function, state, merge=beside))

    def ranked(self, model: Scorer) -> list[tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]]:
        """Of each part: names and offsets of its queries, document ids or None, and scores in grouped order."""
        return list(self.statistics(_ranked, model, merge=beside))

    def scores(self, model: Any) -> np.ndarray:
        """Scores (n,) by a fitted ranker of all rows in grouped order, part by part."""
        return np.concatenate(self.statistics(_scores, model, merge=beside))

    def restore(self, values: np.ndarray) -> list[np.ndarray]:
        """Values (n,) in grouped order as `predict` gives scores: of each partition, in the order of its rows."""
        parts = zip(np.split(values, self.first_rows[1:-1]), self.statistics(_orders, merge=beside))
        return [own if order is None else at_places(own, order) for own, order in parts]

    def grouped_scores(self, scores: Any) -> np.ndarray:
        """Scores (n,) of all rows in grouped order, partition by partition: of a ranker, or as `predict` gave them."""
        if hasattr(scores, "predict"):
            return self.scores(scores)
        if len(scores) != self.n_parts:
            raise InvalidInputError(
                f"scores must be a ranker or a list of {self.n_parts} arrays, one a partition, as predict gives "
                f"them; got {type(scores).__name__} of {len(scores)}"
            )
        orders = self.statistics(_orders, merge=beside)
        grouped = []
        for number, (values, order, n) in enumerate(zip(scores, orders, self.rows_by_part.tolist())):
            values = np.asarray(values, dtype=np.float64)
            if values.shape != (n,):
                raise InvalidInputError(f"partition {number} has {n} rows, its scores have the shape {values.shape}")
            grouped.append(values if order is None else values[order])
        return np.concatenate(grouped)

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.rows_by_part)


class HeldRows(RowSource):
    """Parts that are in this process."""

    def __init__(self, parts: Sequence[RankingData]) -> None:
        self.parts = [HeldPart(rows, number) for number, rows in enumerate(parts)]
        self.describe()

    def statistics(self, function: Callable[..., Any], *state: Any, merge: Merge = add, keep: bool = False) -> Any:
        """The answers merged from the first part to the last."""
        return reduce(merge, [function(part, *state) for part in self.parts])


class Alone:
    """The one member of a program that is run by all who hold rows: there is nobody to tell."""

    rank, size = 0, 1

    def tell(self, other: int, value: object) -> None:
        """There is no other."""
        raise AssertionError(f"there is no member {other}")

    def hear(self, other: int) -> Any:
        """There is no other."""
        raise AssertionError(f"there is no member {other}")


class RowsElsewhere:
    """Rows that live elsewhere, as far as a validation curve asks: a shape, and linear scores."""

    def __init__(self, data: RowSource) -> None:
        self._data, self.shape = data, (data.n_rows, data.n_features)

    def linear_scores(self, coef: np.ndarray) -> np.ndarray:
        """`linear_scores` of all rows (n,), gathered here."""
        return np.concatenate(self._data.statistics(_linear_scores, coef, merge=beside))


@runtime_checkable
class Blocks(Protocol):
    """A collection of another library whose values are elsewhere, in blocks of rows."""

    def source(self, y: object, qid: object) -> RowSource:
        """Its rows with their grades and queries."""
        ...

    def each(self, function: Callable[..., Any], *state: Any) -> Any:
        """`function(rows, *state)` of each block, as a collection of that library."""
        ...

    def queries(self, numbered: Callable[[Any], np.ndarray]) -> Any:
        """Query of each row, where the collection has sizes of queries: `numbered(sizes)` numbers those of a block."""
        ...


COLLECTIONS = {"dask": "truerank.cluster.dask_collections:DaskBlocks"}
"""Library -> the `Blocks` of its collections, imported when one is met."""


def elsewhere(X: Any) -> RowSource | Blocks | None:
    """Where rows are that are not here: a `RowSource` itself, or Dask's collections in blocks; None of all others."""
    if isinstance(X, RowSource):
        return X
    return resolve(COLLECTIONS["dask"])(X) if is_dask(X) else None


def source_of(X: Any, y: Any, qid: Any) -> tuple[Any, Any, Any]:
    """Rows elsewhere as a `RowSource`, which has y and qid of its own; all others as they are."""
    there = elsewhere(X)
    if there is None or isinstance(there, RowSource):
        return X, y, qid
    return there.source(y, qid), None, None


# Statistics of a part.


def _forget(part: Part) -> None:
    part.memory.clear()


def _itself(part: Part) -> list[Part]:
    return [part]


def _describe(part: Part) -> list[Description]:
    return [Description.of(part.data)]


def _light(part: Part) -> list[RankingData]:
    return [part.data.without_features()]


def _rows(part: Part) -> list[RankingData]:
    return [part.data]


def _taken(part: Part, wanted: list[np.ndarray]) -> list[RankingData]:
    return [part.data.take_queries(wanted[part.number])]


def _each(part: Part, function: Callable[..., Any], state: tuple[Any, ...]) -> list[np.ndarray]:
    return [np.asarray(function(part.data, *state))]


def _scores(part: Part, model: Scorer) -> list[np.ndarray]:
    return [part.data.scores(model)]


def _ranked(part: Part, model: Scorer) -> list[tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]]:
    data = part.data
    return [(data.query_ids, data.offsets, data.doc_ids, data.scores(model))]


def _orders(part: Part) -> list[np.ndarray | None]:
    return [part.data.order]


def _linear_scores(part: Part, coef: np.ndarray) -> list[np.ndarray]:
    from truerank.matrices.rows import linear_scores

    return [linear_scores(part.data.X, np.array(coef))]
