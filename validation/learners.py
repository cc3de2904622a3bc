"""How often two learners that are equally good are told apart by cross-validation."""

from __future__ import annotations

import numpy as np

from truerank.inspection.learners import compare_learners
from truerank.significance.paired import paired_t
from validation.harness import Row, rate, streams

PROMISE = (
    'Two equally good learners are found different by `cross_validate(...).compare(about="learners")` in at most 5 % '
    "of data sets."
)
DOCUMENTS = 10
SETTINGS = [(60, 20, 5), (60, 20, 10), (150, 100, 5)]  # queries, features of each learner, folds


def run(replications: int, seed: int) -> list[Row]:
    """Least-squares learners on exchangeable halves of the features; for power, one half against all features."""
    rows = []
    for queries, features, folds in SETTINGS:
        equal, topics, power = [], [], []
        for rng in streams(seed, replications):
            values = _values(rng, queries, features, folds)
            equal.append(_p(values["one half"], values["other half"]) < 0.05)
            power.append(_p(values["all"], values["one half"]) < 0.05)
            topics.append(paired_t(values["one half"].ravel(), values["other half"].ravel()).p < 0.05)
        setting = f"{queries} queries, {features} features for each learner, {folds} folds"
        rows.append(rate(setting, "equal learners, corrected resampled t-test: p < 0.05", equal, high=0.05))
        rows.append(rate(setting, "equal learners, paired t-test over topics: p < 0.05", topics))
        rows.append(rate(setting, "all features against half, corrected resampled t-test (power)", power))
    return rows


def _p(a: np.ndarray, b: np.ndarray) -> float:
    """p of two learners from values (folds, queries of a fold)."""
    folds = {"a": a.mean(axis=1).tolist(), "b": b.mean(axis=1).tolist()}
    means = {"a": float(a.mean()), "b": float(b.mean())}
    return compare_learners(folds, means, "AP", "trec", 1).pairs[0].p


def _values(rng: np.random.Generator, queries: int, features: int, folds: int) -> dict[str, np.ndarray]:
    """AP by learner (folds, queries of a fold) of least squares fitted to the other folds."""
    X = rng.standard_normal((folds, queries // folds, DOCUMENTS, 2 * features))
    latent = X.sum(axis=3) / np.sqrt(2 * features) + rng.standard_normal(X.shape[:3])
    relevant = latent.argsort(axis=2).argsort(axis=2) >= DOCUMENTS - 3
    y = relevant - 0.3
    rows, targets = X.reshape(folds, -1, 2 * features), y.reshape(folds, -1)
    grams, sums = rows.transpose(0, 2, 1) @ rows, np.einsum("krf,kr->kf", rows, targets)
    grams, sums = grams.sum(axis=0) - grams, sums.sum(axis=0) - sums
    found = {}
    for name, of in (("one half", slice(features)), ("other half", slice(features, None)), ("all", slice(None))):
        weights = np.linalg.solve(grams[:, of, of], sums[:, of, None])[:, :, 0]
        scores = np.einsum("kqdf,kf->kqd", X[..., of], weights)
        ranked = np.take_along_axis(relevant, np.argsort(-scores, axis=2), axis=2)
        precision = ranked.cumsum(axis=2) / np.arange(1, DOCUMENTS + 1)
        found[name] = (precision * ranked).sum(axis=2) / ranked.sum(axis=2)
    return found
