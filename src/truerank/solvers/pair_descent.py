"""The steps of stochastic pairwise descent: kernels for dense and sparse rows.

The weights are kept as `w = s v`: shrinking them is one multiplication, and a step costs one pass over the features
of its rows. The sum of the weights over the averaged steps is kept as `σ v + r`, so that averaging costs one more
pass only where v changes.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.solvers.pair_sampling import draw_batch

LOSSES = ("hinge", "logistic", "squared", "perceptron", "passive-aggressive")
LEARNING_RATES = ("pegasos", "basic", "constant")
# Entries of the array of scalars that goes with the weights.
SCALE, NORM, SIGMA, AVERAGED, STEPS = range(5)


def new_state(width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """v and r (zeros, float64 (width,)) and the scalars: scale 1, norm of v, σ, averaged steps, steps."""
    scalars = np.zeros(5)
    scalars[SCALE] = 1.0
    return np.zeros(width), np.zeros(width), scalars


def weights(v: np.ndarray, scalars: np.ndarray) -> np.ndarray:
    """The last weights."""
    return scalars[SCALE] * v


def averaged_weights(v: np.ndarray, r: np.ndarray, scalars: np.ndarray) -> np.ndarray:
    """The mean of the weights over the averaged steps; the last weights when no step was averaged."""
    if scalars[AVERAGED] == 0:
        return weights(v, scalars)
    return (scalars[SIGMA] * v + r) / scalars[AVERAGED]


# Kernels. Losses and learning rates are indices into LOSSES and LEARNING_RATES.


@kernel
def _rate(learning_rate, t, reg, eta0):  # type: ignore[no-untyped-def]
    if learning_rate == 0:
        return 1.0 / (reg * t)
    if learning_rate == 1:
        return 10.0 / (10.0 + t)
    return eta0


@kernel
def _gain(loss, prediction, target, eta, zz, limit):  # type: ignore[no-untyped-def]
    """The multiple of z that a step adds to the weights.

    `target` is +1 or -1, for the squared loss the number to predict; `limit` is the perceptron's margin or the
    passive-aggressive C.
    """
    if loss == 2:
        return eta * (target - prediction)
    margin = target * prediction
    if loss == 0:
        return eta * target if margin < 1.0 else 0.0
    if loss == 1:
        if margin > 0.0:
            e = np.exp(-margin)
            return eta * target * e / (1.0 + e)
        return eta * target / (1.0 + np.exp(margin))
    if loss == 3:
        return eta * target if margin <= limit else 0.0
    if margin >= 1.0 or zz == 0.0:
        return 0.0
    return target * min(limit, (1.0 - margin) / zz)


@kernel
def _shrink(v, r, scalars, factor):  # type: ignore[no-untyped-def]
    """Multiply the weights by a factor >= 0; True when v itself was rescaled."""
    scalars[0] *= factor
    rescaled = scalars[0] < 1e-6
    if rescaled:
        s = scalars[0]
        for j in range(len(v)):
            r[j] += scalars[2] * v[j]  # what was averaged so far, before its digits are lost beside new weights
            v[j] *= s
        scalars[1] *= s * s
        scalars[2] = 0.0
        scalars[0] = 1.0
    return rescaled


@kernel
def _finish_step(v, scalars, t, reg, project, average_from):  # type: ignore[no-untyped-def]
    """Projection to the ball of radius 1/sqrt(reg), and the running average."""
    if project:
        if t % 1024 == 0:  # the tracked norm gathers rounding
            total = 0.0
            for j in range(len(v)):
                total += v[j] * v[j]
            scalars[1] = total
        norm = scalars[0] * np.sqrt(max(0.0, scalars[1]))
        radius = 1.0 / np.sqrt(reg)
        if norm > radius:
            scalars[0] *= radius / norm
    if t >= average_from:
        scalars[2] += scalars[0]
        scalars[3] += 1.0


@kernel
def dense_steps(  # type: ignore[no-untyped-def]
    X, target, rows, first, first_blocks, second, second_blocks, single, single_blocks, form, pair_share, state,
    v, r, scalars, n_steps, loss, learning_rate, reg, eta0, limit, project, average_from, intercept, ahead,
):  # fmt: skip
    """Take n_steps steps on dense rows. v has one entry more than X has columns, the intercept of single rows.

    With `ahead` the rows of a batch of draws are touched before its steps, so that their way from memory overlaps.
    """
    p = X.shape[1]
    whole = p - p % 8
    z = np.zeros(p + 1)
    a, b = np.empty(64, dtype=np.int64), np.empty(64, dtype=np.int64)
    touched = 0.0
    with_norm = project or loss == 4
    regular = loss < 3
    done = 0
    while done < n_steps:
        size = min(64, n_steps - done)
        draw_batch(
            rows, first, first_blocks, second, second_blocks, single, single_blocks, form, pair_share, state,
            int(scalars[4]), a, b, size,
        )  # fmt: skip
        if ahead:
            for k in range(size):
                for j in range(0, p, 8):
                    touched += X[a[k], j]
                if b[k] >= 0:
                    for j in range(0, p, 8):
                        touched += X[b[k], j]
        for k in range(size):
            scalars[4] += 1.0
            t = scalars[4]
            i, o = a[k], b[k]
            if o >= 0:
                goal = 1.0
                if loss == 2:
                    goal = target[i] - target[o]
                for j in range(p):
                    z[j] = np.float64(X[i, j]) - np.float64(X[o, j])
                z[p] = 0.0
            else:
                goal = target[i]
                for j in range(p):
                    z[j] = X[i, j]
                z[p] = intercept
            d0 = d1 = d2 = d3 = d4 = d5 = d6 = d7 = 0.0
            for j in range(0, whole, 8):
                d0 += z[j] * v[j]
                d1 += z[j + 1] * v[j + 1]
                d2 += z[j + 2] * v[j + 2]
                d3 += z[j + 3] * v[j + 3]
                d4 += z[j + 4] * v[j + 4]
                d5 += z[j + 5] * v[j + 5]
                d6 += z[j + 6] * v[j + 6]
                d7 += z[j + 7] * v[j + 7]
            vz = ((d0 + d4) + (d2 + d6)) + ((d1 + d5) + (d3 + d7))
            for j in range(whole, p + 1):
                vz += z[j] * v[j]
            zz = 0.0
            if with_norm:
                for j in range(p + 1):
                    zz += z[j] * z[j]
            eta = _rate(learning_rate, t, reg, eta0)
            gain = _gain(loss, scalars[0] * vz, goal, eta, zz, limit)
            if regular and _shrink(v, r, scalars, 1.0 - eta * reg):
                vz = 0.0
                for j in range(p + 1):
                    vz += z[j] * v[j]
            if gain != 0.0:
                delta = gain / scalars[0]
                moved = scalars[2] * delta
                for j in range(p + 1):
                    v[j] += delta * z[j]
                if moved != 0.0:
                    for j in range(p + 1):
                        r[j] -= moved * z[j]
                scalars[1] += 2.0 * delta * vz + delta * delta * zz
            _finish_step(v, scalars, t, reg, project, average_from)
        done += size
    return touched


@kernel
def _sparse_dot(data, indices, start, stop, v):  # type: ignore[no-untyped-def]
    total = 0.0
    for e in range(start, stop):
        total += data[e] * v[indices[e]]
    return total


@kernel
def _sparse_square(data, indices, i, i_stop, o, o_stop):  # type: ignore[no-untyped-def]
    """Squared norm of the difference of two sparse rows, column indices sorted."""
    total = 0.0
    while i < i_stop or o < o_stop:
        if o >= o_stop or (i < i_stop and indices[i] < indices[o]):
            d = np.float64(data[i])
            i += 1
        elif i >= i_stop or indices[o] < indices[i]:
            d = np.float64(data[o])
            o += 1
        else:
            d = np.float64(data[i]) - np.float64(data[o])
            i += 1
            o += 1
        total += d * d
    return total


@kernel
def _sparse_add(data, indices, start, stop, factor, moved, v, r):  # type: ignore[no-untyped-def]
    for e in range(start, stop):
        v[indices[e]] += factor * data[e]
    if moved != 0.0:
        for e in range(start, stop):
            r[indices[e]] -= moved * data[e]


@kernel
def sparse_steps(  # type: ignore[no-untyped-def]
    data, indices, starts, target, rows, first, first_blocks, second, second_blocks, single, single_blocks, form,
    pair_share, state, v, r, scalars, n_steps, loss, learning_rate, reg, eta0, limit, project, average_from, intercept,
):  # fmt: skip
    """`dense_steps` on CSR rows with sorted column indices; the last entry of v is the intercept of single rows."""
    p = len(v) - 1
    a, b = np.empty(64, dtype=np.int64), np.empty(64, dtype=np.int64)
    with_norm = project or loss == 4
    regular = loss < 3
    done = 0
    while done < n_steps:
        size = min(64, n_steps - done)
        draw_batch(
            rows, first, first_blocks, second, second_blocks, single, single_blocks, form, pair_share, state,
            int(scalars[4]), a, b, size,
        )  # fmt: skip
        for k in range(size):
            scalars[4] += 1.0
            t = scalars[4]
            i, i_stop = starts[a[k]], starts[a[k] + 1]
            o = o_stop = 0
            bias = 0.0
            vz = _sparse_dot(data, indices, i, i_stop, v)
            if b[k] >= 0:
                o, o_stop = starts[b[k]], starts[b[k] + 1]
                goal = 1.0
                if loss == 2:
                    goal = target[a[k]] - target[b[k]]
                vz -= _sparse_dot(data, indices, o, o_stop, v)
            else:
                goal = target[a[k]]
                bias = intercept
                vz += bias * v[p]
            zz = 0.0
            if with_norm:
                zz = _sparse_square(data, indices, i, i_stop, o, o_stop) + bias * bias
            eta = _rate(learning_rate, t, reg, eta0)
            gain = _gain(loss, scalars[0] * vz, goal, eta, zz, limit)
            if regular and _shrink(v, r, scalars, 1.0 - eta * reg):
                vz = _sparse_dot(data, indices, i, i_stop, v) - _sparse_dot(data, indices, o, o_stop, v)
                vz += bias * v[p]
            if gain != 0.0:
                delta = gain / scalars[0]
                moved = scalars[2] * delta
                _sparse_add(data, indices, i, i_stop, delta, moved, v, r)
                _sparse_add(data, indices, o, o_stop, -delta, -moved, v, r)
                v[p] += delta * bias
                r[p] -= moved * bias
                scalars[1] += 2.0 * delta * vz + delta * delta * zz
            _finish_step(v, scalars, t, reg, project, average_from)
        done += size
