"""Segments of queries: the label of each query, and the results of a comparison in each segment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.data.columns import dense_column, names_of
from truerank.data.grouping import Grouping, group_rows, id_text, id_texts, value_of_each_query
from truerank.data.ranking_data import Judgements, RankingData
from truerank.io.gold_sets import GoldSet, read_gold
from truerank.io.rows import Known, RowsAt, check_column
from truerank.significance.gate import GateLine, segment_lines, with_all_queries
from truerank.significance.paired import LEVEL

if TYPE_CHECKING:
    from truerank.experiments.experiment import Experiment

_WORDS = ("worse", "better")


def labels_in(gold: Any, segments: str | Mapping[Any, Any]) -> tuple[Any, Mapping[Any, Any]]:
    """Return the judgements and the label of each query, "" for a query without a label.

    `segments` is a field of the gold set, or a mapping or Series by query id.
    """
    if not isinstance(segments, str):
        labels = segments if isinstance(segments, Mapping) else getattr(segments, "to_dict", dict)()
        if not labels:
            raise InvalidInputError("segments must be a field, or a mapping or Series by query id", argument="segments")
        return gold.qrels if isinstance(gold, GoldSet) else gold, labels
    known = read_gold(gold)
    if segments not in known.segments:
        fields = ", ".join(known.segments) or "none"
        raise InvalidInputError(
            f"the gold set has no field {segments!r} for segments. Its fields are: {fields}", argument="segments"
        )
    labels = known.segments[segments]
    return known.qrels, {query: labels.get(query, "") for query in map(str, known.qrels.query_ids.tolist())}


def labels_of_rows(place: RowsAt | None, known: Known, segments: Any, data: Any, *given: Any) -> Mapping[Any, Any]:
    """Return the label of each query: its value in a column of the rows, or in a separate Series or array.

    `given` are the caller's judgements and queries, which are the rows without `data`.
    """
    if isinstance(segments, Mapping):
        return segments
    if not isinstance(segments, str):
        judged, qid = given
        grouping = data
        if isinstance(judged, Judgements):
            grouping = Grouping(judged.offsets, judged.query_ids, None, 0)
        elif data is None:
            grouping = group_rows(qid, len(judged))
        own = value_of_each_query(segments, grouping, "segments", *given)
        return dict(zip(map(str, grouping.query_ids.tolist()), id_texts(own.tolist())))
    rows = None if place is None else place.chosen([segments], known, {segments: None})
    if not isinstance(rows, RankingData):
        raise InvalidInputError(
            f"segments={segments!r} is a column, which requires judged rows. Pass {{query: label}}", argument="segments"
        )
    check_column(segments, names_of(rows), "the data")
    values = dense_column(rows, segments)
    first = values[rows.offsets[:-1]]
    if len(wrong := np.flatnonzero(values != np.repeat(first, rows.group_sizes))):
        raise InvalidInputError(
            f"column {segments!r} has different or missing values in query {rows.qid[wrong[0]]}. Choose a column with "
            "the same value in all rows of a query",
            argument="segments",
        )
    texts = (rows.category_names or {}).get(segments)
    if texts is None and values.dtype == np.float32 and np.abs(first).max(initial=0) >= 2**24:
        raise InvalidInputError(
            f"column {segments!r} is float32, which does not represent every integer from 2^24 on. Pass segments as a "
            "mapping of query to segment, or X as float64",
            argument="segments",
        )
    labels = [id_text(value) if texts is None else texts[int(value)] for value in first]
    return dict(zip(map(str, rows.query_ids.tolist()), labels))


def compared_segments(experiment: Experiment) -> dict[str, list[GateLine]]:
    """Return the results of the first measure in all queries and in each segment, by system except the baseline.

    The intervals of a system are simultaneous over all queries and segments, as in the gate, and the systems divide the
    level. A segment is better or worse if its interval does not contain 0 and enough queries differ.
    """
    measure = next(iter(experiment.measures.values())).check_mean()
    values = {name: measure.values(one) for name, one in experiment.rankings.items()}
    masks = with_all_queries(experiment.segment_masks(), len(experiment.judgements.query_ids))
    old, sign = values.pop(experiment.baseline), 1.0 if measure.higher_is_better else -1.0
    level = LEVEL / len(values)
    return {
        name: segment_lines(new, old, masks, level, margin=0.0, sign=sign, words=_WORDS, random_state=0)
        for name, new in values.items()
    }
