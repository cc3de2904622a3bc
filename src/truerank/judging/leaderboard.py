"""Test whether model judges order systems as people do: rank correlations, swapped pairs, and required judgements."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np

from truerank.core.errors import InvalidInputError, warn
from truerank.core.printing import counted, styled_table
from truerank.core.random_streams import seed_of, stream
from truerank.core.results import Result, data_frame
from truerank.core.types import MeasureLike, RandomState
from truerank.io.trec import Qrels, as_qrels, judge_run
from truerank.judging.estimate import Sampled, gain_estimates
from truerank.judging.plan import allocate
from truerank.judging.predictions import judges_by_name, judges_labels, make_factors
from truerank.judging.sums import SUMS, Frame, gains
from truerank.measures.base import Measure
from truerank.measures.coverage import settle_topics
from truerank.measures.evaluation import runs_by_name
from truerank.measures.names import parse_measures
from truerank.significance.corrections import step_down_max_t
from truerank.significance.intervals import Interval, stretched_percentiles, student_quantile
from truerank.significance.paired import LEVEL, differences_of

RESTORED = 0.9  # Kendall's tau with the order by all human judgements from which an order counts as restored
_PERSISTENCE = 0.9  # p of RBO: the first ten systems have 86 % of the weight
_PLANS = 20  # simulated plans of each budget
_FEW = 12  # systems up to which samples of half of the topics are drawn, too
_CELLS = 4_000_000  # numbers held at a time


class JudgeOrder(NamedTuple):
    """The order of the systems by a judge, compared with the order by people; intervals are over topics."""

    judge: str
    tau: Interval  # Kendall's tau-b
    tau_ap: Interval  # Yilmaz, Aslam, Robertson (2008): errors at the top count more
    rbo: Interval  # Webber, Moffat, Zobel (2010), p = 0.9
    swapped: int  # pairs of systems with opposite means
    swaps: list[tuple[str, str]]  # those with both differences significant; people find the first system better
    restored: int | None  # human judgements that restore the order; None if unknown, or if people find all equal
    means: dict[str, float]  # of systems by the judge's labels


@dataclass(repr=False, eq=False)
class Leaderboard(Result):
    """The result of `leaderboard`."""

    measure: str
    convention: str
    topics: int
    means: dict[str, float]  # of systems by human judgements
    judges: list[JudgeOrder] = field(repr=False)

    KIND: ClassVar[str] = "leaderboard"

    @property
    def summary(self) -> str:
        """A sentence on the judge whose order is closest to the order by people."""
        best = max(self.judges, key=lambda one: np.nan_to_num(one.tau.estimate, nan=-2.0))
        pairs = len(self.means) * (len(self.means) - 1) // 2
        nearest = f" is the best of {counted(len(self.judges), 'judge')}: it" if len(self.judges) > 1 else ""
        return (
            f"{best.judge}{nearest} swaps {best.swapped} of {counted(pairs, 'pair')} of systems, {len(best.swaps)} "
            f"of them significantly (tau {_shown(best.tau)})."
        )

    def _figures(self) -> dict[str, Any]:
        judges = [one._asdict() | {name: getattr(one, name)._asdict() for name in _KINDS} for one in self.judges]
        about = {"measure": self.measure, "convention": self.convention, "topics": self.topics, "means": self.means}
        return about | {"judges": judges}

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each judge."""
        return data_frame([one._asdict() | {name: getattr(one, name).estimate for name in _KINDS}
                           for one in self.judges])  # fmt: skip

    def _table(self, style: str) -> str:
        header = ["judge", *_KINDS.values(), "swapped pairs", "significantly", "human judgements needed"]
        ordered = sorted(self.judges, key=lambda one: -np.nan_to_num(one.tau.estimate, nan=-2.0))
        rows = [[one.judge, *(_shown(getattr(one, name)) for name in _KINDS), one.swapped, len(one.swaps),
                 one.restored] for one in ordered]  # fmt: skip
        caption = (
            f"{self.measure}, convention {self.convention}, {counted(len(self.means), 'system')}, "
            f"{counted(self.topics, 'topic')}; 95 % intervals over topics. A pair is swapped significantly if the "
            f"human and the model judgements both show a difference, in opposite directions (max-T for all pairs of a "
            f"judge and people). The last column: number of human judgements, drawn as in `plan_judgements`, for an "
            f"expected tau of {RESTORED}"
        )
        return styled_table(rows, header, style, caption)

    def __str__(self) -> str:
        lines = [f"{one.judge} swaps {better} and {worse}: {better} is better by human judgements"
                 for one in self.judges for better, worse in one.swaps]  # fmt: skip
        more = [f"{len(lines) - 20} more"] if len(lines) > 20 else []
        return "\n\n".join(filter(None, [super().__str__(), "\n".join(lines[:20] + more)]))


_KINDS = {"tau": "tau", "tau_ap": "tau_AP", "rbo": "RBO"}


def _shown(one: Interval) -> str:
    ends = "" if np.isnan(one.low) else f" [{one.low:.3f}, {one.high:.3f}]"
    return f"{one.estimate:.3f}{ends}"


def leaderboard(
    human: object, judges: object, runs: object, measure: MeasureLike = "nDCG@10", *, topics: str | None = None,
    convention: str = "trec", restore: bool = True, n_resamples: int = 2_000, random_state: RandomState = 0,
) -> Leaderboard:  # fmt: skip
    """Compare the order of systems by human judgements with their order by the labels of model judges.

    Parameters
    ----------
    human : qrels
        Human grades. Only topics with human judgements and labels of all model judges are used.
    judges : dict or list of qrels, or one
        Labels of model judges. A document without a label is not relevant.
    runs : dict or list of runs
        At least three systems.
    measure, convention
        A mean over topics, by default nDCG@10 with the convention "trec".
    topics : "common" or "all", optional
        Required if the runs have different topics.
    restore : bool, default True
        For DCG, P and RBP, also estimate how many human judgements restore the order. It is the expected number of a
        plan (`plan_judgements`, one round, all pairs) for which the order by `estimate`, with the judge's labels, has
        an expected tau of 0.9 with the order by all human grades. Budgets start at two judgements per topic and grow by
        half, with 20 plans each, and interpolation between the last two. Documents without a human grade count 0.
    n_resamples : int, default 2,000
        Number of samples of topics for the intervals.

    Raises
    ------
    InvalidInputError
        With fewer than three systems or two topics, and for a measure that is not a mean over topics.

    Notes
    -----
    Systems are tied if their means are equal. tau-b counts a tied pair in neither direction; tau_AP and RBO are means
    over the orders of tied systems. Intervals are over topics, with the human and the model judgements of a topic
    together. An interval reaches from the lowest to the highest end of these intervals: the percentile interval of a
    bootstrap, its reflection about the estimate, the estimate ± t times the deviation of the jackknife (n - 1 degrees
    of freedom), and with twelve systems or fewer the central 99 % of samples of half of the topics. Resampled orders
    are noisier than the order itself, so that the bootstrap alone is too narrow for many systems. For few systems,
    leaving out one topic may change nothing, and the jackknife alone is too narrow. A sample of topics orders nearly
    equal systems at random. If the judge swaps all such pairs, a sample shows only about half of them as swapped, and
    with few pairs each pair changes tau much. Samples of half of the topics, whose variance is twice as large, reach
    the true value (`python -m validation leaderboards`).

    References
    ----------
    Yilmaz, Aslam, Robertson: A new rank correlation coefficient for information retrieval. SIGIR 2008.
    Webber, Moffat, Zobel: A similarity measure for indefinite rankings. ACM TOIS 28 (2010).

    Examples
    --------
    >>> runs = {name: {t: {d: -float(k) for k, d in enumerate(order)} for t in "12"}
    ...         for name, order in {"a": "xyz", "b": "yxz", "c": "zyx"}.items()}
    >>> people, model = {t: {"x": 2, "y": 1, "z": 0} for t in "12"}, {t: {"x": 1, "y": 2, "z": 0} for t in "12"}
    >>> found = leaderboard(people, {"model": model}, runs, "DCG@3")
    >>> found.judges[0].swapped, round(found.judges[0].tau.estimate, 4)
    (1, 0.3333)
    """
    ((name, one),) = parse_measures(measure, convention).items()
    one = one.check_mean()(missing_topics="zero")
    named, systems = judges_by_name(judges), runs_by_name(runs) or {}
    if len(systems) < 3 or not named:
        raise InvalidInputError(
            f"a leaderboard requires three systems and one judge, got {len(systems)} and {len(named)}", argument="runs"
        )
    tables = [qrels.by_topic(qrels.grades) for qrels in map(as_qrels, (human, *named.values()))]
    shared = [topic for topic in tables[0] if all(topic in own for own in tables)]
    if len(shared) < 2:
        raise InvalidInputError(
            f"the human and the model judgements share {counted(len(shared), 'topic')}, but two are required",
            code="few-topics",
        )
    values = [_values(as_qrels({topic: own[topic] for topic in shared}), systems, one, topics) for own in tables]
    n, rng = len(values[0]), stream(seed_of(random_state), "leaderboard")
    draws, found = resampled(n, len(systems), n_resamples, rng), []
    for judge, own, label, table in zip(named, values[1:], named.values(), tables[1:]):
        _remark_on_labels(judge, *(_labels(one, shared) for one in (table, tables[0])))
        if np.ptp(own.mean(axis=0)) == 0:
            warn(f"judge {judge!r} gives all systems the same {name}, so that its labels define no order of systems")
        tau, tau_ap, rbo = _agreement(values[0], own, *draws)
        swapped, swaps = 0, list[tuple[str, str]]()
        better = list(systems)
        for i, j, significant in _swapped(values[0], own, random_state):
            swapped += 1
            swaps += [(better[i], better[j])] if significant else []
        restored = None
        if restore and one.NAME in SUMS and one.NAME != "R" and np.ptp(values[0].mean(axis=0)) > 0:
            restored = _restored(human, {judge: label}, systems, one, shared, stream(seed_of(random_state), judge))
        means = dict(zip(systems, own.mean(axis=0).tolist()))
        found.append(JudgeOrder(judge, tau, tau_ap, rbo, swapped, swaps, restored, means))
    return Leaderboard(name, one.convention, n, dict(zip(systems, values[0].mean(axis=0).tolist())), found)


def _labels(table: dict[str, dict[str, float]], topics: list[str]) -> np.ndarray:
    return np.unique([grade for topic in topics for grade in table[topic].values()])


def _remark_on_labels(judge: str, labels: np.ndarray, grades: np.ndarray) -> None:
    """Warn if labels have another scale, because a measure uses them without conversion."""
    outside = labels[-1] > grades[-1] or labels[0] < min(grades[0], 0.0)
    if outside or ((labels % 1).any() and not (grades % 1).any()):
        warn(
            f"judge {judge!r} has labels from {labels[0]:g} to {labels[-1]:g}, but human grades are from {grades[0]:g} "
            f"to {grades[-1]:g}. The measure uses the labels as grades. Convert them to the scale of the human grades"
        )


def _values(qrels: Qrels, systems: dict[str, Any], measure: Measure, topics: str | None) -> np.ndarray:
    """Return the value of each topic and system (topics, systems), 0 for a topic without a value."""
    judged, _ = settle_topics({name: judge_run(qrels, run) for name, run in systems.items()}, topics)
    return np.nan_to_num(np.array([measure.per_query(*one) for one in judged.values()]).T)


def resampled(n: int, systems: int, draws: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return topic weights (draws, n) in samples of n topics and, unless there are many systems, of n/2 topics."""
    sizes = (n, draws), (max(n // 2, 1), draws if systems <= _FEW else 0)
    first, second = (rng.multinomial(size, np.full(n, 1 / n), size=own) / size for size, own in sizes)
    return first, second


def _agreement(human: np.ndarray, judge: np.ndarray, draws: np.ndarray, halves: np.ndarray) -> list[Interval]:
    """Return tau, tau_AP and RBO of means of values (topics, systems), with intervals from topic weights (draws, n)."""
    n, k = human.shape
    weights = np.concatenate([np.full((1, n), 1 / n), (1 - np.eye(n)) / (n - 1), draws, halves])
    step = max(1, _CELLS // k**2)
    parts = [correlations(own @ human, own @ judge) for own in np.split(weights, range(step, len(weights), step))]
    found, t = [], student_quantile(0.975, n - 1)
    for (estimate, *values), lowest in zip(np.concatenate(parts, axis=1), (-1.0, -1.0, 0.0)):
        groups = np.split(np.array(values), [n, n + len(draws)])
        without, drawn, rough = (own[~np.isnan(own)] for own in groups)
        if not len(drawn):
            found.append(Interval(float(estimate), np.nan, np.nan))
            continue
        low, high = stretched_percentiles(estimate, drawn, n)
        half = t * math.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum()) if len(without) else 0.0
        ends = [low, high, 2.0 * estimate - high, 2.0 * estimate - low, estimate - half, estimate + half]
        ends += np.quantile(rough, [0.005, 0.995]).tolist() if len(rough) else []
        found.append(Interval(*np.clip([estimate, min(ends), max(ends)], lowest, 1.0).tolist()))
    return found


def correlations(truth: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """Return tau-b, tau_AP and RBO (3, d) of two orders of k systems, from means (d, k) that differ beyond rounding.

    tau_AP sums, over the ranks below the first, the share of the systems above that are truly above. Let s systems be
    above a group of t systems that the judge ties, and let c of the s be truly above a member. The mean over the orders
    of the group is then t/2 + (c - s/2)(H_(s+t-1) - H_(s-1)), divided by t, for its ranks without the first.
    """
    d, k = truth.shape
    x, y = (np.sign(differences_of(own[:, :, None], own[:, None, :])) for own in (truth, judged))
    with np.errstate(invalid="ignore", divide="ignore"):
        tau = (x * y).sum(axis=(1, 2)) / np.sqrt(np.abs(x).sum(axis=(1, 2)) * np.abs(y).sum(axis=(1, 2)))
    above, tied = (y < 0).sum(axis=2), (y == 0).sum(axis=2)
    correct = ((y < 0) * (1.0 - x)).sum(axis=2) / 2.0
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, k + 1))])
    sums = harmonic[above + tied - 1] - harmonic[np.maximum(above - 1, 0)]
    places = ((tied - (above == 0)) / 2.0 + (correct - above / 2.0) * sums) / tied
    tau_ap = 2.0 * places.sum(axis=1) / (k - 1) - 1.0
    overlap = np.empty((d, k))
    first = [((own < 0).sum(axis=2), (own == 0).sum(axis=2)) for own in (x, y)]
    for depth in range(1, k + 1):
        one, other = (np.clip((depth - before) / equal, 0.0, 1.0) for before, equal in first)
        overlap[:, depth - 1] = (one * other).sum(axis=1)
    depths, p = np.arange(1, k + 1), _PERSISTENCE
    rbo = overlap[:, -1] / k * p**k + (1.0 - p) / p * (overlap / depths) @ p**depths
    return np.stack([tau, tau_ap, rbo])


def _swapped(human: np.ndarray, judge: np.ndarray, random_state: RandomState) -> list[tuple[int, int, bool]]:
    """Return the pairs (better by people, worse by people, significant) that the judge orders the other way."""
    pairs = np.array(list(combinations(range(human.shape[1]), 2)))
    d = np.concatenate([differences_of(own[:, pairs[:, 0]], own[:, pairs[:, 1]]) for own in (human, judge)], axis=1)
    means = [own.mean(axis=0) for own in (human, judge)]
    first, second = (differences_of(own[pairs[:, 0]], own[pairs[:, 1]]) for own in means)
    swapped = np.flatnonzero(first * second < 0)
    if not len(swapped):
        return []
    p = step_down_max_t(d, np.repeat([0, 1], len(pairs)), random_state=random_state).p_adjusted.reshape(2, -1)
    ordered = np.where((first > 0)[:, None], pairs, pairs[:, ::-1])
    return [(int(ordered[k, 0]), int(ordered[k, 1]), bool((p[:, k] < LEVEL).all())) for k in swapped]


def _restored(
    human: object, judge: dict[str, Any], systems: dict[str, Any], measure: Measure, shared: list[str],
    rng: np.random.Generator,
) -> int:  # fmt: skip
    """Return the number of human judgements for which the order by an estimate has an expected tau of `RESTORED`."""
    frame = Frame(systems, measure, "all", among=[(topic, "") for topic in shared])
    gained = gains(measure, np.nan_to_num(frame.grades(human)))
    factors, weights = make_factors(frame, judges_labels(frame, judge, np.inf)), frame.weights.toarray()
    truth, importance, n = (weights @ gained)[None], frame.mean_square("all"), len(gained)
    nothing, budget = np.zeros((1, n), dtype=bool), 2 * len(frame.topics)
    before = budget, -1.0
    while budget < n:
        chances = allocate(importance, budget)
        drawn = rng.random((_PLANS, n)) < chances
        made = [
            gain_estimates(Sampled(nothing, own[None], chances[None], np.ones((1, n))), factors, gained, nothing[0])
            for own in drawn
        ]
        estimated = np.array([weights @ one.gains for one in made])
        tau = float(correlations(np.repeat(truth, _PLANS, axis=0), estimated)[0].mean())
        if tau >= RESTORED:
            return round(budget - (budget - before[0]) * (tau - RESTORED) / max(tau - before[1], 1e-9))
        before, budget = (budget, tau), budget + budget // 2
    return n
