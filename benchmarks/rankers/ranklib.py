"""RankLib beside us: its process's CPU seconds, less those of the same process with next to no work."""

from __future__ import annotations

import os
import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import run_process


class RankLib(NamedTuple):
    """CPU seconds: the whole process, the same with one round, their difference; and MAP on the test file."""

    process: float
    start: float
    work: float
    test_map: str


def ranklib(paths: dict[str, str], arguments: Sequence[str], one_round: Sequence[str], rounds: int) -> RankLib | None:
    """Train with RankLib; None, with a line that says so, where RANKLIB_JAR does not name its jar."""
    jar = os.environ.get("RANKLIB_JAR", "")
    if not Path(jar).is_file():
        print("(left out: RANKLIB_JAR does not name RankLib's jar)")
        return None
    base = ["java", "-XX:+UseSerialGC", "-cp", jar, "ciir.umass.edu.eval.Evaluator", "-metric2t", "MAP"]
    base += ["-train", paths["train"], "-validate", paths["vali"], "-test", paths["test"]]

    def java(extra: Sequence[str]) -> tuple[float, str]:
        process = run_process([*base, *extra])
        if process.code:
            raise RuntimeError(process.output)
        return process.cpu, process.output

    starts, totals, output = [], [], ""
    for _ in range(rounds):
        starts.append(java(one_round)[0])
        taken, output = java(arguments)
        totals.append(taken)
    start, total = statistics.median(starts), statistics.median(totals)
    return RankLib(total, start, total - start, re.findall(r"MAP on test data: ([0-9.]+)", output)[-1])
