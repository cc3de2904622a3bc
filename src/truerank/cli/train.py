"""`truerank train`: learn a ranker and save it."""

from __future__ import annotations

import argparse
import time

from truerank.cli import common


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("train", metavar="TRAIN", help="judged rankings: a LETOR file (.gz .xz .zst), a table, or -")
    common.add_ranker_options(parser)
    parser.add_argument("--valid", metavar="FILE", help="validation queries, for early stopping and selection")
    parser.add_argument("--model", required=True, metavar="FILE", help="where the model goes, as JSON")
    common.add_data_options(parser)
    common.add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Read, fit, save; a summary goes to stderr, or with --json to stdout."""
    common.check_writable(args.model)
    start = time.process_time()
    ranker = common.make_ranker(args.ranker, common.parse_settings(args.set), args.seed)
    loaded = time.process_time()
    data = common.read_data(args.train, args)
    valid = None if args.valid is None else common.read_data(args.valid, args)
    read = time.process_time()
    ranker.fit(data, eval_set=valid)
    fitted = time.process_time()
    from truerank.core.model_file import save_model

    save_model(ranker, args.model)
    training = float(ranker.score(data))
    validation = None if valid is None else float(ranker.score(valid))
    measure = getattr(ranker, "measure", None) or "nDCG@10"
    summary = {
        "ranker": args.ranker,
        "params": ranker.get_params(deep=False),
        "rows": data.n_rows,
        "queries": data.n_queries,
        "features": data.n_features,
        "measure": str(measure),
        "convention": getattr(ranker, "convention", "ranklib"),
        "train": training,
        "valid": validation,
        "status": ranker.status_,
        "cpu_seconds": {"load": loaded - start, "read": read - loaded, "fit": fitted - read},
        "model": args.model,
    }
    if args.json:
        common.print_json(summary)
        return 0
    held = "" if validation is None else f", {validation:.4f} on the validation queries"
    common.note(
        f"{args.ranker}: {data.n_rows} rows, {data.n_queries} queries, {data.n_features} features; "
        f"{summary['measure']} ({summary['convention']}) {training:.4f} on the training queries{held}\n"
        f"{ranker.status_}\n"
        f"model written to {args.model} (CPU seconds: reading {read - loaded:.2f}, fitting {fitted - read:.2f})"
    )
    return 0
