"""Types of arguments that many functions have."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

__all__ = [
    "ArrayLike",
    "DTypeLike",
    "Matrix",
    "MatrixLike",
    "MeasureLike",
    "MeasuresLike",
    "PathLike",
    "RandomState",
    "Scorer",
    "SparseMatrix",
]

PathLike = str | os.PathLike[str]
"""The name of a file."""

RandomState = int | np.integer[Any] | np.random.Generator | np.random.RandomState | None
"""Values that `core.random_streams.seed_of` converts to a seed."""


class Matrix(Protocol):
    """Rows of features: an array, a sparse matrix or a matrix of bins (n, p)."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        ...

    def __getitem__(self, key: Any, /) -> Any:
        """Some of the rows, or of the values."""
        ...


class SparseMatrix(Matrix, Protocol):
    """A CSR or CSC matrix of SciPy."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    nnz: int
    has_sorted_indices: bool
    has_canonical_format: bool

    def sorted_indices(self) -> SparseMatrix:
        """Return a copy whose indices are sorted."""
        ...

    def tocsr(self) -> SparseMatrix:
        """Return the matrix by rows."""
        ...


class _Grouped(Protocol):
    X: Any
    y: Any
    offsets: np.ndarray


MatrixLike = ArrayLike | Matrix | _Grouped
"""Rows as callers give them: lists, arrays, frames, sparse matrices, or a `RankingData`."""


class Scorer(Protocol):
    """A fitted ranker of truerank or of another library."""

    def predict(self, X: Any, /) -> Any:
        """Scores (n,), higher ranks first."""
        ...


class _Named(Protocol):
    @property
    def name(self) -> str:
        """The printed name of the measure."""
        ...


MeasureLike = str | _Named | Callable[..., float]
"""A measure: its name, a `Measure`, or a function of the ranked grades."""

MeasuresLike = MeasureLike | Sequence[MeasureLike]
"""One measure or several."""
