"""Pairwise descent: what is drawn and how often, every step beside a plain version, batches, files, the optimum."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse, stats

from rankers.conformance import ranker_checks
from reference.descent import plain_descent
from reference.pairs import listed_pairs, pair_probabilities
from support.edited_models import unsealed
from support.made_up_rows import judged
from support.refusals import refused
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.random_streams import stream
from truerank.data.ranking_data import RankingData
from truerank.io.letor.write import write_letor
from truerank.matrices.content import order_by_content
from truerank.models.model_file import load_model, save_model
from truerank.rankers.pairwise_descent import PairwiseDescent
from truerank.rankers.rank_svm import RankSVM
from truerank.solvers.pair_descent import rates, take_steps
from truerank.solvers.pair_sampling import SAMPLINGS, make_sampler

test_scikit_learn_conformance = ranker_checks([PairwiseDescent()])


def replay(ranker, X, y, offsets, n, target):
    """Plain descent on the draws that the ranker takes, of positions in the order of content."""
    order, queries = order_by_content(X, y, offsets)
    X, y, target = X[order], y[order], target[order]
    offsets = np.concatenate([[0], np.cumsum(np.diff(offsets)[queries])])
    sampler = make_sampler(ranker.sampling, y, offsets, None, ranker.pair_probability)
    draws = sampler.draw(stream(ranker.random_state or 0, "pairwise-descent"), n)
    return plain_descent(
        X, target, draws, loss=ranker.loss, reg=ranker.alpha, rate=ranker.learning_rate, eta0=ranker.eta0,
        project=ranker.projection,
        average_from={False: np.inf, True: 1}.get(ranker.average, ranker.average),
    )  # fmt: skip


SETTINGS = [
    {},
    {"average": True},
    {"average": 150, "projection": True},
    {"loss": "logistic", "average": True},
    {"loss": "logistic", "learning_rate": "basic", "projection": True},
    {"loss": "squared", "learning_rate": "constant"},
    {"loss": "squared", "learning_rate": "constant", "sampling": "combined-ranking", "rel": 1.0},
    {"sampling": "query-norm-rank"},
    {"sampling": "row-norm-rank"},
    {"sampling": "combined-ranking", "rel": 1.0, "average": True},
    {"sampling": "combined-ranking", "rel": 2.0, "loss": "logistic"},
]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_every_step_is_that_of_plain_descent(setting, kind):
    X, y, offsets, qid = judged(6, p=11)
    X[np.abs(X) < 0.4] = 0.0
    setting = {"alpha": 0.05, "random_state": 3} | setting
    ranker = PairwiseDescent(max_iter=300, **setting)
    target = y if ranker.loss == "squared" else np.where(y >= (ranker.rel or 2), 1.0, -1.0)
    expected = replay(ranker, X, y, offsets, 300, target)
    ranker.fit(sparse.csr_matrix(X) if kind == "sparse" else X, y, qid=qid)
    np.testing.assert_allclose(ranker.coef_, expected[:-1], rtol=1e-9, atol=1e-11)
    assert ranker.intercept_ == pytest.approx(expected[-1], rel=1e-9, abs=1e-11)
    assert ranker.n_iter_ == 300


def test_scale_that_falls_below_its_limit_is_renewed():
    X, y, offsets, qid = judged(7)
    # The factor is 1 - .9 * 1 = .1 a step: the scale passes 1e-6 every seven steps.
    ranker = PairwiseDescent(1.0, learning_rate="constant", eta0=0.9, max_iter=100, average=5, projection=True)
    expected = replay(ranker, X, y, offsets, 100, y)
    np.testing.assert_allclose(ranker.fit(X, y, qid=qid).coef_, expected[:-1], rtol=1e-9)


def test_float32_rows_give_the_same_steps():
    X, y, _, qid = judged(8, sizes=(50,) * 10)
    X = X.astype(np.float32)
    ranker = PairwiseDescent(max_iter=2000)
    first = ranker.fit(X, y, qid=qid).coef_
    np.testing.assert_allclose(PairwiseDescent(max_iter=2000).fit(X.astype(np.float64), y, qid=qid).coef_, first)


def test_steps_in_batches_of_any_size_are_the_same():
    X, y, _, _ = judged(8, sizes=(50,) * 10)
    rng = np.random.default_rng(0)
    n, order = 100, rng.permutation(len(y))
    a, b = rng.integers(0, len(y), n), rng.integers(-1, len(y), n)
    goal, eta = rng.choice([-1.0, 1.0], n), rates("basic", 1.0, n, 1e-2, 0.0)
    options = np.array([1e-2, 1.0, 1.0])
    results = []
    for rows, by, size in ((X, order, n), (X, order, 1), (X[order], None, 33)):
        weights, scalars = np.zeros((2, X.shape[1] + 1)), np.array([1.0, 0.0, 0.0, 0.0])
        for k in range(0, n, size):
            part = slice(k, k + size)
            take_steps(rows, by, a[part], b[part], goal[part], eta[part], weights, scalars, options, "logistic")
        results.append(weights.tobytes() + scalars.tobytes())
    assert len(set(results)) == 1


def test_same_seed_same_bits_and_another_seed_others():
    X, y, _, qid = judged(9)
    one = PairwiseDescent(max_iter=500, random_state=1).fit(X, y, qid=qid).coef_
    assert PairwiseDescent(max_iter=500, random_state=1).fit(X, y, qid=qid).coef_.tobytes() == one.tobytes()
    assert PairwiseDescent(max_iter=500, random_state=2).fit(X, y, qid=qid).coef_.tobytes() != one.tobytes()


def test_partial_fit_on_the_same_data_goes_on_where_fit_stopped(tmp_path):
    X, y, _, qid = judged(10)
    whole = PairwiseDescent(max_iter=500, average=True).fit(X, y, qid=qid)
    ranker = PairwiseDescent(average=True).partial_fit(X, y, qid=qid, n_steps=200)
    assert ranker.n_queries_in_ == 5
    save_model(ranker, tmp_path / "model.json")
    ranker = load_model(tmp_path / "model.json").partial_fit(X, y, qid=qid, n_steps=300)
    assert ranker.coef_.tobytes() == whole.coef_.tobytes()
    assert ranker.n_iter_ == 500
    assert ranker.partial_fit(X, y, qid=qid).n_iter_ == 500 + len(y)
    with pytest.raises(ValueError, match="features"):
        ranker.partial_fit(X[:, :3], y, qid=qid)


@pytest.mark.filterwarnings("ignore:.*learned nothing")
def test_nothing_to_draw_leaves_the_weights_zero():
    ranker = PairwiseDescent().fit([[1.0], [2.0], [3.0]], [1, 1, 0], qid=[1, 1, 2])
    assert ranker.coef_.tolist() == [0.0]
    assert "nothing can be learned" in ranker.status_
    for sampling in SAMPLINGS:
        PairwiseDescent(sampling=sampling, max_iter=5).fit([[1.0], [2.0]], [1, 1])


def test_squared_loss_on_single_rows_finds_the_regression():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(400, 3))
    y = X @ [1.0, -2.0, 0.5] + 3.0
    ranker = PairwiseDescent(
        0.0, sampling="combined-ranking", pair_probability=0.0, loss="squared", learning_rate="constant",
        max_iter=20_000,
    )  # fmt: skip
    ranker.fit(X, y)
    np.testing.assert_allclose(ranker.coef_, [1.0, -2.0, 0.5], atol=1e-6)
    assert ranker.intercept_ == pytest.approx(3.0, abs=1e-6)
    np.testing.assert_allclose(ranker.predict(X), y, atol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sampling": "pairs"}, {"argument": "sampling", "value": "pairs"}),
        ({"loss": "l1"}, {"argument": "loss", "value": "l1"}),
        (
            {"learning_rate": "optimal"},
            {"argument": "learning_rate", "value": "optimal"},
        ),
        ({"alpha": -1.0}, {"argument": "alpha", "value": -1.0}),
        ({"alpha": 0.0}, {"argument": "alpha"}),
        (
            {"alpha": 3.0, "learning_rate": "basic"},
            {"argument": "alpha"},
        ),
        ({"max_iter": 0}, {"argument": "max_iter", "value": 0}),
        ({"average": -1}, {"argument": "average", "value": -1}),
        ({"fit_intercept": 1}, {"argument": "fit_intercept", "value": 1}),
        ({"pair_probability": 2}, {"argument": "pair_probability", "value": 2}),
        ({"eta0": 0}, {"argument": "eta0", "value": 0}),
        ({"rel": "high"}, {"argument": "rel", "value": "high"}),
        ({"sampling": "combined-ranking"}, {"argument": "sampling"}),
        (
            {
                "loss": "squared",
                "alpha": 1e-9,
                "max_iter": 5000,
            },
            {"code": "diverged"},
        ),
    ],
)
def test_bad_parameters(wrong, message):
    with refused(InvalidInputError, **message):
        PairwiseDescent(scale="never", **wrong).fit(1e3 * np.arange(12.0).reshape(6, 2) ** 2, [0, 1, 2, 1, 0, 2])


def test_a_model_whose_state_does_not_fit_is_refused(tmp_path):
    X, y, _, qid = judged(12)
    ranker = PairwiseDescent(max_iter=100).fit(X, y, qid=qid)
    save_model(ranker, tmp_path / "model.json")
    document = unsealed(json.loads((tmp_path / "model.json").read_text()))
    document["model"]["fitted"]["descent_state_"]["weights"] = document["model"]["fitted"]["coef_"]
    (tmp_path / "model.json").write_text(json.dumps(document))
    with refused(ModelFileError, argument="descent_state_.weights", code="shape"):
        load_model(tmp_path / "model.json")
    ranker.coef_[0] = np.inf
    with refused(ModelFileError, code="not-loadable"):
        save_model(ranker, tmp_path / "other.json")
    assert not (tmp_path / "other.json").exists()


@pytest.fixture
def letor_file(tmp_path):
    X, y, offsets, qid = judged(13, sizes=tuple(np.random.default_rng(1).integers(1, 9, 40)), p=4)
    X = np.round(X, 3)
    path = tmp_path / "train.txt"
    write_letor(RankingData(X, y, qid), path)
    return path, X, y, offsets, qid


@pytest.mark.parametrize("sampling", ["rank", "row-norm-rank", "query-norm-rank", "combined-ranking"])
def test_a_file_in_one_block_gives_the_bits_of_fit(letor_file, sampling):
    path, X, y, _, qid = letor_file
    ranker = PairwiseDescent(max_iter=700, sampling=sampling, rel=1).fit(X, y, qid=qid)
    streamed = PairwiseDescent(max_iter=700, sampling=sampling, rel=1).fit_file(path)
    assert streamed.coef_.tobytes() == ranker.coef_.tobytes()
    assert (streamed.n_queries_in_, streamed.n_features_in_) == (40, 4)
    as_sparse = PairwiseDescent(max_iter=700, sampling=sampling, rel=1).fit_file(path, sparse=True)
    np.testing.assert_allclose(as_sparse.coef_, ranker.coef_, rtol=1e-9)


@pytest.mark.parametrize("sampling", ["rank", "row-norm-rank", "query-norm-rank", "combined-ranking"])
def test_blocks_of_a_file_get_their_share_of_the_draws(letor_file, monkeypatch, sampling):
    path, _, y, offsets, _ = letor_file
    taken = []

    def record(ranker, problem, n_steps, grades, pair_share):
        done = sum(len(a) for _, a, _ in taken)
        sampler = make_sampler(ranker.sampling, problem.y, problem.offsets, None, 0.3)
        sampler = replace(sampler, pair_share=pair_share)
        generator = stream(0, "pairwise-descent")
        generator.bit_generator.advance(done * sampler.n_numbers)
        a, b = sampler.draw(generator, n_steps)
        # Rows are known by their place in the block; blocks come in the order of the file.
        taken.append((len(problem.y), problem.order[a], np.where(b >= 0, problem.order[b], -1)))

    monkeypatch.setattr(PairwiseDescent, "_descend", record)
    ranker = PairwiseDescent(max_iter=60_000, sampling=sampling, rel=1, pair_probability=0.3)
    ranker.fit_file(path, block_rows=20, n_passes=2)
    per_pass = taken[: len(taken) // 2]
    assert len(per_pass) >= 5
    assert sum(n for n, _, _ in per_pass) == len(y)
    starts = np.cumsum([0] + [n for n, _, _ in per_pass])
    counts = np.zeros(len(y))
    n_pairs = 0
    for start, (_, a, b) in zip(np.tile(starts[:-1], 2), taken):
        counts += np.bincount(a + start, minlength=len(y))
        counts += np.bincount(b[b >= 0] + start, minlength=len(y))
        n_pairs += int(np.sum(b >= 0))
    expected = np.zeros(len(y))
    probabilities = pair_probabilities(sampling.replace("combined-ranking", "rank"), y, offsets, None)
    for (a, b), value in probabilities.items():
        expected[[a, b]] += value
    if sampling == "combined-ranking":
        assert stats.binomtest(n_pairs, 60_000, 0.3).pvalue > 1e-3
        expected = 0.3 * expected + 0.7 / len(y)
    # Counts of rows in pairs are not independent; five standard deviations each is test enough.
    assert np.all(np.abs(counts - 60_000 * expected) <= 5 * np.sqrt(60_000 * expected) + 1e-9)


def test_a_file_read_in_blocks_learns_what_fit_learns(letor_file):
    path, X, y, _, qid = letor_file
    ranker = PairwiseDescent(0.01, max_iter=100_000, average=50_000).fit(X, y, qid=qid)
    streamed = PairwiseDescent(0.01, max_iter=100_000, average=50_000).fit_file(path, block_rows=30, n_passes=20)
    assert streamed.n_iter_ == 100_000
    np.testing.assert_allclose(streamed.coef_, ranker.coef_, rtol=0.1, atol=0.05)


def test_single_rows_of_a_file_need_classes(letor_file):
    path, *_ = letor_file
    with refused(InvalidInputError, argument="sampling"):
        PairwiseDescent(sampling="combined-ranking").fit_file(path)


def test_a_block_without_pairs_still_gives_single_rows(tmp_path):
    X = np.arange(8.0).reshape(8, 1)
    path = tmp_path / "train.txt"
    write_letor(RankingData(X, [1, 1, 1, 1, 1, 0, 1, 0], np.repeat([1, 2], 4)), path)
    settings = {"sampling": "combined-ranking", "rel": 1, "pair_probability": 0.5, "max_iter": 4000}
    assert PairwiseDescent(**settings).fit_file(path, block_rows=4).n_iter_ == 4000


@pytest.mark.parametrize(
    ("sampling", "weighting"), [("rank", "pairs"), ("row-norm-rank", "rows"), ("query-norm-rank", "queries")]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_steps_come_close_to_the_optimum_of_rank_svm(sampling, weighting, weighted):
    X, y, offsets, qid = judged(14, sizes=(10, 15, 1, 20, 8))
    weight = np.array([1.0, 2.0, 1.0, 0.5, 0.0]) if weighted else None
    probabilities = pair_probabilities(sampling, y, offsets, weight)
    _, own = listed_pairs(y, offsets, weight)
    exact = RankSVM(C=1.0 / (0.05 * own.sum()), loss="hinge", weighting=weighting)
    exact.fit(X, y, qid=qid, query_weight=weight)
    reached = []
    for steps in (30, 200_000):
        ranker = PairwiseDescent(0.05, sampling=sampling, rel=1, max_iter=steps, average=steps // 2)
        ranker.fit(X, y, qid=qid, query_weight=weight)
        hinges = [p * max(0.0, 1 - (X[a] - X[b]) @ ranker.coef_) for (a, b), p in probabilities.items()]
        reached.append(0.025 * ranker.coef_ @ ranker.coef_ + sum(hinges))
    assert reached[0] > reached[1] >= 0.05 * (exact.objective_ - exact.gap_)
    assert reached[1] < 1.01 * 0.05 * exact.objective_
