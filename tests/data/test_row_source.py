"""A place of rows that is defined here, outside the package, and used everywhere rows are."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from support.refusals import refused
from truerank import (
    AdaRank,
    CalibratedRanker,
    FuzzyLeaves,
    ListNet,
    MeasureSVM,
    ObliviousBoosting,
    PairwiseDescent,
    PolynomialLeaves,
    RankBoost,
    RankingData,
    RankSVM,
    RidgeRanker,
    SingleFeature,
    compare,
    cross_validate,
    evaluate,
    load_model,
    load_sample,
    permutation_importance,
)
from truerank.core.errors import InvalidInputError
from truerank.data.checkup import examine
from truerank.data.provenance import training_queries
from truerank.data.row_source import RowSource
from truerank.data.rows import add

DATA = load_sample()
TRAIN, VALID = DATA.take_queries(range(40)), DATA.take_queries(range(40, 60))


class StoredPart:
    """Queries in a file, which is read at each look."""

    hold = False

    def __init__(self, path, number):
        self.path, self.number, self.memory = path, number, {}

    @property
    def data(self):
        return pickle.loads(self.path.read_bytes())

    def columns(self, chosen, names):
        return self.data.X[:, chosen]


class StoredRows(RowSource):
    """Toy: every part is a pickle in a folder, and answers merge from the last part to the first."""

    def __init__(self, folder):
        self.parts = [StoredPart(path, number) for number, path in enumerate(sorted(folder.glob("*.part")))]
        self.asked = 0
        self.describe()

    def statistics(self, function, *state, merge=add, keep=False):
        self.asked += 1
        *rest, answer = [function(part, *state) for part in self.parts]
        for other in reversed(rest):
            answer = merge(other, answer)
        return answer


@pytest.fixture
def stored(tmp_path):
    def store(data, cuts):
        folder = tmp_path / f"{data.n_queries} queries in {len(cuts)}"
        folder.mkdir(exist_ok=True)
        for number, (a, b) in enumerate(zip([0, *cuts], [*cuts, data.n_queries])):
            (folder / f"{number}.part").write_bytes(pickle.dumps(data.take_queries(range(a, b))))
        return StoredRows(folder)

    return store


class MySVM(MeasureSVM):
    """Trains wherever its parent does."""


RANKERS = [
    AdaRank(n_estimators=8),
    RankBoost(n_estimators=8),
    ListNet(max_iter=20),
    RankSVM(),
    MySVM(),
    RidgeRanker(),
    SingleFeature(),
    ObliviousBoosting("constant", n_estimators=4, depth=3),
    ObliviousBoosting("constant", n_estimators=4, depth=3, objective="lambdarank", bootstrap="row", patience=3),
    ObliviousBoosting(FuzzyLeaves(), n_estimators=3, depth=2),
    ObliviousBoosting(PolynomialLeaves(), n_estimators=3, depth=2),
]


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_rankers_learn_predict_stop_early_and_are_kept(ranker, stored, tmp_path):
    parts, valid = stored(TRAIN, [7, 20]), stored(VALID, [11])
    more = (lambda rows: {"eval_set": rows}) if ranker.uses_eval_set else lambda rows: {}
    there = type(ranker)(**ranker.get_params()).fit(parts, **more(valid))
    here = type(ranker)(**ranker.get_params()).fit(TRAIN, **more(VALID))
    scores = np.concatenate(there.predict(valid))
    assert np.corrcoef(scores, here.predict(VALID))[0, 1] > 0.99
    if isinstance(ranker, AdaRank | SingleFeature) or getattr(ranker, "leaves", "") == "constant":
        np.testing.assert_array_equal(scores, here.predict(VALID))  # sums of whole numbers, or by query
    if ranker.uses_eval_set:
        # One set in memory is brought to where the parts are.
        again = type(ranker)(**ranker.get_params()).fit(parts, eval_set=VALID)
        np.testing.assert_allclose(np.concatenate(again.predict(valid)), scores, rtol=1e-9)
    if type(ranker) is MySVM:
        return  # which no table of models names
    there.save_model(tmp_path / "model.json")
    np.testing.assert_array_equal(np.concatenate(load_model(tmp_path / "model.json").predict(valid)), scores)
    assert there.score(valid) == pytest.approx(here.score(VALID), abs=0.02)
    assert training_queries(there, parts).recognised == 40
    ranks = there.rank(valid)
    assert [len(one) for one in ranks] == valid.rows_by_part.tolist()


def test_evaluation_comparison_folds_and_calibration_ask_the_same(stored):
    parts = stored(TRAIN, [13, 30])
    ranker = RidgeRanker().fit(VALID)
    assert evaluate(parts, ranker, "AP nDCG@10") == evaluate(TRAIN, ranker.predict(TRAIN), "AP nDCG@10")
    best = SingleFeature().fit(VALID)
    by_name = {"ridge": ranker, "best": best}
    mine = compare(parts, by_name, "AP")
    theirs = compare(TRAIN, {name: one.predict(TRAIN) for name, one in by_name.items()}, "AP")
    assert mine.pairs[0].p == theirs.pairs[0].p
    assert cross_validate(RidgeRanker(), parts, "AP", cv=3).means["RidgeRanker"]["AP"] == pytest.approx(
        cross_validate(RidgeRanker(), TRAIN, "AP", cv=3).means["RidgeRanker"]["AP"]
    )
    assert [str(one) for one in examine(parts)] == [str(one) for one in examine(TRAIN)]
    there, here = (CalibratedRanker(RidgeRanker(), "platt", cv=3).fit(rows) for rows in (parts, TRAIN))
    np.testing.assert_allclose(np.concatenate(there.predict_proba(parts)), here.predict_proba(TRAIN), rtol=1e-6)
    importance = permutation_importance(ranker, parts.gather(), repeats=1)
    np.testing.assert_array_equal(importance, permutation_importance(ranker, TRAIN, repeats=1))


def test_what_does_not_add_up_is_refused(stored):
    parts = stored(TRAIN, [20])
    with pytest.raises(InvalidInputError, match="PairwiseDescent cannot be trained on partitions.*fit_file"):
        PairwiseDescent().fit(parts)
    with refused(InvalidInputError, code="on-a-cluster"):
        RidgeRanker().fit(parts, query_weight=np.ones(40))
    with refused(InvalidInputError, argument="solver"):
        ListNet(solver="gradient-descent").fit(parts)
    bare = RankingData(TRAIN.X, None, TRAIN.qid)
    with refused(InvalidInputError, code="no-grades"):
        RidgeRanker().fit(stored(bare, [9]))
