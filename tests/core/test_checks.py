"""Checks of the attributes of loaded models."""

from __future__ import annotations

import numpy as np
import pytest

from support.refusals import refused
from truerank.core.checks import require_array, require_value
from truerank.core.errors import ModelFileError


class Loaded:
    def __init__(self, **attributes):
        vars(self).update(attributes)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_arrays_of_models_hold_finite_numbers_in_either_precision(kind, value):
    with refused(ModelFileError, argument="weights", code="range"):
        require_array(Loaded(weights=np.array([1.0, value], dtype=kind)), "weights", "float", 2)


@pytest.mark.parametrize(
    ("kind", "value"), [(float, True), (int, True), (float, np.nan), (float, 10**400), (float, None), (dict, [])]
)
def test_values_of_models_have_the_type_that_they_need(kind, value):
    with refused(ModelFileError, argument="value", code="type"):
        require_value(Loaded(value=value), "value", kind)
    require_value(Loaded(value=3), "value", float)
