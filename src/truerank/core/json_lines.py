"""Files with one JSON value on each line, from which a killed run resumes."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.files import naming
from truerank.core.locks import locked


class JsonLines:
    """The lines of a file from an earlier run, and appended lines; no other run can open the file at the same time.

    A line is appended by one write and flushed to disk. Text after the last line end (from a crash during a write) is
    ignored, and removed when the next line is appended.

    Parameters
    ----------
    path : path or None
        With None, nothing is stored, and the attribute `path` is "".
    expected : str
        Error message for a line that is not JSON.

    Attributes
    ----------
    held : list
        The values in the file when it was opened.

    Raises
    ------
    DataFileError
        For a line that is not JSON, with its number, and for text without a line end.
    InvalidInputError
        If another run has the file open; the message names its process.
    """

    def __init__(self, path: str | os.PathLike[str] | None, expected: str) -> None:
        self.path = "" if path is None else os.fspath(path)
        self._expected = expected
        self.held: list[Any] = []
        self._torn = False
        self._lock = ExitStack()  # ends with this object, where nobody closes it
        if self.path and (os.path.isfile(self.path) or not os.path.exists(self.path)):
            self._lock.enter_context(locked(self.path))
        try:
            self._read(expected)
        except BaseException:
            self._lock.close()
            raise

    def entries_for(self, question: str, keys: set[str], kind: str, others: str) -> list[dict[str, Any]]:
        """Return the entries of an earlier run of the same question; a new file begins with the question.

        An entry is a dict with these keys. `kind` names the entries in error codes, and `others` describes another
        file.
        """
        if not self.held:
            self.append({"question": question})
            return []
        first, *entries = self.held
        known = isinstance(first, dict) and "question" in first
        if not known or not all(isinstance(entry, dict) and set(entry) == keys for entry in entries):
            raise DataFileError(self._expected, self.path, code=f"not-{kind}")
        if first["question"] != question:
            raise InvalidInputError(
                f"{self.path} contains {others}. Name another file, or remove this one", code=f"other-{kind}"
            )
        return entries

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.close()

    def _read(self, expected: str) -> None:
        if not os.path.exists(self.path) or os.path.getsize(self.path) == 0:  # a FIFO, too, is not read
            return
        content = Path(self.path).read_bytes()
        *lines, rest = content.split(b"\n")
        self._torn = bool(rest)
        if rest and not lines:
            raise DataFileError(expected, self.path, 1, code="other-lines")
        for number, line in enumerate(lines, start=1):
            try:
                self.held.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise DataFileError(expected, self.path, number, code="other-lines") from error

    def append(self, value: object) -> None:
        """Append a line. If writing fails, the file is restored."""
        if not self.path:
            return
        if self._torn:
            os.truncate(self.path, Path(self.path).read_bytes().rfind(b"\n") + 1)
            self._torn = False
        rest = memoryview((json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n").encode())
        with naming(self.path), open(self.path, "ab", buffering=0) as file:
            end = os.fstat(file.fileno()).st_size
            try:
                while len(rest):
                    rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
            except BaseException:
                os.truncate(self.path, end)  # what a full disk or an interrupt has left of it
                raise
