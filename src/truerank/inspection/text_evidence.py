"""Evidence for a ranker of texts: cross-validation in comparison with tuned retrieval functions, and calibration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from truerank.calibration.pool import PooledCalibrator
from truerank.calibration.ranker import cross_fitted_scores, on_one_level
from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.printing import progress
from truerank.core.results import Result
from truerank.core.types import RandomState
from truerank.data.grouping import places_of
from truerank.data.ranking_data import RankingData
from truerank.data.splits import Fold, query_folds
from truerank.inspection.folds import Tried, fitted_folds
from truerank.io.documents import Document
from truerank.io.trec import Qrels
from truerank.measures import parse_measure
from truerank.rankers.pipeline import RankerPipeline, ranker_scores
from truerank.rankers.text_ranker import TextRanker
from truerank.significance.comparison import compare_values
from truerank.significance.paired import LEVEL
from truerank.significance.tables import Comparison
from truerank.text.index import Index
from truerank.text.retrieval_functions import RetrievalFunction
from truerank.text.tuning import chosen_by_fold, grid_of, values_of_functions

BASE = ("bm25", "cosine", "dirichlet", "jelinek-mercer", "tfidf")


@dataclass(repr=False, eq=False)
class TextEvidence(Result):
    """The result of `cross_validate_text`, with average precision on held-out queries, and a fitted model."""

    comparison: Comparison  # "bm25" and "best-base" against "ranker", with values by query; one correction for both
    model: TextRanker  # fitted to all queries, with a calibrator unless a constant probability is better
    chosen: int  # number of the model's candidate
    baselines: dict[str, list[str]]  # functions by baseline and fold
    bm25: RetrievalFunction  # BM25 with the best parameters for all queries
    folds: list[Fold] = field(repr=False)
    scores: np.ndarray = field(repr=False)  # held-out scores (n,) of the rows, on the level of the model
    log_loss: float  # of held-out probabilities
    log_loss_of_share: float  # of the share of relevant documents

    KIND: ClassVar[str] = "text-evidence"

    @property
    def verdict(self) -> dict[str, Any]:
        """The comparison of the ranker with BM25; the `outcome` is "better", "worse" or "no difference shown"."""
        (pair,) = (pair for pair in self.comparison.pairs if pair.a == "bm25")
        outcome = "no difference shown" if pair.p_adjusted >= LEVEL else "better" if pair.difference < 0 else "worse"
        return {
            "outcome": outcome, "against": "bm25", "measure": self.comparison.measure, "difference": -pair.difference,
            "low": -pair.high, "high": -pair.low, "p": pair.p, "p_adjusted": pair.p_adjusted,
            "test": self.comparison.test, "queries": pair.queries,
        }  # fmt: skip

    @property
    def calibrated(self) -> bool:
        """Whether held-out probabilities have a log loss that is not above that of a constant."""
        return self.log_loss <= self.log_loss_of_share

    @property
    def summary(self) -> str:
        """The sentence of the comparison."""
        return self.comparison.summary

    def _figures(self) -> dict[str, Any]:
        per_query = self.comparison.per_query
        return {
            "MAP": self.comparison.means,
            "comparison": self.comparison._figures(),
            "per_query": {
                query: {name: float(values[k]) for name, values in per_query.items()}
                for k, query in enumerate(self.comparison.query_ids or [])
            },
            "convention": self.comparison.convention,
            "verdict": self.verdict,
            "baselines": self.baselines,
            "probabilities": {
                "log_loss": self.log_loss, "log_loss_of_share": self.log_loss_of_share, "calibrated": self.calibrated,
            },
        }  # fmt: skip

    def _table(self, style: str) -> str:
        return self.comparison._table(style)


def cross_validate_text(
    models: TextRanker | Sequence[TextRanker],
    data: RankingData,
    index: Index,
    queries: Iterable[Document],
    qrels: Qrels,
    *,
    cv: int = 5,
    depth: int = 1000,
    n_jobs: int | None = None,
    random_state: RandomState = 0,
) -> TextEvidence:
    """Compare a ranker of texts with tuned retrieval functions on held-out queries, and fit it to all queries.

    Each fold is ranked by a ranker, by BM25 and by the best base function, whose settings were chosen on other queries.
    The measure is AP (convention trec). One test corrects p for both baselines.

    Parameters
    ----------
    models : TextRanker, or candidates
        Unfitted, with the fitted `features` that computed `data`. On each fold, the candidate with the highest MAP on
        the fold before is fitted to all queries that the fold does not test. The final model is the candidate with the
        highest mean of these MAP.
    data : RankingData
        The features of the candidates of each query (`TextFeatures.transform`).
    index, queries, qrels
        The queries with relevant documents. A query without rows in `data` counts 0 for every system.
    cv : int, default 5
        Number of folds, at least 3: training, validation and tested queries.
    depth, n_jobs : documents of a base function's ranking, and threads
    random_state : seed of the folds

    Notes
    -----
    The calibrator of a fold is fitted to scores of rankers that saw neither the fold nor the scored rows, which
    requires about cv² fits.
    """
    check_positive_int(cv, "cv", 3)
    asked, candidates = {one.id: one for one in queries}, [models] if isinstance(models, TextRanker) else list(models)
    if unknown := [name for name in data.query_ids.tolist() if name not in asked]:
        raise InvalidInputError(f"queries has no query {unknown[0]!r} of the data. Add it", argument="queries")
    there = [asked.pop(name) for name in data.query_ids.tolist()]  # in the order of the rows
    nothing = list(asked.values())
    parts = query_folds(data.n_queries, cv, random_state=random_state)
    scores, fitted, best = held_out_scores(candidates, data, parts)
    measure = parse_measure("AP", convention="trec")
    values, baselines, bm25 = tuned_baselines(index, there, qrels, parts, depth, n_jobs)
    own = {"ranker": measure.per_query(data.judgements(), scores)} | values
    comparison = compare_values(
        {name: np.append(one, np.zeros(len(nothing))) for name, one in own.items()}, measure="AP", convention="trec",
        query_ids=[*data.query_ids.tolist(), *(query.id for query in nothing)], baseline="ranker",
    )  # fmt: skip
    model = candidates[best]
    model = TextRanker(model.ranker, model.features, model.binning).fit_rows(data)
    if model.features is not None:
        model.features_ = model.features
    losses = _losses([_over_rows(one) for one in candidates], fitted, scores, data)
    levelled, whole = scores.copy(), model.predict(data)
    for fold, ranker, _ in fitted:
        rows, train = _rows(data, fold.test), np.union1d(fold.train, fold.valid)
        trained = ranker_scores(ranker, data.take_queries(train))
        levelled[rows] = on_one_level(scores[rows], trained, whole[_rows(data, train)])
    folds = [fold for fold, *_ in fitted]
    found = TextEvidence(comparison, model, best, baselines, bm25, folds, levelled, *losses)
    if found.calibrated:
        model.calibrator_ = _calibrator(levelled, data)
    return found


Fitted = list[tuple[Fold, Any, int]]
"""Each fold with its ranker of rows, and the number of the ranker's candidate."""


def held_out_scores(
    candidates: Sequence[TextRanker], data: RankingData, parts: Sequence[np.ndarray]
) -> tuple[np.ndarray, Fitted, int]:
    """Return scores (n,) of rankers trained on other folds, these rankers, and the number of the best candidate."""
    tried: Tried = [({"number": k}, _over_rows(one)) for k, one in enumerate(candidates)]
    every, measure = np.arange(data.n_queries), parse_measure("AP", convention="trec")
    folds = [
        Fold(str(k + 1), np.setdiff1d(every, np.concatenate([test, parts[k - 1]])), parts[k - 1], test)
        for k, test in enumerate(parts)
    ]
    scores, totals, fitted = np.zeros(data.n_rows), np.zeros(len(tried)), Fitted()
    for fold, rankers, chosen, means in fitted_folds({"ranker": tried}, data, folds, measure, refit=True):
        scores[_rows(data, fold.test)] = ranker_scores(rankers["ranker"], data.take_queries(fold.test))
        fitted.append((fold, rankers["ranker"], chosen["ranker"]["number"]))
        totals += means["ranker"] or 0.0
    return scores, fitted, int(totals.argmax())


def _over_rows(model: TextRanker) -> Any:
    """Return the ranker of rows of features that a TextRanker fits."""
    return model.ranker if model.binning is None else RankerPipeline([model.binning], model.ranker)


def _rows(data: RankingData, queries: np.ndarray) -> np.ndarray:
    return np.asarray(places_of(data.offsets, queries)[0])


def tuned_baselines(
    index: Index,
    queries: Sequence[Document],
    qrels: Qrels,
    parts: Sequence[np.ndarray],
    depth: int,
    n_jobs: int | None = None,
) -> tuple[dict[str, np.ndarray], dict[str, list[str]], RetrievalFunction]:
    """Return AP by query of tuned BM25 and of the best base function, their functions by fold, and the best BM25."""
    functions = {name: grid_of(index, name) for name in BASE}
    values = {
        name: values_of_functions(index, queries, qrels, grid, depth=depth, n_jobs=n_jobs)
        for name, grid in functions.items()
    }
    everything = [function for grid in functions.values() for function in grid]
    choices = {
        "bm25": (values["bm25"], functions["bm25"]),
        "best-base": (np.concatenate([*values.values()]), everything),
    }
    found, names = dict[str, np.ndarray](), dict[str, list[str]]()
    for name, (own, grid) in choices.items():
        found[name], numbers = chosen_by_fold(own, parts)
        names[name] = [repr(grid[number]) for number in numbers]
    return found, names, functions["bm25"][int(values["bm25"].mean(axis=1).argmax())]


def _calibrator(scores: np.ndarray, data: RankingData) -> PooledCalibrator:
    """Return a calibrator of scores (n,); documents of a query depend on each other, so queries are its groups."""
    relevant = (data.judgements().grades > 0).astype(np.int64)
    return PooledCalibrator(random_state=0).fit(scores, relevant, groups=data.query_index)


def _losses(rankers: Sequence[Any], fitted: Fitted, scores: np.ndarray, data: RankingData) -> tuple[float, float]:
    """Return the log losses of held-out probabilities, and of the share of relevant training documents."""
    log_loss = base = 0.0
    relevant = (data.judgements().grades > 0).astype(np.int64)
    for fold, ranker, number in progress(fitted, "folds of calibration"):
        rest = np.union1d(fold.train, fold.valid)
        train, rows = data.take_queries(rest), _rows(data, fold.test)
        parts = [np.searchsorted(rest, other.test) for other, *_ in fitted if other is not fold]
        held = cross_fitted_scores(rankers[number], train, parts, fitted=ranker)
        p = _calibrator(held, train).predict_proba(scores[rows])
        own = relevant[rows]
        log_loss -= float(np.log(np.clip(p[np.arange(len(rows)), own], 1e-15, 1.0)).sum())
        share = relevant[_rows(data, rest)].mean()
        base -= float(np.log(np.where(own == 1, share, 1 - share)).sum())
    return log_loss / data.n_rows, base / data.n_rows
