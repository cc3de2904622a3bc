"""Surface: shell completion. Names of files and models, and words half typed, must stay texts."""

import os
import pty
import select
import shutil
import subprocess
import time

import pytest

from truerank.cli.completion import SHELLS, script

HOSTILE = [
    "$(touch executed)",
    "`touch executed`",
    "a'; touch executed; '",
    'a"; touch executed; "',
    "a\ntouch executed\n",
    "a;touch executed",
    "-$(touch executed)",
    "--ranker=$(touch executed)",
    "${x[$(touch executed)]}",
    "a[$(touch executed)]",
]
BEFORE = [["truerank"], ["truerank", "train"], ["truerank", "train", "--ranker"], ["truerank", "x", "--convention"]]


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_run_no_word_that_is_typed(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    (tmp_path / "completion").write_text(script(shell))
    for before in BEFORE:
        for word in HOSTILE:
            if shell == "fish":
                asked = [shell, "-c", "source completion; complete -C (string join ' ' $argv)", *before, word]
            elif shell == "bash":
                asked = (
                    'source ./completion; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _truerank; echo "${COMPREPLY[@]}"'
                )
                asked = [shell, "-c", asked, "-", *before, word]
            else:
                asked = [shell, "-c", 'autoload -U compinit; compinit -u -D; source ./completion; COMP_WORDS=("$@"); '
                         'COMP_CWORD=$(($# - 1)); _truerank', "-", *before, word]  # fmt: skip
            subprocess.run(asked, cwd=tmp_path, capture_output=True, timeout=60)
            for place in range(1, len(before)):  # as the command, and as the option before
                changed = [*before[:place], word, *before[place + 1 :], "--"]
                subprocess.run([*asked[: -len(before) - 1], *changed], cwd=tmp_path, capture_output=True, timeout=60)
    assert [path.name for path in tmp_path.iterdir()] == ["completion"]


def typed(folder, keys):
    """What a bash at a terminal prints when it is sent `keys`, until it ends."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ.update(PS1="> ", INPUTRC="/dev/null", TERM="dumb", HISTFILE="/dev/null")
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
    printed, end = b"", time.monotonic() + 60
    try:
        for key in keys:
            os.write(terminal, key)
            while time.monotonic() < end and select.select([terminal], [], [], 0.5)[0]:
                printed += os.read(terminal, 65536)
    except OSError:  # the shell has ended
        pass
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    return printed.decode(errors="replace")


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    "name", ["$(touch executed)", "`touch executed`", "a'; touch executed; '", "a\ntouch executed\n"]
)
def test_names_of_files_are_completed_as_texts(name, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / name).write_text("")
    (tmp_path / "completion").write_text(script("bash") + 'truerank() { printf "%s" "$2" > ../given; }\n')
    typed(folder, [b"source ../completion\n", b"truerank describe \t", b"\n", b"exit\n"])
    assert (tmp_path / "given").read_text() == name
    assert [path.name for path in folder.iterdir()] == [name]
