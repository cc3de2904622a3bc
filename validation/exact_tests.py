"""Tests on 4 to 12 queries with many ties and zeros: level, exactness, and the smallest p.

Differences are -2 to 2 quarters, symmetric around 0, so that the null hypothesis is true. The p-values are compared
with those of a count over all signs.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from truerank.significance.paired import TESTS, paired_t, paired_tests, randomisation, sign_test, wilcoxon
from validation.harness import Row, never, rate, streams

PROMISE = "Tests on few queries are exact with ties, reject at most 5 %, and never print a p below what n allows."
_SIZES = (4, 6, 8, 10, 12)
_TESTS = {"wilcoxon": wilcoxon, "sign": sign_test, "randomisation": randomisation}


def run(replications: int, seed: int) -> list[Row]:
    """Levels at each size; then all sizes together against the count over all signs."""
    rows = []
    apart: dict[str, list[bool]] = {name: [] for name in _TESTS}
    below: dict[str, list[bool]] = {name: [] for name in _TESTS}
    for n in _SIZES:
        signs = np.array(list(product([-1, 1], repeat=n)))
        p = {name: np.ones(replications) for name in (*_TESTS, "t")}
        for i, rng in enumerate(streams(seed + n, replications)):
            d = rng.choice([0.0, 0.25, 0.5], n, p=[0.3, 0.4, 0.3]) * rng.choice([-1.0, 1.0], n)
            zeros = np.zeros(n)
            least = 2.0 ** (1 - np.count_nonzero(d)) if d.any() else 1.0
            for name, test in _TESTS.items():
                p[name][i] = test(d, zeros).p
                apart[name].append(abs(p[name][i] - counted(name, d, signs)) > 1e-12)
                below[name].append(p[name][i] < min(1.0, least))
            p["t"][i] = np.nan_to_num(paired_t(d, zeros).p, nan=1.0)
        for name, found in p.items():
            bar = 0.05 if name in _TESTS else None
            rows.append(rate(f"n = {n}, ties and zeros, {name}", "p below 0.05", found < 0.05, high=bar))
    setting = f"n = {_SIZES[0]} to {_SIZES[-1]}, ties and zeros"
    for name in _TESTS:
        rows.append(never(f"{setting}, {name}", "p apart from a count over all signs", apart[name], replications))
        rows.append(never(f"{setting}, {name}", "p below 2^(1 - nonzero differences)", below[name], replications))
    setting = f"2 to {_SIZES[-1]} equal differences"
    flat = _shown_without_variance(replications, seed)
    rows.append(never(setting, "a p of t, or an interval of a mean", flat, replications))
    few = _too_few(replications, seed)
    rows.append(never("2 to 5 queries, tests by signs", "p below 0.05", few, replications))
    return rows


def counted(test: str, d: np.ndarray, signs: np.ndarray) -> float:
    """Two-sided p by a count over `signs` (2^n, n): the share at least as far from 0 as what was observed."""
    if test == "wilcoxon":  # Pratt: zeros are ranked, then dropped
        size = np.abs(d)
        d = np.sign(d) * np.array([(size < one).sum() + ((size == one).sum() + 1) / 2 for one in size])
    elif test == "sign":
        d = np.sign(d)
    return float((np.abs(signs @ np.abs(d)) >= abs(d.sum()) - 1e-9).mean())


def _shown_without_variance(replications: int, seed: int) -> np.ndarray:
    """Whether equal differences get a p from t, or any interval of the mean."""
    rng = np.random.default_rng(seed + 100)
    shown = []
    for n in range(2, _SIZES[-1] + 1):
        d = np.repeat(rng.uniform(0.05, 0.5, (1, replications)), n, axis=0)
        found = paired_tests("t", d), paired_tests("randomisation", d)
        interval = [~np.isnan(one.low) for one in found]
        shown.append(~np.isnan(found[0].p) | interval[0] | interval[1])
    return np.concatenate(shown)


def _too_few(replications: int, seed: int) -> np.ndarray:
    """With at most five queries the smallest two-sided p of a test by signs is 1/16; here all are won."""
    rng = np.random.default_rng(seed + 101)
    found = []
    for n in range(2, 6):
        d = np.abs(rng.normal(size=(n, replications))) + 0.1
        found += [paired_tests(test, d).p < 0.05 for test in TESTS if test != "t"]
    return np.concatenate(found)
