"""`truerank report`: one self-contained HTML page of evidence on score files, runs or models."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from typing import Any

from truerank.cli import common, options


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "models", nargs="*", metavar="MODEL", help="models that score --data; the first is the baseline"
    )
    parser.add_argument("-o", "--output", metavar="FILE", default="report.html", help="the page (default: report.html)")
    parser.add_argument("--data", metavar="FILE", help="judged documents: a LETOR file (.gz .xz .zst), a table, or -")
    parser.add_argument(
        "--scores", nargs="+", action="extend", default=[], metavar="FILE", help="score files of --data"
    )
    parser.add_argument("--qrels", metavar="FILE", help="TREC judgments, in place of --data")
    parser.add_argument(
        "--run",
        "--runs",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        dest="runs",
        help="TREC runs (with --qrels)",
    )
    parser.add_argument(
        "--measures", nargs="+", default=["AP nDCG@10 RR"], metavar="NAME", help="the first is compared"
    )
    parser.add_argument("--title", default="Ranking report", help="heading of the page")
    options.add_convention_option(parser, default=None)
    options.add_data_options(parser)


def run(args: argparse.Namespace) -> int:
    """Write the page; systems are models, then score files, or runs, in the order named."""
    from truerank.measures import parse_measures
    from truerank.report.evidence import make_report

    common.check_writable(args.output)
    convention = args.convention or ("trec" if args.qrels else "ranklib")
    names = " ".join(args.measures)
    parse_measures(names, convention)
    if (args.data is None) == (args.qrels is None):
        raise common.UsageError("give --data FILE with models or --scores FILE …, or --qrels FILE with --run FILE …")
    if args.qrels is not None:
        common.refuse_reading(args, "belongs to --data")
    systems, data = _of_data(args) if args.data is not None else (_of_runs(args), None)
    files = [
        path for path in (args.data, args.qrels, *args.models, *args.scores, *args.runs) if path not in (None, "-")
    ]
    text = make_report(
        systems,
        measures=names,
        convention=convention,
        data=data,
        title=args.title,
        made_by=shlex.join(["truerank", *sys.argv[1:]]),
        sources={os.path.basename(path): _digest(path) for path in files},
    )
    with common.output(args.output) as stream:
        stream.write(text)
    if args.output != "-":
        common.note(f"wrote {args.output}: {len(systems)} systems, {len(text) / 1e6:.1f} MB")
    return 0


def _of_data(args: argparse.Namespace) -> tuple[list[Any], Any]:
    from truerank.cli.predict import predicted
    from truerank.io.scores import read_scores
    from truerank.report.evidence import System

    if args.runs:
        raise common.UsageError("runs belong to --qrels; with --data give models or --scores")
    if not args.models and not args.scores:
        raise common.UsageError("--data needs models or --scores FILE …")
    models = [common.load_ranker(path) for path in args.models]
    known = [[str(name) for name in getattr(model, "feature_names_in_", ())] for model in models]
    same = bool(known) and bool(known[0]) and all(names == known[0] for names in known)
    if known and all(known) and not same and not args.features and not args.exclude:
        args.features = list(dict.fromkeys(name for names in known for name in names))
    data = common.read_graded(args.data, args, like=models[0] if same else None)
    judgements = data.judgements()
    found = [(path, predicted(model, data), model) for path, model in zip(args.models, models)]
    found += [(path, read_scores(path, data.n_rows), None) for path in args.scores]
    names = _names([path for path, _, _ in found])
    return [
        System(name, judgements, data.grouped(scores), model) for name, (_, scores, model) in zip(names, found)
    ], data


def _of_runs(args: argparse.Namespace) -> list[Any]:
    from truerank.io.trec import judge_run, read_qrels, read_run
    from truerank.report.evidence import System

    if args.models or args.scores:
        raise common.UsageError("models and score files belong to --data; with --qrels give --run FILE …")
    if not args.runs:
        raise common.UsageError("--qrels needs --run FILE …")
    common.check_one_stdin([args.qrels, *args.runs])
    qrels = common.with_note(args.qrels, read_qrels(args.qrels))
    return [System(name, *judge_run(qrels, read_run(path))) for name, path in zip(_names(args.runs), args.runs)]


def _names(paths: list[str]) -> list[str]:
    """File names without folders and endings, where that leaves them different."""
    names = [os.path.basename(path).split(".")[0] or path for path in paths]
    return names if len(set(names)) == len(names) else paths


def _digest(path: str) -> str:
    """The first digits of a file's SHA-256, and its size: enough to know it again."""
    import hashlib

    if not os.path.isfile(path):
        return "not a regular file"
    with open(path, "rb") as stream:
        return f"sha256 {hashlib.file_digest(stream, 'sha256').hexdigest()[:16]}…, {os.path.getsize(path)} bytes"
