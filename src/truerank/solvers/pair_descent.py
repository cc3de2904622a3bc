"""Steps of stochastic pairwise descent (Sculley 2009): kernels for dense and sparse rows.

For a step on z, the difference of two rows (or one row), with rate η and weights w:

    w ← (1 - η λ) w + gain · z,        gain = η · u 1[u w·z < 1] for the hinge

The weights are stored as `w = s v`: a factor shrinks them, and a step costs one pass over the features of its rows. The
sum of the weights over the averaged steps is stored as `σ v + r`, so that averaging costs one more pass only if v
changes. The caller computes draws and rates as arrays.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel

LOSSES = ("hinge", "logistic", "squared")
_HINGE, _LOGISTIC, _SQUARED = range(3)
LEARNING_RATES = ("pegasos", "basic", "constant")
# Rows of the array of weights.
V, R = 0, 1
# Entries of the array of scalars that goes with the weights: s (at first 1), σ, numbers of averaged steps and of steps.
SCALE, SIGMA, AVERAGED, STEPS = range(4)
# Entries of the array of options: λ; first step that is averaged; value of the intercept's feature in single rows;
# radius of the ball that Pegasos projects to (infinite without projection).
REG, AVERAGE_FROM, INTERCEPT, RADIUS = range(4)
# Below this s is multiplied into v.
_LEAST_SCALE = 1e-6
# The differences of so many draws are made before their steps, so that reads of rows from memory overlap.
_AHEAD = 32


def averaged_weights(weights: np.ndarray, scalars: np.ndarray) -> np.ndarray:
    """Return the mean of the weights over the averaged steps, or the last weights without averaged steps."""
    if scalars[AVERAGED] == 0:
        return scalars[SCALE] * weights[V]
    return (scalars[SIGMA] * weights[V] + weights[R]) / scalars[AVERAGED]


def rates(learning_rate: str, first: float, n: int, reg: float, eta0: float) -> np.ndarray:
    """Return η of the steps first, first + 1, …, float64 (n,)."""
    t = first + np.arange(n)
    if learning_rate == "pegasos":
        return 1.0 / (t * reg)
    return 10.0 / (10.0 + t) if learning_rate == "basic" else np.full(n, eta0)


def take_steps(
    rows: np.ndarray | tuple[np.ndarray, ...],
    order: np.ndarray | None, a: np.ndarray, b: np.ndarray, goal: np.ndarray, eta: np.ndarray,
    weights: np.ndarray, scalars: np.ndarray, options: np.ndarray, loss: str,
) -> None:  # fmt: skip
    """Step on each pair of positions (a, b), or on a if b is -1; change weights and scalars in place.

    `rows` is an array (n, p), or the three arrays of a CSR matrix with sorted columns; `order` has the row at each
    position, None if positions are rows. a and b are int64 (k,), `goal` (k,) is u, or the target of w·z for the
    squared loss, `eta` (k,) are the rates. For single rows, the last weight is the intercept.
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
def _gain(loss, prediction, goal, eta):
    """Return the multiple of z that a step adds to the weights."""
    if loss == _SQUARED:
        return eta * (goal - prediction)
    margin = goal * prediction
    if loss == _HINGE:
        return eta * goal if margin < 1.0 else 0.0
    if margin > 0.0:
        e = np.exp(-margin)
        return eta * goal * e / (1.0 + e)
    return eta * goal / (1.0 + np.exp(margin))


@kernel
def _shrink(weights, scalars, factor):
    """Multiply the weights by a factor >= 0."""
    scalars[SCALE] *= factor
    s = scalars[SCALE]
    if s >= _LEAST_SCALE:
        return
    for j in range(weights.shape[1]):
        # Add what was averaged so far before the new, much smaller v replaces the old one.
        weights[R, j] += scalars[SIGMA] * weights[V, j]
        weights[V, j] *= s
    scalars[SIGMA] = 0.0
    scalars[SCALE] = 1.0


@kernel
def _dot(x, y):
    """Return Σ x_j y_j from eight running sums, which do not wait for one another."""
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
def _finish_step(v, scalars, options):
    """Project the weights to the ball, and update the running average."""
    if options[RADIUS] < np.inf:
        norm = scalars[SCALE] * np.sqrt(_dot(v, v))
        if norm > options[RADIUS]:
            scalars[SCALE] *= options[RADIUS] / norm
    if scalars[STEPS] >= options[AVERAGE_FROM]:
        scalars[SIGMA] += scalars[SCALE]
        scalars[AVERAGED] += 1.0


@kernel
def _differences(X, order, a, b, intercept, differences):
    """Write z of each draw to a row of `differences`."""
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
    """Take the steps of `take_steps` on dense rows."""
    differences = np.empty((_AHEAD, weights.shape[1]))
    v, r = weights[V], weights[R]
    for k in range(len(a)):
        if k % _AHEAD == 0:
            _differences(X, order, a[k : k + _AHEAD], b[k : k + _AHEAD], options[INTERCEPT], differences)
        z = differences[k % _AHEAD]
        scalars[STEPS] += 1.0
        gain = _gain(loss, scalars[SCALE] * _dot(z, v), goal[k], eta[k])
        _shrink(weights, scalars, 1.0 - eta[k] * options[REG])
        if gain != 0.0:
            step = gain / scalars[SCALE]
            moved = scalars[SIGMA] * step
            for j in range(len(z)):
                v[j] += step * z[j]
            if moved != 0.0:
                for j in range(len(z)):
                    r[j] -= moved * z[j]
        _finish_step(v, scalars, options)


@kernel
def _sparse_dot(data, indices, start, stop, v):
    total = 0.0
    for e in range(start, stop):
        total += data[e] * v[indices[e]]
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
    """Take the steps of `take_steps` on CSR rows with sorted column indices."""
    p = weights.shape[1] - 1
    v = weights[V]
    for k in range(len(a)):
        scalars[STEPS] += 1.0
        i, i_stop = starts[a[k]], starts[a[k] + 1]
        o, o_stop, bias = 0, 0, options[INTERCEPT]
        if b[k] >= 0:
            o, o_stop, bias = starts[b[k]], starts[b[k] + 1], 0.0
        along = _sparse_dot(data, indices, i, i_stop, v) - _sparse_dot(data, indices, o, o_stop, v) + bias * v[p]
        gain = _gain(loss, scalars[SCALE] * along, goal[k], eta[k])
        _shrink(weights, scalars, 1.0 - eta[k] * options[REG])
        if gain != 0.0:
            step = gain / scalars[SCALE]
            moved = scalars[SIGMA] * step
            _sparse_add(data, indices, i, i_stop, step, moved, weights)
            _sparse_add(data, indices, o, o_stop, -step, -moved, weights)
            v[p] += step * bias
            weights[R, p] -= moved * bias
        _finish_step(v, scalars, options)
