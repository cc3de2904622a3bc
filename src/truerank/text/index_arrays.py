"""Arrays as an index's folder holds them, and whether their numbers fit together."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from truerank.core.errors import DataFileError


def load_array(path: Path) -> np.ndarray:
    """A memory-mapped array; an empty one is read, since nothing can be mapped."""
    try:
        try:
            return np.asarray(np.load(path, mmap_mode="r"))
        except ValueError:
            return np.load(path)
    except Exception as error:  # NumPy reads the header as Python's text: damage there raises anything
        raise DataFileError(f"the index is damaged ({error}); make it anew", str(path)) from error


def save_array(path: Path, values: np.ndarray) -> None:
    """Write what `load_array` reads."""
    np.save(path, np.ascontiguousarray(values))


def check_fit(fits: bool, what: str, folder: Path) -> None:
    """Raise where numbers of the index do not fit: compiled loops take them as places in arrays, and would crash."""
    if not fits:
        raise DataFileError(f"the index is damaged ({what} do not fit together); make it anew", str(folder))


def rise_to(ends: np.ndarray, last: int) -> bool:
    """Whether whole numbers in one row begin at 0, never fall, and end at `last`."""
    if ends.ndim != 1 or ends.dtype.kind not in "iu" or not len(ends):
        return False
    return bool(ends[0] == 0 and ends[-1] == last and (ends[1:] >= ends[:-1]).all())


def lie_within(numbers: np.ndarray, lowest: int, end: int) -> bool:
    """Whether whole numbers lie from `lowest` up to `end`, which is left out."""
    if numbers.dtype.kind not in "iu":
        return False
    return not len(numbers) or lowest <= int(numbers.min()) <= int(numbers.max()) < end
