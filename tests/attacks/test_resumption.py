"""Surface: checkpoints, states and stores. A later run must never go on with what another fit, data or run has left."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from support.processes import run
from support.refusals import refused
from truerank import (
    AdaRank,
    CalibratedRanker,
    ListNet,
    MeasureSVM,
    ObliviousBoosting,
    PointwiseSVM,
    RankBoost,
    RankingData,
    RankSVM,
    RidgeRanker,
    SingleFeature,
    load_model,
    load_sample,
    save_model,
    tune,
)
from truerank.cluster import from_parts
from truerank.cluster.checkpoint import Checkpoint
from truerank.core.errors import DataFileError, InvalidInputError


@pytest.fixture(scope="module")
def judged():
    data = load_sample().take_queries(range(24))
    return data.replaced(doc_ids=np.array([f"d{i}é" for i in range(data.n_rows)], np.dtypes.StringDType()))


def parts(data):
    return [data.take_queries(range(0, 11)), data.take_queries(range(11, data.n_queries))]


def checked(data, folder):
    made = from_parts(parts(data))
    made.checkpoint = folder
    return made


def trees(**settings):
    return ObliviousBoosting(**{"leaves": "constant", "n_estimators": 6, "depth": 2, "n_jobs": 1} | settings)


def stopped(ranker, data, folder):
    """Fit and stop after the second round."""

    def stop(info):
        if info.round == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ranker.fit(checked(data, folder), callbacks=[stop])


OTHERS = {
    "grades": lambda d: d.replaced(y=d.y.max() - d.y),
    "permuted grades": lambda d: d.replaced(y=d.y[::-1].copy()),
    "columns": lambda d: d.replaced(X=d.X[:, ::-1].copy()),
    "names": lambda d: d.replaced(feature_names=[f"f{i}" for i in range(d.n_features)]),
    "row weights": lambda d: d.replaced(sample_weight=np.linspace(1, 2, d.n_rows)),
    "query weights": lambda d: d.replaced(query_weight=np.linspace(1, 2, d.n_queries)),
    "positions": lambda d: d.replaced(position=np.arange(d.n_rows, dtype=float)),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_checkpoint_of_other_rows_is_refused(judged, tmp_path, what):
    stopped(trees(), judged, tmp_path)
    with refused(InvalidInputError, code="another-fit"):
        trees().fit(checked(OTHERS[what](judged), tmp_path))


def test_a_checkpoint_of_another_function_of_the_same_name_is_refused(judged, tmp_path):
    def made(factor):
        def objective(y, scores, offsets):
            return factor * (scores - y), np.full(len(y), factor)

        return objective

    stopped(trees(objective=made(1.0)), judged, tmp_path)
    with refused(InvalidInputError, code="another-fit"):
        trees(objective=made(2.0)).fit(checked(judged, tmp_path))
    same = trees(objective=made(1.0)).fit(checked(judged, tmp_path))
    expected = trees(objective=made(1.0)).fit(from_parts(parts(judged)))
    np.testing.assert_array_equal(same.predict(judged), expected.predict(judged))


def test_a_folder_has_one_fit_at_a_time(judged, tmp_path):
    def second(info):
        with refused(InvalidInputError, code="locked"):
            trees().fit(checked(judged, tmp_path))

    trees(n_estimators=2).fit(checked(judged, tmp_path), callbacks=[second])
    assert list(tmp_path.iterdir()) == []


def test_rounds_that_two_fits_have_written_are_refused(tmp_path):
    log = Checkpoint(tmp_path, {})
    log.add("a", 1)
    log.close()
    record = (tmp_path / "rounds.bin").read_bytes()
    (tmp_path / "rounds.bin").write_bytes(record + record)
    log = Checkpoint(tmp_path, {})
    assert log.answer("a") == 1
    with refused(DataFileError, code="two-writers"):
        log.answer("a")
    log.close()


def test_a_search_of_another_version_is_refused(judged, tmp_path, monkeypatch):
    state = tmp_path / "s.jsonl"
    tune(RidgeRanker(), judged, {"alpha": [1.0]}, cv=2, state=state, refit=False)
    monkeypatch.setattr("truerank.inspection.tuning.__version__", "0.0.0")
    with refused(InvalidInputError, code="other-trials"):
        tune(RidgeRanker(), judged, {"alpha": [1.0]}, cv=2, state=state, refit=False)


def test_a_state_has_one_search_at_a_time(judged, tmp_path):
    def second(trial):
        with refused(InvalidInputError, code="locked"):
            tune(RidgeRanker(), judged, {"alpha": [1.0]}, cv=2, state=tmp_path / "s.jsonl", refit=False)

    tune(RidgeRanker(), judged, {"alpha": [1.0]}, cv=2, state=tmp_path / "s.jsonl", refit=False, watch=second)


LEARNERS = {
    "default trees": lambda: ObliviousBoosting(n_estimators=3, depth=2, n_jobs=1),
    "fuzzy trees": lambda: trees(leaves="fuzzy", n_estimators=3),
    "polynomial trees": lambda: trees(leaves="polynomial", n_estimators=3),
    "adarank": lambda: AdaRank(n_estimators=4, n_jobs=1),
    "rankboost": lambda: RankBoost(n_estimators=4, thresholds=5),
    "listnet": ListNet,
    "ranksvm": RankSVM,
    "hinge": lambda: RankSVM(loss="hinge", tol=1e-2),
    "measure svm": lambda: MeasureSVM("AP", tol=1e-2),
    "pointwise svm": lambda: PointwiseSVM(tol=1e-2),
    "ridge": RidgeRanker,
    "single": SingleFeature,
    "calibrated": lambda: CalibratedRanker(RidgeRanker(), "platt", cv=2),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
@pytest.mark.parametrize("name", LEARNERS)
def test_every_kind_of_record_is_read_back(judged, tmp_path, monkeypatch, name, form):
    ranker = LEARNERS[name]()
    data = judged.replaced(X=form(judged.X))
    if form is csr_matrix and not ranker.allow_sparse:
        pytest.skip("does not accept sparse rows")
    expected = LEARNERS[name]().fit(from_parts(parts(data)))
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "close", lambda log, done=False: log._lock.close())
        LEARNERS[name]().fit(checked(data, tmp_path))
    again = LEARNERS[name]().fit(checked(data, tmp_path))
    np.testing.assert_array_equal(again.predict(data), expected.predict(data))
    assert list(tmp_path.iterdir()) == []


TESTS = str(Path(__file__).parents[1])  # a child process does not inherit pytest's `pythonpath`

KILLED = f"""
import os, signal, sys, warnings
sys.path.insert(0, {TESTS!r})
warnings.simplefilter("ignore")
from attacks import test_resumption as here
from truerank.cluster.checkpoint import Checkpoint
add, left = Checkpoint.add, int(sys.argv[3])
def die(log, what, value):
    global left
    add(log, what, value)
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
Checkpoint.add = die
here.LEARNERS[sys.argv[1]]().fit(here.checked(here.sample(), sys.argv[2]))
"""


def sample() -> RankingData:
    """The rows of the fits that are killed."""
    return load_sample().take_queries(range(24))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9 here")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", os.environ.get("TRUERANK_KILLED", "adarank,calibrated").split(","))
def test_a_fit_killed_half_way_ends_with_the_same_bits(tmp_path, name):
    expected = LEARNERS[name]().fit(from_parts(parts(sample())))
    folder = tmp_path / "c"
    ended = run(KILLED, name, str(folder), "4")
    assert ended.returncode == -signal.SIGKILL
    assert folder.exists()
    again = LEARNERS[name]().fit(checked(sample(), folder))
    np.testing.assert_array_equal(again.predict(sample()), expected.predict(sample()))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("seed", [None, 0, np.int64(3), np.random.RandomState(0), np.random.default_rng(1)])
@pytest.mark.filterwarnings("ignore")
def test_a_calibrated_default_ranker_is_saved_and_fits_again(judged, tmp_path, seed):
    """The unfitted ranker inside keeps its settings by column number, and what a generator draws for its fits."""
    settings = {
        "random_state": seed,
        "monotone": {0: 1},
        "interaction_constraints": [[np.int64(1)], [0]],
        "subsample": 0.5,
    }
    inner = ObliviousBoosting(n_estimators=2, depth=2, n_jobs=1, **settings)
    fitted = CalibratedRanker(inner, "platt", cv=2).fit(judged)
    save_model(fitted, tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(again.predict_proba(judged), fitted.predict_proba(judged))
    assert again.ranker.monotone == {0: 1}
    assert again.ranker.interaction_constraints == [[1], [0]]
    np.testing.assert_array_equal(again.fit(judged).predict_proba(judged), fitted.predict_proba(judged))


def test_weights_of_classes_by_number_are_saved(judged, tmp_path):
    save_model(PointwiseSVM(class_weight={0: 0.5, 1: 2.0}, tol=1e-2).fit(judged), tmp_path / "m.json")
    assert load_model(tmp_path / "m.json").class_weight == {0: 0.5, 1: 2.0}


class Own(RidgeRanker):
    """A subclass of the user's."""


def test_a_subclass_learns_from_partitions_as_its_parent_does(judged):
    many = Own().fit(from_parts(parts(judged)))
    np.testing.assert_array_equal(many.coef_, RidgeRanker().fit(from_parts(parts(judged))).coef_)


OWNERS = {
    "fit": "trees(n_estimators=4).fit(checked(sample(), place), callbacks=[hold])",
    "search": "tune(RidgeRanker(), sample(), {'alpha': [1.0]}, cv=2, state=place, refit=False, watch=hold)",
}
OWNER = f"""
import os, sys, time, warnings
sys.path.insert(0, {TESTS!r})
warnings.simplefilter("ignore")
from attacks.test_resumption import *
place, held = sys.argv[1:]
def hold(info):
    with open(held + ".new", "w") as stream:
        stream.write(str(os.getpid()))
    os.replace(held + ".new", held)
    time.sleep(600)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9 here")
@pytest.mark.parametrize("what", OWNERS)
def test_a_second_process_is_refused_until_the_first_is_killed(tmp_path, what):
    names = globals() | {"place": tmp_path / "place", "hold": None}
    again = OWNERS[what].replace(", callbacks=[hold]", "").replace(", watch=hold", "")
    held = tmp_path / "held"
    with ThreadPoolExecutor(1) as pool:
        owner = pool.submit(run, OWNER + OWNERS[what], str(tmp_path / "place"), str(held))
        while not held.exists():
            assert not owner.done(), owner.result().stderr
            time.sleep(0.01)
        try:
            with refused(InvalidInputError, code="locked"):
                eval(again, names)
        finally:
            os.kill(int(held.read_text()), signal.SIGKILL)
        assert owner.result().returncode == -signal.SIGKILL
    eval(again, names)  # at once
