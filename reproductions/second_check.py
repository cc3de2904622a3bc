"""Three claims of each paper, drawn at random, tried under other seeds, another tie rule and another order of rows.

The claims are drawn from the verdicts that the experiments recorded, by a stream that no author of a page chose. Each
is then computed anew under every variation, by the same code and the same rules.
"""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Iterable
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

from reproductions.pages import RESULTS, record
from reproductions.protocol import ResultStore
from reproductions.variations import Variation, varied
from reproductions.verdicts import ROWS
from truerank.core.printing import note, table
from truerank.core.random_streams import stream

N_CLAIMS = 3
# Words of each experiment: what its recorded run was told, with fewer repetitions where they take long.
WORDS = {
    "svm-map": ["--structural-only", "--trials", "20"],
    "adarank": ["--part", "trials", "--assignments", "5"],
    "descent": [],
    "calibration": ["--part", "panels"],
    "oblivious": ["--collections", "mq2008", "--runs", "10"],
}
VARIATIONS: dict[str, tuple[int, Variation]] = {
    "seed 1": (1, Variation()),
    "seed 2": (2, Variation()),
    "other ties": (0, Variation(ties=True)),
    "other order": (0, Variation(rows=1)),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the check."""
    parser.add_argument("--data", required=True, metavar="DIR", help="folder of the collections")
    parser.add_argument("--paper", choices=list(WORDS), action="append", help="this paper alone; may be repeated")
    parser.add_argument(
        "--out", default="second-check", metavar="DIR", help="folder for resuming (default: %(default)s)"
    )
    parser.add_argument("--record", action="store_true", help="write the figures of docs/development/papers/")


def drawn(name: str) -> list[dict[str, Any]]:
    """The recorded verdicts of `N_CLAIMS` items of an experiment, drawn without replacement."""
    rows: list[dict[str, Any]] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["verdicts"]
    numbers = stream(0, "second check", name).choice(len(rows), min(N_CLAIMS, len(rows)), replace=False)
    return [rows[number] for number in sorted(numbers)]


def run(args: argparse.Namespace) -> int:
    """Run what is not done yet, print a table, write it with `--record`."""
    store = ResultStore(Path(args.out) / "results.jsonl", {"words": WORDS})
    result: dict[str, Any] = {}
    for name in args.paper or WORDS:
        claims = drawn(name)
        found = {row["item"]: {"recorded": _short(row)} for row in claims}
        for label in VARIATIONS:
            key = {"paper": name, "items": list(found), "variation": label}
            rows = store.compute(key, lambda: under(name, label, claims, args))  # noqa: B023
            for row in rows:
                found[row["item"]][label] = _short(row)
            note(f"{name}, {label}: done")
        result[name] = {"words": " ".join(WORDS[name]), "claims": found}
    print(table(list(lines(result)), ["paper", "item", "published", "recorded", *VARIATIONS]))
    if args.record:
        note(f"wrote {record('second-check', {}, [], result)}")
    return 0


def under(name: str, label: str, claims: list[dict[str, Any]], args: argparse.Namespace) -> list[dict[str, Any]]:
    """The verdicts of the drawn items under one variation; another seed that was recorded is not run again."""
    from reproductions.__main__ import EXPERIMENTS

    seed, variation = VARIATIONS[label]
    items = {row["item"] for row in claims}
    kept = RESULTS / f"{name}-seed-{seed}.json"
    if seed and kept.is_file():
        rows = json.loads(kept.read_text(encoding="utf-8"))["verdicts"]
        return [row for row in rows if row["item"] in items]
    experiment = import_module(EXPERIMENTS[name])
    parser = argparse.ArgumentParser()
    experiment.configure(parser)
    words = [*WORDS[name], "--out", str(Path(args.out, name, label.replace(" ", "-")))]
    if name == "svm-map":
        runs = Path(args.data, "trec9-web-runs")
        words += ["--runs", str(runs / "runs"), "--qrels", str(runs / "qrels.451-500.txt.xz")]
    else:
        words += ["--data", args.data]
    if seed:
        # The trees' runs have seeds one after the other: far from the recorded ones and from each other's.
        words += ["--seed", str(1000 * seed if name == "oblivious" else seed)]
    if name == "calibration":
        panels = {row["item"].rpartition(", ")[0] for row in claims}
        words += [word for panel in sorted(panels) for word in ("--panel", panel)]
    own = parser.parse_args(words)
    with varied(variation), redirect_stdout(io.StringIO()):
        experiment.run(own)
        rows = ROWS[name](own.result)
    return [row for row in rows if row["item"] in items]


def lines(result: dict[str, Any]) -> Iterable[list[str]]:
    """One line a claim: each variation's verdict, with our figure."""
    for name, part in result.items():
        for item, found in part["claims"].items():
            cells = [f"{one['verdict']}: {one['ours']}" for one in found.values()]
            yield [name, item, found["recorded"]["published"], *cells]


def _short(row: dict[str, Any]) -> dict[str, Any]:
    return {key: row[key] for key in ("published", "ours", "verdict", "why")}
