"""Commands that read tables, run to their end again and again under load: does every process end with its exit code?

    PYTHONPATH=src:tests python tests/support/exit_trials.py --repeats 200

Threads of Arrow's that let go of an object of Python's while the interpreter ends abort the process after all its work.
"""

from __future__ import annotations

import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from truerank import RidgeRanker, load_sample, save_model
from truerank.io.tables import write_table

KINDS = ("csv", "parquet", "feather")


def prepare(folder: Path) -> None:
    """A model, and the same rows as tables."""
    data = load_sample().take_queries(range(60))
    save_model(RidgeRanker().fit(data), folder / "model.json")
    for kind in KINDS:
        write_table(data, folder / f"rows.{kind}")


def trials(folder: Path, repeats: int, at_once: int) -> dict[str, collections.Counter]:
    """How often `truerank predict` ended with which code and last line, by kind of table."""
    found: dict[str, collections.Counter] = {kind: collections.Counter() for kind in KINDS}
    words = [sys.executable, "-m", "truerank", "predict", "model.json"]
    started = 0
    while started < repeats:
        batch = [KINDS[number % len(KINDS)] for number in range(started, min(started + at_once, repeats))]
        started += len(batch)
        processes = [
            subprocess.Popen(
                [*words, f"rows.{kind}"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
            for kind in batch
        ]
        for kind, process in zip(batch, processes):
            said = process.communicate(timeout=300)[1].strip().splitlines()
            found[kind][f"{process.returncode} {said[-1] if said else ''}".strip()] += 1
    return found


def main() -> int:
    """Print the counts; 1 where a process did not end with 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=4)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="exits-") as folder:
        prepare(Path(folder))
        found = trials(Path(folder), args.repeats, args.at_once)
    print(json.dumps(found, indent=1))
    return int(any(code != "0" for counts in found.values() for code in counts))


if __name__ == "__main__":
    raise SystemExit(main())
