"""`truerank deploy --verify`: rerank test queries with a deployed model, and compare with our own scores."""

from __future__ import annotations

import argparse
import json
from typing import Any

from truerank.cli import common


def add_verification_options(parser: argparse.ArgumentParser) -> None:
    """`--verify`, `--verify-only`, and what is searched."""
    group = parser.add_argument_group("verification")
    group.add_argument(
        "--verify",
        action="store_true",
        help="after the deployment rerank test queries in the engine, and compare orders and scores with the model's",
    )
    group.add_argument("--verify-only", action="store_true", help="the same of a model that was deployed before")
    group.add_argument("--queries", metavar="Q", help='JSON lines {"id": …, "text": …}, or one text a line')
    group.add_argument(
        "--requests",
        metavar="FILE",
        help='JSON {"base": query, "features": {name: query}} with {{query}} where the text goes; for the LTR plugin '
        '{"base": query, "params": {name: text}}, for Solr {"base": {"q": ...}, "efi": {name: text}, "store": feature '
        "store}",
    )
    group.add_argument("--index", metavar="NAME", help="index to search; Solr's is in the address")
    group.add_argument("--key", metavar="FIELD", help="keyword field that identifies a document (default: id)")
    group.add_argument(
        "--times", type=float, metavar="X", help="with --verify-only: factor of the scores that deploy printed (1)"
    )
    group.add_argument(
        "--tolerance",
        type=float,
        metavar="T",
        help="largest difference of a score that is accepted, as a share of the largest score (default: 1e-05)",
    )
    group.add_argument("--window", type=int, metavar="N", help="documents to rerank (default: 200)")


OWN = ("queries", "requests", "index", "key", "times", "tolerance", "window")


def check_verification(args: argparse.Namespace) -> dict[str, Any]:
    """What is to be searched, read before anything is deployed."""
    if args.queries is None or args.requests is None:
        raise common.UsageError("--verify needs --queries Q and --requests FILE")
    from truerank.core.files import read_text
    from truerank.models.foreign.model import Reader

    common.check_positive("--window", args.window)
    requests = Reader(args.requests).json(read_text(args.requests))
    if not isinstance(requests, dict) or not isinstance(requests.get("features", {}), dict):
        raise common.InvalidInputError(f'{args.requests}: expected {{"base": query, "features": {{name: query}}}}')
    return {"queries": requests, "texts": read_texts(args.queries)}


def run(args: argparse.Namespace, asked: dict[str, Any], times: float = 1.0) -> int:
    """Print the comparison; returns 1 unless all orders agree, are informative, and scores are within tolerance."""
    from truerank.export.verification import verify
    from truerank.models.model_file import load_model

    own = verify(
        load_model(args.model), args.engine, args.name, args.index, **asked, kind=args.kind,
        feature_names=common.read_names(args.engine_features), timeout=args.timeout, times=times,
        **common.given(args, "key", "window", "tolerance"),
    )  # fmt: skip
    if args.json:
        common.print_json(own.as_dict())
    else:
        common.note(
            f"{own.orders_equal} of {own.queries} queries in the model's order, {own.documents} documents"
            + f" ({own.empty} more queries found none)" * (own.empty > 0)
            + f", {100 * own.tied:.1f} % of them tied"
            + " (not verified: the model gives the same score to most documents, so the order is arbitrary)"
            * (not own.says_order)
            + f", largest difference {own.largest_difference:.3g} or {own.share:.2g} of the largest score (tolerance "
            f"{own.tolerance:g}); {own.took_base:.0f} ms a query without the model, "
            f"{own.took_rescored:.0f} ms with it, requests of up to {own.request_bytes / 1000:.0f} kB"
        )
    return int(not own.passed)


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
        except (ValueError, KeyError, RecursionError) as error:
            raise common.InvalidInputError(f'{path}, line {number}: expected {{"text": …}}: {error}') from error
        if not isinstance(text, str):
            raise common.InvalidInputError(f"{path}, line {number}: the text must be a string, got {text!r}")
        texts.append(text)
    return texts
