"""Checks of arguments. The messages state what was received, what was expected and what to do."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.types import ArrayLike

LARGEST_EXACT = 2.0**53  # from here on float64 does not hold every integer


def check_not_masked(values: ArrayLike, name: str) -> None:
    """Raise for masked entries: a conversion to a plain array would turn them into values."""
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        raise InvalidInputError(
            f"{name} is a masked array with masked entries. Fill missing values with {name}.filled(np.nan), or leave "
            "their rows out",
            argument=name,
        )


def check_plain(values: Any, name: str) -> None:
    """Raise for values that a conversion would misread: Dask collections, masked entries, dates and durations."""
    if is_dask(values):
        raise InvalidInputError(
            f"{name} is a Dask collection, and all its rows would be loaded into memory. Convert data with "
            "truerank.cluster.from_dask_collections(X, y, qid=qid) or from_dask_dataframe, or load all rows with "
            f"{name}.compute()",
            argument=name,
        )
    check_not_masked(values, name)
    is_frame = hasattr(values, "columns") and hasattr(values, "dtypes")
    columns = zip(values.columns, values.dtypes) if is_frame else [(None, getattr(values, "dtype", None))]
    for label, dtype in columns:
        if getattr(dtype, "kind", "") in ("m", "M"):
            what = name if label is None else f"column {label!r}"
            raise InvalidInputError(
                f"{what} has dates or durations ({dtype}), not numbers. Convert them to a unit, such as days with "
                "(values - values.min()) / np.timedelta64(1, 'D')",
                argument=name,
            )


def as_array(values: Any, name: str) -> np.ndarray:
    """Convert a list, an array or a column of any library's table to an array. Masked entries are an error."""
    check_not_masked(values, name)
    if type(values).__module__.partition(".")[0] == "pyarrow":
        # Its own conversion gives missing entries the last category.
        if hasattr(getattr(values, "type", None), "index_type"):  # a table has no type
            values = values.cast(values.type.value_type)
        is_uuid = "arrow.uuid" in str(getattr(values, "type", ""))  # Arrow's own conversion gives bytes
        array = np.array(values.to_pylist(), dtype=object) if is_uuid else np.asarray(values)
    else:
        try:
            array = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
        except ValueError as error:  # parts of different lengths
            raise InvalidInputError(
                f"{name} must be one array, got a {type(values).__name__} of parts with different shapes; make rows of "
                "arrays with RankingData(X, y, qid)",
                argument=name,
            ) from error
    column = str(getattr(values, "type", getattr(values, "dtype", ""))).lower()
    gaps_made_floats = array.dtype.kind == "f" and column.startswith(("int64", "uint64"))
    if gaps_made_floats and np.any(np.abs(array) >= LARGEST_EXACT):
        return np.array(values.to_pylist() if hasattr(values, "to_pylist") else values.to_list(), dtype=object)
    return array


def column_labels(table: Any, name: str = "X") -> dict[str, Any]:
    """Return the labels of a data frame's or an Arrow table's columns by their text, {} for other values.

    Two columns of one name are an error.
    """
    labels = list(getattr(table, "column_names", getattr(table, "columns", ())))  # Arrow's `columns` are the values
    texts = list(map(str, labels))
    if len(set(texts)) < len(texts):
        double = next(text for text in texts if texts.count(text) > 1)
        also = ", or keep the first: X.loc[:, ~X.columns.duplicated()]" if hasattr(table, "loc") else ""
        raise InvalidInputError(f"{name} has two columns named {double!r}. Rename one{also}.", argument=name)
    return dict(zip(texts, labels))


def as_numbers(values: ArrayLike, name: str) -> np.ndarray:
    """Convert values to float64, including nan and infinite ones. Values that are not real numbers are an error."""
    array = as_array(values, name)
    check_plain(array, name)
    if array.dtype.kind == "c":
        raise InvalidInputError(f"{name} must be real numbers, got complex ones", argument=name)
    try:
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"{name} must be numbers: {error}", argument=name) from error


def is_dask(values: ArrayLike) -> bool:
    """Whether these are a Dask array, data frame or series with values that are not computed yet."""
    graph = getattr(values, "__dask_graph__", None)
    if graph is None:
        return False
    # To call Dask's own method would build the graph; that of an xarray array returns None if its values are here.
    return type(values).__module__.startswith("dask") or graph() is not None


def check_positive_int(value: object, name: str, minimum: int = 1) -> int:
    """Return `value` as int, or raise unless it is an integer >= `minimum`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral) or value < minimum:
        raise InvalidInputError(argument=name, expected=f"an integer >= {minimum}", value=value)
    return int(value)


def check_number(
    value: Any,
    name: str,
    *,
    minimum: float = -np.inf,
    maximum: float = np.inf,
    open_minimum: bool = False,
    open_maximum: bool = False,
) -> float:
    """Return `value` as float, or raise unless it is a finite number in the interval."""
    ok = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_) and np.isfinite(float(value))
    if ok:
        x = float(value)
        ok = (x > minimum if open_minimum else x >= minimum) and (x < maximum if open_maximum else x <= maximum)
    if not ok:
        left = "(" if open_minimum or minimum == -np.inf else "["
        right = ")" if open_maximum or maximum == np.inf else "]"
        raise InvalidInputError(
            argument=name, expected=f"a number in {left}{minimum:g}, {maximum:g}{right}", value=value
        )
    return float(value)


def check_function(function: Any, what: str, arguments: str, meaning: str = "") -> None:
    """Raise unless a caller's function can be called with these arguments, such as "y, scores, offsets"."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of some functions in C
        return
    try:
        signature.bind(*arguments.split(", "))
    except TypeError as error:
        expected = f"a function of ({arguments}){meaning}"
        raise InvalidInputError(argument=what, value=str(signature), expected=expected) from error


def check_choice(value: object, name: str, choices: Iterable[str]) -> str:
    """Return `value`, or raise an error that lists the choices."""
    options = list(choices)
    if not isinstance(value, str) or value not in options:
        raise InvalidInputError(argument=name, expected=f"one of {', '.join(map(repr, options))}", value=value)
    return value
