"""Run truerank as if only one layer of the installation were there, on a machine that has more.

    echo '["evaluate bm25.run --qrels qrels.txt"]' | python tests/support/layers.py base
    python tests/support/layers.py tables,report "import truerank; …"

The distributions of a layer are its requirements in pyproject.toml and, by the metadata of what is installed, theirs.
Modules of any other distribution cannot be found, by `import` and by `find_spec`.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

ROOT = Path(__file__).parents[2]


def requirements(layers: str) -> set[str]:
    """Return the normalised names of all distributions that the layers (separated by commas) install."""
    with open(ROOT / "pyproject.toml", "rb") as stream:
        project = tomllib.load(stream)["project"]
    extras = project["optional-dependencies"]
    found: set[str] = set()
    waiting = [
        *project["dependencies"],
        *(line for name in layers.split(",") if name != "base" for line in extras[name]),
    ]
    while waiting:
        line, _, marker = waiting.pop().partition(";")
        name, chosen = re.match(r"\s*([\w.-]+)\s*(?:\[([^]]*)\])?", line).groups()
        if "extra ==" in marker or (marker and not _applies(marker)):
            continue
        if name == "truerank":
            waiting += [own for extra in chosen.split(",") for own in extras[extra.strip()]]
            continue
        name = normalised(name)
        if name not in found:
            found.add(name)
            try:
                waiting += requires(name) or []
            except PackageNotFoundError:
                continue
    return found


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _applies(marker: str) -> bool:
    """Return whether a marker is about this machine; names of other systems and Pythons are rare here."""
    try:
        from packaging.markers import Marker
    except ImportError:
        return True
    return Marker(marker).evaluate({"extra": ""})


class Refusing:
    """A finder in place of another, which does not find the modules of other layers."""

    def __init__(self, finder: object, refused: set[str]) -> None:
        self.finder, self.refused = finder, refused

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        return None if name.partition(".")[0] in self.refused else self.finder.find_spec(name, path, target)

    def __getattr__(self, name: str) -> object:
        return getattr(self.finder, name)


def only(layers: str) -> None:
    """Hide the modules of all distributions that the layers do not install."""
    kept = requirements(layers) | {"truerank"}
    refused = {
        module for module, owners in packages_distributions().items() if not {normalised(own) for own in owners} & kept
    }
    assert refused, "every library that is installed belongs to the layer: nothing is tested"
    for name in [name for name in sys.modules if name.partition(".")[0] in refused]:
        del sys.modules[name]
    sys.meta_path[:] = [Refusing(finder, refused) for finder in sys.meta_path]


def answers(commands: list[str]) -> list[tuple[int, str, str]]:
    """Return exit code, standard output and standard error of each command line of truerank."""
    from truerank.cli import main as command

    found = []
    for words in commands:
        streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n") for _ in range(2)]
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            code = command(words.split())
            sys.stdout.flush()
            sys.stderr.flush()
        found.append((code, *(stream.buffer.getvalue().decode() for stream in streams)))
    return found


def main(layers: str, code: str = "") -> None:
    only(layers)
    sys.path[0] = str(ROOT / "src") if (ROOT / "src").exists() else ""
    if code:
        exec(compile(code, "-c", "exec"), {"__name__": "__main__"})
    else:
        json.dump(answers(json.load(sys.stdin)), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
