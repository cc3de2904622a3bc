"""One table of public names: where each lives, and what the command line calls the rankers and calibrators.

`truerank.__init__` resolves its lazy names here, the model file looks up the classes that it may build, and the
command line lists rankers from it. A new ranker is one line in `RANKERS`.
"""

from __future__ import annotations

from truerank.calibration.names import CALIBRATORS
from truerank.core.names import look_up

# Name on the command line -> "module:class". Keep the order: `truerank rankers` prints it.
RANKERS: dict[str, str] = {
    "adarank": "truerank.rankers.adarank:AdaRank",
    "rank-boost": "truerank.rankers.rank_boost:RankBoost",
    "measure-svm": "truerank.rankers.measure_svm:MeasureSVM",
    "pointwise-svm": "truerank.rankers.pointwise_svm:PointwiseSVM",
    "rank-svm": "truerank.rankers.rank_svm:RankSVM",
    "pairwise-descent": "truerank.rankers.pairwise_descent:PairwiseDescent",
    "list-net": "truerank.rankers.list_net:ListNet",
    "nonnegative-list-net": "truerank.rankers.nonnegative_list_net:NonnegativeListNet",
    "ridge": "truerank.rankers.baselines:RidgeRanker",
    "oblivious-boosting": "truerank.rankers.oblivious_boosting:ObliviousBoosting",
    "single-feature": "truerank.rankers.baselines:SingleFeature",
    "random": "truerank.rankers.baselines:RandomRanker",
}

# Public names of the package that are neither rankers nor calibrators, imported on first use.
PUBLIC: dict[str, str] = {
    "RankingData": "truerank.data.ranking_data:RankingData",
    "Judgements": "truerank.data.ranking_data:Judgements",
    "read_letor": "truerank.io.letor.read:read_letor",
    "iter_letor": "truerank.io.letor.read:iter_letor",
    "write_letor": "truerank.io.letor.read:write_letor",
    "read_table": "truerank.io.tables:read_table",
    "write_table": "truerank.io.tables:write_table",
    "to_table": "truerank.io.tables:to_table",
    "group_sizes": "truerank.io.group_sizes:group_sizes",
    "qid_from_group_sizes": "truerank.io.group_sizes:qid_from_group_sizes",
    "load_sample": "truerank.data.samples:load_sample",
    "read_run": "truerank.io.trec:read_run",
    "read_qrels": "truerank.io.trec:read_qrels",
    "write_run": "truerank.io.trec:write_run",
    "write_qrels": "truerank.io.trec:write_qrels",
    "judge_run": "truerank.io.trec:judge_run",
    "read_documents": "truerank.io.documents:read_documents",
    "read_judgements": "truerank.io.documents:read_judgements",
    "read_queries": "truerank.io.documents:read_queries",
    "Index": "truerank.text.index:Index",
    "build_index": "truerank.text.index:build_index",
    "retrieve": "truerank.text.retrieval:retrieve",
    "LinkGraph": "truerank.links.graph:LinkGraph",
    "hostrank": "truerank.links.pagerank:hostrank",
    "pagerank": "truerank.links.pagerank:pagerank",
    "read_links": "truerank.links.graph:read_links",
    "join_runs": "truerank.features.runs:join_runs",
    "RunPool": "truerank.features.run_pool:RunPool",
    "fuse": "truerank.features.fusion:fuse",
    "cross_validate_fusion": "truerank.inspection.fusion_evidence:cross_validate_fusion",
    "BinnedMatrix": "truerank.matrices.binned:BinnedMatrix",
    "QueryKFold": "truerank.data.splits:QueryKFold",
    "ConstantLeaves": "truerank.trees.leaves.constant:ConstantLeaves",
    "FuzzyLeaves": "truerank.trees.leaves.fuzzy:FuzzyLeaves",
    "PolynomialLeaves": "truerank.trees.leaves.polynomial:PolynomialLeaves",
    "Ranker": "truerank.rankers.base:Ranker",
    "evaluate": "truerank.measures.evaluation:evaluate",
    "convert_claim": "truerank.measures.claim:convert_claim",
    "explain_measure": "truerank.measures.measure_explanation:explain_measure",
    "compare_rankers": "truerank.significance.comparison:compare_rankers",
    "cross_validate": "truerank.inspection.cross_validation:cross_validate",
    "retrain": "truerank.inspection.retraining:retrain",
    "tune": "truerank.inspection.tuning:tune",
    "explain": "truerank.inspection.explanation:explain",
    "partial_dependence": "truerank.inspection.importance:partial_dependence",
    "permutation_importance": "truerank.inspection.importance:permutation_importance",
    "removal_importance": "truerank.inspection.importance:removal_importance",
    "choose_calibrator": "truerank.calibration.pool:choose_calibrator",
    "export_model": "truerank.export.formats:export_model",
    "import_model": "truerank.models.foreign.read:import_model",
    "load_model": "truerank.models.model_file:load_model",
    "save_model": "truerank.models.model_file:save_model",
}

# Classes that a model file may hold besides rankers and calibrators: transformers, wrappers.
MODEL_PARTS: dict[str, str] = {
    "score-binning": "truerank.features.score_binning:ScoreBinning",
    "percentile-in-query": "truerank.features.per_query:PercentileInQuery",
    "min-max-in-query": "truerank.features.per_query:MinMaxInQuery",
    "z-score-in-query": "truerank.features.per_query:ZScoreInQuery",
    "RunFusion": "truerank.rankers.run_fusion:RunFusion",
    "ImportedRanker": "truerank.models.imported:ImportedRanker",
    "text-features": "truerank.text.features:TextFeatures",
    "text-ranker": "truerank.rankers.text_ranker:TextRanker",
    "CalibratedClassifier": "truerank.calibration.classifier:CalibratedClassifier",
    "EachAgainstTheRest": "truerank.calibration.classifier:EachAgainstTheRest",
    "TextClassifier": "truerank.calibration.text_classifier:TextClassifier",
    "TopicNaiveBayes": "truerank.text.topic_classifiers:TopicNaiveBayes",
    "LinearSVM": "truerank.text.topic_classifiers:LinearSVM",
    "VotedPerceptron": "truerank.text.voted_perceptron:VotedPerceptron",
    "WordCounts": "truerank.text.topic_classifiers:WordCounts",
    "TfIdf": "truerank.text.topic_classifiers:TfIdf",
    "UnitLogCounts": "truerank.text.topic_classifiers:UnitLogCounts",
    "MutualInformationSelector": "truerank.text.topic_classifiers:MutualInformationSelector",
    "UnitDeviation": "truerank.features.columns:UnitDeviation",
    "SoftmaxCalibrator": "truerank.calibration.joint:SoftmaxCalibrator",
    "OneVsRestCalibrator": "truerank.calibration.joint:OneVsRestCalibrator",
    "JointPool": "truerank.calibration.joint_pool:JointPool",
    "RankerPipeline": "truerank.rankers.pipeline:RankerPipeline",
    "CalibratedRanker": "truerank.calibration.ranker:CalibratedRanker",
}


def ranker_class(name: str) -> type:
    """Class of a ranker by its command line name, for example "adarank"."""
    return look_up(RANKERS, name, "ranker")


def public_names() -> dict[str, str]:
    """Every lazily importable public name and its place."""
    classes = [*RANKERS.values(), *CALIBRATORS.values(), *MODEL_PARTS.values()]
    return PUBLIC | {target.partition(":")[2]: target for target in classes}
