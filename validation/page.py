"""docs/development/validation.md and its picture, made of the stored results: `python -m validation page`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from validation.harness import FEWEST, RESULTS, Row, read, table

DOCS = Path(__file__).parents[1] / "docs"
PICTURE = DOCS / "images" / "validation.png"
HEAD = f"""# Validation

This page shows how well truerank keeps each of its statistical promises. Error rates are measured on data without a
true difference: on simulated values, and on real differences between rankings (TREC-9, MQ2008) less their mean.

In each row, `value` is the measured error rate, coverage or power, and `±` is its Monte Carlo standard error. A bar is
met within two Monte Carlo errors, and only with at least {FEWEST:,} replications (cut-offs: 1,000; click logs: 20).
Rows without a bar are for comparison, for example with a method that truerank does not use.

```sh
python -m validation max_t     # one module: from some seconds to several minutes of one core
python -m validation all       # every module
python -m validation page      # this page and its picture, from validation/results/
```

The rows with real data require the collections that `TRUERANK_DATA` names.
"""
CAPTION = """![Measured rates against their bars, with two Monte Carlo errors](../images/validation.png)

The upper part shows error rates, with the highest allowed rate as a vertical line. The lower part shows coverage and
power, less the lowest allowed value. Blue bars are met, and red bars are not. Promises of never and always are only in
the tables.
"""


def write() -> None:
    """Write the page and its picture."""
    results = [read(path) for path in sorted(RESULTS.glob("*.json"))]
    barred = [(_title(document), row) for document, rows in results for row in rows if row.met is not None]
    missed = [f"* {title}: {row.setting}; {row.quantity}: {row.value:.3f}" for title, row in barred if not row.met]
    parts = [HEAD, f"**{len(barred) - len(missed)} of {len(barred)} bars are met.**"]
    parts[-1] += f" Not met:\n\n{chr(10).join(missed)}\n" if missed else "\n"
    parts.append(CAPTION)
    for document, rows in results:
        parts.append(f"## {_title(document)}\n\n{document['promise']}\n\n{table(rows)}\n")
        given = f" --replications {rows[0].replications}" if rows[0].replications != FEWEST else ""
        parts.append(f"`python -m validation {document['name']}{given}` (seed {document['seed']})\n")
    (DOCS / "development" / "validation.md").write_text("\n".join(parts), encoding="utf-8")
    judges()
    draw([(title, row) for title, row in barred if {row.low, row.high}.isdisjoint({0.0, 1.0})])


def judges(path: Path = DOCS / "howto" / "evaluate-with-100-judgements.md") -> None:
    """Write the table of LLMJudge's judges into the page of few judgements."""
    _, rows = read(RESULTS / "judging.json")
    start = "LLMJudge, DCG@10, 100 judgements, "
    quantities = ("coverage of these topics", "width over that of the uniform sample",
                  "width over that of the same plan without a judge", "wrong decisions")  # fmt: skip
    by_judge: dict[str, list[str]] = {}
    for row in rows:
        judge = row.setting.removeprefix(start)
        if row.setting.startswith(start) and row.quantity in quantities and not judge.startswith("all "):
            by_judge.setdefault(judge, []).append(f"{row.value:.3f}")
    lines = ["| judge | coverage | width | against no judge | wrong decisions |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {judge} | {' | '.join(values)} |" for judge, values in by_judge.items()]
    whole = [f"* {row.quantity}: {row.value:.3f}" for row in rows if row.setting.startswith(f"{start}all ")]
    text = path.read_text(encoding="utf-8")
    head, _, rest = text.partition("<!-- judging table -->\n")
    made = "\n".join(["<!-- judging table -->", "", *lines, "", "Over all judges:", "", *whole, "", "<!-- end"])
    path.write_text(head + made + rest.partition("<!-- end")[2], encoding="utf-8")


def _title(document: dict[str, Any]) -> str:
    return str(document["name"]).replace("_", " ").capitalize()


def draw(rows: list[tuple[str, Row]]) -> None:
    """One point a row: its value, two Monte Carlo errors, and its bar; rows with a highest rate above the others."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    most = [one for one in rows if one[1].high is not None]
    least = [one for one in rows if one[1].high is None]
    panels = [(panel, text) for panel, text in ((most, "measured rate"), (least, "measured, less the bar")) if panel]
    heights = [len(panel) + len({title for title, _ in panel}) + 1 for panel, _ in panels]
    figure, places = plt.subplots(
        len(panels), figsize=(10.5, 0.19 * sum(heights) + 1.0 * len(panels)), height_ratios=heights, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axes, (panel, text) in zip(places[:, 0], panels):
        labels: list[str] = []
        heading: set[int] = set()
        for at, (title, row) in enumerate(panel):
            if at == 0 or panel[at - 1][0] != title:
                heading.add(len(labels))
                labels.append(title)
            zero = 0.0 if row.high is not None else row.low or 0.0
            color = "#1b6ca8" if row.met else "#c0392b"
            y = len(labels)
            axes.errorbar(row.value - zero, y, xerr=2 * row.error, fmt="o", color=color, markersize=4, linewidth=1)
            bars = [bar - zero for bar in (row.low, row.high) if bar is not None]
            axes.vlines(bars, y - 0.4, y + 0.4, color="#333333", linewidth=1.2)
            labels.append(f"{row.setting}: {row.quantity}")
        axes.set_yticks(range(len(labels)), labels, fontsize=7)
        for at, label in enumerate(axes.get_yticklabels()):
            label.set_fontweight("bold" if at in heading else "normal")
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.set_xlabel(text, fontsize=8)
        axes.tick_params(axis="x", labelsize=8)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", linewidth=0.3)
    figure.savefig(PICTURE, dpi=120)
    plt.close(figure)
