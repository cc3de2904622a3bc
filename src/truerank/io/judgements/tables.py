"""Tables of judgements: CSV, TSV, Parquet, Arrow and JSON lines with a row for each grade, and data frames."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Collection, Iterator, Sequence, Set
from pathlib import Path
from typing import Any

from truerank.core.checks import as_array
from truerank.core.errors import DataFileError, InvalidInputError, Remedy, warn
from truerank.core.types import PathLike
from truerank.data.grouping import as_ids, id_text, is_missing
from truerank.io.judgements.content import Content, read_content
from truerank.io.judgements.formats import Format, json_rows, whole, write_lines
from truerank.io.judgements.logged import logged_rows
from truerank.io.judgements.ratings import ESCI, Ratings, Row, is_unrated, read_grade
from truerank.io.judgements.roles import few, has, is_usual, plain, roles_of, usual
from truerank.io.streams import COMPRESSED, Source, open_output
from truerank.io.tables import DOCUMENT, GRADE, QUERY, table_kind

_ABOUT = {"rank", "position", "pos", "title", "notes", "note", "comment", "explanation", "description", "id", "url",
          "uri", "informationneed", "timestamp", "date", "locale", "productlocale", "split", "exampleid", "iteration",
          "iter", "judge", "rater", "user", "query", "smallversion", "largeversion", "unrateable", "product", "name",
          "text", "snippet", "body", "brand", "category", "color", "round", "budget", "probability",
          "page"}  # fmt: skip

_COMBINED = re.compile(r"final|consensus|adjudicated|average|avg|mean|median|majority|overall")
"""Columns that combine the grades of several judges."""
_ENDS = re.compile(
    r"(id|name|time|explanation|notes?|title|position|variance|stddev|confidence)$"
)  # of other names for the same


def roles_in(content: Content, what: str = "grade") -> dict[str, str]:
    """Return the columns of a table by role; scores of a system are not grades."""
    roles, header = roles_of(content.header, what, like=True), content.header
    for role in {"query", "text"} & roles.keys():
        column = [row[k] for _, row in content.rows if (k := header.index(roles[role])) < len(row)]
        if 2 * sum(cell is None or cell == "" for cell in column) > len(column):
            del roles[role]
    if plain(roles.get("grade", "")) in ("score", "value"):
        numbers = [read_grade(row[header.index(roles["grade"])]) for _, row in content.rows if len(row) == len(header)]
        ranked = "rank" in roles_of(header, "score")
        if ranked or any(number is not None and not number.is_integer() for number in numbers):
            del roles["grade"]
    return roles


def lacking(content: Content, what: str = "grade") -> str | None:
    """Return the missing role of a table of judgements or of a run, or None if no role is missing."""
    roles = roles_in(content, what)
    if not {"query", "text"} & set(roles):
        return "query"
    if "document" not in roles:
        return "document"
    return None if what in roles or ("rank" in roles if what == "score" else judges_of(content)) else what


def table_rows(content: Content, what: str = "grade") -> Iterator[Row]:
    """Yield the rows of a table by the roles of its columns; `what` is "grade" or "score".

    In a table without a grade column, each column that contains only grades is a judge, as in Quepid's books.
    """
    role = lacking(content, what)
    if role is not None:
        shown, hint = few(content.header), ""
        if any(read_grade(name) is not None for name in content.header):
            hint = ". Is the header line missing?"
        wanted = f"the table has the columns {shown}; expected one of {usual(role)} for the {role}{hint}"
        raise DataFileError(wanted, content.name, 1, code="columns")
    roles = {role: content.header.index(name) for role, name in roles_in(content, what).items()}
    wide = {} if what in roles or what == "score" else judges_of(content)
    for line, row in content.rows:
        cells = {role: row[k] for role, k in roles.items() if k < len(row) and not is_missing(row[k]) and row[k] != ""}
        text = _guarded(id_text(cells["text"])) if "text" in cells else None
        query = id_text(cells["query"]) if "query" in cells else text
        document = id_text(cells.get("document", "")).strip()
        if not query or (not document and what in cells):
            lost = "document id" if query else "query"
            raise DataFileError(f"the row has no {lost}. Add the {lost}, or remove the row", content.name, line)
        if not document:
            continue  # a query that nobody has judged
        if what == "score" and what not in roles:
            rank = read_grade(cells.get("rank"))
            yield Row(query, document, None if rank is None else -rank, None, text, line)
        elif not wide:
            judge = id_text(cells["judge"]) if "judge" in cells else None
            yield Row(query, document, cells.get(what), judge, text, line)
        else:
            given = [(judge, row[k]) for judge, k in wide.items() if k < len(row) and row[k] not in ("", None)]
            for judge, grade in given or [("", None)]:
                yield Row(query, document, grade, judge or None, text, line)


def _guarded(text: str) -> str:
    """Return a text without the leading blank by which Quepid prevents spreadsheets from running formulas."""
    return text[1:] if text[:1] == " " and text[1:2] in tuple("-=+@") else text


def is_about(name: str) -> bool:
    """Return whether a column describes a row, and is neither a grade nor a feature."""
    short = plain(name)
    return not short or short in _ABOUT or name.startswith(("Unnamed:", "__index_level")) or bool(_ENDS.search(short))


def judges_of(content: Content) -> dict[str, int]:
    """Return the columns of grades by judge, by name; {} if any other column holds numbers that are not grades.

    Such columns hold numbers, or if no column does, words of the usual scales.
    """
    if has(content.header, "clicked"):  # a log
        return {}
    taken = set(roles_of(content.header, like=True).values())
    found, in_words = dict[str, int](), dict[str, int]()
    for k, name in enumerate(content.header):
        if name in taken or is_about(name) or _COMBINED.match(plain(name)):
            continue
        cells = [row[k] for _, row in content.rows if k < len(row) and not is_unrated(row[k])]
        numbers = [read_grade(cell) for cell in cells]
        if any(number is not None and not (number.is_integer() and 0 <= number <= 100) for number in numbers):
            return {}
        if cells and all(number is not None for number in numbers):
            found[name] = k
        elif cells and all(isinstance(cell, str) and is_usual(cell) for cell in cells):
            in_words[name] = k
    return found or in_words


def content_of_frame(table: Any, names: dict[str, Any]) -> Content:
    """Return the content of a data frame; `names` maps the text of each name to its column."""
    roles = roles_of(names)
    ids = {roles.get("query", roles.get("text")), roles.get("document")}
    columns = [as_array(table[label], name) for name, label in names.items()]
    columns = [as_ids(own, f"column {name!r}") if name in ids else own for name, own in zip(names, columns)]
    rows = zip(*(column.tolist() for column in columns))
    return Content("the table", "table", header=list(names), rows=[(None, list(row)) for row in rows])


def joined(
    ratings: Ratings, source: PathLike, on: Sequence[str] | None = None
) -> tuple[dict[str, list[Any]], list[str]]:
    """Return rows `qid`, `y`, `docid` joined with a table, and the judged documents that the table lacks.

    `on` is the table's column of document ids, or its columns of queries (ids or texts) and of document ids; by default
    both if a column with a usual name has a judged query. Text columns in which all cells are numbers become numeric. A
    column that repeats the grades is left out, because a ranker would learn them from it.
    """
    header, records = _features(source)
    queries = {*ratings.queries, *map(ratings.text, ratings.queries)}
    columns_on = [*on] if on else [*filter(None, [roles_of(header, like=True).get("document")])]
    asked_in = (name for role, name in roles_of(header).items() if role in ("query", "text"))
    if columns_on and not on:
        columns_on = [*[own for own in asked_in if _count(queries, header.index(own), records)[0]][:1], *columns_on]
    if not 1 <= len(columns_on) <= 2 or not {*columns_on} <= {*header}:
        what = f"there is no column {', '.join(one for one in columns_on if one not in header) or 'of document ids'}"
        own = _holding({*ratings.documents}, header, records)
        raise DataFileError(
            f"{what}; its columns are {few(header)}", str(source),
            remedies=[Remedy("to name the column of document ids", on=own or ...)], code="columns",
        )  # fmt: skip
    places = [header.index(name) for name in columns_on]
    others = [k for k, name in enumerate(header) if k not in places and name and name not in (QUERY, GRADE, DOCUMENT)]
    known = [(tuple(id_text(row[k]).strip() for k in places), row) for row in records
             if not any(k >= len(row) or is_missing(row[k]) for k in places)]  # fmt: skip
    rows = dict(known)
    twice = next((one for one, row in known if rows[one] != row), None)
    if twice is not None:
        remedies: list[Remedy | str] = ["keep one of the rows"]
        if len(places) == 1:
            query = _holding(queries, [name if name not in columns_on else "" for name in header], records)
            remedies.append(Remedy("if there is a row for each query and document", on=[query or ..., *columns_on]))
        what = f"{' / '.join(twice)!r} is in two rows of {' and '.join(map(repr, columns_on))} with different cells"
        raise DataFileError(what, str(source), remedies=remedies, code="twice")
    asked = _queries(ratings, {one[0] for one in rows}) if len(places) > 1 else []
    keys = [*zip(asked, ratings.documents)] if len(places) > 1 else [(one,) for one in ratings.documents]
    kept = [k for k, key in enumerate(keys) if key in rows]
    if not kept:
        named = [_holding(queries, header, records) or ...] if len(places) > 1 else []
        named.append(_holding({*ratings.documents}, header, records) or ...)
        what = (
            f"no judged {'query and ' if len(places) > 1 else ''}document is in {' and '.join(map(repr, columns_on))}"
        )
        raise DataFileError(
            what, str(source), remedies=[Remedy("to name columns that hold judged ids", on=named)], code="columns"
        )
    columns: dict[str, list[Any]] = {
        QUERY: [ratings.queries[k] for k in kept],
        GRADE: [whole(ratings.grades[k]) for k in kept],
        DOCUMENT: [ratings.documents[k] for k in kept],
    }
    for k in others:
        cells = [rows[keys[own]][k] if k < len(rows[keys[own]]) else None for own in kept]
        filled = [None if is_missing(cell) or cell == "" else cell for cell in cells]
        numbers = [None if cell is None else read_grade(cell) for cell in filled]
        are_numbers = all(number is not None for cell, number in zip(filled, numbers) if cell is not None)
        if not are_numbers and len({type(cell) for cell in filled if cell is not None}) > 1:
            filled = [None if cell is None else str(cell) for cell in filled]
        if numbers == columns[GRADE]:
            warn(f"{source}: the column {header[k]!r} is left out, because it equals the grades")
        else:
            columns[header[k]] = numbers if are_numbers else filled
    return columns, [" / ".join(key) for key in dict.fromkeys(keys) if key not in rows]


def _features(source: PathLike) -> tuple[list[str], list[list[Any]]]:
    """Return the columns and the rows of a table, or of JSON as `logged_rows` reads it."""
    with Source(source) as stream:
        content = read_content(stream)
    if content.header:
        return content.header, [row for _, row in content.rows]
    objects = [one for _, value in content.values for one in (value if isinstance(value, list) else [value])]
    try:
        flat = [row for one in objects if isinstance(one, dict) for row in logged_rows(one)]
    except DataFileError as error:
        raise DataFileError(error, content.name) from None
    except RecursionError as error:
        raise DataFileError("the JSON is nested too deeply", content.name) from error
    header = list(dict.fromkeys(key for row in flat for key in row))
    return header, [[row.get(key) for key in header] for row in flat]


def columns_of_features(source: PathLike) -> list[str]:
    """Return the columns of numbers next to the query, the document and the grade in rows; [] for other files."""
    if not os.path.isfile(source):
        return []
    try:
        header, records = _features(source)
    except DataFileError:  # judgements in the answer of a search engine
        return []
    roles = roles_of(header)
    if len(records) < 2 or not {"document", "grade"} <= roles.keys() or not {"query", "text"} & roles.keys():
        return []
    others = [k for k, name in enumerate(header) if name not in roles.values() and not is_about(name)]
    cells = {header[k]: [read_grade(row[k]) for row in records if k < len(row) and row[k] is not None] for k in others}
    return [name for name, numbers in cells.items() if numbers and None not in numbers]


def _queries(ratings: Ratings, known: Collection[str]) -> list[str]:
    """Return the query of each row, by its id or, if no id is `known`, by its text."""
    by_id = not set(known).isdisjoint(ratings.queries)
    return ratings.queries if by_id else [ratings.text(query) for query in ratings.queries]


def _holding(values: Set[str], header: Sequence[str], records: Sequence[Sequence[Any]]) -> str | None:
    """Return the first column with a name whose cells are mostly among these values."""
    counts = ((name, *_count(values, k, records)) for k, name in enumerate(header) if name)
    return next((name for name, known, cells in counts if 2 * known > cells), None)


def _count(values: Set[str], k: int, records: Sequence[Sequence[Any]]) -> tuple[int, int]:
    """Return the number of cells of column k that are among these values, and that of all its cells."""
    cells = [row[k] for row in records if k < len(row) and not is_missing(row[k])]
    return sum(id_text(cell).strip() in values for cell in cells), len(cells)


def kind_of(target: object) -> str | None:
    """Return "csv", "tsv", "parquet", "arrow" or "jsonl" by the suffix of a path, else None."""
    if not isinstance(target, str | os.PathLike):
        return None
    endings = [ending.lower() for ending in Path(target).suffixes if ending.lower() not in COMPRESSED]
    return "jsonl" if endings and endings[-1] in (".jsonl", ".ndjson") else table_kind(target)


def write_rows(columns: dict[str, list[Any]], target: object, kind: str | None = None) -> None:
    """Write columns as a table of the kind given by the suffix of the path, by default CSV."""
    kind = kind or kind_of(target) or "csv"
    if kind in ("csv", "tsv"):
        rows = zip(*columns.values())
        write_csv([list(columns), *map(list, rows)], target, "\t" if kind == "tsv" else ",")
    elif kind == "jsonl":
        lines = (dict(zip(columns, row)) for row in zip(*columns.values()))
        write_lines((json.dumps(line, ensure_ascii=False) for line in lines), target)
    else:
        from truerank.io.tables import _arrow, write_arrow

        with open_output(target) as stream:
            write_arrow(_arrow().table(columns), kind, stream)


def write_csv(rows: Sequence[Sequence[Any]], target: object, delimiter: str = ",") -> None:
    """Write rows as CSV."""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    with open_output(target) as stream:
        stream.write(text.getvalue().encode("utf-8"))


def _write(ratings: Ratings, target: object) -> None:
    columns: dict[str, list[Any]] = {"query_id": ratings.queries}
    if ratings.texts:
        columns["query"] = [ratings.text(query) for query in ratings.queries]
    columns |= {"doc_id": ratings.documents, "grade": list(map(whole, ratings.grades))}
    if kind_of(target) in ("parquet", "arrow"):
        columns["grade"] = ratings.grades
    if ratings.judges is not None:
        columns["judge"] = ratings.judges
    write_rows(columns, target)


def _write_esci(ratings: Ratings, target: object) -> None:
    letters = {number: letter.upper() for letter, number in ESCI.items() if len(letter) == 1}
    unknown = sorted(set(ratings.grades) - set(letters))
    if unknown:
        raise InvalidInputError(f"ESCI has the grades 3, 2, 1, 0 (E, S, C, I), got {unknown[0]:g}")
    texts = [ratings.text(query) for query in ratings.queries]
    labels = [letters[grade] for grade in ratings.grades]
    columns = {"query_id": ratings.queries, "query": texts, "product_id": ratings.documents, "esci_label": labels}
    write_rows(columns, target)


def has_columns(*names: str) -> Any:
    """Return a function that finds tables with these columns, in plain form."""
    return lambda content: content.kind == "table" and has(content.header, *names)


ESCI_FRAME = Format("esci", "ESCI's frame", has_columns("productid", "escilabel"), table_rows, _write_esci)
TABLE = Format(
    "ratings",
    "a table of judgements",
    lambda content: content.kind == "table" and lacking(content) is None,
    table_rows,
    _write,
    judges=True,
)
JSON = Format("json", "JSON of judgements", lambda content: content.kind == "json", json_rows)
