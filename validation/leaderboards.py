"""Coverage of the intervals of tau, tau_AP and RBO between human and model judgements.

Every draw takes the topics of LLMJudge with replacement. The true value is that of all its topics. The systems are the
rankings by the other judges' labels.
"""

from __future__ import annotations

import numpy as np

from truerank.io.trec import as_qrels
from truerank.judging.leaderboard import _agreement, _values, correlations
from truerank.measures.names import parse_measures
from validation.harness import FEWEST, Row, collections, rate, streams
from validation.judging import llmjudge

PROMISE = "The 95 % intervals of tau between the orders by human and model judgements cover its true value."
REPLICATIONS = 5_300
_RESAMPLES = 200
_JUDGES = 3  # every third
_SYSTEMS = (22, 6)  # all, and six at random


def run(replications: int, seed: int) -> list[Row]:
    """Every third judge, nDCG@10."""
    folder = collections()
    if folder is None:
        return [rate("no data", "tau is covered", [1.0])]
    data = llmjudge(folder / "llmjudge", 23 if replications >= FEWEST else 8)
    (measure,) = parse_measures("nDCG@10", "trec").values()
    names, rows = list(data.runs), []
    human, *labelled = (
        _values(as_qrels(own), data.runs, measure(missing_topics="zero"), None)
        for own in (data.human, *(data.labels[name] for name in names[::_JUDGES]))
    )
    for number, (judge, values) in enumerate(zip(names[::_JUDGES], labelled)):
        others = np.random.default_rng(seed + number).permutation([k for k, name in enumerate(names) if name != judge])
        for systems in _SYSTEMS:
            chosen = np.sort(others[:systems])
            rows += _coverage(judge, human[:, chosen], values[:, chosen], replications, seed + number)
    return rows


def _coverage(judge: str, human: np.ndarray, values: np.ndarray, replications: int, seed: int) -> list[Row]:
    n, k = human.shape
    truth = correlations(human.mean(axis=0)[None], values.mean(axis=0)[None])[:, 0]
    covered = []
    for rng in streams(seed, replications):
        topics = rng.integers(0, n, n)
        draws = rng.multinomial(n, np.full(n, 1 / n), size=_RESAMPLES) / n
        found = _agreement(human[topics], values[topics], draws)
        covered.append([one.low <= value + 1e-12 and value <= one.high + 1e-12 for one, value in zip(found, truth)])
    setting, events = f"LLMJudge, {judge}, {k} systems, {n} topics", np.array(covered).T
    return [
        rate(setting, f"interval of {kind} covers", own, low=low)
        for kind, own, low in zip(("tau", "tau_AP", "RBO"), events, (0.93, None, None))
    ]
