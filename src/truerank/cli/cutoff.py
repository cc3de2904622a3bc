"""`truerank cutoff`: the threshold that keeps a promise, and what it answers or shows."""

from __future__ import annotations

import argparse
from typing import Any

from truerank.cli import common, options

FIT = ("loss", "at_most", "confidence", "query_score", "k", "rel", "set_aside", "seed", "qrels", "plot")


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    from truerank.calibration.query_scores import QUERY_SCORES

    parser.description = (
        "fit: find the threshold on scores that keeps a loss of judged queries at or below a bound. apply: print for "
        "each query whether it is answered, or how many documents are shown, and test whether the queries are like "
        "those of fit. The scores come from MODEL and DATA, from --scores and --data, or from --runs."
    )
    parser.add_argument("action", choices=("fit", "apply"))
    parser.add_argument("files", nargs="*", metavar="FILE", help="of apply the file that fit wrote; then MODEL DATA")
    parser.add_argument("--scores", metavar="FILE", help="one score a line, for the rows of --data")
    parser.add_argument("--data", metavar="FILE", help="documents of --scores")
    parser.add_argument("--runs", nargs="+", metavar="RUN", help="TREC runs; the first ranks, others may agree with it")
    parser.add_argument("--qrels", metavar="QRELS", help="judgements of --runs")
    parser.add_argument("--depth", type=int, metavar="K", help="read the first K documents of each topic of --runs")
    parser.add_argument(
        "--loss", metavar="NAME",
        help="no-relevant@K, irrelevant@K, 1-MEASURE (when to answer); missed-relevant, no-relevant-shown, "
        "irrelevant-shown (how deep to show) (default: no-relevant@3)",
    )  # fmt: skip
    parser.add_argument("--at-most", type=float, metavar="A", help="bound on the loss (default: 0.1)")
    parser.add_argument("--confidence", type=float, metavar="C", help="such as 0.9 (default: bound the expected loss)")
    parser.add_argument("--query-score", choices=QUERY_SCORES, help="what decides who is answered (default: mean-top)")
    parser.add_argument("--k", type=int, metavar="K", help="documents that it reads (default: the loss's, or 3)")
    parser.add_argument("--rel", type=float, metavar="G", help="lowest grade that is relevant (default: 1)")
    parser.add_argument("--set-aside", type=float, metavar="S", help="share of queries that test no threshold")
    parser.add_argument("--seed", type=int, metavar="N", help="of the queries set aside and of bets (default: 0)")
    parser.add_argument("--level", type=float, metavar="P", help="apply: level of the test of drift (default: 0.05)")
    parser.add_argument("-o", "--output", metavar="FILE", help="fit: the file to write; apply: the lines (stdout)")
    parser.add_argument("--plot", metavar="FILE", help="fit: draw risk and bound by share answered (png, svg, pdf)")
    options.add_training_option(parser)
    options.add_data_options(parser)
    options.add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Fit a cut-off, or apply one."""
    if args.action == "fit":
        common.refuse_idle(args, ("level",), "belongs to apply")
        return _fit(args)
    common.refuse_idle(args, FIT, "belongs to fit: the file keeps it")
    return _apply(args)


def _fit(args: argparse.Namespace) -> int:
    from truerank.calibration.cutoffs import Cutoff
    from truerank.models.model_file import save_model

    if args.output is None:
        raise common.UsageError("name the file to write with -o cutoff.json")
    common.check_file("-o", args.output)
    common.check_file("--plot", args.plot)
    settings = common.given(args, *(name for name in FIT if name not in ("seed", "qrels", "plot")))
    cutoff = Cutoff(**settings, random_state=args.seed or 0)
    scores, y, qid = _lists(args, args.files, graded=True)
    if y is None:
        raise common.InvalidInputError("the data have no grades; fit needs judged queries")
    save_model(cutoff.fit(scores, y, qid=qid), args.output)
    if args.plot is not None:
        cutoff.plot().savefig(args.plot, dpi=120)
    curve = {name: values.tolist() for name, values in cutoff.curve_.items()}
    report = {"threshold": cutoff.threshold_, "queries": cutoff.n_queries_, "answered": cutoff.answered_,
              "withheld": cutoff.withheld_, "promise": cutoff.summary(), "curve": curve}  # fmt: skip
    return common.tell(args, common.plain(report), f"{args.output}: {cutoff.summary()}")


def _apply(args: argparse.Namespace) -> int:
    from truerank.calibration.cutoffs import Cutoff
    from truerank.models.model_file import load_model

    if not args.files:
        raise common.UsageError("name the file that `truerank cutoff fit` wrote")
    common.check_writable(args.output)
    cutoff = load_model(args.files[0])
    if not isinstance(cutoff, Cutoff):
        raise common.InvalidInputError(f"{args.files[0]} holds a {type(cutoff).__name__}; run truerank cutoff fit")
    scores, _, qid = _lists(args, args.files[1:], graded=False)
    names = list(dict.fromkeys(qid.tolist()))
    found = (cutoff.answers if cutoff.kind_ == "answer" else cutoff.depth)(scores, qid=qid).astype(int).tolist()
    drift = cutoff.check(scores, qid=qid, **common.given(args, "level"))
    what = "answered" if cutoff.kind_ == "answer" else "shown"
    report = {"queries": len(names), what: dict(zip(map(str, names), found)), "moved": drift.moved, "p": drift.p}
    if not args.json or args.output not in (None, "-"):
        with common.output(args.output) as stream:
            stream.writelines(f"{name} {value}\n" for name, value in zip(names, found))
    text = f"{sum(value > 0 for value in found)} of {len(names)} queries answered; promise: {cutoff.summary()}"
    return common.tell(args, common.plain(report), text)


def _lists(args: argparse.Namespace, files: list[str], graded: bool) -> tuple[Any, Any, Any]:
    """Scores (n,) or (n, r), grades or None, and query of each row."""
    from truerank.calibration.ranker import CalibratedRanker

    ways = [len(files) > 0, args.scores is not None or args.data is not None, args.runs is not None]
    if sum(ways) != 1 or (files and len(files) != 2) or (ways[1] and None in (args.scores, args.data)):
        raise common.UsageError("give one of MODEL DATA, --scores FILE --data FILE, and --runs RUN …")
    common.refuse_idle(args, () if ways[2] else ("qrels", "depth"), "belongs to --runs")
    common.check_positive("--depth", args.depth)
    if args.runs is not None:
        import numpy as np

        from truerank.data.grouping import ranks_by_query
        from truerank.features.runs import join_runs
        from truerank.io.trec import read_qrels, read_run

        if graded and args.qrels is None:
            raise common.UsageError("--runs needs --qrels, the judgements")
        runs = [read_run(path) for path in common.run_paths(args.runs)]
        data = join_runs(runs, None if args.qrels is None else read_qrels(args.qrels), missing="nan").data
        columns = np.asarray(data.X)
        for run in columns.T if args.depth is not None else ():
            run[ranks_by_query(np.where(np.isnan(run), -np.inf, run), data.offsets) > args.depth] = np.nan
        ranked = ~np.isnan(columns[:, 0])  # what only the other runs hold is not ranked
        return columns[ranked], None if data.y is None else data.y[ranked], data.qid[ranked]
    if files:
        model = common.load_ranker(files[0])
        data = (
            common.read_graded(files[1], args, like=model) if graded else common.read_data(files[1], args, like=model)
        )
        if graded:
            seen = common.about_training(args, {files[0]: model}, data, instead="Use other queries")
            data = data.take_queries(seen.keep.nonzero()[0])
        calibrated = isinstance(model, CalibratedRanker)
        scores = model.predict_proba(data)[:, 1] if calibrated else model.predict(data)
    else:
        from truerank.io.scores import read_scores

        data = common.read_data(args.data, args, features=False)
        scores = read_scores(args.scores, data.n_rows)
    return scores, None if data.y is None else data.restore(data.y), data.restore(data.qid)
