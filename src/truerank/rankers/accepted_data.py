"""Check the data of a ranker: training rows, validation queries, and rows to score."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import column_or_1d, validate_data

from truerank.compat.fit_arguments import without_query_column
from truerank.core.checks import check_not_masked, check_plain, is_sparse
from truerank.core.errors import InvalidInputError, Remedy, WrongTypeError, warn
from truerank.core.float32 import holds_missing, numbers_of
from truerank.core.types import ArrayLike, Matrix
from truerank.data.checkup import warn_of_rows
from truerank.data.columns import default_names
from truerank.data.grouping import in_query_order, refuse_one_long_list
from truerank.data.ranking_data import RankingData, as_query_weight
from truerank.data.remarks import Remark, RemarkWarning
from truerank.data.row_source import Part, Rows, RowSource, validation_rows

LARGEST_VALUE = 1e150
"""Largest value of X, so that sums of products of two values stay finite."""

_FEW_ROWS = 100  # rows above which a missing qid is a remark

ANY_CATEGORY = ContextVar("ANY_CATEGORY", default=False)
"""Whether a check created the rows to score, so that an unknown category is not an error of the caller."""


@contextmanager
def any_category() -> Iterator[None]:
    """Allow unknown categories in the rows that are scored in this context."""
    token = ANY_CATEGORY.set(True)
    try:
        yield
    finally:
        ANY_CATEGORY.reset(token)


class AcceptedData:
    """Checks of a ranker's data against the flags of its class and against the columns of fit."""

    allow_nan: ClassVar[bool] = False
    allow_sparse: ClassVar[bool] = False
    allow_binned: ClassVar[bool] = False
    allow_sample_weight: ClassVar[bool] = False
    learns_elsewhere: ClassVar[bool] = False  # whether `_fit` accepts a RowSource
    instead_of_parts: ClassVar[str] = ""  # advice if it does not
    missing_values: ClassVar[str] = "an error"  # how nan is treated, in words

    n_features_in_: int
    feature_names_in_: np.ndarray
    inputs_: str
    close_columns_: list[int]
    saw_missing_: bool

    @property
    def reads_missing_as_zero(self) -> bool:
        """Whether the model scores missing numbers as 0, because its training data were read so."""
        return bool(getattr(self, "reading_", {}).get("missing") == "zero")

    @property
    def categories_or_statistics(self) -> list[int]:
        """Columns of categories, or of the statistics in their place: missing values there stay missing."""
        return [int(k) for k in getattr(self, "category_features_", getattr(self, "statistic_columns_", ()))]

    def _filled(self, X: Any) -> Any:
        """Return rows or a `RankingData` to score, with 0 for missing numbers if the model was trained so."""
        if not self.reads_missing_as_zero or getattr(X, "is_binned_matrix", False):
            return X
        if isinstance(X, RankingData):
            return X.replaced(X=self._filled(X.X))
        X = X.copy()
        values = X.data if is_sparse(X) else X
        missing = np.isnan(values)
        if values is X:
            missing[:, self.categories_or_statistics] = False
        values[missing] = 0.0
        return X

    def _without_query_column(self, X: Matrix, qid: Any) -> tuple[Any, Any]:
        return without_query_column(X, qid, getattr(self, "feature_names_in_", None))

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Return rows (n, p) as checked values, or a BinnedMatrix if the ranker allows it; `reset` is for training."""
        plain = type(X) is np.ndarray and X.dtype in (np.float64, np.float32) and X.ndim == 2 and X.size > 0
        # A plain array needs no conversion, and names of an earlier fit are scikit-learn's to compare.
        if getattr(X, "is_binned_matrix", False) or (
            plain and X.flags.c_contiguous and (reset or not hasattr(self, "feature_names_in_"))
        ):
            X = X if reset else self._filled(X)
            self._check_values(X)
            if reset:
                self.n_features_in_ = int(X.shape[1])
                self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
            else:
                self._check_width(int(X.shape[1]))
            return X
        if hasattr(X, "columns"):
            X = self._frame(X, reset)
        check_plain(X, "X")
        try:
            matrix = validate_data(
                self, X, reset=reset, dtype=[np.float64, np.float32], order="C", accept_sparse="csr",
                ensure_all_finite=False,
            )  # fmt: skip
        except ValueError as error:
            names = getattr(X, "columns", None)
            if names is not None and not reset and "feature names should match" in str(error):
                raise InvalidInputError(
                    f"{str(error).rstrip()}\n{self._about_columns(names)}", code="feature-names"
                ) from error
            if names is not None:
                _refuse_texts(X, type(self).__name__, error)
            raise
        matrix = matrix if reset else self._filled(matrix)
        self._check_values(matrix)
        return matrix

    def _frame(self, X: Any, reset: bool) -> Any:
        """Return a data frame with the columns of fit; a ranker with categories also replaces texts by numbers."""
        return X if reset else self._named_columns(X)

    def _named_columns(self, X: Matrix) -> Any:
        """Return the columns of fit by name, if a data frame has all of them."""
        own, given = getattr(self, "feature_names_in_", None), getattr(X, "columns", None)
        if own is None or given is None or list(given) == list(own) or not set(own) <= set(given):
            return X
        return X[list(own)]

    def _about_columns(self, given: Any) -> str:
        """Return advice about a data frame whose columns differ from those of fit."""
        lacking = [str(name) for name in self.feature_names_in_ if name not in set(given)]
        if not lacking:
            return "Pass X[ranker.feature_names_in_], the columns of fit in their order."
        return (
            f"This data frame has {self.n_features_in_ - len(lacking)} of the {self.n_features_in_} columns with which "
            f"{type(self).__name__} was fitted. Add the missing ones, or fit again without them."
        )

    def _training_data(self, X: Any, y: Any, qid: ArrayLike, query_weight: ArrayLike) -> RankingData:
        name = type(self).__name__
        for earlier in ("category_names_", "reading_"):
            self.__dict__.pop(earlier, None)
        if isinstance(X, RankingData):
            refuse_again(y, qid)
            data = X
            self._check_given(data)
        else:
            if y is None:
                raise InvalidInputError(f"{name} requires y to be passed, but the target y is None", argument="y")
            matrix = self._checked(X, reset=True)
            if not hasattr(y, "to_numpy") and not (type(y) is np.ndarray and y.ndim == 1):
                check_not_masked(y, "y")
                y = column_or_1d(y, warn=True)
            if qid is None:
                refuse_one_long_list(
                    matrix.shape[0],
                    f"{name}.fit",
                    "fit(X, y, qid=qid). In cross_validate and GridSearchCV groups= alone does not reach fit: call "
                    "sklearn.set_config(enable_metadata_routing=True) and pass params={'qid': qid} (GridSearchCV: "
                    "fit(X, y, qid=qid))",
                )
                if matrix.shape[0] > _FEW_ROWS:
                    warn(RemarkWarning(Remark("one-list", "", matrix.shape[0])))
            data = RankingData(matrix, y, qid, feature_names=getattr(self, "feature_names_in_", None))
            if data.n_joined:
                warn(f"the rows of {data.n_joined} of {data.n_queries} queries were not adjacent and were joined")
            if not getattr(data.X, "is_binned_matrix", False):
                warn_of_rows(data)
        if query_weight is not None:
            weight = in_query_order(query_weight, data, "query_weight", qid, y, X)
            data = data.replaced(query_weight=as_query_weight(weight, data.offsets, order=data.order))
        if getattr(data.X, "is_binned_matrix", False):
            for known in ("inputs_", "saw_missing_", "close_columns_"):  # of an earlier fit
                self.__dict__.pop(known, None)
        else:
            self.inputs_, self.close_columns_ = numbers_of(data.X)
            self.saw_missing_ = self.allow_nan and holds_missing(data.X)
        return data

    def _check_given(self, data: RankingData) -> None:
        """Check a RankingData to train on, and store the names and the number of its columns."""
        self._check_training(data, data.y is not None, data.sample_weight is not None)
        if data.feature_names is not None:
            self.feature_names_in_ = np.asarray(data.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_features_in_ = data.n_features
        self._check_values(data.X)
        if data.category_names:
            self._take_category_names(data)

    def _check_training(self, data: Rows, judged: bool, weighs_rows: bool) -> None:
        """Check that data have rows, features and grades, and no weights of rows that the ranker cannot use."""
        if not judged:
            raise InvalidInputError(
                "the data have no grades, which training requires",
                argument="y",
                remedies=[Remedy(y=...), Remedy("to name the column of grades", grade=...)],
                code="no-grades",
            )
        for what, n in (("rows", data.n_rows), ("features", data.n_features)):
            if not n:
                remedies = Remark("no-features", "", 0).remedies if what == "features" else ()
                raise InvalidInputError(
                    f"the data have no {what}, but training requires at least one", argument="X", remedies=remedies,
                    code=f"no-{what}",
                )  # fmt: skip
        if weighs_rows and not self.allow_sample_weight:
            raise InvalidInputError(
                f"the data have sample_weight, but {type(self).__name__} supports no weights of single rows",
                argument="sample_weight",
                remedies=["pass query_weight, or data without sample_weight"],
            )

    @property
    def category_names(self) -> dict[str, list[str]]:
        """Texts of the categories by column name, for `read_table(…, categories=…)`."""
        return self._own_category_names()

    def _own_category_names(self) -> dict[str, list[str]]:
        return {}

    def _take_category_names(self, data: RankingData | RowSource) -> None:
        """Refuse columns of categories; a ranker that supports categories overrides this method."""
        name = next(iter(data.category_names or ()))
        raise InvalidInputError(
            f"column {name!r} contains categories, which {type(self).__name__} does not support. Leave the column "
            f"out, or use ObliviousBoosting(categorical=[{name!r}])",
            code="categories",
        )

    def _source(self, data: RowSource) -> RowSource:
        """Return rows on a cluster after a check."""
        name, about = type(self).__name__, data.description
        if not self.learns_elsewhere:
            instead = self.instead_of_parts or "If this machine can hold all rows, call fit(data.gather())"
            raise InvalidInputError(f"{name} cannot be trained on partitions. {instead}")
        self.n_features_in_ = data.n_features
        self.inputs_, self.close_columns_, self.saw_missing_ = about.inputs, about.close_columns, about.missing
        for earlier in ("feature_names_in_", "category_names_", "reading_"):
            self.__dict__.pop(earlier, None)
        if data.feature_names is not None:
            self.feature_names_in_ = np.asarray(data.feature_names, dtype=object)
        self._check_source(data)
        if data.category_names:
            self._take_category_names(data)
        return data

    def _check_source(self, data: RowSource) -> None:
        about = data.description
        self._check_training(data, about.judged, about.weighs_rows)
        if not about.dense and not self.allow_sparse:
            raise InvalidInputError(
                f"{type(self).__name__} requires dense rows, got sparse data. Pass X.toarray()", code="sparse"
            )
        if not about.finite:
            data.statistics(_values_checked, self)

    def _source_beside(self, data: RowSource, eval_set: object) -> RowSource:
        """Return the validation queries of a fit on a cluster, moved to the same cluster."""
        valid = validation_rows(data, eval_set)
        self._check_source(valid)
        return valid

    def _refuse_beside(self, **given: Any) -> None:
        """Refuse arguments that apply only to rows in memory."""
        named = [name for name, value in given.items() if value is not None]
        if named:
            raise InvalidInputError(
                f"data on a cluster have their own queries, grades and weights. Omit {', '.join(named)}, or call "
                "fit(data.gather(), …) if this machine can hold all rows",
                code="on-a-cluster",
            )

    def _validation_data(self, eval_set: object) -> RankingData:
        if isinstance(eval_set, RankingData):
            self._check_columns(eval_set)
            valid = eval_set
        elif isinstance(eval_set, tuple | list) and len(eval_set) == 3:
            X, y, qid = eval_set
            valid = RankingData(self._checked(X, reset=False), y, qid)
        else:
            raise InvalidInputError(
                "eval_set must be (X, y, qid) or a RankingData, or [(X, y)] with eval_qid=[qid] (eval_group=[sizes]), "
                f"got {type(eval_set).__name__}",
                argument="eval_set",
            )
        if valid.y is None:
            raise InvalidInputError(
                "eval_set has no grades, which choose the best round. Pass eval_set=(X, y, qid)", argument="eval_set"
            )
        return valid

    def _rows_to_score(self, X: Matrix) -> tuple[Any, Callable[[np.ndarray], np.ndarray]]:
        """Return rows to score, and a function that returns scores to the caller's order."""
        if isinstance(X, RankingData):
            data: RankingData = self._filled(X)
            self._check_columns(data)
            return data.X, data.restore
        return self._checked(self._without_query_column(X, None)[0], reset=False), np.asarray

    def _check_width(self, n_features: int) -> None:
        if n_features != self.n_features_in_:
            raise InvalidInputError(
                f"X has {n_features} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input",
                code="width",
            )

    def _check_columns(self, data: RankingData) -> None:
        self._check_width(data.n_features)
        names = getattr(self, "feature_names_in_", None)
        if names is not None and data.feature_names is not None and list(names) != list(data.feature_names):
            wrong = next(i for i, (a, b) in enumerate(zip(names, data.feature_names)) if a != b)
            raise InvalidInputError(
                f"The feature names should match those that were passed during fit: column {wrong} was "
                f"{names[wrong]!r} and is {data.feature_names[wrong]!r}",
                code="feature-names",
            )
        if data.category_names:
            known = self._own_category_names()
            for name, texts in data.category_names.items():
                if known.get(name) != texts:
                    raise InvalidInputError(
                        f"column {name!r} numbers its categories differently from the training data. Read the table "
                        "with categories=ranker.category_names",
                        code="categories",
                    )
        self._check_values(data.X)

    def _check_values(self, X: Any) -> None:
        """Refuse too large values, and bins, sparse rows, nan and infinity if the ranker does not allow them."""
        name = type(self).__name__
        if getattr(X, "is_binned_matrix", False):
            if not self.allow_binned:
                raise InvalidInputError(
                    f"{name} does not accept a BinnedMatrix. Pass the values themselves", code="binned"
                )
            return
        sparse = is_sparse(X)
        if sparse and not self.allow_sparse:
            raise WrongTypeError(
                f"the data are sparse, but {name} requires a dense matrix. Call X.toarray()", code="sparse"
            )
        values = X.data if sparse else X
        low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))  # nan if a value is missing
        if np.isnan(low) and self.allow_nan:
            low, high = (float(least.reduce(values, axis=None, initial=0.0)) for least in (np.fmin, np.fmax))
        if low >= -LARGEST_VALUE and high <= LARGEST_VALUE:
            return
        bad = np.isinf(values) if self.allow_nan else ~np.isfinite(values)
        if bad.any():
            place = np.argwhere(bad)[0].tolist()
            raise InvalidInputError(
                f"X contains {'infinity' if self.allow_nan else 'NaN or infinity'} at index {place}, but {name} "
                "requires finite values"
                + ("" if self.allow_nan or np.isinf(values).any() else f". {_about_missing(name)}"),
                argument="X",
            )
        flat = values.ravel()
        first = int(np.argmax(np.abs(flat) > LARGEST_VALUE))
        column = int(X.indices[first] if sparse else first % X.shape[1])
        names = getattr(self, "feature_names_in_", None)
        label = default_names(X.shape[1])[column] if names is None else names[column]
        raise InvalidInputError(
            f"column {str(label)!r} contains {flat[first]:.3g}, and products of numbers beyond {LARGEST_VALUE:g} "
            "overflow. Divide the column by a power of ten, or write missing values as nan.",
            code="overflow",
        )


def watched_elsewhere(sets: list[tuple[str, Any]], more: Sequence[Any]) -> list[tuple[str, Any]]:
    """Return the last validation set, the only one that a fit on a cluster evaluates."""
    if sets and (more or len(sets) > 1):
        warn(
            f"a fit on a cluster evaluates only the last set of eval_set, {sets[-1][0]}, by the last measure. Evaluate "
            "the others after the fit"
        )
    return sets[-1:]


def _values_checked(part: Part, ranker: AcceptedData) -> None:
    ranker._check_values(part.data.X)


def refuse_again(y: object, qid: object) -> None:
    """Refuse grades or queries that were passed in addition to a RankingData."""
    if y is not None or qid is not None:
        raise InvalidInputError(
            "X is a RankingData, which has its own y and qid. Omit y and qid", argument="X", code="given-twice"
        )


def _about_missing(name: str) -> str:
    """Return advice about missing values for a ranker that does not allow them."""
    return (
        f"{name} does not accept missing values. Use ObliviousBoosting or RankBoost, or fill the values with "
        'RankerPipeline(SimpleImputer(), ranker), or give them a bin with RankerPipeline("score-binning", ranker)'
    )


def _refuse_texts(X: Any, who: str, error: Exception) -> None:
    """Raise an error for the first column of a data frame with a value that is not a number."""
    for name in X.columns:
        for row, value in enumerate(np.asarray(X[name]).tolist(), 1):
            if isinstance(value, list | tuple | dict | set | np.ndarray):
                remedy = "make one column for each of its numbers, or leave the column out"
            elif value is None or _is_number(value):
                continue
            else:
                remedy = f"leave the column out, or use ObliviousBoosting(categorical=[{name!r}])"
            what = f"column {name!r} has the value {value!r:.60} in row {row}, and {who} requires numbers"
            raise InvalidInputError(what, remedies=[remedy], code="not-numeric") from error


def _is_number(value: Any) -> bool:
    """Return whether a value, such as a Decimal or the text "3", can be read as a number."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
