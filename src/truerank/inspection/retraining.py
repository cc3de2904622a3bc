"""Retrain the production model on newer queries, and replace it only if held-out queries show a gain."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from truerank.calibration.ranker import CalibratedRanker
from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import seed_of, stream
from truerank.core.results import Result
from truerank.core.types import ArrayLike, MeasureLike, RandomState, Scorer, Test, TrainingRule
from truerank.data.provenance import KEEP, Provenance, settle_training
from truerank.data.ranking_data import RankingData
from truerank.data.remarks import FORBIDS, Remark
from truerank.inspection.importance import measure_of
from truerank.io.rows import rows_of
from truerank.measures.base import Measure
from truerank.measures.conventions import DEFAULT_CONVENTION
from truerank.rankers.base import Ranker
from truerank.rankers.oblivious_boosting import ObliviousBoosting
from truerank.rankers.pipeline import RankerPipeline, fit_ranker, ranker_scores
from truerank.significance.comparison import compare_values, resamples_for
from truerank.significance.history import History, level_of
from truerank.significance.intervals import Verdict, decided, failing_loss
from truerank.significance.paired import OF_MEANS, TESTS, paired_differences, paired_tests, signed_ranks
from truerank.significance.tables import Comparison

HOW = ("auto", "continue", "refit")
MORE = 20  # trees that a continued model gets
SHARE = 0.3  # queries held out
FOLDS = 5  # of a calibrated model with a prefitted ranker


class Decision(NamedTuple):
    """The verdict of held-out queries on a candidate: "better", "not worse" (by the margin), "worse", "undecided"."""

    verdict: str
    p: float  # against no difference
    level: float  # after it was divided over the comparisons on the same queries
    of_mean: Verdict | None = None  # None with a test of ranks or signs

    @property
    def promoted(self) -> bool:
        """Whether the candidate replaces the production model."""
        return self.verdict in ("better", "not worse")


def decide(
    candidate: ArrayLike,
    against: ArrayLike,
    *,
    test: str = "randomisation",
    level: float = 0.05,
    margin: float = 0.0,
    look: int = 1,
    measure: Measure | None = None,
    random_state: RandomState = 0,
) -> Decision:
    """Return the verdict on a candidate from its values (m,) by query and those of another model; higher is better.

    "better" requires a p below the level, a gain by the test itself, and a mean that does not fall. "not worse"
    requires a margin and test "randomisation" or "t". The interval has the level, and decides as in `compare`.
    `measure` is the measure of the values, before any change of sign. `look` counts from 1.
    """
    check_choice(test, "test", TESTS)
    if margin > 0 and test not in OF_MEANS:
        raise InvalidInputError(
            f"margin={margin:g} requires test 'randomisation' or 't', got {test!r}", argument="margin"
        )
    level = level_of(look, level)
    differences = paired_differences(candidate, against)

    options: dict[str, Any] = {"n_resamples": resamples_for(1, level), "random_state": random_state}
    if test in OF_MEANS:
        loss = failing_loss(against, candidate, measure) if margin > 0 else None
        found = decided(test, differences, margin or None, loss, level, **options)
        first = next(kind for kind in ("better", "not worse", "worse", "undecided") if kind in found.kinds)
        return Decision(first, found.p, level, found)
    p = paired_tests(test, differences[:, None], level=level).p.item()
    shown = np.sign(differences).sum()
    if test == "wilcoxon":
        positive, ranks = signed_ranks(differences)
        shown = ranks[positive].sum() - ranks[~positive].sum()
    if p < level and shown < 0:
        return Decision("worse", p, level)
    return Decision("better" if p < level and shown > 0 and differences.mean() >= 0 else "undecided", p, level)


@dataclass
class Retraining(Result):
    """The result of `retrain`."""

    promoted: bool  # whether the candidate replaces the model in production
    reason: str  # in words
    how: str  # "continued" or "refitted"
    candidate: Any = field(repr=False)
    comparison: Comparison = field(repr=False)  # "candidate" against "production" on the held-out queries
    n_train: int  # queries
    n_held_out: int
    decision: Decision
    look: int  # number of this comparison on the same held-out queries, from 1
    training: Provenance = field(repr=False)  # held-out queries that one of the models was trained on

    KIND: ClassVar[str] = "retraining"

    @property
    def remarks(self) -> list[Remark]:
        """The remarks on training queries."""
        return list(self.training.remarks)

    @property
    def summary(self) -> str:
        """A sentence with the decision and its reason."""
        return f"{'promoted' if self.promoted else 'kept'}: {self.reason}."

    def _figures(self) -> dict[str, Any]:
        comparison, (pair,) = self.comparison, self.comparison.pairs
        names = ("measure", "convention", "means", "interval_of", "test")
        return {
            "decision": "promoted" if self.promoted else "kept",
            "reason": self.reason,
            "how": self.how,
            "ranker": type(self.candidate).__name__,
            **{name: getattr(comparison, name) for name in names},
            "difference": {"mean": pair.difference, "low": pair.low, "high": pair.high},
            **{name: getattr(pair, name) for name in ("wins", "losses", "ties")},
            "verdict": self.decision.verdict,
            "p": self.p,
            "level_spent": self.decision.level,
            "look": self.look,
            "queries": {
                "train": self.n_train,
                "held_out": self.n_held_out,
                "training_queries": int((~self.training.keep).sum()),
            },
            "training_queries": self.training.to_dict(),
            "status": getattr(self.candidate, "status_", None),
        }

    def _table(self, style: str) -> str:
        return self.comparison._table(style)

    @property
    def p(self) -> float:
        """The p of the decision."""
        return self.decision.p


def retrain(
    production: Any,
    data: Any,
    held_out: RankingData | None = None,
    *,
    valid: RankingData | None = None,
    how: str = "auto",
    more: int = MORE,
    params: dict[str, Any] | None = None,
    measure: MeasureLike | None = None,
    convention: str | None = None,
    test: Test = "randomisation",
    level: float = 0.05,
    margin: float = 0.0,
    reference: ArrayLike | None = None,
    history: History | None = None,
    training_queries: TrainingRule = "leave out",
    share: float = SHARE,
    random_state: RandomState = None,
) -> Retraining:
    """Train a model again on newer queries, and decide whether it replaces the production model.

    Parameters
    ----------
    production : fitted ranker
        The production model, which is not changed.
    data, valid : RankingData, data frames, or paths of files of rows
        Judged queries for training, and validation queries for early stopping (`patience`).
    held_out : as data, optional
        Judged queries for the comparison, on which neither model was trained. By default, a `share` of the queries of
        `data`, drawn by their names, is held out.
    how : {"auto", "continue", "refit"}, default "auto"
        "continue" starts from the model: boosted trees get `more` trees (`fit(init_model=…)`), and rankers with
        `warm_start` start at the model's weights. "refit" fits a new model with the same settings to `data` alone; a
        `CalibratedRanker(cv="prefit")` is then fitted with `cv=5`. "auto" continues every model that can be continued.
    more, params
        Number of trees to add to a model of trees, and settings to change.
    measure, convention : optional
        Default: the measure and convention of the model, else nDCG@10 and "ranklib". Ties are averaged.
    test : {"randomisation", "t", "wilcoxon", "sign"}, default "randomisation"
        Test, which is paired and two-sided. The candidate is promoted only if the direction of the test is a gain.
    level : float in (0, 1), default 0.05
        Significance level of the first comparison. From the second comparison on, the k-th comparison on the same
        queries has the level / (k (k - 1)), as counted by `history`.
    margin : float >= 0, default 0
        Loss up to which a candidate is also promoted, in the unit of the measure (non-inferiority).
        Requires test "randomisation" or "t".
    reference : fitted ranker, optional
        With a margin, the last model that was promoted as better. The candidate is compared with the reference, so that
        losses of `margin` do not add up. Default: production.
    history : History, optional
        History that counts this and earlier comparisons on the same held-out queries. By default, nothing is counted.
    training_queries : "leave out", "keep" or "refuse", default "leave out"
        Treatment of held-out queries on which a model was trained, as in `compare`. With kept training queries, the
        candidate is not promoted.
    random_state : seed of the split and the test

    Raises
    ------
    InvalidInputError
        If the model cannot be trained (imported models) or not continued, if either side has fewer than two queries, or
        if a model was trained on more than half of the held-out queries (unless they are kept).

    Examples
    --------
    >>> from truerank.data.samples import load_sample
    >>> from truerank.rankers.baselines import SingleFeature, RidgeRanker
    >>> data = load_sample()
    >>> weak = SingleFeature(10).fit(data.take_queries(range(40)))
    >>> found = retrain(weak, data.take_queries(range(120)), data.take_queries(range(120, 180)))
    >>> found.promoted, found.how, found.n_held_out
    (False, 'refitted', 60)
    """
    check_choice(how, "how", HOW)
    level = check_number(level, "level", "(0, 1)")
    margin = check_number(margin, "margin", "[0, inf)")
    seed = seed_of(random_state)
    check_is_fitted(production)
    data, valid, held_out = (
        None if rows is None else rows_of(rows, name, production)
        for name, rows in (("data", data), ("valid", valid), ("held_out", held_out))
    )
    plain = measure_of(production, measure, convention or getattr(production, "convention", None) or DEFAULT_CONVENTION)
    judged = plain.tie_averaged()
    if held_out is None:
        data, held_out = split_by_name(data, share, seed)
    _check_two("to learn from", data)
    _check_two("held out", held_out)
    candidate, continued = trained_again(production, data, valid, how, more, params)
    models = {"candidate": candidate, "production": production}
    models |= {"reference": reference} if margin > 0 and reference is not None else {}
    remedies = "hold out queries on which no model was trained", KEEP
    training = settle_training(models, held_out, training_queries, remedies=remedies)
    held_out = training.kept(held_out)
    _check_two("held out, on which no model was trained", held_out)
    judgements = held_out.judgements()
    values = {name: judged.per_query(judgements, ranker_scores(model, held_out)) for name, model in models.items()}
    comparison = compare_values(
        {name: values[name] for name in ("candidate", "production")}, baseline="production", measure=plain.name,
        convention=plain.convention, query_ids=held_out.query_ids, higher_is_better=judged.higher_is_better, test=test,
        random_state=seed,
    )  # fmt: skip
    other, against = values["production"], "production"
    if "reference" in values:
        other, against = values["reference"], "the last model that was promoted as better"
    sign = 1.0 if judged.higher_is_better else -1.0
    ours, theirs = sign * values["candidate"], sign * other
    counted_in = History() if history is None else history
    with counted_in.looking(judgements, {plain.name: values}, test, margin, level) as (look, _):
        decision = decide(
            ours, theirs, test=test, level=level, margin=margin, look=look, measure=judged, random_state=seed
        )
    gain = f"{paired_differences(ours, theirs).mean():+.4f} {plain.name} against {against}"
    reason = _reason(decision, gain, margin, test)
    if look > 1:
        reason += f" (comparison {look} on these held-out queries)"
    forbids = [remark for remark in training.remarks if remark.severity == FORBIDS]
    reason = f"no verdict on {forbids[0].text}" if forbids else reason
    return Retraining(
        decision.promoted and not forbids, reason, "continued" if continued else "refitted", candidate, comparison,
        data.n_queries, held_out.n_queries, decision, look, training,
    )  # fmt: skip


def _check_two(side: str, data: RankingData) -> None:
    if data.n_queries < 2:
        raise InvalidInputError(
            f"retrain requires at least two queries {side}, got {data.n_queries}", code="too-few-queries"
        )


def _reason(decision: Decision, gain: str, margin: float, test: str) -> str:
    """Return the decision in words, with the gain, and the deciding p or interval."""
    p = f"p = {decision.p:.2g} at level {decision.level:.2g}"
    if decision.p != decision.p:
        p = f"no p by the {test} test, because all queries differ by the same amount; use the randomisation test"
    if margin > 0 and decision.of_mean is not None:
        _, low, high = decision.of_mean.interval
        ends = "no interval" if low != low else f"{100 * (1 - decision.level):.4g} % interval {low:+.4f} to {high:+.4f}"
        return f"{decision.of_mean}: {gain}, {ends}, {p}"
    verdict = {"better": "the candidate is better", "worse": "the candidate is worse"}
    return f"{verdict.get(decision.verdict, 'no gain is shown')}: {gain}, {p}"


def split_by_name(data: RankingData, share: float, seed: int) -> tuple[RankingData, RankingData]:
    """Return the training and the held-out queries, drawn by name, so that queries with equal names are on one side."""
    share = check_number(share, "share", "(0, 1)")
    names = data.query_ids.astype(str)
    different = np.unique(names)
    count = int(np.clip(round(share * len(different)), 1, max(1, len(different) - 1)))
    chosen = stream(seed, "held out", 0).permutation(len(different))[:count]
    held = np.isin(names, different[chosen])
    return data.take_queries(~held), data.take_queries(held)


def can_continue(model: Scorer) -> bool:
    """Return whether training of a fitted model can be continued."""
    if isinstance(model, RankerPipeline):
        return can_continue(model.ranker_)
    learns_propensities = hasattr(model, "click_propensities_")  # from tree to tree, of the rows that it saw
    return isinstance(model, Ranker) and "warm_start" in model.get_params(deep=False) and not learns_propensities


def trained_again(
    production: Any,
    data: RankingData,
    valid: RankingData | None = None,
    how: str = "auto",
    more: int = MORE,
    params: dict[str, Any] | None = None,
) -> tuple[Any, bool]:
    """Return a model trained again, and whether it was continued; see `retrain`. `production` is not changed."""
    continued = can_continue(production)
    if how == "continue" and not continued:
        raise InvalidInputError(
            f'how="continue": {type(production).__name__} cannot be continued (boosted trees, and rankers with '
            'warm_start can). Choose how="refit"',
            argument="how",
        )
    if continued and how != "refit":
        return _continued(production, data, valid, check_positive_int(more, "more"), params or {}), True
    if not hasattr(production, "get_params"):
        raise InvalidInputError(f"{type(production).__name__} cannot be trained again, because it has no get_params")
    again = clone(production).set_params(**(params or {}))
    if isinstance(again, CalibratedRanker) and again.cv == "prefit":
        again.set_params(cv=FOLDS)  # nothing is fitted any more
    return fit_ranker(again, data, valid), False


def _continued(model: Any, data: RankingData, valid: RankingData | None, more: int, params: dict[str, Any]) -> Any:
    if isinstance(model, RankerPipeline):
        # The transformers stay as they are: the ranker's weights and borders are in their units.
        outer = copy.copy(model)
        inner = {name.removeprefix("ranker__"): value for name, value in params.items()}
        outer.ranker_ = _continued(
            model.ranker_, model.transformed(data), None if valid is None else model.transformed(valid), more, inner
        )
        outer.n_queries_in_, outer.status_ = data.n_queries, outer.ranker_.status_
        return outer
    watched = valid if valid is not None and model.uses_eval_set else None
    if not isinstance(model, ObliviousBoosting):
        begun = copy.deepcopy(model).set_params(**({"warm_start": True} | params))
        return begun.fit(data, eval_set=watched)
    given = {"n_estimators": more, "warm_start": False} | ({"patience": None} if watched is None else {}) | params
    fitted = clone(model).set_params(**given).fit(data, eval_set=watched, init_model=model)
    return fitted.set_params(n_estimators=fitted.n_iter_)


def digest(content: bytes) -> str:
    """Return the digest of the bytes of a model file."""
    return blake2b(content, digest_size=16).hexdigest()
