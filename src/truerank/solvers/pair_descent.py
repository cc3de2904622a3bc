"""The steps of stochastic pairwise descent (Sculley 2009): kernels for dense and sparse rows.

For a step on z, the difference of two rows (or one row), with rate η and weights w:

    w ← (1 - η λ) w + gain · z,        gain = η · u 1[u w·z < 1] for the hinge, and so on by loss.

The weights are kept as `w = s v`: shrinking them is one multiplication, and a step costs one pass over the features
of its rows. The sum of the weights over the averaged steps is kept as `σ v + r`, so that averaging costs one more
pass only where v changes. Draws and rates come as arrays, made outside.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.kernel import kernel

LOSSES = ("hinge", "logistic", "squared", "perceptron", "passive-aggressive")
_HINGE, _LOGISTIC, _SQUARED, _PERCEPTRON, _PASSIVE_AGGRESSIVE = range(5)
LEARNING_RATES = ("pegasos", "basic", "constant")
# Rows of the array of weights.
V, R = 0, 1
# Entries of the array of scalars that goes with the weights: s, ‖v‖², σ, averaged steps, steps.
SCALE, NORM, SIGMA, AVERAGED, STEPS = range(5)
# Entries of the array of options: λ; the perceptron's margin or the passive-aggressive C; radius of the ball, infinite
# without projection; first step that is averaged; what single rows have as intercept's feature.
REG, LIMIT, RADIUS, AVERAGE_FROM, INTERCEPT = range(5)
# The tracked norm gathers rounding: it is computed anew after so many steps.
_NORM_STEPS = 1024
# Below this s is multiplied into v.
_LEAST_SCALE = 1e-6
# The differences of so many draws are made before their steps, so that the rows' ways from memory overlap.
_AHEAD = 32


def new_state(width: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights (2, width) and scalars of the start."""
    scalars = np.zeros(5)
    scalars[SCALE] = 1.0
    return np.zeros((2, width)), scalars


def averaged_weights(weights: np.ndarray, scalars: np.ndarray) -> np.ndarray:
    """The mean of the weights over the averaged steps; the last weights when no step was averaged."""
    if scalars[AVERAGED] == 0:
        return scalars[SCALE] * weights[V]
    return (scalars[SIGMA] * weights[V] + weights[R]) / scalars[AVERAGED]


def rates(learning_rate: str, first: float, n: int, reg: float, eta0: float) -> np.ndarray:
    """η of the steps first, first + 1, …, float64 (n,)."""
    if learning_rate == "constant":
        return np.full(n, eta0)
    t = np.arange(n, dtype=np.float64)
    t += first
    if learning_rate == "basic":
        return 10.0 / (10.0 + t)
    if reg == 0:
        return np.zeros(n)
    t *= reg
    return np.divide(1.0, t, out=t)


def take_steps(
    rows: Any, order: np.ndarray | None, a: np.ndarray, b: np.ndarray, goal: np.ndarray, eta: np.ndarray,
    weights: np.ndarray, scalars: np.ndarray, options: np.ndarray, loss: str,
) -> None:  # fmt: skip
    """One step on each drawn pair of positions (a, b), or on a where b is -1; weights and scalars are changed in place.

    `rows` is an array (n, p), or the three arrays of a CSR matrix with sorted columns; `order` has the row at each
    position, None where positions are rows; a and b are int64 (k,). `goal` (k,) is u, +1 or -1, or for the squared loss
    the number that w·z should be; `eta` (k,) the rates. Weights, scalars and options are as above, weights with one
    entry more than rows have columns: the intercept of single rows.
    """
    if isinstance(rows, tuple):
        if order is not None:
            a, b = order[a], np.where(b >= 0, order[b], -1)
        _sparse_steps(*rows, a, b, goal, eta, weights, scalars, options, LOSSES.index(loss))
    else:
        order = np.arange(len(rows)) if order is None else order
        _dense_steps(rows, order, a, b, goal, eta, weights, scalars, options, LOSSES.index(loss))


# Kernels.


@kernel
def _gain(loss, prediction, goal, eta, square, limit):
    """The multiple of z that a step adds to the weights; `square` is ‖z‖²."""
    if loss == _SQUARED:
        return eta * (goal - prediction)
    margin = goal * prediction
    if loss == _HINGE:
        return eta * goal if margin < 1.0 else 0.0
    if loss == _LOGISTIC:
        if margin > 0.0:
            e = np.exp(-margin)
            return eta * goal * e / (1.0 + e)
        return eta * goal / (1.0 + np.exp(margin))
    if loss == _PERCEPTRON:
        return eta * goal if margin <= limit else 0.0
    if margin >= 1.0 or square == 0.0:
        return 0.0
    return goal * min(limit, (1.0 - margin) / square)


@kernel
def _shrink(weights, scalars, factor):
    """Multiply the weights by a factor >= 0; True when v itself was rescaled."""
    scalars[SCALE] *= factor
    s = scalars[SCALE]
    if s >= _LEAST_SCALE:
        return False
    for j in range(weights.shape[1]):
        # What was averaged so far, before its digits are lost beside new weights.
        weights[R, j] += scalars[SIGMA] * weights[V, j]
        weights[V, j] *= s
    scalars[NORM] *= s * s
    scalars[SIGMA] = 0.0
    scalars[SCALE] = 1.0
    return True


@kernel
def _finish_step(weights, scalars, options):
    """Projection to the ball, and the running average."""
    radius = options[RADIUS]
    if radius < np.inf:
        if scalars[STEPS] % _NORM_STEPS == 0:
            scalars[NORM] = np.sum(weights[V] * weights[V])
        norm = scalars[SCALE] * np.sqrt(max(0.0, scalars[NORM]))
        if norm > radius:
            scalars[SCALE] *= radius / norm
    if scalars[STEPS] >= options[AVERAGE_FROM]:
        scalars[SIGMA] += scalars[SCALE]
        scalars[AVERAGED] += 1.0


@kernel
def _dot(x, y):
    """Σ x_j y_j with eight sums in flight: one alone would wait for each addition (2.5 times as fast at 46 columns)."""
    n = len(x)
    whole = n - n % 8
    a = b = c = d = e = f = g = h = 0.0
    for j in range(0, whole, 8):
        a += x[j] * y[j]
        b += x[j + 1] * y[j + 1]
        c += x[j + 2] * y[j + 2]
        d += x[j + 3] * y[j + 3]
        e += x[j + 4] * y[j + 4]
        f += x[j + 5] * y[j + 5]
        g += x[j + 6] * y[j + 6]
        h += x[j + 7] * y[j + 7]
    total = ((a + e) + (c + g)) + ((b + f) + (d + h))
    for j in range(whole, n):
        total += x[j] * y[j]
    return total


@kernel
def _differences(X, order, a, b, intercept, differences):
    """z of each draw, one in a row."""
    p = X.shape[1]
    for k in range(len(a)):
        z, i = differences[k], order[a[k]]
        if b[k] >= 0:
            o = order[b[k]]
            for j in range(p):
                z[j] = np.float64(X[i, j]) - np.float64(X[o, j])
            z[p] = 0.0
        else:
            for j in range(p):
                z[j] = X[i, j]
            z[p] = intercept


@kernel
def _dense_steps(X, order, a, b, goal, eta, weights, scalars, options, loss):
    """`take_steps` on dense rows."""
    differences = np.empty((_AHEAD, weights.shape[1]))
    v, r = weights[V], weights[R]
    needs_square = options[RADIUS] < np.inf or loss == _PASSIVE_AGGRESSIVE
    for k in range(len(a)):
        if k % _AHEAD == 0:
            _differences(X, order, a[k : k + _AHEAD], b[k : k + _AHEAD], options[INTERCEPT], differences)
        z = differences[k % _AHEAD]
        scalars[STEPS] += 1.0
        along = _dot(z, v)
        square = _dot(z, z) if needs_square else 0.0
        gain = _gain(loss, scalars[SCALE] * along, goal[k], eta[k], square, options[LIMIT])
        if loss <= _SQUARED and _shrink(weights, scalars, 1.0 - eta[k] * options[REG]):
            along = _dot(z, v)
        if gain != 0.0:
            step = gain / scalars[SCALE]
            moved = scalars[SIGMA] * step
            for j in range(len(z)):
                v[j] += step * z[j]
            if moved != 0.0:
                for j in range(len(z)):
                    r[j] -= moved * z[j]
            scalars[NORM] += 2.0 * step * along + step * step * square
        _finish_step(weights, scalars, options)


@kernel
def _sparse_dot(data, indices, start, stop, v):
    total = 0.0
    for e in range(start, stop):
        total += data[e] * v[indices[e]]
    return total


@kernel
def _sparse_square(data, indices, i, i_stop, o, o_stop):
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
def _sparse_add(data, indices, start, stop, step, moved, weights):
    for e in range(start, stop):
        weights[V, indices[e]] += step * data[e]
    if moved != 0.0:
        for e in range(start, stop):
            weights[R, indices[e]] -= moved * data[e]


@kernel
def _sparse_steps(data, indices, starts, a, b, goal, eta, weights, scalars, options, loss):
    """`take_steps` on CSR rows with sorted column indices."""
    p = weights.shape[1] - 1
    v = weights[V]
    needs_square = options[RADIUS] < np.inf or loss == _PASSIVE_AGGRESSIVE
    for k in range(len(a)):
        scalars[STEPS] += 1.0
        i, i_stop = starts[a[k]], starts[a[k] + 1]
        o, o_stop, bias = 0, 0, options[INTERCEPT]
        if b[k] >= 0:
            o, o_stop, bias = starts[b[k]], starts[b[k] + 1], 0.0
        along = _sparse_dot(data, indices, i, i_stop, v) - _sparse_dot(data, indices, o, o_stop, v) + bias * v[p]
        square = _sparse_square(data, indices, i, i_stop, o, o_stop) + bias * bias if needs_square else 0.0
        gain = _gain(loss, scalars[SCALE] * along, goal[k], eta[k], square, options[LIMIT])
        if loss <= _SQUARED and _shrink(weights, scalars, 1.0 - eta[k] * options[REG]):
            along = _sparse_dot(data, indices, i, i_stop, v) - _sparse_dot(data, indices, o, o_stop, v) + bias * v[p]
        if gain != 0.0:
            step = gain / scalars[SCALE]
            moved = scalars[SIGMA] * step
            _sparse_add(data, indices, i, i_stop, step, moved, weights)
            _sparse_add(data, indices, o, o_stop, -step, -moved, weights)
            v[p] += step * bias
            weights[R, p] -= moved * bias
            scalars[NORM] += 2.0 * step * along + step * step * square
        _finish_step(weights, scalars, options)
