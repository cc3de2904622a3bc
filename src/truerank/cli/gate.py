"""`truerank gate`: test in continuous integration whether retrieval is as good as before.

The exit code is 0 for PASS, 1 for FAIL, 3 for INCONCLUSIVE, and 2 for input that cannot be read. The first line is the
verdict. Results are JSON lines such as {"query_id": "q1", "results": ["d3", "d1"]}, or TREC runs; the gold set is JSON
lines such as {"query_id": "q1", "relevant": ["d3"], "language": "de"}, or qrels.
"""

from __future__ import annotations

from dataclasses import replace

from truerank.cli import common, options
from truerank.cli.parser import OutputFile, argument, option, positive

FAILURE = 2
"""Exit code of errors, because exit code 1 is the verdict FAIL."""


class Arguments(options.Judged, options.Segments, options.Collapse, options.Seed, options.Json):
    new: str = argument("results of the new system", "NEW")
    baseline: str = option("results of the system to compare with", "OLD")
    gold: str = option("relevant documents of each query", "FILE", names="--gold --qrels")
    measure: str = option("measure to compare", "NAME", default="nDCG@10")
    margin: float = option("largest loss that does not matter, in the unit of the measure", "D", default=0.02)
    at_least: list[str] = option("minimum means of the new system, such as nDCG@10=0.45", "MEASURE=F …")
    at_most: list[str] = option(
        "maximum mean losses of the new system: no-relevant@K and no-relevant, of the queries with a result; "
        "unanswered, of the queries with relevant documents",
        "LOSS=A …",
    )
    looks: int = option("number of gates on the same queries, which divide the level", "N", type=positive, default=1)
    history: OutputFile | None = option("file that counts the runs of the gate on the same queries", "FILE")
    inconclusive: str | None = option(
        "treatment of an inconclusive result (default: exit code 3)", choices=("pass", "fail")
    )
    summary: OutputFile | None = option("also write Markdown, for a pull request", "FILE")
    convention: options.Convention = options.convention("trec")


def run(args: Arguments) -> int:
    """Print the verdict and the table."""
    from truerank.experiments.gate import gate

    with common.counted_looks(args.history) as history:
        found = gate(
            common.judgements_of(args, args.gold), args.new, args.baseline, args.measure, margin=args.margin,
            at_least=_bounds(args.at_least, "--at-least"), at_most=_bounds(args.at_most, "--at-most"),
            segments=args.segments, looks=args.looks, history=history, collapse=args.collapse,
            convention=args.convention, inconclusive=args.inconclusive, random_state=args.seed,
        )  # fmt: skip
    found = replace(found, notes=[common.worded(note, args.wording) for note in found.notes])
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
            raise common.UsageError(f"{option} must be NAME=NUMBER, such as nDCG@10=0.45, got {pair!r}")
    return bounds
