"""Schemas of the content of model files. A field's text defines its check, its documentation and its test.

A class lists its own fields in `model_attributes`, {"name_ other_": text}; the fields of base classes are added. A text
is

    int, float, bool, str, any        a value; floats are finite
    'a' | 'b'                         one of these texts
    float64[p, 2], int[], str[p]      an array of this dtype (or prefix of it) and shape (`...` any); finite numbers
    Ranker                            an object of this class
    list[n] of …, list[] of …         a list of n values, of any length
    dict of …                         a dict with texts as keys

followed by `in [0, p)` (an interval of all numbers), `unbounded` (nan and infinite numbers too), `rising`, `?` if the
field may be missing, and `??` if it may be null too. A size is a number, `p` (n_features_in_), an integer field of the
object, or a letter, which the first field that has it defines; `k+1` is one more. "history_.alpha" is an entry of a
dict.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.core.errors import ModelFileError

_TEXT = re.compile(
    r"(?P<kind>\w+)(?:\[(?P<shape>.*?)\])?"
    r"(?: in (?P<left>[\[(])(?P<low>.*?), (?P<high>.*?)(?P<right>[\])]))?(?P<free> unbounded)?(?P<rising> rising)?"
)
COLUMNS = {"n_features_in_": "int in [1, inf]", "feature_names_in_": "str[p]??"}
_LARGEST = float(np.finfo(np.float64).max)
_KINDS: dict[str, type] = {"int": numbers.Integral, "float": numbers.Real, "bool": bool, "str": str, "any": object}


def fields_of(cls: type) -> dict[str, str]:
    """Return the fields of a class in a model file and their texts, with the fields of base classes first."""
    fields: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        own = vars(base).get("model_attributes", {})
        fields |= spelled(own) if isinstance(own, dict) else {name: fields.get(name, "any??") for name in own}
    return fields


def spelled(fields: Mapping[str, str]) -> dict[str, str]:
    """Return fields with one name in each key; a key may have several names, "C_ gap_", which share a text."""
    return {name: text for names, text in fields.items() for name in names.split()}


def check_model(model: Any, fields: Mapping[str, str] | None = None) -> None:
    """Raise `ModelFileError` if the fields of an object do not fit their texts or, by its `check_model`, each other."""
    check_fields(model, fields_of(type(model)) if fields is None else fields)
    if hasattr(model, "check_model"):
        model.check_model()


def check_fields(owner: Any, fields: Mapping[str, str], **sizes: int) -> dict[str, int]:
    """Raise `ModelFileError` with the name of a field that does not fit its text; return the sizes of the fields."""
    if isinstance(p := getattr(owner, "n_features_in_", None), int):
        sizes.setdefault("p", p)
    for name, text in spelled(fields).items():
        value: Any = owner
        for part in name.split("."):  # of "history_.alpha" the entry of the dict
            value = value.get(part, ...) if isinstance(value, dict) else getattr(value, part, ...)
        if (value is ... and text.endswith("?")) or (value is None and text.endswith("??")):
            continue
        reason = _misfit(owner, None if value is ... else value, text.rstrip("?"), sizes)
        if reason is not None:
            known = ", ".join(f"{size} = {n}" for size, n in sizes.items() if re.search(rf"\b{size}\b", text))
            also = " and finite" * (reason[0] == "range" and " in " not in text) + f" with {known}" * bool(known)
            raise ModelFileError(
                f"{type(owner).__name__}: {name} must be {text.rstrip('?')}{also}, got {reason[1]}", argument=name,
                code=reason[0],
            )  # fmt: skip
    return sizes


def _misfit(owner: Any, value: Any, text: str, sizes: dict[str, int]) -> tuple[str, str] | None:
    """Return a code and a description of the value, or None if the value fits."""
    many = re.fullmatch(r"(list\[(.*?)\]|dict) of (.*)", text)
    if many is not None:
        parts = list(value.values()) if isinstance(value, dict) else value
        if not isinstance(value, dict if many[1] == "dict" else list | tuple):
            return "type", f"{value!r:.60}"
        if many[2] and len(parts) != _size(owner, many[2], len(parts), sizes):
            return "shape", f"{len(parts)} of them"
        return next((found for one in parts if (found := _misfit(owner, one, many[3], sizes))), None)
    if " | " in text:
        reasons = [_misfit(owner, value, one, sizes) for one in text.split(" | ")]
        return None if None in reasons else reasons[0]
    if text.startswith("'"):
        return None if isinstance(value, str) and value == text.strip("'") else ("choice", f"{value!r:.60}")
    form = _TEXT.fullmatch(text)
    if form is None:
        raise ValueError(f"{text!r} is not a text of a field")
    if form["shape"] is None:
        kind, plain = form["kind"], form["kind"] in ("int", "float")
        known = _KINDS.get(kind)
        names = {base.__name__ for base in type(value).__mro__}
        fits = isinstance(value, known) if known is not None else kind in names
        if not fits or (plain and isinstance(value, bool)):
            return "type", f"{value!r:.60}"
        array = np.array([min(max(value, -math.inf), math.inf)] if plain else [], dtype=np.float64)
    else:
        is_text = form["kind"] == "str" and isinstance(value, np.ndarray) and value.dtype.kind == "O"
        dtype = "object" if is_text else form["kind"]
        if not isinstance(value, np.ndarray) or not value.dtype.name.startswith("" if dtype == "array" else dtype):
            return "dtype", str(value.dtype) if isinstance(value, np.ndarray) else f"{value!r:.60}"
        shape = [one.strip() for one in form["shape"].split(",")]
        if (shape != ["..."] and len(shape) != value.ndim) or any(
            one.strip(".") and _size(owner, one, own, sizes) != own for one, own in zip(shape, value.shape)
        ):
            return "shape", f"the shape {value.shape}"
        array = value
    if array.dtype.kind in "iuf" and not form["free"]:
        numbers_ = array.astype(np.float64) if array.dtype.kind == "f" else array  # bounds are not float32
        low = -_LARGEST if form["low"] is None else _bound(owner, form["low"], sizes)
        high = _bound(owner, form["high"], sizes)
        above = numbers_ > low if form["left"] == "(" else numbers_ >= low
        outside = numbers_[~(above & (numbers_ < high if form["right"] == ")" else numbers_ <= high))]
        if len(outside):
            return "range", str(outside[0])
    if form["rising"] and (array[1:] <= array[:-1]).any():
        return "order", "another order"
    return None


def _size(owner: Any, text: str, found: int, sizes: dict[str, int]) -> int:
    """Return the size that a text states; a letter that occurs first is set to the size of the array."""
    name, sign, more = re.fullmatch(r"(\w+)([+-]?)(\d*)", text).groups()  # type: ignore[union-attr]
    if name.isdigit():
        return int(name)
    offset = int(f"{sign}{more}") if more and sign else 0
    own = getattr(owner, name, None)
    return (int(own) if isinstance(own, numbers.Integral) else sizes.setdefault(name, found - offset)) + offset


def _bound(owner: Any, text: str | None, sizes: dict[str, int]) -> float:
    if text is None:
        return _LARGEST
    try:
        return float(text)
    except ValueError:
        return _size(owner, text, 0, sizes)
