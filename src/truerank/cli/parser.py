"""Declare the options of commands as typed fields, whose parsed values are immutable."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from types import ModuleType
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

from truerank.core.errors import TruerankError, Wording
from truerank.core.files import check_target, identity
from truerank.core.method_names import bare, called_here
from truerank.core.names import nearest


class UsageError(TruerankError):
    """The command was misused (exit code 2)."""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises its errors."""

    def error(self, message: str) -> NoReturn:
        """Raise a `UsageError`."""
        raise UsageError(message)

    def _get_value(self, action: argparse.Action, text: str) -> Any:
        value = super()._get_value(action, text)
        choices = {bare(str(own)): own for own in action.choices or ()}
        method = called_here(text)
        return choices.get(bare(method.name if method else text), value) if value not in choices.values() else value

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            near = nearest(str(value), map(str, action.choices or ()))
            raise argparse.ArgumentError(action, error.message + near) from None


class _Values(argparse.Action):
    """Collect the values of an option, also of one that is given several times, in place of its default."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: str | None = None) -> None:
        held = getattr(namespace, self.dest)
        setattr(namespace, self.dest, values if held is self.default else [*held, *values])


class OptionWording(Wording):
    """Arguments as options of a command.

    Parameters
    ----------
    options : dict
        The options of the command, with the name of their value in the help ("" for a flag).

    Examples
    --------
    >>> OptionWording({"--topics": "TOPICS"}).argument("topics", "common"), OptionWording({}).argument("sparse", True)
    ('--topics common', None)
    """

    verb, between = "add", " "

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = options

    def value(self, option: str) -> str:
        """Return the name of an option's value, which for `key=VALUE` is the name after the sign."""
        return self.options[option].rpartition("=")[2]

    def argument(self, name: str, value: Any) -> str | None:
        option = f"--{OPTION_NAMES.get(name, name).replace('_', '-')}"
        if option not in self.options:
            return None
        if isinstance(value, dict):
            value = [f"{key}={self.value(option) if own is ... else own}" for key, own in value.items()]
        values = [] if value is True else value if isinstance(value, list | tuple) else [value]
        return " ".join([option, *(self.value(option) if one is ... else shlex.quote(str(one)) for one in values)])

    def conversion(self, path: str, arguments: dict[str, Any]) -> str:
        """Return the command that converts judgements, for a failed command that lacks the options for them.

        >>> OptionWording({}).conversion("jobs.csv", {"query": "job", "document": "cv"})
        'type: truerank convert jobs.csv judgements.csv --to ratings --query-column job --document-column cv'
        """
        files = ["JUDGEMENTS", "rows.parquet"] if "join" in arguments else [path, "judgements.csv", "--to", "ratings"]
        words = ["truerank", "convert", *files]
        for name, value in arguments.items():
            option = f"--{OPTION_NAMES.get(name, name)}"
            words += [f"{option}={value}"] if value.startswith("-") else [option, value]
        return f"type: {shlex.join(words)}"


OPTION_NAMES = {
    "query": "query-column", "grade": "grade-column", "document": "document-column", "categories": "categorical",
    "eval_set": "valid",
}  # fmt: skip
"""Options that are named differently from the arguments: `read_table` reads the columns that the options name."""


def wording_of(parser: argparse.ArgumentParser) -> OptionWording:
    """Return the wording of a parser's options in messages."""
    return OptionWording({
        option: "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
        for option, action in parser._option_string_actions.items()
    })  # fmt: skip


def description(module: ModuleType, summary: str) -> str:
    """Return the docstring of a command without its first line, or the command's summary if nothing is left."""
    text = " ".join((module.__doc__ or "").partition("\n\n")[2].split())
    return text or f"{summary[:1].upper()}{summary[1:]}."


def finish_help(parser: argparse.ArgumentParser, rare: Collection[str], shows_all: bool) -> None:
    """Hide the options `rare` unless all are shown, name `--help-all` if there are any, and set a usage of one line.

    The usage has the arguments and the required options of the command; its help lists all options.
    """
    words = [parser.prog]
    for action in parser._actions:
        name = action.metavar if isinstance(action.metavar, str) else action.dest
        if action.dest in rare:
            parser._option_string_actions["--help-all"].help = "show this message and the rare options"
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
    """An `Output` that must be a file, not standard output."""

    is_file = True


class OutputFolder(str):
    """The name of an output folder."""

    def check(self, option: str) -> None:
        """Refuse standard output and files."""
        if self == "-":
            raise UsageError(f"{option} must be a folder, and - is standard output. Give the name of a folder")
        if os.path.exists(self) and not os.path.isdir(self):
            raise UsageError(f"{option} {self} is a file, but must be a folder. Name a folder")


_OF_RUNS = ("files", "named", "runs", "systems")  # arguments that may be folders whose files are all read


class Replaced(str):
    """The name of a file that the command reads and may replace."""


class Outputs:
    """The output files of a command, which must differ from each other and from the files that it reads."""

    def __init__(self, read: Iterable[str]) -> None:
        self._read = read
        self._written: dict[Any, str] = {}

    def add(self, path: str | os.PathLike[str], option: str = "") -> None:
        """Add an output; raise an error if it is an input or another output. `option` names it in the message."""
        place, label = identity(path), f"{option} {os.fspath(path)}".strip()
        if place is not None and place in map(identity, self._read):
            raise UsageError(f"{os.fspath(path)} is read and would be overwritten. Name another file for the output")
        if place is not None and self._written.setdefault(place, label) is not label:
            raise UsageError(f"{label} and {self._written[place]} must be different files. Name two files")


def positive(text: str) -> int:
    """Return a number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text}")
    return int(text)


def n_threads(text: str) -> int:
    """Return a number of threads."""
    if text == "-1" or (text.isdecimal() and int(text) > 0):
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, or -1 for all processors, got {text}")


def one_word(text: str) -> str:
    """Return the name of a run, which is one word."""
    if not text or any(character.isspace() for character in text):
        raise argparse.ArgumentTypeError(f"must be one word, got {text!r}")
    return text


def is_given(value: Any) -> bool:
    """Return whether the value of an option differs from its default; 0 also counts as given."""
    return value is not None and value is not False and value != []


_USUAL = {"output": "-o --output", "measure": "-m --measure --measures", "measures": "-m --measures --measure"}


class Declared(NamedTuple):
    """The declaration of a field by `option` or `argument`."""

    text: str
    value: str
    positional: bool
    settings: dict[str, Any]

    def names(self, field: str) -> list[str]:
        """Return the names of the option of a field; none for an argument."""
        return (
            []
            if self.positional
            else self.settings.get("names", _USUAL.get(field, f"--{field.replace('_', '-')}")).split()
        )


def option(text: str, value: str = "", **settings: Any) -> Any:
    """Declare an option as a field of `Options`: `depth: int | None = option("ranks that count", "N")` is `--depth N`.

    The type converts the value: `bool` is a flag, and a type without `None` or a default is required. "FILE …" accepts
    one or more values, and "[FILE]" at most one. The help of an option states its default. The option is refused
    unless the condition `to` holds, and `why` follows its name in the message. The setting `writes` is a function that
    returns `Output`, `OutputFile` or `OutputFolder` if the parsed options make this one an output, else `str`. `names`
    are the names of the option if they differ from the field's, and `group` is its heading in the help.
    """
    return Declared(text, value, False, settings)


def argument(text: str, value: str = "", **settings: Any) -> Any:
    """Declare an argument that is identified by its position; "[FILE …]" accepts any number of values. See `option`."""
    return Declared(text, value, True, settings)


def within(group: str, **more: Any) -> Callable[..., Any]:
    """Return `option` with a heading of the help, and other settings of all its options."""
    return partial(option, group=group, **more)


class Rule(NamedTuple):
    """Options that are refused if a condition holds, or unless it holds; see `_holds`."""

    names: str | type[Options]
    condition: str
    refused: bool
    why: str


def refuse(names: str | type[Options], condition: str, why: str = "") -> Rule:
    """Refuse the options `names` when a condition holds; `why` follows the name of the option in the message."""
    return Rule(names, condition, True, why or f"cannot be combined with --{condition.replace('_', '-')}")


def only(names: str | type[Options], condition: str, why: str = "") -> Rule:
    """Refuse the options `names` unless a condition holds."""
    return Rule(names, condition, False, why or f"requires --{condition.replace(' ', ' or --').replace('_', '-')}")


class Options:
    """Immutable parsed options of a command; `but` returns changed ones.

    A command declares its options as fields of a subclass `Arguments`, with their types; the classes below have those
    of several commands. `RULES` lists which options exclude or require each other. `read` are the files that are read,
    and `outputs` those that are written; a command adds outputs whose names it derives.
    """

    RULES: tuple[Rule, ...] = ()
    FIRST = False
    """Whether these options come before others in the help."""
    INTERMIXED = False
    """Whether files may also follow options."""
    command: str
    argv: list[str]
    wording: OptionWording
    read: list[str]
    outputs: Outputs
    collected: dict[str, Any]
    """Entries that a command collects for `--json`: remarks on what was read, of `common.remark`."""

    DECLARED: ClassVar[dict[str, tuple[str, Declared]]] = {}
    """The type and declaration of each option, own ones before those of bases that are not `FIRST`."""
    DEFAULTS: ClassVar[dict[str, Any]] = {}
    OF_OPTION: ClassVar[dict[str, list[Rule]]] = {}
    """The rules of each option, its `to` first."""

    def __init_subclass__(cls) -> None:
        cls.DECLARED, cls.OF_OPTION = {}, {}
        for first in (True, False):
            for kind in cls.__mro__[:-1]:
                own = vars(kind).items() if bool(vars(kind).get("FIRST")) == first else ()
                for name, one in own:
                    if isinstance(one, Declared):
                        cls.DECLARED.setdefault(name, (kind.__annotations__[name], one))
        cls.DEFAULTS = {name: _default(kind, one) for name, (kind, one) in cls.DECLARED.items()}
        for name, (_, one) in cls.DECLARED.items():
            if to := one.settings.get("to"):
                cls.OF_OPTION[name] = [only(name, to, one.settings.get("why", ""))]
        for base in cls.__mro__:
            for rule in vars(base).get("RULES", ()):
                for name in rule.names.split() if isinstance(rule.names, str) else rule.names.DECLARED:
                    cls.OF_OPTION.setdefault(name, []).append(rule)

    def __init__(self, **values: Any) -> None:
        vars(self).update({"collected": {}} | self.DEFAULTS | values)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"options do not change. Use but({name}=...)")

    def but(self, **changed: Any) -> Self:
        """Return these options with other values."""
        return type(self)(**vars(self) | changed)

    @classmethod
    def configure(cls, parser: argparse.ArgumentParser) -> None:
        """Declare the options in a parser."""
        groups: dict[str, argparse._ActionsContainer] = {"": parser}
        for name, (kind, one) in cls.DECLARED.items():
            title = one.settings.get("group", "")
            if title not in groups:
                groups[title] = parser.add_argument_group(title)
            _add(groups[title], name, kind, one)

    @classmethod
    def parsed(cls, parser: argparse.ArgumentParser, found: argparse.Namespace, **about: Any) -> Self:
        """Return the options that a parser found; raise an error for an option that its rules refuse.

        An output that cannot be written, or is another file of the command, is an error.
        """
        options = cls(**vars(found), **about)
        for action in parser._actions:
            if (rule := options.refusing(action.dest)) is not None:
                name = next((one for one in action.option_strings if one.startswith("--")), str(action.metavar))
                raise UsageError(f"{name} {rule.why.format(**vars(options))}")
        return options._with_files(parser)

    def refusing(self, name: str) -> Rule | None:
        """Return the first rule that refuses the value of an option, if it is given; else None."""
        if name in self.OF_OPTION and is_given(getattr(self, name)):
            for rule in self.OF_OPTION[name]:
                if self._holds(rule.condition) == rule.refused:
                    return rule
        return None

    def _holds(self, condition: str) -> bool:
        """Return whether one of the options is given ("data scores"), or has a value ("how=refit")."""
        for word in condition.split():
            name, equals, value = word.partition("=")
            own = getattr(self, name)
            if str(own) == value if equals else is_given(own):
                return True
        return False

    def _with_files(self, parser: argparse.ArgumentParser) -> Self:
        read: list[str] = []
        written: dict[str, Any] = {}
        changed = {}
        for action in parser._actions:
            value = getattr(self, action.dest, None)
            if "writes" in vars(action) and isinstance(value, str):
                value = changed[action.dest] = vars(action)["writes"](self)(value)
            if isinstance(value, Output | OutputFolder):
                written[(action.option_strings or [str(action.metavar)])[0]] = value
            elif not (action.choices or isinstance(value, Replaced) or action.type is one_word):
                for name in value if isinstance(value, list) else [value]:
                    if isinstance(name, str) and os.path.isfile(name):
                        read.append(name)
                    elif isinstance(name, str) and action.dest in _OF_RUNS and os.path.isdir(name):
                        read += [entry.path for entry in os.scandir(name)]  # a folder of runs
        outputs = Outputs(read)
        for option, value in written.items():
            value.check(option)
            if value != "-":
                outputs.add(value, option)
        return self.but(**changed, read=list(dict.fromkeys(read)), outputs=outputs)


_CONVERTERS: dict[str, Callable[[str], Any]] = {
    "int": int, "float": float, "Output": Output, "OutputFile": OutputFile, "OutputFolder": OutputFolder,
    "Replaced": Replaced,
}  # fmt: skip
"""Functions that convert texts to a type; other types stay text."""


def _default(kind: str, declared: Declared) -> Any:
    """Return the value of an option that is not given."""
    return declared.settings.get("default", {"b": False, "l": []}.get(kind[0]) if " | None" not in kind else None)


def _add(group: argparse._ActionsContainer, name: str, kind: str, declared: Declared) -> None:
    """Add an option to a parser or a group."""
    text, value, settings = declared.text, declared.value, dict(declared.settings)
    writes = settings.pop("writes", None)
    for own in ("names", "to", "why", "group"):
        settings.pop(own, None)
    item, default = kind.removesuffix(" | None"), settings.get("default")
    several = item.startswith("list[")
    item = item[5:-1] if several else item
    if item == "bool":
        settings["action"] = "store_true"
    elif item in _CONVERTERS:
        settings.setdefault("type", _CONVERTERS[item])
    if value:
        settings["metavar"] = value.strip("[]").removesuffix(" …")
        nargs = {(True, False): "?", (True, True): "*", (False, True): "+"}.get((value[0] == "[", " …" in value))
        if nargs:
            settings["nargs"] = nargs
        if nargs == "+" and not declared.positional:
            settings["action"] = _Values
    if is_given(default):
        shown = " ".join(default) if isinstance(default, list) else default
        text += "" if "(default" in text else f" (default: {shown})"
    if declared.positional:
        action = group.add_argument(name, help=text, **settings)
    else:
        if not kind.endswith(" | None") and item != "bool":
            more: dict[str, Any] = {"default": []} if several and default is None else {"required": default is None}
            settings |= more
        action = group.add_argument(*declared.names(name), dest=name, help=text, **settings)
    if writes is not None:
        vars(action)["writes"] = writes
