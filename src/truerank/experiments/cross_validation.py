"""Cross-validation of rankers over folds of queries, tests of learning procedures, and learning curves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Unpack, overload

import numpy as np

from truerank.core.checks import check_choice, check_positive_int
from truerank.core.errors import InvalidInputError, Remedy, warn
from truerank.core.printing import counted, plain, styled_table
from truerank.core.random_streams import seed_of, stream
from truerank.core.results import Result, data_frame
from truerank.core.types import MeasureLike, PathLike, RandomState, Scorer
from truerank.data.columns import chosen_columns, names_of, take_columns
from truerank.data.remarks import Remark, RemarkWarning
from truerank.data.row_source import Rows
from truerank.data.splits import CV, Fold, folds_of, stated_folds, tested_queries
from truerank.experiments.experiment import Experiment
from truerank.experiments.systems import stated_order
from truerank.inspection.folds import Tried, fitted_folds, listed, tried_settings, uses_validation, without_validation
from truerank.inspection.importance import measure_of
from truerank.inspection.learners import LearnerComparison, compare_learners
from truerank.inspection.seeds import SeededValidation, Settings, over_seeds, training_text
from truerank.io.rows import RowsLike, rows_of
from truerank.measures import Measure, parse_measure, parse_measures
from truerank.measures.ranking import Ranking
from truerank.rankers.pipeline import fit_ranker, ranker_scores
from truerank.significance.comparison import CompareOptions
from truerank.significance.intervals import mean_interval
from truerank.significance.tables import MOVED_BY_TIES, Comparison


@dataclass(frozen=True)
class CrossValidation(Result):
    """The result of `cross_validate`, by ranker and measure.

    `per_query` (m,) holds the value of each query by rankers that were not trained on the query, averaged over the
    repeats; NaN for queries that no fold tests. `scores` (n,) are out-of-fold scores in the first repeat, in the
    caller's row order (for a cluster in the order of `predict`), and NaN for queries that no fold tests. If the folds
    test every query, `compare(data, result.scores)` compares them; the method `compare` needs no such folds.
    """

    per_query: dict[str, dict[str, np.ndarray]] = field(repr=False)
    ties_averaged: dict[str, dict[str, np.ndarray]] = field(repr=False)  # as `per_query`, with ties averaged
    scores: dict[str, np.ndarray] = field(repr=False)
    folds: np.ndarray = field(repr=False)  # int64 (m,): the fold, from 0, that tested a query first; -1 for none
    query_ids: np.ndarray = field(repr=False)
    fold_means: dict[str, dict[str, list[float]]] = field(repr=False)  # of each fold, repeat after repeat
    settings: dict[str, list[dict[str, Any]]] = field(repr=False)  # chosen from `grid`, in the same order
    convention: str
    measures: dict[str, Measure] = field(repr=False)  # by their given names
    repeats: int = 1
    fold_names: list[str] = field(default_factory=list, repr=False)  # of one repeat
    trained_on: dict[str, str] = field(default_factory=dict, repr=False)  # part of each fold, in words, by ranker

    KIND: ClassVar[str] = "cross-validation"

    @property
    def summary(self) -> str:
        """A sentence on the ranker with the best mean of the first measure."""
        name, by = next(iter(self.measures.items()))
        sign = 1.0 if by.higher_is_better else -1.0
        best = max(self.means, key=lambda ranker: sign * self.means[ranker][name])
        several = f"{best} has the best mean of {counted(len(self.means), 'ranker')}: {name}"
        which = several if len(self.means) > 1 else f"{name} of {best}"
        tested = f"{counted(int((self.folds >= 0).sum()), 'query')}, each by rankers that were not trained on it"
        return f"{which} is {self.means[best][name]:.4f} over {tested}."

    def _figures(self) -> dict[str, Any]:
        return {
            "convention": self.convention,
            "queries": len(self.query_ids),
            "folds": self.n_folds,
            "fold_names": self.fold_names,
            "repeats": self.repeats,
            "trained_on": self.trained_on,
            "settings": self.settings,
            "means": self.means,
            "mean_of_folds": self.mean_of_folds,
            "means_ties_averaged": self.means_ties_averaged,
            "fold_means": self.fold_means,
        }

    @property
    def n_folds(self) -> int:
        """The number of folds of one repeat."""
        return int(self.folds.max(initial=-1)) + 1

    @property
    def means(self) -> dict[str, dict[str, float]]:
        """The mean over the queries, by ranker and measure."""
        return self._means(self.per_query)

    @property
    def means_ties_averaged(self) -> dict[str, dict[str, float]]:
        """The means with ties averaged, which do not depend on the order of the rows."""
        return self._means(self.ties_averaged)

    @property
    def mean_of_folds(self) -> dict[str, dict[str, float]]:
        """The mean of the folds' means, which weights small folds more than `means` does."""
        return {name: {m: sum(v) / len(v) for m, v in own.items()} for name, own in self.fold_means.items()}

    def _means(self, values: dict[str, dict[str, np.ndarray]]) -> dict[str, dict[str, float]]:
        return {name: {m: self.measures[m].average(v) for m, v in own.items()} for name, own in values.items()}

    @overload
    def compare(
        self, measure: str | None = ..., *, about: Literal["rankers"] = ..., **options: Unpack[CompareOptions]
    ) -> Comparison: ...

    @overload
    def compare(
        self, measure: str | None = ..., *, about: Literal["learners"], baseline: str | None = ...
    ) -> LearnerComparison: ...

    def compare(
        self, measure: str | None = None, *, about: str = "rankers", **options: Any
    ) -> Comparison | LearnerComparison:
        """Compare the rankers with each other, or with `baseline`, by one of the measures (by default the first).

        `about="rankers"` is for these fitted rankers on similar queries: a test over queries with the `options` of
        `compare` (a `Comparison`). This test ignores the randomness of training, so that it finds differences between
        equally good learners too often. `about="learners"` is for the learning procedures on similar data: the
        corrected resampled t-test over folds (a `LearnerComparison`).
        """
        check_choice(about, "about", ("rankers", "learners"))
        known = list(self.measures)
        name = known[0] if measure is None else measure
        if name not in known:
            raise InvalidInputError(argument="measure", expected=f"one of {', '.join(known)}", value=measure)
        options.setdefault("baseline", None)
        higher = self.measures[name].check_mean().higher_is_better
        if about == "learners":
            if idle := sorted({*options} - {"baseline"}):
                raise InvalidInputError(
                    f'{", ".join(idle)} has no effect with about="learners". Leave it out', argument=idle[0]
                )
            if (self.folds < 0).any():
                raise InvalidInputError(
                    "the test of learners requires folds that test every query once, but these folds do not",
                    argument="about", remedies=[Remedy("to compare the fitted rankers", about="rankers")],
                )  # fmt: skip
            folds = {ranker: own[name] for ranker, own in self.fold_means.items()}
            means = {ranker: own[name] for ranker, own in self.means.items()}
            return compare_learners(folds, means, name, self.convention, self.repeats, higher, **options)
        baseline = options.pop("baseline")
        experiment = Experiment.of_values(
            {ranker: own[name] for ranker, own in self.per_query.items()}, measure=name, convention=self.convention,
            query_ids=self.query_ids, higher_is_better=higher, baseline=baseline,
        )  # fmt: skip
        found = experiment.compare(pairs="all" if baseline is None else "baseline", **options)
        found.about = (
            f"about the fitted rankers on {found.pairs[0].queries} queries: {found.test} test over queries, which "
            'excludes the uncertainty of training; about="learners" includes it'
        )
        return found

    def to_frame(self) -> Any:
        """Return the means as a pandas data frame with a row for each ranker."""
        return data_frame(list(self.means.values()), list(self.means))

    def _table(self, style: str) -> str:
        about = f"convention {self.convention}{training_text(self.trained_on)}"
        if len(self.means) > 1:
            rows = [[name, *own.values()] for name, own in self.means.items()]
            return styled_table(rows, ["ranker", *self.measures], style, about)
        ((name, mean),) = self.means.items()
        settings = [
            json.dumps(plain(one)) for one in self.settings.get(name, [{}] * (len(self.fold_names) * self.repeats))
        ]
        rows = [[fold, *own, text] for fold, text, *own in zip(
            self.fold_names * self.repeats, settings, *self.fold_means[name].values())]  # fmt: skip
        rows += [["mean of queries", *mean.values(), ""], ["mean of folds", *self.mean_of_folds[name].values(), ""]]
        averaged = self.means_ties_averaged[name]
        if any(abs(value - averaged[label]) > MOVED_BY_TIES for label, value in mean.items()):
            rows.append(["ties averaged", *averaged.values(), ""])
        header = ["fold", *self.measures, "settings"]
        chosen = len(header) if any(self.settings.get(name, ())) else -1
        return styled_table([row[:chosen] for row in rows], header[:chosen], style, about)


@overload
def cross_validate(
    rankers: Any, data: Any, measures: str | Sequence[Any] = ..., *, cv: CV | None = ..., repeats: int = ...,
    validate: bool = ..., grid: Mapping[str, Any] | None = ..., select: MeasureLike = ..., seeds: None = None,
    state: None = None, convention: str = ..., random_state: RandomState = ..., exclude: Sequence[str] | None = ...,
) -> CrossValidation: ...  # fmt: skip
@overload
def cross_validate(
    rankers: Any, data: Any, measures: str | Sequence[Any] = ..., *, cv: CV | None = ..., repeats: int = ...,
    validate: bool = ..., grid: Mapping[str, Any] | None = ..., select: MeasureLike = ..., seeds: Sequence[int],
    state: PathLike | None = ..., convention: str = ..., random_state: RandomState = ...,
    exclude: Sequence[str] | None = ...,
) -> SeededValidation: ...  # fmt: skip
def cross_validate(
    rankers: Any,
    data: Any,
    measures: str | Sequence[Any] = "nDCG@10 nDCG@5 AP",
    *,
    cv: CV | None = None,
    repeats: int = 1,
    validate: bool = True,
    grid: Mapping[str, Any] | None = None,
    select: MeasureLike = "AP",
    seeds: Sequence[int] | None = None,
    state: PathLike | None = None,
    convention: str = "ranklib",
    random_state: RandomState = None,
    exclude: Sequence[str] | None = None,
) -> CrossValidation | SeededValidation:
    """Train and test rankers over the same folds of queries, as `truerank cross-validate` does.

    A ranker that uses validation queries (early stopping, a choice by `eval_set`, or a `grid`) is trained on the
    training queries of a fold. Any other ranker is trained on the training and the validation queries, so that no
    judged query is unused. The rule is the same for drawn folds and for published folds.

    Parameters
    ----------
    rankers : ranker, or dict of name to ranker
        Unfitted rankers, of which clones are fitted: truerank's rankers, `LGBMRanker`, `XGBRanker`, `CatBoostRanker`,
        scikit-learn pipelines and regressors. A column of the data in place of a ranker, such as today's score
        (`"rank:ascending"` if 1 is the best), is compared as it is.
    data : RankingData, data frame, path of a file of rows, or ClusterRankingData
        On a cluster, only truerank's rankers can be trained.
    measures, convention
    cv : int, splitter, or sequence of Fold, optional
        A number of folds of whole queries in 2 … m, drawn by the names of queries; a splitter of queries, such as
        `QueryKFold`, `QueryTimeSplit` or a scikit-learn splitter (queries are its rows); or folds. By default, the
        published folds of the data (`read_folds`), else 5.
    repeats : int, default 1
        Number of draws of the folds, if `cv` is a number. With ten, `compare(about="learners")` is less random.
    validate : bool, default True
        Whether a fold has validation queries: the fold before the tested fold, or the published validation queries.
        Splitters have none. If False, every ranker is trained on all queries that a fold does not test.
    grid : dict of setting to list of values, optional
        For a dict of rankers, a dict of ranker name to such a dict. In each fold, all combinations are fitted, and the
        best on the validation queries is tested: the highest mean of `select`, or the first of equal means.
    select : str or Measure, default "AP"
        Measure that chooses among `grid`, with ties averaged.
    seeds : sequence of int, optional
        Values of `random_state` with which every ranker is trained on the same folds. The result is a
        `SeededValidation`, with separate variances due to queries and seeds.
    state : path, optional
        With `seeds`, a file for the values of each ranker and seed, from which a killed run resumes.
    random_state : None, int or generator
        Seed of the folds.
    exclude : sequence of str, optional
        Columns, or patterns of their names, that no ranker is trained on; they can be compared as systems. By default,
        rankers are trained on all columns, and a warning names those that are compared. [] omits the warning.

    Returns
    -------
    CrossValidation, or SeededValidation with `seeds`

    Raises
    ------
    InvalidInputError
        For data without grades, fewer queries than folds, a query that is tested twice, and non-rankers; for `cv=2`
        or a splitter if validation queries are required.

    Notes
    -----
    `cv * repeats` fits for each ranker and each combination of its `grid`. Models of different folds share training
    queries, so a statement about learners requires `compare(about="learners")`.

    Examples
    --------
    >>> from truerank.data.samples import load_sample
    >>> from truerank.rankers.baselines import RidgeRanker, SingleFeature
    >>> data = load_sample().take_queries(range(60))
    >>> rankers = {"ridge": RidgeRanker(), "best column": SingleFeature()}
    >>> found = cross_validate(rankers, data, "nDCG@10", cv=3, grid={"ridge": {"alpha": [1.0, 1e6]}})
    >>> sorted(found.means), found.scores["ridge"].shape == (data.n_rows,), len(found.settings["ridge"])
    (['best column', 'ridge'], True, 3)
    >>> found.trained_on
    {'ridge': '1 of 3 folds, with one fold for validation', 'best column': '2 of 3 folds'}
    """
    own = rankers if isinstance(rankers, str) else type(rankers).__name__
    named = dict(rankers) if isinstance(rankers, Mapping) else {own: rankers}
    if not named:
        raise InvalidInputError("cross_validate got no rankers. Pass at least one")
    by_name = dict(grid or {}) if isinstance(rankers, Mapping) or not grid else {next(iter(named)): grid}
    if not isinstance(data, Rows):
        data = rows_of(data)
    parsed, chooser = parse_measures(measures, convention), parse_measure(select, convention).tie_averaged()
    columns = _columns(data, named)
    trained = {name: one for name, one in named.items() if name not in columns}
    by_name = listed(by_name, list(trained), seeded=seeds is not None)
    tried = tried_settings(trained, by_name)
    training, without = _training(data, [named[name] for name in columns] if tried else [], exclude)
    validates = {name: validate and (len(own) > 1 or uses_validation(own)) for name, own in tried.items()}
    data.judgements()  # raises without grades
    seed = seed_of(random_state)

    def drawn(seed: Any) -> list[Fold]:
        return folds_of(data, cv, validate=any(validates.values()), random_state=seed)

    folds = drawn(seed)
    stated = stated_folds(data, cv)
    trained_on = {name: _trained_on(own, stated, folds) + without for name, own in validates.items()}
    if seeds is not None:
        settings: dict[str, Any] = {"cv": folds if repeats == 1 else cv, "repeats": repeats}
        settings |= {"validate": validate, "convention": convention, "random_state": seed}
        settings |= {"select": select} if by_name else {}
        settings |= {"exclude": list(exclude)} if exclude else {}

        def validated(one: dict[str, Any]) -> CrossValidation:
            own = {name: by_name[name] for name in one if name in by_name}
            return cross_validate(one, data, measures, grid=own, **{"exclude": [], **settings})

        about = Settings(parsed, data.query_ids, convention, repeats, folds, trained_on)
        return over_seeds(
            validated, named, seeds, state, [named, data, parsed, settings, *filter(None, [by_name])], about
        )
    if check_positive_int(repeats, "repeats") > 1 and not isinstance(stated, int | np.integer):
        raise InvalidInputError(
            "repeats requires folds that can be drawn again, but cv or the data fix the folds. Pass cv as a number",
            argument="repeats",
        )
    draws = [folds, *(drawn(stream(seed, "repeat", repeat)) for repeat in range(1, repeats))]
    if not validate:
        draws = [[without_validation(fold) for fold in own] for own in draws]
    found = _over_draws(tried, columns, training, parsed, chooser, draws)
    names = [fold.name for fold in folds]
    return CrossValidation(
        **found, convention=convention, measures=parsed, repeats=repeats, fold_names=names, trained_on=trained_on
    )


def _columns(data: Any, named: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the scores (n,) of the columns among the rankers, in the row order of the data."""
    found = {}
    for name, one in named.items():
        if isinstance(one, str):
            experiment = Experiment(data, {name: one}, training_queries="keep")
            if experiment.models:
                raise InvalidInputError(
                    f"{one!r} is a fitted model, but cross_validate trains rankers. Compare it by Experiment",
                    argument="rankers",
                )
            found[name] = experiment.judged[name][1]
    return found


def _training(data: Any, compared: Sequence[str], exclude: Sequence[str] | None) -> tuple[Any, str]:
    """Return the rows that train rankers, and what they lack in words; warn of features that are compared."""
    if exclude:
        data = data.in_memory("exclude")
        kept = chosen_columns(names_of(data), exclude=exclude)
        lost = [name for k, name in enumerate(names_of(data)) if k not in kept]
        return take_columns(data, kept), f", without {', '.join(lost)}"
    own = {stated_order(one)[0] for one in compared}
    both = [name for name in names_of(data) if name in own] if own else []
    if both and exclude is None:
        warn(RemarkWarning(Remark("compared-feature", ", ".join(map(repr, both)), len(both), both)))
    return data, ""


def _over_draws(
    tried: Mapping[str, Tried], columns: Mapping[str, np.ndarray], data: Any, measures: dict[str, Measure],
    select: Measure, draws: Sequence[list[Fold]],
) -> dict[str, Any]:  # fmt: skip
    """Fit and measure rankers, and measure columns of scores; return fields of a `CrossValidation`."""
    judgements, query, names = data.judgements(), data.query_index, [*tried, *columns]
    sums, averaged = ({name: dict.fromkeys(measures, np.zeros(1)) for name in names} for _ in range(2))
    fold_means: dict[str, dict[str, list[float]]] = {name: {label: [] for label in measures} for name in names}
    settings: dict[str, list[dict[str, Any]]] = {name: [] for name in tried}
    first: Any = None
    for folds in draws:
        scores = {name: np.full(data.n_rows, np.nan) for name in tried}
        for fold, fitted, chosen, _ in fitted_folds(tried, data, folds, select):
            test, rows = data.take_queries(fold.test), np.isin(query, fold.test)
            for name, ranker in fitted.items():
                scores[name][rows] = ranker_scores(ranker, test)
                settings[name].append(chosen[name])
        tested = tested_queries(folds)
        judged, rows = judgements.take_queries(tested)
        whole = np.isin(query, tested)
        scores |= {name: np.where(whole, own, np.nan) for name, own in columns.items()}
        for name, own in scores.items():
            ranking = Ranking(judged, own[rows])  # sorted once for all measures
            for label, measure in measures.items():
                for kind, total in ((measure, sums), (measure.tie_averaged(), averaged)):
                    values = np.full(data.n_queries, np.nan)
                    values[tested] = kind.values(ranking)
                    total[name][label] = total[name][label] + values
                    if total is sums:
                        fold_means[name][label] += [float(measure.average(values[fold.test])) for fold in folds]
        if first is None:
            first = scores, np.full(data.n_queries, -1)
            for k, fold in enumerate(folds):
                first[1][fold.test] = k
    per_query, ties_averaged = (
        {name: {label: total / len(draws) for label, total in own.items()} for name, own in each.items()}
        for each in (sums, averaged)
    )
    restored = {name: data.restore(own) for name, own in first[0].items()}
    found = {"per_query": per_query, "ties_averaged": ties_averaged, "fold_means": fold_means, "settings": settings}
    return found | {"scores": restored, "folds": first[1], "query_ids": data.query_ids}


def _trained_on(validates: bool, cv: Any, folds: Sequence[Fold]) -> str:
    """Return the part of a fold that trains a ranker, in words."""
    if isinstance(cv, int | np.integer):
        return f"{cv - 2} of {cv} folds, with one fold for validation" if validates else f"{cv - 1} of {cv} folds"
    both = not validates and any(len(fold.valid) for fold in folds)
    return "training and validation queries of each fold" if both else "training queries of each fold"


@dataclass(frozen=True)
class LearningCurve(Result):
    """The values of a measure on training and held-out queries, by the number of training queries (s sizes)."""

    train_sizes: np.ndarray  # int64 (s,)
    train_scores: np.ndarray = field(repr=False)  # (s, draws): mean of the measure on the training queries
    test_scores: np.ndarray = field(repr=False)  # and on the test queries
    low: np.ndarray = field(repr=False)  # of Student's 95 % interval over test queries of the mean over the draws
    high: np.ndarray = field(repr=False)
    measure: str  # with its convention
    n_test: int = 0  # number of test queries

    KIND: ClassVar[str] = "learning-curve"

    @property
    def summary(self) -> str:
        """A sentence with the mean for all training queries, and how it was measured."""
        return (
            f"{self.measure} is {self.test_scores[-1].mean():.4f} with {self.train_sizes[-1]} training queries; means "
            f"over {counted(self.train_scores.shape[1], 'draw')} of training queries, measured on "
            f"{counted(self.n_test, 'held-out query')}. Each interval (Student's t, over held-out queries) is for one "
            f"size, and no test is performed."
        )

    def _figures(self) -> dict[str, Any]:
        return vars(self)

    def _table(self, style: str) -> str:
        columns = (self.train_sizes, self.train_scores.mean(axis=1), self.test_scores.mean(axis=1), self.low, self.high)
        rows = [list(row) for row in zip(*(column.tolist() for column in columns))]
        return styled_table(rows, ["training queries", f"{self.measure} train", "test", "95 % from", "to"], style)


def learning_curve(
    ranker: Scorer,
    train: RowsLike,
    test: RowsLike,
    *,
    train_sizes: Sequence[int] | None = None,
    draws: int = 5,
    measure: MeasureLike | None = None,
    convention: str = "ranklib",
    random_state: RandomState = None,
) -> LearningCurve:
    """Measure how held-out quality grows with the number of training queries.

    Parameters
    ----------
    ranker : ranker
        Unfitted ranker, which is cloned.
    train, test : RankingData, data frames, or paths of files of rows
        Queries from which training queries are drawn, and held-out queries.
    train_sizes : sequence of int, optional
        Numbers of training queries. The default is five sizes on a logarithmic scale, from 1/10 (at least 2) to all.
    draws : int, default 5
        Number of random draws of the training queries at each size, with one fit for each draw. Larger draws contain
        smaller draws.
    measure, convention
        Default: the ranker's `measure`, else nDCG@10.
    """
    train, test = rows_of(train, "train"), rows_of(test, "test")
    m = train.n_queries
    if train_sizes is None:
        train_sizes = np.unique(np.geomspace(min(max(2, m // 10), m), m, 5).round().astype(int)).tolist()
    sizes = np.asarray(train_sizes)
    if sizes.ndim != 1 or not len(sizes) or sizes.dtype.kind not in "iu" or sizes.min() < 1 or sizes.max() > m:
        raise InvalidInputError(
            f"train_sizes must be numbers of queries from 1 to {m}, got {list(train_sizes)}", argument="train_sizes"
        )
    draws = check_positive_int(draws, "draws")
    pinned, seed = measure_of(ranker, measure, convention), seed_of(random_state)
    shape = (len(sizes), draws)
    train_scores, test_scores = np.empty(shape), np.empty(shape)
    by_query = np.zeros((len(sizes), test.n_queries))
    for draw in range(draws):
        order = stream(seed, "learning curve", draw).permutation(m)
        for k, size in enumerate(sizes):
            if size == m and draw:  # every draw of all queries is the same
                train_scores[k, draw], test_scores[k, draw] = train_scores[k, 0], test_scores[k, 0]
                by_query[k] *= (draw + 1) / draw
                continue
            part = train.take_queries(np.sort(order[:size]))
            fitted = fit_ranker(ranker, part)
            train_scores[k, draw] = pinned.mean(part.judgements(), ranker_scores(fitted, part))
            values = pinned.per_query(test.judgements(), ranker_scores(fitted, test))
            test_scores[k, draw] = np.nanmean(values)
            by_query[k] += values / draws
    low, high = np.array([mean_interval(values)[1:] for values in by_query]).T
    return LearningCurve(sizes, train_scores, test_scores, low, high, pinned.label, test.n_queries)
