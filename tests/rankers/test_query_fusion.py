"""Fusion with weights by query: features of queries by their definitions, and where such weights pay."""

import json

import numpy as np
import pytest

from truerank import QueryFusion, RunFusion, RunPool, cross_validate_fusion, load_model, save_model
from truerank.cli import main
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.features.query_features import query_features
from truerank.io.trec import as_qrels, as_run, write_run


def world(m=80, n=25, kinds=True, seed=0):
    """Two runs; with `kinds`, one is good for short queries and the other for long ones."""
    rng = np.random.default_rng(seed)
    runs, qrels, own = {"a": {}, "b": {}}, {}, {}
    for q in map(str, range(m)):
        grades, short = (rng.random(n) < 0.25).astype(int), int(rng.integers(2))
        grades[0] = 1
        names = [f"d{k:02d}" for k in rng.permutation(n)]
        qrels[q], own[q] = dict(zip(names, grades.tolist())), {"short": short}
        for name, good in (("a", short), ("b", 1 - short)):
            noise = (0.5 if good else 4.0) if kinds else 1.0
            runs[name][q] = dict(zip(names, (grades + noise * rng.normal(size=n)).tolist()))
    return runs, as_qrels(qrels), own


def test_features_of_queries_equal_their_definitions():
    runs = {
        "a": {"1": {f"d{k:02d}": float(30 - k) for k in range(21)}, "2": {"x": 1.0}},
        "b": {"1": {f"d{k:02d}": float(k) ** 2 for k in range(5, 17)}},
    }
    values, names = query_features(RunPool(runs))
    found = dict(zip(names, values.T.tolist()))
    assert found["length of a"] == pytest.approx([np.log(22), np.log(2)])
    assert found["gap-1 of a"] == pytest.approx([1 / 20, 0.0])
    assert found["gap-10 of a"] == pytest.approx([0.5, 0.0])
    assert found["gap-5 of b"] == pytest.approx([(16**2 - 11**2) / (16**2 - 5**2), 0.0])
    assert found["spread of a"][0] == pytest.approx(np.std(np.arange(10) / 20))
    assert found["overlap-10 of a, b"] == pytest.approx([3 / 10, 0.0])  # d07, d08, d09
    assert found["overlap-100 of a, b"] == pytest.approx([12 / 100, 0.0])
    part, _ = query_features(RunPool(runs).take([1]))
    assert part[0] == pytest.approx(values[1])


def test_weights_by_query_are_found_where_they_matter():
    runs, qrels, own = world()
    pool = RunPool(runs, qrels, query_features=own)
    fusion = QueryFusion().fit(pool)
    weights, short = fusion.weights_by_query(pool), np.array([one["short"] for one in own.values()])
    assert (weights["a"][short == 1] > weights["b"][short == 1]).mean() > 0.9
    assert (weights["a"][short == 0] < weights["b"][short == 0]).mean() > 0.9
    by_hand = sum(weights[name][q] * scaled(runs[name]["3"])["d07"] for name in runs
                  for q in [pool.query_ids.tolist().index("3")])  # fmt: skip
    row = next(k for k in range(*pool.offsets[[3, 4]]) if pool.doc_ids[k] == "d07")
    assert fusion.pool_scores(pool)[row] == pytest.approx(by_hand, rel=1e-5)
    found = cross_validate_fusion(
        pool, QueryFusion(), others={"one-weight": RunFusion(nonnegative=True)}, measures="AP"
    )
    assert found.better_than("one-weight")


def scaled(own):
    low, high = min(own.values()), max(own.values())
    return {name: (score - low) / (high - low) for name, score in own.items()}


def test_a_model_file_keeps_the_weights(tmp_path):
    runs, qrels, own = world(m=30)
    pool = RunPool(runs, qrels, query_features=own)
    fusion = QueryFusion().fit(pool)
    save_model(fusion, tmp_path / "m.json")
    assert np.array_equal(load_model(tmp_path / "m.json").pool_scores(pool), fusion.pool_scores(pool))
    value = json.loads((tmp_path / "m.json").read_text())
    text = json.dumps(value).replace('"query_names_": ["length of a", ', '"query_names_": [')
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(ModelFileError):
        load_model(tmp_path / "m.json")
    with pytest.raises(InvalidInputError):
        fusion.predict(RunPool(runs, qrels))  # lacks the features of queries
    assert fusion.predict(RunPool(runs, query_features=own)).n_queries == 30


@pytest.mark.parametrize(
    "given", [{"0": {"x": 1.0}}, {"0": {"x": 1.0}, "1": {"x": np.nan}}, {"0": {"x": 1}, "1": {"y": 1}}]
)
def test_features_that_lack_a_query_are_refused(given):
    runs, qrels, _ = world(m=2)
    with pytest.raises(InvalidInputError):
        RunPool(runs, qrels, query_features=given)


@pytest.mark.parametrize("settings", [{"features": "score-bins"}, {"features": "agreement"}])
def test_settings_without_one_column_for_each_run(settings):
    runs, qrels, _ = world(m=10)
    with pytest.raises(InvalidInputError):
        QueryFusion(**settings).fit(runs, qrels)


@pytest.mark.parametrize("kinds", [False, True])
def test_the_command_offers_weights_by_query_only_with_a_gain(tmp_path, capsys, kinds):
    runs, qrels, own = world(kinds=kinds)
    if kinds:  # the kind shows in the lists: bad ones are short
        for q, one in own.items():
            bad = "b" if one["short"] else "a"
            best = sorted(runs[bad][q], key=lambda name: -runs[bad][q][name])
            runs[bad][q] = {name: runs[bad][q][name] for name in best[:15]}
    for name, run in runs.items():
        write_run(as_run(run, name), tmp_path / f"{name}.run")
    (tmp_path / "q").write_text("".join(f"{q} 0 {d} {g}\n" for q, o in qrels.to_dict().items() for d, g in o.items()))
    words = ["fuse", *(str(tmp_path / f"{name}.run") for name in runs), "--qrels", str(tmp_path / "q")]
    assert main([*words, "--by-query", "--model", str(tmp_path / "m.json"), "--measures", "AP"]) == 0
    shown = capsys.readouterr()
    assert type(load_model(tmp_path / "m.json")) is (QueryFusion if kinds else RunFusion)
    assert "one-weight" in shown.out
    assert ("not significantly better" in shown.err) == (not kinds)
    assert main([*words, "--by-query", "--nonnegative"]) == 2
    capsys.readouterr()
