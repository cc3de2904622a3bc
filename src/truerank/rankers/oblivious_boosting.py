"""ObliviousBoosting: boosted oblivious trees with plain, fuzzy or polynomial leaves (Belous 2015)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import seed_of
from truerank.core.threads import Workers
from truerank.data.ranking_data import RankingData
from truerank.losses.boosting import make_objective
from truerank.matrices.binning import MAX_BORDERS, code_rows, find_borders, scan_columns
from truerank.measures import parse_measure
from truerank.rankers.oblivious_arguments import (
    check_grades,
    fit_settings,
    monotone_signs,
    plan_of,
    row_weights,
    swap_probability,
    trees_so_far,
)
from truerank.rankers.oblivious_model import LEAVES, TreesModel
from truerank.trees.boosting import Progress, Watched, boost
from truerank.trees.leaves.constant import ConstantLeaves
from truerank.trees.leaves.fuzzy import FuzzyLeaves
from truerank.trees.leaves.places import MOST_PLACES, make_places, smoothing_of
from truerank.trees.leaves.polynomial import PolynomialLeaves
from truerank.trees.linear_start import Start, fit_linear_start
from truerank.trees.rows import Rows
from truerank.trees.scaling import Scaling, column_scaling

_OTHER_DATA = (
    "warm_start: X is not what the model's trees were fitted to; fuzzy and polynomial leaves can only be continued "
    "with the same rows. Set warm_start=False to start anew"
)


class ObliviousBoosting(TreesModel):
    """Boosted oblivious trees: each tree asks one question `x_k ≤ c` a level, the same in all its leaves.

    The scores h start at the mean grade (squared error; else at 0), and each round adds a tree fitted to the
    objective's gradients g and hessians h of the training rows, weighed and sampled:

        level search   maximise Σ_leaves G² / (H + l2) - penalty for small leaves,  G = Σ g, H = Σ h
        leaf values    F(l) = -Σ P(x∈l) g / (Σ P(x∈l) h + l2)
        scores         h(x) ← h(x) + learning_rate Σ_l P(x∈l) F(l)

    `leaves` says what P is. `"constant"`: 1 in the row's own leaf, 0 elsewhere. `"fuzzy"`: every row is in every leaf,
    with the probability that a small change of ranks (a swap of neighbours with probability `p_swap`) would put it
    there; scores change gradually with the features, rankings are steadier, and on small sets they are often better.
    `"polynomial"`: a leaf holds a polynomial of the tree's own features instead of a value.

    When to use it: features that interact or have no linear effect, thousands to tens of millions of rows. Start with
    `leaves="fuzzy"`. There are no categorical features: encode them as numbers first (an error otherwise).

    Parameters
    ----------
    leaves : {"constant", "fuzzy", "polynomial"}, default "constant"
    objective : {"mse", "lambdarank", "softmax", "pairwise-logistic", "yetirank"} or function, default "mse"
        What is made small; see `truerank.losses.boosting`. A function
        `objective(y, scores, offsets) -> (gradients, hessians)` is taken as it is.
    objective_params : dict, optional
        `sigma` (lambdarank, pairwise-logistic), `permutations` and `decay` (yetirank).
    measure : str or Measure, default "nDCG@10"
        Trained by lambdarank, watched on `eval_set`, reported by `score`.
    convention : str, default "ranklib"
        What the measure's name leaves open.
    n_estimators : int, default 100
        Trees.
    learning_rate : float > 0, default 0.1
    depth : int in 1 … 12, default 6
        Levels of a tree, 2^depth leaves. Growth ends early where no question helps.
    borders : int in 1 … 255, default 64
        B: each feature's values are cut into B parts, whose ends are the candidate borders.
    l2 : float >= 0, optional
        Shrinks leaf values; None means 0 for squared error and 1 otherwise.
    small_leaf_penalty : float >= 0, default 0
        Cost of an empty leaf in the level search in units of an average row's loss; 1 / (1 + n) of it with n rows.
    fuzziness, p_swap : float, optional
        Width of fuzzy borders, one or the other: as a share of the rows, `p_swap = max(0, 1 - 1 / (fuzziness * n))`
        (default 0.15), or the probability itself, in [0, 1).
    ties : {"near", "average"}, default "near"
        Where rows of equal values stand: at the place nearest to the border (the thesis), or at all of theirs.
    fuzzy_search : bool, default False
        Search levels with fuzzy borders too, not only plain ones.
    places : int in 2 … 32000, default 4096
        Fuzzy shares are exact by row for features of at most this many different values; of others about this many
        quantiles are told apart.
    degree : int, default 1
        Of polynomial leaves.
    neighbour_penalty : float >= 0 or inf, default 1
        λ: holds a leaf's polynomial close to those of leaves one answer away.
    clip : bool, default True
        Polynomials, and a linear start, see features clipped to their training range.
    start : {"constant", "linear"}, default "constant"
        Scores before the first tree: the mean grade (squared error; else 0), or a linear ranker's, least squares of
        grades within queries on the standardised features. A linear start helps where few rows are to tell a slope.
    start_penalty : float >= 0, default 0.1
        Ridge penalty of the linear start, as a share of the rows.
    bootstrap : {"row", "query"}, optional
        Each tree sees a sample drawn with replacement of this unit. None: no replacement, by row.
    replace : bool, default True
        With `bootstrap`: False draws its unit without replacement.
    subsample : float in (0, 1], default 1
        Draws as a share of the rows or queries.
    feature_fraction : float in (0, 1], default 1
        Share of the features that each tree may ask about.
    monotone : array (p,) of -1, 0, 1, or dict of column or name to these, optional
        1: the score must not fall when the feature rises; -1: must not rise. Holds for constant and fuzzy leaves, and
        says nothing of missing values; an error with polynomial leaves, whose slopes nothing holds.
    patience : int, optional
        Stop when `measure` on `eval_set` has not improved for this many trees; the best round is kept. The measure of
        a few hundred queries jumps from tree to tree: a patience of less than half of the trees often stops too early.
    warm_start : bool, default False
        Continue from the trees that are there up to `n_estimators`, bit for bit as if they had been asked for at once.
        Parameters and data must be the same; only `n_estimators`, `patience`, `verbose` and `n_jobs` may change.
    random_state : None, int or NumPy generator
        None is the seed 0.
    verbose : int, default 0
        Print progress, with the validation measure, every so many trees.
    n_jobs : int, optional
        Threads. The model does not depend on their number.

    Attributes
    ----------
    n_iter_ : int
        Trees T of the model.
    start_ : float
        Score before the first tree, to which `start_weights_` (p,), those of standardised features, add a linear start.
    tree_features_, tree_borders_, tree_missing_right_ : arrays (T, depth)
        Questions: level t of a tree asks `x[feature] ≤ border`. An infinite border pads shorter trees, or with
        `missing_right` asks whether the feature is observed.
    tree_values_ : array (T, 2^depth), or (T, 2^depth, monomials) with polynomial leaves
        Leaf values, learning rate included; bit t of a leaf's number is 1 where x > border at level t.
    tree_gains_ : array (T, p)
        What each feature added to the level search's objective.
    valid_scores_ : array
        The measure on `eval_set` after each tree that was tried.
    p_swap_ : float
        With fuzzy leaves. `place_…_` hold the training quantiles of the features in use.
    n_features_in_, feature_names_in_, n_queries_in_, status_
        As in every ranker.

    Raises
    ------
    InvalidInputError
        On parameters out of range or that do not go together, on what a user's objective returns, on grades or weights
        beyond 1e100, and when training diverges.

    Notes
    -----
    *Missing values* (nan) go to the side that the level search finds better, or, in a feature without any in training,
    with most of the rows.

    *Numbers*: gradients are rounded to integers of about 45 bits before histograms are summed, so that sums do not
    depend on their order. Fuzzy and polynomial fits are float64 sums over fixed blocks of rows. Unlimited
    polynomials (`clip=False`) end 1e30 standard deviations out.

    *Weights* multiply gradients and hessians: with plain leaves a weight of 2 equals two copies of a row or query.
    Borders, the places of fuzzy borders and the scaling of polynomials count rows, whatever their weight.

    *Differences from the thesis*: (1) normalised swap probabilities; (2) `fuzziness` counts in shares of the rows;
    (3) equation 8 as derived, not as printed; (4) hessians, weights, missing values, constraints; (5) a feature of few
    values has a border at each, and above 127 parts a part gives its largest value only; (6) a feature may be asked
    about twice in one tree, the same question is not.

    *Cost*: binning O(n p log borders) once; a tree reads each value once for the first level and at most half of them
    for each further one, about 0.5 ns a value, plus 2^depth · p · bins for the search. Fuzzy leaves add O(2^depth n).
    Memory: one byte a value, 30 bytes a row, 2^depth · p KB of histograms.

    References
    ----------
    Belous 2015 (thesis; oblivious trees, fuzzy borders, polynomial leaves). LightGBM (histograms, subtraction) and
    CatBoost (oblivious trees) are the peers that the benchmarks compare with.

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.5, 0.2], [1.0, 0.7], [0.1, 0.9], [0.9, 0.8], [0.4, 0.1]]
    >>> y, qid = [0, 1, 2, 0, 2, 1], [1, 1, 1, 2, 2, 2]
    >>> ranker = ObliviousBoosting("fuzzy", n_estimators=20, depth=2).fit(X, y, qid=qid)
    >>> ranker.rank(X, qid=qid).tolist()
    [3, 2, 1, 3, 1, 2]
    """

    def __init__(
        self,
        leaves: str = "constant",
        *,
        objective: Any = "mse",
        objective_params: dict[str, Any] | None = None,
        measure: Any = "nDCG@10",
        convention: str = "ranklib",
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        depth: int = 6,
        borders: int = 64,
        l2: float | None = None,
        small_leaf_penalty: float = 0.0,
        fuzziness: float | None = None,
        p_swap: float | None = None,
        ties: str = "near",
        fuzzy_search: bool = False,
        places: int = 4096,
        degree: int = 1,
        neighbour_penalty: float = 1.0,
        clip: bool = True,
        start: str = "constant",
        start_penalty: float = 0.1,
        bootstrap: str | None = None,
        replace: bool = True,
        subsample: float = 1.0,
        feature_fraction: float = 1.0,
        monotone: Any = None,
        patience: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.leaves = leaves
        self.objective = objective
        self.objective_params = objective_params
        self.measure = measure
        self.convention = convention
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.depth = depth
        self.borders = borders
        self.l2 = l2
        self.small_leaf_penalty = small_leaf_penalty
        self.fuzziness = fuzziness
        self.p_swap = p_swap
        self.ties = ties
        self.fuzzy_search = fuzzy_search
        self.places = places
        self.degree = degree
        self.neighbour_penalty = neighbour_penalty
        self.clip = clip
        self.start = start
        self.start_penalty = start_penalty
        self.bootstrap = bootstrap
        self.replace = replace
        self.subsample = subsample
        self.feature_fraction = feature_fraction
        self.monotone = monotone
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        query_weight: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
    ) -> ObliviousBoosting:
        """Learn from judged rankings; as `Ranker.fit`, and `sample_weight` (n,) >= 0 weighs single rows."""
        self._row_weight = sample_weight
        try:
            return super().fit(X, y, qid=qid, query_weight=query_weight, eval_set=eval_set)
        finally:
            del self._row_weight

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        X, y = data.X, data.y
        assert y is not None
        parts = check_positive_int(self.borders, "borders")
        if parts > MAX_BORDERS + 1:
            raise InvalidInputError(f"borders must be at most {MAX_BORDERS + 1}, got {parts}: a code is one byte")
        kind = check_choice(self.leaves, "leaves", LEAVES)
        first = check_choice(self.start, "start", ("constant", "linear"))
        start_penalty = check_number(self.start_penalty, "start_penalty", minimum=0.0)
        scaled = kind == "polynomial" or first == "linear"
        check_grades(y)
        progress = self._progress(data.n_features)
        monotone = monotone_signs(self.monotone, data.n_features, list(getattr(self, "feature_names_in_", [])))
        if monotone is not None and kind == "polynomial":
            raise InvalidInputError("polynomial leaves cannot keep monotone constraints; use constant or fuzzy leaves")
        p_swap = swap_probability(self, data.n_rows)
        degree = check_positive_int(self.degree, "degree", 0)
        penalty = self.neighbour_penalty
        if penalty != np.inf:
            penalty = check_number(penalty, "neighbour_penalty", minimum=0.0)
        limit = check_positive_int(self.places, "places", 2)
        if limit > MOST_PLACES:
            raise InvalidInputError(f"places must be at most {MOST_PLACES}, got {limit}")
        weight = row_weights(self._row_weight, data)
        measure = parse_measure(self.measure, convention=self.convention)
        objective = make_objective(self.objective, self.objective_params, measure, self.n_jobs)
        with Workers(self.n_jobs) as workers:

            def look(k: int, values: np.ndarray) -> tuple[np.ndarray, Any, Any]:
                found = find_borders(values, parts)
                table = make_places(values, found, limit) if kind == "fuzzy" else None
                return found, table, column_scaling(values) if scaled else None

            looked = scan_columns(X, look, self.n_jobs)
            borders = [found for found, _, _ in looked]
            scaling = Scaling.of([found for _, _, found in looked], bool(self.clip)) if scaled else None
            rows = Rows(X, code_rows(X, borders, self.n_jobs), training=True)
            plan = plan_of(self, monotone)
            leaves: Any
            if kind == "fuzzy":
                places = [table for _, table, _ in looked]
                if progress.trees and not (p_swap == self.p_swap_ and self._flat_places().hold(places)):
                    raise InvalidInputError(_OTHER_DATA)
                if self.fuzzy_search:
                    plan = replace(plan, rules=replace(plan.rules, smoothing=smoothing_of(borders, places, p_swap)))
                leaves = FuzzyLeaves(plan.rules.l2, monotone, places, p_swap, self.ties, workers)
            elif kind == "polynomial":
                assert scaling is not None
                leaves = PolynomialLeaves(plan.rules.l2, degree, penalty, plan.rules.depth, scaling, workers)
            else:
                leaves = ConstantLeaves(plan.rules.l2, monotone, workers)
            if progress.trees:
                if scaling is not None and not np.array_equal(scaling.mean, self.feature_mean_):
                    raise InvalidInputError(_OTHER_DATA)
                start, scores = self._start(), self._predict(X)
            else:
                linear = None
                if first == "linear":
                    assert scaling is not None
                    linear = fit_linear_start(X, y, data.offsets, weight, scaling, start_penalty, monotone)
                begin = getattr(objective, "start", None)
                known = 0.0 if linear is None else linear.scores(X, self.n_jobs)
                start = Start(0.0 if begin is None else float(begin(y - known, weight)), linear)
                scores = start.scores(X, self.n_jobs)
            watched = None
            if valid is not None:
                assert valid.y is not None
                watched = Watched(
                    Rows(valid.X, code_rows(valid.X, borders, self.n_jobs)),
                    start.scores(valid.X, self.n_jobs),
                    measure,
                    valid.judgements(),
                )
                if len(progress.valid) != len(progress.trees):  # these queries were not watched before
                    progress.valid = [watched.value_of(scores) for scores in self._staged(valid.X)]
                if progress.trees:
                    watched.scores = self._predict(valid.X)
            elif plan.patience is not None:
                raise InvalidInputError("patience needs eval_set=(X, y, qid), the validation queries")
            else:
                progress.valid = []
            status = boost(data, rows, scores, weight, objective, leaves, plan, watched, workers, progress)
        self._keep(progress, start, scaling)
        if kind == "fuzzy":
            self._keep_places(places, p_swap)
        self._prepare()
        self._fitted_with = fit_settings(self)
        self._finish(status)

    def _progress(self, n_features: int) -> Progress:
        """The trees to continue from: none, unless `warm_start`."""
        if self.warm_start and hasattr(self, "tree_values_"):
            return trees_so_far(self, n_features)
        self.seed_ = seed_of(self.random_state)
        return Progress()
