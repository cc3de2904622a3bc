"""Read partitions of whole queries on a worker, and keep their source, rows and the data that a fit derives.

A source is a function that returns the rows of a partition, the same at every call. With `features` it may leave out
the columns of other names. Workers receive it as a `functools.partial` of one of the functions here.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from truerank.core.errors import DataFileError, InvalidInputError
from truerank.data.columns import Columns, chosen_columns, names_of, take_columns
from truerank.data.ranking_data import RankingData

Source = Callable[..., RankingData]
Names = Sequence[str] | None


def read_letor_file(path: str, options: dict[str, Any], columns: Columns, features: Names = None) -> RankingData:
    """Return the rows of a LETOR file, read with the options of `read_letor`."""
    from truerank.io.letor.read import read_letor

    return columns.of(read_letor(path, **options))


def read_table_file(path: str, options: dict[str, Any], features: Names = None) -> RankingData:
    """Return the rows of a table other than a Parquet file, read with the options of `read_table`."""
    from truerank.io.tables import read_table

    try:
        return read_table(path, **options)
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from error


def read_row_groups(path: str, first: int, last: int, options: dict[str, Any], features: Names = None) -> RankingData:
    """Return the rows of the groups first … last - 1 of a Parquet file, read with the options of `read_table`."""
    from pyarrow import Table

    from truerank.io.columnar import open_columnar
    from truerank.io.tables import DOCUMENT, GRADE, QUERY, read_table

    columns = None
    if features is not None and isinstance(options.get("categories") or {}, Mapping):  # patterns match any column
        options = {**options, "features": list(features), "exclude": None}
        others = [
            options.get(role) or name for role, name in (("query", QUERY), ("grade", GRADE), ("document", DOCUMENT))
        ]
        others += (options.get("defaults") or {}).values()
        columns = [*features, *others]  # missing columns are left out
    try:
        with open_columnar(path, "parquet", columns=columns, groups=range(first, last)) as (schema, batches):
            table = Table.from_batches(list(batches), schema)
        return read_table(table, **options)
    except InvalidInputError as error:
        raise DataFileError(f"row groups {first} to {last - 1}: {error}", path) from error


def row_groups(path: str, rows: int, options: dict[str, Any]) -> list[Source]:
    """Split a Parquet file into sources of whole row groups with about `rows` rows each, none for an empty file."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
    except (ArrowException, OSError) as error:
        raise DataFileError(f"the Parquet file cannot be read: {error}", path, code="unreadable") from error
    sources: list[Source] = []
    first = 0
    for i in range(len(sizes)):
        if i + 1 == len(sizes) or sum(sizes[first : i + 2]) > rows:
            if any(sizes[first : i + 1]):  # Spark and Dask write parts without rows
                sources.append(partial(read_row_groups, path, first, i + 1, options))
            first = i + 1
    return sources


def run_tasks(tasks: Any, features: Names = None) -> RankingData:
    """Return the rows of Dask's tasks, run in this thread: a task on a worker must not wait for other tasks."""
    rows: RankingData = tasks.compute(scheduler="synchronous")
    return rows


def given_rows(rows: RankingData, features: Names = None) -> RankingData:
    """Return rows in memory, which are small enough to be sent."""
    return rows


def joined_rows(
    own: Source, foreign: frozenset[Any], others: list[tuple[Source, frozenset[Any]]], features: Names = None
) -> RankingData:
    """Return the rows of `own` without the `foreign` queries, and those of some queries of other sources.

    Queries are in order of first appearance.
    """
    parts = [_of_queries(own, features, foreign, False)]
    parts += [_of_queries(source, features, queries, True) for source, queries in others]
    whole = RankingData.concatenate(parts)
    joined = RankingData(
        whole.X, whole.y, whole.qid, doc_ids=whole.doc_ids, comments=whole.comments, feature_names=whole.feature_names
    )
    joined.category_names = whole.category_names
    return joined


def _of_queries(source: Source, features: Names, queries: frozenset[Any], inside: bool) -> RankingData:
    """Return the rows of these queries, or of all other queries."""
    data = with_columns(source(features=features), features)
    return data.take_queries(np.array([(query in queries) is inside for query in data.query_ids.tolist()], dtype=bool))


def ordered_rows(own: Source, names: list[str], features: Names = None) -> RankingData:
    """Return the rows with their columns in the order of `names`."""
    return with_columns(own(features=features), features or names)


def rows_of_queries(whole: Source, queries: np.ndarray, features: Names = None) -> RankingData:
    """Return the rows of some queries, by their numbers in the source, ascending."""
    return whole(features=features).take_queries(queries)


def with_columns(data: RankingData, names: Names) -> RankingData:
    """Return the rows with the columns of these names, in this order."""
    if names is None or names_of(data) == list(names):
        return data
    return take_columns(data, chosen_columns(names_of(data), names))


class Partition:
    """One partition on its worker.

    Unless `hold` keeps its rows in memory, every pass reads the source again. `memory` has the results that a fit has
    derived from the rows. If the worker is lost, they are computed again from the source and the journal.
    """

    def __init__(self, number: int, source: Source, hold: bool = True) -> None:
        self.number, self.source, self.hold = number, source, hold
        self.memory: dict[str, Any] = {}
        self.last: tuple[int, Any] = (-1, None)
        self._data: RankingData | None = None

    def columns(self, chosen: Sequence[int], names: Names) -> Any:
        """Return the columns (n, k) with these numbers; if the rows are not held, read only these if possible.

        `names` are those of all columns.
        """
        if self.hold or names is None:
            return self.data.X[:, chosen]
        features = [names[k] for k in chosen]
        return with_columns(self._read(features), features).X

    @property
    def data(self) -> RankingData:
        """Rows, in grouped order."""
        if self._data is not None:
            return self._data
        data = self._read()
        if self.hold:
            self._data = data
        return data

    def _read(self, features: Names = None) -> RankingData:
        try:
            return self.source(features=features)
        except OSError as error:
            raise DataFileError(f"partition {self.number}: {error}") from error


def expand(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return the files of patterns, sorted by name for each pattern; a pattern without a file is an error."""
    patterns = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files: list[str] = []
    for pattern in [os.fspath(one) for one in patterns]:
        found = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern))
        if not found:
            raise InvalidInputError(
                f"no file matches {pattern}. Pass a file or a pattern such as 'parts/*.parquet'", code="no-file"
            )
        files += [os.path.abspath(name) for name in found]
    return files
