"""`truerank power`: how many queries a test needs to find a difference.

Predict the power of a paired test by number of queries, from the differences between two rankings of a pilot.
"""

from __future__ import annotations

import argparse

import truerank
from truerank.cli import common, options
from truerank.cli.systems import judged_rankings, settle_systems


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
    from truerank.measures import parse_measures
    from truerank.measures.coverage import over_topics
    from truerank.significance import paired_differences

    default = common.settle_convention(args)
    if len(named := parse_measures(args.measure, args.convention)) > 1:
        raise common.UsageError(f"--measure must be one measure, got {len(named)}: {', '.join(named)}")
    (measure,) = named.values()
    if args.qrels is not None:
        measure = over_topics({args.measure: measure}, args.topics)[args.measure]
    measure.check_mean()
    settle_systems(args, least=2)
    if len(args.names) != 2:
        raise common.UsageError(f"power is about two systems, got {len(args.names)}; name two")
    judged, coverage, seen = judged_rankings(args)
    first, second = (measure.per_query(*one) for one in judged.values())
    differences = paired_differences(first, second)
    observed = float(differences.mean())
    found = truerank.queries_needed(
        differences, observed if args.effect is None else args.effect, args.test, comparisons=args.comparisons,
        power=args.power, level=args.level, at=args.queries, random_state=args.seed,
    )  # fmt: skip
    report = found.to_dict() | {"measure": args.measure, "convention": measure.convention, "observed": observed}
    lines = [
        str(found),
        f"Pilot: {args.names[0]} minus {args.names[1]}, {args.measure}, convention {measure.convention}{default}, "
        f"observed difference {observed:+.4f}.",
    ]
    if args.effect is None:
        lines.append(
            "The effect is the observed difference, which is uncertain itself and too large where rankings were chosen "
            "for it. Give the smallest difference that matters to you with --effect."
        )
    if seen is not None:
        report |= {"training_queries": seen.report}
        lines.append(seen.text)
    if coverage is not None:
        report |= {"coverage": coverage.to_dict()}
        lines.append(str(coverage))
    return common.show(args, report, "\n\n".join(lines))
