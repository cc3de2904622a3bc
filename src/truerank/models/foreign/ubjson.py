"""Universal Binary JSON, as much of it as XGBoost's `save_model("*.ubj")` writes."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.models.foreign.model import Reader

_NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_CONSTANTS = {b"Z": None, b"T": True, b"F": False}
_DEEPEST = 64


class UbjsonReader:
    """Decodes one value from `data`; every length is checked against the rest of the data."""

    def __init__(self, data: bytes, reader: Reader) -> None:
        self.data, self.reader, self.place = data, reader, 0

    def read(self) -> Any:
        """Return the only value."""
        value = self._value(self._take(1), 0)
        if self.data[self.place :].strip(b"N\0"):
            raise self._fail("there is something after the end of the value")
        return value

    def _fail(self, what: str) -> Exception:
        return self.reader.fail(f"byte {self.place}", what)

    def _take(self, size: int) -> bytes:
        if size < 0 or size > len(self.data) - self.place:
            raise self._fail(f"{size} bytes are claimed and {len(self.data) - self.place} are left")
        part = self.data[self.place : self.place + size]
        self.place += size
        return part

    def _value(self, marker: bytes, depth: int) -> Any:
        if depth > _DEEPEST:
            raise self._fail(f"containers are nested more than {_DEEPEST} deep")
        if marker in _NUMBERS:
            return self._numbers(marker, 1)[0].item()
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if marker == b"S":
            return self._text()
        if marker == b"C":
            return self._take(1).decode("latin-1")
        if marker == b"[":
            return self._array(depth)
        if marker == b"{":
            return self._object(depth)
        raise self._fail(f"unknown marker {marker!r}")

    def _numbers(self, marker: bytes, count: int) -> np.ndarray:
        dtype = np.dtype(_NUMBERS[marker])
        return np.frombuffer(self._take(count * dtype.itemsize), dtype=dtype)

    def _size(self) -> int:
        marker = self._take(1)
        if marker not in (b"i", b"U", b"I", b"l", b"L"):
            raise self._fail(f"expected a length, got marker {marker!r}")
        size = int(self._numbers(marker, 1)[0])
        if size < 0:
            raise self._fail(f"a length is {size}")
        return size

    def _text(self) -> str:
        try:
            return self._take(self._size()).decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._fail(f"a text is no UTF-8: {error.reason}") from None

    def _head(self) -> tuple[bytes | None, int | None]:
        kind = count = None
        if self.data[self.place : self.place + 1] == b"$":
            self._take(1)
            kind = self._take(1)
            if kind == b"N":
                raise self._fail("a container of nothing")
        if self.data[self.place : self.place + 1] == b"#":
            self._take(1)
            count = self._size()
        elif kind is not None:
            raise self._fail("a typed container has no count")
        if count is not None and count > len(self.data) - self.place:
            raise self._fail(f"{count} parts are claimed and {len(self.data) - self.place} bytes are left")
        return kind, count

    def _array(self, depth: int) -> list[Any]:
        kind, count = self._head()
        if kind in _NUMBERS and count is not None:
            return self._numbers(kind, count).tolist()
        result: list[Any] = []
        while count is None or len(result) < count:
            marker = self._take(1) if kind is None else kind
            if count is None and marker == b"]":
                break
            if marker != b"N":
                result.append(self._value(marker, depth + 1))
        return result

    def _object(self, depth: int) -> dict[str, Any]:
        kind, count = self._head()
        result: dict[str, Any] = {}
        while count is None or len(result) < count:
            if count is None and self.data[self.place : self.place + 1] == b"}":
                self._take(1)
                break
            key = self._text()
            if key in result:
                raise self._fail(f"the key {key!r} occurs twice")
            result[key] = self._value(self._take(1) if kind is None else kind, depth + 1)
        return result


def looks_like_ubjson(data: bytes) -> bool:
    """Whether the first bytes are an object of UBJSON: a length marker follows the brace."""
    return len(data) > 2 and data[:1] == b"{" and data[1:2] in (b"i", b"U", b"I", b"l", b"L", b"$", b"#")
