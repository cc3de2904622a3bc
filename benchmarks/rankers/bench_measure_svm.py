"""MeasureSVM beside SVM-rank and a plain n-slack program (the paper's Algorithm 2), by rows, and one huge query."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.harness import collections, peak_memory, run_process
from benchmarks.rankers.pairwise_peers import program, write_svmlight
from truerank.data.ranking_data import RankingData
from truerank.losses.worst_rankings import RankingOracle
from truerank.rankers.measure_svm import MeasureSVM

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))


def run() -> None:
    fit(MeasureSVM(rel=1), synthetic(2_000, 5, 40))  # compiles
    root = collections()
    if root is not None:
        _beside_svm_rank(root)
        _beside_svm_perf(root)
        _beside_n_slack(root)
        _tight(root)
    _by_rows([10**4, 10**5, 10**6] + ([10**7] if os.environ.get("TRUERANK_BENCH_LARGE") else []))
    _wide()
    _one_query(10**6)


def synthetic(n: int, p: int, n_queries: int, dtype: type = np.float32) -> RankingData:
    """Binary grades, one in ten relevant, mostly linear in the features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p), dtype=np.float32).astype(dtype, copy=False)
    score = X @ rng.normal(size=p).astype(dtype) / np.sqrt(p)
    score += rng.standard_normal(n, dtype=np.float32)
    y = (score > np.quantile(score, 0.9)).astype(np.float64)
    return RankingData.from_grouped(X, y, np.linspace(0, n, n_queries + 1).astype(np.int64))


def fit(ranker: MeasureSVM, data: RankingData) -> float:
    """CPU seconds of one fit."""
    start = time.process_time()
    ranker.fit(data)
    return time.process_time() - start


def _beside_svm_rank(root: Path) -> None:
    """ROC area as a problem of SVM-rank (`-l 2`, the share of swapped pairs): its w is twice ours, its c four times C.

    `SVM_RANK` names its training program `svm_rank_learn`. Seconds are those that it prints for training alone.
    """
    path = program("SVM_RANK", "svm_rank_learn")
    if path is None:
        return
    from reproductions.protocol import letor_folds, load_collection

    data = letor_folds(load_collection(root, "mq2008"))[0].train
    y = (np.asarray(data.y) >= 1).astype(np.float64)
    relevant = np.add.reduceat(y, data.offsets[:-1])
    data = RankingData.from_grouped(data.X, y, data.offsets)
    data = data.take_queries((relevant > 0) & (relevant < data.group_sizes))
    print(f"\n**ROC area, fold 1 of MQ2008 ({data.n_rows} rows, {data.n_queries} queries): CPU s of training**\n")
    words = [path, "-l", "2"]
    _beside_program("SVM-rank", words, data, 4.0, lambda C, tol: ["-c", repr(4 * C), "-e", repr(tol)])


def _beside_svm_perf(root: Path) -> None:
    """ROC area of all rows as one ranking, the only ROC area that SVM-perf knows (`-l 10`).

    It scales loss and features by 100 and 50 R N: its w is twice ours, its objective four times, its c C / 25, its e
    on a slack that is 100 times ours. `SVM_PERF` names its training program `svm_perf_learn`.
    """
    path = program("SVM_PERF", "svm_perf_learn")
    if path is None:
        return
    from reproductions.protocol import letor_folds, load_collection

    data = letor_folds(load_collection(root, "mq2008"))[0].train
    y = (np.asarray(data.y) >= 1).astype(np.float64)
    data = RankingData.from_grouped(data.X, y, np.array([0, len(y)]))
    print(f"\n**ROC area of fold 1 of MQ2008 as one ranking ({data.n_rows} rows): CPU s of training**\n")
    words = [path, "-l", "10", "-w", "3"]
    _beside_program(
        "SVM-perf", words, data, 4.0, lambda C, tol: ["-c", repr(C / 25), "-e", repr(100 * tol)], signed=True
    )


def _beside_program(
    name: str,
    words: list[str],
    data: RankingData,
    scale: float,
    options: Callable[[float, float], list[str]],
    signed: bool = False,
) -> None:
    """Five fits in turn for each C and tolerance; a program of Joachims's prints its time and objective."""
    print(f"| C | {name} e | {name} | its objective / {scale:g} | truerank tol | truerank | objective | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        train = Path(folder) / "train.txt"
        write_svmlight(data, train, signed=signed)
        for C in (2.5, 25.0, 250.0, 2500.0):
            for tol in (1e-3, 1e-4):
                theirs, objective, ours = [], 0.0, []
                for _ in range(5):
                    output = run_process([*words, *options(C, tol), str(train), str(Path(folder) / "model")]).output
                    theirs.append(_printed(output, "Runtime in cpu-seconds: "))
                    objective = _printed(output, "pval=") / scale
                    ranker = MeasureSVM("ROC", C=C, tol=tol)
                    ours.append(fit(ranker, data))
                seconds, peer_seconds = float(np.median(ours)), float(np.median(theirs))
                print(
                    f"| {C:g} | {options(C, tol)[-1]} | {peer_seconds:.3f} | {objective:.5f} | {tol:g} | "
                    f"{seconds:.4f} | {ranker.objective_:.5f} | {peer_seconds / seconds:.1f} |",
                    flush=True,
                )


def _printed(output: str, label: str) -> float:
    found = re.search(re.escape(label) + r"([\d.]+)", output)
    if found is None:
        raise RuntimeError(f"the program did not print {label!r}:\n{output[-2000:]}")
    return float(found.group(1))


def _beside_n_slack(root: Path) -> None:
    """Same data, same C, the n-slack program's ε such that both lie within the same tolerance of the optimum."""
    from reproductions.protocol import letor_folds, load_collection

    from reference.rankings import n_slack

    print("\n**AP, one fit at C = 1, relative tolerance 1e-3: CPU s**\n")
    print("| data | rows, queries | truerank | NumPy n-slack, Algorithms 1 and 2 | ratio | objectives |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, m in (("ohsumed", 10), ("ohsumed", 20), ("mq2008", 40)):
        data = letor_folds(load_collection(root, name))[0].train
        data = data.take_queries(np.arange(min(m, data.n_queries)))
        tol, C = 1e-3, 1.0
        ours = MeasureSVM(C=C, rel=1, tol=tol)
        seconds = np.median([fit(ours, data) for _ in range(5)])
        start = time.process_time()
        _, objective, _ = n_slack(np.asarray(data.X), np.asarray(data.y), data.offsets, C, epsilon=tol / C)
        theirs = time.process_time() - start
        print(
            f"| {name} | {data.n_rows}, {data.n_queries} | {seconds:.4f} | {theirs:.2f} | {theirs / seconds:.0f} | "
            f"{ours.objective_:.5f}, {objective:.5f} |",
            flush=True,
        )


def _tight(root: Path) -> None:
    from reproductions.protocol import letor_folds, load_collection

    print("\n**One fold of MQ2008: CPU s, rounds and relative gap**\n")
    print("| measure | C | tol | CPU s | rounds | gap / objective |")
    print("| --- | --- | --- | --- | --- | --- |")
    data = letor_folds(load_collection(root, "mq2008"))[0].train
    for measure in ("AP", "ROC", "RR", "nDCG@10"):
        for C, tol in ((1.0, 1e-4), (100.0, 1e-4), (10.0, 1e-8)):
            ranker = MeasureSVM(measure, C=C, rel=1, tol=tol)
            seconds = fit(ranker, data)
            gap = ranker.gap_ / max(ranker.objective_, min(1.0, C))
            print(f"| {measure} | {C:g} | {tol:g} | {seconds:.3f} | {ranker.n_iter_} | {gap:.1e} |", flush=True)


def _by_rows(sizes: list[int]) -> None:
    print("\n**AP, 46 features in float32, queries of 100 documents, C = 1, relative gap 1e-3**\n")
    print("| rows | CPU s | rounds | ns a row and round | data, MiB | peak above the data, MiB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for n in sizes:
        data = synthetic(n, 46, n // 100)
        ranker = MeasureSVM(C=1.0, tol=1e-3)
        seconds = fit(ranker, data)
        size = data.X.nbytes / 2**20
        del data
        before, peak = peak_memory(
            "MeasureSVM(C=1.0, tol=1e-3, max_iter=3).fit(data)",
            "import warnings; warnings.simplefilter('ignore')\n"
            f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
            "from benchmarks.rankers.bench_measure_svm import MeasureSVM, fit, synthetic\n"
            "fit(MeasureSVM(), synthetic(2000, 46, 20))\n"
            f"data = synthetic({n}, 46, {n // 100})",
        )
        rate = seconds / ranker.n_iter_ / n * 1e9
        print(
            f"| {n:,} | {seconds:.2f} | {ranker.n_iter_} | {rate:.0f} | {size:.0f} | {peak - before:.0f} |", flush=True
        )


def _wide() -> None:
    """The size at which SVM-rank does not come to an end within minutes."""
    print("\n**240,000 rows, 136 features in float32, queries of 100 documents, relative gap 1e-3**\n")
    print("| measure | C | CPU s | rounds | gap / objective |")
    print("| --- | --- | --- | --- | --- |")
    data = synthetic(240_000, 136, 2_400)
    for measure in ("ROC", "AP"):
        for C in (1.0, 10.0, 100.0):
            ranker = MeasureSVM(measure, C=C, tol=1e-3)
            seconds = fit(ranker, data)
            gap = ranker.gap_ / ranker.objective_
            print(f"| {measure} | {C:g} | {seconds:.2f} | {ranker.n_iter_} | {gap:.1e} |", flush=True)


def _one_query(n: int) -> None:
    """Half of the documents relevant: O(R N) would be 2.5e11 steps for each round."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 46), dtype=np.float32)
    y = (X[:, 0] + rng.standard_normal(n, dtype=np.float32) > 0).astype(np.float64)
    data = RankingData.from_grouped(X, y, np.array([0, n]))
    oracle = RankingOracle("AP", y, data.offsets)
    scores = X[:, 0].astype(np.float64)
    start = time.process_time()
    oracle(scores)
    first = time.process_time() - start
    start = time.process_time()
    oracle(scores + 1e-3 * rng.normal(size=n))
    later = time.process_time() - start
    ranker = MeasureSVM("AP", tol=1e-3)
    seconds = fit(ranker, data)
    print(f"\n**One query of {n:,} documents, half of them relevant, 46 features, C = 1, relative gap 1e-3**\n")
    print("| worst ranking, first call | worst ranking, later call | whole fit | rounds |")
    print("| --- | --- | --- | --- |")
    print(f"| {first:.2f} s | {later:.2f} s | {seconds:.1f} s | {ranker.n_iter_} |", flush=True)
