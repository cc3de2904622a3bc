"""`truerank text classify`: JSON lines, tables, folders; trained, saved and used."""

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
    words = [
        "text",
        "classify",
        "--train",
        str(files / "train.jsonl"),
        "--model",
        model,
        "--method",
        "temperature",
        "--json",
    ]
    assert main([*words, "--classifier", "naive-bayes"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["documents"] == 150
    assert report["labels"] == ["earn", "grain", "ship"]
    assert not report["multi_label"]
    out = files / "out.jsonl"
    assert main(["text", "classify", str(files / "test.jsonl"), "--model", model, "-o", str(out), "--json"]) == 0
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


def test_documents_without_ids_are_numbered(files, capsys):
    texts, labels = news(60, 0)
    rows = [f"{label},{text}" for text, label in zip(texts, labels)]
    (files / "bare.csv").write_text("\n".join(["label,text", *rows]))
    (files / "bare.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    model, words = str(files / "model.json"), ["--classifier", "naive-bayes", "--method", "temperature"]
    train, data = str(files / "bare.csv"), str(files / "bare.jsonl")
    assert main(["text", "classify", data, "--train", train, "--model", model, *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["predictions"]
    assert [one["id"] for one in found] == [str(k) for k in range(1, 61)]
    (files / "mixed.jsonl").write_text('{"id": "a", "text": "grain"}\n{"text": "ship"}')
    assert main(["text", "classify", str(files / "mixed.jsonl"), "--model", model]) == 1
    assert "line 2: no id" in capsys.readouterr().err


def test_folders_and_numbers(files, capsys):
    texts, labels = news(60)
    for k, (text, label) in enumerate(zip(texts, labels)):
        (files / "news" / label).mkdir(parents=True, exist_ok=True)
        (files / "news" / label / f"{k}.txt").write_bytes(text.encode("latin-1") + b"\xe9")
    model = str(files / "model.json")
    assert main(["text", "classify", str(files / "news"), "--train", str(files / "news"), "--model", model, "--method",
                 "platt", "--json"]) == 0  # fmt: skip
    report = json.loads(capsys.readouterr().out)
    assert len(report["predictions"]) == 60
    assert report["test"]["error"] < 0.2
    rows = "id,length,weight,label\n" + "\n".join(
        f"r{k},{k % 7},{k % 5},{'b' if k % 7 > 3 else 'a'}" for k in range(80)
    )
    (files / "table.csv").write_text(rows)
    words = [
        "text",
        "classify",
        str(files / "table.csv"),
        "--train",
        str(files / "table.csv"),
        "--model",
        model,
        "--json",
    ]
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
        main(
            [
                "text",
                "classify",
                data,
                "--train",
                data,
                "--model",
                model,
                "--method",
                "platt",
                "--cost-fn",
                "3",
                "--json",
            ]
        )
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
    assert main(["text", "classify", "--train", train, train, "--model", model, "--method", "platt"]) == 0
    wanted = capsys.readouterr().out
    for order in (["label", "weight", "length", "id"], ["other", "id", "weight", "length", "label"]):
        assert main(["text", "classify", write("other.csv", order), "--model", model]) == 0
        assert capsys.readouterr().out == wanted
    assert main(["text", "classify", write("less.csv", ["id", "weight", "label"]), "--model", model]) == 1
    assert "document 'r0' has no number in the field 'length'" in capsys.readouterr().err


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
            words = [
                "text",
                "classify",
                "--train",
                str(files / name),
                "--model",
                model,
                "--method",
                "identity",
                "--json",
            ]
            assert main(words) == 0
            assert json.loads(capsys.readouterr().out)["labels"] == wanted


def write_lines(path, texts, labels):
    lines = [{"id": k, "text": text, "labels": some} for k, (text, some) in enumerate(zip(texts, labels))]
    path.write_text("\n".join(map(json.dumps, lines)))
    return str(path)


def test_labels_that_training_did_not_have_are_errors(files, capsys):
    model = str(files / "model.json")
    learn = ["text", "classify", "--train", str(files / "train.jsonl"), "--model", model, "--method", "platt"]
    assert main(learn) == 0
    texts, labels = news(40, 1)
    predicted = [[label] for label in labels[:20]] + [["new"]] * 20
    data = write_lines(files / "some.jsonl", texts, predicted)
    assert main(["text", "classify", data, "--model", model, "--json"]) == 0
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    test, lines = report["test"], report["predictions"]
    right = sum(line["labels"] == own for line, own in zip(lines, predicted))
    assert (test["documents"], test["unseen_labels"]) == (40, 20)
    assert test["error"] == 1 - right / 40 >= 0.5
    assert "20 labels of these documents did not occur in training" in printed.err
    data = write_lines(files / "all.jsonl", texts, [["new"]] * 39 + [[]])
    assert main(["text", "classify", data, "--model", model, "--json"]) == 0
    printed = capsys.readouterr()
    test = json.loads(printed.out)["test"]
    assert (test["documents"], test["error"], test["log_loss"]) == (39, 1, None)
    assert "1 document without a label" in printed.err
    # Any number of labels: each is a decision that was missed.
    texts, labels = news(120, several=True)
    train = write_lines(files / "several.jsonl", texts, labels)
    assert main(["text", "classify", "--train", train, "--model", model, "--method", "platt"]) == 0
    capsys.readouterr()
    assert main(["text", "classify", train, "--model", model, "--json"]) == 0
    known = json.loads(capsys.readouterr().out)["test"]
    data = write_lines(files / "more.jsonl", texts, [[*some, "new", "other"] for some in labels])
    assert main(["text", "classify", data, "--model", model, "--json"]) == 0
    test = json.loads(capsys.readouterr().out)["test"]
    assert (test["decisions"], test["unseen_labels"]) == (600, 240)
    assert test["error"] == pytest.approx((known["error"] * 360 + 240) / 600)
    assert test["f1"] < known["f1"]
    assert test["log_loss"] == known["log_loss"]


def test_a_label_with_a_line_end_is_one(files, capsys):
    texts, labels = news(60)
    model = str(files / "model.json")
    data = write_lines(files / "lines.jsonl", texts, [["a\nb" if label == "earn" else label] for label in labels])
    assert main(["text", "classify", "--train", data, "--model", model, "--method", "platt", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["labels"], report["multi_label"]) == (["a\nb", "grain", "ship"], False)


def test_lists_in_a_table_are_several_labels(files, capsys):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    texts, labels = news(120, several=True)
    table = pa.table({"id": [str(k) for k in range(120)], "text": texts, "labels": labels})
    pyarrow.parquet.write_table(table, files / "table.parquet")
    words = ["text", "classify", "--train", str(files / "table.parquet"), "--model", str(files / "model.json")]
    assert main([*words, "--method", "platt", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labels"] == ["earn", "grain", "ship"]


def test_misuse(files, capsys):
    model = str(files / "model.json")
    data = str(files / "train.jsonl")
    for words, message in (
        ([data, "--cv", "3"], "--cv applies only to learning: give --train FILE"),
        (["--train", data, "-o", str(files / "out")], "--output applies only to classifying: give DATA"),
        (["--train", data, "--cost-fn", "3"], "--cost-fn applies only to classifying"),
        (["--train", data, "--separator", ""], "--separator is empty"),
    ):
        assert main(["text", "classify", *words, "--model", model]) == 2
        assert message in capsys.readouterr().err
    assert main(["text", "classify", "--train", data, "--text-field", "body", "--model", model]) == 1
    assert "no document has the field 'body'. The text fields are: " in capsys.readouterr().err
    assert main(["text", "classify", "--model", model]) == 2
    (files / "bare.jsonl").write_text('{"id": 1, "text": "words"}')
    assert main(["text", "classify", "--train", str(files / "bare.jsonl"), "--model", model]) == 1
    assert "no document has a label" in capsys.readouterr().err
    (files / "empty").mkdir()
    assert main(["text", "classify", "--train", str(files / "empty"), "--model", model]) == 1
    assert "for each label" in capsys.readouterr().err
