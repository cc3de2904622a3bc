"""Make self-contained HTML pages of sections, sortable and searchable tables, and charts.

Charts are Vega-Lite specifications. The page contains Vega-Lite's script of 0.9 MB from `vl-convert-python` (extra
`report`), which draws accessible SVG in the colours of the page.
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any

from truerank.core.charts import Chart
from truerank.core.printing import plain, styled_table


@dataclass(frozen=True)
class Section:
    """A part of a page with its anchor, title and HTML, and whether it is folded at first."""

    anchor: str
    title: str
    body: str
    folded: bool = False


def paragraph(text: str, *, quiet: bool = False) -> str:
    """Return a paragraph of plain text."""
    return f"<p{' class=quiet' if quiet else ''}>{_with_code(html.escape(text))}</p>"


def headline(text: str) -> str:
    """Return the finding of the page in large letters."""
    return f'<p class="headline">{html.escape(text)}</p>'


def simple_table(header: list[str], rows: list[list[Any]], label: str) -> str:
    """Return a small table with numbers aligned to the right."""
    return framed(_with_code(styled_table(rows, header, "html")), label)


def framed(table: str, label: str) -> str:
    """Return an HTML table in a frame that scrolls on a narrow screen."""
    return f'<div class="scroll {label}" tabindex="0" role="region" aria-label="{label}">{table}</div>'


def data_table(columns: list[str], rows: list[list[Any]], label: str, *, pick: str | None = None) -> str:
    """Return a long table that sorts by a click on a column, searches texts, and shows 25 rows at a time. A click on
    the first column sets the select box with the id `pick`.
    """
    data = {"columns": columns, "rows": rows, "label": label, "pick": pick}
    return f'<div class="data-table">{_json(data)}</div>'


def chart(drawn: Chart) -> str:
    """Return a chart in the colours and the width of the page."""
    whole = {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}, **drawn.spec}
    return f'<div class="chart" data-label="{html.escape(drawn.label)}"></div>{_json(whole)}'


def rankings(systems: list[str], queries: dict[str, list[list[dict[str, Any]]]], relevant: float) -> str:
    """Return the rankings of one query side by side, with a box to choose the query.

    `queries` has, by query and system, documents `{"id", "grade", "score", "why": [[feature, amount], …] or None}`.
    """
    options = "".join(f'<option value="{html.escape(name)}">{html.escape(name)}</option>' for name in queries)
    return (
        '<div class="rankings"><div class="controls"><label>Query '
        f'<select id="query-box">{options}</select></label></div><div class="sides"></div>'
        f"{_json({'systems': systems, 'queries': queries, 'relevant': relevant})}</div>"
    )


def page(title: str, subtitle: str, sections: list[Section]) -> str:
    """Return the whole page as one string."""
    assets = resources.files("truerank.report") / "assets"
    links = "".join(f'<li><a href="#{s.anchor}">{html.escape(s.title)}</a></li>' for s in sections)
    body = "".join(map(_shown, sections))
    scripts = f"{_chart_script()}\n", (assets / "page.js").read_text(encoding="utf-8")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{policy(*scripts)}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{html.escape(title)}</title>'
        f"<style>{(assets / 'page.css').read_text(encoding='utf-8')}</style></head><body>"
        f'<a class="skip" href="#main">Skip to the figures</a><header><h1>{html.escape(title)}</h1>'
        f'{paragraph(subtitle, quiet=True)}<nav aria-label="Sections"><ul>{links}</ul></nav></header>'
        f'<main id="main">{body}</main>{"".join(f"<script type=module>{text}</script>" for text in scripts)}'
        "</body></html>\n"
    )


def policy(*scripts: str) -> str:
    """Return a content security policy: only these scripts run, without `eval`, and nothing is loaded or sent."""
    hashes = " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in scripts)
    rules = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
    return f'<meta http-equiv="Content-Security-Policy" content="{rules}; form-action \'none\'">'


def _shown(section: Section) -> str:
    title = f'<h2 id="{section.anchor}">{html.escape(section.title)}</h2>'
    if section.folded:
        return f"<details><summary>{title}</summary>{section.body}</details>"
    return f"<section>{title}{section.body}</section>"


def _with_code(text: str) -> str:
    """Return a text with code elements for backticks."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", text)


def _json(value: object) -> str:
    """Return an element with data for the page's script, in which `</` is escaped."""
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return f'<script type="application/json">{text.replace("<", chr(92) + "u003c")}</script>'


@cache
def _chart_script() -> str:
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")
