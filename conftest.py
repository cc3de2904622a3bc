"""A time limit on every test and doctest: one that hangs ends its process with the stacks of all threads."""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Iterator

import pytest

SECONDS = float(os.environ.get("TRUERANK_TEST_SECONDS", "600"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    # A loop in compiled code hears no signal and no exception; the watching thread of faulthandler ends the process.
    faulthandler.dump_traceback_later(SECONDS, exit=True, file=sys.__stderr__)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
