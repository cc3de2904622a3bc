"""The peers' own tests, with truerank in the place of what they test; TRUERANK_PEERS is a folder of their checkouts.

The folder holds `ir_measures`, `pytrec_eval` and `ranx` as their repositories have them; trec_eval's tests come from
the shared data, scikit-learn's from its installed package. What is missing is named and left out.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUITES = {
    "pytrec_eval": ("pytrec_eval", "tests", ["tests/pytrec_eval_tests.py"]),
    "ir_measures": ("ir_measures", "tests", ["tests"]),
    "ranx": ("ranx", "tests/unit/ranx", ["tests/unit/ranx/metrics_test.py", "tests/unit/ranx/metrics"]),
}


def run() -> None:
    checkouts = Path(os.environ.get("TRUERANK_PEERS", "peers"))
    print("peer | pass with its own code | of these with truerank's | not passed\n--- | --- | --- | ---")
    passed, failed = _quicktest()
    print(_row("trec_eval", [*passed, *failed], passed))
    for peer, (folder, tests, wanted) in SUITES.items():
        if (checkouts / folder / tests).is_dir():
            print(_row(peer, *_both(peer, checkouts / folder / tests, tests, wanted)), flush=True)
        else:
            print(f"{peer} | no checkout in {checkouts}")
    import sklearn

    file = Path(sklearn.__file__).parent / "tests" / "test_calibration.py"
    print(_row("scikit-learn", *_both("scikit-learn", file, "test_calibration.py", ["test_calibration.py"])))


def _row(peer: str, own: list[str], ours: list[str]) -> str:
    missing = [name for name in own if name not in ours]
    return f"{peer} | {len(own)} | {len(own) - len(missing)} | {', '.join(missing)}"


def _both(peer: str, tests: Path, place: str, wanted: list[str]) -> tuple[list[str], list[str]]:
    return _passed("", tests, place, wanted), _passed(peer, tests, place, wanted)


def _passed(peer: str, tests: Path, place: str, wanted: list[str]) -> list[str]:
    """Tests that pass in a copy of them, run in a process of their own, with truerank in the place of a peer."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / place
        copy.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if tests.is_dir() else shutil.copy)(tests, copy)
        text = f"from benchmarks.measures.in_their_place import replace\nreplace({peer!r})\n" if peer else ""
        (Path(folder) / "conftest.py").write_text(text, encoding="utf-8")
        path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-m", "pytest", "-q", "-rp", "--tb=no", "-p", "no:cacheprovider", *wanted]
        environment = os.environ | {"PYTHONPATH": path}
        out = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout
    return [name.rpartition("/")[2] for name in re.findall(r"^PASSED (.+)", out, re.MULTILINE)]


def _quicktest() -> tuple[list[str], list[str]]:
    """The fifteen commands of trec_eval's `make quicktest` that print its bytes, and those that do not."""
    from tests.compat.test_trec_eval import QUICKTEST, TRUSTED

    from truerank.cli import main

    archive = Path(os.environ.get("TRUERANK_DATA", ROOT.parent / "shared" / "data")) / "trec_eval" / "test.tar.xz"
    passed, failed = [], []
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, **TRUSTED)
        where = Path(folder) / "test"
        for line in QUICKTEST:
            expected, _, words = line.partition(" | ")
            arguments = [str(where / word) if (where / word).is_file() else word for word in words.split()]
            written = io.TextIOWrapper(io.BytesIO(), write_through=True)
            with contextlib.redirect_stdout(written):
                main(["trec-eval", *arguments])
            same = written.buffer.getvalue() == (where / expected).read_bytes()
            (passed if same else failed).append(words)
    return passed, failed
