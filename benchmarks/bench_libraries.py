"""Routines of ours beside the library's that come nearest: CPU seconds in turn, one thread, and how far results differ.

Each is our own for a reason that stands beside it in the code; here is what that costs, or gains.
"""

from __future__ import annotations

import gzip
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, optimize, sparse
from threadpoolctl import threadpool_limits

from truerank.calibration.density_fits import _profile, fit_two_sided
from truerank.core.kernel import kernel
from truerank.solvers.bundle_program import _cholesky, _solve

ROUNDS = 7
N_QUERIES, SIZE, COLUMNS = 600, 50, 40
SYSTEMS, SCORES, DRAWS = 200, 300, 200
SMALLEST = 1e-12  # scale of the hybrid density


class Pair(NamedTuple):
    """One job by both: each function returns what it found, as an array, or a number where nothing can be compared."""

    job: str
    ours: Callable[[], Any]
    library: str
    theirs: Callable[[], Any]


def run() -> None:
    """Print the table."""
    print("| job | library | library, CPU ms | ours, CPU ms | ours / library | results differ by |")
    print("| --- | --- | --- | --- | --- | --- |")
    with threadpool_limits(1), TemporaryDirectory() as folder:
        for pair in pairs(Path(folder)):
            times: tuple[list[float], list[float]] = ([], [])
            found: list[Any] = [None, None]
            for turn in range(ROUNDS + 1):
                for side, work in enumerate((pair.theirs, pair.ours)):
                    start = time.process_time()
                    found[side] = work()
                    if turn > 0:
                        times[side].append(time.process_time() - start)
            theirs, ours = (1e3 * statistics.median(taken) for taken in times)
            figures = f"{theirs:.3g} | {ours:.3g} | {ours / theirs:.2g} | {_difference(*found)}"
            print(f"| {pair.job} | {pair.library} | {figures} |", flush=True)


def _difference(theirs: Any, ours: Any) -> str:
    if theirs is None:
        return "not the same question"
    return f"{np.abs(np.asarray(theirs) - np.asarray(ours)).max():.1g}"


def pairs(folder: Path) -> Iterator[Pair]:
    """All pairs, on drawn data."""
    rng = np.random.default_rng(0)
    yield from _ridge(rng)
    yield from _products(rng)
    yield from _draws(rng)
    yield from _small_systems(rng)
    yield _mode(rng)
    yield _information(rng)
    yield _reliability(rng)
    yield _folds(rng)
    yield _inflation(rng, folder)


def _ridge(rng: np.random.Generator) -> Iterator[Pair]:
    from sklearn.linear_model import Ridge

    from truerank import RankingData, RidgeRanker

    qid = np.repeat(np.arange(N_QUERIES), SIZE)
    alphas = [0.1, 1.0, 10.0, 100.0, 1000.0]

    def centred(X: np.ndarray) -> np.ndarray:
        return X - np.repeat(X.reshape(N_QUERIES, SIZE, *X.shape[1:]).mean(axis=1), SIZE, axis=0)

    def library(X: np.ndarray, y: np.ndarray, alpha: float) -> np.ndarray:
        return Ridge(alpha=alpha, fit_intercept=False).fit(centred(X), centred(y)).coef_

    X = rng.random((len(qid), COLUMNS))
    data = RankingData(X, rng.integers(0, 3, len(qid)).astype(float), qid)
    valid = data.take_queries(np.arange(N_QUERIES // 10))
    name = "centred rows, `Ridge`"
    yield Pair(
        "ridge within queries, 30,000 × 40",
        lambda: RidgeRanker(alpha=1.0, scale="never").fit(data).coef_, name, lambda: library(X, data.y, 1.0),
    )  # fmt: skip
    yield Pair(
        "the same, five strengths (ours chooses one of them on 60 queries)",
        lambda: len(RidgeRanker(alpha=alphas, scale="never").fit(data, eval_set=valid).path_),
        name + " five times", lambda: len([library(X, data.y, alpha) for alpha in alphas]),
    )  # fmt: skip
    wide = sparse.random(len(qid), 500, density=0.01, format="csr", random_state=rng)
    sparse_data = RankingData(wide, data.y, qid)
    yield Pair(
        "the same of CSR rows, 30,000 × 500, 1 % filled",
        lambda: RidgeRanker(alpha=1.0, scale="never").fit(sparse_data).coef_,
        name + " of the dense array", lambda: library(wide.toarray(), data.y, 1.0),
    )  # fmt: skip


def _products(rng: np.random.Generator) -> Iterator[Pair]:
    from truerank.matrices.rows import LinearRows

    dense = rng.random((60_000, COLUMNS))
    weights, coefficients = rng.standard_normal(COLUMNS), rng.standard_normal(len(dense))
    rows = LinearRows(dense)
    ends = np.array([0, len(dense)])
    name = "NumPy (BLAS)"
    yield Pair("X @ w, 60,000 × 40", lambda: rows.scores(weights), name, lambda: dense @ weights)
    yield Pair("X.T @ c", lambda: rows.block_sums(coefficients, ends)[0], name, lambda: dense.T @ coefficients)
    X = sparse.random(60_000, 5_000, density=0.01, format="csr", random_state=rng)
    w, stored = rng.standard_normal(5_000), LinearRows(X)
    order = rng.permutation(len(dense))
    transposed = X.T
    yield Pair("X @ w, CSR, 60,000 × 5,000, 1 %", lambda: stored.scores(w), "SciPy", lambda: X @ w)
    yield Pair(
        "X.T @ c, CSR", lambda: stored.block_sums(coefficients, ends)[0], "SciPy", lambda: transposed @ coefficients
    )
    yield Pair(
        "60 blocks of X.T @ c, CSR", lambda: stored.block_sums(coefficients, np.arange(0, 60_001, 1_000)),
        "SciPy, by slices", lambda: [X[k : k + 1_000].T @ coefficients[k : k + 1_000] for k in range(0, 60_000, 1_000)],
    )  # fmt: skip
    shuffled = LinearRows(dense, order=order)
    yield Pair(
        "rows in another order, X.T @ c", lambda: shuffled.block_sums(coefficients, ends)[0],
        "NumPy (BLAS)", lambda: dense[order].T @ coefficients,
    )  # fmt: skip


def _draws(rng: np.random.Generator) -> Iterator[Pair]:
    from truerank.solvers.pair_sampling import Blocks

    weight = rng.random(2_000)
    ranges = np.arange(8_000).reshape(2_000, 4)
    blocks, share, ends = Blocks(ranges, weight), weight / weight.sum(), np.cumsum(weight)

    def chosen(n: int) -> None:
        ranges[rng.choice(len(weight), size=n, p=share)]

    for n in (100, 100_000):
        job, u = f"{n:,} of 2,000 blocks drawn by weight", rng.random(n)
        yield Pair(job, partial(blocks.draw, u), "`np.searchsorted`", partial(_searched, ranges, ends, u))
        yield Pair(job, partial(blocks.draw, u), "`Generator.choice`, draws of its own", partial(chosen, n))


def _searched(ranges: np.ndarray, ends: np.ndarray, u: np.ndarray) -> np.ndarray:
    return ranges[np.searchsorted(ends, u * ends[-1], side="right")]


def _small_systems(rng: np.random.Generator) -> Iterator[Pair]:
    for n in (10, 60):
        planes = rng.standard_normal((n, 2 * n))
        H, right = planes @ planes.T, rng.standard_normal(n)
        job, ours = f"{SYSTEMS} positive definite systems of {n}", partial(_ours_in_kernel, H, right)
        yield Pair(job + ", in a kernel", ours, "`numpy.linalg.solve` of numba", partial(_library_in_kernel, H, right))
        yield Pair(job, ours, "SciPy's `cho_solve`, from Python", partial(_scipy_systems, H, right))


def _scipy_systems(H: np.ndarray, right: np.ndarray) -> np.ndarray:
    for _ in range(SYSTEMS):
        x = linalg.cho_solve(linalg.cho_factor(H), right)
    return x


@kernel
def _ours_in_kernel(H, right):
    for _ in range(SYSTEMS):
        factor, x = H.copy(), right.copy()
        _cholesky(factor, len(x))
        _solve(factor, x, len(x))
    return x


@kernel
def _library_in_kernel(H, right):
    for _ in range(SYSTEMS):
        x = np.linalg.solve(H, right)
    return x


def _mode(rng: np.random.Generator) -> Pair:
    """The mode of the hybrid density: every gap between two scores is searched."""
    x = np.sort(rng.standard_normal(SCORES))

    def fitted() -> float:
        return fit_two_sided(x, None, SMALLEST, "hybrid")[0]

    def searched() -> float:
        found = [
            optimize.minimize_scalar(partial(_hybrid_loss, x), bounds=(x[i], x[i + 1]), method="bounded")
            for i in range(len(x) - 1)
        ]
        return min(found, key=lambda one: one.fun).x

    return Pair(
        f"mode of the hybrid density of {SCORES} scores", fitted, "SciPy's bounded search in each gap", searched
    )


def _hybrid_loss(x: np.ndarray, theta: float) -> float:
    left, right = x[x <= theta], x[x > theta]
    return _profile(2, len(x), np.sum(theta - left), 0.0, 0.0, np.sum((right - theta) ** 2), SMALLEST)


def _information(rng: np.random.Generator) -> Pair:
    from sklearn.feature_selection import mutual_info_classif

    from truerank.text.topic_classifiers import mutual_information

    X = sparse.random(2_000, 500, density=0.02, format="csr", random_state=rng)
    X.data[:] = 1.0
    y = rng.random(2_000) < 0.3
    return Pair(
        "mutual information of 500 words with a class, 2,000 documents", lambda: mutual_information(X, y)[0],
        "`mutual_info_classif`", lambda: mutual_info_classif(X, y, discrete_features=True),
    )  # fmt: skip


def _reliability(rng: np.random.Generator) -> Pair:
    from sklearn.calibration import calibration_curve

    from truerank.calibration.diagnostics import reliability

    p = rng.random(5_000)
    y = rng.random(5_000) < p

    def library() -> np.ndarray:
        for _ in range(DRAWS):
            calibration_curve(rng.random(len(p)) < p, p, n_bins=10, strategy="quantile")
        return calibration_curve(y, p, n_bins=10, strategy="quantile")[0]

    return Pair(
        f"reliability of 5,000, {DRAWS} draws for bands", lambda: reliability(y, p, n_resamples=DRAWS).observed,
        f"`calibration_curve` {DRAWS} times", library,
    )  # fmt: skip


def _folds(rng: np.random.Generator) -> Pair:
    from sklearn.model_selection import GroupKFold

    from truerank.data.splits import QueryKFold

    qid = np.repeat(np.arange(2_000), rng.integers(1, 60, 2_000))
    X = np.zeros((len(qid), 1))

    def library() -> None:
        list(GroupKFold(5).split(X, groups=qid))

    return Pair("five folds of 2,000 queries", lambda: list(QueryKFold(5).split(X, qid=qid)), "`GroupKFold`", library)


def _inflation(rng: np.random.Generator, folder: Path) -> Pair:
    from truerank.io.streams import CHUNK, Source

    path = folder / "rows.txt.gz"
    with gzip.open(path, "wb") as stream:
        np.savetxt(stream, rng.random((20_000, 20)))

    def ours() -> int:
        with Source(path) as stream:
            return sum(map(len, stream.line_blocks()))

    def library() -> int:
        with gzip.open(path, "rb") as stream:
            return sum(map(len, iter(lambda: stream.read(CHUNK), b"")))

    return Pair("10 MB of gzip, in whole lines", ours, "`gzip.open`, in pieces", library)
