"""The kinds of leaves by name, and from what a caller may give."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from truerank.core.errors import InvalidInputError
from truerank.trees.leaves.constant import ConstantLeaves
from truerank.trees.leaves.fuzzy import FuzzyLeaves
from truerank.trees.leaves.polynomial import PolynomialLeaves

Leaves = ConstantLeaves | FuzzyLeaves | PolynomialLeaves
KINDS: dict[str, type[Leaves]] = {kind.name: kind for kind in (ConstantLeaves, FuzzyLeaves, PolynomialLeaves)}


def parse_leaves(given: Any) -> Leaves:
    """Leaves from a value, a name, or a dict of the name as "kind" and parameters, as a model file has it.

    Raises
    ------
    InvalidInputError
        On an unknown name or parameter, and on a parameter out of range.

    Examples
    --------
    >>> parse_leaves({"kind": "polynomial", "degree": 2}).degree
    2
    """
    if isinstance(given, ConstantLeaves | FuzzyLeaves | PolynomialLeaves):
        given.check()
        return given
    own = dict(given) if isinstance(given, dict) else {"kind": given}
    kind = own.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidInputError(
            f"leaves must be one of {', '.join(map(repr, KINDS))}, a value such as FuzzyLeaves(p_swap=0.99), or a dict "
            f'such as {{"kind": "fuzzy", "p_swap": 0.99}}; got {given!r}'
        )
    try:
        leaves = KINDS[kind](**own)
    except TypeError as error:
        raise InvalidInputError(f"leaves={given!r}: {error}") from error
    leaves.check()
    return leaves


def leaves_as_dict(leaves: Leaves) -> dict[str, Any]:
    """The dict that `parse_leaves` reads."""
    return {"kind": leaves.name, **asdict(leaves)}
