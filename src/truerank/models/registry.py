"""Tables of the rankers, by their names on the command line, and of the other classes of model files.

To add a ranker, add one line to `_RANKERS` and one to `truerank/__init__.pyi`, which lists the public names.
"""

from __future__ import annotations

from truerank.core.names import Table, look_up, target_of

# Name -> "module:class". Keep the order, in which the command line lists them.
_RANKERS: dict[str, str] = {
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
# With those of installed packages: entry points "truerank.rankers", name -> "module:class".
RANKERS = Table("truerank.rankers", _RANKERS, target_of)

# Classes that a model file may hold besides rankers and calibrators: transformers, wrappers.
MODEL_PARTS: tuple[str, ...] = (
    "truerank.data.provenance:TrainingSketch",
    "truerank.features.score_binning:ScoreBinning",
    "truerank.features.per_query:PercentileInQuery",
    "truerank.features.per_query:MinMaxInQuery",
    "truerank.features.per_query:ZScoreInQuery",
    "truerank.rankers.run_fusion:RunFusion",
    "truerank.rankers.query_fusion:QueryFusion",
    "truerank.models.imported:ImportedRanker",
    "truerank.text.features:TextFeatures",
    "truerank.rankers.text_ranker:TextRanker",
    "truerank.calibration.classifier:CalibratedClassifier",
    "truerank.calibration.classifier:EachAgainstTheRest",
    "truerank.calibration.text_classifier:TextClassifier",
    "truerank.text.topic_classifiers:TopicNaiveBayes",
    "truerank.text.topic_classifiers:LinearSVM",
    "truerank.text.topic_classifiers:VotedPerceptron",
    "truerank.text.topic_classifiers:WordCounts",
    "truerank.text.topic_classifiers:TfIdf",
    "truerank.text.topic_classifiers:UnitLogCounts",
    "truerank.text.topic_classifiers:MutualInformationSelector",
    "truerank.features.columns:UnitDeviation",
    "truerank.calibration.joint:SoftmaxCalibrator",
    "truerank.calibration.joint:OneVsRestCalibrator",
    "truerank.calibration.joint:JointPool",
    "truerank.rankers.pipeline:RankerPipeline",
    "truerank.calibration.ranker:CalibratedRanker",
    "truerank.calibration.cutoffs:Cutoff",
)

# Classes of earlier files, and the class that replaces each.
GONE = dict.fromkeys(("PosFuse", "ProbFuse", "SegFuse", "SlideFuse", "BayesFuse", "MAPFuse"), "RunFusion")


def ranker_class(name: str) -> type:
    """Return the class of a ranker by its name on the command line, for example "adarank"."""
    return look_up(RANKERS, name, "ranker")
