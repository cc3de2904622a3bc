"""The dialect of delimited tables (CSV, TSV), and their records as bytes."""

from __future__ import annotations

import re

from truerank.core.errors import DataFileError
from truerank.core.types import PathLike
from truerank.io.streams import Source

_COMMA, _POINT = (rb'[;\r\n]"?[+-]?\d*%b\d+([eE][+-]?\d+)?"?(?=[;\r\n]|\Z)' % mark for mark in (rb",", rb"\."))


def dialect(kind: str, text: bytes, name: str = "") -> tuple[str, str]:
    r"""Return the delimiter and the decimal mark of a "csv" or "tsv" text.

    The delimiter is a comma (CSV) or a tab (TSV), or without one in the header, the first semicolon or tab there. The
    decimal mark is a comma if semicolons delimit cells, and numbers have commas but no points. Raises DataFileError
    with the name of the file if the first line is a comment or a delimiter declaration of a spreadsheet.

    >>> dialect("csv", b'qid;"a,b"\n1;0,7\n'), dialect("tsv", b"qid\ta,b\n1\t0.7\n")
    ((';', ','), ('\t', '.'))
    """
    first, second = (text[:4096].lstrip(b"\r\n") + b"\n\n").split(b"\n", 2)[:2]
    if first[:4].lower() == b"sep=" or (first[:1] == b"#" and not re.search(rb"[,;\t]", first) and b"," in second):
        shown = first.decode("utf-8", "replace").strip()[:60]
        what = f"the first line, {shown!r}, is not a header. Remove the lines above the names of the columns"
        raise DataFileError(what, name, code="no-header")
    header = re.sub(rb'"[^"]*"', b"", re.match(rb"[\r\n]*([^\r\n]*)", text)[1])  # type: ignore[index]
    marks = ",;\t" if kind == "csv" else "\t;,"
    delimiter = next((mark for mark in marks if mark.encode() in header), marks[0])
    commas = delimiter == ";" and re.search(_COMMA, text) and not re.search(_POINT, text)
    return delimiter, "," if commas else "."


def read_records(path: PathLike, kind: str, n_rows: int) -> list[bytes]:
    """Return the header and the `n_rows` records of a file as bytes with line ends, which the last record may lack.

    As in Arrow's reader, a quotation mark at the start of a cell opens it, and the cell ends at the next single
    quotation mark.
    """
    with Source(path) as stream:
        text = b"".join(stream.line_blocks())
    record = rb'(?:[^"\r\n]++|(?<![^%b\r\n])"(?:[^"]++|"")*+(?:"|\Z)|")++(?:\r\n?|\n|\Z)'
    found = [match[0] for match in re.finditer(record % dialect(kind, text)[0].encode(), text)]
    if len(found) != n_rows + 1:
        raise DataFileError(f"has {len(found) - 1} records, but {n_rows} rows. Check its quotation marks", str(path))
    return found
