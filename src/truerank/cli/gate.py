"""`truerank gate`: whether retrieval is as good as before, as an exit code for continuous integration.

The exit code is 0 for PASS, 1 for FAIL, 3 for INCONCLUSIVE, and 2 for input that cannot be read. The first line is the
verdict. Results are JSON lines such as {"query_id": "q1", "results": ["d3", "d1"]}, or TREC runs; the gold set is JSON
lines such as {"query_id": "q1", "relevant": ["d3"], "language": "de"}, or qrels.
"""

from __future__ import annotations

import argparse

from truerank.cli import common, options

FAILURE = 2
"""The exit code of errors, because 1 is a verdict."""


def configure(parser: argparse.ArgumentParser) -> None:
    add = options.adder(parser)
    add("new NEW", "results of the new system")
    add("--baseline OLD", "results of the system to compare with", required=True)
    add("--gold FILE", "relevant documents of each query", required=True)
    options.share(parser, "grades", "aggregate")
    add("--measure NAME", "measure to compare", default="nDCG@10")
    add("--margin D", "largest loss that does not matter, in the unit of the measure", default=0.02)
    add("--at-least MEASURE=F …", "least means of the new system, such as nDCG@10=0.45", default=[])
    add(
        "--at-most LOSS=A …",
        "largest mean losses of the new system: no-relevant@K and no-relevant, of the queries with a result; "
        "unanswered, of the queries with relevant documents",
        default=[],
    )
    options.share(parser, "segments", "collapse")
    add("--looks N", "number of gates on the same queries, which share the level", type=options.positive, default=1)
    add("--history FILE", "file that counts the gates on the same queries", type=options.OutputFile)
    add("--inconclusive", "what an inconclusive result is: pass, fail, or exit code 3", choices=("pass", "fail"))
    add("--summary FILE", "also write Markdown, for a pull request", type=options.OutputFile)
    options.add_convention(parser, "trec")
    options.share(parser, "seed", "json")


def run(args: argparse.Namespace) -> int:
    """Print the verdict and the table."""
    from truerank.experiments.gate import gate

    with common.counted_looks(args.history) as history:
        found = gate(
            common.judgements_of(args, args.gold), args.new, args.baseline, args.measure, margin=args.margin,
            at_least=_bounds(args.at_least, "--at-least"), at_most=_bounds(args.at_most, "--at-most"),
            segments=args.segments, looks=args.looks, history=history, collapse=args.collapse,
            convention=args.convention, inconclusive=args.inconclusive, random_state=args.seed,
        )  # fmt: skip
    if args.summary is not None:
        with common.output(args.summary) as stream:
            stream.write(found.to_markdown())
    common.show(args, found.to_dict(), str(found))
    return found.exit_code


def _bounds(pairs: list[str], option: str) -> dict[str, float]:
    bounds = {}
    for pair in pairs:
        name, _, bound = pair.rpartition("=")
        try:
            bounds[name] = float(bound)
        except ValueError:
            bounds[name] = float("nan")
        if not name or bounds[name] != bounds[name]:
            raise common.UsageError(f"{option} must be NAME=NUMBER, got {pair!r}")
    return bounds
