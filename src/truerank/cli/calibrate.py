"""`truerank calibrate`: turn a ranker's scores into probabilities of relevance."""

from __future__ import annotations

import argparse
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import truerank
from truerank.calibration import CALIBRATORS, SYNONYMS, calibrator_class
from truerank.cli import common, options
from truerank.cli.systems import about_training

if TYPE_CHECKING:
    import numpy as np

CHOOSE = "choose"
FEWEST = 10
"""Queries below which no calibration error is printed: so few cannot show its uncertainty."""


class _Found(NamedTuple):
    """The calibrated model, the choice of its calibrator, and of each row P(relevant) held out, relevance and query."""

    model: Any
    choice: Any
    probabilities: Any
    relevant: Any
    query: Any
    about: str
    seen: Any = None


def configure(parser: argparse.ArgumentParser) -> None:
    add = options.adder(parser)
    add("model [MODEL]", "a ranker that `truerank train` wrote")
    add("judged [DATA]", "judged queries that MODEL was not trained on (with --cv: any judged queries)")
    add("--scores FILE", "in place of MODEL: the scores of the rows of --data, one on each line")
    add("--data FILE", "judged documents of --scores")
    text = f"calibrator: {', '.join(CALIBRATORS)}, or {CHOOSE}: average them with weights from cross-validated log "
    text += f"loss, unless one of them is clearly better (default: {CHOOSE})"
    add("--method NAME", text, choices=[*CALIBRATORS, *SYNONYMS, CHOOSE], default=CHOOSE)
    add("--rel G", "lowest grade that is relevant (default: 1)", type=float, default=1)
    add("--monotone", f"never give a higher score a lower probability (always so with {CHOOSE})")
    of_ranker = {"to": "model", "why": "needs MODEL DATA: it uses the ranker"}
    text = "train the ranker again on DATA, and calibrate its cross-validated scores (K folds)"
    add("--cv K", text, type=int, **of_ranker)
    add("--query-statistics", "let the probability depend also on the rank of the score within its query", **of_ranker)
    add("--seed N", "seed of the folds (default: 0)", type=int)
    add("-o --output --model FILE", "the model to write", required=True, dest="output", type=options.OutputFile)
    options.share(parser, "cluster", to="model", why="needs MODEL DATA: scores in a file are calibrated here")
    options.share(parser, "out-of-core", "training", "json")
    options.add_data_options(parser)
    options.refuse(parser, "scores data", "model", "is in place of MODEL DATA: give either, not both")
    options.refuse(parser, "features exclude", "scores", "chooses columns for a model, and --scores needs none")
    options.refuse(parser, "monotone", f"method={CHOOSE}", f"has no effect: --method {CHOOSE} makes all monotone")


def run(args: argparse.Namespace) -> int:
    """Fit, save, and report cross-validated losses: to stderr, or with --json to stdout."""
    if args.monotone and getattr(calibrator_class(args.method), "always_monotone", False):
        raise common.UsageError(f"--monotone: {args.method} is monotone by its form; leave --monotone out")
    if args.model is None and (args.scores is None or args.data is None):
        raise common.UsageError("give MODEL DATA, or --scores FILE --data FILE")
    if args.model is not None and args.judged is None:
        raise common.UsageError("DATA is missing: judged queries for calibration")
    common.check_one_stdin([args.scores, args.data])
    found = _scores(args) if args.model is None else _ranker(args)
    choice, relevant, seen = found.choice, found.relevant, found.seen
    common.remember_reading(found.model, args, getattr(found.model, "ranker_", None))
    truerank.save_model(found.model, args.output)
    error, about_error = None, "calibration error: not measured, a class has fewer than two rows"
    n_queries = len(set(found.query.tolist()))
    if n_queries < FEWEST:
        about_error = f"calibration error: not measured on {n_queries} queries, {FEWEST} are needed"
    elif found.probabilities is not None:
        from truerank.calibration.diagnostics import expected_calibration_error

        error = expected_calibration_error(relevant, found.probabilities, groups=found.query, random_state=args.seed)
        about_error = (
            f"calibration error {error.debiased:.4f} on queries that the calibrator was not fitted to (cross-fitted by "
            f"query; debiased; 95 % interval {error.low:.4f} to {error.high:.4f}, queries resampled)"
        )
    report: dict[str, Any] = {
        "method": choice.method,
        "weights": choice.weights,
        "rows": len(relevant),
        "queries": n_queries,
        "relevant": int(relevant.sum()),
        "rel": args.rel,
        "cross_validated": [vars(row) for row in choice.comparisons],
        "calibration_error": error
        and {"plain": error.plain, "debiased": error.debiased, "low": error.low, "high": error.high},
        "training_queries": None if seen is None else seen.report[args.model],
        "model": args.output,
    }
    parts = ", ".join(f"{name} {weight:.2f}" for name, weight in choice.weights.items())
    name = f"{choice.method} ({parts})" if len(choice.weights) > 1 else choice.method
    rows = [
        [row.method, row.log_loss, row.brier, row.difference, "< 0.0001" if row.p < 1e-4 else row.p]
        for row in sorted(choice.comparisons, key=lambda row: row.log_loss)
    ]
    text = (
        f"{found.about}\n{name}: {common.counted(report['rows'], 'row')}, "
        f"{n_queries} queries, {report['relevant']} relevant "
        f"(grade {args.rel:g} and more)\n{common.table(rows, ['method', 'log loss', 'Brier', 'difference', 'p'])}\n"
        f"{about_error}\n"
        f"calibrated model written to {args.output}"
    )
    return common.tell(args, report, text)


def _choice(args: argparse.Namespace, scores: np.ndarray, relevant: np.ndarray, query: np.ndarray) -> Any:
    """The calibrator fitted to the scores, its name and cross-validated losses (a `CalibratorChoice`)."""
    from truerank.calibration.pool import DEFAULT_METHODS
    from truerank.data.remarks import RemarkWarning

    if (n_queries := len(set(query.tolist()))) < 2:
        raise common.InvalidInputError(
            f"{args.judged or args.data} has {common.counted(n_queries, 'query')}, and a calibrator is cross-validated "
            "over whole queries. Give the judgements of 2 queries at least"
        )
    choose = args.method == CHOOSE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RemarkWarning)  # the order of the scores is stated, or was checked
        if not choose:
            warnings.filterwarnings("ignore", message="only ")  # nothing is being chosen
        return truerank.choose_calibrator(
            scores, relevant, methods=DEFAULT_METHODS if choose else [args.method], groups=query,
            monotone=args.monotone or choose, random_state=args.seed,
        )  # fmt: skip


def _ranker(args: argparse.Namespace) -> _Found:
    from truerank.calibration.base import make_calibrator
    from truerank.calibration.ranker import CalibratedRanker, cross_fitted_probabilities, cross_fitted_scores

    advice = "not a ranker; calibrate its scores with --scores and --data"
    model = common.load_as(truerank.Ranker, args.model, advice)
    with common.cluster_of(args) as client:
        data = common.read_graded(args.judged, args, client=client, like=model)
        seen = None  # with --cv the model itself scores nothing
        about = "scores: by rankers that were trained on other queries"
        if args.cv is None:
            seen = about_training(args, {args.model: model}, data, instead=("use other queries", "add --cv 5"))
            data, about = seen.kept(data), seen.text
        data = data.as_grouped()
        light = data.without_features()
        relevant, query = _grades(light, args.judged) >= args.rel, light.query_index
        if args.cv is None:
            scores = data.scores(model)
        else:
            scores = cross_fitted_scores(model, data, args.cv, random_state=args.seed)
        choice = _choice(args, scores, relevant, query)
        # Unfitted: with query statistics it is fitted to other scores than these.
        calibrator = make_calibrator(choice.method, monotone=True if args.monotone or args.method == CHOOSE else None)
        calibrated = CalibratedRanker(
            model, calibrator, cv="prefit" if args.cv is None else args.cv, rel=args.rel,
            query_statistics=args.query_statistics, random_state=args.seed,
        ).fit(data)  # fmt: skip
        probabilities = choice.held_out
        if args.query_statistics and probabilities is not None:
            probabilities = cross_fitted_probabilities(calibrated, scores, light)
        return _Found(calibrated, choice, probabilities, relevant, query, about, seen)


def _scores(args: argparse.Namespace) -> _Found:
    """Like `_ranker`, for a file of scores."""
    from truerank.experiments.systems import read_stated

    data = common.read_graded(args.data, args, features=False)
    scores = read_stated(args.scores, data)
    relevant = data.restore(_grades(data, args.data)) >= args.rel
    query = data.restore(data.query_index)
    choice = _choice(args, scores, relevant, query)
    about = f"{args.scores}: the figures hold if the ranker was not trained on these queries, which scores do not show"
    return _Found(choice.calibrator, choice, choice.held_out, relevant, query, about)


def _grades(data: Any, path: str) -> Any:
    if data.y is None:
        raise common.InvalidInputError(f"{path}: these data have no grades; calibration needs judged documents")
    return data.y
