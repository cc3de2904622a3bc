"""The compiled sort within a query: rows by descending score, equal ones in their order.

Another one has its reasons: `losses/graded_pairs` carries the keys along and starts from the last order.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel


@kernel
def _before(values, a, b):
    """Whether item a ranks before item b: by value, largest first, then by number, so that the order is unique."""
    return values[a] > values[b] or (values[a] == values[b] and a < b)


@kernel
def sort_descending(values, order, size, spare):
    """Merge sort of order[:size] in place; runs of 12 by insertion. Cheap where the order is nearly right already:
    a merge touches only the stretch in which the two runs overlap."""
    width = 12
    for lo in range(0, size, width):
        hi = min(lo + width, size)
        for i in range(lo + 1, hi):
            item = order[i]
            k = i
            while k > lo and _before(values, item, order[k - 1]):
                order[k] = order[k - 1]
                k -= 1
            order[k] = item
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
    sort_descending(keys, order, n, np.empty(n, dtype=np.int64))
