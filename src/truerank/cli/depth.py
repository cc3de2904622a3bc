"""`truerank depth`: show whether reranking pays, and how many documents to rerank.

Read the run of the first stage and a reranker's scores of its documents, and print quality and cost by depth, the
number of reranked documents. The command chooses the smallest depth with a loss significantly below --margin, compared
with the full depth.
"""

from __future__ import annotations

import truerank
from truerank.cli import common, options
from truerank.cli.parser import argument, option, positive, refuse, within


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
    by_query: float | None = option(
        "also find the queries for which --shallow documents are enough: their mean loss is at most A", "A"
    )
    promised = within("", to="by_query", why="applies only to single queries: give --by-query A")
    shallow: int | None = promised("depth of these queries, one of the table (default: 0)", "K", type=int)
    confidence: float | None = promised("confidence of this bound (default: 0.9)", "C")
    RULES = (refuse("depths", "measured_costs", "has no effect: --measured-costs names the depths"),)


def run(args: Arguments) -> int:
    """Print quality and cost by depth."""
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
        first, reranked, common.qrels_of(args), args.measure, margin=args.margin, depths=depths, cost=cost,
        fixed_cost=args.fixed_cost, convention=args.convention, random_state=args.seed,
    )  # fmt: skip
    report, text = found.to_dict(), str(found)
    if args.by_query is not None:
        shallow, confidence = args.shallow or 0, 0.9 if args.confidence is None else args.confidence
        cutoff = found.by_query(args.by_query, confidence=confidence, depth=shallow)
        share = cutoff.answered_ if cutoff.threshold_ < float("inf") else 0.0
        report["by_query"] = {"depth": shallow, "at_most": args.by_query, "confidence": confidence,
                              "threshold": cutoff.threshold_, "share": share}  # fmt: skip
        rule = (
            f"rerank {shallow} documents if the best score of the first stage exceeds the next one by at least "
            f"{cutoff.threshold_:.4g} ({share:.1%} of queries), and {found.full} elsewhere; with confidence "
            f"{confidence:g}, the former lose at most {args.by_query:g} on average"
        )
        text += f"\n\nBy query: {rule if share else 'no gap between the best two scores gives this guarantee'}."
    return common.show(args, report, text)
