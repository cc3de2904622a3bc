import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from support.refusals import refused
from truerank import ObliviousBoosting, PolynomialLeaves, RankingData, explain, export_model, load_model, save_model
from truerank.core.errors import InvalidInputError, WrongTypeError
from truerank.inspection.shapley import tree_shapley
from truerank.matrices.binning import code_rows, find_borders
from truerank.matrices.bundles import bundle_columns, scan_sparse_columns
from truerank.trees import training_columns
from truerank.trees.bundled_grower import accumulate_stored
from truerank.trees.leaves.places import make_places


def n_bundles(bundled):
    return int(bundled.bundle.max()) + 1


def wide(n=1_200, groups=6, width=20, seed=0, dtype=np.float64):
    """Columns that exclude each other (one of each group is there in a row), some dense ones, some missing values."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n, groups * width + 5), dtype=dtype)
    for group in range(groups):
        X[np.arange(n), group * width + rng.integers(0, width, n)] = rng.integers(-3, 4, n)
    X[:, -5:] = np.where(rng.random((n, 5)) < 0.3, rng.standard_normal((n, 5)), 0)
    X[rng.integers(0, n, 20), rng.integers(0, X.shape[1], 20)] = np.nan
    X[:, 3] = 0
    seen = np.nan_to_num(X)
    y = np.clip(np.round(seen[:, :40].sum(axis=1) + seen[:, -1] - seen[:, -2]), 0, 4)
    return X, y, np.arange(n) // 20


def met(n=2_000, seed=0, dtype=np.float64):
    """Columns with few values away from 0, of which any two may meet in a row, and some with many; missing values."""
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((n, 90)) < 0.5, rng.integers(-2, 5, (n, 90)), rng.standard_normal((n, 90)))
    X = np.where(rng.random((n, 90)) < np.where(np.arange(90) < 84, 0.05, 0.6), values, 0).astype(dtype)
    X[rng.integers(0, n, 60), rng.integers(0, 90, 60)] = np.nan
    X[:, 11] = 0
    X[: n // 3, 12] = np.nan
    seen = np.nan_to_num(X)
    y = np.clip(np.round(seen[:, :40].sum(axis=1) + seen[:, -1] + (seen[:, 12] > 0)), 0, 4)
    return X, y, np.arange(n) // 20


def test_codes_of_columns_that_meet_are_those_of_dense_rows():
    X, _, _ = met()
    borders = [find_borders(np.sort(column[~np.isnan(column)]), 16) for column in X.T]
    csc = sparse.csc_matrix(X)
    csc.data[5] = 0.0  # stored all the same
    X = csc.toarray()
    dense, bundled = code_rows(X, borders), bundle_columns(csc, borders)
    for k in range(X.shape[1]):
        np.testing.assert_array_equal(bundled.column(k), dense.column(k))
    np.testing.assert_array_equal(bundled.has_missing, dense.has_missing)
    assert 0 < n_bundles(bundled) < 20  # the full columns
    assert (bundled.bundle < 0).sum() > 60
    np.testing.assert_array_equal(bundled.stored.rows, csc.indices)


def test_histograms_of_stored_values_are_those_of_codes():
    X, _, _ = met(300)
    rng = np.random.default_rng(1)
    matrix = bundle_columns(sparse.csc_matrix(X), [find_borders(np.sort(c[~np.isnan(c)]), 9) for c in X.T])
    words, leaf = rng.integers(-(2**60), 2**60, 300), rng.integers(0, 5, 300).astype(np.uint16)
    features = np.flatnonzero(matrix.bundle < 0)
    stored = matrix.stored
    out = np.full((5, 256 * len(features)), 7, dtype=np.int64)
    totals = np.zeros(5, dtype=np.int64)
    np.add.at(totals, leaf, words)
    accumulate_stored(
        stored.starts, stored.rows, stored.ranks, features, words, leaf, totals, matrix.default[features],
        matrix.n_bins[features], matrix.has_missing[features], out,
    )  # fmt: skip
    for j, k in enumerate(features):
        expected = np.zeros((5, 256), dtype=np.int64)
        np.add.at(expected, (leaf, matrix.column(k)), words)
        codes = [*range(matrix.n_bins[k])] + [255] * bool(matrix.has_missing[k])
        np.testing.assert_array_equal(out[:, 256 * j : 256 * (j + 1)][:, codes], expected[:, codes])


def test_codes_are_those_of_dense_rows_in_fewer_bytes():
    X, _, _ = wide()
    borders = [find_borders(np.sort(column[~np.isnan(column)]), 16) for column in X.T]
    csc = sparse.csc_matrix(X)
    assert [b.tolist() for b in scan_sparse_columns(csc, lambda k, values, ends: find_borders(values, 16, ends))] == [
        b.tolist() for b in borders
    ]
    dense, bundled = code_rows(X, borders), bundle_columns(csc, borders)
    for k in range(X.shape[1]):
        np.testing.assert_array_equal(bundled.column(k), dense.column(k))
    np.testing.assert_array_equal(bundled.has_missing, dense.has_missing)
    assert n_bundles(bundled) < X.shape[1] / 4
    # No two features of a bundle are away from their defaults in one row.
    away = np.stack([dense.column(k) != bundled.default[k] for k in range(X.shape[1])])
    for bundle in range(n_bundles(bundled)):
        assert away[bundled.bundle == bundle].sum(axis=0).max() <= 1


@pytest.mark.parametrize(
    "settings",
    [
        {"leaves": "constant", "depth": 4},
        {"leaves": "constant", "depth": 12, "monotone": {0: 1, 83: -1}, "small_leaf_penalty": 1.0},
        {"leaves": "fuzzy"},
        {"leaves": {"kind": "fuzzy", "search": True, "ties": "near"}, "objective": "softmax"},
        {"leaves": "constant", "objective": "lambdarank", "bootstrap": "query", "feature_fraction": 0.5, "n_jobs": 2},
        {"leaves": "constant", "subsample": 0.4, "n_jobs": 2},
        {"leaves": "constant", "interaction_constraints": [[0, 1, 2, 3, 4, 5, 86], [7, 8, 85, 12]], "depth": 5},
    ],
)
@pytest.mark.parametrize("make", [wide, met])
def test_sparse_rows_train_the_model_of_dense_ones(settings, make):
    X, y, qid = make()
    valid = make(seed=1)
    dense = ObliviousBoosting(n_estimators=8, **settings).fit(X, y, qid=qid, eval_set=valid)
    rows = sparse.csr_matrix(X), y, qid
    other = ObliviousBoosting(n_estimators=8, **settings)
    other.fit(rows[0], y, qid=qid, eval_set=(sparse.csr_matrix(valid[0]), *valid[1:]))
    for name in ("tree_features_", "tree_borders_", "tree_missing_right_", "tree_values_", "validation_scores_"):
        np.testing.assert_array_equal(getattr(other, name), getattr(dense, name))
    np.testing.assert_array_equal(other.predict(rows[0]), dense.predict(X))
    np.testing.assert_array_equal(list(other.staged_predict(rows[0]))[3], list(dense.staged_predict(X))[3])


def test_wide_rows_are_predicted_in_many_blocks(tmp_path):
    rng = np.random.default_rng(2)
    X = sparse.random(300, 40_000, density=5e-4, format="csr", random_state=0, dtype=np.float32)
    y = np.asarray(rng.integers(0, 3, 300), dtype=float)
    X = X.tolil()
    X[:, 7] = y[:, None]
    X = X.tocsr()
    ranker = ObliviousBoosting("constant", n_estimators=2, depth=1).fit(X, y, qid=np.arange(300) // 30)
    assert set(ranker.tree_features_.ravel()) == {7}
    save_model(ranker, tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict(X), ranker.predict(X))


@pytest.mark.parametrize("make", [wide, met])
def test_any_ranking_data_and_continued(make):
    X, y, qid = make()
    order = np.random.default_rng(3).permutation(len(y))
    data = RankingData(sparse.csr_matrix(X[order]), y[order], qid[order])
    whole = ObliviousBoosting("constant", n_estimators=6, depth=3).fit(data)
    ranker = ObliviousBoosting("constant", n_estimators=3, depth=3, warm_start=True).fit(data)
    ranker.set_params(n_estimators=6).fit(data)
    np.testing.assert_array_equal(ranker.predict(data), whole.predict(data))
    np.testing.assert_array_equal(whole.predict(data), whole.predict(sparse.csr_matrix(X[order])))


@pytest.mark.parametrize("make", [wide, met])
def test_fuzzy_leaves_go_on_as_on_dense_rows(make):
    X, y, qid = make()
    later = make(seed=2)
    rows = sparse.csr_matrix(X)
    dense = ObliviousBoosting("fuzzy", n_estimators=3).fit(X, y, qid=qid)
    ranker = ObliviousBoosting("fuzzy", n_estimators=2, warm_start=True).fit(rows, y, qid=qid)
    ranker.set_params(n_estimators=3).fit(rows, y, qid=qid)
    np.testing.assert_array_equal(ranker.predict(rows), dense.predict(X))
    with refused(InvalidInputError, code="other-rows"):
        ranker.set_params(n_estimators=4).fit(sparse.csr_matrix(later[0]), y, qid=qid)
    other = ObliviousBoosting("fuzzy", n_estimators=3).fit(*later[:2], qid=qid, init_model=dense)
    ranker = ObliviousBoosting("fuzzy", n_estimators=3)
    ranker.fit(sparse.csr_matrix(later[0]), later[1], qid=qid, init_model=dense)
    np.testing.assert_array_equal(ranker.tree_borders_, other.tree_borders_)
    np.testing.assert_array_equal(ranker.place_lower_, other.place_lower_)
    np.testing.assert_array_equal(ranker.predict(rows), other.predict(X))


@pytest.mark.parametrize("weighted", [False, True])
def test_places_are_made_of_features_that_trees_ask_about(weighted, monkeypatch):
    X, y, qid = met()
    weight = 1.0 + np.arange(len(y)) % 3 if weighted else None
    made = []
    monkeypatch.setattr(
        training_columns, "make_places", lambda values, *rest: made.append(len(values)) or make_places(values, *rest)
    )
    ranker = ObliviousBoosting("fuzzy", n_estimators=3, depth=3)
    ranker.fit(sparse.csr_matrix(X), y, qid=qid, sample_weight=weight)
    assert 0 < len(made) == len(ranker.place_features_) < 10
    dense = ObliviousBoosting("fuzzy", n_estimators=3, depth=3).fit(X, y, qid=qid, sample_weight=weight)
    for name in ("features", "sizes", "lower", "upper", "starts"):
        np.testing.assert_array_equal(getattr(ranker, f"place_{name}_"), getattr(dense, f"place_{name}_"))


def test_entries_that_are_stored_twice_add_up():
    X, y, qid = np.nan_to_num(wide()[0]), *wide()[1:]
    rows, columns = np.nonzero(X)
    halves = np.concatenate([X[rows, columns] / 2] * 2)
    order = np.argsort(np.tile(rows, 2), kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
    twice = sparse.csr_matrix((halves[order], np.tile(columns, 2)[order], 2 * ends), shape=X.shape)
    ranker = ObliviousBoosting("constant", n_estimators=3).fit(twice.copy(), y, qid=qid)
    dense = ObliviousBoosting("constant", n_estimators=3).fit(X, y, qid=qid)
    np.testing.assert_array_equal(ranker.predict(twice), dense.predict(X))
    assert twice.nnz == 2 * len(rows)  # the caller's matrix is not changed


@pytest.mark.parametrize("leaves", ["constant", "fuzzy"])
def test_a_model_of_sparse_rows_is_explained_and_exported(leaves):
    X, y, qid = np.nan_to_num(wide(200)[0]), *wide(200)[1:]
    dense, data = RankingData(X, y, qid), RankingData(sparse.csr_matrix(X), y, qid)
    ranker = ObliviousBoosting(leaves, n_estimators=3, depth=3).fit(data)
    np.testing.assert_array_equal(
        explain(ranker, data, query=0, above=0, below=1).contributions,
        explain(ranker, dense, query=0, above=0, below=1).contributions,
    )
    np.testing.assert_array_equal(
        tree_shapley(ranker, data.X[:5], data.X).values, tree_shapley(ranker, X[:5], X).values
    )
    assert export_model(ranker, "python", certify=data).certificate.largest_difference == 0


def test_what_sparse_rows_cannot_have():
    X, y, qid = wide(100)
    rows = sparse.csr_matrix(X)
    for leaves in ("polynomial", PolynomialLeaves(degree=2)):
        with refused(WrongTypeError, code="sparse"):
            ObliviousBoosting(leaves).fit(rows, y, qid=qid)
    with refused(WrongTypeError, code="sparse"):
        ObliviousBoosting(categorical=[0]).fit(rows, y, qid=qid)
    with refused(WrongTypeError, code="sparse"):
        ObliviousBoosting(start="linear").fit(RankingData(rows, y, qid))
    with refused(InvalidInputError, argument="eval_set"):
        ObliviousBoosting().fit(rows, y, qid=qid, eval_set=(X, y, qid))


def test_memory_is_that_of_the_values_and_the_bundles():
    rng = np.random.default_rng(4)
    n, groups, width = 4_000, 20, 100  # 1 % filled
    columns = (np.arange(groups) * width + rng.integers(0, width, (n, groups))).ravel()
    X = sparse.csr_matrix((np.ones(n * groups), columns, np.arange(n + 1) * groups), shape=(n, groups * width))
    csc = X.tocsc()
    borders = scan_sparse_columns(csc, lambda k, values, ends: find_borders(values, 64, ends))
    bundle_columns(csc, borders)  # compiles
    tracemalloc.start()
    bundled = bundle_columns(csc, borders)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_bundles(bundled) <= groups
    assert peak < 64 * n + 24 * X.nnz + 8 * n * -(-n_bundles(bundled) // 8) + 400 * groups * width


def test_memory_of_a_fit_is_that_of_the_stored_values():
    n, p = 3_000, 4_000
    X = sparse.random(n, p, density=0.01, format="csr", rng=np.random.default_rng(5))
    data = RankingData(X, np.arange(n) % 3, np.arange(n) // 30)
    ranker = ObliviousBoosting("constant", n_estimators=1, depth=6)
    ranker.fit(sparse.random(300, 50, density=0.05, format="csr", rng=0), np.arange(300) % 3, qid=np.arange(300) // 30)
    tracemalloc.start()
    ranker.fit(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(ranker.tree_features_[0]) == 6
    # Columns, ranks and borders, and a block of dense rows; a byte a value would be 12 MB, and its histograms 256 MB.
    assert peak < 2 * 13 * X.nnz + 800 * p + (9 << 20)
