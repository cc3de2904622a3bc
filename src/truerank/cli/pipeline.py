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
from typing import TYPE_CHECKING, Any

import truerank
from truerank.cli import common, options, ranker_options
from truerank.cli.parser import OutputFolder, option, positive
from truerank.core.files import atomic_write, one_step

if TYPE_CHECKING:
    from truerank.inspection.text_evidence import TextEvidence
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
    from truerank.inspection.text_evidence import cross_validate_text

    names_of_families = families(args.families)
    candidates = _candidates(args)
    if args.cv < 3:
        raise common.UsageError(
            f"--cv must be at least 3, got {args.cv}: one fold tests, one chooses settings, the others train"
        )
    out = common.made_folder(args, args.out, OUTPUTS)
    qrels = common.qrels_of(args)
    queries, n_asked = _answered_queries(args, qrels)
    index = truerank.build_index(truerank.read_documents(args.documents, bad=args.bad), out / "index")
    common.note(f"indexed {index.n_documents} documents, with relevant ones for {len(queries)} of {n_asked} queries")
    # Bins of a score hold what its scale within the query would add.
    binned = ranker_options.ranker_named(args.ranker)[0] in BINNED
    features = truerank.TextFeatures(names_of_families, depth=args.depth, scaled=not binned, n_jobs=args.threads)
    features.fit(index)
    data: Any = features.transform(queries, index, qrels)
    known = set(data.query_ids.tolist())
    nothing = [query.id for query in queries if query.id not in known]
    common.note(f"{data.n_queries} queries have {data.n_rows} candidates with {data.n_features} features")
    if nothing:
        common.note(_about_nothing(nothing))
    binning = truerank.ScoreBinning(output="binned") if binned else None
    rankers = [ranker_options.make_ranker(args.ranker, own, args.seed) for own in candidates]
    found = cross_validate_text(
        [truerank.TextRanker(ranker, features, binning) for ranker in rankers], data, index, queries, qrels,
        cv=args.cv, depth=args.depth, n_jobs=args.threads, random_state=args.seed,
    )  # fmt: skip
    figures = found._figures()
    summary: dict[str, Any] = {
        "ranker": args.ranker,
        **figures,
        "verdict": figures["verdict"] | {"serve": _serve(found, args)},
        "documents": index.n_documents,
        "queries": len(figures["per_query"]),
        "queries_without_candidates": nothing,
        "folds": args.cv,
        "candidates": data.n_rows,
        "features": {"columns": data.n_features, "families": names_of_families},
        "settings": candidates[found.chosen],
        "relevant_not_candidates": int((data.missing_grades > 0).sum()),
        "model": str(out / "model.json"),
    }
    _write(out, summary, data, found, args)
    return 0


def families(named: Sequence[str]) -> list[str]:
    """Return the named families of features once each, with "all" and "papers" expanded."""
    from truerank.text.features import FAMILIES, PAPERS

    sets = {"all": list(FAMILIES), "papers": list(PAPERS)} | {name: [name] for name in FAMILIES}
    for given in named:
        if given not in sets:
            raise common.UsageError(f"unknown family {given!r}. The known families are: {', '.join(sets)}")
    return list(dict.fromkeys(name for given in named for name in sets[given]))


def _candidates(args: Arguments) -> list[dict[str, Any]]:
    """Return the settings to try, each once; a setting that the ranker lacks is an error."""
    settings = ranker_options.settings_of(args.ranker, args.set)
    candidates: list[dict[str, Any]] = []
    for own in SETTINGS.get(ranker_options.ranker_named(args.ranker)[0], [{}]):
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
            f"{args.queries}, {args.qrels}: {len(queries)} of {len(asked)} queries have relevant documents, but --cv "
            f"{args.cv} requires at least {args.cv}. Check that the ids of both files agree, or lower --cv (at least 3)"
        )
    return queries, len(asked)


def _about_nothing(names: Sequence[str]) -> str:
    return f"these queries with relevant documents find no document, and count 0 in each ranking: {common.few(names)}"


def _serve(found: TextEvidence, args: Arguments) -> str | None:
    """Return the command that ranks by BM25, unless the ranker is better."""
    if found.verdict["outcome"] == "better":
        return None
    function = "bm25" + repr(found.bm25)[len("BM25") :].replace("'", "")
    index, queries, function = map(shlex.quote, (str(Path(args.out) / "index"), args.queries, function))
    serve = f"truerank text search {index} {queries} --function {function}"
    if args.query_field:
        serve += f" --query-field {shlex.quote(args.query_field)}"
    return f"{serve} -o bm25.run"


def _write(out: Path, summary: dict[str, Any], data: Any, found: TextEvidence, args: Arguments) -> None:
    model, scores = found.model, found.scores
    texts = [f"{p:.6g}" for p in model.predict_proba(scores)[:, 1]] if found.calibrated else [""] * data.n_rows
    number = {query: fold.name for fold in found.folds for query in fold.test.tolist()}
    text = _text(summary, found)
    with one_step():
        truerank.save_model(model, out / "model.json")
        with atomic_write(out / "probabilities.csv") as stream:
            rows = csv.writer(stream, lineterminator="\n")
            rows.writerow(["query", "document", "fold", "score", "probability"])
            for i, name in enumerate(data.query_ids.tolist()):
                for row in range(int(data.offsets[i]), int(data.offsets[i + 1])):
                    rows.writerow([name, data.doc_ids[row], number[i], float(scores[row]), texts[row]])
        common.write_summary(out, summary, text)
    common.show(args, summary, text.removesuffix("\n"))


def _text(summary: dict[str, Any], found: TextEvidence) -> str:
    probabilities, verdict = summary["probabilities"], summary["verdict"]
    outcome = verdict["outcome"]
    about = f"the ranker is {outcome} than BM25" if outcome in ("better", "worse") else f"{outcome} against BM25"
    lines = [
        f"verdict: {about}: {verdict['difference']:+.4f} MAP (95 % interval {verdict['low']:+.4f} to "
        f"{verdict['high']:+.4f}), p = {verdict['p_adjusted']:.2g} (paired randomisation test, corrected for two), "
        f"{common.counted(verdict['queries'], 'held-out query')}, BM25 tuned on the training folds"
    ]
    if verdict["serve"] is not None:
        lines.append(f"to serve BM25 (parameters from all queries): {verdict['serve']}")
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
        f"{summary['features']['columns']} features\n\n{found.comparison.text()}\n\n"
        f"ranker: {summary['ranker']}; bm25, best-base: tuned on the training folds\n"
        f"probabilities: log loss {probabilities['log_loss']:.5f}, of the share of relevant documents "
        f"{probabilities['log_loss_of_share']:.5f} (held-out queries)\n"
        + "\n".join(lines)
        + f"\nmodel {summary['model']}\n"
    )
