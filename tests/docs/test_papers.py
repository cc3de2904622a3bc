"""The pages of the reproduced papers: made from the results, short, and with items whose places exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from reproductions.pages import PAGES, PUBLISHED, TEMPLATES, render

from reproductions import pages

ROOT = Path(__file__).parents[2]
TEMPLATE_FILES = sorted(TEMPLATES.glob("*.md"))
STATUS = {"right", "measured", "no data", "stand-in", "background", "not built"}


@pytest.mark.parametrize("template", TEMPLATE_FILES, ids=lambda path: path.stem)
def test_every_figure_of_a_page_is_that_of_the_results(template):
    assert (PAGES / template.name).read_text(encoding="utf-8") == render(template)


def test_every_page_has_a_template():
    assert {path.name for path in PAGES.glob("*.md")} == {path.name for path in TEMPLATE_FILES}


@pytest.mark.parametrize(
    "template", [p for p in TEMPLATE_FILES if p.stem not in ("items", "claims")], ids=lambda path: path.stem
)
def test_a_page_is_short(template):
    assert len(render(template).split()) <= 1200


def test_templates_type_no_measured_figure_by_hand():
    """A number of four decimals outside a look-up is a rule, an old figure of the audit, or a published one."""
    known = ("reproduced to 0.0004", "have 0.5635 and 0.5109")
    for template in TEMPLATE_FILES:
        text = re.sub(r"\{\{.+?\}\}", "", template.read_text(encoding="utf-8"), flags=re.DOTALL)
        for words in known:
            text = text.replace(words, "")
        assert re.findall(r"(?<![\d.])0?\.\d{4}", text.replace(".2868 and .2866", "")) == [], template.name


def test_two_pages_cannot_disagree():
    """A page is its template with figures of the results: a changed result changes every page that shows it."""
    values = {"descent": {"figures": {"splits": {"n": 31, "tau": {"a": {"mean": 0.123456}, "b": {}}}}}}
    pages._file.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "_file", lambda path: values[path.stem])
        for text in ("{{descent/splits/n|d}}", "{{table descent\nlearner\nn = */n d\n- splits = x}}"):
            assert "31" in pages._PLACE.sub(lambda match: pages._value(match[1]), text)
        block = "{{table descent/splits/tau\nlearner\ntau = */mean .3f}}"
        table = pages._PLACE.sub(lambda match: pages._value(match[1]), block)
    assert table.splitlines() == ["| learner | tau |", "| --- | --- |", "| a | 0.123 |", "| b |  |"]


def test_items_have_a_status_and_places_that_exist():
    wrong = []
    rows = [row for part in json.loads((PUBLISHED / "items.json").read_text(encoding="utf-8")).values() for row in part]
    for item, where, command, status in rows:
        if status not in STATUS:
            wrong.append(f"{item}: {status}")
        names = re.findall(r"`([\w/]+(?:\.py|/))`", where) + re.findall(r"T `([\w/]+(?:\.py)?)`", command)
        for name in names:
            if not any((base / name).exists() for base in (ROOT / "src" / "truerank", ROOT)):
                wrong.append(f"{item}: {name}")
        wrong += [f"{item}: {name}" for name in functions_without_a_definition(where)]
    assert wrong == []
    assert len(rows) > 100
    assert functions_without_a_definition("`reproductions/protocol.py` `no_such_function`") == ["no_such_function"]


def functions_without_a_definition(where: str) -> list[str]:
    """The names after a file of the repository that this file neither defines nor mentions."""
    missing, text = [], None
    for name in re.findall(r"`([^`]+)`", where):
        path = next((base / name for base in (ROOT / "src" / "truerank", ROOT) if (base / name).is_file()), None)
        if path is not None:
            text = path.read_text(encoding="utf-8")
        elif text is not None and re.fullmatch(r"[A-Za-z_]+(?:\.[a-z_]+)?", name):
            missing += [part for part in name.split(".") if not re.search(rf"\b{part}\b", text)]
    return missing
