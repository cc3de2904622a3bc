"""Read settings of columns: numbers or names of columns, a sign for each column, and columns of categories."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from truerank.core.checks import declared_categories, is_frame, is_text_type
from truerank.core.errors import InvalidInputError
from truerank.data.grouping import id_text, is_missing
from truerank.data.ranking_data import RankingData
from truerank.data.row_source import RowSource
from truerank.rankers.base import Ranker

_DATES = ("date", "time", "duration", "period")


def columns_of(given: object, what: str, n_features: int, names: list[Any]) -> np.ndarray:
    """Return the numbers of columns from numbers or names, int64 (u,), ascending; `what` is the parameter's name."""
    if not isinstance(given, list | tuple | set | np.ndarray):
        raise InvalidInputError(argument=what, expected="a list of column numbers or names", value=given)
    return np.unique(np.array([column_of(key, what, n_features, names) for key in given], dtype=np.int64))


def column_of(key: object, what: str, n_features: int, names: list[Any]) -> int:
    """Return the number of a column, given as its number or name."""
    if isinstance(key, str):
        if key not in names:
            known = f"X does not have. Its features are {', '.join(map(str, names[:10]))}"
            have = f"which {known}" if names else "and X has no names. Give column numbers from 0"
            raise InvalidInputError(f"{what} names the feature {key!r}, {have}", argument=what)
        return names.index(key)
    if not isinstance(key, numbers.Integral) or isinstance(key, bool) or not 0 <= int(key) < n_features:
        raise InvalidInputError(
            f"{what} names the column {key!r}, but X has the columns 0 … {n_features - 1}", argument=what
        )
    return int(key)


def monotone_signs(given: Any, n_features: int, names: list[Any]) -> np.ndarray | None:
    """Return -1, 0 or 1 for each feature, int8 (p,), from an array or a dict of columns; None if all are 0."""
    by_column = isinstance(given, dict)
    columns = [column_of(key, "monotone", n_features, names) for key in given] if by_column else range(n_features)
    try:
        signs = np.asarray(list(given.values()) if by_column else given, dtype=np.float64)
    except (TypeError, ValueError):
        signs = np.array(np.nan)
    if signs.shape != (len(columns),) or not np.isin(signs, (-1, 0, 1)).all():
        raise InvalidInputError(
            f"monotone must have -1, 0 or 1 for each of the {n_features} features, or be a dict of column numbers or "
            f"names with these values, got {given!r}",
            argument="monotone",
        )
    values = np.zeros(n_features, dtype=np.int8)
    values[list(columns)] = signs
    return values if values.any() else None


def feature_sets(given: object, n_features: int, names: list[Any]) -> np.ndarray:
    """Return the sets of features that a tree may combine, bool (sets, p); features in no set form one more set."""
    what = "interaction_constraints"
    if not isinstance(given, list | tuple):
        raise InvalidInputError(argument=what, expected="a list of lists of column numbers or names", value=given)
    sets = np.zeros((len(given) + 1, n_features), dtype=np.bool_)
    for row, one in zip(sets, given):
        row[columns_of(one, f"a set of {what}", n_features, names)] = True
    sets[-1] = ~sets.any(axis=0)
    return sets[sets.any(axis=1)]


def frame_of(X: object) -> Any:
    """Return an Arrow table as a pandas data frame, or any other X unchanged; pandas must be installed."""
    if not (hasattr(X, "column_names") and hasattr(X, "to_pandas")):
        return X
    try:
        return X.to_pandas()
    except ImportError as error:
        raise InvalidInputError(
            f"an Arrow table requires pandas, which cannot be imported ({error}). Install it: pip install pandas"
        ) from error


def numbered_categories(
    X: Any, columns: list[int], texts: dict[str, list[str]], training: bool
) -> tuple[Any, dict[str, list[str]]]:
    """Return a data frame with numbers instead of the texts in `columns`, and the texts by column number.

    Training numbers texts in sorted order. Later `texts` gives the numbers, and an unknown text is -1.
    """
    known: dict[str, list[str]] = {} if training else dict(texts)
    names = list(X.columns)
    for k in columns:
        given = X[names[k]].to_numpy()
        if given.dtype.kind in "iufb" and str(k) not in known:
            numbers = given.astype(np.float64)
        else:
            own = [None if is_missing(value) else id_text(value) for value in given.tolist()]
            if training:
                known[str(k)] = sorted({value for value in own if value is not None})
            elif str(k) not in known:
                continue  # numbers in training: the error is `refuse_categories`'
            number = {text: float(place) for place, text in enumerate(known[str(k)])}
            numbers = np.array([np.nan if value is None else number.get(value, -1.0) for value in own])
        if hasattr(X, "with_columns"):
            X = X.with_columns(type(X[names[k]])(names[k], numbers))
        else:
            X = X.assign(**{names[k]: numbers})
    return X, known


def refuse_categories(X: Any, named: Iterable[Any] = ()) -> None:
    """Raise an error for the columns of a data frame that hold categories, text or dates, with the others `named`."""
    types = {name: str(dtype) for name, dtype in zip(X.columns, X.dtypes)} if is_frame(X) else {}
    dates = [name for name, dtype in types.items() if dtype.lower().startswith(_DATES)]
    texts = [name for name, dtype in types.items() if name not in dates and is_text_type(dtype)]
    if texts or dates:
        shown = ", ".join(f"{name!r} ({types[name]})" for name in [*texts, *dates])
        wanted = [f"pass categorical={[*named, *texts]!r}"] if texts else []
        wanted += [f"convert {', '.join(map(repr, dates))} to numbers, such as days since a date"] if dates else []
        raise InvalidInputError(
            f"columns are not numbers: {shown}", remedies=[f"{', and '.join(wanted)}, or leave them out"],
            code="not-numeric",
        )  # fmt: skip


class CategoryColumns(Ranker):
    """A ranker that stores the texts of the columns named in `categorical` as `category_names_`."""

    categorical: Any

    def _frame(self, X: Any, reset: bool) -> Any:
        X = super()._frame(frame_of(X), reset)  # in the order of fit, because places name the columns of texts
        given, known = list(X.columns), list(getattr(self, "feature_names_in_", ()))
        refused = known and given and given != known and all(isinstance(name, str) for name in given)
        if reset or not refused:  # other names are refused later
            X = self._numbered(X, reset)
            refuse_categories(X, () if self.categorical is None else self.categorical)
        return X

    def _own_category_names(self) -> dict[str, list[str]]:
        names = getattr(self, "feature_names_in_", [])
        return {str(names[int(k)]): list(texts) for k, texts in getattr(self, "category_names_", {}).items()}

    def _take_category_names(self, data: RankingData | RowSource) -> None:
        names = list(data.feature_names or [])
        given = self.categorical
        known = set() if given is None else set(columns_of(given, "categorical", len(names), names).tolist())
        texts = data.category_names or {}
        if lacking := [name for name in texts if names.index(name) not in known]:
            raise InvalidInputError(
                f"columns contain categories: {', '.join(map(repr, lacking))}",
                remedies=[f"pass categorical={[*(() if given is None else given), *lacking]!r}"], code="categories",
            )  # fmt: skip
        numbered = {str(names.index(name)): list(own) for name, own in texts.items()}
        self.category_names_ = numbered

    def _numbered(self, X: Any, reset: bool) -> Any:
        """Return a data frame with numbers instead of texts in the named columns, or any other X unchanged."""
        if not is_frame(X):
            return X
        names, known = list(X.columns), getattr(self, "category_names_", {})
        given = self.categorical
        if given is None:
            declared = [] if reset else [names.index(name) for name in declared_categories(X)]
            given = sorted({*map(int, known), *declared})
        columns = columns_of(given, "categorical", len(names), names).tolist()
        X, texts = numbered_categories(X, columns, known, reset)
        if reset and texts:
            self.category_names_ = texts
        return X

    def _category_columns(self, n_features: int) -> np.ndarray | None:
        """Return the columns that `categorical` names, int64 (u,), or None for no column."""
        found = columns_of(self.categorical, "categorical", n_features, list(getattr(self, "feature_names_in_", [])))
        return found if len(found) else None
