"""ObliviousBoosting: boosted oblivious trees with plain, fuzzy or polynomial leaves (Belous 2015)."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import KW_ONLY, field
from functools import partial
from typing import Any, ClassVar, Unpack

import numpy as np

from truerank.core.checks import check_number
from truerank.core.errors import InvalidInputError
from truerank.core.types import ArrayLike, NoOthers, TreeObjective
from truerank.data.ranking_data import RankingData
from truerank.data.row_source import RowSource, elsewhere
from truerank.matrices.binning import MAX_BORDERS
from truerank.rankers.boosting_fit import BoostingFit, objective_of, rows_for_trials
from truerank.rankers.column_settings import feature_sets, monotone_signs
from truerank.rankers.constructor_names import estimator
from truerank.rankers.fitted_trees import FittedParts, FittedTrees, begun_progress, take_model, trees_of
from truerank.rankers.leaf_choice import choose_leaves
from truerank.solvers.early_stopping import EarlyStopping
from truerank.trees.boosting import TreePlan
from truerank.trees.grower import GrowthRules
from truerank.trees.leaves.base import Leaves
from truerank.trees.leaves.kinds import KINDS, parse_leaves


@estimator
class ObliviousBoosting(FittedTrees):
    """Boosted oblivious trees with constant, fuzzy or polynomial leaves (Belous 2015); a level asks one question.

    The scores h start at the mean grade (squared error; else at 0). Each round adds a tree fitted to the gradients g
    and hessians h of the objective at the sampled training rows, weights included:

        level search   maximise Σ_leaves G² / (H + alpha) - penalty for small leaves,  G = Σ g, H = Σ h
        leaf values    F(l) = -Σ P(x∈l) g / (Σ P(x∈l) h + alpha)
        scores         h(x) ← h(x) + learning_rate Σ_l P(x∈l) F(l)

    `leaves` defines P. With `"constant"` it is 1 in the row's own leaf and 0 elsewhere. With `"fuzzy"` it is the
    probability that a small change of ranks (a swap of neighbours with probability `p_swap`) would put the row there,
    which often ranks small data better and predicts about ten times as slowly. With `"polynomial"` a leaf holds a
    polynomial of the tree's own features.

    Use it if features interact or have no linear effect, for thousands to tens of millions of rows.

    Parameters
    ----------
    leaves : {"auto", "constant", "fuzzy", "polynomial"}, or a value of these with its parameters, default "auto"
        `ConstantLeaves()`, `FuzzyLeaves(fuzziness=0.1, ties="average", ...)`, or
        `PolynomialLeaves(degree=1, smoothing=1000.0)`. In files, a dict: `{"kind": "fuzzy", "fuzziness": 0.05}`.
        "auto" is fuzzy, or another kind if trials with left-out queries rank clearly better by `validation_measure`.
        The trials take about as long as the fit.
    objective : str or function, default "mse"
        "mse", "query-mse", "lambdarank", "unbiased-lambdarank", "ips-lambdarank", "softmax", "xe-ndcg",
        "pairwise-logistic" or "yetirank" (see `truerank.losses.boosting`), a function
        `objective(y, scores, offsets) -> (gradients, hessians)`, or an object as in `truerank.losses.protocols`.
    objective_params : dict, optional
        `sigma` (lambdarank, ips-lambdarank, pairwise-logistic), `permutations` and `decay` (yetirank), `sigma`, `norm`,
        `max_position` and `rows_as_shown` (unbiased-lambdarank).
    measure : str, Measure or function, default "nDCG@10"
        The measure that lambdarank trains and `score` reports.
    validation_measure : str or Measure, or a list of these, optional
        The measure on `eval_set`, averaged over orders of ties; None means `measure`. Of several measures, the last one
        chooses the round.
    convention : str, default "ranklib"
        Evaluation convention: settings that the name of the measure does not contain.
    n_estimators : int, default 100
        Number of trees.
    learning_rate : float > 0, or one for each tree, default 0.1
    depth : int in 1 … 12, default 6
        Levels of a tree; it has 2^depth leaves. Growth ends early if no question improves the objective.
    borders : int in 1 … 255, default 64
        B: the values of each feature are cut into B parts of equal weight, whose ends are the candidate borders.
    alpha : float >= 0, optional
        L2 penalty that shrinks leaf values; None means 0 for squared error and 1 otherwise.
    small_leaf_penalty : float >= 0, default 0
        Cost of an empty leaf in the level search, in units of an average row's loss; 1 / (1 + n) of it for n rows.
    clip : bool, default True
        Whether polynomials and a linear start use features clipped to their training range.
    start : {"constant", "linear"}, default "constant"
        Scores before the first tree: the mean grade (squared error; else 0), or the least squares of grades within
        queries on the standardised features, which helps on small data.
    start_alpha : float >= 0, default 0.1
        Ridge penalty of the linear start, as a share of the rows.
    bootstrap : "row", "query" or None, default None
        Unit of each tree's sample, drawn with replacement. None draws rows without replacement.
    replace : bool, default True
        With `bootstrap`, False draws its unit without replacement.
    subsample : float in (0, 1], default 1
        Size of the sample as a share of the rows or queries.
    feature_fraction : float in (0, 1], default 1
        Share of the features that each tree may use.
    monotone : array (p,) of -1, 0, 1, or dict of column or name to these, optional
        1: the score must not fall when the feature rises; -1: it must not rise. Missing values are not constrained.
        Polynomial leaves raise an error.
    interaction_constraints : list of lists of column numbers or names, optional
        Sets of features. All features of a tree are in one set. Features in no set are one more set.
    categorical : list of column numbers or names, optional
        Features with categories: numbers, or columns of text or categories of a data frame. Each category becomes the
        mean of its grades within queries (`truerank.trees.categories`). An unknown category counts as an average one,
        and a missing category as a missing value. By default, the columns of a data frame whose type is a
        category.
    patience : int, optional
        Stop if `measure` on `eval_set` has not improved for this many trees, and keep the best round. Less than half of
        the trees often stops too early.
    warm_start : bool, default False
        Continue from the existing trees up to `n_estimators`, with the bits of one long fit. Data and parameters must
        be the same, except `n_estimators`, `patience`, `verbose`, `n_jobs` and `callbacks`.
    random_state : None, int or NumPy generator
        None is the seed 0.
    verbose : int or bool, default 0
        Print progress every so many trees, with the validation measure.
    n_jobs : int, optional
        Threads. The number of threads does not change the model.
    callbacks : list, optional
        Callbacks of every fit, before those of `fit(…, callbacks=[…])`; a model file does not keep them.

    Attributes
    ----------
    n_iter_ : int
        Trees T of the model.
    start_ : float
        Score before the first tree; a linear start has also `start_weights_` (p,), of standardised features.
    tree_features_, tree_borders_, tree_missing_right_ : arrays (T, depth)
        Questions: level t of a tree asks `x[feature] ≤ border`. An infinite border pads shorter trees, or with
        `missing_right` asks whether the feature is observed.
    tree_values_ : array (T, 2^depth), or (T, 2^depth, monomials) with polynomial leaves
        Leaf values, learning rate included; bit t of a leaf's number is 1 where x > border at level t.
    tree_gains_ : array (T, p)
        Gain of each feature in the objective of the level search.
    validation_scores_ : array
        The validation measure on `eval_set` after each tree that was tried; empty without `eval_set`.
    history_ : dict of arrays
        For each tree that was tried: "validation" as above, and "objective", the change of the training objective since
        the start (exact for squared error, where it is half of the change of the summed squared error; else by
        gradients and hessians; nan where it was not measured).
    click_propensities_, skip_propensities_ : float64 arrays (K,)
        With unbiased-lambdarank: probability of a click, or of a skip, at position k relative to position 1.
    leaves_, leaf_scores_ : str, dict of str to float
        With leaves="auto": the selected kind, and the validation measure of each kind on left-out queries.
    p_swap_ : float
        With fuzzy leaves. `place_…_` hold the training quantiles of the features in use.

    Raises
    ------
    InvalidInputError
        If parameters are out of range or do not go together, a user's objective returns wrong arrays, grades or weights
        exceed 1e100, or training diverges from the first trees on.

    Warns
    -----
    ConvergenceWarning
        When training diverges later: it stops, and the trees up to the least training objective are kept.

    Notes
    -----
    *Missing values* (nan) go to the side that the level search finds better. If the training rows had no missing
    values, these values go to the side with most of the rows.

    *The training objective* falls with every tree if every tree sees all rows and nothing is `monotone`: at any
    `learning_rate` below 2 if the hessians bound the second derivatives of the whole (Σ h u² >= uᵀ∇²u for every u), as
    for squared error, and below 1 for softmax, xe-ndcg and pairwise-logistic. lambdarank and yetirank compute new
    weights of pairs for each tree. Training that diverges stops.

    *Rows*: their order changes the model by rounding only. Sparse rows (CSR) give the trees of dense rows; polynomial
    leaves, a linear start and categorical features need dense rows.

    *Weights* multiply gradients and hessians. A weight of 2 equals two copies of a row (squared error) or of a query
    (any objective), except for random draws, statistics of categories, and the folds of "auto". Borders and places
    do not depend on the unit of the weights; `alpha` and the prior of categories do.

    *Differences from the thesis*: (1) normalised swap probabilities; (2) `fuzziness` is a share of the rows;
    (3) equation 8 as derived, not as printed; (4) hessians, weights, missing values, constraints; (5) a feature with
    few values has a border at each, and above 127 parts a part gives its largest value only; (6) a tree may ask about a
    feature twice, but not the same question; (7) polynomials of all leaves are fitted at once, and their smoothing acts
    on coefficients of features that are standardised over all rows.

    *Cost*: binning O(n p log borders) once; for each tree about 0.5 ns a value for the first level and at most half of
    that for each further one, plus 2^depth · p · bins for the search. Fuzzy leaves add O(2^depth n). Memory:
    1 byte for each value, 30 bytes for each row, and 2^(depth - 1) · p KB of histograms.

    References
    ----------
    Belous 2015 (thesis; oblivious trees, fuzzy borders, polynomial leaves).

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.5, 0.2], [1.0, 0.7], [0.1, 0.9], [0.9, 0.8], [0.4, 0.1]]
    >>> y, qid = [0, 1, 2, 0, 2, 1], [1, 1, 1, 2, 2, 2]
    >>> ranker = ObliviousBoosting("fuzzy", n_estimators=20, depth=2).fit(X, y, qid=qid)
    >>> ranker.rank(X, qid=qid).tolist()
    [3, 2, 1, 3, 1, 2]
    """

    allow_nan = True
    missing_values = "to the side of each question that fits better"
    learns_elsewhere = True
    uses_eval_set = True
    allow_sample_weight = True

    leaves_: Any = field(init=False)
    leaf_scores_: dict[str, float] = field(init=False)

    allowed: ClassVar[dict[str, str]] = {
        "n_estimators": "int in [1, inf)",
        "depth": "int in [1, 12]",  # a tree has 2^depth leaves
        "borders": f"int in [1, {MAX_BORDERS + 1}]",  # a code is one byte
        "alpha": "float in [0, inf)?",
        "small_leaf_penalty start_alpha": "float in [0, inf)",
        "start": "'constant' | 'linear'",
        "bootstrap": "'row' | 'query'?",
        "subsample feature_fraction": "float in (0, 1]",
        "patience": "int in [1, inf)?",
    }

    leaves: Any = "auto"
    _: KW_ONLY
    objective: TreeObjective = "mse"
    objective_params: dict[str, Any] | None = None
    measure: Any = "nDCG@10"
    validation_measure: Any = None
    convention: str = "ranklib"
    n_estimators: int = 100
    learning_rate: Any = 0.1
    depth: int = 6
    borders: int = 64
    alpha: float | None = None
    small_leaf_penalty: float = 0.0
    clip: bool = True
    start: str = "constant"
    start_alpha: float = 0.1
    bootstrap: str | None = None
    replace: bool = True
    subsample: float = 1.0
    feature_fraction: float = 1.0
    monotone: Any = None
    interaction_constraints: Any = None
    categorical: Any = None
    patience: int | None = None
    warm_start: bool = False
    random_state: Any = None
    verbose: int = 0
    n_jobs: int | None = None
    callbacks: Any = None

    @property
    def allow_sparse(self) -> bool:  # type: ignore[override]
        """Whether X may be sparse; not if a setting standardises or encodes columns."""
        given = self.leaves.get("kind") if isinstance(self.leaves, dict) else self.leaves
        if isinstance(given, str) and given != "auto":
            given = KINDS.get(given)
        return self.start != "linear" and self.categorical is None and not getattr(given, "needs_scaling", False)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        query_weight: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
        eval_X: Any = None,
        eval_y: Any = None,
        eval_qid: Any = None,
        position: Any = None,
        init_model: Any = None,
        **other: Unpack[NoOthers],
    ) -> ObliviousBoosting:
        """Learn from judged rankings, as `Ranker.fit` does.

        Parameters
        ----------
        sample_weight : array (n,) >= 0, optional
            Weight of each row; see *Weights* in the class's notes.
        position : array (n,) of integers >= 1, optional
            Position at which each row was shown, from 1; for unbiased-lambdarank (default: those of the data).
        init_model : fitted ObliviousBoosting, or path of its file, optional
            Model to continue on other data (also `xgb_model`): its trees, statistics of categories, scales and fuzzy
            places stay, and `n_estimators` trees are added. Leaves and `depth` must be those of the model.
        """
        if hasattr(X, "fit_arguments"):  # a Dataset, DMatrix or Pool of compat/port.py
            return self.fit(**X.fit_arguments(), eval_set=eval_set, init_model=init_model, **other)
        others: dict[str, Any] = {**other}
        theirs = others.pop("xgb_model", None)
        begun = init_model if theirs is None else theirs
        if isinstance(begun, str | os.PathLike):
            path, begun = begun, ObliviousBoosting()
            begun.load_model(path)
        if isinstance(begun, ObliviousBoosting) and hasattr(begun, "category_names_") and elsewhere(X) is None:
            # Categories keep the numbers of the model; a category that it has not seen counts as average.
            X = begun._numbered(X, reset=False)
            if isinstance(eval_set, tuple) and eval_set:
                eval_set = (begun._numbered(eval_set[0], reset=False), *eval_set[1:])
            eval_X = None if eval_X is None else begun._numbered(eval_X, reset=False)
        others |= {"eval_X": eval_X, "eval_y": eval_y, "eval_qid": eval_qid}
        more = {"position": position, "init_model": begun}
        fitted: ObliviousBoosting = self._whole_fit(X, y, qid, query_weight, sample_weight, eval_set, others, more)
        return fitted

    @property
    def chooses_by_eval_set(self) -> bool:
        """Whether a fit stops early by validation queries."""
        return self.patience is not None

    def _fit(
        self,
        data: RankingData,
        valid: RankingData | None,
        position: ArrayLike | None = None,
        init_model: Any = None,
        beside: RowSource | None = None,
    ) -> None:
        if position is not None:
            if self.objective != "unbiased-lambdarank":
                raise InvalidInputError(
                    'position requires objective="unbiased-lambdarank". Use that objective, or omit position',
                    argument="position",
                )
            data = data.with_position(position)
        if init_model is not None:
            take_model(self, init_model, data.n_features)
        parts, watched = data.in_parts(self.n_jobs), beside if valid is None else valid.in_parts(self.n_jobs)
        begun = init_model is not None
        progress = trees_of(self) if begun else begun_progress(self, self.n_features_in_)
        model = FittedParts.of(self, progress, begun) if begun or progress.trees else None
        stopping = self._early_stopping(valid is not None)
        continued = "" if model is None else "init_model" if model.begun else "warm_start"
        objective = objective_of(self, self._measure(), parts, continued)
        self._choose_leaves(partial(rows_for_trials, parts), model is not None)
        categories = None if self.categorical is None else self._category_columns(data.n_features)
        grown = BoostingFit(
            parts, watched, model, int(self.borders), self.start, float(self.start_alpha), bool(self.clip), objective,
            stopping, self.kind_of_leaves, self._plan(), categories, self.n_jobs,
        ).run()  # fmt: skip
        self._keep(grown)
        if parts.alone is not None and grown.tables is None and self.n_iter_ == self.n_estimators:
            self._training_scores = parts.alone.memory["trees"].scores
        self._finish(grown.status)

    # Arguments.

    @property
    def kind_of_leaves(self) -> Leaves:
        """The kind of leaves as an object."""
        given = self.leaves
        if given == "auto":
            if not hasattr(self, "leaves_"):
                raise InvalidInputError(
                    'fit chooses the kind of leaves="auto". Call fit first, or name the kind of leaves',
                    argument="leaves",
                )
            given = self.leaves_
        return parse_leaves(given)

    def _choose_leaves(self, read: Callable[[], RankingData], continued: bool) -> None:
        """Choose the leaves for "auto", unless the fit continues trees, on the queries that `read` returns."""
        automatic = self.leaves == "auto"
        if automatic and continued:
            return
        for name in ("leaves_", "leaf_scores_"):
            self.__dict__.pop(name, None)
        if automatic:
            self.leaves_, self.leaf_scores_ = choose_leaves(self, read)

    def _early_stopping(self, watched: bool) -> EarlyStopping | None:
        """Return the early stopping on validation queries, if there are any, after a check of its measure."""
        measure = self._measure("validation_measure")
        if watched:
            return EarlyStopping(measure, self.convention, self.patience)
        if self.patience is not None:
            raise InvalidInputError(
                "patience requires validation queries. Pass eval_set=(X, y, qid)", argument="patience"
            )
        return None

    def _rates(self, n_estimators: int) -> np.ndarray:
        """Return the learning rate of each tree (n_estimators,)."""
        given = self.learning_rate
        if not isinstance(given, list | tuple | np.ndarray):
            return np.full(n_estimators, check_number(given, "learning_rate", "(0, inf)"))
        if len(given) != n_estimators:
            raise InvalidInputError(
                f"learning_rate must be one number, or one for each of the {n_estimators} trees, got {len(given)}",
                argument="learning_rate",
            )
        return np.array([check_number(rate, "learning_rate", "(0, inf)") for rate in given])

    def _plan(self) -> TreePlan:
        """Return the settings of the boosting loop."""
        n_estimators, alpha = int(self.n_estimators), self.alpha
        if alpha is None:
            alpha = 0.0 if self.objective == "mse" else 1.0
        names = list(getattr(self, "feature_names_in_", []))
        n_features = self.n_features_in_
        monotone = None if self.monotone is None else monotone_signs(self.monotone, n_features, names)
        if monotone is not None and not self.kind_of_leaves.keeps_monotone:
            raise InvalidInputError(
                f"{self.kind_of_leaves.name} leaves do not support monotone constraints. Use constant or fuzzy leaves",
                argument="monotone",
            )
        sets = self.interaction_constraints
        rules = GrowthRules(
            int(self.depth),
            float(alpha),
            float(self.small_leaf_penalty),
            monotone,
            together=None if sets is None else feature_sets(sets, n_features, names),
        )
        return TreePlan(
            n_estimators,
            self._rates(n_estimators),
            rules,
            self.bootstrap or "row",
            self.bootstrap is not None and bool(self.replace),
            float(self.subsample),
            float(self.feature_fraction),
            self.seed_,
        )
