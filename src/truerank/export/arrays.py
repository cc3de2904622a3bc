"""Convert a form to flat arrays for the formats that are programs, and for ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.export.form import ModelForm
from truerank.matrices.rows import FEW
from truerank.trees.leaves.fuzzy import FuzzyPredictor, knots_first
from truerank.trees.leaves.polynomial import monomial_table
from truerank.trees.stumps import StepFunctions

Arrays = dict[str, Any]


def arrays_of(form: ModelForm) -> Arrays:
    """Return the model's arrays and numbers by name; a sum in the order of `predict` has the same bits."""
    arrays = {"linear": _linear, "stumps": _stumps, "oblivious": _oblivious, "trees": _trees, "fuzzy": _fuzzy,
              "polynomial": _polynomial}[form.kind](form)  # fmt: skip
    arrays |= {"start": float(form.start), "intercept": float(form.intercept)}
    if form.linear_start is not None:
        scaling = form.linear_start.scaling
        slope = form.linear_start.weights / scaling.scale
        used = np.flatnonzero(slope)
        arrays |= {
            "start_columns": used, "start_slope": slope[used], "start_mean": scaling.mean[used],
            "start_low": scaling.low[used], "start_high": scaling.high[used],
        }  # fmt: skip
    if form.normalizers is not None:
        arrays |= {"norm_first": form.normalizers.first, "norm_second": form.normalizers.second}
    if form.calibration is not None:
        arrays |= form.calibration.arrays()
    return arrays


def _linear(form: ModelForm) -> Arrays:
    weights = form.body.weights
    used = np.flatnonzero(weights)
    # `linear_scores` adds few columns one after the other, and many in eight sums.
    lanes = len(used) > FEW
    columns = np.arange(len(weights)) if lanes else used
    return {"columns": columns, "weights": weights[columns], "lanes": len(columns) - len(columns) % 8 if lanes else 0}


def _stumps(form: ModelForm) -> Arrays:
    body = form.body
    steps = StepFunctions(body.features, body.thresholds, body.missing, body.weights)
    return {
        "columns": steps.columns, "steps": steps.steps, "starts": steps.starts, "values": steps.values,
        "absent_values": steps.absent,
    }  # fmt: skip


def _oblivious(form: ModelForm) -> Arrays:
    own = form.body.trees
    return _sizes(own) | {
        "features": own.features, "borders": own.borders, "missing_right": own.missing_right, "values": own.values,
    }  # fmt: skip


def _sizes(trees: Any) -> Arrays:
    return dict(zip(("trees", "depth"), trees.missing_right.shape))


def _trees(form: ModelForm) -> Arrays:
    own = form.body.trees
    return {
        "trees": len(own.roots), "roots": own.roots, "features": own.features, "thresholds": own.thresholds,
        "missing": own.missing_right + 2 * own.zero_missing, "children": np.stack([own.left, own.right], axis=1),
        "values": own.values,
    }  # fmt: skip


def _fuzzy(form: ModelForm) -> Arrays:
    body = form.body
    own = FuzzyPredictor(body.trees, body.places, body.p_swap, body.ties)
    factors = own.factors
    (start, stop), by_state = factors.blocks, np.empty((2, len(factors.pairs) // 2))
    by_state[:, knots_first(body.places.sizes)] = factors.pairs.reshape(-1, 2).T
    up, down = by_state
    steep = {"log_p": float(factors.log_p), "state_start": start, "state_stop": stop} if factors.steep.any() else {}
    return _sizes(own) | {
        "used": body.places.features, "first": factors.first, "lower": body.places.lower, "upper": body.places.upper,
        "up": up, "down": down, "steep": factors.steep, "columns": own.columns, "border_states": own.border_states,
        "left_factor": own.border_factors[..., 0], "right_factor": own.border_factors[..., 1],
        "border_place": own.border_factors[..., 2], "missing_right": own.missing_right, "values": own.values, **steep,
    }  # fmt: skip


def _polynomial(form: ModelForm) -> Arrays:
    body = form.body
    own, scaling = body.trees, body.scaling
    used, table = np.unique(own.features), monomial_table(own.depth, body.degree)
    return _oblivious(form) | {
        "monomials": len(table), "table_of_monomials": table, "used": used,
        "columns": np.searchsorted(used, own.features), "mean": scaling.mean[used], "scale": scaling.scale[used],
        "low": scaling.low[used], "high": scaling.high[used],
    }  # fmt: skip
