"""`truerank verify`: rerank test queries with a deployed model, and compare with our own scores."""

from __future__ import annotations

import argparse
import json

from truerank.cli import common, options
from truerank.cli.deploy import add_engine_options


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("model", metavar="MODEL", help="the model that `truerank deploy` put there")
    add_engine_options(parser)
    parser.add_argument("--index", metavar="NAME", help="index to search; Solr's is in the address")
    parser.add_argument(
        "--queries",
        required=True,
        metavar="Q",
        help='JSON lines {"id": …, "text": …}, or one text a line',
    )
    parser.add_argument(
        "--requests",
        required=True,
        metavar="FILE",
        help='JSON {"base": query, "features": {name: query}} with {{query}} where the text goes; for the LTR plugin '
        '{"base": query, "params": {name: text}}, for Solr {"base": {"q": ...}, "efi": {name: text}, "store": feature '
        "store}",
    )
    parser.add_argument("--key", default="id", metavar="FIELD", help="keyword field that identifies a document (id)")
    parser.add_argument(
        "--times",
        type=float,
        default=1.0,
        metavar="X",
        help="what `truerank deploy` multiplied the scores by (1)",
    )
    parser.add_argument("--window", type=int, default=200, metavar="N", help="documents that are reranked (200)")
    options.add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Print what was compared; exit code 1 when an order differs."""
    from truerank.core.files import read_text
    from truerank.export.verification import verify
    from truerank.models.foreign.model import Reader
    from truerank.models.model_file import load_model

    common.check_positive("--window", args.window)
    requests = Reader(args.requests).json(read_text(args.requests))
    if not isinstance(requests, dict) or not isinstance(requests.get("features", {}), dict):
        raise common.InvalidInputError(f'{args.requests}: expected {{"base": query, "features": {{name: query}}}}')
    own = verify(
        load_model(args.model), args.engine, args.name, args.index, requests, read_texts(args.queries),
        kind=args.kind, key=args.key, window=args.window, feature_names=common.read_names(args.engine_features),
        times=args.times, timeout=args.timeout,
    )  # fmt: skip
    if args.json:
        common.print_json(own.as_dict())
    else:
        common.note(
            f"{own.orders_equal} of {own.queries} queries in the model's order, {own.documents} documents, largest "
            f"difference {own.largest_difference:.3g}; {own.took_base:.0f} ms a query without the model, "
            f"{own.took_rescored:.0f} ms with it, requests of up to {own.request_bytes / 1000:.0f} kB"
        )
    return int(own.orders_equal < own.queries)


def read_texts(path: str) -> list[str]:
    """The texts of a file of queries."""
    from truerank.core.files import read_text

    texts = []
    for number, line in enumerate(map(str.strip, read_text(path).split("\n")), 1):
        if not line:
            continue
        if line[0] != "{":
            texts.append(line)
            continue
        try:
            text = json.loads(line)["text"]
        except (ValueError, KeyError) as error:
            raise common.InvalidInputError(f'{path}, line {number}: expected {{"text": …}}: {error}') from error
        if not isinstance(text, str):
            raise common.InvalidInputError(f"{path}, line {number}: the text must be a string, got {text!r}")
        texts.append(text)
    return texts
