"""Score files: one number on each line, in the order of the data's rows, or a folder with such a file for each fold."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from truerank.core.errors import DataFileError
from truerank.io.letor.grammar import NUMBER
from truerank.io.streams import Source


def read_scores(source: object, n_rows: int | None = None) -> np.ndarray:
    """Read scores, plain or compressed, float64 (n,); `n_rows` is the required number of scores.

    Raises DataFileError for a line that is not a finite decimal number, or a wrong number of lines. Blank lines at the
    end are allowed.
    """
    scores: list[float] = []
    blank = 0
    with Source(source) as stream:
        name = stream.name
        for number, line in stream.numbered_lines():
            text = line.strip()
            if not text:
                blank = blank or number
                continue
            if blank:
                raise DataFileError("the line is blank. Expected one number in each line", name, blank, code="blank")
            if not NUMBER.fullmatch(text):
                shown = text[:40].decode("utf-8", "replace")
                what = "one number a line" if len(text.split()) > 1 else "a number (one finite decimal number a line)"
                raise DataFileError(f"expected {what}, got {shown!r}", name, number, code="not-a-number")
            scores.append(float(text))
            if math.isinf(scores[-1]):
                raise DataFileError(
                    f"{text[:40].decode()!r} is too large for a 64-bit number", name, number, code="too-large"
                )
    if n_rows is not None and len(scores) != n_rows:
        raise DataFileError(
            f"the file has {len(scores)} scores, but the data have {n_rows} rows. Expected one score for each row, in "
            "the same order. Was the file made from other data?",
            name,
        )
    return np.array(scores, dtype=np.float64)


def by_fold(folder: str, data: Any) -> dict[str, np.ndarray]:
    """Return the rows that each fold of `data` tests, a mask in the order of the rows, by the file of its scores."""
    query = data.restore(data.query_index)
    return {f"{folder}/{fold.name.replace(' ', '-')}.txt": np.isin(query, fold.test) for fold in data.folds}


def read_scores_of(path: str, data: Any, n_rows: int) -> np.ndarray:
    """Read the scores of a file, or of the folder that cross-validation over published folds writes."""
    if not (hasattr(data, "folds") and os.path.isdir(path)):
        return read_scores(path, n_rows)
    scores, tested = np.zeros(n_rows), np.zeros(n_rows, dtype=bool)
    for file, rows in by_fold(path, data).items():
        scores[rows], tested[rows] = read_scores(file, int(rows.sum())), True
    if not tested.all():
        what = f"the folds test {int(tested.sum())} of {n_rows} rows, so the others have no scores. Add the other folds"
        raise DataFileError(what, path, code="untested-rows")
    return scores
