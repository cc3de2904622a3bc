import numpy as np
import pytest

from reference import oblivious as slow
from support.packed import packed_gradients
from truerank.core.threads import Workers, row_blocks
from truerank.matrices.binning import code_rows, find_borders, scan_columns
from truerank.trees import histogram
from truerank.trees.grower import (
    Columns,
    Found,
    Grower,
    GrowthRules,
    Weights,
    leaf_numbers,
    search_level,
    search_level_with_rules,
)
from truerank.trees.histogram import accumulate, split_histograms
from truerank.trees.leaves.constant import constrain, newton_values


def grown(X, g, h, depth, parts=4, drawn=None, n_jobs=1, **rules):
    borders = scan_columns(X, lambda k, values, _: find_borders(values, parts))
    matrix = code_rows(X, borders)
    with Workers(n_jobs) as workers:
        grower = Grower(matrix, GrowthRules(depth, **rules), workers)
        tree = grower.grow(packed_gradients(g, h, drawn, workers), np.ones(X.shape[1], dtype=bool))
        leaf = leaf_numbers(matrix, tree, workers)
    questions = []
    for k, code in zip(tree.features, tree.codes):
        own = borders[k]
        questions.append((int(k), float(own[code]) if code < len(own) else np.inf))
    return tree, questions, leaf, borders


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("l2", [0.0, 3.0])
def test_same_tree_as_trying_every_border(seed, l2):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (60, 9)).astype(float)
    g = X[:, 0] - X[:, 3] * X[:, 5] + rng.standard_normal(60)
    h = np.ones(60) if seed % 2 else rng.random(60)
    tree, questions, leaf, borders = grown(X, g, h, 4, alpha=l2)
    assert questions == slow.level_search(X, borders, g, h, 4, l2)
    np.testing.assert_array_equal(leaf, slow.leaf_of(X, questions))
    expected = np.array([[g[leaf == q].sum(), h[leaf == q].sum()] for q in range(1 << tree.depth)])
    np.testing.assert_allclose(np.stack([tree.gradients, tree.hessians], axis=1), expected, atol=1e-6)
    gained = slow.score(g, h, leaf, l2) - slow.score(g, h, 0 * leaf, l2)
    assert tree.gains.sum() == pytest.approx(gained)


def test_a_row_drawn_twice_equals_two_rows():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 5, (40, 3)).astype(float)
    g, h = rng.standard_normal(40), rng.random(40)
    drawn = rng.integers(0, 4, 40)
    tree, questions, _, borders = grown(X, g, h, 3, drawn=drawn)
    again = np.repeat(np.arange(40), drawn)
    assert questions == slow.level_search(X[again], borders, g[again], h[again], 3)
    leaf = slow.leaf_of(X[again], questions)
    expected = slow.plain_values(g[again], h[again], leaf, 8)
    np.testing.assert_allclose(newton_values(tree.gradients, tree.hessians, 0.0), expected, atol=1e-6)


def test_growth_stops_where_nothing_improves():
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    tree, questions, *_ = grown(X, np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4), 5)
    assert questions == [(0, 0.0)]
    np.testing.assert_allclose(tree.gradients, [2, -2])
    np.testing.assert_allclose(tree.hessians, [2, 2])
    tree, questions, *_ = grown(np.zeros((4, 2)), np.ones(4), np.ones(4), 3)
    assert questions == []
    np.testing.assert_allclose(tree.gradients, [4])


def test_missing_values_take_the_better_side():
    X = np.array([[0.0], [1.0], [np.nan], [2.0], [3.0], [np.nan]])
    tree, *_ = grown(X, np.array([-1.0, -1, -1, 1, 1, -1]), np.ones(6), 1)
    assert (tree.codes[0], tree.missing_right[0]) == (1, False)
    tree, *_ = grown(X, np.array([-1.0, -1, 1, 1, 1, 1]), np.ones(6), 1)
    assert (tree.codes[0], tree.missing_right[0]) == (1, True)
    # Only "is it observed" tells these apart.
    tree, questions, leaf, _ = grown(X, np.array([1.0, 1, -1, 1, 1, -1]), np.ones(6), 1)
    assert questions == [(0, np.inf)]
    assert tree.missing_right[0]
    np.testing.assert_array_equal(leaf, [0, 0, 1, 0, 0, 1])


def test_unseen_missing_values_follow_most_of_the_rows():
    X = np.arange(10.0)[:, None]
    for split in (2, 8):
        tree, *_ = grown(X, np.where(np.arange(10) < split, 1.0, -1.0), np.ones(10), 1, parts=10)
        assert tree.missing_right[0] == (split == 2)


def test_small_leaf_penalty_prefers_even_leaves():
    X = np.stack([np.arange(20) >= 1, np.arange(20) >= 10], axis=1).astype(float)
    g = np.where(np.arange(20) < 1, -9.0, np.where(np.arange(20) < 10, -1.0, 1.0))
    assert grown(X, g, np.ones(20), 1)[1] == [(0, 0.0)]
    assert grown(X, g, np.ones(20), 1, small_leaf_penalty=40.0)[1] == [(1, 0.0)]


def test_any_number_of_threads_grows_the_same_tree():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((3000, 30))
    g, h = rng.standard_normal(3000), rng.random(3000)
    trees = [grown(X, g, h, 5, parts=60, n_jobs=n_jobs)[0] for n_jobs in (1, 2, 4)]
    for tree in trees[1:]:
        for name in ("features", "codes", "missing_right", "gains", "gradients", "hessians"):
            np.testing.assert_array_equal(getattr(tree, name), getattr(trees[0], name))


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_blocks_of_rows_and_samples_grow_the_tree_of_all_borders(monkeypatch, share):
    monkeypatch.setattr(histogram, "row_blocks", lambda n, block: row_blocks(n, 97))
    rng = np.random.default_rng(3)
    X = rng.integers(0, 9, (600, 12)).astype(float)
    g, h = X[:, 2] * X[:, 10] + rng.standard_normal(600), rng.random(600)
    drawn = None if share == 1.0 else (rng.random(600) < share).astype(np.int64)
    again = np.arange(600) if drawn is None else np.flatnonzero(drawn)
    for n_jobs in (1, 3):
        _, questions, _, borders = grown(X, g, h, 4, parts=30, drawn=drawn, n_jobs=n_jobs)
        assert questions == slow.level_search(X[again], borders, g[again], h[again], 4)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 50.0])
def test_estimated_gains_find_what_all_rules_find(missing, alpha):
    """Both searches of a level, on histograms in which many borders tie."""
    rng = np.random.default_rng(7)
    for n_leaves in (1, 4, 32):
        n_bins, has_missing = rng.integers(1, 200, 8).astype(np.int32), np.full(8, missing)
        hist = np.zeros((1, n_leaves, 8 * 256), dtype=np.int64)
        for own in hist[0]:  # every feature divides the same rows
            n = int(rng.integers(0, 60))
            words = (rng.integers(-1000, 1000, n) << 20) + rng.integers(1, 200, n)
            for j in range(8):
                codes = rng.integers(0, n_bins[j], n)
                np.add.at(own, 256 * j + np.where(missing & (rng.random(n) < 0.2), 255, codes), words)
        columns = Columns(n_bins, has_missing, np.zeros(8, np.int8), np.empty((0, 4, 256)))
        features = np.flatnonzero(rng.random(8) < 0.8)
        found = []
        for search in (search_level, search_level_with_rules):
            one = Found(np.zeros(8), np.zeros((8, 2), dtype=np.int32), np.zeros((8, 2, n_leaves), dtype=np.int64))
            before = search(hist, n_leaves, features, features, columns, Weights(alpha, 0.0, 100.0, 20), one)
            found.append((before, one))
        (plain_before, plain), (ruled_before, ruled) = found
        assert plain_before == ruled_before
        surpassed = plain.gains == -np.inf  # by an earlier feature
        assert (ruled.gains[surpassed] < ruled.gains.max()).all()
        for few, every in zip(plain, ruled):
            np.testing.assert_array_equal(few[~surpassed], every[~surpassed])


def test_packed_sums_are_exact_for_whole_hessians():
    rng = np.random.default_rng(3)
    g, h = rng.standard_normal(1000), rng.integers(0, 5, 1000).astype(float)
    packed = packed_gradients(g, h, None, Workers(1))
    sum_g, sum_h = packed.scales.unpack(packed.words.sum(keepdims=True))
    assert sum_h[0] == h.sum()
    assert sum_g[0] == pytest.approx(g.sum(), abs=1e-9)
    for scale in (1e-12, 1.0, 1e12):  # the largest magnitudes that one sign can add up to
        packed = packed_gradients(np.full(1000, -scale), np.full(1000, scale / 3), None, Workers(1))
        sum_g, sum_h = packed.scales.unpack(packed.words.sum(keepdims=True))
        assert sum_g[0] == pytest.approx(-1000 * scale, rel=1e-6)
        assert sum_h[0] == pytest.approx(1000 * scale / 3, rel=1e-6)


def test_histogram_of_the_other_child_is_the_difference():
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 256, (50, 8), dtype=np.uint8)
    words = rng.integers(-9, 9, 50)
    leaf = rng.integers(0, 4, 50)
    child = np.zeros((4, 2048), dtype=np.int64)
    for i in range(50):
        for j in range(8):
            child[leaf[i], 256 * j + int(codes[i, j])] += words[i]
    small_is_right = np.array([True, False])
    taken = np.flatnonzero((leaf == 2) | (leaf == 1)).astype(np.int32)
    taken = taken[np.argsort(leaf[taken] & 1, kind="stable")]
    counts = np.bincount(leaf[taken] & 1, minlength=2)[None, :]
    eight = np.stack([np.zeros(50, dtype=np.uint64), codes.view(np.uint64)[:, 0]])
    hist = np.full((3, 4, 2048), 7, dtype=np.int64)  # from an earlier tree
    block, used = np.array([1]), np.full(24, 255)
    accumulate(eight, block, taken, words[taken], counts, hist, block, 2, used)
    hist[1, :2] = child[:2] + child[2:]
    split_histograms(hist, block, used, small_is_right)
    np.testing.assert_array_equal(hist[1], child)
    assert (hist[[0, 2]] == 7).all()
    root = np.ones((1, 1, 2048), dtype=np.int64)
    everyone = np.arange(50, dtype=np.int32), words, np.array([[50]])
    accumulate(eight, block, *everyone, root, np.array([0]), 0, np.empty(0, dtype=np.int64))
    np.testing.assert_array_equal(root[0, 0], 1 + child.sum(axis=0))


@pytest.mark.parametrize("small", [False, True])
def test_only_codes_in_use_are_read_and_written(small):
    rng = np.random.default_rng(9)
    used = rng.integers(1, 40, 8)
    hist = np.full((1, 2, 8, 256), 5, dtype=np.int64)
    inside = np.arange(256) < used[:, None]
    inside[:, 255] = True
    parent, right = rng.integers(-99, 99, (2, 8, 256))
    hist[0, 0][inside], hist[0, 1][inside] = parent[inside], right[inside]
    split_histograms(hist.reshape(1, 2, 2048), np.array([0]), used, np.array([small]))
    children = (parent - right, right) if small else (right, parent - right)
    for found, expected in zip(hist[0], children):
        np.testing.assert_array_equal(found, np.where(inside, expected, 5))


def test_monotone_leaf_values_are_the_nearest():
    from scipy.optimize import minimize

    rng = np.random.default_rng(5)
    values, weights = rng.standard_normal(8), rng.random(8) + 0.1
    got = constrain(values, weights, np.array([0, 1, 2]), np.array([1, 0, -1]))
    order = [(a, a | 1) for a in range(8) if not a & 1] + [(a | 4, a) for a in range(8) if not a & 4]
    assert all(got[b] >= got[a] for a, b in order)
    best = minimize(
        lambda v: (weights * (v - values) ** 2).sum(),
        np.zeros(8),
        constraints=[{"type": "ineq", "fun": lambda v, a=a, b=b: v[b] - v[a]} for a, b in order],
        tol=1e-12,
    )
    np.testing.assert_allclose(got, best.x, atol=1e-5)
