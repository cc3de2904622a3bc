"""Cross-validation over training seeds: separate variances due to queries and seeds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np

from truerank import __version__
from truerank.core.checks import check_choice
from truerank.core.digests import content_digest
from truerank.core.errors import InvalidInputError
from truerank.core.files import check_target
from truerank.core.json_lines import JsonLines
from truerank.core.printing import counted, plain, styled_table
from truerank.core.results import Result, data_frame
from truerank.core.types import PathLike
from truerank.data.splits import Fold, tested_queries
from truerank.inspection.learners import ComparedLearners, compare_learners, tested_pairs
from truerank.measures.base import Measure
from truerank.rankers.pipeline import with_seed
from truerank.significance.intervals import measure_interval
from truerank.significance.paired import TIED, differences_of
from truerank.significance.paper_table import paper_table

FEWEST_SEEDS = 3  # for a test
_KEYS = {"ranker", "seed", "values", "folds"}
_NO_FITS = "is not a file of cross-validated fits. Name another file, or remove this one"


class SeedPair(NamedTuple):
    """The comparison of learners `a` and `b` over queries and seeds, with positive differences if `a` is better."""

    a: str
    b: str
    difference: float
    low: float  # 95 % interval of this pair alone, which agrees with `p`
    high: float
    of_queries: float  # standard error of the difference that is due to queries
    of_seeds: float  # and to seeds of training
    p: float
    p_adjusted: float  # by Holm


@dataclass(repr=False, eq=False)
class SeedComparison(ComparedLearners):
    """The result of `SeededValidation.compare`."""

    queries: int
    seeds: int

    KIND: ClassVar[str] = "seed-comparison"
    SIZES: ClassVar = ("queries", "seeds")

    @property
    def about(self) -> str:
        """A text that names the population and the test."""
        return (
            f"learners that are trained on these folds, over seeds and similar queries: {self.measure} "
            f"({self.convention}), {counted(self.queries, 'query')} x {counted(self.seeds, 'seed')}, crossed random "
            "effects with Cochran and Cox's quantiles, p adjusted by Holm. Other training data are not part of the "
            'uncertainty; about="learners" includes them'
        )


def training_text(trained_on: Mapping[str, str]) -> str:
    """Return the parts of a fold on which rankers are trained, in words after a semicolon; "" without a ranker."""
    parts = list(dict.fromkeys(trained_on.values()))
    own = [f"{', '.join(name for name, one in trained_on.items() if one == part)}: {part}" for part in parts]
    if len(parts) == 1:
        return f"; each ranker is trained on {parts[0]}"
    return f"; trained on ({'; '.join(own)})" if parts else ""


class Settings(NamedTuple):
    """Settings of a cross-validation over seeds."""

    measures: dict[str, Measure]  # by their given names
    query_ids: np.ndarray
    convention: str
    repeats: int
    folds: Sequence[Fold]  # of the first repeat
    trained_on: dict[str, str]  # part of each fold, in words, by ranker


@dataclass(repr=False, eq=False)
class SeededValidation(Result):
    """The result of `cross_validate` with `seeds`, by ranker and measure.

    `values` (seeds, m) are the values of each query by rankers that were not trained on the query. `fold_means` (seeds,
    J) are the means of folds. A ranker without a seed has equal values for all seeds.
    """

    values: dict[str, dict[str, np.ndarray]] = field(repr=False)
    fold_means: dict[str, dict[str, np.ndarray]] = field(repr=False)
    seeds: list[int]
    about: Settings = field(repr=False)
    fits: int  # that this call made
    cpu_seconds: float

    KIND: ClassVar[str] = "seeded-validation"

    @property
    def n_folds(self) -> int:
        """The number of folds of one repeat."""
        return len(self.about.folds)

    @property
    def repeats(self) -> int:
        """The number of draws of the folds."""
        return self.about.repeats

    @property
    def measures(self) -> dict[str, Measure]:
        """The measures, by their given names."""
        return self.about.measures

    @property
    def trained_on(self) -> dict[str, str]:
        """The part of each fold that trains a ranker, in words, by ranker."""
        return self.about.trained_on

    @property
    def n_queries(self) -> int:
        """The number of tested queries."""
        return len(tested_queries(self.about.folds))

    @property
    def means(self) -> dict[str, dict[str, float]]:
        """The mean over seeds and queries, by ranker and measure."""
        return {
            name: {label: self.measures[label].average(own.mean(axis=0)) for label, own in values.items()}
            for name, values in self.values.items()
        }

    @property
    def deviations(self) -> dict[str, dict[str, float]]:
        """Standard deviation over seeds (n - 1) of the mean over queries; 0 without a seed, NaN with one seed."""
        return {
            name: {label: self._deviation(label, own) for label, own in values.items()}
            for name, values in self.values.items()
        }

    def _deviation(self, label: str, values: np.ndarray) -> float:
        means = np.array([self.measures[label].average(own) for own in values])
        if len(means) < 2:
            return math.nan
        return 0.0 if np.ptp(means) <= TIED * np.abs(means).max() else float(means.std(ddof=1))

    @property
    def summary(self) -> str:
        """A sentence on the ranker with the best mean of the first measure."""
        label, by = next(iter(self.measures.items()))
        means, sign = self.means, 1.0 if by.higher_is_better else -1.0
        best = max(means, key=lambda name: sign * means[name][label])
        deviation = self.deviations[best][label]
        over = "" if math.isnan(deviation) else f" (standard deviation over seeds {deviation:.4f})"
        several = f"{best} has the best mean of {counted(len(means), 'ranker')}: {label}"
        which = several if len(means) > 1 else f"{label} of {best}"
        return (
            f"{which} is {means[best][label]:.4f} over "
            f"{counted(self.n_queries, 'query')} and {counted(len(self.seeds), 'seed')}{over}."
        )

    def _figures(self) -> dict[str, Any]:
        about = {
            "convention": self.about.convention,
            "queries": self.n_queries,
            "folds": self.n_folds,
            "seeds": self.seeds,
            "trained_on": self.trained_on,
        }
        return about | {"repeats": self.repeats, "means": self.means, "deviations": self.deviations}

    def to_frame(self) -> Any:
        """Return a pandas data frame with the mean of each ranker, seed and measure."""
        rows = [
            {"ranker": name, "seed": seed}
            | {label: self.measures[label].average(own[k]) for label, own in values.items()}
            for name, values in self.values.items() for k, seed in enumerate(self.seeds)
        ]  # fmt: skip
        return data_frame(rows)

    def to_latex(self, show: Sequence[str] = (), *, about: str = "seeds", baseline: str | None = None) -> str:
        """Return the table of a paper: learners by measures, with the marks of `compare(about=, baseline=)`.

        Each mean has its standard deviation over seeds. `show` may contain "seeds", which adds a row for each seed, and
        "intervals" of the difference from the baseline. Marks and captions follow `Comparison.to_latex`; p is corrected
        within a measure. Without a test (one learner, fewer than three seeds), the result is the printed table.
        """
        if len(self.values) < 2 or len(self.seeds) < FEWEST_SEEDS:
            return self._table("latex")
        compared = {label: self.compare(label, about=about, baseline=baseline) for label in self.measures}
        seeds = {
            label: {name: dict(zip(self.seeds, map(by.average, values[label]))) for name, values in self.values.items()}
            for label, by in self.measures.items()
        }
        return paper_table(compared, "latex", None, show, seeds=seeds)

    def _table(self, style: str) -> str:
        means, deviations = self.means, self.deviations
        rows = []
        for name, values in self.values.items():
            row: list[Any] = [name]
            for label, own in values.items():
                low, high = measure_interval(self.measures[label], own.mean(axis=0))[1:]
                ends = "" if math.isnan(low) else f" [{low:.4f}, {high:.4f}]"
                spread = "" if math.isnan(deviations[name][label]) else f" ± {deviations[name][label]:.4f}"
                row.append(f"{means[name][label]:.4f}{spread}{ends}")
            rows.append(row)
        seeds = counted(len(self.seeds), "seed")
        spread = f"±: standard deviation of the mean over {seeds} of training; " if len(self.seeds) > 1 else ""
        caption = (
            f"convention {self.about.convention}; {spread}[ ]: 95 % interval over "
            f"{counted(self.n_queries, 'query')} of the mean over seeds. Neither includes other training data"
            f"{training_text(self.trained_on)}"
        )
        return styled_table(rows, ["ranker", *self.measures], style, caption)

    def compare(self, measure: str | None = None, *, about: str = "seeds", baseline: str | None = None) -> Any:
        """Compare the learners with each other, or with `baseline`, by one of the measures (by default the first).

        `about="seeds"` is for these folds of training data, over seeds and similar queries: crossed random effects
        (`crossed_test`). `about="learners"` also includes other training data: the corrected resampled t-test over
        folds, of means over the seeds (a `LearnerComparison`).

        Raises
        ------
        InvalidInputError
            With fewer than two rankers or three seeds, and for a measure that is not a mean.
        """
        check_choice(about, "about", ("seeds", "learners"))
        label = next(iter(self.measures)) if measure is None else measure
        check_choice(label, "measure", list(self.measures))
        by = self.measures[label].check_mean()
        means = {name: own[label] for name, own in self.means.items()}
        if about == "learners":
            if self.n_queries < len(self.about.query_ids):
                raise InvalidInputError(
                    "the test of learners requires folds that test every query once, but these folds do not",
                    argument="about",
                )
            folds = {name: own[label].mean(axis=0).tolist() for name, own in self.fold_means.items()}
            return compare_learners(
                folds, means, label, self.about.convention, self.repeats, by.higher_is_better, baseline=baseline
            )
        if len(self.seeds) < FEWEST_SEEDS:
            raise InvalidInputError(
                f"a test over seeds requires at least {FEWEST_SEEDS} seeds, got {len(self.seeds)}", argument="seeds"
            )
        sign = 1.0 if by.higher_is_better else -1.0
        pairs = tested_pairs(
            list(self.values), baseline,
            lambda a, b: crossed_test(sign * differences_of(self.values[a][label], self.values[b][label])),
        )  # fmt: skip
        return SeedComparison(
            label, self.about.convention, means, [SeedPair(*one) for one in pairs], by.higher_is_better,
            self.n_queries, len(self.seeds),
        )  # fmt: skip


def crossed_test(d: np.ndarray) -> tuple[float, float, float, float, float, float]:
    """Test the mean of differences (S seeds, m queries); return mean, 95 % interval, both standard errors, and p.

    The model is d_sq = μ + Q_q + S_s + E_sq with independent random effects of queries and seeds. With the mean squares
    M_Q, M_S and M_E of the two-way table, the estimated variance of the mean is

        V = max(M_Q + M_S - M_E, M_Q, M_S) / (S m)

    Its parts a = max(M_Q - M_E, 0)/(S m) and b = M_S/(S m) have m - 1 and S - 1 degrees of freedom, and the quantile is
    the mean of Student's quantiles with weights a and b (Cochran and Cox 1957, section 4.14). Satterthwaite's degrees
    of freedom reject a true null hypothesis in 7 to 12 % of samples with two or three seeds. If b excludes the
    interaction, the rate is 6 to 10 % for equal learners, which have no effect of queries. Queries with NaN are left
    out. p is 1 without any difference, and NaN if all differences are equal.
    """
    from scipy.special import stdtrit

    d = d[:, ~np.isnan(d).any(axis=0)]
    s, m = d.shape
    mean = float(d.mean()) if d.size else math.nan
    if s < 2 or m < 2 or np.ptp(d) <= TIED * np.abs(d).max():
        return mean, math.nan, math.nan, 0.0, 0.0, 1.0 if not d.any() else math.nan
    by_query, by_seed = d.mean(axis=0) - mean, d.mean(axis=1) - mean
    squares_q, squares_s = s * float(by_query @ by_query) / (m - 1), m * float(by_seed @ by_seed) / (s - 1)
    rest = d - mean - by_query - by_seed[:, None]
    squares_e = float((rest**2).sum()) / ((m - 1) * (s - 1))
    size = s * m
    error = math.sqrt(max(squares_q + squares_s - squares_e, squares_q, squares_s) / size)
    a, b = max(squares_q - squares_e, 0.0) / size, squares_s / size
    if a + b == 0:
        a = b = 1.0

    def quantile(tail: float) -> float:
        return -float((a * stdtrit(m - 1, tail) + b * stdtrit(s - 1, tail)) / (a + b))

    half, t = quantile(0.025) * error, abs(mean) / error
    low, high = -700.0, math.log(0.5)  # of the logarithm of one tail
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if quantile(math.exp(middle)) > t else (low, middle)
    return mean, mean - half, mean + half, math.sqrt(a), math.sqrt(b), min(1.0, 2.0 * math.exp((low + high) / 2))


def over_seeds(
    validate: Callable[[dict[str, Any]], Any], rankers: Mapping[str, Any], seeds: Sequence[int],
    state: PathLike | None, question: list[Any], about: Settings,
) -> SeededValidation:  # fmt: skip
    """Cross-validate rankers with each seed; `validate(rankers)` returns a `CrossValidation` over the same folds.

    `state` names a file for the values of each ranker and seed, from which a killed run resumes; `question` contains
    all inputs except the seeds.
    """
    if not isinstance(seeds, Iterable):
        raise InvalidInputError(
            argument="seeds", expected="a sequence of whole numbers", value=seeds, remedies=["write seeds=range(3)"]
        )
    chosen = [int(seed) for seed in seeds]
    if len(set(chosen)) < len(chosen) or not chosen:
        expected = "seeds must be one or more different whole numbers, such as range(3)"
        raise InvalidInputError(f"{expected}, got {list(seeds)}", argument="seeds")
    if state is not None:
        check_target(state)
    started, fits = time.process_time(), 0
    with JsonLines(state, _NO_FITS) as lines:
        done = _done(lines, "" if state is None else content_digest([__version__, *question]))
        for name, seed in product(rankers, chosen):
            seeded = with_seed(rankers[name], seed)
            key = (name, None if seeded is None else seed)
            if key in done:
                continue
            found = validate({name: rankers[name] if seeded is None else seeded})
            folds = found.fold_means[name]
            fits += len(next(iter(folds.values())))
            done[key] = {
                "values": {label: own.tolist() for label, own in found.per_query[name].items()},
                "folds": {label: list(own) for label, own in folds.items()},
            }
            lines.append({"ranker": name, "seed": key[1], **plain(done[key])})

    def stacked(kind: str) -> dict[str, dict[str, np.ndarray]]:
        return {
            name: {label: np.array([_of(done, name, seed)[kind][label] for seed in chosen], dtype=np.float64)
                   for label in about.measures} for name in rankers
        }  # fmt: skip

    spent = time.process_time() - started
    return SeededValidation(stacked("values"), stacked("folds"), chosen, about, fits, spent)


def _of(done: Mapping[Any, Any], name: str, seed: int) -> Any:
    return done[name, seed] if (name, seed) in done else done[name, None]


def _done(lines: JsonLines, question: str) -> dict[Any, Any]:
    """Return the fits of an earlier run by ranker and seed; a new file begins with the digest of the question."""
    others = "fits of other rankers, folds, measures or data, or of another version"
    fits = lines.entries_for(question, _KEYS, "fits", others)
    return {(one["ranker"], one["seed"]): {kind: one[kind] for kind in ("values", "folds")} for one in fits}
