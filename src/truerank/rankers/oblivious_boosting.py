"""ObliviousBoosting: boosted oblivious trees with plain, fuzzy or polynomial leaves (Belous 2015)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.random_streams import stream
from truerank.core.threads import Workers
from truerank.data.ranking_data import RankingData
from truerank.losses.beside_grades import in_data_order, take_beside, unbiased_part
from truerank.losses.boosting import make_objective
from truerank.matrices.binning import MAX_BORDERS, code_rows
from truerank.matrices.bundles import add_in_dense_blocks, bundle_columns, summed
from truerank.matrices.content import order_by_content
from truerank.measures import parse_measure
from truerank.rankers.base import Ranker
from truerank.rankers.boosting_model import OF_SOME, TREES, check_attributes, keep, kept, params_for_file
from truerank.rankers.callbacks import period_of
from truerank.rankers.category_columns import frame_of, is_frame, numbered_categories, refuse_categories
from truerank.rankers.column_settings import columns_of, costs_of, feature_sets, monotone_signs
from truerank.rankers.continued_boosting import begun_progress, fit_settings, take_model, trees_of
from truerank.rankers.earlier_boosting_names import (
    value_under_either_name,
    warn_of_earlier_names,
    with_earlier_names,
)
from truerank.rankers.leaf_choice import choose_leaves
from truerank.solvers.early_stopping import EarlyStopping
from truerank.trees.boosted_rows import RowsHere, WatchedHere
from truerank.trees.boosting import Plan, Progress, boost
from truerank.trees.categories import CategoryTables, fit_categories
from truerank.trees.ensemble import Ensemble
from truerank.trees.grower import GrowthRules
from truerank.trees.leaves.fuzzy import FlatPlaces, FuzzyLeaves
from truerank.trees.leaves.fuzzy_predictor import FuzzyPredictor
from truerank.trees.leaves.kinds import Leaves, leaf_fitter, parse_leaves, search_rules
from truerank.trees.leaves.polynomial import PolynomialLeaves, PolynomialPredictor, monomial_table
from truerank.trees.limits import check_grades, check_weights
from truerank.trees.linear_start import LinearStart, Start, fit_linear_start
from truerank.trees.predictor import ConstantPredictor
from truerank.trees.rows import Rows
from truerank.trees.scaling import Scaling, check_scaling
from truerank.trees.training_columns import TrainingColumns, scan_training_columns

MAX_DEPTH = 12
_OTHER_DATA = (
    "warm_start: X is not what the model's trees were fitted to; fuzzy and polynomial leaves can only be continued "
    "with the same rows. Set warm_start=False to start anew"
)
CATEGORIES_STAY = "warm_start: a model with categorical features cannot be continued; set warm_start=False"


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
    verbose : int or bool, default 0
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

    *The training objective* falls with every tree to the last, with any leaves and penalties and at any
    `learning_rate` below 2, where every tree sees all rows, nothing is `monotone`, and the hessians bound the second
    derivatives of the whole (Σ h u² >= uᵀ∇²u for every u): squared error, and functions of yours that do. Those of
    softmax, xe-ndcg and pairwise-logistic are the diagonal, at least half of such a bound: the loss falls at rates
    below 1 as far as its parabola reaches. lambdarank and yetirank weigh pairs anew for each tree; there the loss of a
    tree's own pairs falls in this way, and no one sum does. All are watched: training that diverges stops.

    *Sparse rows* (CSR): features of which a row has at most one beside zero share a byte (`truerank.matrices.bundles`).
    The trees are those of dense rows. Not with polynomial leaves, a linear start or categorical features.

    *Order of the rows*: rows and queries are drawn, and ties of lambdarank broken, in an order by their content, so
    that another order of the training file gives the same model up to rounding.

    *Weights* multiply gradients and hessians: with plain leaves a weight of 2 equals two copies of a row or query.
    So it does in the scaling of polynomials and of a linear start. Borders and the places of fuzzy borders count rows,
    whatever their weight: of a set whose rows all stand twice, neighbours are twice as many places apart, while weights
    that are all doubled must change nothing. Both cannot hold; the scores do not depend on the unit of the weights.

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
        *TREES,
        "history_",
        "n_iter_",
        "seed_",
        "category_names_",
        *OF_SOME,
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
            shown = in_data_order({"position": position}, data)["position"]
            return {"labels": in_data_order(labels, data), "position": shown, "begun": begun}

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
        y, weight = data.y, data.row_weight
        assert y is not None
        sparse = hasattr(data.X, "tocsc")
        if begun is not None:
            self._take(begun, data.n_features)
        warn_of_earlier_names(self)
        parts = self._parts()
        check_choice(self.start, "start", ("constant", "linear"))
        start_alpha = check_number(value_under_either_name(self, "start_alpha"), "start_alpha", minimum=0.0)
        progress = begun_progress(self, data.n_features) if begun is None else trees_of(self)
        stopping = self._early_stopping(valid is not None)
        self._choose_leaves(
            data, stopping.measure, bool(progress.trees) or begun is not None, labels or position is not None
        )
        leaves = self.kind_of_leaves
        if valid is not None and hasattr(valid.X, "tocsc") != sparse:
            raise InvalidInputError(
                f"X is {'sparse' if sparse else 'dense'} and that of eval_set is not: give both in the same form"
            )
        check_grades(y)
        check_weights(weight)
        plan = self._plan()
        p_swap = leaves.swap_probability(data.n_rows) if isinstance(leaves, FuzzyLeaves) else 0.0
        known_places = {}
        if begun is not None:
            plan = replace(plan, n_estimators=plan.n_estimators + len(progress.trees))
            if isinstance(leaves, FuzzyLeaves):
                p_swap, flat = self.p_swap_, self._flat_places()
                known_places = dict(zip(flat.features.tolist(), flat.tables()))
        measure = parse_measure(self.measure, convention=self.convention)
        objective = make_objective(self.objective, self.objective_params, measure, self.n_jobs)
        take_beside(objective, labels, position, weight)
        unbiased = unbiased_part(objective)
        if unbiased is not None and progress.trees:
            raise InvalidInputError(
                f"{'warm_start' if begun is None else 'init_model'}: unbiased-lambdarank learns its propensities from "
                "tree to tree and cannot be continued; start anew"
            )
        tables, X = self._categories(data, begun is not None, bool(progress.trees))
        scaled = isinstance(leaves, PolynomialLeaves) or self.start == "linear"
        by_column = summed(X).tocsc() if sparse else X
        columns = scan_training_columns(
            by_column, weight, parts, leaves, scaled, bool(self.clip), known_places, self.n_jobs
        )
        if begun is not None and scaled:
            columns = replace(columns, scaling=self._scaling())
        if progress.trees:
            if begun is None:
                self._check_same_columns(leaves, columns, p_swap)
            start, scores = self._start(), self._predict(data.X)
            at_start: Any = scores.copy()  # on other data the model may stand worse than a constant
            if begun is None:
                at_start = start.constant if start.linear is None else start.scores(X, self.n_jobs)
        else:
            linear = None
            if self.start == "linear":
                assert columns.scaling is not None
                linear = fit_linear_start(X, y, data.offsets, weight, columns.scaling, start_alpha, plan.rules.monotone)
            known = 0.0 if linear is None else linear.scores(X, self.n_jobs)
            start = Start(float(objective.start(y - known, weight)), linear)
            scores = np.full(data.n_rows, start.constant) + known
            # For the watch over the training objective: one number, unless the start is a line.
            at_start = start.constant if linear is None else scores.copy()
        plan = replace(plan, rules=search_rules(leaves, plan.rules, columns, p_swap))
        with Workers(self.n_jobs) as workers:
            fitter = leaf_fitter(leaves, plan.rules, columns, p_swap, workers)
            watched = None
            if valid is None:
                progress.valid = []
            else:
                valid_X = valid.X if tables is None else tables.encode(valid.X)
                if len(progress.valid) != len(progress.trees):  # these queries were not watched before
                    judgements = valid.judgements()
                    progress.valid = [
                        float(stopping.measure.mean(judgements, scores)) for scores in self._staged(valid.X)
                    ]
                watched = WatchedHere(
                    self._coded(summed(valid_X).tocsc() if sparse else valid_X, columns.borders),
                    self._predict(valid.X) if progress.trees else start.scores(valid_X, self.n_jobs),
                    valid.judgements(),
                    fitter,
                    stopping,
                )
            rows = RowsHere(
                data,
                self._coded(by_column, columns.borders, training=True),
                scores,
                at_start,
                progress.gains,
                objective,
                fitter,
                plan,
                workers,
            )
            status = boost(rows, plan, watched, progress, objective.quadratic)
        self._keep(progress, start, leaves, columns, p_swap)
        if tables is not None:
            keep(self, tables)
        if unbiased is not None:
            self.click_propensities_ = unbiased.click_propensities
            self.skip_propensities_ = unbiased.skip_propensities
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
        return with_earlier_names(self, parse_leaves(given))

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

    def _take(self, begun: Any, n_features: int) -> None:
        """Take over the trees of `init_model`."""
        if not isinstance(begun, ObliviousBoosting) or not hasattr(begun, "tree_values_"):
            found = "one that is not fitted" if isinstance(begun, ObliviousBoosting) else type(begun).__name__
            hint = "; read it first, load_model(path)" if isinstance(begun, str) else ""
            raise InvalidInputError(f"init_model must be a fitted ObliviousBoosting, got {found}{hint}")
        take_model(self, begun, n_features)

    def _parts(self) -> int:
        """Into how many parts the values of a feature are cut."""
        parts = check_positive_int(self.borders, "borders")
        if parts > MAX_BORDERS + 1:
            raise InvalidInputError(f"borders must be at most {MAX_BORDERS + 1}, got {parts}: a code is one byte")
        return parts

    def _early_stopping(self, watched: bool) -> EarlyStopping:
        """What watches the validation queries: leaves tie many documents, and no order of the rows is to choose."""
        if self.patience is not None and not watched:
            check_positive_int(self.patience, "patience")
            raise InvalidInputError("patience needs eval_set=(X, y, qid), the validation queries")
        chooser = self.measure if self.validation_measure is None else self.validation_measure
        return EarlyStopping(chooser, self.convention, self.patience)

    def _plan(self) -> Plan:
        """The settings of the boosting loop."""
        n_estimators = check_positive_int(self.n_estimators, "n_estimators")
        depth = check_positive_int(self.depth, "depth")
        if depth > MAX_DEPTH:
            raise InvalidInputError(f"depth must be at most {MAX_DEPTH} (a tree has 2^depth leaves), got {depth}")
        if self.bootstrap is not None:
            check_choice(self.bootstrap, "bootstrap", ("row", "query"))
        alpha = value_under_either_name(self, "alpha")
        if alpha is None:
            alpha = 0.0 if self.objective == "mse" else 1.0
        names = list(getattr(self, "feature_names_in_", []))
        monotone = monotone_signs(self.monotone, self.n_features_in_, names)
        if monotone is not None and isinstance(self.kind_of_leaves, PolynomialLeaves):
            raise InvalidInputError("polynomial leaves cannot keep monotone constraints; use constant or fuzzy leaves")
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
            period_of(self.verbose),
            self.seed_,
        )

    def _categories(self, data: RankingData, begun: bool, continued: bool) -> tuple[CategoryTables | None, Any]:
        """The tables of the categorical columns, None without any, and the training rows as the trees see them."""
        if begun and hasattr(self, "category_features_"):
            tables = self._category_tables()
            return tables, tables.encode(data.X)
        columns = self._category_columns(data.n_features)
        if columns is None:
            return None, data.X
        if continued:
            raise InvalidInputError(CATEGORIES_STAY)
        assert data.y is not None
        _, queries = order_by_content(data.X, data.y, data.offsets, data.query_weight)
        order = queries[stream(self.seed_, "categories", 0).permutation(len(queries))]
        return fit_categories(data.X, data.y, data.offsets, data.row_weight, columns, order)

    def _check_same_columns(self, leaves: Leaves, columns: TrainingColumns, p_swap: float) -> None:
        """An error where X is not what the trees of a warm start were fitted to."""
        same = True
        if isinstance(leaves, FuzzyLeaves):
            same = p_swap == self.p_swap_ and self._flat_places().hold(columns.places)
        if not same or (columns.scaling is not None and not np.array_equal(columns.scaling.mean, self.feature_mean_)):
            raise InvalidInputError(_OTHER_DATA)

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
        if self.categorical is None or not is_frame(X):
            return X
        names = list(X.columns)
        columns = columns_of(self.categorical, "categorical", len(names), names).tolist()
        X, texts = numbered_categories(X, columns, getattr(self, "category_names_", {}), reset)
        if reset and texts:
            self.category_names_ = texts
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
        return kept(self, CategoryTables)

    def _coded(self, X: Any, borders: list[np.ndarray], training: bool = False) -> Rows:
        """Rows of an array or a CSC matrix, with their codes."""
        matrix = bundle_columns(X, borders) if hasattr(X, "tocsc") else code_rows(X, borders, self.n_jobs)
        return Rows(X, matrix, training)

    def _predict(self, X: Any) -> np.ndarray:
        X = self.encoded(X)
        return self._advance(X, self._start().scores(X, self.n_jobs))

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
        scores = self._start().scores(X, self.n_jobs)
        for t in range(self.n_iter_):
            yield self._advance(X, scores, slice(t, t + 1))

    # The model.

    def _keep(self, progress: Progress, start: Start, leaves: Leaves, columns: TrainingColumns, p_swap: float) -> None:
        """Keep the trees and what they stand on."""
        for name in OF_SOME:
            self.__dict__.pop(name, None)  # of an earlier fit
        self.start_ = start.constant
        if start.linear is not None:
            self.start_weights_ = start.linear.weights
        if columns.scaling is not None:
            keep(self, columns.scaling)
        keep(self, Ensemble(*(np.stack(arrays) for arrays in zip(*progress.trees))))
        self.tree_gains_ = np.stack(progress.gains)
        self.validation_scores_ = np.array(progress.valid, dtype=np.float64)
        change = np.array(progress.change, dtype=np.float64)
        self.history_ = {"objective": change, "validation": self.validation_scores_}
        self.n_iter_ = len(progress.trees)
        if isinstance(leaves, FuzzyLeaves):
            used = np.unique(self.tree_features_)
            self.p_swap_ = p_swap
            keep(self, FlatPlaces.of(used, [columns.places[k] for k in used]))
        self._prepare()
        self._fitted_with = fit_settings(self)

    @property
    def valid_scores_(self) -> np.ndarray:
        """The name of an earlier release of `validation_scores_`."""
        warnings.warn("valid_scores_ is now validation_scores_", FutureWarning, stacklevel=2)
        return self.validation_scores_

    def model_params(self) -> dict[str, Any]:
        """Parameters for a model file, which keeps neither functions nor generators nor dicts by number.

        A loaded model predicts all the same; to go on training it, set `objective` to the function again.
        """
        return params_for_file(self)

    def _flat_places(self) -> FlatPlaces:
        return kept(self, FlatPlaces)

    def _ensemble(self) -> Ensemble:
        return kept(self, Ensemble)

    def _scaling(self) -> Scaling:
        return kept(self, Scaling)

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

    def check_model(self) -> None:
        """Called after loading: the arrays of the trees must fit together."""
        super().check_model()
        if not hasattr(self, "history_") and isinstance(getattr(self, "validation_scores_", None), np.ndarray):
            unknown = np.full(len(self.validation_scores_), np.nan)  # a file of an earlier release
            self.history_ = {"objective": unknown, "validation": self.validation_scores_}
        check_attributes(self)
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
