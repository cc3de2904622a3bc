"""A damaged cache of compiled kernels: said once, mended, and no wrong result."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path

import numba
import pytest

from truerank.core import kernel_cache

SOURCE = """
from truerank.core.kernel import kernel

@kernel
def doubled(x):
    return 2 * x
"""

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "small_kernels.py").write_text(SOURCE)
    assert said(tmp_path) == []
    return tmp_path


def said(folder: Path) -> list[str]:
    """Import the module as a new process would, call its kernel, return the warnings."""
    kernel_cache._warned.clear()
    spec = importlib.util.spec_from_file_location("small_kernels", folder / "small_kernels.py")
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        spec.loader.exec_module(module)
        assert module.doubled(21) == 42
        said.compiled = sum(module.doubled.stats.cache_misses.values())
    return [str(warning.message) for warning in caught]


def one(folder: Path, ending: str) -> Path:
    (found,) = (folder / "cache").rglob(f"*.{ending}")
    return found


def test_a_sound_cache_is_used(folder):
    assert said(folder) == []
    assert said.compiled == 0


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", ["empty", "half", "byte", "other"])
def test_a_damaged_cache_is_said_and_mended(folder, ending, damage):
    path = one(folder, ending)
    content = path.read_bytes()
    middle = len(content) * 2 // 3 if ending == "nbc" else len(content) - 60
    path.write_bytes(
        {
            "empty": b"",
            "half": content[: len(content) // 2],
            "byte": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
            "other": b"{}\n",
        }[damage]
    )
    (message,) = said(folder)
    assert str(path.parent) in message
    assert "delete that folder" in message
    assert said.compiled == 1
    assert said(folder) == []
    assert said.compiled == 0


def test_a_cache_that_cannot_be_written_is_said(folder, monkeypatch):
    one(folder, "nbi").unlink()

    def full(self, name, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kernel_cache._CheckedFile, "_save_data", full)
    (message,) = said(folder)
    assert "No space left" in message
    assert "compiles again" in message


def test_files_that_numba_wrote_by_itself_are_taken(folder):
    path = one(folder, "nbc")
    path.write_bytes(path.read_bytes()[:-40])
    assert said(folder) == []
    assert said.compiled == 0
