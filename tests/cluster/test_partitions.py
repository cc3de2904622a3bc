"""Partitions of whole queries give what one machine gives, however the rows are cut."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

import truerank
from support.refusals import refused
from truerank import (
    AdaRank,
    ListNet,
    MeasureSVM,
    ObliviousBoosting,
    PairwiseDescent,
    PointwiseSVM,
    RandomRanker,
    RankBoost,
    RankSVM,
    RidgeRanker,
    SingleFeature,
)
from truerank.calibration import CALIBRATORS
from truerank.cluster import from_parts, read_letor, read_parquet
from truerank.cluster.member import fold
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.schema import fields_of
from truerank.data.checkup import examine
from truerank.data.rows import add
from truerank.trees.column_borders import ColumnSummary


def cut(data, k):
    bounds = np.linspace(0, data.n_queries, k + 1).astype(int)
    return [data.take_queries(np.arange(a, b)) for a, b in zip(bounds[:-1], bounds[1:])]


@pytest.fixture(scope="module")
def judged():
    rng = np.random.default_rng(5)

    def made(m):
        sizes = rng.integers(1, 30, m)
        X = rng.standard_normal((sizes.sum(), 11)).round(2)
        X[:, 3] = rng.integers(0, 3, len(X))
        y = np.clip(np.rint(X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(len(X))), 0, 2)
        return truerank.RankingData(X, y, np.repeat(np.arange(m), sizes))

    return made(60), made(25)


TREES = [
    {"leaves": "constant"},
    {"leaves": "constant", "objective": "lambdarank", "small_leaf_penalty": 2.0},
    {"leaves": "constant", "objective": "yetirank", "bootstrap": "query", "subsample": 0.6, "feature_fraction": 0.5},
    {"leaves": "constant", "bootstrap": "row", "patience": 2, "monotone": {0: 1}},
    {"leaves": "constant", "objective": "xe-ndcg"},
    {"leaves": "constant", "interaction_constraints": [[0, 1, 3], [2, 4, 5]]},
]


@pytest.mark.parametrize("parameters", TREES)
@pytest.mark.parametrize("k", [1, 3, 50])
def test_trees_of_plain_leaves_have_the_same_bits(judged, parameters, k):
    train, valid = judged
    parameters = {"n_estimators": 6, "depth": 4, "n_jobs": 1} | parameters
    one = ObliviousBoosting(**parameters).fit(train, eval_set=valid)
    many = ObliviousBoosting(**parameters).fit(from_parts(cut(train, k)), eval_set=from_parts(cut(valid, 2)))
    for name in fields_of(type(one)):
        a, b = getattr(one, name, None), getattr(many, name, None)
        if isinstance(a, dict):
            assert all(np.array_equal(a[key], b[key], equal_nan=True) for key in a)
        else:
            assert np.array_equal(a, b) or a.model_params() == b.model_params(), name
    np.testing.assert_array_equal(one.predict(valid), many.predict(valid))


@pytest.mark.parametrize("leaves", ["fuzzy", "polynomial"])
def test_trees_of_other_leaves_agree_to_rounding(judged, leaves):
    train, valid = judged
    one = ObliviousBoosting(leaves, n_estimators=5, depth=3, n_jobs=1).fit(train)
    many = ObliviousBoosting(leaves, n_estimators=5, depth=3, n_jobs=1).fit(from_parts(cut(train, 7)))
    np.testing.assert_array_equal(one.tree_borders_, many.tree_borders_)
    np.testing.assert_allclose(one.predict(valid), many.predict(valid), rtol=1e-9, atol=1e-12)


HINGES = [
    lambda: RankSVM(loss="hinge", tol=1e-8),
    lambda: RankSVM(loss="hinge", weighting="queries", tol=1e-8),
    lambda: MeasureSVM("AP", tol=1e-8),
    lambda: MeasureSVM("ROC", solver="n-slack", tol=1e-8),
    lambda: MeasureSVM("nDCG@5", C=10.0, tol=1e-8),
]


@pytest.mark.parametrize("k", [1, 7])
@pytest.mark.parametrize("make", HINGES)
def test_cutting_planes_reach_the_same_objective(judged, make, k):
    train, _ = judged
    one, many = make().fit(train), make().fit(from_parts(cut(train, k)))
    if k == 1:
        np.testing.assert_array_equal(many.coef_, one.coef_)
    # Both are within their gap of the optimum; the ramp's rounds are not convex, and may end in another minimum.
    if getattr(one, "round_", 0) == 0:
        assert abs(many.objective_ - one.objective_) <= max(one.gap_, many.gap_)
        assert np.linalg.norm(many.coef_ - one.coef_) <= np.sqrt(2 * one.gap_) + np.sqrt(2 * many.gap_)
    else:
        assert many.path_[-1]["ramp"] == pytest.approx(one.path_[-1]["ramp"], rel=1e-2)
    assert getattr(many, "n_queries_left_out_", 0) == getattr(one, "n_queries_left_out_", 0)


@pytest.mark.parametrize("weighting", ["rows", "queries"])
def test_pairs_are_weighed_over_all_partitions(judged, weighting):
    train, _ = judged
    weight = np.random.default_rng(0).uniform(0.5, 2, train.n_queries)
    train = truerank.RankingData.from_grouped(train.X, train.y, train.offsets, train.query_ids, query_weight=weight)
    one = RankSVM(weighting=weighting).fit(train)
    many = RankSVM(weighting=weighting).fit(from_parts(cut(train, 5)))
    assert many.objective_ == pytest.approx(one.objective_, rel=1e-9)


@pytest.mark.parametrize("k", [1, 3, 50])
def test_rank_boost_finds_the_same_stumps(judged, k):
    train, valid = judged
    X = train.X.copy()
    X[::7, 2] = np.nan
    train = truerank.RankingData.from_grouped(X, train.y, train.offsets, train.query_ids)
    one = RankBoost(n_estimators=20, thresholds=20, patience=8).fit(train, eval_set=valid)
    many = RankBoost(n_estimators=20, thresholds=20, patience=8)
    many.fit(from_parts(cut(train, k)), eval_set=from_parts(cut(valid, 2)))
    for name in ("feature_", "threshold_", "missing_"):
        np.testing.assert_array_equal(getattr(many, name), getattr(one, name))
    np.testing.assert_allclose(many.weight_, one.weight_, rtol=1e-9)
    np.testing.assert_allclose(many.exponential_loss_, one.exponential_loss_, rtol=1e-9)
    np.testing.assert_array_equal(many.validation_scores_, one.validation_scores_)
    with refused(InvalidInputError, argument="thresholds"):
        RankBoost(thresholds="all").fit(from_parts(cut(train, 2)))


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_listnet_learns_from_sparse_partitions(judged, form):
    train = judged[0].replaced(X=form(judged[0].X))
    one, many = ListNet().fit(train), ListNet().fit(from_parts(cut(train, 7)))
    np.testing.assert_allclose(many.coef_, one.coef_, rtol=1e-5, atol=1e-7)
    assert many.objective_ == pytest.approx(one.objective_, rel=1e-9)


@pytest.mark.parametrize("k", [1, 7, 50])
@pytest.mark.parametrize("make", [ListNet, RankSVM, RidgeRanker, lambda: RidgeRanker(alpha=[0.1, 10.0])])
def test_linear_learners_reach_the_same_objective(judged, make, k):
    train, valid = judged
    eval_set = valid if isinstance(make().get_params().get("alpha"), list) else None
    one, many = make().fit(train, eval_set=eval_set), make().fit(from_parts(cut(train, k)), eval_set=eval_set)
    np.testing.assert_allclose(many.coef_, one.coef_, rtol=1e-6, atol=1e-9)
    if hasattr(one, "objective_"):
        assert many.objective_ == pytest.approx(one.objective_, rel=1e-9)


def test_a_scaled_problem_is_the_same_in_partitions(judged):
    train, _ = judged
    X = train.X * 10.0 ** np.arange(-4, 7)
    train = truerank.RankingData.from_grouped(X, train.y, train.offsets, train.query_ids)
    one, many = RankSVM().fit(train), RankSVM().fit(from_parts(cut(train, 4)))
    np.testing.assert_array_equal(one.scale_, many.scale_)
    assert many.objective_ == pytest.approx(one.objective_, rel=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_sparse_columns_are_scaled_as_on_one_machine(judged, sparse):
    train, _ = judged
    X = np.where(np.abs(train.X) > 1, train.X, 0.0) * 10.0 ** np.arange(-4, 7)
    train = truerank.RankingData(csr_matrix(X) if sparse else X, train.y, train.qid)
    one, many = RankSVM().fit(train), RankSVM().fit(from_parts(cut(train, 4)))
    np.testing.assert_array_equal(one.scale_, many.scale_)
    assert many.objective_ == pytest.approx(one.objective_, rel=1e-9)


@pytest.mark.parametrize("class_weight", ["ratio", None, {0: 0.5, 1: 2.0}])
@pytest.mark.parametrize("how", ["plain", "far", "sparse"])
def test_the_pointwise_svm_reaches_the_same_objective(judged, class_weight, how):
    train, _ = judged
    X = train.X * (1.0 if how == "plain" else 1000.0) + (5000.0 if how == "far" else 0.0)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, train.n_queries)
    train = truerank.RankingData.from_grouped(
        csr_matrix(X) if how == "sparse" else X, train.y, train.offsets, train.query_ids, query_weight=weight
    )
    given = {"C": 0.02, "class_weight": class_weight, "intercept_scaling": 2.0, "rel": 1.0}
    one = PointwiseSVM(tol=1e-9, max_iter=1_000_000, random_state=0, **given).fit(train)
    for k in (1, 7):
        many = PointwiseSVM(tol=1e-8, **given).fit(from_parts(cut(train, k)))
        assert many.gap_ <= 1e-8 * many.objective_
        assert many.objective_ == pytest.approx(one.objective_, rel=1e-7)
        np.testing.assert_allclose(many.predict(train), one.predict(train), atol=1e-3)


def test_a_pointwise_svm_of_one_label_learns_nothing(judged):
    train, _ = judged
    many = PointwiseSVM(rel=5.0).fit(from_parts(cut(train, 3)))
    assert not many.coef_.any()
    with pytest.warns(ConvergenceWarning, match="learned nothing"):
        one = PointwiseSVM(rel=5.0).fit(train)
    assert many.status_ == one.status_


@pytest.mark.parametrize("make", [lambda: AdaRank(n_estimators=15, n_jobs=1), SingleFeature, RandomRanker])
def test_what_rests_on_measures_by_query_has_the_same_bits(judged, make):
    train, valid = judged
    eval_set = valid if make().uses_eval_set else None
    one, many = make().fit(train, eval_set=eval_set), make().fit(from_parts(cut(train, 7)), eval_set=eval_set)
    np.testing.assert_array_equal(one.predict(valid), many.predict(valid))


def test_prediction_and_evaluation(judged):
    train, _ = judged
    data, ranker = from_parts(cut(train, 5)), RidgeRanker().fit(train)
    assert np.array_equal(np.concatenate(ranker.predict(data)), ranker.predict(train))
    assert np.array_equal(np.concatenate(ranker.rank(data)), ranker.rank(train))
    for convention in ("trec", "letor3"):
        expected = truerank.evaluate(train, ranker.predict(train), "AP nDCG@10 RR", convention=convention)
        got = truerank.evaluate(data, ranker.predict(data), "AP nDCG@10 RR", convention=convention)
        assert dict(got) == dict(expected)


def test_queries_split_over_files_are_joined(judged, tmp_path, capsys):
    train, _ = judged
    middle = int(train.offsets[np.flatnonzero(np.diff(train.offsets) > 3)[20]]) + 2
    for number, rows in enumerate((slice(None, middle), slice(middle, None)), 1):
        part = truerank.RankingData(train.X[rows], train.y[rows], train.qid[rows])
        truerank.write_letor(part, tmp_path / f"{number}.txt")
        truerank.write_table(part, tmp_path / f"{number}.parquet")
    for read in (
        lambda: read_letor(tmp_path / "*.txt"),
        lambda: read_parquet(str(tmp_path / "*.parquet"), hold=False),
    ):
        data = read()
        assert (
            "queries that were split over partitions are joined in their first partition: 1" in capsys.readouterr().err
        )
        assert (data.n_partitions, data.n_queries, data.n_rows) == (2, train.n_queries, train.n_rows)
        for ranker in (ObliviousBoosting("constant", n_estimators=3, n_jobs=1), RankSVM(), ListNet(), AdaRank()):
            got = ranker.fit(data).predict(train)
            np.testing.assert_allclose(got, ranker.fit(train).predict(train), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("make", [lambda: ObliviousBoosting("fuzzy", n_estimators=2, n_jobs=1), RankSVM, AdaRank])
@pytest.mark.parametrize("hold", [True, False])
def test_files_without_rows_are_left_out_and_columns_are_matched_by_name(judged, tmp_path, make, hold):
    pq = pytest.importorskip("pyarrow.parquet")
    train, _ = judged
    train = train.replaced(feature_names=[f"column {k}" for k in range(train.n_features)])
    middle = int(train.offsets[30]) + 1  # of a query, whose rows are in columns of two orders then
    for number, rows in ((1, slice(None, middle)), (3, slice(middle, None))):
        part = truerank.RankingData(train.X[rows], train.y[rows], train.qid[rows], feature_names=train.feature_names)
        truerank.write_table(part, tmp_path / f"{number}.parquet")
    table = pq.read_table(tmp_path / "1.parquet")
    pq.write_table(table.slice(0, 0), tmp_path / "0.parquet")
    pq.write_table(table.slice(0, 0), tmp_path / "2.parquet")
    other = pq.read_table(tmp_path / "3.parquet")
    pq.write_table(other.select(other.column_names[::-1]), tmp_path / "3.parquet", row_group_size=50)
    data = read_parquet(str(tmp_path / "*.parquet"), hold=hold, rows_per_partition=100)
    assert (data.n_queries, data.n_rows, data.feature_names) == (train.n_queries, train.n_rows, train.feature_names)
    got, expected = make().fit(data).predict(train), make().fit(train).predict(train)
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-9)
    pq.write_table(other.rename_columns([*other.column_names[:-1], "other"]), tmp_path / "3.parquet")
    with refused(InvalidInputError, code="different-columns"):
        read_parquet(str(tmp_path / "*.parquet"), qid="qid", y="y")
    with refused(DataFileError, code="no-rows"):
        read_parquet(str(tmp_path / "[02].parquet"))


@pytest.mark.parametrize("leaves", ["constant", "fuzzy", "polynomial"])
def test_a_partition_without_rows_changes_nothing(judged, leaves):
    train, _ = judged
    first, second = cut(train, 2)
    fits = [
        ObliviousBoosting(leaves, n_estimators=3, depth=2, n_jobs=1).fit(from_parts(parts))
        for parts in ([first, second], [train.take_queries([]), first, train.take_queries([]), second])
    ]
    np.testing.assert_allclose(fits[0].predict(train), fits[1].predict(train), rtol=1e-12)


def test_query_ids_of_two_kinds_are_refused(judged):
    first, second = cut(judged[0], 2)
    texts = second.replaced(query_ids=np.array([str(name) for name in second.query_ids]))
    with refused(InvalidInputError, code="mixed-ids"):
        from_parts([first, texts])


def test_errors_name_the_file_and_the_line(judged, tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1 1:0.5\n")
    (tmp_path / "b.txt").write_text("1 qid:2 1:0.5\n0 qid:2 1:oops\n")
    with refused(DataFileError, code="not-a-number", line=2):
        read_letor(str(tmp_path / "*.txt"))
    with refused(InvalidInputError, code="no-file"):
        read_letor(str(tmp_path / "c*.txt"))
    with pytest.raises(InvalidInputError, match="fit_file"):
        PairwiseDescent().fit(from_parts(cut(judged[0], 2)))
    with refused(InvalidInputError, code="on-a-cluster"):
        RidgeRanker().fit(from_parts(cut(judged[0], 2)), [1.0])
    ranker = RidgeRanker().fit(judged[0])
    before = ranker.coef_.copy()
    with refused(InvalidInputError, argument="alpha"):
        ranker.set_params(alpha=-1.0).fit(from_parts(cut(judged[0], 2)))
    np.testing.assert_array_equal(ranker.coef_, before)


def test_a_summary_beyond_its_limit_keeps_ranks_within_its_error():
    rng = np.random.default_rng(2)
    values, limit, k = rng.standard_normal(40_000), 500, 8
    summaries = {(0, i): ColumnSummary.of(np.sort(part), limit) for i, part in enumerate(np.split(values, k))}
    (whole,) = fold(summaries, ColumnSummary.merged, k).values()
    assert whole.counts.sum() == len(values)
    assert 0 < whole.error <= (1 + math.ceil(math.log2(k))) * 2.0 / limit
    shares = np.arange(0.01, 1.0, 0.01)
    found = whole.sorted_values()[(shares * len(values)).astype(int)]
    assert np.abs(np.searchsorted(np.sort(values), found) / len(values) - shares).max() <= whole.error
    assert whole.values[0] == values.min()
    assert whole.values[-1] == values.max()


@pytest.mark.parametrize("n", range(1, 20))
def test_the_tree_of_sums_does_not_depend_on_who_holds_what(n):
    rng = np.random.default_rng(n)
    values = rng.standard_normal(n)
    (expected,) = fold({(0, i): values[i] for i in range(n)}, add, n).values()
    holder = rng.integers(0, 3, n)
    parts = {}
    for worker in range(3):
        parts |= fold({(0, int(i)): values[i] for i in np.flatnonzero(holder == worker)}, add, n)
    assert list(fold(parts, add, n).values()) == [expected]


@pytest.mark.parametrize(
    "make",
    [
        lambda: ObliviousBoosting("constant", n_estimators=6, depth=3, patience=4, n_jobs=1),
        lambda: ObliviousBoosting("fuzzy", objective="lambdarank", n_estimators=4, depth=3, n_jobs=1),
        lambda: AdaRank(n_estimators=8),
        lambda: RankBoost(n_estimators=8),
        lambda: RankSVM(C=[0.01, 1.0]),
        lambda: MeasureSVM("AP", tol=1e-3),
        ListNet,
    ],
)
def test_a_fit_goes_on_where_its_client_was_killed(judged, make, tmp_path, monkeypatch):
    from truerank.cluster.checkpoint import Checkpoint

    train, valid = judged
    given = {"eval_set": from_parts(cut(valid, 2))} if make().uses_eval_set else {}
    expected = make().fit(from_parts(cut(train, 3)), **given)
    add, added = Checkpoint.add, []

    def add_and_die(log, what, value):
        add(log, what, value)
        added.append(value)
        if len(added) in (3, 9, 16):
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "add", add_and_die)
    rounds = []
    for _ in range(4):
        given = {"eval_set": from_parts(cut(valid, 2))} if given else {}
        data = from_parts(cut(train, 3))
        data.checkpoint = tmp_path
        asked = []
        monkeypatch.setattr(
            data.crew, "_ask", lambda *call, ask=data.crew._ask, asked=asked: asked.append(1) or ask(*call)
        )
        try:
            fitted = make().fit(data, **given)
            break
        except KeyboardInterrupt:
            rounds.append(len(asked))
            with open(tmp_path / "rounds.bin", "ab") as file:
                file.write(b"half a record")
    assert len(rounds) >= 2
    for name in fields_of(type(expected)):
        a, b = getattr(expected, name, None), getattr(fitted, name, None)
        assert repr(a) == repr(b), name
    np.testing.assert_array_equal(fitted.predict(valid), expected.predict(valid))
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_another_fit_or_of_nobody_is_refused(judged, tmp_path):
    import pickle

    from truerank.cluster.checkpoint import Checkpoint

    data = from_parts(cut(judged[0], 3))
    data.checkpoint = tmp_path
    Checkpoint(tmp_path, {"settings": "another"}).close()
    with refused(InvalidInputError, code="another-fit"):
        RidgeRanker().fit(data)
    (tmp_path / "rounds.bin").unlink()
    log = Checkpoint(tmp_path, {})
    log.add("round", pickle.Pickler)
    log.close()
    with refused(DataFileError, code="not-a-checkpoint"):
        Checkpoint(tmp_path, {})


def test_comparison_calibration_and_folds(judged):
    train, valid = judged
    data, held = from_parts(cut(train, 4)), from_parts(cut(valid, 3))
    ridge, single = RidgeRanker().fit(train), SingleFeature().fit(train)
    here = truerank.compare(valid, {"ridge": ridge.predict(valid), "single": single.predict(valid)})
    there = truerank.compare(held, {"ridge": ridge, "single": single.predict(held)})
    assert str(there) == str(here)
    with refused(InvalidInputError, argument="scores"):
        truerank.evaluate(held, ridge.predict(valid), "AP")
    one = truerank.CalibratedRanker(ridge, "platt", cv="prefit").fit(valid)
    many = truerank.CalibratedRanker(ridge, "platt", cv="prefit").fit(held)
    np.testing.assert_array_equal(np.concatenate(many.predict_proba(data)), one.predict_proba(train))
    one = truerank.CalibratedRanker(RidgeRanker(), "platt", cv=3, query_statistics=True, random_state=1).fit(train)
    many = truerank.CalibratedRanker(RidgeRanker(), "platt", cv=3, query_statistics=True, random_state=1).fit(data)
    np.testing.assert_allclose(many.predict_proba(valid), one.predict_proba(valid), rtol=1e-9)


@pytest.mark.parametrize("name", CALIBRATORS)
def test_every_calibrator_has_the_bits_of_one_machine(judged, name):
    train, valid = judged
    ranker = RidgeRanker().fit(train)
    one = truerank.CalibratedRanker(ranker, name, cv="prefit").fit(valid)
    many = truerank.CalibratedRanker(ranker, name, cv="prefit").fit(from_parts(cut(valid, 7)))
    np.testing.assert_array_equal(many.predict_proba(train), one.predict_proba(train))


def test_cross_validation_gives_what_it_gives_on_one_machine(judged):
    train, _ = judged
    mixed = np.random.default_rng(4).permutation(train.n_rows)
    train = truerank.RankingData(train.X[mixed], train.y[mixed], train.qid[mixed])
    parts = cut(train, 3)
    rankers = {"ridge": RidgeRanker(), "adarank": AdaRank(n_estimators=5, patience=5)}
    one = truerank.cross_validate(rankers, train, "AP", cv=3, random_state=1)
    many = truerank.cross_validate(rankers, from_parts(parts), "AP", cv=3, random_state=1)
    for name in rankers:
        np.testing.assert_allclose(many.per_query[name]["AP"], one.per_query[name]["AP"], rtol=1e-9)
        expected = [part.restore(own) for part, own in zip(parts, np.split(
            train.grouped(one.scores[name]), np.cumsum([part.n_rows for part in parts])[:-1]))]  # fmt: skip
        for got, own in zip(many.scores[name], expected, strict=True):
            np.testing.assert_allclose(got, own, rtol=1e-9, atol=1e-12)
    with refused(InvalidInputError, code="on-a-cluster"):
        truerank.cross_validate(LinearRegression(), from_parts(parts), cv=3)


@pytest.mark.parametrize("hold", [True, False])
def test_a_parquet_file_is_cut_between_its_row_groups(judged, tmp_path, capsys, hold):
    parquet = pytest.importorskip("pyarrow.parquet")
    train, _ = judged
    truerank.write_table(train, tmp_path / "one.parquet")
    parquet.write_table(parquet.read_table(tmp_path / "one.parquet"), tmp_path / "all.parquet", row_group_size=50)
    data = read_parquet(tmp_path / "all.parquet", rows_per_partition=120, hold=hold)
    assert data.n_partitions == -(-train.n_rows // 100)
    assert "queries that were split" in capsys.readouterr().err
    for make in (lambda: ObliviousBoosting("constant", n_estimators=3, n_jobs=1), RidgeRanker):
        np.testing.assert_allclose(make().fit(data).predict(train), make().fit(train).predict(train), rtol=1e-9)
    assert read_parquet(tmp_path / "all.parquet").n_partitions == 1
    (tmp_path / "all.parquet").write_bytes(b"PAR1 no")
    with refused(DataFileError, code="unreadable"):
        read_parquet(tmp_path / "all.parquet")


def test_callbacks_hear_of_rounds_over_partitions_and_may_stop_them(judged):
    train, _ = judged
    seen = []

    def third(one):
        seen.append(one.round)
        return one.round == 3

    make = lambda: ObliviousBoosting("constant", n_estimators=9, depth=2, n_jobs=1)  # noqa: E731
    many = make().fit(from_parts(cut(train, 2)), callbacks=[third])
    assert seen == [1, 2, 3]
    np.testing.assert_array_equal(many.predict(train), make().fit(train, callbacks=[third]).predict(train))


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_the_check_up_finds_what_it_finds_on_one_machine(judged, form):
    train, _ = judged
    X, y = np.array(train.X), np.array(train.y)
    X[:, 1], X[:, 4], X[:, 5] = 7.0, X[:, 2], train.query_index
    X[:, 6], X[:, 7] = 0.0, np.where(train.query_index < 30, 1.0, 2.0)  # constant in each of two partitions
    X[5:9] = X[5]
    y[::50] = -0.5
    X[:, 8] = 3.0 * y
    X[::17, 9] = np.nan
    sizes = np.diff(train.offsets)
    whole = truerank.RankingData(form(X), y, np.repeat(np.arange(len(sizes)), sizes), doc_ids=["a"] * len(y))
    expected = [finding.to_dict() | {"where": finding.where} for finding in examine(whole)]
    assert {"constant-feature", "duplicate-feature", "missing-value", "identical-rows"} <= {
        one["code"] for one in expected
    }
    for k in (1, 2, 7, 80):  # some of 80 are empty
        found = examine(from_parts(cut(whole, k)))
        assert [finding.to_dict() | {"where": finding.where} for finding in found] == expected
