"""Surface: Parquet and Arrow files that hold more, or other things, than their size suggests."""

import subprocess
import sys

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
resource = pytest.importorskip("resource")
from pyarrow import feather, parquet  # noqa: E402

from support.refusals import refused  # noqa: E402
from truerank.core.errors import DataFileError  # noqa: E402
from truerank.io.tables import read_table  # noqa: E402

SPACE = 6 << 30  # bytes of addresses that the process may use
READ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
from truerank.cli import main
sys.exit(main(["describe", sys.argv[1]]))
"""


def columns(n, **others):
    return {"qid": np.zeros(n, np.int64), "y": np.zeros(n)} | others


def many_rows(path):
    table = pa.table(columns(1_000_000, **{f"f{k}": np.zeros(1_000_000) for k in range(10)}))
    with parquet.ParquetWriter(path, table.schema, compression="zstd", use_dictionary=False) as writer:
        for _ in range(20):
            writer.write_table(table)


def one_long_text(path):
    table = pa.table(columns(1_800, f1=np.zeros(1_800), docid=pa.array(["x" * 1_000_000] * 1_800)))
    parquet.write_table(table, path, compression="zstd", dictionary_pagesize_limit=10**8)


def many_rows_of_arrow(path):
    n = 50_000_000
    zeros = np.zeros(n)
    feather.write_feather(pa.table(columns(n, f1=zeros, f2=zeros)), path, compression="zstd")


BOMBS = {"rows.parquet": many_rows, "text.parquet": one_long_text, "rows.arrow": many_rows_of_arrow}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_does_not_fill_the_memory(name, tmp_path):
    path = tmp_path / name
    BOMBS[name](path)
    assert path.stat().st_size < 2_000_000
    done = subprocess.run([sys.executable, "-c", READ, str(path), str(SPACE)], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "expand to more than" in done.stderr


def nested(depth):
    values = pa.array([1.0] * 10)
    for _ in range(depth):
        values = pa.StructArray.from_arrays([values], ["a"])
    return values


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize(
    "values", [nested(40), pa.array([[1.0]] * 10), pa.array([[("a", 1.0)]] * 10, pa.map_(pa.string(), pa.float64()))]
)
def test_nested_columns_are_no_features(values, kind, tmp_path):
    path = tmp_path / f"nested.{kind}"
    write = parquet.write_table if kind == "parquet" else feather.write_feather
    write(pa.table(columns(10, f1=values)), str(path))
    with refused(ValueError, code="columns"):
        read_table(path)


def test_damaged_sizes_of_nested_columns_do_not_end_the_process(tmp_path):
    """Arrow's metadata of a column with a wrong number of levels would."""
    path = tmp_path / "t.parquet"
    lists, objects = pa.array([[1.0, 2.0]] * 20), pa.array([[{"a": "x"}]] * 20)
    parquet.write_table(pa.table(columns(20, f1=lists, f2=objects)), path)
    data = path.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little")
    rng, refusals = np.random.default_rng(0), set()
    for _ in range(400):
        changed = bytearray(data)
        changed[-8 - int(rng.integers(1, footer + 1))] = rng.integers(256)
        path.write_bytes(changed)
        with pytest.raises(DataFileError) as found:  # also unchanged: nested columns are no features
            read_table(path)
        refusals.add(str(found.value))
    assert any("histogram" in text for text in refusals)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_changed_bytes_are_read_or_refused(kind, tmp_path):
    path = tmp_path / f"rows.{kind}"
    rng = np.random.default_rng(0)
    table = pa.table(columns(200, f1=rng.normal(size=200), docid=pa.array([f"d{k}" for k in range(200)])))
    (parquet.write_table if kind == "parquet" else feather.write_feather)(table, str(path))
    whole, refused = path.read_bytes(), 0
    places = [*range(60), *range(len(whole) - 400, len(whole)), *rng.integers(0, len(whole), 100).tolist()]
    for place in places:
        changed = bytearray(whole)
        changed[place] = 0x7F if changed[place] != 0x7F else 0xFF
        path.write_bytes(changed)
        try:
            read_table(path, missing="nan")
        except ValueError:
            refused += 1
    assert refused > 50


def test_a_giant_text_is_not_repeated_in_the_message(tmp_path):
    """The message had 200 million letters of a file of 7 kB."""
    parquet.write_table(pa.table(columns(2, f1=pa.array(["x" * 1_000_000, "y"]))), tmp_path / "rows.parquet")
    with refused(ValueError, code="columns") as caught:
        read_table(tmp_path / "rows.parquet")
    assert len(str(caught.value)) < 500
