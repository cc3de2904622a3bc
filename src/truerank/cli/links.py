"""`truerank text links`: compute PageRank, HostRank and relevance propagation over an edge list. Compute the PageRank
of every node of an edge list, and its HostRank if the URLs are known, as a CSV table. With
--index and --queries: compute ten variants of relevance propagation as TREC runs, which `truerank text features
--runs` joins.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import truerank
from truerank.cli import common
from truerank.cli.parser import Options, Output, OutputFolder, argument, only, option, positive, refuse
from truerank.core.errors import DataFileError
from truerank.core.files import one_step


class Arguments(Options):
    edges: str = argument("a line for each link: source target (.gz .xz .zst, or -)", "EDGES")
    urls: str | None = option("a line for each node: id URL (default: ids that are URLs)", "FILE")
    damping: float | None = option("damping of PageRank (default: 0.85)", "D")
    index: str | None = option("an index whose document ids are the nodes", "DIR")
    queries: str | None = option("queries, as for `truerank text search`", "Q")
    alpha: float | None = option("share of a page's own score (default: 0.8)", "A")
    depth: int | None = option("documents of each query (default: 1000)", "N", type=positive)
    output: str = option(
        "output file (default: stdout), or with --queries a folder of runs",
        "OUT",
        default="-",
        writes=lambda args: OutputFolder if args.queries else Output,
    )
    RULES = (
        refuse("damping", "queries", "applies only to PageRank. Leave --index and --queries out"),
        only("alpha depth", "queries", "applies only to relevance propagation: give --index and --queries"),
    )


def run(args: Arguments) -> int:
    """Read the links, and write ranks of nodes or runs."""
    if (args.index is None) != (args.queries is None):
        raise common.UsageError("relevance propagation requires an index and queries. Give both --index and --queries")
    graph = truerank.read_links(args.edges)
    names = graph.names or []
    urls = _urls(args.urls, names)
    if args.queries is not None and args.index is not None:
        return _propagate(args, args.index, args.queries, graph, dict(zip(names, urls)) if urls else {})
    damping = common.given(args, "damping")
    columns: dict[str, Any] = {"pagerank": truerank.pagerank(graph, **damping)}
    if urls:
        columns["hostrank"] = truerank.hostrank(graph, urls, **damping)
    else:
        common.note("truerank text links: HostRank is not computed without the URLs of the nodes. Add --urls FILE")
    with common.output(args.output) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["id", *columns])
        for row in zip(names, *(values.tolist() for values in columns.values())):
            writer.writerow(row)
    return 0


def _urls(path: str | None, names: list[str]) -> list[str] | None:
    from truerank.io.letor.grammar import check_bytes
    from truerank.io.streams import Source

    if path is None:
        return names if names and all("://" in name for name in names) else None
    lines = []
    with Source(path) as stream:
        for number, line in stream.lines(1 << 20):
            check_bytes(line or b"", path, number)
            lines.append((number, (line or b"").decode("utf-8")))
    known = common.read_pairs(lines, "id URL", path)
    missing = [name for name in names if name not in known]
    if missing:
        raise DataFileError(
            f"node {missing[0]!r} has no URL ({len(missing)} are missing). Add a line `{missing[0]} URL`", path
        )
    return [known[name] for name in names]


def _propagate(args: Arguments, folder: str, asked: str, graph: Any, urls: dict[str, str]) -> int:
    from truerank.links.graph import site_parents
    from truerank.links.propagation import ALONG_TREE, VARIANTS, graph_of_index, propagated_run

    index, queries = truerank.Index(folder), truerank.read_queries(asked)
    own = graph_of_index(graph, index)
    if not own.n_edges:
        raise common.InvalidInputError(
            f"{args.edges}: no link connects documents of {folder}. The nodes must be document ids, got "
            f"{(graph.names or [])[:3]}"
        )
    # A document that no link names has no URL: it is the root of a site of its own.
    parents = None
    if urls:
        parents = site_parents([urls.get(name, f"//{name}.invalid") for name in index.document_ids().tolist()])
    settings = common.given(args, "alpha", "depth")
    out = Path(args.output)
    out.mkdir(parents=True, exist_ok=True)
    with one_step():
        for variant in VARIANTS:
            if parents is None and variant.split("-", 1)[1] in ALONG_TREE:
                continue
            args.outputs.add(out / f"{variant}.run")
            found = propagated_run(index, queries, own, variant, parents=parents, **settings)
            found.write(out / f"{variant}.run", tag=variant)
    if parents is None:
        common.note(
            "truerank text links: variants along the tree of a site require the URLs of the nodes. Add --urls FILE"
        )
    return 0
