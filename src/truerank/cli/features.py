"""`truerank features`: a feature matrix from what there is, here the TREC runs of several systems."""

from __future__ import annotations

import argparse

from truerank.cli import common

MAPS = {"percentile": "PercentileInQuery", "min-max": "MinMaxInQuery", "z-score": "ZScoreInQuery"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.description = (
        "Join TREC runs of several systems over the same topics into one feature matrix: a row for each document that "
        "some run retrieved for a topic, a column for each run. Written as LETOR text, or as a table if OUT ends in "
        ".csv, .tsv, .parquet, .arrow or .feather."
    )
    parser.add_argument("--runs", nargs="+", required=True, metavar="RUN", help="TREC runs, or folders of them")
    parser.add_argument(
        "--qrels", metavar="FILE", help="grades; without them every grade is 0 and no topic is left out"
    )
    parser.add_argument(
        "--missing",
        choices=("min", "nan"),
        default="min",
        help="score of a document that a run did not retrieve: the run's lowest for the topic minus the margin "
        "(default), or nan",
    )
    parser.add_argument(
        "--margin",
        type=float,
        default=0.05,
        metavar="X",
        help="of --missing min, as a share of the run's range of scores for the topic (default: 0.05)",
    )
    parser.add_argument("--per-query", choices=tuple(MAPS), help="map every column within its topic")
    parser.add_argument("-o", "--output", default="-", metavar="OUT", help="file to write (default: LETOR on stdout)")
    common.add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Read, join, write."""
    import numpy as np

    from truerank.features.runs import join_runs
    from truerank.io.letor.read import write_letor
    from truerank.io.tables import table_kind, write_table
    from truerank.io.trec import read_qrels, read_run

    if args.json and args.output == "-":
        raise common.UsageError("--json prints a summary; name the file of features with -o")
    paths = common.run_paths(args.runs)
    names = common.run_names(paths)
    if args.output != "-":
        common.check_writable(args.output)
    qrels = None if args.qrels is None else read_qrels(args.qrels)
    joined = join_runs([read_run(path) for path in paths], qrels, names=names, missing=args.missing, margin=args.margin)
    data = joined.data
    if data.y is None:
        data.y = np.zeros(data.n_rows)
    if args.per_query:
        import truerank

        data.X = getattr(truerank, MAPS[args.per_query])().fit_transform(data.X, qid=data.qid)
    if args.output != "-" and table_kind(args.output):
        write_table(data, args.output)
    else:
        write_letor(data, args.output)
    summary = {
        "rows": data.n_rows,
        "queries": data.n_queries,
        "features": data.n_features,
        "relevant": int((data.y > 0).sum()),
        "relevant_not_retrieved": None,
    }
    if joined.judgements is not None and joined.judgements.missing_grades is not None:
        summary["relevant_not_retrieved"] = int((joined.judgements.missing_grades > 0).sum())
    if args.json:
        common.print_json(summary)
    elif args.output != "-":
        text = f"wrote {args.output}: {data.n_rows} rows, {data.n_queries} topics, {data.n_features} runs"
        if summary["relevant_not_retrieved"]:
            text += f"; {summary['relevant_not_retrieved']} relevant documents were retrieved by none of them"
        common.note(text)
    return 0
