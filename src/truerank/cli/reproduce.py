"""`truerank reproduce`: published experiments, one module of `experiments` each."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

from truerank.cli import common
from truerank.core.errors import MissingExtraError

# Name -> module with `configure(parser)` and `run(args)`.
EXPERIMENTS: dict[str, str] = {
    "oblivious": "truerank.papers.oblivious",
    "adarank": "truerank.papers.adarank",
    "letor": "truerank.papers.letor",
    "descent": "truerank.papers.descent",
    "calibration": "truerank.papers.calibration",
    "svm-map": "truerank.papers.svm_map",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """One sub-command an experiment."""
    experiments = parser.add_subparsers(dest="experiment", metavar="EXPERIMENT", required=True)
    for name, module in EXPERIMENTS.items():
        experiment = import_module(module)
        summary = (experiment.__doc__ or name).strip().splitlines()[0]
        sub = experiments.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        experiment.configure(sub)
        sub.set_defaults(run_experiment=run_one, experiment_module=experiment)
    sub = experiments.add_parser("all", help="every experiment that needs only --data", allow_abbrev=False)
    sub.add_argument("--data", required=True, metavar="DIR", help="folder that holds letor4-mq2008/ and so on")
    sub.add_argument("--quick", action="store_true", help="fewer repetitions: shows that everything runs")
    sub.add_argument(
        "--out", metavar="DIR", help="folder of results, figures and resuming (default: each experiment's)"
    )
    common.add_json_option(sub)
    sub.set_defaults(run_experiment=run_all)


def run(args: argparse.Namespace) -> int:
    """Run the experiment that was named."""
    common.announce_compilation()
    return int(args.run_experiment(args) or 0)


def run_one(args: argparse.Namespace) -> int:
    """Run one experiment, then draw its figures into `--out` where it has any and matplotlib is there."""
    return _run_and_draw(args.experiment_module, args)


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
    """Run every experiment that takes --data, with its defaults, one after the other."""
    words = ["--data", args.data, *(["--quick"] if args.quick else []), *(["--json"] if args.json else [])]
    for name, module in EXPERIMENTS.items():
        experiment = import_module(module)
        parser = argparse.ArgumentParser(prog=f"truerank reproduce {name}")
        experiment.configure(parser)
        if not any("--data" in action.option_strings for action in parser._actions):
            continue
        common.note(f"== {name} ==")
        out = ["--out", f"{args.out}/{name}"] if args.out else []
        code = _run_and_draw(experiment, parser.parse_args(words + out))
        if code:
            return int(code)
    return 0
