"""A kind of leaves that is defined here, outside the package, and works wherever truerank's own kinds do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from support.refusals import refused
from truerank import ObliviousBoosting, RankingData, evaluate, explain, export_model, load_model, load_sample
from truerank.cluster import from_parts
from truerank.core.checks import check_number
from truerank.core.errors import InvalidInputError
from truerank.trees.ensemble import ConstantPredictor
from truerank.trees.leaves.base import Leaves, Oblivious
from truerank.trees.leaves.constant import ConstantFitter
from truerank.trees.leaves.kinds import KINDS


@dataclass(frozen=True)
class CappedLeaves(Leaves):
    """The mean of a leaf's residuals, each cut to ±`cap`: outliers have less weight."""

    cap: float = 2.0
    name: ClassVar[str] = "capped"
    keeps_monotone: ClassVar[bool] = False

    def check(self):
        check_number(self.cap, "cap", "[0, inf)")

    def fitter(self, rules, columns, p_swap, workers):
        return CappedFitter(self.cap, workers)


class CappedFitter(ConstantFitter):
    needs_sample = True

    def __init__(self, cap, workers):
        super().__init__(0.0, None, workers)
        self.cap = cap

    def sums(self, tree, rows, sample):
        leaf = rows.leaf_numbers(tree, self.workers)
        g, h = sample.block(0, len(leaf))
        leaves = 1 << tree.depth
        return np.bincount(leaf, -h * np.clip(g / h, -self.cap, self.cap), leaves), np.bincount(leaf, h, leaves)

    def values(self, tree, residuals, weights, unit):
        return residuals / np.maximum(weights, 1e-12)


DATA = load_sample().replaced(feature_names=None)
TRAIN, VALID = DATA.take_queries(range(60)), DATA.take_queries(range(60, 90))
SETTINGS = {"n_estimators": 12, "depth": 3, "learning_rate": 0.2}


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """What the entry point `capped = "package:CappedLeaves"` of the group `truerank.leaves` does."""
    monkeypatch.setitem(KINDS.own, "capped", CappedLeaves)


@pytest.fixture(scope="module")
def ranker():
    return ObliviousBoosting(CappedLeaves(1.5), **SETTINGS).fit(TRAIN)


def test_it_fits_as_written_out(ranker):
    X, y = TRAIN.X, TRAIN.y
    scores = np.full(len(y), ranker.start_)
    for features, borders, values in zip(ranker.tree_features_, ranker.tree_borders_, ranker.tree_values_):
        leaf = ((X[:, features] > borders) << np.arange(3)).sum(axis=1)
        for q in np.unique(leaf):
            own = 0.2 * np.mean(np.clip((y - scores)[leaf == q], -1.5, 1.5))
            assert values[q] == pytest.approx(own, abs=1e-12)
        scores = scores + values[leaf]
    np.testing.assert_allclose(ranker.predict(X), scores, atol=1e-12)
    assert evaluate(VALID, ranker.predict(VALID), "nDCG@10")["nDCG@10"] > 0.4


def test_by_name_by_dict_and_refusals(ranker):
    for leaves in ("capped", {"kind": "capped", "cap": 2.0}):
        one = ObliviousBoosting(leaves, **SETTINGS).fit(TRAIN)
        assert one.kind_of_leaves == CappedLeaves()
        assert not np.array_equal(one.tree_values_, ranker.tree_values_)
    with refused(InvalidInputError, argument="cap"):
        ObliviousBoosting(CappedLeaves(-1.0)).fit(TRAIN)
    with refused(InvalidInputError, argument="monotone"):
        ObliviousBoosting("capped", monotone={0: 1}).fit(TRAIN)


def test_early_stopping_continuing_and_sparse_rows(ranker):
    stopped = ObliviousBoosting("capped", n_estimators=80, depth=2, learning_rate=1.0, patience=3)
    stopped.fit(TRAIN, eval_set=VALID)
    assert stopped.n_iter_ < 80
    assert stopped.n_iter_ == np.argmax(stopped.validation_scores_) + 1
    part = ObliviousBoosting(CappedLeaves(1.5), **SETTINGS | {"n_estimators": 5, "warm_start": True}).fit(TRAIN)
    whole = part.set_params(n_estimators=12).fit(TRAIN)
    np.testing.assert_array_equal(whole.tree_values_, ranker.tree_values_)
    more = ObliviousBoosting(CappedLeaves(1.5), **SETTINGS).fit(VALID, init_model=ranker)
    assert more.n_iter_ == 24
    thin = ObliviousBoosting(CappedLeaves(1.5), **SETTINGS).fit(csr_matrix(TRAIN.X), TRAIN.y, qid=TRAIN.qid)
    np.testing.assert_allclose(thin.predict(TRAIN.X), ranker.predict(TRAIN.X), atol=1e-12)


def test_model_file_export_and_explanation(ranker, tmp_path):
    ranker.save_model(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.kind_of_leaves == ranker.kind_of_leaves
    assert loaded.kind_of_leaves.cap == 1.5
    np.testing.assert_array_equal(loaded.predict(VALID), ranker.predict(VALID))
    program = {}
    exec(export_model(ranker, "python"), program)
    np.testing.assert_allclose([program["score"](row) for row in VALID.X[:20].tolist()], ranker.predict(VALID.X[:20]))
    for name in ("c", "painless", "onnx", "solr"):
        assert export_model(ranker, name)
    contributions = ranker.contributions(VALID.X[:30])
    rest = ranker.predict(VALID.X[:30]) - contributions.sum(axis=1)
    np.testing.assert_allclose(rest, rest[0], atol=1e-9)
    assert explain(ranker, VALID, query=VALID.query_ids[0])


def test_on_parts_it_is_that_of_one_machine(ranker):
    parts = from_parts([TRAIN.take_queries(range(a, b)) for a, b in ((0, 20), (20, 45), (45, 60))])
    there = ObliviousBoosting(CappedLeaves(1.5), **SETTINGS).fit(parts)
    np.testing.assert_allclose(there.predict(VALID), ranker.predict(VALID), rtol=1e-9)
    weighed = RankingData(TRAIN.X, TRAIN.y, TRAIN.qid, sample_weight=np.full(TRAIN.n_rows, 2.0))
    np.testing.assert_allclose(
        ObliviousBoosting(CappedLeaves(1.5), **SETTINGS).fit(weighed).tree_values_, ranker.tree_values_, atol=1e-9
    )


@dataclass(frozen=True)
class ScaledLeaves(CappedLeaves):
    """Leaves whose models also keep standardised features, though a leaf has one value."""

    name: ClassVar[str] = "scaled"
    needs_scaling: ClassVar[bool] = True


@dataclass(frozen=True)
class PlacedLeaves(CappedLeaves):
    """Leaves whose models also keep places, though a row belongs to one leaf."""

    name: ClassVar[str] = "placed"
    needs_places: ClassVar[bool] = True


class Doubled:
    """Scores rows with twice the values of constant leaves."""

    def __init__(self, ensemble):
        self.once = ConstantPredictor(ensemble)

    def predict(self, X, n_jobs, scores, trees=slice(None)):
        return self.once.predict(X, n_jobs, self.once.predict(X, n_jobs, scores, trees), trees)


@dataclass(frozen=True)
class DoubledLeaves(ScaledLeaves):
    """Leaves with a predictor of their own, which exports and explanations do not know."""

    name: ClassVar[str] = "doubled"

    def predictor(self, ensemble, model):
        return Doubled(ensemble)


@dataclass(frozen=True)
class FormedLeaves(DoubledLeaves):
    """The same with the form that says what the predictor computes."""

    name: ClassVar[str] = "formed"

    def form(self, ensemble, model):
        return Oblivious(replace(ensemble, values=2.0 * ensemble.values))


@pytest.mark.parametrize("kind", [ScaledLeaves, PlacedLeaves, FormedLeaves])
def test_scaling_places_and_a_predictor_of_its_own(kind, monkeypatch, tmp_path):
    monkeypatch.setitem(KINDS.own, kind.name, kind)
    ranker = ObliviousBoosting(kind(1.5), **SETTINGS).fit(TRAIN)
    test_model_file_export_and_explanation(ranker, tmp_path)
    assert export_model(ranker, "lightgbm")
    if not kind.needs_scaling:
        thin = ObliviousBoosting(kind(1.5), **SETTINGS).fit(csr_matrix(TRAIN.X), TRAIN.y, qid=TRAIN.qid)
        np.testing.assert_allclose(thin.predict(VALID), ranker.predict(VALID), atol=1e-12)


def test_a_kind_without_a_form_is_refused_by_name(monkeypatch):
    monkeypatch.setitem(KINDS.own, "doubled", DoubledLeaves)
    ranker = ObliviousBoosting("doubled", **SETTINGS).fit(TRAIN)
    for form in ("python", "lightgbm", "painless"):
        with refused(InvalidInputError, code="no-form") as caught:
            export_model(ranker, form)
        assert "doubled" in str(caught.value)
        assert "DoubledLeaves.form" in str(caught.value)
    with refused(InvalidInputError, code="no-form"):
        ranker.contributions(VALID.X[:5])
