"""Names of methods in papers and other programs, by the name of the method in truerank."""

from __future__ import annotations

import re
from typing import NamedTuple


class Method(NamedTuple):
    """A class of truerank, its registered name, and the setting that selects the method, or ""."""

    cls: str
    name: str
    setting: str = ""
    kind: str = "ranker"  # or "calibrator"

    def __str__(self) -> str:
        key, _, value = self.setting.partition("=")
        written = value.capitalize() if value in ("true", "false") else repr(value)
        return f"{self.cls}({f'{key}={written}' if key else ''})"


# Method -> names, compared without case and punctuation.
_NAMES: dict[Method, str] = {
    Method("AdaRank", "adarank"): "xu-li",
    Method("AdaRank", "adarank", "measure=AP"): "adarank-map",
    Method("AdaRank", "adarank", "measure=nDCG@10"): "adarank-ndcg",
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
    Method("AsymmetricLaplaceCalibrator", "asymmetric-laplace", "", "calibrator"): "bennett a-laplace",
    Method("AsymmetricGaussianCalibrator", "asymmetric-gaussian", "", "calibrator"): "a-gauss asymmetric-gauss",
    Method("GaussianCalibrator", "gaussian", "", "calibrator"): "gauss",
    Method("LogisticCalibrator", "logistic", "", "calibrator"): "logreg",
    Method("PlattCalibrator", "platt", "", "calibrator"): "platt platt-scaling lr+noise",
    Method("IsotonicCalibrator", "isotonic", "", "calibrator"): "isotonic-regression pav",
}


def bare(name: str) -> str:
    """Return a name without case and punctuation."""
    return re.sub(r"\W|_", "", name).lower()


METHODS = {bare(name): method for method, names in _NAMES.items() for name in names.split()}


def called_here(name: str) -> Method | None:
    """Return the method of a name, or None.

    >>> print(called_here("Fuzzy_Trees"))
    ObliviousBoosting(leaves='fuzzy')
    """
    return METHODS.get(bare(name))
