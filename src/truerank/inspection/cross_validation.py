"""Rankers trained and tested over folds of queries, whoever's they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError, imports_of_extra
from truerank.core.printing import Tabular, styled_table
from truerank.core.random_streams import seed_of
from truerank.data.ranking_data import check_ranking_data
from truerank.data.splits import query_folds
from truerank.measures import Measure, parse_measures
from truerank.rankers.pipeline import fit_ranker, ranker_scores
from truerank.significance.comparison import Comparison, compare_values


@dataclass(frozen=True)
class CrossValidation(Tabular):
    """What `cross_validate` found.

    Attributes
    ----------
    per_query : dict of dict of float64 array (m,)
        By ranker and measure: the value of each query, by a ranker that has not seen it.
    scores : dict of float64 array (n,)
        Out-of-fold scores of each ranker, in the caller's row order; of a cluster's partitions in that of `predict`.
    folds : int64 array (m,)
        The fold, from 0, in which each query was tested.
    query_ids : array (m,)
    convention : str
    measures : dict of Measure
        By the names that they were asked for.
    """

    per_query: dict[str, dict[str, np.ndarray]] = field(repr=False)
    scores: dict[str, np.ndarray] = field(repr=False)
    folds: np.ndarray = field(repr=False)
    query_ids: np.ndarray = field(repr=False)
    convention: str
    measures: dict[str, Measure] = field(repr=False)

    @property
    def means(self) -> dict[str, dict[str, float]]:
        """Mean over the queries (of counts the sum), by ranker and measure."""
        return {
            name: {m: self.measures[m].aggregate(values) for m, values in own.items()}
            for name, own in self.per_query.items()
        }

    @property
    def fold_means(self) -> dict[str, dict[str, list[float]]]:
        """Mean over the queries of each fold, by ranker and measure."""
        return {
            name: {
                m: [self.measures[m].aggregate(values[self.folds == k]) for k in np.unique(self.folds)]
                for m, values in own.items()
            }
            for name, own in self.per_query.items()
        }

    def compare(self, measure: str | None = None, **options: Any) -> Comparison:
        """The rankers against each other, or against `baseline`, on one of the measures (the first).

        Options are those of `compare_rankers`: `baseline`, `test`, `correction`, `random_state`.
        """
        known = list(self.measures)
        name = known[0] if measure is None else measure
        if name not in known:
            raise InvalidInputError(f"measure must be one of {', '.join(known)}, got {measure!r}")
        options.setdefault("baseline", None)
        return compare_values(
            {ranker: own[name] for ranker, own in self.per_query.items()},
            measure=name,
            convention=self.convention,
            query_ids=self.query_ids,
            higher_is_better=self.measures[name].check_mean().higher_is_better,
            **options,
        )

    def to_frame(self) -> Any:
        """The means as a pandas data frame, a row a ranker."""
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
    validate: bool = False,
    convention: str = "ranklib",
    random_state: Any = None,
) -> CrossValidation:
    """Train and test rankers over the same folds of queries.

    Parameters
    ----------
    rankers : ranker, or dict of name to ranker
        Unfitted; clones are fitted. Ours, `LGBMRanker`, `XGBRanker`, `CatBoostRanker`, scikit-learn pipelines and
        regressors: what `rankers.pipeline.fit_ranker` takes.
    data : RankingData or ClusterRankingData
        Of a cluster's partitions, truerank's own rankers learn.
    measures : str or sequence, default "AP nDCG@10"
    folds : int in 2 … m, default 5
        Of whole queries, drawn by their names.
    validate : bool, default False
        Hand the fold before the tested one to rankers with a use for validation queries, and train on the rest; others
        are trained on both.
    convention : str, default "ranklib"
    random_state : None, int or generator
        Draws the folds.

    Returns
    -------
    CrossValidation

    Raises
    ------
    InvalidInputError
        On data without grades, fewer queries than folds, and what is no ranker.

    Notes
    -----
    Each query is tested once, so tests over queries hold; models of different folds share training queries, which they
    do not know of. Costs `folds` fits a ranker.

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
    if not getattr(data, "is_cluster_data", False):
        check_ranking_data(data)
    parsed = parse_measures(measures, convention)
    judgements = data.judgements()  # raises without grades
    query = data.query_index
    parts = query_folds(data.n_queries, folds, random_state=seed_of(random_state), query_ids=data.query_ids)
    every = np.arange(data.n_queries)
    tested = np.empty(data.n_queries, dtype=np.int64)
    scores = {name: np.empty(data.n_rows) for name in named}
    for k, part in enumerate(parts):
        tested[part] = k
        rest, test = np.setdiff1d(every, part), data.take_queries(part)
        rows = np.isin(query, part)
        for name, ranker in named.items():
            valid = None
            own = rest
            if validate and getattr(ranker, "uses_eval_set", False):
                valid, own = data.take_queries(parts[k - 1]), np.setdiff1d(rest, parts[k - 1])
            scores[name][rows] = ranker_scores(fit_ranker(ranker, data.take_queries(own), valid), test)
    values = {
        name: {label: measure.per_query(judgements, own) for label, measure in parsed.items()}
        for name, own in scores.items()
    }
    return CrossValidation(
        values,
        {name: data.restore(own) for name, own in scores.items()},
        tested,
        data.query_ids,
        convention,
        parsed,
    )
