"""Objects by name: imports ("module:name"), tables that packages extend, values with settings (`NAME(key=value)`)."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from truerank.core.errors import InvalidInputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


def resolve(target: str) -> Any:
    """Import and return the object "module:name"."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def repeated(items: Iterable[T]) -> list[T]:
    """Return the items that occur more than once, each once, in order of first appearance.

    >>> repeated(["b", "a", "b", "c", "a"])
    ['b', 'a']
    """
    known = list(items)
    return [] if len(set(known)) == len(known) else [item for item, count in Counter(known).items() if count > 1]


def look_up(table: Mapping[str, str], name: str, kind: str) -> type:
    """Return the class of `name` in `table` (name -> "module:class"). Raises InvalidInputError for an unknown name."""
    if name not in table:
        raise InvalidInputError(unknown(table, name, kind), code="unknown-name")
    return resolve(table[name])


def unknown(table: Mapping[str, object], name: str, kind: str) -> str:
    """Return the message for a name that is not in `table`, with truerank's name for it, or else the nearest name.

    >>> unknown({"beta": ""}, "bennett", "calibrator")
    "unknown calibrator 'bennett'; it is AsymmetricLaplaceCalibrator()"
    """
    from truerank.core.method_names import called_here

    hint = called_here(name)
    more = f"; it is {hint}" if hint else nearest(name, table, f"Choose among: {', '.join(table)}")
    return f"unknown {kind} {name!r}{more}"


def similar(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to a name, or None if none is similar.

    Case and the difference of `_` and `-` are ignored.

    >>> similar("ada_rank", ["adarank", "rank-svm"])
    'adarank'
    """
    plain = {_plain(other): other for other in known}
    near = difflib.get_close_matches(_plain(str(name)), plain, n=1)
    return plain[near[0]] if near else None


def nearest(name: str, known: Iterable[str], more: str = "") -> str:
    """Return the end of an error message about an unknown name: a similar known name, if any, and the sentence `more`.

    >>> nearest("ada_rank", ["adarank", "rank-svm"], "Choose one"), nearest("tfidf", ["adarank"], "Choose one")
    (". Did you mean 'adarank'? Choose one", '. Choose one')
    """
    near = similar(name, known)
    sentences = ("" if near is None else f"Did you mean {near!r}?", more)
    return ". " + " ".join(filter(None, sentences)) if any(sentences) else ""


def read_value(text: str, known: Mapping[str, type], kind: str) -> Any:
    """Parse `NAME` or `NAME(key=value, …)` to a dataclass of `known` whose fields are numbers or words.

    Raises InvalidInputError for an unknown name or field, and for a value of another type.
    """
    from dataclasses import fields  # a tenth of the time that commands need to start

    name, opened, rest = text.strip().partition("(")
    if name not in known:
        listed = f"Choose among: {', '.join(known)}. Settings are written NAME(key=value, key=value)"
        raise InvalidInputError(f"unknown {kind} {text!r}{nearest(name, known, listed)}", code="unknown-name")
    if opened and not rest.endswith(")"):
        closed = f"{name}({rest.partition(')')[0]})"
        raise InvalidInputError(f"{text!r} does not end with a closing bracket. Write {closed}", code="brackets")
    kinds = {own.name: {"float": float, "int": int}.get(str(own.type), str) for own in fields(known[name])}
    settings: dict[str, Any] = {}
    for pair in filter(None, map(str.strip, rest.removesuffix(")").split(","))):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or key not in kinds:
            raise InvalidInputError(
                f"{name} has no parameter {key!r}. It has: {', '.join(kinds) or 'none'}", code="unknown-setting"
            )
        try:
            settings[key] = kinds[key](value.strip("'\""))
        except ValueError:
            what = "an integer" if kinds[key] is int else "a number"
            raise InvalidInputError(f"{name}: {key} must be {what}, got {value!r}", code="setting") from None
    return known[name](**settings)


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").lstrip("-")


class Table(Mapping[str, T], Generic[T]):
    """Named objects of truerank (`own`) and of the entry points of a group, such as "truerank.rankers".

    Packages are searched for names that truerank does not define, and when all names are listed. A package cannot
    replace a name of truerank. `made` converts an entry point to an object.

    Examples
    --------
    >>> table = Table("truerank.none", {"a": "module:A"}, lambda point: point.value)
    >>> table["a"], list(table), "b" in table
    ('module:A', ['a'], False)
    """

    def __init__(self, group: str, own: dict[str, T], made: Callable[[EntryPoint], T]) -> None:
        self.group, self.own, self._made = group, own, made

    @cached_property
    def _added(self) -> dict[str, EntryPoint]:
        from importlib.metadata import entry_points  # as slow as all of `import truerank`

        return {point.name: point for point in entry_points(group=self.group) if point.name not in self.own}

    def __getitem__(self, name: str) -> T:
        return self.own[name] if name in self.own else self._made(self._added[name])

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from self._added

    def __len__(self) -> int:
        return len(self.own) + len(self._added)


def target_of(point: EntryPoint) -> str:
    """Return the "module:object" of an entry point without importing it."""
    return point.value
