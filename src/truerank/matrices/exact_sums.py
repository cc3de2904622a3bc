"""Exact sums of floating-point numbers, which do not depend on order and partitioning.

A number is an integer of 53 bits times a power of two. Integers are added by exponent, in two halves with room for 2^36
terms. A single division at the end rounds the sum.
"""

from __future__ import annotations

import math

import numpy as np

from truerank.core.kernel import kernel

_HALF = 26  # bits of the lower half of a mantissa
_LEAST = 1074  # 2^-1074 is the smallest float64
EVERY_BIT = np.uint64(2**64 - 1)
MAGNITUDE = np.uint64(2**63 - 1)  # the bits of a number without its sign


def exact_parts(values: np.ndarray) -> np.ndarray:
    """Return the sums of the mantissas of `values` (n,) by exponent, int64 (2, 2048), in O(n)."""
    parts = np.zeros((2, 2048), dtype=np.int64)
    add_numbers(np.array(values, dtype=np.float64, order="C").view(np.uint64), EVERY_BIT, parts)
    return parts


def exact_total(parts: np.ndarray) -> float:
    """Return the number nearest to the sum of these `exact_parts`; NaN if a term was NaN or infinite.

    >>> exact_total(exact_parts(np.array([1e100, 1.0, -1e100])))
    1.0
    >>> exact_total(exact_parts(np.array([0.1] * 10)) + exact_parts(np.array([])))
    1.0
    """
    if parts[:, 2047].any():
        return math.nan
    total = 0
    for exponent in np.flatnonzero(parts.any(axis=0)).tolist():
        total += ((int(parts[0, exponent]) << _HALF) + int(parts[1, exponent])) << (exponent - 1)
    try:
        return total / (1 << _LEAST)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def exact_sum(values: np.ndarray) -> float:
    """Return the sum of `values` (n,), rounded once."""
    return exact_total(exact_parts(values))


@kernel
def add_numbers(bits, mask, parts):
    """Add the float64 numbers with these bits (n,), after the mask, to `exact_parts`; infinity and NaN at 2047."""
    for i in range(bits.size):
        word = bits[i] & mask
        exponent = np.int64((word >> np.uint64(52)) & np.uint64(2047))
        mantissa = word & ((np.uint64(1) << np.uint64(52)) - np.uint64(1))
        if exponent == 2047:
            parts[0, 2047] += 1
            continue
        if exponent > 0:
            mantissa |= np.uint64(1) << np.uint64(52)
        else:
            exponent = np.int64(1)
        upper = np.int64(mantissa >> np.uint64(26))
        lower = np.int64(mantissa & ((np.uint64(1) << np.uint64(26)) - np.uint64(1)))
        if word >> np.uint64(63):
            upper, lower = -upper, -lower
        parts[0, exponent] += upper
        parts[1, exponent] += lower
