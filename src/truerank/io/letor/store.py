"""Arrays that grow while a file is read, without a second copy in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.errors import DataFileError, InvalidInputError, Remedy
from truerank.core.types import DTypeLike
from truerank.data.grouping import offsets_of
from truerank.io.letor.grammar import ParsedRows

# Dense reading of wider data is refused unless the width is given: one damaged index would use all memory.
MAX_DENSE_WIDTH = 65_536
# A dense matrix of more bytes than this is refused where a smaller share of its cells than this is given in the text.
LARGE_MATRIX, LEAST_SHARE = 1 << 30, 1 / 32


def _grown(buffer: np.ndarray, size: int, expected: int) -> np.ndarray:
    """Return a buffer of at least `size` entries, with zeros in new entries; `expected` is the estimated final size.

    The buffer grows in place (`realloc`) without moving data, and unwritten memory costs nothing.
    """
    if size > len(buffer):
        room = max(size, expected, len(buffer) + len(buffer) // 8)
        if len(buffer) == 0:
            return np.zeros(room, dtype=buffer.dtype)
        buffer.resize(room, refcheck=False)
    return buffer


class DenseStore:
    """X as one C-contiguous matrix."""

    def __init__(self, dtype: np.dtype, n_features: int | None) -> None:
        self._values = np.zeros(0, dtype=dtype)
        self.width = n_features or 0
        self.n_rows = 0
        self._entries = 0  # of blocks that made the matrix wider

    def extend(self, rows: ParsedRows, expected_rows: int, name: str) -> None:
        """Append rows."""
        k = rows.n_rows
        top = int(rows.indices.max()) + 1 if len(rows.indices) else 0
        if top > self.width:
            self._entries += len(rows.indices)
            n_rows = max(expected_rows, self.n_rows + k)
            share, size = self._entries / ((self.n_rows + k) * top), n_rows * top * self._values.itemsize
            if top > MAX_DENSE_WIDTH or (size > LARGE_MATRIX and share < LEAST_SHARE):
                what = f"{n_rows} rows and {top} columns, {size / 2**30:.1f} GiB, of which {share:.2%} are given"
                raise DataFileError(
                    f"feature index {top} would make a dense matrix of "
                    f"{f'{top} columns' if top > MAX_DENSE_WIDTH else what}",
                    name,
                    rows.line_of(int(rows.indices.argmax())),
                    remedies=[Remedy(sparse=True), Remedy("if that is meant", n_features=top)],
                    code="too-wide",
                )
            if self.n_rows:
                self._widen(top)
            self.width = top
        width = self.width
        first, last = self.n_rows * width, (self.n_rows + k) * width
        self._values = _grown(self._values, last, expected_rows * width)
        target = self._values[first:last].reshape(k, width)
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

    def _widen(self, new: int) -> None:
        """Widen the rows in place; new entries are 0."""
        n_rows, old = self.n_rows, self.width
        self._values = _grown(self._values, n_rows * new, 0)
        source = self._values[: n_rows * old].reshape(n_rows, old)
        target = self._values[: n_rows * new].reshape(n_rows, new)
        block = max(1, (1 << 20) // (new * 8))
        for stop in range(n_rows, 0, -block):  # from the end, so that nothing is overwritten before it was moved
            start = max(0, stop - block)
            rows = source[start:stop].copy()
            target[start:stop] = 0
            target[start:stop, :old] = rows
        # What is behind the moved rows was never written.

    def finish(self) -> np.ndarray:
        """Return the matrix."""
        self._values.resize(self.n_rows * self.width, refcheck=False)
        return self._values.reshape(self.n_rows, self.width)


class SparseStore:
    """X as a SciPy CSR matrix without stored zeros."""

    def __init__(self, dtype: np.dtype, n_features: int | None) -> None:
        self.width = n_features or 0
        self._values, self._indices = np.zeros(0, dtype=dtype), np.zeros(0, dtype=np.int32)
        self._counts: list[np.ndarray] = []  # entries of each row
        self.n_rows = self._entries = 0

    def extend(self, rows: ParsedRows, expected_rows: int, name: str) -> None:
        """Append rows."""
        if len(rows.indices):
            self.width = max(self.width, int(rows.indices.max()) + 1)
        stored = rows.values != 0
        first, last = self._entries, self._entries + int(stored.sum())
        self._entries, self.n_rows = last, self.n_rows + rows.n_rows
        expected = expected_rows * last // max(1, self.n_rows)
        self._values, self._indices = (_grown(own, last, expected) for own in (self._values, self._indices))
        try:
            with np.errstate(over="raise"):
                self._values[first:last] = rows.values[stored]
        except FloatingPointError:
            raise _too_large(rows, name) from None
        self._indices[first:last] = rows.indices[stored]
        self._counts.append(np.diff(offsets_of(stored)[rows.indptr]))

    def finish(self) -> Any:
        """Return the matrix."""
        from scipy import sparse

        indptr = offsets_of(np.concatenate(self._counts))
        if indptr[-1] <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        for own in (self._values, self._indices):
            own.resize(self._entries, refcheck=False)
        shape = (self.n_rows, self.width)
        return sparse.csr_matrix((self._values, self._indices, indptr), shape=shape, copy=False)


def _too_large(rows: ParsedRows, name: str) -> DataFileError:
    place = int(np.argmax(np.abs(np.nan_to_num(rows.values))))
    return DataFileError(
        f"value {float(rows.values[place])!r} of feature {rows.indices[place] + 1} is too large for float32. Read the "
        "file with dtype=float64",
        name,
        rows.line_of(place),
    )


def query_names(names: list[bytes]) -> np.ndarray:
    """Return query ids as int64 if all are whole numbers in the usual form, else as strings."""
    try:
        numbers = np.array(list(map(int, names)), dtype=np.int64)
    except (ValueError, OverflowError):
        numbers = None
    if numbers is not None and " ".join(map(str, numbers.tolist())).encode() == b" ".join(names):
        return numbers
    texts = [name.decode("utf-8") for name in names]
    return np.array(texts) if texts else np.zeros(0, dtype=np.int64)


def check_dtype(dtype: DTypeLike) -> np.dtype:
    """Check that a dtype is float32 or float64, and return it."""
    try:
        result = np.dtype(dtype)
    except TypeError:
        result = None
    if result not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise InvalidInputError(argument="dtype", expected="float32 or float64", value=dtype)
    return result
