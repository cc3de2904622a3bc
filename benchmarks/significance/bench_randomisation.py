"""The randomisation test beside SciPy's general permutation test, same number of resamples."""

from __future__ import annotations

import numpy as np
from scipy import stats

from benchmarks.harness import compare
from truerank.significance import randomisation

RESAMPLES = 10_000


def run() -> None:
    rng = np.random.default_rng(0)
    for queries in (50, 1_000, 10_000):
        a, b = rng.random(queries), rng.random(queries) + 0.01
        difference = a - b

        def permuted(difference: np.ndarray = difference) -> float:
            result = stats.permutation_test(
                (difference,),
                lambda x, axis: np.mean(x, axis=axis),
                permutation_type="samples",
                vectorized=True,
                n_resamples=RESAMPLES,
                batch=max(1, 4_000_000 // len(difference)),
                rng=0,
            )
            return float(result.pvalue)

        timings = compare(
            f"{RESAMPLES} resamples of {queries} paired values",
            {
                "truerank.randomisation": lambda a=a, b=b: randomisation(a, b, n_resamples=RESAMPLES).p,
                "scipy.stats.permutation_test": permuted,
            },
            rounds=3,
        )
        ours, theirs = timings["truerank.randomisation"].result, timings["scipy.stats.permutation_test"].result
        print(f"\np: {ours:.4f} and {theirs:.4f}")


if __name__ == "__main__":
    run()
