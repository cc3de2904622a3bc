"""The answers of a fit's rounds in a file: a client that was killed goes on where it stopped, with the same bits.

A fit is a function of the answers to its rounds. Read from the file they bring it to where it was; the workers follow
by the journal, and the next round is a real one. A tree stands in the file as one answer, not its histograms.
"""

from __future__ import annotations

import io
import os
import pickle
import struct
import zlib
from pathlib import Path
from typing import Any

from truerank.core.errors import DataFileError, InvalidInputError

_NAME = "rounds.bin"
_HEAD = struct.Struct("<QI")  # length and checksum of a record
# What an answer may be made of, beside Python's own containers and numbers: nothing else is loaded from a file.
_KNOWN = {
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy.core.numeric", "_frombuffer"),
    ("truerank.cluster.column_summaries", "ColumnSummary"),
    ("truerank.cluster.fits.oblivious_boosting", "_Sums"),
    ("truerank.trees.grower", "TreeStructure"),
    ("truerank.data.ranking_data", "RankingData"),
}


class Checkpoint:
    """The file of one fit, in a folder that is made where it is not there.

    `fit` says what is fitted to what: a file with the rounds of another fit is an `InvalidInputError`.
    """

    def __init__(self, folder: str | os.PathLike[str], fit: str) -> None:
        self.path = Path(folder) / _NAME
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self.path, "a+b")  # noqa: SIM115  (closed by `close`)
        self._file.seek(0)
        self._ahead: Any = None
        try:
            self._begin(fit)
        except BaseException:
            self.close()
            raise

    def _begin(self, fit: str) -> None:
        self.replaying = self._advance()
        if not self.replaying:
            self.add(fit)
        elif self.answer() != fit:
            raise InvalidInputError(
                f"{self.path} holds the rounds of another fit (other settings, data or version); name another folder, "
                "or delete this file to begin anew"
            )

    def answer(self) -> Any:
        """The next answer of the file."""
        value = self._ahead
        self.replaying = self._advance()
        return value

    def close(self, done: bool = False) -> None:
        """Close the file, and delete it when the fit is done."""
        self._file.close()
        if done:
            self.path.unlink(missing_ok=True)

    def add(self, value: Any) -> None:
        """Keep an answer; it is on the disk when this returns."""
        payload = pickle.dumps(value, protocol=5)
        try:
            self._file.write(_HEAD.pack(len(payload), zlib.crc32(payload)) + payload)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise DataFileError(f"{self.path}: the checkpoint cannot be written: {error}") from error

    def _advance(self) -> bool:
        """Read one record ahead; what a kill left unfinished at the end is cut off."""
        start = self._file.tell()
        head = self._file.read(_HEAD.size)
        if len(head) == _HEAD.size:
            length, check = _HEAD.unpack(head)
            payload = self._file.read(length) if length <= os.fstat(self._file.fileno()).st_size else b""
            if len(payload) == length and zlib.crc32(payload) == check:
                self._ahead = _load(payload, self.path)
                return True
        self._file.truncate(start)
        self._file.seek(start)
        return False


class _Known(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _KNOWN:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name}")


def _load(payload: bytes, path: Path) -> Any:
    try:
        return _Known(io.BytesIO(payload)).load()
    except Exception as error:
        raise DataFileError(f"{path}: not a checkpoint of this version ({error}); delete the file") from error


def name_of_fit(ranker: Any, data: Any, valid: Any) -> str:
    """Version, learner, settings, the trees that it goes on from, and the partitions' rows, queries and files."""
    from hashlib import blake2b

    import truerank

    given = sorted(ranker.get_params(deep=False).items())
    settings = {name: _plain(value) for name, value in given if name != "callbacks"}
    parts = []
    if getattr(ranker, "warm_start", False) and hasattr(ranker, "tree_values_"):
        parts.append(blake2b(ranker.tree_values_.tobytes(), digest_size=16).hexdigest())
    for one in (data, valid):
        if one is not None:
            digest = blake2b(digest_size=16)
            digest.update(one.rows_by_partition.tobytes())
            digest.update(repr(one.query_ids.tolist()).encode())
            for source in one.crew.sources:
                path = getattr(source, "path", None)
                if path is not None and os.path.exists(path):
                    found = os.stat(path)
                    digest.update(f"{path} {found.st_size} {found.st_mtime_ns}".encode())
            parts.append(digest.hexdigest())
    return repr((truerank.__version__, type(ranker).__name__, settings, parts))


def _plain(value: Any) -> str:
    return getattr(value, "__qualname__", None) or repr(value)
