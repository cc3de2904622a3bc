"""Which ranker is better, by clicks on lists that mix several, or by users who see one or the other."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from truerank.clicks.log import ClickLog
from truerank.clicks.sequences import Sequence, confidence_sequence
from truerank.core.checks import as_array, as_numbers, check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.printing import table
from truerank.core.random_streams import seed_of, stream
from truerank.core.types import RandomState
from truerank.data.grouping import ranks_by_query
from truerank.io.trec import as_run


def team_draft(lists: Mapping[str, Any], length: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Return one mixed list of (document, team): in each round every ranker picks its best document that is left.

    The order of picking is drawn anew in each round (Radlinski et al. 2008; several rankers: Schuth et al. 2014).

    Examples
    --------
    >>> team_draft({"a": ["x", "y", "z"], "b": ["y", "w"]}, 3, np.random.default_rng(0))
    [('x', 'a'), ('y', 'b'), ('z', 'a')]
    """
    left = {name: iter(documents) for name, documents in lists.items()}
    taken: dict[str, str] = {}
    while left and len(taken) < length:
        for name in [list(left)[place] for place in rng.permutation(len(left))]:
            if len(taken) < length:
                pick = next((document for document in left[name] if document not in taken), None)
                if pick is None:
                    del left[name]
                else:
                    taken[pick] = name
    return list(taken.items())


def interleave(
    rankers: Mapping[str, Any], *, length: int = 10, random_state: RandomState = None
) -> dict[str, list[tuple[str, str]]]:
    """Return a mixed list for each query, by team draft; of three and more rankers it is team draft multileaving.

    Parameters
    ----------
    rankers : dict of str to run
        Two or more: paths, dicts of query to {document: score}, or what `evaluate` takes. A query that one lacks is
        served by the others.
    length : int, default=10
    random_state : int or NumPy generator, optional
        Draw a new list for each impression: with the same seed a query always gets the same list.

    Returns
    -------
    dict of str to list of (document, team)
        Show the documents in this order, and log the team of each: `compare_interleaved` reads it.

    Examples
    --------
    >>> interleave({"a": {"q": {"x": 2, "y": 1}}, "b": {"q": {"y": 2, "x": 1}}}, random_state=0)
    {'q': [('y', 'b'), ('x', 'a')]}
    """
    if len(rankers) < 2:
        raise InvalidInputError("interleave mixes two or more rankers, {name: run}")
    length, seed = check_positive_int(length, "length"), seed_of(random_state)
    lists: dict[str, dict[str, list[str]]] = {}
    for name, given in rankers.items():
        run = as_run(given)
        order = np.lexsort(
            (ranks_by_query(run.scores, run.offsets), np.repeat(np.arange(run.n_queries), np.diff(run.offsets)))
        )
        documents = run.doc_ids[order].tolist()
        for query, start, stop in zip(run.query_ids.tolist(), run.offsets, run.offsets[1:]):
            lists.setdefault(query, {})[name] = documents[start:stop]
    return {query: team_draft(own, length, stream(seed, "interleave", query)) for query, own in lists.items()}


class Preference(NamedTuple):
    """One comparison of two rankers: the mean outcome of units in [-1, 1], above 0 where a is better.

    `low` and `high` are of a confidence sequence and `p` is always valid: they may be looked at after every unit.
    """

    a: str
    b: str
    units: int
    wins: int
    losses: int
    mean: float
    low: float
    high: float
    p: float
    sequence: Sequence


class Preferences(list[Preference]):
    """Comparisons of pairs of rankers; `str` gives a table."""

    def to_dict(self) -> list[dict[str, Any]]:
        """The comparisons, looks included, in JSON's own terms."""
        return [one._asdict() | {"sequence": {key: values.tolist() for key, values in one.sequence._asdict().items()}}
                for one in self]  # fmt: skip

    def __str__(self) -> str:
        rows = []
        for one in self:
            counts = f"{one.wins}/{one.units - one.wins - one.losses}/{one.losses}"
            interval = f"[{one.low:+.4f}, {one.high:+.4f}]"
            rows.append([f"{one.a} - {one.b}", one.units, f"{one.mean:+.4f}", interval, counts, f"{one.p:.4f}"])
        return table(rows, ["rankers", "units", "mean", "always-valid interval", "W/T/L", "p"])


def compare_interleaved(log: ClickLog, *, unit: str | None = None, level: float = 0.95, looks: int = 1) -> Preferences:
    """Compare every two rankers by their clicks on interleaved lists, with intervals that may be looked at at any time.

    Parameters
    ----------
    log : ClickLog
        With `team`, the ranker of each document. Units come in order of `time`, or else of the log.
    unit : {"session", "query", "impression"}, optional
        What is independent of one another. Default: session where the log names it, else impression.
    level : float in (0, 1), default=0.95
        Of each pair; with several pairs, one minus the level divided by their number, so that all hold at once.
    looks : int, default=1
        How many looks, evenly spread over the units, `sequence` keeps.

    Returns
    -------
    Preferences
        A list of `Preference`, one for each pair.

    Notes
    -----
    The outcome of a unit is (clicks of a - clicks of b) / (their sum), 0 without clicks. Teams are random, so that
    position bias favours nobody.

    Examples
    --------
    >>> log = ClickLog(np.repeat(np.arange(50), 2), ["q"] * 100, ["x", "y"] * 50, [1, 2] * 50, [1, 0] * 50,
    ...                team=["a", "b"] * 50)
    >>> found = compare_interleaved(log)[0]
    >>> found.a, found.wins, found.p < 0.001
    ('a', 50, True)
    """
    if not isinstance(log, ClickLog) or log.team is None or log.team_ids is None:
        raise InvalidInputError("compare_interleaved reads which ranker each document is from: ClickLog(..., team=...)")
    unit = unit or ("impression" if log.session is None else "session")
    check_choice(unit, "unit", ("session", "query", "impression"))
    codes = {"session": log.session, "query": log.query, "impression": log.impression}[unit]
    if codes is None:
        raise InvalidInputError('the log names no sessions; take unit="impression" or unit="query"')
    teams = log.team_ids.tolist()
    arrival = np.arange(log.n_rows) if log.time is None else np.argsort(log.time, kind="stable")
    _, first, own = np.unique(codes[arrival], return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    clicks = np.zeros((len(first), len(teams) + 1))
    np.add.at(clicks, (place[own], log.team[arrival]), log.clicked[arrival])
    pairs = list(combinations(range(len(teams)), 2))
    if not pairs:
        raise InvalidInputError(f"the log names {len(teams)} team; a comparison needs two")
    ends = np.unique(np.linspace(0, len(first), check_positive_int(looks, "looks") + 1).astype(np.int64)[1:])
    found = Preferences()
    for a, b in pairs:
        total = clicks[:, a] + clicks[:, b]
        outcome = (clicks[:, a] - clicks[:, b]) / np.maximum(total, 1.0)
        each = 1.0 - (1.0 - check_number(level, "level", minimum=0.0, maximum=1.0)) / len(pairs)
        found.append(_preference(teams[a], teams[b], outcome, -1.0, 1.0, each, ends, len(pairs)))
    return found


def compare_arms(outcome: Any, arm: Any, *, share: float = 0.5, level: float = 0.95, looks: int = 1) -> Preference:
    """Compare two arms of an A/B test by an outcome of each user or session, as always-valid as `compare_interleaved`.

    Parameters
    ----------
    outcome : array (n,) in [0, 1]
        Of units in order of their arrival, such as "clicked at all".
    arm : array (n,) of two ids
        The first in sorted order is a.
    share : float in (0, 1), default=0.5
        Probability of arm a, as it was designed.
    level, looks
        As in `compare_interleaved`.

    Returns
    -------
    Preference
        `mean` is the difference of the arms' means: of c (A/p - (1 - A)/(1 - p)), in [-1/(1 - p), 1/p].

    Examples
    --------
    >>> found = compare_arms([1.0, 0.0] * 200, ["new", "old"] * 200)
    >>> found.a, found.mean, found.low > 0
    ('new', 1.0, True)
    """
    share = check_number(share, "share", minimum=0.0, maximum=1.0, open_minimum=True, open_maximum=True)
    values, names = as_numbers(outcome, "outcome"), as_array(arm, "arm").astype(str)
    known = np.unique(names)
    if len(known) != 2 or names.shape != values.shape or not ((values >= 0) & (values <= 1)).all():
        raise InvalidInputError("compare_arms needs outcomes in [0, 1] and as many arms, of two names")
    x = values * np.where(names == known[0], 1.0 / share, -1.0 / (1.0 - share))
    ends = np.unique(np.linspace(0, len(x), check_positive_int(looks, "looks") + 1).astype(np.int64)[1:])
    return _preference(str(known[0]), str(known[1]), x, -1.0 / (1.0 - share), 1.0 / share, level, ends, 1)


def _preference(
    a: str, b: str, x: np.ndarray, low: float, high: float, level: float, ends: np.ndarray, pairs: int
) -> Preference:
    found = confidence_sequence(x, low, high, level=level, looks=ends)
    p = np.minimum(found.p * pairs, 1.0)
    wins, losses = int((x > 0).sum()), int((x < 0).sum())
    last = (float(found.mean[-1]), float(found.low[-1]), float(found.high[-1]), float(p[-1]))
    return Preference(a, b, len(x), wins, losses, *last, found._replace(p=p))
