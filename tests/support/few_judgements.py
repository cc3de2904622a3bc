"""Made runs, human grades and a judge who errs."""

from __future__ import annotations

import numpy as np


def made(topics=3, documents=8, runs=3, seed=0, highest=3):
    """Runs, human grades and a judge's labels over the same documents."""
    rng = np.random.default_rng(seed)
    names = [f"d{number}" for number in range(documents)]
    ranked = {
        f"run{r}": {str(t): dict(zip(names, rng.random(documents).round(2).tolist())) for t in range(topics)}
        for r in range(runs)
    }
    human = {str(t): dict(zip(names, rng.integers(0, highest + 1, documents).tolist())) for t in range(topics)}
    judge = {
        t: {d: int(np.clip(grade + rng.integers(-1, 3), 0, highest)) for d, grade in own.items()}
        for t, own in human.items()
    }
    return ranked, human, judge
