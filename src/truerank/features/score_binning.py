"""Score binning: binary features for the thresholds that a score exceeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.fitting import fits_whole
from truerank.core.parameters import parameters
from truerank.core.schema import COLUMNS
from truerank.core.types import ArrayLike, MatrixLike
from truerank.matrices.binned import MAX_EDGES, BinnedMatrix

STRATEGIES = ("geometric", "quantile", "uniform")
OUTPUTS = ("csr", "binned")


@parameters
class ScoreBinning(TransformerMixin, BaseEstimator):
    """Replace each column by binary features `1[x > k]`, with thresholds k that are learned from training rows.

    A linear ranker on the binary features is a piecewise constant function of each column. Every linear ranker accepts
    the sparse matrix. `MeasureSVM` and `PointwiseSVM` also accept `output="binned"`, with one byte for each value.

    Parameters
    ----------
    n_thresholds : int, default=50
        Number of thresholds of each column, at most 254. Equal thresholds are merged.
    strategy : {"geometric", "quantile", "uniform"}, default="geometric"
        "geometric": scores that a share f of the training values exceeds, with f in geometric progression from `top` to
        0.95, because the order near the top matters most. "quantile": evenly spaced quantiles. "uniform": evenly spaced
        in the open interval (`low`, `high`), for columns that a transformer within the query has scaled to [0, 1].
    top : float, default=0.001
        Smallest share f of "geometric".
    low, high : float, default=0, 1
        Ends of "uniform".
    output : {"csr", "binned"}, default="csr"
        Result of `transform`: a SciPy CSR matrix of ones, or a `BinnedMatrix`.

    Attributes
    ----------
    edges_ : list of float64 arrays
        Thresholds of each column.
    n_features_in_ : int

    Notes
    -----
    NaN means "not retrieved": all binary features of the column are 0. The first binary feature of a column is 1 for
    every other value. A column without values in training has no threshold.

    References
    ----------
    Yue, Finley, Radlinski, Joachims (2007), section 4.2 (the definition has `>`, the figure `>=`).

    Examples
    --------
    >>> binning = ScoreBinning(n_thresholds=3, strategy="uniform")
    >>> binning.fit_transform([[0.1], [0.6], [float("nan")]]).toarray().tolist()
    [[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    >>> binning.edges_[0].tolist()
    [0.25, 0.5, 0.75]
    """

    model_attributes: ClassVar[dict[str, str]] = {**COLUMNS, "edges_": "list[p] of array[]"}
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"qid": False}
    __metadata_request__transform: ClassVar[dict[str, Any]] = {"qid": False}

    n_thresholds: int = 50
    _: KW_ONLY
    strategy: str = "geometric"
    top: float = 0.001
    low: float = 0.0
    high: float = 1.0
    output: str = "csr"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @fits_whole
    def fit(self, X: MatrixLike, y: ArrayLike | None = None, *, qid: ArrayLike | None = None) -> ScoreBinning:
        """Learn the thresholds of each column of X (n, p), ignoring NaN. `y` and `qid` are not used."""
        check_positive_int(self.n_thresholds, "n_thresholds", 1, MAX_EDGES)
        check_choice(self.strategy, "strategy", STRATEGIES)
        check_choice(self.output, "output", OUTPUTS)
        check_number(self.top, "top", "(0, 0.95)")
        check_number(self.low, "low")
        check_number(self.high, "high", f"({self.low!r}, inf)")
        values: np.ndarray = validate_data(self, X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
        self.edges_ = [self._edges(column) for column in values.T]
        return self

    def transform(self, X: MatrixLike, *, qid: ArrayLike | None = None) -> Any:
        """Return binary features of X: CSR (n, binary features), or their codes as a `BinnedMatrix` (n, p)."""
        check_is_fitted(self)
        values = validate_data(self, X, reset=False, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
        matrix = BinnedMatrix.from_values(values, self.edges_)
        return matrix if self.output == "binned" else matrix.to_csr().astype(values.dtype)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Return the names of the binary features, such as "x0 is there" and "x0 > 0.25"."""
        check_is_fitted(self)
        names = input_features if input_features is not None else getattr(self, "feature_names_in_", None)
        names = [f"x{k}" for k in range(self.n_features_in_)] if names is None else names
        labels = []
        for name, edges in zip(names, self.edges_):
            labels += [f"{name} is there", *(f"{name} > {edge:g}" for edge in edges)]
        return np.array(labels, dtype=object)

    def _edges(self, column: np.ndarray) -> np.ndarray:
        k = self.n_thresholds
        if self.strategy == "uniform":
            return np.linspace(self.low, self.high, k + 2)[1:-1]
        values = np.sort(column[~np.isnan(column)].astype(np.float64))
        if not len(values):
            return np.zeros(0)
        if self.strategy == "geometric":
            levels = 1.0 - np.geomspace(self.top, 0.95, k)
        else:
            levels = np.arange(1, k + 1) / (k + 1)
        edges = np.unique(np.quantile(values, levels, method="lower"))
        return edges[edges < values[-1]]  # no training value exceeds the largest one
