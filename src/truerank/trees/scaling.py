"""Standardised features of polynomial leaves and linear starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.checks import require_array
from truerank.core.errors import ModelFileError

_FAR = 1e30  # standard deviations
_LARGEST, _LEAST = float(np.finfo(np.float64).max), 5e-324


@dataclass(frozen=True)
class Scaling:
    """Standardised features are `(clip(x, low, high) - mean) / scale`, and 0 for NaN; arrays (p,)."""

    mean: np.ndarray
    scale: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, columns: list[np.ndarray], clip: bool) -> Scaling:
        """Combine `column_scaling` of each column."""
        mean, scale, low, high = np.array(columns, dtype=np.float64).reshape(-1, 4).T.copy()
        if not clip:  # only so far that polynomials of low degree are finite
            with np.errstate(over="ignore"):
                low, high = np.maximum(mean - _FAR * scale, -_LARGEST), np.minimum(mean + _FAR * scale, _LARGEST)
        return cls(mean, scale, low, high)

    def take(self, X: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Return standardised columns (len(features), n) of the rows of X."""
        return self.standardise(np.ascontiguousarray(X.T[features], dtype=np.float64), features)

    def standardise(self, x: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Standardise columns x (len(features), n)."""
        one = features[:, None]
        z = np.clip(x, self.low[one], self.high[one])
        z -= self.mean[one]
        z /= self.scale[one]
        z[np.isnan(z)] = 0.0
        return z

    def check(self, n_features: int) -> None:
        """Raise `ModelFileError` if arrays from a file do not fit together."""
        require_array(self, "mean", "float", n_features)
        require_array(self, "scale", "float", n_features, low=_LEAST, high=np.inf)
        require_array(self, "low", "float", n_features, low=-np.inf, high=np.inf)
        require_array(self, "high", "float", n_features, low=-np.inf, high=np.inf)
        if not (self.low <= self.high).all():
            raise ModelFileError("ObliviousBoosting: feature_low_ must not exceed feature_high_")


def column_scaling(values: np.ndarray, ends: np.ndarray | None = None) -> np.ndarray:
    """Return mean, deviation (1 for 0), least and largest of sorted values; `ends` as in `binning.find_borders`."""
    if len(values) == 0:
        return np.array([0.0, 1.0, 0.0, 0.0])
    low, high = float(values[0]), float(values[-1])
    # A power of two near the largest magnitude is the unit, so that no square over- or underflows.
    unit = float(np.exp2(np.clip(np.frexp(max(abs(low), abs(high)))[1] - 1, -1000, 1000)))
    shares = values.astype(np.float64)
    shares /= unit
    if ends is None:
        middle, spread = float(shares.mean()), float(shares.std())
    else:
        copies = np.diff(ends, prepend=0)
        middle = float(np.average(shares, weights=copies))
        spread = float(np.sqrt(np.average((shares - middle) ** 2, weights=copies)))
    mean = float(np.clip(middle * unit, low, high))
    scale = spread * unit
    return np.array([mean, scale if scale > 0 else 1.0, low, high])
