"""Report all problems of a table's columns in one message, with the arguments or options that solve them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.names import nearest
from truerank.data.grouping import is_missing

LIKELY = {
    "query": ("qid", "query_id", "queryid", "query", "topic", "topic_id", "search_id", "srch_id", "session_id"),
    "grade": (
        "y",
        "relevance",
        "rel",
        "grade",
        "label",
        "judgement",
        "judgment",
        "relevance_label",
        "rating",
        "target",
    ),
    "document": ("docid", "doc_id", "document_id", "document", "doc", "product_id", "item_id", "sku", "asin", "did"),
}
"""Usual names of the columns that are not features, the most usual name first."""
_COMMA = re.compile(r"\s*[+-]?[\d.' ]*,[\d,]+\s*")  # a decimal comma, or separators of thousands
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}\b.*")
_PEOPLE = ("rater", "judge", "annotator", "assessor", "worker", "user")  # columns of who gave the grades
_FEW = 200  # a column with at most so many distinct texts is proposed as categories


class Problem(NamedTuple):
    """A problem of some columns, and the option of the command line that solves it ("" if there is none)."""

    text: str
    option: str


def _is_number(value: object) -> bool:
    """Return whether a cell is a number, or the text of a number."""
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return is_missing(value)
    return True


class ColumnsError(InvalidInputError):
    """A table cannot be read without arguments; `options` are the same on the command line, or None for no solution."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(message(problems))
        self.problems = problems
        solved = all(problem.option for problem in problems)
        self.options = [word for problem in problems for word in shlex.split(problem.option)] if solved else None


def likely(role: str, names: Collection[str], taken: Collection[Any] = ()) -> str | None:
    """Return the column with a usual name of this role, ignoring case; None if there is none.

    >>> likely("grade", ["query", "Relevance", "price"]), likely("document", ["query", "price"])
    ('Relevance', None)
    """
    plain = {_plain(name): name for name in reversed(list(names)) if name not in taken}
    return next((plain[_plain(name)] for name in LIKELY[role] if _plain(name) in plain), None)


def _plain(name: str) -> str:
    """Return a name without case and marks: "productId" is "product_id"."""
    return re.sub(r"[\W_]", "", name.lower())


def role_of(name: str, texts: Sequence[str], query: Sequence[Any], grade: Sequence[Any] | None) -> str | None:
    """Return what a text column is in place of a feature: "document", or "other" for what is to be left out.

    "other" is the text of the query, the grade in words, a date, or a person; None is none of these.

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
    if _plain(name).removesuffix("id") in _PEOPLE or all(map(_DATE.fullmatch, texts)):
        return "other"
    are_ids = all(re.fullmatch(r"\S*\d\S*", text) for text in texts)
    return "document" if are_ids and len(set(zip(query, texts))) == len(texts) > len(set(query)) else None


def lacking(role: str, wanted: str, names: Sequence[str], *, listed: bool = True) -> Problem:
    """Return the problem of a missing query, grade or document column; `listed` adds the names of the columns."""
    shown = ". Its columns are " + ", ".join(map(repr, names[:12])) + (", …" if len(names) > 12 else "")
    found = likely(role, names)
    option = f"--{role}-column {shlex.quote(found or 'NAME')}"
    guess = f"; {found!r} is probably the {role}" if found else ""
    text = f"the table has no column {wanted!r} ({role}){nearest(wanted, names)}{guess}{shown if listed else ''}"
    return Problem(text, option)


def feature_problems(
    names: Sequence[str],
    column: Callable[[str], np.ndarray],
    coded: Collection[str],
    missing: str,
    is_numeric: Callable[[np.ndarray], bool],
    roles: Sequence[str | None],
) -> list[Problem]:
    """Return the problems of feature columns: text, and missing values if `missing` is "error".

    `roles` are the columns of query, grade and document. A text column with a role of its own is no category.
    """
    query, grade, document = (None if name is None else list(map(str, column(name).tolist())) for name in roles)
    problems: list[Problem] = []
    categories: list[tuple[str, str]] = []
    texts: list[tuple[str, str]] = []
    empty: list[tuple[str, list[int]]] = []
    for name in names:
        values = column(name)
        listed = values.tolist() if values.dtype.kind == "O" else []
        absent = [row for row, value in enumerate(listed) if is_missing(value) or (name in coded and value == "")]
        if values.dtype.kind == "f":
            absent = np.flatnonzero(np.isnan(values)).tolist()
        if name not in coded and not is_numeric(values):
            row = next((row for row, value in enumerate(listed) if not _is_number(value)), 0)
            shown = f"column {name!r} is not numeric: row {row + 1} has {values.tolist()[row]!r:.80}"
            if _COMMA.fullmatch(str(values.tolist()[row])):
                problems.append(Problem(f"{shown}. Write numbers with a decimal point, and no other marks", ""))
                continue
            own = list(map(str, values.tolist()))
            role = None if query is None else role_of(name, own, query, grade)
            if role == "document" and document is None:
                problems.append(
                    Problem(f"{name!r} probably holds document ids", f"--document-column {shlex.quote(name)}")
                )
                document = own
                continue
            few = role is None and len(set(own)) <= min(_FEW, max(2, len(values) // 2))
            (categories if few else texts).append((name, shown))
        if absent:
            empty.append((name, absent))
    for found, option in ((categories, "--categorical"), (texts, "--exclude")):
        if found:
            columns = " ".join(shlex.quote(name) for name, _ in found)
            problems.append(Problem("; ".join(text for _, text in found), f"{option} {columns}"))
    if empty and missing == "error":
        name, rows = empty[0]
        more = f" (also {', '.join(repr(other) for other, _ in empty[1:6])})" if len(empty) > 1 else ""
        problems.append(
            Problem(
                f"column {name!r} has no value in row {rows[0] + 1}, {len(rows)} rows in all{more}", "--missing nan"
            )
        )
    return problems


def message(problems: Sequence[Problem], known: Collection[str] | None = None) -> str:
    """Return one message with all problems and what solves them.

    `known` are the options of a command, which the advice is about. None: it is about arguments of `read_table`.

    >>> problem = Problem("column 'brand' is not numeric", "--categorical brand")
    >>> message([problem], ["--categorical"])
    "column 'brand' is not numeric. Add --categorical brand to use it, or --exclude brand to ignore it."
    >>> message([problem])
    "column 'brand' is not numeric. Pass categories=['brand'] to use it, or exclude=['brand'] to ignore it."
    """
    verb, between = ("Pass", ", ") if known is None else ("Add", " ")

    def spelled(option: str, columns: str) -> str:
        if known is not None:
            return f"{option} {columns}"
        names = shlex.split(columns)
        if option in ("--categorical", "--exclude"):
            return f"{'categories' if option == '--categorical' else 'exclude'}={names}"
        return f"{option.removeprefix('--').partition('-')[0]}={names[0]!r}"

    solved = [problem.option.partition(" ")[::2] for problem in problems]
    solved = [(kind, columns) for kind, columns in solved if kind and (known is None or kind in known)]
    if len(problems) > 1:
        found = "; ".join(f"({number}) {problem.text}" for number, problem in enumerate(problems, 1))
        added = between.join(spelled(kind, columns) for kind, columns in solved)
        return f"{len(problems)} problems: {found}" + (f". {verb}: {added}" if added else "")
    if not solved:
        return problems[0].text
    kind, columns = solved[0]
    advice = f"{verb} {spelled(kind, columns)}"
    if kind == "--categorical":
        advice += f" to use it, or {spelled('--exclude', columns)} to ignore it"
    elif kind == "--exclude":
        advice += " to ignore it"
        if known is None or "--categorical" in known:
            advice += f", or {spelled('--categorical', columns)} if the texts are categories"
    elif kind == "--missing":
        advice += " to treat empty cells as missing values"
    return f"{problems[0].text}. {advice}."
