"""Evaluate, compare and report systems over judged queries."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import PYTHON, InvalidInputError, Remedy, Wording
from truerank.core.names import resolve
from truerank.core.types import (
    ArrayLike,
    Convention,
    Correction,
    GateSettings,
    MeasuresLike,
    PageSettings,
    Pairs,
    RandomState,
    Test,
    Topics,
    TrainingRule,
)
from truerank.data.grouping import id_texts
from truerank.data.provenance import TRAINING_QUERIES, UNRECOGNISED, Provenance, settle_training
from truerank.data.remarks import Remark, in_order
from truerank.experiments.policy import (
    about_depths,
    about_topics,
    check_order,
)
from truerank.experiments.systems import Checks, are_rows, by_name, resolve_rows, resolve_runs
from truerank.measures.base import Measure, mean_of
from truerank.measures.conventions import DEFAULT_CONVENTION, QRELS_CONVENTION
from truerank.measures.coverage import (
    Coverage,
    JudgedScores,
    exceptions,
    of_queries,
    over_topics,
    settle_topics,
)
from truerank.measures.evaluation import Evaluation, Evaluations
from truerank.measures.names import parse_measures
from truerank.measures.ranking import Ranking

if TYPE_CHECKING:
    from truerank.significance.comparison import MeasuredValues
    from truerank.significance.gate import Gate
    from truerank.significance.power import PowerSettings, QueriesNeeded
    from truerank.significance.tables import Comparison

PAIRS = ("baseline", "all")


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Experiment:
    """Systems over judged queries, the input of `evaluate`, `compare`, `power` and `report`.

    All inputs are read, scored and checked once, when the object is created. The object does not change afterwards.

    Parameters
    ----------
    judgements : qrels, RankingData, RowSource, Judgements, data frame, or array-like (n,) of grades with `qid`
        Qrels are a path, `Qrels`, `{query: {document: grade}}`, a data frame, or an object of ranx or ir_measures. A
        data frame of judged rows has the columns qid and y. A path or a frame has judged rows if a system is a model, a
        file of a model or of scores, a column, or an array.
    systems : mapping of name to system, list, or one system
        Over qrels, runs: a path, a `Run`, `{query: {document: score}}`, a frame, or an object of ranx or ir_measures.
        Over rows: scores (n,) in the order of the rows, higher is better; the name of a column; a file of scores; a
        fitted ranker of any library, or a function of X; a model file (.json). "-NAME" or "NAME:ascending" states that
        the lowest number of a column or file is best, and "NAME:descending" that the highest is best. For an array, the
        name of the system may end in ":ascending" or ":descending".
    measures : str, Measure, or a sequence, default "nDCG@10"
        The first measure decides the verdict.
    baseline : str, optional
        System with which all other systems are compared; by default the first system.
    convention : str, optional
        By default ranklib for rows and trec for qrels.
    topics : "common", "all" or None, default None
        Required for runs with different topics: the topics that all runs have, or all topics of the qrels, where a
        topic that a run lacks counts 0 (trec_eval -c).
    training_queries : "leave out", "keep" or "refuse", default "leave out"
        Treatment of queries on which a model among the systems was trained. Kept queries prevent a verdict.
    segments : str, mapping or Series by query id, or array-like (n,), optional
        A column of the rows with one value in each query, a field of the gold set, or the segment of each query or row;
        see `by_segment`. `compare` also tests each segment.
    collapse : str, mapping or function, optional
        Rule that maps chunks in runs to documents: see `truerank.io.results.collapsed`.
    qid, doc_ids : array-like (n,), optional
        Query and document of each row, for grades.

    Raises
    ------
    InvalidInputError
        For systems that do not fit the judgements, for different topics without a choice, and if most queries trained a
        model.

    Attributes
    ----------
    judged : dict of name to (Judgements, scores (n,))
        Judgements and scores by system, all over the same queries.
    models : dict of name to fitted ranker
    data : the rows that models scored; None without rows
    coverage : Coverage or None
        Topics of the means of runs.
    training : Provenance or None
        Training queries of the models; None without a model.

    Examples
    --------
    >>> qrels = {"7": {"a": 1, "b": 0}, "8": {"a": 0, "b": 1}}
    >>> runs = {"good": {"7": {"a": 2, "b": 1}, "8": {"b": 2, "a": 1}}, "bad": {"7": {"b": 2, "a": 1}, "8": {"b": 1}}}
    >>> experiment = Experiment(qrels, runs, "RR")
    >>> dict(experiment.evaluate()["bad"]), [pair.difference for pair in experiment.compare(test="t").pairs]
    ({'RR': 0.75}, [-0.25])
    """

    measures: dict[str, Any]
    convention: str
    judged: JudgedScores
    models: dict[str, Any]
    baseline: str
    states_baseline: bool
    _checks: Checks
    several: bool = True  # systems by name or in a list
    data: Any = None
    topics: str | None = None
    segments: Any = None
    training: Provenance | None = None
    coverage: Coverage | None = None
    note: str = ""
    _all: Any = None  # JudgedScores, also of queries that are left out
    _part_of: np.ndarray | None = None  # the numbers of the queries of a part
    _given: Sequence[Any] = ()  # MeasuredValues
    _ids: Sequence[Any] | None = None
    _one_measure: bool = True

    def __init__(
        self,
        judgements: Any,
        systems: Any,
        measures: MeasuresLike = "nDCG@10",
        *,
        baseline: str | None = None,
        convention: Convention | None = None,
        topics: Topics | None = None,
        training_queries: TrainingRule = "leave out",
        segments: str | Mapping[Any, Any] | ArrayLike | None = None,
        collapse: Any = None,
        qid: ArrayLike | None = None,
        doc_ids: ArrayLike | None = None,
    ) -> None:
        check_choice(training_queries, "training_queries", TRAINING_QUERIES)
        _check_order(judgements)
        rows = are_rows(judgements, systems)
        known = convention or (DEFAULT_CONVENTION if rows else QRELS_CONVENTION)
        parsed, (named, several) = parse_measures(measures, known), by_name(systems, not rows)
        if rows:
            if topics is not None:
                raise InvalidInputError(
                    "topics applies only to runs and qrels. Omit it: systems that score rows all have the same queries",
                    argument="topics",
                )
            if collapse is not None:
                raise InvalidInputError(
                    "collapse applies only to runs over qrels. Omit it", argument="collapse", code="idle"
                )
            found = resolve_rows(judgements, named, qid, doc_ids)
            if segments is not None:
                labels = resolve("truerank.experiments.segments:labels_of_rows")
                segments = labels(found.place, found.known, segments, found.data, judgements, qid)
        else:
            if qid is not None or doc_ids is not None:
                raise InvalidInputError(
                    "qrels and runs have queries and documents of their own. Omit qid and doc_ids", argument="qrels"
                )
            parsed = over_topics(parsed, topics)
            if segments is not None:
                judgements, segments = resolve("truerank.experiments.segments:labels_in")(judgements, segments)
            found = resolve_runs(judgements, named, several=several, collapse=collapse)
        models = {name: one.model for name, one in found.models.items()}
        training = settle_training(models, found.data, training_queries) if models else None
        self._hold(
            baseline, found.judged, measures=parsed, convention=known, models=models, several=several, data=found.data,
            topics=topics, segments=segments, note=found.note, _checks=found.checks,
            _one_measure=len(parsed) == 1 and not isinstance(measures, list | tuple),
            **_settled(found.judged, training, topics, None if rows else "the qrels"),
        )  # fmt: skip

    def _hold(self, baseline: str | None, names: Iterable[str], **settled: Any) -> None:
        """Set all fields; every experiment is created here."""
        known = list(names)
        if baseline is not None and baseline not in known:
            raise InvalidInputError(
                f"there is no system {baseline!r}. Choose the baseline among: {', '.join(known)}", argument="baseline"
            )
        stated = {"baseline": known[0] if baseline is None else baseline, "states_baseline": baseline is not None}
        vars(self).update(stated | settled)

    @classmethod
    def of_values(
        cls,
        per_query: Mapping[str, ArrayLike] | Sequence[MeasuredValues],
        *,
        measure: str = "",
        convention: str = "",
        higher_is_better: bool = True,
        query_ids: Sequence[Any] | np.ndarray | None = None,
        baseline: str | None = None,
    ) -> Experiment:
        """Return the experiment of values (m,) by system, such as estimates, for the same queries in the same order.

        Values by several measures are `MeasuredValues`, each with its measure, convention and direction. `compare` and
        `power` are possible, but `evaluate` and `report` are not.

        Examples
        --------
        >>> values = {"old": [0.2, 0.4, 0.1, 0.5, 0.3, 0.2], "new": [0.3, 0.6, 0.4, 0.6, 0.5, 0.3]}
        >>> round(Experiment.of_values(values, measure="clicks").compare(test="t").pairs[0].difference, 4)
        0.1667
        """
        from truerank.significance.comparison import MeasuredValues

        if one := isinstance(per_query, Mapping):
            values = {str(name): np.asarray(own, dtype=np.float64) for name, own in per_query.items()}
            per_query = [MeasuredValues(values, measure, convention, higher_is_better)]
        self = cls.__new__(cls)
        self._hold(
            baseline, per_query[0].per_query, measures={} if one else {own.measure: own.by for own in per_query},
            convention=convention, judged={}, models={}, _checks=[], _given=per_query, _ids=query_ids, _one_measure=one,
        )  # fmt: skip
        return self

    def _but(self, **changed: Any) -> Experiment:
        """Return the experiment with changed fields, and compute the dependent fields again."""
        other = object.__new__(Experiment)
        vars(other).update({one.name: vars(self).get(one.name, one.default) for one in fields(self)} | changed)
        return other

    @property
    def judgements(self) -> Any:
        """The judgements of the first system; all systems have the same queries. None for an experiment of values."""
        return next(iter(self.judged.values()))[0] if self.judged else None

    def __repr__(self) -> str:
        n_queries = "?" if self.query_ids is None else len(self.query_ids)
        systems = ", ".join(self.judged or self._given[0].per_query)
        return f"Experiment({systems}; {', '.join(self.measures)}; {n_queries} queries)"

    @cached_property
    def query_ids(self) -> np.ndarray | None:
        """The names of the queries (m,)."""
        ids = self._ids if self._given else self.judgements.query_ids
        return None if ids is None else np.asarray(ids)

    @cached_property
    def rankings(self) -> dict[str, Ranking]:
        """The scores of each system, which are sorted once for all measures, comparisons and segments."""
        return {name: Ranking(*one) for name, one in self.judged.items()}

    @cached_property
    def rows(self) -> Any:
        """The rows that models scored, without left-out queries; None without rows."""
        return self.data if self.training is None else self.training.kept(self.data)

    @cached_property
    def found(self) -> list[Remark]:
        """The remarks on the judgements and systems, each kind once for each source."""
        remarks = []
        for source, check in self._checks:
            for remark in check(self.convention, self._part_of):
                remark.source = source
                remarks.append(remark)
        return remarks

    @cached_property
    def remarks(self) -> list[Remark]:
        """The remarks on the experiment, in the order of `truerank.data.remarks.CODES`."""
        settled = [] if self.training is None else self.training.remarks
        settled = (
            settled
            if self.coverage is None
            else [*settled, *about_topics(self.coverage), *about_depths(self.judged, self.measures)]
        )
        return in_order([*self.found, *settled])

    @property
    def training_text(self) -> str:
        """The training queries of each model in words."""
        return UNRECOGNISED if self.training is None else str(self.training)

    @property
    def topics_text(self) -> str:
        """The topics of the means of runs in words, and measures with a rule of their own; "" without runs."""
        return "" if self.coverage is None else f"{self.coverage}{exceptions(self.measures, self.topics)}"

    def facts(self) -> dict[str, Any]:
        """Return the entries of results for JSON: training queries and coverage of topics."""
        training = {"training_queries": None if self.training is None else self.training.to_dict()}
        own = {name: [line._asdict() for line in lines] for name, lines in self.compared_segments.items()}
        coverage = {} if self.coverage is None else {"coverage": self.coverage.to_dict()}
        return training | coverage | ({"segments": own} if own else {})

    def evaluate(self) -> Evaluations:
        """Return the values of all measures of each system, by name.

        Raises
        ------
        InvalidInputError
            If no document is ranked.
        """
        if not self.judged:
            raise InvalidInputError(
                "an experiment of values has no rankings to evaluate",
                remedies=["call compare() or power()"],
                code="no-rankings",
            )
        found = dict[str, Evaluation]()
        for name, one in self.rankings.items():
            result = found[name] = Evaluation(self.measures, self.convention, one)
            result.experiment, result.name = self, name
        evaluations = Evaluations(found)
        evaluations.experiment = self
        return evaluations

    def compare(
        self,
        *,
        test: Test = "randomisation",
        correction: Correction | None = None,
        margin: float | None = None,
        pairs: Pairs = "baseline",
        history: Any = None,
        random_state: RandomState = 0,
        rope: float | None = None,
        cite: bool = False,
    ) -> Comparison | Any:
        """Test the differences between systems, query by query, and correct p for all pairs and measures.

        Parameters
        ----------
        test : {"randomisation", "t", "wilcoxon", "sign"}
        correction : "max-t", "holm", "bonferroni", "benjamini-hochberg", "none" or None, default None
            The default for tests of the mean ("randomisation", "t") is "max-t": step-down max-T, with a fifth of the
            level for Holm's correction (`divided_step_down`). The p of "max-t" uses random signs, and can be below the
            p of "t". The default for "wilcoxon" and "sign" is Holm's correction.
        margin : float, optional
            Difference δ, in the unit of the measure, that is too small to matter. With a margin, each pair has a
            `verdict`. The test must be "randomisation" or "t".
        pairs : {"baseline", "all"}
            Whether each system is compared with the baseline, or with all other systems.
        history : History, optional
            History that counts this and earlier comparisons on the same queries and judgements. The k-th comparison has
            the level 0.05/(k (k - 1)). Without a history, nothing is counted.
        random_state : seed of the random signs
        rope : float, optional
            Also give each pair's probabilities of better, equivalent within this difference, and worse
            (`Comparison.practical`).
        cite : bool, default=False
            Whether `to_dict` of the result has the paragraph of `methods_text`.

        Raises
        ------
        InvalidInputError
            With fewer than two systems, if scores may be ranks without a stated order, and for GMAP.

        Returns
        -------
        Comparison, or Comparisons of several measures by name
            Prints as a table, with ** after an adjusted p below 0.05. `.pairs` holds each comparison.
        """
        from truerank.significance.comparison import compare_measures
        from truerank.significance.tables import Comparisons

        check_choice(pairs, "pairs", PAIRS)
        check_order(self.found)
        measured = self._measured()
        found = compare_measures(
            measured, baseline=self.baseline if pairs == "baseline" else None, test=test, correction=correction,
            margin=margin, random_state=random_state, query_ids=self.query_ids, history=history,
            judgements=self.judgements, rope=rope, cite=cite,
        )  # fmt: skip
        for one in found:
            one.experiment = self
        found[0].segments = self.compared_segments
        if self._one_measure:
            return found[0]
        several = Comparisons(zip(self.measures, found))
        several.experiment = self
        return several

    def _measured(self) -> list[Any]:
        """Return the values of each measure by system."""
        from truerank.significance.comparison import MeasuredValues

        if self._given:
            return list(self._given)
        values: dict[str, dict[str, np.ndarray]] = {}
        means: dict[str, dict[str, float]] = {}
        averages: dict[str, Measure] = {}
        for name, by in self.measures.items():
            values[name], means[name] = {}, {}
            if by.check_mean().TIE_AVERAGE and by.setting("ties") != "average":
                averages[name] = by(ties="average")
        for system, ranking in self.rankings.items():
            for name, by in self.measures.items():
                values[name][system] = by.values(ranking)
                if name in averages:
                    means[name][system] = mean_of(averages[name].values(ranking))
        return [
            MeasuredValues(values[name], name, by.convention, by.higher_is_better, means[name], by)
            for name, by in self.measures.items()
        ]

    def power(self, effect: float | None = None, **settings: Unpack[PowerSettings]) -> QueriesNeeded:
        """Predict from these queries how many queries a test requires to find a difference between two systems.

        Parameters
        ----------
        effect : float, optional
            True mean difference to find; by default the observed difference from the baseline, which is uncertain.
        **settings
            `test` (by default the test of `compare`), `power`, `level`, `comparisons`, `at`, `n_resamples` and
            `random_state` of `queries_needed`.

        Raises
        ------
        InvalidInputError
            Unless there are two systems and one measure, and if scores may be ranks without a stated order.
        """
        from truerank.significance.paired import paired_differences
        from truerank.significance.power import Pilot, queries_needed

        check_order(self.found)
        measured = self._measured()
        if len(measured) > 1:
            raise InvalidInputError(
                f"power requires one measure, got {len(measured)}: {', '.join(self.measures)}. Name one of them",
                code="one-measure",
            )
        ((values, name, convention, *_),) = measured
        if len(values) != 2:
            raise InvalidInputError(
                f"power requires two systems, got {len(values)}: {', '.join(values)}. Name two of them",
                code="two-systems",
            )
        other = next(system for system in values if system != self.baseline)
        differences = paired_differences(values[other], values[self.baseline])
        observed = float(differences.mean())
        settings.setdefault("test", "randomisation")
        found = queries_needed(differences, observed if effect is None else effect, **settings)
        found.experiment, found.of = self, Pilot((other, self.baseline), name, convention, observed, effect is None)
        return found

    def gate(self, margin: float = 0.02, **settings: Unpack[GateSettings]) -> Gate:
        """Return whether the other system is as good as the baseline: PASS, FAIL or INCONCLUSIVE.

        `settings` are `at_least`, `looks`, `history`, `inconclusive` and `random_state` of `truerank.gate`, which also
        documents the errors. Segments come from the experiment.
        """
        return resolve("truerank.experiments.gate:gate_of")(self, margin, **settings)

    def with_measures(self, names: Sequence[str]) -> Experiment:
        """Return the experiment with some of its measures, whose comparison is `Comparisons` by name."""
        some = {name: self.measures[name] for name in names}
        return self._but(measures=some, _one_measure=False, rankings=self.rankings)

    def by_segment(self) -> dict[str, Experiment]:
        """Return the experiments of the queries in each segment, by the name of the segment; "" is no segment.

        Raises
        ------
        InvalidInputError
            Without `segments`, or if a column has several values in a query or a mapping lacks a query.
        """
        return {name: self._part(name) for name in dict.fromkeys(self.segment_names().tolist()) if name}

    def segment_names(self) -> np.ndarray:
        """Return the segment of each query, text (m,); "" means no segment."""
        if self.segments is None:
            raise InvalidInputError(
                "the experiment has no segments",
                remedies=[Remedy("or a mapping of queries", segments=...)],
                argument="segments",
            )
        known = self._labels
        queries = list(map(str, self.query_ids if self.query_ids is not None else []))
        lacking = [query for query in queries if query not in known]
        if lacking:
            raise InvalidInputError(
                f"segments has no entry for query {lacking[0]!r}. Add an entry for each query", argument="segments"
            )
        return np.array([known[query] for query in queries])

    @cached_property
    def _labels(self) -> dict[str, str]:
        return dict(zip(map(str, self.segments), id_texts(self.segments.values())))

    def segment_masks(self) -> dict[str, np.ndarray]:
        """Return the queries of each segment, bool (m,) by name, none without segments; "" means no segment."""
        names = np.array([]) if self.segments is None else self.segment_names()
        return {str(name): names == name for name in sorted(set(names.tolist()) - {""})}

    @cached_property
    def compared_segments(self) -> dict[str, Any]:
        """The results of the first measure, a mean, in each segment, by system; see `truerank.experiments.segments`."""
        if self.segments is None or len(self.judged) < 2 or next(iter(self.measures.values())).AGGREGATE != "mean":
            return {}
        return dict(resolve("truerank.experiments.segments:compared_segments")(self))

    def _part(self, name: str) -> Experiment:
        """Return the experiment of the queries of a segment, whose training queries and topics are settled again."""
        known = {query for query, own in self._labels.items() if own == name}
        queries = next(iter(self._all.values()))[0].query_ids.tolist()
        chosen = np.array([number for number, query in enumerate(queries) if str(query) in known])
        training = None if self.training is None else self.training.take_queries(chosen)
        whole = None if self.coverage is None else "the segment"
        return self._but(
            segments=None,
            data=None if self.data is None else self.data.take_queries(chosen),
            _part_of=chosen,
            **_settled(of_queries(self._all, chosen), training, self.topics, whole),
        )

    def methods_text(self, **settings: Any) -> str:
        """Return the paragraph of a paper about `compare(**settings)`, and BibTeX of the cited methods."""
        return str(self.compare(**settings).methods_text())

    def evidence(self, wording: Wording = PYTHON) -> Any:
        """Return values, comparisons and details together, as in a `report`; see `truerank.experiments.evidence`."""
        return resolve("truerank.experiments.evidence:Evidence")(self, wording)

    def report(self, path: str | os.PathLike[str], **settings: Unpack[PageSettings]) -> None:
        """Write the evidence to a file: Markdown (.md), JSON (.json), else an HTML page.

        For an HTML page, `settings` are arguments of `truerank.report.evidence.make_report`: `title`, `made_by`,
        `sources` and `cutoff`.
        """
        name = os.fspath(path)
        text = self.evidence().in_format(os.path.splitext(name)[1].lower(), **settings)
        with resolve("truerank.core.files:atomic_write")(name, "w") as stream:
            stream.write(text)


def _settled(
    judged: JudgedScores, training: Provenance | None, topics: str | None, whole: str | None
) -> dict[str, Any]:
    """Return the fields of an experiment that depend on its queries; `whole` names the topics of runs."""
    kept, coverage = judged, None
    if training is not None and not training.keep.all():
        kept = of_queries(judged, np.flatnonzero(training.keep))
    if whole is not None and len(judged) > 1:
        kept, coverage = settle_topics(judged, topics, whole)
    elif whole is not None:  # one run keeps the topics that it lacks, with the value NaN or 0
        coverage = Coverage.of({name: one.sizes > 0 for name, (one, _) in judged.items()}, topics, whole)
    return {"judged": kept, "training": training, "coverage": coverage, "_all": judged}


def _check_order(judgements: Any) -> None:
    """Raise an error if the measures were passed first."""
    if isinstance(judgements, Experiment):
        raise InvalidInputError("an Experiment has its own judgements", remedies=["call its methods"], code="order")
    named = isinstance(judgements, str) and judgements != "-" and not os.path.exists(judgements)
    if named or isinstance(judgements, Measure):
        try:
            parse_measures(judgements, DEFAULT_CONVENTION)
        except InvalidInputError:
            return
        raise InvalidInputError(
            f"the first argument must be the judgements, got the measure {str(judgements)!r}",
            remedies=["write evaluate(judgements, systems, measures)"],
            code="order",
        )
