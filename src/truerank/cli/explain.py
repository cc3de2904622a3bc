"""`truerank explain`: why one document of a query stands above another."""

from __future__ import annotations

import argparse

from truerank.cli import common


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("model", metavar="MODEL", help="a model that `truerank train` wrote")
    parser.add_argument("data", metavar="DATA", help="a LETOR file (.gz .xz .zst), a table, or -")
    parser.add_argument("--query", required=True, metavar="Q", help="name of the query")
    parser.add_argument("--above", metavar="A", help="document that stands above (default: the query's first)")
    parser.add_argument(
        "--below",
        metavar="B",
        help="document that stands below (default: the first one below A with a higher grade, else the next)",
    )
    parser.add_argument("--measure", metavar="NAME", help="measure of an exchange (default: the ranker's, or nDCG@10)")
    parser.add_argument("--most", type=int, default=12, metavar="N", help="features to list (default: 12)")
    common.add_convention_option(parser)
    common.add_json_option(parser)
    common.add_data_options(parser)
    common.add_column_options(parser)


def run(args: argparse.Namespace) -> int:
    """Print the contributions; rows without document ids are named by their number in the file, from 1."""
    from truerank.inspection.explanation import explain

    if args.most < 1:
        raise common.UsageError(f"--most must be at least 1, got {args.most}")
    model = common.load_ranker(args.model)
    data = common.read_data(args.data, args, like=model)
    common.announce_compilation()
    above, below = args.above, args.below
    if data.doc_ids is None:
        above, below = (_row(name) for name in (above, below))
    result = explain(
        model, data, query=args.query, above=above, below=below, measure=args.measure, convention=args.convention
    )
    if args.json:
        common.print_json(result.to_dict())
    else:
        print(result.to_text(args.most))
    return 0


def _row(name: str | None) -> int | None:
    """Number of a row from 0; the command line counts from 1, as `truerank rank` does."""
    if name is None:
        return None
    if not name.isdigit() or int(name) < 1:
        raise common.UsageError(f"the data have no document ids: name a row by its number, from 1; got {name!r}")
    return int(name) - 1
