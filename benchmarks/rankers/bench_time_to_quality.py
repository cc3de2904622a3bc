"""How good a ranking is after so many seconds of training: boosted trees beside LightGBM, XGBoost and CatBoost.

    export TRUERANK_DATA=DIR
    python -m benchmarks.rankers.bench_time_to_quality [--sets mq2008 mslr synthetic linear] [--rows N] [--threads N]

Every learner has the same shapes, `fast` (depth 6, rate .2, 63 borders) and `large` (depth 8, rate .1, 255 borders),
with squared error and with its own ranking objective; LightGBM also with quantised gradients and with sampling by
gradient, ours also with polynomial leaves and, on fuzzy ones, the two ranking losses that CatBoost has. A fit starts
from the float32 matrix and is stopped after `--seconds`; a callback notes the time of each tree: CPU seconds of one
thread, wall seconds of two. At each budget validation queries choose, learner by learner, the setting and the number of
trees among those that were ready, and the table shows nDCG@10 (convention `ranklib`) of the test queries. `--out` keeps
finished fits; `--picture` draws curves.

Synthetic rows: standard normal columns, of which a third is shown through an exponential and a fifth rounded, a fifth
without any meaning and four that are the same for a whole query; grades 0 … 4 cut a sum of bounded effects, of products
of two columns and of "both are high", with noise.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks.rankers.bench_oblivious_quality import assignments
from benchmarks.rankers.bench_oblivious_speed import synthetic as linear_rows
from reproductions import protocol
from truerank import RankingData
from truerank.measures import parse_measure

FEATURES = 136
HELD_OUT = 30_000  # synthetic rows each for validation and test
CHECKPOINTS = sorted({round(1.25**i) for i in range(34)})  # numbers of trees, to 1,580
SHAPES = {
    "fast": {"depth": 6, "rate": 0.2, "borders": 63},
    "large": {"depth": 8, "rate": 0.1, "borders": 255},
}


@dataclass
class Stopwatch:
    """Seconds of each tree since the start; says when the time is over."""

    limit: float
    clock: Callable[[], float]
    begun: float = field(init=False)
    seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.begun = self.clock()

    def over(self) -> bool:
        self.seconds.append(self.clock() - self.begun)
        return self.seconds[-1] > self.limit


Scores = Callable[[np.ndarray, list[int]], Iterator[np.ndarray]]  # (X, numbers of trees) -> scores after each number
Fit = Callable[[RankingData, Stopwatch, int], Scores]


def truerank_trees(objective: str, shape: str, leaves: str = "constant") -> Fit:
    def fit(data: RankingData, watch: Stopwatch, threads: int) -> Scores:
        from truerank import ObliviousBoosting

        own = SHAPES[shape]
        ranker = ObliviousBoosting(
            leaves, objective=objective, depth=int(own["depth"]), learning_rate=own["rate"],
            borders=int(own["borders"]), n_estimators=CHECKPOINTS[-1], n_jobs=threads,
        ).fit(data.X, data.y, qid=data.query_index, callbacks=[lambda _: watch.over()])  # fmt: skip

        def scores(X: np.ndarray, trees: list[int]) -> Iterator[np.ndarray]:
            wanted = set(trees)
            for n, found in enumerate(ranker.staged_predict(X), start=1):
                if n in wanted:
                    yield found

        return scores

    return fit


def lightgbm_trees(objective: str, shape: str, **more: Any) -> Fit:
    def fit(data: RankingData, watch: Stopwatch, threads: int) -> Scores:
        import lightgbm

        own = SHAPES[shape]
        params = {
            "objective": objective, "num_leaves": 1 << int(own["depth"]), "max_depth": own["depth"],
            "learning_rate": own["rate"], "max_bin": own["borders"], "num_threads": threads, "verbose": -1,
            "seed": 0, "force_col_wise": True, **more,
        }  # fmt: skip

        def note(env: Any) -> None:
            if watch.over():
                raise lightgbm.callback.EarlyStopException(env.iteration, [])

        rows = lightgbm.Dataset(data.X, data.y, group=data.group_sizes)
        model = lightgbm.train(params, rows, CHECKPOINTS[-1], callbacks=[note])
        return _sums(lambda X, a, b: model.predict(X, start_iteration=a, num_iteration=b - a, raw_score=True))

    return fit


def xgboost_trees(objective: str, shape: str) -> Fit:
    def fit(data: RankingData, watch: Stopwatch, threads: int) -> Scores:
        import xgboost

        class Note(xgboost.callback.TrainingCallback):  # type: ignore[misc]
            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                return watch.over()

        own = SHAPES[shape]
        params = {
            "objective": objective, "max_depth": own["depth"], "max_bin": own["borders"], "eta": own["rate"],
            "nthread": threads, "tree_method": "hist", "seed": 0,
        }  # fmt: skip
        matrix = xgboost.QuantileDMatrix(data.X, data.y, max_bin=own["borders"], nthread=threads)
        matrix.set_group(data.group_sizes)
        model = xgboost.train(params, matrix, CHECKPOINTS[-1], callbacks=[Note()])
        return _sums(lambda X, a, b: model.inplace_predict(X, iteration_range=(a, b), predict_type="margin"))

    return fit


def catboost_trees(loss: str, shape: str) -> Fit:
    def fit(data: RankingData, watch: Stopwatch, threads: int) -> Scores:
        import catboost

        class Note:
            def after_iteration(self, info: Any) -> bool:
                return not watch.over()

        own = SHAPES[shape]
        settings = {
            "loss_function": loss, "iterations": CHECKPOINTS[-1], "depth": own["depth"], "learning_rate": own["rate"],
            "border_count": own["borders"] - 1, "thread_count": threads, "verbose": False, "random_seed": 0,
            "allow_writing_files": False, "boosting_type": "Plain",
        }  # fmt: skip
        if "RMSE" in loss:
            settings["bootstrap_type"] = "No"
        group = None if loss == "RMSE" else data.query_index
        model = catboost.CatBoost(settings)
        model.fit(catboost.Pool(data.X, data.y, group_id=group), callbacks=[Note()])
        return _sums(lambda X, a, b: model.predict(X, ntree_start=a, ntree_end=b, prediction_type="RawFormulaVal"))

    return fit


def _sums(part: Callable[[np.ndarray, int, int], Any]) -> Scores:
    """Scores after more and more trees, from those of the trees in between; a constant in each does not matter."""

    def scores(X: np.ndarray, trees: list[int]) -> Iterator[np.ndarray]:
        total = np.zeros(len(X))
        for start, stop in zip([0, *trees], trees):
            total = total + np.asarray(part(X, start, stop), dtype=np.float64)
            yield total

    return scores


SETTINGS: dict[str, dict[str, Fit]] = {
    "truerank": {
        **{f"{o}, {shape}": truerank_trees(o, shape) for o in ("mse", "lambdarank") for shape in SHAPES},
        **{f"{o}, fast, fuzzy": truerank_trees(o, "fast", "fuzzy") for o in ("mse", "query-mse", "yetirank")},
        "mse, fast, polynomial": truerank_trees("mse", "fast", "polynomial"),
    },
    "LightGBM": {f"{o}, {shape}": lightgbm_trees(o, shape) for o in ("regression", "lambdarank") for shape in SHAPES},
    "LightGBM, quantised": {
        **{
            f"{o}, {shape}": lightgbm_trees(o, shape, use_quantized_grad=True)
            for o in ("regression", "lambdarank")
            for shape in SHAPES
        },
        "lambdarank, fast, goss": lightgbm_trees(
            "lambdarank", "fast", use_quantized_grad=True, data_sample_strategy="goss"
        ),
    },
    "XGBoost": {
        f"{o}, {shape}": xgboost_trees(o, shape) for o in ("reg:squarederror", "rank:ndcg") for shape in SHAPES
    },
    "CatBoost": {
        **{f"{loss}, {shape}": catboost_trees(loss, shape) for loss in ("RMSE", "QueryRMSE") for shape in SHAPES},
        "YetiRank, fast": catboost_trees("YetiRank", "fast"),
    },
}


def synthetic(n: int, p: int = FEATURES, seed: int = 0) -> RankingData:
    """Heavy-tailed, rounded and useless columns, grades that interact; queries of 100 rows."""
    rng = np.random.default_rng(seed)
    useful = p - p // 5
    order = rng.permutation(p)
    weights = rng.standard_normal(useful) / (1 + np.arange(useful) / 10)
    pairs, both = rng.integers(0, useful, (40, 2)), rng.integers(0, useful, (20, 2))
    products, heights = rng.standard_normal(40) * 0.6, rng.standard_normal(20)
    X = np.empty((n, p), dtype=np.float32)
    signal = np.empty(n)
    for start in range(0, n, 100_000):
        stop = min(start + 100_000, n)
        z = rng.standard_normal((stop - start, p), dtype=np.float32)
        z[:, :4] = np.repeat(z[::100, :4], 100, axis=0)[: len(z)]
        bounded = np.tanh(z[:, :useful])
        s = bounded @ weights + (bounded[:, pairs[:, 0]] * bounded[:, pairs[:, 1]]) @ products
        s += ((z[:, both[:, 0]] > 0.5) & (z[:, both[:, 1]] > 0.5)) @ heights
        signal[start:stop] = s
        z[:, 1::3] = np.exp(2 * z[:, 1::3])
        z[:, 0::5] = np.round(1.5 * np.minimum(z[:, 0::5], 1e3))
        X[start:stop, order] = z
    signal += 0.8 * np.std(signal) * rng.standard_normal(n)
    y = np.digitize(signal, np.quantile(signal, [0.5, 0.75, 0.9, 0.97])).astype(np.float64)
    return RankingData.from_grouped(X, y, np.append(np.arange(0, n, 100), n))


def mostly_linear(n: int) -> RankingData:
    """The rows of `bench_oblivious_speed`; queries of 100 rows."""
    X, y, _ = linear_rows(n)
    return RankingData.from_grouped(X, y, np.append(np.arange(0, n, 100), n))


def parts_of(name: str, data_folder: str, rows: int, divisions: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Name of each division and what gives its training, validation and test rows."""
    if name in ("synthetic", "linear"):

        def made() -> Any:
            data = (synthetic if name == "synthetic" else mostly_linear)(rows + 2 * HELD_OUT)
            ends = np.cumsum([0, rows, HELD_OUT, HELD_OUT]) // 100
            return [data.take_queries(np.arange(a, b)) for a, b in zip(ends, ends[1:])]

        yield f"{rows} rows", made
        return
    for label, folds in assignments(name, data_folder, divisions):
        for fold in folds:
            yield f"{label}, {fold.name}", lambda fold=fold: [fold.train, fold.valid, fold.test]


def curve(fit: Fit, parts: list[RankingData], seconds: float, threads: int) -> dict[str, list[float]]:
    """Seconds, and nDCG@10 of validation and test queries, at the numbers of trees that were reached."""
    train, valid, test = parts
    measure = parse_measure("nDCG@10", "ranklib").tie_averaged()
    watch = Stopwatch(seconds, time.process_time if threads == 1 else time.perf_counter)
    scores = fit(train, watch, threads)
    trees = [n for n in CHECKPOINTS if n <= len(watch.seconds)]
    values = {
        name: [float(measure.mean(data.judgements(), found)) for found in scores(data.X, trees)]
        for name, data in (("valid", valid), ("test", test))
    }
    return {"trees": trees, "seconds": [watch.seconds[n - 1] for n in trees], **values}


def at_budgets(curves: list[dict[str, Any]], budgets: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Test value at each budget of what validation chooses (nan before the first tree), and the setting of each."""
    found, names = np.full(len(budgets), np.nan), [""] * len(budgets)
    for i, budget in enumerate(budgets):
        ready = [
            (valid, test, own["setting"])
            for own in curves
            for s, valid, test in zip(own["seconds"], own["valid"], own["test"])
            if s <= budget
        ]
        if ready:
            _, found[i], names[i] = max(ready, key=lambda one: one[0])
    return found, names


def show(
    name: str, by_learner: dict[str, list[list[dict[str, Any]]]], seconds: float, picture: str | None, clock: str
) -> None:
    """The table of a set: test nDCG@10 by budget, mean over divisions; and the curves as a picture."""
    every = [s for divisions in by_learner.values() for curves in divisions for own in curves for s in own["seconds"]]
    budgets = np.array([b for e in range(-3, 4) for b in (10.0**e, 2 * 10.0**e, 5 * 10.0**e)])
    budgets = np.append(budgets[(budgets >= min(every)) & (budgets < seconds)], seconds)
    means, chosen = {}, {}
    for learner, divisions in by_learner.items():
        found = [at_budgets(curves, budgets) for curves in divisions]
        means[learner] = np.mean([values for values, _ in found], axis=0)
        chosen[learner] = [max(set(names), key=names.count) for names in zip(*(names for _, names in found))]
    learners = list(means)
    print(f"\n**{name}** ({clock} s; test nDCG@10, mean of {len(next(iter(by_learner.values())))} divisions)\n")
    print(f"| {clock} s | {' | '.join(learners)} | ours - best peer | ours is |")
    print("| --- " * (len(learners) + 3) + "|")
    for i, budget in enumerate(budgets):
        cells = [f"{means[learner][i]:.4f}" if means[learner][i] == means[learner][i] else "" for learner in learners]
        if not any(cells):  # not all divisions have a tree yet
            continue
        peers = [means[learner][i] for learner in learners[1:] if means[learner][i] == means[learner][i]]
        lead = f"{means[learners[0]][i] - max(peers):+.4f}" if peers else ""
        print(f"| {budget:g} | {' | '.join(cells)} | {lead} | {chosen[learners[0]][i]} |")
    if picture:
        draw(name, means, budgets, picture, clock)


def draw(name: str, means: dict[str, np.ndarray], budgets: np.ndarray, path: str, clock: str) -> None:
    """The table as curves."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for learner, values in means.items():
        axes.plot(budgets, values, marker=".", label=learner, linewidth=2 if learner == "truerank" else 1)
    axes.set(xscale="log", xlabel=f"{clock} seconds of training", ylabel="test nDCG@10", title=name)
    axes.legend()
    figure.savefig(f"{path}-{name.replace(' ', '-')}.png", dpi=120)


def run(argv: list[str] | None = None) -> None:
    """All sets."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=os.environ.get("TRUERANK_DATA", ""))
    parser.add_argument("--out", default="reproduce-output/time-to-quality.jsonl")
    parser.add_argument("--sets", nargs="+", default=["mq2008", "mslr", "synthetic"])
    parser.add_argument("--rows", type=int, default=240_000, help="synthetic rows to train on")
    parser.add_argument("--divisions", type=int, default=2, help="assignments of MSLR's queries to folds")
    parser.add_argument("--seconds", type=float, help="of a fit (3 on real sets, 20 on synthetic rows)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--picture", metavar="PREFIX")
    args = parser.parse_args(argv or [])
    store = protocol.ResultStore(args.out, {"benchmark": "time to quality", "form": 1})
    for name in args.sets:
        if name != "synthetic" and not args.data:
            print(f"({name} left out: set TRUERANK_DATA to the folder of the collections)")
            continue
        seconds = args.seconds or (20.0 if name in ("synthetic", "linear") else 3.0)
        by_learner: dict[str, list[list[dict[str, Any]]]] = {learner: [] for learner in SETTINGS}
        warm = False
        for label, load in parts_of(name, args.data, args.rows, args.divisions):
            parts: list[RankingData] = []
            for learner, settings in SETTINGS.items():
                curves = []
                for setting, fit in settings.items():
                    key = {
                        "set": name, "division": label, "learner": learner, "setting": setting,
                        "seconds": seconds, "threads": args.threads,
                    }  # fmt: skip
                    if key not in store:
                        parts = parts or load()
                        if not warm:
                            for own in SETTINGS["truerank"].values():  # compile
                                curve(own, [part.take_queries(range(3)) for part in parts], 0.0, args.threads)
                            warm = True
                    found = store.compute(key, partial(curve, fit, parts, seconds, args.threads))
                    curves.append({"setting": setting, **found})
                    print(f"  {name} {label} {learner} {setting}: {max(found['test']):.4f}", flush=True)
                by_learner[learner].append(curves)
        show(name, by_learner, seconds, args.picture, "CPU" if args.threads == 1 else "wall")


if __name__ == "__main__":
    import sys

    run(sys.argv[1:])
