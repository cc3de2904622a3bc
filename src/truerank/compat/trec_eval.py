"""NIST's trec_eval 10.0, option by option: reads what it reads, and prints the same bytes.

`evaluated` yields the lines of output. Errors are `TrecEvalError` with trec_eval's exit code; lines that it would have
printed before are yielded first. What differs: a qrels file that ends in a comment is read (trec_eval reads on behind
the end of its memory); negative levels of relevance, grades above a million, parameters that are not finite and bytes
of value 0 are refused; control characters in messages are escaped; and `-D` prints no traces.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, repeat
from operator import ge, gt
from typing import NamedTuple

from truerank.compat.trec_eval_measures import LONG, RANKED, UNJUDGED, UNPOOLED, Measure, Ranked, merge_sorted
from truerank.compat.trec_eval_preferences import PREFERENCES, Judged, Preference

MISSING_Z = -1000000.0
_HIGHEST = 1_000_000  # of grades: documents are counted by grade, for each topic
FORMATS = ("qrels", "qrels_jg", "prefs", "qrels_prefs")
_FIRST = {"runid": Measure("runid", str, mean="none"), "num_q": Measure("count", lambda _: 1, mean="topics")}
_GROUPED = {"map_avgjg": RANKED["map"], "P_avgjg": RANKED["P"], "Rprec_mult_avgjg": RANKED["Rprec_mult"]}
_PREFERRED = {
    name: Measure("count" if k < 3 else "value", compute, mean="sum" if k < 3 else "mean")
    for k, (name, compute) in enumerate(PREFERENCES.items())
}
_LAST = ("yaap", "rbp", "rbp_resid", "unj")
MEASURES: dict[str, Measure] = {
    **_FIRST,
    **{name: measure for name, measure in RANKED.items() if name not in _LAST},
    **_PREFERRED,
    **_GROUPED,
    **{name: RANKED[name] for name in _LAST},
}
_OFFICIAL = [
    "num_ret",
    "num_rel",
    "num_rel_ret",
    "map",
    "gm_map",
    "Rprec",
    "bpref",
    "recip_rank",
    "iprec_at_recall",
    "P",
]
_SET = ["num_ret", "num_rel", "num_rel_ret", "utility", "set_P", "set_recall", "set_relative_P", "set_map", "set_F"]
NICKNAMES: dict[str, list[str]] = {
    "official": [*_FIRST, *_OFFICIAL],
    "set": [*_FIRST, *_SET],
    "all_trec": [*_FIRST, *(name for name in RANKED if name not in ("dcg", "ideal_dcg", "yaap"))],
    "all_prefs": [*_FIRST, *PREFERENCES],
    "prefs": [*_FIRST, *list(PREFERENCES)[:6]],
    "qrels_jg": [*_FIRST, *_GROUPED],
}


class TrecEvalError(Exception):
    """An input or an option that trec_eval refuses too; `code` is its exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Options:
    """The options of one call; names are those of trec_eval's long options where it has them."""

    measures: list[str] = field(default_factory=list)  # as given to -m
    by_query: bool = False
    summary: bool = True
    complete: bool = False
    judged_only: bool = False
    level: int = 1
    most: int | None = None
    n_collection: int = 0
    format: str = "qrels"
    zscores: dict[bytes, dict[bytes, tuple[float, float]]] | None = None
    only: bytes | None = None


# Reading. C's atol and atof read the longest number at the start of a text, and 0 where there is none.

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


def _judgement_rows(text: bytes, n_columns: int, what: str) -> list[list[bytes]]:
    """Lines of qrels or preferences in columns; after a comment the next line is read whatever it is, as trec_eval."""
    rows: list[list[bytes]] = []
    lines = iter(_lines(text, what))
    for line in lines:
        if line[:1] == b"#":
            following = next(lines, None)
            if following is None:
                break
            line = following
        columns = line.split()
        if len(columns) != n_columns:
            raise TrecEvalError(f"{what}: Malformed line {len(rows) + 1}", 2)
        rows.append(columns)
    if not rows:
        raise TrecEvalError(f"{what}: no lines", 2)
    return rows


def _lines(text: bytes, what: str) -> list[bytes]:
    if not text:
        raise TrecEvalError(f"{what}: the file is empty", 2)
    if b"\0" in text:
        raise TrecEvalError(f"{what}: the file holds a byte of value 0", 2)
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


Grades = dict[bytes, int]  # of the documents of a topic


class Judgements(NamedTuple):
    """What is known of the topics, in trec_eval's order of topics."""

    format: str
    grades: dict[bytes, list[tuple[bytes, Grades]]]  # topic: (group, grades) of each group; one group in qrels
    preferences: dict[bytes, list[Preference]]
    doubled: dict[bytes, bytes]  # topics with a document that is listed twice

    @property
    def topics(self) -> list[bytes]:
        """Topics in the order of their names."""
        return sorted(self.grades or self.preferences)


def read_judgements(text: bytes, form: str = "qrels") -> Judgements:
    """Read judgements in one of trec_eval's formats; O(lines log lines)."""
    if form not in FORMATS:
        raise TrecEvalError(f"trec_eval: Illegal rel_format '{form}'", 2)
    found = Judgements(form, {}, {}, {})
    if form == "prefs":
        for topic, group, subgroup, document, level in _judgement_rows(text, 5, "trec_eval.get_prefs"):
            found.preferences.setdefault(topic, []).append(Preference(group, subgroup, document, atof(level)))
        return found
    rows = _judgement_rows(text, 4, f"trec_eval.get_{form}")
    if form == "qrels_prefs":
        for topic, group, document, level in rows:
            found.preferences.setdefault(topic, []).append(Preference(group, b"0", document, atof(level)))
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


class Results(NamedTuple):
    """A run: the documents of each topic with their scores, in the file's order, and the last line's name."""

    topics: dict[bytes, tuple[list[bytes], list[float]]]
    name: bytes


def read_results(text: bytes) -> Results:
    """Read a run as trec_eval does: six columns or more, comments and blank lines skipped."""
    what = "trec_eval.get_results"
    columns = _plain_columns(text)
    if columns is None:
        rows: list[list[bytes]] = []
        for line in _lines(text, what):
            row = line.split(None, 6)
            if not row or row[0][:1] == b"#":
                continue
            if len(row) < 6:
                raise TrecEvalError(f"{what}: Malformed line {len(rows) + 1}", 2)
            rows.append(row)
        if not rows:
            raise TrecEvalError(f"{what}: no lines", 2)
        columns = [[row[k] for row in rows] for k in (0, 2, 4)] + [[rows[-1][5]]]
    topics, documents, scores, names = columns
    try:
        if b"_" in text and b"_" in b" ".join(scores):
            raise ValueError
        numbers = list(map(float, scores))
    except ValueError:  # text that C reads in part
        numbers = list(map(atof, scores))
    by_topic: dict[bytes, tuple[list[bytes], list[float]]] = {}
    start = 0
    for topic, block in groupby(topics):
        stop = start + len(list(block))
        known = by_topic.setdefault(topic, ([], []))
        known[0].extend(documents[start:stop])
        known[1].extend(numbers[start:stop])
        start = stop
    return Results(by_topic, names[-1])


def _plain_columns(text: bytes) -> list[list[bytes]] | None:
    """Topics, documents, scores and names of a run without comments whose lines all have six columns, else None.

    All lines have six columns if the sixth word of every six is followed by the end of its line; words are counted
    from one line to the next, so the check is that cutting the text at every sixth word gives its lines.
    """
    if b"#" in text or b"\0" in text:
        return None
    words = text.split()
    n_lines = text.count(b"\n") + (not text.endswith(b"\n"))
    if len(words) != 6 * n_lines:
        return None
    ends = words[5::6]
    if len(set(ends)) != 1 or text.count(b" " + ends[0] + b"\n") + (not text.endswith(b"\n")) != n_lines:
        return None
    return [words[0::6], words[2::6], words[4::6], ends[-1:]]


def read_zscores(text: bytes) -> dict[bytes, dict[bytes, tuple[float, float]]]:
    """Read `topic measure mean deviation` lines for -Z."""
    what = "trec_eval.get_zscores"
    table: dict[bytes, dict[bytes, tuple[float, float]]] = {}
    for k, line in enumerate(_lines(text, what), 1):
        row = line.split()
        if len(row) != 4:
            raise TrecEvalError(f"{what}: Malformed line {k}", 2)
        table.setdefault(row[0], {})[row[1]] = (atof(row[2]), atof(row[3]))
    return table


# Measures with their parameters.


class Wanted(NamedTuple):
    """A measure to compute, with its parameters and the names of its values."""

    root: str
    measure: Measure
    parameters: Sequence[float] | Sequence[tuple[str, float]]
    names: Sequence[str]


def wanted_measures(given: Sequence[str]) -> list[Wanted]:
    """Resolve the arguments of -m, in the order of trec_eval's output.

    Parameters follow the first dot: `P.5,10`, `ndcg.1=3,2=9`. Of a measure that is given twice, the first parameters
    count.
    """
    marked: set[str] = set()
    parameters: dict[str, str] = {}
    for argument in given or ["official"]:
        name, dot, rest = argument.partition(".")
        if dot and not rest:
            raise TrecEvalError(f"trec_eval: improper measure in parameter '{name}'", 1)
        if dot:
            parameters.setdefault(name, rest)
        if name not in NICKNAMES and name not in MEASURES:
            from truerank.core.names import nearest

            known = nearest(name, [*MEASURES, *NICKNAMES])
            raise TrecEvalError(f"trec_eval: illegal measure '{argument}'{known}", 1)
        marked.update(NICKNAMES.get(name, [name]))
    return [_wanted(name, measure, parameters.get(name)) for name, measure in MEASURES.items() if name in marked]


def _wanted(root: str, measure: Measure, text: str | None) -> Wanted:
    kind = measure.kind
    if text is None or kind in ("runid", "count", "value"):
        given: Sequence[float] | Sequence[tuple[str, float]] = measure.default
        names: Sequence[str] = [root]
    elif kind == "pairs":
        parts = [part.split("=") for part in text.split(",")]
        if any(len(part) != 2 for part in parts):
            raise TrecEvalError(f"trec_eval: malformed pair parameters in '{text}'", 2)
        given, names = [(name, atof(value.encode())) for name, value in parts], [f"{root}_{text}"]
    elif kind == "numbers":
        given, names = [atof(part.encode()) for part in text.split(",")], [f"{root}_{text}"]
        if root == "utility" and len(given) != 4:
            raise TrecEvalError("trec_eval.calc_utility: improper number of coefficients", 4)
    else:
        read = atol if kind == "cutoffs" else atof
        given = sorted(read(part.encode()) for part in text.split(","))
        if kind == "cutoffs" and given[0] <= 0:
            raise TrecEvalError("trec_eval: Negative cutoff detected", 2)
        if len(set(given)) != len(given):
            raise TrecEvalError("trec_eval: duplicate cutoffs detected", 2)
    numbers = [value for value in given for value in (value if isinstance(value, tuple) else (value,))[-1:]]
    if any(value - value != 0 for value in numbers):
        raise TrecEvalError(f"trec_eval: a parameter of '{root}' is not a finite number", 2)
    if kind in ("cutoffs", "shares"):
        names = [f"{root}_{value:{'d' if kind == 'cutoffs' else '.2f'}}" for value in given]
    return Wanted(root, measure, given, names)


# Ranking and computing.


def in_order(documents: list[bytes], scores: list[float], descending_names: bool) -> list[bytes]:
    """Documents by score, the highest first; ties by name."""
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
    for i in [i for i, (a, b) in enumerate(zip(scores, scores[1:])) if a == b]:
        if i < end:
            continue
        end = i + 2
        while end < len(scores) and scores[end] == scores[i]:
            end += 1
        ranked[i:end] = sorted(ranked[i:end], reverse=descending_names)
    return ranked


class _Topic(NamedTuple):
    """A topic's group of judgements: grades by document, the highest grade, and documents by grade from 0."""

    known: Grades
    highest: int
    counts: list[int]
    n_relevant: int


class _Levels:
    """Counts of judged documents by grade. trec_eval keeps the memory of the topic before, and with it what a topic
    without judged documents, or of fewer grades than the level, reads."""

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


class Evaluation:
    """One run against one set of judgements; `lines` yields what trec_eval prints."""

    def __init__(self, judgements: Judgements, options: Options) -> None:
        if options.level < 0:
            raise TrecEvalError(f"-l {options.level}: the lowest relevant grade must be at least 0", 1)
        if options.most is not None and options.most < 0:
            raise TrecEvalError(f"-M {options.most}: the number of documents must be at least 0", 1)
        self.judgements, self.options = judgements, options
        self.wanted = wanted_measures(options.measures)
        self._topics: dict[bytes, list[_Topic]] = {}
        self._z = "Z" if options.zscores is not None else ""

    def lines(self, results: Results) -> Iterator[str]:
        """Yield the output for a run, with the line ends."""
        options, levels = self.options, _Levels()
        names = [name for wanted in self.wanted for name in wanted.names]
        totals = [0.0] * len(names)
        n_topics = 0
        for topic in self.judgements.topics:
            if options.only is not None and topic != options.only:
                continue
            found = results.topics.get(topic)
            if found is None and not options.complete:
                raise TrecEvalError(f"trec_eval: result qid '{_text(topic)}' not found in qrels", 4)
            values = self._values(topic, found or ([b"ceci_nest_pas_un_docno"], [1.0]), levels)
            if found is None:
                values = [self._of_absent(name, value) for name, value in zip(names, values)]
            if options.zscores is not None:
                values = [self._standardised(topic, name, value) for name, value in zip(names, values)]
            for k, value in enumerate(values):
                if not isinstance(value, str):
                    totals[k] += value
            n_topics += 1
            if options.by_query:
                yield self._printed(_text(topic), values, summary=False)
        if not n_topics:
            raise TrecEvalError("trec_eval: No queries with both results and relevance info", 7)
        if options.summary:
            yield self._printed("all", self._averaged(totals, n_topics, _text(results.name)), summary=True)

    def _values(self, topic: bytes, found: tuple[list[bytes], list[float]], levels: _Levels) -> list[float | str]:
        """Values of all measures for a topic, in the order of their names."""
        grouped = self.judgements.format
        values: list[float | str] = []
        ranked: list[Ranked] = []
        judged: Judged | None = None
        for wanted in self.wanted:
            root, measure = wanted.root, wanted.measure
            if root in _FIRST:
                values.append(1.0 if root == "num_q" else "")
                continue
            kind = "prefs" if root in _PREFERRED else "qrels_jg" if root in _GROUPED else "qrels"
            if kind != grouped.removeprefix("qrels_").replace("jg", "qrels_jg"):
                self._fail(root, f"the measure needs judgements in the format {kind} (-R), these are {grouped}")
            try:
                if kind == "prefs":
                    if judged is None:
                        documents = in_order(*found, descending_names=False)[: self.options.most]
                        _refuse_doubles(documents)
                        judged = Judged.of(self.judgements.preferences[topic], documents)
                    values.append(float(measure.compute(judged)))  # type: ignore[arg-type]
                    continue
                if not ranked:
                    ranked = self._ranked(topic, found, levels)
            except ValueError as error:
                self._fail(root, str(error))
            arguments = (wanted.parameters,) if measure.kind not in ("count", "value") else ()
            per_group = [measure.compute(t, *arguments) for t in ranked]
            if measure.kind in ("cutoffs", "shares"):
                values += per_group[0] if len(ranked) == 1 else _means(per_group)  # type: ignore[arg-type]
            else:
                values += per_group[:1] if len(ranked) == 1 else _means([[v] for v in per_group])  # type: ignore
        return values

    def _ranked(self, topic: bytes, found: tuple[list[bytes], list[float]], levels: _Levels) -> list[Ranked]:
        """The topic's ranked grades, one list for each group of judgements."""
        options = self.options
        documents = in_order(*found, descending_names=True)[: options.most]
        _refuse_doubles(documents)
        if topic in self.judgements.doubled:
            raise ValueError(f"duplicate docs {_text(self.judgements.doubled[topic])}")
        lists = []
        groups = self._groups(topic)
        highest = max(group.highest for group in groups)
        if self.judgements.format == "qrels_jg":
            highest = max(highest, 0)
        elif highest < -1:
            raise ValueError(f"topic {_text(topic)} has only grades below -1")
        for group in groups:
            levels.set(group.counts, highest)
            grades = list(map(group.known.get, documents, repeat(UNPOOLED)))
            if options.judged_only:
                grades = [grade for grade in grades if grade >= 0]
            t = Ranked(grades, levels.counts, levels.n, group.n_relevant, options.level)
            t.n_collection = options.n_collection
            lists.append(t)
        return lists

    def _groups(self, topic: bytes) -> list[_Topic]:
        """The topic's groups of judgements with their counts, made once for all runs."""
        if topic not in self._topics:
            groups = []
            for _, known in self.judgements.grades[topic]:
                highest = max(known.values())
                counts = [0] * (highest + 1)
                for grade in known.values():
                    if grade >= 0:
                        counts[grade] += 1
                marked = {document: grade if grade >= 0 else UNJUDGED for document, grade in known.items()}
                groups.append(_Topic(marked, highest, counts, sum(counts[self.options.level :])))
            if sum(len(group.counts) for group in groups) > LONG:
                return groups
            self._topics[topic] = groups
        return self._topics[topic]

    def _fail(self, measure: str, reason: str) -> None:
        raise TrecEvalError(f"{reason}\ntrec_eval: Can't calculate measure '{measure}'", 4)

    def _of_absent(self, name: str, value: float | str) -> float | str:
        """The value of a topic that the run lacks (-c), for measures that are not 0 then."""
        if name == "relstring":
            return "''"
        return 0.0 if name in ("num_ret", "utility", "rbp_resid") or name.startswith("unj") else value

    def _standardised(self, topic: bytes, name: str, value: float | str) -> float | str:
        """A value in standard deviations from its mean in the file of -Z."""
        if isinstance(value, str):
            return value
        mean, deviation = (self.options.zscores or {}).get(topic, {}).get(name.encode(), (math.nan, 0.0))
        if deviation:
            return (value - mean) / deviation
        return 0.0 if value == mean else MISSING_Z

    def _averaged(self, totals: list[float], n: int, run: str) -> list[float | str]:
        """Values over all topics."""
        values: list[float | str] = []
        k = 0
        for wanted in self.wanted:
            mean = wanted.measure.mean
            for total in totals[k : k + len(wanted.names)]:
                if wanted.root == "runid":
                    values.append(run)
                elif mean == "topics":
                    values.append(float(n))
                elif mean == "geometric":
                    values.append(math.exp(total / n))
                elif mean == "sum":
                    values.append(self._all_relevant if self._counts_all(wanted.root) else total)
                else:
                    values.append(total / n if mean == "mean" else "")
            k += len(wanted.names)
        return values

    def _counts_all(self, root: str) -> bool:
        """With -c, relevant documents are counted in the qrels, where a grade above 0 is relevant."""
        return root == "num_rel" and self.options.complete

    @cached_property
    def _all_relevant(self) -> float:
        groups = [known for topic in self.judgements.grades.values() for _, known in topic]
        return float(sum(grade > 0 for known in groups for grade in known.values()))

    def _printed(self, topic: str, values: list[float | str], summary: bool) -> str:
        """Lines of one topic, or of the means over all."""
        lines, k = [], 0
        for wanted in self.wanted:
            measure = wanted.measure
            for name in wanted.names:
                value = values[k]
                k += 1
                if wanted.root == "relstring":
                    if not summary:
                        lines.append(f"{name:<22}\t{topic}\t'{str(value).strip(chr(39))}'\n")
                elif summary and wanted.root == "runid":
                    lines.append(f"{name:<22}\t{topic}\t{value}\n")
                elif not summary and (wanted.root in _FIRST or measure.mean == "geometric"):
                    continue
                elif measure.kind == "count" and not self._z:
                    lines.append(f"{name:<22}\t{topic}\t{int(value)}\n")
                else:
                    lines.append(f"{self._z}{name:<22}\t{topic}\t{_number(float(value))}\n")
        return "".join(lines)


def _number(value: float) -> str:
    """C's %6.4f, which prints a nan of 0 / 0 with a sign."""
    return f"{value:6.4f}" if value == value else "  -nan"


def _refuse_doubles(documents: list[bytes]) -> None:
    if len(set(documents)) != len(documents):
        double = next(a for a, b in zip(sorted(documents), sorted(documents)[1:]) if a == b)
        raise ValueError(f"duplicate docs {_text(double)}")


def _means(values: Sequence[Sequence[float]]) -> list[float]:
    """Means over judgement groups."""
    totals = [0.0] * len(values[0])
    for row in values:
        totals = [total + value for total, value in zip(totals, row)]
    return [total / len(values) for total in totals]


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
