"""Cross-validation of rankers over folds of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truerank.core.checks import check_choice, check_positive_int
from truerank.core.errors import InvalidInputError, imports_of_extra
from truerank.core.printing import Tabular, styled_table
from truerank.core.random_streams import seed_of, stream
from truerank.core.types import RandomState
from truerank.data.ranking_data import check_ranking_data
from truerank.data.row_source import RowSource
from truerank.data.splits import query_folds
from truerank.inspection.learner_comparison import compare_learners
from truerank.measures import Measure, parse_measures
from truerank.rankers.pipeline import fit_ranker, ranker_scores
from truerank.significance.comparison import compare_values


@dataclass(frozen=True)
class CrossValidation(Tabular):
    """The result of `cross_validate`, by ranker and measure.

    `per_query` (m,) holds the value of each query by rankers that were not trained on it, averaged over the repeats.
    `scores` (n,) are out-of-fold scores in the first repeat, in the caller's row order (for a cluster in that of
    `predict`).
    """

    per_query: dict[str, dict[str, np.ndarray]] = field(repr=False)
    scores: dict[str, np.ndarray] = field(repr=False)
    folds: np.ndarray = field(repr=False)  # int64 (m,): the fold, from 0, that tested a query in the first repeat
    query_ids: np.ndarray = field(repr=False)
    convention: str
    measures: dict[str, Measure] = field(repr=False)  # by their given names
    fold_means: dict[str, dict[str, list[float]]] = field(repr=False)  # of each fold, repeat after repeat
    repeats: int = 1

    @property
    def means(self) -> dict[str, dict[str, float]]:
        """Mean over the queries (sum for counts), by ranker and measure."""
        return {
            name: {m: self.measures[m].aggregate(values) for m, values in own.items()}
            for name, own in self.per_query.items()
        }

    def compare(self, measure: str | None = None, *, about: str = "rankers", **options: Any) -> Any:
        """Compare the rankers with each other, or with `baseline`, by one of the measures (the first).

        `about="rankers"` is about these fitted rankers on queries like these: a test over queries with the `options` of
        `compare_rankers` (a `Comparison`). This test ignores the randomness of training, so it finds differences
        between equally good learners too often. `about="learners"` is about the learning procedures on data like these:
        the corrected resampled t-test over folds (a `LearnerComparison`).
        """
        check_choice(about, "about", ("rankers", "learners"))
        known = list(self.measures)
        name = known[0] if measure is None else measure
        if name not in known:
            raise InvalidInputError(f"measure must be one of {', '.join(known)}, got {measure!r}")
        options.setdefault("baseline", None)
        higher = self.measures[name].check_mean().higher_is_better
        if about == "learners":
            folds = {ranker: own[name] for ranker, own in self.fold_means.items()}
            means = {ranker: own[name] for ranker, own in self.means.items()}
            return compare_learners(folds, means, name, self.convention, self.repeats, higher, **options)
        found = compare_values(
            {ranker: own[name] for ranker, own in self.per_query.items()},
            measure=name,
            convention=self.convention,
            query_ids=self.query_ids,
            higher_is_better=higher,
            **options,
        )
        found.about = (
            f"about the fitted rankers on {found.pairs[0].queries} queries: {found.test} test over queries; training "
            'is not part of its uncertainty, compare(about="learners") (--about learners) includes it'
        )
        return found

    def to_frame(self) -> Any:
        """Return the means as a pandas data frame with a row for each ranker."""
        with imports_of_extra("pandas", "tables", "to_frame()"):
            import pandas
        return pandas.DataFrame.from_dict(self.means, orient="index")

    def _table(self, style: str) -> str:
        rows = [[name, *own.values()] for name, own in self.means.items()]
        return styled_table(rows, ["ranker", *self.measures], style)


def cross_validate(
    rankers: Any,
    data: Any,
    measures: str | Sequence[Any] = "AP nDCG@10",
    *,
    folds: int = 5,
    repeats: int = 1,
    validate: bool = False,
    convention: str = "ranklib",
    random_state: RandomState = None,
) -> CrossValidation:
    """Train and test rankers over the same folds of queries.

    Parameters
    ----------
    rankers : ranker, or dict of name to ranker
        Unfitted; clones are fitted. truerank's rankers, `LGBMRanker`, `XGBRanker`, `CatBoostRanker`, scikit-learn
        pipelines and regressors.
    data : RankingData or ClusterRankingData
        On a cluster, only truerank's own rankers can be trained.
    measures, convention
    folds : int in 2 … m, default 5
        Folds of whole queries, drawn by their names.
    repeats : int, default 1
        Number of draws of the folds. With ten, `compare(about="learners")` depends less on the draw.
    validate : bool, default False
        Use the fold before the tested one as validation queries for rankers that support them, else for training.
    random_state : None, int or generator
        Seed of the folds.

    Raises
    ------
    InvalidInputError
        On data without grades, fewer queries than folds, and objects that are not rankers.

    Notes
    -----
    `folds * repeats` fits for each ranker. Models of different folds share training queries, so a statement about
    learners requires `compare(about="learners")`.

    Examples
    --------
    >>> from truerank.data.samples import load_sample
    >>> from truerank.rankers.baselines import RidgeRanker, SingleFeature
    >>> rankers = {"ridge": RidgeRanker(), "best column": SingleFeature()}
    >>> found = cross_validate(rankers, load_sample().take_queries(range(60)), "nDCG@10", folds=3)
    >>> sorted(found.means), found.scores["ridge"].shape == (load_sample().take_queries(range(60)).n_rows,)
    (['best column', 'ridge'], True)
    """
    named = dict(rankers) if isinstance(rankers, Mapping) else {type(rankers).__name__: rankers}
    if not named:
        raise InvalidInputError("cross_validate got no rankers")
    folds = check_positive_int(folds, "folds", 3 if validate else 2)
    if not isinstance(data, RowSource):
        check_ranking_data(data)
    parsed = parse_measures(measures, convention)
    judgements = data.judgements()  # raises without grades
    query = data.query_index
    seed, every = seed_of(random_state), np.arange(data.n_queries)
    sums: dict[str, dict[str, np.ndarray]] = {name: dict.fromkeys(parsed, np.zeros(1)) for name in named}
    fold_means: dict[str, dict[str, list[float]]] = {name: {label: [] for label in parsed} for name in named}
    for repeat in range(check_positive_int(repeats, "repeats")):
        drawn = seed if repeat == 0 else stream(seed, "repeat", repeat)
        parts = query_folds(data.n_queries, folds, random_state=drawn, query_ids=data.query_ids)
        own_scores = {name: np.empty(data.n_rows) for name in named}
        for k, part in enumerate(parts):
            rest, test = np.setdiff1d(every, part), data.take_queries(part)
            rows = np.isin(query, part)
            for name, ranker in named.items():
                valid = None
                own = rest
                if validate and getattr(ranker, "uses_eval_set", False):
                    valid, own = data.take_queries(parts[k - 1]), np.setdiff1d(rest, parts[k - 1])
                own_scores[name][rows] = ranker_scores(fit_ranker(ranker, data.take_queries(own), valid), test)
        for name, of_rows in own_scores.items():
            for label, measure in parsed.items():
                values = measure.per_query(judgements, of_rows)
                sums[name][label] = sums[name][label] + values
                fold_means[name][label] += [float(measure.aggregate(values[part])) for part in parts]
        if repeat == 0:
            scores, tested = own_scores, np.empty(data.n_queries, dtype=np.int64)
            for k, part in enumerate(parts):
                tested[part] = k
    per_query = {name: {label: total / repeats for label, total in own.items()} for name, own in sums.items()}
    restored = {name: data.restore(own) for name, own in scores.items()}
    return CrossValidation(per_query, restored, tested, data.query_ids, convention, parsed, fold_means, repeats)
