"""`truerank text search`: the best documents of each query under a retrieval function, as a TREC run."""

from __future__ import annotations

import argparse

from truerank.cli import common


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
    parser.add_argument("--query-field", metavar="FIELD", help="the field that is the query (TREC: title, desc, narr)")
    parser.add_argument("--depth", type=int, default=1000, metavar="K", help="documents of each query (default: 1000)")
    parser.add_argument("--tag", default="truerank", help="name of the run (default: truerank)")
    parser.add_argument("--threads", type=int, metavar="N", help="threads (default: 1); -1 uses all processors")
    parser.add_argument("-o", "--output", metavar="FILE", help="where the run goes (default: stdout)")


def run(args: argparse.Namespace) -> int:
    """Search and write."""
    from truerank.io.documents import read_queries
    from truerank.text.index import Index
    from truerank.text.retrieval import retrieve

    common.check_writable(args.output)
    common.check_tag(args.tag)
    common.check_threads(args.threads)
    common.check_positive("--depth", args.depth)
    index = Index(args.index)
    queries = read_queries(args.queries, field=args.query_field)
    found = retrieve(index, queries, args.function, depth=args.depth, n_jobs=args.threads)
    found.write(args.output or "-", tag=args.tag)
    common.note_nothing_found(queries, found.query_ids[found.offsets[1:] > found.offsets[:-1]].tolist())
    return 0
