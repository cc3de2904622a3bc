"""`truerank text index` killed (SIGKILL) at random moments and run again, and given bad documents, as users see it.

    BENCH_KILLS=20 python -m benchmarks text/bench_killed_index

The index of a run that nobody killed is compared byte for byte with the one of a second run after each kill.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.text.bench_index import texts

GOOD = b'{"id": "good", "text": "heat flow"}\n'
BAD = {
    "not UTF-8": GOOD + b'{"id": "b", "text": "\xff"}\n',
    "not JSON": GOOD + b'{"id": "b", "text"\n',
    "no id": GOOD + b'{"text": "flow"}\n',
    "an id twice": GOOD + GOOD,
    "no text": GOOD + b'{"id": "b", "text": ""}\n',
    "a line of 100 MB": GOOD + b'{"id": "b", "text": "' + b"flow " * 20_000_000 + b'"}\n',
    "no document": b"",
}


def command(documents: Path, index: Path, *options: str) -> list[str]:
    """`truerank text index` as a process."""
    return [sys.executable, "-m", "truerank", "text", "index", str(documents), "-o", str(index), *options]


def said(words: list[str]) -> tuple[int, str]:
    """Exit code and last line of a command."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    return done.returncode, (done.stderr.strip() or done.stdout.strip()).splitlines()[-1][:160]


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def kills(folder: Path, n: int) -> None:
    """Kill a run at a random moment of its time, n times; each time a second run must end with the same bytes."""
    documents = folder / "documents.jsonl"
    with open(documents, "w", encoding="utf-8") as stream:
        stream.writelines(json.dumps({"id": str(k), "text": text}) + "\n" for k, text in enumerate(texts(20_000)))
    said(command(documents, folder / "whole"))
    start = time.perf_counter()
    said(command(documents, folder / "whole"))
    whole, span = bytes_of(folder / "whole"), time.perf_counter() - start
    draw = np.random.default_rng(0)
    ended = same = 0
    for _ in range(n):
        process = subprocess.Popen(command(documents, folder / "killed"), stderr=subprocess.DEVNULL)
        try:
            process.wait(span * draw.random())
            ended += 1
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        said(command(documents, folder / "killed"))
        same += bytes_of(folder / "killed") == whole
        shutil.rmtree(folder / "killed")
        left = [path.name for path in folder.iterdir() if path.name not in ("documents.jsonl", "whole")]
        if left:
            raise ValueError(f"a second run left {left}")
    print(
        f"{n} runs killed at random moments, {ended} had ended before: the same bytes after {same} of {n} second runs\n"
    )


def run() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        kills(folder, int(os.environ.get("BENCH_KILLS", "20")))
        print("| documents | exit code | last line said | with `--bad skip` | last line said |\n|" + " --- |" * 5)
        for name, content in BAD.items():
            documents = folder / "bad.jsonl"
            documents.write_bytes(content)
            cells = [*said(command(documents, folder / "i")), *said(command(documents, folder / "i", "--bad", "skip"))]
            print(f"| {name} | {' | '.join(str(cell).replace(place, '') for cell in cells)} |", flush=True)


if __name__ == "__main__":
    run()
