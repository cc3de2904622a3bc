"""Training queries are recognised by their rows, however the data come again, and others are not."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from scipy import sparse

from support.edited_models import unsealed
from truerank import (
    AdaRank,
    CalibratedRanker,
    ListNet,
    ObliviousBoosting,
    PairwiseDescent,
    RankerPipeline,
    RankingData,
    RidgeRanker,
    load_model,
    save_model,
)
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.data.provenance import TrainingSketch, query_digests, training_queries


def made(queries: int, seed: int = 0, first: int = 0, rows: int = 7) -> RankingData:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * rows, 3))
    X[rng.random(X.shape) < 0.2] = 0.0
    y = rng.integers(0, 3, queries * rows)
    return RankingData(X, y, np.repeat(np.arange(first, first + queries), rows))


def wide(queries: int, seed: int = 0, rows: int = 8) -> RankingData:
    rng = np.random.default_rng(seed)
    return RankingData(rng.normal(size=(queries * rows, 6)), None, np.repeat(np.arange(queries), rows))


def without_one_row(data: RankingData, rng: np.random.Generator) -> RankingData:
    """The queries without a row each, which is drawn."""
    kept = np.ones(data.n_rows, dtype=bool)
    kept[data.offsets[:-1] + rng.integers(0, data.group_sizes)] = False
    return RankingData(data.X[kept], None, data.query_index[kept])


RANKERS = [
    RidgeRanker(),
    AdaRank(),
    ListNet(max_iter=5),
    ObliviousBoosting(n_estimators=3, leaves="constant"),
    RankerPipeline(["min-max-in-query"], RidgeRanker()),
    CalibratedRanker(RidgeRanker(), method="platt", cv=2),
    CalibratedRanker(RankerPipeline(["score-binning"], RidgeRanker()), method="platt", cv=2),
]


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_a_model_recognises_its_training_queries_and_no_others(ranker, tmp_path):
    train, other = made(30), made(20, seed=1, first=30)
    ranker = ranker.fit(train)
    save_model(ranker, tmp_path / "model.json")
    for model in (ranker, load_model(tmp_path / "model.json")):
        both = RankingData.concatenate([other, train.take_queries(range(5, 15))])
        found = training_queries(model, both)
        assert found.matched.tolist() == [False] * 20 + [True] * 10
        assert (found.recognised, found.recognisable, found.of, found.same_ids) == (10, 30, 30, 0)
        assert not found.mostly
        assert not found.reason
        assert str(found).startswith("10 of 30 queries were used for training (after adding or removing a row, none")
        assert training_queries(model, train).mostly


def test_the_same_queries_come_again_in_other_forms():
    train = made(30)
    model = RidgeRanker().fit(train)
    rng = np.random.default_rng(5)
    places = rng.permutation(train.n_rows)
    shuffled = RankingData(train.X[places], None, train.query_index[places])
    negative = np.where(train.X == 0.0, -0.0, train.X)
    for again in (
        shuffled,
        train.replaced(y=train.y[::-1]),  # judged again
        train.replaced(X=train.X.astype(np.float32)),
        train.replaced(X=train.X.astype(np.float32).astype(np.float64)),
        train.replaced(X=negative),
        train.replaced(X=sparse.csr_matrix(train.X)),
        train.replaced(query_ids=np.array([f"another name {i}" for i in range(30)])),
    ):
        assert training_queries(model, again).recognised == 30
    changed = train.replaced(X=train.X + (train.query_index == 7)[:, None])
    found = training_queries(model, changed)
    assert (found.recognised, found.same_ids) == (29, 1)
    assert "1 other query has the id of a training query but different rows" in str(found)
    fewer = train.take_queries([3])
    cut = RankingData(fewer.X[:3], None, np.full(3, 3))
    assert training_queries(model, cut).recognised == 0


def test_missing_values_have_one_form():
    X = np.array([[np.nan, 1.0, 0.0, 0.0, 0.0], [2.0, 3.0, 0.0, 0.0, 0.0]])
    other = X.copy()
    other.view(np.uint64)[0, 0] ^= 1 << 40 | 1 << 63  # another bit pattern of nan
    assert np.isnan(other[0, 0])
    first, second = (query_digests(RankingData(values, None, ["q", "q"]))[0] for values in (X, other))
    assert first == second
    zero = query_digests(RankingData(np.nan_to_num(X), None, ["q", "q"]))[0]
    assert first != zero


def test_columns_of_a_table_are_those_of_the_model():
    train = made(10).replaced(feature_names=["a", "b", "c"])
    model = RidgeRanker().fit(train)
    wider = train.replaced(X=np.c_[np.ones(len(train.X)), train.X[:, ::-1]], feature_names=["one", "c", "b", "a"])
    assert training_queries(model, wider).recognised == 10


def test_a_sketch_of_more_queries_than_it_keeps():
    whole = made(300)
    kept = TrainingSketch.of(whole, 100)
    assert len(kept.rows) == len(kept.ids) == 100
    assert kept.complete[:2] == (False, False)
    model = RidgeRanker()
    model.training_sketch_size = 100
    model.fit(whole)
    assert model.training_sketch_.rows.tolist() == kept.rows.tolist()
    found = training_queries(model, RankingData.concatenate([whole, made(400, seed=9, first=1000)]))
    assert found.recognised == found.matched[:300].sum() == 100
    assert 150 < found.recognisable < 300
    assert not found.mostly
    assert f"100 of the {found.recognisable} recognisable queries (of 700) were used" in str(found)
    # Of few new queries too few could be recognised to say anything.
    few = training_queries(model, made(30, seed=4, first=5000))
    assert few.reason
    assert few.recognised == 0
    assert few.recognisable < 20
    assert str(few).startswith("training queries could not be recognised: the model stores a sample")


def test_no_sketch_says_so(tmp_path):
    model = RidgeRanker()
    model.training_sketch_size = 0
    model.fit(made(10))
    found = training_queries(model, made(10))
    assert found.reason
    assert found.recognised == found.recognisable == 0
    assert "the model has no sketch" in str(found)


def test_sketches_of_parts_make_that_of_the_whole():
    whole = made(300)
    parts = [TrainingSketch.of(whole.take_queries(part), 60) for part in (range(120), range(120, 300))]
    both, expected = parts[0] | parts[1], TrainingSketch.of(whole)
    for kind in ("rows", "ids"):
        own = getattr(both, kind)
        assert own.tolist() == getattr(expected, kind)[: len(own)].tolist()
        assert len(own) >= 60
    assert both.complete[:2] == (False, False)
    complete = TrainingSketch.of(whole.take_queries(range(9))) | TrainingSketch.of(whole.take_queries(range(5, 300)))
    assert complete.rows.tolist() == expected.rows.tolist()
    assert complete.complete[:2] == (True, True)


def test_continued_models_know_the_queries_of_both_fits():
    first, second = made(30), made(30, seed=1, first=30)
    both = RankingData.concatenate([first, second])
    trees = ObliviousBoosting(n_estimators=2, leaves="constant").fit(first)
    more = ObliviousBoosting(n_estimators=2, leaves="constant").fit(second, init_model=trees)
    assert training_queries(more, both).recognised == 60
    assert training_queries(trees, both).recognised == 30
    stream = PairwiseDescent(max_iter=50).partial_fit(first).partial_fit(second)
    assert training_queries(stream, both).recognised == 60
    anew = RidgeRanker().fit(first).fit(second)
    assert training_queries(anew, both).recognised == 30


def test_a_prefit_ranker_and_its_calibrators_count_both():
    first, second = made(30), made(30, seed=1, first=30)
    model = CalibratedRanker(RidgeRanker().fit(first), method="platt", cv="prefit").fit(second)
    assert training_queries(model, RankingData.concatenate([first, second])).recognised == 60


def test_scikit_learn_pipelines_are_looked_through():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    train = made(30)
    model = make_pipeline(StandardScaler(), RidgeRanker())
    model.fit(train.X, train.y, ridgeranker__qid=train.qid)
    assert training_queries(model, train).recognised == 30
    assert training_queries(model, made(30, seed=3)).recognised == 0


def test_a_file_of_training_queries_has_the_sketch(tmp_path):
    from truerank.io.letor.write import write_letor

    train = made(20)
    write_letor(train, tmp_path / "train.txt")
    model = PairwiseDescent(max_iter=50).fit_file(tmp_path / "train.txt", block_rows=20)
    assert training_queries(model, train).recognised == 20


def test_the_part_in_a_model_file_is_small_and_checked(tmp_path):
    sketch = TrainingSketch.of(wide(5000, rows=4))
    assert len(sketch.rows) == len(sketch.ids) == len(sketch.single) == len(sketch.of_query) == 4096
    assert len(json.dumps(sketch.model_params())) < 180_000
    model = RidgeRanker().fit(made(20))
    save_model(model, tmp_path / "model.json")
    document = unsealed(json.loads((tmp_path / "model.json").read_text()))
    params = document["model"]["fitted"]["training_sketch_"]["params"]
    for rows in ("no base64!", params["rows"][:-4] + "AAA=", params["rows"][::-1]):
        damaged = params | {"rows": rows}
        document["model"]["fitted"]["training_sketch_"]["params"] = damaged
        (tmp_path / "model.json").write_text(json.dumps(document))
        with pytest.raises(ModelFileError):
            load_model(tmp_path / "model.json")
    for damaged in ({"complete": [1, 0]}, {"single": params["rows"]}, {"of_query": "AAA="}):
        with pytest.raises(InvalidInputError):
            TrainingSketch(**damaged)


def test_figures_on_training_queries_warn_once_a_model(tmp_path):
    train, other = made(30), made(20, seed=1, first=30)
    model = RidgeRanker().fit(train)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.score(other).training_queries.recognised == 0
    with pytest.warns(UserWarning, match="30 of 30 queries were used for training. Figures .* overstate the quality"):
        score = model.score(train)
    assert score.training_queries.recognised == 30
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.score(train) == score
    save_model(model, tmp_path / "model.json")
    for again in (load_model(tmp_path / "model.json"), RidgeRanker().fit(train)):
        with pytest.warns(UserWarning, match="used for training"):
            again.score(train)


def test_queries_that_lost_or_gained_documents_are_recognised_by_their_rows(tmp_path):
    train, other = wide(60), wide(60, seed=1)
    rng = np.random.default_rng(2)
    model = Sketched(TrainingSketch.of(train))
    assert model.training_sketch_.complete == (True, True, True)
    fewer = training_queries(model, without_one_row(train, rng))
    assert (fewer.recognised, fewer.by_rows) == (60, 60)
    half = RankingData(
        np.concatenate([train.X[train.query_index < 20], other.X[other.query_index < 20]]), None,
        np.tile(np.repeat(np.arange(20), 8), 2),
    )  # fmt: skip
    assert training_queries(model, half).recognised == 20  # eight rows of sixteen are known
    less = RankingData(np.concatenate([half.X, other.X[-20:]]), None, np.append(half.qid, np.arange(20)))
    assert training_queries(model, less).recognised == 0
    three = np.concatenate([np.arange(start, start + 3) for start in train.offsets[:-1]])
    few = training_queries(model, RankingData(train.X[three], None, train.query_index[three]))
    assert (few.recognised, few.by_rows) == (0, 0)
    assert training_queries(model, other).recognised == 0
    moved = train.replaced(X=train.X + 0.001 * (np.arange(6) == 2))
    assert training_queries(model, moved).recognised == 0


def test_rows_that_occur_in_two_training_queries_identify_neither():
    train = wide(2)
    same = RankingData(np.concatenate([train.X[:8], train.X[:8], train.X[8:]]), None, np.repeat(np.arange(3), 8))
    sketch = TrainingSketch.of(same.take_queries([0, 2]))
    assert len(sketch.single) == 16
    joined = RankingData(np.concatenate([train.X[:8], train.X[:7], train.X[8:]]), None, [0] * 8 + [1] * 7 + [2] * 8)
    assert len(TrainingSketch.of(joined).single) == 9


def test_narrow_models_recognise_only_queries_with_enough_values():
    """Flags, constants and small counts repeat in other queries, in every row order and with every size."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(400), 6)
    few = np.column_stack([np.ones(2400), rng.integers(0, 2, 2400), rng.integers(0, 3, 2400)]).astype(float)
    for columns in (few[:, :1], few[:, 1:2], few[:, 1:], few):
        for X in (columns, sparse.csr_matrix(columns)):
            train = RankingData(X[:1200], None, qid[:1200])
            found = training_queries(Sketched(TrainingSketch.of(train)), RankingData(X, None, qid))
            assert found.recognised == found.recognisable == 0
            assert "enough distinct values" in str(found)
    # With a column of many values, each query is recognised, and no other one.
    X = np.column_stack([few, rng.normal(size=(2400, 1))])
    assert np.isin(few[:6], few[1200:]).all()
    model = Sketched(TrainingSketch.of(RankingData(X[:1200], None, qid[:1200])))
    X[1200:1500, 3] = 0.0
    found = training_queries(model, RankingData(X, None, qid))
    assert not found.matched[200:].any()
    assert found.recognised == found.matched[:200].sum() > 100
    assert found.recognisable <= 350


def test_rows_of_narrow_models_are_not_used():
    train = made(30)
    found = training_queries(Sketched(TrainingSketch.of(train)), without_one_row(train, np.random.default_rng(0)))
    assert (found.recognised, found.by_rows) == (0, None)
    assert "none can be recognised" in str(found)


def test_rows_are_a_sample_of_large_training_sets_and_join_over_parts():
    whole = wide(4000, rows=6)
    sketch = TrainingSketch.of(whole)
    assert len(sketch.single) == 4096
    assert not sketch.complete[2]
    found = training_queries(
        Sketched(sketch), without_one_row(whole.take_queries(range(500)), np.random.default_rng(0))
    )
    assert found.recognised == found.by_rows
    parts = [TrainingSketch.of(whole.take_queries(part)) for part in (range(1500), range(1500, 4000))]
    both = parts[0] | parts[1]
    assert both.single.tolist() == sketch.single[: len(both.single)].tolist()
    assert both.of_query.tolist() == sketch.of_query[: len(both.single)].tolist()
    again = parts[0] | parts[0]  # a second pass over the same queries
    assert again.single.tolist() == parts[0].single.tolist()


def test_sketches_of_older_models_are_read():
    sketch = TrainingSketch.of(wide(5))
    params = sketch.model_params()
    older = TrainingSketch(params["rows"], params["ids"], [True, True])
    assert older.complete == (True, True, False)
    found = training_queries(Sketched(older), wide(5))
    assert (found.recognised, found.by_rows) == (5, None)


class Sketched:
    def __init__(self, sketch: TrainingSketch) -> None:
        self.training_sketch_ = sketch
