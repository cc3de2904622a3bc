"""PageRank and HostRank: the importance of pages, computed from links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from truerank.core.checks import check_number, check_positive_int
from truerank.core.errors import InvalidInputError, warn
from truerank.links.graph import LinkGraph, steps_of


def pagerank(graph: LinkGraph, *, damping: float = 0.85, tol: float = 1e-10, max_iter: int = 1000) -> np.ndarray:
    """PageRank (Page, Brin, Motwani, Winograd 1998), float64 (n,) with the sum 1.

        x_v = (1 - damping)/n + damping (Σ_{u → v} x_u/out_u + Σ_{u without links} x_u/n)

    Power iteration from 1/n until the changes of a round sum to at most `tol`. The distance to the fixed point is then
    at most tol · damping/(1 - damping). The result equals networkx's `pagerank`, whose `tol` is per node.

    Parameters
    ----------
    graph : LinkGraph
    damping : float in [0, 1), default 0.85
    tol : float > 0, default 1e-10
    max_iter : int, default 1000
        A warning reports when this ends the iteration.

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
    """HostRank (after Xue et al. 2005): the PageRank of hosts, divided among pages; float64 (n,), sum 1.

    A link from one host to another has as weight the number of links between their pages. Links within a host are
    ignored. A page gets a share of its host's rank in proportion to `decay^depth · (1 + links to the page from other
    hosts)`. (The source divides by a model of heat in the tree, and does not give its constants.)

    Parameters
    ----------
    graph : LinkGraph
    urls : sequence of str (n,)
        They give the host and the depth of each page.
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
        raise InvalidInputError(f"got {len(urls)} URLs for {graph.n_nodes} nodes; expected a URL for each node")
    check_number(decay, "decay", minimum=0.0, maximum=1.0, open_minimum=True)
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
    """The fixed point for a weighted graph: `into[v, u]` the weight of u → v, `out_weight` its column sums."""
    check_number(damping, "damping", minimum=0.0, maximum=1.0, open_maximum=True)
    check_number(tol, "tol", minimum=0.0, open_minimum=True)
    check_positive_int(max_iter, "max_iter")
    n = into.shape[0]
    if n == 0:
        raise InvalidInputError("the graph has no nodes")
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
