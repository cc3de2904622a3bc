"""Tables read and written."""

from __future__ import annotations

import csv
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from support.refusals import refused
from truerank import RankingData
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.io.documents import read_documents
from truerank.io.group_sizes import qid_from_group_sizes, read_group_sizes, write_group_sizes
from truerank.io.rows import RowsAt
from truerank.io.tables import read_table, table_kind, to_table, write_table

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

COLUMNS = {
    "qid": ["b", "a", "b", "a"],
    "bm25": [1.5, 2.0, 3.25, -1.0],
    "y": [0, 1, 2, 1],
    "length": [10, 20, 30, 40],
    "docid": ["d1", "d2", "d3", "d4"],
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_frames(make):
    data = read_table(make(COLUMNS))
    assert data.feature_names == ["bm25", "length"]
    assert data.query_ids.tolist() == ["b", "a"]
    assert data.X.tolist() == [[1.5, 10], [3.25, 30], [2.0, 20], [-1.0, 40]]
    assert data.y.tolist() == [0, 2, 1, 1]
    assert data.doc_ids.tolist() == ["d1", "d3", "d2", "d4"]
    assert data.restore(data.X[:, 1]).tolist() == [10, 20, 30, 40]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_named_columns(make):
    table = make({"q": [3, 3], "rel": [1, 0], "name": ["x", "y"], "a": [1, 2], "b": [3, 4], "title": ["s", "t"]})
    data = read_table(table, query="q", grade="rel", document="name", features=["b", "a"])
    assert data.feature_names == ["b", "a"]
    assert data.X.tolist() == [[3, 1], [4, 2]]
    assert data.query_ids.tolist() == [3]
    with refused(InvalidInputError, code="columns"):
        read_table(table, query="q", grade="rel", document="name")
    with refused(InvalidInputError, code="columns"):
        read_table(table)
    with refused(InvalidInputError, code="columns"):
        read_table(table, query="q", grade="rel")
    judged = read_table(table, query="q", grade="rel", features=[])
    assert (judged.X.shape, judged.y.tolist()) == ((2, 0), [1, 0])
    assert read_table(table, query="q", features=["a"]).y is None
    with refused(InvalidInputError, argument="features"):
        read_table(table, query="q", grade="rel", features=["a", "rel"])


@pytest.mark.parametrize(
    "name", ["t.csv", "t.tsv", "t.csv.gz", "t.tsv.xz", "t.parquet", "t.pq", "t.arrow", "t.feather"]
)
def test_files_round_trip(tmp_path, name):
    rng = np.random.default_rng(0)
    data = RankingData(
        rng.random((6, 3)),
        [0, 1, 2, 0, 1, 0.5],
        ["007", "007", "8", "8", "8", "9"],
        doc_ids=["1", "02", "x", "y", "z", "w"],
        comments=["a b", "", "c,d", "", "", 'e "f"'],
        feature_names=["one", "two", "three"],
    )
    write_table(data, tmp_path / name)
    again = read_table(tmp_path / name)
    assert again.X.tobytes() == data.X.tobytes()
    assert again.y.tolist() == data.y.tolist()
    assert again.qid.tolist() == data.qid.tolist()
    assert again.doc_ids.tolist() == data.doc_ids.tolist()
    assert again.comments.tolist() == data.comments.tolist()
    assert again.feature_names == data.feature_names


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
def test_a_missing_category_of_a_dictionary_column_is_missing(tmp_path, name):
    """Arrow's own conversion of chunks gives it the dictionary's last entry."""
    frame = pd.DataFrame({"qid": [1, 1, 1], "y": [1, 0, 2], "shop": pd.Categorical(["x", None, "y"])})
    getattr(frame, "to_parquet" if name == "t.parquet" else "to_feather")(tmp_path / name)
    for source in (tmp_path / name, frame, pa.Table.from_pandas(frame)):
        data = read_table(source, categories=["shop"], missing="nan")
        np.testing.assert_array_equal(data.X[:, 0], [0, np.nan, 1])
        with refused((InvalidInputError, DataFileError), code="columns"):
            read_table(source, categories=["shop"])


def test_known_categories_are_read_as_the_texts_that_they_are(tmp_path):
    """A part of a file may hold those alone that look like numbers or truths."""
    known = {"shop": ["007", "12", "AB"], "new": ["false", "maybe", "true"]}
    (tmp_path / "t.csv").write_text("qid,shop,new\n1,007,true\n1,,false\n1,12,true\n")
    data = read_table(tmp_path / "t.csv", categories=known, missing="nan")
    np.testing.assert_array_equal(data.X, [[0, 2], [np.nan, 0], [1, 2]])
    frame = pd.DataFrame({"qid": [1, 1], "shop": [12, None]})  # floats, because of the gap
    data = read_table(frame, categories={"shop": ["12", "AB"]}, missing="nan")
    np.testing.assert_array_equal(data.X[:, 0], [0, np.nan])


def test_numbers_of_any_type_are_numbers():
    values = [Decimal("1.5"), np.float32(2), True, np.bool_(False), Fraction(1, 4), np.int8(3), None, pd.NA]
    data = read_table(pd.DataFrame({"qid": [1] * 8, "f": np.array(values, dtype=object)}), missing="nan")
    np.testing.assert_array_equal(data.X[:, 0], [1.5, 2, 1, 0, 0.25, 3, np.nan, np.nan])
    prices = pa.table({"qid": [1, 1], "y": [Decimal("1.0"), Decimal(0)], "f": [Decimal("0.25"), Decimal(7)]})
    assert (read_table(prices).X.tolist(), read_table(prices).y.tolist()) == ([[0.25], [7.0]], [1, 0])
    with refused(InvalidInputError, code="columns"):
        read_table(pd.DataFrame({"qid": [1, 1], "f": [np.zeros(2), np.ones(2)]}))


BEYOND_FLOAT = [2**53 + 1, None, 2**53 + 3]


@pytest.mark.parametrize(
    "ids",
    [pd.Series(BEYOND_FLOAT, dtype="Int64"), pl.Series(BEYOND_FLOAT), pa.array(BEYOND_FLOAT)],
    ids=["pandas", "polars", "arrow"],
)
def test_integer_ids_that_float64_does_not_hold_keep_their_digits(ids):
    """These libraries make floats of integers where some are missing."""
    data = RankingData(np.ones((3, 1)), [0, 1, 0], qid=[1, 1, 1], doc_ids=ids)
    assert data.doc_ids.tolist() == ["9007199254740993", "", "9007199254740995"]
    with refused(InvalidInputError, code="float-id"):
        RankingData(np.ones((3, 1)), [0, 1, 0], qid=[1, 1, 1], doc_ids=pd.Series(BEYOND_FLOAT, dtype=float))


def test_whole_query_numbers_stay_numbers(tmp_path):
    data = RankingData([[1.0], [2.0]], [1, 0], [12, 5])
    for name in ("t.csv", "t.parquet"):
        write_table(data, tmp_path / name)
        assert read_table(tmp_path / name).query_ids.tolist() == [12, 5]


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_to_table(kind):
    data = RankingData([[1.0], [2.0]], [1, 0], [12, 5], doc_ids=["a", "b"])
    again = read_table(to_table(data, kind))
    assert again.X.tolist() == data.X.tolist()
    assert again.doc_ids.tolist() == ["a", "b"]
    assert again.query_ids.tolist() == [12, 5]
    with refused(InvalidInputError, code="column-names"):
        to_table(RankingData([[1.0]], [1], feature_names=["qid"]), kind)


def test_the_index_that_pandas_writes_is_no_feature(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"qid": [1, 1, 2], "y": [0, 1, 0], "a": [1.0, 2.0, 3.0]}, index=[2, 0, 1])
    frame.to_parquet(tmp_path / "rows.parquet", index=True)
    assert read_table(tmp_path / "rows.parquet").feature_names == ["a"]
    named = read_table(tmp_path / "rows.parquet", features=["a", "__index_level_0__"])
    assert named.X[:, 1].tolist() == [2.0, 0.0, 1.0]


def test_missing_cells():
    for table in (
        pd.DataFrame({"qid": [1, 1], "y": [0, 1], "a": [1.0, np.nan]}),
        pl.DataFrame({"qid": [1, 1], "y": [0, 1], "a": [1.0, None]}),
        pa.table({"qid": [1, 1], "y": [0, 1], "a": [1, None]}),
        pd.DataFrame({"qid": [1, 1], "y": [0, 1], "a": pd.array([1, None], dtype="Int64")}),
    ):
        with refused(InvalidInputError, code="columns", remedy={"missing": "nan"}):
            read_table(table)
        assert np.isnan(read_table(table, missing="nan").X[1, 0])


def test_refusals(tmp_path):
    with refused(InvalidInputError, code="infinite"):
        read_table(pd.DataFrame({"qid": [1], "y": [0], "a": [np.inf]}))
    with refused(InvalidInputError, code="no-value"):
        read_table(pd.DataFrame({"qid": [1, 1], "y": [0, np.nan], "a": [1.0, 2.0]}))
    with refused(InvalidInputError, argument="qid"):
        read_table(pd.DataFrame({"qid": ["a", None], "y": [0, 1], "a": [1.0, 2.0]}))
    with refused(InvalidInputError, code="not-a-table"):
        read_table([[1, 2]])
    with refused(InvalidInputError, code="file-name"):
        read_table(tmp_path / "t.xlsx")
    (tmp_path / "t.parquet").write_bytes(b"PAR1 but not really")
    with refused(DataFileError, code="unreadable"):
        read_table(tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("qid,y,a\n1,2\n")
    with refused(DataFileError, code="unreadable"):
        read_table(tmp_path / "t.csv")
    (tmp_path / "u.csv").write_text("qid,y,a\n1,0,2\n,1,3\n")
    with pytest.raises(DataFileError, match="u.csv: column 'qid' has no query id in row 2"):
        read_table(tmp_path / "u.csv")
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.parquet")


def test_table_kind():
    assert table_kind("a.b/x.CSV.GZ") == "csv"
    assert table_kind("x.parquet.gz") is None
    assert table_kind("x.txt.gz") is None
    assert table_kind("x") is None


def test_the_module_imports_no_table_library():
    code = "import sys, truerank.io.tables; print({'pandas', 'polars', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_group_sizes(tmp_path):
    assert qid_from_group_sizes([2, 4]).tolist() == [0, 0, 1, 1, 1, 1]
    for bad in ([0, 2], [1.5], [2.0, np.inf], [[1]], ["a"]):
        with refused(InvalidInputError, argument="group sizes"):
            qid_from_group_sizes(bad)
    write_group_sizes([2, 4], tmp_path / "g")
    assert read_group_sizes(tmp_path / "g").tolist() == [2, 4]
    (tmp_path / "g").write_text("3\nx\n")
    with refused(DataFileError, code="group-size", line=2):
        read_group_sizes(tmp_path / "g")


@pytest.mark.peers
def test_group_sizes_are_what_the_boosters_take():
    lightgbm = pytest.importorskip("lightgbm")
    xgboost = pytest.importorskip("xgboost")
    data = RankingData(np.random.default_rng(0).random((9, 2)), np.arange(9) % 3, [1, 1, 1, 1, 2, 2, 3, 3, 3])
    matrix = xgboost.DMatrix(data.X, data.y)
    matrix.set_group(data.group_sizes)
    assert np.diff(matrix.get_uint_info("group_ptr")).tolist() == data.group_sizes.tolist()
    dataset = lightgbm.Dataset(data.X, data.y, group=data.group_sizes, params={"verbose": -1})
    dataset.construct()
    assert dataset.get_group().tolist() == data.group_sizes.tolist()


@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz", "t.parquet", "t.feather"])
def test_no_thread_of_arrow_is_given_an_object_of_python(tmp_path, monkeypatch, name):
    """Where the last one lets go of it while the interpreter ends, the process is aborted after all its work."""
    from pyarrow import csv, parquet

    write_table(RankingData([[1.0], [2.0]], [0, 1], ["a", "b"]), tmp_path / name)
    given, made = [], []
    allocate = pa.allocate_buffer
    monkeypatch.setattr(pa, "allocate_buffer", lambda size: made.append(size) or allocate(size))
    for module, function in ((csv, "read_csv"), (parquet, "ParquetFile"), (pa.ipc, "open_file")):
        own = getattr(module, function)
        monkeypatch.setattr(
            module, function, lambda source, own=own, **options: given.append(source) or own(source, **options)
        )
    assert read_table(tmp_path / name).X.ravel().tolist() == [1.0, 2.0]
    source = given[0]
    assert all(one is source for one in given)
    if made:  # memory of Arrow's own, around no bytes of Python's
        assert type(source) is pa.BufferReader
        assert made == [source.size()]
    else:
        assert type(source) is pa.OSFile


@pytest.mark.parametrize(
    ("name", "lines", "place"),
    [
        ("a.tsv", ['1;0;"a;1', "1;1;b;2", '1;0;c";3', "2;0;d;4"], "a.tsv, line 2: row 1"),
        ("b.tsv", ["1;0;a;1;x", '1;1;b;2;"say', "1;0;c;3;y", "2;0;d;4;z"], "b.tsv, line 3: row 2"),
        ("c.csv", ["1;0;a;1", '1;1;"b;2', '1;0;c";3'], "c.csv, line 3: row 2"),
        ("d.csv", ["1;0;a;1;x", '1;1;b;2;"say', "1;0;c;3;y"], "d.csv, line 3: row 2"),
        ("e.csv", ["", '1;0;"a;1', '1;1;b";2'], "e.csv: row 1"),  # blank lines: which line it is, is not known
        ("f.tsv", ["1;0;a;1", '1;1;"b;2', "1;0;c;3"], "Row #3: Expected 4 columns"),
    ],
)
def test_a_quotation_mark_that_is_not_closed_swallows_no_lines(tmp_path, name, lines, place):
    pytest.importorskip("pyarrow")
    header = "qid;y;docid;f" + ";comment" * (lines[0].count(";") == 4)
    text = "".join(f"{line}\n" for line in [header, *lines]).replace(";", "\t" if name.endswith("tsv") else ",")
    (tmp_path / name).write_text(text)
    with pytest.raises(DataFileError) as raised:
        read_table(tmp_path / name)
    assert place in str(raised.value)


def test_a_text_of_several_lines_may_stand_before_other_cells_of_the_last_row(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.csv").write_text('qid,y,comment,f\n1,1,x,0.5\n1,0,"two\nlines",0.25\n')
    assert read_table(tmp_path / "a.csv").comments.tolist() == ["x", "two\nlines"]


def test_a_cell_in_quotation_marks_may_hold_tabs_and_lines(tmp_path):
    pytest.importorskip("pyarrow")
    path, comments = tmp_path / "a.tsv", ["a\tb", "two\tof\nlines", "plain", 'say ""\t""\n\tno']
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, "excel-tab", lineterminator="\n")
        writer.writerows([["qid", "y", "comment", "f"], *([1, k, text, 0.5] for k, text in enumerate(comments))])
    assert read_table(path).comments.tolist() == comments
    path.write_text('id\ttext\na\t"one\tand\nmore\tthan\tthat"\nb\ttwo\n')
    assert [document.text["text"] for document in read_documents(path)] == ["one\tand\nmore\tthan\tthat", "two"]


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_cells_of_several_lines_may_span_blocks(tmp_path, ending):
    pytest.importorskip("pyarrow")
    path, n = tmp_path / f"a.{ending}", 120_000
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t" if ending == "tsv" else ",", lineterminator="\n")
        writer.writerows([["qid", "y", "comment"], *([k // 10, 1, f"two\nlines {k}"] for k in range(n))])
    assert read_table(path).comments[-1] == f"two\nlines {n - 1}"


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("last", ["\n", ""])
def test_comments_of_several_lines_stay(tmp_path, ending, last):
    pytest.importorskip("pyarrow")
    lines = ["qid;y;docid;f;comment", '1;0;a"b;1;"two', 'lines"', "", '1;1;"b";2;"""three""', "", 'lines"']
    path = tmp_path / f"a.{ending}"
    path.write_text("\n".join(lines).replace(";", "\t" if ending == "tsv" else ",") + last)
    data = read_table(path)
    assert data.doc_ids.tolist() == ['a"b', "b"]
    assert data.comments.tolist() == ["two\nlines", '"three"\n\nlines']


def test_text_columns_with_a_role_are_not_proposed_as_categories(tmp_path):
    rng = np.random.default_rng(0)
    for trial in range(20):
        m, n = int(rng.integers(4, 30)), int(rng.integers(3, 12))
        qid = np.repeat(np.arange(m), n)
        things = np.concatenate([rng.choice(40, n, replace=False) for _ in range(m)])
        grade = rng.integers(0, 3, m * n)
        grade[:3] = 0, 1, 2
        frame = pd.DataFrame({
            "qid": qid, "y": grade, "shown text": [f"query {q}" for q in qid], "thing": [f"B{k:04}" for k in things],
            "word": [("bad", "good", "good")[g] for g in grade], "rater": rng.choice(["ann", "bob"], m * n),
            "seen": [f"2024-01-{k % 28 + 1:02}" for k in things], "brand": rng.choice(["acme", "bolt", "cord"], m * n),
            "bm25": rng.random(m * n),
        })  # fmt: skip
        frame.to_csv(tmp_path / "t.csv", index=False)
        with pytest.raises(DataFileError) as failed:
            read_table(tmp_path / "t.csv")
        solution = {"document": "thing", "categories": ["brand"], "exclude": ["shown text", "word", "rater", "seen"]}
        assert failed.value.__cause__.solution == solution, trial
        assert [one.arguments for one in failed.value.remedies] == [solution]


@pytest.mark.parametrize("first", ["sep=,", "# made by a tool", "SEP=;\r"])
def test_a_line_above_the_header_is_named(tmp_path, first):
    path = tmp_path / "a.csv"
    path.write_text(f"{first}\nqid,y,f\n1,0,1\n1,1,2\n")
    with refused(DataFileError, code="no-header", path=str(path)):
        read_table(path)
    path.write_text("#qid,y,f\n1,0,1\n1,1,2\n")  # a name may begin with the mark of a comment
    assert read_table(path, query="#qid").n_rows == 2


@pytest.mark.parametrize("cell", [[1, 2], [], {"a": 1}, [["x"]]])
@pytest.mark.parametrize("role", ["feature", "category", "grade"])
@pytest.mark.parametrize("make", ["parquet", "arrow", "pandas"])
def test_lists_and_structs_are_no_cells(tmp_path, cell, role, make):
    table = pa.table({"qid": [1, 1], "y": [0, 1], "f": [0.5, 1.5], "other": [cell, cell]})
    source = tmp_path / f"a.{make}"
    if make == "parquet":
        pq = pytest.importorskip("pyarrow.parquet")
        if cell == []:
            table = table.set_column(3, "other", pa.array([cell, cell], pa.list_(pa.int64())))
        pq.write_table(table, source)
    elif make == "arrow":
        pytest.importorskip("pyarrow.feather").write_feather(table, source, compression="uncompressed")
    else:
        source = table.to_pandas()
    given = {"category": {"categories": ["other"]}, "grade": {"grade": "other"}}.get(role, {})
    with pytest.raises(
        InvalidInputError if make == "pandas" else DataFileError, match="one value in each row, but row 1"
    ) as caught:
        read_table(source, **given)
    assert role == "grade" or [own.arguments for own in caught.value.remedies] == [{"exclude": ["other"]}]
    assert read_table(source, exclude=["other"]).feature_names == ["f"]


@pytest.mark.parametrize(
    "read", [read_table, lambda frame, **own: RowsAt(frame, of_caller=True, **own).read(graded=True)]
)
def test_an_error_of_columns_lists_the_grade_with_the_query(read):
    """The same for Python and for commands that require grades; a grade of an unusual name becomes no feature."""
    columns = {"session": ["s1", "s1", "s2", "s2"], "article": ["a1", "a2", "a1", "a3"], "useful": [0, 1, 2, 0]}
    frame = pd.DataFrame(columns | {"sim": [0.5, 1.0, 2.0, 3.5]})
    with refused(InvalidInputError, code="columns") as caught:
        read(frame)
    assert "(grade)" in str(caught.value)
    own = {name: value for one in caught.value.remedies for name, value in one.arguments.items()}
    assert own == {"query": "session", "grade": ..., "document": "article"}
    data = read(frame, **own | {"grade": "useful"})
    assert data.feature_names == ["sim"]
    with refused(InvalidInputError, code="columns") as caught:  # rows to score
        read_table(frame, graded=False)
    assert "(grade)" not in str(caught.value)
