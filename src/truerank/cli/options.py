"""Options that several commands share."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from typing import Any, NoReturn

from truerank.core.errors import TruerankError
from truerank.core.files import check_target

CONVENTIONS = (
    "trec", "trec9", "gdeval", "letor3", "letor4", "mslr", "ranklib", "lightgbm", "xgboost", "catboost", "sklearn",
    "ranx",
)  # fmt: skip


class UsageError(TruerankError):
    """The command was misused: exit code 2."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are exceptions."""

    def error(self, message: str) -> NoReturn:
        """Raise a `UsageError`."""
        raise UsageError(message)


def short_usage(parser: argparse.ArgumentParser) -> str:
    """One line with the arguments and the required options of a command; its help lists all options."""
    words = [parser.prog]
    for action in parser._actions:
        name = action.metavar if isinstance(action.metavar, str) else action.dest
        if action.option_strings:
            if action.required:
                words.append(f"{action.option_strings[0]} {name}")
        else:
            name = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else name
            more = {"*": f"[{name} …]", "+": f"{name} …", "?": f"[{name}]"}
            words.append(more.get(str(action.nargs), name))
    return " ".join([*words, "[options]"])


class Output(str):
    """The name of an output that can be written, checked before the command runs; `-` is standard output."""

    def check(self, option: str) -> None:
        """Raise an error if the output cannot be written; `option` names it in the message."""
        if self != "-":
            check_target(self)


class OutputFile(Output):
    """As `Output`, for what must be a file."""

    def check(self, option: str) -> None:
        """Raise an error if the file cannot be written."""
        if self == "-":
            raise UsageError(f"{option} cannot write to standard output (-). Give a file name")
        super().check(option)


class OutputFolder(str):
    """The name of an output folder."""

    def check(self, option: str) -> None:
        """Refuse standard output and files."""
        if self == "-":
            raise UsageError(f"{option} must be a folder, and - is standard output. Give the name of a folder")
        if os.path.exists(self) and not os.path.isdir(self):
            raise UsageError(f"{option} {self} is a file; name a folder")


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


def belongs(actions: Iterable[argparse.Action], to: str, why: str) -> None:
    """Refuse options unless one of the arguments `to` is given; `why` follows the option in the message."""
    for action in actions:
        vars(action)["belongs"] = to.split(), why


def check_given(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Raise an error for an output that cannot be written, and for an option whose `belongs` is not given."""
    for action in parser._actions:
        value = getattr(args, action.dest, None)
        others, why = vars(action).get("belongs", ((), ""))
        if others and is_given(value) and not any(is_given(getattr(args, name)) for name in others):
            raise UsageError(f"--{action.dest.replace('_', '-')} {why}")
    for action in parser._actions:
        value = getattr(args, action.dest, None)
        if isinstance(value, Output | OutputFolder):
            value.check((action.option_strings or [str(action.metavar)])[0])


def is_given(value: Any) -> bool:
    """Whether the value of an option is not its default; 0 is given, too."""
    return value is not None and value is not False and value != []


OF_LETOR = ("n_features", "sparse", "max_line")
OF_TABLES = ("query_column", "grade_column", "document_column")


def add_data_options(
    parser: argparse.ArgumentParser, *, columns: bool = True, categorical: bool = False, to: str = "", why: str = ""
) -> None:
    """Options on reading a data file, its feature columns and, for training, its categories.

    `to` and `why` are those of `belongs`, if data are not always read.
    """
    reading = group = parser.add_argument_group("reading data")
    group.add_argument(
        "--missing",
        choices=("error", "nan"),
        help="treat NULL and nan in features as an error, or as missing values (default: as the model's training data "
        "were read, else error)",
    )
    group.add_argument(
        "--n-features",
        type=positive,
        metavar="N",
        help="number of features in LETOR text; set it if the last features are missing in all rows of a file",
    )
    group.add_argument(
        "--sparse",
        action="store_true",
        help="read LETOR text as a sparse matrix, for wide data; the weights of linear rankers with scale=auto differ",
    )
    group.add_argument(
        "--max-line",
        type=positive,
        metavar="BYTES",
        help="longest line of LETOR text; a longer one is an error (default: 16777216)",
    )
    group.add_argument("--query-column", metavar="NAME", help="column of the query in a table (default: qid)")
    group.add_argument("--grade-column", metavar="NAME", help="column of the grade in a table (default: y)")
    group.add_argument("--document-column", metavar="NAME", help="column of the document id in a table")
    belongs(reading._group_actions, to, why)
    if not columns:  # the model knows its own
        return
    group = parser.add_argument_group("columns")
    for name, text in (
        (
            "features",
            "columns to use as features: names, patterns ('bm25*'), or numbers from 1 (1-10,15); default: all",
        ),
        ("exclude", "columns to ignore, named in the same ways"),
    ):
        belongs([group.add_argument(f"--{name}", action="extend", nargs="+", metavar="COLUMN", help=text)], to, why)
    if categorical:
        group.add_argument(
            "--categorical",
            action="extend",
            nargs="+",
            metavar="COLUMN",
            help="features that are categories: text, or numbers without an order (oblivious-boosting)",
        )


def add_position_option(parser: argparse.ArgumentParser) -> None:
    """`--position`: a column that is no feature."""
    parser.add_argument(
        "--position", metavar="COLUMN", help="where each row was shown, 1 is first: for objective=unbiased-lambdarank"
    )


def add_cluster_option(parser: argparse.ArgumentParser) -> None:
    """`--cluster`: where the partitions are."""
    parser.add_argument(
        "--cluster",
        metavar="WHERE",
        help="local:N (N worker processes) or tcp://scheduler:port: each file that the pattern names is a partition, "
        "which the workers read",
    )
    out_of_core = parser.add_argument(
        "--out-of-core", action="store_true", help="with --cluster: do not keep rows in memory between passes"
    )
    belongs([out_of_core], "cluster", "is for partitions on a cluster, and no cluster is named")


def add_system_options(parser: argparse.ArgumentParser, text: str = "") -> None:
    """What is evaluated or compared: `SYSTEM …` with `--data` and its `--scores`, or with `--qrels`."""
    parser.add_argument(
        "systems", nargs="*", metavar="SYSTEM", help=f"models that score --data, or TREC runs with --qrels{text}"
    )
    parser.add_argument(
        "--model", "--run", "--runs", nargs="+", action="extend", default=[], metavar="FILE", dest="named",
        help="the same systems, named by an option",
    )  # fmt: skip
    parser.add_argument("--data", metavar="FILE", help="judged documents: a LETOR file (.gz .xz .zst), a table, or -")
    scores = parser.add_argument(
        "--scores",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="scores of the rows of --data: files with one score a line, or columns of --data",
    )
    belongs([scores], "data", "belongs to --data")
    parser.add_argument("--qrels", metavar="FILE", help="TREC judgements, in place of --data")


def add_output_option(parser: argparse._ActionsContainer, text: str, kind: type[str] = Output, **more: Any) -> None:
    """`-o`, `--output`: `text` is its help, `kind` is `Output`, `OutputFile` or `OutputFolder`."""
    parser.add_argument("-o", "--output", type=kind, help=text, **{"metavar": "FILE"} | more)


def add_query_options(parser: argparse._ActionsContainer) -> None:
    """`--query-field`: for commands that read queries of text."""
    parser.add_argument("--query-field", metavar="FIELD", help="the field that is the query (TREC: title, desc, narr)")


def add_depth_option(parser: argparse._ActionsContainer, text: str, default: int | None = None) -> argparse.Action:
    """`--depth`: a number of documents or candidates; `text` is its help."""
    return parser.add_argument("--depth", type=positive, default=default, metavar="N", help=text)


def add_threads_option(parser: argparse.ArgumentParser) -> None:
    """`--threads`."""
    text = "threads (default: 1); -1 uses all processors"
    parser.add_argument("--threads", type=threads, metavar="N", help=text)


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """`--json`: one JSON object on stdout instead of a table."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_topics_option(parser: argparse._ActionsContainer) -> None:
    """`--topics`: the topics that the means of runs include."""
    topics = parser.add_argument(
        "--topics",
        choices=("common", "all"),
        help="with --qrels: common: topics that all runs have; all: all topics of the qrels, where a missing topic "
        "counts 0 as in trec_eval -c (default: the topics of the runs, which must be the same)",
    )
    belongs([topics], "qrels", "belongs to --qrels")


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """`--plan` and `--judges`: few human judgements in place of qrels, as `truerank judge` has them."""
    parser.add_argument("--plan", metavar="CSV", help="a judged plan of `truerank judge plan`, in place of qrels")
    judges = parser.add_argument("--judges", nargs="+", metavar="FILE", help="with --plan: labels of model judges")
    belongs([judges], "plan", "belongs to --plan")


def add_training_option(parser: argparse.ArgumentParser) -> None:
    """`--allow-training-queries`: include queries that the model was trained on."""
    parser.add_argument(
        "--allow-training-queries",
        action="store_true",
        help="include queries that the model was trained on (default: they are left out)",
    )


def add_test_option(
    parser: argparse.ArgumentParser, choices: tuple[str, ...] = ("randomisation", "t", "wilcoxon", "sign")
) -> None:
    """`--test`: the paired test of per-query values."""
    text = "paired, two-sided test of the per-query values (default: randomisation)"
    parser.add_argument("--test", choices=choices, default="randomisation", help=text)


def add_splits_option(parser: argparse.ArgumentParser) -> None:
    """`--splits`, also called `--folds`."""
    parser.add_argument("--splits", "--folds", type=int, metavar="K", help="folds of a single file (default: 5)")


def add_convention_option(
    parser: argparse._ActionsContainer,
    default: str | None = "ranklib",
    shown: str = "ranklib for judged rows, trec for runs",
) -> None:
    """`--convention`: gain, discount, ties and empty queries of measures.

    `shown` describes the default in the help if it depends on other options.
    """
    parser.add_argument(
        "--convention",
        choices=CONVENTIONS,
        default=default,
        metavar="NAME",
        help="evaluation convention, which fixes gain, discount, ties, and queries without relevant documents: "
        f"{', '.join(CONVENTIONS)} (default: {default or shown})",
    )


def add_ranker_options(parser: argparse.ArgumentParser, *, prepare: bool = True) -> None:
    """`--ranker NAME --set key=value … --prepare NAME … --seed N`, as `make_ranker` reads them."""
    parser.add_argument(
        "--ranker",
        default="oblivious-boosting",
        metavar="NAME",
        action=_RankerName,
        help="ranker to train (default: oblivious-boosting); see `truerank train --list`, and --ranker NAME --help for "
        "the parameters of one",
    )
    add_set_option(parser, "parameters of the ranker; values are read as JSON, else taken as strings")
    if prepare:
        parser.add_argument(
            "--prepare",
            action="extend",
            nargs="+",
            metavar="NAME",
            help="transformations applied to the features, in this order: score-binning, percentile-in-query, "
            "min-max-in-query, z-score-in-query, unit-deviation",
        )
    parser.add_argument("--seed", type=int, metavar="N", help="random seed (default: 0)")


def add_set_option(parser: Any, text: str) -> None:
    """`--set key=value …`, as `parse_settings` reads them; `text` is its help."""
    parser.add_argument("--set", action="extend", nargs="+", default=[], metavar="key=value", help=text)


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


def add_replace_option(parser: argparse.ArgumentParser) -> None:
    """`--replace`, for commands that write several files into a folder."""
    parser.add_argument("--replace", action="store_true", help="overwrite files of the same names in the folder")
