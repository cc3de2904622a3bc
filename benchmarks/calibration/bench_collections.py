"""Default calibration on all collections at hand: beside its members, raw scores, and scikit-learn's.

    TRUERANK_DATA=… BENCH_RESULTS=results.jsonl BENCH_COLLECTIONS=wine,Reuters python -m benchmarks bench_collections

A line a collection: mean log loss in nats on test rows of the default (the pool), of the member that cross-validation
on the training rows favours (what one would take who takes one), of the member that turns out best on the test rows
(which nobody can know: the best of eight in hindsight is ahead by luck alone), of the raw scores where they are
probabilities, and of scikit-learn's CalibratedClassifierCV with each of its methods (its own ensemble of five
classifiers). Paired t-tests over rows, or over queries where these are documents of queries, of the default against the
best member and the raw scores, with Holm's correction over the collections. Reuters' training documents, digits, wine,
OHSUMED's parts S2 to S5 and text made in the same manner with another seed were development data.

BENCH_RESULTS keeps finished collections, a JSON line each, and a later run goes on; BENCH_COLLECTIONS takes those whose
names hold one of the words. Collections whose folders are not in TRUERANK_DATA are left out.
"""

from __future__ import annotations

import copy
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_softmax

from benchmarks.calibration.held_out_scores import COLLECTIONS, PEERS, HeldOutScores
from truerank.calibration.base import make_calibrator
from truerank.calibration.joint import SOFTMAX_METHODS, JointPool, OneVsRestCalibrator, SoftmaxCalibrator
from truerank.calibration.pool import MEMBERS, PooledCalibrator, held_out_losses
from truerank.significance import paired_t
from truerank.significance.corrections import holm

Losses = dict[str, np.ndarray]


def losses(given: HeldOutScores) -> tuple[np.ndarray, tuple[str, np.ndarray], Losses, np.ndarray | None]:
    """Losses of the test rows: of the default, its member of the greatest weight, all members, the raw scores."""
    rows = np.arange(len(given.y_test))
    fitted: dict[str, Any]
    if given.scores.ndim == 1:

        def of(calibrator: Any) -> np.ndarray:
            return held_out_losses(calibrator.log_odds(given.new), given.y_test == 1)

        pool: Any = PooledCalibrator().fit(given.scores, given.y, groups=given.groups)
        fitted = {name: make_calibrator(name).fit(given.scores, given.y) for name in MEMBERS}
        raw = held_out_losses(given.new, given.y_test == 1)
    else:

        def of(calibrator: Any) -> np.ndarray:
            return -calibrator.log_probabilities(given.new)[rows, given.y_test]

        pool = JointPool(from_log_probabilities=given.raw).fit(given.scores, given.y)
        joint = {name: SoftmaxCalibrator(**how) for name, how in SOFTMAX_METHODS.items()}
        joint["one against the rest"] = OneVsRestCalibrator("pool", from_log_probabilities=given.raw)
        fitted = {name: calibrator.fit(given.scores, given.y) for name, calibrator in joint.items()}
        raw = -log_softmax(given.new, axis=1)[rows, given.y_test]
    members = {name: of(calibrator) for name, calibrator in fitted.items()}
    return of(pool), (pool.methods_[0], of(_alone(pool))), members, raw if given.raw else None


def _alone(pool: Any) -> Any:
    """A fitted pool's member of the greatest weight."""
    one = copy.copy(pool)
    one.methods_, one.weights_ = pool.methods_[:1], np.ones(1)
    parts = "members_" if isinstance(pool, JointPool) else "calibrators_"
    setattr(one, parts, getattr(pool, parts)[:1])
    return one


def measured(name: str) -> dict[str, Any]:
    """One collection: means, and p of the default's being worse (1 where it is not)."""
    given = COLLECTIONS[name]()
    ours, (taken, favourite), members, raw = losses(given)
    best = min(members, key=lambda member: float(members[member].mean()))
    rows = np.arange(len(given.y_test))
    others = {"taken": favourite, "best": members[best]}
    others |= {} if raw is None else {"raw": raw}
    others |= {peer: -np.log(np.maximum(p[rows, given.y_test], 1e-15)) for peer, p in given.peers.items()}
    result: dict[str, Any] = {
        "name": name, "classes": max(2, given.scores.shape[-1] if given.scores.ndim > 1 else 0), "rows": len(rows),
        "queries": None if given.test_groups is None else len(np.unique(given.test_groups)),
        "default": float(ours.mean()), "taken member": taken, "best member": best,
    }  # fmt: skip
    for what, theirs in others.items():
        a, b = ours, theirs
        if given.test_groups is not None:
            a, b = np.bincount(given.test_groups, a), np.bincount(given.test_groups, b)
        test = paired_t(a, b)
        result[what] = {"loss": float(theirs.mean()), "p": float(test.p) if test.statistic > 0 else 1.0}
    return result


def run() -> None:
    words = [word.strip() for word in os.environ.get("BENCH_COLLECTIONS", "").split(",")]
    file = os.environ.get("BENCH_RESULTS", "")
    kept = Path(file).read_text(encoding="utf-8").splitlines() if file and Path(file).exists() else []
    results = {result["name"]: result for result in map(json.loads, kept)}
    head = ["collection", "default", "best member in hindsight", "p", "raw scores", "p", *PEERS]
    print(f"\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows of a class, separable scores
        for name in COLLECTIONS:
            if not any(word in name for word in words):
                continue
            if name not in results:
                results[name] = measured(name)
                if file:
                    with open(file, "a", encoding="utf-8") as stream:
                        stream.write(json.dumps(results[name]) + "\n")
            print(line(results[name]), flush=True)
    summary(list(results.values()))


def line(result: dict[str, Any]) -> str:
    """A row of the table."""
    size = f"{result['rows']:,} rows" if result["queries"] is None else f"{result['queries']} queries"
    best = result["best"]
    cells = [f"{result['name']} ({size})", f"{result['default']:.4f}"]
    cells += [f"{best['loss']:.4f} ({result['best member']})", _p(best["p"])]
    cells += [f"{result['raw']['loss']:.4f}", _p(result["raw"]["p"])] if "raw" in result else ["", ""]
    cells += [f"{result[peer]['loss']:.4f}" if peer in result else "" for peer in PEERS]
    return f"| {' | '.join(cells)} |"


def _p(p: float) -> str:
    return "" if p == 1.0 else "< .001" if p < 0.001 else f"{p:.3f}"[1:]


def summary(results: list[dict[str, Any]]) -> None:
    """On how many collections the default is worse, and by Holm's correction."""
    print(f"\n{len(results)} collections; the default worse at p < .05, and after Holm's correction:")
    for what, title in (
        ("best", "than the best member in hindsight"),
        ("taken", "than the member of the greatest weight"),
        ("raw", "than raw scores"),
        *((peer, f"than scikit-learn's {peer}") for peer in PEERS),
    ):
        there = [result for result in results if what in result]
        p = [result[what]["p"] for result in there]
        corrected = holm(p) if p else []
        worse = [f"{result['name']} (Holm {q:.3f})" for result, a, q in zip(there, p, corrected) if a < 0.05]
        print(f"* {title}: {len(worse)}, {sum(q < 0.05 for q in corrected)} of {len(p)}: {'; '.join(worse) or 'none'}")
