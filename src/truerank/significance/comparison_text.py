"""The text of a `Comparison` (`one`) or several: caption, sentences, and tables of systems and pairs in all styles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from truerank.core.printing import counted, plain, styled_table
from truerank.measures.conventions import titled
from truerank.significance.gate import lines_table
from truerank.significance.paired import LEVEL, OF_MEANS
from truerank.significance.paper_table import letter
from truerank.significance.ranks import RANKS, ranks_shown

SPARE = ("Cohen's d", "detectable, 80 % power", "ties averaged", "W/L/T", "95% interval", "p")
"""Columns that are dropped first if a table is too wide."""
CHOSEN = "If you chose among systems on these queries, put all of them into one comparison."
FEW_PAIRS = 30  # that are printed one by one


def family(one: Any) -> str:
    """Return the number of comparisons in words, such as "6 comparisons (3 pairs × 2 measures)"."""
    n, pairs = one.n_comparisons, len(one.pairs)
    text = counted(n, "comparison")
    return text if n == pairs else f"{text} ({counted(pairs, 'pair')} × {n // pairs} measures)"


def tested(one: Any) -> str:
    """Return the number of queries, the test and the correction in words."""
    sizes = sorted([pair.queries for pair in one.pairs])
    count = ("" if sizes[0] == sizes[-1] else f"{sizes[0]} to ") + counted(sizes[-1], "query")
    corrected, below = "p not corrected" if one.correction == "none" else f"p corrected by {one.correction.title()}", ""
    if one.correction == "max-t":
        corrected = "p corrected by max-T"
        if one.n_comparisons > 1:
            corrected += " and Holm, 4 : 1," if one.divided else " alone (Holm requires too many resamples)"
            below = " (by random signs, can be below p)" if one.test == "t" else ""
    below += f" and look {one.look} at these queries (times {LEVEL / one.level:g})" if one.look > 1 else ""
    resamples = f" ({one.n_resamples} resamples)" if one.test == "randomisation" else ""
    return f"{count}; {one.test} test, two-sided{resamples}; {corrected} for {family(one)}{below}"


def caption(compared: Mapping[str, Any]) -> str:
    """Return the caption of comparisons by measure: measures, convention, queries, test and correction."""
    first, names = next(iter(compared.values())), ", ".join(compared)
    conventions = ", ".join(dict.fromkeys(titled(one.convention) for one in compared.values() if one.convention))
    about = f"{names or 'values'}, convention {conventions}; " if conventions else f"{names}; " * bool(names)
    unseen = ""
    if first.pairs[0].verdict is not None:
        sure = [pair.verdict for pair in first.pairs if pair.verdict.not_worse]
        unseen = f"; {min(sure, key=lambda verdict: verdict.n).unseen}" if sure else ""
    return f"{about}{tested(first)}, ** where it is below 0.05; each interval is for one pair alone{unseen}"


def finding(one: Any) -> str:
    """Return the figures of the summary's pair in words."""
    pair, systems, percent = one.best, len(one.means), f"{100 * (1 - one.level):.4g} %"
    low, high, kind = pair.low, pair.high, f"{percent} interval"
    kind += "" if one.test in OF_MEANS else f" of the {one.interval_of}"
    if systems > 2 and pair.simultaneous is not None:  # the best of several
        _, low, high = pair.simultaneous
        kind = f"simultaneous {percent} interval, single step,"
    chosen = ""
    if systems > 2 and one.baseline is not None:
        chosen = f"{pair.a} has the best mean of the {systems - 1} systems that are compared with {pair.b}. "
    interval = "" if math.isnan(low) else f" ({kind} {low:+.4f} to {high:+.4f})"
    p = "" if math.isnan(pair.p) else f" (p = {pair.p_adjusted:.3g} after correction)"
    return (
        f"{chosen}{one.measure or 'The mean'} is {one.means[pair.a]:.4f} for {pair.a} and "
        f"{one.means[pair.b]:.4f} for {pair.b}: a difference of {pair.difference:+.4f}{interval}. "
        f"Of {counted(pair.queries, 'query')}, {pair.wins} gain, {pair.losses} lose and {pair.ties} do not change{p}."
    )


def sentences(one: Any) -> list[str]:
    """Return sentences on pairs without an interval, and on p that another seed may move across 0.05."""
    lines, alike = [], dict[str, list[str]]()
    for pair in one.pairs:
        count = pair.wins + pair.losses
        differ = f"{count} of {counted(pair.queries, 'query')} differ{'s' * (pair.queries == 1)}"
        if not count:
            differ = "no query differs"
        elif math.isinf(pair.effect):
            differ = f"all {pair.queries} queries differ by the same amount"
        if math.isnan(pair.low):
            lacks = "no p and no interval" if math.isnan(pair.p) else "no interval"
            alike.setdefault(f"{lacks}: {differ}", []).append(f"{pair.a} against {pair.b}")
        if pair.error and abs(pair.p_adjusted - LEVEL) < 2.0 * pair.error:
            lines.append(
                f"{pair.a} against {pair.b}: the Monte Carlo error of the corrected p {pair.p_adjusted:.4f} is "
                f"{pair.error:.4f}; another seed may give a p on the other side of 0.05"
            )
    for why, pairs in alike.items():
        more = f" and {counted(len(pairs) - 3, 'other pair')} have" if len(pairs) > 3 else ""
        lines.append(f"{', '.join(pairs[:3])}{more or (' has' if len(pairs) == 1 else ' have')} {why}")
    return lines[:30]


def remarks_below(compared: Mapping[str, Any]) -> list[str]:
    """Return the lines below tables of comparisons by measure: `sentences`, and the warning about selection."""
    lines = []
    for name, one in compared.items():
        lines += [f"{name}: {line}" if len(compared) > 1 else line for line in sentences(one)]
    return [*lines, CHOSEN]


def _cells(one: Any, pair: Any, detectable: bool = False) -> dict[str, Any]:
    """Return the cells of a pair in tables, by heading."""
    sign, percent = "" if one.test == "sign" else "+", f"{100 * (1 - one.level):.4g}%"
    interval = "" if math.isnan(pair.low) else f"[{pair.low:{sign}.4f}, {pair.high:{sign}.4f}]"
    if one.test in OF_MEANS:
        cells: dict[str, Any] = {f"difference, {percent}": f"{pair.difference:+.4f} {interval}".rstrip()}
    else:
        cells = {"difference": f"{pair.difference:+.4f}", f"{one.interval_of}, {percent}": interval}
    cells |= {"W/L/T": f"{pair.wins}/{pair.losses}/{pair.ties}", "p": pair.p, f"p, {one.correction}": pair.marked}
    cells["Cohen's d"] = plain(pair.effect)
    if detectable:
        cells["detectable, 80 % power"] = pair.detectable
    return cells if pair.verdict is None else cells | {"verdict": pair.verdict.words}


def systems_table(one: Any, style: str = "text") -> str:
    """Return the table of rankers by mean with the baseline's comparison, in a style of `styled_table`."""
    against = {} if one.baseline is None else {pair.a: _cells(one, pair) for pair in one.pairs}
    letters = dict.fromkeys(one.means, "")
    for number, group in enumerate([] if against else one.groups):  # the column of differences holds the same
        for name in group:
            letters[name] += ("," if letters[name] else "") + letter(number)
    empty = dict.fromkeys(next(iter(against.values()), {}))
    if empty:  # cells of texts are texts, so that columns are aligned alike
        empty = {name: "" if name in ("W/L/T", "verdict") or "%" in name else None for name in empty}
        empty[next(iter(empty))] = "(baseline)"
    rows, header = [], list[str]()
    for place, name in enumerate(one.order, 1):
        interval = one.intervals[name]
        row: dict[str, Any] = {"": place, "ranker": name, one.measure or "mean": one.means[name]}
        if one.moved_by_ties:
            row["ties averaged"] = one.tie_averaged.get(name)
        row["95% interval"] = "" if math.isnan(interval.low) else f"[{interval.low:.4f}, {interval.high:.4f}]"
        if any(letters.values()):
            row["group"] = letters[name]
        if one.rank_sets:
            row["ranks"] = ranks_shown(one.rank_sets[name])
        row |= against.get(name, empty)
        header = list(row)
        rows.append(list(row.values()))
    return styled_table(rows, header, style, "" if style == "text" else caption({one.measure: one}), SPARE)


def pairs_table(compared: Mapping[str, Any], style: str = "text") -> str:
    """Return the table of the pairs that were compared by one measure or several."""
    rows, header = [], list[str]()
    for measure, one in compared.items():
        for pair in one.pairs:
            row: dict[str, Any] = {"measure": measure} if len(compared) > 1 else {}
            row |= {"rankers": f"{pair.a} against {pair.b}", "mean": one.means[pair.a], "against": one.means[pair.b]}
            row |= _cells(one, pair, detectable=True)
            header = list(row)
            rows.append(list(row.values()))
    about = "" if style == "text" and len(compared) == 1 else caption(compared)
    return styled_table(rows, header, style, about, SPARE)


def tables(one: Any, style: str = "text") -> str:
    """Return the tables with all that is known about them, in a style of `styled_table`."""
    parts = [systems_table(one, style)]
    if one.baseline is None:
        differ = sum(pair.p_adjusted < LEVEL for pair in one.pairs)
        if len(one.pairs) <= FEW_PAIRS or style != "text":
            parts.append(pairs_table({one.measure: one}, style))
        groups = ". Systems that share a letter in `group` do not" if one.groups else ""
        ranks = f". {RANKS}" if one.rank_sets else ""
        parts.append(f"{differ} of {counted(len(one.pairs), 'pair')} differ significantly{groups}{ranks}")
    if len(one.pairs) <= 5:
        parts += _by_queries(one, style)
    detectable = sorted(pair.detectable for pair in one.pairs if not math.isnan(pair.detectable))
    power = "no detectable difference, because fewer than five queries differ, or all differ by the same amount"
    if detectable:
        which = "by a corrected p below 0.05" if one.n_comparisons > 1 else "by p below 0.05"
        median = ", median of the pairs" if len(detectable) > 1 else ""
        power = f"detectable difference at 80 % power {detectable[len(detectable) // 2]:.4f} ({which}{median})"
    if one.pairs[0].verdict is not None:
        power += "; better and worse follow the corrected p, other verdicts are for one pair alone"
    parts.append(f"{caption({one.measure: one})}; {power}" if style == "text" else power)
    parts += sentences(one)
    parts += segments_tables(one, style)
    parts += [one.about] if one.about else []
    if one.moved_by_ties:
        parts.append(
            f"ties change a mean by more than 0.0005. The values follow the rule of the convention "
            f"{one.convention}; `ties averaged` is independent of it"
        )
    if one.smallest_p >= LEVEL and not all(math.isnan(pair.p) for pair in one.pairs):
        parts.append(
            f"no difference can be significant: too few queries differ, so that {family(one)} cannot have a corrected "
            f"p below {one.smallest_p:.3g}. Use more queries or compare fewer systems"
        )
    if one.by is not None and one.by.AGGREGATE == "sum":
        parts.append(f"{one.measure}: means over queries here; `truerank evaluate` prints the total")
    parts += one.unjudged[1]
    return "\n\n".join(parts if one.rope is None else [*parts, one.practical()._table(style)])


def segments_tables(one: Any, style: str) -> list[str]:
    """Return a table of the results in each segment for each system except the baseline."""
    return [
        lines_table(lines, LEVEL / len(one.segments), style, f"{one.measure} by segment, {name} against "
                    f"{one.experiment.baseline}; the intervals are simultaneous")
        for name, lines in one.segments.items()
    ]  # fmt: skip


def _by_queries(one: Any, style: str) -> list[str]:
    """Return the queries that move each pair most, and the queries that alone decide a pair."""
    rows, parts = [], []
    for pair in one.pairs:
        name, moved = f"{pair.a} against {pair.b}", one.moved_most(pair.a, pair.b)
        if any(moved):
            shown = [", ".join([f"{query} {difference:+.4f}" for query, difference in some]) for some in moved]
            rows.append([name, *shown])
        without = one.influence(pair.a, pair.b)
        if without is not None and without.changes:
            parts.append(
                f"query {without.query} alone decides {name}: without this query, the difference is "
                f"{without.difference:+.4f} (corrected p {without.p_adjusted:.4f})"
            )
    return [styled_table(rows, ["queries that differ most", "gains", "losses"], style), *parts] if rows else parts
