"""Recorded results carry a digest of a cheap slice, which the code of today gives again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from reproductions.pages import RESULTS
from reproductions.slices import SLICES, digest

ROOT = Path(os.environ.get("TRUERANK_DATA", ""))
RECORDED = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))}
WITH_SLICE = [name for name, one in RECORDED.items() if one.get("slice")]


@pytest.mark.parametrize("name", WITH_SLICE)
def test_the_slice_of_a_record_is_that_of_this_code(name):
    """If it differs, record the experiment anew, or remove the digest: pages then name the version of the record."""
    if not (ROOT / "letor4-mq2008").is_dir():
        pytest.skip("needs the collections in TRUERANK_DATA")
    assert digest(RECORDED[name]["experiment"], ROOT) == RECORDED[name]["slice"]


def test_records_without_a_slice_say_their_version():
    assert WITH_SLICE
    for one in RECORDED.values():
        assert one["version"]
    assert set(SLICES) >= {RECORDED[name]["experiment"] for name in WITH_SLICE}
