"""The LETOR kernel on small texts, compiled and (under NUMBA_DISABLE_JIT=1) as plain Python."""

from __future__ import annotations

import random

import numpy as np
import pytest

from support.letor_texts import compiled_parser, damaged_text, outcome, python_parser


@pytest.mark.parametrize("seed", range(3))
def test_the_kernel_agrees_with_the_plain_parser(seed):
    rng = random.Random(seed)
    for _ in range(40):
        text = damaged_text(rng)
        with np.errstate(over="ignore"):  # mantissas of too many digits overflow before they are set aside
            compiled = outcome(compiled_parser, text, True)
        assert compiled == outcome(python_parser, text, True), text


def test_numbers_of_many_digits():
    texts = ["0.1234567890123456", "1.7976931348623157e308", "4.35e-20", "900719925474099.25", "1e23", "-3e-128"]
    line = "0 qid:1 " + " ".join(f"{k}:{text}" for k, text in enumerate(texts, 1))
    assert compiled_parser(line.encode(), False).values.tolist() == [float(text) for text in texts]
