"""Thresholds of questions `x ≤ t` and `x < t` for programs that round features to float32 first."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.checks import is_sparse
from truerank.core.types import ArrayLike, Matrix

INPUTS = {
    "float32": "float32 numbers", "float64": "float64 numbers", "decimal": "decimal texts",
    "close": "float64 numbers too close for float32",
}  # fmt: skip
"""Kinds of numbers in columns: the float64 numbers that round to a float32 number."""
_SAMPLE, _LONG = 4096, 256  # rows, and numbers without a short text
_SORTED = 65_536  # numbers, or 1,024 rows of them
_MERGED = 0.01  # share of a column's different values; rounding merges fewer of values that fill a range
_BLOCK_VALUES = 16_384  # that stay in a processor's cache


def float32_threshold(border: np.ndarray, inputs: str) -> np.ndarray:
    """Return a float32 number t such that `float32(x) ≤ t` equals `x ≤ border` for all x of the kind `inputs`.

    In "decimal" rows, x is the shortest decimal text of a float32 number (0.3 for 0.3f), as in a log or a LETOR file.
    In "float32" rows, x is a float32 number. In "float64" rows, x is any float64 number, so that numbers just above a
    border are treated like the border, except for the float32 number that follows a border immediately: such a border
    means `x < t`, as below the number of a category.
    """
    border = np.asarray(border, dtype=np.float64)
    with np.errstate(over="ignore"):
        near = border.astype(np.float32)
    near = np.where(np.isinf(near) & np.isfinite(border), np.copysign(np.finfo(np.float32).max, near), near)
    with np.errstate(over="ignore"):
        below = np.nextafter(near, np.float32(-np.inf))
        over = np.nextafter(border, np.inf) == near
    if inputs != "float64":
        over = (near.astype(np.float64) if inputs == "float32" else shortest_decimal(near)) > border
    return np.where(over, below, near).astype(np.float32)


def finite_threshold(border: np.ndarray, inputs: str, below: bool = False) -> np.ndarray:
    """Return a finite `float32_threshold`; with `below`, the threshold for programs that test `float32(x) < t`."""
    threshold = float32_threshold(border, inputs)
    if below:
        with np.errstate(over="ignore"):
            threshold = np.nextafter(threshold, np.float32(np.inf))
    largest = np.finfo(np.float32).max
    return np.clip(threshold, -largest, largest)


def shortest_decimal(values: ArrayLike) -> np.ndarray:
    """Return the float64 numbers with the shortest decimal texts of `values` as float32."""
    return np.asarray(values, dtype=np.float32).astype("U").astype(np.float64)


def largest_rounding_to(threshold: np.ndarray) -> np.ndarray:
    """Return the largest float64 x with `float32(x) ≤ threshold`; halfway cases round to an even last bit."""
    t = np.asarray(threshold, dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        above = np.nextafter(t, np.float32(np.inf)).astype(np.float64)
    above = np.where(np.isinf(above) & np.isfinite(t), 2.0**128, above)
    with np.errstate(invalid="ignore"):
        middle = t.astype(np.float64) / 2 + above / 2
    even = (t.view(np.uint32) & np.uint32(1)) == 0
    result = np.where(even, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isfinite(t), result, t.astype(np.float64))


def inputs_of(X: Matrix) -> str:
    """Return the kind of numbers in a matrix, a key of `INPUTS`, determined from a sample of rows.

    "decimal" is a matrix whose numbers all have short texts. "close" is a matrix of float64 numbers with a column in
    which rounding to float32 makes different numbers equal: whole numbers above 2^24, times in seconds with fractions,
    small differences of large numbers.

    Examples
    --------
    >>> inputs_of(np.array([[0.3, 2.0]])), inputs_of(np.array([[1 / 3]])), inputs_of(np.float32([[0.3, 2.0]]))
    ('decimal', 'float64', 'float32')
    """
    return numbers_of(X)[0]


def numbers_of(X: Matrix) -> tuple[str, list[int]]:
    """Return `inputs_of(X)`, and the columns that make a matrix "close"."""
    values: np.ndarray = X.data if is_sparse(X) else np.asarray(X)  # type: ignore[attr-defined]
    step = max(1, len(values) // max(1, _SAMPLE // max(1, values.size // max(1, len(values)))))
    sample = values[::step].ravel()
    if values.dtype != np.float32 and _are_decimals(sample[:8]) and _are_decimals(sample):
        return "decimal", []
    if are_float32(values):
        return "float32", []
    # Columns in which rounding merges different numbers.
    n_rows = min(_SAMPLE, max(1024, _SORTED // max(1, X.shape[1])))
    rows = X[:: max(1, -(-X.shape[0] // n_rows))]
    if is_sparse(rows):
        rows = rows.tocsc()
        parts = np.split(rows.data, rows.indptr[1:-1])
    else:
        parts = [np.ascontiguousarray(rows.T)]
    close = []
    for values in parts:
        finite = np.isfinite(values)
        if not finite.all():
            values = np.where(finite, values, np.nan)
        most = np.count_nonzero(finite, axis=-1)
        different = []
        for kind in (np.float32, np.float64):
            with np.errstate(over="ignore"):
                ordered = np.sort(values.astype(kind))  # nan comes last
            steps = ordered[..., 1:] > ordered[..., :-1]
            different.append(np.count_nonzero(steps, axis=-1) + (most > 0))
            if (different[0] >= (1.0 - _MERGED) * most).all():
                break
        close.append(different[0] < (1.0 - _MERGED) * different[-1])
    found = np.flatnonzero(np.hstack(close)).tolist() if close else []
    return "close" if found else "float64", found


def holds_missing(X: Any) -> bool:
    """Return whether a number of a dense or sparse matrix is nan."""
    values = X.data if is_sparse(X) else X
    return bool(np.isnan(np.min(values, initial=np.inf)))  # a minimum with a nan is nan


def are_float32(values: np.ndarray) -> bool:
    """Return whether all numbers are float32 numbers, nan or infinite."""
    if values.dtype == np.float32:
        return True
    step = max(1, _BLOCK_VALUES // max(1, values.size // max(1, len(values))))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(values), step):
            part = values[start : start + step]
            other = part[part != part.astype(np.float32)]
            if not np.isnan(other).all():
                return False
    return True


def _are_decimals(values: np.ndarray) -> bool:
    """Return whether every number has the shortest decimal text of a float32 number."""
    values = values[np.isfinite(values) & (values != 0)]
    # Six digits always are one: whole multiples of a power of ten that float64 holds.
    digits = 5.0 - np.floor(np.log10(np.abs(values)))
    usual = np.abs(digits) <= 22
    power = 10.0 ** np.where(usual, digits, 0.0)
    with np.errstate(over="ignore"):
        short = usual & (digits >= 0) & (np.rint(values * power) / power == values)
        rest = values[~short][:_LONG]
        few = rest[:8]  # of other numbers hardly any pass
        return np.array_equal(few, shortest_decimal(few)) and np.array_equal(rest, shortest_decimal(rest))
