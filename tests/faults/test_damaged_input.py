"""docs/development/damaged-input.md is what the commands print: a share of its rows is run anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.damaged_input import HEAD, cases, prepare, row

PAGE = Path(__file__).parents[2] / "docs" / "development" / "damaged-input.md"
SHARE = 5
THEIRS = ("cut off", "byte changed", "followed by", "too many cells", "Parquet", "half of", "brackets", "empty")
"""What is damaged where the message quotes another library, whose words change with its release."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prepare()


def test_the_page_is_what_the_commands_print(folder):
    page = PAGE.read_text(encoding="utf-8")
    assert page.startswith(HEAD)
    everything = [(kind, case) for kind, some in cases().items() for case in some]
    rows = [line for line in page[len(HEAD) :].splitlines() if line.startswith("| ") and not line.startswith("| ---")]
    rows = [line for line in rows if not line.startswith("| what is damaged")]
    assert [line.split(" | ")[0] for line in rows] == [f"| {case.what}" for _, case in everything]
    for line, (kind, case) in list(zip(rows, everything))[::SHARE]:
        if case.needs:
            pytest.importorskip(case.needs)
        if not any(word in case.what for word in THEIRS):
            assert row(case) == line, kind


def test_every_row_is_a_refusal():
    rows = [line for line in PAGE.read_text(encoding="utf-8")[len(HEAD) :].splitlines() if line.startswith("| ")]
    codes = [line.split(" | ")[2] for line in rows if not line.startswith(("| ---", "| what"))]
    assert set(codes) == {"1", "2"}
