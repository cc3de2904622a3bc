"""Installs the double of Windows in a Python that a test starts (`support/windows.py`)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

if os.environ.get("TRUERANK_TEST_PLATFORM") == "windows":
    folder = str(Path(__file__).parents[2])
    sys.path.insert(0, folder)
    from support.windows import install

    install()
    sys.path.remove(folder)
