"""Plain, fuzzy and polynomial oblivious trees over many seeds, beside ListNet (Belous 2015).

For each collection and kind of leaves: one setting is chosen by the validation queries' nDCG@5 (mean over folds and a
few seeds of their own), then many runs with different seeds, each on a bootstrap sample by row with the number of trees
stopped by validation; nDCG@5 and squared error on test. Rank-sum tests compare the runs, as the thesis does, on Fold 1
and on the mean of the five folds (the thesis names neither collection nor fold).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from truerank.core.printing import note, print_json, progress, table
from truerank.papers import protocol
from truerank.papers.protocol import Collection, Fold, ResultStore

COLLECTIONS = ("mq2008", "ohsumed")
KINDS = ("constant", "fuzzy", "polynomial")
TITLES = {"constant": "plain", "fuzzy": "fuzzy borders", "polynomial": "polynomial leaves", "list-net": "ListNet"}
COMMON: dict[str, Any] = {"n_estimators": 300, "patience": 60, "borders": 32, "bootstrap": "row", "measure": "nDCG@5"}
GRID: dict[str, list[dict[str, Any]]] = {
    "constant": [{"depth": depth, "learning_rate": rate} for depth in (4, 6) for rate in (0.05, 0.1)],
    "fuzzy": [
        {"depth": depth, "learning_rate": rate, "leaves": {"kind": "fuzzy", "fuzziness": width}}
        for depth in (4, 6)
        for rate in (0.05, 0.1)
        for width in (0.1, 0.2, 0.4)
    ],
    "polynomial": [
        {"depth": depth, "learning_rate": rate, "leaves": {"kind": "polynomial", "smoothing": penalty}}
        for depth in (3, 5)
        for rate in (0.05, 0.1)
        for penalty in (10.0, 300.0)
    ],
}
LISTNET = [{"alpha": alpha} for alpha in (100.0, 10.0, 1.0, 1e-2, 1e-4)]
# nDCG@5 and the 95 % half-width of its mean over 100 runs.
PUBLISHED = {"fuzzy": (0.4543, 0.0005), "constant": (0.4514, 0.0007), "polynomial": (0.4485, 0.0006)}
PUBLISHED_LISTNET = 0.4565
SELECTION_SEEDS = (1_000_001, 1_000_002)


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the experiment."""
    protocol.add_options(parser, "reproduce-output/oblivious")
    parser.add_argument(
        "--runs", type=int, default=100, metavar="N", help="seeds of each kind of leaves (default: 100)"
    )
    parser.add_argument("--n-jobs", type=int, metavar="N", help="threads; results do not depend on them")


def run(args: argparse.Namespace) -> int:
    """Select, run, test, print, draw."""
    runs = 3 if args.quick else args.runs
    stamp = {"experiment": "oblivious", "form": 1, "seed": args.seed}
    store = ResultStore(Path(args.out) / "results.jsonl", stamp)
    if store.n_resumed:
        note(f"{store.n_resumed} finished pieces found in {store.path}")
    collections = [protocol.load_collection(args.data, name) for name in COLLECTIONS]
    settings = {c.name: {kind: choose(c, kind, store, args.n_jobs, args.quick) for kind in KINDS} for c in collections}
    # Run by run over everything, so that an interrupted experiment has whole runs of all kinds.
    for number in progress(range(runs), "runs"):
        for collection in collections:
            for kind in KINDS:
                one_run(
                    collection, kind, settings[collection.name][kind]["params"], args.seed + number, store, args.n_jobs
                )
    results = {c.name: summary(c, settings[c.name], runs, args.seed, store, args.n_jobs) for c in collections}
    if args.json:
        print_json({"experiment": "oblivious", "runs": runs, "collections": results})
    else:
        for collection in collections:
            print_summary(collection, results[collection.name], runs)
    draw(results, Path(args.out))
    return 0


def fit(kind: str, params: dict[str, Any], fold: Fold, seed: int, n_jobs: int | None) -> Any:
    """One ranker, its number of trees stopped by the validation queries."""
    from truerank.rankers.oblivious_boosting import ObliviousBoosting

    ranker = ObliviousBoosting(**({"leaves": kind} | COMMON | params), random_state=seed, n_jobs=n_jobs)
    return ranker.fit(fold.train, eval_set=fold.valid)


def choose(collection: Collection, kind: str, store: ResultStore, n_jobs: int | None, quick: bool) -> dict[str, Any]:
    """The setting with the best validation nDCG@5, mean over five folds and a few seeds that no run uses."""
    grid = GRID[kind][:2] if quick else GRID[kind]

    def work(params: dict[str, Any]) -> list[float]:
        return [
            float(np.max(fit(kind, params, fold, seed, n_jobs).validation_scores_))
            for seed in SELECTION_SEEDS[: 1 if quick else None]
            for fold in protocol.letor_folds(collection)
        ]

    tried = []
    for params in progress(grid, f"{collection.name} {kind}: settings"):
        key = {"collection": collection.name, "kind": kind, "select": params, "quick": quick}
        tried.append(float(np.mean(store.compute(key, partial(work, params)))))
    best = int(np.argmax(tried))
    return {"params": grid[best], "valid": tried[best], "tried": [[p, v] for p, v in zip(grid, tried)]}


def one_run(
    collection: Collection, kind: str, params: dict[str, Any], seed: int, store: ResultStore, n_jobs: int | None
) -> list[dict[str, float]]:
    """Test figures of the five folds under one seed."""

    def work(fold: Fold) -> dict[str, float]:
        return test_figures(fit(kind, params, fold, seed, n_jobs), fold, collection.convention)

    key = {"collection": collection.name, "kind": kind, "params": params, "seed": seed}
    return [store.compute(key | {"fold": fold.name}, partial(work, fold)) for fold in protocol.letor_folds(collection)]


def test_figures(ranker: Any, fold: Fold, convention: str) -> dict[str, float]:
    """nDCG@5 under both conventions, and squared error, on test."""
    from truerank.measures import parse_measure

    judgements, scores = fold.test.judgements(), protocol.grouped_scores(ranker, fold.test)
    result = {name: float(parse_measure("nDCG@5", name).mean(judgements, scores)) for name in ("ranklib", convention)}
    assert fold.test.y is not None
    return result | {"mse": float(np.mean((scores - fold.test.y) ** 2)), "trees": int(getattr(ranker, "n_iter_", 0))}


def summary(
    collection: Collection, settings: dict[str, Any], runs: int, seed: int, store: ResultStore, n_jobs: int | None
) -> dict[str, Any]:
    """Figures by run, means, and tests between the kinds."""
    values: dict[str, dict[str, dict[str, list[float]]]] = {}
    for kind in KINDS:
        found = [one_run(collection, kind, settings[kind]["params"], seed + i, store, n_jobs) for i in range(runs)]
        values[kind] = {
            scope: {
                name: [
                    float(np.mean([piece[name] for piece in (run[:1] if scope == "fold 1" else run)])) for run in found
                ]
                for name in found[0][0]
            }
            for scope in ("fold 1", "five folds")
        }
    return {
        "convention": collection.convention,
        "settings": settings,
        "values": values,
        "list-net": list_net(collection, store),
        "tests": {scope: tests(values, scope, collection.convention) for scope in ("fold 1", "five folds")},
    }


def list_net(collection: Collection, store: ResultStore) -> dict[str, dict[str, float]]:
    """ListNet, its penalty chosen by each fold's validation nDCG@5; it draws nothing, so one run is all."""
    from truerank.measures import parse_measure
    from truerank.rankers.list_net import ListNet

    def work(fold: Fold) -> dict[str, float]:
        chosen = protocol.select(
            LISTNET, lambda params, f: ListNet(**params).fit(f.train), fold, parse_measure("nDCG@5", "ranklib")
        )
        return test_figures(chosen.ranker, fold, collection.convention)

    key = {"collection": collection.name, "kind": "list-net"}
    pieces = [
        store.compute(key | {"fold": fold.name}, partial(work, fold)) for fold in protocol.letor_folds(collection)
    ]
    names = [name for name in pieces[0] if name not in ("mse", "trees")]  # its scores are no grades
    return {
        "fold 1": {name: pieces[0][name] for name in names},
        "five folds": {name: float(np.mean([piece[name] for piece in pieces])) for name in names},
    }


def tests(values: dict[str, Any], scope: str, convention: str) -> list[dict[str, Any]]:
    """Rank-sum tests of every pair of kinds; `p` is one-sided for the difference that is seen."""
    from truerank.significance import rank_sum

    rows = []
    for a, b in (("fuzzy", "constant"), ("fuzzy", "polynomial"), ("constant", "polynomial")):
        for name in ("ranklib", convention, "mse"):
            first, second = values[a][scope][name], values[b][scope][name]
            difference = float(np.mean(first) - np.mean(second))
            outcome = rank_sum(first, second)
            # The ranks may lean to the other side than the means do.
            agree = (outcome.statistic - len(first) * len(second) / 2) * difference >= 0
            rows.append(
                {
                    "a": a,
                    "b": b,
                    "figure": name,
                    "difference": difference,
                    "p": outcome.p / 2 if agree else 1 - outcome.p / 2,
                }
            )
    return rows


def print_summary(collection: Collection, result: dict[str, Any], runs: int) -> None:
    """Tables on stdout."""
    import sys

    convention = result["convention"]
    lines = [
        f"\n{collection.name}: {runs} runs; mean ± 95 % half-width of the mean (standard deviation of a run); "
        f"nDCG@5 by the conventions ranklib (1/log2(r + 1), as the thesis) and {convention}"
    ]
    for scope in ("fold 1", "five folds"):
        rows = []
        for kind in KINDS:
            row: list[Any] = [TITLES[kind]]
            for name in ("ranklib", convention, "mse"):
                row.append(_spread(result["values"][kind][scope][name]))
            row.append(f"{np.mean(result['values'][kind][scope]['trees']):.0f}")
            mean, half = PUBLISHED[kind]
            rows.append([*row, f"{mean:.4f} ± {half:.4f}"])
        net = result["list-net"][scope]
        rows.append([TITLES["list-net"], f"{net['ranklib']:.4f}", f"{net[convention]:.4f}", "", "", PUBLISHED_LISTNET])
        header = [scope, "nDCG@5 ranklib", f"nDCG@5 {convention}", "squared error", "trees", "published nDCG@5"]
        lines += ["", table(rows, header), ""]
        shown = [
            [f"{TITLES[t['a']]} - {TITLES[t['b']]}", t["figure"], f"{t['difference']:+.4f}", f"{t['p']:.2g}"]
            for t in result["tests"][scope]
        ]
        lines.append(table(shown, ["rank-sum, one-sided", "figure", "difference", "p"]))
    lines += ["", "settings chosen by validation nDCG@5:"]
    lines += [f"  {TITLES[k]}: {s['params']} ({s['valid']:.4f})" for k, s in result["settings"].items()]
    sys.stdout.write("\n".join(lines) + "\n")


def _spread(values: Sequence[float]) -> str:
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return f"{np.mean(values):.4f} ± {1.96 * deviation / np.sqrt(len(values)):.4f} ({deviation:.4f})"


def draw(results: dict[str, Any], out: Path) -> None:
    """Box plots of both figures, one file a collection; a note where matplotlib is missing."""
    try:
        import matplotlib
    except ImportError:
        note("no box plots: pip install 'truerank[plots]'")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    for name, result in results.items():
        figure, axes = pyplot.subplots(2, 2, figsize=(9, 7), layout="constrained")
        for row, scope in zip(axes, ("fold 1", "five folds")):
            for axis, value, label in zip(row, ("ranklib", "mse"), ("nDCG@5", "squared error")):
                axis.boxplot([result["values"][kind][scope][value] for kind in KINDS])
                axis.set_xticks(range(1, len(KINDS) + 1), [TITLES[kind] for kind in KINDS])
                axis.set_title(f"{label}, {scope}")
                if value == "ranklib":
                    axis.axhline(result["list-net"][scope]["ranklib"], linestyle="--", color="gray", label="ListNet")
                    axis.legend()
        figure.suptitle(name)
        figure.savefig(out / f"{name}.png", dpi=150)
        pyplot.close(figure)
        note(f"box plots: {out / f'{name}.png'}")
