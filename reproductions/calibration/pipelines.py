"""The classifiers of Bennett (2003) as pipelines from word counts to scores."""

from __future__ import annotations

from sklearn.pipeline import Pipeline

from truerank import LinearSVM, MutualInformationSelector, TfIdf, TopicNaiveBayes, UnitLogCounts, VotedPerceptron
from truerank.core.checks import check_choice


def naive_bayes(n_words: int = 300, smoothing: str = "word-prior") -> Pipeline:
    """The paper's naive Bayes for word counts: selection of words, then `TopicNaiveBayes`."""
    return Pipeline([("select", MutualInformationSelector(n_words)), ("classify", TopicNaiveBayes(smoothing))])


def linear_svm(n_words: int = 300, C: float = 1.0, weighting: str = "log-tf") -> Pipeline:
    """The paper's linear SVM for word counts: weighting, selection of words, LinearSVC with the hinge.

    Parameters
    ----------
    n_words : int, default 300
    C : float, default 1
    weighting : {"log-tf", "tf-idf"}
        "log-tf": log(1 + count), with rows scaled to unit length before the selection. "tf-idf": (1 + log count) · idf
        (scikit-learn's, smoothed), scaled likewise.
    """
    check_choice(weighting, "weighting", ("log-tf", "tf-idf"))
    svm = LinearSVM(C=C, loss="hinge", random_state=0, max_iter=100_000)
    scale = TfIdf(sublinear_tf=True) if weighting == "tf-idf" else UnitLogCounts()
    return Pipeline([("scale", scale), ("select", MutualInformationSelector(n_words)), ("classify", svm)])


def voted_perceptron(n_words: int = 300) -> Pipeline:
    """The classifier of the paper's future work: the features of `linear_svm`, then `VotedPerceptron`."""
    select = ("select", MutualInformationSelector(n_words))
    return Pipeline([("scale", UnitLogCounts()), select, ("classify", VotedPerceptron())])
