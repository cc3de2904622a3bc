"""Pairwise descent: a step on MQ2008's rows beside sofia-ml, and 100,000 steps from 10⁴ to 10⁷ rows.

TRUERANK_BENCH_LARGE=1 adds 10⁶ and 10⁷ rows and training from files.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import collections, peak_memory
from benchmarks.rankers.pairwise_peers import program, sofia_seconds, write_svmlight
from truerank.data.ranking_data import RankingData
from truerank.rankers.pairwise_descent import PairwiseDescent
from truerank.rankers.sums.linear import LinearProblem
from truerank.solvers.pair_sampling import make_sampler

REG, STEPS, ROUNDS = 1e-3, 1_000_000, 5


def run() -> None:
    root = collections()
    if root is not None:
        _beside_sofia(root)
        _quality(root)
    large = bool(os.environ.get("TRUERANK_BENCH_LARGE"))
    _by_rows([10**4, 10**5] + ([10**6, 10**7] if large else []))
    _by_options()
    if large:
        _from_a_file()


def _beside_sofia(root: Path) -> None:
    from reproductions.protocol import letor_folds, load_collection

    data = letor_folds(load_collection(root, "mq2008"))[0].train
    sofia = program("SOFIA_ML", "sofia-ml")
    ranker = PairwiseDescent(REG, max_iter=STEPS).fit(data)
    ours, theirs, whole = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        train, model = Path(folder) / "train.txt", Path(folder) / "model"
        if sofia:
            write_svmlight(data, train)
        for _ in range(ROUNDS):
            start = time.process_time()
            ranker.fit(data)
            ours.append(time.process_time() - start)
            if sofia:
                all_steps = sofia_seconds(sofia, train, data.n_features, REG, STEPS, model)
                whole.append(all_steps)
                theirs.append(all_steps - sofia_seconds(sofia, train, data.n_features, REG, 1, model))
    step = statistics.median(ours) / STEPS
    print(
        f"\n**A step on {data.n_rows} rows × {data.n_features} features, MQ2008 fold 1** (median of {ROUNDS} rounds)\n"
    )
    print("| | CPU µs a step | ratio |\n| --- | --- | --- |")
    print(f"| truerank, {STEPS:,} steps, index included | {step * 1e6:.3f} | 1.00 |")
    if sofia:
        step_theirs = statistics.median(theirs) / STEPS
        print(f"| sofia-ml, less its run with one step | {step_theirs * 1e6:.3f} | {step_theirs / step:.1f} |")
        print(f"\nsofia-ml with reading: {statistics.median(whole):.3f} CPU s for {STEPS:,} steps.")


def _quality(root: Path) -> None:
    """Test MAP of λ chosen by validation MAP, ours and sofia-ml's, at equal numbers of steps."""
    from reproductions.protocol import letor_folds, load_collection

    from truerank.matrices.rows import linear_scores
    from truerank.measures import parse_measure

    sofia = program("SOFIA_ML", "sofia-ml")
    lambdas = [10.0**k for k in range(-4, 1)]
    print(
        "\n**Mean test MAP of the five folds**, λ of 10⁻⁴ … 1 by validation MAP; ours averaged over the last half, "
        "mean of 3 seeds\n"
    )
    print("| | steps | MQ2008 (letor4) | OHSUMED (letor3) |\n| --- | --- | --- | --- |")
    collected = [load_collection(root, name) for name in ("mq2008", "ohsumed")]

    def mean_map(fit: Any) -> list[str]:
        cells = []
        for collection in collected:
            measure = parse_measure("AP", convention=collection.convention)
            values = []
            for fold in letor_folds(collection):
                weights = [fit(fold.train, reg) for reg in lambdas]
                valid = [measure.mean(fold.valid.judgements(), linear_scores(fold.valid.X, w)) for w in weights]
                best = weights[int(np.argmax(valid))]
                values.append(measure.mean(fold.test.judgements(), linear_scores(fold.test.X, best)))
            cells.append(f"{np.mean(values):.4f}")
        return cells

    with tempfile.TemporaryDirectory() as folder:
        train, model = Path(folder) / "train.txt", Path(folder) / "model"
        for steps in (100_000, 1_000_000):

            def ours(sampling: str, seed: int, data: RankingData, reg: float, steps: int = steps) -> np.ndarray:
                ranker = PairwiseDescent(reg, sampling=sampling, max_iter=steps, average=steps // 2, random_state=seed)
                return ranker.fit(data).coef_

            def theirs(data: RankingData, reg: float, steps: int = steps) -> np.ndarray:
                write_svmlight(data, train)
                sofia_seconds(str(sofia), train, data.n_features, reg, steps, model)
                return np.array(model.read_text(encoding="ascii").split(), dtype=float)[1 : data.n_features + 1]

            for sampling in ("rank", "row-norm-rank", "query-norm-rank"):
                cells = np.array([mean_map(partial(ours, sampling, seed)) for seed in range(3)], dtype=float).mean(
                    axis=0
                )
                print(f"| truerank, {sampling} | {steps:,} | {cells[0]:.4f} | {cells[1]:.4f} |", flush=True)
            if sofia:
                print(f"| sofia-ml (one seed) | {steps:,} | {' | '.join(mean_map(theirs))} |", flush=True)


def _synthetic(n: int, p: int, dtype: type) -> RankingData:
    """Queries of 100 documents, grades 0 to 2 by a noisy linear score."""
    rng = np.random.default_rng(0)
    X = np.empty((n, p), dtype=dtype)
    y = np.empty(n)
    w = rng.normal(size=p).astype(np.float32)
    for start in range(0, n, 100_000):
        block = rng.random((min(100_000, n - start), p), dtype=np.float32)
        X[start : start + len(block)] = block
        score = block @ w + rng.normal(size=len(block)).astype(np.float32)
        y[start : start + len(block)] = np.digitize(score - score.mean(), [0.5, 2.0])
    return RankingData.from_grouped(X, y, np.arange(0, n + 1, 100))


def _by_rows(sizes: list[int]) -> None:
    print("\n**100,000 steps by number of rows**, 46 float32 features, queries of 100 rows (median of 5)\n")
    print("| rows | matrix, MB | pairs | index, CPU s | 100,000 steps, CPU s | µs a step |")
    print("| --- | --- | --- | --- | --- | --- |")
    for n in sizes:
        data = _synthetic(n, 46, np.float32)
        ranker = PairwiseDescent(REG)
        start = time.process_time()
        sampler = make_sampler("rank", data.y, data.offsets, None, None)
        index = time.process_time() - start
        seconds = []
        problem = LinearProblem(data.in_parts(None), "never").only
        for _ in range(6):
            ranker._start(problem, REG)
            start = time.process_time()
            ranker._descend(problem, 100_000)
            seconds.append(time.process_time() - start - index)
        step = statistics.median(seconds[1:])
        size = data.X.nbytes / 1e6
        print(
            f"| {n:,} | {size:,.0f} | {sampler.weight:.3g} | {index:.3f} | {step:.4f} | {step * 10:.3f} |", flush=True
        )
        del data, sampler


def _by_options() -> None:
    data = _synthetic(10_000, 46, np.float64)
    from scipy import sparse

    thin = np.where(np.random.default_rng(1).random(data.X.shape) < 0.2, data.X, 0.0)
    rows = {
        "dense": data,
        "CSR, a fifth filled": RankingData.from_grouped(sparse.csr_matrix(thin), data.y, data.offsets),
    }
    options = {
        "hinge, Pegasos": {},
        "averaged": {"average": True},
        "logistic": {"loss": "logistic"},
        "query-norm-rank": {"sampling": "query-norm-rank"},
        "combined-ranking": {"sampling": "combined-ranking", "rel": 1},
    }
    print("\n**Options**, 10,000 × 46, CPU µs a step (median of 3)\n")
    print(f"| | {' | '.join(rows)} |\n| --- |{' --- |' * len(rows)}")
    for name, option in options.items():
        cells = []
        for one in rows.values():
            ranker = PairwiseDescent(REG, max_iter=300_000, **option)
            seconds = []
            for _ in range(4):
                start = time.process_time()
                ranker.fit(one)
                seconds.append(time.process_time() - start)
            cells.append(f"{statistics.median(seconds[1:]) / 0.3:.3f}")
        print(f"| {name} | {' | '.join(cells)} |")


def _from_a_file() -> None:
    """Memory of training from files of growing size, beside the size of their matrices."""
    print("\n**From a file**, 20 features, blocks of 20,000 rows, the count, one pass and 1,000,000 steps\n")
    print("| rows | text, MiB | matrix, MiB | memory above the imports, MiB | CPU s |\n| --- | --- | --- | --- | --- |")
    setup = (
        "from truerank import PairwiseDescent; import numpy as np\n"
        "PairwiseDescent(max_iter=10).fit(np.eye(4), [0, 1, 0, 1])\n"
        "import truerank.io.letor.read\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        train = Path(folder) / "train.txt"
        for n in (50_000, 200_000, 800_000):
            data = _synthetic(n, 20, np.float64)
            write_svmlight(data, train)
            call = f"PairwiseDescent(max_iter=1_000_000).fit_file({str(train)!r}, block_rows=20_000)"
            before, peak = peak_memory(call, setup)
            start = time.process_time()
            PairwiseDescent(max_iter=1_000_000).fit_file(train, block_rows=20_000)
            seconds = time.process_time() - start
            text, matrix = train.stat().st_size / 2**20, data.X.nbytes / 2**20
            print(f"| {n:,} | {text:.0f} | {matrix:.0f} | {peak - before:.0f} | {seconds:.2f} |", flush=True)
