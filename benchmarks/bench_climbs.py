"""Functions that eight uses pass through, and their climbs: calls from a room into one of a higher floor."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import truerank
from truerank.cli import main as command

SOURCE = Path(truerank.__file__).parent
PAGE = SOURCE.parents[1] / "docs" / "development" / "architecture.md"


def floors() -> dict[str, int]:
    """The floor of each room, 0 for the highest, from the picture of the page."""
    picture = PAGE.read_text(encoding="utf-8").partition("## The picture")[2].split("```")[1]
    lines = [rooms for line in picture.splitlines() if (rooms := re.findall(r"(\w+)/", line))]
    return {room: number for number, rooms in enumerate(lines) for room in rooms}


def followed(work: Callable[[], Any]) -> tuple[set[str], set[tuple[str, str]]]:
    """The functions of truerank that `work` passes through, and the pairs (caller, called) that climb."""
    floor, seen, climbs = floors(), set(), set()

    def name(frame: FrameType | None) -> str | None:
        if frame is None or not frame.f_code.co_filename.startswith(str(SOURCE)):
            return None
        code = frame.f_code
        return f"{Path(code.co_filename).relative_to(SOURCE)}:{code.co_qualname}:{code.co_firstlineno}"

    def profile(frame: FrameType, event: str, _: Any) -> None:
        own = name(frame)
        if event != "call" or own is None:
            return
        seen.add(own)
        caller = name(frame.f_back)
        if caller is not None:
            above, below = floor.get(own.split("/")[0]), floor.get(caller.split("/")[0])
            if above is not None and below is not None and above < below:
                climbs.add((caller, own))

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return seen, climbs


def uses(folder: str) -> dict[str, Callable[[], Any]]:
    """The uses by name, on 400 rows of 10 columns."""
    r = np.random.default_rng(0)
    X, y, qid = r.normal(size=(400, 10)), r.integers(0, 3, 400), np.repeat(np.arange(20), 20)
    data = truerank.RankingData(X, y, qid=qid)
    train, model = os.path.join(folder, "train.txt"), os.path.join(folder, "model.json")
    truerank.write_letor(data, train)
    scores = [os.path.join(folder, name) for name in ("a.txt", "b.txt")]
    for column, path in enumerate(scores):
        np.savetxt(path, X[:, column])
    trees = truerank.ObliviousBoosting("constant", n_estimators=5).fit(data)

    def told(*words: str) -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            command(list(words))

    return {
        "compare, two files of scores": lambda: told("compare", "--data", train, "--scores", *scores),
        "train, LETOR, list-net": lambda: told("train", train, "--ranker", "list-net", "--model", model),
        "constant fit": lambda: truerank.ObliviousBoosting("constant", n_estimators=5).fit(X, y, qid=qid),
        "default fit": lambda: truerank.ObliviousBoosting(n_estimators=5).fit(X, y, qid=qid),
        "MeasureSVM fit": lambda: truerank.MeasureSVM().fit(X, y, qid=qid),
        "evaluate nDCG@10": lambda: truerank.evaluate(data, {"a": X[:, 0]}, "nDCG@10"),
        "export to Painless": lambda: truerank.export_model(trees, "painless"),
        "save and load": lambda: (truerank.save_model(trees, model), truerank.load_model(model)),
    }


def run(verbose: bool = False) -> None:
    """Print functions and climbs of the second run of each use; with `verbose` the climbs themselves."""
    with tempfile.TemporaryDirectory() as folder:
        for name, work in uses(folder).items():
            work()
            functions, climbs = followed(work)
            print(f"{name:32} functions {len(functions):4}  climbs {len(climbs):3}")
            for caller, called in sorted(climbs) if verbose else ():
                print(f"    {caller} -> {called}")


if __name__ == "__main__":
    run(verbose="--verbose" in sys.argv)
