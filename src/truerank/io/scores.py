"""Score files: one number a line, in the order of the data's rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from truerank.core.errors import DataFileError
from truerank.io.streams import Source


def read_scores(source: Any, n_rows: int | None = None) -> np.ndarray:
    """Read scores, plain or compressed.

    Parameters
    ----------
    source : path, "-" for standard input, or an open stream
    n_rows : int, optional
        Number of scores that the file must have.

    Returns
    -------
    float64 array (n,)

    Raises
    ------
    DataFileError
        On a line that is no number (nan included), naming the line, and on a wrong number of lines. Blank lines at
        the end are allowed.
    """
    parts = []
    with Source(source) as stream:
        name, line = stream.name, 1
        for block in stream.line_blocks():
            parts.append(_parse(block, name, line))
            line += block.count(b"\n")
    scores = np.concatenate(parts) if parts else np.zeros(0)
    if n_rows is not None and len(scores) != n_rows:
        raise DataFileError(
            f"the file has {len(scores)} scores for {n_rows} rows of data; it needs one a row, in the same order", name
        )
    return scores


def _parse(block: bytes, name: str, first_line: int) -> np.ndarray:
    words = block.split()
    try:
        scores = np.array(words, dtype="S").astype(np.float64) if words else np.zeros(0)
    except ValueError:
        scores = np.array([np.nan])
    lines = block.count(b"\n") + (not block.endswith(b"\n"))
    if len(scores) == lines and not np.isnan(scores).any():
        return scores
    return _by_line(block, name, first_line)


def _by_line(block: bytes, name: str, first_line: int) -> np.ndarray:
    """The slow way, which finds the line at fault."""
    scores: list[float] = []
    blank = 0
    for number, line in enumerate(block.split(b"\n"), start=first_line):
        text = line.strip()
        if not text:
            blank = blank or number
            continue
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if blank:
            raise DataFileError("blank line among the scores; expected one number a line", name, blank)
        if math.isnan(value):
            shown = text[:40].decode("utf-8", "replace")
            raise DataFileError(f"expected a number (one score a line), got {shown!r}", name, number)
        scores.append(value)
    return np.array(scores)
