"""`truerank text links`: compute PageRank and relevance propagation over an edge list. Compute the PageRank of every
node of an edge list as a CSV table. With --index and --queries: compute six variants of relevance propagation as TREC
runs, which `truerank text features --runs` joins.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import truerank
from truerank.cli import common
from truerank.cli.parser import Options, Output, OutputFolder, argument, only, option, positive, refuse
from truerank.core.files import one_step


class Arguments(Options):
    edges: str = argument("a line for each link: source target (.gz .xz .zst, or -)", "EDGES")
    damping: float | None = option("damping of PageRank (default: 0.85)", "D")
    index: str | None = option("an index whose document ids are the nodes", "DIR")
    queries: str | None = option("queries, as for `truerank text search`", "Q")
    alpha: float | None = option("a page's own share (default: 0.8)", "A")
    depth: int | None = option("documents of each query (default: 1000)", "N", type=positive)
    output: str = option(
        "output file (default: stdout), or with --queries a folder of runs",
        "OUT",
        default="-",
        writes=lambda args: OutputFolder if args.queries else Output,
    )
    RULES = (
        refuse("damping", "queries", "belongs to PageRank. Leave --index and --queries out"),
        only("alpha depth", "queries", "belongs to relevance propagation: give --index and --queries"),
    )


def run(args: Arguments) -> int:
    """Read the links, and write ranks of nodes or runs."""
    if (args.index is None) != (args.queries is None):
        raise common.UsageError("relevance propagation requires an index and queries. Give both --index and --queries")
    graph = truerank.read_links(args.edges)
    if args.queries is not None and args.index is not None:
        return _propagate(args, args.index, args.queries, graph)
    ranks = truerank.pagerank(graph, **common.given(args, "damping"))
    with common.output(args.output) as stream:
        csv.writer(stream, lineterminator="\n").writerows([("id", "pagerank"), *zip(graph.names or (), ranks.tolist())])
    return 0


def _propagate(args: Arguments, folder: str, asked: str, graph: Any) -> int:
    from truerank.links.propagation import VARIANTS, graph_of_index, propagated_run

    index, queries = truerank.Index(folder), truerank.read_queries(asked)
    own = graph_of_index(graph, index)
    if not own.n_edges:
        raise common.InvalidInputError(
            f"{args.edges}: no link connects documents of {folder}. The nodes must be document ids, got "
            f"{(graph.names or [])[:3]}"
        )
    settings = common.given(args, "alpha", "depth")
    out = Path(args.output)
    out.mkdir(parents=True, exist_ok=True)
    with one_step():
        for variant in VARIANTS:
            args.outputs.add(out / f"{variant}.run")
            found = propagated_run(index, queries, own, variant, **settings)
            found.write(out / f"{variant}.run", tag=variant)
    return 0
