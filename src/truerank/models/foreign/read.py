"""Recognise the format of a model file, and read the model."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError, ModelFileError, Remedy, WrongTypeError
from truerank.core.files import encoding_of
from truerank.core.schema import check_model
from truerank.data.columns import default_names
from truerank.models.foreign import catboost, lightgbm, search_engines, text_formats, xgboost
from truerank.models.foreign.fitted import is_foreign, written
from truerank.models.foreign.model import ForeignModel, Reader
from truerank.models.imported import ImportedRanker

_MOST_BYTES = 4 << 30
_PART = 1 << 24
_SAVE_XGBOOST = 'Save the model with save_model("model.json") or "model.ubj"'
# Tools with feature numbers in place of names.
_NUMBERED = ("ranklib", "svm-light", "sofia-ml")
# First bytes of binary files that are not read.
_BINARY: dict[bytes | tuple[bytes, ...], str] = {
    b"CBM1": 'CatBoost\'s binary format is not read; save the model with save_model("model.json", format="json")',
    b"binf": f"XGBoost's old binary format is not read; {_SAVE_XGBOOST}",
    (b"\x80\x03", b"\x80\x04", b"\x80\x05"): "the file is a pickle, which truerank does not execute. Save the model in "
    "the format of its tool.",
    b"PK\x03\x04": "the file is an archive. Unpack it, and import the model file in it.",
    b"\x1f\x8b": "the file is compressed by gzip. Unpack it first.",
    (
        b"\x78\x01",
        b"\x78\x5e",
        b"\x78\x9c",
        b"\x78\xda",
    ): "the file is compressed by zlib, as joblib's pickles are. Save the model in the format of its tool.",
    b"\x08": "the file may be ONNX or Core ML, which cannot be imported. Save the model in the format of its tool.",
}


def import_model(
    path: Any,
    *,
    feature_names: Sequence[str] | None = None,
    n_features: int | None = None,
) -> ImportedRanker:
    """Read a model file of another tool without that tool. Nothing in the file is executed.

    LightGBM (text of `save_model`, JSON of `dump_model`), XGBoost (JSON and UBJSON of `save_model`, JSON of
    `dump_model`; trees, dart and linear), CatBoost (JSON), RankLib (AdaRank, Coordinate Ascent, Linear Regression,
    ListNet, RankBoost, MART, LambdaMART, Random Forests), Solr's LinearModel and MultipleAdditiveTreesModel, models of
    the LTR plugins of Elasticsearch and OpenSearch, SVM-light, SVM-rank and sofia-ml. The content of the file
    determines the format.

    Categorical splits of LightGBM and XGBoost become questions about ranges of the categories' numbers, and the subtree
    is repeated for each range. Such trees are larger, but can be exported to every format. A data frame holds the
    categories that the file lists. An array has categories that are numbers, and for categories that are texts, their
    positions in the list.

    Parameters
    ----------
    path : str or path, or a fitted model of LightGBM, XGBoost or CatBoost
    feature_names : sequence of str, optional
        Names of your data's columns, in order. Named features are matched to your names, and numbered features receive
        your names.
    n_features : int, optional
        Number of columns of your data, if the model does not use the last ones.

    Returns
    -------
    ImportedRanker
        A ranker that returns the tool's raw scores (margins), before any link function. `status_` states the rule for
        missing values, the listed categories, and known differences: a dump of XGBoost lacks the base score, the
        weights of dart and the number of outputs; an XGBRanker that stopped early uses the trees up to the best round,
        a Booster uses all.

    Raises
    ------
    ModelFileError
        If the format is unknown, the file is damaged or has an unknown key that could change the scores, or the model
        is unsupported (several outputs, linear leaves, categories of CatBoost). The message names file and place.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.txt"
    >>> _ = path.write_text("## Coordinate Ascent\\n1:0.75 3:0.25\\n")
    >>> import_model(path).predict([[1.0, 5.0, 2.0]]).tolist()
    [1.25]
    """
    if is_foreign(path):
        size = n_features if feature_names is not None else n_features or getattr(path, "n_features_in_", None)
        reader = Reader(f"the fitted {type(path).__name__}")
        missing = getattr(path, "missing", None)  # of XGBoost's estimators; newer files do not contain it
        if isinstance(missing, int | float) and missing == missing:
            what = f"it reads {missing!r} as missing. Replace it with NaN, and train with missing=float('nan')"
            raise reader.fail("", what, code="missing-value")
        with written(path) as file:
            return _imported(file, reader, feature_names, size)
    if not isinstance(path, str | bytes | os.PathLike):
        raise WrongTypeError(
            "import_model reads a model file of another tool, or a fitted model of LightGBM, XGBoost or CatBoost, got "
            f"{type(path).__name__}",
            remedies=["for a pipeline, import its last step, and transform the rows before predict"],
        )
    return _imported(path, Reader(os.fsdecode(path)), feature_names, n_features)


def _imported(path: Any, reader: Reader, feature_names: Sequence[str] | None, n_features: int | None) -> ImportedRanker:
    model = read_foreign(_content(path, reader), reader, feature_names, n_features)
    try:
        ranker = ImportedRanker.of(model)
        check_model(ranker)
    except (ModelFileError, InvalidInputError) as error:
        raise reader.fail("", error) from error
    return ranker


def as_own(model: Any) -> Any:
    """Return a fitted model of LightGBM, XGBoost or CatBoost as a ranker, and any other model as it is."""
    return import_model(model) if is_foreign(model) else model


def _content(path: Any, reader: Reader) -> bytes:
    """Return the bytes of a file, read in parts because one large read would reserve all its memory."""
    parts, size = [], 0
    with open(path, "rb") as stream:
        while part := stream.read(_PART):
            parts.append(part)
            size += len(part)
            reader.fail_if(size > _MOST_BYTES, "", f"the file has more than {_MOST_BYTES} bytes")
    return b"".join(parts)


def read_foreign(
    data: bytes | str,
    reader: Reader,
    feature_names: Sequence[str] | None = None,
    n_features: int | None = None,
) -> ForeignModel:
    """Return the model in the content of a file, for the caller's columns."""
    if n_features is not None and n_features < 1:
        raise InvalidInputError(argument="n_features", expected="an integer >= 1", value=n_features)
    names = None if feature_names is None else [str(name) for name in feature_names]
    if names is not None and n_features is not None and len(names) != n_features:
        raise InvalidInputError(
            f"feature_names has {len(names)} names, but n_features is {n_features}. Pass one of the two."
        )
    size = n_features if names is None else len(names)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # infinite sums are found by a later check
            model = _read(data, reader, names, size)
    except RecursionError:
        raise reader.fail("", "the model is nested too deeply") from None
    model = model.with_zero_for_missing() if model.absent == 0.0 else model
    return _laid_out(model, reader, names, size)


def _read(data: bytes | str, reader: Reader, names: list[str] | None, size: int | None) -> ForeignModel:
    if isinstance(data, bytes):
        if xgboost.looks_like_ubjson(data):
            return xgboost.read_saved(xgboost.UbjsonReader(data, reader).read(), reader)
        advice = next((own for start, own in _BINARY.items() if data.startswith(start)), "")
        reader.fail_if(advice, "byte 0", advice, code="unknown-format")
        try:
            text = data.decode(encoding_of(data) or "utf-8-sig")
        except UnicodeDecodeError as error:
            raise reader.fail(f"byte {error.start}", "the file is neither UTF-8 text nor UBJSON of XGBoost") from None
    else:
        text = data
    head = text.lstrip()[:200]
    reader.fail_if(not head, "", "the file is empty")
    if head.startswith("booster["):
        raise reader.fail(
            "line 1", "XGBoost's text dump has rounded numbers and no base score. " + _SAVE_XGBOOST, code="text-dump"
        )
    if re.match("##(?!#)", head):
        return text_formats.read_ranklib(text.lstrip(), reader, size)
    if head.startswith("tree") and "version" in head:
        return lightgbm.read_text(text, reader)
    if head.startswith(("SVM-light", "SVM-rank", "SVM-struct", "SVM-map")):
        return text_formats.read_svm_light(text, reader, size)
    if head[0] in "[{":
        return _read_json(reader.json(text), reader, names)
    if head.lstrip("+-")[:1].isdigit():
        return text_formats.read_sofia_ml(text, reader)
    raise reader.fail(
        "line 1", f"the format is unknown: {head.splitlines()[0][:60]!r}. Known are LightGBM, XGBoost, CatBoost, "
        "RankLib, Solr, Elasticsearch and OpenSearch LTR, SVM-light and sofia-ml"
    )  # fmt: skip


def _read_json(value: Any, reader: Reader, names: list[str] | None) -> ForeignModel:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and "class" in value[0]:
        value = value[0]  # as Solr's model store returns it
    if isinstance(value, list):
        return xgboost.read_dump(value, reader)
    if value.get("format") == "truerank-model":
        raise reader.fail("", "the file is a model of truerank. Read it with load_model(path).")
    if "learner" in value:
        return xgboost.read_saved(value, reader)
    if "tree_info" in value:
        return lightgbm.read_json(value, reader)
    if "oblivious_trees" in value or "features_info" in value:
        return catboost.read_json(value, reader)
    if "class" in value:
        return search_engines.read_solr(value, reader)
    if "model" in value or "definition" in value or "_source" in value:
        return search_engines.read_plugin(value, reader, names)
    raise reader.fail("", f"the format is unknown: the keys of the JSON are {sorted(value)[:6]}")


def _laid_out(model: ForeignModel, reader: Reader, names: list[str] | None, size: int | None) -> ForeignModel:
    """Return the model for the caller's columns, matched by name if the model has names, else by position."""
    form = model.form
    reader.fail_if(
        names is None and model.unordered,
        "",
        "a dump does not contain the order of its features",
        remedies=[
            Remedy("to name your data's columns in order", feature_names=[...]),
            "save the model with save_model",
        ],
        code="no-order",
    )
    if names is None and (size is None or size == form.n_features):
        return model
    numbered = model.numbered or model.tool in _NUMBERED
    if (names is None or numbered) and size is not None and size < form.n_features:
        raise reader.fail(
            "", f"n_features or feature_names give {size} features, expected {form.n_features}", code="width"
        )
    if names is None:
        assert size is not None
        return replace(model, form=form.with_columns(list(range(form.n_features)), _filled(form.names, size)))
    place = {name: k for k, name in enumerate(names)}
    if numbered or (len(form.names) <= len(names) and not set(form.names) & set(names) and _made_up(form.names)):
        columns = list(range(form.n_features))
    elif set(form.names) <= set(names):
        columns = [place[name] for name in form.names]
    else:
        unknown = next(name for name in form.names if name not in place)
        raise reader.fail("", f"the feature {unknown!r} is not among {', '.join(names[:10])}", code="unknown-feature")
    categories = {columns[k]: listed for k, listed in model.categories.items()}
    return replace(model, form=form.with_columns(columns, tuple(names)), categories=categories)


def _made_up(names: tuple[str, ...]) -> bool:
    """Return whether the names only number the columns from 0 or 1, such as Column_0, Column_1, …"""
    numbers = [re.fullmatch(r"\D*([0-9]+)", name) for name in names]
    return {int(found[1]) - k if found else -1 for k, found in enumerate(numbers)} in ({0}, {1})


def _filled(names: tuple[str, ...], size: int) -> tuple[str, ...]:
    more, taken = default_names(size)[len(names) :], set(names)
    return (*names, *(name if name not in taken else f"column {name}" for name in more))
