"""The calibration experiment on a tiny made-up Reuters, and its claims on the real one."""

from __future__ import annotations

import argparse

import numpy as np
import pytest
from reproductions.calibration.experiment import OTHERS, against_laplace, panel
from reproductions.calibration.pipelines import linear_svm, naive_bayes
from reproductions.calibration.reuters import modapte_split, parse_reuters, read_reuters
from reproductions.calibration.topic_scores import PAPER_METHODS, TopicScores, load_corpus, topic_scores
from scipy.stats import ttest_rel

from truerank.calibration.diagnostics import losses

ITEM = (
    '<REUTERS TOPICS="YES" LEWISSPLIT="{split}" CGISPLIT="X" OLDID="1" NEWID="{number}"><TOPICS>{topics}</TOPICS>'
    "<TEXT>&#2;<TITLE>{title}</TITLE><BODY>{body}&#3;</BODY></TEXT></REUTERS>\n"
)


@pytest.fixture(scope="module")
def documents():
    rng = np.random.default_rng(0)
    words = {"earn": ["profit", "share", "dividend"], "grain": ["wheat", "tonne", "crop"]}
    text = ""
    for number in range(160):
        topic = "earn" if number % 3 else "grain"
        body = " ".join([*rng.choice(words[topic], 4), *rng.choice(["said", "company", "year", "profit"], 6)])
        text += ITEM.format(split="TRAIN" if number < 110 else "TEST", number=number, topics=f"<D>{topic}</D>",
                            title="news", body=body)  # fmt: skip
    return modapte_split(parse_reuters(text))


def test_scores_are_kept_and_read_again(documents, tmp_path):
    corpus = load_corpus(documents)
    assert corpus.topics == ["earn", "grain"]
    assert corpus.train.shape[0] == 110
    first = topic_scores(corpus, naive_bayes, 2, tmp_path / "scores.npz")

    class Known:
        """Parameters of the classifier, without what would fit it."""

        def get_params(self):
            return naive_bayes().get_params()

    Known.__name__ = "Pipeline"
    again = topic_scores(corpus, Known, 2, tmp_path / "scores.npz")
    for a, b in zip(first, again):
        np.testing.assert_array_equal(a.train, b.train)
        np.testing.assert_array_equal(a.in_test, b.in_test)
    assert ((first[0].test > 0) == first[0].in_test).mean() > 0.9
    assert len(topic_scores(corpus, linear_svm, 1)) == 1
    # Another classifier, other parameters or other folds do not get these scores.
    for make, draw in ((linear_svm, None), (lambda: naive_bayes(n_words=3), None), (naive_bayes, 1)):
        other = topic_scores(corpus, make, 2, tmp_path / "scores.npz", draw=draw)
        fresh = topic_scores(corpus, make, 2, draw=draw)
        np.testing.assert_array_equal(other[0].train, fresh[0].train)
        assert not np.array_equal(other[0].train, first[0].train)


def test_a_panel_adds_up():
    rng = np.random.default_rng(1)
    scores = []
    for topic in ("a", "b"):
        y, y_test = rng.uniform(size=300) < 0.3, rng.uniform(size=200) < 0.3
        scores.append(TopicScores(topic, rng.laplace(size=300) + 2 * y, y, rng.laplace(size=200) + 2 * y_test, y_test))
    result = panel(scores, "naive Bayes")
    assert result["decisions"] == 400
    raw = losses(np.concatenate([s.in_test for s in scores]), np.concatenate([s.test for s in scores])).sums()
    assert result["ours"]["uncalibrated"]["errors"] == raw.errors
    assert result["ours"]["uncalibrated"]["log_loss_nats"] == pytest.approx(raw.log_loss)
    test = next(t for t in result["sign_tests"] if t["b"] == "logistic")
    assert test["log_loss"]["wins"] + test["log_loss"]["losses"] <= 400
    assert result["published"]["asymmetric-laplace"] == [-3106.95, 554.37, 726]
    # Every pair of the paper's methods is tested once.
    papers = [t for t in result["sign_tests"] if {t["a"], t["b"]} <= set(PAPER_METHODS)]
    assert len({frozenset((t["a"], t["b"])) for t in papers}) == len(papers) == 15
    assert list(result["ours"]) == [*PAPER_METHODS, *OTHERS]


def test_the_comparison_with_laplace_is_a_paired_t_test():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 50)
    one = {name: losses(y, rng.normal(size=50)) for name in PAPER_METHODS}
    found = against_laplace(one)["log_loss"]["gaussian"]
    theirs, laplace = one["gaussian"].log_loss, one["asymmetric-laplace"].log_loss
    assert found["difference"] == pytest.approx((theirs - laplace).sum())
    assert found["p"] == pytest.approx(ttest_rel(theirs, laplace).pvalue)


@pytest.mark.data
@pytest.mark.slow
def test_the_papers_order_on_reuters(collections, tmp_path):
    documents = modapte_split(read_reuters(collections / "reuters21578"))
    assert [len(part) for part in documents] == [9603, 3299]
    corpus = load_corpus(documents)
    assert len(corpus.topics) == 90
    assert corpus.topics[:3] == ["earn", "acq", "money-fx"]
    assert corpus.in_train[:, 0].sum() == 2877
    assert corpus.in_test[:, 0].sum() == 1087
    found = panel(topic_scores(corpus, lambda: naive_bayes(smoothing="add-one"), 10), "naive Bayes")
    # On naive Bayes A. Laplace is ahead of the paper's other densities and of LogReg, on every loss.
    assert min(one["difference"] for by_method in found["against"].values() for one in by_method.values()) > 0


def test_options():
    from reproductions.calibration import experiment

    parser = argparse.ArgumentParser()
    experiment.configure(parser)
    assert parser.parse_args(["--data", "x"]).out == "calibration-output"
