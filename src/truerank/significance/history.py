"""The history of comparisons on the same queries, and the level of each comparison."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.files import atomic_write
from truerank.data.ranking_data import Judgements
from truerank.significance.paired import LEVEL


@dataclass
class History:
    """The history that `compare` and `retrain` read and extend, in one format.

    `looks` counts the comparisons by the digest of a query. `results` holds the number of each comparison by the digest
    of its results: repeated results do not count again. `references` holds, by the digest of a model that was promoted
    as not worse, the "digest" and "path" of the last model that was promoted as better.
    """

    looks: dict[str, int] = field(default_factory=dict)
    references: dict[str, dict[str, str]] = field(default_factory=dict)
    results: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> History:
        """Return the history in a file, empty if there is no file; raise if the file is not a history."""
        if not os.path.exists(path):
            return cls()
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"))
            looks = {str(query): int(count) for query, count in found["looks"].items()}
            results = {str(name): int(look) for name, look in found.get("results", {}).items()}
            references = {
                str(model): {key: str(of[key]) for key in ("digest", "path")}
                for model, of in found["references"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidInputError(
                f"{os.fspath(path)} is not a history of comparisons ({error}). Name another file, or restore this one",
                code="not-a-history",
            ) from error
        return cls(looks, references, results)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Replace the file atomically."""
        with atomic_write(path) as stream:
            json.dump({"looks": self.looks, "references": self.references, "results": self.results}, stream, indent=0)
            stream.write("\n")

    def look(self, digests: np.ndarray, results: str = "") -> int:
        """Return the number, from 1, of the next comparison on these queries: the count of the most used query +
        1.

        Repeated results keep their number.
        """
        counts = (self.looks.get(f"{digest:016x}", 0) for digest in digests.tolist())
        return self.results.get(results) or 1 + max(counts, default=0)

    def count(self, digests: np.ndarray, results: str = "") -> None:
        """Count one comparison for each of these queries, unless the results are repeated."""
        if results in self.results:
            return
        if results:
            self.results[results] = self.look(digests)
        for name in {f"{digest:016x}" for digest in digests.tolist()}:
            self.looks[name] = self.looks.get(name, 0) + 1

    @contextmanager
    def looking(
        self, judgements: Judgements, values: Mapping[str, Mapping[str, np.ndarray]], *options: object
    ) -> Iterator[tuple[int, float]]:
        """Yield the number of this look at the queries and its level, and count the look unless the block fails.

        `values` and `options` are the results, see `results_digest`.
        """
        digests, results = judgement_digests(judgements), results_digest(judgements.query_ids, values, *options)
        look = self.look(digests, results)
        yield look, level_of(look, LEVEL)
        self.count(digests, results)


def level_of(look: int, level: float) -> float:
    """Return the level of the k-th test on the same queries: `level` for the first, then level / (k (k - 1)).

    The two-sided levels of all looks add up to at most 2 · level. A truly worse model is therefore promoted in at most
    a share `level` of all histories on these queries, for any number of looks.

    >>> [level_of(k, 0.06) for k in (1, 2, 3)]
    [0.06, 0.03, 0.01]
    """
    return level if look == 1 else level / (look * (look - 1))


def judgement_digests(judgements: Judgements) -> np.ndarray:
    """Return a digest of each query's id and the grades of its judged documents, in any order: uint64 (m,)."""
    judged = np.ones(len(judgements.grades), dtype=bool) if judgements.judged is None else judgements.judged
    missing, ends = judgements.missing_grades, judgements.missing_offsets
    found = []
    for k, name in enumerate(judgements.query_ids):
        rows = slice(*judgements.offsets[k : k + 2])
        grades = judgements.grades[rows][judged[rows]].tolist()
        if missing is not None and ends is not None:
            grades += missing[ends[k] : ends[k + 1]].tolist()
        text = repr((str(name), sorted(map(float, grades)))).encode()
        found.append(int.from_bytes(blake2b(text, digest_size=8).digest(), "little"))
    return np.array(found, dtype=np.uint64)


def results_digest(queries: np.ndarray, values: Mapping[str, Mapping[str, np.ndarray]], *options: object) -> str:
    """Return the digest of results, the values by query of each measure and ranker, and of options that change p.

    The order of measures, rankers and queries does not matter, and values are rounded to 12 digits.
    """
    hashed = blake2b(repr((sorted(values), options)).encode(), digest_size=16)
    order = np.argsort(np.asarray(queries, dtype=str), kind="stable")
    for _, of_measure in sorted(values.items()):
        for name, own in sorted(of_measure.items()):
            hashed.update(name.encode())
            hashed.update((np.asarray(own, dtype=np.float64)[order].round(12) + 0.0).tobytes())
    return hashed.hexdigest()
