"""Decimal numbers in bytes, parsed to the nearest float64 by compiled code: bit for bit what Python's `float` gives.

A mantissa up to 2^53 with a power of ten up to 22 is one exact operation (Clinger 1990). Longer mantissas of at most 18
digits are divided in double-double arithmetic. The rest (more digits, far exponents, near half-way cases) is for
`float`.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel

_TEN = np.array([10.0**k for k in range(23)])  # exact
_EXACT = 1 << 53  # whole numbers up to this one are exact as float64
_SPLIT = 134217729.0  # 2^27 + 1 splits a float64 into two halves of 26 bits


@kernel
def byte(data, i):
    """Return the byte at position i >= 0. With an unsigned index, numba does not check for negative indices."""
    return data[np.uint64(i)]


@kernel
def digit(data, i):
    """Return the digit at position i; a number below 0 or above 9 if the byte is not a digit."""
    return np.int64(data[np.uint64(i)]) - 48


@kernel
def whole(data, i, value):
    """Append the digits from position i on to `value`; return the number and the position after them."""
    while True:
        d = digit(data, i)
        if d < 0 or d > 9:
            return value, i
        value = value * 10 + d
        i += 1


@kernel
def differs(data, start, stop, other, other_stop):
    """Return whether two pieces of the text differ."""
    differs, k = stop - start != other_stop - other, 0
    while not differs and k < stop - start:
        differs = byte(data, start + k) != byte(data, other + k)
        k += 1
    return differs


@kernel
def _quotient(mantissa, divisor):
    """Return the float64 nearest to mantissa / divisor, for 0 < mantissa < 2^63 and a power of ten; nan near half-way.

    The first quotient q has a remainder r that q · divisor in two halves each gives exactly (Dekker 1971). The nearest
    number is q + r / divisor, if its rounding does not depend on the last bits of r / divisor.
    """
    top = np.float64(mantissa)
    q = top / divisor
    a = _SPLIT * q
    a -= a - q
    b = _SPLIT * divisor
    b -= b - divisor
    product = q * divisor
    below = ((a * b - product) + a * (divisor - b) + (q - a) * b) + (q - a) * (divisor - b)
    correction = ((top - product) - below + np.float64(mantissa - np.int64(top))) / divisor
    low, high = q + correction * (1.0 - 1e-14), q + correction * (1.0 + 1e-14)
    return low if low == high else np.nan


@kernel
def _digits(data, i):
    """Read digits with or without a point: return the mantissa, the position after it, the digits and the decimals."""
    begin = i
    mantissa, i = whole(data, i, 0)
    if byte(data, i) != 46:  # '.'
        return mantissa, i, i - begin, 0
    point = i + 1
    mantissa, i = whole(data, point, mantissa)
    return mantissa, i, i - begin - 1, i - point


@kernel
def usual(data, i):
    """Return the number at position i, the position after it, and 1; 0 if it has over 18 digits or no space."""
    mantissa, i, digits, decimals = _digits(data, i)
    value = np.nan
    if byte(data, i) == 32 and 1 <= digits <= 18:
        value = mantissa / _TEN[decimals] if digits <= 15 else _quotient(mantissa, _TEN[decimals])
    return value, i, np.int64(value == value)


@kernel
def number(data, i):
    """Return a decimal number at position i, the position after it, and 1; 2 if `float` must parse it; 0 if there is
    none."""
    negative = False
    if byte(data, i) == 45 or byte(data, i) == 43:  # '-', '+'
        negative = byte(data, i) == 45
        i += 1
    begin = i
    mantissa, i, digits, decimals = _digits(data, i)
    exponent = -decimals
    if digits == 0:
        return 0.0, i, 0
    if byte(data, i) == 101 or byte(data, i) == 69:  # 'e', 'E'
        j = i + 1
        down = byte(data, j) == 45
        if byte(data, j) == 45 or byte(data, j) == 43:
            j += 1
        start = j
        scale = 0
        while True:
            d = digit(data, j)
            if d < 0 or d > 9:
                break
            if scale < 100_000:
                scale = scale * 10 + d
            j += 1
        if j == start:
            return 0.0, i, 0
        exponent += -scale if down else scale
        i = j
    if digits > 18:  # the mantissa may have overflowed, unless zeros led
        k = begin
        while byte(data, k) == 48 or byte(data, k) == 46:
            if byte(data, k) == 48:
                digits -= 1
            k += 1
        if digits > 18:
            return 0.0, i, 2
    if mantissa == 0:
        value = 0.0
    elif mantissa <= _EXACT and -22 <= exponent <= 22:
        value = mantissa / _TEN[-exponent] if exponent < 0 else mantissa * _TEN[exponent]
    elif -22 <= exponent <= 0:
        value = _quotient(mantissa, _TEN[-exponent])
    else:
        value = np.nan
    if value != value:
        return 0.0, i, 2
    return -value if negative else value, i, 1
