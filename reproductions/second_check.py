"""Three verdicts of each paper, drawn at random, under other seeds, another tie rule and another order of rows.

The draw is from the recorded verdicts, with a random stream of its own. The same code and rules compute each verdict
anew under every variation.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from reproductions.experiments import EXPERIMENTS
from reproductions.pages import RESULTS, record
from reproductions.protocol import open_store
from reproductions.variations import Variation, varied
from reproductions.verdicts import ROWS
from truerank.core.printing import note, table
from truerank.core.random_streams import stream

N_CLAIMS = 3
# A later check draws anew, by another number.
DRAWS = {"adarank": 1, "calibration": 1}
# Arguments of each experiment, with fewer repetitions than the recorded run where it takes long.
WORDS = {
    "svm-map": ["--methods", "svm-map", "svm-roc", "--trials", "20"],
    "adarank": ["--assignments", "5"],
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
    """Add the arguments of the check."""
    parser.add_argument("--data", required=True, metavar="DIR", help="folder of the collections")
    parser.add_argument("--paper", choices=list(WORDS), action="append", help="check only this paper; may be repeated")
    parser.add_argument(
        "--out", default="second-check", metavar="DIR", help="folder for resuming (default: %(default)s)"
    )
    parser.add_argument("--record", action="store_true", help="write reproductions/results/, from which pages are made")


def drawn(name: str) -> list[dict[str, Any]]:
    """`N_CLAIMS` recorded verdicts of an experiment: those of the recorded check, else drawn without replacement."""
    rows = _recorded(name)["verdicts"]
    before = _recorded("second-check")["figures"].get(name)
    if before is not None:
        by_item = {row["item"]: row for row in rows}
        return [by_item[item] for item in before["claims"]]
    numbers = stream(DRAWS.get(name, 0), "second check", name).choice(
        len(rows), min(N_CLAIMS, len(rows)), replace=False
    )
    return [rows[number] for number in sorted(numbers)]


def run(args: argparse.Namespace) -> int:
    """Run what is not finished, print a table, and write it with `--record`, next to the papers recorded before."""
    store = open_store(args.out, {"words": WORDS})
    result: dict[str, Any] = _recorded("second-check")["figures"] if args.record and args.paper else {}
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
        note(f"wrote {record('second-check', {}, [], {name: result[name] for name in WORDS if name in result})}")
    return 0


def under(name: str, label: str, claims: list[dict[str, Any]], args: argparse.Namespace) -> list[dict[str, Any]]:
    """The verdicts of the drawn items under one variation; a recorded seed is not run again."""
    seed, variation = VARIATIONS[label]
    items = {row["item"] for row in claims}
    if seed and (RESULTS / f"{name}-seed-{seed}.json").is_file():
        return [row for row in _recorded(f"{name}-seed-{seed}")["verdicts"] if row["item"] in items]
    experiment = import_module(EXPERIMENTS[name])
    parser = argparse.ArgumentParser()
    experiment.configure(parser)
    words = [*WORDS[name], "--data", args.data, "--out", str(Path(args.out, name, label.replace(" ", "-")))]
    if seed:
        # The runs of the trees have successive seeds, so other seeds must be far from the recorded ones.
        words += ["--seed", str(1000 * seed if name == "oblivious" else seed)]
    if name == "calibration":
        panels = {row["item"].rpartition(", ")[0] for row in claims}
        words += [word for panel in sorted(panels) for word in ("--panel", panel)]
    own = parser.parse_args(words)
    with varied(variation):
        rows = ROWS[name](experiment.run(own))
    return [row for row in rows if row["item"] in items]


def lines(result: dict[str, Any]) -> Iterable[list[str]]:
    """A line for each drawn item: the verdict and our figure under each variation."""
    for name, part in result.items():
        for item, found in part["claims"].items():
            cells = [f"{one['verdict']}: {one['ours']}" for one in found.values()]
            yield [name, item, found["recorded"]["published"], *cells]


def _recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def _short(row: dict[str, Any]) -> dict[str, Any]:
    return {key: row[key] for key in ("published", "ours", "verdict", "why")}
