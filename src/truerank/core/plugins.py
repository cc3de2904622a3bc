"""Tables of named objects, which installed packages extend by entry points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


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
