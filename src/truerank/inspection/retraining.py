"""Train the model in production again on newer queries, and replace it only where held-out queries show a gain."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from truerank.calibration.ranker import CalibratedRanker
from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import seed_of, stream
from truerank.data.ranking_data import RankingData, check_ranking_data
from truerank.inspection.importance import measure_of
from truerank.rankers.base import Ranker
from truerank.rankers.oblivious_boosting import ObliviousBoosting
from truerank.rankers.pipeline import RankerPipeline, fit_ranker, ranker_scores
from truerank.significance.comparison import Comparison, compare_values

HOW = ("auto", "continue", "refit")
MORE = 20  # trees that a continued model gets
SHARE = 0.3  # queries held out
FOLDS = 5  # of a calibrated model whose ranker was fitted before


@dataclass
class Retraining:
    """What `retrain` found.

    Attributes
    ----------
    promoted : bool
        Whether the candidate is to replace the model in production.
    reason : str
        Why, in words.
    how : {"continued", "refitted"}
    candidate : fitted ranker
    comparison : Comparison
        "candidate" against "production" on the held-out queries.
    n_train, n_held_out : int
        Queries.
    p : float
        Of the test that decided, margin included.
    """

    promoted: bool
    reason: str
    how: str
    candidate: Any = field(repr=False)
    comparison: Comparison = field(repr=False)
    n_train: int
    n_held_out: int
    p: float


def retrain(
    production: Any,
    data: RankingData,
    held_out: RankingData | None = None,
    *,
    valid: RankingData | None = None,
    how: str = "auto",
    more: int = MORE,
    params: dict[str, Any] | None = None,
    measure: Any = None,
    convention: str | None = None,
    test: str = "randomisation",
    level: float = 0.05,
    margin: float = 0.0,
    share: float = SHARE,
    random_state: Any = None,
) -> Retraining:
    """Train a model again on newer queries and say whether it is to replace the one in production.

    Parameters
    ----------
    production : fitted ranker
        As it serves today. It is not changed.
    data : RankingData
        Judged queries to learn from.
    held_out : RankingData, optional
        Judged queries that neither model has learned from, for the comparison. None holds out `share` of the queries of
        `data`, drawn by their names.
    valid : RankingData, optional
        Validation queries, where the ranker stops early (`patience`).
    how : {"auto", "continue", "refit"}, default "auto"
        "continue" goes on from the model: `more` trees are added to boosted trees (`fit(init_model=…)`), rankers with
        `warm_start` begin at the model's weights. "refit" fits its settings anew to `data`, and forgets what `data` do
        not hold; a `CalibratedRanker(cv="prefit")` is fitted anew with `cv=5`. "auto" continues what can be continued.
    more : int, default 20
        Trees that are added to a model of trees.
    params : dict, optional
        Settings that are to change.
    measure : str or Measure, optional
        By default the model's, else nDCG@10. Ties are averaged.
    convention : str, optional
        By default the model's, else "ranklib".
    test : {"randomisation", "t", "wilcoxon", "sign"}, default "randomisation"
        Paired, two-sided.
    level : float in (0, 1), default 0.05
        The candidate is promoted where it is better with p below this.
    margin : float >= 0, default 0
        Of the measure: the candidate is tested against production less this, so that a fresher model is promoted that
        is shown to be no more than `margin` worse.
    share : float in (0, 1), default 0.3
    random_state : None, int or generator
        Of the split and the test.

    Returns
    -------
    Retraining

    Raises
    ------
    InvalidInputError
        When the model cannot be trained (imported ones), `how="continue"` is asked of one that cannot be continued, or
        there are fewer than two queries on either side.

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
    level = check_number(level, "level", minimum=0.0, maximum=1.0, open_minimum=True, open_maximum=True)
    margin = check_number(margin, "margin", minimum=0.0)
    seed = seed_of(random_state)
    check_ranking_data(data)
    check_is_fitted(production)
    plain = measure_of(production, measure, convention or getattr(production, "convention", None) or "ranklib")
    judged = plain.tie_averaged()
    if held_out is None:
        data, held_out = split_by_name(data, share, seed)
    for side, queries in (("to learn from", data.n_queries), ("held out", held_out.n_queries)):
        if queries < 2:
            raise InvalidInputError(f"retrain needs at least two queries {side}, got {queries}")
    candidate, continued = trained_again(production, data, valid, how, more, params)
    judgements = held_out.judgements()
    values = {
        name: judged.per_query(judgements, ranker_scores(model, held_out))
        for name, model in (("candidate", candidate), ("production", production))
    }

    def compared(shift: float) -> Comparison:
        better = values["candidate"] + (shift if judged.higher_is_better else -shift)
        return compare_values(
            values | {"candidate": better}, baseline="production", measure=plain.name, convention=plain.convention,
            test=test, random_state=seed, query_ids=held_out.query_ids, higher_is_better=judged.higher_is_better,
        )  # fmt: skip

    comparison = compared(0.0)
    deciding = comparison if margin == 0 else compared(margin)
    gain, p = deciding.pairs[0].difference, deciding.pairs[0].p
    promoted = gain > 0 and p < level
    verdict = "the candidate is better" if promoted else f"no gain is shown at the level {level:g}"
    if gain <= 0:
        verdict = "the candidate is no better"
    against = "production" if margin == 0 else f"production less {margin:g}"
    reason = f"{verdict}: {comparison.pairs[0].difference:+.4f} {plain.name}, p = {p:.2g} against {against}"
    done = "continued" if continued else "refitted"
    return Retraining(promoted, reason, done, candidate, comparison, data.n_queries, held_out.n_queries, p)


def split_by_name(data: RankingData, share: float, seed: int) -> tuple[RankingData, RankingData]:
    """Queries to learn from and held out, drawn by their names: queries of one name stay on one side."""
    share = check_number(share, "share", minimum=0.0, maximum=1.0, open_minimum=True, open_maximum=True)
    names = data.query_ids.astype(str)
    different = np.unique(names)
    count = int(np.clip(round(share * len(different)), 1, max(1, len(different) - 1)))
    chosen = stream(seed, "held out", 0).permutation(len(different))[:count]
    held = np.isin(names, different[chosen])
    return data.take_queries(~held), data.take_queries(held)


def can_continue(model: Any) -> bool:
    """Whether a fitted model can go on learning from where it stands."""
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
    """A model trained again, and whether it was continued; see `retrain`. `production` stays as it is."""
    continued = can_continue(production)
    if how == "continue" and not continued:
        raise InvalidInputError(
            f'how="continue": {type(production).__name__} cannot be continued (boosted trees, and rankers with '
            'warm_start can); how="refit" fits its settings anew'
        )
    if continued and how != "refit":
        return _continued(production, data, valid, check_positive_int(more, "more"), params or {}), True
    if not hasattr(production, "get_params"):
        raise InvalidInputError(f"{type(production).__name__} cannot be trained again: it holds no settings")
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
