"""Pages about few judgements: one on which a person judges the documents of a plan, and a section of a report."""

from __future__ import annotations

import html
from collections.abc import Mapping
from importlib import resources

from truerank.core.digests import content_digest
from truerank.judging.estimate import Estimate
from truerank.judging.plan import COLUMNS, Plan
from truerank.report.page import Section, _json, paragraph, policy, simple_table


def judging_page(
    plan: Plan, texts: Mapping[str, str], queries: Mapping[str, str], name: str = "judge.csv",
    scale: tuple[int, int] = (0, 4),
) -> str:  # fmt: skip
    """Return an HTML page on which a person grades the drawn documents and saves the plan as the file `name`.

    `texts` by document and `queries` by topic are shown, else their ids. The browser keeps the grades until they are
    saved. The page shows neither probabilities nor runs.
    """
    rows, cells, body, before = plan.rows(), plan.cells(), list[str](), None
    for number, row in sorted(enumerate(rows), key=lambda one: one[1][0]):
        if row[5] != "yes":
            continue
        topic, document = row[:2]
        if topic != before:
            body.append(f"<h2>{html.escape(queries.get(topic, topic))}</h2>")
        before = topic
        grades = "".join(
            f'<label><input type="radio" name="r{number}" value="{grade}"> {grade}</label> '
            for grade in range(scale[0], scale[1] + 1)
        )
        body.append(
            f"<article>{paragraph(texts.get(document, document))}<fieldset data-row={number}><legend>"
            f"{html.escape(document)}</legend>{grades}</fieldset></article>"
        )
    assets = resources.files("truerank.report") / "assets"
    css, script = ((assets / file).read_text(encoding="utf-8") for file in ("page.css", "judging.js"))
    what = f"Give every document a grade from {scale[0]} to {scale[1]}, the most relevant, then save {name}."
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{policy(script)}'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Judge documents</title><style>{css}</style></head><body><header><h1>Judge documents</h1>"
        f'{paragraph(what)}<p class="controls"><button id="save">Save</button> <span id="left"></span></p></header>'
        f"<main>{''.join(body)}</main>"
        f"{_json({'columns': COLUMNS, 'rows': cells, 'name': name, 'key': content_digest(rows)})}"
        f"<script>{script}</script></body></html>\n"
    )


def estimate_section(found: Estimate) -> Section:
    """Return the estimates, and what they rest on, as a section of a report."""
    parts = [
        paragraph(part) if isinstance(part, str) else simple_table(part[0], part[1], "estimates")
        for part in found.blocks()
    ]
    return Section("judgements", "Few judgements", "".join(parts))
