"""A few interrupts, kills and full disks at random moments; `support/fault_trials.py` runs hundreds."""

from __future__ import annotations

import os

import pytest

from support.fault_trials import prepared, trials

FEW = ("train adarank", "predict", "convert lightgbm", "pieces")


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    folder = tmp_path_factory.mktemp("trials")
    return folder, prepared(folder, FEW)


@pytest.mark.parametrize(("kind", "n"), [("interrupt", 8), ("kill", 8), ("full disk", 6)])
def test_nothing_is_lost_and_nothing_half_is_whole(ready, kind, n, monkeypatch):
    monkeypatch.setattr("support.fault_trials.SOON", 30.0)  # seconds are measured in the long run, not here
    folder, chosen = ready
    done = list(trials(folder, [c for c in chosen if kind != "full disk" or c.outputs], kind, n, seed=1))
    assert [line for *_, wrong in done for line in wrong] == []
    assert len(done) == n
