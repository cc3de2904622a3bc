"""Strings of an index, ids of documents or terms: UTF-8 bytes, ends, and the order of the sorted strings."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.data.grouping import offsets_of
from truerank.io.document_ids import DocumentIds
from truerank.text.index_arrays import check_fit, lie_within, load_array, rise_to, save_array


def write_strings(folder: Path, name: str, strings: list[str]) -> None:
    """Write what `StoredStrings` reads; two that are the same are an error."""
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    ends = offsets_of(list(map(len, encoded)))
    save_array(folder / f"{name}.bytes.npy", np.frombuffer(b"".join(encoded), dtype=np.uint8))
    save_array(folder / f"{name}.ends.npy", ends)
    order = sorted(range(len(encoded)), key=encoded.__getitem__)
    for before, after in pairwise(order):
        if encoded[before] == encoded[after]:
            raise InvalidInputError(
                f"{name}: {strings[after]!r} came before, and again as number {after + 1}; ids must differ"
            )
    save_array(folder / f"{name}.sorted.npy", np.array(order, dtype=np.int32))


class StoredStrings:
    """Strings in memory-mapped files: by number, and found by halving."""

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

    def __getitem__(self, number: int) -> str:
        return self._at(number).decode("utf-8", "surrogatepass")

    def as_ids(self) -> DocumentIds:
        """All strings; their bytes are copied, because kernels are compiled once more for what cannot be written."""
        return DocumentIds(np.array(self._bytes), self._ends[:-1], self._ends[1:])

    def ranks(self) -> np.ndarray:
        """Place of each string among all of them sorted, int64 (n,)."""
        places = np.empty(len(self), dtype=np.int64)
        places[self._sorted] = np.arange(len(self))
        return places

    def find(self, string: str) -> int:
        """Number of a string, -1 where it is not here."""
        wanted = np.frombuffer(string.encode("utf-8", "surrogatepass"), dtype=np.uint8)
        return int(_find_string(self._bytes, self._ends, self._sorted, wanted))


@kernel
def _find_string(texts, ends, order, wanted):
    """Number of the string `wanted` among strings that `order` sorts by bytes, -1 where it is missing."""
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        start = ends[order[middle]]
        size = ends[order[middle] + 1] - start
        place = 0
        while place < size and place < len(wanted) and texts[start + place] == wanted[place]:
            place += 1
        if place == len(wanted):
            if place == size:
                return order[middle]
            high = middle
        elif place == size or texts[start + place] < wanted[place]:
            low = middle + 1
        else:
            high = middle
    return -1
