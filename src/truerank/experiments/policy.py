"""The rules about evidence, which return remarks; some remarks prevent a verdict.

`truerank.data.remarks` has the codes, and `truerank.data.checkup` examines rows and scores. The rules select the
remarks that a command or function must print, because they change the figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError, Remedy
from truerank.data.checkup import FIRST_IDS, examine, of_grades
from truerank.data.remarks import NOTE, Remark
from truerank.data.row_source import Rows
from truerank.io.trec import Qrels
from truerank.measures.conventions import convention_value
from truerank.measures.coverage import Coverage

TRAINING_QUERIES = ("leave out", "keep", "refuse")


def about_data(data: Rows, convention: str | None = None, *, trains: bool = False) -> list[Remark]:
    """Return the remarks on judged rows that change figures under a convention, or change a model (`trains`)."""
    return _that_matter(examine(data, quick=True), convention, trains)


def about_qrels(qrels: Qrels, convention: str | None = None) -> list[Remark]:
    """Return the remarks on qrels that change figures, by default under the convention trec."""
    first = qrels.ids.take(np.arange(min(qrels.n_rows, FIRST_IDS))).texts
    found = of_grades(qrels.grades, qrels.offsets, qrels.query_ids, first)
    return _that_matter(found, convention or "trec")


def about_runs(contradicts: Mapping[str, bool]) -> list[Remark]:
    """Return the remark on runs whose rank column contradicts the scores (`Run.contradicts_ranks`, by name)."""
    names = [name for name, found in contradicts.items() if found]
    return [Remark("contradicting-ranks", ", ".join(names), len(names), names)] if names else []


def about_documents(strangers: Mapping[str, tuple[str, str]]) -> list[Remark]:
    """Return the remark on runs without a judged document, from one document of each run and one of the qrels."""
    shown = [f"{name} ({own!r:.60}, and in the qrels {other!r:.60})" for name, (own, other) in strangers.items()]
    return [Remark("no-judged-document", ", ".join(shown), len(shown), list(strangers))] if shown else []


class Provenance(NamedTuple):
    """Training queries in data: a mask of queries to keep (m,), a sentence, counts by model for JSON, and remarks."""

    keep: np.ndarray
    text: str
    report: dict[str, Any]
    remarks: list[Remark]

    def kept(self, data: Any) -> Any:
        """Return the data of the queries to keep."""
        return data if self.keep.all() else data.take_queries(self.keep)


def settle_training(
    models: Mapping[str, Any], data: Any, rule: str = "leave out", *, instead: Sequence[str] = ("use other queries",)
) -> Provenance:
    """Return the queries of `data` on which no model (by name) was trained; "keep" keeps all queries, with a remark.

    Raises
    ------
    InvalidInputError
        With "refuse", if a model was trained on a query; with "leave out", if models were trained on more than half of
        the queries, or if no query is left. `instead` are the remedies that the message names first.
    """
    from truerank.data.provenance import training_queries

    check_choice(rule, "training_queries", TRAINING_QUERIES)
    keep, lines, report, left, kept = np.ones(data.n_queries, dtype=bool), [], {}, dict[str, int](), dict[str, int]()
    for name, model in models.items():
        found = training_queries(model, data)
        about = f"{name}: {found}"
        if rule != "keep" and (found.mostly or (rule == "refuse" and found.recognised)):
            raise InvalidInputError(
                f"{about}. Values on training queries are too optimistic",
                argument="training_queries",
                remedies=[*instead, Remedy("to compute the values nevertheless", training_queries="keep")],
                code="training-queries",
            )
        if found.recognised and rule == "keep":
            about += "; the values include these queries, and are too optimistic for new queries"
            kept[name] = found.recognised
        elif found.recognised:
            about += "; these queries are left out"
            left[name] = found.recognised
            keep &= ~found.matched
        lines.append(about)
        report[name] = found.to_dict() | {"left_out": 0 if rule == "keep" else found.recognised}
    if not keep.any():
        raise InvalidInputError(
            f"{'; '.join(lines)}. No query is left",
            remedies=["use queries on which no model was trained"],
            code="training-queries",
        )
    remarks = [
        Remark(code, ", ".join(f"{count} of {name}" for name, count in counts.items()), len(counts), list(counts))
        for code, counts in (("training-queries-kept", kept), ("training-queries-left-out", left))
        if counts
    ]
    return Provenance(keep, "\n".join(lines), report, remarks)


def about_topics(coverage: Coverage) -> list[Remark]:
    """Return the remark on means that do not include all topics of all runs and the qrels."""
    lacking = [name for name, count in coverage.runs.items() if count < coverage.qrels]
    return [Remark("missing-topics", str(coverage), len(lacking), lacking)] if lacking else []


def check_shared_topics(qrels: Qrels, runs: Mapping[str, Iterable[str]]) -> None:
    """Raise an InvalidInputError if a run, by its topics, has no topic of the qrels."""
    judged = qrels.query_ids.tolist()
    for name, topics in runs.items():
        own = list(topics)
        if set(judged).isdisjoint(own):
            raise InvalidInputError(
                f"run {name!r} has no topic of the qrels: its topics are {_some(own)}, but the topics of the qrels are "
                f"{_some(judged)}",
                code="no-shared-topic",
            )


def _some(topics: list[str]) -> str:
    shown = ", ".join(f"{topic!r:.40}" for topic in topics[:3])
    return f"{shown} and {len(topics) - 3} more" if len(topics) > 3 else shown or "none"


def check_order(remarks: Iterable[Remark]) -> None:
    """Raise an InvalidInputError for scores that may be ranks, whose order must be stated before a comparison."""
    for remark in remarks:
        if remark.code == "ranks-as-scores":
            raise InvalidInputError(f"no verdict on {remark.text}", remedies=remark.remedies, code=remark.code)


def _that_matter(remarks: Iterable[Remark], convention: str | None, trains: bool = False) -> list[Remark]:
    """Return the remarks without notes and without remarks on grades that change no value under the convention."""
    idle = set()
    if not trains and convention is not None and convention_value(convention, "nDCG", "gain") == "linear":
        idle.add("huge-grade")
    if convention is None or convention_value(convention, "nDCG", "grades") != "truncated":
        idle.add("fractional-grade")
    return [remark for remark in remarks if remark.severity != NOTE and remark.code not in idle]
