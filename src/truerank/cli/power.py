"""`truerank power`: predict how many queries a test needs to find a difference. Predict the power of a paired test by
number of queries, from the differences between two rankings of a pilot.
"""

from __future__ import annotations

from truerank.cli import common, options
from truerank.cli.next_command import next_command
from truerank.cli.parser import option
from truerank.cli.systems import experiment_of, named_systems


class Arguments(options.Compared, options.Baseline, options.Test, options.Seed, options.Json):
    measure: str = option("measure to compare", "NAME", default="nDCG@10")
    effect: float | None = option("true difference of the measure to detect (default: the observed difference)", "D")
    power: float = option("power to reach", "P", default=0.8)
    level: float = option("significance level", "P", default=0.05)
    comparisons: int = option("number of comparisons among which the level is divided", "N", default=1)
    queries: list[int] = option("numbers of queries to print the power for", "N …")
    convention: options.Convention | None = options.convention()


def run(args: Arguments) -> int:
    """Read the two rankings and print the power."""
    named = named_systems(args, least=2)
    baseline = None if args.baseline is None else named.baseline(args.baseline)
    experiment = experiment_of(args, named, [args.measure], baseline=baseline)
    found = experiment.power(
        args.effect, test=args.test, comparisons=args.comparisons, power=args.power, level=args.level, at=args.queries,
        random_state=args.seed,
    )  # fmt: skip
    about = [one for one in (experiment.topics_text, experiment.training and experiment.training_text) if one]
    common.show(args, found.to_dict(), "\n\n".join([str(found), *about]))
    next_command(args, "compare", measure=[args.measure])
    return 0
