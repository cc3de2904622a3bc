"""Collect rows for comparing an export with its model: given or generated, at thresholds, with missing values."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from truerank.core.float32 import largest_rounding_to, shortest_decimal
from truerank.data.ranking_data import RankingData
from truerank.export.form import Fuzzy, Linear, ModelForm, Plain, Stumps, undo_normalizers
from truerank.rankers.accepted_data import any_category

_CASES = 20_000  # border cases at most
_MERGED = 2_000
_MADE_UP = 200


def dense_rows(data: RankingData) -> np.ndarray:
    """Return the rows (n, p) as dense float64 numbers."""
    return np.asarray(data.X.toarray() if hasattr(data.X, "toarray") else data.X, dtype=np.float64)


def reference_scores(form: ModelForm, X: np.ndarray) -> np.ndarray:
    """Return the model's scores of float64 rows: `predict`, or P(relevant) of a calibrated model.

    Rows with missing values have the score nan if `predict` refuses them.
    """
    model = form.model
    if not len(X):
        return np.empty(0)
    if not (form.allow_nan or form.reads_zero.all()) and np.isnan(X).any():
        scores, whole = np.full(len(X), np.nan), ~np.isnan(X).any(axis=1)
        if whole.any():
            scores[whole] = reference_scores(form, X[whole])
        return scores
    with warnings.catch_warnings(), any_category():
        # The rows are arrays, whose columns have no names.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        if form.calibration is not None:
            return np.asarray(model.predict_proba(X)[:, 1])
        return np.asarray(model.predict(X), dtype=np.float64)


def thresholds_of(form: ModelForm) -> tuple[np.ndarray, np.ndarray]:
    """Return features and thresholds of all distinct questions, in the units of the rows."""
    body = form.body
    if isinstance(body, Linear):
        return np.empty(0, dtype=np.int64), np.empty(0)
    trees: Any = body if isinstance(body, Stumps) else body.trees
    asked = trees.thresholds if isinstance(body, Stumps | Plain) else trees.borders
    pairs = np.stack([trees.features.ravel(), asked.ravel()], axis=1)
    pairs = np.unique(pairs[np.isfinite(pairs[:, 1])], axis=0)
    features, thresholds = pairs[:, 0].astype(np.int64), pairs[:, 1]
    if form.normalizers is not None and len(features):
        thresholds = undo_normalizers(form.normalizers, features, thresholds)
    return features, thresholds


def border_cases(form: ModelForm, X: np.ndarray, float32: bool, inputs: str, tiny: float = 0.0) -> np.ndarray:
    """Return rows of X with one feature at a threshold or the next number on either side in the engine's precision.

    Numbers up to `tiny`, which the engine reads as 0, are omitted; 0 is kept.
    """
    features, thresholds = thresholds_of(form)
    if not len(features) or not len(X):
        return np.empty((0, form.n_features))
    number = np.float32 if float32 else np.float64
    with np.errstate(over="ignore"):
        near = thresholds.astype(number)
        sides = [np.nextafter(near, number(-np.inf)), near, np.nextafter(near, number(np.inf))]
    decimal = float32 and inputs == "decimal"
    values = [shortest_decimal(side) if decimal else side.astype(np.float64) for side in sides]
    if inputs == "float64":  # the float32 number may lie on the other side of the border that it rounds
        values[1] = thresholds
    columns, numbers = np.tile(features, 3), np.concatenate(values)
    keep = np.flatnonzero(np.isfinite(numbers) & ((np.abs(numbers) > tiny) | (numbers == 0)))
    if len(keep) > _CASES:
        keep = keep[:: -(-len(keep) // _CASES)]
    rows = X[np.arange(len(keep)) % len(X)].copy()
    rows[np.arange(len(keep)), columns[keep]] = numbers[keep]
    return rows


def steps_of(form: ModelForm) -> tuple[np.ndarray, np.ndarray]:
    """Return features and numbers at which a score may jump: thresholds, and ends of fuzzy places."""
    features, steps = thresholds_of(form)
    if not isinstance(form.body, Fuzzy):
        return features, steps
    places = form.body.places
    columns, upper = np.repeat(places.features, places.sizes), places.upper
    if form.normalizers is not None:
        upper = undo_normalizers(form.normalizers, columns, upper)
    return np.concatenate([features, columns]), np.concatenate([steps, upper])


def merged_cases(form: ModelForm, X: np.ndarray) -> np.ndarray:
    """Return rows of X with one or all features at the largest number that float32 merges with a border or place."""
    features, steps = steps_of(form)
    with np.errstate(over="ignore"):
        largest = largest_rounding_to(steps.astype(np.float32))
    features, largest = features[np.isfinite(largest)], largest[np.isfinite(largest)]
    if not len(largest):
        return X[:0]
    rng, keep = np.random.default_rng(0), np.arange(0, len(largest), -(-len(largest) // _MERGED))
    rows = X[np.arange(len(keep) + _MADE_UP) % len(X)].copy()
    rows[np.arange(len(keep)), features[keep]] = largest[keep]
    for k in np.unique(features):
        rows[len(keep) :, k] = rng.choice(largest[features == k], size=_MADE_UP)
    return rows


def missing_cases(form: ModelForm, X: np.ndarray, missing: str) -> np.ndarray:
    """Return rows that lack one feature and a row that lacks all features, or no rows if the model refuses nan."""
    if not len(X) or (missing == "nan" and not form.allow_nan):
        return np.empty((0, form.n_features))
    value = np.nan if missing == "nan" else 0.0
    rows = X[np.arange(len(form.used) + 1) % len(X)].copy()
    rows[np.arange(len(form.used)), form.used] = value
    rows[-1] = value
    return rows


def made_up_rows(form: ModelForm, inputs: str = "decimal") -> np.ndarray:
    """Generate rows for a certificate without data: features between and beyond their thresholds, seed 0."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(_MADE_UP, form.n_features))
    features, thresholds = thresholds_of(form)
    for k in np.unique(features):
        own = thresholds[features == k]
        low, high = float(own.min()), float(own.max())
        width = max(high - low, 1e-3 * max(abs(low), abs(high)), 1e-12)
        rows[:, k] = rng.uniform(low - width, high + width, size=_MADE_UP)
    if inputs == "float64":
        return rows
    with np.errstate(over="ignore"):  # rounded as a log would hold them
        rounded = rows.astype(np.float32)
    held = rounded.astype(np.float64) if inputs == "float32" else shortest_decimal(rounded)
    return np.where(np.isinf(rounded), rows, held)
