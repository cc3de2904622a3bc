"""What each format holds, and `export_model`, which writes a model in one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError
from truerank.core.float32 import holds_missing, inputs_of, stored
from truerank.core.names import resolve
from truerank.core.plugins import Table
from truerank.core.types import Scorer
from truerank.export.certificate import Certificate, certify_export, dense_rows, missing_cases, reference_scores
from truerank.export.form import ModelForm, Stumps, form_of
from truerank.export.roundings import roundings
from truerank.export.texts import check_name

_TREES = ("stumps", "oblivious", "trees")
_ALL = ("linear", *_TREES, "fuzzy", "polynomial")


@dataclass(frozen=True)
class Format:
    """One format.

    Attributes
    ----------
    module : str
        "module:function" that writes it.
    nan_module : str
        The one that writes it where an absent feature is nan, if that is another.
    kinds : tuple of str
        Forms that it holds exactly.
    float32 : bool
        Its programs round features to float32.
    missing : {"nan", "zero"}
        What its programs take for a feature that a document does not have.
    expression : bool
        It holds formulas: a linear start, a probability.
    keeps_constant : bool
        A linear model keeps its constant.
    float32_scores : bool
        A score is rounded to float32.
    scorer : str
        "module:function" of an export and the names of the features; returns a function of rows (n, p) to scores, as
        the format's program computes them, for the certificate. "" for a format that truerank reads itself.
    tiny : float
        Its programs read numbers of at most this magnitude as 0.
    """

    module: str
    kinds: tuple[str, ...]
    float32: bool = False
    missing: str = "nan"
    expression: bool = False
    keeps_constant: bool = True
    tiny: float = 0.0
    float32_scores: bool = False
    nan_module: str = ""
    scorer: str = ""


_PLUGIN = Format(
    "truerank.export.elasticsearch:write", ("linear", *_TREES), True, "zero", keeps_constant=False,
    nan_module="truerank.export.elasticsearch:write_nan",
)  # fmt: skip
_FORMATS: dict[str, Format] = {
    "solr": Format("truerank.export.solr:write", ("linear", *_TREES), True, "zero", keeps_constant=False),
    "elasticsearch-ltr": _PLUGIN,
    "opensearch-ltr": _PLUGIN,
    "ranklib": Format("truerank.export.ranklib:write", ("linear", *_TREES), True, "zero", keeps_constant=False),
    "lightgbm": Format("truerank.export.lightgbm:write", _TREES, tiny=1e-35),
    "xgboost": Format("truerank.export.xgboost:write", ("linear", *_TREES), True, keeps_constant=False),
    "catboost": Format("truerank.export.catboost:write", ("stumps", "oblivious"), True),
    "onnx": Format("truerank.export.onnx:write", _ALL, True, expression=True),
    "painless": Format("truerank.export.painless:write", _ALL, expression=True, float32_scores=True),
    "vespa": Format("truerank.export.vespa:write", _ALL, expression=True),
    "python": Format("truerank.export.python:write", _ALL, expression=True),
    "c": Format("truerank.export.c:write", _ALL, expression=True),
}
# With those of installed packages: entry points "truerank.formats", name -> a `Format`.
FORMATS: Table[Format] = Table("truerank.formats", _FORMATS, lambda point: point.load())


_AS_ZERO = "missing='zero' (--absent zero) if absent features are 0"


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
    missing: str | None = None,
    distil: Any = None,
    force: bool = False,
) -> TextExport | BytesExport:
    """A fitted ranker in the format of another program, with a certificate of what was compared.

    Linear rankers, RankBoost's stumps and boosted trees of constant leaves go to every format that holds them; fuzzy
    and polynomial leaves to those that hold formulas, and elsewhere, with `distil`, as plain trees that were fitted to
    the model's scores. A scikit-learn scaling of columns before the ranker travels with it. A `CalibratedRanker` gives
    probabilities where the format holds formulas, and the ranker's scores elsewhere.

    Programs that add up in float32 may reverse documents of nearly equal scores, or give them one score. Where that
    happens on the rows of `certify`, other roundings of the same model are tried (`truerank.export.roundings`): all
    numbers times a factor next to 1, leaf values first on a grid on which float32 sums have no error. The
    certificate's policy names both.

    Parameters
    ----------
    ranker : fitted ranker, CalibratedRanker, ImportedRanker, or Pipeline of one column scaling and a ranker
    format : str
        A key of `truerank.export.formats.FORMATS`.
    feature_names : sequence of str, optional
        What the engine calls the columns, in order. By default the names of the training data, or f1, f2, ….
    name : str, default "model"
        Name of the model, where the format has one.
    certify : RankingData, optional
        Rows to compare on; by default generated ones, which the certificate says first. Programs that hold features as
        float32 get thresholds for the kind of numbers that the model was trained on (`inputs_`); a model trained on
        float64 numbers gets those for float32 numbers where these rows are such.
    missing : {"zero", "nan"}, optional
        What a document's absent feature is; by default as the format's programs have it. With "zero" nan in the data
        counts as 0 on both sides. With "nan" an export that scores missing features differently is refused; by
        default only where the model's training data, or `certify`, held missing values (else a note states it).
    distil : RankingData, optional
        Rows to fit plain trees to where the format cannot hold the model.
    force : bool, default False
        Return an export also when the certificate says that a rank, or the score of a row with missing features,
        differs.

    Returns
    -------
    str or bytes
        With the attribute `certificate`.

    Raises
    ------
    InvalidInputError
        When the format cannot hold the model (the message says which can), and when scores in the format's arithmetic
        put a document in another place than `predict` does, make most of its neighbours tie, or give missing features
        another score.

    Examples
    --------
    >>> from truerank import RidgeRanker
    >>> ranker = RidgeRanker().fit([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0]], [0, 0, 1])
    >>> text = export_model(ranker, "solr", feature_names=["bm25", "age"])
    >>> text.certificate.rank_agreement
    1.0
    """
    own = FORMATS[check_choice(format, "format", FORMATS)]
    check_name(name, "name", "Give another one: name=... (--name NAME).")
    if missing is not None:
        check_choice(missing, "missing", ("zero", "nan"))
    form = form_of(ranker, feature_names, calibrated=own.expression)
    lost = hasattr(ranker, "calibrators_") and not own.expression
    notes = ("calibration left out: the format has no expression for it; scores are the ranker's",) if lost else ()
    distilled = None
    why = reason_against(form, format)
    if why is not None:
        if distil is None:
            raise InvalidInputError(f"{format} cannot hold this model: {why}")
        from truerank.export.distillation import distilled_form

        form, distilled = distilled_form(form, distil, certify)
    if certify is not None and certify.n_rows == 0:
        raise InvalidInputError("certify has no rows, so nothing would be compared. Give rows as the engine logs them.")
    inputs = _inputs(form, certify)
    try:
        if format == "painless":
            from truerank.export.painless import write

            content: str | bytes = write(form, name, inputs, least_score(form, certify, missing or own.missing))
        else:
            writer = resolve(own.nan_module if own.nan_module and missing == "nan" else own.module)
            content = writer(form, name, inputs)
    except RecursionError:
        raise InvalidInputError(
            f"the model's trees are too deep for {format}, which nests their questions. Train with a smaller depth, or "
            "export to lightgbm, xgboost, python or c."
        ) from None

    compared = partial(
        certify_export, form=form, format=format, properties=own, data=certify, missing=missing or own.missing,
        inputs=inputs, notes=notes, distilled=distilled,
    )  # fmt: skip
    certificate = compared(content)
    if certify is not None and own.float32 and not own.expression and not form.float32_sums:
        for rounded, factor, step in roundings(form):
            if not certificate.out_of_order and not certificate.ties_made:
                break
            other = writer(rounded, name, inputs)
            found = compared(other, factor=factor, step=step)
            if (found.out_of_order, found.ties_made) < (certificate.out_of_order, certificate.ties_made):
                content, certificate = other, found
    if certificate.made_up and own.float32 and form.inputs == "close" and not force:
        raise InvalidInputError(
            f"the model was trained on numbers that differ in more digits than float32 holds, and programs that read "
            f"{format} round features to float32: how many documents this moves only rows can show. Give rows with "
            "certify=data (--certify DATA), export to lightgbm, python, c, painless or vespa, or pass force=True "
            "(--force)."
        )
    certificate = _accepted(certificate, force, _missing_matters(form, certify, missing))
    result = BytesExport(content) if isinstance(content, bytes) else TextExport(content)
    result.certificate = certificate
    return result


def _accepted(certificate: Certificate, force: bool, missing_matters: bool) -> Certificate:
    """The certificate, with a note where only missing features differ that nobody met; refuses other differences."""
    format = certificate.format
    unscored = certificate.largest_difference != certificate.largest_difference  # nan
    if not force and (certificate.rank_agreement < 1.0 or unscored):
        why = ", and has no score where a column that it adds up is missing" if unscored else ""
        raise InvalidInputError(
            f"the {format} export puts {certificate.out_of_order} documents in another place than predict does (rank "
            f"agreement {certificate.rank_agreement:.4f} of queries){why}; pass force=True (--force) to take it all "
            "the same" + (f", or {_AS_ZERO}" if unscored else "")
        )
    if not force and 2 * certificate.ties_made > certificate.neighbours:
        raise InvalidInputError(
            f"the {format} export gives equal scores to {certificate.ties_made} of {certificate.neighbours} neighbours "
            "that predict tells apart, so that its order says little. Export to a format of float64 (lightgbm, python, "
            "c, vespa), or pass force=True (--force) to take it all the same"
        )
    if certificate.missing_differences and not missing_matters:
        note = (
            f"the model saw no missing value in training, and this export scores documents without a feature otherwise "
            f"than predict ({certificate.missing_differences} of {certificate.missing_cases} cases)"
        )
        return replace(certificate, notes=(note, *certificate.notes))
    if not force and certificate.missing_differences:
        raise InvalidInputError(
            f"the {format} export scores missing features differently from predict in "
            f"{certificate.missing_differences} of {certificate.missing_cases} cases. Add {_AS_ZERO}; or accept the "
            "differences with force=True (--force)."
        )
    return certificate


def _missing_matters(form: ModelForm, data: Any, missing: str | None) -> bool:
    """Whether missing features were asked for, learned, or met in the rows of the certificate."""
    if missing == "nan" or getattr(form.model, "saw_missing_", True):
        return True
    return data is not None and holds_missing(stored(data.X))


def reason_against(form: ModelForm, format: str) -> str | None:
    """Why the format cannot hold the form, with what can; None when it can."""
    own = FORMATS[format]
    can = ", ".join(key for key, other in FORMATS.items() if other.expression)
    if form.kind not in own.kinds:
        holding = ", ".join(key for key, other in FORMATS.items() if form.kind in other.kinds)
        advice = "; or distil it to plain trees with distil=DATA (--distil DATA)" if form.kind != "linear" else ""
        return f"it is of {form.kind} form, which these formats hold: {holding}{advice}"
    if form.linear_start is not None and not own.expression:
        return f"its trees start from a linear ranker, which only formats with expressions hold: {can}; or distil it"
    if format == "catboost" and not len(form.used):
        return "it has one score for all documents, and CatBoost needs a question about a feature"
    stumps = isinstance(form.body, Stumps) and format in ("ranklib", "elasticsearch-ltr", "opensearch-ltr", "onnx")
    if stumps and not len(form.body.features):
        return "it has no stump, so that all documents have one score"
    return None


def least_score(form: ModelForm, data: Any, missing: str) -> float | None:
    """The least score over the rows of `data`, where the model itself does not bound it."""
    import numpy as np

    if data is None or (form.kind not in ("linear", "polynomial") and form.linear_start is None):
        return None
    X = np.nan_to_num(dense_rows(data), nan=0.0) if missing == "zero" else dense_rows(data)
    X = np.concatenate([X, missing_cases(form, X, missing)])
    if form.kind == "linear":  # a sum has no score without one of its columns
        X = X[~np.isnan(X[:, form.used]).any(axis=1)]
    return float(reference_scores(form, X).min(initial=0.0))


def _inputs(form: ModelForm, data: Any) -> str:
    """The kind of numbers that the export is for: what the model was trained on, or other kinds that the rows show."""
    known = form.inputs
    kind = known or "decimal"
    if data is not None and known != "float32":
        given = inputs_of(data.X)
        if known is None or given == "float32" or known == "decimal":
            kind = given
    return "float64" if kind == "close" else kind
