"""Types of arguments that many functions share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypedDict

import numpy as np
from numpy.typing import ArrayLike as ArrayLike
from numpy.typing import DTypeLike as DTypeLike

Convention = Literal[
    "trec",
    "trec9",
    "gdeval",
    "letor3",
    "letor4",
    "mslr",
    "ranklib",
    "lightgbm",
    "xgboost",
    "catboost",
    "sklearn",
    "ranx",
]
Test = Literal["randomisation", "t", "wilcoxon", "sign"]
Correction = Literal["max-t", "holm", "bonferroni", "benjamini-hochberg", "none"]
Topics = Literal["common", "all"]
TrainingRule = Literal["leave out", "keep", "refuse"]
Pairs = Literal["baseline", "all"]
TreeObjective = (
    Literal[
        "mse", "query-mse", "lambdarank", "softmax", "xe-ndcg", "pairwise-logistic", "yetirank", "unbiased-lambdarank",
        "ips-lambdarank",
    ]
    | Callable[..., Any]
)  # fmt: skip


class NoOthers(TypedDict):
    """Type of the keywords after `**`, of which a type checker allows none.

    At run time, methods also accept some names of other libraries.
    """


PathLike = str | os.PathLike[str]
"""The name of a file."""

RandomState = int | np.integer[Any] | np.random.Generator | np.random.RandomState | None
"""Values that `core.random_streams.seed_of` converts to a seed."""


class Matrix(Protocol):
    """Rows of features (n, p), in an array, a sparse matrix or a matrix of bins."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of rows and columns."""
        ...

    def __getitem__(self, key: Any, /) -> Any:
        """Return some of the rows, or of the values."""
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
        """Return scores (n,), where higher scores rank first."""
        ...


class _Named(Protocol):
    @property
    def name(self) -> str:
        """The printed name of the measure."""
        ...


MeasureLike = str | _Named | Callable[..., float]
"""A measure: its name, a `Measure`, or a function of the ranked grades."""

MeasuresLike = MeasureLike | Sequence[MeasureLike]
"""One measure or several measures."""


class GateSettings(TypedDict, total=False):
    """Arguments of `Experiment.gate` after the margin; see `truerank.gate`."""

    at_least: Mapping[str, float] | None
    at_most: Mapping[str, float] | None
    looks: int
    history: Any
    inconclusive: Literal["pass", "fail"] | None
    random_state: RandomState


class PageSettings(TypedDict, total=False):
    """Arguments of `Experiment.report` after the path; see `make_report`."""

    title: str
    made_by: str
    sources: Mapping[str, str] | None
    cutoff: Any


class HasArray(Protocol):
    """A column or a frame of a data frame library."""

    def __array__(self) -> Any:
        """Return the values of the column or frame."""


class HasScores(Protocol):
    """A `Run` of truerank or of another library."""

    scores: Any


class Frame(Protocol):
    """A data frame of pandas or polars; one of judged rows has the columns of `read_table`."""

    @property
    def columns(self) -> Any: ...
    @property
    def dtypes(self) -> Any: ...


OneSystem = str | os.PathLike[str] | HasArray | Sequence[float] | HasScores | Scorer | Mapping[Any, Mapping[Any, float]]
"""A system of `evaluate`: a path, column, scores, run, frame or ranker."""

Systems = Mapping[str, Any] | Sequence[str | os.PathLike[str] | HasScores | Scorer]
"""Several systems by name, or a list of systems that have names."""
