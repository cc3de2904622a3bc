"""`truerank text features`: compute features from TREC runs, or from an index of documents.

Create a feature matrix for rankers. --runs joins TREC runs of several systems over the same topics: a row for each
document that a run retrieved for a topic, and a column for each run. --index and --queries compute features of text: a
row for each candidate of a query. If the name OUT ends in .csv, .tsv, .parquet, .arrow or .feather, the output is a
table, otherwise LETOR text. `truerank features` asks a search engine for features.
"""

from __future__ import annotations

import os
from typing import Any

import truerank
from truerank.cli import common, options
from truerank.cli.parser import Output, only, option, positive, refuse, within
from truerank.cli.pipeline import families
from truerank.core.names import repeated

MAPS = {"percentile": "PercentileInQuery", "min-max": "MinMaxInQuery", "z-score": "ZScoreInQuery"}


class Writing(options.QueryField, options.Judged, options.Json):
    """Options of a command that writes features of judged documents."""

    queries: str | None
    per_query: str | None = option("scale every column within its topic", choices=tuple(MAPS))
    output: Output


class Arguments(Writing):
    runs: list[str] | None = option("TREC runs, or folders of them", "RUN …")
    index: str | None = option("an index that `truerank text index` wrote", "DIR")
    of_index = within("with --index", to="index")
    queries: str | None = of_index("queries, as for `truerank text search` (default: the texts in --qrels)", "Q")
    families: list[str] | None = of_index(
        "families of features: all, papers (those of two papers), functions, xu-li, feedback, latent, "
        "latent-feedback, coverage, proximity, lengths, numbers, vectors (default: all)",
        "FAMILY …",
    )
    depth: int | None = of_index("candidates of each function (default: 1000)", "N", type=positive)
    of_runs = within("with --runs", to="runs")
    missing: str | None = of_runs(
        "score of documents that a run lacks: nan, or its lowest score of the topic minus a margin (default: min)",
        choices=("min", "nan"),
    )
    margin: float | None = of_runs("this margin, as a share of the run's range of scores (default: 0.05)", "X")
    qrels: str | None = option("judgements in any format (default: every grade is 0, and no topic is left out)", "FILE")
    vectors: list[str] | None = option(
        "vectors of documents, a file for each encoder, whose similarities with the queries become columns (files as "
        "in `truerank text search`)",
        "FILE …",
    )
    query_vectors: list[str] | None = option("vectors of queries, in the order of --vectors", "FILE …", to="vectors")
    output: Output = option("output file (default: LETOR text on stdout)", "OUT", default="-")
    RULES = (
        refuse("runs", "index"),
        only("query_field", "index"),
        only("grades aggregate", "qrels"),
        refuse("margin", "missing=nan", "requires --missing min"),
        refuse("json", "output=-", "prints a summary to standard output. Name the file of features with -o FILE"),
    )


def run(args: Arguments) -> int:
    """Compute the features of runs or texts, and write them."""
    if args.index is not None:
        return _of_text(args, args.index)
    if args.runs is None:
        raise common.UsageError("no input is named. Name runs (--runs RUN …) or an index (--index DIR)")
    paths = common.run_paths(args.runs)
    names = common.run_names(paths)
    qrels = None if args.qrels is None else common.qrels_of(args)
    runs = [truerank.read_run(path) for path in paths]
    joined = truerank.join_runs(runs, qrels, names=names, **common.given(args, "missing", "margin"))
    data = mapped(_with_vectors(joined, args), args)
    lost = None if joined.missing_grades is None else int((joined.missing_grades > 0).sum())
    text = f"; {lost} relevant documents were retrieved by no run" if lost else ""
    return written(args, data, text, relevant_not_retrieved=lost)


def _of_text(args: Arguments, folder: str) -> int:
    """Return the features of the candidates of each query in an index."""
    if args.queries is None and args.qrels is None:
        raise common.UsageError("--index requires queries. Add --queries FILE, or --qrels FILE with texts as queries")
    index = truerank.Index(folder)
    features = truerank.TextFeatures(
        families(args.families or ["all"]), scaled=False, **common.given(args, "depth")
    ).fit(index)
    qrels = None if args.qrels is None else common.qrels_of(args)
    queries = queries_of(args, qrels)
    data = mapped(_with_vectors(features.transform(queries, index, qrels), args), args)
    common.note_nothing_found(queries, data.query_ids.tolist())
    unjudged = [] if qrels is None else sorted({*data.query_ids.tolist()} - {*qrels.query_ids.tolist()})
    if unjudged:
        common.note(
            f"truerank text features: all rows of {common.counted(len(unjudged), 'unjudged query')} have grade 0: "
            f"{common.few(unjudged)}"
        )
    return written(args, data)


def queries_of(args: Writing, qrels: Any) -> Any:
    """Return the queries of `--queries` (default: the texts of the judged queries)."""
    from truerank.io.documents import queries_of

    return queries_of(qrels) if args.queries is None else truerank.read_queries(args.queries, field=args.query_field)


def _with_vectors(data: truerank.RankingData, args: Arguments) -> truerank.RankingData:
    """Return the data with columns of vector similarities, named by the files of vectors."""
    if args.vectors is None:
        return data
    of_queries = args.query_vectors or []
    if len(args.vectors) != len(of_queries):
        given = f"{len(args.vectors)} and {len(of_queries)}"
        raise common.UsageError(
            f"--vectors and --query-vectors must name the same number of files, got {given}. "
            "Name two files for each encoder"
        )
    names = [os.path.splitext(os.path.basename(path))[0] for path in args.vectors]
    if twice := repeated(names):
        raise common.UsageError(f"two files of --vectors have the name {twice[0]!r}, which names columns. Rename one")
    return truerank.vector_features(data, dict(zip(names, zip(args.vectors, of_queries))))


def mapped(data: truerank.RankingData, args: Writing) -> Any:
    import numpy as np

    if data.y is None:
        data.y = np.zeros(data.n_rows)
    if args.per_query:
        data.X = getattr(truerank, MAPS[args.per_query])().fit_transform(data.X, qid=data.qid)
    return data


def written(args: Writing, data: Any, remark: str = "", **more: Any) -> int:
    """Write the data, and print a summary with the entries `more`."""
    (truerank.write_table if common.table_kind(args.output) else truerank.write_letor)(data, args.output)
    if args.output == "-":
        return 0
    summary = {"rows": data.n_rows, "queries": data.n_queries, "features": data.n_features}
    text = f"wrote {args.output}: {common.size_of(data)}{remark}"
    return common.tell(args, summary | {"relevant": int((data.y > 0).sum())} | more, text)
