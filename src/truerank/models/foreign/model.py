"""What the readers of other tools' models share: the result, checked numbers, trees from nodes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from truerank.core.errors import ModelFileError
from truerank.export.form import Linear, ModelForm, as_plain
from truerank.trees.binary import BinaryTrees

MOST_FEATURES = 1 << 24


@dataclass(frozen=True)
class ForeignModel:
    """A model as another tool reads it.

    Attributes
    ----------
    tool : str
        Name of the format.
    form : ModelForm
        The model with questions for float64 features that are exactly the tool's.
    float32 : bool
        The tool holds features and normalised features as float32.
    absent : float
        What the tool takes for a feature that a document does not have: 0 or nan.
    """

    tool: str
    form: ModelForm
    float32: bool = False
    absent: float = math.nan
    notes: tuple[str, ...] = field(default=())

    def score(self, X: np.ndarray) -> np.ndarray:
        """Scores (n,) of float64 rows with the tool's own arithmetic, float64 numbers whatever the tool computes in."""
        form = self.form
        x = np.where(np.isnan(X), self.absent, X)
        number: Any = np.float32 if form.float32_sums else np.float64
        with np.errstate(over="ignore"):
            total = np.full(len(x), number(form.start))
            if isinstance(form.body, Linear):
                x = x.astype(np.float32 if self.float32 else np.float64)
                if form.normalizers is not None:
                    first, second = (a.astype(x.dtype) for a in (form.normalizers.first, form.normalizers.second))
                    x = x * first + second if form.normalizers.affine else (x - first) / second
                weights = form.body.weights.astype(number)
                for k in np.flatnonzero(form.body.weights):
                    total += weights[k] * x[:, k].astype(number)
            else:
                trees = as_plain(form).body.trees
                rounded = replace(trees, values=trees.values.astype(number).astype(np.float64))
                total = rounded.predict(x, 1, total)
            return np.asarray(total + number(form.intercept), dtype=np.float64)


class Reader:
    """A file that is being read: its name, and errors that say where."""

    def __init__(self, name: str) -> None:
        self.name = name

    def fail(self, place: str, what: str) -> ModelFileError:
        """The error `file, place: what`."""
        return ModelFileError(f"{self.name}, {place}: {what}" if place else f"{self.name}: {what}")

    def number(self, value: Any, place: str) -> float:
        """A finite number, from a number or the text of one."""
        try:
            if isinstance(value, bool) or not isinstance(value, str | int | float | np.floating | np.integer):
                raise ValueError
            x = float(value)
        except (ValueError, OverflowError):
            raise self.fail(place, f"expected a number, got {_short(value)}") from None
        if not math.isfinite(x):
            raise self.fail(place, f"expected a finite number, got {_short(value)}")
        return x

    def integer(self, value: Any, place: str, low: int = 0, high: int = MOST_FEATURES) -> int:
        """A whole number from `low` to `high`, from a number or the text of one."""
        x = self.number(value, place)
        if x != int(x) or not low <= x <= high:
            raise self.fail(place, f"expected a whole number from {low} to {high}, got {_short(value)}")
        return int(x)

    def part(self, value: Any, key: str, kind: type | tuple[type, ...], place: str) -> Any:
        """`value[key]` of an object, which must be of `kind`."""
        if not isinstance(value, dict):
            raise self.fail(place, f"expected an object, got {_short(value)}")
        if key not in value:
            raise self.fail(place, f"{key!r} is missing")
        if not isinstance(value[key], kind):
            names = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
            raise self.fail(f"{place}.{key}" if place else key, f"expected {names}, got {_short(value[key])}")
        return value[key]

    def json(self, text: str) -> Any:
        """The JSON value of a text; the same key twice in an object is an error."""
        try:
            return json.loads(text, object_pairs_hook=self._object)
        except json.JSONDecodeError as error:
            raise self.fail(f"line {error.lineno}, column {error.colno}", f"no valid JSON: {error.msg}") from error
        except RecursionError:
            raise self.fail("", "the JSON is nested too deeply") from None

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise self.fail("", f"an object has the key {twice!r} twice")
        return result

    def names(self, names: list[Any], place: str) -> tuple[str, ...]:
        """Feature names, which must be different strings."""
        if not all(isinstance(name, str) and name for name in names):
            raise self.fail(place, "feature names must be texts that are not empty")
        if len(set(names)) != len(names):
            raise self.fail(place, "two features have the same name")
        return tuple(names)


@dataclass(frozen=True)
class Leaf:
    """A leaf with its value."""

    value: float


@dataclass(frozen=True)
class Split:
    """A question `x ≤ threshold` with its two children, which are nodes of the tool's kind."""

    feature: int
    threshold: float
    left: Any
    right: Any
    missing_right: bool = True
    zero_missing: bool = False


class TreeBuilder:
    """Collects trees node by node, without recursion, into `BinaryTrees`."""

    def __init__(self) -> None:
        self._roots: list[int] = []
        self._nodes: list[Split] = []
        self._children: list[list[int]] = []
        self._values: list[float] = []

    def add(self, root: Any, look: Callable[[Any], Leaf | Split]) -> None:
        """Add the tree below `root`; `look` says what a node is."""
        stack: list[tuple[Any, int, int]] = [(root, -1, 0)]
        while stack:
            node, parent, side = stack.pop()
            seen = look(node)
            if isinstance(seen, Leaf):
                own = ~len(self._values)
                self._values.append(seen.value)
            else:
                own = len(self._nodes)
                self._nodes.append(seen)
                self._children.append([0, 0])
                stack += [(seen.right, own, 1), (seen.left, own, 0)]
            if parent < 0:
                self._roots.append(own)
            else:
                self._children[parent][side] = own

    def trees(self) -> BinaryTrees:
        """All trees so far."""
        nodes = self._nodes
        children = np.array(self._children, dtype=np.int64).reshape(-1, 2)
        return BinaryTrees(
            np.array(self._roots, dtype=np.int64),
            np.array([node.feature for node in nodes], dtype=np.int64),
            np.array([node.threshold for node in nodes], dtype=np.float64),
            np.array([node.missing_right for node in nodes], dtype=bool),
            np.array([node.zero_missing for node in nodes], dtype=bool),
            children[:, 0].copy(),
            children[:, 1].copy(),
            np.array(self._values, dtype=np.float64),
        )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
