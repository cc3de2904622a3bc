"""Every command under one fault of its surroundings; `support/fault_trials.py` runs all kinds, hundreds of times."""

from __future__ import annotations

import os
import random

import pytest

from support.fault_trials import commands, prepared, trial
from truerank.cli import COMMANDS

KINDS = ("closed", "pipe", "fifo")
# The quick ones: the others take seconds, or compile.
TRIED = ("predict", "evaluate", "describe", "index", "explain", "fuse", "links", "deploy", "rankers", "cross-validate",
         "import", "completion")  # fmt: skip


def test_every_command_is_among_the_trials():
    assert (
        set(COMMANDS) - {" ".join(command.words[: 2 if command.words[0] == "text" else 1]) for command in commands()}
        == set()
    )


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    folder = tmp_path_factory.mktemp("trials")
    return folder, {command.name: command for command in prepared(folder, TRIED)}


@pytest.mark.parametrize("name", TRIED)
def test_descriptors_that_are_closed_or_slow(ready, name):
    folder, chosen = ready
    rng = random.Random(name)
    for kind in KINDS if name == "predict" else [KINDS[TRIED.index(name) % len(KINDS)]]:
        _, _, wrong = trial(folder, chosen[name], kind, rng)
        assert wrong == []


def test_progress_where_standard_error_is_closed(monkeypatch):
    """A loop with a bar asked a stream that was not there, exit code 70."""
    from truerank.core.printing import progress

    monkeypatch.setattr("sys.stderr", None)
    assert list(progress([1, 2], "things")) == [1, 2]
