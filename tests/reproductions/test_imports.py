"""The experiments use the installed truerank: public names where there are some, and no private ones."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import reproductions
import truerank

PUBLIC = set(dir(truerank))


@pytest.mark.parametrize("path", sorted(Path(reproductions.__file__).parent.rglob("*.py")), ids=lambda path: path.stem)
def test_public_names_come_from_the_top(path):
    wrong = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("truerank."):
            names = {alias.name for alias in node.names}
            wrong += [
                f"{node.module}.{name}"
                for name in names
                if name in PUBLIC
                and hasattr(truerank, name)
                and getattr(truerank, name) is getattr(__import__(node.module, fromlist=[name]), name, None)
            ]
            wrong += [f"{node.module}.{name}" for name in names if name.startswith("_") and name != "__version__"]
    assert wrong == []
