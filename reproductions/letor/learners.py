"""The learners of LETOR's tables, the settings that validation chooses from, and the published figures."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from reproductions.protocol import Fold, Selection, published, select
from truerank.models.registry import ranker_class


@dataclass(frozen=True)
class Learner:
    """A row of the tables.

    Attributes
    ----------
    name : str
        Its name in the tables.
    ranker : str
        Its name in the registry.
    settings : tuple of dict
        Validation chooses one of these.
    stops : bool
        Whether training stops early by the validation queries, with the measure that selection uses.
    """

    name: str
    ranker: str
    settings: tuple[dict[str, Any], ...]
    stops: bool = False


def _grid(name: str, values: Any, **fixed: Any) -> tuple[dict[str, Any], ...]:
    return tuple({name: value} | fixed for value in values)


def _decades(low: int, high: int) -> list[float]:
    return [10.0**k for k in range(low, high + 1)]


_TREES: dict[str, Any] = {"depth": 6, "borders": 32, "learning_rate": 0.05, "n_estimators": 250, "patience": 100}
_C = (0.1, 1.0, 10.0, 100.0, 1000.0)

# Grids start with the strongest regularisation: the first of equally good candidates is chosen.
LEARNERS = (
    Learner("random", "random", ({},)),
    Learner("single feature", "single-feature", ({"measure": "AP"},)),
    Learner("ridge", "ridge", _grid("alpha", _decades(-2, 5)[::-1])),
    Learner("RankSVM", "rank-svm", _grid("C", _decades(-6, -1), loss="squared_hinge")),
    Learner("pairwise descent", "pairwise-descent", _grid("alpha", _decades(-6, -1)[::-1])),
    Learner("RankBoost", "rank-boost", ({"thresholds": "all", "n_estimators": 300},), stops=True),
    Learner("RankBoost, ten thresholds", "rank-boost", ({"thresholds": 10, "n_estimators": 300},), stops=True),
    Learner("ListNet", "list-net", _grid("alpha", (100.0, 10.0, 1.0, 1e-2, 1e-4))),
    Learner("AdaRank-MAP", "adarank", ({"measure": "AP", "update": "adaboost"},)),
    Learner("AdaRank-NDCG", "adarank", ({"measure": "nDCG@5", "update": "adaboost"},)),
    Learner("SVM-MAP", "measure-svm", _grid("C", _C, measure="AP", rel=1, tol=1e-3)),
    Learner("SVM-ROC", "measure-svm", _grid("C", _C, measure="ROC", rel=1, tol=1e-4)),
    Learner("oblivious trees", "oblivious-boosting", ({"leaves": "constant", **_TREES},), stops=True),
    Learner(
        "oblivious trees, fuzzy",
        "oblivious-boosting",
        ({"leaves": {"kind": "fuzzy", "p_swap": 0.999, "ties": "near"}, **_TREES},),
        stops=True,
    ),
)
# AdaRank stops by its own measure, so it gets the validation queries and keeps that measure.
_OWN_MEASURE = ("adarank",)

PUBLISHED: dict[str, dict[str, dict[str, float]]] = published("letor")["tables"]
"""Published figures by collection and learner."""


def fit_learner(learner: Learner, params: dict[str, Any], fold: Fold, convention: str, seed: int) -> Any:
    """Fit one setting on a fold's training queries; learners that stop early also get the validation queries."""
    cls = ranker_class(learner.ranker)
    known = cls().get_params(deep=False)
    settings = dict(params)
    if "random_state" in known:
        settings.setdefault("random_state", seed)
    watches = learner.ranker in _OWN_MEASURE
    if "convention" in known and not watches:
        settings.setdefault("convention", convention)
    if learner.stops:
        settings.setdefault("measure", "AP")
        watches = True
    with warnings.catch_warnings():
        # Validation judges a candidate that stops at its iteration limit like any other.
        warnings.simplefilter("ignore")
        return cls(**settings).fit(fold.train, eval_set=fold.valid if watches else None)


def choose(learner: Learner, fold: Fold, measure: Any, convention: str, seed: int) -> Selection:
    """The best of the learner's settings by `measure` on the fold's validation queries."""
    return select(learner.settings, lambda params, f: fit_learner(learner, params, f, convention, seed), fold, measure)
