"""Calibrate several classes: a softmax that is linear in the scores, one class against the rest, or their pool.

A classifier of K classes gives each row K scores. `SoftmaxCalibrator` fits

    P(k | z) ∝ exp(a x_k + Σ_j U_jk x_j + b_k)

to held-out rows by maximum likelihood. x are the scores (`inputs="scores"`), their log softmax ("log-softmax"), or the
log sigmoid of each ("log-sigmoid": the scores are log-odds of one class against the rest).

    minimise  Σ_i w_i (-log P(y_i | z_i)) + ridge/2 (Σ U² + Σ b²),    a ≥ 0

The scores are centred and scaled as a whole, and the unit of the ridge is a row. Temperature scaling fits only a.
Vector scaling also fits a diagonal U and b, and matrix scaling fits all of U and b. Matrix scaling of the log softmax
is Dirichlet calibration.

`JointPool` averages members:

    P(k | z) = Σ_m w_m P_m(k | z)

The weights raise the cross-validated likelihood Σ_i v_i log Σ_m w_m P_m(y_i | z_i) by 50 steps of expectation
maximisation from equal weights; v are the rows' weights. At the maximum, one of several similar members has nearly all
the weight by chance. After 50 steps similar members share the weight, and bad members have none. Held-out losses
contain the cost of parameters. A member of less than 1 % of the weight in 150 held-out rows or more is fitted to no
other fold. The members are:

* the softmax of the scores without a fit, if they are log probabilities;
* temperature, vector, matrix and Dirichlet scaling of the scores;
* the probabilities of each class against the rest by `PooledCalibrator`, divided by their sum;
* temperature scaling of the log-odds of each class against the rest. The one-against-rest calibrators are
  cross-validated once, and their held-out log-odds are the scores of the second fit.

Log probabilities of naive Bayes may be thousands of nats below 0, where a few rows determine a fit, and their level
depends on the length of a text. Therefore, matrix scaling is also fitted to log probabilities minus the row's mean, and
to log probabilities of at least -18. `python -m benchmarks calibration/bench_several_classes` compares with single
methods.

References
----------
C. Guo, G. Pleiss, Y. Sun, K. Weinberger (2017), ICML: temperature, vector and matrix scaling. M. Kull et al. (2019),
NeurIPS: Dirichlet calibration and penalties on the matrix. B. Zadrozny, C. Elkan (2002), KDD: one class against the
rest, normalised.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_array, check_is_fitted

from truerank.calibration import SOFTMAX_METHODS
from truerank.calibration.base import (
    LARGEST_SCORE,
    Calibrator,
    as_weight,
    in_unit,
    make_calibrator,
    quietly,
    require_classes,
    require_unit,
    unit_of,
    warn,
)
from truerank.calibration.pool import SMALLEST_WEIGHT, PooledCalibrator, folds_of, kept_members, rarest_class
from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.fitting import fits_whole
from truerank.core.random_streams import seed_of, stream
from truerank.core.schema import check_fields
from truerank.core.threads import one_blas_thread
from truerank.core.types import ArrayLike, RandomState

FORMS = ("temperature", "vector", "matrix")
INPUTS = ("scores", "log-softmax", "log-sigmoid")
_MAX_ITERATIONS = 1000
# Name -> (the scores of a member, its softmax; None for the two members without a fit).
_MEMBERS: dict[str, tuple[str, dict[str, Any] | None]] = {
    "as they are": ("log probabilities", None),
    **{name: ("scores", settings) for name, settings in SOFTMAX_METHODS.items()},
    "matrix, centred": ("centred", {"form": "matrix"}),
    "matrix, bounded": ("bounded", {"form": "matrix"}),
    "one against the rest, odds": ("log-odds", {"form": "temperature"}),
    "one against the rest": ("log-odds", None),
}
# A matrix of 50 x 50 numbers needs more rows than most data have, and its fits take minutes.
_MOST_MATRIX_CLASSES = 50
_LOWEST = -18.0  # log probability
_STEPS = 50  # of expectation maximisation
_ENOUGH = 150  # held-out rows after which members of less than the smallest weight are dropped
_FOLDS, _FOLDS_OF_FEW, _FEW = 5, 20, 400


class JointCalibrator(ClassifierMixin, BaseEstimator):
    """Base class of calibrators that map scores to P(class | scores) of several classes, fitted to held-out scores.

    A subclass implements `_fit(scores, index, weight)` and `_log_probabilities(scores)` on checked float64 (n, K).

    Attributes
    ----------
    classes_ : array (K,)
        The labels of the columns of the scores, in ascending order.
    unit_ : float
        As in `Calibrator`.
    """

    model_attributes: ClassVar[dict[str, str]] = {"classes_": "array[k] unbounded", "unit_": "float??"}

    @fits_whole
    def fit(self, scores: Any, y: Any, sample_weight: Any = None, *, classes: Any = None) -> Any:
        """Fit to scores (n, K) of rows on which the scoring model was not trained, and to their labels; return self.

        A weight of 2 equals two copies of the row, 0 ignores it. `classes` are the labels of the columns, ascending
        (default: those of `y`). NaN or infinite scores, labels that are not among the classes, and a wrong number of
        columns raise `InvalidInputError`.
        """
        labels = np.asarray(y)
        names = np.unique(labels) if classes is None else np.asarray(classes)
        values = as_score_vectors(scores, type(self).__name__, len(names))
        if labels.shape != (len(values),):
            raise InvalidInputError(f"y must have one label for each of the {len(values)} rows, got {labels.shape}")
        index = np.minimum(np.searchsorted(names, labels), len(names) - 1)
        if (names[index] != labels).any():
            raise InvalidInputError(
                f"label {labels[names[index] != labels].tolist()[0]!r} in y: expected {names.tolist()}", argument="y"
            )
        weight = as_weight(sample_weight, len(values))
        if weight is not None and not weight.all():
            kept = weight > 0
            values, index, weight = np.ascontiguousarray(values[kept]), index[kept], weight[kept]
        self.classes_, self.unit_ = names, unit_of(values)
        self._fit(in_unit(values, self.unit_), index, weight)
        return self

    def log_probabilities(self, scores: ArrayLike) -> np.ndarray:
        """Return log P(class | scores) in nats, float64 (n, K), which do not saturate."""
        check_is_fitted(self, "classes_")
        values = as_score_vectors(scores, type(self).__name__, len(self.classes_))
        return self._log_probabilities(in_unit(values, self.unit_))

    def log_odds(self, scores: Any) -> np.ndarray:
        """Return the log-odds of each class, float64 (n, K)."""
        return log_odds_of(self.log_probabilities(scores))

    def predict_proba(self, scores: Any) -> np.ndarray:
        """Return P(class | scores), float64 (n, K); rows add up to 1."""
        return np.exp(self.log_probabilities(scores))

    predict_log_proba = log_probabilities  # scikit-learn's name

    def predict(self, scores: Any) -> np.ndarray:
        """Return the most probable label (n,)."""
        return self.classes_[np.argmax(self.log_probabilities(scores), axis=1)]

    def check_model(self) -> None:
        """Check a loaded model: different classes, and probabilities for any scores."""
        require_classes(self)
        require_unit(self)
        k = len(self.classes_)
        directions = np.concatenate([np.eye(k), -np.eye(k), np.ones((1, k))])
        sizes = np.concatenate([np.geomspace(1e-300, 0.99 * LARGEST_SCORE, 50), np.geomspace(0.01, 1e4, 50)])
        with np.errstate(all="ignore"):
            log_p = self._log_probabilities(np.concatenate([size * directions for size in sizes]))
        if not (log_p <= 1e-9).all():
            raise ModelFileError(f"{type(self).__name__}: its attributes do not give probabilities for all scores")

    # Methods of subclasses.

    def _fit(self, scores: np.ndarray, index: np.ndarray, weight: np.ndarray | None) -> None:
        raise NotImplementedError

    def _log_probabilities(self, scores: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class SoftmaxCalibrator(JointCalibrator):
    """Fit a softmax that is linear in the scores, by the objective at the top of this module.

    Parameters
    ----------
    form : {"temperature", "vector", "matrix"}, default "temperature"
        One slope; a slope and an offset for each class; or a slope for each pair of classes and offsets (K² + K
        numbers), for many rows of classifiers that often confuse certain classes.
    ridge : float, default 1
        Strength of the penalty on U and b, in rows.
    inputs : {"scores", "log-softmax", "log-sigmoid"}, default "scores"

    Attributes
    ----------
    slope_, coef_, intercept_ : float, float64 arrays (K, K) and (K,)
        a (1/T of temperature scaling), U and b for the scaled scores (x - centre_)/scale_.
    centre_, scale_ : float

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 900)
    >>> scores = 5 * (rng.normal(size=(900, 3)) + 2 * np.eye(3)[y])
    >>> calibrator = SoftmaxCalibrator().fit(scores, y)
    >>> round(calibrator.slope_ / calibrator.scale_, 1)  # log-odds of these normals are 2/5 of the differences
    0.4
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "slope_ centre_": "float",
        "coef_": "float64[k, k]",
        "intercept_": "float64[k]",
        "scale_": "float in (0, inf)",
    }

    def __init__(self, form: str = "temperature", *, ridge: float = 1.0, inputs: str = "scores") -> None:
        self.form = form
        self.ridge = ridge
        self.inputs = inputs

    def _fit(self, scores: np.ndarray, index: np.ndarray, weight: np.ndarray | None) -> None:
        check_choice(self.form, "form", FORMS)
        check_choice(self.inputs, "inputs", INPUTS)
        ridge = check_number(self.ridge, "ridge", "[0, inf)")
        x = _inputs(scores, self.inputs)
        self.centre_ = float(x.mean())
        spread = x - x.mean(axis=1, keepdims=True)
        self.scale_ = float(np.sqrt(np.mean(spread * spread)))
        self.scale_ = self.scale_ if self.scale_ > 1e-150 else 1.0
        x = (x - self.centre_) / self.scale_
        weights = np.ones(len(x)) if weight is None else weight
        with one_blas_thread():  # bits of products depend on the number of threads
            objective = _Objective(x, index, weights, self.form, ridge)
            # The slope starts at 1 for scores of unit spread, and is never negative.
            start = np.zeros(objective.size)
            start[0] = 1.0
            bounds = [(0.0, None), *[(None, None)] * (objective.size - 1)]
            fit = minimize(
                objective, start, jac=True, method="L-BFGS-B", bounds=bounds,
                options={"maxiter": _MAX_ITERATIONS, "maxfun": 2 * _MAX_ITERATIONS, "ftol": 1e-8, "gtol": 1e-3},
            )  # fmt: skip
            self.slope_, self.intercept_, self.coef_ = objective.parts(fit.x)
        if fit.nit >= _MAX_ITERATIONS:
            warn(f"SoftmaxCalibrator stopped after {_MAX_ITERATIONS} rounds, possibly before the optimum")

    def _log_probabilities(self, scores: np.ndarray) -> np.ndarray:
        x = (_inputs(scores, self.inputs) - self.centre_) / self.scale_
        return log_softmax(_linear(x, self.slope_, self.intercept_, self.coef_), axis=1)


class OneVsRestCalibrator(JointCalibrator):
    """Fit a binary calibrator to each class against the rest, and divide the probabilities by their sum.

    Parameters
    ----------
    method : str or Calibrator, default "platt"
    from_log_probabilities : bool, default False
        Whether the scores are log probabilities + a constant. If True, the calibrators receive log-odds.

    Attributes
    ----------
    calibrators_ : list of Calibrator
        The probability of a class with fewer than two rows on one side is its smoothed prior.

    Examples
    --------
    >>> scores = [[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 3.0], [1.0, 0.0, 0.5]]
    >>> OneVsRestCalibrator("platt").fit(scores * 2, [0, 1, 2, 0] * 2).predict(scores).tolist()
    [0, 1, 2, 0]
    """

    model_attributes: ClassVar[dict[str, str]] = {"calibrators_": "list[k] of Calibrator"}

    def __init__(self, method: object = "platt", *, from_log_probabilities: bool = False) -> None:
        self.method = method
        self.from_log_probabilities = from_log_probabilities

    def _fit(self, scores: np.ndarray, index: np.ndarray, weight: np.ndarray | None) -> None:
        scores = against_the_rest(scores) if self.from_log_probabilities else scores
        self.calibrators_: list[Calibrator] = []
        for k in range(scores.shape[1]):
            positive = index == k
            few = min(int(positive.sum()), int((~positive).sum())) < 2
            column = np.zeros(len(scores)) if few else np.ascontiguousarray(scores[:, k])
            self.calibrators_.append(make_calibrator("platt" if few else self.method).fit(column, positive, weight))

    def log_odds(self, scores: np.ndarray) -> np.ndarray:
        """Return the log-odds of each class against the rest, float64 (n, K), not normalised."""
        values = in_unit(as_score_vectors(scores, type(self).__name__, len(self.classes_)), self.unit_)
        return _class_log_odds(self.calibrators_, values, self.from_log_probabilities)

    def _log_probabilities(self, scores: np.ndarray) -> np.ndarray:
        log_odds = _class_log_odds(self.calibrators_, scores, self.from_log_probabilities)
        return log_softmax(_log_sigmoid(log_odds), axis=1)


class JointPool(JointCalibrator):
    """Average joint calibrators, by default for several classes in `CalibratedClassifier`.

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
        Calibrators of each class against the rest. The list is empty if no member needs them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 300)
    >>> pool = JointPool().fit(rng.normal(size=(300, 3)) + 2 * np.eye(3)[y], y)
    >>> int(pool.predict_proba([[2.0, 0.0, 0.0]]).argmax()), float(pool.weights_.sum().round(9))
    (0, 1.0)
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "methods_": "list[m] of str",
        "weights_": "float64[m] in (0, inf)",
        "members_": "list[m] of any",
        "calibrators_": "list[] of Calibrator",
    }

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
        given = self._inputs(scores) | {"log-odds": against}

        def fitted(name: str, rows: Any) -> SoftmaxCalibrator | None:
            source, settings = _MEMBERS[name]
            if settings is None:
                return None
            member = SoftmaxCalibrator(**settings)
            member.classes_, member.unit_ = self.classes_, 1.0
            with quietly():
                member._fit(given[source][rows], index[rows], None if weight is None else weight[rows])
            return member

        names = [
            name for name, (source, settings) in _MEMBERS.items()
            if source in given and not (settings and settings["form"] == "matrix" and k > _MOST_MATRIX_CLASSES)
        ]  # fmt: skip
        loss, known = np.zeros((len(names), len(index))), np.zeros(len(index), dtype=bool)
        for number in range(int(fold.max()) + 1):
            test = fold == number
            for row, name in zip(loss, names):
                log_p = _log_p_of(name, fitted(name, ~test), given[_MEMBERS[name][0]][test])
                row[test] = -log_p[np.arange(len(log_p)), index[test]]
            known |= test
            if known.sum() >= _ENOUGH:  # members without weight in these rows are not fitted again
                share = stacked_weights(loss[:, known], None if weight is None else weight[known])
                names, loss = (
                    [names[j] for j in np.flatnonzero(share >= SMALLEST_WEIGHT)],
                    loss[share >= SMALLEST_WEIGHT],
                )
        kept, self.weights_ = kept_members(stacked_weights(loss, weight))
        self.methods_ = [names[j] for j in kept]
        self.members_ = [fitted(name, slice(None)) for name in self.methods_]
        self.calibrators_: list[Calibrator] = calibrators if self._needs_log_odds() else []

    def _needs_log_odds(self) -> bool:
        return any(_MEMBERS[name][0] == "log-odds" for name in self.methods_)

    def _one_against_the_rest(
        self, scores: np.ndarray, index: np.ndarray, weight: np.ndarray | None, seed: int
    ) -> tuple[np.ndarray, list[Calibrator]]:
        """Return held-out log-odds (n, K) of each class's pool, and the pools fitted to all rows."""
        columns = against_the_rest(scores) if self.from_log_probabilities else scores
        held_out, calibrators = np.empty_like(scores), []
        for k in range(scores.shape[1]):
            positive = index == k
            pool: Calibrator
            if rarest_class(positive) < 2:
                pool = make_calibrator("platt").fit(np.zeros(len(scores)), positive, weight)
                held_out[:, k] = pool.log_odds(np.zeros(len(scores)))
            else:
                pool = PooledCalibrator(n_repeats=1, random_state=seed)
                column = np.ascontiguousarray(columns[:, k])
                held_out[:, k] = pool.fit_and_hold_out(*pool._take(column, positive, weight), drop=True)[1][0]
            calibrators.append(pool)
        return held_out, calibrators

    def _inputs(self, scores: np.ndarray) -> dict[str, np.ndarray]:
        """Return the scores to which members are fitted, except the members of one class against the rest."""
        if not self.from_log_probabilities:
            return {"scores": scores}
        return {
            "log probabilities": scores,
            "scores": scores,
            "centred": scores - scores.mean(axis=1, keepdims=True),
            "bounded": np.maximum(log_softmax(scores, axis=1), _LOWEST),
        }

    def _log_probabilities(self, scores: np.ndarray) -> np.ndarray:
        given = self._inputs(scores)
        if self.calibrators_:
            given["log-odds"] = _class_log_odds(self.calibrators_, scores, self.from_log_probabilities)
        members = zip(self.methods_, self.members_)
        log_p = np.stack([_log_p_of(name, member, given[_MEMBERS[name][0]]) for name, member in members])
        pooled = logsumexp(log_p + np.log(self.weights_)[:, None, None], axis=0)
        return np.asarray(pooled - logsumexp(pooled, axis=1, keepdims=True))  # normalised again against rounding

    def check_model(self) -> None:
        """Check a loaded model as every joint calibrator, and its members."""
        n_classes = len(self.classes_)
        for name, member in zip(self.methods_, self.members_):
            if name not in _MEMBERS or (member is None) != (_MEMBERS[name][1] is None):
                raise ModelFileError(f"JointPool: {name!r} in methods_ is unknown, or does not fit its member")
            if member is not None and len(member.classes_) != n_classes:
                raise ModelFileError(f"JointPool: {name!r} has {len(member.classes_)} classes, expected {n_classes}")
        check_fields(self, {"calibrators_": f"list[{n_classes if self._needs_log_odds() else 0}] of Calibrator"})
        super().check_model()


def make_joint(method: object, are_log_p: bool) -> JointCalibrator:
    """Return a new calibrator of several classes for `CalibratedClassifier(method=…)`."""
    if isinstance(method, JointCalibrator):
        return clone(method)
    if method == "pool":
        return JointPool(from_log_probabilities=are_log_p)
    if isinstance(method, str) and method in SOFTMAX_METHODS:
        return SoftmaxCalibrator(**SOFTMAX_METHODS[method])
    return OneVsRestCalibrator(method, from_log_probabilities=are_log_p)


def as_score_vectors(scores: ArrayLike, name: str, n_classes: int) -> np.ndarray:
    """Return finite scores as a C-contiguous float64 array (n, K) with a column for each of at least two classes."""
    values: np.ndarray = check_array(scores, dtype=np.float64, order="C", input_name="scores", estimator=name)
    if n_classes < 2 or values.shape[1] != n_classes:
        raise InvalidInputError(
            f"scores must have one column for each of at least two classes, got {values.shape[1]} columns for "
            f"{n_classes} classes",
            argument="scores",
        )
    return values


def against_the_rest(log_p: np.ndarray) -> np.ndarray:
    """Return log-odds of each class against the rest (n, K) from log probabilities + a constant; nothing saturates.

    >>> against_the_rest(np.log([[0.5, 0.25, 0.25]])).round(4).tolist()
    [[0.0, -1.0986, -1.0986]]
    """
    result = np.empty_like(log_p)
    for k in range(log_p.shape[1]):
        result[:, k] = log_p[:, k] - logsumexp(np.delete(log_p, k, axis=1), axis=1)
    return result


def _class_log_odds(calibrators: list[Calibrator], scores: np.ndarray, are_log_p: bool) -> np.ndarray:
    """Return the log-odds of each class against the rest by its calibrator, float64 (n, K)."""
    columns = against_the_rest(scores) if are_log_p else scores
    return np.stack([c.log_odds(columns[:, k]) for k, c in enumerate(calibrators)], axis=1)


def log_odds_of(log_p: np.ndarray) -> np.ndarray:
    """Return log p - log(1 - p) of each class (n, K) from normalised log probabilities."""
    with np.errstate(divide="ignore"):
        rest = np.where(log_p > -1e-3, np.log(-np.expm1(np.minimum(log_p, -1e-300))), np.log1p(-np.exp(log_p)))
    return np.asarray(log_p - rest)


class _Objective:
    """Penalised negative log likelihood and its gradient in the flat parameters (a, b, V).

    A matrix is U = C V, where C is the inverse square root of the scores' second moments. Without it, fits of naive
    Bayes with twenty classes need ten times the iterations.
    """

    def __init__(self, x: np.ndarray, index: np.ndarray, weight: np.ndarray, form: str, ridge: float) -> None:
        n, k = x.shape
        # By class, since sums and maxima over a short last axis are slow.
        self.x, self.weight, self.form, self.ridge = np.ascontiguousarray(x.T), weight, form, ridge
        self.own = index, np.arange(n)
        self.size = {"temperature": 1, "vector": 1 + 2 * k, "matrix": 1 + k + k * k}[form]
        if form == "matrix":
            total = float(weight.sum())
            moments = x.T @ (weight[:, None] * x) / total
            values, vectors = np.linalg.eigh(moments)
            # The ridge bounds directions in which scores hardly vary. A row's curvature is at most 1/4.
            self.whiten = vectors / np.sqrt(np.maximum(values, 0.0) + 4.0 * (ridge + 1e-9) / total)
            self.white = np.ascontiguousarray((x @ self.whiten).T)

    def parts(self, flat: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return slope, intercepts (K,) and matrix (K, K)."""
        k = len(self.x)
        if self.form == "temperature":
            return float(flat[0]), np.zeros(k), np.zeros((k, k))
        rest = flat[1 + k :]
        matrix = np.diag(rest) if self.form == "vector" else self.whiten @ rest.reshape(k, k)
        return float(flat[0]), flat[1 : 1 + k].copy(), matrix

    def __call__(self, flat: np.ndarray) -> tuple[float, np.ndarray]:
        k = len(self.x)
        slope, intercept, matrix = self.parts(flat)
        slopes = slope + np.diag(matrix) if self.form == "vector" else np.full(k, slope)
        z = slopes[:, None] * self.x
        z += intercept[:, None]
        if self.form == "matrix":
            z += flat[1 + k :].reshape(k, k).T @ self.white
        z -= z.max(axis=0)
        p = np.exp(z)
        total = p.sum(axis=0)
        value = float(self.weight @ (np.log(total) - z[self.own]))
        p *= self.weight / total
        p[self.own] -= self.weight
        along = np.einsum("ij,ij->i", p, self.x)
        gradient = [np.array([along.sum()])]
        if self.form != "temperature":
            value += 0.5 * self.ridge * float((intercept * intercept).sum() + (matrix * matrix).sum())
            gradient.append(p.sum(axis=1) + self.ridge * intercept)
        if self.form == "vector":
            gradient.append(along + self.ridge * np.diag(matrix))
        elif self.form == "matrix":
            gradient.append((self.white @ p.T + self.ridge * (self.whiten.T @ matrix)).ravel())
        return value, np.concatenate(gradient)


def _linear(x: np.ndarray, slope: float, intercept: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    result = slope * x + intercept
    if not matrix.any():
        return result
    if not (matrix - np.diag(np.diag(matrix))).any():
        return result + x * np.diag(matrix)
    # einsum without BLAS, so that a row's bits do not depend on other rows.
    return result + np.einsum("ij,jk->ik", x, matrix)


def _inputs(scores: np.ndarray, inputs: str) -> np.ndarray:
    if inputs == "log-softmax":
        return log_softmax(scores, axis=1)
    return _log_sigmoid(scores) if inputs == "log-sigmoid" else scores


def _log_sigmoid(z: np.ndarray) -> np.ndarray:
    return -np.logaddexp(0.0, -z)


def _log_p_of(name: str, member: SoftmaxCalibrator | None, values: np.ndarray) -> np.ndarray:
    """Return log probabilities (n, K) of a member from its scores."""
    if member is not None:
        return member._log_probabilities(values)
    return log_softmax(_log_sigmoid(values) if name == "one against the rest" else values, axis=1)


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
