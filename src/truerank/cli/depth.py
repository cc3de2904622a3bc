"""`truerank depth`: does reranking pay, and how many documents need it.

Reads the run of the first stage and the scores of a reranker for its documents, and prints quality and cost by the
number of reranked documents. The command chooses the least depth that is significantly not worse than the full depth by
more than --margin.
"""

from __future__ import annotations

import truerank
from truerank.cli import common, options
from truerank.cli.parser import argument, option, positive, refuse


class Arguments(options.Judged, options.Seed, options.Json):
    first: str = argument("run of the first stage", "FIRST")
    reranked: str = argument("run of the reranker: its scores of documents of the first stage", "RERANKED")
    qrels: str = option("judgements in any format that `truerank convert` reads", "FILE")
    measure: str = option("measure of the quality", "NAME", default="nDCG@10")
    margin: float = option("largest loss that does not matter, in the unit of the measure", "D", default=0.01)
    depths: list[int] | None = option(
        "depths (default: 5 10 20 50 100 200 500 1000 below the full depth)", "N …", type=positive
    )
    cost: float = option("cost of a reranked document", "C", default=1.0)
    fixed_cost: float = option("cost of a query that is reranked, apart from its documents", "C", default=0.0)
    measured_costs: list[str] = option("measured cost of a query at each depth", "DEPTH=C …")
    convention: options.Convention = options.convention("trec")
    RULES = (refuse("depths", "measured_costs", "are those of --measured-costs"),)


def run(args: Arguments) -> int:
    """Print the table."""
    depths = args.depths or None
    cost: float | dict[int, float] = args.cost
    if args.measured_costs:
        try:
            cost = {int(depth): float(own) for depth, _, own in (pair.partition("=") for pair in args.measured_costs)}
        except ValueError:
            raise common.UsageError(f"--measured-costs must be DEPTH=C, got {' '.join(args.measured_costs)}") from None
        depths = [*cost]
    runs = common.read_runs(args, [args.first, args.reranked])
    first, reranked = runs.values()
    found = truerank.reranking_depth(
        first, reranked, common.read_qrels(args), args.measure, margin=args.margin, depths=depths, cost=cost,
        fixed_cost=args.fixed_cost, convention=args.convention, random_state=args.seed,
    )  # fmt: skip
    return common.show(args, found.to_dict(), str(found))
