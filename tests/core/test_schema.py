"""The texts of `core/schema.py`: each states the type, the shape, the interval and the order of a field."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from support.refusals import refused
from truerank.core.errors import ModelFileError
from truerank.core.schema import check_fields, fields_of


class Loaded:
    def __init__(self, **attributes):
        vars(self).update(attributes)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_arrays_of_models_hold_finite_numbers_in_either_precision(kind, value):
    loaded = Loaded(weights=np.array([1.0, value], dtype=kind))
    with refused(ModelFileError, argument="weights", code="range"):
        check_fields(loaded, {"weights": "float[2]"})
    check_fields(loaded, {"weights": "float[2] unbounded"})


@pytest.mark.parametrize(
    ("text", "value", "code"),
    [
        ("float", True, "type"), ("int", True, "type"), ("int", 1.5, "type"), ("float", None, "type"),
        ("float", np.nan, "range"), ("float", np.inf, "range"), ("dict of any", [], "type"), ("str", 5, "type"),
        ("int in [1, inf]", 0, "range"), ("float in (0, 1]", 0.0, "range"), ("float in [0, 1)", 1.0, "range"),
        ("'a' | 'b'", "c", "choice"), ("list[2] of str", ["a"], "shape"), ("list[] of str", ["a", 1], "type"),
        ("list[] of str | float", [None], "type"), ("Loaded", 3, "type"),
        ("dict of list[] of int", {"a": [""]}, "type"),
        ("float64[2]", np.zeros(3), "shape"), ("float64[2]", np.zeros((2, 1)), "shape"),
        ("int[]", np.zeros(2), "dtype"), ("int[] in [0, 3)", np.array([3]), "range"),
        ("str[] rising", np.array(["b", "a"]), "order"), ("float[, 2]", np.zeros((2, 3)), "shape"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_its_name(text, value, code):
    with refused(ModelFileError, argument="value", code=code):
        check_fields(Loaded(value=value), {"value": text})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("float", 3), ("float unbounded", np.nan), ("float in [-inf, inf]", -np.inf), ("int", np.int64(4)),
        ("'a' | 'b'", "b"), ("list[] of str | float", ["a", 2.0]), ("dict of list[] of int", {"a": [1], "b": []}),
        ("Loaded", Loaded()), ("float[...]", np.zeros((2, 3, 4))), ("array[2]", np.array(["x", "y"])),
        ("str[2]", np.array(["x", "y"], dtype=object)), ("int[] in [0, 3)", np.array([2])), ("any", None),
    ],
)  # fmt: skip
def test_what_fits_is_accepted(text, value):
    check_fields(Loaded(value=value), {"value": text})


def test_sizes_agree_between_fields():
    fields = {"first": "float[k]", "second": "float[k+1]", "third": "int[k, p]", "state.last": "float[n_iter_]"}
    loaded = Loaded(
        first=np.zeros(3), second=np.zeros(4), third=np.zeros((3, 2), dtype=int), state={"last": np.zeros(5)},
        n_iter_=5, n_features_in_=2,
    )  # fmt: skip
    assert check_fields(loaded, fields) == {"p": 2, "k": 3}
    for name, other in (("second", np.zeros(3)), ("third", np.zeros((3, 3), dtype=int)), ("n_iter_", 4)):
        wrong = Loaded(**{**vars(loaded), name: other})
        with refused(ModelFileError, argument="state.last" if name == "n_iter_" else name, code="shape"):
            check_fields(wrong, fields)


def test_optional_fields_may_be_missing_and_others_not():
    check_fields(Loaded(), {"value": "float?"})
    check_fields(Loaded(value=None), {"value": "float??"})
    with refused(ModelFileError, argument="value", code="type"):
        check_fields(Loaded(value=None), {"value": "float?"})
    with refused(ModelFileError, argument="value", code="type"):
        check_fields(Loaded(), {"value": "float"})


def test_fields_of_base_classes_are_added():
    class First:
        model_attributes: ClassVar = {"a_": "float", "b_": "int"}

    class Second(First):
        model_attributes: ClassVar = {"a_": "float in [0, 1]", "c_": "str"}

    class Plain(Second):
        model_attributes = (*Second.model_attributes, "d_")

    assert fields_of(Second) == {"a_": "float in [0, 1]", "b_": "int", "c_": "str"}
    assert fields_of(Plain) == {**fields_of(Second), "d_": "any??"}
