"""The gate: decide whether retrieval is as good as before, from a gold set and the results of two systems.

`significance.gate` makes the decision. This module reads the systems, maps chunks to documents, and counts the looks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError, Message, Remedy
from truerank.core.printing import counted
from truerank.core.types import Convention, MeasureLike, RandomState
from truerank.data.remarks import FORBIDS
from truerank.experiments.experiment import Experiment
from truerank.experiments.policy import check_order, check_shared_topics
from truerank.experiments.segments import labels_in
from truerank.io.gold_sets import GoldSet, matched_spans, read_gold
from truerank.io.results import COLLAPSE, as_scores, by_id, collapsed, read_results
from truerank.io.trec import Qrels, Run, as_run
from truerank.measures import parse_measure
from truerank.measures.base import Measure
from truerank.measures.coverage import over_topics
from truerank.measures.derived import best_grade
from truerank.significance.gate import INCONCLUSIVE, Floor, Gate, decide_gate, least_margin, least_queries
from truerank.significance.history import History
from truerank.significance.intervals import failing_loss
from truerank.significance.paired import LEVEL
from truerank.significance.unjudged import doubtful_pairs

_LOSSES = ("no-relevant", "unanswered")


def gate(
    gold: object,
    new: object,
    baseline: object,
    measure: MeasureLike = "nDCG@10",
    *,
    margin: float = 0.02,
    at_least: Mapping[str, float] | None = None,
    at_most: Mapping[str, float] | None = None,
    segments: str | Mapping[Any, Any] | None = None,
    looks: int = 1,
    history: History | None = None,
    collapse: str | Mapping[str, str] | Callable[[str], str] | None = None,
    convention: Convention = "trec",
    inconclusive: str | None = None,
    random_state: RandomState = None,
) -> Gate:
    """Return whether the new system retrieves as well as the baseline: PASS, FAIL or INCONCLUSIVE.

    Parameters
    ----------
    gold : path, GoldSet, or qrels
        JSON lines with the relevant documents of each query (`io.gold_sets`), or qrels in any form.
    new, baseline : path, Run, dict by query, or data frame
        Results as JSON lines (`io.results`), with or without scores, or runs. A query without a result has the value 0.
    measure : str or Measure, default="nDCG@10"
    margin : float, default=0.02
        Loss δ that is too small to matter, in the unit of the measure.
    at_least : mapping of measure to its least mean, optional
    at_most : mapping of loss to its largest mean, optional
        "no-relevant@K" and "no-relevant" (in the whole list) are means over the queries with a result. "unanswered" is
        the share of queries without a result among the queries with relevant documents.
    segments : str or mapping of query to label, optional
        A field of the gold set, or the label of each query; "" is no segment.
    looks : int, default=1
        Number of times that the same queries are used, by which the level is divided.
    history : History, optional
        History that counts the looks, and is extended. Without a history, this is the first look.
    collapse : str, mapping or function, optional
        Rule that maps chunks to documents: see `io.results.collapsed`.
    convention : str, default="trec"
    inconclusive : "pass", "fail" or None, default None
        Verdict whose exit code an inconclusive gate returns. By default, a margin at which equal systems do not pass is
        an error.
    random_state : seed of the resamples of simultaneous intervals

    Raises
    ------
    InvalidInputError
        If a result occurs twice for a query without `collapse`; if the margin is too small for the number of queries;
        if no query of the gold set has a result; for an unknown segment or loss.

    Examples
    --------
    >>> gold = {str(q): {"a": 1} for q in range(150)}
    >>> old = {query: ["a", "b"] for query in gold}
    >>> worse = {query: ["b", "a"] if int(query) % 3 else ["a", "b"] for query in gold}
    >>> gate(gold, old, old, "RR", margin=0.05).summary
    'PASS: the results are identical: 1.0000 against 1.0000 with 150 queries'
    >>> gate(gold, worse, old, "RR", margin=0.05).verdict
    'FAIL'
    """
    known = read_gold(gold)
    sides = {name: _as_run(source, known, collapse) for name, source in (("baseline", baseline), ("new", new))}
    check_shared_topics(known.qrels, {name: run.query_ids.tolist() for name, run in sides.items()})
    notes = _notes(known.qrels, sides)
    experiment = Experiment(
        known.qrels, sides, [parse_measure(measure, convention)], convention=convention, topics="all",
        segments=None if segments is None else labels_in(known, segments)[1],
    )  # fmt: skip
    digests = {"gold": _digest(known), **{name: _digest(run) for name, run in sides.items()}}
    return gate_of(
        experiment, margin, at_least=at_least, at_most=at_most, looks=looks, history=history, inconclusive=inconclusive,
        random_state=random_state, about={"digests": digests}, notes=notes,
    )  # fmt: skip


def gate_of(
    experiment: Experiment,
    margin: float = 0.02,
    *,
    at_least: Mapping[str, float] | None = None,
    at_most: Mapping[str, float] | None = None,
    looks: int = 1,
    history: History | None = None,
    inconclusive: str | None = None,
    random_state: RandomState = None,
    about: Mapping[str, Any] = {},
    notes: Sequence[str] = (),
) -> Gate:
    """Return the gate of an experiment of two systems, by its first measure; for the arguments see `gate`.

    `about` and `notes` are of the files that the systems were read from.
    """
    if inconclusive is not None:
        check_choice(inconclusive, "inconclusive", ("pass", "fail"))
    others = [name for name in experiment.judged if name != experiment.baseline]
    if len(others) != 1:
        raise InvalidInputError(
            f"a gate requires two systems, got {1 + len(others)}. Name two systems", code="two-systems"
        )
    check_order(experiment.found)
    names, (asked, measure) = (others[0], experiment.baseline), next(iter(experiment.measures.items()))
    measure.check_mean()
    ours, theirs = (measure.values(experiment.rankings[name]) for name in names)
    if inconclusive is None and not np.array_equal(ours, theirs, equal_nan=True):
        _check_margin(margin, ours, theirs, measure)
    floors = _floors(experiment, others[0], at_least or {}, at_most or {})
    masks = experiment.segment_masks()
    values = {measure.name: {"new": ours, "baseline": theirs}}
    looked: AbstractContextManager[tuple[int, float]] = nullcontext((1, LEVEL))
    if history is not None:
        looked = history.looking(experiment.judgements, values, "gate", margin, at_least, at_most, looks)
    with looked as (look, _):
        found = decide_gate(
            ours, theirs, margin, segments=masks, floors=floors, looks=looks, look=look, measure=measure,
            query_ids=experiment.judgements.query_ids.tolist(), random_state=random_state,
        )  # fmt: skip
    own = {"measure": asked, "convention": measure.convention, "new": names[0], "baseline": names[1]}
    notes = [f"{asked}, convention {measure.convention}", *notes, *found.notes]
    if history is None and looks == 1:
        notes.append(Message("looks at these queries are not counted", Remedy("to count them", looks=..., history=...)))
    for pair in doubtful_pairs(measure, experiment.rankings, [names]):
        if not pair.p >= LEVEL:  # shares that differ; gold sets seldom judge most of what is retrieved
            notes.append(
                f"{100 * pair.share_a:.3g} % of the documents of {pair.a} are judged, and {100 * pair.share_b:.3g} % "
                f"of the documents of {pair.b}; unjudged documents count as not relevant, which can explain the "
                f"difference"
            )
    decided: dict[str, Any] = {}
    if forbids := [remark for remark in experiment.remarks if remark.severity == FORBIDS]:
        decided = {"verdict": INCONCLUSIVE, "reason": f"no verdict on {forbids[0].text}", "needed": None}
    return replace(
        found,
        about=own | found.about | dict(about),
        notes=notes,
        inconclusive=inconclusive,
        experiment=experiment,
        **decided,
    )


def _check_margin(margin: float, new: np.ndarray, old: np.ndarray, measure: Measure) -> None:
    """Raise an error if even equal systems do not pass with this number of queries."""
    loss, n = failing_loss(old, new, measure), int(np.count_nonzero(~np.isnan(new + old)))
    if loss is not None and n and margin <= (least := least_margin(loss, n)):
        raise InvalidInputError(
            f"with {counted(n, 'query')}, margin={margin:g} is too small: even equal systems do not pass. Use at "
            f"least {least_queries(loss, margin)} queries, or a margin above {least:.4g}",
            argument="margin",
            value=margin,
            remedies=[Remedy("to run the gate nevertheless", inconclusive="pass")],
        )


def _as_run(source: object, gold: GoldSet, collapse: Any) -> Run:
    if gold.spans:
        return as_run(as_scores(matched_spans(source, gold, collapse)))
    lists = read_results(source)
    return by_id(as_run(as_scores(lists if collapse is None else collapsed(lists, collapse))), gold.qrels)


def _notes(qrels: Qrels, sides: Mapping[str, Run]) -> list[str]:
    """Return notes on queries that count 0 or are left out; raise if no run has a relevant document."""
    wanted, judged = set(qrels.query_ids.tolist()), qrels.by_topic(qrels.grades)
    relevant = {query: {name for name, grade in own.items() if grade > 0} for query, own in judged.items()}
    found = [(query, own) for run in sides.values() for query, own in run.by_topic(run.scores).items() if own]
    if any(relevant.values()) and found and not any(own.keys() & relevant.get(query, set()) for query, own in found):
        example = next(sorted(own)[0] for own in relevant.values() if own)
        raise InvalidInputError(
            "no result of the two systems is a relevant document: the results have ids such as "
            f"{next(iter(found[0][1]))!r:.60}, and the gold set such as {example!r:.60}. Both must have the same ids",
            code="no-shared-documents",
            remedies=[COLLAPSE],
        )
    notes, empty = [], len(wanted) - sum(map(bool, relevant.values()))
    if empty:
        notes.append(f"{counted(empty, 'query')} of the gold set without a relevant document, counted as 0")
    for name, run in sides.items():
        there = set(run.query_ids.tolist())
        if lacking := len(wanted - there):
            notes.append(f"{name}: {counted(lacking, 'query')} of the gold set without a result, counted as 0")
        if others := len(there - wanted):
            notes.append(f"{name}: {counted(others, 'query')} ignored, because they are not in the gold set")
    return notes


def _floors(
    experiment: Experiment, new: str, at_least: Mapping[str, float], at_most: Mapping[str, float]
) -> list[Floor]:
    ranking = experiment.rankings[new]

    def measured(name: str) -> tuple[Measure, np.ndarray]:
        (by,) = over_topics({name: parse_measure(name, experiment.convention)}, experiment.topics).values()
        return by.check_mean(), by.values(ranking)

    floors = []
    for name, bound in at_least.items():
        by, values = measured(name)
        floors.append(Floor(f"{name} at least {bound:g}", values, float(bound), measure=by))
    answered = ranking.judgements.sizes > 0
    for name, bound in at_most.items():
        kind, _, depth = name.partition("@")
        if kind not in _LOSSES or (depth and (kind != "no-relevant" or not depth.isdecimal())):
            raise InvalidInputError(
                f"unknown loss {name!r}. Choose among no-relevant@K, no-relevant and unanswered", argument="at_most"
            )
        if kind == "unanswered":
            loss = np.where(best_grade(ranking.judgements) > 0, 1.0 - answered, np.nan)
        else:
            first = np.nan_to_num(measured(f"RR@{depth}" if depth else "RR")[1])
            loss = np.where(answered, 1.0 - (first > 0), np.nan)
        floors.append(Floor(f"{name} at most {bound:g}", loss, float(bound), most=True))
    return floors


def _digest(value: GoldSet | Run) -> str:
    from truerank.core.digests import content_digest

    if isinstance(value, GoldSet):
        return content_digest([value.qrels.by_topic(value.qrels.grades), value.segments])
    return content_digest(value.by_topic(value.scores))
