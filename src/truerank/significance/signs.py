"""Random signs of paired differences, the same for every comparison of a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.types import ArrayLike

_ROWS = 256  # resamples that are made at a time, whatever they are for, so that a seed gives the same signs everywhere


class Signs(NamedTuple):
    """Signs of `n` topics: all 2^n of them where these are at most `n_resamples`, or as many random draws.

    Of signs that differ by a factor -1 only one is enumerated: two-sided tests count both or neither.
    """

    n: int
    exhaustive: bool
    n_resamples: int
    seed: np.random.SeedSequence

    @classmethod
    def of(cls, n: int, n_resamples: int, random_state: Any) -> Signs:
        """Signs for `n` topics and at most `n_resamples` resamples."""
        b = check_positive_int(n_resamples, "n_resamples")
        exhaustive = 2**n <= b
        if isinstance(random_state, np.random.Generator):
            random_state = int(random_state.integers(2**63))
        return cls(n, exhaustive, 2**n if exhaustive else b, np.random.SeedSequence(random_state))

    @property
    def rows(self) -> int:
        """Number of rows that `chunks` yields in all."""
        return self.n_resamples // 2 if self.exhaustive and self.n else self.n_resamples

    def chunks(self, most: int | None = None) -> Iterator[np.ndarray]:
        """The signs, or the first `most` of them, as float64 arrays (at most 256, n) of -1 and 1."""
        rng = np.random.default_rng(self.seed)
        width = -(-self.n // 8)
        rows = self.rows if most is None else min(most, self.rows)
        for start in range(0, rows, _ROWS):
            here = min(_ROWS, rows - start)
            bits: Any
            if self.exhaustive:
                bits = (np.arange(start, start + here)[:, None] >> np.arange(self.n)) & 1
            else:
                drawn = np.frombuffer(rng.bytes(_ROWS * width), dtype=np.uint8).reshape(_ROWS, width)
                bits = np.unpackbits(drawn[:here], axis=1, count=self.n)
            yield 1.0 - 2.0 * bits

    def p(self, counts: np.ndarray) -> np.ndarray:
        """p-values, exact or (count + 1)/(B + 1), for `counts` rows at least as extreme as what was observed."""
        return counts / self.rows if self.exhaustive else (counts + 1.0) / (self.rows + 1.0)

    def fewest(self, level: float) -> int:
        """The smallest count whose p is at least `level`."""
        least = level * self.rows if self.exhaustive else level * (self.rows + 1) - 1
        return max(0, math.ceil(least - 1e-9))


def as_differences(differences: ArrayLike) -> np.ndarray:
    """Differences as a float64 array (n, h), without the topics that are NaN for every hypothesis."""
    found = np.asarray(differences, dtype=np.float64)
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2 or np.isinf(found).any():
        raise InvalidInputError(
            f"differences must be finite or NaN, of shape (topics, hypotheses); got shape {found.shape}"
        )
    defined = ~np.isnan(found)
    if not defined.any(axis=0).all():
        raise InvalidInputError(
            "a comparison has no topic that both rankers have a value for; compare rankers with topics in common"
        )
    return found if defined.any(axis=1).all() else found[defined.any(axis=1)]


def signs_p(d: np.ndarray, signs: Signs, magnitude: object = 0.0) -> np.ndarray:
    """Two-sided p (h,) of each column's sum under random signs, from differences (n, h) without NaN.

    At least `smallest_p`; 1 without a difference.
    """
    rounding = rounding_of(np.abs(d).sum(axis=0), magnitude)
    threshold = (np.abs(d.sum(axis=0)) - rounding)[:, None]
    columns = np.ascontiguousarray(d.T)
    counts = np.zeros(d.shape[1], dtype=np.int64)
    for chunk in signs.chunks():
        counts += np.count_nonzero(np.abs(columns @ chunk.T) >= threshold, axis=1)
    return np.maximum(signs.p(counts), smallest_p(np.count_nonzero(d, axis=0)))


def smallest_p(nonzero: Any) -> Any:
    """The smallest two-sided p that so many nonzero differences allow a test by signs: 2^(1 - nonzero), at most 1."""
    return np.minimum(1.0, np.exp2(1.0 - np.asarray(nonzero, dtype=np.float64)))


def rounding_of(differences: Any, magnitude: Any) -> Any:
    """By how much two sums of signed differences may be apart that are equal in exact arithmetic, and must count so.

    `differences` is the sum of their magnitudes, and `magnitude` that of the values that they are differences of: next
    to large values the last bits of a small difference are rounding.
    """
    return 1e-12 * differences + 1e-15 * magnitude
