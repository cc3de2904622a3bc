"""Code shared by the readers of other tools' models: the result, checked values, and trees from nodes."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from truerank.core.errors import ModelFileError, TruerankError
from truerank.core.float32 import largest_rounding_to
from truerank.export.form import Linear, ModelForm, Plain, Stumps, as_plain
from truerank.trees.binary import BinaryTrees

MOST_FEATURES = 1 << 22
_MOST_NODES = 1 << 24
_MOST_SHOWN = 10  # choices that an error lists
_MOST_RANGES = 1 << 18  # of categories: a set of alternating numbers needs many thresholds and few bytes
_BEYOND = 2.0**128 - 2.0**103  # rounds to infinity as a float32

Categories = list[str] | list[float]


class Keys:
    """The keys of one kind of object in a model file that a reader reads, and those without effect on scores.

    The latter by the reason: `statistics` of the training data, settings of `training`, `names` (of stores, versions
    and notes), `places` (numbers and orders that the file repeats), and the `link` after raw scores. `only` has the
    values of keys whose other values would change scores.
    """

    def __init__(
        self, used: str | Iterable[str], *, only: Mapping[str, tuple[object, ...]] | None = None, **harmless: str
    ) -> None:
        self.only = only or {}
        own = used.split() if isinstance(used, str) else used
        self.known = frozenset([*own, *" ".join(harmless.values()).split(), *self.only])


@dataclass(frozen=True)
class ForeignModel:
    """A model with the arithmetic of the tool that trained it.

    Attributes
    ----------
    tool : str
        Name of the format.
    form : ModelForm
        The model. Its questions about float64 features have the same answers as those of the tool.
    float32 : bool
        Whether the tool holds features and normalised features as float32.
    absent : float
        The tool's value of an absent feature: 0 or nan.
    numbered : bool
        Whether the file identifies features only by position.
    unordered : bool
        Whether the file names the features without their order.
    missing : str
        The rule for missing values, in words, if it differs from the rule of `absent`.
    categories : dict of column number to list
        The categories that the file lists, by the tool's numbers. In the form, a column of texts has the tool's
        numbers, and a column of numbers has the categories themselves.
    """

    tool: str
    form: ModelForm
    float32: bool = False
    absent: float = math.nan
    notes: tuple[str, ...] = ()
    numbered: bool = False
    unordered: bool = False
    missing: str = ""
    categories: Mapping[int, Categories] = field(default_factory=dict)

    @property
    def missing_rule(self) -> str:
        """Rule for missing values, in words."""
        if not self.form.allow_nan:
            return "missing values are refused"
        return self.missing or ("missing values count as 0" if self.absent == 0.0 else "")

    def with_zero_for_missing(self) -> ForeignModel:
        """Return the model in which every question sends nan to the side of 0, also after normalisation."""
        form, body = self.form, self.form.body
        zero = np.zeros(form.n_features)
        if form.normalizers is not None:
            zero = form.normalizers(zero.astype(np.float32)).astype(np.float64)
        if isinstance(body, Plain):
            above = ~(zero[body.trees.features] <= body.trees.thresholds)
            body = Plain(replace(body.trees, missing_right=above))
        elif isinstance(body, Stumps):
            body = replace(body, missing=(zero[body.features] > body.thresholds).astype(np.int64))
        return replace(self, form=replace(form, body=body))

    def score(self, X: np.ndarray) -> np.ndarray:
        """Return the scores (n,) of float64 rows in the tool's arithmetic, as float64 numbers."""
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
    """Reads checked values of a file; errors name the file and the position."""

    def __init__(self, name: str) -> None:
        self.name = name

    def fail(self, place: str, what: str | TruerankError, **fields: Any) -> ModelFileError:
        """Return the error `file, place: what`."""
        return ModelFileError(what, self.name, place, **fields)

    def fail_if(self, wrong: object, place: str, what: str, **fields: Any) -> None:
        """Raise `fail(place, what)` if `wrong` is true."""
        if wrong:
            raise self.fail(place, what, **fields)

    def expect(self, right: object, place: str, expected: str, value: object) -> None:
        """Raise `expected …, got …` unless `right` is true."""
        if not right:
            raise self.fail(place, f"expected {expected}, got {_short(value)}")

    def number(self, value: object, place: str) -> float:
        """Convert a number or its text to a finite float."""
        try:
            if isinstance(value, bool) or not isinstance(value, str | int | float | np.floating | np.integer):
                raise ValueError
            if isinstance(value, str) and "_" in value:  # which only Python allows
                raise ValueError
            x = float(value)
        except (ValueError, OverflowError):
            x = math.nan
        self.expect(math.isfinite(x), place, "a finite number", value)
        return x

    def float32(self, value: object, place: str) -> np.float32:
        """Convert a number in the range of float32 to float32."""
        x = self.number(value, place)
        self.expect(abs(x) < _BEYOND, place, "a number that float32 holds, below 3.4e38", value)
        return np.float32(x)

    def integer(self, value: object, place: str, low: int = 0, high: int = MOST_FEATURES) -> int:
        """Convert a number or its text to an integer from `low` to `high`."""
        x = self.number(value, place)
        if x != int(x) or not low <= x <= high:
            raise self.fail(place, f"expected an integer from {low} to {high}, got {_short(value)}")
        return int(x)

    def known(self, value: Any, keys: Keys, place: str) -> Any:
        """Return an object after a check that all its keys are known.

        Any other key may change the scores, and is an error. A reader calls this for every object that it reads.
        """
        self.expect(isinstance(value, dict), place, "an object", value)
        if not value.keys() <= keys.known:
            unknown = next(key for key in value if key not in keys.known)
            raise self.fail(
                place,
                f"the key {_short(unknown)} is unknown, and could change the scores. Expected "
                f"{', '.join(sorted(keys.known))}. Save the model without this setting. If the key is your own note, "
                "remove it from the file.",
                code="unknown-key",
            )
        for key, allowed in keys.only.items():
            if key in value:
                self.choice(value[key], allowed, f"{place}.{key}" if place else key)
        return value

    def categories(self, lists: Mapping[int, Any], place: str) -> dict[int, Categories]:
        """Return lists of categories by column: texts, or numbers that float64 holds exactly."""
        result: dict[int, Categories] = {}
        for column, given in lists.items():
            at, values = f"{place}, column {column}", given if isinstance(given, list) else [None]
            if all(isinstance(value, str) for value in values):
                result[column] = list(values)
            elif all(isinstance(v, int | float) and abs(v) <= 2**53 for v in values):
                result[column] = [float(value) for value in values if value is not None]
            else:
                what = "expected categories that are all texts, or all numbers up to 2**53"
                raise self.fail(at, f"{what}, got {_short(given)}. Train again with such categories.")
            self.fail_if(len(set(result[column])) != len(values), at, f"a category occurs twice in {_short(given)}")
        return result

    def choice(self, value: Any, choices: Collection[Any], place: str) -> Any:
        """Return a value after a check that it is one of the choices."""
        if value not in choices:
            known = [repr(one) for one, _ in zip(choices, range(_MOST_SHOWN))] + ["…"] * (len(choices) > _MOST_SHOWN)
            self.expect(False, place, f"{', '.join(known[:-1])} or {known[-1]}".removeprefix(" or "), value)
        return value

    def count(self, values: Any, n: int, place: str, what: str = "values") -> Any:
        """Return a list after a check that it has n entries."""
        if not isinstance(values, list | tuple) or len(values) != n:
            found = len(values) if isinstance(values, list | tuple) else _short(values)
            raise self.fail(place, f"expected {n} {what}, got {found}")
        return values

    def part(self, value: Any, key: str, kind: type | tuple[type, ...], place: str) -> Any:
        """Return `value[key]` of an object after a check of its type."""
        self.expect(isinstance(value, dict), place, "an object", value)
        self.fail_if(key not in value, place, f"{key!r} is missing")
        if not isinstance(value[key], kind):
            names = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
            self.expect(False, f"{place}.{key}" if place else key, names, value[key])
        return value[key]

    def json(self, text: str) -> Any:
        """Parse JSON; an object with the same key twice is an error."""
        try:
            return json.loads(text, object_pairs_hook=self._object)
        except json.JSONDecodeError as error:
            raise self.fail(
                f"line {error.lineno}, column {error.colno}", f"no valid JSON: {error.msg}", code="not-json"
            ) from error
        except ValueError as error:  # a number with more digits than Python converts
            raise self.fail("", f"the file is not valid JSON: {error}") from None
        except RecursionError:
            raise self.fail("", "the JSON is nested too deeply") from None

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise self.fail("", f"an object has the key {twice!r} twice")
        return result

    def names(self, names: list[Any], place: str) -> tuple[str, ...]:
        """Return feature names after a check that they are different strings."""
        right = all(isinstance(name, str) and name for name in names)
        self.expect(right, place, "feature names that are texts and not empty", names)
        twice = [name for name, count in Counter(names).items() if count > 1]
        self.fail_if(twice, place, f"two features have the same name {twice[:1]}")
        return tuple(names)


@dataclass(frozen=True)
class Leaf:
    """A leaf with its value."""

    value: float


@dataclass(frozen=True)
class Split:
    """A question `x ≤ threshold` with its two children, which are nodes of the tool."""

    feature: int
    threshold: float
    left: Any
    right: Any
    missing_right: bool = True
    zero_missing: bool = False


@dataclass(frozen=True)
class Membership:
    """A question whether a value belongs to a set of categories, with its two children, nodes of the tool."""

    feature: int
    ends: tuple[float, ...]  # values above `ends[0]` and up to `ends[1]` are inside, up to `ends[2]` outside, and so on
    inside: Any
    outside: Any
    missing_inside: bool = False  # the side of nan

    @classmethod
    def of(
        cls, feature: int, numbers: set[int], listed: Categories | None, before: Callable[[int], float], *sides: Any
    ) -> Membership:
        """Return a question about integers, or about the numbers of `listed` at these positions.

        `before(c)` is the largest value that counts as less than the integer c. `sides` are the other fields.
        """
        if not listed or isinstance(listed[0], str):
            starts = [c for c in numbers if c - 1 not in numbers]
            stops = [c + 1 for c in numbers if c + 1 not in numbers]
            return cls(feature, tuple(before(c) for c in sorted(starts + stops)), *sides)
        own = {float(listed[k]) for k in numbers if k < len(listed)}
        step = 1.0 if all(float(value).is_integer() for value in listed) else math.nan  # neighbours become one range
        begins = [float(np.nextafter(v, -math.inf)) for v in own if v - step not in own]
        return cls(feature, tuple(sorted(begins + [v for v in own if v + step not in own])), *sides)


_Known = dict[int, tuple[float, float, bool]]  # of a feature: above, up to, and whether nan comes here


class TreeBuilder:
    """Collects trees node by node, without recursion, into `BinaryTrees`.

    A question about membership in a set becomes thresholds. The subtree below it is repeated for each range of values,
    without the questions that the range already answers.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._roots: list[int] = []
        self._nodes: list[Split] = []
        self._children: list[list[int]] = []
        self._values: list[float] = []
        self._ranges = 0

    def add(self, root: Any, look: Callable[[Any], Leaf | Split | Membership]) -> None:
        """Add the tree below `root`; `look` is called once for each node and describes it."""
        children: dict[int, tuple[Any, Any]] = {}  # by the identity of the parent

        def opened(seen: Any, known: _Known) -> Leaf | Split:
            """Return a leaf, or a question whose children are questions or pairs of a node and known ranges."""
            while not isinstance(seen, Leaf):
                if id(seen) not in children:
                    pair = (seen.left, seen.right) if isinstance(seen, Split) else (seen.outside, seen.inside)
                    children[id(seen)] = (look(pair[0]), look(pair[1]))
                if isinstance(seen, Split):
                    left, right = children[id(seen)]
                    return replace(seen, left=(left, known), right=(right, known))
                self._ranges += len(seen.ends)
                if self._ranges > _MOST_RANGES:
                    raise self._reader.fail(
                        "",
                        f"the questions about categories require more than {_MOST_RANGES} ranges of numbers. Give "
                        "consecutive numbers to the categories of one side, and train again.",
                        code="too-many-ranges",
                    )
                found = _thresholds(seen, *children[id(seen)], known)
                if isinstance(found, Split):
                    return found
                seen, known = found
            return seen

        start = look(root)
        stack: list[tuple[Any, int, int]] = [((start, {}), -1, 0)]
        while stack:
            item, parent, side = stack.pop()
            seen = item if isinstance(item, Split) else opened(*item)
            if len(self._nodes) > _MOST_NODES:
                raise self._reader.fail("", f"the trees have more than {_MOST_NODES} thresholds")
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
        """Return all added trees."""
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


def _thresholds(asked: Membership, outside: Any, inside: Any, known: _Known) -> Any:
    """Convert a membership to questions that end in pairs of a child and its known ranges, or to one such pair."""
    low, high, missing = known.get(asked.feature, (-math.inf, math.inf, True))
    bounds = (-math.inf, *asked.ends, math.inf)
    ranges = [(k % 2 == 1, max(a, low), min(z, high)) for k, (a, z) in enumerate(zip(bounds[:-1], bounds[1:]))]
    ranges = [own for own in ranges if own[1] < own[2]]
    # nan follows the last range on its side.
    home = max((k for k, own in enumerate(ranges) if missing and own[0] == asked.missing_inside), default=-1)
    items = [
        (inside if is_in else outside, known | {asked.feature: (a, z, k == home)})
        for k, (is_in, a, z) in enumerate(ranges)
    ]

    def between(i: int, j: int) -> Any:
        if i == j:
            return items[i]
        m = (i + j) // 2
        return Split(asked.feature, ranges[m][2], between(i, m), between(m + 1, j), missing_right=home > m)

    if missing and home < 0:
        item = (inside if asked.missing_inside else outside, known | {asked.feature: (math.inf, math.inf, True)})
        return Split(asked.feature, math.inf, between(0, len(items) - 1), item) if items else item
    return between(0, len(items) - 1)


def at_most(value: np.float32) -> float:
    """Return the largest float64 number that float32 rounds to at most `value`."""
    return float(largest_rounding_to(np.asarray(value)))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
