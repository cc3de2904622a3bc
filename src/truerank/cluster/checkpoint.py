"""Resume a killed fit from a file, with the same bits as a fit without interruption.

A fit is a function of the answers to its rounds, and the file holds these answers. A resumed fit replays the rounds,
the workers replay the journal, and then new rounds begin. A whole tree is one answer; histograms are not stored. Each
answer is stored with its number and the name of its round, and both are checked during the replay.
"""

from __future__ import annotations

import io
import os
import pickle
import shutil
import struct
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from truerank import __version__
from truerank.cluster.partition import Partition
from truerank.core.digests import content_digest
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.locks import locked
from truerank.core.schema import fields_of
from truerank.data.rows import beside

_NAME = "rounds.bin"
INSIDE = "rounds.inside"  # the folder of fits inside a fit
_TEXT = np.dtypes.StringDType()
_HEAD = struct.Struct("<QI")  # length and checksum of a record
# Types of answers in addition to Python's own containers and numbers; no others are loaded from a file.
_KNOWN = {
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("scipy.sparse._csr", "csr_array"),
    ("scipy.sparse._csr", "csr_matrix"),
    ("truerank.cluster.checkpoint", "_texts"),
    ("truerank.trees.column_borders", "ColumnSummary"),
    ("truerank.trees.rows_in_parts", "_Sums"),
    ("truerank.trees.grower", "TreeStructure"),
    ("truerank.data.ranking_data", "RankingData"),
}


class Checkpoint:
    """The file of one fit in a folder, which is created if necessary and locked until `close`.

    `fit` identifies the fit (`name_of_fit`). A file with rounds of another fit raises InvalidInputError, and so does a
    folder that another process uses.
    """

    def __init__(self, folder: str | os.PathLike[str], fit: dict[str, str]) -> None:
        self.path = Path(folder) / _NAME
        self._lock = ExitStack()
        self._number = 0
        self._ahead: tuple[int, str, Any] = (0, "", None)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.enter_context(locked(folder))
            self._file = self._lock.enter_context(open(self.path, "a+b"))  # noqa: SIM115
            self._file.seek(0)
            self._begin(fit)
        except OSError as error:
            self.close()
            raise DataFileError(f"{self.path}: the checkpoint cannot be opened: {error}") from error
        except BaseException:
            self.close()
            raise

    def _begin(self, fit: dict[str, str]) -> None:
        self.replaying = self._advance()
        if not self.replaying:
            self.add("fit", fit)
            return
        found = self.answer("fit")
        other = [what for what, digest in fit.items() if found.get(what) != digest]
        if other:
            raise InvalidInputError(
                f"{self.path} contains the rounds of another fit: the {', '.join(other)} differ. Name another folder, "
                "or delete this file to start again",
                code="another-fit",
            )

    def answer(self, what: str) -> Any:
        """Return the next answer of the file, which must belong to the round `what`."""
        number, of, value = self._ahead
        if (number, of) != (self._number, what):
            raise DataFileError(
                f"{self.path}: expected round {self._number} ({what}), but the file has round {number} ({of}): "
                "more than one fit has written to it. Delete the file to start again",
                code="two-writers",
            )
        self._number += 1
        self.replaying = self._advance()
        return value

    def close(self, done: bool = False) -> None:
        """Close the file. If the fit is done, delete its file and those of inner fits."""
        if done:
            self._file.close()  # Windows removes no open file
            self.path.unlink(missing_ok=True)
            shutil.rmtree(self.path.parent / INSIDE, ignore_errors=True)
        self._lock.close()

    def add(self, what: str, value: object) -> None:
        """Append the answer to the round `what` and flush it to disk."""
        written = io.BytesIO()
        _Writer(written, protocol=5).dump((self._number, what, value))
        payload = written.getvalue()
        self._number += 1
        try:
            self._file.truncate()  # what a kill left of a record; a fit that is refused leaves the file as it is
            self._file.write(_HEAD.pack(len(payload), zlib.crc32(payload)) + payload)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise DataFileError(f"{self.path}: the checkpoint cannot be written: {error}") from error

    def _advance(self) -> bool:
        """Read one record ahead, and return whether the file has one: a kill can leave the last one incomplete."""
        start = self._file.tell()
        head = self._file.read(_HEAD.size)
        if len(head) == _HEAD.size:
            length, check = _HEAD.unpack(head)
            payload = self._file.read(length) if length <= os.fstat(self._file.fileno()).st_size else b""
            if len(payload) == length and zlib.crc32(payload) == check:
                try:
                    number, what, value = _Known(io.BytesIO(payload)).load()
                except Exception as error:
                    raise DataFileError(
                        f"{self.path} is not a checkpoint of this version ({error}). Delete the file",
                        code="not-a-checkpoint",
                    ) from error
                self._ahead = number, what, value
                return True
        self._file.seek(start)
        return False


class _Known(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _KNOWN:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name}")


class _Writer(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Write arrays of texts as lists: NumPy's pickles refer to functions that differ between versions."""
        return (_texts, (value.tolist(),)) if getattr(value, "dtype", None) == _TEXT else NotImplemented


def _texts(values: list[str]) -> np.ndarray:
    return np.array(values, dtype=_TEXT)


def name_of_fit(ranker: Any, data: Any, valid: Any) -> dict[str, str]:
    """Identify a fit by digests of the version, the settings and the content of the data.

    The workers compute the digests of their partitions, and read them again if they do not hold the rows.
    """
    settings = {name: value for name, value in ranker.get_params(deep=False).items() if name != "callbacks"}
    begun = {}
    if getattr(ranker, "warm_start", False):
        begun = {name: getattr(ranker, name) for name in fields_of(type(ranker)) if hasattr(ranker, name)}
    return {
        "truerank version": __version__,
        "rankers": content_digest(type(ranker)),
        "settings": content_digest(settings),
        "model that the fit continues": content_digest(begun),
        "training data": content_digest(data.statistics(_digest, merge=beside)),
        "validation data": content_digest(None if valid is None else valid.statistics(_digest, merge=beside)),
    }


def _digest(partition: Partition) -> list[str]:
    return [content_digest(partition.data)]
