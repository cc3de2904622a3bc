"""TREC runs of several systems as a feature matrix with a column for each system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truerank.core.checks import check_choice, check_number
from truerank.core.errors import InvalidInputError
from truerank.core.types import DTypeLike
from truerank.data.ranking_data import Judgements, RankingData
from truerank.features.run_pool import RunPool
from truerank.io.trec import Qrels, Run, judge_lists

MARGIN = 0.05


@dataclass(frozen=True)
class RunFeatures:
    """The documents that any of several runs retrieved, with each run's score.

    `data` has X (n, runs), with NaN or the missing score for documents that a run did not retrieve, and the grades y
    (0 for unjudged documents), None without qrels. The documents of a topic are sorted by descending id, so that the
    order of the rows breaks ties as trec_eval does. `judgements` has the judged mask, and the grades of judged
    documents that no run retrieved, so that R counts them.
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
    dtype: DTypeLike = np.float64,
) -> RunFeatures:
    """Return a row for each (topic, document) that some run retrieved, and a column for each run.

    Parameters
    ----------
    runs : sequence of Run
    qrels : Qrels, optional
        Grades. Topics are those of `RunPool`.
    names : sequence of str, optional
        Column names; by default the runs' tags, numbered if they repeat.
    missing : {"min", "nan"}
        The value if a run did not retrieve a document. "min": the run's lowest score for the topic minus `margin`
        times the range of its scores (minus `margin` if all are equal), and 0 in a topic that the run lacks.
    margin : float
        Greater than 0.
    dtype : float64 or float32

    Raises
    ------
    InvalidInputError
        On no runs, repeated names, a wrong number of names, or qrels that share no topic with the runs.

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
    if names is not None and (len(names) != len(runs) or len(set(names)) < len(names)):
        raise InvalidInputError(f"join_runs: {len(runs)} runs need as many different names, got {list(names)}")
    pool = RunPool(runs if names is None else dict(zip(names, runs)), qrels)
    low, high = pool.per_list(np.minimum, pool.scores), pool.per_list(np.maximum, pool.scores)
    with np.errstate(over="ignore"):
        absent = (low - margin * np.where(high > low, high - low, 1.0)).astype(dtype)
        below = np.nextafter(low.astype(dtype), -np.inf)  # the margin may be lost in rounding
    absent = np.minimum(absent, below).clip(np.finfo(dtype).min)
    absent[pool.list_sizes == 0] = 0.0
    X = np.full((pool.n_rows, pool.n_runs), np.nan, dtype=dtype)
    if missing == "min":
        X[:] = absent.reshape(pool.n_queries, pool.n_runs)[pool.query_of_row]
    X[pool.rows, pool.run_of_entry] = pool.scores
    data = RankingData.from_grouped(
        X, None, pool.offsets, pool.query_ids, doc_ids=pool.doc_ids, feature_names=pool.names
    )  # fmt: skip
    if qrels is None:
        return RunFeatures(data, None)
    judgements = judge_lists(qrels, pool.query_ids, pool.doc_ids, pool.offsets)
    return RunFeatures(data.with_judgements(judgements), judgements)
