"""`truerank judge`: plan what people should judge, and estimate from few human judgements and model judges.

plan: draw the documents of TREC runs that people should judge, and write a CSV file to fill in. estimate: print values
and differences of the runs from the filled file, with intervals that hold for any judges. agree: print how well two
judges agree. leaderboard: print whether model judges order the runs as people (--qrels) do. pool: print the loss of
each group of runs if the group had not contributed to the pool of judged documents.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import truerank
from truerank.cli import common, options, ranker_options
from truerank.cli.parser import Output, OutputFile, argument, option, positive, refuse
from truerank.core.files import one_step, read_text
from truerank.measures.conventions import QRELS_CONVENTION

_OF_PLAN = "budget output uniform all_values pair page texts queries meanings replace"
_WHY = "does not apply to {action}"


class Arguments(options.Judged, options.Topics, options.Json):
    INTERMIXED = True  # since files may be given by --runs alone
    action: str = argument("task, see above", choices=("plan", "estimate", "agree", "leaderboard", "pool"))
    files: list[str] = argument("runs or folders of runs; agree: two qrels", "[FILE …]")
    runs: list[str] = option("more runs or folders of runs", "FILE …")
    qrels: str | None = option("leaderboard and pool: human judgements", "FILE")
    groups: str | None = option("pool: file with the columns run and group", "CSV")
    depth: int | None = option("pool: depth of the pool (default: 100)", "N", type=positive)
    plan: str | None = option("the judged plan; with plan: the plan of an earlier round", "CSV")
    judges: list[str] | None = option("labels of model judges, as qrels, on any scale", "FILE …")
    measure: str | None = option(
        "DCG@k, P@k, RBP or R@k (default: DCG@10); leaderboard, pool: any mean (nDCG@10, AP)", "NAME"
    )
    budget: float | None = option("expected number of judgements (default: 100)", "N")
    output: OutputFile | None = option("output file of the plan", "CSV")
    human: str | None = option("human grades as qrels (default: the grades in the plan)", "FILE")
    pair: list[list[str]] | None = option("plan for this pair (default: all pairs)", "RUN", nargs=2, action="append")
    all_values: bool = option("plan for the values of the runs instead of their differences")
    uniform: bool = option("plan with the same probability for all documents")
    scale: list[float] | None = option("lowest and highest human grade (default: 0 4)", "G", nargs=2)
    totals: str | None = option("for R@k: lines of a topic and its number of relevant documents", "FILE")
    page: Output | None = option("also write a page on which a person can judge", "HTML")
    texts: str | None = option("texts of the documents for --page (JSON lines, SMART, a table, …)", "FILE", to="page")
    queries: str | None = option("texts of the topics for --page", "FILE", to="page")
    meanings: str | None = option("what each grade means, for --page: lines of a grade and a text", "FILE", to="page")
    seed: int | None = option("random seed of the sample (default: 0)", "N")
    replace: bool = option("plan: overwrite a file that has other grades, or another page")
    convention: options.Convention | None = options.convention(shown="trec")
    RULES = (
        refuse(_OF_PLAN, "action=leaderboard action=pool", _WHY),
        refuse("groups depth", "action=plan action=estimate action=agree action=leaderboard", _WHY),
        refuse("judges seed topics", "action=pool", _WHY),
        refuse("plan human scale totals", "action=leaderboard action=pool", _WHY),
        refuse("qrels", "action=plan action=estimate action=agree", _WHY),
        refuse(f"{_OF_PLAN} seed", "action=estimate action=agree", _WHY),
        refuse("pair", "all_values"),
        refuse("human", "action=plan action=agree", _WHY),
        refuse("plan judges measure topics scale totals convention", "action=agree", _WHY),
    )


def run(args: Arguments) -> int:
    """Run the action: plan, estimate, agree, leaderboard or pool."""
    files = [*args.files, *args.runs]
    if not files:
        raise common.UsageError(f"no files are named. Name {'two qrels' if args.action == 'agree' else 'runs'}")
    if args.action == "leaderboard":
        return _leaderboard(args, files)
    if args.action == "pool":
        if args.qrels is None or args.groups is None:
            raise common.UsageError("pool requires judgements and groups. Add --qrels FILE --groups CSV")
        given = common.given(args, "measure", "depth") | {"convention": args.convention or QRELS_CONVENTION}
        bias = truerank.pool_bias(args.qrels, common.read_runs(args, files), args.groups, **given)
        return common.show(args, bias.to_dict(), str(bias))
    if args.action == "plan":
        return _plan(args, files)
    if args.action == "estimate":
        human = None if args.human is None else common.qrels_of(args, args.human)
        found = planned(
            args, files, args.plan, args.topics, measure=args.measure, human=human, judges=args.judges,
            scale=args.scale, totals=_totals(args.totals),
        )  # fmt: skip
        return common.show(args, found.to_dict(), str(found))
    if len(files) != 2:
        raise common.UsageError(f"agree compares two judges, got {len(files)} files. Name two files")
    agreed = truerank.agreement(*(common.qrels_of(args, path) for path in files))
    return common.show(args, agreed.to_dict(), f"first {files[0]}, second {files[1]}: {agreed}")


def _leaderboard(args: Arguments, files: list[str]) -> int:
    if args.qrels is None or not args.judges:
        raise common.UsageError("a leaderboard requires two kinds of judges. Add --qrels HUMAN --judges FILE …")
    human = common.qrels_of(args)
    given = common.given(args, "measure", "topics") | {"convention": args.convention or QRELS_CONVENTION}
    found = truerank.leaderboard(
        human,
        _labels(args, args.judges),
        common.read_runs(args, files),
        random_state=args.seed or 0,
        **given,
    )
    return common.show(args, found.to_dict(), str(found))


def _plan(args: Arguments, files: list[str]) -> int:
    if args.output is None:
        raise common.UsageError("no output file of the plan is named. Add -o judge.csv")
    if args.judges and args.plan is None:
        raise common.UsageError("--judges requires human judgements of an earlier round. Add --plan CSV")
    given = common.given(args, "measure", "budget", "uniform", "scale")
    plan = truerank.plan_judgements(
        common.read_runs(args, files), judges=_labels(args, args.judges),
        human=None if args.plan is None else truerank.read_plan(args.plan),
        pairs=None if args.all_values else [(a, b) for a, b in args.pair] if args.pair else "all",
        random_state=args.seed or 0, topics=args.topics, totals=_totals(args.totals),
        convention=args.convention or QRELS_CONVENTION, **given,
    )  # fmt: skip
    with one_step():
        plan.write(args.output, replace=args.replace)
        if args.page is not None:
            _write_page(args, args.page, args.output, plan)
    report = {"to_judge": len(plan.to_judge), "expected": plan.expected, "documents": len(set(plan.keys)),
              "rounds": plan.n_rounds, "plan": args.output}  # fmt: skip
    text = f"{args.output}: {plan}. Fill in the column `grade` where `judge` is yes."
    return common.tell(args, report, f"truerank judge: {text}")


def _write_page(args: Arguments, target: str, judged: str, plan: Any) -> None:
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
        named = "Name the file of the texts with --texts FILE" if args.texts is None else f"{args.texts} lacks them"
        common.note(f"{target} shows {common.counted(unknown, 'document')} by id only, without a text. {named}")
    page = judging_page(plan, texts, queries, common.printable(os.path.basename(judged)), scale, meanings)
    if not args.replace and os.path.isfile(target) and Path(target).read_bytes() not in (b"", page.encode()):
        raise common.InvalidInputError(
            f"{target} exists and differs. Grades that somebody has chosen there but not saved would be lost. Name "
            "another file, or add --replace"
        )
    with common.output(target) as stream:
        stream.write(page)


def _meanings(path: str) -> dict[int, str]:
    """Read lines that consist of a grade, blanks and the meaning of the grade."""
    found = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        grade, _, text = line.strip().partition(" ")
        if not re.fullmatch(r"[0-9]", grade.rstrip(":")):
            raise common.DataFileError(
                f"expected a grade and its meaning, such as '2 answers in part', got {line!r:.60}", path, number
            )
        found[int(grade.rstrip(":"))] = text.strip()
    return found


def planned(
    args: options.JudgementOptions, files: list[str], plan: str | None, topics: str | None,
    judges: list[str] | None = None, **more: Any,
) -> Any:  # fmt: skip
    """Return the estimates of runs from `--plan`."""
    if plan is None:
        raise common.UsageError(
            "labels without a plan have unknown probabilities of being chosen. Add --plan with the file that "
            "`truerank judge plan` wrote"
        )
    more = {name: value for name, value in more.items() if value is not None}
    return truerank.estimate(
        common.read_runs(args, files), plan=plan, judges=_labels(args, judges), topics=topics,
        convention=args.convention or QRELS_CONVENTION, **more,
    )  # fmt: skip


def _labels(args: options.JudgementOptions, judges: list[str] | None) -> dict[str, Any]:
    """Return the labels of model judges by name; `--grades` also gives the numbers of their words."""
    from truerank.judging.predictions import judges_by_name

    paths = judges_by_name(list(common.run_paths(judges or ())))
    return {name: common.judgements_of(args, path) for name, path in paths.items()}


def from_plan(args: options.Compared, plan: str, judges: list[str] | None, measures: list[str]) -> Any:
    """Return the estimates for `compare` and `report`."""
    files = [*args.systems, *args.named]
    return planned(args, files, plan, args.topics, measure=" ".join(measures), judges=judges)


def _totals(path: str | None) -> dict[str, float] | None:
    if path is None:
        return None
    pairs = common.read_pairs(enumerate(read_text(path).splitlines(), 1), "topic number", path)
    return {topic: float(ranker_options.json_value(number)) for topic, number in pairs.items()}
