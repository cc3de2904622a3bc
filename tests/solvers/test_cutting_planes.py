"""The cutting-plane solver: one answer by several routes, certificates, warm starts, threads."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from reference.pairs import pair_objective
from reference.rankings import exact_qp, n_slack, ranking_loss
from support.planes import PlanesOfRows
from truerank.losses.graded_pairs import GradedPairs
from truerank.losses.worst_rankings import RankingOracle
from truerank.matrices.rows import LinearRows
from truerank.solvers.bundle_program import solve_bundle
from truerank.solvers.cutting_planes import block_bounds
from truerank.solvers.result import Status


def problem(seed=0, m=8, p=4, largest=14, noise=1.0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, largest, m)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = rng.normal(size=(offsets[-1], p))
    y = (X @ rng.normal(size=p) + noise * rng.normal(size=len(X)) > 0.7).astype(float)
    return X, y, offsets


def solve(X, oracle, C, tol=1e-6, n_blocks=1, **settings):
    kept = oracle.kept.sum()
    planes = PlanesOfRows(LinearRows(X), oracle, weight=np.full(len(oracle.kept), 1 / kept), n_blocks=n_blocks)
    return planes.solve(C, tol=tol, **settings)


@pytest.mark.parametrize("C", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_same_optimum_as_the_papers_algorithm_with_an_exact_qp(seed, C):
    X, y, offsets = problem(seed)
    tol = 1e-6
    _, reference, _ = n_slack(X, y, offsets, C, epsilon=tol / C)
    oracle = RankingOracle("AP", y, offsets)
    for n_blocks in (1, 3, None):
        result = solve(X, oracle, C, tol, n_blocks)
        assert result.status is Status.CONVERGED
        assert 0 <= result.gap <= tol * max(1, result.objective)
        # Both lie within their own bound above the optimum, and the dual value below it.
        assert result.dual_objective <= reference + 1e-9
        assert abs(result.objective - reference) <= 2 * tol * max(1, reference)


@pytest.mark.parametrize("measure", ["AP", "ROC", "RR", "nDCG", "nDCG@2"])
def test_every_loss_reaches_a_tight_certificate(measure):
    X, y, offsets = problem(3, m=6)
    name, _, cutoff = measure.partition("@")
    oracle = RankingOracle(name, y, offsets, cutoff=int(cutoff) if cutoff else None)
    for C in (0.1, 10.0):
        one, all_ = (solve(X, oracle, C, 1e-8, n_blocks) for n_blocks in (1, None))
        assert one.status is all_.status is Status.CONVERGED
        assert abs(one.objective - all_.objective) <= 2e-8 * max(1, one.objective)
        order = np.lexsort((-(X @ one.coef), np.repeat(np.arange(6), np.diff(offsets))))
        losses = [
            ranking_loss(name, y[rows] == 1, np.arange(len(rows)), int(cutoff) if cutoff else None)
            for rows, kept in zip(np.split(order, offsets[1:-1]), oracle.kept)
            if kept
        ]
        assert np.mean(losses) <= one.details["risk"] + 1e-9  # Proposition 1


def test_the_objective_is_the_one_stated():
    X, y, offsets = problem(5)
    oracle = RankingOracle("AP", y, offsets)
    result = solve(X, oracle, 3.0)
    loss, c = oracle(X @ result.coef)
    values = loss + np.add.reduceat(c * (X @ result.coef), offsets[:-1])
    risk = values[oracle.kept].mean()
    assert result.details["risk"] == pytest.approx(risk)
    assert result.objective == pytest.approx(0.5 * result.coef @ result.coef + 3.0 * risk)


def test_pair_hinge_reaches_the_optimum_of_listed_pairs():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(30, 3)), rng.integers(0, 3, 30).astype(float)
    offsets = np.array([0, 12, 30])
    C = 0.05
    result = PlanesOfRows(LinearRows(X), GradedPairs(y, offsets)).solve(C, tol=1e-8)

    def objective(w):
        pairs = [
            1 - (X[a] - X[b]) @ w
            for lo, hi in zip(offsets[:-1], offsets[1:])
            for a in range(lo, hi)
            for b in range(lo, hi)
            if y[a] > y[b]
        ]
        return 0.5 * w @ w + C * np.maximum(pairs, 0).sum()

    assert result.objective == pytest.approx(objective(result.coef))
    for _ in range(200):  # convex: no point nearby may be better
        assert objective(result.coef + rng.normal(size=3) * 1e-3) >= result.objective - 2e-8 * max(1, result.objective)
    assert pair_objective(result.coef, X, y, offsets, C)[0] > 0


def test_roc_is_rank_svm_with_weighted_pairs():
    """With v = 2w the ROC problem is RankSVM's with pair weights 1/(R N) and C_rank = 4C/m."""
    X, y, offsets = problem(6, m=5)
    oracle = RankingOracle("ROC", y, offsets)
    m, C = oracle.kept.sum(), 2.0
    roc = solve(X, oracle, C, 1e-9)
    sizes = np.diff(offsets)
    pairs = np.where(oracle.kept, oracle.n_relevant * (sizes - oracle.n_relevant), 1)
    rank = PlanesOfRows(LinearRows(X), GradedPairs(y, offsets), weight=1 / pairs).solve(4 * C / m, tol=1e-9)
    assert rank.objective == pytest.approx(4 * roc.objective, rel=1e-8)
    np.testing.assert_allclose(rank.coef, 2 * roc.coef, atol=1e-4)


def test_query_weight_two_equals_two_copies():
    X, y, offsets = problem(8, m=4)
    oracle = RankingOracle("AP", y, offsets)
    weight = np.array([2.0, 1.0, 1.0, 0.0])
    once = PlanesOfRows(LinearRows(X), oracle, weight=weight).solve(1.0, tol=1e-9)
    rows = np.concatenate([np.arange(offsets[1]), np.arange(offsets[3])])
    sizes = np.diff(offsets)[[0, 0, 1, 2]]
    copies = RankingOracle("AP", y[rows], np.concatenate([[0], np.cumsum(sizes)]))
    twice = PlanesOfRows(LinearRows(X[rows]), copies).solve(1.0, tol=1e-9)
    assert once.objective == pytest.approx(twice.objective, abs=1e-8)


def test_a_path_over_C_needs_fewer_rounds_and_ends_at_the_same_optima():
    X, y, offsets = problem(9, m=20, p=6, largest=40)
    oracle = RankingOracle("AP", y, offsets)
    planes = PlanesOfRows(LinearRows(X), oracle, weight=np.full(20, 1 / oracle.kept.sum()))
    warm = [planes.solve(C, tol=1e-6) for C in (0.1, 1.0, 10.0, 1.0)]
    cold = [solve(X, oracle, C, 1e-6) for C in (0.1, 1.0, 10.0)]
    for a, b in zip(warm, cold):
        assert abs(a.objective - b.objective) <= 2e-6 * max(1, b.objective)
    assert warm[2].n_iter < cold[2].n_iter
    assert warm[3].n_iter < cold[1].n_iter


def test_rows_dense_sparse_float32():
    X, y, offsets = problem(10)
    X = np.where(np.abs(X) < 0.8, 0, X).astype(np.float32)
    oracle = RankingOracle("AP", y, offsets)
    results = [solve(rows, oracle, 5.0).objective for rows in (X, X.astype(float), sparse.csr_matrix(X))]
    assert max(results) - min(results) <= 2e-6 * max(results)


def test_nothing_to_learn_and_early_stop():
    X, y, offsets = problem(1)
    flat = PlanesOfRows(LinearRows(X), RankingOracle("AP", np.ones(len(X)), offsets)).solve(1.0)
    assert flat.status is Status.NOTHING_TO_LEARN
    assert not flat.coef.any()
    short = solve(X, RankingOracle("AP", y, offsets), 100.0, 1e-9, max_iter=3)
    assert short.status is Status.MAX_ITERATIONS
    assert short.n_iter == 3
    assert short.gap == pytest.approx(short.objective - short.dual_objective)


def test_floating_point_that_allows_no_more_is_said_so():
    X, y, offsets = problem(2, m=10, p=6, largest=30)
    result = solve(X, RankingOracle("ROC", y, offsets), 30.0, 1e-17, n_blocks=3, max_iter=2000)
    assert result.status is Status.NO_PROGRESS
    assert result.gap <= 1e-9 * result.objective


@pytest.mark.parametrize(("p", "in_features"), [(3, False), (40, False), (3, True), (12, True)])
def test_bundle_program_against_an_exact_active_set(p, in_features):
    rng = np.random.default_rng(p)
    for n_blocks in (1, 3):
        G, q = rng.normal(size=(18, p)), rng.random(18)
        G[5] = G[4]  # copies of a plane
        block = rng.integers(0, n_blocks, 18)
        block[:n_blocks] = np.arange(n_blocks)
        H = G @ G.T
        for C in (0.01, 1.0, 50.0):
            alpha, _ = solve_bundle(G, H, q, block, n_blocks, C, 1e-11, 100, in_features)
            exact = exact_qp(H, q, block, C)
            ours, best = (q @ a - 0.5 * a @ H @ a for a in (alpha, exact))
            assert ours == pytest.approx(best, abs=(1e-7 if in_features else 1e-9) * max(1, abs(best)))
            assert (alpha > 0).all()
            assert (np.bincount(block, alpha) <= C).all()


@pytest.mark.parametrize("in_features", [False, True])
def test_bundle_program_ends_where_sums_overflow(in_features):
    G = np.array([[1e200, -1e200], [-1e200, 1e200], [1e180, 1.0]])
    with np.errstate(all="ignore"):
        H = G @ G.T
        alpha, _ = solve_bundle(G, H, np.ones(3), np.array([0, 0, 1]), 2, 1.0, 1e-9, 80, in_features)
    assert alpha.shape == (3,)


def test_blocks_cover_all_queries():
    offsets = np.array([0, 5, 5, 9, 30, 31])
    kept = np.array([True, False, True, True, False])
    assert block_bounds(offsets, kept, 1).tolist() == [0, 5]
    assert block_bounds(offsets, kept, None).tolist() == [0, 2, 3, 5]
    assert block_bounds(offsets, kept, 2).tolist() == [0, 4, 5]


def test_bits_do_not_depend_on_threads():
    code = (
        "import sys, json, numpy as np; from support.planes import PlanesOfRows\n"
        "from truerank.losses.worst_rankings import RankingOracle; from truerank.matrices.rows import LinearRows\n"
        "r = np.random.default_rng(3); X = r.normal(size=(70000, 60)); y = (r.random(70000) < .2) * 1.0\n"
        "o = RankingOracle('AP', y, np.array([0, 30000, 40000, 70000]))\n"
        "jobs = int(sys.argv[1]); s = PlanesOfRows(LinearRows(X, n_jobs=jobs), o, n_jobs=jobs).solve(3.0, tol=1e-2)\n"
        "print(json.dumps([s.coef.tolist(), s.dual_objective]))"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code, jobs],
            capture_output=True,
            text=True,
            check=True,
            env={"OPENBLAS_NUM_THREADS": jobs, "PYTHONPATH": ":".join(filter(None, sys.path))},
        ).stdout
        for jobs in ("1", "2")
    ]
    assert json.loads(outputs[0]) == json.loads(outputs[1])
