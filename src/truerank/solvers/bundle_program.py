"""The quadratic program of a cutting-plane solver, whose solution is the weights of the planes found so far.

    min ½‖Gᵀα‖² - qᵀα    over α >= 0 with Σ_{j in block b} α_j <= C for every block b

The rows of G are the gradients of the planes, and q their offsets. The program is the dual of

    min ½‖w‖² + C Σ_b ξ_b    with ξ_b >= 0 and ξ_b >= q_j + g_j·w for every plane j of block b,   w = -Gᵀα.

A primal-dual interior-point method (Mehrotra's predictor and corrector) solves the program. The method allows copies of
planes, requires no tuning between C = 1e-6 and 1e6, and has a feasible α after every step, which gives a lower bound.
Each iteration solves one linear system in `H + diag(z/α) + blocks`, H = GGᵀ: directly (n³/6 operations for n planes)
or, with fewer features than planes, in the features (n p²/2). The dense factorisation is a kernel, so that results do
not depend on the number of BLAS threads; for systems of ten planes it takes half the time of LAPACK.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel


@kernel
def solve_bundle(G, H, q, block, n_blocks, C, tol, max_iter, in_features):
    """Return the weights of the planes, and how far each lies below the largest of its block at the solution (n,).

    G (>= n, p), their Gram matrix H, q (n,) and `block` (n,) describe the planes. C limits each block's sum, `tol` is
    the absolute gap to reach. `in_features` solves the linear systems in the features: faster for p < n, and less exact
    by a few digits. The weights are positive, and their sum in each block is below C.
    """
    n, p = len(q), G.shape[1]
    slope = np.empty(n)  # Hα - q
    alpha, z, s, xi = _feasible_start(G, H, q, block, n_blocks, C, in_features, slope)
    factor = np.empty((p, p) if in_features else (n, n))
    spare = np.zeros((3, max(p, n_blocks)))
    d_alpha, d_s = np.empty(n), np.empty(n_blocks)
    best, best_value, failures = alpha.copy(), -np.inf, 0
    for iteration in range(max_iter):
        if iteration > 0:
            _slopes(G, H, q, alpha, in_features, slope)
        value = 0.0
        for j in range(n):
            value += 0.5 * alpha[j] * (q[j] - slope[j])
        # Near the limits of floating point a step may do harm: keep the best α, and stop after a few in vain.
        if value > best_value:
            best_value, failures = value, 0
            best[:] = alpha
        else:
            failures += 1
        gap = _gap(alpha, z, s, xi)
        if gap <= tol or failures > 4:
            break
        theta, diagonal = xi / s, z / alpha
        if in_features:
            _factor_features(G, diagonal, block, theta, spare, factor)
        else:
            _factor_planes(H, diagonal, block, theta, factor)
        mu, sigma_mu = gap / (n + n_blocks), 0.0
        second, second_s = np.zeros(n), np.zeros(n_blocks)  # products of the predictor's steps
        for _ in range(2):  # predictor, then corrector
            for j in range(n):
                b = block[j]
                # The residual of z is in here: -(Hα - q + ξ - z) - z + ξ = -(Hα - q).
                d_alpha[j] = (sigma_mu - second[j]) / alpha[j] - slope[j] - (sigma_mu - second_s[b]) / s[b]
            if in_features:
                _solve_features(G, diagonal, block, theta, spare, factor, d_alpha)
            else:
                _solve(factor, d_alpha, n)
            d_s[:] = 0.0
            for j in range(n):
                d_s[block[j]] -= d_alpha[j]
            d_z = (sigma_mu - second - z * d_alpha) / alpha - z
            d_xi = (sigma_mu - second_s - xi * d_s) / s - xi
            step = min(_longest_step(alpha, d_alpha), _longest_step(z, d_z))
            step = min(step, min(_longest_step(s, d_s), _longest_step(xi, d_xi)))
            if sigma_mu > 0.0:
                break
            after = _gap(alpha + step * d_alpha, z + step * d_z, s + step * d_s, xi + step * d_xi)
            second, second_s = d_alpha * d_z, d_s * d_xi
            ratio = min(max(after / gap, 1e-6), 1.0)
            sigma_mu = ratio * ratio * ratio * mu
        step *= 1.0 - min(0.05, 0.1 * sigma_mu / mu + 1e-3)
        if not step > 1e-8:
            break
        alpha += step * d_alpha
        z += step * d_z
        s += step * d_s
        xi += step * d_xi
    return best, z


@kernel
def _feasible_start(G, H, q, block, n_blocks, C, in_features, slope):
    """Return positive α, z, s and ξ, with s = C - Σ α of each block and z = Hα - q + ξ; write Hα - q to `slope`."""
    n = len(q)
    alpha, z, s, xi = np.empty(n), np.empty(n), np.ones(n_blocks), np.zeros(n_blocks)
    for j in range(n):
        s[block[j]] += 1.0
    s = C / s
    for j in range(n):
        alpha[j] = s[block[j]]
    _slopes(G, H, q, alpha, in_features, slope)
    for j in range(n):
        xi[block[j]] = max(xi[block[j]], -slope[j])
    xi += max(1e-3, 0.1 * np.abs(slope).max())
    for j in range(n):
        z[j] = slope[j] + xi[block[j]]
    return alpha, z, s, xi


@kernel
def _gap(alpha, z, s, xi):
    """Return Σ αz + Σ sξ, the primal value minus the dual value."""
    total = 0.0
    for j in range(len(alpha)):
        total += alpha[j] * z[j]
    for b in range(len(s)):
        total += s[b] * xi[b]
    return total


@kernel
def _longest_step(values, direction):
    """Return the longest step, at most 1, after which no value is negative."""
    step = 1.0
    for j in range(len(values)):
        if direction[j] < 0.0:
            step = min(step, -values[j] / direction[j])
    return step


@kernel
def solve_one_block(H, q, alpha, C, tol, max_steps):
    """Solve the program of one block by pairwise steps from the feasible `alpha`, which becomes the solution.

    Each step moves weight to the plane that lies highest, from the plane with the largest gain to second order; one
    of them may be the zero plane, which completes the sum C. A step costs O(n). Returns z as `solve_bundle`, and the
    gap of this program, at most `tol` if the steps sufficed.
    """
    n = len(q)
    height = q.copy()  # q - Hα: how high each plane lies at w; the zero plane lies at 0
    rest = C
    for j in range(n):
        a = alpha[j]
        if a != 0.0:
            rest -= a
            for i in range(n):
                height[i] -= a * H[j, i]
    rest = max(rest, 0.0)
    gap = np.inf
    for _ in range(max_steps):
        top, highest, spent = -1, 0.0, 0.0
        for j in range(n):
            spent += alpha[j] * height[j]
            if height[j] > highest:
                top, highest = j, height[j]
        gap = C * highest - spent
        if gap <= tol:
            break
        own = H[top, top] if top >= 0 else 0.0
        best, best_gain, best_curvature = -2, 0.0, 1.0
        if top >= 0 and rest > 0.0:
            best, best_gain, best_curvature = -1, highest * highest / max(own, 1e-300), own
        for j in range(n):
            if alpha[j] > 0.0:
                difference = highest - height[j]
                if difference > 0.0:
                    curvature = own + H[j, j]
                    if top >= 0:
                        curvature -= 2.0 * H[top, j]
                    gain = difference * difference / max(curvature, 1e-300)
                    if gain > best_gain:
                        best, best_gain, best_curvature = j, gain, curvature
        if best == -2:
            break
        given = rest if best == -1 else alpha[best]
        difference = highest if best == -1 else highest - height[best]
        step = min(given, difference / best_curvature) if best_curvature > 0.0 else given
        if best >= 0:
            alpha[best] = 0.0 if step == given else alpha[best] - step
            for i in range(n):
                height[i] += step * H[best, i]
        else:
            rest = 0.0 if step == given else rest - step
        if top >= 0:
            alpha[top] += step
            for i in range(n):
                height[i] -= step * H[top, i]
        else:
            rest += step
    highest = max(height.max(), 0.0)
    return highest - height, gap


@kernel
def combine(G, alpha):
    """Return `Gᵀα` over the first len(alpha) rows, added in their order."""
    p = G.shape[1]
    total = np.zeros(p)
    for j in range(len(alpha)):
        a = alpha[j]
        for k in range(p):
            total[k] += a * G[j, k]
    return total


@kernel
def extend_gram(G, H, first, last):
    """Write rows and columns first … last - 1 of H = GGᵀ."""
    p = G.shape[1]
    for i in range(first, last):
        for j in range(i + 1):
            a = b = c = d = 0.0
            k = 0
            while k + 4 <= p:  # four sums in flight
                a += G[i, k] * G[j, k]
                b += G[i, k + 1] * G[j, k + 1]
                c += G[i, k + 2] * G[j, k + 2]
                d += G[i, k + 3] * G[j, k + 3]
                k += 4
            while k < p:
                a += G[i, k] * G[j, k]
                k += 1
            H[i, j] = H[j, i] = (a + b) + (c + d)


@kernel
def _slopes(G, H, q, alpha, in_features, slope):
    """Write `Hα - q` to `slope`."""
    n = len(q)
    if in_features:
        v = combine(G, alpha)
        for j in range(n):
            slope[j] = _dot(G, j, v) - q[j]
        return
    for j in range(n):
        slope[j] = -q[j]
    for i in range(n):
        a = alpha[i]
        for j in range(n):
            slope[j] += a * H[i, j]


@kernel
def _factor_planes(H, diagonal, block, theta, factor):
    """Write the Cholesky factor of `H + E`, E as in `_factor_features`."""
    n = len(diagonal)
    for j in range(n):
        for i in range(j, n):
            factor[j, i] = H[j, i]
            if block[i] == block[j]:
                factor[j, i] += theta[block[j]]
        factor[j, j] += diagonal[j]
    _cholesky(factor, n)


@kernel
def _factor_features(G, diagonal, block, theta, spare, factor):
    """Write the Cholesky factor of `I + Gᵀ E⁻¹ G`, E = diag(diagonal) + a rank-one term `θ 11ᵀ` for each block.

    By Sherman and Morrison, `Gᵀ E⁻¹ G` is for each block with W = Σ 1/d_j and mean ḡ = Σ g_j/d_j / W `Σ (g_j -
    ḡ)(g_j - ḡ)ᵀ/d_j + W ḡḡᵀ/(1 + θW)`: sums of positive terms, so that nothing cancels for large θ.
    """
    n, p = len(diagonal), G.shape[1]
    n_blocks = len(theta)
    total, mean, row = spare[0], spare[1], spare[2]
    total[:n_blocks] = 0.0
    for j in range(n):
        total[block[j]] += 1.0 / diagonal[j]
    for a in range(p):
        for c in range(p):
            factor[a, c] = 0.0
        factor[a, a] = 1.0
    for b in range(n_blocks):
        if total[b] == 0.0:
            continue
        mean[:p] = 0.0
        for j in range(n):
            if block[j] == b:
                share = 1.0 / (diagonal[j] * total[b])
                for a in range(p):
                    mean[a] += share * G[j, a]
        _add_outer(factor, mean, total[b] / (1.0 + theta[b] * total[b]), p)
        for j in range(n):
            if block[j] == b:
                for a in range(p):
                    row[a] = G[j, a] - mean[a]
                _add_outer(factor, row, 1.0 / diagonal[j], p)
    _cholesky(factor, p)


@kernel
def _add_outer(A, x, factor, p):
    for a in range(p):
        value = factor * x[a]
        for c in range(a, p):
            A[a, c] += value * x[c]


@kernel
def _solve_features(G, diagonal, block, theta, spare, factor, x):
    """Solve `(E + GGᵀ) x = right side` in place: `x = E⁻¹(r - G M⁻¹ Gᵀ E⁻¹ r)`, refined once.

    The difference cancels for small E; the refinement restores these digits.
    """
    n, p = len(diagonal), G.shape[1]
    right = x.copy()
    residual = x.copy()
    sums = np.zeros(len(theta))
    for attempt in range(2):
        step = residual.copy()
        _solve_blocks(diagonal, block, theta, spare[0], step)
        v = combine(G, step)
        _solve(factor, v, p)
        step[:] = residual
        for j in range(n):
            step[j] -= _dot(G, j, v)
        _solve_blocks(diagonal, block, theta, spare[0], step)
        if attempt == 0:
            x[:] = step
        else:
            for j in range(n):
                x[j] += step[j]
            break
        sums[:] = 0.0
        for j in range(n):
            sums[block[j]] += x[j]
        v = combine(G, x)
        for j in range(n):
            residual[j] = right[j] - diagonal[j] * x[j] - theta[block[j]] * sums[block[j]] - _dot(G, j, v)


@kernel
def _dot(G, j, v):
    total = 0.0
    for k in range(len(v)):
        total += G[j, k] * v[k]
    return total


@kernel
def _solve_blocks(diagonal, block, theta, total, x):
    """Replace x by `E⁻¹ x`; `total` holds Σ 1/d_j of each block."""
    n = len(x)
    sums = np.zeros(len(theta))
    for j in range(n):
        x[j] /= diagonal[j]
        sums[block[j]] += x[j]
    for b in range(len(theta)):
        sums[b] *= theta[b] / (1.0 + theta[b] * total[b])
    for j in range(n):
        x[j] -= sums[block[j]] / diagonal[j]


@kernel
def _cholesky(A, n):
    """Replace A's upper triangle by the factor U with UᵀU = A, two pivots at a time on contiguous rows.

    A pivot that is not positive after rounding becomes huge, so that its variable does not move in this step.
    """
    k = 0
    while k < n:
        pivot = A[k, k]
        root = np.sqrt(pivot) if pivot > 0.0 else 1e100
        inverse = 1.0 / root
        A[k, k] = root
        for i in range(k + 1, n):
            A[k, i] *= inverse
        if k + 1 == n:
            break
        lead = A[k, k + 1]
        for i in range(k + 1, n):
            A[k + 1, i] -= lead * A[k, i]
        pivot = A[k + 1, k + 1]
        root = np.sqrt(pivot) if pivot > 0.0 else 1e100
        inverse = 1.0 / root
        A[k + 1, k + 1] = root
        for i in range(k + 2, n):
            A[k + 1, i] *= inverse
        for j in range(k + 2, n):
            a, b = A[k, j], A[k + 1, j]
            for i in range(j, n):
                A[j, i] -= a * A[k, i] + b * A[k + 1, i]
        k += 2


@kernel
def _solve(U, x, n):
    """Replace x by the solution of UᵀU x = right side."""
    for k in range(n):
        x[k] /= U[k, k]
        value = x[k]
        for i in range(k + 1, n):
            x[i] -= value * U[k, i]
    for k in range(n - 1, -1, -1):
        total = x[k]
        for i in range(k + 1, n):
            total -= U[k, i] * x[i]
        x[k] = total / U[k, k]
