"""`truerank train --list`: what can be trained, with parameters and defaults."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

from truerank.cli import common


def run(args: argparse.Namespace) -> int:
    """List every ranker, or describe one."""
    from truerank.models.registry import RANKERS

    names = list(RANKERS) if args.list == "" else [args.list]
    classes = {name: common.ranker_class(name) for name in names}
    described = {name: _describe(cls) for name, cls in classes.items()}
    if args.json:
        common.print_json(described)
    elif args.list:
        print(f"{args.list}: truerank.{classes[args.list].__name__}\n\n{inspect.getdoc(classes[args.list])}")
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
