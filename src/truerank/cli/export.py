"""`truerank export`: a model in the format of a search engine or another tool, with a certificate."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import replace
from typing import Any

from truerank.cli import common, options


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    from truerank.export.formats import FORMATS

    parser.add_argument("model", metavar="MODEL", help="a model that `truerank train` or `truerank import` wrote")
    parser.add_argument("--to", required=True, choices=list(FORMATS), metavar="FORMAT", help=", ".join(FORMATS))
    options.add_output_option(parser, "output file", options.OutputFile, required=True)
    parser.add_argument("--name", default="model", help="name of the model, where the format has one (default: model)")
    parser.add_argument(
        "--features",
        dest="engine_features",  # `features` are the columns that are read
        metavar="FILE",
        help="what the engine calls the columns, one name a line, in order",
    )
    parser.add_argument(
        "--certify", metavar="DATA", help="verify the export on these rows (default: on generated rows)"
    )
    parser.add_argument(
        "--absent",
        choices=("zero", "nan"),
        help="value of a feature that a document lacks (default: as in programs that read the format)",
    )
    parser.add_argument(
        "--distil", metavar="DATA", help="export plain trees that are fitted to the model's scores of these rows"
    )
    parser.add_argument(
        "--statistics",
        type=options.OutputFile,
        metavar="FILE",
        help="of a model with categorical columns: export the trees over the categories' statistics, and write these "
        "as JSON, by column and category; what computes the features looks them up (null, else 0, where a category is "
        "not there)",
    )
    parser.add_argument("--cutoff", metavar="FILE", help="a cutoff on this model's scores, for the certificate")
    parser.add_argument(
        "--force",
        action="store_true",
        help="write the export even if it ranks otherwise or treats missing features otherwise",
    )
    parser.add_argument(
        "--show-request", action="store_true", help="print the JSON body of a search request that uses the export"
    )
    why = "belongs to rows that are read: give --certify or --distil"
    options.add_data_options(parser, columns=False, to="certify distil", why=why)
    options.add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Write the export, unless a rank differs, and print its certificate."""
    from truerank.cli.cutoff import load_cutoff
    from truerank.core.files import atomic_writes
    from truerank.export.formats import export_model
    from truerank.export.search_request import LARGE, SMALLER, search_request

    if args.show_request:
        if search_request('{"script": {}}', args.to) is None:
            raise common.UsageError(f"--show-request is for search engines with JSON requests, and --to is {args.to}")
        if args.json:
            raise common.UsageError("--show-request and --json both print JSON; give one")
    if args.statistics is not None and os.path.realpath(args.statistics) == os.path.realpath(args.output):
        raise common.UsageError("--statistics and -o name the same file; name two")
    cutoff = None if args.cutoff is None else load_cutoff(args.cutoff)
    names = common.read_names(args.engine_features)
    model = common.load_ranker(args.model)
    data = None if args.certify is None else common.read_data(args.certify, args, like=model)
    distil = None if args.distil is None else common.read_data(args.distil, args, like=model)
    statistics = None
    if args.statistics is not None:
        statistics, model, data, distil = _over_statistics(model, data, distil)
    content = export_model(
        model, args.to, names, name=args.name, certify=data, missing=args.absent, distil=distil, force=args.force
    )
    own = content.certificate
    if cutoff is not None:
        own.policy["cutoff"] = rule = cutoff.for_export(own.policy)
        what = "documents" if rule["kind"] != "answer" else "queries, in the client,"
        own = replace(own, notes=(*own.notes, f"cutoff: keep {what} with a {rule['score']} of at least "
                                  f"{rule['threshold']:.9g} in the exported scores"))  # fmt: skip
    files = {args.output: content if isinstance(content, bytes) else content.encode()}
    if statistics is not None:
        files[args.statistics] = json.dumps(statistics, ensure_ascii=False, indent=1).encode()
    with atomic_writes(files, "wb") as streams:
        for stream, written in zip(streams, files.values()):
            stream.write(written)
    request = search_request(content, args.to, args.name)
    size = None if request is None else len(json.dumps(request))
    if args.json:
        common.print_json(own.as_dict() | {"request_bytes": size})
        return 0
    common.note(str(own))
    if own.distilled is not None:
        cost = own.distilled
        measures = "".join(
            f", {name} {value['model']:.4f} -> {value['distilled']:.4f}"
            for name, value in cost.items()
            if isinstance(value, dict)
        )
        common.note(
            f"distilled to {cost['trees']} trees of constant leaves: {cost['rank_agreement']:.4f} of pairs in the same "
            f"order{measures}"
        )
    common.note(f"written to {args.output} (sha256 {own.export_hash[:16]}, {len(content) / 1000:.1f} kB)")
    if size is not None:
        carries = "the model travels with it" if args.to == "painless" else "the engine stores the model"
        common.note(f"each search request has {size / 1000:.1f} kB: {carries}")
        if size > LARGE:
            common.note(f"truerank: warning: requests above {LARGE // 1000} kB slow every search down. {SMALLER}")
    if args.show_request:
        print(json.dumps(request, indent=1, ensure_ascii=False))
    return 0


def _over_statistics(model: Any, *data: Any) -> list[Any]:
    """The statistics of a model's categories, the model over these, and the data with them in place of categories."""
    from truerank.core.errors import InvalidInputError

    statistics = model.category_statistics() if hasattr(model, "category_statistics") else {}
    if not statistics:
        raise InvalidInputError(
            "--statistics is for boosted trees with categorical columns, and this model is of another kind or has "
            "none; leave the option out"
        )
    encoded = [None if one is None else one.replaced(X=model.encoded(one.X), category_names=None) for one in data]
    return [statistics, model.over_statistics(), *encoded]
