"""Rounds that SVM-MAP takes, beside the number of constraints that Theorem 1 of Yue et al. (2007) allows.

The theorem bounds the constraints that Algorithm 1 adds by `max(2 m Δ / ε, 8 C Δ R² / ε²)`, with m queries, the largest
loss Δ = 1, and R the largest norm of `Ψ(x, y*) - Ψ(x, y)`, at most twice the largest distance of two documents of a
query. ε is the tolerance on the mean slack, `gap / C` here. The n-slack solver adds a constraint for every query in
a round; the 1-slack solver adds one.
"""

from __future__ import annotations

from scipy.spatial.distance import pdist

from benchmarks.harness import collections
from reproductions import protocol
from truerank.rankers.measure_svm import MeasureSVM

TOLERANCES = (1e-2, 1e-3, 1e-4)
C = 10.0


def run() -> None:
    """One table."""
    root = collections()
    if root is None:
        return
    print(f"Training queries of the first fold, C = {C:g}.\n")
    print("| | queries | tol | ε | Theorem 1: constraints | n-slack: rounds | constraints | 1-slack: rounds |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in ("ohsumed", "mq2008"):
        data = protocol.letor_folds(protocol.load_collection(root, name))[0].train
        diameter = max(pdist(data.X[a:b]).max(initial=0.0) for a, b in zip(data.offsets[:-1], data.offsets[1:]))
        for tol in TOLERANCES:
            one, many = (MeasureSVM(C=C, rel=1, tol=tol, solver=solver).fit(data) for solver in ("1-slack", "n-slack"))
            m = data.n_queries - many.n_queries_left_out_
            epsilon = tol * max(many.objective_, 1.0) / C
            allowed = max(2 * m / epsilon, 8 * C * (2 * diameter) ** 2 / epsilon**2)
            cells = [name, f"{m}", f"{tol:g}", f"{epsilon:.2g}", f"{allowed:.2g}", f"{many.n_iter_}"]
            cells += [f"{many.n_iter_ * m:,}", f"{one.n_iter_}"]
            print(f"| {' | '.join(cells)} |", flush=True)
