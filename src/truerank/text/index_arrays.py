"""Arrays and strings in the folder of an index, and checks of their consistency.

Strings (document ids, terms) are UTF-8 bytes, ends, and the order of the sorted strings.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from pathlib import Path

import numpy as np

from truerank.core.errors import DataFileError, InvalidInputError
from truerank.data.grouping import offsets_of
from truerank.io.document_ids import DocumentIds


def load_array(path: Path) -> np.ndarray:
    """Open a memory-mapped array; an empty array cannot be mapped and is read."""
    try:
        try:
            return np.asarray(np.load(path, mmap_mode="r"))
        except ValueError:
            return np.load(path)
    except Exception as error:  # a damaged NumPy header can raise any error
        raise DataFileError(f"the index is damaged ({error}). Rebuild it", str(path)) from error


def check_fit(fits: bool, what: str, folder: Path) -> None:
    """Raise an error for inconsistent numbers. Kernels use these numbers as indices and would crash."""
    if not fits:
        raise DataFileError(f"the index is damaged ({what} are inconsistent). Rebuild it", str(folder))


def rise_to(ends: np.ndarray, last: int) -> bool:
    """Whether integers start at 0, never fall, and end at `last`."""
    if ends.ndim != 1 or ends.dtype.kind not in "iu" or not len(ends):
        return False
    return bool(ends[0] == 0 and ends[-1] == last and (ends[1:] >= ends[:-1]).all())


def lie_within(numbers: np.ndarray, lowest: int, end: int) -> bool:
    """Whether integers are in the range from `lowest` to `end` - 1."""
    if numbers.dtype.kind not in "iu":
        return False
    return not len(numbers) or lowest <= int(numbers.min()) <= int(numbers.max()) < end


def write_strings(folder: Path, name: str, strings: list[str]) -> None:
    """Write strings for `StoredStrings`; raises an error for a repeated string."""
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    ends = offsets_of(list(map(len, encoded)))
    np.save(folder / f"{name}.bytes.npy", np.frombuffer(b"".join(encoded), dtype=np.uint8))
    np.save(folder / f"{name}.ends.npy", ends)
    order = sorted(range(len(encoded)), key=encoded.__getitem__)
    for before, after in pairwise(order):
        if encoded[before] == encoded[after]:
            raise InvalidInputError(
                f"{name}: {strings[after]!r} is repeated as number {after + 1}; expected distinct ids"
            )
    np.save(folder / f"{name}.sorted.npy", np.array(order, dtype=np.int32))


class StoredStrings:
    """Strings in memory-mapped files, by number and by binary search."""

    def __init__(self, folder: Path, name: str) -> None:
        self._bytes, self._ends, self._sorted = (
            load_array(folder / f"{name}.{part}.npy") for part in ("bytes", "ends", "sorted")
        )
        check_fit(
            len(self._ends) == len(self._sorted) + 1
            and rise_to(self._ends, len(self._bytes))
            and lie_within(self._sorted, 0, len(self._sorted)),
            "its strings",
            folder,
        )

    def __len__(self) -> int:
        return len(self._sorted)

    def _at(self, number: int) -> bytes:
        return self._bytes[self._ends[number] : self._ends[number + 1]].tobytes()

    def as_ids(self) -> DocumentIds:
        """All strings as ids. The bytes are copied, because read-only arrays would need separate kernels."""
        return DocumentIds(np.array(self._bytes), self._ends[:-1], self._ends[1:])

    def ranks(self) -> np.ndarray:
        """Rank of each string in sorted order, int64 (n,)."""
        return np.argsort(self._sorted)

    def find(self, string: str) -> int:
        """Number of a string, -1 if unknown."""
        wanted, order = string.encode("utf-8", "surrogatepass"), self._sorted
        place = bisect_left(order, wanted, key=self._at)
        return int(order[place]) if place < len(order) and self._at(order[place]) == wanted else -1
