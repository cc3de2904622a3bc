"""Corrections of p-values for families of comparisons."""

from __future__ import annotations

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.types import ArrayLike
from truerank.data.grouping import at_places


def bonferroni(p: ArrayLike) -> np.ndarray:
    """Return p-values times the size of their family, at most 1.

    Examples
    --------
    >>> bonferroni([0.01, 0.04, 0.5]).tolist()
    [0.03, 0.12, 1.0]
    """
    values = _family(p)
    return np.minimum(1.0, values * len(values))


def holm(p: ArrayLike) -> np.ndarray:
    """Return Holm's step-down adjusted p-values (1979), which are valid under any dependence.

    The i-th smallest of n becomes the largest of (n - j + 1) p_(j) over j ≤ i, at most 1.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = _family(p)
    order = np.argsort(values, kind="stable")
    stepped = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    return at_places(np.minimum(1.0, stepped), order)


def benjamini_hochberg(p: ArrayLike) -> np.ndarray:
    """Return Benjamini and Hochberg's step-up adjusted p-values (1995).

    The i-th smallest of n becomes the smallest of n p_(j) / j over j ≥ i. At level 0.05, at most 5 % of the differences
    that are called significant are expected to be wrong. Holm bounds the chance of a single wrong one.

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.04, 0.04]
    """
    values = _family(p)
    order = np.argsort(values, kind="stable")
    n = len(values)
    stepped = np.minimum.accumulate((values[order] * n / np.arange(1, n + 1))[::-1])[::-1]
    return at_places(np.minimum(1.0, stepped), order)


def _family(p: ArrayLike) -> np.ndarray:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise InvalidInputError(f"p-values must be a list of numbers in [0, 1], got {p!r}")
    return values
