"""All formats of judgements, the function that reads them, and descriptions of other files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from truerank.core.checks import column_labels, is_table
from truerank.core.errors import DataFileError, InvalidInputError, Remedy, TruerankError, warn
from truerank.core.names import Table, resolve, unknown
from truerank.core.types import PathLike
from truerank.data.remarks import Remark, RemarkWarning
from truerank.io.first_bytes import TABLES, is_yaml
from truerank.io.judgements.content import Content, of_text, read_content
from truerank.io.judgements.flat import ALL, as_table, named
from truerank.io.judgements.formats import Format
from truerank.io.judgements.others import PAIRWISE, looks_like
from truerank.io.judgements.places import PLACES
from truerank.io.judgements.proposals import Joining, Survey, is_pairwise, proposal, survey
from truerank.io.judgements.ratings import Ratings, graded, is_unrated, read_grade, read_scale
from truerank.io.judgements.roles import few, has, lists_together, role_like, roles_of
from truerank.io.judgements.sets import beir_file
from truerank.io.judgements.tables import content_of_frame, is_about, lacking, roles_in
from truerank.io.streams import Source
from truerank.io.tables import GRADE, QUERY

FORMATS: Table[Format] = Table(
    "truerank.judgements",
    {name: resolve(f"truerank.io.judgements.{place}") for name, place in PLACES.items()},
    lambda point: point.load(),
)
"""The formats by name, in the order of detection; formats of other packages come last."""
Scale = str | Mapping[str, float | None]
_LOOSE = ("a run (", "other", "queries", "triples", "candidates", "judgements")
"""Names of what a file may look like, which evidence in its cells outweighs."""
_FEW = 6
"""A table with more columns of numbers has features."""


def read_ratings(
    source: object,
    *,
    grades: Scale | None = None,
    format: str | None = None,
    query: str | None = None,
    document: str | None = None,
    grade: str | None = None,
    fold_queries: bool = False,
) -> Ratings:
    """Read judgements from a file of any known format, with a row for each grade.

    Parameters
    ----------
    source : path, "-", open file, or data frame
        The content determines the format: TREC qrels, CSV and TSV, Parquet, Arrow, and JSON and JSON lines of the tools
        in `FORMATS`. Text may be compressed by gzip, xz, zstd or lz4. In tables and JSON of other tools, the names of
        columns and keys determine the roles.
    grades : dict of str to float, or str, optional
        The number of each word, `{"Good": 2, "Bad": 0}` or "Good=2 Bad=0". None, or - in a str, marks words without a
        grade. Numbers may be mapped like words: "100=3 10=2".
    format : str, optional
        Name of the format.
    query, document, grade : str, optional
        Columns whose names are not usual: of a table, keys of JSON (with points for inner objects), or numbers from 1
        where columns have no names. `grade` may name a column for each judge, with commas between them. If there are
        no grades, `grades="all=1"` gives one to each row.
    fold_queries : bool, default=False
        Whether to join queries whose texts differ only in case, blanks or the form of letters. By default, they cause a
        warning.

    Raises
    ------
    DataFileError
        If the format is unknown, with the apparent format; if it is damaged, with the line; if grades are words, with a
        proposal.

    Examples
    --------
    >>> import io
    >>> ratings = read_ratings(io.StringIO("query,docid,Ann,Bob\\nred shoes,d1,3,2\\nred shoes,d2,0,\\n"))
    >>> ratings, ratings.judges, ratings.grades
    (Ratings(3 grades for 1 query by 2 judges), ['Ann', 'Bob', 'Ann'], [3.0, 2.0, 0.0])
    >>> ratings.qrels("first").to_dict()
    {'red shoes': {'d1': 3, 'd2': 0}}
    """
    scale = read_scale(grades) if isinstance(grades, str) else grades
    given = {"query": query, "document": document, "grade": grade}
    names = {role: name for role, name in given.items() if name is not None}
    if isinstance(source, Ratings):
        return source
    if isinstance(source, str | os.PathLike) and os.path.isdir(source):
        source = beir_file(Path(source))
    if is_table(source):
        try:
            frame = content_of_frame(source, column_labels(source, "the table"))
            return ratings_of(frame, scale, format or "ratings", fold_queries, names)
        except DataFileError as error:
            raise InvalidInputError(error) from error
    with source if isinstance(source, Source) else Source(source) as stream:
        content = read_content(stream)
    return ratings_of(content, scale, format, fold_queries, names)


def ratings_of(
    content: Content,
    grades: Mapping[str, float | None] | None = None,
    format: str | None = None,
    fold: bool = False,
    names: Mapping[str, str] | None = None,
) -> Ratings:
    """Return the ratings of a file's content; with `fold`, similar queries are joined. `names` are columns by role."""
    if format is not None and format not in FORMATS:
        raise InvalidInputError(unknown(FORMATS, format, "format"))
    whole, ungraded = content, ALL in (grades or ())
    if names or (ungraded and content.kind == "table" and lacking(content) == "grade"):
        content = named(content, names or {}, ungraded=ungraded and "grade" not in (names or {}))
    found = FORMATS[format] if format is not None else recognised(content)
    if found is None:
        refuse(whole, names)
    try:
        ratings = graded(found.rows(content), content, found.title, grades)
    except DataFileError as error:
        if error.code == "lacks-id" and (own := proposal(whole)):
            error.add(*own.remedies)
        raise
    if not ratings.grades and not ratings.left_out:
        refuse(whole, names)
    if not ratings.grades:
        raise DataFileError(
            f"the file has no grades ({found.title}), because its documents are not judged yet. Fill in grades",
            content.name,
        )
    records = [own for _, value in content.values for own in _objects(value)] if content.kind == "json" else []
    if several := next(filter(None, map(lists_together, records)), None):
        lists = " and ".join(map(repr, several))
        warn(f"{content.name}: all documents of {lists} count as relevant. Remove the lists of other documents")
    similar = ratings.similar_queries()
    if fold:
        return ratings.folded()
    if similar:
        shown = ", ".join(" = ".join(repr(ratings.text(query))[:60] for query in own) for own in similar[:4])
        count, every = sum(map(len, similar)), [query for own in similar for query in own]
        warn(RemarkWarning(Remark("similar-queries", shown, count, every, content.name)))
    return ratings


def _objects(value: object) -> Iterator[dict[str, Any]]:
    """Yield a JSON object and the objects in its lists."""
    if isinstance(value, dict):
        yield value
        yield from (one for own in value.values() if isinstance(own, list) for one in own if isinstance(one, dict))


def holds_judgements(path: PathLike, features: bool = False, **columns: str | None) -> bool:
    """Return whether a file, by its first bytes or its columns, holds judgements but no features.

    With `features`, it may have features, too; `columns` are names by role. Tables of `qid` and `y`, tables with a
    number column without a role, and LETOR text may have features. A file whose cells look like judgements holds them,
    too, and is then rejected with a proposal.
    """
    if not os.path.isfile(path):  # a pipe can be read once
        return False
    names = {role: name for role, name in columns.items() if name is not None}
    with Source(path) as source:
        head = source.peek()
        if head.lstrip()[:1] in (b"{", b"[", b"|", b"<") or is_yaml(head.decode("utf-8", "replace")):
            return True
        if re.match(rb"(?:\s*#[^\n]*\n)*\s*[^#\s]\S*\s+(qid:\S+\s+)?\d+:", head):  # features
            return False
        try:
            lines = head[: head.rfind(b"\n") + 1] or head
            content = read_content(source) if head.startswith(tuple(TABLES)) else of_text(lines, source.name)
            if names:
                content = named(content, names)
        except TruerankError:
            return False
    if content.kind != "table":
        return features or recognised(content) is not None or proposal(content) is not None
    missing, roles = lacking(content), roles_in(content)
    own = proposal(content) if missing is not None else None
    table, trains = as_table(content), roles.get("grade") == GRADE
    if own is not None and table is not content:  # without names of columns
        return True
    taken = {*roles.values(), *(part for name in (own.roles.values() if own else ()) for part in name.split(","))}
    others = [
        name for k, name in enumerate(table.header)
        if name not in taken and not is_about(name) and (trains or not _is_text(table, k))
        and not (missing and role_like(name) in ("judge", "score", "rank", "grade"))
    ]  # fmt: skip
    if features:
        return "grade" in roles or missing is not None
    if missing is None:
        return not others if "grade" in roles else has(content.header, "query", "docid")
    if own is None and missing == "document" and roles.keys() & {"query", "text"} and "grade" in roles:  # categories
        others += [name for k, name in enumerate(table.header) if name not in taken and not is_about(name)
                   and role_like(name) != "judge" and _is_text(table, k)]  # fmt: skip
    return not others and not trains and (len(table.header) > 1 or bool(roles))


def explain(error: TruerankError, path: PathLike, given: Mapping[str, str | None]) -> None:
    """Add to an error about columns of judged rows how to read the table's judgements, or what the table looks like.

    `given` are the columns that the user named by role; the error may name others.
    """
    with Source(path) as source:
        content = read_content(source)
    advice = error.remedies[0].arguments if error.remedies else {}
    stated = {role: given.get(role) or advice.get(role) for role in ("query", "document", "grade")}
    roles = {role: name for role, name in stated.items() if isinstance(name, str)}
    own = proposal(content, roles)
    if own is not None and advice.get("grade") is ... and own.roles.get("grade") in content.header:
        advice["grade"] = own.roles["grade"]
        error.add()
    if all(given[role] or usual in content.header for role, usual in (("query", QUERY), ("grade", GRADE))):
        return  # of rows
    taken = {part for name in (own.roles.values() if own else ()) for part in name.split(",")}
    numbers = [k for k, name in enumerate(content.header) if name not in taken and not _is_text(content, k)]
    if own is not None and "grade" in own.roles and len(numbers) <= _FEW:
        error.add(*own.remedies)
    elif (
        own is None and "grade" not in roles and lacking(content) in ("query", "document") and len(numbers) <= 2 * _FEW
    ):
        known, found = looks_like(content), survey(content)
        looks = f"{found.looks}: {found.reason}" if known is None else known[0]
        error.reword(f"{error.message.what}. The file looks like {looks}", *error.remedies)


def _is_text(content: Content, column: int) -> bool:
    """Return whether a column is not a feature by default, because it is empty or most of its cells are not numbers."""
    cells = [row[column] for _, row in content.rows if column < len(row) and not is_unrated(row[column])]
    return 2 * sum(isinstance(cell, str) and read_grade(cell) is None for cell in cells) > len(cells) or not cells


def recognised(content: Content) -> Format | None:
    """Return the format of a file, or None if it is not a format of judgements."""
    return next((format for format in FORMATS.values() if format.matches(content)), None)


def refuse(content: Content, names: Mapping[str, str] | None = None) -> NoReturn:
    """Raise an error that describes a file and gives advice; `names` are columns by role."""
    if content.kind == "table" and not content.rows:
        raise DataFileError(f"the table has no rows, only the columns {few(content.header)}", content.name)
    seen, own = looks_like(content), None
    if seen is None or seen[0].startswith(_LOOSE):
        if is_pairwise(content):
            seen = PAIRWISE
        elif (own := proposal(content, names)) is None and seen is None:
            _refuse_survey(content, survey(content))
    columns = few(content.header or as_table(content).header)
    looks, advice = seen or (f"a table with the columns {columns}", "")
    if own is not None:
        raise DataFileError(
            "expected judgements, but the column names do not identify the query, the document and the grade. "
            f"The cells suggest {own.words}",
            content.name,
            value=looks,
            code="no-judgements",
            remedies=[*own.remedies, *_joining(content)],
        )
    unnamed = any(read_grade(name) is not None for name in content.header)
    role = lacking(content) if content.kind == "table" and not unnamed else None
    there = roles_of(content.header, like=True)
    known_roles = {
        "query": there.keys() & {"query", "text"},
        "document": "document" in there,
        "grade": "grade" in there,
    }
    lost = [name for name, found in known_roles.items() if not found]
    known = ", ".join(dict.fromkeys(format.title for format in FORMATS.own.values()))
    named = [] if role is None else [Remedy("to name columns", **dict.fromkeys(lost or [role], ...))]
    raise DataFileError(
        f"expected judgements, but this looks like {looks}. {advice or f'The known formats are {known}'}",
        content.name,
        value=looks,
        code="no-judgements",
        remedies=[*named, *_joining(content)],
    )


def _joining(content: Content) -> list[Joining]:
    """Return the command that joins features to judgements, for a log or a table with several columns of fractions."""
    cells = ([read_grade(cell) for cell in column] for column in zip(*(row for _, row in as_table(content).rows)))
    fractions = sum(any(number is not None and not number.is_integer() for number in column) for column in cells)
    return [Joining(content.name)] if fractions > 1 or '"_ltrlog"' in content.text else []


def _refuse_survey(content: Content, found: Survey) -> NoReturn:
    """Raise an error with the missing role, the contents of each column, and the options to state the roles."""
    purpose = f"if {'columns hold them' if len(found.roles) > 1 else 'a column holds it'}"
    remedies = [Remedy(purpose, **dict.fromkeys(found.roles, ...))]
    if "grade" in found.roles:
        remedies.append(Remedy("if each row is a relevant pair", query=..., document=..., grades=f"{ALL}=1"))
    raise DataFileError(
        f"expected judgements, but this looks like {found.looks}: {found.reason}. Its columns contain: {found.columns}",
        content.name,
        value=found.looks,
        code="no-judgements",
        remedies=[*remedies, *_joining(content)],
    )


def write_ratings(ratings: object, target: object, format: str = "ratings") -> None:
    """Write judgements in a format; for a table, the suffix .parquet, .csv or .jsonl determines the kind.

    Raises InvalidInputError for an unknown format, and for several judges of a document in a format that stores one
    (`Ratings.aggregated`).
    """
    if format not in FORMATS or FORMATS[format].write is None:
        raise InvalidInputError(unknown([name for name in FORMATS if FORMATS[name].write], format, "format"))  # type: ignore[arg-type]
    form, own = FORMATS[format], Ratings.of(ratings)
    assert form.write is not None
    if own.texts and not form.texts:
        warn(f"{form.title} cannot store both the id and the text of a query, and contains one of them")
    form.write(own if form.judges else own.aggregated(), target)
