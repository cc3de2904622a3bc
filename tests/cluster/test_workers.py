"""A cluster of two processes on this machine: the same bits, also where a worker is killed in the middle."""

from __future__ import annotations

import os
import signal
import warnings

import numpy as np
import pytest

import truerank
from truerank import AdaRank, ObliviousBoosting, load_sample
from truerank.cluster import connect, from_parts
from truerank.cluster.crew import Crew
from truerank.core.errors import InvalidInputError

pytest.importorskip("distributed")


@pytest.fixture
def client():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = connect("local:2")
        yield made
        made.shutdown()


def parts_of(data, k):
    return [data.take_queries(np.arange(i, data.n_queries, k)) for i in range(k)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("at", [7, 30])
def test_same_bits_where_a_worker_is_killed(client, monkeypatch, at):
    parts = parts_of(load_sample().take_queries(range(60)), 4)
    makes = {
        30: lambda: ObliviousBoosting("constant", n_estimators=6, depth=3, n_jobs=1),
        7: lambda: AdaRank(n_estimators=6, n_jobs=1),
    }
    make = makes[at]
    expected = make().fit(truerank.RankingData.concatenate(parts)).predict(parts[0])
    client.wait_for_workers(2, timeout=60)
    data = from_parts(parts, client=client)
    ask, asked = Crew._ask, []

    def ask_and_kill(crew, call, merge):
        if crew is data.crew:
            asked.append(call)
            if len(asked) == at:
                victim = next(iter(client.run(os.getpid).values()))
                os.kill(victim, signal.SIGKILL)
        return ask(crew, call, merge)

    monkeypatch.setattr(Crew, "_ask", ask_and_kill)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = make().fit(data)
    assert len(asked) > at
    assert data.crew.n_lost == 1
    assert np.array_equal(fitted.predict(parts[0]), expected)
    assert data.crew.bytes_sent > 0
    assert data.crew.bytes_received > 0


@pytest.mark.parametrize("where", ["local", "local:0", "local:x", "here", "tcp:host"])
def test_a_cluster_is_local_or_a_scheduler(where):
    with pytest.raises(InvalidInputError, match="local:N"):
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
    from truerank import RidgeRanker
    from truerank.cluster import from_dask_dataframe

    data = from_dask_dataframe(ddf, client=client)
    assert (data.n_rows, data.n_queries, data.n_features) == (240, 24, 4)
    here = truerank.RankingData(table[list("abcd")].to_numpy(), table["y"], table["qid"])
    np.testing.assert_allclose(RidgeRanker().fit(data).coef_, RidgeRanker().fit(here).coef_, rtol=1e-9)
    with pytest.raises(InvalidInputError, match="persisted"):
        from_dask_dataframe(client.persist(ddf), client=client)
    with pytest.raises(InvalidInputError, match="Dask data frame"):
        from_dask_dataframe(table, client=client)
