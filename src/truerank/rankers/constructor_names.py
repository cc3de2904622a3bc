"""Generate the constructors of estimators, which also accept the names of other libraries."""

from __future__ import annotations

import functools
import inspect
from dataclasses import field
from typing import Any, TypeVar, dataclass_transform

from truerank.compat.other_names import translated
from truerank.core.parameters import parameters

_Class = TypeVar("_Class", bound=type)


def taking_other_names(cls: Any) -> Any:
    """Let `__init__` also accept the names of other libraries (`other_names`)."""
    init = cls.__init__
    _, *named = inspect.signature(init).parameters.values()
    known = {one.name: None for one in named}
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in named):
        return cls

    @functools.wraps(init)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> None:
        if "objective" in kwargs or not kwargs.keys() <= known.keys():
            kwargs = translated(type(self), known, kwargs)
        init(self, *args, **kwargs)

    cls.__init__ = wrapped
    return cls


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def estimator(cls: _Class) -> _Class:
    """Apply `parameters` to a ranker's class and let its constructor accept names of other libraries."""
    taking_other_names(parameters(cls))
    return cls
