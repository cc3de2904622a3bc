"""Other roundings of a model, for programs whose float32 sums reverse or tie documents with close scores.

Multiplying all weights, leaf values and constants by a positive number keeps the ranking but changes the float32
roundings. Trees can also be rounded to a grid of steps g = 2^k. If every partial sum is at most 2^24 g, float32 sums of
multiples of g are exact in any order. Linear models have no such grid: products of weights and features have more
digits than float32 holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from truerank.export.form import Linear, ModelForm, Oblivious, Plain, Stumps

_TRIES = 24
_STEP = 2.0**-18
_DIGITS = 2.0**24


def roundings(form: ModelForm) -> Iterator[tuple[ModelForm, float, float | None]]:
    """Yield the form times `factor`, the factor, and the step of the grid (None without one), for several factors.

    Trees are tried on grids first and then without. A grid is coarser than float32 for small values, so rounding to it
    can also reverse two documents.
    """
    for grid in (False,) if isinstance(form.body, Linear) else (True, False):
        for k in range(int(not grid), _TRIES):
            factor = 1.0 + k * _STEP
            step = _step(form, factor) if grid else None
            yield _times(form, factor, step), factor, step


def _step(form: ModelForm, factor: float) -> float:
    """Return the smallest power of two that is large enough for all partial sums."""
    body: Any = form.body
    if isinstance(body, Stumps):
        largest = np.abs(body.weights)
    elif isinstance(body, Oblivious):
        largest = np.abs(body.ensemble.values).max(axis=1, initial=0.0)
    else:
        from truerank.export.nested import nested_trees

        values = np.abs(body.trees.values)
        largest = np.array(nested_trees(body.trees, lambda leaf: float(values[leaf]), lambda node, a, b: max(a, b)))
    bound = factor * (float(largest.sum()) + abs(form.start) + abs(form.intercept))
    return float(2.0 ** np.ceil(np.log2(max(bound, 1e-30) / (_DIGITS - len(largest) - 2))))


def _times(form: ModelForm, factor: float, step: float | None) -> ModelForm:
    def scaled(values: Any) -> Any:
        return factor * values if step is None else np.round(factor * values / step) * step

    body: Any = form.body
    if isinstance(body, Linear | Stumps):
        body = replace(body, weights=scaled(body.weights))
    elif isinstance(body, Oblivious):
        body = replace(body, ensemble=replace(body.ensemble, values=scaled(body.ensemble.values)))
    elif isinstance(body, Plain):
        body = replace(body, trees=replace(body.trees, values=scaled(body.trees.values)))
    return replace(form, body=body, start=float(scaled(form.start)), intercept=float(scaled(form.intercept)))
