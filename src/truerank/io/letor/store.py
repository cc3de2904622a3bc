"""Arrays that grow while a file is read, without a second copy in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.types import DTypeLike
from truerank.data.grouping import offsets_of
from truerank.io.letor.grammar import Rows

# Dense reading of wider data is refused unless the width is given: one damaged index would use all memory.
MAX_DENSE_WIDTH = 65_536
# A dense matrix of more bytes than this is refused where a smaller share of its cells than this is given in the text.
LARGE_MATRIX, LEAST_SHARE = 1 << 30, 1 / 32


class VectorStore:
    """A growing vector.

    The buffer has the expected size of the whole vector, because memory that was never written costs nothing. It grows
    in place (`realloc`) without moving data.
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self._buffer = np.zeros(0, dtype=dtype)
        self.size = 0

    def reserve(self, extra: int, expected: int) -> np.ndarray:
        """Return a view of the next `extra` entries, which are 0; `expected` is the estimated final size."""
        need = self.size + extra
        if need > len(self._buffer):
            room = max(need, expected, len(self._buffer) + len(self._buffer) // 8)
            if len(self._buffer) == 0:
                self._buffer = np.zeros(room, dtype=self._buffer.dtype)
            else:
                self._buffer.resize(room, refcheck=False)
        view = self._buffer[self.size : need]
        self.size = need
        return view

    def extend(self, values: np.ndarray, expected: int = 0) -> None:
        """Append values."""
        self.reserve(len(values), expected)[:] = values

    def widen(self, n_rows: int, old: int, new: int) -> None:
        """Widen the first `n_rows` rows from `old` to `new` entries in place; new entries are 0."""
        self._buffer.resize(max(len(self._buffer), n_rows * new), refcheck=False)
        source = self._buffer[: n_rows * old].reshape(n_rows, old)
        target = self._buffer[: n_rows * new].reshape(n_rows, new)
        block = max(1, (1 << 20) // (new * 8))
        for stop in range(n_rows, 0, -block):  # from the end, so that nothing is overwritten before it was moved
            start = max(0, stop - block)
            rows = source[start:stop].copy()
            target[start:stop] = 0
            target[start:stop, :old] = rows
        # What lay behind the moved rows was never written, or has been overwritten by them.
        self.size = n_rows * new

    def finish(self) -> np.ndarray:
        """Return the vector at its exact size."""
        if len(self._buffer) != self.size:
            self._buffer.resize(self.size, refcheck=False)
        return self._buffer


class DenseStore:
    """X as one C-contiguous matrix."""

    def __init__(self, dtype: np.dtype, n_features: int | None) -> None:
        self._values, self.dtype = VectorStore(dtype), dtype
        self._fixed = n_features is not None
        self.width = n_features or 0
        self.n_rows = 0
        self._entries = 0  # of blocks that made the matrix wider

    def extend(self, rows: Rows, expected_rows: int, name: str) -> None:
        """Append rows."""
        k = len(rows.grades)
        top = int(rows.indices.max()) + 1 if len(rows.indices) else 0
        if top > self.width:
            if top > MAX_DENSE_WIDTH and not self._fixed:
                raise DataFileError(
                    f"feature index {top} would make a dense matrix of {top} columns; read with sparse=True "
                    f"(--sparse), or with n_features={top} (--n-features {top}) if that is meant",
                    name,
                    rows.line_of(int(rows.indices.argmax())),
                )
            self._check_size(rows, top, max(expected_rows, self.n_rows + k), name)
            if self.n_rows:
                self._values.widen(self.n_rows, self.width, top)
            self.width = top
        width = self.width
        target = self._values.reserve(k * width, expected_rows * width).reshape(k, width)
        counts = np.diff(rows.indptr)
        try:
            with np.errstate(over="raise"):
                if width and k and counts.min() == width:
                    # As many entries as columns, ascending and below the width: every column once.
                    target[:] = rows.values.reshape(k, width)
                else:
                    cells = np.repeat(np.arange(k) * width, counts) + rows.indices
                    target.reshape(-1)[cells] = rows.values
        except FloatingPointError:
            raise _too_large(rows, name) from None
        self.n_rows += k

    def _check_size(self, rows: Rows, top: int, n_rows: int, name: str) -> None:
        """Refuse a width that was not requested if the matrix would be huge with few values."""
        self._entries += len(rows.indices)
        seen = self.n_rows + len(rows.grades)
        share = self._entries / (seen * top)
        size = n_rows * top * self.dtype.itemsize
        if self._fixed or size <= LARGE_MATRIX or share >= LEAST_SHARE:
            return
        raise DataFileError(
            f"feature index {top} would make a dense matrix of {n_rows} rows and {top} columns, {size / 2**30:.1f} "
            f"GiB, of which {share:.2%} are given; read with sparse=True (--sparse), or with n_features={top} "
            f"(--n-features {top}) if that is meant",
            name,
            rows.line_of(int(rows.indices.argmax())),
        )

    def finish(self) -> np.ndarray:
        """The matrix."""
        return self._values.finish().reshape(self.n_rows, self.width)


class SparseStore:
    """X as a SciPy CSR matrix without stored zeros."""

    def __init__(self, dtype: np.dtype, n_features: int | None) -> None:
        self.width, self.dtype = n_features or 0, dtype
        self._values, self._indices = VectorStore(dtype), VectorStore(np.int32)
        self._counts = VectorStore(np.int64)
        self.n_rows = 0

    def extend(self, rows: Rows, expected_rows: int, name: str) -> None:
        """Append rows."""
        if len(rows.indices):
            self.width = max(self.width, int(rows.indices.max()) + 1)
        stored = rows.values != 0
        entries = int(stored.sum())
        self.n_rows += len(rows.grades)
        expected = expected_rows * (self._values.size + entries) // max(1, self.n_rows)
        try:
            with np.errstate(over="raise"):
                self._values.extend(rows.values[stored], expected)
        except FloatingPointError:
            raise _too_large(rows, name) from None
        self._indices.extend(rows.indices[stored], expected)
        running = offsets_of(stored)
        self._counts.extend(np.diff(running[rows.indptr]), expected_rows)

    def finish(self) -> Any:
        """The matrix."""
        from scipy import sparse

        counts = self._counts.finish()
        indptr = np.zeros(self.n_rows + 1, dtype=np.int64)
        np.cumsum(counts, out=indptr[1:])
        if indptr[-1] <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        shape = (self.n_rows, self.width)
        return sparse.csr_matrix((self._values.finish(), self._indices.finish(), indptr), shape=shape, copy=False)


def _too_large(rows: Rows, name: str) -> DataFileError:
    place = int(np.argmax(np.abs(np.nan_to_num(rows.values))))
    return DataFileError(
        f"value {float(rows.values[place])!r} of feature {rows.indices[place] + 1} is too large for float32; read with "
        "dtype=float64",
        name,
        rows.line_of(place),
    )


def query_names(names: list[bytes]) -> np.ndarray:
    """Return query ids as int64 if all are whole numbers in their usual form, else as strings."""
    try:
        numbers = np.array(list(map(int, names)), dtype=np.int64)
    except (ValueError, OverflowError):
        numbers = None
    if numbers is not None and " ".join(map(str, numbers.tolist())).encode() == b" ".join(names):
        return numbers
    texts = [name.decode("utf-8") for name in names]
    return np.array(texts) if texts else np.zeros(0, dtype=np.int64)


def check_dtype(dtype: DTypeLike) -> np.dtype:
    """Return a dtype after a check that it is float32 or float64."""
    try:
        result = np.dtype(dtype)
    except TypeError:
        result = None
    if result not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise InvalidInputError(f"dtype must be float32 or float64, got {dtype!r}")
    return result
