"""The rankings that `compare` and `power` read: TREC runs over qrels, or models and score files of the same rows."""

from __future__ import annotations

import argparse
from typing import Any

from truerank.cli import common
from truerank.cli.systems import judged_runs, score_systems, settle_systems


def ranking_names(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    """The files that are compared, models before scores, and their names."""
    settle_systems(args)
    files = [*args.models, *args.runs, *args.scores]
    known = {*files, *common.run_names(files, or_paths=True)}
    if args.data is not None and args.baseline is not None and args.baseline not in known:
        args.scores = [*args.scores, args.baseline]  # a column of the data, or a file that was not named
        files = [*files, args.baseline]
    if len(files) < 2:
        more = "another run" if args.data is None else "--baseline COLUMN, --scores FILE or another model"
        raise common.UsageError(f"a comparison needs at least two systems, got {len(files)}. Add {more}")
    return files, common.run_names(files, or_paths=True)


def judged_rankings(args: argparse.Namespace, names: list[str]) -> tuple[dict[str, Any], Any, common.Provenance | None]:
    """Judgements and scores by system; of runs the topics that they cover, of models the queries that trained them."""
    if args.data is not None:
        found = score_systems(args)
        return {name: (found.judgements, one) for name, one in zip(names, found.scores)}, None, found.seen
    from truerank.measures.coverage import settle_topics

    return *settle_topics(judged_runs(args, names), args.topics), None
