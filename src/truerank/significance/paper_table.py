"""The table of systems by measures for a paper, as LaTeX, Markdown and CSV."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import stdev
from typing import Any

from truerank.core.checks import check_choice
from truerank.core.printing import latex_escaped, plain
from truerank.significance.paired import LEVEL
from truerank.significance.ranks import RANKS, ranks_shown

_MOST_COLUMNS = 6  # beside each other on a page


def letter(number: int) -> str:
    """Return the letter of a group or system: a … z, then a1 … z1, a2 …"""
    return chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")


def tied_means(one: Any) -> str:
    """Return the means with ties averaged of the systems that ties move, in words."""
    moved = getattr(one, "moved_by_ties", {})  # learners have values of several fits
    return ", ".join(f"{mean:.4f} for {name}, not {one.means[name]:.4f}" for name, mean in moved.items())


def paper_table(
    results: Mapping[str, Any],
    style: str = "latex",
    topics: str | None = None,
    show: Sequence[str] = (),
    rope: float | None = None,
    seeds: Mapping[str, Mapping[str, Mapping[int, float]]] | None = None,
) -> str:
    """Return a table of systems by measures, with the best mean of each measure in bold.

    `results` are comparisons of the same systems or learners, by measure. Style "latex" is a complete table for the
    package booktabs, with a caption (measures, convention, version of truerank, topics, test, correction) and a label.
    "csv" has a row for each system and measure, with intervals and p. `topics` describes the topics of the means.

    With a baseline, + and - mark the means that are significantly better and worse (corrected p below 0.05). Without a
    baseline each system has a letter, and a mean has the letters of the systems that are significantly worse. With
    `rope`, the marks follow the posterior instead (`Comparison.practical`), and = marks equivalence.

    `show` adds columns after each mean: "intervals" of the difference to the baseline (of the mean without a baseline),
    "effects" (Cohen's d against the baseline), and "ranks" (`Comparison.rank_sets`). In LaTeX, the measures are stacked
    if they are too wide for a page: with intervals, or with more than six columns.

    `seeds` are means over queries by measure, learner and seed: each mean has its standard deviation over seeds, and
    "seeds" in `show` adds a row for each seed.
    """
    first = next(iter(results.values()))
    for one in show:
        check_choice(one, "show", first.SHOWN)
    if style == "csv":
        return _csv(results)
    order = sorted(first.means, key=lambda name: -first._sign * first.means[name])
    letters = {} if first.baseline is not None else {name: letter(k) for k, name in enumerate(order)}
    caption = _caption(results, letters, topics, show, rope, seeds)
    columns = sum(1 + len(_more(one, show)) for one in results.values())
    stacked = style == "latex" and len(results) > 1 and ("intervals" in show or columns > _MOST_COLUMNS)
    panels = [
        _panel(part, order, letters, show, rope, seeds or {}, style == "latex")
        for part in ([{name: one} for name, one in results.items()] if stacked else [results])
    ]
    if style == "markdown":
        ((heads, rows),) = panels
        lines = [["ranker", *heads], ["---", *["--:"] * len(heads)], *rows]
        return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + (
            f"\n\n{caption}"
        )
    body = list[list[str]]()
    for heads, rows in panels:
        cells = [rf"\multicolumn{{2}}{{c}}{{{latex_escaped(head)}}}" if head in results else latex_escaped(head)
                 for head in heads]  # fmt: skip
        body += [[r"\midrule"] * bool(body), [" & ".join(["ranker", *cells]) + r" \\", r"\midrule"]]
        body.append([" & ".join(row) + r" \\" for row in rows])
    return "\n".join([
        r"\begin{table}",
        r"\centering",
        r"\setlength{\belowcaptionskip}{6pt}",
        rf"\caption{{{latex_escaped(caption)}}}",
        rf"\begin{{tabular}}{{l{''.join('r@{}l' if head in results else 'r' for head in panels[0][0])}}}",
        r"\toprule",
        *chain.from_iterable(body),
        r"\bottomrule",
        r"\end{tabular}",
        rf"\label{{tab:{'-'.join(re.findall('[a-z0-9]+', ' '.join(results).lower()))}}}",
        r"\end{table}",
    ])  # fmt: skip


def _panel(
    results: Mapping[str, Any], order: Sequence[str], letters: Mapping[str, str], show: Sequence[str],
    rope: float | None, seeds: Mapping[str, Mapping[str, Mapping[int, float]]], latex: bool,
) -> tuple[list[str], list[list[str]]]:  # fmt: skip
    """Return the headings after the first heading, and the rows. In LaTeX, a mean and its interval take two columns."""
    bold, raised, spread, join = (
        (r"\textbf{%s}", r"\textsuperscript{%s}", r"\,$\pm$ %.4f", " & ")
        if latex
        else ("**%s**", "<sup>%s</sup>", " ± %.4f", "")
    )
    escaped = latex_escaped if latex else str
    marks = {measure: _marks(one, letters, rope) for measure, one in results.items()}
    heads = [label for measure, one in results.items() for label in (measure, *_more(one, show))]
    rows = []
    for name in order:
        row = [escaped(name + (f" ({letters[name]})" if letters else ""))]
        by_seed = {measure: own[name] for measure, own in seeds.items()}
        for measure, one in results.items():
            best = one._sign * one.means[name] == max(one._sign * mean for mean in one.means.values())
            mark = marks[measure].get(name, "")
            after = spread % stdev(by_seed[measure].values()) if len(by_seed.get(measure, ())) > 1 else ""
            after += raised % (_signed(mark) if latex else mark) if mark else ""
            row.append((bold if best else "%s") % f"{one.means[name]:.4f}" + join + after)
            row += [_signed(cell) if latex else cell for cell in _more(one, show, name)]
        rows.append(row)
        for seed in next(iter(by_seed.values()), ()) if "seeds" in show else ():
            cells = [[f"{by_seed[measure][seed]:.4f}{join}", *[""] * len(_more(one, show))]
                     for measure, one in results.items()]  # fmt: skip
            rows.append([rf"\quad seed {seed}" if latex else f"seed {seed}", *chain.from_iterable(cells)])
    return heads, rows


def _signed(text: str) -> str:
    return re.sub(r"([-+=])(?=\d|$)", r"$\1$", text)


def _more(one: Any, show: Sequence[str], name: str | None = None) -> list[str]:
    """Return the cells of system `name` after the means; without a name, return their headings."""
    pair = next((pair for pair in one.pairs if one.baseline is not None and pair.a == name), None)
    found = []
    if "intervals" in show and (one.baseline is not None or one.intervals):
        low, high = (pair.low, pair.high) if pair else one.intervals[name][1:] if name and one.baseline is None else (
            math.nan, math.nan
        )  # fmt: skip
        sign = "" if one.baseline is None else "+"
        found.append(("95% interval", "" if math.isnan(low) else f"[{low:{sign}.4f}, {high:{sign}.4f}]"))
    if "effects" in show and one.baseline is not None:
        found.append(("d", f"{pair.effect:.2f}" if pair and plain(pair.effect) is not None else ""))
    if "ranks" in show and one.rank_sets:
        found.append(("ranks", ranks_shown(one.rank_sets[name]) if name in one.rank_sets else ""))
    return [cells[name is not None] for cells in found]


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
    results: Mapping[str, Any], letters: Mapping[str, str], topics: str | None, show: Sequence[str],
    rope: float | None, seeds: Mapping[str, Any] | None,
) -> str:  # fmt: skip
    from truerank import __version__

    first = next(iter(results.values()))
    conventions = ", ".join(dict.fromkeys(one.convention for one in results.values()))
    tested, how = first.tested, f"significantly (p < {LEVEL})"
    if rope is not None:
        tested = tested if "ranks" in show and first.rank_sets else tested.partition(";")[0]
        how = f"probably (posterior probability 0.95, by more than {rope:g})"
    marks = (
        f"letters name the systems that a mean is {how} better than"
        if letters
        else f"+ and - mark means that are {how} better and worse than {first.baseline}"
    )
    about = [f"{', '.join(results)}, convention {conventions}, truerank {__version__}"]
    about += [*([topics] if topics else []), tested, marks]
    about += [f"= is equivalent within {rope:g}"] if rope is not None and not letters else []
    about += ["±: standard deviation over seeds of training"] if seeds else []
    if any("95% interval" in _more(one, show) for one in results.values()):
        about.append(f"intervals: {'mean' if letters else f'{first.interval_of}, this pair alone'}")
    about += [f"{measure} with ties averaged: {told}" for measure, one in results.items() if (told := tied_means(one))]
    about += ["d: Cohen's d"] if "effects" in show and not letters else []
    about += [RANKS.replace("`", "")] if "ranks" in show and first.rank_sets else []
    return f"{'; '.join(about)}."


def _csv(results: Mapping[str, Any]) -> str:
    header = ["measure", "convention", "ranker", "mean", "low", "high", "against", "difference", "difference_low"]
    header += ["difference_high", "p", "p_adjusted", "wins", "losses", "ties", "tie_averaged"]
    rows: list[list[Any]] = []
    for measure, one in results.items():
        for name, mean in one.means.items():
            own = one.intervals[name]
            for pair in [pair for pair in one.pairs if pair.a == name] or [None]:
                row: list[Any] = [measure, one.convention, name, mean, own.low, own.high]
                if pair is not None:
                    row += [pair.b, pair.difference, pair.low, pair.high, pair.p, pair.p_adjusted]
                    row += [pair.wins, pair.losses, pair.ties]
                rows.append([*row, *[""] * (len(header) - 1 - len(row)), one.tie_averaged.get(name, "")])
    shown = io.StringIO()
    writer = csv.writer(shown, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([["" if isinstance(v, float) and math.isnan(v) else v for v in row] for row in rows])
    return shown.getvalue().rstrip("\n")
