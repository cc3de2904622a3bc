"""RankSVM beside liblinear-ranksvm on MQ2008 and on 240,000 × 136, and by number of rows in a few large queries.

TRUERANK_BENCH_LARGE=1 adds the 240,000 rows and queries of up to 10⁷ (2.5 GB).
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import collections
from benchmarks.rankers.pairwise_peers import liblinear_seconds, program, write_svmlight
from truerank.data.ranking_data import RankingData
from truerank.losses.graded_pairs import SQUARED_HINGE, GradedPairs
from truerank.matrices.rows import linear_scores
from truerank.rankers.rank_svm import RankSVM


def run() -> None:
    root = collections()
    if root is not None:
        from reproductions.protocol import letor_folds, load_collection

        data = letor_folds(load_collection(root, "mq2008"))[0].train
        _beside_liblinear("MQ2008 fold 1", data, [1e-3, 1e-1], rounds=7)
        _hinge(data)
    RankSVM().fit(synthetic(1000, 8, 4, np.float32))  # compiles
    large = bool(os.environ.get("TRUERANK_BENCH_LARGE"))
    if large:
        _beside_liblinear("240,000 × 136, synthetic", synthetic(240_000, 136, 2000, np.float64), [1e-4], rounds=3)
    _by_rows([10**4, 10**5] + ([10**6, 10**7] if large else []))


def synthetic(n: int, p: int, n_queries: int, dtype: type) -> RankingData:
    """Grades 0 to 4, mostly linear in the features, with noise."""
    rng = np.random.default_rng(0)
    X = rng.random((n, p), dtype=np.float32).astype(dtype)
    score = X @ rng.normal(size=p).astype(dtype)
    score += 0.5 * score.std() * rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, [0.5, 0.8, 0.93, 0.98])).astype(np.float64)
    return RankingData.from_grouped(X, y, np.linspace(0, n, n_queries + 1).astype(np.int64))


def objective(data: RankingData, coef: np.ndarray, C: float) -> float:
    loss, _ = GradedPairs(np.asarray(data.y), data.offsets).loss(linear_scores(data.X, coef), SQUARED_HINGE)
    return 0.5 * float(coef @ coef) + C * loss


def _beside_liblinear(title: str, data: RankingData, Cs: list[float], rounds: int) -> None:
    path = program("LIBLINEAR_RANKSVM", "liblinear-ranksvm-train")
    with tempfile.TemporaryDirectory() as folder:
        train, model = Path(folder) / "train.txt", Path(folder) / "model"
        if path:
            write_svmlight(data, train)
        print(f"\n**{title}**: squared hinge, CPU s of training alone (median of {rounds} rounds)\n")
        print("| C | | training | with reading | ratio | objective above the least found |")
        print("| --- | --- | --- | --- | --- | --- |")
        for C in Cs:
            contestants: dict[str, Any] = {"truerank, tol 1e-6": 1e-6}
            if path:
                contestants |= {"liblinear-ranksvm, -e 1e-3 (default)": 1e-3, "liblinear-ranksvm, -e 1e-5": 1e-5}
            training: dict[str, list[float]] = {name: [] for name in contestants}
            whole: dict[str, list[float]] = {name: [] for name in contestants}
            coefs: dict[str, np.ndarray] = {}
            for turn in range(rounds + 1):
                for name, tol in contestants.items():
                    if name.startswith("truerank"):
                        start = time.process_time()
                        coefs[name] = RankSVM(C=C, tol=tol).fit(data).coef_
                        seconds = total = time.process_time() - start
                    else:
                        total, seconds, weights = liblinear_seconds(str(path), train, C, tol, model)
                        coefs[name] = np.resize(weights, data.n_features)
                    if turn:
                        training[name].append(seconds)
                        whole[name].append(total)
            values = {name: objective(data, coef, C) for name, coef in coefs.items()}
            least = min(values.values())
            first = statistics.median(training["truerank, tol 1e-6"])
            for name in contestants:
                own = statistics.median(training[name])
                reading = "" if name.startswith("truerank") else f"{statistics.median(whole[name]):.3g}"
                print(
                    f"| {C:g} | {name} | {own:.4g} | {reading} | {own / first:.2f} | {values[name] / least - 1:.1e} |"
                )


def _hinge(data: RankingData) -> None:
    print("\n**Hinge by cutting planes, MQ2008 fold 1** (median of 3)\n")
    print("| C | tol | rounds | CPU s |\n| --- | --- | --- | --- |")
    for C in (1e-3, 1e-2):
        for tol in (1e-3, 1e-6):
            seconds = []
            for _ in range(4):
                ranker = RankSVM(C=C, loss="hinge", tol=tol)
                start = time.process_time()
                ranker.fit(data)
                seconds.append(time.process_time() - start)
            print(f"| {C:g} | {tol:g} | {ranker.n_iter_} | {statistics.median(seconds[1:]):.4f} |")


def _by_rows(sizes: list[int]) -> None:
    print("\n**Four large queries**, 8 float32 features, grades 0 to 4, C = 10 / pairs, one thread\n")
    print("| rows | pairs | Newton steps | CPU s | ns / (row · log₂ rows) | listed differences, GB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for n in sizes:
        data = synthetic(n, 8, 4, np.float32)
        pairs = float(GradedPairs(np.asarray(data.y), data.offsets).n_pairs.sum())
        ranker = RankSVM(C=10 / pairs)
        start = time.process_time()
        ranker.fit(data)
        seconds = time.process_time() - start
        unit = seconds / (n * np.log2(n)) * 1e9
        print(
            f"| {n:,} | {pairs:.2g} | {ranker.n_iter_} | {seconds:.3f} | {unit:.1f} | {pairs * 8 * 8 / 1e9:,.1f} |",
            flush=True,
        )
