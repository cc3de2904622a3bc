"""Boosted trees over partitions: categories, sparse rows, a linear start, and fits that are continued."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from support.refusals import refused
from truerank import ObliviousBoosting, RankingData, RidgeRanker
from truerank.cluster import from_parts, read_parquet
from truerank.cluster.crew import Crew
from truerank.cluster.member import Member
from truerank.core.errors import InvalidInputError
from truerank.core.schema import fields_of


def cut(data, k):
    bounds = np.linspace(0, data.n_queries, k + 1).astype(int)
    return from_parts([data.take_queries(np.arange(a, b)) for a, b in zip(bounds[:-1], bounds[1:])])


def made(m, seed, dtype=np.float64):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 20, m)
    X = rng.standard_normal((sizes.sum(), 6)).round(2)
    X[:, 4], X[:, 5] = rng.integers(0, 40, len(X)), rng.integers(0, 3, len(X))
    X[rng.random(len(X)) < 0.05, 4] = np.nan
    effect = rng.standard_normal(40)[np.nan_to_num(X[:, 4]).astype(int)]
    y = np.clip(np.rint(X[:, 0] + X[:, 1] * X[:, 2] + effect + rng.standard_normal(len(X))), 0, 3)
    return RankingData(X.astype(dtype), y, np.repeat(np.arange(m), sizes))


@pytest.fixture(scope="module")
def judged():
    return made(50, 1), made(20, 2)


def equal(one, many):
    """Whether every fitted attribute has the same bits."""
    for name in fields_of(type(one)):
        a, b = getattr(one, name, None), getattr(many, name, None)
        if isinstance(a, dict):
            assert all(np.array_equal(a[key], b[key], equal_nan=name == "history_") for key in a), name
        else:
            assert np.array_equal(a, b) or a.model_params() == b.model_params(), name


def fitted(train, valid=None, **parameters):
    return ObliviousBoosting(**{"leaves": "constant", "depth": 3, "n_estimators": 5, "n_jobs": 1} | parameters).fit(
        train, **({} if valid is None else {"eval_set": valid})
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 4])
def test_categories_have_the_statistics_of_one_machine(dtype, k):
    train, valid = made(50, 1, dtype), made(20, 2, dtype)
    weight = np.random.default_rng(3).uniform(0.5, 2.0, 50)
    train = RankingData.from_grouped(train.X, train.y, train.offsets, train.query_ids, query_weight=weight)
    settings = {"categorical": [4, 5], "random_state": 3, "bootstrap": "query", "subsample": 0.7}
    one = fitted(train, valid, **settings)
    many = fitted(cut(train, k), cut(valid, 2), **settings)
    assert {4, 5} & set(one.tree_features_.ravel().tolist())
    equal(one, many)


@pytest.mark.parametrize(
    ("leaves", "start"),
    [("constant", "constant"), ("fuzzy", "constant"), ("polynomial", "constant"), ("constant", "linear")],
)
@pytest.mark.parametrize("whole", [True, False])
def test_weights_count_as_on_one_machine(leaves, start, whole):
    train, rng = made(50, 1, np.float32), np.random.default_rng(3)
    weight = rng.integers(0, 4, train.n_rows).astype(float) if whole else rng.lognormal(size=train.n_rows)
    train = train.replaced(sample_weight=weight)
    settings = {"leaves": leaves, "start": start, "borders": 10, "small_leaf_penalty": 2.0}
    one, many = fitted(train, **settings), fitted(cut(train, 4), **settings)
    np.testing.assert_array_equal(many.tree_borders_, one.tree_borders_)
    np.testing.assert_allclose(many.predict(train), one.predict(train), rtol=1e-9, atol=1e-12)
    if leaves == "fuzzy":
        np.testing.assert_array_equal(many.place_starts_, one.place_starts_)
    elif (leaves, start) == ("constant", "constant"):
        equal(one, many)


def test_texts_of_files_are_numbered_alike(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(4)
    kinds = rng.integers(0, 4, 200)
    y = np.clip(kinds - rng.integers(0, 2, 200), 0, 3)
    frame = pandas.DataFrame({"qid": np.arange(200) // 10, "y": y, "a": rng.random(200)})
    frame["kind"] = np.array(list("wxyz"))[kinds]
    tail = frame[100:]
    rows = {"1": frame[:100], "2": tail[tail["kind"] != "w"]}
    for name, part in rows.items():
        part.to_parquet(tmp_path / f"{name}.parquet", index=False)
    texts = {"kind": ["w", "x", "y", "z"]}
    for hold in (True, False):
        data = read_parquet(tmp_path / "*.parquet", categories=texts, hold=hold)
        many = fitted(data, categorical=["kind"], random_state=0)
        assert many.category_names == texts
        equal(fitted(data.gather(), categorical=["kind"], random_state=0), many)
    with refused(InvalidInputError, code="categories"):
        RidgeRanker().fit(data)
    with refused(InvalidInputError, code="different-categories"):
        read_parquet(tmp_path / "*.parquet", categories=["kind"])


@pytest.mark.parametrize("leaves", ["constant", "fuzzy"])
def test_sparse_rows_give_the_trees_of_dense_ones(judged, leaves):
    train, valid = judged
    X = np.where(np.abs(train.X) > 1.0, train.X, 0.0)
    X[np.isnan(train.X)] = np.nan
    dense, sparse = (RankingData(form(X), train.y, train.qid) for form in (np.asarray, csr_matrix))
    one, many = fitted(dense, leaves=leaves), fitted(cut(sparse, 3), leaves=leaves)
    np.testing.assert_array_equal(many.tree_borders_, one.tree_borders_)
    np.testing.assert_allclose(many.predict(valid), one.predict(valid), rtol=1e-9, atol=1e-12)
    if leaves == "constant":
        equal(one, many)


@pytest.mark.parametrize(
    "settings", [{}, {"monotone": {0: -1, 1: 1}}, {"leaves": "fuzzy"}, {"objective": "lambdarank"}]
)
def test_a_linear_start_agrees_to_rounding(judged, settings):
    train, valid = judged
    one = fitted(train, valid, start="linear", **settings)
    many = fitted(cut(train, 5), cut(valid, 2), start="linear", **settings)
    np.testing.assert_allclose(many.start_weights_, one.start_weights_, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(many.tree_features_, one.tree_features_)
    np.testing.assert_allclose(many.predict(valid), one.predict(valid), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(many.validation_scores_, one.validation_scores_)
    equal(one, fitted(cut(train, 1), cut(valid, 2), start="linear", **settings))


CONTINUED = [
    {"subsample": 0.6, "bootstrap": "row"},
    {"objective": "xe-ndcg"},
    {"start": "linear"},
    {"leaves": "fuzzy"},
    {"leaves": "polynomial"},
]


@pytest.mark.parametrize("watched", ["never", "always", "later"])
@pytest.mark.parametrize("settings", CONTINUED)
def test_a_fit_that_is_continued_is_the_longer_fit(judged, settings, watched):
    train, valid = judged
    parts, held = cut(train, 3), cut(valid, 2)
    late = {} if watched == "never" else {"eval_set": held}
    settings = {"leaves": "constant", "depth": 3, "n_estimators": 3, "n_jobs": 1, "random_state": 1} | settings
    many = ObliviousBoosting(**settings, warm_start=True).fit(parts, **(late if watched == "always" else {}))
    many.set_params(n_estimators=6).fit(parts, **late)
    whole = ObliviousBoosting(**settings | {"n_estimators": 6}).fit(parts, **late)
    equal(whole, many)
    with refused(InvalidInputError, code="other-parameters"):
        many.set_params(depth=2).fit(parts)


def test_a_checkpoint_of_other_trees_is_not_gone_on_with(judged, tmp_path):
    from truerank.cluster.checkpoint import name_of_fit

    parts = cut(judged[0], 2)
    one, other = (
        fitted(parts, learning_rate=rate).set_params(learning_rate=0.1, warm_start=True) for rate in (0.1, 0.2)
    )
    assert name_of_fit(one, parts, None) != name_of_fit(other, parts, None)


def test_what_is_not_there_is_said(judged):
    train, _ = judged
    with refused(InvalidInputError, argument="categorical"):
        parts = cut(train, 2)
        fitted(parts, categorical=[4], warm_start=True).set_params(n_estimators=9).fit(parts)
    with refused(InvalidInputError, argument="objective"):
        fitted(cut(train, 2), objective="unbiased-lambdarank")


def by_members(crew, n, program, *arguments):
    """`Crew.together` by n members in this process, each with one of n partitions."""

    async def all_of_them():
        members = [Member(1) for _ in range(n)]
        for number, partition in crew._here.partitions.items():
            members[number].partitions[number] = partition
        runs = [one.together(1, program, arguments, rank, members) for rank, one in enumerate(members)]
        return await asyncio.gather(*runs)

    whole = [theirs for theirs, _ in asyncio.run(all_of_them())]
    assert all(isinstance(one, tuple) for one in whole)
    assert [one[0] is None for one in whole] == [False] + [True] * (n - 1)
    return whole[0][0]


@pytest.mark.parametrize("members", [2, 3, 11])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"objective": "lambdarank", "small_leaf_penalty": 2.0},
        {"feature_fraction": 0.3, "monotone": {1: 1, 16: -1}, "bootstrap": "row"},
        {"interaction_constraints": [[0, 1, 9], [8, 16, 17]], "leaves": "fuzzy"},
    ],
)
def test_features_that_are_shared_out_are_searched_as_by_one_machine(monkeypatch, members, settings):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((900, 19)).round(1)
    X[rng.random(X.shape) < 0.02] = np.nan
    X[:, 12] = X[:, 3]  # equal gains in two shares: the lower feature's
    known = np.nan_to_num(X)
    y = np.clip(np.rint(known[:, 3] + known[:, 1] * known[:, 16] + rng.standard_normal(900)), 0, 2)
    train = RankingData(X, y, np.arange(900) // 9)
    one = fitted(train, **settings)
    monkeypatch.setattr(Crew, "together", lambda crew, *call: by_members(crew, members, *call))
    many = fitted(cut(train, members), **settings)
    if settings.get("leaves") == "fuzzy":
        np.testing.assert_array_equal(many.tree_features_, one.tree_features_)
        np.testing.assert_allclose(many.predict(X), one.predict(X), rtol=1e-9, atol=1e-12)
    else:
        equal(one, many)


@pytest.mark.filterwarnings("ignore")  # nothing is learned
def test_a_tree_that_may_ask_about_nothing_has_one_leaf():
    train = RankingData(np.ones((40, 3)), np.arange(40) % 3, np.arange(40) // 4)
    equal(fitted(train), fitted(cut(train, 3)))


@pytest.mark.parametrize("name", ["init_model", "xgb_model", "position"])
def test_what_partitions_cannot_take_is_refused(judged, name):
    data = cut(judged[0], 2)
    given = {"position": judged[0].y}.get(name, fitted(data))
    with refused(InvalidInputError, code="on-a-cluster"):
        ObliviousBoosting("constant", n_estimators=2, depth=3).fit(data, **{name: given})


@pytest.mark.parametrize("objective", ["unbiased-lambdarank", ["mse", "lambdarank"]])
def test_objectives_that_partitions_do_not_know_are_refused(judged, objective):
    with refused(InvalidInputError, argument="objective"):
        fitted(cut(judged[0], 2), objective=objective)
