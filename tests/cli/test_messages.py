"""What commands say when they refuse: options that they name exist, and `--json` prints one object then too."""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import truerank
from truerank.cli import COMMANDS, command_parser, main
from truerank.cli.parser import OPTION_NAMES, OptionWording
from truerank.core.errors import InvalidInputError, Remedy
from truerank.models.model_file import save_model
from truerank.rankers.baselines import RidgeRanker

SOURCE = Path(truerank.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*+(?!\{)")
OF_PYTHON = re.compile(r"\b(?:[Pp]ass|[Aa]dd) \w+=")
OF_ANOTHER = re.compile(r"`?truerank ((?:text )?[a-z-]+)[^`;]*?$")


def options_of(command: str) -> set[str]:
    return _options(command_parser(command)[1]) | {"--help", "--version"}


def _options(parser: argparse.ArgumentParser) -> set[str]:
    found = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found = found.union(*map(_options, action.choices.values()))
    return found


def texts(tree: ast.AST) -> list[str]:
    """Strings of a piece of code that are no documentation; an f-string's parts as one, values as {}."""
    skipped: set[int] = set()
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            skipped.add(id(node.body[0].value))  # type: ignore[attr-defined]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            found.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            found.append(node.value)
    return found


def named(text: str, own: str) -> list[tuple[str, str]]:
    """(command, option) for each option that a text names; that of `truerank OTHER …` belongs to the other."""
    found = []
    for match in OPTION.finditer(text):
        other = OF_ANOTHER.search(text[: match.start()])
        command = other.group(1) if other and other.group(1) in COMMANDS else own
        found.append((command, match.group(0)))
    return found


@pytest.fixture(scope="module")
def options() -> dict[str, set[str]]:
    return {command: options_of(command) for command in COMMANDS}


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "completion"])
def test_a_command_names_options_that_exist(command, options):
    module = SOURCE / "cli" / f"{COMMANDS[command][0].rpartition('.')[2]}.py"
    wrong = [
        (of, option, text)
        for text in texts(ast.parse(module.read_text(encoding="utf-8")))
        for of, option in named(text, command)
        if option not in options[of]
    ]
    assert not wrong


def test_what_commands_share_names_options_that_all_of_them_have(options):
    shared = {
        node.name: node
        for node in ast.parse((SOURCE / "cli" / "common.py").read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("add_")
    }
    wrong = []
    for command, (module, _) in COMMANDS.items():
        code = (SOURCE / "cli" / f"{module.rpartition('.')[2]}.py").read_text(encoding="utf-8")
        for name, function in shared.items():
            if re.search(rf"\bcommon\.{name}\(", code):
                for text in texts(function):
                    wrong += [(command, name, o) for of, o in named(text, command) if o not in options[of]]
    # Said only where the option was given: the value of an option that is not there is None.
    only_if_given = {"--max-line", "--n-features", "--prepare", "--out-of-core", "--features", "--exclude"}
    assert not [found for found in wrong if found[2] not in only_if_given]


def test_only_the_command_line_names_options():
    files = [path for path in SOURCE.rglob("*.py") if "cli" not in path.relative_to(SOURCE).parts]
    assert not [(path.name, found) for path in files if (found := OPTION.findall(path.read_text(encoding="utf-8")))]


def test_every_argument_of_a_remedy_is_an_option_or_an_argument_of_a_public_function(options):
    known = {word for command in options.values() for word in command}
    public = [getattr(truerank, name) for name in truerank.__all__]
    functions = [own for cls in public if isinstance(cls, type) for own in vars(cls).values() if callable(own)]
    arguments = {name for one in [*public, *functions] if callable(one) for name in parameters_of(one)}
    arguments |= {name for cls in public if isinstance(cls, type) for name in parameters_of(cls)}
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Remedy":
                found |= {own.arg for own in node.keywords if own.arg is not None}
    spelled = {name for name in found if f"--{OPTION_NAMES.get(name, name).replace('_', '-')}" in known}
    assert len(spelled) > 20
    assert found - spelled <= arguments


def parameters_of(function: object) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return []


def test_options_that_a_command_lacks_are_left_out():
    error = InvalidInputError("the line is long", remedies=[Remedy(max_line=2), Remedy("for wide data", sparse=True)])
    assert str(error) == "the line is long. Pass max_line=2, or pass sparse=True for wide data"
    assert error.worded(OptionWording({"--sparse": ""})) == "the line is long. Add --sparse for wide data"
    assert error.worded(OptionWording({})) == "the line is long"


def test_bad_documents_of_classify_can_be_skipped_as_its_message_says(tmp_path, capsys):
    lines = [json.dumps({"id": f"d{i}", "text": f"word{i % 2} again", "label": "ab"[i % 2]}) for i in range(20)]
    (tmp_path / "d.jsonl").write_text("\n".join([*lines, lines[0]]) + "\n")
    words = ["text", "classify", "--train", str(tmp_path / "d.jsonl"), "--model", str(tmp_path / "m.json")]
    words += ["--method", "platt", "--classifier", "naive-bayes"]
    assert main(words) == 1
    assert "--bad skip" in capsys.readouterr().err
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # else an error before it is printed
        assert main([*words, "--bad", "skip"]) == 0
    assert "left out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["export", "none.json", "--to", "solr", "-o", "x", "--json"], 1),
        (["evaluate", "--json"], 2),
        (["evaluate", "--json", "--no-such-option"], 2),
        (["describe", "none.txt", "--json"], 1),
        (["train", "none.txt", "--ranker", "ridge", "--model", "none.txt", "--json"], 1),
    ],
)
def test_json_prints_one_object_when_a_command_refuses(words, code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ended = main(words)
    out, err = capsys.readouterr()
    assert ended == code
    report = json.loads(out)
    assert report["exit_code"] == code
    assert report["error"] in err


def test_json_of_an_error_that_is_not_ours(tmp_path, monkeypatch, capsys):
    from truerank.cli import sample

    monkeypatch.setattr(sample, "run", lambda args: 1 // 0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["sample", "x", "--json"]) == 70
    assert json.loads(capsys.readouterr().out)["exit_code"] == 70


def test_every_command_with_figures_has_json(options):
    without = {command for command in COMMANDS if "--json" not in options[command]}
    assert without == {"predict", "convert", "text search", "text links", "completion", "trec-eval"}


@pytest.fixture
def careless(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {
        "a.run": "1 Q0 x 1 2 a\n1 Q0 y 2 1 a\n", "other.run": "zz Q0 x 1 2 o\n", "qrels": "1 0 x 1\n1 0 y 0\n",
        "d.jsonl": '{"id": "x", "text": "heat"}\n{"id": "y", "text": "flow"}\n',
        "q.jsonl": '{"id": 1, "text": "heat"}\n',
        "edges": "p q\n", "file": "", "own.json": '{"format": "truerank-model", "version": 1, "model": {}}',
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert main(["text", "index", "d.jsonl", "-o", "index"]) == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("compare --qrels qrels a.run other.run", 1, "run 'other' has no topic of the qrels"),
        ("import own.json -o m.json", 1, "the file is a model of truerank"),
        ("text links edges --index index --queries q.jsonl -o runs", 1, "no link connects documents of index"),
        ("text links edges --index index --queries q.jsonl -o runs --depth 0", 2, "--depth: must be a whole number"),
        ("text links edges --index index --queries q.jsonl -o file", 2, "file is a file"),
        ("text pipeline --documents d.jsonl --queries q.jsonl --qrels qrels --ranker ridge --out p --depth 0",
         2, "--depth"),
        ("text pipeline --documents d.jsonl --queries q.jsonl --qrels qrels --ranker ridge --out file", 2, "is a file"),
        ("text pipeline --documents d.jsonl --queries q.jsonl --qrels qrels --ranker ridge --out p --cv 2",
         2, "got 2"),
        ("text search index no-such-queries --tag a\u00a0b -o runs", 2, "--tag: must be one word"),
        ("text search no-such-index q.jsonl --threads -7 -o runs", 2, "--threads: must be a whole number"),
        ("text search no-such-index q.jsonl --depth 0 -o runs", 2, "--depth: must be a whole number"),
        ("tune no-such-data --ranker ridge --state no/such/x --model m.json", 1, "no/such does not exist. Create it"),
    ],
)  # fmt: skip
def test_careless_input_is_refused_before_the_work(words, code, said, careless, capsys, tmp_path):
    assert main(words.split(" ")) == code
    assert said in capsys.readouterr().err
    assert not any((tmp_path / name).exists() for name in ("m.json", "runs", "p"))


@pytest.mark.parametrize(
    "words",
    [
        "features --engine http://127.0.0.1:9 --features latin.json --queries q --qrels r -o o.csv",
        "export ridge.json --to painless --feature-names latin.json -o x",
        "deploy --verify-only ridge.json --engine http://127.0.0.1:9 --name n --queries q --requests latin.json",
    ],
)
def test_a_small_file_that_is_not_utf_8_is_named_with_its_line(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    Path("latin.json").write_bytes(b"{}\n\xfcber\n")
    Path("q").write_text('{"id": "1", "text": "a"}\n')
    Path("r").write_text("".join(f"{topic} 0 a 1\n{topic} 0 b 0\n" for topic in range(6)))
    for name in "ab":
        Path(f"{name}.run").write_text("".join(f"{topic} Q0 a 1 2 t\n{topic} Q0 b 2 1 t\n" for topic in range(6)))
    save_model(RidgeRanker().fit([[0.0], [1.0]], [0, 1]), "ridge.json")
    assert main(words.split()) == 1
    assert "latin.json, line 2: byte 0xFC is not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["text", "features", "--runs", "a", "--depth", "3"], "--depth"),
        (["text", "features", "--runs", "a", "--missing", "nan", "--margin", "1"], "--margin"),
        (["text", "features", "--index", "i", "--queries", "q", "--missing", "nan"], "--missing"),
        (["text", "links", "edges", "--alpha", "0.5"], "--alpha"),
        (["text", "links", "edges", "--index", "i", "--queries", "q", "-o", "runs", "--damping", "0.5"], "--damping"),
        (["deploy", "m", "--engine", "http://127.0.0.1:1", "--name", "n", "--feature-set", "f"], "--feature-set"),
        (["deploy", "m", "--engine", "http://127.0.0.1:1/solr/c", "--name", "n", "--params", "p"], "--params"),
        (["decide", "c", "--top", "3", "--cost-fp", "2"], "--cost-fp"),
        (["decide", "c", "--top", "3", "--cost-fp", "0"], "--cost-fp"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(words, option, capsys):
    assert main(words) == 2
    assert f"{' '.join(words[: 2 if words[0] == 'text' else 1])}: {option} " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("describe d.txt --query-column q", "--query-column is for tables, and d.txt is LETOR text"),
        ("describe d.jsonl --query-column q", "--query-column is for tables, and d.jsonl is JSON"),
        ("describe - --document-column q", "--document-column is for tables, and - is LETOR text"),
        ("describe t.csv --sparse", "--sparse is for LETOR text, and t.csv is a table"),
        ("describe t.csv --n-features 3", "--n-features is for LETOR text, and t.csv is a table"),
        ("describe d.txt --categorical f1", "--categorical names columns of tables"),
        ("train d.txt --ranker ridge --model m --grade-column g", "--grade-column is for tables"),
        ("train d.txt --ranker ridge --model -", "--model cannot write to standard output"),
        ("tune d.txt --ranker ridge --model -", "--model cannot write to standard output"),
        ("tune d.txt --ranker ridge --model m --state -", "--state cannot write to standard output"),
        ("tune . --ranker ridge --model m --cv 3", "--cv divides one file into folds, and . is a folder"),
        ("cross-validate . --ranker ridge --cv 3", "--cv divides one file into folds, and . is a folder"),
        ("cross-validate d.txt --ranker ridge --select RR", "--select chooses among several settings. Add --grid"),
        ("cross-validate d.txt --ranker ridge --grid alpha=[1] --select RR", "--select chooses among several"),
        ("cross-validate d.txt --ranker ridge --scores -", "--scores cannot write to standard output"),
        ("retrain m d.txt --candidate -", "--candidate cannot write to standard output"),
        ("fuse --runs r --qrels q --model -", "--model cannot write to standard output"),
        ("fuse --runs r --qrels q --tag a", "--tag names the fused run, but no output is named. Add -o RUN"),
        ("fuse --runs r --method rrf --seed 1", "--seed applies only to learning"),
        ("fuse --runs r --method rrf --convention trec", "--convention applies only to learning"),
        ("fuse --runs r --model m --export vespa --depth 3", "--depth has no effect with --export"),
        ("import m -o -", "-o cannot write to standard output"),
        ("export m --to solr -o -", "-o cannot write to standard output"),
        ("export m --to solr -o x --sparse", "--sparse describes the rows of --certify and --distil"),
        ("export m --to solr -o x --missing nan", "--missing describes the rows"),
        ("deploy m --engine http://127.0.0.1:1 --name n --n-features 3", "--n-features describes the rows"),
        ("calibrate m d.txt -o -", "-o cannot write to standard output"),
        ("calibrate m d.txt -o c --monotone", "--method choose makes every calibrator monotone"),
        ("calibrate m d.txt -o c --method choose --monotone", "--monotone has no effect: --method choose"),
        ("text index d.jsonl -o -", "-o must be a folder"),
        ("sample - --demo", "DIR must be a folder"),
        ("sample -", "DIR must be a folder"),
        ("text pipeline --documents d --queries q --qrels r --ranker ridge --out -", "--out must be a folder"),
        ("cross-validate . --ranker ridge --scores -", "--scores must be a folder"),
        ("train d.txt --ranker ridge --model m --cluster local:1 --checkpoint -", "--checkpoint must be a folder"),
        ("calibrate --scores s --data d.txt -o m --features 1", "--features chooses columns for a model"),
        ("text classify --train d.jsonl --model -", "--model cannot write to standard output"),
        ("text classify --train d.jsonl --model m --separator ,", "--separator applies only to tables"),
        ("text classify - --model m --separator ;", "--separator applies only to tables"),
        ("compare --qrels q a b --json --format html", "--format has no effect with --json, which prints no tables"),
        ("compare --qrels q a b --sparse", "--sparse requires --data"),
        ("evaluate --qrels q r --query-column x", "--query-column requires --data"),
        ("evaluate --qrels q r --missing nan", "--missing requires --data"),
        ("evaluate --qrels q r --out-of-core", "--out-of-core requires --cluster"),
        ("evaluate --data d.txt --scores s --exclude 1", "--exclude chooses columns for a model. Name a model"),
        ("evaluate --qrels q r --every-convention --per-query", "--per-query cannot be combined with --every"),
        ("evaluate --qrels q r --every-convention --convention trec", "--convention cannot be combined with"),
        ("evaluate --qrels q r --explain 1 --every-convention", "--every-convention cannot be combined with --explain"),
        ("evaluate --data d.txt m --explain 1", "--explain requires --qrels FILE and a run"),
        ("explain m d.txt --json --most 3", "--most has no effect with --json, which prints all"),
        ("report --qrels q --run r --sparse", "--sparse requires --data"),
        ("convert d.txt o.txt --to qrels --features 1", "--features has no effect on qrels"),
        ("convert d.txt o.txt --to lightgbm --no-comments", "--no-comments has no effect: files for lightgbm"),
    ],
)  # fmt: skip
def test_an_option_beside_what_makes_it_idle_is_refused(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("d.txt").write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    Path("t.csv").write_text("qid,y,f1\n1,1,1\n1,0,2\n")
    save_model(RidgeRanker().fit([[0.0], [1.0]], [0, 1]), "m")
    before = sorted(os.listdir())
    assert main(words.split()) == 2
    assert said in capsys.readouterr().err
    assert sorted(os.listdir()) == before


def test_no_command_speaks_of_python(options, tmp_path, monkeypatch, capsys):
    """Remarks, warnings and certificates name options, not arguments of Python."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("train", "test"):
        rows = [(k // 6, int(rng.integers(3)), k, *rng.normal(size=2)) for k in range(72)]
        lines = [f"{y} qid:{name}{q} 1:{k} 2:{a:.3f} 3:{b:.3f} 4:{y}\n" for q, y, k, a, b in rows]
        Path(f"{name}.txt").write_text("".join(lines))
    X, y, qid = rng.normal(size=(72, 4)), rng.integers(0, 3, 72), np.repeat(np.arange(12), 6)
    X[::7, 2] = np.nan
    missing = truerank.RankingData(X, y, qid)
    truerank.write_letor(missing, "missing.txt")
    model = truerank.ObliviousBoosting(leaves="constant", n_estimators=5, depth=2).fit(missing)
    save_model(model, "missing.json")
    two = ["m.json", "other.json", "--data", "test.txt"]
    spoken = {
        "train": ["train.txt", "--ranker", "ridge", "--model", "m.json"],
        "train more": ["train.txt", "--ranker", "ridge", "--model", "other.json", "--exclude", "2-4"],
        "evaluate": ["m.json", "--data", "test.txt"],
        "compare": two, "power": two, "report": [*two, "-o", "report.html"],
        "explain": ["m.json", "test.txt"],
        "cross-validate": ["train.txt", "--ranker", "ridge"],
    }  # fmt: skip
    for command, words in spoken.items():
        code = main([command.split()[0], *words])
        said = " ".join(capsys.readouterr().err.split())
        assert (code, "counting-feature" in said) == (0, True), (command, said)
        assert ("--exclude" in said) == ("--exclude" in options[command.split()[0]]), (command, said)
        assert not OF_PYTHON.search(said), (command, said)
    export = ["export", "missing.json", "--to", "solr", "-o", "solr.json", "--force"]
    assert main([*export, "--certify", "missing.txt", "--missing", "nan"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "--missing zero" in said
    assert not OF_PYTHON.search(said), said
