"""The pool for several classes: joint forms and one class against the rest, averaged with weights from held-out rows.

    P(k | z) = Σ_m w_m P_m(k | z)

The weights raise the cross-validated likelihood Σ_i v_i log Σ_m w_m P_m(y_i | z_i) by 50 steps of expectation
maximisation from equal weights; v are the rows' weights. At the maximum, one of several similar members has nearly all
the weight by chance. After 50 steps similar members share it, and bad members have none. Held-out losses contain the
cost of parameters. The members are:

* the softmax of the scores without a fit, if they are log probabilities;
* temperature, vector, matrix and Dirichlet scaling of the scores;
* the probabilities of each class against the rest by `PooledCalibrator`, divided by their sum;
* temperature scaling of the log-odds of each class against the rest. The one-against-rest calibrators are
  cross-validated once, and their held-out log-odds are the scores of the second fit.

Log probabilities of naive Bayes may be thousands of nats below 0, where a few rows determine a fit, and their level
depends on the length of a text. So matrix scaling is also fitted to log probabilities minus the row's mean, and to log
probabilities of at least -18. `python -m benchmarks calibration/bench_several_classes` compares with single methods.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from truerank.calibration.base import Calibrator, quietly
from truerank.calibration.joint import JointCalibrator, SoftmaxCalibrator, against_the_rest, log_softmax
from truerank.calibration.pool import PooledCalibrator, check_members, folds_of, kept_members, rarest_class
from truerank.core.checks import check_positive_int
from truerank.core.errors import ModelFileError
from truerank.core.random_streams import seed_of, stream
from truerank.core.types import RandomState

# Name -> (what it is fitted to, form, inputs).
_MEMBERS: dict[str, tuple[str, str, str]] = {
    "temperature": ("scores", "temperature", "scores"),
    "vector": ("scores", "vector", "scores"),
    "matrix": ("scores", "matrix", "scores"),
    "dirichlet": ("scores", "matrix", "log-softmax"),
    "matrix, centred": ("centred", "matrix", "scores"),
    "matrix, bounded": ("bounded", "matrix", "scores"),
    "one against the rest, odds": ("one-vs-rest", "temperature", "scores"),
}
# A matrix of 50 x 50 numbers needs more rows than most data have, and its fits take minutes.
_MOST_MATRIX_CLASSES = 50
_NORMALISED = "one against the rest"  # a member without parameters of its own
_LOWEST = -18.0  # log probability
_STEPS = 50  # of expectation maximisation
_FOLDS, _FOLDS_OF_FEW, _FEW = 5, 20, 400


class JointPool(JointCalibrator):
    """Average joint calibrators: the default of `CalibratedClassifier` for several classes.

    Parameters
    ----------
    cv : int, optional
        Folds, stratified by class; default 20 for up to 400 rows, where the fits of 5 folds lack too many rows, else 5.
        Copies of a row may be in different folds, unlike a `sample_weight`.
    from_log_probabilities : bool, default False
        Whether the scores are log probabilities of the classes + a constant, as of naive Bayes. Their softmax is then a
        member, and a class is compared with the rest by its log-odds instead of its score.
    random_state : int or generator, optional
        Seed of the folds.

    Attributes
    ----------
    classes_ : array (K,)
    methods_ : list of str
        Members with a weight of 1 % or more, by descending weight.
    weights_ : float64 array (k,)
    members_ : list of SoftmaxCalibrator
        By method; None for the two members without a fit of their own: the softmax of the scores, and the
        probabilities of each class against the rest.
    calibrators_ : list of Calibrator
        Of each class against the rest, if a member needs them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 300)
    >>> pool = JointPool().fit(rng.normal(size=(300, 3)) + 2 * np.eye(3)[y], y)
    >>> int(pool.predict_proba([[2.0, 0.0, 0.0]]).argmax()), float(pool.weights_.sum().round(9))
    (0, 1.0)
    """

    model_attributes: ClassVar[tuple[str, ...]] = (
        *JointCalibrator.model_attributes,
        "methods_",
        "weights_",
        "members_",
        "calibrators_",
    )

    def __init__(
        self, *, cv: int | None = None, from_log_probabilities: bool = False, random_state: RandomState = None
    ) -> None:
        self.cv = cv
        self.from_log_probabilities = from_log_probabilities
        self.random_state = random_state

    def _fit(self, scores: np.ndarray, index: np.ndarray, weight: np.ndarray | None) -> None:
        folds = _FOLDS_OF_FEW if len(scores) <= _FEW else _FOLDS
        cv = folds if self.cv is None else check_positive_int(self.cv, "cv", 2)
        seed = seed_of(self.random_state)
        k = scores.shape[1]
        rows = np.bincount(index, minlength=k)
        fold = folds_of(index, None, max(2, min(cv, int(rows.max()))), stream(seed, "joint-pool"))
        against, calibrators = self._one_against_the_rest(scores, index, weight, seed)
        given = self._inputs(scores) | {"one-vs-rest": against}
        names, loss = [], []
        if self.from_log_probabilities:
            names, loss = ["as they are"], [_losses(log_softmax(scores), index)]
        for name, (source, form, _) in _MEMBERS.items():
            if source not in given or (form == "matrix" and k > _MOST_MATRIX_CLASSES):
                continue
            held_out = np.empty_like(scores)
            for number in range(int(fold.max()) + 1):
                test = fold == number
                fitted = _member(name)
                with quietly():
                    fitted.classes_ = np.arange(k)
                    fitted._fit(given[source][~test], index[~test], None if weight is None else weight[~test])
                held_out[test] = fitted._log_probabilities(given[source][test])
            names.append(name)
            loss.append(_losses(held_out, index))
        names.append(_NORMALISED)
        loss.append(_losses(_normalised(against), index))
        share = stacked_weights(np.stack(loss), weight)
        kept, self.weights_ = kept_members(share)
        self.methods_ = [names[j] for j in kept]
        self.members_: list[SoftmaxCalibrator | None] = []
        for name in self.methods_:
            member = None if name not in _MEMBERS else _member(name)
            if member is not None:
                with quietly():
                    member.classes_ = self.classes_
                    member._fit(given[_MEMBERS[name][0]], index, weight)
            self.members_.append(member)
        needed = any(_source(name) == "one-vs-rest" for name in self.methods_)
        self.calibrators_: list[Calibrator] = calibrators if needed else []

    def _one_against_the_rest(
        self, scores: np.ndarray, index: np.ndarray, weight: np.ndarray | None, seed: int
    ) -> tuple[np.ndarray, list[Calibrator]]:
        """Return held-out log-odds (n, K) of each class's pool, and the pools fitted to all rows."""
        columns = self._columns(scores)
        held_out, calibrators = np.empty_like(scores), []
        for k in range(scores.shape[1]):
            positive = index == k
            pool: Calibrator
            if rarest_class(positive) < 2:
                from truerank.calibration.posteriors import PlattCalibrator

                pool = PlattCalibrator().fit(np.zeros(len(scores)), positive, weight)
                held_out[:, k] = pool.log_odds(np.zeros(len(scores)))
            else:
                pool = PooledCalibrator(n_repeats=1, random_state=seed)
                column = np.ascontiguousarray(columns[:, k])
                held_out[:, k] = pool.fit_and_hold_out(column, positive, weight).pool[0]
            calibrators.append(pool)
        return held_out, calibrators

    def _inputs(self, scores: np.ndarray) -> dict[str, np.ndarray]:
        """Return the scores that members are fitted to, except those of one class against the rest."""
        if not self.from_log_probabilities:
            return {"scores": scores}
        bounded = np.maximum(log_softmax(scores), _LOWEST)
        return {"scores": scores, "centred": scores - scores.mean(axis=1, keepdims=True), "bounded": bounded}

    def _columns(self, scores: np.ndarray) -> np.ndarray:
        """Return the score or the log-odds that calibrates each class against the rest."""
        return against_the_rest(scores) if self.from_log_probabilities else scores

    def _log_probabilities(self, scores: np.ndarray) -> np.ndarray:
        given = self._inputs(scores)
        if self.calibrators_:
            columns = self._columns(scores)
            given["one-vs-rest"] = np.stack(
                [c.log_odds(np.ascontiguousarray(columns[:, k])) for k, c in enumerate(self.calibrators_)], axis=1
            )
        parts = []
        for name, member in zip(self.methods_, self.members_):
            if member is not None:
                parts.append(member._log_probabilities(given[_source(name)]))
            else:
                parts.append(_normalised(given["one-vs-rest"]) if name == _NORMALISED else log_softmax(scores))
        return _average(np.stack(parts), self.weights_)

    def _check_parts(self, n_classes: int) -> None:
        check_members(self, self.members_)
        for name, member in zip(self.methods_, self.members_):
            if (member is None) != (name in ("as they are", _NORMALISED)) or (
                member is not None and name not in _MEMBERS
            ):
                raise ModelFileError(f"JointPool: unknown member {name!r}")
            if member is not None and len(member.classes_) != n_classes:
                raise ModelFileError(f"JointPool: member {name!r} has another number of classes")
        needed = any(_source(name) == "one-vs-rest" for name in self.methods_)
        right = len(self.calibrators_) == (n_classes if needed else 0)
        if not right or not all(isinstance(part, Calibrator) for part in self.calibrators_):
            raise ModelFileError("JointPool: calibrators_ must hold one for each class")


def _member(name: str) -> SoftmaxCalibrator:
    _, form, inputs = _MEMBERS[name]
    return SoftmaxCalibrator(form, inputs=inputs)


def _source(name: str) -> str:
    return "one-vs-rest" if name == _NORMALISED else _MEMBERS[name][0] if name in _MEMBERS else "scores"


def stacked_weights(loss: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Return the weights (k,) at the top of this module, from held-out losses (k, n) and weights of rows (n,).

    A step adds up the share of each row that a member explains.
    """
    w = np.ones(loss.shape[1]) if weight is None else weight
    p = np.exp(loss.min(axis=0) - loss)
    share = np.full(len(loss), 1.0 / len(loss))
    for _ in range(_STEPS):
        explained = share[:, None] * p
        share = (explained / explained.sum(axis=0)) @ w
        share /= share.sum()
    return share


def _losses(log_p: np.ndarray, index: np.ndarray) -> np.ndarray:
    return -log_p[np.arange(len(index)), index]


def _normalised(log_odds: np.ndarray) -> np.ndarray:
    """Return log probabilities (n, K): those of each class against the rest, divided by their sum."""
    return log_softmax(-np.logaddexp(0.0, -log_odds))


def _average(log_p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the logarithm of the average of probabilities (members, n, K), normalised again against rounding."""
    from scipy.special import logsumexp

    pooled = logsumexp(log_p + np.log(weights)[:, None, None], axis=0)
    return np.asarray(pooled - logsumexp(pooled, axis=1, keepdims=True))
