"""Probabilities that a system is better, equivalent or worse, given a region of practical equivalence.

The model of the differences d_1 … d_n of one pair:

    d_i ~ N(μ, σ²),  p(σ) ∝ 1/σ,  μ/σ ~ Cauchy(0, c)         (Jeffreys, Zellner, Siow)

The Cauchy prior is a mixture: μ/σ ~ N(0, g) with 1/g ~ c⁻² χ²_1. Given g, μ has a Student posterior with n degrees of
freedom, so that only g is integrated numerically.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from truerank.core.checks import check_number
from truerank.core.names import resolve
from truerank.core.printing import counted, styled_table
from truerank.core.results import Result, data_frame
from truerank.measures.base import Measure
from truerank.significance.intervals import failing_loss
from truerank.significance.paired import LEVEL, as_differences, moments, smallest_p

SCALE = 0.35  # c: the median of the absolute standardised difference
SURE = 0.95  # probability from which there is a verdict
FEWEST = 50  # queries for "equivalent"
LEAST = 5  # queries of a segment
_STEP, _BELOW, _ABOVE = 0.25, 5.0, 30.0  # nodes of log g about log c²
HALVINGS = 40


class Posterior(NamedTuple):
    """Posterior of h mean differences; `low` and `high` are the ends of the central 95 % of the probability."""

    worse: np.ndarray  # P(μ < -δ), float64 (h,)
    equivalent: np.ndarray  # P(-δ ≤ μ ≤ δ)
    better: np.ndarray  # P(μ > δ)
    low: np.ndarray
    high: np.ndarray


def posterior(differences: Any, rope: float, *, scale: float = SCALE, ends: bool = True) -> Posterior:
    """Return the posterior of mean differences (n topics, h pairs) with the region of equivalence -δ to δ.

    Parameters
    ----------
    differences : float array (n, h)
        NaN where a topic is undefined. A pair whose differences are all equal has its posterior at this value. With
        fewer than two topics, or six of equal differences, the posterior is NaN, as signs alone do not reach 0.95.
    rope : float
        δ ≥ 0, in the unit of the measure: a smaller difference does not matter in practice.
    scale : float, default 0.35
        c of the prior: with probability 1/2 the true difference is below c standard deviations of the differences.
    ends : bool, default True
        Whether to compute `low` and `high`, which takes most of the time; if False, both are NaN.

    Notes
    -----
    With a = n + 1/g, m_g = n m/a and S_g = Σ (d - m)² + n m²/(1 + n g), the posterior of μ given g is m_g + √(S_g/(n
    a)) t_n, and the posterior of g is proportional to p(g) (1 + n g)^(-1/2) S_g^(-n/2). The integral over log g is a
    sum over 141 nodes. Cost: 141 h values of Student's distribution for each probability.

    References
    ----------
    Rouder, Speckman, Sun, Morey, Iverson: Bayesian t tests for accepting and rejecting the null hypothesis.
    Psychonomic Bulletin and Review 16 (2009), 225-237 (the prior). Benavoli, Corani, Demšar, Zaffalon: Time for a
    change. JMLR 18 (2017) (the region of practical equivalence).

    Examples
    --------
    >>> d = np.random.default_rng(0).normal(0.03, 0.1, (50, 1))
    >>> found = posterior(d, rope=0.01)
    >>> found.better.round(3).tolist(), found.equivalent.round(3).tolist(), found.worse.round(3).tolist()
    ([0.983], [0.017], [0.0])
    """
    from scipy.special import stdtr

    rope = check_number(rope, "rope", "[0, inf)")
    scale = check_number(scale, "scale", "(0, inf)")
    d = as_differences(differences)
    n, mean, deviation = moments(d)
    free = (deviation > 0) & (n > 1)
    centre, spread, weight = _mixture(n[free], mean[free], deviation[free], scale)

    def below(value: np.ndarray) -> np.ndarray:  # P(μ < value), of the pairs that vary
        return np.asarray((weight * stdtr(n[free, None], (value[:, None] - centre) / spread)).sum(axis=1))

    mean = np.where(free | (smallest_p(n) < LEVEL), mean, math.nan)
    worse, better = (np.where(np.isnan(mean), mean, side) for side in (mean < -rope, mean > rope))
    worse[free], better[free] = below(np.full(free.sum(), -rope)), 1.0 - below(np.full(free.sum(), rope))
    low, high = (mean.copy(), mean.copy()) if ends else np.full((2, len(mean)), math.nan)
    for end, share in ((low, (1 - SURE) / 2), (high, (1 + SURE) / 2)) if ends else ():
        width = 20.0 * (np.abs(mean) + deviation)[free]
        start, stop = -width, width
        for _ in range(HALVINGS):
            middle = (start + stop) / 2
            under = below(middle) < share
            start, stop = np.where(under, middle, start), np.where(under, stop, middle)
        end[free] = (start + stop) / 2
    return Posterior(worse, np.clip(1.0 - worse - better, 0.0, 1.0), better, low, high)


def cautious(differences: Any, rope: float, loss: Any, *, scale: float = SCALE, ends: bool = True) -> Posterior:
    """Return the posterior with an `equivalent` that one more query with a large difference does not change.

    A sample seldom has rare large differences, so `posterior` overestimates equivalence. The result is the least of
    three probabilities: from the differences alone, with one more difference x, and with -x. x is the larger of
    twice the largest difference and `loss`, the loss on a query that fails (scalar or (h,)). The probabilities of
    worse, equivalent and better add up to at most 1. `equivalent` is NaN if the loss is NaN, and for fewer than 50
    queries, where this rule is still wrong too often (`python -m validation bayes`).
    """
    d = as_differences(differences)
    found = posterior(d, rope, scale=scale, ends=ends)
    x = np.maximum(2.0 * np.fmax.reduce(np.abs(d), axis=0, initial=0.0), loss)
    more = [posterior(np.vstack([d, one]), rope, scale=scale, ends=False).equivalent for one in (x, -x)]
    known = ~np.isnan(x) & ((~np.isnan(d)).sum(axis=0) >= FEWEST)
    return found._replace(equivalent=np.where(known, np.minimum(found.equivalent, np.minimum(*more)), math.nan))


def _mixture(n: np.ndarray, mean: np.ndarray, deviation: np.ndarray, scale: float) -> tuple[np.ndarray, ...]:
    """Return centres, spreads and weights (h, nodes) of the Student distributions of the posterior."""
    x = 2.0 * math.log(scale) + np.arange(-_BELOW, _ABOVE, _STEP)
    g, n, mean = np.exp(x), n[:, None].astype(np.float64), mean[:, None]
    a = n + 1.0 / g
    squares = (n - 1.0) * deviation[:, None] ** 2 + n * mean**2 / (1.0 + n * g)
    prior = -0.5 * x - scale**2 / (2.0 * g)  # the density of log g, inverse gamma (1/2, c²/2)
    log_weight = prior - 0.5 * np.log1p(n * g) - 0.5 * n * np.log(squares)
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True, initial=-np.inf))
    return n * mean / a, np.sqrt(squares / (n * a)), weight / weight.sum(axis=1, keepdims=True)


class PracticalPair(NamedTuple):
    """The posterior probabilities of one pair."""

    a: str
    b: str
    difference: float
    low: float  # of the central 95 % of the posterior
    high: float
    worse: float  # probability that `a` is worse by more than the region
    equivalent: float  # the least with one more query, NaN if there is none; see `cautious`
    better: float
    segment: str = ""  # of the queries; "" is all queries
    queries: int = 0
    shrunk: float = math.nan  # the posterior mean of a segment

    @property
    def verdict(self) -> str:
        """The outcome with a probability of at least 0.95, else "undecided"."""
        held = {"better": self.better, "equivalent": self.equivalent, "worse": self.worse}
        return next((name for name, probability in held.items() if probability >= SURE), "undecided")

    def entries(self) -> dict[str, Any]:
        """Return the figures and the verdict; only a segment has the fields of segments."""
        own = self._asdict() if self.segment else dict(zip(self._fields[:-3], self))
        return own | {"verdict": self.verdict}


@dataclass(repr=False, eq=False)
class Practical(Result):
    """The result of `Comparison.practical`."""

    measure: str
    rope: float
    scale: float
    queries: int  # with values of both rankers; the fewest of the pairs
    pairs: list[PracticalPair] = field(repr=False)
    segments: list[PracticalPair] = field(default_factory=list, repr=False)

    KIND: ClassVar[str] = "practical"

    @property
    def summary(self) -> str:
        """A sentence with the verdict on the first pair, or the number of decided pairs."""
        if len(self.pairs) == 1:
            (pair,) = self.pairs
            if math.isnan(pair.better):
                why = f"{counted(self.queries, 'query')}: too few, or equal differences"
                return f"{pair.a} against {pair.b}: undecided ({why})."
            figures = {"better": pair.better, "equivalent": pair.equivalent, "worse": pair.worse}
            text = ", ".join(f"P({name}) = {own:.3f}" for name, own in figures.items() if not math.isnan(own))
            return f"{pair.a} against {pair.b}: {pair.verdict} ({text})."
        decided = sum(pair.verdict != "undecided" for pair in self.pairs)
        return f"{decided} of {len(self.pairs)} pairs are decided with a probability of at least {SURE:g}."

    def _figures(self) -> dict[str, Any]:
        about = {"measure": self.measure, "rope": self.rope, "scale": self.scale}
        segments = {"segments": [one.entries() for one in self.segments]} if self.segments else {}
        return about | {"pairs": [pair.entries() for pair in self.pairs]} | segments

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each pair, and for each segment of it."""
        return data_frame([one._asdict() | {"verdict": one.verdict} for one in self.pairs + self.segments])

    def _table(self, style: str) -> str:
        header = ["difference", "95% credible", "P(better)", "P(equivalent)", "P(worse)", "verdict"]
        whole, divided = (
            [[f"{one.a} against {one.b}", one.segment, one.queries, one.difference, one.shrunk,
              "" if math.isnan(one.low) else f"[{one.low:+.4f}, {one.high:+.4f}]", one.better, one.equivalent,
              one.worse, one.verdict] for one in lines] for lines in (self.pairs, self.segments)
        )  # fmt: skip
        rows = [[name, difference, *figures] for name, _, _, difference, _, *figures in whole]
        unseen = 100 * (1 - LEVEL ** (1 / self.queries))
        caption = (
            f"{self.measure or 'values'}, {counted(self.queries, 'query')}; region of practical equivalence "
            f"±{self.rope:g}; normal differences, Cauchy prior of scale {self.scale:g} on the standardised mean; each "
            f"pair alone, without a correction for several pairs. Equivalence also holds with one more query of a "
            f"large difference. It requires {FEWEST} queries, and cannot detect differences on fewer than "
            f"{unseen:.2g} % of queries"
        )
        first = styled_table(rows, ["rankers", *header], style, caption)
        if not self.segments:
            return first
        header = ["rankers", "segment", "queries", header[0], "shrunk", *header[1:]]
        caption = (
            "By segment, in a hierarchical model: the true differences of the segments are normal about a common "
            "mean, and each segment borrows from the others (shrunk: its posterior mean). A segment with fewer than "
            f"{LEAST} queries, or with equal differences everywhere, has no probability"
        )
        return f"{first}\n\n{styled_table(divided, header, style, caption)}"


def practical(
    pairs: Sequence[tuple[str, str]], d: np.ndarray, rope: float, values: Mapping[str, np.ndarray], *,
    by: Measure | None = None, measure: str = "", scale: float = SCALE, masks: Mapping[str, np.ndarray] = {},
) -> Practical:  # fmt: skip
    """Return the probabilities of pairs from their differences (n, h) and the rankers' values (n,) of a measure.

    `masks` (n,) are the queries of each segment by its name.
    """
    losses = [[failing_loss(values[x], values[y], by) for x, y in (pair, pair[::-1])] for pair in pairs]
    loss = np.array(losses, dtype=np.float64).max(axis=1)
    found = cautious(d, rope, loss, scale=scale)
    made = [PracticalPair(a, b, *own) for (a, b), own in zip(pairs, _rows(np.nanmean(d, axis=0), found))]
    result = Practical(measure, rope, scale, int((~np.isnan(d)).sum(axis=0).min()), made)
    for (a, b), own, largest in zip(pairs, d.T, loss.tolist()) if masks else ():
        columns = np.column_stack([np.where(mask, own, math.nan) for mask in masks.values()])
        one = resolve("truerank.significance.hierarchy:segments_posterior")(columns, rope, largest)
        rows = zip(masks, one.queries.tolist(), one.shrunk.tolist(), _rows(one.mean, one.posterior))
        result.segments += [PracticalPair(a, b, *row, name, n, shrunk) for name, n, shrunk, row in rows]
    return result


def _rows(mean: np.ndarray, found: Posterior) -> list[tuple[float, float, float, float, float, float]]:
    columns = (mean, found.low, found.high, found.worse, found.equivalent, found.better)
    return list(zip(*(column.tolist() for column in columns)))
