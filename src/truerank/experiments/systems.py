"""Convert systems to scores of judged documents.

Over qrels, a system is a run. Over judged rows, a system is scores, a column, a fitted ranker, or a file of one of
these; a ranker reads its training columns.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.files import exists
from truerank.core.names import resolve
from truerank.core.printing import progress
from truerank.data.checkup import ranks_as_scores
from truerank.data.columns import as_in_training, as_trained, columns_for, dense_column, names_of
from truerank.data.provenance import keeps_sketch
from truerank.data.ranking_data import Judgements, RankingData
from truerank.data.remarks import Remark
from truerank.data.row_source import Rows
from truerank.experiments.policy import (
    about_data,
    about_documents,
    about_judged_rows,
    about_qrels,
    about_runs,
    check_order,
    check_shared_topics,
)
from truerank.io.letor.grammar import NUMBER
from truerank.io.results import by_id, run_of
from truerank.io.rows import Known, RowsAt, check_column
from truerank.io.streams import Source
from truerank.io.trec import as_qrels, judge_run, run_name
from truerank.measures.coverage import JudgedScores
from truerank.measures.evaluation import is_qrels, judged, named_list, named_runs, scores_in_order

_ROW_SCORES = re.compile(rb'\s*(\{\s*"format":\s*"truerank-model"|%b\s*(\n|$))' % NUMBER.pattern)
ROLES = ("qid", "y", "docid")  # columns of a table of judged rows that are no features


class ModelFile(NamedTuple):
    """A fitted ranker with the name of its file, for messages."""

    path: str
    model: Any


Checks = list[tuple[str, Callable[[str, np.ndarray | None], list[Remark]]]]


class Resolved(NamedTuple):
    """The systems of an experiment by name, with judgements and scores in the same order of rows, and models.

    `data` are the rows that models score. `checks` has the source and the function of the remarks on what was read,
    under a convention; with the numbers of some queries, only the remarks on these queries.
    """

    judged: JudgedScores
    models: dict[str, ModelFile]
    data: Any
    checks: Checks
    place: RowsAt | None = None
    known: Known = Known()
    note: str = ""


def by_name(systems: Any, over_qrels: bool) -> tuple[dict[str, Any], bool]:
    """Return the systems by name, and True for a dict or a list of systems, False for a single system."""
    if over_qrels:
        runs = named_runs(systems)
        return (runs, True) if runs else ({_name_of(systems, "run"): systems}, False)
    if isinstance(systems, Mapping):
        if not systems:
            raise InvalidInputError(
                "there is no system",
                remedies=["give systems by name: {'new': scores, 'old': 'bm25'}"],
                code="no-system",
            )
        return {str(name): one for name, one in systems.items()}, True
    if isinstance(systems, list | tuple) and systems and all(map(_is_named, systems)):
        return named_list(systems, [_name_of(one, f"system {place}") for place, one in enumerate(systems, 1)]), True
    return {_name_of(systems, "scores"): systems}, False


def _is_named(system: object) -> bool:
    return isinstance(system, str | os.PathLike | ModelFile) or hasattr(system, "predict")


def _is_model(system: object) -> bool:
    """Return whether a system scores rows itself: a fitted ranker of any library, or a function of X."""
    return hasattr(system, "predict") or (callable(system) and not hasattr(system, "__array__"))


def _name_of(system: Any, otherwise: str) -> str:
    if isinstance(system, ModelFile):
        return run_name(system.path)
    if isinstance(system, str | os.PathLike):
        return run_name(os.fspath(system))
    if hasattr(system, "predict"):
        return type(system).__name__
    name = getattr(system, "tag", None) or getattr(system, "name", None)
    return name if isinstance(name, str) and name else otherwise


def are_rows(judgements: Any, systems: Any) -> bool:
    """Return whether judgements belong to rows, which systems score, rather than qrels, which require runs.

    A file or a frame has rows if a system is a model, a file of a model or of scores, a column of it, or an array.
    """
    if isinstance(judgements, RowsAt | Rows) or not is_qrels(judgements):
        return True
    if hasattr(judgements, "read") or not (isinstance(judgements, str | os.PathLike) or hasattr(judgements, "columns")):
        return False
    each = systems if isinstance(systems, list | tuple) else [systems]
    each = list(systems.values()) if isinstance(systems, Mapping) else each
    return any(_scores_rows(one, RowsAt(judgements)) for one in each)


def _scores_rows(system: Any, place: RowsAt) -> bool:
    if not isinstance(system, str | os.PathLike):
        return _is_model(system) or isinstance(system, np.ndarray | float | int)
    name = stated_order(os.fspath(system))[0]
    if name == "-" or not os.path.isfile(name):
        return name in (place.column_names() or ())
    with Source(name) as stream:
        return bool(_ROW_SCORES.match(stream.peek()))


def resolve_runs(judgements: Any, runs: Mapping[str, Any], *, several: bool, collapse: Any = None) -> Resolved:
    """Return runs over qrels, each over all topics of the qrels; `collapse` maps chunks to documents."""
    qrels = as_qrels(judgements)
    found, contradicts, topics = dict[str, Any](), {}, {}
    for name, given in progress(runs.items(), "runs"):
        run = by_id(run_of(given, name, collapse), qrels)
        found[name] = judge_run(qrels, run)
        contradicts[name], topics[name] = run.contradicts_ranks, run.query_ids.tolist()
        if not several and not (qrels.n_queries and run.n_rows):
            what = "the qrels judge" if not qrels.n_queries else "the run ranks"
            raise InvalidInputError(f"there is nothing to evaluate: {what} no document of any query", code="nothing")
    check_shared_topics(qrels, topics)
    where = os.fspath(judgements) if isinstance(judgements, str | os.PathLike) else "qrels"
    checks: Checks = [(where, partial(about_qrels, qrels)), ("runs", partial(about_documents, qrels, found))]
    checks.append(("runs", lambda *_: about_runs(contradicts)))
    return Resolved(found, {}, None, checks)


def resolve_rows(judgements: Any, systems: Mapping[str, Any], qid: Any, doc_ids: Any) -> Resolved:
    """Return systems over judged rows, with scores in the order of the judgements' rows.

    Each model reads its own columns, so that models of different features can be compared; queries, grades and missing
    values are read as the first model requires.
    """
    loaded: dict[str, Any] = {}
    models: dict[str, ModelFile] = {}
    columns: dict[str, np.ndarray] = {}
    for name, one in systems.items():
        loaded[name] = one = _loaded(one)
        if isinstance(one, ModelFile):
            models[name] = one
        elif isinstance(one, str) and (column := stated_order(one)[0]) != "-" and not exists(column):
            columns[column] = np.zeros(0)
    is_place = is_qrels(judgements) or isinstance(judgements, Rows)
    place = judgements if isinstance(judgements, RowsAt) else RowsAt(judgements) if is_place else None
    known, note, of_frame = Known(), "", dict[str, Any]()
    readers = dict(models)
    data: Any = None
    held: Any = None
    if place is not None:
        if qid is not None or doc_ids is not None:
            what = "judged rows have queries and document ids of their own. Omit qid and doc_ids"
            raise InvalidInputError(what, argument="qid")
        frame = place.place if place.kind == "frame" else None
        for name, one in models.items():
            foreign = frame is not None and not keeps_sketch(one.model)  # truerank's rankers read a RankingData
            if foreign and (rows := columns_for(one.model, frame, ROLES)) is not None:
                of_frame[name] = rows
                del readers[name]
        if readers:
            known = place.known(*[one.model for one in readers.values()])
        held = place.chosen(list(columns), known) if columns or not readers else None
        data = place.read(known, graded=True) if readers else held
        judgements, order = data.judgements(), getattr(data, "order", None)
    else:
        judgements, order, note = _grades_alone(judgements, qid, doc_ids, models)
    where = "the data" if place is None else place.name
    for name in columns:
        columns[name] = _column(held, name, where)
    found: JudgedScores = {}
    unstated: dict[str, np.ndarray] = {}
    for name, one in loaded.items():
        if name in of_frame:
            own = resolve("truerank.rankers.pipeline:model_scores")(one.model, of_frame[name])
            own = scores_in_order(own, judgements, order, f"scores of {name!r}")
        elif isinstance(one, ModelFile):
            own = _predicted(one.model, place, data, known)
        else:
            label = "scores" if len(systems) == 1 else f"scores of {name!r}"
            sign, stated, given = _values(name, one, columns, data, judgements.n_rows)
            grouped = getattr(data, "grouped_scores", None)  # of rows in parts
            own = scores_in_order(given, judgements, order, label) if grouped is None else grouped(given)
            if not stated:
                unstated[name] = own
            own = sign * own if sign < 0 else own
        found[name] = judgements, own
    source = where.removeprefix("the ")
    checks: Checks = []
    if isinstance(data, RankingData) and not readers:
        checks.append((source, partial(about_judged_rows, data)))
    elif data is not None:
        used = as_in_training(data, known.columns) if isinstance(data, RankingData) else data
        checks.append((source, partial(about_data, used)))
    checks.append((source, lambda *_: ranks_as_scores(unstated, judgements.offsets)))
    return Resolved(found, models, data, checks, place, known, note)


def _grades_alone(
    grades: Any, qid: Any, doc_ids: Any, models: Mapping[str, Any]
) -> tuple[Judgements, np.ndarray | None, str]:
    """Return judgements without rows, the order of the caller's rows, and a note if there is a single query."""
    if models:
        raise InvalidInputError(
            f"{next(iter(models))} is a ranker, which requires rows to score",
            remedies=["give RankingData(X, y, qid), or scores"],
            code="no-rows",
        )
    judgements, order = judged(grades, qid, doc_ids)
    if qid is not None or isinstance(grades, Judgements):
        return judgements, order, ""
    return judgements, order, f"1 query of {judgements.n_rows} rows: pass qid if the rows belong to several queries"


def stated_order(entry: str) -> tuple[str, float | None]:
    """Return the file or column of an entry, and 1 or -1 if the entry states the best end, else None.

    >>> stated_order("bm25"), stated_order("-rank"), stated_order("rank:ascending"), stated_order("points:descending")
    (('bm25', None), ('rank', -1.0), ('rank', -1.0), ('points', 1.0))
    """
    name, order = _stated(entry)
    if exists(entry) or entry == "-":
        return entry, None
    return (entry[1:], -1.0) if order is None and entry.startswith("-") else (name, order)


def _stated(entry: str) -> tuple[str, float | None]:
    name, _, order = entry.rpartition(":")
    if name and order in ("ascending", "descending"):
        return name, -1.0 if order == "ascending" else 1.0
    return entry, None


def read_stated(entry: str, data: Any) -> np.ndarray:
    """Return the scores of a file in the file's order, higher is better; reject scores that may be ranks."""
    from truerank.io.scores import read_scores_of

    path, order = stated_order(entry)
    scores = read_scores_of(path, data, data.n_rows)
    if order is not None:
        return order * scores
    check_order(ranks_as_scores({path: data.grouped(scores)}, data.offsets))
    return scores


def _loaded(system: Any) -> Any:
    """Return a ranker as a `ModelFile`, which is loaded from a file whose name ends in `.json`."""
    if isinstance(system, str | os.PathLike) and os.fspath(system).endswith(".json") and exists(system):
        path = os.fspath(system)
        return ModelFile(path, resolve("truerank.models.model_file:load_model")(path))
    return ModelFile("", system) if _is_model(system) else system


def _column(rows: Any, name: str, where: str) -> np.ndarray:
    """Return a column of scores in the order of the file."""
    if not isinstance(rows, RankingData):
        raise InvalidInputError(
            f"{name!r} is not a file, and columns of {where} cannot be read here. Name a file", code="no-column"
        )
    check_column(name, names_of(rows), where)
    own = rows.restore(dense_column(rows, name))
    if np.isnan(own).any():
        raise InvalidInputError(
            f"column {name!r} cannot be used as scores: {int(np.isnan(own).sum())} of {len(own)} rows have no value",
            remedies=["fill in the missing values", "write the scores to a file, one for each row"],
            code="missing-scores",
        )
    return own


def _values(
    name: str, system: Any, columns: Mapping[str, np.ndarray], data: Any, n_rows: int
) -> tuple[float, bool, Any]:
    """Return scores in the caller's row order, their sign, and whether their order was stated."""
    if isinstance(system, str | os.PathLike):
        from truerank.io.scores import read_scores_of

        path, order = stated_order(os.fspath(system))
        return order or 1.0, order is not None, columns[path] if path in columns else read_scores_of(path, data, n_rows)
    order = _stated(name)[1]
    return order or 1.0, order is not None, system


def _predicted(model: Any, place: Any, data: Any, known: Known) -> np.ndarray:
    """Return the scores of a model (n,), in grouped order."""
    if not isinstance(data, RankingData):
        return np.asarray(data.scores(model), dtype=np.float64)
    own = getattr(model, "category_names", None) or {}
    if place.kind != "rows" and any(known.categories[name] != texts for name, texts in own.items()):
        data = place.read(place.known(model), graded=True)
    return np.asarray(
        resolve("truerank.rankers.pipeline:ranker_scores")(model, as_trained(model, data)), dtype=np.float64
    )
