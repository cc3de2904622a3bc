"""`truerank evaluate`: measures of a score file or a TREC run."""

from __future__ import annotations

import argparse
from typing import Any

from truerank.cli import common, options
from truerank.cli.predict import predicted


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--data", metavar="FILE", help="judged documents: a LETOR file (.gz .xz .zst), a table, or -")
    parser.add_argument("--scores", metavar="FILE", help="one score a line, in the order of the rows of --data")
    parser.add_argument("--qrels", metavar="FILE", help="TREC judgments, in place of --data")
    parser.add_argument("run", nargs="?", metavar="RUN", help="a TREC run (with --qrels)")
    parser.add_argument("--run", metavar="FILE", help="the same, by name", dest="run_file")
    parser.add_argument(
        "--measures",
        nargs="+",
        default=["AP nDCG@10"],
        metavar="NAME",
        help='names, such as "AP nDCG@10" (the default)',
    )
    parser.add_argument("--model", metavar="MODEL", help="score --data with this model, in place of --scores")
    parser.add_argument(
        "--stability",
        action="store_true",
        help="with --model: how far rankings move when each value is swapped with an observed neighbour",
    )
    parser.add_argument(
        "--explain", metavar="QUERY", help="with --qrels and --run: where one query's value comes from, rank by rank"
    )
    parser.add_argument(
        "--every-convention", action="store_true", help="what each tool's convention makes of the same ranking"
    )
    parser.add_argument("--per-query", action="store_true", help="print the value of every query too")
    options.add_convention_option(parser, default=None)
    options.add_json_option(parser)
    options.add_cluster_option(parser)
    options.add_data_options(parser)


def run(args: argparse.Namespace) -> int:
    """Evaluate, and say what the figures rest on: convention, empty queries, missing topics, ties."""
    from truerank.measures import evaluate, parse_measures

    if args.run is not None:
        if args.run_file is not None:
            raise common.UsageError(f"one run, got {args.run} and --run {args.run_file}; `truerank compare` takes many")
        args.run_file = args.run
    _check_idle(args)
    default = common.settle_convention(args)
    names = " ".join(args.measures)
    parse_measures(names, args.convention)  # misspelt names fail before any file is read
    if args.stability and args.model is None:
        raise common.UsageError("--stability needs --model MODEL: scores in a file cannot change with the features")
    if args.cluster is not None and (args.model is None or args.stability):
        raise common.UsageError("--cluster goes with --model MODEL --data PATTERN, and without --stability")
    if args.explain is not None:
        return _explain(args, names)
    stability = None
    if args.model is not None:
        judgements, scores, stability = _scored(args)
    else:
        judgements, scores = _judged(args)
    if args.every_convention:
        return _every_convention(args, names, judgements, scores[0])
    result = evaluate(names, judgements, scores[0], convention=args.convention)
    report = _report(result, args.per_query)
    if stability is not None:
        import numpy as np

        report["stability"] = {"mean": float(np.nanmean(stability)), "queries": int(np.isfinite(stability).sum())}
        if args.per_query:
            ids = map(str, result.query_ids.tolist())
            report["stability"]["per_query"] = dict(zip(ids, stability.tolist()))
    if args.json:
        common.print_json(report)
        return 0
    _print(report, result, args.per_query, default)
    return 0


def _check_idle(args: argparse.Namespace) -> None:
    """Misuse where an option has no effect beside another."""
    if args.every_convention:
        common.refuse_idle(args, ("convention", "per_query", "stability"), "does not go with --every-convention")
    if args.explain is not None:
        own = ("data", "scores", "model", "stability", "every_convention", "per_query")
        common.refuse_idle(args, own, "does not go with --explain, which is of a run")
    if args.qrels is not None and args.data is None:
        common.refuse_reading(args, "belongs to --data")
    if args.model is None:
        common.refuse_idle(args, ("features", "exclude"), "chooses columns for a model: give --model")


def _explain(args: argparse.Namespace, names: str) -> int:
    from truerank.measures import parse_measures
    from truerank.measures.measure_explanation import explain_measure

    if args.qrels is None or args.run_file is None:
        raise common.UsageError("--explain needs --qrels FILE and a run")
    measures = parse_measures(names, args.convention).values()
    explained = [explain_measure(args.run_file, args.qrels, one, args.explain) for one in measures]
    return common.show(args, {"explained": [one.to_dict() for one in explained]}, "\n\n".join(map(str, explained)))


def _every_convention(args: argparse.Namespace, names: str, judgements: Any, scores: Any) -> int:
    from truerank.measures import parse_measures
    from truerank.measures.claim import convert_claim

    claims = {name: convert_claim(judgements, scores, name) for name in parse_measures(names, args.convention)}
    first = next(iter(claims.values()))
    text = common.table([[name, *(one[name] for one in claims.values())] for name in first], ["convention", *claims])
    return common.show(args, {"conventions": claims}, text)


def _judged(args: argparse.Namespace) -> tuple[Any, list[Any]]:
    """Judgements and scores of `--data` with `--scores`, or of `--qrels` with a run."""
    if args.data is not None and args.qrels is not None:
        raise common.UsageError("give either --data with scores or --qrels with runs, not both")
    if args.data is not None:
        if args.scores is None:
            raise common.UsageError("--data needs --scores FILE: one score a line, in the order of the rows")
        if args.run_file is not None:
            raise common.UsageError("a run belongs to --qrels; with --data give --scores")
        return read_scored(args, [args.scores])
    if args.qrels is None:
        raise common.UsageError("give --data FILE with --scores FILE, or --qrels FILE with a run")
    if args.scores is not None:
        raise common.UsageError("scores belong to --data; with --qrels give a run")
    if args.run_file is None:
        raise common.UsageError("--qrels needs a TREC run")
    common.check_one_stdin([args.qrels, args.run_file])
    from truerank.io.trec import read_qrels, read_run

    qrels = common.with_note(args.qrels, read_qrels(args.qrels))
    judgements, values = judged_run(qrels, read_run(args.run_file), args.run_file, args.qrels)
    return judgements, [values]


def read_scored(args: argparse.Namespace, files: list[str]) -> tuple[Any, list[Any]]:
    """Judgements of `--data`, and the scores of each file in grouped order."""
    from truerank.io.scores import read_scores

    common.check_one_stdin([args.data, *files])
    data = common.read_graded(args.data, args, features=False)
    scores = [read_scores(path, data.n_rows) for path in files]
    return data.judgements(), [data.grouped(one) for one in scores]


def judged_run(qrels: Any, run: Any, path: str, qrels_path: str) -> tuple[Any, Any]:
    """Judgements and scores of a run that has a judged topic."""
    from truerank.io.trec import judge_run

    judgements, scores = judge_run(qrels, run)
    if not len(scores):
        raise common.InvalidInputError(f"{path}: no topic of this run is in {qrels_path}; they do not belong together")
    return judgements, scores


def _scored(args: argparse.Namespace) -> tuple[Any, list[Any], Any]:
    """Judgements, a model's scores and, where asked for, its rankings' stability by query."""
    if args.data is None or args.scores is not None or args.qrels is not None or args.run_file is not None:
        raise common.UsageError("--model scores the rows of --data FILE; give it without --scores, --qrels and --run")
    model = common.load_ranker(args.model)
    if args.stability and hasattr(model, "steps"):
        raise common.InvalidInputError(
            f"{args.model} holds a pipeline; --stability swaps values of the features that a ranker itself sees"
        )
    if args.cluster is not None:
        with common.cluster_of(args) as client:
            parts = common.read_partitions(args.data, args, client, like=model)
            return parts.judgements(), [parts.grouped_scores(model)], None
    data = common.read_graded(args.data, args, like=model)
    scores = predicted(model, data)
    stability = None
    if args.stability:
        from truerank.inspection.stability import ranking_stability

        stability = ranking_stability(model, data)
    return data.judgements(), [data.grouped(scores)], stability


def _report(result: Any, per_query: bool) -> dict[str, Any]:
    from truerank.significance import detectable_against_another, measure_interval

    ties, expected = result.tie_range(), result.tie_expected()
    counts = result.empty_by_measure()
    measures = {}
    for name, mean in result.items():
        low, high = ties[name] or (None, None)
        entry: dict[str, Any] = {
            "mean": mean,
            "lowest": low,
            "highest": high,
            "expected": expected[name],
            "empty": counts[name],
            "convention": result.measures[name].convention,
        }
        values = result.per_query[name]
        if values.size and not (values != values).all():
            interval = measure_interval(result.measures[name], values)
            entry["interval"] = [interval.low, interval.high]
            if result.measures[name].AGGREGATE == "mean":
                entry["detectable"] = detectable_against_another(values)
        largest = getattr(result.measures[name], "largest", None)
        if largest is not None:
            entry["max_grade"] = largest(result.judgements)
        if per_query:
            entry["per_query"] = dict(zip(map(str, result.query_ids.tolist()), result.per_query[name].tolist()))
        measures[name] = entry
    return {
        "convention": result.convention,
        "queries": result.n_queries,
        "empty": result.empty,
        "missing_topics": result.missing_topics,
        "tied": result.tied_queries(),
        "measures": measures,
    }


def _print(report: dict[str, Any], result: Any, per_query: bool, default: str) -> None:
    if per_query:
        names = list(result)
        columns = [result.per_query[name].tolist() for name in names]
        print(common.table([list(row) for row in zip(map(str, result.query_ids.tolist()), *columns)], ["qid", *names]))
        print()
    rows = []
    for name, entry in report["measures"].items():
        moved = "" if entry["lowest"] == entry["highest"] else f"{entry['lowest']:.4f} to {entry['highest']:.4f}"
        if moved and entry["expected"] is not None:
            moved += f", expected {entry['expected']:.4f}"
        low, high = entry.get("interval", (None, None))
        interval = "" if low is None else f"[{low:.4f}, {high:.4f}]"
        notes = [] if entry["convention"] == report["convention"] else [entry["convention"]]
        notes += [f"max_grade={entry['max_grade']:g}"] if "max_grade" in entry else []
        rows.append([name, entry["mean"], interval, entry.get("detectable"), moved, ", ".join(notes)])
    print(common.table(rows, ["measure", "mean", "95% interval", "shows", "by order of ties", "note"]))
    missing = f", {report['missing_topics']} of them missing from the run" if report["missing_topics"] else ""
    print(
        f"\nconvention {report['convention']}{default}; {report['queries']} queries{missing}; "
        f"{report['empty']} without a relevant document, {report['tied']} with ties between grades\n"
        "bootstrap intervals over queries; `shows`: the difference that a t-test on these queries would find four "
        "times in five, to a ranking whose values correlate with these by .8"
    )
    if "stability" in report:
        print(
            f"stability {report['stability']['mean']:.4f}: mean share of a query's pairs that change their order when "
            "each value is swapped with an observed neighbour"
        )
