"""Formats that are read from their description: expected scores as arithmetic on tiny models."""

import json

import numpy as np
import pytest

from support.refusals import refused
from truerank import AdaRank, CalibratedRanker, ObliviousBoosting, RankingData, export_model, import_model
from truerank.core.errors import InvalidInputError, ModelFileError

TREE = """## LambdaMART
## No. of trees = 2

<ensemble>
	<tree id="1" weight="0.5">
		<split>
			<feature>1 </feature>
			<threshold> 0.5 </threshold>
			<split pos="left">
				<output>-1.0 </output>
			</split>
			<split pos="right">
				<feature>3 </feature>
				<threshold> 2.0 </threshold>
				<split pos="left">
					<output>4.0 </output>
				</split>
				<split pos="right">
					<output>8.0 </output>
				</split>
			</split>
		</split>
	</tree>
	<tree id="2" weight="0.25">
		<split>
			<output>2.0 </output>
		</split>
	</tree>
</ensemble>
"""
SOLR_LINEAR = {
    "class": "org.apache.solr.ltr.model.LinearModel",
    "name": "m",
    "features": [
        {
            "name": "a",
            "norm": {"class": "org.apache.solr.ltr.norm.MinMaxNormalizer", "params": {"min": "0", "max": "50"}},
        },
        {"name": "b"},
    ],
    "params": {"weights": {"a": 1.0, "b": 0.5}},
}
LEAVES = [{"nodeid": 1, "leaf": 0.5}, {"nodeid": 2, "leaf": -0.25}]
NODE = {"nodeid": 0, "depth": 0, "split": "b", "split_condition": 1.5, "yes": 1, "no": 2, "missing": 2}
SVM_LIGHT = """SVM-light Version V6.02
0 # kernel type
3 # highest feature index
10 # number of training documents
3 # number of support vectors plus 1
0.5 # threshold b, each following line is a SV (starting with alpha*y)
0.25 1:4 3:2 #
-1 qid:3 2:1 #
"""


def imported(tmp_path, text, **options):
    path = tmp_path / "model"
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return import_model(path, **options)


@pytest.mark.parametrize(
    ("text", "row", "score"),
    [
        ("## AdaRank\n## Iteration = 2\n3:0.5 1:0.25 3:0.25\n", [4.0, 9.0, 2.0], 4 * 0.25 + 2 * 0.75),
        ("## Coordinate Ascent\n## Slack = 0.001\n1:0.25 2:0.5\n", [4.0, 2.0], 2.0),
        ("## Linear Regression\n## Lambda = 1.0E-10\n0:3.0 1:0.5 2:0.25\n", [2.0, 4.0], 5.0),
        ("## RankBoost\n## Iteration = 2\n1:0.5:2.0 2:1.0:4.0 1:3.0:8.0\n", [0.75, 1.0], 2.0),
        (
            "## ListNet\n## Epochs = 3\n## No. of features = 2\n1 3\n0\n0 0 0.5\n0 1 2.0\n0 2 -1.0\n",
            [2.0, 7.0, 3.0],
            6.0,
        ),
        (TREE, [0.5, 0.0, 9.0], -0.5 + 0.5),
        (TREE, [0.75, 0.0, 2.0], 2.0 + 0.5),
        (TREE, [0.75, 0.0, 2.5], 4.0 + 0.5),
        (SOLR_LINEAR, [25.0, 4.0], 0.5 + 2.0),
        ([NODE | {"children": LEAVES}, {"nodeid": 0, "leaf": 0.125}], [1.0], 0.5 + 0.125),
        ([NODE | {"children": LEAVES}, {"nodeid": 0, "leaf": 0.125}], [1.5], -0.25 + 0.125),
        (SVM_LIGHT, [2.0, 3.0, 4.0], 1 * 2 - 1 * 3 + 0.5 * 4 - 0.5),
        ("0.5 1 2 -4\n", [1.0, 2.0, 0.25], 0.5 + 1 + 4 - 1),
    ],
)
def test_scores(tmp_path, text, row, score):
    assert imported(tmp_path, text).predict([row]).tolist() == [score]


def test_solr_trees_have_the_slack_of_solr(tmp_path):
    """`x <= threshold + 1e-6f` in float32."""
    leaves = {"left": {"value": "-1"}, "right": {"value": "1"}}
    model = {
        "class": "org.apache.solr.ltr.model.MultipleAdditiveTreesModel",
        "name": "m",
        "features": [{"name": "a"}],
        "params": {"trees": [{"weight": "2", "root": {"feature": "a", "threshold": "0.5", **leaves}}]},
    }
    inside = float(np.float32(0.5) + np.float32(1e-6))
    outside = float(np.nextafter(np.float32(inside), np.float32(1)))
    assert imported(tmp_path, model).predict([[0.5], [inside], [outside]]).tolist() == [-2.0, -2.0, 2.0]


@pytest.mark.parametrize("kind", ["model/linear", "model/ranklib", "model/xgboost+json"])
def test_elasticsearch_bodies(tmp_path, kind):
    definition = {
        "model/linear": json.dumps({"a": 2.0, "b": 0.5}),
        "model/ranklib": "## Coordinate Ascent\n1:2.0 2:0.5\n",
        "model/xgboost+json": json.dumps({"objective": "rank:ndcg", "splits": [NODE | {"children": LEAVES}]}),
    }[kind]
    model = {"type": kind, "definition": definition}
    if kind == "model/linear":
        model["feature_normalizers"] = {"a": {"standard": {"mean": 1.0, "standard_deviation": 2.0}}}
    ranker = imported(tmp_path, {"model": {"name": "m", "model": model}}, feature_names=["a", "b"])
    assert ranker.predict([[3.0, 4.0]]).tolist() == [{"model/linear": 4.0, "model/ranklib": 8.0}.get(kind, -0.25)]


def test_columns_go_by_name(tmp_path):
    ranker = imported(tmp_path, SOLR_LINEAR, feature_names=["x", "b", "a"])
    assert ranker.predict([[100.0, 4.0, 25.0]]).tolist() == [2.5]
    with refused(ModelFileError, code="unknown-feature"):
        imported(tmp_path, SOLR_LINEAR, feature_names=["x", "b"])
    with refused(InvalidInputError, code="column-order", remedy={"feature_names": [...]}):
        imported(tmp_path, SOLR_LINEAR).predict(RankingData(np.ones((1, 2)), None, [0], feature_names=["b", "a"]))
    with refused(InvalidInputError, code="width", remedy={"n_features": ...}):
        imported(tmp_path, "## AdaRank\n2:0.5\n").predict(np.ones((1, 4)))
    ranker = imported(tmp_path, "## AdaRank\n2:0.5\n", n_features=4)
    assert ranker.predict([[0.0, 3.0, 0.0, 0.0]]).tolist() == [1.5]
    with pytest.raises(ModelFileError, match="only 1 features are named"):
        imported(tmp_path, "## AdaRank\n2:0.5\n", n_features=1)


def test_texts_in_a_frame_are_refused_with_the_name_of_the_column(tmp_path):
    pandas = pytest.importorskip("pandas")
    ranker = imported(tmp_path, SOLR_LINEAR)
    frame = pandas.DataFrame({name: [1.0, 2.0] for name in ranker.feature_names_})
    name = frame.columns[0]
    for values in (["red", "blue"], pandas.Categorical(["red", "blue"])):
        with pytest.raises(InvalidInputError, match=f"column '{name}' is not numeric, .*cat.codes"):
            ranker.predict(frame.assign(**{name: values}))


def test_only_names_that_a_tool_made_up_give_way_to_places(tmp_path):
    def dump(*features):
        return [NODE | {"split": name, "children": LEAVES} for name in features]

    with refused(ModelFileError, code="unknown-feature"):
        imported(tmp_path, SOLR_LINEAR, feature_names=["A", "B"])
    with refused(ModelFileError, code="unknown-feature"):  # in a dump features stand as they are asked
        imported(tmp_path, dump("age", "title"), feature_names=["Title", "Age"])
    with refused(ModelFileError, code="unknown-feature"):
        imported(tmp_path, dump("x7", "x3"), feature_names=["title", "age"])
    by_place = imported(tmp_path, dump("f1"), feature_names=["title", "age"])
    np.testing.assert_array_equal(
        by_place.predict([[9.0, 0.0], [0.0, 9.0]]), imported(tmp_path, dump("a")).predict([[0.0], [9.0]])
    )


def test_a_dump_with_names_needs_their_order(tmp_path):
    dump = [NODE | {"split": name, "children": LEAVES} for name in ("title", "age")]
    plugin = {"type": "model/xgboost+json", "definition": json.dumps(dump)}
    below, above = [0.0, 9.0], [9.0, 0.0]
    for document in (dump, plugin):
        with refused(ModelFileError, code="no-order", remedy={"feature_names": [...]}):
            imported(tmp_path, document)
        scores = [imported(tmp_path, document, feature_names=names) for names in (["age", "title"], ["title", "age"])]
        assert scores[0].predict([below]) == scores[1].predict([above])
    set_ = {"name": "set", "features": [{"name": "age"}, {"name": "title"}]}
    assert imported(tmp_path, {"model": plugin, "feature_set": set_}).feature_names_ == ["age", "title"]


def test_a_model_of_xgboost_without_names_knows_its_columns_by_places(tmp_path):
    data = RankingData([[1.0, 5.0], [2.0, 3.0], [3.0, 4.0]], [0, 1, 2], [1, 1, 1])
    ranker = ObliviousBoosting(n_estimators=3, depth=1, leaves="constant").fit(data)
    saved = json.loads(export_model(ranker, "xgboost", certify=data))
    saved["learner"]["feature_names"] = []  # as XGBoost saves a model of an array; it prints f0, f1
    expected = ranker.predict(data.X)
    for names in (["f1", "f0"], ["f1", "f2"], ["title", "f0"]):
        np.testing.assert_allclose(imported(tmp_path, saved, feature_names=names).predict(data.X), expected, rtol=1e-6)
    with refused(ModelFileError, code="width"):
        imported(tmp_path, saved, feature_names=["f0"])


def test_an_imported_ranker_is_scored_and_calibrated_but_not_fitted(tmp_path):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(200, 2)), np.repeat(np.arange(10), 20)
    y = (X[:, 0] + 0.5 * rng.normal(size=200) > 0).astype(int)
    data = RankingData(X, y, qid)
    ranker = imported(tmp_path, "## AdaRank\n1:0.5\n", n_features=2)
    assert ranker.score(data) > 0.8
    p = CalibratedRanker(ranker, "platt", cv="prefit").fit(data).predict_proba(data)
    assert p[X[:, 0] > 1, 1].min() > 0.5
    with refused(InvalidInputError, code="not-trainable"):
        ranker.fit(X, y, qid=qid)
    own = AdaRank().fit(X, y, qid=qid)
    assert own.rank(data).shape == ranker.rank(data).shape


def test_numbers_are_places_among_the_names(tmp_path):
    """Names that look like numbers are names; a stored model's numbers are places in its feature set."""
    text = "## Coordinate Ascent\n1:2.0 2:0.5\n"
    assert imported(tmp_path, text, feature_names=["f2", "f1"]).predict([[3.0, 4.0]]).tolist() == [8.0]
    assert imported(tmp_path, text, feature_names=["f2", "f3"]).predict([[3.0, 4.0]]).tolist() == [8.0]
    stored = {"model": {"type": "model/ranklib", "definition": text}}
    body = {"model": {"name": "m"} | stored}
    assert imported(tmp_path, body, feature_names=["f2", "f1"]).predict([[3.0, 4.0]]).tolist() == [8.0]
    there = {"_source": {"model": stored | {"feature_set": {"features": [{"name": "b"}, {"name": "a"}]}}}}
    assert imported(tmp_path, there, feature_names=["a", "b"]).predict([[3.0, 4.0]]).tolist() == [9.5]
