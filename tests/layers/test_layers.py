"""Each layer of the installation imports and runs what it is for; a missing one is an error with the command."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tomllib

import pytest

from layers.test_base import files as files
from layers.test_base import run
from support.layers import ROOT, normalised, requirements
from truerank.core.layers import LIBRARIES, PURPOSES, Layers

with open(ROOT / "pyproject.toml", "rb") as stream:
    EXTRAS = tomllib.load(stream)["project"]["optional-dependencies"]
OF_LAYERS = {  # code that imports the layer's libraries, and a command
    "train": ("truerank.MeasureSVM; truerank.ObliviousBoosting", "train rows.txt --ranker ridge --model OUT.json"),
    "train,tables": ("truerank.read_table", "evaluate model.json --data rows.parquet --training-queries keep"),
    "tables": ("truerank.read_table", "evaluate --data rows.parquet --scores scores.txt"),
    "text": ("truerank.TextClassifier", "text index texts.jsonl -o OUT.index"),
    "report": (
        "import vl_convert",
        "report bm25.run latent.run --qrels qrels.txt --cutoff cutoff.json -o OUT.html",
    ),
    "zstd": ("import zstandard", "convert rows.txt OUT.txt.zst"),
    "onnx": ("import onnx", "export model.json --to onnx -o OUT.onnx"),
    "tune": ("import optuna", "tune rows.txt --ranker ridge --trials 2 --cv 2 --model OUT.json"),
    "cluster": ("import truerank.cluster.data, distributed", "train rows.txt --ranker ridge --model OUT.json"),
    "all": ("truerank.MeasureSVM", "evaluate model.json --data rows.parquet --training-queries keep"),
}
MISSING = {
    "compare model.json --data rows.txt --baseline bm25.porter-stop.all": "train",
    "evaluate model.json --data rows.txt": "train",
    "train rows.txt --model OUT.json": "train",
    "evaluate --data rows.parquet --scores scores.txt": "tables",
    "convert rows.txt OUT.parquet": "tables",
    "convert rows.txt OUT.txt.zst": "zstd",
    "report bm25.run latent.run --qrels qrels.txt -o OUT.html": "report",
    "text index texts.jsonl -o OUT.index": "text",
}


def test_each_missing_layer_is_named_with_its_command(files):
    done = run("base", files, commands=list(MISSING))
    for (command, layer), (code, out, err) in zip(MISSING.items(), json.loads(done.stdout)):
        assert (code, out) == (1, ""), command
        assert f"pip install 'truerank[{layer}]'" in err, command


def test_a_missing_layer_is_an_error_with_its_name_in_python_too(files):
    code = """
import importlib.util, truerank
for action in (lambda: truerank.AdaRank, lambda: truerank.read_table("rows.parquet"), lambda: truerank.Index):
    try:
        action()
    except ImportError as error:
        print(type(error).__name__, error.name, error.extra)
print(importlib.util.find_spec("numba"), importlib.util.find_spec("pyarrow"))
try:
    import sklearn
except ModuleNotFoundError as error:
    print(type(error).__name__)
"""
    done = run("base", files, code)
    lines = done.stdout.splitlines()
    assert len(lines) == 5, done.stderr
    assert [line.split()[0] for line in lines[:3]] == ["MissingExtraError"] * 3, done.stderr
    assert [line.split()[-1] for line in lines[:3]] == ["train", "tables", "text"]
    assert lines[-2:] == ["None None", "ModuleNotFoundError"]  # other code sees what Python says


@pytest.mark.parametrize("layers", OF_LAYERS)
def test_a_layer_imports_its_libraries_and_runs_a_command(layers, files):
    code, command = OF_LAYERS[layers]
    (files / "texts.jsonl").write_text('{"id": "a", "text": "cats and dogs"}\n{"id": "b", "text": "a dog"}\n')
    words = f"""
import json, truerank
{code}
from truerank.cli import main
assert main({command.replace("OUT", "of-" + layers.replace(",", "-")).split()!r}) == 0
"""
    done = run(layers, files, words)
    assert done.returncode == 0, done.stderr


def test_the_table_of_libraries_is_the_one_of_the_extras():
    for module, (layer, distribution) in LIBRARIES.items():
        assert normalised(distribution) in {normalised(re.match(r"[\w.-]+", line)[0]) for line in EXTRAS[layer]}, module
        assert normalised(distribution) not in requirements("base")
    assert {layer for layer, _ in LIBRARIES.values()} == set(PURPOSES)
    assert set(re.search(r"\[(.*)\]", EXTRAS["all"][0])[1].split(",")) == set(PURPOSES) - {"peers"}
    assert sys.meta_path.count(Layers) == 1
    assert importlib.util.find_spec("no_such_library") is None


def test_pages_about_tasks_link_to_the_layers_and_the_page_of_layers_has_each():
    docs = ROOT / "docs"
    if not docs.exists():
        pytest.skip("docs/ is not here")
    for folder in ("howto", "tutorials", "methods"):
        for page in (docs / folder).glob("*.md"):
            assert "installation.md" in page.read_text(encoding="utf-8"), page
    text = (docs / "installation.md").read_text(encoding="utf-8")
    assert {layer for layer in PURPOSES if f"| `{layer}` |" not in text} == {"peers"}
