"""Make one HTML page of evidence on which system is better, where, and why.

The page has the verdict with a picture, a table of systems and measures, and details that unfold: tests, queries, ties,
curves, weights, calibration, errors by grade, rankings, data quality, and how the page was made.
"""

from __future__ import annotations

import html
import platform
from typing import TYPE_CHECKING, Any

import numpy as np

from truerank.core.printing import counted
from truerank.experiments.details import Detail, Rankings
from truerank.experiments.evidence import Evidence
from truerank.report.page import (
    Section,
    chart,
    data_table,
    framed,
    headline,
    page,
    paragraph,
    rankings,
    simple_table,
)
from truerank.significance.comparison_text import caption, finding, remarks_below, segments_tables
from truerank.significance.paired import LEVEL
from truerank.significance.ranks import RANKS, ranks_shown

if TYPE_CHECKING:
    from truerank.calibration.cutoffs import Cutoff


def make_report(
    evidence: Evidence,
    *,
    title: str = "Ranking report",
    made_by: str = "",
    sources: dict[str, str] | None = None,
    cutoff: Cutoff | None = None,
) -> str:
    """Return the evidence on an experiment as one HTML page that needs no network.

    Parameters
    ----------
    evidence : Evidence
        `experiment.evidence()`. The baseline comes first. The first measure decides the verdict.
    title, made_by : str
        Heading; the command that made the page.
    sources : dict of str to str, optional
        The files of the page by name, each with a hash or a remark.
    cutoff : Cutoff, optional
        A fitted cutoff; the page shows its guarantee and risk curve.

    Raises
    ------
    MissingExtraError
        Without the extra `report`.
    """
    experiment, results, first, other = evidence.experiment, evidence.results, evidence.first, evidence.other
    compared, convention = evidence.compared, experiment.convention
    verdict, picture = headline(evidence.summary), compared.get(first, results[other])
    if evidence.leaders:
        picture = evidence.evaluations
    elif first in compared:
        verdict += paragraph(finding(compared[first]))
    remarks = [f"{counted(results[0].empty, 'query')} without a relevant document."] if results[0].empty else []
    remarks += experiment.training_text.split("\n")
    remarks += [f"{experiment.topics_text}."] if experiment.topics_text else []
    about = "".join(paragraph(line, quiet=True) for line in remarks)
    sections = [
        Section("summary", "Summary", verdict + chart(picture.plot()) + about),
        _measures(evidence),
        *_comparison(evidence),
        _by_query(evidence.details["queries"]),
        _ties(evidence),
        *[_detail(name, one) for name, one in evidence.details.items() if name not in ("queries", "findings")],
        *([] if cutoff is None else [_cutoff(cutoff)]),
        _rankings(evidence.rankings),
        *[_detail(name, one) for name, one in evidence.details.items() if name == "findings"],
        _making(made_by, sources or {}, convention),
    ]
    subtitle = f"{counted(results[0].n_queries, 'query')}, {first} under the convention {convention}"
    return page(title, subtitle, sections)


def _measures(evidence: Evidence) -> Section:
    """Return a table of systems and measures, the best system first, and intervals of the first measure."""
    names, results, first = evidence.systems, evidence.results, evidence.first
    compared = {} if evidence.leaders else evidence.compared  # with a baseline that was not stated, marks would mislead
    ranks = evidence.rank_sets
    better = {(name, p.a) for name, one in compared.items() for p in one.pairs if p.p_adjusted < LEVEL}
    sign = 1.0 if results[0].measures[first].higher_is_better else -1.0
    rows: list[list[Any]] = []
    for system, result in sorted(zip(names, results), key=lambda one: -np.nan_to_num(sign * one[1][first])):
        row: list[Any] = [system + (" (baseline)" if system == names[0] and compared else "")]
        intervals = result.intervals()
        for name in result:
            if not np.isfinite(result.per_query[name]).any():
                row.append(None)
                continue
            low, high = intervals.get(name, (None, None))
            ends = "" if low is None else f" [{low:.4f}, {high:.4f}]"
            row.append(f"{result[name]:.4f}{ends}{'**' if (name, system) in better else ''}")
        rows.append([*row, ranks_shown(ranks[system])] if ranks else row)
    note = "Mean and 95 % confidence interval over queries (Student's t)."
    if compared:
        note += f" Two asterisks mark a difference from {names[0]} with a corrected p below {LEVEL}."
    if ranks:
        note += f" {RANKS}, by {first} from tests of all pairs."
    header = ["system", *results[0], *(["ranks"] if ranks else [])]
    text = simple_table(header, rows, "measures") + paragraph(note, quiet=True)
    text += "" if evidence.leaders else chart(evidence.evaluations.plot())  # stands in the summary
    return Section("measures", "Measures", text)


def _ties(evidence: Evidence) -> Section:
    """Return a section on the range of values over orders of ties, and on the share of judged documents."""
    rows: list[list[Any]] = []
    for system, result in zip(evidence.systems, evidence.results):
        ties, shares = result.tie_range(), result.judged_shares()
        rows += [[system, name, *(ties[name] or (None, None)), shares.get(name)] for name in result]
    header = ["system", "measure", "worst order of ties", "best order of ties", "judged"]
    title, note = "Ties and unjudged documents", "Mean in the worst and the best order of equal scores"
    if all(row[-1] is None for row in rows):
        title, header, rows = "Ties", header[:-1], [row[:-1] for row in rows]
    else:
        note += "; share of judged documents up to the cutoff"
    text = simple_table(header, rows, "ties") + paragraph(f"{note}.", quiet=True)
    return Section("ties", title, text, folded=True)


def _comparison(evidence: Evidence) -> list[Section]:
    if not (compared := evidence.compared):
        return []
    rows: list[list[Any]] = [
        [name, p.a, p.b, p.difference, p.low, p.high, p.wins, p.losses, p.ties, p.p, p.marked, p.detectable]
        for name, one in compared.items()
        for p in one.pairs
    ]
    header = ["measure", "system", "against", "difference", "95 % from", "to", "wins", "losses", "ties", "p"]
    header += ["corrected", "detectable"]
    one = next(iter(compared.values()))
    note = f"{caption(compared)}. `detectable`: the true difference detected with 80 % power (corrected p < {LEVEL})."
    remarks = [f"{name}: {line}." for name, one in compared.items() for line in one.unjudged[1]]
    text = simple_table(header, rows, "comparison") + "".join(
        paragraph(t, quiet=True) for t in [note, *remarks_below(compared), *remarks]
    )
    text += "".join(framed(table, "segments") for table in segments_tables(one, "html"))
    first = evidence.systems[0]
    title = f"Differences from {first}, the first system" if evidence.leaders else f"Better than {first}?"
    return [Section("comparison", title, text, folded=True)]


def _by_query(found: Detail) -> Section:
    text = data_table(found.columns, found.rows, "queries", pick="query-box")
    return Section("queries", found.title, text, folded=True)


def _detail(name: str, found: Detail) -> Section:
    """Return a section with the charts of a detail, or else with its table."""
    text, last = "", ""
    for system, draw in found.charts:
        text += ("" if system == last else f"<h3>{html.escape(system)}</h3>") + chart(draw())
        last = system
    if found.rows and not text:
        text = simple_table(found.columns, found.rows, name)
    return Section(name, found.title, text + (paragraph(found.note, quiet=True) if found.note else ""), folded=True)


def _rankings(found: Rankings) -> Section:
    text = rankings(found.systems, found.queries, 1.0) + paragraph(found.note, quiet=True)
    return Section("rankings", "Rankings of a query", text, folded=True)


def _cutoff(cutoff: Any) -> Section:
    """Return the guarantee and the curve as a section of a report."""
    return Section("cutoff", "Cutoff", paragraph(cutoff.summary()) + chart(cutoff.plot()))


def _making(made_by: str, sources: dict[str, str], convention: str) -> Section:
    from truerank import __version__

    rows: list[list[Any]] = [
        ["truerank", __version__],
        ["Python", platform.python_version()],
        ["NumPy", np.__version__],
    ]
    rows += [["convention", convention], *[[name, remark] for name, remark in sources.items()]]
    text = f"<pre>{html.escape(made_by)}</pre>" if made_by else ""
    return Section(
        "making", "How this page was made", text + simple_table(["what", "which"], rows, "versions"), folded=True
    )
