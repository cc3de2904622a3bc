"""Damaged and hostile model files: each is refused with the file's name and the place, whatever it claims."""

import copy
import json
import struct

import numpy as np
import pytest

from truerank import import_model
from truerank.core.errors import ModelFileError

LIGHTGBM = """tree
version=v4
num_class=1
num_tree_per_iteration=1
max_feature_idx=1
feature_names=a b

Tree=0
num_leaves=3
num_cat=0
split_feature=0 1
threshold=0.5 1.5
decision_type=8 10
left_child=-1 -2
right_child=1 -3
leaf_value=1 2 3
is_linear=0

end of trees
"""
LIGHTGBM_OF_CATEGORIES = (
    LIGHTGBM.replace("num_cat=0", "num_cat=1\ncat_boundaries=0 1\ncat_threshold=6")
    .replace("threshold=0.5 1.5", "threshold=0 1.5").replace("decision_type=8", "decision_type=1")
)  # fmt: skip
XGBOOST_CATEGORIES = {
    "split_type": [1, 0, 0], "categories_nodes": [0], "categories_segments": [0], "categories_sizes": [1],
    "categories": [2],
}  # fmt: skip
XGBOOST_TREE = {
    "left_children": [1, -1, -1],
    "right_children": [2, -1, -1],
    "split_indices": [1, 0, 0],
    "split_conditions": [0.5, 1.0, 2.0],
    "default_left": [0, 0, 0],
    "tree_param": {"num_nodes": "3"},
}
XGBOOST = {
    "learner": {
        "feature_names": [],
        "learner_model_param": {"num_feature": "2", "num_class": "0", "base_score": "[5E-1]"},
        "gradient_booster": {
            "name": "gbtree",
            "model": {"gbtree_model_param": {"num_trees": "1"}, "trees": [XGBOOST_TREE]},
        },
    }
}
CATBOOST = {
    "features_info": {"float_features": [{"flat_feature_index": 0}, {"flat_feature_index": 1}]},
    "scale_and_bias": [1, [0.5]],
    "oblivious_trees": [
        {
            "leaf_values": [1, 2],
            "splits": [{"border": 0.5, "float_feature_index": 1, "split_type": "FloatFeature"}],
        }
    ],
}
SOLR = {
    "class": "org.apache.solr.ltr.model.MultipleAdditiveTreesModel",
    "features": [{"name": "a"}],
    "params": {
        "trees": [{"weight": 1, "root": {"feature": "a", "threshold": 1, "left": {"value": 1}, "right": {"value": 2}}}]
    },
}
DUMP = [
    {
        "nodeid": 0, "split": "f0", "split_condition": 0.5, "yes": 1, "no": 2, "missing": 1,
        "children": [{"nodeid": 1, "leaf": 1}, {"nodeid": 2, "leaf": 2}],
    }
]  # fmt: skip
LTR = {"model": {"name": "m", "model": {"type": "model/linear", "definition": '{"a": 1.0}'}}}
LIGHTGBM_JSON = {
    "name": "tree", "version": "v4", "num_class": 1, "feature_names": ["a"],
    "tree_info": [{"tree_index": 0, "tree_structure": {
        "split_feature": 0, "threshold": 0.5, "decision_type": "<=", "default_left": True, "missing_type": "NaN",
        "left_child": {"leaf_value": 1}, "right_child": {"leaf_value": 2},
    }}],
}  # fmt: skip
RANKLIB = (
    '## LambdaMART\n\n<ensemble>\n<tree id="1" weight="0.1"><split><feature>1</feature><threshold>0.5</threshold>'
    '<split pos="left"><output>1</output></split><split pos="right"><output>2</output></split></split></tree>\n'
    "</ensemble>\n"
)
SVM = """SVM-light Version V6.02
0 # kernel type
2 # highest feature index
2 # number of support vectors plus 1
0 # threshold b
1 1:1 #
"""
BOMB = (
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
    '<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>'
)


def changed(document, *path_and_value):
    """A copy of a document with the value at a path replaced."""
    *path, last, value = path_and_value
    result = copy.deepcopy(document)
    place = result
    for key in path:
        place = place[key]
    place[last] = value
    return json.dumps(result)


ROOT = ("tree_info", 0, "tree_structure")
TREES = ("learner", "gradient_booster", "model", "trees", 0)
DEEP = "[" * 200_000
HOSTILE = {
    "empty": ("", "empty"),
    "unknown text": ("hello", "format is unknown"),
    "unknown object": ('{"a": 1}', "format is unknown"),
    "binary": (b"\x80\x81\x82\x00", "byte 0"),
    "deep json": (DEEP, "deep"),
    "cut json": (json.dumps(XGBOOST)[:-5], "line 1, column"),
    "twice the key": ('{"learner": 1, "learner": 2}', "twice"),
    "lightgbm truncated": (LIGHTGBM[:150], "truncated"),
    "lightgbm cycle": (LIGHTGBM.replace("right_child=1 -3", "right_child=1 0"), "line 8, Tree=0"),
    "lightgbm self": (LIGHTGBM.replace("left_child=-1 -2", "left_child=0 -2"), "two parents"),
    "lightgbm feature": (LIGHTGBM.replace("split_feature=0 1", "split_feature=0 7"), "split_feature"),
    "lightgbm child": (LIGHTGBM.replace("right_child=1 -3", "right_child=5 -3"), "right_child"),
    "lightgbm nan": (LIGHTGBM.replace("threshold=0.5", "threshold=nan"), "threshold"),
    "lightgbm leaves": (LIGHTGBM.replace("num_leaves=3", "num_leaves=1000000000"), "expected 1000000000 values"),
    "lightgbm categories": (LIGHTGBM.replace("num_cat=0", "num_cat=1"), "cat_boundaries"),
    "lightgbm category": (LIGHTGBM_OF_CATEGORIES.replace("cat_threshold=6", "cat_threshold=6 6"), "cat_threshold"),
    "lightgbm set": (LIGHTGBM_OF_CATEGORIES.replace("threshold=0 ", "threshold=4 "), "threshold"),
    "xgboost categories": (changed(XGBOOST, *TREES, "split_type", [1, 0, 0]), "categories_nodes"),
    "xgboost category": (
        changed(XGBOOST, *TREES, {**XGBOOST_TREE, **XGBOOST_CATEGORIES, "categories": [-1]}), "categories",
    ),
    "xgboost cut categories": (
        changed(XGBOOST, *TREES, {**XGBOOST_TREE, **XGBOOST_CATEGORIES, "categories_sizes": [2]}), "categories_sizes",
    ),
    "lightgbm names": (LIGHTGBM.replace("feature_names=a b", "feature_names=a a"), "same name"),
    "lightgbm classes": (LIGHTGBM.replace("iteration=1", "iteration=3"), "num_tree_per_iteration"),
    "lightgbm value": (LIGHTGBM.replace("leaf_value=1", "leaf_value=inf"), "leaf_value"),
    "lightgbm word": (LIGHTGBM.replace("leaf_value=1", "leaf_value=one"), "leaf_value"),
    "lightgbm order": (LIGHTGBM.replace("Tree=0", "Tree=3"), "line 8"),
    "xgboost cycle": (changed(XGBOOST, *TREES, "left_children", [0, -1, -1]), "two parents"),
    "xgboost child": (changed(XGBOOST, *TREES, "left_children", [9, -1, -1]), "node 0"),
    "xgboost one child": (changed(XGBOOST, *TREES, "left_children", [-1, -1, -1]), "one child"),
    "xgboost feature": (changed(XGBOOST, *TREES, "split_indices", [2, 0, 0]), "split_indices"),
    "xgboost lengths": (changed(XGBOOST, *TREES, "split_conditions", [1.0]), "split_conditions"),
    "xgboost nan": (changed(XGBOOST, *TREES, "split_conditions", [float("nan"), 1, 2]), "split_conditions"),
    "xgboost nodes": (changed(XGBOOST, *TREES, "tree_param", {"num_nodes": "1000000000"}), "num_nodes"),
    "xgboost trees": (
        changed(XGBOOST, "learner", "gradient_booster", "model", "gbtree_model_param", {"num_trees": "1000000000"}),
        "num_trees",
    ),
    "xgboost features": (
        changed(XGBOOST, "learner", "learner_model_param", "num_feature", "99999999999"), "num_feature",
    ),
    "xgboost base": (changed(XGBOOST, "learner", "learner_model_param", "base_score", "[1,2]"), "base_score"),
    "xgboost booster": (changed(XGBOOST, "learner", "gradient_booster", "name", "tree"), "gbtree"),
    "ubj huge array": (b"{L" + struct.pack(">q", 1) + b"a[$d#L" + struct.pack(">q", 10**12), "claimed"),
    "ubj negative": (b"{L" + struct.pack(">q", -1), "length"),
    "ubj deep": (b"{i\x01a" + b"[" * 1000, "nested"),
    "ubj cut": (b"{L\x00\x00", "claimed"),
    "dump ids": (
        changed(
            DUMP, 0, "children", 0,
            {"nodeid": 1, "split": "f0", "split_condition": 0, "yes": 3, "no": 0, "missing": 0,
             "children": [{"nodeid": 3, "leaf": 1}, {"nodeid": 0, "leaf": 1}]},
        ),
        "two nodes",
    ),
    "dump yes": (changed(DUMP, 0, "yes", 7), "yes"),
    "dump children": (changed(DUMP, 0, "children", []), "children"),
    "dump feature": (changed(DUMP, 0, "split", "f999999999"), "f999999999"),
    "catboost depth": (changed(CATBOOST, "oblivious_trees", 0, "splits", [{}] * 40), "depth 40"),
    "catboost leaves": (changed(CATBOOST, "oblivious_trees", 0, "leaf_values", [1, 2, 3]), "leaf_values"),
    "catboost border": (
        changed(CATBOOST, "oblivious_trees", 0, "splits", 0, "border", float("nan")), "oblivious_trees[0].splits[0]",
    ),
    "catboost feature": (
        changed(CATBOOST, "oblivious_trees", 0, "splits", 0, "float_feature_index", 5), "float_feature_index",
    ),
    "catboost columns": (
        changed(CATBOOST, "features_info", "float_features", 0, "flat_feature_index", 9_999_999), "flat_feature_index",
    ),
    "solr feature": (changed(SOLR, "params", "trees", 0, "root", "feature", "zzz"), "params.trees[0]"),
    "solr threshold": (changed(SOLR, "params", "trees", 0, "root", "threshold", "NaN"), "threshold"),
    "solr child": (changed(SOLR, "params", "trees", 0, "root", "left", 3), "left"),
    "solr class": (changed(SOLR, "class", "java.lang.Runtime"), "class"),
    "ltr type": (changed(LTR, "model", "model", "type", "model/evil"), "model.type"),
    "ltr inner json": (changed(LTR, "model", "model", "definition", '{"a": '), "no valid JSON"),
    "ltr weight": (changed(LTR, "model", "model", "definition", '{"a": "x"}'), "model.definition.a"),
    "ranklib bomb": (RANKLIB.replace("<ensemble>", BOMB + "<ensemble>"), "declaration"),
    "ranklib bomb inside": (RANKLIB.replace("<output>1<", f"<output>{BOMB}&c;<"), "declaration"),
    "ranklib cut": (RANKLIB[:-40], "tags do not fit"),
    "ranklib one side": (RANKLIB.replace('pos="right"', 'pos="left"'), "ensemble 1, tree 1"),
    "ranklib feature": (RANKLIB.replace("<feature>1<", "<feature>0<"), "feature"),
    "ranklib huge feature": ("## AdaRank\n1000000000:1.0\n", "line 2"),
    "ranklib pair": ("## AdaRank\n## Iteration = 3\n3=0.5\n", "line 3"),
    "ranklib empty": ("## RankBoost\n## Iteration = 3\n", "ends before"),
    "ranklib name": ("## Deep Net\n", "line 1"),
    "ranklib hidden": ("## RankNet\n1 2\n1\n10\n0 0 0.5\n", "hidden"),
    "svm kernel": (SVM.replace("0 # kernel", "2 # kernel"), "kernel type"),
    "svm count": (SVM.replace("2 # number", "1000000000 # number"), "support vectors"),
    "svm feature": (SVM.replace("1:1", "9:1"), "line 6"),
    "svm cut": (SVM[:40], "truncated"),
    "sofia": ("0.5 1 nan\n", "word 3"),
    "digits": ('{"learner": ' + "9" * 5000 + "}", "not valid JSON"),
    "twice one of many keys": (
        "{" + ", ".join(f'"k{k}": 0' for k in range(50_000)) + ', "k49999": 0}', "the key 'k49999' twice",
    ),
    "lightgbm json threshold": (changed(LIGHTGBM_JSON, *ROOT, "threshold", 10**400), "tree_info[0].threshold"),
    "lightgbm underscore": (LIGHTGBM.replace("leaf_value=1", "leaf_value=1_0"), "leaf_value"),
    "lightgbm json missing": (changed(LIGHTGBM_JSON, *ROOT, "missing_type", ["NaN"]), "missing_type"),
    "lightgbm json child": (changed(LIGHTGBM_JSON, *ROOT, "left_child", [1]), "left_child"),
    "lightgbm json names": (changed(LIGHTGBM_JSON, "feature_names", 3), "feature_names"),
    "lightgbm sum": (LIGHTGBM.replace("leaf_value=1 2 3", "leaf_value=1e308 1e400 3"), "leaf_value"),
    "xgboost names": (changed(XGBOOST, "learner", "feature_names", 5), "learner.feature_names"),
    "xgboost names in a text": (changed(XGBOOST, "learner", "feature_names", "ab"), "learner.feature_names"),
    "xgboost kinds of splits": (changed(XGBOOST, *TREES, "split_type", 5), "split_type"),
    "xgboost default": (changed(XGBOOST, *TREES, "default_left", [{}, 0, 0]), "node 0, default_left"),
    "xgboost beyond float32": (changed(XGBOOST, *TREES, "split_conditions", [1e300, 1, 2]), "node 0, split_conditions"),
    "xgboost base digits": (
        changed(XGBOOST, "learner", "learner_model_param", "base_score", f"[{'9' * 5000}]"), "base_score",
    ),
    "xgboost base deep": (changed(XGBOOST, "learner", "learner_model_param", "base_score", DEEP), "deep"),
    "xgboost base beyond float32": (
        changed(XGBOOST, "learner", "learner_model_param", "base_score", "1e39"), "base_score",
    ),
    "xgboost linear": (
        changed(XGBOOST, "learner", "gradient_booster", {"name": "gblinear", "model": {"weights": [1, 1e39, 0]}}),
        "weights",
    ),
    "xgboost best round": (changed(XGBOOST, "learner", "attributes", {"best_iteration": "-1"}), "best_iteration"),
    "xgboost many features": (changed(XGBOOST, "learner", "learner_model_param", "num_feature", "9999999"), "9999999"),
    "ubj nothing": (b"{i\x01a[$N#L" + struct.pack(">q", 4), "byte 7"),
    "ubj huge object": (b"{$i#L" + struct.pack(">q", 10**12), "claimed"),
    "dump list as yes": (changed(DUMP, 0, "yes", [1]), "yes"),
    "dump object as missing": (changed(DUMP, 0, "missing", {}), "missing"),
    "dump leaf": (changed(DUMP, 0, "children", 0, "leaf", 1e39), "leaf"),
    "dump threshold": (changed(DUMP, 0, "split_condition", [1, 2]), "categorical"),
    "catboost memory": (
        changed(CATBOOST, "oblivious_trees", [
            {"splits": CATBOOST["oblivious_trees"][0]["splits"] * 16, "leaf_values": [0] * (1 << 16)},
            *[{"splits": [], "leaf_values": [0]}] * 5000,
        ]),
        "oblivious_trees",
    ),
    "catboost scale": (changed(CATBOOST, "scale_and_bias", [1e308, [0]]), "finite"),
    "catboost border beyond float32": (
        changed(CATBOOST, "oblivious_trees", 0, "splits", 0, "border", 1e300), "oblivious_trees[0].splits[0]",
    ),
    "catboost name": (changed(CATBOOST, "features_info", "float_features", 0, "feature_id", [1]), "features_info"),
    "catboost trees": (changed(CATBOOST, "oblivious_trees", {"0": {}}), "oblivious_trees"),
    "solr norm": (
        changed(SOLR, "features", 0, "norm", {"class": "org.apache.solr.ltr.norm.MinMaxNormalizer", "params": [1]}),
        "features[0].norm.params",
    ),
    "solr wide norm": (
        changed(SOLR, "features", 0, "norm", {
            "class": "org.apache.solr.ltr.norm.MinMaxNormalizer", "params": {"min": "-3e38", "max": "3e38"},
        }),
        "normalizers",
    ),
    "solr norm of nothing": (
        changed(SOLR, "features", 0, "norm", {
            "class": "org.apache.solr.ltr.norm.StandardNormalizer", "params": {"avg": "1", "std": "0"},
        }),
        "divides by 0",
    ),
    "solr norm that turns": (
        changed(SOLR, "features", 0, "norm", {
            "class": "org.apache.solr.ltr.norm.StandardNormalizer", "params": {"avg": "1", "std": "-2"},
        }),
        "negative",
    ),
    "solr leaf": (changed(SOLR, "params", "trees", 0, "root", {"value": "1e300"}), "value"),
    "solr product": (
        changed(SOLR, "params", "trees", 0, {"weight": "1e30", "root": {"value": "1e30"}}), "finite",
    ),
    "ltr features twice": (
        changed(LTR, "feature_set", {"features": [{"name": "a"}, {"name": "a"}]}), "same name",
    ),
    "ltr feature set": (changed(LTR, "feature_set", {"features": {"a": 1}}), "feature_set"),
    "ranklib threshold": (RANKLIB.replace("0.5<", "1e39<"), "threshold"),
    "ranklib sum": ("## AdaRank\n1:1e308 1:1e308\n", "weights"),
    "ranklib boost": ("## RankBoost\n1:1e39:0.5\n", "threshold"),
    "ranklib weight": (RANKLIB.replace('weight="0.1"', 'weight="nan"'), "weight"),
    "ranklib deep": (
        RANKLIB.split("<split>")[0] + "<split>" * 100_000 + "</tree></ensemble>", "tags do not fit",
    ),
    "svm sum": (SVM.replace("1 1:1", "1e308 1:1e308"), "weights"),
    "svm many features": (SVM.replace("2 # highest", "99999999 # highest"), "highest feature index"),
    "svm threshold": (SVM.replace("0 # threshold", "nan # threshold"), "line 5"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_imports_are_refused(tmp_path, name):
    content, words = HOSTILE[name]
    path = tmp_path / "model.bin"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ModelFileError) as caught:
        import_model(path)
    assert str(caught.value).startswith(str(path))
    assert words in str(caught.value)


def test_the_undamaged_files_are_read(tmp_path):
    assert len(HOSTILE) >= 40
    path = tmp_path / "model"
    rows = np.array([[0.0, 1.0], [1.0, 2.0], [np.nan, np.nan]])
    for text, expected in [
        (LIGHTGBM, [1, 3, 2]),
        (json.dumps(XGBOOST), [2.5, 2.5, 2.5]),
        (json.dumps(CATBOOST), [2.5, 2.5, 1.5]),
        (LIGHTGBM_OF_CATEGORIES, [2, 1, 2]),
        (changed(XGBOOST, *TREES, XGBOOST_TREE | XGBOOST_CATEGORIES), [1.5, 2.5, 2.5]),
        (RANKLIB, None),
        (SVM, None),
    ]:
        path.write_text(text)
        ranker = import_model(path, n_features=2)
        if expected is not None:
            assert ranker.predict(rows).tolist() == expected
    for document in (SOLR, DUMP, LTR, LIGHTGBM_JSON):
        path.write_text(json.dumps(document))
        assert import_model(path).predict([[1.0]]).shape == (1,)
