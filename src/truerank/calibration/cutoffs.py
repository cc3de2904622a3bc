"""Cut-offs with a stated risk: how deep to show a ranking, and when to answer nothing, for any scores."""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from truerank.calibration import risk_bounds
from truerank.calibration.log_odds_fits import fit_log_odds
from truerank.calibration.query_losses import QueryLoss, parse_loss
from truerank.calibration.query_scores import QUERY_SCORES, STATISTICS, list_statistics
from truerank.core.checks import as_numbers, check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError, ModelFileError, warn
from truerank.core.fitting import fits_whole
from truerank.core.names import resolve
from truerank.core.parameters import parameters
from truerank.core.random_streams import seed_of, stream
from truerank.core.types import ArrayLike
from truerank.data.grouping import Grouping, group_rows, query_of_rows
from truerank.significance.corrections import holm

_OPEN = {"open_minimum": True, "open_maximum": True}
_RIDGE = 5.0  # of the learned query score, in queries
_ASIDE = 0.4
_MEANINGS = {
    "no-relevant": "have nothing relevant in the top {k}",
    "missed-relevant": "share of relevant documents that are not shown",
    "no-relevant-shown": "share of queries with relevant documents of which none is shown",
    "irrelevant-shown": "share of shown documents that are not relevant",
}


@dataclass(frozen=True)
class Drift:
    """What `Cutoff.check` found: corrected `p` by statistic, and of those that `moved` the medians before and now."""

    p: dict[str, float]
    moved: dict[str, tuple[float, float]]


@parameters
class Cutoff(BaseEstimator):
    """A threshold on scores that keeps a promise: a loss of at most α, in expectation or with a stated confidence.

    Two kinds of promises are kept, and the query is their unit.

    * **When to answer** (losses of the kind "answer"): among the queries whose query score reaches `threshold_`, the
      mean loss is at most `at_most`, with probability `confidence` over the calibration queries. Thresholds are tested
      from the strictest on by fixed-sequence testing, each by the exact binomial tail of the answered queries (losses 0
      or 1) or by betting (losses in [0, 1]); the sequence ends at the first that is not rejected.
    * **How deep to show** (kinds "missed" and "shown"): documents with scores of at least `threshold_` are shown, and
      the mean loss over all queries is at most `at_most`. Without `confidence` by conformal risk control, which bounds
      the expectation, E[L] ≤ α, of losses that never rise when more is shown; with `confidence` by fixed-sequence
      testing with betting, from the threshold that shows everything ("missed") or next to nothing ("shown") on.

    The promise holds for queries that are exchangeable with those of `fit`; `check` tests whether others are.

    Parameters
    ----------
    loss : str or callable, default "no-relevant@3"
        "no-relevant@k", "irrelevant@k" or "1-MEASURE" (such as "1-nDCG@10") for when to answer; "missed-relevant",
        "no-relevant-shown" or "irrelevant-shown" for how deep. A function takes the grades of one query, best first,
        and, with a `kind` of depth, the number of documents shown; it returns a number in [0, 1].
    at_most : float, default 0.1
        The bound α on the loss.
    confidence : float, optional
        1 - δ. None asks for a bound in expectation, which only losses of the kind "missed" have.
    kind : {"answer", "missed", "shown"}, optional
        Of a loss given as a function: "answer" by default; "missed" never rises where more is shown.
    query_score : str, default "mean-top"
        What decides which queries are answered: "mean-top" (mean of the k highest scores), "expected-relevant" (their
        sum, of scores that are probabilities), "best", "gap" (the highest less the next), "agreement" (of the k first
        documents the mean share of the other runs that hold them; `scores` with several columns) or "learned" (a
        logistic regression on all of these and on mean, spread and number of scores).
    k : int, optional
        Documents at the top that a query score reads; the loss's own k by default, or 3.
    rel : float, default 1
        Lowest relevant grade.
    set_aside : float, optional
        Share of the queries of `fit` that test no threshold: on them the learned query score is fitted, and their
        scores give the thresholds. 0.4 by default for "learned", else 0.
    start, step : float, default 0.3 and 0.02
        The first threshold answers this share of the queries, each further one a `step` more, up to all. How deep: the
        steps of the share of documents shown.
    thresholds : array (t,), optional
        Thresholds to test instead, in this order; settle them before you see grades.
    random_state : int, optional
        Draws the queries that are set aside and the order of bets.

    Attributes
    ----------
    threshold_ : float
        Queries (or documents) with at least this score are answered (shown); inf answers nothing.
    curve_ : dict of arrays (t,)
        By threshold: `threshold`, share `answered` (of documents: shown), `risk` (mean loss of the calibration
        queries), `bound` (its upper bound at `confidence`, for each threshold by itself; conformal: n/(n + 1) risk +
        1/(n + 1)) and `tested` (whether it is part of the sequence).
    n_queries_ : int
        Queries that tested thresholds.
    answered_ : float
        Share of them that is answered; how deep: share of their documents that is shown.
    withheld_ : float
        Of those left unanswered, 1 less the mean loss: what the promise costs. nan where there are none, and for depth.

    Raises
    ------
    InvalidInputError
        Where no threshold could keep the promise whatever the grades: the message has the least number of queries.

    Notes
    -----
    1. Thresholds at ranks of the calibration scores keep the sequence exact where the risk does not fall as more
       queries are answered. Thresholds that are given, or come from queries set aside, are exact for any scores.
    2. Equal scores are answered or shown together. Losses of a ranking break ties by the order of the rows.
    3. O(n log n), and O(m) for each threshold.
    4. The defaults of `query_score`, `start`, `step` and `set_aside` were settled on CISI, NPL and simulated queries by
       `benchmarks/calibration/bench_cutoffs.py`.

    References
    ----------
    A. N. Angelopoulos, S. Bates, A. Fisch, L. Lei, T. Schuster (2024). Conformal risk control. ICLR, theorem 1.
    A. N. Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan, L. Lei (2025). Learn then test. Annals of Applied
    Statistics 19.

    Examples
    --------
    >>> cutoff = Cutoff("missed-relevant", at_most=0.25).fit([0.9, 0.7, 0.4, 0.8, 0.3, 0.6], [1, 0, 1, 1, 0, 1],
    ...     qid=[1, 1, 1, 2, 2, 3])
    >>> cutoff.threshold_, cutoff.depth([0.9, 0.5, 0.2], qid=[7, 7, 8]).tolist()
    (0.4, [2, 0])
    """

    model_attributes: ClassVar[tuple[str, ...]] = (
        "threshold_", "curve_", "n_queries_", "answered_", "withheld_", "kind_", "names_", "reference_", "coef_",
        "centre_", "scale_",
    )  # fmt: skip

    loss: Any = "no-relevant@3"
    _: KW_ONLY
    at_most: float = 0.1
    confidence: float | None = None
    kind: str | None = None
    query_score: str | None = None
    k: int | None = None
    rel: float = 1
    set_aside: float | None = None
    start: float = 0.3
    step: float = 0.02
    thresholds: Any = None
    random_state: Any = None

    @fits_whole
    def fit(self, scores: Any, y: Any, qid: Any = None) -> None:
        """Find the threshold on judged queries that did not train the scores; returns itself.

        Parameters
        ----------
        scores : array (n,) or (n, r)
            The first column ranks; further ones are scores of other runs, nan where a run lacks the document.
        y : array (n,)
            Grades.
        qid : array (n,), optional
            Query of each row; None means one query.
        """
        loss = self._checked()
        columns, grouping = self._lists(scores, qid, loss)
        grades = as_numbers(y, "y")
        if grades.shape != (len(columns),):
            raise InvalidInputError(f"y must hold one grade for each of the {len(columns)} rows, got {grades.shape}")
        grades = grouping.grouped(grades)
        order = np.lexsort((-columns[:, 0], grouping.query_index))
        found = loss.of_rankings(grades[order], grouping.offsets, check_number(self.rel, "rel"))
        self._take_reference(list_statistics(columns, grouping.offsets, self._k(loss)), list(STATISTICS))
        if loss.kind == "answer":
            self._fit_answers(found)
        else:
            self._fit_depth(columns[order, 0], grouping.offsets, found, loss)

    @fits_whole
    def fit_losses(self, score: Any, loss: Any) -> None:
        """Find the threshold for any task from one score and one loss for each unit (a document to classify, say).

        Parameters
        ----------
        score : array (n,) or (n, s)
            Higher where the answer is more likely right. Several columns need `query_score="learned"`.
        loss : array (n,)
            In [0, 1]; what the unit loses where it is answered. The parameter `loss` only names it.
        """
        self._checked(own=False)
        columns, losses = _columns(score, "score"), as_numbers(loss, "loss")
        if losses.shape != (len(columns),) or not ((losses >= 0) & (losses <= 1)).all():
            raise InvalidInputError(f"loss must hold a number in [0, 1] for each of the {len(columns)} scores")
        names = ["score"] if columns.shape[1] == 1 else [f"score {j + 1}" for j in range(columns.shape[1])]
        if (len(names) > 1 and self.query_score != "learned") or np.isnan(columns).any():
            raise InvalidInputError('give one finite score for each unit; several columns need query_score="learned"')
        self._take_reference(columns, names)
        self._fit_answers(losses)

    def answers(self, scores: Any, qid: Any = None) -> np.ndarray:
        """Whether each query is answered, bool (m,), in order of first appearance.

        After `fit_losses` pass scores as there, and no qid. A promise about depth answers where it shows a document.
        """
        check_is_fitted(self)
        if self.kind_ != "answer":
            return self.depth(scores, qid) > 0
        return self._scores_of(self._statistics(scores, qid)) >= self.threshold_

    def depth(self, scores: Any, qid: Any = None) -> np.ndarray:
        """Number of documents of each query that are shown, int64 (m,), in order of first appearance."""
        check_is_fitted(self)
        if self.kind_ == "answer":
            raise InvalidInputError(f"the loss {self._name()} decides which queries are answered; call answers")
        columns, grouping = self._lists(scores, qid, parse_loss(self.loss, self.kind))
        return np.add.reduceat((columns[:, 0] >= self.threshold_).astype(np.int64), grouping.offsets[:-1])

    def check(self, scores: Any, qid: Any = None, *, level: float = 0.05) -> Drift:
        """Test whether queries in use are exchangeable with those of `fit`, and warn of what moved.

        Each statistic of the result lists (and the query score) by a two-sample Kolmogorov-Smirnov test, corrected by
        Holm: where nothing changed, the probability of any warning is at most `level`. Drift voids the promise.

        Parameters
        ----------
        scores, qid
            As for `answers`.
        level : float, default 0.05
            Family-wise error rate of this call.
        """
        from scipy.stats import ks_2samp

        check_is_fitted(self)
        check_number(level, "level", minimum=0, maximum=1, **_OPEN)
        found = self._statistics(scores, qid)
        names, pairs = list(self.names_), list(zip(self.reference_.T, found.T))
        if len(self.coef_) or self._score_name() not in names:
            names.append(self._score_name())
            pairs.append((self._scores_of(self.reference_), self._scores_of(found)))
        with warnings.catch_warnings():  # where SciPy takes the limit in the exact p's stead
            warnings.simplefilter("ignore", RuntimeWarning)
            p = holm(np.array([ks_2samp(before, now).pvalue for before, now in pairs]))
        moved = {
            name: (float(np.median(before)), float(np.median(now)))
            for name, (before, now), one in zip(names, pairs, p)
            if one <= level
        }
        if moved:
            what = ", ".join(f"{name} (median {before:.4g}, now {now:.4g})" for name, (before, now) in moved.items())
            warn(f"the promise need not hold: queries differ from those of fit in {what}; judge new ones and fit again")
        return Drift(dict(zip(names, p.tolist())), moved)

    def plot(self) -> Any:
        """Risk and bound against the share answered or shown, as a matplotlib `Figure` (extra `plots`)."""
        check_is_fitted(self)
        return resolve("truerank.report.cutoff_plots:draw")(self)

    def summary(self) -> str:
        """The promise, its confidence, and what it costs, in one paragraph."""
        check_is_fitted(self)
        meaning = _MEANINGS.get(self._name().split("@")[0], "").format(k=self._name().partition("@")[2])
        with_confidence = "" if self.confidence is None else f"With confidence {self.confidence:.3g}, "
        if self.kind_ != "answer":
            return (
                f"{with_confidence}{'The expected' if self.confidence is None else 'the mean'} loss {self._name()} "
                f"({meaning or 'as given'}) is at most {self.at_most:g}. Show documents with a score of at least "
                f"{self.threshold_:.6g}: {self.answered_:.1%} of the documents of {self.n_queries_} queries."
            )
        what = f"at most {self.at_most:.4g} of the answered queries {meaning}" if meaning else (
            f"the mean loss {self._name()} of what is answered is at most {self.at_most:g}"
        )  # fmt: skip
        cost = "" if math.isnan(self.withheld_) else f" Of the others {self.withheld_:.1%} would have been right."
        score = "score" if self.names_ == ["score"] else f"score {self._score_name()}"
        rule = f"Answer where the {score} is at least {self.threshold_:.6g}"
        rule = (
            rule if math.isfinite(self.threshold_) else "Answer everything" if self.threshold_ < 0 else "Answer nothing"
        )
        return f"{with_confidence}{what}. {rule}: {self.answered_:.1%} of {self.n_queries_} queries.{cost}"

    def check_model(self) -> None:
        """Called after loading from a model file."""
        shapes = {np.shape(values) for values in self.curve_.values()}
        if self.reference_.ndim != 2 or self.reference_.shape[1] != len(self.names_) or len(shapes) != 1:
            raise ModelFileError("Cutoff: reference_, names_ and curve_ do not fit together")
        if len(self.coef_) not in (0, len(self.names_)) or np.isnan(self.threshold_):
            raise ModelFileError(
                "Cutoff: coef_ must have one entry for each of names_, and threshold_ must be a number"
            )

    # Parameters and inputs.

    def _checked(self, own: bool = True) -> QueryLoss:
        """The loss, once all parameters have been checked."""
        loss = parse_loss(self.loss, self.kind) if own else QueryLoss(self._name(), "answer")
        check_number(self.at_most, "at_most", minimum=0, maximum=1, **_OPEN)
        if self.confidence is not None:
            check_number(self.confidence, "confidence", minimum=0, maximum=1, **_OPEN)
        elif loss.kind != "missed":
            raise InvalidInputError(
                f"the loss {loss.name} can rise where more is answered or shown, so no bound in expectation is known; "
                "give confidence, such as confidence=0.9"
            )
        if loss.kind != "answer":
            given = [name for name in ("query_score", "k") if getattr(self, name) is not None]
            if given:
                raise InvalidInputError(f"{loss.name} is about depth, where {given[0]} has no use; leave it out")
        elif self.query_score is not None:
            check_choice(self.query_score, "query_score", QUERY_SCORES)
        if self.set_aside is not None:
            check_number(self.set_aside, "set_aside", minimum=0, maximum=1, open_maximum=True)
        for name in ("start", "step"):
            check_number(getattr(self, name), name, minimum=0, maximum=1, open_minimum=True)
        self.kind_ = loss.kind
        return loss

    def _name(self) -> str:
        return str(getattr(self.loss, "__name__", self.loss))

    def _k(self, loss: QueryLoss) -> int:
        return check_positive_int(self.k, "k") if self.k is not None else loss.k or 3

    def _score_name(self) -> str:
        return "score" if self.names_ == ["score"] else self.query_score or "mean-top"

    def _lists(self, scores: ArrayLike, qid: ArrayLike, loss: QueryLoss) -> tuple[np.ndarray, Grouping]:
        """Scores (n, r), grouped by query."""
        columns = _columns(scores, "scores")
        if loss.kind != "answer" and columns.shape[1] > 1:
            raise InvalidInputError(f"{loss.name} is about depth, which one score decides: pass scores (n,)")
        if self.query_score == "agreement" and not np.isnan(columns[:, 1:]).any():
            raise InvalidInputError(
                "agreement needs scores (n, r) of several runs, nan where a run lacks the document, and none is nan; "
                "set scores below the depth that you trust to nan"
            )
        if self.query_score == "expected-relevant" and not ((columns[:, 0] >= 0) & (columns[:, 0] <= 1)).all():
            raise InvalidInputError("expected-relevant needs scores that are probabilities; use mean-top for others")
        grouping = group_rows(qid, len(columns))
        return grouping.grouped(columns), grouping

    def _statistics(self, scores: ArrayLike, qid: ArrayLike) -> np.ndarray:
        """What was kept as `reference_` of the calibration queries, of others."""
        if self.names_[0].startswith("score"):
            if qid is not None:
                raise InvalidInputError("the cut-off was fitted by fit_losses, where each row is a unit; leave qid out")
            found = _columns(scores, "score")
        else:
            loss = parse_loss(self.loss, self.kind)
            columns, grouping = self._lists(scores, qid, loss)
            found = list_statistics(columns, grouping.offsets, self._k(loss))
        if found.shape[1] != len(self.names_):
            raise InvalidInputError(f"the cut-off was fitted to other columns of scores: {', '.join(self.names_)}")
        return found

    def _take_reference(self, statistics: np.ndarray, names: list[str]) -> None:
        self.reference_, self.names_ = statistics, names[: statistics.shape[1]]
        self.coef_, self.centre_, self.scale_ = (np.empty(0) for _ in range(3))

    def _scores_of(self, statistics: np.ndarray) -> np.ndarray:
        """The query score (m,) of statistics (m, s)."""
        if len(self.coef_):
            return ((statistics - self.centre_) / self.scale_ * self.coef_).sum(axis=1)
        if self.names_ == ["score"]:
            return statistics[:, 0]
        name = self.query_score or "mean-top"
        if name == "expected-relevant":
            k = self._k(parse_loss(self.loss, self.kind))
            return statistics[:, 1] * np.minimum(np.exp(statistics[:, 5]), k)
        return statistics[:, self.names_.index(name)]

    # When to answer.

    def _fit_answers(self, losses: np.ndarray) -> None:
        confidence = float(self.confidence or 0)
        order = stream(seed_of(self.random_state), "cutoff").permutation(len(losses))
        share = self.set_aside if self.set_aside is not None else _ASIDE if self.query_score == "learned" else 0.0
        n_aside = math.ceil(share * len(losses))
        aside, tested = order[:n_aside], order[n_aside:]
        binary = bool(((losses == 0) | (losses == 1)).all())
        least = risk_bounds.least_losses(self.at_most, confidence, binary)
        if len(tested) < least:
            raise InvalidInputError(
                f"{len(tested)} queries test thresholds, and fewer than {least} can promise a loss of at most "
                f"{self.at_most:g} with confidence {confidence:g} even where none is lost; judge more queries"
            )
        if self.query_score == "learned":
            self._learn(aside, losses)
        scores = self._scores_of(self.reference_)
        values, losses = scores[tested], losses[tested]
        drawn = scores[aside] if n_aside else values
        lowest = self.start - self.step * (math.ceil(self.start / self.step - 1e-9) - 1)
        curve, start = self._places(drawn, lowest), self._places(drawn, self.start)[0]
        grid = curve if self.thresholds is None else as_numbers(self.thresholds, "thresholds").ravel()
        answered = values[:, None] >= grid
        count = answered.sum(axis=0)
        lost = losses @ answered
        if binary:
            p = risk_bounds.binomial_p(lost, count, self.at_most)
            bound = risk_bounds.binomial_bound(lost, count, confidence)
        else:
            bets = losses[np.argsort(~answered, axis=0, kind="stable")]  # of the answered queries first
            p = risk_bounds.betting_p(bets, count, self.at_most, confidence)
            bound = risk_bounds.betting_bound(bets, count, confidence)
        risk = np.where(count > 0, lost / np.maximum(count, 1), 0.0)
        sequence = count >= least
        if self.thresholds is None:
            sequence &= grid <= start
        self._take_curve(grid, count / len(values), risk, bound, sequence)
        passed = np.flatnonzero(sequence)[: risk_bounds.rejected_in_sequence(p[sequence], confidence)]
        self.n_queries_ = len(values)
        self.threshold_ = float(grid[passed].min()) if len(passed) else math.inf
        left = values < self.threshold_
        self.answered_, self.withheld_ = (
            1 - float(left.mean()),
            float(1 - losses[left].mean()) if left.any() else np.nan,
        )
        if not len(passed):
            first = int(np.argmax(sequence))
            warn(
                f"no query will be answered: of {count[first]} answered ones {risk[first]:.1%} are lost, and the bound "
                f"{bound[first]:.3f} exceeds at_most={self.at_most:g}; judge more queries, allow more, or use another "
                "query_score"
            )

    def _places(self, values: np.ndarray, first: float) -> np.ndarray:
        """Thresholds at and above which lie shares first, first + step, …, 1 of the values, as far as ties allow."""
        ordered = np.sort(values)[::-1]
        shares = np.minimum(np.arange(first, 1 + self.step / 2, self.step), 1.0)
        counts = np.unique(np.ceil(shares * len(values) - 1e-9).astype(np.int64))
        # Just above the next value: given that value, those before it are a sample of all that exceed it.
        found = [np.nextafter(ordered[c], np.inf) if c < len(values) else -np.inf for c in counts]
        return np.unique([*found, -np.inf])[::-1]

    def _learn(self, aside: np.ndarray, losses: np.ndarray) -> None:
        """Log-odds of no loss, linear in the standardised statistics of the queries set aside."""
        known = self.reference_[aside]
        if len(known) < 10:
            raise InvalidInputError(
                f"{len(known)} queries are set aside for the learned query score, which needs 10; raise set_aside"
            )
        spread = known.std(axis=0)
        self.centre_, self.scale_ = known.mean(axis=0), np.where(spread > 0, spread, 1.0)
        design = np.hstack([(known - self.centre_) / self.scale_, np.ones((len(known), 1))])
        ridge = np.append(np.full(known.shape[1], _RIDGE), 1e-3)
        self.coef_ = fit_log_odds(np.ascontiguousarray(design), 1 - losses[aside], None, ridge=ridge).coef[:-1]

    # How deep to show.

    def _fit_depth(self, scores: np.ndarray, offsets: np.ndarray, table: np.ndarray, loss: QueryLoss) -> None:
        """`scores` (n,) stand best first in each query; `table` has the losses at depths 0, 1, …, n_q of each."""
        m, query = len(offsets) - 1, query_of_rows(offsets)
        row = np.arange(len(scores)) + query + 1  # of depth "this document is the last shown"
        rises = table[row] - table[row - 1]
        if loss.kind == "missed" and (rises > 1e-12).any():
            raise InvalidInputError(f'the loss {loss.name} rises where more is shown; use kind="shown" and confidence')
        order = np.argsort(-scores, kind="stable")
        risk = np.append(0.0, np.cumsum(rises[order])) / m + table[offsets[:-1] + np.arange(m)].mean()
        last = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # of equal scores
        every, risks = np.append(np.inf, scores[order][last]), np.append(risk[0], risk[last + 1])
        self.n_queries_, self.withheld_ = m, math.nan
        if self.confidence is None:
            bound = np.minimum((m * risks + 1) / (m + 1), 1.0)
            kept = np.flatnonzero(bound <= self.at_most + 1e-12)
            if not len(kept):
                raise InvalidInputError(_unreachable(float(risks.min()), m, self.at_most))
            self.threshold_ = float(every[kept[0]])
            shares = np.append(0, last + 1) / len(scores)
            chosen = np.unique(np.append(np.linspace(0, len(every) - 1, 101).astype(np.int64), kept[0]))
            self._take_curve(every[chosen], shares[chosen], risks[chosen], bound[chosen], np.ones(len(chosen), bool))
            self.answered_ = float((scores >= self.threshold_).mean())
            return
        grid = self._places(scores, self.step)
        grid = grid[::-1] if loss.kind == "missed" else grid
        if self.thresholds is not None:
            grid = as_numbers(self.thresholds, "thresholds").ravel()
        bets = stream(seed_of(self.random_state), "cutoff").permutation(m)
        shown = scores[:, None] >= grid
        depths = np.add.reduceat(shown.astype(np.int64), offsets[:-1], axis=0)
        losses = table[(offsets[:-1] + np.arange(m))[:, None] + depths][bets]
        counts = np.full(len(grid), m)
        p = risk_bounds.betting_p(losses, counts, self.at_most, self.confidence)
        bound = risk_bounds.betting_bound(losses, counts, self.confidence)
        self._take_curve(grid, shown.mean(axis=0), losses.mean(axis=0), bound, np.ones(len(grid), bool))
        n_passed = risk_bounds.rejected_in_sequence(p, self.confidence)
        if n_passed == 0:
            raise InvalidInputError(
                f"no threshold promises {loss.name} of at most {self.at_most:g}: the first has the mean loss "
                f"{losses[:, 0].mean():.3f} and the bound {bound[0]:.3f} over {m} queries; judge more queries or allow "
                "more"
            )
        passed = grid[:n_passed]
        self.threshold_ = float(passed.max() if loss.kind == "missed" else passed.min())
        self.answered_ = float((scores >= self.threshold_).mean())

    def _take_curve(self, *columns: np.ndarray) -> None:
        self.curve_ = dict(zip(("threshold", "answered", "risk", "bound", "tested"), columns))


def _unreachable(risk: float, n: int, at_most: float) -> str:
    """What to change where even the most inclusive threshold does not keep the promise in expectation."""
    allowed = f"at_most={math.ceil(1e4 * (n * risk + 1) / (n + 1)) / 1e4:g}"
    more = f", or judge at least {math.ceil((1 - at_most) / (at_most - risk) - 1e-9)} queries" if risk < at_most else ""
    return (
        f"no threshold keeps the expected loss at or below {at_most:g}: with everything shown it is {risk:.4f} over "
        f"{n} queries, and n/(n + 1) of that + 1/(n + 1) must not exceed at_most; allow {allowed}{more}"
    )


def _columns(scores: ArrayLike, name: str) -> np.ndarray:
    """Scores as float64 (n, r); the first column is finite, none is infinite."""
    columns = as_numbers(scores, name)
    columns = columns[:, None] if columns.ndim == 1 else columns
    if columns.ndim != 2 or 0 in columns.shape:
        raise InvalidInputError(
            f"{name} must have the shape (n,) or (n, r) with at least one row, got {np.shape(scores)}"
        )
    if not np.isfinite(columns[:, 0]).all() or np.isinf(columns).any():
        raise InvalidInputError(f"{name} must be finite; nan may only stand for documents that a further run lacks")
    return columns
