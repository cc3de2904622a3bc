"""`truerank train`: learn a ranker and save it."""

from __future__ import annotations

import argparse
import inspect
import time
from typing import Any

import truerank
from truerank.cli import common, options, ranker_options
from truerank.models.registry import RANKERS

SEVERAL_FILES = (
    ". Join several LETOR files: cat FILE FILE | truerank train - --model model.json. Of tables make one file "
    "with one header"
)


def configure(parser: argparse.ArgumentParser) -> None:
    add = options.adder(parser)
    add("train [TRAIN]", "judged rankings: a LETOR file (.gz .xz .zst), a table, or -")
    options.add_ranker_options(parser)
    add("--valid FILE", "validation queries, for early stopping and selection")
    text = "learn the score differences of a teacher (a file with one score for each row) instead of the grades"
    add("--teacher FILE", text + ", by oblivious-boosting or ridge")
    add("--model FILE", "output file of the model, as JSON (required)", type=options.OutputFile)
    add("--list [NAME]", "list the rankers and their parameters, or describe one", const="")
    text = "store the progress in this folder, from which the same command continues after a crash"
    add("--checkpoint DIR", text, type=options.OutputFolder)
    options.share(parser, "grades")
    options.add_data_options(parser, categorical=True)
    options.share(parser, "cluster", "out-of-core", "position", "json")
    options.refuse(parser, "prepare categorical position teacher", "cluster")
    options.refuse(parser, "position", "checkpoint")


def run(args: argparse.Namespace) -> int:
    """Read, fit, save; a summary goes to stderr, or with --json to stdout."""
    if args.list is not None:
        return _list(args)
    if args.train is None or args.model is None:
        raise common.UsageError("name the training data and the model's file: truerank train TRAIN --model model.json")
    start = time.process_time()
    settings = ranker_options.parse_settings(args.set)
    if args.teacher is not None and args.ranker == "oblivious-boosting":
        settings.setdefault("objective", "query-mse")
    ranker = ranker_options.make_ranker(args.ranker, settings, args.seed, args.prepare)
    if args.valid is not None and not getattr(ranker, "uses_eval_set", True):
        raise common.UsageError(
            f"--valid: {args.ranker} has nothing that validation queries could choose (no early stopping, no path of "
            "settings); leave it out, and see `truerank cross-validate --grid` for choosing settings"
        )
    if args.checkpoint is not None and not getattr(ranker, "learns_elsewhere", False):
        raise common.UsageError(
            f"--checkpoint: {'--prepare' if args.prepare else args.ranker} has no rounds that could be stored. Leave "
            "--checkpoint out"
        )
    with common.cluster_of(args) as client:
        return _train(args, ranker, client, start)


def _train(args: argparse.Namespace, ranker: Any, client: Any, start: float) -> int:
    """Read and fit, in this process or on a cluster."""
    loaded = time.process_time()
    data = common.read_graded(args.train, args, client=client)
    if args.teacher is not None:
        data = _with_teacher(args.teacher, data, ranker)
    if args.position is not None:
        data = common.with_position(data, args, [ranker])
    valid = None if args.valid is None else common.read_graded(args.valid, args, client=client, like=data)
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
    truerank.save_model(ranker, args.model)
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
    learned = f"{summary['measure']} ({summary['convention']}) {', '.join(found)}" if found else "learned a teacher"
    text = (
        f"{args.ranker}: {common.size_of(data)}; {learned}\n"
        f"{ranker.status_}\n"
        f"model written to {args.model} (CPU seconds: reading {read - loaded:.2f}, fitting {fitted - read:.2f})\n"
        f"next: truerank compare {args.model} --data TEST --baseline COLUMN, on queries that did not train it"
    )
    return common.tell(args, summary, text)


def _with_teacher(path: str, data: Any, ranker: Any) -> Any:
    """Return the rows with a teacher's scores as grades, for a student that learns differences of scores."""
    from truerank.experiments.systems import read_stated
    from truerank.rankers.distillation import check_student, with_teacher

    check_student(getattr(ranker, "ranker", ranker))
    return with_teacher(data, read_stated(path, data))


def _list(args: argparse.Namespace) -> int:
    """List every ranker, or describe one."""
    names = list(RANKERS) if args.list == "" else [args.list]
    classes = {name: ranker_options.ranker_class(name) for name in names}
    described = {name: _describe(cls) for name, cls in classes.items()}
    if args.json:
        common.print_json(described)
    elif args.list:
        print(f"{args.list}: truerank.{classes[args.list].__name__}\n\n{inspect.getdoc(classes[args.list])}")
    else:
        for name, entry in described.items():
            params = ", ".join(f"{key}={value!r}" for key, value in entry["params"].items())
            print(
                f"{name}  ({entry['class']})\n    {entry['summary']}\n    {params}\n    missing values: "
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
