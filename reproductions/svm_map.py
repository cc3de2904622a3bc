"""SVM-MAP on TREC runs (Yue et al., SIGIR 2007): 50 trials with runs as features, and tables 7, 8, 10 and 11."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reproductions.plots import Figure
from reproductions.protocol import ResultStore, add_options, published, random_trials, rows_of
from reproductions.variations import row_order, with_ties
from truerank import (
    Judgements,
    MinMaxInQuery,
    PercentileInQuery,
    RankingData,
    ScoreBinning,
    join_runs,
    judge_run,
    read_qrels,
    read_run,
)
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.printing import note, plain, table
from truerank.core.threads import resolve_n_jobs
from truerank.data.grouping import offsets_of, places_of
from truerank.io.streams import files_of
from truerank.io.trec import Qrels, Run
from truerank.measures import parse_measure
from truerank.significance import wilcoxon, win_loss

# Manual runs of TREC-9's web track, by NIST's list of the track's runs ("Type: manual").
MANUAL_RUNS = (
    "acsys9mw0", "dcu00ca", "dcu00la", "dcu00lb", "dcu00lc", "iit00m", "ric9dpxL", "rmitNFGweb", "rmitNFLweb",
    "rmitWFGweb", "rmitWFLweb", "xvsmman",
)  # fmt: skip
TITLES = {
    "svm-map": "SVM-MAP",
    "best-base": "best run",
    "second-base": "2nd run",
    "third-base": "3rd run",
    "svm-roc": "SVM-ROC",
    "svm-acc": "SVM-acc",
    "svm-acc2": "SVM-acc2",
    "svm-acc3": "SVM-acc3",
    "svm-acc4": "SVM-acc4",
}
PUBLISHED: dict[str, Any] = published("svm_map")  # tables 7, 8, 10 and 11 of the paper
FULL_LIST = 1000
SHARES = (0.2, 0.1, 0.7)  # training, validation, test: 10, 5 and 35 of 50 topics
TOL = 1e-4
# C of the structural SVMs belongs to a mean over queries. The pointwise SVMs use C = c / (sum of the class weights).
METHODS = ("svm-map", "svm-roc", "svm-acc", "svm-acc2", "svm-acc3", "svm-acc4")
GRIDS = {name: [10.0 ** (k / 2) for k in range(low, low + 10)] for name, low in zip(METHODS, (-5, -5, -2, -5, -2, -2))}
# Methods that one piece of the run trains, in this order: the paper's question first.
GROUPS = (("svm-map", "svm-roc"), ("svm-acc2",), ("svm-acc",), ("svm-acc3",), ("svm-acc4",))


@dataclass(frozen=True)
class Task:
    """The runs of one collection as features.

    Attributes
    ----------
    data : RankingData
        X (n, runs) with NaN where a run did not retrieve a document.
    judgements : Judgements
        With the grades of judged documents that no run retrieved.
    base : dict of str to array (m,)
        AP of every run by topic, the best mean first.
    """

    data: RankingData
    judgements: Judgements
    base: dict[str, np.ndarray]


def configure(parser: Any) -> None:
    """Add the arguments of the experiment."""
    add_options(parser, "reproduce-output/svm-map", "trec9-web-runs/ or trec3-adhoc-runs/: runs/ and qrels*")
    parser.add_argument("--trials", type=int, default=50, metavar="N", help="trials (default: 50)")
    parser.add_argument(
        "--min-documents", type=int, default=FULL_LIST, metavar="N",
        help=f"take runs with at least N documents for every topic (default: {FULL_LIST}, full lists)",
    )  # fmt: skip
    parser.add_argument("--stand-in", action="store_true", help="TREC-3's runs in place of TREC-10's, without MAP")
    parser.add_argument(
        "--methods", nargs="+", choices=list(GRIDS), default=list(GRIDS), metavar="NAME",
        help="svm-map and svm-roc together, svm-acc, svm-acc2, svm-acc3, svm-acc4 (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--jobs", type=int, default=None, metavar="N", help="trials at a time (default: 1); results are the same"
    )


def run(args: Any) -> dict[str, Any]:
    """Run the trials that are not finished."""
    if args.trials < 1:
        raise InvalidInputError(f"--trials must be at least 1, got {args.trials}")
    task, rule = load_task(args)
    n_trials = min(args.trials, 3) if args.quick else args.trials
    stamp = {
        "protocol": 3, "seed": args.seed, "trials": n_trials, "runs": task.data.feature_names, "grids": GRIDS,
        "tol": TOL, "topics": task.data.query_ids.tolist(),
    }  # fmt: skip
    store = ResultStore(Path(args.out) / "trials.jsonl", stamp)
    if store.n_resumed:
        note(f"resuming: {store.n_resumed} finished pieces found in {args.out}")
    best = next(name for name in task.base if name in (task.data.feature_names or []))
    parts = {"all runs": Trials(task, None, n_trials, args), "without the best run": Trials(task, best, n_trials, args)}
    for methods in (group for group in GROUPS if set(group) <= set(args.methods)):
        for part in parts.values():
            part.run(methods, store)
    results = {title: part.results for title, part in parts.items()}
    report = summarise(task, results, rule, args)
    first = parts["all runs"]
    report["roles"] = role_counts(first.roles, task.data.n_queries)
    chosen = first.results[0]["svm-map"]["C"]
    report["figure 2"] = store.compute({"figure 2": chosen}, lambda: learned_functions(task, first.roles[0][0], chosen))
    return report


def figures(result: dict[str, Any]) -> list[Figure]:
    """Figure 2: the part of each of the best runs in the first trial's SVM-MAP, by the score of the run."""
    found = result["figure 2"]
    return [
        Figure(
            "figure-2-binning", "lines", "What SVM-MAP makes of a run's score", "score of the run", "added to w·x",
            found["x"], found["functions"],
            note="The three best runs as 51 binary features each; first trial's ten training topics, its chosen C",
        )
    ]  # fmt: skip


def learned_functions(task: Task, train: np.ndarray, C: float, n_points: int = 401) -> dict[str, Any]:
    """SVM-MAP's piecewise constant function of the score of each of the three best runs, from some training topics.

    `x` are `n_points` scores, evenly spaced over the range of the runs, and `functions` the values by run. A document
    that the run did not retrieve has 0.
    """
    from truerank import MeasureSVM

    X = task.data.X[rows_of(task.data, train)]
    binning = ScoreBinning(output="binned").fit(X)
    data = RankingData.from_grouped(binning.transform(task.data.X), task.data.y, task.data.offsets)
    weights = MeasureSVM("AP", C=C, rel=1, tol=TOL).fit(data.take_queries(train)).coef_
    starts = offsets_of([len(edges) + 1 for edges in binning.edges_])
    names = list(task.data.feature_names or [])
    columns = [names.index(name) for name in task.base if name in names][:3]
    x = np.linspace(float(np.nanmin(X[:, columns])), float(np.nanmax(X[:, columns])), n_points)
    functions = {}
    for k in columns:
        steps = np.cumsum(weights[starts[k] : starts[k + 1]])  # "was retrieved", then a weight for each threshold below
        functions[names[k]] = steps[np.searchsorted(binning.edges_[k], x, side="left")].tolist()
    return {"x": x.tolist(), "functions": functions}


def load_task(args: Any) -> tuple[Task, str]:
    """The selected runs as features, and the rule of their selection in words."""
    folder = Path(args.data, "trec3-adhoc-runs" if args.stand_in else "trec9-web-runs")
    paths = run_files(folder / "runs")
    qrels = read_qrels(next(folder.glob("qrels*")))
    names, runs, skipped = [], [], []
    for path in paths:
        name = path.name.split(".")[0]
        if name in MANUAL_RUNS:
            skipped.append(name)
            continue
        candidate = read_run(str(path))
        counts = dict(zip(candidate.query_ids.tolist(), np.diff(candidate.offsets).tolist()))
        if all(counts.get(topic, 0) >= args.min_documents for topic in qrels.query_ids.tolist()):
            names.append(name)
            runs.append(candidate)
    if args.quick:
        names, runs = names[::5], runs[::5]
    if len(runs) < 2:
        raise DataFileError(
            f"found {len(runs)} runs with {args.min_documents} documents for every topic; expected at least two. Lower "
            "--min-documents",
            str(folder),
        )
    data = join_runs(runs, qrels, names=names, missing="nan", dtype=np.float32)
    full = data.judgements()
    # The rows are sorted by descending document id, so their order breaks ties as trec_eval does.
    order = row_order(full.offsets)
    judgements = Judgements(
        full.grades[order], full.offsets, judged=None if full.judged is None else full.judged[order],
        query_ids=full.query_ids, missing_grades=full.missing_grades, missing_offsets=full.missing_offsets,
    )  # fmt: skip
    assert data.y is not None
    data = RankingData.from_grouped(
        data.X[order], data.y[order], data.offsets, data.query_ids, feature_names=data.feature_names
    )
    values = {name: base_precision(qrels, one, full.query_ids) for name, one in zip(names, runs)}
    base = dict(sorted(values.items(), key=lambda item: -float(item[1].mean())))
    rule = (
        f"runs with at least {args.min_documents} documents for every judged topic"
        + f", without {len(skipped)} manual runs: {len(runs)} runs"
        + (" (every fifth of them: --quick)" if args.quick else "")
    )
    return Task(data, judgements, base), rule


def run_files(folder: Path) -> list[Path]:
    """The run files of a folder, by name."""
    if paths := files_of(folder):
        return paths
    raise DataFileError("expected a folder of TREC runs", str(folder))


def base_precision(qrels: Qrels, one: Run, topics: np.ndarray) -> np.ndarray:
    """AP of one run by topic, in the order of `topics`."""
    judgements, scores = judge_run(qrels, one)
    values = average_precision().per_query(judgements, scores)
    by_topic = dict(zip(judgements.query_ids.tolist(), values.tolist()))
    return np.array([by_topic[topic] for topic in topics.tolist()])


def average_precision() -> Any:
    """AP at depth 1,000 as in trec_eval: R from the judgements, float32 scores, 0 for a missing topic."""
    return with_ties(parse_measure("AP(missing_topics='zero')@1000", convention="trec"))


class Trials:
    """The trials on one set of features.

    Attributes
    ----------
    roles : list of three arrays
        Training, validation and test topics of each trial.
    results : list of dict
        For each trial the test topics (`test`), and for each method its C, AP by test topic, gap and seconds.
    """

    def __init__(self, task: Task, left_out: str | None, n_trials: int, args: Any) -> None:
        names = list(task.data.feature_names or [])
        self._task, self._left_out, self._n_jobs = task, left_out, resolve_n_jobs(args.jobs)
        self._X = task.data.X if left_out is None else np.delete(task.data.X, names.index(left_out), axis=1)
        m = task.data.n_queries
        n_train, n_valid = round(SHARES[0] * m), round(SHARES[1] * m)
        if n_train < 1 or n_valid < 1 or m - n_train - n_valid < 1:
            raise InvalidInputError(f"{m} topics are too few for training, validation and test")
        sizes = (n_train, n_valid, m - n_train - n_valid)
        self.roles = random_trials(m, sizes, n_trials, random_state=args.seed)
        self._mapped: dict[str, Any] = {}
        self.results: list[dict[str, Any]] = [{"test": roles[2].tolist()} for roles in self.roles]

    def run(self, methods: Sequence[str], store: ResultStore) -> None:
        """Run some methods on every trial that is not finished, `n_jobs` trials at a time."""
        label = "all runs" if self._left_out is None else f"without {self._left_out}"
        keys = [{"left out": self._left_out, "trial": t, "methods": methods} for t in range(len(self.roles))]
        to_do = [number for number, key in enumerate(keys) if key not in store]
        started = time.monotonic()
        for method in methods:
            self.mapped(method)  # before threads need it
        with ThreadPoolExecutor(self._n_jobs) as pool:
            futures = {
                pool.submit(one_trial, self._task, self._X, self.mapped, self.roles[number], methods): number
                for number in to_do
            }
            try:
                for count, future in enumerate(as_completed(futures), start=1):
                    store.compute(keys[futures[future]], future.result)
                    pace = (time.monotonic() - started) / count
                    note(
                        f"{label}, {' and '.join(methods)}: {len(keys) - len(to_do) + count} of {len(keys)} trials, "
                        f"{pace:.0f} s each, {pace * (len(to_do) - count) / 60:.0f} min to go"
                    )
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        for number, key in enumerate(keys):
            self.results[number] |= store.compute(key, dict)

    def mapped(self, method: str) -> Any:
        """Binned percentiles (acc3) or scaled scores (acc4), the same for all trials; None for other methods."""
        if method not in ("svm-acc3", "svm-acc4"):
            return None
        if method not in self._mapped:
            step = PercentileInQuery() if method == "svm-acc3" else MinMaxInQuery()
            values = step.fit_transform(self._X, qid=self._task.data.query_index)
            self._mapped[method] = ScoreBinning(strategy="uniform", output="binned").fit_transform(values)
        return self._mapped[method]


def one_trial(
    task: Task,
    X: np.ndarray,
    mapped: Callable[[str], Any],
    roles: Sequence[np.ndarray],
    methods: Sequence[str],
) -> dict[str, Any]:
    """Train and test some methods on one division of the topics."""
    train, valid, test = roles
    binned = None
    result: dict[str, Any] = {}
    for method in methods:
        matrix = mapped(method)
        if matrix is None:
            if binned is None:
                binned = ScoreBinning(output="binned").fit(X[rows_of(task.data, train)]).transform(X)
            matrix = binned
        result[method] = train_and_test(task, matrix, method, train, valid, test)
    return result


def train_and_test(
    task: Task,
    matrix: Any,
    method: str,
    train: np.ndarray,
    valid: np.ndarray,
    test: np.ndarray,
) -> dict[str, Any]:
    """Train one method with C by validation; its AP by test topic, certificates and CPU seconds."""
    from truerank import MeasureSVM, PointwiseSVM

    measure, grid = average_precision(), GRIDS[method]
    fold = RankingData.from_grouped(matrix, task.data.y, task.data.offsets).take_queries(train)
    if method in ("svm-map", "svm-roc"):
        solver: Any = MeasureSVM("AP" if method == "svm-map" else "ROC", rel=1, tol=TOL)
    else:
        n_relevant = int((np.asarray(fold.y) >= 1).sum())
        n_other = fold.n_rows - n_relevant
        total = 2 * n_other if method == "svm-acc2" else fold.n_rows
        solver = PointwiseSVM(class_weight="ratio" if method == "svm-acc2" else None, rel=1, tol=TOL)
        grid, fold = [c / total for c in grid], without_copies(fold)
    valid_judgements, valid_rows = part_of(task, matrix, valid)
    judged = RankingData.from_grouped(valid_rows, valid_judgements.grades, valid_judgements.offsets)
    began = time.thread_time()
    solver.set_params(C=list(grid), validation_measure=measure)
    solver.fit(fold, eval_set=judged.with_judgements(valid_judgements))
    seconds = time.thread_time() - began
    test_judgements, test_rows = part_of(task, matrix, test)
    steps = solver.path_
    return {
        "C": solver.C_,
        "at": [step["C"] for step in steps].index(solver.C_),
        "AP": measure.per_query(test_judgements, solver.predict(test_rows)).tolist(),
        "gap": max(step["gap"] / max(step["objective"], min(1.0, step["C"])) for step in steps),
        "rounds": [step["n_iter"] for step in steps],
        "stopped": [step["C"] for step in steps if step["status"] != "CONVERGED"],
        "seconds": seconds,
    }


def without_copies(data: RankingData) -> RankingData:
    """Equal rows of one grade as one row, for a learner that ignores queries: as many times as it was there, it weighs.

    Rows that stand for as many rows are one query, whose weight is that number.
    """
    content = np.column_stack([data.X.codes, np.asarray(data.y) >= 1])
    keys = np.ascontiguousarray(content, dtype=np.uint8).view(np.dtype((np.void, content.shape[1]))).ravel()
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    order = np.argsort(counts, kind="stable")
    times, sizes = np.unique(counts, return_counts=True)
    rows = first[order]
    return RankingData.from_grouped(
        data.X[rows], np.asarray(data.y)[rows], offsets_of(sizes), query_weight=times.astype(np.float64)
    )


def part_of(task: Task, matrix: Any, topics: np.ndarray) -> tuple[Judgements, Any]:
    """Judgements and rows of some topics, with the relevant documents that no run retrieved."""
    full = task.judgements
    rows = rows_of(task.data, topics)
    assert full.missing_grades is not None
    assert full.missing_offsets is not None
    missing, missing_offsets = places_of(full.missing_offsets, topics)
    judgements = Judgements(
        full.grades[rows],
        offsets_of(np.diff(full.offsets)[topics]),
        judged=None if full.judged is None else full.judged[rows],
        missing_grades=full.missing_grades[missing],
        missing_offsets=missing_offsets,
    )
    return judgements, matrix[rows]


def summarise(task: Task, results: dict[str, list[dict[str, Any]]], rule: str, args: Any) -> dict[str, Any]:
    """MAP, wins, losses and tests over the topics."""
    report: dict[str, Any] = {"MAP": {}, "runs": rule, "topics": task.data.n_queries, "documents": task.data.n_rows}
    report["convention"] = "trec"
    report["measure"] = "AP at depth 1000, R from all judgements, each topic's mean over its trials"
    report |= {title: part_summary(task, trials) for title, trials in results.items()}
    report["MAP"] = report["all runs"]["MAP"]
    report["best runs"] = {name: float(values.mean()) for name, values in list(task.base.items())[:5]}
    report["seed"], report["trials"] = args.seed, len(results["all runs"])
    report["table"] = "trec-10" if args.stand_in else "trec-9"
    return plain(report)


def part_summary(task: Task, trials: list[dict[str, Any]]) -> dict[str, Any]:
    """MAP, wins and losses of SVM-MAP with p of Wilcoxon's test over the topics, certificates, and the floor."""
    m, base = task.data.n_queries, list(task.base.items())
    methods = [method for method in GRIDS if method in trials[0]]
    by_topic = {method: mean_by_topic(trials, method, m) for method in methods}
    compared = {
        **{label: base[k][1] for k, label in enumerate(("best-base", "second-base", "third-base")) if len(base) > k},
        **{method: values for method, values in by_topic.items() if method != "svm-map"},
    }
    tested = np.flatnonzero(~np.isnan(by_topic["svm-map"]))

    def against(a: np.ndarray, b: np.ndarray) -> dict[str, float]:
        difference = a[tested] - b[tested]
        same = len(tested) < 2 or not difference.any()
        return {
            "p": 1.0 if same else float(wilcoxon(a[tested], b[tested]).p), "difference": float(difference.mean()),
        }  # fmt: skip

    rows = {}
    for name, values in compared.items():
        counts = win_loss(by_topic["svm-map"][tested], values[tested])
        rows[name] = {"wins": counts.wins, "losses": counts.losses, **against(by_topic["svm-map"], values)}
    means = {"svm-map": by_topic["svm-map"], **compared}
    flat = average_precision().per_query(task.judgements, np.zeros(task.data.n_rows))
    trivial: dict[str, Any] = {
        name: {"MAP": float(values[tested].mean())}
        | {method: against(theirs, values) for method, theirs in (compared | by_topic).items()}
        for name, values in (("constant scores", flat), ("best single feature", base[0][1]))
    }
    return {
        "trivial": trivial,
        "MAP": {name: float(np.mean(values[tested])) for name, values in means.items()},
        "against": rows,
        "largest relative gap": max(trial[method]["gap"] for trial in trials for method in methods),
        "fits that stopped early": sum(len(trial[method]["stopped"]) for trial in trials for method in methods),
        "CPU seconds": {method: float(sum(trial[method]["seconds"] for trial in trials)) for method in methods},
        "chosen": {
            method: np.bincount([trial[method]["at"] for trial in trials], minlength=len(GRIDS[method])).tolist()
            for method in methods
        },
    }


def role_counts(roles: Sequence[tuple[np.ndarray, ...]], m: int) -> dict[str, list[int]]:
    """The least and the largest number of trials in which a topic trains, validates and tests."""
    counts = {}
    for number, name in enumerate(("training", "validation", "test")):
        by_topic = np.bincount(np.concatenate([trial[number] for trial in roles]), minlength=m)
        counts[name] = [int(by_topic.min()), int(by_topic.max())]
    return counts


def mean_by_topic(trials: Sequence[dict[str, Any]], method: str, m: int) -> np.ndarray:
    """Mean AP of each topic over the trials that test it; NaN without such a trial."""
    total, count = np.zeros(m), np.zeros(m)
    for trial in trials:
        total[trial["test"]] += trial[method]["AP"]
        count[trial["test"]] += 1
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def print_tables(report: dict[str, Any]) -> None:
    """Print the paper's tables with our figures and the published ones."""
    say = print
    say(f"{report['documents']} documents, {report['topics']} topics, {report['trials']} trials; {report['runs']}.")
    counts = "; ".join(f"{name} {low} to {high}" for name, (low, high) in report["roles"].items())
    say(f"Trials in which a topic has each role: {counts}.")
    say(f"Measure: {report['measure']}. Wilcoxon signed rank, two-tailed, over topics: ** p < .05.")
    for title in ("all runs", "without the best run"):
        part, said = report[title], PUBLISHED["map"][report["table"]][title]
        rows = [[TITLES[name], value, said.get(name)] for name, value in part["MAP"].items()]
        say(f"\nTrained on {title}\n\n{table(rows, ['', 'MAP', 'published'])}")
        say(
            f"\nLargest relative duality gap of any fit {part['largest relative gap']:.1e}; fits that stopped early: "
            f"{part['fits that stopped early']}; CPU seconds: {sum(part['CPU seconds'].values()):.0f}."
        )
