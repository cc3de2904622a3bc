"""Errors planted in what the printers write: the certificate refuses each of them, and the script's text is evaluated.

A planted error is a replacement in the exported text. It must occur there, and the export must be refused.
"""

import json
import re

import numpy as np
import pytest

from truerank import (
    CalibratedRanker,
    ObliviousBoosting,
    RankBoost,
    RankerPipeline,
    RankingData,
    RidgeRanker,
    export_model,
)
from truerank.core.errors import InvalidInputError
from truerank.export import formats, run
from truerank.trees.leaves.fuzzy import FuzzyLeaves

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = {"n_estimators": 6, "depth": 3}
MODELS = {
    "linear": RidgeRanker,
    "scaled": lambda: RankerPipeline("unit-deviation", RidgeRanker()),
    "stumps": lambda: RankBoost(6),
    "constant": lambda: ObliviousBoosting("constant", **SMALL),
    "start": lambda: ObliviousBoosting("constant", start="linear", **SMALL),
    "fuzzy": lambda: ObliviousBoosting("fuzzy", **SMALL),
    "steep": lambda: ObliviousBoosting(FuzzyLeaves(p_swap=0.5), **SMALL),
    "polynomial": lambda: ObliviousBoosting("polynomial", **SMALL),
    "calibrated": lambda: CalibratedRanker(ObliviousBoosting("constant", **SMALL), cv=2, random_state=0),
}


def made_up(seed, missing, n=240, digits=2):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 5)), digits)
    y = np.clip(np.round(X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=n)), 0, 2)
    if missing:
        X[rng.uniform(size=X.shape) < 0.1] = np.nan
    return RankingData(X, y, np.repeat(np.arange(n // 20), 20))


def data_for(model, seed):
    """Rows of decimals, with missing values where the model can have them; steep borders need more and finer ones."""
    if model == "steep":
        return made_up(seed, False, 2000, 9)
    return made_up(seed, model not in ("linear", "scaled", "start"))


@pytest.fixture(scope="module")
def fitted():
    """Models by kind."""
    return {name: make().fit(data_for(name, 0)) for name, make in MODELS.items()}


def changed(text, old, new):
    """Replace the first match of a pattern, in the source of a script if it is one."""
    assert re.search(old, text)
    if text.startswith('{"script"'):
        script = json.loads(text)
        part = script["script"]
        where = "source" if re.search(old, part["source"]) else "params"
        if where == "source":
            part["source"] = re.sub(old, new, part["source"], count=1)
        else:
            part["params"] = json.loads(re.sub(old, new, json.dumps(part["params"]), count=1))
        return json.dumps(script)
    return re.sub(old, new, text, count=1)


def other_digit(found):
    """Another number of the same length; LightGBM counts on lengths."""
    return f"{found[1]}{(int(found[2]) + 5) % 10}"


def one_less(found):
    """A loop over all trees but the last."""
    return "range(trees - 1)" if found[0].startswith("range") else "t < trees - 1"


# Models, formats, and what is replaced by what.
CURLY = ("painless", "c")
PLANTED = [
    # A constant shift, a sign, a lost constant.
    *((model, CURLY, r"return ", "total = total + 42; return ") for model in ("constant", "linear")),
    ("constant", CURLY, r"return (Math|total)", r"total = -total; return \1"),
    ("constant", ("python",), r"return total", "return total + 42"),
    ("constant", (*CURLY, "python"), r"total( |: float )= start", r"total\1= 0.0"),
    # Comparisons.
    ("constant", (*CURLY, "python"), r"v > ", "v >= "),
    ("constant", CURLY, r"v > ", "v < "),
    ("constant", (*CURLY, "python"), r"v != v", "v == v"),
    ("stumps", CURLY, r"\) < v|\] < v", lambda found: found[0].replace("<", "<=")),
    ("fuzzy", (*CURLY, "python"), r"v >= ", "v > "),
    ("polynomial", (*CURLY, "python"), r"v > ", "v >= "),
    # Missing values.
    ("constant", CURLY, r" \|\| \(\(v != v\)[^?]*? == 1\)\)", ""),
    ("constant", ("painless",), r"1\.7e308", "1.8e308"),
    ("fuzzy", CURLY, r"state\[i\] = -1", "state[i] = 0"),
    ("stumps", (*CURLY, "python"), r"absent_values(\.get\(|\[)c", r"absent_values\g<1>0"),
    ("start", CURLY, r"v == v", "v != v"),
    # Trees, levels and leaves.
    ("constant", (*CURLY, "python"), r"range\(trees\)|t < trees", one_less),
    ("constant", CURLY, r"level < depth", "level < depth - 1"),
    ("constant", CURLY, r"<< level", "<< (depth - 1 - level)"),
    ("fuzzy", CURLY, r"level > -1", "level > 0"),
    ("constant", CURLY, r"\+ leaf", "+ (leaf & 6)"),
    # Arithmetic.
    ("linear", CURLY, r"own \+ \(", "own - ("),
    ("scaled", CURLY, r"row\[k\] - ", "row[k] + "),
    ("scaled", CURLY, r"\) / ", ") * "),
    ("fuzzy", CURLY, r"1\.0 - ", "1.0 + "),
    ("steep", ("c", "python"), r"\+ 1\.0", "+ 0.0"),
    ("steep", ("c", "python"), r"log_p \* ", "-log_p * "),
    ("polynomial", CURLY, r"min\((?=Math|fmax)", lambda found: found[0].replace("min", "max")),
    ("start", CURLY, r"total = total \+ begun", "total = total - begun"),
    ("calibrated", CURLY, r"chance \+ ", "chance - "),
    ("calibrated", CURLY, r"\* d\) \+", "* d) -"),
    # Tables and numbers.
    ("constant", ("painless",), r"field\.value", "0.0"),
    ("constant", ("painless",), r"logged\[k\]; ", "logged[0]; "),
    ("constant", ("painless",), r"\"values\": \[(-?)", r'"values": [\g<1>1'),
    ("constant", ("c",), r"values\[\d+\] = \{\n(-?)", r"\g<0>1"),
    ("fuzzy", ("painless",), r"\"border_states\": \[(\d+)", r'"border_states": [\g<1>9'),
    # Vespa's expressions.
    ("constant", ("vespa",), r" <= | > ", lambda found: {" <= ": " < ", " > ": " >= "}[found[0]]),
    ("constant", ("vespa",), r"\n\+ if .*", ""),
    ("fuzzy", ("vespa",), r"1\.0 - ", "1.0 + "),
    ("polynomial", ("vespa",), r"max\(", "min("),
    ("linear", ("vespa",), r" \* ", " / "),
    # Trees of other programs.
    ("constant", ("solr",), r'"left"(.*?)"right"', None),
    ("constant", ("solr",), r'"value": "-?\d', lambda found: f"{found[0]}1"),
    ("constant", ("opensearch-ltr",), r"<threshold> ", "<threshold> 1"),
    ("constant", ("opensearch-ltr",), r"(?s)<tree id=.*?</tree>", ""),
    ("constant", ("xgboost",), r'"default_left": \[\d', lambda found: found[0][:-1] + str(1 - int(found[0][-1]))),
    ("constant", ("lightgbm",), r"(leaf_value=-?[0.]*)([1-9])", other_digit),
    ("constant", ("lightgbm",), r"(threshold=-?)(\d)", other_digit),
]
CASES = [(model, format, old, new) for model, many, old, new in PLANTED for format in many]


def swapped(text):
    """A model of Solr whose first tree has its sides exchanged."""
    model = json.loads(text)
    root = next(own["root"] for own in model["params"]["trees"] if "left" in own["root"])
    root["left"], root["right"] = root["right"], root["left"]
    return json.dumps(model)


def plant(monkeypatch, format, change):
    """Let the writer of a format make an error."""
    real = formats.resolve

    def resolved(name):
        writer = real(name)
        return (
            (lambda *given, **more: change(writer(*given, **more)))
            if name == formats.FORMATS[format].module
            else writer
        )

    monkeypatch.setattr(formats, "resolve", resolved)


def test_there_are_many_planted_errors():
    assert len(CASES) >= 50


@pytest.mark.parametrize(("model", "format", "old", "new"), CASES)
def test_a_planted_error_is_refused(fitted, monkeypatch, model, format, old, new):
    if format == "c":  # as where there is no compiler; compiled programs follow below
        monkeypatch.setattr(run.shutil, "which", lambda name: None)
    data = data_for(model, 1)
    absent = None
    if formats.FORMATS[format].missing == "zero":
        data, absent = data.replaced(X=np.nan_to_num(data.X)), "zero"
    right = export_model(fitted[model], format, certify=data, absent=absent)
    assert not right.certificate.score_differences
    wrong = swapped(right) if new is None else changed(right, old, new)
    assert wrong != right
    plant(monkeypatch, format, lambda text: swapped(text) if new is None else changed(text, old, new))
    with pytest.raises(InvalidInputError):
        export_model(fitted[model], format, certify=data, absent=absent)
