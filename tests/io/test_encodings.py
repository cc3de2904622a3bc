"""Text in UTF-16 and UTF-32 with a byte order mark is read by every reader as its UTF-8 is."""

import gzip

import numpy as np
import pytest

import truerank
from truerank.cli import main
from truerank.core.errors import DataFileError
from truerank.io.documents import read_documents, read_queries
from truerank.io.scores import read_scores
from truerank.io.streams import Source

TEXT = "qid,y,docid,é,text\n1,1,dé,0.5,東京 🎌\n1,0,d2,1.5,b\n2,2,d3,0,c\n"
READERS = {
    "rows.csv": (TEXT, lambda path: truerank.read_table(path, features=["é"]).X.tolist()),
    "rows.txt": ("1 qid:1 1:0.5 # dé\n0 qid:1 1:2 # d2\n", lambda path: truerank.read_letor(path).doc_ids.tolist()),
    "qrels.txt": ("q 0 dé 1\n", lambda path: truerank.read_qrels(path).to_dict()),
    "book.csv": ("query,docid,rating\nschön,d1,2\n", lambda path: truerank.read_qrels(path).to_dict()),
    "case.json": (
        '{"queries": [{"query": "🎌", "ratings": {"d": 1}}]}',
        lambda path: truerank.read_qrels(path).to_dict(),
    ),
    "run.txt": ("q Q0 dé 1 2.5 tag\n", lambda path: truerank.read_run(path).to_dict()),
    "scores.txt": ("0.5\n2\n", lambda path: read_scores(path, 2).tolist()),
    "docs.csv": ("id,text\nd1,東京\n", lambda path: [(one.id, one.text) for one in read_documents(path)]),
    "docs.jsonl": ('{"id": "d1", "text": "東京"}\n', lambda path: [(one.id, one.text) for one in read_documents(path)]),
    "queries.tsv": ("q1\t東京\nq2\t007\n", lambda path: read_queries(path)),
}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("name", READERS)
def test_readers_follow_the_byte_order_mark(tmp_path, name, encoding):
    text, read = READERS[name]
    mark = "\ufeff" if encoding == "utf-16-be" else ""  # the others write one
    plain, coded = tmp_path / "plain" / name, tmp_path / "coded" / name
    for path, data in ((plain, text.encode()), (coded, (mark + text).encode(encoding))):
        path.parent.mkdir()
        path.write_bytes(data)
    assert read(coded) == read(plain)


class _Slow:
    """A stream that gives a few bytes at a time."""

    name, place = "slow", 0

    def __init__(self, data, rng):
        self.data, self.rng = data, rng

    def read(self, size):
        step = int(self.rng.integers(1, 9))
        self.place += step
        return self.data[self.place - step : self.place]


def test_random_text_is_decoded_in_pieces_of_any_size(tmp_path):
    rng = np.random.default_rng(0)
    for trial in range(200):
        letters = rng.choice(list("ab \n,é東🎌𝒳"), size=int(rng.integers(1, 400)))
        text = "".join(letters.tolist())
        data = text.encode(rng.choice(["utf-16", "utf-32"]))

        with Source(_Slow(data, rng)) as source:
            assert b"".join(source.pieces()).decode() == text, trial
    (tmp_path / "a.gz").write_bytes(gzip.compress("é\n".encode("utf-16")))
    with Source(tmp_path / "a.gz") as source:
        assert b"".join(source.line_blocks()) == "é\n".encode()


def test_damaged_text_is_named_with_its_line(tmp_path):
    (tmp_path / "cut.csv").write_bytes("query,docid,rating\nq,d,1\n".encode("utf-16")[:-1])
    with pytest.raises(DataFileError, match="damaged UTF-16") as error:
        truerank.read_qrels(tmp_path / "cut.csv")
    assert error.value.line == 2


def test_split_of_utf_16_writes_utf_8(tmp_path):
    rows = "".join(f"{y} qid:{q} 1:{q + y} # é{q}{y}\n" for q in range(20) for y in (0, 1))
    (tmp_path / "rows.txt").write_bytes(rows.encode("utf-16"))
    assert main(["split", str(tmp_path / "rows.txt"), "-o", str(tmp_path / "parts"), "--test", "0.5"]) == 0
    files = [path for path in (tmp_path / "parts").rglob("*") if path.is_file()]
    assert sum(path.read_text(encoding="utf-8").count("é") for path in files) == 40
