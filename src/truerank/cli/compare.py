"""`truerank compare`: tests of 2 to 200 systems."""

from __future__ import annotations

from truerank.cli import common, options
from truerank.cli.next_command import next_command
from truerank.cli.parser import OutputFile, only, option, refuse
from truerank.cli.reproduce import record
from truerank.cli.systems import experiment_of, named_systems


class Arguments(
    options.Compared,
    options.Baseline,
    options.Test,
    options.Segments,
    options.Collapse,
    options.Seed,
    options.Json,
    options.Record,
    options.Planned,
):
    measure: list[str] = option('measures, such as "AP nDCG@10"', "NAME …", default=["nDCG@10"])
    all_pairs: bool = option("compare all pairs instead of pairs with a baseline")
    correction: options.Correction | None = option(
        "correction for several comparisons (default: max-t; holm for wilcoxon and sign)",
        choices=("max-t", "holm", "bonferroni", "benjamini-hochberg", "none"),
    )
    margin: float | None = option("also test whether each system is worse by at most D, or equivalent within D", "D")
    rope: float | None = option(
        "also print, for each pair (and segment), P(the first system is better), P(equivalent within D), P(worse)", "D"
    )
    history: OutputFile | None = option("file that counts comparisons on the same queries", "FILE")
    format: str | None = option(
        "format of the tables (default: text)", choices=("text", "markdown", "latex", "csv", "html")
    )
    show: list[str] = option(
        "latex and markdown: also intervals, effect sizes, possible ranks",
        "WHAT …",
        choices=("intervals", "effects", "ranks"),
    )
    convention: options.Convention | None = options.convention()
    cite: bool = option("also print the paragraph of a paper on data, measures, test and correction, with BibTeX")
    RULES = (
        only("collapse", "qrels"),
        refuse("format", "json", "has no effect with --json, which prints no tables"),
        refuse("baseline", "all_pairs"),
        refuse(
            "qrels data scores baseline correction margin history format segments rope show cite record",
            "plan",
            options.NO_PLAN,
        ),
    )


def run(args: Arguments) -> int:
    """Compare each ranker with the baseline, or all pairs."""
    from truerank.measures.conventions import titled
    from truerank.significance.comparison_text import CHOSEN
    from truerank.significance.paired import LEVEL
    from truerank.significance.paper_table import paper_table

    if args.plan is not None:
        from truerank.cli.judge import from_plan

        estimates = from_plan(args, args.plan, args.judges, args.measure)
        common.show(args, estimates.to_dict(), str(estimates))
        next_command(args, "report", measures=args.measure)
        return 0
    named = named_systems(args, least=2)
    baseline = None if args.all_pairs else named.baseline(args.baseline)
    experiment = experiment_of(args, named, args.measure, baseline=baseline)
    with common.counted_looks(args.history) as history:
        found = experiment.compare(
            test=args.test, correction=args.correction, margin=args.margin, random_state=args.seed, history=history,
            pairs="all" if args.all_pairs else "baseline", rope=args.rope, cite=args.cite,
        )  # fmt: skip
    results = found.by_measure
    if args.json or args.record is not None:
        report = found.to_dict()
        record(args, report)
        if args.json:
            common.print_report(args, report)
            return 0
    methods = [found.methods_text()] if args.cite else []
    if args.format in ("latex", "markdown", "csv"):
        print(*[paper_table(results, args.format, found.topics_text, args.show, args.rope), *methods], sep="\n\n")
        common.note("\n".join(filter(None, [experiment.topics_text, experiment.training_text, CHOSEN])))
        return 0
    seen = experiment.training is not None
    parts = [found.summary, experiment.training_text if seen else "", experiment.topics_text]
    parts.append(f"convention {titled(experiment.convention)}{named.about_convention}")
    print(*filter(None, [*parts, found.text(args.format or "text"), CHOSEN, *methods]), sep="\n\n")
    if not seen:
        print(experiment.training_text)
    first = next(iter(results.values()))
    differ = set(first._differences(first.best.a, first.best.b).tolist()) - {0.0}
    undecided = first.best.p_adjusted >= LEVEL and len(differ) >= 5  # the fewest that show the power
    if len(named.files) == 2 and undecided and first.best.difference and not args.collapse:
        scores = named.files[len(named.models + named.runs) :]
        next_command(args, "power", measure=first.measure, scores=scores)
    else:
        next_command(args, "report", measures=args.measure)
    return 0
