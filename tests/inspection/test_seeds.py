"""Cross-validation over seeds: the crossed test against loops, what seeds change, resuming, the command."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reference.crossed import crossed
from support.refusals import refused
from truerank import PairwiseDescent, cross_validate, write_letor
from truerank.cli import main
from truerank.core.errors import InvalidInputError
from truerank.data.samples import load_sample
from truerank.data.splits import Fold
from truerank.inspection.seeds import crossed_test
from truerank.rankers.baselines import RidgeRanker


@pytest.mark.parametrize("seed", range(8))
def test_the_test_of_crossed_effects_is_that_of_loops(seed):
    rng = np.random.default_rng(seed)
    s, m = int(rng.integers(3, 8)), int(rng.integers(5, 20))
    d = 0.02 + rng.normal(size=(s, m)) * 0.05 + rng.normal(size=m) * 0.1 + rng.normal(size=(s, 1)) * rng.uniform(0, 0.1)
    mean, half, of_queries, of_seeds, p = crossed(d)
    np.testing.assert_allclose(crossed_test(d), (mean, mean - half, mean + half, of_queries, of_seeds, p), rtol=1e-6)
    assert (p < 0.05) == (abs(mean) > half)


def test_without_seeds_that_matter_it_is_students_test():
    from scipy import stats

    d = np.random.default_rng(0).normal(0.03, 0.1, 40)
    found = crossed_test(np.tile(d, (4, 1)))
    assert found[-1] == pytest.approx(stats.ttest_1samp(d, 0).pvalue)
    assert found[4] == 0.0
    assert crossed_test(np.zeros((3, 5)))[-1] == 1.0
    assert np.isnan(crossed_test(np.full((3, 5), 0.1))[-1])
    strong = crossed_test(np.tile(d + 5.0, (4, 1)))[-1]
    assert 0 < strong < 1e-40


@pytest.fixture(scope="module")
def data():
    return load_sample().take_queries(range(40))


@pytest.fixture(scope="module")
def rankers():
    return {"descent": PairwiseDescent(max_iter=300), "ridge": RidgeRanker()}


def test_seeds_change_the_fits_and_not_the_folds(data, rankers):
    found = cross_validate(rankers, data, "AP nDCG@5", cv=3, seeds=range(4), random_state=1)
    for k, seed in enumerate([0, 1, 2, 3]):
        one = cross_validate({"descent": PairwiseDescent(max_iter=300, random_state=seed)}, data, "AP nDCG@5", cv=3,
                             random_state=1)  # fmt: skip
        np.testing.assert_array_equal(found.values["descent"]["AP"][k], one.per_query["descent"]["AP"])
        assert found.fold_means["descent"]["nDCG@5"][k].tolist() == one.fold_means["descent"]["nDCG@5"]
    assert found.fits == 3 * 4 + 3  # ridge has no seed
    assert found.deviations["ridge"]["AP"] == 0.0
    means = found.values["descent"]["AP"].mean(axis=1)
    assert found.deviations["descent"]["AP"] == pytest.approx(means.std(ddof=1))
    assert means.std() > 0
    assert found.means["descent"]["AP"] == pytest.approx(means.mean())
    assert len(found.to_frame()) == 8
    text = str(found)
    assert "standard deviation of the mean over 4 seeds" in text
    assert "interval over 40 queries" in text


def test_comparisons_name_what_they_include(data, rankers):
    found = cross_validate(rankers, data, "AP", cv=3, seeds=range(4), random_state=1)
    (pair,) = found.compare(baseline="ridge").pairs
    assert (pair.a, pair.b) == ("descent", "ridge")
    d = found.values["descent"]["AP"] - found.values["ridge"]["AP"]
    assert pair.difference == pytest.approx(d.mean())
    assert pair.p == pytest.approx(crossed(d)[-1], rel=1e-6)
    learners = found.compare(about="learners")
    assert learners.folds == 3
    assert learners.pairs[0].difference == pytest.approx(np.mean(found.fold_means["descent"]["AP"]) - np.mean(
        found.fold_means["ridge"]["AP"]))  # fmt: skip
    two = cross_validate(rankers, data, "AP", cv=3, seeds=[5, 6], random_state=1)
    with refused(InvalidInputError, argument="seeds"):
        two.compare()
    with refused(InvalidInputError, argument="seeds"):
        cross_validate(rankers, data, "AP", cv=3, seeds=[1, 1])


def test_a_killed_run_resumes_with_equal_results(data, rankers, tmp_path, monkeypatch):
    whole = cross_validate(rankers, data, "AP", cv=3, seeds=range(3), random_state=1)
    state, fits = tmp_path / "fits.jsonl", []
    fit = PairwiseDescent.fit

    def killed(self, *args, **settings):
        fits.append(self.random_state)
        if len(fits) == 5:
            raise KeyboardInterrupt
        return fit(self, *args, **settings)

    monkeypatch.setattr(PairwiseDescent, "fit", killed)
    settings = {"cv": 3, "seeds": range(3), "random_state": 1, "state": state}
    with pytest.raises(KeyboardInterrupt):
        cross_validate(rankers, data, "AP", **settings)
    again = cross_validate(rankers, data, "AP", **settings)
    assert fits == [0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2]
    assert again.to_dict() == whole.to_dict()
    fits.clear()
    assert cross_validate(rankers, data, "AP", **settings).to_dict() == whole.to_dict()
    assert fits == []
    with refused(InvalidInputError, code="other-fits"):
        cross_validate({"descent": PairwiseDescent(max_iter=301)}, data, "AP", **settings)
    with refused(InvalidInputError, code="other-fits"):
        cross_validate(rankers, data.take_queries(range(39)), "AP", **settings)


def test_a_pipeline_gets_the_seed_of_its_parts(data):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    found = cross_validate({"net": make_pipeline(StandardScaler(), PairwiseDescent(max_iter=99))}, data, "AP", cv=3,
                           seeds=[0, 1])  # fmt: skip
    assert found.fits == 6
    assert (found.values["net"]["AP"][0] != found.values["net"]["AP"][1]).any()


def test_the_command(tmp_path, capsys):
    assert main(["sample", str(tmp_path)]) == 0
    capsys.readouterr()
    command = [
        "cross-validate",
        str(tmp_path / "train.parquet"),
        "--ranker",
        "pairwise-descent",
        "--set",
        "max_iter=200",
    ]
    command += ["--seeds", "0-2", "--cv", "3", "--measures", "AP", "--against", "ridge", "--json"]
    assert main(command) == 0
    out = capsys.readouterr()
    printed = json.loads(out.out)
    assert printed["comparison"]["schema"] == "seed-comparison/1"
    assert printed["comparison"]["seeds"] == 3
    assert "CPU seconds" in out.err
    assert main([*command, "--state", str(tmp_path / "s.jsonl")]) == 0
    assert json.loads(capsys.readouterr().out) == printed
    assert main([*command[:-3], "--state", str(tmp_path / "t.jsonl")]) == 0
    assert "±" in capsys.readouterr().out
    assert main(["cross-validate", str(tmp_path / "train.parquet"), "--seeds", "a"]) == 2


def test_published_folds_of_a_folder(tmp_path, capsys):
    for k in range(5):
        part = load_sample().take_queries(range(12 * k, 12 * k + 12))
        write_letor(part, tmp_path / f"S{k + 1}.txt")
    command = ["cross-validate", str(tmp_path), "--ranker", "pairwise-descent", "--set", "max_iter=200", "--json"]
    assert main([*command, "--seeds", "3,5-6", "--measures", "AP"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["seeds"], printed["folds"], printed["queries"]) == ([3, 5, 6], 5, 60)
    part = load_sample().take_queries(range(60))
    some = [Fold("1", np.arange(30), np.zeros(0, int), np.arange(30, 45))]
    found = cross_validate({"a": PairwiseDescent(max_iter=99), "b": RidgeRanker()}, part, "AP", cv=some, seeds=range(3))
    d = found.values["a"]["AP"] - found.values["b"]["AP"]
    assert found.n_queries == 15
    assert found.compare(baseline="b").pairs[0].difference == pytest.approx(d[:, 30:45].mean())
    with refused(InvalidInputError, argument="about"):
        found.compare(about="learners")


def test_one_seed_has_no_deviation(data, rankers):
    found = cross_validate(rankers, data, "AP", cv=3, seeds=[3], random_state=1)
    assert np.isnan(found.deviations["ridge"]["AP"])
    assert "standard deviation" not in str(found)
    assert "±" not in str(found)


def test_a_number_of_seeds_is_answered_with_what_to_write():
    with refused(InvalidInputError, argument="seeds", value=3, expected="a sequence of whole numbers"):
        cross_validate({"ridge": RidgeRanker()}, load_sample().take_queries(range(6)), "AP", cv=3, seeds=3)


def test_the_papers_table_has_learners_and_seeds(data, rankers):
    found = cross_validate(rankers, data, "AP nDCG@5", cv=3, seeds=range(4), random_state=1)
    text, (learner, base) = found.to_latex(["seeds", "intervals"], baseline="ridge"), found.values
    assert base == "ridge"
    rows = [line.removesuffix(r" \\").split(" & ") for line in text.splitlines() if line.endswith(r"\\")]
    for measure in ("AP", "nDCG@5"):
        values, mean = found.values[learner][measure].mean(axis=1), found.means[learner][measure]
        own = next(row for row in rows if row[0] == learner and f"{mean:.4f}" in row[1])
        assert f"{values.std(ddof=1):.4f}" in own[2]
        (pair,) = found.compare(measure, baseline="ridge").pairs
        assert own[3].replace("$", "") == f"[{pair.low:+.4f}, {pair.high:+.4f}]"
        assert ("superscript" in own[2]) == (pair.p_adjusted < 0.05)
        place = rows.index(own)
        assert [row[:2] for row in rows[place + 1 : place + 5]] == [
            [rf"\quad seed {k}", f"{value:.4f}"] for k, value in enumerate(values)
        ]
    assert "seed 1" not in found.to_latex(about="learners")
    assert "quad" not in cross_validate(rankers, data, "AP", cv=3, seeds=[1], random_state=1).to_latex()
    with refused(InvalidInputError, argument="show"):
        found.to_latex(["effects"])
