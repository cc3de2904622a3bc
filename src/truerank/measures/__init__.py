"""Measures of rankings as values: `nDCG @ 10`, `AP(rel=2)`; all queries at once, ties and empty queries as chosen."""

from truerank.measures.base import Measure, mean_of
from truerank.measures.conventions import CONVENTIONS, DEFAULT_CONVENTION
from truerank.measures.evaluation import Evaluation, evaluate
from truerank.measures.function_measure import FunctionMeasure
from truerank.measures.names import (
    AP,
    ERR,
    MEASURES,
    RBP,
    ROC,
    RR,
    WTA,
    Bpref,
    Judged,
    MeanNDCG,
    P,
    R,
    Rprec,
    SetF,
    SetP,
    SetR,
    Success,
    nDCG,
    pairs,
    parse_measure,
    parse_measures,
    tau,
)
from truerank.measures.ranking import Ranking

__all__ = [
    "AP",
    "CONVENTIONS",
    "DEFAULT_CONVENTION",
    "ERR",
    "MEASURES",
    "RBP",
    "ROC",
    "RR",
    "WTA",
    "Bpref",
    "Evaluation",
    "FunctionMeasure",
    "Judged",
    "MeanNDCG",
    "Measure",
    "P",
    "R",
    "Ranking",
    "Rprec",
    "SetF",
    "SetP",
    "SetR",
    "Success",
    "evaluate",
    "mean_of",
    "nDCG",
    "pairs",
    "parse_measure",
    "parse_measures",
    "tau",
]
