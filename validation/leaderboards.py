"""Coverage of the intervals of tau, tau_AP and RBO between human and model judgements.

Every draw takes the topics of LLMJudge with replacement. The true value is that of all its topics. The systems are the
rankings by the other judges' labels.
"""

from __future__ import annotations

import numpy as np

from truerank.io.trec import as_qrels
from truerank.judging.leaderboard import _agreement, _values, correlations, resampled
from truerank.measures.names import parse_measures
from validation.harness import FEWEST, Row, average, collections, rate, streams
from validation.judging import llmjudge

PROMISE = "The 95 % intervals of tau between the orders by human and model judgements cover its true value."
REPLICATIONS = 5_300
_RESAMPLES = 200
_SYSTEMS = {6: 1, 12: None, 22: 3, 4: None}  # at random (22 are all): every judge or every third has all replications
_PART = 20  # the part of the replications that the others have, which are observed


def run(replications: int, seed: int) -> list[Row]:
    """Every judge, nDCG@10."""
    folder = collections()
    if folder is None:
        return [rate("no data", "tau is covered", [1.0])]
    data = llmjudge(folder / "llmjudge", 23 if replications >= FEWEST else 8)
    (measure,) = parse_measures("nDCG@10", "trec").values()
    names, rows = list(data.runs), []
    values = [
        _values(as_qrels(own), data.runs, measure(missing_topics="zero"), None)
        for own in (data.human, *(data.labels[name] for name in names))
    ]
    for systems, step in _SYSTEMS.items():
        for number, judge in enumerate(sorted(range(len(names)), key=lambda own: own % 3 > 0)):
            others = [own for own in range(len(names)) if own != judge]
            chosen = np.sort(np.random.default_rng(seed + number).permutation(others)[:systems])
            draws = replications if step and judge % step == 0 else max(replications // _PART, 2)
            rows += _coverage(names[judge], values[0][:, chosen], values[judge + 1][:, chosen], draws, seed + number)
    return rows


def _coverage(judge: str, human: np.ndarray, values: np.ndarray, replications: int, seed: int) -> list[Row]:
    n, k = human.shape
    truth = correlations(human.mean(axis=0)[None], values.mean(axis=0)[None])[:, 0]
    covered, widths = [], []
    for rng in streams(seed, replications):
        topics = rng.integers(0, n, n)
        found = _agreement(human[topics], values[topics], *resampled(n, k, _RESAMPLES, rng))
        covered.append([one.low <= value + 1e-12 and value <= one.high + 1e-12 for one, value in zip(found, truth)])
        widths.append(found[0].high - found[0].low)
    setting, events = f"LLMJudge, {judge}, {k} systems, {n} topics", np.array(covered).T
    rows = [
        rate(setting, f"interval of {kind} covers", own, low=low)
        for kind, own, low in zip(("tau", "tau_AP", "RBO"), events, (0.93, None, None))
    ]
    return [*rows, average(setting, "width of the interval of tau", widths[: max(len(widths), FEWEST) // _PART])]
