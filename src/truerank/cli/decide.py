"""`truerank decide`: compute probabilities of relevance, and decisions of least expected cost."""

from __future__ import annotations

from typing import Any

import truerank
from truerank.cli import common, options
from truerank.cli.parser import Output, argument, only, option, positive, refuse


class Arguments(options.Known, options.Training, options.Json):
    calibrated: str = argument("a model that `truerank calibrate` wrote", "CALIBRATED")
    data: str | None = argument("documents to decide on (for a calibrated ranker)", "[DATA]")
    scores: str | None = option("one score on each line (for a model calibrated from --scores)", "FILE")
    cost_fp: float | None = option("cost of taking a document that is not relevant (default: 1)", "C")
    cost_fn: float | None = option("cost of leaving a relevant document out (default: 1)", "C")
    cost_tp: float | None = option("cost of taking a relevant document; a gain is negative (default: 0)", "C")
    cost_tn: float | None = option("cost of leaving out a document that is not relevant (default: 0)", "C")
    cost_abstain: float | None = option("cost of not deciding (default: never abstain)", "C")
    top: int | None = option("print the expected number of relevant documents in the top K instead", "K", type=positive)
    output: Output | None = option("output file of the lines (default: stdout)", "FILE")
    RULES = (
        only(options.Known, "data", "describes DATA, but only --scores is given"),
        refuse(
            "cost_fp cost_fn cost_tp cost_tn cost_abstain", "top", "has no effect with --top, which makes no decisions"
        ),
    )


def run(args: Arguments) -> int:
    """Write a line for each row in order: P(relevant), then 1 (take), 0 (leave) or -1 (abstain)."""
    from truerank.calibration.decisions import cost_threshold, decide, expected_costs, expected_relevant

    costs = common.given(args, "cost_fp", "cost_fn", "cost_tp", "cost_tn")
    threshold = cost_threshold(**costs)
    probabilities, scores, data, seen = _probabilities(args)
    if args.top is not None:
        if data is None:
            raise common.UsageError(
                "--top requires DATA, because scores do not name their queries. Name DATA, and a calibrated ranker"
            )
        query = data.restore(data.query_index)
        expected = expected_relevant(probabilities, args.top, qid=data.restore(data.qid), scores=scores)
        queries = data.query_ids[list(dict.fromkeys(query.tolist()))].tolist()
        by_query = dict(zip(map(str, queries), expected.tolist()))
        mean = None if seen.get("withheld") else float(expected.mean())
        report = {"top": args.top, "queries": len(by_query), "mean": mean, "expected_relevant": by_query} | seen
        return common.show_lines(args, args.output, report, (f"{name} {value!r}\n" for name, value in by_query.items()))
    decisions = decide(probabilities, cost_abstain=args.cost_abstain, **costs)
    table = expected_costs(probabilities, **costs)
    abstain = 0.0 if args.cost_abstain is None else args.cost_abstain
    cost = None
    if not seen.get("withheld"):
        cost = sum(abstain if d < 0 else row[d] for row, d in zip(table.tolist(), decisions.tolist()))
    counts = {name: int((decisions == value).sum()) for name, value in (("take", 1), ("leave", 0), ("abstain", -1))}
    report = {"rows": len(decisions), "threshold": threshold, "decisions": counts, "expected_cost": cost}
    report |= seen | {"probabilities": probabilities.tolist(), "decided": decisions.tolist()}
    common.show_lines(
        args, args.output, report, (f"{p!r} {d}\n" for p, d in zip(probabilities.tolist(), decisions.tolist()))
    )
    if not args.json:
        common.note(
            f"threshold {threshold:.4f}; take {counts['take']}, leave {counts['leave']}, abstain {counts['abstain']}; "
            + ("expected cost withheld" if cost is None else f"expected cost {cost:.4g}")
        )
    return 0


def _probabilities(args: Arguments) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Return P(relevant) and score of each row in file order, the data or None, and the result of `_seen`."""
    from truerank.calibration.base import Calibrator
    from truerank.io.scores import read_scores

    advice = "which has no probabilities. Run `truerank calibrate`"
    model = common.load_as((truerank.CalibratedRanker, Calibrator), args.calibrated, advice)
    if isinstance(model, truerank.CalibratedRanker):
        if args.data is None or args.scores is not None:
            raise common.UsageError(f"{args.calibrated} contains a calibrated ranker. Give DATA instead of --scores")
        documents = common.read_data(args.data, args, model)
        seen = _seen(args, model, documents)
        return model.predict_proba(documents)[:, 1], model.predict(documents), documents, seen
    if args.scores is None:
        raise common.UsageError(f"{args.calibrated} contains a calibrator of scores. Give --scores FILE")
    common.refuse_idle(args, ("features", "exclude"), "chooses columns, but a calibrator reads only scores")
    data = None if args.data is None else common.read_data(args.data, args, features=[])
    scores = read_scores(args.scores, None if data is None else data.n_rows)
    return model.predict_proba(scores)[:, 1], scores, data, {}


def _seen(args: Arguments, model: truerank.CalibratedRanker, data: truerank.RankingData) -> dict[str, Any]:
    """Print and return which queries trained or calibrated the model, and whether values are withheld."""
    found = truerank.training_queries(model, data)
    withheld = bool(found.recognised) and args.training_queries != "keep"
    if found.recognised:
        effect = (
            "expected costs and means are withheld. Add --training-queries keep to print them"
            if withheld
            else "the figures include these queries, and are too optimistic for new queries"
        )
        common.note(f"{args.calibrated}: {found}; {effect}")
    return {"training_queries": found.to_dict(), "withheld": withheld}
