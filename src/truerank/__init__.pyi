__version__: str

from .calibration.classifier import (
    CalibratedClassifier as CalibratedClassifier,
    EachAgainstTheRest as EachAgainstTheRest,
)
from .calibration.cutoffs import Cutoff as Cutoff
from .calibration.densities import (
    AsymmetricGaussianCalibrator as AsymmetricGaussianCalibrator,
    AsymmetricLaplaceCalibrator as AsymmetricLaplaceCalibrator,
    GaussianCalibrator as GaussianCalibrator,
    HybridCalibrator as HybridCalibrator,
    LaplaceCalibrator as LaplaceCalibrator,
)
from .calibration.joint import (
    JointPool as JointPool,
    OneVsRestCalibrator as OneVsRestCalibrator,
    SoftmaxCalibrator as SoftmaxCalibrator,
)
from .calibration.pool import PooledCalibrator as PooledCalibrator, choose_calibrator as choose_calibrator
from .calibration.posteriors import (
    BetaCalibrator as BetaCalibrator,
    IdentityCalibrator as IdentityCalibrator,
    IsotonicCalibrator as IsotonicCalibrator,
    LogisticCalibrator as LogisticCalibrator,
    PlattCalibrator as PlattCalibrator,
    SplineCalibrator as SplineCalibrator,
    TemperatureCalibrator as TemperatureCalibrator,
)
from .calibration.ranker import CalibratedRanker as CalibratedRanker
from .calibration.text_classifier import TextClassifier as TextClassifier
from .clicks.examination import Examination as Examination
from .clicks.interleaving import (
    compare_arms as compare_arms,
    compare_interleaved as compare_interleaved,
    interleave as interleave,
)
from .clicks.log import ClickLog as ClickLog
from .clicks.read import read_clicks as read_clicks
from .clicks.simulation import simulate as simulate
from .clicks.training import training_data as training_data
from .clicks.value import evaluate_from_clicks as evaluate_from_clicks
from .data.provenance import TrainingSketch as TrainingSketch, training_queries as training_queries
from .data.ranking_data import Judgements as Judgements, RankingData as RankingData
from .data.samples import load_sample as load_sample
from .data.splits import (
    Fold as Fold,
    FoldedData as FoldedData,
    QueryKFold as QueryKFold,
    QueryTimeSplit as QueryTimeSplit,
)
from .experiments.cross_validation import cross_validate as cross_validate, learning_curve as learning_curve
from .experiments.experiment import Experiment as Experiment
from .experiments.depth import reranking_depth as reranking_depth
from .experiments.gate import gate as gate
from .experiments.shorthands import compare as compare, evaluate as evaluate, explain_measure as explain_measure
from .export.formats import export_model as export_model
from .features.columns import UnitDeviation as UnitDeviation
from .features.fusion import fuse as fuse
from .features.per_query import (
    MinMaxInQuery as MinMaxInQuery,
    PercentileInQuery as PercentileInQuery,
    ZScoreInQuery as ZScoreInQuery,
)
from .features.run_pool import RunPool as RunPool
from .features.run_pool import join_runs as join_runs
from .features.score_binning import ScoreBinning as ScoreBinning
from .features.vectors import retrieve_vectors as retrieve_vectors, vector_features as vector_features
from .inspection.explanation import explain as explain
from .inspection.fusion_evidence import cross_validate_fusion as cross_validate_fusion
from .inspection.importance import (
    partial_dependence as partial_dependence,
    permutation_importance as permutation_importance,
    removal_importance as removal_importance,
)
from .inspection.retraining import retrain as retrain
from .inspection.seeds import SeedComparison as SeedComparison, SeededValidation as SeededValidation
from .inspection.stability import ranking_stability as ranking_stability
from .inspection.tuning import tune as tune
from .io.documents import (
    read_documents as read_documents,
    read_judgements as read_judgements,
    read_queries as read_queries,
)
from .io.group_sizes import qid_from_group_sizes as qid_from_group_sizes
from .io.judgements.ratings import Ratings as Ratings
from .io.judgements.registry import read_ratings as read_ratings, write_ratings as write_ratings
from .io.letor.folds import read_folds as read_folds
from .io.letor.read import iter_letor as iter_letor, read_letor as read_letor
from .io.letor.write import write_letor as write_letor
from .io.tables import read_table as read_table, to_table as to_table, write_table as write_table
from .io.trec import (
    judge_run as judge_run,
    read_qrels as read_qrels,
    read_run as read_run,
    write_qrels as write_qrels,
    write_run as write_run,
)
from .io.vectors import read_vectors as read_vectors
from .judging.agreement import Agreement as Agreement, agreement as agreement
from .judging.estimate import Estimate as Estimate, Estimated as Estimated, estimate as estimate
from .judging.leaderboard import JudgeOrder as JudgeOrder, Leaderboard as Leaderboard, leaderboard as leaderboard
from .judging.pool import PoolBias as PoolBias, pool_bias as pool_bias
from .judging.plan import Plan as Plan, plan_judgements as plan_judgements, read_plan as read_plan
from .links.graph import (
    LinkGraph as LinkGraph,
    hostrank as hostrank,
    pagerank as pagerank,
    read_links as read_links,
)
from .matrices.binned import BinnedMatrix as BinnedMatrix
from .measures.diversity import Diversity as Diversity, diversity as diversity
from .measures.evaluation import convert_claim as convert_claim
from .measures.nuggets import NuggetScores as NuggetScores, nugget_scores as nugget_scores
from .models.foreign.read import import_model as import_model
from .models.imported import ImportedRanker as ImportedRanker
from .models.model_file import load_model as load_model, save_model as save_model
from .rankers.adarank import AdaRank as AdaRank
from .rankers.base import Ranker as Ranker
from .rankers.baselines import RandomRanker as RandomRanker, RidgeRanker as RidgeRanker, SingleFeature as SingleFeature
from .rankers.distillation import distil as distil
from .rankers.list_net import ListNet as ListNet
from .rankers.measure_svm import MeasureSVM as MeasureSVM
from .rankers.nonnegative_list_net import NonnegativeListNet as NonnegativeListNet
from .rankers.oblivious_boosting import ObliviousBoosting as ObliviousBoosting
from .rankers.pairwise_descent import PairwiseDescent as PairwiseDescent
from .rankers.pipeline import RankerPipeline as RankerPipeline
from .rankers.pointwise_svm import PointwiseSVM as PointwiseSVM
from .rankers.query_fusion import QueryFusion as QueryFusion
from .rankers.rank_boost import RankBoost as RankBoost
from .rankers.rank_svm import RankSVM as RankSVM
from .rankers.run_fusion import RunFusion as RunFusion
from .rankers.text_ranker import TextRanker as TextRanker
from .significance.comparison import compare_values as compare_values
from .significance.power import queries_needed as queries_needed
from .text.features import TextFeatures as TextFeatures
from .text.index import Index as Index, build_index as build_index
from .text.retrieval import retrieve as retrieve
from .text.topic_classifiers import (
    LinearSVM as LinearSVM,
    MutualInformationSelector as MutualInformationSelector,
    TfIdf as TfIdf,
    TopicNaiveBayes as TopicNaiveBayes,
    UnitLogCounts as UnitLogCounts,
    VotedPerceptron as VotedPerceptron,
    WordCounts as WordCounts,
)
from .trees.leaves.constant import ConstantLeaves as ConstantLeaves
from .trees.leaves.fuzzy import FuzzyLeaves as FuzzyLeaves
from .trees.leaves.polynomial import PolynomialLeaves as PolynomialLeaves
