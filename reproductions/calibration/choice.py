"""Is what `choose_calibrator` chose as good as the best calibrator of today's libraries? Paired tests."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from reproductions.calibration.topic_scores import TopicScores, pooled
from reproductions.protocol import letor_folds, load_collection
from truerank import choose_calibrator
from truerank.calibration.classifier import make_calibrator
from truerank.calibration.diagnostics import Losses, losses
from truerank.calibration.pool import CalibratorChoice
from truerank.core.printing import note, progress
from truerank.significance import paired_t
from truerank.significance.corrections import holm

PEERS = ("platt", "isotonic", "beta", "temperature")
Outcome = tuple[CalibratorChoice, Losses, dict[str, Losses]]
SIZES = (("100 and more", 100, 10**9), ("20 to 99", 20, 100), ("5 to 19", 5, 20), ("2 to 4", 2, 5))


def total_and_p(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Sum of a - b and the two-sided p-value of the paired t-test."""
    return float(np.sum(np.asarray(a, dtype=float) - np.asarray(b, dtype=float))), paired_t(a, b).p


def against_peers(chosen: Losses, peers: dict[str, Losses], groups: np.ndarray | None = None) -> dict[str, Any]:
    """Sums of the chosen method and of the best peer on each loss, with the paired test.

    The test is over decisions, or over sums of `groups` (numbers from 0) where decisions depend on each other: the
    documents of a query. `p_by_decision` is the former in any case.
    """
    result: dict[str, Any] = {"decisions": len(chosen.error)}
    for loss in ("log_loss", "squared_error"):
        sums = {name: float(getattr(peer, loss).sum()) for name, peer in peers.items()}
        best = min(sums, key=lambda name: sums[name])
        ours, theirs = getattr(chosen, loss), getattr(peers[best], loss)
        difference, p_by_decision = total_and_p(ours, theirs)
        p = p_by_decision
        if groups is not None:
            _, p = total_and_p(np.bincount(groups, weights=ours), np.bincount(groups, weights=theirs))
        result[loss] = {
            "chosen": float(getattr(chosen, loss).sum()), "peers": sums, "best_peer": best, "difference": difference,
            "p": p, "p_by_decision": p_by_decision, "not_worse": bool(difference <= 0 or p >= 0.05),
        }  # fmt: skip
    return result


def choose_and_test(
    train: np.ndarray, y: np.ndarray, test: np.ndarray, y_test: np.ndarray, *, groups: Any = None
) -> Outcome:
    """Choose on the training scores alone; the choice, and losses on the test scores of it and of each peer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few positives, separable scores: counted in the tables
        choice = choose_calibrator(train, y, groups=groups)
        peers = {name: losses(y_test, make_calibrator(name).fit(train, y).log_odds(test)) for name in PEERS}
    return choice, losses(y_test, choice.calibrator.log_odds(test)), peers


def _row(name: str, outcomes: Sequence[Outcome], groups: np.ndarray | None = None) -> dict[str, Any]:
    """A row of the tables: the comparison with the peers over several fits, and what was chosen."""
    choices, chosen, peers = zip(*outcomes)
    compared = against_peers(pooled(chosen), {peer: pooled(one[peer] for one in peers) for peer in PEERS}, groups)
    return {"set": name, "topics": len(outcomes), **_chosen(choices), **compared}


def _chosen(choices: Sequence[CalibratorChoice]) -> dict[str, Any]:
    """How often what was chosen, and the mean weight of each method over all choices."""
    weights: dict[str, float] = {}
    for choice in choices:
        for method, weight in choice.weights.items():
            weights[method] = weights.get(method, 0.0) + weight / len(choices)
    ordered = dict(sorted(weights.items(), key=lambda item: -item[1]))
    return {"chosen": dict(Counter(choice.method for choice in choices)), "mean_weights": ordered}


def correct(families: Iterable[Sequence[dict[str, Any]]]) -> None:
    """Add to each comparison "p_holm": its p-value corrected by Holm's method over all comparisons of the families.

    Only comparisons that the choice loses enter with their p; where it wins it is 1, so that this asks whether the
    choice is worse anywhere.
    """
    comparisons = [row[loss] for rows in families for row in rows for loss in ("log_loss", "squared_error")]
    p = [c["p"] if c["difference"] > 0 else 1.0 for c in comparisons]
    for comparison, corrected in zip(comparisons, holm(p)):
        comparison["p_holm"] = float(corrected)


def reuters_by_size(scores: Sequence[TopicScores]) -> list[dict[str, Any]]:
    """The comparison over all topics, and by their number of training documents."""
    outcomes = [choose_and_test(t.train, t.in_train, t.test, t.in_test) for t in progress(scores, "topics")]
    sizes = [int(t.in_train.sum()) for t in scores]
    found = {
        name: [outcome for outcome, size in zip(outcomes, sizes) if low <= size < high]
        for name, low, high in (("all", 0, 10**9), *SIZES)
    }
    return [_row(name, some) for name, some in found.items() if some]


def bundled_sets(n_splits: int = 5) -> list[dict[str, Any]]:
    """Two sets that ship with scikit-learn, two classifiers each; half trains and calibrates, half tests, in turn."""
    from sklearn.datasets import load_breast_cancer, load_digits
    from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    from truerank.calibration.classifier import classifier_scores

    cancer, digits = load_breast_cancer(return_X_y=True), load_digits(return_X_y=True)
    problems = {
        "breast cancer": [(cancer[0], cancer[1])],
        "digits, one against the rest": [(digits[0], (digits[1] == d).astype(int)) for d in range(10)],
    }
    makers: dict[str, Any] = {
        "Gaussian naive Bayes": lambda: GaussianNB(var_smoothing=1e-3),
        "linear SVM": lambda: make_pipeline(StandardScaler(), LinearSVC(C=0.01, random_state=0, max_iter=100_000)),
    }
    rows = []
    for name, tasks in problems.items():
        for classifier, make in makers.items():
            outcomes = []
            for X, y in tasks:
                split = StratifiedShuffleSplit(n_splits, test_size=0.5, random_state=0)
                for train, test in split.split(X, y):
                    scores = np.empty(len(train))
                    for a, b in StratifiedKFold(5).split(X[train], y[train]):
                        scores[b] = classifier_scores(make().fit(X[train[a]], y[train[a]]), X[train[b]])
                    fitted = make().fit(X[train], y[train])
                    outcomes.append(choose_and_test(scores, y[train], classifier_scores(fitted, X[test]), y[test]))
            rows.append(_row(f"{name}, {classifier}", outcomes))
    return rows


def mq2008_rankers(root: str, names: Sequence[str], n_folds: int = 5) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rankers on MQ2008: calibrated on cross-fitted training scores of each fold, tested on the fold's test queries.

    Returns rows of the comparison, and for the first ranker the expected and observed relevant documents in the top 5.
    """
    from sklearn.base import clone

    from truerank import CalibratedRanker
    from truerank.calibration.decisions import expected_relevant
    from truerank.calibration.ranker import cross_fitted_scores
    from truerank.models.registry import ranker_class

    collection = load_collection(root, "mq2008")
    folds = letor_folds(collection)[:n_folds]
    rows, top_five = [], {}
    for name in names:
        outcomes = []
        queries: list[np.ndarray] = []
        expected, observed, p_all, y_all = [], [], [], []
        for fold in folds:
            train, test = fold.train, fold.test
            in_train, in_test = np.asarray(train.y) >= 1, np.asarray(test.y) >= 1
            ranker = ranker_class(name)()
            scores = cross_fitted_scores(ranker, train)
            fitted = clone(ranker).fit(train)
            outcomes.append(
                choose_and_test(scores, in_train, np.asarray(fitted.predict(test)), in_test, groups=train.query_index)
            )
            queries.append(test.query_index + (queries[-1][-1] + 1 if queries else 0))
            if name == names[0]:
                calibrated = CalibratedRanker(clone(ranker), outcomes[-1][0].method, query_statistics=True).fit(train)
                p = calibrated.predict_proba(test)
                expected.append(calibrated.expected_relevant(test, 5))
                relevant = in_test.astype(float)
                observed.append(expected_relevant(relevant, 5, qid=test.query_index, scores=calibrated.predict(test)))
                p_all.append(p[:, 1])
                y_all.append(in_test)
        rows.append(_row(f"MQ2008, {name}", outcomes, np.concatenate(queries)))
        note(f"MQ2008, {name}: done")
        if name == names[0]:
            top_five = _deciles(name, np.concatenate(expected), np.concatenate(observed))
            top_five["probabilities"], top_five["relevant"] = np.concatenate(p_all), np.concatenate(y_all)
    return rows, top_five


def _deciles(name: str, expected: np.ndarray, observed: np.ndarray) -> dict[str, Any]:
    """Mean expected and observed relevant documents in the top 5, by decile of the queries' expected number."""
    order = np.argsort(expected, kind="stable")
    rows = []
    for number, part in enumerate(np.array_split(order, 10), start=1):
        spread = float(observed[part].std(ddof=1)) / math.sqrt(len(part)) if len(part) > 1 else math.nan
        rows.append({
            "decile": number, "queries": len(part), "expected": float(expected[part].mean()),
            "observed": float(observed[part].mean()), "standard_error": spread,
        })  # fmt: skip
    return {"ranker": name, "deciles": rows, "expected": float(expected.mean()), "observed": float(observed.mean())}
