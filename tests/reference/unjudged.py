"""Bounds of a difference by trying every grade of every unjudged document."""

from __future__ import annotations

from itertools import product

import numpy as np

from truerank.io.trec import as_qrels, as_run, judge_run


def bounds(measure, qrels: dict, a: dict, b: dict, grades) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest difference of each topic of `qrels`."""
    low, high = [], []
    for topic, judged in qrels.items():
        documents = sorted((set(a[topic]) | set(b[topic])) - {d for d, grade in judged.items() if grade >= 0})
        values = []
        for given in product(grades, repeat=len(documents)):
            complete = as_qrels({topic: judged | dict(zip(documents, given))})
            one, other = (measure.per_query(*judge_run(complete, as_run({topic: run[topic]})))[0] for run in (a, b))
            values.append(one - other)
        low.append(min(values))
        high.append(max(values))
    return np.array(low), np.array(high)
