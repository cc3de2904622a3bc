"""The pages, the table and the pictures of the stored results: `python -m validation page`.

Every sentence with a count is made here, so that no page can contradict the results; a test makes them again.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any, NamedTuple

from validation.harness import FEWEST, RESULTS, Row, read

DOCS = Path(__file__).parents[1] / "docs"
PICTURE = DOCS / "images" / "validation.png"
GATE = DOCS / "images" / "gate.png"
USERS, DEVELOPERS = DOCS / "validation.md", DOCS / "development" / "validation.md"
ROWS = DOCS / "development" / "validation.csv"
START, END = "<!-- results -->", "<!-- end of results -->"


class Promise(NamedTuple):
    """A module's promise with its rows that have a bar, the worst one, and the one in the middle."""

    document: dict[str, Any]
    rows: list[Row]

    @property
    def title(self) -> str:
        return str(self.document["name"]).replace("_", " ").capitalize()

    @property
    def barred(self) -> list[Row]:
        """Rows with a bar, from the best to the worst."""
        return sorted((row for row in self.rows if row.excess is not None), key=lambda row: row.excess or 0.0)

    @property
    def missed(self) -> list[Row]:
        return [row for row in self.barred if row.met is False]

    @property
    def measured(self) -> list[Row]:
        """Rows with a bar and enough replications for it."""
        return [row for row in self.barred if row.met is not None]

    @property
    def observed(self) -> list[Row]:
        """Rows with too few replications for the bar of their promise."""
        return [row for row in self.barred if row.met is None]

    @property
    def worst(self) -> Row:
        """The row that is furthest beyond its bar, of those with enough replications if there are any."""
        return (self.measured or self.barred)[-1]

    @property
    def status(self) -> str:
        outside = sum(row.outside for row in self.observed)
        more = f"; {len(self.observed)} more are observed, {outside} of them outside" if self.observed else ""
        if not self.barred:
            return "no bar"
        if self.missed:
            return f"missed in {len(self.missed)} of {len(self.measured)} settings{more}"
        if outside or len(self.measured) < len(self.observed):
            return f"observed: {len(self.barred) - outside} of {len(self.barred)} settings within the bar"
        return f"kept in all {len(self.measured)} settings{more}"


def promises() -> list[Promise]:
    """The stored results, by name."""
    return [Promise(*read(path)) for path in sorted(RESULTS.glob("*.json"))]


def write() -> None:
    """Write the pages, the table and the pictures."""
    found = promises()
    text = USERS.read_text(encoding="utf-8")
    head, _, rest = text.partition(START)
    USERS.write_text(f"{head}{START}\n\n{for_users(found)}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    DEVELOPERS.write_text(for_developers(found), encoding="utf-8")
    ROWS.write_text(all_rows(found), encoding="utf-8")
    draw([one for one in found if one.barred])
    draw_verdicts(verdicts_of_the_gate())


def for_users(found: list[Promise]) -> str:
    """The counts in one sentence, and a table with a row for each guarantee."""
    barred = [one for one in found if one.barred]
    missed = sum(bool(one.missed) for one in barred)
    kept = sum(one.status.startswith("kept") for one in barred)
    lines = [
        f"Of {len(barred)} guarantees with a bar, {kept} hold, {missed} miss the bar in some setting, and "
        f"{len(barred) - kept - missed} are observed with too few replications for a result.",
        "",
        "| guarantee | settings within the bar | worst setting | bar |",
        "| --- | --- | --- | --- |",
    ]
    for one in sorted(barred, key=lambda one: not one.missed):
        observed = one.status.startswith("observed")
        rows, measured = one.barred if observed else one.measured, f"{one.worst.value:.3f} ± {one.worst.error:.3f}"
        within = f"{sum(not row.outside for row in rows)} of {len(rows)}"
        within += ", **missed**" if one.missed else ", observed" if observed else ""
        lines.append(f"| {one.document['promise']} | {within} | {measured} | {one.worst.bar} |")
    return "\n".join(lines)


DEVELOPERS_HEAD = f"""# Validation

A bar is on the measured rate of one setting. It is missed if the rate is beyond it by more than two Monte Carlo errors.
Guaranteed error rates and coverage require {FEWEST:,} replications (two errors are then at most 0.006), and power
1,000. Rows with fewer replications are observed: they decide nothing.

`docs/development/validation.csv` has all rows: module, setting, quantity, value, Monte Carlo error, replications, bar,
result.

```sh
python -m validation max_t     # one module: from some seconds to several minutes of one core
python -m validation all       # every module
python -m validation page      # the pages, the table and the picture
```

The rows with real data require the collections that `TRUERANK_DATA` names.

| module | rows | with a bar | kept | missed | observed | replications | seed |
| --- | --- | --- | --- | --- | --- | --- | --- |"""


def for_developers(found: list[Promise]) -> str:
    """Counts by guarantee, and every bar that is missed or, with few replications, outside."""
    lines = [DEVELOPERS_HEAD]
    for one in found:
        counts = (
            len(one.rows),
            len(one.barred),
            len(one.measured) - len(one.missed),
            len(one.missed),
        )
        most = max(row.replications for row in one.rows)
        cells = [f"`{one.document['name']}`", *map(str, counts), str(len(one.observed)), f"{most:,}"]
        lines.append(f"| {' | '.join(cells)} | {one.document['seed']} |")
    outside = [(one, row) for one in found for row in one.barred if row.outside]
    for title, enough in (("Missed", True), ("Observed outside the bar", False)):
        rows = [
            f"* `{one.document['name']}`: {row.setting}; {row.quantity}: {row.value:.3f} ± {row.error:.3f}, "
            f"bar {row.bar}, {row.replications:,} replications"
            for one, row in outside
            if (row.met is False) == enough
        ]
        lines += ["", f"## {title}", "", *(rows or ["None."])]
    return "\n".join([*lines, *judges()]) + "\n"


def all_rows(found: list[Promise]) -> str:
    """Every row as CSV."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["module", "setting", "quantity", "value", "error", "replications", "bar", "result"])
    for one in found:
        for row in one.rows:
            result = "" if row.excess is None else {True: "met", False: "missed", None: "observed"}[row.met]
            figures = (f"{row.value:.6g}", f"{row.error:.3g}", row.replications)
            table.writerow([one.document["name"], row.setting, row.quantity, *figures, row.bar, result])
    return text.getvalue()


def judges() -> list[str]:
    """The table of LLMJudge's judges, and the figures over all of them."""
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
    return ["", "## Estimates with 23 model judges", "", *lines, "", "Over all judges:", "", *whole]


def verdicts_of_the_gate() -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Numbers of queries and shares of the gate's verdicts, by what changed and by verdict."""
    shares: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for row in read(RESULTS / "gate.json")[1]:
        change, _, size = row.setting.rpartition(", ")
        if row.quantity in ("PASS", "FAIL", "INCONCLUSIVE"):
            shares.setdefault(change, {}).setdefault(row.quantity, []).append((int(size.split()[0]), row.value))
    return shares


def draw_verdicts(shares: dict[str, dict[str, list[tuple[int, float]]]]) -> None:
    """A panel for each change: the share of each verdict by the number of queries."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    styles = {"PASS": ("#1b6ca8", "o-"), "FAIL": ("#c0392b", "s-"), "INCONCLUSIVE": ("#7f8c8d", "^--")}
    figure, panels = plt.subplots(1, len(shares), figsize=(9.0, 3.2), sharey=True, layout="constrained", squeeze=False)
    for axes, (change, verdicts) in zip(panels[0], shares.items()):
        for verdict, points in verdicts.items():
            colour, form = styles[verdict]
            axes.plot(*zip(*points), form, color=colour, label=verdict, markersize=5, linewidth=1.4)
        sizes = [n for n, _ in points]
        axes.set(title=change, xscale="log", xlabel="queries", ylim=(-0.03, 1.03))
        axes.set_xticks(sizes, list(map(str, sizes)))
        axes.minorticks_off()
        axes.grid(linewidth=0.3)
    panels[0][0].set_ylabel("share of commits")
    panels[0][-1].legend(frameon=False, loc="center right")
    figure.savefig(GATE, dpi=120)
    plt.close(figure)


def draw(found: list[Promise]) -> None:
    """One row for each guarantee: distances of its worst and middle setting from their bars, with two errors."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9.0, 0.42 * len(found) + 1.3), layout="constrained")
    for at, one in enumerate(found):
        rows = one.measured or one.barred
        for row, marker, size in ((rows[len(rows) // 2], "|", 9), (rows[-1], "o", 5)):
            colour = "#c0392b" if row.met is False else "#1b6ca8" if row.met else "#7f8c8d"
            axes.errorbar(row.excess, at, xerr=2 * row.error, fmt=marker, color=colour, markersize=size, linewidth=1.2)
    axes.axvline(0.0, color="#333333", linewidth=1.2)
    axes.set_yticks(range(len(found)), [one.title for one in found])
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.set_xlabel("distance from the bar; right of the line is worse than guaranteed")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", linewidth=0.3)
    figure.savefig(PICTURE, dpi=120)
    plt.close(figure)
