"""Read documents and queries: JSON lines, CSV and Parquet, TREC SGML, SMART files, `ir_datasets`.

The format follows from the suffix of the file name (`.csv .tsv .parquet .arrow .feather`) or from the first characters:
`{` JSON lines, `<` TREC, `.I` SMART. `ir_datasets:NAME` is a collection of ir_datasets.

A document has an id and text fields, and may have numbers (such as age or clicks) and vectors. In JSON lines and tables
the id is `id`, `_id`, `doc_id`, `docno`, `query_id` or `qid`. Strings and lists of strings become text fields. Lists of
numbers become vectors. Booleans, dates, nulls and objects are ignored. In CSV, columns called `text`, `title` or
`query` are text even if they contain only numbers.

A document is bad if its JSON does not parse, its text is not UTF-8, its id is missing or repeated, or its line has more
than 64 MiB. `bad="error"` stops at the first bad document; `bad="skip"` leaves bad documents out with a warning. TREC
and SMART files are older than UTF-8, so bytes that are not UTF-8 are read as Latin-1. A document without words is kept
with length 0, and counted. A file without documents is an error.
"""

from __future__ import annotations

import html
import io
import json
import math
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, suppress
from decimal import Decimal
from itertools import chain
from typing import Any, NamedTuple
from uuid import UUID

from truerank.core.checks import check_choice
from truerank.core.errors import DataFileError, InvalidInputError, Remedy, warn
from truerank.core.files import naming
from truerank.core.names import repeated
from truerank.core.printing import counted
from truerank.core.types import PathLike
from truerank.data.grouping import id_text, is_missing
from truerank.io.columnar import first_line, open_columnar
from truerank.io.delimited import dialect
from truerank.io.judgements.content import read_content
from truerank.io.letor.grammar import NUMBER, is_word
from truerank.io.streams import Source
from truerank.io.tables import table_kind
from truerank.io.text_table import holds_rows
from truerank.io.trec import Qrels, as_qrels, read_qrels

BETWEEN = "\x1e"  # separator of the entries of a list in a field of `texts`, because labels may have line ends
LONGEST_LINE = 1 << 26  # limit on the bytes of a line or record
ID_NAMES = ("id", "_id", "doc_id", "docno", "docid", "query_id", "qid")
QUERY_FIELDS = ("text", "title", "query")  # default fields of a query's text, in order of preference
SMART_FIELDS = {"T": "title", "A": "author", "B": "source", "K": "keywords", "W": "text"}
# The best grade of Cranfield is 1; -1 marks pairs that are not relevant.
CRANFIELD_GRADES = {"1": 4.0, "2": 3.0, "3": 2.0, "4": 1.0, "-1": 0.0}
_NONE = "the file has no {}; expected JSON lines, a table, TREC SGML or SMART records"
_HTML = re.compile(r"</(?:html|body|div|span|p|a|b|i|em|strong|li|ul|td|tr|h[1-6])>|<br ?/?>", re.IGNORECASE)


class Document(NamedTuple):
    """A document or a query."""

    id: str
    text: dict[str, str]
    """Text fields by name."""
    numbers: dict[str, float]
    vectors: dict[str, list[float]]


class _Bad(NamedTuple):
    """The reason why a document cannot be used, its line, and the document if only its id is missing."""

    reason: str
    line: int | None = None
    unnamed: Document | None = None


def read_documents(
    source: object,
    *,
    bad: str = "error",
    texts: Collection[str] = (),
    reserved: Collection[str] = (),
    numbered: bool = False,
) -> Iterator[Document]:
    """Yield the documents of a file; only one is in memory at a time.

    Parameters
    ----------
    source : path, "-", open file, or "ir_datasets:NAME"
        Plain, gzip, xz or zstd.
    bad : {"error", "skip"}, default "error"
    texts : collection of str, optional
        Fields of JSON lines and tables that are always text, such as the labels 007 and true. Entries of a list are
        joined by `BETWEEN`.
    reserved : collection of str, optional
        Names that a text field must not have; documents with such a field are bad.

    Raises
    ------
    DataFileError
        For the first bad document if `bad="error"`, and for a file without documents.

    Warns
    -----
    TruerankWarning
        At the end: the numbers of skipped documents (with reasons), empty documents, and documents with HTML tags.

    Examples
    --------
    >>> import io
    >>> lines = '{"id": 7, "text": "heat flow", "title": "Flow", "age": 3}'
    >>> next(read_documents(io.StringIO(lines)))
    Document(id='7', text={'text': 'heat flow', 'title': 'Flow'}, numbers={'age': 3.0}, vectors={})
    """
    check_choice(bad, "bad", ("error", "skip"))
    name, records = _records(source, "docs", texts)
    seen: set[str] = set()
    skipped: list[str] = []
    nameless, n_skipped, n_empty, n_html = False, 0, 0, 0
    for number, record in enumerate(records, 1):
        if isinstance(record, _Bad) and record.unnamed is not None and numbered and (number == 1 or nameless):
            nameless, record = True, record.unnamed._replace(id=str(number))
        if isinstance(record, Document):
            taken = next((field for field in record.text if field in reserved), None)
            if taken is None and record.id not in seen:
                seen.add(record.id)
                n_empty += not any(map(str.strip, record.text.values()))
                n_html += any(_HTML.search(text) for text in record.text.values() if "<" in text)
                yield record
                continue
            again = f" occurs again as number {number}; ids must differ"
            wrong = again if taken is None else f": a text field must not be called {taken!r}"
            record = _Bad(f"document {record.id!r}{wrong}")
        if bad == "error":
            raise DataFileError(
                record.reason,
                name,
                record.line,
                remedies=[Remedy("to leave such documents out", bad="skip")],
                code="bad-document",
            )
        n_skipped += 1
        if len(skipped) < 3:
            skipped.append(record.reason if record.line is None else f"line {record.line}: {record.reason}")
    if not seen:
        none = f"all {n_skipped} documents are bad: {'; '.join(skipped)}" if n_skipped else _NONE.format("documents")
        raise DataFileError(none, name)
    if n_skipped:
        more = "" if n_skipped <= len(skipped) else f"; and {n_skipped - len(skipped)} more"
        warn(f"{name}: bad documents were left out: {n_skipped} ({'; '.join(skipped)}{more})")
    if n_html:
        warn(f"{name}: HTML tags in {counted(n_html, 'document')} are indexed as words. Remove the tags first")
    if n_empty:
        warn(f"{name}: documents without text ({n_empty}) are kept with length 0, and no query will find them")


def read_queries(source: object, *, field: str | None = None) -> list[Document]:
    """Read the queries of a file in its order; the text of a query is `text["text"]`.

    Parameters
    ----------
    source : path, "-", open file, or "ir_datasets:NAME"
        JSON lines, table, TREC topics, or SMART. SMART queries are numbered 1, 2, … in the order of the file, because
        the judgements of Cranfield do not use `.I`.
    field : str, optional
        Field with the text of the query; by default "title" for TREC topics (or "desc", "narr"), else "text".

    Raises
    ------
    DataFileError
        For a query without an id, with a repeated id or without the field, and for a file without queries. A query
        without words is kept with a warning.

    Examples
    --------
    >>> import io
    >>> topics = "<top> <num> Number: 451 <title> What is a Bengals cat? <desc> Description: Tell. </top>"
    >>> [(query.id, query.text["text"]) for query in read_queries(io.StringIO(topics))]
    [('451', 'What is a Bengals cat?')]
    """
    name, records = _records(source, "queries")
    queries: list[Document] = []
    seen: set[str] = set()
    for record in records:
        if isinstance(record, _Bad) and record.unnamed is not None:  # the text of a query may be its id
            text = next((record.unnamed.text[key] for key in (field, *QUERY_FIELDS) if key in record.unnamed.text), "")
            record = record.unnamed._replace(id=text) if text.strip() else record
        if not isinstance(record, Document):
            raise DataFileError(record.reason, name, record.line)
        if record.id in seen:
            raise DataFileError(f"query id {record.id!r} occurs twice. Give each query its own id", name)
        seen.add(record.id)
        wanted = field or next((key for key in QUERY_FIELDS if key in record.text), "text")
        if wanted not in record.text:
            there = ", ".join(record.text) or "none"
            raise DataFileError(
                f"query {record.id!r} has no text field {wanted!r}. Its fields are: {there}", name, code="no-field"
            )
        queries.append(record._replace(text={"text": record.text[wanted]}))
    if not queries:
        raise DataFileError(_NONE.format("queries"), name)
    empty = [query.id for query in queries if not query.text["text"].strip()]
    if empty:
        warn(f"{name}: empty queries find no document: {len(empty)}, such as {empty[0]!r}")
    return queries


def queries_of(qrels: Qrels) -> list[Document]:
    """Return the queries of qrels with their texts; a query without a text has its id as text."""
    return [Document(query, {"text": qrels.texts.get(query, query)}, {}, {}) for query in qrels.query_ids.tolist()]


def read_judgements(source: object) -> Qrels:
    """Read qrels, Cranfield's `query doc grade` (1 is best), CISI's `query doc 0 0`, or `ir_datasets:NAME`.

    Cranfield's grades 1, 2, 3, 4, -1 become 4, 3, 2, 1, 0, with a warning if no grade is -1. If a pair is judged twice
    in Cranfield or CISI, the higher grade counts.

    >>> import io
    >>> read_judgements(io.BytesIO(b"1 184 2\\n1 29 -1\\n")).to_dict()
    {'1': {'184': 3, '29': 0}}
    >>> read_judgements(io.BytesIO(b" 1 28 0 0.000000\\n 1 35 0 0.000000\\n")).to_dict()
    {'1': {'28': 1, '35': 1}}
    """
    dataset = _dataset(source)
    if dataset is not None:
        return _as_qrels(
            (qrel.query_id, qrel.doc_id, float(qrel.relevance)) for qrel in _part(dataset, "qrels", str(source))
        )
    with Source(source) as stream:
        first = next(filter(None, map(bytes.split, stream.peek().split(b"\n"))), [])
        of_smart = (len(first) == 3 and NUMBER.fullmatch(first[2])) or (len(first) == 4 and first[2:3] == [b"0"])
        if not of_smart:
            return read_qrels(stream)
        name, text = stream.name, b"".join(stream.line_blocks())
    rows = [line.split() for line in text.decode("utf-8", "replace").splitlines() if line.strip()]
    if rows and all(len(row) == 3 for row in rows):
        for number, row in enumerate(rows, 1):
            if row[2] not in CRANFIELD_GRADES:
                raise DataFileError(
                    f"three columns are Cranfield's 'query doc grade' with a grade in 1, 2, 3, 4, -1, got {row[2]!r}. "
                    "TREC qrels have four columns",
                    name,
                    number,
                    code="columns",
                )
        if all(row[2] != "-1" for row in rows):
            warn(
                f"{name}: three columns are read as Cranfield's 'query doc grade', where grade 1 is the best "
                "and 4 the lowest. If a higher grade is better, write TREC qrels: 'query 0 doc grade'"
            )
        return _as_qrels((row[0], row[1], CRANFIELD_GRADES[row[2]]) for row in rows)
    if rows and all(len(row) == 4 and row[2] == "0" and re.fullmatch(r"0\.0+", row[3]) for row in rows):
        return _as_qrels((row[0], row[1], 1.0) for row in rows)
    stream_of_text = io.BytesIO(text)
    stream_of_text.name = name
    return read_qrels(stream_of_text)


def _as_qrels(rows: Iterable[tuple[object, object, float]]) -> Qrels:
    judged: dict[str, dict[str, float]] = {}
    for query, document, grade in rows:
        known = judged.setdefault(str(query), {})
        known[str(document)] = max(grade, known.get(str(document), -math.inf))
    return as_qrels(judged)


def _records(source: object, part: str, texts: Collection[str] = ()) -> tuple[str, Iterator[Document | _Bad]]:
    """Return the name of the source and its records; a bad record is a `_Bad`."""
    dataset = _dataset(source)
    if dataset is not None:
        return str(source), (_of_mapping(record._asdict()) for record in _part(dataset, part, str(source)))
    if isinstance(source, str | os.PathLike) and table_kind(source):
        return str(source), _of_table(source, texts)
    stream = Source(source)
    if part == "queries" and b'"querySetQueries"' in stream.peek():  # of the Search Relevance Workbench
        with stream:
            found = read_content(stream).first().get("querySetQueries")
        asked = [str(one["queryText"]) for one in found or () if isinstance(one, dict) and "queryText" in one]
        return stream.name, iter([Document(text, {"text": text}, {}, {}) for text in asked])
    return stream.name, _of_text(stream, part == "queries", texts)


def _of_text(stream: Source, queries: bool, texts: Collection[str]) -> Iterator[Document | _Bad]:
    with stream:
        lines = stream.lines(LONGEST_LINE)
        for number, line in lines:
            if line is not None and not line.strip():
                continue
            start = b"" if line is None else line.lstrip()
            first = chain([(number, line)], lines)
            if start.startswith(b".I"):
                yield from _of_smart(first, queries)
            elif start.startswith(b"<"):
                yield from _of_sgml(first, b"top" if queries else b"doc")
            else:
                yield from _of_json(first, texts)
            return


def _of_json(lines: Iterator[tuple[int, bytes | None]], texts: Collection[str]) -> Iterator[Document | _Bad]:
    for number, line in lines:
        if line is None:
            yield _Bad(f"the line has more than {LONGEST_LINE >> 20} MiB, the limit of a document", number)
        elif line.strip():
            try:
                record = json.loads(line.decode("utf-8"))
            except UnicodeDecodeError as error:
                yield _Bad(f"the line is not UTF-8 (byte {line[error.start]:#04x} at column {error.start + 1})", number)
            except (ValueError, RecursionError) as error:  # not JSON, or a number with thousands of digits
                yield _Bad(f"the line is not JSON ({error})", number)
            else:
                if isinstance(record, dict):
                    yield _of_mapping(record, number, texts)
                else:
                    yield _Bad(f"expected a JSON object with id and text, got {str(record)[:40]!r}", number)


def _of_mapping(record: dict[str, Any], line: int | None = None, texts: Collection[str] = ()) -> Document | _Bad:
    key = next((name for name in ID_NAMES if name in record), None)
    given = None if key is None else record.pop(key)
    with suppress(InvalidInputError):
        given = id_text(given) if isinstance(given, bytes | UUID) else given
    name = str(given).strip()
    if isinstance(given, bool) or not isinstance(given, str | int) or not name:
        other = _of_mapping({"id": "1"} | record, line, texts) if key is None else None
        unnamed = other if isinstance(other, Document) else None
        found = "" if given is None else f" (column {key!r} has {given!r:.40})"
        return _Bad(f"no id{found}; expected one of {', '.join(ID_NAMES)}, a string or whole number", line, unnamed)
    if not is_word(name):
        return _Bad(f"id {name[:40]!r} is not one word, as TREC runs require", line)
    if re.search("[\ud800-\udfff]", name):
        return _Bad(f"id {name[:40]!r} contains half a surrogate pair, which UTF-8 cannot encode", line)
    text: dict[str, str] = {}
    numbers: dict[str, float] = {}
    vectors: dict[str, list[float]] = {}
    for field, value in record.items():
        if field in texts and value is not None:
            parts = [own for own in (value if isinstance(value, list) else [value]) if not is_missing(own)]
            text[field] = BETWEEN.join(map(id_text, parts))  # equal for JSON lines and tables
        elif isinstance(value, str):
            text[field] = value
        elif isinstance(value, bool) or value is None:
            continue
        elif isinstance(value, int | float | Decimal):
            if not -1.7e308 < value < 1.7e308:
                return _Bad(f"field {field!r} must be a finite number, got {str(value)[:40]}", line)
            numbers[field] = float(value)
        elif isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            text[field] = "\n".join(value)
        elif isinstance(value, list) and value and all(type(item) in (int, float) for item in value):
            if not all(-3e38 < item < 3e38 for item in value):
                return _Bad(f"vector {field!r} must hold finite numbers", line)
            vectors[field] = [float(item) for item in value]
    if not (text or vectors or numbers):
        text = {"text": ""}
    return Document(name, text, numbers, vectors)


def _of_table(path: PathLike, texts: Collection[str]) -> Iterator[Document | _Bad]:
    """Yield the rows of a CSV, Parquet, Arrow or Feather file."""
    import pyarrow as pa
    import pyarrow.csv

    kind = table_kind(path)
    empty: set[str] = set()  # columns of CSV files without a value in the first rows

    def blocks(keep: ExitStack) -> Iterator[Any]:
        if kind in ("csv", "tsv"):
            place = _unpacked(path, keep)
            with Source(place) as stream:
                start = next(stream.line_blocks(), b"")
                delimiter, decimal = dialect(kind, start, str(path))
            first = start.partition(b"\n")[0].decode("utf-8", "replace").strip().lower().split("\t")
            bare = kind == "tsv" and len(first) == 2 and not {*first} & {*ID_NAMES, *QUERY_FIELDS, *texts}
            read = pyarrow.csv.ReadOptions(column_names=["id", "text"] if bare else None)  # as MS MARCO has them
            options = pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)

            def opened(as_text: Iterable[str]) -> Any:
                types = dict.fromkeys(as_text, pa.string())
                convert = pyarrow.csv.ConvertOptions(column_types=types, decimal_point=decimal)
                return pyarrow.csv.open_csv(place, read, options, convert)

            # The first rows determine the type of a column. Columns without values in them are read as text.
            with opened(ID_NAMES) as reader:
                empty.update(column.name for column in reader.schema if pa.types.is_null(column.type))
            with opened([*ID_NAMES, *QUERY_FIELDS, *texts, *empty]) as reader:  # a title may be "1984" or "2020-01-01"
                yield from reader
        else:
            yield from keep.enter_context(open_columnar(path, str(kind)))[1]

    def records() -> Iterator[dict[str, Any]]:
        try:
            with ExitStack() as keep:
                for block in blocks(keep):
                    if twice := repeated(block.schema.names):
                        what = f"two columns have the name {twice[0]!r}. Rename one of them"
                        raise DataFileError(what, str(path), code="twice")
                    yield from block.to_pylist()
        except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
            if isinstance(error, OSError) and error.filename is not None:
                raise
            raise DataFileError(
                f"cannot be read as {kind}: {first_line(error)}", str(path), code="unreadable"
            ) from error

    for number, record in enumerate(records(), 2):
        if kind == "tsv" and any(
            isinstance(cell, str) and holds_rows(cell, place, len(record)) for place, cell in enumerate(record.values())
        ):
            raise DataFileError(
                f'document {number - 1}: a cell starts with a quotation mark (") and contains the following lines. '
                'End the cell with a quotation mark, and double those within it ("")',
                str(path),
                code="open-quote",
            )
        there = (item for item in record.items() if item[1] is not None and not (item[1] == "" and item[0] in empty))
        yield _of_mapping(dict(there), number, texts)


def _unpacked(path: PathLike, keep: ExitStack) -> str:
    """Return the name of a plain UTF-8 file with the text: the file, or a temporary file that `keep` removes."""
    with Source(path, LONGEST_LINE) as stream:
        if stream.is_plain:
            return str(path)
        # Windows opens no file twice that is removed when it is closed, and removes none that a failed reader has open.
        folder = tempfile.TemporaryDirectory(prefix="truerank-", ignore_cleanup_errors=True)
        place = os.path.join(keep.enter_context(folder), "text")
        with naming(place), open(place, "wb") as made:
            made.writelines(stream.line_blocks())
    return place


def _of_smart(lines: Iterator[tuple[int, bytes | None]], queries: bool) -> Iterator[Document | _Bad]:
    """Yield SMART records: `.I id`, then fields `.T`, `.A`, `.B`, `.K` and `.W`; other fields are ignored."""
    held: dict[str, list[str]] = {}
    name, field, start, count = "", None, 0, 0

    def done() -> Document:
        text = {key: " ".join(part) for key, part in held.items()}
        return Document(str(count) if queries else name, text or {"text": ""}, {}, {})

    for number, raw in lines:
        if raw is None:
            yield _Bad(f"the line has more than {LONGEST_LINE >> 20} MiB", number)
            continue
        line = _decoded(raw)
        if re.match(r"\.I(\s|$)", line):
            if start:
                yield done()
            held, name, field, start, count = {}, line[2:].strip(), None, number, count + 1
            if len(name.split()) != 1:
                yield _Bad("no id after .I" if not name else f"id {name[:40]!r} is not one word", number)
                start, count = 0, count - 1
        elif re.fullmatch(r"\.[A-Z]\s*", line):
            field = SMART_FIELDS.get(line[1])
        elif field is not None and start:
            held.setdefault(field, []).append(line)
    if start:
        yield done()


_SGML_FIELDS = frozenset(
    ["docno", "num", "docid", "dochdr", "docoldno", "title", "text", "headline", "desc", "narr", "url", "anchor",
     "body"]
)  # fmt: skip
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)[^<>]*>")


def _of_sgml(lines: Iterator[tuple[int, bytes | None]], tag: bytes) -> Iterator[Document | _Bad]:
    """Yield TREC's `<DOC> … </DOC>` or `<top> … </top>`; inner tags may be left open, and the text is not XML."""
    opening, closing = b"<" + tag + b">", b"</" + tag + b">"
    held: list[bytes] = []
    size, start = 0, 0
    for number, line in lines:
        rest = line or b""
        size += LONGEST_LINE + 1 if line is None else 1
        while True:
            if not start:
                _, found, rest = _cut(rest, opening)
                if not found:
                    break
                start, size, held = number, 0, []
            part, found, rest = _cut(rest, closing)
            size += len(part)
            if size > LONGEST_LINE:
                held = []
            else:
                held.append(part)
            if not found:
                break
            if size > LONGEST_LINE:
                yield _Bad(f"the record has more than {LONGEST_LINE >> 20} MiB, the limit of a document", start)
            else:
                yield _of_tagged(_decoded(b"\n".join(held)), start, topic=tag == b"top")
            start = 0
    if start:
        yield _Bad(f"{opening.decode()} is not closed before the end of the file", start)


def _cut(text: bytes, tag: bytes) -> tuple[bytes, bool, bytes]:
    """Return the text before a tag (in upper or lower case), whether the tag was found, and the text after it."""
    place = text.lower().find(tag)
    return (text, False, b"") if place < 0 else (text[:place], True, text[place + len(tag) :])


def _of_tagged(text: str, line: int, *, topic: bool) -> Document | _Bad:
    name, fields = "", dict[str, list[str]]()
    field, place = "text", 0
    for match in [*_TAG.finditer(text), None]:
        part = text[place : len(text) if match is None else match.start()].strip()
        if part:
            if field in ("docno", "num"):
                name = name or re.sub(r"^Number:\s*", "", part, flags=re.I).partition("\n")[0]
                name = name.split()[0] if name.split() else ""
            elif field not in ("docid", "dochdr", "docoldno"):
                if topic:
                    part = re.sub(r"^(Topic|Description|Narrative):\s*", "", part, flags=re.I)
                fields.setdefault(field, []).append(html.unescape(part))
        if match is None:
            break
        closes, tag, place = match.group(1), match.group(2).lower(), match.end()
        # Within <text> of a document, other tags are markup, not fields.
        if closes:
            field = "text" if field == tag or field == "text" else field
        elif tag in _SGML_FIELDS:
            field = {"headline": "title", "body": "text"}.get(tag, tag)
        elif topic:
            field = tag
    if not name:
        return _Bad("no <num>" if topic else "no <DOCNO>", line)
    return Document(name, {key: "\n".join(parts) for key, parts in fields.items()} or {"text": ""}, {}, {})


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _dataset(source: object) -> Any:
    """Return the `ir_datasets` collection of "ir_datasets:NAME", else None."""
    if not isinstance(source, str) or not source.startswith("ir_datasets:"):
        return None
    import ir_datasets

    try:
        return ir_datasets.load(source.removeprefix("ir_datasets:"))
    except KeyError as error:
        raise DataFileError(
            "ir_datasets has no collection of this name. Choose one of https://ir-datasets.com",
            source,
            code="no-collection",
        ) from error


def _part(dataset: Any, part: str, name: str) -> Iterator[Any]:
    if not getattr(dataset, f"has_{part}")():
        raise DataFileError(f"this collection has no {part}. Name another one", name)
    return getattr(dataset, f"{part}_iter")()
