"""Keep the parts of fitted trees as attributes of a ranker: each array of a part under the prefix of its class."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from truerank.core.kernel import kernel_array
from truerank.trees.categories import CategoryTables
from truerank.trees.ensemble import Ensemble
from truerank.trees.leaves.places import FlatPlaces
from truerank.trees.training_columns import Scaling

Part = TypeVar("Part", Ensemble, FlatPlaces, CategoryTables, Scaling)
_PREFIXES: dict[Any, str] = {Ensemble: "tree", FlatPlaces: "place", CategoryTables: "category", Scaling: "feature"}
NAMES = {kind: tuple(f"{prefix}_{one.name}_" for one in fields(kind)) for kind, prefix in _PREFIXES.items()}
"""The names of the attributes that keep the arrays of each kind of part."""


def keep(ranker: Any, part: Any) -> None:
    """Keep the arrays of a part as attributes of the ranker."""
    for name, one in zip(NAMES[type(part)], fields(part)):
        setattr(ranker, name, getattr(part, one.name))


def kept(ranker: Any, kind: type[Part]) -> Part:
    """Return a part of the model from the attributes of the ranker."""
    return kind(*(kernel_array(getattr(ranker, name)) for name in NAMES[kind]))


def kept_or_none(ranker: Any, kind: type[Part]) -> Part | None:
    """Return a part of the model, or None if the ranker has no such part."""
    return kept(ranker, kind) if hasattr(ranker, NAMES[kind][0]) else None
