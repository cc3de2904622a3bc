"""`truerank cutoff`: find a threshold with a bound on the loss, and apply it to queries.

fit: find the threshold on scores that keeps the loss of judged queries at or below a bound. apply: print for each
query whether it is answered, or how many documents to show, and test whether the queries resemble those of fit. The
scores come from MODEL and DATA, from --scores and --data, or from --runs.
"""

from __future__ import annotations

from typing import Any

import truerank
from truerank.calibration import QUERY_SCORES
from truerank.cli import common, options
from truerank.cli.parser import Output, OutputFile, argument, only, option, refuse
from truerank.cli.systems import about_training
from truerank.core.printing import table

FIT = ("loss", "at_most", "confidence", "query_score", "rel", "random_state")


class Arguments(options.Known, options.Judged, options.Training, options.Json):
    action: str = argument("task, see above", choices=("fit", "apply"))
    files: list[str] = argument("apply: first the file that fit wrote; then MODEL DATA", "[FILE …]")
    scores: str | None = option("scores of the rows of --data, one on each line", "FILE")
    data: str | None = option("documents of --scores", "FILE")
    runs: list[str] | None = option(
        "TREC runs; the first ranks, and the agreement of the others is a score of a query", "RUN …"
    )
    qrels: str | None = option("judgements of --runs, in any format that `truerank convert` reads", "QRELS", to="runs")
    loss: str | None = option(
        "loss to bound: no-relevant@K, irrelevant@K or 1-MEASURE to decide when to answer; missed-relevant, "
        "no-relevant-shown or irrelevant-shown to decide how many documents to show, each also with -overall for the "
        "mean over all queries (default: no-relevant@3)",
        "NAME",
    )
    at_most: float | None = option("bound on the loss (default: 0.1)", "A")
    confidence: float | None = option(
        "probability of keeping the bound (default: 0.9; none for missed-relevant…, no-relevant-shown…)", "C"
    )
    query_score: str | None = option(
        "score that decides which queries are answered (default: mean-top)", choices=QUERY_SCORES
    )
    rel: float | None = option("lowest relevant grade (default: 1)", "G")
    random_state: int | None = option("random seed (default: 0)", "N", names="--seed")
    output: str | None = option(
        "fit: output file of the cutoff; apply: of the lines (default: stdout)",
        "FILE",
        writes=lambda args: OutputFile if args.action == "fit" else Output,
    )
    RULES = (
        only("grades aggregate", "qrels"),
        refuse(" ".join([*FIT, "qrels"]), "action=apply", "applies only to fit, which stores it in the cutoff's file"),
    )


def run(args: Arguments) -> int:
    """Fit a cutoff, or apply one."""
    from truerank.calibration.query_losses import parse_loss

    if args.action == "apply":
        return _apply(args)
    if args.output is None:
        raise common.UsageError("no output file is named. Add -o cutoff.json")
    cutoff = truerank.Cutoff(**{"random_state": 0} | common.given(args, *FIT))
    if args.confidence is None and parse_loss(cutoff.loss, None).kind != "missed":
        cutoff.set_params(confidence=0.9)
    scores, y, qid = _lists(args, args.files)
    truerank.save_model(cutoff.fit(scores, y, qid=qid), args.output)
    report = {name: getattr(cutoff, f"{name}_") for name in ("threshold", "answered", "withheld", "curve")}
    report |= {"queries": cutoff.n_queries_, "promise": cutoff.summary(), "needed": cutoff.needed_}
    return common.tell(args, report, f"{args.output}: {cutoff.summary()}{_curve(cutoff)}")


def _curve(cutoff: truerank.Cutoff) -> str:
    """Return a text with the curve of the risk and its bounds, or "" without a confidence."""
    curve = cutoff.drawn_curve()
    if "simultaneous" not in curve:
        return ""
    figures = zip(*(curve[name] for name in ("answered", "queries", "risk", "bound", "simultaneous")))
    rows = [[f"{share:.0%}", int(n), *(f"{value:.3f}" for value in values)] for share, n, *values in figures]
    heads = ["answered" if cutoff.kind_ == "answer" else "shown", "queries", "risk", "bound", "simultaneous bound"]
    note = "Tests in a fixed order (`bound`) select the threshold. Simultaneous bounds hold for all rows together."
    return f"\n\n{table(rows, heads)}\n\n{note}"


def load_cutoff(path: str) -> truerank.Cutoff:
    """Return the cutoff in a file that `truerank cutoff fit` wrote."""
    return common.load_as(truerank.Cutoff, path, "which is not a cutoff. Create one with `truerank cutoff fit`")


def _apply(args: Arguments) -> int:
    if not args.files:
        raise common.UsageError("no cutoff is named. Give the file that `truerank cutoff fit` wrote")
    cutoff = load_cutoff(args.files[0])
    scores, _, qid = _lists(args, args.files[1:])
    names = list(dict.fromkeys(map(str, qid.tolist())))
    found = (cutoff.answers if cutoff.kind_ == "answer" else cutoff.depth)(scores, qid=qid).astype(int).tolist()
    drift = cutoff.check(scores, qid=qid)
    what = "answered" if cutoff.kind_ == "answer" else "shown"
    report = {"queries": len(names), what: dict(zip(names, found)), "moved": drift.moved, "p": drift.p}
    common.show_lines(args, args.output, report, (f"{name} {value}\n" for name, value in zip(names, found)))
    if not args.json:
        common.note(f"{sum(v > 0 for v in found)} of {len(names)} queries are answered. {cutoff.summary()}")
    return 0


def _lists(args: Arguments, files: list[str]) -> tuple[Any, Any, Any]:
    """Return scores (n,) or (n, r), grades (None in `apply`) and query of each row."""
    from truerank.experiments.systems import read_stated

    graded = args.action == "fit"
    ways = (len(files) == 2, None not in (args.scores, args.data), args.runs is not None)
    if sum(ways) != 1 or len(files) not in (0, 2) or (args.scores is None) != (args.data is None):
        raise common.UsageError("no scores are named. Give MODEL DATA, --scores FILE --data FILE, or --runs RUN …")
    if args.runs is not None:
        if graded and args.qrels is None:
            raise common.UsageError("--runs requires judgements. Add --qrels FILE")
        runs = list(common.read_runs(args, args.runs).values())
        qrels = common.qrels_of(args) if graded else None
        data = truerank.join_runs(runs, qrels, missing="nan")
        ranked = data.X[:, 0] == data.X[:, 0]  # documents that only the other runs hold are not ranked
        return data.X[ranked], None if data.y is None else data.y[ranked], data.qid[ranked]
    read = common.read_graded if graded else common.read_data
    if args.scores is not None and args.data is not None:
        data = read(args.data, args, features=[])
        scores = read_stated(args.scores, data)
    else:
        model = common.load_ranker(files[0])
        data = read(files[1], args, model)
        if graded:
            seen = about_training(args.training_queries, {files[0]: model}, data)
            data = data.take_queries(seen.keep.nonzero()[0])
        calibrated = isinstance(model, truerank.CalibratedRanker)
        scores = model.predict_proba(data)[:, 1] if calibrated else model.predict(data)
    if graded and data.y is None:
        raise common.InvalidInputError(
            "the data have no grades, which fit requires. Name their column with --grade-column"
        )
    return scores, None if data.y is None else data.restore(data.y), data.restore(data.qid)
