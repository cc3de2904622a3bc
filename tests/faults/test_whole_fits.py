"""A fit happens whole or not at all: refused arguments and interrupts leave every estimator as it was."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import signal
import threading
import time
import warnings

import numpy as np
import pytest

from support.refusals import refused
from truerank.calibration import CALIBRATORS, calibrator_class
from truerank.calibration.ranker import CalibratedRanker
from truerank.core import interrupts
from truerank.core.interrupts import Interruptible
from truerank.data.ranking_data import RankingData
from truerank.models.model_file import load_model, save_model
from truerank.models.registry import RANKERS, ranker_class
from truerank.rankers.adarank import AdaRank
from truerank.rankers.oblivious_boosting import ObliviousBoosting

RNG = np.random.default_rng(0)
WIDE, NARROW = 45, 10


def judged(n_features: int, n_queries: int = 12, size: int = 8) -> RankingData:
    X = RNG.uniform(size=(n_queries * size, n_features))
    y = (X[:, 0] + X[:, 1] + 0.3 * RNG.normal(size=len(X)) > 1.0).astype(float)
    return RankingData(X, y, qid=np.repeat(np.arange(n_queries), size))


def quick(name: str):
    """A ranker by name, in a form that fits in a moment and goes on from an earlier fit where it can."""
    ranker = ranker_class(name)()
    known = ranker.get_params(deep=False)
    few = {"n_estimators": 5, "depth": 3, "warm_start": True, "rel": 1, "max_iter": 200}
    return ranker.set_params(**{key: value for key, value in few.items() if key in known})


RANKER_CASES = [*RANKERS, "fuzzy", "polynomial", "calibrated"]


def make(name: str):
    if name in ("fuzzy", "polynomial"):
        return ObliviousBoosting(name, n_estimators=5, depth=3, warm_start=True, alpha=0.1)
    return CalibratedRanker(AdaRank(n_estimators=5)) if name == "calibrated" else quick(name)


def refusals(wide: RankingData):
    """Calls of `fit` that are refused late as well as early."""
    narrow = judged(NARROW)
    bad_grades = np.where(np.arange(narrow.n_rows) == 3, np.nan, narrow.y)
    bad_rows = narrow.X.copy()
    bad_rows[5, 5] = np.inf
    return [
        lambda r: r.fit(narrow.X, bad_grades, qid=narrow.qid),
        lambda r: r.fit(bad_rows, narrow.y, qid=narrow.qid),
        lambda r: r.fit(narrow.X, narrow.y[:-1], qid=narrow.qid),
        lambda r: r.fit(narrow.X, narrow.y, qid=narrow.qid, query_weight=[-1.0]),
        lambda r: r.fit(narrow, eval_set=wide),
        lambda r: r.fit(narrow, wide.y),
    ]


def same_state(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(a[key] is b[key] for key in a)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RANKER_CASES)
def test_a_refused_fit_leaves_the_ranker_as_it_was(name, tmp_path):
    wide = judged(WIDE)
    ranker = make(name).fit(wide)
    scores = ranker.predict(wide)
    before, frozen = dict(vars(ranker)), pickle.dumps(ranker)
    for refusal in refusals(wide):
        with pytest.raises((ValueError, TypeError)):
            refusal(ranker)
        assert same_state(vars(ranker), before)
    assert pickle.dumps(ranker) == frozen
    assert ranker.n_features_in_ == WIDE
    with refused(ValueError, code="width"):
        ranker.predict(judged(NARROW))
    with refused(ValueError, code="width"):
        ranker.predict(judged(NARROW).X)
    np.testing.assert_array_equal(ranker.predict(wide), scores)
    if name != "random":
        save_model(ranker, tmp_path / "model.json")
        np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict(wide), scores)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALIBRATORS)
def test_a_refused_fit_leaves_the_calibrator_as_it_was(name):
    scores = RNG.normal(size=200)
    y = (scores + RNG.normal(size=200) > 0).astype(int)
    calibrator = calibrator_class(name)().fit(scores, y)
    before, p = dict(vars(calibrator)), calibrator.predict_proba(scores)
    for bad in (
        lambda: calibrator.fit(scores, np.arange(200)),
        lambda: calibrator.fit(np.append(scores[:-1], np.nan), y),
        lambda: calibrator.fit(scores, y, sample_weight=-np.ones(200)),
        lambda: calibrator.fit(scores, y[:-1]),
    ):
        with pytest.raises(ValueError, match="."):
            bad()
        assert same_state(vars(calibrator), before)
    np.testing.assert_array_equal(calibrator.predict_proba(scores), p)


def test_partial_fit_is_refused_whole():
    wide = judged(WIDE)
    ranker = ranker_class("pairwise-descent")(max_iter=2000).fit(wide)
    before, frozen = dict(vars(ranker)), pickle.dumps(ranker)
    with refused(ValueError, code="width"):
        ranker.partial_fit(judged(NARROW))
    with refused(ValueError, argument="n_steps"):
        ranker.partial_fit(wide, n_steps=-1)
    assert same_state(vars(ranker), before)
    assert pickle.dumps(ranker) == frozen


@pytest.fixture
def interruptible():
    """Interrupts as a terminal sends them: a run in the background may have been started with them ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_after(delay: float) -> None:
    timer = threading.Timer(delay, os.kill, [os.getpid(), signal.SIGINT])
    timer.daemon = True
    timer.start()


LONG = {
    "adarank": {"n_estimators": 100_000, "patience": 100_000},
    "oblivious-boosting": {"n_estimators": 100_000},
    "pairwise-descent": {"max_iter": 10**9},
    "pointwise-svm": {"max_iter": 30_000, "tol": 1e-300, "C": 1e4},
    "rank-boost": {"n_estimators": 1_000_000},
}


@pytest.mark.usefixtures("interruptible")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LONG)
def test_an_interrupt_stops_a_fit_soon_and_leaves_no_trace(name):
    rng = random.Random(name)
    data = judged(WIDE, 40, 20)
    # Noise: nothing to converge to.
    data.y = (RNG.uniform(size=data.n_rows) < 0.3).astype(float)
    ranker = make(name).fit(data)
    before = dict(vars(ranker))
    ranker.set_params(**{k: v for k, v in LONG[name].items() if k in ranker.get_params()})
    before = dict(vars(ranker))
    for _ in range(3):
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            interrupt_after(rng.uniform(0.02, 0.12))
            ranker.fit(data)
        assert time.monotonic() - started < 200  # it ends at all: without pieces it would take minutes
        assert same_state(vars(ranker), before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_that_compiled_code_turned_into_another_error_is_still_one():
    with pytest.raises(KeyboardInterrupt), Interruptible():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise SystemError("returned a result with an exception set") from None


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_that_was_dropped_comes_again():
    dropped = []
    with pytest.raises(KeyboardInterrupt), Interruptible():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            dropped.append(1)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            pass
    assert dropped
    assert time.monotonic() < end


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_that_was_dropped_at_the_very_end_is_raised():
    with pytest.raises(KeyboardInterrupt), Interruptible(), contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("interruptible")
def test_a_reminder_never_comes_after_the_block(monkeypatch):
    monkeypatch.setattr(interrupts, "REMIND_AFTER", 0.0005)
    ended, strays = False, []

    def handler(number, frame):
        if ended:
            strays.append(number)
        else:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handler)
    for trial in range(400):
        ended = False
        with pytest.raises(KeyboardInterrupt), Interruptible():
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            end = time.perf_counter() + 0.0002 + trial * 2e-6
            with contextlib.suppress(KeyboardInterrupt):
                while time.perf_counter() < end:
                    pass
        ended = True
        assert signal.getsignal(signal.SIGINT) is handler
        time.sleep(0.0005)
    assert not strays


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_where_the_block_begins_leaves_no_handler_behind(monkeypatch):
    before, install = signal.getsignal(signal.SIGINT), signal.signal

    def install_and_strike(number, handler):
        previous = install(number, handler)
        if handler is not before:
            signal.raise_signal(number)
        return previous

    monkeypatch.setattr(signal, "signal", install_and_strike)
    with pytest.raises(KeyboardInterrupt), Interruptible():
        pass
    assert signal.getsignal(signal.SIGINT) is before


def test_interrupts_that_are_ignored_stay_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interruptible():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_fits_in_other_threads_work():
    fitted = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        thread = threading.Thread(target=lambda: fitted.append(make("adarank").fit(judged(NARROW))))
        thread.start()
        thread.join()
    assert fitted
