"""Convert rankers to the intermediate form of models, which all formats of other programs start from.

    score(x) = start + (linear start)(z) + body(z) + intercept,    z = the normalised features

Only `form_of` reads the fitted attributes of rankers.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError, Remedy
from truerank.core.types import Scorer
from truerank.data.columns import default_names
from truerank.trees.binary import BinaryTrees, binary_of_oblivious
from truerank.trees.ensemble import Ensemble
from truerank.trees.kept_parts import kept
from truerank.trees.leaves.base import Oblivious as Oblivious
from truerank.trees.leaves.fuzzy import Fuzzy as Fuzzy
from truerank.trees.leaves.polynomial import Polynomial as Polynomial
from truerank.trees.linear_start import LinearStart
from truerank.trees.training_columns import Scaling

_TRIES = 24
_STEP = 2.0**-18
_DIGITS = 2.0**24
PLAIN = frozenset(string.ascii_letters + string.digits + " _.,:()")

# Names of models, features and runs never become code: they enter a generated file as a string literal from the
# language's encoder (`json.dumps`, `ascii`), as an identifier, or in a comment.


def comment(text: str) -> str:
    """Return `text` for a comment of any language; characters that could end a comment become numbers.

    Examples
    --------
    >>> print(comment('a */ b'))
    a <U+002A><U+002F> b
    """
    return "".join(c if c in PLAIN else f"<U+{ord(c):04X}>" for c in text)


def identifier(name: str) -> str:
    """Replace all characters except ASCII letters, digits and underscores by underscores."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def check_name(name: str, argument: str) -> None:
    """Raise an error for control characters, line ends and lone surrogates, which no engine allows in names."""
    bad = next((c for c in name if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")), None)
    if bad is not None:
        raise InvalidInputError(
            f"{argument}: {name!a:.80} contains the character U+{ord(bad):04X}, which engines do not allow",
            argument=argument,
            value=name,
            remedies=[Remedy("to give another name", **{argument: ...})],
        )


@dataclass(frozen=True)
class Linear:
    """`Σ_k weights[k] x_k`, added in column order; float64 array (p,)."""

    weights: np.ndarray
    kind = "linear"


@dataclass(frozen=True)
class Stumps:
    """`Σ_t weights[t] 1[x > thresholds[t]]`, with 1[…] = `missing[t]` for a missing value. Arrays (T,)."""

    features: np.ndarray
    thresholds: np.ndarray
    missing: np.ndarray
    weights: np.ndarray
    kind = "stumps"


@dataclass(frozen=True)
class Plain:
    """Any binary trees."""

    trees: BinaryTrees
    kind = "trees"


@dataclass(frozen=True)
class Normalizers:
    """Normalises each column to `(x - first) / second`, or with `affine` to `x · first + second`; arrays (p,)."""

    first: np.ndarray
    second: np.ndarray
    affine: bool = False

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return x * self.first + self.second if self.affine else (x - self.first) / self.second

    def as_subtract_divide(self) -> Normalizers:
        """Return normalizers of the form `(x - first) / second`, which are equal up to rounding."""
        return Normalizers(-self.second / self.first, 1.0 / self.first) if self.affine else self


@dataclass(frozen=True)
class ModelForm:
    """A model in the intermediate form.

    Attributes
    ----------
    names : tuple of str
        Features, in column order.
    body : Linear, Stumps, Oblivious, Fuzzy, Polynomial or Plain
    start, intercept : float
        Added before and after the body.
    linear_start : LinearStart or None
    normalizers : Normalizers or None
    calibration : Calibration or None
        Converts the score to a probability.
    allow_nan : bool
        Whether the model scores missing values.
    float32_sums : bool
        Whether the sum is rounded to float32 after each tree, as the tool that trained the model does.
    inputs : str or None
        Kind of numbers in the training columns (`truerank.core.float32.INPUTS`); None if unknown.
    """

    names: tuple[str, ...]
    body: Any
    start: float = 0.0
    linear_start: LinearStart | None = None
    intercept: float = 0.0
    normalizers: Normalizers | None = None
    calibration: Any = None
    allow_nan: bool = True
    float32_sums: bool = False
    inputs: str | None = None
    model: Any = field(default=None, repr=False, compare=False)

    def with_columns(self, columns: Sequence[int], names: tuple[str, ...]) -> ModelForm:
        """Return the model for wider or reordered rows: column k becomes column `columns[k]` of `names`."""
        place, body = np.asarray(columns, dtype=np.int64), self.body
        if isinstance(body, Linear):
            body = Linear(_spread(body.weights, place, len(names), 0.0))
        elif isinstance(body, Stumps):
            body = replace(body, features=place[body.features])
        else:
            moved = place[body.trees.features].astype(body.trees.features.dtype)
            body = replace(body, trees=replace(body.trees, features=moved))
        if isinstance(body, Fuzzy):
            body = replace(body, places=replace(body.places, features=place[body.places.features]))
        elif isinstance(body, Polynomial):
            body = replace(body, scaling=_spread_scaling(body.scaling, place, len(names)))
        start = self.linear_start
        if start is not None:
            weights = _spread(start.weights, place, len(names), 0.0)
            start = LinearStart(weights, _spread_scaling(start.scaling, place, len(names)))
        scaling = self.normalizers
        if scaling is not None:
            first, second = (1.0, 0.0) if scaling.affine else (0.0, 1.0)
            scaling = Normalizers(
                _spread(scaling.first, place, len(names), first), _spread(scaling.second, place, len(names), second),
                scaling.affine,
            )  # fmt: skip
        return replace(self, names=names, body=body, linear_start=start, normalizers=scaling)

    @property
    def n_features(self) -> int:
        """Number of columns p."""
        return len(self.names)

    @property
    def reads_zero(self) -> np.ndarray:
        """Columns whose missing values the model itself reads as 0, bool (p,): all or none but those of categories."""
        found = np.full(self.n_features, bool(getattr(self.model, "reads_missing_as_zero", False)))
        found[self.statistics] = False
        return found

    @property
    def statistics(self) -> list[int]:
        """Columns of statistics in place of categories."""
        return list(getattr(self.model, "statistic_columns_", ()))

    @property
    def kind(self) -> str:
        """Kind of the body: linear, stumps, oblivious, fuzzy, polynomial or trees."""
        return str(self.body.kind)

    @property
    def used(self) -> np.ndarray:
        """Columns that change a score, ascending."""
        body = self.body
        if isinstance(body, Linear):
            own = np.flatnonzero(body.weights)
        elif isinstance(body, Stumps):
            own = body.features
        else:
            trees = body.trees
            own = trees.features
            if not isinstance(body, Plain):  # without the levels of padding
                own = own[np.isfinite(trees.borders) | trees.missing_right]
        of_start = np.empty(0) if self.linear_start is None else np.flatnonzero(self.linear_start.weights)
        return np.unique(np.concatenate([own, of_start])).astype(np.int64)


def _spread(values: np.ndarray, place: np.ndarray, size: int, other: float) -> np.ndarray:
    result = np.full(size, other)
    result[place] = values
    return result


def _spread_scaling(scaling: Scaling, place: np.ndarray, size: int) -> Scaling:
    parts = ((scaling.mean, 0.0), (scaling.scale, 1.0), (scaling.low, 0.0), (scaling.high, 0.0))
    return Scaling(*(_spread(values, place, size, other) for values, other in parts))


# From rankers.


def form_of(model: Scorer, feature_names: Sequence[str] | None = None, *, calibrated: bool = True) -> ModelForm:
    """Return the intermediate form of a fitted ranker, a `CalibratedRanker`, or a `Pipeline` that ends in a ranker.

    By default the features have the names of the training data, or "f1", "f2", … The form of a `CalibratedRanker` gives
    probabilities, or the ranker's scores if `calibrated` is False.

    Raises
    ------
    InvalidInputError
        For a model that depends on other documents (a scaling within the query), or has no formula (a random ranking).
    """
    from truerank.calibration.ranker import CalibratedRanker
    from truerank.rankers.pipeline import RankerPipeline

    if isinstance(model, RankerPipeline):
        return _form_of_steps(model, [*model.transformers_, model.ranker_], feature_names)
    if type(model).__name__ == "Pipeline" and hasattr(model, "steps"):
        steps = [step for _, step in model.steps if step is not None and step != "passthrough"]
        return _form_of_steps(model, steps, feature_names)
    if isinstance(model, CalibratedRanker):
        from truerank.export.calibration import calibration_of

        form = form_of(model.ranker_, feature_names)
        return replace(form, calibration=calibration_of(model) if calibrated else None, model=model)
    form = _form_of_ranker(model)
    names = _names(model, form.n_features, feature_names)
    return replace(form, names=names, inputs=_inputs(model, form), model=model)


def _inputs(model: Scorer, form: ModelForm) -> str | None:
    """Return the kind of numbers in training, without columns that the model does not use."""
    inputs = getattr(model, "inputs_", form.inputs)
    if inputs == "close" and not set(getattr(model, "close_columns_", form.used)) & set(form.used.tolist()):
        return "float64"
    return inputs


def _names(model: Scorer, n_features: int, given: Sequence[str] | None) -> tuple[str, ...]:
    if given is None:
        given = getattr(model, "feature_names_in_", getattr(model, "feature_names_", None))
    names = default_names(n_features) if given is None else [str(name) for name in given]
    if len(names) != n_features:
        raise InvalidInputError(
            f"feature_names must have one name for each of the model's {n_features} columns, got {len(names)} names",
            argument="feature_names",
        )
    if len(set(names)) < len(names) or "" in names:
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        raise InvalidInputError(
            f"feature names must be different and not empty, got {twice or ['']!r}", argument="feature_names"
        )
    for name in names:
        check_name(name, "feature_names")
    return tuple(names)


def _form_of_steps(model: Scorer, steps: list[Any], feature_names: Sequence[str] | None) -> ModelForm:
    ranker, before = steps[-1], steps[:-1]
    if not before:
        return replace(form_of(ranker, feature_names), model=model)
    form = _form_of_ranker(ranker) if type(before[-1]).__name__ == "ScoreBinning" else form_of(ranker)
    for step in reversed(before):
        name = type(step).__name__
        if name.endswith("InQuery"):
            raise InvalidInputError(
                f"{name} scales a column by the other documents of the query, but an engine scores one document at a "
                "time. No format can store this scaling. Train on features as the engine computes them, or scale them "
                "there"
            )
        if hasattr(step, "get_support"):
            kept = np.flatnonzero(step.get_support()).tolist()
            form = form.with_columns(kept, tuple(default_names(int(step.n_features_in_))))
        elif name == "ScoreBinning":
            form = _unbinned(form, step)
        else:
            if form.normalizers is not None:
                raise InvalidInputError(
                    f"an export can have one scaling of each column, but {name} precedes another scaling. Leave one of "
                    "the two out and fit again, or scale once before the features are written",
                    code="two-scalings",
                )
            form = replace(form, normalizers=_normalizers(step))
    named = model if getattr(model, "feature_names_in_", None) is not None else before[0]
    names = _names(named, int(before[0].n_features_in_), feature_names)
    return replace(form, names=names, inputs=_inputs(model, form), model=model)


def _unbinned(form: ModelForm, binning: Any) -> ModelForm:
    """Return the form of a ranker of binary features for the columns before the binning."""
    if isinstance(form.body, Stumps) and form.n_features == len(binning.edges_):
        return form  # trained on codes, with the thresholds of the columns
    if not isinstance(form.body, Linear):
        raise InvalidInputError(
            "an export cannot contain ScoreBinning before a ranker that is not linear. Fit it without ScoreBinning: "
            "trees and RankBoost bin the columns themselves"
        )
    form = as_linear(form)
    names = tuple(default_names(len(binning.edges_)))
    return replace(form, names=names, body=_stumps_of_bins(form.body.weights, binning.edges_), allow_nan=True)


def _normalizers(step: Any) -> Normalizers:
    known = ("StandardScaler", "RobustScaler", "MaxAbsScaler", "MinMaxScaler")
    name = next((cls.__name__ for cls in type(step).__mro__ if cls.__name__ in known), type(step).__name__)
    p = int(getattr(step, "n_features_in_", 0))
    zeros, ones = np.zeros(p), np.ones(p)
    if name == "StandardScaler":
        mean = step.mean_ if step.with_mean else zeros
        return Normalizers(mean, step.scale_ if step.with_std else ones)
    if name == "RobustScaler":
        centre = step.center_ if step.with_centering else zeros
        return Normalizers(centre, step.scale_ if step.with_scaling else ones)
    if name == "MaxAbsScaler":
        return Normalizers(zeros, step.scale_)
    if name == "MinMaxScaler" and not step.clip:
        return Normalizers(step.scale_, step.min_, affine=True)
    if name in ("ColumnTransformer", "FeatureUnion"):
        raise InvalidInputError(
            f"an export cannot contain {name} before the ranker. Choose and prepare the columns before the features "
            "are written, and fit the ranker on these, or use make_pipeline(one scaling of all columns, ranker)",
            code="step",
        )
    raise InvalidInputError(
        f"an export cannot contain {name} before the ranker, only StandardScaler, RobustScaler, MaxAbsScaler, "
        "MinMaxScaler(clip=False), ScoreBinning and selections of columns. Apply it in the engine, or before the "
        "features are written"
    )


def _without_formula(model: Any) -> InvalidInputError:
    return InvalidInputError(
        f"{type(model).__name__} has no formula that another program can compute. Export a linear ranker, RankBoost, "
        "boosted trees or an imported model",
        code="no-formula",
    )


def _form_of_ranker(model: Any) -> ModelForm:
    from sklearn.utils.validation import check_is_fitted

    from truerank.rankers.baselines import SingleFeature
    from truerank.rankers.linear import LinearRanker
    from truerank.rankers.rank_boost import RankBoost

    known = getattr(model, "form_", None)  # a model that came from another tool
    if isinstance(known, ModelForm):
        return known
    if not hasattr(model, "fit"):
        raise _without_formula(model)
    check_is_fitted(model)
    names = tuple(default_names(model.n_features_in_))
    if isinstance(model, LinearRanker):
        intercept = float(getattr(model, "intercept_", 0.0))
        edges = getattr(model, "bin_edges_", None)
        if edges is not None:
            return ModelForm(names, _stumps_of_bins(model.coef_, edges), intercept=intercept)
        return ModelForm(names, Linear(model.coef_), intercept=intercept, allow_nan=False)
    if isinstance(model, RankBoost):
        return ModelForm(names, Stumps(model.feature_, model.threshold_, model.missing_, model.weight_))
    if isinstance(model, SingleFeature):
        weights = np.zeros(model.n_features_in_)
        weights[model.feature_] = model.sign_
        return ModelForm(names, Linear(weights))  # predict ranks missing values last, which the certificate asks
    if hasattr(model, "category_features_"):
        raise InvalidInputError(
            "the model has categorical features, and export formats cannot look up categories",
            argument="ranker",
            remedies=[
                Remedy("to export it with a number in place of each category", statistics=...),
                "export ranker.over_statistics(), whose numbers are in ranker.category_statistics()",
            ],
            code="categories",
        )
    if not hasattr(model, "tree_features_"):
        raise _without_formula(model)
    start, body = model._start(), model.kind_of_leaves.form(kept(model, Ensemble), model)
    return ModelForm(names, body, start=float(start.constant), linear_start=start.linear)


def _stumps_of_bins(coef: np.ndarray, edges: list[np.ndarray]) -> Stumps:
    """Return one stump for each weight of a linear ranker of bins; the first of a column asks `x > -inf`."""
    features = np.concatenate([np.full(len(own) + 1, k) for k, own in enumerate(edges)])
    thresholds = np.concatenate([np.concatenate([[-np.inf], own]) for own in edges])
    return Stumps(features.astype(np.int64), thresholds, np.zeros(len(coef), dtype=np.int64), coef)


# From one form to another.


def as_plain(form: ModelForm) -> ModelForm:
    """Return a model of stumps, oblivious or plain trees as binary trees without normalisers."""
    body = _oblivious_stumps(form.body)
    _require_form(form, form.linear_start is None and isinstance(body, Oblivious | Plain), "a sum of plain trees")
    if isinstance(body, Oblivious):
        body = Plain(binary_of_oblivious(body.trees))
    if form.normalizers is not None:
        trees = body.trees
        body = Plain(replace(trees, thresholds=undo_normalizers(form.normalizers, trees.features, trees.thresholds)))
    return replace(form, body=body, normalizers=None)


def as_oblivious(form: ModelForm) -> ModelForm:
    """Return a model of stumps or oblivious trees as oblivious trees without normalisers."""
    body = _oblivious_stumps(form.body)
    _require_form(form, form.linear_start is None and isinstance(body, Oblivious), "a sum of plain oblivious trees")
    if form.normalizers is not None:
        old = body.trees
        body = Oblivious(replace(old, borders=undo_normalizers(form.normalizers, old.features, old.borders)))
    return replace(form, body=body, normalizers=None)


def as_linear(form: ModelForm) -> ModelForm:
    """Return a linear model of the raw features: normalisers become part of the weights and the intercept."""
    _require_form(form, isinstance(form.body, Linear), "linear")
    if form.normalizers is None:
        return form
    scaling = form.normalizers.as_subtract_divide()
    weights = form.body.weights / scaling.second
    shift = -float(np.sum(weights * scaling.first))
    return replace(form, body=Linear(weights), intercept=form.intercept + shift, normalizers=None)


def _require_form(form: ModelForm, right: bool, what: str) -> None:
    if not right:
        raise InvalidInputError(f"a model of {form.kind} form is not {what}", code="form")


def _oblivious_stumps(body: object) -> Any:
    """Return stumps as trees of one question each, and any other body unchanged."""
    if not isinstance(body, Stumps):
        return body
    values = np.stack([np.zeros(len(body.features)), body.weights], axis=1)
    # With an infinite threshold and missing values right, a tree asks whether the value exists: if so, it is left.
    always = body.thresholds == -np.inf
    values[always] = values[always, ::-1]
    borders = np.where(always, np.inf, body.thresholds)
    right = np.where(always, body.missing == 0, body.missing != 0)
    return Oblivious(Ensemble(body.features[:, None].astype(np.int32), borders[:, None], right[:, None], values))


def undo_normalizers(normalizers: Normalizers, features: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return for each threshold t the largest x with a normalised value of at most t, found exactly by bisection."""
    scales = normalizers.first if normalizers.affine else normalizers.second
    if (scales[features] <= 0).any():
        raise InvalidInputError(
            f"column {features[scales[features] <= 0][0]} is scaled by 0 or a negative number, which reverses "
            "thresholds. Fit without this scaling"
        )
    one = Normalizers(normalizers.first[features], normalizers.second[features], normalizers.affine)
    finite = np.isfinite(thresholds)
    high = np.full(thresholds.shape, np.float64(np.finfo(np.float64).max).view(np.int64))
    low = -high
    with np.errstate(over="ignore"):
        for _ in range(64):
            middle = (low // 2) + (high // 2) + ((low & 1) + (high & 1) + 1) // 2
            fits = one(_from_ordinal(middle)) <= thresholds
            low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    return np.where(finite, _from_ordinal(low), thresholds)


# Other roundings, for programs whose float32 sums reverse or tie documents with close scores.


def roundings(form: ModelForm) -> Iterator[tuple[ModelForm, float, float | None]]:
    """Yield for several factors the form times the factor, the factor, and the step of the grid or None.

    A positive factor of all weights, leaf values and constants keeps the ranking and changes the float32 roundings.
    Trees are tried on grids of steps g = 2^k first and then without: if every partial sum is at most 2^24 g, float32
    sums of multiples of g are exact in any order. A grid is coarser than float32 for small values, so rounding to it
    can also reverse two documents. Linear models have no grid, because products of weights and features have more
    digits.
    """
    for grid in (False,) if isinstance(form.body, Linear) else (True, False):
        for k in range(int(not grid), _TRIES):
            factor = 1.0 + k * _STEP
            step = _step(form, factor) if grid else None
            yield _times(form, factor, step), factor, step


def _step(form: ModelForm, factor: float) -> float:
    """Return the smallest power of two that is large enough for all partial sums."""
    largest = largest_values(form)
    bound = factor * (float(largest.sum()) + abs(form.start) + abs(form.intercept))
    return float(2.0 ** np.ceil(np.log2(max(bound, 1e-30) / (_DIGITS - len(largest) - 2))))


def largest_values(form: ModelForm) -> np.ndarray:
    """Return the largest magnitude that each stump or tree adds to a score, shape (T,)."""
    body = form.body
    if isinstance(body, Stumps):
        return np.abs(body.weights)
    values = np.abs(body.trees.values)
    if isinstance(body, Plain):
        return np.array(body.trees.nested(lambda leaf: float(values[leaf]), lambda node, a, b: max(a, b)))
    return (values.sum(axis=2) if isinstance(body, Polynomial) else values).max(axis=1, initial=0.0)


def _times(form: ModelForm, factor: float, step: float | None) -> ModelForm:
    def scaled(values: Any) -> Any:
        return factor * values if step is None else np.round(factor * values / step) * step

    body = form.body
    if isinstance(body, Linear | Stumps):
        body = replace(body, weights=scaled(body.weights))
    else:
        body = replace(body, trees=replace(body.trees, values=scaled(body.trees.values)))
    return replace(form, body=body, start=float(scaled(form.start)), intercept=float(scaled(form.intercept)))


def _from_ordinal(number: np.ndarray) -> np.ndarray:
    """Return float64 numbers by their positions in the order of all float64 numbers; 0.0 has position 0."""
    bits = np.where(number >= 0, number, np.int64(np.iinfo(np.int64).min) - number)
    return np.ascontiguousarray(bits).view(np.float64)
