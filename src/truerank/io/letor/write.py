"""Write rows as LETOR text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from truerank.core.checks import is_sparse
from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.io.letor.grammar import is_word
from truerank.io.streams import open_output

_SPACE = " \t\v\f\r\n"
_BREAK = re.compile(r"[\r\n\0]")
_BLOCK = 4096


def write_letor(data: RankingData, target: object, *, comments: bool = True) -> None:
    """Write judged rankings as LETOR text.

    Numbers are written in the shortest form that `read_letor` converts back to the same bits (for float32 values, with
    `dtype="float32"`). Judged documents without a row, and unjudged rows (`RankingData.with_judgements`), are written
    as comment lines before the rows, which `read_letor` reads and other programs skip.

    Parameters
    ----------
    data : RankingData
        Queries are written in their order, each with all its lines. Without judgements, every grade is written as 0. A
        dense X is written completely, a sparse X as its stored values. Missing values are written as `nan`.
    target : path, "-", or open file
        A path ending in `.gz`, `.xz` or `.zst` is compressed. Files are written atomically.
    comments : bool, default=True
        Whether to write comments after document ids.

    Raises
    ------
    InvalidInputError
        For infinite values, and for query ids, document ids or comments that the format cannot store (white space in an
        id, `#` in a query id, a line break in a comment).

    Examples
    --------
    >>> import io
    >>> stream = io.StringIO()
    >>> write_letor(RankingData([[0.1, 0.0], [3.0, 1e-9]], [2, 0], qid=["a", "a"], doc_ids=["D1", "D2"]), stream)
    >>> print(stream.getvalue(), end="")
    2 qid:a 1:0.1 2:0 #docid = D1
    0 qid:a 1:3 2:1e-09 #docid = D2
    """
    with open_output(target) as stream:
        write_rows(data, stream, comments)


def write_rows(data: RankingData, stream: IO[bytes], comments: bool, plain: bool = False) -> None:
    """Write all rows of `data`; `plain` omits names, query ids and all text after `#`."""
    if not plain and data.feature_names is not None and all(map(is_word, data.feature_names)):
        stream.write(f"# features: {' '.join(data.feature_names)}\n".encode())
    queries = ["" if plain else f" qid:{_query(name)}" for name in data.query_ids.tolist()]
    if not plain:
        stream.write("".join(_judging(data, queries)).encode())
    query_index = data.query_index
    width = data.n_features
    # The width of data whose last column is nowhere written would be lost: the first row then writes it.
    for start in range(0, data.n_rows, _BLOCK):
        stop = min(start + _BLOCK, data.n_rows)
        bodies = _bodies(data.X[start:stop], start == 0 and (plain or data.feature_names is None), width)
        grades = ["0"] * (stop - start) if data.y is None else number_texts(data.y[start:stop])
        tails = [""] * (stop - start) if plain else _tails(data, slice(start, stop), comments)
        names = query_index[start:stop].tolist()
        lines = [
            f"{grade}{queries[name]}{body}{tail}\n" for grade, name, body, tail in zip(grades, names, bodies, tails)
        ]
        stream.write("".join(lines).encode("utf-8"))


def _judging(data: RankingData, queries: list[str]) -> Iterator[str]:
    """Yield comment lines for judged documents without a row, and for unjudged rows."""
    unjudged = None if data.judged is None else ~data.judged if data.pooled is None else ~(data.judged | data.pooled)
    for number, query in enumerate(queries):
        if data.missing_grades is not None and data.missing_offsets is not None:
            start, stop = data.missing_offsets[number : number + 2].tolist()
            grades, counts = np.unique(data.missing_grades[start:stop], return_counts=True)
            if len(grades):
                words = " ".join(f"{text}*{count}" for text, count in zip(number_texts(grades), counts.tolist()))
                yield f"# not retrieved:{query} {words}\n"
        for mark, rows in (("unjudged", unjudged), ("pooled", data.pooled)):
            if rows is None:
                continue
            places = np.flatnonzero(rows[data.offsets[number] : data.offsets[number + 1]]) + 1
            if len(places):
                yield f"# {mark}:{query} {' '.join(map(str, places.tolist()))}\n"


def _bodies(X: Any, first: bool, width: int) -> list[str]:
    """Return `" 1:v 2:v"` of each row; the first row of the file includes the last column."""
    if is_sparse(X):
        X = X.tocsr().copy()
        X.sum_duplicates()
        texts, indices, indptr = number_texts(X.data), (X.indices + 1).tolist(), X.indptr.tolist()
        bodies = [
            "".join(f" {index}:{text}" for index, text in zip(indices[a:b], texts[a:b]))
            for a, b in zip(indptr, indptr[1:])
        ]
        if first and width and (indptr[1] == indptr[0] or indices[indptr[1] - 1] != width):
            bodies[0] += f" {width}:0"
        return bodies
    form = "".join(f" {index}:%s" for index in range(1, width + 1))
    texts = number_texts(np.ascontiguousarray(X).reshape(-1))
    return [form % tuple(texts[k * width : (k + 1) * width]) for k in range(len(X))]


def number_texts(values: np.ndarray) -> list[str]:
    """Return the shortest decimal texts that parse to the numbers; whole numbers have no decimal point."""
    if not np.isfinite(values).all() and np.isinf(values).any():
        raise InvalidInputError(
            "X or y contains infinite values, which LETOR text cannot store. Replace them first", code="infinite"
        )
    if values.dtype == np.float32:
        texts = values.astype("U32")
        # The shortest decimal of a float32 is found by way of a float64 again; where that rounds otherwise, the
        # float64 form is exact.
        off = (texts.astype(np.float64).astype(np.float32) != values) & ~np.isnan(values)
        result = texts.tolist()
        for place in np.flatnonzero(off).tolist():
            result[place] = repr(float(values[place]))
    else:
        result = list(map(repr, values.tolist()))
    return [text[:-2] if text.endswith(".0") else text for text in result]


def _query(name: object) -> str:
    if isinstance(name, bool) or not isinstance(name, str | int) or not is_word(str(name)) or "#" in str(name):
        raise InvalidInputError(
            f"query id {name!r} cannot be written to a LETOR file: it must be an integer or one word without '#'",
            remedies=["write a table (.csv, .parquet), where query ids may be any text"],
            code="query-id",
        )
    return str(name)


def _tails(data: RankingData, rows: slice, comments: bool) -> list[str]:
    n = rows.stop - rows.start
    doc_ids = [""] * n if data.doc_ids is None else [str(text) for text in data.doc_ids[rows].tolist()]
    rest = [""] * n
    if comments and data.comments is not None:
        rest = [str(text).strip(_SPACE) for text in data.comments[rows].tolist()]
    tails = []
    for doc_id, text in zip(doc_ids, rest):
        if not doc_id and not text:
            tails.append("")
            continue
        if doc_id and not is_word(doc_id):
            raise InvalidInputError(
                f"document id {doc_id!r} cannot be written to a LETOR file: it must be one word without blanks",
                code="document-id",
            )
        if _BREAK.search(text):
            raise InvalidInputError(
                f"comment {text[:60]!r} contains a line break or NUL, which a LETOR file cannot store", code="comment"
            )
        tails.append(" #" + " ".join(filter(None, [f"docid = {doc_id}" if doc_id else "", text])))
    return tails
