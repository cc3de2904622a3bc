"""Damaged input of every kind, the commands that meet it, and the page docs/development/damaged-input.md
of what they say.

PYTHONPATH=src:tests python tests/support/damaged_input.py > docs/development/damaged-input.md
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import os
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from support.edited_models import unsealed
from truerank.cli import main as command_line

LETOR = "".join(f"{(i * 7) % 3} qid:{i // 6} 1:{i % 5} 2:{(i * i) % 7} # docid = d{i}\n" for i in range(60))
SCORES = "".join(f"{i % 7}\n" for i in range(60))
RUN = "1 Q0 a 1 3 s\n1 Q0 b 2 2 s\n2 Q0 a 1 1 s\n"
QRELS = "1 0 a 1\n1 0 c 0\n2 0 a 0\n2 0 b 2\n"
TABLE = "qid,y,length\n1,0,0.5\n1,1,2\n"
MODEL = '{"format": "truerank-model", "version": 1, "model": '

DESCRIBE = ["describe", "file"]
TRAIN = ["train", "file", "--ranker", "ridge", "--model", "m.json"]
PREDICT = ["predict", "model.json", "file"]
LOAD = ["predict", "file", "data.txt"]
RUNS = ["evaluate", "--qrels", "qrels.txt", "--run", "file"]
JUDGED = ["evaluate", "--qrels", "file", "--run", "run.txt"]
SCORED = ["evaluate", "--data", "data.txt", "--scores", "file"]
GROUPS = ["convert", "bare.txt", "out.txt", "--groups", "file"]


@dataclass(frozen=True)
class Case:
    """One damaged file; `name` is what it is called in the command, in place of "file"."""

    what: str
    content: str | bytes
    words: list[str]
    name: str = "damaged.txt"
    needs: str = ""  # a library without which there is another message

    @property
    def command(self) -> list[str]:
        return [self.name if word == "file" else word for word in self.words]


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("data.txt", LETOR)
    return buffer.getvalue()


def edited_model(**changes: object) -> str:
    """The model of `prepare` with some of its fitted attributes changed."""
    content = unsealed(json.loads(Path("model.json").read_text()))
    for name, value in changes.items():
        content["model"]["fitted"][name] = value
    return json.dumps(content)


def cases() -> dict[str, list[Case]]:
    """By what the files are; called in the folder that `prepare` has filled."""
    packed = gzip.compress(LETOR.encode(), mtime=0)
    return {
        "LETOR text": [
            Case("empty", "", DESCRIBE),
            Case("blank and comment lines alone", "\n\n# nothing\n", DESCRIBE),
            Case("a word for a grade", "x qid:1 1:1\n", DESCRIBE),
            Case("an infinite grade", "inf qid:1 1:1\n", DESCRIBE),
            Case("a grade of 1e999", "1e999 qid:1 1:1\n", DESCRIBE),
            Case("no query id", "1 qid:1 1:1\n1 1:0.3\n", DESCRIBE),
            Case("a space after `qid:`", "1 qid: 7 1:1\n", DESCRIBE),
            Case("indices from 0", "1 qid:1 0:5\n", DESCRIBE),
            Case("a descending index", "1 qid:1 2:5 1:5\n", DESCRIBE),
            Case("an index twice", "1 qid:1 1:5 1:5\n", DESCRIBE),
            Case("a decimal comma", "1 qid:1 1:0,5\n", DESCRIBE),
            Case("a value without index", "1 qid:1 5\n", DESCRIBE),
            Case("`NULL` for a value", "1 qid:1 1:1 2:NULL\n", DESCRIBE),
            Case("an infinite value", "1 qid:1 1:inf\n", DESCRIBE),
            Case("one index of 70,000", "1 qid:1 70000:1\n", DESCRIBE),
            Case("an index beyond 32 bits", "1 qid:1 2147483648:1\n", DESCRIBE),
            Case("an index of 5,000 digits", f"1 qid:1 {'9' * 5000}:1\n", DESCRIBE),
            Case("a NUL byte", "1 qid:1 1:1\n1 qid:1\0 1:1\n", DESCRIBE),
            Case("lines that end with CR", "1 qid:1 1:1\r2 qid:1 1:1\r", DESCRIBE),
            Case("Latin-1 text", b"1 qid:1 1:1 # caf\xe9\n", DESCRIBE),
            Case("UTF-16 text, cut off", LETOR.encode("utf-16")[:-1], DESCRIBE),
            Case("a line longer than `--max-line 100`", "1 qid:1 1:1 # " + "x" * 100 + "\n",
                 [*DESCRIBE, "--max-line", "100"]),
            Case("a CSV table under another name", TABLE, DESCRIBE),
            Case("JSON", '{"rows": []}\n', DESCRIBE),
            Case("more names in the header than features asked for", "# features: a b\n1 qid:1 1:1\n",
                 [*DESCRIBE, "--n-features", "3"]),
            Case("more features than the model has", "1 qid:1 1:1 2:1 3:1 4:1\n", PREDICT),
            Case("a row without document id among others, for `rank`",
                 "1 qid:1 1:1 2:1 # docid = a\n0 qid:1 2:2\n", ["predict", "--format", "run", "model.json", "file"]),
        ],
        "Archives": [
            Case("gzip, cut off", packed[: len(packed) // 2], DESCRIBE, "damaged.txt.gz"),
            Case("gzip, one byte changed", packed[:-5] + bytes([packed[-5] ^ 1]) + packed[-4:], DESCRIBE,
                 "damaged.txt.gz"),
            Case("gzip, followed by something else", packed + b"something else", DESCRIBE, "damaged.txt.gz"),
            Case("plain text named `.gz`", "x qid:1\n", DESCRIBE, "damaged.txt.gz"),
            Case("zip", zipped(), DESCRIBE, "damaged.zip"),
            Case("bzip2", bz2.compress(LETOR.encode()), DESCRIBE, "damaged.txt.bz2"),
            Case("7z", b"7z\xbc\xaf\x27\x1c rest", DESCRIBE, "damaged.7z"),
            Case("a bomb: gzip of 40 MB in one line", gzip.compress(b"x" * 40_000_000, 1, mtime=0), DESCRIBE,
                 "damaged.txt.gz"),
        ],
        "Score files": [
            Case("empty", "", SCORED),
            Case("one score too few", SCORES[:-2], SCORED),
            Case("`inf`", SCORES[:-2] + "inf\n", SCORED),
            Case("`nan`", SCORES[:-2] + "nan\n", SCORED),
            Case("`1e400`", SCORES[:-2] + "1e400\n", SCORED),
            Case("`1_0`", SCORES[:-2] + "1_0\n", SCORED),
            Case("two numbers on a line", SCORES[:-2] + "1 2\n", SCORED),
            Case("a blank line between scores", "1\n\n" + SCORES, SCORED),
            Case("a NUL byte", "1\n2\0\n", SCORED),
        ],
        "TREC runs": [
            Case("empty", "", RUNS),
            Case("five columns", "1 Q0 a 1 3\n", RUNS),
            Case("a word for a score", "1 Q0 a 1 high s\n", RUNS),
            Case("a score that is not finite", "1 Q0 a 1 nan s\n", RUNS),
            Case("a document twice in a topic", "1 Q0 a 1 3 s\n1 Q0 a 2 2 s\n", RUNS),
            Case("no topic of the qrels", "7 Q0 a 1 3 s\n", RUNS),
            Case("qrels in place of a run", QRELS, RUNS),
        ],
        "TREC qrels": [
            Case("empty", "", JUDGED),
            Case("three columns", "1 a 1\n", JUDGED),
            Case("a grade that is not finite", "1 0 a inf\n", JUDGED),
            Case("a document judged twice", "1 0 a 1\n1 0 a 0\n", JUDGED),
            Case("a run in place of qrels", RUN, JUDGED),
        ],
        "Group sizes": [
            Case("empty", "", GROUPS),
            Case("a fraction", "1.5\n", GROUPS),
            Case("0", "0\n60\n", GROUPS),
            Case("5,000 digits", "9" * 5000 + "\n", GROUPS),
            Case("another sum than there are rows", "2\n", GROUPS),
        ],
        "Tables": [
            Case("empty", "", DESCRIBE, "damaged.csv", "pyarrow"),
            Case("a header alone", "qid,y,f\n", DESCRIBE, "damaged.csv", "pyarrow"),
            Case("no column of the query", "y,f\n1,2\n", DESCRIBE, "damaged.csv", "pyarrow"),
            Case("no column of the grade", "qid,f\n1,2\n", TRAIN, "damaged.csv", "pyarrow"),
            Case("a row with too many cells", TABLE + "1,1,1,1\n", DESCRIBE, "damaged.csv", "pyarrow"),
            Case("a quotation mark that is not closed", TABLE + '1,1,"3\n1,0,4\n', DESCRIBE, "damaged.csv", "pyarrow"),
            Case("text in a column of features", TABLE + "1,1,long\n", DESCRIBE, "damaged.csv", "pyarrow"),
            Case("two columns of one name", "qid,y,f,f\n1,1,1,1\n", DESCRIBE, "damaged.csv", "pyarrow"),
            Case("no Parquet file", "PAR1", DESCRIBE, "damaged.parquet", "pyarrow"),
        ],
        "Models": [
            Case("empty", "", LOAD, "damaged.json"),
            Case("half of a model", Path("model.json").read_text()[:200], LOAD, "damaged.json"),
            Case("other JSON", "{}", LOAD, "damaged.json"),
            Case("a later version", MODEL.replace("1,", "99,") + "null}", LOAD, "damaged.json"),
            Case("`null` for the model", MODEL + "null}", LOAD, "damaged.json"),
            Case("a number for the model", MODEL + "5}", LOAD, "damaged.json"),
            Case("a class that is not truerank's", MODEL + '{"$class": "os.system", "params": {}, "fitted": {}}}',
                 LOAD, "damaged.json"),
            Case("a weight that is not finite", edited_model(
                coef_={"$array": "float64", "shape": [2], "values": [float("inf"), 0.0]}), LOAD, "damaged.json"),
            Case("one weight too few", edited_model(coef_={"$array": "float64", "shape": [1], "values": [1.0]}), LOAD,
                 "damaged.json"),
            Case("a word for the number of features", edited_model(n_features_in_="two"), LOAD, "damaged.json"),
            Case("5,000 brackets", "[" * 5000, LOAD, "damaged.json"),
        ],
        "Arguments": [
            Case("a file that is not there", "", ["describe", "nothing.txt"]),
            Case("a folder without data", "", ["describe", "folder"]),
            Case("a ranker that there is not", LETOR, ["train", "file", "--ranker", "adrank", "--model", "m.json"]),
            Case("a parameter that there is not", LETOR,
                 ["train", "file", "--ranker", "adarank", "--set", "trees=3", "--model", "m.json"]),
            Case("a measure that there is not", LETOR,
                 ["evaluate", "--data", "file", "--scores", "scores.txt", "--measures", "NDGC@10"]),
            Case("a model in a folder that is not there", LETOR,
                 ["train", "file", "--ranker", "adarank", "--model", "nowhere/m.json"]),
        ],
    }  # fmt: skip


def prepare() -> None:
    """Sound files beside the damaged one, in the working folder."""
    for name, content in (("data.txt", LETOR), ("scores.txt", SCORES), ("run.txt", RUN), ("qrels.txt", QRELS)):
        Path(name).write_text(content)
    Path("folder").mkdir()
    Path("bare.txt").write_text("".join(f"{i % 2} 1:{i}\n" for i in range(60)))
    code, said = ran(["train", "data.txt", "--ranker", "ridge", "--model", "model.json"])
    assert code == 0, said


def ran(words: list[str]) -> tuple[int, str]:
    """Exit code of a command, and what it says on standard error."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            code = command_line(words)
        except SystemExit as end:  # argparse
            code = int(end.code or 0)
    return code, said.getvalue().replace(f"{os.getcwd()}/", "")


def answer(case: Case) -> tuple[int, str]:
    """What a command makes of a damaged file, in the folder that `prepare` has filled."""
    content = case.content if isinstance(case.content, bytes) else case.content.encode()
    place = Path(case.name)
    place.write_bytes(content)
    try:
        return ran(case.command)
    finally:
        place.unlink()


def row(case: Case) -> str:
    """A row of the page's table."""
    code, said = answer(case)
    text = said.strip().replace("\n", "<br>").replace("|", "\\|") or "(nothing)"
    return f"| {case.what} | `{' '.join(case.command)}` | {code} | {text} |"


HEAD = """# Damaged input

This page lists the messages of truerank about damaged files. Each row is a command that was run on a damaged file,
and its output. The following command writes the page:

    PYTHONPATH=src:tests python tests/support/damaged_input.py > docs/development/damaged-input.md

| exit code | meaning |
| --- | --- |
| 0 | success |
| 1 | an error in the input, a file or the machine: one line states what was found, what was expected, and what to do |
| 2 | an error in the command line |
| 70 | an error inside truerank: one line, and the path of a report to send to the developers |
| 130 | an interrupt: old files are unchanged, and finished pieces are kept |

A line of text can have at most 16 MiB; `--max-line BYTES` changes the limit for LETOR text. Compressed files are
unpacked in pieces of limited size, so an archive needs no more memory than its data.
"""


def main() -> int:
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare()
        print(HEAD, end="")
        for kind, some in cases().items():
            print(f"\n## {kind}\n\n| what is damaged | command | exit code | message |\n| --- | --- | --- | --- |")
            for case in some:
                print(row(case), flush=True)
        os.chdir(here)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
