"""The rankers by the names of the command line, and the other classes that a model file may hold.

A new ranker is one line in `RANKERS`, and one in `truerank/__init__.pyi`, where all public names stand.
"""

from __future__ import annotations

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

# Classes that a model file may hold besides rankers and calibrators: transformers, wrappers.
MODEL_PARTS: dict[str, str] = {
    "score-binning": "truerank.features.score_binning:ScoreBinning",
    "percentile-in-query": "truerank.features.per_query:PercentileInQuery",
    "min-max-in-query": "truerank.features.per_query:MinMaxInQuery",
    "z-score-in-query": "truerank.features.per_query:ZScoreInQuery",
    "RunFusion": "truerank.rankers.run_fusion:RunFusion",
    "BayesFuse": "truerank.features.position_fusion:BayesFuse",
    "MAPFuse": "truerank.features.position_fusion:MAPFuse",
    "PosFuse": "truerank.features.position_fusion:PosFuse",
    "SlideFuse": "truerank.features.position_fusion:SlideFuse",
    "ProbFuse": "truerank.features.position_fusion:ProbFuse",
    "SegFuse": "truerank.features.position_fusion:SegFuse",
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
