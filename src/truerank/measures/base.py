"""The base class of measures. A measure is an immutable value: `nDCG @ 10`, `AP(rel=2)`."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.types import ArrayLike
from truerank.data.ranking_data import Judgements
from truerank.measures.conventions import CONVENTIONS, DEFAULT_CONVENTION, GRADES, convention_value
from truerank.measures.derived import BY_ID, LARGEST_EXPONENT, as_read
from truerank.measures.rank_form import RankForm
from truerank.measures.ranking import TIES, Ordered, Ranking


def _whole(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and 1 <= int(value) < 2**31


def _number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(float(value))


def _pairs(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and all(_number(a) and _number(b) for a, b in value)


# Setting -> (its values or a test of a value, description of valid values).
SETTINGS: dict[str, tuple[Callable[[Any], bool] | tuple[str | bool, ...], str]] = {
    "cutoff": (_whole, "an integer >= 1 and < 2^31"),
    "rel": (lambda value: _number(value) and value > 0, "a grade > 0 (the lowest that counts as relevant)"),
    "gain": (("exponential", "linear"), "'exponential' (2^grade - 1) or 'linear' (grade)"),
    "discount": (("log2", "letor"), "'log2' (1/log2(r + 1)) or 'letor' (1 for r <= 2, else 1/log2(r))"),
    "short": (
        ("pad", "zero", "shorten"),
        "'pad', 'zero' (a list shorter than the cutoff scores 0) or 'shorten'",
    ),
    "denominator": (("relevant", "reachable"), "'relevant' (R) or 'reachable' (the smaller of R and cutoff)"),
    "ties": (TIES, "one of " + ", ".join(map(repr, TIES))),
    "compare": (("float64", "float32"), "'float64' or 'float32'"),
    "empty": (("zero", "one", "skip"), "'zero', 'one' or 'skip'"),
    "missing_topics": (("zero", "skip"), "'zero' or 'skip'"),
    "judged_only": ((True, False), "True or False"),
    "grades": (tuple(GRADES), "one of " + ", ".join(map(repr, GRADES))),
    "graded": ((True, False), "True or False"),
    "rounding": (
        ("nearest", "truncated"),
        "'nearest' (trec_eval 10) or 'truncated' (after adding 0.9: trec_eval 9)",
    ),
    "relative": ((True, False), "True or False"),
    "recall": (lambda value: _number(value) and 0 <= value <= 1, "a number in [0, 1]"),
    "beta": (lambda value: _number(value) and value > 0, "a number > 0"),
    "gains": (_pairs, "a mapping of grades to gains, such as {0: 1, 1: 4}"),
    "max_grade": (lambda value: _number(value) and 0 < value <= LARGEST_EXPONENT, "a number in (0, 1000]"),
    "p": (lambda value: _number(value) and 0 < value < 1, "a number in (0, 1)"),
    "a": (_number, "a grade"),
    "b": (_number, "a grade"),
    "root": (lambda value: True, "a name of trec_eval"),
    "parameter": (_number, "a number"),
    "function": (callable, "a function of the ranked grades"),
    "convention": (tuple(CONVENTIONS), "one of " + ", ".join(CONVENTIONS)),
}
EMPTY_VALUES = {"zero": 0.0, "one": 1.0, "skip": np.nan}
"""Value of a query in which the measure is undefined, by the setting `empty`."""
_COMMON = ("ties", "compare", "empty", "missing_topics", "judged_only", "grades", "convention")


# Not a dataclass: repr and equality distinguish given settings from those of a convention, `gains` must hash, and the
# message about an unknown setting lists the known ones. A dataclass would need its own __init__, __call__ and repr too.
class Measure:
    """Base class of all measures, with settings, printing, and the rules for empty queries and missing topics.

    Calling a measure returns a variant (`AP(rel=2)`), and `measure @ k` sets the cutoff. Settings that are not given
    come from `convention`, by default `ranklib`. Measures compare and hash by settings; `parse_measure` inverts `repr`.

    Parameters
    ----------
    rel : number
        Lowest relevant grade of binary measures, by default 1 (mslr: 2).
    cutoff : int
        Number of ranks that count, from the first.
    ties : {"stable", "trec", "ascending", "average", "optimistic", "pessimistic", "end"}
        Order of documents with equal scores: row order; document id, descending or ascending (row order without ids);
        expected value over random orders; best or worst grade first; every document at the last tied rank (AP only).
    compare : {"float64", "float32"}
        Precision of the comparison of scores. XGBoost, and trec_eval until version 9, use float32.
    empty : {"zero", "one", "skip"}
        Value of a query without relevant documents. With `skip`, the value is NaN, and means leave the query out.
    missing_topics : {"zero", "skip"}
        Value of a query that has judgements but no ranked document; this setting takes precedence over `empty`.
    judged_only : bool
        Whether to remove unjudged documents from the ranking first.
    grades : {"any", "truncated", "relevant", …}
        Treatment of grades: as they are; truncated to whole numbers, as trec_eval does; 0 for grades below 1, as ranx
        does. Any other value is a limit, and larger grades are an error.
    convention : str
        The tool whose rules apply to settings that are not given: see `truerank.measures.conventions`.

    Examples
    --------
    >>> from truerank.measures import AP, nDCG
    >>> AP(rel=2), nDCG @ 10, nDCG(gain="linear") @ 5
    (AP(rel=2), nDCG@10, nDCG(gain='linear')@5)
    """

    NAME: ClassVar[str] = ""
    OWN: ClassVar[tuple[str, ...]] = ()  # settings of this measure; those in POSITIONAL are printed without a name
    POSITIONAL: ClassVar[tuple[str, ...]] = ()
    REQUIRED: ClassVar[tuple[str, ...]] = ()
    DEFAULTS: ClassVar[dict[str, Any]] = {}  # these override a convention
    OWN_TIES: ClassVar[str | None] = None  # the order of ties that the measure requires
    TIE_AVERAGE: ClassVar[bool] = (
        False  # whether the expected value over the orders of tied documents has a closed form
    )
    AT: ClassVar[str] = "cutoff"  # the setting after @
    AGGREGATE: ClassVar[str] = "mean"  # how a report combines queries: "mean", "sum" or "geometric"
    higher_is_better: ClassVar[bool] = True

    _given: dict[str, Any]
    _key: tuple[Any, ...]

    def __init__(self, *positional: Any, **settings: Any) -> None:
        if len(positional) > len(self.POSITIONAL):
            raise InvalidInputError(
                f"{self.NAME} accepts {len(self.POSITIONAL)} values without a name, got {positional}", code="positional"
            )
        given = dict(zip(self.POSITIONAL, positional))
        for name, value in settings.items():
            if name not in self.OWN and name not in _COMMON:
                known = ", ".join((*self.OWN, *_COMMON))
                raise InvalidInputError(
                    f"{self.NAME} has no setting {name!r}. Its settings are {known}", code="unknown-setting"
                )
            if name in given:
                raise InvalidInputError(f"{self.NAME}: {name} was given twice. Write it once")
            given[name] = value
        if isinstance(given.get("gains"), Mapping):
            given["gains"] = tuple(sorted(given["gains"].items()))
        for name, value in given.items():
            valid, expected = SETTINGS[name]
            if not (isinstance(value, str | bool) and value in valid if isinstance(valid, tuple) else valid(value)):
                raise InvalidInputError(f"{self.NAME}: {name} must be {expected}, got {value!r}", code="setting")
            if isinstance(value, np.generic):
                given[name] = value.item()
        object.__setattr__(self, "_given", given)
        object.__setattr__(self, "_key", (self.NAME, tuple(sorted(given.items(), key=itemgetter(0)))))

    def __call__(self, *positional: Any, **settings: Any) -> Measure:
        """Return the measure with other settings."""
        named = dict(zip(self.POSITIONAL, positional))
        if len(positional) > len(self.POSITIONAL) or named.keys() & settings.keys():
            return type(self)(*positional, **settings)  # raises
        return type(self)(**{**self._given, **named, **settings})

    def __matmul__(self, cutoff: object) -> Measure:
        """Return the measure over the first `cutoff` ranks (IPrec: at a level of recall)."""
        return self(**{self.AT: cutoff})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"measures are immutable. Create another measure: {self.NAME}({name}={value!r})")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("measures are immutable")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measure) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return self._text(self._given)

    @property
    def name(self) -> str:
        """The measure as printed in reports, which state the convention once."""
        return self._text({key: value for key, value in self._given.items() if key != "convention"})

    @property
    def label(self) -> str:
        """The measure with its convention, such as "nDCG@10 (ranklib)"."""
        return f"{self.name} ({self.convention})"

    def _text(self, given: dict[str, Any]) -> str:
        inside = [repr(given[name]) for name in self.POSITIONAL if name in given]
        given = given if "gains" not in given else given | {"gains": dict(given["gains"])}
        inside += [f"{k}={given[k]!r}" for k in sorted(given) if k != self.AT and k not in self.POSITIONAL]
        text = self.NAME + (f"({','.join(inside)})" if inside else "")
        return f"{text}@{given[self.AT]}" if self.AT in given else text

    def setting(self, name: str) -> Any:
        """Return a setting: the given value, else the measure's default, else the convention's, else None."""
        if name in self._given:
            return self._given[name]
        if name in self.DEFAULTS:
            return self.DEFAULTS[name]
        return convention_value(self._given.get("convention", DEFAULT_CONVENTION), self.NAME, name)

    def gives(self, name: str) -> bool:
        """Return whether a setting was given and is not left to the convention."""
        return name in self._given

    @property
    def convention(self) -> str:
        """The convention of settings that are not given."""
        return self._given.get("convention", DEFAULT_CONVENTION)

    @property
    def cutoff(self) -> int | None:
        """The number of ranks that count, or None for all ranks."""
        return self._given.get("cutoff")

    @property
    def rises_with_grades(self) -> bool:
        """Return whether the value never falls when two documents swap ranks so that the better grade comes first."""
        return True

    @property
    def rel(self) -> float:
        """The lowest grade that counts as relevant."""
        return self.setting("rel")

    def pinned(self, convention: str) -> Measure:
        """Return the measure with this convention, unless it already has a convention."""
        return self if "convention" in self._given else self(convention=convention)

    def check(self) -> Measure:
        """Return the measure; raise if a required setting is missing or settings contradict each other."""
        for name in self.REQUIRED:
            if name not in self._given:
                example = f"{self.NAME}@{10 if name == 'cutoff' else 0.1}" if name == self.AT else f"{self.NAME}(…)"
                raise InvalidInputError(f"{self!r} requires {name}, for example {example}", code="no-cutoff")
        if self.setting("ties") == "average" and not self.TIE_AVERAGE:
            raise InvalidInputError(
                f"{self.NAME} has no closed form for the average over tied documents. Choose another rule, for example "
                f"{self.NAME}(ties='stable')",
                code="no-average",
            )
        if self.setting("ties") == "end" and self.NAME != "AP":
            raise InvalidInputError(f"ties='end' is scikit-learn's rule for AP only, not for {self.NAME}", code="ties")
        return self

    def check_mean(self) -> Measure:
        """Return the measure; raise if it is a geometric mean, which tests and losses cannot use."""
        if self.AGGREGATE == "geometric":
            raise InvalidInputError(
                f"{self.name} is a geometric mean over queries, but a comparison tests differences of means",
                remedies=["compare AP"],
                code="geometric",
            )
        return self

    def improves(self, value: float, best: float | None, tolerance: float = 0.0) -> bool:
        """Return whether `value` is better than `best` by more than `tolerance`; any value is better than None.

        >>> from truerank.measures import AP, pairs
        >>> AP.improves(0.6, 0.5), pairs(2, 0).improves(0.6, 0.5), AP.improves(0.0, None)
        (True, False, True)
        """
        if best is None:
            return True
        return value > best + tolerance if self.higher_is_better else value < best - tolerance

    def tie_averaged(self) -> Measure:
        """Return the measure with a tie rule that does not depend on the order of the rows.

        Early stopping and tuning use the returned measure. The rule is the average over all orders of tied documents if
        the measure has a closed form for it, else the lowest grades first (`ties="pessimistic"`). A given rule
        (`AP(ties="stable")`), or a rule of the convention that ignores the order of the rows, is kept.

        >>> from truerank.measures import AP, ERR
        >>> AP.tie_averaged(), ERR.tie_averaged(), AP(ties="stable").tie_averaged()
        (AP(ties='average'), ERR(ties='pessimistic'), AP(ties='stable'))
        """
        if "ties" in self._given or self.setting("ties") not in ("stable", *BY_ID):
            return self
        return self(ties="average" if self.TIE_AVERAGE else "pessimistic")

    def per_query(self, judgements: Judgements, scores: ArrayLike) -> np.ndarray:
        """Return the value of every query, float64 (m,), for scores (n,); or (k, m) for k rankings (k, n).

        Scores are in the row order of the judgements, and higher scores rank first. A value is NaN only if a query is
        skipped (`empty="skip"`, `missing_topics="skip"`). The documents of each query are sorted once. To share the
        sort among measures, use `values` with one `Ranking`.
        """
        scores = np.asarray(scores)
        if scores.ndim == 2 and scores.size > _BLOCK and len(scores) > 1:
            step = max(1, _BLOCK // max(1, scores.shape[1]))
            parts = [self.per_query(judgements, scores[i : i + step]) for i in range(0, len(scores), step)]
            return np.concatenate(parts)
        return self.values(Ranking(judgements, scores))

    def values(self, ranking: Ranking) -> np.ndarray:
        """Return the value of every query of a `Ranking`: (m,), or (k, m) for k rankings."""
        self.check()
        if (rule := self.setting("grades")) != "any":
            ranking = ranking.as_read(rule)
        if self.setting("judged_only"):
            ranking = ranking.judged_only()
        judgements = ranking.judgements
        form, ties = self.form_of(judgements), self.setting("ties")
        if form is not None and ties != "end" and (kernel := sys.modules.get("truerank.measures.kernel")) is not None:
            compiled = kernel.values_of_ranking(self, ranking)
            if compiled is not None:
                return compiled[0] if ranking.single else compiled
        ordered = ranking.ordered(self.OWN_TIES or ties, self.setting("compare"))
        if form is not None and ties != "end":
            values, empty = form.values(ordered), form.empty
        else:
            values, empty = self._values(ordered)
        rule = self.setting("empty")
        if empty.any():
            values = np.where(empty, EMPTY_VALUES[rule], values)
        missing = judgements.offsets[1:] == judgements.offsets[:-1]
        if missing.any():
            values = np.where(missing, 0.0 if self.setting("missing_topics") == "zero" else np.nan, values)
        return values[0] if ranking.single else values

    def mean(self, judgements: Judgements, scores: ArrayLike, query_weight: np.ndarray | None = None) -> float:
        """Return the mean over queries that are not skipped, weighted by `query_weight` (m,); 0 if no query remains."""
        return self.aggregate(self.per_query(judgements, scores), query_weight)

    def aggregate(self, values: np.ndarray, query_weight: np.ndarray | None = None) -> float:
        """Return the mean of the values (m,) without NaN, weighted by `query_weight` (m,).

        Counts (`NumRet`, `NumQ`, …) are summed, and GMAP is a geometric mean.
        """
        if self.AGGREGATE == "sum":
            return float(np.nansum(values if query_weight is None else values * query_weight))
        if self.AGGREGATE == "geometric":
            counted = ~np.isnan(values) & (True if query_weight is None else np.asarray(query_weight) > 0)
            return float(np.exp(mean_of(log_values(values), query_weight))) if counted.any() else 0.0
        return mean_of(values, query_weight)

    def average(self, values: np.ndarray) -> float:
        """Return the mean of the values (m,) without NaN as comparisons do, also of counts; GMAP is geometric."""
        return mean_of(values) if self.AGGREGATE == "sum" else self.aggregate(values)

    def swap_deltas(self, grades: ArrayLike, scores: ArrayLike) -> np.ndarray:
        """Return the change (n, n) of the measure for each swap of two documents of one query.

        Entry (i, j) is the value after documents i and j have swapped ranks, minus the value before. Ties are broken
        before the swap. This default costs O(n³ log n), and tests compare closed forms with it.
        """
        grades = np.asarray(grades, dtype=np.float64)
        n = len(grades)
        judgements = Judgements(grades, np.array([0, n]))
        ties = self.setting("ties")
        ranking = Ranking(judgements, scores).ordered("stable" if ties in ("average", "end") else ties, "float64")
        place = np.empty(n)
        place[ranking.rows[0]] = np.arange(n)
        deltas = np.zeros((n, n))
        plain = self(ties="stable", compare="float64")
        before = plain.per_query(judgements, -place)
        for i in range(n - 1):
            swapped = np.tile(-place, (n - i - 1, 1))
            others = np.arange(i + 1, n)
            swapped[:, i] = -place[others]
            swapped[np.arange(len(others)), others] = -place[i]
            deltas[i, others] = deltas[others, i] = (plain.per_query(judgements, swapped) - before)[:, 0]
        return deltas

    def rank_form(self, judgements: Judgements) -> RankForm | None:
        """Return the measure as a function of the ranks of contributing documents, or None if it has no such form."""
        return None

    def form_of(self, judgements: Judgements) -> RankForm | None:
        """Return `rank_form`, cached with the judgements."""
        key = ("form", self._key)
        if key not in judgements.cache:
            judgements.cache[key] = self.rank_form(judgements)
        return judgements.cache[key]

    def limits(self, judgements: Judgements) -> np.ndarray | None:
        """Return the number of ranks that count in each query (m,), or None for all ranks."""
        return None if self.cutoff is None else np.full(judgements.n_queries, self.cutoff)

    def count_empty(self, judgements: Judgements) -> int:
        """Return the number of queries without relevant documents, in which the measure is undefined."""
        judgements = as_read(judgements, self.setting("grades")) or judgements
        form = self.form_of(judgements)
        if form is not None:
            return int(np.count_nonzero(form.empty))
        ranking = Ranking(judgements, np.zeros(judgements.n_rows))
        _, empty = self._values(ranking.ordered(self.OWN_TIES or "stable", "float64"))
        return int(np.count_nonzero(empty))

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        """Return values (k, m) and which queries are empty (m,); for measures without a rank form.

        If `ordered.ties` is "average", which TIE_AVERAGE allows, they are expected values over all orders of ties.
        """
        raise NotImplementedError


_BLOCK = 200_000  # number of scores that are ranked at a time and stay in the processor's cache


def log_values(values: np.ndarray) -> np.ndarray:
    """Return the logarithm of each value (m,), at least log(0.00001), for the geometric mean."""
    return np.log(np.maximum(values, 1e-5))


def mean_of(values: np.ndarray, query_weight: np.ndarray | None = None) -> float:
    """Return the mean of the values (m,) without NaN, weighted by `weights` (m,) if given; 0 without values."""
    keep = ~np.isnan(values)
    if query_weight is None:
        return float(values[keep].sum() / keep.sum()) if keep.any() else 0.0
    weight = np.asarray(query_weight, dtype=np.float64)[keep]
    total = weight.sum()
    # Not a dot product, whose bits depend on the number of BLAS threads.
    return float(np.sum(values[keep] * weight) / total) if total > 0 else 0.0
