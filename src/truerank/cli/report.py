"""`truerank report`: write a self-contained HTML page of evidence on score files, runs or models."""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from typing import Any

from truerank.cli import common, options
from truerank.cli.cutoff import load_cutoff
from truerank.cli.judge import from_plan
from truerank.cli.next_command import next_command
from truerank.cli.parser import Output, only, option, refuse
from truerank.cli.systems import experiment_of, named_systems

TITLE = "Ranking report"


class Arguments(
    options.Compared,
    options.Baseline,
    options.Segments,
    options.Json,
    options.Collapse,
    options.Planned,
):
    output: Output = option("output file; .md is Markdown, .json is JSON, else HTML", "FILE", default="report.html")
    measures: list[str] = option("measures; the first decides the verdict", "NAME …", default=["nDCG@10 AP RR"])
    cutoff: str | None = option("add the risk curve of a cutoff (`truerank cutoff fit`)", "FILE")
    title: str | None = option("heading of an HTML page (default: Ranking report)", "TEXT")
    format: str | None = option(
        "output format; html requires truerank[report] (default: by the ending of the output)",
        choices=("html", "markdown"),
    )
    convention: options.Convention | None = options.convention()
    RULES = (
        only("collapse", "qrels"),
        only("features exclude", "data", "requires --data"),
        refuse("cutoff format", "json", "has no effect with --json, which writes no page"),
        refuse("cutoff", "format=markdown", "requires the charts of --format html"),
        refuse("qrels data scores baseline cutoff format segments json", "plan", options.NO_PLAN),
    )


def run(args: Arguments) -> int:
    """Write the page on the models and score files, or on the runs, in the order of the command."""
    if args.plan is not None:
        return _of_plan(args, args.plan)
    ending = {"markdown": ".md", "html": ".html"}.get(args.format or "") or os.path.splitext(args.output)[1].lower()
    if args.cutoff is not None and ending in (".md", ".json"):
        raise common.UsageError("--cutoff requires the charts of HTML. Write the page to a file that ends in .html")
    if args.title is not None and (args.json or ending in (".md", ".json")):
        raise common.UsageError("--title is the heading of an HTML page. Leave it out, or write to a file of .html")
    named = named_systems(args)
    if not named.files:
        raise common.UsageError(
            "no systems are named. Name models or --scores FILE … with --data, or runs with --qrels"
        )
    experiment = experiment_of(args, named, args.measures, baseline=args.baseline and named.baseline(args.baseline))
    evidence = experiment.evidence(args.wording)
    if experiment.training is not None:
        common.note(experiment.training_text)
    if args.json:
        common.print_report(args, evidence.to_dict())
        return 0
    page: dict[str, Any] = {}
    if ending not in (".md", ".json"):
        files = [path for path in (args.data, args.qrels, *named.files) if path and os.path.exists(path)]
        page = {
            "title": args.title or TITLE,
            "made_by": shlex.join(["truerank", *sys.argv[1:]]),
            "sources": {common.printable(os.path.basename(path)): _digest(path) for path in files},
            "cutoff": None if args.cutoff is None else load_cutoff(args.cutoff),
        }
    text = evidence.in_format(ending, **page)
    with common.output(args.output) as stream:
        stream.write(text)
    if args.output != "-":
        common.note(
            f"wrote {args.output}: {common.counted(len(experiment.judged), 'system')}, {len(text) / 1e6:.1f} MB"
        )
        if len(named.files) == 1:
            next_command(args, "evaluate", per_query=True)
        else:
            next_command(args, "compare", measure=args.measures, cite=True, format=None)
    return 0


def _of_plan(args: Arguments, plan: str) -> int:
    from truerank.report.judging import estimate_section
    from truerank.report.page import page

    found = from_plan(args, plan, args.judges, args.measures)
    made_by = f"Made by {shlex.join(['truerank', *sys.argv[1:]])}; {plan}: {_digest(plan)}"
    with common.output(args.output) as stream:
        stream.write(page(args.title or TITLE, made_by, [estimate_section(found)]))
    return 0


def _digest(path: str) -> str:
    """Return the first digits of a file's SHA-256, and the file's size."""
    if not os.path.isfile(path):
        return "not a regular file"
    with open(path, "rb") as stream:
        return f"sha256 {hashlib.file_digest(stream, 'sha256').hexdigest()[:16]}…, {os.path.getsize(path)} bytes"
