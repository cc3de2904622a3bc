"""Step-down max-T, Holm, their division of a level, and simultaneous intervals: every sign vector in a loop."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from scipy import stats


def root_mean_squares(differences, measures):
    """The scale (h,) of each hypothesis: the root of the mean, over its measure's hypotheses, of the mean square."""
    h = differences.shape[1]
    scale = np.empty(h)
    for j in range(h):
        same = [np.nanmean(differences[:, k] ** 2) for k in range(h) if measures[k] == measures[j]]
        scale[j] = math.sqrt(np.mean(same)) or 1.0
    return scale


def statistics_of_all_signs(differences, measures):
    """|T| (2^n, h); the first row has no changed sign. A topic that is NaN is left out of its hypothesis."""
    n, h = differences.shape
    scale = root_mean_squares(differences, measures)
    every = []
    for signs in product([1, -1], repeat=n):
        row = []
        for j in range(h):
            known = [sign * d for sign, d in zip(signs, differences[:, j]) if not math.isnan(d)]
            row.append(abs(np.mean(known)) / (scale[j] / math.sqrt(len(known))))
        every.append(row)
    return np.array(every)


def step_down(differences, measures):
    """Adjusted p (h,) from all 2^n sign vectors, for differences (n, h); 1 without a difference."""
    every = statistics_of_all_signs(differences, measures)
    observed = every[0]
    order = sorted(range(len(observed)), key=lambda j: -observed[j])
    p = np.empty(len(observed))
    largest = 0.0
    for place, j in enumerate(order):
        remaining = order[place:]
        count = sum(max(one[k] for k in remaining) >= observed[j] - 1e-9 for one in every)
        largest = max(largest, count / len(every))
        p[j] = largest
    return np.where(np.nan_to_num(differences).any(axis=0), p, 1.0)


def own_p(differences):
    """p (h,) of each hypothesis alone from all 2^n sign vectors."""
    every = statistics_of_all_signs(differences, list(range(differences.shape[1])))
    return (every >= every[0] - 1e-9).mean(axis=0)


def steady(differences):
    """Which hypotheses (h,) have no outliers, and no size that more than a quarter of the nonzero differences share."""
    found = []
    for column in differences.T:
        known = np.abs(column[~np.isnan(column)])
        fourth, second = np.sum(known**4) / len(known), np.sum(known**2) / len(known)
        sizes = known[known > 0]
        most = max((np.isclose(sizes, one, rtol=0, atol=1e-9 * known.max()).sum() for one in sizes), default=0)
        found.append(fourth <= 4 * second**2 + 1e-12 and most <= len(sizes) / 4)
    return np.array(found)


def alone(differences, measures):
    """Which hypotheses (h,) have a test of their own: steady, and an eighth of their measure's scale at most."""
    small = []
    for j, column in enumerate(differences.T):
        squares = [np.nanmean(differences[:, k] ** 2) for k in range(len(measures)) if measures[k] == measures[j]]
        small.append(np.nanmean(column**2) <= np.mean(squares) / 64)
    return steady(differences) & np.array(small)


def divided(differences, measures):
    """Adjusted p (h,): the smaller of 1.25 times that of max-T and 5 times that of Holm on the hypotheses' own p."""
    tested = np.flatnonzero(np.nan_to_num(differences).any(axis=0))
    own, joint = own_p(differences), step_down(differences, measures)
    p = np.ones(len(own))
    if len(tested) == 1:
        p[tested] = own[tested]
        return p
    own = np.where(alone(differences, measures), own, 1.0)
    largest = 0.0
    for place, j in enumerate(sorted(tested, key=lambda j: own[j])):
        largest = max(largest, own[j] * (len(tested) - place))
        p[j] = min(1.0, 1.25 * joint[j], 5.0 * largest)
    return p


def simultaneous(differences, measures, level=0.95):
    """Half widths (h,) of the single-step intervals of the means; NaN where all differences are equal."""
    alpha = 1.0 - level
    differences = differences[~np.isnan(differences).all(axis=1)]
    topics = (~np.isnan(differences)).sum(axis=0)
    tested = np.nan_to_num(differences).any(axis=0).sum()
    centred = differences - np.nanmean(differences, axis=0)
    scale = root_mean_squares(centred, measures)
    found = np.full(len(topics), np.nan)
    largest = np.sort(statistics_of_all_signs(centred, measures).max(axis=1))[::-1]
    # The smallest value that max-T does not reject at 0.8 alpha.
    kept = [t for t in largest if np.mean(largest >= t - 1e-9) >= 0.8 * alpha]
    few = 2.0 ** (1 - len(differences)) >= 0.8 * alpha
    for j, n in enumerate(topics):
        deviation = np.nanstd(differences[:, j], ddof=1) if n > 1 else 0.0
        if deviation < 1e-12:
            continue
        share = alpha if tested == 1 else 0.2 * alpha / tested
        widths = []
        if tested == 1 or alone(centred, measures)[j]:
            widths.append(stats.t.isf(share / 2, n - 1) * deviation / math.sqrt(n))
        if tested > 1 and not few:
            widths.append(math.sqrt(n / (n - 1)) * max(kept) * scale[j] / math.sqrt(n))
        found[j] = min(widths, default=np.nan)
    return found


def step_down_of_copies(values):
    """Adjusted p (h,) of values (h, n, 1 + R), from all (1 + R)^n choices of the copy that plays the original."""
    h, n, copies = values.shape

    def losses(choice):
        found = np.empty(h)
        for j in range(h):
            found[j] = np.mean(
                [values[j, i, c] - np.mean(np.delete(values[j, i], c)) for i, c in zip(range(n), choice)]
            )
        return found

    every = [losses(choice) for choice in product(range(copies), repeat=n)]
    scale = np.sqrt(np.mean(np.square(every), axis=0))
    observed = np.abs(every[0]) / scale
    order = sorted(range(h), key=lambda j: -observed[j])
    p = np.empty(h)
    largest = 0.0
    for place, j in enumerate(order):
        count = sum(max(abs(one[k]) / scale[k] for k in order[place:]) >= observed[j] - 1e-9 for one in every)
        largest = max(largest, count / len(every))
        p[j] = largest
    return p
