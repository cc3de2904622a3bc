"""Evaluate several measures on one set of scores, sharing the sort."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from truerank.core.checks import as_array, check_choice
from truerank.core.errors import InvalidInputError
from truerank.core.names import repeated, resolve
from truerank.core.printing import counted, plain, styled_table
from truerank.core.results import Result, data_frame
from truerank.core.types import ArrayLike, MeasureLike
from truerank.data.grouping import queries_with_mixed_ties
from truerank.data.ranking_data import Judgements, RankingData
from truerank.data.remarks import FORBIDS
from truerank.io.lists import is_ranked
from truerank.io.trec import Qrels, as_qrels, as_run, judge_run, run_name, unlike_names
from truerank.measures.base import Measure, mean_of
from truerank.measures.conventions import CONVENTIONS
from truerank.measures.coverage import over_topics
from truerank.measures.derived import SMALLEST, as_read, hits_of
from truerank.measures.names import parse_measures
from truerank.measures.ranking import Ranking


class Evaluation(Result, dict[str, float]):
    """The mean of each measure by name, with the data for reports.

    `measures` has the measures by name, and `per_query` their values (m,), in the order of `query_ids`, with NaN for
    skipped queries. `empty` counts queries without a document of positive grade, and `missing_topics` counts judged
    queries without a ranked document. `note` follows the printed means: rows without `qid` were evaluated as one query,
    or how fractional grades were read. `name` is the name of the system.
    """

    KIND = "evaluation"
    name = ""

    def __init__(self, measures: dict[str, Measure], convention: str, ranking: Ranking) -> None:
        judgements = ranking.judgements
        if judgements.n_rows == 0:
            lacks = " (the run and the qrels share no topic). Use the same topic ids in both"
            raise InvalidInputError(
                f"there is nothing to evaluate: no ranked document{lacks if judgements.n_queries else ''}",
                code="nothing",
            )
        self.measures, self.convention, self._ranking = measures, convention, ranking
        self.per_query: dict[str, np.ndarray] = {}
        for name, measure in measures.items():
            self.per_query[name] = measure.values(ranking)
            self[name] = measure.aggregate(self.per_query[name])
        self.judgements, self.query_ids = judgements, judgements.query_ids
        self.n_queries = judgements.n_queries
        self.empty = int(np.count_nonzero(hits_of(judgements, SMALLEST).total == 0))
        self.missing_topics = int(np.count_nonzero(np.diff(judgements.offsets) == 0))

    @cached_property
    def note(self) -> str:
        fractions = _note_of_fractions(self.measures, self.judgements, self.scores)
        return "; ".join(filter(None, (getattr(self.experiment, "note", ""), fractions)))

    @property
    def scores(self) -> np.ndarray:
        """The scores (n,), in the row order of the judgements."""
        return self._ranking.scores[0]

    def to_frame(self, *, per_query: bool = False) -> Any:
        """Return a pandas data frame with one row of means, or with one row for each query (`per_query`)."""
        return data_frame(self.per_query, self.query_ids, "query_id") if per_query else data_frame([dict(self)])

    def __repr__(self) -> str:
        return dict.__repr__(self) + (self.note and f" ({self.note})")

    def __str__(self) -> str:
        return "\n\n".join(filter(None, (super().__str__(), self.note)))

    @property
    def summary(self) -> str:
        """A sentence with the mean of the first measure, its interval and, unless all topics count, the topics."""
        name, forbids = next(iter(self)), [one for one in self.remarks if one.severity == FORBIDS]
        text = f"No verdict: {forbids[0].text}. " if forbids else ""
        text += f"{name} of {self.name}" if self.name else name
        text += f" is {self[name]:.4f}"
        interval = self.intervals().get(name)
        if interval is not None:
            text += f" (95 % interval {interval[0]:.4f} to {interval[1]:.4f})"
        coverage = getattr(self.experiment, "coverage", None)
        text += f" over {counted(self.n_queries - self.missing_topics, 'query')}"
        return f"{text}; {coverage}." if coverage is not None and self.missing_topics else f"{text}."

    def intervals(self) -> dict[str, tuple[float, float]]:
        """Return Student's 95 % interval of each mean; None for counts, equal values and a single query."""
        of, found = resolve("truerank.significance.intervals:measure_interval"), {}
        for name, values in self.per_query.items():
            interval = of(self.measures[name], values)
            if interval.low == interval.low:
                found[name] = (interval.low, interval.high)
        return found

    def judged_shares(self) -> dict[str, float]:
        """Return the mean share of judged documents up to the cutoff of each measure, or {} if all are judged."""
        if self.judgements.known.all():
            return {}
        shares = resolve("truerank.significance.unjudged:judged_shares")
        one = {"": self._ranking}
        return {name: mean_of(shares(measure, one)[""]) for name, measure in self.measures.items()}

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """Return the JSON object that `truerank evaluate` prints, with the values of each query on request."""
        found = super().to_dict()
        if per_query:
            names = list(map(str, self.query_ids.tolist()))
            for name, values in self.per_query.items():
                found["measures"][name]["per_query"] = dict(zip(names, plain(values)))
        return found

    def _figures(self) -> dict[str, Any]:
        ties, expected, empty = self.tie_range(), self.tie_expected(), self.empty_by_measure()
        intervals, judged, measures = self.intervals(), self.judged_shares(), {}
        for name, mean in self.items():
            low, high = ties[name] or (None, None)
            entry: dict[str, Any] = {"mean": mean, "lowest": low, "highest": high, "expected": expected[name]}
            entry |= {"empty": empty[name], "convention": self.measures[name].convention}
            for key, values in (("interval", intervals), ("judged", judged)):
                if name in values:
                    entry[key] = values[name]
            if (largest := getattr(self.measures[name], "largest", None)) is not None:
                entry["max_grade"] = largest(self.judgements)
            measures[name] = entry
        return {
            "system": self.name,
            "convention": self.convention,
            "queries": self.n_queries,
            "empty": self.empty,
            "missing_topics": self.missing_topics,
            "tied": self.tied_queries(),
            "measures": measures,
        }

    def _table(self, style: str) -> str:
        note = f"<p>{self.note}</p>" if style == "html" and self.note else ""
        return styled_table([list(self.values())], list(self), style) + note

    def empty_by_measure(self) -> dict[str, int]:
        """Return the number of queries without relevant documents, in which each measure is undefined."""
        return {name: measure.count_empty(self.judgements) for name, measure in self.measures.items()}

    def tied_queries(self) -> int:
        """Return the number of queries in which documents of different grades have the same score."""
        mixed = queries_with_mixed_ties(self._ranking.scores[0], self.judgements.grades, self.judgements.offsets)
        return int(np.count_nonzero(mixed))

    def tie_expected(self) -> dict[str, float | None]:
        """Return the expected mean of each measure over all orders of tied documents, or None without a closed form.

        A geometric mean (GMAP) has no closed form. `tau` does not depend on the order of tied documents.
        """
        return {
            name: measure.aggregate(measure(ties="average").values(self._ranking))
            if measure.TIE_AVERAGE and measure.AGGREGATE != "geometric"
            else None
            for name, measure in self.measures.items()
        }

    def tie_range(self) -> dict[str, tuple[float, float] | None]:
        """Return the lowest and the highest mean of each measure over the orders of tied documents.

        The extremes have tied documents in ascending and in descending order of grade. The range is None for measures
        that may fall when a better grade moves up: infAP, Accuracy@k, Judged, nDCG and DCG with `gains`, and functions.
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


class Evaluations(Result, dict[str, Evaluation]):
    """The evaluations of several systems over equal judgements, by name."""

    KIND = "evaluations"

    @property
    def summary(self) -> str:
        """A sentence about the system with the best mean of the first measure."""
        first = next(iter(self.values()))
        name = next(iter(first))
        sign = 1.0 if first.measures[name].higher_is_better else -1.0
        best = max(self, key=lambda system: sign * self[system][name])
        coverage = getattr(self.experiment, "coverage", None)
        over = f"; {coverage}" if coverage is not None and coverage.used < coverage.qrels else ""
        several = f"{best} has the best mean of {counted(len(self), 'system')}: {name}"
        which = several if len(self) > 1 else f"{name} of {best}"
        return f"{which} is {self[best][name]:.4f} over {counted(first.n_queries, 'query')}{over}."

    def to_frame(self, *, per_query: bool = False) -> Any:
        """Return a pandas data frame with one row for each run, or for each run and query (`per_query`)."""
        if not per_query:
            return data_frame([dict(one) for one in self.values()], list(self), "run").astype(float)
        frames = {name: one.to_frame(per_query=True) for name, one in self.items()}
        return resolve("pandas:concat")(frames, names=["run"])

    def _figures(self) -> dict[str, Any]:
        first = next(iter(self.values()))
        shared = ("convention", "queries", "empty")
        each = {name: one._figures() for name, one in self.items()}
        return {key: each[first.name][key] for key in shared} | {"systems": each}

    def _table(self, style: str) -> str:
        first = next(iter(self.values()))
        return styled_table([[name, *one.values()] for name, one in self.items()], ["run", *first], style)


class ConvertedClaim(dict[str, float]):
    """The mean of a measure on one ranking under each convention, with the stated convention first.

    `evaluations` has the details, and `refused` the reason of each convention that has no value for these grades.
    """

    def __init__(self, measure: str, evaluations: dict[str, Evaluation], refused: dict[str, str]) -> None:
        super().__init__({name: next(iter(one.values())) for name, one in evaluations.items()})
        self.measure, self.evaluations, self.refused = measure, evaluations, refused


def convert_claim(
    y: Any,
    scores: Any,
    measure: MeasureLike = "nDCG@10",
    *,
    stated: str | None = None,
    qid: ArrayLike | None = None,
    topics: str | None = None,
) -> ConvertedClaim:
    """Return the mean of a measure under every convention: what trec_eval, LightGBM, CatBoost, … print for a ranking.

    Parameters
    ----------
    y : grades (n,) with `qid`, RankingData or Judgements; or Qrels, a path, or `{topic: {document: grade}}`
    scores : array (n,); or with qrels a Run, a path, or `{topic: {document: score}}`
    measure : str or Measure, default "nDCG@10"
        Settings in the name (`nDCG(gain="linear")@10`) are kept under every convention.
    stated : str, optional
        The convention to put first.
    qid : array-like (n,), optional
    topics : {"common", "all"}, optional
        As in `evaluate` with qrels: topics that all runs have, or all topics, where a missing topic counts 0. By
        default, each convention applies its own rule.

    Notes
    -----
    The ranking is required because conventions treat empty queries, short lists and ties differently in each query.

    Examples
    --------
    >>> qrels, run = {"1": {"a": 2, "b": 1}, "2": {"c": 0}}, {"1": {"b": 9.0, "a": 8.0}, "2": {"c": 1.0}}
    >>> found = convert_claim(qrels, run, "nDCG@10")
    >>> {name: round(value, 3) for name, value in found.items() if name in ("trec", "ranklib", "lightgbm")}
    {'trec': 0.43, 'ranklib': 0.398, 'lightgbm': 0.898}
    """
    if stated is not None:
        check_choice(stated, "stated", CONVENTIONS)
    if is_qrels(y):
        judgements, values = judge_run(as_qrels(y), as_run(scores))
    else:
        judgements, order = judged(y, qid)
        values = scores_in_order(scores, judgements, order)
    ranking = Ranking(judgements, values)
    names = list(CONVENTIONS) if stated is None else [stated, *(name for name in CONVENTIONS if name != stated)]
    evaluations, refused = {}, {}
    for name in names:
        try:
            parsed = parse_measures(measure, name)
            parsed = parsed if topics is None else over_topics(parsed, topics)
            evaluations[name] = Evaluation(parsed, name, ranking)
        except InvalidInputError as error:
            if name in (stated, names[-1]) and not evaluations:
                raise
            refused[name] = str(error)
    return ConvertedClaim(next(iter(next(iter(evaluations.values())))), evaluations, refused)


def _note_of_fractions(parsed: dict[str, Measure], judgements: Judgements, scores: np.ndarray) -> str:
    """Return a note on fractional grades, or "" without such grades or with the usual treatment."""
    if as_read(judgements, "truncated") is None:
        return ""
    rules = {measure.setting("grades"): measure.convention for measure in parsed.values()}
    if "truncated" not in rules and "ranklib" in rules.values():
        return "grades have fractions, which convention 'ranklib' keeps, but the program RankLib truncates"
    if "truncated" not in rules:
        return ""
    note = f"{rules['truncated']} truncates fractional grades, as trec_eval does: 0.5 counts as 0"
    whole = len(scores) and np.isin(scores, np.arange(-2, 6)).all()
    return note + ("; the scores are whole numbers like grades: were qrels and run swapped?" if whole else "")


def is_qrels(y: object) -> bool:
    """Return whether the argument has judgements by query and document, rather than grades of rows."""
    if isinstance(y, Judgements | RankingData | np.ndarray):
        return False
    if isinstance(y, list | tuple):
        return len(y) > 0 and hasattr(y[0], "query_id")
    is_frame = hasattr(y, "columns") and getattr(y, "ndim", 2) == 2  # a series of Dask has columns, too
    is_file = isinstance(y, str | os.PathLike) or hasattr(y, "read")
    return is_frame or is_file or isinstance(y, Qrels | Mapping) or type(y).__module__.partition(".")[0] == "ranx"


def runs_by_name(runs: object) -> dict[str, Any] | None:
    """Read several runs from a dict or list and return them by name; return None for a single run."""
    named = named_runs(runs)
    return None if named is None else {name: as_run(run, name) for name, run in named.items()}


def named_runs(runs: object) -> dict[str, Any] | None:
    """Return several runs by name, unread, from a dict or list of runs; return None for a single run."""
    if isinstance(runs, Mapping):
        if any(map(is_ranked, runs.values())):
            return None  # {query: [document, …]}
        first = next(iter(runs.values()), None)
        if isinstance(first, Mapping) and not any(isinstance(own, Mapping) or is_ranked(own) for own in first.values()):
            return None  # {query: {document: score}}
        return {str(name): run for name, run in runs.items()}
    if not isinstance(runs, list | tuple) or not runs or hasattr(runs[0], "query_id"):
        return None
    names = [
        run_name(os.fspath(run))
        if isinstance(run, str | os.PathLike)
        else str(getattr(run, "tag", None) or getattr(run, "name", None) or f"run {place}")
        for place, run in enumerate(runs, 1)
    ]
    return named_list(runs, names)


def named_list(systems: Sequence[Any], names: list[str]) -> dict[str, Any]:
    """Return systems by name; if two names are equal, files have their paths as names."""
    paths = [os.fspath(one) if isinstance(one, str | os.PathLike) else None for one in systems]
    named = dict(zip(unlike_names(names, paths), systems))
    if len(named) < len(systems):
        raise InvalidInputError(
            f"two of the systems are called {repeated(names)[0]!r}", remedies=["give a dict by name"], code="same-name"
        )
    return named


def judged(
    y: ArrayLike, qid: ArrayLike | None = None, doc_ids: ArrayLike | None = None
) -> tuple[Judgements, np.ndarray | None]:
    """Return Judgements from grades, RankingData or Judgements, and the order of the caller's rows in them."""
    if isinstance(y, Judgements | RankingData):
        if qid is not None or doc_ids is not None:
            raise InvalidInputError(
                f"{type(y).__name__} has its own queries and document ids. Omit qid and doc_ids", argument="qid"
            )
        return (y, None) if isinstance(y, Judgements) else (y.judgements(), y.order)
    judgements, grouping = Judgements.from_labels(y, qid, doc_ids=doc_ids)
    return judgements, grouping.order


def scores_in_order(
    scores: ArrayLike, judgements: Judgements, order: np.ndarray | None, name: str = "scores"
) -> np.ndarray:
    """Check the length of the scores of one ranking and return them in the row order of the judgements."""
    values = as_array(scores, name)
    if values.shape != (judgements.n_rows,):
        raise InvalidInputError(
            f"{name} must have one entry for each row, shape ({judgements.n_rows},), got {values.shape}", argument=name
        )
    return values if order is None else values[order]
