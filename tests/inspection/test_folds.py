"""Folds: a number, splitters by query and by time, and published folds as one value, in Python and in commands."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold
from tests.support.refusals import refused

import truerank
from truerank import FoldedData, QueryKFold, QueryTimeSplit, RankingData, cross_validate, read_folds, tune
from truerank.cli import main
from truerank.core.errors import InvalidInputError
from truerank.data.columns import take_columns
from truerank.data.remarks import RemarkWarning
from truerank.rankers.baselines import RidgeRanker, SingleFeature

DATA = truerank.load_sample().take_queries(range(30))


class Known(RidgeRanker):
    """Remembers the queries of each fit."""

    fits: list = []  # noqa: RUF012

    def fit(self, X, *args, **more):
        Known.fits.append(
            (X.query_ids.tolist(), None if "eval_set" not in more else more["eval_set"].query_ids.tolist())
        )
        return super().fit(X, *args, **more)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The same collection as Fold1 … Fold5 and as five parts."""
    root = tmp_path_factory.mktemp("collections")
    parts = [DATA.take_queries(np.arange(30)[k::5]) for k in range(5)]
    (root / "parts").mkdir()
    for k in range(5):
        truerank.write_letor(parts[k], root / "parts" / f"S{k + 1}.txt")
        fold = root / "folds" / f"Fold{k + 1}"
        fold.mkdir(parents=True)
        truerank.write_letor(parts[k], fold / "test.txt")
        truerank.write_letor(parts[k - 1], fold / "vali.txt")
        rest = RankingData.concatenate([parts[(k + shift) % 5] for shift in (1, 2, 3)])
        truerank.write_letor(rest, fold / "train.txt")
    return root


@pytest.mark.parametrize("kind", ["folds", "parts"])
def test_published_folds_are_one_value(folders, kind):
    data = read_folds(folders / kind)
    assert isinstance(data, FoldedData)
    assert sorted(map(str, data.query_ids)) == sorted(map(str, DATA.query_ids))
    assert data.n_rows == DATA.n_rows
    names = data.query_ids.tolist()
    for k, fold in enumerate(data.folds):
        sides = [[str(names[q]) for q in side] for side in fold[1:]]
        expected = [str(q) for q in DATA.query_ids[k::5]]
        assert sorted(sides[2]) == sorted(expected)
        assert sorted(sides[1]) == sorted(str(q) for q in DATA.query_ids[(k - 1) % 5 :: 5])
        assert sorted([*sides[0], *sides[1], *sides[2]]) == sorted(map(str, names))
    assert type(data.take_queries([0])) is RankingData


def test_published_folds_are_trained_and_tested_as_their_files_are(folders):
    data = read_folds(folders / "folds")
    for validate in (False, True):
        Known.fits = []
        Known.chooses_by_eval_set = validate
        found = cross_validate(Known(), data, "AP", validate=validate)
        for fold, (train, valid) in zip(data.folds, Known.fits, strict=True):
            own = fold.train if validate else np.union1d(fold.train, fold.valid)
            assert train == data.query_ids[own].tolist()
            assert valid == (data.query_ids[fold.valid].tolist() if validate else None)
        for k, fold in enumerate(data.folds):
            assert (found.folds[fold.test] == k).all()
    by_hand = []
    for k in range(1, 6):
        train, vali, test = (
            truerank.read_letor(folders / "folds" / f"Fold{k}" / f"{stem}.txt") for stem in ("train", "vali", "test")
        )
        ranker = RidgeRanker().fit(RankingData.concatenate([train, vali]))
        by_hand += truerank.evaluate(test, ranker, "AP", convention="ranklib").per_query["AP"].tolist()
    values = cross_validate(RidgeRanker(), data, "AP", validate=False).per_query["RidgeRanker"]["AP"]
    assert values == pytest.approx(by_hand)


def test_scores_of_a_cross_validation_are_compared_on_the_collection(folders):
    data = read_folds(folders / "parts")
    found = cross_validate({"ridge": RidgeRanker(), "weak": RidgeRanker(alpha=1e9)}, data, "AP")
    compared = truerank.compare(data, found.scores, "AP", baseline="weak", test="t")
    assert compared.pairs[0].difference == pytest.approx(found.means["ridge"]["AP"] - found.means["weak"]["AP"])
    own = found.compare(baseline="weak", test="t")
    assert own.experiment is not None
    assert (own.pairs[0].p, own.pairs[0].low) == pytest.approx((compared.pairs[0].p, compared.pairs[0].low))


def test_a_number_is_the_splitter_by_query():
    number = cross_validate(RidgeRanker(), DATA, "AP", cv=3, validate=False, random_state=4)
    for cv in (QueryKFold(3, random_state=4), truerank.data.splits.folds_of(DATA, 3, random_state=4)):
        found = cross_validate(RidgeRanker(), DATA, "AP", cv=cv)
        assert found.folds.tolist() == number.folds.tolist()
        assert found.scores["RidgeRanker"].tolist() == number.scores["RidgeRanker"].tolist()
    for cv in (KFold(3), GroupKFold(3)):
        assert sorted(np.bincount(cross_validate(RidgeRanker(), DATA, "AP", cv=cv).folds)) == [10, 10, 10]


def test_a_split_by_time_leaves_the_first_period_untested():
    times = dict(zip(DATA.query_ids.tolist(), np.random.default_rng(0).permutation(30).tolist()))
    Known.fits, Known.uses_eval_set = [], False
    found = cross_validate({"one": Known(), "two": Known(alpha=1e6)}, DATA, "AP", cv=QueryTimeSplit(times, 4))
    when = np.array([times[query] for query in DATA.query_ids.tolist()])
    assert (found.folds == when // 6 - 1).all()
    for k, (train, _) in enumerate(Known.fits[::2]):
        assert max(times[query] for query in train) < 6 * (k + 1)
        assert len(train) == 6 * (k + 1)
    untested = found.folds < 0
    assert np.isnan(found.per_query["one"]["AP"][untested]).all()
    assert not np.isnan(found.per_query["one"]["AP"][~untested]).any()
    assert np.isnan(DATA.grouped(found.scores["one"])[np.repeat(untested, DATA.group_sizes)]).all()
    assert found.means["one"]["AP"] == pytest.approx(np.nanmean(found.per_query["one"]["AP"]))
    assert found.compare().pairs[0].queries == 24
    shuffled = pd.Series(times).sort_index(ascending=False)  # by its index, not by its order
    again = cross_validate(Known(), DATA, "AP", cv=QueryTimeSplit(shuffled, 4))
    assert again.folds.tolist() == found.folds.tolist()
    with refused(InvalidInputError, argument="about"):
        found.compare(about="learners")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=2, max_size=40), st.integers(1, 6))
def test_no_period_trains_on_its_future(times, n_splits):
    splitter = QueryTimeSplit(times, n_splits)
    try:
        splits = list(splitter.split(range(len(times)), groups=range(len(times))))
    except InvalidInputError:
        return
    times, tested = np.array(times), np.zeros(len(times), dtype=int)
    assert len(splits) == n_splits
    for train, test in splits:
        assert len(train)
        assert len(test)
        assert times[train].max() < times[test].min()
        assert set(np.flatnonzero(times < times[test].min())) == set(train)
        tested[test] += 1
    assert tested.max() == 1
    assert (tested[times > times[splits[0][1]].min()] == 1).all()


def test_what_folds_cannot_be(folders, tmp_path):
    with refused(InvalidInputError, argument="cv"):
        cross_validate(RidgeRanker(), DATA, cv=1)
    fold = truerank.Fold("one", np.arange(20), np.arange(0), np.arange(20, 30))
    with refused(InvalidInputError, argument="cv", value=DATA.query_ids[20]):
        cross_validate(RidgeRanker(), DATA, cv=[fold, fold])
    with refused(InvalidInputError, argument="repeats"):
        cross_validate(RidgeRanker(), DATA, cv=QueryKFold(3), repeats=2)
    with refused(InvalidInputError, argument="repeats"):
        cross_validate(RidgeRanker(), read_folds(folders / "parts"), repeats=2)
    with refused(InvalidInputError, argument="time"):
        cross_validate(RidgeRanker(), DATA, cv=QueryTimeSplit({"no": 1}))
    for lacking in (None, np.nan, pd.NaT):
        times = pd.Series(np.arange(30.0), DATA.query_ids.tolist()).astype(object)
        times.iloc[7] = lacking
        with refused(InvalidInputError, code="missing-time"):
            cross_validate(RidgeRanker(), DATA, cv=QueryTimeSplit(times))
    for wrong in (3, np.arange(31), pd.Series({"no": 1})):  # such as the number of splits, or times of rows
        with refused(InvalidInputError, argument="time"):
            cross_validate(RidgeRanker(), DATA, cv=QueryTimeSplit(wrong))
    with refused(InvalidInputError, argument="cv"):
        cross_validate(RidgeRanker(), DATA, cv="time")
    with refused(InvalidInputError, code="too-few-times"):
        cross_validate(RidgeRanker(), DATA, cv=QueryTimeSplit(np.arange(30) % 2, 3))
    with refused(InvalidInputError, code="no-file") as caught:
        read_folds(tmp_path)
    assert "Fold*/{train,vali,test}.txt" in str(caught.value)  # the error describes what a folder of folds has
    for stem, rows in (("train", 5), ("vali", 4), ("test", 3)):
        (tmp_path / "Fold1").mkdir(exist_ok=True)
        (tmp_path / "Fold1" / f"{stem}.txt").write_text("0 qid:1 1:2\n" * rows)
    with refused(InvalidInputError, code="different-rows"):
        read_folds(tmp_path)


def test_a_search_holds_out_the_validation_queries(folders):
    data = read_folds(folders / "folds")
    Known.fits, Known.uses_eval_set = [], False
    found = tune(Known(), data, {"alpha": [1.0]}, measure="AP")
    trained = [train for train, _ in Known.fits]
    assert trained[:5] == [data.query_ids[fold.train].tolist() for fold in data.folds]
    first = data.folds[0]
    assert sorted(trained[5]) == sorted(data.query_ids[np.union1d(first.train, first.valid)].tolist())
    assert len(found.trials[0]["values"]) == 5


@pytest.mark.parametrize("kind", ["folds", "parts"])
def test_commands_accept_the_folder(folders, kind, capsys):
    place = str(folders / kind)
    words = ["--ranker", "ridge", "--against", "random", "--measures", "AP", "--json"]
    assert main(["cross-validate", place, *words]) == 0
    told = json.loads(capsys.readouterr().out)
    data = read_folds(place)
    expected = cross_validate(RidgeRanker(), data, "AP")
    assert told["means"]["ridge"]["AP"] == pytest.approx(expected.means["RidgeRanker"]["AP"])
    assert told["folds"] == 5
    assert main(["compare", "--data", place, "--scores", "bm25", "length_title", "--measures", "AP", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["means"] == pytest.approx(
        truerank.compare(data, {"bm25": "bm25", "length_title": "length_title"}, "AP").means
    )


def test_a_column_is_compared_with_cross_validated_rankers():
    names = list(DATA.feature_names)
    today = names[0]
    systems = {"ridge": RidgeRanker(), "today": today, "upside down": f"{today}:ascending"}
    found = cross_validate(systems, DATA, cv=3, random_state=1)
    column = DATA.restore(DATA.X[:, 0])
    np.testing.assert_array_equal(found.scores["today"], column)
    np.testing.assert_array_equal(found.scores["upside down"], -column)
    assert next(iter(found.measures)) == "nDCG@10"
    alone = truerank.evaluate(DATA, today, "nDCG@10")
    assert found.means["today"]["nDCG@10"] == pytest.approx(alone["nDCG@10"])
    assert found.means["ridge"] == cross_validate({"ridge": RidgeRanker()}, DATA, cv=3, random_state=1).means["ridge"]
    (pair,) = found.compare(baseline="today").pairs[:1]
    assert (pair.a, pair.b) == ("ridge", "today")
    seeded = cross_validate(systems, DATA, cv=3, seeds=[0, 1], random_state=1)
    assert seeded.fits
    with refused(InvalidInputError, code="no-column"):
        cross_validate({"ridge": RidgeRanker(), "today": "yesterday"}, DATA, cv=3)


def test_a_column_alone_is_named_and_a_fitted_model_is_refused(tmp_path):
    today = DATA.feature_names[0]
    found = cross_validate(today, DATA, "AP", cv=3, repeats=2)
    assert list(found.means) == [today]
    folds = [line.split()[0] for line in str(found).splitlines() if line[:1].isdigit()]
    assert folds == ["1", "2", "3"] * 2
    truerank.save_model(truerank.PairwiseDescent(random_state=0).fit(DATA), tmp_path / "m.json")
    for named in (str(tmp_path / "m.json"), {"m": str(tmp_path / "m.json"), "ridge": RidgeRanker()}):
        with refused(InvalidInputError, argument="rankers"):
            cross_validate(named, DATA, cv=3)


def test_what_a_grid_cannot_set_is_refused():
    with refused(InvalidInputError, argument="grid"):
        cross_validate(DATA.feature_names[0], DATA, cv=3, grid={"alpha": [1.0]})
    trees = {"r": truerank.ObliviousBoosting("constant", n_estimators=2), "ridge": RidgeRanker()}
    with refused(InvalidInputError, argument="grid"):
        cross_validate(trees, DATA, cv=3, seeds=[0, 1], grid={"r": {"random_state": [1, 2]}})
    own = {"ridge": RidgeRanker()}
    several = [cross_validate(own, DATA, "AP", cv=3, seeds=[0], random_state=0, grid={"ridge": {"alpha": values}})
               for values in ([1.0, 9.0], (alpha for alpha in (1.0, 9.0)))]  # fmt: skip
    assert several[0].means == several[1].means


def test_scores_of_columns_and_rankers_are_of_the_same_rows():
    """A split by time tests some queries only."""
    times = np.arange(DATA.n_queries)
    systems = {"ridge": RidgeRanker(), "today": DATA.feature_names[0]}
    found = cross_validate(systems, DATA, "AP", cv=QueryTimeSplit(times, 2), validate=False)
    missing = {name: np.isnan(own) for name, own in found.scores.items()}
    assert missing["today"].any()
    np.testing.assert_array_equal(missing["today"], missing["ridge"])
    assert found.compare(baseline="today").pairs


def test_what_a_ranker_is_trained_on_is_stated_without_validation_too(folders):
    for validate in (True, False):
        found = cross_validate({"ridge": RidgeRanker()}, read_folds(folders / "folds"), "AP", validate=validate)
        assert found.trained_on == {"ridge": "training and validation queries of each fold"}


@pytest.mark.parametrize(
    "ranker",
    [RidgeRanker(), RidgeRanker(alpha=[1.0]), truerank.RankSVM(), truerank.PairwiseDescent(random_state=0),
     truerank.PointwiseSVM(), truerank.MeasureSVM("AP"), truerank.ObliviousBoosting("constant", n_estimators=9)],
    ids=lambda ranker: type(ranker).__name__,
)  # fmt: skip
def test_rankers_whose_settings_ignore_validation_queries_train_on_them(ranker):
    """The same bits with and without `eval_set`; with several values or a patience the validation queries are used."""
    train, valid = DATA.take_queries(range(18)), DATA.take_queries(range(18, 24))
    assert not ranker.chooses_by_eval_set
    with_valid, alone = clone(ranker).fit(train, eval_set=valid), clone(ranker).fit(train)
    np.testing.assert_array_equal(with_valid.predict(DATA), alone.predict(DATA))
    assert cross_validate(ranker, DATA, "AP", cv=3).trained_on == {type(ranker).__name__: "2 of 3 folds"}
    several = {"patience": 3} if "patience" in ranker.get_params() else {ranker.chosen_from: [0.5, 2.0]}
    assert clone(ranker).set_params(**several).chooses_by_eval_set


def test_rankers_that_keep_their_best_round_hold_a_fold_back():
    rankers = [truerank.AdaRank(), truerank.RankBoost(), truerank.ListNet(), truerank.MeasureSVM("nDCG@10")]
    assert all(ranker.chooses_by_eval_set for ranker in rankers)


def test_options_that_a_comparison_of_learners_lacks_are_refused():
    found = cross_validate({"ridge": RidgeRanker(), "flat": RidgeRanker(alpha=1e6)}, DATA, "AP", cv=3)
    with refused(InvalidInputError, argument="test"):
        found.compare(about="learners", test="t")


@pytest.mark.parametrize("entry", ["bm25", "bm25:descending"])
def test_a_column_that_is_compared_trains_rankers_only_with_a_word(entry):
    """A remark names it, `exclude` leaves it out of training but not of the comparison, and [] keeps it."""
    rankers = {"ridge": RidgeRanker(), "today": entry}
    with pytest.warns(RemarkWarning) as caught:
        kept = cross_validate(rankers, DATA, "nDCG@10", cv=3)
    (remark,) = [one.message.remark for one in caught if one.message.remark.code == "compared-feature"]
    assert remark.items == ["bm25"]
    assert 'exclude=["bm25"]' in remark.remedy
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stated = cross_validate(rankers, DATA, "nDCG@10", cv=3, exclude=[])
        found = cross_validate(rankers, DATA, "nDCG@10", cv=3, exclude=["bm25"])
        seeded = cross_validate(rankers, DATA, "nDCG@10", cv=3, exclude=["bm25"], seeds=[1, 2])
    names = DATA.feature_names
    own = take_columns(DATA, [k for k, name in enumerate(names) if name != "bm25"])
    alone = cross_validate({"ridge": RidgeRanker()}, own, "nDCG@10", cv=3)
    np.testing.assert_array_equal(stated.scores["ridge"], kept.scores["ridge"])
    np.testing.assert_array_equal(found.scores["ridge"], alone.scores["ridge"])
    np.testing.assert_array_equal(found.scores["today"], kept.scores["today"])
    assert not np.array_equal(found.scores["ridge"], kept.scores["ridge"])
    assert seeded.means["ridge"] == pytest.approx(found.means["ridge"])
    assert found.trained_on["ridge"].endswith("without bm25")
    with refused(InvalidInputError, argument="exclude"):
        cross_validate(rankers, DATA, "nDCG@10", cv=3, exclude=["price_of_gold"])


def test_counts_are_means_over_queries_as_in_comparisons():
    data = truerank.load_sample().take_queries(range(30))
    found = cross_validate({"ridge": RidgeRanker(), "column": SingleFeature()}, data, "NumRet nDCG@5", cv=3)
    mean = data.n_rows / data.n_queries
    assert found.means["ridge"]["NumRet"] == pytest.approx(mean)
    assert found.compare("NumRet").means["ridge"] == pytest.approx(mean)
    seeded = cross_validate(RidgeRanker(), data, "NumRet", cv=3, seeds=[0])
    assert next(iter(seeded.means.values()))["NumRet"] == pytest.approx(mean)
