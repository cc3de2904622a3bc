"""`truerank predict`: one score a line, in the order of the rows, or a TREC run."""

from __future__ import annotations

import argparse
from typing import Any

from truerank.cli import common, options


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("model", metavar="MODEL", help="a model that `truerank train` wrote")
    parser.add_argument("data", metavar="DATA", nargs="?", help="a LETOR file (.gz .xz .zst), a table, or -")
    parser.add_argument("-o", "--output", metavar="FILE", help="output file (default: standard output)")
    parser.add_argument(
        "--format",
        choices=("scores", "run"),
        help="scores: one a line, in the order of the rows; run: a TREC run (default: scores, or run with --index)",
    )
    runs = parser.add_argument_group("with --format run")
    runs.add_argument("--tag", help="name of the run (default: truerank)")
    runs.add_argument("--depth", type=int, metavar="K", help="keep the best K documents of each query")
    text = parser.add_argument_group("with a model of `truerank text pipeline`")
    text.add_argument("--index", metavar="DIR", help="index of the documents")
    text.add_argument("--queries", metavar="Q", help='JSON lines {"id", "text"}, a table, TREC topics or SMART queries')
    text.add_argument("--query-field", metavar="FIELD", help="the field that is the query (TREC: title, desc, narr)")
    options.add_cluster_option(parser)
    options.add_data_options(parser)


def run(args: argparse.Namespace) -> int:
    """Score every row, and write the scores in a form that restores the exact bits."""
    if args.format is None:
        args.format = "scores" if args.index is None and args.queries is None else "run"
    if args.format == "run":
        from truerank.cli import rank

        args.tag = "truerank" if args.tag is None else args.tag
        return rank.run(args)
    common.refuse_idle(args, ("tag", "depth", "index", "queries", "query_field"), "belongs to --format run")
    if args.data is None:
        raise common.UsageError("name the data to score")
    if args.cluster is None:
        common.check_writable(args.output)
    model = common.load_ranker(args.model)
    if args.cluster is not None:
        return _parts(args, model)
    scores = common.predicted(model, common.read_data(args.data, args, like=model))
    common.write_scores(args.output, scores)
    return 0


def _parts(args: argparse.Namespace, model: Any) -> int:
    """One file of scores a partition, in a folder."""
    folder = common.parts_folder(args)
    with common.cluster_of(args) as client:
        parts = model.predict(common.read_partitions(args.data, args, client, like=model))
    for number, scores in enumerate(parts):
        common.write_scores(str(folder / f"part-{number:05d}.txt"), scores)
    return 0
