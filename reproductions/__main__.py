"""Run published experiments: `python -m reproductions NAME`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from reproductions import second_check
from reproductions.collections import where_to_get
from reproductions.experiments import EXPERIMENTS
from reproductions.manifest import conventions_of, write_manifest
from reproductions.pages import record, write_pages
from reproductions.plots import draw_figures
from reproductions.protocol import open_store
from reproductions.verdicts import ROWS, overview_table, without_verdicts
from truerank import __version__
from truerank.cli import options
from truerank.cli.parser import OutputFolder
from truerank.core.errors import DataFileError, InvalidInputError, MissingExtraError, TruerankError
from truerank.core.printing import note, plain, print_json

# About the CPU seconds of each in full and with --quick: shares of the work of `all`.
WORK = {
    "adarank": (1500, 74),
    "letor": (54, 31),
    "descent": (47, 9),
    "calibration": (400, 20),
    "stand-ins": (500, 66),
    "svm-map": (3500, 61),
    "oblivious": (2000, 97),
}
# Arguments of the command that are no settings of the experiment.
_OF_THE_COMMAND = ("experiment", "experiment_module", "run_experiment", "record")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add a sub-command for each experiment, and `pages`, `second-check` and `all`."""
    experiments = parser.add_subparsers(dest="experiment", metavar="EXPERIMENT", required=True)
    for name, module in EXPERIMENTS.items():
        experiment = import_module(module)
        summary = (experiment.__doc__ or name).splitlines()[0]
        sub = experiments.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        experiment.configure(sub)
        sub.add_argument(
            "--record", action="store_true", help="write reproductions/results/, from which pages are made"
        )
        sub.set_defaults(run_experiment=run_one, experiment_module=experiment)
    sub = experiments.add_parser("pages", help="write docs/development/papers/ from the templates and the results")
    sub.set_defaults(run_experiment=lambda args: write_pages(), out=None)
    summary = (second_check.__doc__ or "").splitlines()[0]
    sub = experiments.add_parser("second-check", help=summary, description=summary, allow_abbrev=False)
    second_check.configure(sub)
    sub.set_defaults(run_experiment=second_check.run)
    summary = "run every experiment, and print one table of published figures, ours and verdicts"
    sub = experiments.add_parser("all", help=summary, description=summary, allow_abbrev=False)
    sub.add_argument("--data", required=True, metavar="DIR", help="folder that holds letor4-mq2008/ and so on")
    sub.add_argument("--quick", action="store_true", help="fewer repetitions: shows that everything runs")
    sub.add_argument(
        "--out", default="reproduce-output", metavar="DIR", help="results, figures, resuming (default: %(default)s)"
    )
    options.Json.configure(sub)
    sub.set_defaults(run_experiment=run_all)


def run(args: argparse.Namespace) -> int:
    """Run the experiment that was named."""
    OutputFolder(args.out).check("--out")
    return int(args.run_experiment(args) or 0)


def run_one(args: argparse.Namespace) -> int:
    """Run one experiment, draw its figures into `--out`, write a manifest."""
    if args.record and args.quick:
        raise InvalidInputError(
            "--record and --quick were both given, but pages show full runs. Leave out one of them."
        )
    settings = {name: value for name, value in plain(vars(args)).items() if name not in _OF_THE_COMMAND}
    name = args.experiment
    result, rows = _run_and_draw(name, args.experiment_module, args)
    if args.json:
        print_json(plain({key: value for key, value in result.items() if key != "scores"}))
    else:
        args.experiment_module.print_tables(result)
        sys.stdout.write(f"\n{overview_table(rows)}\n")
    if args.record:
        note(f"wrote {record(name, settings, rows, result)}")
    write_manifest(Path(args.out, "manifest.json"), {name: settings}, {name: conventions_of(result)})
    return 0


def _run_and_draw(name: str, experiment: Any, args: argparse.Namespace) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The result of an experiment and its rows, without verdicts after a quick run."""
    result = experiment.run(args)
    if hasattr(experiment, "figures"):
        try:
            paths = draw_figures(experiment.figures(result), args.out)
        except MissingExtraError as error:
            note(f"figures were left out: {error}")
        else:
            for path in paths:
                note(f"wrote {path}")
    rows = ROWS[name](result)
    return result, without_verdicts(rows) if args.quick else rows


def run_all(args: argparse.Namespace) -> int:
    """Run every experiment, then print one table of published figures, ours and verdicts.

    A killed run resumes: experiments keep their finished pieces in their own folders, and a finished experiment is not
    run again under the same settings and version.
    """
    store = open_store(args.out, {"experiment": "all", "version": __version__})
    found: dict[str, dict[str, Any]] = {}
    settings: dict[str, dict[str, Any]] = {}
    total = _Total(args.quick)
    for name, module in EXPERIMENTS.items():
        if name == "svm-map" and not (runs := Path(args.data, "trec9-web-runs")).is_dir():
            note(f"== {name}: left out, because {runs} does not exist ==")
            total.add(name, before=True)
            continue
        experiment = import_module(module)
        parser = argparse.ArgumentParser(prog=f"python -m reproductions {name}")
        experiment.configure(parser)
        own = parser.parse_args(["--data", args.data, *["--quick"] * args.quick, "--out", f"{args.out}/{name}"])
        settings[name] = plain(vars(own))
        key = {"experiment": name, "settings": settings[name]}

        def work() -> dict[str, Any]:
            result, rows = _run_and_draw(name, experiment, own)  # noqa: B023
            if not args.json:
                experiment.print_tables(result)  # noqa: B023
            return {"rows": rows, "conventions": conventions_of(result)}

        before = key in store
        note(f"== {name}{': finished before' if before else ''}; {total} ==")
        found[name] = store.compute(key, work)
        total.add(name, before)
    rows = [row for one in found.values() for row in one["rows"]]
    path = Path(args.out, "manifest.json")
    manifest = write_manifest(path, settings, {name: one["conventions"] for name, one in found.items()})
    note(f"wrote {path}")
    if args.json:
        print_json({"rows": rows, "manifest": manifest})
    else:
        sys.stdout.write(f"\nPublished, ours, verdict\n\n{overview_table(rows)}\n")
    return 0


class _Total:
    """The share of all experiments that is done, and an estimate of the time to go by the pace of this run."""

    def __init__(self, quick: bool) -> None:
        self._work = {name: WORK[name][quick] for name in EXPERIMENTS}
        self._finished, self._here, self._began = 0, 0, time.monotonic()

    def add(self, name: str, before: bool) -> None:
        """Count an experiment; one that was finished before, or is left out, says nothing of the pace."""
        self._finished += self._work[name]
        self._here += 0 if before else self._work[name]

    def __str__(self) -> str:
        total = sum(self._work.values())
        pace = (time.monotonic() - self._began) / self._here if self._here else 1.0
        return f"{100 * self._finished / total:.0f} % done, about {pace * (total - self._finished) / 60:.0f} min to go"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; an error of input ends with its message and status 1."""
    parser = argparse.ArgumentParser(prog="python -m reproductions", description=__doc__, allow_abbrev=False)
    configure(parser)
    try:
        return run(parser.parse_args(arguments))
    except (TruerankError, FileNotFoundError) as error:
        lacks = isinstance(error, DataFileError | FileNotFoundError)
        note(f"error: {error}{where_to_get(str(error)) if lacks else ''}")
        return 1
    except KeyboardInterrupt:
        note("interrupted: finished pieces are kept")
        return 130


if __name__ == "__main__":
    sys.exit(main())
