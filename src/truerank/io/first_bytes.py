"""Detect tables that are not text, TREC qrels and runs by the first bytes of a file."""

from __future__ import annotations

import re

from truerank.io.letor.grammar import NUMBER

TABLES = {b"PAR1": "parquet", b"ARROW1": "arrow", b"FEA1": "arrow"}
"""Kinds of tables that are not text, by their first bytes."""
LZ4 = b"\x04\x22\x4d\x18"


def is_yaml(text: str) -> bool:
    """Return whether a text starts as YAML: with `name:` and a nested value, or with `- name: value`."""
    return bool(
        re.match(r"(\s*(#.*)?\n|---.*\n|[\w-]+: [^\n]*\n)*(- ['\"\w]+\s*:(\s|$)|['\"\w-]+:\s*(#.*)?\n\s)", text)
    )


def is_trec(head: bytes, columns: int) -> bool:
    """Return whether the first bytes of a file are TREC text with 4 or 6 columns, valid or damaged.

    >>> is_trec(b"1 0 d 2", 4), is_trec(b"1 0 d", 4), is_trec(b"query,docid,rating", 4), is_trec(b"1 Q0 d 1 9.5 x", 4)
    (True, True, False, False)
    """
    if head.startswith((*TABLES, LZ4)) or is_yaml(head.decode("utf-8", "replace")):
        return False
    line = next((line for line in head.split(b"\n") if line.strip() and not line.lstrip().startswith(b"#")), b"")
    words, other = line.split(), 10 - columns
    if len(words) == columns and NUMBER.fullmatch(words[3 if columns == 4 else 4]):
        return True
    if len(words) == other and NUMBER.fullmatch(words[3 if other == 4 else 4]):
        return False
    return not (
        line.lstrip().startswith((b"{", b"[", b"<")) or re.search(rb"[,;\t]|(^|\s)qid:", line) or len(words) == 1
    )


def is_other_order(head: bytes) -> bool:
    """Return whether the second of four columns has documents and the third has grades, unlike TREC qrels.

    >>> is_other_order(b"".join(b"1 d%d %d 0\\n" % (k, k % 3) for k in range(20))), is_other_order(b"1 0 d1 2\\n")
    (True, False)
    """
    rows = [words for line in head.split(b"\n", 200)[:200] if len(words := line.split()) == 4]
    second, third = {row[1] for row in rows}, {row[2] for row in rows}
    grades = all(re.fullmatch(rb"-?\d{1,3}", one) for one in third)
    return len(rows) >= 10 and len(second) > 5 + len(third) and grades
