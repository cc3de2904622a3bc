"""`truerank text features`: a feature matrix from what there is: TREC runs, an index of documents, or a live engine."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from truerank.cli import common, options

if TYPE_CHECKING:
    from truerank.data.ranking_data import RankingData

MAPS = {"percentile": "PercentileInQuery", "min-max": "MinMaxInQuery", "z-score": "ZScoreInQuery"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.description = (
        "A feature matrix for rankers. --runs joins TREC runs of several systems over the same topics: a row for each "
        "document that some run retrieved for a topic, a column for each run. --index and --queries make features of "
        "text: a row for each candidate of a query. --engine and --spec ask OpenSearch, Elasticsearch or Solr for the "
        "features of all judged pairs. Written as LETOR text, or as a table with named columns if OUT ends in .csv, "
        ".tsv, .parquet, .arrow or .feather."
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--runs", nargs="+", metavar="RUN", help="TREC runs, or folders of them")
    source.add_argument("--index", metavar="DIR", help="an index that `truerank text index` wrote")
    source.add_argument("--engine", metavar="URL", help="a search engine, such as http://127.0.0.1:9200")
    texts = parser.add_argument_group("with --index or --engine")
    texts.add_argument("--queries", metavar="Q", help="queries, as for `truerank text search`")
    options.add_query_options(texts)
    options.belongs(texts._group_actions, "index engine", "belongs to --index or --engine, and not to --runs")
    index = parser.add_argument_group("with --index")
    index.add_argument("--families", nargs="+", metavar="FAMILY", help="which features (default: all; see the guide)")
    options.add_depth_option(index, "candidates of each function (1000)")
    options.belongs(index._group_actions, "index", "belongs to --index")
    spec = parser.add_argument("--spec", metavar="FILE", help="of --engine: what to ask, YAML or JSON")
    options.belongs([spec], "engine", "belongs to --engine")
    runs = parser.add_argument_group("with --runs")
    runs.add_argument(
        "--missing",
        choices=("min", "nan"),
        help="score of a document that a run did not retrieve: the run's lowest for the topic minus the margin "
        "(default), or nan",
    )
    runs.add_argument(
        "--margin",
        type=float,
        metavar="X",
        help="of --missing min, as a share of the run's range of scores for the topic (default: 0.05)",
    )
    options.belongs(runs._group_actions, "runs", "belongs to --runs")
    parser.add_argument(
        "--qrels", metavar="FILE", help="grades; without them every grade is 0 and no topic is left out"
    )
    parser.add_argument("--per-query", choices=tuple(MAPS), help="map every column within its topic")
    options.add_output_option(parser, "file to write (default: LETOR on stdout)", default="-", metavar="OUT")
    options.add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Read, join, write."""
    from truerank.features.runs import join_runs
    from truerank.io.trec import read_qrels, read_run

    if args.json and args.output == "-":
        raise common.UsageError("--json prints a summary; name the file of features with -o")
    if args.runs is None:
        return _of_text(args) if args.engine is None else _of_engine(args)
    if args.missing == "nan":
        common.refuse_idle(args, ["margin"], "belongs to --missing min")
    paths = common.run_paths(args.runs)
    names = common.run_names(paths)
    qrels = None if args.qrels is None else common.with_note(args.qrels, read_qrels(args.qrels))
    joined = join_runs(
        [read_run(path) for path in paths], qrels, names=names, **common.given(args, "missing", "margin")
    )
    data = _mapped(joined.data, args)
    lost = None
    if joined.judgements is not None and joined.judgements.missing_grades is not None:
        lost = int((joined.judgements.missing_grades > 0).sum())
    text = f"; {lost} relevant documents were retrieved by none of the runs" if lost else ""
    return _written(args, data, text, relevant_not_retrieved=lost)


def _of_text(args: argparse.Namespace) -> int:
    """Features of the candidates of each query in an index."""
    from truerank.io.documents import read_judgements, read_queries
    from truerank.text.features import FAMILIES, TextFeatures
    from truerank.text.index import Index

    if args.queries is None:
        raise common.UsageError("--index needs --queries")
    index = Index(args.index)
    families = args.families or list(FAMILIES)
    unknown = [family for family in families if family not in FAMILIES]
    if unknown:
        raise common.UsageError(f"unknown family {unknown[0]!r}; known are: {', '.join(FAMILIES)}")
    features = TextFeatures(families, scaled=False, **common.given(args, "depth")).fit(index)
    queries = read_queries(args.queries, field=args.query_field)
    qrels = None if args.qrels is None else common.with_note(args.qrels, read_judgements(args.qrels))
    data = _mapped(features.transform(queries, index, qrels), args)
    common.note_nothing_found(queries, data.query_ids.tolist())
    if qrels is not None:
        unjudged = sorted(set(data.query_ids.tolist()) - set(qrels.query_ids.tolist()))
        if unjudged:
            common.note(
                f"truerank text features: {len(unjudged)} queries are not judged, so all their rows have grade 0: "
                f"{', '.join(unjudged[:3])}{' …' if len(unjudged) > 3 else ''}"
            )
    return _written(args, data)


def _of_engine(args: argparse.Namespace) -> int:
    """Features of all judged pairs from a live engine; stored answers are not requested again."""
    import os

    from truerank.io.documents import read_judgements, read_queries
    from truerank.io.engine import Engine
    from truerank.io.engine_features import engine_features, read_spec

    if args.queries is None or args.qrels is None or args.spec is None or args.output == "-":
        raise common.UsageError("--engine needs --spec, --queries, --qrels and a file to write (-o)")
    partial = f"{args.output}.partial"
    queries = read_queries(args.queries, field=args.query_field)
    data, missing = engine_features(
        Engine(args.engine, timeout=60.0, retries=5),
        read_spec(args.spec),
        queries,
        common.with_note(args.qrels, read_judgements(args.qrels)),
        resume=partial,
    )
    text = f"; the engine lacks {missing} of the judged documents, which are left out" if missing else ""
    code = _written(args, _mapped(data, args), text, missing_in_engine=missing)
    with suppress(FileNotFoundError):  # another run of the same command may have removed it
        os.unlink(partial)
    return code


def _mapped(data: RankingData, args: argparse.Namespace) -> Any:
    import numpy as np

    if data.y is None:
        data.y = np.zeros(data.n_rows)
    if args.per_query:
        import truerank

        data.X = getattr(truerank, MAPS[args.per_query])().fit_transform(data.X, qid=data.qid)
    return data


def _written(args: argparse.Namespace, data: Any, remark: str = "", **more: Any) -> int:
    """Write the data and print a summary, which includes `more`."""
    from truerank.io.letor.write import write_letor
    from truerank.io.tables import table_kind, write_table

    if args.output == "-":
        write_letor(data, args.output)
        return 0
    (write_table if table_kind(args.output) else write_letor)(data, args.output)
    summary = {"rows": data.n_rows, "queries": data.n_queries, "features": data.n_features}
    text = f"wrote {args.output}: {common.size_of(data)}{remark}"
    return common.tell(args, summary | {"relevant": int((data.y > 0).sum())} | more, text)
