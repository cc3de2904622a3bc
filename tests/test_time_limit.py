"""A test that hangs does not hang the suite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_a_test_that_hangs_is_ended_with_its_stack():
    path = "tests/support/hanging.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", path],
        cwd=ROOT, env={**os.environ, "TRUERANK_TEST_SECONDS": "0.5"}, capture_output=True, text=True, timeout=50,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Timeout (0:00:00.500000)!" in done.stderr
    assert "in test_hangs" in done.stderr
