"""`truerank depth`: does reranking pay, and how many documents need it.

Reads the run of the first stage and the scores of a reranker for its documents, and prints quality and cost by the
number of reranked documents. The least depth is chosen that is shown to be not worse by more than --margin than the
full depth.
"""

from __future__ import annotations

import argparse

import truerank
from truerank.cli import common, options


def configure(parser: argparse.ArgumentParser) -> None:
    add = options.adder(parser)
    add("first FIRST", "run of the first stage")
    add("reranked RERANKED", "run of the reranker: its scores of documents of the first stage")
    add("--qrels FILE", "judgements in any format that `truerank convert` reads", required=True)
    options.share(parser, "grades", "aggregate")
    add("--measure NAME", "measure of the quality", default="nDCG@10")
    add("--margin D", "largest loss that does not matter, in the unit of the measure", default=0.01)
    add("--depths N …", "depths (default: 5 10 20 50 100 200 500 1000 below the full depth)", type=options.positive)
    add("--cost C", "cost of a reranked document", default=1.0)
    add("--fixed-cost C", "cost of a query that is reranked, besides its documents", default=0.0)
    add("--measured-costs DEPTH=C …", "measured cost of a query at each depth", default=[])
    options.add_convention(parser, "trec")
    options.share(parser, "seed", "json")
    options.refuse(parser, "depths", "measured_costs", "are those of --measured-costs")


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    depths, cost = args.depths or None, args.cost
    if args.measured_costs:
        try:
            cost = {int(depth): float(own) for depth, _, own in (pair.partition("=") for pair in args.measured_costs)}
        except ValueError:
            raise common.UsageError(f"--measured-costs must be DEPTH=C, got {' '.join(args.measured_costs)}") from None
        depths = list(cost)
    runs = common.read_runs(args, [args.first, args.reranked])
    first, reranked = runs.values()
    found = truerank.reranking_depth(
        first, reranked, common.read_qrels(args), args.measure, margin=args.margin, depths=depths, cost=cost,
        fixed_cost=args.fixed_cost, convention=args.convention, random_state=args.seed,
    )  # fmt: skip
    return common.show(args, found.to_dict(), str(found))
