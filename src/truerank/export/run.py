"""Evaluate exports with an interpreter that mimics the engine, and with the engine's library if it is installed.

Python and C exports run in a separate process with limits of time and memory.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.names import resolve
from truerank.export.form import ModelForm
from truerank.export.interpreter import Frame, Local, Logged, Parser, constants, in_parts
from truerank.models.foreign.model import Reader
from truerank.models.foreign.read import read_foreign

Evaluator = Callable[[np.ndarray], np.ndarray]
_EVALUATED = {
    "painless": "the script, parsed and interpreted",
    "vespa": "the rank profile, parsed and interpreted",
    "onnx": "the exported graph",
    "python": "the exported program, run",
    "c": "the exported program, compiled and run",
}

_JAVA: dict[str, Any] = {
    "Math": {"abs": np.abs, "min": np.minimum, "max": np.maximum, "exp": np.exp, "log1p": np.log1p},
    "Double": {"NaN": np.nan},
}
_C: dict[str, Any] = {
    "fabs": np.abs, "fmin": np.fmin, "fmax": np.fmax, "exp": np.exp, "log1p": np.log1p, "INFINITY": np.inf,
}  # fmt: skip
_CONSTANT = re.compile(r"^(?:static const (?:double|int)|enum \{) (\w+)(\[\d+\])? = \{?([^;}]*?)\s*\}?;$", re.M)
_C_FUNCTION = re.compile(r"^(?:static )?((?:double|int) \w+\(.*?^\}$)", re.M | re.S)
_SECONDS, _BYTES = 1800, 8 << 30  # of a program that scores rows: processor time (and as much by the clock), memory
# Without site packages or environment; rows and scores are float64 numbers in files.
_RUNNER = """
import sys
from array import array
kind, folder, width, seconds, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
try:
    import resource
    for limit, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, size)):
        hard = resource.getrlimit(limit)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (most, most))
except (ImportError, ValueError):  # Windows; macOS limits no memory, and refuses to
    pass
with open(folder + "/rows", "rb") as stream:
    rows = array("d", stream.read())
count = len(rows) // width
if kind == "python":
    space = {"__name__": "exported"}
    with open(folder + "/model.py", encoding="utf-8") as stream:
        exec(compile(stream.read(), "exported model", "exec"), space)
    score = space["score"]
    scores = array("d", (score(rows[i * width:(i + 1) * width].tolist()) for i in range(count)))
else:
    import ctypes
    scores = array("d", bytes(8 * count))
    def pointer(values):
        return ctypes.cast(values.buffer_info()[0], ctypes.POINTER(ctypes.c_double))
    getattr(ctypes.CDLL(folder + "/model.so"), kind)(pointer(rows), ctypes.c_size_t(count), pointer(scores))
with open(folder + "/scores", "wb") as stream:
    scores.tofile(stream)
"""


def _scores_of_program(kind: str, file: str, program: bytes, X: np.ndarray) -> np.ndarray:
    """Score rows (n, p) in a new process with `model.py`, or with the function `kind` of `model.so`."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, file), "wb") as stream:
            stream.write(program)
        with open(os.path.join(folder, "rows"), "wb") as stream:
            np.ascontiguousarray(X, dtype=np.float64).tofile(stream)
        arguments = [kind, folder, str(X.shape[1]), str(_SECONDS), str(_BYTES)]
        try:
            ended = subprocess.run(
                [sys.executable, "-I", "-S", "-c", _RUNNER, *arguments], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=_SECONDS, check=False,
                env={name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TMPDIR") if name in os.environ},
            )  # fmt: skip
            last = ended.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"code {ended.returncode}"]
            if ended.returncode == 0:
                scores = np.fromfile(os.path.join(folder, "scores"), dtype=np.float64)
                if len(scores) == len(X):
                    return scores
        except subprocess.TimeoutExpired:
            last = ["stopped"]
        except FileNotFoundError:
            last = ["no scores were written"]
    raise InvalidInputError(
        f"the exported program did not score {len(X)} rows within {_SECONDS} s and {_BYTES >> 30} GB of memory "
        f"({ascii(last[0])[:300]})",
        code="no-answer",
    )


def evaluators(content: str | bytes, form: ModelForm, format: str, scorer: str = "") -> dict[str, Evaluator]:
    """Return a scoring function for each evaluator: "mimic" (or `scorer`) first, then the installed engines."""
    if scorer:
        return {"mimic": resolve(scorer)(content, form.names)}
    if format == "python":
        return {"python": run_python(str(content))}
    if format == "c":
        compiler = shutil.which("cc") or shutil.which("gcc")
        return {"mimic": run_c_text(str(content))} if compiler is None else {"c": run_c(str(content), compiler)}
    if format == "painless":
        return {"mimic": run_painless(str(content)), "mimic of a table": run_painless(str(content), table=True)}
    if format == "vespa":
        from truerank.export.vespa import run_profile

        return {"mimic": run_profile(str(content), form.names)}
    if format == "onnx":
        return _onnx(content)
    foreign = read_foreign(content, Reader(f"the {format} export"), form.names)
    runs: dict[str, Evaluator] = {"mimic": lambda X: foreign.score(X)}
    library = {"lightgbm": _lightgbm, "xgboost": _xgboost}.get(format)
    if library is not None and importlib.util.find_spec(format) is not None:
        name, score = library(content, form)
        runs[name] = score
    return runs


def evaluated_part(format: str, found: Collection[str], scorer: str = "") -> str:
    """Return which part of an export the evaluators `found` read, in words."""
    if scorer:
        return f"the exported file, by {scorer}"
    if format == "c" and "c" not in found:
        return "the exported program, parsed and interpreted, because there is no C compiler"
    return _EVALUATED.get(format, "the exported file, read back")


def run_python(text: str) -> Evaluator:
    """Return an evaluator of a file that `export.python` wrote."""
    return lambda X: _scores_of_program("python", "model.py", text.encode(), X)


def run_painless(text: str, table: bool = False) -> Evaluator:
    """Return an evaluator of a script, with its float32 scores of at least 0, without the shift.

    Features are doc values, or rows of `params.table`.
    """
    script = json.loads(text)["script"]
    body = Parser(script["source"], _JAVA | {"params": None, "doc": None}).program()
    params = {
        key: value if key == "names" or not isinstance(value, list) else constants(value)
        for key, value in script["params"].items()
    } | {"table": None, "key": "key"}

    def score(X: np.ndarray) -> np.ndarray:
        columns = zip(params["names"], X.T)
        doc: dict[str, Any] = {
            name: {"size": lambda own=own: (~np.isnan(own)).astype(np.int64), "value": own.view(Logged)}
            for name, own in columns
        }
        if table:
            doc, params["table"] = {"key": {"value": "all"}}, {"all": Local(X.T.view(Logged))}
        own = Frame(len(X), {"params": params, "doc": doc}, _JAVA)
        body(own, None)
        scores = np.asarray(own.values["return"], dtype=np.float32).astype(np.float64)
        if (scores < 0).any():
            raise InvalidInputError(
                "the script gives a negative score, which engines refuse. Report this as an error of truerank",
                code="expression",
            )
        return scores - params["shift"]

    return in_parts(score)


def run_c_text(text: str) -> Evaluator:
    """Return an evaluator of a file that `export.c` wrote, without a compiler."""
    shared = dict(_C)
    for name, array, values in _CONSTANT.findall(text):
        words = values.replace("INFINITY", "inf").split(",")
        numbers = [float(word) if re.search("[.einf]", word) else int(word) for word in words]
        shared[name] = constants(numbers) if array else numbers[0]
    parser = Parser("".join(_C_FUNCTION.findall(text)), shared)
    parser.program()
    ((row,), body) = next(own for name, own in parser.functions.items() if name.endswith("_score"))

    def score(X: np.ndarray) -> np.ndarray:
        own = Frame(len(X), {row: Local(X.T)}, shared)
        body(own, None)
        return np.asarray(own.values["return"])

    return in_parts(score)


def _onnx(content: Any) -> dict[str, Evaluator]:
    """Return ONNX's reference interpreter, and onnxruntime if it is installed."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    model = onnx.load_from_string(content)
    reference = ReferenceEvaluator(model)
    number = onnx.helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type)

    def mimic(X: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            result: Any = reference.run(None, {"features": X.astype(number)})
        return np.asarray(result[0], dtype=np.float64)

    runs: dict[str, Evaluator] = {"mimic": mimic}
    if importlib.util.find_spec("onnxruntime") is not None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session: Any = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        runs[f"onnxruntime {onnxruntime.__version__}"] = lambda X: np.asarray(
            session.run(None, {"features": X.astype(number)})[0], dtype=np.float64
        )
    return runs


def run_c(text: str, compiler: str, options: tuple[str, ...] = ("-O2",)) -> Evaluator:
    """Return an evaluator of a file that `export.c` wrote."""
    found = re.search(r"void (\w+_score_rows)\(", text)
    assert found is not None
    function = found.group(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.so")
        compile_c(text, compiler, options, path)
        with open(path, "rb") as stream:
            library = stream.read()
    return lambda X: _scores_of_program(function, "model.so", library, X)


def compile_c(text: str, compiler: str, options: tuple[str, ...], library: str) -> None:
    """Compile a file that `export.c` wrote to a shared library."""
    source = f"{library}.c"
    with open(source, "w", encoding="utf-8") as stream:
        stream.write(text)
    command = [compiler, "-std=c99", *options, "-shared", "-fPIC", "-o", library, source, "-lm"]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=600)
    if result.returncode:
        raise InvalidInputError(f"the C compiler cannot compile the export: {result.stderr[:500]}")


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
