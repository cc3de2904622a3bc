"""Select the settings of a ranker by its measure on held-out queries: a grid, or Optuna's search over ranges.

Every setting is tried on the same folds of queries. The setting with the best mean over folds (ties averaged) is
selected, or the first of equally good settings. Trials are stored when they end, and an interrupted run continues with
the same result.
"""

from __future__ import annotations

import itertools
import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from truerank import __version__
from truerank.core.checks import check_positive_int
from truerank.core.digests import content_digest
from truerank.core.errors import InvalidInputError
from truerank.core.files import check_target
from truerank.core.json_lines import JsonLines
from truerank.core.printing import plain
from truerank.core.random_streams import seed_of
from truerank.core.types import MeasureLike, PathLike, RandomState
from truerank.data.ranking_data import RankingData
from truerank.data.splits import CV, folds_of
from truerank.io.rows import rows_of
from truerank.measures import Measure, parse_measure
from truerank.rankers.pipeline import fit_ranker, ranker_scores


@dataclass(frozen=True)
class Between:
    """A range of a setting, such as `Between(0.01, 0.3, log=True)`, with integer values if both ends are integers."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise InvalidInputError(
                f"a range requires low < high, and low > 0 with log, got {self.low!r} to {self.high!r}"
            )


_NO_TRIALS = "is not a file of trials. Name another file, or remove this one"
_STRENGTH = {"C": Between(1e-4, 1e4, log=True)}
# The default space by name of the class.
SPACES: dict[str, dict[str, Any]] = {
    "AdaRank": {"update": ["adaboost", "compound", "paper"], "n_estimators": Between(20, 500, log=True)},
    "RankBoost": {"n_estimators": Between(20, 500, log=True), "thresholds": [10, 30, 100]},
    "MeasureSVM": _STRENGTH,
    "PointwiseSVM": _STRENGTH,
    "RankSVM": _STRENGTH,
    "PairwiseDescent": _STRENGTH,
    "ListNet": {"alpha": Between(1e-6, 10.0, log=True)},
    "NonnegativeListNet": {"alpha": Between(1e-6, 10.0, log=True)},
    "RidgeRanker": {"alpha": Between(1e-4, 1e4, log=True)},
    "ObliviousBoosting": {
        "n_estimators": Between(50, 400, log=True),
        "learning_rate": Between(0.03, 0.3, log=True),
        "depth": Between(3, 7),
        "alpha": Between(0.1, 30.0, log=True),
        "leaves": ["constant", "fuzzy"],
    },
}


@dataclass
class Tuning:
    """The result of `tune`.

    `best_value` is the mean over the folds' held-out queries. The maximised value is too optimistic, so evaluate the
    ranker on other queries. A trial is `{"number", "params", "values" (by fold), "mean", "rounds", "error"}`.
    """

    best_params: dict[str, Any]  # with early stopping, the mean number of rounds replaces `patience`
    best_value: float
    ranker: Any  # fitted with the best settings to all queries; None without `refit`
    trials: list[dict[str, Any]] = field(repr=False)  # in the order of their numbers
    measure: str = ""


def tune(
    make: Callable[[dict[str, Any]], Any],
    data: Any,
    space: Mapping[str, Any],
    *,
    measure: MeasureLike = "nDCG@10",
    convention: str = "ranklib",
    trials: int | None = None,
    cv: CV | None = None,
    random_state: RandomState = None,
    jobs: int = 1,
    state: PathLike | None = None,
    refit: bool = True,
    watch: Callable[[dict[str, Any]], None] | None = None,
) -> Tuning:
    """Select the settings of a ranker by cross-validation over queries, and fit the ranker with them.

    Parameters
    ----------
    make : class, ranker, or function of a dict of settings
        A function returns a ranker, such as `lambda s: RankerPipeline("z-score-in-query", RankSVM(**s))`.
    data : RankingData, data frame, path of a file of rows, or (training, held-out) pairs of these
        A single data set is split by query, according to `cv`.
    space : dict of setting to list of values, `Between`, or (low, high), two numbers
        If all are lists, every combination is tested. With a range, or with `trials`, Optuna searches (tree-structured
        Parzen estimator).
    measure, convention
        Ties are averaged over their orders, unless the measure names another rule.
    trials : int, optional
        Number of settings to try. The default is the whole grid, or 30 settings with a range. If `state` has more
        trials, only the first ones count.
    cv : int, splitter, or sequence of Fold, optional
        As in `cross_validate`. Validation queries of published folds are the held-out queries; the test queries of
        these folds are not used.
    random_state : seed of the folds and the search
    jobs : int, default 1
        Number of folds that are fitted in parallel. The result does not depend on this number.
    state : path, optional
        A file of JSON lines with a line for each trial. Stored trials are not repeated. The file is locked.
    refit : bool, default True
        Whether to fit a ranker with the best settings to all queries (for pairs, to the queries of the first pair).
    watch : callable, optional
        Function that is called with each trial.

    Raises
    ------
    InvalidInputError, MissingExtraError
        For an empty space, if every trial fails, if `state` belongs to another search or is in use, and without Optuna.

    Notes
    -----
    With `patience`, the held-out queries stop the fit, and the final fit has the mean number of rounds over the folds.
    A trial that raises `ValueError` (incompatible settings) is stored with its error and cannot win.

    Examples
    --------
    >>> from truerank.data.samples import load_sample
    >>> from truerank.rankers.baselines import RidgeRanker
    >>> found = tune(RidgeRanker(), load_sample().take_queries(range(30)), {"alpha": [0.1, 1e6]}, cv=3)
    >>> len(found.trials), found.best_params["alpha"] in (0.1, 1e6), found.ranker.n_queries_in_
    (2, True, 30)
    """
    build = _builder(make)
    named = parse_measure(measure, convention=convention)
    judged = named.tie_averaged()
    ranges = _checked_space(space)
    if state is not None:
        check_target(state)
    seed = seed_of(random_state)
    pairs, whole = _pairs(data, cv, seed)
    search = trials is not None or any(isinstance(values, Between) for values in ranges.values())
    n_trials = check_positive_int(30 if trials is None else trials, "trials") if search else None
    jobs = check_positive_int(jobs, "jobs")
    with JsonLines(state, _NO_TRIALS) as lines, ThreadPoolExecutor(jobs) as pool:
        asked = "" if state is None else content_digest([__version__, build({}), ranges, judged, pairs, seed, search])
        done = _trials_of(lines, asked)[:n_trials]
        upwards = judged.higher_is_better
        for settings in _searched(ranges, n_trials or 0, seed, upwards, done) if search else _grid(ranges, done):
            trial = _tried(build, settings, pairs, judged, pool if jobs > 1 else None, len(done))
            done.append(trial)
            lines.append(trial)
            if watch is not None:
                watch(trial)
    best = None
    for trial in done:
        if trial["error"] is None and judged.improves(trial["mean"], None if best is None else best["mean"]):
            best = trial
    if best is None:
        raise InvalidInputError(
            f"no setting could be fitted. The first trial failed with: {done[0]['error']}", code="nothing-fitted"
        )
    chosen = dict(best["params"])
    if best["rounds"] is not None:
        chosen.pop("patience", None)
        chosen["n_estimators"] = best["rounds"]
    ranker = None
    if refit:
        last = build({})
        reset = {"patience": None} if best["rounds"] is not None and "patience" in last.get_params() else {}
        ranker = fit_ranker(build(chosen | reset), whole)
    return Tuning(chosen, float(best["mean"]), ranker, done, named.name)


def _builder(make: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
    """Return a function from settings to an unfitted ranker, given a class, a ranker or such a function."""
    if isinstance(make, type):
        return lambda settings: make(**settings)
    if hasattr(make, "get_params"):
        return lambda settings: clone(make).set_params(**settings)
    return make


def _checked_space(space: Mapping[str, Any]) -> dict[str, Any]:
    if not space:
        raise InvalidInputError("the space is empty. Pass a space such as {'C': [0.1, 1, 10]}", argument="space")
    checked: dict[str, Any] = {}
    for name, values in space.items():
        pair = isinstance(values, tuple) and len(values) == 2
        if pair and all(isinstance(one, Real) and not isinstance(one, bool) for one in values):
            values = Between(*values)
        elif not isinstance(values, Between):
            values = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else []
            if not values:
                raise InvalidInputError(f"{name}: expected a list or a range (low, high), got {space[name]!r}")
        checked[name] = values
    return checked


def _pairs(data: Any, cv: CV | None, seed: int) -> tuple[list[tuple[RankingData, RankingData]], RankingData]:
    """Return (training, held-out) pairs, and the queries for the final fit."""
    if isinstance(data, RankingData | str | os.PathLike) or hasattr(data, "columns"):
        data = rows_of(data)
        folds = folds_of(data, cv, random_state=seed)
        held = [fold.valid if len(fold.valid) else fold.test for fold in folds]
        pairs = [(data.take_queries(fold.train), data.take_queries(own)) for fold, own in zip(folds, held)]
        return pairs, data if not len(folds[0].valid) else RankingData.concatenate(list(pairs[0]))
    given: list[Any] = [
        tuple(rows_of(part) for part in (pair if isinstance(pair, tuple | list) else [pair])) for pair in data
    ]
    if not given:
        raise InvalidInputError("data must contain at least one (training, held-out) pair, got none", argument="data")
    return given, RankingData.concatenate(list(given[0]))


def _tried(
    build: Callable[[dict[str, Any]], Any],
    settings: dict[str, Any],
    pairs: list[tuple[RankingData, RankingData]],
    judged: Measure,
    pool: ThreadPoolExecutor | None,
    number: int,
) -> dict[str, Any]:
    """Return the trial of one setting on every fold."""

    def one(pair: tuple[RankingData, RankingData]) -> tuple[float, int | None]:
        train, held = pair
        ranker = build(settings)
        stops = hasattr(ranker, "staged_predict") and ranker.get_params().get("patience") is not None
        fitted = fit_ranker(ranker, train, held if stops else None)
        value = float(judged.mean(held.judgements(), ranker_scores(fitted, held)))
        return value, int(fitted.best_iteration_) if stops else None

    trial = {"number": number, "params": plain(settings), "values": [], "mean": None, "rounds": None, "error": None}
    try:
        with warnings.catch_warnings():
            # The value of a setting shows whether it converges.
            warnings.filterwarnings("ignore", category=ConvergenceWarning)
            results = list(pool.map(one, pairs)) if pool is not None else [one(pair) for pair in pairs]
    except ValueError as error:
        return trial | {"error": str(error)}
    values, rounds = [value for value, _ in results], [count for _, count in results if count is not None]
    mean = float(np.mean(values))
    if not np.isfinite(mean):
        return trial | {"values": values, "error": "the measure is not finite"}
    return trial | {"values": values, "mean": mean, "rounds": max(1, round(np.mean(rounds))) if rounds else None}


def _grid(ranges: dict[str, Any], done: list[dict[str, Any]]) -> Any:
    """Yield the combinations without a trial, in order."""
    known = {json.dumps(trial["params"], sort_keys=True) for trial in done}
    for combination in itertools.product(*ranges.values()):
        settings = dict(zip(ranges, combination))
        if json.dumps(plain(settings), sort_keys=True) not in known:
            yield settings


def _searched(ranges: dict[str, Any], n_trials: int, seed: int, upwards: bool, done: list[dict[str, Any]]) -> Any:
    """Yield settings that Optuna proposes. Trial k depends only on the seed, k and the trials before it."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize" if upwards else "minimize")
    kinds: dict[str, Any] = {}
    for name, values in ranges.items():
        if isinstance(values, list):
            # By index in the list: a value may be a list, a dict or None, which Optuna does not store.
            kinds[name] = optuna.distributions.CategoricalDistribution(range(len(values)))
        else:
            whole = isinstance(values.low, int) and isinstance(values.high, int)
            make = optuna.distributions.IntDistribution if whole else optuna.distributions.FloatDistribution
            kinds[name] = make(values.low, values.high, log=values.log)

    told = 0
    while len(done) < n_trials:
        for trial in done[told:]:
            params = {
                name: [plain(one) for one in ranges[name]].index(value) if isinstance(ranges[name], list) else value
                for name, value in trial["params"].items()
            }
            state = optuna.trial.TrialState.COMPLETE if trial["error"] is None else optuna.trial.TrialState.FAIL
            made = optuna.trial.create_trial(params=params, distributions=kinds, value=trial["mean"], state=state)
            study.add_trial(made)
        told = len(done)
        study.sampler = optuna.samplers.TPESampler(seed=(seed * 1_000_003 + told) % 2**32)
        asked = study.ask(kinds)
        settings = {
            name: ranges[name][value] if isinstance(ranges[name], list) else value
            for name, value in asked.params.items()
        }
        study.tell(asked, state=optuna.trial.TrialState.FAIL)  # its result is added as a trial of its own
        yield settings


def _trials_of(lines: JsonLines, question: str) -> list[dict[str, Any]]:
    """Return the trials of an earlier run."""
    keys = {"number", "params", "values", "mean", "rounds", "error"}
    others = "trials of another ranker, space, measure, seed or version, or of other data"
    return lines.entries_for(question, keys, "trials", others)
