"""Compute candidate borders, places of fuzzy borders and scaling of the training columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from truerank.core.checks import is_sparse
from truerank.core.errors import ModelFileError
from truerank.core.schema import check_fields
from truerank.matrices.binning import count_of, find_borders, scan_columns
from truerank.matrices.bundles import scan_sparse_columns, sorted_sparse_column
from truerank.matrices.row_copies import RowCopies
from truerank.trees.leaves.places import PlaceTable, make_places, spread_evenly

_FAR = 1e30  # standard deviations
_LARGEST, _LEAST = float(np.finfo(np.float64).max), 5e-324


@dataclass(frozen=True)
class Scaling:
    """Standardised features are `(clip(x, low, high) - mean) / scale`, and 0 for NaN; arrays (p,)."""

    mean: np.ndarray
    scale: np.ndarray
    low: np.ndarray
    high: np.ndarray

    FIELDS: ClassVar[dict[str, str]] = {
        "mean": "float[p]",
        "scale": "float[p] in (0, inf]",
        "low high": "float[p] in [-inf, inf]",
    }

    @classmethod
    def of(cls, columns: list[np.ndarray], clip: bool) -> Scaling:
        """Combine `column_scaling` of each column."""
        mean, scale, low, high = np.array(columns, dtype=np.float64).reshape(-1, 4).T.copy()
        if not clip:  # only so far that polynomials of low degree are finite
            with np.errstate(over="ignore"):
                low, high = np.maximum(mean - _FAR * scale, -_LARGEST), np.minimum(mean + _FAR * scale, _LARGEST)
        return cls(mean, scale, low, high)

    def take(self, X: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Return standardised columns (len(features), n) of the rows of X."""
        return self.standardise(np.ascontiguousarray(X.T[features], dtype=np.float64), features)

    def standardise(self, x: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Standardise columns x (len(features), n)."""
        one = features[:, None]
        z = np.clip(x, self.low[one], self.high[one])
        z -= self.mean[one]
        z /= self.scale[one]
        z[np.isnan(z)] = 0.0
        return z

    def check(self, n_features: int) -> None:
        """Raise `ModelFileError` if arrays from a file do not fit together."""
        check_fields(self, self.FIELDS, p=n_features)
        if not (self.low <= self.high).all():
            raise ModelFileError(
                f"ObliviousBoosting: feature_low_ exceeds feature_high_ in entry {np.argmin(self.low <= self.high)}"
            )


def column_scaling(values: np.ndarray, ends: np.ndarray | None = None) -> np.ndarray:
    """Return mean, deviation (1 for 0), least and largest of sorted values; `ends` as in `binning.find_borders`."""
    if len(values) == 0:
        return np.array([0.0, 1.0, 0.0, 0.0])
    low, high = float(values[0]), float(values[-1])
    # A power of two near the largest magnitude is the unit, so that no square over- or underflows.
    unit = float(np.exp2(np.clip(np.frexp(max(abs(low), abs(high)))[1] - 1, -1000, 1000)))
    shares = values.astype(np.float64)
    shares /= unit
    if ends is None:
        middle, spread = float(shares.mean()), float(shares.std())
    else:
        copies = np.diff(ends, prepend=0)
        middle = float(np.average(shares, weights=copies))
        spread = float(np.sqrt(np.average((shares - middle) ** 2, weights=copies)))
    mean = float(np.clip(middle * unit, low, high))
    scale = spread * unit
    return np.array([mean, scale if scale > 0 else 1.0, low, high])


class PlacesOnDemand(dict[int, PlaceTable]):
    """Place tables by feature, computed on the first access, because trees use only few of many features."""

    def __init__(self, make: Callable[[int], PlaceTable]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, feature: int) -> PlaceTable:
        self[feature] = self._make(feature)
        return self[feature]


@dataclass(frozen=True)
class TrainingColumns:
    """Borders, places (None unless leaves are fuzzy) and scaling (None unless used) of each feature."""

    borders: list[np.ndarray]
    places: Any  # a list by feature, or `PlacesOnDemand` for sparse rows
    scaling: Scaling | None

    @property
    def n_bins(self) -> np.ndarray:
        """The number of codes of each feature without the code of missing values, int32 (p,)."""
        return np.array(list(map(len, self.borders)), dtype=np.int32) + np.int32(1)

    @classmethod
    def of(cls, looked: Sequence[tuple[np.ndarray, Any, Any]], clip: bool) -> TrainingColumns:
        """Combine the results of `look_at` for each column."""
        borders, places, scalings = map(list, zip(*looked)) if looked else ([], [], [])
        scaled = bool(scalings) and scalings[0] is not None
        return cls(borders, places, Scaling.of(scalings, clip) if scaled else None)


def look_at(
    values: np.ndarray, parts: int, leaves: Any, scaled: bool, ends: np.ndarray | None = None, places_a_copy: float = 1
) -> tuple[np.ndarray, Any, Any]:
    """Return borders, places and scaling of a column from its sorted observed values (n,); see `make_places`."""
    borders = find_borders(values, parts, ends)
    places = None
    if leaves is not None and leaves.needs_places:
        places = make_places(values, borders, leaves.most_places, ends, places_a_copy)
    return borders, places, column_scaling(values, ends) if scaled else None


def scan_training_columns(
    X: Any,
    copies: RowCopies | None,
    parts: int,
    leaves: Any,
    scaled: bool,
    clip: bool,
    known_places: Mapping[int, PlaceTable],
    n_jobs: int | None,
) -> TrainingColumns:
    """Compute `TrainingColumns` from every column of a dense or CSC matrix (n, p), whose rows count as their `copies`.

    A column keeps the `known_places` of a continued model, and its borders move to the knots of these places; any other
    column gets an equal number of places. Places of a CSC matrix are computed on demand, unless the level search
    requires all places.
    """
    sparse = is_sparse(X)
    on_demand = sparse and leaves.needs_places and not leaves.searches_places
    most = max(map(attrgetter("n"), known_places.values()), default=0)
    total, places_a_copy = (X.shape[0], 1.0) if copies is None else (copies.total, copies.places_a_copy)
    counts = None if copies is None else copies.counts

    def look(
        k: int, values: np.ndarray, ends: np.ndarray | None, wants_places: bool = not on_demand
    ) -> tuple[np.ndarray, Any, Any]:
        if not known_places:
            return look_at(values, parts, leaves if wants_places else None, scaled, ends, places_a_copy)
        borders = find_borders(values, parts, ends)
        places = known_places.get(k)
        if places is None:
            spread = spread_evenly(values, max(1, round(most * count_of(values, ends) / total)), ends)
            places = make_places(spread, borders, leaves.most_places)
        own_borders = places.borders_at_knots(borders)
        return own_borders, places if wants_places else None, column_scaling(values, ends) if scaled else None

    scan = scan_sparse_columns if sparse else scan_columns
    columns = TrainingColumns.of(scan(X, look, n_jobs, counts), clip)
    if not on_demand:
        return columns

    def places_of(k: int) -> PlaceTable:
        table: PlaceTable = look(k, *sorted_sparse_column(X, k, counts, total), wants_places=True)[1]
        return table

    return replace(columns, places=PlacesOnDemand(places_of))
