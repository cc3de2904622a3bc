"""The kinds of leaves by name, from what a caller may give, and what fits each."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from truerank.core.errors import InvalidInputError
from truerank.core.threads import Workers
from truerank.trees.grower import GrowthRules
from truerank.trees.leaves.constant import ConstantFitter, ConstantLeaves
from truerank.trees.leaves.fuzzy import FuzzyFitter, FuzzyLeaves
from truerank.trees.leaves.places import smoothing_of
from truerank.trees.leaves.polynomial import PolynomialFitter, PolynomialLeaves
from truerank.trees.training_columns import TrainingColumns

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


def search_rules(leaves: Leaves, rules: GrowthRules, columns: TrainingColumns, p_swap: float) -> GrowthRules:
    """The rules of the level search, with fuzzy borders where the leaves ask for them."""
    if not isinstance(leaves, FuzzyLeaves) or not leaves.search:
        return rules
    return replace(rules, smoothing=smoothing_of(columns.borders, columns.places, p_swap))


def leaf_fitter(leaves: Leaves, rules: GrowthRules, columns: TrainingColumns, p_swap: float, workers: Workers) -> Any:
    """What fits and evaluates the leaves of a tree."""
    if isinstance(leaves, FuzzyLeaves):
        return FuzzyFitter(rules.alpha, rules.monotone, columns.places, p_swap, leaves.ties, workers)
    if isinstance(leaves, PolynomialLeaves):
        assert columns.scaling is not None
        return PolynomialFitter(rules.alpha, leaves, rules.depth, columns.scaling, workers)
    return ConstantFitter(rules.alpha, rules.monotone, workers)
