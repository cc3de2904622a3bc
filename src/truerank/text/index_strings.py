"""Strings of an index (document ids, terms): UTF-8 bytes, ends, and the order of the sorted strings."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from pathlib import Path

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.data.grouping import offsets_of
from truerank.io.document_ids import DocumentIds
from truerank.text.index_arrays import check_fit, lie_within, load_array, rise_to


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
        """All strings as ids. The bytes are copied, because read-only arrays would need kernels of their own."""
        return DocumentIds(np.array(self._bytes), self._ends[:-1], self._ends[1:])

    def ranks(self) -> np.ndarray:
        """Rank of each string in sorted order, int64 (n,)."""
        places = np.empty(len(self), dtype=np.int64)
        places[self._sorted] = np.arange(len(self))
        return places

    def find(self, string: str) -> int:
        """Number of a string, -1 if unknown."""
        wanted, order = string.encode("utf-8", "surrogatepass"), self._sorted
        place = bisect_left(order, wanted, key=self._at)
        return int(order[place]) if place < len(order) and self._at(order[place]) == wanted else -1
