"""Columns brought to one scale over all rows."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.preprocessing import StandardScaler

from truerank.core.errors import ModelFileError


class UnitDeviation(StandardScaler):
    """scikit-learn's `StandardScaler`, mean 0 and deviation 1, with a form in a model file.

    Examples
    --------
    >>> UnitDeviation().fit_transform([[1.0], [3.0]]).ravel().tolist()
    [-1.0, 1.0]
    """

    model_attributes: ClassVar[tuple[str, ...]] = ("mean_", "scale_", "var_", "n_features_in_", "feature_names_in_")

    def check_model(self) -> None:
        """Called after loading: one finite number for each column."""
        for name in ("mean_", "scale_"):
            values = getattr(self, name, None)
            if values is not None and (np.shape(values) != (self.n_features_in_,) or not np.isfinite(values).all()):
                raise ModelFileError(f"UnitDeviation: {name} must hold {self.n_features_in_} finite numbers")
