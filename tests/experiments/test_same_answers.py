"""The same question through Python, the command line and the report has the same answer."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest

import truerank
from support.refusals import refused
from truerank import Experiment
from truerank.cli import command_parser, main
from truerank.core.errors import InvalidInputError
from truerank.data.provenance import TRAINING_QUERIES
from truerank.significance.comparison import CORRECTIONS
from truerank.significance.paired import TESTS

pandas = pytest.importorskip("pandas")
TOPICS, DEPTH = 30, 8


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Qrels with runs, and a table with columns, a file of scores and a model that was trained on a third of it."""
    folder = tmp_path_factory.mktemp("same")
    rng = np.random.default_rng(7)
    rows = TOPICS * DEPTH
    signal = rng.normal(size=rows)
    frame = pandas.DataFrame({
        "qid": [f"q{k // DEPTH}" for k in range(rows)], "docid": [f"d{k}" for k in range(rows)],
        "y": np.clip(np.round(signal + rng.normal(size=rows)), 0, 3), "a": signal + rng.normal(size=rows),
        "b": signal + 2 * rng.normal(size=rows), "c": rng.normal(size=rows), "d": signal, "e": rng.normal(size=rows),
    })  # fmt: skip
    frame["position"] = frame.groupby("qid").a.rank(ascending=False).astype(int)
    frame["points"] = DEPTH + 1 - frame.groupby("qid").b.rank(ascending=False).astype(int)
    frame.to_csv(folder / "data.csv", index=False)
    np.savetxt(folder / "s.txt", frame.b + frame.c)
    columns = [*"abcde"]
    third = frame[frame.qid.isin([f"q{k}" for k in range(TOPICS // 3)])]
    model = truerank.RidgeRanker().fit(third[columns], third.y, qid=third.qid)
    truerank.save_model(model, folder / "model.json")
    judged = frame.assign(kept=rng.random(rows) < 0.9)
    lines = judged[judged.kept].apply(lambda row: f"{row.qid} 0 {row.docid} {int(row.y)}\n", axis=1)
    (folder / "qrels.txt").write_text("".join(lines))

    def write(name, scores, queries=None, strange=False):
        run: dict[str, dict[str, float]] = {}
        for query, document, score in zip(frame.qid, frame.docid, scores):
            if queries is None or query in queries:
                known = not strange or rng.random() < 0.4
                run.setdefault(query, {})[document if known else f"x{document}"] = float(score)
        truerank.write_run(run, folder / f"{name}.run", tag=name)

    write("whole", frame.a)
    write("other", frame.b)
    write("third", frame.c + 0.2 * signal)
    write("part", frame.b, {f"q{k}" for k in range(20)})
    write("tied", np.round(frame.a))
    write("strange", frame.b, strange=True)
    return folder


RUNS, ROWS = "qrels.txt", "data.csv"
SYSTEMS = {  # judgements, systems by name, options
    "runs": (RUNS, {"whole": "whole.run", "other": "other.run"}, {}),
    "three runs": (RUNS, {"other": "other.run", "whole": "whole.run", "third": "third.run"}, {}),
    "common topics": (RUNS, {"whole": "whole.run", "part": "part.run"}, {"topics": "common"}),
    "all topics": (RUNS, {"part": "part.run", "whole": "whole.run"}, {"topics": "all"}),
    "ties": (RUNS, {"tied": "tied.run", "whole": "whole.run"}, {}),
    "unequal judging": (RUNS, {"whole": "whole.run", "strange": "strange.run"}, {}),
    "columns": (ROWS, {"a": "a", "b": "b"}, {}),
    "ranks": (ROWS, {"b": "b", "-position": "-position"}, {}),
    "points": (ROWS, {"a": "a", "points:descending": "points:descending"}, {}),
    "a file": (ROWS, {"s": "s.txt", "a": "a"}, {"convention": "trec"}),
    "a model": (ROWS, {"model": "model.json", "a": "a"}, {}),
    "a model and its queries": (ROWS, {"model": "model.json", "a": "a"}, {"training_queries": "keep"}),
}
ASKS = {  # measures, arguments in Python, arguments of the command
    "evaluate": ("AP nDCG@10 GMAP RR(rel=2)", {}, []),
    "compare": ("nDCG@10", {}, []),
    "compare two measures": ("AP nDCG@10", {"test": "t", "correction": "holm", "margin": 0.05}, [
        "--test", "t", "--correction", "holm", "--margin", "0.05"]),
    "compare all pairs": ("P@5", {"pairs": "all", "random_state": 3}, ["--all-pairs", "--seed", "3"]),
    "power": ("AP", {"effect": 0.03, "at": [40]}, ["--effect", "0.03", "--queries", "40"]),
}  # fmt: skip


def words_of(systems):
    judgements, named, options = systems
    words = [f"--{'qrels' if judgements == RUNS else 'data'}", judgements]
    for one in named.values():
        words.append(one if one.endswith((".run", ".json")) else f"--scores={one}")
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}", value.replace(" ", "-")]
    return words


def told(capsys, *words):
    code = main([*words, "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return json.loads(captured.out)


def as_json(result, **settings):
    return json.loads(json.dumps(result.to_dict(**settings), allow_nan=False))


QUESTIONS = [(systems, ask) for systems in SYSTEMS for ask in ASKS if (systems, ask) != ("three runs", "power")]


@pytest.mark.parametrize(("systems", "ask"), QUESTIONS)
def test_python_and_the_command_line_agree(systems, ask, files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    judgements, named, options = SYSTEMS[systems]
    measures, settings, words = ASKS[ask]
    if judgements == ROWS:
        judgements = truerank.read_table(ROWS)
    if ask == "evaluate":
        named = dict([next(iter(named.items()))])
        found = Experiment(judgements, named, measures, **options).evaluate()
        report = told(capsys, "evaluate", *words_of((SYSTEMS[systems][0], named, options)), "--measures", measures,
                      "--per-query")  # fmt: skip
        expected = as_json(next(iter(found.values())), per_query=True)
    else:
        experiment = Experiment(judgements, named, measures, **options)
        command = ask.partition(" ")[0]
        found = getattr(experiment, command)(**settings)
        report = told(capsys, command, *words_of(SYSTEMS[systems]), "--measure", measures, *words)
        expected = as_json(found)
    for remark in (*report["remarks"], *expected["remarks"]):
        remark.pop("in", None)  # a file, or an object in memory
    assert report == expected
    assert report["schema"].endswith("/1")


@pytest.mark.parametrize("systems", SYSTEMS)
def test_the_report_has_the_figures_of_the_commands(systems, files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    judgements, named, options = SYSTEMS[systems]
    words = words_of(SYSTEMS[systems])
    report = told(capsys, "report", *words, "--measures", "nDCG@10 AP")
    compared = told(capsys, "compare", *words, "--measures", "nDCG@10 AP")
    for measure, one in compared["measures"].items():
        assert report["comparison"][measure] == one
    for key in ("training_queries", "remarks"):
        assert report[key] == compared[key]
    assert report.get("coverage") == compared.get("coverage")
    assert report["summary"] == told(capsys, "report", *words, "--measures", "nDCG@10 AP")["summary"]
    judgements = truerank.read_table(ROWS) if judgements == ROWS else judgements
    experiment = Experiment(judgements, named, "nDCG@10 AP", **options)
    assert report["summary"] == experiment.evidence().summary
    assert main(["report", *words, "--measures", "nDCG@10 AP", "--format", "markdown", "-o", "-"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"**{report['summary']}**")
    for name, one in report["systems"].items():
        assert one["measures"]["AP"]["mean"] == compared["measures"]["AP"]["means"][name]
        assert f"| {name} | {one['measures']['nDCG@10']['mean']:.4f} |" in shown


def test_the_page_has_the_summary_of_the_comparison(files, monkeypatch, capsys):
    pytest.importorskip("vl_convert")
    monkeypatch.chdir(files)
    for systems in ("runs", "a model", "a model and its queries", "unequal judging"):
        words = words_of(SYSTEMS[systems])
        report = told(capsys, "report", *words)
        assert main(["report", *words, "-o", "page.html"]) == 0
        capsys.readouterr()
        assert f'<p class="headline">{report["summary"]}</p>' in (files / "page.html").read_text()


def test_objects_in_memory_have_the_answers_of_files(files, monkeypatch):
    monkeypatch.chdir(files)
    data, model = truerank.read_table(ROWS), truerank.load_model("model.json")
    column = data.restore(data.X[:, data.feature_names.index("a")])
    of_files = Experiment(data, {"model": "model.json", "a": "a"}).compare()
    in_memory = Experiment(data, {"model": model, "a": column}).compare()
    assert in_memory.means == of_files.means
    assert in_memory.pairs == of_files.pairs
    frame = pandas.read_csv(ROWS)
    assert Experiment(frame, {"model": model, "a": "a"}).compare().means == of_files.means
    qrels, runs = truerank.read_qrels(RUNS), {name: truerank.read_run(f"{name}.run") for name in ("whole", "part")}
    expected = Experiment(RUNS, ["whole.run", "part.run"], "AP", topics="common").compare()
    as_dicts = {name: run.to_dict() for name, run in runs.items()}
    for judgements in (qrels, qrels.to_dict()):
        for systems in (runs, as_dicts):
            assert Experiment(judgements, systems, "AP", topics="common").compare().pairs == expected.pairs


REFUSED = {
    "training queries": (ROWS, {"model": "model.json", "a": "a"}, {"training_queries": "refuse"}, "nDCG@10"),
    "unstated ranks": (ROWS, {"a": "a", "position": "position"}, {}, "nDCG@10"),
    "topics without a choice": (RUNS, {"whole": "whole.run", "part": "part.run"}, {}, "nDCG@10"),
    "a geometric mean": (RUNS, {"whole": "whole.run", "other": "other.run"}, {}, "GMAP"),
    "an unknown column": (ROWS, {"a": "a", "z": "z"}, {}, "nDCG@10"),
    "an unknown measure": (RUNS, {"whole": "whole.run", "other": "other.run"}, {}, "APP"),
}


@pytest.mark.parametrize("question", REFUSED)
@pytest.mark.parametrize("command", ["compare", "power", "report"])
def test_what_is_refused_is_refused_everywhere(question, command, files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    judgements, named, options, measures = REFUSED[question]
    asked = "--measures" if command == "report" else "--measure"
    assert main([command, *words_of(REFUSED[question][:3]), asked, measures]) == 1
    told_there = capsys.readouterr().err
    data = truerank.read_table(ROWS) if judgements == ROWS else judgements
    with pytest.raises(InvalidInputError) as raised:
        getattr(Experiment(data, named, measures, **options), "evidence" if command == "report" else command)()
    assert str(raised.value)[:40] in told_there


def test_what_is_left_out_is_left_out_and_said(files, monkeypatch, capsys):
    """The figures are those of the other queries alone, and a remark names the model."""
    monkeypatch.chdir(files)
    data, model = truerank.read_table(ROWS, features=[*"abcde"]), truerank.load_model("model.json")
    left = Experiment(data, {"model": model, "a": "a"}, "nDCG@10 AP")
    fresh = data.take_queries(np.arange(TOPICS // 3, TOPICS))
    values = {"model": model.predict(fresh), "a": fresh.restore(fresh.X[:, fresh.feature_names.index("a")])}
    alone = Experiment(fresh, values, "nDCG@10 AP")
    for name in ("model", "a"):
        assert dict(left.evaluate()[name]) == dict(alone.evaluate()[name])
    assert left.compare()["AP"].pairs == alone.compare()["AP"].pairs
    assert [one.code for one in left.remarks] == ["training-queries-left-out"]
    assert left.remarks[0].items == ["model"]
    assert left.rows.n_queries == fresh.n_queries
    assert truerank.evaluate(data, model, "AP")["AP"] == alone.evaluate()["model"]["AP"]
    kept = Experiment(data, {"model": model, "a": "a"}, training_queries="keep")
    assert [(one.code, one.severity) for one in kept.remarks] == [("training-queries-kept", "forbids a verdict")]
    for result in (kept.compare(), kept.evidence(), kept.evaluate()["model"]):
        assert result.summary.startswith("No verdict")
        assert "model" in result.summary


def test_every_rule_speaks_in_python(files, monkeypatch):
    monkeypatch.chdir(files)
    frame = pandas.read_csv(ROWS)
    frame.loc[0, "y"], frame.loc[1, "docid"] = 100, "d0"
    data = truerank.read_table(frame)
    found = Experiment(data, {"a": "a", "position": "position"})
    codes = {one.code for one in found.evaluate().remarks}
    assert codes >= {"huge-grade", "duplicate-document", "conflicting-documents", "ranks-as-scores"}
    assert not codes & {"rank-feature", "counting-feature"}  # no model reads features
    of_runs = Experiment(RUNS, {"whole": "whole.run", "part": "part.run"}, "P@5", topics="all")
    assert [(one.code, one.items) for one in of_runs.remarks] == [("missing-topics", ["part"])]
    assert of_runs.coverage.to_dict() == {"topics": "all", "qrels": 30, "runs": {"whole": 30, "part": 20}, "used": 30}
    judged = Experiment(RUNS, {"whole": "whole.run", "strange": "strange.run"}, "P@5").compare()
    assert [one.code for one in judged.remarks] == ["unjudged-documents"]
    assert judged.summary.startswith("No verdict on strange and whole")
    assert judged.to_dict()["unjudged"][0]["low"] < 0 < judged.to_dict()["unjudged"][0]["high"]


def test_a_mean_over_fewer_topics_names_them():
    found = truerank.evaluate({"1": {"a": 1}, "2": {"b": 1}, "3": {"c": 1}}, {"1": {"a": 1.0}}, "AP")
    assert "1 of the 3 topics" in str(found)
    assert [one.code for one in found.remarks] == ["missing-topics"]


def test_options_are_arguments_of_the_same_names_and_defaults():
    """Apart from those that files need; `--all-pairs` is pairs="all", and `--seed` is random_state."""
    options = {action.dest: action for action in command_parser("compare")[1]._actions}
    arguments = inspect.signature(truerank.compare).parameters
    named = {"random_state": "seed", "measures": "measure"}
    for name, argument in list(arguments.items())[2:]:
        if name in ("qid", "doc_ids", "pairs"):
            continue
        option = options[named.get(name, name)]
        given = option.default
        given = given[0] if isinstance(given, list) else given
        assert given == argument.default or (given is None and name == "training_queries"), name
        if option.choices is not None and name == "training_queries":
            assert {choice.replace("-", " ") for choice in option.choices} == set(TRAINING_QUERIES)
    for name in ("test", "correction"):
        allowed = {"test": TESTS, "correction": CORRECTIONS}[name]
        assert set(options[name].choices) == set(allowed)


@pytest.mark.parametrize(("judgements", "file"), [(RUNS, "other.run"), (ROWS, "s.txt"), (ROWS, "model.json")])
def test_systems_have_the_same_names(judgements, file, files, tmp_path, monkeypatch, capsys):
    """The names of their files, or their paths where two files have one name."""
    monkeypatch.chdir(tmp_path)
    for place in (judgements, f"one/{file}", f"two/{file}", f"one/x.{file.partition('.')[2]}"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_bytes((files / (judgements if place == judgements else file)).read_bytes())
    options = {"training_queries": "keep"} if file == "model.json" else {}
    read = RUNS if judgements == RUNS else truerank.read_table(ROWS)
    for systems in ([f"one/{file}", f"two/{file}"], [f"two/{file}", f"one/x.{file.partition('.')[2]}"]):
        report = told(capsys, "compare", *words_of((judgements, dict(enumerate(systems)), options)))
        found = truerank.compare(read, systems, **options)
        assert list(found.means) == list(report["means"])
        own = [file.partition(".")[0], "x"]
        assert list(found.means) == (systems if systems[1].startswith("two") else own)
    with refused(InvalidInputError, code="same-name"):
        truerank.compare(read, [systems[0]] * 2)
