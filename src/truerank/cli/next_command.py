"""Print the command that a user would run next."""

from __future__ import annotations

import shlex
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from truerank.cli import COMMANDS
from truerank.cli.parser import Options, is_given
from truerank.core.printing import note


def next_command(args: Options, command: str, **own: Any) -> None:
    """Print the next command with those files and options of this command that the next command accepts.

    `own` are other arguments of the next command, or None for an option to leave out. A command that reads standard
    input or writes JSON prints no next command.
    """
    if getattr(args, "json", False) or getattr(args, "cluster", None):
        return
    places: list[str] = []
    words: list[str] = []
    if command == "report" and find_spec("vl_convert") is None:  # a page needs a layer that is not installed
        own |= {"output": "report.md"}
    accepted = import_module(COMMANDS[command][0]).Arguments
    following = accepted(**vars(args) | own)
    for name, (_, declared) in accepted.DECLARED.items():
        value = getattr(following, name)
        if is_given(value) and value != accepted.DEFAULTS[name] and following.refusing(name) is None:
            option = [own for own in declared.names(name) if own.startswith("--")][:1]
            values = [] if value is True else [*map(str, value if isinstance(value, list) else [value])]
            if option and values and values[0].startswith("-"):
                option, values = [f"{option[0]}={values[0]}"], values[1:]
            (words if option else places).extend([*option, *values])
    if "-" not in [*places, *words]:
        note(f"next: truerank {shlex.join([*command.split(), *places, *words])}", late=True)
