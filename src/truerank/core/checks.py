"""Checks of arguments. The messages state what was received, what was expected and what to do."""

from __future__ import annotations

import inspect
import numbers
import re
from collections.abc import Iterable
from typing import Any, TypeGuard

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.names import repeated
from truerank.core.types import ArrayLike

_INTERVAL = re.compile(r"(int|float) in ([\[(])(\S+), (\S+?)([\])])")
LARGEST_EXACT = 2.0**53  # from here on float64 does not hold every integer


def check_not_masked(values: ArrayLike, name: str) -> None:
    """Raise for masked entries, which a conversion to a plain array would turn into values."""
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
    columns = zip(values.columns, values.dtypes) if is_frame(values) else [(None, getattr(values, "dtype", None))]
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
                f"{name} must be one array, got a {type(values).__name__} of parts with different shapes. Convert the "
                "arrays to rows with RankingData(X, y, qid)",
                argument=name,
            ) from error
    column = str(getattr(values, "type", getattr(values, "dtype", ""))).lower()
    gaps_made_floats = array.dtype.kind == "f" and column.startswith(("int64", "uint64"))
    if gaps_made_floats and np.any(np.abs(array) >= LARGEST_EXACT):
        return np.array(values.to_pylist() if hasattr(values, "to_pylist") else values.to_list(), dtype=object)
    return array


def column_labels(table: Any, name: str = "X") -> dict[str, Any]:
    """Return a mapping of text to label for the columns of a data frame or an Arrow table, {} for other values.

    Two columns with the same name are an error.
    """
    labels = list(getattr(table, "column_names", getattr(table, "columns", ())))  # Arrow's `columns` are the values
    texts = list(map(str, labels))
    if double := repeated(texts):
        also = ", or keep the first: X.loc[:, ~X.columns.duplicated()]" if hasattr(table, "loc") else ""
        raise InvalidInputError(f"{name} has two columns named {double[0]!r}. Rename one{also}.", argument=name)
    return dict(zip(texts, labels))


def as_numbers(values: ArrayLike, name: str) -> np.ndarray:
    """Convert values to float64, including nan and infinite values. Values that are not real numbers are an error."""
    array = as_array(values, name)
    if array.dtype.kind in "mM":
        check_plain(array, name)
    if array.dtype.kind == "c":
        raise InvalidInputError(f"{name} must be real numbers, got complex numbers", argument=name)
    try:
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"{name} must be numbers: {error}", argument=name) from error


def as_vector(values: ArrayLike, name: str, n: int | None = None, interval: str | None = "(-inf, inf)") -> np.ndarray:
    """Return numbers as float64 (n,), each in the interval, such as "[0, 1]"; None allows all numbers and nan."""
    array = as_numbers(values, name)
    if array.ndim != 1 or n not in (None, len(array)):
        raise InvalidInputError(
            f"{name} must have the shape ({'n' if n is None else n},), got {array.shape}", argument=name, code="shape"
        )
    if interval is not None:
        low, high = map(float, interval[1:-1].split(", "))
        inside = (array > low if interval[0] == "(" else array >= low) & (
            array < high if interval[-1] == ")" else array <= high
        )
        if not inside.all():
            row = int(np.argmin(inside))
            expected = "finite numbers" if interval == "(-inf, inf)" else f"numbers in {interval}"
            raise InvalidInputError(f"{name} must be {expected}, got {array[row]} at index {row}", argument=name)
    return array


def is_dask(values: ArrayLike) -> bool:
    """Return whether the values are a Dask array, data frame or series, which is not computed yet."""
    graph = getattr(values, "__dask_graph__", None)
    if graph is None:
        return False
    # To call Dask's own method would build the graph; that of an xarray array returns None if its values are here.
    return type(values).__module__.startswith("dask") or graph() is not None


def check_positive_int(value: Any, name: str, minimum: int = 1, maximum: int | None = None) -> int:
    """Return `value` as int, or raise unless it is an integer >= `minimum` and, if given, <= `maximum`."""
    return int(_checked(value, name, [f"int in [{minimum}, {'inf)' if maximum is None else f'{maximum}]'}"]))


def check_number(value: Any, name: str, interval: str = "(-inf, inf)") -> float:
    """Return `value` as float, or raise unless it is a finite number in the interval, such as "(0, 1]"."""
    return float(_checked(value, name, [f"float in {interval}"]))


def check_parameters(owner: Any) -> None:
    """Raise `InvalidInputError` if a parameter does not fit its text in `allowed`, a dict of the class or a base class.

    A key has one name or several. A text is "int in [1, inf)", "float in (0, 1]", "bool", a choice such as "'row'", or
    several of these separated by " | "; "?" at its end allows None.
    """
    for base in type(owner).__mro__:
        for names, text in vars(base).get("allowed", {}).items():
            for name in names.split():
                value = getattr(owner, name)
                if value is not None or not text.endswith("?"):
                    _checked(value, name, text.removesuffix("?").split(" | "))


def _checked(value: Any, name: str, kinds: list[str]) -> Any:
    """Return a value that fits one of the texts of `check_parameters`, or raise an error that lists all of them."""
    is_bool = isinstance(value, bool | np.bool_)
    words, choices = list[str](), list[str]()
    for kind in kinds:
        if kind == "bool":
            fits = is_bool
            words.append("True or False")
        elif (found := _INTERVAL.fullmatch(kind)) is not None:
            type_, left, low, high, right = found.groups()
            fits = not is_bool and isinstance(value, numbers.Integral if type_ == "int" else numbers.Real)
            x = value if not fits or type_ == "int" else float(value)
            fits = fits and (x > float(low) if left == "(" else x >= float(low))
            fits = fits and (x < float(high) if right == ")" else x <= float(high))
            whole = f"an integer >= {low}" if high == "inf" else f"an integer from {low} to {high}"
            words.append(whole if type_ == "int" else f"a number in {left}{low}, {high}{right}")
        else:
            choices.append(kind.strip("'"))
            fits = isinstance(value, str) and value == choices[-1]
        if fits:
            return value
    listed = ", ".join(map(repr, choices))
    words += [f"one of {listed}" if len(choices) > 1 else listed] if choices else []
    raise InvalidInputError(argument=name, expected=" or ".join(words), value=value)


def is_sparse(values: Any) -> bool:
    """Return whether values are a sparse matrix."""
    return hasattr(values, "tocsr")


def is_frame(values: Any) -> bool:
    """Return whether values are a data frame."""
    return hasattr(values, "columns") and hasattr(values, "dtypes")


def declared_categories(X: Any) -> list[str]:
    """Return the columns of a data frame whose type is a category."""
    types = zip(X.columns, X.dtypes) if is_frame(X) else ()
    return [name for name, dtype in types if str(dtype).lower().startswith(("categ", "enum"))]


def is_text_type(dtype: Any) -> bool:
    """Return whether a column's type, of any library, is text or categories, whose values are no numbers."""
    return str(dtype).lower().startswith(("category", "categorical", "enum", "object", "str"))


def is_table(values: Any) -> TypeGuard[Any]:
    """Return whether a value has named columns: a data frame, or an Arrow table."""
    return hasattr(values, "columns") and hasattr(values, "__getitem__")


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
    """Return `value`, or raise an error with the choices if it is not a choice."""
    options = list(choices)
    if not isinstance(value, str) or value not in options:
        raise InvalidInputError(argument=name, expected=f"one of {', '.join(map(repr, options))}", value=value)
    return value
