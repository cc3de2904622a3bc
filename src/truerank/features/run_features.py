"""Features of runs, such as `min-max` and `reciprocal-rank(k=60)`.

The sum of features is a `FeatureSet`. `parse_features` inverts `str`:

>>> features = MinMax() + ReciprocalRank(k=10)
>>> str(features), parse_features("min-max + reciprocal-rank(k=10)") == features
('min-max + reciprocal-rank(k=10)', True)

Every feature has a column for each run, except `agreement` (one column) and `score-bins` (several for each run), which
learns its thresholds from the topics of `fit`. All other features use only the run's list for the topic. Each feature
states its value for a document that the run did not retrieve, also in a topic that the run lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.names import read_value, resolve
from truerank.features.engine_norms import TECHNIQUES, engine_values
from truerank.features.rules import K, min_max_scores
from truerank.features.run_pool import RunPool


@dataclass(frozen=True)
class RunFeature:
    """Base class of features, whose `values(pool)` returns a value for each entry of the lists, float64 (e,)."""

    NAME: ClassVar[str] = ""

    def values(self, pool: RunPool) -> np.ndarray:
        """Return the value of each entry of the pool's lists (e,)."""
        raise NotImplementedError

    def absent(self, pool: RunPool) -> np.ndarray:
        """Return the value of each list (m r,) for documents that are not in the list."""
        return np.zeros(pool.n_queries * pool.n_runs)

    def __add__(self, other: RunFeature | FeatureSet) -> FeatureSet:
        return FeatureSet((self,)) + other

    def __str__(self) -> str:
        given = [(field.name, getattr(self, field.name), field.default) for field in fields(self)]
        inside = ", ".join(f"{name}={digits(value)}" for name, value, default in given if value != default)
        return f"{self.NAME}({inside})" if inside else self.NAME


def digits(value: float | str) -> str:
    """Return the shortest text that represents a number; text is returned unchanged."""
    if isinstance(value, str):
        return value
    return repr(getattr(value, "item", lambda: value)()).removesuffix(".0")  # NumPy scalars print their type


@dataclass(frozen=True)
class MinMax(RunFeature):
    """`(score - min) / (max - min)` within the list; `equal` if all its scores are equal; 0 if not retrieved."""

    NAME: ClassVar[str] = "min-max"
    equal: float = 0.0

    def __post_init__(self) -> None:
        check_number(self.equal, "min-max: equal", "[0, 1]")

    def values(self, pool: RunPool) -> np.ndarray:
        return min_max_scores(pool, self.equal)


@dataclass(frozen=True)
class Score(RunFeature):
    """The score of the run, or 0 if not retrieved. Scores must be comparable between topics."""

    NAME: ClassVar[str] = "score"

    def values(self, pool: RunPool) -> np.ndarray:
        return pool.scores


@dataclass(frozen=True)
class ZScore(RunFeature):
    """`(score - mean) / deviation` within the list, 0 if all are equal; the list's lowest if not retrieved."""

    NAME: ClassVar[str] = "z-score"

    def values(self, pool: RunPool) -> np.ndarray:
        # Min-max scores have the same z-scores and cannot overflow.
        scaled = min_max_scores(pool)
        count = np.maximum(pool.list_sizes, 1)
        centred = scaled - pool.spread(pool.per_list(np.add, scaled) / count)
        deviation = np.sqrt(pool.per_list(np.add, centred**2) / count)
        return np.where(pool.spread(deviation) > 0, centred / pool.spread(np.where(deviation > 0, deviation, 1.0)), 0.0)

    def absent(self, pool: RunPool) -> np.ndarray:
        return pool.per_list(np.minimum, self.values(pool))


@dataclass(frozen=True)
class Percentile(RunFeature):
    """Share of the list at or below the document, equal scores at their mean rank. 1 is best; 0 if not retrieved."""

    NAME: ClassVar[str] = "percentile"

    def values(self, pool: RunPool) -> np.ndarray:
        starts = np.zeros(len(pool.rows), dtype=bool)
        starts[pool.list_offsets[:-1][pool.list_sizes > 0]] = True
        starts[1:] |= pool.scores[1:] != pool.scores[:-1]
        group = np.cumsum(starts) - 1
        mean_rank = (np.bincount(group, weights=pool.ranks) / np.bincount(group))[group]
        length = pool.spread(pool.list_sizes)
        return (length - mean_rank + 1.0) / length


@dataclass(frozen=True)
class ReciprocalRank(RunFeature):
    """The value `(1 + k) / (k + rank)`, 1 at the first rank, ties by descending document id; 0 if not retrieved.

    The factor 1 + k scales the summand of reciprocal rank fusion to the range of the other features.
    """

    NAME: ClassVar[str] = "reciprocal-rank"
    k: float = K

    def __post_init__(self) -> None:
        check_number(self.k, "reciprocal-rank: k", "[0, inf)")

    def values(self, pool: RunPool) -> np.ndarray:
        return (1.0 + self.k) / (self.k + pool.ranks)


@dataclass(frozen=True)
class Presence(RunFeature):
    """1 if the run retrieved the document, else 0."""

    NAME: ClassVar[str] = "presence"

    def values(self, pool: RunPool) -> np.ndarray:
        return np.ones(len(pool.rows))


@dataclass(frozen=True)
class Gap(RunFeature):
    """Min-max score minus the next document's min-max score; 0 for the last document, and if not retrieved."""

    NAME: ClassVar[str] = "gap"

    def values(self, pool: RunPool) -> np.ndarray:
        scaled = min_max_scores(pool)
        result = np.zeros(len(scaled))
        result[:-1] = scaled[:-1] - scaled[1:]
        result[pool.list_offsets[1:][pool.list_sizes > 0] - 1] = 0.0
        return result


@dataclass(frozen=True)
class RunAgreement(RunFeature):
    """A single column with the share of the topic's runs that retrieved the document."""

    NAME: ClassVar[str] = "agreement"

    def values(self, pool: RunPool) -> np.ndarray:
        there = (pool.lengths > 0).sum(axis=1)[pool.query_of_row]
        return (pool.times_retrieved / np.maximum(there, 1))[pool.rows]


@dataclass(frozen=True)
class ScoreBins(RunFeature):
    """`1[s > t]` of the min-max score s for `n` learned thresholds t of each run; all 0 if not retrieved.

    These are the features of Yue and others (2007), section 4.2. If `score-bins` is the only feature and the ranker
    accepts a `BinnedMatrix`, a byte for each run represents them.
    """

    NAME: ClassVar[str] = "score-bins"
    n: int = 50

    def __post_init__(self) -> None:
        check_positive_int(self.n, "score-bins: n")

    def values(self, pool: RunPool) -> np.ndarray:
        return min_max_scores(pool)

    def absent(self, pool: RunPool) -> np.ndarray:
        return np.full(pool.n_queries * pool.n_runs, np.nan)


@dataclass(frozen=True)
class EngineScores(RunFeature):
    """The score as normalised by a search engine for a hybrid query (`truerank.features.engine_norms`), in float32.

    The score is 0 if not retrieved. `k` is the constant of the technique "rrf".
    """

    NAME: ClassVar[str] = "engine-scores"
    engine: str = "opensearch"
    technique: str = "min-max"
    k: float = K

    def __post_init__(self) -> None:
        check_choice(self.engine, "engine-scores: engine", TECHNIQUES)
        check_choice(self.technique, f"engine-scores: technique of {self.engine}", TECHNIQUES[self.engine])
        check_number(self.k, "engine-scores: k", "[1, inf)")
        if self.engine != "vespa" and self.k != int(self.k):
            raise InvalidInputError(f"{self.engine} requires a whole number as k, got {self.k}", argument="k")

    def values(self, pool: RunPool) -> np.ndarray:
        return engine_values(pool, self.engine, self.technique, self.k).astype(np.float64)


_ALL = (MinMax, Score, ZScore, Percentile, ReciprocalRank, Presence, RunAgreement, ScoreBins, Gap, EngineScores)
KINDS: dict[str, type[RunFeature]] = {kind.NAME: kind for kind in _ALL}


@dataclass(frozen=True)
class FeatureSet:
    """A list of features, whose columns have the order of `parts`, and within a part the order of the pool's runs."""

    parts: tuple[RunFeature, ...]

    def __post_init__(self) -> None:
        if not self.parts or len(set(self.parts)) < len(self.parts):
            raise InvalidInputError(f"expected at least one feature, each only once, got {str(self) or 'none'}")

    def __add__(self, other: RunFeature | FeatureSet) -> FeatureSet:
        return FeatureSet(self.parts + (other.parts if isinstance(other, FeatureSet) else (other,)))

    def __str__(self) -> str:
        return " + ".join(map(str, self.parts))

    def fit(self, pool: RunPool, rows: np.ndarray) -> list[np.ndarray]:
        """Return the thresholds of each `score-bins` and run, from the chosen rows of the pool."""
        edges: list[np.ndarray] = []
        for part in self.parts:
            if isinstance(part, ScoreBins):
                edges += (
                    resolve("truerank.features.score_binning:ScoreBinning")(part.n)
                    .fit(_columns(part, pool, rows))
                    .edges_
                )
        return edges

    def names(self, runs: Sequence[str], edges: Sequence[np.ndarray] = ()) -> list[str]:
        """Return the names of the columns, such as `min-max of bm25`."""
        result: list[str] = []
        left = list(edges)
        for part in self.parts:
            if isinstance(part, RunAgreement):
                result.append(str(part))
            elif isinstance(part, ScoreBins):
                for run in runs:
                    result += [f"min-max of {run} > {edge:.6g}" for edge in left.pop(0)]
            else:
                result += [f"{part} of {run}" for run in runs]
        return result

    def matrix(self, pool: RunPool, rows: np.ndarray, edges: Sequence[np.ndarray] = (), *, binned: bool = False) -> Any:
        """Return columns (len(rows), p) of the chosen rows: float32, or a `BinnedMatrix` of score bins if `binned`."""
        left = list(edges)
        if binned:
            from truerank.matrices.binned import BinnedMatrix

            return BinnedMatrix.from_values(_columns(self.parts[0], pool, rows).astype(np.float64), left)
        blocks = []
        for part in self.parts:
            block = _columns(part, pool, rows)
            if isinstance(part, ScoreBins):
                for column in block.T:
                    thresholds = left.pop(0)
                    blocks.append((column[:, None] > thresholds).astype(np.float32))  # NaN exceeds nothing
            else:
                blocks.append(block)
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)


def parse_features(text: object) -> FeatureSet:
    """Return features from text such as "min-max + reciprocal-rank(k=60)"; features are returned unchanged.

    Examples
    --------
    >>> parse_features("presence + score-bins(n=10)").parts
    (Presence(), ScoreBins(n=10))
    """
    if isinstance(text, FeatureSet):
        return text
    if isinstance(text, RunFeature):
        return FeatureSet((text,))
    if not isinstance(text, str):
        raise InvalidInputError(f'features must be text such as "min-max + reciprocal-rank", got {text!r}')
    return FeatureSet(tuple(read_value(part, KINDS, "feature of runs") for part in text.split("+")))


def _columns(part: RunFeature, pool: RunPool, rows: np.ndarray) -> np.ndarray:
    """Return a column for each run (a single one for agreement) of the chosen rows, float32."""
    values = part.values(pool)
    if isinstance(part, RunAgreement):
        column = np.zeros(pool.n_rows, dtype=np.float32)
        column[pool.rows] = values
        return column[rows][:, None]
    absent = part.absent(pool).reshape(pool.n_queries, pool.n_runs)
    result = np.ascontiguousarray(absent[pool.query_of_row[rows]], dtype=np.float32)
    place = np.full(pool.n_rows, -1)
    place[rows] = np.arange(len(rows))
    entry_place = place[pool.rows]
    there = entry_place >= 0
    result[entry_place[there], pool.run_of_entry[there]] = values[there]
    return result
