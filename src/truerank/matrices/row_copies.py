"""Weights of rows as numbers of copies, for what counts rows: quantiles, and places among sorted values.

A row of weight 2 counts as two rows of weight 1, and no count depends on the unit of the weights. So one copy weighs
the largest number of which all weights are whole multiples, each within a millionth of a copy: weights of 1 and 2, and
of 0.5 and 1, are one copy and two; equal weights are one copy each. Weights that have no such number, or only one below
a 64th of the least, are multiples of a tiny one, to which they are rounded.
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
    """What one copy weighs."""

    weight: float
    whole: bool  # whether all weights are whole multiples of it: else they are rounded

    @classmethod
    def of(cls, different: np.ndarray, n_rows: int) -> CopyUnit:
        """From `different_weights` of all `n_rows` rows, at least one."""
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
        """Copies that rows of these weights (n,) stand for, int64: at least one where the weight is not 0."""
        return np.where(weight > 0, np.maximum(np.rint(weight / self.weight), 1.0), 0.0).astype(np.int64)


def different_weights(weight: np.ndarray) -> np.ndarray:
    """The different weights above 0, ascending; of more than 1,024 only the 1,025 largest."""
    return np.unique(weight[weight > 0])[-_MOST_DIFFERENT - 1 :]


@dataclass(frozen=True)
class RowCopies:
    """How many copies each row stands for, and what that makes of counts of rows.

    Examples
    --------
    >>> RowCopies.of(np.array([2.0, 4.0, 2.0])).counts.tolist(), RowCopies.of(np.array([3.0, 3.0]))
    ([1, 2, 1], None)
    """

    counts: np.ndarray = field(repr=False)  # int64 (n,): of the rows that are here
    total: int  # copies of all rows
    # How many rows all copies count as: one each where weights are whole multiples of a copy's; else n, since the
    # number of copies says nothing then.
    rows: float
    places: int  # among how many sorted values stand: a place a copy, but at most four a row, or 131,072

    @classmethod
    def of(cls, weight: np.ndarray | None) -> RowCopies | None:
        """Of rows of these weights (n,), not all 0; None where every row counts once."""
        if weight is None:
            return None
        unit = CopyUnit.of(different_weights(weight), len(weight))
        counts = unit.counts(weight)
        return None if (counts == 1).all() else cls.with_unit(unit, counts, int(counts.sum()), len(weight))

    @classmethod
    def with_unit(cls, unit: CopyUnit, counts: np.ndarray, total: int, n_rows: int) -> RowCopies:
        """Of `n_rows` rows that are `total` copies, of which those with these `counts` are here."""
        places = min(total, 4 * max(n_rows, _FEWEST_PLACES))
        return cls(counts, total, float(total if unit.whole else n_rows), places)

    @property
    def places_a_copy(self) -> float:
        """Places that one copy takes, at most 1."""
        return self.places / self.total

    def rows_of(self, copies: int) -> float:
        """How many rows some of the copies count as."""
        return copies * self.rows / self.total
