"""`truerank train`: train a ranker and save it."""

from __future__ import annotations

import inspect
import time
from contextlib import suppress
from typing import Any

import truerank
from truerank.cli import common, options, ranker_options
from truerank.cli.next_command import next_command
from truerank.cli.parser import OutputFile, OutputFolder, argument, option, refuse
from truerank.core.errors import TruerankError
from truerank.models.registry import RANKERS

SEVERAL_FILES = (
    ". Join several LETOR files: cat FILE FILE | truerank train - --model model.json. Of tables make one file "
    "with one header"
)


class Arguments(options.Learning, options.Clustered, options.Json):
    ONE_FILE = True
    train: str | None = argument("judged rankings: a LETOR file (.gz .xz .zst), a table, or -", "[TRAIN]")
    valid: str | None = option("validation queries, for early stopping and selection", "FILE")
    teacher: str | None = option(
        "learn the score differences of a teacher (a file with one score for each row) instead of the grades, "
        "by oblivious-boosting or ridge",
        "FILE",
    )
    model: OutputFile | None = option("output file of the model, as JSON (required)", "FILE")
    listed: str | None = option(
        "list the rankers and their parameters, or describe one", "[NAME]", const="", names="--list"
    )
    checkpoint: OutputFolder | None = option(
        "store the progress in this folder, from which the same command continues after a crash", "DIR"
    )
    RULES = (refuse("prepare categorical position teacher", "cluster"), refuse("position", "checkpoint"))


def run(args: Arguments) -> int:
    """Train and save a ranker; print a summary to stderr, or with `--json` to stdout."""
    if args.listed is not None:
        return _list(args, args.listed)
    if args.train is None or args.model is None:
        raise common.UsageError("no data or no model file is named. Write: truerank train TRAIN --model model.json")
    start = time.process_time()
    settings = ranker_options.settings_of(args.ranker, args.set)
    if args.teacher is not None and args.ranker == "oblivious-boosting":
        settings.setdefault("objective", "query-mse")
    ranker = ranker_options.make_ranker(args.ranker, settings, args.seed, args.prepare)
    if args.valid is not None and not getattr(ranker, "uses_eval_set", True):
        raise common.UsageError(
            f"--valid has no effect: {args.ranker} has neither early stopping nor a path of settings. Leave --valid "
            "out, and choose settings with `truerank cross-validate --grid`"
        )
    if args.checkpoint is not None and not getattr(ranker, "learns_elsewhere", False):
        raise common.UsageError(
            f"--checkpoint has no effect: {'--prepare' if args.prepare else args.ranker} has no rounds to store. "
            "Leave --checkpoint out"
        )
    with common.cluster_of(args.cluster) as client:
        return _train(args, args.train, args.model, ranker, client, start)


def _train(args: Arguments, train: str, model: str, ranker: Any, client: Any, start: float) -> int:
    """Read the data and fit the ranker, in this process or on a cluster."""
    loaded = time.process_time()
    data = common.read_graded(train, args, client=client)
    if args.teacher is not None:
        data = _with_teacher(args.teacher, data, ranker)
    if args.position is not None:
        data = common.with_position(data, args.position, [ranker])
    valid = None if args.valid is None else common.read_graded(args.valid, args, data, client=client)
    if args.categorical:
        common.set_categorical(ranker, data, args)
    read = time.process_time()
    if args.checkpoint is not None:
        if client is None:
            from truerank.cluster import from_memory

            data = from_memory(data)
        data.checkpoint = args.checkpoint
    ranker.fit(data, eval_set=valid)
    fitted = time.process_time()
    common.remember_reading(ranker, args)
    truerank.save_model(ranker, model)
    training = None if args.teacher else float(ranker._measure().mean(data.judgements(), data.scores(ranker)))
    validation = None if valid is None else float(ranker.score(valid))
    measure = getattr(ranker, "measure", None) or "nDCG@10"
    summary = {
        "ranker": args.ranker,
        "prepare": args.prepare or [],
        "params": getattr(ranker, "ranker", ranker).get_params(deep=False),
        "rows": data.n_rows,
        "queries": data.n_queries,
        "features": data.n_features,
        "measure": str(measure),
        "convention": getattr(ranker, "convention", "ranklib"),
        "train": training,
        "valid": validation,
        "status": ranker.status_,
        "cpu_seconds": {"load": loaded - start, "read": read - loaded, "fit": fitted - read},
        "model": args.model,
    }
    found = [f"{one:.4f} on the {name} queries" for one, name in ((training, "training"), (validation, "validation"))
             if one is not None]  # fmt: skip
    learned = f"{summary['measure']} ({summary['convention']}) {', '.join(found)}" if found else "student of a teacher"
    text = (
        f"{args.ranker}: {common.size_of(data)}; {learned}\n"
        f"{ranker.status_}\n"
        f"model written to {args.model} (CPU seconds: reading {read - loaded:.2f}, fitting {fitted - read:.2f})"
    )
    common.tell(args, summary, text)
    _next(args, train, ranker)
    return 0


def _next(args: Arguments, train: str, ranker: Any) -> None:
    """Print the export to a format that holds the model and reads missing values as the model does."""
    from truerank.export.form import form_of
    from truerank.export.formats import reason_against

    missing = getattr(ranker, "saw_missing_", False)
    empty = missing and ranker.reads_missing_as_zero  # only in columns of categories
    with suppress(TruerankError):  # of a model that depends on other documents
        statistics = "statistics.json" if getattr(ranker, "category_names", None) else None
        own = ranker if statistics is None else ranker.over_statistics()
        search = not missing and reason_against(form_of(own), "opensearch-ltr") is None
        to, output = ("opensearch-ltr", "model-ltr.json") if search else ("python", "model.py")
        if empty:
            to, output = "painless", "model.painless"
            common.note(
                "truerank train: Solr and the LTR plugins read empty cells of categories differently from this model. "
                "For these engines, fill the cells with a category such as 'none', and train again"
            )
        next_command(args, "export", to=to, output=output, certify=train, statistics=statistics)


def _with_teacher(path: str, data: Any, ranker: Any) -> Any:
    """Return the rows with a teacher's scores as grades, for a ranker that learns differences of scores."""
    from truerank.experiments.systems import read_stated
    from truerank.rankers.distillation import check_student, with_teacher

    check_student(getattr(ranker, "ranker", ranker))
    return with_teacher(data, read_stated(path, data))


def _list(args: Arguments, name: str) -> int:
    """List every ranker, or describe one."""
    names = list(RANKERS) if name == "" else [name]
    classes = {one: ranker_options.ranker_class(one) for one in names}
    described = {one: _describe(cls) for one, cls in classes.items()}
    if args.json:
        common.print_report(args, {"rankers": described})
    elif name:
        print(f"{name}: truerank.{classes[name].__name__}\n\n{inspect.getdoc(classes[name])}")
    else:
        for one, entry in described.items():
            params = ", ".join(f"{key}={value!r}" for key, value in entry["params"].items())
            print(
                f"{one}  ({entry['class']})\n    {entry['summary']}\n    {params}\n    missing values: "
                f"{entry['missing_values']}"
            )
    return 0


def _describe(cls: type[Any]) -> dict[str, Any]:
    summary = (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")
    return {
        "class": cls.__name__,
        "summary": summary,
        "params": cls().get_params(deep=False),
        "missing_values": cls.missing_values,
    }
