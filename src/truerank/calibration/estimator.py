"""Provide a base class of estimators: scikit-learn's if it is installed, else one with its interface."""

from __future__ import annotations

import inspect
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from truerank.core.errors import InvalidInputError

if TYPE_CHECKING or find_spec("sklearn") is not None:
    from sklearn.base import BaseEstimator as BaseEstimator
    from sklearn.utils.validation import check_is_fitted as check_is_fitted
else:

    class BaseEstimator:
        """An estimator with parameters named as the arguments of its constructor."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the parameters."""
            return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

        def set_params(self, **params: Any) -> Self:
            """Set parameters; InvalidInputError for an unknown name."""
            for name, value in params.items():
                if name not in self.get_params():
                    known = ", ".join(self.get_params())
                    raise InvalidInputError(f"{type(self).__name__} has no parameter {name!r}. It has: {known}")
                setattr(self, name, value)
            return self

    def check_is_fitted(estimator: object) -> None:
        """Raise InvalidInputError if an estimator has no attribute of a fit, whose name ends in `_`."""
        if not any(name.endswith("_") for name in vars(estimator)):
            raise InvalidInputError(f"this {type(estimator).__name__} is not fitted. Call fit first")
