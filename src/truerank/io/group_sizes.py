"""Group sizes, LightGBM's and XGBoost's way of naming queries: rows of a query adjacent, and how many each has."""

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
    """Query of each row, 0, 1, ..., from group sizes.

    Parameters
    ----------
    sizes : array-like (m,) of int
        Rows of each query, as `lightgbm.Dataset(group=...)` and `xgboost.DMatrix.set_group` take them.

    Returns
    -------
    int64 array (n,)

    Raises
    ------
    InvalidInputError
        On sizes that are not integers >= 1.

    Examples
    --------
    >>> qid_from_group_sizes([2, 1, 3]).tolist()
    [0, 0, 1, 2, 2, 2]
    """
    return queries_of_sizes(sizes, "group sizes", 1)


def group_sizes(qid: ArrayLike) -> np.ndarray:
    """Group sizes from the query of each row.

    Parameters
    ----------
    qid : array-like (n,) of hashables

    Returns
    -------
    int64 array (m,)

    Raises
    ------
    InvalidInputError
        Where the rows of a query are not adjacent: group sizes cannot say that. Take `RankingData(X, y, qid)`, whose
        rows are grouped, and its `group_sizes`.

    Examples
    --------
    >>> group_sizes(["a", "a", "b"]).tolist()
    [2, 1]
    """
    grouping = group_rows(qid)
    if grouping.order is not None:
        raise InvalidInputError(
            f"the rows of {grouping.n_joined} queries are not adjacent, so sizes cannot describe them; take "
            "RankingData(X, y, qid), whose rows are grouped, and its group_sizes"
        )
    return np.diff(grouping.offsets)


def read_group_sizes(source: object) -> np.ndarray:
    """Group sizes from a file with one on each line (LightGBM's `.query`, XGBoost's `.group`).

    Parameters
    ----------
    source : path, "-", or open file

    Raises
    ------
    DataFileError
        On a line that is not an integer >= 1.
    """
    sizes: list[int] = []
    with Source(source) as stream:
        line = 0
        for text in stream.line_blocks():
            for content in text.removesuffix(b"\n").split(b"\n"):
                line += 1
                if not content.strip():
                    continue
                if not content.strip().isdigit() or len(content.strip()) > 15 or int(content) < 1:
                    shown = content[:40].decode("utf-8", "replace")
                    raise DataFileError(f"expected a group size (an integer >= 1), got {shown!r}", stream.name, line)
                sizes.append(int(content))
    return np.array(sizes, dtype=np.int64)


def write_group_sizes(sizes: ArrayLike, target: object) -> None:
    """Write group sizes, one a line.

    Parameters
    ----------
    sizes : array-like (m,) of int
    target : path, "-", or open file
    """
    with open_output(target) as stream:
        stream.write("".join(f"{size}\n" for size in np.asarray(sizes).tolist()).encode())


def with_query_ids(source: object, sizes: np.ndarray) -> Any:
    """LETOR text of lines without query ids, as an open file whose lines have them: 0, 1, ... by group sizes.

    Parameters
    ----------
    source : path, "-", or open file
    sizes : int64 array (m,)

    Raises
    ------
    DataFileError
        While reading: when the lines are more or fewer than the sizes say, or carry query ids already.
    """
    return _Named(source, qid_from_group_sizes(sizes).tolist())


def with_sizes_beside(path: str) -> Any:
    """LETOR text by its path; where a line has no query id, as `with_query_ids` with the sizes in a file beside it.

    That file is called `path.query`, as LightGBM has it, or `path.group`, as XGBoost.
    """
    beside = next((name for name in (f"{path}.query", f"{path}.group") if os.path.isfile(name)), None)
    if beside is None or _names_queries(path):
        return path
    return with_query_ids(path, read_group_sizes(beside))


def _names_queries(path: str) -> bool:
    """Whether the first row of LETOR text has a query id."""
    with Source(path) as stream:
        for text in stream.line_blocks():
            for line in text.split(b"\n"):
                tokens = line.partition(b"#")[0].split(None, 2)
                if tokens:
                    return len(tokens) > 1 and tokens[1].startswith(b"qid:")
    return True


class _Named:
    """A stream of bytes for `Source`."""

    def __init__(self, source: Any, qid: list[int]) -> None:
        self.name = source if isinstance(source, str) else str(getattr(source, "name", source))
        self._blocks = self._rewritten(source, qid)

    def read(self, _size: int) -> bytes:
        return next(self._blocks, b"")

    @staticmethod
    def _rewritten(source: object, qid: list[int]) -> Iterator[bytes]:
        row = line = 0
        with Source(source) as stream:
            for text in stream.line_blocks():
                result = []
                for content in text.split(b"\n"):
                    line += 1
                    head, mark, comment = content.partition(b"#")
                    tokens = head.split(None, 1)
                    if tokens:
                        if row == len(qid):
                            raise DataFileError(f"more rows than the group sizes say ({row})", stream.name, line)
                        if len(tokens) > 1 and tokens[1].startswith(b"qid:"):
                            raise DataFileError("the line has a qid although group sizes are given", stream.name, line)
                        body = tokens[1] if len(tokens) > 1 else b""
                        content = b"%b qid:%d %b%b%b" % (tokens[0], qid[row], body, mark, comment)
                        row += 1
                    result.append(content)
                line -= text.endswith(b"\n")
                yield b"\n".join(result)
            if row < len(qid):
                raise DataFileError(f"{row} rows, but the group sizes say {len(qid)}", stream.name)
