"""Interrupts, kills and full disks at random moments of every command; the test suite runs a few of them.

    PYTHONPATH=src:tests python tests/support/fault_trials.py --interrupts 500 --kills 500 --full-disks 100 --minutes 60

A trial starts a command in a process of its own (forked, so that modules are loaded), lets something happen to it at a
random moment and looks at what is left. An interrupt must end it within a second with code 130 (or find it done, code
0). After anything, each output is the old file or the new one, whole, nothing else lies beside it (after a kill: once
the command was run again), and pieces of results that are stored are those of a run that nothing disturbed.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from truerank.cli import _main
from truerank.cli.guard import as_program
from truerank.core import files
from truerank.papers.protocol import ResultStore
from truerank.rankers.adarank import AdaRank

OLD = b"what stood here before\n"
SOON = 1.0
"""Seconds in which an interrupted command must have ended."""


@dataclass
class Command:
    """A command line and the files that it writes, in the folder in which it runs."""

    name: str
    words: list[str]
    outputs: list[str]
    stored: str = ""  # a file of finished pieces, one a line
    whole: dict[str, bytes] = field(default_factory=dict)
    seconds: float = 0.0


def commands() -> list[Command]:
    """Every command that writes something, and one that only prints."""
    train = ["train", "d.txt", "--model", "out.json", "--ranker"]
    return [
        Command("train adarank", [*train, "adarank", "--set", 'measure="nDCG@10"', "n_estimators=300",
                                  "patience=300"], ["out.json"]),
        Command("train trees", [*train, "oblivious-boosting", "--set", "n_estimators=60", "depth=4"], ["out.json"]),
        Command("train descent", [*train, "pairwise-descent", "--set", "max_iter=2000000"], ["out.json"]),
        Command("train list-net", [*train, "list-net"], ["out.json"]),
        Command("train rank-boost", [*train, "rank-boost", "--set", "n_estimators=200"], ["out.json"]),
        Command("train rank-svm", [*train, "rank-svm", "--set", "C=10"], ["out.json"]),
        Command("predict", ["predict", "model.json", "big.txt", "-o", "out.scores"], ["out.scores"]),
        Command("rank", ["rank", "model.json", "big.txt", "-o", "out.run"], ["out.run"]),
        Command("convert", ["convert", "big.txt", "out.txt.gz"], ["out.txt.gz"]),
        Command("convert lightgbm", ["convert", "big.txt", "out.txt", "--to", "lightgbm"],
                ["out.txt", "out.txt.query"]),
        Command("features", ["features", "--runs", "a.run", "b.run", "-o", "out.txt"], ["out.txt"]),
        Command("calibrate", ["calibrate", "model.json", "d.txt", "--method", "platt", "-o", "out.json"],
                ["out.json"]),
        Command("decide", ["decide", "calibrated.json", "big.txt", "-o", "out.txt"], ["out.txt"]),
        Command("cross-validate", ["cross-validate", "d.txt", "--ranker", "adarank"], []),
        Command("pieces", ["pieces"], [], stored="results"),
    ]  # fmt: skip


def prepare(folder: Path) -> None:
    """Inputs of the commands."""
    rng = np.random.default_rng(0)

    def letor(name: str, n_queries: int, size: int) -> None:
        with open(folder / name, "w") as file:
            for query in range(n_queries):
                X = rng.uniform(size=(size, 10)).round(3)
                y = (X[:, 0] + X[:, 1] + rng.normal(size=size) * 0.3 > 1.1).astype(int)
                for i in range(size):
                    values = " ".join(f"{k}:{v}" for k, v in enumerate(X[i], 1))
                    file.write(f"{y[i]} qid:{query} {values} # docid = d{query}_{i}\n")

    letor("d.txt", 150, 12)
    letor("big.txt", 500, 12)
    for name in ("a.run", "b.run"):
        with open(folder / name, "w") as file:
            for query in range(100):
                for rank, document in enumerate(rng.permutation(60)[:40].tolist(), 1):
                    file.write(f"{query} Q0 x{document} {rank} {100 - rank} {name[0]}\n")
    for words in (
        ["train", "d.txt", "--ranker", "ridge", "--model", "model.json"],
        ["calibrate", "model.json", "d.txt", "--method", "platt", "-o", "calibrated.json"],
    ):
        _, code = run(folder, words, lambda pid: None)
        assert code == 0, words


def main_of(words: list[str]) -> int:
    """The command line, or a made-up experiment of 40 pieces that are stored as `reproduce` stores them."""
    if words != ["pieces"]:
        return _main(list(words))
    store = ResultStore("results/pieces.jsonl", {"seed": 0})
    X = np.random.default_rng(0).uniform(size=(300, 5))
    for number in range(40):
        y = (X[:, number % 5] > 0.5).astype(float)
        store.compute({"piece": number}, lambda y=y: AdaRank(n_estimators=20).fit(X, y).coef_.tolist())
    return 0


def run(
    folder: Path, words: list[str], meanwhile: Callable[[int], None], limit: int | None = None
) -> tuple[float, int]:
    """Run a command in a forked process; seconds from the end of `meanwhile(pid)`, and its exit code."""
    # An interrupt waits until the command has started: before that it would hit the fork itself.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            os.chdir(folder)
            with open(folder / "messages", "ab") as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
            if limit is not None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            sys.stdout = os.fdopen(1, "w", closefd=False)
            sys.stderr = os.fdopen(2, "w", closefd=False)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            code = as_program(
                lambda: main_of(words) if signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT}) else 99
            )
        finally:
            os._exit(code)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        meanwhile(pid)
        start = time.monotonic()
    finally:
        _, status = os.waitpid(pid, 0)
    return time.monotonic() - start, os.waitstatus_to_exitcode(status)


def warm_up(folder: Path, chosen: list[Command], verbose: bool = False) -> None:
    """Run every command undisturbed: its time, its outputs, its stored pieces. Kernels are loaded in this process."""
    for command in chosen:
        os.chdir(folder)
        with open(os.devnull, "w") as nothing, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            before = sys.stdout, sys.stderr
            sys.stdout = sys.stderr = nothing
            try:
                assert main_of(command.words) == 0, command.name
            finally:
                sys.stdout, sys.stderr = before
        clean(folder, command)
        start = time.monotonic()
        _, code = run(folder, command.words, lambda pid: None)
        command.seconds = time.monotonic() - start
        assert code == 0, (command.name, (folder / "messages").read_text()[-500:])
        if verbose:
            print(f"{command.name}: {command.seconds:.2f} s", flush=True)
        command.whole = {name: (folder / name).read_bytes() for name in command.outputs}
        command.whole |= {f"{p.name}": p.read_bytes() for p in _stored(folder, command)}


def _stored(folder: Path, command: Command) -> list[Path]:
    place = folder / command.stored
    return sorted(p for p in place.rglob("*.jsonl")) if command.stored and place.is_dir() else []


def clean(folder: Path, command: Command) -> None:
    """Old outputs in place, no stored pieces, no messages."""
    (folder / "messages").write_bytes(b"")
    files._swept.clear()  # as in a new process
    for name in command.outputs:
        (folder / name).write_bytes(OLD)
    if command.stored:
        shutil.rmtree(folder / command.stored, ignore_errors=True)


def left(folder: Path) -> list[str]:
    """Temporary files."""
    return [str(p) for p in folder.rglob("*.truerank-tmp")]


def faults(folder: Path, command: Command, code: int, kind: str) -> list[str]:
    """What is wrong after a trial."""
    wrong = []
    states = set()
    for name in command.outputs:
        content = (folder / name).read_bytes()
        if content not in (OLD, command.whole[name]):
            wrong.append(f"{name} is neither the old file nor the new one")
        states.add(content == OLD)
    if len(states) > 1:
        wrong.append("one of the outputs is old and one is new")
    if code == 0 and True in states:
        wrong.append("exit code 0, and the old output")
    if code not in (0, -9) and False in states and kind == "full disk":
        wrong.append(f"exit code {code}, and the new output")
    for path in _stored(folder, command):
        whole = set(command.whole.get(path.name, b"").split(b"\n"))
        lines = path.read_bytes().split(b"\n")
        if kind != "kill" and lines[-1]:
            wrong.append("half a piece is stored")
        wrong += [f"a piece that no whole run has: {line[:80]!r}" for line in lines[:-1] if line not in whole]
    if kind != "kill":
        wrong += [f"left: {name}" for name in left(folder)]
    messages = (folder / "messages").read_text(errors="replace")
    if "Traceback" in messages or "inside truerank" in messages:
        wrong.append(f"not one line: {messages[-300:]}")
    return wrong


def trial(folder: Path, command: Command, kind: str, rng: random.Random) -> tuple[int, float, list[str]]:
    """One interrupt, kill or full disk: exit code, seconds until the end, what is wrong."""
    clean(folder, command)
    if kind == "full disk":
        largest = max(map(len, command.whole.values()), default=0)
        took, code = run(folder, command.words, lambda pid: None, limit=rng.randrange(1, max(2, largest)))
        wrong = faults(folder, command, code, kind)
        return code, took, wrong + ([] if code == 1 else [f"exit code {code}"])
    delay = rng.uniform(0.0, command.seconds * 1.05)
    number = signal.SIGINT if kind == "interrupt" else signal.SIGKILL

    def meanwhile(pid: int) -> None:
        time.sleep(delay)
        os.kill(pid, number)

    took, code = run(folder, command.words, meanwhile)
    wrong = faults(folder, command, code, kind)
    if kind == "interrupt":
        wrong += [] if code in (0, 130) else [f"exit code {code}"]
        wrong += [] if took <= SOON else [f"took {took:.2f} s to end"]
        return code, took, wrong
    wrong += [] if code in (0, -9) else [f"exit code {code}"]
    _, again = run(folder, command.words, lambda pid: None)
    for name in command.outputs:
        if (folder / name).read_bytes() != command.whole[name]:
            wrong.append(f"{name} differs after the next run")
    for path in _stored(folder, command):
        if sorted(path.read_bytes().split(b"\n")) != sorted(command.whole[path.name].split(b"\n")):
            wrong.append("the pieces differ after the next run")
    wrong += [f"left after the next run: {name}" for name in left(folder)]
    return code, took, wrong + ([] if again == 0 else [f"the next run ended with {again}"])


def trials(folder: Path, chosen: list[Command], kind: str, n: int, seed: int) -> Iterator[tuple[str, int, float, list]]:
    """(command, code, seconds, what was wrong) of n trials, one after the other, the commands in turn."""
    rng = random.Random(f"{kind} {seed}")
    for number in range(n):
        command = chosen[number % len(chosen)]
        code, took, found = trial(folder, command, kind, rng)
        yield command.name, code, took, [f"{kind} {number} of {command.name}: {one}" for one in found]


def summary(kind: str, done: list[tuple[str, int, float, list]]) -> str:
    """Counts of trials of one kind, as JSON."""
    seconds = [took for _, code, took, _ in done if code == 130] or [0.0]
    found = [line for *_, wrong in done for line in wrong]
    late = sum("s to end" in line for line in found)
    return json.dumps({
        "kind": kind, "trials": len(done), "exit_codes": dict(sorted(collections.Counter(d[1] for d in done).items())),
        "wrong": len(found) - late, f"later than {SOON:g} s": late,
        "seconds_to_end": {"median": round(float(np.median(seconds)), 3), "largest": round(max(seconds), 3)},
    })  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--interrupts", type=int, default=500)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--full-disks", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so many, the kinds having taken turns")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    end = time.monotonic() + 60.0 * args.minutes
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    prepare(folder)
    chosen = commands()
    warm_up(folder, chosen, verbose=True)
    numbers = {"interrupt": args.interrupts, "kill": args.kills, "full disk": args.full_disks}
    running = {
        kind: trials(folder, [c for c in chosen if kind != "full disk" or c.outputs], kind, n, args.seed)
        for kind, n in numbers.items()
    }
    done: dict[str, list] = {kind: [] for kind in numbers}
    while running and time.monotonic() < end:
        for kind in list(running):
            one = next(running[kind], None)
            if one is None:
                del running[kind]
                continue
            done[kind].append(one)
            for line in one[3]:
                print(f"  {line}", flush=True)
    for kind, results in done.items():
        print(summary(kind, results), flush=True)
    os.chdir("/")
    shutil.rmtree(folder)
    return 1 if any(wrong for results in done.values() for *_, wrong in results) else 0


if __name__ == "__main__":
    raise SystemExit(main())
