"""Settings by column: columns named by number or name, and a number for each of them."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError


def columns_of(given: object, what: str, n_features: int, names: list[Any]) -> np.ndarray:
    """Columns by number or name as int64 (u,), ascending; `what` is the parameter that an error names."""
    if isinstance(given, str | bytes) or not isinstance(given, list | tuple | set | np.ndarray):
        raise InvalidInputError(f"{what} must be a list of column numbers or names, got {given!r}")
    return np.unique(np.array([column_of(key, what, n_features, names) for key in given], dtype=np.int64))


def column_of(key: object, what: str, n_features: int, names: list[Any]) -> int:
    """A column's number, from its number or name."""
    if isinstance(key, str):
        if key not in names:
            known = f"which X does not have; it has {', '.join(map(str, names[:10]))}"
            have = known if names else "and X has no names; give column numbers from 0"
            raise InvalidInputError(f"{what} names the feature {key!r}, {have}")
        return names.index(key)
    if not isinstance(key, numbers.Integral) or isinstance(key, bool) or not 0 <= int(key) < n_features:
        raise InvalidInputError(f"{what} names the column {key!r}; X has the columns 0 … {n_features - 1}")
    return int(key)


def monotone_signs(given: object, n_features: int, names: list[Any]) -> np.ndarray | None:
    """Return -1, 0 or 1 for each feature, int8 (p,), from an array or a dict by number or name; None if all are 0."""
    message = (
        f"monotone must give -1, 0 or 1 for each of the {n_features} features, or a dict of column number or name to "
        f"these; got {given!r}"
    )
    values = np.zeros(n_features)
    try:
        if isinstance(given, dict):
            for key, value in given.items():
                values[column_of(key, "monotone", n_features, names)] = value
        else:
            values = np.asarray(given, dtype=np.float64)
    except InvalidInputError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidInputError(message) from error
    if values.shape != (n_features,) or not np.isin(values, (-1, 0, 1)).all():
        raise InvalidInputError(message)
    return values.astype(np.int8) if values.any() else None


def feature_sets(given: object, n_features: int, names: list[Any]) -> np.ndarray:
    """Sets of features that may meet in a tree, bool (sets, p); the features in no set are one more set."""
    what = "interaction_constraints"
    if isinstance(given, str | bytes) or not isinstance(given, list | tuple):
        raise InvalidInputError(f"{what} must be a list of lists of column numbers or names, got {given!r}")
    sets = np.zeros((len(given) + 1, n_features), dtype=np.bool_)
    for row, one in zip(sets, given):
        row[columns_of(one, f"a set of {what}", n_features, names)] = True
    sets[-1] = ~sets.any(axis=0)
    return sets[sets.any(axis=1)]
