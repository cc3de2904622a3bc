"""Scripts for other libraries run with another import, or with the line that one error gives."""

from __future__ import annotations

import ast
import re
import warnings

import numpy as np
import pytest

from compat.ported_scripts import SCRIPTS
from truerank import evaluate, load_sample
from truerank.core.errors import InvalidInputError

pandas = pytest.importorskip("pandas")
IMPORTS = [
    (r"^import (?:lightgbm|xgboost|catboost) as (\w+)$", r"from truerank.compat import port as \1"),
    (r"^from (?:lightgbm|xgboost|catboost)(?:\.sklearn)? import", "from truerank.compat.port import"),
]
PASTED = {"lightgbm, recommendations with dart", "lightgbm, penalties", "pyterrier, xgboost", "xgboost, demo/rank",
          "xgboost, penalties", "catboost, categories and pairs", "lightgbm, native with records"}  # fmt: skip


@pytest.fixture(scope="module")
def inputs():
    data, names = load_sample(), {}
    for suffix, first in (("", 0), ("_valid", 20), ("_test", 40)):
        part = data.take_queries(range(first, first + 20))
        X = np.array(part.X)
        X[:, 3] = np.round(X[:, 3])
        names |= {f"X{suffix}": X, f"y{suffix}": part.y.astype(int), f"qid{suffix}": part.qid}
        names |= {f"group{suffix}": np.asarray(part.group_sizes)}
        names[f"frame{suffix}"] = pandas.DataFrame(X, columns=part.feature_names).assign(qid=np.asarray(part.qid))
    return names


def ported(script):
    for old, new in IMPORTS:
        script = re.sub(old, new, script, flags=re.MULTILINE)
    assert "truerank" in script
    return script


def attempt(script, inputs):
    """Run a script; return its scores, or the error."""
    names = dict(inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(script, "script", "exec"), names)
        except InvalidInputError as error:
            return error
    return names["scores"]


def pasted(script, error):
    """The script with the constructor that the error gives in the place of its own."""
    if "best_iteration_" in str(error):  # LightGBM's Booster counts it from 1
        return re.sub(r"\.best_iteration\b", ".best_iteration_", script)
    line = re.search(r"^Write: (\w+\(.*\))(?:\.fit.*)?$", str(error), re.MULTILINE)
    assert line, str(error)
    tree = ast.parse(script)
    made = ("LGBMRanker", "XGBRanker", "CatBoostRanker", "CatBoost", "train")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in made:
            own = ast.get_source_segment(script, node)
            new = line[1] if not own.split("(")[0].endswith("train") else None
            if new is None:  # train(params, rows, …): the settings go to params
                settings = ast.get_source_segment(script, node.args[0])
                new = own.replace(settings, "dict" + line[1].removeprefix("ObliviousBoosting"), 1)
            return "from truerank import ObliviousBoosting" + script.replace(own, new)
    raise AssertionError("no ranker is made")


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_after_one_pasted_line_at_most(name, inputs):
    script = ported(SCRIPTS[name])
    found = attempt(script, inputs)
    edits = 0
    if isinstance(found, Exception):
        found, edits = attempt(pasted(script, found), inputs), 1
    assert not isinstance(found, Exception), found
    assert edits == (name in PASTED)
    value = evaluate(inputs["y_test"], found, "nDCG@10", qid=inputs["qid_test"])["nDCG@10"]
    assert value > 0.35  # random orders have 0.17


def test_names_without_a_counterpart_are_answered_with_what_to_use():
    from truerank.compat import port

    with pytest.raises(AttributeError, match=r"has no cv: use truerank\.cross_validate"):
        port.cv
    assert not hasattr(port, "no_such_name")
    assert port.Dataset([[1.0]], [1]).create_valid([[2.0]], [0], group=[1]).as_set[:2] == ([[2.0]], [0])
