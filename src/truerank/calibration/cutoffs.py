"""Find cutoffs with a stated risk for any scores: how many documents to show, and when to give no answer.

The test of a threshold is whether the mean of independent losses in [0, 1] is at most α, by an exact binomial tail or
by betting. The p-value is valid for any sample size: if the mean exceeds α, P(p ≤ δ) ≤ δ. Fixed-sequence testing tests
hypotheses in an order that was chosen before the losses were seen, and stops at the first p above δ. The probability of
rejecting any true hypothesis is then at most δ (Angelopoulos et al. 2025, proposition 3).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import bdtr, betaincinv, ndtri

from truerank.calibration import QUERY_SCORES
from truerank.calibration.estimator import BaseEstimator, check_is_fitted
from truerank.calibration.query_losses import STATISTICS, QueryLoss, denominator, list_statistics, parse_loss
from truerank.core.charts import Chart, risk
from truerank.core.checks import as_numbers, as_vector, check_number, check_parameters
from truerank.core.errors import InvalidInputError, ModelFileError, warn
from truerank.core.fitting import fits_whole
from truerank.core.parameters import parameters
from truerank.core.random_streams import seed_of, stream
from truerank.core.schema import check_fields
from truerank.core.types import ArrayLike
from truerank.data.grouping import Grouping, group_rows, query_of_rows
from truerank.significance.corrections import holm

_LARGEST_STAKE = 0.75  # share of the wealth that a loss of 1 may cost
START, STEP = 0.3, 0.02  # share of the queries that the first tested threshold answers, and that each further one adds
_ANCHORS = 20  # thresholds whose bounds hold together
_RIDGE, _ASIDE = 5.0, 0.4  # of the learned query score: penalty, in queries, and share of the queries that fit it
_MEANINGS = {
    "no-relevant": "have nothing relevant in the top {k}",
    "missed-relevant": "share of the relevant documents in a list that are not shown",
    "no-relevant-shown": "share of the queries where no relevant document is shown",
    "irrelevant-shown": "share of the shown documents that are not relevant",
}


class Drift(NamedTuple):
    """Result of `Cutoff.check`: a corrected `p` by statistic, and the medians of `moved` ones before and now."""

    p: dict[str, float]
    moved: dict[str, tuple[float, float]]


@parameters
class Cutoff(BaseEstimator):
    """Find a threshold on scores that guarantees a mean loss of at most `at_most`.

    * **When to answer** (losses of the kind "answer"): the mean loss of the queries whose query score is at least
      `threshold_` is at most `at_most`, with probability `confidence` over the calibration queries.
    * **How many documents to show** (kinds "missed" and "shown"): documents with a score of at least `threshold_` are
      shown, and the mean loss is at most `at_most`: in expectation (conformal risk control, for the kind "missed"
      without `confidence`), or with probability `confidence`. The mean is over the queries with relevant documents in
      their lists, over those with a shown document, or over all queries (suffix "-overall").

    With `confidence`, fixed-sequence testing starts at the safest threshold and stops at the first that is not
    rejected. Each test is an exact binomial test if all losses are 0 or 1, else a betting test. The guarantee requires
    queries that are exchangeable with those of `fit`; `check` tests this.

    Parameters
    ----------
    loss : str or callable, default "no-relevant@3"
        "no-relevant@k", "irrelevant@k", "1-MEASURE" (such as "1-nDCG@10"), "missed-relevant", "no-relevant-shown",
        "irrelevant-shown", or one of the last three with the suffix "-overall" (see `query_losses`). A function
        receives the grades of one query, best document first, and for the kinds "missed" and "shown" also the number
        of documents shown. A loss is a number in [0, 1].
    at_most : float, default 0.1
    confidence : float, optional
        None bounds the expected loss, which only losses of the kind "missed" allow.
    kind : "answer", "missed", "shown" or None, default None
        Kind of a loss that is a function (default: "answer"). "missed" never rises when more is shown.
    query_score : str, default "mean-top"
        Score that decides which queries are answered, with the k of the loss, else 3: "mean-top" (mean of the k highest
        scores), "expected-relevant" (their sum, of probabilities), "best", "gap" (the highest minus the second),
        "agreement" (mean share of the other runs that contain the first k documents) or "learned" (a logistic
        regression on these, fitted on 40 % of the queries, which test no threshold).
    rel : float, default 1
        Lowest relevant grade.
    random_state : int, optional
        Seed for the queries of the learned score and for the order of bets.

    Attributes
    ----------
    threshold_ : float
        Least score of an answered query or a shown document; inf answers nothing.
    curve_ : dict of arrays (t,)
        `threshold`, share `answered` (or shown), number of `queries` in the mean, `risk` (mean loss), `bound` (for this
        threshold alone, which the test sequence uses) and, with `confidence`, `simultaneous`: wider bounds that hold
        together for at most 20 thresholds with ranks fixed beforehand, NaN between them.
    n_queries_ : int
        Number of queries that tested thresholds.
    needed_ : float
        0 if a threshold gives the guarantee. Else about the number of queries with which the first tested threshold
        would give it, if its true risk equals the observed risk (binomial tail); inf unless this is below `at_most`.
    answered_, withheld_ : float
        Share of these queries that is answered (or of their documents that is shown); and 1 minus the mean loss of the
        others, NaN if there are none: the cost of the guarantee.

    Notes
    -----
    1. Thresholds are ranks of the calibration scores. The test sequence is exact if the risk does not fall as more
       queries are answered. The thresholds of "learned" come from other queries, and are exact for any scores.
    2. Equal scores are answered or shown together. The loss of a ranking breaks ties by the order of the rows.
    3. `benchmarks/calibration/bench_cutoffs.py` chose the constants on CISI, NPL and simulated queries.

    References
    ----------
    Angelopoulos, Bates, Fisch, Lei, Schuster (2024). Conformal risk control. ICLR, theorem 1. Angelopoulos, Bates,
    Candès, Jordan, Lei (2025). Learn then test. Annals of Applied Statistics 19.

    Examples
    --------
    >>> cutoff = Cutoff("missed-relevant", at_most=0.25).fit([0.9, 0.7, 0.4, 0.8, 0.3, 0.6], [1, 0, 1, 1, 0, 1],
    ...     qid=[1, 1, 1, 2, 2, 3])
    >>> cutoff.threshold_, cutoff.depth([0.9, 0.5, 0.2], qid=[7, 7, 8]).tolist()
    (0.4, [2, 0])
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "threshold_": "float in [-inf, inf]??",
        "curve_": "dict of array[points] unbounded",
        "n_queries_": "int in [0, inf]",
        "needed_ answered_ withheld_": "any??",
        "kind_": "str",
        "names_": "list[n] of str",
        "reference_": "float[queries, n] unbounded",
        "coef_ centre_ scale_": "float[]",
    }

    allowed: ClassVar[dict[str, str]] = {
        "at_most": "float in (0, 1)",
        "confidence": "float in (0, 1)?",
        "query_score": " | ".join(map(repr, QUERY_SCORES)) + "?",
    }

    loss: Any = "no-relevant@3"
    _: KW_ONLY
    at_most: float = 0.1
    confidence: float | None = None
    kind: str | None = None
    query_score: str | None = None
    rel: float = 1
    random_state: Any = None

    @fits_whole
    def fit(self, scores: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> None:
        """Find the threshold on judged queries on which the scoring model was not trained; return self.

        The first column of `scores` (n,) or (n, r) ranks; further columns are scores of other runs, NaN where a run
        lacks the document. `qid` None means one query.
        """
        loss = self._checked(parse_loss(self.loss, self.kind))
        columns, grouping = self._lists(scores, qid, loss)
        grades = as_vector(y, "y", len(columns))
        order = np.lexsort((-columns[:, 0], grouping.query_index))
        losses = loss.of_rankings(grouping.grouped(grades)[order], grouping.offsets, check_number(self.rel, "rel"))
        statistics = list_statistics(columns, grouping.offsets, loss.k or 3)
        self._set_reference(statistics, list(STATISTICS[: statistics.shape[1]]))
        if loss.kind == "answer":
            self._fit_answers(losses)
        else:
            self._fit_depth(columns[order, 0], grouping.offsets, losses, loss)

    @fits_whole
    def fit_losses(self, score: ArrayLike, loss: ArrayLike) -> None:
        """Find the threshold for any task from one score and one loss in [0, 1] for each unit; return self.

        `score` (n,) is higher where the answer is more likely right; several columns need `query_score="learned"`. The
        parameter `loss` of the constructor is only a name here.
        """
        self._checked(QueryLoss(self._name(), "answer"))
        columns = _columns(score, "score")
        losses = as_vector(loss, "loss", len(columns), "[0, 1]")
        n = columns.shape[1]
        if (n > 1 and self.query_score != "learned") or np.isnan(columns).any():
            raise InvalidInputError(
                f"score must be one finite number for each unit, got the shape {columns.shape} with "
                f"{np.isnan(columns).sum()} NaN. "
                'Several columns without NaN require query_score="learned"',
                argument="score",
            )
        self._set_reference(columns, ["score"] if n == 1 else [f"score {j + 1}" for j in range(n)])
        self._fit_answers(losses)

    def answers(self, scores: ArrayLike, qid: ArrayLike | None = None) -> np.ndarray:
        """Return whether each query is answered, bool (m,), in order of first appearance; no qid after `fit_losses`."""
        check_is_fitted(self)
        if self.kind_ != "answer":
            return self.depth(scores, qid) > 0
        return self._scores_of(self._statistics(scores, qid)) >= self.threshold_

    def depth(self, scores: ArrayLike, qid: ArrayLike | None = None) -> np.ndarray:
        """Return the number of documents to show for each query, int64 (m,), in order of first appearance."""
        check_is_fitted(self)
        if self.kind_ == "answer":
            raise InvalidInputError(
                f"the loss {self._name()} decides which queries are answered, not the depth. Call answers(scores, qid)"
            )
        columns, grouping = self._lists(scores, qid, parse_loss(self.loss, self.kind))
        return np.add.reduceat((columns[:, 0] >= self.threshold_).astype(np.int64), grouping.offsets[:-1])

    def check(self, scores: ArrayLike, qid: ArrayLike | None = None, *, level: float = 0.05) -> Drift:
        """Test whether queries in use are exchangeable with those of `fit`, and warn about what moved.

        A two-sample Kolmogorov-Smirnov test compares each statistic of the result lists, and the query score. With
        Holm's correction the probability of any warning is at most `level` where nothing changed.
        """
        from scipy.stats import ks_2samp

        check_is_fitted(self)
        check_number(level, "level", "(0, 1)")
        now = self._statistics(scores, qid)
        pairs = dict(zip(self.names_, zip(self.reference_.T, now.T)))
        pairs.setdefault(self._score_name(), (self._scores_of(self.reference_), self._scores_of(now)))
        with warnings.catch_warnings():  # SciPy warns where it replaces the exact p by the limit
            warnings.simplefilter("ignore", RuntimeWarning)
            p = dict(zip(pairs, holm(np.array([ks_2samp(*pair).pvalue for pair in pairs.values()])).tolist()))
        medians = {name: (float(np.median(before)), float(np.median(after))) for name, (before, after) in pairs.items()}
        moved = {name: medians[name] for name in pairs if p[name] <= level}
        if moved:
            what = ", ".join(
                f"{name} (median {before:.4g}, now {after:.4g})" for name, (before, after) in moved.items()
            )
            warn(f"the guarantee may not hold: queries differ from those of fit in {what}. Judge new ones, and refit")
        return Drift(p, moved)

    def plot(self) -> Chart:
        """Return a chart of risk and bound by the share answered or shown, whose `save` writes SVG, PNG or HTML."""
        check_is_fitted(self)
        return risk(self)

    def drawn_curve(self) -> dict[str, np.ndarray]:
        """Return the rows of `curve_` that have a simultaneous bound; all rows without `confidence`."""
        check_is_fitted(self)
        kept = ~np.isnan(self.curve_.get("simultaneous", self.curve_["risk"]))
        return {name: values[kept] for name, values in self.curve_.items()}

    def summary(self) -> str:
        """Return the guarantee, its confidence and its cost in one paragraph."""
        check_is_fitted(self)
        name, _, k = self._name().partition("@")
        meaning = _MEANINGS.get(name.removesuffix("-overall"), "").format(k=k)
        start = "" if self.confidence is None else f"With confidence {self.confidence:.3g}, "
        if self.kind_ != "answer":
            mean, of = "The expected" if self.confidence is None else "the mean", denominator(name, self.kind_)
            n, given = self.curve_["queries"][self.curve_["threshold"] == self.threshold_][0], len(self.reference_)
            return (
                f"{start}{mean} loss {name}{f' ({meaning})' if meaning else ''} over {of} is at most "
                f"{self.at_most:g}. Show documents with a score of at least {self.threshold_:.6g}: "
                f"{self.answered_:.1%} of the documents. The mean is that of {n} of {given} calibration queries."
            )
        promise = f"of the answered queries {meaning}"
        promise = f"at most {self.at_most:.4g} {promise}" if meaning else (
            f"the mean loss {self._name()} of the answered queries is at most {self.at_most:.4g}"
        )  # fmt: skip
        score = " ".join(dict.fromkeys(("score", self._score_name())))
        rule = f"Answer where the {score} is at least {self.threshold_:.6g}"
        if math.isinf(self.threshold_):
            rule = "Answer everything" if self.threshold_ < 0 else "Answer nothing"
            rule = f"{self._verdict()}. {rule}" if self.needed_ else rule
        cost = (
            ""
            if math.isnan(self.withheld_)
            else f" Of the other queries, {self.withheld_:.1%} would be answered correctly."
        )
        return f"{start}{promise}. {rule}: {self.answered_:.1%} of {self.n_queries_} queries.{cost}"

    def for_export(self, policy: Mapping[str, Any]) -> dict[str, Any]:
        """Return the guarantee, the score and the threshold in an export's scores, from its certificate's policy."""
        check_is_fitted(self)
        name = "score" if self.kind_ != "answer" else self._score_name()
        if name in ("learned", "agreement"):
            raise InvalidInputError(
                f"the exported scores do not determine the query score {name}. Use query_score='mean-top' or 'best'",
                argument="query_score",
            )
        left_out = 0.0 if name in ("gap", "expected-relevant") else policy["constant_left_out"]
        threshold = (self.threshold_ - left_out) * policy.get("times", 1.0)
        return {"promise": self.summary(), "kind": self.kind_, "score": name, "threshold": threshold}

    def check_model(self) -> None:
        """Check the arrays of a model file after loading."""
        if "queries" not in self.curve_:  # written before losses had denominators
            if self.kind_ != "answer":
                raise ModelFileError(
                    f"Cutoff: an earlier version averaged the loss {self._name()} over all queries. Fit the cutoff "
                    f"again, with the loss {self._name()}-overall for the same guarantee"
                )
            self.needed_ = 0.0
        check_fields(self, {"coef_": f"float[0] | float[{len(self.names_)}]"})

    def _checked(self, loss: QueryLoss) -> QueryLoss:
        """Return the loss, after a check of all parameters."""
        check_parameters(self)
        if self.confidence is None and loss.kind != "missed":
            raise InvalidInputError(
                f"the expected loss {loss.name} has no known bound, because the loss can rise when more is answered or "
                "shown. Pass confidence, such as confidence=0.9",
                argument="confidence",
            )
        if self.query_score is not None and loss.kind != "answer":
            raise InvalidInputError(
                f"query_score has no effect on {loss.name}, which sets a depth. Omit it", argument="query_score"
            )
        self.kind_ = loss.kind
        return loss

    def _name(self) -> str:
        return str(getattr(self.loss, "__name__", self.loss))

    def _score_name(self) -> str:
        return "score" if self.names_ == ["score"] else self.query_score or "mean-top"

    def _lists(self, scores: ArrayLike, qid: ArrayLike | None, loss: QueryLoss) -> tuple[np.ndarray, Grouping]:
        """Return scores (n, r), grouped by query."""
        columns = _columns(scores, "scores")
        if loss.kind != "answer" and columns.shape[1] > 1:
            raise InvalidInputError(
                f"{loss.name} requires one score per document, got {columns.shape[1]} columns. Pass scores (n,)"
            )
        if self.query_score == "agreement" and not np.isnan(columns[:, 1:]).any():
            raise InvalidInputError(
                "no score is NaN, but query_score='agreement' requires scores (n, r) of several runs, with NaN where "
                "a run lacks the document. Set scores below the depth that you trust to NaN",
                argument="scores",
            )
        if self.query_score == "expected-relevant" and not ((columns[:, 0] >= 0) & (columns[:, 0] <= 1)).all():
            what = f"probabilities as scores, got {columns[:, 0].min():g} to {columns[:, 0].max():g}. Or use mean-top"
            raise InvalidInputError(f"expected-relevant requires {what}", argument="scores")
        grouping = group_rows(np.zeros(len(columns)) if qid is None else qid, len(columns))
        return grouping.grouped(columns), grouping

    def _statistics(self, scores: ArrayLike, qid: ArrayLike | None) -> np.ndarray:
        """Return the statistics of `reference_` for other queries."""
        if self.names_[0].startswith("score"):
            if qid is not None:
                raise InvalidInputError("qid has no effect: each row is a unit after fit_losses. Omit qid")
            found = _columns(scores, "score")
        else:
            loss = parse_loss(self.loss, self.kind)
            columns, grouping = self._lists(scores, qid, loss)
            found = list_statistics(columns, grouping.offsets, loss.k or 3)
        if found.shape[1] != len(self.names_):
            raise InvalidInputError(
                f"fit used {', '.join(self.names_)}, got {found.shape[1]} statistics. Pass the same columns"
            )
        return found

    def _set_reference(self, statistics: np.ndarray, names: list[str]) -> None:
        self.reference_, self.names_, self.withheld_ = statistics, names, math.nan
        self.coef_, self.centre_, self.scale_ = (np.empty(0) for _ in range(3))

    def _scores_of(self, statistics: np.ndarray) -> np.ndarray:
        """Return the query score (m,) of statistics (m, s)."""
        if len(self.coef_):
            return ((statistics - self.centre_) / self.scale_ * self.coef_).sum(axis=1)
        name = self._score_name()
        if name == "expected-relevant":
            return statistics[:, 1] * np.minimum(np.exp(statistics[:, 5]), parse_loss(self.loss, self.kind).k or 3)
        return statistics[:, self.names_.index(name)]

    def _fit_answers(self, losses: np.ndarray) -> None:
        order = stream(seed_of(self.random_state), "cutoff").permutation(len(losses))
        n_aside = math.ceil(_ASIDE * len(losses)) if self.query_score == "learned" else 0
        aside, tested = order[:n_aside], order[n_aside:]
        if n_aside:  # log-odds of no loss, linear in the standardised statistics
            from truerank.calibration.log_odds_fits import fit_standardised

            known, right = self.reference_[aside], 1 - losses[aside]
            coef, self.centre_, self.scale_ = fit_standardised(known, right, None, _RIDGE, 1e-3)
            self.coef_ = coef[:-1]
        scores = self._scores_of(self.reference_)
        values, losses = scores[tested], losses[tested]
        grid = _thresholds(scores[aside] if n_aside else values, START)
        answered = values[:, None] >= grid
        failed = self._test(grid, answered.mean(axis=0), np.where(answered, losses[:, None], np.nan))
        left = values < self.threshold_
        self.answered_ = 1 - float(left.mean())
        self.withheld_ = float(1 - losses[left].mean()) if left.any() else math.nan
        if failed:
            warn(f"no query will be answered: {failed}. {self._verdict()}. Raise at_most, or use another query_score")

    def _fit_depth(self, scores: np.ndarray, offsets: np.ndarray, table: np.ndarray, loss: QueryLoss) -> None:
        """Find the depth: `scores` (n,) are sorted in each query, `table` has losses at its depths 0, 1, …, n_q."""
        m = len(offsets) - 1
        at_depth_0, row = offsets[:-1] + np.arange(m), np.arange(len(scores)) + query_of_rows(offsets) + 1
        rises = np.nan_to_num(table[row] - table[row - 1])
        if loss.kind == "missed" and (rises > 1e-12).any():
            raise InvalidInputError(
                f'the loss {loss.name} rises when more is shown. Pass kind="shown", confidence=0.9', argument="kind"
            )
        if np.isnan(table[row]).all():
            raise InvalidInputError(
                f"no list has a document of grade {self.rel:g} or more. Judge more queries", code="nothing-relevant"
            )
        if self.confidence is None:
            self._control(scores, rises, table[at_depth_0])
        else:
            grid = _thresholds(scores, STEP)[:: -1 if loss.kind == "missed" else 1]
            shown = scores[:, None] >= grid
            depths = np.add.reduceat(shown.astype(np.int64), offsets[:-1], axis=0)
            bets = stream(seed_of(self.random_state), "cutoff").permutation(m)
            if failed := self._test(grid, shown.mean(axis=0), table[at_depth_0[:, None] + depths][bets]):
                raise InvalidInputError(
                    f"{loss.name}: {failed}. {self._verdict()}. Otherwise raise at_most", code="no-threshold"
                )
        self.answered_ = float((scores >= self.threshold_).mean())

    def _test(self, grid: np.ndarray, shares: np.ndarray, losses: np.ndarray) -> str:
        """Set the last threshold of the sequence before the first that is not rejected; return why there is none.

        The losses (n, t) are NaN for queries that are not in the mean. A threshold with too few other losses cannot be
        rejected, and does not end the sequence. The sequence for shown documents starts where the share START of the
        queries has a shown document.
        """
        known, confidence = ~np.isnan(losses), self.confidence or 0
        counts = known.sum(axis=0)
        self.n_queries_ = int(counts.max())
        losses = np.nan_to_num(np.take_along_axis(losses, np.argsort(~known, axis=0, kind="stable"), axis=0))
        least = least_losses(self.at_most, confidence, bool(((losses == 0) | (losses == 1)).all()))
        if self.n_queries_ < least:
            raise InvalidInputError(
                f"at least {least} queries are required to test thresholds for a loss of at most {self.at_most:g} "
                f"with confidence {confidence:g}, even if no loss occurs, got {self.n_queries_}. Judge more queries",
                code="too-few-queries",
            )
        risk, p, bound = mean_bounds(losses, counts, self.at_most, confidence)
        at = np.linspace(0, len(grid) - 1, min(_ANCHORS, len(grid))).astype(int)
        simultaneous, each = np.full(len(grid), np.nan), 1 - (1 - confidence) / len(at)
        simultaneous[at] = mean_bounds(losses[:, at], counts[at], self.at_most, each)[2]
        self.curve_ = {
            "threshold": grid, "answered": shares, "queries": counts, "risk": risk, "bound": bound,
            "simultaneous": simultaneous,
        }  # fmt: skip
        tested = np.flatnonzero(counts >= max(least, START * self.n_queries_ if self.kind_ == "shown" else 0))
        n = int(np.argmin(np.append(p[tested] <= 1 - confidence, False)))
        self.threshold_, self.needed_ = float(grid[tested][n - 1]) if n else math.inf, 0.0
        if n:
            return ""
        first = tested[0]
        self.needed_ = queries_for(float(risk[first]), self.at_most, confidence) * len(self.reference_) / counts[first]
        return f"at the first threshold the mean loss is {risk[first]:.3f} and its bound {bound[first]:.3f}"

    def _verdict(self) -> str:
        """Return a sentence that no threshold gives the guarantee, with the number of queries that would be needed."""
        more = f"about {self.needed_:,.0f} would be needed if the true loss equals this loss"
        if math.isinf(self.needed_):
            more = f"more would not help, because this loss is not below at_most={self.at_most:g}"
        return f"No threshold gives this guarantee with {len(self.reference_)} queries; {more}"

    def _control(self, scores: np.ndarray, rises: np.ndarray, start: np.ndarray) -> None:
        """Apply conformal risk control to the losses `start` (m,) with nothing shown and the rise of each document."""
        order, self.n_queries_ = np.argsort(-scores, kind="stable"), int(np.count_nonzero(~np.isnan(start)))
        m, self.needed_ = self.n_queries_, 0.0
        last = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # of equal scores
        grid, shown = np.append(np.inf, scores[order][last]), np.append(0, last + 1)
        risk = float(np.nanmean(start)) + np.append(0.0, np.cumsum(rises[order]))[shown] / m
        bound = np.minimum((m * risk + 1) / (m + 1), 1.0)
        kept = np.flatnonzero(bound <= self.at_most + 1e-12)
        if not len(kept):
            lowest = max(float(risk.min()), 0.0)
            enough = (1 - self.at_most) / (self.at_most - lowest) if lowest < self.at_most else math.inf
            self.needed_ = math.ceil(enough - 1e-9) * len(start) / m if enough < math.inf else enough
            raise InvalidInputError(
                f"even if everything is shown, the mean loss of {m} queries is {lowest:.4f}, and its conformal "
                f"bound {bound.min():.4f} exceeds at_most={self.at_most:g}. {self._verdict()}. Otherwise use "
                f"at_most={math.ceil(1e4 * bound.min()) / 1e4:g}",
                code="no-threshold",
            )
        self.threshold_ = float(grid[kept[0]])
        at = np.unique(np.append(np.linspace(0, len(grid) - 1, 101).astype(np.int64), kept[0]))
        self.curve_ = {
            "threshold": grid[at], "answered": shown[at] / len(scores), "queries": np.full(len(at), m),
            "risk": risk[at], "bound": bound[at],
        }  # fmt: skip


def _thresholds(values: np.ndarray, first: float) -> np.ndarray:
    """Return thresholds that shares first, first + STEP, …, 1 of the values reach, as far as ties allow; descending."""
    ordered = np.sort(values)[::-1]
    shares = np.minimum(np.arange(first, 1 + STEP / 2, STEP), 1.0)
    counts = np.unique(np.ceil(shares * len(values) - 1e-9).astype(np.int64))
    # Just above the next value: given that value, the values before it are a sample of all that exceed it.
    found = [np.nextafter(ordered[c], np.inf) if c < len(values) else -np.inf for c in counts]
    return np.unique([*found, -np.inf])[::-1]


def _columns(scores: ArrayLike, name: str) -> np.ndarray:
    """Return scores as float64 (n, r); the first column is finite, none is infinite."""
    columns = as_numbers(scores, name)
    columns = columns[:, None] if columns.ndim == 1 else columns
    if columns.ndim != 2 or 0 in columns.shape:
        raise InvalidInputError(f"{name} must have shape (n,) or (n, r) with at least one row, got {np.shape(scores)}")
    bad = np.isinf(columns) | (np.isnan(columns) & (np.arange(columns.shape[1]) == 0))
    if bad.any():
        what = (
            f"{name} has {columns[bad][0]} in row {np.argwhere(bad)[0, 0] + 1}, and only further columns may have NaN"
        )
        raise InvalidInputError(what, argument=name)
    return columns


def least_losses(at_most: float, confidence: float, binary: bool = True) -> int:
    """Return the least number of losses, all 0, whose upper bound at `confidence` is at most `at_most`.

    >>> least_losses(0.35, 0.9), least_losses(0.35, 0.9, binary=False)  # ln 0.1 / ln 0.65 = 5.3
    (6, 7)
    """
    n = math.ceil(math.log(1 - confidence) / math.log1p(-at_most) - 1e-9)
    while not binary and betting_p(np.zeros((n, 1)), np.array([n]), at_most, confidence)[0] > 1 - confidence:
        n += 1 + n // 50
    return n


def queries_for(risk: float, at_most: float, confidence: float) -> float:
    """Return the least n at which n losses with the mean `risk` reject a mean above α by the binomial tail; else inf.

    >>> queries_for(0.0, 0.35, 0.9), queries_for(0.2, 0.35, 0.9), queries_for(0.35, 0.35, 0.9)
    (6.0, 25.0, inf)
    """
    if risk >= at_most:
        return math.inf
    n = np.arange(1, 100_001)
    enough = np.flatnonzero(bdtr(np.ceil(risk * n - 1e-9), n, at_most) <= 1 - confidence)
    normal = at_most * (1 - at_most) * (ndtri(confidence) / (at_most - risk)) ** 2
    return float(n[enough[0]] if len(enough) else math.ceil(normal))


def mean_bounds(
    losses: np.ndarray, counts: np.ndarray, at_most: float, confidence: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean losses (t,), p-values of a mean above `at_most`, and upper bounds at `confidence`.

    `losses` (n, t) are independent, in an order that does not depend on them; column j has its first `counts[j]` rows.
    Losses that are all 0 or 1 give the binomial tail and the bound of Clopper and Pearson, others the betting test.
    """
    lost = np.where(np.arange(len(losses))[:, None] < counts, losses, 0.0).sum(axis=0)
    risk = lost / np.maximum(counts, 1)
    if not ((losses == 0) | (losses == 1)).all():
        return risk, betting_p(losses, counts, at_most, confidence), betting_bound(losses, counts, confidence)
    p = np.where(counts > 0, bdtr(lost, np.maximum(counts, 1), at_most), 1.0)
    return risk, p, np.where(lost < counts, betaincinv(lost + 1, np.maximum(counts - lost, 1), confidence), 1.0)


def betting_p(losses: np.ndarray, counts: np.ndarray, at_most: float | np.ndarray, confidence: float) -> np.ndarray:
    """Return 1/(highest wealth) of bettors against means above α, float64 (t,).

    Before each loss L the bettor stakes the share ν = min(c/(1 - α), sqrt(2 ln(1/δ)/(n σ²))), c = 3/4, and the wealth
    is multiplied by 1 + ν(α - L). σ² is the regularised variance of the losses before it (Waudby-Smith and Ramdas 2024,
    JRSS B 86, equations 25 and 26, one-sided). By Ville's inequality, the inverse of the wealth is a p-value.
    """
    place = np.arange(2, len(losses) + 2)[:, None]
    mean = (0.5 + np.cumsum(losses, axis=0)) / place
    variance = (0.25 + np.cumsum((losses - mean) ** 2, axis=0)) / place
    before = np.vstack([np.full((1, losses.shape[1]), 0.25), variance[:-1]])
    stake = np.sqrt(2 * -math.log(1 - confidence) / (np.maximum(counts, 1) * before))
    stake = np.where(place - 2 < counts, np.minimum(stake, _LARGEST_STAKE / (1 - at_most)), 0.0)
    return np.exp(-np.maximum(np.cumsum(np.log1p(stake * (at_most - losses)), axis=0).max(axis=0), 0.0))


def betting_bound(losses: np.ndarray, counts: np.ndarray, confidence: float) -> np.ndarray:
    """Return the least means (t,) that `betting_p` rejects at `confidence`, rounded up by at most 0.001."""
    low, high = np.zeros(losses.shape[1]), np.ones(losses.shape[1])
    for _ in range(10):
        middle = (low + high) / 2
        rejected = betting_p(losses, counts, middle, confidence) <= 1 - confidence
        low, high = np.where(rejected, low, middle), np.where(rejected, middle, high)
    return high
