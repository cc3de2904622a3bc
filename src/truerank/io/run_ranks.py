"""Find runs whose scores rise with the rank, by the rank column (not used otherwise) or the order of the rows."""

from __future__ import annotations

import numpy as np

_LINES = 5_000  # that are compared


def contradicts_ranks(text: bytes) -> bool:
    r"""Return whether, in most topics of the first lines, more scores rise than fall with the rank.

    >>> ranked = [b"1 Q0 d%d %d %d x" % (k, k, k) for k in range(1, 12)]
    >>> contradicts_ranks(b"\n".join(ranked)), contradicts_ranks(b"\n".join(ranked[:5]))
    (True, False)
    """
    lines = text.split(b"\n", _LINES)[:_LINES]
    rows = [row for line in lines if len(row := line.split()) > 5 and row[0][:1] != b"#"]
    if not rows:
        return False
    try:
        rank = np.array([row[3] for row in rows], dtype=np.float64)
        score = np.array([row[4] for row in rows], dtype=np.float64)
    except ValueError:
        return False
    _, topic = np.unique([row[0] for row in rows], return_inverse=True)
    order = np.lexsort((rank, topic))
    topic, rank = topic[order], rank[order]
    # The best score of each rank: a run merged from collections has rows of one rank, whose order means nothing.
    firsts = np.flatnonzero(np.append(True, (np.diff(topic) != 0) | (np.diff(rank) != 0)))
    best, topic = np.maximum.reduceat(score[order], firsts), topic[firsts]
    steps = (np.diff(topic) == 0) * np.sign(np.diff(best))
    balance = np.bincount(topic[1:], weights=steps)
    reversed_ = steps.sum() > 3.0 * np.sqrt(np.count_nonzero(steps))  # no ranks that have nothing to do with the scores
    return bool(reversed_ and (balance > 0).sum() > (balance < 0).sum())


def are_places(scores: np.ndarray, offsets: np.ndarray) -> bool:
    """Return whether the scores (n,) of each topic equal the numbers of its rows, from 0 or 1, and at least ten rise.

    >>> are_places(np.tile(np.arange(1.0, 5.0), 4), np.arange(0, 17, 4)), are_places(np.arange(9.0), np.array([0, 9]))
    (True, False)
    """
    rises = len(scores) - len(offsets) + 1
    steps = np.diff(scores, prepend=0.0)
    inner = np.ones(len(scores), dtype=bool)
    inner[offsets[:-1][np.diff(offsets) > 0]] = False
    return rises >= 10 and bool((steps[inner] == 1).all() and np.isin(scores[~inner], (0, 1)).all())
