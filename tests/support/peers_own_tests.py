"""The tests that ir_measures and ranx hold themselves to, run with truerank's code in place of theirs.

    git clone https://github.com/terrierteam/ir_measures
    python tests/support/peers_own_tests.py ir_measures
    git clone https://github.com/AmenRa/ranx
    python tests/support/peers_own_tests.py ranx

The argument is the checkout's folder. Of ir_measures the providers for trec_eval, gdeval, ranx, judged, accuracy and
trectools are exchanged, of ranx the functions of its metrics and of the fusion methods that are here, too.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from truerank.data.ranking_data import Judgements
from truerank.features import rules
from truerank.features.run_pool import RunPool
from truerank.measures import parse_measure
from truerank.measures.ir_measures_provider import provider


def exchange_ir_measures() -> None:
    """Ours under the names of its providers."""
    import ir_measures

    ours = provider()
    for name in ("pytrec_eval", "gdeval", "ranx", "judged", "accuracy", "trectools"):
        made = provider("gdeval") if name == "gdeval" else ours
        theirs = ir_measures.providers.registry[name]
        ir_measures.providers.registry[name] = made
        setattr(ir_measures, name, made)
        chain = ir_measures.DefaultPipeline.providers
        chain[:] = [made if link is theirs else link for link in chain]
    ir_measures.providers.PytrecEvalProvider = lambda: ours


def judged_list(truth: Any, ranked: Any) -> Judgements:
    """Rows (document, grade) that are judged and rows (document, score) in ranked order, as `Judgements`."""
    grades = {int(document): float(grade) for document, grade in np.asarray(truth)}
    documents = [int(document) for document, _ in np.asarray(ranked)]
    missing = [grade for document, grade in grades.items() if document not in documents]
    return Judgements(
        np.array([grades.get(document, 0.0) for document in documents], dtype=np.float64),
        np.array([0, len(documents)]),
        judged=np.array([document in grades for document in documents], dtype=bool),
        missing_grades=np.array(missing, dtype=np.float64),
        missing_offsets=np.array([0, len(missing)]),
    )


def metric(name: str) -> Callable[..., np.ndarray]:
    """A function of ranx's form that computes our measure; ranx's cutoff 0 stands for all that were retrieved."""

    def values(y_true: Any, y_pred: Any, k: int = 0) -> np.ndarray:
        measure = parse_measure(f"{name}@{k}" if k else name, "ranx")
        lists = [judged_list(truth, ranked) for truth, ranked in zip(y_true, y_pred)]
        return np.array([measure.per_query(one, -np.arange(float(one.n_rows)))[0] for one in lists])

    return values


def hit_rate(y_true: Any, y_pred: Any, k: int = 0) -> np.ndarray:
    """Success, which has no name without a cutoff."""
    return metric("Success")(y_true, y_pred, k or 10**6)


def rank_biased_precision(y_true: Any, y_pred: Any, p: float) -> np.ndarray:
    """RBP, whose third argument is its persistence."""
    return metric(f"RBP(p={p})")(y_true, y_pred)


METRICS = {
    "hits": metric("NumRelRet"),
    "hit_rate": hit_rate,
    "precision": metric("SetP"),
    "recall": metric("SetR"),
    "f1": metric("SetF"),
    "average_precision": metric("AP"),
    "reciprocal_rank": metric("RR"),
    "r_precision": metric("Rprec"),
    "bpref": metric("Bpref"),
    "rank_biased_precision": rank_biased_precision,
    "dcg": metric("DCG"),
    "dcg_burges": metric("dcg_burges"),
    "ndcg": metric("nDCG"),
    "ndcg_burges": metric("ndcg_burges"),
}
RULES = {
    "comb_sum": rules.comb_sum,
    "comb_mnz": rules.comb_mnz,
    "comb_anz": rules.comb_anz,
    "comb_max": rules.comb_max,
    "comb_min": rules.comb_min,
    "comb_med": rules.comb_med,
    "wsum": rules.comb_sum,
    "wmnz": rules.comb_mnz,
    "bordafuse": rules.borda,
    "weighted_bordafuse": rules.borda,
    "rrf": rules.reciprocal_rank_fusion,
}


def fused(name: str, rule: Callable[..., np.ndarray], runs: Any, *settings: Any, **named: Any) -> Any:
    """ranx's function of a rule."""
    import ranx

    pool = RunPool({str(j): run.to_dict() for j, run in enumerate(runs)})
    return ranx.Run(pool.to_run(rule(pool, *settings, **named), depth=None).to_dict(), name=name)


def exchange_ranx() -> None:
    """Ours under the names of its metrics and fusion methods."""
    import ranx
    import ranx.fusion
    import ranx.metrics

    for name, function in METRICS.items():
        setattr(ranx.metrics, name, function)
        if (module := sys.modules.get(f"ranx.metrics.{name}")) is not None:
            setattr(module, name, function)
    # There scaling is a step of its own before the rule, which gets the scores as they are.
    rules.min_max_scores = lambda pool, equal=0.0: pool.scores
    for name, rule in RULES.items():
        tag = "weighted_sum" if name == "wsum" else name
        setattr(ranx.fusion, name, functools.partial(fused, tag, rule))


def main(checkout: Path) -> int:
    """Exchange, and run the tests of what was exchanged; pytest's exit code."""
    if checkout.name == "ir_measures":
        exchange_ir_measures()
        files = [checkout / "tests"]
    else:
        exchange_ranx()
        own = checkout / "tests" / "unit" / "ranx"
        files = [own / "metrics_test.py", own / "metrics", own / "fusion"]
    return pytest.main(["-q", "--rootdir", ".", "-c", os.devnull, "-p", "no:cacheprovider", *map(str, files)])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
