"""Linear models of SVM-light and SVM-rank (text with support vectors) and of sofia-ml (one line of weights)."""

from __future__ import annotations

import numpy as np

from truerank.data.columns import default_names
from truerank.models.foreign.model import ForeignModel, Reader, linear_model, numbered_names


def read_svm_light(text: str, reader: Reader, n_features: int | None = None) -> ForeignModel:
    """Read `w x - b`, where w is the sum of the support vectors times their multipliers, of the linear kernel."""
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
        reader.fail_if(not mark, f"line {number}", f"expected a value and its comment, got {line[:40]!r}")
    else:
        raise reader.fail("", "the file ends before the threshold b: it is truncated")
    kernel = head.get("kernel type", "")
    reader.fail_if(kernel != "0", "", f"only the linear kernel (type 0) is read, got kernel type {kernel!r}")
    size = reader.integer(head.get("highest feature index"), "highest feature index")
    key = "number of support vectors plus 1"
    claimed = reader.integer(head.get(key), key, 1, 1 << 40)
    vectors = [(n, line) for n, line in enumerate(lines[start:], start + 1) if line.split("#")[0].strip()]
    if len(vectors) != claimed - 1:
        raise reader.fail("", f"{claimed - 1} support vectors are claimed and {len(vectors)} are there")
    names = numbered_names(size, n_features, reader)
    coef = np.zeros(len(names))
    for number, line in vectors:
        words = line.split("#")[0].split()
        alpha = reader.number(words[0], f"line {number}")
        for word in words[1:]:
            key, colon, value = word.partition(":")
            if key == "qid":
                continue
            reader.fail_if(not colon, f"line {number}", f"expected id:value, got {word[:40]!r}")
            column = reader.integer(key, f"line {number}", 1, size) - 1
            coef[column] += alpha * reader.number(value, f"line {number}")
    threshold = next(value for comment, value in head.items() if comment.startswith("threshold b"))
    bias = -reader.number(threshold, f"line {start}")
    return linear_model("svm-light", names, coef, bias, False)


def read_sofia_ml(text: str, reader: Reader) -> ForeignModel:
    """Read one line of weights separated by blanks; the bias is the first, because dimension 0 is 1 in every row."""
    weights = np.array([reader.number(word, f"word {k}") for k, word in enumerate(text.split(), 1)])
    if len(weights) < 2 or len(text.strip().splitlines()) != 1:
        raise reader.fail("", "expected one line with a bias and weights")
    return linear_model("sofia-ml", tuple(default_names(len(weights) - 1)), weights[1:], float(weights[0]), False)
