"""What is released agrees with itself: versions, addresses, conda recipe, citation, and the tasks for agents."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import tomllib
from pathlib import Path

import pytest

import truerank
from truerank.cli import main

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "src").exists(), reason="needs the files of a checkout")


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project():
    return tomllib.loads(read("pyproject.toml"))["project"]


@pytest.fixture(scope="module")
def checks():
    return runpy.run_path(str(ROOT / "scripts" / "check_release.py"))


def test_every_file_states_the_version(checks):
    assert set(checks["stated_versions"]().values()) == {truerank.__version__}
    assert checks["problems"](None) == []
    assert len(checks["problems"]("v0.0.1")) >= 1
    assert checks["release_notes"](truerank.__version__).startswith("**")


def test_a_file_with_another_version_is_named(checks, tmp_path):
    for name in checks["STATED"]:
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(read(name), encoding="utf-8")
    (tmp_path / "CITATION.cff").write_text("version: 9.9.9\n", encoding="utf-8")
    (found,) = checks["problems"](None, tmp_path)
    assert "CITATION.cff" in found
    assert "9.9.9" in found


def test_every_file_has_the_same_addresses(project):
    yaml = pytest.importorskip("yaml")
    site, source = project["urls"]["Documentation"], project["urls"]["Source"]
    citation, recipe = yaml.safe_load(read("CITATION.cff")), yaml.safe_load(read("conda/recipe.yaml"))
    assert re.search(r"^site_url: (.+)$", read("mkdocs.yml"), re.MULTILINE)[1] == site
    assert (citation["url"], citation["repository-code"]) == (site, source)
    assert (recipe["about"]["homepage"], recipe["about"]["repository"]) == (site, source)
    assert all(url.startswith((site, source)) for url in project["urls"].values())


def test_the_recipe_has_the_requirements_of_the_project(project):
    recipe = pytest.importorskip("yaml").safe_load(read("conda/recipe.yaml"))

    def plain(requirements):
        found = {}
        for one in requirements:
            name, bound = re.fullmatch(r"([\w.-]+) *(>=[\d.]+)", one).groups()
            found[name.lower()] = bound
        return found

    extras = [one for name in ("train", "tables", "text", "zstd", "onnx", "tune", "cluster")
              for one in project["optional-dependencies"][name] if not one.startswith("truerank")]  # fmt: skip
    assert plain(recipe["requirements"]["run"]) == plain(
        [f"python{project['requires-python']}", *project["dependencies"]]
    )
    theirs = plain(recipe["requirements"]["run_constraints"])
    assert theirs.items() <= plain(extras).items()


def test_the_citation_is_what_the_program_prints():
    found = truerank.compare(
        {"q": {"d": 1}, "r": {"d": 1}}, {name: {"q": {"d": 1.0}, "r": {"d": 1.0}} for name in "ab"}
    )
    printed = next(part for part in found.methods_text().split("\n\n") if part.startswith("@misc{truerank"))
    shown = "\n".join(line[2:] for line in read("CITATION.cff").splitlines() if line.startswith("# "))
    assert printed in shown


def tasks():
    rows = re.findall(
        r"^\| (\d+) \| ([^|]+) \| `([^`]+)` \| (\d+) \| ([^|]+) \|$", read("docs/agents.md"), re.MULTILINE
    )
    return [
        (int(number), command, int(code), re.findall(r"`([^`]+)`", fields)) for number, _, command, code, fields in rows
    ]


def member(found, field):
    for part in field.split("."):
        found = found[int(part)] if part.isdigit() else found[part]
    return found


@pytest.mark.filterwarnings("ignore")
def test_the_tasks_for_agents_end_as_stated(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["sample", "."]) == 0
    found = tasks()
    assert [number for number, *_ in found] == list(range(1, 21))
    for number, command, code, fields in found:
        capsys.readouterr()
        assert main(shlex.split(command)[1:]) == code, (number, command, capsys.readouterr().err)
        printed = json.loads(capsys.readouterr().out)
        assert list(printed)[:2] == ["schema", "version"]
        for field in fields:
            assert member(printed, field) is not None, (number, field)
    assert "model-ltr.json" in os.listdir()


def test_the_installation_page_has_the_measured_layers():
    measure = runpy.run_path(str(ROOT / "scripts" / "measure_layers.py"))
    stored = json.loads(read("docs/development/layers.json"))
    assert list(stored) == list(measure["LAYERS"])
    assert stored[""]["installed_mb"] <= 235
    assert measure["table"](stored) in read("docs/installation.md")
