"""Reuters-21578: reader of its SGML files and the ModApte split.

The files are not well-formed XML (control characters as `&#3;`, stray bytes, an extra attribute on four documents), so
regular expressions read them, as Latin-1.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from truerank.core.errors import DataFileError
from truerank.io.streams import Source

_DOCUMENT = re.compile(r"<REUTERS\b([^>]*)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'([A-Z]+)="([^"]*)"')
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
_TOPIC = re.compile(r"<D>(.*?)</D>", re.DOTALL)
_TEXT = re.compile(r"<TEXT\b([^>]*)>(.*?)</TEXT>", re.DOTALL)
_TITLE = re.compile(r"<TITLE>(.*?)</TITLE>", re.DOTALL)
_BODY = re.compile(r"<BODY>(.*?)</BODY>", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True)
class ReutersDocument:
    """One news item.

    Attributes
    ----------
    doc_id : str
        NEWID.
    text : str
        Title and body on separate lines, or the whole text of an unprocessed item (`TYPE="UNPROC"`).
    topics : tuple of str
    lewis_split : str
        TRAIN, TEST or NOT-USED.
    has_topics : str
        The attribute TOPICS: YES, NO or BYPASS.
    """

    doc_id: str
    text: str
    topics: tuple[str, ...]
    lewis_split: str
    has_topics: str


def parse_reuters(text: str, path: str = "") -> Iterator[ReutersDocument]:
    r"""The documents in the text of one file.

    Raises
    ------
    DataFileError
        On a text without documents, or a document without end, TEXT or an attribute. The message names the line.

    Examples
    --------
    >>> item = ('<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" NEWID="7"><TOPICS><D>earn</D></TOPICS>'
    ...         '<TEXT>&#2;<TITLE>A &amp; B</TITLE><BODY>Profit rose.&#3;</BODY></TEXT></REUTERS>')
    >>> document = next(parse_reuters(item))
    >>> document.doc_id, document.text, document.topics, document.lewis_split
    ('7', 'A & B\nProfit rose.', ('earn',), 'TRAIN')
    """
    found = 0
    for match in _DOCUMENT.finditer(text):
        found += 1
        attributes = dict(_ATTRIBUTE.findall(match[1]))
        missing = [name for name in ("NEWID", "LEWISSPLIT", "TOPICS") if name not in attributes]
        if missing:
            raise DataFileError(f"a REUTERS tag lacks the attribute {missing[0]}", path, _line(text, match.start()))
        inner = _TEXT.search(match[2])
        if inner is None:
            raise DataFileError(f"document {attributes['NEWID']} has no TEXT element", path, _line(text, match.start()))
        topics = _TOPICS.search(match[2])
        found_parts = [part[1] for part in (_TITLE.search(inner[2]), _BODY.search(inner[2])) if part] or [inner[2]]
        yield ReutersDocument(
            doc_id=attributes["NEWID"],
            text="\n".join(filter(None, map(_clean, found_parts))),
            topics=tuple(_clean(topic) for topic in _TOPIC.findall(topics[1])) if topics else (),
            lewis_split=attributes["LEWISSPLIT"],
            has_topics=attributes["TOPICS"],
        )
    begun = text.count("<REUTERS ")
    if begun != found or not found:
        raise DataFileError(f"{begun} documents begin but {found} are complete; the file is damaged or truncated", path)


def read_reuters(folder: str | os.PathLike[str]) -> list[ReutersDocument]:
    """All documents of the files `reut2-*.sgm` (also .gz, .xz) of a folder, in the order of the file names.

    Raises
    ------
    DataFileError
        When the folder has no such file, or a file is damaged.
    """
    paths = sorted(path for path in Path(folder).glob("reut2-*.sgm*") if path.suffix in (".sgm", ".gz", ".xz"))
    if not paths:
        raise DataFileError("expected the files reut2-000.sgm … (or .sgm.gz, .sgm.xz) of Reuters-21578", str(folder))
    documents: list[ReutersDocument] = []
    for path in paths:
        with Source(path) as stream:
            text = b"".join(stream.line_blocks()).decode("latin-1")
        documents += parse_reuters(text, str(path))
    return documents


def modapte_split(documents: Iterable[ReutersDocument]) -> tuple[list[ReutersDocument], list[ReutersDocument]]:
    """Training and test documents of the ModApte split: LEWISSPLIT TRAIN or TEST, and TOPICS="YES"."""
    with_topics = [document for document in documents if document.has_topics == "YES"]
    train = [document for document in with_topics if document.lewis_split == "TRAIN"]
    return train, [document for document in with_topics if document.lewis_split == "TEST"]


def _clean(text: str) -> str:
    return _CONTROL.sub("", html.unescape(text)).strip()


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
