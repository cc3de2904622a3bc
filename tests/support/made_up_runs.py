"""Small made-up runs: topics that a run lacks, short lists, tied lists, other scales."""

from __future__ import annotations

import numpy as np

from truerank.io.trec import Qrels


def random_runs(seed: int, n_runs: int = 4, n_topics: int = 6, n_documents: int = 12, ties: bool = True):
    """`{run: {topic: {document: score}}}`; the last run lacks a topic, the first has a list tied throughout."""
    rng = np.random.default_rng(seed)
    runs = {}
    for j in range(n_runs):
        topics = {}
        for t in range(n_topics):
            if ties and j == n_runs - 1 and t == 0:
                continue
            chosen = rng.permutation(n_documents)[: rng.integers(1, n_documents + 1)]
            scores = rng.integers(0, 6, len(chosen)) if ties else rng.permutation(n_documents * 3)[: len(chosen)]
            if ties and j == 0 and t == 1:
                scores = np.full(len(chosen), 3)
            topics[str(t)] = {f"d{d:02d}": float(s) * 10.0**j - 5 * j for d, s in zip(chosen, scores)}
        runs[f"run{j}"] = topics
    return runs


def random_qrels(seed: int, n_topics: int = 6, n_documents: int = 15) -> Qrels:
    """Grades -1 to 2 of half of the documents; some that no run can have retrieved."""
    rng = np.random.default_rng(seed)
    ids, grades, ends = [], [], [0]
    for _ in range(n_topics):
        chosen = np.sort(rng.permutation(n_documents)[: n_documents // 2 + 1])
        ids += [f"d{d:02d}" for d in chosen]
        grades += rng.integers(-1, 3, len(chosen)).tolist()
        ends.append(len(ids))
    topics = np.array([str(t) for t in range(n_topics)])
    return Qrels(topics, np.array(ends), np.array(ids, dtype=np.dtypes.StringDType()), np.array(grades, dtype=float))


def planted(seed: int, n_topics: int = 30, n_documents: int = 60, quality: tuple[float, ...] = (2.0, 0.5, 0.0)):
    """Runs of known worth and qrels: a run's score is its quality times the grade, and noise."""
    rng = np.random.default_rng(seed)
    runs: dict[str, dict[str, dict[str, float]]] = {f"run{j}": {} for j in range(len(quality))}
    ids, grades, ends = [], [], [0]
    for t in range(n_topics):
        grade = (rng.random(n_documents) < 0.15).astype(float)
        for j, slope in enumerate(quality):
            score = slope * grade + rng.normal(size=n_documents)
            best = np.argsort(-score)[:40]
            runs[f"run{j}"][f"t{t:02d}"] = {f"d{d:03d}": float(score[d]) for d in best}
        ids += [f"d{d:03d}" for d in range(n_documents)]
        grades += grade.tolist()
        ends.append(len(ids))
    topics = np.array([f"t{t:02d}" for t in range(n_topics)])
    qrels = Qrels(topics, np.array(ends), np.array(ids, dtype=np.dtypes.StringDType()), np.array(grades))
    return runs, qrels
