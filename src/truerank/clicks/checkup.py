"""Check a click log for properties that bias models and estimates."""

from __future__ import annotations

import time

import numpy as np

from truerank.clicks.log import ClickLog, left_out
from truerank.core.printing import counted

_BUSY, _EVERY = 200, 20  # clicks of a session of a bot, or lists of a session that clicks everything
_SHIFT = 0.2  # relative change of the click rate between fifths of the log's time


def examine_log(log: ClickLog) -> list[str]:
    """Return findings as sentences: bots, positions without clicks, changes over time, rare queries, similar rankers.

    Notes on rows that a reader left out are `Message` objects with remedies.

    Examples
    --------
    >>> examine_log(ClickLog([1, 1], ["q", "q"], ["a", "b"], [1, 2], [1, 0], ranker=["x", "x"]))[0]
    'position 2 has no clicks in 1 impression. Check that it is displayed and its clicks are logged'
    """
    found: list[str] = []
    shown, clicked = (np.bincount(log.position, weights=w) for w in (None, log.clicked))
    for k in np.flatnonzero((shown > 0) & (clicked == 0))[:3].tolist():
        lists = counted(int(shown[k]), "impression")
        found.append(f"position {k} has no clicks in {lists}. Check that it is displayed and its clicks are logged")
    starts = log.offsets[:-1]
    if log.session is not None:
        session = log.session + 1
        clicks, rows = np.bincount(session, weights=log.clicked), np.bincount(session)
        visits = np.bincount(session[starts], minlength=len(rows))
        bots = (clicks >= _BUSY) | ((clicks == rows) & (visits >= _EVERY))
        bots[0] = False  # rows without a session
        if bots.any():
            share = clicks[bots].sum() / max(clicks.sum(), 1)
            found.append(
                f"{bots.sum()} sessions look like bots ({_BUSY} clicks or more, or every document clicked) and have "
                f"{share:.1%} of the clicks. Remove these sessions"
            )
    if log.time is not None:
        # Times are seconds, thousandths, … since 1970 if their median is between the years 1973 and 5138.
        unit = next((u for u in (1.0, 1e3, 1e6, 1e9) if 1e8 * u < np.median(log.time) < 1e11 * u), np.inf)
        for wrong, what in ((log.time < 0, "below 0"), (log.time > (time.time() + 86_400) * unit, "in the future")):
            if wrong.any():
                found.append(f"times {what}: {counted(int(wrong.sum()), 'row')}. Correct the times, or remove the rows")
    if log.time is not None and log.n_impressions >= 1_000 and log.clicked.any():
        fifth = np.searchsorted(np.quantile(log.time, [0.2, 0.4, 0.6, 0.8]), log.time, side="right")
        rates = np.bincount(fifth, weights=log.clicked, minlength=5) / np.maximum(np.bincount(fifth, minlength=5), 1)
        if np.ptp(rates) > max(_SHIFT, 6 / np.sqrt(log.clicked.sum() / 5)) * log.clicked.mean():
            found.append(f"the click rate changes over time, between {rates.min():.3f} and {rates.max():.3f} in fifths")
    once = float((np.bincount(log.query[starts]) == 1).sum()) / log.n_impressions
    if once > 0.5:
        found.append(f"{once:.0%} of the impressions have a query that occurs once, and cannot compare positions")
    if log.ranker is not None and len(np.unique(log.ranker)) > 1:
        cells = log.cells(log.position)
        moved = np.bincount(cells.pair) > 1
        share = float(cells.n[moved[cells.pair]].sum()) / log.n_rows
        if share < 0.1:
            found.append(
                f"the rankers are too similar: only {share:.1%} of the rows show documents at different positions"
            )
    return found + left_out(log.skipped)
