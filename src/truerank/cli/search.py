"""`truerank text search`: the best documents of each query under a retrieval function, as a TREC run."""

from __future__ import annotations

import argparse

from truerank.cli import common, options


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("index", metavar="INDEX", help="a folder that `truerank text index` wrote")
    parser.add_argument(
        "queries", metavar="QUERIES", help='JSON lines {"id", "text"}, a table, TREC topics or SMART queries'
    )
    parser.add_argument(
        "--function",
        default="bm25",
        metavar="NAME",
        help="bm25 (default), cosine, tfidf, dirichlet, jelinek-mercer, latent, with parameters as in "
        "'bm25(k1=0.9, b=0.4, analyser=porter, field=title)'",
    )
    options.add_query_options(parser)
    options.add_depth_option(parser, "documents of each query (default: 1000)", 1000)
    parser.add_argument("--tag", type=options.tag, default="truerank", help="name of the run (default: truerank)")
    options.add_threads_option(parser)
    options.add_output_option(parser, "where the run goes (default: stdout)")


def run(args: argparse.Namespace) -> int:
    """Search and write."""
    from truerank.io.documents import read_queries
    from truerank.text.index import Index
    from truerank.text.retrieval import retrieve

    index = Index(args.index)
    queries = read_queries(args.queries, field=args.query_field)
    found = retrieve(index, queries, args.function, depth=args.depth, n_jobs=args.threads)
    found.write(args.output or "-", tag=args.tag)
    common.note_nothing_found(queries, found.query_ids[found.offsets[1:] > found.offsets[:-1]].tolist())
    return 0
