"""`truerank reproduce`: published experiments, one module of `experiments` each."""

from __future__ import annotations

import argparse
from importlib import import_module

from truerank.cli import common

# Name -> module with `configure(parser)` and `run(args)`.
EXPERIMENTS: dict[str, str] = {}


def configure(parser: argparse.ArgumentParser) -> None:
    """One sub-command an experiment."""
    experiments = parser.add_subparsers(dest="experiment", metavar="EXPERIMENT", required=True)
    for name, module in EXPERIMENTS.items():
        experiment = import_module(module)
        summary = (experiment.__doc__ or name).strip().splitlines()[0]
        sub = experiments.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        experiment.configure(sub)
        sub.set_defaults(run_experiment=experiment.run)
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
        code = experiment.run(parser.parse_args(words + out))
        if code:
            return int(code)
    return 0
