"""The graph of links between documents, and the importance of its pages: PageRank and HostRank."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from scipy import sparse

from truerank.core.checks import check_number, check_positive_int
from truerank.core.errors import DataFileError, InvalidInputError, warn
from truerank.core.printing import counted
from truerank.io.letor.grammar import check_bytes
from truerank.io.streams import Source

_ABSOLUTE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)?//")


class LinkGraph:
    """Directed links between n nodes. Repeated links count once, and links from a node to itself are kept.

    Parameters
    ----------
    sources, targets : int arrays (edges,)
        Link i goes from node `sources[i]` to node `targets[i]`.
    n_nodes : int, optional
        Number of nodes, by default the largest number plus one.
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
            got = f"got {columns.dtype} {columns.shape} and {rows.dtype} {rows.shape}"
            raise InvalidInputError(f"sources and targets must be integers (n,), {got}", argument="sources")
        ends = np.stack([rows, columns]).astype(np.int64)
        smallest, largest = int(ends.min(initial=0)), int(ends.max(initial=-1))
        n = largest + 1 if n_nodes is None else int(n_nodes)
        if names is not None and len(names) != n:
            raise InvalidInputError(f"names must have a name for each of the {n} nodes, got {len(names)}")
        if largest >= n or smallest < 0:
            raise InvalidInputError(
                f"nodes must be numbered 0 to {n - 1}, got {smallest if smallest < 0 else largest}", code="node-numbers"
            )
        self.names = None if names is None else list(names)
        into = sparse.csr_matrix((np.ones(len(rows)), (ends[0], ends[1])), shape=(n, n))
        into.sum_duplicates()
        into.data[:] = 1.0
        self.into = into
        self.out_degree = np.bincount(into.indices, minlength=n).astype(np.float64)

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return int(self.into.shape[0])

    @property
    def n_edges(self) -> int:
        """The number of different links."""
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
                    what = f"expected 'source target', got {counted(len(words), 'column')}"
                    raise DataFileError(what, stream.name, number, code="columns")
                ends.extend(numbers.setdefault(word, len(numbers)) for word in words)
            first += len(lines) - 1
        name = stream.name
    if not numbers:
        raise DataFileError("the file has no links. Expected a line 'source target' for each", name, code="no-rows")
    pairs = np.array(ends).reshape(-1, 2)
    return LinkGraph(pairs[:, 0], pairs[:, 1], len(numbers), [word.decode("utf-8") for word in numbers])


def site_parents(urls: Sequence[str]) -> np.ndarray:
    """Return the parent of each page in its site's tree, int64 (n,): the nearest page up the path; -1 for roots.

    The parent of `host/a/b.html` is `host/a/` (or `host/a`, or `host/a/index.html`), else `host/`. Query strings are
    steps.

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
    """Return the host of a URL in lower case, with or without a scheme, and the steps of its path."""
    try:
        parts = urlsplit(url if _ABSOLUTE.match(url) else f"//{url}")
    except ValueError as error:
        raise InvalidInputError(
            f"the URL {url!r} is invalid: {error}. Correct the URL, or leave out the page"
        ) from error
    steps = [step for step in parts.path.split("/") if step]
    if steps and steps[-1].lower() in ("index.html", "index.htm", "index.php", "default.htm", "default.asp"):
        steps.pop()
    return (parts.netloc.lower(), *steps, *([f"?{parts.query}"] if parts.query else []))


def pagerank(graph: LinkGraph, *, damping: float = 0.85, tol: float = 1e-10, max_iter: int = 1000) -> np.ndarray:
    """Return PageRank (Page, Brin, Motwani, Winograd 1998), float64 (n,) with the sum 1.

        x_v = (1 - damping)/n + damping (Σ_{u → v} x_u/out_u + Σ_{u without links} x_u/n)

    Power iteration from 1/n until the changes of a round sum to at most `tol`. The distance to the fixed point is then
    at most tol · damping/(1 - damping). The result equals networkx's `pagerank`, whose `tol` is per node.

    Parameters
    ----------
    graph : LinkGraph
    damping : float in [0, 1), default 0.85
    tol : float > 0, default 1e-10
    max_iter : int, default 1000
        Maximum number of rounds; a warning is issued if `tol` is not reached.

    Examples
    --------
    >>> pagerank(LinkGraph([0, 1, 2], [1, 2, 0])).round(4).tolist()
    [0.3333, 0.3333, 0.3333]
    """
    return _power(graph.into, graph.out_degree, damping, tol, max_iter)


def hostrank(
    graph: LinkGraph,
    urls: Sequence[str],
    *,
    decay: float = 0.6,
    damping: float = 0.85,
    tol: float = 1e-10,
    max_iter: int = 1000,
) -> np.ndarray:
    """Return HostRank (after Xue et al. 2005): the PageRank of hosts, divided among pages; float64 (n,), sum 1.

    A link from one host to another has as weight the number of links between their pages. Links within a host are
    ignored. A page gets a share of its host's rank in proportion to `decay^depth · (1 + links to the page from other
    hosts)`. (The source divides by a model of heat in the tree, and does not give its constants.)

    Parameters
    ----------
    graph : LinkGraph
    urls : sequence of str (n,)
        URL of each node, which gives the host and the depth of the page.
    decay : float in (0, 1], default 0.6
    damping, tol, max_iter
        See `pagerank`.

    Examples
    --------
    >>> urls = ["http://a/", "http://a/x", "http://b/"]
    >>> hostrank(LinkGraph([2, 0], [0, 1]), urls).round(3).tolist()
    [0.499, 0.15, 0.351]
    """
    if len(urls) != graph.n_nodes:
        raise InvalidInputError(
            f"urls must have a URL for each of the {graph.n_nodes} nodes, got {len(urls)}", argument="urls"
        )
    check_number(decay, "decay", "(0, 1]")
    names: dict[str, int] = {}
    steps = [steps_of(url) for url in urls]
    host = np.array([names.setdefault(path[0], len(names)) for path in steps], dtype=np.int64)
    edges = graph.into.tocoo()
    between = host[edges.row] != host[edges.col]
    rows, columns = host[edges.row[between]], host[edges.col[between]]
    into = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(names), len(names)))
    into.sum_duplicates()
    of_host = _power(into, np.bincount(columns, minlength=len(names)).astype(np.float64), damping, tol, max_iter)
    outside = np.bincount(edges.row[between], minlength=graph.n_nodes)
    share = decay ** np.array([len(path) - 1.0 for path in steps]) * (1.0 + outside)
    return of_host[host] * share / np.bincount(host, weights=share)[host]


def _power(into: Any, out_weight: np.ndarray, damping: float, tol: float, max_iter: int) -> np.ndarray:
    """Return PageRank of a weighted graph: `into[v, u]` is the weight of u → v, `out_weight` has the column sums."""
    check_number(damping, "damping", "[0, 1)")
    check_number(tol, "tol", "(0, inf)")
    check_positive_int(max_iter, "max_iter")
    n = into.shape[0]
    if n == 0:
        raise InvalidInputError("the graph has no nodes, but PageRank requires at least one")
    dangling = np.flatnonzero(out_weight == 0)
    inverse = np.divide(1.0, out_weight, out=np.zeros(n), where=out_weight > 0)
    x = np.full(n, 1.0 / n)
    for _ in range(max_iter):
        new = damping * (into @ (x * inverse)) + (1.0 - damping + damping * x[dangling].sum()) / n
        change = float(np.abs(new - x).sum())
        x = new
        if change <= tol:
            return x / x.sum()
    what = f"the power iteration stopped after {max_iter} rounds with changes of {change:.2g} > tol {tol:g}"
    warn(f"{what}; raise max_iter")
    return x / x.sum()
