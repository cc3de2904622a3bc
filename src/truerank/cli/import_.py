"""`truerank import`: a model of another tool becomes a truerank model."""

from __future__ import annotations

import argparse

from truerank.cli import common, options


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="LightGBM (text, JSON), XGBoost (JSON, UBJ), CatBoost (JSON), RankLib, Solr or Elasticsearch LTR (JSON), "
        "SVM-light, SVM-rank, sofia-ml; recognised by the content",
    )
    options.add_output_option(parser, "where the truerank model goes, as JSON", options.OutputFile, required=True)
    parser.add_argument(
        "--features", metavar="FILE", help="names of your data's columns, one a line, in order; by default the model's"
    )
    parser.add_argument(
        "--n-features", type=int, metavar="N", help="columns of your data, where the model does not use the last ones"
    )
    options.add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Read, check and save the model, and print its kind."""
    from truerank.models.foreign.read import import_model
    from truerank.models.model_file import save_model

    names = common.read_names(args.features)
    ranker = import_model(args.file, feature_names=names, n_features=args.n_features)
    save_model(ranker, args.output)
    trees = ranker.parts_.get("roots", ranker.parts_.get("borders", ()))
    report = {"tool": ranker.tool_, "kind": ranker.kind_, "features": ranker.n_features_in_, "trees": len(trees)}
    what = f"{report['trees']} trees" if report["trees"] else f"a {ranker.kind_} model"
    text = f"{args.file}: {what} of {ranker.tool_}, {ranker.n_features_in_} features; written to {args.output}"
    text = "\n".join([text, *ranker.status_.split("; ")[1:]])
    return common.tell(args, report | {"model": args.output, "status": ranker.status_}, text)
