"""`truerank rankers`: what can be trained, with parameters and defaults."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

from truerank.cli import common
from truerank.core.names import nearest


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="show this ranker's whole documentation")
    common.add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """List every ranker, or describe one."""
    from truerank.models.registry import RANKERS, ranker_class

    if args.name is not None and args.name not in RANKERS:
        near = nearest(args.name, RANKERS)
        raise common.UsageError(f"unknown ranker {args.name!r}{near}; known are: {', '.join(RANKERS)}")
    names = list(RANKERS) if args.name is None else [args.name]
    described = {name: _describe(ranker_class(name)) for name in names}
    if args.json:
        common.print_json(described)
    elif args.name is not None:
        print(f"{args.name}: truerank.{ranker_class(args.name).__name__}\n\n{inspect.getdoc(ranker_class(args.name))}")
    else:
        for name, entry in described.items():
            params = ", ".join(f"{key}={value!r}" for key, value in entry["params"].items())
            print(
                f"{name}  ({entry['class']})\n    {entry['summary']}\n    {params}\n    missing values: "
                f"{entry['missing_values']}"
            )
    return 0


def _describe(cls: type[Any]) -> dict[str, Any]:
    summary = (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")
    return {
        "class": cls.__name__,
        "summary": summary,
        "params": cls().get_params(deep=False),
        "missing_values": cls.missing_values,
    }
