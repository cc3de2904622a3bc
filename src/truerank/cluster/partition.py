"""Partitions of whole queries on a worker: the source, the rows, and the data that a fit derives from them."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from truerank.core.errors import DataFileError, InvalidInputError
from truerank.data.columns import Columns, chosen_columns, names_of, take_columns
from truerank.data.ranking_data import RankingData


class Source(Protocol):
    """The source of a partition's rows. Every read returns the same rows."""

    def read(self) -> RankingData:
        """The rows."""
        ...

    def narrowed(self, features: Sequence[str]) -> Source | None:
        """Return a source of only these columns; None if this would not reduce the reading."""
        ...


class Whole:
    """A source that can only be read as a whole."""

    def narrowed(self, features: Sequence[str]) -> None:
        """Return None: the source cannot be narrowed."""


@dataclass(frozen=True)
class LetorSource(Whole):
    """A LETOR file, the options of `read_letor`, and the columns to use."""

    path: str
    options: dict[str, Any] = field(default_factory=dict)
    columns: Columns = field(default_factory=Columns)

    def read(self) -> RankingData:
        """The file's rows."""
        from truerank.io.letor.read import read_letor

        return self.columns.of(read_letor(self.path, **self.options))


@dataclass(frozen=True)
class TableSource(Whole):
    """A table other than a Parquet file, read with the options of `read_table`."""

    path: str
    options: dict[str, Any] = field(default_factory=dict)

    def read(self) -> RankingData:
        """The file's rows."""
        from truerank.io.tables import read_table

        try:
            return read_table(self.path, **self.options)
        except InvalidInputError as error:
            raise InvalidInputError(f"{self.path}: {error}") from error


@dataclass(frozen=True)
class RowGroupSource:
    """Some consecutive row groups of a Parquet file, read with the options of `read_table`."""

    path: str
    first: int
    last: int
    options: dict[str, Any] = field(default_factory=dict)

    narrow: tuple[str, ...] | None = None  # the only columns of features to be read

    def narrowed(self, features: Sequence[str]) -> RowGroupSource | None:
        """The same rows with these columns alone."""
        if isinstance(self.options.get("categories") or {}, Mapping):
            return replace(self, narrow=tuple(features))
        return None  # the columns that the patterns match might not be read

    def read(self) -> RankingData:
        """The rows of the groups first … last - 1."""
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        from truerank.io.tables import DOCUMENT, GRADE, QUERY, read_table

        options, columns = self.options, None
        if self.narrow is not None:
            options = {**options, "features": list(self.narrow), "exclude": None}
            others = (options.get("query", QUERY), options.get("grade", GRADE), options.get("document", DOCUMENT))
            columns = [*self.narrow, *others]  # missing columns are left out
        try:
            # Not mapped: the pages of a mapped file count as the worker's own memory.
            with ParquetFile(self.path) as file:
                table = file.read_row_groups(range(self.first, self.last), columns=columns, use_threads=False)
            table.validate(full=True)  # as `read_table` does with a file
            return read_table(table, **options)
        except ArrowException as error:
            raise DataFileError(f"not a Parquet file that can be read: {error}", self.path) from error
        except InvalidInputError as error:
            raise DataFileError(f"row groups {self.first} to {self.last - 1}: {error}", self.path) from error


def row_groups(path: str, rows: int, options: dict[str, Any]) -> list[Source]:
    """Split a Parquet file into sources of whole row groups with about `rows` rows each. Empty files give none."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
    except (ArrowException, OSError) as error:
        raise DataFileError(f"not a Parquet file that can be read: {error}", path) from error
    sources: list[Source] = []
    first = 0
    for i in range(len(sizes)):
        if i + 1 == len(sizes) or sum(sizes[first : i + 2]) > rows:
            if any(sizes[first : i + 1]):  # Spark and Dask write parts without rows
                sources.append(RowGroupSource(path, first, i + 1, options))
            first = i + 1
    return sources


@dataclass(frozen=True)
class FrameSource(Whole):
    """A partition of a Dask data frame, as tasks. The worker that holds the partition runs the tasks."""

    frame: Any
    options: dict[str, Any] = field(default_factory=dict)

    def read(self) -> RankingData:
        """Return the rows. The tasks run in this thread, because a worker's thread cannot wait for its scheduler."""
        from truerank.io.tables import read_table

        return read_table(self.frame.compute(scheduler="synchronous"), **self.options)


@dataclass(frozen=True)
class GivenSource(Whole):
    """Rows in memory, which are small enough to be sent."""

    data: RankingData

    def read(self) -> RankingData:
        """The rows."""
        return self.data


@dataclass(frozen=True)
class JoinedSource:
    """A source without queries of other partitions, and with the missing rows of its own queries."""

    own: Source
    foreign: frozenset[Any]  # queries of `own` whose home is another partition
    others: tuple[tuple[Source, frozenset[Any]], ...]  # where the rest of this partition's queries is

    def narrowed(self, features: Sequence[str]) -> JoinedSource | None:
        """The same rows with these columns alone."""
        own = self.own.narrowed(features)
        others = []
        for source, queries in self.others:
            narrow = source.narrowed(features)
            if narrow is not None:
                others.append((narrow, queries))
        if own is None or len(others) < len(self.others):
            return None
        return replace(self, own=own, others=tuple(others))

    def read(self) -> RankingData:
        """The rows, queries in order of first appearance."""
        parts = [_of_queries(self.own.read(), self.foreign, False)]
        parts += [_of_queries(source.read(), queries, True) for source, queries in self.others]
        whole = RankingData.concatenate(parts)
        joined = RankingData(
            whole.X, whole.y, whole.qid, doc_ids=whole.doc_ids, comments=whole.comments,
            feature_names=whole.feature_names,
        )  # fmt: skip
        joined.category_names = whole.category_names
        return joined


@dataclass(frozen=True)
class OrderedSource:
    """A source with its columns in the order of the first partition."""

    own: Source
    names: tuple[str, ...]

    def narrowed(self, features: Sequence[str]) -> Source | None:
        """The same rows with these columns alone."""
        return self.own.narrowed(features)

    def read(self) -> RankingData:
        """The rows."""
        data = self.own.read()
        return take_columns(data, chosen_columns(names_of(data), self.names))


@dataclass(frozen=True)
class QueriesSource:
    """Some queries of a source, by their numbers in it, ascending."""

    whole: Source
    queries: np.ndarray

    def narrowed(self, features: Sequence[str]) -> QueriesSource | None:
        """The same rows with these columns alone."""
        whole = self.whole.narrowed(features)
        return None if whole is None else replace(self, whole=whole)

    def read(self) -> RankingData:
        """The rows of these queries."""
        return self.whole.read().take_queries(self.queries)


def _of_queries(data: RankingData, queries: frozenset[Any], inside: bool) -> RankingData:
    """The rows of these queries, or of all others."""
    return data.take_queries(np.array([(query in queries) is inside for query in data.query_ids.tolist()], dtype=bool))


class Partition:
    """One partition on its worker.

    Unless its rows are held (`hold`), every pass reads the source again. `memory` has what a fit has derived from the
    rows; it is lost with the worker, and made again from the source and the journal.
    """

    def __init__(self, number: int, source: Source, hold: bool = True) -> None:
        self.number, self.source, self.hold = number, source, hold
        self.memory: dict[str, Any] = {}
        self.last: tuple[int, Any] = (-1, None)
        self._data: RankingData | None = None

    def columns(self, chosen: Sequence[int], names: Sequence[str] | None) -> Any:
        """Return some columns (n, k) by number; if the rows are not held, read only these if possible.

        `names` are those of all columns.
        """
        narrow = None
        if not self.hold and names is not None:
            narrow = self.source.narrowed([names[k] for k in chosen])
        return self.data.X[:, chosen] if narrow is None else self._read(narrow).X

    @property
    def data(self) -> RankingData:
        """The rows, in grouped order."""
        if self._data is not None:
            return self._data
        data = self._read(self.source)
        if self.hold:
            self._data = data
        return data

    def _read(self, source: Source) -> RankingData:
        try:
            return source.read()
        except OSError as error:
            raise DataFileError(f"partition {self.number}: {error}") from error


def expand(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return the files of patterns, each pattern's by name; a pattern without a file is an InvalidInputError."""
    patterns = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files: list[str] = []
    for pattern in [os.fspath(one) for one in patterns]:
        found = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern))
        if not found:
            raise InvalidInputError(f"{pattern}: no such file; expected a file or a pattern such as 'parts/*.parquet'")
        files += [os.path.abspath(name) for name in found]
    return files
