"""ImportedRanker: a ranker that another tool trained."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from truerank.core.checks import is_sparse
from truerank.core.errors import InvalidInputError, ModelFileError, Remedy, WrongTypeError
from truerank.core.schema import check_fields
from truerank.data.grouping import id_text, is_missing
from truerank.data.ranking_data import RankingData
from truerank.export.form import Linear, ModelForm, Normalizers, Oblivious, Plain, Stumps, as_plain
from truerank.matrices.rows import linear_scores
from truerank.models.foreign.model import ForeignModel
from truerank.rankers.accepted_data import ANY_CATEGORY
from truerank.rankers.base import Ranker
from truerank.trees.binary import BinaryTrees
from truerank.trees.ensemble import ConstantPredictor, Ensemble
from truerank.trees.stumps import StepFunctions

_BODIES: dict[str, Any] = {"linear": Linear, "stumps": Stumps, "oblivious": Ensemble, "trees": BinaryTrees}

_PARTS: dict[str, dict[str, str]] = {
    "linear": {"parts_.weights": "float[p]"},
    "stumps": {
        "parts_.features": "int[stumps] in [0, p)",
        "parts_.thresholds": "float[stumps] in [-inf, inf]",
        "parts_.missing": "int[stumps]",
        "parts_.weights": "float[stumps]",
    },
}

_LAY_OUT = (
    Remedy("to import the file again with the names of your columns", feature_names=[...]),
    Remedy("to import it with their number, where the model numbers its own", n_features=...),
)


def _is_categorical(column: Any) -> bool:
    return str(column.dtype).lower().startswith(("category", "categorical", "enum"))


def _are_texts(listed: list[Any]) -> bool:
    return not listed or isinstance(listed[0], str)


class ImportedRanker(Ranker):
    """A linear model or a sum of trees of another tool, for scoring, saving, calibration and export.

    `import_model` returns it; it cannot be fitted. The scores equal the tool's raw scores: to the bit for LightGBM,
    CatBoost and XGBoost's trees, otherwise to the precision of float32.

    Attributes
    ----------
    feature_names_ : list of str
        The model's features, or numbered names if the tool has none.
    tool_ : str
        Name of the format.
    kind_ : {"linear", "stumps", "oblivious", "trees"}
    start_, intercept_ : float
        Added before and after the sum.
    parts_ : dict of arrays
    normalizers_ : dict of arrays, or None
    allow_nan_, float32_sums_ : bool
    absent_ : float
        Value of a missing feature in a linear model: 0 for XGBoost, nan if unknown.
    categories_ : dict of str to list
        The categories that the file lists, by column number. A data frame has the categories themselves, which are
        numbers or texts. An array holds the same numbers, and for texts their positions in the list, from 0.
    status_ : str
        The tool, known differences, and the rule for missing values.
    form_ : ModelForm
        The model that the other attributes define.
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "feature_names_": "list[p] of str",
        "tool_": "str",
        "kind_": " | ".join(f"'{kind}'" for kind in _BODIES),
        "start_ intercept_": "float",
        "parts_": "dict of any",
        "normalizers_": "dict of any??",
        "normalizers_.first normalizers_.second": "float[p]??",
        "normalizers_.affine": "bool??",
        "allow_nan_ float32_sums_": "bool",
        "absent_": "float unbounded??",
        "categories_": "dict of list[] of str | float??",
    }

    feature_names_: list[str]
    tool_: str
    kind_: str
    form_: ModelForm

    def __init__(self) -> None:
        pass

    @property
    def allow_nan(self) -> bool:  # type: ignore[override]
        """Whether the model scores missing values."""
        return bool(getattr(self, "allow_nan_", False))

    @classmethod
    def of(cls, foreign: ForeignModel) -> ImportedRanker:
        """Return the ranker of a model that was read."""
        form, ranker = foreign.form, cls()
        body = getattr(form.body, "trees", form.body)
        ranker.tool_, ranker.kind_ = foreign.tool, form.kind
        ranker.start_, ranker.intercept_, ranker.allow_nan_ = form.start, form.intercept, form.allow_nan
        ranker.float32_sums_ = form.float32_sums
        ranker.absent_ = float(foreign.absent)
        ranker.parts_ = {one.name: getattr(body, one.name) for one in fields(_BODIES[form.kind])}
        scaling = form.normalizers
        ranker.normalizers_ = None
        if scaling is not None:
            ranker.normalizers_ = {"first": scaling.first, "second": scaling.second, "affine": scaling.affine}
        ranker.n_features_in_, ranker.n_queries_in_ = form.n_features, 0
        ranker.feature_names_ = list(form.names)
        ranker.categories_ = {str(k): list(listed) for k, listed in foreign.categories.items()}
        notes = [f"imported from {foreign.tool}", *foreign.notes, *filter(None, [foreign.missing_rule])]
        for k, listed in foreign.categories.items():
            few = ", ".join(map(id_text, listed[:3])) + ", …" * (len(listed) > 3)
            held = " (in an array: their positions in the list, from 0)" if _are_texts(listed) else ""
            notes.append(f"column {form.names[k]!r} holds the categories themselves: {few}{held}".replace("; ", " "))
        ranker.status_ = "; ".join(notes)
        ranker._prepare()
        return ranker

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        raise InvalidInputError(
            "an imported model was trained by another tool and cannot be trained by truerank. Train a model with "
            "`truerank train`, and compare both with `truerank compare`.",
            code="not-trainable",
        )

    def _check_columns(self, data: RankingData) -> None:
        self._check_order(data.feature_names)
        super()._check_columns(data)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        if len(getattr(X, "shape", ())) == 2:
            self._check_width(X.shape[1])
        return super()._checked(X, reset=reset)

    def _frame(self, X: Any, reset: bool) -> Any:
        self._check_order(X.columns)
        lists = [k for k, name in enumerate(X.columns) if _is_categorical(X[name])]
        other = next((int(k) for k in self._listed() if lists and int(k) not in lists), None)
        if other is not None:
            raise InvalidInputError(
                f"column {X.columns[other]!r} had categories in the training data of the model, but has none now. "
                f"Pass frame.astype({{{X.columns[other]!r}: 'category'}}).",
                code="no-categories",
            )
        return np.column_stack([self._numbers_of(k, X[name]) for k, name in enumerate(X.columns)])

    def _numbers_of(self, k: int, column: Any) -> np.ndarray:
        """Return a data frame's column as the numbers that the model's questions ask about."""
        listed, name = self._listed().get(str(k)), column.name
        if listed is None:
            try:
                if not _is_categorical(column):
                    return np.asarray(column, dtype=np.float64)
            except (TypeError, ValueError):
                pass
            if k not in self.form_.used:
                return np.full(len(column), np.nan)
            raise InvalidInputError(
                f"column {name!r} is not numeric, but the imported model requires numbers. Replace each category by "
                f"its number in the training data of the model, in pandas: frame[{name!r}] = frame[{name!r}].cat.codes"
            )
        known = {value: float(number) if isinstance(value, str) else value for number, value in enumerate(listed)}
        own = [None if is_missing(value) else value for value in column.to_list()]
        unknown = {value for value in own if value is not None and value not in known}
        if unknown and not (self.tool_ == "lightgbm" and _is_categorical(column)):
            raise InvalidInputError(self._not_listed(k, min(unknown, key=str)), code="new-category")
        return np.array([np.nan if value is None else known.get(value, np.nan) for value in own])

    def _listed(self) -> dict[str, list[Any]]:
        return getattr(self, "categories_", {})

    def _not_listed(self, k: int, value: object) -> str:
        listed = self._listed()[str(k)]
        few = ", ".join(map(repr, listed[:5])) + ", …" * (len(listed) > 5)
        places = " (an array contains their positions in this list, from 0)" if _are_texts(listed) else ""
        return (
            f"column {self.feature_names_[k]!r} holds {value!r}, which is not one of the {len(listed)} categories of "
            f"the model: {few}. Give these categories{places}, and nan for others"
        )

    def _check_values(self, X: Any) -> None:
        if self.tool_ == "xgboost" and is_sparse(X):
            raise WrongTypeError(
                "the data are sparse, and XGBoost treats entries that are not stored as missing. Pass a dense matrix "
                "with nan for these entries",
                code="sparse",
            )
        super()._check_values(X)
        for k, listed in () if ANY_CATEGORY.get() else self._listed().items():
            # A table has -1 for an unknown text, which is missing for LightGBM and an error for XGBoost.
            lowest = -1 if self.tool_ == "lightgbm" else 0
            values, column = np.arange(lowest, len(listed)) if _are_texts(listed) else listed, X[:, int(k)]
            wrong = ~(np.isnan(column) | np.isin(column, values))
            if wrong.any():
                raise InvalidInputError(self._not_listed(int(k), float(column[wrong][0])), code="new-category")

    def _own_category_names(self) -> dict[str, list[str]]:
        return {self.feature_names_[int(k)]: listed for k, listed in self._listed().items() if _are_texts(listed)}

    def _check_order(self, names: Any) -> None:
        """Raise an error if the columns have the model's names in another order, since many tools only number them."""
        own = list(self.feature_names_)
        given = own if names is None else [str(name) for name in names]
        if given != own and set(given) == set(own):
            wrong = next(k for k, (a, b) in enumerate(zip(own, given)) if a != b)
            raise InvalidInputError(
                f"the columns are in another order than the model's: column {wrong} is {given[wrong]!r} and must be "
                f"{own[wrong]!r}",
                argument="X",
                remedies=_LAY_OUT,
                code="column-order",
            )

    def _check_width(self, n_features: int) -> None:
        try:
            super()._check_width(n_features)
        except InvalidInputError as error:
            raise InvalidInputError(error, remedies=_LAY_OUT) from None

    def _prepare(self) -> None:
        body = _BODIES[self.kind_](**self.parts_)
        if self.kind_ in ("oblivious", "trees"):
            body = (Oblivious if self.kind_ == "oblivious" else Plain)(body)
        scaling = None if self.normalizers_ is None else Normalizers(**self.normalizers_)
        names = tuple(str(name) for name in self.feature_names_)
        self.form_ = ModelForm(
            names, body, self.start_, None, self.intercept_, scaling, allow_nan=self.allow_nan_,
            float32_sums=self.float32_sums_,
        )  # fmt: skip
        if self.kind_ == "linear":
            return
        if self.kind_ == "stumps" and scaling is None:
            self._predictor: Any = StepFunctions(body.features, body.thresholds, body.missing, body.weights)
        elif self.kind_ == "oblivious" and scaling is None:
            self._predictor = ConstantPredictor(body.trees)
        else:
            self._predictor = as_plain(self.form_).body.trees

    def _predict(self, X: Any) -> np.ndarray:
        form = self.form_
        if isinstance(form.body, Linear):
            if self.absent_ == 0.0 and np.isnan(X).any():
                X = np.nan_to_num(X, nan=0.0, posinf=np.inf, neginf=-np.inf)
            rows = X if form.normalizers is None else form.normalizers(X.astype(np.float64))
            return form.start + linear_scores(rows, form.body.weights) + form.intercept
        if isinstance(self._predictor, StepFunctions):
            return form.start + self._predictor.predict(X) + form.intercept
        number = np.float32 if form.float32_sums else np.float64
        scores = self._predictor.predict(X, None, np.full(len(X), form.start, dtype=number)).astype(np.float64)
        return scores + form.intercept if form.intercept else scores

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__getstate__().items() if key not in ("_predictor", "form_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "parts_"):
            self._prepare()

    def check_model(self) -> None:
        """Raise `ModelFileError` if attributes from a file do not fit together."""
        super().check_model()
        body, parts = _BODIES[self.kind_], self.parts_
        if set(parts) != {one.name for one in fields(body)}:
            raise ModelFileError(f"ImportedRanker: parts_ {sorted(map(str, parts))} do not fit kind_ {self.kind_!r}")
        for key, listed in self._listed().items():
            if len(set(map(type, listed))) > 1 or key not in map(str, range(self.n_features_in_)):
                raise ModelFileError(f"ImportedRanker: expected texts or numbers of a column in categories_[{key!r}]")
        if self.kind_ == "oblivious":
            Ensemble(**parts).check(self.n_features_in_, None)
        elif self.kind_ == "trees":
            BinaryTrees(**parts).check(self.n_features_in_)
        else:
            check_fields(self, _PARTS[self.kind_])
        self._prepare()
