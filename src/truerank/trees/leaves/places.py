"""Fuzzy borders: the distance of a value from a border, measured in ranks.

The observed values of a feature are at places 0 … n-1 in sorted order. The true place of the value at place i is j with
probability p^|i-j| / Z(i), Z(i) = (1 + p - p^(i+1) - p^(n-i)) / (1 - p). With b values at or below the border c,

    x > c is at i = #(X < x):      P(left)  = p^(i-b+1) (1 - p^b) / ((1-p) Z(i))
    x ≤ c is at i = #(X ≤ x) - 1:  P(right) = p^(b-1-i) p (1 - p^(n-b)) / ((1-p) Z(i))

(the thesis's formulas, normalised). With ties="average", a tied block has the mean over its places instead. The thesis
derives the formulas from P(permutation) ∝ p^inversions, whose marginals are ∝ p^|i-j| only at both ends. At n = 150,
P(left) differs by up to 0.08 for the same p, and by 0.06 for the best p (`tests/reference/oblivious.py`). P(left) and
P(right) are a factor of the value times a factor of the border:

    P(left) = up · p^(start-b+1) · (1 - p^b),    P(right) = down · p^(b-stop) · (1 - p^(n-b))

for a block of places [start, stop), with up the mean of p^(i-start) / ((1-p) Z(i)) over the block and down that of
p^(stop-i) / ((1-p) Z(i)).

A `PlaceTable` has one *knot* for each different value of a feature, or for a range of values if there are more than
`limit`; each border is the end of a knot. With K knots, ranges [lower, upper], a value in knot k has *state* 2k + 1, a
value in the gap before it 2k, and a missing value 2K + 1. The state is therefore the number of steps below the value.
The steps are the last number before each knot, and the knot's upper end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from truerank.core.errors import ModelFileError
from truerank.core.kernel import kernel
from truerank.core.schema import check_fields
from truerank.matrices.binning import BLOCK, count_of, values_at
from truerank.matrices.steps import StepIndex, count_below
from truerank.trees.ensemble import Ensemble

MOST_PLACES = 32_000  # states are 16-bit numbers: two for each knot, of which each border may add one
MOST_KNOTS = 2**15 - 1  # of a feature
_FEW_PLACES = 1 << 21
_FEW_VALUES = 8192  # whose states NumPy finds in a millisecond: a first small fit compiles no kernel for them
_LARGEST_EXPONENT = 600.0  # products with exp of more over- or underflow


@dataclass(frozen=True)
class PlaceTable:
    """The knots and places of one feature."""

    lower: np.ndarray = field(repr=False)  # float64 (K,): least value of each knot
    upper: np.ndarray = field(repr=False)  # float64 (K,): largest value, the same for a knot of one value
    starts: np.ndarray = field(repr=False)  # int64 (K + 1,): places below each knot, and all of them

    @property
    def n(self) -> int:
        return int(self.starts[-1])

    def states(self, values: np.ndarray) -> np.ndarray:
        """Return the state of each value, uint16 (n,)."""
        if len(values) <= _FEW_VALUES:
            found = np.searchsorted(_steps(self.lower, self.upper), values)
            return np.where(np.isnan(values), 2 * len(self.upper) + 1, found).astype(np.uint16)
        index = knot_index([(self.lower, self.upper)])
        return np.asarray(find_states(np.ascontiguousarray(values, dtype=np.float64), index))

    def place_of_border(self, border: float) -> tuple[int, int]:
        """Return the number b of places at or below a border, and the last state left of it; inf is above all."""
        if not np.isfinite(border):
            return self.n, 2 * len(self.upper)
        k = int(np.searchsorted(self.upper, border, side="right"))
        return int(self.starts[k]), 2 * k - 1

    def borders_at_knots(self, borders: np.ndarray) -> np.ndarray:
        """Return borders moved down to the nearest ends of knots, for a table of different data."""
        k = np.searchsorted(self.upper[:-1], borders, side="right")
        return np.unique(self.upper[k[k > 0] - 1]).astype(borders.dtype)


@dataclass(frozen=True)
class FlatPlaces:
    """The place tables of a model's used features, concatenated."""

    features: np.ndarray  # int64 (u,)
    sizes: np.ndarray  # int64 (u,): knots of each
    lower: np.ndarray = field(repr=False)  # float64 (Σ sizes,)
    upper: np.ndarray = field(repr=False)  # float64 (Σ sizes,)
    starts: np.ndarray = field(repr=False)  # int64 (Σ sizes + u,)

    FIELDS: ClassVar[dict[str, str]] = {
        "features": "int[placed] in [0, p) rising",
        "sizes": f"int[placed] in [0, {MOST_KNOTS}]",
        "lower upper": "float[knots] unbounded",
        "starts": "int[place_starts]",
    }

    @classmethod
    def of(cls, features: np.ndarray, tables: list[PlaceTable]) -> FlatPlaces:
        """Join the tables of `features`."""
        return cls(
            features.astype(np.int64),
            np.array([len(table.upper) for table in tables], dtype=np.int64),
            np.concatenate([np.empty(0), *(table.lower for table in tables)]),
            np.concatenate([np.empty(0), *(table.upper for table in tables)]),
            np.concatenate([np.empty(0, dtype=np.int64), *(table.starts for table in tables)]),
        )

    def tables(self) -> list[PlaceTable]:
        """Return the table of each feature."""
        ends = np.cumsum(self.sizes)
        result = []
        for i, (end, size) in enumerate(zip(ends.tolist(), self.sizes.tolist())):
            knots = slice(end - size, end)
            result.append(PlaceTable(self.lower[knots], self.upper[knots], self.starts[end - size + i : end + i + 1]))
        return result

    def hold(self, tables: Sequence[PlaceTable] | Mapping[int, PlaceTable]) -> bool:
        """Return whether the tables equal the given tables by feature."""
        other = FlatPlaces.of(self.features, [tables[k] for k in self.features])
        names = ("sizes", "lower", "upper", "starts")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    def check(self, n_features: int, ensemble: Ensemble) -> None:
        """Raise `ModelFileError` if arrays from a file do not fit together."""
        total = int(self.sizes.sum())
        check_fields(self, self.FIELDS, p=n_features, knots=total, place_starts=total + len(self.features))
        if len(lost := np.setdiff1d(ensemble.features, self.features)):
            raise ModelFileError(f"ObliviousBoosting: feature {lost[0]} of the trees has no place table")
        for feature, table in zip(self.features, self.tables()):
            upward = (np.diff(table.starts) > 0).all() and (np.diff(table.upper) > 0).all()  # False for nan
            if not upward or not (table.lower <= table.upper).all() or table.starts[0] != 0:
                raise ModelFileError(f"ObliviousBoosting: the place table of feature {feature} is not ascending")


def knot_index(ends: list[tuple[np.ndarray, np.ndarray]]) -> StepIndex:
    """Return the index of features whose knots have these lower and upper ends, float64 (K,) each."""
    return StepIndex.of([_steps(*own) for own in ends], 0.5)


def _steps(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    return np.stack([np.nextafter(lower, -np.inf), upper], axis=1).ravel()


def spread_evenly(values: np.ndarray, n: int, ends: np.ndarray | None = None) -> np.ndarray:
    """Return the quantiles of sorted values on `n` places.

    `ends` as in `binning.find_borders`.

    >>> spread_evenly(np.array([1.0, 2.0, 3.0, 4.0]), 2).tolist()
    [2.0, 4.0]
    """
    if not len(values):
        return values
    return values_at(((np.arange(n) + 0.5) * count_of(values, ends) / n).astype(np.int64), values, ends)


def make_places(
    values: np.ndarray, borders: np.ndarray, limit: int, ends: np.ndarray | None = None, places_a_copy: float = 1.0
) -> PlaceTable:
    """Return the table of a feature, with at most `limit + len(borders)` knots, from its sorted observed values.

    A copy (`ends` as in `binning.find_borders`) has `places_a_copy` places, rounded, and a knot at least one.
    """
    if len(values) == 0:
        return PlaceTable(np.empty(0), np.empty(0), np.zeros(1, dtype=np.int64))
    first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    if len(first) > limit:
        wanted = (np.arange(limit) * count_of(values, ends)) // limit
        rows = wanted if ends is None else np.searchsorted(ends, wanted, side="right")
        kept = first[np.searchsorted(first, rows, side="right") - 1]
        first = np.union1d(kept, np.searchsorted(values, borders, side="right"))
    starts = np.append(first, len(values)).astype(np.int64)
    lower, upper = values[starts[:-1]].astype(np.float64), values[starts[1:] - 1].astype(np.float64)
    if ends is not None:
        starts = np.concatenate([[0], ends])[starts]
    if places_a_copy < 1.0:
        by_knot = np.arange(len(starts))
        starts = np.maximum.accumulate(np.rint(starts * places_a_copy).astype(np.int64) - by_knot) + by_knot
    return PlaceTable(lower, upper, starts)


@dataclass(frozen=True)
class Shares:
    """The factors of P(left) and P(right) of a feature's states, for one p."""

    up: np.ndarray = field(repr=False)  # float64 (2K + 1,): by state; includes p^start where `steep` is False
    down: np.ndarray = field(repr=False)  # float64 (2K + 1,): includes p^-stop there
    start: np.ndarray = field(repr=False)  # float64 (2K + 1,)
    stop: np.ndarray = field(repr=False)  # float64 (2K + 1,)
    n: int
    log_p: float
    steep: bool  # p^n underflows, so that powers of differences of places are used

    def border_factors(self, b: int) -> tuple[float, float]:
        """Return the factors in P(left) and P(right) of a border with b values at or below it."""
        left = -np.expm1(self.log_p * b)
        right = -np.expm1(self.log_p * (self.n - b))
        if self.steep:
            return float(left), float(right)
        return float(left * np.exp(self.log_p * (1 - b))), float(right * np.exp(self.log_p * b))

    def right_of(self, b: int, border_state: int, missing_right: bool) -> np.ndarray:
        """Return P(right) by state, with missing values last, float64 (2K + 2,)."""
        left, right = self.border_factors(b)
        if self.steep:
            table = _steep_table(self.up, self.down, self.start, self.stop, self.log_p, b, border_state, left, right)
        else:
            above = np.arange(len(self.up)) > border_state
            table = np.where(above, 1.0 - self.up * left, self.down * right)
        return np.append(table, float(missing_right))


class Norms:
    """(1 - p) Z(i) of all places; the last table is cached for features with as many places, unless large."""

    def __init__(self, p: float) -> None:
        self.log_p = float(np.log(max(p, 1e-300)))
        self._last = np.empty(0)

    def of(self, n: int) -> np.ndarray:
        """Return the table for n places, float64 (n,)."""
        if len(self._last) == n:
            return self._last
        norms = place_norms(n, self.log_p)
        if n <= _FEW_PLACES:
            self._last = norms
        return norms


def make_shares(places: PlaceTable, norms: Norms, ties: str) -> Shares:
    """Return the factors of every state of a feature; `ties` is "near" or "average"."""
    n, size, log_p = places.n, len(places.upper), norms.log_p
    steep = -log_p * n > _LARGEST_EXPONENT
    up, down = np.zeros(2 * size + 1), np.zeros(2 * size + 1)
    start, stop = np.empty(2 * size + 1), np.empty(2 * size + 1)
    start[0::2] = stop[0::2] = places.starts
    start[1::2], stop[1::2] = places.starts[:-1], places.starts[1:]
    if n:
        start[-1], stop[0] = n - 1, 1  # values beyond the observed range have the nearest place
        up[0::2] = 1.0 / _scaled_z(start[0::2], n, log_p)
        down[0::2] = np.exp(log_p) / _scaled_z(stop[0::2] - 1, n, log_p)
        single = (places.lower == places.upper) & (ties == "near")
        up[1::2], down[1::2] = mean_shares(places.starts, ~single, norms.of(n), log_p)
        if single.any():
            one = np.flatnonzero(single)
            up[1::2][one] = 1.0 / _scaled_z(start[1::2][one], n, log_p)
            down[1::2][one] = np.exp(log_p) / _scaled_z(stop[1::2][one] - 1, n, log_p)
    if not steep:
        up *= np.exp(log_p * start)
        down *= np.exp(-log_p * stop)
    return Shares(up, down, start, stop, n, log_p, steep)


def make_smoothing(places: PlaceTable, borders: np.ndarray, norms: Norms) -> np.ndarray:
    """Return the numbers by which `grower._smooth` smooths a feature's histogram, float64 (4, 256)."""
    result = np.zeros((4, 256))
    n, log_p = places.n, norms.log_p
    if n == 0:
        return result
    below = places.starts[np.searchsorted(places.upper, borders, side="right")]
    starts = np.concatenate([[0], below, [n]]).astype(np.int64)
    bins = len(borders) + 1
    up, down = mean_shares(starts, np.ones(bins, dtype=np.bool_), norms.of(n), log_p)
    result[0, :bins], result[1, :bins] = down, up
    result[2, :bins] = np.exp(log_p * np.diff(starts))
    result[3, : bins - 1] = below
    result[2, 255], result[3, 255] = log_p, n
    return result


def smoothing_of(borders: list[np.ndarray], places: list[PlaceTable], p: float) -> np.ndarray:
    """Return `make_smoothing` of every feature, padded to whole blocks of features."""
    result = np.zeros((-(-len(borders) // BLOCK) * BLOCK, 4, 256))
    norms = Norms(p)
    for k, (own, table) in enumerate(zip(borders, places)):
        result[k] = make_smoothing(table, own, norms)
    return result


def _scaled_z(i: np.ndarray, n: int, log_p: float) -> np.ndarray:
    """Return (1 - p) Z(i) = (1 - p^(i+1)) + p (1 - p^(n-i-1))."""
    return -np.expm1(log_p * (i + 1)) - np.exp(log_p) * np.expm1(log_p * (n - i - 1))


@kernel
def place_norms(n, log_p):
    """Return (1 - p) Z(i) for i in 0 … n - 1."""
    z = np.empty(n)
    p = np.exp(log_p)
    for i in range(n):
        z[i] = -np.expm1(log_p * (i + 1)) - p * np.expm1(log_p * (n - i - 1))
    return z


@kernel
def mean_shares(starts, wanted, z, log_p):
    """Return means of p^(i-start) / ((1-p) Z(i)) and p^(stop-i) / ((1-p) Z(i)) over the wanted blocks of places."""
    size = starts.size - 1
    up, down = np.zeros(size), np.zeros(size)
    widest = 0
    for k in range(size):
        if wanted[k]:
            widest = max(widest, starts[k + 1] - starts[k])
    power = np.empty(widest + 1)
    for j in range(widest + 1):
        power[j] = np.exp(log_p * j)
    for k in range(size):
        if not wanted[k]:
            continue
        a = b = 0.0
        start, stop = starts[k], starts[k + 1]
        for i in range(start, stop):
            a += power[i - start] / z[i]
            b += power[stop - i] / z[i]
        up[k] = a / (stop - start)
        down[k] = b / (stop - start)
    return up, down


@kernel
def _steep_table(up, down, start, stop, log_p, b, border_state, left, right):
    """Return P(right) by state. The bits are the same as in the predictor."""
    result = np.empty(up.size)
    for s in range(up.size):
        if s > border_state:
            result[s] = 1.0 - up[s] * np.exp(log_p * (start[s] - b + 1.0)) * left
        else:
            result[s] = down[s] * np.exp(log_p * (b - stop[s])) * right
    return result


@kernel
def find_states(values, index):
    """Return the state of each value of the index's only feature, uint16 (n,)."""
    out = np.empty(values.size, dtype=np.uint16)
    count_below(values, np.int64(0), values.size, index, np.int64(0), index.sizes[0] + 1, out)
    return out
