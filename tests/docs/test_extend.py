"""The package of the page on extending truerank, installed outside the checkout and used as the page says."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import truerank
from truerank.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "development" / "packages.md"


def test_the_package_of_the_page_adds_to_truerank(tmp_path, capfd):
    text = PAGE.read_text(encoding="utf-8")
    files = dict(re.findall(r'^``` \w+ title="([^"]+)"\n(.*?)^```$', text, re.MULTILINE | re.DOTALL))
    assert set(files) == {"pyproject.toml", "toy.py", "toy_shapes.py"}
    package = tmp_path / "site"
    package.mkdir()
    for name, content in files.items():
        (package / name).write_text(content, encoding="utf-8")
    # What `pip install` makes of pyproject.toml.
    project = tomllib.loads(files["pyproject.toml"])["project"]
    info = package / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [line for group, own in groups for line in (f"[{group}]", *(f"{k} = {v}" for k, v in own.items()))]
    (info / "entry_points.txt").write_text("\n".join(lines))
    assert main(["sample", str(tmp_path)]) == 0
    capfd.readouterr()
    (console,) = re.findall(r"^``` console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    commands = [shlex.split(line.removeprefix("$ truerank ")) for line in console.splitlines()]
    # One process for all: a start takes longer than the commands.
    code = f"import truerank.cli as c\nfor words in {commands!r}: assert c.main(words) == 0, words\nprint(c.overview())"
    there = os.pathsep.join([str(package), str(Path(truerank.__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": there},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    train = truerank.read_letor(tmp_path / "train.txt.gz")
    assert done.stdout.splitlines()[0] == f"{train.n_rows} {train.n_queries} {train.n_features}"
    assert re.search(r"^TopTwo +0\.\d{4}", done.stdout, re.MULTILINE)
    assert "  shapes      " in done.stdout
    weights = json.loads((tmp_path / "weights.json").read_text())["weights"]
    assert len(weights) == train.n_features
