"""Surface: small files that expand to many times their size; each is read by a process with little memory to spare.

The limit of 256 MiB is lowered to 32 MiB there, so that files an eighth as large show the same.
"""

from __future__ import annotations

import gzip
import io
import lzma

import numpy as np
import pytest

from support.processes import run
from support.refusals import refused
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.io import streams
from truerank.io.columnar import open_columnar
from truerank.io.streams import EXPANDED, Source, check_expansion

pa = pytest.importorskip("pyarrow")
resource = pytest.importorskip("resource")
zstandard = pytest.importorskip("zstandard")
from pyarrow import feather, ipc, parquet  # noqa: E402

from truerank.io.tables import read_table  # noqa: E402

SPACE = 1 << 28  # bytes of addresses that the process may have more than at its start
RUN = """
import os, resource, sys
import pyarrow.dataset, pyarrow.feather, pyarrow.parquet
from truerank.cli import main
from truerank.io import streams
streams.EXPANDED = 1 << 25
used = 3 << 30
if os.path.exists("/proc/self/status"):
    used = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmSize"))
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]),) * 2)
for line in sys.argv[2:]:
    print(line, file=sys.stderr)
    print(main(line.split()), file=sys.stderr, flush=True)
"""
CSV = b"id,text,qid,y,f\n", b"%d,heat flow,1,0,1\n"
LETOR = b"", b"0 qid:1 " + b" ".join(b"%d:0" % k for k in range(1, 21)) + b" #%d\n"
JSON = b"", b'{"id": "%d", "text": "' + b"heat flow " * 10_000 + b'"}\n'
BLOCK = 4_000_000
SIZE = 1 << 27  # bytes after decompression


def block_of(kind):
    line = kind[1] % 7
    return line * (BLOCK // len(line))


def text_bomb(path, kind):
    """The first block, then it again and again: the ids repeat, and nobody reads so far."""
    head, block = kind[0], block_of(kind)
    number = SIZE // len(block)
    if path.suffix == ".gz":  # members of a gzip file may follow each other
        path.write_bytes(gzip.compress(head) + gzip.compress(block, 9) * number)
    elif path.suffix == ".xz":
        path.write_bytes(lzma.compress(head) + lzma.compress(block, preset=1) * number)
    else:
        path.write_bytes(zstandard.compress(head) + zstandard.compress(block) * number)


def zeros(n):
    return pa.array(np.zeros(n))


def rows_of_parquet(path):
    n = 500_000
    columns = {"id": pa.array(["x"] * n), "qid": pa.array(np.zeros(n, np.int64)), "y": zeros(n)}
    table = pa.table(columns | {f"f{k}": zeros(n) for k in range(4)})
    with parquet.ParquetWriter(path, table.schema, compression="zstd", use_dictionary=True) as writer:
        for _ in range(12):
            writer.write_table(table)


def texts_of_parquet(path, **how):
    n = 150
    table = pa.table({"id": pa.array(["d"] * n), "text": pa.array(["x" * 125_000] * n), "qid": zeros(n)})
    with parquet.ParquetWriter(path, table.schema, **{"dictionary_pagesize_limit": 10**8} | how) as writer:
        for _ in range(15):
            writer.write_table(table)


def prefixes_of_parquet(path):
    texts_of_parquet(path, use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"}, compression="zstd")


def plain_texts_of_parquet(path):
    texts_of_parquet(path, use_dictionary=False, compression="zstd")


def one_list_of_parquet(path):
    values = pa.ListArray.from_arrays(pa.array([0, 6_250_000], pa.int32()), zeros(6_250_000))
    parquet.write_table(pa.table({"id": pa.array(["d"]), "qid": pa.array([1]), "v": values}), path, compression="zstd")


def one_batch_of_arrow(path):
    n = 12_500_000
    table = pa.table({"id": pa.array(np.zeros(n, np.int32)), "qid": pa.array(np.zeros(n, np.int64)), "f": zeros(n)})
    feather.write_feather(table, path, compression="zstd", chunksize=n)


def dictionary_of_arrow(path):
    n = 1_000_000
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array(["x" * 1_000_000]))
    write(path, {"id": pa.array(np.arange(n)), "text": texts, "qid": pa.array(np.zeros(n, np.int64))})


def views_of_arrow(path):
    n = 1_000_000
    views = np.tile(np.array([1_000_000, 0x78787878, 0, 0], np.int32), n)
    buffers = [None, pa.py_buffer(views), pa.py_buffer(b"x" * 1_000_000)]
    texts = pa.Array.from_buffers(pa.string_view(), n, buffers)
    write(path, {"id": pa.array(np.arange(n)), "text": texts, "qid": pa.array(np.zeros(n, np.int64))})


def runs_of_arrow(path):
    n = 500_000_000
    ones = pa.RunEndEncodedArray.from_arrays(pa.array([n], pa.int32()), pa.array([1.0]))
    write(path, {"id": ones, "qid": ones, "text": ones})


def nothing_of_arrow(path):
    n = 1_000_000_000
    write(path, {"id": pa.nulls(n), "qid": pa.nulls(n), "text": pa.nulls(n)})


def write(path, columns):
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    options = ipc.IpcWriteOptions(compression="zstd")
    with ipc.new_file(str(path), batch.schema, options=options) as writer:
        writer.write(batch)


COLUMNAR = {
    "rows.parquet": rows_of_parquet, "texts.parquet": texts_of_parquet, "prefixes.parquet": prefixes_of_parquet,
    "plain.parquet": plain_texts_of_parquet, "list.parquet": one_list_of_parquet, "batch.arrow": one_batch_of_arrow,
    "dictionary.arrow": dictionary_of_arrow, "views.arrow": views_of_arrow, "runs.arrow": runs_of_arrow,
    "nothing.arrow": nothing_of_arrow,
}  # fmt: skip
TEXTS = {
    **{f"rows.csv{ending}": CSV for ending in (".gz", ".xz", ".zst")},
    **{f"rows.txt{ending}": LETOR for ending in (".gz", ".xz", ".zst")},
    **{f"docs.jsonl{ending}": JSON for ending in (".gz", ".xz", ".zst")},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bombs")


def lines_of(name):
    index = f"text index {name} -o new --bad skip"
    columns = "impression=id query=qid document=text position=qid clicked=qid"
    if name in COLUMNAR:
        clicks = [f"clicks examine {name} --columns {columns}"]
        return [f"describe {name}", index, *(clicks if "parquet" in name and "texts" not in name else [])]
    if name.startswith("docs"):
        return [index]
    return [
        f"describe {name}",
        *([index] if "csv" in name else []),
        *([f"split {name} -o parts"] if "csv.gz" in name else []),
    ]


@pytest.mark.parametrize("name", [*COLUMNAR, *TEXTS])
def test_a_small_file_does_not_fill_the_memory(folder, name):
    path = folder / name
    COLUMNAR[name](path) if name in COLUMNAR else text_bomb(path, TEXTS[name])
    assert path.stat().st_size < 20_000_000
    done = run(RUN, str(SPACE), *lines_of(name), cwd=folder)
    said = done.stderr.decode()
    assert done.returncode == 0, said
    for line in lines_of(name):
        message = said.partition(f"{line}\n")[2].partition("\n1\n")[0]
        assert "expand to more than" in message, said
    assert not list(folder.glob("new*"))
    path.unlink()


def test_ordinary_files_pass(tmp_path, monkeypatch):
    """Sparse counts that compress 20 to 60 times, and a constant column, where any file above 1 MiB is judged."""
    monkeypatch.setattr(streams, "EXPANDED", 1 << 20)
    rng = np.random.default_rng(0)
    rows = rng.poisson(0.05, size=(40_000, 60))
    cells = np.full((len(rows), 122), ord(","), np.uint8)  # digits and commas
    cells[:, 0] = ord("1") + np.arange(len(rows)) // 5000
    cells[:, 2::2] = ord("0") + rows
    cells[:, -1] = ord("\n")
    text = ("qid," + ",".join(f"f{k}" for k in range(60)) + "\n").encode() + cells.tobytes()
    for name, content in (("a.csv.gz", gzip.compress(text)), ("a.csv.xz", lzma.compress(text, preset=1)),
                          ("a.csv.zst", zstandard.compress(text))):  # fmt: skip
        (tmp_path / name).write_bytes(content)
        data = read_table(tmp_path / name)
        assert np.array_equal(data.X, rows)
    n = 200_000
    table = pa.table(
        {"qid": pa.array(np.arange(n) // 100), "f": zeros(n), "docid": pa.array([f"d{k}" for k in range(n)])}
    )
    for name, writer in (("b.parquet", parquet.write_table), ("b.arrow", feather.write_feather)):
        writer(table, str(tmp_path / name), compression="zstd")
        assert read_table(tmp_path / name).n_rows == n


def test_the_rule_and_its_override(monkeypatch):
    check_expansion("a", 1, EXPANDED)
    check_expansion("a", EXPANDED, 100 * EXPANDED)
    with refused(DataFileError, code="expansion"):
        check_expansion("a", EXPANDED, 100 * EXPANDED + 1)
    monkeypatch.setenv("TRUERANK_EXPANSION", "1000")
    check_expansion("a", EXPANDED, 100 * EXPANDED + 1)
    monkeypatch.setenv("TRUERANK_EXPANSION", "many")
    with refused(InvalidInputError, argument="TRUERANK_EXPANSION", value="many"):
        check_expansion("a", 1, EXPANDED + 1)


def test_a_stream_of_unknown_size_is_judged_by_what_was_read():
    packed = io.BytesIO(gzip.compress(b"0\n" * 50_000_000) * 4)
    with refused(DataFileError, code="expansion"), Source(packed) as source:
        for _ in source.line_blocks():
            pass


@pytest.mark.parametrize("coded", [False, True])
def test_a_dictionary_of_many_batches_is_counted_once(tmp_path, coded):
    """One row group with a large dictionary: the batches hold and count the values of their rows only."""
    n = 400_000
    words = pa.array([f"product-{k:040d}" for k in range(n // 2)])
    codes = np.random.default_rng(0).integers(0, n // 2, n)
    table = pa.table({"id": words.take(pa.array(codes)), "qid": np.arange(n)})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=n, dictionary_pagesize_limit=10**9)
    with open_columnar(tmp_path / "a.parquet", "parquet", coded=coded) as (_, batches):
        held = list(batches)
    assert sum(batch.nbytes for batch in held) < 1.1 * table.nbytes
    assert pa.concat_arrays([batch.column(0).cast("string") for batch in held]).equals(table["id"].combine_chunks())


def test_categories_of_parquet_keep_their_type(tmp_path):
    codes = pa.array([2, None, 0, 2], pa.int8())
    column = pa.DictionaryArray.from_arrays(codes, pa.array(["b", "z", "a"]), ordered=True)
    parquet.write_table(pa.table({"c": column}), tmp_path / "a.parquet")
    with open_columnar(tmp_path / "a.parquet", "parquet") as (schema, batches):
        table = pa.Table.from_batches(list(batches), schema)
    assert table.schema.field(0).type == column.type
    assert table["c"].to_pylist() == ["a", None, "b", "a"]
