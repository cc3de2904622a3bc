"""`truerank fuse`: one run of several, learned from judged topics, by a learned model, or by a rule.

Fuse runs in one of three ways. --method fuses by a rule. --qrels learns weights from judged topics, compares the
result with the rules by cross-validation over topics, and saves it with --model. --model alone applies a learned
fusion to runs of new topics. A run is named by its file without the ending.
"""

from __future__ import annotations

import argparse
from typing import Any

from truerank.cli import common, options
from truerank.io.documents import read_judgements
from truerank.measures import parse_measures
from truerank.models.model_file import save_model

METHODS = (
    "rrf", "comb-sum", "comb-mnz", "comb-anz", "comb-gmnz", "comb-max", "comb-min", "comb-med",
    "isr", "log-isr", "logn-isr", "rbc", "borda", "condorcet",
)  # fmt: skip
DEPTH = 1000  # documents of a topic


def configure(parser: argparse.ArgumentParser) -> None:
    add = options.adder(parser)
    add("systems [RUN …]", "TREC runs, or folders of them")
    add("--runs RUN …", "the same runs, named by an option", default=[])
    add("--qrels FILE", "TREC judgements of some of the topics, to learn from")
    add("--model MODEL", "the learned fusion: written with --qrels, else read")
    add("--method", "fuse by this rule, without learning", choices=METHODS)
    add("-o --output RUN", "output file of the fused run (default: -, stdout)", type=options.Output)
    add("--depth N", "documents kept for each topic (default: 1000)", type=options.positive)
    add("--tag NAME", "tag of the fused run (default: fusion, or the method)", type=options.tag)
    group, of_learning = parser.add_argument_group("learning (with --qrels)"), "belongs to learning: give --qrels FILE"
    learn = options.adder(group, to="qrels", why=of_learning)
    learn("--ranker NAME", "ranker to train; `truerank train --list` lists them (default: list-net)")
    learn("--set key=value …", "parameters of the ranker", default=[])
    learn(
        "--features TEXT",
        "features of runs: min-max, score, z-score, percentile, reciprocal-rank, presence, agreement, score-bins, gap, "
        'joined as in "min-max + reciprocal-rank(k=60)" (default: min-max + reciprocal-rank)',
    )
    learn("--nonnegative", "learn one weight of at least 0 for each run, as search engines require")
    learn("--training-depth N", "learn from the first N ranks of each run (default: 200)", type=int)
    learn("--folds N", "folds of topics (default: 5)", type=int)
    learn("--measures NAME …", 'measures (default: "AP nDCG@10")')
    options.share(group, "topics", why=of_learning)
    learn("--seed N", "seed of folds, training and tests (default: 0)", type=int)
    options.add_convention(group, shown="trec", to="qrels", why=of_learning)
    engines = ("opensearch", "elasticsearch", "vespa", "weaviate", "bool-query")
    text = "with --model alone: write the weights for this engine to -o, and verify them on the runs"
    add("--export", text, choices=engines)
    options.share(parser, "json")


def run(args: argparse.Namespace) -> int:
    """Learn, apply or fuse by rule."""
    if args.method is not None and (args.qrels is not None or args.model is not None):
        raise common.UsageError("--method fuses without learning; leave --qrels and --model out")
    if args.method is None and args.qrels is None and args.model is None:
        raise common.UsageError(
            "give --qrels FILE to learn, --model MODEL to fuse with a learned model, or --method NAME to fuse by a rule"
        )
    args.runs = [*args.systems, *args.runs]
    if not args.runs:
        raise common.UsageError("name the runs to fuse: truerank fuse a.run b.run --method rrf -o fused.run")
    if args.export is not None and (args.model is None or args.qrels is not None):
        raise common.UsageError("--export writes the weights of a learned model: give --model MODEL, without --qrels")
    if args.qrels is not None:
        args.depth, args.seed, args.convention = args.depth or DEPTH, args.seed or 0, args.convention or "trec"
        return _learn(args)
    if args.export is not None:
        common.refuse_idle(args, ("depth", "tag"), "has no effect with --export, which writes weights")
    args.depth = args.depth or DEPTH
    if args.json and args.output in (None, "-"):
        raise common.UsageError("--json prints a summary; name the file that is written with -o")
    from truerank.features.run_pool import RunPool

    model = None
    if args.model is not None:
        from truerank.features.position_fusion import PositionFusion
        from truerank.rankers.run_fusion import RunFusion

        model = common.load_as((RunFusion, PositionFusion), args.model, "not a RunFusion; learn one with --qrels FILE")
    pool = RunPool(common.read_runs(args.runs))
    _report_findings(pool)
    if args.export is not None:
        return _export(args, model, pool)
    if model is not None:
        fused = model.predict(pool, depth=args.depth, tag=args.tag or "fusion")
    else:
        from truerank.features.fusion import METHODS as RULES

        fused = pool.to_run(RULES[args.method](pool), depth=args.depth, tag=args.tag or args.method)
    text = _write(fused, args)
    if text:
        common.tell(args, {"output": args.output, "topics": fused.n_queries, "documents": fused.n_rows}, text)
    return 0


def _unfitted(args: argparse.Namespace) -> tuple[Any, str]:
    """Return the unfitted fusion and the name of its ranker."""
    from truerank.rankers.run_fusion import RunFusion

    settings = common.parse_settings(args.set)
    ranker_name = "nonnegative-list-net" if args.nonnegative else args.ranker or "list-net"
    ranker = common.make_ranker(ranker_name, settings)
    if "random_state" in ranker.get_params() and "random_state" not in settings:
        ranker.set_params(random_state=args.seed)
    depth = {} if args.training_depth is None else {"depth": args.training_depth}
    return RunFusion(ranker, features=args.features, nonnegative=args.nonnegative, **depth), ranker_name


def _check_learning(args: argparse.Namespace) -> None:
    """Refuse options that contradict each other, before a file is read."""
    if args.json and args.output == "-":
        raise common.UsageError("--json prints figures; name the file of the fused run with -o")
    if args.nonnegative and args.ranker is not None:
        raise common.UsageError("--nonnegative has its own learner; leave --ranker out")
    common.check_file("--model", args.model)
    if args.output is None:
        common.refuse_idle(args, ["tag"], "names the fused run; give -o RUN")


def _learn(args: argparse.Namespace) -> int:
    from truerank.features.run_pool import RunPool
    from truerank.inspection.fusion_evidence import cross_validate_fusion

    measures = " ".join(args.measures or ["AP nDCG@10"])
    _check_learning(args)
    folds = {} if args.folds is None else {"n_folds": args.folds}
    parse_measures(measures, args.convention)  # misspelt names fail before any file is read
    model, ranker_name = _unfitted(args)
    qrels = common.with_note(args.qrels, read_judgements(args.qrels))
    pool = RunPool(common.read_runs(args.runs), qrels)
    _report_findings(pool)
    evidence = cross_validate_fusion(
        pool, model, measures=measures, convention=args.convention, depth=args.depth, topics=args.topics,
        random_state=args.seed, **folds,
    )  # fmt: skip
    model.fit(pool)
    assert pool.unretrieved is not None
    report: dict[str, Any] = evidence.to_dict() | {
        "runs": pool.names,
        "ranker": ranker_name,
        "features": str(model._features()),
        "convention": args.convention,
        "topics_without_runs": pool.topics_without_runs,
        "relevant_not_retrieved": int((pool.unretrieved > 0).sum()),
        "findings": pool.findings(),
    }
    if args.nonnegative:
        report["weights"] = model.run_weights()
    if args.model is not None:
        save_model(model, args.model)
    if args.output is not None:
        text = _write(model.predict(pool, depth=args.depth, tag=args.tag or "fusion"), args)
        if text and not args.json:
            common.note(text)
    if args.json:
        common.print_json(report)
    else:
        _print(report, evidence, args)
    return 0


def _export(args: argparse.Namespace, model: Any, pool: Any) -> int:
    from truerank.export.fusion_weights import certify_fusion, export_fusion

    text = export_fusion(model, args.export)
    certificate = certify_fusion(model, args.export, pool)
    with common.output(args.output) as stream:
        stream.write(text.rstrip("\n") + "\n")
    return common.tell(
        args,
        certificate,
        f"{certificate['format']}: the first 100 of {certificate['topics_equal']} of {certificate['topics']} "
        f"topics in our order, {certificate['rank_agreement']:.2%} of ranks; scores differ by at most "
        f"{certificate['largest_difference']:.2g} (by the engine's rule, computed here)",
    )


def _print(report: dict[str, Any], evidence: Any, args: argparse.Namespace) -> None:
    print(evidence)
    print(
        f"\n{len(report['runs'])} runs, {report['topics']} topics in {report['folds']} folds; lists have at most "
        f"{args.depth} documents\n"
        f"learned by {report['ranker']} from {report['features']}\n"
        f"best run on the training topics: {', '.join(sorted(set(report['best_runs'])))}\n"
        f"relevant documents that no run retrieved: {report['relevant_not_retrieved']}; they lower every method"
    )
    absent = report["topics_without_runs"]
    if absent:
        rule = "they count 0 for every method" if args.topics == "all" else "they are left out"
        print(f"judged topics that no run has: {len(absent)}; {rule}")
    if "weights" in report:
        print("\n" + common.table([[name, weight] for name, weight in report["weights"].items()], ["run", "weight"]))
    if args.model is not None:
        common.note(f"model written to {args.model}")


def _write(fused: Any, args: argparse.Namespace) -> str:
    """Write the run; what was written, "" where stdout shows it."""
    output = args.output or "-"
    fused.write(output)
    return (
        ""
        if output == "-"
        else f"wrote {output}: {common.counted(fused.n_queries, 'topic')}, {common.counted(fused.n_rows, 'document')}"
    )


def _report_findings(pool: Any) -> None:
    words = {
        "missing-topic": "has no document for",
        "short-list": "has a short list (under a tenth of the usual) for",
        "all-tied": "has one score for all documents of",
    }
    for finding in pool.findings():
        topics = finding["topics"]
        shown = ", ".join(topics[:3]) + (" …" if len(topics) > 3 else "")
        common.note(f"run {finding['run']} {words[finding['code']]} {common.counted(len(topics), 'topic')}: {shown}")
