"""`import truerank` gives every public name when it is asked for, and nothing before."""

from __future__ import annotations

import inspect

import pytest

import truerank
from truerank.calibration import CALIBRATORS
from truerank.core.names import resolve
from truerank.models.registry import MODEL_PARTS, RANKERS


@pytest.mark.parametrize("target", [*RANKERS.values(), *CALIBRATORS.values(), *MODEL_PARTS])
def test_what_a_model_file_may_hold_is_public(target):
    name = target.partition(":")[2]
    assert name in truerank.__all__
    assert getattr(truerank, name) is resolve(target)


def test_names_are_listed_before_they_are_loaded():
    assert {"AdaRank", "evaluate", "read_letor"} <= set(dir(truerank))
    assert truerank.__all__ == sorted(truerank.__all__)


def test_an_unknown_name_says_so():
    with pytest.raises(AttributeError, match="truerank.* NoRanker"):
        _ = truerank.NoRanker


@pytest.mark.parametrize("room", ["measures", "significance", "cluster"])
def test_a_star_brings_what_a_room_exports_and_none_of_its_modules(room):
    brought: dict[str, object] = {}
    exec(f"from truerank.{room} import *", brought)
    assert not [name for name, value in brought.items() if inspect.ismodule(value)]
    assert len(brought) > 5
