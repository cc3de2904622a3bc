"""`truerank import`: convert a model of another tool into a truerank model."""

from __future__ import annotations

import truerank
from truerank.cli import common, options
from truerank.cli.parser import OutputFile, argument, option


class Arguments(options.Json):
    file: str = argument(
        "LightGBM (text, JSON), XGBoost (JSON, UBJ), CatBoost (JSON), RankLib, Solr or Elasticsearch LTR (JSON), "
        "SVM-light, SVM-rank or sofia-ml; the content identifies the format",
        "FILE",
    )
    output: OutputFile = option("output file of the truerank model, as JSON", "FILE")
    feature_names: str | None = option(
        "names of your data's columns, one on each line, in order (default: the model's)", "FILE"
    )
    n_features: int | None = option("number of columns of your data, if the model does not use the last ones", "N")


def run(args: Arguments) -> int:
    """Import the model, save it, and print its kind."""
    names = common.read_names(args.feature_names)
    ranker = truerank.import_model(args.file, feature_names=names, n_features=args.n_features)
    truerank.save_model(ranker, args.output)
    trees = ranker.parts_.get("roots", ranker.parts_.get("borders", ()))
    report = {"tool": ranker.tool_, "kind": ranker.kind_, "features": ranker.n_features_in_, "trees": len(trees)}
    what = f"{report['trees']} trees" if report["trees"] else f"a {ranker.kind_} model"
    text = f"{args.file}: {what} of {ranker.tool_}, {ranker.n_features_in_} features; written to {args.output}"
    text = "\n".join([text, *ranker.status_.split("; ")[1:]])
    return common.tell(args, report | {"model": args.output, "status": ranker.status_}, text)
