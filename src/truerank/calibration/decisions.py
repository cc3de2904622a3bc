"""Make decisions from calibrated probabilities, with costs that are known at decision time."""

from __future__ import annotations

import numpy as np

from truerank.core.checks import as_vector, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.types import ArrayLike
from truerank.data.grouping import group_rows

ABSTAIN = -1


def cost_threshold(cost_fp: float = 1.0, cost_fn: float = 1.0, cost_tp: float = 0.0, cost_tn: float = 0.0) -> float:
    """Return the least probability at which "positive" has the least expected cost.

        t = (cost_fp - cost_tn)/((cost_fp - cost_tn) + (cost_fn - cost_tp))

    A gain is a negative cost. An error must not cost less than the right decision.

    Examples
    --------
    Missing a positive is five times as bad as a false alarm:

    >>> round(cost_threshold(cost_fp=1, cost_fn=5), 6)
    0.166667
    """
    costs = [check_number(value, name) for value, name in
             ((cost_fp, "cost_fp"), (cost_fn, "cost_fn"), (cost_tp, "cost_tp"), (cost_tn, "cost_tn"))]  # fmt: skip
    false_alarm, miss = costs[0] - costs[3], costs[1] - costs[2]
    if false_alarm < 0 or miss < 0 or false_alarm + miss == 0:
        raise InvalidInputError(
            "an error must not cost less than the right decision, and not all errors may be free, got "
            f"cost_fp={cost_fp}, cost_tn={cost_tn}, cost_fn={cost_fn}, cost_tp={cost_tp}",
            code="costs",
        )
    return false_alarm / (false_alarm + miss)


def utility_threshold(gain_tp: float, loss_fp: float, *, loss_fn: float = 0.0, gain_tn: float = 0.0) -> float:
    """Return the least probability that raises the linear utility `gain_tp TP - loss_fp FP - loss_fn FN + gain_tn TN`.

    Examples
    --------
    TREC's filtering utility T9U = 2 TP - FP delivers documents from one third on:

    >>> round(utility_threshold(2, 1), 6)
    0.333333
    """
    return cost_threshold(cost_fp=loss_fp, cost_fn=loss_fn, cost_tp=-gain_tp, cost_tn=-gain_tn)


def decide(
    probabilities: ArrayLike,
    *,
    cost_fp: float = 1.0,
    cost_fn: float = 1.0,
    cost_tp: float = 0.0,
    cost_tn: float = 0.0,
    cost_abstain: float | None = None,
) -> np.ndarray:
    """Return the decision with the least expected cost for each row: 1, 0, or -1 for abstaining.

    `probabilities` are P(positive) (n,), or (n, 2). With `cost_abstain`, the result is -1 where both decisions have a
    higher expected cost (Chow's rule). If costs are equal, 1 is preferred to 0, and 0 to -1.

    Examples
    --------
    >>> decide([0.1, 0.2, 0.5, 0.9], cost_fp=1, cost_fn=5).tolist()
    [0, 1, 1, 1]
    >>> decide([0.1, 0.2, 0.5, 0.9], cost_abstain=0.15).tolist()
    [0, -1, -1, 1]
    """
    p = as_probabilities(probabilities)
    threshold = cost_threshold(cost_fp, cost_fn, cost_tp, cost_tn)
    decisions = (p >= threshold).astype(np.int64)
    if cost_abstain is not None:
        limit = check_number(cost_abstain, "cost_abstain")
        costs = expected_costs(p, cost_fp=cost_fp, cost_fn=cost_fn, cost_tp=cost_tp, cost_tn=cost_tn)
        decisions[costs.min(axis=1) > limit] = ABSTAIN
    return decisions


def expected_costs(
    probabilities: ArrayLike, *, cost_fp: float = 1.0, cost_fn: float = 1.0, cost_tp: float = 0.0, cost_tn: float = 0.0
) -> np.ndarray:
    """Return the expected costs of deciding 0 and of deciding 1, float64 (n, 2)."""
    p = as_probabilities(probabilities)
    return np.stack([p * cost_fn + (1 - p) * cost_tn, p * cost_tp + (1 - p) * cost_fp], axis=1)


def least_expected_cost(probabilities: ArrayLike, costs: ArrayLike) -> np.ndarray:
    """Return the decision with the least expected cost among several classes, int64 (n,), the first in ties.

    `probabilities` (n, classes) have rows that add up to 1, and `costs[c, d]` is the cost of decision d for the class
    c. Decisions need not be classes: a column of constants allows abstaining.

    Examples
    --------
    >>> least_expected_cost([[0.8, 0.2], [0.5, 0.5]], [[0, 1, 0.3], [1, 0, 0.3]]).tolist()
    [0, 2]
    """
    p, table = np.asarray(probabilities, dtype=np.float64), np.asarray(costs, dtype=np.float64)
    if p.ndim != 2 or table.ndim != 2 or p.shape[1] != table.shape[0]:
        raise InvalidInputError(
            "probabilities (n, classes) and costs (classes, decisions) must have the same number of classes, got the "
            f"shapes {p.shape} and {table.shape}",
            argument="probabilities",
        )
    both = np.append(p, table)
    if len(wrong := both[~np.isfinite(both)]):
        raise InvalidInputError(f"probabilities and costs must be finite, got {wrong[0]}", argument="probabilities")
    return np.argmin(p @ table, axis=1)


def expected_relevant(
    probabilities: ArrayLike, k: int, *, qid: ArrayLike | None = None, scores: ArrayLike | None = None
) -> np.ndarray:
    """Return the expected number of relevant documents among the first k of each query, float64 (m,).

    This is the sum of their P(relevant), whether or not documents are independent. If a query has fewer documents, all
    of them count. `qid` None means one query; the result is in order of first appearance. `scores` (n,) rank the
    documents (default: the probabilities), and equal scores keep the order of the rows.

    Examples
    --------
    >>> expected_relevant([0.9, 0.2, 0.4, 0.5], 2, qid=["a", "a", "a", "b"]).tolist()
    [1.3, 0.5]
    """
    p = as_probabilities(probabilities)
    k = check_positive_int(k, "k")
    ranked_by = p if scores is None else as_vector(scores, "scores", len(p), None)
    grouping = group_rows(qid, len(p))
    p, ranked_by, query = grouping.grouped(p), grouping.grouped(ranked_by), grouping.query_index
    order = np.lexsort((-ranked_by, query))
    place = np.arange(len(p)) - grouping.offsets[query]
    return np.bincount(query, weights=np.where(place < k, p[order], 0.0), minlength=grouping.n_queries)


def as_probabilities(probabilities: ArrayLike) -> np.ndarray:
    """Return P(positive) as float64 (n,), after a check that it is in [0, 1]."""
    p = np.asarray(probabilities, dtype=np.float64)
    return as_vector(p[:, 1] if p.ndim == 2 and p.shape[1] == 2 else p, "probabilities", None, "[0, 1]")
