"""The table of systems by measures for a paper, as LaTeX, Markdown and CSV."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping
from typing import Any

from truerank.core.printing import latex_escaped
from truerank.significance.paired import LEVEL


def letter(number: int) -> str:
    """Return the letter of a group or system: a … z, then a1 … z1, a2 …"""
    return chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")


def paper_table(results: Mapping[str, Any], style: str = "latex", topics: str | None = None) -> str:
    """Return a table of systems by measures, with the best mean of each measure in bold.

    `results` are comparisons of the same systems by measure. Style "latex" is a complete table for the package
    booktabs, with a caption (measures, convention, version of truerank, topics, test, correction) and a label. "csv"
    has a row for each system and measure, with intervals and p. `topics` describes the topics of the means.

    With a baseline, + and - mark the means that are significantly better and worse (corrected p below 0.05). Without a
    baseline each system has a letter, and a mean has the letters of the systems that it is significantly better than.
    """
    if style == "csv":
        return _csv(results)
    first = next(iter(results.values()))
    order = sorted(first.means, key=lambda name: -first._sign * first.means[name])
    letters = {} if first.baseline is not None else {name: letter(k) for k, name in enumerate(order)}
    rows = []
    for name in order:
        cells = [name + (f" ({letters[name]})" if letters else "")]
        for one in results.values():
            best = one._sign * one.means[name] == max(one._sign * mean for mean in one.means.values())
            text = f"{one.means[name]:.4f}"
            if best:
                text = rf"\textbf{{{text}}}" if style == "latex" else f"**{text}**"
            mark = _mark(one, name, letters)
            if mark:
                text += rf"\textsuperscript{{{mark}}}" if style == "latex" else f"<sup>{mark}</sup>"
            cells.append(text)
        rows.append(cells)
    caption = _caption(results, letters, topics)
    if style == "markdown":
        lines = [["ranker", *results], ["---", *["--:"] * len(results)], *rows]
        return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + (
            f"\n\n{caption}"
        )
    body = [" & ".join([latex_escaped(name), *cells]) + r" \\" for name, *cells in rows]
    return "\n".join([
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_escaped(caption)}}}".replace("×", r"$\times$").replace("<", "$<$"),
        rf"\begin{{tabular}}{{l{'r' * len(results)}}}",
        r"\toprule",
        " & ".join(["ranker", *map(latex_escaped, results)]) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        rf"\label{{tab:{'-'.join(re.findall('[a-z0-9]+', ' '.join(results).lower()))}}}",
        r"\end{table}",
    ])  # fmt: skip


def _mark(one: Any, name: str, letters: Mapping[str, str]) -> str:
    """Return the mark of a mean: + or - against the baseline, or the letters of the systems that are worse."""
    found = ""
    for pair in one.pairs:
        if not pair.p_adjusted < LEVEL or name not in (pair.a, pair.b):
            continue
        gain = one._sign * (one.means[pair.a] - one.means[pair.b]) * (1 if pair.a == name else -1)
        other = pair.b if pair.a == name else pair.a
        if letters:
            found += letters[other] if gain > 0 else ""
        elif pair.a == name:
            found += "+" if gain > 0 else "-"
    return "".join(sorted(found))


def _caption(results: Mapping[str, Any], letters: Mapping[str, str], topics: str | None) -> str:
    from truerank import __version__

    first = next(iter(results.values()))
    conventions = ", ".join(dict.fromkeys(one.convention for one in results.values()))
    tested = first.tested.replace(", ** where it is below 0.05", "")
    marks = (
        "letters name the systems that a mean is significantly better than"
        if letters
        else f"+ and - mark means that are significantly better and worse than {first.baseline}"
    )
    about = [f"{', '.join(results)}, convention {conventions}, truerank {__version__}"]
    about += [*([topics] if topics else []), tested, marks]
    return f"{'; '.join(about)} (p < {LEVEL})."


def _csv(results: Mapping[str, Any]) -> str:
    header = ["measure", "convention", "ranker", "mean", "low", "high", "against", "difference", "difference_low"]
    header += ["difference_high", "p", "p_adjusted", "wins", "losses", "ties"]
    rows: list[list[Any]] = []
    for measure, one in results.items():
        for name, mean in one.means.items():
            own = one.intervals[name]
            for pair in [pair for pair in one.pairs if pair.a == name] or [None]:
                row: list[Any] = [measure, one.convention, name, mean, own.low, own.high]
                if pair is not None:
                    row += [pair.b, pair.difference, pair.low, pair.high, pair.p, pair.p_adjusted]
                    row += [pair.wins, pair.losses, pair.ties]
                rows.append([*row, *[""] * (len(header) - len(row))])
    shown = io.StringIO()
    writer = csv.writer(shown, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([["" if isinstance(v, float) and math.isnan(v) else v for v in row] for row in rows])
    return shown.getvalue().rstrip("\n")
