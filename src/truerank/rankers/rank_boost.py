"""RankBoost: boost threshold stumps without listing pairs (Freund et al. 2003)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, field
from typing import Any, ClassVar

import numpy as np

from truerank.core.rounds import tell
from truerank.data.ranking_data import RankingData
from truerank.rankers.base import Ranker
from truerank.rankers.constructor_names import estimator
from truerank.rankers.sums.rank_boost import PairWeights, StumpScores
from truerank.solvers.early_stopping import EarlyStopping
from truerank.solvers.result import Status
from truerank.trees.stumps import TOLERANCE, StepFunctions, Stump

_OF_STUMPS: dict[str, type] = {"feature": np.int64, "threshold": np.float64, "missing": np.int64, "edge": np.float64}
_CAP = 1e-12  # |r| is kept this far below 1, so that a perfect stump has a finite weight (14.2)


@estimator
class RankBoost(Ranker):
    """Weighted sum of threshold stumps that minimises an exponential loss over document pairs (RankBoost).

    Every pair (a, b) of documents of one query, a of the lower grade, has a weight D(a, b), uniform at first (or in
    proportion to the weight of its query). A round chooses the stump `h(x) = 1[x_k > theta]` with the largest |r|,

        r = sum_(a,b) D(a, b) (h(b) - h(a)),    alpha = 1/2 ln((1 + r) / (1 - r)),

    and sets `D(a, b) <- D(a, b) exp(alpha (h(a) - h(b))) / Z`. The score is `f(x) = sum_t alpha_t h_t(x)`, which
    minimises the mean over pairs of `exp(f(a) - f(b))`, an upper bound of the share of wrongly ordered pairs.

    D(a, b) is proportional to exp(f(a) - f(b)), which factors over documents. A round therefore costs O(rows x columns)
    for any number of pairs, and the model is the same as if all pairs were listed.

    Parameters
    ----------
    n_estimators : int, default 300
        Rounds.
    thresholds : int or "all", default 100
        Number of evenly spaced thresholds of each column between its smallest and largest value, or "all" distinct
        values, which fit skewed columns better and need more memory.
    measure : str, Measure or callable, default "nDCG@10"
        The measure that `score` reports, and that of `eval_set` without `validation_measure`.
    validation_measure : str, Measure or callable, optional
        The measure on `eval_set`, averaged over orders of ties; None means `measure`.
    convention : str, default "ranklib"
        Evaluation convention: settings that the name of the measure does not contain.
    patience : int or None, default None
        With `eval_set`: stop after this many rounds without a better validation measure; None runs all rounds. The
        rounds up to the best one are kept in both cases.
    n_jobs : int or None, default None
        Threads; any number gives the same bits.

    Attributes
    ----------
    feature_, threshold_, weight_, missing_ : arrays (n_iter_,)
        The stumps: column, theta, alpha, and h where the value is missing (nan), 0 or 1.
    edge_ : float64 array (n_iter_,)
        r of each round.
    exponential_loss_ : float64 array (rounds run,)
        Mean over pairs of exp(f(a) - f(b)) before each round, 1 at first.
    history_ : dict of arrays
        For each round that was run: `loss` (`exponential_loss_`), `edge`, `alpha` (the stump's weight), `validation`
        (NaN without `eval_set`, and with it also `validation_scores_`).
    n_iter_ : int
        Rounds kept.
    status_ : str
        Reason why training stopped.

    Raises
    ------
    InvalidInputError
        If a parameter is out of range or a value is infinite.

    Notes
    -----
    Missing values (nan): each stump uses the side, 0 or 1, with the larger |r|. A column with missing values also has
    the threshold -inf. If a column had no missing value in training, nan later counts as "not above the threshold".

    Ties: stumps within 1e-12 of the largest |r| go to the lowest column, then the lowest threshold, then missing 0.

    Without any pair of different grades the model has no stumps and scores are 0. |r| = 1 is capped at 1 - 1e-12 and
    ends training, and so does a round in which no stump has |r| > 1e-12.

    Difference from the paper: theta is on a grid unless `thresholds="all"`.

    References
    ----------
    Y. Freund, R. Iyer, R. E. Schapire, Y. Singer: An efficient boosting algorithm for combining preferences. Journal
    of Machine Learning Research 4 (2003), 933-969; figures 1 and 2, section 3.2 (third method: r and alpha).

    Examples
    --------
    >>> from truerank import RankBoost
    >>> X = [[0.1, 3.0], [0.4, 1.0], [0.9, 2.0], [0.2, 5.0], [0.8, 4.0]]
    >>> ranker = RankBoost(n_estimators=5, thresholds="all").fit(X, [0, 1, 2, 0, 1], qid=[1, 1, 1, 2, 2])
    >>> ranker.feature_.tolist(), ranker.threshold_.tolist()
    ([0, 0, 0, 0, 0], [0.2, 0.4, 0.2, 0.4, 0.2])
    >>> ranker.rank(X, qid=[1, 1, 1, 2, 2]).tolist()
    [3, 2, 1, 2, 1]
    """

    feature_: np.ndarray = field(init=False)
    threshold_: np.ndarray = field(init=False)
    missing_: np.ndarray = field(init=False)
    edge_: np.ndarray = field(init=False)
    model_attributes: ClassVar[dict[str, str]] = {
        "weight_ edge_": "float64[stumps]",
        "feature_": "int64[stumps] in [0, p)",
        "threshold_": "float64[stumps] in [-inf, inf]",
        "missing_": "int64[stumps]",
        "n_iter_": "int??",
    }
    allow_nan = True
    missing_values = "to the side of each stump that fits better"
    learns_elsewhere = True
    uses_eval_set = True

    allowed: ClassVar[dict[str, str]] = {
        "n_estimators": "int in [1, inf)",
        "patience": "int in [1, inf)?",
        "thresholds": "int in [1, inf) | 'all'",
    }

    n_estimators: int = 300
    _: KW_ONLY
    thresholds: int | str = 100
    measure: Any = "nDCG@10"
    validation_measure: Any = None
    convention: str = "ranklib"
    patience: int | None = None
    n_jobs: int | None = None

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        rounds = int(self.n_estimators)
        curve = watched = None
        if valid is not None:
            curve = EarlyStopping(self._measure("validation_measure"), self.convention, self.patience)
            watched = StumpScores(valid.in_parts(self.n_jobs), curve)
        pairs = PairWeights(data.in_parts(self.n_jobs))
        stumps: list[Stump] = []
        weights: list[float] = []
        losses: list[float] = []
        status = Status.ALL_ROUNDS
        if not pairs.n_rows:
            status, rounds = Status.NOTHING_TO_LEARN, 0
        else:
            pairs.prepare(self.thresholds)
        for t in range(1, rounds + 1):
            stump = pairs.best_stump()
            losses.append(pairs.exponential_loss)
            if stump is None or abs(stump.edge) <= TOLERANCE:
                status = Status.NO_WEAK_RANKER
                break
            edge = min(max(stump.edge, -1 + _CAP), 1 - _CAP)
            weight = 0.5 * math.log((1 + edge) / (1 - edge))
            stumps.append(Stump(stump.feature, stump.threshold, stump.missing, edge))
            weights.append(weight)
            stop = False
            if curve is not None and watched is not None:
                stop = curve.add_value(watched.value_with(stump, weight))
            if abs(stump.edge) >= 1 - _CAP:
                status = Status.PERFECT
                break
            if stop:
                status = Status.VALIDATION
                break
            if tell(t, rounds, validation=None if curve is None else curve.values[-1], loss=losses[-1]):
                status = Status.CALLBACK
                break
            pairs.apply(stump, weight)
        kept = len(stumps) if curve is None else curve.best_round
        for name, kind in _OF_STUMPS.items():
            setattr(self, f"{name}_", np.array([getattr(stump, name) for stump in stumps[:kept]], dtype=kind))
        self.weight_ = np.array(weights[:kept], dtype=np.float64)
        self.exponential_loss_ = np.array(losses)
        self.history_ = {
            "loss": np.array(losses),
            "edge": np.array([s.edge for s in stumps]),
            "alpha": np.array(weights),
            "validation": np.full(len(weights), np.nan) if curve is None else np.array(curve.values),
        }
        self.n_iter_ = kept
        self.__dict__.pop("validation_scores_", None)
        if curve is not None:
            self.validation_scores_ = np.array(curve.values)
        self._finish(status)

    def _feature_shares(self) -> np.ndarray:
        return np.bincount(self.feature_, np.abs(self.weight_), minlength=self.n_features_in_)

    def _predict(self, X: np.ndarray) -> np.ndarray:
        return self.step_functions().predict(X, self.n_jobs)

    def step_functions(self) -> StepFunctions:
        """Return the fitted ranker as one step function for each feature."""
        return StepFunctions(self.feature_, self.threshold_, self.missing_, self.weight_)
