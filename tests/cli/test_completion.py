"""The completion script, asked as bash asks it."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from truerank.cli import COMMANDS
from truerank.cli.completion import script


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["cross-v"], "cross-validate"),
        (["train", "x.txt", "--ranker", "ada"], "adarank"),
        (["evaluate", "--qr"], "--qrels"),
        (["evaluate", "--convention", "gd"], "gdeval"),
        (["describe", "x"], ""),
        (["text", "sea"], "search"),
        (["text", "index", "--analy"], "--analysers"),
    ],
)
def test_bash_completes(words, expected, tmp_path):
    quoted = " ".join(f"'{word}'" for word in ["truerank", *words])
    asked = (
        f'{script("bash")}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _truerank; printf "%s" "${{COMPREPLY[*]}}"'
    )
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout == expected
    assert done.stderr == ""


def test_every_command_is_in_every_script():
    for shell in ("bash", "zsh", "fish"):
        assert all(command in script(shell) for command in COMMANDS)
    assert "-l ranker -x -a 'adarank" in script("fish")
