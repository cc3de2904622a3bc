"""Codes of sparse rows: features of which a row has at most one beside zero share a byte.

A feature's *default* is the code of the value 0. Features that are never away from their defaults in the same row are
put into one bundle, whose byte says which of them is away and by which code:

    0                                    every feature of the bundle is at its default
    first[k] + rank of code c            feature k has code c; the ranks leave its default out, a missing value is last

Nothing is approximate: no row has two such features, so every feature's code, and its histogram as the leaf's total
less its other bins, is what dense codes have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import row_blocks, run_blocks
from truerank.data.grouping import sums_by_query
from truerank.matrices.binning import BLOCK, MISSING, CodedMatrix, sort_with_copies
from truerank.matrices.stored_values import csr_parts

_OPEN = 64  # bundles that a feature is tried in: n bytes each while bundles are made


@dataclass
class BundledMatrix(CodedMatrix):
    """Rows as codes of bundles of features: `codes` is uint8 (ceil(bundles / 8), n, 8)."""

    bundle: np.ndarray = field(repr=False)  # int32 (p,): of each feature
    first: np.ndarray = field(repr=False)  # int32 (p,): its first code there
    default: np.ndarray = field(repr=False)  # int32 (p,): its own code of the value 0

    @property
    def n_bundles(self) -> int:
        """Number of bundles."""
        return int(self.bundle.max(initial=-1)) + 1

    def column(self, feature: int) -> np.ndarray:
        """Codes (n,) of one feature."""
        table = np.full(256, self.default[feature], dtype=np.uint8)
        own = self.codes_of(feature)
        first = int(self.first[feature])
        table[first : first + len(own)] = own
        bundle = int(self.bundle[feature])
        # Every eighth byte of an array, as dense codes have it: kernels are compiled for one layout.
        result = np.empty((self.n_rows, 2), dtype=np.uint8)[:, 0]
        result[:] = table[self.codes[bundle // BLOCK, :, bundle % BLOCK]]
        return result

    def codes_of(self, feature: int) -> np.ndarray:
        """A feature's codes in the order of their ranks."""
        own = np.delete(np.arange(self.n_bins[feature]), self.default[feature])
        return np.append(own, MISSING) if self.has_missing[feature] else own

    def features_by_block(self) -> list[np.ndarray]:
        """The features of each block of eight bundles, ascending, int64 arrays."""
        order = np.argsort(self.bundle // BLOCK, kind="stable")
        ends = np.cumsum(np.bincount(self.bundle // BLOCK, minlength=len(self.codes)))
        return [part.astype(np.int64) for part in np.split(order, ends[:-1])]


def scan_sparse_columns(
    X: Any,
    look: Callable[[int, np.ndarray, np.ndarray | None], Any],
    n_jobs: int | None = None,
    copies: np.ndarray | None = None,
) -> list[Any]:
    """As `binning.scan_columns`, of a CSC matrix: a column's sorted values, its zeros included, are made one by one.

    With `copies` one zero stands for all that are not stored.
    """
    n, p = X.shape
    total = 0 if copies is None else int(copies.sum())

    def column(k: int) -> tuple[np.ndarray, np.ndarray | None]:
        here = slice(X.indptr[k], X.indptr[k + 1])
        if copies is not None:
            own = copies[X.indices[here]]
            rest = total - int(own.sum())
            stored = X.data[here]
            return sort_with_copies(np.append(stored, stored.dtype.type(0)), np.append(own, rest))
        stored = np.sort(X.data[here])  # nan last
        missing = int(np.isnan(stored).sum())
        observed = stored[: len(stored) - missing]
        middle = int(np.searchsorted(observed, 0.0))
        zeros = np.zeros(n - len(stored), dtype=stored.dtype)
        return np.concatenate([observed[:middle], zeros, observed[middle:]]), None

    def work(start: int, stop: int) -> list[Any]:
        return [look(k, *column(k)) for k in range(start, stop)]

    return [item for part in run_blocks(work, row_blocks(p, 64), n_jobs) for item in part]


def bundle_columns(X: Any, borders: list[np.ndarray]) -> BundledMatrix:
    """The codes of a CSC matrix (n, p) under given borders.

    Features go into the first of at most 64 open bundles that has no row in common with them and room for their codes;
    where there is none, the oldest bundle is closed. They are tried as they stand, where the columns of a one-hot code
    are neighbours, and the fullest first; the fewer bundles are kept. O(nnz log borders) time and at most O(128 nnz)
    look-ups; one byte a row and bundle of memory.
    """
    n, p = X.shape
    n_bins = np.array([len(own) + 1 for own in borders], dtype=np.int32)
    default = np.array([np.searchsorted(own, 0.0) for own in borders], dtype=np.int32)
    has_missing = np.zeros(p, dtype=bool)
    ranks = np.zeros(len(X.data), dtype=np.uint8)  # 1 + the rank of each stored value, 0 at the default
    starts = X.indptr.astype(np.int64)
    for k in range(p):
        here = slice(starts[k], starts[k + 1])
        values = X.data[here].astype(np.float64)
        code = np.searchsorted(borders[k], values)
        rank = 1 + code - (code > default[k])
        rank[code == default[k]] = 0
        absent = np.isnan(values)
        if absent.any():
            has_missing[k] = True
            rank[absent] = n_bins[k]
        ranks[here] = rank
    away = sums_by_query((ranks > 0).astype(np.int64), starts)
    widths = (n_bins - 1 + has_missing).astype(np.int64)
    rows = X.indices.astype(np.int64)
    orders = np.arange(p), np.argsort(-away, kind="stable").astype(np.int64)
    found = [_assign(starts, rows, ranks, order, widths, np.zeros((_OPEN, n), dtype=np.uint8)) for order in orders]
    bundle, first = min(found, key=lambda pair: int(pair[0].max(initial=-1)))
    n_blocks = max(1, -(-(int(bundle.max(initial=-1)) + 1) // BLOCK))
    codes = np.zeros((n_blocks, n, BLOCK), dtype=np.uint8)
    _write(starts, rows, ranks, bundle, first, codes)
    return BundledMatrix(codes, borders, n_bins, has_missing, bundle.astype(np.int32), first.astype(np.int32), default)


def summed(X: Any) -> Any:
    """A CSR matrix without entries that are stored twice: itself, or a copy."""
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def add_in_dense_blocks(X: Any, add: Callable[[np.ndarray, np.ndarray], Any], scores: np.ndarray) -> np.ndarray:
    """`add(rows, scores of the rows)` for the rows of a CSR matrix, some megabytes of them at a time as a dense array.

    The array is made once; O(nnz) is written into it and wiped again, however wide it is.
    """
    n, p = X.shape
    data, indices, starts = csr_parts(summed(X))
    height = max(16, min(4_096, (32 << 20) // max(1, 8 * p)))
    block = np.zeros((min(height, n), p), dtype=data.dtype)
    for start in range(0, n, height):
        stop = min(start + height, n)
        stored = slice(starts[start], starts[stop])
        rows = np.repeat(np.arange(stop - start), np.diff(starts[start : stop + 1]))
        block[rows, indices[stored]] = data[stored]
        add(block[: stop - start], scores[start:stop])
        block[rows, indices[stored]] = 0
    return scores


@kernel
def _assign(starts, rows, ranks, order, widths, taken):
    """Bundle and first code of each feature (p,); `taken` (open bundles, n) is scratch of zeros."""
    p = starts.size - 1
    n_open = taken.shape[0]
    bundle = np.zeros(p, dtype=np.int64)
    first = np.ones(p, dtype=np.int64)
    number = np.full(n_open, -1)  # the bundle that each open place holds
    used = np.zeros(n_open, dtype=np.int64)  # codes given away there
    count = np.int64(0)
    oldest = 0
    for k in order:
        if widths[k] == 0:
            continue  # constant: any bundle will do
        chosen = -1
        for place in range(n_open):
            if number[place] < 0:
                chosen = place
                break
            if used[place] + widths[k] > 255:
                continue
            apart = True
            own = taken[place]
            for at in range(starts[k], starts[k + 1]):
                if ranks[at] > 0 and own[rows[at]] > 0:
                    apart = False
                    break
            if apart:
                chosen = place
                break
        if chosen < 0:
            chosen = oldest
            oldest = (oldest + 1) % n_open
            number[chosen] = -1
            used[chosen] = 0
            taken[chosen, :] = 0
        if number[chosen] < 0:
            number[chosen] = count
            count += 1
        bundle[k] = number[chosen]
        first[k] = used[chosen] + 1
        used[chosen] += widths[k]
        own = taken[chosen]
        for at in range(starts[k], starts[k + 1]):
            if ranks[at] > 0:
                own[rows[at]] = 1
    return bundle, first


@kernel
def _write(starts, rows, ranks, bundle, first, codes):
    """Put every stored value's code into its bundle's byte."""
    for k in range(starts.size - 1):
        block = codes[bundle[k] >> 3]
        slot = bundle[k] & 7
        for at in range(starts[k], starts[k + 1]):
            if ranks[at] > 0:
                block[rows[at], slot] = first[k] + ranks[at] - 1


@kernel
def unbundle(hist, totals, slots, first, default, n_bins, has_missing, out):
    """Histograms of up to eight features, (leaves, 8 * 256), from those of their bundles; `totals` (leaves,)."""
    for f in range(slots.size):
        bins = n_bins[f]
        for q in range(totals.size):
            own = hist[q, 256 * slots[f] : 256 * slots[f] + 256]
            result = out[q, 256 * f : 256 * f + 256]
            rest = totals[q]
            at = first[f]
            for code in range(bins):
                if code != default[f]:
                    result[code] = own[at]
                    rest -= own[at]
                    at += 1
            if has_missing[f]:
                result[255] = own[at]
                rest -= own[at]
            result[default[f]] = rest
