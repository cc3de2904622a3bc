"""Verdicts against a margin by their definition, with the one more query appended to the list of differences."""

from __future__ import annotations

import math
import statistics

from scipy import stats


def student(differences, level=0.05):
    """Student's interval of the mean; a point if all differences are equal."""
    n = len(differences)
    half = stats.t.ppf(1 - level / 2, n - 1) * statistics.stdev(differences) / math.sqrt(n)
    mean = statistics.fmean(differences)
    return mean - half, mean + half


def kinds(new, baseline, margin, level=0.05):
    """What holds of lists of values without NaN, of a measure that is not negative and where more is better."""
    d = [a - b for a, b in zip(new, baseline)]
    n, found = len(d), []
    loss = statistics.fmean(baseline)
    equal = max(d) == min(d)
    p = math.nan if equal and d[0] else 1.0 if equal else stats.ttest_1samp(d, 0.0).pvalue
    if p < level:
        found.append("better" if statistics.fmean(d) > 0 else "worse")
    if n > 1:
        lost, gained = student([*d, -loss], level), student([*d, loss], level)
        low, high = student(d, level)
        if low > -margin and lost[0] > -margin:
            found.append("not worse")
            if high < margin and lost[1] < margin and gained[0] > -margin and gained[1] < margin:
                found.append("equivalent")
    return tuple(found) or ("undecided",)
