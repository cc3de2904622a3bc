"""Options that several commands share.

Commands import NumPy and what needs NumPy when they run, so that `--help` is fast.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from operator import methodcaller
from types import ModuleType
from typing import Any, NoReturn

from truerank.core.errors import TruerankError, Wording
from truerank.core.files import check_target, identity
from truerank.core.method_names import called_here
from truerank.io.judgements.places import AGGREGATES


class UsageError(TruerankError):
    """The command was misused: exit code 2."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are exceptions; with `intermixed`, files may also follow options."""

    intermixed = False

    def error(self, message: str) -> NoReturn:
        """Raise a `UsageError`."""
        raise UsageError(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            hint = typed_here(str(value))
            raise argparse.ArgumentError(action, f"{value!r} is {hint}" if hint else error.message) from None


def typed_here(name: str) -> str:
    """Return the class and the options that a name stands for, or "".

    >>> typed_here("Fuzzy_Trees")
    "ObliviousBoosting(leaves='fuzzy'): --ranker oblivious-boosting --set leaves=fuzzy"
    """
    method = called_here(name)
    if method is None:
        return ""
    words = f"--ranker {method.name}" if method.kind == "ranker" else f"truerank calibrate --method {method.name}"
    return f"{method}: {words}" + (f" --set {method.setting}" if method.setting else "")


class OptionWording(Wording):
    """Arguments as options of a command.

    Parameters
    ----------
    options : dict
        The options of the command, with the name of their value in the help ("" for a flag).

    >>> OptionWording({"--topics": "TOPICS"}).argument("topics", "common"), OptionWording({}).argument("sparse", True)
    ('--topics common', None)
    """

    verb, between = "add", " "

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = options

    def value(self, option: str) -> str:
        """Return the name of the value of an option; of `key=VALUE` the name after the sign."""
        return self.options[option].rpartition("=")[2]

    def argument(self, name: str, value: Any) -> str | None:
        option = f"--{OPTION_NAMES.get(name, name).replace('_', '-')}"
        if option not in self.options:
            return None
        if isinstance(value, dict):
            value = [f"{key}={self.value(option) if own is ... else own}" for key, own in value.items()]
        values = [] if value is True else value if isinstance(value, list | tuple) else [value]
        return " ".join([option, *(self.value(option) if one is ... else shlex.quote(str(one)) for one in values)])


OPTION_NAMES = {
    "query": "query-column", "grade": "grade-column", "document": "document-column", "categories": "categorical",
}  # fmt: skip
"""Options that are named differently from the arguments: `read_table` reads the columns that the options name."""


def wording_of(parser: argparse.ArgumentParser) -> OptionWording:
    """Return the words for the options of a parser."""
    return OptionWording({
        option: "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
        for option, action in parser._option_string_actions.items()
    })  # fmt: skip


def description(module: ModuleType, summary: str) -> str:
    """Return what the docstring of a command says after its first line, else its summary."""
    text = " ".join((module.__doc__ or "").partition("\n\n")[2].split())
    return text or f"{summary[:1].upper()}{summary[1:]}."


def finish_help(parser: argparse.ArgumentParser, rare: Collection[str], shows_all: bool) -> None:
    """Add `--help-all` and `--wide`, hide the options `rare` unless all are shown, and set a usage of one line.

    The usage has the arguments and the required options of the command; its help lists all options.
    """
    words, text = [parser.prog], argparse.SUPPRESS
    if "--json" in parser._option_string_actions:
        parser.add_argument("--wide", action="store_true", help="print all columns of tables, wider than the terminal")
    for action in parser._actions:
        name = action.metavar if isinstance(action.metavar, str) else action.dest
        if action.dest in rare:
            text = "show this message and the rare options"
            if not shows_all:
                action.help = argparse.SUPPRESS
        if action.option_strings:
            if action.required:
                words.append(f"{action.option_strings[0]} {name}")
        else:
            name = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else name
            more = {"*": f"[{name} …]", "+": f"{name} …", "?": f"[{name}]"}
            words.append(more.get(str(action.nargs), name))
    parser.usage = " ".join([*words, "[options]"]).replace("%", "%%")
    parser.add_argument("--help-all", action="help", help=text)


class Output(str):
    """The name of an output that can be written, checked before the command runs; `-` is standard output."""

    is_file = False

    def check(self, option: str) -> None:
        """Raise an error if the output cannot be written; `option` names it in the message."""
        if self != "-":
            check_target(self)
        elif self.is_file:
            raise UsageError(f"{option} cannot write to standard output (-). Give a file name")


class OutputFile(Output):
    """Like `Output`, for what must be a file."""

    is_file = True


class OutputFolder(str):
    """The name of an output folder."""

    def check(self, option: str) -> None:
        """Refuse standard output and files."""
        if self == "-":
            raise UsageError(f"{option} must be a folder, and - is standard output. Give the name of a folder")
        if os.path.exists(self) and not os.path.isdir(self):
            raise UsageError(f"{option} {self} is a file; name a folder")


_OF_RUNS = ("files", "named", "runs", "systems")  # arguments that may be folders whose files are all read


class Replaced(str):
    """The name of a file that the command reads, and may replace."""


class Outputs:
    """The output files of a command, which must differ from each other and from the files that it reads."""

    def __init__(self, read: Iterable[str]) -> None:
        self._read = {identity(path) for path in read} - {None}
        self._written: dict[Any, str] = {}

    def add(self, path: str | os.PathLike[str], option: str = "") -> None:
        """Add an output; raise an error if it is an input or another output. `option` names it in the message."""
        place, label = identity(path), f"{option} {os.fspath(path)}".strip()
        if place is not None and place in self._read:
            raise UsageError(f"{os.fspath(path)} is read and would be overwritten; name another file for the output")
        if place is not None and self._written.setdefault(place, label) is not label:
            raise UsageError(f"{label} and {self._written[place]} must be different files. Name two")


def positive(text: str) -> int:
    """Return a number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text}")
    return int(text)


def threads(text: str) -> int:
    """Return a number of threads."""
    if text == "-1" or (text.isdecimal() and int(text) > 0):
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, or -1 for all processors, got {text}")


def tag(text: str) -> str:
    """Return the name of a run, which is one word."""
    if not text or any(character.isspace() for character in text):
        raise argparse.ArgumentTypeError(f"must be one word, got {text!r}")
    return text


def check_given(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Raise an error for an option that its rules refuse, for an output that cannot be written, or is another file too.

    `args.outputs` has the output files; a command adds those whose names it derives.
    """
    for action in parser._actions:
        for condition, refused, why in vars(action).get("rules", ()):
            if is_given(getattr(args, action.dest, None)) and _holds(args, condition) == refused:
                option = next(filter(methodcaller("startswith", "--"), action.option_strings), str(action.metavar))
                raise UsageError(f"{option} {why.format(**vars(args))}")
    _settle_files(parser, args)


def _settle_files(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    read: list[str] = []
    written: dict[str, Any] = {}
    for action in parser._actions:
        value = getattr(args, action.dest, None)
        if "writes" in vars(action) and isinstance(value, str):
            value = vars(action)["writes"](args)(value)
            setattr(args, action.dest, value)
        if isinstance(value, Output | OutputFolder):
            written[(action.option_strings or [str(action.metavar)])[0]] = value
        elif not (action.choices or isinstance(value, Replaced) or action.type is tag):
            names = [name for name in (value if isinstance(value, list) else [value]) if isinstance(name, str)]
            for folder in filter(os.path.isdir, names if action.dest in _OF_RUNS else ()):
                read += [entry.path for entry in os.scandir(folder)]  # a folder of runs
            read += filter(os.path.isfile, names)
    args.read, args.outputs = list(dict.fromkeys(read)), Outputs(read)
    for option, value in written.items():
        value.check(option)
        if value != "-":
            args.outputs.add(value, option)


def is_given(value: Any) -> bool:
    """Return whether the value of an option differs from its default; 0 also counts as given."""
    return value is not None and value is not False and value != []


def _holds(args: argparse.Namespace, condition: str) -> bool:
    """Return whether one of the arguments is given ("data scores"), or has a value ("how=refit")."""
    for word in condition.split():
        name, equals, value = word.partition("=")
        own = getattr(args, name)
        if str(own) == value if equals else is_given(own):
            return True
    return False


def refuse(parser: argparse.ArgumentParser, names: str, condition: str, why: str = "") -> None:
    """Refuse the options `names` when a condition holds; `why` follows the name of the option in the message."""
    rule = condition, True, why or f"does not go with --{condition.replace('_', '-')}"
    for action in parser._actions:
        if action.dest in names.split():
            vars(action).setdefault("rules", []).append(rule)


def add(
    group: argparse._ActionsContainer, spec: str, text: str, *, to: str = "", why: str = "", **settings: Any
) -> argparse.Action:
    """Add an argument that `spec` names, such as "-o --output FILE" or "data DATA"; returns its action.

    An option without a value and choices is a flag. "FILE …" accepts one or more values, "[FILE]" at most one, and
    "[FILE …]" any number. The help states the default, and values have its type. The option is refused unless the
    condition `to` holds, and `why` follows it in the message. The setting `writes` is a function that returns
    `Output`, `OutputFile` or `OutputFolder` if the parsed arguments make this one an output, else `str`.
    """
    words, default, writes = spec.split(" "), settings.get("default"), settings.pop("writes", str)
    names = list(filter(methodcaller("startswith", "-"), words)) or words[:1]
    value = " ".join(words[len(names) :])
    if value:
        settings["metavar"] = value.strip("[]").removesuffix(" …")
        kind = {(True, False): "?", (True, True): "*", (False, True): "+"}.get((value[0] == "[", " …" in value))
        if kind:
            settings["nargs"] = kind
        if kind == "+" and names[0][0] == "-" and not default:
            settings["action"] = "extend"
    elif names[0][0] == "-" and not {"choices", "action"} & set(settings):
        settings["action"] = "store_true"
    if is_given(default):
        shown = " ".join(default) if isinstance(default, list) else default
        text += "" if "(default" in text else f" (default: {shown})"
        if isinstance(default, int | float):
            settings.setdefault("type", type(default))
    action = group.add_argument(*names, help=text, **settings)
    if to:
        vars(action)["rules"] = [(to, False, why or f"belongs to --{to.replace(' ', ' or --')}")]
    if writes is not str:
        vars(action)["writes"] = writes
    return action


def adder(group: argparse._ActionsContainer, **settings: Any) -> Callable[..., argparse.Action]:
    """Return `add` for one parser or group, with settings of all its arguments."""
    return partial(add, group, **settings)


def share(group: argparse._ActionsContainer, *names: str, **more: Any) -> None:
    """Add options of `SHARED`, with `more` settings."""
    for name in names:
        spec, text, settings = SHARED[name]
        add(group, spec, text, **settings | more)


SHARED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "record": (
        "--record FILE",
        "also write a file with which `truerank reproduce` runs this again and compares",
        {"type": OutputFile},
    ),
    "json": ("--json", "print one JSON object instead of text", {}),
    "seed": ("--seed N", "random seed", {"default": 0}),
    "threads": ("--threads N", "threads (default: 1); -1 uses all processors", {"type": threads}),
    "replace": ("--replace", "overwrite files of the same names in the folder", {}),
    "query-field": ("--query-field FIELD", "the field that is the query (TREC: title, desc, narr)", {}),
    "cv": ("--cv K", "folds of a single file (default: 5)", {"type": int}),
    "bad": (
        "--bad",
        "what to do with a document that has no id or the id of another one, is not JSON or UTF-8, or exceeds 64 MiB: "
        "stop, or skip it and print a note",
        {"choices": ("error", "skip"), "default": "error"},
    ),
    "position": ("--position COLUMN", "where each row was shown, from 1: for objective=unbiased-lambdarank", {}),
    "cluster": (
        "--cluster WHERE",
        "local:N (N worker processes) or tcp://scheduler:port; workers read each file of the pattern as a partition",
        {},
    ),
    "out-of-core": ("--out-of-core", "with --cluster: read rows again at each pass, to save memory", {"to": "cluster"}),
    "baseline": ("--baseline NAME", "system or column of --data to compare with (default: the first system)", {}),
    "grades": ("--grades WORD=NUMBER …", "numbers of grades in words: 'Perfect=3 Good=2 Bad=0 Skip=-'", {}),
    "aggregate": (
        "--aggregate",
        "how several grades of a document become one (default: they must be equal)",
        {"choices": AGGREGATES},
    ),
    "collapse": (
        "--collapse SEP",
        "make documents of chunks: what stands before SEP, or the group of a regular expression",
        {},
    ),
    "segments": ("--segments FIELD", "field of the gold set, or column of --data, whose values are segments", {}),
    "topics": (
        "--topics",
        "topics of the means: common, those of all runs; all, those of the qrels, where a missing topic counts 0 as in "
        "trec_eval -c (default: the topics of the runs, which must be the same)",
        {"choices": ("common", "all"), "to": "qrels"},
    ),
    "statistics": (
        "--statistics FILE",
        "for a model with categorical columns: write the statistic of each category to this JSON file, by column and "
        "category, and export trees over these statistics. The engine's features must be these statistics (null, else "
        "0, for a category that is not in the file)",
        {"type": OutputFile},
    ),
    "training": (
        "--training-queries",
        "queries that trained a model: leave them out, keep them without a verdict, or refuse (default: leave-out)",
        {"choices": ("leave-out", "keep", "refuse")},
    ),
    "test": (
        "--test",
        "paired, two-sided test of the per-query values",
        {"choices": ("randomisation", "t", "wilcoxon", "sign"), "default": "randomisation"},
    ),
}
"""Options of several commands: names, help, settings of `add`."""

OF_LETOR = ("n_features", "sparse", "max_line")
OF_TABLES = ("query_column", "grade_column", "document_column")


def add_data_options(
    parser: argparse.ArgumentParser, *, columns: bool = True, categorical: bool = False, to: str = "", why: str = ""
) -> None:
    """Options on reading a data file, its feature columns and, for training, its categories.

    `to` and `why` are those of `add`, if data are not always read.
    """
    add = adder(parser.add_argument_group("reading data"), to=to, why=why)
    text = (
        "how to read NULL and nan in features; zero is for engines without missing values (default: as for the model's "
        "training data, else error)"
    )
    add("--missing", text, choices=("error", "nan", "zero"))
    add("--n-features N", "number of features in LETOR text, if all rows may lack the last ones", type=positive)
    add("--sparse", "read wide LETOR text as a sparse matrix; linear rankers with scale=auto get other weights")
    add("--max-line BYTES", "longest accepted line of LETOR text (default: 16777216)", type=positive)
    add("--query-column NAME", "column of the query in a table (default: qid)")
    add("--grade-column NAME", "column of the grade in a table (default: y)")
    add("--document-column NAME", "column of the document id in a table")
    if not columns:  # the model knows its own
        return
    group = parser.add_argument_group("columns")
    add = adder(group, to=to, why=why)
    add("--features COLUMN …", "columns to use: names, patterns ('bm25*'), or numbers from 1 (1-10,15); default: all")
    add("--exclude COLUMN …", "columns to ignore, named in the same ways")
    if categorical:
        text = "features that are categories: text, or numbers without an order (oblivious-boosting)"
        adder(group)("--categorical COLUMN …", text)


def add_system_options(parser: argparse.ArgumentParser, text: str = "") -> None:
    """What is evaluated or compared: `SYSTEM …` with `--data` and its `--scores`, or with `--qrels`."""
    add = adder(parser)
    add("systems [SYSTEM …]", f"models that score --data, or TREC runs with --qrels{text}")
    add("--model --run --runs FILE …", "the same systems, named by an option", default=[], dest="named")
    add("--data FILE", "judged documents: a LETOR file (.gz .xz .zst), a table, or -")
    text = (
        "scores of the rows of --data: files with one score on each line, or columns; NAME:ascending if 1 is the best"
    )
    add("--scores FILE …", text, default=[], to="data")
    add("--qrels FILE", "judgements in any format that `truerank convert` reads, in place of --data")
    share(parser, "grades", "aggregate", to="qrels")
    parser.set_defaults(baseline=None)


def add_plan(parser: argparse.ArgumentParser, idle: str) -> None:
    """`--plan` and `--judges`, as `judge.from_plan` reads them; the options `idle` then have no effect."""
    add(parser, "--plan CSV", "a judged plan of `truerank judge plan`, in place of qrels")
    add(parser, "--judges FILE …", "with --plan: labels of model judges", to="plan")
    refuse(parser, idle, "plan", "has no effect with --plan, which has estimates of its own")


def add_convention(
    group: argparse._ActionsContainer,
    default: str | None = None,
    shown: str = "ranklib for judged rows, trec for runs",
    **more: Any,
) -> None:
    """`--convention`; `shown` describes the default in the help if it depends on other options."""
    from truerank.measures.conventions import CONVENTIONS

    text = "evaluation convention, which fixes gain, discount, ties, and queries without relevant documents: "
    text += f"{', '.join(CONVENTIONS)} (default: {default or shown})"
    add(group, "--convention NAME", text, choices=list(CONVENTIONS), default=default, **more)


def add_ranker_options(parser: argparse.ArgumentParser, *, prepare: bool = True) -> None:
    """`--ranker NAME --set key=value … --prepare NAME … --seed N`, as `make_ranker` reads them."""
    add = adder(parser)
    text = "ranker to train; `truerank train --list` lists them, and --ranker NAME --help describes one"
    add("--ranker NAME", text, default="oblivious-boosting", action=_RankerName)
    add("--set key=value …", "parameters of the ranker; values are read as JSON, else as strings", default=[])
    if prepare:
        names = "score-binning, percentile-in-query, min-max-in-query, z-score-in-query, unit-deviation"
        add("--prepare NAME …", f"transformations of the features, in this order: {names}")
    add("--seed N", "random seed (default: 0)", type=int)


class _RankerName(argparse.Action):
    """Stores the name; a `--help` after it also describes the parameters of this ranker."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: str | None = None) -> None:
        setattr(namespace, self.dest, values)
        general = type(parser).format_help
        parser.__dict__["format_help"] = lambda: general(parser) + parameters_text(values)


def parameters_text(name: str) -> str:
    """The parameters of a ranker from its docstring; "" for an unknown name."""
    import inspect

    from truerank.models.registry import RANKERS, ranker_class

    if name not in RANKERS:
        return ""
    text = inspect.getdoc(ranker_class(name)) or ""
    _, _, section = text.partition("Parameters\n----------\n")
    lines = section.splitlines()
    end = next((place for place, line in enumerate(lines) if line.startswith("---")), len(lines) + 1) - 1
    inside = "\n".join(f"  {line}".rstrip() for line in lines[:end]).rstrip()
    return f"\nparameters of {name} (--set key=value):\n{inside or '  none'}\n"
