"""Use the column `qid` of a data frame or an Arrow table as queries, as XGBoost's ranker does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from truerank.compat.foreign_objects import refuse_foreign_data
from truerank.core.errors import InvalidInputError
from truerank.data.row_source import elsewhere

NAME = "qid"


def without_query_column(X: Any, qid: Any, features: Iterable[str] | None = None) -> tuple[Any, Any]:
    """Return X without its column `qid`, and the column if `qid` is None; other inputs are returned unchanged.

    The column stays if it is in the `features` (names) of a fitted ranker. A column that differs from `qid` raises
    `InvalidInputError`.
    """
    refuse_foreign_data(X)
    is_arrow = hasattr(X, "column_names")  # its `columns` are the values
    names = list(X.column_names if is_arrow else getattr(X, "columns", ()))
    if NAME not in names or (features is not None and NAME in list(features)):
        return X, qid
    if names.count(NAME) > 1:
        raise InvalidInputError("X has two columns named 'qid'; keep one of them")
    there = elsewhere(X)
    column = np.asarray(X[NAME]) if there is None else X[NAME]
    if qid is not None and there is not None:
        raise InvalidInputError("X has a column 'qid', and qid was given too; drop one of them")
    if qid is not None and not (len(column) == np.size(qid) and (column == np.asarray(qid)).all()):
        raise InvalidInputError("the column 'qid' of X differs from qid=…; drop the wrong one")
    others = [name for name in names if name != NAME]
    return X.select(others) if is_arrow else X[others], column
