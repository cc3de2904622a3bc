"""Readers of damaged, hostile and unusual files: what they say, and how much memory they take to say it."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from support.refusals import refused
from truerank import cli
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.io.group_sizes import read_group_sizes
from truerank.io.letor import store
from truerank.io.letor.read import read_letor
from truerank.io.scores import read_scores
from truerank.io.streams import MAX_LINE, Source
from truerank.io.tables import read_table
from truerank.io.trec import read_qrels, read_run


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b"1\ninf\n", {"code": "not-a-number", "line": 2}),
        (b"1\n-Infinity\n", {"code": "not-a-number", "line": 2}),
        (b"1\nnan\n", {"code": "not-a-number", "line": 2}),
        (b"1e400\n", {"code": "too-large", "line": 1}),
        (b"1\n1_0\n", {"code": "not-a-number", "line": 2}),
        (b"1\n0x10\n", {"code": "not-a-number", "line": 2}),
        (b"1 2\n\n", {"code": "not-a-number", "line": 1}),
        (b"1\n2 3\n4\n\n", {"code": "not-a-number", "line": 2}),
        (b"1\n\n2\n", {"code": "blank", "line": 2}),
        (b"1\n2\0\n", {"code": "nul", "line": 2}),
        ("1\n٣\n".encode(), {"code": "not-a-number", "line": 2}),
        (b"1\r2\n", {"code": "not-a-number", "line": 1}),
    ],
)
def test_score_files_take_one_finite_decimal_number_a_line(text, what):
    with refused(DataFileError, **what):
        read_scores(io.BytesIO(text))


def test_a_blank_line_between_blocks_of_scores_is_found():
    text = b"1.25\n" * 300_000
    with refused(DataFileError, code="blank", line=300001):
        read_scores(io.BytesIO(text + b"\n" + text))


@pytest.mark.parametrize("text", [b"1\n-2.5e-3\n.5\n1.\n+4\n", b"1\r\n-2.5e-3\r\n .5 \n1.\n+4\n\n\n"])
def test_scores_that_are_fine(text):
    np.testing.assert_array_equal(read_scores(io.BytesIO(text)), [1, -2.5e-3, 0.5, 1.0, 4.0])


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.zip", None, "zip archive.*unzip"),
        ("a.txt", bz2.compress(b"1 qid:1 1:1\n"), "bzip2 archive.*bunzip2"),
        ("a.txt", bz2.compress(b"1 qid:1 1:1\n", 1), "bzip2 archive.*bunzip2"),
        ("a.txt", b"7z\xbc\xaf\x27\x1c rest", "7z archive"),
    ],
)
def test_archives_that_are_not_read_say_how_to_unpack_them(tmp_path, name, content, what):
    if content is None:
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("a.txt", "1 qid:1 1:1\n")
    else:
        (tmp_path / name).write_bytes(content)
    for read in (read_letor, read_run, read_qrels, read_scores, read_group_sizes):
        with refused(DataFileError, code="archive"):
            read(tmp_path / name)


def test_numbers_of_five_thousand_digits():
    digits = b"9" * 5000
    assert read_letor(io.BytesIO(b"1 qid:" + digits + b" 1:1\n")).qid.tolist() == [digits.decode()]
    for read, text in (
        (read_letor, b"1 qid:1 " + digits + b":1\n"),
        (read_letor, b"1 qid:1 1:" + digits + b"\n"),
        (read_letor, digits + b" qid:1 1:1\n"),
        (read_scores, digits + b"\n"),
        (read_group_sizes, digits + b"\n"),
        (read_qrels, b"1 0 d " + digits + b"\n"),
        (read_run, b"1 Q0 d 1 " + digits + b" t\n"),
    ):
        with refused(DataFileError, line=1) as caught:
            read(io.BytesIO(text))
        assert len(str(caught.value)) < 300


def test_a_nul_byte_is_seen_before_the_line_ends():
    class Endless:
        name = "endless"
        taken = 0

        def read(self, size):
            self.taken += size
            return b"1 qid:1 1:1\nabc" + b"\0" * size if self.taken == size else b"\0" * size

    source = Endless()
    with refused(DataFileError, code="nul", line=2):
        read_letor(source)
    assert source.taken < 4 << 20


def test_the_length_of_lines_is_bounded_and_an_option():
    text = b"1 qid:1 1:1\n0 qid:1 1:1 # " + b"x" * 1000 + b"\n"
    assert read_letor(io.BytesIO(text)).n_rows == 2
    assert read_letor(io.BytesIO(text), max_line=1100).n_rows == 2
    with refused(DataFileError, line=2, code="long-line", remedy={"max_line": ...}):
        read_letor(io.BytesIO(text), max_line=1000)
    with refused(InvalidInputError, argument="max_line"):
        read_letor(io.BytesIO(text), max_line=0)
    for length, fine in ((999, True), (1000, True), (1001, False)):
        for tail in (b"\n", b"", b"\nab\n"):
            with Source(io.BytesIO(b"ab\n" + b"x" * length + tail), 1000) as stream:
                if fine:
                    assert b"".join(stream.line_blocks()) == b"ab\n" + b"x" * length + tail
                else:
                    with refused(DataFileError, code="long-line", line=2):
                        list(stream.line_blocks())


def bomb(kind: str, path: str, megabytes: int) -> None:
    """An archive of `x` without a line end."""
    piece = b"x" * (1 << 20)
    if kind == "zst":
        zstandard = pytest.importorskip("zstandard")
        with open(path, "wb") as raw, zstandard.ZstdCompressor(level=19).stream_writer(raw) as stream:
            for _ in range(megabytes):
                stream.write(piece)
        return
    with gzip.open(path, "wb", 3) if kind == "gz" else lzma.open(path, "wb", preset=0) as stream:
        for _ in range(megabytes):
            stream.write(piece)


PEAK = """
import resource, sys
from truerank.io.letor.read import read_letor
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_letor(sys.argv[1])
except ValueError as error:
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10, error)
"""


@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_bombs_take_little_memory(kind, tmp_path):
    path = str(tmp_path / f"bomb.{kind}")
    bomb(kind, path, 300)
    assert os.path.getsize(path) < 2 << 20
    out = subprocess.run([sys.executable, "-c", PEAK, path], capture_output=True, text=True, check=True).stdout
    megabytes, _, error = out.partition(" ")
    assert int(megabytes) < 200, out
    assert f"more than {MAX_LINE} bytes" in error


def test_archives_in_pieces_give_what_they_hold(tmp_path):
    rng = np.random.default_rng(0)
    text = b"".join(b"%d qid:%d 1:%d\n" % tuple(row) for row in rng.integers(0, 50, (15_000, 3)).tolist())
    text = b"".join(sorted(text.splitlines(True), key=lambda line: int(line.split()[1][4:])))
    plain = read_letor(io.BytesIO(text))
    packed = {"gz": gzip.compress, "xz": lzma.compress}
    try:
        import zstandard

        packed["zst"] = zstandard.ZstdCompressor().compress
    except ImportError:
        pass
    for pack in packed.values():
        half = text.index(b"\n", len(text) // 2) + 1
        for archive in (pack(text), pack(text[:half]) + pack(text[half:])):
            data = read_letor(io.BytesIO(archive))
            np.testing.assert_array_equal(data.X, plain.X)
            np.testing.assert_array_equal(data.qid, plain.qid)
            with refused(DataFileError, code="damaged-archive"):
                read_letor(io.BytesIO(archive[: len(archive) * 2 // 3]))


def test_one_damaged_index_does_not_make_a_huge_matrix(monkeypatch):
    monkeypatch.setattr(store, "LARGE_MATRIX", 1 << 21)
    text = b"1 qid:1 1:1 2:2\n" * 3000 + b"1 qid:1 65536:1\n"
    with refused(DataFileError, line=3001, code="too-wide", remedy={"n_features": 65536}):
        read_letor(io.BytesIO(text))
    assert read_letor(io.BytesIO(text), sparse=True).n_features == 65536
    assert read_letor(io.BytesIO(text[-17:] * 3)).n_features == 65536  # small all the same


def test_table_errors_name_the_file_and_rows_from_one(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "t.csv"
    path.write_text("qid,y,f\n1,0,1\n1,1,\n")
    with refused(DataFileError, code="columns"):
        read_table(path)
    path = tmp_path / "lists.parquet"
    parquet.write_table(pa.table({"qid": [[1], [2]], "y": [0, 1], "f": [1.0, 2.0]}), path)
    with refused(DataFileError, argument="column 'qid'"):
        read_table(path)
    parquet.write_table(pa.table({"qid": ["a", None], "y": [0, 1], "f": [1.0, 2.0]}), path)
    with pytest.raises(DataFileError, match=r"no query id in row 2|missing in row 2"):
        read_table(path)


def test_rank_says_which_document_id_is_missing(tmp_path, capsys):
    path = tmp_path / "d.txt"
    path.write_text("1 qid:1 1:1 # docid = a\n0 qid:1 1:2\n")
    model = str(tmp_path / "m.json")
    assert cli.main(["train", str(path), "--ranker", "single-feature", "--model", model]) == 0
    capsys.readouterr()
    assert cli.main(["predict", "--format", "run", model, str(path)]) == 1
    error = capsys.readouterr().err
    assert "row 2 (query 1) has no document id" in error
    assert "docid = <id>" in error


def test_many_small_files_are_read_by_compiled_code_as_one_file_is(tmp_path, monkeypatch):
    from truerank.io.letor import kernel, read

    blocks = []
    honest = kernel.BlockParser.parse
    monkeypatch.setattr(kernel.BlockParser, "parse", lambda self, text: blocks.append(text) or honest(self, text))
    monkeypatch.setattr(read, "KERNEL_AFTER_LOADED", 1 << 16)
    monkeypatch.setattr(read, "KERNEL_AFTER", 1 << 16)
    paths = []
    for k in range(20):
        paths.append(tmp_path / f"{k}.txt")
        paths[-1].write_text(f"1 qid:{k} 1:{k} 2:1\n" * 600)
    data = read_letor(paths)
    assert data.n_rows == 12_000
    assert data.X[:, 0].tolist() == [k for k in range(20) for _ in range(600)]
    assert len(blocks) >= 13


def test_nothing_to_evaluate_is_an_error(tmp_path, capsys):
    (tmp_path / "q").write_text("1 0 a 1\n")
    (tmp_path / "r").write_text("2 Q0 a 1 1 t\n")
    assert cli.main(["evaluate", "--qrels", str(tmp_path / "q"), "--run", str(tmp_path / "r")]) == 1
    assert "no topic" in capsys.readouterr().err
    pytest.importorskip("pyarrow")
    (tmp_path / "t.csv").write_text("qid,y,f\n")
    (tmp_path / "s").write_text("")
    assert cli.main(["evaluate", "--data", str(tmp_path / "t.csv"), "--scores", str(tmp_path / "s")]) == 1
    assert "t.csv: the file holds no rows" in capsys.readouterr().err
