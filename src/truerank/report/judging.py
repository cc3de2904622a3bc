"""Pages about few judgements: one on which a person judges the documents of a plan, and the section of a report."""

from __future__ import annotations

import html
from collections.abc import Mapping
from importlib import resources

from truerank.core.digests import content_digest
from truerank.judging.estimate import Estimate
from truerank.judging.plan import COLUMNS, Plan
from truerank.report.page import Section, _json, paragraph, simple_table


def judging_page(
    plan: Plan, texts: Mapping[str, str], queries: Mapping[str, str], name: str = "judge.csv", highest: int = 4
) -> str:
    """One HTML page on which a person grades the drawn documents and saves the plan as a file of the same form.

    Grades are kept in the browser until they are saved. The page shows neither probabilities nor runs.

    Parameters
    ----------
    plan : Plan
    texts, queries : mapping of str to str
        Text by document id, and by topic; what is not there is shown by its id.
    name : str
        Name of the file that is saved.
    highest : int
        Grades are 0 to this.
    """
    rows, body, before = plan.rows(), [], None
    for number, row in sorted(enumerate(rows), key=lambda one: one[1][0]):
        if row[5] != "yes":
            continue
        topic, document = row[:2]
        if topic != before:
            body.append(f"<h2>{html.escape(queries.get(topic, topic))}</h2>")
        before = topic
        grades = "".join(
            f'<label><input type="radio" name="r{number}" value="{grade}"> {grade}</label> '
            for grade in range(highest + 1)
        )
        body.append(
            f"<article>{paragraph(texts.get(document, document))}<fieldset data-row={number}><legend>"
            f"{html.escape(document)}</legend>{grades}</fieldset></article>"
        )
    assets = resources.files("truerank.report") / "assets"
    css, script = ((assets / file).read_text(encoding="utf-8") for file in ("page.css", "judging.js"))
    data = {"columns": COLUMNS, "rows": rows, "name": name, "key": content_digest(rows)}
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Judge documents</title><style>{css}</style></head><body><header><h1>Judge documents</h1>"
        f"{paragraph(f'Give every document a grade from 0 (not relevant) to {highest}, then save {name}.')}"
        '<p class="controls"><button id="save">Save</button> <span id="left"></span></p></header>'
        f"<main>{''.join(body)}</main>{_json(data)}"
        f"<script>{script}</script></body></html>\n"
    )


def estimate_section(found: Estimate) -> Section:
    """What figures from few judgements rest on, and the figures."""
    parts = [
        paragraph(part) if isinstance(part, str) else simple_table(part[0], part[1], "estimates")
        for part in found.blocks()
    ]
    return Section("judgements", "Few judgements", "".join(parts))
