"""Store document ids as UTF-8 bytes, and convert them to strings only on demand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from truerank.io.letor.grammar import TEXT

_MOST_PADDED = 1 << 24  # bytes of texts that are padded to equal lengths


class DocumentIds:
    """A column of ids. UTF-8 bytes sort like strings, so ids are compared, hashed and sorted as bytes.

    Id i is `utf8[begins[i]:ends[i]]`; ids may share bytes, in any order.

    >>> ids = DocumentIds.of(["D7", "Ü1", "D11"])
    >>> ids.utf8[ids.begins[1] : ids.ends[1]].tobytes().decode(), ids.take([2, 0]).texts.tolist()
    ('Ü1', ['D11', 'D7'])
    """

    __slots__ = ("_hashes", "_texts", "begins", "ends", "utf8")

    def __init__(self, utf8: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> None:
        self.utf8, self.begins, self.ends = utf8, begins, ends
        self._texts: np.ndarray | None = None
        self._hashes: np.ndarray | None = None

    @classmethod
    def of(cls, texts: Sequence[str] | np.ndarray) -> DocumentIds:
        """Return the ids of a list of strings, or of an array of any kind of text."""
        names: list[str] = texts.tolist() if isinstance(texts, np.ndarray) else list(texts)
        joined = "".join(names)
        if joined.isascii():
            ids = cls.back_to_back(joined.encode("ascii"), map(len, names), len(names))
        else:
            encoded = [name.encode("utf-8") for name in names]
            ids = cls.back_to_back(b"".join(encoded), map(len, encoded), len(names))
        if isinstance(texts, np.ndarray) and texts.dtype == TEXT:
            ids._texts = texts
        return ids

    @classmethod
    def back_to_back(cls, utf8: bytes, lengths: Iterable[int], n: int) -> DocumentIds:
        """Return n ids from their concatenated bytes and their lengths."""
        offsets = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(np.fromiter(lengths, dtype=np.int64, count=n), out=offsets[1:])
        # A bytearray, because kernels would be compiled again for read-only bytes.
        return cls(np.frombuffer(bytearray(utf8), dtype=np.uint8), offsets[:-1], offsets[1:])

    @classmethod
    def concatenate(cls, parts: Iterable[DocumentIds]) -> DocumentIds:
        """Return all ids of several columns."""
        given = list(parts)
        starts = np.cumsum([0, *(len(part.utf8) for part in given)]).tolist()
        places = np.cumsum([0, *map(len, given)]).tolist()
        begins, ends = np.empty(places[-1], dtype=np.int64), np.empty(places[-1], dtype=np.int64)
        for part, start, a, b in zip(given, starts, places, places[1:]):
            np.add(part.begins, start, out=begins[a:b])
            np.add(part.ends, start, out=ends[a:b])
        return cls(np.concatenate([part.utf8 for part in given]), begins, ends)

    @property
    def texts(self) -> np.ndarray:
        """The ids as a StringDType array (n,), computed once."""
        if self._texts is None:
            self._texts = self._decoded()
        return self._texts

    @property
    def hashes(self) -> np.ndarray:
        """A hash of each id, uint64 (n,), computed once."""
        if self._hashes is None:
            from truerank.io.trec_kernel import hash_ids

            self._hashes = np.empty(len(self), dtype=np.uint64)
            with np.errstate(over="ignore"):  # products wrap around, also without compilation
                hash_ids(self.utf8, self.begins, self.ends, self._hashes)
        return self._hashes

    def _decoded(self) -> np.ndarray:
        sizes = self.ends - self.begins
        width = int(sizes.max(initial=0))
        if width == 0:
            return np.full(len(self), "", dtype=TEXT)
        if width * len(self) > _MOST_PADDED or not self.utf8.min():  # padding with zeros would lose such bytes
            data = self.utf8.tobytes()
            return np.array([data[a:b].decode() for a, b in zip(self.begins.tolist(), self.ends.tolist())], dtype=TEXT)
        lacking = int(self.begins.max()) + width - len(self.utf8)
        utf8 = np.append(self.utf8, np.zeros(lacking, np.uint8)) if lacking > 0 else self.utf8
        padded = np.lib.stride_tricks.sliding_window_view(utf8, width)[self.begins]
        padded *= np.arange(width) < sizes[:, None]
        return padded.reshape(-1).view(f"S{width}").astype(TEXT)

    def take(self, places: Sequence[int] | np.ndarray) -> DocumentIds:
        """Return the ids at some positions, sharing the bytes of this column."""
        return DocumentIds(self.utf8, self.begins[places], self.ends[places])

    def __len__(self) -> int:
        return len(self.begins)
