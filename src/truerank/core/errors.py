"""Exceptions and warnings that truerank raises on purpose.

Every message states what was received, what is required, and how to solve the problem. Errors derive from the built-in
class that a caller would expect (`ValueError`, `OSError`), so that code without truerank's classes can catch them.

Errors have fields, and the solution is data (`Remedy`). `str(error)` uses the terms of Python; the command line differs
(`Wording`).
"""

import sys
import warnings
from collections.abc import Iterable
from types import FrameType
from typing import Any, cast


class Wording:
    """The terms of a front end for the arguments of a remedy, by default keyword arguments of Python."""

    verb, between = "pass", ", "

    def argument(self, name: str, value: Any) -> str | None:
        """Return an argument in the form that the user types, or None if this front end lacks the argument."""
        return f"{name}={_literal(value)}"

    def conversion(self, path: str, arguments: "dict[str, Any]") -> str | None:
        """Return the command that reads a file with these arguments of `read_ratings`; None to show the arguments."""
        return None


PYTHON = Wording()


def _literal(value: Any) -> str:
    if isinstance(value, str) and '"' not in value:
        return f'"{value}"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(own)}" for key, own in value.items()) + "}"
    if isinstance(value, list | tuple):
        inside = ", ".join(map(_literal, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return "..." if value is ... else repr(value)


class Remedy:
    """A solution of a problem, as arguments to pass or as advice in words.

    Parameters
    ----------
    purpose : str
        Purpose of the arguments, or the advice if there are no arguments.
    **arguments
        The arguments of the call, which are also the options of the command. The user fills in `...`.

    Examples
    --------
    >>> str(Remedy("for the topics that all runs have", topics="common")), str(Remedy(features=[...]))
    ('pass topics="common" for the topics that all runs have', 'pass features=[...]')
    """

    def __init__(self, purpose: str = "", /, **arguments: Any) -> None:
        self.purpose, self.arguments = purpose, arguments

    def __str__(self) -> str:
        return self.worded(PYTHON) or ""

    def worded(self, wording: Wording) -> str | None:
        """Return the remedy in words, without arguments that the front end lacks; None if no argument is left."""
        spelled = [wording.argument(name, value) for name, value in self.arguments.items()]
        written = wording.between.join(text for text in spelled if text is not None)
        if self.arguments and not written:
            return None
        return " ".join(filter(None, (wording.verb * bool(written), written, self.purpose)))

    def about(self, items: list[Any]) -> "Remedy":
        """Return the remedy with these items, if any, in place of the values that the caller knows."""
        known = {name: items if items and value == [...] else value for name, value in self.arguments.items()}
        return Remedy(self.purpose, **known)

    def to_dict(self) -> dict[str, Any]:
        """Return the remedy for JSON; a value that the user fills in is None."""
        known = {name: None if value in (..., [...]) else value for name, value in self.arguments.items()}
        return {"text": self.purpose, "arguments": known}


class Message(str):
    """A text with remedies in the terms of Python; `worded` uses the terms of another front end.

    >>> message = Message("the line is long", Remedy(max_line=...), "split it")
    >>> message
    'the line is long. Pass max_line=..., or split it'
    """

    what: str
    remedies: tuple[Remedy, ...]

    def __new__(cls, what: str, *remedies: Remedy | str) -> "Message":
        own = tuple(Remedy(one) if isinstance(one, str) else one for one in remedies)
        made = super().__new__(cls, _joined(what, own, PYTHON))
        made.what, made.remedies = what, own
        return made

    def worded(self, wording: Wording) -> str:
        """Return the text in the terms of a front end, without the remedies that it lacks."""
        return _joined(self.what, self.remedies, wording)


def alternatives(remedies: Iterable[Remedy], wording: Wording = PYTHON, between: str = ", or ") -> str:
    """Return the remedies in the terms of a front end, joined by "or"."""
    return between.join(text for one in remedies if (text := one.worded(wording)))


def _joined(what: str, remedies: Iterable[Remedy], wording: Wording) -> str:
    end, between = ("\n", "\nor ") if "\n" in what else (" " if what.endswith("?") else ". ", ", or ")
    advice = alternatives(remedies, wording, between)  # on its own lines after a list of problems
    return f"{what.rstrip('.')}{end}{advice[0].upper()}{advice[1:]}" if advice else what


class TruerankError(Exception):
    """Base class of all errors that truerank raises on purpose; the command line prints them without a traceback.

    Parameters
    ----------
    what : str or TruerankError
        What happened, with the value, and what was expected; by default, a sentence made of the fields. From another
        error, the message and the fields are copied.
    argument : str
        Name of the invalid argument.
    value, expected
        Its value, and the requirement in words that follow "must be".
    remedies : sequence of Remedy or str
        Solutions of the problem, the best first; a text is advice without arguments.
    code : str
        A short, stable name of the problem.
    where : str
        Prefix of the message: a file, or a position in it.
    """

    argument: str | None
    value: Any
    expected: str | None
    code: str | None
    message: Message

    def __init__(
        self,
        what: "str | TruerankError" = "",
        *,
        argument: str | None = None,
        value: Any = None,
        expected: str | None = None,
        remedies: Iterable[Remedy | str] = (),
        code: str | None = None,
        where: str = "",
    ) -> None:
        text = str(what)
        if isinstance(what, TruerankError):
            argument, value, expected, code = what.argument, what.value, what.expected, code or what.code
            text, remedies = what.message.what, (*what.remedies, *remedies)
        elif not text:
            text = f"{argument} must be {expected}, got {value!r}"
        self.message = Message(f"{where}: {text}" if where else text, *remedies)
        super().__init__(str(self.message))
        self.argument, self.value, self.expected, self.code = argument, value, expected, code

    def __reduce__(self) -> Any:
        """Restore the fields without `__init__`, whose arguments are not `args`: workers send errors as pickles."""
        kind, args, *state = cast(tuple[Any, ...], super().__reduce__())
        return _restored, (kind, args), *state

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """The solutions of the problem."""
        return self.message.remedies

    def add(self, *remedies: Remedy | str) -> None:
        """Add solutions for a caller that has more arguments."""
        self.reword(self.message.what, *self.remedies, *remedies)

    def reword(self, what: str, *remedies: Remedy | str) -> None:
        """Replace the text and the solutions, for a caller that knows more."""
        self.message = Message(what, *remedies)
        self.args = (str(self.message),)

    def worded(self, wording: Wording) -> str:
        """Return the message in the terms of a front end."""
        return self.message.worded(wording)

    def fields(self) -> dict[str, Any]:
        """Return the known fields, for JSON."""
        known = {name: value for name in _FIELDS if (value := getattr(self, name, None)) is not None}
        remedies = [remedy.to_dict() for remedy in self.remedies]
        return known | {"remedies": remedies} if remedies else known


def _restored(kind: type[TruerankError], args: tuple[Any, ...]) -> TruerankError:
    """Return an error without its fields, which the pickle sets."""
    error = kind.__new__(kind, *args)
    error.args = args
    return error


_FIELDS = ("code", "argument", "value", "expected", "path", "place", "line", "column")


class InvalidInputError(TruerankError, ValueError):
    """An error for an invalid argument or array."""


class WrongTypeError(TruerankError, TypeError):
    """An error for an argument of the wrong type (a sparse matrix instead of a dense one)."""


class DataFileError(TruerankError, ValueError):
    """An error for a malformed data file. The message starts with `file, line L, column C:` if known.

    Parameters
    ----------
    what : str or TruerankError
        What is wrong, and what was expected.
    path : str
        Name of the file as the user gave it (`-` for standard input).
    line, column : int, optional
        Position in the file, from 1.
    **fields
        The fields of `TruerankError`.
    """

    def __init__(
        self,
        what: str | TruerankError,
        path: str = "",
        line: int | None = None,
        column: int | None = None,
        **fields: Any,
    ) -> None:
        place = [str(path)] if path else []
        if line is not None:
            place.append(f"line {line}")
        if column is not None:
            place.append(f"column {column}")
        super().__init__(what, where=", ".join(place), **fields)
        self.path, self.line, self.column = path, line, column


class ModelFileError(TruerankError, ValueError):
    """An error for a model file that is damaged, of another kind, or newer than this version of truerank.

    The message starts with the `path` of the file and the `place` in it, if known.
    """

    def __init__(self, what: str | TruerankError, path: str = "", place: str = "", **fields: Any) -> None:
        super().__init__(what, where=", ".join(filter(None, (str(path), place))), **fields)
        self.path, self.place = path, place or getattr(what, "place", "")


class EngineError(TruerankError, OSError):
    """An error for a search engine that rejected a request, did not answer in time, or gave an invalid answer."""


class ClusterError(TruerankError):
    """An error for a cluster that cannot continue, because no worker answers, or a worker cannot reach another one."""


class MissingExtraError(TruerankError, ImportError):
    """An error for a library that is not installed, with the command that installs its layer (`layers.py`)."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{library} is not installed, but {purpose} require it. Install it with: pip install 'truerank[{extra}]'"
        )
        self.name, self.extra = library, extra


class TruerankWarning(UserWarning):
    """A warning about an unexpected result (queries were joined, a solver stopped early)."""


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
