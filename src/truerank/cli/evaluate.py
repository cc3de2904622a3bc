"""`truerank evaluate`: measures of a model, a score file or a TREC run."""

from __future__ import annotations

import argparse
from typing import Any

import truerank
from truerank.cli import common, options
from truerank.cli.systems import Systems, read_systems, settle_systems
from truerank.measures.conventions import titled


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_system_options(parser, "; one of them")
    add = options.adder(parser)
    add("--measures NAME …", 'measures (default: "AP nDCG@10")', default=["AP nDCG@10"])
    add("--explain QUERY", "with --qrels: explain the value of one query, rank by rank")
    add("--every-convention", "print the values under every convention")
    add("--per-query", "also print the value of each query")
    options.share(parser, "topics", "training", "cluster", "out-of-core", "json")
    options.add_convention(parser)
    options.add_data_options(parser, to="data", why="belongs to --data")
    options.refuse(parser, "convention per_query", "every_convention")
    options.refuse(parser, "every_convention per_query", "explain")
    options.refuse(parser, "explain", "data", "needs --qrels FILE and a run")


def run(args: argparse.Namespace) -> int:
    """Evaluate, and print convention, empty queries, missing topics and ties with the values."""
    from truerank.data.provenance import UNRECOGNISED
    from truerank.measures import parse_measures
    from truerank.measures.coverage import exceptions, over_topics
    from truerank.measures.evaluation import evaluate_judged

    settle_systems(args)
    if len(args.files) > 1:
        raise common.UsageError(
            f"evaluate accepts one system, but got {len(args.files)}: {', '.join(args.files)}. Use `truerank compare` "
            "for several"
        )
    if not args.files:
        raise common.UsageError(f"name what to evaluate: {'a run' if args.data is None else 'MODEL or --scores FILE'}")
    if not args.models and args.data is not None:
        common.refuse_idle(args, ("features", "exclude"), "chooses columns for a model. Name a model")
    default = common.settle_convention(args)
    names = " ".join(args.measures)
    measures = parse_measures(names, args.convention)  # misspelt names fail before any file is read
    if args.cluster is not None and not args.models:
        raise common.UsageError("--cluster goes with MODEL --data PATTERN")
    if args.explain is not None:
        explained = [truerank.explain_measure(args.runs[0], args.qrels, m, args.explain) for m in measures.values()]
        report = {"explained": [one.to_dict() for one in explained]}
        return common.show(args, report, "\n\n".join(map(str, explained)))
    found = read_systems(args, verdict=False)
    seen, ((judgements, scores),) = found.seen, found.judged.values()
    if seen is not None and not args.json:
        print(seen.text + "\n")
    if args.every_convention:
        return _every_convention(args, names, found)
    if args.qrels is not None:
        measures = over_topics(measures, args.topics)
    result = evaluate_judged(measures, args.convention, judgements, scores)
    report = _report(result, args.per_query) | {
        "topics": args.topics,
        "training_queries": None if seen is None else seen.report,
    }
    if args.json:
        return common.show(args, report, "")
    if args.qrels is not None:
        print(f"{_coverage(args, judgements)}{exceptions(measures, args.topics)}\n")
    _print(report, result, args.per_query, default)
    if seen is None:
        print(UNRECOGNISED)
    return 0


def _every_convention(args: argparse.Namespace, names: str, found: Systems) -> int:
    from truerank.measures import parse_measures
    from truerank.measures.conventions import CONVENTIONS

    judged: tuple[Any, Any] = found.judged[args.names[0]]
    topics = None if args.qrels is None else args.topics or "common"
    parsed = parse_measures(names, "ranklib")
    claims = {name: truerank.convert_claim(judged[0], judged[1], name, topics=topics) for name in parsed}
    rows = [[name, *(one.get(name) for one in claims.values())] for name in CONVENTIONS]
    fixed = {name: one.convention for name, one in parsed.items() if one.convention != "ranklib"}
    text = common.table([row for row in rows if row[1:] != [None] * len(claims)], ["convention", *claims])
    if args.qrels is not None:
        text = f"{_coverage(args, judged[0])}\n\n{text}"
    for name, own in fixed.items():
        text += f"\n\n{name} always has the convention {own}. Use {parsed[name].name} to compare conventions"
    refused = {convention: why for one in claims.values() for convention, why in one.refused.items()}
    text += "".join(f"\n\n{convention}: {why}" for convention, why in refused.items())
    return common.show(args, {"conventions": claims, "fixed": fixed, "refused": refused}, text)


def _coverage(args: argparse.Namespace, judgements: Any) -> Any:
    """The topics that means of a run are over, in the words of `compare`, so that one name never has two figures."""
    from truerank.measures.coverage import Coverage

    n, has = judgements.n_queries, int((judgements.sizes > 0).sum())
    all_topics = args.topics == "all"
    return Coverage("all" if all_topics else None, n, {args.runs[0]: has}, n if all_topics else has)


def _report(result: Any, per_query: bool) -> dict[str, Any]:
    import numpy as np

    from truerank.significance import measure_interval
    from truerank.significance.unjudged import judged_shares

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
            if interval.low == interval.low:  # equal values and counts have none
                entry["interval"] = [interval.low, interval.high]
        if not result.judgements.known.all():
            shares = judged_shares(result.measures[name], {name: (result.judgements, result.scores)})
            entry["judged"] = float(np.nanmean(shares[name]))
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
        notes += ["total over queries"] if result.measures[name].AGGREGATE == "sum" else []
        notes += [f"max_grade={entry['max_grade']:g}"] if "max_grade" in entry else []
        rows.append([name, entry["mean"], interval, moved, ", ".join(notes)])
    print(common.table(rows, ["measure", "mean", "95% interval", "by order of ties", "note"]))
    missing = ""
    if report["missing_topics"]:
        counted = "count 0" if report["topics"] == "all" else "are left out of the means (--topics all counts 0)"
        missing = f", of which the run has {report['queries'] - report['missing_topics']}; the others {counted}"
    print(
        f"\nconvention {titled(report['convention'])}{default}; {common.counted(report['queries'], 'query')}{missing}; "
        f"{report['empty']} without a relevant document, {report['tied']} with ties between grades\n"
        "Intervals are Student's t over queries, for each measure alone. `truerank power` predicts how many queries a "
        "test of a difference needs"
    )
    for name, entry in report["measures"].items():
        if "judged" in entry:
            cutoff = result.measures[name].cutoff
            first = "list" if cutoff is None else f"first {cutoff} ranks"
            print(f"judged documents in the {first} of {name}: {entry['judged']:.4f}")
