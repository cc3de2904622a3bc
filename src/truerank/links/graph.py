"""The graph of links between documents."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from scipy import sparse

from truerank.core.errors import DataFileError, InvalidInputError
from truerank.io.letor.grammar import check_bytes
from truerank.io.streams import Source

_ABSOLUTE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)?//")


class LinkGraph:
    """Directed links between n nodes. Repeated links count once, and links of a node to itself are kept.

    Parameters
    ----------
    sources, targets : int arrays (edges,)
        Link i is from node `sources[i]` to node `targets[i]`.
    n_nodes : int, optional
        The default is the largest number plus one.
    names : sequence of str, optional
        Ids of the nodes.

    Attributes
    ----------
    into : CSR matrix (n, n), float64
        `into[v, u]` is 1 if u links to v.
    out_degree : float64 array (n,)

    Examples
    --------
    >>> graph = LinkGraph([0, 0, 1, 0], [1, 2, 2, 1])
    >>> graph.n_edges, graph.out_degree.tolist()
    (3, [2.0, 1.0, 0.0])
    """

    def __init__(
        self, sources: Any, targets: Any, n_nodes: int | None = None, names: Sequence[str] | None = None
    ) -> None:
        rows, columns = np.asarray(targets), np.asarray(sources)
        if rows.size == columns.size == 0:
            rows = columns = np.zeros(0, dtype=np.int64)
        if rows.shape != columns.shape or rows.ndim != 1 or {rows.dtype.kind, columns.dtype.kind} - set("iu"):
            raise InvalidInputError("sources and targets must be integer arrays of the same length")
        ends = np.stack([rows, columns]).astype(np.int64)
        smallest, largest = int(ends.min(initial=0)), int(ends.max(initial=-1))
        n = largest + 1 if n_nodes is None else int(n_nodes)
        if names is not None and len(names) != n:
            raise InvalidInputError(f"got {len(names)} names for {n} nodes; expected a name for each node")
        if largest >= n or smallest < 0:
            raise InvalidInputError(f"nodes must be numbered 0 to {n - 1}, got {smallest if smallest < 0 else largest}")
        self.names = None if names is None else list(names)
        into = sparse.csr_matrix((np.ones(len(rows)), (ends[0], ends[1])), shape=(n, n))
        into.sum_duplicates()
        into.data[:] = 1.0
        self.into = into
        self.out_degree = np.bincount(into.indices, minlength=n).astype(np.float64)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.into.shape[0])

    @property
    def n_edges(self) -> int:
        """Number of different links."""
        return int(self.into.nnz)

    def __repr__(self) -> str:
        return f"LinkGraph({self.n_nodes} nodes, {self.n_edges} links)"


def read_links(source: object) -> LinkGraph:
    """Read an edge list with a line `source target` for each link, separated by blanks or tabs; `#` starts a comment.

    A line without exactly two columns, text that is not UTF-8, or a file without links raises `DataFileError`.

    >>> import io
    >>> graph = read_links(io.StringIO("a b\\nb c\\na b\\n"))
    >>> graph, graph.names
    (LinkGraph(3 nodes, 2 links), ['a', 'b', 'c'])
    """
    numbers: dict[bytes, int] = {}
    ends, first = array("q"), 1
    with Source(source) as stream:
        for text in stream.line_blocks():
            check_bytes(text, stream.name, first)
            lines = text.split(b"\n")
            for number, line in enumerate(lines, first):
                words = line.split()
                if not words or words[0].startswith(b"#"):
                    continue
                if len(words) != 2:
                    raise DataFileError(f"expected 'source target', got {len(words)} columns", stream.name, number)
                ends.extend(numbers.setdefault(word, len(numbers)) for word in words)
            first += len(lines) - 1
        name = stream.name
    if not numbers:
        raise DataFileError("the file holds no links; expected lines 'source target'", name)
    pairs = np.array(ends).reshape(-1, 2)
    return LinkGraph(pairs[:, 0], pairs[:, 1], len(numbers), [word.decode("utf-8") for word in numbers])


def site_parents(urls: Sequence[str]) -> np.ndarray:
    """Parent of each page in its site's tree, int64 (n,): the nearest page up the path; -1 for roots.

    The parent of `host/a/b.html` is `host/a/` (or `host/a`, or `host/a/index.html`), else `host/`. A query string is a
    step.

    >>> site_parents(["http://h/", "http://h/a/", "http://h/a/b.html", "http://h/c/d/e", "http://g/x"]).tolist()
    [-1, 0, 1, 0, -1]
    """
    paths = [steps_of(url) for url in urls]
    place = {path: number for number, path in reversed(list(enumerate(paths)))}
    parents = np.full(len(urls), -1, dtype=np.int64)
    for number, path in enumerate(paths):
        for length in range(len(path) - 1, 0, -1):
            found = place.get(path[:length], number)
            if found != number:
                parents[number] = found
                break
    return parents


def steps_of(url: str) -> tuple[str, ...]:
    """Host of a URL in lower case, with or without a scheme, and the steps of its path."""
    try:
        parts = urlsplit(url if _ABSOLUTE.match(url) else f"//{url}")
    except ValueError as error:
        raise InvalidInputError(f"the URL {url!r} is invalid: {error}. Correct it, or leave out the page") from error
    steps = [step for step in parts.path.split("/") if step]
    if steps and steps[-1].lower() in ("index.html", "index.htm", "index.php", "default.htm", "default.asp"):
        steps.pop()
    return (parts.netloc.lower(), *steps, *([f"?{parts.query}"] if parts.query else []))
