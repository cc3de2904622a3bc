"""What all benchmarks share: work against work in CPU seconds, warm, in turn, and the ratio in one run.

    from benchmarks.harness import compare, peer

    compare("AP of 10,000 queries", {"truerank": ours, "ranx": theirs}, rounds=5)

prints a table of median CPU seconds and of each peer's ratio to the first entry. The machine is taken to be noisy:
only ratios within one run count, so the contestants take turns and the medians are over rounds.
"""

from __future__ import annotations

import gc
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple

SOURCE = Path(__file__).parent.parent / "src"


class Timing(NamedTuple):
    """CPU seconds of one contestant: median, fastest and slowest round; and what its function returned last."""

    median: float
    fastest: float
    slowest: float
    result: Any


def compare(
    title: str,
    contestants: Mapping[str, Callable[[], Any] | None],
    *,
    rounds: int = 5,
    warm: int = 1,
    unit: float = 1.0,
    unit_name: str = "s",
) -> dict[str, Timing]:
    """Time functions in turn and print a Markdown table; ratios are to the first, which is ours.

    Parameters
    ----------
    title : str
    contestants : dict of name to function without arguments
        Only what is to be measured: reading, conversion and compilation belong before. None is skipped (a peer that
        is not installed).
    rounds, warm : int
        Rounds that count, and rounds before them that do not.
    unit, unit_name
        Seconds are divided by `unit` in print: 1e-3 with "ms".
    """
    functions = {name: function for name, function in contestants.items() if function is not None}
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    results: dict[str, Any] = {}
    for turn in range(warm + rounds):
        for name, function in functions.items():
            gc.collect()
            start = time.process_time()
            results[name] = function()
            taken = time.process_time() - start
            if turn >= warm:
                seconds[name].append(taken)
    timings = {
        name: Timing(statistics.median(taken), min(taken), max(taken), results[name]) for name, taken in seconds.items()
    }
    report(title, timings, unit=unit, unit_name=unit_name, note=f"median of {rounds} rounds")
    return timings


def report(
    title: str,
    timings: Mapping[str, Timing],
    *,
    unit: float = 1.0,
    unit_name: str = "s",
    note: str = "",
    clock: str = "CPU",
) -> None:
    """Print timings as a Markdown table; ratios are to the first entry."""
    first = next(iter(timings.values())).median
    print(f"\n**{title}**{f' ({note})' if note else ''}\n")
    print(f"| | {clock} {unit_name} | fastest – slowest | ratio to the first |")
    print("| --- | --- | --- | --- |")
    for name, timing in timings.items():
        low, high = timing.fastest / unit, timing.slowest / unit
        ratio = timing.median / first if first > 0 else float("nan")
        print(f"| {name} | {timing.median / unit:.4g} | {low:.4g} – {high:.4g} | {ratio:.2f} |")
    sys.stdout.flush()


def peer(name: str) -> Any:
    """A peer library, or None with a line that says that it is missing."""
    try:
        return import_module(name)
    except ImportError:
        print(f"(not installed, left out: {name})")
        return None


class Process(NamedTuple):
    """A finished process: CPU seconds of it and its children, peak memory in MiB, exit code, what it printed."""

    cpu: float
    peak: float
    code: int
    output: str


def run_process(arguments: Sequence[str], **environment: str) -> Process:
    """Run a command and measure the whole of it. `environment` adds variables; `src/` is put on PYTHONPATH."""
    variables = {**os.environ, "PYTHONPATH": str(SOURCE), **environment}
    process = subprocess.Popen(
        list(arguments), env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    peak = usage.ru_maxrss / 1024
    return Process(usage.ru_utime + usage.ru_stime, peak, process.returncode, output)


def run_python(code: str, **environment: str) -> Process:
    """Run Python code in a process of its own: for start-up, first compilation and peak memory."""
    return run_process([sys.executable, "-c", code], **environment)


def peak_memory(statement: str, setup: str = "pass") -> tuple[float, float]:
    """MiB in use before `statement`, and the most in use during it, in a process of its own that ran `setup` first."""
    code = (
        "def _memory(key):\n"
        "    return next(int(line.split()[1]) / 1024 for line in open('/proc/self/status') if line.startswith(key))\n"
        f"{setup}\n"
        "import gc; gc.collect()\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"
        "_before = _memory('VmRSS')\n"
        f"{statement}\n"
        "print('MEMORY', _before, _memory('VmHWM'))\n"
    )
    process = run_python(code)
    lines = [line for line in process.output.splitlines() if line.startswith("MEMORY")]
    if not lines:
        raise RuntimeError(f"the measured process failed:\n{process.output}")
    before, peak = lines[-1].split()[1:]
    return float(before), float(peak)


def own_peak() -> float:
    """Largest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def collections() -> Path | None:
    """Folder of the real collections that TRUERANK_DATA names, or None with a line that says so."""
    folder = Path(os.environ.get("TRUERANK_DATA", ""))
    if os.environ.get("TRUERANK_DATA") and folder.is_dir():
        return folder
    print("(left out: TRUERANK_DATA does not name the folder of the real collections)")
    return None


def machine() -> str:
    """One line on the machine and the libraries, for the head of a report."""
    cpu = platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            cpu = next(line.split(":")[1].strip() for line in stream if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    versions = ", ".join(f"{name} {_version(name)}" for name in ("numpy", "scipy", "numba", "scikit-learn"))
    return (
        f"{cpu}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}; Python {platform.python_version()}, {versions}"
    )


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"
