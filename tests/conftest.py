"""What the tests share: the folder of the real collections, settings of hypothesis, and the reaction to Ctrl-C."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "truerank", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=False
)
settings.load_profile("truerank")
# Programs in Java run for a second: compiling them twice, and threads that collect garbage, take four times as much.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts jobs in the background so, and tests send it
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--platform", choices=("this", "windows"), default="this", help="run the tests on a double of it")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--platform") == "windows":
        from support.windows import install

        config.add_cleanup(install().undo)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--platform") == "this" and os.name != "nt":
        return
    from support.posix import needs_posix

    for item in items:
        function, settings = getattr(item, "function", None), getattr(item, "callspec", None)
        if function is not None and (what := needs_posix(function, str(settings and settings.params), set())):
            item.add_marker(pytest.mark.skip(reason=f"{what}: not on Windows"))


@pytest.fixture(scope="session")
def collections() -> Path:
    """Folder of the real collections (`letor4-mq2008/` and so on); skips where TRUERANK_DATA names none."""
    folder = os.environ.get("TRUERANK_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real collections not found: set TRUERANK_DATA to the folder that holds letor4-mq2008/ and so on")
    return Path(folder)
