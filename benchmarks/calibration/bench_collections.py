"""Default calibration on twenty collections: beside its members, raw scores, and scikit-learn's.

A line a collection: mean log loss in nats on test rows of the default (the pool), of the member that cross-validation
on the training rows favours (what one would take who takes one), of the member that turns out best on the test rows
(which nobody can know: the best of eight in hindsight is ahead by luck alone), of the raw scores where they are
probabilities, and of scikit-learn's CalibratedClassifierCV with each of its methods (its own ensemble of five
classifiers); paired t-tests over rows, or over queries where these are documents of queries, of the default against
these members and the raw scores, and Holm's correction over all. Reuters' training documents, digits, wine, OHSUMED's
grades and text made in the same manner with another seed were development data. The folder of collections is named by
TRUERANK_DATA; collections that are not there are left out, and said.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from truerank.calibration.classifier import class_scores, classifier_scores
from truerank.calibration.joint import SOFTMAX_METHODS, OneVsRestCalibrator, SoftmaxCalibrator
from truerank.calibration.joint_pool import JointPool
from truerank.calibration.names import make_calibrator
from truerank.calibration.pool import MEMBERS, PooledCalibrator, held_out_losses
from truerank.calibration.ranker import cross_fitted_scores
from truerank.papers.calibration.choice import paired_t
from truerank.significance.corrections import holm

SKLEARN = ("sigmoid", "isotonic", "temperature")
Rows = dict[str, np.ndarray]


def several_classes(name: str, X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray, make: Any) -> dict[str, Any]:
    """Losses of each test row for a classifier of several classes."""
    classes, index = np.unique(y, return_inverse=True)
    known = np.isin(y_test, classes)
    X_test, test = X_test[np.flatnonzero(known)], np.searchsorted(classes, y_test[known])
    scores = np.empty((len(y), len(classes)))
    for train, held in StratifiedKFold(5).split(scores, index):
        scores[held], log_p = class_scores(clone(make).fit(X[train], index[train]), X[held])
    new, _ = class_scores(clone(make).fit(X, index), X_test)
    rows = np.arange(len(test))

    def losses(calibrator: Any) -> np.ndarray:
        return -calibrator.fit(scores, index).log_probabilities(new)[rows, test]

    members: Rows = {form: losses(SoftmaxCalibrator(**how)) for form, how in SOFTMAX_METHODS.items()}
    members["one against the rest"] = losses(OneVsRestCalibrator("pool", from_log_probabilities=log_p))
    raw = -log_softmax(new, axis=1)[rows, test] if log_p else None
    peers: Rows = {}
    for method in SKLEARN:
        p = CalibratedClassifierCV(clone(make), method=method).fit(X, index).predict_proba(X_test)
        peers[method] = -np.log(np.maximum(p[rows, test], 1e-15))
    pool = JointPool(from_log_probabilities=log_p)
    ours = losses(pool)
    favourite = -alone(pool).log_probabilities(new)[rows, test]
    return {
        "name": name, "classes": len(classes), "ours": ours, "members": members, "raw": raw, "peers": peers,
        "favourite": (pool.methods_[0], favourite),
    }  # fmt: skip


def alone(pool: Any) -> Any:
    """A fitted pool's member of the greatest weight."""
    one = copy.copy(pool)
    one.methods_, one.weights_ = pool.methods_[:1], np.ones(1)
    if isinstance(pool, JointPool):
        one.members_ = pool.members_[:1]
    else:
        one.calibrators_ = pool.calibrators_[:1]
    return one


def two_classes(
    name: str, scores: np.ndarray, y: np.ndarray, new: np.ndarray, y_test: np.ndarray, groups: Any = None,
    test_groups: Any = None, *, log_odds: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Losses of each test row for scores of two classes."""
    members = {m: held_out_losses(make_calibrator(m).fit(scores, y).log_odds(new), y_test) for m in MEMBERS}
    raw = held_out_losses(new, y_test) if log_odds else None
    pool = PooledCalibrator().fit(scores, y, groups=groups)
    ours = held_out_losses(pool.log_odds(new), y_test)
    favourite = held_out_losses(alone(pool).log_odds(new), y_test)
    return {
        "name": name, "classes": 2, "ours": ours, "members": members, "raw": raw, "peers": {}, "groups": test_groups,
        "favourite": (pool.methods_[0], favourite),
    }  # fmt: skip


def reuters(root: Path) -> Iterator[dict[str, Any]]:
    """Documents of a single topic, by the ModApte split, and the largest topics each against the rest."""
    from truerank.papers.calibration.reuters import modapte_split, read_reuters

    parts = modapte_split(read_reuters(root / "reuters21578"))
    single = [[(d.text, d.topics[0]) for d in part if len(set(d.topics)) == 1] for part in parts]
    frequency = Counter(topic for _, topic in single[0])
    for least in (100, 20):
        kept = {topic for topic, n in frequency.items() if n >= least}
        (texts, labels), (new, truth) = (zip(*[pair for pair in part if pair[1] in kept]) for part in single)
        counts = CountVectorizer(min_df=3)
        X, X_test = counts.fit_transform(texts), counts.transform(new)
        svm = make_pipeline(TfidfTransformer(sublinear_tf=True), LinearSVC())
        for what, make in (("linear SVM", svm), ("naive Bayes", MultinomialNB())):
            name = f"Reuters, {len(kept)} topics, {what}"
            yield several_classes(name, X, np.array(labels), X_test, np.array(truth), make)


def made_up_text() -> Iterator[dict[str, Any]]:
    """Texts of twenty topics whose words come in bursts (Dirichlet-multinomial)."""
    rng = np.random.default_rng(1)
    base = rng.dirichlet(np.full(3000, 0.05))
    topics = np.array([rng.dirichlet(base * 300 + 1e-4) for _ in range(20)])

    def draw(n: int) -> tuple[Any, np.ndarray]:
        y = rng.integers(20, size=n)
        p = [rng.dirichlet((0.65 * base + 0.35 * topics[k]) * 60 + 1e-6) for k in y]
        return sparse.csr_matrix([rng.multinomial(int(rng.lognormal(4, 0.7)), row) for row in p], dtype=float), y

    (X, y), (X_test, y_test) = draw(2500), draw(2500)
    svm = make_pipeline(TfidfTransformer(sublinear_tf=True), LinearSVC())
    for what, make in (("linear SVM", svm), ("naive Bayes", MultinomialNB())):
        yield several_classes(f"made-up text, 20 topics, {what}", X, y, X_test, y_test, make)


def bundled() -> Iterator[dict[str, Any]]:
    """Sets that ship with scikit-learn, halves by a draw."""
    svm = make_pipeline(StandardScaler(), LinearSVC(C=0.01, random_state=0, max_iter=100_000))
    makers = {"linear SVM": svm, "Gaussian naive Bayes": GaussianNB(var_smoothing=1e-3)}
    for name, load in (("digits", load_digits), ("wine", load_wine), ("iris", load_iris)):
        X, y = load(return_X_y=True)
        order = np.random.default_rng(7).permutation(len(y))
        train, test = order[: len(y) // 2], order[len(y) // 2 :]
        for what, make in makers.items():
            yield several_classes(f"{name}, {what}", X[train], y[train], X[test], y[test], make)
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(7).permutation(len(y))
    train, test = order[: len(y) // 2], order[len(y) // 2 :]
    for what, make in makers.items():
        scores = np.empty(len(train))
        for a, b in StratifiedKFold(5).split(X[train], y[train]):
            scores[b] = classifier_scores(clone(make).fit(X[train[a]], y[train[a]]), X[train[b]])
        new = classifier_scores(clone(make).fit(X[train], y[train]), X[test])
        bayes = what != "linear SVM"
        yield two_classes(f"breast cancer, {what}", scores, y[train] == 1, new, y[test] == 1, log_odds=bayes)


def rankers(root: Path) -> Iterator[dict[str, Any]]:
    """P(relevant) from rankers' scores: cross-fitted by query on training parts, tested on other queries."""
    from truerank.data.ranking_data import RankingData
    from truerank.io.letor.read import read_letor
    from truerank.rankers.baselines import RidgeRanker
    from truerank.rankers.rank_svm import RankSVM

    mslr = read_letor(root / "mslr-web10k-sample/fold1.train.5k.txt.gz")
    halves = [mslr.take_queries(np.arange(k, mslr.n_queries, 2)) for k in (0, 1)]
    sets = {"MSLR": (halves[0], halves[1])}
    for name, folder in (("OHSUMED", "letor3-ohsumed/querylevelnorm"), ("MQ2008", "letor4-mq2008")):
        parts = [read_letor(next((root / folder).glob(f"S{k}.txt*"))) for k in range(1, 6)]
        sets[name] = RankingData.concatenate(parts[1:4]), parts[0]
    for name, (train, test) in sets.items():
        for what, ranker in (("ridge", RidgeRanker()), ("RankSVM", RankSVM())):
            fitted = clone(ranker).fit(train)
            scores = cross_fitted_scores(ranker, train, fitted=fitted)
            new = test.grouped(fitted.predict(test))
            yield two_classes(
                f"{name}, {what}", scores, train.y >= 1, new, test.y >= 1, train.query_index, test.query_index
            )


def collections() -> Iterator[dict[str, Any]]:
    root = Path(os.environ.get("TRUERANK_DATA", ""))
    there = bool(os.environ.get("TRUERANK_DATA")) and (root / "reuters21578").is_dir()
    yield from bundled()
    if there:
        yield from rankers(root)
    else:
        print("TRUERANK_DATA names no folder of collections: Reuters and the rankers' sets are left out")
    yield from made_up_text()
    if there:
        yield from reuters(root)


def run() -> None:
    p_favourite, p_member, p_raw, n = [], [], [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows of a class, separable scores
        for result in collections():
            n += 1
            sums = {name: float(loss.mean()) for name, loss in result["members"].items()}
            best = min(sums, key=lambda name: sums[name])
            groups = result.get("groups")

            def test(
                theirs: np.ndarray, ours: np.ndarray = result["ours"], groups: Any = groups
            ) -> tuple[float, float]:
                if groups is not None:
                    ours, theirs = np.bincount(groups, ours), np.bincount(groups, theirs)
                return paired_t(ours, theirs)

            difference, p = test(result["members"][best])
            p_member.append(p if difference > 0 else 1.0)
            line = f"{result['name']} ({result['classes']} classes, {len(result['ours'])} rows): "
            line += f"default {result['ours'].mean():.4f}"
            taken, loss = result["favourite"]
            difference, p_taken = test(loss)
            p_favourite.append(p_taken if difference > 0 else 1.0)
            line += f"; member of the greatest weight {taken} {loss.mean():.4f}, p {p_taken:.3f}"
            line += f"; best member in hindsight {best} {sums[best]:.4f}, p {p:.3f}"
            if result["raw"] is not None:
                difference, p = test(result["raw"])
                p_raw.append(p if difference > 0 else 1.0)
                line += f"; raw {result['raw'].mean():.4f}, p {p:.3f}"
            for method, loss in result["peers"].items():
                line += f"; scikit-learn {method} {loss.mean():.4f}, p {test(loss)[1]:.3f}"
            print(line, flush=True)
    print(f"{n} collections: worse than a member at p < .05, and after Holm's correction:")
    for what, found in (("of the greatest weight", p_favourite), ("that was best in hindsight", p_member)):
        print(f"than the one {what} on {sum(p < 0.05 for p in found)}, {sum(p < 0.05 for p in holm(found))};")
    print(f"below raw scores at p < .05 on {sum(p < 0.05 for p in p_raw)} of {len(p_raw)}")
