"""Bounds over the unjudged documents contain the difference that all judgements give."""

from __future__ import annotations

from truerank.io.trec import as_qrels, as_run, judge_run
from truerank.measures import parse_measure
from truerank.measures.ranking import Ranking
from truerank.significance.unjudged import difference_bounds
from validation.harness import Row, rate, streams

PROMISE = "Bounds of DCG, P and RBP contain the difference of the complete judgements when some are deleted at random."
MEASURES = ("P@5", "DCG@10", "RBP(.8)")
DELETED = (0.2, 0.5, 0.8)


def run(replications: int, seed: int) -> list[Row]:
    """Six topics of twelve documents, two runs; each judgement is deleted with the given probability."""
    rows = []
    for name in MEASURES:
        measure = parse_measure(name, "trec")
        for share in DELETED:
            inside = []
            for rng in streams(seed, replications):
                documents = [f"d{i}" for i in range(12)]
                qrels = {str(t): dict(zip(documents, rng.integers(0, 3, 12).tolist())) for t in range(6)}
                for own in qrels.values():
                    own["always"] = 2
                kept = {
                    t: {d: g for d, g in own.items() if d == "always" or rng.random() >= share}
                    for t, own in qrels.items()
                }
                runs = [as_run({t: dict(zip(documents, rng.random(12).tolist())) for t in qrels}) for _ in "ab"]
                truth = [measure.per_query(*judge_run(as_qrels(qrels), one)).mean() for one in runs]
                ends = difference_bounds(measure, *(Ranking(*judge_run(as_qrels(kept), one)) for one in runs))
                assert ends is not None
                difference = float(truth[0] - truth[1])
                inside.append(ends[0].mean() - 1e-12 <= difference <= ends[1].mean() + 1e-12)
            rows.append(
                rate(f"{share:.0%} of the judgements deleted, {name}", "bounds contain the truth", inside, low=1.0)
            )
    return rows
