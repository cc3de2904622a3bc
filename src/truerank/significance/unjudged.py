"""The effect of unjudged documents on a comparison: shares of judged documents, and bounds of a difference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from truerank.measures.base import Measure, mean_of
from truerank.measures.derived import best_grade
from truerank.measures.names import parse_measure
from truerank.measures.ranking import Ranking
from truerank.significance.corrections import holm
from truerank.significance.paired import LEVEL, paired_t

BOUNDED = ("DCG", "P", "RBP")  # measures for which `difference_bounds` has bounds
LEAST_SHARE = 0.5  # mean share of judged documents below which a table has a remark
_SHOWN = 30  # runs, and pairs, that are named


class Unjudged(NamedTuple):
    """A pair whose comparison is in doubt because of unjudged documents.

    `share_a` and `share_b` are the mean shares of judged documents up to the measure's cutoff, over the topics that
    both runs have. `p` is the p of the difference of both shares (paired t-test, corrected by Holm over `n_pairs`); NaN
    if all topics have equal differences. `low` and `high` bound the mean difference a - b over all grades of the
    unjudged documents; None if no bounds are known.
    """

    a: str
    b: str
    share_a: float
    share_b: float
    p: float
    low: float | None
    high: float | None
    n_pairs: int = 1

    @property
    def about(self) -> str:
        """A sentence on the doubt."""
        if np.isnan(self.p) and self.share_a != self.share_b:
            text = "shares of judged documents differ by the same amount on every topic"
        elif self.p < LEVEL:
            correction = f", Holm over {self.n_pairs} pairs" if self.n_pairs > 1 else ""
            text = f"shares of judged documents differ (paired t-test{correction})"
        else:
            text = "most documents are not judged"
        if self.low is None or self.high is None:
            return f"{text}; bounds for unjudged documents are known only for {', '.join(BOUNDED)}"
        return f"{text}; depending on the unjudged documents, a difference lies within the bounds"

    def __str__(self) -> str:
        """Return the text of the pair with its figures."""
        p = f", p = {self.p:.3g}" if self.p < LEVEL else ""
        bounds = "" if self.low is None or self.high is None else f", {self.low:+.4f} to {self.high:+.4f}"
        return f"{self.a} against {self.b}{p}{bounds}"


def judged_shares(measure: Measure, rankings: Mapping[str, Ranking]) -> dict[str, np.ndarray]:
    """Return the share of judged documents up to the cutoff by run and topic (m,); NaN for missing topics."""
    name = "Judged" if measure.cutoff is None else f"Judged@{measure.cutoff}"
    share = parse_measure(name, measure.convention)(missing_topics="skip")
    return {
        run: share.values(_with(one, one.judgements.grades, one.judgements.known))  # a negative grade is no judgement
        for run, one in rankings.items()
    }


def doubtful_pairs(
    measure: Measure, rankings: Mapping[str, Ranking], pairs: Sequence[tuple[str, str]]
) -> list[Unjudged]:
    """Return the pairs whose judged shares differ (corrected p < 0.05), or whose mean share is below `LEAST_SHARE`."""
    shares = judged_shares(measure, rankings)
    means, tested = {}, {}
    for a, b in pairs:
        both = ~(np.isnan(shares[a]) | np.isnan(shares[b]))
        if both.any():
            mine, other = shares[a][both], shares[b][both]
            means[a, b], tested[a, b] = (float(mine.mean()), float(other.mean())), paired_t(mine, other).p
    corrected = holm(np.nan_to_num(list(tested.values()), nan=1.0))
    places: dict[str, Any] = {}
    found = []
    for ((a, b), (mean, other_mean)), adjusted in zip(means.items(), corrected):
        p = math.nan if math.isnan(tested[a, b]) else float(adjusted)
        same = math.isnan(p) and mean != other_mean  # a difference without any variance
        if p < LEVEL or same or (mean + other_mean) / 2 < LEAST_SHARE:
            for run in (a, b):
                if run not in places and _bounded(measure):
                    places[run] = _places(measure, rankings[run])
            ends = difference_bounds(measure, rankings[a], rankings[b], (places.get(a), places.get(b)))
            low, high = (None, None) if ends is None else (float(np.nanmean(end)) for end in ends)
            found.append(Unjudged(a, b, mean, other_mean, p, low, high, len(means)))
    return found


def about_unjudged(
    measure: Measure, rankings: Mapping[str, Ranking], pairs: Sequence[tuple[str, str]]
) -> tuple[dict[str, Any], list[str]]:
    """Return the judged shares and the doubtful pairs, for JSON and as lines; empty if all documents are judged."""
    if all(one.judgements.known.all() for one in rankings.values()):
        return {}, []
    means = {name: mean_of(own) for name, own in judged_shares(measure, rankings).items()}
    doubtful = doubtful_pairs(measure, rankings, pairs)
    shown = ", ".join(f"{name} {mean:.4f}" for name, mean in list(means.items())[:_SHOWN])
    first = "" if measure.cutoff is None else f" in the first {measure.cutoff}"
    topics = {one.judgements.sizes.astype(bool).tobytes() for one in rankings.values()}
    over = "" if len(topics) == 1 else ", over a run's own topics"
    grouped: dict[str, list[str]] = {}
    for pair in doubtful[:_SHOWN]:
        grouped.setdefault(pair.about, []).append(str(pair))
    lines = [f"share of judged documents{first}{over}: {shown}"]
    lines += [f"{about}: {'; '.join(each)}" for about, each in grouped.items()]
    return {"judged": means, "unjudged": [pair._asdict() for pair in doubtful]}, lines


def difference_bounds(
    measure: Measure, a: Ranking, b: Ranking, places: tuple[Any, Any] = (None, None)
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return two arrays (m,), bounds of the difference a - b by topic over all grades of the unjudged documents.

    The result is None for measures other than DCG, P and RBP, and for tie rules that depend on grades; NaN where the
    measure skips the topic. `a` and `b` have the same topics, and `places` are their `_places`.

    DCG, P and RBP sum w(rank) · gain(grade) with weights that do not grow with the rank. For the largest difference, an
    unjudged document has the best grade if a ranks it higher, else grade 0. For the smallest difference, it has the
    best grade if b ranks it higher. The best grade is the largest judged or, if higher, the lowest relevant grade.
    """
    if not _bounded(measure):
        return None
    undefined = measure.setting("empty") != "zero" and any(measure.count_empty(one.judgements) for one in (a, b))
    if undefined:  # a completion could define the topic
        return None
    best = max(
        1.0, float(measure.setting("rel") or 0), *(best_grade(one.judgements).max(initial=0.0) for one in (a, b))
    )
    known = [_places(measure, one) if place is None else place for one, place in zip((a, b), places)]
    ends = []
    for sign in (-1, 1):
        values = []
        for ranking, own, other, side in zip((a, b), known, known[::-1], (1, -1)):
            grades, judged = ranking.judgements.grades.copy(), ranking.judgements.known
            for document, (place, row) in own.items():
                if not judged[row]:
                    ahead = other.get(document, (np.inf, 0))[0] - place
                    grades[row] = best if ahead * side * sign > 0 else 0.0
            values.append(measure.values(_with(ranking, grades)))
        ends.append(values[0] - values[1])
    return ends[0], ends[1]


def _bounded(measure: Measure) -> bool:
    """Return whether the difference of the measure has bounds."""
    plain = not measure.setting("judged_only") and measure.rises_with_grades
    return measure.NAME in BOUNDED and plain and measure.setting("ties") in ("trec", "stable")


def _places(measure: Measure, ranking: Ranking) -> dict[tuple[int, Any], tuple[int, int]]:
    """Return rank and row of each document up to the measure's cutoff, by topic and id."""
    judgements = ranking.judgements
    rows = ranking.ordered(measure.setting("ties"), measure.setting("compare")).rows[0]
    place = np.arange(len(rows)) - np.repeat(judgements.offsets[:-1], judgements.sizes)
    query = np.repeat(np.arange(judgements.n_queries), judgements.sizes)
    seen = slice(None) if measure.cutoff is None else place < measure.cutoff
    ids = rows if judgements.tie_keys is None else judgements.tie_keys[rows]
    found = zip(query[seen].tolist(), ids[seen].tolist(), place[seen].tolist(), rows[seen].tolist())
    return {(topic, document): (at, row) for topic, document, at, row in found}


def _with(ranking: Ranking, grades: np.ndarray, judged: np.ndarray | None = None) -> Ranking:
    """Return the ranking with these grades and this mask of judged rows."""
    own = ranking.judgements
    return ranking.regraded(own.with_grades(grades, judged, own.missing_grades))
