"""Write ONNX of few standard operators: input `features` (N, p), output `score` float64 (N,).

The features are float32, or float64 if float32 merges numbers of the training data (`inputs` is "close"). All
arithmetic is float64, so that scores equal those of `predict` up to rounding. Plain trees of unequal shape become a
TreeEnsembleRegressor with float32 features and sums.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.float32 import finite_threshold
from truerank.core.types import ArrayLike
from truerank.export.arrays import arrays_of
from truerank.export.calibration import BETA, PROBABILITY, Calibration, Member
from truerank.export.form import ModelForm, as_oblivious, as_plain, undo_normalizers

_NODE = ("nodes_treeids", "nodes_nodeids", "nodes_modes", "nodes_truenodeids", "nodes_falsenodeids",
         "nodes_featureids", "nodes_values", "nodes_missing_value_tracks_true")  # fmt: skip
_TARGET = ("target_treeids", "target_nodeids", "target_ids", "target_weights")


class _Graph:
    """Nodes and constants of a graph under construction."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: ArrayLike) -> str:
        """Add float64 numbers, int64 numbers or booleans, and return their name."""
        from onnx import numpy_helper

        name, array = f"c{len(self.constants)}", np.array(value, order="C")
        array = array.astype(np.int64) if array.dtype.kind in "iu" else array
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def add(self, kind: str, *inputs: Any, **attributes: Any) -> str:
        """Add a node of named inputs and constants, and return the name of its output."""
        from onnx import helper

        names = [own if isinstance(own, str) else self.constant(own) for own in inputs]
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, names, [name], **attributes))
        return name

    def sum(self, x: str, axis: int) -> str:
        """Return the sum along an axis, without this axis."""
        return self.add("ReduceSum", x, [axis], keepdims=0)


def write(form: ModelForm, name: str, inputs: str) -> bytes:
    """Return the serialised model."""
    from onnx import TensorProto, helper

    graph = _Graph()
    wide = inputs == "close"
    if form.kind == "stumps":
        form = as_oblivious(form)
    if form.kind == "trees":
        total = _trees(graph, form, inputs)
    else:
        raw = x = graph.add("Cast", "features", to=TensorProto.DOUBLE)
        if form.normalizers is not None:
            steps = ("Mul", "Add") if form.normalizers.affine else ("Sub", "Div")
            x = graph.add(steps[1], graph.add(steps[0], x, form.normalizers.first), form.normalizers.second)
        arrays = arrays_of(form)
        if not wide:
            _round_questions(form, arrays, inputs)
        # Rounded questions are about raw features.
        asked = x if wide else raw
        total = {"linear": _linear, "oblivious": _oblivious, "fuzzy": _fuzzy, "polynomial": _polynomial}[form.kind](
            graph, asked if form.kind in ("oblivious", "fuzzy") else x, arrays, asked
        )
        if form.linear_start is not None:
            total = graph.add("Add", total, _linear_start(graph, x, arrays))
    total = graph.add("Add", total, form.start + form.intercept)
    if form.calibration is not None:
        total = _probability(graph, total, form.calibration)
    graph.nodes.append(helper.make_node("Identity", [total], ["score"]))
    number = TensorProto.DOUBLE if wide else TensorProto.FLOAT
    proto = helper.make_graph(
        graph.nodes, name,
        [helper.make_tensor_value_info("features", number, ["N", form.n_features])],
        [helper.make_tensor_value_info("score", TensorProto.DOUBLE, ["N"])],
        graph.constants,
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17)]
    if form.kind == "trees":
        opsets.append(helper.make_opsetid("ai.onnx.ml", 3))
    model = helper.make_model(proto, opset_imports=opsets, producer_name="truerank", ir_version=8)
    helper.set_model_props(model, {"features": "\n".join(form.names)})
    return bytes(model.SerializeToString())


def _round_questions(form: ModelForm, arrays: dict[str, Any], inputs: str) -> None:
    """Convert borders and knots to raw float32 features, although rounding may move a feature across a border."""

    def rounded(features: np.ndarray, limits: np.ndarray) -> np.ndarray:
        flat = limits.ravel()
        if form.normalizers is not None:
            flat = undo_normalizers(form.normalizers, features.ravel(), flat)
        return finite_threshold(flat, inputs).astype(np.float64).reshape(limits.shape)

    def first(features: np.ndarray, values: np.ndarray) -> np.ndarray:
        if inputs == "float64" and form.normalizers is None:  # a value of the data, which rounds as they do
            return rounded(features, values)
        below = rounded(features, np.nextafter(values, -np.inf)).astype(np.float32)
        return np.nextafter(below, np.float32(np.inf)).astype(np.float64)

    if form.kind in ("oblivious", "polynomial"):
        arrays["borders"] = rounded(arrays["features"], arrays["borders"])
    elif "upper" in arrays:
        features = np.repeat(arrays["used"], np.diff(arrays["first"]))
        arrays["upper"] = rounded(features, arrays["upper"])
        arrays["lower"] = first(features, arrays["lower"])


def _columns(graph: _Graph, x: str, columns: np.ndarray) -> str:
    return graph.add("Gather", x, columns.ravel(), axis=1)


def _linear(graph: _Graph, x: str, a: dict[str, Any], raw: str) -> str:
    picked = _columns(graph, x, a["columns"])
    return graph.sum(graph.add("Mul", picked, a["weights"]), 1)


def _linear_start(graph: _Graph, x: str, a: dict[str, Any]) -> str:
    v = _columns(graph, x, a["start_columns"])
    lost = graph.add("IsNaN", v)
    v = graph.add("Max", graph.add("Where", lost, a["start_mean"], v), a["start_low"])
    v = graph.add("Sub", graph.add("Min", v, a["start_high"]), a["start_mean"])
    v = graph.add("Where", lost, 0.0, v)
    return graph.sum(graph.add("Mul", v, a["start_slope"]), 1)


def _leaf_rows(graph: _Graph, x: str, a: dict[str, Any]) -> str:
    """Return the row of each tree's leaf in the flattened values (N, T), int64."""
    trees, depth = a["features"].shape
    v = _columns(graph, x, a["features"])
    largest = np.finfo(np.float64).max
    right = graph.add("Greater", v, np.clip(a["borders"].ravel(), -largest, largest))
    lost = graph.add("And", graph.add("IsNaN", v), a["missing_right"].ravel())
    bits = graph.add("Cast", graph.add("Or", right, lost), to=7)
    bits = graph.add("Reshape", bits, [-1, trees, depth])
    leaf = graph.sum(graph.add("Mul", bits, 1 << np.arange(depth)), 2)
    return graph.add("Add", leaf, np.arange(trees) << depth)


def _oblivious(graph: _Graph, x: str, a: dict[str, Any], raw: str) -> str:
    values = graph.constant(a["values"].ravel())
    return graph.sum(graph.add("Gather", values, _leaf_rows(graph, x, a), axis=0), 1)


def _polynomial(graph: _Graph, x: str, a: dict[str, Any], raw: str) -> str:
    trees, _, size = a["values"].shape
    values = graph.constant(a["values"].reshape(-1, size))
    coefficients = graph.add("Gather", values, _leaf_rows(graph, raw, a), axis=0)  # (N, T, M)
    v = _columns(graph, x, a["used"])
    lost = graph.add("IsNaN", v)
    z = graph.add("Max", graph.add("Where", lost, a["mean"], v), a["low"])
    z = graph.add("Sub", graph.add("Min", z, a["high"]), a["mean"])
    z = graph.add("Where", lost, 0.0, graph.add("Div", z, a["scale"]))
    monomials = [graph.constant(np.ones((1, trees)))]
    for earlier, level in a["table_of_monomials"][1:].tolist():
        own = graph.add("Gather", z, a["columns"][:, level], axis=1)
        monomials.append(graph.add("Mul", monomials[earlier], own))
    total = ""
    for j, monomial in enumerate(monomials):
        picked = graph.add("Gather", coefficients, j, axis=2)
        term = graph.add("Mul", picked, monomial)
        total = term if j == 0 else graph.add("Add", total, term)
    return graph.sum(total, 1)


def _states(graph: _Graph, v: str, lost: str, a: dict[str, Any]) -> str:
    """Find the state of each value by a binary search in all features at once."""
    first, used = a["first"], len(a["used"])
    size = np.diff(first)
    # Each feature's knots are padded with inf to a power of two, so that all features need the same steps.
    width = 1 << max(1, int(size.max(initial=1)).bit_length())
    upper, lower = np.full((used, width), np.inf), np.full((used, width), np.inf)
    for i in range(used):
        upper[i, : size[i]] = a["upper"][first[i] : first[i + 1]]
        lower[i, : size[i]] = a["lower"][first[i] : first[i + 1]]
    flat_upper, flat_lower = graph.constant(upper.ravel()), graph.constant(lower.ravel())
    base = graph.constant(np.arange(used) * width)
    index = graph.add("Mul", graph.add("Cast", lost, to=7), 0)
    step = width >> 1
    while step:
        seen = graph.add("Gather", flat_upper, graph.add("Add", graph.add("Add", index, base), step - 1))
        smaller = graph.add("Cast", graph.add("Less", seen, v), to=7)
        index = graph.add("Add", index, graph.add("Mul", smaller, step))
        step >>= 1
    low = graph.add("Gather", flat_lower, graph.add("Add", index, base))
    inside = graph.add("Cast", graph.add("GreaterOrEqual", v, low), to=7)
    return graph.add("Add", graph.add("Mul", index, 2), inside)


def _fuzzy(graph: _Graph, x: str, a: dict[str, Any], raw: str) -> str:
    """Add the states of values, P(right) of every border, and the levels of fuzzy trees."""
    trees, depth = a["columns"].shape
    v = _columns(graph, x, a["used"])
    lost = graph.add("IsNaN", v)
    state = _states(graph, v, lost, a)  # (N, used)
    first = a["first"]
    place = graph.add("Add", state, 2 * first[:-1] + np.arange(len(a["used"])))
    up, down = (graph.add("Gather", a[key], place) for key in ("up", "down"))
    columns = graph.constant(a["columns"].ravel())

    def by_level(values: str) -> str:
        return graph.add("Gather", values, columns, axis=1)

    above = graph.add("Greater", by_level(state), a["border_states"].ravel())
    share_up, share_down = by_level(up), by_level(down)
    if "log_p" in a:
        start = by_level(graph.add("Gather", a["state_start"], place))
        stop = by_level(graph.add("Gather", a["state_stop"], place))
        steep = a["steep"].astype(bool)[a["columns"].ravel()]
        border, log_p = graph.constant(a["border_place"].ravel()), graph.constant(a["log_p"])
        one, chosen = graph.constant(1.0), graph.constant(steep)

        def steepened(share: str, far: str) -> str:
            power = graph.add("Exp", graph.add("Mul", graph.add("Max", far, 0.0), log_p))
            return graph.add("Mul", share, graph.add("Where", chosen, power, one))

        share_up = steepened(share_up, graph.add("Add", graph.add("Sub", start, border), one))
        share_down = steepened(share_down, graph.add("Sub", border, stop))
    left = graph.add("Sub", 1.0, graph.add("Mul", share_up, a["left_factor"].ravel()))
    other = graph.add("Mul", share_down, a["right_factor"].ravel())
    right = graph.add("Where", above, left, other)
    side = graph.constant(a["missing_right"].ravel().astype(np.float64))
    right = graph.add("Where", by_level(lost), side, right)
    right = graph.add("Reshape", right, [-1, trees, depth])
    value = graph.constant(a["values"][None])  # (1, T, 2^d)
    for level in range(depth - 1, -1, -1):
        own = graph.add("Gather", right, [level], axis=2)  # (N, T, 1)
        half = 1 << level
        low_half = graph.add("Gather", value, np.arange(half), axis=2)
        high_half = graph.add("Gather", value, np.arange(half, 2 * half), axis=2)
        value = graph.add("Add", low_half, graph.add("Mul", own, graph.add("Sub", high_half, low_half)))
    return graph.sum(graph.sum(value, 2), 1)


def _trees(graph: _Graph, form: ModelForm, inputs: str) -> str:
    trees = as_plain(form).body.trees
    if trees.zero_missing.any():
        raise InvalidInputError("ONNX has no trees in which zero means missing. Export to lightgbm, python, c or vespa")
    limits = finite_threshold(trees.thresholds, inputs)
    nodes: list[tuple[Any, ...]] = []
    leaves: list[tuple[Any, ...]] = []
    for number, root in enumerate(trees.roots.tolist()):
        for place, (node, child) in enumerate(zip(*trees.breadth_first(root))):
            if node >= 0:
                question = int(trees.features[node]), float(limits[node]), int(not trees.missing_right[node])
                nodes.append((number, place, "BRANCH_LEQ", child, child + 1, *question))
            else:
                nodes.append((number, place, "LEAF", child, child, 0, 0.0, 0))
                leaves.append((number, place, 0, float(trees.values[~node])))
    score = graph.add(
        "TreeEnsembleRegressor", "features", domain="ai.onnx.ml", n_targets=1, aggregate_function="SUM",
        post_transform="NONE", **dict(zip(_NODE, zip(*nodes))), **dict(zip(_TARGET, zip(*leaves))),
    )  # fmt: skip
    return graph.add("Cast", graph.add("Reshape", score, [-1]), to=11)


def _probability(graph: _Graph, total: str, calibration: Calibration) -> str:
    least, sums = "", list[str]()
    for share, member, closes in calibration.members():
        p = _log_odds_of_beta(graph, total, member) if member.kind == BETA else _of_pieces(graph, total, member)
        p = p if member.kind == PROBABILITY else graph.add("Sigmoid", p)
        sums.append(graph.add("Mul", p, share))
        if closes:
            least, sums = graph.add("Min", least or 1.0, reduce(partial(graph.add, "Add"), sums)), []
    return least


def _log_odds_of_beta(graph: _Graph, total: str, member: Member) -> str:
    zero, one = graph.constant(0.0), graph.constant(1.0)
    opposite = graph.add("Neg", total)
    tail = graph.add("Log", graph.add("Add", one, graph.add("Exp", graph.add("Neg", graph.add("Abs", total)))))
    a, b, c = (graph.constant(v[0]) for v in (member.quadratic, member.linear, member.constant))
    log_p = graph.add("Mul", a, graph.add("Sub", graph.add("Min", total, zero), tail))
    log_q = graph.add("Mul", b, graph.add("Sub", graph.add("Min", opposite, zero), tail))
    return graph.add("Add", graph.add("Sub", log_p, log_q), c)


def _of_pieces(graph: _Graph, total: str, member: Member) -> str:
    wide = graph.add("Unsqueeze", total, [1])
    below = graph.add("Cast", graph.add("Less", member.knots[None], wide), to=7)
    piece = graph.sum(below, 1)
    centre, q, b, c = (
        graph.add("Gather", values, piece)
        for values in (member.centres, member.quadratic, member.linear, member.constant)
    )
    d = graph.add("Sub", total, centre)
    return graph.add("Add", graph.add("Mul", graph.add("Add", graph.add("Mul", q, d), b), d), c)
