"""`python -m reproductions NAME`: published experiments, one module or folder each."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

from reproductions import second_check
from reproductions.pages import record, write_pages
from truerank.cli import common, options
from truerank.core.errors import InvalidInputError, MissingExtraError, TruerankError
from truerank.core.printing import note, plain, print_json

# Name -> module with `configure(parser)` and `run(args)`; `all` takes them in this order, the longest last.
EXPERIMENTS: dict[str, str] = {
    "adarank": "reproductions.adarank.experiment",
    "letor": "reproductions.letor.experiment",
    "descent": "reproductions.descent",
    "calibration": "reproductions.calibration.experiment",
    "svm-map": "reproductions.svm_map",
    "oblivious": "reproductions.oblivious",
}


_OF_THE_COMMAND = (
    "command",
    "experiment",
    "experiment_module",
    "run_experiment",
    "record",
)  # no settings of the experiment


def configure(parser: argparse.ArgumentParser) -> None:
    """One sub-command an experiment."""
    experiments = parser.add_subparsers(dest="experiment", metavar="EXPERIMENT", required=True)
    for name, module in EXPERIMENTS.items():
        experiment = import_module(module)
        summary = (experiment.__doc__ or name).strip().splitlines()[0]
        sub = experiments.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        experiment.configure(sub)
        sub.add_argument(
            "--record",
            action="store_true",
            help="write the figures of docs/development/papers/ (reproductions/results/)",
        )
        sub.set_defaults(run_experiment=run_one, experiment_module=experiment)
    sub = experiments.add_parser("pages", help="write docs/development/papers/ from reproductions/pages/ and results/")
    sub.set_defaults(run_experiment=lambda args: write_pages(), out=None)
    summary = (second_check.__doc__ or "").splitlines()[0]
    sub = experiments.add_parser("second-check", help=summary, description=summary, allow_abbrev=False)
    second_check.configure(sub)
    sub.set_defaults(run_experiment=second_check.run)
    sub = experiments.add_parser(
        "all", help="every experiment, and one table of published figures, ours and verdicts", allow_abbrev=False
    )
    sub.add_argument("--data", required=True, metavar="DIR", help="folder that holds letor4-mq2008/ and so on")
    sub.add_argument("--quick", action="store_true", help="fewer repetitions: shows that everything runs")
    sub.add_argument(
        "--out", metavar="DIR", help="folder of results, figures and resuming (default: each experiment's)"
    )
    options.add_json_option(sub)
    sub.set_defaults(run_experiment=run_all)


def run(args: argparse.Namespace) -> int:
    """Run the experiment that was named."""
    common.check_folder_name("--out", args.out)
    common.announce_compilation()
    return int(args.run_experiment(args) or 0)


def run_one(args: argparse.Namespace) -> int:
    """Run one experiment, draw its figures into `--out` where it has any and matplotlib is there, write a manifest."""
    from reproductions.verdicts import ROWS, conventions_of, overview_table, write_manifest

    if args.record and args.quick:
        raise InvalidInputError("--quick figures are not for pages: leave out --record or --quick")
    settings = {name: value for name, value in plain(vars(args)).items() if name not in _OF_THE_COMMAND}
    code = _run_and_draw(args.experiment_module, args)
    if code == 0:
        name = args.experiment
        rows = ROWS[name](args.result)
        if not args.json:
            sys.stdout.write(f"\n{overview_table(rows)}\n")
        if args.record:
            note(f"wrote {record(name, settings, rows, args.result)}")
        write_manifest(Path(args.out, "manifest.json"), {name: settings}, {name: conventions_of(args.result)})
    return code


def _run_and_draw(experiment: Any, args: argparse.Namespace) -> int:
    code = int(experiment.run(args) or 0)
    if code == 0 and hasattr(experiment, "figures"):
        from truerank.report.plots import draw_figures

        try:
            paths = draw_figures(experiment.figures(args), args.out)
        except MissingExtraError as error:
            common.note(f"figures were left out: {error}")
        else:
            for path in paths:
                common.note(f"wrote {path}")
    return code


def run_all(args: argparse.Namespace) -> int:
    """Run every experiment, one after the other, then print one table of published figures, ours and verdicts.

    Every experiment keeps its finished pieces in its own folder, so that a run that was killed goes on; one that was
    finished under the same settings and version is not run again. `svm-map` takes part where the folder holds
    trec9-web-runs/. With `--quick` random assignments and wide grids are left out.
    """
    from reproductions.verdicts import (
        ROWS,
        conventions_of,
        finished,
        overview_table,
        write_finished,
        write_manifest,
    )

    quick = ["--quick"] if args.quick else []
    rows: list[dict[str, Any]] = []
    settings: dict[str, dict[str, Any]] = {}
    conventions: dict[str, dict[str, str]] = {}
    for name, module in EXPERIMENTS.items():
        experiment = import_module(module)
        parser = argparse.ArgumentParser(prog=f"python -m reproductions {name}")
        experiment.configure(parser)
        if name == "svm-map":
            runs = Path(args.data, "trec9-web-runs")
            if not runs.is_dir():
                common.note(f"== {name}: left out, {runs} is not there ==")
                continue
            words = ["--runs", str(runs / "runs"), "--qrels", str(runs / "qrels.451-500.txt.xz"), *quick]
        else:
            words = ["--data", args.data, *quick]
        if name == "letor" and args.quick:
            words += ["--repetitions", "0"]
        common.note(f"== {name} ==")
        own = parser.parse_args(words + (["--out", f"{args.out}/{name}"] if args.out else []))
        settings[name] = plain(vars(own))
        kept = Path(own.out, "verdicts.json")
        found = finished(kept, settings[name])
        if found is not None:
            common.note(f"{name}: finished before, its verdicts are in {kept}; remove it to print the tables again")
            rows += found["rows"]
            conventions[name] = found["conventions"]
            continue
        with redirect_stdout(io.StringIO()) if args.json else nullcontext():
            code = _run_and_draw(experiment, own)
        if code:
            return int(code)
        verdicts = ROWS[name](own.result)
        rows += verdicts
        conventions[name] = conventions_of(own.result)
        write_finished(kept, settings[name], verdicts, conventions[name])
    manifest = Path(args.out or "reproduce-output", "manifest.json")
    written = write_manifest(manifest, settings, conventions)
    common.note(f"wrote {manifest}")
    if args.json:
        print_json({"rows": rows, "manifest": written})
    else:
        sys.stdout.write(f"\nPublished, ours, verdict\n\n{overview_table(rows)}\n")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the words say; errors of input end with their message and status 1."""
    parser = argparse.ArgumentParser(prog="python -m reproductions", description=__doc__, allow_abbrev=False)
    configure(parser)
    try:
        return run(parser.parse_args(arguments))
    except TruerankError as error:
        note(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        note("interrupted: finished pieces are kept")
        return 130


if __name__ == "__main__":
    sys.exit(main())
