"""`truerank compare`: tests of 2 to 200 systems."""

from __future__ import annotations

import argparse
from typing import Any

from truerank.cli import common, options
from truerank.cli.judge import from_plan
from truerank.cli.reproduce import record
from truerank.cli.systems import baseline_name, experiment_of, settle_systems


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_system_options(parser, "; the first is the baseline")
    add = options.adder(parser)
    add("--measure --measures NAME …", 'measures, such as "AP nDCG@10"', default=["nDCG@10"], dest="measure")
    add("--all-pairs", "compare all pairs instead of pairs with a baseline")
    options.share(parser, "baseline", "topics", "training", "test", "segments")
    options.share(parser, "collapse", to="qrels")
    text = "correction for several comparisons (default: max-t; holm for wilcoxon and sign)"
    add("--correction", text, choices=("max-t", "holm", "bonferroni", "benjamini-hochberg", "none"))
    add("--margin D", "also test each pair for being not worse by more than D, and equivalent within D", type=float)
    add("--rope D", "also print the probability of each pair to be better, equivalent within D, and worse", type=float)
    add("--history FILE", "file that counts comparisons on the same queries", type=options.OutputFile)
    formats = ("text", "markdown", "latex", "csv", "html")
    add("--format", "format of the tables (default: text)", choices=formats)
    more = ("intervals", "effects", "ranks")
    add("--show WHAT …", "latex and markdown: also intervals, effect sizes, possible ranks", choices=more, default=[])
    options.add_convention(parser)
    add("--cite", "also print the paragraph of a paper on data, measures, test and correction, with BibTeX")
    options.share(parser, "seed", "json", "record")
    options.add_data_options(parser, columns=False, to="data", why="belongs to --data")
    options.refuse(parser, "format", "json", "has no effect with --json, which prints no tables")
    options.refuse(parser, "baseline", "all_pairs")
    options.add_plan(
        parser, "qrels data scores baseline correction margin history format segments rope show cite record"
    )


def run(args: argparse.Namespace) -> int:
    """Compare each ranker with the baseline, or all pairs."""
    from truerank.data.provenance import UNRECOGNISED
    from truerank.measures.conventions import titled
    from truerank.measures.coverage import exceptions
    from truerank.significance.paper_table import paper_table
    from truerank.significance.tables import CHOSEN, Comparison

    if args.plan is not None:
        estimates = from_plan(args, args.measure)
        return common.show(args, estimates.to_dict(), str(estimates))
    settle_systems(args, least=2)
    baseline = None if args.all_pairs else baseline_name(args)
    default = common.settle_convention(args)
    experiment = experiment_of(args, " ".join(args.measure), baseline=baseline)
    with common.counted_looks(args.history) as history:
        found = experiment.compare(
            test=args.test, correction=args.correction, margin=args.margin, random_state=args.seed, history=history,
            pairs="all" if args.all_pairs else "baseline",
        )  # fmt: skip
    results = {found.measure: found} if isinstance(found, Comparison) else found
    practical = {} if args.rope is None else {name: one.practical(args.rope) for name, one in results.items()}
    methods = found.methods_text(args.seed) if args.cite else None
    more: dict[str, Any] = {"practical": {name: one._figures() for name, one in practical.items()}} if practical else {}
    more |= {} if methods is None else {"methods": methods}
    record(args, found.to_dict() | more)
    if args.json:
        common.print_json(found.to_dict() | more)
        return 0
    seen, coverage = experiment.training, experiment.coverage
    if args.format in ("latex", "markdown", "csv"):
        print(paper_table(results, args.format, None if coverage is None else str(coverage), args.show, args.rope))
        print(*(["", methods] if methods else []), sep="\n", end="\n" * (methods is not None))
        common.note("\n".join(map(str, filter(None, [coverage, UNRECOGNISED if seen is None else seen.text, CHOSEN]))))
        return 0
    about = [] if seen is None else [seen.text]
    about += [] if coverage is None else [f"{coverage}{exceptions(experiment.measures, args.topics)}"]
    about.append(f"convention {titled(experiment.convention)}{default}")
    parts = [found.summary, *about, found.text(args.format or "text")]
    parts += [
        *(one._table(args.format or "text") for one in practical.values()),
        CHOSEN,
        *([methods] if methods else []),
    ]
    print("\n\n".join(parts) + (f"\n{UNRECOGNISED}" if seen is None else ""))
    return 0
