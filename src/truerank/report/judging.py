"""Make a page on which a person judges the documents of a plan, and the section of a report on the estimates."""

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
    scale: tuple[int, int] = (0, 4), meanings: Mapping[int, str] | None = None,
) -> str:  # fmt: skip
    """Return an HTML page on which a person grades the drawn documents and saves the plan as the file `name`.

    The page shows one document at a time, below its query and the number of documents that are left. Keys 0 to 9 give
    the grade and show the next document, arrows go back and forth, U removes the last grade. The page shows `texts` by
    document and `queries` by topic, else ids, and `meanings` by grade next to the buttons. The browser keeps grades
    until they are saved. The judging page does not show probabilities or runs.
    """
    rows, cells, body = plan.rows(), plan.cells(), list[str]()
    for number, row in sorted(enumerate(rows), key=lambda one: one[1][0]):
        if row[5] != "yes":
            continue
        topic, document = row[:2]
        grades = "".join(
            f'<label><input type="radio" name="r{number}" value="{grade}"> {grade}'
            f"{html.escape(' ' + meanings[grade]) if meanings and grade in meanings else ''}</label> "
            for grade in range(scale[0], scale[1] + 1)
        )
        body.append(
            f"<article><h2>{html.escape(queries.get(topic, topic))}</h2>{paragraph(texts.get(document, document))}"
            f"<fieldset data-row={number}><legend>{html.escape(document)}</legend>{grades}</fieldset></article>"
        )
    assets = resources.files("truerank.report") / "assets"
    css, script = ((assets / file).read_text(encoding="utf-8") for file in ("page.css", "judging.js"))
    what = f"Grade each document from {scale[0]} to {scale[1]} (most relevant), then save {name}."
    keys = "Keys: a digit grades the document and shows the next one; ← and → move; U undoes the last grade."
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{policy(script)}'
        '<meta name="viewport" content="width=device-width">'
        f'<title>Judge documents</title><style>{css}</style></head><body class="judging"><header>'
        f"{paragraph(what)}{paragraph(keys, quiet=True)}"
        '<p class="controls"><button id="back">Back</button> <button id="on">Next</button> '
        '<button id="undo">Undo</button> <button id="save">Save</button> <span id="left" aria-live="polite"></span></p>'
        f"</header><main>{''.join(body)}</main>"
        f"{_json({'columns': COLUMNS, 'rows': cells, 'name': name, 'key': content_digest(rows)})}"
        f"<script>{script}</script></body></html>\n"
    )


def estimate_section(found: Estimate) -> Section:
    """Return a section of a report with the estimates and their judgements."""
    parts = [
        paragraph(part) if isinstance(part, str) else simple_table(part[0], part[1], "estimates")
        for part in found.blocks()
    ]
    return Section("judgements", "Few judgements", "".join(parts))
