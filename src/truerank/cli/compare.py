"""`truerank compare`: which of 2 to 200 rankings are better, and can it be shown?"""

from __future__ import annotations

import argparse
from typing import Any

from truerank.cli import common, options
from truerank.cli.evaluate import judged_run, read_scored

FUSIONS = ("rrf", "comb-sum", "comb-mnz", "comb-anz", "borda")
FEW_PAIRS = 30  # that are printed one by one


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "runs", nargs="*", metavar="RUN", help="TREC runs, or folders of them (with --qrels); the first is the baseline"
    )
    parser.add_argument("--qrels", metavar="FILE", help="TREC judgments")
    parser.add_argument("--data", metavar="FILE", help="judged documents, in place of --qrels")
    parser.add_argument(
        "--scores",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="score files (with --data), one score a line; the first is the baseline",
    )
    parser.add_argument(
        "--measure",
        "--measures",
        nargs="+",
        default=["nDCG@10"],
        metavar="NAME",
        dest="measure",
        help='what is compared, such as "AP nDCG@10" (default: nDCG@10)',
    )
    parser.add_argument("--baseline", metavar="NAME", help="the run or score file that the others are compared with")
    parser.add_argument("--all-pairs", action="store_true", help="compare every pair, without a baseline")
    parser.add_argument(
        "--fuse",
        nargs="+",
        choices=FUSIONS,
        default=[],
        metavar="METHOD",
        help=f"add fusions of all the runs (with --qrels): {', '.join(FUSIONS)}; --baseline may name one",
    )
    options.add_test_option(parser)
    parser.add_argument(
        "--correction",
        choices=("holm", "bonferroni", "benjamini-hochberg", "tukey", "none"),
        default="holm",
        help="of the p-values (default: holm); tukey is Tukey's HSD by randomisation",
    )
    parser.add_argument("--format", choices=("text", "markdown", "latex", "html"), help="of the tables (default: text)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the test and the intervals")
    options.add_convention_option(parser, default=None)
    options.add_json_option(parser)
    options.add_data_options(parser, columns=False)


def run(args: argparse.Namespace) -> int:
    """Compare each ranker with the baseline, or all pairs."""
    from truerank.measures import parse_measures
    from truerank.significance.comparison import compare_judged, over_all_topics

    if args.json:
        common.refuse_idle(args, ["format"], "is of tables, and --json prints none")
    args.format = args.format or "text"
    default = common.settle_convention(args)
    measures = parse_measures(" ".join(args.measure), args.convention)
    if args.qrels is not None:
        measures = over_all_topics(measures)  # as with trec_eval -c
        default = (f"{default[:-1]}; " if default else " (") + "topics that a run lacks count 0)"
    files = _files(args)
    names = common.run_names(files, or_paths=True)
    if args.all_pairs and args.baseline:
        raise common.UsageError("--all-pairs has no baseline")
    systems = [*names, *args.fuse]
    if len(set(systems)) < len(systems):
        raise common.UsageError(
            f"a run is called as the fusion {next(m for m in args.fuse if m in names)!r}; rename it"
        )
    baseline = None if args.all_pairs else _baseline(args.baseline, files, names, systems)
    judged, query_ids = _judged(args, files, names)
    results = {
        name: compare_judged(
            measure, judged, measure=name, baseline=baseline, test=args.test, correction=args.correction,
            random_state=args.seed, query_ids=query_ids,
        )
        for name, measure in measures.items()
    }  # fmt: skip
    reports = {name: result.to_dict() for name, result in results.items()}
    first = next(iter(reports.values()))
    text = "\n\n".join(_text(result, args, default) for result in results.values())
    return common.show(args, first if len(reports) == 1 else first | {"measures": reports}, text)


def _files(args: argparse.Namespace) -> list[str]:
    if args.data is not None and args.runs:
        raise common.UsageError("with --data the score files follow --scores")
    if args.qrels is not None and args.scores:
        raise common.UsageError("with --qrels the runs are named without an option; --scores belongs to --data")
    if args.data is not None and args.qrels is not None:
        raise common.UsageError("give either --data with --scores or --qrels with runs, not both")
    if args.data is None and args.qrels is None:
        raise common.UsageError("give --qrels FILE RUN RUN …, or --data FILE --scores FILE FILE …")
    if args.data is not None and args.fuse:
        raise common.UsageError("--fuse joins TREC runs; it belongs to --qrels")
    if args.qrels is not None:
        common.refuse_reading(args, "belongs to --data")
    files = common.run_paths(args.runs) if args.data is None else args.scores
    if len(files) + len(args.fuse) < 2:
        raise common.UsageError(f"a comparison needs at least two rankers, got {len(files)}")
    if len(set(files)) < len(files):
        raise common.UsageError("the same file is named twice")
    return list(files)


def _baseline(given: str | None, files: list[str], names: list[str], systems: list[str]) -> str:
    """The baseline by its name or its file."""
    if given is None:
        return systems[0]
    if given in files:
        return names[files.index(given)]
    if given in systems:
        return given
    raise common.UsageError(f"--baseline {given} is none of the files to compare: {', '.join(systems[:20])}")


def _judged(args: argparse.Namespace, files: list[str], names: list[str]) -> tuple[dict[str, Any], Any]:
    """Judgements and scores by system, and the queries' names."""
    if args.data is not None:
        judgements, scores = read_scored(args, files)
        return {name: (judgements, one) for name, one in zip(names, scores)}, judgements.query_ids
    common.check_one_stdin([args.qrels, *files])
    from truerank.io.trec import judge_run, read_qrels, read_run

    qrels = common.with_note(args.qrels, read_qrels(args.qrels))
    runs = {name: read_run(path) for name, path in zip(names, common.progress(files, "runs"))}
    judged = {name: judged_run(qrels, run, path, args.qrels) for path, (name, run) in zip(files, runs.items())}
    if args.fuse:
        from truerank.features.fusion import METHODS
        from truerank.features.run_pool import RunPool

        pool = RunPool(runs)
        judged |= {method: judge_run(qrels, pool.to_run(METHODS[method](pool), tag=method)) for method in args.fuse}
    return judged, qrels.query_ids


def _text(result: Any, args: argparse.Namespace, default: str) -> str:
    parts = [result.systems_table(args.format)]
    if result.baseline is None:
        shown = sum(pair.p_adjusted < 0.05 for pair in result.pairs)
        if len(result.pairs) <= FEW_PAIRS or args.format != "text":
            parts.append(result.pairs_table(args.format))
        parts.append(
            f"{shown} of {len(result.pairs)} pairs differ; `alike`: rankers with a letter in common cannot be told "
            "apart"
        )
    for pair in result.pairs if len(result.pairs) <= 5 else []:
        for word, queries_moved in zip(("gains", "loses"), result.moved_most(pair.a, pair.b)):
            if queries_moved:
                moved = ", ".join(f"{query} {difference:+.4f}" for query, difference in queries_moved)
                parts.append(f"{pair.a} {word} most against {pair.b}: {moved}")
    detectable = sorted(pair.detectable for pair in result.pairs)[len(result.pairs) // 2]
    queries = sorted(pair.queries for pair in result.pairs)
    count = str(queries[0]) if queries[0] == queries[-1] else f"{queries[0]} to {queries[-1]}"
    parts.append(
        f"{result.measure}, convention {result.convention}{default}; {count} queries; {args.test} test, two-sided"
        + (f" ({result.n_resamples} resamples)" if args.test == "randomisation" else "")
        + f"; p adjusted by {args.correction} for {len(result.pairs)} comparisons, ** where it is below .05; bootstrap "
        f"intervals; a t-test on these queries would find a difference of {detectable:.4f} four times in five (median)"
    )
    if result.ties_matter():
        parts.append(
            f"tied documents move a mean by more than .0005: the figures follow the convention's rule for ties "
            f"({result.convention}); `ties averaged` does not depend on it"
        )
    if result.smallest_p >= 0.05:
        parts.append(
            f"nothing can be shown: {count} queries, {result.n_resamples} resamples and {len(result.pairs)} "
            f"comparisons give no adjusted p below {result.smallest_p:.3g}; take more queries, compare fewer runs, or "
            "take --test t or another --correction"
        )
    return "\n\n".join(parts)
