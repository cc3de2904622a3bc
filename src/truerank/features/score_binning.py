"""Score binning: each base function's score becomes the bin that it falls into."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.fitting import fits_whole
from truerank.core.parameters import parameters
from truerank.core.types import ArrayLike, Matrix
from truerank.matrices.binned import MAX_EDGES, BinnedMatrix

STRATEGIES = ("geometric", "quantile", "uniform")
OUTPUTS = ("csr", "binned")


@parameters
class ScoreBinning(TransformerMixin, BaseEstimator):
    """Cut each column at thresholds K learned from training rows: binary features `1[x > k]`.

    A linear ranker on the result is a piecewise constant function of each column. Every linear ranker takes the sparse
    matrix; with `output="binned"` `MeasureSVM` and `PointwiseSVM` take one byte a value, and the ones are never made.

    Parameters
    ----------
    n_thresholds : int, default=50
        Thresholds of each column, at most 254; equal ones are merged, so columns of few values get fewer.
    strategy : {"geometric", "quantile", "uniform"}, default="geometric"
        "geometric": at the scores that a share f of the training values exceeds, f in geometric progression from
        `top` to 0.95, because the order near the top decides what a ranking is worth. "quantile": at evenly spaced
        quantiles. "uniform": evenly spaced in the open interval `low`, `high` whatever the data: for columns that a
        transformer within the query has brought to [0, 1].
    top : float, default=0.001
        Smallest share of "geometric".
    low, high : float, default=0, 1
        Ends of "uniform".
    output : {"csr", "binned"}, default="csr"
        What `transform` gives: a SciPy CSR matrix of ones, or a `BinnedMatrix`.

    Attributes
    ----------
    edges_ : list of float64 arrays
        Thresholds of each column.
    n_features_in_ : int

    Notes
    -----
    NaN is "not retrieved": such a document has all binary features of the column 0. The first binary feature of a
    column says that the value is there. A column without values in training has no threshold.

    References
    ----------
    Yue, Finley, Radlinski, Joachims (2007), section 4.2 (their definition has `>`, their figure `>=`).

    Examples
    --------
    >>> binning = ScoreBinning(n_thresholds=3, strategy="uniform")
    >>> binning.fit_transform([[0.1], [0.6], [float("nan")]]).toarray().tolist()
    [[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    >>> binning.edges_[0].tolist()
    [0.25, 0.5, 0.75]
    """

    model_attributes: ClassVar[tuple[str, ...]] = ("n_features_in_", "feature_names_in_", "edges_")
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
    def fit(self, X: Any, y: Any = None, *, qid: Any = None) -> ScoreBinning:
        """Learn the thresholds of each column of X (n, p); NaN is left out. `y` and `qid` are not used."""
        check_positive_int(self.n_thresholds, "n_thresholds")
        if self.n_thresholds > MAX_EDGES:
            raise InvalidInputError(f"n_thresholds must be at most {MAX_EDGES}, got {self.n_thresholds}")
        check_choice(self.strategy, "strategy", STRATEGIES)
        check_choice(self.output, "output", OUTPUTS)
        check_number(self.top, "top", minimum=0.0, maximum=0.95, open_minimum=True, open_maximum=True)
        check_number(self.low, "low")
        check_number(self.high, "high", minimum=self.low, open_minimum=True)
        X = self._checked(X, reset=True)
        self.edges_ = [self._edges(X[:, column]) for column in range(X.shape[1])]
        return self

    def transform(self, X: Any, *, qid: ArrayLike | None = None) -> Any:
        """Binary features of X's values: CSR (n, binary features), or their codes as a `BinnedMatrix` (n, p)."""
        check_is_fitted(self)
        values = self._checked(X, reset=False)
        matrix = BinnedMatrix.from_values(values, self.edges_)
        return matrix if self.output == "binned" else matrix.to_csr().astype(values.dtype)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the binary features: "x0 is there", "x0 > 0.25"."""
        check_is_fitted(self)
        names = input_features if input_features is not None else getattr(self, "feature_names_in_", None)
        names = [f"x{k}" for k in range(self.n_features_in_)] if names is None else names
        labels = []
        for name, edges in zip(names, self.edges_):
            labels += [f"{name} is there", *(f"{name} > {edge:g}" for edge in edges)]
        return np.array(labels, dtype=object)

    def check_model(self) -> None:
        """Called after loading from a model file: one list of thresholds for each column."""
        edges = getattr(self, "edges_", None)
        if not isinstance(edges, list) or len(edges) != getattr(self, "n_features_in_", None):
            raise ModelFileError("ScoreBinning: edges_ must hold one array for each column")

    def _checked(self, X: Matrix, *, reset: bool) -> np.ndarray:
        return validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")

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
        return edges[edges < values[-1]]  # nothing in training lies above the largest value
