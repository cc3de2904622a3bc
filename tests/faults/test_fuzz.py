"""The kept inputs of the fuzz of every reader, and its first random ones; `support/fuzz_readers.py` runs millions."""

from __future__ import annotations

import random

import pytest

from support.fuzz_readers import NEEDS_PYARROW, READERS, SEEDS, check, mutated
from support.refusals import refused


@pytest.mark.parametrize("reader", READERS)
def test_every_input_is_read_or_refused_in_one_line(reader):
    if reader in NEEDS_PYARROW:
        pytest.importorskip("pyarrow")
    if reader == "zst":
        pytest.importorskip("zstandard")
    kept = [check(reader, text) for text in SEEDS[reader]]
    assert kept[0] or reader in ("model", "objects")
    rng = random.Random(0)
    read = sum(check(reader, mutated(reader, rng)) for _ in range(300))
    assert read > 0 or reader in ("model", "objects")


def test_a_damaged_arrow_file_is_refused_and_memory_beside_it_is_not_read(tmp_path):
    """Offsets of strings that point out of the file were followed: what lay there became ids, or a crash."""
    pytest.importorskip("pyarrow")
    from truerank.core.errors import DataFileError
    from truerank.io.documents import read_documents
    from truerank.io.tables import read_table

    whole = SEEDS["arrow"][0]
    ends = (1).to_bytes(4, "little") + (2).to_bytes(4, "little") + (3).to_bytes(4, "little")
    assert whole.count(ends) == 2  # of qid and of docid
    (tmp_path / "d.arrow").write_bytes(whole.replace(ends, ends[:4] + (2**20).to_bytes(4, "little") + ends[8:]))
    with refused(DataFileError, code="unreadable"):
        read_table(tmp_path / "d.arrow")
    with refused(DataFileError, code="unreadable"):
        list(read_documents(tmp_path / "d.arrow"))


def test_models_in_formats_that_nobody_has_tried():
    import math

    from support.fuzz_exports import fuzz

    counts, wrong = fuzz(iter((12, 23)), math.inf)
    assert wrong == []
    assert sum(counts.values()) > 10
