"""Score files: one number a line, in the order of the data's rows."""

from __future__ import annotations

import math

import numpy as np

from truerank.core.errors import DataFileError
from truerank.io.letor.grammar import NUMBER
from truerank.io.streams import Source


def read_scores(source: object, n_rows: int | None = None) -> np.ndarray:
    """Read scores, plain or compressed, float64 (n,).

    Parameters
    ----------
    source : path, "-" for standard input, or an open stream
    n_rows : int, optional
        Required number of scores.

    Raises
    ------
    DataFileError
        On a line that is not a finite decimal number, and on a wrong number of lines. Blank lines at the end are
        allowed.
    """
    parts = []
    with Source(source) as stream:
        name, line, blank = stream.name, 1, 0
        for block in stream.line_blocks():
            part = _parse(block, name, line)
            if blank and len(part):
                raise DataFileError("blank line among the scores; expected one number a line", name, blank)
            parts.append(part)
            line += block.count(b"\n")
            if block.endswith(b"\n\n") or not block.strip():
                blank = blank or line - 1
    scores = np.concatenate(parts) if parts else np.zeros(0)
    if n_rows is not None and len(scores) != n_rows:
        raise DataFileError(
            f"the file has {len(scores)} scores, but the data have {n_rows} rows. Expected one score for each row, in "
            "the same order. Was the file made from other data?",
            name,
        )
    return scores


def _parse(block: bytes, name: str, first_line: int) -> np.ndarray:
    text = block.replace(b"\r\n", b"\n") if b"\r" in block else block
    words = text.split()
    # With these characters only, NumPy reads what the grammar allows. The only white space is line ends, so that as
    # many words as lines means one word on each line.
    if words and not text.translate(None, b"0123456789+-.eE\n"):
        try:
            scores = np.array(words, dtype="S").astype(np.float64)
        except ValueError:
            return _by_line(block, name, first_line)
        if len(scores) == text.count(b"\n") + (not text.endswith(b"\n")) and np.isfinite(scores).all():
            return scores
    return _by_line(block, name, first_line)


def _by_line(block: bytes, name: str, first_line: int) -> np.ndarray:
    """Parse line by line, which finds the faulty line."""
    scores: list[float] = []
    blank = 0
    for number, line in enumerate(block.split(b"\n"), start=first_line):
        text = line.strip()
        if not text:
            blank = blank or number
            continue
        if blank:
            raise DataFileError("blank line among the scores; expected one number a line", name, blank)
        if not NUMBER.fullmatch(text):
            shown = text[:40].decode("utf-8", "replace")
            what = "one number a line" if len(text.split()) > 1 else "a number (one finite decimal number a line)"
            raise DataFileError(f"expected {what}, got {shown!r}", name, number)
        value = float(text)
        if math.isinf(value):
            raise DataFileError(f"{text[:40].decode()!r} is too large for a 64-bit number", name, number)
        scores.append(value)
    return np.array(scores, dtype=np.float64)
