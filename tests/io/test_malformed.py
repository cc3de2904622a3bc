"""Malformed files and arguments, each with the message that it gets."""

from __future__ import annotations

import gzip
import io
import lzma
import re

import pytest

from truerank import iter_letor, read_letor, read_qrels, read_run
from truerank.cli import main
from truerank.core.errors import TruerankError
from truerank.io.group_sizes import read_group_sizes

GOOD = "1 qid:1 1:0.5 2:1 # docid = D\n"

# LETOR text, options of reading, the whole message ("f" is the file).
LETOR = [
    ("", {}, "f: the file holds no rows"),
    ("\n\n  \n# only a comment\n", {}, "f: the file holds no rows"),
    ("x qid:1 1:1\n", {}, "f, line 1, column 1: expected a grade, got 'x'"),
    ("nan qid:1 1:1\n", {}, "f, line 1, column 1: expected a grade, got 'nan'"),
    ("NULL qid:1 1:1\n", {"missing": "nan"}, "f, line 1, column 1: expected a grade, got 'NULL'"),
    ("inf qid:1 1:1\n", {}, "f, line 1, column 1: expected a grade, got 'inf'. Infinite values are not accepted"),
    ("1e999 qid:1 1:1\n", {}, "f, line 1, column 1: '1e999' is too large for a 64-bit number"),
    ("1_0 qid:1 1:1\n", {}, "f, line 1, column 1: expected a grade, got '1_0'"),
    ("0x1 qid:1 1:1\n", {}, "f, line 1, column 1: expected a grade, got '0x1'"),
    ("qid:1 1:1\n", {}, "f, line 1, column 1: expected a grade, got 'qid:1'"),
    ("1\n", {}, "f, line 1, column 2: expected 'qid:<id>' after the grade, got the end of the line"),
    ("1 # qid:1\n", {}, "f, line 1, column 2: expected 'qid:<id>' after the grade, got the end of the line"),
    (GOOD + "1 1:0.3\n", {}, "f, line 2, column 3: expected 'qid:<id>' after the grade, got '1:0.3'"),
    ("1 QID:1 1:1\n", {}, "f, line 1, column 3: expected 'qid:<id>' after the grade, got 'QID:1'"),
    ("1 qid=1 1:1\n", {}, "f, line 1, column 3: expected 'qid:<id>' after the grade, got 'qid=1'"),
    ("1 1:1 qid:1\n", {}, "f, line 1, column 3: expected 'qid:<id>' after the grade, got '1:1'"),
    (
        "1 qid: 7 1:1\n",
        {},
        "f, line 1, column 3: expected 'qid:<id>', got no id after 'qid:' (no space may follow the colon)",
    ),
    (
        "1 qid:1 0:5\n",
        {},
        "f, line 1, column 9: feature index 0 is below 1, but indices start at 1. Number the features from 1",
    ),
    ("1 qid:1 -1:5\n", {}, "f, line 1, column 9: feature index '-1' is below 1, but indices start at 1"),
    ("1 qid:1 1:5 1:5\n", {}, "f, line 1, column 13: feature 1 occurs twice, but indices must ascend within a line"),
    ("1 qid:1 2:5 1:5\n", {}, "f, line 1, column 13: feature 1 follows 2, but indices must ascend within a line"),
    ("1 qid:1 1.5:5\n", {}, "f, line 1, column 9: expected '<feature>:<value>', got '1.5:5'"),
    ("1 qid:1 a:5\n", {}, "f, line 1, column 9: expected '<feature>:<value>', got 'a:5'"),
    ("1 qid:1 :5\n", {}, "f, line 1, column 9: expected '<feature>:<value>', got ':5'"),
    ("1 qid:1 +1:5\n", {}, "f, line 1, column 9: expected '<feature>:<value>', got '+1:5'"),
    ("1 qid:1 5\n", {}, "f, line 1, column 9: expected '<feature>:<value>', got '5'"),
    ("1 qid:1 1: 5\n", {}, "f, line 1, column 9: expected a number as the value of feature 1, got nothing"),
    ("1 qid:1 1:x\n", {}, "f, line 1, column 9: expected a number as the value of feature 1, got 'x'"),
    ("1 qid:1 1:2:3\n", {}, "f, line 1, column 9: expected a number as the value of feature 1, got '2:3'"),
    ("1 qid:1 1:1,5\n", {}, "f, line 1, column 9: expected a number as the value of feature 1, got '1,5'"),
    ("1 qid:1 1:--1\n", {}, "f, line 1, column 9: expected a number as the value of feature 1, got '--1'"),
    ("1 qid:1 1:1e\n", {}, "f, line 1, column 9: expected a number as the value of feature 1, got '1e'"),
    ("1 qid:1 1:.\n", {}, "f, line 1, column 9: expected a number as the value of feature 1, got '.'"),
    (
        "1 qid:1 1:inf\n",
        {"missing": "nan"},
        "f, line 1, column 9: expected a number as the value of feature 1, got 'inf'. Infinite values are not accepted",
    ),
    (
        "1 qid:1 1:-Infinity\n",
        {},
        "f, line 1, column 9: expected a number as the value of feature 1, got '-Infinity'. Infinite values are not "
        "accepted",
    ),
    (
        GOOD + "1 qid:1 1:1 2:NULL\n",
        {},
        "f, line 2, column 13: a number as the value of feature 2 is 'NULL'. Pass missing=\"nan\" if that "
        "marks a missing value",
    ),
    (
        "1 qid:1 1:nan\n",
        {},
        "f, line 1, column 9: a number as the value of feature 1 is 'nan'. Pass missing=\"nan\" if that "
        "marks a missing value",
    ),
    ("1 qid:1 1:1e400\n", {}, "f, line 1, column 9: '1e400' is too large for a 64-bit number"),
    (
        "1 qid:1 1:1e39\n",
        {"dtype": "float32"},
        "f, line 1: value 1e+39 of feature 1 is too large for float32. Read the file with dtype=float64",
    ),
    ("1 qid:1 2147483648:1\n", {}, "f, line 1, column 9: feature index '2147483648' exceeds the largest, 2147483647"),
    (
        f"1 qid:1 {'9' * 60}:1\n",
        {},
        f"f, line 1, column 9: feature index '{'9' * 40}…' exceeds the largest, 2147483647",
    ),
    (
        "1 qid:1 70000:1\n",
        {},
        "f, line 1: feature index 70000 would make a dense matrix of 70000 columns. Pass sparse=True, or pass "
        "n_features=70000 if that is meant",
    ),
    ("#\n\n" + GOOD + "1 qid:1 3:1\n" + GOOD, {"n_features": 2}, "f, line 4: feature 3 occurs, but n_features is 2"),
    ("# features: a b\n1 qid:1 3:1\n", {}, "f, line 2: feature 3 occurs, but the header line names 2"),
    (
        "# features: a b\n1 qid:1 1:1\n",
        {"n_features": 3},
        "f, line 1: got 2 feature names for 3 features. Name each of them",
    ),
    (
        GOOD + "1 qid:1\x00 1:1\n",
        {},
        "f, line 2, column 8: there is a NUL byte: the file is damaged or not text. Convert UTF-16 to UTF-8",
    ),
    (
        "1 qid:1 1:1\r2 qid:1 1:1\r",
        {},
        "f, line 1, column 12: the line has a carriage return. End lines with LF or CRLF",
    ),
    (
        "1 qid:1 1:1 # docid = a\r2 qid:1 1:1\n",
        {},
        "f, line 1, column 24: the line has a carriage return. End lines with LF or CRLF",
    ),
    (
        b"1 qid:1 1:1 # caf\xe9\n",
        {},
        "f, line 1, column 18: byte 0xE9 is not UTF-8; convert the file to UTF-8. "
        "For a file of Windows type: iconv -f CP1252 -t UTF-8 f > utf8-f (CP1250 for Polish or Czech)",
    ),
    (
        GOOD.encode("utf-16")[:-1],
        {},
        "f, line 1: the text is damaged UTF-16 ('utf-16-le' codec can't decode byte 0x0a in position 0: truncated data)"
        ". Export the file again, as UTF-8",
    ),
    ("qid,y,a\n1,0,2\n", {}, "f, line 1, column 1: expected a grade, got 'qid,y,a'"),
    ('{"rows": []}\n', {}, "f, line 1, column 1: expected a grade, got '{\"rows\":'"),
    ("1 qid:1 1:1 ١:2\n", {}, "f, line 1, column 13: expected '<feature>:<value>', got '١:2'"),
    ("1 qid:1 1:1 2:1 x # c\n", {}, "f, line 1, column 17: expected '<feature>:<value>', got 'x'"),
    (GOOD, {"missing": "drop"}, "missing must be one of 'error', 'nan', 'zero', got 'drop'"),
    (GOOD, {"dtype": "int32"}, "dtype must be float32 or float64, got 'int32'"),
    (GOOD, {"n_features": -1}, "n_features must be an integer >= 0, got -1"),
]


def stream(text: str | bytes) -> io.BytesIO:
    result = io.BytesIO(text if isinstance(text, bytes) else text.encode())
    result.name = "f"
    return result


@pytest.mark.parametrize(("text", "options", "message"), LETOR, ids=[str(k) for k in range(len(LETOR))])
def test_letor_text(text, options, message):
    with pytest.raises(TruerankError) as caught:
        read_letor(stream(text), **options)
    assert str(caught.value) == message


ARCHIVES = [
    (gzip.compress(GOOD.encode() * 99)[:-9], r"f: the gzip archive is damaged or truncated after \d+ bytes \(.*\)"),
    (lzma.compress(GOOD.encode() * 99)[:-9], r"f: the xz archive is damaged or truncated after \d+ bytes \(.*\)"),
    (gzip.compress(GOOD.encode())[:10] + b"\xff" * 40, r"f: the gzip archive is damaged .* \(.*invalid.*\)"),
    (gzip.compress(GOOD.encode()) + b"rubbish", r"f: the gzip archive is damaged .*"),
    (b"\x28\xb5\x2f\xfd" + b"\0" * 9, r"f: the zstd archive is damaged .*"),
]


@pytest.mark.parametrize(("data", "message"), ARCHIVES, ids=["gzip cut", "xz cut", "gzip bits", "gzip tail", "zstd"])
def test_archives(data, message):
    if data.startswith(b"\x28"):
        pytest.importorskip("zstandard")
    with pytest.raises(TruerankError, match=message):
        read_letor(stream(data))


OTHERS = [
    (read_run, "", "f: the file has no rows. Expected lines 'topic Q0 docno rank score tag'"),
    (read_run, "1 Q0 d 1 2\n", "f, line 1: expected 6 columns 'topic Q0 docno rank score tag', got 5: '1 Q0 d 1 2'"),
    (read_run, "1 Q0 d 1 two t\n", "f, line 1: expected a score (a finite number), got 'two'"),
    (read_run, "1 Q0 d 1 inf t\n", "f, line 1: expected a score (a finite number), got 'inf'"),
    (
        read_run,
        "1 Q0 d 1 2 t\n1 Q0 d 2 1 t\n",
        "f, line 2: document 'd' is listed twice for topic '1'; a topic lists a document once. Remove a line",
    ),
    (read_qrels, "", "f: the file has no rows. Expected lines 'topic iteration docno grade'"),
    (read_qrels, "1 d 1\n", "f, line 1: expected 4 columns 'topic iteration docno grade', got 3: '1 d 1'"),
    (read_qrels, "1 0 d ?\n", "f, line 1: expected a grade (a finite number), got '?'"),
    (
        read_qrels,
        "1 0 d 1\r1 0 e 1\r",
        "f, line 1, column 8: the line has a carriage return. End lines with LF or CRLF",
    ),
    (read_group_sizes, "3\n0\n", "f, line 2: expected a group size (an integer >= 1), got '0'"),
    (read_group_sizes, "3\n-2\n", "f, line 2: expected a group size (an integer >= 1), got '-2'"),
    (lambda s: list(iter_letor(s)), "\n", "f: the file holds no rows"),
    (
        lambda s: list(iter_letor(s, block_rows=1)),
        "1 qid:1 1:1\n1 qid:2 2:1\n",
        "f: feature 2 occurs, but n_features is 1",
    ),
    (lambda s: list(iter_letor(s, block_rows=0)), GOOD, "block_rows must be an integer >= 1, got 0"),
]


@pytest.mark.parametrize(("read", "text", "message"), OTHERS, ids=[str(k) for k in range(len(OTHERS))])
def test_other_files(read, text, message):
    with pytest.raises(TruerankError) as caught:
        read(stream(text))
    assert str(caught.value) == message


# Arguments of the command line ({d} is a folder with good.txt, bad.txt, sizes.txt), exit code, the message's pattern.
COMMANDS = [
    ("describe", 2, "the following arguments are required: DATA"),
    ("describe {d}/none.txt", 1, r"truerank describe: .*none\.txt: No such file or directory"),
    ("describe {d}/bad.txt", 1, r"bad\.txt, line 2, column 3: expected 'qid:<id>' after the grade, got '1:0.3'"),
    ("describe {d}/empty", 1, "empty: the folder contains no data files"),
    ("describe --missing none {d}/good.txt", 2, "argument --missing: invalid choice: 'none'"),
    ("describe --nonsense {d}/good.txt", 2, "unknown argument '--nonsense'"),
    ("evaluate --qrel {d}/good.txt", 2, "unknown argument '--qrel'. Did you mean '--qrels'"),
    (
        "evaluate --qrels {d}/good.txt a.run b.run",
        2,
        "evaluate accepts one system, but got 2: a.run, b.run",
    ),
    ("convert {d}/good.txt", 2, "the following arguments are required: OUT"),
    ("convert {d}/good.txt {d}/none/out.txt", 1, "the folder .*none does not exist. Create it first"),
    ("convert {d}/good.txt {d}/empty", 1, "is a folder. Name a file"),
    ("convert {d}/good.txt - --to lightgbm", 2, "--to lightgbm cannot write to standard output .-.. Name a file"),
    ("convert {d}/good.txt {d}/out.txt --to table", 2, r"out\.txt: a table's name must end in \.csv"),
    ("convert {d}/good.txt {d}/out.txt --to arff", 2, "argument --to: invalid choice: 'arff'"),
    ("convert {d}/good.txt {d}/out.txt --n-features 0", 2, "--n-features: must be a whole number of at least 1, got 0"),
    ("convert {d}/good.txt {d}/out.txt --n-features 1", 1, r"good\.txt, line 1: feature 2 occurs, but n_features is 1"),
    (
        "convert {d}/good.txt {d}/out.txt --n-features x",
        2,
        "--n-features: must be a whole number of at least 1, got x",
    ),
    ("convert {d}/good.txt {d}/out.txt --groups {d}/sizes.txt", 1, "line 1: the line has a qid, but group sizes"),
    ("convert {d}/plain.txt {d}/out.txt --groups {d}/sizes.txt", 1, r"plain\.txt: the file has 1 row, but the group"),
    (
        "convert {d}/broken.txt {d}/out.txt --groups {d}/sizes.txt",
        1,
        r"broken\.txt, line 2: expected a number as the value of feature 1, got 'x'",
    ),
    ("convert {d}/plain.txt {d}/out.txt --groups {d}/good.txt", 1, "line 1: expected a group size"),
    ("convert {d}/plain.txt {d}/out.txt --to qrels", 1, "expected 'qid:<id>' after the grade"),
    ("convert {d}/t.csv {d}/out.txt --sparse", 2, "--groups, --sparse and --n-features are for LETOR text"),
    ("convert {d}/t.csv {d}/out.txt", 1, r"the table has no column 'qid' \(query\); 'topic' is probably the query"),
    ("convert {d}/t.csv {d}/out.txt --query-column topic --grade-column z", 1, "the table has no column 'z'"),
    ("convert {d}/t.csv {d}/out.txt --query-column topic --to qrels", 1, "queries without documents"),
    ("convert {d}/t.parquet {d}/out.txt", 1, r"t\.parquet: cannot be read as parquet"),
    ("describe-all {d}/good.txt", 2, "unknown command 'describe-all'. Did you mean 'describe'"),
    ("", 2, "no command is given\ntry: truerank --help"),
]


@pytest.mark.parametrize(("line", "code", "message"), COMMANDS, ids=[line or "nothing" for line, _, _ in COMMANDS])
def test_command_lines(line, code, message, tmp_path, capsys):
    if "t." in line:
        pytest.importorskip("pyarrow")
    (tmp_path / "empty").mkdir()
    (tmp_path / "good.txt").write_text(GOOD)
    (tmp_path / "bad.txt").write_text(GOOD + "1 1:0.3\n")
    (tmp_path / "plain.txt").write_text("1 1:0.5\n")
    (tmp_path / "broken.txt").write_text("1 1:0.5\n0 1:x\n1 1:2\n")
    (tmp_path / "sizes.txt").write_text("1\n2\n")
    (tmp_path / "t.csv").write_text("topic,y,a\n1,0,2\n")
    (tmp_path / "t.parquet").write_text("no parquet")
    before = sorted(tmp_path.iterdir())
    try:
        result = main(line.format(d=tmp_path).split())
    except SystemExit as stop:  # argparse
        result = stop.code
    out, err = capsys.readouterr()
    assert result == code, err
    assert re.search(message, err), err
    assert "Traceback" not in err
    assert out == ""
    assert sorted(tmp_path.iterdir()) == before  # nothing was left half-written


def test_there_are_sixty():
    assert len(LETOR) + len(ARCHIVES) + len(OTHERS) + len(COMMANDS) >= 60
