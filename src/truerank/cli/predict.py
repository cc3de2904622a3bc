"""`truerank predict`: one score a line, in the order of the rows, or a TREC run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from truerank.cli import common, options

if TYPE_CHECKING:
    import numpy as np

    from truerank.data.ranking_data import RankingData


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
        args.tag = "truerank" if args.tag is None else args.tag
        return _rank(args)
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


def _rank(args: argparse.Namespace) -> int:
    """Rank each query; equal scores keep the file's order. Rows without a document id are named by their number."""
    import numpy as np

    from truerank.io.trec import write_run
    from truerank.models.model_file import load_model

    if args.cluster is None:
        common.check_writable(args.output)
    common.check_positive("--depth", args.depth)
    common.check_tag(args.tag)
    model = load_model(args.model)
    if args.index is not None or args.queries is not None:
        return _rank_text(args, model)
    common.refuse_idle(args, ["query_field"], "belongs to --queries")
    if args.data is None:
        raise common.UsageError("name the data to rank, or an index and queries (--index, --queries)")
    if hasattr(model, "features_"):
        raise common.InvalidInputError(f"{args.model}: this model ranks raw text. Add --index and --queries")
    common.check_ranks(model, args.model)
    if args.cluster is not None:
        return _rank_parts(args, model)
    data = common.read_data(args.data, args, like=model)
    scores = data.grouped(common.predicted(model, data))
    if data.doc_ids is None:
        common.note("truerank predict: the data have no document ids; rows are named by their number, from 1")
        doc_ids = (data.grouped(np.arange(data.n_rows)) + 1).astype(str)
    else:
        doc_ids = data.doc_ids
        _check_ids(args.data, data, data.doc_ids)
    write_run(args.output or "-", data.query_ids, data.offsets, doc_ids, scores, tag=args.tag, depth=args.depth)
    return 0


def _rank_parts(args: argparse.Namespace, model: Any) -> int:
    """One run a partition, in a folder; documents without an id are named by partition and row, from 1."""
    import numpy as np

    from truerank.io.trec import write_run

    folder = common.parts_folder(args)
    with common.cluster_of(args) as client:
        parts = common.read_partitions(args.data, args, client, like=model).ranked(model)
    for number, (query_ids, offsets, doc_ids, scores) in enumerate(parts):
        if doc_ids is None:
            doc_ids = np.char.add(f"{number}-", (np.arange(len(scores)) + 1).astype(str))
        part = folder / f"part-{number:05d}.run"
        write_run(part, query_ids, offsets, doc_ids, scores, tag=args.tag, depth=args.depth)
    return 0


def _rank_text(args: argparse.Namespace, model: Any) -> int:
    """The candidates of each query in an index, by a model with its features."""
    from truerank.io.documents import read_queries
    from truerank.text.index import Index

    if args.index is None or args.queries is None or args.data is not None:
        raise common.UsageError("raw text needs both --index and --queries, and no data file")
    common.refuse_idle(args, ["cluster"], "belongs to a data file, and raw text is ranked")
    common.refuse_reading(args, "belongs to a data file, and raw text is ranked")
    if not hasattr(model, "features_"):
        raise common.InvalidInputError(
            f"{args.model}: this model ranks rows of features; make one for raw text with `truerank text pipeline`"
        )
    queries = read_queries(args.queries, field=args.query_field)
    found = model.rank(queries, Index(args.index))
    found.write(args.output or "-", tag=args.tag, depth=args.depth)
    common.note_nothing_found(queries, found.query_ids.tolist())
    return 0


def _check_ids(name: str, data: RankingData, doc_ids: np.ndarray) -> None:
    """Some rows have a document id: then all need one."""
    without = [row for row, doc_id in enumerate(doc_ids.tolist()) if not doc_id]
    if without:
        row = without[0]
        place = (row if data.order is None else int(data.order[row])) + 1
        raise common.InvalidInputError(
            f"{name}: row {place} (query {data.qid[row]}) has no document id and {data.n_rows - len(without)} rows "
            f"have one ({len(without)} have none); end each line with `# docid = <id>`, or take the ids off all lines "
            "to name documents by their row"
        )
