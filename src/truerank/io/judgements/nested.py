"""Read rows of judgements or runs from JSON with any nesting, by the roles of the keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from truerank.core.errors import DataFileError
from truerank.data.grouping import id_text
from truerank.io.judgements.ratings import Row
from truerank.io.judgements.roles import (
    GRADE,
    has,
    is_ranked,
    lists_documents,
    lists_of_other_kind,
    other_lists,
    plain,
    roles_of,
)

_OPEN = {"ratings", "rating", "judgements", "judgments", "judgmentratings", "judgementratings", "docratings", "labels",
         "grades", "relevances", "qrels"}  # fmt: skip
"""Keys of lists whose documents have grades; a document of any other list has grade 1."""
_STRUCTURE = {
    "queries",
    "topics",
    "requests",
    "querygroups",
    "querydocpairs",
    "hits",
    "source",
    "docs",
    "scorer",
    "try",
}
_WHOLE = {"", "data", "default", "test", "dev", "train", "validation"}
"""Keys of the container of all queries."""
_TEXTS = ("request", "params", "placeholders", "querydsl")


_IDS = ("id", "id_", "_id", "doc_id", "document_id", "chunk_id")
_NAMES = ("source", "path", "file", "filename", "file_path", "content", "page_content", "pagecontent", "text")
"""Keys that name a document without an id in a list: its place, or its text."""


class _At(NamedTuple):
    query: str | None = None
    text: str | None = None
    document: str | None = None
    judge: str | None = None


def rows_of(value: Any, line: int | None = None, what: str = "grade") -> Iterator[Row]:
    """Yield the rows of a JSON value; `what` is "grade" or "score".

    >>> case = {"queries": [{"query_text": "red shoes", "ratings": {"d1": 3, "d2": 0}}], "scorer": {"scale": [0, 1]}}
    >>> [(row.query, row.document, row.grade) for row in rows_of(case)]
    [('red shoes', 'd1', 3), ('red shoes', 'd2', 0)]
    >>> [(row.query, row.grade) for row in rows_of({"q1": {"d1": 1}, "q2": {"d1": 2}})]
    [('q1', 1), ('q2', 2)]
    """
    try:
        yield from _Walk(line, what).visit(value, _At(), "")
    except RecursionError as error:
        raise DataFileError("the JSON is nested too deeply", line=line) from error


class _Walk:
    def __init__(self, line: int | None, what: str) -> None:
        self.line, self.what, self.listing = line, what, "ratings" if what == "grade" else "results"
        self.texts: dict[str, Any] = {}  # of queries, where they are a map beside their documents

    def row(self, at: _At, document: object, grade: object, about: Mapping[str, Any] = {}) -> Row:
        text = at.text if at.text is not None else self.texts.get(str(at.query))
        ends, unrateable = (about.get("start"), about.get("end")), about.get("unrateable") is True
        span = None if ends == (None, None) else ends
        return Row(str(at.query), id_text(document), grade, at.judge, text, self.line, unrateable, span)

    def visit(self, node: Any, at: _At, key: str) -> Iterator[Row]:
        """Yield the rows within the value of a key."""
        if isinstance(node, list):
            yield from self.listed(node, at, key)
        if not isinstance(node, dict):
            return
        if isinstance(asked := node.get("queries"), dict) and all(isinstance(text, str) for text in asked.values()):
            self.texts = asked
        is_listed = at.query is not None and at.document is None and lists_documents(key, self.what)
        own = {name: value for name, value in node.items() if not isinstance(value, dict | list)}
        names = roles_of(own, self.what)
        if self.what == "grade" and "document" in names and "grade" not in names:  # {"doc_id": "d", "label": ["3"]}
            answers = {name: only_value(node[name]) for name in node if plain(name) in GRADE}
            own |= {name: value for name, value in answers.items() if value is not None}
            names = roles_of(own, self.what)
        if self.what == "grade" and plain(names.get("grade", "")) == "score" and is_ranked(key):
            del names["grade"]
        if plain(names.get("document", "")) in ("product", "item") and any(
            lists_documents(plain(name), self.what) for name, value in node.items() if isinstance(value, list)
        ):
            del names["document"]  # it is what the query is about
        roles = {role: own[name] for role, name in names.items()}
        at = self.named(node, own, roles, at, key)
        if self.what in roles and at.query is not None and at.document is not None:
            yield self.row(at, at.document, roles[self.what], own)
        elif is_listed and at.document is not None:
            rank = -float(roles["rank"]) if isinstance(roles.get("rank"), int | float) else None
            yield self.row(at, at.document, rank if self.what == "score" else None if key in _OPEN else 1, own)
        elif is_listed and not roles.keys() & {"document", "text", self.what}:
            yield from self.mapped(node, at)
        elif at.query is None and (
            (lists_documents(key, self.what) and not own) or (key in _WHOLE and self.are_queries(node))
        ):
            for query, value in node.items():
                yield from self.visit(value, at._replace(query=query), self.listing)
        else:
            same = other_lists([name for name, value in node.items() if isinstance(value, list)], self.what)
            same |= lists_of_other_kind(node, self.what)
            for name, value in node.items():
                if name not in same:
                    yield from self.visit(value, at, plain(name))

    def named(self, node: dict[str, Any], own: dict[str, Any], roles: dict[str, Any], at: _At, key: str) -> _At:
        """Return the query, the document and the judge from the keys of an object."""
        known = {plain(name): value for name, value in own.items()}
        if known.get("id") is not None:
            if (self.what in roles and ("_id" in own or at.query is not None)) or (
                at.query is not None and lists_documents(key, self.what)
            ):
                roles.setdefault("document", known["id"])
            elif "document" not in roles and (
                "text" in roles or any(lists_documents(plain(name), self.what) for name in node)
            ):
                roles.setdefault("query", known["id"])
        text, objects = roles.get("text"), [value for value in node.values() if isinstance(value, dict)]
        if text is None and "query" in roles:
            inside = [_only_text(value) for name, value in node.items() if plain(name) in _TEXTS]
            text = next(filter(None, inside), None)
        if text is None and at.query is None and len(objects) > 1:  # inputs beside outputs
            asked = [
                one[name] for one in objects if (name := roles_of(one, self.what).get("text")) and _is_id(one[name])
            ]
            text = asked[0] if len(asked) == 1 else None
        if at.query is not None and lists_documents(key, self.what) and "document" not in roles:
            for keys, ending in ((_IDS, "id"), (_NAMES, "name")):
                named = [one[name] for one in [*objects, known] for name in keys if _is_id(one.get(name))]
                named = named or _only_name(known, ending)
                if named:
                    roles["document"] = named[0]
                    break
        if self.what in roles and "document" not in roles and at.document is None:
            others = {name: value for name, value in own.items() if value not in roles.values() and name != "id"}
            roles |= dict(zip(("document",), _only_name(others, "id")))
        lists = any(lists_documents(plain(name), self.what) for name in node)
        if at.query is None or "query" in roles or ("text" in roles and lists):  # also within a list that has an id
            query = roles.get("query") if roles.get("query") is not None else text
            if query is not None:
                at = at._replace(query=id_text(query), text=None if text is None else str(text))
        if roles.get("document") is not None:
            at = at._replace(document=id_text(roles["document"]))
        if roles.get("judge") is not None:
            at = at._replace(judge=id_text(roles["judge"]))
        return at

    def listed(self, node: list[Any], at: _At, key: str) -> Iterator[Row]:
        """Yield the rows of a list of objects, of ids, or of (id, grade) pairs."""
        scored = any(isinstance(one, dict) and roles_of(one, "score").keys() & {"score", "rank"} for one in node)
        for place, one in enumerate(node):
            if at.query is None or not lists_documents(key, self.what) or isinstance(one, dict):
                for row in self.visit(one, at, key):
                    bare = self.what == "score" and row.grade is None and not scored  # the order is the ranking
                    yield row._replace(grade=float(len(node) - place)) if bare else row
            elif isinstance(one, list):
                if len(one) == 2 and isinstance(one[1], int | float):
                    yield self.row(at, one[0], one[1])
                else:
                    yield from self.listed(one, at, key)
            elif isinstance(one, str | int):
                yield self.row(at, one, 1 if self.what == "grade" else float(len(node) - place))

    def mapped(self, node: dict[str, Any], at: _At) -> Iterator[Row]:
        """Yield the rows of {document: grade}, {document: {"gain": grade}}, {grade: [documents]}, {"hits": [...]}."""
        lists = {name: value for name, value in node.items() if isinstance(value, list) and not is_number(name)}
        if known := [name for name in lists if lists_documents(plain(name), "score")] or list(lists):
            yield from self.listed(lists[known[0]], at, self.listing)
            return
        for name, value in node.items():
            if isinstance(value, list) and is_number(name):
                for one in value:
                    if isinstance(one, str | int):
                        yield self.row(at, one, name)
            elif isinstance(value, dict):
                yield from self.visit(value, at._replace(document=name), "")
            elif not isinstance(value, list):
                yield self.row(at, name, value)

    def are_queries(self, node: dict[str, Any]) -> bool:
        """Return whether an object is {query: {document: number}}, or {query: [documents]}."""
        if not node or any(plain(name) in _STRUCTURE for name in node):
            return False
        numbers = [one for value in node.values() if isinstance(value, dict) for one in value.values()]
        if self.what == "grade" and not all(is_number(one) and float(one).is_integer() for one in numbers):
            return False
        return all(
            all(map(is_number, value.values())) if isinstance(value, dict) else _are_documents(value, len(node))
            for value in node.values()
        )


def _only_name(known: dict[str, Any], ending: str) -> list[Any]:
    """Return the single id or text whose key ends in `ending`, as a list; [] if there is none or several."""
    found = [value for name, value in known.items() if name.endswith(ending) and _is_id(value)]
    return found if len(found) == 1 else []


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def only_value(answer: Any) -> Any:
    """Return the single value of an answer such as {"choices": ["2"]}, {"rating": 2}, {"value": 2} or ["2"]."""
    while isinstance(answer, dict | list):
        inside = list(answer.values()) if isinstance(answer, dict) else answer
        answer = inside[0] if len(inside) == 1 else None
    return answer


def is_number(value: object) -> bool:
    """Return whether a value is a number or the text of a number."""
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _are_documents(value: object, queries: int) -> bool:
    if not isinstance(value, list):
        return False
    if all(map(_is_id, value)):
        return queries > 1 and len(set(value)) == len(value)
    return all(
        isinstance(one, dict) and "document" in roles_of(one) and not has(one, "query") and not has(one, "querytext")
        for one in value
    )


def _only_text(value: object) -> str | None:
    """Return the text under "query" or "$query" in a search request, or None without exactly one."""
    found = set[str]()

    def look(node: object, key: str) -> None:
        if isinstance(node, dict):
            for name, one in node.items():
                look(one, plain(name))
        elif isinstance(node, list):
            for one in node:
                look(one, key)
        elif isinstance(node, str) and key in ("query", "querystring", "q", "querytext"):
            found.add(node)

    look(value, "")
    return found.pop() if len(found) == 1 else None
