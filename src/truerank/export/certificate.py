"""Certify exports: compare the scores of an export with those of the model.

The export is read back and evaluated in the arithmetic of the engine, and by the engine's library if it is installed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np

from truerank.core.errors import PYTHON, InvalidInputError, Message, Remedy, Wording
from truerank.core.float32 import INPUTS, float32_threshold
from truerank.core.printing import counted, styled_table
from truerank.core.results import Result
from truerank.data.provenance import training_queries
from truerank.data.ranking_data import RankingData
from truerank.export.compared_rows import (
    border_cases,
    dense_rows,
    made_up_rows,
    merged_cases,
    missing_cases,
    reference_scores,
    steps_of,
    thresholds_of,
)
from truerank.export.form import Linear, ModelForm, Polynomial, as_linear, largest_values
from truerank.export.run import evaluated_part, evaluators
from truerank.export.search_engines import before_slack
from truerank.models.foreign.search_engines import SLACK

TRAIN_WITH_ZERO = Remedy(
    "where the training data are read, or use a format of programs that have missing values", missing="zero"
)
_ROUNDING = 1e-12  # of probabilities: where a calibrator is flat, those of different scores differ by rounding alone


@dataclass(frozen=True)
class Certificate(Result):
    """The result of comparing an export with its model.

    Attributes
    ----------
    format : str
    rows, queries : int
    made_up : bool
        Whether the rows were generated because no data were given.
    largest_difference : float
        Largest difference of scores over all rows and evaluators, apart from a constant that the format omits.
    orders_changed, firsts_changed : int
        Queries whose order of documents differs from that of `predict`, and queries whose first document differs. Both
        sides sort by descending score and then in the order of the rows, as engines that keep the order of documents
        for ties do. A query with a row that one side cannot score counts as changed in both. Generated rows are one
        query, whose ties may come in any order.
    rank_agreement : float
        Share of queries with the same order.
    score_differences : int
        Rows, also of the border cases, whose score differs from the model's score of the values that the format's
        programs read, by more than the rounding of their arithmetic. An export with such a row is wrong.
    missing_rows : int
        Rows with a missing value in a column that the model uses, or that `predict` cannot score.
    neighbours : int
        Pairs of neighbours in the model's order with different scores.
    ties_made, ties_broken : int
        Neighbours that tie only in the export, and only in the model.
    tied : float
        Share of documents that the model ties with another one of their query.
    border_cases, border_differences : int
        Rows with a feature at or next to a threshold, and the number of these rows whose score differs.
    missing_cases, missing_differences : int
        The same for rows with a missing feature.
    merged_cases : int
    merged_difference : float
        Rows with a float64 number that float32 merges with a threshold, and the largest difference of their scores.
        Programs that hold float64 features, and other kinds of numbers, have no such rows.
    evaluators : dict of str to float
        Largest difference by evaluator: "mimic" is truerank's interpreter, the others are the engines' libraries.
    evaluated : str
        Part of the export that the evaluators read: the text, or only its parameters.
    policy : dict
        Missing values, ties, precision, kinds of numbers, and the constant that was omitted.
    notes : tuple of str
    distilled : dict or None
        Loss of quality by distillation.
    model_hash, export_hash, data_hash : str
        SHA-256.
    truerank : str
        Version.
    """

    format: str
    rows: int
    queries: int
    made_up: bool
    largest_difference: float
    orders_changed: int
    firsts_changed: int
    rank_agreement: float
    score_differences: int
    missing_rows: int
    neighbours: int
    ties_made: int
    ties_broken: int
    tied: float
    border_cases: int
    border_differences: int
    missing_cases: int
    missing_differences: int
    merged_cases: int
    merged_difference: float
    evaluators: dict[str, float]
    evaluated: str
    policy: dict[str, Any]
    notes: tuple[str, ...]
    distilled: dict[str, Any] | None
    model_hash: str
    export_hash: str
    data_hash: str
    truerank: str = field(default="")

    KIND: ClassVar[str] = "certificate"

    def _figures(self) -> dict[str, Any]:
        first = {"orders_changed": self.orders_changed, "firsts_changed": self.firsts_changed, "subject": self.subject}
        return first | asdict(self)

    @property
    def changes(self) -> str:
        """Number of queries that change, in words."""
        whole = f"{self.orders_changed} of {self.queries} queries change their order"
        return f"{whole}, {self.firsts_changed} their first document"

    @property
    def summary(self) -> str:
        """Sentence that names what was compared."""
        return f"{self.subject}."

    def _table(self, style: str) -> str:
        rows = [[name, value] for name, value in self.evaluators.items()]
        return styled_table(rows, ["evaluator", "largest difference"], style)

    @property
    def subject(self) -> str:
        """The compared rows and queries, in words."""
        if self.made_up:
            return (
                f"{self.format}: only {self.rows} generated rows were compared. Pass certify to compare your own rows"
            ) + "; no order was compared: all have the same score" * (not self.neighbours)
        return (
            f"{self.format}: {self.changes}; compared with predict on {counted(self.rows, 'row')}"
            + f", {self.missing_rows} of them with missing values" * (self.missing_rows > 0)
            + "; no order was compared: no query has two documents of different scores" * (not self.neighbours)
        )

    def worded(self, wording: Wording = PYTHON) -> str:
        """Return the certificate in the terms of a front end."""
        lines = [
            self.subject,
            f"features: {self.policy['features']}, absent ones are {self.policy['missing']}; exported for "
            f"{self.policy['inputs']}, trained on {self.policy['trained_on']}",
            f"evaluated: {self.evaluated}",
            *(f"{name}: largest difference {difference:.3g}" for name, difference in self.evaluators.items()),
            f"{self.ties_made} ties created, {self.ties_broken} ties broken; {100 * self.tied:.1f} % of rows tie with "
            "another in predict",
            *(
                f"{what}: {differ} of {cases} cases differ" if cases else f"{what}: no case to compare"
                for what, cases, differ in (
                    ("rows next to thresholds", self.border_cases, self.border_differences),
                    ("missing features", self.missing_cases, self.missing_differences),
                )
            ),
        ]
        if self.merged_cases:
            lines.append(
                f"{self.merged_cases} generated rows with a value that float32 rounds to a threshold, which float32 "
                f"engines cannot distinguish: largest difference {self.merged_difference:.3g}"
            )
        lines += [note.worded(wording) if isinstance(note, Message) else note for note in self.notes]
        if self.distilled is not None:
            cost = self.distilled
            measures = "".join(
                f", {name} {value['model']:.4f} -> {value['distilled']:.4f}"
                for name, value in cost.items()
                if isinstance(value, dict)
            )
            lines.append(
                f"distilled to {cost['trees']} trees of constant leaves: {cost['rank_agreement']:.4f} of pairs in the "
                f"same order{measures}"
            )
        return "\n".join(lines)

    __str__ = worded


def certify_export(
    content: str | bytes,
    form: ModelForm,
    format: str,
    properties: Any,
    data: RankingData,
    missing: str,
    inputs: str,
    notes: tuple[str, ...],
    distilled: dict[str, Any] | None,
    factor: float = 1.0,
    step: float | None = None,
) -> Certificate:
    """Compare an export with its form. The export holds the form's numbers times `factor`, rounded to `step`.

    `predict` scores the rows as they are, and the export scores the rows as its programs read them.
    """
    from truerank import __version__
    from truerank.export.python import write

    made_up = data is None
    X = made_up_rows(form, inputs) if made_up else dense_rows(data)
    offsets = np.array([0, len(X)]) if made_up else data.offsets
    notes = notes if made_up else (str(training_queries(form.model, data)), *notes)
    _check_small(form, properties.tiny, format)
    if properties.float32:
        _check_float32(form, X, format)
    read = np.where(np.isnan(X), 0.0, X) if missing == "zero" else X
    cases = _cases(form, read, missing, properties, inputs)
    rows = np.concatenate([read, *cases.values()])
    expected = reference_scores(form, np.concatenate([X, *cases.values()]))
    ours = expected[: len(X)]
    absent = np.isnan(X[:, form.used]).any(axis=1) | np.isnan(ours)
    if missing == "zero":
        notes += _read_as_zero(form, format, read[absent], ours[absent])
    left_out = constant_left_out(form, format, properties)
    tolerance = _tolerance(form, rows, properties, step)
    scorers = evaluators(content, form, format, properties.scorer)
    found = {name: score(rows) / factor + left_out for name, score in scorers.items()}
    measured = _measured(expected, found, offsets, [len(own) for own in cases.values()], tolerance, form, made_up)
    if not (missing == properties.missing == "nan" and saw_missing(form) and not form.reads_zero.any()):
        # What the programs read instead of a missing value, or rows that are not compared.
        ours = ours.copy()
        ours[absent] = reference_scores(form, read[absent]) if missing == "zero" else np.nan
    meant = np.concatenate([ours, expected[len(X) : len(X) + len(cases["border"])]])
    measured["score_differences"] = _unexplained(form, rows, meant, found, tolerance, properties, inputs)
    if properties.float32:
        own = [scores[: len(X)][~absent] for scores in found.values()]
        notes += _moved_by_rounding(form, X[~absent], ours[~absent], own, tolerance[: len(X)][~absent])
    policy = _policy(form, properties, missing, inputs) | {"constant_left_out": left_out}
    if factor != 1.0 or step is not None:
        policy |= {"times": factor, "leaf_grid": step}
        notes += (f"rounded differently to keep the order of these rows: scores are those of predict times {factor!r}",)
    return Certificate(
        format=format, rows=len(X), queries=len(offsets) - 1, made_up=made_up, **measured, policy=policy, notes=notes,
        distilled=distilled, truerank=__version__, missing_rows=int(absent.sum()),
        evaluated=evaluated_part(format, found, properties.scorer),
        model_hash=_hash(write(form, "model", "float64").encode()),
        export_hash=_hash(content if isinstance(content, bytes) else content.encode()),
        data_hash=_hash(np.ascontiguousarray(X).tobytes() + np.asarray(offsets, dtype=np.int64).tobytes()),
    )  # fmt: skip


def _policy(form: ModelForm, properties: Any, missing: str, inputs: str) -> dict[str, Any]:
    """Return how the programs of a format treat rows and scores."""
    policy = {
        "missing": missing,
        "ties": "in the order of the rows",
        "features": "float32" if properties.float32 else "float64",
        "inputs": INPUTS[inputs if properties.float32 else "float64"],
        "trained_on": INPUTS.get(str(form.inputs), "numbers of an unknown kind"),
        "output": "score",
    }
    return policy if form.calibration is None else policy | {"output": "probability", "equal_within": _ROUNDING}


def _cases(form: ModelForm, X: np.ndarray, missing: str, properties: Any, inputs: str) -> dict[str, np.ndarray]:
    """Return rows at thresholds, with missing features, and with numbers that float32 merges."""
    complete = np.nan_to_num(X, nan=0.0)
    return {
        "border": border_cases(form, complete, properties.float32, inputs, properties.tiny),
        "missing": missing_cases(form, X, missing),
        "merged": merged_cases(form, X) if properties.float32 and inputs == "float64" else X[:0],
    }


def _tolerance(form: ModelForm, X: np.ndarray, properties: Any, step: float | None) -> np.ndarray:
    """Return the largest change by rounding of the score of each row (n,); `step` rounds leaf values."""
    relative = 4e-6 if properties.float32 or form.float32_sums else 3e-7 if properties.float32_scores else 1e-10
    on_grid = 0.0 if step is None else step * (len(thresholds_of(form)[0]) + 2)
    return relative * (1.0 + magnitudes(form, X)) + on_grid


def magnitudes(form: ModelForm, X: np.ndarray) -> np.ndarray:
    """Return a bound of the sum of magnitudes that a score of each row adds up, shape (n,).

    Rounding in any order of the sum changes a score by a small multiple of this and of the precision.
    """
    body, start, sizes = form.body, form.linear_start, np.abs(np.nan_to_num(X))
    total = np.full(len(X), abs(form.start) + abs(form.intercept))
    if start is not None:
        scaling = start.scaling
        reach = np.maximum(np.abs(scaling.low), np.abs(scaling.high)) + np.abs(scaling.mean)
        total += float(np.abs(start.weights / scaling.scale) @ reach)
    if isinstance(body, Linear):
        if form.normalizers is not None:
            own = form.normalizers.as_subtract_divide()
            sizes = (sizes + np.abs(own.first)) / np.abs(own.second)
        with np.errstate(over="ignore"):
            return total + np.minimum(sizes, 1e300) @ np.abs(body.weights)
    times = 1.0
    if isinstance(body, Polynomial):
        scaling = body.scaling
        reach = np.maximum(np.abs(scaling.low - scaling.mean), np.abs(scaling.high - scaling.mean)) / scaling.scale
        times = max(1.0, float(reach.max(initial=0.0))) ** body.degree
    return total + times * float(largest_values(form).sum())


def _unexplained(
    form: ModelForm, X: np.ndarray, meant: np.ndarray, found: dict[str, np.ndarray], tolerance: np.ndarray,
    properties: Any, inputs: str,
) -> int:  # fmt: skip
    """Count rows whose score in the export is not the model's score of the values that the programs read.

    `meant` has the scores of the first rows, nan for those that are not compared. With float32 features,
    the score may also be that of the rounded row. Rows with a feature at a threshold that float32 or Solr's slack
    cannot resolve are not counted.
    """
    X, tolerance = X[: len(meant)], tolerance[: len(meant)]
    possible, excused = [meant], np.isnan(meant)
    if properties.float32:
        largest = float(np.finfo(np.float32).max)
        rounded = X.clip(-largest, largest).astype(np.float32)
        possible.append(reference_scores(form, rounded.astype(np.float64)))
        for k, low, high in _either_side(form, properties, inputs):
            excused |= (rounded[:, k] > low) & (rounded[:, k] <= high)
    wrong = np.zeros(len(X), dtype=bool)
    for scores in found.values():
        own = scores[: len(X)]
        wrong |= ~np.any([(own == each) | (np.abs(own - each) <= tolerance) for each in possible], axis=0)
        excused |= np.isnan(own)  # a row without a score is refused by itself
    return int((wrong & ~excused).sum())


def _either_side(form: ModelForm, properties: Any, inputs: str) -> Iterator[tuple[int, Any, Any]]:
    """Yield columns and ranges (low, high] of float32 numbers that may fall on both sides of a threshold."""
    if inputs == "float64":
        features, steps = steps_of(form)
        with np.errstate(over="ignore"):
            steps = np.unique(np.stack([features, steps.astype(np.float32)]), axis=1)
            yield from zip(
                steps[0].astype(int), np.nextafter(steps[1].astype(np.float32), np.float32(-np.inf)), steps[1]
            )
    if properties.slack:
        features, thresholds = thresholds_of(form)
        low = float32_threshold(thresholds, inputs)
        yield from zip(features, low, before_slack(low) + SLACK)


def _measured(
    expected: np.ndarray, found: dict[str, np.ndarray], offsets: np.ndarray, cases: list[int], tolerance: np.ndarray,
    form: ModelForm, made_up: bool,
) -> dict[str, Any]:  # fmt: skip
    """Return a certificate's comparisons of scores for rows, and for border, missing and merged cases."""
    n_rows = int(offsets[-1])
    rounding = _ROUNDING if form.calibration is not None else 0.0
    changed, firsts = np.zeros((2, len(offsets) - 1), dtype=bool)
    largest, orders, counts = {}, [], []
    for evaluator, scores in found.items():
        with np.errstate(invalid="ignore"):
            differences = np.where(scores == expected, 0.0, np.abs(scores - expected))
        largest[evaluator] = float(differences[:n_rows].max())
        own = compare_orders(expected[:n_rows], scores[:n_rows], offsets, rounding, not made_up)
        changed, firsts = changed | own[0], firsts | own[1]
        orders.append(own[2:])
        beyond = ~(differences <= tolerance)  # nan, too
        border, missing, _ = np.split(beyond[n_rows:], np.cumsum(cases)[:-1])
        counts.append([border.sum(), missing.sum(), differences[len(differences) - cases[2] :].max(initial=0.0)])
    made, broken = np.max(orders, axis=0).tolist()
    border, missing, merged = np.max(counts, axis=0).tolist()
    neighbours, tied = ties(expected[:n_rows], offsets)
    return {
        "largest_difference": float(np.max(list(largest.values()))),  # nan where one is
        "orders_changed": int(changed.sum()), "firsts_changed": int(firsts.sum()),
        "rank_agreement": float(1.0 - changed.mean()) if len(changed) else 1.0,
        "neighbours": neighbours, "ties_made": made, "ties_broken": broken,
        "tied": tied / max(n_rows, 1), "border_cases": cases[0], "border_differences": int(border),
        "missing_cases": cases[1], "missing_differences": int(missing), "merged_cases": cases[2],
        "merged_difference": merged, "evaluators": largest,
    }  # fmt: skip


def _read_as_zero(form: ModelForm, format: str, read: np.ndarray, expected: np.ndarray) -> tuple[str, ...]:
    """Return a note on rows (n, p) in which the engine reads missing values as 0, with `predict`'s own scores (n,)."""
    if not len(read):
        if not saw_missing(form):
            return ()
        return (
            f"the model was trained with missing values, which programs that read {format} read as 0; the compared "
            "rows have none, so the effect was not compared",
        )
    zero = reference_scores(form, read)
    differ = int((~(np.abs(zero - expected) <= 1e-9 * (1.0 + np.abs(expected)))).sum())  # nan, too
    note = f"{counted(len(read), 'row')} with missing values, which programs that read {format} read as 0: "
    if not differ:
        return (note + "predict gives the same scores",)
    return (Message(note + f"{differ} of them have a different score in predict, or none", *without_missing(form)),)


def _check_float32(form: ModelForm, X: np.ndarray, format: str) -> None:
    largest = float(np.finfo(np.float32).max)
    features, thresholds = thresholds_of(form)
    # The largest float64 is what undoing a scaling makes of a question without effect.
    thresholds = np.where(np.abs(thresholds) == np.finfo(np.float64).max, np.nan, thresholds)
    every = np.tile(np.arange(X.shape[1]), len(X))
    for what, columns, values in (("thresholds", features, thresholds), ("rows", every, X.ravel())):
        beyond = np.flatnonzero(np.isfinite(values) & (np.abs(values) > largest))
        if len(beyond):
            name, value = form.names[columns[beyond[0]]], values[beyond[0]]
            raise InvalidInputError(
                f"the {what} have {value:.3g} in column {name!r}, but programs that read {format} store features as "
                "float32, at most 3.4e38. Scale the column and train again, or export to a format of float64: "
                "lightgbm, python, c, painless, vespa."
            )


def _check_small(form: ModelForm, tiny: float, format: str) -> None:
    features, thresholds = thresholds_of(form)
    small = np.flatnonzero((thresholds != 0) & (np.abs(thresholds) <= tiny))
    if len(small):
        name, value = form.names[features[small[0]]], thresholds[small[0]]
        raise InvalidInputError(
            f"column {name!r} has the threshold {value:.3g}, and programs that read {format} read numbers of a "
            f"magnitude up to {tiny:g} as 0. Scale the column and train again, or export to python, c, painless or "
            "vespa.",
            code="tiny-threshold",
        )


def _moved_by_rounding(
    form: ModelForm, X: np.ndarray, expected: np.ndarray, found: list[np.ndarray], tolerance: np.ndarray
) -> tuple[str, ...]:
    """Return a note on complete rows whose scores change when features are rounded to float32."""
    largest = float(np.finfo(np.float32).max)
    rounded = reference_scores(form, X.clip(-largest, largest).astype(np.float32).astype(np.float64))
    moved = int((np.abs(rounded - expected) > tolerance).sum())
    if not moved:
        return ()
    if all((np.abs(own - expected) <= tolerance).all() for own in found):
        return (
            "the exported thresholds are adjusted to float32, so that the engine gives these rows the scores of "
            f"predict. On features that an engine logged as float32, predict gives {moved} of these {len(X)} rows "
            "different scores. Train on logged features to compare with them",
        )
    return (
        f"rounding features to float32 changes the scores of {moved} of these {len(X)} rows, so the engine's scores "
        "differ from those of predict. Train on features rounded to float32",
    )


def constant_left_out(form: ModelForm, format: str, properties: Any) -> float:
    """Return the constant that the format omits. This constant does not change a ranking."""
    if format == "painless" or not isinstance(form.body, Linear) or properties.keeps_constant:
        return 0.0
    if format == "xgboost":
        form = as_linear(form)
    return form.start + form.intercept


def without_missing(form: ModelForm) -> list[Remedy | str]:
    """Return how to train a model again for programs that read missing values as 0."""
    if not form.statistics:
        return [TRAIN_WITH_ZERO]
    named = ", ".join(repr(form.names[k]) for k in form.statistics)
    filled = f"give the empty cells of {named} a category of their own, such as 'none', and train again"
    if not form.reads_zero.any():  # also the numbers
        return [Remedy(f"where the training data are read, and {filled}", missing="zero"), "export to painless"]
    return [filled, "export to painless"]


def saw_missing(form: ModelForm) -> bool | None:
    """Return whether a training value was missing, or None if this is unknown."""
    model = form.model
    known = getattr(model.steps[-1][1] if hasattr(model, "steps") else model, "saw_missing_", None)
    return None if known is None else bool(known)


def compare_orders(
    expected: np.ndarray, scores: np.ndarray, offsets: np.ndarray, slack: float = 0.0, rows_in_order: bool = True
) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Return the queries with another order (m,) and with another first document (m,), and the ties made and broken.

    Both sides sort by descending score, and documents that tie, or are within `slack` of the next one, in the order of
    the rows; or, with `rows_in_order=False`, in any order. A query with a row that one side does not score (nan) counts
    as changed.
    """
    m = len(offsets) - 1
    query = np.repeat(np.arange(m), np.diff(offsets))
    order = np.lexsort((-scores, -expected, query))
    best_first = expected[order], scores[order]
    within = query[1:] == query[:-1]
    tied, tied_too = (within & (side[1:] == side[:-1]) for side in best_first)
    made, broken = int((within & ~tied & tied_too).sum()), int((tied & ~tied_too).sum())

    def ranking(values: np.ndarray) -> np.ndarray:
        order = np.lexsort((-values, query))
        if slack:
            apart = np.concatenate([[0], ~(values[order][:-1] - values[order][1:] <= slack)])
            order = order[np.lexsort((order, np.cumsum(apart), query))]
        return order

    ours, theirs = map(ranking, (expected, scores) if rows_in_order else best_first)
    unscored = np.isnan(expected) | np.isnan(scores)
    top = np.diff(query, prepend=-1) > 0
    changed, first = (np.isin(np.arange(m), query[own | unscored]) for own in (ours != theirs, top & (ours != theirs)))
    return changed, first, made, broken


def ties(scores: np.ndarray, offsets: Any) -> tuple[int, int]:
    """Count neighbours with different scores, and documents with the score of another document of their query."""
    neighbours = tied = 0
    for start, stop in zip(offsets[:-1], offsets[1:]):
        sizes = np.unique(scores[start:stop], return_counts=True)[1]
        neighbours += max(len(sizes) - 1, 0)
        tied += int(sizes[sizes > 1].sum())
    return neighbours, tied


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
