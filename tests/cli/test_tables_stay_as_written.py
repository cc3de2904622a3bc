"""A table that a command reads and writes again keeps every cell that the command does not compute."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import re
import shlex
import uuid
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.refusals import refused
from truerank import evaluate
from truerank.cli import main
from truerank.core.errors import InvalidInputError
from truerank.io.tables import read_table

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pandas")
from pyarrow import feather, parquet  # noqa: E402

NASTY = ["00012", "12", "12345678901234567890", "12345678901234567891", "1e5", "FALSE", "false", "12:30", "12:30:00",
         "25.50", "25.5", "NA", "nan", "null", "2020-01-01", "0x1F", "+7", "-0", "1_000", "🙂", "é", "Inf"]  # fmt: skip


def as_text(rows: list[list[str]], delimiter: str, end: str) -> bytes:
    """A table as text; cells are in quotation marks where they must be, and every third one without need."""

    def cell(text: str, number: int) -> str:
        must = text.startswith('"') or any(mark in text for mark in (delimiter, "\n", "\r"))
        return '"' + text.replace('"', '""') + '"' if must or number % 3 == 0 else text

    number = iter(range(10**9))
    return "".join(delimiter.join(cell(text, next(number)) for text in row) + end for row in rows).encode()


def rows_of(text: bytes, delimiter: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text.decode(), newline=""), delimiter=delimiter))


def packed(path: Path, text: bytes) -> Path:
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def unpacked(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


cells = st.one_of(st.sampled_from(NASTY), st.text("ab01,;\t\"'\r\n .🙂", max_size=8))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(st.sampled_from(NASTY), cells, cells, cells), min_size=4, max_size=30),
    name=st.sampled_from(["d.csv", "d.tsv", "d.csv.gz", "d;.csv"]),
    end=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
)
def test_split_copies_the_records_of_text(tmp_path, rows, name, end, last):
    delimiter = "\t" if "tsv" in name else ";" if ";" in name else ","
    rows = [[*row, "z"] for row in rows] + [[query, "", "", "", "z"] for query in ("00012", "12", "x")]
    text = as_text([["a", "q u", "qid", "docid", "n"], *[[b, c, a, d, e] for a, b, c, d, e in rows]], delimiter, end)
    text = text if last else text.removesuffix(end.encode())
    path = packed(tmp_path / name, text)
    header, *expected = rows_of(text, delimiter)
    code = main(["split", str(path), "--test", "0.3", "-o", str(tmp_path / "parts"), "--replace"])
    if delimiter == "\t" and code == 1:
        return  # text that looks like rows within a cell of a .tsv file is refused
    assert code == 0
    parts = [unpacked(tmp_path / "parts" / f"{part}{name[1:].removeprefix(';')}") for part in ("train", "test")]
    found = [rows_of(part, delimiter) for part in parts]
    assert [part[0] for part in found] == [header, header]
    queries = [{row[2] for row in part[1:]} for part in found]
    assert not queries[0] & queries[1]
    assert [row for row in expected if row[2] in queries[0]] == found[0][1:]
    assert [row for row in expected if row[2] in queries[1]] == found[1][1:]
    # Byte by byte: the records of both are those of the file.
    first = text[: text.index(end.encode())] + end.encode()
    assert sum(map(len, parts)) == len(text) + len(first)
    assert all(part.startswith(first) for part in parts)


def arrow_table(n: int, seed: int) -> pa.Table:
    """Columns of every kind, with gaps; `qid` and `docid` are text."""
    rng = np.random.default_rng(seed)
    gaps = [k % 5 == 2 for k in range(n)]
    numbers = rng.integers(2**53, 2**62, n)
    return pa.table({
        "qid": [NASTY[k % len(NASTY)] for k in rng.integers(0, 99, n)],
        "docid": [f"{k:07d}" for k in range(n)],
        "y": pa.array(rng.integers(0, 3, n)),
        "f": pa.array(rng.random(n)),
        "binary": pa.array([rng.bytes(k % 4) for k in range(n)], mask=np.array(gaps)),
        "fixed": pa.array([rng.bytes(16) for _ in range(n)], pa.binary(16)),
        "integers": pa.array(numbers, mask=np.array(gaps)),
        "flags": pa.array([k % 2 == 0 for k in range(n)], mask=np.array(gaps)),
        "times": pa.array(numbers, pa.timestamp("ns", "Europe/Berlin")),
        "prices": pa.array([f"{k}.50" for k in range(n)]).cast(pa.decimal128(20, 2)),
        "dictionary": pa.array([NASTY[k % 7] for k in range(n)]).dictionary_encode(),
        "lists": pa.array([[k, None] if k % 3 else None for k in range(n)]),
        "text": pa.array([f'"🙂\n{k},' for k in range(n)], mask=np.array(gaps)),
    })  # fmt: skip


def with_newer_types(table: pa.Table) -> pa.Table:
    ids = [uuid.UUID(int=k).bytes for k in range(table.num_rows)]
    table = table.append_column("uuid", pa.array(ids, pa.uuid()))
    return table.append_column("view", pa.array([f"{k:03d}" for k in range(table.num_rows)], pa.string_view()))


def write_arrow(table: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=17)
    else:
        feather.write_feather(table, path, chunksize=17)


def read_arrow(path: Path) -> pa.Table:
    return parquet.read_table(path) if path.suffix == ".parquet" else feather.read_table(path)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather"])
@pytest.mark.parametrize("newer", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_split_takes_the_rows_of_a_typed_file(tmp_path, ending, newer, seed):
    table = arrow_table(200, seed)
    if newer:
        table = with_newer_types(table)
    path = tmp_path / f"d.{ending}"
    write_arrow(table, path)
    table = read_arrow(path)
    assert main(["split", str(path), "-o", str(tmp_path / "parts")]) == 0
    parts = [read_arrow(tmp_path / "parts" / f"{part}.{ending}") for part in ("train", "test")]
    held = set(parts[1]["qid"].to_pylist())
    places = [
        [k for k, query in enumerate(table["qid"].to_pylist()) if (query in held) is test] for test in (False, True)
    ]
    for part, rows in zip(parts, places):
        assert part.schema.equals(table.schema)
        for name in table.column_names:
            values = table[name].to_pylist()
            assert part[name].to_pylist() == [values[row] for row in rows], name


WORDS = [name for name in NASTY if name != "nan"]  # ids of queries and documents; all are single words of TREC runs
FORMATS = ["csv", "tsv", "csv.gz", "tsv.xz", "parquet", "arrow", "feather"]


class Shop:
    """Judged rows with nasty ids, written in one format with columns that no command needs."""

    def __init__(self, folder: Path, ending: str, kind: str, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        own = [uuid.UUID(int=int(k)) for k in rng.integers(0, 2**60, 12)]
        names = (
            list(map(str, own))
            if kind == "uuid"
            else WORDS[:12]
            if kind in ("text", "binary")
            else [str(2**60 + k) for k in range(12)]
        )
        self.pairs = [(query, document) for query in names for document in names[:6]]
        n = len(self.pairs)
        self.quality = rng.normal(size=n)
        self.grades = (self.quality + rng.normal(size=n) > 0.5).astype(int)
        self.data = folder / f"shop.{ending}"
        self.options = ["--document-column", "docid", "--query-column", "qid"]
        ids = [[pair[0] for pair in self.pairs], [pair[1] for pair in self.pairs]]
        values = self.quality.round(6).tolist()
        if ending.startswith(("csv", "tsv")):
            delimiter = "\t" if ending.startswith("tsv") else ","
            notes = [NASTY[k % len(NASTY)] if k % 4 else f'a "{k}"\nb{delimiter}🙂' for k in range(n)]
            rows = [
                ["note", "qid", "f", "y", "docid"],
                *map(list, zip(notes, ids[0], map(str, values), map(str, self.grades), ids[1])),
            ]
            text = as_text(rows, delimiter, "\n")
            if ending.endswith("xz"):
                text = lzma.compress(text)
            packed(self.data, text)
        else:
            column = {
                "text": pa.array, "integers": lambda column: pa.array(list(map(int, column))),
                "binary": lambda column: pa.array([one.encode() for one in column]),
                "uuid": lambda column: pa.array([uuid.UUID(one).bytes for one in column], pa.uuid()),
            }[kind]  # fmt: skip
            extra = arrow_table(n, seed).drop_columns(["qid", "docid", "y", "f"])
            table = pa.table({"qid": column(ids[0]), "docid": column(ids[1]), "y": pa.array(self.grades), "f": values})
            for name in extra.column_names:
                table = table.append_column(name, extra[name])
            write_arrow(table, self.data)


def lines_of(path: Path | str) -> list[list[str]]:
    return [line.split() for line in Path(path).read_text().splitlines()]


@pytest.mark.parametrize(
    ("ending", "kind"),
    [*((ending, "text") for ending in FORMATS), ("parquet", "uuid"), ("arrow", "uuid"), ("parquet", "integers"),
     ("parquet", "binary"), ("arrow", "binary"),
     ("csv", "integers"), ("csv", "uuid")],
)  # fmt: skip
@pytest.mark.parametrize("seed", range(2))
def test_ids_that_commands_write_are_those_of_the_table(tmp_path, monkeypatch, capsys, ending, kind, seed):
    monkeypatch.chdir(tmp_path)
    shop = Shop(tmp_path, ending, kind, seed)
    data, pairs = [str(shop.data), *shop.options], set(shop.pairs)
    queries = {query for query, _ in shop.pairs}

    def call(*words: str) -> str:
        capsys.readouterr()
        assert main(list(words)) == 0, (words, capsys.readouterr().err)
        return capsys.readouterr().out

    call("train", *data, "--features", "f", "--model", "m.json", "--ranker", "ridge")
    call("predict", "m.json", *data, "--format", "run", "-o", "out.run")
    assert {(words[0], words[2]) for words in lines_of("out.run")} == pairs
    for name in ("o.csv", "o.tsv.gz", "o.parquet", "o.arrow", "o.txt", "o.qrels"):
        call("convert", *data, name, "--to", "qrels") if name == "o.qrels" else call(
            "convert", *data, name, "--features", "f"
        )
        if name.endswith((".csv", ".tsv.gz")):
            rows = rows_of(unpacked(Path(name)), "\t" if "tsv" in name else ",")
            found = {(row[rows[0].index("qid")], row[rows[0].index("docid")]) for row in rows[1:]}
        elif name == "o.qrels":
            found = {(words[0], words[2]) for words in lines_of(name)}
        elif name == "o.txt":
            found = {(words[1].removeprefix("qid:"), words[-1]) for words in lines_of(name) if words[0] != "#"}
        else:
            table = read_arrow(Path(name))
            found = {(str(a), str(b)) for a, b in zip(table["qid"].to_pylist(), table["docid"].to_pylist())}
        assert found == pairs, name
    call("calibrate", "m.json", *data, "--cv", "3", "-o", "c.json", "--method", "platt")
    decided = json.loads(call("decide", "c.json", *data, "--top", "3", "--json", "--training-queries", "keep"))
    assert set(decided["expected_relevant"]) == queries
    call(
        "cutoff",
        "fit",
        "m.json",
        *data,
        "-o",
        "cut.json",
        "--training-queries",
        "keep",
        "--at-most",
        "0.99",
        "--confidence",
        "0.5",
    )
    assert {line[0] for line in lines_of_text(call("cutoff", "apply", "cut.json", "m.json", *data))} == queries
    query = shop.pairs[0][0]
    assert query in call(
        "explain", "m.json", *data, "--query", query, "--above", shop.pairs[0][1], "--below", shop.pairs[1][1]
    )
    values = json.loads(
        call("evaluate", "m.json", "--data", *data, "--per-query", "--json", "--training-queries", "keep")
    )
    assert query in json.dumps(values)
    # What reads runs and judgements writes their ids.
    call("fuse", "out.run", "--method", "rrf", "-o", "fused.run")
    assert {(words[0], words[2]) for words in lines_of("fused.run")} == pairs
    Path("b.run").write_text("".join(f"{q} Q0 {d} {k} {-k} b\n" for k, (q, d) in enumerate(shop.pairs)))
    call("judge", "plan", "out.run", "b.run", "--budget", "1000", "-o", "plan.csv", "--page", "page.html")
    rows = rows_of(Path("plan.csv").read_bytes(), ",")
    assert {(row[0], row[1]) for row in rows[1:]} == pairs
    grade = dict(zip(shop.pairs, shop.grades))
    rows[1:] = [[*row[:-1], str(grade[row[0], row[1]])] for row in rows[1:]]
    Path("plan.csv").write_bytes(as_text(rows, ",", "\n"))
    call("judge", "estimate", "out.run", "b.run", "--plan", "plan.csv", "--json")
    call("split", "out.run", "-o", "parts", "--test", "0.5")
    assert sorted(lines_of("parts/train.run") + lines_of("parts/test.run")) == sorted(lines_of("out.run"))
    # A click log of the same pairs, in the same format.
    log = write_log(tmp_path, shop, ending, kind)
    call("clicks", "train-data", str(log), "--data", *data, "--features", "f", "-o", "rows.csv")
    rows = rows_of(Path("rows.csv").read_bytes(), ",")
    assert {(row[rows[0].index("qid")], row[rows[0].index("docid")]) for row in rows[1:]} == pairs


def lines_of_text(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def write_log(folder: Path, shop: Shop, ending: str, kind: str) -> Path:
    """Two impressions of each query, with clicks on relevant documents; its ids as in the shop's table."""
    shown: dict[str, list[str]] = {}
    for query, document in shop.pairs:
        shown.setdefault(query, []).append(document)
    grade = dict(zip(shop.pairs, shop.grades.tolist()))
    rows = [
        (f"{number}-{query}", query, document, position, grade[query, document])
        for query, documents in shown.items()
        for number, order in enumerate((documents, documents[::-1]))
        for position, document in enumerate(order, 1)
    ]
    names = ["impression", "query", "document", "position", "clicked"]
    path = folder / f"log.{ending}"
    if ending.startswith(("csv", "tsv")):
        text = as_text([names, *([str(cell) for cell in row] for row in rows)], "\t" if "tsv" in ending else ",", "\n")
        if ending.endswith("xz"):
            text = lzma.compress(text)
        return packed(path, text)
    columns = dict(zip(names, map(list, zip(*rows))))
    if kind == "integers":
        columns |= {name: list(map(int, columns[name])) for name in ("query", "document")}
    if kind == "uuid":
        columns |= {
            name: pa.array([uuid.UUID(one).bytes for one in columns[name]], pa.uuid()) for name in ("query", "document")
        }
    if kind == "binary":
        columns |= {name: [one.encode() for one in columns[name]] for name in ("query", "document")}
    write_arrow(pa.table(columns), path)
    return path


def write_documents(path: Path, kind: str, columns: dict[str, list[str]]) -> str:
    """Documents or queries, with a number and a text that no command reads."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(columns, row))) + "\n" for row in zip(*columns.values())))
    elif path.suffix in (".parquet", ".arrow"):
        ids = columns["id"]
        own = {
            "text": lambda: pa.array(ids),
            "binary": lambda: pa.array([one.encode() for one in ids]),
            "uuid": lambda: pa.array([uuid.UUID(one).bytes for one in ids], pa.uuid()),
        }[kind]()
        table = pa.table({**columns, "id": own, "seen": pa.array(range(len(ids)), pa.timestamp("ns"))})
        write_arrow(table.append_column("bytes", pa.array([b"\xff"] * len(ids))), path)
    else:
        delimiter = "\t" if "tsv" in path.name else ";" if "semicolon" in path.name else ","
        packed(path, as_text([list(columns), *map(list, zip(*columns.values()))], delimiter, "\n"))
    return str(path)


@pytest.mark.parametrize(
    ("ending", "kind"),
    [("jsonl", "text"), ("csv", "text"), ("semicolon.csv", "text"), ("tsv", "text"), ("csv.gz", "text"),
     ("parquet", "text"), ("parquet", "binary"), ("parquet", "uuid"), ("arrow", "text"), ("arrow", "uuid")],
)  # fmt: skip
def test_ids_of_documents_stay(tmp_path, monkeypatch, capsys, ending, kind):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names = [str(uuid.UUID(int=k)) for k in range(20)] if kind == "uuid" else WORDS[:20]
    texts = [" ".join(rng.choice(["heat", "flow", "wing", "gas"], 6)) + (' "a",\nb;' if k % 2 else "")
             for k in range(20)]  # fmt: skip
    labels = [("0012" if text.count("heat") > 1 else "12:30") for text in texts]
    documents = write_documents(tmp_path / f"d.{ending}", kind, {"id": names, "text": texts, "label": labels})
    queries = write_documents(tmp_path / f"q.{ending}", kind, {"id": names[:3], "text": ["heat", "flow gas", "wing"]})
    assert main(["text", "index", documents, "-o", "index", "--fields", "text"]) == 0
    assert main(["text", "search", "index", queries, "-o", "found.run"]) == 0
    found = lines_of("found.run")
    assert {words[0] for words in found} == set(names[:3])
    assert {words[2] for words in found} <= set(names)
    assert len({words[2] for words in found}) > 15
    words = ["text", "features", "--index", "index", "--queries", queries, "--families", "lengths", "-o", "f.csv"]
    assert main(words) == 0
    rows = rows_of(Path("f.csv").read_bytes(), ",")
    place = rows[0].index("docid")
    assert {row[rows[0].index("qid")] for row in rows[1:]} == set(names[:3])
    assert {row[place] for row in rows[1:]} <= set(names)
    learn = ["text", "classify", "--model", "m.json", "--train", documents, "--text-field", "text"]
    assert main([*learn, "--classifier", "naive-bayes", "--method", "platt", "--min-documents", "1"]) == 0
    words = ["text", "classify", documents, "--model", "m.json", "--text-field", "text", "-o", "labels.jsonl"]
    assert main(words) == 0
    lines = list(map(json.loads, Path("labels.jsonl").read_text().splitlines()))
    assert [line["id"] for line in lines] == names
    assert set(lines[0]["probabilities"]) == set(labels)


@pytest.mark.parametrize("column", ["qid", "docid"])
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([b"a", b"\xff\x00", b"c"], "row 2: .*is not UTF-8"),
        ([[1], [2], None], "row 1: a .* is not an id"),
        ([{"a": 1}, {"a": 2}, {"a": 3}], "row 1: a dict is not an id"),
    ],
    ids=["bytes", "lists", "structs"],
)
def test_other_types_are_no_ids(tmp_path, capsys, column, values, said):
    ids = {"qid": ["a", "a", "b"], "docid": ["x", "y", "z"], column: values}
    path = tmp_path / "d.parquet"
    write_arrow(pa.table({**ids, "y": [0, 1, 0], "f": [0.5, 0.25, 1.0]}), path)
    assert main(["describe", str(path)]) == 1
    error = capsys.readouterr().err
    assert f"column {column!r}, " in error
    assert re.search(said, error)
    if column == "qid":
        assert main(["split", str(path), "-o", str(tmp_path / "parts")]) == 1
        assert re.search(f"column 'qid', {said}", capsys.readouterr().err)


def test_a_column_of_mixed_types_is_no_column_of_ids():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"qid": ["1", "1", 1, None], "y": [0, 1, 0, 1], "f": [1.0, 2.0, 3.0, 4.0]})
    for column in ("qid", "docid"):
        whole = frame.assign(qid=[1, 1, 2, 2]) if column == "docid" else frame.iloc[:3]
        with pytest.raises(InvalidInputError, match=f"column '{column}' mixes types: '1' in row 1 .* 1 in row 3"):
            read_table(whole.assign(docid=frame["qid"]))
    with refused(InvalidInputError, argument="column 'qid'"):
        evaluate(frame.iloc[:3].rename(columns={"y": "label"}).assign(docno=["a", "b", "c"]), {"1": {"a": 1.0}}, "AP")
    # Whole floats of columns with gaps are the same ids as the integers.
    gaps = pandas.Series([1, 2.0, None, 2**53 - 1], dtype=object)
    data = read_table(frame.assign(qid=[1, 1.0, 2, 2], docid=gaps).astype({"qid": object}))
    assert data.query_ids.tolist() == [1, 2]
    assert data.doc_ids.tolist() == ["1", "2", "", str(2**53 - 1)]
    nullable = pandas.array([1, None, 2**60 + 1, 4], dtype="Int64")
    assert read_table(frame.assign(qid=7, docid=nullable)).doc_ids.tolist() == ["1", "", str(2**60 + 1), "4"]


def test_semicolons_and_decimal_commas(tmp_path, capsys):
    path = tmp_path / "d.csv"

    def read(text: str) -> list[list[float]]:
        path.write_text(text)
        return read_table(path).X.tolist()

    assert read("qid;y;f\n1;1;0.5\n1;0;0.7\n") == [[0.5], [0.7]]
    assert read('qid;y;f;g\n1;1;0,5;"-1,5e1"\n1;0;7;12\n') == [[0.5, -15], [7, 12]]
    assert read('qid\ty\tf\n1\t1\t"0.5"\n1\t0\t7\n') == [[0.5], [7]]
    assert read('"qid","y","a;b"\n1,1,0.5\n1,0,7\n') == [[0.5], [7]]
    for text, cell in (('qid,y,f\n1,1,0.5\n1,0,"0,7"\n', "row 2 has '0,7'"), ("qid;y;f;g\n1;1;0,5;1.5\n", "'0,5'")):
        path.write_text(text)
        assert main(["describe", str(path)]) == 1  # no advice to call them categories
        error = capsys.readouterr().err
        assert cell in error
        assert "decimal point" in error
        assert "--categorical" not in error


def test_no_advice_for_a_missing_grade_that_fails(tmp_path, capsys):
    path = tmp_path / "d.csv"
    path.write_text("query,docid,rating,f\ncat,d1,3,1\ncat,d2,,2\ndog,d1,1,3\n")
    for more in ([], ["--missing", "nan"]):
        words = ["describe", str(path), "--query-column", "query", "--grade-column", "rating"]
        assert main([*words, "--document-column", "docid", *more]) == 1
        error = capsys.readouterr().err
        assert "'rating' has no value in row 2" in error
        assert "--missing" not in error
        assert "Remove the unjudged rows" in error


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_line_break_in_any_cell_is_read(tmp_path, end, place, ending):
    broken = f'x "1"{end}two,\t{end}{end}three'
    rows = [[f"q{k // 2}", f"d{k}", f"n{k}", f"m{k}"] for k in range(6)]
    rows[3][place] = broken
    rows[2][0] = rows[3][0]
    order = np.roll(np.arange(4), place)  # each role also comes first and last
    names = ["qid", "docid", "note", "more"]
    lines = [[[*row, str(k), str(k % 2)][j] for j in [*order, 4, 5]] for k, row in enumerate(rows)]
    text = as_text([[names[j] for j in order] + ["f", "y"], *lines], "\t" if ending == "tsv" else ",", end)
    path = tmp_path / f"d.{ending}"
    path.write_bytes(text)
    data = read_table(path, exclude=["note", "more"])
    assert data.restore(data.doc_ids).tolist() == [row[1] for row in rows]
    assert data.restore(data.qid).tolist() == [row[0] for row in rows]


def test_split_always_prints_a_next_command_that_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [(f"q{k // 4}", f"d{k}", k % 3, k * 0.5, "x" * (k % 7)) for k in range(80)]
    texts = {
        "d.csv": ["query_id,docid,y,f", *(f"{q},{d},{y},{f}" for q, d, y, f, _ in rows)],
        "bare.csv": ["qid,docid,y", *(f"{q},{d},{y}" for q, d, y, _, _ in rows)],
        "bad.csv": ["qid,f", *(f'{q},"0,{y}"' for q, _, y, _, _ in rows)],
        "d.txt": [f"{y} qid:{q[1:]} 1:{f}" for q, _, y, f, _ in rows],
        "d.qrels": [f"{q} 0 {d} {y}" for q, d, y, _, _ in rows],
        "d.run": [f"{q} Q0 {d} 1 {f} t" for q, d, _, f, _ in rows],
    }
    for name, lines in texts.items():
        Path(name).write_text("\n".join(lines) + "\n")
    for name, verb in zip(texts, ("train", "describe", "describe", "train", "evaluate", "evaluate")):
        capsys.readouterr()
        assert main(["split", name, "-o", "parts of it", "--replace"]) == 0
        (said,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("next: ")]
        words = shlex.split(said.removeprefix("next: truerank "))
        assert words[0] == verb
        words = [{"RUN": "d.run", "QRELS": "d.qrels"}.get(word, word) for word in words]
        assert main(words) == (1 if name == "bad.csv" else 0), name  # which says what is wrong with the columns
