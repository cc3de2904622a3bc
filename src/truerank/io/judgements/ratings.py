"""Collect the grades of people (numbers, words, scales, several judges for a document), and make qrels from them."""

from __future__ import annotations

import math
import re
import statistics
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, NoReturn

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import DataFileError, InvalidInputError, Message, Remedy, warn
from truerank.core.printing import counted
from truerank.data.grouping import is_missing
from truerank.data.ranking_data import RankingData
from truerank.io.judgements.content import Content
from truerank.io.judgements.places import AGGREGATES
from truerank.io.judgements.roles import LEVELS, is_usual, plain
from truerank.io.trec import Qrels, as_qrels

ESCI = {"e": 3.0, "s": 2.0, "c": 1.0, "i": 0.0, "exact": 3.0, "substitute": 2.0, "complement": 1.0, "irrelevant": 0.0}
_TRUTH = {"true": 1.0, "false": 0.0}
_UNRATED = {"", "nan", "null", "na", "n/a", "?", "-", "unrated", "unrateable", "not rated", "unjudged", "not judged",
            "skip", "skipped", "can't judge", "cannot judge", "don't know"}  # fmt: skip
_WORST_GAIN = 15  # a higher grade is a gain, and no level
_ALONE = re.compile(r"\[[\"']?([^\"',\[\]]*)[\"']?\]")
"""A list of one grade, as `["2"]`."""
_PAIR = re.compile(r"\s*(.+?)\s*=\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?|-)(?:[\s,;]+|$)")


def _majority(grades: Sequence[float]) -> float:
    counts = Counter(grades)
    return min(grade for grade, count in counts.items() if count == max(counts.values()))


_COMBINED: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "majority": _majority,
    "first": lambda grades: grades[0],
}
"""Rules that combine several grades; of equally frequent grades, `majority` selects the lowest."""


class Row(NamedTuple):
    """A row of a file with a grade as written, or None without a grade."""

    query: str
    document: str
    grade: object
    judge: str | None = None
    text: str | None = None
    line: int | None = None
    unrateable: bool = False
    span: tuple[object, object] | None = None  # start and end, if the row is about characters of the document


@dataclass
class Ratings:
    """Grades of documents for queries, with a row for each grade that a judge gave to a document.

    `texts` has the texts of queries that are not ids, `judges` is None if no judge is named, and `left_out` counts rows
    without a grade, by reason. `name` is the file, and `format` is the format in which it was read.
    """

    queries: list[str]
    documents: list[str]
    grades: list[float]
    judges: list[str] | None = None
    texts: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    name: str = ""
    format: str = ""

    @classmethod
    def of(cls, judged: object) -> Ratings:
        """Return the ratings of qrels, or of any object that `as_qrels` accepts."""
        if isinstance(judged, Ratings):
            return judged
        qrels = as_qrels(judged)
        queries = [query for query, rows in qrels.rows().items() for _ in range(rows.stop - rows.start)]
        return cls(queries, qrels.doc_ids.tolist(), qrels.grades.tolist(), texts=dict(qrels.texts))

    def __str__(self) -> str:
        judges = "" if self.judges is None else f" by {counted(len(set(self.judges)), 'judge')}"
        return f"{counted(len(self.grades), 'grade')} for {counted(len(set(self.queries)), 'query')}{judges}"

    def __repr__(self) -> str:
        return f"Ratings({self})"

    def pairs(self) -> dict[tuple[str, str], list[int]]:
        """Return the rows of each query and document, in the order of the file."""
        found: dict[tuple[str, str], list[int]] = {}
        for row, pair in enumerate(zip(self.queries, self.documents)):
            found.setdefault(pair, []).append(row)
        return found

    def by_query(self) -> dict[str, list[int]]:
        """Return the rows of each query."""
        found: dict[str, list[int]] = {}
        for row, query in enumerate(self.queries):
            found.setdefault(query, []).append(row)
        return found

    def text(self, query: str) -> str:
        """Return the text of a query, which is its id if no text is known."""
        return self.texts.get(query, query)

    def agreement(self) -> str:
        """Describe how often several grades of a document agree, with Krippendorff's alpha (interval scale).

        alpha = 1 - D_o / D_e, with squared differences within documents (D_o) and among all grades of these documents
        (D_e); Krippendorff, Content Analysis (2004), chapter 11.
        """
        units = [[self.grades[row] for row in rows] for rows in self.pairs().values() if len(rows) > 1]
        every = [grade for grades in units for grade in grades]
        same = sum(len(set(grades)) == 1 for grades in units)
        text = f"the grades of a document agree for {same} of {counted(len(units), 'document')} with several grades"
        expected = _squares(every) / (len(every) - 1) if every else 0.0
        if not expected:
            return text
        observed = sum(_squares(grades) / (len(grades) - 1) for grades in units)
        return f"{text} (Krippendorff's alpha {1 - observed / expected:.3f})"

    def similar_queries(self) -> list[list[str]]:
        """Return the queries whose texts are equal after Unicode normalisation (NFKC), ignoring case and extra blanks.

        >>> Ratings(["Red shoes", "red  shoes ", "tv"], ["d1", "d2", "d1"], [1.0, 0.0, 1.0]).similar_queries()
        [['Red shoes', 'red  shoes ']]
        """
        found: dict[str, list[str]] = {}
        for query in dict.fromkeys(self.queries):
            text = unicodedata.normalize("NFKC", self.text(query)).casefold()
            found.setdefault(" ".join(text.split()), []).append(query)
        return [own for own in found.values() if len(own) > 1]

    def folded(self) -> Ratings:
        """Return ratings in which similar queries are replaced by the first of them."""
        first = {query: own[0] for own in self.similar_queries() for query in own}
        queries = [first.get(query, query) for query in self.queries]
        texts = {query: text for query, text in self.texts.items() if first.get(query, query) == query}
        return replace(self, queries=queries, texts=texts)

    def aggregated(self, aggregate: str | None = None) -> Ratings:
        """Return ratings with one grade for each document; raise if grades differ and `aggregate` is None."""
        pairs = self.pairs()
        if len(pairs) == len(self.grades):
            return self if self.judges is None else Ratings(**vars(self) | {"judges": None})
        if aggregate is not None:
            check_choice(aggregate, "aggregate", AGGREGATES)
        grades = []
        for (query, document), rows in pairs.items():
            given = [self.grades[row] for row in rows]
            if aggregate is None and len(set(given)) > 1:
                shown = ", ".join(f"{grade:g}" for grade in given[:4])
                others = [name for name in AGGREGATES if name != "median"]
                who = "" if self.judges is None else f" by {', '.join(repr(self.judges[row]) for row in rows[:4])}"
                raise InvalidInputError(
                    f"document {document!r:.80} of query {query!r:.80} has the grades {shown}{who}. In all, "
                    f"{self.agreement()}",
                    argument="aggregate",
                    expected=f"one of {', '.join(AGGREGATES)}",
                    remedies=[Remedy(f"or another of {', '.join(others)} to combine them", aggregate="median")],
                )
            grades.append(given[0] if aggregate is None else float(_COMBINED[aggregate](given)))
        if aggregate is None:
            warn(f"{self.name}: judgements that repeat an earlier one were dropped: {len(self.grades) - len(pairs)}")
        queries, documents = map(list, zip(*pairs))
        return Ratings(queries, documents, grades, None, self.texts, self.left_out, self.name, self.format)

    def rows(self) -> RankingData:
        """Return rows without features, one for each grade."""
        return RankingData(np.empty((len(self.grades), 0)), self.grades, self.queries, doc_ids=self.documents)

    def qrels(self, aggregate: str | None = None) -> Qrels:
        """Return qrels; `aggregate` (mean, median, majority or first) combines several grades of a document."""
        one = self.aggregated(aggregate)
        judged: dict[str, dict[str, float]] = {}
        for query, document, grade in zip(one.queries, one.documents, one.grades):
            judged.setdefault(query, {})[document] = grade
        qrels = as_qrels(judged)
        qrels.texts = dict(self.texts)
        return qrels


def _squares(grades: Sequence[float]) -> float:
    """Return the sum of squared differences of all ordered pairs."""
    return 2 * (len(grades) * math.fsum(grade * grade for grade in grades) - math.fsum(grades) ** 2)


def graded(rows: Iterable[Row], content: Content, format: str, grades: Mapping[str, float | None] | None) -> Ratings:
    """Return the ratings of a file's rows; `grades` maps words to numbers, and to None for words without a grade.

    Raises DataFileError for words without `grades`, with a proposal, and for words that are not in `grades`.
    """
    rows = list(rows)
    given = {str(row.grade).strip().casefold() for row in rows if isinstance(row.grade, str)} - _UNRATED
    esci = grades is None and len(given) > 0 and given <= ESCI.keys()
    read = _Scale(ESCI if esci else grades, content.decimal)
    found, judges = Ratings([], [], [], None, name=content.name, format=format), list[str | None]()
    left_out, words = Counter[str](), dict[str, list[Row]]()
    for row in rows:
        if row.text is not None and row.text != row.query:
            known = found.texts.setdefault(row.query, row.text)
            if known != row.text:
                what = f"query {row.query!r:.80} has two texts: {known!r:.80} and {row.text!r:.80}. Keep one of them"
                raise DataFileError(what, content.name, row.line)
        grade = None if row.unrateable else read(row.grade)
        if isinstance(grade, str):
            words.setdefault(grade, []).append(row)
        elif grade is None:
            left_out["unrateable" if row.unrateable else "without a grade"] += 1
        else:
            found.queries.append(row.query)
            found.documents.append(row.document)
            found.grades.append(grade)
            judges.append(row.judge)
    if words:
        _refuse(words, found, grades, content)
    found.left_out = dict(left_out)
    if any(judges):
        found.judges = [judge or "" for judge in judges]
    _tell(found, esci, grades)
    return found


def of_cells(cells: Sequence[object], name: str, scale: Mapping[str, float | None] | str | None) -> np.ndarray:
    """Return the grades of the cells of a column (n,), nan for a cell without a grade."""
    found = np.full(len(cells), np.nan)
    scale = read_scale(scale) if isinstance(scale, str) else scale
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a grade that is lacking is an error here
        rows = (Row("rows", str(row), cell) for row, cell in enumerate(cells, 1))
        ratings = graded(rows, Content(name, "table"), "", scale)
    found[np.array(ratings.documents, dtype=np.int64) - 1] = ratings.grades
    return found


class _Scale:
    """Convert a cell to the number of its grade, None without a grade, or the text if it is not a number."""

    def __init__(self, grades: Mapping[str, float | None] | None, decimal: str) -> None:
        self.known = {str(word).strip().casefold(): number for word, number in (grades or {}).items()}
        self.numbers = {float(word): number for word, number in self.known.items() if _is_number(word)}
        self.decimal = decimal

    def __call__(self, given: object) -> float | str | None:
        if given is None or given != given:
            return None
        if isinstance(given, bool | int | float):
            number = float(given) if abs(given) < 1e300 else math.inf
        else:
            word = str(given).strip()
            word = _ALONE.sub(r"\1", word)
            folded = word.casefold()
            if folded in self.known:
                return self.known[folded]
            if folded in _UNRATED:
                return None
            written = word.replace(",", ".") if self.decimal == "," else word
            if folded in _TRUTH:
                number = _TRUTH[folded]
            elif _is_number(written):
                number = float(written)
            else:
                return word
        if self.numbers:
            return self.numbers.get(number, f"{number:g}")
        return number if math.isfinite(number) else f"{number}"


def read_grade(cell: object, decimal: str = ".") -> float | None:
    """Return the number of a cell, or None for a cell without a grade."""
    grade = _Scale(None, decimal)(cell)
    return grade if isinstance(grade, float) else None


def is_unrated(cell: object) -> bool:
    """Return whether a cell is empty, or a word for no judgement.

    >>> is_unrated(None), is_unrated("Unrateable"), is_unrated("0")
    (True, True, False)
    """
    return is_missing(cell) or (isinstance(cell, str) and cell.strip().casefold() in _UNRATED)


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text))


def proposed(words: Iterable[str]) -> str:
    """Return a mapping of words to numbers in the format of `read_scale`, with ? for words of unknown order.

    >>> proposed(["Good", "Perfect", "Bad"]), proposed(["2 - relevant", "0 - bad"]), proposed(["yes", "no", "purple"])
    ('Perfect=2 Good=1 Bad=0', '2 - relevant=2 0 - bad=0', 'yes=1 no=0 purple=?')
    """
    place: dict[str, int] = {}
    for word in dict.fromkeys(words):
        digits = re.findall(r"\d+", word)
        known = next((level for level, usual in enumerate(LEVELS) if plain(word) in usual), None)
        if len(digits) == 1 or known is not None:
            place[word] = int(digits[0]) if digits else known  # type: ignore[assignment]
    if not any(re.search(r"\d", word) for word in place) and 0 in place.values():
        levels = sorted(set(place.values()))
        place = {word: levels.index(level) for word, level in place.items()}
    ordered = sorted(place.items(), key=lambda one: -one[1])
    unknown = [word for word in dict.fromkeys(words) if word not in place]
    return " ".join([*(f"{word}={level}" for word, level in ordered), *(f"{word}=?" for word in unknown)])


def _refuse(
    words: dict[str, list[Row]], found: Ratings, grades: Mapping[str, float | None] | None, content: Content
) -> NoReturn:
    """Raise an error for grades in words, with a proposal, or for a damaged number, with its line."""
    usual = any(map(is_usual, words))
    word, rows = next(iter(words.items()))
    line = rows[0].line or content.line_of(rows[0].text or rows[0].query, rows[0].document)
    if grades is not None or (found.grades and not usual) or word in ("inf", "-inf"):
        pair = f"document {rows[0].document!r:.80} for query {rows[0].query!r:.80}"
        what = f"the grade of {pair} is {word!r:.80}; expected a number"
        known = "" if grades is None else f", or one of the given words: {', '.join(grades)}"
        raise DataFileError(what + known, found.name, line)
    counts = sorted(words, key=lambda word: -len(words[word]))
    shown = ", ".join(f"{word!r:.40} ({len(words[word])})" for word in counts[:8])
    proposal = proposed(counts[:20])
    unknown = " (replace each ? by a number)" if "?" in proposal else ""
    if all(re.fullmatch(r"\d+,\d+", word) for word in words):
        raise DataFileError(
            f"grades have a decimal comma: {shown}. Write a decimal point, as in 1.5", found.name, line, code="comma"
        )
    also = f", and {counted(len(found.grades), 'grade')} in numbers" if found.grades else ""
    raise DataFileError(
        f"grades are words: {shown}{also}",
        found.name,
        line,
        remedies=[Remedy(f"to give their numbers{unknown}", grades=proposal)],
        code="words",
    )


def read_scale(text: str) -> dict[str, float | None]:
    """Parse the grade of each word, as in "Perfect=3 Very good=2 Skip=-"; - marks a word without a grade.

    >>> read_scale("Perfect=3 Very good=2, Skip=-")
    {'Perfect': 3.0, 'Very good': 2.0, 'Skip': None}
    """
    end, found = 0, dict[str, float | None]()
    for match in _PAIR.finditer(text):
        if match.start() != end:
            break
        end = match.end()
        try:
            found[match[1]] = None if match[2] == "-" else float(match[2])
        except ValueError:
            end = -1
    if end != len(text) or not found:
        raise InvalidInputError(f"grades must be words and numbers, such as 'Perfect=3 Good=2 Bad=0', got {text!r}")
    return found


def _tell(found: Ratings, esci: bool, grades: object) -> None:
    """Warn about rows that were left out, and about assumptions."""
    if found.left_out:
        counts = " and ".join(f"{count} {reason}" for reason, count in found.left_out.items())
        warn(f"{found.name}: left out {counts}, and kept {counted(len(found.grades), 'grade')}")
    if esci:
        other = Remedy("to confirm or change these numbers", grades="E=3 S=2 C=1 I=0")
        warn(Message(f"{found.name}: E, S, C, I are read as 3, 2, 1, 0", other))
    levels = sorted(set(found.grades))
    shown = ", ".join(f"{level:g}" for level in levels)
    if grades is None and 1 < len(levels) <= 10 and levels[-1] > _WORST_GAIN and levels[0] >= 0:
        mapping = " ".join(f"{level:g}={place}" for place, level in enumerate(levels))
        text = f"{found.name}: the grades {shown} are gains rather than levels; with exponential gains (2^g - 1) the "
        warn(Message(f"{text}highest decides", Remedy(grades=mapping), 'measure nDCG(gain="linear")'))
