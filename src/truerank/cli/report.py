"""`truerank report`: one self-contained HTML page of evidence on score files, runs or models."""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
import sys

from truerank.cli import common, options
from truerank.cli.cutoff import load_cutoff
from truerank.cli.judge import from_plan
from truerank.cli.systems import baseline_name, experiment_of, settle_systems


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_system_options(parser, "; the first is the baseline")
    add = options.adder(parser)
    add("-o --output FILE", "output file of the page", default="report.html", type=options.Output)
    add("--measures NAME …", "measures; the first decides the verdict", default=["nDCG@10 AP RR"])
    add("--cutoff FILE", "add the risk curve of a cutoff (`truerank cutoff fit`)")
    add("--title TEXT", "heading of the page", default="Ranking report")
    add("--format", "format of the output; markdown needs no extra (default: html)", choices=("html", "markdown"))
    options.share(parser, "baseline", "topics", "training", "segments", "json")
    options.share(parser, "collapse", to="qrels")
    options.add_convention(parser)
    options.add_data_options(parser, to="data", why="belongs to --data")
    options.refuse(parser, "cutoff format", "json", "has no effect with --json, which writes no page")
    options.refuse(parser, "cutoff", "format=markdown", "needs the charts of --format html")
    options.add_plan(parser, "qrels data scores baseline cutoff format segments json")


def run(args: argparse.Namespace) -> int:
    """Write the page; systems are models, then score files, or runs, in the order named."""
    if args.plan is not None:
        return _of_plan(args)
    common.settle_convention(args)
    settle_systems(args)
    if not args.files:
        raise common.UsageError("name the systems: models or --scores FILE … with --data, runs with --qrels")
    experiment = experiment_of(args, " ".join(args.measures), baseline=args.baseline and baseline_name(args))
    evidence = experiment.evidence()
    if experiment.training is not None:
        common.note(experiment.training.text)
    if args.json:
        common.print_json(evidence.to_dict())
        return 0
    if args.format == "markdown":
        text = evidence.to_markdown()
    else:
        from truerank.report.evidence import make_report

        files = [path for path in (args.data, args.qrels, *args.files) if path not in (None, "-")]
        text = make_report(
            evidence,
            title=args.title,
            made_by=shlex.join(["truerank", *sys.argv[1:]]),
            sources={common.printable(os.path.basename(path)): _digest(path) for path in files},
            cutoff=None if args.cutoff is None else load_cutoff(args.cutoff),
        )
    with common.output(args.output) as stream:
        stream.write(text)
    if args.output != "-":
        common.note(
            f"wrote {args.output}: {common.counted(len(experiment.judged), 'system')}, {len(text) / 1e6:.1f} MB"
        )
    return 0


def _of_plan(args: argparse.Namespace) -> int:
    from truerank.report.judging import estimate_section
    from truerank.report.page import page

    found = from_plan(args, args.measures)
    made_by = f"Made by {shlex.join(['truerank', *sys.argv[1:]])}; {args.plan}: {_digest(args.plan)}"
    with common.output(args.output) as stream:
        stream.write(page(args.title, made_by, [estimate_section(found)]))
    return 0


def _digest(path: str) -> str:
    """The first digits of a file's SHA-256, and its size: enough to know it again."""
    if not os.path.isfile(path):
        return "not a regular file"
    with open(path, "rb") as stream:
        return f"sha256 {hashlib.file_digest(stream, 'sha256').hexdigest()[:16]}…, {os.path.getsize(path)} bytes"
