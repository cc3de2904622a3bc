"""The cache of compiled kernels, which may be damaged or refuse to be written without stopping anything."""

from __future__ import annotations

import hashlib
import io
import pickle
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile

from truerank.core.errors import warn

_MARK = b"truerank"
_DIGEST = hashlib.sha256().digest_size
_warned: set[str] = set()  # folders of which a warning has been given


class KernelCache(FunctionCache):
    """numba's cache of one function, with a checksum.

    numba trusts what lies in its cache: half a file is an error out of every call of the kernel, and a changed byte in
    the machine code may end the process. Here a file that cannot be read, or whose checksum is wrong, counts as not
    there: the kernel is compiled again and its file replaced. What cannot be written is not kept. One warning for each
    folder says so. Files without a checksum, which numba wrote by itself, are taken as they are.
    """

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        file = self._cache_file
        file.__class__ = _CheckedFile

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, or None where it must be compiled."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # whatever a damaged pickle or object file makes of itself
            _warn(self.cache_path, f"a compiled function there is damaged ({_line(error)}) and is compiled again")
            return None

    def save_overload(self, sig: Any, data: object) -> None:
        """Keep a compiled function, if the folder can be written."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn(self.cache_path, f"compiled code cannot be kept there ({_line(error)}): every process compiles again")


class _CheckedFile(IndexDataCacheFile):
    """Index and data files that end in a mark and the SHA-256 of what stands before it, where no pickle looks."""

    def _dump(self, obj: Any) -> bytes:
        data: bytes = super()._dump(obj)
        return data + _MARK + hashlib.sha256(data).digest()

    def _load_index(self) -> dict[Any, str]:
        try:
            with open(self._index_path, "rb") as file:
                version = pickle.load(file)
                if version == self._version:
                    _verify(file.read())
            index = super()._load_index()
            if not isinstance(index, dict):
                raise ValueError(f"an index of type {type(index).__name__}")
            return index
        except FileNotFoundError:
            return {}
        except Exception as error:
            _warn(self._cache_path, f"an index of compiled functions there is damaged ({_line(error)}) and is replaced")
            return {}

    def _load_data(self, name: str) -> Any:
        with open(self._data_path(name), "rb") as file:
            content = file.read()
        _verify(content)
        return pickle.load(io.BytesIO(content))


def _verify(content: bytes) -> None:
    """Raise ValueError where a checksum is there and is not that of the content."""
    data, mark, digest = content[: -_DIGEST - len(_MARK)], content[-_DIGEST - len(_MARK) : -_DIGEST], content[-_DIGEST:]
    if mark == _MARK and hashlib.sha256(data).digest() != digest:
        raise ValueError("its checksum is wrong")


def _line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def _warn(folder: str, what: str) -> None:
    """Once for each folder."""
    if folder not in _warned:
        _warned.add(folder)
        warn(f"{folder}: {what}. If this comes again, delete that folder, or set NUMBA_CACHE_DIR to another one")
