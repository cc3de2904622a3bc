"""Rows of LETOR text: the grammar for one line, in plain Python.

Tests compare the compiled parser with this module, which also parses small files and explains errors of a line.

    line    = grade "qid:" id { index ":" value } [ "#" comment ]
    grade, value = decimal number ("1", "-0.5", ".5", "1.", "1e-3"), finite; value may be NULL or nan where allowed
    index   = 1, 2, ...; strictly ascending within a line
    comment = "docid = " id [ text ]  |  id [ tab text ]  |  text

Tokens are separated by spaces and tabs; lines end in LF or CRLF. Blank lines and comment lines have no row.
"""

from __future__ import annotations

import os
import re
import shlex
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from operator import lt
from typing import Any

import numpy as np

from truerank.core.errors import DataFileError, Remedy

TEXT = np.dtypes.StringDType()
"""Dtype of document ids and comments: strings of any length, in 16 bytes or more if longer than 15 bytes of UTF-8."""

MAX_INDEX = 2**31 - 1
INF = float("inf")
NAN_WORDS = (b"NULL", b"NAN")
NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INFINITE = re.compile(rb"[+-]?inf(?:inity)?", re.IGNORECASE)
_WORD_BREAK = re.compile(r"[ \t\v\f\r\n\0]")
_LONE_RETURN = re.compile(rb"\r(?!\n|\Z)")
_DOC_ID = re.compile(rb"docid\s*=\s*(\S+)\s*", re.ASCII)
_BEFORE_TAB = re.compile(rb"(\S+)(?:\t\s*|\Z)", re.ASCII)
_PLAIN = b"0123456789+-.eE:"
NO_VALUE = Remedy("if that marks a missing value", missing="nan")
_SHOWN = 40  # bytes of a bad token that a message shows


@dataclass
class ParsedRows:
    """Parsed rows in file order."""

    grades: np.ndarray  # float64 (n,)
    indptr: np.ndarray  # int64 (n + 1,): start of each row's entries in `indices` and `values`
    indices: np.ndarray  # int32: columns, from 0, strictly ascending within a row
    values: np.ndarray  # float64
    pieces: list[tuple[int, bytes]]  # runs of rows that carry the same query id: first row, query id
    doc_ids: np.ndarray | None  # StringDType (n,); None where no row has any, as of the comments
    comments: np.ndarray | None
    text: bytes = b""  # the block that the rows are from, while it is at hand
    first_line: int = 0  # the number of its first line

    def line_of(self, entry: int) -> int | None:
        """Return the line number of an entry of `values`, or None if the text was discarded."""
        row = int(np.searchsorted(self.indptr, entry, side="right")) - 1
        for number, line in enumerate(self.text.split(b"\n"), self.first_line):
            if line.partition(b"#")[0].strip():
                if row == 0:
                    return number
                row -= 1
        return None

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        return len(self.grades)

    def part(self, start: int, stop: int) -> ParsedRows:
        """Return the rows `start:stop`."""
        first, last = self.indptr[start], self.indptr[stop]
        inside = [(row - start, name) for row, name in self.pieces if start < row < stop]
        if start < stop:
            inside.insert(0, (0, next(name for row, name in reversed(self.pieces) if row <= start)))
        return ParsedRows(
            self.grades[start:stop],
            self.indptr[start : stop + 1] - first,
            self.indices[first:last],
            self.values[first:last],
            inside,
            None if self.doc_ids is None else self.doc_ids[start:stop],
            None if self.comments is None else self.comments[start:stop],
        )

    @staticmethod
    def concatenate(parts: list[ParsedRows]) -> ParsedRows:
        """Join the rows of several blocks; adjacent runs of the same query become one."""
        if len(parts) == 1:
            return parts[0]
        pieces: list[tuple[int, bytes]] = []
        shifted = [np.zeros(1, dtype=np.int64)]
        before = entries = 0
        sizes = [part.n_rows for part in parts]
        for part in parts:
            for row, name in part.pieces:
                if not pieces or pieces[-1][1] != name:
                    pieces.append((before + row, name))
            shifted.append(part.indptr[1:] + entries)
            before += part.n_rows
            entries += len(part.values)

        return ParsedRows(
            np.concatenate([part.grades for part in parts]),
            np.concatenate(shifted),
            np.concatenate([part.indices for part in parts]),
            np.concatenate([part.values for part in parts]),
            pieces,
            joined_texts([part.doc_ids for part in parts], sizes),
            joined_texts([part.comments for part in parts], sizes),
        )


def is_word(text: str) -> bool:
    """Return whether a text is one word for readers of lines, where only ASCII white space separates words."""
    return bool(text) and not _WORD_BREAK.search(text)


def check_bytes(text: bytes, name: str, first_line: int) -> None:
    """Raise DataFileError for bytes that text cannot contain: NUL, and bytes that are not UTF-8."""
    position = text.find(b"\0")
    if position >= 0:
        what = "there is a NUL byte: the file is damaged or not text. Convert UTF-16 to UTF-8"
        raise _at(text, position, what, name, first_line)
    if not text.isascii():
        try:
            text.decode("utf-8")
        except UnicodeDecodeError as error:
            source, copy = (shlex.quote(own) for own in (name, f"utf8-{os.path.basename(name)}"))
            what = (
                f"byte 0x{text[error.start]:02X} is not UTF-8; convert the file to UTF-8. For a file of Windows type: "
                f"iconv -f CP1252 -t UTF-8 {source} > {copy} (CP1250 for Polish or Czech)"
            )
            raise _at(text, error.start, what, name, first_line) from None


def check_line_ends(text: bytes, name: str, first_line: int) -> None:
    """Raise DataFileError for a carriage return that is not part of CRLF and not the last byte."""
    found = _LONE_RETURN.search(text) if b"\r" in text else None
    if found:
        raise _at(text, found.start(), "the line has a carriage return. End lines with LF or CRLF", name, first_line)


def _at(text: bytes, position: int, what: str, name: str, first_line: int) -> DataFileError:
    start = text.rfind(b"\n", 0, position) + 1
    column = len(text[start:position].decode("utf-8", "replace")) + 1
    return DataFileError(what, name, first_line + text.count(b"\n", 0, position), column)


@dataclass
class LineParser:
    """Parser of LETOR lines of the file `name`; `line` is the number of the next line.

    `missing_nan` makes NULL and nan missing values (else an error), and `keep_comments` keeps comments.
    """

    name: str
    missing_nan: bool
    keep_comments: bool
    line: int = 1

    def parse(self, text: bytes) -> ParsedRows:
        """Return the rows of the next block of whole lines."""
        grades, counts = array("d"), array("q")
        indices, values = array("i"), array("d")
        pieces: list[tuple[int, bytes]] = []
        doc_ids: list[str] = []
        comments: list[str] = []
        last_qid: bytes | None = None
        for number, line in enumerate(text.split(b"\n"), self.line):
            head, _, comment = line.partition(b"#")
            tokens = head.split()
            if b"\r" in line:
                check_line_ends(line, self.name, number)
            if not tokens:
                continue
            try:
                grade, qid, row_indices, row_values = _plain_row(tokens)
            except ValueError:
                grade, qid, row_indices, row_values = self._any_row(tokens, line, number)
            if qid != last_qid:
                pieces.append((len(grades), qid))
                last_qid = qid
            grades.append(grade)
            counts.append(len(row_indices))
            indices.extend(row_indices)
            values.extend(row_values)
            doc_id, rest = split_comment(comment)
            doc_ids.append(doc_id.decode("utf-8"))
            comments.append(rest.decode("utf-8") if self.keep_comments else "")
        self.line += text.count(b"\n")
        indptr = np.zeros(len(counts) + 1, dtype=np.int64)
        np.cumsum(np.frombuffer(counts, dtype=np.int64) if len(counts) else [], out=indptr[1:])
        return ParsedRows(
            np.array(grades, dtype=np.float64),
            indptr,
            np.array(indices, dtype=np.int32) - np.int32(1),
            np.array(values, dtype=np.float64),
            pieces,
            np.array(doc_ids, dtype=TEXT) if any(doc_ids) else None,
            np.array(comments, dtype=TEXT) if any(comments) else None,
        )

    def _any_row(self, tokens: list[bytes], line: bytes, number: int) -> tuple[float, bytes, list[int], list[float]]:
        """Parse a row token by token, and find the error of a malformed row."""

        def refuse(token: int, what: str, **fields: Any) -> DataFileError:
            place = (
                list(re.finditer(rb"\S+", line))[token].start()
                if token < len(tokens)
                else len(line.partition(b"#")[0].rstrip())
            )
            return DataFileError(what, self.name, number, len(line[:place].decode("utf-8", "replace")) + 1, **fields)

        grade = self._number(tokens[0], refuse, 0, "a grade")
        if len(tokens) == 1:
            raise refuse(1, "expected 'qid:<id>' after the grade, got the end of the line")
        if not tokens[1].startswith(b"qid:"):
            raise refuse(1, f"expected 'qid:<id>' after the grade, got {_show(tokens[1])}")
        qid = tokens[1][4:]
        if not qid:
            raise refuse(1, "expected 'qid:<id>', got no id after 'qid:' (no space may follow the colon)")
        indices: list[int] = []
        values: list[float] = []
        for place, token in enumerate(tokens[2:], 2):
            index_text, colon, value_text = token.partition(b":")
            if not colon or not index_text.isdigit():
                if index_text[:1] == b"-" and index_text[1:].isdigit():
                    raise refuse(place, f"feature index {_show(index_text)} is below 1, but indices start at 1")
                raise refuse(place, f"expected '<feature>:<value>', got {_show(token)}")
            if len(index_text.lstrip(b"0")) > 10 or int(index_text) > MAX_INDEX:
                raise refuse(place, f"feature index {_show(index_text)} exceeds the largest, {MAX_INDEX}", code="index")
            index = int(index_text)
            if index < 1:
                raise refuse(place, "feature index 0 is below 1, but indices start at 1. Number the features from 1")
            if indices and index <= indices[-1]:
                what = "occurs twice" if index == indices[-1] else f"follows {indices[-1]}"
                raise refuse(place, f"feature {index} {what}, but indices must ascend within a line")
            indices.append(index)
            values.append(self._number(value_text, refuse, place, f"a number as the value of feature {index}"))
        return grade, qid, indices, values

    def _number(self, text: bytes, refuse: Callable[..., Exception], token: int, wanted: str) -> float:
        if NUMBER.fullmatch(text):
            value = float(text)
            if value in (INF, -INF):
                raise refuse(token, f"{_show(text)} is too large for a 64-bit number", code="too-large")
            return value
        if text.upper() in NAN_WORDS and token > 0:
            if self.missing_nan:
                return float("nan")
            raise refuse(token, f"{wanted} is {_show(text)}", remedies=[NO_VALUE], code="no-value")
        if _INFINITE.fullmatch(text):
            raise refuse(token, f"expected {wanted}, got {_show(text)}. Infinite values are not accepted")
        raise refuse(token, f"expected {wanted}, got {_show(text) if text else 'nothing'}", code="not-a-number")


def _plain_row(tokens: list[bytes]) -> tuple[float, bytes, list[int], list[float]]:
    """Parse a row in the usual form; raise ValueError for any other form, valid or not."""
    name = tokens[1] if len(tokens) > 1 else b""
    qid = name[4:]
    if not qid or name[:4] != b"qid:" or tokens[0].translate(None, _PLAIN):
        raise ValueError
    grade = float(tokens[0])
    pairs = [token.partition(b":") for token in tokens[2:]]
    if not pairs:
        if grade - grade != 0:
            raise ValueError
        return grade, qid, [], []
    index_texts, _, value_texts = zip(*pairs)
    if not b"".join(index_texts).isdigit() or b"".join(value_texts).translate(None, _PLAIN):
        raise ValueError
    indices = list(map(int, index_texts))
    values = list(map(float, value_texts))
    if indices[0] < 1 or indices[-1] > MAX_INDEX or not all(map(lt, indices, indices[1:])):
        raise ValueError
    if INF in values or -INF in values or grade in (INF, -INF):
        raise ValueError
    return grade, qid, indices, values


def split_comment(comment: bytes) -> tuple[bytes, bytes]:
    """Return the document id and the rest of a comment (the text after `#`).

    >>> split_comment(b"docid = GX008-86-4444840 inc = 1"), split_comment(b" 1A "), split_comment(b"seen twice")
    ((b'GX008-86-4444840', b'inc = 1'), (b'1A', b''), (b'', b'seen twice'))
    >>> split_comment(b"7555\\trambo first blood")
    (b'7555', b'rambo first blood')
    """
    comment = comment.strip()
    found = _DOC_ID.match(comment) or _BEFORE_TAB.match(comment)
    if found:
        return found.group(1), comment[found.end() :]
    return b"", comment


def joined_texts(columns: list[np.ndarray | None], sizes: list[int]) -> np.ndarray | None:
    """Concatenate columns of strings; None means empty strings, as many as given by its size."""
    if all(column is None for column in columns):
        return None
    return np.concatenate([np.zeros(n, dtype=TEXT) if c is None else c for c, n in zip(columns, sizes)])


def _show(token: bytes) -> str:
    text = token[:_SHOWN].decode("utf-8", "replace")
    return repr(text + "…" if len(token) > _SHOWN else text)
