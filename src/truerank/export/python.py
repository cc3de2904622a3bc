"""Write a Python file without dependencies: `score(x)` returns the bits of `predict`, also for missing values."""

from __future__ import annotations

import numpy as np

from truerank.export.form import ModelForm, comment
from truerank.export.program import program_of

_ROUNDED = 'def rounded(v):\n    return unpack("f", pack("f", v))[0]\n\n\n'
_MAIN = '''

def score_rows(rows):
    """Scores of several rows."""
    return [score(x) for x in rows]


if __name__ == "__main__":
    import sys

    for line in sys.stdin:
        if line.strip():
            print(repr(score([float(word) for word in line.replace(",", " ").split()])))
'''


def write(form: ModelForm, name: str, inputs: str) -> str:
    """Return a file with `FEATURES`, `score(x)` and `score_rows(rows)`, which also scores rows of standard input."""
    program = program_of(form)
    text = [
        f"# Scores of the model {comment(name)}, written by truerank.",
        f"# `score(x)` expects {form.n_features} numbers in the order of FEATURES, nan if missing; higher is better.",
        "from bisect import bisect_left",
        "from math import exp, log1p",
        *(["from struct import pack, unpack"] if form.float32_sums else []),
        "",
        'inf, nan = float("inf"), float("nan")',
        f"FEATURES = {form.names!a}",
        *(f"{key} = {np.asarray(value).tolist()!r}" for key, value in program.arrays.items()),
        "",
        "",
    ]
    return "\n".join(text) + _ROUNDED * form.float32_sums + program.text + _MAIN
