"""Listwise losses of a linear scorer: the cross entropy between targets and the softmax of scores."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import one_blas_thread, query_blocks, run_blocks
from truerank.data.grouping import mixed_queries, query_of_rows, sums_by_query
from truerank.losses.listwise import Softmax, softmax
from truerank.matrices.rows import LinearRows
from truerank.matrices.stored_values import dense_scores, dense_sums

_BLOCK_VALUES = 1 << 17  # numbers in a block of rows: its second pass finds them in the cache


class CrossEntropy:
    """`Σ_q v_q [-Σ_j P_y(j) ln P_s(j)] + alpha/2 ‖w‖²` over the `n_queries` queries with different grades.

    `query_weight` (m,) are v_q. `objective` computes the targets P_y, by default ListNet's softmax. `has_hessian` is
    True for dense rows.
    """

    def __init__(
        self,
        rows: LinearRows,
        y: np.ndarray,
        offsets: np.ndarray,
        query_weight: np.ndarray | None = None,
        *,
        alpha: float = 0.0,
        objective: Softmax | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.rows, self.offsets, self.alpha, self.n_jobs = rows.lay_out(), offsets, alpha, n_jobs
        self.n_weights, self.has_hessian = rows.n_weights, rows.is_dense
        m = len(offsets) - 1
        weight = np.ones(m) if query_weight is None else np.array(query_weight, dtype=np.float64)
        weight[~mixed_queries(y, offsets)] = 0.0
        self.n_queries = int(np.count_nonzero(weight))
        self.weight = weight
        self.targets = (objective or Softmax()).targets(y, offsets)
        self._scores = np.zeros(len(y))
        self._block_rows = max(64, int(_BLOCK_VALUES / rows.values_by_row))
        self._blocks = query_blocks(offsets, self._block_rows)

    def value_and_gradient(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient, float64 (n_weights,)."""
        # Loss and gradient are sums over queries: a block's are a statistic of its partition.
        parts = run_blocks(partial(self._statistics, weights), self._blocks, self.n_jobs)
        loss, gradient = 0.0, self.alpha * weights
        for part in parts:
            loss += part[0]
            gradient += part[1]
        return loss + 0.5 * self.alpha * float(np.sum(weights * weights)), gradient

    def _statistics(self, weights: np.ndarray, first: int, last: int) -> tuple[float, np.ndarray]:
        start, stop = int(self.offsets[first]), int(self.offsets[last])
        self.rows.write_scores(weights, self._scores, start, stop)
        loss = _derivatives(self._scores, self.targets, self.offsets, self.weight, first, last)
        return loss, self.rows.sums(self._scores, start, stop)

    def pass_over_queries(self, weights: np.ndarray, learning_rate: float) -> None:
        """Run the paper's algorithm 1 once: a step after each query; `weights` change in place."""
        decay = self.alpha / max(self.n_queries, 1)
        if self.rows.is_dense:
            X, order, unit = self.rows.dense_parts()
            _descend(
                X, order, unit, weights, self.targets, self.offsets, self.weight, self._scores, learning_rate, decay
            )
            return
        for query in np.flatnonzero(self.weight):
            _, gradient = self._statistics(weights, int(query), int(query) + 1)
            weights -= learning_rate * (gradient + decay * weights)

    def hessian(self, weights: np.ndarray, max_rows: float = math.inf) -> np.ndarray:
        """Return the second derivatives over the first `max_rows` dense rows, scaled to all queries."""
        counted = np.where(self.weight > 0, np.diff(self.offsets), 0)
        last = max(1, int(np.searchsorted(np.cumsum(counted), max_rows, side="right")))
        while last < len(counted) and not self.weight[:last].any():
            last += 1
        blocks = query_blocks(self.offsets[: last + 1], self._block_rows)

        def work(first: int, stop_query: int) -> np.ndarray:
            start, stop = int(self.offsets[first]), int(self.offsets[stop_query])
            self.rows.write_scores(weights, self._scores, start, stop)
            for one in range(first, stop_query):
                softmax(self._scores, self._scores, int(self.offsets[one]), int(self.offsets[one + 1]))
            # v Σ_j P(j) (x_j - mean)(x_j - mean)', mean = Σ_j P(j) x_j, as one product of centred rows.
            X = self.rows.block(start, stop)
            share = self._scores[start:stop]
            within = self.offsets[first : stop_query + 1] - start
            query = query_of_rows(within)
            X -= sums_by_query(X * share[:, None], within)[query]
            X *= np.sqrt(self.weight[first:stop_query][query] * share)[:, None]
            return X.T @ X

        with one_blas_thread():
            parts = run_blocks(work, blocks, self.n_jobs)
        total = np.zeros((self.n_weights, self.n_weights))
        for part in parts:
            total += part
        total *= float(self.weight.sum() / self.weight[:last].sum())
        return total + self.alpha * np.eye(self.n_weights)

    def curvature(self) -> np.ndarray:
        """Return an upper bound of the diagonal of the second derivatives at 0, (n_weights,)."""
        sizes = np.diff(self.offsets)
        share = np.repeat(self.weight / np.maximum(sizes, 1), sizes)
        return self.rows.square_sums(share) + self.alpha


# Kernels.


@kernel
def _derivatives(scores, targets, offsets, weight, first, last):
    """Replace the scores of the queries `first:last` by the derivatives `v (P_s - P_y)`, and return the loss."""
    loss = 0.0
    for query in range(first, last):
        start, stop = offsets[query], offsets[query + 1]
        if weight[query] == 0.0:
            scores[start:stop] = 0.0
            continue
        expected = 0.0  # Σ_j P_y(j) (s_j - s_start): differences, so that nothing large cancels
        origin = scores[start]
        for i in range(start, stop):
            expected += targets[i] * (scores[i] - origin)
        log_total, high = softmax(scores, scores, start, stop)
        loss += weight[query] * (log_total - (expected - (high - origin)))
        for i in range(start, stop):
            scores[i] = weight[query] * (scores[i] - targets[i])
    return loss


@kernel
def _descend(X, order, unit, weights, targets, offsets, weight, scores, learning_rate, decay):
    """Update w after each query that counts: `w ← w - learning_rate (gradient of the query + decay w)`."""
    for query in range(len(offsets) - 1):
        if weight[query] == 0.0:
            continue
        start, stop = offsets[query], offsets[query + 1]
        dense_scores(X, weights * unit, order, scores, start, stop)
        _derivatives(scores, targets, offsets, weight, query, query + 1)
        gradient = dense_sums(X, scores, order, start, stop)
        for j in range(len(weights)):
            weights[j] -= learning_rate * (unit[j] * gradient[j] + decay * weights[j])
