"""`truerank tune`: choose a ranker's settings by cross-validation over queries, and save the best model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import truerank
from truerank.cli import common, options, ranker_options
from truerank.cli.cross_validate import refuse_folds_of_folder
from truerank.cli.parser import OutputFile, argument, option


class Arguments(options.Learning, options.Folds, options.Json):
    folds: str = argument(
        "one file (or table) that is split by query, or a folder of published folds: Fold*/{train,vali,test}.txt or "
        "S1.txt … S5.txt (test queries are not used)",
        "FOLDS",
    )
    space: list[str] = option(
        "values to choose from: depth=4,6 or a range, depth=3..8, learning_rate=0.01..0.3:log (default: by ranker)",
        "key=VALUES …",
    )
    trials: int | None = option("settings that Optuna tries (default: all combinations of lists; 30 with a range)", "N")
    measure: str | None = option("measure that chooses (default: the ranker's)", "MEASURE")
    jobs: int = option("folds to fit at once", "N", default=1)
    state: OutputFile | None = option(
        "file of finished trials, as JSON lines, from which the same command continues", "FILE"
    )
    model: OutputFile = option(
        "output file of the best model, fitted to all queries (of published folds: to those of the first)", "FILE"
    )
    convention: options.Convention = options.convention("ranklib")


def run(args: Arguments) -> int:
    """Choose the best settings, fit them to all queries, and save the model."""
    from truerank.inspection.importance import measure_of

    refuse_folds_of_folder(args)
    fixed = ranker_options.settings_of(args.ranker, args.set)
    first = ranker_options.make_ranker(args.ranker, fixed, None, args.prepare)
    seeded = args.seed if "random_state" in first.get_params() or "ranker__random_state" in first.get_params() else None
    inner = getattr(first, "ranker", first)
    space = _space(args, inner, fixed)
    measure = measure_of(inner, args.measure, args.convention)
    name, ties = args.measure or measure.name, measure.tie_averaged().setting("ties")

    def watch(trial: dict[str, Any]) -> None:
        value = f"{trial['mean']:.4f}" if trial["error"] is None else f"failed: {trial['error']}"
        common.note(f"trial {trial['number'] + 1}: {name} {value}  {json.dumps(trial['params'])}")

    objectives = [{"objective": one} for one in space.get("objective", [])] or [{}]
    data = _data(args, [ranker_options.make_ranker(args.ranker, fixed | one) for one in objectives])

    def make(settings: dict[str, Any]) -> Any:
        ranker = ranker_options.make_ranker(args.ranker, fixed | settings, seeded, args.prepare)
        if args.categorical:
            common.set_categorical(ranker, data, args)
        return ranker

    found = truerank.tune(
        make,
        data,
        space,
        measure=measure,
        cv=args.cv,
        random_state=args.seed,
        watch=watch,
        **common.given(args, "convention", "trials", "jobs", "state"),
    )
    common.remember_reading(found.ranker, args)
    truerank.save_model(found.ranker, args.model)
    if args.json:
        about = {"ranker": args.ranker, "measure": name, "convention": args.convention, "ties": ties}
        chosen = {"params": fixed | found.best_params, "value": found.best_value, "trials": found.trials}
        common.print_report(args, about | chosen | {"model": args.model})
        return 0
    _print(found, name, measure.higher_is_better, f"{args.convention}, ties={ties!r}")
    print(f"model written to {args.model}")
    return 0


def _space(args: Arguments, ranker: truerank.Ranker, fixed: dict[str, Any]) -> dict[str, Any]:
    """Return the checked search space: --space, or usual values of the parameters that are not fixed."""
    from truerank.inspection.tuning import SPACES

    usual = SPACES.get(type(ranker).__name__, {})
    space = parse_space(args.space) or {name: values for name, values in usual.items() if name not in fixed}
    if not space:
        raise common.UsageError(f"{args.ranker} has no default space. Add --space key=VALUES")
    both = [name for name in space if name in fixed]
    if both:
        raise common.UsageError(f"--space and --set both give {both[0]!r}. Give it once")
    for name, values in space.items():
        ranker_options.make_ranker(args.ranker, fixed | {name: values[0] if isinstance(values, list) else values.low})
    return space


def _print(found: Any, name: str, upwards: bool, terms: str) -> None:
    rows = [[t["number"] + 1, t["mean"], json.dumps(t["params"])] for t in found.trials if t["error"] is None]
    rows.sort(key=lambda row: float(row[1]), reverse=upwards)
    print(
        f"best of {len(found.trials)} settings: {json.dumps(found.best_params)}, {name} {found.best_value:.4f} "
        f"({terms}) on the held-out queries that chose it; use `truerank evaluate` on other queries for a fair value\n"
    )
    print(common.table(rows[:10], ["trial", name, "settings"]))


def parse_space(pairs: Sequence[str]) -> dict[str, Any]:
    """Parse `key=[…]`, `key=low..high` and `key=low..high:log` into lists and ranges.

    >>> parse_space(["depth=3..8", "C=0.01..100:log", "leaves=[\\"fuzzy\\"]"])
    {'depth': Between(low=3, high=8, log=False), 'C': Between(low=0.01, high=100, log=True), 'leaves': ['fuzzy']}
    """
    from truerank.inspection.tuning import Between

    space: dict[str, Any] = {}
    for key, text in ranker_options.key_values("--space", "key=VALUES", pairs).items():
        ends, colon, scale = text.partition(":")
        if ".." in ends and not text.startswith("["):
            if colon and scale != "log":
                raise common.UsageError(f"--space {key}: only :log can follow a range, got {scale!r}")
            bounds = [ranker_options.json_value(end) for end in ends.split("..", 1)]
            if not all(isinstance(bound, int | float) and not isinstance(bound, bool) for bound in bounds):
                raise common.UsageError(f"--space {key}: expected two numbers low..high, got {ends!r}")
            try:
                space[key] = Between(bounds[0], bounds[1], bool(colon))
            except common.InvalidInputError as error:
                raise common.UsageError(f"--space {key}: {error}") from error
            continue
        values = ranker_options.listed(text)
        if values is None:
            raise common.UsageError(f"--space {key} must be a list such as 1,10 or a range such as 1..10, got {text!r}")
        space[key] = values
    return space


def _data(args: Arguments, rankers: list[Any]) -> Any:
    """Return the data, which may have published folds."""

    def read(path: Path) -> Any:
        rows = common.read_graded(str(path), args)
        return rows if args.position is None else common.with_position(rows, args.position, rankers)

    place = Path(args.folds)
    return truerank.read_folds(place, read=read) if place.is_dir() else read(place)
