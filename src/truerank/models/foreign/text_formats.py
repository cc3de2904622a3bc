"""Text formats that number the features from 1: RankLib, SVM-light and SVM-rank, and sofia-ml.

RankLib has linear models, RankBoost's stumps, and trees as tags, over float32 features. `x <= threshold` goes left in
trees; a weak ranker of RankBoost is 1 where `x > threshold`. RankLib's loader skips lines that start with `##`, which
are settings of training. The other formats have linear models of float64 features.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np

from truerank.core.float32 import largest_rounding_to
from truerank.data.columns import default_names
from truerank.export.form import Linear, ModelForm, Plain, Stumps
from truerank.models.foreign.model import ForeignModel, Keys, Leaf, Reader, Split, TreeBuilder, at_most

_PAIRS = {"AdaRank": 2, "Coordinate Ascent": 2, "Linear Regression": 2, "RankBoost": 3}
_TREES = ("LambdaMART", "MART", "Random Forests")
_NETS = ("ListNet", "RankNet", "LambdaRank")
_ENSEMBLE, _TREE = Keys("tree"), Keys("weight split", places="id")  # tags and attributes of RankLib
_SPLIT, _OUTPUT = Keys("pos feature threshold split"), Keys("pos output")
_HEAD = Keys(  # a linear kernel has no use for the parameters of others
    ["kernel type", "highest feature index", "number of support vectors plus 1", "number of training documents"]
    + [f"kernel parameter -{letter}" for letter in "dgsru"]
)


def read_ranklib(text: str, reader: Reader, n_features: int | None = None) -> ForeignModel:
    """Read a file that RankLib saved; the first line names the learner."""
    lines = text.splitlines()
    name = lines[0].removeprefix("##").strip() if lines and lines[0].startswith("##") else ""
    body = [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip() and line[:2] != "##"]
    if name in _PAIRS:
        return _read_pairs(name, body, reader, n_features)
    if name in _NETS:
        return _read_net(name, body, reader, n_features)
    if name in _TREES:
        return _read_trees(name, text, reader, n_features)
    known = ", ".join((*_PAIRS, *_TREES, *_NETS))
    raise reader.fail("line 1", f"expected '## ' and one of {known}, got {(lines or [''])[0][:40]!r}")


def _read_pairs(name: str, body: list[tuple[int, str]], reader: Reader, n_features: int | None) -> ForeignModel:
    reader.fail_if(not body, "", f"the file ends before the weights of {name}")
    rows = []
    for number, line in body:
        for word in line.split("#")[0].split():
            parts = word.split(":")
            expected = "fid:weight" if _PAIRS[name] == 2 else "fid:threshold:alpha"
            reader.expect(len(parts) == _PAIRS[name], f"line {number}", expected, word)
            fid = reader.integer(parts[0], f"line {number}", 0 if name == "Linear Regression" else 1)
            rows.append((fid, [reader.number(part, f"line {number}") for part in parts[1:]]))
    names = _numbered_names(max((fid for fid, _ in rows), default=0), n_features, reader)
    columns = np.array([fid - 1 for fid, _ in rows], dtype=np.int64)
    weights = np.array([numbers[-1] for _, numbers in rows])
    if name == "RankBoost":
        places = largest_rounding_to(np.array([reader.float32(numbers[0], "threshold") for _, numbers in rows]))
        form = ModelForm(names, Stumps(columns, places, np.zeros(len(rows), dtype=np.int64), weights))
        return ForeignModel("ranklib", form, float32=True, absent=0.0)
    own = columns >= 0
    coef = np.bincount(columns[own], weights=weights[own], minlength=len(names)) if len(names) else np.zeros(0)
    return _linear_model("ranklib", names, coef, float(weights[~own].sum()), True)


def _read_net(name: str, body: list[tuple[int, str]], reader: Reader, n_features: int | None) -> ForeignModel:
    """Read a net without hidden layers; the score is the weighted sum, since the output increases with it."""
    reader.fail_if(len(body) < 3, "", f"the file ends before the weights of {name}")
    ids = [reader.integer(v, f"line {body[0][0]}", 1) for v in body[0][1].split()]
    if body[1][1].split() != ["0"]:
        raise reader.fail(
            f"line {body[1][0]}",
            "a net with hidden layers is neither linear nor a sum of trees, and cannot be imported",
        )
    names = _numbered_names(max(ids, default=0), n_features, reader)
    coef, bias = np.zeros(len(names)), 0.0
    for number, line in body[2:]:
        words = line.split()
        reader.expect(len(words) >= 3, f"line {number}", "layer, neuron and weights", line)
        neuron = reader.integer(words[1], f"line {number}", 0, len(ids))
        weight = reader.number(words[2], f"line {number}")
        if neuron == len(ids):
            bias = weight
        else:
            coef[ids[neuron] - 1] += weight
    if len(body) - 2 < len(ids):
        raise reader.fail("", f"the file is truncated: it has {len(body) - 2} weights for {len(ids)} features")
    return _linear_model("ranklib", names, coef, bias, True)


def _read_trees(name: str, text: str, reader: Reader, n_features: int | None) -> ForeignModel:
    if found := re.search(r"<[!?].{,38}", text):
        what = f"RankLib writes no XML comment, declaration or entity, got {found[0]!r}. Save the model again"
        raise reader.fail(f"line {1 + text.count(chr(10), 0, found.start())}", what)
    start = text.find("<ensemble")
    try:
        root = ElementTree.fromstring(f"<model>{text[start:] if start >= 0 else ''}</model>")
    except ElementTree.ParseError as error:
        line = error.position[0] + text[: max(start, 0)].count("\n")
        raise reader.fail(f"line {line}", f"the tags do not fit together: {error.msg}") from error
    reader.known(_tags(root), Keys("ensemble"), "")
    bags = list(root)
    reader.fail_if(not bags, "", "there is no <ensemble> in the file")
    builder = TreeBuilder(reader)
    ids: list[int] = []
    for bag, ensemble in enumerate(bags, 1):
        reader.known(_tags(ensemble), _ENSEMBLE, f"ensemble {bag}")
        for number, tree in enumerate(ensemble, 1):
            place = f"ensemble {bag}, tree {number}"
            weight = reader.number(tree.get("weight", "1"), f"{place}, weight") / len(bags)
            look = _look(place, np.float32(weight), ids, reader)
            reader.known(_tags(tree), _TREE, place)
            reader.fail_if(len(tree) != 1, place, f"expected one <split> in each <tree>, got {len(tree)}")
            builder.add(tree[0], look)
    names = _numbered_names(max(ids, default=0), n_features, reader)
    # A random forest is a mean over bags; each bag is a sum in float32.
    form = ModelForm(names, Plain(builder.trees()), float32_sums=True)
    return ForeignModel("ranklib", form, float32=True, absent=0.0)


def _tags(node: Any) -> dict[str, Any]:
    return dict.fromkeys([*node.attrib, *(part.tag for part in node)])


def _look(place: str, weight: np.float32, ids: list[int], reader: Reader) -> Any:
    def text_of(node: Any, tag: str) -> str | None:
        found = [part for part in node if part.tag == tag]
        return None if not found else (found[0].text or "").strip()

    def look(node: Any) -> Leaf | Split:
        reader.choice(node.tag, ("split",), place)
        output = text_of(node, "output")
        reader.known(_tags(node), _SPLIT if output is None else _OUTPUT, place)
        if output is not None:
            return Leaf(float(reader.float32(output, f"{place}, output") * weight))
        feature = reader.integer(text_of(node, "feature"), f"{place}, feature", 1)
        threshold = reader.float32(text_of(node, "threshold"), f"{place}, threshold")
        found = [part for part in node if part.tag == "split"]
        children = {part.get("pos"): part for part in found}
        right = set(children) == {"left", "right"} and len(found) == 2
        reader.expect(right, place, 'an <output>, or one child at pos="left" and one at pos="right"', list(children))
        ids.append(feature)
        return Split(feature - 1, at_most(threshold), children["left"], children["right"], missing_right=True)

    return look


def read_svm_light(text: str, reader: Reader, n_features: int | None = None) -> ForeignModel:
    """Read `w x - b` of a linear kernel, where w is the sum of the support vectors times their multipliers."""
    lines = text.splitlines()
    head: dict[str, str] = {}
    start = len(lines)
    for number, line in enumerate(lines[1:], 2):
        value, mark, comment = line.partition("#")
        comment = comment.strip()
        head[comment] = value.strip()
        if comment.startswith("threshold b"):
            start = number
            break
        reader.expect(mark, f"line {number}", "a value and its comment", line)
    else:
        raise reader.fail("", "the file ends before the threshold b: it is truncated")
    threshold = next(head.pop(comment) for comment in list(head) if comment.startswith("threshold b"))
    reader.known(head, _HEAD, "the part before the support vectors")
    kernel = head.get("kernel type", "")
    reader.fail_if(kernel != "0", "", f"only the linear kernel (type 0) is read, got kernel type {kernel!r}")
    size = reader.integer(head.get("highest feature index"), "highest feature index")
    key = "number of support vectors plus 1"
    claimed = reader.integer(head.get(key), key, 1, 1 << 40)
    vectors = [(n, line) for n, line in enumerate(lines[start:], start + 1) if line.split("#")[0].strip()]
    reader.count(vectors, claimed - 1, "", "support vectors")
    names = _numbered_names(size, n_features, reader)
    coef = np.zeros(len(names))
    for number, line in vectors:
        words = line.split("#")[0].split()
        alpha = reader.number(words[0], f"line {number}")
        for word in words[1:]:
            key, colon, value = word.partition(":")
            if key == "qid":
                continue
            reader.expect(colon, f"line {number}", "id:value", word)
            column = reader.integer(key, f"line {number}", 1, size) - 1
            coef[column] += alpha * reader.number(value, f"line {number}")
    bias = -reader.number(threshold, f"line {start}")
    return _linear_model("svm-light", names, coef, bias, False)


def read_sofia_ml(text: str, reader: Reader) -> ForeignModel:
    """Read one line of weights separated by blanks; the bias is the first, because dimension 0 is 1 in every row."""
    weights = np.array([reader.number(word, f"word {k}") for k, word in enumerate(text.split(), 1)])
    right = len(weights) >= 2 and len(text.strip().splitlines()) == 1
    reader.expect(right, "", "one line with a bias and weights", text)
    return _linear_model("sofia-ml", tuple(default_names(len(weights) - 1)), weights[1:], float(weights[0]), False)


def _numbered_names(largest: int, n_features: int | None, reader: Reader) -> tuple[str, ...]:
    """Return names for the features of a model that numbers them from 1 to `largest`."""
    wrong = n_features is not None and largest > n_features
    reader.fail_if(
        wrong,
        "",
        f"the model uses feature {largest}, but only {n_features} features are named. Pass n_features={largest}",
    )
    return tuple(default_names(n_features or largest))


def _linear_model(tool: str, names: tuple[str, ...], coef: np.ndarray, bias: float, float32: bool) -> ForeignModel:
    """Return a linear model in which absent features are 0."""
    form = ModelForm(names, Linear(coef), intercept=bias, allow_nan=False)
    return ForeignModel(tool, form, float32=float32, absent=0.0)
