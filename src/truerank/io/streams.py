"""Read and write bytes: plain and compressed files, standard input and output, open streams, with progress bars.

Readers detect compression by the first bytes, also on standard input; writers use the suffix of the name.
"""

from __future__ import annotations

import codecs
import io
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from truerank.core.errors import DataFileError, InvalidInputError, Remedy, TruerankError, WrongTypeError
from truerank.core.files import atomic_write, atomic_writes, encoding_of, opened
from truerank.core.printing import progress
from truerank.core.types import PathLike

CHUNK = 1 << 20  # bytes of text in each block
MAX_LINE = 1 << 24  # default limit on the bytes of a line, because a damaged file may have no line ends
MAX_WINDOW = 1 << 27  # largest window of a decompressor in bytes; archives that require more are refused
EXPANDED, FOLD = 1 << 28, 100.0  # bytes, and times its own size, to which a file may expand
COMPRESSED = (".gz", ".xz", ".zst")  # file name endings of compressed text


def check_expansion(name: str, size: int, expanded: int) -> None:
    """Reject a file of `size` bytes that expands to more than 256 MiB and to more than 100 times its size.

    The environment variable TRUERANK_EXPANSION replaces the factor 100.

    Raises
    ------
    DataFileError
        With the name of the variable in the message.
    """
    if expanded <= EXPANDED:
        return
    text = os.environ.get("TRUERANK_EXPANSION", str(FOLD))
    try:
        fold = float(text)
    except ValueError as error:
        raise InvalidInputError(argument="TRUERANK_EXPANSION", value=text, expected="a number") from error
    if expanded > fold * size:
        raise DataFileError(
            f"the {size} bytes of the file expand to more than {expanded >> 20} MiB, over {fold:g} times as much. If "
            "the content is correct, write it without compression, or set TRUERANK_EXPANSION=10000 in the environment",
            name,
            code="expansion",
        )


class Source(AbstractContextManager["Source"]):
    """A source of bytes with its name, compression and progress.

    `source` is a path, "-" for standard input, or an open stream of bytes or text, which is read to its end but not
    closed. `max_line` limits the bytes of a line, by default MAX_LINE. Raises OSError if the file cannot be opened.
    Text in UTF-16 and UTF-32 with a byte order mark becomes UTF-8. Raises DataFileError for an archive that is damaged,
    truncated or of an unknown kind, damaged UTF-16, a NUL byte, or a line that is too long.
    """

    def __init__(self, source: object, max_line: int | None = None) -> None:
        self._owned = False
        self._raw: Any
        self._max_line = MAX_LINE if max_line is None else max_line
        if source is None or isinstance(source, int | float | bytes):
            raise WrongTypeError(f"expected a path, '-' or an open file, got {source!r}", argument="source")
        if isinstance(source, str) and source == "-":
            if sys.stdin is None:
                raise DataFileError("standard input is closed. Name a file, or open standard input", "-")
            self.name, self._raw = "-", sys.stdin.buffer
        elif hasattr(source, "read"):
            name = getattr(source, "name", None)
            self.name = name if isinstance(name, str) else "<stream>"
            self._raw = _AsBytes(source) if isinstance(source, io.TextIOBase) else source
        elif not isinstance(source, str | os.PathLike):
            raise WrongTypeError(
                f"expected a path, '-' or an open file, got a {type(source).__name__}", argument="source"
            )
        else:
            self.name = os.fspath(source)
            try:
                self._raw = opened(source)  # closed in close()
            except ValueError as error:  # a NUL, half a surrogate pair
                raise DataFileError(f"the name is not valid for a file ({error})", repr(self.name)) from error
            self._owned = True
        self.total: int | None = None  # bytes of a regular file from here on
        with suppress(OSError, AttributeError, ValueError):
            status = os.fstat(self._raw.fileno())
            if stat.S_ISREG(status.st_mode):
                self.total = status.st_size - self._raw.tell()
        self.is_plain = True  # whether the bytes of the file are those of the text
        self.taken = 0  # bytes read from the file, before decompression
        self._given = 0  # bytes of text, after decompression
        title = f"reading {'standard input' if self.name == '-' else os.path.basename(self.name)}"
        self._bar: Any = progress(None, title, self.total, unit="B", unit_scale=True)
        start = b""
        try:
            self._pieces = self._unpacked()
            for piece in self._pieces:
                start += piece
                if len(start) >= 4:
                    break
        except BaseException:
            self.close()
            raise
        self._pieces = chain([start.removeprefix(codecs.BOM_UTF8)], self._pieces)
        if encoding := encoding_of(start):
            self._pieces, self.is_plain = self._as_utf8(encoding, self._pieces), False

    def _unpacked(self) -> Iterator[bytes]:
        """Yield the text in pieces. Raises DataFileError for unsupported archives, and for damage."""
        inflater, size = None, CHUNK
        while raw := self._raw.read(size):
            if not self.taken:
                inflater = _inflater(raw, self.name)
                self.is_plain = inflater is None
                size = CHUNK if inflater is None else CHUNK >> 4  # a megabyte may decompress to a gigabyte of text
            self.taken += len(raw)
            if self._bar is not None:
                self._bar.update(len(raw))
            try:
                for piece in [raw] if inflater is None else inflater.feed(raw):
                    self._given += len(piece)
                    if inflater is not None:
                        check_expansion(self.name, self.total or self.taken, self._given)
                    yield piece
            except TruerankError:
                raise
            except Exception as error:  # zlib.error, LZMAError, ZstdError
                raise self._damaged("" if inflater is None else inflater.kind, error) from error
        if inflater is not None and not inflater.member.eof:
            raise self._damaged(inflater.kind, "it ends in the middle")

    def _as_utf8(self, encoding: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
        decoder, line = codecs.getincrementaldecoder(encoding)(), 1
        for piece in chain(pieces, [b""]):
            try:
                text = decoder.decode(piece, final=not piece)
            except UnicodeError as error:
                what = f"the text is damaged {encoding.upper()} ({error}). Export the file again, as UTF-8"
                raise DataFileError(what, self.name, line) from error
            line += text.count("\n")
            if text:
                yield text.encode("utf-8")

    def peek(self) -> bytes:
        """Return the first bytes of the text, which reading returns again; b"" at the end."""
        first = next(self._pieces, b"")
        self._pieces = chain([first], self._pieces)
        return first

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes of any file, text or not."""
        yield from self._pieces

    @property
    def expected_size(self) -> float:
        """The expected bytes of text of the whole source, or 0 if unknown."""
        return self._given * (self.total / self.taken) if self.total and self.taken else 0.0

    def _damaged(self, kind: str, error: object) -> DataFileError:
        if "memory" in str(error).lower():
            return DataFileError(
                f"the {kind} archive requires more than {MAX_WINDOW >> 20} MB of memory to be unpacked ({error}). "
                "Unpack it, or compress it with a smaller window",
                self.name,
            )
        return DataFileError(
            f"the {kind} archive is damaged or truncated after {self.taken} bytes ({error}). Download the file again",
            self.name,
            code="damaged-archive",
        )

    def line_blocks(self) -> Iterator[bytes]:
        """Yield blocks of whole lines, each of about a megabyte, or more if one line is longer.

        Raises DataFileError for a NUL byte, or a line of more than `max_line` bytes.
        """
        held: list[bytes] = []
        size = length = 0  # bytes held; bytes since the last line end
        line = 1
        for piece in self._pieces:
            for start in range(0, len(piece), CHUNK):
                part = piece[start : start + CHUNK]
                nul = part.find(b"\0")
                if nul >= 0:
                    last = part.rfind(b"\n", 0, nul)
                    raise DataFileError(
                        "there is a NUL byte: the file is damaged or not text. Convert UTF-16 to UTF-8",
                        self.name,
                        line + part.count(b"\n", 0, nul),
                        nul - last if last >= 0 else length + nul + 1,
                        code="nul",
                    )
                end = part.rfind(b"\n") + 1
                longest = max(length + (part.find(b"\n") if end else len(part)), len(part) - end)
                if self._max_line < CHUNK and end:
                    longest = max(longest, *map(len, part[part.find(b"\n") + 1 : end].split(b"\n")))
                if longest > self._max_line:
                    sizes = [length * (not k) + len(text) for k, text in enumerate(part.split(b"\n"))]
                    raise DataFileError(
                        f"the line has more than {self._max_line} bytes. The file is damaged or not text",
                        self.name,
                        line + next(k for k, found in enumerate(sizes) if found > self._max_line),
                        remedies=[Remedy("if the line is correct", max_line=...)],
                        code="long-line",
                    )
                length = len(part) - end if end else length + len(part)
                # This needs a fifth of the time of bytes.count.
                line += int(np.count_nonzero(np.frombuffer(part, dtype=np.uint8) == 10))
                cut = end if size + len(part) >= CHUNK else 0
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

    def numbered_lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield lines with their numbers, without line feeds. The errors are the errors of `line_blocks`."""
        number = 1
        for block in self.line_blocks():
            lines = block.removesuffix(b"\n").split(b"\n")
            yield from enumerate(lines, number)
            number += len(lines)

    def lines(self, longest: int) -> Iterator[tuple[int, bytes | None]]:
        """Yield numbered lines without line ends; None replaces a line of more than `longest` bytes.

        At most `longest` bytes of a line are in memory. An empty last line is left out.
        """
        number, size = 1, 0
        held: list[bytes] = []
        for piece in self._pieces:
            *whole, rest = piece.split(b"\n")
            for part in whole:
                size += len(part)
                yield number, b"".join([*held, part]).removesuffix(b"\r") if size <= longest else None
                number, size, held = number + 1, 0, []
            size += len(rest)
            held = [*held, rest] if size <= longest else []
        if size:
            yield number, b"".join(held) if size <= longest else None

    def close(self, *_: object) -> None:
        """Close the file if this object opened it, and remove the progress bar."""
        if self._bar is not None:
            self._bar.close()
        if self._owned:
            self._raw.close()

    __exit__ = close


class _AsBytes:
    """An open text stream, read as bytes."""

    def __init__(self, stream: io.TextIOBase) -> None:
        self._stream = stream

    def read(self, size: int) -> bytes:
        return self._stream.read(size).encode("utf-8")


class _Inflater:
    """A decompressor of consecutive members that checks the end and returns at most a megabyte at a time.

    `gzip.open` and `lzma.open` have no limit on the window and do not report how much of the archive they have read.
    """

    def __init__(self, kind: str, make: Callable[[], Any]) -> None:
        self.kind, self._make, self.member = kind, make, make()

    def feed(self, raw: bytes) -> Iterator[bytes]:
        """Yield the text of the next bytes of the archive, in pieces of at most CHUNK bytes."""
        while True:
            if self.member.eof:
                raw = raw.lstrip(b"\0")  # padding between members
                if not raw:
                    return
                self.member = self._make()
            data, raw = self._step(raw)
            if data:
                yield data
            elif not raw and not self.member.eof:
                return

    def _step(self, raw: bytes) -> tuple[bytes, bytes]:
        """Return at most CHUNK bytes of text, and the unread bytes of the archive."""
        member = self.member
        data = member.decompress(raw, CHUNK)
        return data, member.unused_data if member.eof else member.unconsumed_tail


class _XzInflater(_Inflater):
    """A decompressor of xz: LZMADecompressor keeps the remaining bytes itself."""

    def _step(self, raw: bytes) -> tuple[bytes, bytes]:
        member = self.member
        data = member.decompress(raw if member.needs_input else b"", CHUNK)
        if member.eof:
            return data, member.unused_data
        return data, raw if not data and not member.needs_input else b""


class _ZstdInflater(_Inflater):
    """A decompressor of zstd, which cannot limit its output; its input is so small that the output is at most 64 MB."""

    def _step(self, raw: bytes) -> tuple[bytes, bytes]:
        member = self.member
        data = member.decompress(raw[:2048])  # a block of 3 bytes may decompress to 128 KB
        return data, member.unused_data + raw[2048:] if member.eof else raw[2048:]


_FOREIGN = (
    (b"PK\x03\x04", "zip", "unzip"), (b"7z\xbc\xaf\x27\x1c", "7z", "7z x"), (b"Rar!\x1a\x07", "RAR", "unrar x"),
    *((b"BZh%d1AY&SY" % level, "bzip2", "bunzip2") for level in range(1, 10)),
)  # fmt: skip


_SAVE = "Save the sheet as CSV (UTF-8)"
_NOT_TEXT = (
    (b"PK\x03\x04", "an Excel or OpenDocument workbook", _SAVE), (b"\xd0\xcf\x11\xe0", "an old Excel workbook", _SAVE),
    (b"\x80\x04\x95", "a pickle, which is never loaded", "Write the table as CSV or Parquet"),
    (b"\x80\x05\x95", "a pickle, which is never loaded", "Write the table as CSV or Parquet"),
    (b"%PDF-", "a PDF", "Export the data as CSV"),
    (b"SQLite format 3", "an SQLite database", "Export the table as CSV"),
    (b"\x93NUMPY", "an array of NumPy", "Write text, or a table"),
)  # fmt: skip


def _inflater(head: bytes, name: str) -> _Inflater | None:
    """Return the decompressor of the file `name` by its first bytes, or None for text."""
    if head.startswith(b"\x1f\x8b"):
        import zlib

        return _Inflater("gzip", lambda: zlib.decompressobj(wbits=31))
    if head.startswith(b"\xfd7zXZ\0"):
        import lzma

        return _XzInflater("xz", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_WINDOW))
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        library = _zstandard()
        return _ZstdInflater("zstd", lambda: library.ZstdDecompressor(max_window_size=MAX_WINDOW).decompressobj())
    for magic, kind, advice in _NOT_TEXT:
        if head.startswith(magic) and (
            magic != b"PK\x03\x04" or b"[Content_Types].xml" in head or b"opendocument" in head
        ):
            raise DataFileError(f"the file is {kind}. {advice}", name)
    for magic, kind, program in _FOREIGN:
        if head.startswith(magic):
            raise DataFileError(
                f"the file is a {kind} archive, which is not supported. Unpack it ({program}), or compress the text "
                "with gzip, xz or zstd",
                name,
                code="archive",
            )
    return None


def _zstandard() -> Any:
    import zstandard

    return zstandard


def find_file(folder: Path, name: str) -> Path | None:
    """Return the file of this name in a folder, possibly with a suffix of compressed text, or None."""
    candidates = [folder / f"{name}{ending}" for ending in ("", *COMPRESSED)]
    return next((path for path in candidates if path.is_file()), None)


def files_of(folder: PathLike) -> list[Path]:
    """Return the files of a folder by name, without hidden files."""
    return sorted(path for path in Path(folder).iterdir() if path.is_file() and not path.name.startswith("."))


@contextmanager
def open_output(target: Any) -> Iterator[IO[bytes]]:
    """Open a path (atomically, compressed by its suffix), "-" or an open stream for writing bytes."""
    if isinstance(target, str) and target == "-":
        sys.stdout.flush()
        # The stream of a notebook accepts only text.
        yield sys.stdout.buffer if hasattr(sys.stdout, "buffer") else _ToText(sys.stdout)  # type: ignore[misc]
        sys.stdout.flush()
        return
    if hasattr(target, "write"):
        yield _ToText(target) if isinstance(target, io.TextIOBase) else target  # type: ignore[misc]
        return
    with atomic_write(target, "wb") as raw, _compressed(raw, target) as stream:
        yield stream


@contextmanager
def open_outputs(targets: Sequence[str]) -> Iterator[list[IO[bytes]]]:
    """Open several paths for writing bytes; no file is replaced before all are complete."""
    with atomic_writes(targets, "wb") as raws, ExitStack() as stack:
        yield [stack.enter_context(_compressed(raw, target)) for raw, target in zip(raws, targets)]


@contextmanager
def _compressed(raw: IO[bytes], target: PathLike) -> Iterator[IO[bytes]]:
    """Yield a stream that writes to `raw`, compressed by the suffix of the name."""
    ending = Path(target).suffix.lower()
    if ending == ".gz":
        import gzip

        # The header has no time and no name, so that the same data give the same bytes.
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as stream:
            yield stream  # type: ignore[misc]
    elif ending == ".xz":
        import lzma

        with lzma.LZMAFile(raw, "wb") as stream:
            yield stream
    elif ending == ".zst":
        with _zstandard().ZstdCompressor().stream_writer(raw, closefd=False) as stream:
            yield stream
    else:
        yield raw


class _ToText:
    """An open text stream that accepts bytes."""

    def __init__(self, stream: io.TextIOBase | IO[str]) -> None:
        self._stream = stream

    def write(self, data: bytes) -> int:
        self._stream.write(data.decode("utf-8"))
        return len(data)
