"""Compare several rankers on the same queries: wins and losses, a test, a correction for the family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError
from truerank.core.printing import table
from truerank.measures import DEFAULT_CONVENTION, mean_of, parse_measure
from truerank.measures.evaluation import judged, scores_in_order
from truerank.significance.corrections import bonferroni, holm
from truerank.significance.intervals import bootstrap_interval, smallest_detectable_difference
from truerank.significance.two_samples import (
    Outcome,
    paired_differences,
    paired_t,
    randomisation,
    sign_test,
    wilcoxon,
    win_loss,
)

TESTS = ("randomisation", "t", "wilcoxon", "sign")
_CORRECTIONS: dict[str, Callable[[Any], np.ndarray]] = {
    "holm": holm,
    "bonferroni": bonferroni,
    "none": lambda p: np.asarray(p, dtype=np.float64),
}
CORRECTIONS = tuple(_CORRECTIONS)


class PairComparison(NamedTuple):
    """Ranker `a` against ranker `b`: `wins` counts the queries on which `a` has the higher value.

    `difference` is the mean of a's values less b's over the `queries` that both have a value for, with its bootstrap
    interval `low` to `high`; `detectable` the smallest true difference that a paired t-test on them would find four
    times in five.
    """

    a: str
    b: str
    queries: int
    difference: float
    low: float
    high: float
    wins: int
    losses: int
    ties: int
    p: float
    p_adjusted: float
    detectable: float


class Comparison:
    """What `compare_rankers` found.

    Attributes
    ----------
    measure, convention, test, correction : str
    baseline : str or None
        None where every pair was compared.
    means : dict of str to float
        Mean of each ranker.
    per_query : dict of str to float64 array (m,)
    pairs : list of PairComparison
    """

    __slots__ = ("baseline", "convention", "correction", "means", "measure", "pairs", "per_query", "test")

    def __init__(
        self,
        per_query: Mapping[str, np.ndarray],
        *,
        baseline: str | None,
        measure: str = "",
        convention: str = "",
        test: str = "randomisation",
        correction: str = "holm",
        random_state: Any = 0,
    ) -> None:
        check_choice(test, "test", TESTS)
        check_choice(correction, "correction", CORRECTIONS)
        names = list(per_query)
        if len(names) < 2:
            raise InvalidInputError(f"a comparison needs at least two rankers, got {len(names)}")
        if baseline is not None and baseline not in names:
            raise InvalidInputError(f"baseline {baseline!r} is none of {', '.join(names)}")
        if baseline is None:
            chosen = list(combinations(names, 2))
        else:
            chosen = [(name, baseline) for name in names if name != baseline]
        self.measure, self.convention, self.test, self.correction = measure, convention, test, correction
        self.baseline, self.per_query = baseline, dict(per_query)
        self.means = {name: mean_of(np.asarray(values, dtype=np.float64)) for name, values in per_query.items()}
        tested = [_tested(test, per_query[a], per_query[b], random_state).p for a, b in chosen]
        adjusted = _CORRECTIONS[correction](tested).tolist()
        self.pairs = []
        for (a, b), p, p_adjusted in zip(chosen, tested, adjusted):
            values = per_query[a], per_query[b]
            interval = bootstrap_interval(*values, n_resamples=2_000, random_state=random_state)
            self.pairs.append(
                PairComparison(
                    a,
                    b,
                    len(paired_differences(*values)),
                    *interval,
                    *win_loss(*values),
                    p,
                    p_adjusted,
                    smallest_detectable_difference(*values),
                )
            )

    def to_dict(self) -> dict[str, Any]:
        """What `truerank compare --json` prints."""
        return {
            "baseline": self.baseline,
            "measure": self.measure,
            "convention": self.convention,
            "test": self.test,
            "correction": self.correction,
            "means": self.means,
            "pairs": [pair._asdict() for pair in self.pairs],
        }

    def __str__(self) -> str:
        rows = [
            [
                f"{pair.a} against {pair.b}",
                self.means[pair.a],
                self.means[pair.b],
                f"{pair.difference:+.4f} [{pair.low:+.4f}, {pair.high:+.4f}]",
                f"{pair.wins}/{pair.losses}{'**' if pair.p_adjusted < 0.05 else ''}",
                pair.ties,
                pair.p,
                pair.p_adjusted,
                pair.detectable,
            ]
            for pair in self.pairs
        ]
        header = [
            "rankers",
            "mean",
            "against",
            "difference, 95%",
            "wins/losses",
            "ties",
            "p",
            f"p, {self.correction}",
            "shows",
        ]
        return table(rows, header)

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.per_query)}; {self.measure}, {self.test})"


def compare_rankers(
    y: Any,
    scores: Mapping[str, Any],
    *,
    qid: Any = None,
    doc_ids: Any = None,
    measure: Any = "nDCG@10",
    baseline: str | None = "first",
    test: str = "randomisation",
    correction: str = "holm",
    convention: str = DEFAULT_CONVENTION,
    random_state: Any = 0,
) -> Comparison:
    """Compare rankers by their scores of the same judged documents.

    Parameters
    ----------
    y : array-like (n,), RankingData or Judgements
        As for `evaluate`.
    scores : mapping of name to array-like (n,)
    qid : array-like (n,), optional
        None means one query (on which no test can show anything).
    doc_ids : array-like (n,) of str, optional
        Break ties under `trec`.
    measure : str, Measure or callable
    baseline : str or None
        Every other ranker is compared with this one, by default the first of `scores`; None compares all pairs.
    test : {"randomisation", "t", "wilcoxon", "sign"}
    correction : {"holm", "bonferroni", "none"}
        Of the p-values of all pairs compared.
    convention : str
    random_state : seed of the randomisation test and the bootstrap

    Returns
    -------
    Comparison
        Prints as a table, with ** after wins/losses where the adjusted p is below .05; `.pairs` holds each comparison.

    Examples
    --------
    >>> y, qid = [1, 0, 1, 0, 1, 0], [1, 1, 2, 2, 3, 3]
    >>> result = compare_rankers(y, {"old": [1, 2, 1, 2, 1, 2], "new": [2, 1, 2, 1, 1, 2]}, qid=qid, measure="RR")
    >>> pair = result.pairs[0]
    >>> pair.a, pair.b, pair.wins, pair.losses, pair.ties
    ('new', 'old', 2, 0, 1)
    """
    if not isinstance(scores, Mapping):
        raise InvalidInputError("compare_rankers takes scores by name: {'ranker': scores, …}")
    parsed = parse_measure(measure, convention)
    judgements, order = judged(y, qid, doc_ids)
    per_query = {
        str(name): parsed.per_query(judgements, scores_in_order(given, judgements, order, f"scores of {name!r}"))
        for name, given in scores.items()
    }
    return compare_values(
        per_query,
        baseline=baseline,
        measure=parsed.name,
        convention=parsed.convention,
        test=test,
        correction=correction,
        random_state=random_state,
    )


def compare_values(
    per_query: Mapping[str, np.ndarray],
    *,
    baseline: str | None = "first",
    measure: str = "",
    convention: str = "",
    test: str = "randomisation",
    correction: str = "holm",
    random_state: Any = 0,
) -> Comparison:
    """As `compare_rankers`, from per-query values (m,) by ranker that stand in the same order of queries."""
    if baseline == "first" and "first" not in per_query:
        baseline = next(iter(per_query), None)
    return Comparison(
        per_query,
        baseline=baseline,
        measure=measure,
        convention=convention,
        test=test,
        correction=correction,
        random_state=random_state,
    )


def _tested(test: str, a: np.ndarray, b: np.ndarray, random_state: Any) -> Outcome:
    if test == "randomisation":
        return randomisation(a, b, random_state=random_state)
    return {"t": paired_t, "wilcoxon": wilcoxon, "sign": sign_test}[test](a, b)
