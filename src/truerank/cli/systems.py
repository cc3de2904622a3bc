"""The systems that are evaluated or compared: TREC runs over qrels, or models, score files and columns of one file."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import truerank
from truerank.cli import common
from truerank.core.names import nearest

if TYPE_CHECKING:
    import numpy as np


class Provenance(NamedTuple):
    """Training queries found in data: queries to keep (bool (m,)), a text, and an entry for JSON."""

    keep: np.ndarray
    text: str
    report: dict[str, Any]

    def kept(self, data: Any) -> Any:
        """Return the data of the queries to keep."""
        return data if self.keep.all() else data.take_queries(self.keep)


def about_training(
    args: argparse.Namespace, models: Mapping[str, Any], data: Any, *, instead: str = "Use other queries"
) -> Provenance:
    """Queries of `data` that did not train the models (by file), with a text to print first.

    With `--allow-training-queries` all are kept. `instead` is the remedy that the error names first.

    Raises
    ------
    InvalidInputError
        Where more than half of the queries trained a model.
    """
    import numpy as np

    allowed = args.allow_training_queries
    keep, lines, report = np.ones(data.n_queries, dtype=bool), [], {}
    for path, model in models.items():
        found = truerank.training_queries(model, data)
        about = f"{path}: {found}"
        if found.mostly and not allowed:
            raise common.InvalidInputError(
                f"{about}. Values on training queries are too optimistic. {instead}, or add "
                "--allow-training-queries to print them anyway"
            )
        if found.recognised and allowed:
            about += "; the values include them and are too optimistic for new queries"
        elif found.recognised:
            about += "; they are left out"
            keep &= ~found.matched
        lines.append(about)
        report[path] = found.to_dict() | {"left_out": 0 if allowed else found.recognised}
    if not keep.any():
        raise common.InvalidInputError(
            f"{'; '.join(lines)}. No query is left. Use queries that trained none of the models"
        )
    return Provenance(keep, "\n".join(lines), report)


class Systems(NamedTuple):
    """Judgements and scores by name of the system, the models by name, their rows, and which queries trained them."""

    judged: dict[str, tuple[truerank.Judgements, np.ndarray]]
    models: dict[str, Any]
    data: Any
    seen: Provenance | None


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
        common.refuse_idle(args, ["allow_training_queries"], why)
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


def stated_order(entry: str) -> tuple[str, float | None]:
    """The file or column of `--scores` and `--baseline`, and 1 or -1 where the entry states which end is best.

    >>> stated_order("bm25"), stated_order("-rank"), stated_order("rank:ascending"), stated_order("points:descending")
    (('bm25', None), ('rank', -1.0), ('rank', -1.0), ('points', 1.0))
    """
    name, _, order = entry.rpartition(":")
    if os.path.exists(entry) or entry == "-":
        return entry, None
    if name and order in ("ascending", "descending"):
        return name, -1.0 if order == "ascending" else 1.0
    return (entry[1:], -1.0) if entry.startswith("-") else (entry, None)


def read_stated(entry: str, data: Any) -> np.ndarray:
    """The scores of a file in the file's order, higher is better; refused if they may be ranks."""
    from truerank.experiments.policy import about_scores, check_verdict
    from truerank.io.scores import read_scores

    path, order = stated_order(entry)
    scores = read_scores(path, data.n_rows)
    if order is not None:
        return order * scores
    check_verdict(about_scores({path: data.grouped(scores)}, data.offsets))
    return scores


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


def read_systems(args: argparse.Namespace, *, verdict: bool = True) -> Systems:
    """Read the systems that `settle_systems` found, each over all topics of the qrels, or over the same queries.

    With `verdict`, scores that may be ranks are refused unless the user stated their order.
    """
    from truerank.experiments.policy import about_runs

    common.check_one_stdin([args.data, args.qrels, *args.files])
    if args.data is not None:
        return _scored(args, verdict)
    qrels = common.with_remarks(args, args.qrels, truerank.read_qrels(args.qrels))
    judged, contradicts = {}, {}
    for name, path in zip(args.names, common.progress(args.runs, "runs")):
        run = truerank.read_run(path)
        judged[name] = truerank.judge_run(qrels, run)
        contradicts[name] = run.contradicts_ranks
        if not len(judged[name][1]):
            raise common.InvalidInputError(
                f"{path}: no topic of this run is in {args.qrels}; they do not belong together"
            )
    common.remark(args, "runs", about_runs(contradicts))
    return Systems(judged, {}, None, None)


def _scored(args: argparse.Namespace, verdict: bool) -> Systems:
    """Score `args.data` by each of `args.models`, and read each of `args.scores`: a file, or a column of the data.

    Each model reads its own columns, so models of different features can be compared; queries, grades and missing
    values are read as the first model knows them. Queries that trained a model are left out.
    """
    from truerank.experiments.policy import about_scores, check_verdict
    from truerank.io.scores import read_scores

    rankers = [common.load_ranker(path) for path in args.models]
    stated = [stated_order(entry) for entry in args.scores]
    columns = list(dict.fromkeys(name for name, _ in stated if name != "-" and not os.path.exists(name)))
    if columns and args.data == "-":
        raise common.UsageError(f"{columns[0]}: there is no such file, and columns are read from a file, not from -")
    like = _union(rankers)
    with common.cluster_of(args) as client:
        data = common.read_graded(args.data, args, client=client, like=like, features=bool(rankers))
        values = _columns(args, columns, rankers[0] if rankers else None) if columns else {}
        found: list[np.ndarray] = []
        for ranker in rankers:
            own = getattr(ranker, "category_names", None) or {}
            alike = all(like.category_names[name] == texts for name, texts in own.items())
            rows = data if alike else common.read_graded(args.data, args, like=ranker)
            found.append(data.grouped(common.predicted(ranker, rows)) if client is None else data.scores(ranker))
        unstated = {}
        for name, order in stated:
            own = data.grouped(values[name] if name in values else read_scores(name, data.n_rows))
            found.append(own if order is None else order * own)
            if order is None:
                unstated[name] = own
        judgements = data.judgements()
        remarks = about_scores(unstated, judgements.offsets)
        if verdict:
            check_verdict(remarks)
        common.remark(args, args.data, remarks)
        seen = None
        if rankers:
            seen = about_training(args, dict(zip(args.models, rankers)), data)
            judgements, kept = judgements.take_queries(seen.keep.nonzero()[0])
            found = [one[kept] for one in found]
    judged = {name: (judgements, scores) for name, scores in zip(args.names, found)}
    return Systems(judged, dict(zip(args.names, rankers)), data, seen)


def judged_rankings(args: argparse.Namespace) -> tuple[dict[str, Any], Any, Provenance | None]:
    """Judgements and scores by system; of runs the topics that they cover, of models the queries that trained them."""
    from truerank.measures.coverage import settle_topics

    found = read_systems(args)
    if args.data is not None:
        return found.judged, None, found.seen
    return *settle_topics(found.judged, args.topics), None


def _union(rankers: list[Any]) -> Any:
    """Columns and categories of the models together; no columns if one of the models uses all."""
    known = [ranker.feature_names_in_ for ranker in rankers if getattr(ranker, "feature_names_in_", None) is not None]
    categories: dict[str, Any] = {}
    for ranker in rankers:
        categories = (getattr(ranker, "category_names", None) or {}) | categories
    readings = list(map(common.reading_of, rankers))
    reading = next(filter(None, readings), {})
    if any(own.get("missing") == "nan" for own in readings):  # models that read 0 do so themselves
        reading["missing"] = "nan"
    like = SimpleNamespace(category_names=categories, reading_=reading, predict=None)
    if known and len(known) == len(rankers):
        like.feature_names_in_ = list(dict.fromkeys(str(name) for own in known for name in own))
    return like


def _columns(args: argparse.Namespace, columns: list[str], like: object) -> dict[str, np.ndarray]:
    """The values of the columns of `args.data` that are used as scores, in the file's order."""
    import numpy as np

    from truerank.data.columns import names_of
    from truerank.io.tables import column_names

    def check(known: list[str]) -> None:
        for name in columns:
            if name not in known:
                what = f"{name!r} is neither a file of scores nor a column of {args.data}"
                raise common.InvalidInputError(what + (nearest(name, known) or f" ({known[0]} to {known[-1]})"))

    asked = argparse.Namespace(**vars(args))
    if common.table_kind(args.data):
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
