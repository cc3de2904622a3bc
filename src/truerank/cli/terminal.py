"""Fit what a command prints to the width of a terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from truerank.core.printing import fitted_to, wrapped

_MACHINE = {"latex", "markdown", "csv", "html", "json"}  # values of --format for other programs


@contextmanager
def fitted(argv: list[str]) -> Iterator[None]:
    """Fit tables and sentences in the block to the width of the terminal.

    Pipes and files receive whole lines, as do terminals with `--wide`, `--json` and formats for other programs.
    """
    whole = "--wide" in argv or "--json" in argv or bool(_MACHINE & set(argv))
    if whole or sys.stdout is None or not sys.stdout.isatty():
        yield
        return
    before = sys.stdout
    sys.stdout = Wrapping(before)
    try:
        with fitted_to(shutil.get_terminal_size().columns):
            yield
    finally:
        sys.stdout = before


class Wrapping:
    """A text stream that breaks long lines; data are written to `whole`, or to its buffer."""

    def __init__(self, whole: Any) -> None:
        self.whole = whole

    def write(self, text: str) -> int:
        self.whole.write(wrapped(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)
