"""A test double of Windows: what its files, names, modules and texts refuse, for truerank and for files in general.

`install()` applies it to this process until `undo()` of what it returns. `pytest --platform windows` runs any tests so,
with the commands that they start: `sitecustomize.py` in `windows_site/` installs it there, too. It has

* no renaming or removing of files that are open or mapped, of folders that hold one, or of read-only files, and no
  opening of a folder or of an open temporary file a second time;
* no names with `< > : " | ? *`, with a dot or a blank at the end, or of devices (`NUL`, `con.txt`);
* no `fcntl`, `resource`, `pwd`, `termios`, `os.fork` and the other names that only POSIX has, for truerank's modules;
* cp1252 and CR LF in text files that truerank opens without an encoding and a line end, bytes with CR LF from
  descriptors that it opens without `O_BINARY`, and a console in cp1252.
"""

from __future__ import annotations

import builtins
import fcntl
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ASKED = "TRUERANK_TEST_PLATFORM"  # environment variable of commands that tests start
_TURN = os.path.join(tempfile.gettempdir(), f"truerank-windows-{os.getuid()}.lock")
_real_open = os.open
SITE = str(Path(__file__).with_name("windows_site"))
NO_MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "posix"}
NOT_IN_OS = """
    fork forkpty geteuid getuid getegid getgid getgroups getpgid setpgid setsid killpg mkfifo mknod fchmod fchown chown
    lchown chroot pread pwrite preadv pwritev posix_fadvise posix_fallocate sendfile sysconf sched_getaffinity
    sched_setaffinity statvfs fstatvfs getloadavg nice uname register_at_fork set_blocking get_blocking sync fdatasync
    lockf openpty ttyname wait3 wait4 waitid WNOHANG WEXITED WNOWAIT O_NOFOLLOW O_CLOEXEC O_NONBLOCK O_DIRECTORY O_SYNC
"""
NOT_IN_SIGNAL = """
    SIGKILL SIGALRM SIGHUP SIGPIPE SIGQUIT SIGUSR1 SIGUSR2 SIGXFSZ SIGXCPU SIGCHLD SIGSTOP SIGCONT SIG_BLOCK
    SIG_UNBLOCK alarm pause setitimer getitimer pthread_sigmask pthread_kill siginterrupt sigpending sigwait
"""
O_BINARY = 1 << 40
_FORBIDDEN = re.compile(r'[<>:"|?*\x00-\x1f]|[. ]$|^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)', re.IGNORECASE)


class _Lacking:
    """A module without some names; other names are read from and written to the real one."""

    def __init__(self, real: types.ModuleType, lacking: str, **own: Any) -> None:
        vars(self).update(_real=real, _lacking=set(lacking.split()), **own)

    def __getattr__(self, name: str) -> Any:
        if name in vars(self)["_lacking"]:
            raise AttributeError(f"module {self._real.__name__!r} has no attribute {name!r}")
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._real, name)


def _in_use() -> set[str]:
    """Files that the processes of this group have open or mapped, and their folders."""
    found = set()
    for process in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if os.getpgid(int(process)) != os.getpgrp():
                continue
            found.add(os.readlink(f"/proc/{process}/cwd"))
            for number in os.listdir(f"/proc/{process}/fd"):
                with suppress(OSError):
                    found.add(os.readlink(f"/proc/{process}/fd/{number}"))
            lines = Path(f"/proc/{process}/maps").read_text(encoding="utf-8").splitlines()
            found |= {parts[5] for line in lines if len(parts := line.split(maxsplit=5)) == 6}
    return found


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Keep other processes from opening a file between the look and the removal."""
    descriptor = _real_open(_TURN, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _of_truerank(frame: types.FrameType | None) -> bool:
    """Return whether truerank calls, directly or by `pathlib`, `gzip` and the like."""
    between = {"pathlib", "gzip", "bz2", "lzma", "_compression", "tempfile", __name__}
    while frame is not None and frame.f_globals.get("__name__") in between:
        frame = frame.f_back
    return frame is not None and _is_ours(frame.f_globals)


def _is_ours(space: Any) -> bool:
    return str((space or {}).get("__name__", "")).startswith("truerank")


_installed: list[tuple[str, str]] | None = None  # the calls that were refused


class Patches:
    """What was replaced in modules; `refused` are the calls that the rules refused."""

    def __init__(self) -> None:
        self.refused: list[tuple[str, str]] = []
        self._before: list[tuple[Any, str, Any]] = []

    def set(self, module: Any, name: str, value: Any) -> None:
        self._before.append((module, name, getattr(module, name)))
        setattr(module, name, value)

    def undo(self) -> None:
        global _installed
        _installed = None if self._before else _installed
        while self._before:
            setattr(*self._before.pop())


def install() -> Patches:
    """Apply the rules to this process; modules of truerank that are imported later follow them, too."""
    global _installed
    patch = Patches()
    if _installed is not None:
        patch.refused = _installed
        patch.refused.clear()
        return patch
    refused = _installed = patch.refused
    real_import, real_io_open = builtins.__import__, io.open
    temporary: dict[str, Any] = {}

    def refuse(error: type[OSError], number: int, text: str, name: str, path: Any) -> None:
        refused.append((name, os.fspath(path)))
        raise error(number, text, str(path))

    def check_name(path: Any, name: str) -> None:
        last = os.path.basename(os.fsdecode(path)) if isinstance(path, str | bytes | os.PathLike) else ""
        if _FORBIDDEN.search(last):
            refuse(OSError, 22, "The filename, directory name, or volume label syntax is incorrect", name, path)

    def guarded(name: str) -> Any:
        real = getattr(os, name)

        def call(path: Any, *rest: Any, **settings: Any) -> Any:
            moves = name in ("replace", "rename")
            if moves:
                check_name(rest[0], name)
            with _one_at_a_time():
                used = _in_use()
                for one in (path, *(rest[:1] if moves else ())):
                    if settings.get("dir_fd") is not None or not os.path.lexists(one):
                        continue
                    own = os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(one))), os.path.basename(one))
                    if any(other == own or other.startswith(own + os.sep) for other in used):
                        refuse(PermissionError, 13, "The file is in use by another process", name, one)
                    if not os.path.islink(one) and os.path.isfile(one) and not os.stat(one).st_mode & 0o200:
                        refuse(PermissionError, 13, "Access is denied", name, one)
                return real(path, *rest, **settings)

        return call

    def opened(path: Any, flags: int, *rest: Any, **settings: Any) -> int:
        if path == os.devnull:
            return _real_open(path, flags & ~O_BINARY, *rest, **settings)
        if _is_ours(sys._getframe(1).f_globals):
            if os.path.isdir(path):
                raise PermissionError(13, "Permission denied", str(path))  # callers expect it
            if flags & (os.O_WRONLY | os.O_RDWR) and not flags & O_BINARY:
                refuse(OSError, 22, "the double requires O_BINARY, else LF is written as CR LF", "open", path)
        if flags & os.O_CREAT:
            check_name(path, "open")
        with _one_at_a_time():
            return _real_open(path, flags & ~O_BINARY & ~os.O_NOFOLLOW, *rest, **settings)

    def opened_stream(file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, errors: Any = None,
                      newline: Any = None, closefd: bool = True, opener: Any = None) -> Any:  # fmt: skip
        if isinstance(file, str | bytes | os.PathLike):
            if set(mode) & set("wax+"):
                check_name(file, "open")
            held = temporary.get(os.path.realpath(os.fsdecode(file)))
            if held is not None and not held.closed and opener is None:
                refuse(PermissionError, 13, "Permission denied", "open", file)
        if "b" not in mode and file != os.devnull and _of_truerank(sys._getframe(1)):
            encoding = "cp1252" if encoding in (None, "locale") else encoding
            newline = "\r\n" if newline is None and set(mode) & set("wax") else newline
        return real_io_open(file, mode, buffering, encoding, errors, newline, closefd, opener)

    def named_temporary(*rest: Any, **settings: Any) -> Any:
        made = real_temporary(*rest, **settings)
        if settings.get("delete", True):
            temporary[os.path.realpath(made.name)] = made.file
        return made

    def imported(name: str, space: Any = None, *rest: Any, **settings: Any) -> Any:
        if not _is_ours(space):
            return real_import(name, space, *rest, **settings)
        if name in NO_MODULES:
            raise ImportError(f"No module named {name!r}")
        return lacking.get(name) or real_import(name, space, *rest, **settings)

    def locking(descriptor: int, kind: int, size: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PermissionError(13, "Permission denied") from error

    class Started(subprocess.Popen):
        def __init__(self, *rest: Any, **settings: Any) -> None:
            given = dict(settings.get("env") or os.environ)
            path = os.pathsep.join(filter(None, [SITE, given.get("PYTHONPATH", "")]))
            settings["env"] = {"PYTHONIOENCODING": "cp1252"} | given | {ASKED: "windows", "PYTHONPATH": path}
            if settings.get("text") or settings.get("universal_newlines"):
                settings["encoding"] = settings.get("encoding") or "cp1252"
            super().__init__(*rest, **settings)

    real_temporary = tempfile.NamedTemporaryFile

    def set_wakeup_fd(descriptor: int, **settings: Any) -> int:
        if descriptor >= 0:
            os.set_blocking(descriptor, False)  # POSIX requires it
        return signal.set_wakeup_fd(descriptor, **settings)

    lacking = {
        "os": _Lacking(os, NOT_IN_OS, O_BINARY=O_BINARY, name="nt"),
        "signal": _Lacking(signal, NOT_IN_SIGNAL, set_wakeup_fd=set_wakeup_fd),
    }
    for name in ("replace", "rename", "unlink", "remove", "rmdir"):
        patch.set(os, name, guarded(name))
    patch.set(os, "open", opened)
    patch.set(builtins, "open", opened_stream)
    patch.set(io, "open", opened_stream)
    patch.set(tempfile, "NamedTemporaryFile", named_temporary)
    patch.set(builtins, "__import__", imported)
    patch.set(subprocess, "Popen", Started)
    sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)  # type: ignore[assignment]
    for name, module in list(sys.modules.items()):
        if name.startswith("truerank"):
            for own, stand_in in lacking.items():
                if isinstance(vars(module).get(own), types.ModuleType):
                    patch.set(module, own, stand_in)
    for name in ("files", "locks"):
        if module := sys.modules.get(f"truerank.core.{name}"):
            patch.set(module, "OPEN_FILES_MOVE", False)
            patch.set(module, "BINARY", O_BINARY)
    return patch
