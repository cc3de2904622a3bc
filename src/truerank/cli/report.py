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
from truerank.cli.systems import baseline_name, read_systems, settle_systems


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_system_options(parser, "; the first is the baseline")
    add = options.adder(parser)
    add("-o --output FILE", "output file of the page", default="report.html", type=options.Output)
    add("--measures NAME …", "measures; the first decides the verdict", default=["nDCG@10 AP RR"])
    add("--cutoff FILE", "add the risk curve of a cutoff (`truerank cutoff fit`)")
    add("--title TEXT", "heading of the page", default="Ranking report")
    options.share(parser, "baseline", "topics", "training")
    options.add_convention(parser)
    options.add_data_options(parser, to="data", why="belongs to --data")
    options.add_plan(parser, "qrels data scores baseline cutoff")


def run(args: argparse.Namespace) -> int:
    """Write the page; systems are models, then score files, or runs, in the order named."""
    from truerank.measures import parse_measures
    from truerank.report.evidence import System, make_report

    if args.plan is not None:
        return _of_plan(args)
    common.settle_convention(args)
    measures = " ".join(args.measures)
    parse_measures(measures, args.convention)
    settle_systems(args)
    if not args.files:
        raise common.UsageError("name the systems: models or --scores FILE … with --data, runs with --qrels")
    first, found = baseline_name(args), read_systems(args)
    systems = [System(name, *judged, found.models.get(name)) for name, judged in found.judged.items()]
    systems.sort(key=lambda one: one.name != first)
    data, about = found.data, None
    if found.seen is not None:
        data, about = found.seen.kept(data), found.seen.text
        common.note(about)
    files = [
        path for path in (args.data, args.qrels, *args.models, *args.scores, *args.runs) if path not in (None, "-")
    ]
    text = make_report(
        systems,
        measures=measures,
        convention=args.convention,
        data=data,
        title=args.title,
        made_by=shlex.join(["truerank", *sys.argv[1:]]),
        topics=args.topics,
        about_training=about,
        sources={common.printable(os.path.basename(path)): _digest(path) for path in files},
        cutoff=None if args.cutoff is None else load_cutoff(args.cutoff),
    )
    with common.output(args.output) as stream:
        stream.write(text)
    if args.output != "-":
        common.note(f"wrote {args.output}: {common.counted(len(systems), 'system')}, {len(text) / 1e6:.1f} MB")
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
