"""What a fit leaves behind round by round: `history_`, and `evals_result_` of the validation sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truerank.core.types import Scorer
from truerank.measures import parse_measure


class EvaluationResults(dict[str, Any]):
    """`evals_result_`: found by our names, and by LightGBM's and XGBoost's spelling of these.

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
    """An attribute of other libraries' rankers: it is missing, and the error says what stands for it here."""

    def __init__(self, instead: str) -> None:
        self.instead = instead

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, ranker: Scorer, owner: type | None = None) -> Any:
        if ranker is None:
            return self
        raise AttributeError(f"{type(ranker).__name__} has no {self.name}: {self.instead}")


class RoundResults:
    """What a fitted ranker says of its rounds, also under the names of XGBoost, LightGBM and CatBoost."""

    get_booster = NotHere("save_model keeps a model, export_model writes it for others, staged_predict cuts it short")
    booster_ = NotHere("save_model keeps a model, export_model writes it for others, staged_predict cuts it short")
    get_evals_result = NotHere("it is evals_result_ here")
    get_best_iteration = NotHere("it is best_iteration_ here, counted from 1")
    get_best_score = NotHere("it is best_score_ here")
    get_feature_importance = NotHere("it is feature_importances_ here")
    feature_names_ = NotHere("it is feature_names_in_ here")
    feature_name_ = NotHere("it is feature_names_in_ here")
    n_features_ = NotHere("it is n_features_in_ here")
    tree_count_ = NotHere("it is n_iter_ here")
    n_estimators_ = NotHere("it is n_iter_ here")
    get_num_boosting_rounds = NotHere("it is n_iter_ here")
    get_all_params = NotHere("it is get_params here")
    get_xgb_params = NotHere("it is get_params here")
    eval_metrics = NotHere("evaluate(measures, y, scores, qid=qid), with the scores of staged_predict by round")

    evals_result_: EvaluationResults

    @property
    def fitted_(self) -> bool:
        """Whether it has been fitted, as LightGBM has it."""
        return hasattr(self, "n_features_in_")

    @property
    def best_iteration_(self) -> int:
        """Rounds of the model: all, or those up to the best one on `eval_set` where training stopped early."""
        rounds = getattr(self, "n_iter_", None)
        if rounds is None:
            raise AttributeError(f"{type(self).__name__} has no best_iteration_: it is not fitted, or not in rounds")
        return int(rounds)

    @property
    def best_iteration(self) -> int:
        """`best_iteration_` counted from 0, as XGBoost has it."""
        return self.best_iteration_ - 1

    @property
    def best_score_(self) -> EvaluationResults:
        """Value of each measure on each validation set by the rounds of the model, as LightGBM has it."""
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
        """The value that chose: of the measure that is watched, on the last validation set, as XGBoost has it."""
        *_, chosen = self.best_score_.values()
        return next(iter(chosen.values()))

    def evals_result(self) -> dict[str, dict[str, list[float]]]:
        """`evals_result_` as lists, by "validation_0" and "ndcg@10": XGBoost's form."""
        return theirs(self._results("evals_result"))

    def _results(self, asked: str) -> EvaluationResults:
        if not hasattr(self, "evals_result_"):
            raise AttributeError(f"{type(self).__name__} has no {asked}: it was fitted without eval_set")
        return self.evals_result_


def _spelling(key: object) -> str:
    return str(key).lower().replace("validation_", "valid_").replace("-", "@")


def theirs(results: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """`evals_result()` as XGBoost has it: lists by "validation_0" and "ndcg@10"."""
    return {
        name.replace("valid_", "validation_") if name.startswith("valid_") else name: {
            measure.lower(): [float(value) for value in values] for measure, values in own.items()
        }
        for name, own in results.items()
    }


def values_by_round(
    ranker: Any, watched: list[tuple[str, Any]], cutoffs: Sequence[int] = (), more: Sequence[Any] = ()
) -> EvaluationResults:
    """The validation measure, nDCG at `cutoffs` and more measures, by set and round; the last set's as watched."""
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
