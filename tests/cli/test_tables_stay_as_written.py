"""A table that a command reads and writes again keeps every cell that the command does not compute."""

from __future__ import annotations

import csv
import gzip
import io
import json
import uuid
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from truerank.cli import main

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pandas")
from pyarrow import feather, parquet  # noqa: E402

NASTY = ["00012", "12", "12345678901234567890", "12345678901234567891", "1e5", "FALSE", "false", "12:30", "12:30:00",
         "25.50", "25.5", "NA", "nan", "null", "2020-01-01", "0x1F", "+7", "-0", "1_000", "🙂", "é", "Inf"]  # fmt: skip
PLAIN = {"delimiter": ",", "lineterminator": "\n"}


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
    path = packed(tmp_path / name, text if last else text.removesuffix(end.encode()))
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
    places = [[k for k, query in enumerate(table["qid"].to_pylist()) if (query in held) is test] for test in (False, True)]
    for part, rows in zip(parts, places):
        assert part.schema.equals(table.schema)
        for name in table.column_names:
            values = table[name].to_pylist()
            assert part[name].to_pylist() == [values[row] for row in rows], name
