"""`truerank deploy`: deploy a model to a live engine, and compare its rankings there with truerank's (`--verify`)."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import truerank
from truerank.cli import common, options
from truerank.cli.parser import OutputFile, OutputFolder, argument, only, option, positive, refuse, within
from truerank.core.files import atomic_write, read_text

if TYPE_CHECKING:
    from truerank.io.feature_sets import FeatureSet


class Arguments(options.Reading, options.Statistics, options.Json):
    model: str = argument("a model that `truerank train` or `truerank import` wrote", "MODEL")
    engine: str = option(
        "address of OpenSearch or Elasticsearch, or of a Solr collection; credentials are read from "
        "TRUERANK_ENGINE_USER and TRUERANK_ENGINE_PASSWORD, or TRUERANK_ENGINE_API_KEY",
        "URL",
    )
    kind: str | None = option(
        "stored script, LTR plugin or Solr's model store (default: solr if the address has /solr/; with --features "
        "ltr if the engine has the plugin; else painless)",
        choices=("painless", "ltr", "solr"),
    )
    name: str = option("name of the model in the engine", "N")
    feature_names: str | None = option("the engine's names of the columns, one on each line", "FILE")
    timeout: float = option("seconds for each request (default: 30)", "S", default=30.0)
    definitions: str | None = option(
        "features of `truerank features` (JSON), which are stored in the engine if it lacks them",
        "FILE",
        names="--features",
    )
    feature_set: str | None = option(
        "feature set of the LTR plugin, or feature store of Solr (default: that of --features)", "NAME"
    )
    certify: str | None = option(
        "rows as the engine logs them; refuse the model if float32 scores change their order", "DATA"
    )
    replace: bool = option("overwrite a model of this name, and keep the old one in a file")
    params: OutputFile | None = option("output file of the script's parameters, for requests", "FILE")
    verified = within("verification")
    verify: bool = verified("after the deployment, rerank test queries, and compare orders and scores with the model")
    verify_only: bool = verified("verify a model that was deployed before")
    verified = within("verification", to="verify verify_only", why="requires --verify")
    queries: str | None = verified("queries, as for `truerank text search`, or judgements", "Q")
    requests: str | None = verified(
        'JSON {"base": query, "features": {name: query}} with {{query}} in place of the text; for the LTR plugin '
        '{"base": query, "params": {name: text}}, for Solr {"base": {"q": ...}, "efi": {name: text}, "store": feature '
        "store} (default: those of --features)",
        "FILE",
    )
    index: str | None = verified(
        "index to search (default: that of --features; for Solr, the address names it)", "NAME"
    )
    key: str | None = verified(
        "keyword field that identifies a document (default: id, or that of --features, else _id)", "FIELD"
    )
    times: float | None = verified(
        "with --verify-only: factor of the scores that deploy printed (default: 1)",
        "X",
        to="verify_only",
        why="requires --verify-only, because a deployment determines the factor",
    )
    tolerance: float | None = verified(
        "accepted difference of scores, divided by the largest score (default: 1e-05)", "T"
    )
    runs: OutputFolder | None = verified(
        "write the rankings without and with the model as runs, for `truerank judge plan`", "FOLDER"
    )
    window: int | None = verified("documents to rerank (default: 200)", "N", type=positive)
    RULES = (
        only(options.Reading, "certify", "describes the rows of --certify. Add --certify FILE"),
        refuse("verify feature_set certify replace params statistics", "verify_only"),
    )


def run(args: Arguments) -> int:
    """Deploy the model, and print a summary."""
    from truerank.export.deployment import deploy, kind_of
    from truerank.io.engine import Engine
    from truerank.io.feature_sets import has_plugin, read_feature_set

    own = None if args.definitions is None else read_feature_set(args.definitions)
    asked = _check_verification(args, own) if args.verify or args.verify_only else {}
    if asked and own is not None:
        key = args.key or own.id or (None if own.for_solr else "_id")
        args = args.but(index=args.index or own.index, key=key)
    if args.kind is None and own is not None and not own.for_solr and has_plugin(Engine(args.engine, args.timeout)):
        args = args.but(kind="ltr")
    kind = kind_of(args.kind, args.engine)
    if not args.verify_only and kind != "painless":
        common.refuse_idle(args, ["params"], f"applies only to painless scripts, but the model is stored as {kind}")
    elif not args.verify_only:
        common.refuse_idle(args, ["feature_set"], "applies only to the LTR plugin and to Solr (--kind)")
    model = common.load_ranker(args.model)
    if args.verify_only:
        if getattr(model, "category_names_", None):
            model = model.over_statistics()
        return _verify(args, asked, model, 1.0 if args.times is None else args.times)
    certify = None if args.certify is None else common.read_data(args.certify, args, model)
    statistics = None
    if args.statistics is not None:
        statistics, model, certify = common.over_statistics(model, certify)
        text = common.statistics_text(args.statistics, statistics)
        with atomic_write(args.statistics) as stream:
            stream.write(text)
    result = deploy(
        model, args.engine, args.name, kind=kind, feature_names=common.read_names(args.feature_names),
        feature_set=args.feature_set or own, certify=certify, replace=args.replace, timeout=args.timeout,
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
        text += (
            f"\nthe deployed scores are those of the model times {result['times']!r}, so that rounding keeps the order"
        )
    if not args.verify:
        return common.tell(args, result, text)
    common.note(text)
    return _verify(args, asked, model, result["times"])


def _check_verification(args: Arguments, own: FeatureSet | None) -> dict[str, Any]:
    """Read the queries and requests to verify, before anything is deployed."""
    if args.queries is None or (args.requests is None and own is None):
        raise common.UsageError("--verify requires --queries FILE, and --requests FILE or --features FILE")
    from truerank.models.foreign.model import Reader

    requests = {} if own is None else own.requests()
    if args.requests is not None:
        requests = Reader(args.requests).json(read_text(args.requests))
    if not isinstance(requests, dict) or not isinstance(requests.get("features", {}), dict):
        raise common.InvalidInputError(f'{args.requests}: expected {{"base": query, "features": {{name: query}}}}')
    try:
        ratings = truerank.read_ratings(args.queries)
        texts = [ratings.text(query) for query in ratings.by_query()]
    except common.DataFileError:
        texts = [query.text["text"] for query in truerank.read_queries(args.queries)]
    return {"queries": requests, "texts": texts}


def _verify(args: Arguments, asked: dict[str, Any], model: Any, times: float = 1.0) -> int:
    """Print the comparison; return 1 unless all orders agree and are informative, and scores are within tolerance."""
    from truerank.export.verification import verify

    own = verify(
        model, args.engine, args.name, args.index, **asked, kind=args.kind,
        feature_names=common.read_names(args.feature_names), timeout=args.timeout, times=times,
        **common.given(args, "key", "window", "tolerance"),
    )  # fmt: skip
    if args.runs is not None:
        os.makedirs(args.runs, exist_ok=True)
        for name, ranking in own.rankings.items():
            truerank.write_run(ranking, os.path.join(args.runs, f"{name}.run"))
    if args.json:
        common.print_report(args, own.to_dict())
    else:
        common.note(
            f"{own.orders_equal} of {own.queries} queries have the model's order, with {own.documents} documents"
            + f" ({own.empty} more queries found no documents)" * (own.empty > 0)
            + f", {100 * own.tied:.1f} % of them tied"
            + " (not verified: the model gives the same score to most documents, so the order is arbitrary)"
            * (not own.says_order)
            + f". The largest difference is {own.largest_difference:.3g}, or {own.share:.2g} of the largest score "
            f"(tolerance {own.tolerance:g}). A query takes {own.took_base:.0f} ms without the model and "
            f"{own.took_rescored:.0f} ms with it. A request has up to {own.request_bytes / 1000:.0f} kB"
        )
    return int(not own.passed)
