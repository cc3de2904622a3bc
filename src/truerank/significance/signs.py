"""Random signs of paired differences. All comparisons of a table use the same signs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.types import ArrayLike, RandomState

_ROWS = 256  # resamples made at a time, always the same number, so that a seed gives the same signs everywhere


class Signs(NamedTuple):
    """Signs of `n` topics: all 2^n sign vectors if these are at most `n_resamples`, else random draws.

    Of two vectors that differ by the factor -1 only one is enumerated, since a two-sided test counts both or neither.
    """

    n: int
    exhaustive: bool
    n_resamples: int
    seed: np.random.SeedSequence

    @classmethod
    def of(cls, n: int, n_resamples: int, random_state: RandomState) -> Signs:
        """Return the signs for `n` topics and at most `n_resamples` resamples."""
        b = check_positive_int(n_resamples, "n_resamples")
        exhaustive = 2**n <= b
        if isinstance(random_state, np.random.Generator):
            random_state = int(random_state.integers(2**63))
        seed = None if random_state is None else int(random_state)  # type: ignore[arg-type]
        return cls(n, exhaustive, 2**n if exhaustive else b, np.random.SeedSequence(seed))

    @property
    def rows(self) -> int:
        """Number of sign vectors that `chunks` yields in all."""
        return self.n_resamples // 2 if self.exhaustive and self.n else self.n_resamples

    def chunks(self) -> Iterator[np.ndarray]:
        """Yield the signs as float64 arrays (at most 256, n) of -1 and 1."""
        rng = np.random.default_rng(self.seed)
        width = -(-self.n // 8)
        for start in range(0, self.rows, _ROWS):
            here = min(_ROWS, self.rows - start)
            bits: Any
            if self.exhaustive:
                bits = (np.arange(start, start + here)[:, None] >> np.arange(self.n)) & 1
            else:
                drawn = np.frombuffer(rng.bytes(_ROWS * width), dtype=np.uint8).reshape(_ROWS, width)
                bits = np.unpackbits(drawn[:here], axis=1, count=self.n)
            yield 1.0 - 2.0 * bits

    def p(self, counts: np.ndarray) -> np.ndarray:
        """Return p, exact or (count + 1)/(B + 1), from the counts of vectors at least as extreme as the observation."""
        return counts / self.rows if self.exhaustive else (counts + 1.0) / (self.rows + 1.0)

    def fewest(self, level: float) -> int:
        """Return the smallest count whose p is at least `level`."""
        least = level * self.rows if self.exhaustive else level * (self.rows + 1) - 1
        return max(0, math.ceil(least - 1e-9))


def as_differences(differences: ArrayLike) -> np.ndarray:
    """Return differences as float64 (n, h), without the topics that are NaN for every hypothesis."""
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
    """Return the two-sided p (h,) of each column's sum under random signs, at least `smallest_p`.

    `d` holds differences (n, h) without NaN.
    """
    rounding = rounding_of(np.abs(d).sum(axis=0), magnitude)
    threshold = (np.abs(d.sum(axis=0)) - rounding)[:, None]
    columns = np.ascontiguousarray(d.T)
    counts = np.zeros(d.shape[1], dtype=np.int64)
    for chunk in signs.chunks():
        counts += np.count_nonzero(np.abs(columns @ chunk.T) >= threshold, axis=1)
    return np.maximum(signs.p(counts), smallest_p(np.count_nonzero(d, axis=0)))


def smallest_p(nonzero: Any) -> Any:
    """Return the smallest two-sided p of a test by signs of so many nonzero differences: 2^(1 - nonzero), at most 1."""
    return np.minimum(1.0, np.exp2(1.0 - np.asarray(nonzero, dtype=np.float64)))


def rounding_of(differences: Any, magnitude: Any) -> Any:
    """Return the largest rounding error between two sums of signed differences that are equal in exact arithmetic.

    `differences` is the sum of the absolute differences, and `magnitude` that of the values that were subtracted: the
    last bits of a small difference of large values are rounding.
    """
    return 1e-12 * differences + 1e-15 * magnitude
