"""Bytes in and out: plain and compressed files, standard input and output, open streams, progress on long reads.

Compression is recognised by a file's first bytes when reading (so it works on standard input too) and by the name's
ending when writing.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from truerank.core.errors import DataFileError, MissingExtraError, WrongTypeError
from truerank.core.files import atomic_write

CHUNK = 1 << 20
"""Bytes of text that readers take at a time."""

PROGRESS_AFTER = 2.0
"""Seconds of reading after which a progress bar appears (on a terminal only)."""

_BOM = b"\xef\xbb\xbf"


class Source:
    """A byte source that knows its name, whether it is compressed, and how far reading has come.

    Parameters
    ----------
    source : path, "-" for standard input, or an open stream of bytes or text
        A stream is read to its end and not closed.

    Raises
    ------
    DataFileError
        On a damaged or truncated archive, and on text in UTF-16.
    OSError
        When the file cannot be opened.
    """

    def __init__(self, source: Any) -> None:
        self._owned = False
        if source is None or isinstance(source, int | float | bytes):
            raise WrongTypeError(f"expected a path, '-' or an open file, got {source!r}")
        if isinstance(source, str) and source == "-":
            if sys.stdin is None or sys.stdin.closed:
                raise DataFileError("standard input is closed; name a file, or open it", "-")
            self.name, self._raw = "-", sys.stdin.buffer
        elif hasattr(source, "read"):
            name = getattr(source, "name", None)
            self.name = name if isinstance(name, str) else "<stream>"
            self._raw = _AsBytes(source) if isinstance(source, io.TextIOBase) else source
        else:
            self.name = os.fspath(source)
            self._raw = open(source, "rb")  # noqa: SIM115 - closed in close()
            self._owned = True
        self.total = _size(self._raw)
        self.taken = 0  # bytes of the file itself, so compressed ones where it is compressed
        self._given = 0  # bytes of text that they held
        self._inflate: Any = None
        self._bar = _Bar(self.name, self.total)
        try:
            self._head = self._take(CHUNK)
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        """Set up decompression; refuse UTF-16; drop a UTF-8 byte order mark."""
        self._inflate = _inflater(self._head)
        if self._inflate is None and self._head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise DataFileError("the file is UTF-16 text; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)", self.name)
        self._pending = b""
        first = self._next()
        while first is not None and len(first) < len(_BOM):
            more = self._next()
            if more is None:
                break
            first += more
        self._pending = (first or b"").removeprefix(_BOM)
        self._ended = first is None

    def _take(self, size: int) -> bytes:
        # Archives are taken in small pieces: a megabyte of one may hold a gigabyte of text.
        data = self._raw.read(size if self._inflate is None else size >> 4)
        self.taken += len(data)
        self._bar.update(self.taken)
        return data

    @property
    def expected_size(self) -> float:
        """Bytes of text that the whole source is expected to hold; 0 where nothing is known."""
        return self._given * (self.total / self.taken) if self.total and self.taken else 0.0

    def _next(self) -> bytes | None:
        """The next piece of text, None at the end."""
        while True:
            raw, self._head = (self._head, b"") if self._head else (self._take(CHUNK), b"")
            if self._inflate is None:
                self._given += len(raw)
                return raw or None
            try:
                if not raw:
                    self._inflate.finish()
                    return None
                data = self._inflate.feed(raw)
            except Exception as error:  # zlib.error, LZMAError, ZstdError, EOFError
                raise DataFileError(
                    f"the {self._inflate.kind} archive is damaged or truncated after {self.taken} bytes ({error}); "
                    "fetch the file again",
                    self.name,
                ) from error
            if data:
                self._given += len(data)
                return data

    def _pieces(self) -> Iterator[bytes]:
        if self._pending:
            yield self._pending
            self._pending = b""
        while not self._ended:
            piece = self._next()
            if piece is None:
                self._ended = True
            else:
                yield piece

    def line_blocks(self) -> Iterator[bytes]:
        """The text in blocks of whole lines, each of about a megabyte (more where one line is longer)."""
        held: list[bytes] = []
        size = 0
        for piece in self._pieces():
            for start in range(0, len(piece), CHUNK):
                part = piece[start : start + CHUNK]
                cut = part.rfind(b"\n") + 1 if size + len(part) >= CHUNK else 0
                if cut:
                    held.append(part[:cut])
                    yield b"".join(held)
                    held, part = [], part[cut:]
                    size = 0
                if part:
                    held.append(part)
                    size += len(part)
        if held:
            yield b"".join(held)

    def lines(self, longest: int) -> Iterator[tuple[int, bytes | None]]:
        """Lines with their numbers from 1, without line ends; None for one of more than `longest` bytes.

        No more than `longest` bytes of a line are ever held. An empty last line is not given.
        """
        number, size = 1, 0
        held: list[bytes] = []
        for piece in self._pieces():
            *whole, rest = piece.split(b"\n")
            for part in whole:
                size += len(part)
                yield number, b"".join([*held, part]).removesuffix(b"\r") if size <= longest else None
                number, size, held = number + 1, 0, []
            size += len(rest)
            held = [*held, rest] if size <= longest else []
        if size:
            yield number, b"".join(held) if size <= longest else None

    def close(self) -> None:
        """Close the file if it was opened here, and remove the progress bar."""
        self._bar.close()
        if self._owned:
            self._raw.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _AsBytes:
    """Bytes of an open text stream."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def read(self, size: int) -> bytes:
        return self._stream.read(size).encode("utf-8")


class _Inflater:
    """A decompressor over members that follow each other, with the end checked."""

    def __init__(self, kind: str, make: Any) -> None:
        self.kind, self._make, self._member = kind, make, make()

    def feed(self, raw: bytes) -> bytes:
        parts = []
        while raw:
            if self._member.eof:
                raw = raw.lstrip(b"\0")  # padding between members
                if not raw:
                    break
                self._member = self._make()
            parts.append(self._member.decompress(raw))
            raw = self._member.unused_data if self._member.eof else b""
        return b"".join(parts)

    def finish(self) -> None:
        if not self._member.eof:
            raise EOFError("it ends in the middle")


def _inflater(head: bytes) -> _Inflater | None:
    if head.startswith(b"\x1f\x8b"):
        import zlib

        return _Inflater("gzip", lambda: zlib.decompressobj(wbits=31))
    if head.startswith(b"\xfd7zXZ\0"):
        import lzma

        return _Inflater("xz", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ))
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return _Inflater("zstd", lambda: _zstandard().ZstdDecompressor().decompressobj())
    return None


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError("zstandard", "zstd", "a .zst file") from error
    return zstandard


def _size(raw: Any) -> int | None:
    """Bytes that are left in a regular file, None for pipes."""
    try:
        status = os.fstat(raw.fileno())
        import stat

        return status.st_size - raw.tell() if stat.S_ISREG(status.st_mode) else None
    except (OSError, AttributeError, ValueError):
        return None


class _Bar:
    """A progress bar that is made only when reading has taken longer than PROGRESS_AFTER, on a terminal."""

    def __init__(self, name: str, total: int | None) -> None:
        self._name, self._total = name, total
        self._started = time.monotonic()
        self._bar: Any = None

    def update(self, done: int) -> None:
        if self._bar is None:
            if time.monotonic() - self._started < PROGRESS_AFTER or not sys.stderr.isatty():
                return
            from tqdm import tqdm

            name = "standard input" if self._name == "-" else os.path.basename(self._name)
            self._bar = tqdm(
                total=self._total, desc=f"reading {name}", unit="B", unit_scale=True, leave=False, file=sys.stderr
            )
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


@contextmanager
def open_output(target: Any) -> Iterator[IO[bytes]]:
    """A stream of bytes to a path (atomically, compressed by its ending), to "-" or to an open stream."""
    if isinstance(target, str) and target == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if hasattr(target, "write"):
        yield _ToText(target) if isinstance(target, io.TextIOBase) else target  # type: ignore[misc]
        return
    ending = Path(target).suffix.lower()
    with atomic_write(target, "wb") as raw:
        if ending == ".gz":
            import gzip

            # No time and no name in the header: the same data give the same bytes.
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as stream:
                yield stream  # type: ignore[misc]
        elif ending == ".xz":
            import lzma

            with lzma.LZMAFile(raw, "wb") as stream:
                yield stream  # type: ignore[misc]
        elif ending == ".zst":
            with _zstandard().ZstdCompressor().stream_writer(raw, closefd=False) as stream:
                yield stream
        else:
            yield raw


class _ToText:
    """An open text stream that takes bytes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: bytes) -> int:
        self._stream.write(data.decode("utf-8"))
        return len(data)
