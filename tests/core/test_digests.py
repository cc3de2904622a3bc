"""Digests of values: what counts, and what does not."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from truerank.core.digests import content_digest

FILES = {
    "mine_top.py": "import mine_helper\nimport numpy as np\nfrom mine_other import shift\n"
    "def by_global(y):\n    return mine_helper.scale(y) + np.sum(y)\n"
    "def by_name(y):\n    return shift(y)\n"
    "def by_import(y):\n    import mine_late\n    return mine_late.late(y)\n",
    "mine_helper.py": "import mine_deep\ndef scale(y):\n    return mine_deep.FACTOR * y\n",
    "mine_deep.py": "import mine_helper\nFACTOR = 1\n",
    "mine_other.py": "def shift(y):\n    return y + 1\n",
    "mine_late.py": "def late(y):\n    return y\n",
}


@pytest.fixture
def digests(tmp_path: Path, monkeypatch):
    """Digests of three functions of modules that lie in a folder, which is read anew at each call."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)

    def read() -> dict[str, str]:
        for name in FILES:
            sys.modules.pop(name[:-3], None)
        importlib.invalidate_caches()
        top = importlib.import_module("mine_top")
        return {name: content_digest(getattr(top, name)) for name in ("by_global", "by_name", "by_import")}

    yield read
    for name in FILES:
        sys.modules.pop(name[:-3], None)


@pytest.mark.parametrize(
    ("changed", "of"),
    [("mine_helper.py", "by_global"), ("mine_deep.py", "by_global"), ("mine_other.py", "by_name"),
     ("mine_late.py", "by_import")],
)  # fmt: skip
def test_an_edited_module_is_another_one(digests, tmp_path, changed, of):
    """A checkpoint went on where a function was the same and the module that it calls was not."""
    first = digests()
    assert digests() == first
    (tmp_path / changed).write_text(FILES[changed].replace("y\n", "3 * y\n").replace("1\n", "2\n"))
    then = digests()
    assert {name for name in first if first[name] != then[name]} == {of}


def test_modules_of_installed_packages_count_by_version(monkeypatch):
    first = content_digest(np)
    assert content_digest(np.random) != first
    monkeypatch.setattr(np, "__version__", "0")
    assert content_digest(np) != first


def test_a_module_that_is_not_there_is_no_error():
    def asks(y):
        import there_is_no_such_module

        return there_is_no_such_module.f(y)

    assert content_digest(asks) == content_digest(asks)
