"""`truerank compare`: wins, losses and tests between TREC runs or score files."""

from __future__ import annotations

import argparse
import os
from typing import Any

from truerank.cli import common
from truerank.cli.evaluate import read_judged


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("runs", nargs="*", metavar="RUN", help="TREC runs (with --qrels); the first is the baseline")
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
    parser.add_argument("--measure", default="nDCG@10", metavar="NAME", help="what is compared (default: nDCG@10)")
    parser.add_argument("--baseline", metavar="FILE", help="the run or score file that the others are compared with")
    parser.add_argument("--all-pairs", action="store_true", help="compare every pair, without a baseline")
    parser.add_argument(
        "--test",
        choices=("randomisation", "t", "wilcoxon", "sign"),
        default="randomisation",
        help="two-sided test of the per-query values (default: randomisation)",
    )
    parser.add_argument(
        "--correction", choices=("holm", "bonferroni", "none"), default="holm", help="of the p-values (default: holm)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the test and the intervals")
    common.add_convention_option(parser)
    common.add_json_option(parser)
    common.add_data_options(parser)


def run(args: argparse.Namespace) -> int:
    """Compare each ranker with the baseline, or all pairs."""
    from truerank.measures import parse_measure
    from truerank.significance import compare_values

    measure = parse_measure(args.measure, args.convention)
    files = args.runs if args.data is None else args.scores
    if args.data is not None and args.runs:
        raise common.UsageError("with --data the score files follow --scores")
    if args.qrels is not None and args.scores:
        raise common.UsageError("with --qrels the runs are named without an option; --scores belongs to --data")
    if args.data is not None and args.qrels is not None:
        raise common.UsageError("give either --data with --scores or --qrels with runs, not both")
    if args.data is None and args.qrels is None:
        raise common.UsageError("give --qrels FILE RUN RUN …, or --data FILE --scores FILE FILE …")
    if len(files) < 2:
        raise common.UsageError(f"a comparison needs at least two rankers, got {len(files)}")
    if len(set(files)) < len(files):
        raise common.UsageError("the same file is named twice")
    baseline = args.baseline or files[0]
    if args.all_pairs and args.baseline:
        raise common.UsageError("--all-pairs has no baseline")
    if baseline not in files:
        raise common.UsageError(f"--baseline {baseline} is none of the files to compare: {', '.join(files)}")
    names = dict(zip(files, files if args.json else _short(files)))
    result = compare_values(
        {names[path]: values for path, values in _values(args, measure, files).items()},
        baseline=None if args.all_pairs else names[baseline],
        measure=args.measure,
        convention=measure.convention,
        test=args.test,
        correction=args.correction,
        random_state=args.seed,
    )
    if args.json:
        common.print_json(result.to_dict())
        return 0
    print(result)
    print(
        f"\n{args.measure}, convention {measure.convention}; {args.test} test, two-sided; p adjusted by "
        f"{args.correction}, ** where it is below .05; `shows`: the difference that a t-test on these queries would "
        "find four times in five"
    )
    return 0


def _short(files: list[str]) -> list[str]:
    """File names without their folders, where that leaves them different."""
    names = [os.path.basename(path) or path for path in files]
    return names if len(set(names)) == len(names) else list(files)


def _values(args: argparse.Namespace, measure: Any, files: list[str]) -> dict[str, Any]:
    """Per-query values by file."""
    if args.data is not None:
        judgements, scores = read_judged(args, list(files), [])
        return {name: measure.per_query(judgements, one) for name, one in zip(files, scores)}
    if [args.qrels, *files].count("-") > 1:
        raise common.UsageError("only one of the files can be standard input (-)")
    from truerank.io.trec import judge_run, read_qrels, read_run

    qrels = read_qrels(args.qrels)
    return {name: measure.per_query(*judge_run(qrels, read_run(name))) for name in files}
