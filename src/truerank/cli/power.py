"""`truerank power`: how many queries a test needs to find a difference.

Predict the power of a paired test by number of queries, from the differences between two rankings of a pilot.
"""

from __future__ import annotations

import argparse

from truerank.cli import common, options
from truerank.cli.systems import experiment_of, settle_systems


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_system_options(parser, "; two of them")
    add = options.adder(parser)
    add("--measure NAME", "measure to compare", default="nDCG@10")
    add("--effect D", "true difference of the measure to find (default: the observed difference)", type=float)
    add("--power P", "power to reach", default=0.8)
    add("--level P", "significance level", default=0.05)
    add("--comparisons N", "number of comparisons that share the level", default=1)
    add("--queries N …", "numbers of queries to print the power for", type=int, default=[])
    options.share(parser, "test", choices=("randomisation", "t"))
    options.share(parser, "topics", "seed", "json", "training")
    options.add_convention(parser)
    options.add_data_options(parser, columns=False, to="data", why="belongs to --data")


def run(args: argparse.Namespace) -> int:
    """Read the two rankings and print the power."""
    common.settle_convention(args)
    settle_systems(args, least=2)
    experiment = experiment_of(args, args.measure)
    found = experiment.power(
        args.effect, test=args.test, comparisons=args.comparisons, power=args.power, level=args.level, at=args.queries,
        random_state=args.seed,
    )  # fmt: skip
    about = [str(one) for one in (experiment.coverage, experiment.training and experiment.training.text) if one]
    return common.show(args, found.to_dict(), "\n\n".join([str(found), *about]))
