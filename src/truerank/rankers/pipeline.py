"""Fit and apply pipelines of transformers and a ranker, and rankers of other libraries, to a `RankingData`."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Unpack

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from truerank.compat.fit_arguments import check_predict_arguments, without_query_column
from truerank.core.errors import InvalidInputError, warn
from truerank.core.names import look_up
from truerank.core.types import ArrayLike, NoOthers, Scorer
from truerank.data.columns import rows_for, rows_to_fit
from truerank.data.ranking_data import RankingData
from truerank.features.score_binning import ScoreBinning
from truerank.rankers.accepted_data import refuse_again
from truerank.rankers.base import Ranker

# Name of a transformer on the command line -> "module:class".
TRANSFORMERS: dict[str, str] = {
    "score-binning": "truerank.features.score_binning:ScoreBinning",
    "percentile-in-query": "truerank.features.per_query:PercentileInQuery",
    "min-max-in-query": "truerank.features.per_query:MinMaxInQuery",
    "z-score-in-query": "truerank.features.per_query:ZScoreInQuery",
    "unit-deviation": "truerank.features.columns:UnitDeviation",
}


class RankerPipeline(Ranker):
    """A ranker that consists of transformers and a final ranker.

    Unlike a scikit-learn `Pipeline` it can be saved and calibrated like any ranker, passes `qid` to transformers, and
    transforms validation queries.

    Parameters
    ----------
    prepare : str or transformer, or a list of these
        Transformers in their order; names are those of `TRANSFORMERS`.
    ranker : Ranker
        Unfitted ranker, which is cloned. Its parameters are set as `ranker__C`.

    Attributes
    ----------
    transformers_ : list of fitted transformers
    ranker_ : Ranker

    Notes
    -----
    Score binning makes a `BinnedMatrix` if the ranker accepts it, and otherwise a sparse 0/1 matrix. `predict` needs
    `qid` if a transformer uses the query.

    Examples
    --------
    >>> from truerank.rankers.rank_svm import RankSVM
    >>> ranker = RankerPipeline(["min-max-in-query"], RankSVM())
    >>> fitted = ranker.fit([[1.0], [3.0], [10.0], [30.0]], [0, 1, 0, 1], qid=[1, 1, 2, 2])
    >>> fitted.rank([[4.0], [5.0], [40.0], [50.0]], qid=[3, 3, 4, 4]).tolist()
    [2, 1, 2, 1]
    """

    model_attributes: ClassVar[dict[str, str]] = {"transformers_": "list[] of TransformerMixin", "ranker_": "Ranker"}

    def __init__(self, prepare: Any, ranker: Scorer) -> None:
        self.prepare = prepare
        self.ranker = ranker

    @property
    def allow_nan(self) -> bool:  # type: ignore[override]
        """Whether NaN reaches a part that can use it: score binning, an imputer, or the ranker."""
        for step in _made(self.prepare):
            if not get_tags(step).input_tags.allow_nan:
                return False
            if isinstance(step, ScoreBinning) or type(step).__module__.startswith("sklearn.impute"):
                return True
        return bool(get_tags(self.ranker).input_tags.allow_nan)

    @property
    def allow_sparse(self) -> bool:  # type: ignore[override]
        """Whether the first transformer accepts sparse rows."""
        first = next(iter(_made(self.prepare)), self.ranker)
        return bool(get_tags(first).input_tags.sparse)

    @property
    def uses_eval_set(self) -> bool:  # type: ignore[override]
        """Whether the ranker uses validation queries."""
        return bool(getattr(self.ranker, "uses_eval_set", False))

    @property
    def chooses_by_eval_set(self) -> bool:
        """Whether validation queries can change a fit of the ranker with its settings."""
        return bool(getattr(self.ranker, "chooses_by_eval_set", False))

    @property
    def measure(self) -> Any:
        """The ranker's measure."""
        return getattr(self.ranker, "measure", "nDCG@10")

    @property
    def convention(self) -> str:
        """The ranker's convention."""
        return str(getattr(self.ranker, "convention", "ranklib"))

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        self.transformers_ = []
        data, valid = _as_float64(data), None if valid is None else _as_float64(valid)
        for step in _made(self.prepare):
            transformer = clone(step)
            if isinstance(transformer, ScoreBinning) and getattr(self.ranker, "allow_binned", False):
                transformer.set_params(output="binned")
            transformer.fit(data.X, data.y, **_query(transformer.fit, data))
            data = _transformed(transformer, data)
            valid = None if valid is None else _transformed(transformer, valid)
            self.transformers_.append(transformer)
        self.ranker_ = fit_ranker(self.ranker, data, valid)
        self.status_ = getattr(self.ranker_, "status_", "fitted")

    def predict(self, X: Any, *, qid: Any = None, **other: Unpack[NoOthers]) -> np.ndarray:
        """Return scores (n,), float64, in the order of the caller's rows; see the notes of the class for `qid`."""
        check_is_fitted(self)
        check_predict_arguments(self, other)
        X, qid = self._without_query_column(X, qid)
        data = as_ranking_data(self, X, qid)
        if qid is None and not isinstance(X, RankingData) and self.n_queries_in_ > 1:
            for step in self.transformers_:
                if _takes(step.transform, "qid") and not isinstance(step, ScoreBinning):  # which ignores its qid
                    raise InvalidInputError(
                        f"{type(step).__name__} requires queries. Pass the query of each row: predict(X, qid=qid)",
                        argument="qid",
                    )
        data = self.transformed(data)
        return data.restore(ranker_scores(self.ranker_, data))

    def transformed(self, data: RankingData) -> RankingData:
        """Return the rows after all fitted transformers."""
        data = _as_float64(data)
        for transformer in self.transformers_:
            data = _transformed(transformer, data)
        return data

    def _feature_shares(self) -> np.ndarray:
        shares = np.asarray(self.ranker_.feature_importances_, dtype=np.float64)
        if len(shares) != self.n_features_in_:
            raise AttributeError(
                f"feature_importances_: the transformers turned {self.n_features_in_} columns into {len(shares)}. Use "
                "permutation_importance(X, y, qid=qid)"
            )
        return shares


def transformer_class(name: str) -> type:
    """Return the class of a transformer by its name, such as "score-binning"."""
    return look_up(TRANSFORMERS, name, "transformer")


def with_seed(ranker: Any, seed: int) -> Any:
    """Return an unfitted clone whose random states, those of its parts too, are `seed`; None if it has none.

    They are the parameters `random_state`, `random_seed` (CatBoost) and `seed`.
    """
    if not hasattr(ranker, "get_params"):
        return None
    names = [
        name for name in ranker.get_params() if name.rpartition("__")[2] in ("random_state", "random_seed", "seed")
    ]
    return clone(ranker).set_params(**dict.fromkeys(names, seed)) if names else None


def fit_ranker(ranker: Scorer, data: RankingData, valid: RankingData | None = None) -> Any:
    """Return a fitted clone of a ranker of truerank or of another library.

    The steps of a scikit-learn `Pipeline` are fitted one by one, with `qid` for those that accept it. Other libraries'
    rankers get the queries as `group` (LightGBM), `group_id` (CatBoost) or `qid` (XGBoost), if they accept one of
    these, and no weights. They get a data frame if they read columns by name or categories.

    Raises
    ------
    InvalidInputError
        If the ranker lacks `fit` or `predict`, or is a class.
    """
    if isinstance(ranker, Ranker):
        data, valid = data.as_grouped(), None if valid is None else valid.as_grouped()
        return clone(ranker).fit(data, **({} if valid is None else {"eval_set": valid}))
    data = data.in_memory(f"{type(ranker).__name__}, a ranker of another library,")
    if isinstance(ranker, type) or not hasattr(ranker, "fit") or not hasattr(ranker, "predict"):
        name = getattr(ranker, "__name__", type(ranker).__name__)
        got = f"the class {name}. Write {name}()" if isinstance(ranker, type) else name
        raise InvalidInputError(f"expected a ranker or a pipeline with fit and predict, got {got}", argument="ranker")
    if hasattr(ranker, "steps"):
        fitted = clone(ranker)
        steps: list[Any] = []
        for name, step in fitted.steps[:-1]:
            if step is not None and step != "passthrough":
                # The first step gets what the whole pipeline requires.
                step.fit(rows_to_fit(step if steps else fitted, data), data.y, **_query(step.fit, data))
                data = _transformed(step, data)
                valid = None if valid is None else _transformed(step, valid)
            steps.append((name, step))
        fitted.steps = [*steps, (fitted.steps[-1][0], fit_ranker(fitted.steps[-1][1], data, valid))]
        return fitted
    if valid is not None:
        raise InvalidInputError(f"eval_set has no effect: {type(ranker).__name__} is fitted without it. Leave it out")
    if data.query_weight is not None or data.sample_weight is not None:
        warn(f"the weights of the data have no effect on {type(ranker).__name__}")
    sizes, number = np.diff(data.offsets), data.query_index
    queries = {"group": sizes, "group_id": number, "qid": number}
    given = next(({name: value} for name, value in queries.items() if _takes(ranker.fit, name)), {})
    return clone(ranker).fit(rows_to_fit(ranker, data), data.y, **given)


def ranker_scores(ranker: Scorer, data: RankingData) -> np.ndarray:
    """Return scores (n,), float64, of grouped rows from a fitted ranker, a model of another library, or a function."""
    if isinstance(ranker, Ranker):
        return data.scores(ranker)
    steps = [step for _, step in getattr(ranker, "steps", []) if step is not None and step != "passthrough"]
    if any(_takes(step.transform, "qid") for step in steps[:-1]):
        for step in steps[:-1]:
            data = _transformed(step, data)
        return ranker_scores(steps[-1], data)
    return model_scores(ranker, rows_for(ranker, data))


def model_scores(model: Any, X: Any) -> np.ndarray:
    """Return scores (n,), float64, from a fitted model of any library, or a function of X; higher is better.

    The score of a classifier is the probability of the second of its classes, and of more than two classes the expected
    class, which must be a number. The score of a classifier without probabilities is its decision function.
    """
    with warnings.catch_warnings():
        # LightGBM names the columns of an array itself, and then warns that the next array has no names.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        if hasattr(model, "predict_proba"):
            scores = np.asarray(model.predict_proba(X), dtype=np.float64)
            scores = scores[:, 1] if scores.shape[1] == 2 else scores @ _numbers(model.classes_)
        elif hasattr(model, "decision_function") and len(getattr(model, "classes_", ())) == 2:
            scores = model.decision_function(X)
        else:  # an XGBoost Booster predicts rows with `inplace_predict` only
            scores = getattr(model, "inplace_predict", getattr(model, "predict", model))(X)
    found = np.asarray(scores, dtype=np.float64)
    if found.size != X.shape[0]:
        raise InvalidInputError(
            f"{type(model).__name__}: a system must return one score for each of the {X.shape[0]} rows, got an array "
            f"of shape {found.shape}",
            code="one-score",
        )
    return found.reshape(-1)


def _numbers(classes: Any) -> np.ndarray:
    try:
        return np.asarray(classes, dtype=np.float64)
    except ValueError as error:
        raise InvalidInputError(
            f"the classes {', '.join(map(str, classes))} are not grades: a model of more than two classes ranks by the "
            "expected grade. Train it on numbers, or give a function of X that returns one score for each row",
            code="classes",
        ) from error


def as_ranking_data(ranker: Ranker, X: Any, qid: ArrayLike | None) -> RankingData:
    """Return checked rows for a fitted ranker, with the names of the training columns."""
    X, qid = without_query_column(X, qid, getattr(ranker, "feature_names_in_", None))
    if isinstance(X, RankingData):
        refuse_again(None, qid)
        X = ranker._filled(X)
        ranker._check_columns(X)
        return X
    matrix = ranker._checked(X, reset=False)
    return RankingData(matrix, None, qid, feature_names=getattr(ranker, "feature_names_in_", None))


def _made(prepare: Any) -> list[Any]:
    steps = [prepare] if isinstance(prepare, str) or not isinstance(prepare, Sequence) else list(prepare)
    made: list[Any] = [transformer_class(step)() if isinstance(step, str) else step for step in steps]
    for step in made:
        if not hasattr(step, "transform"):
            raise InvalidInputError(f"prepare must be transformers or their names, got {step!r}", argument="prepare")
    return made


def _as_float64(data: RankingData) -> RankingData:
    """Convert float32 rows to float64, because scikit-learn's scalers compute in the precision of their rows."""
    return data.replaced(X=data.X.astype(np.float64)) if getattr(data.X, "dtype", None) == np.float32 else data


def _transformed(transformer: Any, data: RankingData) -> RankingData:
    """Return the rows after a transformer."""
    X = transformer.transform(rows_for(transformer, data), **_query(transformer.transform, data))
    X = X.to_numpy() if hasattr(X, "to_numpy") else X
    names = None if X.shape[1] != data.n_features else data.feature_names
    return data.replaced(X=X, feature_names=names, category_names=None)


def _query(method: object, data: RankingData) -> dict[str, Any]:
    """Return `qid` for a method that accepts it."""
    return {"qid": data.query_index} if _takes(method, "qid") else {}


def _takes(method: Any, name: str) -> bool:
    return name in inspect.signature(method).parameters
