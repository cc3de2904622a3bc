"""What a second check changes besides the seed: the order of the rows, and the rule for ties."""

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
        Seed of another order of the rows within their queries (documents, for the text classifiers); None keeps it.
    ties : bool
        Tied documents stand in the worst order, tau is Kendall's tau-c, and a probability of exactly 1/2 is a "no".
    """

    rows: int | None = None
    ties: bool = False


current = Variation()


@contextmanager
def varied(variation: Variation) -> Iterator[None]:
    """Run everything inside under `variation`; threads of pools started inside see it too."""
    global current
    before, current = current, variation
    try:
        yield
    finally:
        current = before


def row_order(offsets: np.ndarray) -> np.ndarray:
    """Numbers of the rows (n,) in the order in which an experiment takes them: as they come, unless varied."""
    if current.rows is None:
        return np.arange(offsets[-1])
    random = stream(current.rows, "order of rows")
    return np.concatenate([a + random.permutation(b - a) for a, b in zip(offsets[:-1], offsets[1:])])


def with_ties(measure: Any) -> Any:
    """The measure, by the varied rule for ties."""
    return measure(ties="pessimistic") if current.ties else measure


def kendall(scores: np.ndarray, y: np.ndarray) -> float:
    """Kendall's tau-b; tau-c under the varied rule."""
    from scipy.stats import kendalltau

    return float(kendalltau(scores, y, variant="c" if current.ties else "b")[0])
