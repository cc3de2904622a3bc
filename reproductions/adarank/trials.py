"""The protocol of the AdaRank paper itself (Xu & Li 2007, sections 4.1, 4.2 and 4.5) on OHSUMED.

The queries are dealt into four parts; each trial tests on one and trains on the other three, without validation
queries. Only "definitely relevant" counts for AP (`AP(rel=2)`); nDCG has gain 2^g - 1 and discount 1/log2(1 + r).
AdaRank stops by its training measure; the others have no stopping rule in the paper and run at their defaults.

BM25 is tuned on the training queries of trial 1 (stream, k1 and b, from the collection's term statistics) and the same
in all trials; without these statistics it is that column of LETOR's which is best there.

Differences from the paper: (1) the columns are LETOR 3.0's, which replaced the features of its table 2; (2) the words'
statistics are LETOR's too; (3) the deal is repeated; (4) tied documents count with the average over their orders;
(5) Ranking SVM is our exact solver, with the hinge and the squared hinge, at its default C and with a C chosen by
cross-validation over the three training parts; (6) "once" takes each feature in one round at most.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from reproductions import protocol
from reproductions.adarank.ohsumed_terms import FILE, TermStatistics, read_terms, tune
from reproductions.protocol import Collection, Fold, ResultStore, rows_of
from reproductions.variations import with_ties
from truerank import RankingData
from truerank.core.printing import note, progress, table
from truerank.core.random_streams import stream
from truerank.data.splits import query_folds
from truerank.measures import parse_measure
from truerank.report.figures import Figure

CONVENTION = "ranklib"
MEASURES = ("AP(rel=2)", "nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10")
TRAINED = ("AP(rel=2)", "nDCG@5")
PAIRS = {"pairs(2, 0)": "d-n", "pairs(2, 1)": "d-p", "pairs(1, 0)": "p-n"}
# LETOR 3.0's columns of BM25: title, abstract, both (numbered from 0).
BM25_COLUMNS = {"title": 10, "abstract": 25, "title and abstract": 40}
SVM_GRID = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
UPDATES = ("paper", "adaboost")
# "once": each feature in one round at most; the paper leaves open whether a weak ranker may return.
ADARANK_ROWS = {
    f"AdaRank.{name} ({update}{'' if repeat else ', once'})": (update, E, repeat)
    for update, repeat in (("paper", True), ("paper", False), ("adaboost", True))
    for name, E in zip(("MAP", "NDCG"), TRAINED)
}
RANKING_SVMS = {
    "Ranking SVM, squared hinge": ("squared_hinge", False),
    "Ranking SVM, squared hinge, C by cross-validation": ("squared_hinge", True),
    "Ranking SVM, hinge": ("hinge", False),
    "Ranking SVM, hinge, C by cross-validation": ("hinge", True),
}
BASELINES = ("BM25", *RANKING_SVMS, "RankBoost")
LETOR_BM25 = "BM25, LETOR's column"
CONSTANT = "constant scores"
ROWS = (LETOR_BM25, CONSTANT, *BASELINES, *ADARANK_ROWS)
ROUNDS = 350  # figure 11's
CURVES = ("paper", "paper, once", "compound", "adaboost")
_STEP = 1000  # pairs in a class of figures 7 and 8


def four_trials(data: RankingData, assignment: int, *, seed: int = 0) -> tuple[list[Fold], list[np.ndarray]]:
    """The four trials of one deal of the queries, and its four parts; trials have no validation queries."""
    parts = query_folds(data.n_queries, 4, random_state=stream(seed, "four parts", assignment))
    none = np.empty(0, dtype=np.int64)
    folds = []
    for k, test in enumerate(parts):
        train = np.concatenate([part for j, part in enumerate(parts) if j != k])
        folds.append(Fold(f"assignment {assignment} trial {k + 1}", data, train, none, test))
    return folds, parts


class TunedBM25:
    """BM25 of OHSUMED's rows with the stream, k1 and b of a deal.

    Parameters
    ----------
    data : RankingData
    path : path or None
        The term statistics, read when they are first needed.
    """

    def __init__(self, data: RankingData, path: Path | None) -> None:
        self._data = data
        self._path = path if path is not None and path.is_file() else None
        if self._path is None:
            note("no term statistics of OHSUMED (meta.tar.xz): BM25 is LETOR's best column, its k1 and b are not tuned")

    @cached_property
    def _terms(self) -> TermStatistics:
        assert self._path is not None
        return read_terms(self._path, self._data)

    def choose(self, fold: Fold) -> dict[str, Any]:
        """What is best by AP of definitely relevant documents, ties averaged, on the fold's training queries."""
        if self._path is None:
            return {"column": best_bm25(fold.train)}
        return tune(self._terms, self._data, fold.train_queries, _measure("AP(rel=2)"))

    def test_scores(self, chosen: dict[str, Any], fold: Fold) -> np.ndarray:
        """Scores of the fold's test rows."""
        if self._path is None:
            return np.ascontiguousarray(fold.test.X[:, chosen["column"]])
        scores = self._terms.bm25(chosen["stream"], chosen["k1"], chosen["b"])
        return scores[rows_of(self._data, fold.test_queries)]


def run_trials(
    collection: Collection, store: ResultStore, *, assignments: int, seed: int = 0, root: str | None = None
) -> dict[str, Any]:
    """Every learner over all assignments, and what figures 2 and 6 to 11 show.

    Parameters
    ----------
    collection : Collection
    store : ResultStore
    assignments : int
        Deals of the queries into four parts.
    seed : int
    root : str, optional
        The folder of the collections, below which the term statistics lie.

    Returns
    -------
    dict
        `means` by row and measure (mean over trials and assignments) with `wrong_pairs`, `tests` of AdaRank against
        the baselines (each query's mean over the assignments), `assignments` with p < .05 of each comparison, `bm25`
        (what was chosen in each deal), `training` (figures 9 and 10), `groups` (figures 7 and 8) and `curve` (figure
        11), all of trial 1 of the first assignment but the training figures, which are of all four trials.
    """
    data = collection.data
    kept: dict[str, dict[str, list[np.ndarray]]] = {row: {m: [] for m in (*MEASURES, *PAIRS)} for row in ROWS}
    training: dict[str, dict[str, list[float]]] = {row: {m: [] for m in TRAINED} for row in ADARANK_ROWS}
    features: dict[str, list[int]] = {row: [] for row in ADARANK_ROWS}
    bm25 = TunedBM25(data, None if root is None else Path(root, FILE))
    chosen = []
    for assignment in progress(range(assignments), f"{collection.name}: deals into four parts"):
        folds, parts = four_trials(data, assignment, seed=seed)
        column = store.compute({"bm25 column": assignment}, partial(best_bm25, folds[0].train))
        chosen.append(store.compute({"bm25": assignment}, partial(bm25.choose, folds[0])))
        for row in ROWS:
            pieces = [_trial(row, k, folds[k], parts, (column, bm25, chosen[-1]), store) for k in range(4)]
            for name in (*MEASURES, *PAIRS):
                kept[row][name].append(protocol.pool(folds, [p["test"][name] for p in pieces]))
            if row in ADARANK_ROWS:
                features[row] += [p["features"] for p in pieces]
                for name in TRAINED:
                    training[row][name] += [p["train"][name] for p in pieces]
    first = four_trials(data, 0, seed=seed)[0][0]
    return {
        "convention": f"{CONVENTION}, ties averaged",
        "queries": data.n_queries,
        "assignments": assignments,
        "means": {
            row: {m: protocol.spread([float(np.nanmean(v)) for v in values[m]]) for m in (*MEASURES, *PAIRS)}
            for row, values in kept.items()
        },
        "bm25": chosen,
        "tests": _tests(kept),
        "baselines": list(BASELINES),
        "features": {
            row: {"mean": float(np.mean(counts)), "one": counts.count(1), "trials": len(counts)}
            for row, counts in features.items()
        },
        "training": _training(training),
        "groups": store.compute({"groups": 0}, lambda: _groups(first)),
        "curve": store.compute({"curves": ROUNDS}, lambda: _curve(first)),
    }


def best_bm25(data: RankingData) -> int:
    """The number of the BM25 column that ranks `data` best by AP of definitely relevant documents, ties averaged."""
    ap, judgements = _measure("AP(rel=2)"), data.judgements()
    columns = list(BM25_COLUMNS.values())
    return max(columns, key=lambda j: ap.mean(judgements, np.ascontiguousarray(data.X[:, j])))


def _measure(name: str) -> Any:
    return with_ties(parse_measure(name, convention=CONVENTION).tie_averaged())


def _trial(
    row: str,
    k: int,
    fold: Fold,
    parts: Sequence[np.ndarray],
    bm25: tuple[int, TunedBM25, dict[str, Any]],
    store: ResultStore,
) -> dict[str, Any]:
    def work() -> dict[str, Any]:
        scorer = _fit(row, k, fold, parts, *bm25)
        judgements, scores = fold.test.judgements(), scorer(fold.test)
        names = (*MEASURES, *PAIRS)
        result: dict[str, Any] = {
            "test": {n: _measure(n).per_query(judgements, scores).tolist() for n in names},
            "train": {},
        }
        if row in ADARANK_ROWS:
            own, on_own = fold.train.judgements(), scorer(fold.train)
            result["train"] = {n: float(_measure(n).mean(own, on_own)) for n in TRAINED}
            result["features"] = len(scorer.keywords["ranker"].feature_weights())
        return result

    return store.compute({"trial": fold.name, "row": row, "form": 2}, work)


def _fit(
    row: str, k: int, fold: Fold, parts: Sequence[np.ndarray], column: int, bm25: TunedBM25, chosen: dict[str, Any]
) -> Any:
    """A function from data to scores, trained on the three training parts; BM25's knows the test rows alone."""
    from truerank import RankBoost, RankSVM

    if row == LETOR_BM25:
        return lambda data: np.ascontiguousarray(data.X[:, column])
    if row == CONSTANT:
        return lambda data: np.zeros(data.n_rows)
    if row == "BM25":
        return lambda data: bm25.test_scores(chosen, fold)
    if row == "RankBoost":
        ranker: Any = RankBoost(convention=CONVENTION)
    elif row in RANKING_SVMS:
        loss, tuned = RANKING_SVMS[row]
        ranker = RankSVM(loss=loss, **({"C": _cross_validated_c(k, fold, parts, loss)} if tuned else {}))
    else:
        update, measure, repeat = ADARANK_ROWS[row]
        ranker = _adarank(update, measure, repeat=repeat)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an iteration limit is judged by its ranking like any other end
        ranker.fit(fold.train)
    return partial(_scores, ranker=ranker)


def _scores(data: RankingData, ranker: Any) -> np.ndarray:
    return protocol.grouped_scores(ranker, data)


def _adarank(update: str, measure: str, **settings: Any) -> Any:
    from truerank import AdaRank

    return AdaRank(measure, convention=CONVENTION, update=update, **settings)


def _cross_validated_c(k: int, fold: Fold, parts: Sequence[np.ndarray], loss: str) -> float:
    """C by the mean AP of the definitely relevant over the three training parts, each held out in turn."""
    from truerank import RankSVM

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


def _tests(kept: dict[str, dict[str, list[np.ndarray]]]) -> dict[str, dict[str, Any]]:
    """AdaRank against every baseline on the measure that it was trained on, over all deals and within each."""
    result = {}
    compared = [(row, row, measure) for row, (_, measure, _) in ADARANK_ROWS.items()]
    compared += [("best single feature", LETOR_BM25, measure) for measure in TRAINED]
    compared += [(CONSTANT, CONSTANT, measure) for measure in TRAINED]
    for title, row, measure in compared:
        for baseline in (LETOR_BM25, *BASELINES):
            if row == baseline:
                continue
            ours, theirs = kept[row][measure], kept[baseline][measure]
            found: dict[str, Any] = protocol.compare_paired(np.mean(ours, axis=0), np.mean(theirs, axis=0))
            single = [protocol.compare_paired(a, b) for a, b in zip(ours, theirs, strict=True)]
            found["above"] = sum(s["difference"] > 0 for s in single)
            found["significant"] = sum(s["difference"] > 0 and s["p_paired_t"] < 0.05 for s in single)
            result[f"{title} - {baseline}, {measure}"] = found
    return result


def _training(training: dict[str, dict[str, list[float]]]) -> dict[str, Any]:
    """Figures 9 and 10: the training measure of models trained on either, and in how many trials each is ahead."""
    result: dict[str, Any] = {}
    for update in UPDATES:
        by_map, by_ndcg = (training[f"AdaRank.{name} ({update})"] for name in ("MAP", "NDCG"))
        for measure in TRAINED:
            a, b = np.array(by_map[measure]), np.array(by_ndcg[measure])
            own = a > b if measure == TRAINED[0] else b > a
            result[f"{measure} ({update})"] = {
                "trained on MAP": float(a.mean()),
                "trained on nDCG@5": float(b.mean()),
                "own measure ahead": int(own.sum()),
                "trials": len(a),
                "first four": {"AdaRank.MAP": a[:4].tolist(), "AdaRank.NDCG": b[:4].tolist()},
            }
    return result


def _groups(fold: Fold) -> dict[str, Any]:
    """Figures 7 and 8: the training queries of trial 1 by their number of pairs, with the MAP of two learners."""
    from truerank import RankBoost

    data = fold.train
    group = pairs_by_query(data) // _STEP
    rankers = {"RankBoost": RankBoost(convention=CONVENTION), "AdaRank.MAP": _adarank("adaboost", TRAINED[0])}
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
    for update in ("paper", "compound", "adaboost"):
        ranker = _adarank(update, TRAINED[0], n_estimators=ROUNDS, patience=ROUNDS).fit(fold.train)
        curves[update] = ranker.history_["train"].tolist()
    once = _adarank("paper", TRAINED[0], n_estimators=ROUNDS, patience=ROUNDS, repeat=False).fit(fold.train)
    curves["paper, once"] = once.history_["train"].tolist()
    return curves


def trial_figures(result: dict[str, Any]) -> list[Figure]:
    """Figures 2 and 6 to 11 of the paper, under its own protocol."""
    where = (f"OHSUMED, {result['queries']} queries, {result['assignments']} deals into four parts, ties averaged, "
             "AP of definitely relevant documents.")  # fmt: skip
    shown = [*BASELINES, "AdaRank.MAP (adaboost)", "AdaRank.NDCG (adaboost)"]
    means = result["means"]
    groups, curve = result["groups"], result["curve"]
    first = f"{curve['trial']}, training queries."
    figures = [
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
        figures.append(
            Figure(f"trials-figure-{number:02d}", "bars", f"{measure} on the training queries", "trial",
                   f"{measure}, training", ["1", "2", "3", "4"], series, ylim=(min(values) - 0.02, max(values) + 0.01),
                   note=f'{where} First deal, update="adaboost". The axis does not start at 0.')
        )  # fmt: skip
    rounds = max(len(curve[u]) for u in CURVES)
    lines = {u: curve[u] + [math.nan] * (rounds - len(curve[u])) for u in CURVES}
    figures.append(
        Figure("trials-figure-11", "lines", "AdaRank's learning curve", "round", "MAP, training",
               list(range(1, rounds + 1)), lines, note=f"{first} The axis does not start at 0.")
    )  # fmt: skip
    return figures


def print_trials(result: dict[str, Any]) -> None:
    """The tables of the trials on stdout."""
    means = result["means"]
    rows = [[row, *(m[n]["mean"] for n in MEASURES), m[MEASURES[0]]["sd"], *(m[p]["mean"] for p in PAIRS)]
            for row, m in means.items()]  # fmt: skip
    training = [[name, f["trained on MAP"], f["trained on nDCG@5"], f"{f['own measure ahead']} of {f['trials']}"]
                for name, f in result["training"].items()]  # fmt: skip
    tests = [[name, t["difference"], t["wins"], t["losses"], t["p_paired_t"], t["p_wilcoxon"], t["above"],
              t["significant"]] for name, t in result["tests"].items()]  # fmt: skip
    groups, curve = result["groups"], result["curve"]
    by_pairs = [[g, n, *(groups["MAP"][name][i] for name in groups["MAP"])]
                for i, (g, n) in enumerate(zip(groups["groups"], groups["queries"]))]  # fmt: skip
    at = (1, 2, 5, 10, 50, 100, 200, ROUNDS)
    learning = [[u, *(curve[u][min(t, len(curve[u])) - 1] for t in at), max(curve[u]), 1 + int(np.argmax(curve[u]))]
                for u in CURVES]  # fmt: skip
    n = result["assignments"]
    tuned = Counter(" ".join(f"{k} {v}" for k, v in one.items() if k != "value") for one in result["bm25"])
    parts = [
        f"\nThe paper's protocol: OHSUMED, {result['queries']} queries, {n} deals into four parts, "
        f"convention {result['convention']}; MAP counts definitely relevant documents alone (figures 2 and 6)\n",
        table(rows, ["learner", "MAP", *MEASURES[1:], "sd of MAP", *(f"wrong {p}" for p in PAIRS.values())]),
        "\nBM25 as tuned on the training queries of each deal's first trial: "
        + "; ".join(f"{setting} ({count} of {n})" for setting, count in tuned.most_common()),
        "\nAdaRank against each baseline, each query's mean over the deals; deals in which it is above, and p < .05\n",
        table(tests, ["comparison", "difference", "won", "lost", "p (t)", "p (Wilcoxon)", f"above of {n}", "p < .05"]),
        "\nTraining measure by what was trained (figures 9 and 10), mean over all trials\n",
        table(training, ["measure", "trained on MAP", "trained on nDCG@5", "own measure ahead"]),
        "\nTraining queries of trial 1 by their number of pairs (figures 7 and 8)\n",
        table(by_pairs, ["pairs", "queries", *(f"MAP, {name}" for name in groups["MAP"])]),
        "\nTraining MAP by round, trial 1 (figure 11)\n",
        table(learning, ["update", *map(str, at), "best", "at round"]),
    ]  # fmt: skip
    protocol.show("\n".join(parts))
