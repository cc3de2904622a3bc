"""Gold sets: the relevant documents of each query, its segments, and relevant spans of text.

    {"query_id": "q1", "relevant": ["d3"], "language": "de"}
    {"query_id": "q2", "relevant": {"d7": 2, "d2": 1}, "language": "en"}
    {"query_id": "q3", "relevant": [{"doc": "d5", "start": 120, "end": 260}]}

Judgements are read in every format of `io.judgements`. Segments are further fields of JSON lines.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.printing import counted
from truerank.data.grouping import id_text
from truerank.io.judgements.content import Content, read_content
from truerank.io.judgements.nested import rows_of
from truerank.io.judgements.ratings import Row
from truerank.io.judgements.registry import ratings_of, recognised
from truerank.io.judgements.roles import lists_documents, lists_of_other_kind, plain, roles_of
from truerank.io.results import ResultLists, best_first, collapsed
from truerank.io.streams import Source
from truerank.io.trec import Qrels, as_qrels

_LEAST_OVERLAP = 0.5  # share of a span that a chunk must contain


class Span(NamedTuple):
    """Characters of a document, `end` excluded, with the grade of a relevant span or the score of a chunk."""

    document: str
    start: float
    end: float
    value: float = 1.0

    @property
    def name(self) -> str:
        """The id under which the span counts as a document."""
        return f"{self.document}:{self.start:g}-{self.end:g}"


@dataclass(frozen=True)
class GoldSet:
    """Qrels, the labels `{field: {query: label}}`, and the relevant spans of each query as documents of the qrels."""

    qrels: Qrels
    segments: dict[str, dict[str, str]] = field(default_factory=dict)
    spans: dict[str, list[Span]] = field(default_factory=dict)


def read_gold(source: object) -> GoldSet:
    """Return a gold set from a path or open file of judgements in any known form, or from qrels.

    Raises
    ------
    DataFileError
        For a file without judgements, with its apparent format; for a damaged line, with its number.
    """
    if isinstance(source, GoldSet):
        return source
    if not isinstance(source, str | os.PathLike):
        return GoldSet(as_qrels(source))
    with Source(source) as stream:
        content = _unwrapped(read_content(stream))
    lines = [(line, own) for line, own in content.values if isinstance(own, dict) and _query(own) is not None]
    if not any(_lists(own) for _, own in lines):
        return GoldSet(ratings_of(content).qrels())
    if len(lines) < len(content.values):
        line = next(line for line, own in content.values if not isinstance(own, dict) or _query(own) is None)
        raise DataFileError(
            "the line has no query, or no list of documents such as relevant. Add both, or remove it",
            content.name,
            line,
        )
    spans, segments, rest = dict[str, list[Span]](), dict[str, dict[str, str]](), list[tuple[int | None, Any]]()
    grades, texts = dict[str, dict[str, float]](), dict[str, str]()
    for line, record in lines:
        query, rows = str(_query(record)), list(rows_of(record, line))
        if query in grades:
            raise DataFileError(f"query {query!r} occurs twice. Write one line for each query", content.name, line)
        own = [_span(row, f"{content.name}, line {line}", "grade") for row in rows if row.span is not None]
        grades[query] = {span.name: span.value for span in own}
        if own and (lacking := len(rows) - len(own)):
            what = f"query {query!r:.80} has spans as labels, but {counted(lacking, 'label')} without start and end"
            raise DataFileError(f"{what}. Expected document, start and end", content.name, line, code="no-span")
        if own:
            spans[query] = own
        elif any(own for key, own in record.items() if lists_documents(plain(key))):  # else nothing is relevant
            rest.append((line, record))
        roles = roles_of(record)
        texts |= {query: str(record[roles["text"]])} if "text" in roles else {}
        names = {*roles.values(), "id", "_id"}
        for key, value in record.items():
            if key not in names and isinstance(value, str | int | bool):
                segments.setdefault(key, {})[query] = str(value)
    if rest:
        qrels = ratings_of(content._replace(values=rest)).qrels()
        grades.update({query: dict(own) for query, own in qrels.by_topic(qrels.grades).items()})
    judged = as_qrels(grades)
    judged.texts = texts
    return GoldSet(judged, segments, spans)


def _unwrapped(content: Content) -> Content:
    """Return the questions of a JSON object that wraps them, such as {"version": 1, "queries": […]}."""
    whole = content.values[0][1] if len(content.values) == 1 else None
    if not isinstance(whole, dict) or _query(whole) is not None or getattr(recognised(content), "name", "") != "json":
        return content
    inside = [own for own in whole.values() if isinstance(own, list) and own]
    records = inside[0] if len(inside) == 1 else []
    asked = [isinstance(one, dict) and isinstance(one.get(roles_of(one).get("text")), str) for one in records]
    return content._replace(values=[(None, one) for one in records]) if asked and all(asked) else content


def _lists(record: Mapping[str, Any]) -> bool:
    """Return whether a record lists relevant documents, or has an empty list of them."""
    return any(lists_documents(plain(key)) and isinstance(own, dict | list | None) for key, own in record.items())


def _query(record: Mapping[str, Any], what: str = "grade") -> str | None:
    """Return the query of a line of a gold set or (for "score") of results, else None. A question may have no list."""
    roles, known = roles_of(record, what), {plain(key): value for key, value in record.items()}
    if what == "grade" and not _lists(record) and ("text" not in roles or "grade" in roles):
        return None
    found = [record.get(roles.get("query", "")), known.get("id"), record.get(roles.get("text", ""))]
    return next((id_text(one) for one in found if isinstance(one, str | int)), None)


def _span(row: Row, where: str, what: str) -> Span:
    """Return the span of a row whose `what` is "grade" or "score"."""
    try:
        start, end, value = (float(one) for one in (*(row.span or ()), 1.0 if row.grade is None else row.grade))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{where}: start, end and {what} of a span must be numbers, got {(*(row.span or ()), row.grade)}"
        ) from error
    if not start < end:
        raise InvalidInputError(f"{where}: the start {start:g} of a span must be below its end {end:g}")
    return Span(row.document, start, end, value)


def matched_spans(source: object, gold: GoldSet, collapse: Any = None) -> ResultLists:
    """Return result lists in which a chunk with at least half of a relevant span is replaced by this span.

    A span counts once, at the rank of its best chunk. A chunk that contains several spans is replaced by all of them in
    order. Each other chunk is named by its own span. Results are JSON lines, or a dict by query of lists, of objects
    with a document, `start` and `end`. Queries whose labels are ids keep the ids of their results, or of `collapse`.

    Raises
    ------
    InvalidInputError
        For a result without `start` and `end` if the labels are spans. If it were left out, other results would move
        up.

    Examples
    --------
    >>> gold = GoldSet(as_qrels({"q": {}}), spans={"q": [Span("d", 100, 200)]})
    >>> chunks = [{"doc": "d", "start": start, "end": start + 120} for start in (0, 90, 130)]
    >>> [name for name, _ in matched_spans({"q": chunks}, gold)["q"]]
    ['d:0-120', 'd:100-200', 'd:130-250']
    """
    result: ResultLists = {}
    for where, query, found in _records(source):
        rows = list(rows_of(found, None, "score"))
        if query in gold.spans:
            result[query] = _as_spans(rows, gold.spans[query], f"{where}: query {query!r:.80}")
            continue
        lists = best_first(row._replace(query=query) for row in rows)
        result[query] = (lists if collapse is None else collapsed(lists, collapse)).get(query, [])
    return result


def _records(source: object) -> Iterator[tuple[str, str, Any]]:
    """Yield the place of a query's results, the query, and the JSON value that contains both."""
    if isinstance(source, Mapping):
        for query, found in source.items():
            yield f"query {query!r}", id_text(query), {"query_id": query, "results": found}
        return
    with Source(source) as stream:
        content = read_content(stream)
    for line, record in content.values:
        query = _query(record, "score") if isinstance(record, dict) else None
        if query is None:
            raise DataFileError("expected a query and its results. Spans require JSON lines", content.name, line)
        own = {key: value for key, value in record.items() if key not in lists_of_other_kind(record, "score")}
        yield f"{content.name}, line {line}", query, own


def _as_spans(rows: list[Row], spans: list[Span], where: str) -> list[tuple[str, float]]:
    """Return the spans in the results of a query, best first."""
    if lacking := sum(row.span is None for row in rows):
        raise InvalidInputError(
            f"{where} has spans as labels, but {lacking} of its {counted(len(rows), 'result')} without start and end. "
            "Expected a document, start and end in each result",
            code="no-span",
        )
    chunks, names = [_span(row, where, "score") for row in rows], dict[str, None]()
    if all(row.grade is not None for row in rows):
        chunks.sort(key=lambda chunk: -chunk.value)
    for chunk in chunks:
        inside = [
            span.name for span in spans if span.document == chunk.document
            and min(chunk.end, span.end) - max(chunk.start, span.start) >= _LEAST_OVERLAP * (span.end - span.start)
        ]  # fmt: skip
        names |= dict.fromkeys([name for name in inside if name not in names] or [chunk.name])
    return [(name, float(len(names) - place)) for place, name in enumerate(names)]
