"""Options of commands are the keyword arguments of the Python call behind them, with the same defaults."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

import pytest

import truerank
from truerank.cli import COMMANDS, command_parser
from truerank.cli.parser import Options, OutputFile, Parser, UsageError, argument, option, refuse

CALLS = {
    "evaluate": [truerank.evaluate],
    "compare": [truerank.compare],
    "gate": [truerank.gate],
    "power": [truerank.queries_needed],
    "tune": [truerank.tune],
    "cross-validate": [truerank.cross_validate, truerank.learning_curve],
    "retrain": [truerank.retrain],
    "judge": [truerank.plan_judgements, truerank.estimate, truerank.agreement],
    "fuse": [truerank.fuse, truerank.cross_validate_fusion],
    "cutoff": [truerank.Cutoff],
    "calibrate": [truerank.CalibratedRanker],
    "export": [truerank.export_model],
    "import": [truerank.import_model],
    "explain": [truerank.explain, truerank.permutation_importance],
    "clicks": [truerank.Examination, truerank.evaluate_from_clicks, truerank.interleave, truerank.training_data],
    "text index": [truerank.build_index],
    "text search": [truerank.retrieve],
    "text features": [truerank.TextFeatures],
    "text classify": [truerank.TextClassifier],
    "text links": [truerank.pagerank, truerank.hostrank],
}
OTHER_NAMES = {"random_state": "seed", "measures": "measure", "n_jobs": "threads"}
NO_OPTION = {  # arguments without an option, and why
    "qid": "a file has its queries",
    "doc_ids": "a file has its documents",
    "pairs": "--all-pairs, --pair and --all-values",
    "refit": "the command writes the fitted model",
    "watch": "the command prints each trial",
    "validate": "always, if the ranker uses validation queries",
    "reference": "the history of --state has the model; explain takes the rows of --data",
    "params": "--set",
    "kind": "the loss decides",
    "scaled": "the ranker decides",
    "train_sizes": "of --curve", "draws": "of --curve",
    "at": "of the table", "n_resamples": "precision", "n_draws": "precision", "repeats": "precision",
    "tol": "precision", "max_iter": "precision",
    "decay": "that of the paper",
}  # fmt: skip
NO_OPTION_HERE = {
    ("text features", "n_jobs"): "one collection is read by one thread",
    ("explain", "random_state"): "the seed is 0",
    ("fuse", "others"): "by query, the command compares the other methods by itself",
    ("cross-validate", "measure"): "the first of --measures",
}
OTHER_DEFAULTS = {  # by command and argument, and why
    ("evaluate", "measures"): "the command prints a table of two measures",
    ("calibrate", "method"): "the command has queries to choose the method with",
    ("power", "test"): "`Experiment.power`, which the command calls, has the test of compare",
}


def options_of(command: str) -> dict[str, argparse.Action]:
    return {action.dest: action for action in command_parser(command)[1]._actions}


def comparable(value: Any) -> Any:
    """None, empty lists and seed 0 are what is not given; lists of one are their item."""
    if isinstance(value, list | tuple):
        value = list(value) if len(value) > 1 else next(iter(value), None)
    return value or None


@pytest.mark.parametrize("command", CALLS)
def test_options_are_arguments_with_the_same_defaults(command):
    options, there = options_of(command), set()
    for function in CALLS[command]:
        for name, own in inspect.signature(function).parameters.items():
            if own.default is own.empty:
                continue
            option = options.get(name) or options.get(OTHER_NAMES.get(name, name))
            if option is None:
                assert name in NO_OPTION or (command, name) in NO_OPTION_HERE, (function.__name__, name)
                continue
            there.add(name)
            given = comparable(option.default)  # None: the argument is passed only if the option is given
            if (command, name) in OTHER_DEFAULTS:
                assert given != comparable(own.default), f"{command} {name} needs no exception"
            else:
                assert given in (None, comparable(own.default)), (function.__name__, name, option.default)
    assert there, command


def test_no_exception_is_idle():
    lacking = set()
    for command, functions in CALLS.items():
        options = options_of(command)
        for function in functions:
            names = {n for n, one in inspect.signature(function).parameters.items() if one.default is not one.empty}
            lacking |= {name for name in names if name not in options and OTHER_NAMES.get(name, name) not in options}
    assert set(NO_OPTION) <= lacking


class Toy(Options):
    data: str = argument("rows", "DATA")
    depth: int | None = option("ranks", "K")
    share: float = option("share of the rows", "S", default=0.5)
    names: list[str] = option("names", "NAME …")
    model: OutputFile | None = option("the model", "FILE")
    name: str = option("required, because there is no None and no default", "NAME")
    plain: bool = option("a flag", to="depth")
    RULES = (refuse("names", "share=0.1"),)


def parsed(*words: str) -> Toy:
    parser = Parser()
    Toy.configure(parser)
    return Toy.parsed(parser, parser.parse_args(list(words)))


def test_the_type_of_a_field_says_what_the_option_accepts():
    found = parsed("rows.txt", "--name", "a", "--names", "x", "y", "--names", "z", "--depth", "3")
    assert (found.data, found.depth, found.share, found.names) == ("rows.txt", 3, 0.5, ["x", "y", "z"])
    assert (found.model, found.plain) == (None, False)
    for words in (
        ["rows.txt"],
        ["--name", "a"],
        ["r", "--name", "a", "--depth", "many"],
        ["r", "--name", "a", "--plain"],
    ):
        with pytest.raises(UsageError):
            parsed(*words)
    with pytest.raises(UsageError):
        parsed("r", "--name", "a", "--share", "0.1", "--names", "b")


def test_options_do_not_change():
    found = parsed("rows.txt", "--name", "a")
    with pytest.raises(AttributeError):
        found.depth = 3
    assert (found.but(depth=3).depth, found.depth) == (3, None)
    assert found.but(depth=3).collected is found.collected


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"trec-eval"}))
def test_the_default_of_each_option_has_its_type(command):
    """Fields without `None` in their type are never None, and lists are lists."""
    module, parser = command_parser(command)
    for name, (kind, _) in module.Arguments.DECLARED.items():
        action = next(one for one in parser._actions if one.dest == name)
        if not action.required:
            assert (action.default is None) == (
                " | None" in kind or (action.nargs == "*" and not action.option_strings)
            )
            assert "list[" not in kind or isinstance(action.default, list | None), name


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"trec-eval"}))
def test_rules_refuse_options_of_the_command(command):
    """A rule that names an option which the command lacks would never refuse anything."""
    arguments = command_parser(command)[0].Arguments
    assert set(arguments.OF_OPTION) <= set(arguments.DECLARED)
    for rules in arguments.OF_OPTION.values():
        assert {word.partition("=")[0] for rule in rules for word in rule.condition.split()} <= set(arguments.DECLARED)


@pytest.mark.parametrize(
    "words", [["-m", "AP", "-m", "RR"], ["--measure", "AP", "RR"], ["--measures", "AP", "-m", "RR"]]
)
@pytest.mark.parametrize("command", ["evaluate", "compare", "cross-validate", "report"])
def test_measures_of_several_options_are_all_measured(command, words):
    found = command_parser(command)[1].parse_args([*(["d"] if command == "cross-validate" else []), *words])
    held = {name: own for name, own in vars(found).items() if name.startswith("measure")}
    assert list(held.values()) == [["AP", "RR"]]
