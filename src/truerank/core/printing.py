"""Print tables and JSON, for the command line and the experiments."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

# Control characters but tabs and line ends, marks that turn the direction of writing, halves of surrogate pairs.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str) -> str:
    r"""Make a foreign text safe for a terminal: escape control characters, and mask user and password in URLs.

    >>> print(shown("\x1b[2J http://me:secret@host/"))
    \x1b[2J http://***@host/
    """
    return _UNSEEN.sub(_escape, re.sub(r"://\S*@", "://***@", text))


def printable(name: str) -> str:
    r"""Escape what cannot be printed in a line of UTF-8: bytes of file names that are not UTF-8, control characters.

    >>> print(printable("caf\udce9\n"))
    caf\udce9\n
    """
    return re.sub(f"[\t\n]|{_UNSEEN.pattern}", _escape, name)


def _escape(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, singular for 1: "1 query", "3 queries"."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n} {noun if n == 1 else plural}"


def plain(value: object) -> Any:
    """Convert `value` to JSON types: NumPy objects become lists and numbers, nan and infinities null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and value - value != 0:
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def print_json(value: object) -> None:
    """Print one JSON object to stdout."""
    json.dump(plain(value), sys.stdout, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def note(message: str) -> None:
    """Write a message to stderr; it is dropped if nobody reads stderr."""
    try:
        sys.stderr.write(f"{shown(message)}\n")
        sys.stderr.flush()
    except (OSError, AttributeError, ValueError):  # closed, a pipe without a reader, a full disk
        pass


def table(rows: list[list[Any]], header: list[str]) -> str:
    """Format a text table: numbers are aligned to the right, floats have four digits, None and nan are empty."""
    cells = [[_cell(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [header, *cells]) for i in range(len(header))]
    right = [all(not isinstance(row[i], str) for row in rows) for i in range(len(header))]

    def line(texts: list[str]) -> str:
        return "  ".join(t.rjust(w) if r else t.ljust(w) for t, w, r in zip(texts, widths, right)).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *map(line, cells)])


STYLES = ("text", "markdown", "latex", "html")
_SPECIAL = str.maketrans({mark: f"\\{mark}" for mark in "&%$#_{}"} | {"~": r"\textasciitilde{}", "^": r"\^{}"})


def latex_escaped(text: str) -> str:
    """Return a text for LaTeX; a backslash becomes a slash."""
    return text.replace("\\", "/").translate(_SPECIAL)


def styled_table(rows: list[list[Any]], header: list[str], style: str = "text", caption: str = "") -> str:
    """Format as `table` does, as text, Markdown, a LaTeX tabular (a table if there is a caption) or an HTML table."""
    if style == "text":
        return table(rows, header) + (f"\n\n{caption}" if caption else "")
    cells = [[_cell(cell) for cell in row] for row in rows]
    right = [all(not isinstance(row[i], str) for row in rows) for i in range(len(header))]
    if style == "markdown":

        def line(texts: list[str]) -> str:
            return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"

        rule = "| " + " | ".join("--:" if r else "---" for r in right) + " |"
        return "\n".join(
            [line(header), rule, *map(line, cells), *(["", caption.replace("*", "\\*")] if caption else [])]
        )
    if style == "latex":

        def ended(texts: list[str]) -> str:
            return " & ".join(map(latex_escaped, texts)) + r" \\"

        columns = "".join("r" if r else "l" for r in right)
        body = [rf"\begin{{tabular}}{{{columns}}}", r"\hline", ended(header), r"\hline", *map(ended, cells)]
        body += [r"\hline", r"\end{tabular}"]
        if caption:
            body = [r"\begin{table}", rf"\caption{{{latex_escaped(caption)}}}", *body, r"\end{table}"]
        return "\n".join(body)
    if style != "html":
        raise ValueError(f"style must be one of {', '.join(STYLES)}, got {style!r}")
    from html import escape

    def row(texts: list[str], tag: str) -> str:
        aligned = (' style="text-align: right"' if r else "" for r in right)
        return (
            "<tr>" + "".join(f"<{tag}{how}>{escape(text)}</{tag[:2]}>" for text, how in zip(texts, aligned)) + "</tr>"
        )

    head, body_rows = row(header, 'th scope="col"'), "\n".join(row(texts, "td") for texts in cells)
    above = f"<caption>{escape(caption)}</caption>\n" if caption else ""
    return f"<table>\n{above}<thead>\n{head}\n</thead>\n<tbody>\n{body_rows}\n</tbody>\n</table>"


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    return f"{value:.4f}" if isinstance(value, float) else shown(str(value))


PROGRESS_AFTER = 2.0  # seconds after which a progress bar appears


def progress(iterable: Any, description: str, total: int | None = None, **settings: Any) -> Any:
    """Show a progress bar on stderr after two seconds if stderr is a terminal.

    Returns the iterable or, without one, the bar (None if stderr is no terminal).
    """
    if sys.stderr is None or sys.stderr.closed or not sys.stderr.isatty():
        return iterable
    from tqdm import tqdm

    return tqdm(iterable, description, total, leave=False, file=sys.stderr, delay=PROGRESS_AFTER, **settings)
