"""One table of public names: where each lives, and what the command line calls the rankers and calibrators.

`truerank.__init__` resolves its lazy names here, the model file looks up the classes that it may build, and the
command line lists rankers from it. A new ranker is one line in `RANKERS`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from truerank.core.errors import InvalidInputError

# Name on the command line -> "module:class". Keep the order: `truerank rankers` prints it.
RANKERS: dict[str, str] = {
    "adarank": "truerank.rankers.adarank:AdaRank",
    "rank-boost": "truerank.rankers.rank_boost:RankBoost",
    "measure-svm": "truerank.rankers.measure_svm:MeasureSVM",
    "pointwise-svm": "truerank.rankers.pointwise_svm:PointwiseSVM",
    "rank-svm": "truerank.rankers.rank_svm:RankSVM",
    "pairwise-descent": "truerank.rankers.pairwise_descent:PairwiseDescent",
    "list-net": "truerank.rankers.listnet:ListNet",
    "ridge": "truerank.rankers.baselines:RidgeRanker",
    "oblivious-boosting": "truerank.rankers.oblivious.estimator:ObliviousBoosting",
    "single-feature": "truerank.rankers.baselines:SingleFeature",
    "random": "truerank.rankers.baselines:RandomRanker",
}

# Name -> "module:class" of calibrators (`CalibratedRanker(method=NAME)`, `truerank calibrate --method NAME`).
CALIBRATORS: dict[str, str] = {
    "gaussian": "truerank.calibration.densities:GaussianCalibrator",
    "asymmetric-gaussian": "truerank.calibration.densities:AsymmetricGaussianCalibrator",
    "laplace": "truerank.calibration.densities:LaplaceCalibrator",
    "asymmetric-laplace": "truerank.calibration.densities:AsymmetricLaplaceCalibrator",
    "logistic": "truerank.calibration.posteriors:LogisticCalibrator",
    "platt": "truerank.calibration.posteriors:PlattCalibrator",
    "hybrid": "truerank.calibration.densities:HybridCalibrator",
    "spline": "truerank.calibration.posteriors:SplineCalibrator",
    "isotonic": "truerank.calibration.posteriors:IsotonicCalibrator",
    "beta": "truerank.calibration.posteriors:BetaCalibrator",
    "temperature": "truerank.calibration.posteriors:TemperatureCalibrator",
    "pool": "truerank.calibration.pool:PooledCalibrator",
}

# Public names of the package that are neither rankers nor calibrators, imported on first use.
PUBLIC: dict[str, str] = {
    "RankingData": "truerank.data.ranking_data:RankingData",
    "Judgements": "truerank.data.ranking_data:Judgements",
    "read_letor": "truerank.data.letor:read_letor",
    "iter_letor": "truerank.data.letor:iter_letor",
    "write_letor": "truerank.data.letor:write_letor",
    "read_table": "truerank.data.tables:read_table",
    "write_table": "truerank.data.tables:write_table",
    "to_table": "truerank.data.tables:to_table",
    "group_sizes": "truerank.data.groups:group_sizes",
    "qid_from_group_sizes": "truerank.data.groups:qid_from_group_sizes",
    "load_sample": "truerank.data.samples:load_sample",
    "read_run": "truerank.data.trec:read_run",
    "read_qrels": "truerank.data.trec:read_qrels",
    "write_run": "truerank.data.trec:write_run",
    "write_qrels": "truerank.data.trec:write_qrels",
    "judge_run": "truerank.data.trec:judge_run",
    "join_runs": "truerank.features.runs:join_runs",
    "BinnedMatrix": "truerank.data.binned:BinnedMatrix",
    "QueryKFold": "truerank.data.splits:QueryKFold",
    "Ranker": "truerank.rankers.base:Ranker",
    "evaluate": "truerank.measures.evaluation:evaluate",
    "compare_rankers": "truerank.significance.comparison:compare_rankers",
    "choose_calibrator": "truerank.calibration.selection:choose_calibrator",
    "load_model": "truerank.core.model_file:load_model",
    "save_model": "truerank.core.model_file:save_model",
}

# Classes that a model file may hold besides rankers and calibrators: transformers, wrappers.
MODEL_PARTS: dict[str, str] = {
    "score-binning": "truerank.features.binning:ScoreBinning",
    "percentile-in-query": "truerank.features.per_query:PercentileInQuery",
    "min-max-in-query": "truerank.features.per_query:MinMaxInQuery",
    "z-score-in-query": "truerank.features.per_query:ZScoreInQuery",
    "CalibratedClassifier": "truerank.calibration.classifier:CalibratedClassifier",
    "CalibratedRanker": "truerank.calibration.ranker:CalibratedRanker",
}


def resolve(target: str) -> Any:
    """The object behind "module:name"."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def ranker_class(name: str) -> type:
    """Class of a ranker by its command line name, for example "adarank"."""
    return _lookup(RANKERS, name, "ranker")


def calibrator_class(name: str) -> type:
    """Class of a calibrator by its name, for example "asymmetric-laplace"."""
    return _lookup(CALIBRATORS, name, "calibrator")


def _lookup(table: dict[str, str], name: str, kind: str) -> type:
    if name not in table:
        raise InvalidInputError(f"unknown {kind} {name!r}; known are: {', '.join(table)}")
    return resolve(table[name])


def public_names() -> dict[str, str]:
    """Every lazily importable public name and its place."""
    classes = [*RANKERS.values(), *CALIBRATORS.values(), *MODEL_PARTS.values()]
    return PUBLIC | {target.partition(":")[2]: target for target in classes}
