"""`truerank classify`: JSON lines, tables, folders; trained, saved and used."""

from __future__ import annotations

import json

import pytest

from calibration.test_text_classifier import news
from truerank.cli import main


@pytest.fixture
def files(tmp_path):
    for name, seed in (("train", 0), ("test", 1)):
        texts, labels = news(150, seed)
        lines = [{"id": f"d{k}", "text": text, "labels": [label]} for k, (text, label) in enumerate(zip(texts, labels))]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path


def test_train_and_predict(files, capsys):
    model = str(files / "model.json")
    words = ["classify", "--train", str(files / "train.jsonl"), "--model", model, "--method", "temperature", "--json"]
    assert main([*words, "--classifier", "naive-bayes"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["documents"] == 150
    assert report["labels"] == ["earn", "grain", "ship"]
    assert not report["multi_label"]
    out = files / "out.jsonl"
    assert main(["classify", str(files / "test.jsonl"), "--model", model, "-o", str(out), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["test"]["error"] < 0.4
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == report["classified"] == 150
    assert sum(lines[0]["probabilities"].values()) == pytest.approx(1)
    assert lines[0]["labels"] == [max(lines[0]["probabilities"], key=lines[0]["probabilities"].get)]
    # Both in one: the same predictions.
    both = [*words[:-1], "--classifier", "naive-bayes", str(files / "test.jsonl")]
    assert main(both) == 0
    assert capsys.readouterr().out == out.read_text()


def test_folders_and_numbers(files, capsys):
    texts, labels = news(60)
    for k, (text, label) in enumerate(zip(texts, labels)):
        (files / "news" / label).mkdir(parents=True, exist_ok=True)
        (files / "news" / label / f"{k}.txt").write_bytes(text.encode("latin-1") + b"\xe9")
    model = str(files / "model.json")
    assert main(["classify", str(files / "news"), "--train", str(files / "news"), "--model", model, "--method",
                 "platt", "--json"]) == 0  # fmt: skip
    report = json.loads(capsys.readouterr().out)
    assert len(report["predictions"]) == 60
    assert report["test"]["error"] < 0.2
    rows = "id,length,weight,label\n" + "\n".join(
        f"r{k},{k % 7},{k % 5},{'b' if k % 7 > 3 else 'a'}" for k in range(80)
    )
    (files / "table.csv").write_text(rows)
    words = ["classify", str(files / "table.csv"), "--train", str(files / "table.csv"), "--model", model, "--json"]
    assert main([*words, "--method", "sigmoid"]) == 0
    assert json.loads(capsys.readouterr().out)["test"]["error"] < 0.1


def test_several_labels_in_a_cell(files, capsys):
    texts, labels = news(120, several=True)
    table = "id,text,labels\n" + "\n".join(
        f'{k},{t},"{";".join(some)}"' for k, (t, some) in enumerate(zip(texts, labels))
    )
    (files / "table.csv").write_text(table)
    model, data = str(files / "model.json"), str(files / "table.csv")
    assert (
        main(["classify", data, "--train", data, "--model", model, "--method", "platt", "--cost-fn", "3", "--json"])
        == 0
    )
    report = json.loads(capsys.readouterr().out)
    assert report["multi_label"]
    assert report["test"]["decisions"] == 360


def test_columns_go_by_their_names(files, capsys):
    rows = [(f"r{k}", k % 7, k % 5 / 4, "b" if k % 7 > 3 else "a") for k in range(80)]
    columns = ["id", "length", "weight", "label"]
    data = [dict(zip(columns, row)) for row in rows]
    model = str(files / "model.json")

    def write(name, order):
        lines = [",".join(order), *(",".join(str(row.get(column, 9)) for column in order) for row in data)]
        (files / name).write_text("\n".join(lines))
        return str(files / name)

    train = write("train.csv", columns)
    assert main(["classify", "--train", train, train, "--model", model, "--method", "platt"]) == 0
    wanted = capsys.readouterr().out
    for order in (["label", "weight", "length", "id"], ["other", "id", "weight", "length", "label"]):
        assert main(["classify", write("other.csv", order), "--model", model]) == 0
        assert capsys.readouterr().out == wanted
    assert main(["classify", write("less.csv", ["id", "weight", "label"]), "--model", model]) == 1
    assert "document 'r0' lacks the number 'length'" in capsys.readouterr().err


def test_labels_are_the_texts_that_they_are(files, capsys):
    texts, _ = news(60)
    model = str(files / "model.json")
    for pair, wanted in (((1234567, 1234568), ["1234567", "1234568"]), (("01", "1"), ["01", "1"]),
                         ((True, False), ["false", "true"])):  # fmt: skip
        rows = [(k, text, pair[k % 2]) for k, text in enumerate(texts)]
        (files / "table.csv").write_text("id,text,label\n" + "\n".join(f"{k},{t},{json.dumps(c)}" for k, t, c in rows))
        lines = [dict(zip(("id", "text", "label"), row)) for row in rows]
        (files / "lines.jsonl").write_text("\n".join(map(json.dumps, lines)))
        for name in ("table.csv", "lines.jsonl"):
            words = ["classify", "--train", str(files / name), "--model", model, "--method", "identity", "--json"]
            assert main(words) == 0
            assert json.loads(capsys.readouterr().out)["labels"] == wanted


def test_misuse(files, capsys):
    model = str(files / "model.json")
    data = str(files / "train.jsonl")
    for words, message in (
        ([data, "--cv", "3"], "--cv belongs to learning: give --train FILE"),
        (["--train", data, "-o", str(files / "out")], "--output belongs to what is classified: give DATA"),
        (["--train", data, "--cost-fn", "3"], "--cost-fn belongs to what is classified"),
        (["--train", data, "--separator", ""], "--separator must be at least one character"),
    ):
        assert main(["classify", *words, "--model", model]) == 2
        assert message in capsys.readouterr().err
    assert main(["classify", "--train", data, "--text-field", "body", "--model", model]) == 1
    assert "no document has the field 'body' of text" in capsys.readouterr().err
    assert main(["classify", "--model", model]) == 2
    (files / "bare.jsonl").write_text('{"id": 1, "text": "words"}')
    assert main(["classify", "--train", str(files / "bare.jsonl"), "--model", model]) == 1
    assert "no document has a label" in capsys.readouterr().err
    (files / "empty").mkdir()
    assert main(["classify", "--train", str(files / "empty"), "--model", model]) == 1
    assert "one for each label" in capsys.readouterr().err
