"""Reading and writing LETOR text."""

from __future__ import annotations

import gzip
import io
import lzma
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from support.refusals import refused
from truerank import RankingData, iter_letor, read_letor, write_letor
from truerank.core.errors import DataFileError, InvalidInputError, TruerankWarning
from truerank.io.letor.grammar import split_comment

TEXT = (
    "2 qid:10 1:0.5 2:-1e-3 4:7 # docid = GX1-2 inc = 1 prob = 0.5\n"
    "0 qid:10 1:.25 3:2. # docid = GX1-3\n"
    "\n"
    "# a comment line\n"
    "1.5\tqid:3\t2:1E2\t#docid=GX1-2"
)


def read(text: str | bytes, **options) -> RankingData:
    return read_letor(io.BytesIO(text.encode() if isinstance(text, str) else text), **options)


def test_values_grades_queries_ids_and_comments():
    data = read(TEXT)
    np.testing.assert_array_equal(data.X, [[0.5, -0.001, 0, 7], [0.25, 0, 2, 0], [0, 100, 0, 0]])
    assert data.y.tolist() == [2, 0, 1.5]
    assert data.query_ids.tolist() == [10, 3]
    assert data.query_ids.dtype == np.int64
    assert data.offsets.tolist() == [0, 2, 3]
    assert data.doc_ids.tolist() == ["GX1-2", "GX1-3", "GX1-2"]
    assert data.comments.tolist() == ["inc = 1 prob = 0.5", "", ""]
    assert isinstance(data.doc_ids[0], str)
    assert data.order is None


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.replace("\n", "\r\n"),
        lambda t: t + "\n",
        lambda t: t + "\r",
        lambda t: "\ufeff" + t,
        lambda t: t.replace(" ", "\t"),
        lambda t: t.replace(" #", "#"),
        lambda t: t.replace(" ", "   ").replace("\n", "  \n"),
        lambda t: t.replace(" 1:", " 01:"),
    ],
    ids=["CRLF", "last newline", "CR at the end", "BOM", "tabs", "glued comment", "spaces", "leading zeros"],
)
def test_the_grammar_as_really_found(change):
    expected, data = read(TEXT), read(change(TEXT))
    np.testing.assert_array_equal(data.X, expected.X)
    assert data.doc_ids.tolist() == expected.doc_ids.tolist()
    assert data.qid.tolist() == expected.qid.tolist()


@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".zst"])
def test_compressed_files_read_and_written(tmp_path, ending):
    if ending == ".zst":
        pytest.importorskip("zstandard")
    path = tmp_path / f"data.txt{ending}"
    data = read(TEXT)
    write_letor(data, path)
    again = read_letor(path)
    np.testing.assert_array_equal(again.X, data.X)
    first = path.read_bytes()
    write_letor(data, path)
    assert path.read_bytes() == first
    if ending:
        (tmp_path / "cut").write_bytes(first[:-5])
        with refused(DataFileError, code="damaged-archive"):
            read_letor(tmp_path / "cut")


def test_archives_of_several_members_are_read_whole():
    lines = TEXT.encode().split(b"\n")
    halves = b"\n".join(lines[:3]) + b"\n", b"\n".join(lines[3:])
    for compress in (gzip.compress, lzma.compress):
        assert read(b"".join(map(compress, halves))).n_rows == 3


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(gzip.compress(TEXT.encode()))

    monkeypatch.setattr("sys.stdin", Stdin())
    assert read_letor("-").n_rows == 3


def test_queries_in_pieces_are_joined_and_said():
    text = "1 qid:b 1:1\n2 qid:a 1:2\n0 qid:b 1:3\n"
    with pytest.warns(TruerankWarning, match="queries whose rows were not adjacent were joined: 1"):
        data = read(text)
    assert data.query_ids.tolist() == ["b", "a"]
    assert data.X[:, 0].tolist() == [1, 3, 2]
    assert data.restore(data.X[:, 0]).tolist() == [1, 2, 3]
    assert data.n_joined == 1


def test_several_files_are_read_as_one(tmp_path):
    paths = [tmp_path / "a", tmp_path / "b"]
    paths[0].write_text("1 qid:1 1:1\n0 qid:2 1:2")
    paths[1].write_text("2 qid:2 1:3 2:4\n1 qid:3 1:5\n")
    data = read_letor(paths)
    assert data.X.tolist() == [[1, 0], [2, 0], [3, 4], [5, 0]]
    assert data.offsets.tolist() == [0, 1, 3, 4]


def test_query_ids_that_are_not_whole_numbers_stay_strings():
    assert read("1 qid:007 1:1\n0 qid:8 1:1\n").query_ids.tolist() == ["007", "8"]
    assert read("1 qid:9223372036854775808 1:1\n").query_ids.tolist() == ["9223372036854775808"]
    assert read("1 qid:-3 1:1\n").query_ids.tolist() == [-3]
    assert read("1 qid:é 1:1\n").query_ids.tolist() == ["é"]


def test_missing_values():
    text = "1 qid:1 1:NULL 2:nan 3:NaN 4:1\n"
    with refused(DataFileError, line=1, column=9, code="no-value", remedy={"missing": "nan"}):
        read(text)
    data = read(text, missing="nan", sparse=False)
    assert np.isnan(data.X[0]).tolist() == [True, True, True, False]
    again = io.BytesIO()
    write_letor(data, again)
    np.testing.assert_array_equal(read(again.getvalue(), missing="nan").X, data.X)


def test_sparse_and_dense_agree():
    sparse = read(TEXT + " x\n1 qid:3 3:0\n", sparse=True)
    dense = read(TEXT + " x\n1 qid:3 3:0\n")
    np.testing.assert_array_equal(sparse.X.toarray(), dense.X)
    assert sparse.X.nnz == 6
    stream = io.BytesIO()
    write_letor(sparse, stream)
    np.testing.assert_array_equal(read(stream.getvalue()).X, dense.X)


def test_width():
    assert read("1 qid:1 1:1\n", n_features=3).X.tolist() == [[1, 0, 0]]
    with refused(DataFileError, argument="n_features", line=1):
        read("1 qid:1 2:1\n", n_features=1)
    with refused(DataFileError, code="too-wide", line=1):
        read("1 qid:1 2000000000:1\n")
    assert read("1 qid:1 2000000000:1\n", sparse=True).X.shape == (1, 2_000_000_000)
    assert read("1 qid:1\n").X.shape == (1, 0)


def test_a_row_wider_than_all_before_it_keeps_the_others():
    lines = [f"0 qid:1 {i % 7 + 1}:{i + 1}\n" for i in range(3000)] + ["0 qid:1 60:1\n"]
    text = "".join(lines) * 40  # more than one block
    data = read(text)
    assert data.X.shape == (3001 * 40, 60)
    assert data.X.sum() == read(text, sparse=True).X.sum()
    assert data.X[3001 + 8, 1] == 9


def test_float32():
    data = read("1 qid:1 1:0.1 2:1e30\n", dtype="float32")
    assert data.X.dtype == np.float32
    assert data.X[0, 0] == np.float32(0.1)
    with refused(DataFileError, line=1, path="<stream>"):
        read("1 qid:1 1:0.1 2:1e39\n", dtype="float32")


def test_names_of_features_survive():
    data = RankingData([[1.0, 0.0]], [1], feature_names=["bm25", "length"])
    stream = io.BytesIO()
    write_letor(data, stream)
    assert read(stream.getvalue()).feature_names == ["bm25", "length"]
    assert read("# features: a b c\n1 qid:1 1:2\n").X.shape == (1, 3)
    with refused(DataFileError, argument="n_features", line=2):
        read("# features: a\n1 qid:1 2:2\n")


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        (b"docid = 40626", (b"40626", b"")),
        (b" docid=X  more words ", (b"X", b"more words")),
        (b"1A", (b"1A", b"")),
        (b"two words", (b"", b"two words")),
        (b" # ", (b"#", b"")),
        (b"", (b"", b"")),
        (b"docid =", (b"", b"docid =")),
    ],
)
def test_comments(comment, expected):
    assert split_comment(comment) == expected


def test_without_comments():
    data = read(TEXT, comments=False)
    assert data.comments is None
    assert data.doc_ids[0] == "GX1-2"
    stream = io.BytesIO()
    write_letor(read(TEXT), stream, comments=False)
    assert b"prob" not in stream.getvalue()


def test_the_last_column_survives_though_it_is_nowhere_written():
    data = read("1 qid:1 1:1\n0 qid:1 2:1\n", n_features=5, sparse=True)
    stream = io.BytesIO()
    write_letor(data, stream)
    assert read(stream.getvalue()).n_features == 5


floats64 = st.floats(allow_nan=True, allow_infinity=False)
floats32 = st.floats(allow_nan=True, allow_infinity=False, width=32)


@pytest.mark.parametrize(("dtype", "elements"), [(np.float64, floats64), (np.float32, floats32)], ids=["64", "32"])
@given(drawn=st.data())
def test_round_trip_gives_the_same_bits(dtype, elements, drawn):
    shape = drawn.draw(st.tuples(st.integers(1, 6), st.integers(1, 5)))
    X = drawn.draw(hnp.arrays(dtype, shape, elements=elements))
    qid = sorted(drawn.draw(st.lists(st.integers(-5, 5), min_size=shape[0], max_size=shape[0])))
    words = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=0, max_size=20)
    ids = drawn.draw(st.lists(words, min_size=shape[0], max_size=shape[0]))
    grades = drawn.draw(hnp.arrays(np.float64, shape[0], elements=st.floats(-9, 9)))
    data = RankingData(X, grades, qid, doc_ids=ids)
    stream = io.BytesIO()
    write_letor(data, stream)
    again = read(stream.getvalue(), dtype=dtype, missing="nan")
    assert np.array_equal(np.isnan(again.X), np.isnan(X))
    assert np.where(np.isnan(X), 0, again.X).tobytes() == np.where(np.isnan(X), 0, X).tobytes()
    assert again.y.tobytes() == grades.tobytes()
    assert again.qid.tolist() == qid
    assert (again.doc_ids.tolist() if any(ids) else ids) == ids


def test_what_a_file_cannot_hold_is_refused():
    def write(**options):
        write_letor(RankingData(**({"X": [[1.0]], "y": [1]} | options)), io.BytesIO())

    with refused(InvalidInputError, code="infinite"):
        write(X=[[np.inf]])
    with refused(InvalidInputError, code="query-id"):
        write(qid=["a b"])
    with refused(InvalidInputError, code="document-id"):
        write(doc_ids=["a b"])
    with refused(InvalidInputError, code="comment"):
        write(comments=["a\nb"])


def test_blocks_hold_whole_queries(tmp_path):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 30, 200)
    qid = np.repeat(np.arange(200), sizes)
    data = RankingData(rng.random((len(qid), 3)), rng.integers(0, 3, len(qid)), qid)
    path = tmp_path / "data.txt"
    write_letor(data, path)
    for block_rows in (1, 10, 64, 10**6):
        blocks = list(iter_letor(path, block_rows=block_rows))
        whole = RankingData.concatenate(blocks)
        assert np.array_equal(whole.X, data.X)
        assert np.array_equal(whole.offsets, data.offsets)
        assert np.array_equal(whole.query_ids, data.query_ids)
        assert all(block.n_rows <= block_rows or block.n_queries == 1 for block in blocks)


def test_blocks_with_queries_in_pieces_are_warned_of():
    text = "".join(f"1 qid:{i % 3} 1:{i}\n" for i in range(9))
    with pytest.warns(TruerankWarning, match="in different blocks were not joined: 3"):
        assert sum(block.n_rows for block in iter_letor(io.StringIO(text), block_rows=3)) == 9


def test_real_files(collections):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts = [collections / "letor4-mq2008" / f"S{k}.txt.gz" for k in range(1, 6)]
        data = read_letor(parts)
    assert (data.n_rows, data.n_queries, data.n_features) == (15_211, 784, 46)
    assert np.bincount(data.y.astype(int)).tolist() == [12_279, 2_001, 931]
    assert data.doc_ids[0] == "GX008-86-4444840"
    assert data.comments[0] == "inc = 1 prob = 0.086622"
    null = read_letor(collections / "letor3-ohsumed" / "null" / "S1.txt.gz", missing="nan")
    assert np.isnan(null.X).any(axis=0).sum() == 15


def test_scikit_learn_reads_the_same_from_the_same_file():
    from sklearn.datasets import load_svmlight_file

    from truerank.data.samples import sample_path

    X, y, qid = load_svmlight_file(str(sample_path()), query_id=True)
    data = read_letor(sample_path())
    assert np.array_equal(X.toarray(), data.X)
    assert np.array_equal(y, data.y)
    assert np.array_equal(qid, data.qid)


def test_what_is_written_scikit_learn_reads(tmp_path):
    from sklearn.datasets import load_svmlight_file

    rng = np.random.default_rng(0)
    data = RankingData(
        rng.normal(size=(40, 7)) * 10.0 ** rng.integers(-9, 9, 7), rng.integers(0, 3, 40), np.arange(40) // 8
    )
    write_letor(data, tmp_path / "data.txt")
    X, y, qid = load_svmlight_file(str(tmp_path / "data.txt"), query_id=True)
    np.testing.assert_allclose(X.toarray(), data.X, rtol=1e-15)
    assert np.array_equal(y, data.y)
    assert np.array_equal(qid, data.qid)


def test_document_ids_stay_compact_through_selection_and_joining():
    data = read("".join(f"1 qid:{k // 3} 1:{k} # docid = GX000-00-{k:09d}\n" for k in range(9)))
    assert data.doc_ids.dtype == np.dtypes.StringDType()
    some = RankingData.concatenate([data.take_queries([2, 0]), data.take_queries([1])])
    assert some.doc_ids.dtype == np.dtypes.StringDType()
    assert some.doc_ids[0] == "GX000-00-000000006"
    assert some.doc_ids.tolist() == [f"GX000-00-{int(k):09d}" for k in some.X[:, 0]]
