"""The rules about evidence, which return remarks; some remarks prevent a verdict.

`truerank.data.remarks` has the codes, and `truerank.data.checkup` examines rows and scores. The rules select the
remarks that a command or function must print, because they change the figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.data.checkup import FIRST_IDS, examine, of_grades, of_judged_rows
from truerank.data.grouping import places_of
from truerank.data.ranking_data import RankingData
from truerank.data.remarks import NOTE, Remark
from truerank.data.row_source import Rows
from truerank.io.trec import Qrels
from truerank.measures.base import Measure
from truerank.measures.conventions import QRELS_CONVENTION, convention_value
from truerank.measures.coverage import Coverage, JudgedScores, of_queries

_SAME_DEPTH = 0.9  # of the deepest run


def about_data(
    data: Rows, convention: str | None = None, queries: np.ndarray | None = None, *, trains: bool = False
) -> list[Remark]:
    """Return the remarks on judged rows (of some `queries`) that change figures, or change a model (`trains`)."""
    data = data if queries is None else data.sample(queries)
    return _that_matter(examine(data, quick=True), convention, trains)


def about_judged_rows(data: RankingData, convention: str, queries: np.ndarray | None = None) -> list[Remark]:
    """Return the remarks on judged rows (of some `queries`) whose features no system reads."""
    data = data if queries is None else data.without_features().sample(queries)
    return _that_matter(of_judged_rows(data), convention)


def about_qrels(qrels: Qrels, convention: str | None = None, queries: np.ndarray | None = None) -> list[Remark]:
    """Return the remarks on qrels (of some `queries`) that change figures, by default under the convention trec."""
    queries = np.arange(qrels.n_queries) if queries is None else queries
    rows, offsets = places_of(qrels.offsets, queries)
    first = qrels.ids.take(rows[:FIRST_IDS]).texts
    found = of_grades(qrels.grades[rows], offsets, qrels.query_ids[queries], first)
    return _that_matter(found, convention or QRELS_CONVENTION)


def about_runs(contradicts: Mapping[str, bool]) -> list[Remark]:
    """Return the remark on runs whose rank column contradicts the scores (`Run.contradicts_ranks`, by name)."""
    names = [name for name, found in contradicts.items() if found]
    return [Remark("contradicting-ranks", ", ".join(names), len(names), names)] if names else []


def about_documents(qrels: Qrels, judged: JudgedScores, _: str, queries: np.ndarray | None = None) -> list[Remark]:
    """Return the remark on judged runs without a judged document (of some `queries`)."""
    judged = judged if queries is None else of_queries(judged, queries)
    strangers = [name for name, (own, _) in judged.items() if own.n_rows and qrels.n_rows and not own.known.any()]
    shown = [
        f"{name} ({str(np.asarray(judged[name][0].tie_keys)[0])!r:.60}, and in the qrels {str(qrels.doc_ids[0])!r:.60})"
        for name in strangers
    ]
    return [Remark("no-judged-document", ", ".join(shown), len(shown), strangers)] if shown else []


def about_depths(judged: JudgedScores, measures: Mapping[str, Measure]) -> list[Remark]:
    """Return the remark on runs of different depth, if a measure reads more ranks than the shortest run has."""
    sizes = {name: np.diff(own.offsets) for name, (own, _) in judged.items()}
    depths = {name: float(np.median(own[own > 0])) for name, own in sizes.items() if own.any()}
    least, most = min(depths.values(), default=0.0), max(depths.values(), default=0.0)
    cutoffs = [getattr(by, "cutoff", None) for by in measures.values()]
    if least >= _SAME_DEPTH * most or all(cutoff is not None and cutoff <= least for cutoff in cutoffs):
        return []
    shallow = [name for name, depth in depths.items() if depth < _SAME_DEPTH * most]
    return [Remark("different-depths", ", ".join(f"{name} {depth:g}" for name, depth in depths.items()),
                   len(shallow), shallow)]  # fmt: skip


def about_topics(coverage: Coverage) -> list[Remark]:
    """Return the remark on means that do not include all topics of all runs and the qrels."""
    lacking = [name for name, count in coverage.runs.items() if count < coverage.qrels]
    return [Remark("missing-topics", str(coverage), len(lacking), lacking)] if lacking else []


def check_shared_topics(qrels: Qrels, runs: Mapping[str, Iterable[str]]) -> None:
    """Raise an InvalidInputError if a run has no topic of the qrels."""
    judged = qrels.query_ids.tolist()
    for name, topics in runs.items():
        own = list(topics)
        if set(judged).isdisjoint(own):
            raise InvalidInputError(
                f"run {name!r} has no topic of the qrels: its topics are {_some(own)}, but the topics of the qrels "
                f"are {_some(judged)}. Check that both have the same topic ids",
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
