"""`truerank export`: write a model in the format of a search engine or another tool, with a certificate."""

from __future__ import annotations

import json
from dataclasses import replace

import truerank
from truerank.cli import common, options
from truerank.cli.cutoff import load_cutoff
from truerank.cli.next_command import next_command
from truerank.cli.parser import OutputFile, argument, only, option, refuse
from truerank.core.files import atomic_writes
from truerank.export.format_table import FORMATS


class Arguments(options.Known, options.Statistics, options.Json):
    model: str = argument("a model that `truerank train` or `truerank import` wrote", "MODEL")
    to: str = option(f"format of the export: {', '.join(FORMATS)}", "FORMAT", choices=list(FORMATS))
    output: OutputFile = option("output file", "FILE")
    name: str = option("name of the model, where the format has one", "NAME", default="model")
    feature_names: str | None = option("the engine's names of the columns, one on each line, in order", "FILE")
    certify: str | None = option("verify the export on these rows (default: on generated rows)", "DATA")
    absent: str | None = option(
        "value of a missing feature (default: as in programs that read the format)",
        choices=("zero", "nan"),
    )
    distil: str | None = option("export plain trees that are fitted to the model's scores of these rows", "DATA")
    cutoff: str | None = option("a cutoff on the scores of this model, which the certificate translates", "FILE")
    force: bool = option("write the export even if it ranks otherwise or treats missing features otherwise")
    show_request: bool = option("print the JSON body of a search request that uses the export")
    RULES = (
        only(options.Known, "certify distil", "describes the rows of --certify and --distil. Add one of the two"),
        refuse("show_request", "json", "and --json both print JSON. Give one of them"),
    )


def run(args: Arguments) -> int:
    """Write the export, unless a rank differs, and print its certificate."""
    from truerank.export.deployment import LARGE, SMALLER, search_request

    if args.show_request and search_request('{"script": {}}', args.to) is None:
        raise common.UsageError(
            f"--show-request is for search engines with JSON requests, but --to is {args.to}. Leave --show-request out"
        )
    cutoff = None if args.cutoff is None else load_cutoff(args.cutoff)
    names = common.read_names(args.feature_names)
    model = common.load_ranker(args.model)
    data = None if args.certify is None else common.read_data(args.certify, args, model)
    distil = None if args.distil is None else common.read_data(args.distil, args, model)
    statistics, trained = None, ""
    if args.statistics is not None:
        trained = "" if data is None else str(truerank.training_queries(model, data))
        statistics, model, data, distil = common.over_statistics(model, data, distil)
    content = truerank.export_model(
        model, args.to, names, name=args.name, certify=data, absent=args.absent, distil=distil, force=args.force
    )
    own = content.certificate
    if trained:  # of the rows with categories; the first note is about rows of statistics
        own = replace(own, notes=(trained, *own.notes[1:]))
    if cutoff is not None:
        own.policy["cutoff"] = rule = cutoff.for_export(own.policy)
        what = "documents" if rule["kind"] != "answer" else "queries, in the client,"
        own = replace(own, notes=(*own.notes, f"cutoff: keep {what} with a {rule['score']} of at least "
                                  f"{rule['threshold']:.9g} in the exported scores"))  # fmt: skip
    files: dict[str, bytes] = {args.output: content if isinstance(content, bytes) else content.encode()}
    if args.statistics is not None:
        files[args.statistics] = common.statistics_text(args.statistics, statistics).encode()
    with atomic_writes(files, "wb") as streams:
        for stream, written in zip(streams, files.values()):
            stream.write(written)
    request = search_request(content, args.to, args.name)
    size = None if request is None else len(json.dumps(request))
    if args.json:
        common.print_report(args, own.to_dict() | {"request_bytes": size})
        return 0
    common.note(own.worded(args.wording))
    common.note(f"written to {args.output} (sha256 {own.export_hash[:16]}, {len(content) / 1000:.1f} kB)")
    if size is not None:
        carries = "the request contains the model" if args.to == "painless" else "the engine stores the model"
        common.note(f"each search request has {size / 1000:.1f} kB: {carries}")
        if size > LARGE:
            common.note(f"truerank: warning: requests above {LARGE // 1000} kB slow every search down. {SMALLER}")
    if args.show_request:
        print(json.dumps(request, indent=1, ensure_ascii=False))
    elif request is not None:
        next_command(args, "export", show_request=True)
    elif args.certify is not None:
        next_command(args, "predict", data=args.certify, output="scores.txt")
    return 0
