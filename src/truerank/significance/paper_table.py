"""The table of systems by measures for a paper, as LaTeX, Markdown and CSV."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from truerank.core.checks import check_choice
from truerank.core.printing import latex_escaped, plain
from truerank.significance.paired import LEVEL
from truerank.significance.ranks import RANKS, ranks_shown

SHOWN = ("intervals", "effects", "ranks")


def letter(number: int) -> str:
    """Return the letter of a group or system: a … z, then a1 … z1, a2 …"""
    return chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")


def paper_table(
    results: Mapping[str, Any],
    style: str = "latex",
    topics: str | None = None,
    show: Sequence[str] = (),
    rope: float | None = None,
) -> str:
    """Return a table of systems by measures, with the best mean of each measure in bold.

    `results` are comparisons of the same systems by measure. Style "latex" is a complete table for the package
    booktabs, with a caption (measures, convention, version of truerank, topics, test, correction) and a label. "csv"
    has a row for each system and measure, with intervals and p. `topics` describes the topics of the means.

    With a baseline, + and - mark the means that are significantly better and worse (corrected p below 0.05). Without a
    baseline each system has a letter, and a mean has the letters of the systems that it is significantly better than.
    With `rope`, the marks are of the posterior instead (`Comparison.practical`), and = is equivalent.

    `show` adds columns after each mean: "intervals" of the difference to the baseline (of the mean without a baseline),
    "effects" (Cohen's d against the baseline), and "ranks" (`Comparison.rank_sets`).
    """
    for one in show:
        check_choice(one, "show", SHOWN)
    if style == "csv":
        return _csv(results)
    first = next(iter(results.values()))
    order = sorted(first.means, key=lambda name: -first._sign * first.means[name])
    letters = {} if first.baseline is not None else {name: letter(k) for k, name in enumerate(order)}
    marks = {measure: _marks(one, letters, rope) for measure, one in results.items()}
    header = [label for measure, one in results.items() for label in (measure, *_more(one, show))]
    rows = []
    for name in order:
        cells = [name + (f" ({letters[name]})" if letters else "")]
        for measure, one in results.items():
            best = one._sign * one.means[name] == max(one._sign * mean for mean in one.means.values())
            text = f"{one.means[name]:.4f}"
            if best:
                text = rf"\textbf{{{text}}}" if style == "latex" else f"**{text}**"
            mark = marks[measure].get(name)
            if mark:
                text += rf"\textsuperscript{{{mark}}}" if style == "latex" else f"<sup>{mark}</sup>"
            cells += [text, *_more(one, show, name)]
        rows.append(cells)
    caption = _caption(results, letters, topics, show, rope)
    if style == "markdown":
        lines = [["ranker", *header], ["---", *["--:"] * len(header)], *rows]
        return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + (
            f"\n\n{caption}"
        )
    body = [" & ".join([latex_escaped(name), *cells]) + r" \\" for name, *cells in rows]
    return "\n".join([
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_escaped(caption)}}}".replace("×", r"$\times$").replace("<", "$<$"),
        rf"\begin{{tabular}}{{l{'r' * len(header)}}}",
        r"\toprule",
        " & ".join(["ranker", *map(latex_escaped, header)]) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        rf"\label{{tab:{'-'.join(re.findall('[a-z0-9]+', ' '.join(results).lower()))}}}",
        r"\end{table}",
    ])  # fmt: skip


def _more(one: Any, show: Sequence[str], name: str | None = None) -> list[str]:
    """Return the further cells of a system, or their headings without a name."""
    pair = next((pair for pair in one.pairs if one.baseline is not None and pair.a == name), None)
    low, high = (one.intervals[name][1:] if name else (math.nan, math.nan)) if one.baseline is None else (
        (pair.low, pair.high) if pair else (math.nan, math.nan)
    )  # fmt: skip
    sign = "" if one.baseline is None else "+"
    cells = {
        "intervals": ("95% interval", "" if math.isnan(low) else f"[{low:{sign}.4f}, {high:{sign}.4f}]"),
        "effects": ("d", "" if pair is None else f"{plain(pair.effect):.2f}" if plain(pair.effect) is not None else ""),
        "ranks": ("ranks", ranks_shown(one.rank_sets[name]) if name in one.rank_sets else ""),
    }
    possible = [kind for kind in show if not (kind == "effects" and one.baseline is None)]
    return [cells[kind][name is not None] for kind in possible if kind != "ranks" or one.rank_sets]


def _marks(one: Any, letters: Mapping[str, str], rope: float | None) -> dict[str, str]:
    """Return the marks of the means: +, - or = against the baseline, or the letters of the systems that are worse."""
    if rope is None:
        sign = {True: 1, False: -1}
        decided = [
            (pair.a, pair.b, sign[one.favoured(pair) == pair.a]) for pair in one.pairs if pair.p_adjusted < LEVEL
        ]
    else:
        known = {"better": 1, "worse": -1, "equivalent": 0}
        decided = [(pair.a, pair.b, known[pair.verdict]) for pair in one.practical(rope).pairs if pair.verdict in known]
    found: dict[str, str] = {}
    for a, b, gain in decided:
        better, worse = (a, b) if gain > 0 else (b, a)
        if not letters:
            found[a] = "-=+"[gain + 1]
        elif gain:
            found[better] = "".join(sorted(found.get(better, "") + letters[worse]))
    return found


def _caption(
    results: Mapping[str, Any], letters: Mapping[str, str], topics: str | None, show: Sequence[str], rope: float | None
) -> str:
    from truerank import __version__

    first = next(iter(results.values()))
    conventions = ", ".join(dict.fromkeys(one.convention for one in results.values()))
    tested = first.tested.replace(", ** where it is below 0.05", "")
    marks = (
        "letters name the systems that a mean is significantly better than"
        if letters
        else f"+ and - mark means that are significantly better and worse than {first.baseline}"
    )
    if rope is not None:
        marks = marks.replace("significantly", f"probably (posterior probability 0.95, by more than {rope:g})")
        marks += "" if letters else f", and = equivalent within {rope:g}"
    about = [f"{', '.join(results)}, convention {conventions}, truerank {__version__}"]
    about += [*([topics] if topics else []), tested, marks]
    if "intervals" in show:
        about.append(f"intervals: {'mean' if letters else f'{first.interval_of}, this pair alone'}")
    about += ["d: Cohen's d"] if "effects" in show and not letters else []
    about += [RANKS.replace("`", "")] if "ranks" in show and first.rank_sets else []
    return f"{'; '.join(about)}{f' (p < {LEVEL})' if rope is None else ''}."


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
