"""Measures of rankings as values: `nDCG @ 10`, `AP(rel=2)`; all queries at once, ties and empty queries as chosen."""

from truerank.measures.base import Measure, mean_of
from truerank.measures.conventions import CONVENTIONS, DEFAULT_CONVENTION
from truerank.measures.evaluation import Evaluation, evaluate
from truerank.measures.names import (
    AP,
    MEASURES,
    ROC,
    RR,
    WTA,
    P,
    R,
    Rprec,
    nDCG,
    parse_measure,
    parse_measures,
)
from truerank.measures.names import Success_ as Success
from truerank.measures.ranking import Ranking

__all__ = [
    "AP",
    "CONVENTIONS",
    "DEFAULT_CONVENTION",
    "MEASURES",
    "ROC",
    "RR",
    "WTA",
    "Evaluation",
    "Measure",
    "P",
    "R",
    "Ranking",
    "Rprec",
    "Success",
    "evaluate",
    "mean_of",
    "nDCG",
    "parse_measure",
    "parse_measures",
]
