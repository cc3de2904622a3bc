"""Folders of collections with published folds: Fold1 … with train, vali and test files, or five parts S1 … S5."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.types import PathLike
from truerank.data.ranking_data import RankingData
from truerank.data.splits import Fold, FoldedData
from truerank.io.letor.read import read_letor
from truerank.io.streams import find_file


class FoldFiles(NamedTuple):
    """The files of a fold."""

    name: str
    train: list[Path]
    valid: list[Path]
    test: list[Path]


def fold_folders(folder: PathLike) -> list[Path]:
    """Return the folders Fold1, Fold2, … of a folder, by name."""
    inside = Path(folder).iterdir()
    return sorted(one for one in inside if one.is_dir() and one.name.lower().startswith("fold"))


def fold_files(folder: PathLike) -> list[FoldFiles]:
    """Return the files of each fold of a folder. Of parts, S_k is for test, S_k-1 for validation, 3 for training."""
    if folders := fold_folders(folder):
        return [FoldFiles(one.name, *([_file(one, stem)] for stem in ("train", "vali", "test"))) for one in folders]
    parts = [_file(Path(folder), f"S{k}") for k in range(1, 6)]
    return [
        FoldFiles(f"test S{k + 1}", [parts[(k + shift) % 5] for shift in (1, 2, 3)], [parts[k - 1]], [parts[k]])
        for k in range(5)
    ]


def _file(folder: Path, stem: str) -> Path:
    path = find_file(folder, f"{stem}.txt")
    if path is None:
        raise InvalidInputError(
            f"{folder}: the folder has no file {stem}.txt (or .gz, .xz, .zst). Name a folder with Fold*/"
            "{train,vali,test}.txt, or with five parts S1.txt … S5.txt", code="no-file",
        )  # fmt: skip
    return path


def read_folds(folder: PathLike, *, read: Callable[[Any], RankingData] | None = None) -> FoldedData:
    """Read a collection with published folds as one value.

    Parameters
    ----------
    folder : path
        Folders Fold1, Fold2, … with train.txt, vali.txt and test.txt (as in LETOR and MSLR), or five parts S1.txt …
        S5.txt. Files may be compressed.
    read : callable, optional
        Function that reads a file. The default is `read_letor`.

    Returns
    -------
    FoldedData
        Each query once, in the order of the test files, and the `folds`. `cross_validate`, `tune`, `compare` and
        `evaluate` accept it as other RankingData.

    Raises
    ------
    InvalidInputError
        If a file is missing, or a query has different numbers of rows in two files.
    """
    reader: Callable[[Any], RankingData] = read_letor if read is None else read
    files = fold_files(folder)
    parts: list[RankingData] = []
    number: dict[Any, tuple[int, int, str | Path]] = {}  # by query: its number, its rows and its first file
    of_file: dict[str | Path, np.ndarray] = {}
    for path in dict.fromkeys(path for kind in (3, 2, 1) for fold in files for path in fold[kind]):
        part = reader(path)
        new = []
        for k, (query, size) in enumerate(zip(part.query_ids.tolist(), part.group_sizes.tolist())):
            _, known, first = number.setdefault(query, (len(number), size, path))
            if known != size:
                raise InvalidInputError(
                    f"query {query!r} has {known} rows in {first} and {size} in {path}, but a query must have the "
                    "same rows in all folds. Correct one of the files",
                    code="different-rows",
                )
            if first == path:
                new.append(k)
        of_file[path] = np.array([number[query][0] for query in part.query_ids.tolist()], dtype=np.int64)
        if new:
            parts.append(part if len(new) == part.n_queries else part.take_queries(new))
    whole = RankingData.concatenate(parts)
    folds = [
        Fold(one.name, *(np.sort(np.concatenate([of_file[path] for path in kind])) for kind in one[1:]))
        for one in files
    ]
    return FoldedData.of(whole, folds)
