"""One HTML page of evidence on rankings: which system is better, where, and why.

The page has the verdict with a picture, a table of systems and measures, and details that unfold: tests, queries, ties,
curves, weights, calibration, errors by grade, rankings, data quality, and how the page was made.
"""

from __future__ import annotations

import html
import platform
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from truerank.core.charts import bars, lines
from truerank.core.printing import counted
from truerank.data.columns import as_in_training, shown_names
from truerank.data.ranking_data import Judgements, RankingData
from truerank.experiments.evidence import Evidence
from truerank.measures import parse_measure
from truerank.measures.evaluation import Evaluation
from truerank.rankers.own_importance import MOST_FEATURES, SHARE, own_importance
from truerank.report.page import (
    Section,
    chart,
    data_table,
    headline,
    page,
    paragraph,
    rankings,
    simple_table,
)
from truerank.significance.comparison_text import caption, finding, remarks_below
from truerank.significance.paired import differences_of
from truerank.significance.ranks import RANKS, ranks_shown
from truerank.significance.tables import Comparison

if TYPE_CHECKING:
    from truerank.calibration.cutoffs import Cutoff

_RANKED_QUERIES = 60  # queries whose rankings are on the page
_RANKED_DOCUMENTS = 10
_RANKED_SYSTEMS = 4
_REASONS = 4
_MOVED_QUERIES = 200  # queries whose features are changed a little


class System(NamedTuple):
    """Judged documents, a system's scores (n,) in the same order, and the fitted ranker or None."""

    name: str
    judgements: Judgements
    scores: np.ndarray
    model: Any = None


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
        A fitted cutoff; the page shows its promise and risk curve.

    Raises
    ------
    MissingExtraError
        Without the extra `report`.
    """
    experiment, results, first, other = evidence.experiment, evidence.results, evidence.first, evidence.other
    models = experiment.models
    systems = [
        System(name, judgements, scores, models.get(name))
        for name in evidence.systems
        for judgements, scores in [experiment.judged[name]]
    ]
    data, compared, convention = experiment.rows, evidence.compared, experiment.convention
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
        *_comparison(systems, compared, bool(evidence.leaders)),
        _by_query(systems, results, first, other),
        _ties(systems, results),
        *_by_system(systems, "curves", "Learning curves", _curves),
        *_by_system(systems, "features", "Weights and importance", _weights),
        *_by_system(
            systems, "probabilities", "Calibration of the probabilities", lambda one: _probabilities(one, data)
        ),
        *_stability(systems, data),
        *_pair_errors(systems, convention),
        *([] if cutoff is None else [_cutoff(cutoff)]),
        _rankings(systems, results, first, other, data),
        *_findings(data),
        _making(made_by, sources or {}, convention),
    ]
    subtitle = f"{counted(results[0].n_queries, 'query')}, {first} under the convention {convention}"
    return page(title, subtitle, sections)


def _measures(evidence: Evidence) -> Section:
    """Return a table of systems and measures, the best system first, and intervals of the first measure."""
    names, results, first = evidence.systems, evidence.results, evidence.first
    compared = {} if evidence.leaders else evidence.compared  # with a baseline that was not stated, marks would mislead
    ranks = evidence.rank_sets
    better = {(name, p.a) for name, one in compared.items() for p in one.pairs if p.p_adjusted < 0.05}
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
        note += f" Two asterisks mark a difference to {names[0]} with a corrected p below 0.05."
    if ranks:
        note += f" {RANKS}, by {first} from tests of all pairs."
    header = ["system", *results[0], *(["ranks"] if ranks else [])]
    text = simple_table(header, rows, "measures") + paragraph(note, quiet=True)
    text += "" if evidence.leaders else chart(evidence.evaluations.plot())  # stands in the summary
    return Section("measures", "Measures", text)


def _ties(systems: Sequence[System], results: list[Evaluation]) -> Section:
    """Return a section on the range of values over orders of ties, and on the share of judged documents."""
    rows: list[list[Any]] = []
    for system, result in zip(systems, results):
        ties, shares = result.tie_range(), result.judged_shares()
        rows += [[system.name, name, *(ties[name] or (None, None)), shares.get(name)] for name in result]
    header = ["system", "measure", "worst order of ties", "best order of ties", "judged"]
    note = "Mean in the worst and the best order of equal scores; share of judged documents up to the cutoff."
    if all(row[-1] is None for row in rows):
        header, rows = header[:-1], [row[:-1] for row in rows]
    text = simple_table(header, rows, "ties") + paragraph(note, quiet=True)
    return Section("ties", "Ties and unjudged documents", text, folded=True)


def _comparison(systems: Sequence[System], compared: dict[str, Comparison], unstated: bool) -> list[Section]:
    if not compared:
        return []
    rows: list[list[Any]] = [
        [name, p.a, p.b, p.difference, p.low, p.high, p.wins, p.losses, p.ties, p.p, p.marked, p.detectable]
        for name, one in compared.items()
        for p in one.pairs
    ]
    header = ["measure", "system", "against", "difference", "95 % from", "to", "wins", "losses", "ties", "p"]
    header += ["corrected", "detectable"]
    one = next(iter(compared.values()))
    note = (
        f"{caption(compared)}. `detectable`: the true difference that a corrected p below 0.05 finds with 80 % power."
    )
    about = "" if isinstance(one.about, str) else one.about("html")
    remarks = [f"{name}: {line}." for name, one in compared.items() for line in one.unjudged[1]]
    text = simple_table(header, rows, "comparison") + "".join(
        paragraph(t, quiet=True) for t in [note, *remarks_below(compared), *remarks]
    )
    text += about
    title = f"Differences from {systems[0].name}, the first system" if unstated else f"Better than {systems[0].name}?"
    return [Section("comparison", title, text, folded=True)]


def _by_query(systems: Sequence[System], results: list[Evaluation], first: str, other: int) -> Section:
    judgements = systems[0].judgements
    sizes = np.diff(judgements.offsets)
    relevant = np.array([int((part > 0).sum()) for part in np.split(judgements.grades, judgements.offsets[1:-1])])
    values = [result.per_query[first] for result in results]
    columns = ["query", "documents", "relevant", *[s.name for s in systems]]
    rows = [
        [str(name), int(n), int(r), *[_number(v[q]) for v in values]]
        for q, (name, n, r) in enumerate(zip(judgements.query_ids, sizes, relevant))
    ]
    if other:
        columns.insert(3, "difference" if len(systems) == 2 else f"{systems[other].name} - {systems[0].name}")
        difference = differences_of(values[other], values[0])
        for row, value in zip(rows, difference):
            row.insert(3, _number(value))
        rows = [rows[q] for q in np.argsort(-np.nan_to_num(difference), kind="stable")]
    return Section("queries", "Queries", data_table(columns, rows, "queries", pick="query-box"), folded=True)


def _by_system(systems: Sequence[System], anchor: str, title: str, part: Callable[[System], str]) -> list[Section]:
    """Return a section with a part for each system, or none if all parts are empty."""
    parts = [(system.name, part(system)) for system in systems]
    text = "".join(f"<h3>{html.escape(name)}</h3>{own}" for name, own in parts if own)
    return [Section(anchor, title, text, folded=True)] if text else []


def _curves(system: System) -> str:
    history = getattr(system.model, "history_", None)
    curves = dict(history) if isinstance(history, dict) else {}
    scores = getattr(system.model, "validation_scores_", None)
    if scores is not None and len(np.atleast_1d(scores)):
        curves.setdefault("validation", scores)
    text = ""
    for name, values in curves.items():
        values = np.asarray(values)
        if values.ndim != 1 or values.dtype.kind != "f" or np.isfinite(values).sum() < 2:
            continue
        rounds = range(1, len(values) + 1)
        text += chart(lines(rounds, {name: values}, ("round", str(name)), f"{name} of {system.name} by round"))
    return text


def _weights(system: System) -> str:
    found = None if system.model is None else own_importance(system.model)
    if not found:
        return ""
    kind, values = found
    shown = list(values.items())[:MOST_FEATURES]
    text = chart(bars(dict(shown), kind, f"{kind} of {system.name}"))
    if len(values) > len(shown):
        text += paragraph(f"The {len(shown)} largest of {len(values)}.", quiet=True)
    return text


def _probabilities(system: System, data: RankingData | None) -> str:
    if data is None or not hasattr(system.model, "predict_proba") or data.y is None:
        return ""
    from truerank.calibration.diagnostics import reliability

    p = data.grouped(np.asarray(system.model.predict_proba(_seen(system, data)))[:, -1])
    relevant = data.y >= float(getattr(system.model, "rel", 1) or 1)
    if relevant.all() or not relevant.any() or data.n_queries < 2:  # one query is no sample
        return ""
    found = reliability(relevant, p, groups=data.query_index)
    note = (
        f"Grey bars: 95 % range of the observed shares if every probability were correct, "
        f"{counted(data.n_queries, 'query')} as sampling units; {100 * found.inside:.0f} % of the points are inside."
    )
    return chart(found.plot()) + paragraph(note, quiet=True)


def _stability(systems: Sequence[System], data: RankingData | None) -> list[Section]:
    """Return a section on how small changes of features change the rankings of models with thresholds."""
    if data is None or not isinstance(data.X, np.ndarray):
        return []
    from truerank.inspection.stability import ranking_stability  # imports numba, which a report on runs does not need

    some = data.take_queries(np.unique(np.linspace(0, data.n_queries - 1, _MOVED_QUERIES).astype(int)))
    rows: list[list[Any]] = []
    for system in systems:
        found = None if system.model is None else own_importance(system.model)
        if found and found[0] == SHARE:
            moved = ranking_stability(system.model, _seen(system, some), repeats=3, random_state=0)
            moved = moved[~np.isnan(moved)]
            rows += [[system.name, len(moved), *map(float, (moved.mean(), moved.max()))]] if len(moved) else []
    note = (
        "Every value of a feature is replaced by the next larger or smaller value in the data. The figures are shares "
        "of a query's pairs of documents that change their order; lower is steadier."
    )
    header = ["system", "queries", "mean share", "largest share"]
    text = simple_table(header, rows, "stability") + paragraph(note, quiet=True)
    return [Section("stability", "Stability of the rankings", text, folded=True)] if rows else []


def _pair_errors(systems: Sequence[System], convention: str) -> list[Section]:
    grades = np.unique(systems[0].judgements.grades)[::-1]
    if not 2 <= len(grades) <= 6:
        return []
    rows: list[list[Any]] = []
    for i, high in enumerate(grades.tolist()):
        for low in grades.tolist()[i + 1 :]:
            measure = parse_measure(f"pairs({high:g},{low:g})", convention)
            rows.append([f"{high:g} before {low:g}", *[float(measure.mean(s.judgements, s.scores)) for s in systems]])
    text = simple_table(["pairs of grades", *[s.name for s in systems]], rows, "pair errors")
    note = "Share of pairs of documents of one query in which the lower grade ranks above; lower is better."
    return [Section("pairs", "Wrong pairs by grade", text + paragraph(note, quiet=True), folded=True)]


def _cutoff(cutoff: Any) -> Section:
    """Return the promise and the curve as a section of a report."""
    return Section("cutoff", "Cutoff", paragraph(cutoff.summary()) + chart(cutoff.plot()))


def _rankings(
    systems: Sequence[System], results: list[Evaluation], first: str, other: int, data: RankingData | None
) -> Section:
    names = [str(name) for name in systems[0].judgements.query_ids]
    values = np.nan_to_num(np.stack([result.per_query[first] for result in results]))
    spread = values.max(axis=0) - values.min(axis=0) if len(systems) > 1 else -values[0]
    m = len(names)
    chosen = np.argsort(-spread, kind="stable")[: _RANKED_QUERIES // 2].tolist()
    chosen += np.linspace(0, m - 1, min(m, _RANKED_QUERIES // 2)).astype(int).tolist()
    chosen = list(dict.fromkeys(chosen))
    shown = list(dict.fromkeys([0, other, *range(len(systems))]))[:_RANKED_SYSTEMS]
    systems = [systems[k] for k in shown]
    reasons = {s.name: _reasons(s, data) for s in systems}
    queries = {}
    for q in chosen:
        sides = []
        for system in systems:
            start, stop = system.judgements.offsets[q : q + 2]
            order = np.argsort(-system.scores[start:stop], kind="stable")[:_RANKED_DOCUMENTS]
            why = reasons[system.name](int(start), int(stop)) if reasons[system.name] else None
            keys = system.judgements.tie_keys
            grades = np.where(system.judgements.known, system.judgements.grades, np.nan)
            rows = [
                {
                    "id": f"row {start + i + 1}" if keys is None else str(keys[start + i]),
                    "grade": _number(grades[start + i]),
                    "score": float(system.scores[start + i]),
                    "why": None if why is None else why[i],
                }
                for i in order.tolist()
            ]
            sides.append(rows)
        queries[names[q]] = sides
    text = rankings([s.name for s in systems], queries, 1.0)
    what = "those that differ most" if len(systems) > 1 else "the hardest"
    note = f"This section has the first {_RANKED_DOCUMENTS} documents of {counted(len(chosen), 'query')}"
    note += "." if len(chosen) == m else f" of {m}: {what}, and an even sample of the others."
    if any(reasons.values()):
        note += " Main contributions: features that raise (+) or lower (\u2212) a score against the mean of its query."
    return Section("rankings", "Rankings of a query", text + paragraph(note, quiet=True), folded=True)


def _reasons(system: System, data: RankingData | None) -> Any:
    """Return a function from the rows of a query to each document's largest contributions, or None."""
    if data is None or system.model is None:
        return None
    from truerank.inspection.explanation import row_contributions

    data = _seen(system, data)
    if row_contributions(system.model, data.X[:1], data.X) is None:
        return None
    labels = shown_names(data.feature_names, data.n_features)

    def of(start: int, stop: int) -> list[list[list[Any]]]:
        found = row_contributions(system.model, data.X[start:stop], data.X)
        assert found is not None  # checked above
        contributions = found - found.mean(axis=0)
        order = np.argsort(-np.abs(contributions), axis=1, kind="stable")[:, :_REASONS]
        return [
            [[labels[k], float(row[k])] for k in best if row[k] != 0]
            for row, best in zip(contributions, order.tolist())
        ]

    return of


def _seen(system: System, data: RankingData) -> RankingData:
    """Return the data with the columns that trained the system's model, if the model has column names."""
    return as_in_training(data, getattr(system.model, "feature_names_in_", None))


def _findings(data: RankingData | None) -> list[Section]:
    if data is None:
        return []
    from truerank.data.checkup import examine
    from truerank.data.remarks import CODES, in_order
    from truerank.measures.file_order import file_order_finding

    found = in_order([*examine(data), *file_order_finding(data)])
    rows: list[list[Any]] = [[f.severity, f.code, f.count, f.where, CODES[f.code].meaning, f.remedy] for f in found]
    header = ["severity", "finding", "count", "where", "what it means", "what to do"]
    text = simple_table(header, rows, "findings") if rows else ""
    return [Section("findings", "Data quality", text or paragraph("Nothing was found."), folded=True)]


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


def _number(value: Any) -> float | None:
    return float(value) if value is not None and np.isfinite(value) else None
