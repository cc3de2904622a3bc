"""`truerank calibrate`: turn a ranker's scores into probabilities of relevance."""

from __future__ import annotations

import argparse
import warnings
from typing import Any

from truerank.cli import common, options

CHOOSE = "choose"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    from truerank.calibration.names import CALIBRATORS, SYNONYMS

    parser.add_argument("model", nargs="?", metavar="MODEL", help="a ranker that `truerank train` wrote")
    parser.add_argument(
        "judged", nargs="?", metavar="DATA", help="judged queries that MODEL was not trained on (with --cv: any)"
    )
    parser.add_argument("--scores", metavar="FILE", help="in place of MODEL: one score a line, for the rows of --data")
    parser.add_argument("--data", metavar="FILE", help="judged documents of --scores")
    parser.add_argument(
        "--method",
        default=CHOOSE,
        choices=[*CALIBRATORS, *SYNONYMS, CHOOSE],
        metavar="NAME",
        help=f"{', '.join(CALIBRATORS)}; or {CHOOSE}: their average weighted by cross-validated log loss, "
        f"or one of them where it stands out (default: {CHOOSE})",
    )
    parser.add_argument("--rel", type=float, default=1, metavar="G", help="lowest grade that is relevant (default: 1)")
    parser.add_argument(
        "--monotone", action="store_true", help=f"a higher score never gets a lower probability (with {CHOOSE}: always)"
    )
    parser.add_argument(
        "--cv", type=int, metavar="K", help="train MODEL's ranker anew on DATA, with scores from K folds of its queries"
    )
    parser.add_argument(
        "--query-statistics", action="store_true", help="let P also depend on the score's place within its query"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the folds (default: 0)")
    parser.add_argument(
        "-o",
        "--output",
        "--model",
        required=True,
        metavar="FILE",
        dest="output",
        help="where the calibrated model goes, as JSON",
    )
    options.add_cluster_option(parser)
    options.add_data_options(parser)
    options.add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Fit, save, and report cross-validated losses: to stderr, or with --json to stdout."""
    from truerank.calibration.diagnostics import expected_calibration_error
    from truerank.models.model_file import save_model

    common.check_file("-o", args.output)
    _check_usage(args)
    common.announce_compilation()
    if args.model is not None:
        model, choice, probabilities, relevant, query = _ranker(args)
    else:
        model, choice, probabilities, relevant, query = _scores(args)
    save_model(model, args.output)
    error = expected_calibration_error(relevant, probabilities, random_state=args.seed)
    report: dict[str, Any] = {
        "method": choice.method,
        "weights": choice.weights,
        "rows": len(relevant),
        "queries": len(set(query.tolist())),
        "relevant": int(relevant.sum()),
        "rel": args.rel,
        "cross_validated": [vars(row) for row in choice.comparisons],
        "calibration_error": {"plain": error.plain, "debiased": error.debiased, "low": error.low, "high": error.high},
        "model": args.output,
    }
    parts = ", ".join(f"{name} {weight:.2f}" for name, weight in choice.weights.items())
    name = f"{choice.method} ({parts})" if len(choice.weights) > 1 else choice.method
    rows = [[row.method, row.log_loss, row.brier, row.difference, row.p] for row in choice.comparisons]
    text = (
        f"{name}: {report['rows']} rows, {report['queries']} queries, {report['relevant']} relevant "
        f"(grade {args.rel:g} and more)\n{common.table(rows, ['method', 'log loss', 'Brier', 'difference', 'p'])}\n"
        f"calibration error on these rows {error.debiased:.4f} (debiased; 95% {error.low:.4f} to {error.high:.4f})\n"
        f"calibrated model written to {args.output}"
    )
    return common.tell(args, report, text)


def _check_usage(args: argparse.Namespace) -> None:
    from truerank.calibration.names import calibrator_class

    if args.monotone and args.method == CHOOSE:
        raise common.UsageError(f"--monotone: --method {CHOOSE} makes every calibrator monotone; leave it out")
    if args.monotone and getattr(calibrator_class(args.method), "always_monotone", False):
        raise common.UsageError(f"--monotone: {args.method} is monotone by its form; leave --monotone out")
    if args.cluster is not None and args.model is None:
        raise common.UsageError("--cluster needs MODEL DATA: scores in a file are calibrated here")
    if args.model is not None:
        if args.scores is not None or args.data is not None:
            raise common.UsageError("give either MODEL DATA or --scores FILE --data FILE, not both")
        if args.judged is None:
            raise common.UsageError("DATA is missing: judged queries for calibration")
        return
    if args.scores is None or args.data is None:
        raise common.UsageError("give MODEL DATA, or --scores FILE --data FILE")
    if args.cv is not None or args.query_statistics:
        raise common.UsageError("--cv and --query-statistics need MODEL DATA: they use the ranker")
    common.refuse_idle(args, ("features", "exclude"), "chooses columns for a model, and --scores has been scored")
    common.check_one_stdin([args.scores, args.data])


def _choice(args: argparse.Namespace, scores: Any, relevant: Any, query: Any) -> Any:
    """The calibrator fitted to the scores, its name and cross-validated losses (a `CalibratorChoice`)."""
    from truerank.calibration.pool import DEFAULT_METHODS, choose_calibrator

    monotone = args.monotone or args.method == CHOOSE
    methods = DEFAULT_METHODS if args.method == CHOOSE else [args.method]
    with warnings.catch_warnings():
        if args.method != CHOOSE:
            warnings.filterwarnings("ignore", message="only ")  # nothing is being chosen
        return choose_calibrator(
            scores, relevant, methods=methods, groups=query, monotone=monotone, random_state=args.seed
        )


def _ranker(args: argparse.Namespace) -> tuple[Any, Any, Any, Any, Any]:
    """The calibrated ranker, the choice of its calibrator, P(relevant), relevance and query of each row."""
    import numpy as np

    from truerank.calibration.ranker import cross_fitted_scores
    from truerank.models.model_file import load_model
    from truerank.rankers.base import Ranker

    model = load_model(args.model)
    if not isinstance(model, Ranker):
        raise common.InvalidInputError(
            f"{args.model} holds a {type(model).__name__}, not a ranker; calibrate its scores with --scores and --data"
        )
    if args.cluster is not None:
        with common.cluster_of(args) as client:
            return _ranker_of_parts(args, model, common.read_partitions(args.judged, args, client, like=model))
    data = common.read_graded(args.judged, args, like=model)
    grouped = data.take_queries(np.arange(data.n_queries))
    relevant = np.asarray(_grades(grouped, args.judged)) >= args.rel
    if args.cv is None:
        scores = np.asarray(model.predict(grouped))
    else:
        scores = cross_fitted_scores(model, grouped, args.cv, random_state=args.seed)
    choice = _choice(args, scores, relevant, grouped.query_index)
    calibrated = _calibrated(args, model, choice).fit(grouped)
    probabilities = calibrated.predict_proba(grouped)[:, 1]
    return calibrated, choice, probabilities, relevant, grouped.query_index


def _calibrated(args: argparse.Namespace, model: Any, choice: Any) -> Any:
    from truerank.calibration.classifier import make_calibrator
    from truerank.calibration.ranker import CalibratedRanker

    # Unfitted: with query statistics it is fitted to other scores than these.
    calibrator = make_calibrator(choice.method, monotone=True if args.monotone or args.method == CHOOSE else None)
    return CalibratedRanker(
        model, calibrator, cv="prefit" if args.cv is None else args.cv, rel=args.rel,
        query_statistics=args.query_statistics, random_state=args.seed,
    )  # fmt: skip


def _ranker_of_parts(args: argparse.Namespace, model: Any, data: Any) -> tuple[Any, Any, Any, Any, Any]:
    """What `_ranker` gives, of partitions on a cluster."""
    import numpy as np

    from truerank.cluster.fits.calibrated_ranker import held_out_scores

    light = data.without_features()
    relevant = np.asarray(_grades(light, args.judged)) >= args.rel
    if args.cv is None:
        scores = data.grouped_scores(model)
    else:
        scores, _ = held_out_scores(model, data, args.cv, None, args.seed)
    choice = _choice(args, scores, relevant, light.query_index)
    calibrated = _calibrated(args, model, choice).fit(data)
    probabilities = data.grouped_scores([one[:, 1] for one in calibrated.predict_proba(data)])
    return calibrated, choice, probabilities, relevant, light.query_index


def _scores(args: argparse.Namespace) -> tuple[Any, Any, Any, Any, Any]:
    """The same with a calibrator of scores in the ranker's stead."""
    import numpy as np

    from truerank.io.scores import read_scores

    data = common.read_graded(args.data, args, features=False)
    scores = np.asarray(read_scores(args.scores, data.n_rows))
    relevant = data.restore(np.asarray(_grades(data, args.data))) >= args.rel
    query = data.restore(data.query_index)
    choice = _choice(args, scores, relevant, query)
    probabilities = choice.calibrator.predict_proba(scores)[:, 1]
    return choice.calibrator, choice, probabilities, relevant, query


def _grades(data: Any, path: str) -> Any:
    if data.y is None:
        raise common.InvalidInputError(f"{path}: these data have no grades; calibration needs judged documents")
    return data.y
