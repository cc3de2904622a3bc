"""Softmax calibration written out row by row, without whitening, for small cases."""

from __future__ import annotations

import math


def penalised_loss(x, index, weight, slope, intercept, matrix, ridge):
    """Objective of `SoftmaxCalibrator` on centred, scaled scores."""
    total = 0.0
    for row, k, w in zip(x, index, weight):
        z = [
            slope * row[c] + intercept[c] + sum(row[j] * matrix[j][c] for j in range(len(row))) for c in range(len(row))
        ]
        total += w * (math.log(sum(math.exp(v) for v in z)) - z[k])
    penalty = sum(b * b for b in intercept) + sum(u * u for line in matrix for u in line)
    return total + 0.5 * ridge * penalty
