"""Error rates of the verdicts where each is just wrong, and their power.

The true difference is moved to the edge of what a verdict says: 0 for "better", -δ for "not worse by more than δ", -δ
and δ for "equivalent within δ". Each verdict is of one comparison.
"""

from __future__ import annotations

import numpy as np

from truerank.significance.intervals import Interval, Verdict, student_quantile, verdict
from truerank.significance.paired import paired_tests
from validation.harness import Row, centred_differences, mq2008, rate, trec9

PROMISE = "A verdict on one comparison is wrong in at most 5 % of samples."
_N = 50


def run(replications: int, seed: int) -> list[Row]:
    """Samples of 50 queries from made and real centred differences; δ is half a standard deviation."""
    rng = np.random.default_rng(seed)
    populations = {
        "normal": rng.normal(size=(100_000, 1)),
        "skewed, a third ties": centred_differences(
            np.where(rng.random((20_000, 10)) < 0.6, 0.0, rng.gamma(0.7, 0.3, (20_000, 10)))
        ),
    }
    for name, values in (("TREC-9, AP", trec9()), ("MQ2008, nDCG@10", mq2008())):
        if values is not None:
            populations[name] = centred_differences(values)
    rows = []
    for name, differences in populations.items():
        rows += _of(f"{name}, n = {_N}", differences - differences.mean(axis=0), replications, seed)
    return rows


def _of(setting: str, differences: np.ndarray, replications: int, seed: int) -> list[Row]:
    rng = np.random.default_rng(seed + 1)
    pairs = rng.integers(differences.shape[1], size=replications)
    margins = differences.std(axis=0)[pairs] / 2
    d = differences[rng.integers(0, len(differences), (_N, replications)), pairs]
    middle, below, above, other, other_below = (
        _verdicts(sample, margins) for sample in (d, d - margins, d + margins, -d, -d - margins)
    )  # the other direction of a pair has the other tail
    found = {
        "better": [one.better for one in middle],
        "not worse": [one.not_worse for one in other_below],
        "equivalent, truth -δ": [one.equivalent for one in below],
        "equivalent, truth δ": [one.equivalent for one in above],
        "power of better": [one.better for one in above],
        "power of not worse": [one.not_worse for one in other],
        "power of equivalent": [one.equivalent for one in middle],
        "undecided": [one.kinds == ("undecided",) for one in middle],
    }
    wrong = {
        "better": '"better" where the difference is 0',
        "not worse": '"not worse by more than δ" where it is worse by δ',
        "equivalent, truth -δ": '"equivalent within δ" where it is worse by δ',
        "equivalent, truth δ": '"equivalent within δ" where it is better by δ',
    }
    right = {
        "power of better": '"better" where it is better by δ (power)',
        "power of not worse": '"not worse by more than δ" where the difference is 0 (power)',
        "power of equivalent": '"equivalent within δ" where the difference is 0 (power)',
        "undecided": '"undecided" where the difference is 0',
    }
    rows = [rate(setting, text, found[key], high=0.05) for key, text in wrong.items()]
    usual = [_within_90(sample, margins) for sample in (d - margins, d)]
    rows.append(rate(setting, "the 90 % interval lies within ±δ (TOST) where it is worse by δ", usual[0]))
    rows += [rate(setting, text, found[key]) for key, text in right.items()]
    return [*rows, rate(setting, "the 90 % interval lies within ±δ (TOST) where the difference is 0 (power)", usual[1])]


def _within_90(d: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """Whether Student's 90 % interval of each sample (n, replications) lies within ±δ."""
    half = student_quantile(0.95, len(d) - 1) * d.std(axis=0, ddof=1) / np.sqrt(len(d))
    return np.abs(d.mean(axis=0)) + half < margins


def _verdicts(d: np.ndarray, margins: np.ndarray) -> list[Verdict]:
    """The verdicts of samples (n, replications): those of `verdict`, whose Student's intervals are made together."""
    tested = paired_tests("t", d)
    intervals = zip(tested.mean.tolist(), tested.low.tolist(), tested.high.tolist())
    found = [Verdict(Interval(*one), margin) for one, margin in zip(intervals, margins.tolist())]
    for column in range(3):
        assert found[column].kinds == verdict(d[:, column], margins[column]).kinds
    return found
