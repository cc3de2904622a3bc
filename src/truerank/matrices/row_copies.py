"""Weights of rows as numbers of copies, for quantiles and positions among sorted values.

A row of weight 2 counts as two rows of weight 1, and no count depends on the unit of the weights. The weight of one
copy is the largest number of which all weights are multiples, each within a millionth of a copy: weights of 1 and 2, or
0.5 and 1, are one copy and two copies. Weights are rounded to multiples of the largest weight / 2^30 (more from 32,768
rows on) if there are over 1,024 different weights, or no such number reaches this and the smallest weight / 64.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

_MOST_PARTS = 64  # of the least weight
_MOST_DIFFERENT = 1024  # weights that are tried
_NEAR = 1e-6  # of a copy
_BITS = 45  # of the copies of all rows: a rank among them times a number of quantiles stays below 2^63
_FEWEST_PLACES = 1 << 15


@dataclass(frozen=True)
class CopyUnit:
    """The weight of one copy."""

    weight: float
    whole: bool  # whether all weights are multiples of it, not rounded

    @classmethod
    def of(cls, different: np.ndarray, n_rows: int) -> CopyUnit:
        """Find the unit from `different_weights` of all `n_rows` rows, at least one."""
        most = 2.0 ** max(1, min(30, _BITS - int(n_rows).bit_length()))
        if len(different) <= _MOST_DIFFERENT and different[-1] <= most * different[0]:
            for parts in range(1, _MOST_PARTS + 1):
                multiples = different * (parts / different[0])
                if multiples[-1] > most:
                    break
                if (np.abs(multiples - np.rint(multiples)) <= _NEAR).all():
                    return cls(float(different[0]) / parts, True)
        return cls(float(different[-1]) / most, False)

    def counts(self, weight: np.ndarray) -> np.ndarray:
        """Return the copies of rows with these weights (n,), int64, at least one unless the weight is 0."""
        return np.where(weight > 0, np.maximum(np.rint(weight / self.weight), 1.0), 0.0).astype(np.int64)


def different_weights(weight: np.ndarray) -> np.ndarray:
    """Return the different weights above 0, ascending, at most the 1,025 largest."""
    return np.unique(weight[weight > 0])[-_MOST_DIFFERENT - 1 :]


@dataclass(frozen=True)
class RowCopies:
    """The number of copies of each row, and counts of rows that follow from these numbers.

    Examples
    --------
    >>> RowCopies.of(np.array([2.0, 4.0, 2.0])).counts.tolist(), RowCopies.of(np.array([3.0, 3.0]))
    ([1, 2, 1], None)
    """

    counts: np.ndarray = field(repr=False)  # int64 (n,): of the rows that are here
    total: int  # copies of all rows
    rows: float  # that all copies count as: one each if weights are multiples of a copy's, else n
    places: int  # of sorted values: one a copy, but at most four a row, or 131,072

    @classmethod
    def of(cls, weight: np.ndarray) -> RowCopies | None:
        """Return the copies of rows with these weights (n,), not all 0, or None if every row counts once."""
        unit = CopyUnit.of(different_weights(weight), len(weight))
        counts = unit.counts(weight)
        return None if (counts == 1).all() else cls.with_unit(unit, counts, int(counts.sum()), len(weight))

    @classmethod
    def with_unit(cls, unit: CopyUnit, counts: np.ndarray, total: int, n_rows: int) -> RowCopies:
        """Return the copies of `n_rows` rows with `total` copies, of which this part has the given `counts`."""
        places = min(total, 4 * max(n_rows, _FEWEST_PLACES))
        return cls(counts, total, float(total if unit.whole else n_rows), places)

    @property
    def places_a_copy(self) -> float:
        """The number of positions that one copy occupies, at most 1."""
        return self.places / self.total

    def rows_of(self, copies: int) -> float:
        """Return the number of rows that correspond to a number of copies."""
        return copies * self.rows / self.total
