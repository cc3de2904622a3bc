"""netcal in a process of its own: it needs torch and an older NumPy, which a system Python may have.

Reads scores and classes from `.npy` files, fits each method a few times, and prints a JSON object of median CPU
seconds, with P(positive) written beside the input. Run by `bench_calibrators` with the interpreter that
TRUERANK_NETCAL_PYTHON names.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import numpy as np


def main(folder: str, rounds: int) -> None:
    from netcal.binning import HistogramBinning, IsotonicRegression
    from netcal.scaling import BetaCalibration, LogisticCalibration, TemperatureScaling

    scores, y, test = (np.load(f"{folder}/{name}.npy") for name in ("scores", "y", "test"))
    squash = 1 / (1 + np.exp(-np.clip(scores, -30, 30)))
    squash_test = 1 / (1 + np.exp(-np.clip(test, -30, 30)))
    seconds = {}
    for make in (HistogramBinning, IsotonicRegression, LogisticCalibration, BetaCalibration, TemperatureScaling):
        taken = []
        for _ in range(rounds):
            start = time.process_time()
            fitted = make().fit(squash, y)
            taken.append(time.process_time() - start)
        start = time.process_time()
        p = fitted.transform(squash_test)
        seconds[make.__name__] = [statistics.median(taken), time.process_time() - start]
        np.save(f"{folder}/{make.__name__}.npy", np.asarray(p, dtype=np.float64).ravel())
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
