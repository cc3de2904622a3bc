"""Interrupts, kills and full disks at random moments of every command; the test suite runs a few of them.

    PYTHONPATH=src:tests python tests/support/fault_trials.py --interrupts 500 --kills 500 --full-disks 100 --minutes 60

A trial starts a command in a process of its own (forked, so that modules are loaded), lets something happen to it at a
random moment, or starts it a second time on the same outputs, and looks at what is left. An interrupt must end it
within a second with code 130 (or find it done, code 0). After anything, each output is the old file or the new one,
whole, nothing else lies beside it (after a kill: once the command was run again), and pieces of results that are stored
are those of a run that nothing disturbed.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from reproductions.protocol import ResultStore

from support.processes import truerank
from truerank.cli import COMMANDS
from truerank.cli import main as command_line
from truerank.cli.guard import as_program
from truerank.core import files
from truerank.core.errors import InvalidInputError
from truerank.rankers.adarank import AdaRank

OLD = b"what stood here before\n"
SOON = 1.0
"""Seconds in which an interrupted command must have ended."""


@dataclass
class Command:
    """A command line and what it writes, in the folder in which it runs."""

    name: str
    words: list[str]
    outputs: list[str]
    """Files, and folders (with a `/` at the end) that are replaced as one."""
    stored: str = ""  # a folder of files of finished pieces, one a line
    one_step: bool = True  # whether the outputs are replaced all at once
    code: int = 0  # of an undisturbed run
    whole: dict[str, Any] = field(default_factory=dict)
    printed: bytes = b""
    seconds: float = 0.0


def commands() -> list[Command]:
    """Every command of truerank, and pieces of results as experiments store them; the first word of a name is it."""
    text = ["--documents", "docs.jsonl", "--queries", "queries.jsonl", "--qrels", "docs.qrels"]
    engine = ["--engine", "http://127.0.0.1:9", "--name", "m", "--timeout", "1"]  # nobody answers there
    runs = ["--qrels", "qrels.txt", "--runs", "a.run", "b.run"]
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
        Command("rank", ["predict", "--format", "run", "model.json", "big.txt", "-o", "out.run"], ["out.run"]),
        Command("convert", ["convert", "big.txt", "out.txt.gz"], ["out.txt.gz"]),
        Command("convert lightgbm", ["convert", "big.txt", "out.txt", "--to", "lightgbm"],
                ["out.txt", "out.txt.query"]),
        Command("split", ["split", "big.txt", "-o", "divided", "--replace"], ["divided/train.txt", "divided/test.txt"]),
        Command("features", ["text", "features", "--runs", "a.run", "b.run", "-o", "out.txt"], ["out.txt"]),
        Command("trec-eval", ["trec-eval", "-q", "qrels.txt", "a.run", "b.run"], []),
        Command("power", ["power", "--qrels", "qrels.txt", "a.run", "b.run", "--effect", "0.05", "--json"], []),
        Command("depth", ["depth", "a.run", "b.run", "--qrels", "qrels.txt", "--json"], []),
        Command("reproduce", ["reproduce", "record.json"], [], code=1),  # the record has no figures
        Command("clicks", ["clicks", "interleave", "a.run", "b.run", "-o", "out.jsonl"], ["out.jsonl"]),
        Command("judge", ["judge", "plan", "a.run", "b.run", "--budget", "200", "-o", "out.csv", "--page", "out.html",
                           "--replace"], ["out.csv", "out.html"]),
        Command("calibrate", ["calibrate", "model.json", "new.txt", "--method", "platt", "-o", "out.json"],
                ["out.json"]),
        Command("decide", ["decide", "calibrated.json", "big.txt", "-o", "out.txt"], ["out.txt"]),
        Command("cutoff", ["cutoff", "fit", "calibrated.json", "held.txt", "--at-most", "0.9", "--confidence", "0.9",
                           "-o", "out.json"],
                ["out.json"]),
        Command("cross-validate", ["cross-validate", "d.txt", "--ranker", "adarank"], []),
        Command("pieces", ["pieces"], [], stored="results"),
        Command("evaluate", ["evaluate", "--qrels", "qrels.txt", "--run", "a.run", "--per-query", "--json"], []),
        Command("compare", ["compare", "--qrels", "qrels.txt", "a.run", "b.run", "--json"], []),
        Command("gate", ["gate", "a.run", "--baseline", "b.run", "--gold", "qrels.txt", "--inconclusive", "pass",
                         "--margin", "0.5", "--summary", "out.md"], ["out.md"]),
        Command("tune", ["tune", "d.txt", "--ranker", "ridge", "--space", "alpha=[0.1,1,10]", "--cv", "3",
                         "--state", "tuned/trials.jsonl", "--model", "out.json"], ["out.json"], stored="tuned"),
        Command("describe", ["describe", "big.txt", "--json"], []),
        Command("pipeline", ["text", "pipeline", *text, "--ranker", "ridge", "--out", "out", "--families", "functions",
                             "--cv", "3", "--replace"],
                ["out/index/", "out/model.json", "out/probabilities.csv", "out/summary.json", "out/summary.txt"],
                one_step=False),
        Command("index", ["text", "index", "docs.jsonl", "-o", "new-index"], ["new-index/"]),
        Command("search", ["text", "search", "index", "queries.jsonl", "-o", "out.run"], ["out.run"]),
        Command("explain", ["explain", "model.json", "new.txt", "--query", "3", "--json"], []),
        Command("fuse learn", ["fuse", *runs, "--model", "out.json"], ["out.json"]),
        Command("fuse", ["fuse", "--runs", "a.run", "b.run", "--method", "rrf", "-o", "out.run"], ["out.run"]),
        Command("links", ["text", "links", "edges.txt", "-o", "out.csv"], ["out.csv"]),
        Command("classify", ["text", "classify", "docs.jsonl", "--train", "docs.jsonl", "--classifier", "naive-bayes",
                             "--method", "platt", "--model", "out.json", "-o", "out.jsonl"],
                ["out.json", "out.jsonl"]),
        Command("export", ["export", "model.json", "--to", "onnx", "-o", "out.onnx"], ["out.onnx"]),
        Command("deploy", ["deploy", "model.json", *engine], [], code=1),
        Command("features", ["features", *engine[:2], "--index", "i", "-o", "out.json"], [], code=1),
        Command("verify", ["deploy", "--verify-only", "model.json", *engine, "--index", "i", "--queries",
                           "queries.jsonl", "--requests", "request.json"], [], code=1),
        Command("import", ["import", "model.xgb.json", "-o", "out.json"], ["out.json"]),
        Command("rankers", ["train", "--list", "--json"], []),
        Command("retrain", ["retrain", "model.json", "new.txt", "--margin", "1", "--model", "out.json",
                            "--history", "history.json"], ["out.json"]),
        Command("report", ["report", "--qrels", "qrels.txt", "--run", "a.run", "b.run", "-o", "out.html"],
                ["out.html"]),
        Command("sample", ["sample", "sampled", "--replace"],
                ["sampled/qrels.txt", "sampled/bm25.run", "sampled/train.txt.gz"]),
        Command("completion", ["completion", "bash"], []),
        Command("demo", ["sample", "--demo", "--json"], []),
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
    letor("new.txt", 150, 12)
    letor("held.txt", 150, 12)
    for name in ("a.run", "b.run"):
        with open(folder / name, "w") as file:
            for query in range(100):
                for rank, document in enumerate(rng.permutation(60)[:40].tolist(), 1):
                    file.write(f"{query} Q0 x{document} {rank} {100 - rank} {name[0]}\n")
    (folder / "runs").mkdir()
    for name in ("a.run", "b.run"):
        shutil.copy(folder / name, folder / "runs" / name)
    with open(folder / "qrels.txt", "w") as file:
        file.writelines(f"{query} 0 x{document} {document % 3}\n" for query in range(100) for document in range(60))
    (folder / "record.json").write_text(
        json.dumps({"schema": "reproduce/1", "command": ["evaluate", "--qrels", "qrels.txt", "a.run", "--json"],
                    "versions": {}, "files": {}, "figures": {}})
    )  # fmt: skip
    words_of = ("heat flow wing", "wheat crop tonne", "ship port cargo")
    with open(folder / "docs.jsonl", "w") as file:
        for number in range(120):
            text = " ".join(rng.choice((words_of[number % 3] + " of the same kind").split(), 12).tolist())
            file.write(json.dumps({"id": f"d{number}", "text": text, "label": "abc"[number % 3]}) + "\n")
    with open(folder / "queries.jsonl", "w") as file:
        file.writelines(json.dumps({"id": f"q{k}", "text": words_of[k % 3]}) + "\n" for k in range(12))
    with open(folder / "docs.qrels", "w") as file:
        file.writelines(f"q{k} 0 d{number} {int(number % 3 == k % 3)}\n" for k in range(12) for number in range(120))
    with open(folder / "edges.txt", "w") as file:
        file.writelines(f"d{a} d{b}\n" for a, b in rng.integers(0, 120, size=(600, 2)).tolist())
    (folder / "request.json").write_text('{"query": {"match": {"text": "{query}"}}}')
    for words in (
        ["text", "index", "docs.jsonl", "-o", "index"],
        ["train", "d.txt", "--ranker", "ridge", "--model", "model.json"],
        ["train", "d.txt", "--ranker", "rank-boost", "--set", "n_estimators=5", "--model", "trees.json"],
        ["export", "trees.json", "--to", "xgboost", "-o", "model.xgb.json"],
        ["calibrate", "model.json", "new.txt", "--method", "platt", "-o", "calibrated.json"],
        ["text", "index", "queries.jsonl", "-o", "old-index"],
    ):
        # Not here: the certificate may ask a library of others, whose threads do not outlive a fork of this process.
        assert truerank(*words, cwd=folder).returncode == 0, words


def main_of(words: list[str]) -> int:
    """The command line, or a made-up experiment of 40 pieces that are stored as experiments store them."""
    if words != ["pieces"]:
        assert words[0] in COMMANDS or " ".join(words[:2]) in COMMANDS
        return command_line(words)
    try:
        store = ResultStore("results/pieces.jsonl", {"seed": 0})
    except InvalidInputError as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    X = np.random.default_rng(0).uniform(size=(300, 5))
    for number in range(40):
        y = (X[:, number % 5] > 0.5).astype(float)
        store.compute({"piece": number}, lambda y=y: AdaRank(n_estimators=20).fit(X, y).coef_.tolist())
    return 0


def run(
    folder: Path,
    words: list[str],
    meanwhile: Callable[[int], None],
    limit: int | None = None,
    *,
    closed: Sequence[int] = (),
    output: int | None = None,
) -> tuple[float, int]:
    """Run a command in a forked process; seconds from the end of `meanwhile(pid)`, and its exit code.

    `closed` are descriptors that it does not get; `output` is one to be its standard output. After two minutes it is
    killed, which is code -9.
    """
    # An interrupt waits until the command has started: before that it would hit the fork itself.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            os.chdir(folder)
            with open(folder / "messages", "ab") as log:
                os.dup2(log.fileno() if output is None else output, 1)
                os.dup2(log.fileno(), 2)
            if limit is not None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            sys.stdin, sys.stdout, sys.stderr = (
                None if n in closed else os.fdopen(n, "w" if n else "r", closefd=False) for n in (0, 1, 2)
            )
            for number in closed:
                os.close(number)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            code = as_program(
                lambda: main_of(words) if signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT}) else 99
            )
        finally:
            os._exit(code)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    watch = threading.Timer(120.0, os.kill, (pid, signal.SIGKILL))
    watch.start()
    try:
        meanwhile(pid)
        start = time.monotonic()
    finally:
        _, status = os.waitpid(pid, 0)
        watch.cancel()
    return time.monotonic() - start, os.waitstatus_to_exitcode(status)


def run_into_pipe(folder: Path, words: list[str], size: int, most: int | None) -> tuple[int, bytes]:
    """Run a command whose standard output is read `size` bytes at a time, and closed after `most`: code, what came."""
    read_end, write_end = os.pipe()
    came = bytearray()

    def read(pid: int) -> None:
        os.close(write_end)
        while most is None or len(came) < most:
            part = os.read(read_end, size)
            if not part:
                break
            came.extend(part)
        os.close(read_end)

    _, code = run(folder, words, read, output=write_end)
    return code, bytes(came)


def run_from_fifo(folder: Path, words: list[str], name: str, rng: random.Random) -> int:
    """Run a command that gets one of its files through a FIFO, a few bytes at a time; its code."""
    fifo = folder / "fifo" / name
    fifo.parent.mkdir(exist_ok=True)
    fifo.unlink(missing_ok=True)
    os.mkfifo(fifo)
    whole = (folder / name).read_bytes()
    size = max(rng.choice((1, 3, 100)), len(whole) // 5_000)

    def feed(pid: int) -> None:
        place = 0
        descriptor = None
        while place < len(whole) and not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            try:
                if descriptor is None:
                    descriptor = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
                place += os.write(descriptor, whole[place : place + size])
            except BlockingIOError:
                time.sleep(0.001)
            except BrokenPipeError:
                break
            except OSError:  # nobody reads yet
                time.sleep(0.01)
        if descriptor is not None:
            os.close(descriptor)

    place = len(words) - 1 - words[::-1].index(name)
    return run(folder, [*words[:place], str(fifo.relative_to(folder)), *words[place + 1 :]], feed)[1]


def untimed(text: bytes) -> bytes:
    """A text without the seconds that something took."""
    return re.sub(rb'("[a-z_]*seconds[a-z_]*": ?)[0-9.e-]+', rb"\1_", text)


def warm_up(folder: Path, chosen: list[Command], verbose: bool) -> None:
    """Run every command undisturbed: its time, its outputs, its stored pieces. Kernels are loaded in this process."""
    for command in chosen:
        clean(folder, command)
        with chdir(folder), open(os.devnull, "w") as nothing, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with redirect_stdout(nothing), redirect_stderr(nothing):
                assert main_of(command.words) == command.code, command.name
        clean(folder, command)
        start = time.monotonic()
        code, command.printed = run_into_pipe(folder, command.words, 1 << 16, None)
        command.seconds = time.monotonic() - start
        assert code == command.code, (command.name, (folder / "messages").read_text()[-500:])
        if verbose:
            print(f"{command.name}: {command.seconds:.2f} s", flush=True)
        command.whole = {name: content(folder / name) for name in command.outputs}
        assert all(command.whole[name] not in (None, old(folder, name)) for name in command.outputs), command.name
        command.whole |= {f"{p.name}": p.read_bytes() for p in _stored(folder, command)}


def prepared(folder: Path, names: Collection[str], verbose: bool = False) -> list[Command]:
    """The commands of these names, ready for trials in the folder."""
    prepare(folder)
    chosen = [command for command in commands() if command.name in names]
    warm_up(folder, chosen, verbose)
    return chosen


def content(path: Path) -> Any:
    """Bytes of a file, or of the files of a folder by name, but for temporary ones; None where nothing is."""
    if path.is_dir():
        parts = [part for part in sorted(path.rglob("*")) if part.is_file() and part.suffix != ".truerank-tmp"]
        return {str(part.relative_to(path)): part.read_bytes() for part in parts}
    return path.read_bytes() if path.exists() else None


def old(folder: Path, name: str) -> Any:
    """What stood at an output before the command."""
    return content(folder / "old-index") if name.endswith("/") else OLD


def _stored(folder: Path, command: Command) -> list[Path]:
    place = folder / command.stored
    return sorted(p for p in place.rglob("*.jsonl")) if command.stored and place.is_dir() else []


def clean(folder: Path, command: Command) -> None:
    """Old outputs in place, no stored pieces, no messages."""
    (folder / "messages").write_bytes(b"")
    files._swept.clear()  # as in a new process
    for name in command.outputs:
        path = folder / name
        if name.endswith("/"):
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(folder / "old-index", path)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(OLD)
    if command.stored:
        shutil.rmtree(folder / command.stored, ignore_errors=True)
        (folder / command.stored).mkdir()


def left(folder: Path) -> list[str]:
    """Temporary files and folders."""
    kinds = ("*.truerank-tmp", ".*.partial", ".*.old")
    return [str(path) for kind in kinds for path in folder.rglob(kind)]


def is_whole(there: Any, new: Any) -> bool:
    """Whether an output is the new one; an index may lack what is derived from it when it is first asked for."""
    if not isinstance(there, dict):
        return bool(there == new)
    missing = new.keys() - there.keys()
    return all(name.endswith(".cosine-norms.npy") for name in missing) and there == {
        name: text for name, text in new.items() if name not in missing
    }


def faults(folder: Path, command: Command, code: int, kind: str) -> list[str]:
    """What is wrong after a trial."""
    wrong = []
    states = set()
    for name in command.outputs:
        there, before = content(folder / name), old(folder, name)
        if there is None and name.endswith("/") and kind == "kill":  # set aside: `Index` finds it there
            there = content((folder / name).with_name(f".{Path(name).name}.old"))
        named = kind.startswith("fifo") and command.name == "report"  # it prints the names of its files
        if there != before and not is_whole(there, command.whole[name]) and not named:
            wrong.append(f"{name} is neither the old file nor the new one")
        states.add(there == before)
    if len(states) > 1 and command.one_step and kind != "kill":
        wrong.append("one of the outputs is old and one is new")
    if code == 0 and True in states:
        wrong.append("exit code 0, and the old output")
    if code not in (0, -9) and False in states and kind == "full disk" and command.one_step:
        wrong.append(f"exit code {code}, and the new output")
    for path in _stored(folder, command):
        whole = set(untimed(command.whole.get(path.name, b"")).split(b"\n"))
        lines = untimed(path.read_bytes()).split(b"\n")
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
        largest = max((len(whole) for whole in command.whole.values() if isinstance(whole, bytes)), default=1000)
        took, code = run(folder, command.words, lambda pid: None, limit=rng.randrange(1, max(2, largest)))
        wrong = faults(folder, command, code, kind)
        return code, took, wrong + ([] if code == 1 else [f"exit code {code}"])
    if kind in ("closed", "pipe", "fifo"):
        return descriptor_trial(folder, command, kind, rng)
    if kind == "two":
        return trial_of_two(folder, command, rng)
    delay = rng.uniform(0.0, command.seconds * 1.05)
    number = signal.SIGINT if kind == "interrupt" else signal.SIGKILL

    def meanwhile(pid: int) -> None:
        time.sleep(delay)
        os.kill(pid, number)

    took, code = run(folder, command.words, meanwhile)
    wrong = faults(folder, command, code, kind)
    if kind == "interrupt":
        wrong += [] if code in (command.code, 130) else [f"exit code {code}"]
        wrong += [] if took <= SOON else [f"took {took:.2f} s to end"]
        return code, took, wrong
    wrong += [] if code in (command.code, -9) else [f"exit code {code}"]
    _, again = run(folder, command.words, lambda pid: None)
    for name in command.outputs:
        if content(folder / name) != command.whole[name]:
            wrong.append(f"{name} differs after the next run")
    for path in _stored(folder, command):
        if sorted(untimed(path.read_bytes()).split(b"\n")) != sorted(untimed(command.whole[path.name]).split(b"\n")):
            wrong.append("the pieces differ after the next run")
    wrong += [f"left after the next run: {name}" for name in left(folder)]
    return code, took, wrong + ([] if again == command.code else [f"the next run ended with {again}"])


def trial_of_two(folder: Path, command: Command, rng: random.Random) -> tuple[int, float, list[str]]:
    """Two processes of a command on the same outputs: one does it, the other does it too or is refused."""
    delay, codes = rng.choice((0.0, rng.uniform(0.0, command.seconds))), []

    def second(pid: int) -> None:
        time.sleep(delay)
        codes.append(run(folder, command.words, lambda pid: None)[1])

    took, code = run(folder, command.words, second)
    codes.append(code)
    wrong = faults(folder, command, 0, "two") if command.outputs or command.stored else []
    messages = (folder / "messages").read_text(errors="replace")
    refused = sum(one == 1 for one in codes) if command.code != 1 else 0
    wrong += (
        [] if command.code in codes and {*codes} <= {command.code, 1} else [f"exit codes {codes}: {messages[-300:]}"]
    )
    if len(re.findall("is writing to it", messages)) != refused:
        wrong.append(f"{refused} refused, and they say: {messages[-300:]}")
    return max(codes), took, wrong


def descriptor_trial(folder: Path, command: Command, kind: str, rng: random.Random) -> tuple[int, float, list[str]]:
    """Closed standard descriptors; an output that is read slowly, or not to its end; an input that comes slowly."""
    wrong, known = [], {command.code}
    if kind == "closed":
        closed = rng.choice(((0,), (1,), (2,), (0, 1, 2), (0, 2), (1, 2)))
        _, code = run(folder, command.words, lambda pid: None, closed=closed)
        if 1 in closed and command.printed:
            known = {1}
        kind = f"closed {closed}"
    elif kind == "pipe":
        most = rng.choice((None, 0, 1, len(command.printed) // 2))
        code, came = run_into_pipe(folder, command.words, rng.choice((1, 7, 512)), most)
        came, printed = untimed(came), untimed(command.printed)
        if came != printed if most is None else not printed.startswith(came[:most]):
            wrong.append(f"printed {came[:200]!r} …, undisturbed {command.printed[:200]!r} …")
    else:
        names = [word for word in command.words if (folder / word).is_file() and word not in command.outputs]
        if not names:
            return command.code, 0.0, []
        name = rng.choice(names)
        code = run_from_fifo(folder, command.words, name, rng)
        known.add(1)  # a file that is looked at twice, or told by its ending: refused in one line
        kind = f"fifo {name}"
    wrong += faults(folder, command, code, kind)
    return code, 0.0, wrong + ([] if code in known else [f"exit code {code} ({kind})"])


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
    parser.add_argument("--descriptors", type=int, default=100, help="of each of: closed, pipes, FIFOs")
    parser.add_argument("--twos", type=int, default=100, help="trials of two processes on the same outputs")
    parser.add_argument("--command", action="append", help="this one alone, by name; may be repeated")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so many, the kinds having taken turns")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    end = time.monotonic() + 60.0 * args.minutes
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    chosen = prepared(folder, args.command or [command.name for command in commands()], verbose=True)
    numbers = {"interrupt": args.interrupts, "kill": args.kills, "full disk": args.full_disks}
    numbers["two"] = args.twos
    numbers |= dict.fromkeys(("closed", "pipe", "fifo"), args.descriptors)
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
    shutil.rmtree(folder)
    return 1 if any(wrong for results in done.values() for *_, wrong in results) else 0


if __name__ == "__main__":
    raise SystemExit(main())
