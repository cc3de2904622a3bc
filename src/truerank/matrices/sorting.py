"""The compiled sort within a query: rows by descending score, with ties in their order."""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel

RUN = 128  # items sorted by counting, which is faster than a merge of two halves
_LANES = 16  # items counted at a time: a multiple of the width of any vector


@kernel
def _before(values, a, b):
    """Return whether item a ranks before item b: by value, largest first, then by number."""
    x, y = values[a], values[b]
    return x > y or (x == y and a < b)


@kernel
def _sort_run(values, order, spare):
    """Sort up to `RUN` items by counting the items before each, without branches that depend on values."""
    size = len(order)
    k = 1
    while k < size and not _before(values, order[k], order[k - 1]):
        k += 1
    if k >= size:
        return
    # Stage 1. Count the larger keys of each item.
    keys, items = np.empty(RUN, dtype=values.dtype), spare[:RUN]
    counts, seen = spare[RUN : 2 * RUN], spare[2 * RUN : 3 * RUN]
    wide = (size + _LANES - 1) // _LANES * _LANES
    for i in range(size):
        items[i] = order[i]
        keys[i] = values[items[i]]
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
    total, missing = np.int64(0), False
    for i in range(size):
        total += counts[i]
        missing |= keys[i] != keys[i]
        seen[i] = 0
    # Stage 2. Write each item to its place, equal ones side by side. If there are NaNs, counts are not places.
    if not missing:
        for i in range(size):
            k = counts[i]
            order[k + seen[k]] = items[i]
            seen[k] += 1
    if total == size * (size - 1) // 2:
        return
    # Stage 3. Sort equal items by their number.
    for i in range(1, size):
        item, k = order[i], i
        while k > 0 and _before(values, item, order[k - 1]):
            order[k] = order[k - 1]
            k -= 1
        order[k] = item


@kernel
def room_to_sort(size):
    """Return scratch for `sort_descending` of up to `size` items."""
    return np.empty(max(size, 3 * RUN), dtype=np.int64)


@kernel
def sort_descending(values, order, size, spare):
    """Merge sort of order[:size] in place; `spare` is `room_to_sort(size)` or more.

    The sort of a nearly sorted order is cheap: sorted runs stay, and a merge changes only the overlap of two runs.
    """
    width = RUN
    for lo in range(0, size, width):
        _sort_run(values, order[lo : min(lo + width, size)], spare)
    while width < size:
        for lo in range(0, size - width, 2 * width):
            mid, hi = lo + width, min(lo + 2 * width, size)
            if not _before(values, order[mid], order[mid - 1]):
                continue
            # The overlap: the first place of the left run that moves, and the last of the right run.
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
    """Return the number of rows of the longest query among first … last - 1."""
    longest = np.int64(0)
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    return longest


@kernel
def best_first(keys, order):
    """Write the positions of `keys` (n,) by descending key to `order`; equal keys keep their order."""
    n = keys.size
    for i in range(n):
        order[i] = i
    sort_descending(keys, order, n, room_to_sort(n))
