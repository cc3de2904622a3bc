"""The functions `evaluate`, `compare` and `explain_measure`, which create an experiment for one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.types import (
    ArrayLike,
    Convention,
    Correction,
    MeasureLike,
    MeasuresLike,
    OneSystem,
    Pairs,
    RandomState,
    Systems,
    Test,
    Topics,
    TrainingRule,
)
from truerank.experiments.experiment import Experiment
from truerank.measures import parse_measure
from truerank.measures.evaluation import Evaluation, Evaluations
from truerank.measures.expected_reciprocal_rank import ExpectedReciprocalRank
from truerank.measures.measure_explanation import MeasureExplanation

if TYPE_CHECKING:
    from truerank.significance.tables import Comparison, Comparisons


class Given(TypedDict, total=False):
    """Arguments of an `Experiment`."""

    convention: Convention | None
    topics: Topics | None
    training_queries: TrainingRule
    collapse: Any
    qid: ArrayLike | None
    doc_ids: ArrayLike | None


class Compared(Given, total=False):
    """Arguments of an `Experiment` and its `compare`."""

    baseline: str | None
    test: Test
    correction: Correction | None
    margin: float | None
    pairs: Pairs
    history: Any
    random_state: RandomState
    rope: float | None
    cite: bool
    segments: str | Mapping[Any, Any] | ArrayLike | None


@overload
def evaluate(
    judgements: Any, systems: OneSystem, measures: MeasuresLike = ..., **options: Unpack[Given]
) -> Evaluation: ...


@overload
def evaluate(
    judgements: Any, systems: Systems, measures: MeasuresLike = ..., **options: Unpack[Given]
) -> Evaluations: ...


def evaluate(
    judgements: Any,
    systems: Any,
    measures: MeasuresLike = "nDCG@10",
    *,
    convention: Convention | None = None,
    topics: Topics | None = None,
    training_queries: TrainingRule = "leave out",
    collapse: Any = None,
    qid: ArrayLike | None = None,
    doc_ids: ArrayLike | None = None,
) -> Evaluation | Evaluations:
    """Evaluate one system or several: scores against relevance grades, or runs against qrels.

    This is `Experiment(judgements, systems, measures, …).evaluate()`; see `Experiment` for the arguments. Scores and
    grades are in any row order; for RankingData, in the order of its source rows, and for Judgements in the order of
    their (grouped) rows. Without `qid`, grades belong to a single query (as the result says) of at most 1,000 rows.

    Raises
    ------
    InvalidInputError
        Without a ranked document, for several runs with different topics without `topics`, for unknown measures, and
        for arrays of different lengths.

    Returns
    -------
    Evaluation, or Evaluations by name of systems in a mapping or list
        A dict of means by name, with `.per_query`, counts, `.remarks`, `.to_frame()`, `.to_markdown()`, `.to_dict()`.

    Examples
    --------
    >>> result = evaluate([1, 0, 0, 1], [0.1, 0.9, 0.5, 0.4], "AP nDCG@10", qid=[7, 7, 8, 8])
    >>> result["AP"], result.per_query["AP"].tolist(), result.query_ids.tolist()
    (0.5, [0.5, 0.5], [7, 8])
    >>> qrels = {"7": {"a": 1, "b": 0}}
    >>> print(evaluate(qrels, {"good": {"7": {"a": 2.0, "b": 1.0}}, "bad": {"7": {"b": 2.0, "a": 1.0}}}, "RR"))
    good has the best mean of 2 systems: RR is 1.0000 over 1 query.
    <BLANKLINE>
    run       RR
    ----  ------
    good  1.0000
    bad   0.5000
    """
    experiment = Experiment(
        judgements, systems, measures, convention=convention, topics=topics, training_queries=training_queries,
        collapse=collapse, qid=qid, doc_ids=doc_ids,
    )  # fmt: skip
    found = experiment.evaluate()
    if experiment.several:
        return found
    (one,) = found.values()
    one.name = ""
    return one


@overload
def compare(
    judgements: Any, systems: Any, measures: list[Any] | tuple[Any, ...], **options: Unpack[Compared]
) -> Comparisons: ...


@overload
def compare(
    judgements: Any, systems: Any, measures: MeasuresLike = ..., **options: Unpack[Compared]
) -> Comparison | Any: ...


def compare(
    judgements: Any,
    systems: Any,
    measures: MeasuresLike = "nDCG@10",
    *,
    baseline: str | None = None,
    convention: Convention | None = None,
    topics: Topics | None = None,
    training_queries: TrainingRule = "leave out",
    test: Test = "randomisation",
    correction: Correction | None = None,
    margin: float | None = None,
    pairs: Pairs = "baseline",
    history: Any = None,
    random_state: RandomState = 0,
    rope: float | None = None,
    cite: bool = False,
    segments: str | Mapping[Any, Any] | ArrayLike | None = None,
    collapse: Any = None,
    qid: ArrayLike | None = None,
    doc_ids: ArrayLike | None = None,
) -> Comparison | Comparisons | Any:
    """Compare systems over the same judged queries by paired tests.

    This is `Experiment(judgements, systems, measures, …).compare(…)`; both document the arguments.

    Returns
    -------
    Comparison, or Comparisons of several measures by name
        Type checkers infer Comparisons if the measures are a list.

    Examples
    --------
    >>> y, qid = [1, 0, 1, 0, 1, 0], [1, 1, 2, 2, 3, 3]
    >>> result = compare(y, {"old": [1, 2, 1, 2, 1, 2], "new": [2, 1, 2, 1, 1, 2]}, "RR", qid=qid)
    >>> pair = result.pairs[0]
    >>> pair.a, pair.b, pair.wins, pair.losses, pair.ties
    ('new', 'old', 2, 0, 1)
    >>> compare(y, {"old": [1] * 6, "new": y}, "RR P@1", qid=qid)["P@1"].means["new"]
    1.0
    """
    experiment = Experiment(
        judgements, systems, measures, baseline=baseline, convention=convention, topics=topics,
        training_queries=training_queries, segments=segments, collapse=collapse, qid=qid, doc_ids=doc_ids,
    )  # fmt: skip
    return experiment.compare(
        test=test,
        correction=correction,
        margin=margin,
        pairs=pairs,
        history=history,
        random_state=random_state,
        rope=rope,
        cite=cite,
    )


def explain_measure(
    judgements: object, system: object, measure: MeasureLike, *, query: object, convention: Convention | None = None
) -> MeasureExplanation:
    """Explain the value of a query by the grade and contribution of each rank; for nDCG also by gain and discount.

    Parameters
    ----------
    judgements, system : as for `evaluate`: qrels and a run, or judged rows (a frame, a file) and scores or a model
    measure : str or Measure
    query : topic, compared as text
    convention : str, optional
        By default that of `evaluate`: "trec" for qrels, and "ranklib" for judged rows.

    Raises
    ------
    InvalidInputError
        If the run or the qrels lack the query.

    Notes
    -----
    The contribution of a rank is the value of the list that ends with it, minus the value of the list before it. Later
    documents count as not retrieved, and an undefined value as 0. The contributions therefore add up to the value of
    the measure. The cost is one evaluation for each rank. If ties are averaged (`ties="average"`), the ranks are in the
    order of the document ids, and the last rank has the remainder.

    Examples
    --------
    >>> explained = explain_measure({"7": {"a": 1, "c": 2, "x": 2}}, {"7": {"a": 3, "b": 2, "c": 1}}, "nDCG@2", query=7)
    >>> round(explained.value, 4), [(rank.doc_id, rank.gain, round(rank.gained, 4)) for rank in explained.ranks]
    (0.3066, [('a', 1.0, 0.3066), ('b', 0.0, 0.0), ('c', 2.0, 0.0)])
    """
    given = Experiment(judgements, {"system": system}, measure, convention=convention, training_queries="keep")
    parsed = parse_measure(measure, given.convention)
    ((judged, scores),) = given.judged.values()
    name = str(query)
    places = np.flatnonzero(np.asarray(judged.query_ids, dtype=str) == name)
    if not len(places) or judged.offsets[places[0]] == judged.offsets[places[0] + 1]:
        where = "the qrels lack this query" if not len(places) else "the run has no document for this query"
        raise InvalidInputError(
            f"query {name!r} cannot be explained: {where}. Choose a query such as "
            f"{', '.join(map(str, judged.query_ids[:3]))}",
            argument="query",
        )
    if isinstance(parsed, ExpectedReciprocalRank):  # the largest grade of all queries
        parsed = parsed(max_grade=parsed.largest(judged))
    one, rows = judged.take_queries(places)
    return MeasureExplanation(parsed, name, one, scores[rows])
