"""Dask's arrays and data frames given to a ranker learn what their rows learn, and are never taken whole."""

import numpy as np
import pytest
from sklearn.base import clone

import truerank
from support.refusals import refused
from truerank import CalibratedRanker, ObliviousBoosting, RankSVM, evaluate
from truerank.cluster import from_dask_collections
from truerank.core.errors import InvalidInputError, TruerankWarning

arrays = pytest.importorskip("dask.array")
frames = pytest.importorskip("dask.dataframe")
pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    sizes = rng.integers(2, 9, 40)
    X = rng.standard_normal((sizes.sum(), 5))
    return X, np.clip(np.rint(X[:, 0] + X[:, 1]), 0, 2), np.repeat(np.arange(40) * 7, sizes), sizes


def as_arrays(X, y, qid, length=31):
    return [arrays.from_array(values, chunks=(length, 2)[: values.ndim]) for values in (X, y, qid)]


def as_frames(X, y, qid):
    table = pandas.DataFrame(X, columns=list("abcde"), index=np.arange(len(X)) + 100).assign(y=y, qid=qid)
    whole = frames.from_pandas(table, npartitions=6)
    return whole[list("abcde")], whole["y"], whole["qid"]


def trees():
    return ObliviousBoosting("constant", n_estimators=4, depth=3, n_jobs=1)


@pytest.mark.parametrize("made", [as_arrays, as_frames])
def test_the_trees_of_all_rows(rows, made):
    X, y, qid, _ = rows
    expected = trees().fit(X, y, qid=qid, eval_set=(X, y, qid))
    dX, dy, dqid = made(X, y, qid)
    fitted = trees().fit(dX, dy, qid=dqid, eval_set=[(dX, dy)], eval_qid=[dqid], verbose=False)
    assert np.array_equal(fitted.tree_features_, expected.tree_features_)
    assert fitted.best_score == expected.best_score
    assert fitted.fitted_
    assert not trees().fitted_
    scores = fitted.predict(dX)
    assert type(scores).__module__.startswith("dask")
    assert np.array_equal(scores.compute(), expected.predict(X))
    assert fitted.score(dX, dy, qid=dqid) == expected.score(X, y, qid=qid)
    assert evaluate(dy, scores, "AP", qid=dqid)["AP"] == evaluate(y, expected.predict(X), "AP", qid=qid)["AP"]


def test_ranks_of_a_partition(rows):
    X, y, qid, _ = rows
    [ranks] = RankSVM().fit(X, y, qid=qid).rank(arrays.from_array(X), qid=arrays.from_array(qid))
    assert np.array_equal(ranks, RankSVM().fit(X, y, qid=qid).rank(X, qid=qid))


def test_scores_of_a_frame_keep_its_index(rows):
    X, y, qid, _ = rows
    dX, _, _ = as_frames(X, y, qid)
    fitted = trees().fit(dX.compute(), y, qid=qid)
    fitted.unnamed_ = object()  # as a random generator or a lock, which Dask could not name by its contents
    assert fitted.predict(dX).compute().index.tolist() == list(range(100, 100 + len(X)))


def test_a_column_qid_of_a_frame(rows):
    X, y, qid, _ = rows
    dX, dy, dqid = as_frames(X, y, qid)
    fitted = trees().fit(dX.assign(qid=dqid), dy)
    assert (fitted.n_features_in_, fitted.n_queries_in_) == (5, 40)
    with refused(InvalidInputError, argument="X"):
        trees().fit(dX.assign(qid=dqid), dy, qid=dqid)


def test_a_column_qid_of_a_frame_to_rank_and_to_score(rows):
    X, y, qid, _ = rows
    dX, dy, dqid = as_frames(X, y, qid)
    fitted = RankSVM().fit(dX.assign(qid=dqid), dy)
    both = [np.concatenate(fitted.rank(*given[:1], **given[1])) for given in
            ((dX.assign(qid=dqid), {}), (dX, {"qid": dqid}))]  # fmt: skip
    assert np.array_equal(*both)
    assert fitted.score(dX.assign(qid=dqid), dy) == fitted.score(dX, dy, qid=dqid)


def test_rounds_name_the_measure_that_is_watched(rows):
    dX, dy, dqid = as_arrays(*rows[:3])
    heard = []
    fitted = trees().fit(dX, dy, qid=dqid, eval_set=(dX, dy, dqid), callbacks=[heard.append])
    assert [one.measures["valid_0"]["nDCG@10"] for one in heard] == fitted.validation_scores_.tolist()


@pytest.mark.parametrize("series", [False, True])
def test_sizes_of_queries_cut_as_the_rows(rows, series):
    X, y, _, sizes = rows
    first = int(sizes[:15].sum())
    cuts = ((first, len(X) - first),)
    dX, dy = arrays.from_array(X, chunks=(*cuts, (5,))), arrays.from_array(y, chunks=cuts)
    group = arrays.from_array(sizes.astype(float), chunks=((15, 25),))
    if series:
        group = frames.from_dask_array(group)
    expected = trees().fit(X, y, group=sizes)
    assert np.array_equal(trees().fit(dX, dy, group=group).predict(X), expected.predict(X))
    watched = trees().fit(dX, dy, group=group, eval_set=[(dX, dy)], eval_group=[group])
    assert watched.best_score == trees().fit(X, y, group=sizes, eval_set=[(X, y)], eval_group=[sizes]).best_score


def test_of_several_sets_the_last_is_watched(rows):
    dX, dy, dqid = as_arrays(*rows[:3])
    with pytest.warns(TruerankWarning, match="the last set of eval_set, valid_1"):
        fitted = trees().fit(dX, dy, qid=dqid, eval_set=[(dX, dy), (dX, dy)], eval_qid=[dqid, dqid])
    assert list(fitted.evals_result_) == ["valid_1"]


def test_what_is_refused(rows):
    X, y, qid, _ = rows
    dX, dy, dqid = as_arrays(X, y, qid)
    for fit, message in (
        (lambda: trees().fit(dX, dy), "qid must be a Dask array.*Pass the query of each row"),
        (lambda: trees().fit(dX, y, qid=dqid), "y must be a Dask array, data frame or series like X, got ndarray"),
        (lambda: trees().fit(dX, dy, qid=dqid.rechunk(-1)), "qid has 1 blocks and X has"),
        (lambda: trees().fit(dX, dy, qid=dqid, position=y), "Omit position"),
        (lambda: trees().fit(dX, dy, qid=dqid, sample_weight=dy), "Omit sample_weight"),
        (lambda: truerank.RankingData(dX, dy, dqid), "from_dask_collections"),
        (lambda: CalibratedRanker(trees()).fit(X, y, qid=qid).predict_proba(dX), "from_dask_collections"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            fit()


def test_a_block_is_asked_for_no_other_block(rows):
    asked = []

    def noted(block, block_id):
        asked.append(block_id[0])
        return block

    dX, dy, dqid = as_arrays(*rows[:3], length=60)
    dX = dX.rechunk({1: -1}).map_blocks(noted, dtype=float, meta=np.empty((0, 0)))
    [*_, last] = from_dask_collections(dX, dy, qid=dqid).crew.sources
    asked.clear()
    assert last().n_features == 5
    assert asked == [dX.numblocks[0] - 1]


@pytest.mark.parametrize("ranker", [RankSVM(), trees()])
def test_models_of_the_same_parameters_are_not_one_to_dask(rows, ranker):
    dask = pytest.importorskip("dask")
    X, y, qid, _ = rows
    first, second = clone(ranker).fit(X, y, qid=qid), clone(ranker).fit(X, 2 - y, qid=qid)
    blocks = arrays.from_array(X, chunks=(31, -1))
    scores = dask.compute(*(blocks.map_blocks(one.predict, drop_axis=1, dtype=float) for one in (first, second)))
    assert np.array_equal(scores[0], first.predict(X))
    assert np.array_equal(scores[1], second.predict(X))
    same, _ = dask.compute(second, blocks)
    assert same is second
