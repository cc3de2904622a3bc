"""Oblivious trees with plain, fuzzy and polynomial leaves over many seeds, and ListNet (Belous 2015).

Each fit grows 100 trees, each on a bootstrap sample of the rows. It is then stopped in two ways: at the best nDCG@5
and at the least squared error of the validation queries. For each way and kind of leaves the same validation figure
chooses one setting, as its mean over five folds under a seed of its own. Many runs with different seeds follow.
Rank-sum tests compare the kinds over the runs, as in the thesis, on fold 1 and on the mean of the five folds, because
the thesis names neither collection nor fold. The thesis's figures 2 to 8 are drawn too.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

from reproductions import protocol
from reproductions.plots import Figure
from reproductions.protocol import Collection, Fold, ResultStore
from reproductions.variations import with_ties
from truerank import ListNet, ObliviousBoosting, ranking_stability
from truerank.core.errors import InvalidInputError
from truerank.core.printing import progress, table
from truerank.matrices.binning import find_borders
from truerank.measures import parse_measure
from truerank.trees.leaves.places import Norms, make_places, make_shares

COLLECTIONS = ("mq2008", "ohsumed")
KINDS = ("constant", "fuzzy", "two-rounds", "polynomial")
TITLES = {
    "constant": "plain",
    "fuzzy": "fuzzy borders",
    "two-rounds": "polynomial leaves, two rounds as printed",
    "polynomial": "polynomial leaves, solved jointly",
    "list-net": "ListNet",
}
THESIS_KIND = {"two-rounds": "polynomial"}  # the thesis solves in two rounds; the joint solution is ours
STOPS = ("nDCG@5", "squared error")  # of the validation queries
FIGURES = ("ranklib", "mse")  # nDCG@5 with the discount 1/log2(rank + 1), as in the thesis, and squared error
SCOPES = ("fold 1", "five folds")
COMMON: dict[str, Any] = {
    "n_estimators": 100,
    "learning_rate": 0.1,
    "borders": 32,
    "bootstrap": "row",
    "measure": "nDCG@5",
}
GRID: dict[str, list[dict[str, Any]]] = {
    "constant": [
        {"leaves": "constant", "depth": depth, "small_leaf_penalty": penalty}
        for depth in (4, 6)
        for penalty in (0.0, 30.0)
    ],
    "fuzzy": [
        {"leaves": {"kind": "fuzzy", **width, "ties": "near", "search": search}, "depth": depth}
        for width in ({"fuzziness": 0.15}, {"fuzziness": 0.05}, {"p_swap": 0.999})
        for depth in (4, 6)
        for search in (False, True)
    ],
} | {
    kind: [
        {"leaves": {"kind": "polynomial", "smoothing": penalty, "solution": solution}, "depth": depth}
        for depth in (4, 6)
        for penalty in (100.0, 1000.0)
    ]
    for kind, solution in (("two-rounds", "two-rounds"), ("polynomial", "joint"))
}
LISTNET = [{"alpha": alpha} for alpha in (100.0, 10.0, 1.0, 1e-2, 1e-4)]
# Table 4: nDCG@5 and the 95 % half-width of its mean over 100 runs. Tables 2 and 3: one-sided p of "a < b".
_THESIS = protocol.published("oblivious")
PUBLISHED = {kind: tuple(_THESIS["ndcg@5"][THESIS_KIND.get(kind, kind)]) for kind in KINDS}
PUBLISHED_LISTNET = _THESIS["list-net"]
PUBLISHED_P = {
    (row["a"], kind): row for row in _THESIS["p"] for kind in KINDS if THESIS_KIND.get(kind, kind) == row["b"]
}
SELECTION_SEED = 1_000_001
LARGEST = 1e6  # the squared error of a setting that diverges, which is never chosen
FIGURE_TREES = 200
P_SWAPS = (0.99, 0.999, 0.9995, 0.9999)
P_SWAP_SHOWN = 0.9995  # in figure 2
SMOOTHINGS = (1.0, 10.0, 100.0, 1000.0)
FIGURE_2 = ((19, "length of the page"), (40, "links to the page"))  # columns from 0 of MQ2008; table 1 of the thesis


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the experiment."""
    protocol.add_options(parser, "reproduce-output/oblivious")
    parser.add_argument(
        "--runs", type=int, default=100, metavar="N", help="seeds of each kind of leaves (default: 100)"
    )
    parser.add_argument(
        "--collections", nargs="+", choices=COLLECTIONS, metavar="NAME", help="mq2008, ohsumed (default: both)"
    )
    parser.add_argument("--n-jobs", type=int, metavar="N", help="threads, which do not change the results")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Choose settings, run and test."""
    runs = 2 if args.quick else args.runs
    store = protocol.open_store(args.out, {"experiment": "oblivious", "form": 6, "seed": args.seed})
    collections = [protocol.load_collection(args.data, name) for name in args.collections or COLLECTIONS]
    settings = {c.name: {kind: choose(c, kind, store, args.n_jobs, args.quick) for kind in KINDS} for c in collections}
    # Finish each run for all collections and kinds, so that an interrupted experiment has complete runs.
    for number in progress(range(runs), "runs"):
        for collection in collections:
            for kind in KINDS:
                for stop in STOPS:
                    params = settings[collection.name][kind][stop]["params"]
                    one_run(collection, params, args.seed + number, store, args.n_jobs)
    results = {c.name: summary(c, settings[c.name], runs, args.seed, store, args.n_jobs) for c in collections}
    trees = COMMON["n_estimators"] if args.quick else FIGURE_TREES
    curves = {c.name: learning_curves(c, settings[c.name], args.seed, store, args.n_jobs, trees) for c in collections}
    stable = {c.name: stability(c, settings[c.name], args.seed, store, args.n_jobs) for c in collections}
    swaps = next((swap_probabilities(c) for c in collections if c.name == COLLECTIONS[0]), None)
    return {
        "experiment": "oblivious", "runs": runs, "page": page(results), "collections": results, "curves": curves,
        "figure 2": swaps, "stability": stable, "step": curve_step(trees),
    }  # fmt: skip


def fit(params: dict[str, Any], fold: Fold, seed: int, n_jobs: int | None) -> Any:
    """Fit a ranker with all its trees; its `validation_scores_` are nDCG@5."""
    ranker = ObliviousBoosting(**(COMMON | params), random_state=seed, n_jobs=n_jobs)
    return ranker.fit(fold.train, eval_set=fold.valid)


def validation_curves(ranker: Any, fold: Fold) -> dict[str, np.ndarray]:
    """nDCG@5 and squared error of the validation queries after each tree."""
    errors = [squared_error(scores, fold.valid) for scores in ranker.staged_predict(fold.valid)]
    # A fit that diverges keeps the trees before its least error, but all of its validation scores.
    return {"nDCG@5": ranker.validation_scores_[: len(errors)], "squared error": np.array(errors)}


def squared_error(scores: np.ndarray, data: Any) -> float:
    """Mean squared difference between scores and grades."""
    return float(np.mean((scores - data.y) ** 2))


def best_tree(stop: str, curve: np.ndarray) -> int:
    """Index of the tree after which the validation figure is best."""
    return int(np.argmax(curve) if stop == "nDCG@5" else np.argmin(curve))


def choose(collection: Collection, kind: str, store: ResultStore, n_jobs: int | None, quick: bool) -> dict[str, Any]:
    """For each way of stopping, the setting with the best validation figure (mean over the folds)."""
    grid = GRID[kind][:2] if quick else GRID[kind]

    def work(params: dict[str, Any]) -> list[list[float]]:
        found = []
        for fold in protocol.letor_folds(collection)[: 2 if quick else None]:
            try:
                curves = validation_curves(fit(params, fold, SELECTION_SEED, n_jobs), fold)
            except InvalidInputError:  # the two rounds may diverge until values overflow
                found.append([-1.0, LARGEST])
            else:
                found.append([float(curves[stop][best_tree(stop, curves[stop])]) for stop in STOPS])
        return found

    tried = []
    for params in progress(grid, f"{collection.name} {kind}: settings"):
        key = {"collection": collection.name, "select": params, "trees": COMMON["n_estimators"], "quick": quick}
        tried.append(np.mean(store.compute(key, partial(work, params)), axis=0).tolist())
    chosen = {}
    for i, stop in enumerate(STOPS):
        best = best_tree(stop, np.array([values[i] for values in tried]))
        chosen[stop] = {
            "params": grid[best],
            "valid": tried[best][i],
            "tried": [[params, values[i]] for params, values in zip(grid, tried)],
        }
    return chosen


def one_run(
    collection: Collection, params: dict[str, Any], seed: int, store: ResultStore, n_jobs: int | None
) -> list[dict[str, dict[str, float]]]:
    """Test figures of the five folds under one seed, for each way of stopping."""

    def work(fold: Fold) -> dict[str, dict[str, float]]:
        try:
            ranker = fit(params, fold, seed, n_jobs)
        except InvalidInputError:  # the first trees of the two rounds diverge, and none is left: the mean grade
            start = np.full(fold.test.n_rows, float(np.mean(np.asarray(fold.train.y))))
            return {stop: test_figures(start, fold) | {"trees": 0} for stop in STOPS}
        curves = validation_curves(ranker, fold)
        ends = {stop: best_tree(stop, curve) for stop, curve in curves.items()}
        found = {}
        for t, scores in enumerate(ranker.staged_predict(fold.test)):
            for stop in (stop for stop, end in ends.items() if end == t):
                found[stop] = test_figures(scores, fold) | {"trees": t + 1}
            if t >= max(ends.values()):
                break
        return found

    key = {"collection": collection.name, "params": params, "trees": COMMON["n_estimators"], "seed": seed}
    return [store.compute(key | {"fold": fold.name}, partial(work, fold)) for fold in protocol.letor_folds(collection)]


def test_figures(scores: np.ndarray, fold: Fold) -> dict[str, float]:
    """nDCG@5 and squared error of scores of the test rows in grouped order."""
    measure = with_ties(parse_measure("nDCG@5", "ranklib"))
    return {
        "ranklib": float(measure.mean(fold.test.judgements(), scores)),
        "mse": squared_error(scores, fold.test),
    }


def summary(
    collection: Collection, settings: dict[str, Any], runs: int, seed: int, store: ResultStore, n_jobs: int | None
) -> dict[str, Any]:
    """For each way of stopping: figures by run, and tests between the kinds of leaves."""
    values: dict[str, dict[str, dict[str, dict[str, list[float]]]]] = {}
    for stop in STOPS:
        values[stop] = {}
        for kind in KINDS:
            params = settings[kind][stop]["params"]
            found = [
                [piece[stop] for piece in one_run(collection, params, seed + i, store, n_jobs)] for i in range(runs)
            ]
            values[stop][kind] = {
                scope: {
                    name: [
                        float(np.mean([p[name] for p in (pieces[:1] if scope == "fold 1" else pieces)]))
                        for pieces in found
                    ]
                    for name in found[0][0]
                }
                for scope in SCOPES
            }
    return {
        "convention": collection.convention,
        "settings": settings,
        "values": values,
        "list-net": list_net(collection, store),
        "trivial": trivial(collection),
        "tests": {stop: {scope: tests(values[stop], scope) for scope in SCOPES} for stop in STOPS},
    }


def trivial(collection: Collection) -> dict[str, dict[str, dict[str, float]]]:
    """Test figures of constant scores (the mean grade) and of a straight line in the best single feature, by scope."""
    measure = with_ties(parse_measure("nDCG@5", "ranklib").tie_averaged())
    found: dict[str, list[dict[str, float]]] = {"constant scores": [], "best single feature": []}
    for fold in protocol.letor_folds(collection):
        train, test, judged = fold.train, fold.test, fold.test.judgements()
        columns = np.asarray(train.X, dtype=float)
        y = np.asarray(train.y, dtype=float)
        on_train = [measure.mean(train.judgements(), np.ascontiguousarray(column)) for column in columns.T]
        best = int(np.argmax(on_train))
        slope, offset = np.polyfit(columns[:, best], y, 1)
        for name, scores in (
            ("constant scores", np.full(test.n_rows, y.mean())),
            ("best single feature", offset + slope * np.asarray(test.X, dtype=float)[:, best]),
        ):
            found[name].append({"ranklib": float(measure.mean(judged, scores)), "mse": squared_error(scores, test)})
    return {
        name: {
            "fold 1": pieces[0],
            "five folds": {key: float(np.mean([piece[key] for piece in pieces])) for key in pieces[0]},
        }
        for name, pieces in found.items()
    }


def page(results: dict[str, Any]) -> dict[str, Any]:
    """Mean and 95 % half-width, on the first collection, of the figure that stops the trees."""
    found: dict[str, Any] = {}
    values = next(iter(results.values()))["values"]
    for scope in SCOPES:
        for stop, key in zip(STOPS, ("ranklib", "mse")):
            for kind in KINDS:
                runs = np.array(values[stop][kind][scope][key])
                half = 1.96 * runs.std(ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else 0.0
                one = {"mean": float(runs.mean()), "half": float(half)}
                found.setdefault(scope, {}).setdefault(stop, {})[kind] = one
    return found


def list_net(collection: Collection, store: ResultStore) -> dict[str, dict[str, float]]:
    """nDCG@5 of ListNet, with its penalty chosen by validation. It is deterministic, so one run is enough."""

    def work(fold: Fold) -> dict[str, float]:
        chosen = protocol.select(
            LISTNET, lambda params, f: ListNet(**params).fit(f.train), fold, parse_measure("nDCG@5", "ranklib")
        )
        return test_figures(protocol.grouped_scores(chosen.ranker, fold.test), fold)

    key = {"collection": collection.name, "kind": "list-net"}
    pieces = [
        store.compute(key | {"fold": fold.name}, partial(work, fold)) for fold in protocol.letor_folds(collection)
    ]
    values = [piece["ranklib"] for piece in pieces]  # its scores are no grades: no squared error
    return {"fold 1": {"ranklib": values[0]}, "five folds": {"ranklib": float(np.mean(values))}}


def tests(values: dict[str, Any], scope: str) -> list[dict[str, Any]]:
    """Rank-sum tests of every pair of kinds; `p` is one-sided in the direction of the observed difference."""
    rows = []
    for a, b in PUBLISHED_P:
        for name in FIGURES:
            first, second = values[a][scope][name], values[b][scope][name]
            difference = float(np.mean(first) - np.mean(second))
            outcome = mannwhitneyu(first, second, alternative="two-sided")
            # The ranks and the means may differ in direction.
            agree = (outcome.statistic - len(first) * len(second) / 2) * difference >= 0
            rows.append(
                {
                    "a": a,
                    "b": b,
                    "figure": name,
                    "difference": difference,
                    "p": outcome.pvalue / 2 if agree else 1 - outcome.pvalue / 2,
                    "published_p": PUBLISHED_P[a, b].get(name),
                }
            )
    return rows


def learning_curves(
    collection: Collection,
    settings: dict[str, Any],
    seed: int,
    store: ResultStore,
    n_jobs: int | None,
    trees: int,
) -> dict[str, dict[str, list[float]]]:
    """Squared error by tree on fold 1: training by pSwap and by λ (figures 3, 4), training and test (5, 6)."""
    fold = protocol.letor_folds(collection)[0]

    def errors(params: dict[str, Any]) -> dict[str, list[float]]:
        ranker = fit(params | {"n_estimators": trees}, fold, seed, n_jobs)
        return {
            name: [squared_error(scores, data) for scores in ranker.staged_predict(data)]
            for name, data in (("train", fold.train), ("test", fold.test))
        }

    def curve(params: dict[str, Any]) -> dict[str, list[float]]:
        key = {"collection": collection.name, "curve": params, "trees": trees, "seed": seed}
        found = store.compute(key, partial(errors, params))
        return {name: values[curve_step(trees) - 1 :: curve_step(trees)] for name, values in found.items()}

    own = {TITLES[kind]: curve(settings[kind]["squared error"]["params"]) for kind in KINDS}
    plain = {"depth": 6, "learning_rate": 0.1}
    by_p = {
        f"pSwap {p:g}": curve({"leaves": {"kind": "fuzzy", "p_swap": p, "ties": "near"}, **plain})["train"]
        for p in P_SWAPS
    }
    by_smoothing = {
        f"λ = {value:g}": curve(
            {"leaves": {"kind": "polynomial", "smoothing": value}, "depth": 4, "learning_rate": 0.1}
        )["train"]
        for value in SMOOTHINGS
    }
    return {
        "figure 3": by_p,
        "figure 4": by_smoothing,
        "figure 5": {name: part["train"] for name, part in own.items()},
        "figure 6": {name: part["test"] for name, part in own.items()},
    }


def curve_step(trees: int) -> int:
    """Trees from one recorded point of a curve to the next, so that at most 50 points are recorded."""
    return max(1, trees // 50)


def stability(
    collection: Collection, settings: dict[str, Any], seed: int, store: ResultStore, n_jobs: int | None
) -> dict[str, Any]:
    """The thesis's aim: how far rankings of fold 1's test queries move when features move a little.

    The mean Kendall distance of each kind, by query, and in how many queries it is smaller and larger than that of
    plain trees.
    """
    fold = protocol.letor_folds(collection)[0]

    def distances(params: dict[str, Any]) -> list[float]:
        found = ranking_stability(fit(params, fold, seed, n_jobs), fold.test, repeats=10, random_state=seed)
        return [float(value) for value in found]

    def of(kind: str) -> np.ndarray:
        params = settings[kind]["nDCG@5"]["params"]
        return np.array(store.compute({"stability": params, "collection": collection.name, "seed": seed},
                                      partial(distances, params)))  # fmt: skip

    by_kind = {kind: of(kind) for kind in ("constant", "fuzzy", "polynomial")}
    plain = by_kind["constant"]
    found = {}
    for kind, own in by_kind.items():
        less, more = int((own < plain).sum()), int((own > plain).sum())
        found[kind] = {"mean": float(np.nanmean(own)), "moves less": less, "moves more": more}
    return found


def swap_probabilities(collection: Collection) -> dict[str, tuple[list[float], dict[str, list[float]]]]:
    """Figure 2 for two features: their values, and P(left of the median) at each value by rule for ties."""
    X = protocol.letor_folds(collection)[0].train.X
    found = {}
    for column, title in FIGURE_2:
        values = np.sort(X[:, min(column, X.shape[1] - 1)])
        middle = float(np.median(values))
        if middle == values[-1]:
            middle = float(values[0])
        places = make_places(values, find_borders(values, 32), 4096)
        x = np.unique(values)
        by_ties = {}
        for ties in ("near", "average"):
            right = make_shares(places, Norms(P_SWAP_SHOWN), ties).right_of(*places.place_of_border(middle), False)
            by_ties[ties] = (1.0 - right[places.states(x)]).tolist()
        found[title] = (x.tolist(), by_ties)
    return found


def print_tables(result: dict[str, Any]) -> None:
    """Print the figures of each kind of leaves by collection; rows of the verdicts have the tests."""
    for name, part in result["collections"].items():
        protocol.show(
            f"\n{name}: {result['runs']} runs; mean ± 95 % half-width of the mean (standard deviation of a run); "
            "nDCG@5 by the convention ranklib (1/log2(r + 1), as in the thesis)"
        )
        for stop in STOPS:
            for scope in SCOPES:
                rows = []
                for kind in KINDS:
                    own, (mean, half) = part["values"][stop][kind][scope], PUBLISHED[kind]
                    rows.append(
                        [TITLES[kind], *(_spread(own[name]) for name in FIGURES)]
                        + [f"{np.mean(own['trees']):.0f}", f"{mean:.4f} ± {half:.4f}"]
                    )
                net = part["list-net"][scope]["ranklib"]
                rows.append([TITLES["list-net"], f"{net:.4f}", "", "", f"{PUBLISHED_LISTNET}"])
                header = [scope, "nDCG@5", "squared error", "trees", "published nDCG@5"]
                protocol.show(f"\nstopped by validation {stop}\n{table(rows, header)}")


def _spread(values: Sequence[float]) -> str:
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return f"{np.mean(values):.4f} ± {1.96 * deviation / np.sqrt(len(values)):.4f} ({deviation:.4f})"


def figures(result: dict[str, Any]) -> list[Figure]:
    """The thesis's figures 2 to 8, for each collection; figure 2 has features of MQ2008."""
    drawn = []
    for title, (values, by_ties) in (result["figure 2"] or {}).items():
        drawn.append(
            Figure(
                f"figure-2-{title.split()[0]}", "lines", f"P(left of the median), {title}", "value", "probability",
                values, {f'ties="{ties}"': probability for ties, probability in by_ties.items()}, ylim=(-0.02, 1.02),
                note=f"pSwap = {P_SWAP_SHOWN}, MQ2008 fold 1",
            )
        )  # fmt: skip
    for name, by_figure in result["curves"].items():
        for number, title in (
            (3, "fuzzy borders, training, by pSwap"),
            (4, "polynomial leaves, training, by λ"),
            (5, "training"),
            (6, "test"),
        ):
            series = by_figure[f"figure {number}"]
            longest = max(len(values) for values in series.values())
            drawn.append(
                Figure(
                    f"{name}-figure-{number}", "lines", f"Squared error, {title}", "trees", "squared error",
                    [result["step"] * (k + 1) for k in range(longest)],
                    {k: [*v, *[float("nan")] * (longest - len(v))] for k, v in series.items()},
                    note=f"{name}, fold 1, each tree on a bootstrap sample of the rows",
                )
            )  # fmt: skip
    for name, part in result["collections"].items():
        for number, figure, label in ((7, "ranklib", "nDCG@5"), (8, "mse", "squared error")):
            boxes = {
                f"{TITLES[kind].split()[0]}\n{rule.removeprefix('squared ')}":
                    part["values"][rule][kind][SCOPES[1]][figure]
                for rule in STOPS
                for kind in KINDS
            }  # fmt: skip
            if figure in part["list-net"][SCOPES[1]]:
                boxes["ListNet"] = [part["list-net"][SCOPES[1]][figure]]
            drawn.append(
                Figure(
                    f"{name}-figure-{number}", "boxes", f"{label}, distribution over runs",
                    "leaves, and the validation figure that stops the trees", label, list(boxes), boxes,
                    note=f"{name}, mean of five folds, {result['runs']} runs",
                )
            )  # fmt: skip
    return drawn
