"""Compare the rank column of a TREC run, which has no effect, with its scores."""

from __future__ import annotations

import numpy as np

_LINES = 5_000  # that are compared


def contradicts_ranks(text: bytes) -> bool:
    r"""Return whether in most topics of the first lines more scores rise than fall with the rank.

    >>> ranked = [b"1 Q0 d%d %d %d x" % (k, k, k) for k in range(1, 12)]
    >>> contradicts_ranks(b"\n".join(ranked)), contradicts_ranks(b"\n".join(ranked[:5]))
    (True, False)
    """
    lines = text.split(b"\n", _LINES)[:_LINES]
    rows = [row for line in lines if len(row := line.split()) > 5 and row[0][:1] != b"#"]
    try:
        rank = np.array([row[3] for row in rows], dtype=np.float64)
        score = np.array([row[4] for row in rows], dtype=np.float64)
    except ValueError:
        return False
    _, topic = np.unique([row[0] for row in rows], return_inverse=True) if rows else (None, np.zeros(0, np.int64))
    order = np.lexsort((rank, topic))
    later = (np.diff(topic[order]) == 0) & (np.diff(rank[order]) > 0)
    steps = later * np.sign(np.diff(score[order]))
    balance = np.bincount(topic[order][1:], weights=steps)
    reversed_ = steps.sum() > 3.0 * np.sqrt(np.count_nonzero(steps))  # no ranks that have nothing to do with the scores
    return bool(reversed_ and (balance > 0).sum() > (balance < 0).sum())
