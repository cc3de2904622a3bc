"""AP and nDCG@10 of arrays in memory beside NumPy's floor, pytrec_eval, ranx and ir_measures."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import compare, peer
from truerank.data.ranking_data import Judgements
from truerank.measures import Ranking, parse_measures

QUERIES, DOCUMENTS = 10_000, 100
TEN = "AP nDCG nDCG@10 RR P@5 P@10 R@10 Rprec Success@1 ROC"


def whole_matrix(grades: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """AP and nDCG@10 of queries of one length, ignoring ties: what NumPy must do at least."""
    n = grades.shape[1]
    ranked = np.take_along_axis(grades, np.argsort(-scores, axis=1), axis=1)
    relevant = ranked >= 1
    total = relevant.sum(axis=1)
    ap = (np.cumsum(relevant, axis=1) / np.arange(1, n + 1) * relevant).sum(axis=1) / np.maximum(total, 1)
    discount = 1 / np.log2(np.arange(2, 12))
    ideal = -np.sort(-grades, axis=1)[:, :10]
    best = ((2.0**ideal - 1) * discount).sum(axis=1)
    ndcg = ((2.0 ** ranked[:, :10] - 1) * discount).sum(axis=1) / np.where(best > 0, best, 1)
    return ap, ndcg


def evaluate_all(judgements: Judgements, scores: np.ndarray, names: str) -> list[np.ndarray]:
    ranking = Ranking(judgements, scores)
    return [measure.values(ranking) for measure in parse_measures(names).values()]


def fresh(judgements: Judgements) -> Judgements:
    """The same judgements with nothing derived from them yet."""
    return Judgements(judgements.grades, judgements.offsets)


def run() -> None:
    rng = np.random.default_rng(0)
    n = QUERIES * DOCUMENTS
    # One relevant document in ten, as judged collections have it; scores with and without ties.
    grades = np.where(rng.random(n) < 0.1, rng.integers(1, 3, n), 0).astype(float)
    scores = rng.random(n)
    tied = np.round(scores, 2)
    judgements = Judgements(grades, np.arange(0, n + 1, DOCUMENTS))
    matrix = grades.reshape(QUERIES, DOCUMENTS), scores.reshape(QUERIES, DOCUMENTS)
    timings = compare(
        "AP and nDCG@10 of 10,000 queries × 100 documents",
        {
            "truerank, no ties in the data": lambda: evaluate_all(judgements, scores, "AP nDCG@10"),
            "the same, first use of these judgements": lambda: evaluate_all(fresh(judgements), scores, "AP nDCG@10"),
            "two scores in three tied": lambda: evaluate_all(judgements, tied, "AP nDCG@10"),
            "the same, first use of these judgements ": lambda: evaluate_all(fresh(judgements), tied, "AP nDCG@10"),
            "NumPy over the matrix, ties ignored": lambda: whole_matrix(*matrix),
            **_peers(judgements, scores),
        },
    )
    for ours, floor in zip(
        timings["truerank, no ties in the data"].result, timings["NumPy over the matrix, ties ignored"].result
    ):
        np.testing.assert_allclose(ours, floor, atol=1e-12)
    compare(
        "Ten measures share one sort",
        {
            "AP": lambda: evaluate_all(judgements, tied, "AP"),
            TEN: lambda: evaluate_all(judgements, tied, TEN),
            "AP, first use": lambda: evaluate_all(fresh(judgements), tied, "AP"),
            "ten, first use": lambda: evaluate_all(fresh(judgements), tied, TEN),
        },
    )
    _ragged(rng)


def _ragged(rng: np.random.Generator) -> None:
    """Lengths spread evenly over the orders of magnitude from 1 to 10,000; the matrix beside it has as many rows."""
    sizes = np.exp(rng.uniform(0, np.log(10_001), 900)).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = int(offsets[-1])
    grades = np.where(rng.random(n) < 0.1, rng.integers(1, 3, n), 0).astype(float)
    scores = np.round(rng.random(n), 3)
    judgements = Judgements(grades, offsets)
    rows = n // DOCUMENTS * DOCUMENTS
    matrix = grades[:rows].reshape(-1, DOCUMENTS), scores[:rows].reshape(-1, DOCUMENTS)
    compare(
        f"{len(sizes)} ragged queries of 1 to 10,000 documents, {n} in all, ties in the data",
        {
            "truerank": lambda: evaluate_all(judgements, scores, "AP nDCG@10"),
            "truerank, first use of these judgements": lambda: evaluate_all(fresh(judgements), scores, "AP nDCG@10"),
            f"NumPy over a matrix of {rows} documents, 100 a query, ties ignored": lambda: whole_matrix(*matrix),
        },
    )


def _peers(judgements: Judgements, scores: np.ndarray) -> dict:
    offsets, grades = judgements.offsets, judgements.grades
    names = [f"d{j}" for j in range(DOCUMENTS)]

    def as_dicts() -> tuple[dict, dict]:
        qrels, run_ = {}, {}
        for query in range(judgements.n_queries):
            part = slice(offsets[query], offsets[query + 1])
            qrels[f"q{query}"] = dict(zip(names, grades[part].astype(int).tolist()))
            run_[f"q{query}"] = dict(zip(names, scores[part].tolist()))
        return qrels, run_

    contestants: dict = {}
    qrels, run_ = as_dicts()
    pytrec_eval = peer("pytrec_eval")
    if pytrec_eval is not None:
        evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"map", "ndcg_cut_10"})

        def with_conversion() -> object:
            new_qrels, new_run = as_dicts()
            return pytrec_eval.RelevanceEvaluator(new_qrels, {"map", "ndcg_cut_10"}).evaluate(new_run)

        contestants["pytrec_eval, dicts ready"] = lambda: evaluator.evaluate(run_)
        contestants["pytrec_eval from arrays"] = with_conversion
    ranx = peer("ranx")
    if ranx is not None:
        ranx_qrels, ranx_run = ranx.Qrels(qrels), ranx.Run(run_)
        contestants["ranx, objects ready"] = lambda: ranx.evaluate(ranx_qrels, ranx_run, ["map", "ndcg_burges@10"])
        contestants["ranx from arrays"] = lambda: ranx.evaluate(
            *[kind(part) for kind, part in zip((ranx.Qrels, ranx.Run), as_dicts())], ["map", "ndcg_burges@10"]
        )
    ir_measures = peer("ir_measures")
    if ir_measures is not None:
        wanted = [ir_measures.AP, ir_measures.nDCG @ 10]
        prepared = ir_measures.evaluator(wanted, qrels)
        contestants["ir_measures, dicts ready"] = lambda: prepared.calc_aggregate(run_)
    return contestants


if __name__ == "__main__":
    run()
