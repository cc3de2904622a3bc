"""Properties of rows for a fit, parts of rows in memory, and functions that merge results of parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truerank.core.checks import is_sparse
from truerank.core.float32 import are_float32, holds_missing, numbers_of

Merge = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Description:
    """The properties of rows that a fit requires."""

    n_rows: int
    queries: list[Any]
    n_features: int
    names: list[str] | None
    categories: dict[str, list[str]] | None
    query_weight: np.ndarray | None
    judged: bool
    dense: bool
    finite: bool
    inputs: str
    close_columns: list[int]
    float32: bool
    missing: bool
    weighs_rows: bool
    largest_grade: float
    largest_weight: float | None

    @classmethod
    def of(cls, data: Any) -> Description:
        """Return the description of a `RankingData`; O(n p)."""
        values = data.X.data if is_sparse(data.X) else data.X
        with np.errstate(all="ignore"):
            finite = bool(np.isfinite(np.sum(values, dtype=np.float64))) or bool(np.isfinite(values).all())
        weight = data.row_weight
        inputs, close_columns = numbers_of(data.X)
        return cls(
            n_rows=data.n_rows,
            n_features=data.n_features,
            queries=data.query_ids.tolist(),
            names=data.feature_names,
            categories=data.category_names,
            query_weight=data.query_weight,
            judged=data.y is not None,
            dense=not is_sparse(data.X),
            finite=finite,
            inputs=inputs,
            close_columns=close_columns,
            float32=are_float32(values),
            missing=holds_missing(values),
            weighs_rows=data.sample_weight is not None,
            largest_grade=0.0 if data.y is None else float(np.abs(data.y).max(initial=0.0)),
            largest_weight=None if weight is None else float(weight.max(initial=0.0)),
        )


@dataclass
class HeldPart:
    """A part with its rows in this process."""

    data: Any  # RankingData
    number: int = 0
    hold: bool = True
    memory: dict[str, Any] = field(default_factory=dict)

    def columns(self, chosen: Sequence[int], names: Sequence[str] | None) -> Any:
        """Return some columns (n, k) of the rows."""
        return self.data.X[:, chosen]


def add(a: Any, b: Any) -> Any:
    """Return the sum of two arrays, numbers, or tuples of these."""
    if isinstance(a, tuple):
        return tuple(add(x, y) for x, y in zip(a, b, strict=True))
    return None if a is None else a + b


def largest(a: Any, b: Any) -> Any:
    """Return the entrywise maximum of two arrays, or tuples of these."""
    if isinstance(a, tuple):
        return tuple(largest(x, y) for x, y in zip(a, b, strict=True))
    return np.maximum(a, b)


def beside(a: Any, b: Any) -> Any:
    """Concatenate lists of results in the order of the parts."""
    return a + b


def joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return the arrays of all parts as one array; a single array is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
