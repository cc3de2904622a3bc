"""A provider of ir_measures that computes its measures with truerank.

import ir_measures
from truerank.measures.ir_measures_provider import provider

provider().calc_aggregate([ir_measures.AP, ir_measures.nDCG @ 10], qrels, run)
provider("gdeval").calc_aggregate([ir_measures.nDCG @ 20, ir_measures.ERR @ 20], qrels, run)
ir_measures.DefaultPipeline.providers.insert(0, provider())     # for ir_measures.calc_aggregate itself
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError
from truerank.io.trec import as_qrels, as_run, judge_run
from truerank.measures.base import Measure
from truerank.measures.names import parse_measure

_DIGITS = {"gdeval": 5}  # digits of tools whose providers parse their output


@cache
def provider(convention: str = "trec9") -> Any:
    """Return a provider, and register it with ir_measures as "truerank", "truerank-trec" or "truerank-gdeval".

    The provider supports every measure that both ir_measures and truerank have. "trec9" returns the values of the
    provider that ir_measures would choose, with its order of ties (mostly trec_eval 9). "trec" follows trec_eval 10.
    "gdeval" supports only nDCG and ERR with a cutoff, as that program prints them: exponential gains, five digits.

    >>> from ir_measures import RR  # doctest: +SKIP
    >>> provider().calc_aggregate([RR], {"1": {"a": 1, "b": 0}}, {"1": {"b": 2.0, "a": 1.0}})  # doctest: +SKIP
    {RR: 0.5}
    """
    check_choice(convention, "convention", ("trec9", "trec", "gdeval"))
    import ir_measures
    from ir_measures import providers, util

    def settled(measure: Any) -> Measure:
        if convention == "trec9":
            return parse_measure(measure)
        if convention == "trec":
            return parse_measure(measure)(convention=convention, ties="trec", compare="float64")
        cutoff = measure.params.get("cutoff")
        forms = (ir_measures.ERR, ir_measures.nDCG, ir_measures.nDCG(dcg="exp-log2"))
        if cutoff is None or measure not in [form @ cutoff for form in forms]:
            raise InvalidInputError(f"{convention} supports nDCG and ERR with a cutoff, such as nDCG@10, got {measure}")
        return parse_measure(f"{measure.NAME}@{cutoff}", convention)(missing_topics="zero", empty="zero")

    class TruerankEvaluator(providers.Evaluator):
        def __init__(self, measures: Iterable[Any], qrels: object) -> None:
            lists = util.QrelsConverter(qrels).as_dict_of_dict()
            super().__init__(list(measures), set(lists))
            self.qrels = as_qrels(lists)

        def iter_calc(self, run: object) -> Iterator[Any]:
            """Yield the values of topics in which each measure is defined, as ir_measures does."""
            judgements, scores = judge_run(self.qrels, as_run(util.RunConverter(run).as_dict_of_dict()))
            for measure in self.measures:
                values = settled(measure).per_query(judgements, scores)
                if convention in _DIGITS:
                    values = np.round(values, _DIGITS[convention])
                for query, value in zip(self.qrels.query_ids.tolist(), values.tolist()):
                    if not np.isnan(value):
                        yield ir_measures.Metric(query_id=query, measure=measure, value=value)

    class TruerankProvider(providers.Provider):
        NAME = "truerank" if convention == "trec9" else f"truerank-{convention}"

        def supports(self, measure: Any) -> bool:
            measure.validate_params()
            if convention == "gdeval" and measure.params.get("dcg", "log2") == "log2" and measure.NAME == "nDCG":
                return False  # asked for by that name it is computed, but it is not what the name says
            try:
                settled(measure)
            except InvalidInputError:
                return False
            return True

        def _evaluator(self, measures: Iterable[Any], qrels: object) -> Any:
            return TruerankEvaluator(measures, qrels)

    made = TruerankProvider()
    providers.register(made)
    return made
