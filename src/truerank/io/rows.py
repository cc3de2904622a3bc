"""Read judged rows from any place: memory, a data frame, a table, LETOR text, a folder of folds, or judgements."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

from truerank.core.checks import is_frame, is_table, is_text_type
from truerank.core.errors import PYTHON, InvalidInputError, Remedy, TruerankError
from truerank.core.names import nearest, resolve
from truerank.core.types import Frame
from truerank.data.columns import Columns, as_trained, is_foreign, left_out, reading_of, trained_columns
from truerank.data.ranking_data import RankingData

RowsLike = RankingData | Frame | str | os.PathLike[str]
"""Judged rows: a RankingData, a data frame, or the path of a table, of LETOR text or of a folder of folds."""


class Known(NamedTuple):
    """Columns, categories and options of reading that models or earlier rows determine.

    `columns` is None for all columns. `categories` are the texts of columns, and `reading` how rows were read: columns
    by role, "missing" and "grades".
    """

    columns: list[str] | None = None
    categories: Mapping[str, Any] = {}
    reading: Mapping[str, str] = {}
    is_model: bool = False


NOTHING = Known()


@dataclass(frozen=True)
class RowsAt:
    """A place of judged rows, and the options for reading it once the scoring models are known.

    The options are the options of `read_table` and `read_letor`. An option that is None follows the models, or else its
    default.
    """

    place: Any  # RankingData, RowSource, data frame, or path
    query: str | None = None
    grade: str | None = None
    document: str | None = None
    features: Sequence[str] | None = None
    exclude: Sequence[str] | None = None
    categories: Any = None
    missing: str | None = None
    grades: str | None = None
    sparse: bool = False
    n_features: int | None = None
    max_line: int | None = None
    comments: bool = True
    dtype: str = "float64"
    also: tuple[str, ...] = ()  # columns that are read with the others
    unless_known: str = "nan"  # how to read missing values if neither `missing` nor a model states it
    sizes: str | None = None  # file of group sizes of LETOR text without query ids
    ratings: Callable[[str], Any] | None = None  # reads a file of judgements, by default `read_ratings`
    of_caller: bool = False  # whether the caller's function has these options, which errors name

    @cached_property
    def kind(self) -> Literal["rows", "frame", "folder", "table", "text"]:
        """The kind of the place; "rows" is a RankingData or a RowSource, whose columns are fixed."""
        if not isinstance(self.place, str | os.PathLike):
            return "frame" if is_table(self.place) else "rows"
        if os.path.isdir(self.place):
            return "folder"
        return "table" if resolve("truerank.io.tables:table_kind")(self.place) else "text"

    @property
    def name(self) -> str:
        """The path, or the name of the rows in messages."""
        return "the data" if self.kind in ("rows", "frame") else os.fspath(self.place)

    def column_names(self) -> list[str] | None:
        """Return the names of the columns of a frame or a table; other rows have names only after reading."""
        if self.kind == "frame":
            return [str(name) for name in getattr(self.place, "column_names", self.place.columns)]
        return resolve("truerank.io.tables:column_names")(self.place) if self.kind == "table" else None

    def known(self, *likes: Any) -> Known:
        """Return the union of the properties that models, or rows, determine; None is skipped.

        A model of another library whose columns all have other names was trained on an array, and reads all columns.
        """
        columns: dict[str, None] | None = None
        categories, reading, is_model, reads_nan = dict[str, Any](), dict[str, str](), False, False
        for number, like in enumerate([like for like in likes if like is not None]):
            names, own = trained_columns(like), reading_of(like)
            if names is not None and hasattr(like, "predict") and is_foreign(like):
                here = self.column_names()
                names = None if here is None or set(names).isdisjoint(here) else names
                if names is not None and is_frame(self.place):  # which has the categories of training
                    texts = [str(name) for name, dtype in zip(here or (), self.place.dtypes) if is_text_type(dtype)]
                    categories |= dict.fromkeys(name for name in texts if name in names)
            columns = {} if number == 0 else columns
            columns = None if columns is None or names is None else columns | dict.fromkeys(names)
            categories = dict(getattr(like, "category_names", None) or {}) | categories
            reading, reads_nan = reading or own, reads_nan or own.get("missing") == "nan"
            is_model = is_model or hasattr(like, "predict")
        reading |= {"missing": "nan"} if reads_nan else {}  # models that read 0 do so themselves
        return Known(None if columns is None else list(columns), categories, reading, is_model)

    def columns(self, known: Known) -> Columns:
        """Return the columns to read: the known columns, or else the columns of the options."""
        if known.columns is None:
            out = self.exclude and [entry for entry in self.exclude if entry not in self.also]
            return Columns(self.features and [*self.features, *self.also], out)
        if known.is_model and (lost := left_out(known.columns, self.features, self.exclude)):
            raise InvalidInputError(
                f"the model was trained with column {lost[0]!r}, which features or exclude leave out. Omit them: the "
                "model knows its columns by name",
                code="known-columns",
            )
        own = self.also if known.is_model else ()
        return Columns(names=list(dict.fromkeys([*known.columns, *own])))

    def missing_values(self, known: Known) -> str:
        """Return how to read missing values: "error", "nan" or "zero"."""
        return self.missing or known.reading.get("missing") or self.unless_known

    def text_options(self, known: Known) -> dict[str, Any]:
        """Return the options of `read_letor`, whose columns are then chosen by `columns`."""
        return {
            "missing": self.missing_values(known), "dtype": self.dtype, "sparse": self.sparse,
            "n_features": self.n_features, "comments": self.comments, "max_line": self.max_line,
        }  # fmt: skip

    def table_options(self, known: Known) -> dict[str, Any]:
        """Return the options of `read_table`."""
        columns, roles = self.columns(known), dict(known.reading)
        categories = self.categories
        if columns.names is not None and isinstance(categories, list):  # the model may leave some out
            categories = [one for one in categories if set(left_out(columns.names, None, [one]))] or None
        roles.pop("missing", None)
        scale = roles.pop("grades", None)
        return {
            "query": self.query, "grade": self.grade, "document": self.document, "defaults": roles,
            "features": columns.features if columns.names is None else columns.names, "exclude": columns.exclude,
            "categories": known.categories or categories, "missing": self.missing_values(known),
            "dtype": self.dtype, "grades": self.grades or scale,
        }  # fmt: skip

    def read(self, known: Known = NOTHING, *, graded: bool | None = False) -> Any:
        """Return the rows with the known columns; `graded` is that of `read_table`."""
        if self.kind == "rows":
            return self.place
        if self.kind == "folder":
            read = resolve("truerank.io.letor.folds:read_folds")
            return read(self.place, read=lambda one: replace(self, place=one).read(known, graded=graded))
        columns, roles = self.columns(known), set(known.reading) - {"missing", "grades"}
        plain = not (self.sizes or roles or self.also)
        plain = plain and not (columns.features or columns.exclude or self.categories)
        plain = plain and (known.is_model or not columns.names) and self.kind != "frame" and self.place != "-"
        named = {"query": self.query, "grade": self.grade, "document": self.document}
        if plain and resolve("truerank.io.judgements.registry:holds_judgements")(self.place, **named):
            ratings = self.ratings or partial(resolve("truerank.io.judgements.registry:read_ratings"), **named)
            return ratings(os.fspath(self.place)).rows()
        if self.kind == "text":
            source = resolve("truerank.io.group_sizes:with_sizes")(os.fspath(self.place), self.sizes)
            return columns.of(resolve("truerank.io.letor.read:read_letor")(source, **self.text_options(known)))
        try:
            return resolve("truerank.io.tables:read_table")(self.place, graded=graded, **self.table_options(known))
        except TruerankError as error:
            if self.of_caller and error.code == "columns" and self.kind == "table":
                resolve("truerank.io.judgements.registry:explain")(error, self.place, named)
            own = known.columns is not None or self.missing is None
            if not self.of_caller and own and self.kind == "frame" and error.code == "columns":
                replace(self, missing="error").read(graded=graded)  # raises what `read_table` raises of all columns
            if not self.of_caller:
                _name_read_table(error, "the file" if self.kind == "table" else "frame")
            raise

    def chosen(self, names: Sequence[str], known: Known = NOTHING, categories: Mapping[str, None] = {}) -> RankingData:
        """Return rows that have these columns, whose values may be missing; text is read with all its columns.

        Raises
        ------
        InvalidInputError
            If a frame or a table lacks a column.
        """
        if names and (here := self.column_names()) is not None:
            for name in names:
                check_column(name, here, self.name)
        own = replace(self, features=None, exclude=None, also=(), categories=None, missing="nan")
        columns = None if self.kind in ("text", "folder") else list(names)
        return own.read(Known(columns, categories, known.reading), graded=True)


def _name_read_table(error: TruerankError, shown: str) -> None:
    """Reword the remedies of an error as a call of `read_table`, whose arguments the caller's function lacks."""
    remedies = list[Remedy | str]()
    for one in error.remedies:
        spelled = ", ".join(filter(None, (PYTHON.argument(*own) for own in one.arguments.items())))
        remedies.append(f"give read_table({shown}, {spelled}) {one.purpose}".rstrip() if spelled else one)
    error.reword(error.message.what, *remedies)


def check_column(name: str, known: Collection[str], where: str) -> None:
    """Raise an error unless a column is known."""
    if name not in known:
        what, own = f"{name!r} is neither a file of scores nor a column of {where}", list(known)
        raise InvalidInputError(what + (nearest(name, own) or f" ({own[0]} to {own[-1]})"), code="no-column")


def rows_of(data: RowsLike, name: str = "data", model: Any = None) -> RankingData:
    """Return judged rows as a RankingData: unchanged, from a data frame, or from the path of a table, text or folds.

    The columns of a table follow `read_table`: `qid`, `y`, `docid` and features; a `model` that knows its columns reads
    only these, as in training, also from a RankingData.
    """
    if isinstance(data, RankingData):
        return data if model is None else as_trained(model, data)
    place = RowsAt(data)
    if place.kind == "rows":
        raise InvalidInputError(
            f"{name} must be a data frame with a column qid, a file of rows, or a RankingData, got "
            f"{type(data).__name__}. Convert arrays with RankingData(X, y, qid)",
            argument=name,
        )
    return place.read(place.known(model), graded=None)
