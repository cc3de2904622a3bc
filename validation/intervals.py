"""Coverage of 95 % intervals of mean differences, on differences that were centred.

Ten systems make 45 pairs. Student's interval is drawn for each pair at each size, queries with replacement: half of the
draws show which tenth of the pairs is covered worst, and the other half measures the coverage of these. The interval of
the randomisation test, which has 1,024 signs (all of them up to 10 queries) in place of 10,000, is drawn for these.
"""

from __future__ import annotations

import math

import numpy as np

from truerank.significance.comparison import compare_values
from truerank.significance.paired import OF_MEANS, TESTS, paired_tests
from validation.harness import Row, centred_differences, mq2008, never, rate, streams, trec9

PROMISE = "The 95 % interval of a mean difference covers the true one, and contains 0 exactly where p is at least 0.05."
_SIZES = (5, 10, 25, 50)
_SIGNS = 1_024
_REAL = ("TREC-9, AP", "MQ2008, nDCG@10")
_BARS = {10: 0.92, 25: 0.94, 50: 0.94}
_TENTH = 5  # of 45 pairs
_PRINTED = 2_000  # replications of `compare_values`, which are observed
REPLICATIONS = 5_300  # unless --replications asks for another number; of each pair


def run(replications: int, seed: int) -> list[Row]:
    """Coverage for each population, test and size; then contradictions between interval and p."""
    populations = {"skewed, a third ties": centred_differences(_made(seed))}
    for name, values in zip(_REAL, (trec9(), mq2008())):
        if values is not None:
            populations[name] = centred_differences(values)
    rows, wrong = [], []
    for name, differences in populations.items():
        for n in _SIZES if name in _REAL else (10, 25):
            found, contradicting = _coverage(name, differences, n, replications, seed)
            rows += found
            wrong.append(contradicting)
    contradicting = np.concatenate(wrong)
    setting = f"the {len(contradicting):,} draws above"
    rows.append(never(setting, "draws whose interval contradicts its p", contradicting, replications))
    return rows + _printed(populations, min(replications, _PRINTED), seed)


def _made(seed: int) -> np.ndarray:
    """Values (400 queries, 10 systems), skewed, many of them 0."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((400, 10)) < 0.6, 0.0, rng.gamma(0.7, 0.3, (400, 10)))


def _coverage(name: str, differences: np.ndarray, n: int, replications: int, seed: int) -> tuple[list[Row], np.ndarray]:
    rng = np.random.default_rng([seed, n])
    m, pairs = differences.shape
    rows, contradicting = [], []
    of_t: list[np.ndarray] = []  # by pair, which draws are covered
    for test in OF_MEANS[::-1]:  # Student's first
        worst = np.argsort([one[::2].mean() for one in of_t], kind="stable")[:_TENTH]
        covered, without = [], []
        for pair in range(pairs) if test == "t" else worst.tolist():
            drawn = differences[rng.integers(0, m, (n, replications)), pair]
            tested = paired_tests(test, drawn, n_resamples=_SIGNS, random_state=rng)
            there = ~np.isnan(tested.low)
            inside = (tested.low <= 0) & (tested.high >= 0)
            without.append(~there)
            covered.append(inside[there])
            contradicting.append(there & (inside != (tested.p >= 0.05)))
        setting, bar = f"{name}, {test}, n = {n}", _BARS.get(n)
        rows.append(rate(setting, "draws without an interval", np.concatenate(without)))
        if test == "t":
            of_t = covered
            chosen = np.argsort([one[::2].mean() for one in of_t], kind="stable")[:_TENTH]
            covered = [of_t[pair][1::2] for pair in chosen]
            rows.append(rate(setting, "coverage, mean of 45 pairs", np.concatenate(of_t)))
        if sum(map(len, covered)):
            text = f"coverage, worst tenth of {pairs} pairs" + (" by t" if test != "t" else "")
            rows.append(rate(setting, text, np.concatenate(covered), low=bar))
    return rows, np.concatenate(contradicting)


def _printed(populations: dict[str, np.ndarray], replications: int, seed: int) -> list[Row]:
    """Contradictions in what `compare_values` returns for two systems, by all four tests; 10,000 signs."""
    rows = []
    for test in TESTS:
        wrong, without = [], []
        middle = 0.5 if test == "sign" else 0.0
        for rng in streams(seed + 1, replications):
            differences = populations[str(rng.choice(list(populations)))]
            n = int(rng.integers(2, 51))
            drawn = differences[rng.integers(0, len(differences), n), rng.integers(differences.shape[1])]
            drawn = drawn + rng.normal(0.0, 2.0) * drawn.std() / math.sqrt(n)  # on both sides of the level
            pair = compare_values({"a": drawn, "b": np.zeros(n)}, baseline="b", test=test, random_state=rng).pairs[0]
            without.append(math.isnan(pair.low))
            wrong.append(not without[-1] and (pair.low <= middle <= pair.high) != (pair.p >= 0.05))
        setting = f"compare_values, 2 to 50 queries, {test}"
        rows.append(never(setting, "draws whose interval contradicts its p", wrong, replications))
        rows.append(rate(setting, "draws without an interval", without))
    return rows
