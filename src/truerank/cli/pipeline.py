"""`truerank text pipeline`: train, test and calibrate a ranker from documents, queries and judgements.

Index documents, compute features of the candidates of each judged query, train and test a ranker over folds of
queries, and compare it by paired tests with BM25 and with the best base function, both tuned on the training folds.
The saved model is trained on all queries; `truerank predict MODEL --index DIR/index --queries Q` uses it.
"""

from __future__ import annotations

import csv
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import truerank
from truerank.cli import common, options, ranker_options
from truerank.cli.parser import OutputFolder, option, positive
from truerank.core.files import atomic_write, one_step

if TYPE_CHECKING:
    import numpy as np

    from truerank.io.documents import Document
    from truerank.io.trec import Qrels

# Settings of rankers over text features, where the estimator's own defaults are not meant for them; several are tried
# on queries held out of each training part. `--set` comes on top.
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "adarank": [{"measure": "AP"}],
    "measure-svm": [{"measure": "AP", "tol": 1e-2, "C": c} for c in (0.1, 1.0)],
    "oblivious-boosting": [{"leaves": "fuzzy", "start": "linear", "depth": 4}],
}
BINNED = ("measure-svm",)
"""Rankers that are trained on binned scores, as in the paper on SVM-MAP."""

OUTPUTS = ("index", "model.json", "probabilities.csv", "summary.json", "summary.txt")

LEVEL = 0.05
"""Of the verdict."""

BASE = ("bm25", "cosine", "dirichlet", "jelinek-mercer", "tfidf")


class Arguments(
    options.Learner, options.Judged, options.QueryField, options.Threads, options.Replace, options.Bad, options.Json
):
    documents: str = option("documents, as for `truerank text index`", "D")
    queries: str = option("queries, as for `truerank text search`", "Q")
    qrels: str = option("judgements: TREC qrels, Cranfield, CISI and what `truerank convert` reads", "QRELS")
    out: OutputFolder = option("folder of index, model, probabilities, summary", "DIR")
    families: list[str] = option(
        "families of features: all, papers (those of the two papers), or names", "FAMILY …", default=["all"]
    )
    depth: int = option("candidates of each function", "N", type=positive, default=1000)
    cv: int = option("folds of queries, 3 or more", "K", default=5)


def run(args: Arguments) -> int:
    """Run and report every step, and print the summary."""
    import numpy as np

    from truerank.data.splits import query_folds

    names_of_families = families(args.families)
    candidates = _candidates(args)
    if args.cv < 3:
        raise common.UsageError(
            f"--cv must be at least 3, got {args.cv}: one fold tests, one chooses settings, the others train"
        )
    out = common.made_folder(args, args.out, OUTPUTS)
    qrels = common.read_qrels(args)
    queries, n_asked = _answered_queries(args, qrels)
    index = truerank.build_index(truerank.read_documents(args.documents, bad=args.bad), out / "index")
    common.note(f"{index.n_documents} documents indexed, {len(queries)} of {n_asked} queries have relevant ones")
    # Bins of a score hold what its scale within the query would add.
    scaled = args.ranker not in BINNED
    features = truerank.TextFeatures(names_of_families, depth=args.depth, scaled=scaled, n_jobs=args.threads).fit(index)
    data: Any = features.transform(queries, index, qrels)
    known = set(data.query_ids.tolist())
    nothing = [query.id for query in queries if query.id not in known]
    queries = [query for query in queries if query.id in known]
    common.note(f"{data.n_rows} candidates of {data.n_queries} queries, {data.n_features} features")
    if nothing:
        common.note(_about_nothing(nothing))
    parts = query_folds(data.n_queries, args.cv, random_state=args.seed)
    values, scores, chosen, folds = _cross_validated(args, candidates, data, parts)
    baselines, names, bm25 = _baselines(index, queries, qrels, parts, args)
    values, *others = (np.append(each, np.zeros(len(nothing))) for each in (values, *baselines.values()))
    baselines = dict(zip(baselines, others))
    model = _model(args, features, chosen)
    model.fit_rows(data)
    model.features_ = features
    levelled = _on_one_level(model.predict(data), scores, data, folds)
    probabilities = _calibrate(args, model, scores, levelled, data, folds)
    summary: dict[str, Any] = {
        "ranker": args.ranker,
        **_figures(values, baselines, [*data.query_ids.tolist(), *nothing]),
        "convention": "trec",
        "verdict": _verdict(values, baselines["bm25"], bm25, args),
        "documents": index.n_documents,
        "queries": len(values),
        "queries_without_candidates": nothing,
        "folds": args.cv,
        "candidates": data.n_rows,
        "features": {"columns": data.n_features, "families": names_of_families},
        "settings": chosen,
        "baselines": names,
        "relevant_not_candidates": int((data.missing_grades > 0).sum()),
        "probabilities": probabilities,
        "model": str(out / "model.json"),
    }
    _write(out, summary, data, levelled, model, parts, args)
    return 0


def _figures(values: np.ndarray, baselines: dict[str, np.ndarray], queries: list[str]) -> dict[str, Any]:
    """Return means, comparisons and values by query of the ranker's and the baselines' average precision."""
    all_of = {"ranker": values} | baselines
    return {
        "MAP": {name: float(each.mean()) for name, each in all_of.items()},
        "comparison": [
            {"b": name, "MAP": float(each.mean())} | common.compared(values, each) for name, each in baselines.items()
        ],
        "per_query": {
            query: {name: float(each[i]) for name, each in all_of.items()} for i, query in enumerate(queries)
        },
    }


def families(named: Sequence[str]) -> list[str]:
    """Return the named families of features once each, with "all" and "papers" expanded."""
    from truerank.text.features import FAMILIES, PAPERS

    sets = {"all": list(FAMILIES), "papers": list(PAPERS)} | {name: [name] for name in FAMILIES}
    for given in named:
        if given not in sets:
            raise common.UsageError(f"unknown family {given!r}; known are: {', '.join(sets)}")
    return list(dict.fromkeys(name for given in named for name in sets[given]))


def _candidates(args: Arguments) -> list[dict[str, Any]]:
    """Return the settings to try, each once; a setting that the ranker lacks is an error."""
    settings = ranker_options.parse_settings(args.set)
    candidates: list[dict[str, Any]] = []
    for own in SETTINGS.get(args.ranker, [{}]):
        if own | settings not in candidates:
            candidates.append(own | settings)
    for each in candidates:
        ranker_options.make_ranker(args.ranker, each, args.seed)
    return candidates


def _answered_queries(args: Arguments, qrels: Qrels) -> tuple[list[Document], int]:
    """Return the queries that have relevant documents, and the number of all queries."""
    from truerank.data.grouping import query_of_rows

    answered = set(qrels.query_ids[query_of_rows(qrels.offsets)[qrels.grades > 0]].tolist())
    asked = truerank.read_queries(args.queries, field=args.query_field)
    queries = [query for query in asked if query.id in answered]
    if len(queries) < args.cv:
        raise common.InvalidInputError(
            f"{args.queries}, {args.qrels}: {len(queries)} queries have relevant documents; {args.cv} are needed "
            "for as many folds (--cv, 3 at least); do the ids of the two files agree?"
        )
    return queries, len(asked)


def _about_nothing(names: Sequence[str]) -> str:
    what = f"{len(names)} queries with relevant documents find no document and count 0 for every ranking"
    return f"{what}: {common.few(names)}"


def _verdict(values: np.ndarray, baseline: np.ndarray, bm25: object, args: Arguments) -> dict[str, Any]:
    """Compare the ranker with tuned BM25 on held-out queries, and name the command for BM25 unless the ranker wins."""
    pair = truerank.compare_values({"ranker": values, "bm25": baseline}, baseline="bm25", measure="AP").pairs[0]
    better = "no difference shown" if pair.p >= LEVEL else "better" if pair.difference > 0 else "worse"
    function = "bm25" + repr(bm25)[len("BM25") :].replace("'", "")
    index, queries, function = map(shlex.quote, (str(Path(args.out) / "index"), args.queries, function))
    serve = f"truerank text search {index} {queries} --function {function}"
    if args.query_field:
        serve += f" --query-field {shlex.quote(args.query_field)}"
    return {
        "outcome": better, "against": "bm25", "measure": "AP", "difference": pair.difference, "low": pair.low,
        "high": pair.high, "p": pair.p, "test": "randomisation", "queries": pair.queries,
        "serve": None if better == "better" else f"{serve} -o bm25.run",
    }  # fmt: skip


class _Fold(NamedTuple):
    """Numbers of the test and the training queries, the ranker's scores of the training rows, and its settings."""

    test: Any
    train: Any
    trained: Any
    settings: dict[str, Any]


def _model(args: Arguments, features: Any, settings: dict[str, Any]) -> Any:
    """Return the chosen ranker, unfitted, over features of text."""
    ranker = ranker_options.make_ranker(args.ranker, settings, args.seed)
    binning = truerank.ScoreBinning(output="binned") if args.ranker in BINNED else None
    return truerank.TextRanker(ranker, features, binning)


def _cross_validated(
    args: Arguments, candidates: list[dict[str, Any]], data: Any, parts: list[np.ndarray]
) -> tuple[Any, Any, dict[str, Any], list[_Fold]]:
    """Return AP by query and scores by row of models that did not see the query, settings for all queries, and folds.
    The settings of a fold have the highest MAP on one of its training parts, after training on the other parts. The
    settings for all queries have the highest MAP over all parts held out in this way.
    """
    import numpy as np

    from truerank.measures import parse_measure

    measure, folds = parse_measure("AP", convention="trec"), []
    scores, totals = np.zeros(data.n_rows), np.zeros(len(candidates))
    for fold, test in enumerate(common.progress(parts, "folds")):
        train = [parts[(fold + shift) % len(parts)] for shift in range(1, len(parts))]
        best = 0
        if len(candidates) > 1:
            inner, held = np.sort(np.concatenate(train[:-1])), train[-1]
            judgements = data.take_queries(held).judgements()
            scored = [_scored(args, data, inner, held, settings)[0] for settings in candidates]
            means = [float(measure.mean(judgements, each)) for each in scored]
            best = int(np.argmax(means))
            totals += means
        rest = np.sort(np.concatenate(train))
        scores[_rows(data, test)], trained = _scored(args, data, rest, test, candidates[best])
        folds.append(_Fold(test, rest, trained, candidates[best]))
    return measure.per_query(data.judgements(), scores), scores, candidates[int(totals.argmax())], folds


def _scored(args: Arguments, data: Any, train: Any, test: Any, settings: dict[str, Any]) -> tuple[Any, Any]:
    """Return scores of test rows and of training rows by a ranker of the training queries."""
    model = _model(args, None, settings).fit_rows(data.take_queries(train))
    return model.predict(data.take_queries(test)), model.predict(data.take_queries(train))


def _rows(data: truerank.RankingData, queries: np.ndarray) -> np.ndarray:
    from truerank.data.grouping import places_of

    return places_of(data.offsets, queries)[0]


def _baselines(index: Any, queries: Any, qrels: Any, parts: Any, args: Arguments) -> tuple[Any, Any, Any]:
    """Return AP by query of tuned BM25 and of the best base function, the choices of folds, and BM25 for all
    queries."""
    import numpy as np

    from truerank.text.tuning import chosen_by_fold, grid_of, values_of_functions

    functions = {name: grid_of(index, name) for name in BASE}
    values = {
        name: values_of_functions(index, queries, qrels, grid, depth=args.depth, n_jobs=args.threads)
        for name, grid in functions.items()
    }
    bm25, chosen = chosen_by_fold(values["bm25"], parts)
    everything = [function for grid in functions.values() for function in grid]
    best, chosen_of_all = chosen_by_fold(np.concatenate([values[name] for name in BASE]), parts)
    names = {
        "bm25": [repr(functions["bm25"][number]) for number in chosen],
        "best-base": [repr(everything[number]) for number in chosen_of_all],
    }
    return {"bm25": bm25, "best-base": best}, names, functions["bm25"][int(values["bm25"].mean(axis=1).argmax())]


def _on_one_level(
    whole: np.ndarray, scores: np.ndarray, data: truerank.RankingData, folds: Sequence[_Fold]
) -> np.ndarray:
    """Return held-out scores of each fold's ranker, shifted to the level of `whole`, the final ranker's scores."""
    from truerank.calibration.ranker import on_one_level

    levelled = scores.copy()
    for fold in folds:
        rows = _rows(data, fold.test)
        levelled[rows] = on_one_level(scores[rows], fold.trained, whole[_rows(data, fold.train)])
    return levelled


def _calibrate(
    args: Arguments, model: Any, scores: Any, levelled: Any, data: Any, folds: Sequence[_Fold]
) -> dict[str, Any]:
    """Fit the model's calibrator to held-out scores; return cross-fitted log losses. The calibrator of a fold is
    fitted to scores of rankers that saw neither the fold nor the scored rows.
    """
    import numpy as np

    relevant = (data.y > 0).astype(np.int64)

    def fitted(scores: np.ndarray, rows: np.ndarray) -> Any:
        query = data.query_index[rows]  # the documents of a query depend on each other
        return truerank.PooledCalibrator(random_state=0).fit(scores[rows], relevant[rows], groups=query)

    log_loss = base = 0.0
    for fold in common.progress(folds, "folds of calibration"):
        whole, held = np.zeros(data.n_rows), np.zeros(data.n_rows)
        rows, others = _rows(data, fold.test), _rows(data, fold.train)
        whole[others] = fold.trained
        inner = []
        for part in (other.test for other in folds if other is not fold):
            rest = np.setdiff1d(fold.train, part)
            held[_rows(data, part)], trained = _scored(args, data, rest, part, fold.settings)
            inner.append(_Fold(part, rest, trained, fold.settings))
        held = _on_one_level(whole, held, data, inner)
        p = fitted(held, others).predict_proba(scores[rows])
        chosen = np.clip(p[np.arange(len(rows)), relevant[rows]], 1e-15, 1.0)
        log_loss -= float(np.log(chosen).sum())
        share = relevant[others].mean()
        base -= float(np.log(np.where(relevant[rows] == 1, share, 1 - share)).sum())
    if log_loss <= base:
        model.calibrator_ = fitted(levelled, np.arange(data.n_rows))
    return {
        "log_loss": log_loss / data.n_rows, "log_loss_of_share": base / data.n_rows, "calibrated": log_loss <= base,
    }  # fmt: skip


def _write(out: Path, summary: dict[str, Any], data: Any, scores: Any, model: Any, parts: Any, args: Any) -> None:
    import numpy as np

    calibrated = summary["probabilities"]["calibrated"]
    texts = [f"{p:.6g}" for p in model.predict_proba(scores)[:, 1]] if calibrated else [""] * data.n_rows
    fold = np.zeros(data.n_queries, dtype=np.int64)
    for number, part in enumerate(parts, 1):
        fold[part] = number
    text = _text(summary)
    with one_step():
        truerank.save_model(model, out / "model.json")
        with atomic_write(out / "probabilities.csv") as stream:
            rows = csv.writer(stream, lineterminator="\n")
            rows.writerow(["query", "document", "fold", "score", "probability"])
            for i, name in enumerate(data.query_ids.tolist()):
                for row in range(int(data.offsets[i]), int(data.offsets[i + 1])):
                    rows.writerow([name, data.doc_ids[row], fold[i], float(scores[row]), texts[row]])
        common.write_summary(out, summary, text)
    common.show(args, summary, text.removesuffix("\n"))


def _text(summary: dict[str, Any]) -> str:
    rows = [["ranker: " + summary["ranker"], summary["MAP"]["ranker"], None, None, None, None, None]]
    for each in summary["comparison"]:
        p = each["p"]
        rows.append(
            [each["b"], each["MAP"], each["wins"], each["losses"], each["ties"], p["paired t"], p["randomisation"]]
        )
    header = ["", "MAP", "wins", "losses", "ties", "p (paired t)", "p (randomisation)"]
    cells = [[*row[:5], *(None if p is None else f"{p:.2g}" for p in row[5:])] for row in rows]
    probabilities, verdict = summary["probabilities"], summary["verdict"]
    outcome = verdict["outcome"]
    about = f"the ranker is {outcome} than BM25" if outcome in ("better", "worse") else f"{outcome} against BM25"
    lines = [
        f"verdict: {about}: {verdict['difference']:+.4f} MAP (95 % interval {verdict['low']:+.4f} to "
        f"{verdict['high']:+.4f}), p = {verdict['p']:.2g} (paired randomisation test), "
        f"{common.counted(verdict['queries'], 'held-out query')}, BM25 tuned on the training folds"
    ]
    if verdict["serve"] is not None:
        lines.append(f"to serve BM25 (set by all queries): {verdict['serve']}")
    if summary["queries_without_candidates"]:
        lines.append(_about_nothing(summary["queries_without_candidates"]))
    if not probabilities["calibrated"]:
        lines.append(
            "the probabilities are worse than one constant: the model was saved without a calibrator, and "
            "probabilities.csv has none. Rank by the scores"
        )
    return (
        f"{summary['documents']} documents, {summary['queries']} queries with relevant documents, {summary['folds']} "
        f"folds of queries (convention trec); {summary['candidates']} candidates, "
        f"{summary['features']['columns']} features\n\n{common.table(cells, header)}\n\n"
        "wins, losses: queries on which the ranker is better, worse; bm25, best-base: tuned on the training folds\n"
        f"probabilities: log loss {probabilities['log_loss']:.5f}, of the share of relevant documents "
        f"{probabilities['log_loss_of_share']:.5f} (held-out queries)\n"
        + "\n".join(lines)
        + f"\nmodel {summary['model']}\n"
    )
