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
from truerank.cli.systems import add_baseline, baseline_name, judged_runs, score_systems, settle_systems
from truerank.measures import parse_measures
from truerank.report.page import page


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_system_options(parser, "; the first is the baseline")
    add = options.adder(parser)
    add("-o --output FILE", "output file of the page", default="report.html", type=options.Output)
    add("--measures NAME …", "measures; the first decides the verdict", default=["nDCG@10 AP RR"])
    add("--cutoff FILE", "add the risk curve of a cutoff (`truerank cutoff fit`)")
    add("--title TEXT", "heading of the page", default="Ranking report")
    options.share(parser, "baseline", "plan", "judges", "topics", "training")
    options.add_convention(parser)
    options.add_data_options(parser, to="data", why="belongs to --data")


def run(args: argparse.Namespace) -> int:
    """Write the page; systems are models, then score files, or runs, in the order named."""
    from truerank.report.evidence import System, make_report

    if args.plan is not None:
        return _of_plan(args)
    convention = args.convention or ("trec" if args.qrels else "ranklib")
    measures = " ".join(args.measures)
    parse_measures(measures, convention)
    settle_systems(args)
    add_baseline(args)
    if not args.models and not args.scores and not args.runs:
        raise common.UsageError("name the systems: models or --scores FILE … with --data, runs with --qrels")
    data = about = None
    if args.data is None:
        names = common.run_names(args.runs, or_paths=True)
        systems = [System(name, *judged) for name, judged in judged_runs(args, names).items()]
    else:
        found = score_systems(args)
        data = found.data
        systems = [System(n, found.judgements, s, m) for n, s, m in zip(found.names, found.scores, found.models)]
        if found.seen is not None:
            about = found.seen.text
            common.note(about)
    if args.baseline is not None:
        first = baseline_name(args.baseline, [*args.models, *args.runs, *args.scores], [one.name for one in systems])
        systems.sort(key=lambda one: one.name != first)
    files = [
        path for path in (args.data, args.qrels, *args.models, *args.scores, *args.runs) if path not in (None, "-")
    ]
    text = make_report(
        systems,
        measures=measures,
        convention=convention,
        data=data,
        title=args.title,
        made_by=shlex.join(["truerank", *sys.argv[1:]]),
        topics=args.topics,
        about_training=about,
        sources={os.path.basename(path): _digest(path) for path in files},
        cutoff=None if args.cutoff is None else load_cutoff(args.cutoff),
    )
    with common.output(args.output) as stream:
        stream.write(text)
    if args.output != "-":
        common.note(f"wrote {args.output}: {common.counted(len(systems), 'system')}, {len(text) / 1e6:.1f} MB")
    return 0


def _of_plan(args: argparse.Namespace) -> int:
    from truerank.report.judging import estimate_section

    found = from_plan(args, args.measures, ["qrels", "data", "scores", "baseline", "cutoff"])
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
