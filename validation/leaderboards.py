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
_JUDGES = 6  # every sixth


def run(replications: int, seed: int) -> list[Row]:
    """Every sixth judge, nDCG@10."""
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
        others = [k for k, name in enumerate(names) if name != judge]
        first, second, n = human[:, others], values[:, others], len(human)
        truth = correlations(first.mean(axis=0)[None], second.mean(axis=0)[None])[:, 0]
        covered = []
        for rng in streams(seed + number, replications):
            topics = rng.integers(0, n, n)
            draws = rng.multinomial(n, np.full(n, 1 / n), size=_RESAMPLES) / n
            found = _agreement(first[topics], second[topics], draws)
            covered.append([one.low <= value + 1e-12 and value <= one.high + 1e-12 for one, value in zip(found, truth)])
        setting = f"LLMJudge, {judge}, {len(others)} systems, {n} topics"
        for kind, events, low in zip(("tau", "tau_AP", "RBO"), np.array(covered).T, (0.93, None, None)):
            rows.append(rate(setting, f"interval of {kind} covers", events, low=low))
    return rows
