"""One cheap slice of each experiment: a fold or a trial, whose digest tells whether recorded figures are of this code.

`record` stores the digest of the slice. A test runs the slice again. If its digest differs, the experiment is recorded
anew, or the digest is removed from the result, whose pages then say which version it was recorded at.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from reproductions import protocol


def digest(name: str, root: str | Path) -> str:
    """The digest of an experiment's slice, with numbers to eight digits; `root` is the folder of the collections."""
    values = np.asarray(SLICES[name](Path(root)), dtype=np.float64).ravel()
    text = json.dumps([f"{value:.8g}" for value in values.tolist()])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _adarank(root: Path) -> Any:
    from reproductions.adarank.trials import _adarank, _measure, four_trials

    fold = four_trials(protocol.load_collection(root, "ohsumed").data, 0)[0][0]
    ranker = _adarank("paper", "AP(rel=2)").fit(fold.train)
    return _measure("AP(rel=2)").per_query(fold.test.judgements(), protocol.grouped_scores(ranker, fold.test))


def _letor(root: Path) -> Any:
    from truerank import RankSVM

    fold = protocol.letor_folds(protocol.load_collection(root, "ohsumed"))[0]
    return RankSVM(C=1e-4).fit(fold.train).predict(fold.test)


def _descent(root: Path) -> Any:
    from reproductions.descent import load_rows
    from truerank import PairwiseDescent

    X, y = load_rows()[:2]
    return PairwiseDescent(max_iter=10_000, random_state=0).fit(X, y).coef_


def _calibration(root: Path) -> Any:
    from reproductions.calibration import topic_scores as scored
    from reproductions.calibration.experiment import PANELS

    corpus = scored.load_corpus(scored.read_documents(str(root)))
    topic = scored._one_topic(corpus, PANELS["naive Bayes"][1], 9, 0)
    losses = scored.pooled(scored.calibrated_losses([topic], "asymmetric-laplace"))
    return list(scored.figures_of(losses.sums()).values())


def _oblivious(root: Path) -> Any:
    from reproductions.oblivious import GRID, fit, test_figures

    fold = protocol.letor_folds(protocol.load_collection(root, "mq2008"))[0]
    ranker = fit(GRID["fuzzy"][0] | {"n_estimators": 10}, fold, 0, None)
    return list(test_figures(protocol.grouped_scores(ranker, fold.test), fold).values())


def _svm_map(root: Path) -> Any:
    from reproductions.svm_map import Trials, load_task, one_trial, run_files

    with tempfile.TemporaryDirectory() as folder:
        place, own = root / "trec9-web-runs", Path(folder, "trec9-web-runs")
        (own / "runs").mkdir(parents=True)
        for path in [*run_files(place / "runs")[2:6], *place.glob("qrels*")]:
            (own / path.relative_to(place)).symlink_to(path.resolve())
        words = argparse.Namespace(data=folder, min_documents=1, stand_in=False, quick=False, seed=0, jobs=None)
        task = load_task(words)[0]
    trials = Trials(task, None, 1, words)
    return one_trial(task, task.data.X, trials.mapped, trials.roles[0], ["svm-map"])["svm-map"]["AP"]


def _stand_ins(root: Path) -> Any:
    from reproductions.adarank.trials import _adarank, four_trials
    from reproductions.stand_ins import TextCollection, features_of

    with tempfile.TemporaryDirectory() as folder:
        fold = four_trials(features_of(TextCollection(str(root), "CACM", folder)), 0)[0][0]
    return protocol.grouped_scores(_adarank("paper", "AP(rel=2)").fit(fold.train), fold.test)


SLICES: dict[str, Callable[[Path], Any]] = {
    "adarank": _adarank,
    "letor": _letor,
    "descent": _descent,
    "calibration": _calibration,
    "oblivious": _oblivious,
    "svm-map": _svm_map,
    "stand-ins": _stand_ins,
}
