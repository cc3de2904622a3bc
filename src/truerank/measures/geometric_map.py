"""Geometric mean average precision."""

from __future__ import annotations

from truerank.measures.average_precision import AveragePrecision


class GeometricMAP(AveragePrecision):
    """AP by query, reported as its geometric mean, each value at least .00001: trec_eval's gm_map.

    It gives weight to the queries that a ranker does badly on (Robertson 2006).
    """

    NAME = "GMAP"
    AGGREGATE = "geometric"
