"""Save scikit-learn's transformers and simple classifiers as data: their parameters and fitted numbers, by name.

The supported classes are in `FITTED`. Functions (`FunctionTransformer`, `SelectKBest`) cannot be saved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.errors import ModelFileError
from truerank.core.names import resolve

# Class -> module, and the fitted attributes that `transform` reads or that people may want.
FITTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "StandardScaler": ("sklearn.preprocessing", ("mean_", "var_", "scale_", "n_samples_seen_")),
    "MinMaxScaler": (
        "sklearn.preprocessing", ("min_", "scale_", "data_min_", "data_max_", "data_range_", "n_samples_seen_"),
    ),
    "MaxAbsScaler": ("sklearn.preprocessing", ("max_abs_", "scale_", "n_samples_seen_")),
    "RobustScaler": ("sklearn.preprocessing", ("center_", "scale_")),
    "Normalizer": ("sklearn.preprocessing", ()),
    "Binarizer": ("sklearn.preprocessing", ()),
    "PowerTransformer": ("sklearn.preprocessing", ("lambdas_", "_scaler")),
    "QuantileTransformer": ("sklearn.preprocessing", ("n_quantiles_", "references_", "quantiles_")),
    "PolynomialFeatures": (
        "sklearn.preprocessing", ("n_output_features_", "_min_degree", "_max_degree", "_n_out_full"),
    ),
    "SimpleImputer": ("sklearn.impute", ("statistics_", "indicator_")),
    "VarianceThreshold": ("sklearn.feature_selection", ("variances_",)),
    "FrozenEstimator": ("sklearn.frozen", ()),
    "LinearSVC": ("sklearn.svm", ("classes_", "coef_", "intercept_", "n_iter_")),
    "LogisticRegression": ("sklearn.linear_model", ("classes_", "coef_", "intercept_", "n_iter_")),
    "SGDClassifier": ("sklearn.linear_model", ("classes_", "coef_", "intercept_", "n_iter_")),
    "GaussianNB": ("sklearn.naive_bayes", ("classes_", "class_count_", "class_prior_", "theta_", "var_", "epsilon_")),
    **dict.fromkeys(
        ("MultinomialNB", "BernoulliNB"),
        (
            "sklearn.naive_bayes",
            ("classes_", "class_count_", "class_log_prior_", "feature_count_", "feature_log_prob_"),
        ),
    ),
}  # fmt: skip
_ALWAYS = ("n_features_in_", "feature_names_in_")
_OF_CLASSES = ("references_", "intercept_", "n_iter_", "class_count_", "class_prior_", "class_log_prior_")
_MOST_TRIED = 1_000_000  # columns


def class_of(name: object) -> Any:
    """Return the class of this name, or None."""
    if not isinstance(name, str) or name not in FITTED:
        return None
    return resolve(f"{FITTED[name][0]}:{name}")


def attributes_of(cls: Any) -> tuple[str, ...]:
    """Return the fitted attributes of a class that a model file holds."""
    return (*_ALWAYS, *FITTED[cls.__name__][1])


def finish(model: Any) -> None:
    """Complete a loaded transformer, and raise `ModelFileError` if its attributes do not fit together."""
    name, width = type(model).__name__, getattr(model, "n_features_in_", None)
    if name == "FrozenEstimator":
        return
    if type(width) is not int or width < 1:
        raise ModelFileError(f"{name}: n_features_in_ must be an integer >= 1, got {width!r}")
    for key in FITTED[name][1]:
        value = getattr(model, key, None)
        if not isinstance(value, np.ndarray):
            continue
        if key == "classes_":
            continue
        if value.dtype.kind not in "fiu" or not np.isfinite(value).all():
            raise ModelFileError(f"{name}: {key} must hold finite numbers")
        if value.ndim == 1 and key in _OF_CLASSES:
            continue
        if value.shape[-1] != width and (value.ndim == 1 or hasattr(model, "classes_")):
            raise ModelFileError(f"{name}: {key} must hold {width} numbers, got {value.shape[-1]}")
    if hasattr(model, "feature_names_in_"):
        model.feature_names_in_ = np.array(model.feature_names_in_, dtype=object)
    if name == "SimpleImputer":
        model._fit_dtype = model._fill_dtype = model.statistics_.dtype
    if width <= _MOST_TRIED:
        names = vars(model).pop("feature_names_in_", None)  # the row has none, and would be warned about
        try:
            row = (model.predict if hasattr(model, "predict") else model.transform)(np.zeros((1, width)))
        except (ValueError, IndexError, TypeError, AttributeError) as error:
            raise ModelFileError(f"{name}: its attributes do not fit together: {error}") from error
        finally:
            if names is not None:
                model.feature_names_in_ = names
        if row.dtype.kind == "f" and not np.isfinite(row).all():
            raise ModelFileError(f"{name}: its attributes make {row.ravel()[:3].tolist()} of a row of zeros")
