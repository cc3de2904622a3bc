"""netcal in a process of its own: it needs torch and an older NumPy, which a system Python may have.

Reads samples of scores and classes from `.npy` files, fits each method to each sample, and prints a JSON object of
median CPU seconds of a fit, with P(positive) of the test rows written beside the input. Run by `bench_calibrators` with
the interpreter that TRUERANK_NETCAL_PYTHON names.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import numpy as np


def squashed(scores: np.ndarray) -> np.ndarray:
    """netcal takes probabilities."""
    return 1 / (1 + np.exp(-np.clip(scores, -30, 30)))


def main(folder: str, samples: int, rounds: int) -> None:
    from netcal.binning import HistogramBinning, IsotonicRegression
    from netcal.scaling import BetaCalibration, LogisticCalibration, TemperatureScaling

    test = squashed(np.load(f"{folder}/test.npy"))
    seconds = {}
    for make in (HistogramBinning, IsotonicRegression, LogisticCalibration, BetaCalibration, TemperatureScaling):
        taken = []
        for sample in range(samples):
            scores, y = squashed(np.load(f"{folder}/scores-{sample}.npy")), np.load(f"{folder}/y-{sample}.npy")
            for _ in range(rounds):
                start = time.process_time()
                fitted = make().fit(scores, y)
                taken.append(time.process_time() - start)
            p = np.asarray(fitted.transform(test), dtype=np.float64).ravel()
            np.save(f"{folder}/{make.__name__}-{sample}.npy", p)
        seconds[make.__name__] = statistics.median(taken)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
