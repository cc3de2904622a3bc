"""PairwiseDescent: learn linear rankers from random pairs, at a cost that the number of rows does not change."""

from __future__ import annotations

import os
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar

import numpy as np

from truerank.core.checks import check_parameters, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.fitting import fits_whole
from truerank.core.random_streams import seed_of, stream
from truerank.core.rounds import tell
from truerank.core.types import Matrix
from truerank.data.ranking_data import RankingData
from truerank.matrices.content import inverse_scales
from truerank.matrices.rows import linear_scores
from truerank.rankers.constructor_names import estimator
from truerank.rankers.linear import LinearRanker, PartProblem
from truerank.rankers.sums.linear import LinearProblem
from truerank.solvers.pair_descent import (
    LEARNING_RATES,
    LOSSES,
    STEPS,
    averaged_weights,
    rates,
    take_steps,
)
from truerank.solvers.pair_sampling import SAMPLINGS, make_sampler
from truerank.solvers.path import best_of_path, path_values
from truerank.solvers.result import SolverResult, Status

# Number of draws made at a time: an interrupt takes effect between two pieces.
_PIECE_DRAWS, _PIECE_ENTRIES = 32_768, 1 << 24


@estimator
class PairwiseDescent(LinearRanker):
    """Linear ranker by stochastic pairwise descent (Sculley 2009). Each step learns from one random pair of documents.

    With the hinge and `sampling="rank"` it minimises

        λ/2 ‖w‖² + (mean over all pairs with y_a > y_b of a query of max(0, 1 - w·(x_a - x_b)))

    where λ is `alpha`, and pairs of query q have the weight `query_weight[q]` in the mean. A step costs O(features)
    and a draw O(1) for any number of documents. Use it where an exact solver (`RankSVM`) would take too long, where
    rows arrive in batches (`partial_fit`), or for a file larger than memory (`fit_file`).

    Parameters
    ----------
    alpha : float or list of float, default 1e-3
        λ. From a list, the validation queries of `eval_set` select a value. λ = 1 / (C · pairs) with the C of
        `RankSVM`.
    sampling : str, default "rank"
        Pairs or rows that a step draws:

        * "rank": one of all pairs of different grades within a query;
        * "row-norm-rank": a query that has pairs, in proportion to its rows, then one of its pairs;
        * "query-norm-rank": a query that has pairs, then one of its pairs;
        * "combined-ranking": with `pair_probability` a pair as in "rank", else a single row for classification (with
          loss "squared" for regression).
    loss : {"hinge", "logistic", "squared"}, default "hinge"
        With z the difference of the pair (or the row), u = +1 (for a row, ±1 by class): "hinge" max(0, 1 - u w·z);
        "logistic" log(1 + exp(-u w·z)); "squared" ½ (w·z - target)² with the difference of the grades (or the row's
        grade) as target.
    learning_rate : str, default "pegasos"
        η at step t: "pegasos" 1 / (λ t); "basic" 10 / (10 + t); "constant" `eta0`.
    eta0 : float, default 0.02
    max_iter : int, default 100_000
        Number of steps of `fit`.
    projection : bool, default False
        Project the weights to the ball of radius 1/√λ after each step, as Pegasos does.
    average : bool or int, default False
        Return the mean of the weights over all steps (True) or over the steps from number `average` on.
    pair_probability : float, default 0.5
        Share of pairs among the draws of "combined-ranking".
    rel : float, optional
        Lowest relevant grade, for classification in "combined-ranking". None means the higher of two grades.
    validation_measure : str or Measure, default "nDCG@10"
        Measure that selects λ.
    convention : str, default "ranklib"
        Evaluation convention: settings that the name of the measure does not contain.
    scale : {"auto", "never"}, default "auto"
        "auto" divides columns of very different spread by their spread, also in `coef_` (see `LinearRanker`).
        `partial_fit` and `fit_file` use the scales of their first batch or block.
    fit_intercept : bool, default True
        Whether single rows have an intercept (regularised like a weight). Pairs have none.
    random_state : int, NumPy generator or None
        None means seed 0.

    Attributes
    ----------
    coef_, scale_
        As in `LinearRanker`.
    intercept_ : float
        0 unless single rows are drawn.
    n_iter_ : int
        Number of steps over all calls of `partial_fit`.
    alpha_ : float
        The chosen value.
    path_ : list of dict
        After `fit`, for each λ: `alpha`, `validation`.

    Raises
    ------
    InvalidInputError
        If a parameter is out of range, if `rel` is needed, or if the weights diverge.

    Notes
    -----
    Pegasos's step on w_t is `w ← (1 - η_t λ) w + η_t u z 1[u w·z < 1]`, with the margin of w before it shrinks. Without
    any pair the weights stay 0. Draws are uniform to one part in 2^53. The same seed gives the same bits for any order
    of the rows (in `fit_file`, of the rows of a block).

    Differences from sofia-ml (Sculley 2009): (1) its "rank" draws a row first; that is "row-norm-rank" here, and ranks
    better on LETOR's MQ2008, whose queries have 5 to 121 documents. In "rank", Sculley's objective, long queries
    dominate. (2) Samplings that ignore queries, the perceptron and passive-aggressive steps are not implemented.

    References
    ----------
    Sculley (2009), "Large scale learning to rank"; Sculley (2010), "Combined regression and ranking"; Shalev-Shwartz,
    Singer & Srebro (2007), "Pegasos".

    Examples
    --------
    >>> X = [[1.0, 0.0], [0.0, 1.0], [3.0, 1.0], [1.0, 1.0]]
    >>> ranker = PairwiseDescent(max_iter=1000).fit(X, [1, 0, 2, 0], qid=["a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "b", "b"]).tolist()
    [1, 2, 1, 2]
    """

    instead_of_parts = "Call fit_file(path), which reads a LETOR file of any size block by block"
    model_attributes: ClassVar[dict[str, str]] = {
        "intercept_": "float??",
        "descent_state_": "dict of any",
        "descent_state_.weights": "float64[2, p+1]",
        "descent_state_.scalars": "float64[4]",
        "descent_state_.seed": "int",
        "alpha_": "float unbounded??",
        "n_iter_": "int??",
        "path_": "list[] of dict of any??",
    }
    uses_eval_set = True
    chosen_from = "alpha"
    __metadata_request__partial_fit: ClassVar[dict[str, Any]] = {"qid": True, "query_weight": True, "n_steps": True}

    allowed: ClassVar[dict[str, str]] = {
        "sampling": " | ".join(map(repr, SAMPLINGS)),
        "loss": " | ".join(map(repr, LOSSES)),
        "learning_rate": " | ".join(map(repr, LEARNING_RATES)),
        "eta0": "float in (0, inf)",
        "max_iter": "int in [1, inf)",
        "projection fit_intercept": "bool",
        "average": "bool | int in [0, inf)",
        "pair_probability": "float in [0, 1]",
        "rel": "float in (-inf, inf)?",
    }

    alpha: Any = 1e-3
    _: KW_ONLY
    sampling: str = "rank"
    loss: str = "hinge"
    learning_rate: str = "pegasos"
    eta0: float = 0.02
    max_iter: int = 100_000
    projection: bool = False
    average: bool | int = False
    pair_probability: float = 0.5
    rel: float | None = None
    fit_intercept: bool = True
    validation_measure: Any = "nDCG@10"
    convention: str = "ranklib"
    scale: str = "auto"
    random_state: Any = None

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        steps = int(self.max_iter)
        values = path_values(self.alpha, "alpha", zero=True)
        for value in values:
            self._check_rates(value)
        problem = LinearProblem(data.in_parts(None), self.scale)
        states: dict[float, dict[str, Any]] = {}

        def solve(reg: float) -> SolverResult:
            self._start(problem, reg)
            self._descend(problem.only, steps)
            states[reg] = self.descent_state_
            return SolverResult(self._weights(), self._status, steps, float("nan"))

        self.alpha_, _, self.path_ = best_of_path(
            "alpha", values, solve, valid, lambda w, X: linear_scores(X, problem.coef(w[:-1])),
            self.validation_measure, self.convention,
        )  # fmt: skip
        self.descent_state_ = states[self.alpha_]
        self._keep()

    @fits_whole
    def partial_fit(
        self,
        X: Matrix,
        y: Any = None,
        *,
        qid: Any = None,
        query_weight: Any = None,
        n_steps: int | None = None,
    ) -> PairwiseDescent:
        """Continue from the weights of the last call with draws from this batch alone; return self.

        Parameters
        ----------
        X, y, qid, query_weight
            As in `fit`. A query does not continue in the next batch.
        n_steps : int, optional
            Number of steps on this batch; None means its number of rows.
        """
        reg = self._one_value()
        X, qid = self._without_query_column(X, qid)
        first = not hasattr(self, "descent_state_")
        names = self.__dict__.get("feature_names_in_")
        if not first:
            if isinstance(X, RankingData):
                self._check_columns(X)
            else:
                self._checked(X, reset=False)
        data = self._training_data(X, y, qid, query_weight)
        if not first and names is not None:  # a batch without names keeps those of the first
            self.feature_names_in_ = names
        steps = data.n_rows if n_steps is None else check_positive_int(n_steps, "n_steps", 0)
        if first:
            self.n_queries_in_ = 0
            self._start(LinearProblem(data.in_parts(None), self.scale), reg)
        else:  # the steps change it in place
            self.descent_state_ = deepcopy(self.__dict__["descent_state_"])
        self.n_queries_in_ += data.n_queries
        self._keep_sketch(data, None if first else self)
        self._descend(self._batch(data), steps)
        self._keep()
        return self

    @fits_whole
    def fit_file(
        self,
        path: str | os.PathLike[str],
        *,
        n_passes: int = 1,
        block_rows: int = 65_536,
        n_features: int | None = None,
        sparse: bool = False,
    ) -> PairwiseDescent:
        """Learn from a LETOR file by blocks of whole queries, so that the file may exceed memory; return self.

        The file is read once to count the pairs of each block and then `n_passes` times. Every pair of the file has the
        same probability. With one block and one pass the weights equal those of `fit` bit by bit.

        Parameters
        ----------
        path : path
            LETOR text in which the lines of a query are consecutive.
        n_passes : int, default 1
            More passes mix the blocks better.
        block_rows : int, default 65_536
            Approximate number of rows in memory.
        n_features : int, optional
            Number of columns; None means the highest index in the first block.
        sparse : bool, default False
            Store blocks as sparse rows.
        """
        steps = int(self.max_iter)
        passes = check_positive_int(n_passes, "n_passes")
        reg = self._one_value()

        def blocks() -> Iterator[RankingData]:
            from truerank.io.letor.read import iter_letor

            return iter_letor(path, block_rows=block_rows, n_features=n_features, sparse=sparse, comments=False)

        grades: np.ndarray = np.zeros(0)
        weights: list[float] = []
        rows: list[int] = []
        queries = 0
        for block in blocks():
            if not weights:
                n_features = block.n_features
                self._start(LinearProblem(block.in_parts(None), self.scale), reg)
            y = np.asarray(block.y)
            weights.append(make_sampler(self.sampling, y, block.offsets, None).pairs.weight)
            rows.append(block.n_rows)
            self._keep_sketch(block, self if queries else None)
            queries += block.n_queries
            grades = np.union1d(grades, y)
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_, self.n_queries_in_ = int(n_features or 0), queries
        pair_share, row_share = np.array(weights) / max(sum(weights), 1e-300), np.array(rows) / sum(rows)
        of_pairs_all = 1.0
        if self.sampling == "combined-ranking":
            of_pairs_all = float(self.pair_probability) if sum(weights) > 0 else 0.0
        share = of_pairs_all * pair_share + (1 - of_pairs_all) * row_share
        of_pairs = np.divide(of_pairs_all * pair_share, share, out=np.zeros_like(share), where=share > 0)
        generator = stream(seed_of(self.random_state), "pairwise-descent", "blocks")
        for number in range(passes):
            now = steps * (number + 1) // passes - steps * number // passes
            if sum(weights) == 0 and self.sampling != "combined-ranking":
                break
            for block, n_steps, of_pair in zip(blocks(), generator.multinomial(now, share / share.sum()), of_pairs):
                if n_steps:
                    self._descend(self._batch(block), int(n_steps), grades, float(of_pair))
        self._keep()
        return self

    def _predict(self, X: Any) -> np.ndarray:
        return super()._predict(X) + self.intercept_

    # Steps.

    def _one_value(self) -> float:
        """Check the parameters, and return λ for batches and files, which have no validation queries."""
        check_parameters(self)
        values = path_values(self.alpha, "alpha", zero=True)
        if len(values) > 1:
            raise InvalidInputError(
                f"alpha has {len(values)} values, but partial_fit and fit_file accept only one. Use fit for a list",
                argument="alpha",
            )
        self._check_rates(values[0])
        return values[0]

    def _check_rates(self, reg: float) -> None:
        """Check that λ and the learning rate fit together."""
        if reg == 0.0 and (self.learning_rate == "pegasos" or self.projection):
            raise InvalidInputError(
                "alpha must be > 0 with learning_rate='pegasos' and with projection=True, got 0. Pass a positive "
                "alpha, or another learning_rate without projection",
                argument="alpha",
            )
        first = {"pegasos": 0.0, "basic": 10.0 / 11.0, "constant": float(self.eta0)}[self.learning_rate]
        if first * reg > 1.0:
            raise InvalidInputError(
                f"alpha times the first learning rate must be at most 1, got {reg:g} * {first:g}, so that the weights "
                "would change sign at every step. Lower alpha, or use learning_rate='pegasos'",
                argument="alpha",
            )

    def _start(self, problem: LinearProblem, reg: float) -> None:
        weights = np.zeros((2, problem.n_weights + 1))
        scalars = np.array([1.0, 0.0, 0.0, 0.0])
        self.descent_state_ = {"weights": weights, "scalars": scalars, "seed": seed_of(self.random_state)}
        self.scale_, self.alpha_ = problem.scale, reg
        self._status = Status.NOTHING_TO_LEARN

    def _batch(self, data: RankingData) -> PartProblem:
        """Return a later batch in the units of the first batch."""
        return LinearProblem(data.in_parts(None), "never" if self.scale_ is None else self.scale_).only

    def _weights(self) -> np.ndarray:
        """Return the weights in the units of the descent, with the intercept last."""
        result = averaged_weights(self.descent_state_["weights"], self.descent_state_["scalars"])
        if not np.isfinite(result).all():
            raise InvalidInputError(
                f"the weights diverged (loss {self.loss!r}, learning_rate {self.learning_rate!r}, alpha "
                f"{self.alpha_:g}). Scale the columns, or use learning_rate='basic', a smaller eta0 or larger alpha",
                code="diverged",
            )
        return result

    def _keep(self) -> None:
        weights = self._weights()
        unit = 1.0 if self.scale_ is None else inverse_scales(self.scale_)
        self.coef_, self.intercept_ = weights[:-1] * unit, float(weights[-1])
        self.n_iter_ = int(self.descent_state_["scalars"][STEPS])
        self._finish(self._status)

    def _classes(self, y: np.ndarray, grades: np.ndarray) -> np.ndarray | None:
        """Return which rows are relevant; None if all have one grade and `rel` is not given."""
        if self.rel is not None:
            return y >= self.rel
        if len(grades) > 2:
            raise InvalidInputError(
                f"the data have {len(grades)} grades, and sampling={self.sampling!r} with loss={self.loss!r} requires "
                "two classes. Pass rel=..., the lowest relevant grade",
                argument="sampling",
            )
        return None if len(grades) < 2 else y >= grades[1]

    def _descend(
        self, problem: PartProblem, n_steps: int, grades: np.ndarray | None = None, pair_share: float | None = None
    ) -> None:
        """Take steps with draws from one block of data."""
        y = problem.y
        squared, combined = self.loss == "squared", self.sampling == "combined-ranking"
        target = y
        if combined and not squared:
            relevant = self._classes(y, np.unique(y) if grades is None else grades)
            if relevant is None:
                return
            target = np.where(relevant, 1.0, -1.0)
        sampler = make_sampler(self.sampling, y, problem.offsets, problem.query_weight, float(self.pair_probability))
        if combined and pair_share is not None:
            sampler = replace(sampler, pair_share=pair_share)
        if sampler.pairs.weight == 0.0 and sampler.pair_share > 0.0:
            return
        self._status = Status.ALL_ROUNDS
        state = self.descent_state_
        rows, order = problem.rows.parts()
        options = np.array(
            [
                self.alpha_,
                float(self.average) if self.average else np.inf,  # True is 1: from the first step on
                1.0 if self.fit_intercept else 0.0,
                self.alpha_**-0.5 if self.projection else np.inf,
            ]
        )
        # The draws of a step depend on the seed and the step's number alone: they continue where a batch ended.
        generator = stream(state["seed"], "pairwise-descent")
        bits: Any = generator.bit_generator
        done = int(state["scalars"][STEPS])
        bits.advance(done * sampler.n_numbers)
        piece = max(1, min(_PIECE_DRAWS, int(_PIECE_ENTRIES / problem.rows.values_by_row)))
        for start in range(0, n_steps, piece):
            n = min(piece, n_steps - start)
            a, b = sampler.draw(generator, n)
            goal = np.ones(n)
            if squared:
                goal = target[a] - np.where(b >= 0, target[b], 0.0)
            elif combined:
                goal = np.where(b >= 0, 1.0, target[a])
            eta = rates(self.learning_rate, done + start + 1.0, n, self.alpha_, float(self.eta0))
            take_steps(rows, order, a, b, goal, eta, state["weights"], state["scalars"], options, self.loss)
            if tell(done + start + n, done + n_steps):
                break
