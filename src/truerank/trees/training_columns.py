"""What trees know of the training columns before they grow: candidate borders, places of fuzzy borders, scaling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.matrices.binning import count_of, find_borders, scan_columns
from truerank.matrices.bundles import scan_sparse_columns
from truerank.matrices.row_copies import RowCopies
from truerank.trees.leaves.fuzzy import FuzzyLeaves
from truerank.trees.leaves.places import PlaceTable, make_places, spread_evenly
from truerank.trees.scaling import Scaling, column_scaling


@dataclass(frozen=True)
class TrainingColumns:
    """Borders of each feature; places with fuzzy leaves (else None each); scaling where values are standardised."""

    borders: list[np.ndarray]
    places: list[Any]
    scaling: Scaling | None

    @property
    def n_bins(self) -> np.ndarray:
        """Codes of each feature but that of missing values, int32 (p,)."""
        return np.array([len(own) + 1 for own in self.borders], dtype=np.int32)

    @classmethod
    def of(cls, looked: Sequence[tuple[np.ndarray, Any, Any]], clip: bool) -> TrainingColumns:
        """From `look_at` of each column, or the like."""
        borders, places, scalings = ([one[i] for one in looked] for i in range(3))
        scaled = bool(scalings) and scalings[0] is not None
        return cls(borders, places, Scaling.of(scalings, clip) if scaled else None)


def look_at(
    values: np.ndarray, parts: int, leaves: Any, scaled: bool, ends: np.ndarray | None = None, places_a_copy: float = 1
) -> tuple[np.ndarray, Any, Any]:
    """Borders, places and `column_scaling` of a column from its sorted observed values (n,).

    `ends` and `places_a_copy` as in `make_places`.
    """
    borders = find_borders(values, parts, ends)
    places = None
    if isinstance(leaves, FuzzyLeaves):
        places = make_places(values, borders, leaves.places, ends, places_a_copy)
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
    """Look at every column of a dense or CSC matrix (n, p), whose rows count as their `copies`.

    A column with places known from other data keeps these, and its borders move to their knots; one without takes as
    many places as the known ones have.
    """
    scan = scan_sparse_columns if hasattr(X, "tocsc") else scan_columns
    most = max((table.n for table in known_places.values()), default=0)
    total, places_a_copy = (X.shape[0], 1.0) if copies is None else (copies.total, copies.places_a_copy)

    def look(k: int, values: np.ndarray, ends: np.ndarray | None) -> tuple[np.ndarray, Any, Any]:
        if not known_places:
            return look_at(values, parts, leaves, scaled, ends, places_a_copy)
        borders = find_borders(values, parts, ends)
        places = known_places.get(k)
        if places is None:
            spread = spread_evenly(values, max(1, round(most * count_of(values, ends) / total)), ends)
            places = make_places(spread, borders, leaves.places)
        return places.borders_at_knots(borders), places, column_scaling(values, ends) if scaled else None

    return TrainingColumns.of(scan(X, look, n_jobs, None if copies is None else copies.counts), clip)
