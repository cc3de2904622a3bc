"""The kinds of leaves by name, from what a caller may give, and what fits each."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from truerank.core.errors import InvalidInputError
from truerank.core.threads import Workers
from truerank.trees.ensemble import Ensemble
from truerank.trees.grower import GrowthRules
from truerank.trees.leaves.constant import ConstantFitter, ConstantLeaves
from truerank.trees.leaves.fuzzy import FuzzyFitter, FuzzyLeaves
from truerank.trees.leaves.fuzzy_predictor import FuzzyPredictor
from truerank.trees.leaves.places import smoothing_of
from truerank.trees.leaves.polynomial import PolynomialFitter, PolynomialLeaves, PolynomialPredictor, monomial_table
from truerank.trees.predictor import ConstantPredictor
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


def leaf_predictor(ensemble: Ensemble, model: Any) -> Any:
    """What scores rows with the trees of a fitted model, which holds the places or the scaling that its leaves need."""
    leaves = model.kind_of_leaves
    if isinstance(leaves, FuzzyLeaves):
        return FuzzyPredictor(ensemble, model._flat_places(), model.p_swap_, leaves.ties)
    if isinstance(leaves, PolynomialLeaves):
        return PolynomialPredictor(ensemble, model._scaling(), leaves.degree)
    return ConstantPredictor(ensemble)


def monomials_of(leaves: Leaves, depth: int) -> int | None:
    """How many coefficients a leaf of a tree of this depth has; None where a leaf holds one value."""
    return len(monomial_table(depth, leaves.degree)) if isinstance(leaves, PolynomialLeaves) else None
