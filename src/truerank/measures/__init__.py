"""Measures of rankings as values: `nDCG @ 10`, `AP(rel=2)`; all queries at once, ties and empty queries as chosen."""

from truerank.measures.base import Measure as Measure, mean_of as mean_of
from truerank.measures.conventions import CONVENTIONS as CONVENTIONS, DEFAULT_CONVENTION as DEFAULT_CONVENTION
from truerank.measures.evaluation import Evaluation as Evaluation, evaluate as evaluate
from truerank.measures.function_measure import FunctionMeasure as FunctionMeasure
from truerank.measures.names import (
    AP as AP,
    DCG as DCG,
    ERR as ERR,
    GMAP as GMAP,
    MEASURES as MEASURES,
    RBP as RBP,
    ROC as ROC,
    RR as RR,
    WTA as WTA,
    Accuracy as Accuracy,
    Bpref as Bpref,
    IPrec as IPrec,
    Judged as Judged,
    MeanNDCG as MeanNDCG,
    NumQ as NumQ,
    NumRel as NumRel,
    NumRelRet as NumRelRet,
    NumRet as NumRet,
    P as P,
    R as R,
    Rprec as Rprec,
    SetAP as SetAP,
    SetF as SetF,
    SetP as SetP,
    SetR as SetR,
    SetRelP as SetRelP,
    Success as Success,
    infAP as infAP,
    nDCG as nDCG,
    pairs as pairs,
    parse_measure as parse_measure,
    parse_measures as parse_measures,
    tau as tau,
)
from truerank.measures.ranking import Ranking as Ranking
