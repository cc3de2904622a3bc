"""`truerank text search`: retrieve the best documents of each query, as a TREC run.

With an index, documents are ranked by a retrieval function. With --vectors and --query-vectors, documents are ranked
by the inner product with the query, without an index. Files of vectors are .npy or .safetensors, with the ids in
FILE.ids
(one on each line), or Parquet or Arrow with a column of ids and a list column.
"""

from __future__ import annotations

import truerank
from truerank.cli import common, options
from truerank.cli.parser import Output, argument, one_word, option, positive, refuse


class Arguments(options.QueryField, options.Threads):
    index: str | None = argument("a folder that `truerank text index` wrote", "[INDEX]")
    queries: str | None = argument('JSON lines {"id", "text"}, a table, TREC topics or SMART queries', "[QUERIES]")
    function: str | None = option(
        "bm25, cosine, tfidf, dirichlet, jelinek-mercer or latent, with parameters as in "
        "'bm25(k1=0.9, b=0.4, analyser=porter, field=title)' (default: bm25)",
        "NAME",
    )
    vectors: str | None = option("vectors of the documents: rank by inner products instead", "FILE")
    query_vectors: str | None = option("vectors of the queries", "FILE", to="vectors")
    ids: str | None = option(
        "id of each document, one on each line (default: those of --vectors)", "FILE", to="vectors"
    )
    query_ids: str | None = option("id of each query (default: those of --query-vectors)", "FILE", to="vectors")
    similarity: str | None = option(
        "score of a document (default: inner-product)", choices=("inner-product", "cosine"), to="vectors"
    )
    depth: int = option("documents of each query", "N", type=positive, default=1000)
    tag: str = option("name of the run", "NAME", type=one_word, default="truerank")
    output: Output | None = option("output file of the run (default: stdout)", "FILE")
    RULES = (refuse("index queries function query_field threads", "vectors"),)


def run(args: Arguments) -> int:
    """Retrieve documents, and write the run."""
    if args.vectors is not None:
        return _by_vectors(args)
    if args.index is None or args.queries is None:
        raise common.UsageError(
            "no index is named. Name an index and a file of queries, or add --vectors FILE --query-vectors FILE"
        )
    index = truerank.Index(args.index)
    queries = truerank.read_queries(args.queries, field=args.query_field)
    found = truerank.retrieve(index, queries, args.function or "bm25", depth=args.depth, n_jobs=args.threads)
    found.write(args.output or "-", tag=args.tag)
    common.note_nothing_found(queries, found.query_ids[found.offsets[1:] > found.offsets[:-1]].tolist())
    return 0


def _by_vectors(args: Arguments) -> int:
    if args.query_vectors is None:
        raise common.UsageError("--vectors requires the vectors of the queries. Add --query-vectors FILE")
    documents = truerank.read_vectors(args.vectors, args.ids)
    queries = truerank.read_vectors(args.query_vectors, args.query_ids)
    more = common.given(args, "similarity")
    found = truerank.retrieve_vectors(documents, queries, depth=args.depth, tag=args.tag, **more)
    found.write(args.output or "-", tag=args.tag)
    return 0
