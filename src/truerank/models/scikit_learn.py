"""Save scikit-learn's transformers and simple classifiers as data: their parameters and fitted numbers, by name.

The supported classes are in `FITTED`. Functions (`FunctionTransformer`, `SelectKBest`) cannot be saved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.errors import ModelFileError
from truerank.core.names import resolve
from truerank.core.schema import COLUMNS, spelled

_OF_CLASSES = {"classes_": "array[k] unbounded"}
_LINEAR = {**_OF_CLASSES, "coef_": "float[, p]", "intercept_": "float[]", "n_iter_": "any??"}
_COUNTS = {
    **_OF_CLASSES,
    "class_count_ class_log_prior_": "float[k]",
    "feature_count_ feature_log_prob_": "float[k, p]",
}
_SEEN = {"n_samples_seen_": "any??"}
# Class -> module, and the fitted attributes that `transform` reads or that people may want, with what they must be.
FITTED: dict[str, tuple[str, dict[str, str]]] = {
    "StandardScaler": ("preprocessing", {"mean_ var_ scale_": "float[p]??", **_SEEN}),
    "MinMaxScaler": ("preprocessing", {"min_ scale_ data_min_ data_max_ data_range_": "float[p]", **_SEEN}),
    "MaxAbsScaler": ("preprocessing", {"max_abs_ scale_": "float[p]", **_SEEN}),
    "RobustScaler": ("preprocessing", {"center_ scale_": "float[p]??"}),
    "Normalizer": ("preprocessing", {}),
    "Binarizer": ("preprocessing", {}),
    "PowerTransformer": ("preprocessing", {"lambdas_": "float[p]", "_scaler": "StandardScaler??"}),
    "QuantileTransformer": (
        "preprocessing", {"n_quantiles_": "int", "references_": "float[]", "quantiles_": "float[, p]"},
    ),
    "PolynomialFeatures": ("preprocessing", {"n_output_features_ _min_degree _max_degree _n_out_full": "int??"}),
    "SimpleImputer": ("impute", {"statistics_": "float[p]", "indicator_": "any??"}),
    "VarianceThreshold": ("feature_selection", {"variances_": "float[p]"}),
    "FrozenEstimator": ("frozen", {}),
    "LinearSVC": ("svm", _LINEAR),
    "LogisticRegression": ("linear_model", _LINEAR),
    "SGDClassifier": ("linear_model", _LINEAR),
    "GaussianNB": (
        "naive_bayes",
        {**_OF_CLASSES, "class_count_ class_prior_": "float[k]", "theta_ var_": "float[k, p]", "epsilon_": "float"},
    ),
    "MultinomialNB": ("naive_bayes", _COUNTS),
    "BernoulliNB": ("naive_bayes", _COUNTS),
}  # fmt: skip
_MOST_TRIED = 1_000_000  # columns


def class_of(name: object) -> Any:
    """Return the class with a name, or None if a model file cannot hold this class."""
    if not isinstance(name, str) or name not in FITTED:
        return None
    return resolve(f"sklearn.{FITTED[name][0]}:{name}")


def fields_of(cls: Any) -> dict[str, str]:
    """Return the fitted attributes of a class that a model file holds, and what they must be (`core/schema.py`)."""
    own = FITTED[cls.__name__][1]
    return own if cls.__name__ == "FrozenEstimator" else spelled({**COLUMNS, **own})


def finish(model: Any) -> None:
    """Complete a loaded transformer, and raise `ModelFileError` if its attributes do not fit together."""
    name = type(model).__name__
    if name == "FrozenEstimator":
        return
    width: int = model.n_features_in_
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
            raise ModelFileError(
                f"{name}: a row of zeros becomes {row.ravel()[:3].tolist()}, but finite numbers are required. The file "
                "is damaged or was edited. Save the model again"
            )
