"""Run scikit-learn's own tests of calibration against CalibratedClassifier; run this file as a program."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import sklearn


def main() -> int:
    """Copy the tests with the class replaced, and run them; returns pytest's code."""
    text = (Path(sklearn.__file__).parent / "tests" / "test_calibration.py").read_text(encoding="utf-8")
    text = text.replace("    CalibratedClassifierCV,\n", "    CalibratedClassifierCV as _Theirs,\n", 1)
    text = text.replace(
        "N_SAMPLES", "from truerank import CalibratedClassifier as CalibratedClassifierCV\nN_SAMPLES", 1
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "test_substituted.py"
        path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "sklearn.conftest", "-c", "/dev/null", "-W", "ignore",
                   "--rootdir", folder, str(path)]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(re.sub(r"^(?!FAILED|.*passed).*\n", "", done.stdout, flags=re.MULTILINE))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
