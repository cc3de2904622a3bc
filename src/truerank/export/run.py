"""Exports at work: the interpreter that mimics an engine, and the engine's own library where it is installed."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.export.form import ModelForm
from truerank.models.foreign.model import Reader
from truerank.models.foreign.read import read_foreign

Evaluator = Callable[[np.ndarray], np.ndarray]


def evaluators(content: str | bytes, form: ModelForm, format: str) -> dict[str, Evaluator]:
    """Scores of float64 rows by each evaluator of the export: "mimic" first, then the engines that are installed."""
    if format == "python":
        return {"python": run_python(str(content))}
    if format == "c":
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            from truerank.export.python import write

            return {"mimic": run_python(write(form, "model", False))}
        return {"c": run_c(str(content), compiler)}
    if format == "painless":
        return {"mimic": run_painless(str(content), form)}
    if format == "vespa":
        from truerank.export.expression import run_profile

        return {"mimic": run_profile(str(content), form.names)}
    if format == "onnx":
        return _onnx(content)
    foreign = read_foreign(content, Reader(f"the {format} export"), form.names)
    runs: dict[str, Evaluator] = {"mimic": lambda X: foreign.score(X)}
    library = {"lightgbm": _lightgbm, "xgboost": _xgboost, "catboost": _catboost}.get(format)
    if library is not None and importlib.util.find_spec(format) is not None:
        name, score = library(content, form)
        runs[name] = score
    return runs


def run_python(text: str) -> Evaluator:
    """The function of a file that `export.python` wrote."""
    space: dict[str, Any] = {"__name__": "exported"}
    exec(compile(text, "exported model", "exec"), space)
    return lambda X: np.array([space["score"](row) for row in X.tolist()], dtype=np.float64)


def run_painless(text: str, form: ModelForm) -> Evaluator:
    """The script's loops over its parameters; a score is a float32 of at least 0, less the shift here."""
    from truerank.export.python import write_parts

    params = json.loads(text)["script"]["params"]
    own = run_python(write_parts(form, params))
    shift = params["shift"]

    def score(X: np.ndarray) -> np.ndarray:
        scores = np.maximum(own(X) + shift, 0.0)
        return scores.astype(np.float32).astype(np.float64) - shift

    return score


def _onnx(content: Any) -> dict[str, Evaluator]:
    """ONNX's own reference interpreter, and onnxruntime where it is installed."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    reference = ReferenceEvaluator(onnx.load_from_string(content))

    def mimic(X: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            result: Any = reference.run(None, {"features": X.astype(np.float32)})
        return np.asarray(result[0], dtype=np.float64)

    runs: dict[str, Evaluator] = {"mimic": mimic}
    if importlib.util.find_spec("onnxruntime") is not None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session: Any = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        runs[f"onnxruntime {onnxruntime.__version__}"] = lambda X: np.asarray(
            session.run(None, {"features": X.astype(np.float32)})[0], dtype=np.float64
        )
    return runs


def run_c(text: str, compiler: str, options: tuple[str, ...] = ("-O2",)) -> Evaluator:
    """The function of a file that `export.c` wrote, compiled to a shared library in a temporary folder."""
    import re

    found = re.search(r"void (\w+)_score_rows\(", text)
    assert found is not None
    with tempfile.TemporaryDirectory() as folder:
        source, library = os.path.join(folder, "model.c"), os.path.join(folder, "model.so")
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(text)
        command = [compiler, "-std=c99", *options, "-shared", "-fPIC", "-o", library, source, "-lm"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if result.returncode:
            raise InvalidInputError(f"the C compiler refused the export: {result.stderr[:500]}")
        function = getattr(ctypes.CDLL(library), f"{found.group(1)}_score_rows")
    pointer = ctypes.POINTER(ctypes.c_double)
    function.argtypes, function.restype = [pointer, ctypes.c_size_t, pointer], None

    def score(X: np.ndarray) -> np.ndarray:
        rows, scores = np.ascontiguousarray(X, dtype=np.float64), np.empty(len(X))
        function(rows.ctypes.data_as(pointer), len(rows), scores.ctypes.data_as(pointer))
        return scores

    return score


def _lightgbm(content: Any, form: ModelForm) -> tuple[str, Evaluator]:
    import lightgbm

    booster = lightgbm.Booster(model_str=str(content))
    return f"lightgbm {lightgbm.__version__}", lambda X: np.asarray(booster.predict(X, raw_score=True, num_threads=1))


def _xgboost(content: Any, form: ModelForm) -> tuple[str, Evaluator]:
    import xgboost

    booster = xgboost.Booster({"nthread": 1})
    booster.load_model(bytearray(str(content).encode()))
    names = list(form.names)

    def score(X: np.ndarray) -> np.ndarray:
        data = xgboost.DMatrix(X, feature_names=names, nthread=1)
        return np.asarray(booster.predict(data, output_margin=True), dtype=np.float64)

    return f"xgboost {xgboost.__version__}", score


def _catboost(content: Any, form: ModelForm) -> tuple[str, Evaluator]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it was compiled against another NumPy
        import catboost
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.json")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(str(content))
        model = catboost.CatBoost().load_model(path, format="json")

    def score(X: np.ndarray) -> np.ndarray:
        return np.asarray(model.predict(X, prediction_type="RawFormulaVal", thread_count=1), dtype=np.float64)

    return f"catboost {catboost.__version__}", score
