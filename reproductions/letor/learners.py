"""Every learner that a table of learners should have: its settings to choose from, and its published figures."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reproductions.protocol import Fold, Selection, published, select
from truerank.models.registry import RANKERS, ranker_class


@dataclass(frozen=True)
class Learner:
    """A row of the tables.

    Attributes
    ----------
    name : str
        As the tables print it.
    ranker : str
        Name in the registry.
    plain : tuple of dict
        A few settings, those of simple prototypes, of which validation chooses one.
    wide : tuple of dict
        A wider grid; empty where the learner has no row in those tables.
    stops : bool
        Whether training looks at the validation queries (early stopping), by the measure that selection uses.
    """

    name: str
    ranker: str
    plain: tuple[dict[str, Any], ...]
    wide: tuple[dict[str, Any], ...]
    stops: bool = False


def _grid(name: str, values: Any, **fixed: Any) -> tuple[dict[str, Any], ...]:
    return tuple({name: value} | fixed for value in values)


def _fuzzy(p_swap: float) -> dict[str, Any]:
    return {"kind": "fuzzy", "p_swap": p_swap, "ties": "near"}


def _decades(low: int, high: int) -> list[float]:
    return [10.0**k for k in range(low, high + 1)]


_ADARANK_VARIANTS = [
    {"update": update, "signed": signed} for update in ("compound", "adaboost", "paper") for signed in (False, True)
]

_TREES: dict[str, Any] = {"borders": 32, "learning_rate": 0.05, "n_estimators": 250, "patience": 100}

# Grids start with the strongest regularisation: the first of equally good candidates is chosen.
LEARNERS = (
    Learner("random", "random", ({},), ({},)),
    Learner("single feature", "single-feature", ({"measure": "AP"},), ({"measure": "AP"}, {"measure": "nDCG@10"})),
    Learner("ridge", "ridge", _grid("alpha", _decades(-2, 5)[::-1]), _grid("alpha", _decades(-4, 6)[::-1])),
    Learner(
        "RankSVM",
        "rank-svm",
        _grid("C", _decades(-6, -1), loss="squared_hinge"),
        _grid("C", _decades(-8, 1), loss="squared_hinge"),
    ),
    Learner(
        "pairwise descent",
        "pairwise-descent",
        _grid("alpha", _decades(-6, -1)[::-1]),
        _grid("alpha", _decades(-6, -1)[::-1], max_iter=1_000_000),
    ),
    Learner(
        "RankBoost",
        "rank-boost",
        ({"thresholds": "all", "n_estimators": 300},),
        _grid("thresholds", (3, 10, 30, 100, "all"), n_estimators=1000, patience=200),
        stops=True,
    ),
    Learner("RankBoost, ten thresholds", "rank-boost", ({"thresholds": 10, "n_estimators": 300},), (), stops=True),
    Learner(
        "ListNet",
        "list-net",
        _grid("alpha", (100.0, 10.0, 1.0, 1e-2, 1e-4)),
        _grid("alpha", _decades(-6, 4)[::-1]),
    ),
    Learner(
        "AdaRank-MAP",
        "adarank",
        ({"measure": "AP", "update": "adaboost"},),
        tuple({"measure": "AP"} | v for v in _ADARANK_VARIANTS),
    ),
    Learner(
        "AdaRank-NDCG",
        "adarank",
        ({"measure": "nDCG@5", "update": "adaboost"},),
        tuple({"measure": measure} | v for measure in ("nDCG@5", "nDCG@10") for v in _ADARANK_VARIANTS),
    ),
    Learner(
        "SVM-MAP",
        "measure-svm",
        _grid("C", (0.1, 1.0, 10.0, 100.0, 1000.0), measure="AP", rel=1, tol=1e-3),
        _grid("C", _decades(-3, 4), measure="AP", rel=1, tol=1e-3),
    ),
    Learner(
        "SVM-ROC",
        "measure-svm",
        _grid("C", (0.1, 1.0, 10.0, 100.0, 1000.0), measure="ROC", rel=1, tol=1e-4),
        _grid("C", _decades(-3, 4), measure="ROC", rel=1, tol=1e-4),
    ),
    Learner(
        "oblivious trees",
        "oblivious-boosting",
        _grid("depth", (6,), leaves="constant", **_TREES),
        _grid("depth", (4, 6), leaves="constant", **_TREES),
        stops=True,
    ),
    Learner(
        "oblivious trees, fuzzy",
        "oblivious-boosting",
        _grid("leaves", (_fuzzy(0.999),), depth=6, **_TREES),
        _grid("leaves", (_fuzzy(0.999), _fuzzy(0.9995)), depth=6, **_TREES),
        stops=True,
    ),
)
# AdaRank trains on its own measure and stops by it, so it gets the validation queries without a change of measure.
_OWN_MEASURE = ("adarank",)

# Rows of the tables by collection; what no source at hand gives is not there.
PUBLISHED: dict[str, dict[str, dict[str, float]]] = published("letor")["tables"]


def known_learners(only: Sequence[str] | None = None) -> list[Learner]:
    """The learners whose rankers are registered; `only` names rankers."""
    return [x for x in LEARNERS if x.ranker in RANKERS and (only is None or x.ranker in only)]


def fit_learner(learner: Learner, params: dict[str, Any], fold: Fold, convention: str, seed: int) -> Any:
    """Fit one setting on a fold's training queries; validation queries serve early stopping where there is any."""
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
        # A candidate that stops at its iteration limit is judged by validation like any other; status_ is recorded.
        warnings.simplefilter("ignore")
        return cls(**settings).fit(fold.train, eval_set=fold.valid if watches else None)


def choose(
    learner: Learner, candidates: Sequence[dict[str, Any]], fold: Fold, measure: Any, convention: str, seed: int
) -> Selection:
    """The best of `candidates` by `measure` on the fold's validation queries."""
    return select(candidates, lambda params, f: fit_learner(learner, params, f, convention, seed), fold, measure)
