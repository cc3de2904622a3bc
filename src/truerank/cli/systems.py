"""The systems that are evaluated or compared, from the arguments of a command to an `Experiment`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from truerank.cli import common

if TYPE_CHECKING:
    from truerank.core.types import TrainingRule
    from truerank.data.ranking_data import RankingData
    from truerank.experiments.experiment import Experiment
    from truerank.experiments.policy import Provenance


def training_rule(args: argparse.Namespace) -> TrainingRule:
    """Return the rule for queries that trained a model, as Python calls it."""
    rule: Any = (args.training_queries or "leave-out").replace("-", " ")
    return rule


def about_training(
    args: argparse.Namespace, models: Mapping[str, Any], data: Any, *, instead: Sequence[str] = ("use other queries",)
) -> Provenance:
    """Queries of `data` that did not train the models (by file), with a text to print first; see `settle_training`."""
    from truerank.experiments.policy import settle_training

    return settle_training(models, data, training_rule(args), instead=instead)


def settle_systems(args: argparse.Namespace, least: int = 0) -> None:
    """Sort the systems of `options.add_system_options` into `args.models` and `args.runs`, by the input they need.

    `args.files` and `args.names` are of all systems: models, runs, scores. A baseline that is a column of the data, or
    a file that was not named, becomes the last of them. Fewer than `least` systems are refused.
    """
    named = [*args.systems, *args.named]
    if (args.data is None) == (args.qrels is None):
        if args.data is None and len(named) > 1:
            raise common.UsageError(
                f"no judgements are named. For models, add --data FILE (--data {named[-1]} if this is the file of "
                "judged rows), for TREC runs --qrels FILE"
            )
        raise common.UsageError(
            "give either --qrels FILE with runs, or --data FILE with models, --scores FILE … or --baseline COLUMN"
        )
    args.models, args.runs = (named, []) if args.qrels is None else ([], common.run_paths(named))
    if not args.models:
        why = "belongs to --data" if args.data is None else "belongs to models. Name a model"
        common.refuse_idle(args, ["training_queries"], why)
    files = [*args.models, *args.runs, *args.scores]
    if len(set(files)) < len(files):
        raise common.UsageError("the same file is named twice")
    known = {None, *files, *common.run_names(files, or_paths=True)}
    if args.data is not None and args.baseline not in known and common.printable(args.baseline) not in known:
        args.scores = [*args.scores, args.baseline]
        files = [*files, args.baseline]
    if len(files) < least:
        more = "another run" if args.data is None else "--baseline COLUMN, --scores FILE or another model"
        raise common.UsageError(f"a comparison needs at least two systems, got {len(files)}. Add {more}")
    args.files, args.names = files, common.run_names(files, or_paths=True)


def baseline_name(args: argparse.Namespace) -> str:
    """Return the name of the baseline, which is given by its name or its file; by default, the first system."""
    if args.baseline is None:
        return args.names[0]
    if args.baseline in args.files:
        return args.names[args.files.index(args.baseline)]
    if (name := common.printable(args.baseline)) in args.names:
        return name
    raise common.UsageError(
        f"--baseline {args.baseline!r} is not among the compared systems. Choose one of: {', '.join(args.names[:20])}"
    )


def experiment_of(args: argparse.Namespace, measures: str, *, baseline: str | None = None) -> Experiment:
    """Return the experiment on the systems that `settle_systems` found, and tell the remarks on what was read."""
    from truerank.experiments.experiment import Experiment
    from truerank.experiments.systems import ModelFile, RowsFile

    common.check_one_stdin([args.data, args.qrels, *args.files])
    systems: dict[str, Any] = dict(zip(args.names, args.files))
    models = {name: ModelFile(path, common.load_ranker(path)) for name, path in zip(args.names, args.models)}
    with common.cluster_of(args) as client:
        judgements = common.judgements_of(args)
        if args.data is not None:
            read = partial(_read, args, client)
            judgements = RowsFile(args.data, read, partial(_read_columns, args))
        found = Experiment(
            judgements, systems | models, measures, baseline=baseline, convention=args.convention, topics=args.topics,
            training_queries=training_rule(args), segments=getattr(args, "segments", None),
            collapse=getattr(args, "collapse", None),
        )  # fmt: skip
        common.tell_remarks(args, found.found)
    return found


def _read(args: argparse.Namespace, client: Any, like: Any) -> Any:
    return common.read_judged(args.data, args, like=like, features=like is not None, client=client)


def _read_columns(args: argparse.Namespace, columns: list[str], like: Any) -> RankingData:
    """Rows of `args.data` with at least these columns, read as the models know them."""
    from truerank.data.columns import reading_of
    from truerank.experiments.systems import check_column
    from truerank.io.tables import column_names

    if args.data == "-":
        raise common.UsageError(f"{columns[0]}: there is no such file, and columns are read from a file, not from -")
    asked = argparse.Namespace(**vars(args))
    if common.table_kind(args.data):
        known = column_names(args.data)
        for name in columns:
            check_column(name, known, args.data)
        asked.features, asked.exclude, asked.missing = columns, None, "nan"
        asked.categorical = list(getattr(like, "category_names", None) or {}) if like else None
        asked.categorical = [name for name in asked.categorical or [] if name in columns] or None
    return common.read_data(args.data, asked, reading=reading_of(like))
