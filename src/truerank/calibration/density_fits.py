"""Maximum-likelihood fits of two-sided densities to one class's scores, exact and in O(n log n).

Each family has a mode θ and a scale for each side of it. For a given θ, the best scales have a closed form in the sums
of distances A or squared distances Q on the two sides. The remaining objective is a function of θ that does not
decrease in these sums. Over sorted scores they are running sums of non-negative terms, and the same from the right, so
that nothing cancels:

    A_l(θ) = Σ_{x ≤ θ} (θ - x),    Q_l(θ) = Σ_{x ≤ θ} (θ - x)²,
    A_l(θ + t) = A_l + n_l t,      Q_l(θ + t) = Q_l + 2 t A_l + n_l t²     up to the next score.

No scale is below `smallest`. If the closed form has a smaller one, at least one of the best scales is `smallest`, and
the other solves one equation (`_other_scale`). The maximised likelihood thus includes this bound.

* Asymmetric Laplace: the best θ is a score, because the objective is concave between neighbouring scores.
* Asymmetric Gaussian and hybrid (exponential left, Gaussian right): the best θ may lie in a gap between scores. All
  scores are tried. A gap [a, b] is searched if its lower bound, the objective of the sums left of a and right of b, is
  below the best value so far. In such a gap, ten points are tried, and a bisection of the slope follows around each
  local minimum.

Functions receive sorted scores (n,), n ≥ 1, weights (n,) > 0 or None, and `smallest` > 0, and return θ and both scales.

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
# Kernels use their numbers 0, 1, 2: no side, both sides or the right side is half a Gaussian, the others exponential.
FAMILIES = ("asymmetric-laplace", "asymmetric-gaussian", "hybrid")
# Modes whose objectives differ by less, a rounding error, are equally good: scores on a grid often have two.
_TIED = 1e-12
_CLEARLY = 1e-11


def fit_gaussian(x: np.ndarray, weight: np.ndarray | None) -> tuple[float, float]:
    """Return mean and standard deviation with the divisor n; `x` need not be sorted."""
    pivot = float(x[len(x) // 2])
    shifted = x - pivot
    mean = float(np.average(shifted, weights=weight))
    deviation = shifted - mean
    return pivot + mean, math.sqrt(float(np.average(deviation * deviation, weights=weight)))


def fit_laplace(x: np.ndarray, weight: np.ndarray | None) -> tuple[float, float]:
    """Return the median (the middle of the interval of medians) and the mean absolute deviation about it."""
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


def fit_two_sided(x: np.ndarray, weight: np.ndarray | None, smallest: float, family: str) -> tuple[float, float, float]:
    """Return θ (with ties, the lowest) and the scales left and right of it, for one of the `FAMILIES`.

    1. "asymmetric-laplace": the best score, `1/β = (A_l + √(A_l A_r))/n` and `1/γ = (A_r + √(A_l A_r))/n` (equation 3).
    2. "asymmetric-gaussian": `σ_l² = (Q_l + Q_l^{2/3} Q_r^{1/3})/n`, and the same with l and r exchanged.
    3. "hybrid": `exp(-(θ - x)/u)` left of θ, `exp(-(x - θ)²/(2σ²))` right of it, normaliser `1/(u + √(π/2) σ)`.
       With m1 = A_l/n, m2 = √(Q_r/n), c = √(π/2) and σ = m2 ω², the stationary equations
       `n/(u + cσ) = A_l/u² = Q_r/(c σ³)` become `ω⁴ - k ω - 1 = 0` with `k = √(m1/(c m2))`, and `u = √(c m2 m1) ω³`.
    """
    n = float(len(x)) if weight is None else float(weight.sum())
    i, offset, left, right = _mode_search(
        x, np.empty(0) if weight is None else weight, np.empty(len(x)), np.empty(len(x)), n, FAMILIES.index(family),
        smallest,
    )  # fmt: skip
    return float(x[i] + offset), float(left), float(right)


@kernel
def _hybrid_root(k):
    """Return the positive root of ω⁴ - k ω - 1 by Newton's method from above, where the function is convex."""
    omega = 1.0 + k ** (1.0 / 3.0)
    for _ in range(60):
        square = omega * omega
        step = (square * square - k * omega - 1.0) / (4.0 * square * omega - k)
        omega -= step
        if step <= 1e-15 * omega:
            break
    return omega


@kernel
def _other_scale(power, n, d, rest, smallest):
    """Return the scale of one side that solves n c s^(power + 1) - d c s - d rest = 0; c is the width of a unit."""
    # `rest` is the other side's part of the width. In units of `smallest`, no power of a small scale underflows.
    if d <= 0.0:
        return smallest
    c = 1.0 if power == 1 else math.sqrt(math.pi / 2.0)
    share = rest / (c * smallest)
    if power == 1:
        a = d / n / smallest
        t = 0.5 * (a + math.sqrt(a) * math.sqrt(a + 4.0 * share))
    else:
        root = math.sqrt(d / n) / smallest
        a = root * root
        t = max(math.sqrt(2.0) * root, (2.0 * a * share) ** (1.0 / 3.0))  # above the root; the cubic is convex there
        for _ in range(100):
            step = ((t * t - a) * t - a * share) / (3.0 * t * t - a)
            t -= step
            if step <= 1e-15 * t:
                break
    return max(t * smallest, smallest)


@kernel
def _negative_log_likelihood(family, n, d_left, d_right, left, right):
    """Return the mean of -log likelihood, without constants, from sums of distances (squared on a Gaussian side)."""
    c = math.sqrt(math.pi / 2.0)
    left_share = d_left / n / left if family != 1 else 0.5 * (d_left / n / left) / left
    right_share = d_right / n / right if family == 0 else 0.5 * (d_right / n / right) / right
    width = (left if family != 1 else c * left) + (right if family == 0 else c * right)
    return math.log(width) + left_share + right_share


@kernel
def _scales(family, n, d_left, d_right, smallest):
    """Return the two best scales for the sums on the two sides, none below `smallest`."""
    c = math.sqrt(math.pi / 2.0)
    if d_left > 0.0 and d_right > 0.0:
        if family == 0:
            cross = math.sqrt(d_left) * math.sqrt(d_right)
            left, right = (d_left + cross) / n, (d_right + cross) / n
        elif family == 1:
            a, b = d_left ** (1.0 / 3.0), d_right ** (1.0 / 3.0)
            left, right = a * math.sqrt((a + b) / n), b * math.sqrt((a + b) / n)
        else:
            m1, m2 = d_left / n, math.sqrt(d_right / n)
            omega = _hybrid_root(math.sqrt(m1 / (c * m2)))
            left, right = math.sqrt(c * m2 * m1) * omega**3, m2 * omega * omega
        if left >= smallest and right >= smallest:
            return left, right
    # At least one side has the smallest scale.
    left_power, right_power = 2 if family == 1 else 1, 1 if family == 0 else 2
    right = _other_scale(right_power, n, d_right, smallest if left_power == 1 else c * smallest, smallest)
    left = _other_scale(left_power, n, d_left, smallest if right_power == 1 else c * smallest, smallest)
    if _negative_log_likelihood(family, n, d_left, d_right, smallest, right) <= _negative_log_likelihood(
        family, n, d_left, d_right, left, smallest
    ):
        return smallest, right
    return left, smallest


@kernel
def _profile(family, n, a_left, q_left, a_right, q_right, smallest):
    """Return the objective of θ, which is non-decreasing in each of the sums on the two sides."""
    d_left, d_right = (q_left if family == 1 else a_left), (a_right if family == 0 else q_right)
    left, right = _scales(family, n, d_left, d_right, smallest)
    return _negative_log_likelihood(family, n, d_left, d_right, left, right)


@kernel
def _value_in_gap(family, n, t, gap, w, a, q, r, ar, qr, smallest):
    """Return the objective at x_i + t before x_{i+1}, from n_l, A_l, Q_l at x_i and n_r, A_r, Q_r at x_{i+1}."""
    u = gap - t
    left_square, right_square = q + t * (2.0 * a + w * t), qr + u * (2.0 * ar + r * u)
    return _profile(family, n, a + w * t, left_square, ar + r * u, right_square, smallest)


@kernel
def _slope_in_gap(family, n, t, gap, w, a, q, r, ar, qr, smallest):
    """Return the sign of the slope of `_value_in_gap`; the scales are optimal, so that only the sums change it."""
    u = gap - t
    a_left, a_right = a + w * t, ar + r * u
    q_left, q_right = q + t * (2.0 * a + w * t), qr + u * (2.0 * ar + r * u)
    left, right = _scales(family, n, q_left if family == 1 else a_left, q_right, smallest)
    if family == 1:
        ratio = right / left
        return a_left * ratio * ratio - a_right
    return w * (right / left) * right - a_right


@kernel
def _search_gap(values, best, family, n, gap, w, a, q, r, ar, qr, smallest):
    """Return the least objective in a gap and its position t if it is below `best`, else `best` and -1."""
    best_t = -1.0
    for j in range(10):
        values[j] = _value_in_gap(family, n, gap * j / 9.0, gap, w, a, q, r, ar, qr, smallest)
    for j in range(10):
        before, after = max(j - 1, 0), min(j + 1, 9)
        if values[j] > values[before] or values[j] > values[after]:
            continue
        low, high = gap * before / 9.0, gap * after / 9.0
        u = gap - high
        # A lower bound between low and high, from the smallest sums.
        left_square, right_square = q + low * (2.0 * a + w * low), qr + u * (2.0 * ar + r * u)
        bound = _profile(family, n, a + w * low, left_square, ar + r * u, right_square, smallest)
        if bound >= best:
            continue
        for _ in range(60):
            t = 0.5 * (low + high)
            if _slope_in_gap(family, n, t, gap, w, a, q, r, ar, qr, smallest) > 0.0:
                high = t
            else:
                low = t
        value = _value_in_gap(family, n, t, gap, w, a, q, r, ar, qr, smallest)
        if value < best:
            best, best_t = value, t
    return best, best_t


@kernel
def _best_score(x, weight, a_right, q_right, n, family, smallest):
    """Return the least objective at a score (not of the asymmetric Laplace), and the number of this score."""
    # Of two exponential sides the least objective is `log((√A_l + √A_r)²/n) + 1`, unless a scale is `smallest`, which
    # raises it. Where the root is clearly below all before, the score is the best so far, and its value can wait;
    # where it is clearly above, it is not. `_CLEARLY` exceeds `_TIED` and rounding.
    rows, weighted = len(x), len(weight) > 0
    best, best_i = math.inf, 0
    low, high, waiting = math.inf, math.inf, -1.0
    a, q, w = 0.0, 0.0, 0.0
    for i in range(rows):
        sides = math.sqrt(a), math.sqrt(a_right[i])
        root = sides[0] + sides[1]
        if family == 0 and root < low and min(sides) * root > 2.0 * smallest * n:
            best_i, waiting, high = i, a, root * (1.0 + _CLEARLY)
        elif family != 0 or root <= high:
            if waiting >= 0.0:
                best, waiting = _profile(family, n, waiting, 0.0, a_right[best_i], 0.0, smallest), -1.0
            value = _profile(family, n, a, q, a_right[i], q_right[i], smallest)
            if value < best - _TIED:
                best, best_i = value, i
        low = min(low, root * (1.0 - _CLEARLY))
        if i + 1 < rows:
            w += weight[i] if weighted else 1.0
            gap = x[i + 1] - x[i]
            q += gap * (2.0 * a + w * gap)
            a += w * gap
    return best, best_i


@kernel
def _mode_search(x, weight, a_right, q_right, n, family, smallest):
    """Return i, t with the best θ = x_i + t over all scores and gaps, and the scales; `*_right` (n,) are scratch."""
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

    best, best_i = _best_score(x, weight, a_right, q_right, n, family, smallest)
    best_t = 0.0
    values = np.empty(10)
    a, q, w = 0.0, 0.0, 0.0
    for i in range(rows - 1 if family != 0 else 0):  # the asymmetric Laplace's best θ is a score
        w += weight[i] if weighted else 1.0
        gap = x[i + 1] - x[i]
        if gap > 0.0 and _profile(family, n, a, q, a_right[i + 1], q_right[i + 1], smallest) < best:
            r = max(total - w, 0.0)
            value, t = _search_gap(values, best, family, n, gap, w, a, q, r, a_right[i + 1], q_right[i + 1], smallest)
            if value < best - _TIED:
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
    ar, qr = a_right[best_i], q_right[best_i]
    if best_t > 0.0:
        u = x[best_i + 1] - x[best_i] - best_t
        r = max(total - w, 0.0)
        ar, qr = a_right[best_i + 1] + r * u, q_right[best_i + 1] + u * (2.0 * a_right[best_i + 1] + r * u)
    left, right = _scales(family, n, q if family == 1 else a, ar if family == 0 else qr, smallest)
    return best_i, best_t, left, right
