"""Group sizes: the number of adjacent rows of each query, as LightGBM and XGBoost store it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.types import ArrayLike
from truerank.data.grouping import group_rows, queries_of_sizes
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


def group_sizes(qid: ArrayLike) -> np.ndarray:
    """Return group sizes from the query of each row.

    Parameters
    ----------
    qid : array-like (n,) of hashables

    Returns
    -------
    int64 array (m,)

    Raises
    ------
    InvalidInputError
        If the rows of a query are not adjacent. `RankingData(X, y, qid).group_sizes` groups the rows.

    Examples
    --------
    >>> group_sizes(["a", "a", "b"]).tolist()
    [2, 1]
    """
    grouping = group_rows(qid)
    if grouping.order is not None:
        raise InvalidInputError(
            f"the rows of some queries ({grouping.n_joined}) are not adjacent, so that sizes cannot describe them. "
            "Use RankingData(X, y, qid), which groups the rows, and its group_sizes",
            code="not-adjacent",
        )
    return np.diff(grouping.offsets)


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


def with_query_ids(source: object, sizes: np.ndarray) -> Any:
    """Return LETOR text without query ids as an open file whose lines have the ids 0, 1, … by group sizes (m,).

    Reading raises DataFileError if the number of lines differs from the sum of the sizes, or if lines have query ids.
    """
    return _Named(source, qid_from_group_sizes(sizes).tolist())


def with_sizes(path: str, sizes: str | None = None) -> Any:
    """Return the path of LETOR text, or the text `with_query_ids` if its lines have no query ids.

    The sizes are read from the file `sizes`, or else from `path.query` (LightGBM) or `path.group` (XGBoost).
    """
    if sizes is None and path != "-":
        beside = next(filter(os.path.isfile, (f"{path}.query", f"{path}.group")), None)
        sizes = None if beside is None or _names_queries(path) else beside
    return path if sizes is None else with_query_ids(path, read_group_sizes(sizes))


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

    def __init__(self, source: object, qid: list[int]) -> None:
        self.name = source if isinstance(source, str) else str(getattr(source, "name", source))
        self._blocks = self._rewritten(source, qid)

    def read(self, _size: int) -> bytes:
        return next(self._blocks, b"")

    @staticmethod
    def _rewritten(source: object, qid: list[int]) -> Iterator[bytes]:
        row = 0
        with Source(source) as stream:
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
                raise DataFileError(
                    f"the file has {row} rows, but the group sizes sum to {len(qid)}. Correct the sizes", stream.name
                )
