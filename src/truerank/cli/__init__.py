"""The command line `truerank`: one file per sub-command, imported when it runs.

Commands write data to stdout and messages to stderr. Exit codes: 0 done, 1 failed (bad data, a missing file, a full
disk; 2 in `gate`, where 1 is a verdict), 2 misused, 70 an error inside truerank (with the path of a report), 130
interrupted.
A sub-command's module has a class `Arguments` of options and `run(args) -> int | None`; one of another package may have
`configure(parser)` instead. The help of a command is the docstring of its module without the first line.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from truerank.core.names import Table

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from truerank.cli.parser import Parser

# Name -> (module, one line of help).
_COMMANDS: dict[str, tuple[str, str]] = {
    "describe": ("truerank.cli.describe", "summarise judged rankings and report data quality"),
    "convert": ("truerank.cli.convert", "convert judged rankings between file formats"),
    "split": ("truerank.cli.split", "divide a file by query into training, validation and test files"),
    "sample": ("truerank.cli.sample", "write sample data as files, or run a demonstration (--demo)"),
    "features": ("truerank.cli.engine_features", "compute features of judged documents in a live search engine"),
    "train": ("truerank.cli.train", "train a ranker and save it, or list the rankers (--list)"),
    "tune": ("truerank.cli.tune", "choose a ranker's parameters by cross-validation, and save the best model"),
    "cross-validate": ("truerank.cli.cross_validate", "train and test over folds of queries"),
    "retrain": ("truerank.cli.retrain", "train the model in production again, and replace it if a test shows a gain"),
    "evaluate": ("truerank.cli.evaluate", "compute ranking measures of a model, scores or a TREC run"),
    "compare": ("truerank.cli.compare", "test whether models, scores or runs differ"),
    "gate": ("truerank.cli.gate", "pass or fail a new system in continuous integration"),
    "reproduce": ("truerank.cli.reproduce", "run a recorded command again, and compare its figures"),
    "depth": ("truerank.cli.depth", "show quality and cost by the number of reranked documents"),
    "power": ("truerank.cli.power", "predict how many queries a test needs to find a difference"),
    "report": ("truerank.cli.report", "write one HTML page of evidence on models, scores or runs"),
    "explain": ("truerank.cli.explain", "show which features matter, and why a document ranks above another"),
    "trec-eval": ("truerank.cli.trec_eval", "compute NIST's trec_eval 10.0 measures, with its options and output"),
    "judge": (
        "truerank.cli.judge",
        "plan human judgements, estimate from few of them, and examine model judges",
    ),
    "clicks": ("truerank.cli.clicks", "evaluate rankers from click logs, create training rows, interleave rankings"),
    "predict": ("truerank.cli.predict", "score rows with a model, or rank them as a TREC run (--format run)"),
    "calibrate": ("truerank.cli.calibrate", "turn a ranker's scores into probabilities of relevance"),
    "decide": ("truerank.cli.decide", "compute probabilities, and decisions of least expected cost"),
    "cutoff": ("truerank.cli.cutoff", "find a threshold on scores that bounds a loss, and apply it"),
    "export": ("truerank.cli.export", "write a model in the format of a search engine, and verify the export"),
    "import": ("truerank.cli.import_", "convert a model of another tool into a truerank model"),
    "deploy": ("truerank.cli.deploy", "put a model into a live search engine, and verify it there (--verify)"),
    "fuse": ("truerank.cli.fuse", "fuse runs of several systems, by a rule or by learned weights"),
    "text index": ("truerank.cli.index", "index a collection of documents"),
    "text search": ("truerank.cli.search", "retrieve documents of an index, as a TREC run"),
    "text features": ("truerank.cli.features", "compute features from runs, or an index of documents"),
    "text links": ("truerank.cli.links", "compute PageRank, HostRank or relevance propagation over a list of links"),
    "text pipeline": ("truerank.cli.pipeline", "train and test a ranker from documents, queries and judgements"),
    "text classify": ("truerank.cli.classify", "learn to classify texts or rows, with calibrated probabilities"),
    "completion": ("truerank.cli.completion", "print a completion script for bash, zsh or fish"),
}


def _command(point: EntryPoint) -> tuple[str, str]:
    """Return the module and the help of a command whose entry point names a module with `configure` and `run`."""
    summary = (getattr(point.load(), "__doc__", None) or "").strip().partition("\n")[0]
    return point.value, summary.rstrip(".")


# With those of installed packages: entry points "truerank.commands", name -> module.
COMMANDS = Table("truerank.commands", _COMMANDS, _command)
# The order of `truerank --help`; commands of two words are listed by their first, those without a group at the end.
GROUPS: dict[str, tuple[str, ...]] = {
    "Data": ("describe", "convert", "features", "split", "sample"),
    "Learn": ("train", "tune", "cross-validate", "retrain"),
    "Measure": ("evaluate", "compare", "gate", "depth", "power", "report", "reproduce", "explain", "trec-eval"),
    "Judge": ("judge", "clicks"),
    "Use": ("predict", "calibrate", "decide", "cutoff", "export", "import", "deploy"),
    "Runs": ("fuse",),
    "Text": ("text",),
}
SHARED = {"text": "work with documents: "}
"""Help of the first word that several commands share, before the list of their second words."""
# Options for large files and clusters, which only --help-all shows.
RARE = {
    "n_features", "sparse", "max_line", "out_of_core", "cluster", "checkpoint", "stream", "timeout", "threads", "label",
    "position",
}  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Run a command line of `truerank`, and return the exit code."""
    from truerank.cli.guard import as_program, guarded
    from truerank.cli.terminal import fitted

    if argv is None:
        return as_program(lambda: main(sys.argv[1:]))
    from truerank.cli.parser import (
        Options,
        OptionWording,
        UsageError,
        description,
        finish_help,
        wording_of,
    )
    from truerank.core.names import nearest
    from truerank.core.printing import note

    if argv[:1] == ["trec-eval"]:  # has another program's options
        from truerank.cli.trec_eval import run as trec_eval

        return guarded("trec-eval", lambda: trec_eval(argv[1:]), argv, OptionWording({}))
    try:
        name, rest = _named(argv)
    except UsageError as error:
        note(f"truerank: {error}\ntry: truerank --help")
        return 2
    module, parser = command_parser(name)
    declared = getattr(module, "Arguments", Options)
    if {"-h", "--help", "--help-all"} & set(rest):
        parser.description = description(module, COMMANDS[name][1])
        finish_help(parser, RARE, "--help-all" in rest)
    wording = wording_of(parser)

    def run() -> int | None:
        parse = parser.parse_known_intermixed_args if declared.INTERMIXED else parser.parse_known_args
        found, strange = parse(rest)
        if strange:
            if strange[0].startswith("-"):
                more = nearest(strange[0].partition("=")[0], wording.options)
                if "--set" in wording.options:
                    more += ". Write a parameter of the ranker as --set NAME=VALUE"
                from truerank.cli.options import Reading

                if strange[0] == "--qrels" and issubclass(declared, Reading):
                    more = ". To join judgements to features, type: truerank convert QRELS rows.parquet --join FEATURES"
            else:
                places = [str(own.metavar or own.dest) for own in parser._get_positional_actions()]
                more = f"; apart from its options, {name} accepts {' '.join(places) or 'nothing'}"
                more += getattr(module, "SEVERAL_FILES", "")
            raise UsageError(f"unknown argument {strange[0]!r}{more}")
        return module.run(declared.parsed(parser, found, command=name, wording=wording, argv=argv))

    with fitted(argv):
        return guarded(name, run, argv, wording, getattr(module, "FAILURE", 1))


def command_parser(name: str) -> tuple[Any, Parser]:
    """Return the module of a command, and the parser of its options, whose help `finish_help` completes."""
    import argparse
    from importlib import import_module

    from truerank.cli.parser import Parser

    module = import_module(COMMANDS[name][0])
    parser = Parser(prog=f"truerank {name}", allow_abbrev=False)
    getattr(module, "Arguments", module).configure(parser)
    if "--json" in parser._option_string_actions:
        parser.add_argument("--wide", action="store_true", help="print all columns of tables wider than the terminal")
    parser.add_argument("--help-all", action="help", help=argparse.SUPPRESS)
    return module, parser


def _named(argv: list[str]) -> tuple[str, list[str]]:
    """Return the called command and its arguments; end the program after help, a version or an unknown name."""
    from truerank import __version__
    from truerank.cli.parser import Parser
    from truerank.core.names import nearest

    parser = Parser(prog="truerank", usage="truerank COMMAND …", add_help=False)
    parser.add_argument("--version", action="version", version=f"truerank {__version__}")
    first = argv[0] if argv else ""
    if first in ("-h", "--help", "--help-all", "help"):
        print(overview())
        parser.exit()
    if not first or first.startswith("-"):
        parser.parse_args(argv)
        parser.error("no command is given")
    if first in COMMANDS:
        return first, argv[1:]
    seconds = [name.partition(" ")[2] for name in COMMANDS if name.startswith(f"{first} ")]
    if not seconds:
        known = {name.rpartition(" ")[2]: name for name in COMMANDS}
        if first in known:
            parser.error(f"unknown command {first!r}. Write `truerank {known[first]}`")
        near = nearest(first, dict.fromkeys([*COMMANDS, *known]), "`truerank --help` lists the commands")
        parser.error(f"unknown command {first!r}{near}")
    second = argv[1] if len(argv) > 1 else ""
    if second in ("-h", "--help", "--help-all"):
        width = max(map(len, seconds))
        print(f"usage: truerank {first} COMMAND …\n")
        print("\n".join(f"  {own:{width}}  {COMMANDS[f'{first} {own}'][1]}" for own in seconds))
        parser.exit()
    if second not in seconds:
        found = f", got {second!r}{nearest(second, seconds)}" if second else ""
        parser.error(f"truerank {first} requires one of {', '.join(seconds)}{found}")
    return f"{first} {second}", argv[2:]


def overview() -> str:
    """Return the help that lists all commands by purpose."""
    listed: dict[str, str] = {}
    for name, (_, summary) in COMMANDS.items():
        first, _, second = name.partition(" ")
        if second:
            summary = f"{listed[first]}, {second}" if first in listed else SHARED.get(first, "") + second
        listed[first] = summary
    grouped = {title: [name for name in names if name in listed] for title, names in GROUPS.items()}
    grouped["More"] = [name for name in listed if not any(name in names for names in GROUPS.values())]
    width = max(map(len, listed))
    lines = ["usage: truerank COMMAND …", "", "Train ranking models and find out whether they are really better.", ""]
    for title, names in grouped.items():
        if names:
            lines += [title, *(f"  {name:{width}}  {listed[name]}" for name in names), ""]
    return "\n".join([*lines, "truerank COMMAND --help describes a command; truerank --version prints the version."])
