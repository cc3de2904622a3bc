"""Group sizes: the number of adjacent rows of each query, as LightGBM and XGBoost store it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from truerank.core.errors import DataFileError
from truerank.core.printing import counted
from truerank.core.types import ArrayLike
from truerank.data.grouping import queries_of_sizes
from truerank.io.streams import Source, open_output


def qid_from_group_sizes(sizes: ArrayLike) -> np.ndarray:
    """Return the query of each row, 0, 1, ..., from group sizes.

    Parameters
    ----------
    sizes : array-like (m,) of int
        Number of rows of each query, as in `lightgbm.Dataset(group=...)` and `xgboost.DMatrix.set_group`.

    Returns
    -------
    int64 array (n,)

    Raises
    ------
    InvalidInputError
        If a size is not an integer >= 1.

    Examples
    --------
    >>> qid_from_group_sizes([2, 1, 3]).tolist()
    [0, 0, 1, 2, 2, 2]
    """
    return queries_of_sizes(sizes, "group sizes", 1)


def read_group_sizes(source: object) -> np.ndarray:
    """Read a file with one group size on each line (LightGBM's `.query`, XGBoost's `.group`).

    Raises DataFileError for a line that is not an integer >= 1.
    """
    sizes: list[int] = []
    with Source(source) as stream:
        for number, line in stream.numbered_lines():
            content = line.strip()
            if not content:
                continue
            if not content.isdigit() or len(content) > 15 or int(content) < 1:
                shown = line[:40].decode("utf-8", "replace")
                raise DataFileError(
                    f"expected a group size (an integer >= 1), got {shown!r}", stream.name, number, code="group-size"
                )
            sizes.append(int(content))
    return np.array(sizes, dtype=np.int64)


def write_group_sizes(sizes: ArrayLike, target: object) -> None:
    """Write group sizes (m,) to a path, "-" or an open file, with one size on each line."""
    with open_output(target) as stream:
        stream.write("".join(f"{size}\n" for size in np.asarray(sizes).tolist()).encode())


def with_sizes(path: str, sizes: str | None = None) -> Any:
    """Return the path of LETOR text, or an open file whose lines have query ids by group sizes if they have none.

    The sizes are read from the file `sizes`, or else from `path.query` (LightGBM) or `path.group` (XGBoost). Reading
    raises DataFileError if the number of lines differs from the sum of the sizes, or if lines have query ids.
    """
    if sizes is None and path != "-":
        beside = next(filter(os.path.isfile, (f"{path}.query", f"{path}.group")), None)
        sizes = None if beside is None or _names_queries(path) else beside
    return path if sizes is None else _Named(path, qid_from_group_sizes(read_group_sizes(sizes)).tolist())


def _names_queries(path: str) -> bool:
    """Return whether the first row of LETOR text has a query id."""
    with Source(path) as stream:
        for _, line in stream.numbered_lines():
            tokens = line.partition(b"#")[0].split(None, 2)
            if tokens:
                return len(tokens) > 1 and tokens[1].startswith(b"qid:")
    return True


class _Named:
    """A stream of bytes for `Source`."""

    def __init__(self, path: str, qid: list[int]) -> None:
        self.name, self._blocks = path, self._rewritten(path, qid)

    def read(self, _size: int) -> bytes:
        return next(self._blocks, b"")

    @staticmethod
    def _rewritten(path: str, qid: list[int]) -> Iterator[bytes]:
        row = 0
        with Source(path) as stream:
            for number, content in stream.numbered_lines():
                head, mark, comment = content.partition(b"#")
                tokens = head.split(None, 1)
                if tokens:
                    if row == len(qid):
                        raise DataFileError(
                            f"the file has more rows than the group sizes, whose sum is {row}. Add the missing sizes",
                            stream.name,
                            number,
                        )
                    if len(tokens) > 1 and tokens[1].startswith(b"qid:"):
                        raise DataFileError(
                            "the line has a qid, but group sizes are given, too. Leave the sizes out",
                            stream.name,
                            number,
                        )
                    body = tokens[1] if len(tokens) > 1 else b""
                    content = b"%b qid:%d %b%b%b" % (tokens[0], qid[row], body, mark, comment)
                    row += 1
                yield content + b"\n"
            if row < len(qid):
                what = f"the file has {counted(row, 'row')}, but the group sizes sum to {len(qid)}. Correct the sizes"
                raise DataFileError(what, stream.name)
