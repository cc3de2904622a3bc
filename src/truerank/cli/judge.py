"""`truerank judge`: plan what people should judge, and estimate from few human judgements and model judges.

plan: draw the documents of TREC runs that people should judge, and write a CSV file to fill in. estimate: print values
and differences of the runs from the filled file, with intervals that hold for any judges. agree: print how well two
judges agree. leaderboard: print whether model judges order the runs as people (--qrels) do. pool:
print what each group of runs would lose if it had not fed the pool of judged documents.
"""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import Any

import truerank
from truerank.cli import common, options, ranker_options
from truerank.core.files import one_step, read_text


def configure(parser: options.Parser) -> None:
    add = options.adder(parser)
    parser.intermixed = True  # since files may be given by --runs alone
    add("action", "task, see above", choices=("plan", "estimate", "agree", "leaderboard", "pool"))
    add("files [FILE …]", "runs or folders of runs; agree: two qrels")
    add("--runs FILE …", "more runs or folders of runs", default=[])
    add("--qrels FILE", "leaderboard and pool: human judgements")
    add("--groups CSV", "pool: file with the columns run and group")
    add("--depth N", "pool: depth of the pool (default: 100)", type=options.positive)
    add("--plan CSV", "the judged plan; with plan: the plan of an earlier round")
    add("--judges FILE …", "labels of model judges, as qrels, on any scale")
    add("--measure NAME", "DCG@k, P@k, RBP or R@k (default: DCG@10); leaderboard, pool: any mean (nDCG@10, AP)")
    add("--budget N", "expected number of judgements (default: 100)", type=float)
    add("-o --output CSV", "output file of the plan", type=options.OutputFile)
    add("--human FILE", "human grades as qrels (default: the grades in the plan)")
    add("--pair RUN", "plan for this pair (default: all pairs)", nargs=2, action="append")
    add("--all-values", "plan for the values of the runs instead of their differences")
    add("--uniform", "plan with the same probability for all documents")
    add("--scale G", "lowest and highest human grade (default: 0 4)", nargs=2, type=float)
    add("--totals FILE", "for R@k: lines of a topic and its number of relevant documents")
    add("--page HTML", "also write a page on which a person can judge", type=options.Output)
    add("--texts FILE", "texts of the documents for --page (JSON lines, SMART, a table, …)", to="page")
    add("--queries FILE", "texts of the topics for --page", to="page")
    add("--meanings FILE", "what each grade means, for --page: lines of a grade and a text", to="page")
    add("--seed N", "random seed of the sample (default: 0)", type=int)
    options.share(parser, "grades", "aggregate")
    options.share(parser, "topics", to="")
    add("--replace", "plan: overwrite a file that has other grades, or another page")
    options.share(parser, "json")
    options.add_convention(parser, shown="trec")
    own, why = (
        "budget output uniform all_values pair page texts queries meanings seed replace",
        "does not belong to {action}",
    )
    options.refuse(parser, own.replace("seed ", ""), "action=leaderboard action=pool", why)
    options.refuse(parser, "groups depth", "action=plan action=estimate action=agree action=leaderboard", why)
    options.refuse(parser, "judges seed topics", "action=pool", why)
    options.refuse(parser, "plan human scale totals", "action=leaderboard action=pool", why)
    options.refuse(parser, "qrels", "action=plan action=estimate action=agree", why)
    options.refuse(parser, own, "action=estimate action=agree", why)
    options.refuse(parser, "pair", "all_values")
    options.refuse(parser, "human", "action=plan action=agree", why)
    options.refuse(parser, "plan judges measure topics scale totals convention", "action=agree", why)


def run(args: argparse.Namespace) -> int:
    """Plan, estimate, or compare judges."""
    args.files = [*args.files, *args.runs]
    if not args.files:
        raise common.UsageError(f"{args.action} needs files. Name {'two qrels' if args.action == 'agree' else 'runs'}")
    if args.action == "leaderboard":
        return _leaderboard(args)
    if args.action == "pool":
        if args.qrels is None or args.groups is None:
            raise common.UsageError("pool needs judgements and groups: --qrels FILE --groups CSV")
        given = common.given(args, "measure", "depth") | {"convention": args.convention or "trec"}
        bias = truerank.pool_bias(args.qrels, common.read_runs(args, args.files), args.groups, **given)
        return common.show(args, bias.to_dict(), str(bias))
    if args.action == "plan":
        return _plan(args)
    if args.action == "estimate":
        found = planned(args, args.files)
        return common.show(args, found.to_dict(), str(found))
    if len(args.files) != 2:
        raise common.UsageError(f"agree compares two judges, got {len(args.files)} files")
    agreed = truerank.agreement(*(common.read_qrels(args, path) for path in args.files))
    return common.show(args, agreed.to_dict(), f"first {args.files[0]}, second {args.files[1]}: {agreed}")


def _leaderboard(args: argparse.Namespace) -> int:
    if args.qrels is None or not args.judges:
        raise common.UsageError("a leaderboard needs human judgements and model judges: --qrels HUMAN --judges FILE …")
    human = common.read_qrels(args)
    given = common.given(args, "measure", "topics") | {"convention": args.convention or "trec"}
    found = truerank.leaderboard(
        human,
        [common.judgements_of(args, path) for path in common.run_paths(args.judges)],
        common.read_runs(args, args.files),
        random_state=args.seed or 0,
        **given,
    )
    return common.show(args, found.to_dict(), str(found))


def _plan(args: argparse.Namespace) -> int:
    if args.output is None:
        raise common.UsageError("name the file of the plan with -o judge.csv")
    if args.judges and args.plan is None:
        raise common.UsageError("--judges helps to plan once people have judged: add --plan with an earlier round")
    given = common.given(args, "measure", "budget", "uniform", "scale")
    plan = truerank.plan_judgements(
        common.read_runs(args, args.files), judges=args.judges or (),
        human=None if args.plan is None else truerank.read_plan(args.plan),
        pairs=None if args.all_values else args.pair or "all", random_state=args.seed or 0, **given | _settings(args),
    )  # fmt: skip
    with one_step():
        plan.write(args.output, replace=args.replace)
        if args.page is not None:
            _write_page(args, plan)
    report = {"to_judge": len(plan.to_judge), "expected": plan.expected, "documents": len(set(plan.keys)),
              "rounds": plan.n_rounds, "plan": args.output}  # fmt: skip
    text = f"{args.output}: {plan}. Fill in the column `grade` where `judge` is yes."
    return common.tell(args, report, f"truerank judge: {text}")


def _write_page(args: argparse.Namespace, plan: Any) -> None:
    from truerank.report.judging import judging_page

    wanted = set(plan.documents[plan.drawn].tolist())
    documents = [] if args.texts is None else truerank.read_documents(args.texts)
    texts = {one.id: " ".join(map(str, one.text.values())) for one in documents if one.id in wanted}
    asked = [] if args.queries is None else truerank.read_queries(args.queries)
    queries = {one.id: str(one.text["text"]) for one in asked}
    scale = (0, 4) if args.scale is None else (int(args.scale[0]), int(args.scale[1]))
    meanings = {} if args.meanings is None else _meanings(args.meanings)
    unknown = sum(document not in texts for document in wanted)
    if unknown:
        named = "name the file of their texts with --texts" if args.texts is None else f"{args.texts} lacks them"
        common.note(f"{args.page}: shows only the id of {common.counted(unknown, 'document')}; {named}")
    page = judging_page(plan, texts, queries, common.printable(os.path.basename(args.output)), scale, meanings)
    if not args.replace and os.path.isfile(args.page) and Path(args.page).read_bytes() not in (b"", page.encode()):
        raise common.InvalidInputError(
            f"{args.page}: exists and differs; grades that somebody has chosen there and not saved would be lost. Name "
            "another file, or add --replace"
        )
    with common.output(args.page) as stream:
        stream.write(page)


def _meanings(path: str) -> dict[int, str]:
    """Read lines of a grade, blanks and what it means."""
    found = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        grade, _, text = line.strip().partition(" ")
        if not re.fullmatch(r"[0-9]", grade.rstrip(":")):
            raise common.DataFileError(
                f"line {number} is {line!r:.60}; write a grade and its meaning, such as: 2 answers in part",
                path,
                number,
            )
        found[int(grade.rstrip(":"))] = text.strip()
    return found


def planned(args: argparse.Namespace, files: list[str]) -> Any:
    """Return the estimates of runs from `--plan`."""
    if args.plan is None:
        raise common.UsageError(
            "labels without a plan have unknown probabilities of being chosen: give --plan with the file that "
            "`truerank judge plan` wrote"
        )
    given = common.given(args, "measure", "human", "plan", "judges", "scale")
    if args.human is not None:
        given["human"] = common.read_qrels(args, args.human)
    return truerank.estimate(common.read_runs(args, files), **given, **_settings(args))


def from_plan(args: argparse.Namespace, measures: list[str]) -> Any:
    """Return the estimates for `compare` and `report`."""
    args.measure, args.human, args.scale, args.totals = " ".join(measures), None, None, None
    return planned(args, [*args.systems, *args.named])


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    totals = None
    if args.totals is not None:
        lines = enumerate(read_text(args.totals).splitlines(), 1)
        pairs = common.read_pairs(lines, "topic number", args.totals)
        totals = {topic: float(ranker_options.json_value(number)) for topic, number in pairs.items()}
    return {"topics": args.topics, "totals": totals, "convention": args.convention or "trec"}
