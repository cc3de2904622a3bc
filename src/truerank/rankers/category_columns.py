"""Columns of a data frame that hold categories: their texts as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError


def _is_missing(value: Any) -> bool:
    """Whether a value of a data frame's column is None, nan or NA."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def frame_of(X: Any) -> Any:
    """An Arrow table as a pandas data frame, whose categories are those of dictionary columns; anything else as it is.

    Raises
    ------
    InvalidInputError
        Where pandas is missing.
    """
    if not (hasattr(X, "column_names") and hasattr(X, "to_pandas")):
        return X
    try:
        return X.to_pandas()
    except ImportError as error:
        raise InvalidInputError(f"an Arrow table is read through pandas, which is missing: {error}") from error


def is_frame(X: Any) -> bool:
    """Whether X is a data frame."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def numbered_categories(
    X: Any, columns: list[int], texts: dict[str, list[str]], training: bool
) -> tuple[Any, dict[str, list[str]]]:
    """A data frame whose `columns` hold numbers in place of text and categories, and the texts by column number.

    In training a column's texts are numbered in their order; later by `texts`, and one that is not among them is -1.
    Columns that hold numbers keep them.
    """
    known: dict[str, list[str]] = {} if training else dict(texts)
    names = list(X.columns)
    for k in columns:
        given = X[names[k]].to_numpy()
        if given.dtype.kind in "iufb" and str(k) not in known:
            numbers = given.astype(np.float64)
        else:
            own = [None if _is_missing(value) else str(value) for value in given.tolist()]
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
    """An error for a data frame's columns that hold categories, text or dates."""
    if not is_frame(X):
        return
    for name, dtype in zip(X.columns, X.dtypes):
        kind = str(dtype).lower()
        if kind.startswith(("category", "categorical", "enum", "object", "str", "date", "time", "duration", "period")):
            raise InvalidInputError(
                f"column {name!r} has the type {dtype}: name it in categorical=[{name!r}], or encode "
                "it as numbers first"
            )
