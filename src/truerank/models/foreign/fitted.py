"""Fitted models of other libraries in memory, which are imported through the files that the libraries write."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# Library -> how its fitted models (of scikit-learn's kind, or boosters) are written to a path, and the file's name.
_WRITERS: dict[str, tuple[Callable[[Any, str], object], str]] = {
    "lightgbm": (lambda model, path: getattr(model, "booster_", model).save_model(path), "model.txt"),
    "xgboost": (lambda model, path: model.save_model(path), "model.json"),
    "catboost": (lambda model, path: model.save_model(path, format="json"), "model.json"),
}


def is_foreign(model: object) -> bool:
    """Return whether a model belongs to a library whose model files truerank reads."""
    return type(model).__module__.partition(".")[0] in _WRITERS and hasattr(model, "predict")


@contextmanager
def written(model: Any) -> Iterator[str]:
    """Write a fitted model of another library to a temporary file, and return its path."""
    write, name = _WRITERS[type(model).__module__.partition(".")[0]]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        write(model, path)
        yield path
