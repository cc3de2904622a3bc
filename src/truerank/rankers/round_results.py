"""Results of a fit by round, also under the names of other libraries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.names import resolve
from truerank.core.types import Scorer
from truerank.measures import DEFAULT_CONVENTION, parse_measure


class EvaluationResults(dict[str, Any]):
    """The dict `evals_result_`, which also accepts keys in the spelling of LightGBM and XGBoost.

    >>> results = EvaluationResults({"valid_0": EvaluationResults({"nDCG@10": [0.5]})})
    >>> results["validation_0"]["ndcg@10"]
    [0.5]
    """

    def __missing__(self, key: object) -> Any:
        wanted = _spelling(key)
        for name, value in self.items():
            if _spelling(name) == wanted:
                return value
        raise KeyError(f"{key!r} is not among {', '.join(map(repr, self))}")


class NotHere:
    """An attribute of other libraries that truerank lacks; the error names its replacement."""

    def __init__(self, instead: str) -> None:
        self.instead = instead

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, ranker: Scorer, owner: type | None = None) -> Any:
        if ranker is None:
            return self
        raise AttributeError(f"{type(ranker).__name__} has no {self.name}: {self.instead}")


class BestRound(int):
    """The best round, counted from 0; as `num_iteration` of `predict` it means the trees up to it, as in LightGBM."""


class BestValue(float):
    """The value that selected the round, as in XGBoost; `value[set][measure]` has all values, as in LightGBM."""

    by_set: EvaluationResults

    def __getitem__(self, name: str) -> Any:
        return self.by_set[name]


class RoundResults:
    """Results of a fitted ranker by round, also under the names of XGBoost, LightGBM and CatBoost."""

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
            raise AttributeError(f"{type(self).__name__} has no best_iteration_: it is not fitted, or has no rounds")
        return int(rounds)

    @property
    def best_iteration(self) -> BestRound:
        """Number of the last round in the model, counted from 0 as in XGBoost."""
        return BestRound(self.best_iteration_ - 1)

    @property
    def best_score_(self) -> EvaluationResults:
        """Value of each measure on each validation set for the kept rounds, as in LightGBM."""
        results = self._results("best_score_")
        if not len(getattr(self, "validation_scores_", ())):
            raise AttributeError(f"{type(self).__name__} has no best_score_: its fit did not evaluate the rounds")
        last = self.best_iteration  # the measure that is watched has values of later rounds, too
        return EvaluationResults(
            {
                name: EvaluationResults({measure: float(values[last]) for measure, values in own.items()})
                for name, own in results.items()
            }
        )

    @property
    def best_score(self) -> BestValue:
        """Value of the watched measure on the last validation set for the kept rounds, as in XGBoost."""
        values = self.best_score_
        *_, chosen = values.values()
        best = BestValue(next(iter(chosen.values())))
        best.by_set = values
        return best

    def get_booster(self) -> Self:
        """Return the ranker, which has the results of XGBoost's and LightGBM's boosters."""
        return self

    booster_ = property(get_booster)

    def dump_model(self) -> Any:
        """Return what `save_model` writes as a dict; `export_model` writes the formats of other libraries."""
        return json.loads(resolve("truerank.models.model_file:model_text")(self))

    def get_best_iteration(self) -> int:
        """Return the best round, counted from 0, as in CatBoost."""
        return self.best_iteration

    def get_best_score(self) -> EvaluationResults:
        """Return `best_score_`, as in CatBoost."""
        return self.best_score_

    def get_evals_result(self) -> EvaluationResults:
        """Return `evals_result_`, as in CatBoost."""
        return self._results("evals_result_")

    def get_num_boosting_rounds(self) -> int:
        """Return the number of rounds in the model, as in XGBoost."""
        return self.best_iteration_

    tree_count_ = n_estimators_ = property(get_num_boosting_rounds)

    def feature_name(self) -> list[str]:
        """Return the names of the columns; empty if the ranker was fitted to an array."""
        return [str(name) for name in getattr(self, "feature_names_in_", ())]

    feature_name_ = property(feature_name)

    def feature_importance(self: Any, importance_type: str = "gain", iteration: Any = None) -> np.ndarray:
        """Return `feature_importances_` (p,) for every `importance_type` of LightGBM."""
        shares: np.ndarray = self.feature_importances_
        return shares

    def get_score(self: Any, fmap: str = "", importance_type: str = "gain") -> dict[str, float]:
        """Return the positive shares of `feature_importances_` by name, as in XGBoost; `f0` is the first column."""
        shares = self.feature_importances_.tolist()
        names = self.feature_name() or [f"f{k}" for k in range(len(shares))]
        return {name: share for name, share in zip(names, shares) if share > 0}

    get_fscore = get_score

    def get_feature_importance(self: Any, data: Any = None, type: str = "FeatureImportance", **other: Any) -> Any:
        """Return `feature_importances_` in percent (p,), as in CatBoost; a data frame with `prettified=True`."""
        if type not in ("FeatureImportance", "PredictionValuesChange"):
            raise InvalidInputError(
                f"get_feature_importance has no type {type!r}. Use contributions(X) for Shapley values, or "
                "permutation_importance(X, y, qid=qid) for the loss of the measure",
                argument="type",
            )
        percent = 100.0 * self.feature_importances_
        if not other.get("prettified"):
            return percent
        order = np.argsort(-percent, kind="stable")
        names = np.array(self.feature_name() or list(range(len(percent))), dtype=object)
        return resolve("pandas:DataFrame")({"Feature Id": names[order], "Importances": percent[order]})

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
    convention = getattr(ranker, "convention", DEFAULT_CONVENTION)
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
