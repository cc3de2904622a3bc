"""Scaling of columns over all rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from truerank.core.schema import COLUMNS
from truerank.core.types import ArrayLike, MatrixLike
from truerank.matrices.content import powers_of_two

_MOST = 1e100


def unit_of(magnitude: np.ndarray) -> np.ndarray:
    """Return powers of two that scale magnitudes above 1e100 or below 1e-100 to about 1; else 1."""
    extreme = (magnitude > _MOST) | ((magnitude < 1 / _MOST) & (magnitude > 0))
    return np.where(extreme, powers_of_two(magnitude), 1.0)


class UnitDeviation(StandardScaler):
    """scikit-learn's `StandardScaler` (mean 0, deviation 1) for columns of any scale, which model files can store.

    Columns above 1e100 or below 1e-100 are divided by a power of two before squaring; `var_` is a finite float.

    Examples
    --------
    >>> UnitDeviation().fit_transform([[1.0], [3.0]]).ravel().tolist()
    [-1.0, 1.0]
    """

    model_attributes: ClassVar[dict[str, str]] = {**COLUMNS, "mean_ scale_ var_": "float[p]??"}

    def fit(self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Any:
        """Learn mean and deviation of each column, as `StandardScaler.fit` does."""
        if sparse.issparse(X) or np.asarray(X).dtype.kind not in "fiu":
            return super().fit(X, y, sample_weight)
        values = np.asarray(X)
        magnitude = np.abs(values).max(axis=0, initial=0.0, where=~np.isnan(values)) if values.ndim == 2 else np.ones(1)
        unit = unit_of(magnitude)
        if (unit == 1.0).all() or not np.isfinite(magnitude).all():
            return super().fit(X, y, sample_weight)
        super().fit(X / unit if hasattr(X, "columns") else values / unit, y, sample_weight)
        with np.errstate(over="ignore"):
            for name, factor in (("mean_", unit), ("scale_", unit), ("var_", unit * unit)):
                if getattr(self, name) is not None:
                    setattr(self, name, np.minimum(getattr(self, name) * factor, np.finfo(np.float64).max))
        return self

    def transform(self, X: MatrixLike, copy: bool | None = None) -> Any:
        """Scale the columns of X, as `StandardScaler.transform` does."""
        check_is_fitted(self)
        scale, mean = self.scale_, self.mean_
        if sparse.issparse(X) or scale is None or (scale.max() <= _MOST and scale.min() >= 1 / _MOST):
            return super().transform(X, copy)
        X = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")
        unit = powers_of_two(scale)  # so that differences of huge values do not overflow
        centred = X / unit if mean is None else X / unit - mean / unit
        return centred / (scale / unit)
