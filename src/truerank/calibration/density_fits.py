"""Maximum-likelihood fits of two-sided densities to one class's scores, exact and in O(n log n).

Every family here has a mode θ and a scale for each side of it. For a fixed θ the two scales have a closed form in the
sums of distances (or squared distances) on the two sides, D_l and D_r, and what is left of the likelihood is a function
of θ alone, non-decreasing in D_l and in D_r. Over the sorted scores both sums are running sums of non-negative terms,

    A_l(θ) = Σ_{x ≤ θ} (θ - x),    Q_l(θ) = Σ_{x ≤ θ} (θ - x)²,
    A_l(θ + t) = A_l + n_l t,      Q_l(θ + t) = Q_l + 2 t A_l + n_l t²     while no score is passed,

and the same from the right, so nothing ever cancels: scores may sit on any offset.

* Asymmetric Laplace: -log likelihood = 2n log(√A_l + √A_r) + constants is concave in each gap: the best θ is a score.
* Asymmetric Gaussian: minimise Q_l^{1/3} + Q_r^{1/3}. Hybrid (exponential left, Gaussian right): minimise the profile
  `_profile`. Their best θ may lie inside a gap. Every score is tried; a gap [a, b] is searched only where its
  lower bound, the objective of (D_l(a), D_r(b)), is below the best value so far; there ten points are tried,
  and between the neighbours of each local minimum among them a bisection finds where the slope changes its sign: values
  are equal at a flat top over the root of the machine's precision. SciPy's bounded search in each gap takes hundreds
  of times as long, and is as exact as that root allows.

Functions take sorted scores (n,), n ≥ 1, and weights (n,) > 0 or None, and return θ and the two scales, which are 0 on
a side without spread; floors are the caller's to apply.

References
----------
P. N. Bennett (2003). Using asymmetric distributions to improve text classifier probability estimates. SIGIR,
equations 1 to 5. (Its running sum of squares lacks the factor 2 of the cross term.)
"""

from __future__ import annotations

import math

import numpy as np

from truerank.core.kernel import kernel

# Normaliser of half a Gaussian: ∫_0^∞ exp(-t²/(2σ²)) dt = HALF_GAUSSIAN · σ.
HALF_GAUSSIAN = math.sqrt(math.pi / 2.0)
_ONES = np.empty(0)
_ASYMMETRIC_GAUSSIAN, _HYBRID = 0, 1


def fit_gaussian(x: np.ndarray, weight: np.ndarray | None) -> tuple[float, float]:
    """Mean and standard deviation with the divisor n; `x` need not be sorted."""
    pivot = float(x[len(x) // 2])
    shifted = x - pivot
    mean = float(np.average(shifted, weights=weight))
    deviation = shifted - mean
    return pivot + mean, math.sqrt(float(np.average(deviation * deviation, weights=weight)))


def fit_laplace(x: np.ndarray, weight: np.ndarray | None) -> tuple[float, float]:
    """Median (the middle of the interval of medians) and mean absolute deviation about it."""
    n = len(x)
    if weight is None:
        below, above = x[(n - 1) // 2], x[n // 2]
    else:
        total = np.cumsum(weight)
        half = total[-1] / 2.0
        i = min(int(np.searchsorted(total, half * (1 - 1e-12))), n - 1)
        below = x[i]
        above = x[min(i + 1, n - 1)] if abs(total[i] - half) <= 1e-12 * half else below
    theta = float(below + (above - below) / 2.0)
    return theta, float(np.average(np.abs(x - theta), weights=weight))


def fit_asymmetric_laplace(x: np.ndarray, weight: np.ndarray | None) -> tuple[float, float, float]:
    """θ, 1/β and 1/γ: the score with the least √A_l + √A_r (the lowest of several) and equation (3) there.

    `1/β = (A_l + √(A_l A_r))/n`, `1/γ = (A_r + √(A_l A_r))/n`.
    """
    n = float(len(x)) if weight is None else float(weight.sum())
    i, left, right = _asymmetric_laplace_mode(x, _ONES if weight is None else weight, np.empty(len(x)))
    cross = math.sqrt(left) * math.sqrt(right)
    return float(x[i]), (left + cross) / n, (right + cross) / n


def fit_asymmetric_gaussian(x: np.ndarray, weight: np.ndarray | None) -> tuple[float, float, float]:
    """θ, σ_l and σ_r: `σ_l² = (Q_l + Q_l^{2/3} Q_r^{1/3})/n`, and the same with l and r exchanged."""
    n = float(len(x)) if weight is None else float(weight.sum())
    i, offset, _, left, right = _two_sided_mode(x, weight, n, _ASYMMETRIC_GAUSSIAN)
    a, b = left ** (1.0 / 3.0), right ** (1.0 / 3.0)
    return float(x[i] + offset), a * math.sqrt((a + b) / n), b * math.sqrt((a + b) / n)


def fit_hybrid(x: np.ndarray, weight: np.ndarray | None) -> tuple[float, float, float]:
    """θ, u and σ: `exp(-(θ - x)/u)` left of θ, `exp(-(x - θ)²/(2σ²))` right of it, normaliser `1/(u + √(π/2) σ)`."""
    n = float(len(x)) if weight is None else float(weight.sum())
    i, offset, left, _, right = _two_sided_mode(x, weight, n, _HYBRID)
    u, sigma = hybrid_scales(left / n, math.sqrt(right / n))
    return float(x[i] + offset), u, sigma


def hybrid_scales(m1: float, m2: float) -> tuple[float, float]:
    """u and σ that maximise the hybrid's likelihood for a fixed θ.

    Parameters
    ----------
    m1 : float
        D₁/n: sum of distances on the exponential side over the rows of both sides.
    m2 : float
        √(D₂/n), D₂ the sum of squared distances on the Gaussian side.

    With c = √(π/2) and σ = m2 ω², the stationary equations `n/(u + cσ) = D₁/u² = D₂/(c σ³)` become `ω⁴ - k ω - 1 = 0`
    with `k = √(m1/(c m2))`, and `u + cσ = c m2 ω⁶`.
    """
    if m2 == 0.0:
        return m1, 0.0
    if m1 == 0.0:
        return 0.0, m2
    omega = _hybrid_root(math.sqrt(m1 / (HALF_GAUSSIAN * m2)))
    return math.sqrt(HALF_GAUSSIAN * m2 * m1) * omega**3, m2 * omega * omega


def _two_sided_mode(
    x: np.ndarray, weight: np.ndarray | None, n: float, family: int
) -> tuple[int, float, float, float, float]:
    """Number of the score at or below the best θ, θ minus that score, and A_l, Q_l and Q_r at θ."""
    i, offset, a, q_left, q_right = _mode_search(
        x, _ONES if weight is None else weight, np.empty(len(x)), np.empty(len(x)), n, family
    )
    return int(i), offset, a, q_left, q_right


@kernel
def _asymmetric_laplace_mode(x, weight, right):
    """Score with the least √A_l + √A_r, and A_l and A_r there; `right` (n,) is scratch."""
    n = len(x)
    weighted = len(weight) > 0
    a, w = 0.0, 0.0
    for i in range(n - 1, 0, -1):
        right[i] = a
        w += weight[i] if weighted else 1.0
        a += w * (x[i] - x[i - 1])
    right[0] = a
    a, w = 0.0, 0.0
    best, best_i, best_a = math.inf, 0, 0.0
    for i in range(n):
        value = math.sqrt(a) + math.sqrt(right[i])
        if value < best:
            best, best_i, best_a = value, i, a
        if i + 1 < n:
            w += weight[i] if weighted else 1.0
            a += w * (x[i + 1] - x[i])
    return best_i, best_a, right[best_i]


@kernel
def _hybrid_root(k):
    """The positive root of ω⁴ - k ω - 1, by Newton's method from above (the function is convex there)."""
    omega = 1.0 + k ** (1.0 / 3.0)
    for _ in range(60):
        square = omega * omega
        step = (square * square - k * omega - 1.0) / (4.0 * square * omega - k)
        omega -= step
        if step <= 1e-15 * omega:
            break
    return omega


@kernel
def _profile(family, n, a_left, q_left, q_right):
    """What is minimised over θ: non-decreasing in each of the sums on the two sides."""
    if family == 0:
        return q_left ** (1.0 / 3.0) + q_right ** (1.0 / 3.0)
    m1 = a_left / n
    m2 = math.sqrt(q_right / n)
    c = math.sqrt(math.pi / 2.0)
    if m2 == 0.0:
        return math.log(m1) + 1.0 if m1 > 0.0 else -math.inf
    omega = _hybrid_root(math.sqrt(m1 / (c * m2)))
    width = c * m2 * omega**6  # u + c σ
    return math.log(width) + 1.0 - 0.5 * c * m2 * omega * omega / width


@kernel
def _value_in_gap(family, n, t, gap, w, a, q, r, ar, qr):
    """Objective at x_i + t inside the gap to x_{i+1}: n_l, A_l, Q_l at x_i and n_r, A_r, Q_r at x_{i+1} are given."""
    u = gap - t
    return _profile(family, n, a + w * t, q + t * (2.0 * a + w * t), qr + u * (2.0 * ar + r * u))


@kernel
def _slope_in_gap(family, n, t, gap, w, a, q, r, ar, qr):
    """A number with the sign of the slope of `_value_in_gap` at t.

    Of the hybrid the two scales are best for its sums, so that the likelihood changes with θ through the sums alone.
    """
    u = gap - t
    a_left, a_right = a + w * t, ar + r * u
    q_left, q_right = q + t * (2.0 * a + w * t), qr + u * (2.0 * ar + r * u)
    if q_right == 0.0:
        return 1.0
    if q_left == 0.0:
        return -1.0
    if family == 0:
        return a_left / q_left ** (2.0 / 3.0) - a_right / q_right ** (2.0 / 3.0)
    c = math.sqrt(math.pi / 2.0)
    m1 = a_left / n
    m2 = math.sqrt(q_right / n)
    omega = _hybrid_root(math.sqrt(m1 / (c * m2)))
    return w * (m2 * omega * omega) ** 2 - a_right * math.sqrt(c * m2 * m1) * omega**3


@kernel
def _search_gap(values, best, family, n, gap, w, a, q, r, ar, qr):
    """The least objective in a gap, where it is below `best`, and its place t; else `best` and -1."""
    best_t = -1.0
    for j in range(10):
        values[j] = _value_in_gap(family, n, gap * j / 9.0, gap, w, a, q, r, ar, qr)
    for j in range(10):
        before, after = max(j - 1, 0), min(j + 1, 9)
        if values[j] > values[before] or values[j] > values[after]:
            continue
        low, high = gap * before / 9.0, gap * after / 9.0
        u = gap - high
        # Nothing between low and high can be below this: each sum is at its least.
        bound = _profile(family, n, a + w * low, q + low * (2.0 * a + w * low), qr + u * (2.0 * ar + r * u))
        if bound >= best:
            continue
        for _ in range(60):
            t = 0.5 * (low + high)
            if _slope_in_gap(family, n, t, gap, w, a, q, r, ar, qr) > 0.0:
                high = t
            else:
                low = t
        value = _value_in_gap(family, n, t, gap, w, a, q, r, ar, qr)
        if value < best:
            best, best_t = value, t
    return best, best_t


@kernel
def _mode_search(x, weight, a_right, q_right, n, family):
    """The best θ over all scores and inside all gaps; `a_right` and `q_right` (n,) are scratch.

    Returns i, t with θ = x_i + t, and A_l, Q_l, Q_r at θ.
    """
    rows = len(x)
    weighted = len(weight) > 0
    a, q, w = 0.0, 0.0, 0.0
    for i in range(rows - 1, 0, -1):
        a_right[i], q_right[i] = a, q
        w += weight[i] if weighted else 1.0
        gap = x[i] - x[i - 1]
        q += gap * (2.0 * a + w * gap)
        a += w * gap
    a_right[0], q_right[0] = a, q
    total = w + (weight[0] if weighted else 1.0)

    best, best_i, best_t = math.inf, 0, 0.0
    a, q, w = 0.0, 0.0, 0.0
    for i in range(rows):
        value = _profile(family, n, a, q, q_right[i])
        if value < best:
            best, best_i = value, i
        if i + 1 < rows:
            w += weight[i] if weighted else 1.0
            gap = x[i + 1] - x[i]
            q += gap * (2.0 * a + w * gap)
            a += w * gap

    values = np.empty(10)
    a, q, w = 0.0, 0.0, 0.0
    for i in range(rows - 1):
        w += weight[i] if weighted else 1.0
        gap = x[i + 1] - x[i]
        if gap > 0.0 and _profile(family, n, a, q, q_right[i + 1]) < best:
            r = max(total - w, 0.0)
            value, t = _search_gap(values, best, family, n, gap, w, a, q, r, a_right[i + 1], q_right[i + 1])
            if value < best:
                best, best_i, best_t = value, i, t
        q += gap * (2.0 * a + w * gap)
        a += w * gap

    # The sums at the best θ.
    a, q, w = 0.0, 0.0, 0.0
    for i in range(best_i + 1):
        w += weight[i] if weighted else 1.0
        gap = x[i + 1] - x[i] if i < best_i else best_t
        q += gap * (2.0 * a + w * gap)
        a += w * gap
    right = q_right[best_i]
    if best_t > 0.0:
        u = x[best_i + 1] - x[best_i] - best_t
        right = q_right[best_i + 1] + u * (2.0 * a_right[best_i + 1] + max(total - w, 0.0) * u)
    return best_i, best_t, a, q, right
