"""All formats of judgements, the one function that reads them, and what other files look like."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NoReturn

from truerank.core.checks import column_labels
from truerank.core.errors import DataFileError, InvalidInputError, TruerankError
from truerank.core.names import Table, resolve, unknown
from truerank.core.types import PathLike
from truerank.io.judgements.content import BINARY, Content, of_text, read_content
from truerank.io.judgements.formats import Format
from truerank.io.judgements.places import PLACES
from truerank.io.judgements.ratings import Ratings, graded, read_scale
from truerank.io.judgements.roles import has, roles_of
from truerank.io.judgements.tables import content_of_frame, is_about, judges_of
from truerank.io.streams import Source

FORMATS: Table[Format] = Table(
    "truerank.judgements",
    {name: resolve(f"truerank.io.judgements.{place}") for name, place in PLACES.items()},
    lambda point: point.load(),
)
"""The formats by name, in the order in which a file is tried, those of other packages last."""
Scale = str | Mapping[str, float | None]


def read_ratings(source: object, *, grades: Scale | None = None, format: str | None = None) -> Ratings:
    """Read the judgements in a file of any known format, with a row for each grade.

    Parameters
    ----------
    source : path, "-", open file, or data frame
        The format is found by content: TREC qrels, CSV and TSV, Parquet, Arrow, JSON and JSON lines of the tools in
        `FORMATS`, text also in gzip, xz, zstd or lz4. Tables and JSON of other tools are read by the names of their
        columns and keys.
    grades : dict of str to float, or str, optional
        The number of each word, `{"Good": 2, "Bad": 0}` or "Good=2 Bad=0". None, and - in a str, mark words that are no
        grade. Numbers are words, too: "100=3 10=2".
    format : str, optional
        The name of a format.

    Raises
    ------
    DataFileError
        If the file is none of these, with what it looks like; if it is damaged, with the line; and if grades are words,
        with a proposal for `grades`.

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
    if isinstance(source, Ratings):
        return source
    if hasattr(source, "columns") and hasattr(source, "__getitem__"):
        try:
            return ratings_of(content_of_frame(source, column_labels(source, "the table")), scale, format or "ratings")
        except DataFileError as error:
            raise InvalidInputError(str(error)) from error
    if isinstance(source, Source):
        return ratings_of(read_content(source), scale, format)
    with Source(source) as stream:
        return ratings_of(read_content(stream), scale, format)


def ratings_of(
    content: Content, grades: Mapping[str, float | None] | None = None, format: str | None = None
) -> Ratings:
    """Return the ratings of what a file holds."""
    if format is not None and format not in FORMATS:
        raise InvalidInputError(unknown(FORMATS, format, "format"))
    found = FORMATS[format] if format is not None else recognised(content)
    if found is None:
        refuse(content)
    ratings = graded(found.rows(content), content, found.title, grades)
    if not ratings.grades and not ratings.left_out:
        refuse(content)
    if not ratings.grades:
        raise DataFileError(f"the file has no grade ({found.title}); nobody has judged its documents yet", content.name)
    return ratings


def holds_judgements(path: PathLike) -> bool:
    """Return whether a file holds judgements and nothing to learn from, by its first bytes or its columns.

    A table with a column that has no role, and LETOR text with features, do not.
    """
    with Source(path) as source:
        head = source.peek()
        if head.lstrip()[:1] in (b"{", b"["):
            return True
        try:
            lines = head[: head.rfind(b"\n") + 1] or head
            content = read_content(source) if head.startswith(BINARY) else of_text(lines, source.name)
        except TruerankError:
            return False
    if content.kind == "text":
        found, line = recognised(content), next(content.lines(), (1, []))[1]
        return found is not None and not (found.name == "ranklib" and re.match(r"\d+:", line[2]))
    roles = roles_of(content.header)
    others = [name for name in content.header if name not in roles.values() and not is_about(name)]
    if "document" not in roles or not {"query", "text"} & set(roles):
        return False
    return not others if "grade" in roles else bool(judges_of(content)) and has(content.header, "query", "docid")


def recognised(content: Content) -> Format | None:
    """Return the format of a file; None if it is no format of judgements."""
    if other_kind(content) is not None:
        return None
    return next((format for format in FORMATS.values() if format.matches(content)), None)


def refuse(content: Content) -> NoReturn:
    """Raise an error that says what a file looks like, and what to do with it."""
    looks, advice = other_kind(content) or _unknown(content)
    raise DataFileError(f"expected judgements, but this looks like {looks}. {advice}", content.name)


def other_kind(content: Content) -> tuple[str, str] | None:
    """Return what a file that holds no judgements looks like, and what to do with it; None for judgements."""
    return {"json": _other_json, "table": _other_table, "text": _other_text}[content.kind](content)


def _other_json(content: Content) -> tuple[str, str] | None:
    keys = content.first()
    known = set(keys)
    if "hits" in known and isinstance(keys["hits"], dict):
        inside = keys["hits"].get("hits")
        first = inside[0] if isinstance(inside, list) and inside else {}
        source = first.get("_source", {}) if isinstance(first, dict) else {}
        known |= set(source) if isinstance(source, dict) else set()
    if {"action_name", "event_attributes"} & known or "query_response_hit_ids" in known:
        return "UBI events or queries", "Read clicks with `truerank clicks examine FILE`; they are no judgements"
    if {"impression", "clicked"} <= known:
        return "a click log", "Read it with `truerank clicks examine FILE`"
    if "querySetQueries" in known:
        return "a query set without judgements", "Name the judgement list"
    if (
        known & {"_id", "id", "docid", "doc_id"}
        and known & {"text", "title", "contents", "body"}
        and not _ratings_in(content)
    ):
        return "documents or queries (a corpus)", "Judgements have a query, a document and a grade in each line"
    if "error" in known and "status" in known:
        return "the error answer of a search engine", "Repeat the request"
    if "_rank_eval" not in known and {"metric_score", "details"} <= known:
        return "the answer of _rank_eval", "Name the request, which has the ratings"
    if known & {"tree_info", "learner", "oblivious_trees", "truerank", "trees"}:
        return "a model", "Name it where a model is expected"
    if (
        known & {"hits", "responseHeader", "took"}
        and "judgmentRatings" not in content.text[:100_000]
        and not re.search(r'"(ratings?|judge?ments?|relevance|grade)"', content.text)
    ):
        return "the answer of a search engine", "Results are a run; judgements have a grade for each document"
    if {"featureset", "features"} & known and "ratings" not in content.text:
        return "a feature set", "It belongs to `truerank text features`"
    return None


def _ratings_in(content: Content) -> bool:
    return bool(
        re.search(r'"(judgmentR|r)atings?"|"(judge?ments?|relevance|relevant|grade|label|qrels)\w*"', content.text)
    )


def _other_table(content: Content) -> tuple[str, str] | None:
    header = content.header
    if has(header, "impression", "position", "clicked") or has(header, "actionname"):
        return "a click log", "Read it with `truerank clicks examine FILE`"
    roles = roles_of(header)
    if "document" not in roles or not {"query", "text"} & set(roles):
        if "document" in roles or not {"query", "text"} & set(roles):
            return None if not {"query", "text", "document"} & set(roles) else _without(content, "query")
        return _without(content, "document")
    grade = roles.get("grade")
    if grade is not None and grade.lower() in ("score", "value"):
        place = header.index(grade)
        cells = [row[place] for _, row in content.rows if place < len(row)]
        ranked = roles_of(header, "score").keys() & {"rank"}
        if ranked or any("." in str(cell) and not str(cell).rstrip("0").endswith(".") for cell in cells):
            return "a run (scores of a system)", "Name it as a run; judgements have grades"
        return None
    if grade is None and not judges_of(content):
        if roles_of(header, "score").keys() & {"rank"}:
            return "a run (ranks of a system)", "Name it as a run; judgements have grades"
        return "a table of features or documents without grades", "Add a column of grades, such as 'rating'"
    return None


def _without(content: Content, role: str) -> tuple[str, str]:
    shown = ", ".join(map(repr, content.header[:12]))
    what = "queries without documents" if role == "document" else "documents without queries"
    return (
        f"a table of {what} (columns {shown})",
        f"Judgements have a {role} in each row, in a column such as {_USUAL[role]}",
    )


_USUAL = {"query": "'query_id' or 'query'", "document": "'doc_id'"}


def _other_text(content: Content) -> tuple[str, str] | None:
    words = next(content.lines(), (1, []))[1]
    start = content.text.lstrip()[:200].lower()
    if start.startswith(("<!doctype", "<html")):
        return "a web page", "Was it saved after a login? Export the file again"
    if start.startswith("<"):
        return "XML or TREC topics", "Topics are queries; judgements have a grade for each document"
    if re.search(r"(^|\s)qid:", " ".join(words)):
        if re.search(r"\s\d+:\S+", " ".join(words)) and "#" not in content.text:
            return "LETOR features without document ids", "Name it as judged rows; qrels need document ids in comments"
        return None
    if len(words) == 6:
        return "a TREC run (6 columns)", "Name it as a run; qrels have 4 columns 'topic iteration docno grade'"
    if len(words) == 1 and re.fullmatch(r"[-+.\deE]+", words[0]):
        return "a file of scores", "Scores belong to judged rows"
    return None


def _unknown(content: Content) -> tuple[str, str]:
    formats = ", ".join(dict.fromkeys(format.title for format in FORMATS.own.values()))
    advice = f"Known are {formats}. A table needs columns of the query, the document and the grade"
    if content.kind == "json":
        keys = ", ".join(map(repr, list(content.first())[:8])) or "no object"
        return f"other JSON ({keys})", advice
    if content.kind == "table":
        columns = ", ".join(map(repr, content.header[:8]))
        return f"a table with the columns {columns}", f"{advice}. Is the line of their names missing?"
    line = next(content.lines(), (1, []))[1]
    return f"other text ({' '.join(line)[:60]!r})", advice


def write_ratings(ratings: object, target: object, format: str = "ratings") -> None:
    """Write judgements in a format; a path that ends in .parquet, .csv or .jsonl names the kind of a table.

    InvalidInputError: several judges of a document in a format that has no place for them (`Ratings.aggregated`), and
    an unknown format.
    """
    if format not in FORMATS or FORMATS[format].write is None:
        raise InvalidInputError(unknown([name for name in FORMATS if FORMATS[name].write], format, "format"))  # type: ignore[arg-type]
    form, own = FORMATS[format], Ratings.of(ratings)
    assert form.write is not None
    form.write(own if form.judges else own.aggregated(), target)
