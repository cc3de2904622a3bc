"""`truerank predict`: one score a line, in the order of the rows."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from truerank.cli import common, options

if TYPE_CHECKING:
    import numpy as np

    from truerank.data.ranking_data import RankingData


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("model", metavar="MODEL", help="a model that `truerank train` wrote")
    parser.add_argument("data", metavar="DATA", help="a LETOR file (.gz .xz .zst), a table, or -")
    parser.add_argument("-o", "--output", metavar="FILE", help="where the scores go (default: stdout)")
    options.add_cluster_option(parser)
    options.add_data_options(parser)


def run(args: argparse.Namespace) -> int:
    """Score every row; the text of a score gives back its exact bits."""
    if args.cluster is None:
        common.check_writable(args.output)
    model = common.load_ranker(args.model)
    if args.cluster is not None:
        return _parts(args, model)
    scores = predicted(model, common.read_data(args.data, args, like=model))
    common.write_scores(args.output, scores)
    return 0


def _parts(args: argparse.Namespace, model: Any) -> int:
    """One file of scores a partition, in a folder."""
    folder = common.parts_folder(args)
    with common.cluster_of(args) as client:
        parts = model.predict(common.read_partitions(args.data, args, client, like=model))
    for number, scores in enumerate(parts):
        common.write_scores(str(folder / f"part-{number:05d}.txt"), scores)
    return 0


def predicted(model: Any, data: RankingData) -> np.ndarray:
    """Scores in the file's row order, from a ranker or a pipeline that ends in one."""
    from truerank.data.columns import as_in_training

    common.announce_compilation()
    data = as_in_training(data, getattr(model, "feature_names_in_", None))
    if hasattr(model, "steps"):
        return model.predict(data.restore(data.X), qid=data.restore(data.qid))
    return model.predict(data)
