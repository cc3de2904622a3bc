"""Options of commands are the keyword arguments of the Python call behind them, with the same defaults."""

from __future__ import annotations

import argparse
import inspect
from importlib import import_module
from typing import Any

import pytest

import truerank
from truerank.cli import COMMANDS
from truerank.cli.options import Parser

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
    parser = Parser()
    import_module(COMMANDS[command][0]).configure(parser)
    return {action.dest: action for action in parser._actions}


def comparable(value: Any) -> Any:
    """None, empty lists and seed 0 are what is not given; lists of one are their item."""
    if isinstance(value, list | tuple):
        value = list(value) if len(value) > 1 else next(iter(value), None)
    return value or None


@pytest.mark.parametrize("command", CALLS)
def test_options_are_arguments_with_the_same_defaults(command):
    options, there = options_of(command), set()
    for function in CALLS[command]:
        for name, argument in inspect.signature(function).parameters.items():
            if argument.default is argument.empty:
                continue
            option = options.get(name) or options.get(OTHER_NAMES.get(name, name))
            if option is None:
                assert name in NO_OPTION or (command, name) in NO_OPTION_HERE, (function.__name__, name)
                continue
            there.add(name)
            given = comparable(option.default)  # None: the argument is passed only if the option is given
            if (command, name) in OTHER_DEFAULTS:
                assert given != comparable(argument.default), f"{command} {name} needs no exception"
            else:
                assert given in (None, comparable(argument.default)), (function.__name__, name, option.default)
    assert there, command


def test_no_exception_is_idle():
    lacking = set()
    for command, functions in CALLS.items():
        options = options_of(command)
        for function in functions:
            names = {n for n, one in inspect.signature(function).parameters.items() if one.default is not one.empty}
            lacking |= {name for name in names if name not in options and OTHER_NAMES.get(name, name) not in options}
    assert set(NO_OPTION) <= lacking
