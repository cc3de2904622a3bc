"""Surface: Parquet and Arrow files that hold other things than rows of numbers, or damage."""

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
from pyarrow import feather, parquet  # noqa: E402

from support.refusals import refused  # noqa: E402
from truerank.core.errors import DataFileError  # noqa: E402
from truerank.io.tables import read_table  # noqa: E402


def columns(n, **others):
    return {"qid": np.zeros(n, np.int64), "y": np.zeros(n)} | others


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
