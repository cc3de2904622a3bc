"""Retrieval functions with parameters chosen on training queries: the baselines that a ranker must beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from truerank.core.printing import progress
from truerank.core.threads import run_blocks
from truerank.data.grouping import offsets_of
from truerank.data.ranking_data import Judgements
from truerank.io.documents import Document
from truerank.io.trec import Qrels
from truerank.measures import parse_measure
from truerank.text.index import Index
from truerank.text.retrieval import best_of
from truerank.text.retrieval_functions import FUNCTIONS, RetrievalFunction, query_weights

GRIDS: dict[str, dict[str, Sequence[Any]]] = {
    "bm25": {"k1": (0.6, 0.9, 1.2, 1.6, 2.0, 2.5, 3.0), "b": (0.3, 0.5, 0.75, 0.9), "k3": (7.0, float("inf"))},
    "tfidf": {"k1": (0.6, 1.2, 2.0, 3.0), "b": (0.3, 0.5, 0.75, 0.9)},
    "cosine": {},
    "dirichlet": {"mu": (50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0)},
    "jelinek-mercer": {"lam": (0.1, 0.2, 0.4, 0.6, 0.8, 0.9)},
}
"""Parameters that are tried, under each analyser of the index."""


def grid_of(index: Index, name: str) -> list[RetrievalFunction]:
    """Every value of a retrieval function's grid, under each analyser."""
    functions = [FUNCTIONS[name](analyser) for analyser in index.analysers]
    for key, values in GRIDS[name].items():
        functions = [replace(function, **{key: value}) for function in functions for value in values]
    return functions


class NumberedQrels:
    """Judgements of the queries `query_ids` by document number, for many rankings of one index."""

    def __init__(self, index: Index, qrels: Qrels, query_ids: Sequence[str]) -> None:
        place = {name: number for number, name in enumerate(qrels.query_ids.tolist())}
        self.grades: list[dict[int, float]] = []
        for name in query_ids:
            number = place.get(name)
            part = slice(0, 0) if number is None else slice(*map(int, qrels.offsets[number : number + 2]))
            numbers = [index.document_number(document) for document in qrels.doc_ids[part].tolist()]
            keys = [own if own >= 0 else -1 - k for k, own in enumerate(numbers)]  # below 0: not in the index
            self.grades.append(dict(zip(keys, np.maximum(qrels.grades[part], 0.0).tolist())))
        self.query_ids, self.id_ranks = list(query_ids), index.id_ranks()

    def judge(self, ranked: Sequence[np.ndarray]) -> Judgements:
        """Judgements of each query's ranked documents (by number), with those that are missing there."""
        grades, missing = [], []
        for documents, judged in zip(ranked, self.grades):
            left = dict(judged)
            grades.append([left.pop(document, 0.0) for document in documents.tolist()])
            missing.append(list(left.values()))
        return Judgements(
            np.concatenate(grades),
            offsets_of(list(map(len, grades))),
            tie_keys=self.id_ranks[np.concatenate(ranked)],
            query_ids=np.array(self.query_ids),
            missing_grades=np.concatenate(missing),
            missing_offsets=offsets_of(list(map(len, missing))),
        )


def values_of_functions(
    index: Index,
    queries: Sequence[Document],
    qrels: NumberedQrels,
    functions: Sequence[RetrievalFunction],
    *,
    measure: str = "AP",
    depth: int = 1000,
    n_jobs: int | None = None,
) -> np.ndarray:
    """A measure of each function for each query, float64 (functions, queries), in trec_eval's convention.

    A query for which a function finds nothing, such as one of stop words alone, counts 0.
    """
    weights = {a: [query_weights(index, query.text["text"], a) for query in queries] for a in index.analysers}
    measured = parse_measure(measure, convention="trec")(missing_topics="zero")

    def ask(function: RetrievalFunction) -> np.ndarray:
        ranked, values = zip(*(best_of(index, function, depth, query) for query in weights[function.analyser]))
        return np.asarray(measured.per_query(qrels.judge(ranked), np.concatenate(values)))

    blocks = [(function,) for function in progress(functions, "base functions", len(functions))]
    return np.array(run_blocks(ask, blocks, n_jobs))


def chosen_by_fold(values: np.ndarray, folds: Sequence[np.ndarray]) -> tuple[np.ndarray, list[int]]:
    """Values (queries,) of the function with the best mean over the queries of the other folds, and it for each fold.

    `values` is (functions, queries), and a fold has the numbers of its queries. The first of equal functions is chosen.

    >>> values, best = chosen_by_fold(np.array([[1.0, 0.0, 0.2], [0.0, 0.9, 0.8]]), [np.array([0]), np.array([1, 2])])
    >>> values.tolist(), best
    ([0.0, 0.0, 0.2], [1, 0])
    """
    chosen = np.zeros(values.shape[1])
    best = []
    for fold in folds:
        others = np.setdiff1d(np.arange(values.shape[1]), fold)
        best.append(int(values[:, others].mean(axis=1).argmax()))
        chosen[fold] = values[best[-1], fold]
    return chosen, best
