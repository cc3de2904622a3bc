"""Decimal numbers in bytes, parsed to the nearest float64 by compiled code: bit for bit what Python's `float` gives.

A mantissa up to 2^53 with a power of ten up to 22 is one exact operation (Clinger 1990). Up to 18 significant digits
are multiplied by a 128-bit power of ten (Lemire, *Number parsing at a gigabyte per second*, Software: Practice and
Experience 51, 2021, algorithm 1); what is left over (more digits, far exponents, near half-way cases) is for `float`.
"""

from __future__ import annotations

import math

import numpy as np

from truerank.core.kernel import kernel

POWERS = 128  # largest power of ten, up or down, that the kernel multiplies by


def _power_tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Upper and lower half of the 128 leading bits of 10^q for |q| <= POWERS, and the binary exponents."""
    high, low, exponents = [], [], []
    for q in range(-POWERS, POWERS + 1):
        if q >= 0:
            value = 10**q
            shift = value.bit_length() - 128
            mantissa = value >> shift if shift >= 0 else value << -shift
        else:
            divisor = 10**-q
            shift = -(127 + divisor.bit_length())
            mantissa = (1 << -shift) // divisor + 1  # rounded up, as the algorithm's proof asks
            if mantissa.bit_length() > 128:
                shift += mantissa.bit_length() - 128
                mantissa >>= mantissa.bit_length() - 128
        high.append(mantissa >> 64)
        low.append(mantissa & (2**64 - 1))
        exponents.append(shift)
    return np.array(high, dtype=np.uint64), np.array(low, dtype=np.uint64), np.array(exponents, dtype=np.int64)


_HIGH, _LOW, _SHIFT = _power_tables()
TEN = np.array([10.0**k for k in range(23)])  # exact
_TWO_BIAS = 600
_TWO = np.array([math.ldexp(1.0, k - _TWO_BIAS) for k in range(2 * _TWO_BIAS)])


@kernel
def byte(data, i):
    """Byte at place i >= 0. An unsigned index spares numba the check for negative ones."""
    return data[np.uint64(i)]


@kernel
def digit(data, i):
    """The digit at place i; below 0 or above 9 where none stands there."""
    return np.int64(data[np.uint64(i)]) - 48


@kernel
def whole(data, i, value):
    """The digits from place i on, behind those of `value`, as one number, and the place behind them."""
    while True:
        d = digit(data, i)
        if d < 0 or d > 9:
            return value, i
        value = value * 10 + d
        i += 1


@kernel
def _multiply_high(a, b):
    """Upper and lower 64 bits of a product of two unsigned 64-bit numbers."""
    mask = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
    low, middle, cross, high = a0 * b0, a1 * b0, a0 * b1, a1 * b1
    carry = (low >> half) + (middle & mask) + (cross & mask)
    return high + (middle >> half) + (cross >> half) + (carry >> half), (carry << half) | (low & mask)


@kernel
def nearest(mantissa, exponent):
    """The float64 nearest to mantissa · 10^exponent, ties to even; nan where this cannot tell.

    `mantissa` is in 1 .. 2^63 - 1, |exponent| <= POWERS. With w the mantissa shifted so that its top bit is bit 63 and
    T the 128-bit power of ten, w · T's upper 128 bits hold the 53 bits wanted, a bit to round by, and the rest.
    """
    w = np.uint64(mantissa)
    shift = 0
    step = 32
    while step > 0:
        if w >> np.uint64(64 - step) == np.uint64(0):
            w <<= np.uint64(step)
            shift += step
        step >>= 1
    place = exponent + POWERS
    high, low = _multiply_high(w, _HIGH[place])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        # The bits below the rounding bit are all ones: the table's lower half may carry into them.
        more, _ = _multiply_high(w, _LOW[place])
        room = np.uint64(0xFFFFFFFFFFFFFFFF) - low
        if more > room:
            low = more - room - np.uint64(1)
            high += np.uint64(1)
        else:
            low += more
        if high & np.uint64(0x1FF) == np.uint64(0x1FF) and low == np.uint64(0xFFFFFFFFFFFFFFFF):
            return np.nan
    top = high >> np.uint64(63)
    drop = top + np.uint64(9)
    m = high >> drop  # 54 bits: 53 and one to round by
    rest = high & ((np.uint64(1) << drop) - np.uint64(1))
    if (rest == np.uint64(0) and low <= np.uint64(1)) and (m & np.uint64(1)) == np.uint64(1):
        # Half-way between two numbers as far as this product tells.
        return np.nan
    m = (m + np.uint64(1)) >> np.uint64(1)
    # mantissa = w / 2^shift, 10^exponent = T · 2^_SHIFT, the product's upper half counts 2^128.
    power = _SHIFT[place] + 128 - shift + np.int64(drop) + 1
    return np.float64(m) * _TWO[power + _TWO_BIAS]


@kernel
def number(data, i):
    """A decimal number at place i: its value, the place behind it, and 1; 2 where `float` must settle it; 0 if none."""
    negative = False
    if byte(data, i) == 45 or byte(data, i) == 43:  # '-', '+'
        negative = byte(data, i) == 45
        i += 1
    begin = i
    mantissa, i = whole(data, i, 0)
    digits = i - begin
    exponent = 0
    if byte(data, i) == 46:  # '.'
        i += 1
        point = i
        mantissa, i = whole(data, i, mantissa)
        exponent = point - i
        digits -= exponent
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
    elif mantissa <= 9007199254740992 and -22 <= exponent <= 22:
        value = mantissa / TEN[-exponent] if exponent < 0 else mantissa * TEN[exponent]
    elif -POWERS <= exponent <= POWERS:
        value = nearest(mantissa, exponent)
        if value != value:
            return 0.0, i, 2
    else:
        return 0.0, i, 2
    return -value if negative else value, i, 1
