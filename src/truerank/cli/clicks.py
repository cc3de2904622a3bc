"""`truerank clicks`: estimate examination and rankers' values from click logs, make training rows, and interleave.

examine LOG: estimate how often each position is examined, and whether the log identifies it. value LOG --runs RUN …:
estimate the value of rankers that were never shown, and the share of their lists that nobody saw. train-data LOG
--data FILE -o FILE: write documents with estimated relevance as grades. interleave RUN RUN … -o FILE: write mixed
lists. interleave --log LOG: compare rankers by the clicks on mixed lists.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import truerank
from truerank.cli import common, options, ranker_options
from truerank.cli.describe import as_words, read_as_found
from truerank.cli.parser import OutputFile, argument, only, option, within

if TYPE_CHECKING:
    from truerank.clicks.examination import Examination
    from truerank.clicks.log import ClickLog
    from truerank.data.ranking_data import RankingData

LOG = ("format", "queries", "columns", "first_position", "bad", "shown_action", "click_action")
FIT = ("model", "method", "max_position")
OF = {
    "examine": (*LOG, *FIT, "data", "level", "seed", "plot"),
    "value": (*LOG, *FIT, "data", "level", "seed", "runs", "cutoff", "discount", "estimator", "weights", "min_shown",
              "about"),
    "train-data": (*LOG, *FIT, "data", "output", "least", "seed"),
    "interleave": (*LOG, "log", "output", "length", "seed", "unit", "looks", "level"),
}  # fmt: skip


class Arguments(options.Columns, options.Json):
    action: str = argument("task, see above", choices=tuple(OF))
    files: list[str] = argument("click log; for interleave, the runs to mix", "[FILE …]")
    reading = within("reading the log")
    format: str | None = reading("log format (default: by the file's ending)", choices=("table", "json-lines", "ubi"))
    queries: str | None = reading("file of UBI queries, whose hits are the displayed lists", "FILE")
    columns: list[str] | None = reading(
        "columns: impression, query, document, position, clicked, ranker, propensity, session, time, team",
        "NAME=COLUMN …",
    )
    first_position: int | None = reading("number of the first position (default: 1)", choices=(0, 1))
    bad: str | None = reading(
        "stop at a bad row, or leave out its impression and count it (default: error)", choices=("error", "skip")
    )
    shown_action: str | None = reading("UBI action_name of a shown document (default: impression)", "NAME")
    click_action: str | None = reading("UBI action_name of a click (default: click)", "NAME")
    fit = within("examination")
    model: str | None = fit("click model (default: position)", choices=("position", "trust"))
    method: str | None = fit("estimator; em needs the features of --data (default: harvest)", choices=("harvest", "em"))
    max_position: int | None = fit("largest position (default: by the number of clicks, at most 50)", "K")
    data: str | None = fit("documents with features and ids, a table or LETOR text", "FILE")
    plot: OutputFile | None = fit("examine: picture of the propensities (.png, .svg, .pdf, .html)", "FILE")
    valued = within("value and train-data")
    runs: list[str] | None = valued("TREC runs of the rankers, or folders of runs", "RUN …")
    cutoff: int | None = valued("number of ranks that count (default: 10)", "K")
    discount: str | None = valued("weight of a rank (default: clicks)", choices=("clicks", "dcg"))
    estimator: str | None = valued(
        "estimator (default: self-normalised)", choices=("self-normalised", "ips", "doubly-robust")
    )
    weights: str | None = valued("weights of queries (default: impressions)", choices=("impressions", "uniform"))
    min_shown: int | None = valued("minimum number of impressions of a shown document (default: 1)", "N")
    about: str | None = valued(
        "intervals for new impressions of these queries, or for other queries like these (default: clicks)",
        choices=("clicks", "queries"),
    )
    least: float | None = valued("train-data: lower limit of the divisor (default: 1)", "N")
    mix = within("interleave")
    log: str | None = mix("clicks on interleaved lists, with the column team", "LOG")
    length: int | None = mix("documents in a list (default: 10)", "N")
    unit: str | None = mix("independent unit (default: session)", choices=("session", "query", "impression"))
    looks: int | None = mix("number of intervals in --json, evenly spread over the units (default: 1)", "N")
    output: OutputFile | None = option("rows (.parquet, .csv) or lists (JSON lines)", "FILE")
    level: float | None = option("level of the intervals (default: 0.95)", "P")
    seed: int | None = option("random seed (default: 0)", "N")
    RULES = (only(options.Columns, "data", "requires --data FILE"),)


def run(args: Arguments) -> int:
    """Run the action: examine, value, train-data or interleave."""
    known = {name for names in OF.values() for name in names}
    common.refuse_idle(args, sorted(known - set(OF[args.action])), f"does not apply to {args.action}")
    if args.action == "interleave":
        return _mix(args) if args.log is None else _compare(args, args.log)
    if len(args.files) != 1:
        raise common.UsageError(f"{args.action} reads one click log, got {len(args.files)} files. Name one file")
    return {"examine": _examine, "value": _value, "train-data": _train_data}[args.action](args)


def _read(args: Arguments, path: str) -> ClickLog:
    from truerank.clicks.log import left_out
    from truerank.clicks.read import read_clicks

    columns = ranker_options.key_values("--columns", "name=column", args.columns or ())
    log = read_clicks(path, columns=columns, **common.given(args, *(name for name in LOG if name != "columns")))
    for one in left_out(log.skipped) if args.action != "examine" else ():  # which lists them itself
        common.note(f"truerank clicks: {path}: {common.worded(one, args.wording)}")
    return log


def _fitted(args: Arguments, log: ClickLog) -> Examination:
    from truerank.clicks.examination import Examination

    if args.method == "em" and args.data is None:
        raise common.UsageError("--method em estimates relevance from features. Add --data FILE")
    if args.method != "em" and args.data is not None and args.action == "examine":
        raise common.UsageError("--data has no effect without --method em. Leave --data out")
    data = _features(args, args.data) if args.method == "em" and args.data is not None else None
    settings = common.given(args, "model", "method", "max_position", *(["level"] if args.action == "examine" else []))
    return Examination(random_state=args.seed or 0, **settings).fit(log, data)


def _features(args: Arguments, path: str) -> RankingData:
    """Return the numeric columns of `--data`, without text columns, which click models do not use."""
    if not common.table_kind(path):
        return common.read_data(path, args)
    data, found = read_as_found(path, args, trains=False)
    if found:
        common.note(f"truerank clicks: {path} is read with these options: {shlex.join(as_words(found))}")
    return data


def _examine(args: Arguments) -> int:
    from truerank.clicks.checkup import examine_log

    log = _read(args, args.files[0])
    seen, found = _fitted(args, log), examine_log(log)
    if args.plot is not None:
        seen.plot().save(args.plot)
    about = {"findings": found, "rows": log.n_rows, "impressions": log.n_impressions, "skipped": log.skipped}
    text = "\n".join([repr(log), *(f"  {common.worded(finding, args.wording)}" for finding in found), "", str(seen)])
    return common.show(args, seen.to_dict() | about, text)


def _value(args: Arguments) -> int:
    from truerank.clicks.value import evaluate_from_clicks

    if not args.runs:
        raise common.UsageError("clicks value requires the runs of the rankers. Add --runs new.run old.run")
    if args.data is not None and args.estimator != "doubly-robust" and args.method != "em":
        raise common.UsageError("--data requires --estimator doubly-robust or --method em. Leave --data out")
    log = _read(args, args.files[0])
    settings = common.given(args, "cutoff", "discount", "estimator", "weights", "min_shown", "about", "level")
    if args.data is not None and args.estimator == "doubly-robust":
        settings["features"] = _features(args, args.data)
    found = evaluate_from_clicks(log, common.read_runs(args, args.runs), examination=_fitted(args, log), **settings)
    return common.show(args, found.to_dict(), str(found))


def _train_data(args: Arguments) -> int:
    from truerank.clicks.training import training_data

    if args.data is None or args.output is None:
        raise common.UsageError("train-data requires features and an output file. Add --data FILE -o FILE")
    log = _read(args, args.files[0])
    seen = _fitted(args, log)
    found = training_data(log, _features(args, args.data), seen, **common.given(args, "least"))
    truerank.write_table(found.data, args.output)
    report = {"rows": found.data.n_rows, "queries": found.data.n_queries, "identified": seen.identified_}
    report |= {"reasons": seen.reasons_} | {name: getattr(found, name) for name in found._fields[1:]}
    text = (
        f"truerank clicks: {args.output}: {found.data.n_rows} rows, {found.data.n_queries} queries; "
        f"{found.never_shown} documents never shown, with grade 0; {found.cut} relevances cut to [0, 1] "
        f"({found.cut_weight:.1%} of the examined impressions); {found.without_features} shown documents without "
        f"features; propensities {'identified' if seen.identified_ else 'NOT identified'}"
    )
    return common.tell(args, report, text)


def _compare(args: Arguments, log: str) -> int:
    from truerank.clicks.interleaving import NOTE, compare_interleaved

    common.refuse_idle(args, ("output", "length", "seed"), "has no effect with --log, which writes no lists")
    if args.files:
        raise common.UsageError("--log compares the teams of the log. Leave the runs out")
    found = compare_interleaved(_read(args, log), **common.given(args, "unit", "looks", "level"))
    report = {"comparisons": found.to_dict(), "uncredited": found.uncredited, "note": NOTE}
    return common.show(args, report, str(found))


def _mix(args: Arguments) -> int:
    from truerank.clicks.interleaving import interleave

    common.refuse_idle(args, (*LOG, "unit", "looks", "level"), "requires --log")
    if len(args.files) < 2 or args.output is None:
        raise common.UsageError(
            "interleave requires two or more runs and -o FILE, or the log of an earlier interleaving: --log LOG"
        )
    mixed = interleave(common.read_runs(args, args.files), random_state=args.seed or 0, **common.given(args, "length"))
    with common.output(args.output) as stream:
        for query, rows in mixed.items():
            documents, teams = [document for document, _ in rows], [team for _, team in rows]
            line = {"query": query, "documents": documents, "teams": teams}
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")
    return common.tell(args, {"lists": len(mixed), "output": args.output}, f"truerank clicks: {len(mixed)} lists")
