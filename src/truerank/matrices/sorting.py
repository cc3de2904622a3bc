"""The compiled sort within a query: rows by descending score, equal ones in their order.

Another one has its reasons: `losses/graded_pairs` carries the keys along and starts from the last order.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel

RUN = 128  # items sorted by counting, which beats two runs of half the size and their merge
_LANES = 16  # counts are made for so many items at a time: whole vectors, however they are wide


@kernel
def _before(values, a, b):
    """Whether item a ranks before item b: by value, largest first, then by number, so that the order is unique."""
    x, y = values[a], values[b]
    return x > y or (x == y and a < b)


@kernel
def order_run(keys, items, spare, order):
    """Write up to `RUN` items into `order` by falling key, equal ones as they stand; returns whether some are equal.

    By counting how many keys are larger than each, without a branch that depends on them: half the time of insertion.
    With nan among the keys the items stay as they stand.
    `keys` and `items` have room for `RUN`, `spare` for twice that.
    """
    size, counts, seen = len(order), spare[:RUN], spare[RUN : 2 * RUN]
    wide = (size + _LANES - 1) // _LANES * _LANES
    for i in range(wide):
        counts[i] = 0
    fours = size - size % 4
    for j in range(0, fours, 4):
        a, b, c, d = keys[j], keys[j + 1], keys[j + 2], keys[j + 3]
        for i in range(wide):
            x = keys[i]
            counts[i] += np.int64(a > x) + np.int64(b > x) + np.int64(c > x) + np.int64(d > x)
    for j in range(fours, size):
        a = keys[j]
        for i in range(wide):
            counts[i] += a > keys[i]
    total = np.int64(0)
    for i in range(size):
        total += counts[i]
        seen[i] = 0
    if total == size * (size - 1) // 2:
        for i in range(size):
            order[counts[i]] = items[i]
        return False
    for i in range(size):
        if keys[i] != keys[i]:  # beside nan, which is neither larger nor smaller, counts are no places
            for k in range(size):
                order[k] = items[k]
            return True
    for i in range(size):
        k = counts[i]
        order[k + seen[k]] = items[i]
        seen[k] += 1
    return True


@kernel
def _sort_run(values, order, spare):
    size = len(order)
    k = 1
    while k < size and not _before(values, order[k], order[k - 1]):
        k += 1
    if k >= size:
        return
    keys, items = np.empty(RUN, dtype=values.dtype), spare[:RUN]
    for i in range(size):
        items[i] = order[i]
        keys[i] = values[items[i]]
    if not order_run(keys, items, spare[RUN:], order):
        return
    for i in range(1, size):  # equal ones by number
        item, k = order[i], i
        while k > 0 and _before(values, item, order[k - 1]):
            order[k] = order[k - 1]
            k -= 1
        order[k] = item


@kernel
def room_to_sort(size):
    """Room for `sort_descending` to sort up to so many items."""
    return np.empty(max(size, 3 * RUN), dtype=np.int64)


@kernel
def sort_descending(values, order, size, spare):
    """Merge sort of order[:size] in place; `spare` is `room_to_sort(size)` or more.

    Cheap where the order is nearly right already: a run that is in order is left alone, and a merge touches only
    the stretch in which the two runs overlap.
    """
    width = RUN
    for lo in range(0, size, width):
        _sort_run(values, order[lo : min(lo + width, size)], spare)
    while width < size:
        for lo in range(0, size - width, 2 * width):
            mid, hi = lo + width, min(lo + 2 * width, size)
            if not _before(values, order[mid], order[mid - 1]):
                continue
            # The first place of the left run that moves, and the last of the right run.
            first, stop = lo, mid
            while first < stop:
                k = (first + stop) // 2
                if _before(values, order[mid], order[k]):
                    stop = k
                else:
                    first = k + 1
            start, last = mid, hi
            while start < last:
                k = (start + last) // 2
                if _before(values, order[k], order[mid - 1]):
                    start = k + 1
                else:
                    last = k
            count = mid - first
            for k in range(count):
                spare[k] = order[first + k]
            i, j, k = 0, mid, first
            while i < count and j < last:
                if _before(values, order[j], spare[i]):
                    order[k] = order[j]
                    j += 1
                else:
                    order[k] = spare[i]
                    i += 1
                k += 1
            while i < count:
                order[k] = spare[i]
                i += 1
                k += 1
        width *= 2


@kernel
def longest_query(offsets, first, last):
    """Rows of the longest of the queries first … last - 1: room for a sort."""
    longest = np.int64(0)
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    return longest


@kernel
def best_first(keys, order):
    """The places of `keys` (n,) from the largest down into `order`, equal ones in their order."""
    n = keys.size
    for i in range(n):
        order[i] = i
    sort_descending(keys, order, n, room_to_sort(n))
