"""Charts of results: the Vega-Lite specifications for `.plot()`, the report and commands.

`chart_of` knows the kinds of results. Colours are names of the report's theme, such as `page-a`. A chart that is
displayed or saved alone has the colours of a white page.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.files import atomic_write
from truerank.core.printing import plain

_COLOURS = {"page-a": "#0072b2", "page-b": "#b34b00", "page-quiet": "#545b66"}
_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"  # JupyterLab 4 knows v3 to v5
_WRITERS = {"svg": "vegalite_to_svg", "png": "vegalite_to_png", "pdf": "vegalite_to_pdf", "html": "vegalite_to_html"}
_BY_SIGN = {"condition": {"test": "datum.value < 0", "value": "page-b"}, "value": "page-a"}
_BARS = 1500  # above which values by query are an area
_MOST = 30  # features, pairs or contributions
Points = Iterable[tuple[str, float, float | None, float | None]]


@dataclass(frozen=True)
class Chart:
    """A chart that a notebook displays and `save` writes.

    Attributes
    ----------
    spec : dict
        The Vega-Lite specification without width and title.
    label : str
        Title of the chart, which is also its text for screen readers.
    """

    spec: dict[str, Any] = field(repr=False)
    label: str

    def to_dict(self) -> dict[str, Any]:
        """Return the complete Vega-Lite specification."""
        named = {"title": wrap(self.label, 64), "description": self.label}
        whole = {"$schema": _SCHEMA, **named, "width": 520, **self.spec}
        whole["config"] = {"axisY": {"titleLimit": 200, "labelLimit": 300}, "title": {"limit": 520}}
        return dict(_coloured(plain(whole)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an SVG, PNG, PDF or HTML file, or the specification (.json), by the suffix of the name.

        Raises
        ------
        InvalidInputError
            For any other suffix.
        MissingExtraError
            Without the extra `report`, unless the suffix is .json.
        """
        ending = os.fspath(path).rpartition(".")[2].lower()
        if ending not in (*_WRITERS, "json"):
            raise InvalidInputError(
                f"{os.fspath(path)}: the name of a picture must end in .svg, .png, .pdf, .html or .json",
                argument="path",
                expected="a name that ends in .svg, .png, .pdf, .html or .json",
            )  # fmt: skip
        content = json.dumps(self.to_dict()) if ending == "json" else self._drawn(ending)
        with atomic_write(path, "wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)

    def _drawn(self, ending: str) -> str | bytes:
        import vl_convert

        own: dict[str, dict[str, Any]] = {"png": {"scale": 2}, "html": {"bundle": True}}
        settings = own.get(ending, {})
        return getattr(vl_convert, _WRITERS[ending])(self.to_dict(), **settings)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        found = {"text/plain": repr(self), "application/vnd.vegalite.v5+json": self.to_dict()}
        try:
            return found | {"image/svg+xml": self._drawn("svg")}
        except ImportError:  # JupyterLab and VS Code draw specifications themselves
            return found


def _coloured(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: item if key == "values" else _coloured(item) for key, item in value.items()}
    return [_coloured(item) for item in value] if isinstance(value, list) else _COLOURS.get(str(value), value)


def number(name: str, title: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a channel of numbers; a title of None is kept, so that the axis has no title."""
    return {"field": name, "type": "quantitative", "title": title} | more


def layer(mark: Mapping[str, Any], rows: list[dict[str, Any]] | None = None, **channels: Any) -> dict[str, Any]:
    """Return a mark with its channels, over its own rows or the rows of the whole chart."""
    return {"mark": mark, "encoding": channels} | ({} if rows is None else {"data": {"values": rows}})


def _tips(*names: str) -> list[dict[str, str]]:
    return [{"field": name} for name in names]


def by_query(
    names: Iterable[Any], values: np.ndarray, title: str, label: str = "", mean: Sequence[float] = ()
) -> Chart:
    """Return bars of values (m,) by query in descending order, and the mean with its interval (mean, low, high)."""
    names, order = list(map(str, names)), np.argsort(-np.nan_to_num(values), kind="stable").tolist()
    many = len(order) > _BARS
    bar = layer(
        {"type": "area", "color": "page-a"} if many else {"type": "bar"},
        [{"query": names[q], "place": k, "value": float(values[q])} for k, q in enumerate(order)],
        x=number("place", "queries, sorted", axis={"labels": False, "ticks": False, "grid": False})
        | ({} if many else {"type": "ordinal"}),
        y=number("value", title),
        tooltip=[{"field": "query"}, {"field": "value", "format": ".4f"}],
        **({} if many else {"color": _BY_SIGN}),
    )
    ends = [dict(zip(("mean", "low", "high"), mean))] if mean else []
    band = layer(
        {"type": "rect", "color": "page-quiet", "opacity": 0.25}, ends, y=number("low", title), y2={"field": "high"}
    )
    rule = layer({"type": "rule", "color": "page-quiet"}, ends, y=number("mean", title))
    drawn = {"layer": [bar, band, rule]} if mean else bar
    return Chart(drawn | {"height": 220}, label or f"{title} by query, largest first")


def intervals(rows: Points, title: str, label: str, *, zero: bool = False) -> Chart:
    """Return a point and an interval for each row (name, value, low, high), and on request a line at 0."""
    names = ("name", "value", "low", "high")
    points = [dict(zip(names, row)) for row in rows]
    line, point = {"type": "rule", "color": "page-a", "strokeWidth": 2}, {"type": "point", "filled": True, "size": 80}
    rule = {"type": "rule", "color": "page-quiet", "strokeDash": [4, 4]}
    spec = {
        "data": {"values": points},
        "height": max(24 * len(points) + 4, 90),  # room for the axis of a single row
        "layer": [
            *([layer(rule, [{}], x={"datum": 0})] if zero else []),
            layer(line, x=number("low", title, scale={"zero": False}), x2={"field": "high"}, y=_named()),
            layer(point | {"color": "page-a"}, x=number("value", title), y=_named(), tooltip=_tips(*names)),
        ],
    }
    return Chart(spec, label)


def _named() -> dict[str, Any]:
    return {"field": "name", "type": "nominal", "sort": None, "title": None}


def bars(values: Mapping[str, float], title: str, label: str) -> Chart:
    """Return a horizontal bar for each value by name, in the given order."""
    rows = [{"name": name, "value": value} for name, value in values.items()]
    x = number("value", title)
    spec = layer({"type": "bar"}, rows, y=_named(), x=x, color=_BY_SIGN, tooltip=_tips("name", "value"))
    return Chart(spec | {"height": 20 * len(rows) + 4}, label)


def lines(
    x: Sequence[float] | np.ndarray, series: Mapping[str, Any], titles: tuple[str, str], label: str, band: Any = None
) -> Chart:
    """Return a line over x for each series, and on request a grey band between the ends (low, high)."""
    rows = [{"x": at, "y": y, "line": name} for name, values in series.items() for at, y in zip(x, plain(values))]
    channels = {"x": number("x", titles[0]), "y": number("y", titles[1], scale={"zero": False})}
    if len(series) > 1:
        channels["strokeDash"] = {"field": "line", "type": "nominal", "title": None, "sort": None}
    drawn = [layer({"type": "line", "color": "page-a"}, rows, **channels, tooltip=_tips("x", "y", "line"))]
    if band is not None:
        ends = [{"x": at, "low": low, "high": high} for at, low, high in zip(x, *map(plain, band))]
        grey = {"type": "area", "color": "page-quiet", "opacity": 0.25}
        drawn.insert(0, layer(grey, ends, x=channels["x"], y=number("low", titles[1]), y2={"field": "high"}))
    return Chart({"layer": drawn, "height": 220}, label)


def chart_of(result: Any) -> Chart:
    """Return the chart of a result.

    Raises
    ------
    InvalidInputError
        If results of this kind have no chart.
    """
    if result.KIND not in _CHARTS:
        raise InvalidInputError(
            f"a result of the kind {result.KIND!r} has no chart", remedies=["print it"], code="no-chart"
        )
    return _CHARTS[result.KIND](result)


def _evaluation(one: Any) -> Chart:
    name = next(iter(one))
    return by_query(one.query_ids, one.per_query[name], name)


def _evaluations(several: Any) -> Chart:
    name = next(iter(next(iter(several.values()))))
    sign = 1.0 if next(iter(several.values())).measures[name].higher_is_better else -1.0
    order = sorted(several.items(), key=lambda one: -sign * np.nan_to_num(one[1][name]))
    rows = [(system, one[name], *one.intervals().get(name, (None, None))) for system, one in order]
    return intervals(rows, name, f"{name} of each system with its 95 % interval")


def _comparison(one: Any) -> Chart:
    """Return the chart of a comparison: one pair by query, or several pairs by their intervals."""
    if isinstance(one, dict):
        one = next(iter(one.values()))
    if len(one.pairs) > 1:
        against = len({pair.b for pair in one.pairs}) > 1
        rows = ((f"{pair.a} - {pair.b}" if against else pair.a, pair.difference, pair.low, pair.high)
                for pair in sorted(one.pairs, key=lambda pair: -pair.difference))  # fmt: skip
        label = f"{one.measure}: differences {'' if against else f'to {one.pairs[0].b} '}with 95 % intervals"
        return intervals(rows, f"difference in {one.measure}", label, zero=True)
    (pair,) = one.pairs
    a, b = one.per_query[pair.a], one.per_query[pair.b]
    names = range(1, len(a) + 1) if one.query_ids is None else one.query_ids
    sign = 1 if one.higher_is_better else -1
    label = f"{pair.a} - {pair.b} by query: {pair.wins} gain, {pair.losses} lose, {pair.ties} equal"
    ends = () if one.test not in ("randomisation", "t") else (pair.difference, pair.low, pair.high)
    return by_query(names, sign * (a - b), f"difference in {one.measure}", label, ends)


def _importance(one: Any) -> Chart:
    rows = (tuple(row[:4]) for row in one.to_rows()[:_MOST])
    return intervals(rows, f"loss of {one.measure}", f"loss of {one.measure} without each feature", zero=True)


def _estimate(one: Any) -> Chart:
    pairs = one.differences()[:_MOST]
    rows = [(found.a if found.b is None else f"{found.a} - {found.b}", found.value, found.low, found.high)
            for found in pairs or one.values.values()]  # fmt: skip
    label = f"{one.measure} from {one.judged} judgements with 95 % intervals"
    return intervals(rows, f"difference in {one.measure}" if pairs else one.measure, label, zero=bool(pairs))


def _reliability(one: Any) -> Chart:
    names = ("predicted", "observed", "low", "high", "documents")
    columns = (one.predicted, one.observed, one.band_low, one.band_high, one.count)
    points = [dict(zip(names, row)) for row in zip(*(column.tolist() for column in columns))]
    x = number("predicted", "probability", scale={"domain": [0, 1]})
    y = number("observed", "share that is relevant")
    ideal = [{"predicted": 0, "observed": 0}, {"predicted": 1, "observed": 1}]
    band = {"type": "rule", "color": "page-quiet", "strokeWidth": 6, "opacity": 0.4}
    line = {"type": "line", "point": {"size": 60, "color": "page-a"}, "color": "page-a"}
    drawn = [
        layer({"type": "line", "color": "page-quiet", "strokeDash": [4, 4]}, ideal, x=x, y=y),
        layer(band, x=x, y=y | {"field": "low"}, y2={"field": "high"}),
        layer(line, x=x, y=y, tooltip=_tips("predicted", "observed", "documents")),
    ]
    return Chart({"data": {"values": points}, "height": 320, "layer": drawn}, "reliability diagram")


def _learning_curve(one: Any) -> Chart:
    series = {"training queries": one.train_scores.mean(axis=1), "held-out queries": one.test_scores.mean(axis=1)}
    titles = ("training queries", one.measure)
    return lines(one.train_sizes.tolist(), series, titles, f"learning curve of {one.measure}", (one.low, one.high))


def _examination(one: Any) -> Chart:
    places = list(range(1, one.K_ + 1))
    label = "examination by position, " + ("identified" if one.identified_ else "NOT identified")
    titles = ("position", "relative to position 1")
    return lines(places, {"propensity": one.propensities_}, titles, label, (one.low_, one.high_))


def risk(cutoff: Any) -> Chart:
    """Return the risk of a fitted cutoff and its bounds by the share answered or shown."""
    curve = cutoff.drawn_curve()
    of = "queries answered" if cutoff.kind_ == "answer" else "documents shown"
    series = {name: curve[name] for name in ("risk", "bound", "simultaneous") if name in curve}
    series["at most"] = 0 * curve["risk"] + cutoff.at_most
    title = f"{cutoff.answered_:.0%} of {of}, {cutoff.n_queries_} calibration queries"
    return lines(curve["answered"].tolist(), series, (f"share of {of}", "mean loss"), title)


def _power(one: Any) -> Chart:
    power, low, high = zip(*one.power_by_n.values())
    label = f"power of a {one.test} test to find a difference of {one.effect:.4g}"
    return lines(list(one.power_by_n), {"power": power}, ("queries", "power"), label, (low, high))


def _explanation(one: Any) -> Chart:
    values = {one.feature_names[k]: float(one.contributions[k]) for k in one.order()[:_MOST]}
    return bars(values, "contribution", f"why {one.above} ranks above {one.below}")


def _gained(one: Any) -> Chart:
    values = {f"{rank.rank} {rank.doc_id}": rank.gained for rank in one.ranks[:_MOST]}
    return bars(values, f"part of {one.measure.name}", f"{one.measure.name} of query {one.query} by rank")


def _agreement(one: Any) -> Chart:
    names = {"same": "same grade", "kappa": "kappa", "weighted_kappa": "kappa, quadratic weights", "alpha": "alpha"}
    rows = ((text, *getattr(one, name)) for name, text in names.items())
    return intervals(rows, "agreement", f"agreement on {one.n} documents with 95 % intervals")


def _cross_validation(one: Any) -> Chart:
    name = next(iter(one.measures))
    rows = ((ranker, own[name], min(one.fold_means[ranker][name]), max(one.fold_means[ranker][name]))
            for ranker, own in one.means.items())  # fmt: skip
    return intervals(rows, name, f"{name} of each ranker, and its range over folds")


def _learners(one: Any) -> Chart:
    rows = ((f"{pair.a} - {pair.b}", pair.difference, pair.low, pair.high) for pair in one.pairs)
    return intervals(rows, f"difference in {one.measure}", "differences of learners with 95 % intervals", zero=True)


def _clicks(one: Any) -> Chart:
    rows = ((name, value.value, value.low, value.high) for name, value in one.items())
    return intervals(rows, "value", f"value of each ranker with its {one.level:.0%} interval")


def _gate(one: Any) -> Chart:
    rows = (
        (line.name, line.difference, line.low, line.high) for line in one.lines if line.difference == line.difference
    )
    return intervals(rows, "difference", one.summary, zero=True)


_CHARTS: dict[str, Callable[[Any], Chart]] = {
    "evaluation": _evaluation,
    "evaluations": _evaluations,
    "comparison": _comparison,
    "report": lambda one: chart_of(one.evaluations),
    "retraining": lambda one: chart_of(one.comparison),
    "fusion": lambda one: chart_of(next(iter(one.comparisons.values()))),
    "importance": _importance,
    "estimate": _estimate,
    "reliability": _reliability,
    "learning-curve": _learning_curve,
    "examination": _examination,
    "power": _power,
    "explanation": _explanation,
    "measure-explanation": _gained,
    "agreement": _agreement,
    "cross-validation": _cross_validation,
    "learner-comparison": _learners,
    "click-values": _clicks,
    "gate": _gate,
}
