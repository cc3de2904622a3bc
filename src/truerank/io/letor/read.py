"""Read LETOR / SVMlight text: `grade qid:<id> <feature>:<value> ... # docid = <id> <text>`.

`letor.grammar` has the grammar, and `letor.kernel` the compiled parser of larger files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from truerank.core.checks import check_choice, check_positive_int
from truerank.core.errors import DataFileError, InvalidInputError, warn
from truerank.core.layers import is_large
from truerank.core.types import DTypeLike
from truerank.data.grouping import offsets_of
from truerank.data.ranking_data import RankingData
from truerank.io.letor.grammar import LineParser, ParsedRows, check_bytes
from truerank.io.letor.store import DenseStore, SparseStore, check_dtype, query_names
from truerank.io.streams import Source

# Smaller files are parsed in plain Python, because loading the compiled parser would cost more (numba imported or not).
KERNEL_AFTER_LOADED, KERNEL_AFTER = 1 << 20, 8 << 20

_HEADER = re.compile(rb"#\s*features:\s*(.*)", re.ASCII)
# Comments with the grades of judged documents that have no row, with the rows that were not judged, and with the rows
# that were pooled but not judged.
_JUDGING = re.compile(rb"#\s*(not retrieved|unjudged|pooled):\s*qid:(\S+)\s+(.*)", re.ASCII)
_COMMENT = re.compile(rb"^[ \t\v\f]*#.*", re.MULTILINE)
_ROW = re.compile(rb"^[ \t\v\f]*[^#\s]", re.MULTILINE)
MAX_UNRANKED = 10_000_000
_GRADE_COUNT = re.compile(rb"([+-]?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)\*([0-9]{1,9})")


def read_letor(
    source: object,
    *,
    missing: str = "error",
    dtype: DTypeLike = np.float64,
    sparse: bool = False,
    n_features: int | None = None,
    comments: bool = True,
    max_line: int | None = None,
) -> RankingData:
    """Read judged rankings from LETOR / SVMlight text.

    Parameters
    ----------
    source : path, "-", open file, or sequence of these
        Plain, gzip, xz or zstd (recognised by the first bytes); "-" is standard input. Several sources form one file.
    missing : {"error", "nan", "zero"}, default="error"
        Treatment of the values `NULL` and `nan`. "zero" reads them as 0, as engines without missing values do. Absent
        features are 0.
    dtype : float32 or float64, default=float64
        Dtype of X. Values are parsed to the nearest float64 number, which is then rounded for float32.
    sparse : bool, default=False
        Whether X is a SciPy CSR matrix of the nonzero values, for wide data.
    n_features : int, optional
        Number of columns; required if the highest features may be absent from all rows. The default is the highest
        index in the file, or the number of names in a header line.
    comments : bool, default=True
        Whether to keep the text of comments after the document id.
    max_line : int, optional
        Limit on the bytes of a line, by default 16 MiB, because a damaged file may have no line ends.

    Returns
    -------
    RankingData
        With document ids and comments (StringDType arrays) if the file has any; rows without an id or comment have "".
        `order` is None if the lines of each query are adjacent.

    Raises
    ------
    DataFileError
        For malformed text, with file, line, column and the expected form; for infinite values; for a file without rows.
    OSError
        If the file cannot be opened.

    Warns
    -----
    TruerankWarning
        If the lines of a query are not adjacent.

    Notes
    -----
    A comment that starts with `docid = `, or that is a word alone or before a tab, has the document id. The following
    comment lines have a meaning; all other comment lines are skipped (see `RankingData.with_judgements`):

    * `# features: name name ...` before the first row: the `feature_names`.
    * `# not retrieved: qid:7 0*12 2*1`: query 7 has 13 judged documents without a row, twelve of grade 0 and one of
      grade 2. These documents count in recall and in the ideal ranking.
    * `# unjudged: qid:7 1 4`: the first and fourth rows of query 7 were not judged.
    * `# pooled: qid:7 3`: the third row of query 7 was pooled but not judged.

    Query ids are int64 if all are whole numbers in their usual form, else strings.

    The text is read in blocks of a megabyte, so that memory beyond the result is bounded. If pieces of queries are
    joined, the rows are copied once. Compiled code parses files of more than a few megabytes.

    >>> import io
    >>> text = "2 qid:1 1:0.5 2:1 # docid = D1\\n0 qid:1 2:3 # docid = D2\\n1 qid:7 1:1e-3 # docid = D1\\n"
    >>> data = read_letor(io.StringIO(text))
    >>> data
    RankingData(3 rows, 2 queries, 2 features)
    >>> data.X.tolist(), data.y.tolist(), data.qid.tolist(), data.doc_ids.tolist()
    ([[0.5, 1.0], [0.0, 3.0], [0.001, 0.0]], [2.0, 0.0, 1.0], [1, 1, 7], ['D1', 'D2', 'D1'])
    """
    reader = _Reader(missing, dtype, sparse, n_features, comments, max_line)
    sources = [source] if isinstance(source, str | bytes) or not isinstance(source, Sequence) else list(source)
    if not sources:
        raise InvalidInputError("read_letor: got no files. Name at least one")
    for one in sources:
        reader.read(one)
    name = ", ".join(reader.sources)
    if not reader.rows:
        raise DataFileError("the file holds no rows", name)
    data = _grouped(reader.X.finish(), ParsedRows.concatenate(reader.rows), reader.names)
    if data.n_joined:
        warn(f"{name}: queries whose rows were not adjacent were joined: {data.n_joined}")
    if any(reader.spoken.values()):
        data = reader.judged(data)
        reader.check_queries(name)
    return data


def iter_letor(
    source: object,
    *,
    block_rows: int = 65_536,
    n_features: int | None = None,
    missing: str = "error",
    dtype: DTypeLike = np.float64,
    sparse: bool = False,
    comments: bool = True,
    max_line: int | None = None,
) -> Iterator[RankingData]:
    """Read LETOR text block by block, for files larger than memory.

    Each block has about `block_rows` rows of whole queries, and at least one query. If the lines of a query are not
    adjacent, its rows may be in several blocks; one warning at the end counts such queries.

    Parameters
    ----------
    block_rows : int, default=65536
    n_features : int, optional
        Number of columns of every block. The default is the highest index in the first block; later blocks must not
        exceed it.
    source, missing, dtype, sparse, comments, max_line
        As in `read_letor`.

    Yields
    ------
    RankingData

    Examples
    --------
    >>> import io
    >>> text = "1 qid:1 1:5\\n0 qid:1 1:6\\n0 qid:2 1:7\\n2 qid:3 1:8\\n"
    >>> [block.X[:, 0].tolist() for block in iter_letor(io.StringIO(text), block_rows=2)]
    [[5.0, 6.0], [7.0, 8.0]]
    """
    check_positive_int(block_rows, "block_rows")
    reader = _Reader(missing, dtype, sparse, n_features, comments, max_line)
    seen: set[bytes] = set()
    again: set[bytes] = set()
    with Source(source, reader.max_line) as stream:
        for rows in _whole_queries(reader.parsed(stream), block_rows):
            names = {name for _, name in rows.pieces}
            again |= names & seen
            seen |= names
            yield reader.block(rows, stream.name)
        if not seen:
            raise DataFileError("the file holds no rows", stream.name)
    reader.check_queries(stream.name)
    if again:
        warn(
            f"{stream.name}: queries with rows in different blocks were not joined: {len(again)}. Sort the file by "
            "query to join them"
        )


def _whole_queries(parts: Iterator[ParsedRows], block_rows: int) -> Iterator[ParsedRows]:
    """Yield blocks of whole queries, with at most `block_rows` rows or a single query."""
    held, waiting = [], 0
    for rows in parts:
        own = {name: getattr(rows, name).copy() for name in ("grades", "indptr", "indices", "values")}
        held.append(replace(rows, **own))  # a block is valid until the next one
        waiting += rows.n_rows
        if waiting <= block_rows:
            continue
        whole, start = ParsedRows.concatenate(held), 0
        ends = np.array([row for row, _ in whole.pieces[1:]], dtype=np.int64)
        while whole.n_rows - start > block_rows and (ends > start).any():
            reached = int(np.searchsorted(ends, start + block_rows, side="right"))
            stop = int(ends[max(reached - 1, int(np.searchsorted(ends, start, side="right")))])
            yield whole.part(start, stop)
            start = stop
        held = [whole.part(start, whole.n_rows)]
        waiting = whole.n_rows - start
    if waiting:
        yield ParsedRows.concatenate(held)


class _Reader:
    """The options and the state of a reader."""

    def __init__(
        self,
        missing: str,
        dtype: DTypeLike,
        sparse: bool,
        n_features: int | None,
        comments: bool,
        max_line: int | None = None,
    ) -> None:
        check_choice(missing, "missing", ("error", "nan", "zero"))
        if n_features is not None:
            check_positive_int(n_features, "n_features", 0)
        self.max_line = None if max_line is None else check_positive_int(max_line, "max_line")
        self._missing_nan, self._zero, self._comments = missing != "error", missing == "zero", comments
        self._dtype, self._n_features = check_dtype(dtype), n_features
        self._kind: Any = SparseStore if sparse else DenseStore
        self.names: list[str] | None = None
        self.X = self._kind(self._dtype, n_features)
        self.rows: list[ParsedRows] = []  # without their entries, which X holds
        # By kind of comment line and query: grades of documents without a row, or places of rows, from 1.
        self.spoken: dict[bytes, dict[bytes, Any]] = {b"not retrieved": {}, b"unjudged": {}, b"pooled": {}}
        self._met: set[bytes] = set()  # queries with rows
        self.sources: list[str] = []
        self._parsed = 0  # bytes of the present source
        self._parsed_before = 0  # bytes of the sources before it

    def read(self, source: object) -> None:
        """Append the rows of a source."""
        before, nothing = self.X.n_rows, np.zeros(0)
        with Source(source, self.max_line) as stream:
            self.sources.append(stream.name)
            for rows in self.parsed(stream):
                n, size = self.X.n_rows + rows.n_rows - before, stream.expected_size
                expected = before + int(n / (self._parsed / size) * 1.02) + 64 if size else 0
                self.X.extend(rows, expected, stream.name)
                rows.grades = rows.grades.copy()  # a block is valid until the next one
                rows.indptr, rows.indices, rows.values, rows.text = np.zeros(1, np.int64), nothing, nothing, b""
                self.rows.append(rows)
        self._parsed_before += self._parsed

    def parsed(self, stream: Source) -> Iterator[ParsedRows]:
        """Yield the rows of a source block by block."""
        parser: Any = LineParser(stream.name, self._missing_nan, self._comments)
        self._parsed, compiled, started = 0, False, False
        for text in stream.line_blocks():
            check_bytes(text, stream.name, parser.line)
            self._parsed += len(text)
            size = self._parsed_before + max(self._parsed, stream.expected_size)
            if not compiled and is_large(size, KERNEL_AFTER, KERNEL_AFTER_LOADED):
                compiled = True
                from truerank.io.letor.kernel import BlockParser

                parser = BlockParser(stream.name, self._missing_nan, self._comments, parser.line)
            line = parser.line
            rows = parser.parse(text)
            if rows.n_rows < parser.line - line + (not text.endswith(b"\n")):  # some lines are no rows
                self._comment_lines(text, started, stream.name, line)
            started = started or rows.n_rows > 0
            if self._zero:
                rows.values[np.isnan(rows.values)] = 0.0
            rows.text, rows.first_line = text, line
            if rows.n_rows:
                if self._n_features is not None:
                    self._check_width(rows, self._n_features, stream.name)
                yield rows

    def _comment_lines(self, text: bytes, started: bool, name: str, line: int) -> None:
        """Read the comment lines of a block, which concatenated files may have after the first row."""
        row = None if started else _ROW.search(text)
        first = 0 if started else len(text) if row is None else row.start()
        counted = 0
        for found in _COMMENT.finditer(text):
            line += text.count(b"\n", counted, found.start())
            counted, content = found.start(), found.group().strip()
            known = counted < first or self.names is not None
            try:
                if not (known and self._take_names(content)):
                    self._take_judging(content)
            except InvalidInputError as error:
                raise DataFileError(error, name, line) from error

    def _take_names(self, content: bytes) -> bool:
        """Read the names of features from a comment line; return whether the line has names."""
        found = _HEADER.match(content)
        if found is None:
            return False
        names = found.group(1).decode("utf-8").split()
        if self.names is None and self.X.n_rows:
            what = "the file has names of features, but the previous file has none. Remove this line, or add it there"
            raise InvalidInputError(what)
        if self.names is not None and names != self.names:
            what = "the feature names differ from the names in the previous file. Use the same names in both"
            raise InvalidInputError(what, code="different-names")
        if self._n_features is not None and len(names) != self._n_features:
            raise InvalidInputError(
                f"got {len(names)} feature names for {self._n_features} features. Name each of them"
            )
        self.names, self._n_features = names, len(names)
        if not self.X.n_rows:
            self.X = self._kind(self._dtype, len(names))
        return True

    def _take_judging(self, content: bytes) -> None:
        """Read a comment line about judgements."""
        found_line = _JUDGING.match(content)
        if found_line is None:
            return
        kind, qid, words = found_line.groups()
        if qid in self.spoken[kind]:
            raise InvalidInputError(
                f"'# {kind.decode()}' occurs twice for query {qid.decode('utf-8', 'replace')}. Files with a common "
                "query cannot be read together",
                code="twice",
            )
        if kind != b"not retrieved":
            if not all(word.isdigit() and int(word[:12]) > 0 for word in words.split()):
                raise InvalidInputError(
                    f"expected numbers of rows, from 1, after '# {kind.decode()}: qid:…', got "
                    f"{words.decode(errors='replace')!r:.80}",
                    code="row-numbers",
                )
            self.spoken[kind][qid] = [int(word[:12]) for word in words.split()]
            return
        grades: list[float] = []
        for word in words.split():
            found = _GRADE_COUNT.fullmatch(word)
            grade = float(found.group(1)) if found else float("nan")
            if found is None or not np.isfinite(grade):
                raise InvalidInputError(
                    f"expected grade*count, such as 0*12, after '# not retrieved: qid:…', got "
                    f"{word.decode(errors='replace')!r:.80}",
                    code="row-numbers",
                )
            if len(grades) + int(found.group(2)) > MAX_UNRANKED:
                what = f"one query has more than {MAX_UNRANKED} documents without a row"
                raise InvalidInputError(what, code="too-many")
            grades += [grade] * int(found.group(2))
        self.spoken[kind][qid] = grades

    def judged(self, data: RankingData) -> RankingData:
        """Return the data with the judgements of comment lines."""
        names = [str(name).encode() for name in data.query_ids.tolist()]
        self._met.update(names)
        grades = [self.spoken[b"not retrieved"].get(name, []) for name in names]
        if any(grades):
            data.missing_grades = np.array([grade for some in grades for grade in some], dtype=np.float64)
            data.missing_offsets = offsets_of(list(map(len, grades)))
        unjudged, pooled = (self._marked_rows(kind, data, names) for kind in (b"unjudged", b"pooled"))
        if pooled.any():
            data.pooled = pooled
            unjudged |= pooled
        if unjudged.any():
            data.judged = ~unjudged
        return data

    def _marked_rows(self, kind: bytes, data: RankingData, names: list[bytes]) -> np.ndarray:
        """Return the rows in comment lines of a kind, bool (n,)."""
        marked = np.zeros(data.n_rows, dtype=np.bool_)
        for query, name in enumerate(names):
            start, stop = int(data.offsets[query]), int(data.offsets[query + 1])
            for place in self.spoken[kind].get(name, []):
                if place > stop - start:
                    raise DataFileError(
                        f"row {place} of query {name.decode()} is marked {kind.decode()}, but the query "
                        f"has {stop - start} rows. Correct the comment line, or remove it",
                        ", ".join(self.sources),
                        code="row-numbers",
                    )
                marked[start + place - 1] = True
        grades = data.judgements().grades
        wrong = np.flatnonzero(marked & (grades > 0))
        if len(wrong):
            query = data.query_ids[data.query_index[wrong[0]]]
            raise DataFileError(
                f"a row of query {query} is marked {kind.decode()}, but has grade {grades[wrong[0]]:g}. Change its "
                f"grade to 0, or remove it from the comment line",
                ", ".join(self.sources),
                code="grade",
            )
        return marked

    def check_queries(self, name: str) -> None:
        """Warn about comment lines for queries without rows."""
        lost = sorted(set().union(*self.spoken.values()) - self._met)
        if lost:
            shown = b", ".join(lost[:3]).decode("utf-8", "replace") + (", …" if len(lost) > 3 else "")
            warn(
                f"{name}: comment lines have judgements of queries without rows ({len(lost)}: {shown}). Measures do "
                "not count these judgements"
            )

    def _check_width(self, rows: ParsedRows, n_features: int, name: str) -> None:
        top = int(rows.indices.max(initial=-1)) + 1
        if top > n_features:
            origin = "the header line names" if self.names is not None else "n_features is"
            line = rows.line_of(int(rows.indices.argmax()))
            raise DataFileError(f"feature {top} occurs, but {origin} {n_features}", name, line, argument="n_features")

    def block(self, rows: ParsedRows, name: str) -> RankingData:
        """Return a block of rows as data with the number of columns of the first block."""
        if self._n_features is not None:
            self._check_width(rows, self._n_features, name)
        X = self._kind(self._dtype, self._n_features)
        X.extend(rows, 0, name)
        data = _grouped(X.finish(), rows, self.names)
        self._n_features = data.n_features
        return self.judged(data) if any(self.spoken.values()) else data


def _grouped(X: Any, rows: ParsedRows, feature_names: list[str] | None) -> RankingData:
    """Return rows and their features X as data grouped by query."""
    starts, names = zip(*rows.pieces)
    offsets = np.array([*starts, rows.n_rows], dtype=np.int64)
    numbers = dict(zip(dict.fromkeys(names), count()))
    query_ids = query_names(list(numbers))
    known: dict[str, Any] = {"doc_ids": rows.doc_ids, "comments": rows.comments, "feature_names": feature_names}
    if len(numbers) == len(names):
        return RankingData.from_grouped(X, rows.grades, offsets, query_ids, **known)
    data = RankingData(X, rows.grades, np.repeat(list(map(numbers.__getitem__, names)), np.diff(offsets)), **known)
    return data.replaced(query_ids=query_ids[data.query_ids])
