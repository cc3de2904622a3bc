"""Rows that are not held are read again, by column where that is enough, and give the same bits."""

from __future__ import annotations

import gc
import weakref
from functools import partial

import numpy as np
import pytest

from truerank import AdaRank, ListNet, MeasureSVM, ObliviousBoosting, RankingData, RankSVM, RidgeRanker, write_table
from truerank.cluster import ClusterRankingData, partition, read_letor, read_parquet
from truerank.cluster.partition import Partition, given_rows

LEARNERS = [
    lambda: ObliviousBoosting("constant", n_estimators=3, depth=3, n_jobs=1),
    lambda: ObliviousBoosting("polynomial", n_estimators=2, depth=2, n_jobs=1),
    lambda: AdaRank("nDCG@5", n_estimators=8),
    lambda: RankSVM(weighting="queries"),
    lambda: RankSVM(loss="hinge", C=0.01),
    lambda: ListNet(),
    lambda: MeasureSVM("AP", C=0.1),
    lambda: RidgeRanker(),
]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 12, 40)
    X = rng.standard_normal((sizes.sum(), 6)).round(2)
    X[:, 5] *= 1000.0  # columns are scaled
    y = np.clip(np.rint(X[:, 0] + X[:, 1] + rng.standard_normal(len(X))), 0, 2)
    names = [f"column {k}" for k in range(6)]
    return RankingData(X, y, np.repeat(np.arange(40), sizes), feature_names=names)


@pytest.fixture
def reads(monkeypatch):
    """The columns of each reading of row groups, None for all."""
    seen = []
    read = partition.read_row_groups

    def told(*group, features=None):
        seen.append(None if features is None else tuple(features))
        return read(*group, features=features)

    monkeypatch.setattr(partition, "read_row_groups", told)
    return seen


def parquet(rows, folder):
    """One file in row groups that cut queries, and one of a single row group."""
    pq = pytest.importorskip("pyarrow.parquet")
    half = rows.n_queries // 2
    for name, queries, size in (("1", range(half), 40), ("2", range(half, rows.n_queries), 10_000)):
        write_table(rows.take_queries(np.array(queries)), folder / f"{name}.parquet")
        pq.write_table(pq.read_table(folder / f"{name}.parquet"), folder / f"{name}.parquet", row_group_size=size)
    return str(folder / "*.parquet")


@pytest.mark.parametrize("number", range(len(LEARNERS)))
def test_learners_have_the_bits_of_rows_that_are_held(rows, tmp_path, number):
    path = parquet(rows, tmp_path)
    held, again = (
        LEARNERS[number]().fit(read_parquet(path, rows_per_partition=60, hold=hold)) for hold in (True, False)
    )
    np.testing.assert_array_equal(again.predict(rows), held.predict(rows))


def test_adarank_reads_the_column_of_each_round_alone(rows, tmp_path, reads):
    data = read_parquet(parquet(rows, tmp_path), rows_per_partition=60, hold=False)
    reads.clear()
    ranker = AdaRank("AP", n_estimators=6).fit(data)
    used = {(rows.feature_names[k],) for k in ranker.history_["feature"].tolist()}
    once = reads.count(None)
    assert set(reads) - {None} == used
    reads.clear()
    AdaRank("AP", n_estimators=1).fit(data)
    assert reads.count(None) == once  # what is read whole does not go by the rounds


def test_trees_read_whole_partitions_once(rows, tmp_path, reads):
    data = read_parquet(parquet(rows, tmp_path), rows_per_partition=10_000, hold=False)
    reads.clear()
    ObliviousBoosting("constant", n_estimators=3, depth=2, n_jobs=1).fit(data)
    assert reads.count(None) == data.crew.n_partitions


def test_trees_with_plain_leaves_let_go_of_the_values(rows, tmp_path, monkeypatch):
    from truerank.trees.rows_in_parts import PartTrees

    read, derive, seen, alive = Partition._read, PartTrees.derive, [], []

    def read_and_watch(partition, features=None):
        data = read(partition, features)
        seen.append(weakref.ref(data.X if data.X.base is None else data.X.base))
        return data

    def count_and_derive(trees, t):
        gc.collect()
        alive.append(sum(values() is not None for values in seen))
        derive(trees, t)

    monkeypatch.setattr(Partition, "_read", read_and_watch)
    monkeypatch.setattr(PartTrees, "derive", count_and_derive)
    data = read_parquet(parquet(rows, tmp_path), rows_per_partition=60, hold=False)
    ObliviousBoosting("constant", n_estimators=2, depth=2, n_jobs=1).fit(data)
    assert seen
    assert set(alive) == {0}


def test_the_line_search_of_rank_svm_reads_nothing(rows, tmp_path, reads, monkeypatch):
    from truerank.solvers.newton import PairSums

    data = read_parquet(parquet(rows, tmp_path), rows_per_partition=60, hold=False)
    trial, in_trials = PairSums.trial, []

    def watched(self, t):
        before = len(reads)
        answer = trial(self, t)
        in_trials.append(len(reads) - before + hasattr(self, "rows"))
        return answer

    monkeypatch.setattr(PairSums, "trial", watched)
    RankSVM().fit(data)
    assert in_trials
    assert not any(in_trials)


def test_sparse_rows_and_letor_text_are_read_whole(rows, tmp_path):
    from scipy.sparse import csr_matrix

    from truerank import write_letor

    sparse = RankingData(csr_matrix(rows.X), rows.y, rows.qid)
    held, again = (ClusterRankingData([partial(given_rows, sparse)], hold=hold) for hold in (True, False))
    np.testing.assert_array_equal(AdaRank().fit(again).coef_, AdaRank().fit(held).coef_)
    write_letor(rows, tmp_path / "rows.txt")
    held, again = (read_letor(tmp_path / "rows.txt", hold=hold) for hold in (True, False))
    np.testing.assert_array_equal(AdaRank().fit(again).coef_, AdaRank().fit(held).coef_)
