"""A test double of Windows' rules: open and mapped files are not renamed or removed; no fcntl, fork or set_blocking."""

from __future__ import annotations

import builtins
import os
import sys
import types
from contextlib import contextmanager
from pathlib import Path


def _in_use() -> set[str]:
    """Files that this process has open or mapped."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            continue
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        parts = line.split(maxsplit=5)
        found |= {parts[5]} if len(parts) == 6 else set()
    return found


@contextmanager
def windows(monkeypatch):
    """Apply the rules to this process until the block ends; yields the refused calls."""
    refused, real_import, real_open = [], builtins.__import__, os.open
    import fcntl

    def guarded(name, real):
        def call(path, *rest, **settings):
            for one in (path, *[other for other in rest if name in ("replace", "rename")]):
                own = os.path.realpath(os.path.join("", os.fspath(one))) if settings.get("dir_fd") is None else ""
                busy = [used for used in _in_use() if own and (used == own or used.startswith(own + os.sep))]
                if busy and os.path.exists(own):
                    refused.append((name, own, busy))
                    raise PermissionError(13, "The process cannot access the file because it is in use", str(one))
            return real(path, *rest, **settings)

        return call

    def opened(path, flags, *rest, **settings):
        if os.path.isdir(path) and sys._getframe(1).f_globals["__name__"].startswith("truerank"):
            raise PermissionError(13, "Permission denied", str(path))
        return real_open(path, flags & ~getattr(os, "O_NOFOLLOW", 0), *rest, **settings)

    def imported(name, *rest, **settings):
        of_ours = rest and rest[0] and str(rest[0].get("__name__")).startswith("truerank")
        if of_ours and name in ("fcntl", "resource", "pwd", "termios"):
            raise ImportError(f"No module named {name!r}")
        return real_import(name, *rest, **settings)

    def locking(descriptor, kind, size):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PermissionError(13, "Permission denied") from error

    with monkeypatch.context() as patch:
        for name in ("replace", "rename", "unlink", "remove", "rmdir"):
            patch.setattr(os, name, guarded(name, getattr(os, name)))
        patch.setattr(os, "open", opened)
        patch.setattr(builtins, "__import__", imported)
        patch.setitem(sys.modules, "msvcrt", types.SimpleNamespace(locking=locking, LK_NBLCK=2))
        for name in ("fork", "set_blocking", "fchmod", "register_at_fork"):
            patch.delattr(os, name, raising=False)
        for module in ("locks", "files"):
            patch.setattr(f"truerank.core.{module}.OPEN_FILES_MOVE", False)
        yield refused
