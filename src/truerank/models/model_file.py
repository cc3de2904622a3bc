"""Store models as versioned JSON that is written atomically, checked on load and never executed.

A model is an object of a class in the registry (a ranker, a calibrator, a transformer, a wrapper of these), one of
scikit-learn's transformers in `models.scikit_learn`, or a `Pipeline` of such objects. A class of truerank has

* `get_params(deep=False)`, which returns the constructor's arguments as in scikit-learn, or `model_params()` if a file
  cannot hold some of them;
* `model_attributes`, a class attribute with the fitted attributes to save and what each must be (`core/schema.py`):
  numbers, strings, bools, None, lists, dicts with string keys, NumPy arrays, and models. Those that do not exist are
  omitted, and `docs/development/model-files.md` lists all;
* `check_model()`, optional, which is called after loading and raises `ModelFileError` if the attributes do not fit
  together, or completes the model.

Every field has a checksum. Files without checksums load: those of earlier versions, and files written by hand.

Numbers keep all their bits: floats are written with `repr`, arrays with their dtype and shape, and non-finite floats as
the strings "nan", "inf" and "-inf".
"""

from __future__ import annotations

import copy
import inspect
import json
import math
import os
import shlex
import sys
import warnings
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from truerank.calibration import CALIBRATORS
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.files import atomic_write, opened
from truerank.core.names import nearest, resolve
from truerank.core.schema import check_model, fields_of
from truerank.core.types import Scorer
from truerank.models import registry, scikit_learn

FORMAT = "truerank-model"
VERSION = 1
_DTYPES = {"float64", "float32", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "bool"}
_NOT_FINITE = ("nan", "inf", "-inf")
_MAX_VALUES = 2**40
_MOST_TRIED = 1_000_000  # columns up to which a loaded model is tried on rows of plain numbers


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to `path` as JSON. If the process is killed, an old file stays complete.

    A model of LightGBM, XGBoost or CatBoost is imported first, see `import_model`.

    Raises
    ------
    InvalidInputError
        If a part of the model cannot be written to a file, such as a Python function as a measure.
    ModelFileError
        If the fitted attributes are inconsistent or weights are not finite. No file is written then.
    """
    if not type(model).__module__.startswith("truerank."):
        model = resolve("truerank.models.foreign.read:as_own")(model)
    text = model_text(model)
    with atomic_write(path) as stream:
        stream.write(text)


def model_text(model: Any) -> str:
    """Return the text that `save_model` writes, or raise its errors."""
    from truerank import __version__

    content = encode(model)
    if fields_of(type(model)) and not content["fitted"]:
        raise InvalidInputError(
            f"this {type(model).__name__} is not fitted. Call fit before save_model.", code="not-fitted"
        )
    document = {"format": FORMAT, "version": VERSION, "truerank": __version__, "model": content}
    if getattr(model, "reading_", None):
        document["reading"] = dict(model.reading_)
        document["checksums"] = _checksums("model", {"reading": document["reading"]})
    return to_json(document) + "\n"


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save_model` wrote. Nothing in the file is executed.

    Raises
    ------
    ModelFileError
        If the file is not a truerank model, has a newer version, is damaged, or names an unknown class.
    """
    name = os.fspath(path)
    try:
        with opened(name) as stream:
            text = stream.read().decode("utf-8")
        document = {"tree_info": []} if text.startswith("tree\n") else from_json(text)  # LightGBM's text, or JSON
    except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, or a number of thousands of digits
        raise ModelFileError(
            f"the file is not a model (no valid JSON: {error}). Save the model with save_model.", name, code="not-json"
        ) from error
    for key, library in (("learner", "XGBoost"), ("oblivious_trees", "CatBoost"), ("tree_info", "LightGBM")):
        if isinstance(document, dict) and key in document:
            what = f"the file is a model of {library}. Type: truerank import {shlex.quote(name)} -o MODEL.json"
            raise ModelFileError(f"{what} (in Python: import_model).", name, code="foreign")
    try:
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ModelFileError(
                f'the file is not a model of truerank. Expected a JSON object with "format": "{FORMAT}"', code="format"
            )
        version: Any = document.get("version")
        content = document.get("model")
        _require(type(version) is int and version >= 1, '"version" with an integer >= 1', version, "version")
        if version > VERSION:
            raise ModelFileError(
                f"the model has version {_quoted(version)}, and this truerank reads versions up to {VERSION}. Upgrade "
                "truerank.",
                code="newer",
            )
        model = decode(content, fitted=True)
        _require(isinstance(content, dict) and "$class" in content, '"model" with an object that has "$class"', content)
        _try(model)
        if document.get("reading") is not None:
            model.reading_ = _checked_reading(document["reading"])
            _check_sums("model", document, {"reading": document["reading"]})
    except ModelFileError as error:
        if error.code in ("gone", "unknown-class"):
            error = ModelFileError(f"{error} (truerank {_quoted(document.get('truerank'))})", code=error.code)
        raise ModelFileError(error, name) from error
    except RecursionError as error:
        raise ModelFileError("the model is nested too deeply", name, code="nested") from error
    return model


def _checked_reading(reading: Any) -> dict[str, str]:
    """Return how the command line read the training data: columns by role, missing values, and grades in words."""
    known = ("document", "grade", "grades", "missing", "query")
    own = isinstance(reading, dict) and all(key in known and isinstance(text, str) for key, text in reading.items())
    _require(own, f'"reading" with names of columns by {", ".join(known)}', reading)
    missing = reading.get("missing", "nan")
    _require(missing in ("nan", "error", "zero"), '"missing" with "nan", "error" or "zero"', missing)
    return dict(reading)


def _try(model: Scorer) -> None:
    """Raise an error if the attributes of a ranker do not fit together, so that it cannot score plain numbers."""
    if (base := sys.modules.get("truerank.rankers.base")) is None:
        return  # none of the decoded objects is a ranker
    from truerank.rankers.accepted_data import any_category

    def rank() -> None:
        rows = np.outer([0.0, 0.5, 1.0], np.ones(width))
        with np.errstate(all="ignore"), any_category():
            query = {} if hasattr(model, "steps") else {"qid": [0, 0, 0]}
            _check_numbers(model.predict(rows, **query), -math.inf, math.inf)
            if hasattr(model, "predict_proba"):
                _check_numbers(model.predict_proba(rows, qid=[0, 0, 0]), 0.0, 1.0)

    first, last = (model.steps[0][1], model.steps[-1][1]) if hasattr(model, "steps") else (model, model)
    width: Any = getattr(first, "n_features_in_", None)
    is_ranker = isinstance(last, base.Ranker) and getattr(last, "bin_edges_", None) is None
    if is_ranker and type(width) is int and width <= _MOST_TRIED:
        _guarded(type(model).__name__, rank)


def _check_numbers(values: np.ndarray, low: float, high: float) -> None:
    if values.dtype.kind != "f" or not ((values >= low) & (values <= high)).all():
        raise ModelFileError(f"expected numbers in [{low:g}, {high:g}], got {values.ravel()[:3].tolist()}")


def _guarded(name: str, work: Callable[[], Any]) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work()
    except (ModelFileError, RecursionError):
        raise
    except MemoryError as error:
        raise ModelFileError(f"{name}: its attributes require too much memory: {error}") from error
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        raise ModelFileError(
            f"{name}: the attributes do not fit together ({type(error).__name__}: {text}). The file is damaged or "
            "was edited: save the model again.",
            code="attributes",
        ) from error


def _require(right: object, expected: str, received: object, code: str | None = None) -> None:
    """Raise `ModelFileError` with what was expected and received unless `right` is true."""
    if not right:
        raise ModelFileError(f"expected {expected}, got {_quoted(received)}", code=code)


def _quoted(value: object) -> str:
    text = "an object" if isinstance(value, dict) else json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:60] + "…"


def to_json(value: Any) -> str:
    """Return the result of `encode` as the text of a file."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_encode_array)


def from_json(text: str) -> Any:
    """Parse the text of a file for `decode`; a damaged array becomes an error, which `decode` raises."""

    def with_arrays(value: dict[str, Any]) -> Any:
        if "$array" not in value:
            return value
        try:
            return _decode_array(value)
        except ModelFileError as error:
            return error

    return json.loads(text, object_hook=with_arrays)


def encode(value: Any) -> Any:
    """Convert `value` to JSON types and arrays."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "UO" and value.dtype.name not in _DTYPES:
            raise InvalidInputError(f"a model file cannot keep an array of dtype {value.dtype}", code="cannot-keep")
        return value
    if isinstance(value, list | tuple):
        return list(map(encode, value))
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return dict(zip(value, map(encode, value.values())))
        if any(not isinstance(key, str | int | np.integer) for key in value):
            raise InvalidInputError(
                f"the keys of a dict in a model must be texts or whole numbers, got {list(value)[:5]!r}",
                code="cannot-keep",
            )
        return {"$dict": [[encode(key), encode(item)] for key, item in value.items()]}
    name = _target(type(value).__name__)
    if name is not None and resolve(name) is type(value):
        return _encode_object(value)
    if scikit_learn.class_of(type(value).__name__) is type(value):
        return _encode_object(value, scikit_learn.fields_of(type(value)))
    if type(value).__name__ == "Pipeline" and type(value).__module__.startswith("sklearn."):
        steps = [[step, encode(part)] for step, part in value.steps]
        return {"$class": "Pipeline", "steps": steps, "checksums": _checksums("Pipeline", {"steps": steps})}
    if type(value).__module__.startswith("truerank.measures") and type(value).__name__ != "FunctionMeasure":
        return {"$measure": repr(value)}
    if type(value).__name__ in ("ColumnTransformer", "FeatureUnion"):
        raise InvalidInputError(
            f"a model file cannot keep a {type(value).__name__}, which may contain any code. Apply it before fit and "
            "predict and save the ranker alone, or fit a pipeline of these transformers of all columns: "
            f"{', '.join(scikit_learn.FITTED)}",
            code="cannot-keep",
        )
    raise InvalidInputError(
        f"a model file cannot keep {value!r:.80} of type {type(value).__name__}. It can keep numbers, strings, lists, "
        "dicts, arrays, truerank's own models, and these classes of scikit-learn: "
        f"{', '.join(scikit_learn.FITTED)}",
        code="cannot-keep",
    )


def decode(value: object, fitted: bool = False) -> Any:
    """Convert JSON types back to values, and check each object; with `fitted`, models must be fitted."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if isinstance(value, ModelFileError):
        raise value
    if not isinstance(value, dict):
        return value
    if "$float" in value:
        text = value["$float"]
        _require(isinstance(text, str) and text in _NOT_FINITE, "nan, inf or -inf", text)
        return float(text)
    if "$dict" in value:
        pairs = _pairs(value["$dict"], "$dict", "dict")
        right = all(isinstance(key, str | int) for key, _ in pairs)
        _require(right, "texts or whole numbers as the keys of a dict", [key for key, _ in pairs], "dict")
        return {key: decode(item) for key, item in pairs}
    if "$measure" in value:
        from truerank.measures import parse_measure

        return _guarded("measure", lambda: parse_measure(str(value["$measure"])))
    if "$class" in value:
        return _decode_object(value, fitted)
    return {key: decode(item) for key, item in value.items()}


@cache
def _class_names(installed: bool = False) -> dict[str, str]:
    rankers = registry.RANKERS if installed else registry.RANKERS.own
    targets = (*rankers.values(), *CALIBRATORS.values(), *registry.MODEL_PARTS)
    return {target.partition(":")[2]: target for target in targets}


def _target(name: str) -> str | None:
    """Return the "module:class" of a name, which may belong to an installed package."""
    return _class_names().get(name) or _class_names(True).get(name)


def _pairs(value: Any, what: str, code: str | None = None) -> list[Any]:
    """Return a list of pairs, the form in which a file stores some dicts and the steps of a pipeline."""
    right = isinstance(value, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in value)
    _require(right, f"a list of pairs in {what}", value, code)
    return list(value)


def _encode_array(array: np.ndarray) -> dict[str, Any]:
    if array.dtype.kind in "UO":
        return {"$array": "str", "shape": list(array.shape), "values": [str(item) for item in array.ravel()]}
    if array.dtype.kind == "f":
        # float32 values are exact as float64, and tolist writes the shortest text that gives them back.
        values: list[Any] = array.astype(np.float64).ravel().tolist()
        for place in np.flatnonzero(~np.isfinite(array)).tolist():
            values[place] = repr(values[place])
    else:
        values = array.ravel().tolist()
    return {"$array": array.dtype.name, "shape": list(array.shape), "values": values}


def _decode_array(value: dict[str, Any]) -> np.ndarray:
    _require(value.keys() == {"$array", "shape", "values"}, "an array with $array, shape and values", sorted(value))
    dtype, shape, values = value["$array"], value["shape"], value["values"]
    right = isinstance(dtype, str) and (dtype == "str" or dtype in _DTYPES)
    _require(right, "an array of a known dtype", dtype)
    right = isinstance(shape, list) and all(type(size) is int and 0 <= size < _MAX_VALUES for size in shape)
    _require(right, "a list of sizes as the shape of an array", shape)
    received, size = len(values) if isinstance(values, list) else values, math.prod(shape)
    _require(isinstance(values, list) and received == size, f"{_quoted(size)} values in an array", received)
    kinds: set[type] = {float, int} if dtype.startswith("float") else {{"str": str, "bool": bool}.get(dtype, int)}
    if not kinds.issuperset(map(type, values)):
        names = _NOT_FINITE if float in kinds else ()
        for own in values:
            right = type(own) in kinds or (type(own) is str and own in names)
            _require(right, f"numbers of an array of {dtype}", own)
    try:
        return np.array(values, dtype=str if dtype == "str" else dtype).reshape(shape)
    except (OverflowError, ValueError) as error:
        raise ModelFileError(f"an array of {dtype} contains a value out of range: {error}") from error


def _checksums(name: str, parts: dict[str, Any]) -> dict[str, str]:
    """Return the checksum of each field of an object in the file.

    It is the CRC-32 of the JSON of the class's name, the field's name and the field. In this JSON, an array is replaced
    by its dtype, its shape and the CRC-32 of its little-endian bytes, because printing numbers is slow.
    """

    def digest(array: np.ndarray) -> list[Any]:
        if array.dtype.kind in "UO":
            return ["str", array.shape, array.ravel().tolist()]
        content = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        return [array.dtype.name, array.shape, zlib.crc32(content)]

    texts = {key: json.dumps([name, key, item], separators=(",", ":"), default=digest) for key, item in parts.items()}
    return {key: f"{zlib.crc32(text.encode()):08x}" for key, text in texts.items()}


def _encode_object(model: Any, own_fields: Mapping[str, str] | None = None) -> dict[str, Any]:
    fields = fields_of(type(model)) if own_fields is None else own_fields
    own = model.model_params() if hasattr(model, "model_params") else model.get_params(deep=False)
    params, fitted = encode(own), {}
    for name in fields:
        if hasattr(model, name):
            fitted[name] = encode(getattr(model, name))
    if fitted and own_fields is None:
        try:
            check_model(copy.copy(model), fields)
        except ModelFileError as error:
            raise ModelFileError(
                f"the model was not saved, because it could not be loaded: {error}. Huge values, or training that "
                "diverges, give infinite weights: scale the columns, or regularise more.",
                code="not-loadable",
            ) from error
    name = type(model).__name__
    checksums = _checksums(name, {**params, **fitted})
    return {"$class": name, "params": params, "fitted": fitted, "checksums": checksums}


def _decode_object(value: dict[str, Any], must_be_fitted: bool) -> Any:
    name = value["$class"]
    if isinstance(name, str) and name == "Pipeline":  # an array is compared with a text value by value
        from sklearn.pipeline import Pipeline

        steps = _pairs(value.get("steps"), "the steps of a pipeline")
        parts = [(str(step), decode(part, must_be_fitted)) for step, part in steps]
        right = parts and all(hasattr(part, "get_params") for _, part in parts)
        _require(right, "models as the steps of a pipeline", [name for name, _ in parts])
        _check_sums("Pipeline", value, {"steps": steps})
        return _guarded("Pipeline", lambda: Pipeline(parts))
    target = _target(name) if isinstance(name, str) else None
    cls: Any = scikit_learn.class_of(name) if target is None else resolve(target)
    if cls is None and isinstance(name, str) and name in registry.GONE:
        raise ModelFileError(
            f"{name} is no longer part of truerank. Fit {registry.GONE[name]} to the same runs, or use the version "
            "that wrote the file.",
            code="gone",
        )
    if cls is None:
        writer = "A newer version, or a plug-in that is not installed, may have written the file."
        near = nearest(_quoted(name), _class_names(), writer)
        raise ModelFileError(f"unknown class {_quoted(name)}{near}", code="unknown-class")
    fields = scikit_learn.fields_of(cls) if target is None else fields_of(cls)
    params: Any = value.get("params")
    fitted: Any = value.get("fitted")
    right = isinstance(params, dict) and isinstance(fitted, dict)
    _require(right, f'the objects "params" and "fitted" of {name}', list(value))
    for what, own, known in (("attribute", fitted, fields), ("parameter", params, inspect.signature(cls).parameters)):
        if unknown := sorted(set(own) - set(known)):
            raise ModelFileError(f"{name}: unknown {what} {_quoted(unknown[0])}", code=f"unknown-{what}")
    given, attributes = _decode_fields(name, params), _decode_fields(name, fitted)
    _check_sums(name, value, {**params, **fitted})
    if target is None:  # scikit-learn has tuples where a file has lists
        given = {key: tuple(item) if isinstance(item, list) else item for key, item in given.items()}
    model = _guarded(name, lambda: cls(**given))
    for key, item in attributes.items():
        setattr(model, key, item)
    if fitted or must_be_fitted:  # a wrapper has an unfitted model as a parameter
        _guarded(name, lambda: check_model(model, fields))
        if target is None:
            _guarded(name, lambda: scikit_learn.finish(model))
    return model


def _decode_fields(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Decode the fields of an object; an error names the innermost field."""
    found = {}
    for key, item in fields.items():
        try:
            found[key] = decode(item)
        except ModelFileError as error:
            if error.argument is not None:
                raise
            raise ModelFileError(f"{name}: {key}: {error}", argument=key, code=error.code) from error
    return found


def _check_sums(name: str, value: dict[str, Any], parts: dict[str, Any]) -> None:
    """Raise an error if a field is not the one that was saved; older and handwritten files have no checksums."""
    saved = value.get("checksums")
    if saved is None:
        return
    own = _checksums(name, parts)
    if not isinstance(saved, dict) or saved != own:
        saved = saved if isinstance(saved, dict) else {}
        field = min(key for key in {*own, *saved} if own.get(key) != saved.get(key))
        raise ModelFileError(
            f"{name}: {field} is not what save_model wrote (its checksum differs). Restore the file, or change the "
            "model in Python and save it again",
            argument=field,
            code="damaged",
        )
