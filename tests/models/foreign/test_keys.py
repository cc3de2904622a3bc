"""Readers know every key of a file: an unknown one is refused at every level, whatever the format."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from tests.models.foreign.test_hostile import (
    CATBOOST,
    DUMP,
    LIGHTGBM,
    LIGHTGBM_JSON,
    LTR,
    RANKLIB,
    SOLR,
    SVM,
    XGBOOST,
)

from support.refusals import refused
from truerank import RankingData, export_model, import_model, load_model, save_model
from truerank.core.errors import InvalidInputError, ModelFileError, WrongTypeError

STORED = {
    "_index": ".ltrstore", "_source": {"name": "m", "type": "model", "model": {
        "name": "m", "feature_set": {"name": "s", "features": [{"name": "f0", "params": [], "template": {}}]},
        "model": {
            "type": "model/xgboost+json", "feature_normalizers": {},
            "definition": {"objective": "rank:ndcg", "splits": DUMP},
        },
    }},
}  # fmt: skip
DEPTHWISE = {
    "features_info": CATBOOST["features_info"], "scale_and_bias": [1, [0]],
    "trees": [{
        "split": {"border": 0.5, "float_feature_index": 0, "split_type": "FloatFeature"},
        "left": {"value": 1, "weight": 3}, "right": {"value": 2, "weight": 4},
    }],
}  # fmt: skip
DOCUMENTS = {
    "lightgbm": LIGHTGBM_JSON, "xgboost": XGBOOST, "dump": DUMP, "catboost": CATBOOST, "catboost, depthwise": DEPTHWISE,
    "solr": SOLR, "plugin": LTR, "stored": STORED,
}  # fmt: skip
FREE = (("feature_normalizers",), ("template",))  # any key may be there


def objects(value, path=()):
    """Yield the path of every object in a document."""
    if isinstance(value, dict) and path[-1:] not in FREE:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from objects(part, (*path, key))


def read(tmp_path, content, **options):
    path = tmp_path / "model"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return import_model(path, **options)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_an_unknown_key_is_refused_in_every_object(tmp_path, name):
    paths = list(objects(DOCUMENTS[name]))
    read(tmp_path, DOCUMENTS[name])
    for path in paths:
        document = json.loads(json.dumps(DOCUMENTS[name]))
        place = document
        for key in path:
            place = place[key]
        place["new_in_version_99"] = 1
        with refused(ModelFileError, code="unknown-key"):
            read(tmp_path, document)
    assert len(paths) >= 3


@pytest.mark.parametrize(
    "text",
    [
        LIGHTGBM.replace("num_class=1\n", "num_class=1\nnew_in_version_99=1\n"),
        LIGHTGBM.replace("is_linear=0\n", "is_linear=0\nnew_in_version_99=1\n"),
        LIGHTGBM + "\nnew_in_version_99:\nx\n",
        RANKLIB.replace("<threshold>", "<new_in_version_99>1</new_in_version_99><threshold>"),
        RANKLIB.replace("<output>1", "<new_in_version_99>1</new_in_version_99><output>1"),
        RANKLIB.replace("<tree id", '<tree new_in_version_99="1" id'),
        RANKLIB.replace("<ensemble>", "<ensemble><new_in_version_99/>"),
        RANKLIB + "<new_in_version_99/>",
        SVM.replace("0 # kernel type", "0 # kernel type\n1 # new_in_version_99"),
    ],
)
def test_an_unknown_key_is_refused_in_every_part_of_a_text(tmp_path, text):
    with pytest.raises(ModelFileError, match="new_in_version_99"):
        read(tmp_path, text)


def test_what_older_and_newer_versions_write_is_read(tmp_path):
    old = LIGHTGBM.replace("v4", "v2").replace("is_linear=0", "leaf_parent=0 1 1\nshrinkage=0.1")
    old = old.replace("end of trees", "feature importances:\na=1\nb=1") + "\n"
    with refused(ModelFileError, code="not-a-setting"):
        read(tmp_path, old)
    tail = (
        "\nfeature importances:\na=1\n\nparameters:\n[boosting: gbdt]\n\nend of parameters\n\npandas_categorical:null\n"
    )
    assert read(tmp_path, LIGHTGBM.replace("v4", "v2") + tail).predict([[0.0, 1.0]]) == [1.0]
    new = json.loads(json.dumps(XGBOOST))
    new["version"] = [3, 2, 0]
    new["learner"] |= {
        "attributes": {"remark": "any"},
        "feature_types": [],
        "objective": {"name": "rank:ndcg", "x": {}},
    }
    new["learner"]["gradient_booster"]["model"] |= {"cats": {"enc": [], "feature_segments": [], "sorted_idx": []}}
    assert read(tmp_path, new).predict([[0.0, 0.0]]) == [1.5]
    new["learner"]["objective"]["name"] = "reg:unheard_of"
    with refused(ModelFileError, code="objective"):
        read(tmp_path, new)
    new["learner"]["objective"]["name"] = "rank:ndcg"
    new["learner"]["attributes"]["scikit_learn"] = json.dumps({"missing": 0.0})
    with refused(ModelFileError, code="missing-value"):
        read(tmp_path, new)


def solr(params, threshold="-5", **node):
    root = {"feature": "a", "threshold": threshold, "left": {"value": "10"}, "right": {"value": "1"}, **node}
    return SOLR | {"params": {"trees": [{"weight": "1", "root": root}], **params}}


@pytest.mark.parametrize(
    ("params", "node", "threshold", "expected", "rule"),
    [
        ({"isNullSameAsZero": "false"}, {"missing": "left"}, "-5", 10.0, "side `missing`"),
        ({"isNullSameAsZero": False}, {"missing": "right"}, "5", 1.0, "side `missing`"),
        ({"isNullSameAsZero": False}, {}, "5", 1.0, "side `missing`"),
        ({}, {"missing": "left"}, "-5", 1.0, "count as 0"),
        ({"isNullSameAsZero": True}, {"missing": "right"}, "5", 10.0, "count as 0"),
        ({}, {}, "5", 10.0, "count as 0"),
    ],
)
def test_missing_values_in_trees_of_solr(tmp_path, params, node, threshold, expected, rule):
    ranker = read(tmp_path, solr(params, threshold, **node))
    assert ranker.predict([[np.nan]]) == [expected]
    assert rule in ranker.status_


def test_zero_for_missing_is_normalised_first(tmp_path):
    norm = {"class": "org.apache.solr.ltr.norm.StandardNormalizer", "params": {"avg": "10", "std": "1"}}
    model = solr({}, "-5") | {"features": [{"name": "a", "norm": norm}]}  # 0 becomes -10, which goes left
    assert read(tmp_path, model).predict([[np.nan]]) == read(tmp_path, model).predict([[0.0]]) == [10.0]


def test_side_of_missing_is_left_or_right(tmp_path):
    with refused(ModelFileError, place="params.trees[0], missing"):
        read(tmp_path, solr({}, missing="middle"))
    with refused(ModelFileError, place="params.isNullSameAsZero"):
        read(tmp_path, solr({"isNullSameAsZero": "maybe"}))


def test_ranklib_reads_missing_values_as_zero(tmp_path):
    ranker = read(tmp_path, RANKLIB)
    assert ranker.predict([[np.nan]]) == ranker.predict([[0.0]])
    boost = read(tmp_path, "## RankBoost\n1:-0.5:2.0\n")
    assert boost.predict([[np.nan]]) == boost.predict([[0.0]]) == [2.0]
    assert "count as 0" in boost.status_


@pytest.mark.parametrize(
    ("flags", "node", "expected"),
    [
        ({}, {"missing": 1}, 1.0),
        ({}, {"missing": 2}, 2.0),
        ({}, {}, 2.0),
        ({"missing_as_zero": True}, {"missing": 2}, 1.0),
    ],
)
def test_flags_of_the_plugin(tmp_path, flags, node, expected):
    """0 is below the threshold 0.5 and goes to node 1; without "missing" a missing value goes to "no"."""
    tree = {key: value for key, value in DUMP[0].items() if key != "missing"} | node
    definition = {"splits": [tree], **flags}
    ranker = read(tmp_path, {"model": {"type": "model/xgboost+json", "definition": definition}})
    assert ranker.predict([[np.nan]]) == [expected]
    with refused(ModelFileError, place="model.definition.missing_as_zero"):
        read(tmp_path, {"model": {"type": "model/xgboost+json", "definition": definition | {"missing_as_zero": 3}}})


def test_the_plugin_scores_raw_models_with_all_trees_and_without_the_base_score(tmp_path):
    raw = json.loads(json.dumps(XGBOOST))
    raw["learner"]["attributes"] = {"best_iteration": "0", "scikit_learn": "{}"}
    raw["learner"]["objective"] = {"name": "rank:ndcg"}
    body = {"model": {"type": "model/xgboost+json+raw", "definition": raw}}
    assert read(tmp_path, body).predict([[0.0, 0.0]]) == [1.0]
    raw["learner"]["objective"]["name"] = "count:poisson"
    with refused(ModelFileError, code="objective"):
        read(tmp_path, body)
    raw["learner"]["objective"]["name"] = "rank:ndcg"
    raw["learner"]["feature_types"] = ["c", "float"]
    with refused(ModelFileError, code="categories"):
        read(tmp_path, body)


LISTED = (
    LIGHTGBM.replace("feature_names=a b", "feature_names=a b\nfeature_infos=-1:2:0:1:3 [0:9]")
    .replace("num_cat=0", "num_cat=1\ncat_boundaries=0 1\ncat_threshold=6")
    .replace("threshold=0.5 1.5", "threshold=0 1.5").replace("decision_type=8", "decision_type=1")
)  # fmt: skip


def test_categories_of_numbers_are_the_categories_themselves(tmp_path):
    ranker = read(tmp_path, LISTED + "\npandas_categorical:[[10, 40, 20, 2.5]]\n")  # 40 and 20 go left
    rows = np.array([[10.0, 1], [40, 1], [20, 1], [2.5, 1], [np.nan, 1]])
    assert ranker.predict(rows).tolist() == [2, 1, 1, 2, 2]
    with refused(InvalidInputError, code="new-category"):
        ranker.predict([[21.0, 1]])
    save_model(ranker, tmp_path / "own.json")
    loaded = load_model(tmp_path / "own.json")
    assert loaded.predict(rows).tolist() == [2, 1, 1, 2, 2]
    with refused(InvalidInputError, code="new-category"):
        loaded.predict([[21.0, 1]])
    data = RankingData(rows[:4], None, [0, 0, 1, 1], feature_names=["a", "b"])
    written = read(tmp_path, export_model(loaded, "lightgbm", certify=data))
    assert written.predict(rows[:4]).tolist() == [2, 1, 1, 2]


def test_categories_of_texts_are_their_places_in_an_array_and_texts_in_a_table(tmp_path):
    pandas = pytest.importorskip("pandas")
    from truerank import cli, read_table

    ranker = read(tmp_path, LISTED + '\npandas_categorical:[["x", "y", "z", "NA"]]\n')  # y and z go left
    assert ranker.predict([[0.0, 1], [1, 1], [2, 1], [np.nan, 1]]).tolist() == [2, 1, 1, 2]
    frame = pandas.DataFrame({"a": ["z", "y", "new", None], "b": 1.0})
    frame["a"] = frame["a"].astype("category")
    assert ranker.predict(frame).tolist() == [1, 1, 2, 2]
    with refused(InvalidInputError, code="new-category"):
        ranker.predict(frame.astype({"a": object}))
    with refused(InvalidInputError, code="new-category"):
        ranker.predict([[4.0, 1]])
    table = tmp_path / "rows.csv"
    table.write_text("qid,a,b\n1,z,1\n1,x,1\n1,new,1\n")
    data = read_table(table, features=["a", "b"], categories=ranker.category_names)
    assert ranker.predict(data).tolist() == [1, 2, 2]
    save_model(ranker, tmp_path / "own.json")
    assert cli.main(["predict", str(tmp_path / "own.json"), str(table), "-o", str(tmp_path / "scores.csv")]) == 0
    found = re.findall(r"[0-9.]+$", (tmp_path / "scores.csv").read_text(), re.MULTILINE)
    assert [float(value) for value in found] == [1, 2, 2]


@pytest.mark.parametrize(
    ("lists", "words"),
    [
        ("[[1, 2, 3, 4], [5]]", {"code": "categories", "place": "pandas_categorical"}),
        ("[[1, 2]]", {"place": "pandas_categorical"}),
        ('[[1, "a", 2, 3]]', {"place": "pandas_categorical, column 0"}),
        ("[[1, 1, 2, 3]]", {"place": "pandas_categorical, column 0"}),
        ("[[1, 2, 3, 9007199254740993]]", {"place": "pandas_categorical, column 0"}),
        ("[3]", {"place": "pandas_categorical"}),
        ("{}3", {"code": "not-json", "place": "line 1, column 3"}),
    ],
)
def test_lists_that_do_not_fit_are_refused(tmp_path, lists, words):
    with refused(ModelFileError, **words):
        read(tmp_path, f"{LISTED}\npandas_categorical:{lists}\n")


def test_a_column_of_a_frame_without_categories_is_no_column_of_a_list(tmp_path):
    """LightGBM gives its lists to the frame's categorical columns in order, so that these must be the same."""
    pandas = pytest.importorskip("pandas")
    ranker = read(tmp_path, LISTED + "\npandas_categorical:[[0, 1, 2, 3]]\n")
    with refused(InvalidInputError, code="no-categories"):
        ranker.predict(pandas.DataFrame({"a": [0.0, 1.0], "b": pandas.Categorical([1, 2])}))


def test_texts_that_xgboost_cuts_wrongly_are_refused(tmp_path):
    model = json.loads(json.dumps(XGBOOST))
    texts = {"offsets": [0, 2, 3], "values": [-61, -87, 97, 98]}
    model["learner"]["gradient_booster"]["model"]["cats"] = {"enc": [texts, {"offsets": [], "values": []}]}
    with refused(ModelFileError, code="letters"):
        read(tmp_path, model)


def test_a_large_limit_reserves_no_memory(tmp_path):
    """A file is read a part at a time: its limit is no reservation, with 4 GB of addresses for the process."""
    (tmp_path / "model").write_text(LIGHTGBM)
    code = (
        "import resource, truerank; resource.setrlimit(resource.RLIMIT_AS, (4_000_000 << 10,) * 2); "
        f"print(truerank.import_model({str(tmp_path / 'model')!r}).predict([[0.0, 1.0]]))"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "[1.]", done.stderr


@pytest.mark.parametrize(("version", "base"), [([1, 0, 2], -1.3862944), ([1, 2, 1], -1.3862944), ([1, 3, 3], 0.2)])
def test_the_base_score_of_logitraw_was_a_probability_before_version_1_3(tmp_path, version, base):
    """The figures are the margins without trees of these versions, with base_score=0.2."""
    model = json.loads(json.dumps(XGBOOST)) | {"version": version}
    before = read(tmp_path, model).predict([[0.0, 0.0]])[0] - 0.5
    model["learner"]["learner_model_param"]["base_score"] = "2E-1"
    model["learner"]["objective"] = {"name": "binary:logitraw"}
    assert read(tmp_path, model).predict([[0.0, 0.0]])[0] - before == pytest.approx(base, rel=1e-6)


def test_sparse_rows_are_refused_for_xgboost_which_counts_what_is_not_stored_as_missing(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    ranker = read(tmp_path, XGBOOST)
    assert "treats as missing" in ranker.status_
    with refused(WrongTypeError, code="sparse") as caught:
        ranker.predict(sparse.csr_matrix([[0.0, 1.0]]))
    assert "nan for these entries" in str(caught.value)


@pytest.mark.parametrize("value", [None, 3, {"learner": 1}, np.zeros(2)])
def test_what_is_no_model_is_named(value):
    with pytest.raises(WrongTypeError) as caught:
        import_model(value)
    assert type(value).__name__ in str(caught.value)


@pytest.mark.parametrize(
    ("content", "named"),
    [(b"\x78\x9c\x4b", "joblib"), (b"\x08\x07\x12\x04", "ONNX"), (b"###  Model data\n", "format is unknown")],
)
def test_other_files_are_named(tmp_path, content, named):
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ModelFileError, match=named):
        import_model(tmp_path / "model")
