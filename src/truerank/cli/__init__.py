"""The command line `truerank`: one file per sub-command, imported when it runs.

Data go to stdout and messages to stderr. Exit codes: 0 done, 1 failed (bad data, a missing file, a full disk), 2
misused, 70 an error inside truerank (with the path of a report), 130 interrupted.
A sub-command's module has `configure(parser)` and `run(args) -> int | None`.
"""

from __future__ import annotations

import sys
from typing import Any

# Name -> (module, one line of help). The order is that of `truerank --help`.
COMMANDS: dict[str, tuple[str, str]] = {
    "train": ("truerank.cli.train", "learn a ranker from judged rankings and save it"),
    "predict": ("truerank.cli.predict", "score the rows of a file with a model"),
    "rank": ("truerank.cli.rank", "rank the documents of a file with a model, as a TREC run"),
    "evaluate": ("truerank.cli.evaluate", "measure a score file or a TREC run"),
    "compare": ("truerank.cli.compare", "wins, losses and tests between score files or TREC runs"),
    "cross-validate": ("truerank.cli.cross_validate", "train and test over folds of queries"),
    "tune": ("truerank.cli.tune", "choose a ranker's settings by cross-validation, and keep the best model"),
    "retrain": (
        "truerank.cli.retrain",
        "train the model in production again, and replace it where a test shows a gain",
    ),
    "convert": ("truerank.cli.convert", "convert judged rankings between file formats"),
    "describe": ("truerank.cli.describe", "describe judged rankings and find what in them may surprise"),
    "pipeline": ("truerank.cli.pipeline", "documents, queries and judgements to a trained and tested ranker"),
    "index": ("truerank.cli.index", "index a collection of documents"),
    "search": ("truerank.cli.search", "retrieve documents of an index, as a TREC run"),
    "explain": ("truerank.cli.explain", "why one document stands above another, and which features matter"),
    "features": ("truerank.cli.features", "a feature matrix from TREC runs, an index of text, or a live engine"),
    "fuse": ("truerank.cli.fuse", "one run of several systems' runs, learned from judged topics or by a rule"),
    "links": ("truerank.cli.links", "PageRank, HostRank and relevance propagation over an edge list"),
    "calibrate": ("truerank.cli.calibrate", "turn a ranker's scores into probabilities of relevance"),
    "decide": ("truerank.cli.decide", "probabilities, and decisions of least expected cost"),
    "classify": ("truerank.cli.classify", "learn to classify texts or rows, with calibrated probabilities, and do it"),
    "export": ("truerank.cli.export", "a model in the format of a search engine or another tool, with a certificate"),
    "deploy": ("truerank.cli.deploy", "put a model into a live search engine"),
    "verify": ("truerank.cli.verify", "rerank test queries in a live search engine and compare with the model"),
    "import": ("truerank.cli.import_", "turn a model of another tool into a truerank model"),
    "rankers": ("truerank.cli.rankers", "list the rankers and their parameters"),
    "report": ("truerank.cli.report", "one HTML page of evidence on score files, runs or models"),
    "reproduce": (
        "truerank.cli.reproduce",
        "run a published experiment and print its tables beside the published ones",
    ),
    "sample": ("truerank.cli.sample", "write the data that ship with truerank as files, to try every command on"),
    "completion": ("truerank.cli.completion", "completion of commands, options and rankers for bash, zsh and fish"),
    "demo": ("truerank.cli.demo", "train and test on the data that ship with truerank"),
}
# Options that name files to be written, beside those that do everywhere.
OUTPUTS = {
    "train": ("model",),
    "tune": ("model",),
    "retrain": ("model", "candidate", "previous"),
    "cross-validate": ("scores",),
    "export": ("statistics",),
}


def main(argv: list[str] | None = None) -> int:
    """Entry point of `truerank`; returns the exit code."""
    if argv is not None:
        return _main(list(argv))
    from truerank.cli.guard import as_program

    return as_program(lambda: _main(sys.argv[1:]))


def _main(argv: list[str]) -> int:
    import argparse

    parser = argparse.ArgumentParser(
        prog="truerank",
        description="From judged rankings to a ranker that can be trusted.",
        epilog="truerank COMMAND --help describes a command.",
    )
    from truerank import __version__
    from truerank.cli.guard import guarded

    parser.add_argument("--version", action="version", version=f"truerank {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    named = next((word for word in argv if not word.startswith("-")), None)
    if named is not None and named not in COMMANDS:
        from truerank.core.names import nearest

        parser.error(f"unknown command {named!r}{nearest(named, COMMANDS)}; `truerank --help` lists the commands")
    run, chosen = None, parser
    options: frozenset[str] = frozenset()
    for name, (module_name, summary) in COMMANDS.items():
        sub = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        if name == named:
            from importlib import import_module

            module = import_module(module_name)
            module.configure(sub)
            run, chosen = module.run, sub
            options = frozenset(sub._option_string_actions)
            if "--json" in options and "--json" in argv:
                _fail_as_json(sub)
                _fail_as_json(parser)
    args, strange = parser.parse_known_args(argv)
    if run is None:
        parser.error("no command given")
    if strange:
        from truerank.core.names import nearest

        if strange[0].startswith("-"):
            more = nearest(strange[0].partition("=")[0], options)
        else:
            places = [str(own.metavar or own.dest) for own in chosen._get_positional_actions()]
            more = f"; beside its options, {named} takes {' '.join(places) or 'none'}"
        chosen.error(f"unknown argument {strange[0]!r}{more}")
    same = _output_that_is_read(args)
    if same is not None:
        message = f"{same} is read and would be overwritten; name another file for the output"
        if getattr(args, "json", False):
            from truerank.cli.guard import print_failure

            print_failure(message, 2)
        parser.error(message)
    return guarded(run, args, argv, options)


def _fail_as_json(parser: Any) -> None:
    """Make a parser print the one object of `--json` also when it refuses the arguments."""
    refuse = parser.error

    def error(message: str) -> Any:
        from truerank.cli.guard import print_failure

        print_failure(message, 2)
        refuse(message)

    parser.error = error


def _output_that_is_read(args: Any) -> str | None:
    """A regular file that the command would both read and write, or None."""
    import os

    given = {key: value for key, value in vars(args).items() if key != "command"}
    outputs = {"output", "params", *OUTPUTS.get(args.command, ())}
    if args.command in ("classify", "fuse") and (given.get("train") or given.get("qrels")):
        outputs.add("model")  # they learn; else it is read
    if args.command == "retrain":
        del given["production"]  # it is there to be replaced

    def files(keys: Any) -> list[str]:
        found = []
        for key in keys:
            value = given[key]
            for item in value if isinstance(value, list | tuple) else [value]:
                if isinstance(item, str) and item != "-" and os.path.isfile(item):
                    found.append(item)
                elif key == "runs" and isinstance(item, str) and os.path.isdir(item):  # all its files are read
                    found += [entry.path for entry in os.scandir(item) if entry.is_file()]
        return found

    read = files(key for key in given if key not in outputs)
    for written in files(outputs & set(given)):
        for path in read:
            if os.path.samefile(path, written):
                return written
    return None
