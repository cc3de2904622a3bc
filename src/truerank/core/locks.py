"""Locks between processes. The system releases a lock when its process ends or is killed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from truerank.core.errors import InvalidInputError

try:
    import fcntl
except ImportError:  # Windows: nothing is locked
    fcntl = None  # type: ignore[assignment]

_held: set[int] = set()


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Lock a file or a folder against other processes, and other fits of this process, until the block ends.

    The lock is on a small file that contains the number of the process: `.lock` in an existing folder, else
    `.NAME.lock` in the folder of `path`, which need not exist. The system releases the lock when the process ends,
    even if it is killed; a lock file that is left has no effect. A process that is forked inside the block does not
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
        descriptor = _lock(name, os.fspath(path))
    except OSError as error:
        raise InvalidInputError(f"{os.fspath(path)}: cannot be locked ({name}): {error.strerror or error}") from error
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        if descriptor in _held:  # else this is a forked process, which left it to its parent
            with suppress(OSError):
                os.unlink(name)
            _release(descriptor)


def _lock(name: Path, what: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    while True:
        descriptor = os.open(name, flags, 0o666)
        _held.add(descriptor)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError("the lock file is not a regular file")
            if fcntl is not None:
                with _unless_unsupported():
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.stat(name), os.fstat(descriptor)):
                return descriptor
        except BlockingIOError:
            owner = os.read(descriptor, 20).decode("ascii", "replace").strip()
            number = f"process {owner}" if owner.isdigit() else "another process"
            this = " (this one)" if owner == str(os.getpid()) else ""
            _release(descriptor)
            raise InvalidInputError(
                f"{what}: {number}{this} is writing here; wait until it has ended, or name another place"
            ) from None
        except FileNotFoundError:
            pass  # its owner removed it before it was locked here
        except BaseException:
            _release(descriptor)
            raise
        _release(descriptor)


@contextmanager
def _unless_unsupported() -> Iterator[None]:
    try:
        yield
    except BlockingIOError:
        raise
    except OSError:
        pass


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
