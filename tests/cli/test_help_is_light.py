"""The help of a command imports neither NumPy, SciPy nor scikit-learn, which take longer to import than to print it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from truerank.cli import COMMANDS

CODE = """
import sys
from truerank.cli import main
try:
    main([*sys.argv[1:], "--help"])
except SystemExit as stop:
    assert not stop.code
print(sorted({"numpy", "scipy", "sklearn"} & set(sys.modules)))
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_help_imports_no_numpy(command):
    words = [sys.executable, "-c", CODE, *command.split()]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("usage: ")
    assert done.stdout.splitlines()[-1] == "[]"
