"""The Reuters-21578 reader."""

from __future__ import annotations

import lzma

import pytest
from reproductions.calibration.reuters import modapte_split, parse_reuters, read_reuters

from support.refusals import refused
from truerank.core.errors import DataFileError

HEAD = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'
ITEM = (
    '<REUTERS TOPICS="{topics}" LEWISSPLIT="{split}" CGISPLIT="TRAINING-SET" OLDID="1" NEWID="{number}">\n'
    "<TOPICS><D>earn</D><D>acq</D></TOPICS>\n<TEXT{kind}>&#2;\n{inner}\n</TEXT>\n</REUTERS>\n"
)
FULL = "<TITLE>AT&amp;T &lt;T> NET</TITLE><DATELINE> NEW YORK - </DATELINE><BODY>Profit rose.\n Reuter\n&#3;</BODY>"


def item(number=1, topics="YES", split="TRAIN", kind="", inner=FULL):
    return ITEM.format(number=number, topics=topics, split=split, kind=kind, inner=inner)


def test_a_whole_document():
    (document,) = parse_reuters(HEAD + item())
    assert document.topics == ("earn", "acq")
    assert document.text == "AT&T <T> NET\nProfit rose.\n Reuter"


def test_brief_and_unprocessed_documents():
    brief = next(parse_reuters(item(kind=' TYPE="BRIEF"', inner="<TITLE>SHORT</TITLE>")))
    assert brief.text == "SHORT"
    raw = next(parse_reuters(item(kind=' TYPE="UNPROC"', inner="TABLE 1 2")))
    assert raw.text == "TABLE 1 2"


def test_modapte():
    text = "".join([item(1), item(2, split="TEST"), item(3, topics="NO"), item(4, split="NOT-USED"), item(5)])
    train, test = modapte_split(parse_reuters(text))
    assert [d.doc_id for d in train] == ["1", "5"]
    assert [d.doc_id for d in test] == ["2"]


def test_files(tmp_path):
    (tmp_path / "reut2-001.sgm.xz").write_bytes(lzma.compress((HEAD + item(2)).encode("latin-1") + b"\xfc"))
    (tmp_path / "reut2-000.sgm").write_text(HEAD + item(1), encoding="latin-1")
    assert [d.doc_id for d in read_reuters(tmp_path)] == ["1", "2"]
    (tmp_path / "reut2-002.sgm.xz").write_bytes(b"nothing")
    with refused(DataFileError, path=str(tmp_path / "reut2-002.sgm.xz")):
        read_reuters(tmp_path)
    with refused(DataFileError, path=str(tmp_path / "nowhere")):
        read_reuters(tmp_path / "nowhere")


def test_damage_is_named():
    with pytest.raises(DataFileError, match="2 documents begin but 1 are complete"):
        list(parse_reuters(item(1) + item(2)[:-20], "f.sgm"))
    with refused(DataFileError, path="f.sgm", line=2):
        list(parse_reuters("\n" + item().replace(' NEWID="1"', ""), "f.sgm"))
    with refused(DataFileError, path="f.sgm", line=1):
        list(parse_reuters(item().replace("<TEXT>", "<TXT>"), "f.sgm"))
