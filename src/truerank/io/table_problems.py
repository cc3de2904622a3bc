"""Report all problems of a table's columns in one message, with the arguments that solve the problems."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from truerank.core.errors import InvalidInputError, Remedy
from truerank.core.names import similar
from truerank.data.grouping import is_missing, refuse_nested
from truerank.io.judgements.roles import DOCUMENT, GRADE, QUERY, is_usual, plain, role_like

LIKELY = {
    "query": (*QUERY, "query", "search", "srchid", "sessionid"),
    "grade": ("y", *(name for name in GRADE if name not in ("score", "value", "rating")), "target", "rating"),
    "document": DOCUMENT,
}
"""Usual names of the columns that are not features, in plain form, most usual first."""
_COMMA = re.compile(r"\s*[+-]?[\d.' ]*,[\d,]+\s*")  # a decimal comma, or separators of thousands
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}\b.*")
_PEOPLE = ("rater", "judge", "annotator", "assessor", "worker", "user")  # columns of who gave the grades
_FEW = 200  # a column with at most so many distinct texts is proposed as categories
_LEVELS = 8  # a scale of words has at most so many
_REPEATED = 10  # documents in several rows that show whether a column is a property of the document


class Problem(NamedTuple):
    """A problem of some columns, and its solutions, the best first (empty if there is none); a guess is not sure."""

    text: str
    remedies: tuple[Remedy, ...] = ()
    is_sure: bool = True


def _is_number(value: object) -> bool:
    """Return whether a cell is a number, or the text of a number."""
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return is_missing(value)
    return True


class ColumnsError(InvalidInputError):
    """An error for a table that requires arguments; `solution` has arguments for all problems, if none is a guess.

    The first advice of a problem that requires a change of the file has no arguments.

    >>> print(ColumnsError([Problem("column 'brand' is not numeric", (Remedy("to ignore it", exclude=["brand"]),))]))
    column 'brand' is not numeric. Pass exclude=["brand"] to ignore it
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        solution: dict[str, Any] = {}
        for problem in problems:
            first = next((one.arguments for one in problem.remedies if one.arguments), {})
            for name, value in first.items():
                solution[name] = [*solution.get(name, ()), *value] if isinstance(value, list) else value
        text, remedies, _ = problems[0]
        if len(problems) > 1:
            found = "\n".join(f"({number}) {problem.text}" for number, problem in enumerate(problems, 1))
            unknown = "(replace each ? by a number)" if "?" in solution.get("grades", "") else ""
            text, remedies = f"{len(problems)} problems:\n{found}", (Remedy(unknown, **solution),) if solution else ()
        super().__init__(text, remedies=remedies, code="columns")
        solves = all(problem.remedies and problem.remedies[0].arguments for problem in problems)
        solves = solves and ... not in solution.values() and all(problem.is_sure for problem in problems)
        self.solution = solution if solves else None


def likely(role: str, names: Collection[str], taken: Collection[Any] = ()) -> str | None:
    """Return the column with a usual name of this role, ignoring case, or None without such a column.

    >>> likely("grade", ["query", "Relevance", "price"]), likely("document", ["query", "price"])
    ('Relevance', None)
    """
    known = {plain(name): name for name in reversed(list(names)) if name not in taken}
    return next((known[name] for name in LIKELY[role] if name in known), None)


def role_of(name: str, texts: Sequence[str], query: Sequence[Any], grade: Sequence[Any] | None) -> str | None:
    """Return the role of a text column: "document", "other" for columns to leave out, or None for features.

    The text of the query, the grade in words, a date, and a person are "other".

    >>> query = [1, 1, 2, 2]
    >>> role_of("text", ["a b", "a b", "c", "c"], query, None), role_of("item", ["d1", "d2", "d1", "d3"], query, None)
    ('other', 'document')
    """
    kinds = len(set(texts))
    repeated = 2 <= kinds <= len(texts) / 2  # a few rows would agree by chance
    if repeated and kinds == len(set(query)) == len(set(zip(texts, query))):
        return "other"
    if repeated and grade is not None and len(set(grade)) == len(set(zip(texts, grade))):
        return "other"
    if plain(name).removesuffix("id") in _PEOPLE or all(map(_DATE.fullmatch, texts)):
        return "other"
    are_ids = all(re.fullmatch(r"\S*\d\S*", text) for text in texts)
    return "document" if are_ids and len(set(zip(query, texts))) == len(texts) > len(set(query)) else None


def query_by_content(columns: Mapping[str, Sequence[str]]) -> str | None:
    """Return the only text column by which the rows are grouped and other columns hold document ids, else None.

    >>> query_by_content({"item": ["d1", "d2", "d1", "d3"], "term": ["a b", "a b", "c", "c"]})
    'term'
    """
    found = []
    for name, texts in columns.items():
        kinds, pieces = len(set(texts)), 1 + sum(a != b for a, b in zip(texts, texts[1:]))
        if 2 <= kinds == pieces <= len(texts) / 2 and any(
            role_of(other, own, texts, None) == "document" for other, own in columns.items() if other != name
        ):
            found.append(name)
    return found[0] if len(found) == 1 else None


def grades_in_words(
    columns: Mapping[str, Sequence[str]], query: Sequence[Any], document: Sequence[Any] | None, *, usual: bool = False
) -> list[str]:
    """Return the text columns that may hold grades: a few words that differ within queries and for one document.

    The result has only columns with a usual name or usual words if there are any, or if `usual`. Otherwise it is empty
    if a column of numbers may hold grades; else it has the columns without empty cells, if any.

    >>> columns = {"mark": ["good", "bad", "bad", "good"], "ocena": ["a", "b", "b", "a"], "brand": ["x", "y", "x", "y"]}
    >>> grades_in_words(columns, [1, 1, 2, 2], None), grades_in_words({"ocena": columns["ocena"]}, [1, 1, 2, 2], None)
    (['mark'], ['ocena'])
    """
    found, known, numbers = list[str](), list[str](), False
    for name, cells in columns.items():
        words = {*cells} - {""}
        if not 2 <= len(words) <= _LEVELS or len(words) > len(cells) / 2:
            continue
        if len(set(zip(query, cells))) == len(set(query)):  # a property of the query
            continue
        if document is not None:
            kinds = len(set(document))
            repeated, differ = len(cells) - kinds, len(set(zip(document, cells))) - kinds
            if repeated >= _REPEATED > _REPEATED * 10 * differ / repeated:  # a property of the document
                continue
        if all(map(_is_number, words)):
            numbers = numbers or all(float(word) in range(_LEVELS) for word in words)
            continue
        found.append(name)
        if role_like(name) == "grade" or 2 * sum(map(is_usual, words)) > len(words):
            known.append(name)
    return known if known or usual or numbers else [name for name in found if "" not in columns[name]] or found


def without_grades(
    names: list[str],
    column: Callable[[str], np.ndarray],
    coded: Collection[str],
    is_numeric: Callable[[np.ndarray], bool],
    roles: list[str | None],
    problems: list[Problem],
) -> list[str]:
    """Return the features without columns of grades in words, if the grade is unknown; `roles` and `problems` get them.

    Unusual words may be grades only if the problems have a lacking grade.
    """
    if roles[0] is None or roles[1] is not None:
        return names
    lacks = [place for place, one in enumerate(problems) if one.remedies and "grade" in one.remedies[0].arguments]
    cells = {name: ["" if is_missing(own) else str(own) for own in column(name).tolist()]
             for name in names if name not in coded}  # fmt: skip
    query = column(roles[0]).tolist()
    texts = [name for name in cells if not is_numeric(column(name))]
    document = roles[2] or next((name for name in texts if role_of(name, cells[name], query, None) == "document"), None)
    ids = None if document is None else column(document).tolist()
    usual = grades_in_words(cells, query, ids, usual=True)
    found = usual or (grades_in_words(cells, query, ids) if lacks else [])
    if not found:
        return names
    shown, is_one = " or ".join(map(repr, found)), len(found) == 1
    own = Remedy(grade=found[0] if is_one else ...)
    if lacks:
        text = f"{problems[lacks[0]].text}; {shown} may hold grades in words"
        problems[lacks[0]] = Problem(text, (own,), found == usual)
    else:
        problems.append(Problem(f"{shown} probably holds the grades", (own,)))
    roles[1] = found[0] if is_one else None
    return [name for name in names if name not in found]


def lacking(role: str, wanted: str, names: Sequence[str], *, found: str | None = None, listed: bool = True) -> Problem:
    """Return the problem of a missing query, grade or document column; `listed` adds the names of the columns.

    `found` is the probable column, by default the column with a usual name.
    """
    shown = "Its columns are " + ", ".join(map(repr, names[:12])) + (", …" if len(names) > 12 else "")
    found, near = found or likely(role, names), similar(wanted, names)
    guess = "" if found in (None, near) else f"{found!r} is probably the {role}. "
    question = f". Did you mean {near!r}? " if near else "; " if guess else ". "
    text = f"the table has no column {wanted!r} ({role}){question}{guess}{shown if listed else ''}".rstrip(". ")
    return Problem(text, (Remedy(**{role: found or ...}),))


def feature_problems(
    names: Sequence[str],
    column: Callable[[str], np.ndarray],
    coded: Collection[str],
    missing: str,
    is_numeric: Callable[[np.ndarray], bool],
    roles: Sequence[str | None],
) -> list[Problem]:
    """Return the problems of feature columns: text, and missing values if `missing` is "error".

    `roles` are the columns of query, grade and document. A text column with a role is not a category. Roles require the
    query column.
    """
    query, grade, document = (None if name is None else list(map(str, column(name).tolist())) for name in roles)
    problems: list[Problem] = []
    categories: list[tuple[str, str]] = []
    texts: list[tuple[str, str]] = []
    empty: list[tuple[str, list[int]]] = []
    for name in names:
        values = column(name)
        try:
            refuse_nested(values, name)
        except InvalidInputError as error:
            problems.append(Problem(error.message.what, (Remedy("to ignore it", exclude=[name]),)))
            continue
        listed = values.tolist() if values.dtype.kind == "O" else []
        absent = [row for row, value in enumerate(listed) if is_missing(value) or (name in coded and value == "")]
        if values.dtype.kind == "f":
            absent = np.flatnonzero(np.isnan(values)).tolist()
        if name not in coded and not is_numeric(values):
            row = next((row for row, value in enumerate(listed) if value != "" and not _is_number(value)), 0)
            shown = f"column {name!r} is not numeric: row {row + 1} has {values.tolist()[row]!r:.80}"
            if _COMMA.fullmatch(str(values.tolist()[row])):
                remedies = Remedy("write such numbers in the file"), Remedy("to ignore it", exclude=[name])
                problems.append(Problem(f"{shown}; numbers have a decimal point and no other marks", remedies))
                continue
            own = list(map(str, values.tolist()))
            role = None if query is None else role_of(name, own, query, grade)
            if role == "document" and document is None:
                problems.append(Problem(f"{name!r} probably holds document ids", (Remedy(document=name),)))
                document = own
                continue
            few = role is None and len(set(own)) <= min(_FEW, max(2, len(values) // 2))
            (categories if few else texts).append((name, shown))
            absent = [row for row, value in enumerate(listed) if is_missing(value) or value == ""] if few else absent
        if absent:
            empty.append((name, absent))
    for found, few in ((categories, True), (texts, False)):
        if found and query is None:
            problems.append(Problem("; ".join(text for _, text in found)))
        elif found:
            columns = [name for name, _ in found]
            used = Remedy("to use it" if few else "if the texts are categories", categories=columns)
            ignored = Remedy("to ignore it", exclude=columns)
            problems.append(Problem("; ".join(text for _, text in found), (used, ignored) if few else (ignored, used)))
    if empty and missing == "error":
        name, rows = empty[0]
        more = f" (also {', '.join(repr(other) for other, _ in empty[1:6])})" if len(empty) > 1 else ""
        text = f"column {name!r} has no value in row {rows[0] + 1} ({len(rows)} rows in all){more}"
        problems.append(Problem(text, (Remedy("to treat empty cells as missing values", missing="nan"),)))
    return problems
