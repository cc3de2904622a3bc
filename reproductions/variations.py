"""The variations of a second check besides the seed: the order of the rows, and the rule for ties."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.core.random_streams import stream


@dataclass(frozen=True)
class Variation:
    """Attributes
    ----------
    rows : int or None
        Seed of a random order of the rows within their queries (of the documents, for the text classifiers); None
        keeps the order.
    ties : bool
        Rank tied documents in the worst order, use Kendall's tau-c, and count a probability of exactly 1/2 as negative.
    """

    rows: int | None = None
    ties: bool = False


current = Variation()


@contextmanager
def varied(variation: Variation) -> Iterator[None]:
    """Apply `variation` to everything inside, also in threads that start there."""
    global current
    before, current = current, variation
    try:
        yield
    finally:
        current = before


def row_order(offsets: np.ndarray) -> np.ndarray:
    """The order (n,) in which an experiment reads the rows."""
    if current.rows is None:
        return np.arange(offsets[-1])
    random = stream(current.rows, "order of rows")
    return np.concatenate([a + random.permutation(b - a) for a, b in zip(offsets[:-1], offsets[1:])])


def with_ties(measure: Any) -> Any:
    """The measure with the tie rule of the variation."""
    return measure(ties="pessimistic") if current.ties else measure


def kendall(scores: np.ndarray, y: np.ndarray) -> float:
    """Kendall's tau-b, or tau-c under the other tie rule."""
    from scipy.stats import kendalltau

    return float(kendalltau(scores, y, variant="c" if current.ties else "b")[0])
