"""`truerank evaluate`: compute measures of a model, a score file or a TREC run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import truerank
from truerank.cli import common, options
from truerank.cli.next_command import next_command
from truerank.cli.parser import only, option, refuse
from truerank.cli.reproduce import record
from truerank.cli.systems import experiment_of, named_systems
from truerank.measures.conventions import DEFAULT_CONVENTION, titled

if TYPE_CHECKING:
    from truerank.experiments.experiment import Experiment


class Arguments(options.Compared, options.Collapse, options.Clustered, options.Json, options.Record):
    measures: list[str] = option('measures (default: "AP nDCG@10")', "NAME …", default=["AP nDCG@10"])
    explain: str | None = option("with --qrels: explain the value of one query, rank by rank", "QUERY")
    every_convention: bool = option("print the values under every convention")
    per_query: bool = option("also print the value of each query")
    convention: options.Convention | None = options.convention()
    RULES = (
        only("collapse", "qrels"),
        only("features exclude", "data", "requires --data"),
        refuse("convention per_query record", "every_convention"),
        refuse("every_convention per_query record", "explain"),
        refuse("explain", "data", "requires --qrels FILE and a run"),
    )


def run(args: Arguments) -> int:
    """Evaluate a system; print the values, the convention, empty queries, missing topics and ties."""
    from truerank.measures import parse_measures

    named = named_systems(args)
    if len(named.files) > 1:
        raise common.UsageError(
            f"evaluate accepts one system, but got {len(named.files)}: {', '.join(named.files)}. Use `truerank "
            "compare` for several"
        )
    if not named.files:
        raise common.UsageError(
            f"no system is named. Name {'a run' if args.data is None else 'MODEL or --scores FILE'}"
        )
    if not named.models and args.data is not None:
        common.refuse_idle(args, ("features", "exclude"), "chooses columns for a model. Name a model")
    names = " ".join(args.measures)
    measures = parse_measures(names, named.convention)  # misspelt names fail before any file is read
    if args.cluster is not None and not named.models:
        raise common.UsageError("--cluster requires a model and a pattern of files: MODEL --data PATTERN")
    if args.explain is not None:
        explained = [
            truerank.explain_measure(common.judgements_of(args), named.runs[0], m, query=args.explain)
            for m in measures.values()
        ]
        report = {"explained": [one.to_dict() for one in explained]}
        return common.show(args, report, "\n\n".join(map(str, explained)))
    experiment = experiment_of(args, named, args.measures)
    if args.every_convention:
        return _every_convention(args, names, experiment)
    (result,) = experiment.evaluate().values()
    report = result.to_dict(per_query=args.per_query)
    record(args, report)
    if args.json:
        return common.show(args, report, "")
    seen = experiment.training is not None
    about = [experiment.training_text if seen else "", experiment.topics_text]
    print("\n\n".join(filter(None, [result.summary, *about])) + "\n")
    _print(report, result, args.per_query, named.about_convention)
    if not seen:
        print(experiment.training_text)
    next_command(args, "report")
    return 0


def _every_convention(args: Arguments, names: str, experiment: Experiment) -> int:
    from truerank.measures import parse_measures
    from truerank.measures.conventions import CONVENTIONS

    ((judgements, scores),) = experiment.judged.values()
    topics = None if args.qrels is None else args.topics or "common"
    parsed = parse_measures(names)
    claims = {name: truerank.convert_claim(judgements, scores, name, topics=topics) for name in parsed}
    rows = [[name, *(one.get(name) for one in claims.values())] for name in CONVENTIONS]
    fixed = {name: one.convention for name, one in parsed.items() if one.convention != DEFAULT_CONVENTION}
    text = common.table([row for row in rows if row[1:] != [None] * len(claims)], ["convention", *claims])
    about = [experiment.training_text if experiment.training else "", experiment.topics_text]
    text = "\n\n".join(filter(None, [*about, text]))
    for name, own in fixed.items():
        text += f"\n\n{name} always has the convention {own}. Use {parsed[name].name} to compare conventions"
    refused = {convention: why for one in claims.values() for convention, why in one.refused.items()}
    text += "".join(f"\n\n{convention}: {why}" for convention, why in refused.items())
    report = {"conventions": claims, "fixed": fixed, "refused": refused}
    return common.show(args, report | {"remarks": [one.to_dict() for one in experiment.remarks]}, text)


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
        how = "count 0" if result.experiment.topics == "all" else "are left out of the means (--topics all counts 0)"
        missing = f", of which the run has {report['queries'] - report['missing_topics']}; the others {how}"
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
