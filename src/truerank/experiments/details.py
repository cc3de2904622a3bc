"""The details of a report: tables of values by query, feature or grade, and the rankings of some queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from truerank.core.charts import Chart, bars, lines
from truerank.core.errors import Wording, alternatives
from truerank.core.printing import counted
from truerank.data.columns import as_in_training, shown_names
from truerank.data.ranking_data import RankingData
from truerank.measures import parse_measure
from truerank.measures.ranking import Ranking
from truerank.significance.paired import differences_of

_RANKED_QUERIES = 60  # queries whose rankings are in a report
_RANKED_DOCUMENTS = 10
_RANKED_SYSTEMS = 4
_REASONS = 4
_MOVED_QUERIES = 200  # queries whose features are changed a little


class System(NamedTuple):
    """A system's ranking of judged documents, and the fitted ranker or None."""

    name: str
    ranking: Ranking
    model: Any = None


class Detail(NamedTuple):
    """A table of a report; `charts` show its figures, by the name of a system, and are drawn on request."""

    title: str
    columns: list[str]
    rows: list[list[Any]]
    note: str = ""
    charts: Sequence[tuple[str, Callable[[], Chart]]] = ()


def details_of(evidence: Any) -> dict[str, Detail]:
    """Return the details of an `Evidence` by name, without those that the systems or the data do not have."""
    experiment, systems = evidence.experiment, [_system(evidence, name) for name in evidence.systems]
    data = _rows(experiment)
    found: dict[str, Detail | None] = {"queries": _queries(evidence, systems)}
    if experiment.models:
        found["curves"], found["features"] = _curves(systems), _weights(systems)
        found["probabilities"], found["stability"] = _probabilities(systems, data), _stability(systems, data)
    found["pairs"] = _pair_errors(systems, experiment.convention)
    found["findings"] = _findings(data, bool(experiment.models), evidence.wording)
    return {name: one for name, one in found.items() if one is not None}


def _rows(experiment: Any) -> RankingData | None:
    """Return the rows that models scored if they are in memory."""
    return experiment.rows if isinstance(experiment.rows, RankingData) else None


def _system(evidence: Any, name: str) -> System:
    return System(name, evidence.experiment.rankings[name], evidence.experiment.models.get(name))


def _queries(evidence: Any, systems: Sequence[System]) -> Detail:
    judgements, other = systems[0].ranking.judgements, evidence.other
    sizes = np.diff(judgements.offsets)
    relevant = [int((part > 0).sum()) for part in np.split(judgements.grades, judgements.offsets[1:-1])]
    values = [result.per_query[evidence.first] for result in evidence.results]
    columns = ["query", "documents", "relevant", *[one.name for one in systems]]
    own = zip(map(str, judgements.query_ids.tolist()), sizes.tolist(), relevant, *[one.tolist() for one in values])
    rows = [list(row) for row in own]
    if other:
        columns.insert(3, "difference" if len(systems) == 2 else f"{systems[other].name} - {systems[0].name}")
        difference = differences_of(values[other], values[0])
        for row, value in zip(rows, difference.tolist()):
            row.insert(3, value)
        rows = [rows[q] for q in np.argsort(-np.nan_to_num(difference), kind="stable")]
    return Detail("Queries", columns, rows, f"{evidence.first} of each query.")


def _curves(systems: Sequence[System]) -> Detail | None:
    rows, charts = list[list[Any]](), list[tuple[str, Callable[[], Chart]]]()
    for system in systems:
        history = getattr(system.model, "history_", None)
        curves = dict(history) if isinstance(history, dict) else {}
        scores = getattr(system.model, "validation_scores_", None)
        if scores is not None and len(np.atleast_1d(scores)):
            curves.setdefault("validation", scores)
        for name, given in curves.items():
            values = np.asarray(given)
            if values.ndim != 1 or values.dtype.kind != "f" or np.isfinite(values).sum() < 2:
                continue
            rounds = range(1, len(values) + 1)
            rows += [[system.name, str(name), *row] for row in zip(rounds, values.tolist())]
            axes, label = ("round", str(name)), f"{name} of {system.name} by round"
            charts.append((system.name, partial(lines, rounds, {name: values}, axes, label)))
    return Detail("Learning curves", ["system", "curve", "round", "value"], rows, charts=charts) if rows else None


def _weights(systems: Sequence[System]) -> Detail | None:
    from truerank.rankers.own_importance import MOST_FEATURES, own_importance

    rows, charts, cut = list[list[Any]](), list[tuple[str, Callable[[], Chart]]](), list[str]()
    for system in systems:
        if system.model is None or not (found := own_importance(system.model)):
            continue
        kind, values = found
        shown = dict(list(values.items())[:MOST_FEATURES])
        rows += [[system.name, kind, *one] for one in shown.items()]
        charts.append((system.name, partial(bars, shown, kind, f"{kind} of {system.name}")))
        cut += [f"{system.name}: the {len(shown)} largest of {len(values)}."] if len(values) > len(shown) else []
    columns = ["system", "kind", "feature", "value"]
    return Detail("Weights and importance", columns, rows, " ".join(cut), charts) if rows else None


def _probabilities(systems: Sequence[System], data: RankingData | None) -> Detail | None:
    if data is None or data.y is None or data.n_queries < 2:  # one query is no sample
        return None
    rows, charts, inside = list[list[Any]](), list[tuple[str, Callable[[], Chart]]](), list[str]()
    for system in systems:
        relevant = data.y >= float(getattr(system.model, "rel", 1) or 1)
        if not hasattr(system.model, "predict_proba") or relevant.all() or not relevant.any():
            continue
        from truerank.calibration.diagnostics import reliability

        p = data.grouped(np.asarray(system.model.predict_proba(_seen(system, data)))[:, -1])
        found = reliability(relevant, p, groups=data.query_index, random_state=0)
        each = (found.low, found.high, found.count, found.predicted, found.observed, found.band_low, found.band_high)
        rows += [[system.name, *row] for row in zip(*[one.tolist() for one in each])]
        charts.append((system.name, found.plot))
        inside.append(f"{100 * found.inside:.0f} % for {system.name}")
    note = (
        f"Bands: 95 % range of the observed shares if every probability were correct, "
        f"{counted(data.n_queries, 'query')} as sampling units. Points inside: {', '.join(inside)}."
    )
    columns = ["system", "from", "to", "documents", "predicted", "observed", "band from", "band to"]
    return Detail("Calibration of the probabilities", columns, rows, note, charts) if rows else None


def _stability(systems: Sequence[System], data: RankingData | None) -> Detail | None:
    """Return how small changes of features change the rankings of models with thresholds."""
    if data is None or not isinstance(data.X, np.ndarray):
        return None
    from truerank.inspection.stability import ranking_stability
    from truerank.rankers.own_importance import SHARE, own_importance

    some = data.take_queries(np.unique(np.linspace(0, data.n_queries - 1, _MOVED_QUERIES).astype(int)))
    rows: list[list[Any]] = []
    for system in systems:
        if system.model is not None and (own_importance(system.model) or ("",))[0] == SHARE:
            moved = ranking_stability(system.model, _seen(system, some), repeats=3, random_state=0)
            moved = moved[~np.isnan(moved)]
            rows += [[system.name, len(moved), *map(float, (moved.mean(), moved.max()))]] if len(moved) else []
    note = (
        "Every value of a feature is replaced by the next larger or smaller value in the data. The figures: share of "
        "a query's document pairs that change their order; lower is steadier."
    )
    columns = ["system", "queries", "mean share", "largest share"]
    return Detail("Stability of the rankings", columns, rows, note) if rows else None


def _pair_errors(systems: Sequence[System], convention: str) -> Detail | None:
    grades = np.unique(systems[0].ranking.judgements.grades)[::-1]
    if not 2 <= len(grades) <= 6:
        return None
    rows: list[list[Any]] = []
    for i, high in enumerate(grades.tolist()):
        for low in grades.tolist()[i + 1 :]:
            measure = parse_measure(f"pairs({high:g},{low:g})", convention)
            rows.append(
                [f"{high:g} before {low:g}", *[float(measure.aggregate(measure.values(s.ranking))) for s in systems]]
            )
    note = "Share of document pairs of a query in which the document of lower grade ranks higher; lower is better."
    return Detail("Wrong pairs by grade", ["pairs of grades", *[s.name for s in systems]], rows, note)


def _findings(data: RankingData | None, features: bool, wording: Wording) -> Detail | None:
    """Return the remarks on the rows. Unless models read the features, the rows have the named columns alone."""
    if data is None:
        return None
    from truerank.data.checkup import examine, of_judged_rows
    from truerank.data.remarks import CODES, in_order
    from truerank.measures.file_order import file_order_finding

    checked = examine if features else of_judged_rows
    rows: list[list[Any]] = [
        [one.severity, one.code, one.count, one.where, CODES[one.code].meaning, alternatives(one.remedies, wording)]
        for one in in_order([*checked(data), *file_order_finding(data)])
    ]
    columns = ["severity", "finding", "count", "where", "what it means", "what to do"]
    return Detail("Data quality", columns, rows, "" if rows else "Nothing was found.")


class Rankings(NamedTuple):
    """The first documents of some queries, by query and system, with id, grade, score and contributions."""

    systems: list[str]
    queries: dict[str, list[list[dict[str, Any]]]]
    note: str


def rankings_of(evidence: Any) -> Rankings:
    """Return the rankings of the queries whose values differ most, and of an even sample of all queries."""
    names = [str(name) for name in evidence.experiment.judgements.query_ids]
    values = np.nan_to_num(np.stack([result.per_query[evidence.first] for result in evidence.results]))
    spread = values.max(axis=0) - values.min(axis=0) if len(values) > 1 else -values[0]
    m, half = len(names), _RANKED_QUERIES // 2
    chosen = np.argsort(-spread, kind="stable")[:half].tolist()
    chosen = list(dict.fromkeys([*chosen, *np.linspace(0, m - 1, min(m, half)).astype(int).tolist()]))
    shown = list(dict.fromkeys([0, evidence.other, *range(len(values))]))[:_RANKED_SYSTEMS]
    systems = [evidence.systems[k] for k in shown]
    sides = [_ranked(evidence, name, chosen) for name in systems]
    what = "the queries that differ most" if len(values) > 1 else "the queries with the lowest values"
    note = f"This section has the first {_RANKED_DOCUMENTS} documents of {counted(len(chosen), 'query')}"
    note += "." if len(chosen) == m else f" of {m}: {what}, and an even sample of all queries."
    if any(document["why"] is not None for side in sides for ranking in side for document in ranking):
        note += " Main contributions: features that raise (+) or lower (\u2212) a score from its query's mean."
    return Rankings(systems, {names[q]: list(of) for q, of in zip(chosen, zip(*sides))}, note)


def _ranked(evidence: Any, name: str, queries: Iterable[int]) -> list[list[dict[str, Any]]]:
    """Return the first documents of a system for each query number in `queries`."""
    system, found = _system(evidence, name), []
    reasons, judgements = _reasons(system, _rows(evidence.experiment)), system.ranking.judgements
    keys, grades = judgements.tie_keys, np.where(judgements.known, judgements.grades, np.nan)
    measure = evidence.experiment.measures[evidence.first]
    ties = measure.setting("ties")
    ordered = system.ranking.ordered("trec" if ties == "average" else ties, measure.setting("compare"))
    for q in queries:
        start, stop = map(int, judgements.offsets[q : q + 2])
        order = ordered.rows[0][start:stop][:_RANKED_DOCUMENTS] - start
        why = reasons(start, stop) if reasons else None
        found.append([
            {
                "id": f"row {i + 1} of the query" if keys is None else str(keys[start + i]),
                "grade": float(grades[start + i]),
                "score": float(system.ranking.scores[0, start + i]),
                "why": None if why is None else why[i],
            }
            for i in order.tolist()
        ])  # fmt: skip
    return found


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
