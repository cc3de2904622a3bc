"""The kept inputs of the fuzz of every reader, and its first random ones; `support/fuzz_readers.py` runs millions."""

from __future__ import annotations

import random

import pytest

from support.fuzz_readers import READERS, SEEDS, check, mutated


@pytest.mark.parametrize("reader", READERS)
def test_every_input_is_read_or_refused_in_one_line(reader):
    if reader == "csv":
        pytest.importorskip("pyarrow")
    kept = [check(reader, text) for text in SEEDS[reader]]
    assert kept[0] or reader == "model"
    rng = random.Random(0)
    read = sum(check(reader, mutated(reader, rng)) for _ in range(400))
    assert read > 0 or reader == "model"
