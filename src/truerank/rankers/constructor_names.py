"""Constructors that take parameters under more names than their own: earlier ones, and those of other libraries."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from truerank.core.errors import InvalidInputError, warn
from truerank.rankers.other_names import translated


def renamed_parameters(**old_to_new: str) -> Callable[[Any], Any]:
    """Class decorator: the old name of a parameter is taken for one release, with a FutureWarning.

    >>> @renamed_parameters(eval_measure="validation_measure")
    ... class Named:
    ...     def __init__(self, validation_measure=None):
    ...         self.validation_measure = validation_measure
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     Named(eval_measure="AP").validation_measure, seen[0].category.__name__
    ('AP', 'FutureWarning')
    """

    def decorate(cls: Any) -> Any:
        init = cls.__init__

        @functools.wraps(init)
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> None:
            init(self, *args, **under_new_names(type(self).__name__, kwargs, old_to_new))

        wrapped.renamed = old_to_new  # type: ignore[attr-defined]
        cls.__init__ = wrapped
        return cls

    return decorate


def taking_other_names(cls: Any) -> Any:
    """Class decorator: `__init__` also takes the names of other libraries (`other_names`)."""
    init = cls.__init__
    parameters = inspect.signature(init).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return cls
    old = getattr(init, "renamed", {})

    @functools.wraps(init)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> None:
        if "objective" in kwargs or not all(name in parameters or name in old for name in kwargs):
            known = {name: None for name in (*parameters, *old) if name != "self"}
            kwargs = translated(type(self), known, kwargs)
        init(self, *args, **kwargs)

    cls.__init__ = wrapped
    return cls


def under_new_names(owner: str, given: dict[str, Any], old_to_new: dict[str, str]) -> dict[str, Any]:
    """Arguments by today's names, with a FutureWarning for each that came under an old one."""
    result = dict(given)
    for old, new in old_to_new.items():
        if old in result:
            if new in result:
                raise InvalidInputError(f"{owner}: {old} is the old name of {new}; give {new} alone")
            warn(f"{owner}: {old} is now called {new}", FutureWarning)
            result[new] = result.pop(old)
    return result
