"""The graph of links between documents, and the importance of its pages: PageRank."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from truerank.core.checks import check_number, check_positive_int
from truerank.core.errors import DataFileError, InvalidInputError, warn
from truerank.io.letor.grammar import check_bytes
from truerank.io.streams import Source


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
                    raise DataFileError(
                        f"expected 'source target', got {len(words)} columns", stream.name, number, code="columns"
                    )
                ends.extend(numbers.setdefault(word, len(numbers)) for word in words)
            first += len(lines) - 1
        name = stream.name
    if not numbers:
        raise DataFileError("the file has no links. Expected a line 'source target' for each", name, code="no-rows")
    pairs = np.array(ends).reshape(-1, 2)
    return LinkGraph(pairs[:, 0], pairs[:, 1], len(numbers), [word.decode("utf-8") for word in numbers])


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
        Most rounds; a warning is issued if they do not suffice.

    Examples
    --------
    >>> pagerank(LinkGraph([0, 1, 2], [1, 2, 0])).round(4).tolist()
    [0.3333, 0.3333, 0.3333]
    """
    check_number(damping, "damping", "[0, 1)")
    check_number(tol, "tol", "(0, inf)")
    check_positive_int(max_iter, "max_iter")
    into, out_weight, n = graph.into, graph.out_degree, graph.n_nodes
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
