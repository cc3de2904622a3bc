"""Base class of calibrators: checked scores and classes, log-odds and probabilities, the scikit-learn API."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from truerank.calibration import calibrator_class
from truerank.core.checks import as_array, as_vector, check_plain, is_sparse
from truerank.core.errors import InvalidInputError, ModelFileError, WrongTypeError
from truerank.core.errors import warn as warn_caller
from truerank.core.fitting import whole_fit
from truerank.core.kernel import kernel
from truerank.core.schema import fields_of
from truerank.core.types import ArrayLike
from truerank.data.checkup import ranks_as_scores
from truerank.data.remarks import RemarkWarning

# Sizes of the largest score between which squares neither overflow nor vanish when a million of them are added up.
_SMALLEST_SCORE, LARGEST_SCORE = 2.0**-36, 2.0**480
# With larger weights targets such as (n + 1)/(n + 2) would round to 1.
LARGEST_WEIGHT = 1e9
ABOVE_ZERO, BELOW_ONE = 1e-300, 1.0 - 2.0**-53
_ROUNDING = 1e-6  # relative fall of log-odds that counts as rounding
_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)


class Calibrator(ClassifierMixin, BaseEstimator):
    """Base class of calibrators: P(positive | score) from held-out scores and their classes.

    A subclass implements `_fit(scores, positive, weight)` and `_log_odds(scores)` on checked float64 arrays (n,).

    Attributes
    ----------
    classes_ : array (2,)
        The two labels, negative first; the positive class is the greater label.
    counts_ : float64 array (2,)
        Rows (or weight) of each class.
    prior_ : float64 array (2,)
        Smoothed class priors `(|c| + 1)/(n + 2)`; |c| and n are sums of weights.
    unit_ : float
        `unit_of` the scores: 1, except for tiny and huge scores. Other attributes are those of the divided scores.
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "classes_": "array[2] unbounded",
        "counts_": "float64[2] in [0, inf)",
        "prior_": f"float64[2] in [{ABOVE_ZERO}, {BELOW_ONE!r}]",
        "unit_": "float??",
    }
    # Whether every fit is monotone, so that a parameter `monotone` has no effect.
    always_monotone: ClassVar[bool] = False

    def __init__(self, *, monotone: Any = None) -> None:
        self.monotone = monotone

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, scores: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to the scores of rows on which the scoring model was not trained; return self.

        Parameters
        ----------
        scores : array (n,) or (n, 1)
            A higher score usually means the positive class. For a classifier with probabilities, use their log-odds.
        y : array (n,)
            Two labels; the greater is the positive class: 0 and 1, False and True, -1 and 1, two strings. A single
            class is accepted where it is one of 0, 1 or -1, 1.
        sample_weight : array (n,), optional
            Weight of each row. A weight of 2 equals two copies of the row, 0 ignores it.
        """
        if self.always_monotone and getattr(self, "monotone", None) is not None:
            raise InvalidInputError(
                f"monotone={self.monotone!r} has no effect, because {type(self).__name__} is always monotone. Omit it",
                argument="monotone",
            )
        with whole_fit(self) as fresh:
            fresh._fit(*fresh._take(scores, y, sample_weight))
        return self

    def _take(
        self, scores: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, name: str = ""
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return checked scores in `unit_`, positive rows and weights, without rows of weight 0; set the counts."""
        values = as_scores(scores, name or type(self).__name__)
        self.classes_, positive = two_classes(y, len(values))
        weight = as_weight(sample_weight, len(values))
        if weight is not None and not weight.all():
            kept = weight > 0
            values, positive, weight = values[kept], positive[kept], weight[kept]
        if values.min() >= 0.0 and values.max() <= 2 * len(values):  # else they are no ranks of all rows
            for remark in ranks_as_scores({"scores": values}, np.array([0, len(values)])):
                warn(RemarkWarning(remark, "If 1 is the best, pass the negative numbers"))
        self.unit_ = unit_of(values)
        values = in_unit(values, self.unit_)
        n_positive = float(positive.sum() if weight is None else weight[positive].sum())
        n = float(len(values) if weight is None else weight.sum())
        self.counts_ = np.array([n - n_positive, n_positive])
        self.prior_ = (self.counts_ + 1) / (n + 2)
        return values, positive, weight

    def log_odds(self, scores: ArrayLike) -> np.ndarray:
        """Return log P(positive | score) - log P(negative | score) in nats, float64 (n,), finite; use it for losses."""
        check_is_fitted(self)
        return self._log_odds(in_unit(as_scores(scores, type(self).__name__), self.unit_))

    def predict_proba(self, scores: ArrayLike) -> np.ndarray:
        """Return P(negative | score) and P(positive | score), float64 (n, 2), exact where small and inside (0, 1)."""
        return probability_pairs(self.log_odds(scores))

    def predict_log_proba(self, scores: ArrayLike) -> np.ndarray:
        """Return log P(negative | score) and log P(positive | score), float64 (n, 2), which do not saturate."""
        return log_probability_pairs(self.log_odds(scores))

    def predict(self, scores: ArrayLike) -> np.ndarray:
        """Return the more probable label (n,), the positive one at even odds."""
        return self.classes_[(self.log_odds(scores) >= 0).astype(np.int64)]

    # Methods of subclasses.

    def _fit(self, scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None) -> None:
        raise NotImplementedError

    def _log_odds(self, scores: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def check_model(self) -> None:
        """Check a loaded model: two classes, and finite log-odds, rising if it is monotone."""
        require_classes(self)
        require_unit(self)
        self._check_log_odds()

    def _numbers_of(self, attribute: str) -> np.ndarray:
        """Return the values of an attribute with numbers, float64 (n,); none for another attribute."""
        value: Any = getattr(self, attribute, None)
        is_number = isinstance(value, int | float | np.ndarray) and np.asarray(value).dtype.kind in "iuf"
        return np.ravel(value).astype(np.float64) if is_number else np.empty(0)

    def _check_log_odds(self) -> None:
        """Raise an error if some log-odds are not finite, or fall although the model is monotone."""
        own = np.unique(
            np.concatenate(
                [self._numbers_of(attribute) for attribute in fields_of(type(self)) if attribute != "classes_"]
            )
        )
        sizes = np.geomspace(1e-300, 0.99 * LARGEST_SCORE, 200)
        places = np.concatenate([own, own + getattr(self, "centre_", 0.0), sizes, -sizes, [0.0]])
        places = np.unique(np.clip(places, -sizes[-1], sizes[-1]))
        beside = [np.nextafter(places, -np.inf), np.nextafter(places, np.inf), (places[1:] + places[:-1]) / 2.0]
        scores = np.unique(np.concatenate([places, *beside]))
        with np.errstate(all="ignore"):
            log_odds = self._log_odds(scores)
            falls = np.diff(log_odds) < -_ROUNDING * (1.0 + np.abs(log_odds[1:]))
        if not np.isfinite(log_odds).all():
            row = int(np.flatnonzero(~np.isfinite(log_odds))[0])
            raise ModelFileError(
                f"{type(self).__name__}: its attributes give the log-odds {log_odds[row]} at the score "
                f"{scores[row]:g}. Fit the calibrator again and save it"
            )
        if (self.always_monotone or getattr(self, "monotone", None) is True) and falls.any():
            row = int(np.flatnonzero(falls)[0])
            raise ModelFileError(
                f"{type(self).__name__}: it is marked as monotone, but its log-odds fall from {log_odds[row]:g} to "
                f"{log_odds[row + 1]:g} above the score {scores[row]:g}. Fit the calibrator again and save it"
            )


def make_calibrator(method: object, *, monotone: bool | None = None) -> Calibrator:
    """Return a new calibrator from its name (with `monotone`, if it has this parameter), or a clone of one."""
    if isinstance(method, str):
        cls: Any = calibrator_class(method)
        return cls() if monotone is None or cls.always_monotone else cls(monotone=monotone)
    if isinstance(method, Calibrator):
        return clone(method)
    raise InvalidInputError(argument="method", expected="the name of a calibrator or a calibrator", value=method)


def require_classes(model: Any) -> None:
    """Raise `ModelFileError` unless the `classes_` of a loaded calibrator differ."""
    if len(np.unique(model.classes_)) != len(model.classes_) or len(model.classes_) < 2:
        raise ModelFileError(
            f"{type(model).__name__}: classes_ must hold labels that differ, got {model.classes_!r:.60}",
            argument="classes_",
        )


def require_unit(model: Any) -> None:
    """Raise `ModelFileError` unless the `unit_` of a loaded calibrator is a power of two; older files have none."""
    model.unit_ = getattr(model, "unit_", 1.0)
    if not isinstance(model.unit_, float) or math.frexp(model.unit_)[0] != 0.5:
        raise ModelFileError(f"{type(model).__name__}: unit_ must be a power of two, got {model.unit_!r:.60}")


def as_scores(scores: ArrayLike, name: str = "a calibrator") -> np.ndarray:
    """Return finite scores as a writable C-contiguous float64 array (n,)."""
    check_plain(scores, "scores")
    if isinstance(scores, np.ndarray) and scores.dtype == np.float64 and scores.ndim == 1 and len(scores):
        values = np.ascontiguousarray(scores)
    else:
        if is_sparse(scores):
            raise WrongTypeError(f"Sparse data was passed to {name}, which requires dense scores (n,). Call toarray()")
        values = check_array(
            scores, dtype=np.float64, ensure_2d=False, allow_nd=False, input_name="scores", estimator=name
        )
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise InvalidInputError(
                f"scores must have the shape (n,) or (n, 1), got {np.shape(scores)}", argument="scores"
            )
        values = np.ascontiguousarray(values)
    # NaN if any score is; faster than isfinite.
    if not (math.isfinite(values.min()) and math.isfinite(values.max())):
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InvalidInputError(
            f"Input scores contains NaN or infinity: row {row} has score {values[row]}. Leave out such rows",
            argument="scores",
        )
    # A read-only array would compile every kernel once more.
    return values if values.flags.writeable else values.copy()


def unit_of(scores: np.ndarray) -> float:
    """Return the power of two that divides finite scores before a fit, so that a fit is the same at every scale.

    It is 1 if the largest magnitude of a score is between 2^-36 and 2^480. The unit brings other scores to the nearer
    end, where beta calibration, which reads them as log-odds, is within 1e-4 of its limit.

    >>> unit_of(np.array([-3.0, 0.5])), unit_of(np.array([0.0, 3e-300])) < 1e-288
    (1.0, True)
    """
    largest = _largest(scores)
    if largest == 0.0 or _SMALLEST_SCORE <= largest <= LARGEST_SCORE:
        return 1.0
    return math.ldexp(1.0, math.frexp(largest)[1] - (480 if largest > 1.0 else -35))


def in_unit(scores: np.ndarray, unit: float) -> np.ndarray:
    """Return scores divided by a unit, and limited to ±`LARGEST_SCORE`."""
    with np.errstate(over="ignore", under="ignore"):
        scaled = scores if unit == 1.0 else scores / unit
    return scaled if _largest(scaled) <= LARGEST_SCORE else np.clip(scaled, -LARGEST_SCORE, LARGEST_SCORE)


def _largest(scores: np.ndarray) -> float:
    """Return the largest magnitude of the scores, 0 if there are none, without copying them."""
    return max(float(scores.max(initial=0.0)), -float(scores.min(initial=0.0)))


def two_classes(y: ArrayLike, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels (2,), negative first, and whether each row has the positive one, bool (n,)."""
    if y is None:
        raise InvalidInputError("a calibrator requires y to be passed, but the target y is None")
    labels = as_array(y, "y")
    if labels.dtype == object and (plain := np.asarray(labels.tolist())).dtype.kind in "biuf":
        labels = plain  # a table's column of bools or numbers
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = column_or_1d(labels, warn=True)
    if labels.ndim != 1 or len(labels) != n_rows:
        raise InvalidInputError(
            f"y must have one label for each of the {n_rows} scores, got shape {labels.shape}: inconsistent numbers "
            "of samples",
            argument="y",
        )
    if labels.dtype == bool:
        return np.array([False, True]), labels
    if labels.dtype.kind in "iuf":
        for negative in (0, -1):
            if ((labels == negative) | (labels == 1)).all():
                return np.array([negative, 1]).astype(labels.dtype), labels == 1
        if not np.isfinite(labels).all():
            raise InvalidInputError("Input y contains NaN or infinity. Give every row a class")
    try:
        check_classification_targets(labels)
    except ValueError as error:
        raise InvalidInputError(
            f"{error} Two labels are needed: 0 and 1, False and True, or two strings", argument="y"
        ) from error
    classes = np.unique(labels)
    if len(classes) > 2:
        raise InvalidInputError(
            f"Only binary classification is supported: y has {len(classes)} classes ({classes[:4].tolist()} …). "
            "For grades pass y >= 1, or use CalibratedRanker. For classes pass one against the rest, or use "
            "CalibratedClassifier. The type of the target is multiclass",
            code="not-binary",
        )
    if len(classes) < 2:
        raise InvalidInputError(
            f"y has only the class {classes.tolist()}, and the other class is unknown. Use the labels 0 and 1",
            argument="y",
        )
    return classes, labels == classes[1]


def as_weight(sample_weight: ArrayLike | None, n_rows: int) -> np.ndarray | None:
    """Return weights as float64 (n,), or None if there are none."""
    if sample_weight is None:
        return None
    given = np.asarray(sample_weight)
    given = np.full(n_rows, given) if given.ndim == 0 else given
    weight = as_vector(given, "sample_weight", n_rows, f"[0, {LARGEST_WEIGHT:g}]")
    if not weight.any():
        raise InvalidInputError(
            "every sample_weight is zero. Give at least one row a positive weight", argument="sample_weight"
        )
    return np.ascontiguousarray(weight)


def probability_pairs(log_odds: np.ndarray) -> np.ndarray:
    """Return (1 - p, p) for each log-odds (…), float64 (…, 2), strictly inside (0, 1) and exact where small."""
    pairs = np.empty((log_odds.size, 2))
    _probability_pairs(np.ascontiguousarray(log_odds, dtype=np.float64).ravel(), pairs)
    return pairs.reshape(*log_odds.shape, 2)


def log_probability_pairs(log_odds: np.ndarray) -> np.ndarray:
    """Return log(1 - p) and log p for each log-odds (…), float64 (…, 2), which do not saturate."""
    return -np.logaddexp(0.0, np.stack([log_odds, -log_odds], axis=-1))


def logit(probability: float) -> float:
    """Return the log-odds of a probability inside (0, 1)."""
    return math.log(probability / (1.0 - probability))


def warn(message: str | Warning) -> None:
    """Warn, except inside `quietly`."""
    if not _QUIET.get():
        warn_caller(message)


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress warnings of fits inside this block, for this thread only (unlike `warnings.catch_warnings`)."""
    token = _QUIET.set(True)
    try:
        yield
    finally:
        _QUIET.reset(token)


@kernel
def _probability_pairs(log_odds, pairs):
    for i in range(len(log_odds)):
        s = log_odds[i]
        e = math.exp(-min(abs(s), 690.0))
        large = min(1.0 / (1.0 + e), BELOW_ONE)
        small = e * large
        if s >= 0:
            pairs[i, 0] = small
            pairs[i, 1] = large
        else:
            pairs[i, 0] = large
            pairs[i, 1] = small
