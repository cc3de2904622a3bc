"""AdaRank (Xu & Li, SIGIR 2007): the paper's protocol on OHSUMED, with its figures 2 and 6 to 11.

The queries are divided at random into four parts (a deal). Each trial tests on one part and trains on the other three,
without validation queries. AP counts documents of grade 2 only (`AP(rel=2)`). nDCG has the gain 2^g - 1 and the
discount 1/log2(1 + r). AdaRank stops by its training measure. The other learners run at their defaults.

Differences from the paper:

1. The features are those of LETOR 3.0, which replaced the features of the paper's table 2.
2. BM25 uses LETOR's term statistics. Its stream, k1 and b are chosen on the training queries of trial 1.
3. The deal is repeated.
4. Tied documents count with the average over their orders.
5. Ranking SVM is our exact solver, with the hinge and with the squared hinge, at its default C and with a C chosen by
   cross-validation over the three training parts.
6. The rows "once" choose each feature in one round at most.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from reproductions import protocol
from reproductions.adarank.ohsumed_terms import FILE, TermStatistics, read_terms, tune
from reproductions.plots import Figure
from reproductions.protocol import Collection, Fold, ResultStore, rows_of
from reproductions.variations import with_ties
from truerank import AdaRank, RankBoost, RankingData, RankSVM
from truerank.core.printing import progress, table
from truerank.core.random_streams import stream
from truerank.data.splits import query_folds
from truerank.measures import Measure, parse_measure

CONVENTION = "ranklib"
MEASURES = ("AP(rel=2)", "nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10")
TRAINED = ("AP(rel=2)", "nDCG@5")
PAIRS = {"pairs(2, 0)": "d-n", "pairs(2, 1)": "d-p", "pairs(1, 0)": "p-n"}
TESTED = (*MEASURES, *PAIRS)
SVM_GRID = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
UPDATES = ("paper", "adaboost")
ADARANK_ROWS = {
    f"AdaRank.{name} ({update}{'' if repeat else ', once'})": (update, measure, repeat)
    for update, repeat in (("paper", True), ("paper", False), ("adaboost", True))
    for name, measure in zip(("MAP", "NDCG"), TRAINED)
}
RANKING_SVMS = {
    "Ranking SVM, squared hinge": ("squared_hinge", False),
    "Ranking SVM, squared hinge, C by cross-validation": ("squared_hinge", True),
    "Ranking SVM, hinge": ("hinge", False),
    "Ranking SVM, hinge, C by cross-validation": ("hinge", True),
}
BASELINES = ("BM25", *RANKING_SVMS, "RankBoost")
BEST_FEATURE, CONSTANT = protocol.TRIVIAL
ROWS = (BEST_FEATURE, CONSTANT, *BASELINES, *ADARANK_ROWS)
ROUNDS = 350  # of figure 11
CURVES = ("paper", "paper, once", "compound", "adaboost")
Values = dict[str, dict[str, list[np.ndarray]]]  # by row, measure and deal: of all queries (m,)
_STEP = 1000  # pairs in a class of figures 7 and 8


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the experiment."""
    protocol.add_options(parser, "reproduce-output/adarank")
    parser.add_argument(
        "--assignments", type=int, default=20, metavar="N", help="random divisions of the queries (default: 20)"
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Fit and test what is not finished."""
    stamp = {"experiment": "adarank", "form": 4, "seed": args.seed}
    store = protocol.open_store(args.out, stamp)
    ohsumed = protocol.load_collection(args.data, "ohsumed")
    terms = read_terms(Path(args.data, FILE), ohsumed.data)
    assignments = 2 if args.quick else args.assignments
    return {"trials": run_trials(ohsumed, terms, store, assignments=assignments, seed=args.seed)}


def four_trials(data: RankingData, assignment: int, *, seed: int = 0) -> tuple[list[Fold], list[np.ndarray]]:
    """The four trials of one deal, which have no validation queries, and the four parts of the queries."""
    parts = query_folds(data.n_queries, 4, random_state=stream(seed, "four parts", assignment))
    none = np.empty(0, dtype=np.int64)
    folds = []
    for k, test in enumerate(parts):
        train = np.concatenate([part for j, part in enumerate(parts) if j != k])
        folds.append(Fold(f"assignment {assignment} trial {k + 1}", data, train, none, test))
    return folds, parts


def run_deals(
    collection: Collection, terms: Any, store: ResultStore, rows: Sequence[str], measures: Sequence[str],
    assignments: int, seed: int,
) -> tuple[Values, dict[str, Any], dict[str, list[dict[str, Any]]], dict[str, list[dict[str, Any]]]]:  # fmt: skip
    """Run some rows of the table on every deal.

    Returns
    -------
    kept : dict by row and measure
        For each deal the values of all queries.
    tests : dict
        AdaRank against each baseline, on each query's mean over the deals.
    pieces : dict by row
        What `_trial` found in each trial.
    chosen : dict
        `bm25`, the parameters of each deal, and `single feature`, those of each trial.
    """
    data = collection.data
    kept: Values = {row: {m: [] for m in measures} for row in rows}
    pieces: dict[str, list[dict[str, Any]]] = {row: [] for row in rows}
    chosen: dict[str, list[dict[str, Any]]] = {"bm25": [], "single feature": []}
    for assignment in progress(range(assignments), f"{collection.name}: deals into four parts"):
        folds, parts = four_trials(data, assignment, seed=seed)
        ap = _measure(TRAINED[0])
        bm25 = store.compute({"bm25": assignment}, partial(tune, terms, data, folds[0].train_queries, ap))
        single = [store.compute({"single feature": fold.name}, partial(_single_feature, fold)) for fold in folds]
        chosen["bm25"].append(bm25)
        chosen["single feature"] += single
        for row in rows:
            found = [
                _trial(row, k, folds, parts, single[k]["column"], (terms, bm25), store, measures) for k in range(4)
            ]
            pieces[row] += found
            for name in measures:
                kept[row][name].append(protocol.pool(folds, [piece["test"][name] for piece in found]))
    return kept, _tests(kept), pieces, chosen


def means_of(kept: Values) -> dict[str, dict[str, dict[str, float]]]:
    """Mean over the queries, and its spread over the deals, by row and measure."""
    return {
        row: {name: protocol.spread([float(np.nanmean(v)) for v in values]) for name, values in by_measure.items()}
        for row, by_measure in kept.items()
    }


def run_trials(
    collection: Collection, terms: TermStatistics, store: ResultStore, *, assignments: int, seed: int = 0
) -> dict[str, Any]:
    """Run all trials.

    Returns
    -------
    dict
        `means` by row and measure (mean over trials and deals), `bm25` (the parameters chosen in each deal), `tests`
        (AdaRank against each baseline, on each query's mean over the deals), `features` (how many each model keeps),
        `training` (figures 9 and 10, all trials), and `groups` (figures 7 and 8), `curve` and `peaks` (figure
        11) of trial 1 of the first deal.
    """
    data = collection.data
    kept, tests, pieces, chosen = run_deals(collection, terms, store, ROWS, TESTED, assignments, seed)
    training = {row: [piece["train"] for piece in pieces[row]] for row in ADARANK_ROWS}
    training |= {f"{BEST_FEATURE} by {m}": [one["train"][m] for one in chosen["single feature"]] for m in TRAINED}
    features = {row: [piece["features"] for piece in pieces[row]] for row in ADARANK_ROWS}
    first = four_trials(data, 0, seed=seed)[0][0]
    curve = store.compute({"curves": ROUNDS}, lambda: _curve(first))
    return {
        "convention": f"{CONVENTION}, ties averaged",
        "queries": data.n_queries,
        "assignments": assignments,
        "means": means_of(kept),
        "bm25": chosen["bm25"],
        "tests": tests,
        "baselines": list(BASELINES),
        "features": {
            row: {"mean": float(np.mean(counts)), "one": counts.count(1), "trials": len(counts)}
            for row, counts in features.items()
        },
        "training": _training(training),
        "groups": store.compute({"groups": 0}, lambda: _groups(first)),
        "curve": curve,
        "peaks": {label: _peak(curve[label]) for label in CURVES},
    }


def _measure(name: str) -> Measure:
    return with_ties(parse_measure(name, convention=CONVENTION).tie_averaged())


def _single_feature(fold: Fold) -> dict[str, Any]:
    """The column with the best training AP, and the training measures of the best column by each measure."""
    judgements = fold.train.judgements()
    values = {
        name: [_measure(name).mean(judgements, np.ascontiguousarray(column)) for column in fold.train.X.T]
        for name in TRAINED
    }
    best = {name: int(np.argmax(values[name])) for name in TRAINED}
    train = {by: {name: values[name][column] for name in TRAINED} for by, column in best.items()}
    return {"column": best[TRAINED[0]], "train": train}


def _trial(
    row: str, k: int, folds: Sequence[Fold], parts: Sequence[np.ndarray], column: int,
    bm25: tuple[Any, dict[str, Any]], store: ResultStore, measures: Sequence[str],
) -> dict[str, Any]:  # fmt: skip
    fold = folds[k]

    def work() -> dict[str, Any]:
        result: dict[str, Any] = {}
        if row == "BM25":
            terms, chosen = bm25
            scores = terms.bm25(chosen["stream"], chosen["k1"], chosen["b"])[rows_of(fold.data, fold.test_queries)]
        elif row == CONSTANT:
            scores = np.zeros(fold.test.n_rows)
        elif row == BEST_FEATURE:
            scores = np.ascontiguousarray(fold.test.X[:, column])
        else:
            ranker = _fit(row, k, fold, parts)
            scores = protocol.grouped_scores(ranker, fold.test)
            if row in ADARANK_ROWS:
                own, on_own = fold.train.judgements(), protocol.grouped_scores(ranker, fold.train)
                result["train"] = {n: float(_measure(n).mean(own, on_own)) for n in TRAINED}
                result["features"] = len(ranker.feature_weights())
        judgements = fold.test.judgements()
        result["test"] = {n: _measure(n).per_query(judgements, scores).tolist() for n in measures}
        return result

    return store.compute({"trial": fold.name, "row": row}, work)


def _fit(row: str, k: int, fold: Fold, parts: Sequence[np.ndarray]) -> Any:
    """A ranker fitted on the three training parts."""
    if row == "RankBoost":
        ranker: Any = RankBoost(convention=CONVENTION)
    elif row in RANKING_SVMS:
        loss, tuned = RANKING_SVMS[row]
        ranker = RankSVM(loss=loss, **({"C": _cross_validated_c(k, fold, parts, loss)} if tuned else {}))
    else:
        update, measure, repeat = ADARANK_ROWS[row]
        ranker = _adarank(update, measure, repeat=repeat)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that stops at its iteration limit is tested like any other
        return ranker.fit(fold.train)


def _adarank(update: str, measure: str, **settings: Any) -> AdaRank:
    return AdaRank(measure, convention=CONVENTION, update=update, **settings)


def _cross_validated_c(k: int, fold: Fold, parts: Sequence[np.ndarray], loss: str) -> float:
    """The C with the best AP over the three training parts, each held out in turn."""
    ap = _measure("AP(rel=2)")
    others = [j for j in range(4) if j != k]
    values = np.zeros(len(SVM_GRID))
    for held_out in others:
        train = fold.data.take_queries(np.concatenate([parts[j] for j in others if j != held_out]))
        test = fold.data.take_queries(parts[held_out])
        for i, C in enumerate(SVM_GRID):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ranker = RankSVM(C=C, loss=loss).fit(train)
            values[i] += ap.per_query(test.judgements(), protocol.grouped_scores(ranker, test)).sum()
    return SVM_GRID[int(np.argmax(values))]


def _tests(kept: Values) -> dict[str, dict[str, Any]]:
    """AdaRank and the trivial rankers against every baseline, over all deals and within each deal."""
    result = {}
    compared = [(row, measure) for row, (_, measure, _) in ADARANK_ROWS.items() if row in kept]
    compared += [(row, measure) for row in protocol.TRIVIAL for measure in TRAINED]
    for row, measure in compared:
        for baseline in (name for name in BASELINES if name in kept):
            ours, theirs = kept[row][measure], kept[baseline][measure]
            found: dict[str, Any] = protocol.compare_paired(np.mean(ours, axis=0), np.mean(theirs, axis=0))
            single = [protocol.compare_paired(a, b) for a, b in zip(ours, theirs, strict=True)]
            found["above"] = sum(s["difference"] > 0 for s in single)
            found["significant"] = sum(s["difference"] > 0 and s["p_paired_t"] < 0.05 for s in single)
            result[f"{row} - {baseline}, {measure}"] = found
    return result


def _training(training: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Figures 9 and 10: each training measure of the models trained on either, and how often the own one is ahead.

    The key `best single feature` has the same for the column with the best training measure.
    """
    result: dict[str, Any] = {}
    pairs = {update: [f"AdaRank.{name} ({update})" for name in ("MAP", "NDCG")] for update in UPDATES}
    pairs[BEST_FEATURE] = [f"{BEST_FEATURE} by {measure}" for measure in TRAINED]
    for label, rows in pairs.items():
        for measure in TRAINED:
            a, b = (np.array([one[measure] for one in training[row]]) for row in rows)
            own, other = (a, b) if measure == TRAINED[0] else (b, a)
            result[f"{measure} ({label})"] = {
                "trained on MAP": float(a.mean()),
                "trained on nDCG@5": float(b.mean()),
                "own measure ahead": int((own > other).sum()),
                "behind": int((own < other).sum()),
                "trials": len(a),
                "first four": {"AdaRank.MAP": a[:4].tolist(), "AdaRank.NDCG": b[:4].tolist()},
            }
    return result


def _groups(fold: Fold) -> dict[str, Any]:
    """Figures 7 and 8: the training queries of trial 1 by their number of pairs, with the MAP of two learners."""
    data = fold.train
    group = pairs_by_query(data) // _STEP
    rankers: dict[str, Any] = {
        "RankBoost": RankBoost(convention=CONVENTION), "AdaRank.MAP": _adarank("adaboost", TRAINED[0]),
    }  # fmt: skip
    ap = {name: _measure(TRAINED[0]).per_query(data.judgements(), protocol.grouped_scores(ranker.fit(data), data))
          for name, ranker in rankers.items()}  # fmt: skip
    present = np.unique(group)
    return {
        "groups": [f"{g}k-{g + 1}k" for g in present],
        "queries": [int((group == g).sum()) for g in present],
        "MAP": {name: [float(values[group == g].mean()) for g in present] for name, values in ap.items()},
    }


def pairs_by_query(data: RankingData) -> np.ndarray:
    """Pairs of documents with different grades, by query (m,)."""
    assert data.y is not None
    sizes, query = data.group_sizes, data.query_index
    grades, code = np.unique(data.y, return_inverse=True)
    counts = np.bincount(query * len(grades) + code, minlength=data.n_queries * len(grades))
    counts = counts.reshape(data.n_queries, len(grades))
    return (sizes**2 - (counts**2).sum(axis=1)) // 2


def _curve(fold: Fold) -> dict[str, Any]:
    """Figure 11: training MAP by round, for every update."""
    curves: dict[str, Any] = {"trial": fold.name}
    for label in CURVES:
        update, _, once = label.partition(", ")
        ranker = _adarank(update, TRAINED[0], n_estimators=ROUNDS, patience=ROUNDS, repeat=not once).fit(fold.train)
        curves[label] = ranker.history_["train"].tolist()
    return curves


def _peak(values: Sequence[float]) -> dict[str, Any]:
    best = int(np.argmax(values))
    return {"first": values[0], "best": values[best], "round": best + 1, "last": values[-1]}


def figures(result: dict[str, Any]) -> list[Figure]:
    """Figures 2 and 6 to 11 of the paper, under its own protocol."""
    result = result["trials"]
    where = (f"OHSUMED, {result['queries']} queries, {result['assignments']} deals into four parts, ties averaged, "
             "AP of definitely relevant documents.")  # fmt: skip
    shown = [*BASELINES, "AdaRank.MAP (adaboost)", "AdaRank.NDCG (adaboost)"]
    means = result["means"]
    groups, curve = result["groups"], result["curve"]
    first = f"{curve['trial']}, training queries."
    drawn = [
        Figure("trials-figure-02", "bars", "Test measures", "", "mean over trials", ["MAP", *MEASURES[1:]],
               {row: [means[row][m]["mean"] for m in MEASURES] for row in shown}, note=where),
        Figure("trials-figure-06", "bars", "Wrongly ordered pairs by their grades", "grades of the pair",
               "share of pairs in the wrong order", list(PAIRS.values()),
               {row: [means[row][p]["mean"] for p in PAIRS] for row in shown if row != "BM25"}, note=where),
        Figure("trials-figure-07", "bars", "Queries by their number of document pairs", "pairs", "queries",
               groups["groups"], {"queries": [float(n) for n in groups["queries"]]}, note=first),
        Figure("trials-figure-08", "bars", "MAP by the query's number of document pairs", "pairs", "MAP, training",
               groups["groups"], groups["MAP"], note=first),
    ]  # fmt: skip
    for number, measure in ((9, TRAINED[0]), (10, TRAINED[1])):
        series = result["training"][f"{measure} (adaboost)"]["first four"]
        values = [v for row in series.values() for v in row]
        drawn.append(
            Figure(f"trials-figure-{number:02d}", "bars", f"{measure} on the training queries", "trial",
                   f"{measure}, training", ["1", "2", "3", "4"], series, ylim=(min(values) - 0.02, max(values) + 0.01),
                   note=f'{where} First deal, update="adaboost". The axis does not start at 0.')
        )  # fmt: skip
    rounds = max(len(curve[u]) for u in CURVES)
    lines = {u: curve[u] + [math.nan] * (rounds - len(curve[u])) for u in CURVES}
    drawn.append(
        Figure("trials-figure-11", "lines", "AdaRank's learning curve", "round", "MAP, training",
               list(range(1, rounds + 1)), lines, note=f"{first} The axis does not start at 0.")
    )  # fmt: skip
    return drawn


def print_tables(result: dict[str, Any]) -> None:
    """Print the mean measures; rows of the verdicts have the other figures."""
    result = result["trials"]
    n = result["assignments"]
    rows = [[row, *(m[n]["mean"] for n in MEASURES), m[MEASURES[0]]["sd"], *(m[p]["mean"] for p in PAIRS)]
            for row, m in result["means"].items()]  # fmt: skip
    tuned = Counter(" ".join(f"{k} {v}" for k, v in one.items() if k != "value") for one in result["bm25"])
    parts = [
        f"\nThe paper's protocol: OHSUMED, {result['queries']} queries, {n} deals into four parts, "
        f"convention {result['convention']}; MAP counts definitely relevant documents alone (figures 2 and 6)\n",
        table(rows, ["learner", "MAP", *MEASURES[1:], "sd of MAP", *(f"wrong {p}" for p in PAIRS.values())]),
        "\nBM25 as tuned on the training queries of each deal's first trial: "
        + "; ".join(f"{setting} ({count} of {n})" for setting, count in tuned.most_common()),
    ]
    protocol.show("\n".join(parts))
