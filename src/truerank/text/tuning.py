"""Retrieval functions with parameters chosen on training queries: the baselines that a ranker must beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from truerank.core.printing import progress
from truerank.core.threads import run_blocks
from truerank.data.grouping import offsets_of
from truerank.io.documents import Document
from truerank.io.trec import Qrels, judge_lists
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
"""Values of the parameters to try, under each analyser of the index."""


def grid_of(index: Index, name: str) -> list[RetrievalFunction]:
    """Return every combination of values in a retrieval function's grid, under each analyser."""
    functions = [FUNCTIONS[name](analyser) for analyser in index.analysers]
    for key, values in GRIDS[name].items():
        functions = [replace(function, **{key: value}) for function in functions for value in values]
    return functions


def values_of_functions(
    index: Index,
    queries: Sequence[Document],
    qrels: Qrels,
    functions: Sequence[RetrievalFunction],
    *,
    depth: int = 1000,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Return AP of each function for each query, float64 (functions, queries), in trec_eval's convention.

    A query without results of a function, such as a query of only stop words, counts 0.
    """
    ids, ranks = np.array([query.id for query in queries]), index.id_ranks()
    weights = {a: [query_weights(index, query.text["text"], a) for query in queries] for a in index.analysers}
    measured = parse_measure("AP", convention="trec")(missing_topics="zero")

    def ask(function: RetrievalFunction) -> np.ndarray:
        ranked, values = zip(*(best_of(index, function, depth, query) for query in weights[function.analyser]))
        numbers = np.concatenate(ranked)
        judgements = judge_lists(qrels, ids, index.document_ids()[numbers], offsets_of(list(map(len, ranked))))
        judgements.tie_keys = ranks[numbers]  # numbers are sorted faster than ids
        return np.asarray(measured.per_query(judgements, np.concatenate(values)))

    blocks = [(function,) for function in progress(functions, "base functions", len(functions))]
    return np.array(run_blocks(ask, blocks, n_jobs))


def chosen_by_fold(values: np.ndarray, folds: Sequence[np.ndarray]) -> tuple[np.ndarray, list[int]]:
    """Return values (queries,) of the best function by the mean over all other folds, and this function for each fold.

    `values` is (functions, queries), and a fold has its queries' numbers. Of functions with equal means, the first is
    chosen.

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
