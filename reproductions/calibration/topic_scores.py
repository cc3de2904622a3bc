"""Scores of text classifiers on Reuters-21578, and the losses of calibrators fitted to them."""

from __future__ import annotations

import hashlib
import tarfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from reproductions import variations
from reproductions.calibration.reuters import ReutersDocument, modapte_split, read_reuters
from reproductions.protocol import published
from truerank import MutualInformationSelector, WordCounts
from truerank.calibration.base import make_calibrator
from truerank.calibration.classifier import classifier_scores
from truerank.calibration.diagnostics import Figures, Losses, losses, micro_sign_test
from truerank.core.files import atomic_write
from truerank.core.printing import note, progress
from truerank.text.analysers import TOPIC_WORD

PAPER_METHODS = ("gaussian", "asymmetric-gaussian", "laplace", "asymmetric-laplace", "logistic", "platt")
LOSSES = ("log_loss", "squared_error", "error")
SIGNIFICANT = 0.01
PAPER_NAMES = {
    "gaussian": "Gauss",
    "asymmetric-gaussian": "A. Gauss",
    "laplace": "Laplace",
    "asymmetric-laplace": "A. Laplace",
    "logistic": "LogReg",
    "platt": "LR+Noise",
}
PUBLISHED: dict[str, dict[str, list[float | None]]] = published("calibration")["tables"]
"""Table 1 of the paper, Reuters, by classifier and method."""


@dataclass(frozen=True)
class Corpus:
    """Word counts of the ModApte split and its topics.

    Attributes
    ----------
    train, test : CSR matrices (documents, words)
    topics : list of str
        With at least one training and one test document, by falling number of training documents.
    in_train, in_test : bool arrays (documents, topics)
    """

    train: Any
    test: Any
    topics: list[str]
    in_train: np.ndarray
    in_test: np.ndarray


@dataclass(frozen=True)
class TopicScores:
    """Scores of one classifier for one topic: cross-validated training scores, test scores, classes of both."""

    topic: str
    train: np.ndarray
    in_train: np.ndarray
    test: np.ndarray
    in_test: np.ndarray


def load_corpus(documents: tuple[list[ReutersDocument], list[ReutersDocument]], word: str = TOPIC_WORD) -> Corpus:
    """Count the words, which match the expression `word`, of the training and test documents."""
    train, test = documents
    texts, test_texts = ([d.text for d in part] for part in documents)
    words = WordCounts(word=word).fit(texts)
    counts, test_counts = words.transform(texts), words.transform(test_texts)
    frequency = Counter(topic for d in train for topic in set(d.topics))
    tested = {topic for d in test for topic in d.topics}
    topics = sorted((topic for topic in frequency if topic in tested), key=lambda topic: (-frequency[topic], topic))
    in_train = np.array([[topic in d.topics for topic in topics] for d in train])
    in_test = np.array([[topic in d.topics for topic in topics] for d in test])
    return Corpus(counts, test_counts, topics, in_train, in_test)


def topic_scores(
    corpus: Corpus, make: Callable[[], Any], n_topics: int, kept: Path | None = None, *, draw: int | None = None
) -> list[TopicScores]:
    """Five-fold scores of the training documents and scores of the refitted classifier on the test documents.

    Topics with a single training document are left out, because they cannot be cross-validated. The file `kept` stores
    the scores. It is read only if the same classifier, parameters, corpus, topics and draw wrote it.
    """
    made_of = _fingerprint(corpus, make(), n_topics, draw)
    if kept is not None and kept.is_file():
        with np.load(kept) as stored:
            if "made_of" in stored and str(stored["made_of"]) == made_of:
                return [
                    TopicScores(corpus.topics[k], s, corpus.in_train[:, k], t, corpus.in_test[:, k])
                    for k, s, t in zip(stored["numbers"], stored["train"], stored["test"])
                ]
    numbers = [k for k in range(min(n_topics, len(corpus.topics))) if corpus.in_train[:, k].sum() > 1]
    results = [_one_topic(corpus, make, k, draw) for k in progress(numbers, "topics")]
    if kept is not None:
        with atomic_write(kept, "wb") as stream:
            np.savez(
                stream, numbers=np.array(numbers), made_of=np.array(made_of),
                train=np.stack([r.train for r in results]), test=np.stack([r.test for r in results]),
            )  # fmt: skip
    return results


def _fingerprint(corpus: Corpus, classifier: Any, n_topics: int, draw: int | None) -> str:
    """A digest of everything the scores depend on: classifier and parameters, counts, topics, folds."""
    digest = hashlib.sha256()
    for matrix in (corpus.train, corpus.test):
        for part in (matrix.data, matrix.indices, matrix.indptr):
            digest.update(np.ascontiguousarray(part).tobytes())
    digest.update(np.packbits(corpus.in_train).tobytes())
    parts = [f"{name}={value!r}" for name, value in sorted(classifier.get_params().items())]
    digest.update(repr((corpus.topics, n_topics, draw, type(classifier).__name__, parts)).encode())
    return digest.hexdigest()


def _one_topic(corpus: Corpus, make: Callable[[], Any], k: int, draw: int | None) -> TopicScores:
    y = corpus.in_train[:, k].astype(np.int64)
    scores = np.empty(len(y))
    folds = StratifiedKFold(min(5, int(y.sum())), shuffle=draw is not None, random_state=draw)
    for train, test in folds.split(y, y):
        scores[test] = classifier_scores(make().fit(corpus.train[train], y[train]), corpus.train[test])
    test_scores = classifier_scores(make().fit(corpus.train, y), corpus.test)
    return TopicScores(corpus.topics[k], scores, y == 1, np.asarray(test_scores), corpus.in_test[:, k])


def trivial_scores(corpus: Corpus, n_topics: int, share: float) -> list[TopicScores]:
    """For each topic log(1 + count) of the word with the highest mutual information, times `share` (0 or 1)."""
    results = []
    for k in range(n_topics):
        chosen = MutualInformationSelector(1).fit(corpus.train, corpus.in_train[:, k].astype(int))
        train, test = (
            share * np.log1p(chosen.transform(part).toarray().ravel()) for part in (corpus.train, corpus.test)
        )
        results.append(TopicScores(corpus.topics[k], train, corpus.in_train[:, k], test, corpus.in_test[:, k]))
    return results


def calibrated_losses(scores: Sequence[TopicScores], method: Any) -> list[Losses]:
    """Test losses of each topic under a calibrator, or "uncalibrated" (the scores as log-odds)."""
    results = []
    for topic in scores:
        if method == "uncalibrated":
            log_odds = topic.test
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # separable topics use Platt's targets
                log_odds = make_calibrator(method).fit(topic.train, topic.in_train).log_odds(topic.test)
        one = losses(topic.in_test, log_odds)
        if variations.current.ties:
            one = replace(one, error=(np.asarray(log_odds) > 0) != topic.in_test)
        results.append(one)
    return results


def pooled(parts: Iterable[Losses]) -> Losses:
    """Concatenate the losses of several topics."""
    parts = list(parts)
    return Losses(
        np.concatenate([part.log_loss for part in parts]),
        np.concatenate([part.squared_error for part in parts]),
        np.concatenate([part.error for part in parts]),
    )


def figures_of(sums: Figures, *, decision_only: bool = False) -> dict[str, Any]:
    """The three figures as a JSON object; `decision_only`: scores are no log-odds, give errors alone."""
    return {
        "log_loss_nats": None if decision_only else sums.log_loss,
        "log_loss_bits": None if decision_only else sums.log_loss_bits,
        "squared_error": None if decision_only else sums.squared_error,
        "errors": sums.errors,
    }


def sign_tests(all_losses: dict[str, Losses], pairs: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """Micro sign tests of pairs of methods on the three losses."""
    rows = []
    for a, b in pairs:
        row: dict[str, Any] = {"a": a, "b": b}
        for loss in LOSSES:
            test = micro_sign_test(
                getattr(all_losses[a], loss).astype(float), getattr(all_losses[b], loss).astype(float)
            )
            row[loss] = {"wins": test.wins, "losses": test.losses, "p": test.p}
        rows.append(row)
    return rows


def read_documents(folder: str) -> tuple[list[ReutersDocument], list[ReutersDocument]]:
    """ModApte training and test documents of `folder`/reuters21578."""
    train, test = modapte_split(read_reuters(Path(folder) / "reuters21578"))
    order = variations.row_order(np.array([0, len(train), len(train) + len(test)]))
    both = [*train, *test]
    train, test = ([both[row] for row in part] for part in (order[: len(train)], order[len(train) :]))
    note(f"Reuters-21578, ModApte: {len(train)} training and {len(test)} test documents")
    return train, test


def read_newsgroups(folder: str) -> tuple[list[ReutersDocument], list[ReutersDocument]]:
    """Training and test messages of `folder`/newsgroups10, "bydate", each with its group as the one topic."""
    path = Path(folder, "newsgroups10", "newsgroups10-bydate.tar.xz")
    parts: dict[str, list[ReutersDocument]] = {"train": [], "test": []}
    with tarfile.open(path) as archive:
        for member in archive:
            if content := archive.extractfile(member):  # no folder
                split, group, number = Path(member.name).parts
                text = content.read().decode("latin-1")
                parts[split.rpartition("-")[2]].append(ReutersDocument(number, text, (group,), "", ""))
    return parts["train"], parts["test"]
