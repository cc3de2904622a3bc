"""The names that papers and other programs use for what truerank has under another name."""

from __future__ import annotations

import re
from typing import NamedTuple


class Method(NamedTuple):
    """A class of truerank, its name on the command line, and the setting that makes it the method, or ""."""

    cls: str
    name: str
    setting: str = ""
    command: str = "--ranker"  # or "truerank calibrate --method"

    def __str__(self) -> str:
        key, _, value = self.setting.partition("=")
        typed = f"{self.command} {self.name}" + (f" --set {self.setting}" if key else "")
        return f"{self.cls}({f'{key}={value!r}' if key else ''}): {typed}"


_CALIBRATE = "truerank calibrate --method"
# Method -> names, compared without case and punctuation.
_NAMES: dict[Method, str] = {
    Method("AdaRank", "adarank"): "xu-li",
    Method("RankBoost", "rank-boost"): "freund",
    Method("MeasureSVM", "measure-svm", "measure=AP"): "svm-map yue structural-svm ssvm map-svm",
    Method("MeasureSVM", "measure-svm", "measure=ROC"): "svm-roc svm-auc svm-perf",
    Method("MeasureSVM", "measure-svm", "measure=nDCG@10"): "svm-ndcg",
    Method("MeasureSVM", "measure-svm", "measure=RR"): "svm-mrr svm-rr",
    Method("PointwiseSVM", "pointwise-svm"): "svm-acc",
    Method("RankSVM", "rank-svm"): "svm-rank ranking-svm svm-light joachims herbrich",
    Method("PairwiseDescent", "pairwise-descent"): "sculley sofia-ml sofia sgd stochastic-pairwise-descent",
    Method("PairwiseDescent", "pairwise-descent", "projection=true"): "pegasos",
    Method("PairwiseDescent", "pairwise-descent", "sampling=combined-ranking"): "crr combined-regression-and-ranking",
    Method("PairwiseDescent", "pairwise-descent", "loss=logistic"): "ranknet",
    Method("ObliviousBoosting", "oblivious-boosting"): "belous oblivious-trees trees gbdt gbrt gbm mart",
    Method("ObliviousBoosting", "oblivious-boosting", "leaves=constant"): "catboost lightgbm xgboost",
    Method("ObliviousBoosting", "oblivious-boosting", "leaves=fuzzy"): "fuzzy-trees fuzzy-leaves fuzzy-borders fuzzy",
    Method("ObliviousBoosting", "oblivious-boosting", "leaves=polynomial"): "polynomial-trees polynomial-leaves",
    Method("ObliviousBoosting", "oblivious-boosting", "objective=lambdarank"): "lambdamart lambdarank",
    Method("ObliviousBoosting", "oblivious-boosting", "objective=yetirank"): "yetirank",
    Method("AsymmetricLaplaceCalibrator", "asymmetric-laplace", "", _CALIBRATE): "bennett asymmetric-laplace a-laplace",
    Method("AsymmetricGaussianCalibrator", "asymmetric-gaussian", "", _CALIBRATE): "a-gauss asymmetric-gauss",
    Method("GaussianCalibrator", "gaussian", "", _CALIBRATE): "gauss",
    Method("LogisticCalibrator", "logistic", "", _CALIBRATE): "logreg",
    Method("PlattCalibrator", "platt", "", _CALIBRATE): "platt platt-scaling lr+noise",
    Method("IsotonicCalibrator", "isotonic", "", _CALIBRATE): "isotonic-regression pav",
}
METHODS = {re.sub(r"\W|_", "", name): method for method, names in _NAMES.items() for name in names.split()}


def called_here(name: str) -> str:
    """Return the class and the options that a name stands for, or "".

    >>> called_here("Fuzzy_Trees")
    "ObliviousBoosting(leaves='fuzzy'): --ranker oblivious-boosting --set leaves=fuzzy"
    """
    return str(METHODS.get(re.sub(r"\W|_", "", name).lower(), ""))
