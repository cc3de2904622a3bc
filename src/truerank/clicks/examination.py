"""The examination of each position: a click at position k on a document of relevance r has probability α_k r + β_k.

Let a document of a query be shown n_k and n_l times at positions k and l, with c_k and c_l clicks, so that
E c_k = n_k (α_k r + β_k). Over all such documents (S_kl), and for every pair of positions,

    A_kl = Σ_{S_kl} w c_k n_l / (n_k + n_l),      M_kl = Σ_{S_kl} w n_k n_l / (n_k + n_l) = M_lk.

Position model (β = 0): A_kl / A_lk estimates α_k / α_l for any relevances, and all pairs together maximise

    max Σ_{k≠l} A_kl log(α_k / (α_k + α_l)),      α_1 = 1.

Trust model: documents have weights w¹ and w⁰ = 1 - w¹ by their click rate in the other half of the impressions. The
rates y^j_kl = A^j_kl / M^j_kl = α_k ρ^j_kl + β_k share two unknown levels ρ^j_kl with the rates of l. The difference y¹
- y⁰ therefore has the ratio α_k / α_l, and β solves y_kl α_l - y_lk α_k = β_k α_l - β_l α_k by least squares.

References
----------
A. Agarwal and others: Estimating Position Bias without Intrusive Interventions, WSDM 2019; sections 4 and 5. A. Agarwal
and others: Addressing Trust Bias for Unbiased Learning-to-Rank, WWW 2019. X. Wang and others: Position Bias Estimation
for Unbiased Learning to Rank in Personal Search, WSDM 2018.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import NormalDist
from typing import Any

import numpy as np

from truerank.clicks.log import Cells, ClickLog, rows_of_pairs
from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.printing import styled_table
from truerank.core.random_streams import seed_of, stream
from truerank.core.results import Result
from truerank.core.threads import one_blas_thread
from truerank.core.types import MatrixLike, RandomState
from truerank.io.rows import RowsLike, rows_of
from truerank.significance.intervals import stretched_percentiles

_GROUPS = 200  # of queries, which are resampled as a whole
_DEEPEST = 50
_REJECT, _UNBALANCED = 2.576, 3.291  # two-sided p of 0.01 and 0.001
_LEVELS = 2.0  # least z of the difference of click rates that the trust model needs
_FEWEST = 20  # clicks that the default max_position needs at a position
_APART = 0.5  # distance of two rankers' distributions over time
_PENALTY = 1e-3  # of squared coefficients of standardised features, per unit of weight
_MODEL_TESTS = {
    "relevance": "clicks decrease with the position differently for relevant documents and for other documents",
    "context": "the click rate of a document depends on the clicks above it, as if users stop at a click",
    "exclusion": "clicks within a list exclude each other, as if users stop at a click",
}


class Examination(Result):
    """Estimate how much each position is examined, from a log of several rankers.

    If rankers show a document of a query at different positions, only the position changes its clicks. The rankers must
    be chosen at random, or at least independently of relevance.

    Parameters
    ----------
    model : {"position", "trust"}, default="position"
        Probability of a click at k: α_k r, or α_k r + β_k if users also click because of the position itself.
    method : {"harvest", "em"}, default="harvest"
        `"harvest"` compares documents that were shown at several positions. `"em"` (position model only) fits
        examination and a logistic regression of relevance on features. This method requires only one ranker, but its
        result depends on the features.
    max_position : int, optional
        Deepest position to fit, by default the deepest position with at least 20 clicks, up to 50.
    level : float in (0, 1), default=0.95
        Level of the intervals.
    n_draws : int, default=200
        Bootstrap samples of queries; at most 20 with `"em"`.
    random_state : int or NumPy generator, optional

    Attributes
    ----------
    propensities_, beta_ : float64 arrays (K,)
        α_k, with α_1 = 1, and β_k, 0 in the position model; NaN if no documents connect the position with position 1.
        Clicks determine relevance only up to scale and shift; here β_K = 0.
    low_, high_ : float64 arrays (K,)
        Bootstrap interval of `propensities_` over (groups of) queries, widened for few queries. NaN with one query.
    pairs_, documents_ : int64 arrays (K,)
        Number of other positions with which a position is compared, and of documents in these comparisons.
    identified_ : bool
        False if the log does not determine the propensities, or contradicts the model.
    reasons_ : list of str
        Reasons why the propensities are not identified, and impossible checks (changes by date, in a log without
        times).
    tests_ : dict of str to float
        z of each test. `"relevance"` (position model): clicks fall with the position equally for documents of high and
        of low click rate. `"context"`: the click rate of a document at a position does not depend on the clicks above
        it. `"exclusion"`: clicks within a list do not exclude each other. The model is rejected beyond 2.58 (exclusion:
        below -2.58). `"balance"`: a document gets equally many clicks at a position in the lists of all rankers. Above
        3.29, the assignment of rankers is rejected. `"levels"` (trust model): click rates differ between documents (at
        least 2).
    draws_ : float64 array (n_draws, 2, K)
        α and β of each bootstrap sample.

    Notes
    -----
    Differences from Agarwal and others: (1) the relevances r_kl are conditioned out instead of fitted (their likelihood
    with Poisson instead of binomial clicks, which is consistent, too); (2) documents have the weights
    n_k n_l / (n_k + n_l) of least variance (Mantel and Haenszel) instead of 1/n. Time O(n log n), memory about 60 bytes
    a row.

    Examples
    --------
    >>> from truerank import load_sample, simulate
    >>> data = load_sample()
    >>> log = simulate(data, {"a": data.X[:, 0], "b": data.X[:, 5]}, impressions=20_000, random_state=0)
    >>> seen = Examination("position").fit(log)
    >>> seen.propensities_[:3].round(1).tolist(), seen.identified_
    ([1.0, 0.5, 0.3], True)
    """

    KIND = "examination"

    def __init__(
        self,
        model: str = "position",
        *,
        method: str = "harvest",
        max_position: int | None = None,
        level: float = 0.95,
        n_draws: int = 200,
        random_state: RandomState = None,
    ) -> None:
        self.model = check_choice(model, "model", ("position", "trust"))
        self.method = check_choice(method, "method", ("harvest", "em"))
        if self.method == "em" and self.model != "position":
            raise InvalidInputError(
                'method="em" fits only the position model. Use method="harvest" for model="trust"', argument="method"
            )
        self.max_position = None if max_position is None else check_positive_int(max_position, "max_position")
        self.level = check_number(level, "level", "(0, 1)")
        self.n_draws = check_positive_int(n_draws, "n_draws", 2)
        self.random_state = random_state

    def fit(self, log: ClickLog, features: RowsLike | None = None) -> Examination:
        """Estimate from a log; method "em" requires `features`, rows of the shown documents with `doc_ids`."""
        if not isinstance(log, ClickLog):
            raise InvalidInputError(
                f"log must be a ClickLog, got {type(log).__name__}. Read a log with read_clicks(path)", argument="log"
            )
        if not log.clicked.any():
            raise InvalidInputError(
                "the log has no clicks, which an estimate requires. Check its column `clicked`", code="no-clicks"
            )
        if (self.method == "em") != (features is not None):
            raise InvalidInputError(
                'only method="em" uses features, and requires them. Write Examination(method="em").fit(log, features)',
                argument="method",
            )
        clicks = np.bincount(log.position[log.clicked])
        deepest = min(max(int(np.flatnonzero(clicks >= _FEWEST).max(initial=1)), 1), _DEEPEST)
        self.K_ = min(self.max_position or deepest, len(clicks) - 1)
        self.reasons_: list[str] = []
        self.tests_: dict[str, float] = {}
        self.pairs_, self.documents_ = (np.zeros(self.K_, dtype=np.int64) for _ in range(2))
        rng = stream(seed_of(self.random_state), "examination")
        with one_blas_thread():
            alpha, beta = self._harvest(log, rng) if features is None else self._em(log, features, rng)
        alpha[:, 0] = 1.0
        self.propensities_, self.beta_ = alpha[0], beta[0]
        self.draws_ = np.stack([alpha[1:], beta[1:]], axis=1)
        n_groups = min(len(log.query_ids), _GROUPS)
        ends = stretched_percentiles(alpha[0], alpha[1:], n_groups, self.level)
        self.low_, self.high_ = np.maximum(ends, 0.0)
        problems = self._problems(log)
        self.identified_ = not problems
        self.reasons_ += problems
        if self.identified_ and log.time is None:
            self.reasons_.append("the log has no times, so changes of rankers and users by date were not checked")
        return self

    def _harvest(self, log: ClickLog, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return α and β (1 + n_draws, K) of the log and of bootstrap samples."""
        K = self.K_
        half = (np.arange(log.n_impressions) % 2)[log.impression]
        ranker = np.zeros(log.n_rows, np.int32) if log.ranker is None else log.ranker + 1
        cells = log.cells(np.minimum(log.position, K + 1), ranker, half)
        pair, place, inside = cells.pair, cells.keys[0] - 1, cells.keys[0] <= K
        group, n_groups = groups_of(cells.query, len(log.query_ids))
        key, first, n, clicks = _summed(pair * K + place, cells, inside)
        A, _, documents = tables(key // K, group[first], key % K, n, clicks, K, n_groups)
        self.pairs_ = np.count_nonzero(documents, axis=1)
        self.documents_ = documents.sum(axis=1).astype(np.int64)
        counts = rng.multinomial(n_groups, np.full(n_groups, 1.0 / n_groups), size=self.n_draws)
        counts = np.vstack([np.ones(n_groups), counts])
        A = np.tensordot(counts, A, axes=1)
        linked = (A[0] > 0) & (A[0].T > 0) | np.eye(K, dtype=bool)
        reached = np.linalg.matrix_power(linked, K)[0]  # positions that clicked documents connect with position 1
        theta = np.where(reached, np.exp(ladder(A, reached)), np.nan)
        # Weights of a high level of relevance: click rates in the other half of the impressions, over those expected.
        key, first, n, clicks = _summed((pair * 2 + cells.keys[2]) * K + place, cells, inside)
        owner, at = key // K, key % K
        expected = np.bincount(owner, weights=n * np.nan_to_num(theta[0][at]), minlength=2 * int(pair[-1] + 1))
        rate = np.bincount(owner, weights=clicks, minlength=len(expected)) / np.maximum(expected, 1e-12)
        rate = np.where(expected > 0, rate, np.nan).reshape(-1, 2)[:, ::-1].ravel()
        high = rate / (rate + max(float(cells.clicks.sum() / max(expected.sum(), 1e-12)), 1e-12))
        self.tests_["context"], self.tests_["balance"] = _same_spot_tests(log, cells, group, K)
        self.tests_["exclusion"] = _exclusion(log, K)
        if self.model == "position":
            self.tests_["relevance"] = _steepness(owner, at, n, clicks, high[owner], theta[0])
            return theta, np.zeros_like(theta)
        sums = []
        for weight in (high, 1.0 - high):
            level = tables(owner, group[first], at, n, clicks, K, n_groups, np.nan_to_num(weight)[owner])
            sums += [np.tensordot(counts, level[0], axes=1), np.tensordot(counts, level[1], axes=1)]
        alpha, beta, apart = trust(sums, reached)
        self.tests_["levels"] = _z(apart)
        return alpha, beta

    def _em(self, log: ClickLog, features: RowsLike, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        features = rows_of(features, "features")
        K = self.K_
        cells = log.cells(np.minimum(log.position, K + 1))
        row = rows_of_pairs(log, cells.query, cells.document, features)
        inside = cells.keys[0] <= K
        keep = inside & (row >= 0)
        if not keep.any():
            raise InvalidInputError(
                "no shown document has features. Check that the query and document ids of log and features agree"
            )
        if lost := cells.n[inside & (row < 0)].sum():
            self.reasons_.append(f"{lost:.0f} shown documents have no features and were left out")
        place, n, c = cells.keys[0][keep] - 1, cells.n[keep], cells.clicks[keep]
        used, own = np.unique(row[keep], return_inverse=True)
        model = LogisticRelevance(features.X[used])
        group, n_groups = groups_of(cells.query[keep], len(log.query_ids))
        theta, coefficients = _em_rounds(model, own, place, n, c, np.full(K, 0.5), None, 200)
        thetas = [theta]
        for _ in range(min(self.n_draws, 20)):
            times = rng.multinomial(n_groups, np.full(n_groups, 1.0 / n_groups)).astype(np.float64)[group]
            thetas.append(_em_rounds(model, own, place, n * times, c * times, theta, coefficients, 20)[0])
        alpha = np.array([theta / theta[0] for theta in thetas])
        return alpha, np.zeros_like(alpha)

    def _problems(self, log: ClickLog) -> list[str]:
        """Return the reasons why the propensities are not identified."""
        if self.method == "em":
            return [
                "the propensities depend on the features; a feature that depends on the position biases the "
                "propensities"
            ]
        found = []
        if log.ranker is None or (log.ranker < 0).all():
            found.append("the log does not name the ranker of each list")
        elif len(np.unique(log.ranker[log.ranker >= 0])) < 2:
            found.append("one ranker alone chose the lists; its positions follow relevance")
        lost_at = np.isnan(self.propensities_)
        if lost := _positions(lost_at):
            most = self.documents_[lost_at].max()
            found.append(
                f"no clicked documents connect {lost} with position 1 (at most {most} documents were shown there "
                "and at another position). Show documents at several positions, for example by random swaps"
            )
        if not self.pairs_.any():
            found.append("no document was shown at two positions with clicks, so that positions cannot be compared")
        width = (self.high_ - self.low_) / np.maximum(self.propensities_, 1e-12)
        unsure = ~((width <= 1) | lost_at)  # True for a NaN
        if wide := _positions(unsure):
            worst = int(np.argmax(np.where(unsure, np.nan_to_num(width), -1.0)))
            enough = f"about {width[worst] ** 2 * log.n_impressions:,.0f}" if width[worst] > 1 else "more"
            found.append(
                f"the interval of {wide} is wider than the propensity, or unknown; at position {worst + 1}, "
                f"{self.documents_[worst]} documents give the interval [{self.low_[worst]:.3f}, "
                f"{self.high_[worst]:.3f}] for the propensity {self.propensities_[worst]:.3f}. Collect {enough} "
                "impressions"
            )
        if (apart := _apart_in_time(log)) > _APART:
            found.append(
                f"the rankers were changed by date (their times differ by {apart:.0%}), so that other changes affect "
                f"the comparison"
            )
        if (z := self.tests_["balance"]) > _UNBALANCED:
            found.append(
                f"a document gets more clicks at the same position in the lists of one ranker (z = {z:.1f}); the "
                "rankers were not chosen at random at the same time, or one is displayed differently"
            )
        if self.tests_.get("levels", _LEVELS) < _LEVELS:
            found.append("the click rates of documents are too similar for the trust model")
        for name, text in _MODEL_TESTS.items():
            z = self.tests_.get(name, 0.0)
            if z < -_REJECT or (z > _REJECT and name != "exclusion"):
                found.append(f"{text} (z = {z:.1f}); the {self.model} model does not fit")
        return found

    def click_rates(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return α and β of positions >= 1; NaN below the deepest fitted position."""
        at = np.minimum(position, self.K_ + 1) - 1
        return np.append(self.propensities_, np.nan)[at], np.append(self.beta_, np.nan)[at]

    @property
    def summary(self) -> str:
        """A sentence on whether the propensities are identified, and the reasons if not."""
        verdict = f"{self.model} model: {'identified' if self.identified_ else 'NOT identified'}"
        return "\n".join([verdict, *(f"  {reason}" for reason in self.reasons_)])

    def _figures(self) -> dict[str, Any]:
        names = ("propensities", "beta", "low", "high", "pairs", "documents")
        columns = {name: getattr(self, f"{name}_").tolist() for name in names}
        settings = {"model": self.model, "method": self.method, "level": self.level}
        return settings | {"identified": self.identified_, "reasons": self.reasons_, "tests": self.tests_} | columns

    def _table(self, style: str) -> str:
        columns: dict[str, Iterable[object]] = {
            "position": range(1, self.K_ + 1),
            "propensity": [f"{alpha:.4f}" for alpha in self.propensities_],
            f"{self.level:.0%} interval": [f"[{low:.4f}, {high:.4f}]" for low, high in zip(self.low_, self.high_)],
            "beta": [f"{beta:.4f}" for beta in self.beta_],
            "ranks": self.pairs_.tolist(),
            "documents": self.documents_.tolist(),
        }
        if self.model == "position":
            del columns["beta"]
        return styled_table([list(row) for row in zip(*columns.values())], list(columns), style)


def _summed(key: np.ndarray, cells: Cells, keep: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return cells summed by a key: ascending keys, the index of one cell of each key, impressions and clicks."""
    keys, first, inverse = np.unique(key[keep], return_index=True, return_inverse=True)
    n, clicks = (np.bincount(inverse, weights=values[keep]) for values in (cells.n, cells.clicks))
    return keys, np.flatnonzero(keep)[first], n, clicks


def groups_of(query: np.ndarray, n_queries: int) -> tuple[np.ndarray, int]:
    """Return the group of each query, and the number of groups: each of up to 200 queries, else 200 by a hash."""
    if n_queries <= _GROUPS:
        return query, n_queries
    mixed = query.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(33)
    return mixed.astype(np.int64) % _GROUPS, _GROUPS


def _equals(key: np.ndarray, most: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield pairs of indices with equal keys, by distance; keys are sorted, and occur at most `most` times."""
    for step in range(1, most):
        first = np.flatnonzero(key[step:] == key[:-step])
        yield first, first + step


def tables(
    pair: np.ndarray,
    group: np.ndarray,
    place: np.ndarray,
    n: np.ndarray,
    clicks: np.ndarray,
    K: int,
    n_groups: int,
    weight: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Match every two positions, from 0, of a pair of query and document. Cells (c,) are sorted by pair and position.

    Returns A and M of the module's formulas by group (n_groups, K, K), and the number of documents (K, K).
    """
    A, M = np.zeros((2, n_groups * K * K))
    documents = np.zeros(K * K)
    for first, second in _equals(pair, K):
        both = n[first] + n[second]
        w = 1.0 if weight is None else weight[first]
        for k, other in ((first, second), (second, first)):
            at = place[k] * K + place[other]
            index = group[k] * (K * K) + at
            A += np.bincount(index, weights=w * clicks[k] * n[other] / both, minlength=len(A))
            M += np.bincount(index, weights=w * n[k] * n[other] / both, minlength=len(M))
            documents += np.bincount(at, minlength=K * K)
    shape = (n_groups, K, K)
    return A.reshape(shape), M.reshape(shape), documents.reshape(K, K)


def ladder(A: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """Return u (R, K) that maximises Σ A_kl log σ(u_k - u_l), u_1 = 0, for tables A (R, K, K); u_k = 0 if unreached."""
    A = np.where(reached[:, None] & reached[None, :], A, 0.0)
    total = A + A.transpose(0, 2, 1)
    scale = np.maximum(total.sum(axis=(1, 2)), 1e-300)
    A, total = A / scale[:, None, None], total / scale[:, None, None]
    u = np.zeros(A.shape[:2])
    ridge = np.where(reached[1:], 1e-9, 1.0) * np.eye(A.shape[1] - 1)
    for _ in range(60 if A.shape[1] > 1 else 0):
        s = 1.0 / (1.0 + np.exp(u[:, None, :] - u[:, :, None]))
        gradient = (A - total * s).sum(axis=2)[:, 1:]
        bend = total * s * (1.0 - s)
        H = -bend
        diagonal = np.arange(A.shape[1])
        H[:, diagonal, diagonal] += bend.sum(axis=2)
        step = np.linalg.solve(H[:, 1:, 1:] + ridge, gradient[:, :, None])[:, :, 0]
        u[:, 1:] += np.clip(step, -1.0, 1.0)
        if np.abs(step).max(initial=0.0) < 1e-10:
            break
    return np.clip(u, -50.0, 3.0)  # a sample without the clicks that connect a position would go to infinity


def trust(sums: list[np.ndarray], reached: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return α and β (R, K) of the trust model from tables (R, K, K) of two levels, and the levels' distance (R,)."""
    A1, M1, A0, M0 = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        y1, y0 = np.nan_to_num(A1 / M1), np.nan_to_num(A0 / M0)
        both = np.nan_to_num(M1 * M0 / (M1 + M0))
    difference = (y1 - y0) * both
    alpha = np.exp(ladder(np.maximum(difference, 0.0), reached))
    left, right = alpha[:, :, None], alpha[:, None, :]  # α_k, α_l
    K = len(reached)
    N, rhs = np.zeros_like(A1), np.zeros_like(alpha)
    for y, M in ((y1, M1), (y0, M0)):
        noise = y * right**2 + y.transpose(0, 2, 1) * left**2
        w = np.where(noise > 0, M / np.maximum(noise, 1e-300), 0.0)
        N -= w * left * right
        N[:, np.arange(K), np.arange(K)] += (w * right**2).sum(axis=2)
        rhs += (w * right * (y * right - y.transpose(0, 2, 1) * left)).sum(axis=2)
    beta, places = np.zeros_like(alpha), np.flatnonzero(reached)[:-1]
    if len(places):
        matrix = N[:, places[:, None], places]
        scale = np.trace(matrix, axis1=1, axis2=2)[:, None, None] * 1e-12 * np.eye(len(places))
        beta[:, places] = np.linalg.solve(matrix + scale + 1e-300 * np.eye(len(places)), rhs[:, places, None])[:, :, 0]
    alpha, beta = np.where(reached, [np.exp(np.log(alpha)), beta], np.nan)
    return alpha, beta, difference.sum(axis=(1, 2))


class LogisticRelevance:
    """P(relevant | x) = σ(x'w + b) of standardised features X (n, p); labels are shares of weights."""

    def __init__(self, X: MatrixLike) -> None:
        dense = np.nan_to_num(np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64))
        spread = dense.std(axis=0)
        scaled = (dense - dense.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        self.X = np.column_stack([scaled, np.ones(len(dense))])

    def predict(self, coefficients: np.ndarray) -> np.ndarray:
        """Return probabilities (n,)."""
        return 1.0 / (1.0 + np.exp(-np.clip(self.X @ coefficients, -30, 30)))

    def fit(self, liked: np.ndarray, weight: np.ndarray, start: np.ndarray | None = None, steps: int = 2) -> np.ndarray:
        """Return the coefficients after Newton steps; `liked` (n,) is the relevant part of `weight` (n,)."""
        w = np.zeros(self.X.shape[1]) if start is None else start
        penalty = np.full(len(w), _PENALTY * weight.sum())
        penalty[-1] = 1e-9
        for _ in range(steps):
            p = self.predict(w)
            gradient = self.X.T @ (liked - weight * p) - penalty * w
            curved = (weight * p * (1.0 - p))[:, None] * self.X
            step = np.linalg.solve(self.X.T @ curved + np.diag(penalty), gradient)
            w = w + step * min(1.0, 3.0 / max(np.abs(step).max(), 1e-300))
        return w


def _em_rounds(
    model: LogisticRelevance,
    row: np.ndarray,
    place: np.ndarray,
    n: np.ndarray,
    c: np.ndarray,
    theta: np.ndarray,
    coefficients: np.ndarray | None,
    rounds: int,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return examination (K,) and coefficients of cells (c,) by regression EM (Wang and others 2018, eq. 3 to 6)."""
    relevance = np.full(len(model.X), 0.5) if coefficients is None else model.predict(coefficients)
    shown = np.maximum(np.bincount(place, weights=n, minlength=len(theta)), 1e-300)
    weight = np.bincount(row, weights=n, minlength=len(model.X))
    for _ in range(rounds):
        t, r = theta[place], relevance[row]
        no_click = (n - c) / np.maximum(1.0 - t * r, 1e-12)
        seen = np.bincount(place, weights=c + no_click * t * (1.0 - r), minlength=len(theta)) / shown
        liked = np.bincount(row, weights=c + no_click * r * (1.0 - t), minlength=len(model.X))
        coefficients = model.fit(liked, weight, coefficients)
        relevance = model.predict(coefficients)
        change = np.abs(seen - theta).max()
        theta = np.clip(seen, 1e-6, 1.0)
        if change < 1e-5:
            break
    return theta, coefficients


def _z(values: np.ndarray) -> float:
    """Return the first value divided by the standard deviation of all other values."""
    deviation = float(values[1:].std(ddof=1))
    return float(values[0]) / deviation if deviation > 0 else 0.0


def _clustered(sums: np.ndarray) -> float:
    """Return z of a total from independent sums (G,) with mean 0."""
    spread = float(np.sqrt((sums**2).sum()))
    return float(sums.sum()) / spread if spread > 0 else 0.0


def _steepness(
    owner: np.ndarray, place: np.ndarray, n: np.ndarray, clicks: np.ndarray, high: np.ndarray, theta: np.ndarray
) -> float:
    """Return z of the excess clicks that documents of high click rate receive at the upper of two positions.

    The residual (c_k n_l θ_l - c_l n_k θ_k) / ((n_k + n_l) (θ_k + θ_l)) of a document at k < l has mean 0 at any
    relevance. The weight of a document is the click rate in the other half of the impressions, minus the mean at these
    positions.
    """
    total, K = np.zeros(int(owner[-1]) + 1), len(theta)
    known = ~np.isnan(high) & ~np.isnan(theta[place])
    for k, m in _equals(np.where(known, owner, -1 - np.arange(len(owner))), K):
        both, at = n[k] + n[m], place[k] * K + place[m]
        mass = (clicks[k] + clicks[m]) * n[k] * n[m] / both
        sums = [np.bincount(at, weights=weights, minlength=K * K) for weights in (mass * high[k], mass)]
        mean = sums[0] / np.maximum(sums[1], 1e-300)
        upper, lower = clicks[k] * n[m] * theta[place[m]], clicks[m] * n[k] * theta[place[k]]
        residual = (upper - lower) / (both * (theta[place[k]] + theta[place[m]]))
        total += np.bincount(owner[k], weights=residual * (high[k] - mean[at]), minlength=len(total))
    return _clustered(total)


def _same_spot_tests(log: ClickLog, cells: Cells, group: np.ndarray, K: int) -> tuple[float, float]:
    """Return z of two comparisons of rankers that show a document at the same position.

    Context: whether more clicks above the document go with more or with fewer clicks on it. The two counts are from
    different halves of the impressions, so their products have mean 0 if only document and position matter. Balance:
    whether one ranker gets more clicks than others. The z is the largest of all rankers, with Bonferroni's correction.
    """
    running = np.cumsum(log.clicked, dtype=np.int32) - log.clicked
    above = running - np.repeat(running[log.offsets[:-1]], np.diff(log.offsets))  # clicks above each row in its list
    above = np.bincount(cells.of_row, weights=above, minlength=len(cells.n))
    keep = cells.keys[0] <= K
    size = int(cells.keys[1].max()) + 1
    spot = cells.pair * (K + 1) + cells.keys[0]
    cell, inverse = np.unique((spot * size + cells.keys[1])[keep], return_inverse=True)
    shown, hits, before, groups = np.zeros((4, len(cell), 2))  # by half of the impressions
    for sums, column in zip((shown, hits, before, groups), (cells.n, cells.clicks, above, group)):
        sums[inverse, cells.keys[2][keep]] = column[keep]
    full = (shown > 0).all(axis=1)
    if not full.any():
        return 0.0, 0.0
    cell, shown, hits, before = cell[full], shown[full], hits[full], before[full]
    owner, ranker, spot = groups[full].max(axis=1).astype(np.int64), cell % size, cell // size
    rate, load = hits / shown, (before / shown)[:, ::-1]
    context, balance = np.zeros(int(owner.max()) + 1), np.zeros((size, int(owner.max()) + 1))
    for first, second in _equals(spot, size):
        difference = shown[first] * shown[second] / (shown[first] + shown[second]) * (rate[first] - rate[second])
        product = (difference * (load[first] - load[second])).sum(axis=1)
        context += np.bincount(owner[first], weights=product, minlength=len(context))
        np.add.at(balance, (ranker[first], owner[first]), difference.sum(axis=1))
        np.add.at(balance, (ranker[second], owner[second]), -difference.sum(axis=1))
    z = max(map(_clustered, balance), key=abs)
    tail = min((len(np.unique(ranker)) - 1) * NormalDist().cdf(-abs(z)), 0.5)
    return _clustered(context), -NormalDist().inv_cdf(max(tail, 1e-300)) if tail > 0 else abs(z)


def _exclusion(log: ClickLog, K: int) -> float:
    """Return z of the excess variance of clicks in lists over independent clicks; negative if clicks exclude others."""
    starts = log.offsets[:-1]
    with np.errstate(over="ignore"):
        mixed = (log.document.astype(np.uint64) << np.uint64(14)) + log.position.astype(np.uint64)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        shape = np.add.reduceat(mixed ^ (mixed >> np.uint64(32)), starts)
        shape += log.query[starts].astype(np.uint64) * np.uint64(0x94D049BB133111EB)
    _, first, lists = np.unique(shape, return_index=True, return_inverse=True)
    n, inside = np.bincount(lists), log.position <= K
    cell = lists[log.impression[inside]] * K + log.position[inside] - 1
    hits = np.bincount(cell, weights=log.clicked[inside], minlength=len(n) * K).reshape(-1, K)
    total = np.add.reduceat((log.clicked & inside).astype(np.float64), starts)
    alone = (hits - hits**2 / n[:, None]).sum(axis=1)
    excess = np.bincount(lists, weights=total**2) - hits.sum(axis=1) ** 2 / n - alone  # 0 for a list that occurs once
    return _clustered(np.bincount(log.query[starts[first]], weights=excess))


def _apart_in_time(log: ClickLog) -> float:
    """Return the largest total variation distance of two rankers' distributions over twenty parts of the time."""
    if log.time is None or log.ranker is None or (log.ranker < 0).all():
        return 0.0
    starts = log.offsets[:-1][log.ranker[log.offsets[:-1]] >= 0]
    time, ranker = log.time[starts], log.ranker[starts]
    borders = np.quantile(time, np.arange(1, 20) / 20)
    counts = np.zeros((int(ranker.max()) + 1, 20))
    np.add.at(counts, (ranker, np.searchsorted(borders, time, side="right")), 1.0)
    counts = counts[counts.sum(axis=1) > 0]
    share = counts / counts.sum(axis=1, keepdims=True)
    return max((0.5 * float(np.abs(a - b).sum()) for i, a in enumerate(share) for b in share[:i]), default=0.0)


def _positions(which: np.ndarray) -> str:
    """Return the positions that a mask (K,) marks as text, or "" if there are none."""
    texts = [str(number) for number in (np.flatnonzero(which) + 1).tolist()]
    more = ", …" if len(texts) > 4 else ""
    return f"position{'s' if len(texts) > 1 else ''} {', '.join(texts[:4])}{more}" if texts else ""
