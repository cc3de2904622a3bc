"""Sums of gradients and hessians by leaf, feature and code, in whole numbers.

Each row's gradient and hessian are rounded to integers once a tree and packed into one 64-bit word, the gradient in the
high bits and the hessian, which is never negative, in the low ones. Adding words adds both sums, a leaf's histogram is
its parent's less its sibling's, and no sum depends on the order of its terms: the same bits for any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel

_HESSIAN_BITS = 30
_ROWS = 65_536
_FINE = 4096  # units of an average row, below which rounding carries over
_LEAST_SUM, _LARGEST_SUM = 1e-130, 1e130


@dataclass(frozen=True)
class PackedGradients:
    """Gradients and hessians of the sampled rows as packed integers.

    Attributes
    ----------
    rows : int32 array (s,)
        The sampled rows, ascending.
    words : int64 array (s,)
        `(round(g * gradient_scale) << shift) + round(h * hessian_scale)`.
    shift : int
        Bits of the hessian's sum.
    gradient_scale, hessian_scale : float
    """

    rows: np.ndarray = field(repr=False)
    words: np.ndarray = field(repr=False)
    shift: int
    gradient_scale: float
    hessian_scale: float

    def unpack(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums of gradients and of hessians, float64, from sums of words."""
        low = words & ((1 << self.shift) - 1)
        return ((words - low) >> self.shift) / self.gradient_scale, low / self.hessian_scale


def pack_gradients(gradients: np.ndarray, hessians: np.ndarray, multiplicity: np.ndarray | None) -> PackedGradients:
    """Round and pack; rows drawn zero times are left out.

    Whole-number hessians (squared error without weights) are kept exactly, others to 2^-30 of their sum. The gradients
    take the remaining bits: 2^-44 of the sum of their magnitudes for a quarter of a million rows of squared error,
    2^-31 with other hessians. No sum overflows: the magnitudes of all words add up to less than 2^63.

    Parameters
    ----------
    gradients, hessians : float64 arrays (n,)
        Weights included.
    multiplicity : int array (n,) or None
        How often each row was drawn; None means once.

    Raises
    ------
    InvalidInputError
        When the squares of sums would overflow. Sums below 1e-130 count as 0.
    """
    if multiplicity is None:
        rows = np.arange(len(gradients), dtype=np.int32)
        g, h = gradients, hessians
    else:
        rows = np.flatnonzero(multiplicity).astype(np.int32)
        drawn = multiplicity[rows]
        g, h = gradients[rows] * drawn, hessians[rows] * drawn
    blocks = [slice(i, i + _ROWS) for i in range(0, len(rows), _ROWS)]  # temporary arrays stay small
    total_h = sum(float(h[block].sum()) for block in blocks)
    total_g = sum(float(np.abs(g[block]).sum()) for block in blocks)
    if not max(total_g, total_h) < _LARGEST_SUM:
        raise InvalidInputError(
            f"the gradients and hessians of the loss add up to {total_g:g} and {total_h:g}: training diverges. Lower "
            "learning_rate, or divide the grades or the weights by their largest"
        )
    whole = total_h < 2**_HESSIAN_BITS and all(bool((h[block] == np.rint(h[block])).all()) for block in blocks)
    h_scale = 1.0 if whole or total_h <= _LEAST_SUM else 2.0**_HESSIAN_BITS / total_h
    words = np.empty(len(rows), dtype=np.int64)
    carry = 0.0
    coarse = not whole and _FINE * len(rows) > 2.0**_HESSIAN_BITS
    for block in blocks:
        words[block], carry = _rounded(h[block] * h_scale, carry, coarse)
    shift = max(1, int(words.sum()).bit_length())
    # A sum of |round(x)| exceeds the sum of |x| by half a unit a row at most.
    room = 2.0 ** (62 - shift) - len(rows)
    g_scale = 1.0 if total_g <= _LEAST_SUM else min(room, 2.0**52) / total_g
    carry = 0.0
    coarse = room < _FINE * len(rows)
    for block in blocks:
        rounded, carry = _rounded(g[block] * g_scale, carry, coarse)
        words[block] += rounded << shift
    return PackedGradients(rows, words, shift, g_scale, h_scale)


def _rounded(values: np.ndarray, carry: float, coarse: bool) -> tuple[np.ndarray, float]:
    """Whole numbers near `values`; where these are small numbers, what rounding one took off is given to the next.

    Millions of equal values would all be rounded to one side; with the carry, sums over any rows stay near the truth.
    """
    if not coarse:
        return np.rint(values).astype(np.int64), 0.0
    total = np.cumsum(values) + carry
    edges = np.rint(total)
    return np.diff(edges, prepend=0.0).astype(np.int64), float(total[-1] - edges[-1])


@kernel
def accumulate(codes, rows, words, slots, hist):
    """Add each row's word to the histogram of its slot.

    `codes` uint64 (n,): eight codes of a row as one word; `rows` int32 (s,); `words` int64 (s,); `slots` int32 (s,);
    `hist` int64 (slots, 8 * 256).
    """
    byte = np.uint64(255)
    for i in range(rows.size):
        eight = codes[rows[i]]
        word = words[i]
        h = hist[slots[i]]
        h[eight & byte] += word
        h[np.uint64(256) + ((eight >> np.uint64(8)) & byte)] += word
        h[np.uint64(512) + ((eight >> np.uint64(16)) & byte)] += word
        h[np.uint64(768) + ((eight >> np.uint64(24)) & byte)] += word
        h[np.uint64(1024) + ((eight >> np.uint64(32)) & byte)] += word
        h[np.uint64(1280) + ((eight >> np.uint64(40)) & byte)] += word
        h[np.uint64(1536) + ((eight >> np.uint64(48)) & byte)] += word
        h[np.uint64(1792) + (eight >> np.uint64(56))] += word


@kernel
def split_histograms(hist, n_parents, small_is_right):
    """Turn each parent's histogram and its smaller child's into those of both children.

    On entry `hist[q]` is parent q's and `hist[q + n_parents]` its smaller child's; on return they are the left and
    the right child's.
    """
    width = hist.shape[1]
    for q in range(n_parents):
        left, right = hist[q], hist[q + n_parents]
        if small_is_right[q]:
            for j in range(width):
                left[j] -= right[j]
        else:
            for j in range(width):
                small = right[j]
                right[j] = left[j] - small
                left[j] = small
