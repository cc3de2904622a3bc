"""`truerank calibrate`: turn a ranker's scores into probabilities of relevance."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import truerank
from truerank.calibration import CALIBRATORS, SYNONYMS, calibrator_class
from truerank.cli import common, options
from truerank.cli.next_command import next_command
from truerank.cli.parser import OutputFile, argument, only, option, refuse
from truerank.cli.systems import about_training

if TYPE_CHECKING:
    import numpy as np

CHOOSE = "choose"
FEWEST = 10
"""The fewest queries for a printed calibration error, because fewer do not show its uncertainty."""


class _Found(NamedTuple):
    """A calibrated model, the choice of its calibrator, and P(relevant), relevance and query of each held-out row."""

    model: Any
    choice: Any
    probabilities: Any
    relevant: Any
    query: Any
    about: str
    seen: Any = None


class Arguments(options.Known, options.Clustered, options.Training, options.Json):
    model: str | None = argument("a ranker that `truerank train` wrote", "[MODEL]")
    judged: str | None = argument(
        "judged queries that MODEL was not trained on (with --cv: any judged queries)", "[DATA]"
    )
    scores: str | None = option("instead of MODEL: a file with one score on each line for the rows of --data", "FILE")
    data: str | None = option("judged documents of --scores", "FILE")
    method: str = option(
        f"calibrator: {', '.join(CALIBRATORS)}, or {CHOOSE}: average them with weights from cross-validated log "
        f"loss, unless one of them is clearly better (default: {CHOOSE})",
        "NAME",
        choices=[*CALIBRATORS, *SYNONYMS, CHOOSE],
        default=CHOOSE,
    )
    rel: float = option("lowest grade that is relevant (default: 1)", "G", default=1)
    monotone: bool = option(f"never give a higher score a lower probability (always so with {CHOOSE})")
    cv: int | None = option(
        "train the ranker again on DATA, and calibrate its cross-validated scores (K folds)",
        "K",
        to="model",
        why="requires MODEL DATA, because it uses the ranker",
    )
    query_statistics: bool = option(
        "let the probability depend also on the rank of the score within its query",
        to="model",
        why="requires MODEL DATA, because it uses the ranker",
    )
    seed: int | None = option("seed of the folds (default: 0)", "N")
    output: OutputFile = option("the model to write", "FILE", names="-o --output --model")
    RULES = (
        only("cluster", "model", "requires MODEL DATA, because scores in a file are calibrated in this process"),
        refuse("scores data", "model", "cannot be combined with MODEL DATA"),
        refuse("features exclude", "scores", "chooses columns for a model, and --scores requires no columns"),
        refuse("monotone", f"method={CHOOSE}", f"has no effect: --method {CHOOSE} makes every calibrator monotone"),
    )


def run(args: Arguments) -> int:
    """Fit and save a calibrator, and print cross-validated losses to stderr, or with `--json` to stdout."""
    if args.monotone and getattr(calibrator_class(args.method), "always_monotone", False):
        raise common.UsageError(f"--monotone has no effect: {args.method} is always monotone. Leave --monotone out")
    common.check_one_stdin([args.scores, args.data])
    if args.model is not None:
        if args.judged is None:
            raise common.UsageError(
                "DATA is missing. Name a file of judged queries: truerank calibrate MODEL DATA -o calibrated.json"
            )
        found = _ranker(args, args.model, args.judged)
    elif args.scores is None or args.data is None:
        raise common.UsageError("no scores to calibrate are named. Give MODEL DATA, or --scores FILE --data FILE")
    else:
        found = _scores(args, args.scores, args.data)
    choice, relevant, seen = found.choice, found.relevant, found.seen
    common.remember_reading(found.model, args, getattr(found.model, "ranker_", None))
    truerank.save_model(found.model, args.output)
    error, about_error = None, "calibration error: not measured, because a class has fewer than two rows"
    n_queries = len(set(found.query.tolist()))
    if n_queries < FEWEST:
        about_error = f"calibration error: not measured on {n_queries} queries, because at least {FEWEST} are needed"
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
        "training_queries": None if seen is None else seen.to_dict()[str(args.model)],
        "model": args.output,
    }
    parts = ", ".join(f"{name} {weight:.2f}" for name, weight in choice.weights.items())
    name = f"{choice.method} ({parts})" if len(choice.weights) > 1 else choice.method
    rows = [
        [row.method, row.log_loss, row.brier]
        + ([None, None] if row.p == 1 else [row.difference, "< 0.0001" if row.p < 1e-4 else row.p])
        for row in sorted(choice.comparisons, key=lambda row: row.log_loss)
    ]
    shown = 5 if len(rows) > 1 else 3  # one method differs from none
    table = common.table([row[:shown] for row in rows], ["method", "log loss", "Brier", "difference", "p"][:shown])
    text = (
        f"{found.about}\n{name}: {common.counted(report['rows'], 'row')}, "
        f"{n_queries} queries, {report['relevant']} relevant "
        f"(grade {args.rel:g} and more)\n{table}\n"
        f"{about_error}\n"
        f"calibrated model written to {args.output}"
    )
    common.tell(args, report, text)
    next_command(args, "decide", calibrated=args.output, data=args.judged, output="decisions.txt")
    return 0


def _choice(args: Arguments, data: str, scores: np.ndarray, relevant: np.ndarray, query: np.ndarray) -> Any:
    """Return the `CalibratorChoice` for the scores: the fitted calibrator, its name and cross-validated losses."""
    from truerank.calibration.pool import DEFAULT_METHODS
    from truerank.data.remarks import RemarkWarning

    if (n_queries := len(set(query.tolist()))) < 2:
        raise common.InvalidInputError(
            f"{data} has {common.counted(n_queries, 'query')}, and a calibrator is cross-validated "
            "over whole queries. Give judgements of at least 2 queries"
        )
    choose = args.method == CHOOSE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RemarkWarning)  # the order of the scores is stated, or was checked
        return truerank.choose_calibrator(
            scores, relevant, methods=DEFAULT_METHODS if choose else [args.method], groups=query,
            monotone=args.monotone or choose, random_state=args.seed,
        )  # fmt: skip


def _ranker(args: Arguments, file: str, judged: str) -> _Found:
    from truerank.calibration.base import make_calibrator
    from truerank.calibration.ranker import CalibratedRanker, cross_fitted_probabilities, cross_fitted_scores
    from truerank.data.provenance import KEEP

    advice = "not a ranker; calibrate its scores with --scores and --data"
    model = common.load_as(truerank.Ranker, file, advice)
    with common.cluster_of(args.cluster) as client:
        data = common.read_graded(judged, args, model, client=client)
        seen = None  # with --cv the model itself scores nothing
        about = "scores: from rankers that were trained on other queries"
        if args.cv is None:
            seen = about_training(
                args.training_queries, {file: model}, data, remedies=("use other queries", "add --cv 5", KEEP)
            )
            data, about = seen.kept(data), str(seen)
        data = data.as_grouped()
        light = data.without_features()
        relevant, query = _grades(light, judged) >= args.rel, light.query_index
        if args.cv is None:
            scores = data.scores(model)
        else:
            scores = cross_fitted_scores(model, data, args.cv, random_state=args.seed)
        choice = _choice(args, judged, scores, relevant, query)
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


def _scores(args: Arguments, file: str, judged: str) -> _Found:
    """Calibrate a file of scores as `_ranker` calibrates a model."""
    from truerank.experiments.systems import read_stated

    data = common.read_graded(judged, args, features=[])
    scores = read_stated(file, data)
    relevant = data.restore(_grades(data, judged)) >= args.rel
    query = data.restore(data.query_index)
    choice = _choice(args, judged, scores, relevant, query)
    about = f"{file}: the figures hold if the ranker was not trained on these queries, which scores cannot show"
    return _Found(choice.calibrator, choice, choice.held_out, relevant, query, about)


def _grades(data: Any, path: str) -> Any:
    if data.y is None:
        raise common.InvalidInputError(
            f"{path}: the data have no grades, which calibration requires. Name their column with --grade-column"
        )
    return data.y
