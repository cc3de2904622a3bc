"""Choose the topics of a mean if runs and qrels have different topics.

* Runs with equal topics: the topics that both the runs and the qrels have.
* Runs with different topics: the caller chooses `"common"`, the topics of all runs, or `"all"`, the topics of the
  qrels, where a missing topic counts 0 (trec_eval -c).
* A single run: the topics of the run, or `"all"`.

The setting `missing_topics` of a measure takes precedence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError, Remedy
from truerank.core.printing import counted
from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure

TOPICS = ("common", "all")
JudgedScores = dict[str, tuple[Judgements, np.ndarray]]  # judgements and scores (n,) by system
_SHOWN = 5  # number of runs in messages


@dataclass(frozen=True)
class Coverage:
    """The number of topics of the qrels, of each run (judged topics only), and of the means (`used`).

    `topics` is the choice, "common" or "all", or None if the runs have equal topics. `whole` names the topics that are
    counted: "the qrels", or "the segment".
    """

    topics: str | None
    qrels: int
    runs: dict[str, int]
    used: int
    whole: str = "the qrels"

    @classmethod
    def of(cls, there: Mapping[str, np.ndarray], topics: str | None, whole: str = "the qrels") -> Coverage:
        """Return the coverage of a choice of topics, from the topics (m,) that each run has."""
        common = np.logical_and.reduce(list(there.values()))
        if topics == "common" and all(np.array_equal(own, common) for own in there.values()):
            topics = None
        used = len(common) if topics == "all" else int(common.sum())
        return cls(topics, len(common), {name: int(own.sum()) for name, own in there.items()}, used, whole)

    def __str__(self) -> str:
        whole = f"means over {'all ' * (self.qrels > 1)}{counted(self.qrels, 'topic')} of {self.whole}"
        if self.topics == "all":
            lacking = {name: self.qrels - count for name, count in self.runs.items() if count < self.qrels}
            return f"{whole}; topics that a run lacks count 0 ({_counts(lacking)})" if lacking else whole
        if self.topics is None and self.used == self.qrels:
            return whole
        text = f"means over {self.used} of the {counted(self.qrels, 'topic')} of {self.whole}"
        if self.topics == "common":
            return f"{text} that all runs have ({_counts(self.runs)})"
        return f"{text} in the run{'s' if len(self.runs) > 1 else ''}"

    def to_dict(self) -> dict[str, Any]:
        """Return the counts for JSON."""
        return {"topics": self.topics, "qrels": self.qrels, "runs": self.runs, "used": self.used}


def of_queries(judged: JudgedScores, chosen: np.ndarray) -> JudgedScores:
    """Return the judgements and scores of the queries with these numbers; systems keep shared judgements."""
    taken = {id(one): one.take_queries(chosen) for one, _ in judged.values()}
    return {name: (taken[id(one)][0], scores[taken[id(one)][1]]) for name, (one, scores) in judged.items()}


def settle_topics(
    judged: JudgedScores, topics: str | None = None, whole: str = "the qrels"
) -> tuple[JudgedScores, Coverage]:
    """Return judgements and scores over the topics of a comparison, and the coverage.

    `judged` has the results of `judge_run` by name of run, all over the topics of the qrels; a topic that a run lacks
    has no rows. Unless `topics` is "all", the result has only topics that all runs have. Raise InvalidInputError if the
    runs have different topics and `topics` is None, or if no topic is common to all runs.
    """
    kept, coverage = covered_topics({name: one.sizes > 0 for name, (one, _) in judged.items()}, topics, whole)
    return judged if kept.all() else of_queries(judged, np.flatnonzero(kept)), coverage


def covered_topics(
    there: Mapping[str, np.ndarray], topics: str | None = None, whole: str = "the qrels"
) -> tuple[np.ndarray, Coverage]:
    """Return the topics (m,) of a comparison and its coverage, from the topics (m,) that each run has.

    The errors are the errors of `settle_topics`.
    """
    check_topics(topics)
    coverage = Coverage.of(there, topics, whole)
    runs, n_all = coverage.runs, coverage.qrels
    common = np.logical_and.reduce(list(there.values()))
    n_common = int(common.sum())
    if topics is None and any(not np.array_equal(own, common) for own in there.values()):
        raise InvalidInputError(
            f"the runs have different topics: {_counts(runs)}, of {n_all} in the qrels",
            argument="topics",
            remedies=[
                Remedy(f"for the topics that all runs have ({n_common})", topics="common"),
                Remedy(f"for all topics of the qrels ({n_all}), where a topic that a run lacks counts 0", topics="all"),
            ],
            code="different-topics",
        )
    if topics == "all":
        return np.ones(n_all, dtype=bool), coverage
    if not n_common:
        raise InvalidInputError(
            f"no topic of the qrels is in all runs ({_counts(runs)})",
            argument="topics",
            remedies=["leave out the runs with other topics", Remedy("to count missing topics as 0", topics="all")],
            code="no-common-topic",
        )
    return common, coverage


def check_topics(topics: str | None) -> None:
    """Raise unless `topics` is None or in `TOPICS`."""
    if topics is not None:
        check_choice(topics, "topics", TOPICS)


def over_topics(measures: Mapping[str, Measure], topics: str | None = None) -> dict[str, Measure]:
    """Return the measures with a rule for topics that a run lacks: "all" counts them 0, others leave them out.

    Raise InvalidInputError for "all" with a measure that is better when lower, where 0 is perfect.
    """
    check_topics(topics)
    missing = "zero" if topics == "all" else "skip"
    errors = [name for name, own in measures.items() if not (own.higher_is_better or own.gives("missing_topics"))]
    if topics == "all" and errors:
        raise InvalidInputError(
            f"{errors[0]} cannot count missing topics as 0: lower values are better, and 0 would be perfect",
            argument="topics",
            value=topics,
            remedies=[Remedy(topics="common"), "choose another measure"],
            code="lower-is-better",
        )
    return {
        name: measure if measure.gives("missing_topics") else measure(missing_topics=missing)
        for name, measure in measures.items()
    }


def exceptions(measures: Mapping[str, Measure], topics: str | None = None) -> str:
    """Return a note for the coverage of a table about measures with a different `missing_topics`; "" without them."""
    rule = "zero" if topics == "all" else "skip"
    own = {name: one.setting("missing_topics") for name, one in measures.items()}
    said = [f"{name} has missing_topics={value!r} of its own" for name, value in own.items() if value != rule]
    return "".join(f"; {text}" for text in said)


def _counts(counts: Mapping[str, int]) -> str:
    shown = ", ".join(f"{name} {count}" for name, count in list(counts.items())[:_SHOWN])
    return shown if len(counts) <= _SHOWN else f"{shown}, … {len(counts)} runs"
