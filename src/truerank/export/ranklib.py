"""Write RankLib's text: Coordinate Ascent (linear models), RankBoost (stumps) or LambdaMART (trees). Ids count from
1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.float32 import finite_threshold, float32_threshold
from truerank.export.form import Linear, ModelForm, Stumps, as_linear, as_plain
from truerank.export.nested import nested_trees


def write(form: ModelForm, name: str, inputs: str) -> str:
    """Return the model's text, without `name`. A linear model loses its constant, which changes no order."""
    if isinstance(form.body, Linear):
        weights = as_linear(form).body.weights
        used = np.flatnonzero(weights)
        pairs = " ".join(f"{k + 1}:{float(weights[k])!r}" for k in used) or "1:0.0"
        return (
            f"## Coordinate Ascent\n## Restart = 1\n## MaxIteration = 1\n## StepBase = 0.05\n## Slack = 0.001\n{pairs}"
        )
    if isinstance(form.body, Stumps) and form.normalizers is None and np.isfinite(form.body.thresholds).all():
        body = form.body
        if not len(body.features):
            raise InvalidInputError("RankLib's RankBoost cannot hold a model without stumps")
        thresholds = float32_threshold(body.thresholds, inputs).astype(np.float64)
        rows = zip(body.features.tolist(), thresholds.tolist(), body.weights.tolist())
        text = " ".join(f"{k + 1}:{threshold!r}:{weight!r}" for k, threshold, weight in rows)
        return f"## RankBoost\n## Iteration = {len(body.features)}\n## No. of threshold candidates = 10\n{text}"
    trees = as_plain(form).body.trees
    limits = finite_threshold(trees.thresholds, inputs)

    def split(node: int, left: list[str], right: list[str]) -> list[str]:
        sides = [("left", left), ("right", right)]
        nested = [line for side, part in sides for line in (f'<split pos="{side}">', *part, "</split>")]
        return [f"<feature>{trees.features[node] + 1} </feature>", f"<threshold> {limits[node]} </threshold>", *nested]

    roots: list[Any] = nested_trees(trees, lambda leaf: [f"<output>{np.float32(trees.values[leaf])} </output>"], split)
    constant = form.start + form.intercept
    if constant:
        roots.insert(0, [f"<output>{np.float32(constant)} </output>"])
    lines = ["## LambdaMART", f"## No. of trees = {len(roots)}", "## No. of leaves = 64", "", "<ensemble>"]
    for number, root in enumerate(roots, 1):
        lines += [f'<tree id="{number}" weight="1.0">', "<split>", *root, "</split>", "</tree>"]
    return "\n".join([*lines, "</ensemble>"]) + "\n"


def with_places(text: str, places: Mapping[int, int]) -> str:
    """Return a text of trees or stumps of `write` with column k at `places[k]`, both from 0."""

    def moved(found: re.Match[str]) -> str:
        return f"{found[1]}{places[int(found[2]) - 1] + 1}{found[3]}"

    return re.sub(r"(<feature>|(?<= )|^)(\d+)( </feature>|:)", moved, text, flags=re.M)
