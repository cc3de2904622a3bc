"""Geometric mean average precision."""

from __future__ import annotations

from truerank.measures.average_precision import AveragePrecision


class GeometricMAP(AveragePrecision):
    """The geometric mean of AP over queries, with values of at least 0.00001: trec_eval's gm_map.

    It gives more weight to queries with a low AP (Robertson 2006).
    """

    NAME = "GMAP"
    AGGREGATE = "geometric"
