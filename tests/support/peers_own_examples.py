"""The examples of ranking that XGBoost, LightGBM and CatBoost ship, run as printed but for the import.

    git clone https://github.com/dmlc/xgboost
    git clone https://github.com/microsoft/LightGBM
    git clone https://github.com/catboost/tutorials
    python tests/support/peers_own_examples.py xgboost
    python tests/support/peers_own_examples.py LightGBM
    python tests/support/peers_own_examples.py tutorials

The argument is the checkout's folder. Data that an example downloads are the shipped sample, and CatBoost's 2,000 trees
are 20. Prints a line for each example: that it ran, or what stopped it.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import re
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import truerank


def report(name: str, example: Callable[[], Any]) -> None:
    """Run one example without its output and print what became of it."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                example()
            outcome = "ran"
        except Exception as error:  # whatever stops it is what is to be told
            outcome = f"{type(error).__name__}: {error or 'a figure that the test asks for was not reached'}"
    print(f"{name:44} {outcome.splitlines()[0][:220]}")


def names_of(source: str, name: str, **exchanged: str) -> dict[str, Any]:
    """What a script defines, with the text of some names exchanged; its `__main__` part does not run."""
    for theirs, ours in exchanged.items():
        source = re.sub(rf"\b\w+\.{theirs}\b", ours, source)
    module = types.ModuleType(name)
    sys.modules[name] = module
    vars(module).update(dict.fromkeys(exchanged.values(), truerank.ObliviousBoosting))
    exec(compile(source, name, "exec"), vars(module))
    return vars(module)


@contextlib.contextmanager
def two_workers() -> Iterator[Any]:
    """A client of two worker processes on this machine."""
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, dashboard_address="127.0.0.1:0") as cluster, Client(cluster) as client:
        yield client


def write_folds(folder: Path) -> None:
    """The sample as the folder of a collection: Fold1/train.txt, vali.txt, test.txt."""
    data = truerank.load_sample()
    (folder / "Fold1").mkdir()
    for part, queries in (("train", range(60)), ("vali", range(60, 80)), ("test", range(80, 100))):
        chosen = data.take_queries(queries)
        bare = truerank.RankingData(chosen.X, np.minimum(chosen.y, 4), chosen.qid)
        truerank.write_letor(bare, folder / "Fold1" / f"{part}.txt")


def xgboost_examples(checkout: Path) -> None:
    """`demo/guide-python`, and the blocks of the tutorial."""
    source = (checkout / "demo/guide-python/learning_to_rank.py").read_text()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_folds(folder)
        for label, text, function in (
            ("learning_to_rank.py, grades", source, "ranking_demo"),
            ("learning_to_rank.py, clicks", source, "click_data_demo"),
            ("… without its callback", source.replace("callbacks=[ShowPosition()],", ""), "click_data_demo"),
        ):
            script = names_of(text, "demo", XGBRanker="XGBRanker")
            script["args"] = argparse.Namespace(data=str(folder), cache=str(folder))
            report(label, lambda script=script, function=function: script[function](script["args"]))
    dask_demo = (checkout / "demo/dask/dask_learning_to_rank.py").read_text()
    with tempfile.TemporaryDirectory() as name, two_workers() as client:
        write_folds(Path(name))
        # The other part is XGBoost's matrices and its `train`, where no import could be changed. Dask 2026.8 fails by
        # itself at columns of Parquet that are chosen by an index, and not by a list.
        for label, text in (
            ("demo/dask, --no-split", dask_demo),
            (
                "… with its columns as a list",
                re.sub(r"\[(df_..\.columns\.difference\(.*?\))\]", r"[list(\1)]", dask_demo),
            ),
        ):
            script = names_of(text, "demo", DaskXGBRanker="DaskXGBRanker")
            script["args"] = argparse.Namespace(data=name, cache=f"{name}/cache", device="cpu")
            report(label, lambda script=script: script["ranking_wo_split_demo"](client, script["args"]))
    tutorial = (checkout / "doc/tutorials/learning_to_rank.rst").read_text()
    blocks = re.findall(r"\.\. code-block:: python\n\n((?:  .*\n|\n)+)", tutorial)
    code = "\n".join(re.sub(r"(?m)^  ", "", block) for block in blocks[:4])
    report("tutorials/learning_to_rank.rst", lambda: names_of(code, "tutorial", XGBRanker="XGBRanker"))
    folds = code.replace("StratifiedGroupKFold(", "StratifiedGroupKFold(n_splits=3, ")
    report("… with no more folds than its three queries", lambda: names_of(folds, "tutorial", XGBRanker="XGBRanker"))


def lightgbm_examples(checkout: Path) -> None:
    """The cases of `test_sklearn.py` that are about its ranker, and the files of `examples/lambdarank`."""
    path = checkout / "tests/python_package_test/test_sklearn.py"
    tests = {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
    for name in ("test_lambdarank", "test_xendcg"):
        tests[name].decorator_list.clear()
        header = "import lightgbm as lgb, numpy as np\nfrom pathlib import Path\n"
        header += f"from sklearn.datasets import load_svmlight_file\n__file__ = {str(path)!r}\n"
        script = names_of(header + ast.unparse(tests[name]), "case", LGBMRanker="LGBMRanker")
        report(f"test_sklearn.py, {name}", script[name])
    example = checkout / "examples/python-guide/dask/ranking.py"
    source = example.read_text().replace('if __name__ == "__main__":', f"__file__ = {str(example)!r}\nif True:")
    report("python-guide/dask/ranking.py", lambda: names_of(source, "example", DaskLGBMRanker="DaskLGBMRanker"))
    from truerank.cli import main

    with tempfile.TemporaryDirectory() as folder:
        model, data = f"{folder}/model.json", checkout / "examples" / "lambdarank"
        train = ["train", str(data / "rank.train"), "--valid", str(data / "rank.test"), "--model", model]
        report("examples/lambdarank, train", lambda: ended(main([*train, "--ranker", "oblivious-boosting"])))
        report("examples/lambdarank, predict", lambda: ended(main(["predict", model, str(data / "rank.test")])))


def ended(code: int) -> None:
    """An error unless a command ended well."""
    if code:
        raise RuntimeError(f"exit code {code}")


def catboost_examples(checkout: Path) -> None:
    """The cells of the notebook on ranking."""
    from catboost import datasets

    notebook = json.loads((checkout / "ranking" / "ranking_tutorial.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    datasets.msrank_10k = sample_frames
    scope: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number, cell in enumerate(cells, 1):
            if cell.startswith("widget"):
                continue  # draws the files of CatBoost's own training
            text = cell.replace("'iterations': 2000", "'iterations': 20")
            text = text.replace("import CatBoostRanker, Pool, MetricVisualizer", "import Pool")
            scope["CatBoostRanker"] = truerank.ObliviousBoosting
            report(f"cell {number}: {cell.strip().splitlines()[-1][:34]}", lambda text=text: exec(text, scope))
        os.chdir(checkout)


def sample_frames() -> tuple[Any, Any]:
    """The sample as frames of grade, query and features, as `catboost.datasets.msrank_10k` gives them."""
    import pandas as pd

    data = truerank.load_sample()
    parts = [data.take_queries(range(first, first + 30)) for first in (0, 30)]
    train, test = (pd.DataFrame(np.column_stack([one.y, one.query_index, one.X])) for one in parts)
    return train.astype({1: int}), test.astype({1: int})


if __name__ == "__main__":
    place = Path(sys.argv[1]).resolve()
    if (place / "demo").is_dir():
        xgboost_examples(place)
    elif (place / "ranking").is_dir():
        catboost_examples(place)
    else:
        lightgbm_examples(place)
