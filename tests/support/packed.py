"""Gradients and hessians of one tree as `ObliviousBoosting` packs them."""

import numpy as np

from truerank.core.threads import Workers
from truerank.trees.histogram import GradientSizes, PackedGradients, PackingScales, drawn_rows, pack_rows


def packed_gradients(g: np.ndarray, h: np.ndarray, drawn: np.ndarray | None, workers: Workers) -> PackedGradients:
    """Gradients and hessians (n,) of the rows that were drawn, as integers."""
    rows, g, h = drawn_rows(g, h, drawn)
    return pack_rows(rows, g, h, PackingScales.of(GradientSizes.of(g, h, workers)), workers)
