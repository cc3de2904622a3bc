"""NIST's trec_eval 10.0, option by option, with the same input files and the same output bytes.

`TrecEvaluation.lines` yields the output. Errors are `TrecEvalError` with trec_eval's exit code; the lines that
trec_eval prints before an error are yielded first. Differences:

1. A qrels file that ends in a comment is read, whereas trec_eval reads beyond the end of its memory.
2. Errors: negative levels of relevance, grades above a million, parameters that are not finite, NUL bytes.
3. Control characters in messages are escaped.
4. `-D` prints no traces.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress, groupby
from operator import add, eq, ge, gt
from typing import Any, NamedTuple

from truerank.compat.trec_eval_measures import LONG, RANKED, SMALLEST, UNJUDGED, Ranked, TrecFigure, merge_sorted
from truerank.compat.trec_eval_preferences import PREFERENCES, Judged, Preference

MISSING_Z = -1000000.0
_HIGHEST = 1_000_000  # of grades: documents are counted by grade, for each topic
_NEEDED = {"qrels": "qrels", "qrels_jg": "qrels_jg", "prefs": "prefs", "qrels_prefs": "prefs"}  # format: judgements
FORMATS = tuple(_NEEDED)
_LAST = ("yaap", "rbp", "rbp_resid", "unj")
MEASURES: dict[str, TrecFigure] = {
    "runid": TrecFigure("value", lambda _: "", (), "none", "the name of the run", ""),
    "num_q": TrecFigure("count", lambda _: 1, (), "topics", "the number of topics", ""),
    **{name: measure for name, measure in RANKED.items() if name not in _LAST},
    **{
        name: TrecFigure("count" if k < 3 else "value", compute, mean="sum" if k < 3 else "mean", needs="prefs")
        for k, (name, compute) in enumerate(PREFERENCES.items())
    },
    **{f"{name}_avgjg": RANKED[name]._replace(needs="qrels_jg") for name in ("map", "P", "Rprec_mult")},
    **{name: RANKED[name] for name in _LAST},
}
_OFFICIAL = "num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank iprec_at_recall P"
_SET = "num_ret num_rel num_rel_ret utility set_P set_recall set_relative_P set_map set_F"
NICKNAMES: dict[str, list[str]] = {
    nickname: ["runid", "num_q", *names]
    for nickname, names in {
        "official": _OFFICIAL.split(),
        "set": _SET.split(),
        "all_trec": [name for name in RANKED if name not in ("dcg", "ideal_dcg", "yaap")],
        "all_prefs": list(PREFERENCES),
        "prefs": list(PREFERENCES)[:6],
        "qrels_jg": [name for name, measure in MEASURES.items() if measure.needs == "qrels_jg"],
    }.items()
}


class TrecEvalError(Exception):
    """An error for an input or option that trec_eval also rejects; `code` is its exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Options:
    """The options of a call."""

    measures: list[str] = field(default_factory=list)  # -m
    by_query: bool = False  # -q
    summary: bool = True  # not -n
    complete: bool = False  # -c
    judged_only: bool = False  # -J
    level: int = 1  # -l
    most: int | None = None  # -M
    n_collection: int = 0  # -N
    format: str = "qrels"  # -R
    zscores: dict[bytes, dict[bytes, tuple[float, float]]] | None = None  # -Z: {topic: {measure: (mean, deviation)}}
    only: bytes | None = None  # -D: the only topic to evaluate


# Reading. C's atol and atof read the longest number at the start of a text, and return 0 where there is none.

_WHOLE = re.compile(rb"\s*([+-]?)(\d+)")
_DECIMAL = re.compile(
    rb"[+-]?(?:0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?\d+)?"
    rb"|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)",
    re.IGNORECASE,
)


def atol(text: bytes) -> int:
    """Return the whole number at the start of a text, within 64 bits."""
    found = _WHOLE.match(text)
    if not found:
        return 0
    sign, digits = found.group(1), found.group(2).lstrip(b"0")[:20]  # more digits are beyond 64 bits
    return max(min(int(sign + (digits or b"0")), 2**63 - 1), -(2**63))


def atof(text: bytes) -> float:
    """Return the number at the start of a text."""
    found = _DECIMAL.match(text.lstrip())
    if found is None:
        return 0.0
    number = found.group()
    if b"x" not in number.lower():
        return float(number)
    try:
        return float.fromhex(number.decode())
    except OverflowError:
        return -math.inf if number[:1] == b"-" else math.inf


def _lines(text: bytes, what: str, code: int = 2) -> list[bytes]:
    if not text:
        raise TrecEvalError(f"{what}: the file is empty", code)
    if b"\0" in text:
        raise TrecEvalError(f"{what}: the file contains a NUL byte", code)
    return text.removesuffix(b"\n").split(b"\n")


def _rows(lines: Sequence[bytes], n_columns: int, what: str, code: int = 2) -> list[list[bytes]]:
    """Return the columns of each line; all lines have `n_columns`."""
    rows = list(map(bytes.split, lines))
    wrong = next((k for k, row in enumerate(rows, 1) if len(row) != n_columns), None)
    if wrong is not None or not rows:
        raise TrecEvalError(f"{what}: Malformed line {wrong}" if rows else f"{what}: no lines", code)
    return rows


def _judgement_rows(text: bytes, n_columns: int, what: str) -> list[list[bytes]]:
    """Return the columns of qrels or preferences. As in trec_eval, the line after a comment is never a comment."""
    lines = _lines(text, what)
    if b"#" in text:
        given, lines = iter(lines), []
        for line in given:
            lines += [next(given, b"")] if line[:1] == b"#" else [line]
        if not lines[-1] and text.removesuffix(b"\n").rpartition(b"\n")[2][:1] == b"#":
            lines.pop()
    return _rows(lines, n_columns, what)


Grades = dict[bytes, int]  # of the documents of a topic


class Judgements(NamedTuple):
    """The judgements of all topics."""

    format: str
    grades: dict[bytes, list[tuple[bytes, Grades]]]  # group and grades; qrels have one group
    preferences: dict[bytes, list[Preference]]
    doubled: dict[bytes, bytes]  # topics with a document that is listed twice


def read_judgements(text: bytes, form: str = "qrels") -> Judgements:
    """Read judgements in one of trec_eval's formats; O(lines log lines)."""
    found = Judgements(form, {}, {}, {})
    rows = _judgement_rows(text, 5 if form == "prefs" else 4, f"trec_eval.get_{form}")
    if _NEEDED[form] == "prefs":
        for topic, group, *subgroup, document, level in rows:
            row = Preference(group, subgroup[0] if subgroup else b"0", document, atof(level))
            found.preferences.setdefault(topic, []).append(row)
        return found
    by_topic: dict[bytes, dict[bytes, Grades]] = {}
    for topic, group, document, grade in rows:
        of_group = by_topic.setdefault(topic, {}).setdefault(group if form == "qrels_jg" else b"", {})
        if document in of_group:
            if form == "qrels_jg":
                raise TrecEvalError(f"trec_eval.get_qrels: duplicate docs {_text(document)}", 2)
            found.doubled[topic] = document
        of_group[document] = value = int(grade) if len(grade) < 9 and grade.isdigit() else atol(grade)
        if value > _HIGHEST:
            raise TrecEvalError(f"trec_eval.get_{form}: grade {value} of a document is above {_HIGHEST}", 2)
    found.grades.update((topic, sorted(groups.items())) for topic, groups in by_topic.items())
    return found


Scored = tuple[list[bytes], list[float]]  # documents and their scores, in the file's order


class Results(NamedTuple):
    """A run with the documents of each topic, their scores, and the name on the last line."""

    topics: dict[bytes, Scored]
    name: bytes


Parser = Callable[[bytes], "tuple[list[tuple[int, bytes]], list[bytes], list[float]] | None"]


def read_results(text: bytes, parser: Parser | None = None) -> Results:
    """Read a run as trec_eval does: at least six columns, without comments and blank lines.

    `parser` may return (first row, name) where the topic changes, the documents and the scores of a text; None means
    that this module parses the text.
    """
    what = "trec_eval.get_results"
    if parser and b"\0" not in text and (parsed := parser(text)) is not None:
        starts, documents, numbers = parsed
        name = text.rstrip().rpartition(b"\n")[2].split()[5]
    else:
        topics, documents, scores, name = _columns(text, what)
        try:
            if b"_" in text and b"_" in b" ".join(scores):
                raise ValueError
            numbers = list(map(float, scores))
        except ValueError:  # text that C reads in part
            numbers = list(map(atof, scores))
        starts, start = [], 0
        for topic, block in groupby(topics):
            starts.append((start, topic))
            start += len(list(block))
    by_topic: dict[bytes, Scored] = {}
    for (start, topic), (stop, _) in zip(starts, [*starts[1:], (len(documents), b"")]):
        known = by_topic.setdefault(topic, ([], []))
        known[0].extend(documents[start:stop])
        known[1].extend(numbers[start:stop])
    return Results(by_topic, name)


def _columns(text: bytes, what: str) -> tuple[list[bytes], list[bytes], list[bytes], bytes]:
    """Return the topics, documents and scores of a run, and its name."""
    rows = [row for line in _lines(text, what) if (row := line.split(None, 6)) and row[0][:1] != b"#"]
    wrong = next((k for k, row in enumerate(rows, 1) if len(row) < 6), None)
    if wrong is not None or not rows:
        raise TrecEvalError(f"{what}: Malformed line {wrong}" if rows else f"{what}: no lines", 2)
    return [row[0] for row in rows], [row[2] for row in rows], [row[4] for row in rows], rows[-1][5]


def read_zscores(text: bytes) -> dict[bytes, dict[bytes, tuple[float, float]]]:
    """Read `topic measure mean deviation` lines for -Z."""
    what = "trec_eval.get_zscores"
    table: dict[bytes, dict[bytes, tuple[float, float]]] = {}
    for topic, measure, mean, deviation in _rows(_lines(text, what, 255), 4, what, 255):
        table.setdefault(topic, {})[measure] = (atof(mean), atof(deviation))
    return table


# Measures with their parameters.


class Wanted(NamedTuple):
    """A measure to compute, with its parameters and the names of its values."""

    root: str
    measure: TrecFigure
    parameters: Sequence[float] | Sequence[tuple[str, float]]
    names: Sequence[str]


def named_measures(argument: str) -> tuple[list[str], str]:
    """Return the measures of an argument of -m, and the parameters after its first dot (`P.5,10`)."""
    name, dot, parameters = argument.partition(".")
    if dot and not parameters:
        raise TrecEvalError(f"trec_eval: improper measure in parameter '{name}'", 1)
    if name not in NICKNAMES and name not in MEASURES:
        from truerank.core.names import nearest

        raise TrecEvalError(f"trec_eval: illegal measure '{argument}'{nearest(name, [*MEASURES, *NICKNAMES])}", 1)
    return NICKNAMES.get(name, [name]), parameters


def wanted_measures(given: Sequence[str]) -> list[Wanted]:
    """Resolve the arguments of -m in trec_eval's order. If a measure is given twice, its first parameters count."""
    marked: set[str] = set()
    parameters: dict[str, str] = {}
    for argument in given or ["official"]:
        names, text = named_measures(argument)
        marked.update(names)
        if text:
            parameters.setdefault(argument.partition(".")[0], text)
    return [_wanted(name, measure, parameters.get(name)) for name, measure in MEASURES.items() if name in marked]


def _wanted(root: str, measure: TrecFigure, text: str | None) -> Wanted:
    kind = measure.kind
    given: Sequence[float] | Sequence[tuple[str, float]] = measure.default
    names: Sequence[str] = [root]
    if text is not None and kind in ("pairs", "numbers"):
        names = [f"{root}_{text}"]
        parts = [part.rpartition("=") for part in text.split(",")]
        if kind == "pairs":
            if any(not equals or "=" in name for name, equals, _ in parts):
                raise TrecEvalError(f"trec_eval: malformed pair parameters in '{text}'", 2)
            given = [(name, atof(value.encode())) for name, _, value in parts]
        else:
            given = [atof(part.encode()) for part in text.split(",")]
            if root == "utility" and len(given) != 4:
                raise TrecEvalError("trec_eval.calc_utility: improper number of coefficients", 4)
    elif text is not None and kind in ("cutoffs", "shares"):
        read = atol if kind == "cutoffs" else atof
        given = sorted(read(part.encode()) for part in text.split(","))
        if kind == "cutoffs" and given[0] <= 0:
            raise TrecEvalError("trec_eval: Negative cutoff detected", 2)
        if len(set(given)) != len(given):
            raise TrecEvalError("trec_eval: duplicate cutoffs detected", 2)
    if not all(math.isfinite(value[1] if isinstance(value, tuple) else value) for value in given):
        raise TrecEvalError(f"trec_eval: a parameter of '{root}' is not a finite number", 2)
    if kind in ("cutoffs", "shares"):
        names = [f"{root}_{value:{'d' if kind == 'cutoffs' else '.2f'}}" for value in given]
    return Wanted(root, measure, given, names)


# Ranking and computing.


def in_order(documents: list[bytes], scores: list[float], descending_names: bool) -> list[bytes]:
    """Return the documents by descending score, with ties by name."""
    if all(map(gt, scores, scores[1:])):
        return documents
    if (total := sum(scores)) != total:  # with a nan, no comparison holds
        rows = sorted(zip(documents, scores), key=lambda row: row[0])

        def before(a: tuple[bytes, float], b: tuple[bytes, float]) -> bool:
            if a[1] > b[1] or a[1] < b[1]:
                return a[1] > b[1]
            return a[0] >= b[0] if descending_names else a[0] <= b[0]

        return [document for document, _ in merge_sorted(rows, before)]
    if not all(map(ge, scores, scores[1:])):
        order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        documents, scores = [documents[i] for i in order], [scores[i] for i in order]
    ranked, end = documents.copy(), 0
    tied = [*map(eq, scores, scores[1:]), False]
    for start in compress(range(len(tied)), tied):
        if start >= end:
            end = tied.index(False, start) + 1
            ranked[start:end] = sorted(ranked[start:end], reverse=descending_names)
    return ranked


class _Group(NamedTuple):
    """The judgements of one group for a topic: grades by document, the highest grade, and counts by grade from 0."""

    known: Grades
    highest: int
    counts: list[int]
    n_relevant: int


class _Levels:
    """Counts of judged documents by grade.

    trec_eval does not clear its memory between topics. For a topic without judged documents, or with fewer grades than
    the level, it reads the values of the previous topic.
    """

    def __init__(self) -> None:
        self._room = 0
        self.counts: list[int] = []
        self.n = 0

    def set(self, counts: Sequence[int], highest: int) -> None:
        size = highest + 1
        if not self._room and not size:
            raise ValueError("no document of the topic has a grade of 0 or more")
        if size > self._room:
            self._room += size
            self.counts = [0] * self._room
        self.counts[:size] = [*counts, *[0] * (size - len(counts))]
        self.n = len(counts) or self.n


_NOT_PRINTED = "%.0s%.0s"


class TrecEvaluation:
    """An evaluation of runs with one set of judgements; `lines` yields the output of trec_eval."""

    def __init__(self, judgements: Judgements, options: Options) -> None:
        if options.level < 0:
            raise TrecEvalError(f"-l {options.level}: the lowest relevant grade must be at least 0", 1)
        if options.most is not None and options.most < 0:
            raise TrecEvalError(f"-M {options.most}: the number of documents must be at least 0", 1)
        self.judgements, self.options = judgements, options
        self.wanted = wanted_measures(options.measures)
        self._names = [(wanted, name) for wanted in self.wanted for name in wanted.names]
        self._texts = [k for k, (wanted, _) in enumerate(self._names) if wanted.measure.mean == "none"]
        self._templates = [self._template(wanted, name, summary=False) for wanted, name in self._names]
        self._topics = sorted(judgements.grades or judgements.preferences)
        self._groups: dict[bytes, list[_Group]] = {}

    def _template(self, wanted: Wanted, name: str, summary: bool) -> str:
        """Return the output line of a value, without topic and value."""
        measure, z = wanted.measure, "Z" if self.options.zscores is not None else ""
        start = f"{name:<22}".replace("%", "%%") + "\t%s\t"
        if wanted.root == "relstring":
            return _NOT_PRINTED if summary else start + "'%s'\n"
        if not summary and (measure.needs == "" or measure.mean == "geometric"):
            return _NOT_PRINTED
        if wanted.root == "runid":
            return start + "%s\n"
        return start + "%d\n" if measure.kind == "count" and not z else f"{z}{start}%6.4f\n"

    def lines(self, results: Results) -> Iterator[str]:
        """Yield the output for a run, with the line ends."""
        options, levels = self.options, _Levels()
        totals = [0.0] * len(self._names)
        n_topics = 0
        for topic in self._topics:
            if options.only is not None and topic != options.only:
                continue
            found = results.topics.get(topic)
            if found is None and not options.complete:
                raise TrecEvalError(f"trec_eval: result qid '{_text(topic)}' not found in qrels", 4)
            values = self._values(topic, found or ([b"ceci_nest_pas_un_docno"], [1.0]), levels)
            if found is None:
                values = [_of_absent(name, value) for (_, name), value in zip(self._names, values)]
            if options.zscores is not None:
                table = options.zscores.get(topic, {})
                values = [
                    _standardised(value, table.get(name.encode())) for (_, name), value in zip(self._names, values)
                ]
            numbers: list[Any] = values.copy()
            for k in self._texts:
                numbers[k] = 0.0
            totals = list(map(add, totals, numbers))
            n_topics += 1
            if options.by_query:
                yield _printed(self._templates, _text(topic), values)
        if not n_topics:
            raise TrecEvalError("trec_eval: No queries with both results and relevance info", 7)
        if options.summary:
            templates = [self._template(wanted, name, summary=True) for wanted, name in self._names]
            yield _printed(templates, "all", self._averaged(totals, n_topics, _text(results.name)))

    def _values(self, topic: bytes, found: Scored, levels: _Levels) -> list[float | str]:
        """Return the values of all measures for a topic, in the order of their names."""
        form = self.judgements.format
        values: list[float | str] = []
        judged: Judged | None = None
        ranked: list[Ranked] = []
        for root, measure, parameters, _ in self.wanted:
            try:
                if measure.needs == "":
                    values += measure.values(None, parameters)
                elif measure.needs != _NEEDED[form]:
                    raise ValueError(
                        f"the measure requires judgements in the format {measure.needs} (-R), but the format is {form}"
                    )
                elif measure.needs == "prefs":
                    judged = judged or self._judged(topic, found)
                    values += measure.values(judged, parameters)
                else:
                    ranked = ranked or self._ranked(topic, found, levels)
                    found_values = [measure.values(t, parameters) for t in ranked]
                    values += found_values[0] if len(ranked) == 1 else _means(found_values)
            except ValueError as error:
                raise TrecEvalError(f"{error}\ntrec_eval: Can't calculate measure '{root}'", 4) from error
        return values

    def _documents(self, found: Scored, descending_names: bool) -> dict[bytes, int]:
        """Return the ranked documents with their ranks from 0."""
        documents = in_order(*found, descending_names)[: self.options.most]
        places = dict(zip(documents, range(len(documents))))
        if len(places) < len(documents):
            double = next(a for a, b in zip(sorted(documents), sorted(documents)[1:]) if a == b)
            raise ValueError(f"duplicate docs {_text(double)}")
        return places

    def _judged(self, topic: bytes, found: Scored) -> Judged:
        return Judged.of(self.judgements.preferences[topic], list(self._documents(found, descending_names=False)))

    def _ranked(self, topic: bytes, found: Scored, levels: _Levels) -> list[Ranked]:
        """Return the topic's ranked grades, for each group of judgements."""
        options, doubled = self.options, self.judgements.doubled
        places = self._documents(found, descending_names=True)
        if topic in doubled:
            raise ValueError(f"duplicate docs {_text(doubled[topic])}")
        groups = self._groups.get(topic) or self._counted(topic)
        highest = max(group.highest for group in groups)
        if self.judgements.format == "qrels_jg":
            highest = max(highest, 0)
        elif highest < -1:
            raise ValueError(f"topic {_text(topic)} has only grades below -1")
        lists = []
        for known, _, counts, n_relevant in groups:
            levels.set(counts, highest)
            both = known.keys() & places.keys()
            pooled, n = sorted(zip(map(places.__getitem__, both), map(known.__getitem__, both))), len(places)
            if options.judged_only:
                kept = [grade for _, grade in pooled if grade >= 0]
                pooled, n = list(enumerate(kept)), len(kept)
            lists.append(Ranked(pooled, n, levels.counts, levels.n, n_relevant, options.level))
            lists[-1].n_collection = options.n_collection
        return lists

    def _counted(self, topic: bytes) -> list[_Group]:
        """Return the topic's groups of judgements, which are cached for the next run."""
        groups = []
        for _, known in self.judgements.grades[topic]:
            highest = max(known.values())
            counts = [0] * (highest + 1)
            for grade in known.values():
                if grade >= 0:
                    counts[grade] += 1
            marked = {document: grade if grade >= 0 else UNJUDGED for document, grade in known.items()}
            groups.append(_Group(marked, highest, counts, sum(counts[self.options.level :])))
        if sum(len(group.counts) for group in groups) <= LONG:
            self._groups[topic] = groups
        return groups

    def _averaged(self, totals: list[float], n_topics: int, run: str) -> list[float | str]:
        """Return the values over all topics; with -c, over all topics of the qrels, even if -D selected one."""
        n = len(self._topics) if self.options.complete else n_topics
        averages: dict[str, Callable[[float], float | str]] = {
            "mean": lambda total: total / n,
            "sum": lambda total: total,
            "topics": lambda _: n,
            "geometric": lambda total: math.exp((total + (n - n_topics) * math.log(SMALLEST)) / n),
            "none": lambda _: run,
        }
        values = [averages[wanted.measure.mean](total) for (wanted, _), total in zip(self._names, totals)]
        if self.options.complete:
            values = [self._n_relevant if name == "num_rel" else v for (_, name), v in zip(self._names, values)]
        return values

    @cached_property
    def _n_relevant(self) -> float:
        """Return the number of relevant documents of all topics, as -c counts them: grades above 0."""
        groups = [known for topic in self.judgements.grades.values() for _, known in topic]
        return float(sum(grade > 0 for known in groups for grade in known.values()))


def _of_absent(name: str, value: float | str) -> float | str:
    """Return the value of a topic that the run lacks (-c), for measures where this value is not 0."""
    if name == "relstring":
        return ""
    return 0.0 if name in ("num_ret", "utility", "rbp_resid") or name.startswith("unj") else value


def _standardised(value: float | str, known: tuple[float, float] | None) -> float | str:
    """Return a value in standard deviations from its mean in the file of -Z."""
    if isinstance(value, str):
        return value
    mean, deviation = known or (math.nan, 0.0)
    if deviation:
        return (value - mean) / deviation
    return 0.0 if value == mean else MISSING_Z


def _printed(templates: list[str], topic: str, values: list[float | str]) -> str:
    text = "".join([template % (topic, value) for template, value in zip(templates, values)])
    if "nan\n" in text and any(value != value for value in values):  # C prints the sign of a nan
        negative = [value != value and math.copysign(1, float(value)) < 0 for value in values]
        lines = [t.replace("%6.4f", "  -nan%.0s") if found else t for t, found in zip(templates, negative)]
        text = "".join([line % (topic, value) for line, value in zip(lines, values)])
    return text


def _means(values: list[list[float | str]]) -> list[float | str]:
    """Return the means over judgement groups."""
    totals = [0.0] * len(values[0])
    for row in values:
        totals = [total + value for total, value in zip(totals, row) if not isinstance(value, str)]
    return [total / len(values) for total in totals]


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
