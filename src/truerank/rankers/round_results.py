"""The results of a fit by round: `history_`, and `evals_result_` of the validation sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from truerank.core.types import Scorer
from truerank.measures import parse_measure


class EvaluationResults(dict[str, Any]):
    """`evals_result_`: a dict that also finds the spellings of LightGBM and XGBoost.

    >>> results = EvaluationResults({"valid_0": EvaluationResults({"nDCG@10": [0.5]})})
    >>> results["validation_0"]["ndcg@10"]
    [0.5]
    """

    def __missing__(self, key: object) -> Any:
        wanted = _spelling(key)
        for name, value in self.items():
            if _spelling(name) == wanted:
                return value
        raise KeyError(f"{key!r}; there are {', '.join(map(repr, self))}")


class NotHere:
    """An attribute of other libraries that is missing here; the error names its replacement."""

    def __init__(self, instead: str) -> None:
        self.instead = instead

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, ranker: Scorer, owner: type | None = None) -> Any:
        if ranker is None:
            return self
        raise AttributeError(f"{type(ranker).__name__} has no {self.name}: {self.instead}")


class RoundResults:
    """Results of a fitted ranker by round, also under the names of XGBoost, LightGBM and CatBoost."""

    get_booster = NotHere("use save_model, export_model for other formats, or staged_predict for fewer rounds")
    booster_ = NotHere("use save_model, export_model for other formats, or staged_predict for fewer rounds")
    get_evals_result = NotHere("use evals_result_")
    get_best_iteration = NotHere("use best_iteration_, counted from 1")
    get_best_score = NotHere("use best_score_")
    get_feature_importance = NotHere("use feature_importances_")
    feature_names_ = NotHere("use feature_names_in_")
    feature_name_ = NotHere("use feature_names_in_")
    n_features_ = NotHere("use n_features_in_")
    tree_count_ = NotHere("use n_iter_")
    n_estimators_ = NotHere("use n_iter_")
    get_num_boosting_rounds = NotHere("use n_iter_")
    get_all_params = NotHere("use get_params")
    get_xgb_params = NotHere("use get_params")
    eval_metrics = NotHere("use evaluate(y, scores, measures, qid=qid), with the scores of staged_predict by round")

    evals_result_: EvaluationResults

    @property
    def fitted_(self) -> bool:
        """Whether the ranker has been fitted (LightGBM's name)."""
        return hasattr(self, "n_features_in_")

    @property
    def best_iteration_(self) -> int:
        """Number of rounds in the model: all, or those up to the best round on `eval_set`."""
        rounds = getattr(self, "n_iter_", None)
        if rounds is None:
            raise AttributeError(f"{type(self).__name__} has no best_iteration_: it is not fitted, or not in rounds")
        return int(rounds)

    @property
    def best_iteration(self) -> int:
        """The same counted from 0, as in XGBoost."""
        return self.best_iteration_ - 1

    @property
    def best_score_(self) -> EvaluationResults:
        """Value of each measure on each validation set for the kept rounds, as in LightGBM."""
        results = self._results("best_score_")
        if not len(getattr(self, "validation_scores_", ())):
            raise AttributeError(f"{type(self).__name__} has no best_score_: it was not watched round by round")
        last = self.best_iteration  # the measure that is watched has values of later rounds, too
        return EvaluationResults(
            {
                name: EvaluationResults({measure: float(values[last]) for measure, values in own.items()})
                for name, own in results.items()
            }
        )

    @property
    def best_score(self) -> float:
        """Value of the watched measure on the last validation set for the kept rounds, as in XGBoost."""
        *_, chosen = self.best_score_.values()
        return next(iter(chosen.values()))

    def evals_result(self) -> dict[str, dict[str, list[float]]]:
        """Return `evals_result_` as lists, by "validation_0" and "ndcg@10", as in XGBoost."""
        return {
            name.replace("valid_", "validation_") if name.startswith("valid_") else name: {
                measure.lower(): [float(value) for value in values] for measure, values in own.items()
            }
            for name, own in self._results("evals_result").items()
        }

    def _results(self, asked: str) -> EvaluationResults:
        if not hasattr(self, "evals_result_"):
            raise AttributeError(f"{type(self).__name__} has no {asked}: it was fitted without eval_set")
        return self.evals_result_


def _spelling(key: object) -> str:
    return str(key).lower().replace("validation_", "valid_").replace("-", "@")


def values_by_round(
    ranker: Any, watched: list[tuple[str, Any]], cutoffs: Sequence[int] = (), more: Sequence[Any] = ()
) -> EvaluationResults:
    """Return the validation measure, nDCG at `cutoffs` and more measures by set and round."""
    convention = getattr(ranker, "convention", "ranklib")
    watch = ranker._measure("validation_measure")
    others = [parse_measure(one, convention=convention) for one in (*more, *(f"nDCG@{int(k)}" for k in cutoffs))]
    values = EvaluationResults()
    for place, (name, data) in enumerate(watched, 1):
        watched_in_fit = place == len(watched)
        measures = [one for one in others if one != watch] if watched_in_fit else [watch, *others]
        values[name] = EvaluationResults()
        if watched_in_fit:
            values[name][watch.name] = np.asarray(getattr(ranker, "validation_scores_", ()), dtype=np.float64)
        if measures:
            ordered = data.replaced(order=None)
            judgements = ordered.judgements()
            rounds = [
                [one.tie_averaged().mean(judgements, scores) for one in measures]
                for scores in ranker.staged_predict(ordered)
            ]
            table = np.array(rounds, dtype=np.float64).reshape(-1, len(measures))
            values[name] |= {one.name: table[:, k] for k, one in enumerate(measures)}
    return values
