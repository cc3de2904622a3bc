"""What holds for every test and doctest: a time limit, marks of slow tests, and records of their CPU seconds."""

from __future__ import annotations

import faulthandler
import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SECONDS = float(os.environ.get("TRUERANK_TEST_SECONDS", "600"))
UNTIL = float(os.environ.get("TRUERANK_TESTS_UNTIL", "inf"))  # seconds since 1970, after which tests are skipped
RECORD = os.environ.get("TRUERANK_TEST_RECORD")  # file for CPU seconds, by test function
SLOW = Path(__file__).parent / "tests" / "slow.txt"  # written by `scripts/quick.py --record`


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow = {line.split()[1] for line in SLOW.read_text(encoding="utf-8").splitlines()} if SLOW.exists() else set()
    for item in items:
        if item.nodeid.partition("[")[0] in slow:
            item.add_marker("slow")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.time() > UNTIL:
        pytest.skip("no time left")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    # A loop in compiled code hears no signal and no exception; the watching thread of faulthandler ends the process.
    faulthandler.dump_traceback_later(SECONDS, exit=True, file=sys.__stderr__)
    before = cpu_seconds()
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        if RECORD:
            with open(RECORD, "a", encoding="utf-8") as stream:
                stream.write(f"{cpu_seconds() - before:.3f} {item.nodeid.partition('[')[0]}\n")


def cpu_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
