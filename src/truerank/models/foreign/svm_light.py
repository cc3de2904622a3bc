"""Linear models of SVM-light and SVM-rank (text with support vectors) and of sofia-ml (one line of weights)."""

from __future__ import annotations

import numpy as np

from truerank.data.columns import default_names
from truerank.export.form import Linear, ModelForm
from truerank.models.foreign.model import ForeignModel, Reader


def read_svm_light(text: str, reader: Reader, n_features: int | None = None) -> ForeignModel:
    """`w x - b` with w the sum of the support vectors times their multipliers. Only the linear kernel is read."""
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
        if not mark:
            raise reader.fail(f"line {number}", f"expected a value and its comment, got {line[:40]!r}")
    else:
        raise reader.fail("", "the file ends before the threshold b: it is truncated")
    kernel = head.get("kernel type", "")
    if kernel != "0":
        raise reader.fail("", f"only the linear kernel (type 0) is read, got kernel type {kernel!r}")
    size = reader.integer(head.get("highest feature index"), "highest feature index")
    claimed = reader.integer(
        head.get("number of support vectors plus 1"), "number of support vectors plus 1", 1, 1 << 40
    )
    vectors = [(n, line) for n, line in enumerate(lines[start:], start + 1) if line.split("#")[0].strip()]
    if len(vectors) != claimed - 1:
        raise reader.fail("", f"{claimed - 1} support vectors are claimed and {len(vectors)} are there")
    if n_features is not None and size > n_features:
        raise reader.fail("", f"the model uses feature {size}, and n_features is {n_features}")
    coef = np.zeros(n_features or size)
    for number, line in vectors:
        words = line.split("#")[0].split()
        alpha = reader.number(words[0], f"line {number}")
        for word in words[1:]:
            key, colon, value = word.partition(":")
            if key == "qid":
                continue
            if not colon:
                raise reader.fail(f"line {number}", f"expected id:value, got {word[:40]!r}")
            column = reader.integer(key, f"line {number}", 1, size) - 1
            coef[column] += alpha * reader.number(value, f"line {number}")
    threshold = next(value for comment, value in head.items() if comment.startswith("threshold b"))
    bias = -reader.number(threshold, f"line {start}")
    names = tuple(default_names(len(coef)))
    form = ModelForm(names, Linear(coef), intercept=bias, allow_nan=False)
    return ForeignModel("svm-light", form, absent=0.0)


def read_sofia_ml(text: str, reader: Reader) -> ForeignModel:
    """One line of weights separated by blanks, the bias first: dimension 0 is 1 in every row."""
    weights = np.array([reader.number(word, f"word {k}") for k, word in enumerate(text.split(), 1)])
    if len(weights) < 2 or len(text.strip().splitlines()) != 1:
        raise reader.fail("", "expected one line with a bias and weights")
    names = tuple(default_names(len(weights) - 1))
    form = ModelForm(names, Linear(weights[1:]), intercept=float(weights[0]), allow_nan=False)
    return ForeignModel("sofia-ml", form, absent=0.0)
