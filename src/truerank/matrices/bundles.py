"""Codes of sparse rows: one byte for a bundle of mutually exclusive features, or ranks of the stored values.

The *default* of a feature is the code of the value 0; its other codes, with missing last, have the *ranks* 1, 2, ….
Features that never differ from their defaults in the same row form a bundle, whose byte names the feature that differs,
and its code:

    0                            every feature of the bundle is at its default
    first[k] + rank - 1          feature k is not

A bundle that differs from 0 in few rows has no bytes: its features are stored as the ranks of their stored values.
Codes and histograms are exactly the codes and histograms of dense rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truerank.core.kernel import kernel, kernel_array
from truerank.core.threads import row_blocks, run_blocks
from truerank.core.types import SparseMatrix
from truerank.data.grouping import offsets_of
from truerank.matrices.binning import BLOCK, MISSING, CodedMatrix, sort_with_copies

_OPEN = 64  # bundles that are open at the same time, n bytes each
_BYTE, _HISTOGRAMS = 1 / 6, 700  # time of a row's byte, and of a bundle's histograms, in reads of a stored value


@dataclass(frozen=True)
class StoredRanks:
    """The ranks of the stored values of a CSC matrix (n, p)."""

    starts: np.ndarray = field(repr=False)  # int64 (p + 1,): where each column's values start
    rows: np.ndarray = field(repr=False)  # int32, or int64 of 2^31 values and more: the matrix's own
    ranks: np.ndarray = field(repr=False)  # uint8: of each value, 0 at the feature's default

    def of(self, feature: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows and the ranks of a column's stored values."""
        here = slice(self.starts[feature], self.starts[feature + 1])
        return self.rows[here], self.ranks[here]


@dataclass
class BundledMatrix(CodedMatrix):
    """Rows as codes of bundles of features, uint8 (ceil(bundles / 8), n, 8), or as ranks of stored values."""

    bundle: np.ndarray = field(repr=False)  # int64 (p,): of each feature; -1 without any
    first: np.ndarray = field(repr=False)  # int64 (p,): its first code there
    default: np.ndarray = field(repr=False)  # int32 (p,): its own code of the value 0
    stored: StoredRanks

    def column(self, feature: int) -> np.ndarray:
        """Return the codes (n,) of one feature."""
        table = np.full(256, self.default[feature], dtype=np.uint8)
        own = self.codes_of(feature)
        bundle = int(self.bundle[feature])
        first = int(self.first[feature]) if bundle >= 0 else 1
        table[first : first + len(own)] = own
        result = np.empty(self.n_rows, dtype=np.uint8)
        if bundle >= 0:
            result[:] = table[self.codes[bundle // BLOCK, :, bundle % BLOCK]]
        else:
            result[:] = self.default[feature]
            rows, ranks = self.stored.of(feature)
            result[rows] = table[ranks]
        return result

    def codes_at(self, feature: int) -> tuple[np.ndarray, np.uint64]:
        return self.column(feature), np.uint64(0)

    def codes_of(self, feature: int) -> np.ndarray:
        """Return a feature's codes in the order of their ranks."""
        own = np.delete(np.arange(self.n_bins[feature]), self.default[feature])
        return np.append(own, MISSING) if self.has_missing[feature] else own


def scan_sparse_columns(
    X: SparseMatrix,
    look: Callable[[int, np.ndarray, np.ndarray | None], Any],
    n_jobs: int | None = None,
    copies: np.ndarray | None = None,
) -> list[Any]:
    """Run `binning.scan_columns` on a CSC matrix, with `ends`. One zero represents all values that are not stored."""
    total = X.shape[0] if copies is None else int(copies.sum())

    def work(start: int, stop: int) -> list[Any]:
        return [look(k, *sorted_sparse_column(X, k, copies, total)) for k in range(start, stop)]

    return [item for part in run_blocks(work, row_blocks(X.shape[1], 64), n_jobs) for item in part]


def sorted_sparse_column(
    X: SparseMatrix, k: int, copies: np.ndarray | None, total: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values and `ends` of column k of a CSC matrix whose rows are `total` copies."""
    here = slice(X.indptr[k], X.indptr[k + 1])
    own = np.ones(here.stop - here.start, dtype=np.int64) if copies is None else copies[X.indices[here]]
    stored, ends = sort_with_copies(X.data[here], own)
    rest = total - int(own.sum())
    if rest == 0:
        return stored, ends
    at = int(np.searchsorted(stored, 0.0))
    before = np.append(0, ends)[: at + 1]
    return np.insert(stored, at, 0.0), np.concatenate([before[1:], [before[-1] + rest], ends[at:] + rest])


def bundle_columns(X: SparseMatrix, borders: list[np.ndarray]) -> BundledMatrix:
    """Return the codes of a CSC matrix (n, p) under given borders.

    A feature goes into the first of at most 64 open bundles that has no common row with it and room for its codes;
    without such a bundle, the oldest bundle is closed. Features are tried in their given order, and by decreasing
    number of stored values; the order with the lower cost is used. A bundle has bytes if more than a sixth of all rows
    and 700 rows differ from 0, because its bytes are then read faster than its stored values.

    The cost is O(nnz log borders) and at most O(128 nnz) look-ups, and a byte per stored value, and per row and bundle.
    """
    n_bins = np.array([len(own) + 1 for own in borders], dtype=np.int32)
    default = np.array([np.searchsorted(own, 0.0) for own in borders], dtype=np.int32)
    stored = StoredRanks(X.indptr.astype(np.int64), kernel_array(X.indices), np.empty(len(X.data), dtype=np.uint8))
    flat = np.concatenate([np.empty(0), *borders])
    away, missing = _rank(stored.starts, kernel_array(X.data), flat, offsets_of(n_bins - 1), default, stored.ranks)
    bundle, first = _bundles(stored, away, n_bins - 1 + missing, X.shape[0])
    codes = np.zeros((-(-(int(bundle.max(initial=-1)) + 1) // BLOCK), X.shape[0], BLOCK), dtype=np.uint8)
    _write(stored.starts, stored.rows, stored.ranks, bundle, first, codes)
    return BundledMatrix(codes, borders, n_bins, missing, bundle, first, default, stored)


def _bundles(stored: StoredRanks, away: np.ndarray, widths: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the bundle of each feature (p,), -1 for a feature without bytes, and the first code of each feature."""
    found = []
    for order in np.arange(len(away)), np.argsort(-away, kind="stable"):
        bundle, first = _assign(stored.starts, stored.rows, stored.ranks, order, widths, np.zeros((_OPEN, n), np.uint8))
        values, as_bytes = np.bincount(bundle, weights=away), _BYTE * n + _HISTOGRAMS
        found.append((np.minimum(values, as_bytes).sum(), bundle, first, values >= as_bytes))
    _, bundle, first, has_bytes = min(found, key=lambda one: float(one[0]))
    number = np.where(has_bytes, np.cumsum(has_bytes) - 1, -1)
    return np.where(widths > 0, number[bundle], -1), first


def summed(X: Any) -> Any:
    """Return a CSR matrix without duplicate entries: X itself, or a copy."""
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def add_in_dense_blocks(
    X: SparseMatrix, add: Callable[[np.ndarray, np.ndarray], Any], scores: np.ndarray
) -> np.ndarray:
    """Call `add(rows, scores of the rows)` for blocks of the rows of a CSR matrix as a dense array.

    The array of 8 MB or sixteen rows is reused; O(nnz) entries are written and cleared again.
    """
    n, p = X.shape
    X = summed(X)
    data, indices, starts = X.data, X.indices, X.indptr
    height = max(16, min(4_096, (8 << 20) // max(1, 8 * p)))
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
def _rank(starts, values, borders, border_starts, default, ranks):
    """Write the rank of each stored value to `ranks`.

    Return by feature the number of stored values that do not have the default's rank, and whether NaN occurs.
    `borders` are those of all features, from `border_starts` (p + 1,).
    """
    p = starts.size - 1
    away, missing = np.zeros(p, dtype=np.int64), np.zeros(p, dtype=np.bool_)
    for k in range(p):
        own = borders[border_starts[k] : border_starts[k + 1]]
        for at in range(starts[k], starts[k + 1]):
            x = np.float64(values[at])
            if x != x:
                missing[k] = True
                rank = np.int64(own.size + 1)
            else:
                code = np.searchsorted(own, x)
                rank = code + 1 if code < default[k] else (code if code > default[k] else np.int64(0))
            ranks[at] = rank
            away[k] += rank > 0
    return away, missing


@kernel
def _assign(starts, rows, ranks, order, widths, taken):
    """Return the bundle and first code of each feature (p,); `taken` (open bundles, n) is scratch of zeros."""
    p = starts.size - 1
    n_open = taken.shape[0]
    bundle, first = np.zeros(p, dtype=np.int64), np.ones(p, dtype=np.int64)
    number = np.full(n_open, -1)  # the bundle that each open place holds
    used = np.zeros(n_open, dtype=np.int64)  # codes given away there
    count, oldest = np.int64(0), 0
    for k in order:
        if widths[k] == 0:
            continue  # constant: any bundle
        # Stage 1. Find the first open bundle with room for the codes and no row in common.
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
        # Stage 2. If there is none, close the oldest bundle. Then add the feature.
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
    """Write the code of every stored value to the byte of its bundle."""
    for k in range(starts.size - 1):
        if bundle[k] < 0:
            continue
        block = codes[bundle[k] >> 3]
        slot = bundle[k] & 7
        for at in range(starts[k], starts[k + 1]):
            if ranks[at] > 0:
                block[rows[at], slot] = first[k] + ranks[at] - 1


@kernel
def unbundle(hist, totals, bundles, first, default, n_bins, has_missing, out):
    """Write the histograms of some features, (leaves, 256 each), from those of their bundles; `totals` (leaves,)."""
    for f in range(bundles.size):
        start = 256 * (bundles[f] & 7) + first[f]
        for q in range(totals.size):
            sums_by_code(
                hist[bundles[f] >> 3, q, start:], totals[q], default[f], n_bins[f], has_missing[f],
                out[q, 256 * f : 256 * f + 256],
            )  # fmt: skip


@kernel
def sums_by_code(by_rank, total, default, bins, missing, result):
    """Write a feature's histogram (256,) from its sums by rank, from rank 1 on, and the sum of all rows."""
    rest = total
    for code in range(bins):
        if code != default:
            own = by_rank[code if code < default else code - 1]
            result[code] = own
            rest -= own
    if missing:
        own = by_rank[bins - 1]
        result[255] = own
        rest -= own
    result[default] = rest
