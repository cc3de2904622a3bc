"""Columns that hold categories: replace the texts of a data frame by numbers, and keep the texts in the ranker."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.data.grouping import id_text, is_missing
from truerank.data.ranking_data import RankingData
from truerank.data.row_source import RowSource
from truerank.rankers.base import Ranker
from truerank.rankers.column_settings import columns_of


def frame_of(X: object) -> Any:
    """Return an Arrow table as a pandas data frame, or any other X unchanged. Raises an error if pandas is missing."""
    if not (hasattr(X, "column_names") and hasattr(X, "to_pandas")):
        return X
    try:
        return X.to_pandas()
    except ImportError as error:
        raise InvalidInputError(f"an Arrow table is read through pandas, which is missing: {error}") from error


def is_frame(X: object) -> bool:
    """Whether X is a data frame."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


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


def refuse_categories(X: Any) -> None:
    """Raise an error for a column of a data frame that holds categories, text or dates."""
    if not is_frame(X):
        return
    for name, dtype in zip(X.columns, X.dtypes):
        kind = str(dtype).lower()
        if kind.startswith(("category", "categorical", "enum", "object", "str", "date", "time", "duration", "period")):
            dated = kind.startswith(("date", "time", "duration", "period"))
            instead = "make a number of it, such as days since then" if dated else f"name it in categorical=[{name!r}]"
            raise InvalidInputError(f"column {name!r} has the type {dtype}: {instead}, or leave it out")


class CategoryColumns(Ranker):
    """A ranker that stores the texts of the columns named in `categorical` as `category_names_`."""

    categorical: Any

    def _frame(self, X: Any, reset: bool) -> Any:
        X = super()._frame(frame_of(X), reset)  # in the order of fit, because places name the columns of texts
        given, known = list(X.columns), list(getattr(self, "feature_names_in_", ()))
        refused = known and given and given != known and all(isinstance(name, str) for name in given)
        if reset or not refused:  # other names are refused later
            X = self._numbered(X, reset)
            refuse_categories(X)
        return X

    def _own_category_names(self) -> dict[str, list[str]]:
        names = getattr(self, "feature_names_in_", [])
        return {str(names[int(k)]): list(texts) for k, texts in getattr(self, "category_names_", {}).items()}

    def _take_category_names(self, data: RankingData | RowSource) -> None:
        names = list(data.feature_names or [])
        given = self.categorical
        known = set() if given is None else set(columns_of(given, "categorical", len(names), names).tolist())
        numbered = {}
        for name, texts in (data.category_names or {}).items():
            if names.index(name) not in known:
                raise InvalidInputError(f"column {name!r} holds categories: name it in categorical=[{name!r}]")
            numbered[str(names.index(name))] = list(texts)
        self.category_names_ = numbered

    def _numbered(self, X: Any, reset: bool) -> Any:
        """Return a data frame with numbers instead of texts in the named columns, or any other X unchanged."""
        if self.categorical is None or not is_frame(X):
            return X
        names = list(X.columns)
        columns = columns_of(self.categorical, "categorical", len(names), names).tolist()
        X, texts = numbered_categories(X, columns, getattr(self, "category_names_", {}), reset)
        if reset and texts:
            self.category_names_ = texts
        return X

    def _category_columns(self, n_features: int) -> np.ndarray | None:
        """Return the columns that hold categories, int64 (u,), or None."""
        if self.categorical is None:
            return None
        found = columns_of(self.categorical, "categorical", n_features, list(getattr(self, "feature_names_in_", [])))
        return found if len(found) else None
