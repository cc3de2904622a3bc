"""Declare each parameter of a class once."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def parameters(cls: _Class) -> _Class:
    """Decorate a class: generate `__init__` from the annotated attributes without making the class a dataclass.

    Dask and other libraries rebuild a dataclass from its fields, and would lose the fitted attributes of a model.

    >>> from dataclasses import is_dataclass
    >>> @parameters
    ... class Halving:
    ...     rounds: int = 3
    >>> Halving(4).rounds, is_dataclass(Halving)
    (4, False)
    """
    dataclass(eq=False, repr=False, match_args=False)(cls)
    for name in ("__dataclass_fields__", "__dataclass_params__", "__replace__"):  # the last since Python 3.13
        if name in vars(cls):
            delattr(cls, name)
    return cls
