"""Write files so that a process killed at any moment leaves either the complete old file or the complete new file.

Devices, FIFOs and open descriptors (`/dev/stdout`, the pipe of `>(…)`) cannot be replaced, and are written directly.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import re
import secrets
import signal
import stat
import threading
import time
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any, NamedTuple

from truerank.core.errors import DataFileError, InvalidInputError, TruerankError
from truerank.core.locks import BINARY, OPEN_FILES_MOVE, DescriptorLock, locked

_SUFFIX = ".truerank-tmp"
_DESCRIPTOR = re.compile(r"/(?:dev|proc/(?:self|thread-self|\d+))/fd/(\d+)")
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
_swept: set[Path] = set()
_unfinished: dict[str, int] = {}  # temporary files, and their descriptors (-1: not open)
RENAMING = threading.Lock()
"""A lock that is held while several files are replaced as one step."""
_PATIENCE = 5.0  # seconds to wait for another process that replaces files in the same folder


class _Step(NamedTuple):
    """Files that are replaced together: their open resources, and pairs of a temporary file and its target."""

    open: ExitStack
    written: list[tuple[str, Path]]


# The marks of UTF-32 start with those of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip

_step: ContextVar[_Step | None] = ContextVar("step", default=None)


def encoding_of(head: bytes) -> str | None:
    """Return the encoding of the byte order mark at the start of a file; None for UTF-8 and without a mark.

    >>> encoding_of("text".encode("utf-16")), encoding_of("text".encode("utf-8-sig"))
    ('utf-16', None)
    """
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    return None


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a small file, in UTF-8 or in the encoding of its byte order mark (`encoding_of`).

    Raises
    ------
    DataFileError
        If a byte is not UTF-8; the message names its line.
    """
    with opened(path) as stream:
        raw = stream.read()
    try:
        return raw.decode(encoding_of(raw) or "utf-8-sig")
    except UnicodeDecodeError as error:
        data = error.object  # without the byte order mark
        line = data.count(b"\n", 0, error.start) + 1
        what = f"byte 0x{data[error.start]:02X} is not UTF-8; convert the file to UTF-8"
        raise DataFileError(what, os.fspath(path), line, code="not-utf-8") from error


def opened(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file for reading bytes. `exists`, `check_target` and `atomic_write` also resolve names of files."""
    return open(path, "rb")


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a file or a folder of this name."""
    return os.path.exists(path)


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file in the folder of `path`; on success flush it to disk and rename it to `path`.

    On an exception the temporary file is removed and `path` is unchanged. A symbolic link is followed, and the
    permissions of an existing file are kept. A device, a FIFO or an open descriptor is written directly. Temporary
    files of killed runs are removed from the folder. With `mode` "w" the file is UTF-8 text with LF line ends.

    Raises
    ------
    OSError
        If the file cannot be written; the error names `path`.
    """
    with atomic_writes([path], mode) as streams:
        yield streams[0]


@contextmanager
def atomic_writes(paths: Iterable[str | os.PathLike[str]], mode: str = "w") -> Iterator[list[IO[Any]]]:
    """Write several files in one step: no file is replaced before all are complete on disk.

    Interrupts are delayed while the files are renamed. If the process is killed between two renames, some files are new
    and others old, but each is complete.
    """
    with one_step() as step:
        opened = [step.open.enter_context(_opened(path, mode)) for path in paths]
        yield [stream for stream, _, _ in opened]
        for stream, temporary, target in opened:
            stream.flush()
            if temporary:
                with naming(target):
                    os.fsync(stream.fileno())
                if not OPEN_FILES_MOVE:
                    stream.close()
                step.written.append((temporary, target))


@contextmanager
def one_step() -> Iterator[_Step]:
    """Replace the files that `atomic_write` writes in this block together at the end, or none if the block fails.

    A block inside another block belongs to the outer block. Two processes never mix their files in one folder.
    """
    with ExitStack() as stack:
        step, outer = _Step(stack, []), _step.get()
        token = _step.set(step)
        try:
            yield step
        finally:
            _step.reset(token)
        if outer is not None:
            outer.open.push(stack.pop_all())  # temporary files stay locked until they are renamed
            outer.written.extend(step.written)
            return
        with interrupts_held_back(), _folders_locked({target.parent for _, target in step.written}):
            for temporary, target in step.written:
                os.replace(temporary, target)


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add this file name to an OSError without a file name in the block."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or isinstance(error, TruerankError):
            raise
        raise OSError(error.errno or errno.EIO, error.strerror or str(error), os.fspath(path)) from error


@contextmanager
def _folders_locked(folders: set[Path]) -> Iterator[None]:
    """Lock folders against other processes that replace files there, if the system supports it."""
    with ExitStack() as stack:
        end = time.monotonic() + _PATIENCE
        for folder in sorted(folders):
            with suppress(OSError):  # Windows opens no folder
                descriptor = os.open(folder, os.O_RDONLY)
                stack.callback(os.close, descriptor)
                while time.monotonic() < end:
                    with suppress(BlockingIOError):
                        DescriptorLock.take(descriptor)
                        break
                    time.sleep(0.001)
        yield


@contextmanager
def sole_folder(path: str | os.PathLike[str], known: str) -> Iterator[Path]:
    """Create and lock an empty folder until the block ends. Files that killed runs left in the folder are removed.

    The block may rename the folder. On an exception the folder is removed. `known` is a regular expression for the
    names of files that may be removed.

    Raises
    ------
    InvalidInputError
        If another run writes into the folder, if the folder is a symbolic link or belongs to another user, or if it
        contains a file with an unknown name.
    """
    folder = Path(path)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.parent / f"{folder.name}.writer"):
        try:
            refuse_planted(folder)
            folder.mkdir(exist_ok=True)
            _empty(folder, known)
            with naming(folder):
                yield folder
        except BaseException:
            # `Interruptible` repeats an interrupt after a moment, which may be shorter than this.
            with interrupts_held_back(), suppress(OSError, InvalidInputError):
                remove_folder(folder, known)
            raise


def remove_folder(folder: Path, known: str) -> None:
    """Remove a folder with its files, or raise as `sole_folder` does."""
    refuse_planted(folder)
    _empty(folder, known)
    folder.rmdir()


def refuse_planted(path: str | os.PathLike[str]) -> None:
    """Raise InvalidInputError if a path is a symbolic link or belongs to another user."""
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return
    if stat.S_ISLNK(there.st_mode) or (hasattr(os, "geteuid") and there.st_uid != os.geteuid()):
        raise InvalidInputError(
            f"{os.fspath(path)} is a symbolic link, or belongs to another user. Remove it, or choose another path"
        )


def _empty(folder: Path, known: str) -> None:
    names = os.listdir(folder)
    strange = [name for name in names if not re.fullmatch(known, name)]
    if strange:
        raise InvalidInputError(
            f"{folder}: contains {min(strange)!r}, which truerank did not write. Move this file elsewhere"
        )
    for name in names:
        os.unlink(folder / name)


def identity(path: str | os.PathLike[str]) -> tuple[Any, ...] | None:
    """Return a key shared by all paths of one regular file, also if it does not exist; None for folders and devices.

    Names of new files that differ only by case or by the form of accents are one file, as on some systems.
    """
    try:
        there = os.stat(path)
        return (there.st_dev, there.st_ino) if stat.S_ISREG(there.st_mode) else None
    except (OSError, ValueError):
        folder, name = os.path.split(os.path.realpath(path))
    name = unicodedata.normalize("NFC", name).casefold()
    try:
        there = os.stat(folder)
    except OSError:
        return (folder, name)
    return (there.st_dev, there.st_ino, name)


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise InvalidInputError if `path` cannot be written. A temporary file is created for the check."""
    name = os.fspath(path)
    if not name:
        raise InvalidInputError("the name of the output is empty. Name a file", code="no-name")
    if "\0" in name:
        raise InvalidInputError(
            f"{name!r}: the name of a file cannot contain a NUL character. Name another file", code="nul"
        )
    try:
        number = _written_directly(name)
        if number is not None and number >= 0:
            os.fstat(number)
            return
        if os.path.isdir(name):
            raise InvalidInputError(f"{name} is a folder. Name a file", code="folder")
        if os.path.exists(name) and not os.access(name, os.W_OK):
            raise InvalidInputError(
                f"{name}: the file is not writable. Change its permissions or name another file", code="read-only"
            )
        if number is not None:
            return
        folder = Path(name).resolve().parent
        with suppress(FileNotFoundError):
            os.lstat(name)  # raises on a name that is too long
        if not folder.is_dir():
            raise InvalidInputError(f"{name}: the folder {folder} does not exist. Create it first", code="no-folder")
        with _opened(name, "wb"):
            pass
    except OSError as error:
        raise InvalidInputError(f"{name} cannot be written: {error.strerror or error}") from error


def remove_unfinished() -> None:
    """Remove the temporary files of this process when it ends."""
    for temporary, descriptor in list(_unfinished.items()):
        with suppress(OSError):
            if not OPEN_FILES_MOVE:
                os.close(descriptor)
        with suppress(OSError):
            os.unlink(temporary)


@contextmanager
def _opened(path: str | os.PathLike[str], mode: str) -> Iterator[tuple[IO[Any], str, Path]]:
    """Yield a stream, its temporary file ("" if `path` itself is written), and the target file."""
    name, temporary, target = os.fspath(path), "", Path(path).resolve()
    try:
        number = _written_directly(name)
        if number is None:
            descriptor, temporary = _make_temporary(target)
        else:
            descriptor = os.open(name, os.O_WRONLY | BINARY) if number < 0 else os.dup(number)
        stream: IO[Any] = io.BufferedWriter(_NamedFile(descriptor, name))
        with stream if "b" in mode else io.TextIOWrapper(stream, "utf-8", newline="\n") as stream:
            yield stream, temporary, target
    except OSError as error:
        if isinstance(error, BrokenPipeError) and not temporary:
            raise InvalidInputError(f"{name}: the reader closed the output before all data were written") from error
        raise
    finally:
        if temporary:
            with suppress(FileNotFoundError):  # it may have become the file
                os.unlink(temporary)
            _unfinished.pop(temporary, None)


class _NamedFile(io.FileIO):
    """An open file whose write errors have the name of the output."""

    def __init__(self, descriptor: int, name: str) -> None:
        super().__init__(descriptor, "wb")
        self._output = name

    def write(self, data: Any) -> int:
        """Write data; an OSError has the name of the output."""
        with naming(self._output):
            return super().write(data)


def _make_temporary(target: Path) -> tuple[int, str]:
    """Return an open temporary file with the permissions of `target`, locked so that other runs do not remove it."""
    _sweep(target.parent)
    permissions = stat.S_IMODE(os.stat(target).st_mode) if target.exists() else None
    for _ in range(100):
        temporary = str(target.parent / f".{target.name[:100]}.{secrets.token_hex(4)}{_SUFFIX}")
        _unfinished[temporary] = -1  # before it exists: an interrupt may fall between
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | BINARY | getattr(os, "O_CLOEXEC", 0)
        try:
            descriptor = os.open(temporary, flags, 0o666 if permissions is None else permissions)
        except FileExistsError:
            continue
        _unfinished[temporary] = descriptor
        with suppress(OSError):  # a file system without locks
            DescriptorLock.take(descriptor, wait=True)
        try:
            if os.path.samestat(os.stat(temporary), os.fstat(descriptor)):
                if permissions is not None and hasattr(os, "fchmod"):
                    os.fchmod(descriptor, permissions)
                return descriptor, temporary
        except FileNotFoundError:
            pass  # another run removed it before it was locked
        except OSError:
            os.close(descriptor)
            os.unlink(temporary)
            _unfinished.pop(temporary, None)
            raise
        os.close(descriptor)
    raise FileExistsError(errno.EEXIST, "no name for a temporary file is free", str(target))


def _sweep(folder: Path) -> None:
    """Remove temporary files of killed runs from a folder, once per folder and process."""
    if folder in _swept:
        return
    _swept.add(folder)
    try:
        with os.scandir(folder) as entries:
            left = [entry.path for entry in entries if re.fullmatch(r"\..*" + re.escape(_SUFFIX), entry.name)]
    except OSError:
        return
    for path in left:
        try:
            descriptor = os.open(path, os.O_RDWR | BINARY | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            continue
        try:
            DescriptorLock.take(descriptor)
            if not OPEN_FILES_MOVE:
                os.close(descriptor)
            os.unlink(path)
        except OSError:
            pass  # a run that still writes holds the lock
        finally:
            with suppress(OSError):
                os.close(descriptor)


def _written_directly(name: str) -> int | None:
    """Return the descriptor of a path (`/dev/fd/63`), -1 for a device or a FIFO, or None for a file to replace."""
    path = name
    for _ in range(8):
        found = _DESCRIPTOR.fullmatch(path)
        if found or path in _STANDARD:
            return int(found.group(1)) if found else _STANDARD[path]
        if not os.path.islink(path):
            break
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return -1 if os.path.exists(name) and not os.path.isfile(name) else None


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Delay interrupts until the end of the block. A process that is ending also waits for the end of the block."""
    with RENAMING:
        if threading.current_thread() is not threading.main_thread() or not callable(signal.getsignal(signal.SIGINT)):
            yield
            return
        noted: list[int] = []
        before = signal.signal(signal.SIGINT, lambda number, frame: noted.append(number))
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
    if noted:
        signal.raise_signal(signal.SIGINT)
