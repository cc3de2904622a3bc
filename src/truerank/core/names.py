"""Objects by name: "module:name" is imported when it is asked for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
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
        raise InvalidInputError(f"unknown {kind} {name!r}{nearest(name, table)}; known are: {', '.join(table)}")
    return resolve(table[name])


def nearest(name: str, known: Iterable[str]) -> str:
    """The words of an error message that name what was perhaps meant; nothing where no known name is near.

    Case, and `_` for `-`, do not count.

    >>> nearest("ada_rank", ["adarank", "rank-svm"]), nearest("tfidf", ["adarank"])
    (", did you mean 'adarank'?", '')
    """
    plain = {_plain(other): other for other in known}
    near = difflib.get_close_matches(_plain(str(name)), plain, n=1)
    return f", did you mean {plain[near[0]]!r}?" if near else ""


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
