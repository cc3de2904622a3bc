"""`truerank judge`: what people should judge, and what few judgements and model judges show."""

from __future__ import annotations

import argparse
import os
from typing import Any

from truerank.cli import common, options

OF = {
    "plan": ("budget", "output", "uniform", "all_values", "pair", "page", "texts", "queries", "seed"),
    "estimate": ("human",),
    "both": ("plan", "judges", "measure", "topics", "scale", "totals", "convention"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.description = (
        "plan: draw the documents of TREC runs that people should judge, as a CSV file to fill in. estimate: values "
        "and differences of the runs from the filled file, with intervals that hold whatever the judges do. agree: how "
        "well two judges agree."
    )
    parser.add_argument("action", choices=("plan", "estimate", "agree"))
    parser.add_argument("files", nargs="+", metavar="FILE", help="runs or folders of them; of agree two qrels")
    parser.add_argument("--plan", metavar="CSV", help="the plan; with plan: an earlier one, judged, for another round")
    parser.add_argument(
        "--judges", nargs="+", metavar="FILE", help="labels of model judges, as qrels, with any labels they use"
    )
    parser.add_argument("--measure", metavar="NAME", help="DCG@k, P@k, RBP or R@k (default: DCG@10)")
    parser.add_argument("--budget", type=float, metavar="N", help="expected number of judgements (default: 100)")
    parser.add_argument("-o", "--output", metavar="CSV", help="the plan to write")
    parser.add_argument("--human", metavar="FILE", help="people's grades as qrels (default: those in the plan)")
    parser.add_argument("--pair", nargs=2, action="append", metavar="RUN", help="plan for this pair (default: all)")
    parser.add_argument("--all-values", action="store_true", help="plan for the runs' own values, not for differences")
    parser.add_argument("--uniform", action="store_true", help="plan with one probability for all documents")
    parser.add_argument("--scale", nargs=2, type=float, metavar="G", help="lowest and highest grade (default: 0 4)")
    parser.add_argument("--totals", metavar="FILE", help="for R@k: a line for each topic, topic and relevant documents")
    parser.add_argument("--page", metavar="HTML", help="write a page, too, on which a person can judge")
    parser.add_argument("--texts", metavar="FILE", help="documents as text for --page (JSON lines, SMART, a table, …)")
    parser.add_argument("--queries", metavar="FILE", help="the topics as text for --page")
    parser.add_argument("--seed", type=int, metavar="N", help="of the sample (default: 0)")
    options.add_topics_option(parser)
    options.add_convention_option(parser, default=None, shown="trec")
    options.add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Plan, estimate or compare two judges."""
    idle = [name for group, names in OF.items() if group != args.action for name in names if hasattr(args, name)]
    if args.action == "agree":
        common.refuse_idle(args, idle, "does not belong to agree")
        if len(args.files) != 2:
            raise common.UsageError(f"agree is about two judges, got {len(args.files)} files")
        from truerank.io.trec import read_qrels
        from truerank.judging.agreement import agreement

        found = agreement(*(read_qrels(path) for path in args.files))
        return common.show(args, found.to_dict(), f"first {args.files[0]}, second {args.files[1]}: {found}")
    common.refuse_idle(args, [name for name in idle if name not in OF["both"]], f"does not belong to {args.action}")
    return (_plan if args.action == "plan" else show_estimate)(args)


def _plan(args: argparse.Namespace) -> int:
    from truerank.judging.plan import plan_judgements, read_plan

    if args.output is None:
        raise common.UsageError("name the file of the plan with -o judge.csv")
    common.check_file("-o", args.output)
    common.check_writable(args.page)
    if args.page is None:
        common.refuse_idle(args, ["texts", "queries"], "belongs to --page")
    earlier = None if args.plan is None else read_plan(args.plan)
    if args.judges and earlier is None:
        raise common.UsageError("--judges helps to plan once people have judged: add --plan with an earlier round")
    if args.pair and args.all_values:
        raise common.UsageError("--pair and --all-values exclude each other")
    plan = plan_judgements(
        _runs(args.files), args.measure or "DCG@10", 100 if args.budget is None else args.budget,
        judges=args.judges or (), human=earlier, pairs=None if args.all_values else args.pair or "all",
        uniform=args.uniform, random_state=args.seed or 0, **_settings(args),
    )  # fmt: skip
    plan.write(args.output)
    if args.page is not None:
        from truerank.io.documents import read_documents, read_queries
        from truerank.report.judging import judging_page

        wanted = set(plan.documents[plan.drawn].tolist())
        texts = {} if args.texts is None else {
            one.id: " ".join(map(str, one.text.values())) for one in read_documents(args.texts) if one.id in wanted
        }  # fmt: skip
        queries = {} if args.queries is None else {one.id: str(one.text["text"]) for one in read_queries(args.queries)}
        highest = 4 if args.scale is None else int(args.scale[1])
        with common.output(args.page) as stream:
            stream.write(judging_page(plan, texts, queries, os.path.basename(args.output), highest))
    report = {"to_judge": len(plan.to_judge), "expected": plan.expected, "documents": len(set(plan.keys)),
              "rounds": plan.n_rounds, "plan": args.output}  # fmt: skip
    text = f"{args.output}: {plan}. Fill in the column `grade` where `judge` is yes."
    return common.tell(args, report, f"truerank judge: {text}")


def show_estimate(args: argparse.Namespace) -> int:
    """Print the estimates of a plan with labels."""
    found = planned(args, args.files)
    return common.show(args, found.to_dict(), str(found))


def planned(args: argparse.Namespace, files: list[str]) -> Any:
    """The estimates of runs from `--plan`, for this and other commands."""
    from truerank.judging.estimate import estimate

    if args.plan is None:
        raise common.UsageError(
            "labels without a plan have unknown probabilities of being chosen: give --plan with the file that "
            "`truerank judge plan` wrote"
        )
    measure = args.measure or "DCG@10"
    return estimate(_runs(files), measure, args.human, args.plan, args.judges or (), **_settings(args))


def from_plan(args: argparse.Namespace, measures: list[str], idle: list[str]) -> Any:
    """The estimates of runs for `compare` and `report`, whose other options in `idle` have no effect then."""
    common.refuse_idle(args, idle, "has no effect with --plan, which has estimates of its own")
    args.measure, args.human, args.scale, args.totals = " ".join(measures), None, None, None
    return planned(args, [*args.systems, *args.named])


def _runs(files: list[str]) -> dict[str, Any]:
    from truerank.io.trec import read_run

    paths = common.run_paths(files)
    return {name: read_run(path) for name, path in zip(common.run_names(paths), common.progress(paths, "runs"))}


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    totals = None
    if args.totals is not None:
        from truerank.core.files import read_text

        lines = enumerate(read_text(args.totals).splitlines(), 1)
        pairs = common.read_pairs(lines, "topic number", args.totals)
        totals = {topic: float(common.json_value(number)) for topic, number in pairs.items()}
    return {"topics": args.topics, "scale": args.scale, "totals": totals, "convention": args.convention or "trec"}
