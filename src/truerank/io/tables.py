"""Read and write tables: pandas and polars data frames, Arrow tables, and Parquet, Arrow (Feather) and CSV files.

Each row is a document. The query, the grade and the document id have one column each; all other columns are features.
The libraries of the extra `tables` are imported only for their own objects and files.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from numbers import Real
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from truerank.core.checks import as_array, check_choice, column_labels, is_sparse
from truerank.core.errors import DataFileError, InvalidInputError, Remedy, warn
from truerank.core.names import repeated, resolve
from truerank.core.types import DTypeLike, PathLike
from truerank.data.columns import chosen_columns, names_of
from truerank.data.grouping import as_ids, id_text, is_missing, refuse_nested
from truerank.data.rank_columns import are_row_labels, is_unnamed
from truerank.data.ranking_data import RankingData
from truerank.data.remarks import Remark, RemarkWarning
from truerank.io.columnar import first_line, open_columnar
from truerank.io.delimited import dialect
from truerank.io.letor.grammar import NO_VALUE, check_bytes
from truerank.io.letor.store import check_dtype, query_names
from truerank.io.streams import COMPRESSED, Source, open_output
from truerank.io.table_problems import (
    ColumnsError,
    Problem,
    feature_problems,
    lacking,
    likely,
    query_by_content,
    without_grades,
)
from truerank.io.text_table import check_cells, read_text_table, text_of

QUERY, GRADE, DOCUMENT, COMMENT = "qid", "y", "docid", "comment"
UNSEEN = -1.0  # the code of a category that is not in the list of known categories
KINDS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow"}
_INDEX = re.compile(r"__index_level_\d+__")  # the name that pandas writes for the index of a frame: row numbers
_NO_GRADE = "remove the unjudged rows (`truerank convert FILE OUT` with join=FILE), or add their grades"


def table_kind(path: PathLike) -> str | None:
    """Return "csv", "tsv", "parquet" or "arrow" by the suffix of a file name, else None; text may be compressed."""
    suffixes = list(map(str.lower, Path(path).suffixes))
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
        kind = KINDS.get(suffixes[-1]) if suffixes else None
        return kind if kind in ("csv", "tsv") else None
    return KINDS.get(suffixes[-1]) if suffixes else None


def read_table(
    source: object,
    *,
    query: str | None = None,
    grade: str | None = None,
    document: str | None = None,
    features: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    categories: Iterable[str] | Mapping[str, Sequence[str]] | None = None,
    missing: str = "error",
    dtype: DTypeLike = np.float64,
    defaults: Mapping[str, str] | None = None,
    graded: bool | None = None,
    grades: Mapping[str, float | None] | str | None = None,
) -> RankingData:
    """Read rows with grades and queries from a table.

    Parameters
    ----------
    source : path, pandas.DataFrame, polars.DataFrame or pyarrow.Table
        A path ends in .parquet, .pq, .arrow, .feather, .csv or .tsv (the last two also in .gz, .xz or .zst).
    query : str, default="qid"
        Column of the query id: whole numbers, text, or any hashable values.
    grade : str, default="y"
        Column of the grade. Without an argument and a column "y", the data have no grades.
    document : str, default="docid"
        Column of the document id. Without an argument and a column "docid", the data have no document ids.
    features : sequence of str, optional
        Columns of the features in this order, or patterns of their names (`bm25*`); [] means none. The default is all
        other columns except the index that pandas writes (`__index_level_0__`) and a text column named "comment".
    exclude : sequence of str, optional
        Columns, or patterns, that are not features.
    categories : names or patterns of columns, or dict of column name to list of str, optional
        Text columns to convert to numbers, for rankers with the parameter `categorical`. The number is the position in
        the sorted list of texts, or in the given list (`category_names` of a model). A text that the given list lacks
        becomes -1, and a missing text becomes nan.
    missing : {"error", "nan", "zero"}, default="error"
        Treatment of an empty or nan cell of a feature. "zero" reads it as 0, as engines without missing values do, but
        a missing category remains missing.
    dtype : float32 or float64, default=float64
    defaults : dict of "query", "grade", "document" to a column, optional
        Names to use in place of "qid", "y" and "docid" if the table has them.
    graded : bool, optional
        Whether a table without a column of grades is an error. By default, only if the column of queries is missing,
        too: the grades then probably have another name, and must not become a feature.
    grades : dict of str to float, or str, optional
        The numbers of grades in words, as in `read_ratings`.

    Returns
    -------
    RankingData
        With the names of the columns as `feature_names`.

    Raises
    ------
    InvalidInputError
        For missing columns, features that are not numeric, infinite or missing values, and missing query ids. One
        message lists the problems of all columns, with the options that solve them.
    DataFileError
        If a file is not of the kind of its suffix.
    MissingExtraError
        If a file requires pyarrow, which is not installed.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"qid": ["a", "b", "a"], "y": [1, 0, 2], "bm25": [3.5, 1.0, 2.5]})
    >>> data = read_table(frame)
    >>> data, data.feature_names, data.X[:, 0].tolist()
    (RankingData(3 rows, 2 queries, 1 features), ['bm25'], [3.5, 2.5, 1.0])
    """
    check_choice(missing, "missing", ("error", "nan", "zero"))
    wanted = _Wanted(features, exclude, categories, missing, check_dtype(dtype), grades)
    named = {"query": query, "grade": grade, "document": document}
    if not isinstance(source, str | os.PathLike):
        return _ranking_data(source, None, named, defaults or {}, graded, wanted)
    kind = table_kind(source)
    texts = [query or QUERY, document or DOCUMENT]
    texts += [name for role, name in (defaults or {}).items() if role != "grade"]
    if isinstance(categories, Mapping):
        texts += categories  # otherwise digits, "true" and "false" would become other texts
    table = read_file(source, kind, texts)
    if table.num_rows == 0:
        raise DataFileError("the file holds no rows", os.fspath(source))
    try:
        return _ranking_data(table, kind, named, defaults or {}, graded, wanted)
    except InvalidInputError as error:
        raise DataFileError(error, os.fspath(source)) from error


class _Wanted(NamedTuple):
    """The arguments of `read_table` about features."""

    features: Sequence[str] | None
    exclude: Sequence[str] | None
    categories: Iterable[str] | Mapping[str, Sequence[str]] | None
    missing: str
    dtype: np.dtype
    grades: Mapping[str, float | None] | str | None

    def listed(self) -> Mapping[str, Sequence[str]]:
        """The known categories by column, if they were given."""
        return self.categories if isinstance(self.categories, Mapping) else {}

    def coded(self, features: list[str]) -> set[str]:
        """The features whose texts become numbers."""
        if self.categories is None or isinstance(self.categories, Mapping):
            return set(self.listed())
        return {features[k] for k in chosen_columns(features, list(self.categories))}


def column_names(path: PathLike) -> list[str]:
    """Return the names of the columns of a table file, in order."""
    kind = table_kind(path)
    if kind in ("csv", "tsv", None):
        return [str(name) for name in read_file(path, kind, ()).column_names]
    with open_columnar(path, str(kind)) as (schema, _):
        return list(schema.names)


def _ranking_data(
    source: object,
    kind: str | None,
    named: Mapping[str, str | None],
    defaults: Mapping[str, str],
    graded: bool | None,
    wanted: _Wanted,
) -> RankingData:
    """Return the rows of a table; `kind` is the kind of its file, and `named` and `defaults` are columns by role."""
    names, column = _columns(source)
    problems: list[Problem] = []
    roles: list[str | None] = []
    for role, default in (("query", QUERY), ("grade", GRADE), ("document", DOCUMENT)):
        usual, given = defaults.get(role, default), named[role]
        usual = usual if usual in names else default
        name = usual if given is None else str(given)
        if graded is None and role == "grade":
            graded = bool(problems) and wanted.features is None
        required = given is not None or role == "query" or (graded and role == "grade")
        found = name if name in names else likely(role, names) if required else None
        if name not in names and required:
            if role == "query" and found is None:
                texts = {one: column(one) for one in names if column(one).dtype.kind in "OUT"}
                found = query_by_content({one: list(map(str, own.tolist())) for one, own in texts.items()})
            problems.append(lacking(role, name, names, found=found, listed=not problems))
        roles.append(found)
    lacked, chosen = bool(problems), list[str]()
    try:
        if lacked:
            raise InvalidInputError("columns are lacking")
        return _checked_rows(names, column, kind, roles, wanted)
    except InvalidInputError as error:
        # Report the problems of all columns at once, with all options that solve them.
        if wanted.features is None or isinstance(wanted.features, list | tuple):
            with suppress(InvalidInputError):
                chosen = _features(names, roles, wanted)
                coding = wanted.coded(chosen)
                for place, role, what in ((1, "grade", "the grades"), (2, "document", "document ids")):
                    found = likely(role, chosen, coding) if roles[place] is None and wanted.features is None else None
                    if found is not None and (graded or role != "grade" or _is_numeric(column(found))):
                        problems.append(Problem(f"{found!r} probably holds {what}", (Remedy(**{role: found}),)))
                        chosen, roles[place] = [name for name in chosen if name != found], found
                if wanted.features is None:
                    chosen = without_grades(chosen, column, coding, _is_numeric, roles, problems)
                problems += _words(column, roles[1], wanted) if problems else []
                problems += feature_problems(chosen, column, coding, wanted.missing, _is_numeric, roles)
        known = error.code in ("not-numeric", "no-value") and error.value in [*chosen, *roles]
        if not problems or not (lacked or known):
            problems.insert(0, Problem(error.message.what, error.remedies))
            if len(problems) == 1:
                raise
        raise ColumnsError(problems) from error


def _words(column: Callable[[str], np.ndarray], grade: str | None, wanted: _Wanted) -> list[Problem]:
    """Return the problem of a column of grades in words without numbers, if it is one."""
    try:
        if grade is not None:
            _grades(column(grade), grade, wanted.grades)
    except InvalidInputError as error:
        return [Problem(error.message.what, error.remedies)] if error.code == "words" else []
    return []


def _checked_rows(
    names: list[str],
    column: Callable[[str], np.ndarray],
    kind: str | None,
    roles: list[str | None],
    wanted: _Wanted,
) -> RankingData:
    """Return the rows of columns whose names are known."""
    query, grade, document = roles
    comments = None
    names = _without_row_labels(names, column, roles, wanted)
    if wanted.features is None and COMMENT in names and COMMENT not in roles and column(COMMENT).dtype.kind in "OUT":
        comments = column(COMMENT)
        roles = [*roles, COMMENT]
    features = _features(names, roles, wanted)
    qid = _queries(as_ids(column(str(query)), f"column {query!r}"), str(query), kind in ("csv", "tsv"))
    X = np.empty((len(qid), len(features)), dtype=wanted.dtype)
    coded: dict[str, list[str]] = {}
    coding = wanted.coded(features)
    for place, name in enumerate(features):
        if name in coding:
            X[:, place] = _codes(column(name), name, wanted.missing, wanted.listed().get(name), coded)
        else:
            X[:, place] = _numbers(column(name), name, wanted.missing)
    data = RankingData(
        X,
        None if grade is None else _grades(column(grade), grade, wanted.grades),
        qid,
        doc_ids=None if document is None else as_ids(column(document), f"column {document!r}"),
        comments=comments,
        feature_names=list(features),
    )
    data.category_names = coded or None
    return data


def _without_row_labels(
    names: list[str], column: Callable[[str], np.ndarray], roles: Sequence[str | None], wanted: _Wanted
) -> list[str]:
    """Return the columns without unnamed row numbers; raise for any other column without a name.

    A column of `features`, `exclude` or a role is kept.
    """
    if wanted.features is not None:
        return names
    taken = {*roles, *(wanted.exclude or ())}
    unnamed = [name for name in names if name not in taken and is_unnamed(name)]
    labels = [name for name in unnamed if are_row_labels(column(name))]
    for name in unnamed:
        if name not in labels and not name:
            raise InvalidInputError(
                f"column {names.index(name) + 1} has no name",
                remedies=["name it", Remedy("to leave it out", exclude=[""])],
                code="unnamed-column",
            )
    if labels:
        warn(RemarkWarning(Remark("unnamed-column", ", ".join(map(repr, labels)), len(labels), labels)))
    return [name for name in names if name not in labels]


def _features(names: list[str], roles: Sequence[str | None], wanted: _Wanted) -> list[str]:
    """Return the feature columns: the given columns, or all without another role."""
    given, exclude, taken = wanted.features, wanted.exclude, set(roles)
    if given is not None:
        if roles[1] in given:
            raise InvalidInputError(
                f"features: {roles[1]!r} contains the grades, which a ranker must not see. Omit it", argument="features"
            )
        own = [name for name in names if name not in taken or name in given]
        return [own[k] for k in chosen_columns(own, given, exclude)] if len(given) else []
    features = [name for name in names if name not in taken and not _INDEX.fullmatch(name)]
    if not exclude:
        return features
    # A pattern may also match other columns: `*_id` matches a query column named query_id.
    patterns = [entry for entry in exclude if entry not in taken]
    known = [*features, *sorted(name for name in taken if name is not None)]
    kept = [known[k] for k in chosen_columns(known, None, patterns) if k < len(features)]
    if not kept:
        raise InvalidInputError("no feature column is left: `exclude` names all columns")
    return kept


def to_table(data: RankingData, kind: str = "pandas") -> Any:
    """Return rows as a table with columns "qid", "y", "docid", the features (named, or f1, f2, …), and "comment".

    Categories have their texts, and `read_table(categories=)` reads them again.

    Parameters
    ----------
    data : RankingData
        Rows are in grouped order. A warning lists the parts of `with_judgements` that a table cannot hold.
    kind : {"pandas", "polars", "arrow"}, default="pandas"

    Examples
    --------
    >>> to_table(RankingData([[0.5], [2.0]], [1, 0], ["a", "b"]))
      qid    y   f1
    0   a  1.0  0.5
    1   b  0.0  2.0
    """
    check_choice(kind, "kind", ("pandas", "polars", "arrow"))
    columns = _as_columns(data)
    if kind == "arrow":
        return _arrow().table(columns)
    library = import_module(kind)
    return library.DataFrame(columns)


def _as_columns(data: RankingData) -> dict[str, Any]:
    """Return the columns of a table by name: arrays of numbers, and lists of texts."""
    if lost := data.beyond_rows():
        warn(f"a table cannot contain {lost}, so the measures of its rows will differ. Use write_letor to keep them")
    names = names_of(data)
    clash = {QUERY, GRADE, DOCUMENT, COMMENT} & set(names)
    if wrong := [*sorted(clash), *repeated(names)]:
        raise InvalidInputError(
            f"feature names must differ from each other and from {', '.join(sorted(clash)) or 'qid, y, docid'}, got "
            f"{wrong[0]!r} twice. Rename the feature",
            code="column-names",
        )
    X = data.X.toarray() if is_sparse(data.X) else data.X
    columns: dict[str, Any] = {QUERY: data.qid}
    if data.y is not None:
        columns[GRADE] = data.y
    if data.doc_ids is not None:
        columns[DOCUMENT] = data.doc_ids.tolist()
    texts = data.category_names or {}
    for place, name in enumerate(names):
        own = np.ascontiguousarray(X[:, place])
        columns[name] = _texts(own, texts[name]) if name in texts else own
    if data.comments is not None:
        columns[COMMENT] = data.comments.tolist()
    if columns[QUERY].dtype.kind not in "iu":
        columns[QUERY] = [str(name) for name in columns[QUERY].tolist()]
    return columns


def _texts(codes: np.ndarray, names: Sequence[str]) -> list[str | None]:
    """Return the texts of the numbers of categories (n,), None for missing and unknown ones."""
    return [names[int(code)] if code >= 0 else None for code in codes.tolist()]


def write_table(data: RankingData, path: PathLike) -> None:
    """Write a table file atomically, with the columns of `to_table`.

    Parameters
    ----------
    data : RankingData
    path : path
        With the suffix .parquet, .pq, .arrow, .feather, .csv or .tsv (the last two also with .gz, .xz or .zst).
    """
    kind = table_kind(path)
    if kind is None:
        raise InvalidInputError(f"{path}: the file name of a table must end in {', '.join(KINDS)}", code="file-name")
    is_plain = kind in ("csv", "tsv") and find_spec("pyarrow") is None
    with open_output(path) as stream:
        if is_plain:
            stream.write(text_of(_as_columns(data), "\t" if kind == "tsv" else ","))
        else:
            write_arrow(to_table(data, "arrow"), kind, stream)


def write_arrow(table: object, kind: str, stream: IO[bytes]) -> None:
    """Write an Arrow table to a stream of bytes as "csv", "tsv", "parquet" or "arrow"."""
    if kind in ("csv", "tsv"):
        from pyarrow import csv

        options = csv.WriteOptions(delimiter="\t" if kind == "tsv" else ",", quoting_style="needed")
        sink = io.BytesIO()
        csv.write_csv(table, sink, options)
        stream.write(sink.getvalue())
    elif kind == "parquet":
        from pyarrow import parquet

        parquet.write_table(table, stream)
    else:
        from pyarrow import feather

        feather.write_feather(table, stream)


def _arrow() -> Any:
    import pyarrow

    return pyarrow


def read_file(path: PathLike, kind: str | None, texts: Iterable[str]) -> Any:
    """Read a file as an Arrow table; without pyarrow, read a text file as a `TextTable`.

    The columns `texts` stay text: "007" is not 7.
    """
    if kind is None:
        raise InvalidInputError(f"{path}: the file name of a table must end in {', '.join(KINDS)}", code="file-name")
    name, is_text = os.fspath(path), kind in ("csv", "tsv")
    arrow: Any = None if is_text and find_spec("pyarrow") is None else _arrow()
    refused = () if arrow is None else (arrow.ArrowException,)
    try:
        if is_text:
            with Source(path) as stream:
                text = b"".join(stream.line_blocks())
            check_bytes(text, name, 1)
            if not text.strip():
                raise DataFileError("the file holds no rows", name)
            n_lines = int(np.count_nonzero(np.frombuffer(text, dtype=np.uint8) == 10)) + (not text.endswith(b"\n"))
            last, texts, (delimiter, decimal) = text.rstrip()[-1:], list(texts), dialect(kind, text, name)
            if arrow is None:
                table = read_text_table(text, delimiter, decimal, texts, name)
            else:
                source = arrow.BufferReader(_in_own_memory(text))
                del text
                table = _typed(source, delimiter, decimal, texts)
                if dates := [field.name for field in table.schema if arrow.types.is_temporal(field.type)]:
                    table = _typed(source, delimiter, decimal, [*texts, *dates])  # as they are written
            if table.num_rows + 1 < n_lines:  # some lines are blank, or within a cell
                check_cells(table, set(texts), delimiter, last == b'"', n_lines, name)
            return table
        with open_columnar(path, kind) as (schema, batches):
            return arrow.Table.from_batches(list(batches), schema)
    except (*refused, OSError, UnicodeDecodeError, OverflowError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise DataFileError(f"cannot be read as {kind}: {first_line(error)}", name, code="unreadable") from error


def _typed(source: Any, delimiter: str, decimal: str, texts: Iterable[str]) -> Any:
    """Return the table of a text file; all columns but `texts` have the types of their cells."""
    from pyarrow import ArrowInvalid, csv, string

    convert = csv.ConvertOptions(column_types=dict.fromkeys(texts, string()), decimal_point=decimal)
    source.seek(0)
    try:
        return csv.read_csv(source, parse_options=csv.ParseOptions(delimiter=delimiter), convert_options=convert)
    except ArrowInvalid:
        source.seek(0)
        # Without threads the error names the row. Cells with several lines may span blocks.
        parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        one_thread = csv.ReadOptions(use_threads=False)
        return csv.read_csv(source, read_options=one_thread, parse_options=parse, convert_options=convert)


def _in_own_memory(text: bytes) -> Any:
    """Return a text as a buffer in Arrow's own memory.

    Arrow's threads may release a buffer last. Releasing a Python object during shutdown aborts the process.
    """
    buffer = _arrow().allocate_buffer(len(text))
    np.frombuffer(buffer, dtype=np.uint8)[:] = np.frombuffer(text, dtype=np.uint8)
    return buffer


def _columns(table: Any) -> tuple[list[str], Callable[[str], np.ndarray]]:
    """Return the column names of a table, and a function that returns a column as an array."""
    if not hasattr(table, "columns") or not hasattr(table, "__getitem__"):
        raise InvalidInputError(
            f"expected a path, a pandas or polars data frame or a pyarrow table, got {type(table).__name__}",
            code="not-a-table",
        )
    labels = column_labels(table, "the table")
    return list(labels), lambda name: as_array(table[labels[name]], name)


def _is_numeric(values: np.ndarray) -> bool:
    if values.dtype.kind == "O":
        return all(is_missing(value) or isinstance(value, bool | np.bool_ | Real | Decimal) for value in values)
    return values.dtype.kind in "fiub"


def _grades(values: np.ndarray, name: str, scale: object) -> np.ndarray:
    """Return the numbers of a column of grades (n,), which may be words."""
    refuse_nested(values, name)
    if scale is None and _is_numeric(values):
        return _numbers(values, name, "error", _NO_GRADE)
    try:
        found = resolve("truerank.io.judgements.ratings:of_cells")(values.tolist(), f"column {name!r}", scale)
    except DataFileError as error:
        raise InvalidInputError(error) from error
    _refuse_missing(np.isnan(found), name, _NO_GRADE)
    return np.asarray(found)


def _numbers(values: np.ndarray, name: str, missing: str, remedy: Remedy | str = NO_VALUE) -> np.ndarray:
    """Return the numbers of a column (n,)."""
    if not _is_numeric(values):
        shown = f": row 1 has {values.tolist()[0]!r:.80}" if len(values) else ""
        raise InvalidInputError(f"column {name!r} is not numeric{shown}", value=name, code="not-numeric")
    if values.dtype.kind == "O":
        values = np.array([np.nan if is_missing(value) else value for value in values], dtype=np.float64)
    values = values.astype(np.float64, copy=False)
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise InvalidInputError(
            f"column {name!r} is infinite in row {row + 1}. Infinite values are not accepted", code="infinite"
        )
    if missing == "error":
        _refuse_missing(np.isnan(values), name, remedy)
    return np.where(np.isnan(values), 0.0, values) if missing == "zero" else values


def _refuse_missing(absent: np.ndarray, name: str, remedy: Remedy | str = NO_VALUE) -> None:
    if absent.any():
        text = f"column {name!r} has no value in row {int(absent.argmax()) + 1}"
        raise InvalidInputError(text, value=name, remedies=[remedy], code="no-value")


def _codes(
    values: np.ndarray, name: str, missing: str, known: Sequence[str] | None, coded: dict[str, list[str]]
) -> np.ndarray:
    """Return the codes of a column's categories (n,), and add the list of categories to `coded`.

    Numbers are their own codes unless a list is given. An empty text is missing, like an empty cell.
    """
    if values.dtype.kind in "fiu" and known is None:
        return _numbers(values, name, "error" if missing == "error" else "nan")
    refuse_nested(values, name)
    texts = [None if is_missing(value) or value == "" else id_text(value) for value in values.tolist()]
    if missing == "error":
        _refuse_missing(np.array([text is None for text in texts], dtype=bool), name)
    met = {text for text in texts if text is not None}
    coded[name] = sorted(met) if known is None else list(known)
    if met and met.isdisjoint(coded[name]):
        warn(
            f"column {name!r}: no row has a known category. The column has {sorted(met)[0]!r}, for example. The known "
            f"categories are {', '.join(map(repr, coded[name][:3]))}"
        )
    number = {text: float(place) for place, text in enumerate(coded[name])}
    return np.array([np.nan if text is None else number.get(text, UNSEEN) for text in texts], dtype=np.float64)


def _queries(values: np.ndarray, name: str, are_texts: bool) -> Any:
    """Return the query ids; ids of a text file become whole numbers if all can, as in LETOR text."""
    if values.dtype.kind != "O":
        return values
    ids = values.tolist()
    for row, value in enumerate(ids, 1):
        if value is None or (are_texts and value == ""):
            raise InvalidInputError(f"column {name!r} has no query id in row {row}. Give every row a query id")
    if not are_texts:
        return values
    unique = list(dict.fromkeys(ids))
    names = dict(zip(unique, query_names([text.encode("utf-8") for text in unique]).tolist()))
    return [names[text] for text in ids]
