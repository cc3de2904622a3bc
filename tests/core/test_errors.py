"""Errors travel between processes: a pickle of each class keeps message, fields and remedies."""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
import subprocess
import sys

import pytest

import truerank
from truerank.cli.parser import UsageError
from truerank.core import errors
from truerank.core.errors import Message, Remedy, TruerankError
from truerank.export.formats import ExportRefused
from truerank.io.table_problems import ColumnsError, Problem

FIELDS = {
    "argument": "missing",
    "value": float("inf"),
    "expected": "a word",
    "code": "word",
    "remedies": [Remedy("to go on", missing="nan")],
}


class Certificate:
    """The part of a certificate that a refusal reads."""

    def to_dict(self):
        return {"queries": 3}


EXAMPLES = [
    TruerankError("wrong", **FIELDS),
    errors.InvalidInputError(**FIELDS),
    errors.WrongTypeError(**FIELDS),
    errors.DataFileError("wrong", "a.csv", 3, 4, **FIELDS),
    errors.ModelFileError("wrong", "m.json", "trees[0]", **FIELDS),
    errors.EngineError("no answer", **FIELDS),
    errors.ClusterError("no worker", **FIELDS),
    errors.MissingExtraError("numba", "train", "fits"),
    ColumnsError([Problem("column 'brand' is not numeric", (Remedy("to ignore it", exclude=["brand"]),))]),
    ColumnsError([Problem("one"), Problem("two", (Remedy(missing="nan"),))]),
    ExportRefused(Message("differs", "distil it"), Certificate()),
    UsageError("unknown option"),
]


def subclasses(kind):
    return {kind}.union(*(subclasses(one) for one in kind.__subclasses__()))


def test_every_class_of_errors_has_an_example():
    for module in pkgutil.walk_packages(truerank.__path__, "truerank."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError:
                pytest.importorskip("dask")
    ours = {kind for kind in subclasses(TruerankError) if kind.__module__.startswith("truerank.")}
    assert ours <= {type(one) for one in EXAMPLES}


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("again", [lambda one: pickle.loads(pickle.dumps(one)), copy.copy], ids=["pickle", "copy"])
def test_a_pickle_keeps_the_error(error, again):
    other = again(error)
    assert type(other) is type(error)
    assert str(other) == str(error)
    assert other.args == error.args
    assert other.fields() == error.fields()
    assert [str(one) for one in other.remedies] == [str(one) for one in error.remedies]
    assert other.__dict__.keys() == error.__dict__.keys()
    assert getattr(other, "name", None) == getattr(error, "name", None)


def test_another_process_reads_a_pickle():
    error = errors.DataFileError("wrong", "a.csv", 3, **FIELDS)
    code = "import sys, pickle; print(pickle.load(sys.stdin.buffer))"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(error), capture_output=True, check=True)
    assert done.stdout.decode().strip() == str(error)
