"""truerank: from judged rankings to a ranker that can be trusted.

Public names are imported on first use: `import truerank` loads neither numba nor scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truerank.core.names import resolve as _resolve
from truerank.models.registry import public_names as _public_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from truerank.calibration.classifier import CalibratedClassifier, EachAgainstTheRest
    from truerank.calibration.densities import (
        AsymmetricGaussianCalibrator,
        AsymmetricLaplaceCalibrator,
        GaussianCalibrator,
        HybridCalibrator,
        LaplaceCalibrator,
    )
    from truerank.calibration.joint import OneVsRestCalibrator, SoftmaxCalibrator
    from truerank.calibration.joint_pool import JointPool
    from truerank.calibration.pool import PooledCalibrator, choose_calibrator
    from truerank.calibration.posteriors import (
        BetaCalibrator,
        IdentityCalibrator,
        IsotonicCalibrator,
        LogisticCalibrator,
        PlattCalibrator,
        SplineCalibrator,
        TemperatureCalibrator,
    )
    from truerank.calibration.ranker import CalibratedRanker
    from truerank.calibration.text_classifier import TextClassifier
    from truerank.data.ranking_data import Judgements, RankingData
    from truerank.data.samples import load_sample
    from truerank.data.splits import QueryKFold
    from truerank.export.formats import export_model
    from truerank.features.columns import UnitDeviation
    from truerank.features.fusion import fuse
    from truerank.features.per_query import MinMaxInQuery, PercentileInQuery, ZScoreInQuery
    from truerank.features.run_pool import RunPool
    from truerank.features.runs import join_runs
    from truerank.features.score_binning import ScoreBinning
    from truerank.inspection.cross_validation import cross_validate
    from truerank.inspection.explanation import explain
    from truerank.inspection.fusion_evidence import cross_validate_fusion
    from truerank.inspection.importance import partial_dependence, permutation_importance, removal_importance
    from truerank.inspection.retraining import retrain
    from truerank.inspection.tuning import tune
    from truerank.io.documents import read_documents, read_judgements, read_queries
    from truerank.io.group_sizes import group_sizes, qid_from_group_sizes
    from truerank.io.letor.read import iter_letor, read_letor, write_letor
    from truerank.io.tables import read_table, to_table, write_table
    from truerank.io.trec import judge_run, read_qrels, read_run, write_qrels, write_run
    from truerank.links.graph import LinkGraph, read_links
    from truerank.links.pagerank import hostrank, pagerank
    from truerank.matrices.binned import BinnedMatrix
    from truerank.measures.claim import convert_claim
    from truerank.measures.evaluation import evaluate
    from truerank.measures.measure_explanation import explain_measure
    from truerank.models.foreign.read import import_model
    from truerank.models.imported import ImportedRanker
    from truerank.models.model_file import load_model, save_model
    from truerank.rankers.adarank import AdaRank
    from truerank.rankers.base import Ranker
    from truerank.rankers.baselines import RandomRanker, RidgeRanker, SingleFeature
    from truerank.rankers.list_net import ListNet
    from truerank.rankers.measure_svm import MeasureSVM
    from truerank.rankers.nonnegative_list_net import NonnegativeListNet
    from truerank.rankers.oblivious_boosting import ObliviousBoosting
    from truerank.rankers.pairwise_descent import PairwiseDescent
    from truerank.rankers.pipeline import RankerPipeline
    from truerank.rankers.pointwise_svm import PointwiseSVM
    from truerank.rankers.rank_boost import RankBoost
    from truerank.rankers.rank_svm import RankSVM
    from truerank.rankers.run_fusion import RunFusion
    from truerank.rankers.text_ranker import TextRanker
    from truerank.significance.comparison import compare_rankers
    from truerank.text.features import TextFeatures
    from truerank.text.index import Index, build_index
    from truerank.text.retrieval import retrieve
    from truerank.text.topic_classifiers import (
        LinearSVM,
        MutualInformationSelector,
        TfIdf,
        TopicNaiveBayes,
        UnitLogCounts,
        WordCounts,
    )
    from truerank.text.voted_perceptron import VotedPerceptron
    from truerank.trees.leaves.constant import ConstantLeaves
    from truerank.trees.leaves.fuzzy import FuzzyLeaves
    from truerank.trees.leaves.polynomial import PolynomialLeaves

__all__ = [
    "AdaRank",
    "AsymmetricGaussianCalibrator",
    "AsymmetricLaplaceCalibrator",
    "BetaCalibrator",
    "BinnedMatrix",
    "CalibratedClassifier",
    "CalibratedRanker",
    "ConstantLeaves",
    "EachAgainstTheRest",
    "FuzzyLeaves",
    "GaussianCalibrator",
    "HybridCalibrator",
    "IdentityCalibrator",
    "ImportedRanker",
    "Index",
    "IsotonicCalibrator",
    "JointPool",
    "Judgements",
    "LaplaceCalibrator",
    "LinearSVM",
    "LinkGraph",
    "ListNet",
    "LogisticCalibrator",
    "MeasureSVM",
    "MinMaxInQuery",
    "MutualInformationSelector",
    "NonnegativeListNet",
    "ObliviousBoosting",
    "OneVsRestCalibrator",
    "PairwiseDescent",
    "PercentileInQuery",
    "PlattCalibrator",
    "PointwiseSVM",
    "PolynomialLeaves",
    "PooledCalibrator",
    "QueryKFold",
    "RandomRanker",
    "RankBoost",
    "RankSVM",
    "Ranker",
    "RankerPipeline",
    "RankingData",
    "RidgeRanker",
    "RunFusion",
    "RunPool",
    "ScoreBinning",
    "SingleFeature",
    "SoftmaxCalibrator",
    "SplineCalibrator",
    "TemperatureCalibrator",
    "TextClassifier",
    "TextFeatures",
    "TextRanker",
    "TfIdf",
    "TopicNaiveBayes",
    "UnitDeviation",
    "UnitLogCounts",
    "VotedPerceptron",
    "WordCounts",
    "ZScoreInQuery",
    "__version__",
    "build_index",
    "choose_calibrator",
    "compare_rankers",
    "convert_claim",
    "cross_validate",
    "cross_validate_fusion",
    "evaluate",
    "explain",
    "explain_measure",
    "export_model",
    "fuse",
    "group_sizes",
    "hostrank",
    "import_model",
    "iter_letor",
    "join_runs",
    "judge_run",
    "load_model",
    "load_sample",
    "pagerank",
    "partial_dependence",
    "permutation_importance",
    "qid_from_group_sizes",
    "read_documents",
    "read_judgements",
    "read_letor",
    "read_links",
    "read_qrels",
    "read_queries",
    "read_run",
    "read_table",
    "removal_importance",
    "retrain",
    "retrieve",
    "save_model",
    "to_table",
    "tune",
    "write_letor",
    "write_qrels",
    "write_run",
    "write_table",
]


def __getattr__(name: str) -> Any:
    target = _public_names().get(name)
    if target is None:
        raise AttributeError(f"module 'truerank' has no attribute {name!r}")
    value = _resolve(target)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_public_names()})
