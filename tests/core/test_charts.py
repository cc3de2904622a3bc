"""Charts: each kind of result draws its own figures, files of every kind are written, and the report draws the same."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from tests.support.refusals import refused

import truerank
from truerank.calibration.diagnostics import reliability
from truerank.core.charts import _CHARTS, Chart, by_query
from truerank.core.errors import InvalidInputError
from truerank.core.results import Result
from truerank.rankers.baselines import RandomRanker, RidgeRanker

QRELS = {str(q): {"a": 1, "b": 0, "c": 2} for q in range(8)}
RUNS = {
    name: {q: dict(zip("abc", rng.normal(size=3).tolist())) for q in QRELS}
    for name, rng in ((name, np.random.default_rng(k)) for k, name in enumerate(("old", "new", "third")))
}
PAIR = {name: RUNS[name] for name in ("old", "new")}


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    """A result of each kind that has a chart."""
    data = truerank.load_sample().take_queries(range(30))
    ridge = RidgeRanker().fit(data)
    log = truerank.simulate(data, {"a": data.X[:, 0], "b": data.X[:, 5]}, impressions=3000, random_state=0)
    seen = truerank.Examination(n_draws=20).fit(log)
    rng = np.random.default_rng(0)
    p = rng.random(300)
    crossed = truerank.cross_validate({"ridge": RidgeRanker(), "random": RandomRanker()}, data, "AP", cv=3)
    experiment = truerank.Experiment(QRELS, PAIR, "RR")
    plan = truerank.plan_judgements(PAIR, "DCG@3", budget=20, random_state=0)
    few = data.replaced(X=data.X[:, :3], feature_names=["one", "two", "three"])
    features = RidgeRanker().fit(few)
    rows = {"a": data.X[:, 0], "b": data.X[:, 5]}
    runs = {
        name: {
            q: dict(zip(map(str, data.doc_ids[a:b]), values[a:b]))
            for q, a, b in zip(map(str, data.query_ids), data.offsets, data.offsets[1:])
        }
        for name, values in rows.items()
    }
    return {
        "evaluation": truerank.evaluate(QRELS, RUNS["old"], "RR"),
        "evaluations": truerank.evaluate(QRELS, RUNS, "RR"),
        "comparison": truerank.compare(QRELS, RUNS, "RR AP"),
        "report": experiment.evidence(),
        "power": experiment.power(0.1, n_resamples=50),
        "gate": experiment.gate(0.4),
        "importance": truerank.permutation_importance(features, few, measure="AP", repeats=2),
        "estimate": truerank.estimate(PAIR, "DCG@3", plan=plan, human=QRELS),
        "reliability": reliability(rng.random(300) < p, p, n_resamples=50),
        "learning-curve": truerank.learning_curve(ridge, data, data, train_sizes=[5, 20], draws=2),
        "examination": seen,
        "explanation": truerank.explain(ridge, data, above=0),
        "measure-explanation": truerank.explain_measure(QRELS, RUNS["old"], "AP", query="1"),
        "agreement": truerank.agreement(QRELS, {q: {"a": 1, "b": 1, "c": 2} for q in QRELS}, n_resamples=50),
        "cross-validation": crossed,
        "learner-comparison": crossed.compare(about="learners"),
        "click-values": truerank.evaluate_from_clicks(log, runs, examination=seen),
    }


def drawn(chart: Chart) -> list[dict[str, object]]:
    """All rows of a chart."""
    layers = [chart.spec, *chart.spec.get("layer", ())]
    return [row for one in layers for row in one.get("data", {}).get("values", ())]


def test_every_kind_draws_rows_that_json_holds(results):
    assert set(_CHARTS) - set(results) == {"fusion", "retraining"}  # which draw their comparison
    for kind, result in results.items():
        assert kind == result.KIND
        chart = result.plot()
        assert [row for row in drawn(chart) if row], kind
        text = json.dumps(chart.to_dict(), allow_nan=False)
        assert "page-" not in text, kind
        assert chart.label in text, kind
        assert max(map(len, chart.to_dict()["title"])) <= 64, kind  # lines that the width of the chart holds


def test_the_rows_are_the_figures_of_the_result(results):
    pair = truerank.compare(QRELS, PAIR, "RR")
    rows = drawn(pair.plot())
    values = {row["query"]: row["value"] for row in rows if "query" in row}
    (tested,) = pair.pairs
    assert next(row for row in rows if "mean" in row) == {
        "mean": tested.difference,
        "low": tested.low,
        "high": tested.high,
    }
    expected = pair.per_query["new"] - pair.per_query["old"]
    assert values == dict(zip(QRELS, expected.tolist()))
    assert list(values.values()) == sorted(expected.tolist(), reverse=True)
    several = results["comparison"]["RR"]
    assert [tuple(row.values()) for row in drawn(results["comparison"].plot()) if row] == [
        (one.a, one.difference, one.low, one.high) for one in sorted(several.pairs, key=lambda one: -one.difference)
    ]
    means = {row["name"]: row["value"] for row in drawn(results["evaluations"].plot())}
    assert means == {name: one["RR"] for name, one in results["evaluations"].items()}
    assert list(means.values()) == sorted(means.values(), reverse=True)
    seen = results["examination"]
    assert [row["y"] for row in drawn(seen.plot()) if "y" in row] == pytest.approx(seen.propensities_.tolist())
    estimate = results["estimate"].difference("old", "new")
    (row,) = [row for row in drawn(results["estimate"].plot()) if row]
    assert (row["value"], row["low"], row["high"]) == (estimate.value, estimate.low, estimate.high)


def test_lower_is_better_keeps_the_better_system_on_the_right():
    found = truerank.compare(QRELS, PAIR, "pairs(2,0)")
    assert sum(row["value"] for row in drawn(found.plot()) if "value" in row) == pytest.approx(
        8 * found.pairs[0].difference
    )


def test_files_of_every_kind(tmp_path, results):
    pytest.importorskip("vl_convert")
    chart = results["comparison"].plot()
    heads = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF", "html": b"<!DOCTYPE html>", "json": b"{"}
    for ending, head in heads.items():
        chart.save(tmp_path / f"chart.{ending}")
        assert (tmp_path / f"chart.{ending}").read_bytes().lstrip().lower().startswith(head.lower()), ending
    svg = (tmp_path / "chart.svg").read_text(encoding="utf-8")
    assert "difference in RR" in svg
    assert "#0072b2" in svg
    assert json.loads((tmp_path / "chart.json").read_text()) == chart.to_dict()
    shown = chart._repr_mimebundle_()
    assert shown["image/svg+xml"].startswith("<svg")
    assert shown["application/vnd.vegalite.v5+json"] == chart.to_dict()  # JupyterLab 4.6 draws v3 to v5
    with refused(InvalidInputError, argument="path"):
        chart.save(tmp_path / "chart.gif")
    assert sorted(path.suffix[1:] for path in tmp_path.iterdir()) == sorted(heads)


def test_many_queries_are_an_area_and_missing_values_are_gaps():
    values = np.r_[np.nan, np.arange(2000.0)]
    chart = by_query(range(2001), values, "AP")
    assert chart.spec["mark"]["type"] == "area"
    assert [row["query"] for row in chart.to_dict()["data"]["values"] if row["value"] is None] == ["0"]


def test_a_result_without_a_chart_says_so():
    class Plain(Result):
        KIND = "plain"

    with refused(InvalidInputError, code="no-chart"):
        Plain().plot()


def test_the_report_draws_the_charts_of_the_results(tmp_path):
    pytest.importorskip("vl_convert")
    for runs in (PAIR, RUNS):
        experiment = truerank.Experiment(QRELS, runs, "RR", baseline="old")
        experiment.report(tmp_path / "report.html")
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        specs = [json.loads(text) for text in re.findall(r'class="chart".*?<script[^>]*>(.*?)</script>', page)]
        data = [drawn(Chart(spec, "")) for spec in specs]
        for result in (experiment.compare(), experiment.evaluate()):
            assert json.loads(json.dumps(drawn(result.plot()))) in data
