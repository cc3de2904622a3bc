"""Select columns by names, patterns and numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import is_sparse
from truerank.core.errors import InvalidInputError, warn
from truerank.core.names import nearest
from truerank.data.ranking_data import RankingData

_NUMBERS = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")
_PLAIN = re.compile(r"f([1-9]\d*)")
_OF_CATEGORIES = ("enable_categorical", "categorical_features")  # parameters of other libraries


def chosen_columns(
    names: Sequence[str], features: Sequence[str] | None = None, exclude: Sequence[str] | None = None
) -> list[int]:
    """Return the numbers, from 0, of the selected columns.

    Parameters
    ----------
    names : sequence of str (p,)
        Names of all columns; "f1", "f2", … for rows without names, such as LETOR text.
    features : sequence of str, optional
        Selected columns, in this order: names, patterns (`bm25*`, `tf_[abc]`), or else numbers from 1 as in LETOR text
        (`1-10,15`). Default: all.
    exclude : sequence of str, optional
        Selected columns to leave out.

    Raises
    ------
    InvalidInputError
        On an entry that matches no column, or if no column is left.

    Examples
    --------
    >>> names = ["bm25.title", "bm25.body", "price", "shop_id"]
    >>> chosen_columns(names, ["bm25*", "price"], ["*.body"])
    [0, 2]
    >>> chosen_columns(["f1", "f2", "f3"], ["2-3"])
    [1, 2]
    """
    places = {name: place for place, name in enumerate(names)}

    def named(entries: Sequence[str], what: str) -> list[int]:
        found: dict[int, None] = {}  # in order, each once
        for entry in entries:
            if entry in places:
                own = [places[entry]]
            elif any(mark in entry for mark in "*?["):
                own = [place for name, place in places.items() if fnmatchcase(name, entry)]
            elif _NUMBERS.fullmatch(entry):
                own = _numbered(entry, len(names), what)
            else:
                own = []
            if not own:
                shown = ", ".join(map(repr, list(names)[:12])) + (", ..." if len(names) > 12 else "")
                near = nearest(entry, places, f"The columns are {shown}")
                raise InvalidInputError(f"{what}: there is no column {entry!r}{near}", argument=what)
            found |= dict.fromkeys(own)
        return list(found)

    taken = list(range(len(names))) if features is None else named(features, "features")
    out = set(named(exclude, "exclude")) if exclude else set()
    left = [place for place in taken if place not in out]
    if not left:
        raise InvalidInputError(
            "no column is left: `exclude` names all columns that `features` selects", code="no-column-left"
        )
    return left


def left_out(names: Sequence[str], features: Sequence[str] | None, exclude: Sequence[str] | None) -> list[str]:
    """Return the columns that names or patterns leave out; numbers, whose columns are unknown, leave out all.

    >>> left_out(["title", "price"], ["pr*"], ["shop_id"]), left_out(["title", "price"], None, ["2"])
    (['title'], ['title', 'price'])
    """

    def named(entries: Sequence[str]) -> set[str]:
        return {name for name in names for entry in entries if name == entry or fnmatchcase(name, entry)}

    if any(_NUMBERS.fullmatch(entry) and entry not in names for entry in (*(features or ()), *(exclude or ()))):
        return list(names)
    kept = set(names if features is None else named(features)) - named(exclude or ())
    return [name for name in names if name not in kept]


def _numbered(entry: str, width: int, what: str) -> list[int]:
    found: list[int] = []
    for part in entry.split(","):
        first, _, last = part.partition("-")
        low, high = int(first), int(last or first)
        if not 1 <= low <= high <= width:
            raise InvalidInputError(
                f"{what}: {part} is outside the columns 1 to {width}. Count columns from 1", argument=what
            )
        found += range(low - 1, high)
    return found


def default_names(n_features: int) -> list[str]:
    """Return the names of columns without names in files: "f1", "f2", … as in LETOR text."""
    return [f"f{k + 1}" for k in range(n_features)]


def names_of(data: RankingData) -> list[str]:
    """Return the names of the columns, by default "f1", "f2", …"""
    return data.feature_names or default_names(data.n_features)


def shown_names(names: Iterable[str] | None, n_features: int) -> list[str]:
    """Return the names for output, by default "feature 1", "feature 2", …"""
    return [f"feature {k + 1}" for k in range(n_features)] if names is None else list(map(str, names))


def take_columns(data: RankingData, columns: Sequence[int] | np.ndarray) -> RankingData:
    """Return the rows with only these columns, which are numbered from 0."""
    names = names_of(data)
    own = [names[k] for k in columns]
    X = data.X[:, np.asarray(columns, dtype=np.int64)]
    if isinstance(X, np.ndarray):
        X = np.ascontiguousarray(X)
    coded = {name: texts for name, texts in (data.category_names or {}).items() if name in own}
    return data.replaced(X=X, feature_names=own, category_names=coded or None)


def as_in_training(data: RankingData, names: Sequence[str] | None) -> RankingData:
    """Return the rows with a model's training columns, by name; rows without names are returned unchanged.

    Columns without names (LETOR text) are "f1", "f2", …, unless the model has other names.
    """
    if names is None:
        return data
    wanted = [str(name) for name in names]
    if data.feature_names is None and not all(_PLAIN.fullmatch(name) for name in wanted):
        return data
    have = names_of(data)
    if have == wanted:
        return data
    places = {name: place for place, name in enumerate(have)}
    check_columns(wanted, places)
    return take_columns(data, [places[name] for name in wanted])


def check_columns(names: Sequence[str], known: Collection[str]) -> None:
    """Raise an error unless all training columns of a model are known."""
    missing = [name for name in names if name not in known]
    if missing:
        more = f" and {len(missing) - 1} more of the columns" if len(missing) > 1 else ", a column"
        raise InvalidInputError(
            f"the data lack {missing[0]!r}{more} that the model requires"
            f"{nearest(missing[0], known, 'Add what is missing, or train without it')}",
            code="lost-column",
        )


def trained_columns(model: Any) -> list[str] | None:
    """Return the names of the training columns of a fitted model of any library, or None if it does not store them.

    A bound method, such as `model.predict`, has the columns of its model.
    """
    model = getattr(model, "__self__", model)
    for attribute in ("feature_names_in_", "feature_names_", "feature_names", "feature_name"):
        names = getattr(model, attribute, None)
        names = names() if callable(names) else names
        if names is not None and len(names):
            return [str(name) for name in names]
    return None


def as_trained(model: Any, data: RankingData) -> RankingData:
    """Return the rows with the training columns of a fitted model of any library.

    A model of another library whose columns all have other names was trained on an array, and matches them by position.
    Categories get the numbers that the model has for them.
    """
    names = trained_columns(model)
    if names is not None and not (is_foreign(model) and set(names).isdisjoint(names_of(data))):
        data = as_in_training(data, names)
    return numbered_as(getattr(model, "category_names", None) or {}, data)


def is_foreign(model: object) -> bool:
    """Return whether a model is not one of truerank's."""
    return not hasattr(type(model), "model_attributes")


def numbered_as(known: Mapping[str, Sequence[str]], data: RankingData) -> RankingData:
    """Return the rows with the numbers that categories have in the `known` lists, and -1 for others."""
    own = dict(data.category_names or {})
    other = {name: list(known[name]) for name, texts in own.items() if known.get(name, texts) != texts}
    if not other:
        return data
    X = data.X.copy()
    for name, texts in other.items():
        number, k = {text: place for place, text in enumerate(texts)}, names_of(data).index(name)
        codes = np.array([*(number.get(text, -1) for text in own[name]), -1], dtype=X.dtype)
        present = ~np.isnan(X[:, k])
        X[present, k] = codes[X[present, k].astype(np.int64)]
    return data.replaced(X=X, category_names=own | other)


def columns_for(model: Any, frame: Any, also: Collection[str] = ()) -> Any:
    """Return the columns of a data frame that a model of another library was trained on; None if none has its names.

    A function gets all columns but `also`.
    """
    known, names = {str(name): name for name in frame.columns}, trained_columns(model)
    if names is None and not hasattr(model, "predict"):
        names = [name for name in known if name not in also]
    if names is None or set(names).isdisjoint(known):
        return None
    check_columns(names, known)
    return frame[[known[name] for name in names]]


def dense_column(rows: RankingData, name: str) -> np.ndarray:
    """Return the column of a name (n,), also of sparse rows, in the grouped order."""
    column = rows.X[:, [names_of(rows).index(name)]]
    return np.asarray(column.toarray() if is_sparse(column) else column)[:, 0]


def rows_for(model: Any, data: RankingData) -> Any:
    """Return the rows in the form that a model of another library requires: a data frame if it knows column names.

    Otherwise the columns are matched by position, also for a model that was trained on an array.
    """
    data, names = as_trained(model, data), trained_columns(model)
    if names is None or names_of(data) != names or not isinstance(data.X, np.ndarray) or find_spec("pandas") is None:
        return data.X
    return _frame(data)


def _frame(data: RankingData) -> Any:
    """Return the rows as a pandas data frame with the texts of categories."""
    import pandas

    frame = pandas.DataFrame(data.X, columns=pandas.Index(names_of(data)))
    for name, texts in (data.category_names or {}).items():
        codes = frame[name].fillna(-1).astype(int)
        frame[name] = pandas.Categorical.from_codes(codes, categories=pandas.Index(texts))
    return frame


def rows_to_fit(model: Any, data: RankingData) -> Any:
    """Return the rows for fitting a model of another library: a data frame if it reads names or categories, else X.

    A `ColumnTransformer` in the model reads names. LightGBM reads categories, and other models those of a parameter.
    """
    settings = model.get_params() if hasattr(model, "get_params") else {}
    parts = [own for one in (model, *settings.values()) for own in getattr(one, "transformers", ())]
    wanted = [name for _, _, columns in parts for name in _names_in(columns)]
    reads = any(own.__module__.partition(".")[0] == "lightgbm" for own in type(model).__mro__)
    given = [settings.get(name) for name in _OF_CATEGORIES]
    reads = reads or any(value is not None and value is not False for value in given)
    if not wanted and not (data.category_names and reads):
        if data.category_names and not hasattr(model, "transform") and not hasattr(model, "steps"):
            shown = ", ".join(map(repr, data.category_names))
            warn(f"{type(model).__name__} does not read categories, and is fitted with numbers for those of {shown}")
        return data.X
    check_columns([name for name in wanted if isinstance(name, str)], names_of(data))
    if not isinstance(data.X, np.ndarray):
        what = f"{type(model).__name__} reads columns by name, which requires dense rows. Read them without sparse=True"
        raise InvalidInputError(what, code="dense-rows")
    return _frame(data)


def _names_in(columns: Any) -> list[Any]:
    """Return the names in the columns of a part of a `ColumnTransformer`, and a function that selects columns."""
    if callable(columns):
        return [columns]
    every = [columns.start, columns.stop] if isinstance(columns, slice) else np.atleast_1d(columns).tolist()
    return [name for name in every if isinstance(name, str)]


def reading_of(like: object) -> dict[str, str]:
    """Return how the training data of a model were read: columns by role, and "missing"; {} if unknown."""
    return dict(getattr(like, "reading_", None) or {})


class Columns(NamedTuple):
    """A selection of columns by the arguments of `chosen_columns`, or by the `names` of a model's columns."""

    features: Sequence[str] | None = None
    exclude: Sequence[str] | None = None
    names: Sequence[str] | None = None

    def of(self, data: RankingData) -> RankingData:
        """Return the rows with these columns."""
        if self.names is not None:
            return as_in_training(data, self.names)
        if self.features or self.exclude:
            return take_columns(data, chosen_columns(names_of(data), self.features, self.exclude))
        return data
