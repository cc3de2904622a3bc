"""RankSVM by stochastic pairwise descent: the article's diabetes demonstration, and the distance to the exact solution.

Diabetes (scikit-learn's bundled data, unchanged): one query of 442 rows, 300 to train and 142 to test, Kendall's tau
between scores and disease progression. The article runs 100,000 steps of Pegasos on random pairs with λ = 1e-5, once.
We run the listing as printed, with its seed and its faults (`printed_listing`), and our own descent over several seeds.
For comparison: a linear SVR at its defaults and with a tuned C, the exact RankSVM, and tuned settings of ours. The same
cross-validation on the training rows tunes all of them.

LETOR (after Sculley 2009, tables 1 and 2): the exact RankSVM with the hinge chooses λ by validation MAP. Descent then
runs with the same λ for a growing number of steps, so that only the optimisation differs. We report the distance of its
objective to the exact one on the training queries, and MAP on the test queries.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from reproductions.protocol import (
    Fold,
    ResultStore,
    add_options,
    compare_paired,
    letor_folds,
    load_collection,
    mean_of_folds,
    measure_test,
    pool,
    published,
    select,
    show,
    spread,
)
from reproductions.variations import kendall, row_order
from truerank import PairwiseDescent, RankSVM, __version__
from truerank.core.errors import InvalidInputError
from truerank.core.printing import note, table
from truerank.core.random_streams import stream
from truerank.losses.graded_pairs import HINGE, GradedPairs
from truerank.matrices.rows import linear_scores
from truerank.measures import parse_measure

N_TRAIN = 300
ARTICLE = {"alpha": 1e-5, "max_iter": 100_000}
ARTICLE_TAU: dict[str, float] = published("descent")["tau"]
LAMBDAS = [10.0**k for k in range(-4, 1)]
STEPS = [10_000, 100_000, 1_000_000]
COLLECTIONS = ("ohsumed", "mq2008")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the experiment."""
    add_options(parser, "reproduce-output/descent")
    data = next(action for action in parser._actions if action.dest == "data")
    data.required = False
    data.help = f"{data.help}; without it, only the diabetes data of scikit-learn are used"


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Run both experiments."""
    if args.data is None and getattr(args, "record", False):
        raise InvalidInputError("--record writes the whole experiment, which needs LETOR. Add --data DIR.")
    store = ResultStore(f"{args.out}/results.jsonl", {"version": __version__, "quick": args.quick, "seed": args.seed})
    seeds = 3 if args.quick else 20
    note("diabetes: cross-validation on the training rows, then seeds")
    result: dict[str, Any] = {"diabetes": store.compute("diabetes", lambda: diabetes(args.seed, seeds, args.quick))}
    result["trivial"] = trivial_taus()
    note("diabetes: random splits")
    n = 3 if args.quick else 30
    result["splits"] = store.compute({"splits": n}, lambda: random_splits(args.seed, n))
    if args.data is None:
        note("LETOR: left out. Add --data DIR to measure the distance to the exact solution on OHSUMED and MQ2008.")
    for name in COLLECTIONS[: 0 if args.data is None else 1 if args.quick else 2]:
        result[name] = letor(args.data, name, store, seeds=1 if args.quick else 5, seed=args.seed, quick=args.quick)
    return result


# Diabetes.


def all_rows() -> tuple[np.ndarray, np.ndarray]:
    """X and y of all 442 rows."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    order = row_order(np.array([0, N_TRAIN, len(y)]))  # within training rows and test rows, as they are divided
    return X[order], y[order]


def load_rows() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X and y of the 300 training rows, then X and y of the 142 test rows."""
    X, y = all_rows()
    return X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:]


def kendall_tau(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Kendall's tau-b between a model's scores and y."""
    return kendall(model.predict(X), y)


def diabetes(seed: int, seeds: int, quick: bool = False) -> dict[str, dict[str, Any]]:
    """The setting and the test tau of each learner: mean, standard deviation and range over seeds."""
    from sklearn.svm import LinearSVR

    X, y, X_test, y_test = load_rows()
    repeats = 1 if quick else 4

    def descent(**params: Any) -> Callable[[int], Any]:
        return lambda random_state: PairwiseDescent(**params, random_state=random_state)

    def svr(**params: Any) -> Callable[[int], Any]:
        return lambda random_state: LinearSVR(**params, random_state=0, max_iter=100_000)

    def exact(**params: Any) -> Callable[[int], Any]:
        return lambda random_state: RankSVM(**params)

    def row(make: Callable[[int], Any], params: dict[str, Any], n: int) -> dict[str, Any]:
        taus = [kendall_tau(make(seed + s).fit(X, y), X_test, y_test) for s in range(n)]
        return {"tau": spread(taus), "params": params}

    def choose(
        candidates: list[tuple[Callable[..., Any], dict[str, Any]]],
    ) -> tuple[Callable[..., Any], dict[str, Any]]:
        values = [cross_validated_tau(maker(**params), X, y, seed, repeats) for maker, params in candidates]
        return candidates[int(np.argmax(values))]

    pairs = float(GradedPairs(y, np.array([0, len(y)])).total_weight)
    result = printed_demonstration(X, y, X_test, y_test, seed)
    result["descent, the article's setting"] = row(descent(**ARTICLE), ARTICLE, seeds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # liblinear may reach its iteration limit at a large C
        result["linear SVR, defaults"] = row(svr(), {}, 1)
        maker, params = choose([(svr, {"C": 10.0**k}) for k in range(-1, 5)])
        result["linear SVR, C by cross-validation"] = row(maker(**params), params, 1)
    params = {"C": 1 / (1e-5 * pairs), "loss": "hinge"}
    result["RankSVM, exact, the article's λ"] = row(exact(**params), params, 1)
    candidates = [(exact, {"C": 10.0**k}) for k in range(-3, 3)]
    maker, params = choose(candidates)
    result["RankSVM, squared hinge, C by cross-validation"] = row(maker(**params), params, 1)
    candidates = [
        (descent, {"alpha": 10.0**k, "max_iter": 100_000, "average": average})
        for k in range(-6, -1)
        for average in (False, 50_000)
    ]
    maker, params = choose(candidates)
    result["descent, λ and averaging by cross-validation"] = row(maker(**params), params, seeds)
    return result


def trivial_taus() -> dict[str, float]:
    """Test tau of constant scores and of the column with the highest training tau, on the article's division."""
    X, y, X_test, y_test = load_rows()
    best = max(range(X.shape[1]), key=lambda j: abs(kendall(X[:, j], y)))
    sign = float(np.sign(kendall(X[:, best], y)))
    return {"constant scores": 0.0, "best single feature": sign * kendall(X_test[:, best], y_test)}


def random_splits(seed: int, n: int) -> dict[str, Any]:
    """Tau of each learner and of the trivial rankers over `n` random divisions into 300 and 142 rows, with tests.

    Divisions share rows, so the tests use the variance of Nadeau and Bengio (2003), with 1/n + 142/300 for 1/n.
    """
    from scipy.stats import t
    from sklearn.svm import LinearSVR

    X, y = all_rows()
    names = ("linear SVR, defaults", "linear SVR, C by cross-validation", "RankSVM", "descent", "best single feature",
             "constant scores")  # fmt: skip
    taus: dict[str, list[float]] = {name: [] for name in names}
    for split in range(n):
        order = stream(seed, "diabetes split", split).permutation(len(y))
        train, test = order[:N_TRAIN], order[N_TRAIN:]
        held, X_test, y_test = X[train], X[test], y[test]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # liblinear may reach its iteration limit at a large C

            def svr(C: float) -> Callable[[int], Any]:
                return lambda _: LinearSVR(C=C, random_state=0, max_iter=20_000)

            values = {C: cross_validated_tau(svr(C), held, y[train], seed, 1) for C in (0.1, 1.0, 10.0, 100.0, 1000.0)}
            models = {
                names[0]: svr(1.0)(0),
                names[1]: svr(max(values, key=lambda C: values[C]))(0),
                names[2]: RankSVM(C=1 / (1e-5 * N_TRAIN * (N_TRAIN - 1) / 2), loss="hinge"),
                names[3]: PairwiseDescent(**ARTICLE, random_state=seed + split),
            }
            for name, model in models.items():
                taus[name].append(kendall_tau(model.fit(held, y[train]), X_test, y_test))
        by_column = [kendall(held[:, j], y[train]) for j in range(X.shape[1])]
        best = int(np.argmax(np.abs(by_column)))
        taus[names[4]].append(float(np.sign(by_column[best]) * kendall(X_test[:, best], y_test)))
        taus[names[5]].append(0.0)  # Kendall's tau of ties alone
    tests = {}
    for a in (names[3], *names[4:]):
        for b in names[:2]:
            d = np.array(taus[a]) - np.array(taus[b])
            error = np.sqrt((1 / n + (len(y) - N_TRAIN) / N_TRAIN) * d.var(ddof=1)) if n > 1 else np.inf
            p = float(2 * t.sf(abs(d.mean()) / error, max(n - 1, 1)))
            tests[f"{a} - {b}"] = {"difference": float(d.mean()), "above": int((d > 0).sum()), "p": p}
    return {"n": n, "tau": {name: spread(values) for name, values in taus.items()}, "tests": tests}


def printed_demonstration(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, seed: int = 0
) -> dict[str, Any]:
    """The article's script: `np.random.seed(0)`, a linear SVR (which draws once from NumPy's stream), the listing."""
    from sklearn.svm import LinearSVR

    random = np.random.RandomState(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        svr = LinearSVR(random_state=random).fit(X, y)
    w = printed_listing(X, y, ARTICLE["alpha"], int(ARTICLE["max_iter"]), random)
    labels = list(ARTICLE_TAU)
    return {
        labels[0]: {"tau": spread([kendall(X_test @ w, y_test)]), "params": ARTICLE},
        labels[1]: {"tau": spread([kendall_tau(svr, X_test, y_test)]), "params": {}},
    }


def printed_listing(X: np.ndarray, y: np.ndarray, lmd: float, n_iteration: int, random: Any) -> np.ndarray:
    """Weights (p,) of the article's `SPDRankSVM.fit`, line by line, with its faults.

    Its second branch repeats the first condition, so that it ignores pairs whose second row is better. Ignored pairs
    advance the step number. The margin is tested with weights that are already shrunk. `randint(0, N)` replaces
    `random_integers(0, N - 1)`, which NumPy no longer has, and draws the same stream.
    """
    w = np.zeros(X.shape[1])
    for step in range(1, n_iteration + 1):
        first, second = random.randint(0, len(y)), random.randint(0, len(y))
        if not y[first] > y[second]:
            continue
        eta = 1.0 / (lmd * step)
        difference = X[first] - X[second]
        w *= 1 - eta * lmd
        if difference.dot(w) < 1:
            w += eta * difference
    return w


def cross_validated_tau(make: Callable[[int], Any], X: np.ndarray, y: np.ndarray, seed: int, repeats: int) -> float:
    """Mean tau over five random parts of the training rows, `repeats` times; all models get the same parts."""
    values = []
    for repetition in range(repeats):
        order = stream(seed, "diabetes", repetition).permutation(len(y))
        for part in range(5):
            held = order[part::5]
            kept = np.setdiff1d(order, held)
            values.append(kendall_tau(make(repetition).fit(X[kept], y[kept]), X[held], y[held]))
    return float(np.mean(values))


# LETOR.


def letor(root: str, name: str, store: ResultStore, *, seeds: int, seed: int, quick: bool) -> dict[str, Any]:
    """Exact and stochastic solutions of one collection over its five folds."""
    collection = load_collection(root, name)
    folds = letor_folds(collection)
    measures = {key: parse_measure(key, convention=collection.convention) for key in ("AP", "nDCG@10")}
    steps = STEPS[:2] if quick else STEPS
    exact = []
    for fold in folds:
        note(f"{name} {fold.name}: exact")
        exact.append(
            store.compute(
                [name, fold.name, "exact"], partial(_exact, fold, measures, LAMBDAS[::2] if quick else LAMBDAS)
            )
        )
    baseline = pool(folds, [part["values"]["AP"] for part in exact])
    rows: dict[str, Any] = {"RankSVM, hinge, exact": _summary(folds, [exact], None)}
    for n in steps:
        note(f"{name}: descent, {n:,} steps, {seeds} seeds")
        repeated = [
            [
                store.compute([name, fold.name, n, s], partial(_descent, fold, measures, part, n, n // 2, seed + s))
                for fold, part in zip(folds, exact)
            ]
            for s in range(seeds)
        ]
        rows[f"descent, {n:,} steps"] = _summary(folds, repeated, baseline)
    return {"convention": collection.convention, "lambda": [part["lambda"] for part in exact], "rows": rows}


def _training_objective(ranker: Any, fold: Fold, reg: float) -> float:
    pairs = GradedPairs(np.asarray(fold.train.y), fold.train.offsets)
    loss, _ = pairs.loss(linear_scores(fold.train.X, ranker.coef_), HINGE)
    return 0.5 * reg * float(ranker.coef_ @ ranker.coef_) + loss / pairs.total_weight


def _exact(fold: Fold, measures: dict[str, Any], lambdas: list[float]) -> dict[str, Any]:
    total = GradedPairs(np.asarray(fold.train.y), fold.train.offsets).total_weight

    def fit(params: dict[str, Any], fold: Fold) -> Any:
        return RankSVM(C=1 / (params["lambda"] * total), loss="hinge", tol=1e-5).fit(fold.train)

    best = select([{"lambda": value} for value in reversed(lambdas)], fit, fold, measures["AP"])
    start = time.process_time()
    ranker = fit(best.params, fold)
    seconds = time.process_time() - start
    reg = best.params["lambda"]
    return {
        "lambda": reg,
        "objective": _training_objective(ranker, fold, reg),
        "bound": reg * ranker.dual_objective_,
        "seconds": seconds,
        "values": measure_test(ranker, fold, measures),
    }


def _descent(
    fold: Fold, measures: dict[str, Any], exact: dict[str, Any], n: int, average: int | bool, seed: int
) -> dict[str, Any]:
    ranker = PairwiseDescent(exact["lambda"], max_iter=n, average=average, random_state=seed)
    start = time.process_time()
    ranker.fit(fold.train)
    seconds = time.process_time() - start
    objective = _training_objective(ranker, fold, exact["lambda"])
    return {"objective": objective, "seconds": seconds, "values": measure_test(ranker, fold, measures),
            "distance": objective / exact["bound"] - 1}  # fmt: skip


def _summary(folds: list[Fold], repeated: list[list[dict[str, Any]]], baseline: np.ndarray | None) -> dict[str, Any]:
    pooled = [pool(folds, [part["values"]["AP"] for part in parts]) for parts in repeated]
    parts = [part for one in repeated for part in one]
    result = {
        "MAP": spread([mean_of_folds(folds, values) for values in pooled]),
        "nDCG@10": spread(
            [mean_of_folds(folds, pool(folds, [part["values"]["nDCG@10"] for part in one])) for one in repeated]
        ),
        # Distances to the dual bound are never too small.
        "distance": spread([part.get("distance", part["objective"] / part.get("bound", 1.0) - 1) for part in parts]),
        "cpu_seconds": spread([part["seconds"] for part in parts]),
    }
    if baseline is not None:
        result["against_exact"] = compare_paired(np.mean(pooled, axis=0), baseline)
    return result


def print_tables(result: dict[str, Any]) -> None:
    """Print tau of every learner, and the distance of descent from the exact solution."""
    rows = [
        [name, row["tau"]["mean"], row["tau"]["sd"] if row["tau"]["n"] > 1 else None, row["tau"]["n"],
         ARTICLE_TAU.get(name), ", ".join(f"{key}={_short(value)}" for key, value in row["params"].items())]
        for name, row in result["diabetes"].items()
    ]  # fmt: skip
    show("Diabetes: Kendall's tau on the 142 test rows")
    show(table(rows, ["", "tau", "sd", "seeds", "article", "setting"]))
    for name in (name for name in COLLECTIONS if name in result):
        rows = [
            [label, f"{100 * row['distance']['mean']:.3f} %", f"{100 * row['distance']['max']:.3f} %",
             row["MAP"]["mean"], row.get("against_exact", {}).get("p_paired_t"), f"{row['cpu_seconds']['mean']:.3f}"]
            for label, row in result[name]["rows"].items()
        ]  # fmt: skip
        show(f"\n{name} ({result[name]['convention']}), λ by fold from exact validation MAP")
        show(table(rows, ["", "above optimum", "worst", "MAP", "p (paired t) against exact", "CPU s"]))


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
