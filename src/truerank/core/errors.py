"""Exceptions and warnings that truerank raises on purpose.

Every message states what was received, what is required and what to do. Errors derive from the built-in
class that a caller would expect (`ValueError`, `OSError`), so code that does not know truerank still works.
"""

import sys
import warnings
from types import FrameType


class TruerankError(Exception):
    """Base of all errors that truerank raises on purpose; the command line prints them without a traceback."""


class InvalidInputError(TruerankError, ValueError):
    """An argument or an array is invalid."""


class WrongTypeError(TruerankError, TypeError):
    """An argument has the wrong type (a sparse matrix instead of a dense one)."""


class DataFileError(TruerankError, ValueError):
    """A data file is malformed. The message starts with `file, line L, column C:` where these are known.

    Parameters
    ----------
    what : str
        What is wrong, what was expected and what to do.
    path : str
        Name of the file as the user gave it (`-` for standard input).
    line, column : int, optional
        1-based place in the file.
    """

    def __init__(self, what: str, path: str = "", line: int | None = None, column: int | None = None) -> None:
        place = [str(path)] if path else []
        if line is not None:
            place.append(f"line {line}")
        if column is not None:
            place.append(f"column {column}")
        super().__init__(f"{', '.join(place)}: {what}" if place else what)
        self.path, self.line, self.column = path, line, column


class ModelFileError(TruerankError, ValueError):
    """A model file is damaged, of another kind, or of a newer version than this library reads."""


class EngineError(TruerankError, OSError):
    """A search engine refused a request, did not answer in time, or gave an invalid answer."""


class ClusterError(TruerankError):
    """A cluster cannot continue: no worker is left or answers, or one cannot reach another."""


class MissingExtraError(TruerankError, ImportError):
    """A library of a layer is not installed; the message has the command that installs the layer (`layers.py`)."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{library} is not installed, and {purpose} need it. Install it with: pip install 'truerank[{extra}]'"
        )
        self.name, self.extra = library, extra


class TruerankWarning(UserWarning):
    """Information about an unexpected result (queries were joined, a solver stopped early)."""


def warn(message: str | Warning, category: type[Warning] = TruerankWarning) -> None:
    """Warn with the location of the caller's code: the innermost line outside truerank."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and (
        is_import(frame) or frame.f_globals.get("__name__", "").split(".")[0] == "truerank"
    ):
        frame = frame.f_back
        level += not is_import(frame)  # `warnings` does not count them
    warnings.warn(message, category, stacklevel=level)


def is_import(frame: FrameType) -> bool:
    """Return whether a frame belongs to Python's import of modules."""
    return "importlib._bootstrap" in frame.f_code.co_filename
