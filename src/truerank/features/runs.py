"""TREC runs of several systems over the same topics as one feature matrix: a column for each system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.core.checks import check_choice, check_number
from truerank.core.errors import InvalidInputError
from truerank.data.grouping import offsets_of
from truerank.data.ranking_data import Judgements, RankingData
from truerank.io.trec import Qrels, Run, judge_lists

MARGIN = 0.05


@dataclass(frozen=True)
class RunFeatures:
    """The documents that any of several runs retrieved, with each run's score.

    Attributes
    ----------
    data : RankingData
        X (n, runs), NaN or the missing score where a run did not retrieve a document; y the grades of the qrels
        (0 where unjudged), None without qrels; a topic's documents by descending id, so that equal scores in row order
        are trec_eval's ties.
    judgements : Judgements or None
        As the qrels have them: judged mask, and the grades of judged documents that no run retrieved, so that R counts
        them.
    """

    data: RankingData
    judgements: Judgements | None


def join_runs(
    runs: Sequence[Run],
    qrels: Qrels | None = None,
    *,
    names: Sequence[str] | None = None,
    missing: str = "min",
    margin: float = MARGIN,
    dtype: Any = np.float64,
) -> RunFeatures:
    """One row for each (topic, document) that some run retrieved, one column for each run.

    Parameters
    ----------
    runs : sequence of Run
    qrels : Qrels, optional
        Grades. Topics then stand in the order of the qrels and topics without judgments are left out; without qrels
        they stand in order of first appearance over the runs.
    names : sequence of str, optional
        Column names; by default the runs' tags, numbered where they repeat.
    missing : {"min", "nan"}
        What a run that did not retrieve a document says of it. "min": the run's lowest score for the topic minus
        `margin` times the range of its scores there (minus `margin` where all are equal), which is below every document
        that it did retrieve; 0 for every document of a topic that the run lacks altogether. "nan": NaN.
    margin : float
        See `missing`; > 0.
    dtype : float64 or float32

    Raises
    ------
    InvalidInputError
        On no runs, names that repeat or do not fit, or qrels that share no topic with the runs.

    Notes
    -----
    One dictionary look-up for each row of each run, and n × runs values of memory.

    Examples
    --------
    >>> import io
    >>> from truerank.io.trec import read_run
    >>> a = read_run(io.StringIO("1 Q0 d1 1 4 a\\n1 Q0 d2 2 2 a\\n"))
    >>> b = read_run(io.StringIO("1 Q0 d2 1 7 b\\n1 Q0 d3 2 7 b\\n"))
    >>> joined = join_runs([a, b], margin=0.5).data
    >>> joined.doc_ids.tolist(), joined.X.tolist()
    (['d3', 'd2', 'd1'], [[1.0, 7.0], [2.0, 7.0], [4.0, 6.5]])
    """
    check_choice(missing, "missing", ("min", "nan"))
    check_number(margin, "margin", minimum=0.0, open_minimum=True)
    if not runs:
        raise InvalidInputError("join_runs: got no runs")
    columns = _names(runs, names)
    places = [{name: number for number, name in enumerate(run.query_ids.tolist())} for run in runs]
    if qrels is None:
        topics = list(dict.fromkeys(name for place in places for name in place))
    else:
        topics = [name for name in qrels.query_ids.tolist() if any(name in place for place in places)]
        if not topics:
            raise InvalidInputError(
                f"the runs and the qrels share no topic: runs have {list(places[0])[:3]}…, qrels have "
                f"{qrels.query_ids[:3].tolist()}…; topics are compared as text"
            )
    blocks, documents, sizes = [], [], []
    for topic in topics:
        block, ids = _topic_block(runs, [place.get(topic) for place in places], missing, margin, dtype)
        blocks.append(block)
        documents.append(ids)
        sizes.append(len(ids))
    offsets = offsets_of(sizes)
    query_ids, doc_ids = np.array(topics), np.concatenate(documents)
    judgements = None if qrels is None else judge_lists(qrels, query_ids, doc_ids, offsets)
    data = RankingData.from_grouped(
        np.concatenate(blocks), None, offsets, query_ids, doc_ids=doc_ids, feature_names=columns
    )
    return RunFeatures(data if judgements is None else data.with_judgements(judgements), judgements)


def _names(runs: Sequence[Run], names: Sequence[str] | None) -> list[str]:
    if names is not None:
        columns = [str(name) for name in names]
        if len(columns) != len(runs) or len(set(columns)) < len(columns):
            raise InvalidInputError(f"join_runs: {len(runs)} runs need as many different names, got {columns}")
        return columns
    tags = [run.tag or f"run {number}" for number, run in enumerate(runs, 1)]
    return [f"{tag} ({i})" if tags.count(tag) > 1 else tag for i, tag in enumerate(tags, 1)]


def _topic_block(
    runs: Sequence[Run], places: Sequence[int | None], missing: str, margin: float, dtype: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Scores (documents, runs) of one topic and its document ids, by descending id."""
    rows: dict[str, int] = {}
    parts: list[tuple[int, list[int], np.ndarray]] = []
    for column, (run, place) in enumerate(zip(runs, places)):
        if place is None:
            continue
        part = slice(int(run.offsets[place]), int(run.offsets[place + 1]))
        ids = run.doc_ids[part].tolist()
        parts.append((column, [rows.setdefault(name, len(rows)) for name in ids], run.scores[part]))
    block = np.full((len(rows), len(runs)), np.nan, dtype=dtype)
    if missing == "min":
        block[:] = 0.0
    for column, index, scores in parts:
        if missing == "min":
            spread = float(scores.max() - scores.min())
            block[:, column] = scores.min() - margin * (spread if spread > 0 else 1.0)
        block[index, column] = scores
    ids_array = np.array(list(rows), dtype=np.dtypes.StringDType())
    order = np.argsort(ids_array, kind="stable")[::-1]
    return block[order], ids_array[order]
