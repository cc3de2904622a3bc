"""ListNet's objective for a linear scorer: the cross entropy between top-one probabilities, by queries."""

from __future__ import annotations

import math

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import query_blocks, run_blocks
from truerank.data.ranking_data import RankingData
from truerank.matrices.scores import linear_scores


class CrossEntropy:
    """ListNet's objective over the queries that have two grades or more.

    Attributes
    ----------
    n_queries : int
        Queries that take part.
    """

    def __init__(self, data: RankingData, alpha: float, normalize: bool, n_jobs: int | None) -> None:
        self.X, self.alpha, self.n_jobs = data.X, alpha, n_jobs
        self.sparse = hasattr(data.X, "tocsr")
        y, offsets = data.y, data.offsets
        assert y is not None  # Ranker.fit has checked
        weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
        chosen = np.array([], dtype=np.int64)
        self.targets = np.zeros(data.n_rows)
        if data.n_rows:
            query = data.query_index
            filled = np.flatnonzero(np.diff(offsets))
            high, low = np.full(data.n_queries, -np.inf), np.full(data.n_queries, np.inf)
            high[filled] = np.maximum.reduceat(y, offsets[filled])
            low[filled] = np.minimum.reduceat(y, offsets[filled])
            chosen = np.flatnonzero((low < high) & (weight > 0))
            self.targets = np.exp(y - high[query])
            self.targets /= np.bincount(query, weights=self.targets, minlength=data.n_queries)[query]
        self.n_queries = len(chosen)
        self.starts, self.stops = offsets[chosen], offsets[chosen + 1]
        self.weight = np.ascontiguousarray(weight[chosen])
        if normalize and self.n_queries:
            self.weight = self.weight / self.weight.sum()
        sizes = self.stops - self.starts
        self._blocks = query_blocks(np.concatenate([[0], np.cumsum(sizes)]))
        self._scores = np.zeros(data.n_rows)

    def value_and_gradient(self, coef: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective and its gradient, float64 (p,)."""
        if self.sparse:
            loss, gradient = self._sparse_statistics(coef)
        else:
            # Loss and gradient are sums over queries: a block's are a statistic of its partition.
            parts = run_blocks(lambda a, b: self._statistics(coef, a, b), self._blocks, self.n_jobs)
            loss, gradient = parts[0]
            for part in parts[1:]:
                loss += part[0]
                gradient += part[1]
        return loss + 0.5 * self.alpha * float(np.sum(coef * coef)), gradient + self.alpha * coef

    def _statistics(self, coef: np.ndarray, first: int, last: int) -> tuple[float, np.ndarray]:
        gradient = np.zeros(len(coef))
        loss = _loss_and_gradient(
            self.X, coef, self.targets, self.starts, self.stops, self.weight, first, last, self._scores, gradient
        )
        return loss, gradient

    def _sparse_statistics(self, coef: np.ndarray) -> tuple[float, np.ndarray]:
        scores = linear_scores(self.X, coef)
        coefficients = np.zeros(len(scores))
        loss = 0.0
        for first, last in self._blocks:
            loss += _coefficients(scores, self.targets, self.starts, self.stops, self.weight, first, last, coefficients)
        return loss, self.X.T @ coefficients

    def query_gradient(self, coef: np.ndarray, query: int) -> np.ndarray:
        """Gradient (p,) of one query's loss, for sparse rows."""
        start, stop = int(self.starts[query]), int(self.stops[query])
        rows = self.X[start:stop]
        coefficients = np.zeros(stop - start)
        ends = np.array([0, stop - start])
        weight = self.weight[query : query + 1]
        _coefficients(rows @ coef, self.targets[start:stop], ends[:1], ends[1:], weight, 0, 1, coefficients)
        return np.asarray(rows.T @ coefficients)

    def pass_over_queries(self, coef: np.ndarray, learning_rate: float) -> None:
        """The paper's algorithm 1 once: a step after each query, in their order; `coef` (p,) is changed in place."""
        decay = self.alpha / self.n_queries
        if self.sparse:
            for query in range(self.n_queries):
                coef -= learning_rate * (self.query_gradient(coef, query) + decay * coef)
        else:
            _descend(
                self.X, coef, self.targets, self.starts, self.stops, self.weight, self._scores, learning_rate, decay,
                np.zeros(len(coef)),
            )  # fmt: skip

    def hessian(self, coef: np.ndarray, max_rows: float = math.inf) -> np.ndarray:
        """Second derivatives (p, p); from the first queries up to `max_rows` rows, scaled to stand for all."""
        sizes = self.stops - self.starts
        last = max(1, int(np.searchsorted(np.cumsum(sizes), max_rows, side="right")))
        blocks = [(a, min(b, last)) for a, b in self._blocks if a < last]
        p = self.X.shape[1]

        def work(a: int, b: int) -> np.ndarray:
            result = np.zeros((p, p))
            _add_hessian(self.X, coef, self.starts, self.stops, self.weight, a, b, self._scores, result)
            return result

        parts = run_blocks(work, blocks, self.n_jobs)
        total = parts[0]
        for part in parts[1:]:
            total += part
        total += np.triu(total, 1).T
        total *= float(self.weight.sum() / self.weight[:last].sum())
        return total + self.alpha * np.eye(p)

    def curvature(self) -> np.ndarray:
        """An upper bound of the diagonal of the second derivatives at 0, (p,)."""
        weight = np.zeros(self.X.shape[0])
        for start, stop, w in zip(self.starts, self.stops, self.weight):
            weight[start:stop] = w / (stop - start)
        squares = self.X.multiply(self.X) if self.sparse else np.square(self.X, dtype=np.float64)
        return np.asarray(squares.T @ weight).ravel() + self.alpha


@kernel
def _scores(X, coef, scores, start, stop):  # type: ignore[no-untyped-def]
    """`scores = X coef` of some rows; four at a time, since one sum alone would wait for each addition."""
    p = len(coef)
    whole = stop - (stop - start) % 4
    for i in range(start, whole, 4):
        a = b = c = d = 0.0
        for k in range(p):
            w = coef[k]
            a += X[i, k] * w
            b += X[i + 1, k] * w
            c += X[i + 2, k] * w
            d += X[i + 3, k] * w
        scores[i] = a
        scores[i + 1] = b
        scores[i + 2] = c
        scores[i + 3] = d
    for i in range(whole, stop):
        a = 0.0
        for k in range(p):
            a += X[i, k] * coef[k]
        scores[i] = a


@kernel
def _add_rows(X, coefficients, start, stop, gradient):  # type: ignore[no-untyped-def]
    """`gradient += X' coefficients` of some rows; four at a time, to load and store the sums a quarter as often."""
    p = len(gradient)
    whole = stop - (stop - start) % 4
    for i in range(start, whole, 4):
        a = coefficients[i]
        b = coefficients[i + 1]
        c = coefficients[i + 2]
        d = coefficients[i + 3]
        for k in range(p):
            gradient[k] += (a * X[i, k] + b * X[i + 1, k]) + (c * X[i + 2, k] + d * X[i + 3, k])
    for i in range(whole, stop):
        a = coefficients[i]
        for k in range(p):
            gradient[k] += a * X[i, k]


@kernel
def _query_coefficients(scores, targets, weight, start, stop):  # type: ignore[no-untyped-def]
    """Turn the scores of one query into the loss's derivatives `w (P_s - P_y)`, in place; returns the loss."""
    high = -np.inf
    for i in range(start, stop):
        high = max(high, scores[i])
    total = 0.0
    expected = 0.0
    for i in range(start, stop):
        shifted = scores[i] - high
        expected += targets[i] * shifted
        scores[i] = np.exp(shifted)
        total += scores[i]
    scale = 1.0 / total
    for i in range(start, stop):
        scores[i] = weight * (scores[i] * scale - targets[i])
    return weight * (np.log(total) - expected)


@kernel
def _loss_and_gradient(X, coef, targets, starts, stops, weight, first, last, scores, gradient):  # type: ignore[no-untyped-def]
    loss = 0.0
    for query in range(first, last):
        start = starts[query]
        stop = stops[query]
        _scores(X, coef, scores, start, stop)
        loss += _query_coefficients(scores, targets, weight[query], start, stop)
        _add_rows(X, scores, start, stop, gradient)
    return loss


@kernel
def _coefficients(scores, targets, starts, stops, weight, first, last, coefficients):  # type: ignore[no-untyped-def]
    loss = 0.0
    for query in range(first, last):
        loss += _query_coefficients(scores, targets, weight[query], starts[query], stops[query])
        for i in range(starts[query], stops[query]):
            coefficients[i] = scores[i]
    return loss


@kernel
def _add_hessian(X, coef, starts, stops, weight, first, last, scores, result):  # type: ignore[no-untyped-def]
    """Add `w sum_j P_s(j) (x_j - mean)(x_j - mean)'` of each query to the upper triangle of `result`."""
    p = len(coef)
    centred = np.empty(p)
    for query in range(first, last):
        start = starts[query]
        stop = stops[query]
        high = -np.inf
        _scores(X, coef, scores, start, stop)
        for i in range(start, stop):
            high = max(high, scores[i])
        total = 0.0
        for i in range(start, stop):
            scores[i] = np.exp(scores[i] - high)
            total += scores[i]
        mean = np.zeros(p)
        for i in range(start, stop):
            share = scores[i] / total
            for k in range(p):
                mean[k] += share * X[i, k]
        for i in range(start, stop):
            share = weight[query] * scores[i] / total
            for k in range(p):
                centred[k] = X[i, k] - mean[k]
            for j in range(p):
                c = share * centred[j]
                if c != 0.0:
                    for k in range(j, p):
                        result[j, k] += c * centred[k]


@kernel
def _descend(X, coef, targets, starts, stops, weight, scores, learning_rate, decay, gradient):  # type: ignore[no-untyped-def]
    p = len(coef)
    for query in range(len(starts)):
        gradient[:] = 0.0
        _loss_and_gradient(X, coef, targets, starts, stops, weight, query, query + 1, scores, gradient)
        for k in range(p):
            coef[k] -= learning_rate * (gradient[k] + decay * coef[k])
