"""An order of rows and queries by content, and scales of columns, both independent of the order of the file."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.kernel import kernel, kernel_array
from truerank.core.threads import row_blocks
from truerank.core.types import SparseMatrix
from truerank.data.grouping import at_places, query_of_rows, sums_by_query
from truerank.matrices.binned import BinnedMatrix, StoredMatrix
from truerank.matrices.stored_values import csr_parts

LEAST_SPREAD, MOST_SPREAD, MOST_RATIO = 0.01, 10.0, 100.0  # see `scales_of_spread`
_BLOCK_VALUES = 1 << 18  # numbers in a block of rows
_FEW = 1 << 16  # numbers for which NumPy takes a millisecond: a first small fit does not compile a kernel for them
_FIRST_FACTOR, _SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # SplitMix64's


def order_by_content(
    X: StoredMatrix, y: np.ndarray, offsets: np.ndarray, query_weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return an order of the rows of X (n, p) within queries, and of queries, that depends only on their content.

    A learner that breaks ties, draws or sums in this order has the same bits for any order of the rows and queries.
    Rows are ordered by a hash of their values, then by grade. Queries are ordered by a hash of their rows, then of rows
    and grades, then by weight. Rows with the same values and grade may be in any order.

    Returns rows int64 (n,), with the rows of a query together, and queries int64 (m,). The 64-bit hashes cost O(n p)
    and are equal for float32, float64, dense and sparse values; the sorts cost O(n log n).

    Examples
    --------
    >>> X, y, offsets = np.array([[1.0], [2.0], [3.0]]), np.array([0.0, 1.0, 0.0]), np.array([0, 2, 3])
    >>> rows, queries = order_by_content(X, y, offsets)
    >>> turned, _ = order_by_content(X[[1, 0, 2]], y[[1, 0, 2]], offsets)
    >>> X[rows].ravel().tolist() == X[[1, 0, 2]][turned].ravel().tolist()
    True
    """
    rows, queries, _ = order_and_keys(X, y, offsets, query_weight)
    return rows, queries


def order_and_keys(
    X: StoredMatrix, y: np.ndarray, offsets: np.ndarray, query_weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return the order of `order_by_content`, and the keys (m,) for `np.lexsort` of the queries in this order."""
    keys, grades, own, with_grades = content_hashes(X, y, offsets)
    weight = np.ones(len(offsets) - 1) if query_weight is None else query_weight
    queries = np.lexsort((weight, with_grades, own))
    # The rows of each query by key, equal keys by grade, then by row, one query after the other.
    offsets = np.ascontiguousarray(offsets, dtype=np.int64)
    sizes = np.diff(offsets)
    if len(keys) <= _FEW:
        rows = np.argsort(keys)
        place = at_places(np.arange(len(queries), dtype=np.min_scalar_type(len(queries))), queries)
        rows = rows[np.argsort(place[query_of_rows(offsets)[rows]], kind="stable")]
    else:
        rows = np.empty(len(keys), dtype=np.int64)
        _sort_within(keys, offsets, queries, rows, np.empty(sizes.max(initial=0), dtype=np.int64))
    ranked = keys[rows]
    tied = np.append(False, ranked[1:] == ranked[:-1])
    if tied.any():
        tied[:-1] |= tied[1:]
        members = rows[tied]
        place = np.repeat(np.arange(len(queries)), sizes[queries])[tied]
        rows[tied] = members[np.lexsort((members, grades[members], keys[members], place))]
    return rows, queries, (weight[queries], with_grades[queries], own[queries])


def content_hashes(
    X: StoredMatrix, y: np.ndarray, offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return hashes and grades of rows, and hashes of queries without and with grades."""
    keys = row_hashes(X)
    grades = np.asarray(y, dtype=np.float64) + 0.0  # -0.0 is 0.0
    own = sums_by_query(hashed(keys), offsets)
    return keys, grades, own, sums_by_query(hashed(keys ^ hashed(grades.view(np.uint64))), offsets)


def squares_and_counts(
    X: np.ndarray | SparseMatrix, rows: np.ndarray, offsets: np.ndarray, query_weight: np.ndarray, unit: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of squares of each column (p,) for `scales_of_spread`, in a `unit` (p,), and their number.

    `rows` int64 (n,) is the row of X at each position of `offsets`. Each row has the weight of its query. Both results
    can be summed over parts of the queries.
    """
    by_position = np.repeat(query_weight, np.diff(offsets))
    p = X.shape[1]
    if isinstance(X, np.ndarray):
        room = np.zeros((3, p))
        _add_squares(kernel_array(X), rows, offsets, query_weight, 1.0 / unit, room)
        return room[2], np.full(p, by_position.sum())
    data, indices, starts = csr_parts(X)
    weight = np.repeat(at_places(by_position, rows), np.diff(starts))
    shares = np.abs(data) / unit[indices]
    # A sum that is the same for any order of the rows.
    order = np.lexsort((shares,) if (query_weight == 1.0).all() else (weight, shares))
    shares, indices, weight = shares[order], indices[order], weight[order]
    return np.bincount(indices, weight * shares**2, minlength=p), np.bincount(indices, weight, minlength=p)


def largest_magnitudes(X: np.ndarray | SparseMatrix) -> np.ndarray:
    """Return the largest magnitude in each column of an array or a CSR matrix, float64 (p,); 0 without entries."""
    if isinstance(X, np.ndarray):
        low, high = reduced_columns(np.minimum, X, initial=0), reduced_columns(np.maximum, X, initial=0)
        return np.maximum(high, -low).astype(np.float64)
    largest = np.zeros(X.shape[1])
    np.maximum.at(largest, X.indices, np.abs(X.data.astype(np.float64)))
    return largest


def reduced_columns(extreme: np.ufunc, X: np.ndarray, initial: float) -> np.ndarray:
    """Return `extreme.reduce(X, axis=0)` of rows (n, p); several rows at once take a quarter of the time."""
    n, p = X.shape
    several = max(1, 1024 // max(1, p))
    whole = n // several * several
    wide = extreme.reduce(X[:whole].reshape(whole // several, several * p), axis=0, initial=initial)
    ends: np.ndarray = extreme.reduce(np.concatenate([wide.reshape(several, p), X[whole:]]), axis=0, initial=initial)
    return ends


def scales_of_spread(spread: np.ndarray) -> np.ndarray | None:
    """Return scales that make very different spreads of columns similar, or None if scales are not necessary.

    The `spread` (p,) of a dense column is its standard deviation within the queries, and of a sparse column the root
    mean square of its entries. Scales are not necessary if the largest spread is between `LEAST_SPREAD` and
    `MOST_SPREAD` and at most `MOST_RATIO` times any other nonzero spread. Scales are powers of two, so that divisions
    are exact, and 0 for columns that are constant within every query.

    Examples
    --------
    >>> scales_of_spread(np.array([0.5, 1e6, 0.0])).tolist()
    [0.5, 1048576.0, 0.0]
    >>> scales_of_spread(np.array([0.5, 2.0, 0.0])) is None
    True
    """
    there = spread[spread > 0]
    if len(there) == 0:
        return None
    most = float(there.max())
    if LEAST_SPREAD <= most <= MOST_SPREAD and most / MOST_RATIO <= float(there.min()):
        return None
    return np.where(spread > 0, powers_of_two(spread), 0.0)


def inverse_scales(scale: np.ndarray) -> np.ndarray:
    """Return the factors of columns: 1 / scale, or 0 for a scale of 0, which leaves the column out."""
    return np.divide(1.0, scale, out=np.zeros(len(scale)), where=scale > 0)


def powers_of_two(values: np.ndarray) -> np.ndarray:
    """Return the power of two nearest (in the exponent) to each value, 1 for 0, between 2^-1000 and 2^1000."""
    safe = np.where(values > 0, values, 1.0)
    return np.asarray(np.exp2(np.clip(np.round(np.log2(safe)), -1000, 1000)))


def hashed(words: np.ndarray) -> np.ndarray:
    """Return the finaliser of SplitMix64 of each uint64: every bit of the input changes half of the output's bits."""
    words = words ^ (words >> np.uint64(30))
    words *= _FIRST_FACTOR
    words ^= words >> np.uint64(27)
    words *= _SECOND_FACTOR
    words ^= words >> np.uint64(31)
    return words


def row_hashes(X: StoredMatrix, rounded: bool = False) -> np.ndarray:
    """Return the hash of each row, uint64 (n,), from `Σ_j constant_j · word_j` modulo 2^64.

    The words are the bits of float64 numbers, or with `rounded` the bits of float32 numbers and codes. 0 has the word
    0.
    """
    n, p = X.shape
    constants = hashed(np.arange(1, p + 1, dtype=np.uint64)) | np.uint64(1)
    values = X.codes if isinstance(X, BinnedMatrix) else X
    if not isinstance(values, np.ndarray):
        return hashed(sums_by_query(_words(values.data, rounded) * constants[values.indices], values.indptr))
    keys = np.empty(n, dtype=np.uint64)
    with np.errstate(all="ignore"):  # where kernels run as plain Python
        for start, stop in row_blocks(n, max(1, _BLOCK_VALUES // max(p, 1))):  # what must be copied is small
            part = values[start:stop]
            if rounded and part.dtype.kind != "f":  # codes are their own words
                keys[start:stop] = hashed(part.astype(np.uint64) @ constants)
            elif values.size <= _FEW:
                keys[start:stop] = hashed(_words(part, rounded) @ constants)
            else:
                _hash_rows(kernel_array(part), rounded, constants, keys[start:stop])
    return keys


def _words(values: np.ndarray, rounded: bool) -> np.ndarray:
    """Return the words of numbers, uint64, as `row_hashes` defines them."""
    number: Any = np.float32 if rounded else np.float64
    word, half = (np.uint32, 16) if rounded else (np.uint64, 32)
    with np.errstate(over="ignore", under="ignore"):
        numbers = values.astype(number) + number(0)  # -0.0 is 0.0
    if rounded:
        numbers[np.isnan(numbers)] = np.nan  # of one form
    words = numbers.view(word)
    words ^= words >> word(half)  # the low half of short numbers is 0
    return words.astype(np.uint64, copy=False)


@kernel
def _finished(word):
    """Return the hash of one word, as `hashed` computes it."""
    word = (word ^ (word >> np.uint64(30))) * _FIRST_FACTOR
    word = (word ^ (word >> np.uint64(27))) * _SECOND_FACTOR
    return word ^ (word >> np.uint64(31))


@kernel
def _hash_rows(values, rounded, constants, keys):
    """Write the hash of `Σ_j constants[j] · word_j` of each row to `keys`; see `row_hashes`."""
    n, p = values.shape
    numbers, short = np.empty(p), np.empty(p, dtype=np.float32)
    words, short_words = numbers.view(np.uint64), short.view(np.uint32)
    half, quarter = np.uint64(32), np.uint32(16)
    for i in range(n):
        key = np.uint64(0)
        if rounded:
            for j in range(p):
                x = np.float32(values[i, j]) + np.float32(0.0)
                short[j] = x if x == x else np.float32(np.nan)
            for j in range(p):
                key += np.uint64(short_words[j] ^ (short_words[j] >> quarter)) * constants[j]
        else:
            for j in range(p):
                numbers[j] = values[i, j] + 0.0
            for j in range(p):
                key += (words[j] ^ (words[j] >> half)) * constants[j]
        keys[i] = _finished(key)


@kernel
def _sort_within(keys, offsets, queries, rows, ends):
    """Write the rows of each query to `rows` by ascending key, stably.

    Keys are hashes, uniform over 64 bits: a row goes to the part of the query's range given by its key, and
    insertion does the rest, in a third of the time of a merge sort. `ends` is scratch for the longest query.
    """
    half = np.uint64(32)
    first = 0
    for query in queries:
        start, size = offsets[query], offsets[query + 1] - offsets[query]
        own, parts = rows[first : first + size], np.uint64(size)
        ends[:size] = 0
        for row in range(start, start + size):
            ends[((keys[row] >> half) * parts) >> half] += 1
        for part in range(1, size):
            ends[part] += ends[part - 1]
        for row in range(start + size - 1, start - 1, -1):
            part = ((keys[row] >> half) * parts) >> half
            ends[part] -= 1
            own[ends[part]] = row
        for i in range(1, size):
            row, k = own[i], i
            while k > 0 and keys[own[k - 1]] > keys[row]:
                own[k] = own[k - 1]
                k -= 1
            own[k] = row
        first += size


@kernel
def _add_squares(X, rows, offsets, weight, inverse, room):
    """Add weighted squared deviations of each column, times `inverse`, from its mean within the query to `room[2]`."""
    p = X.shape[1]
    for query in range(len(offsets) - 1):
        start, stop = offsets[query], offsets[query + 1]
        if stop == start:
            continue
        i = rows[start]
        for j in range(p):
            room[0, j], room[1, j] = X[i, j] * inverse[j], 0.0  # a constant column then has exactly 0
        for position in range(start, stop):
            i = rows[position]
            for j in range(p):
                room[1, j] += X[i, j] * inverse[j] - room[0, j]
        for j in range(p):
            room[1, j] /= stop - start
        for position in range(start, stop):
            i = rows[position]
            for j in range(p):
                d = X[i, j] * inverse[j] - room[0, j] - room[1, j]
                room[2, j] += weight[query] * d * d
