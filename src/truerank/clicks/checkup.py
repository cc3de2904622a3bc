"""A check-up of a click log: what in it may surprise whoever learns from it."""

from __future__ import annotations

import numpy as np

from truerank.clicks.log import ClickLog

_BUSY, _EVERY = 200, 20  # clicks of a session that no person makes in a log's time; lists of one that clicks all
_SHIFT = 0.2  # relative change of the click rate between fifths of the log's time


def examine_log(log: ClickLog) -> list[str]:
    """Return findings in words: bots, positions never clicked, changes over time, queries seen once, rankers alike.

    Examples
    --------
    >>> examine_log(ClickLog([1, 1], ["q", "q"], ["a", "b"], [1, 2], [1, 0], ranker=["x", "x"]))[0]
    'position 2 is never clicked in 1 impression: is it shown, and are its clicks logged?'
    """
    found = []
    shown, clicked = (np.bincount(log.position, weights=w) for w in (None, log.clicked))
    for k in np.flatnonzero((shown > 0) & (clicked == 0))[:3].tolist():
        lists = f"{shown[k]:.0f} impression{'s' if shown[k] != 1 else ''}"
        found.append(f"position {k} is never clicked in {lists}: is it shown, and are its clicks logged?")
    starts = log.offsets[:-1]
    if log.session is not None:
        own = np.maximum(log.session, 0)
        clicks, rows = np.bincount(own, weights=log.clicked), np.bincount(own)
        seen = np.bincount(own[starts], minlength=len(rows))
        bots = (clicks >= _BUSY) | ((clicks == rows) & (seen >= _EVERY))
        if bots.any():
            share = clicks[bots].sum() / max(clicks.sum(), 1)
            found.append(
                f"{bots.sum()} sessions look like programs ({_BUSY} clicks or more, or every document clicked) and "
                f"make {share:.1%} of the clicks; leave them out"
            )
    if log.time is not None and log.n_impressions >= 1_000:
        fifth = np.searchsorted(np.quantile(log.time, [0.2, 0.4, 0.6, 0.8]), log.time, side="right")
        rates = np.bincount(fifth, weights=log.clicked, minlength=5) / np.maximum(np.bincount(fifth, minlength=5), 1)
        mean = float(log.clicked.mean())
        if mean > 0 and np.ptp(rates) > max(_SHIFT, 6 / np.sqrt(log.clicked.sum() / 5)) * mean:
            found.append(
                f"the click rate changes over time, from {rates.min():.3f} to {rates.max():.3f} between fifths"
            )
    once = float((np.bincount(log.query[starts]) == 1).sum()) / log.n_impressions
    if once > 0.5:
        found.append(f"{once:.0%} of the impressions are of queries that were asked once; they compare no positions")
    if log.ranker is not None and len(np.unique(log.ranker)) > 1:
        cells = log.cells(log.position)
        moved = np.bincount(cells.pair) > 1
        share = float(cells.n[moved[cells.pair]].sum()) / log.n_rows
        if share < 0.1:
            found.append(
                f"{share:.1%} of the rows show a document that has several positions: the rankers are too alike"
            )
    found += [f"{count} left out: {reason}" for reason, count in log.skipped.items()]
    return found
