"""Compare rankers by clicks on interleaved lists, or two arms of an A/B test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations, islice
from typing import Any, NamedTuple

import numpy as np

from truerank.clicks.log import ClickLog
from truerank.clicks.sequences import Sequence, confidence_sequence
from truerank.core.checks import as_array, as_numbers, check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.printing import counted, table
from truerank.core.random_streams import seed_of, stream
from truerank.core.types import ArrayLike, RandomState
from truerank.data.grouping import query_of_rows, ranks_by_query
from truerank.io.trec import as_run

NOTE = (
    "A mean near 0 does not show equality: a click counts for the team that placed the document, not for the ranker "
    "that ranks it higher. compare_arms tests changes that team draft cannot detect."
)


def team_draft(lists: Mapping[str, Iterable[str]], length: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Return a mixed list of (document, team): each round, rankers pick their best remaining document in random order.

    Each team has one document of every complete round, and if `length` cuts a round, its teams are drawn. From the
    first round in which a ranker may have no document left, documents belong to no team, "". See Radlinski and others
    2008; for several rankers, see Schuth and others 2014.

    Examples
    --------
    >>> team_draft({"a": ["x", "y", "z"], "b": ["y", "w"]}, 4, np.random.default_rng(0))
    [('x', 'a'), ('y', 'b'), ('z', 'a'), ('w', 'b')]
    >>> team_draft({"a": ["x", "y", "z"], "b": ["y"]}, 3, np.random.default_rng(0))
    [('x', ''), ('y', ''), ('z', '')]
    """
    left = {name: list(islice(dict.fromkeys(documents), length + len(lists))) for name, documents in lists.items()}
    taken: dict[str, str] = {}
    drafted = True
    while len(taken) < length and any(left.values()):
        drafted = drafted and _each_can_pick(list(left.values()))
        for name in [list(left)[place] for place in rng.permutation(len(left))]:
            pick = next((document for document in left[name] if document not in taken), None)
            if pick is not None and len(taken) < length:
                taken[pick] = name if drafted else ""
        left = {name: [document for document in own if document not in taken] for name, own in left.items()}
    return list(taken.items())


def _each_can_pick(left: list[list[str]]) -> bool:
    """Return whether each ranker has a document left to pick in this round, for any order of the rankers."""
    picked = Counter(document for own in left for document in own[: len(left)])
    return all(len(own) >= len(left) or any(picked[document] == 1 for document in own) for own in left)


def interleave(
    rankers: Mapping[str, object], *, length: int = 10, random_state: RandomState = None
) -> dict[str, list[tuple[str, str]]]:
    """Return a mixed list for each query, by team draft; with three or more rankers, team draft multileaving.

    Parameters
    ----------
    rankers : dict of str to run
        At least two: paths, dicts of query to {document: score}, or any run that `evaluate` accepts. If a ranker lacks
        a query, the other rankers fill its list, and its documents belong to no team.
    length : int, default=10
    random_state : int or NumPy generator, optional
        Use another seed for each impression: with one seed, a query always has the same list.

    Returns
    -------
    dict of str to list of (document, team)
        The documents in display order. Log their teams for `compare_interleaved`; "" means no team.

    Examples
    --------
    >>> interleave({"a": {"q": {"x": 2, "y": 1}}, "b": {"q": {"y": 2, "x": 1}}}, random_state=0)
    {'q': [('y', 'b'), ('x', 'a')]}
    """
    if len(rankers) < 2:
        raise InvalidInputError(f"interleave requires two runs or more, got {len(rankers)}", argument="rankers")
    length, seed = check_positive_int(length, "length"), seed_of(random_state)
    lists: dict[str, dict[str, list[str]]] = {}
    for name, given in rankers.items():
        run = as_run(given)
        order = np.lexsort((ranks_by_query(run.scores, run.offsets), query_of_rows(run.offsets)))
        documents = run.doc_ids[order].tolist()
        for query, start, stop in zip(run.query_ids.tolist(), run.offsets, run.offsets[1:]):
            lists.setdefault(query, {other: [] for other in rankers})[name] = documents[start:stop]
    return {query: team_draft(own, length, stream(seed, "interleave", query)) for query, own in lists.items()}


class Preference(NamedTuple):
    """The mean outcome of units of two rankers (above 0 if a is better), with an always-valid interval and p."""

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
    """Comparisons of pairs of rankers, which `str` formats as a table with notes on its limits.

    Attributes
    ----------
    uncredited : int
        Number of documents without credit, because the other teams have at least two documents fewer in a list.
    """

    uncredited = 0

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the comparisons and their looks in JSON types."""
        looks = [{key: values.tolist() for key, values in pair.sequence._asdict().items()} for pair in self]
        return [pair._asdict() | {"sequence": sequence} for pair, sequence in zip(self, looks)]

    def __str__(self) -> str:
        rows = []
        for pair in self:
            counts = f"{pair.wins}/{pair.units - pair.wins - pair.losses}/{pair.losses}"
            interval = f"[{pair.low:+.4f}, {pair.high:+.4f}]"
            rows.append([f"{pair.a} - {pair.b}", pair.units, f"{pair.mean:+.4f}", interval, counts, f"{pair.p:.4f}"])
        lines = [table(rows, ["rankers", "units", "mean", "always-valid interval", "W/T/L", "p"]), "", NOTE]
        if self.uncredited:
            lines.append(
                f"{self.uncredited} documents got no credit, because their team has more documents in the list than "
                f"the other team. Draw the lists with team_draft."
            )
        return "\n".join(lines)


def compare_interleaved(log: ClickLog, *, unit: str | None = None, level: float = 0.95, looks: int = 1) -> Preferences:
    """Compare each pair of rankers by their clicks on interleaved lists, with intervals that are valid at any time.

    Parameters
    ----------
    log : ClickLog
        With `team`, the ranker of each document. Units are sorted by `time`, or else by their order in the log.
    unit : "session", "query", "impression" or None, default None
        The independent unit. The default is session if the log has sessions, else impression.
    level : float in (0, 1), default=0.95
        Level of all intervals together: each interval has level 1 - (1 - level) / (number of pairs).
    looks : int, default=1
        Number of looks in `sequence`, evenly spread over the units.

    Notes
    -----
    The outcome of a unit is (clicks of a - clicks of b) / (their sum), 0 without clicks. Teams are drawn at random, so
    position bias favours no ranker. If a team has two or more documents more than the other team in a list, its last
    documents get no credit. A mean of 0 does not show equality: of the rankings d1 d2 d3 and d2 d3 d1, the second is
    better if only d3 is relevant, but both get equal credit.

    Examples
    --------
    >>> log = ClickLog(np.repeat(np.arange(50), 2), ["q"] * 100, ["x", "y"] * 50, [1, 2] * 50, [1, 0] * 50,
    ...                team=["a", "b"] * 50)
    >>> found = compare_interleaved(log)[0]
    >>> found.a, found.wins, found.p < 0.001
    ('a', 50, True)
    """
    if not isinstance(log, ClickLog) or log.team is None or log.team_ids is None:
        raise InvalidInputError("the log does not name rankers. Write ClickLog(..., team=...)", code="no-teams")
    unit = unit or ("impression" if log.session is None else "session")
    check_choice(unit, "unit", ("session", "query", "impression"))
    codes = {"session": log.session, "query": log.query, "impression": log.impression}[unit]
    if codes is None or (codes < 0).all():
        raise InvalidInputError('the log has no sessions. Use unit="impression" or unit="query"', code="no-sessions")
    teams = log.team_ids.tolist()
    pairs = list(combinations(range(len(teams)), 2))
    if not pairs:
        raise InvalidInputError(
            f"the log has {counted(len(teams), 'team')}, but a comparison requires two. Pass a log of interleaved lists"
        )
    level = check_number(level, "level", "(0, 1)")
    arrival = np.arange(log.n_rows) if log.time is None else np.argsort(log.time, kind="stable")
    arrival = arrival[codes[arrival] >= 0]
    _, first, owner = np.unique(codes[arrival], return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))
    columns = len(teams) + 1  # the last is that of documents without a team
    group = log.impression.astype(np.int64) * columns + log.team % columns
    sizes = np.bincount(group, minlength=log.n_impressions * columns)
    number = np.empty(log.n_rows, dtype=np.int64)  # of a document in its team and list, from 0
    number[np.argsort(group, kind="stable")] = np.arange(log.n_rows) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    sizes, found = sizes.reshape(-1, columns), Preferences()
    for a, b in pairs:
        teamed, most = (log.team == a) | (log.team == b), np.minimum(sizes[:, a], sizes[:, b])[log.impression]
        found.uncredited += int((teamed & (number > most)).sum())
        clicked = log.clicked & (number <= most)
        clicks = np.zeros((len(first), columns))
        np.add.at(clicks, (place[owner], log.team[arrival]), clicked[arrival])
        outcome = (clicks[:, a] - clicks[:, b]) / np.maximum(clicks[:, a] + clicks[:, b], 1.0)
        each = 1.0 - (1.0 - level) / len(pairs)
        found.append(_preference((teams[a], teams[b]), outcome, (-1.0, 1.0), each, looks, len(pairs)))
    return found


def compare_arms(
    outcome: ArrayLike, arm: ArrayLike, *, share: float = 0.5, level: float = 0.95, looks: int = 1
) -> Preference:
    """Compare the two arms of an A/B test by an outcome of each user or session, with intervals valid at any time.

    Parameters
    ----------
    outcome : array (n,) in [0, 1]
        Outcomes of units in order of their arrival, such as "clicked at all".
    arm : array (n,) of two ids
        Arm of each unit; the first id in sorted order is a.
    share : float in (0, 1), default=0.5
        Probability p of arm a, by design. `mean` estimates the difference of the arms by the mean of
        c (A/p - (1 - A)/(1 - p)).
    level, looks
        As in `compare_interleaved`.

    Examples
    --------
    >>> found = compare_arms([1.0, 0.0] * 200, ["new", "old"] * 200)
    >>> found.a, found.mean, found.low > 0
    ('new', 1.0, True)
    """
    share = check_number(share, "share", "(0, 1)")
    values, names = as_numbers(outcome, "outcome"), as_array(arm, "arm").astype(str)
    known = np.unique(names).tolist()
    if len(known) != 2 or names.shape != values.shape or not ((values >= 0) & (values <= 1)).all():
        raise InvalidInputError(
            "compare_arms requires outcomes in [0, 1], an arm for each outcome, and two names of arms, got "
            f"{values.tolist()!r:.60} and {names.tolist()!r:.60}",
            argument="outcomes",
        )
    x = values * np.where(names == known[0], 1.0 / share, -1.0 / (1.0 - share))
    return _preference((known[0], known[1]), x, (-1.0 / (1.0 - share), 1.0 / share), level, looks, 1)


def _preference(
    names: tuple[str, str], x: np.ndarray, bounds: tuple[float, float], level: float, looks: int, pairs: int
) -> Preference:
    ends = np.unique(np.linspace(0, len(x), check_positive_int(looks, "looks") + 1).astype(np.int64)[1:])
    found = confidence_sequence(x, *bounds, level=level, looks=ends[ends > 0])
    found = found._replace(p=np.minimum(found.p * pairs, 1.0))
    mean, low, high, p = (float(values[-1]) for values in (found.mean, found.low, found.high, found.p))
    return Preference(*names, len(x), int((x > 0).sum()), int((x < 0).sum()), mean, low, high, p, found)
