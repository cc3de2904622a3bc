"""Check what changed against main: lint, types, and the fast tests of the rooms that changed, within 90 seconds.

    make quick
    python scripts/quick.py --record tests/io …     # mark the slow tests of rooms again

The files that differ from main, with those that git does not know yet, choose the tests: those of the same room, and
the doctests of changed modules. Tests of changed files, and tests that name a changed module, run first. Tests that
have not started when the time is over are skipped. `make test` runs everything.

`--record` runs rooms whole, and writes `tests/slow.txt`: test functions of more than 5 CPU seconds, and the longest
others of a room until the rest of it takes at most 50. They have the mark `slow`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SLOW = ROOT / "tests" / "slow.txt"
SECONDS, RESERVE = 90, 10  # for everything, and of these for the tests that are running when the time is over
LONG, REST = 5.0, 50.0  # CPU seconds of a slow test function, and of the others of a room
FOLDERS = ("src", "tests", "benchmarks", "scripts", "examples", "validation", "reproductions")
ALWAYS = ("tests/test_architecture.py", "tests/test_public_names.py")


def changed_files() -> list[str]:
    """Return the files that differ from the common ancestor with main, and those that git does not know yet."""

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    known = git("for-each-ref", "--format=%(refname:short)", "refs/heads/main", "refs/remotes/origin/main")
    base = git("merge-base", "HEAD", known[0])[0] if known else "HEAD"
    found = {*git("diff", "--name-only", base), *git("ls-files", "--others", "--exclude-standard")}
    return sorted(path for path in found if (ROOT / path).exists())


def tests_of(changed: list[str]) -> list[str]:
    """Return the test files of the rooms that changed, the nearest to a change first, and changed modules for doctests.

    >>> tests_of(["src/truerank/core/names.py", "README.md"])[0]
    'src/truerank/core/names.py'
    """
    doctests = [path for path in changed if path.startswith("src/") and path.endswith(".py")]
    rooms = {Path(path).parts[2] for path in doctests if len(Path(path).parts) > 3}
    rooms |= {Path(path).parts[1] for path in changed if path.startswith("tests/") and len(Path(path).parts) > 2}
    rooms |= {"docs"} if any(path.endswith(".md") for path in changed) else set()
    rooms |= {
        name for name in ("examples", "reproductions", "validation") if any(p.startswith(f"{name}/") for p in changed)
    }
    files = [path for room in sorted(rooms) for path in (ROOT / "tests" / room).rglob("test_*.py")]
    modules = [".".join(Path(path).with_suffix("").parts[1:]) for path in doctests]

    def distance(path: Path) -> tuple[int, str]:
        place = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        return (0 if place in changed else 1 if any(module in text for module in modules) else 2), place

    ordered = [path.relative_to(ROOT).as_posix() for path in sorted(files, key=distance)]
    return [*doctests, *(path for path in ALWAYS if path not in ordered), *ordered]


def quick() -> int:
    """Run the checks; returns 1 if one fails."""
    start = time.time()
    changed = changed_files()
    if not changed:
        print("nothing differs from main")
        return 0
    types = subprocess.Popen([sys.executable, "-m", "mypy"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    failed = []
    for words in (["format", "--check", "--quiet"], ["check", "--quiet"]):
        if subprocess.run([sys.executable, "-m", "ruff", *words, *FOLDERS], cwd=ROOT).returncode:
            failed.append(f"ruff {words[0]}")
    until = start + SECONDS - RESERVE
    pytest = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not slow", "-r", "fE", *tests_of(changed)]
    if subprocess.run(pytest, cwd=ROOT, env=os.environ | {"TRUERANK_TESTS_UNTIL": str(until)}).returncode:
        failed.append("tests")
    told, _ = types.communicate()
    if types.returncode:
        print(told)
        failed.append("mypy")
    rooms = ", ".join(sorted({path.split("/")[1] for path in tests_of(changed) if path.count("/") > 1}))
    skipped = "" if time.time() < until else "; the time is over: tests that had not started are skipped"
    print(f"{len(changed)} files changed; {rooms}; {time.time() - start:.0f} s{skipped}")
    print(f"failed: {', '.join(failed)}" if failed else "passed; `make test` runs everything")
    return int(bool(failed))


def record(rooms: list[str]) -> int:
    """Run rooms whole, and mark their slow tests."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seconds"
        path.touch()
        words = [sys.executable, "-m", "pytest", "-q", "-n", "2", *rooms]
        code = subprocess.run(words, cwd=ROOT, env=os.environ | {"TRUERANK_TEST_RECORD": str(path)}).returncode
        mark(path.read_text(encoding="utf-8").splitlines())
    return code


def mark(lines: list[str]) -> None:
    """Write the slow tests among lines of seconds and test functions; those of other rooms stay as they are."""
    seconds: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for line in lines:
        used, name = line.split(maxsplit=1)
        seconds["/".join(name.split("/")[:2])][name] += float(used)
    kept = SLOW.read_text(encoding="utf-8").splitlines() if SLOW.exists() else []
    kept = [line for line in kept if "/".join(line.split()[1].split("/")[:2]) not in seconds]
    print(f"\n{'room':30} CPU s  without slow tests")
    for room, functions in sorted(seconds.items()):
        rest = total = sum(functions.values())
        for name, used in sorted(functions.items(), key=lambda item: -item[1]):
            if used > LONG or rest > REST:
                kept.append(f"{used:.0f} {name}")
                rest -= used
        print(f"{room:30} {total:5.0f}  {rest:5.0f}")
    SLOW.write_text("\n".join(sorted(kept, key=lambda line: line.split()[1])) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", nargs="+", metavar="ROOM", help="folders of tests to run and to mark")
    given = parser.parse_args()
    sys.exit(record(given.record) if given.record else quick())
