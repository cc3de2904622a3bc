"""Import objects by name ("module:name"), and read values with settings (`NAME(key=value)`)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from truerank.core.errors import InvalidInputError


def resolve(target: str) -> Any:
    """Import and return the object "module:name"."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def look_up(table: Mapping[str, str], name: str, kind: str) -> type:
    """Return the class of `name` in `table` (name -> "module:class"). Raises InvalidInputError for an unknown name."""
    if name not in table:
        raise InvalidInputError(f"unknown {kind} {name!r}{nearest(name, table)}; known are: {', '.join(table)}")
    return resolve(table[name])


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the words of an error message that suggest a known name, or "" if none is similar.

    Case and the difference of `_` and `-` are ignored.

    >>> nearest("ada_rank", ["adarank", "rank-svm"]), nearest("tfidf", ["adarank"])
    (", did you mean 'adarank'?", '')
    """
    plain = {_plain(other): other for other in known}
    near = difflib.get_close_matches(_plain(str(name)), plain, n=1)
    return f", did you mean {plain[near[0]]!r}?" if near else ""


def read_value(text: str, known: Mapping[str, type], kind: str) -> Any:
    """Parse `NAME` or `NAME(key=value, …)` to a dataclass of `known` with these fields: numbers, or words.

    An unknown name or field, and a value of another type, raise InvalidInputError.
    """
    from dataclasses import fields  # a tenth of the time that commands need to start

    name, opened, rest = text.strip().partition("(")
    if name not in known or (opened and not rest.endswith(")")):
        raise InvalidInputError(
            f"unknown {kind} {text!r}{nearest(name, known)}; known are: {', '.join(known)}, with settings as in "
            "NAME(key=value, key=value)"
        )
    kinds = {own.name: {"float": float, "int": int}.get(str(own.type), str) for own in fields(known[name])}
    settings: dict[str, Any] = {}
    for pair in filter(None, map(str.strip, rest.removesuffix(")").split(","))):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or key not in kinds:
            raise InvalidInputError(f"{name} has no parameter {key!r}; it has: {', '.join(kinds) or 'none'}")
        try:
            settings[key] = kinds[key](value.strip("'\""))
        except ValueError:
            what = "an integer" if kinds[key] is int else "a number"
            raise InvalidInputError(f"{name}: {key} must be {what}, got {value!r}") from None
    return known[name](**settings)


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
