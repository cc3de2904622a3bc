"""Files of JSON values, one per line, with which a killed run resumes."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from truerank.core.errors import DataFileError
from truerank.core.files import append_whole
from truerank.core.locks import locked


class JsonLines:
    """What an earlier run has left in a file, and lines that are added to it; no other run may open it meanwhile.

    A line is appended by one write and flushed to disk. What stands behind the last line end (the machine died in
    mid-write) counts as not written, and is cut off when the next line is appended.

    Parameters
    ----------
    path : path or None
        None keeps nothing.
    expected : str
        What an error says of a line that is no JSON.

    Attributes
    ----------
    path : str
        "" where nothing is kept.
    held : list
        The values that the file held when it was opened.

    Raises
    ------
    DataFileError
        On a line that is no JSON, with its number, and on text without a line end.
    InvalidInputError
        Where another run has the file open, with its process number.
    """

    def __init__(self, path: str | os.PathLike[str] | None, expected: str) -> None:
        self.path = "" if path is None else os.fspath(path)
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
            raise DataFileError(expected, self.path, 1)
        for number, line in enumerate(lines, start=1):
            try:
                self.held.append(json.loads(line))
            except ValueError as error:
                raise DataFileError(expected, self.path, number) from error

    def append(self, value: object) -> None:
        """Add a line."""
        if not self.path:
            return
        if self._torn:
            os.truncate(self.path, Path(self.path).read_bytes().rfind(b"\n") + 1)
            self._torn = False
        append_whole(self.path, json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")
