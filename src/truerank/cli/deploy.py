"""`truerank deploy`: put a model into a live engine."""

from __future__ import annotations

import argparse
import json

from truerank.cli import common, options, verify


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("model", metavar="MODEL", help="a model that `truerank train` or `truerank import` wrote")
    add_engine_options(parser)
    parser.add_argument("--feature-set", metavar="NAME", help="feature set of the LTR plugin, feature store of Solr")
    parser.add_argument(
        "--certify",
        metavar="DATA",
        help="rows as the engine logs them: a model whose float32 scores put one of them in another place is refused, "
        "after other roundings were tried",
    )
    parser.add_argument("--replace", action="store_true", help="overwrite what has this name, which is kept in a file")
    parser.add_argument("--params", metavar="FILE", help="where the script's parameters go, which each request carries")
    verify.add_verification_options(parser)
    options.add_data_options(parser, columns=False)
    options.add_json_option(parser)


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """`--engine`, `--kind`, `--name`, `--features`, `--timeout`."""
    parser.add_argument(
        "--engine",
        required=True,
        metavar="URL",
        help="address of OpenSearch or Elasticsearch, or of Solr's collection; credentials are read from "
        "TRUERANK_ENGINE_USER and TRUERANK_ENGINE_PASSWORD, or TRUERANK_ENGINE_API_KEY",
    )
    parser.add_argument(
        "--kind",
        choices=("painless", "ltr", "solr"),
        help="stored Painless script, the LTR plugin's model store, or Solr's (default: solr for an address with "
        "/solr/ in it, else painless)",
    )
    parser.add_argument("--name", required=True, metavar="N", help="name of the model there")
    parser.add_argument(
        "--features",
        dest="engine_features",  # `features` are the columns that are read
        metavar="FILE",
        help="what the engine calls the columns, one name a line",
    )
    parser.add_argument("--timeout", type=float, default=30.0, metavar="S", help="seconds for each request (30)")


def run(args: argparse.Namespace) -> int:
    """Deploy the model, and print a summary."""
    from truerank.core.files import atomic_write
    from truerank.export.deployment import deploy, kind_of

    if not args.verify and not args.verify_only:
        common.refuse_idle(args, verify.OWN, "belongs to --verify")
    asked = verify.check_verification(args) if args.verify or args.verify_only else {}
    if args.verify_only:
        common.refuse_idle(
            args, ("verify", "feature_set", "certify", "replace", "params"), "does not go with --verify-only"
        )
        common.refuse_reading(args, "belongs to rows that are read, and --verify-only reads none")
        return verify.run(args, asked, 1.0 if args.times is None else args.times)
    common.refuse_idle(args, ["times"], "belongs to --verify-only; after a deployment the factor is known")
    kind = kind_of(args.kind, args.engine)
    if kind != "painless":
        common.refuse_idle(args, ["params"], f"belongs to painless scripts, and this is {kind}")
    else:
        common.refuse_idle(args, ["feature_set"], "belongs to the LTR plugin and to Solr (--kind)")
    if args.certify is None:
        common.refuse_reading(args, "belongs to rows that are read: give --certify")
    common.check_file("--params", args.params)
    model = common.load_ranker(args.model)
    certify = None if args.certify is None else common.read_data(args.certify, args, like=model)
    result = deploy(
        model, args.engine, args.name, kind=kind, feature_names=common.read_names(args.engine_features),
        feature_set=args.feature_set, certify=certify, replace=args.replace, timeout=args.timeout,
    )  # fmt: skip
    params = result.pop("params", None)
    if args.params is not None:
        with atomic_write(args.params) as stream:
            json.dump(params, stream)
    done = "replaced" if result["replaced"] else "stored"
    text = f"{result['kind']} {result['name']}: {done} at {result['url']}"
    if result["previous"]:
        text += f"\nthe old model is in {result['previous']}, as it can be sent again"
    if result["times"] != 1.0:
        text += f"\nrounded otherwise to keep the order: its scores are the model's times {result['times']!r}"
    if not args.verify:
        return common.tell(args, result, text)
    common.note(text)
    return verify.run(args, asked, result["times"])
