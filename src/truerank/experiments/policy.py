"""The rules about evidence: each returns remarks, of which some forbid a verdict.

`truerank.data.checkup` has the codes, and finds what is in rows and scores. The rules choose what a command or function
that reads the data must tell, because it changes the figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.data.checkup import FORBIDS, NOTE, Remark, examine, of_grades, ranks_as_scores
from truerank.data.row_source import Rows
from truerank.io.trec import Qrels
from truerank.measures.conventions import convention_value


def about_data(data: Rows, convention: str | None = None, *, trains: bool = False) -> list[Remark]:
    """Return the remarks on judged rows that change figures under a convention, or what is learned (`trains`)."""
    return _that_matter(examine(data, quick=True), convention, trains)


def about_qrels(qrels: Qrels, convention: str | None = None) -> list[Remark]:
    """Return the remarks on qrels that change figures, by default under the convention trec."""
    return _that_matter(of_grades(qrels.grades, qrels.offsets, qrels.query_ids), convention or "trec")


def about_scores(scores: Mapping[str, np.ndarray], offsets: np.ndarray) -> list[Remark]:
    """Return the remark on systems whose scores (n,) may be ranks, unless the user stated which end is best."""
    return ranks_as_scores(scores, offsets)


def about_runs(contradicts: Mapping[str, bool]) -> list[Remark]:
    """Return the remark on runs whose rank column contradicts the scores (`Run.contradicts_ranks`, by name)."""
    names = [name for name, found in contradicts.items() if found]
    return [Remark("contradicting-ranks", ", ".join(names), len(names), names)] if names else []


def check_verdict(remarks: Iterable[Remark]) -> None:
    """Raise an InvalidInputError if a remark forbids a verdict."""
    for remark in remarks:
        if remark.severity == FORBIDS:
            raise InvalidInputError(f"no verdict on {remark.text}", remedies=remark.remedies, code=remark.code)


def _that_matter(remarks: Iterable[Remark], convention: str | None, trains: bool = False) -> list[Remark]:
    """Leave out notes, and remarks on grades that change no value under the convention."""
    idle = set()
    if not trains and convention is not None and convention_value(convention, "nDCG", "gain") == "linear":
        idle.add("huge-grade")
    if convention is None or convention_value(convention, "nDCG", "grades") != "truncated":
        idle.add("fractional-grade")
    return [remark for remark in remarks if remark.severity != NOTE and remark.code not in idle]
