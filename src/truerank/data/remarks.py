"""Remarks on data, scores and evidence: all codes with severity, meaning and remedies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from truerank.core.errors import PYTHON, Message, Remedy, TruerankWarning, Wording, alternatives


class Code(NamedTuple):
    """A kind of remark with its severity, its meaning, and its remedies, in which NAME is the first item."""

    severity: str
    meaning: str
    remedy: str | tuple[Remedy | str, ...]


FORBIDS, CHANGES, NOTE = "forbids a verdict", "changes figures", "note"

CODES = {
    "shared-query": Code(
        FORBIDS,
        "queries that are in more than one file; training and test data must not share queries",
        "split by query again (`QueryKFold`), or rename the queries of different collections",
    ),
    "ranks-as-scores": Code(
        FORBIDS,
        "scores that look like ranks: numbers from 1 in nearly every query, or in all rows; if 1 is the best, the "
        "order is reversed",
        "use NAME:ascending if 1 is the best, and NAME:descending if the highest number is the best",
    ),
    "training-queries-kept": Code(
        FORBIDS,
        "queries on which a model was trained; the values are too optimistic for new queries",
        "leave out the training queries, or use other queries",
    ),
    "mostly-training-queries": Code(
        FORBIDS,
        "models that were trained on more than half of the queries; the other queries may be changed training queries",
        "use queries on which no model was trained",
    ),
    "training-queries-left-out": Code(
        CHANGES, "queries on which a model was trained, which are left out", "use queries on which no model was trained"
    ),
    "missing-topics": Code(
        CHANGES,
        "runs without documents for some topics of the qrels",
        "state with every figure whether a topic that a run lacks counts 0 (all) or is left out (common)",
    ),
    "outside-plan": Code(
        CHANGES,
        "runs without a value, because documents that affect it are not in the plan",
        "plan another round with this run",
    ),
    "undrawn-grades": Code(
        NOTE,
        "grades of documents that were not drawn, which only improve predictions",
        "plan another round to draw these documents",
    ),
    "unjudged-documents": Code(
        CHANGES,
        "pairs of runs whose ranked documents are judged to different shares, or mostly not judged",
        "judge more documents, or use a measure that leaves unjudged documents out",
    ),
    "ties": Code(
        CHANGES,
        "systems whose mean changes by more than 0.0005 if it is averaged over all orders of documents with the same "
        "score",
        'write the scores with more digits, or measure with ties averaged, such as AP(ties="average")',
    ),
    "different-depths": Code(
        CHANGES,
        "runs with fewer documents per topic (median) than other runs, whose deeper ranks count 0",
        "compare to the same depth, for example AP@N with the depth N of the shortest run",
    ),
    "no-judged-document": Code(
        CHANGES,
        "runs without a judged document in any topic; the ids of qrels and run may have different forms",
        "compare case, length and leading zeros of the ids in both files",
    ),
    "contradicting-ranks": Code(
        CHANGES,
        "runs in which low scores are better, by their rank column, or by scores of 1, 2, 3 in row order; documents "
        "are ordered by descending score, as in trec_eval",
        "write higher scores for better documents, such as 1 / rank",
    ),
    "feature-equals-grade": Code(
        FORBIDS,
        "features that order the documents of every query as the grades do; they may be computed from the grades",
        (Remedy("to ignore them", exclude=[...]), "keep them if they are known when the ranker is used"),
    ),
    "compared-feature": Code(
        CHANGES,
        "features that are also compared as systems, so that rankers are trained on the scores of their competitor",
        (Remedy("to train without them", exclude=[...]), Remedy("to keep them", exclude=[])),
    ),
    "rounded-ids": Code(
        CHANGES,
        "document ids such as 1.23457E+12, to which spreadsheets shorten long numbers; such ids match no other file",
        "export the file again, with the column of ids as text",
    ),
    "file-order": Code(
        CHANGES,
        "rows whose order depends on the grades: constant scores have different values with ties in file order and "
        "with ties averaged",
        'measure with ties averaged (`AP(ties="average")`), or shuffle the rows of each query',
    ),
    "fold-scale": Code(
        CHANGES,
        "features with different scales in two files, which were normalised separately",
        "normalise within queries, or normalise all files by the training file's values",
    ),
    "different-width": Code(
        CHANGES,
        "files with different numbers of features",
        (
            Remedy("to read all files with the same number of features", n_features=...),
            "export all files with the same features",
        ),
    ),
    "no-features": Code(
        NOTE,
        "judgements without features, from which no ranker can learn",
        "add features from a search engine, from the texts, or from the columns of a catalogue",
    ),
    "one-list": Code(
        CHANGES,
        "rows without query ids, which are treated as one result list",
        "pass the query of each row: fit(X, y, qid=qid)",
    ),
    "joined-query": Code(
        NOTE, "queries whose rows were not adjacent and were joined", "sort the rows by query if this is not intended"
    ),
    "query-without-pairs": Code(
        NOTE, "queries whose documents all have one grade, from which rankers learn nothing", "judge more documents"
    ),
    "query-without-relevant": Code(
        NOTE,
        "queries without a document of a positive grade; conventions count them as 0, as 1 or not at all",
        "name the convention with every figure",
    ),
    "single-document-query": Code(NOTE, "queries with one document", "leave them out; they affect no comparison"),
    "constant-feature": Code(NOTE, "features with the same value in all rows", "leave them out"),
    "query-level-feature": Code(
        NOTE,
        "features that are constant within every query; on their own they cannot order documents",
        "leave them out of linear rankers; trees may combine them with others",
    ),
    "duplicate-feature": Code(NOTE, "features that equal an earlier feature in all rows", "leave them out"),
    "missing-value": Code(
        NOTE,
        "features with missing values, by rows",
        (
            "train oblivious-boosting or rank-boost",
            Remedy("for Solr, Elasticsearch and OpenSearch, which read them as 0", missing="zero"),
        ),
    ),
    "missing-category": Code(
        NOTE,
        "text features with empty cells, by rows; reading missing values as 0 leaves these empty",
        "before training for a search engine other than painless, give them a category of their own, such as 'none'",
    ),
    "duplicate-document": Code(
        CHANGES, "documents that occur twice in a query; measures count both rows", "keep one row for each document"
    ),
    "conflicting-documents": Code(
        FORBIDS, "documents that occur twice in a query with different grades", "keep the correct judgement"
    ),
    "several-grades": Code(
        FORBIDS,
        "documents with several different grades, for example by several judges",
        (Remedy("or another of mean, majority, first to combine them", aggregate="median"), "keep one judgement"),
    ),
    "similar-queries": Code(
        CHANGES,
        "queries whose texts differ only in case, blanks or the form of letters; each counts as a query",
        (Remedy("to make one of them", fold_queries=True), "make one of them with `truerank convert`"),
    ),
    "identical-rows": Code(
        NOTE,
        "rows with the features of an earlier row of their query, so that every ranker ties both",
        "name the rule for ties with every figure",
    ),
    "conflicting-grades": Code(
        NOTE, "identical rows of a query with different grades, which no ranker can order", "add a feature that differs"
    ),
    "tied-scores": Code(
        CHANGES,
        "queries in which documents with different grades have the same score; the rule for ties decides their values",
        "measure with ties averaged, or write the scores with more digits",
    ),
    "constant-scores": Code(
        FORBIDS, "queries whose documents all have the same score; they are not ranked", "check the model or the file"
    ),
    "negative-grade": Code(
        CHANGES,
        "rows with a negative grade; measures count them as not judged, rankers as worse than grade 0",
        "give grade 0 to documents that are not relevant",
    ),
    "fractional-grade": Code(
        CHANGES,
        "rows whose grade is not an integer; programs such as trec_eval truncate the fraction",
        "multiply or round the grades to integers, and name the convention with every figure",
    ),
    "unnamed-column": Code(
        CHANGES,
        "columns of row numbers without a name, as pandas writes an index; such columns are left out",
        "write the table without its index, or name the columns in `features`",
    ),
    "counting-feature": Code(
        CHANGES,
        "features that count the rows of the file; they reveal its order",
        (Remedy("to ignore them", exclude=[...]), "remove them from the file"),
    ),
    "rank-feature": Code(
        CHANGES,
        "features that number the documents from 1 in nearly every query, like ranks of an earlier ranking",
        (Remedy("to ignore them", exclude=[...]), "keep them if they are known when the ranker is used"),
    ),
    "huge-grade": Code(
        CHANGES,
        "rows with a grade above 15; with exponential gains (2^g - 1) one of them outweighs thousands of lower grades",
        'map grades to a few levels, or use nDCG(gain="linear")',
    ),
}
"""The meaning of each code, in the order in which remarks are listed."""


@dataclass
class Remark:
    """A remark on data or scores."""

    code: str  # a key of `CODES`
    where: str  # the first places in words
    count: int
    items: list[Any] = field(default_factory=list)  # names of all features, queries, columns or runs
    source: str = ""  # the file or argument that the remark is about

    @property
    def severity(self) -> str:
        return CODES[self.code].severity

    @property
    def text(self) -> str:
        """A text with the finding, its location and its meaning."""
        number = "" if self.count == len(self.items) else f"{self.count}, "
        return CODES[self.code].meaning + (f": {number}{self.where}" if self.where else "")

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """The remedies of the problem."""
        found = CODES[self.code].remedy
        if isinstance(found, str):
            return (Remedy(found.replace("NAME", str(self.items[0]) if self.items else "NAME")),)
        return tuple(one.about(self.items) for one in Message("", *found).remedies)

    @property
    def remedy(self) -> str:
        """The remedies in the words of Python."""
        return alternatives(self.remedies)

    def worded(self, wording: Wording = PYTHON) -> str:
        """Return the remark in the terms of a front end."""
        return f"{self.severity} ({self.code}): {self.text}. Remedy: {alternatives(self.remedies, wording)}"

    __str__ = worded

    def to_dict(self) -> dict[str, Any]:
        """Return the remark for JSON."""
        told = {"severity": self.severity, "text": self.text, "remedy": self.remedy}
        figures = asdict(self) | told | {"remedies": [one.to_dict() for one in self.remedies]}
        source = figures.pop("source")
        return {"in": source, **figures} if source else figures


class RemarkWarning(TruerankWarning):
    """A warning with a remark, for functions whose result cannot store remarks, such as a reader or `fit`."""

    def __init__(self, remark: Remark, remedy: str = "") -> None:
        super().__init__(f"{remark.text}. {remedy}" if remedy else str(remark))
        self.remark = remark

    def worded(self, wording: Wording) -> str:
        """Return the warning in the terms of a front end."""
        return self.remark.worded(wording)


def in_order(remarks: Iterable[Remark]) -> list[Remark]:
    """Sort remarks in the order of `CODES`."""
    places = list(CODES)
    return sorted(remarks, key=lambda remark: places.index(remark.code))
