"""`truerank fuse`: fuse several runs by a rule, by weights learned from judged topics, or by a learned model.

Fuse runs in one of four ways. --method fuses by a rule. --sum adds up a feature of the runs, such as the scores that a
search engine normalises, with given weights. --qrels learns weights from judged topics, compares the result with the
rules by cross-validation over topics, and saves it with --model; -o then fuses each topic with weights that were
learned from other topics. --model alone applies a learned fusion to runs of new topics. The name of a run is the name
of its file without the ending.
"""

from __future__ import annotations

from typing import Any

import truerank
from truerank.cli import common, options, ranker_options
from truerank.cli.next_command import next_command
from truerank.cli.parser import Output, OutputFile, argument, one_word, only, option, positive, refuse, within
from truerank.core.files import one_step
from truerank.measures.conventions import QRELS_CONVENTION

METHODS = ("rrf", "comb-sum", "comb-mnz", "comb-anz", "comb-max", "comb-min", "comb-med", "borda")
DEPTH = 1000  # documents of a topic


_OF_LEARNING = "applies only to learning: give --qrels FILE"


class Arguments(options.Judged, options.Topics, options.Json):
    systems: list[str] = argument("TREC runs, or folders of them", "[RUN …]")
    runs: list[str] = option("the same runs, named by an option", "RUN …")
    qrels: str | None = option(
        "judgements of some of the topics, to learn from, in any format that `truerank convert` reads", "FILE"
    )
    model: str | None = option(
        "the learned fusion: written with --qrels, else read",
        "MODEL",
        writes=lambda args: OutputFile if args.qrels else str,
    )
    method: str | None = option("fuse by this rule, without learning", choices=METHODS)
    sum: str | None = option(
        "fuse by the sum of this feature of runs, without learning: as in --features, such as "
        "'engine-scores(engine=elasticsearch, technique=l2)'",
        "FEATURE",
    )
    weights: list[float] | None = option("with --sum: the weight of each run (default: 1)", "W …", to="sum")
    output: Output | None = option("output file of the fused run (default: -, stdout)", "RUN")
    depth: int | None = option("documents kept for each topic (default: 1000)", "N", type=positive)
    tag: str | None = option("tag of the fused run (default: fusion, or the method)", "NAME", type=one_word)
    learn = within("learning (with --qrels)", to="qrels", why=_OF_LEARNING)
    ranker: str | None = learn(
        "ranker to train; `truerank train --list` lists them (default: list-net)", "NAME", action=options.RankerName
    )
    set: list[str] = learn("parameters of the ranker", "key=value …")
    features: str | None = learn(
        "features of runs: min-max, score, z-score, percentile, reciprocal-rank, presence, agreement, score-bins, gap, "
        "engine-scores(engine=opensearch, technique=min-max, l2, z-score or rrf), "
        'joined as in "min-max + reciprocal-rank(k=60)" (default: min-max + reciprocal-rank)',
        "TEXT",
    )
    nonnegative: bool = learn("learn one weight of at least 0 for each run, as search engines require")
    by_query: bool = learn(
        "learn weights that depend on features of the query; without a gain, one weight for each run"
    )
    training_depth: int | None = learn("learn from the first N ranks of each run (default: 200)", "N")
    cv: int | None = learn("folds of topics (default: 5)", "N")
    measures: list[str] | None = learn('measures (default: "AP nDCG@10")', "NAME …")
    seed: int | None = learn("seed of folds, training and tests (default: 0)", "N")
    convention: options.Convention | None = options.convention(shown="trec", to="qrels", why=_OF_LEARNING)
    export: str | None = option(
        "with --model alone: write the weights for this engine to -o, and verify them on the runs",
        choices=("opensearch", "elasticsearch", "vespa", "weaviate", "bool-query"),
        to="model",
        why="writes the weights of a learned model: give --model MODEL",
    )
    RULES = (
        only("grades aggregate topics", "qrels", _OF_LEARNING),
        refuse("method", "sum"),
        refuse("method sum", "qrels model", "fuses without learning. Leave --qrels and --model out"),
        refuse("export", "qrels", "writes the weights of a learned model. Leave --qrels out"),
        refuse("depth tag", "export", "has no effect with --export, which writes weights"),
        refuse("nonnegative", "by_query"),
        refuse("ranker", "nonnegative", "has no effect with --nonnegative, which has its own learner"),
    )


def run(args: Arguments) -> int:
    """Learn a fusion, apply a learned fusion, or fuse by a rule."""
    if args.method is None and args.sum is None and args.qrels is None and args.model is None:
        raise common.UsageError(
            "no kind of fusion is chosen. Give --qrels FILE to learn, --model MODEL to fuse with a learned model, "
            "--method NAME to fuse by a rule, or --sum FEATURE"
        )
    args = args.but(runs=[*args.systems, *args.runs], depth=args.depth or DEPTH)
    if not args.runs:
        raise common.UsageError("no runs are named. Write: truerank fuse a.run b.run --method rrf -o fused.run")
    if args.json and (args.output == "-" or (args.output is None and args.qrels is None)):
        raise common.UsageError("--json prints a summary on standard output. Name a file for the fused run with -o RUN")
    if args.qrels is not None:
        return _learn(args)
    model = None
    if args.model is not None:
        model = common.load_as(
            truerank.RunFusion, args.model, "which is not a learned fusion. Learn one: add --qrels FILE"
        )
    pool = truerank.RunPool(common.read_runs(args, args.runs))
    _report_findings(pool)
    if args.export is not None:
        return _export(args, args.export, model, pool)
    if model is not None:
        fused = model.predict(pool, depth=args.depth, tag=args.tag or "fusion")
    else:
        fused = pool.to_run(_by_rule(pool, args), depth=args.depth, tag=args.tag or args.method or "sum")
    text = _write(fused, args)
    if text:
        common.tell(args, {"output": args.output, "topics": fused.n_queries, "documents": fused.n_rows}, text)
        lacking = any(finding["code"] == "missing-topic" for finding in pool.findings())
        next_command(
            Arguments(json=args.json), "judge", action="plan", files=[*args.runs, args.output], output="plan.csv",
            budget=max(100, 2 * fused.n_queries), topics="common" if lacking else None,
        )  # fmt: skip
    return 0


def _by_rule(pool: Any, args: Arguments) -> Any:
    """Return the scores of the pool's documents by --method or --sum."""
    from truerank.features.fusion import METHODS as RULES
    from truerank.features.fusion import weighted_sum
    from truerank.features.run_features import parse_features

    if args.sum is not None:
        feature, *others = parse_features(args.sum).parts
        if others:
            raise common.UsageError(f"--sum requires one feature, got {args.sum!r}. Name one feature")
        return weighted_sum(pool, feature, args.weights)
    rule = args.method or ""
    if rule.startswith("comb-"):
        _note_equal(pool, rule)
    return RULES[rule](pool)


def _learn(args: Arguments) -> int:
    from truerank.measures import parse_measures

    seed, convention = args.seed or 0, args.convention or QRELS_CONVENTION
    measures = " ".join(args.measures or ["AP nDCG@10"])
    if args.output is None:
        common.refuse_idle(args, ["tag"], "names the fused run, but no output is named. Add -o RUN")
    parse_measures(measures, convention)  # misspelt names fail before any file is read
    ranker_name = "nonnegative-list-net" if args.nonnegative else args.ranker or "list-net"
    settings = ranker_options.settings_of(ranker_name, args.set)
    ranker = ranker_options.make_ranker(ranker_name, settings)
    if "random_state" in ranker.get_params() and "random_state" not in settings:
        ranker.set_params(random_state=seed)
    depth: dict[str, Any] = {} if args.training_depth is None else {"depth": args.training_depth}
    model = truerank.RunFusion(ranker, features=args.features, nonnegative=args.nonnegative, **depth)
    others: dict[str, Any] = {}
    if args.by_query:
        others = {"one-weight": truerank.RunFusion(nonnegative=True, **depth)}
        model = truerank.QueryFusion(args.ranker and ranker, features=args.features, **depth)
    qrels = common.qrels_of(args)
    pool = truerank.RunPool(common.read_runs(args, args.runs), qrels)
    _report_findings(pool)
    evidence = truerank.cross_validate_fusion(
        pool, model, others=others, measures=measures, convention=convention, depth=args.depth or DEPTH,
        topics=args.topics, random_state=seed, **common.given(args, "cv"),
    )  # fmt: skip
    held_out = evidence.held_out["learned"]
    if others and not evidence.better_than("one-weight"):
        common.note("weights by query are not significantly better, so the model has one weight for each run")
        model, ranker_name = others["one-weight"], "nonnegative-list-net"
        held_out = evidence.held_out["one-weight"]
    model.fit(pool)
    assert pool.unretrieved is not None
    report: dict[str, Any] = evidence.to_dict() | {
        "runs": pool.names,
        "ranker": ranker_name,
        "features": str(model._features()),
        "convention": convention,
        "topics_without_runs": pool.topics_without_runs,
        "relevant_not_retrieved": int((pool.unretrieved > 0).sum()),
        "findings": pool.findings(),
    }
    if model.nonnegative:
        report["weights"] = model.run_weights()
    with one_step():
        if args.model is not None:
            truerank.save_model(model, args.model)
        if args.output is not None:
            held_out.tag = args.tag or "fusion"
            text = _write(held_out, args)
            if text and not args.json:
                common.note(f"{text}; each topic is fused with weights that were learned from other topics")
    if args.json:
        common.print_report(args, report)
    else:
        _print(report, evidence, args)
    if args.output not in (None, "-"):
        next_command(
            Arguments(systems=[*args.runs, args.output], qrels=args.qrels, topics=args.topics, json=args.json),
            "compare",
        )
    elif args.model is None:
        next_command(args.but(systems=args.runs, runs=[]), "fuse", model="fusion.json")
    else:
        next_command(Arguments(systems=args.runs, model=args.model, json=args.json), "fuse", output="fused.run")
    return 0


def _export(args: Arguments, engine: str, model: Any, pool: Any) -> int:
    from truerank.export.fusion_weights import certify_fusion, export_fusion

    text = export_fusion(model, engine)
    certificate = certify_fusion(model, engine, pool)
    with common.output(args.output) as stream:
        stream.write(text.rstrip("\n") + "\n")
    return common.tell(
        args,
        certificate,
        f"{certificate['format']}: the first 100 of {certificate['topics_equal']} of {certificate['topics']} "
        f"topics in our order, {certificate['rank_agreement']:.2%} of ranks; scores differ by at most "
        f"{certificate['largest_difference']:.2g} (by the engine's rule, computed here)",
    )


def _print(report: dict[str, Any], evidence: Any, args: Arguments) -> None:
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
        rule = "these topics count 0 for every method" if args.topics == "all" else "these topics are left out"
        print(f"judged topics that no run has: {len(absent)}; {rule}")
    if "weights" in report:
        print("\n" + common.table([[name, weight] for name, weight in report["weights"].items()], ["run", "weight"]))
    if args.model is not None:
        common.note(f"model written to {args.model}")


def _write(fused: Any, args: Arguments) -> str:
    """Write the run; return a description of the output, or "" if the output is stdout."""
    output = args.output or "-"
    fused.write(output)
    counts = f"{common.counted(fused.n_queries, 'topic')}, {common.counted(fused.n_rows, 'document')}"
    return "" if output == "-" else f"wrote {output}: {counts}"


def _note_equal(pool: Any, method: str) -> None:
    """Print a note on lists with a single score, to which min-max scaling gives the value 0."""
    import numpy as np

    low, high = (pool.per_list(way, pool.scores) for way in (np.minimum, np.maximum))
    equal = int(((pool.list_sizes > 0) & (low == high)).sum())
    if equal:
        common.note(
            f"truerank: {method} gives 0, the value of a worst document, to all documents of a list with equal scores "
            f"({common.counted(equal, 'list')}). Use --features 'min-max(equal=1)' for 1, or --method rrf"
        )


def _report_findings(pool: Any) -> None:
    words = {
        "missing-topic": "has no document for",
        "short-list": "has a short list (under a tenth of the usual) for",
        "all-tied": "has one score for all documents of",
    }
    for finding in pool.findings():
        topics = finding["topics"]
        what = f"run {finding['run']} {words[finding['code']]} {common.counted(len(topics), 'topic')}"
        common.note(f"{what}: {common.few(topics)}")
