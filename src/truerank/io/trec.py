"""Read, write and join TREC runs (`topic Q0 docno rank score tag`) and qrels (`topic iteration docno grade`)."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import compress, pairwise
from operator import ne
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import is_table
from truerank.core.errors import DataFileError, InvalidInputError, warn
from truerank.core.layers import is_large
from truerank.core.names import resolve
from truerank.core.printing import printable
from truerank.data.grouping import RowsByQuery, group_rows, offsets_of
from truerank.data.ranking_data import Judgements
from truerank.io.document_ids import DocumentIds
from truerank.io.first_bytes import is_other_order, is_trec
from truerank.io.letor.grammar import NUMBER, check_bytes, check_line_ends, is_word
from truerank.io.lists import as_lists, from_dict, is_ranked, once
from truerank.io.run_ranks import are_places, contradicts_ranks
from truerank.io.streams import COMPRESSED, Source, open_output
from truerank.io.topics import topic_texts, write_topics

# Smaller files are parsed in plain Python, because loading the compiled parser would cost more (numba imported or not).
KERNEL_AFTER_LOADED, KERNEL_AFTER = 1 << 17, 2 << 20
_NO_ROWS = slice(0, 0)
_DOOR = "truerank.io.judgements.registry"


class _Lists(RowsByQuery):
    """Documents by topic."""

    __slots__ = ("_ids", "offsets", "query_ids")

    def __init__(self, query_ids: np.ndarray, offsets: np.ndarray, doc_ids: np.ndarray | DocumentIds) -> None:
        self.query_ids, self.offsets = query_ids, offsets
        self._ids = doc_ids

    @property
    def doc_ids(self) -> np.ndarray:
        """Document ids as strings, StringDType (n,)."""
        return self._ids.texts if isinstance(self._ids, DocumentIds) else self._ids

    @property
    def ids(self) -> DocumentIds:
        """The document ids as bytes."""
        if not isinstance(self._ids, DocumentIds):
            self._ids = DocumentIds.of(self._ids)
        return self._ids

    def rows(self) -> dict[str, slice]:
        """Return the rows of each topic."""
        ends = self.offsets.tolist()
        return dict(zip(self.query_ids.tolist(), map(slice, ends, ends[1:])))

    def by_topic(self, values: np.ndarray) -> dict[str, dict[str, Any]]:
        """Return `{topic: {docno: value}}` from one value (n,) for each document."""
        documents, given = self.doc_ids.tolist(), values.tolist()
        return {topic: dict(zip(documents[own], given[own])) for topic, own in self.rows().items()}


class Run(_Lists):
    """The documents that a system retrieved for each topic, with their scores.

    `query_ids` (m,) are the topics in order of first appearance, always strings: "051" is not "51". Rows of topic i are
    `offsets[i]:offsets[i + 1]`, in the order of the file, of `scores` (n,) and of the documents: `doc_ids`, a
    StringDType array, or the same `ids` as bytes. `tag` is the name of the run, "" if rows have different names.
    `contradicts_ranks` is True if, in most topics of the first 5,000 lines, better ranks have lower scores, or if the
    scores of lists are 1, 2, 3, … in row order.
    """

    __slots__ = ("contradicts_ranks", "scores", "tag")

    def __init__(
        self,
        query_ids: np.ndarray,
        offsets: np.ndarray,
        doc_ids: np.ndarray | DocumentIds,
        scores: np.ndarray,
        tag: str = "",
        contradicts_ranks: bool = False,
    ) -> None:
        super().__init__(query_ids, offsets, doc_ids)
        self.scores, self.tag, self.contradicts_ranks = scores, tag, contradicts_ranks

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return `{topic: {docno: score}}`, the form of pytrec_eval and ranx."""
        return self.by_topic(self.scores)

    def write(self, target: object, *, tag: str | None = None, depth: int | None = None) -> None:
        """Write the run with `write_run`, by default with its own name as tag."""
        name = self.tag if tag is None else tag
        write_run(self, target, tag=name, depth=depth)

    def __repr__(self) -> str:
        return f"Run({self.tag!r}, {self.n_queries} topics, {self.n_rows} documents)"


class Qrels(_Lists):
    """Judged documents by topic, as `query_ids` (m,), `offsets` (m + 1,), `ids`, and `doc_ids` (n,), as in `Run`.

    `grades` are float64 (n,). A negative grade marks a document that was pooled but not judged. Measures treat it as
    unjudged. `texts` has the texts of topics whose ids differ from their texts, if they are known.
    """

    __slots__ = ("grades", "texts")

    def __init__(
        self,
        query_ids: np.ndarray,
        offsets: np.ndarray,
        doc_ids: np.ndarray | DocumentIds,
        grades: np.ndarray,
        texts: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(query_ids, offsets, doc_ids)
        self.grades, self.texts = grades, dict(texts or {})

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Return `{topic: {docno: grade}}`, the form of pytrec_eval; grades must be integers."""
        if len(wrong := self.grades[self.grades != np.floor(self.grades)]):
            raise InvalidInputError(f"to_dict: pytrec_eval requires integer grades, got {wrong[0]:g}. Round the grades")
        return self.by_topic(np.array([int(grade) for grade in self.grades], dtype=object))

    def __repr__(self) -> str:
        return f"Qrels({self.n_queries} topics, {self.n_rows} judgments)"


def read_run(source: object, *, repeated: bool = False) -> Run:
    """Read a run: TREC text, a table, or JSON.

    Documents are ordered by score, as in trec_eval; the rank column of TREC text is ignored. Lines that begin with `#`
    are skipped. Columns after the sixth are ignored with a warning. A table (CSV, TSV, Parquet, Arrow, JSON lines) has
    columns such as `query_id`, `doc_id` and `score` or `rank`. JSON has the form of ranx or `{"query": …, "results":
    […]}`, where a list without scores is ranked. Query ids of tables and JSON may be any text. TREC text has generated
    ids instead, which `topics.tsv` in the same folder explains (`write_run`).

    Parameters
    ----------
    source : path, "-", or open file
        Plain, gzip, xz or zstd.
    repeated : bool, default False
        Whether to keep all entries of a document that TREC text lists several times for a topic, as in lists of chunks.

    Raises
    ------
    DataFileError
        For a row with fewer than six columns, a score that is not a finite number, or a document that is listed twice
        for a topic. The message names the file and the line.

    Examples
    --------
    >>> import io
    >>> run = read_run(io.StringIO("1 Q0 D7 1 12.5 mine\\n1 Q0 D3 2 11 mine\\n2 Q0 D7 1 4e-1 mine\\n"))
    >>> run, run.doc_ids.tolist(), run.scores.tolist()
    (Run('mine', 2 topics, 3 documents), ['D7', 'D3', 'D7'], [12.5, 11.0, 0.4])
    """
    with Source(source) as stream:
        if not is_trec(stream.peek(), 6):
            lists = resolve("truerank.io.judgements.runs:read_lists")(stream)
            return _of_lists(lists, run_name(stream.name))
        form = "topic Q0 docno rank score tag"
        names, offsets, doc_ids, scores, tags, contradicts = _read(stream, 6, 4, "a score", form, repeated)
        topics, _ = topic_texts(names, stream.name)
    return Run(topics, offsets, doc_ids, scores, tags.pop() if len(tags) == 1 else "", contradicts)


def read_qrels(source: object, *, grades: object = None, aggregate: str | None = None) -> Qrels:
    """Read judgements: TREC qrels, or another format that `read_ratings` knows.

    In TREC qrels lines that begin with `#` are skipped. Repeated judgements are dropped with a warning.

    Parameters
    ----------
    source : path, "-", open file, or data frame
        Text may be plain, gzip, xz or zstd.
    grades : dict of str to float, or str, optional
        The numbers of grades in words, as in `read_ratings`.
    aggregate : {"mean", "median", "majority", "first"}, optional
        Rule that combines several grades of a document. By default, differing grades are an error.

    Raises
    ------
    DataFileError
        For a row without exactly four columns, a grade that is not a finite number, or a document with two grades for a
        topic. The message names the file and the line, or the apparent format of a file without judgements.

    Examples
    --------
    >>> import io
    >>> qrels = read_qrels(io.StringIO("1 0 D7 2\\n1 0 D1 1\\n2 0 D7 -1\\n"))
    >>> qrels, qrels.offsets.tolist(), qrels.grades.tolist()
    (Qrels(2 topics, 3 judgments), [0, 2, 3], [2.0, 1.0, -1.0])
    >>> read_qrels(io.StringIO("query,docid,rating\\nred shoes,D7,Good\\n"), grades="Good=2 Bad=0").to_dict()
    {'red shoes': {'D7': 2}}
    """
    is_folder = isinstance(source, str | os.PathLike) and os.path.isdir(source)
    if is_table(source) or is_folder or grades is not None or aggregate is not None:
        return _other_qrels(source, grades, aggregate)
    with source if isinstance(source, Source) else Source(source) as stream:
        if not is_trec(stream.peek(), 4) or is_other_order(stream.peek()):
            return _other_qrels(stream, None, None)
        names, offsets, doc_ids, values, *_ = _read(stream, 4, 3, "a grade", "topic iteration docno grade")
        topics, texts = topic_texts(names, stream.name)
    return Qrels(topics, offsets, doc_ids, values, texts)


def _other_qrels(source: object, grades: object, aggregate: str | None) -> Qrels:
    return resolve(f"{_DOOR}:read_ratings")(source, grades=grades).qrels(aggregate)


def as_run(run: object, tag: str = "") -> Run:
    """Return a `Run` from a run, a path, an open file, ranked lists, or an object that `as_lists` accepts.

    >>> as_run({"1": {"d1": 2.0, "d2": 0.5}}, "mine")
    Run('mine', 1 topics, 2 documents)
    """
    if isinstance(run, Run):
        return run
    lists = as_lists(run, "score")
    if lists is None:
        return read_run(run)
    if any(map(is_ranked, lists.values())):
        lists = resolve("truerank.io.results:ranked_scores")(lists)
    return _of_lists(lists, tag or str(getattr(run, "name", None) or ""))


def _of_lists(lists: Mapping[Any, Mapping[Any, Any]], tag: str) -> Run:
    topics, offsets, documents, scores = from_dict(lists)
    return Run(topics, offsets, documents, scores, tag, are_places(scores, offsets))


def as_qrels(qrels: object) -> Qrels:
    """Return `Qrels` from qrels, ratings, a path, an open file, or an object that `as_lists` accepts."""
    if isinstance(qrels, Qrels):
        return qrels
    if is_table(qrels):
        return _other_qrels(qrels, None, None)
    lists = as_lists(qrels, "grade")
    if lists is None and callable(getattr(qrels, "qrels", None)):  # `Ratings`
        return qrels.qrels()  # type: ignore[attr-defined]
    return read_qrels(qrels) if lists is None else Qrels(*from_dict(lists))


def run_name(path: str) -> str:
    """Return the name of a run: the `printable` name of its file without suffixes of compression, runs and tables.

    >>> run_name("runs/bm25.run.gz")
    'bm25'
    """
    name = Path(path).name
    for suffix in (*COMPRESSED, ".json", ".run", ".txt", ".trec", ".csv", ".tsv", ".jsonl", ".parquet"):
        name = name.removesuffix(suffix)
    return printable(name or path)


def unlike_names(names: list[str], paths: Iterable[str | None]) -> list[str]:
    """Return the names, or if two are equal, the paths of the systems that are files.

    >>> unlike_names(["m", "m", "bm25"], ["one/m.json", "two/m.json", None])
    ['one/m.json', 'two/m.json', 'bm25']
    """
    if len(set(names)) == len(names):
        return names
    return [name if path is None else printable(path) for name, path in zip(names, paths)]


def write_run(run: object, path: object, *, tag: str | None = None, depth: int | None = None) -> None:
    """Write a TREC run: the documents of each topic by descending score, ties in the given order, ranks from 1.

    Parameters
    ----------
    run : Run, `{topic: {document: score}}`, or data frame
        Scores are written so that they are read back as the same float64.
    path : path, "-", or open file
        A path ending in `.gz`, `.xz` or `.zst` is compressed. A file is written atomically. A path ending in .csv,
        .tsv, .parquet, .arrow or .jsonl becomes a table, whose query ids may be any text. In TREC text, ids that are
        not one word are replaced by generated ids, and `topics.tsv` in the same folder has the texts; `read_run` and
        `read_qrels` apply it.
    tag : str, optional
        Name of the run, by default the name of the Run, or "truerank".
    depth : int, optional
        Number of documents to keep of each topic, the best first.

    Raises
    ------
    InvalidInputError
        For different lengths, scores that are not finite, document ids or a tag that are not one word, or a document
        that is listed twice for a topic.

    Examples
    --------
    >>> import io
    >>> stream = io.StringIO()
    >>> write_run({"7": {"D1": 0.5, "D2": 2.0}}, stream, tag="mine")
    >>> print(stream.getvalue(), end="")
    7 Q0 D2 1 2.0 mine
    7 Q0 D1 2 0.5 mine
    """
    run = as_run(run)
    tag = (run.tag or "truerank") if tag is None else tag
    offsets = np.asarray(run.offsets, dtype=np.int64)
    kind = resolve("truerank.io.judgements.tables:kind_of")(path)
    names = list(map(str, np.asarray(run.query_ids).tolist()))
    documents = _words(run.doc_ids, "document id") if kind is None else list(map(str, run.doc_ids.tolist()))
    values = np.asarray(run.scores, dtype=np.float64)
    if values.shape != (len(documents),) or len(offsets) != len(names) + 1 or offsets[-1] != len(values):
        raise InvalidInputError(
            f"write_run requires offsets (topics + 1,) and a score for each document, got {len(names)} topics, "
            f"offsets {offsets.shape}, {len(documents)} documents and scores {values.shape}",
            code="different-shapes",
        )
    if not np.isfinite(values).all():
        wrong = int(np.isfinite(values).argmin())
        what = f"write_run: the score of document {documents[wrong]!r} is {values[wrong]}"
        raise InvalidInputError(f"{what}, but scores must be finite numbers", code="not-finite")
    _words([tag], "tag")
    rows: list[tuple[str, str, int, float]] = []
    for name, (start, stop) in zip(names, pairwise(offsets.tolist())):
        once(documents[start:stop], "write_run: document", f"for topic {name!r}")
        order = np.argsort(-values[start:stop], kind="stable")[:depth]
        best = values[start:stop][order].tolist()
        rows += [
            (name, documents[start + k], rank, score) for rank, (k, score) in enumerate(zip(order.tolist(), best), 1)
        ]
    if kind is not None:
        columns = zip(*rows) if rows else [()] * 4
        table = dict(zip(("query_id", "doc_id", "rank", "score"), map(list, columns))) | {"tag": [tag] * len(rows)}
        resolve("truerank.io.judgements.tables:write_rows")(table, path)
        return
    words = write_topics(path, names, {}, "write_run")
    with open_output(path) as stream:
        for name, document, rank, score in rows:
            stream.write(f"{words[name]} Q0 {document} {rank} {score!r} {tag}\n".encode())


def write_qrels(qrels: object, path: object) -> None:
    """Write TREC qrels: `topic 0 docno grade`. Whole grades have no decimal point.

    Parameters
    ----------
    qrels : Qrels, `{topic: {document: grade}}`, or data frame
    path : path, "-", or open file
        As in `write_run`: a table by its suffix, else TREC text, with `topics.tsv` for the texts of queries.

    Raises
    ------
    InvalidInputError
        For document ids that are not one word, and for a document that is listed twice for a topic.
    """
    qrels = as_qrels(qrels)
    if resolve("truerank.io.judgements.tables:kind_of")(path) is not None:
        resolve(f"{_DOOR}:write_ratings")(qrels, path)
        return
    documents, topics = _words(qrels.doc_ids, "document id"), list(map(str, qrels.query_ids.tolist()))
    words = write_topics(path, topics, qrels.texts, "write_qrels")
    names = [words[topic] for topic in topics]
    grades = [str(int(grade)) if grade == int(grade) else repr(grade) for grade in qrels.grades.tolist()]
    with open_output(path) as stream:
        for name, (start, stop) in zip(names, pairwise(qrels.offsets.tolist())):
            rows = zip(once(documents[start:stop], "write_qrels: document", f"for topic {name!r}"), grades[start:stop])
            stream.write("".join(f"{name} 0 {document} {grade}\n" for document, grade in rows).encode("utf-8"))


def judge_run(qrels: object, run: object) -> tuple[Judgements, np.ndarray]:
    """Join a run with qrels, including judged documents that the run did not retrieve.

    Topics are in the order of the qrels. A topic that the run lacks becomes a query without rows, whose value the
    setting `missing_topics` of a measure decides. Topics that the qrels lack are left out, as in trec_eval.

    Parameters
    ----------
    qrels : Qrels, `{topic: {document: grade}}`, path or data frame
    run : Run, `{topic: {document: score}}`, path or data frame

    Returns
    -------
    judgements : Judgements
        Retrieved documents without a judgement have grade 0 and `judged` False. `tie_keys` are the document ids.
        `missing_grades` has the grades of the judged documents that were not retrieved.
    scores : float64 array (n,)
        Scores of the run in the same order.

    Examples
    --------
    >>> import io
    >>> qrels = read_qrels(io.StringIO("1 0 a 2\\n1 0 b 1\\n2 0 a 1\\n"))
    >>> run = read_run(io.StringIO("1 Q0 c 1 9 x\\n1 Q0 a 2 8 x\\n"))
    >>> judgements, scores = judge_run(qrels, run)
    >>> judgements.grades.tolist(), judgements.judged.tolist(), scores.tolist()
    ([0.0, 2.0], [False, True], [9.0, 8.0])
    >>> judgements.offsets.tolist(), judgements.missing_grades.tolist(), judgements.missing_offsets.tolist()
    ([0, 2, 2], [1.0, 1.0], [0, 1, 2])
    """
    qrels, run = as_qrels(qrels), as_run(run)
    places, every = run.rows(), np.arange(run.n_rows)
    parts = [every[places.get(name, _NO_ROWS)] for name in qrels.query_ids.tolist()]
    rows = np.concatenate([every[_NO_ROWS], *parts])
    return judge_lists(qrels, qrels.query_ids, run.doc_ids[rows], offsets_of(list(map(len, parts)))), run.scores[rows]


def judge_lists(qrels: Qrels, query_ids: np.ndarray, doc_ids: np.ndarray, offsets: np.ndarray) -> Judgements:
    """Join lists of documents with qrels, including the judged documents that are not in the lists.

    The documents of topic `query_ids[i]` are `doc_ids[offsets[i]:offsets[i + 1]]`. Topics outside the qrels are
    unjudged.
    """
    places = qrels.rows()
    grades: list[float] = []
    missing: list[float] = []
    missing_sizes = []
    for name, (start, stop) in zip(query_ids.tolist(), pairwise(offsets.tolist())):
        part = places.get(name, _NO_ROWS)
        judged = dict(zip(qrels.doc_ids[part].tolist(), qrels.grades[part].tolist()))
        grades.extend([judged.pop(document, math.nan) for document in doc_ids[start:stop].tolist()])
        missing.extend(judged.values())
        missing_sizes.append(len(judged))
    values = np.array(grades, dtype=np.float64)
    known = ~np.isnan(values)
    return Judgements(
        np.where(known, values, 0.0),
        offsets,
        judged=known,
        tie_keys=doc_ids,
        query_ids=query_ids,
        missing_grades=np.array(missing, dtype=np.float64),
        missing_offsets=offsets_of(missing_sizes),
    )


class _Block(NamedTuple):
    """Rows of a block of lines."""

    topics: list[tuple[int, bytes]]  # row and name where the topic changes
    ids: DocumentIds
    values: np.ndarray
    lines: np.ndarray
    tags: set[bytes]
    n_ignored: int = 0


def _read(
    stream: Source, n_columns: int, value_column: int, wanted: str, form: str, repeated: bool = False
) -> tuple[list[str], np.ndarray, DocumentIds, np.ndarray, set[str], bool]:
    """Return topics, offsets, documents, values, tags and `contradicts_ranks` of a file with `n_columns` columns."""
    codes: dict[bytes, int] = {}
    code_parts: list[np.ndarray] = []
    blocks: list[_Block] = []
    compiled: Any = None
    first, size, ignored, contradicts = 1, 0, 0, False
    for text in stream.line_blocks():
        check_bytes(text, stream.name, first)
        check_line_ends(text, stream.name, first)
        size += len(text)
        expected = max(size, stream.expected_size)
        if compiled is None and is_large(expected, KERNEL_AFTER, KERNEL_AFTER_LOADED):
            from truerank.io.trec_kernel import parse_block

            compiled = parse_block
        found = None if compiled is None else compiled(text, n_columns, value_column, first)
        if found is None:  # the plain parser reads more forms, and explains errors
            block = _parse_lines(text, first, n_columns, value_column, wanted, form, stream.name)
        else:
            changes, (utf8, ends), *rest = found
            block = _Block(changes, DocumentIds(utf8, ends[:-1], ends[1:]), *rest)
        if n_columns == 6 and first == 1:
            contradicts = contradicts_ranks(text)
        first += text.count(b"\n")
        ignored = max(ignored, block.n_ignored)
        if not block.topics:
            continue
        numbers = [codes.setdefault(topic, len(codes)) for _, topic in block.topics]
        starts = [row for row, _ in block.topics]
        code_parts.append(np.repeat(np.array(numbers, dtype=np.int64), np.diff([*starts, len(block.values)])))
        blocks.append(block)
    name = stream.name
    if not codes:
        raise DataFileError(f"the file has no rows. Expected lines '{form}'", name, code="no-rows")
    grouping = group_rows(np.concatenate(code_parts))
    ids = DocumentIds.concatenate(block.ids for block in blocks)
    values = grouping.grouped(np.concatenate([block.values for block in blocks]))
    if grouping.order is not None:
        ids = ids.take(grouping.order)
    offsets, topics = grouping.offsets, [topic.decode("utf-8") for topic in codes]
    if not repeated and not _are_unique(ids, offsets, compiled is not None):
        lines = grouping.grouped(np.concatenate([block.lines for block in blocks]))
        kept = _without_repeats(ids, values, lines, dict(zip(topics, pairwise(offsets.tolist()))), n_columns == 6, name)
        warn(f"{name}: judgements that repeat an earlier line were dropped: {len(values) - len(kept)}")
        offsets, ids, values = np.searchsorted(kept, offsets), ids.take(kept), values[kept]
    tags = {tag.decode("utf-8") for block in blocks for tag in block.tags}
    if ignored:
        warn(f"{name}: ignored up to {ignored} columns after '{form}'")
    return topics, offsets, ids, values, tags, contradicts


def _parse_lines(
    text: bytes, first: int, n_columns: int, value_column: int, wanted: str, form: str, name: str
) -> _Block:
    """Parse a block of lines in plain Python; its first line has the number `first`."""
    rows = [line.split() for line in text.split(b"\n")]
    kept = [k for k, row in enumerate(rows) if row and row[0][:1] != b"#"]
    if not kept:
        return _Block([], DocumentIds.of([]), np.zeros(0), np.zeros(0, dtype=np.int64), set())
    places, rows = np.array(kept, dtype=np.int64) + first, [rows[k] for k in kept]
    widths = list(map(len, rows))
    if min(widths) < n_columns or (max(widths) > n_columns and n_columns == 4):
        wrong = next(k for k, width in enumerate(widths) if width < n_columns or (width > n_columns and n_columns == 4))
        shown = b" ".join(rows[wrong])[:60].decode("utf-8", "replace")
        what = f"expected {n_columns} columns '{form}', got {widths[wrong]}: {shown!r}"
        raise DataFileError(what, name, int(places[wrong]), code="columns")
    columns = list(zip(*rows))
    starts = [0, *compress(range(1, len(rows)), map(ne, columns[0][1:], columns[0]))]
    return _Block(
        [(k, columns[0][k]) for k in starts],
        DocumentIds.back_to_back(b"".join(columns[2]), map(len, columns[2]), len(rows)),
        _values(columns[value_column], places, wanted, name),
        places,
        set(columns[5]) if n_columns == 6 else set(),
        max(widths) - n_columns,
    )


def _are_unique(ids: DocumentIds, offsets: np.ndarray, compiled: bool) -> bool:
    """Return whether each topic lists each document at most once."""
    if compiled:
        from truerank.io.trec_kernel import are_unique

        return bool(are_unique(ids.utf8, ids.begins, ids.ends, ids.hashes, offsets))
    texts = ids.texts.tolist()
    return all(len(set(texts[start:stop])) == stop - start for start, stop in pairwise(offsets.tolist()))


def _without_repeats(
    ids: DocumentIds, values: np.ndarray, lines: np.ndarray, topics: dict[str, tuple[int, int]], is_run: bool, name: str
) -> list[int]:
    """Return the rows that do not repeat a judgement of their topic; raise if a document has two values."""
    texts, given, kept = ids.texts.tolist(), values.tolist(), []
    for topic, (start, stop) in topics.items():
        first: dict[str, int] = {}
        for row in range(start, stop):
            earlier = first.setdefault(texts[row], row)
            if earlier == row:
                kept.append(row)
            elif is_run or given[earlier] != given[row]:
                once = "lists a document once" if is_run else "has one grade for a document"
                what = f"document {texts[row]!r} is listed twice for topic {topic!r}; a topic {once}"
                raise DataFileError(what, name, int(lines[row]), remedies=["remove a line"], code="twice")
    return kept


def _values(texts: Sequence[bytes], places: np.ndarray, wanted: str, name: str) -> np.ndarray:
    with suppress(ValueError):
        values = np.array(list(map(float, texts)))
        if np.isfinite(values).all() and b"_" not in b"".join(texts):
            return values
    wrong = next(k for k, text in enumerate(texts) if not NUMBER.fullmatch(text) or math.isinf(float(text)))
    shown = texts[wrong][:40].decode("utf-8", "replace")
    raise DataFileError(
        f"expected {wanted} (a finite number), got {shown!r}", name, int(places[wrong]), code="not-a-number"
    )


def _words(values: Sequence[Any] | np.ndarray, kind: str) -> list[str]:
    texts = [str(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]
    for text in texts:
        if not is_word(text):
            raise InvalidInputError(
                f"{kind} {text!r} cannot be written to a TREC file: it must be one word. Use ids without blanks, or "
                "scores by row (predict)",
                code="not-one-word",
            )
    return texts
