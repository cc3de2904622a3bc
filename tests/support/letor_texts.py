"""Random LETOR texts, sound and damaged, and the comparison of the two parsers on them."""

from __future__ import annotations

import random

import numpy as np

from truerank.core.errors import DataFileError
from truerank.io.letor.grammar import LineParser, ParsedRows, check_bytes


def python_parser(text: bytes, missing_nan: bool, keep_comments: bool = True) -> ParsedRows:
    """Rows by the plain parser."""
    check_bytes(text, "f", 1)
    return LineParser("f", missing_nan, keep_comments).parse(text)


def compiled_parser(text: bytes, missing_nan: bool, keep_comments: bool = True) -> ParsedRows:
    """Rows by the kernel."""
    from truerank.io.letor.kernel import BlockParser

    check_bytes(text, "f", 1)
    return BlockParser("f", missing_nan, keep_comments).parse(text)


def outcome(parse, text: bytes, missing_nan: bool) -> tuple:
    """All that a parser says of a text, values as bits; or its error."""
    try:
        rows = parse(text, missing_nan)
    except DataFileError as error:
        return ("refused", str(error))
    texts = [None if column is None else column.tolist() for column in (rows.doc_ids, rows.comments)]
    nan = np.isnan(rows.values)
    values = np.where(nan, 0.0, rows.values).tobytes()
    bits = (rows.grades.tobytes(), rows.indptr.tolist(), rows.indices.tolist(), values, nan.tolist())
    return (*bits, rows.pieces, *texts)


_NUMBERS = (b"0", b"1", b"-2", b"0.5", b".5", b"1.", b"1e3", b"-1.5E-7", b"+4", b"0.007477", b"NULL", b"nan", b"inf")
_PIECES = (
    *(b" ", b"  ", b"\t", b"\n", b"\r\n", b"\r", b"\x0b", b"\x0c", b"\0", b"\xff", b"\xc3\xa9", b"#", b":", b"=", b"_"),
    *(b"qid:", b"qid:7", b"docid", b"docid = ", b"x", b"1:", b"2:3", b"-", b"+", b".", b"e", b"E5", b"e+", b"0x1"),
    *(b"1e999", b"1e-999", b"99999999999", b"2147483647:1", b"2147483648:1", b"123456789012345678901234567890"),
    *(b"NaN", b"Infinity", b"NULL"),
)


# Lines as they are found in the wild, to be damaged.
CORPUS = (
    b"0 qid:10002 1:0.007477 2:0.000000 3:1.000000 46:0.007042 #docid = GX008-86-4444840 inc = 1 prob = 0.086622\r\n"
    b"2 qid:10002 1:0.603738 2:0.000000 3:1.000000 46:1.000000 #docid = GX037-06-11625428 inc = 0.0031 prob = 0.08\r\n",
    b"0 qid:85 1:2.00000000 2:1.38629436 13:-34.946501 25:-4.63973000 #docid = 7612\n",
    b"0 qid:10002 1:1 2:30 3:NULL 4:133 5:NULL 25:NULL #docid = GX008-86-4444840 inc = 1 prob = 0.086622\r\n",
    b"2 qid:1 1:3 2:3 3:0 16:6.931275 46:0.019231 47:0.75000 131:230000000 136:-71.7 \n",
    b"3 qid:1 1:1 2:1 3:0 4:0.2 5:0 # 1A\n2 qid:1 1:0 2:0 3:1 4:0.1 5:1 # 1B\n1 qid:2 1:0 4:0.4 # 2A\n",
    b"# features: bm25 length\n\n# a remark\n1 qid:q-1 1:1e-3 2:17\n\n0 qid:q-1 2:nan\n",
    b"1.5 qid:7 1:.5 2:1. 3:+1E+2 4:-0 5:9007199254740993 6:0.1234567890123456789 7:4.9e-324",
    b"\xef\xbb\xbf1 qid:\xc3\xa9 3:1#caf\xc3\xa9 cr\xc3\xa8me\n",
    b"0\tqid:1\t1:0.5\t \t2:1\t#\tdocid\t=\tD1\twords\there\t\n",
)


def random_number(rng: random.Random) -> bytes:
    """A number, most often legal."""
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice(_NUMBERS)
    if kind == 1:
        return b"%.6f" % rng.random()
    if kind == 2:
        return repr(rng.uniform(-1, 1) * 10 ** rng.randint(-30, 30)).encode()
    if kind == 3:
        return b"%d" % rng.randrange(10 ** rng.randint(1, 22))
    if kind == 4:
        return b"%d.%de%d" % (rng.randrange(10 ** rng.randint(1, 12)), rng.randrange(10**9), rng.randint(-330, 330))
    return b"%d" % rng.randrange(3)


def random_text(rng: random.Random) -> bytes:
    """A text of a few lines, most often legal."""
    lines = []
    for _ in range(rng.randint(1, 4)):
        index, parts = 0, [rng.choice((b"0", b"1", b"2", b"0.5", b"-1")), b"qid:%d" % rng.randint(1, 3)]
        for _ in range(rng.randint(0, 4)):
            index += rng.choice((1, 1, 1, 2, 50))
            parts.append(b"%d:%s" % (index, random_number(rng)))
        line = rng.choice((b" ", b" ", b"\t", b"  ")).join(parts)
        line += rng.choice(
            (b"", b"", b" # docid = D%d" % rng.randint(0, 9), b"#docid=A inc = 1", b" # a b", b" #w", b" ")
        )
        lines.append(line)
    return rng.choice((b"\n", b"\n", b"\r\n")).join(lines) + rng.choice((b"", b"\n"))


def damaged_text(rng: random.Random) -> bytes:
    """A random text with up to three places cut, doubled or filled with something else."""
    text = random_text(rng) if rng.random() < 0.7 else rng.choice(CORPUS)
    for _ in range(rng.randint(0, 3)):
        place = rng.randint(0, len(text))
        kind = rng.randrange(4)
        if kind == 0:
            text = text[:place] + rng.choice(_PIECES) + text[place:]
        elif kind == 1:
            text = text[:place] + text[place + rng.randint(1, 4) :]
        elif kind == 2:
            end = place + rng.randint(1, 12)
            text = text[:end] + text[place:end] + text[end:]
        else:
            text = text[:place] + bytes([rng.randrange(256)]) + text[place + 1 :]
    return text
