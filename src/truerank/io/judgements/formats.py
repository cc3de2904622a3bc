"""The definition of a format of judgements: how to detect, read and write it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from truerank.io.judgements.content import Content
from truerank.io.judgements.nested import rows_of
from truerank.io.judgements.ratings import Ratings, Row
from truerank.io.streams import open_output


def json_rows(content: Content) -> Iterable[Row]:
    """Yield the rows of JSON with any nesting."""
    for line, value in content.values:
        yield from rows_of(value, line)


@dataclass(frozen=True)
class Format:
    """A format of judgements.

    Parameters
    ----------
    name : str
        Name of the format on the command line and in Python.
    title : str
        Name of the format in messages.
    matches : callable
        Returns whether a `Content` is of this format.
    rows : callable
        Yields the rows of a `Content`.
    write : callable, optional
        Writes `Ratings` to a path, "-" or a stream.
    judges, texts : bool
        Whether the format stores several judges of a document, and the texts of queries in addition to their ids.
    """

    name: str
    title: str
    matches: Callable[[Content], bool]
    rows: Callable[[Content], Iterable[Row]] = json_rows
    write: Callable[[Ratings, Any], None] | None = None
    judges: bool = False
    texts: bool = True


def whole(grade: float) -> int | float:
    """Return a grade in its written form, an integer if the value is whole."""
    return int(grade) if grade == int(grade) else grade


def write_json(value: object, target: object) -> None:
    """Write a value as indented JSON."""
    write_lines([json.dumps(value, ensure_ascii=False, indent=2)], target)


def write_lines(lines: Iterable[str], target: object) -> None:
    """Write lines of text."""
    with open_output(target) as stream:
        for line in lines:
            stream.write(f"{line}\n".encode())
