"""`truerank judge`: plan what people should judge, and estimate from few human judgements and model judges.

plan: draw the documents of TREC runs that people should judge, and write a CSV file to fill in. estimate: print values
and differences of the runs from the filled file, with intervals that hold for any judges. agree: print how well two
judges agree.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

from truerank.cli import common, options
from truerank.core.files import read_text
from truerank.io.documents import read_documents, read_queries
from truerank.io.trec import read_qrels
from truerank.judging.agreement import agreement

# Options of one action; all other options belong to plan and estimate.
OF = {
    "plan": ("budget", "output", "uniform", "all_values", "pair", "page", "texts", "queries", "seed"),
    "estimate": ("human",),
    "agree": (),
}
BOTH = ("plan", "judges", "measure", "topics", "scale", "totals", "convention")


def configure(parser: argparse.ArgumentParser) -> None:
    add = options.adder(parser)
    add("action", "task, see above", choices=tuple(OF))
    add("files FILE …", "runs or folders of runs; agree: two qrels")
    add("--plan CSV", "the judged plan; with plan: the plan of an earlier round")
    add("--judges FILE …", "labels of model judges, as qrels, on any scale")
    add("--measure NAME", "DCG@k, P@k, RBP or R@k (default: DCG@10)")
    add("--budget N", "expected number of judgements (default: 100)", type=float)
    add("-o --output CSV", "output file of the plan", type=options.OutputFile)
    add("--human FILE", "human grades as qrels (default: the grades in the plan)")
    add("--pair RUN", "plan for this pair (default: all pairs)", nargs=2, action="append")
    add("--all-values", "plan for the values of the runs instead of their differences")
    add("--uniform", "plan with the same probability for all documents")
    add("--scale G", "lowest and highest human grade (default: 0 4)", nargs=2, type=float)
    add("--totals FILE", "for R@k: lines of a topic and its number of relevant documents")
    add("--page HTML", "also write a page on which a person can judge", type=options.Output)
    add("--texts FILE", "texts of the documents for --page (JSON lines, SMART, a table, …)")
    add("--queries FILE", "texts of the topics for --page")
    add("--seed N", "random seed of the sample (default: 0)", type=int)
    options.share(parser, "topics", "json")
    options.add_convention(parser, shown="trec")


def run(args: argparse.Namespace) -> int:
    """Plan, estimate or compare two judges."""
    others = [name for action, names in OF.items() if action != args.action for name in names]
    common.refuse_idle(args, others, f"does not belong to {args.action}")
    if args.action == "plan":
        return _plan(args)
    if args.action == "estimate":
        found = planned(args, args.files)
        return common.show(args, found.to_dict(), str(found))
    common.refuse_idle(args, BOTH, "does not belong to agree")
    if len(args.files) != 2:
        raise common.UsageError(f"agree compares two judges, got {len(args.files)} files")
    agreed = agreement(*(read_qrels(path) for path in args.files))
    return common.show(args, agreed.to_dict(), f"first {args.files[0]}, second {args.files[1]}: {agreed}")


def _plan(args: argparse.Namespace) -> int:
    from truerank.judging.plan import plan_judgements, read_plan

    if args.output is None:
        raise common.UsageError("name the file of the plan with -o judge.csv")
    if args.page is None:
        common.refuse_idle(args, ["texts", "queries"], "belongs to --page")
    if args.judges and args.plan is None:
        raise common.UsageError("--judges helps to plan once people have judged: add --plan with an earlier round")
    if args.pair and args.all_values:
        raise common.UsageError("--pair and --all-values exclude each other")
    given = common.given(args, "measure", "budget", "uniform", "scale")
    plan = plan_judgements(
        common.read_runs(args.files), judges=args.judges or (),
        human=None if args.plan is None else read_plan(args.plan),
        pairs=None if args.all_values else args.pair or "all", random_state=args.seed or 0, **given | _settings(args),
    )  # fmt: skip
    plan.write(args.output)
    if args.page is not None:
        from truerank.report.judging import judging_page

        wanted = set(plan.documents[plan.drawn].tolist())
        documents = [] if args.texts is None else read_documents(args.texts)
        texts = {one.id: " ".join(map(str, one.text.values())) for one in documents if one.id in wanted}
        queries = {} if args.queries is None else {one.id: str(one.text["text"]) for one in read_queries(args.queries)}
        scale = (0, 4) if args.scale is None else (int(args.scale[0]), int(args.scale[1]))
        with common.output(args.page) as stream:
            stream.write(judging_page(plan, texts, queries, os.path.basename(args.output), scale))
    report = {"to_judge": len(plan.to_judge), "expected": plan.expected, "documents": len(set(plan.keys)),
              "rounds": plan.n_rounds, "plan": args.output}  # fmt: skip
    text = f"{args.output}: {plan}. Fill in the column `grade` where `judge` is yes."
    return common.tell(args, report, f"truerank judge: {text}")


def planned(args: argparse.Namespace, files: list[str]) -> Any:
    """Return the estimates of runs from `--plan`."""
    from truerank.judging.estimate import estimate

    if args.plan is None:
        raise common.UsageError(
            "labels without a plan have unknown probabilities of being chosen: give --plan with the file that "
            "`truerank judge plan` wrote"
        )
    given = common.given(args, "measure", "human", "plan", "judges", "scale")
    return estimate(common.read_runs(files), **given, **_settings(args))


def from_plan(args: argparse.Namespace, measures: list[str], idle: list[str]) -> Any:
    """Return the estimates for `compare` and `report`, whose options in `idle` then have no effect."""
    common.refuse_idle(args, idle, "has no effect with --plan, which has estimates of its own")
    args.measure, args.human, args.scale, args.totals = " ".join(measures), None, None, None
    return planned(args, [*args.systems, *args.named])


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    totals = None
    if args.totals is not None:
        lines = enumerate(read_text(args.totals).splitlines(), 1)
        pairs = common.read_pairs(lines, "topic number", args.totals)
        totals = {topic: float(common.json_value(number)) for topic, number in pairs.items()}
    return {"topics": args.topics, "totals": totals, "convention": args.convention or "trec"}
