"""The pages of the reproduced papers: made from the results, short, and with items whose places exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from reproductions.pages import PAGES, PUBLISHED, TEMPLATES, render

ROOT = Path(__file__).parents[2]
TEMPLATE_FILES = sorted(TEMPLATES.glob("*.md"))
STATUS = {"right", "measured", "no data", "background", "not built"}


@pytest.mark.parametrize("template", TEMPLATE_FILES, ids=lambda path: path.stem)
def test_every_figure_of_a_page_is_that_of_the_results(template):
    assert (PAGES / template.name).read_text(encoding="utf-8") == render(template)


def test_every_page_has_a_template():
    assert {path.name for path in PAGES.glob("*.md")} == {path.name for path in TEMPLATE_FILES}


@pytest.mark.parametrize("template", [p for p in TEMPLATE_FILES if p.stem != "index"], ids=lambda path: path.stem)
def test_a_page_is_short(template):
    words = re.findall(r"[\w.,'@+-]+", re.sub(r"^\|.*$", "", render(template), flags=re.MULTILINE))
    assert len(words) <= 1200


def test_templates_type_no_measured_figure_by_hand():
    """A number of four decimals outside a look-up must be a step of a rule, and not a result."""
    for template in TEMPLATE_FILES:
        text = re.sub(r"\{\{.+?\}\}", "", template.read_text(encoding="utf-8"))
        assert re.findall(r"(?<![\d.])0?\.\d{4}", text.replace("reproduced to 0.0004", "")) == [], template.name


def test_items_have_a_status_and_places_that_exist():
    wrong = []
    items = json.loads((PUBLISHED / "items.json").read_text(encoding="utf-8"))
    for row in items:
        if row["status"] not in STATUS:
            wrong.append(f"{row['item']}: {row['status']}")
        for name in re.findall(r"`([\w/]+(?:\.py|/))`", row["where"]):
            if not any((base / name).exists() for base in (ROOT / "src" / "truerank", ROOT)):
                wrong.append(f"{row['item']}: {name}")
    assert wrong == []
    assert len(items) > 100
