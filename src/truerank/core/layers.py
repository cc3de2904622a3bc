"""The layers of the installation, and the error for a library whose layer is not installed.

`pip install truerank` installs the base, and each extra of `pyproject.toml` adds the libraries of a layer. Modules
import these libraries by plain `import` statements. `Layers` is the last finder in `sys.meta_path`: Python asks it for
libraries that are not installed, and it raises MissingExtraError if the import statement is in truerank.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

PURPOSES = {
    "train": "training and models",
    "tables": "Parquet and Arrow files and data frames",
    "text": "collections and indexes of documents",
    "report": "reports in HTML and pictures of charts",
    "onnx": "exports to ONNX",
    "tune": "searches over ranges of parameters",
    "cluster": "clusters and data larger than memory",
    "zstd": ".zst files",
    "peers": "comparisons with this library",
}
# Layer and distribution of each module that truerank imports and the base does not have.
LIBRARIES = {
    "sklearn": ("train", "scikit-learn"),
    "numba": ("train", "numba"),
    "threadpoolctl": ("train", "threadpoolctl"),
    "pandas": ("tables", "pandas"),
    "polars": ("tables", "polars"),
    "pyarrow": ("tables", "pyarrow"),
    "Stemmer": ("text", "PyStemmer"),
    "ir_datasets": ("text", "ir_datasets"),
    "yaml": ("text", "PyYAML"),
    "vl_convert": ("report", "vl-convert-python"),
    "onnx": ("onnx", "onnx"),
    "optuna": ("tune", "optuna"),
    "dask": ("cluster", "dask"),
    "distributed": ("cluster", "distributed"),
    "cryptography": ("cluster", "cryptography"),
    "zstandard": ("zstd", "zstandard"),
    "ir_measures": ("peers", "ir_measures"),
}


class Layers:
    """The last finder of modules, which finds no module but explains missing layers."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        """Raise MissingExtraError for a library of a layer that a module of truerank imports."""
        if name not in LIBRARIES:
            return
        from truerank.core.errors import MissingExtraError, is_import

        importers, frame = [], sys._getframe(1)
        while frame is not None:
            module = frame.f_globals.get("__name__", "")
            if not is_import(frame) and module != "importlib":
                importers.append(f"{module}.")
            frame = frame.f_back  # type: ignore[assignment]
        if not importers[0].startswith("truerank."):
            return
        layer, distribution = LIBRARIES[name]
        for room in ("text", "cluster"):  # their layers contain "train"
            if layer == "train" and any(module.startswith(f"truerank.{room}.") for module in importers):
                layer = room
        raise MissingExtraError(distribution, layer, PURPOSES[layer])


def is_large(size: float, limit: int, limit_if_loaded: int) -> bool:
    """Return whether work of `size` justifies the import of compiled code; False if numba is not installed.

    The limit is lower if this process has imported numba already.
    """
    from importlib.util import find_spec

    if "numba" in sys.modules:
        return size > limit_if_loaded
    return size > limit and find_spec("numba") is not None


def use() -> None:
    """Make `Layers` the last finder of modules in this process."""
    if Layers not in sys.meta_path:
        sys.meta_path.append(Layers)
