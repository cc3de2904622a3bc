"""A matrix of bin codes."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.types import ArrayLike, SparseMatrix
from truerank.data.grouping import offsets_of

MAX_EDGES = 254


class BinnedMatrix:
    """The codes of the bins of values, one byte for each document and base function, and the edges of the bins.

    Code 0 is a missing value. Code c >= 1 means that exactly c - 1 edges of the column are below the value. Therefore,
    "value > edge number t" (t from 1) is `code > t`, and "value is present" is `code > 0`: a column with T edges has T
    + 1 binary features.

    Parameters
    ----------
    codes : uint8 array (n, p), C-contiguous
    edges : sequence of p float64 arrays
        Strictly increasing edges of each column, at most 254.

    Attributes
    ----------
    starts : int64 array (p + 1,)
        Feature `starts[j]` is "column j is present", feature `starts[j] + t` is "column j is above its t-th edge".

    Examples
    --------
    >>> matrix = BinnedMatrix.from_values([[0.2], [0.7], [float("nan")]], [[0.1, 0.5]])
    >>> matrix.codes.ravel().tolist(), matrix.n_binary
    ([2, 3, 0], 3)
    >>> matrix.to_csr().toarray().tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    """

    is_binned_matrix = True
    __slots__ = ("codes", "edges", "starts")

    def __init__(self, codes: np.ndarray, edges: Sequence[Any]) -> None:
        codes = np.ascontiguousarray(codes)
        if codes.ndim != 2 or codes.dtype != np.uint8:
            raise InvalidInputError(
                f"codes must be a uint8 matrix, got {codes.dtype} with shape {codes.shape}", argument="codes"
            )
        if len(edges) != codes.shape[1]:
            raise InvalidInputError(f"got edges for {len(edges)} columns, but codes for {codes.shape[1]}")
        self.codes = codes
        self.edges = tuple(check_edges(e, column) for column, e in enumerate(edges))
        self.starts = offsets_of([len(e) + 1 for e in self.edges])
        if codes.size:
            largest = codes.max(axis=0)
            for column in np.flatnonzero(largest > np.diff(self.starts)):
                n_edges = len(self.edges[column])
                raise InvalidInputError(
                    f"column {column}: codes must be at most {n_edges + 1} (edges + 1), got {largest[column]}",
                    code="codes",
                )

    @classmethod
    def from_values(cls, values: ArrayLike, edges: Sequence[Any]) -> BinnedMatrix:
        """Return the codes of a matrix of values (n, p); NaN becomes the missing code."""
        from truerank.matrices.binning import code_rows

        values = np.asarray(values)
        if values.dtype.kind != "f":
            values = values.astype(np.float64)
        if values.ndim != 2 or values.shape[1] != len(edges):
            raise InvalidInputError(f"got values of shape {values.shape}, but edges for {len(edges)} columns")
        checked = [check_edges(e, column) for column, e in enumerate(edges)]
        coded = code_rows(values, checked)
        codes = coded.codes.transpose(1, 0, 2).reshape(len(values), -1)[:, coded.slots]
        codes = np.add(codes, np.uint8(1))  # the code of a missing value, 255, goes round to 0
        return cls(codes, checked)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns; a column is a base function, not a binary feature."""
        return self.codes.shape[0], self.codes.shape[1]

    @property
    def n_binary(self) -> int:
        """The number of binary features."""
        return int(self.starts[-1])

    @property
    def nbytes(self) -> int:
        """The memory of the codes in bytes."""
        return self.codes.nbytes

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice | np.ndarray) -> BinnedMatrix:
        """Return the rows of a slice (as a view), of indices or of a mask."""
        codes = self.codes[rows]
        if codes.ndim != 2:
            raise InvalidInputError(f"rows must be a slice, row numbers or a mask, got {rows!r:.40}", code="index")
        part = BinnedMatrix.__new__(BinnedMatrix)
        part.codes, part.edges, part.starts = np.ascontiguousarray(codes), self.edges, self.starts
        return part

    def same_edges(self, edges: Sequence[np.ndarray]) -> bool:
        """Return whether codes mean the same as those of a matrix with `edges`."""
        return len(self.edges) == len(edges) and all(map(np.array_equal, self.edges, edges))

    @staticmethod
    def concatenate(parts: Sequence[BinnedMatrix]) -> BinnedMatrix:
        """Return the rows of several matrices with the same edges, in order."""
        if any(not parts[0].same_edges(part.edges) for part in parts[1:]):
            raise InvalidInputError("the matrices have different edges. Use one ScoreBinning", code="different-edges")
        return BinnedMatrix(np.concatenate([part.codes for part in parts]), parts[0].edges)

    def to_csr(self) -> Any:
        """Return the binary features as a sparse matrix of ones, float64 (n, n_binary)."""
        from scipy import sparse

        # A code c means that the first c binary features of its column are there.
        counts = self.codes.ravel().astype(np.int64)
        starts = np.cumsum(counts) - counts
        within = np.arange(int(counts.sum())) - np.repeat(starts, counts)
        columns = np.repeat(np.tile(self.starts[:-1], len(self)), counts) + within
        rows = offsets_of(self.codes.sum(axis=1, dtype=np.int64))
        return sparse.csr_matrix((np.ones(len(columns)), columns, rows), shape=(len(self), self.n_binary))

    def __repr__(self) -> str:
        return f"BinnedMatrix({self.shape[0]} rows, {self.shape[1]} columns, {self.n_binary} binary features)"


def check_edges(edges: ArrayLike, column: int) -> np.ndarray:
    """Return the edges of a column as float64: finite, strictly increasing, at most 254."""
    array = np.ascontiguousarray(edges, dtype=np.float64)
    if array.ndim != 1 or len(array) > MAX_EDGES or not np.isfinite(array).all() or (np.diff(array) <= 0).any():
        raise InvalidInputError(
            f"edges of column {column} must be at most {MAX_EDGES} finite numbers in strictly increasing order, "
            f"got {len(array)} numbers: {reprlib.repr(array.tolist())}",
            argument="edges",
        )
    return array


StoredMatrix = np.ndarray | SparseMatrix | BinnedMatrix
"""Rows of a linear scorer, after the checks of the border."""
