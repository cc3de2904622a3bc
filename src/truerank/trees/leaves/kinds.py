"""The table of the kinds of leaves."""

from __future__ import annotations

from typing import Any

from truerank.core.errors import InvalidInputError
from truerank.core.names import Table, resolve
from truerank.trees.leaves.base import Leaves
from truerank.trees.leaves.constant import ConstantLeaves
from truerank.trees.leaves.fuzzy import FuzzyLeaves
from truerank.trees.leaves.polynomial import PolynomialLeaves

KINDS: Table[type[Leaves]] = Table(
    "truerank.leaves",
    {kind.name: kind for kind in (ConstantLeaves, FuzzyLeaves, PolynomialLeaves)},
    lambda point: resolve(point.value),
)


def parse_leaves(given: object) -> Leaves:
    """Return leaves from a value, a name, or a dict with the name as "kind" and parameters, as in a model file.

    Raises `InvalidInputError` if the name or a parameter is unknown, or a parameter is out of range.

    >>> parse_leaves({"kind": "polynomial", "degree": 2}).degree
    2
    """
    if isinstance(given, Leaves):
        given.check()
        return given
    own: dict[str, Any] = dict(given) if isinstance(given, dict) else {"kind": given}
    kind = own.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidInputError(
            f"leaves must be one of {', '.join(map(repr, KINDS))}, a value such as FuzzyLeaves(p_swap=0.99), or a dict "
            f'such as {{"kind": "fuzzy", "p_swap": 0.99}}, got {given!r}',
            argument="leaves",
        )
    try:
        leaves = KINDS[kind](**own)
    except TypeError as error:
        raise InvalidInputError(f"leaves={given!r}: {error}", argument="leaves") from error
    leaves.check()
    return leaves
