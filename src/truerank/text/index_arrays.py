"""Arrays in the folder of an index, and checks of their consistency."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from truerank.core.errors import DataFileError


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
    """Raise an error for inconsistent numbers. Kernels use them as places in arrays and would crash."""
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
