"""Refuse objects of XGBoost, LightGBM and CatBoost as arguments, with advice on replacements."""

from __future__ import annotations

from truerank.core.errors import InvalidInputError

_LIBRARIES = ("catboost", "lightgbm", "xgboost")
# Name of a callback without underscores and "Callback" -> its replacement.
_CALLBACKS = {
    "EarlyStopping": "early_stopping_rounds=N",
    "LogEvaluation": "verbose=N, a line every N rounds",
    "EvaluationMonitor": "verbose=N, a line every N rounds",
    "RecordEvaluation": "nothing: evals_result_ has the values by round",
    "ResetParameter": "learning_rate=[…] in the constructor, one number for each round",
    "LearningRateScheduler": "learning_rate=[…] in the constructor, one number for each round",
}


def library_of(value: object) -> str | None:
    """Return the library of an object or of its base classes, without importing it; None for other libraries."""
    for base in type(value).__mro__:
        root = base.__module__.partition(".")[0]
        if root in _LIBRARIES:
            return root
    return None


def refuse_foreign_data(X: object) -> None:
    """Raise InvalidInputError on a Pool, Dataset or DMatrix."""
    library = library_of(X)
    if library is not None:
        raise InvalidInputError(
            f"X is a {type(X).__name__} of {library}; pass the rows from which it was made: fit(X, y, qid=qid, "
            "eval_set=(X_valid, y_valid, qid_valid)), predict(X)"
        )


def refuse_foreign_callback(callback: object, owner: str) -> None:
    """Raise InvalidInputError on a callback of another library."""
    library = library_of(callback)
    if library is None:
        return
    name = type(callback).__name__
    instead = _CALLBACKS.get(
        name.strip("_").removesuffix("Callback"),
        "a function of `truerank.core.rounds.Round` (round, measures, arrays), which stops the fit by returning True",
    )
    raise InvalidInputError(f"{owner}.fit: the callback {name} is of {library}; write {instead}")
