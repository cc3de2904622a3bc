"""The gate: is retrieval as good as before, from a gold set and the results of two systems.

`significance.gate` decides. This module reads the systems, makes documents of chunks, and counts the looks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError, Remedy
from truerank.core.printing import counted
from truerank.core.types import MeasureLike, RandomState
from truerank.data.checkup import FORBIDS
from truerank.experiments.policy import check_order
from truerank.io.gold_sets import GoldSet, matched_spans, read_gold
from truerank.io.results import as_scores, collapsed, read_results
from truerank.io.trec import Run, as_run, judge_run
from truerank.measures import parse_measure
from truerank.measures.base import Measure
from truerank.measures.coverage import over_topics
from truerank.measures.derived import best_grade
from truerank.significance.gate import INCONCLUSIVE, Floor, Gate, decide_gate, least_margin, least_queries
from truerank.significance.history import History, judgement_digests, results_digest
from truerank.significance.intervals import failing_loss

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
    convention: str = "trec",
    inconclusive: str | None = None,
    random_state: RandomState = None,
) -> Gate:
    """Return whether the new system retrieves as well as the baseline: PASS, FAIL or INCONCLUSIVE.

    Parameters
    ----------
    gold : path, GoldSet, or qrels
        JSON lines with the relevant documents of each query (`io.gold_sets`), or qrels in any form.
    new, baseline : path, Run, dict by query, or data frame
        Results as JSON lines (`io.results`), with or without scores, or runs. A query of the gold set without a result
        has the value 0.
    measure : str or Measure, default="nDCG@10"
    margin : float, default=0.02
        The loss δ that is too small to matter, in the unit of the measure.
    at_least : mapping of measure to its least mean, optional
    at_most : mapping of loss to its largest mean, optional
        "no-relevant@K" and "no-relevant" (in the whole list) are means over the queries with a result; "unanswered" is
        the share of the queries with relevant documents that have no result.
    segments : str or mapping of query to label, optional
        A field of the gold set, or the label of each query.
    looks : int, default=1
        How often the same queries are used. The level is divided by it.
    history : History, optional
        Counts the looks; it is extended. Without it, this is the first look.
    collapse : str, mapping or function, optional
        Makes documents of chunks: see `io.results.collapsed`.
    convention : str, default="trec"
    inconclusive : "pass", "fail" or None, default None
        Whose exit code an inconclusive gate has. Without it, a margin with which even equal systems do not pass is an
        error.
    random_state : seed of the resamples of simultaneous intervals

    Raises
    ------
    InvalidInputError
        A result occurs twice for a query and there is no `collapse`; the margin is too small for the number of queries;
        no query of the gold set has a result; an unknown segment or loss.

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
    if inconclusive is not None:
        check_choice(inconclusive, "inconclusive", ("pass", "fail"))
    known = read_gold(gold)
    qrels, sides = known.qrels, {}
    for name, source in (("new", new), ("baseline", baseline)):
        sides[name] = _as_run(source, known, collapse)
    notes = _notes(qrels.query_ids.tolist(), sides)
    judged = {name: judge_run(qrels, run) for name, run in sides.items()}
    judgements = judged["new"][0]

    def values(by: Measure, name: str) -> np.ndarray:
        (own,) = over_topics({by.name: by}, "all").values()
        own.check_mean()
        return own.per_query(*judged[name])

    parsed = parse_measure(measure, convention)
    ours, theirs = values(parsed, "new"), values(parsed, "baseline")
    loss, both = failing_loss(theirs, ours, parsed), ~np.isnan(ours + theirs)
    identical = np.array_equal(ours, theirs, equal_nan=True)
    if (
        loss is not None
        and inconclusive is None
        and not identical
        and margin <= (least := least_margin(loss, both.sum()))
    ):
        raise InvalidInputError(
            f"with {counted(int(both.sum()), 'query')}, even equal systems do not pass at margin={margin:g}; a margin "
            f"above {least:.4g}, or {least_queries(loss, margin)} queries, are required",
            argument="margin",
            value=margin,
            remedies=[Remedy("to run the gate nevertheless", inconclusive="pass")],
        )
    floors = _floors(at_least or {}, at_most or {}, lambda text: values(parse_measure(text, convention), "new"), judged)
    look = _look(history, judgements, parsed.name, (ours, theirs), (margin, at_least, at_most, looks))
    found = decide_gate(
        ours, theirs, margin, segments=_masks(segments, known, judgements.query_ids), floors=floors, looks=looks,
        look=look, measure=parsed, query_ids=judgements.query_ids.tolist(), random_state=random_state,
    )  # fmt: skip
    about = {"measure": parsed.name, "convention": parsed.convention, **found.about}
    about["digests"] = {"gold": _digest(known), **{name: _digest(run) for name, run in sides.items()}}
    notes = [f"{parsed.name}, convention {parsed.convention}", *notes, *found.notes]
    if history is None and looks == 1:
        notes.append("looks at these queries are not counted; a file of looks counts them (history)")
    return replace(found, about=about, notes=notes, inconclusive=inconclusive)


def gate_of(
    experiment: Any,
    margin: float = 0.02,
    *,
    at_least: Mapping[str, float] | None = None,
    looks: int = 1,
    history: History | None = None,
    inconclusive: str | None = None,
    random_state: RandomState = None,
) -> Gate:
    """Return the gate of an `Experiment` of two systems, by its first measure; see `gate` for the arguments."""
    others = [name for name in experiment.judged if name != experiment.baseline]
    if len(others) != 1:
        raise InvalidInputError(f"a gate is about two systems, got {1 + len(others)}; name two", code="two-systems")
    judged, measure = experiment.judged[others[0]], next(iter(experiment.measures.values())).check_mean()
    ours, theirs = (measure.per_query(*experiment.judged[name]) for name in (others[0], experiment.baseline))
    check_order(experiment.found)
    floors = []
    for name, bound in (at_least or {}).items():
        by = parse_measure(name, experiment.convention)
        floors.append(Floor(f"{name} at least {bound:g}", by.per_query(*judged), float(bound), measure=by))
    labels = None if experiment.segments is None else experiment.segment_names()
    masks = {} if labels is None else {str(label): labels == label for label in sorted(set(labels.tolist()))}
    look = _look(history, judged[0], measure.name, (ours, theirs), (margin, at_least, looks))
    found = decide_gate(
        ours, theirs, margin, segments=masks, floors=floors, looks=looks, look=look, measure=measure,
        query_ids=experiment.query_ids.tolist(), random_state=random_state,
    )  # fmt: skip
    about = {"measure": measure.name, "convention": measure.convention, "new": others[0], **found.about}
    about["baseline"] = experiment.baseline
    notes = [f"{measure.name}, convention {measure.convention}", *found.notes]
    result = replace(found, about=about, notes=notes, inconclusive=inconclusive)
    forbids = [remark for remark in experiment.remarks if remark.severity == FORBIDS]
    if forbids:
        result = replace(result, verdict=INCONCLUSIVE, reason=f"no verdict on {forbids[0].text}", needed=None)
    object.__setattr__(result, "experiment", experiment)
    return result


def _look(history: History | None, judgements: Any, name: str, values: Any, options: tuple[Any, ...]) -> int:
    """Return the number of this look at the queries, and count it."""
    if history is None:
        return 1
    digests = judgement_digests(judgements)
    results = results_digest({name: dict(zip(("new", "baseline"), values))}, "gate", *options)
    look = history.look(digests, results)
    history.count(digests, results)
    return look


def _as_run(source: object, gold: GoldSet, collapse: Any) -> Run:
    if gold.spans:
        return as_run(as_scores(matched_spans(source, gold)))
    lists = read_results(source)
    return as_run(as_scores(lists if collapse is None else collapsed(lists, collapse)))


def _notes(queries: list[str], sides: Mapping[str, Run]) -> list[str]:
    notes, wanted = [], set(queries)
    for name, run in sides.items():
        there = set(run.query_ids.tolist())
        if not there & wanted:
            raise InvalidInputError(
                f"no query of the gold set is in the results of {name}; they do not belong together"
            )
        if lacking := len(wanted - there):
            notes.append(f"{name}: {counted(lacking, 'query')} of the gold set without a result, which count 0")
        if others := len(there - wanted):
            notes.append(f"{name}: {counted(others, 'query')} that the gold set lacks, which are left out")
    return notes


def _floors(
    at_least: Mapping[str, float],
    at_most: Mapping[str, float],
    values: Callable[[str], np.ndarray],
    judged: Mapping[str, Any],
) -> list[Floor]:
    floors = [
        Floor(f"{name} at least {bound:g}", values(name), float(bound), measure=parse_measure(name))
        for name, bound in at_least.items()
    ]
    answered = judged["new"][0].sizes > 0
    for name, bound in at_most.items():
        kind, _, depth = name.partition("@")
        if kind not in _LOSSES or (depth and (kind != "no-relevant" or not depth.isdecimal())):
            raise InvalidInputError(
                f"unknown loss {name!r}; at_most has no-relevant@K, no-relevant and unanswered", argument="at_most"
            )
        first = np.nan_to_num(values(f"RR@{depth}" if depth else "RR")) > 0
        loss = np.where(answered, 1.0 - first, np.nan)
        if kind == "unanswered":
            loss = np.where(best_grade(judged["new"][0]) > 0, 1.0 - answered, np.nan)
        floors.append(Floor(f"{name} at most {bound:g}", loss, float(bound), most=True))
    return floors


def _masks(segments: Any, gold: GoldSet, query_ids: np.ndarray) -> dict[str, np.ndarray]:
    if segments is None:
        return {}
    if isinstance(segments, str):
        if segments not in gold.segments:
            known = ", ".join(gold.segments) or "none"
            raise InvalidInputError(
                f"the gold set has no field {segments!r} for segments; its fields are: {known}", argument="segments"
            )
        labels: Mapping[Any, Any] = gold.segments[segments]
    else:
        labels = {str(query): str(label) for query, label in segments.items()}
    own = np.array([labels.get(str(query), "") for query in query_ids.tolist()])
    return {str(label): own == label for label in sorted(set(own.tolist()) - {""})}


def _digest(value: GoldSet | Run) -> str:
    from truerank.core.digests import content_digest

    if isinstance(value, GoldSet):
        return content_digest([value.qrels.by_topic(value.qrels.grades), value.segments])
    return content_digest(value.by_topic(value.scores))
