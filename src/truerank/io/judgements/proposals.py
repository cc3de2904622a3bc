"""Find the roles of columns by their cells if the names do not determine them, and propose a command."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import combinations, pairwise, permutations
from typing import Any, NamedTuple

from truerank.core.errors import Remedy, TruerankError, Wording
from truerank.data.grouping import id_text, is_missing
from truerank.io.judgements.content import Content
from truerank.io.judgements.flat import ALL, as_table, named
from truerank.io.judgements.ratings import graded, is_unrated, read_grade, read_scale
from truerank.io.judgements.roles import GRADE, ROLES, few, is_usual, plain, role_like
from truerank.io.judgements.tables import is_about, table_rows
from truerank.io.table_problems import grades_in_words

_SAMPLE = 1000
"""Rows that are looked at."""
_LEAST = 1.8
"""Evidence without which nothing is proposed; each column over four needs more, as more readings fit by chance."""
_WORDS = 1.0
"""The evidence for the only column that may hold grades in other words than the usual ones."""
_NEAR = 0.75
"""A reading with so much less evidence than the best is proposed, too."""
_SHOWN = 6
"""Columns that a message describes."""
_NEVER = re.compile(r"\d{4}-\d\d-\d\d.*|\d{1,2}[./]\d{1,2}[./]\d{2,4}.*|\d\d?:\d\d.*|[^\s@]+@\S+\.\w+")
"""Dates, times and addresses of people are neither queries nor documents."""
_ABOUT = re.compile(
    "(note|comment|reason|rationale|explanation|date|time|timestamp|split|locale|language|category|version)s?$"
    "|^(system|model|engine|method|variant|llm|mode|arm|pipeline)(name|id)?$"
)
"""Names of columns that describe a row."""
_BY_MODEL = re.compile(r"^(llm|gpt|ai|auto|pred|model|crossencoder)|(^|\.)predictions?\.")
"""Names of grades that a system gave."""
_ASKED = re.compile(r"(^|\.)(queries|questions)\.(id|text)$")
_PARTS = re.compile("answer|keyword|contain|phrase|pattern|fact|theme|tag|tool")
"""Names of lists that hold no documents."""
_HEADING = re.compile("(title|headline|summary|abstract|description)$")
"""Names of columns that describe documents."""
_ROW = re.compile("id|index|row|rowid|uuid|recordid|recorduuid|exampleid|caseid|pairid|hitid")
"""Names of the numbers of rows."""
_NUMBERED = re.compile(r"\d\s*[-–:=.(]\s*[^\W\d].{0,60}|[^\W\d][^/]{1,60}[\s(]\d\)?")
"""Grades such as "2 - relevant" and "relevant (2)"."""
_SIDES = {"a", "b", "left", "right", "first", "second", "tie", "both", "neither", "equal"}


class Conversion(Remedy):
    """A remedy that the command line writes as a whole command."""

    def __init__(self, path: str, /, **arguments: Any) -> None:
        super().__init__("", **arguments)
        self.path = path

    def worded(self, wording: Wording) -> str | None:
        """Return the command to type, or in Python the arguments to pass."""
        text = wording.conversion(self.path, self.arguments) or super().worded(wording)
        return f"{text} (replace each ? by a number)" if "?" in self.arguments.get("grades", "") else text


class Joining(Conversion):
    """The command that joins a file of features without grades to judgements; nothing in Python."""

    def worded(self, wording: Wording) -> str | None:
        """Return the command."""
        command = wording.conversion(self.path, {"join": self.path})
        return command and f"if these are features without grades, {command}"


class _Column:
    """A column of a table: its cells as text ("" is empty), and the properties of these cells."""

    def __init__(self, name: str, cells: list[Any]) -> None:
        self.name, self.lists = name, any(isinstance(cell, list) for cell in cells)
        self.cells = ["" if is_missing(cell) or isinstance(cell, dict) else _text(cell) for cell in cells]
        self.filled = [cell for cell in self.cells if cell.strip()]
        self.kinds = len({*self.filled})
        self.role = role_like(name) or ("query" if _ASKED.search(name.lower()) else None)
        self.about = bool(_ABOUT.search(plain(name)))
        self.numbers = [number for cell in self.filled if (number := read_grade(cell)) is not None]
        self.is_number = 0 < len(self.numbers) == len(self.filled)
        self.length = sum(map(len, self.filled)) / max(1, len(self.filled))
        self.has_blanks = 2 * sum(" " in cell.strip() for cell in self.filled) > len(self.filled)
        fractions = self.is_number and not all(number.is_integer() for number in self.numbers)
        self.is_id = bool(self.filled) and not fractions and not all(map(_NEVER.fullmatch, self.filled))

    def as_role(self, role: str) -> float:
        """Return the evidence for a query or a document from the name and the cells alone."""
        found = 0.0 if self.role is None else 1.5 if self.role == role else -1.5
        found += 0.5 * (plain(self.name) in ROLES[role])
        is_key = self.is_number and role == "query"
        found -= (0.5 if is_key else 1.5) * (self.as_grade > 1 and self.role != role)
        is_url = sum(cell.startswith(("http:", "https:")) for cell in self.filled) * 2 > len(self.filled)
        if role == "query":
            found -= 1.5 * (self.kinds == 2 and len(self.filled) > 6) + 2 * bool(_HEADING.search(plain(self.name)))
            found -= 4 * all(map(is_usual, self.filled))
            return found + 0.5 * self.has_blanks - (self.length > 200) - 1.5 * is_url - 2 * self.lists
        is_counted = self.is_number and all(b - a == 1 for a, b in pairwise(self.numbers)) and len(self.numbers) > 2
        is_row = is_counted or bool(_ROW.fullmatch(plain(self.name)))
        is_unique = self.kinds == len(self.filled)
        found -= 0.5 * (self.has_blanks and self.length > 60) + 0.5 * is_unique + 1.5 * (is_row and is_unique)
        return found + 0.5 * is_url + (-2.5 if _PARTS.search(plain(self.name)) else 2.5) * self.lists

    @property
    def is_thing(self) -> bool:
        """Whether the cells may be ids or texts of queries or documents."""
        named = self.role in ("query", "document")
        is_one = self.kinds < 2 and len(self.cells) > 1
        other = self.about or self.role in ("judge", "rank", "score") or (is_one and not named)
        other = other or (self.role == "grade" and self.as_grade > 0)
        if other or not self.is_id or {*map(str.lower, self.filled)} <= {"true", "false", "yes", "no"}:
            return False
        if self.is_number:
            return named or bool(re.search(r"(id|no|nr|number|key|code)\d?$", plain(self.name)))
        return named or self.as_grade < 1.5

    @property
    def holds(self) -> str:
        """A short description of the cells."""
        kinds = [*dict.fromkeys(self.filled)]
        if not kinds:
            return "empty"
        if self.lists:
            return "lists"
        if all(map(_NEVER.fullmatch, kinds)):
            return "dates or addresses"
        if len(kinds) == 1:
            return f"always {kinds[0]!r:.30}"
        if self.is_number:
            return f"numbers {min(self.numbers):g} to {max(self.numbers):g}"
        if len(kinds) <= 5 and (2 * len(kinds) <= len(self.filled) or self.as_grade >= 1.5) and self.length <= 25:
            return f"words ({', '.join(kinds)})"
        kind = "texts" if self.has_blanks else "ids or names"
        return f"{kind}, {'each once' if len(kinds) == len(self.filled) else f'{len(kinds)} different'}"

    def varies_within(self, group: _Column) -> bool:
        """Return whether rows with the same cell of another column differ in this one."""
        pairs = {own for own in zip(group.cells, self.cells) if all(own)}
        return len(pairs) > len({one for one, _ in pairs})

    @property
    def in_words(self) -> bool:
        """Whether the cells may be words of a scale, of which none is usual."""
        other = self.role in ("query", "document", "judge", "rank", "score") or self.about or is_about(self.name)
        return not (other or self.lists or self.is_number) and self.length <= 40

    @cached_property
    def as_grade(self) -> float:
        """The evidence for grades; 0 if the cells cannot be grades."""
        kinds = {cell for cell in self.filled if not is_unrated(cell)}
        fits = (self.role == "grade" or len(kinds) > 1) and 0 < len(kinds) <= 11 and not self.lists
        if not fits or self.role in ("query", "document", "rank"):
            return 0.0
        found = {"grade": 1.5, "score": -1.0, "judge": -0.5}.get(self.role or "", 0.0)
        found += 0.5 * (plain(self.name) in GRADE and self.role == "grade")
        found -= self.about or is_about(self.name)
        found -= 2 * bool(_BY_MODEL.search(plain(self.name.rpartition(".")[2])) or _BY_MODEL.search(self.name))
        if self.is_number:
            whole, low, high = all(one.is_integer() for one in self.numbers), min(self.numbers), max(self.numbers)
            quarters = all((4 * one).is_integer() for one in self.numbers) or self.role in ("grade", "score")
            if not quarters or low < -2 or high > 100 or (high > 10 and (len(kinds) > 6 or not whole)):
                return 0.0
            found -= (len(kinds) == 1) + (not whole and 2 * len(kinds) > len(self.filled))
            return max(0.1, found + 1.5 + 0.5 * (whole and high <= 10))
        usual = sum(is_usual(cell) or bool(_NUMBERED.fullmatch(cell.strip())) for cell in kinds)
        repeats = self.kinds < len(self.filled) or self.kinds < 5
        known = len(kinds) <= 8 and repeats and (2 * usual > len(kinds) or self.role == "grade")
        return max(0.1, found + 2.5 * usual / len(kinds)) if known else 0.0


def _text(cell: object) -> str:
    return "\x1f".join(map(str, cell)) if isinstance(cell, list) else id_text(cell)


class _Found(NamedTuple):
    """Columns by role with the evidence for them; `grades` is [] without grades, and has several judges."""

    evidence: float
    query: _Column
    document: _Column
    grades: list[_Column]
    judge: _Column | None = None


def _pairs(query: _Column, document: _Column, columns: list[_Column]) -> tuple[float, _Column | None] | None:
    """Return the evidence that two columns are a query and its documents, and the judge of repeated pairs."""
    places = [k for k, (one, own) in enumerate(zip(query.cells, document.cells)) if one and own]
    pairs = [(query.cells[k], document.cells[k]) for k in places]
    n, kinds = len(pairs), len({*pairs})
    queries, documents = (len({pair[side] for pair in pairs}) for side in (0, 1))
    is_text = query.has_blanks and not _HEADING.search(plain(query.name))
    is_asked = document.role == "document" and (query.role == "query" or is_text)
    once = queries == n and (document.lists or documents < n or is_asked)
    if documents < (2 if n < 10 else 4) or (kinds == queries and not once):  # a property of the query
        return None
    judge = None
    if kinds < n:
        judges = [
            one for one in columns
            if (one.role == "judge" or (one.role is None and 1 < one.kinds <= len(one.filled) / 2))
            and len({(*pair, one.cells[k]) for pair, k in zip(pairs, places)}) == n
        ]  # fmt: skip
        judge = min(judges, key=lambda one: one.role != "judge", default=None)
        if judge is None and kinds < 0.9 * n and len(columns) > 3:
            return None
    grouped, others = (1 + sum(a[side] != b[side] for a, b in pairwise(pairs)) for side in (0, 1))
    found = min(1.0, documents / queries - 1) - 2 * (1 - n / len(query.cells)) - 2 * (once and not document.lists)
    found += (grouped == queries < n) - (others == documents < n and grouped != queries)
    found += 0.5 * (columns.index(query) < columns.index(document)) - (2 * documents <= queries)
    found -= (1.5 if n < 4 else 4) * (queries == 1 and query.role != "query") + 2 * _are_ranks(pairs)
    return found + (0 if judge is None else 0.5 if judge.kinds < queries else -0.5), judge


def _are_ranks(rows: list[tuple[str, str]]) -> bool:
    """Return whether the second cells are 1, 2, 3, … within each of the first, in the order of the rows."""
    groups: dict[str, list[str]] = {}
    for one, cell in rows:
        groups.setdefault(one, []).append(cell)
    counted = all(cells == [str(k + 1) for k in range(len(cells))] for cells in groups.values())
    return counted and len(rows) > len(groups) > 0


def _graded(query: _Column, document: _Column, grade: _Column) -> float:
    """Return the evidence that a column has grades, which differ within queries and are not ranks."""
    rows = [own for own in zip(query.cells, document.cells, grade.cells) if all(own)]
    by_query: dict[str, list[str]] = {}
    for one, _, cell in rows:
        by_query.setdefault(one, []).append(cell)
    most = max(map(len, by_query.values()), default=0)
    distinct = grade.is_number and most > 2 and all(len({*own}) == len(own) for own in by_query.values())
    found = grade.as_grade - 4 * (distinct or _are_ranks([(one, cell) for one, _, cell in rows]))
    found -= 2 * (1 - len(rows) / len(grade.cells))
    if most > 1 and grade.kinds > 1:
        found -= 2 * all(len({*own}) == 1 for own in by_query.values())
        documents = {own for _, own, _ in rows}
        if len(documents) < len({(one, own) for one, own, _ in rows}):  # a property of the documents
            found -= 1.5 * (len({(own, cell) for _, own, cell in rows}) == len(documents))
    return found


def _found(columns: list[_Column], given: Mapping[str, str]) -> list[_Found]:
    """Return the assignments of columns to roles, the most evident first."""
    grades = [one for one in columns if one.as_grade > 0]
    if "grade" in given:
        grades = [one for one in columns if one.name == given["grade"]]
    found = []
    for query, document in permutations([one for one in columns if one.is_id], 2):
        if given.get("query", query.name) != query.name or given.get("document", document.name) != document.name:
            continue
        other = {query.role, document.role} & {"judge", "rank", "score", "grade"}
        other |= {one.name for one in (query, document) if {*map(str.lower, one.filled)} <= {"true", "false"}}
        if other or ((query.about or document.about) and not given):
            continue
        pair = _pairs(query, document, columns)
        if pair is None:
            continue
        evidence, judge = pair
        evidence += query.as_role("query") + document.as_role("document")
        own = [(_graded(query, document, one), one) for one in grades if one not in (query, document, judge)]
        if not grades and (query.role == "query" or query.has_blanks):  # words of any language, whose order is unknown
            words = [one for one in columns if one.in_words and one not in (query, document, judge)]
            alike = grades_in_words({one.name: one.cells for one in words}, query.cells, document.cells)
            own = [(_WORDS + _graded(query, document, one), one) for one in words if [one.name] == alike]
        own = [] if document.lists else own
        found += [_Found(evidence + more, query, document, [one], judge) for more, one in own if more > -1]
        if document.as_grade > 1 and document.role != "document":
            continue  # grades are no documents
        known = {"query", "judge", "rank"} | {document.role}
        rest = [one for one in columns if one not in (query, document) and not one.about and one.kinds > 1]
        if document.lists or (not own and all(one.role in known if one.role else one.kinds > 11 for one in rest)):
            found.append(_Found(evidence + 0.5, query, document, []))
    return sorted(found, key=lambda one: -one.evidence)


def _with_judges(best: _Found, found: list[_Found]) -> _Found:
    """Return an assignment in which all columns of grades that agree with each other are judges."""
    near = [own for own in found if own.grades and own[1:3] == best[1:3] and own.evidence > best.evidence - 1.5]
    groups = [[one.grades[0], *(own.grades[0] for own in near if own != one and _agree(one.grades[0], own.grades[0]))]
              for one in near]  # fmt: skip
    return best._replace(grades=max(groups, key=lambda own: len(own) > 1))


def _agree(a: _Column, b: _Column) -> bool:
    """Return whether two columns of grades are the same more often than by chance."""
    rows = [own for own in zip(a.cells, b.cells) if all(own)]
    first, second = Counter(one for one, _ in rows), Counter(own for _, own in rows)
    chance = sum(count * second[cell] for cell, count in first.items()) / max(1, len(rows)) ** 2
    shared = len(first.keys() & second.keys()) / len(first.keys() | second.keys() or "-")
    if a.role != b.role:
        return False
    alike = re.sub(r"\d+", "", a.name) == re.sub(r"\d+", "", b.name) != "" and shared > 0.6
    return alike or sum(one == own for one, own in rows) > len(rows) * (chance + 0.1)


def _finest(found: list[_Found]) -> _Found:
    """Return the most evident assignment with the finest query, because a category of queries also groups documents."""
    best = found[0]
    for own in found:
        is_near = own[2:4] == best[2:4] and own.evidence > best.evidence - 2 and own.query.kinds > best.query.kinds
        if is_near and len({*zip(own.query.cells, best.query.cells)}) == own.query.kinds:
            best = own
    return best


def _of_one_kind(ids: list[_Column]) -> Iterator[tuple[_Column, _Column]]:
    """Yield pairs of columns that have the same values, but never in one row."""
    for a, b in combinations(ids, 2):
        shared = len({*a.cells} & {*b.cells} - {""})
        if shared > 1 and 2 * shared >= min(a.kinds, b.kinds) and all(one != own for one, own in zip(a.cells, b.cells)):
            yield a, b


def is_pairwise(content: Content) -> bool:
    """Return whether two columns have the same documents, and another states which of the two is better."""
    columns = [one for one in _columns(as_table(content)) if one.filled]
    for a, b in _of_one_kind([one for one in columns if one.is_id and not one.as_grade and one.kinds > 2]):
        for one in columns:
            is_side = {cell.lower() for cell in one.filled} <= _SIDES
            if one not in (a, b) and (is_side or all(cell in own for cell, *own in zip(one.cells, a.cells, b.cells))):
                return True
    return False


class Survey(NamedTuple):
    """A description of a file whose cells are not judgements, with kind, reason, columns and missing roles."""

    looks: str
    reason: str
    columns: str
    roles: list[str]


def survey(content: Content) -> Survey:
    """Return why the cells of a file are not judgements, and what its columns contain."""
    columns = _columns(as_table(content))
    things = [one for one in columns if one.is_thing]
    labels = [one.name for one in columns if one not in things and one.as_grade >= 1.5]
    holds = "; ".join(f"{one.name!r:.40} {one.holds}" for one in columns[:_SHOWN])
    holds += f"; {len(columns) - _SHOWN} more" * (len(columns) > _SHOWN)
    rated = f", with labels ({few(labels[:3])})" if labels else ""
    every = ["query", "document", *([] if labels else ["grade"])]
    if all(one.role == "document" for one in things):
        looks = f"documents without queries{rated}" if things else f"rows without queries and documents{rated}"
        lost = [role for role in every if role != "document" or not things]
        return Survey(looks, "no column has ids or texts of queries", holds, lost)
    if pair := next(_of_one_kind([one for one in things if not one.lists]), None):
        reason = f"{pair[0].name!r} and {pair[1].name!r} have the same values"
        return Survey(f"pairs of items of the same kind{rated}", reason, holds, every)
    asked = [one for one in things if one.role == "query" and not one.lists]
    groups = [one for one in things if one.kinds < len(one.filled) and not one.lists]
    within = [
        (one, own) for one in groups for own in things
        if own is not one and own.varies_within(one) and own.role != "query"
        and (own.role == "document" or (own.kinds > one.kinds and not (asked and (own.is_number or own.has_blanks))))
    ]  # fmt: skip
    named = f"{few(one.name for one in (asked or groups or things)[:3])}"
    if asked and not any(one in asked for one, _ in within):
        reason = f"no column has ids or texts of documents that belong to {named}"
        differs = [one.name for one in columns if groups and one not in things and one.varies_within(groups[0])]
        reason += f"; its rows differ in {few(differs[:4])}" if differs else ""
        return Survey(f"queries without documents{rated}", reason, holds, every[1:])
    if not within and not groups and len(columns[0].cells) < 2 and not any(one.role for one in things):
        looks = f"other {'JSON' if content.kind == 'json' else 'columns'} ({few(one.name for one in columns)})"
        return Survey(looks, "the roles of columns cannot be recognised from a single row", holds, every)
    if not within and not groups:
        reason = f"each value of {named} occurs once, so that no column groups the rows by query"
        return Survey(f"documents without queries (a corpus){rated}", reason, holds, ["query", *every[2:]])
    if not within:
        reason = f"{named} has repeated values, but no column has ids or texts of documents that belong to them"
        return Survey(f"groups of rows without documents{rated}", reason, holds, every)
    once = [one.name for one in things if one.kinds == len(one.filled) and one.role != "document"]
    if once and len(groups) > 1 and not any(one.role for one in groups):
        reason = (
            f"each value of {few(once[:3])} occurs once, and {few(one.name for one in groups[:3])} may be categories"
        )
        return Survey(f"documents without queries (a corpus){rated}", reason, holds, ["query", *every[2:]])
    group, item = max(within, key=lambda own: (own[0].role == "query") + (own[1].role == "document"))
    reason = f"{group.name!r} may group the rows, and {item.name!r} differs within a group, but "
    words = {one.name: one.cells for one in columns if one.in_words and one not in (group, item)}
    if not labels and (alike := grades_in_words(words, group.cells, item.cells)):
        reason += f"no column has grades in numbers or usual words. {few(alike)} may hold grades in words"
        return Survey("rows with grades in words", reason, holds, ["query", "document", "grade"])
    if not labels:
        return Survey("groups without grades", f"{reason}no column has grades", holds, ["grade"])
    return Survey(f"rows{rated}", f"{reason}the roles of the columns cannot be recognised from the cells", holds, every)


def _columns(table: Content) -> list[_Column]:
    rows = [row for _, row in table.rows if len(row) == len(table.header)][:_SAMPLE]
    return [_Column(name, list(cells)) for name, cells in zip(table.header, zip(*rows))] if rows else []


def _are_one(a: _Column, b: _Column) -> bool:
    """Return whether the values of one column determine those of the other, as ids determine titles."""
    return a is b or len({*zip(a.cells, b.cells)}) == max(a.kinds, b.kinds)


def _readings(found: list[_Found]) -> list[_Found]:
    """Return the most evident assignment, and the next one if it is almost as evident but reads other judgements."""
    best = _finest(found)
    best = _with_judges(best, found) if best.grades else best
    for own in found:
        if own.evidence < best.evidence - _NEAR:
            break
        if not (_are_one(own.query, best.query) and _are_one(own.document, best.document)):
            if own.document is best.document and len({*zip(own.query.cells, best.query.cells)}) == best.query.kinds:
                continue  # a category of queries
            return [best, _with_judges(own, found) if own.grades else own]
        if own[1:3] == best[1:3] and own.grades and not any(_are_one(own.grades[0], one) for one in best.grades):
            same_scale = {*own.grades[0].filled} <= {cell for one in best.grades for cell in one.filled}
            return [best, own._replace(grades=[*best.grades, *own.grades] if same_scale else own.grades)]
    return [best]


class Proposal(NamedTuple):
    """The columns of judgements by role, in words, and the commands that read them."""

    roles: dict[str, str]
    words: str
    remedies: list[Remedy | str]


def proposal(content: Content, given: Mapping[str, str] | None = None) -> Proposal | None:
    """Return the columns that look like judgements, and a command that was tried; None if there are none.

    `given` are columns by role that the user named.
    """
    table = as_table(content, [*(given or {}).values()])
    found = _found(_columns(table), given or {})
    if not found or found[0].evidence < _LEAST + max(0, len(table.header) - 4) / 4:
        return None
    proposals = [own for one in _readings(found) if (own := _proposal(one, content))]
    if not proposals:
        return None
    words = ", or ".join(one.words for one in proposals)
    return proposals[0]._replace(words=words, remedies=[remedy for one in proposals for remedy in one.remedies])


def _proposal(best: _Found, content: Content) -> Proposal | None:
    names = {"query": best.query.name, "document": best.document.name}
    words = f"{names['query']!r} as the query, {names['document']!r} as the document"
    if best.grades:
        names["grade"] = ",".join(one.name for one in best.grades)
        words += f", {' and '.join(repr(one.name) for one in best.grades)} as the grade" + "s" * (len(best.grades) > 1)
    else:
        words += ", and no grades (the command gives each row the grade 1)"
    if best.judge is not None:
        words += f", {best.judge.name!r} as the judge"
    options = _options(content, names)
    return None if options is None else Proposal(names, words, [Conversion(content.name, **options)])


def _options(content: Content, names: dict[str, str]) -> dict[str, str] | None:
    """Return the options for reading a file by these columns, or None if these columns cannot be read."""
    ungraded = "grade" not in names
    options = names | ({"grades": f"{ALL}=1"} if ungraded else {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            try:
                scale = read_scale(options["grades"]) if "grades" in options else None
                table = named(content, names, ungraded=ungraded)
                ratings = graded(table_rows(table), table, "", scale)
                break
            except TruerankError as error:
                words = next((own for one in error.remedies if (own := one.arguments.get("grades"))), None)
                if words is None or "grades" in options:
                    return None
                options["grades"] = words
                if "?" in words:
                    return options
        else:
            return None
        if not ratings.grades:
            return None
        try:
            ratings.aggregated()
        except TruerankError:
            options["aggregate"] = "median"
    return options
