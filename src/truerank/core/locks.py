"""Locks between processes. The system releases a lock when its process ends or is killed."""

from __future__ import annotations

import errno
import importlib
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from truerank.core.errors import InvalidInputError

OPEN_FILES_MOVE = os.name != "nt"
"""Whether the system can rename and remove an open file."""
BINARY = getattr(os, "O_BINARY", 0)  # Windows would write CR LF for LF
_FAR = 1 << 40  # Windows locks bytes, which nobody else can read then: one beyond the end

_held: set[int] = set()
_OWN = re.compile(rb"truerank, process (\d+)\n")  # content of the lock files that this module may change and remove
_BRIEFLY = 0.1  # seconds in which a process writes its number into a lock file that it has created


class DescriptorLock:
    """An exclusive lock of the system on an open file, by `fcntl` or `msvcrt`, until the descriptor is closed."""

    @staticmethod
    def take(descriptor: int, *, wait: bool = False) -> None:
        """Lock a file; raise BlockingIOError if another process has locked it, OSError if the system has no locks."""
        try:
            import fcntl
        except ImportError:
            DescriptorLock._take_byte(descriptor)
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))

    @staticmethod
    def _take_byte(descriptor: int) -> None:
        msvcrt: Any = importlib.import_module("msvcrt")
        place = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(error.errno or errno.EACCES, "locked by another process") from error
        finally:
            os.lseek(descriptor, place, os.SEEK_SET)


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Lock a file or a folder against other processes, and other fits of this process, until the block ends.

    The lock is on a small file that contains the number of the process: `.lock` in an existing folder, else
    `.NAME.lock` in the folder of `path`, which need not exist. The system releases the lock when the process ends, even
    if it is killed; a remaining lock file has no effect. A file of this name with other content belongs to another
    program. Such a file is locked, but neither changed nor removed. A process that is forked inside the block does not
    prolong the lock. Devices, FIFOs and open descriptors (`/dev/stdout`) are not locked, and on file systems without
    locks nothing is locked. A symbolic link is followed; the lock file must not be one.

    Raises
    ------
    InvalidInputError
        If another process holds the lock (the message names its number), or the lock cannot be created.
    """
    place = Path(os.path.realpath(path))
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        yield
        return
    name = place / ".lock" if place.is_dir() else place.parent / f".{place.name[:200]}.lock"
    try:
        descriptor, created = _lock(name, os.fspath(path))
    except OSError as error:
        raise InvalidInputError(
            f"{os.fspath(path)} cannot be locked ({name}): {error.strerror or error}", code="no-lock"
        ) from error
    try:
        yield
    finally:
        if descriptor in _held:  # else this is a forked process, which left it to its parent
            with suppress(OSError):
                own = _content(descriptor) in ((_mark(), b"") if created else (_mark(),))
                if own and os.path.samestat(os.stat(name), os.fstat(descriptor)):
                    if not OPEN_FILES_MOVE:
                        _release(descriptor)
                    os.unlink(name)
            if descriptor in _held:
                _release(descriptor)


def _lock(name: Path, what: str) -> tuple[int, bool]:
    """Lock a file with the number of this process; return its descriptor, and whether it was created."""
    flags = os.O_RDWR | BINARY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    young = time.monotonic() + _BRIEFLY
    while True:
        try:
            descriptor, created = os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o666), True
        except FileExistsError:
            try:
                descriptor, created = os.open(name, flags), False
            except FileNotFoundError:
                continue  # its owner removed it
        _held.add(descriptor)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode) or os.path.islink(name):
                raise OSError("the lock file is not a regular file")
            if created:
                _sign(descriptor)
            try:
                DescriptorLock.take(descriptor)
            except BlockingIOError:
                raise
            except OSError:
                pass  # the file system has no locks
            if os.path.samestat(os.stat(name), os.fstat(descriptor)):
                content = _content(descriptor)
                if _OWN.fullmatch(content):
                    _sign(descriptor)
                if content or created or time.monotonic() > young:
                    return descriptor, created
                time.sleep(_BRIEFLY / 10)  # its creator has not written yet, or another program keeps it empty
        except BlockingIOError:
            found = _OWN.fullmatch(_content(descriptor))
            owner = found.group(1).decode() if found else ""
            number = f"process {owner}" if owner else "another process"
            this = " (this one)" if owner == str(os.getpid()) else ""
            _release(descriptor)
            raise InvalidInputError(
                f"{what}: {number}{this} is writing to it. Wait until that process has ended, or name another path",
                code="locked",
            ) from None
        except FileNotFoundError:
            pass  # its owner removed it before it was locked here
        except BaseException:
            _release(descriptor)
            raise
        _release(descriptor)


def _mark() -> bytes:
    return b"truerank, process %d\n" % os.getpid()


def _sign(descriptor: int) -> None:
    """Write the number of this process; if the disk is full, the file stays empty."""
    with suppress(OSError):
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, _mark())
        os.ftruncate(descriptor, len(_mark()))


def _content(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, 64)


def _release(descriptor: int) -> None:
    _held.discard(descriptor)
    os.close(descriptor)


def _leave_to_parent() -> None:
    """Close inherited descriptors in a forked process, so that the lock ends with its owner."""
    while _held:
        with suppress(OSError):
            os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
