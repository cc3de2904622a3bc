"""The table of the five sources: no row without an answer, and what its cells name is there."""

from __future__ import annotations

import argparse
import re
from importlib import import_module
from pathlib import Path

import pytest

from truerank.cli.reproduce import EXPERIMENTS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "truerank"
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
VERDICTS = (
    "right", "reproduced", "partly", "not reproduced", "not run", "no data", "background", "not built",
)  # fmt: skip
NOTHING_TO_RUN = ("no data", "background", "not built")
SECTIONS = re.findall(r"^## (\d [^\n]+)\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
LETTERS = dict(re.findall(r"^\| ([A-Z]) \| `([^`]+)`", PAGE, re.MULTILINE))


def rows(text):
    """The cells of the section's rows, each with the files that its place names, or the row's above it."""
    paths: list[Path] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or cells[0] in ("item", "---"):
            continue
        named = re.findall(r"`([\w/]+(?:\.py|/))`", cells[1])
        if named:
            paths = [next((base / name for base in (SOURCE, ROOT) if (base / name).exists()), None) for name in named]
        yield cells, paths, named


@pytest.mark.parametrize(("title", "text"), SECTIONS, ids=[title for title, _ in SECTIONS])
def test_every_row_has_an_answer(title, text):
    wrong = []
    for cells, paths, named in rows(text):
        assert len(cells) == 6, cells
        item, place, command, _, ours, verdict = cells
        if not verdict.startswith(VERDICTS):
            wrong.append(f"{item}: verdict {verdict!r}")
        if not (place or command or verdict.startswith(NOTHING_TO_RUN)):
            wrong.append(f"{item}: neither a place nor a command")
        if verdict.startswith(("reproduced", "partly", "not reproduced")) and not (ours and command):
            wrong.append(f"{item}: a figure without a command, or a command without a figure")
        if None in paths:
            wrong.append(f"{item}: one of {named} does not exist")
            continue
        code = "\n".join(path.read_text(encoding="utf-8") for path in paths if path.is_file())
        for name in re.findall(r"`(\w+(?:\.\w+)*)(?:\(|`)", place):
            missing = [part for part in name.split(".") if not re.search(rf"\b{part}\b", code)]
            if missing and not name.endswith("py"):
                wrong.append(f"{item}: no {name} in {[str(path) for path in paths]}")
    assert wrong == []


def options(experiment):
    parser = argparse.ArgumentParser()
    import_module(EXPERIMENTS[experiment]).configure(parser)
    return {option: action for action in parser._actions for option in action.option_strings}


@pytest.mark.parametrize(("title", "text"), SECTIONS, ids=[title for title, _ in SECTIONS])
def test_every_command_can_be_given(title, text):
    benchmarks = {path.stem for path in (ROOT / "benchmarks").rglob("bench_*.py")}
    wrong = []
    for cells, _, _ in rows(text):
        letter = ""
        for part in re.findall(r"the same|\b[A-Z]\b|`[^`]+`", cells[2]):
            if re.fullmatch("[A-Z]", part):
                letter = part
                if letter not in LETTERS:
                    wrong.append(f"{cells[0]}: no command {letter}")
            elif letter == "B" and part.strip("`") not in benchmarks:
                wrong.append(f"{cells[0]}: no benchmark {part}")
            elif letter == "T" and part != "the same" and not (ROOT / part.strip("`")).exists():
                wrong.append(f"{cells[0]}: no test {part}")
            elif part.startswith("`--"):
                words = part.strip("`").split()
                known = options(LETTERS[letter].split()[2])
                for option, value in zip(words[::2], words[1::2], strict=True):
                    choices = known[option].choices if option in known else ()
                    if option not in known or (choices and value not in choices):
                        wrong.append(f"{cells[0]}: {option} {value}")
    assert wrong == []


def test_the_letters_are_commands():
    assert {command.split()[2] for command in LETTERS.values() if "reproduce" in command} == set(EXPERIMENTS)
