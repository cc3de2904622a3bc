"""Questions `x ≤ t` and `x < t` of programs that round every feature to float32 first."""

from __future__ import annotations

from typing import Any

import numpy as np


def float32_threshold(border: np.ndarray, exact: bool) -> np.ndarray:
    """Float32 t such that `float32(x) ≤ t` answers as `x ≤ border` does, as far as float32 can tell them apart.

    A float32 number v stands for the float64 that has its shortest decimal text (0.3 for 0.3f), which is what a log or
    a LETOR file of an engine's features holds; with `exact` it stands for itself, for rows that were float32 from the
    start.
    """
    border = np.asarray(border, dtype=np.float64)
    with np.errstate(over="ignore"):
        near = border.astype(np.float32)
    near = np.where(np.isinf(near) & np.isfinite(border), np.copysign(np.finfo(np.float32).max, near), near)
    seen = near.astype(np.float64) if exact else shortest_decimal(near)
    with np.errstate(over="ignore"):
        below = np.nextafter(near, np.float32(-np.inf))
    return np.where(seen > border, below, near).astype(np.float32)


def finite_threshold(border: np.ndarray, exact: bool, below: bool = False) -> np.ndarray:
    """`float32_threshold` for formats without infinity; with `below` for programs that ask `float32(x) < t`."""
    threshold = float32_threshold(border, exact)
    if below:
        with np.errstate(over="ignore"):
            threshold = np.nextafter(threshold, np.float32(np.inf))
    largest = np.finfo(np.float32).max
    return np.clip(threshold, -largest, largest)


def shortest_decimal(values: Any) -> np.ndarray:
    """The float64 numbers that have the shortest decimal texts of `values` as float32."""
    values = np.asarray(values, dtype=np.float32)
    return np.array([float(str(value)) for value in values.ravel()], dtype=np.float64).reshape(values.shape)


def largest_rounding_to(threshold: np.ndarray) -> np.ndarray:
    """The largest float64 x with `float32(x) ≤ threshold`: `x ≤` it is the float32 question for float64 x.

    Halfway cases round to the float32 with an even last bit.
    """
    t = np.asarray(threshold, dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        above = np.nextafter(t, np.float32(np.inf)).astype(np.float64)
    above = np.where(np.isinf(above) & np.isfinite(t), 2.0**128, above)
    with np.errstate(invalid="ignore"):
        middle = t.astype(np.float64) / 2 + above / 2
    even = (t.view(np.uint32) & np.uint32(1)) == 0
    result = np.where(even, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isfinite(t), result, t.astype(np.float64))
