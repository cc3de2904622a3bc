"""`truerank compare`: tests of 2 to 200 systems."""

from __future__ import annotations

import argparse
import os
from contextlib import nullcontext
from typing import Any

from truerank.cli import common, options
from truerank.cli.judge import from_plan
from truerank.cli.systems import baseline_name, judged_rankings, settle_systems
from truerank.core.locks import locked
from truerank.measures.conventions import titled

FEW_PAIRS = 30  # that are printed one by one


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_system_options(parser, "; the first is the baseline")
    add = options.adder(parser)
    add("--measure --measures NAME …", 'measures, such as "AP nDCG@10"', default=["nDCG@10"], dest="measure")
    add("--all-pairs", "compare all pairs instead of pairs with a baseline")
    options.share(parser, "baseline", "topics", "training", "test")
    text = "correction for several comparisons (default: max-t; holm for wilcoxon and sign)"
    add("--correction", text, choices=("max-t", "holm", "bonferroni", "benjamini-hochberg", "none"))
    add("--margin D", "also test each pair for being not worse by more than D, and equivalent within D", type=float)
    add("--history FILE", "file that counts comparisons on the same queries", type=options.OutputFile)
    formats = ("text", "markdown", "latex", "csv", "html")
    add("--format", "format of the tables (default: text)", choices=formats)
    options.add_convention(parser)
    options.share(parser, "seed", "json")
    options.add_data_options(parser, columns=False, to="data", why="belongs to --data")
    options.refuse(parser, "format", "json", "has no effect with --json, which prints no tables")
    options.refuse(parser, "baseline", "all_pairs")
    options.add_plan(parser, "qrels data scores baseline correction margin history format")


def run(args: argparse.Namespace) -> int:
    """Compare each ranker with the baseline, or all pairs."""
    from truerank.data.provenance import UNRECOGNISED
    from truerank.measures import parse_measures
    from truerank.measures.coverage import exceptions, over_topics
    from truerank.significance.comparison import compare_measures, judged_values
    from truerank.significance.history import History
    from truerank.significance.tables import CHOSEN, paper_table

    if args.plan is not None:
        estimates = from_plan(args, args.measure)
        return common.show(args, estimates.to_dict(), str(estimates))
    args.format = args.format or "text"
    default = common.settle_convention(args)
    measures = parse_measures(" ".join(args.measure), args.convention)
    if args.qrels is not None:
        measures = over_topics(measures, args.topics)
    settle_systems(args, least=2)
    baseline = None if args.all_pairs else baseline_name(args)
    judged, coverage, seen = judged_rankings(args)
    judgements = next(iter(judged.values()))[0]
    with nullcontext() if args.history is None else locked(args.history):
        history = None if args.history is None else History.read(args.history)
        if history is not None and not os.path.exists(args.history):
            common.note(
                f"truerank: {args.history} does not exist, and looks are counted from 1. If it was lost, restore it: "
                "earlier looks at these queries count"
            )
        found = compare_measures(
            [judged_values(measure, judged)._replace(measure=name) for name, measure in measures.items()],
            baseline=baseline, test=args.test, correction=args.correction, margin=args.margin, random_state=args.seed,
            query_ids=judgements.query_ids, history=history, judgements=judgements,
        )  # fmt: skip
        if history is not None:
            history.write(args.history)
    results = dict(zip(measures, found))
    if args.format in ("latex", "markdown", "csv"):
        print(paper_table(results, args.format, None if coverage is None else str(coverage)))
        common.note("\n".join(map(str, filter(None, [coverage, UNRECOGNISED if seen is None else seen.text, CHOSEN]))))
        return 0
    report, text = _told(results, measures, judged, args, default)
    text = f"{text}\n\n{CHOSEN}"
    if coverage is not None:
        report = report | {"coverage": coverage.to_dict()}
        text = f"{coverage}{exceptions(measures, args.topics)}\n\n{text}"
    if seen is None:
        return common.show(args, report | {"training_queries": None}, f"{text}\n{UNRECOGNISED}")
    return common.show(args, report | {"training_queries": seen.report}, f"{seen.text}\n\n{text}")


def _told(
    results: dict[str, Any], measures: Any, judged: Any, args: argparse.Namespace, default: str
) -> tuple[dict[str, Any], str]:
    """The report, for several measures by measure, and the text, with the effect of unjudged documents."""
    from truerank.significance.unjudged import about_unjudged

    reports, texts = {}, []
    for name, result in results.items():
        pairs = [(pair.a, pair.b) for pair in result.pairs]
        figures, lines = about_unjudged(measures[name], judged, pairs)
        reports[name] = result.to_dict() | figures
        if measures[name].AGGREGATE == "sum":
            lines = [f"{name}: means over queries here; `truerank evaluate` prints the total", *lines]
        texts.append("\n".join([_text(result, args, default), *lines]))
    first = next(iter(reports.values()))
    return first if len(reports) == 1 else first | {"measures": reports}, "\n\n".join(texts)


def _text(result: Any, args: argparse.Namespace, default: str) -> str:
    parts = [result.systems_table(args.format)]
    if result.baseline is None:
        shown = sum(pair.p_adjusted < 0.05 for pair in result.pairs)
        if len(result.pairs) <= FEW_PAIRS or args.format != "text":
            parts.append(result.pairs_table(args.format))
        parts.append(
            f"{shown} of {len(result.pairs)} pairs differ significantly. Systems that share a letter in `group` do not"
        )
    for pair in result.pairs if len(result.pairs) <= 5 else []:
        for word, queries_moved in zip(("gains", "loses"), result.moved_most(pair.a, pair.b)):
            if queries_moved:
                moved = ", ".join(f"{query} {difference:+.4f}" for query, difference in queries_moved)
                parts.append(f"{pair.a} {word} most against {pair.b}: {moved}")
        one = result.influence(pair.a, pair.b)
        if one is not None and one.changes:
            parts.append(
                f"query {one.query} alone decides {pair.a} against {pair.b}: without it the difference is "
                f"{one.difference:+.4f} (corrected p {one.p_adjusted:.4f})"
            )
    detectable = sorted(pair.detectable for pair in result.pairs if pair.detectable == pair.detectable)
    about = f"{result.measure}, convention {titled(result.convention)}{default}; {result.method}; "
    power = "no detectable difference, because fewer than five queries differ, or all differ by the same amount"
    if detectable:
        which = "by a corrected p below 0.05" if result.n_comparisons > 1 else "by p below 0.05"
        median = ", median of the pairs" if len(detectable) > 1 else ""
        power = f"detectable difference at 80 % power {detectable[len(detectable) // 2]:.4f} ({which}{median})"
    parts.append(
        f"{about if args.format == 'text' else ''}{power}"
        + ("; better and worse follow the corrected p, other verdicts are of each pair alone" if args.margin else "")
    )
    parts += result.remarks()
    if result.ties_matter():
        parts.append(
            f"ties change a mean by more than 0.0005. The values follow the rule of the convention "
            f"{result.convention}; `ties averaged` is independent of it"
        )
    if result.smallest_p >= 0.05 and not all(pair.p != pair.p for pair in result.pairs):
        parts.append(
            f"no difference can be significant: so few queries differ that {result.counted} cannot have a corrected p "
            f"below {result.smallest_p:.3g}. Use more queries or compare fewer systems"
        )
    return "\n\n".join(parts)
