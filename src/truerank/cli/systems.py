"""The systems that are evaluated or compared: TREC runs over qrels, or models, score files and columns of one file."""

from __future__ import annotations

import argparse
import os
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from truerank.cli import common
from truerank.cli.common import predicted
from truerank.core.names import nearest
from truerank.data.columns import names_of
from truerank.data.ranking_data import Judgements, RankingData
from truerank.io.scores import read_scores
from truerank.io.tables import column_names, table_kind
from truerank.io.trec import judge_run, read_qrels, read_run
from truerank.measures.coverage import settle_topics


def settle_systems(args: argparse.Namespace) -> None:
    """Sort the systems of `options.add_system_options` into `args.models` and `args.runs`, by the input they need."""
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
    if args.qrels is None:
        args.models, args.runs = named, []
        if not named:
            common.refuse_idle(args, ["allow_training_queries"], "belongs to models. Name a model")
        return
    args.models, args.runs = [], common.run_paths(named)
    common.refuse_idle(args, ["allow_training_queries"], "belongs to --data")
    if len(set(args.runs)) < len(args.runs):
        raise common.UsageError("the same file is named twice")


def add_baseline(args: argparse.Namespace) -> None:
    """Add to `args.scores` a baseline that is a column of the data, or a file that was not named."""
    files = [*args.models, *args.runs, *args.scores]
    if args.data is None or args.baseline is None:
        return
    if args.baseline not in {*files, *common.run_names(files, or_paths=True)}:
        args.scores = [*args.scores, args.baseline]


def baseline_name(given: str | None, files: list[str], names: list[str]) -> str:
    """Return the name of the baseline, which is given by its name or its file; None is the first system."""
    if given is None:
        return names[0]
    if given in files:
        return names[files.index(given)]
    if given in names:
        return given
    raise common.UsageError(
        f"--baseline {given!r} is not among the compared systems. Choose one of: {', '.join(names[:20])}"
    )


def judged_runs(args: argparse.Namespace, names: list[str]) -> dict[str, tuple[Judgements, np.ndarray]]:
    """Judgements and scores of each run, each with a judged topic."""
    common.check_one_stdin([args.qrels, *args.runs])
    qrels = common.with_note(args.qrels, read_qrels(args.qrels))
    judged = {}
    for name, path in zip(names, common.progress(args.runs, "runs")):
        judged[name] = judge_run(qrels, read_run(path))
        if not len(judged[name][1]):
            raise common.InvalidInputError(
                f"{path}: no topic of this run is in {args.qrels}; they do not belong together"
            )
    return judged


class Scored(NamedTuple):
    """Scores in grouped order by system, on queries that trained none of the models."""

    judgements: Judgements
    scores: list[np.ndarray]
    names: list[str]
    models: list[Any]
    data: RankingData
    seen: common.Provenance | None


def score_systems(args: argparse.Namespace) -> Scored:
    """Score `args.data` by each of `args.models`, and read each of `args.scores`: a file, or a column of the data.

    Each model reads its own columns, so models of different features can be compared; queries, grades and missing
    values are read as the first model knows them.
    """
    models, scores = args.models, args.scores
    if len({*models, *scores}) < len(models) + len(scores):
        raise common.UsageError("the same file is named twice")
    common.check_one_stdin([args.data, *scores])
    rankers = [common.load_ranker(path) for path in models]
    columns = [entry for entry in scores if entry != "-" and not os.path.exists(entry)]
    if columns and args.data == "-":
        raise common.UsageError(f"{columns[0]}: there is no such file, and columns are read from a file, not from -")
    like = _union(rankers)
    data = common.read_graded(args.data, args, like=like, features=bool(rankers))
    values = _columns(args, columns, rankers[0] if rankers else None) if columns else {}
    found: list[np.ndarray] = []
    for ranker in rankers:
        own = getattr(ranker, "category_names", None) or {}
        alike = all(like.category_names[name] == texts for name, texts in own.items())
        rows = data if alike else common.read_graded(args.data, args, like=ranker)
        found.append(data.grouped(predicted(ranker, rows)))
    seen = common.about_training(args, dict(zip(models, rankers)), data) if rankers else None
    keep = np.ones(data.n_queries, dtype=bool) if seen is None else seen.keep
    found += [data.grouped(values[entry] if entry in values else read_scores(entry, data.n_rows)) for entry in scores]
    judgements, kept = data.judgements().take_queries(keep.nonzero()[0])
    return Scored(
        judgements,
        [one[kept] for one in found],
        common.run_names([*models, *scores], or_paths=True),
        [*rankers, *(None for _ in scores)],
        data if keep.all() else data.take_queries(keep),
        seen,
    )


def ranking_names(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    """The files that are compared, models before scores, and their names."""
    settle_systems(args)
    add_baseline(args)
    files = [*args.models, *args.runs, *args.scores]
    if len(files) < 2:
        more = "another run" if args.data is None else "--baseline COLUMN, --scores FILE or another model"
        raise common.UsageError(f"a comparison needs at least two systems, got {len(files)}. Add {more}")
    return files, common.run_names(files, or_paths=True)


def judged_rankings(args: argparse.Namespace, names: list[str]) -> tuple[dict[str, Any], Any, common.Provenance | None]:
    """Judgements and scores by system; of runs the topics that they cover, of models the queries that trained them."""
    if args.data is not None:
        found = score_systems(args)
        return {name: (found.judgements, one) for name, one in zip(names, found.scores)}, None, found.seen
    return *settle_topics(judged_runs(args, names), args.topics), None


def _union(rankers: list[Any]) -> Any:
    """Columns and categories of the models together; no columns if one of the models uses all."""
    known = [ranker.feature_names_in_ for ranker in rankers if getattr(ranker, "feature_names_in_", None) is not None]
    categories: dict[str, Any] = {}
    for ranker in rankers:
        categories = (getattr(ranker, "category_names", None) or {}) | categories
    reading = next((own for own in map(common.reading_of, rankers) if own), {})
    like = SimpleNamespace(category_names=categories, reading_=reading, predict=None)
    if known and len(known) == len(rankers):
        like.feature_names_in_ = list(dict.fromkeys(str(name) for own in known for name in own))
    return like


def _columns(args: argparse.Namespace, columns: list[str], like: object) -> dict[str, np.ndarray]:
    """The values of the columns of `args.data` that are used as scores, in the file's order."""

    def check(known: list[str]) -> None:
        for name in columns:
            if name not in known:
                what = f"{name!r} is neither a file of scores nor a column of {args.data}"
                raise common.InvalidInputError(what + (nearest(name, known) or f" ({known[0]} to {known[-1]})"))

    asked = argparse.Namespace(**vars(args))
    if table_kind(args.data):
        check(column_names(args.data))
        asked.features, asked.exclude, asked.categorical, asked.missing = columns, None, None, "nan"
    data = common.read_data(args.data, asked, reading=common.reading_of(like))
    names = names_of(data)
    check(names)
    values = {}
    for name in columns:
        column = data.X[:, [names.index(name)]]
        own = data.restore(np.asarray(column.toarray() if hasattr(column, "toarray") else column)[:, 0])
        if np.isnan(own).any():
            raise common.InvalidInputError(
                f"column {name!r} cannot be used as scores: it has no value in {int(np.isnan(own).sum())} rows. Fill "
                "them in, or write the scores to a file, one for each row"
            )
        values[name] = own
    return values
