"""Evaluate several measures on one set of scores, sharing the sort."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.core.checks import as_array, check_choice
from truerank.core.errors import InvalidInputError
from truerank.core.printing import Tabular, styled_table
from truerank.core.types import ArrayLike, MeasureLike, MeasuresLike
from truerank.data.grouping import queries_with_mixed_ties
from truerank.data.ranking_data import Judgements, RankingData
from truerank.data.row_source import RowSource
from truerank.io.trec import Qrels, as_qrels, as_run, judge_run, run_name
from truerank.measures.base import Measure
from truerank.measures.conventions import CONVENTIONS, DEFAULT_CONVENTION
from truerank.measures.coverage import check_topics, over_topics, settle_topics
from truerank.measures.derived import as_read, best_grade
from truerank.measures.names import parse_measures
from truerank.measures.ranking import Ranking


class Evaluation(Tabular, dict[str, float]):
    """Mean of each measure by name, with the data for reports.

    `measures` has the measures by name, `per_query` their values (m,), NaN for skipped queries, in the order of
    `query_ids`. `empty` counts queries without a document of positive grade, `missing_topics` queries with judgements
    but without a ranked document. `note` is printed after the means: that rows without `qid` were evaluated as one
    query, how fractional grades were read, or "".
    """

    note = ""

    def __init__(self, measures: dict[str, Measure], convention: str, ranking: Ranking) -> None:
        judgements = ranking.judgements
        self.measures, self.convention = measures, convention
        self.per_query: dict[str, np.ndarray] = {name: m.values(ranking) for name, m in measures.items()}
        super().__init__({name: measures[name].aggregate(values) for name, values in self.per_query.items()})
        self.judgements, self.query_ids = judgements, judgements.query_ids
        self.n_queries = judgements.n_queries
        self.empty = int(np.count_nonzero(best_grade(judgements) <= 0))
        self.missing_topics = int(np.count_nonzero(np.diff(judgements.offsets) == 0))
        self._ranking = ranking

    @property
    def scores(self) -> np.ndarray:
        """The scores (n,), in the order of the judgements' rows."""
        return self._ranking.scores[0]

    def to_frame(self, *, per_query: bool = False) -> Any:
        """Return a pandas data frame with one row of means, or with one row for each query (`per_query`)."""
        pandas = _pandas()
        if per_query:
            return pandas.DataFrame(self.per_query, index=pandas.Index(self.query_ids, name="query_id"))
        return pandas.DataFrame([dict(self)])

    def __repr__(self) -> str:
        return dict.__repr__(self) + (self.note and f" ({self.note})")

    __str__ = __repr__

    def _table(self, style: str) -> str:
        note = f"<p>{self.note}</p>" if style == "html" and self.note else ""
        return styled_table([list(self.values())], list(self), style) + note

    def empty_by_measure(self) -> dict[str, int]:
        """Return the number of queries in which each measure is undefined without relevant documents."""
        return {name: measure.count_empty(self.judgements) for name, measure in self.measures.items()}

    def tied_queries(self) -> int:
        """Return the number of queries in which documents of different grades have the same score."""
        mixed = queries_with_mixed_ties(self._ranking.scores[0], self.judgements.grades, self.judgements.offsets)
        return int(np.count_nonzero(mixed))

    def tie_expected(self) -> dict[str, float | None]:
        """Return the expected mean of each measure over all orders of tied documents; None without a closed form.

        A geometric mean (GMAP) has none. `tau` does not depend on the order of tied documents.
        """
        return {
            name: measure.aggregate(measure(ties="average").values(self._ranking))
            if measure.TIE_AVERAGE and measure.AGGREGATE != "geometric"
            else None
            for name, measure in self.measures.items()
        }

    def tie_range(self) -> dict[str, tuple[float, float] | None]:
        """Return the lowest and the highest mean of each measure over the orders of tied documents.

        These are the means with tied documents by rising and by falling grade. None for measures that may fall when a
        better grade moves up: infAP, Accuracy@k, Judged, nDCG and DCG with `gains`, and functions of the user.
        """
        result: dict[str, tuple[float, float] | None] = {}
        for name, measure in self.measures.items():
            if not measure.rises_with_grades:
                result[name] = None
                continue
            ends = [
                measure.aggregate(measure(ties=rule).values(self._ranking)) for rule in ("pessimistic", "optimistic")
            ]
            result[name] = (min(ends), max(ends))
        return result


class Evaluations(Tabular, dict[str, Evaluation]):
    """Evaluations of several runs over the same judgements, by name."""

    def to_frame(self, *, per_query: bool = False) -> Any:
        """Return a pandas data frame with one row for each run, or for each run and query (`per_query`)."""
        pandas = _pandas()
        if not per_query:
            return pandas.DataFrame(
                [dict(one) for one in self.values()], index=pandas.Index(list(self), name="run"), dtype=float
            )
        return pandas.concat({name: one.to_frame(per_query=True) for name, one in self.items()}, names=["run"])

    def _table(self, style: str) -> str:
        first = next(iter(self.values()))
        return styled_table([[name, *one.values()] for name, one in self.items()], ["run", *first], style)


def evaluate(
    measures: MeasuresLike,
    y: Any = None,
    scores: Any = None,
    *,
    qrels: object = None,
    run: object = None,
    qid: ArrayLike | None = None,
    doc_ids: ArrayLike | None = None,
    convention: str | None = None,
    topics: str | None = None,
) -> Any:
    """Evaluate scores against relevance grades, or runs against qrels.

    Parameters
    ----------
    measures : str, Measure, or a sequence of these
        For example `"AP nDCG@10"` or `[AP(rel=2), nDCG @ 10]`.
    y : array-like (n,), RankingData or Judgements; or qrels
        Grades in any row order; scores are in the same order. For RankingData this is the order of the rows from which
        it was made, for Judgements the order of their (grouped) rows. Qrels are a path, `Qrels`, `{query: {document:
        grade}}`, a data frame (columns such as query_id, doc_id, relevance), or an object of ranx or ir_measures.
    scores : array-like (n,); with qrels a run, or a list or dict by name of runs
        Higher is better. A run is a path, a `Run`, `{query: {document: score}}`, a frame (query_id, doc_id, score),
        or an object of ranx or ir_measures. Runs in a list are named by their files or tags.
    qrels, run
        Other names of `y` and `scores`, for qrels and runs.
    qid : array-like (n,), optional
        Query of each row. None means a single query (the printed result says so) and must have at most 1,000 rows.
    doc_ids : array-like (n,) of str, optional
        Used to break ties under `trec`.
    convention : str, optional
        Convention for settings that the names do not give, by default ranklib for rows and trec for runs. Names of
        trec_eval always have the convention trec.
    topics : "common", "all" or None, default None
        Topics of the means of runs. The default is the topics of both the run and the qrels; "all" means all
        topics of the qrels, and a topic that the run lacks has the value 0 (trec_eval -c). Several runs with different
        topics require a choice; "common" means the topics of all runs.

    Raises
    ------
    InvalidInputError
        Without a ranked document, on several runs with different topics without `topics`, on unknown measures, and on
        arrays of different lengths.

    Returns
    -------
    Evaluation, or Evaluations of several runs by name
        A dict of means by name, with `.per_query`, counts, `.to_frame()`, `.to_markdown()` and `.to_latex()`.

    >>> result = evaluate("AP nDCG@10", [1, 0, 0, 1], [0.1, 0.9, 0.5, 0.4], qid=[7, 7, 8, 8])
    >>> result["AP"], result.per_query["AP"].tolist(), result.query_ids.tolist()
    (0.5, [0.5, 0.5], [7, 8])
    >>> qrels = {"7": {"a": 1, "b": 0}}
    >>> print(evaluate("RR", qrels, {"good": {"7": {"a": 2.0, "b": 1.0}}, "bad": {"7": {"b": 2.0, "a": 1.0}}}))
    run       RR
    ----  ------
    good  1.0000
    bad   0.5000
    """
    check_topics(topics)
    y, scores = _either("y", y, "qrels", qrels), _either("scores", scores, "run", run)
    if not isinstance(measures, str) and is_qrels(measures):
        raise InvalidInputError(
            "evaluate(measures, qrels, run): the measures come first, got qrels or a run there", code="order"
        )
    if isinstance(y, RowSource):
        y, scores = y.judgements(), y.grouped_scores(scores)
    if is_qrels(y):
        if qid is not None or doc_ids is not None:
            raise InvalidInputError(
                "qrels and runs bring their own queries and documents; give no qid, doc_ids", argument="qrels"
            )
        known, runs = as_qrels(y), runs_by_name(scores)
        convention = convention or "trec"
        parsed = over_topics(parse_measures(measures, convention), topics)
        if runs is not None and len(runs):
            found = {name: judge_run(known, run) for name, run in runs.items()}
            if len(runs) > 1:
                found, _ = settle_topics(found, topics)
            return Evaluations({name: evaluate_judged(parsed, convention, *one) for name, one in found.items()})
        ranked = as_run(scores)
        if known.n_queries == 0 or ranked.n_queries == 0:
            what = "the qrels judge" if known.n_queries == 0 else "the run ranks"
            raise InvalidInputError(f"there is nothing to evaluate: {what} no document of any query", code="nothing")
        return evaluate_judged(parsed, convention, *judge_run(known, ranked))
    if topics is not None:
        raise InvalidInputError("topics= is about runs and qrels; grades and scores of rows have the same queries")
    convention = convention or DEFAULT_CONVENTION
    parsed = parse_measures(measures, convention)
    judgements, order = judged(y, qid, doc_ids)
    result = evaluate_judged(parsed, convention, judgements, scores_in_order(scores, judgements, order))
    if qid is None and not isinstance(y, Judgements | RankingData):
        alone = f"1 query of {judgements.n_rows} rows: pass qid if the rows belong to several queries"
        result.note = "; ".join(filter(None, (alone, result.note)))
    return result


class ConvertedClaim(dict[str, float]):
    """The mean of a measure on one ranking by convention, the stated one first; `evaluations` has the details.

    `refused` has the reasons of conventions that have no value for these grades, by name.
    """

    def __init__(self, measure: str, evaluations: dict[str, Evaluation], refused: dict[str, str]) -> None:
        super().__init__({name: next(iter(one.values())) for name, one in evaluations.items()})
        self.measure, self.evaluations, self.refused = measure, evaluations, refused


def convert_claim(
    y: ArrayLike,
    scores: object,
    measure: MeasureLike = "nDCG@10",
    *,
    stated: str | None = None,
    qid: ArrayLike | None = None,
    topics: str | None = None,
) -> ConvertedClaim:
    """Return a figure under every convention: what trec_eval, LightGBM, CatBoost … would print for the same ranking.

    Parameters
    ----------
    y : grades (n,) with `qid`, RankingData or Judgements; or Qrels, a path, or `{topic: {document: grade}}`
    scores : array (n,); or with qrels a Run, a path, or `{topic: {document: score}}`
    measure : str or Measure, default "nDCG@10"
        The settings that it names (`nDCG(gain="linear")@10`) are kept under every convention.
    stated : str, optional
        The convention to put first.
    qid : array-like (n,), optional
    topics : {"common", "all"}, optional
        As in `evaluate` with qrels: whether topics without scores are left out or count 0. The default is the rule of
        each convention.

    Notes
    -----
    The ranking is required, because conventions differ in empty queries, short lists and ties, query by query.

    Examples
    --------
    >>> qrels, run = {"1": {"a": 2, "b": 1}, "2": {"c": 0}}, {"1": {"b": 9.0, "a": 8.0}, "2": {"c": 1.0}}
    >>> found = convert_claim(qrels, run, "nDCG@10")
    >>> {name: round(value, 3) for name, value in found.items() if name in ("trec", "ranklib", "lightgbm")}
    {'trec': 0.43, 'ranklib': 0.398, 'lightgbm': 0.898}
    """
    if stated is not None:
        check_choice(stated, "stated", CONVENTIONS)
    grades: Any = y
    if is_qrels(y):
        grades, scores = judge_run(as_qrels(y), as_run(scores))
    names = list(CONVENTIONS) if stated is None else [stated, *(name for name in CONVENTIONS if name != stated)]
    given = grades if isinstance(grades, Judgements | RankingData) else np.asarray(grades)
    evaluations, refused = {}, {}
    for name in names:
        try:
            measures = measure if topics is None else list(over_topics(parse_measures(measure, name), topics).values())
            evaluations[name] = evaluate(measures, given, scores, qid=qid, convention=name)
        except InvalidInputError as error:
            if name in (stated, names[-1]) and not evaluations:
                raise
            refused[name] = str(error)
    return ConvertedClaim(next(iter(next(iter(evaluations.values())))), evaluations, refused)


def evaluate_judged(
    parsed: dict[str, Measure], convention: str, judgements: Judgements, scores: np.ndarray
) -> Evaluation:
    """Evaluate measures by name on scores in the order of the judgements."""
    if judgements.n_rows == 0:
        raise InvalidInputError(
            "there is nothing to evaluate: no ranked document"
            + (" (the run and the qrels share no topic)" if judgements.n_queries else ""),
            code="nothing",
        )
    result = Evaluation(parsed, convention, Ranking(judgements, scores))
    result.note = _note_of_fractions(parsed, judgements, scores)
    return result


def _note_of_fractions(parsed: dict[str, Measure], judgements: Judgements, scores: np.ndarray) -> str:
    """Return how the measures treat fractional grades; "" without such grades, or if the treatment is the usual one."""
    rules = {measure.setting("grades"): measure.convention for measure in parsed.values()}
    if not ("truncated" in rules or "ranklib" in rules.values()) or as_read(judgements, "truncated") is None:
        return ""
    if "truncated" not in rules:
        return "grades have fractions, which RankLib itself would truncate; convention 'ranklib' here does not"
    note = f"{rules['truncated']} truncates fractional grades, as trec_eval does: 0.5 counts as 0"
    whole = len(scores) and np.isin(scores, np.arange(-2, 6)).all()
    return note + ("; the scores are whole numbers like grades: were qrels and run exchanged?" if whole else "")


def _either(name: str, value: object, other: str, same: object) -> Any:
    """Return the value of an argument that has two names."""
    if (value is None) == (same is None):
        what = "neither was" if value is None else "both were"
        raise InvalidInputError(
            f"evaluate takes {name} or {other}, {what} given: evaluate(measures, qrels, run)", code="lost-argument"
        )
    return same if value is None else value


def is_qrels(y: object) -> bool:
    """Return whether these are judgements by query and document, rather than grades of rows."""
    if isinstance(y, Judgements | RankingData | np.ndarray):
        return False
    if isinstance(y, list | tuple):
        return len(y) > 0 and hasattr(y[0], "query_id")
    is_frame = hasattr(y, "columns") and getattr(y, "ndim", 2) == 2  # a series of Dask has columns, too
    is_file = isinstance(y, str | os.PathLike) or hasattr(y, "read")
    return is_frame or is_file or isinstance(y, Qrels | Mapping) or type(y).__module__.partition(".")[0] == "ranx"


def runs_by_name(runs: object) -> dict[str, Any] | None:
    """Return several runs by name from a dict or list of runs; None for a single run."""
    if isinstance(runs, Mapping):
        first = next(iter(runs.values()), None)
        if isinstance(first, Mapping) and not any(isinstance(value, Mapping) for value in first.values()):
            return None  # {query: {document: score}}
        return {str(name): as_run(run, str(name)) for name, run in runs.items()}
    if not isinstance(runs, list | tuple) or not runs or hasattr(runs[0], "query_id"):
        return None
    named: dict[str, Any] = {}
    for place, run in enumerate(runs, 1):
        if isinstance(run, str | os.PathLike):
            name = run_name(os.fspath(run))
        else:
            name = str(getattr(run, "tag", None) or getattr(run, "name", None) or f"run {place}")
        if name in named:
            raise InvalidInputError(f"two runs are called {name!r}; give a dict of runs by name")
        named[name] = as_run(run, name)
    return named


def _pandas() -> Any:
    import pandas

    return pandas


def judged(
    y: ArrayLike, qid: ArrayLike | None = None, doc_ids: ArrayLike | None = None
) -> tuple[Judgements, np.ndarray | None]:
    """Return Judgements from grades, RankingData or Judgements, and the order of the caller's rows in them."""
    if isinstance(y, Judgements | RankingData):
        if qid is not None or doc_ids is not None:
            raise InvalidInputError(
                f"{type(y).__name__} bring their own queries and document ids; give no qid, doc_ids", argument="qid"
            )
        return (y, None) if isinstance(y, Judgements) else (y.judgements(), y.order)
    judgements, grouping = Judgements.from_labels(y, qid, doc_ids=doc_ids)
    return judgements, grouping.order


def scores_in_order(
    scores: ArrayLike, judgements: Judgements, order: np.ndarray | None, name: str = "scores"
) -> np.ndarray:
    """Return the scores of one ranking in the row order of the judgements, after a check of their length."""
    values = as_array(scores, name)
    if values.shape != (judgements.n_rows,):
        raise InvalidInputError(
            f"{name} must have one entry for each row, shape ({judgements.n_rows},); got {values.shape}", argument=name
        )
    return values if order is None else values[order]
