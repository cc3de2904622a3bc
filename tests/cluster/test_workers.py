"""A cluster of two processes on this machine: the same bits, also where a worker is killed in the middle."""

from __future__ import annotations

import os
import signal
import warnings

import numpy as np
import pytest

import truerank
from support.refusals import refused
from truerank import AdaRank, ListNet, ObliviousBoosting, RidgeRanker, load_sample
from truerank.cluster import connect, from_parts
from truerank.cluster import crew as crew_module
from truerank.cluster.crew import ClusterError, Crew
from truerank.core.errors import InvalidInputError

pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = connect("local:2")
        yield made
        made.shutdown()


def test_workers_of_ours_keep_their_memory(client):
    kept = client.run(lambda: int(os.environ["MALLOC_MMAP_THRESHOLD_"]))
    assert kept
    assert set(kept.values()) == {1 << 25}


def parts_of(data, k):
    return [data.take_queries(np.arange(i, data.n_queries, k)) for i in range(k)]


def signal_a_worker(data, number):
    """Send a signal to a worker that holds partitions: one that has just come back has none, and nobody misses it."""
    address = next(address for address, held in sorted(data.crew._held.items()) if held)
    victim = data.crew.client.run(os.getpid, workers=[address])[address]
    os.kill(victim, number)
    return victim


def before_round(monkeypatch, data, at, act):
    """Call `act` before each of the rounds `at` of a data set, once each."""
    begin, left = Crew._call, set(at)

    def act_and_begin(crew, step, arguments):
        call = begin(crew, step, arguments)
        if crew is data.crew and call[0] in left:
            left.remove(call[0])
            act()
        return call

    monkeypatch.setattr(Crew, "_call", act_and_begin)


MAKES = {
    "trees": (11, lambda: ObliviousBoosting("constant", n_estimators=6, depth=3, n_jobs=1)),
    "trees begun": (6, lambda: ObliviousBoosting("constant", n_estimators=2, depth=3, n_jobs=1)),
    "adarank": (7, lambda: AdaRank(n_estimators=6, n_jobs=1)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MAKES)
def test_same_bits_where_workers_are_killed_one_fit_after_the_other(client, monkeypatch, name):
    at, make = MAKES[name]
    parts = parts_of(load_sample().take_queries(range(60)), 4)
    expected = make().fit(truerank.RankingData.concatenate(parts)).predict(parts[0])
    data = from_parts(parts, client=client)
    before_round(monkeypatch, data, {at, at + 3}, lambda: signal_a_worker(data, signal.SIGKILL))
    fitted = make().fit(data)
    assert data.crew.n_rounds > at + 3
    assert data.crew.n_lost >= 2
    assert np.array_equal(fitted.predict(parts[0]), expected)
    assert data.crew.bytes_sent > 0
    assert data.crew.bytes_received > 0


@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_is_known_and_silent_is_given_up(client, monkeypatch):
    parts = parts_of(load_sample().take_queries(range(40)), 3)
    client.wait_for_workers(2, timeout=300)
    monkeypatch.setattr(crew_module, "SILENCE_SECONDS", 15.0)  # a busy machine answers late
    monkeypatch.setattr(crew_module, "_LOOK_SECONDS", 0.5)
    data = from_parts(parts, client=client)
    if data.crew.n_workers < 2:
        pytest.skip("the second worker has not come back yet")
    stopped = []
    before_round(monkeypatch, data, {4}, lambda: stopped.append(signal_a_worker(data, signal.SIGSTOP)))
    try:
        fitted = ListNet().fit(data)
    finally:
        os.kill(stopped[0], signal.SIGKILL)
    assert data.crew.n_lost >= 1
    assert np.array_equal(fitted.coef_, ListNet().fit(from_parts(parts)).coef_)


@pytest.mark.filterwarnings("ignore")
def test_sums_go_up_through_other_workers_and_a_lost_call_is_sent_again(client, monkeypatch):
    from distributed import Actor

    parts = parts_of(load_sample().take_queries(range(40)), 5)
    monkeypatch.setattr(crew_module, "FAN_IN", 1)
    monkeypatch.setattr(crew_module, "_LOOK_SECONDS", 0.2)
    data = from_parts(parts, client=client)
    start, dropped = Crew._start, []

    class Nothing:
        def result(self, timeout):
            raise TimeoutError

    def start_but_one(crew, address, method, *arguments):
        if method == "do" and arguments[1] == "run" and len(dropped) == 0:
            dropped.append(arguments)
            return Nothing()
        return start(crew, address, method, *arguments)

    monkeypatch.setattr(Crew, "_start", start_but_one)
    fitted = RidgeRanker().fit(data)
    assert len(dropped) == 1
    assert np.array_equal(fitted.coef_, RidgeRanker().fit(from_parts(parts)).coef_)
    assert all(isinstance(member, Actor) for member in data.crew._members.values())
    trees = ObliviousBoosting("constant", n_estimators=2, depth=2, n_jobs=1)
    assert np.array_equal(trees.fit(data).predict(parts[0]), trees.fit(from_parts(parts)).predict(parts[0]))


@pytest.mark.filterwarnings("ignore")
def test_without_workers_the_error_says_so(monkeypatch):
    from distributed import Client, LocalCluster

    monkeypatch.setattr(crew_module, "SILENCE_SECONDS", 1.0)
    with (
        LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None) as empty,
        Client(empty) as alone,
        refused(ClusterError, code="no-worker"),
    ):
        from_parts(parts_of(load_sample().take_queries(range(4)), 2), client=alone)


@pytest.mark.parametrize("where", ["local", "local:0", "local:x", "here", "tcp:host"])
def test_a_cluster_is_local_or_a_scheduler(where):
    with refused(InvalidInputError, code="cluster-address"):
        connect(where)


@pytest.mark.filterwarnings("ignore")
def test_a_data_frame_of_dask(client):
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(rng.normal(size=(240, 4)), columns=list("abcd"))
    table["y"] = (table["a"] + rng.normal(size=240) > 0.5).astype(int)
    table["qid"] = np.repeat(np.arange(24), 10)
    ddf = frames.from_pandas(table, npartitions=5, sort=False)
    from truerank.cluster import from_dask_dataframe

    data = from_dask_dataframe(ddf, client=client)
    assert (data.n_rows, data.n_queries, data.n_features) == (240, 24, 4)
    here = truerank.RankingData(table[list("abcd")].to_numpy(), table["y"], table["qid"])
    np.testing.assert_allclose(RidgeRanker().fit(data).coef_, RidgeRanker().fit(here).coef_, rtol=1e-9)
    with refused(InvalidInputError, code="persisted"):
        from_dask_dataframe(client.persist(ddf), client=client)
    with refused(InvalidInputError, argument="ddf"):
        from_dask_dataframe(table, client=client)


@pytest.mark.filterwarnings("ignore")
def test_trees_send_the_bytes_of_the_formula(client):
    client.wait_for_workers(2, timeout=300)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2_000, 24))
    rows = truerank.RankingData(X, np.clip(np.rint(X[:, 0] + X[:, 1] * X[:, 2] + 1), 0, 3), np.arange(2_000) // 20)
    data = from_parts([rows.take_queries(np.arange(i, i + 25)) for i in range(0, 100, 25)], client=client)
    depth, counted = 4, []
    for trees in (1, 3):
        before = data.crew.bytes_received
        fitted = ObliviousBoosting("constant", n_estimators=trees, depth=depth, n_jobs=1).fit(data)
        counted.append(data.crew.bytes_received - before)
    assert fitted.tree_features_.shape == (3, depth)
    assert data.crew.n_workers == 2
    codes = 128  # at most, of the default 64 parts
    # Both workers send all of their histograms, since four levels are small; and one of them a tree to the client.
    histograms = 2 * 8 * sum(2 ** max(level - 1, 0) for level in range(depth)) * 24 * (codes + 1)
    each = histograms + 2 * 98_304
    assert each <= (counted[1] - counted[0]) / 2 <= 1.03 * each
