"""The rankings that `compare` and `power` read: TREC runs over qrels, or models and score files of the same rows."""

from __future__ import annotations

import argparse
from typing import Any

from truerank.cli import common
from truerank.cli.evaluate import judged_run
from truerank.cli.systems import score_systems


def ranking_files(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    """What is compared, models first and then scores, or runs; and the models among them."""
    if args.qrels is not None and args.scores:
        raise common.UsageError("with --qrels the runs are named without an option; --scores belongs to --data")
    if args.data is not None and args.qrels is not None:
        raise common.UsageError("give either --data with --scores or --qrels with runs, not both")
    if args.data is None and args.qrels is None:
        raise common.UsageError(
            "name the systems: --qrels FILE RUN RUN …, or --data FILE with models, --scores FILE … or --baseline COLUMN"
        )
    if args.data is not None and args.fuse:
        raise common.UsageError("--fuse joins TREC runs; it belongs to --qrels")
    if args.data is not None:
        common.refuse_idle(args, ["topics"], "belongs to --qrels: score files have the same queries")
    if args.qrels is not None:
        common.refuse_reading(args, "belongs to --data")
        common.refuse_idle(args, ["allow_training_queries"], "belongs to models that score --data")
    elif not args.runs:
        common.refuse_idle(args, ["allow_training_queries"], "belongs to models: name one")
    files = common.run_paths(args.runs) if args.data is None else [*args.runs, *args.scores]
    if args.data is not None and args.baseline is not None:
        named = {*files, *common.run_names(files, or_paths=True)}
        if args.baseline not in named:  # a column of the data, or a file that was not named
            args.scores = [*args.scores, args.baseline]
            files = [*files, args.baseline]
    if len(files) + len(args.fuse) < 2:
        raise common.UsageError(f"a comparison needs at least two rankers, got {len(files)}")
    if len(set(files)) < len(files):
        raise common.UsageError("the same file is named twice")
    return list(files), [] if args.data is None else list(args.runs)


def judged_rankings(
    args: argparse.Namespace, files: list[str], names: list[str], models: list[str]
) -> tuple[dict[str, Any], Any, common.Provenance | None]:
    """Judgements and scores by system; of runs the topics that they cover, of models the queries that trained them."""
    if args.data is not None:
        found = score_systems(args, models, args.scores)
        return {name: (found.judgements, one) for name, one in zip(names, found.scores)}, None, found.seen
    common.check_one_stdin([args.qrels, *files])
    from truerank.io.trec import judge_run, read_qrels, read_run
    from truerank.measures.coverage import settle_topics

    qrels = common.with_note(args.qrels, read_qrels(args.qrels))
    runs = {name: read_run(path) for name, path in zip(names, common.progress(files, "runs"))}
    judged = {name: judged_run(qrels, run, path, args.qrels) for path, (name, run) in zip(files, runs.items())}
    if args.fuse:
        from truerank.features.fusion import METHODS
        from truerank.features.run_pool import RunPool

        pool = RunPool(runs)
        judged |= {method: judge_run(qrels, pool.to_run(METHODS[method](pool), tag=method)) for method in args.fuse}
    return *settle_topics(judged, args.topics), None
