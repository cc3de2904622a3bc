"""Export a model in one of the formats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError, Message, Remedy
from truerank.core.float32 import INPUTS, holds_missing, inputs_of
from truerank.core.names import resolve
from truerank.core.types import Scorer
from truerank.data.columns import as_in_training, numbered_as, trained_columns
from truerank.data.ranking_data import RankingData
from truerank.export.certificate import (
    Certificate,
    certify_export,
    saw_missing,
    without_missing,
)
from truerank.export.compared_rows import dense_rows, missing_cases, reference_scores
from truerank.export.form import ModelForm, Stumps, check_name, form_of, roundings
from truerank.export.format_table import FORMATS as FORMATS
from truerank.export.format_table import Format as Format
from truerank.io.rows import rows_of

# Of the trees that approximate a model for a format that cannot hold it.
_SETTINGS: dict[str, Any] = {
    "leaves": "constant", "n_estimators": 500, "learning_rate": 0.1, "depth": 6, "borders": 254,
}  # fmt: skip
_SHOWN = 20  # texts of a column of categories in a note
_AS_ZERO = Remedy("if absent features are 0", absent="zero")
_DISTIL = Remedy("to distil it to plain trees", distil=...)
_FORCE = Remedy("to export it nevertheless", force=True)
_CERTIFY = Remedy("to see how many queries of your rows change", certify=...)


class ExportRefused(InvalidInputError):
    """An export that differs from its model in a way that requires `force`; `certificate` has the differences."""

    def __init__(self, message: Message, certificate: Certificate) -> None:
        super().__init__(message.what, remedies=message.remedies, code="export-differs")
        self.certificate = certificate
        self.details = certificate.to_dict()


class TextExport(str):
    """An exported model as text, with its certificate."""

    certificate: Certificate


class BytesExport(bytes):
    """An exported model as bytes, with its certificate."""

    certificate: Certificate


def export_model(
    ranker: Scorer,
    format: str,
    feature_names: Sequence[str] | None = None,
    *,
    name: str = "model",
    certify: Any = None,
    absent: str | None = None,
    distil: Any = None,
    force: bool = False,
) -> TextExport | BytesExport:
    """Write a fitted ranker in the format of another program, with a certificate that compares the scores.

    Most formats can hold linear rankers, RankBoost's stumps and boosted trees with constant leaves. Fuzzy and
    polynomial leaves require a format with formulas; for other formats `distil` fits plain trees to the model's scores.
    A scikit-learn scaling before the ranker is included. A `CalibratedRanker` gives probabilities in formats with
    formulas, and the ranker's scores in others.

    Programs that sum in float32 may reverse or tie documents with nearly equal scores. If that happens on the rows of
    `certify`, other roundings of the model are tried (`roundings` in `truerank.export.form`), and the certificate names
    the one that was chosen.

    Parameters
    ----------
    ranker : fitted ranker, CalibratedRanker, ImportedRanker, model of LightGBM, XGBoost or CatBoost, or Pipeline of one
        column scaling and a ranker
    format : str
        A key of `truerank.export.formats.FORMATS`.
    feature_names : sequence of str, optional
        The engine's names of the columns, in order. By default the names of the training data, or f1, f2, ….
    name : str, default "model"
        Name of the model, for formats that have one.
    certify : RankingData, data frame, or path of a file of rows, optional
        Rows for the comparison. By default, rows are generated, and the first line of the certificate states so.
        Thresholds for float32 programs suit the kind of numbers in training (`inputs_`), or float32 if the rows are
        float32.
    absent : "zero", "nan" or None, default None
        Value of an absent feature; by default the value in the format's programs. With "zero", the export receives 0
        instead of nan, and `predict` receives the rows as they are. With "nan", an export that scores missing features
        differently is refused. By default it is refused only if the training data or `certify` had missing values;
        otherwise a note is added.
    distil : RankingData, optional
        Rows for fitting plain trees to the scores, if the format cannot hold the model.
    force : bool, default False
        Return the export even if a rank or the score of a row with missing features differs.

    Returns
    -------
    str or bytes
        The export, with the attribute `certificate`.

    Raises
    ------
    InvalidInputError
        If the format cannot hold the model (the message names formats that can).
    ExportRefused
        An `InvalidInputError` with the `certificate`: the order of a query changes under the rules of the format's
        programs (missing values, float32, ties in the order of the rows), most neighbours tie, or the scores of rows
        with missing features differ. Without `certify`, also if the training data had missing values and the programs
        read 0.

    Examples
    --------
    >>> from truerank import RidgeRanker
    >>> ranker = RidgeRanker().fit([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0]], [0, 0, 1])
    >>> text = export_model(ranker, "solr", feature_names=["bm25", "age"])
    >>> text.certificate.rank_agreement
    1.0
    """
    own = FORMATS[check_choice(format, "format", FORMATS)]
    check_name(name, "name")
    if absent is not None:
        check_choice(absent, "absent", ("zero", "nan"))
    certify, distil = (
        rows if rows is None or isinstance(rows, RankingData) else rows_of(rows, what, ranker)
        for what, rows in (("certify", certify), ("distil", distil))
    )
    ranker = resolve("truerank.models.foreign.read:as_own")(ranker)
    form = form_of(ranker, feature_names, calibrated=own.expression)
    certify, distil = (_rows_of_form(form, rows) for rows in (certify, distil))
    lost = hasattr(ranker, "calibrators_") and not own.expression
    notes = _codes(ranker, form)
    if lost:
        notes = ("calibration left out: the format has no expression for it; scores are the ranker's", *notes)
    distilled = None
    why = reason_against(form, format)
    if why is not None:
        if distil is None:
            raise InvalidInputError(
                f"{format} cannot represent this model: {why.what}",
                argument="format",
                value=format,
                remedies=why.remedies,
            )
        form, distilled = distilled_form(form, distil, certify)
    if certify is not None and certify.n_rows == 0:
        raise InvalidInputError(
            "certify has no rows, so nothing would be compared. Give rows as the engine logs them.", argument="certify"
        )
    own, inputs = _inputs(own, form, certify)
    writer = resolve(own.module)
    rule = absent or own.missing
    if format == "painless":
        writer = partial(writer, least=least_score(form, certify, rule))
    try:
        content: str | bytes = writer(form, name, inputs)
    except RecursionError:
        raise InvalidInputError(
            f"the model's trees are too deep for {format}, which nests their questions. Train with a smaller depth, or "
            "export to lightgbm, xgboost, python or c."
        ) from None

    compared = partial(
        certify_export, form=form, format=format, properties=own, data=certify, missing=rule, inputs=inputs,
        notes=notes, distilled=distilled,
    )  # fmt: skip
    certificate = compared(content)
    if certify is not None and own.float32 and not own.expression and not form.float32_sums:
        rounded = ((writer(other, name, inputs), *rest) for other, *rest in roundings(form))
        content, certificate = _best_rounding(content, certificate, rounded, compared, rule == "zero")
    # Missing values were requested, or occurred in training or in the rows of the certificate.
    missing_matters = absent == "nan" or getattr(form.model, "saw_missing_", True)
    missing_matters = missing_matters or (certify is not None and holds_missing(certify.X))
    mixed = bool(form.statistics) and form.reads_zero.any()  # no rule for all absent features is the model's own
    instead: list[Remedy | str] = without_missing(form) if rule == "zero" or mixed else [_AS_ZERO]
    certificate = _accepted(certificate, force, missing_matters, absent is None and bool(saw_missing(form)), instead)
    result = BytesExport(content) if isinstance(content, bytes) else TextExport(content)
    result.certificate = certificate
    return result


def _rows_of_form(form: ModelForm, data: RankingData | None) -> RankingData | None:
    """Return rows with the columns of a form, by name if they have all its names, and with its model's categories."""
    if data is None or not set(form.names) <= set(data.feature_names or ()):
        return data
    return numbered_as(getattr(form.model, "category_names", None) or {}, as_in_training(data, form.names))


def _codes(ranker: Any, form: ModelForm) -> tuple[str, ...]:
    """Return a note for each column of categories: the numbers that an engine sends in place of the texts."""
    places, notes = {name: k for k, name in enumerate(trained_columns(ranker) or ())}, list[str]()
    for name, texts in (getattr(ranker, "category_names", None) or {}).items():
        shown = ", ".join(f"{text}={code}" for code, text in enumerate(texts[:_SHOWN]))
        more = f", … ({len(texts)} texts in the order of model.category_names)" if len(texts) > _SHOWN else ""
        notes.append(f"send a number in place of the text of {form.names[places[name]]!r}: {shown}{more}")
    return tuple(notes)


def _best_rounding(
    content: str | bytes, certificate: Certificate, rounded: Iterable[tuple[Any, ...]], compared: Any, zero: bool
) -> tuple[str | bytes, Certificate]:
    """Return the export and the certificate of the rounding that changes the fewest orders; the given ones are first.

    `rounded` has exports with the factor and the step of their rounding.
    """
    best, settings, certify = certificate, dict[str, Any](), compared.keywords["data"]
    if zero and certificate.missing_rows:  # no rounding brings back a missing value
        X = dense_rows(certify)
        compared.keywords["data"] = certify.replaced(X=np.where(np.isnan(X), 0.0, X))
        best = compared(content)
    for other, factor, step in rounded:
        if not best.orders_changed and not best.ties_made:
            break
        found = compared(other, factor=factor, step=step)
        if (found.orders_changed, found.ties_made) < (best.orders_changed, best.ties_made):
            content, best, settings = other, found, {"factor": factor, "step": step}
    return content, compared(content, data=certify, **settings) if settings else certificate


def _accepted(
    certificate: Certificate, force: bool, missing_matters: bool, saw: bool, instead: list[Remedy | str]
) -> Certificate:
    """Raise an error for unacceptable differences; add a note if only rows with missing features differ.

    `saw` is true if training data had missing values and the caller did not state their value in the engine. `instead`
    are remedies for missing values.
    """
    why = None if force else _reason_to_refuse(certificate, missing_matters, saw, instead)
    if why is not None:
        raise ExportRefused(why, certificate)
    if certificate.missing_differences and not missing_matters:
        note = (
            f"the model saw no missing value in training, and this export and predict score documents without a "
            f"feature differently ({certificate.missing_differences} of {certificate.missing_cases} cases)"
        )
        return replace(certificate, notes=(*certificate.notes, note))
    return certificate


def _reason_to_refuse(
    certificate: Certificate, missing_matters: bool, saw: bool, instead: list[Remedy | str]
) -> Message | None:
    """Return why an export needs `force`; None if it does not."""
    format, policy = certificate.format, certificate.policy
    if certificate.made_up and policy["trained_on"] == INPUTS["close"] and policy["features"] == "float32":
        return Message(
            f"the model was trained on numbers that differ in more digits than float32 holds, and programs that read "
            f"{format} round features to float32",
            _CERTIFY,
            "export to lightgbm, python, c, painless, vespa or onnx",
            _FORCE,
        )
    if certificate.made_up and saw and policy["missing"] == "zero":
        return Message(
            f"the model was trained with missing values, and programs that read {format} read them as 0",
            _CERTIFY,
            *instead,
            _FORCE,
        )
    unscored = certificate.largest_difference != certificate.largest_difference  # nan
    equal = 2 * certificate.ties_made > certificate.neighbours
    if certificate.orders_changed or unscored or equal:
        why = "; the export or predict has no score for some rows" if unscored else ""
        remedies: list[Remedy | str] = []
        if certificate.missing_rows:
            why += f". {certificate.missing_rows} of {certificate.rows} rows have missing values"
            if policy["missing"] == "zero":
                why += f", which programs that read {format} read as 0"
            remedies += instead
        elif equal:
            why += (
                f". It gives equal scores to {certificate.ties_made} of {certificate.neighbours} neighbours with "
                "different scores in predict"
            )
            remedies.append("export to a format of float64 (lightgbm, python, c, vespa)")
        return Message(f"{certificate.changes} in the {format} export{why}", *remedies, _FORCE)
    if certificate.score_differences:
        return Message(
            f"the {format} export gives {certificate.score_differences} of {certificate.rows} rows and "
            f"{certificate.border_cases} rows next to thresholds different scores from predict, beyond rounding errors "
            f"(largest difference {certificate.largest_difference:.3g})",
            "export to another format, and report this as an error of truerank",
            _FORCE,
        )
    if certificate.missing_differences and missing_matters:
        return Message(
            f"the {format} export scores missing features differently from predict in "
            f"{certificate.missing_differences} of {certificate.missing_cases} cases",
            *instead,
            Remedy("to accept the differences", force=True),
        )
    return None


def reason_against(form: ModelForm, format: str) -> Message | None:
    """Return why the format cannot hold the form, and which formats can; None if it can."""
    own = FORMATS[format]
    if form.kind not in own.kinds:
        holding = ", ".join(key for key, other in FORMATS.items() if form.kind in other.kinds)
        what = f"it has the form {form.kind}, which only these formats can hold: {holding}"
        return Message(what, *(() if form.kind == "linear" else (_DISTIL, "train with leaves=constant")))
    if form.linear_start is not None and not own.expression:
        can = ", ".join(key for key, other in FORMATS.items() if other.expression)
        return Message(
            f"its trees start from a linear ranker, which only formats with expressions hold: {can}", _DISTIL
        )
    stumps = isinstance(form.body, Stumps) and format in ("elasticsearch-ltr", "opensearch-ltr", "onnx")
    if stumps and not len(form.body.features):
        return Message("it has no stump, so all documents have the same score")
    return None


def least_score(form: ModelForm, data: RankingData, missing: str) -> float | None:
    """Return the lowest score of the rows of `data`; None if the model itself has a bound."""
    if data is None or (form.kind not in ("linear", "polynomial") and form.linear_start is None):
        return None
    X = dense_rows(data)
    X = np.where(np.isnan(X) & (form.reads_zero | (missing == "zero")), 0.0, X)
    X = np.concatenate([X, missing_cases(form, X, missing)])
    if form.kind == "linear":  # a sum has no score without one of its columns
        X = X[~np.isnan(X[:, form.used]).any(axis=1)]
    return float(reference_scores(form, X).min(initial=0.0))


def _inputs(own: Format, form: ModelForm, data: RankingData) -> tuple[Format, str]:
    """Return the format with its float type, and the kind of numbers in training or in the given rows."""
    kind = form.inputs or "decimal"
    if data is not None and form.inputs != "float32":
        given = inputs_of(data.X[:, form.used])
        if form.inputs in (None, "decimal") or given in ("float32", "close"):
            kind = given
    if kind == "close" and own.float64_if_close and form.kind != "trees":
        return replace(own, float32=False), kind
    return own, "float64" if kind == "close" else kind


def distilled_form(form: ModelForm, data: RankingData, judged: RankingData | None) -> tuple[ModelForm, dict[str, Any]]:
    """Return a form of constant oblivious trees fitted by least squares to the model's scores on `data`, and its cost.

    The cost is measured on `judged`, or else on `data`: nDCG@10 and AP of both models if there are grades, the share of
    pairs within queries that both order the same way, and the largest difference of scores.
    """
    from truerank.rankers.oblivious_boosting import ObliviousBoosting

    if form.calibration is not None:
        raise InvalidInputError("a calibrated model cannot be distilled. Export its ranker (ranker_)")
    X = dense_rows(data)
    targets = reference_scores(form, X)
    low = float(targets.min())
    teacher = RankingData.from_grouped(X, targets - low, data.offsets, data.query_ids, feature_names=data.feature_names)
    student = ObliviousBoosting(**_SETTINGS).fit(teacher)
    plain = form_of(student, form.names)
    where = data if judged is None else judged
    rows = dense_rows(where)
    before, after = reference_scores(form, rows), reference_scores(plain, rows)
    cost: dict[str, Any] = {
        "trees": student.n_iter_, "measured_on": "the rows of the distillation" if judged is None else "certify",
        "rank_agreement": concordance(before, after, where.offsets),
        "largest_difference": float(np.abs(after + low - before).max(initial=0.0)), "shift": low,
    }  # fmt: skip
    if where.y is not None:
        from truerank.measures import parse_measure

        for name in ("nDCG@10", "AP"):
            measure, judgements = parse_measure(name), where.judgements()
            cost[name] = {
                "model": float(measure.mean(judgements, before)), "distilled": float(measure.mean(judgements, after)),
            }  # fmt: skip
    return plain, cost


def concordance(a: np.ndarray, b: np.ndarray, offsets: np.ndarray) -> float:
    """Return the share of pairs within queries with different a that b orders the same way; ties of b count half."""
    same = total = 0.0
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        x, y = np.sign(np.subtract.outer(a[start:stop], a[start:stop])), np.subtract.outer(b[start:stop], b[start:stop])
        upper = np.triu(x != 0, 1)
        same += float(np.where(y == 0, 0.5, np.sign(y) == x)[upper].sum())
        total += float(upper.sum())
    return same / total if total else 1.0
