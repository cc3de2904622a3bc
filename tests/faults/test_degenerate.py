"""Degenerate data for every ranker and calibrator: a share of the fits of `support/degenerate_data.py`."""

from __future__ import annotations

import pytest

from support.degenerate_data import GOOD, KINDS, rankers, trials
from truerank.calibration import CALIBRATORS

SHARE = 7  # each kind of data meets a seventh of the learners, each learner a seventh of the kinds


def share(name: str) -> list:
    all_of = [(kind, trial) for learner, kind, trial in trials() if learner == name]
    first = (list(rankers()) + list(CALIBRATORS)).index(name) % SHARE
    return all_of[min(first, len(all_of) - 1) :: SHARE]


@pytest.mark.parametrize("name", [*rankers(), *CALIBRATORS])
def test_fits_of_degenerate_data_rank_or_say_why_not(name):
    found = {kind: trial(0) for kind, trial in share(name)}
    assert found
    assert {kind: what for kind, what in found.items() if what not in GOOD} == {}


def test_every_kind_of_data_is_among_them():
    kinds = {kind for name in rankers() for kind, _ in share(name)}
    assert kinds == set(KINDS)
