"""`truerank text search`: the best documents of each query under a retrieval function, as a TREC run."""

from __future__ import annotations

import argparse

import truerank
from truerank.cli import common, options


def configure(parser: argparse.ArgumentParser) -> None:
    add = options.adder(parser)
    add("index INDEX", "a folder that `truerank text index` wrote")
    add("queries QUERIES", 'JSON lines {"id", "text"}, a table, TREC topics or SMART queries')
    add(
        "--function NAME",
        "bm25, cosine, tfidf, dirichlet, jelinek-mercer or latent, with parameters as in "
        "'bm25(k1=0.9, b=0.4, analyser=porter, field=title)'",
        default="bm25",
    )
    add("--depth N", "documents of each query", type=options.positive, default=1000)
    add("--tag NAME", "name of the run", type=options.tag, default="truerank")
    options.share(parser, "query-field", "threads")
    add("-o --output FILE", "output file of the run (default: stdout)", type=options.Output)


def run(args: argparse.Namespace) -> int:
    """Search and write."""
    index = truerank.Index(args.index)
    queries = truerank.read_queries(args.queries, field=args.query_field)
    found = truerank.retrieve(index, queries, args.function, depth=args.depth, n_jobs=args.threads)
    found.write(args.output or "-", tag=args.tag)
    common.note_nothing_found(queries, found.query_ids[found.offsets[1:] > found.offsets[:-1]].tolist())
    return 0
