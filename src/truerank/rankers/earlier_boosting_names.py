"""Parameters of ObliviousBoosting under the names of an earlier release, which work in this one and warn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from truerank.core.errors import warn
from truerank.trees.leaves.fuzzy import FuzzyLeaves
from truerank.trees.leaves.kinds import Leaves
from truerank.trees.leaves.polynomial import PolynomialLeaves

_OF_RANKER = {"alpha": "l2", "start_alpha": "start_penalty"}  # today's name -> the earlier one
_OF_LEAVES: dict[str, tuple[type, str]] = {
    "fuzziness": (FuzzyLeaves, "fuzziness"),
    "p_swap": (FuzzyLeaves, "p_swap"),
    "ties": (FuzzyLeaves, "ties"),
    "fuzzy_search": (FuzzyLeaves, "search"),
    "places": (FuzzyLeaves, "places"),
    "degree": (PolynomialLeaves, "degree"),
    "neighbour_penalty": (PolynomialLeaves, "smoothing"),
}
EARLIER_NAMES = {*_OF_RANKER.values(), *_OF_LEAVES}


def value_under_either_name(ranker: Any, name: str) -> Any:
    """A parameter's value, or what its earlier name was given."""
    earlier = getattr(ranker, _OF_RANKER[name])
    return getattr(ranker, name) if earlier is None else earlier


def with_earlier_names(ranker: Any, leaves: Leaves) -> Leaves:
    """The leaves, with what parameters of the ranker that are now theirs say."""
    given = {
        name: getattr(ranker, earlier)
        for earlier, (kind, name) in _OF_LEAVES.items()
        if kind is type(leaves) and getattr(ranker, earlier) is not None
    }
    if given:
        leaves = replace(leaves, **given)
        leaves.check()
    return leaves


def says_something_of_leaves(ranker: Any) -> bool:
    """Whether a parameter that is now the leaves' was given."""
    return any(getattr(ranker, earlier) is not None for earlier in _OF_LEAVES)


def warn_of_earlier_names(ranker: Any) -> None:
    """A FutureWarning for each that was given."""
    today = {earlier: name for name, earlier in _OF_RANKER.items()}
    today |= {earlier: f"leaves={kind.__name__}({name}=...)" for earlier, (kind, name) in _OF_LEAVES.items()}
    for earlier, name in today.items():
        if getattr(ranker, earlier) is not None:
            warn(
                f"ObliviousBoosting: {earlier} is the name of an earlier release and goes with the next; use {name}",
                FutureWarning,
            )
