"""Objects by name: "module:name" is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from truerank.core.errors import InvalidInputError


def resolve(target: str) -> Any:
    """The object behind "module:name"."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def look_up(table: dict[str, str], name: str, kind: str) -> type:
    """The class that `table` (name -> "module:class") has for `name`; an unknown name is an `InvalidInputError`."""
    if name not in table:
        raise InvalidInputError(f"unknown {kind} {name!r}; known are: {', '.join(table)}")
    return resolve(table[name])
