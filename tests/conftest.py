"""What the tests share: where the real collections lie, and settings of hypothesis."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "truerank", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=False
)
settings.load_profile("truerank")


@pytest.fixture(scope="session")
def collections() -> Path:
    """Folder of the real collections (`letor4-mq2008/` and so on); skips where TRUERANK_DATA names none."""
    folder = os.environ.get("TRUERANK_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real collections not found: set TRUERANK_DATA to the folder that holds letor4-mq2008/ and so on")
    return Path(folder)
