"""`truerank report`: one self-contained HTML page of evidence on score files, runs or models."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from typing import Any

from truerank.cli import common, options
from truerank.cli.systems import score_systems


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "models", nargs="*", metavar="MODEL", help="models that score --data; the first is the baseline"
    )
    parser.add_argument("-o", "--output", metavar="FILE", default="report.html", help="the page (default: report.html)")
    parser.add_argument("--data", metavar="FILE", help="judged documents: a LETOR file (.gz .xz .zst), a table, or -")
    parser.add_argument(
        "--scores", nargs="+", action="extend", default=[], metavar="FILE", help="score files of --data, or its columns"
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
    options.add_plan_options(parser)
    options.add_topics_option(parser)
    options.add_training_option(parser)
    options.add_convention_option(parser, default=None)
    options.add_data_options(parser)


def run(args: argparse.Namespace) -> int:
    """Write the page; systems are models, then score files, or runs, in the order named."""
    from truerank.measures import parse_measures
    from truerank.report.evidence import make_report

    common.check_writable(args.output)
    if args.plan is not None:
        return _of_plan(args)
    common.refuse_idle(args, ["judges"], "belongs to --plan")
    convention = args.convention or ("trec" if args.qrels else "ranklib")
    names = " ".join(args.measures)
    parse_measures(names, convention)
    if (args.data is None) == (args.qrels is None):
        raise common.UsageError("give --data FILE with models or --scores FILE …, or --qrels FILE with --run FILE …")
    if args.qrels is not None:
        common.refuse_reading(args, "belongs to --data")
        common.refuse_idle(args, ["allow_training_queries"], "belongs to --data")
    else:
        common.refuse_idle(args, ["topics"], "belongs to --qrels")
    about = None
    if args.data is None:
        systems, data = _of_runs(args), None
    else:
        systems, data, about = _of_data(args)
        if about:
            common.note(about)
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
        topics=args.topics,
        about_training=about,
        sources={os.path.basename(path): _digest(path) for path in files},
    )
    with common.output(args.output) as stream:
        stream.write(text)
    if args.output != "-":
        common.note(f"wrote {args.output}: {len(systems)} systems, {len(text) / 1e6:.1f} MB")
    return 0


def _of_plan(args: argparse.Namespace) -> int:
    from truerank.cli.judge import from_plan
    from truerank.report.judging import estimate_section
    from truerank.report.page import page

    found = from_plan(args, args.measures, ["qrels", "data", "scores", "models"])
    made_by = f"Made by {shlex.join(['truerank', *sys.argv[1:]])}; {args.plan}: {_digest(args.plan)}"
    with common.output(args.output) as stream:
        stream.write(page(args.title, made_by, [estimate_section(found)]))
    return 0


def _of_data(args: argparse.Namespace) -> tuple[list[Any], Any, str | None]:
    from truerank.report.evidence import System

    if args.runs:
        raise common.UsageError("runs belong to --qrels; with --data give models or --scores")
    if not args.models and not args.scores:
        raise common.UsageError("--data needs models or --scores FILE …")
    found = score_systems(args, args.models, args.scores)
    systems = [
        System(name, found.judgements, scores, model)
        for name, scores, model in zip(found.names, found.scores, found.models)
    ]
    return systems, found.data, None if found.seen is None else found.seen.text


def _of_runs(args: argparse.Namespace) -> list[Any]:
    from truerank.io.trec import judge_run, read_qrels, read_run
    from truerank.report.evidence import System

    if args.models or args.scores:
        raise common.UsageError("models and score files belong to --data; with --qrels give --run FILE …")
    if not args.runs:
        raise common.UsageError("--qrels needs --run FILE …")
    common.check_one_stdin([args.qrels, *args.runs])
    qrels = common.with_note(args.qrels, read_qrels(args.qrels))
    systems = [System(name, *judge_run(qrels, read_run(path))) for name, path in zip(_names(args.runs), args.runs)]
    for system, path in zip(systems, args.runs):
        if not len(system.scores):
            raise common.InvalidInputError(f"{path}: no topic of this run is in {args.qrels}")
    return systems


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
