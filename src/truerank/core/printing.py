"""Print tables and JSON for the command line and the experiments."""

from __future__ import annotations

import json
import re
import sys
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

# Control characters but tabs and line ends, marks that turn the direction of writing, halves of surrogate pairs.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str) -> str:
    r"""Escape control characters in a text from outside for a terminal, and mask user and password in URLs.

    >>> print(shown("\x1b[2J http://me:secret@host/"))
    \x1b[2J http://***@host/
    """
    return _UNSEEN.sub(_escape, re.sub(r"://\S*@", "://***@", text))


def printable(name: str) -> str:
    r"""Escape what a line of UTF-8 cannot print: control characters, and bytes of file names that are not UTF-8.

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


_width: int | None = None  # columns that tables and notes may have; None: any number
_late: list[str] = []  # notes that follow the result


@contextmanager
def fitted_to(width: int | None) -> Iterator[None]:
    """Fit the tables and notes of the block to a number of columns, or leave them unchanged for None."""
    global _width
    before, _width = _width, width
    try:
        yield
    finally:
        while _late:
            note(_late.pop(0))
        _width = before


def wrapped(text: str) -> str:
    r"""Break lines that are wider than the output; a command is continued after a backslash, so that it can be pasted.

    >>> with fitted_to(24):
    ...     print(wrapped("next: truerank report old.run new.run latent.run"))
    next: truerank report \
          old.run new.run \
          latent.run
    """
    return text if _width is None else "\n".join(map(_broken, text.split("\n")))


def _broken(line: str) -> str:
    if _width is None or len(line) <= _width:
        return line
    command = re.match(r"(next: |try: |or type: | *)(?=truerank (?![\w -]*:))", line)
    if command:
        further, end = " " * max(2, command.end()), " \\"
    else:
        further, end = re.match(r" *(-> )?", line).group().replace("->", "  "), ""  # type: ignore[union-attr]
    lines = textwrap.wrap(
        line, _width - len(end), subsequent_indent=further, break_long_words=False, break_on_hyphens=False
    )
    return f"{end}\n".join(lines)


def note(message: str, late: bool = False) -> None:
    """Write a message to stderr, above the progress bars; drop the message if stderr is closed.

    With `late`, the message follows the result if a person reads both: at the end of `fitted_to` with a width.
    """
    if late and _width is not None:
        _late.append(message)
        return
    try:
        text = f"{wrapped(shown(message))}\n"
        if "tqdm" in sys.modules and sys.stderr.isatty():
            sys.modules["tqdm"].tqdm.write(text, file=sys.stderr, end="")
        else:
            sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, AttributeError, ValueError):  # closed, a pipe without a reader, a full disk
        pass


_NARROWEST = 8  # columns of a text that is broken


def table(rows: list[list[Any]], header: list[str], spare: Sequence[str] = ()) -> str:
    """Format a text table with right-aligned numbers and floats with four digits; None and nan are empty.

    If the table is wider than the output, the columns named in `spare` are dropped, from the first on, and listed
    below. If that is not enough, long texts continue on the next line.
    """
    cells, right = _laid_out(rows, header)
    widths = [max(map(len, column)) for column in zip(header, *cells)]
    kept, left_out = list(range(len(header))), list[str]()
    excess = 0 if _width is None else sum(widths) + 2 * len(widths) - 2 - _width
    for name in spare:
        if excess > 0 and name in header:
            kept.remove(header.index(name))
            excess -= widths[header.index(name)] + 2
            left_out.append(name)
    while excess > 0:
        widest = max(kept, key=lambda i: 0 if right[i] else widths[i])
        if right[widest] or widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
        excess -= 1
    lines = []
    for texts in [header, ["-" * width for width in widths], *cells]:
        parts = [[texts[i]] if len(texts[i]) <= widths[i] else _parts(texts[i], widths[i]) for i in kept]
        for row in zip_longest(*parts, fillvalue=""):
            placed = [text.rjust(widths[i]) if right[i] else text.ljust(widths[i]) for i, text in zip(kept, row)]
            lines.append("  ".join(placed).rstrip())
    return "\n".join([*lines, *([wrapped(f"without the columns {', '.join(left_out)}")] if left_out else [])])


def _laid_out(rows: list[list[Any]], header: list[str]) -> tuple[list[list[str]], list[bool]]:
    """Return the texts of the cells, and which columns hold no texts and are aligned to the right."""
    right = [True] * len(header)
    cells = []
    for row in rows:
        cells.append(list(map(_cell, row)))
        for place, cell in enumerate(row):
            right[place] = right[place] and not isinstance(cell, str)
    return cells, right


def _parts(text: str, width: int) -> list[str]:
    """Break a cell after a comma, or else at a blank, after a punctuation mark of names, or anywhere."""
    parts, rest = [], text
    while len(rest) > width:
        found = (list(re.finditer(sign, rest[: width + 1])) for sign in (", ", " ", "[/._-]"))
        place = next((places[-1].end() for places in found if places and places[-1].end() <= width + 1), width)
        parts.append(rest[:place].rstrip()[:width])
        rest = rest[len(parts[-1]) :].lstrip()
    return [*parts, rest]


_LATEX = str.maketrans({
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}",
    "<": "$<$", ">": "$>$", "±": r"$\pm$", "×": r"$\times$", "−": "$-$", "≤": r"$\leq$", "≥": r"$\geq$",
    "≠": r"$\neq$", "→": r"$\to$", "∞": r"$\infty$", "·": r"$\cdot$", "µ": r"$\mu$", "²": "$^2$", "³": "$^3$",
})  # fmt: skip


def latex_escaped(text: str) -> str:
    """Escape a text for LaTeX. Letters that LaTeX's fonts lack, such as Chinese letters, are unchanged for LuaLaTeX."""
    found = re.sub(r"\s+", " ", unicodedata.normalize("NFC", text)).translate(_LATEX)
    found = re.sub(r"[α-ξπ-ωΓΔΘΛΞΠΣΦΨΩ]", _greek, found)
    found = re.sub(r"([-'`?!])(?=[-'`])", r"\1{}", found)  # these pairs would become one sign
    return re.sub(r"^([\[*])", r"{\1}", found)  # an argument of the command that ended the last row


def _greek(mark: re.Match[str]) -> str:
    size, *_, name = unicodedata.name(mark[0]).removeprefix("GREEK ").replace("LAMDA", "LAMBDA").split()
    return rf"$\{name.capitalize() if size == 'CAPITAL' else name.lower()}$"


def styled_table(
    rows: list[list[Any]], header: list[str], style: str = "text", caption: str = "", spare: Sequence[str] = ()
) -> str:
    """Format as `table` does, as text, Markdown, a LaTeX tabular (a table with a caption) or an HTML table."""
    if style == "text":
        return table(rows, header, spare) + (f"\n\n{caption}" if caption else "")
    cells, right = _laid_out(rows, header)
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

    Return the iterable or, without one, the bar (None if stderr is not a terminal).
    """
    if sys.stderr is None or sys.stderr.closed or not sys.stderr.isatty():
        return iterable
    from tqdm import tqdm

    return tqdm(iterable, description, total, leave=False, file=sys.stderr, delay=PROGRESS_AFTER, **settings)
