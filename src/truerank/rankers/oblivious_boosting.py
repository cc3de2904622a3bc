"""ObliviousBoosting: boosted oblivious trees with plain, fuzzy or polynomial leaves (Belous 2015)."""

from __future__ import annotations

import numbers as number_types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.random_streams import seed_of, stream
from truerank.core.threads import Workers
from truerank.data.ranking_data import RankingData
from truerank.losses.boosting import make_objective
from truerank.losses.mixture import Mixture, take_beside
from truerank.losses.position_bias import UnbiasedLambdaRank
from truerank.matrices.binning import MAX_BORDERS, code_rows, find_borders, scan_columns
from truerank.matrices.bundles import add_in_dense_blocks, bundle_columns, scan_sparse_columns, summed
from truerank.matrices.content import order_by_content
from truerank.measures import parse_measure
from truerank.rankers.base import Ranker
from truerank.rankers.leaf_choice import choose_leaves
from truerank.trees.boosting import Plan, Progress, Watched, boost
from truerank.trees.categories import CategoryTables, fit_categories
from truerank.trees.ensemble import Ensemble
from truerank.trees.grower import GrowthRules
from truerank.trees.leaves.constant import ConstantFitter
from truerank.trees.leaves.fuzzy import FlatPlaces, FuzzyFitter, FuzzyLeaves, FuzzyPredictor
from truerank.trees.leaves.kinds import Leaves, leaves_as_dict, parse_leaves
from truerank.trees.leaves.places import PlaceTable, make_places, smoothing_of, spread_evenly
from truerank.trees.leaves.polynomial import PolynomialFitter, PolynomialLeaves, PolynomialPredictor, monomial_table
from truerank.trees.linear_start import LinearStart, Start, fit_linear_start
from truerank.trees.predictor import ConstantPredictor, writable
from truerank.trees.rows import Rows
from truerank.trees.scaling import Scaling, check_scaling, column_scaling

MAX_DEPTH = 12
_LARGEST = 1e100  # of grades and weights: squares of sums of them stay finite
_MAY_CHANGE = {"n_estimators", "patience", "warm_start", "verbose", "n_jobs"}  # between a fit and its continuation
_OTHER_DATA = (
    "warm_start: X is not what the model's trees were fitted to; fuzzy and polynomial leaves can only be continued "
    "with the same rows. Set warm_start=False to start anew"
)
# Names of an earlier release.
_OLD_NAMES = {"alpha": "l2", "start_alpha": "start_penalty"}
_OLD_LEAVES: dict[str, tuple[type, str]] = {
    "fuzziness": (FuzzyLeaves, "fuzziness"),
    "p_swap": (FuzzyLeaves, "p_swap"),
    "ties": (FuzzyLeaves, "ties"),
    "fuzzy_search": (FuzzyLeaves, "search"),
    "places": (FuzzyLeaves, "places"),
    "degree": (PolynomialLeaves, "degree"),
    "neighbour_penalty": (PolynomialLeaves, "smoothing"),
}
_OLD_PARAMETERS = {*_OLD_NAMES.values(), *_OLD_LEAVES}
# Fitted arrays: kind of their numbers and dimensions.
_TREES = {
    "tree_features_": ("i", 2),
    "tree_borders_": ("f", 2),
    "tree_missing_right_": ("b", 2),
    "tree_values_": ("f", 2),
    "tree_gains_": ("f", 2),
    "validation_scores_": ("f", 1),
}
_PLACES = {
    "place_features_": ("i", 1),
    "place_sizes_": ("i", 1),
    "place_lower_": ("f", 1),
    "place_upper_": ("f", 1),
    "place_starts_": ("i", 1),
}
_SCALING = dict.fromkeys(("feature_mean_", "feature_scale_", "feature_low_", "feature_high_"), ("f", 1))
_CATEGORIES = {
    "category_features_": ("i", 1),
    "category_sizes_": ("i", 1),
    "category_values_": ("f", 1),
    "category_statistics_": ("f", 1),
}
_PROPENSITIES = ("click_propensities_", "skip_propensities_")
_OF_SOME = ("p_swap_", *_PLACES, "start_weights_", *_SCALING, *_PROPENSITIES, *_CATEGORIES)  # only with some settings


class ObliviousBoosting(Ranker):
    """Boosted oblivious trees: each tree asks one question `x_k ≤ c` a level, the same in all its leaves.

    The scores h start at the mean grade (squared error; else at 0), and each round adds a tree fitted to the
    objective's gradients g and hessians h of the training rows, weighed and sampled:

        level search   maximise Σ_leaves G² / (H + alpha) - penalty for small leaves,  G = Σ g, H = Σ h
        leaf values    F(l) = -Σ P(x∈l) g / (Σ P(x∈l) h + alpha)
        scores         h(x) ← h(x) + learning_rate Σ_l P(x∈l) F(l)

    `leaves` says what P is. `"constant"`: 1 in the row's own leaf, 0 elsewhere. `"fuzzy"`: every row is in every leaf,
    with the probability that a small change of ranks (a swap of neighbours with probability `p_swap`) would put it
    there; scores change gradually with the features, rankings are steadier, and on small sets they are often better.
    `"polynomial"`: a leaf holds a polynomial of the tree's own features instead of a value.

    When to use it: features that interact or have no linear effect, thousands to tens of millions of rows.
    `leaves="constant"` predicts about ten times as fast. Columns of categories are named in `categorical` (an error
    otherwise).

    Parameters
    ----------
    leaves : {"constant", "fuzzy", "polynomial", "auto"}, or a value of these with its parameters, default "fuzzy"
        `ConstantLeaves()`, `FuzzyLeaves(fuzziness=0.1, ties="average", ...)` (width of the borders), or
        `PolynomialLeaves(degree=1, smoothing=1000.0)` (λ between neighbours). In files, a dict:
        `{"kind": "fuzzy", "fuzziness": 0.05}`. "auto" takes the kind, each at its defaults, that ranks queries left
        out best by `validation_measure` (`rankers.leaf_choice`), at seven times the training time.
    objective : str, function or list, default "mse"
        What is made small: "mse", "lambdarank", "unbiased-lambdarank", "softmax", "xe-ndcg", "pairwise-logistic" or
        "yetirank"; see `truerank.losses.boosting`. A function
        `objective(y, scores, offsets) -> (gradients, hessians)`, or an object as `truerank.losses.protocols` has it. A
        list is a weighted sum, whose entries may read labels of their own:
        `["lambdarank", {"objective": "softmax", "weight": 0.2, "label": "clicks"}]` with
        `fit(..., labels={"clicks": c})`.
    objective_params : dict, optional
        `sigma` (lambdarank, pairwise-logistic), `permutations` and `decay` (yetirank), `sigma`, `norm` and
        `max_position` (unbiased-lambdarank).
    measure : str, Measure or function, default "nDCG@10"
        Trained by lambdarank, whatever the measure; reported by `score`.
    validation_measure : str or Measure, optional
        Watched on `eval_set`, ties averaged (`Measure.tie_averaged`); None means `measure`.
    convention : str, default "ranklib"
        What the measure's name leaves open.
    n_estimators : int, default 100
        Trees.
    learning_rate : float > 0, default 0.1
    depth : int in 1 … 12, default 6
        Levels of a tree, 2^depth leaves. Growth ends early where no question helps.
    borders : int in 1 … 255, default 64
        B: each feature's values are cut into B parts, whose ends are the candidate borders.
    alpha : float >= 0, optional
        Shrinks leaf values; None means 0 for squared error and 1 otherwise.
    small_leaf_penalty : float >= 0, default 0
        Cost of an empty leaf in the level search in units of an average row's loss; 1 / (1 + n) of it with n rows.
    clip : bool, default True
        Polynomials, and a linear start, see features clipped to their training range.
    start : {"constant", "linear"}, default "constant"
        Scores before the first tree: the mean grade (squared error; else 0), or a linear ranker's, least squares of
        grades within queries on the standardised features. A linear start helps where few rows are to tell a slope.
    start_alpha : float >= 0, default 0.1
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
    interaction_constraints : list of lists of column numbers or names, optional
        The features of a tree must all be in one of these sets, so that features of different sets add up and never
        interact. Features in no set are one more set.
    feature_costs : array (p,) >= 0, or dict of column or name to these, optional
        What the first question of all trees about a feature costs, as a share of the loss that is left: with 0.01 a
        feature that no tree has asked about must take off one hundredth more of Σg²/h than one that has been paid.
        For features that are dear to compute: the model does with fewer.
    categorical : list of column numbers or names, optional
        Features whose values are categories, not quantities: numbers that stand for them, or columns of text or
        categories of a data frame. Each becomes the mean of its grades within queries, in training of the queries
        before (`truerank.trees.categories`); one never seen counts as average, a missing one as missing.
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
    l2, start_penalty, fuzziness, p_swap, ties, fuzzy_search, places, degree, neighbour_penalty
        Names of an earlier release, which still work in this one and warn: `alpha`, `start_alpha`, and the parameters
        of `FuzzyLeaves` and `PolynomialLeaves`.

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
    validation_scores_ : array
        The validation measure on `eval_set` after each tree that was tried; empty without `eval_set`.
    history_ : dict of arrays
        By tree that was tried: "validation" as above, and "objective", by how much the training objective has changed
        since the start (exact for squared error, where it is half of the change of the summed squared error; else of
        the parabola that gradients and hessians describe; nan where it was not measured).
    click_propensities_, skip_propensities_ : float64 arrays (K,)
        With unbiased-lambdarank: how much likelier a document is clicked, or passed over, at position k than at 1.
    leaves_, leaf_scores_ : str, dict of str to float
        With leaves="auto": the kind, and what each kind had on queries left out.
    p_swap_ : float
        With fuzzy leaves. `place_…_` hold the training quantiles of the features in use.
    n_features_in_, feature_names_in_, n_queries_in_, status_
        As in every ranker.

    Raises
    ------
    InvalidInputError
        On parameters out of range or that do not go together, on what a user's objective returns, on grades or weights
        beyond 1e100, and when training diverges from the first trees on.

    Warns
    -----
    ConvergenceWarning
        When training diverges later: it stops, and the trees up to the least training objective are kept.
    FutureWarning
        On a parameter's earlier name.

    Notes
    -----
    *Missing values* (nan) go to the side that the level search finds better, or, in a feature without any in training,
    with most of the rows.

    *Numbers*: gradients are rounded to integers of about 45 bits before histograms are summed, so that sums do not
    depend on their order. Fuzzy and polynomial fits are float64 sums over fixed blocks of rows. Unlimited
    polynomials (`clip=False`) end 1e30 standard deviations out.

    *Sparse rows* (CSR): features of which a row has at most one beside zero share a byte (`truerank.matrices.bundles`).
    The trees are those of dense rows. Not with polynomial leaves, a linear start or categorical features.

    *Order of the rows*: rows and queries are drawn, and ties of lambdarank broken, in an order by their content, so
    that another order of the training file gives the same model up to rounding.

    *Weights* multiply gradients and hessians: with plain leaves a weight of 2 equals two copies of a row or query.
    So it does in the scaling of polynomials and of a linear start. Borders and the places of fuzzy borders count rows,
    whatever their weight.

    *Differences from the thesis*: (1) normalised swap probabilities; (2) `fuzziness` counts in shares of the rows;
    (3) equation 8 as derived, not as printed; (4) hessians, weights, missing values, constraints; (5) a feature of few
    values has a border at each, and above 127 parts a part gives its largest value only; (6) a feature may be asked
    about twice in one tree, the same question is not; (7) polynomials of all leaves are fitted at once, and their
    smoothing acts on coefficients of features that are standardised over all rows.

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

    model_attributes: ClassVar[tuple[str, ...]] = (
        *Ranker.model_attributes,
        "start_",
        *_TREES,
        "history_",
        "n_iter_",
        "seed_",
        "category_names_",
        *_OF_SOME,
    )
    renamed_attributes: ClassVar[dict[str, str]] = {"valid_scores_": "validation_scores_"}
    allow_nan = True
    missing_values = "to the side of each question that fits better"
    uses_eval_set = True
    allow_sample_weight = True

    start_: float
    leaves_: Any
    leaf_scores_: dict[str, float]
    validation_scores_: np.ndarray
    history_: dict[str, np.ndarray]
    feature_mean_: np.ndarray

    def __init__(
        self,
        leaves: Any = "fuzzy",
        *,
        objective: Any = "mse",
        objective_params: dict[str, Any] | None = None,
        measure: Any = "nDCG@10",
        validation_measure: Any = None,
        convention: str = "ranklib",
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        depth: int = 6,
        borders: int = 64,
        alpha: float | None = None,
        small_leaf_penalty: float = 0.0,
        clip: bool = True,
        start: str = "constant",
        start_alpha: float = 0.1,
        bootstrap: str | None = None,
        replace: bool = True,
        subsample: float = 1.0,
        feature_fraction: float = 1.0,
        monotone: Any = None,
        interaction_constraints: Any = None,
        feature_costs: Any = None,
        categorical: Any = None,
        patience: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        l2: float | None = None,
        start_penalty: float | None = None,
        fuzziness: float | None = None,
        p_swap: float | None = None,
        ties: str | None = None,
        fuzzy_search: bool | None = None,
        places: int | None = None,
        degree: int | None = None,
        neighbour_penalty: float | None = None,
    ) -> None:
        self.leaves = leaves
        self.objective = objective
        self.objective_params = objective_params
        self.measure = measure
        self.validation_measure = validation_measure
        self.convention = convention
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.depth = depth
        self.borders = borders
        self.alpha = alpha
        self.small_leaf_penalty = small_leaf_penalty
        self.clip = clip
        self.start = start
        self.start_alpha = start_alpha
        self.bootstrap = bootstrap
        self.replace = replace
        self.subsample = subsample
        self.feature_fraction = feature_fraction
        self.monotone = monotone
        self.interaction_constraints = interaction_constraints
        self.feature_costs = feature_costs
        self.categorical = categorical
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.l2 = l2
        self.start_penalty = start_penalty
        self.fuzziness = fuzziness
        self.p_swap = p_swap
        self.ties = ties
        self.fuzzy_search = fuzzy_search
        self.places = places
        self.degree = degree
        self.neighbour_penalty = neighbour_penalty

    @property
    def allow_sparse(self) -> bool:  # type: ignore[override]
        """Whether X may be sparse: with constant and fuzzy leaves and nothing that standardises or encodes columns."""
        return str(self.start) == "constant" and self.categorical is None and self._leaves_name() != "polynomial"

    def _leaves_name(self) -> str:
        """The name of the leaves, whatever way they were given; also of ones that `fit` will refuse."""
        given = self.leaves.get("kind") if isinstance(self.leaves, dict) else self.leaves
        return str(getattr(given, "name", given))

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        query_weight: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
        labels: Any = None,
        position: Any = None,
        init_model: Any = None,
        **other: Any,
    ) -> ObliviousBoosting:
        """Learn from judged rankings; as `Ranker.fit`, and what some objectives read beside the grades.

        Parameters
        ----------
        sample_weight : array (n,) >= 0, optional
            Weighs single rows.
        labels : dict of str to array (n,), optional
            Labels by name, for a list of objectives that names them.
        position : array (n,) of whole numbers >= 1, optional
            Where each row was shown, 1 is first; for unbiased-lambdarank.
        init_model : fitted ObliviousBoosting, optional
            A model to go on from, on other data (also `xgb_model`): its trees stay as they are, and `n_estimators`
            trees are added to them. Leaves and `depth` must be the model's; statistics of categories, scales of
            polynomials and the places of fuzzy borders stay the model's, and for features of its trees new borders
            stand where fuzzy ones know a place.
        """
        theirs = other.pop("xgb_model", None)
        begun = init_model if theirs is None else theirs
        if isinstance(begun, ObliviousBoosting) and hasattr(begun, "category_names_"):
            # Its categories keep their numbers; one that it has not seen counts as average.
            X = begun._numbered(X, reset=False)
            if isinstance(eval_set, tuple) and eval_set:
                eval_set = (begun._numbered(eval_set[0], reset=False), *eval_set[1:])

        def beside(data: RankingData) -> dict[str, Any]:
            shown = beside_grades({"position": position}, data)["position"]
            return {"labels": beside_grades(labels, data), "position": shown, "begun": begun}

        fitted: ObliviousBoosting = self._whole_fit(
            X, y, qid, query_weight, sample_weight, eval_set, other, beside=beside
        )
        return fitted

    def _fit(
        self,
        data: RankingData,
        valid: RankingData | None,
        labels: dict[str, Any] | None = None,
        position: np.ndarray | None = None,
        begun: Any = None,
    ) -> None:
        if begun is not None:
            self._take_model(begun, data.n_features)
        X, y = data.X, data.y
        assert y is not None
        sparse = hasattr(X, "tocsc")
        self._warn_of_old_names()
        parts = check_positive_int(self.borders, "borders")
        if parts > MAX_BORDERS + 1:
            raise InvalidInputError(f"borders must be at most {MAX_BORDERS + 1}, got {parts}: a code is one byte")
        progress = self._progress(data.n_features) if begun is None else self._trees_of_model()
        watch = parse_measure(
            self.measure if self.validation_measure is None else self.validation_measure, convention=self.convention
        ).tie_averaged()  # leaves tie many documents: no order of the rows is to choose the trees
        self._choose_leaves(data, watch, bool(progress.trees) or begun is not None, labels or position is not None)
        kind = self.kind_of_leaves
        first = check_choice(self.start, "start", ("constant", "linear"))
        start_alpha = check_number(self._renamed("start_alpha"), "start_alpha", minimum=0.0)
        scaled = isinstance(kind, PolynomialLeaves) or first == "linear"
        if valid is not None and hasattr(valid.X, "tocsc") != sparse:
            raise InvalidInputError(
                f"X is {'sparse' if sparse else 'dense'} and that of eval_set is not: give both in the same form"
            )
        check_grades(y)
        check_weights(data.row_weight)
        monotone = monotone_signs(self.monotone, data.n_features, list(getattr(self, "feature_names_in_", [])))
        if monotone is not None and isinstance(kind, PolynomialLeaves):
            raise InvalidInputError("polynomial leaves cannot keep monotone constraints; use constant or fuzzy leaves")
        p_swap = kind.swap_probability(data.n_rows) if isinstance(kind, FuzzyLeaves) else 0.0
        if begun is not None and isinstance(kind, FuzzyLeaves):
            p_swap = self.p_swap_
        measure = parse_measure(self.measure, convention=self.convention)
        objective = make_objective(self.objective, self.objective_params, measure, self.n_jobs)
        take_beside(objective, labels, position, data.row_weight)
        unbiased = _unbiased_part(objective)
        if unbiased is not None and progress.trees:
            raise InvalidInputError(
                f"{'warm_start' if begun is None else 'init_model'}: unbiased-lambdarank learns its propensities from "
                "tree to tree and cannot be continued; start anew"
            )
        columns = self._category_columns(data.n_features)
        tables: CategoryTables | None = None
        if begun is not None and hasattr(self, "category_features_"):
            tables = self._category_tables()
            X = tables.encode(X)
        elif columns is not None:
            if progress.trees:
                raise InvalidInputError(
                    "warm_start: a model with categorical features cannot be continued; set warm_start=False"
                )
            rows_in_order, queries = order_by_content(X, y, data.offsets, data.query_weight)
            order = queries[stream(self.seed_, "categories", 0).permutation(len(queries))]
            del rows_in_order
            tables, X = fit_categories(X, y, data.offsets, data.row_weight, columns, order)
        valid_X: Any = None if valid is None else valid.X if tables is None else tables.encode(valid.X)
        known_places = self._known_places() if begun is not None and isinstance(kind, FuzzyLeaves) else {}
        with Workers(self.n_jobs) as workers:

            def look(k: int, values: np.ndarray) -> tuple[np.ndarray, Any, Any]:
                found = find_borders(values, parts)
                table = known_places.get(k)
                if (
                    known_places and table is None and isinstance(kind, FuzzyLeaves)
                ):  # as many places as the model's features have
                    most = max(one.n for one in known_places.values())
                    spread = spread_evenly(values, max(1, round(most * len(values) / data.n_rows)))
                    table = make_places(spread, found, kind.places)
                if table is not None:
                    found = table.borders_at_knots(found)
                elif isinstance(kind, FuzzyLeaves):
                    table = make_places(values, found, kind.places)
                if not scaled:
                    return found, table, None
                weight = data.row_weight
                return found, table, column_scaling(values) if weight is None else column_scaling(X[:, k], weight)

            by_column = summed(X).tocsc() if sparse else X
            looked = (scan_sparse_columns if sparse else scan_columns)(by_column, look, self.n_jobs)
            borders = [found for found, _, _ in looked]
            places = [table for _, table, _ in looked]
            scaling = Scaling.of([found for _, _, found in looked], bool(self.clip)) if scaled else None
            if begun is not None and scaled:
                scaling = self._scaling()
            rows = self._coded(by_column, borders, training=True)
            plan = self._plan(monotone)
            if begun is not None:
                plan = replace(plan, n_estimators=plan.n_estimators + len(progress.trees))
            fitter: Any
            if isinstance(kind, FuzzyLeaves):
                continued = begun is None and progress.trees
                if continued and not (p_swap == self.p_swap_ and self._flat_places().hold(places)):
                    raise InvalidInputError(_OTHER_DATA)
                if kind.search:
                    plan = replace(plan, rules=replace(plan.rules, smoothing=smoothing_of(borders, places, p_swap)))
                fitter = FuzzyFitter(plan.rules.alpha, monotone, places, p_swap, kind.ties, workers)
            elif isinstance(kind, PolynomialLeaves):
                assert scaling is not None
                fitter = PolynomialFitter(plan.rules.alpha, kind, plan.rules.depth, scaling, workers)
            else:
                fitter = ConstantFitter(plan.rules.alpha, monotone, workers)
            if progress.trees:
                if scaling is not None and not np.array_equal(scaling.mean, self.feature_mean_):
                    raise InvalidInputError(_OTHER_DATA)
                start, scores = self._start(), self._predict(data.X)
            elif sparse:
                start = Start(float(objective.start(y, data.row_weight)), None)
                scores = np.full(X.shape[0], start.constant)
            else:
                linear = None
                if first == "linear":
                    assert scaling is not None
                    linear = fit_linear_start(X, y, data.offsets, data.row_weight, scaling, start_alpha, monotone)
                known = 0.0 if linear is None else linear.scores(X, self.n_jobs)
                start = Start(float(objective.start(y - known, data.row_weight)), linear)
                scores = start.scores(X, self.n_jobs)
            watched = None
            if valid is not None:
                assert valid.y is not None
                assert valid_X is not None
                known = np.full(valid.n_rows, start.constant) if sparse else start.scores(valid_X, self.n_jobs)
                watched = Watched(
                    self._coded(summed(valid_X).tocsc() if sparse else valid_X, borders),
                    known,
                    watch,
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
            # Kept for the watch over the training objective: one number, unless the start is a line.
            at_start = start.constant if start.linear is None else start.scores(X, self.n_jobs)
            if begun is not None:  # on other data the model may stand worse than a constant
                at_start = scores.copy()
            status = boost(data, rows, scores, at_start, objective, fitter, plan, watched, workers, progress)
        self._keep(progress, start, scaling)
        if isinstance(kind, FuzzyLeaves):
            self._keep_places(places, p_swap)
        if tables is not None:
            for name in ("features", "sizes", "values", "statistics"):
                setattr(self, f"category_{name}_", getattr(tables, name))
        if unbiased is not None:
            self.click_propensities_ = unbiased.click_propensities
            self.skip_propensities_ = unbiased.skip_propensities
        self._prepare()
        self._fitted_with = self._fit_settings()
        self._finish(status)

    # Arguments.

    @property
    def kind_of_leaves(self) -> Leaves:
        """The leaves as a value, whatever way they were given."""
        given = self.leaves
        if isinstance(given, str) and given == "auto":
            if not hasattr(self, "leaves_"):
                raise InvalidInputError('leaves="auto" is settled by fit; name the leaves to know them before')
            given = self.leaves_
        kind = parse_leaves(given)
        old = {
            new: getattr(self, name)
            for name, (leaves, new) in _OLD_LEAVES.items()
            if leaves is type(kind) and getattr(self, name) is not None
        }
        if old:
            kind = replace(kind, **old)
            kind.check()
        return kind

    def _choose_leaves(self, data: RankingData, watch: Any, continued: bool, beside: Any) -> None:
        """Settle `leaves="auto"`; the trees of a continued fit have their leaves."""
        automatic = isinstance(self.leaves, str) and self.leaves == "auto"
        if automatic and continued:
            return
        for name in ("leaves_", "leaf_scores_"):
            self.__dict__.pop(name, None)
        if automatic and beside:
            raise InvalidInputError('leaves="auto" cannot leave out labels or position with queries; name the leaves')
        if automatic:
            self.leaves_, self.leaf_scores_ = choose_leaves(self, data, watch)

    def _renamed(self, name: str) -> Any:
        """A parameter's value, or what its earlier name was given."""
        old = getattr(self, _OLD_NAMES[name])
        return getattr(self, name) if old is None else old

    def _warn_of_old_names(self) -> None:
        given = {old: new for new, old in _OLD_NAMES.items()}
        given |= {old: f"leaves={leaves.__name__}({new}=...)" for old, (leaves, new) in _OLD_LEAVES.items()}
        for old, new in given.items():
            if getattr(self, old) is not None:
                warnings.warn(
                    f"ObliviousBoosting: {old} is the name of an earlier release and goes with the next; use {new}",
                    FutureWarning,
                    stacklevel=4,
                )

    def _plan(self, monotone: np.ndarray | None) -> Plan:
        """The settings of the boosting loop."""
        n_estimators = check_positive_int(self.n_estimators, "n_estimators")
        depth = check_positive_int(self.depth, "depth")
        if depth > MAX_DEPTH:
            raise InvalidInputError(f"depth must be at most {MAX_DEPTH} (a tree has 2^depth leaves), got {depth}")
        if self.bootstrap is not None:
            check_choice(self.bootstrap, "bootstrap", ("row", "query"))
        alpha = self._renamed("alpha")
        if alpha is None:
            alpha = 0.0 if self.objective == "mse" else 1.0
        names = list(getattr(self, "feature_names_in_", []))
        rules = GrowthRules(
            depth,
            check_number(alpha, "alpha", minimum=0.0),
            check_number(self.small_leaf_penalty, "small_leaf_penalty", minimum=0.0),
            monotone,
            together=feature_sets(self.interaction_constraints, self.n_features_in_, names),
            costs=costs_of(self.feature_costs, self.n_features_in_, names),
        )
        return Plan(
            n_estimators,
            check_number(self.learning_rate, "learning_rate", minimum=0.0, open_minimum=True),
            rules,
            self.bootstrap or "row",
            self.bootstrap is not None and bool(self.replace),
            check_number(self.subsample, "subsample", minimum=0.0, maximum=1.0, open_minimum=True),
            check_number(self.feature_fraction, "feature_fraction", minimum=0.0, maximum=1.0, open_minimum=True),
            None if self.patience is None else check_positive_int(self.patience, "patience"),
            check_positive_int(self.verbose, "verbose", 0),
            self.seed_,
        )

    def _progress(self, n_features: int) -> Progress:
        """The trees that a warm start continues from, which must be of the same parameters and data; else none."""
        if not (self.warm_start and hasattr(self, "tree_values_")):
            self.seed_ = seed_of(self.random_state)
            return Progress()
        have = len(self.tree_values_)
        if check_positive_int(self.n_estimators, "n_estimators") < have:
            raise InvalidInputError(
                f"warm_start: n_estimators={self.n_estimators} is less than the {have} trees that the model has"
            )
        before = getattr(self, "_fitted_with", None)
        if before is not None:
            for name, value in self._fit_settings().items():
                if value != before[name]:
                    raise InvalidInputError(
                        f"warm_start: {name} was {before[name]} and is {value}; a fit can only be continued with the "
                        "same parameters. Set warm_start=False to start anew"
                    )
        if self.tree_features_.shape[1] != self.depth:
            raise InvalidInputError(
                f"warm_start: the model's trees have depth {self.tree_features_.shape[1]}, got depth={self.depth}"
            )
        if self.tree_gains_.shape[1] != n_features:
            raise InvalidInputError(
                f"warm_start: the model was fitted to {self.tree_gains_.shape[1]} features, X has {n_features}"
            )
        trees: list[Any] = list(
            zip(self.tree_features_, self.tree_borders_, self.tree_missing_right_, self.tree_values_)
        )
        history = [part.tolist()[:have] for part in (self.validation_scores_, self.history_["objective"])]
        return Progress(trees, list(self.tree_gains_), *history)

    def _take_model(self, begun: Any, n_features: int) -> None:
        """Take over a fitted model's trees and what they stand on, to go on from them."""
        if not isinstance(begun, ObliviousBoosting) or not hasattr(begun, "tree_values_"):
            found = "one that is not fitted" if isinstance(begun, ObliviousBoosting) else type(begun).__name__
            hint = "; read it first, load_model(path)" if isinstance(begun, str) else ""
            raise InvalidInputError(f"init_model must be a fitted ObliviousBoosting, got {found}{hint}")
        if begun.n_features_in_ != n_features:
            raise InvalidInputError(f"init_model was fitted to {begun.n_features_in_} features, X has {n_features}")
        names = getattr(begun, "feature_names_in_", None)
        own = getattr(self, "feature_names_in_", None)
        if names is not None and own is not None and list(names) != list(own):
            wrong = next(place for place, (a, b) in enumerate(zip(names, own)) if a != b)
            raise InvalidInputError(
                f"init_model: its column {wrong} was {names[wrong]!r} and is {own[wrong]!r}; name the columns as then"
            )
        if isinstance(self.leaves, str) and self.leaves == "auto":
            self.leaves_ = begun.kind_of_leaves
        kind, theirs = self.kind_of_leaves, begun.kind_of_leaves
        # What the model's own trees are scored with must stay: polynomials' degree, how fuzzy borders take ties.
        same = type(kind) is type(theirs) and all(
            getattr(kind, name, None) == getattr(theirs, name, None) for name in ("degree", "ties")
        )
        if not same:
            raise InvalidInputError(f"init_model has leaves {theirs}, this ranker {kind}: they must be the same")
        if begun.tree_features_.shape[1] != self.depth:
            raise InvalidInputError(
                f"init_model has trees of depth {begun.tree_features_.shape[1]}, this ranker depth={self.depth}"
            )
        if (self.categorical is not None) != hasattr(begun, "category_features_"):
            raise InvalidInputError("init_model: `categorical` must name the columns that it named then")
        coded = getattr(self, "category_names_", None)
        if coded is not None and coded != getattr(begun, "category_names_", {}):
            raise InvalidInputError(
                "init_model: its categories have other numbers; read the table with "
                "categories=init_model.category_names"
            )
        if (self.start == "linear") != hasattr(begun, "start_weights_"):
            raise InvalidInputError(f"init_model starts from {begun.start!r}, this ranker from {self.start!r}")
        self.seed_ = seed_of(self.random_state)
        for name in ("start_", *_TREES, "history_", "n_iter_", "category_names_", *_OF_SOME):
            self.__dict__.pop(name, None)
            if hasattr(begun, name):
                setattr(self, name, getattr(begun, name))
        self._prepare()

    def _trees_of_model(self) -> Progress:
        """The trees taken over, without a history: they have not seen these data."""
        trees: list[Any] = list(
            zip(self.tree_features_, self.tree_borders_, self.tree_missing_right_, self.tree_values_)
        )
        return Progress(trees, list(self.tree_gains_))

    def _known_places(self) -> dict[int, PlaceTable]:
        """The place tables of the features that the trees use, by column."""
        flat = self._flat_places()
        return dict(zip(flat.features.tolist(), flat.tables()))

    def _fit_settings(self) -> dict[str, str]:
        """The parameters that must stay for a warm start, in a form that can be compared."""
        return {name: repr(value) for name, value in self.get_params(deep=False).items() if name not in _MAY_CHANGE}

    # Scores.

    def _checked(self, X: Any, *, reset: bool) -> Any:
        if reset:
            self.__dict__.pop("category_names_", None)  # of an earlier fit
        X = frame_of(X)
        given, known = list(getattr(X, "columns", ())), list(getattr(self, "feature_names_in_", ()))
        refused = known and given and given != known and all(isinstance(name, str) for name in given)
        if reset or not refused:  # other names are refused first
            X = self._numbered(X, reset)
            refuse_categories(X)
        return super()._checked(X, reset=reset)

    def _own_category_names(self) -> dict[str, list[str]]:
        names = getattr(self, "feature_names_in_", [])
        return {str(names[int(k)]): list(texts) for k, texts in getattr(self, "category_names_", {}).items()}

    def _take_category_names(self, data: RankingData) -> None:
        self.__dict__.pop("category_names_", None)  # of an earlier fit
        if not data.category_names:
            return
        names = list(data.feature_names or [])
        given = self.categorical
        known = set() if given is None else set(columns_of(given, "categorical", len(names), names).tolist())
        numbered = {}
        for name, texts in data.category_names.items():
            if names.index(name) not in known:
                raise InvalidInputError(f"column {name!r} holds categories: name it in categorical=[{name!r}]")
            numbered[str(names.index(name))] = list(texts)
        self.category_names_ = numbered

    def _numbered(self, X: Any, reset: bool) -> Any:
        """A data frame whose named columns of text or categories hold the numbers of these; anything else as it is."""
        if self.categorical is None or not (hasattr(X, "columns") and hasattr(X, "dtypes")):
            return X
        names = {} if reset else dict(getattr(self, "category_names_", {}))
        columns = list(X.columns)
        for k in columns_of(self.categorical, "categorical", len(columns), columns).tolist():
            given = X[columns[k]].to_numpy()
            if given.dtype.kind in "iufb" and str(k) not in names:
                numbers = given.astype(np.float64)
            else:
                text = [None if is_missing(value) else str(value) for value in given.tolist()]
                if reset:
                    names[str(k)] = sorted({value for value in text if value is not None})
                elif str(k) not in names:
                    continue  # numbers in training: the error is `refuse_categories`'
                number = {name: float(place) for place, name in enumerate(names[str(k)])}
                numbers = np.array([np.nan if value is None else number.get(value, -1.0) for value in text])
            if hasattr(X, "with_columns"):
                X = X.with_columns(type(X[columns[k]])(columns[k], numbers))
            else:
                X = X.assign(**{columns[k]: numbers})
        if reset and names:
            self.category_names_ = names
        return X

    def _category_columns(self, n_features: int) -> np.ndarray | None:
        """The columns that hold categories, int64 (u,); None without any."""
        if self.categorical is None:
            return None
        found = columns_of(self.categorical, "categorical", n_features, list(getattr(self, "feature_names_in_", [])))
        return found if len(found) else None

    def encoded(self, X: np.ndarray) -> np.ndarray:
        """X (n, p) as the trees see it: statistics in place of categories; X itself without categorical features."""
        if not hasattr(self, "category_features_"):
            return X
        return self._category_tables().encode(X)

    def _category_tables(self) -> CategoryTables:
        names = ("features", "sizes", "values", "statistics")
        return CategoryTables(*(getattr(self, f"category_{name}_") for name in names))

    def _coded(self, X: Any, borders: list[np.ndarray], training: bool = False) -> Rows:
        """Rows of an array or a CSC matrix, with their codes."""
        matrix = bundle_columns(X, borders) if hasattr(X, "tocsc") else code_rows(X, borders, self.n_jobs)
        return Rows(X, matrix, training)

    def _predict(self, X: Any) -> np.ndarray:
        X = self.encoded(X)
        return self._advance(X, self._start_scores(X))

    def _start_scores(self, X: Any) -> np.ndarray:
        """Scores (n,) before the first tree, of rows as `encoded` gives them."""
        return np.full(X.shape[0], self.start_) if hasattr(X, "tocsr") else self._start().scores(X, self.n_jobs)

    def _advance(self, X: Any, scores: np.ndarray, trees: slice = slice(None)) -> np.ndarray:
        """Add the values of `trees` to the scores (n,) of rows as `encoded` gives them."""

        def add(rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
            return np.asarray(self._predictor.predict(rows, self.n_jobs, scores, trees))

        return add_in_dense_blocks(X, add, scores) if hasattr(X, "tocsr") else add(X, scores)

    def _feature_shares(self) -> np.ndarray:
        return np.asarray(self.tree_gains_.sum(axis=0))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Scores (n,) after each tree, in the caller's row order; the last are `predict`'s."""
        check_is_fitted(self)
        restore: Callable[[np.ndarray], np.ndarray]
        if isinstance(X, RankingData):
            self._check_columns(X)
            matrix, restore = X.X, X.restore
        else:
            matrix, restore = self._checked(X, reset=False), lambda values: values
        for scores in self._staged(matrix):
            yield restore(scores).copy()

    def _staged(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """Scores after each tree, in one array that is advanced."""
        X = self.encoded(X)
        scores = self._start_scores(X)
        for t in range(self.n_iter_):
            yield self._advance(X, scores, slice(t, t + 1))

    # The model.

    def _keep(self, progress: Progress, start: Start, scaling: Scaling | None) -> None:
        """Keep the trees, what they start from, and how features are standardised."""
        self.start_ = start.constant
        for name in _OF_SOME:
            self.__dict__.pop(name, None)  # of an earlier fit
        if start.linear is not None:
            self.start_weights_ = start.linear.weights
        if scaling is not None:
            self.feature_mean_, self.feature_scale_ = scaling.mean, scaling.scale
            self.feature_low_, self.feature_high_ = scaling.low, scaling.high
        names = ("tree_features_", "tree_borders_", "tree_missing_right_", "tree_values_")
        for name, arrays in zip(names, zip(*progress.trees)):
            setattr(self, name, np.stack(arrays))
        self.tree_gains_ = np.stack(progress.gains)
        self.validation_scores_ = np.array(progress.valid, dtype=np.float64)
        change = np.array(progress.change, dtype=np.float64)
        self.history_ = {"objective": change, "validation": self.validation_scores_}
        self.n_iter_ = len(progress.trees)

    @property
    def valid_scores_(self) -> np.ndarray:
        """The name of an earlier release of `validation_scores_`."""
        warnings.warn("valid_scores_ is now validation_scores_", FutureWarning, stacklevel=2)
        return self.validation_scores_

    def model_params(self) -> dict[str, Any]:
        """Parameters for a model file, which keeps neither functions nor generators nor dicts by number.

        A loaded model predicts all the same; to go on training it, set `objective` to the function again.
        """
        params: dict[str, Any] = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if value is not None or name not in _OLD_PARAMETERS
        }
        if not isinstance(self.leaves, str) or self.leaves == "auto":
            params["leaves"] = leaves_as_dict(self.kind_of_leaves)
        if callable(self.objective):
            name = getattr(self.objective, "__name__", type(self.objective).__name__)
            params["objective"] = f"the function {name}"
        elif isinstance(self.objective, list | tuple):
            params["objective"] = [_entry_of_file(entry) for entry in self.objective]
        if isinstance(self.monotone, dict):
            names = list(getattr(self, "feature_names_in_", []))
            params["monotone"] = monotone_signs(self.monotone, self.n_features_in_, names)
        if self.interaction_constraints is not None:
            sets = [[k if isinstance(k, str) else int(k) for k in one] for one in self.interaction_constraints]
            params["interaction_constraints"] = sets
        if isinstance(self.feature_costs, dict):
            names = list(getattr(self, "feature_names_in_", []))
            params["feature_costs"] = costs_of(self.feature_costs, self.n_features_in_, names)
        if self.random_state is not None:
            params["random_state"] = self.seed_
        return params

    def _keep_places(self, places: list[PlaceTable], p_swap: float) -> None:
        """Keep the place tables of the features in use."""
        used = np.unique(self.tree_features_)
        flat = FlatPlaces.of(used, [places[k] for k in used])
        self.p_swap_ = p_swap
        for name in ("features", "sizes", "lower", "upper", "starts"):
            setattr(self, f"place_{name}_", getattr(flat, name))

    def _flat_places(self) -> FlatPlaces:
        names = ("features", "sizes", "lower", "upper", "starts")
        return FlatPlaces(*(writable(getattr(self, f"place_{name}_")) for name in names))

    def _ensemble(self) -> Ensemble:
        names = ("tree_features_", "tree_borders_", "tree_missing_right_", "tree_values_")
        return Ensemble(*(writable(getattr(self, name)) for name in names))

    def _scaling(self) -> Scaling:
        return Scaling(self.feature_mean_, self.feature_scale_, self.feature_low_, self.feature_high_)

    def _start(self) -> Start:
        weights = getattr(self, "start_weights_", None)
        return Start(self.start_, None if weights is None else LinearStart(weights, self._scaling()))

    def _make_predictor(self, ensemble: Ensemble) -> Any:
        kind = self.kind_of_leaves
        if isinstance(kind, FuzzyLeaves):
            return FuzzyPredictor(ensemble, self._flat_places(), self.p_swap_, kind.ties)
        if isinstance(kind, PolynomialLeaves):
            return PolynomialPredictor(ensemble, self._scaling(), kind.degree)
        return ConstantPredictor(ensemble)

    def _prepare(self) -> None:
        self._predictor = self._make_predictor(self._ensemble())

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__getstate__().items() if key != "_predictor"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "tree_values_"):
            self._prepare()

    def _check_fitted(self) -> None:
        """Raise `ModelFileError` when an attribute from a file is missing or of another kind."""
        try:
            kind_now = self.kind_of_leaves
        except InvalidInputError as error:
            raise ModelFileError(f"ObliviousBoosting: {error}") from error
        fuzzy, polynomial = (isinstance(kind_now, kind) for kind in (FuzzyLeaves, PolynomialLeaves))
        kinds = dict(_TREES)
        if fuzzy:
            kinds |= _PLACES
        linear = hasattr(self, "start_weights_")
        if polynomial or linear or self.start == "linear":
            kinds |= _SCALING
        if linear or self.start == "linear":
            kinds |= {"start_weights_": ("f", 1)}
        if polynomial:
            kinds["tree_values_"] = ("f", 3)
        if hasattr(self, "category_features_") or self.categorical is not None:
            kinds |= _CATEGORIES
        for name, (kind, dimensions) in kinds.items():
            array = getattr(self, name, None)
            if not isinstance(array, np.ndarray) or array.dtype.kind != kind or array.ndim != dimensions:
                raise ModelFileError(f"ObliviousBoosting: {name} is missing or not an array of {dimensions} dimensions")
        trees = len(self.tree_features_)
        if getattr(self, "n_iter_", None) != trees or self.tree_gains_.shape != (trees, self.n_features_in_):
            raise ModelFileError("ObliviousBoosting: n_iter_ and tree_gains_ must be of as many trees as there are")
        numbers = {"start_": np.inf} | ({"p_swap_": 1.0} if fuzzy else {})
        for name, end in numbers.items():
            value = getattr(self, name, None)
            if not isinstance(value, int | float) or not -end < value < end:
                raise ModelFileError(f"ObliviousBoosting: {name} must be a number within its range, got {value!r}")
        history = getattr(self, "history_", None)
        if not isinstance(history, dict) or not all(isinstance(part, np.ndarray) for part in history.values()):
            raise ModelFileError("ObliviousBoosting: history_ must hold arrays")

    def check_model(self) -> None:
        """Called after loading: the arrays of the trees must fit together."""
        super().check_model()
        if not hasattr(self, "history_") and isinstance(getattr(self, "validation_scores_", None), np.ndarray):
            unknown = np.full(len(self.validation_scores_), np.nan)  # a file of an earlier release
            self.history_ = {"objective": unknown, "validation": self.validation_scores_}
        self._check_fitted()
        kind, monomials = self.kind_of_leaves, None
        if isinstance(self.leaves, dict):
            self.leaves = kind
        if isinstance(kind, PolynomialLeaves):
            monomials = len(monomial_table(self._ensemble().depth, kind.degree))
        self._ensemble().check(self.n_features_in_, monomials)
        if monomials is not None or hasattr(self, "start_weights_"):
            check_scaling(self._scaling(), self.n_features_in_)
            self._start().check(self.n_features_in_)
        if hasattr(self, "category_features_"):
            self._category_tables().check(self.n_features_in_)
        names = getattr(self, "category_names_", {})
        if not isinstance(names, dict) or not all(isinstance(one, list) for one in names.values()):
            raise ModelFileError("ObliviousBoosting: category_names_ must hold a list of names by column")
        if isinstance(kind, FuzzyLeaves):
            self._flat_places().check(self.n_features_in_, self._ensemble())
        self._prepare()


def _unbiased_part(objective: Any) -> UnbiasedLambdaRank | None:
    """The objective, or the part of a mixture, that learns propensities."""
    parts = [part.objective for part in objective.parts] if isinstance(objective, Mixture) else [objective]
    return next((one for one in parts if isinstance(one, UnbiasedLambdaRank)), None)


def _entry_of_file(entry: Any) -> Any:
    """An entry of a list of objectives as a model file may hold it."""
    if isinstance(entry, dict):
        return entry | {"objective": _entry_of_file(entry.get("objective"))}
    if callable(entry):
        return f"the function {getattr(entry, '__name__', type(entry).__name__)}"
    return entry


def beside_grades(values: Any, data: RankingData) -> dict[str, Any]:
    """Arrays by name (n,) in the caller's row order, as float64 in the data's order; None stays None."""
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise InvalidInputError(f"labels must be a dict of names to arrays, got {type(values).__name__}")
    result: dict[str, Any] = {}
    for name, given in values.items():
        if given is None:
            result[name] = None
            continue
        try:
            column = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"{name} must hold numbers: {error}") from error
        if column.shape != (data.n_rows,):
            raise InvalidInputError(
                f"{name} must have one value for each of the {data.n_rows} rows, got {column.shape}"
            )
        if not np.isfinite(column).all():
            raise InvalidInputError(f"{name} must be finite, got {column[~np.isfinite(column)][0]}")
        result[name] = data.grouped(column)
    return result


def is_missing(value: Any) -> bool:
    """Whether a value of a data frame's column is None, nan or NA."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def frame_of(X: Any) -> Any:
    """An Arrow table as a pandas data frame, whose categories are those of dictionary columns; anything else as it is.

    Raises
    ------
    InvalidInputError
        Where pandas is missing.
    """
    if not (hasattr(X, "column_names") and hasattr(X, "to_pandas")):
        return X
    try:
        return X.to_pandas()
    except ImportError as error:
        raise InvalidInputError(f"an Arrow table is read through pandas, which is missing: {error}") from error


def columns_of(given: Any, what: str, n_features: int, names: list[Any]) -> np.ndarray:
    """Columns by number or name as int64 (u,), ascending; `what` is the parameter that an error names."""
    if isinstance(given, str | bytes) or not isinstance(given, list | tuple | set | np.ndarray):
        raise InvalidInputError(f"{what} must be a list of column numbers or names, got {given!r}")
    return np.unique(np.array([column_of(key, what, n_features, names) for key in given], dtype=np.int64))


def column_of(key: Any, what: str, n_features: int, names: list[Any]) -> int:
    """A column's number, from its number or name."""
    if isinstance(key, str):
        if key not in names:
            have = "which X does not have" if names else "and X has no names; give column numbers from 0"
            raise InvalidInputError(f"{what} names the feature {key!r}, {have}")
        return names.index(key)
    if not isinstance(key, number_types.Integral) or isinstance(key, bool) or not 0 <= int(key) < n_features:
        raise InvalidInputError(f"{what} names the column {key!r}; X has the columns 0 … {n_features - 1}")
    return int(key)


def values_by_column(given: Any, what: str, n_features: int, names: list[Any], message: str) -> np.ndarray:
    """Numbers by column (p,), from an array or from a dict by number or name, in which the others are 0."""
    if not isinstance(given, dict):
        try:
            return np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(message) from error
    values = np.zeros(n_features)
    for key, value in given.items():
        if not isinstance(value, number_types.Real):
            raise InvalidInputError(message)
        values[column_of(key, what, n_features, names)] = float(value)
    return values


def monotone_signs(given: Any, n_features: int, names: list[Any]) -> np.ndarray | None:
    """-1, 0 or 1 for each feature, int8 (p,); None without constraints."""
    if given is None:
        return None
    message = (
        f"monotone must give -1, 0 or 1 for each of the {n_features} features, or a dict of column number or name to "
        f"these; got {given!r}"
    )
    signs = values_by_column(given, "monotone", n_features, names, message)
    if signs.shape != (n_features,) or not np.isin(signs, (-1, 0, 1)).all():
        raise InvalidInputError(message)
    return signs.astype(np.int8) if signs.any() else None


def costs_of(given: Any, n_features: int, names: list[Any]) -> np.ndarray | None:
    """The cost of each feature, float64 (p,); None where all are free."""
    if given is None:
        return None
    message = (
        f"feature_costs must give a finite number >= 0 for each of the {n_features} features, or a dict of column "
        f"number or name to these; got {given!r}"
    )
    costs = values_by_column(given, "feature_costs", n_features, names, message)
    if costs.shape != (n_features,) or not np.isfinite(costs).all() or (costs < 0).any():
        raise InvalidInputError(message)
    return costs if costs.any() else None


def feature_sets(given: Any, n_features: int, names: list[Any]) -> np.ndarray | None:
    """Sets of features that may meet in a tree, bool (sets, p); the features in no set are one more set."""
    if given is None:
        return None
    what = "interaction_constraints"
    if isinstance(given, str | bytes) or not isinstance(given, list | tuple):
        raise InvalidInputError(f"{what} must be a list of lists of column numbers or names, got {given!r}")
    sets = np.zeros((len(given) + 1, n_features), dtype=np.bool_)
    for row, one in zip(sets, given):
        row[columns_of(one, f"a set of {what}", n_features, names)] = True
    sets[-1] = ~sets.any(axis=0)
    return sets[sets.any(axis=1)]


def check_weights(weight: np.ndarray | None) -> None:
    """Raise where all weights of rows (n,) are 0, or squares of their sums would over- or underflow."""
    if weight is None:
        return
    largest = float(weight.max())
    if largest <= 0:
        raise InvalidInputError("Sample weights must contain at least one non-zero number")
    if not 1.0 / _LARGEST <= largest <= _LARGEST:
        raise InvalidInputError(
            f"the largest weight of a row is {largest:g}; it must lie between {1.0 / _LARGEST:g} and {_LARGEST:g}: "
            "divide all weights by it"
        )


def check_grades(y: np.ndarray) -> None:
    """Raise where sums of squared grades would overflow."""
    largest = float(np.abs(y).max(initial=0.0))
    if largest > _LARGEST:
        raise InvalidInputError(f"y must lie within ±{_LARGEST:g}, got a magnitude of {largest:g}: scale it")


def refuse_categories(X: Any) -> None:
    """An error for a data frame's columns that hold categories, text or dates."""
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return
    for name, dtype in zip(X.columns, X.dtypes):
        kind = str(dtype).lower()
        if kind.startswith(("category", "categorical", "enum", "object", "str", "date", "time", "duration", "period")):
            raise InvalidInputError(
                f"column {name!r} has the type {dtype}: name it in categorical=[{name!r}], or encode "
                "it as numbers first"
            )
