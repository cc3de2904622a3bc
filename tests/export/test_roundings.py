"""Documents of nearly equal scores keep their order in programs that add up in float32."""

import numpy as np
import pytest
from tests.reference.binary_trees import leaf_of

from truerank import ObliviousBoosting, RankBoost, RankingData, RidgeRanker, export_model
from truerank.core.errors import InvalidInputError
from truerank.export.form import Oblivious, Plain, as_plain, form_of, roundings
from truerank.models.foreign.model import Reader
from truerank.models.foreign.read import read_foreign


def made_up(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 6)) * 100, 6)
    return RankingData(X, (X[:, 0] + X[:, 1] > 0).astype(int), np.repeat(np.arange(n // 40), 40))


DATA = made_up()


@pytest.mark.parametrize(
    "model", [ObliviousBoosting(leaves="constant", n_estimators=40, depth=4), RankBoost(60)], ids=["trees", "stumps"]
)
def test_sums_on_the_grid_have_no_error_in_any_order(model):
    form = form_of(model.fit(DATA))
    trees = as_plain(form).body.trees
    reached = np.array([[leaf_of(trees, root, row) for row in DATA.X] for root in trees.roots])
    on_grids = [tried for tried in roundings(form) if tried[2] is not None]
    assert len(on_grids) > 1
    for rounded, factor, step in on_grids:
        leaves = as_plain(rounded).body.trees.values[reached]
        assert np.array_equal(leaves, leaves.astype(np.float32))
        assert np.array_equal(np.round(leaves / step), leaves / step)
        exact = leaves.sum(axis=0)
        for order in (slice(None), slice(None, None, -1), np.random.default_rng(1).permutation(len(leaves))):
            total = np.zeros(DATA.n_rows, dtype=np.float32)
            for row in leaves[order].astype(np.float32):
                total += row
            assert np.array_equal(total.astype(np.float64), exact)
        scale = np.abs(model.predict(DATA.X)).max()
        np.testing.assert_allclose((exact + rounded.start) / factor, model.predict(DATA.X), atol=1e-5 * scale)


def near_ties(model, data, gap):
    """Pairs of rows without anything in common but their scores, which differ by `gap` of the largest."""
    weights, scores = model.coef_, model.predict(data.X)
    k = int(np.argmax(np.abs(weights)))
    X = data.X[:120].copy()
    X[1::2, k] += (scores[:120:2] - scores[1:120:2] + gap * np.abs(scores).max()) / weights[k]
    return RankingData(X, np.tile([0, 1], 60), np.repeat(np.arange(60), 2))


@pytest.mark.parametrize("format", ["solr", "elasticsearch-ltr", "xgboost"])
def test_a_linear_model_is_rounded_until_the_order_is_kept(format):
    model = RidgeRanker().fit(DATA)
    kept = without_ties = 0
    for seed in range(12):
        close = near_ties(model, made_up(seed=seed), 1e-8)
        picked = close.take_queries(np.arange(seed, seed + 3))
        try:
            text = export_model(model, format, certify=picked)
        except InvalidInputError:
            continue
        own = text.certificate
        assert own.rank_agreement == 1.0
        scale = np.abs(model.predict(DATA.X)).max()
        assert own.largest_difference < 1e-6 * scale
        if "times" in own.policy:
            kept += 1
            without_ties += not own.ties_made
            assert 1.0 < own.policy["times"] < 1.001
            foreign = read_foreign(str(text), Reader("x"), form_of(model).names)
            theirs, ours = foreign.score(picked.X), model.predict(picked.X)
            higher = ours[1::2] > ours[::2]
            assert ((theirs[1::2] >= theirs[::2]) | ~higher).all()
    assert kept > 0
    assert without_ties > 0


def test_what_is_exact_already_is_left_as_it_was():
    model = ObliviousBoosting(leaves="constant", n_estimators=5, depth=2).fit(DATA)
    own = export_model(model, "solr", certify=DATA).certificate
    assert "times" not in own.policy


def test_trees_are_also_tried_off_the_grid():
    """A grid is coarser than float32 where leaf values are small, so it may turn two documents round itself."""
    form = form_of(ObliviousBoosting(leaves="constant", n_estimators=5, depth=2).fit(DATA))
    free = [(rounded, factor) for rounded, factor, step in roundings(form) if step is None]
    assert len(free) > 1
    for rounded, factor in free:
        assert factor != 1.0
        assert np.array_equal(rounded.body.trees.values, factor * form.body.trees.values)


def test_every_kind_of_tree_has_a_grid():
    form = form_of(ObliviousBoosting(leaves="constant", n_estimators=5, depth=2).fit(DATA))
    assert isinstance(form.body, Oblivious)
    plain = as_plain(form)
    assert isinstance(plain.body, Plain)
    steps = {next(iter(roundings(own)))[2] for own in (form, plain)}
    assert len(steps) == 1
