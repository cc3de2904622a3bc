"""The history of retrainings: how often held-out queries were used, and the last model promoted as better."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.files import atomic_write


@dataclass
class History:
    """The history that `retrain` reads and extends.

    `looks` counts the comparisons by the digest of a held-out query's rows. `references` holds, by the digest of a
    model that was promoted as not worse, "digest" and "path" of the last model that was promoted as better.
    """

    looks: dict[str, int] = field(default_factory=dict)
    references: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> History:
        """Read the history of a file; an empty one if there is no file, and an error if it is no history."""
        if not os.path.exists(path):
            return cls()
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"))
            looks = {str(query): int(count) for query, count in found["looks"].items()}
            references = {
                str(model): {key: str(of[key]) for key in ("digest", "path")}
                for model, of in found["references"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidInputError(
                f"{os.fspath(path)} is not a history of retrainings ({error}). Name another file, or restore this one"
            ) from error
        return cls(looks, references)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Replace the file in one step."""
        with atomic_write(path) as stream:
            json.dump({"looks": self.looks, "references": self.references}, stream, indent=0)
            stream.write("\n")

    def look(self, digests: np.ndarray) -> int:
        """Return the number, from 1, of the next comparison on these queries: that of the most used query plus one."""
        return 1 + max((self.looks.get(f"{digest:016x}", 0) for digest in digests.tolist()), default=0)

    def count(self, digests: np.ndarray) -> None:
        """Count one comparison for each of these queries."""
        for name in {f"{digest:016x}" for digest in digests.tolist()}:
            self.looks[name] = self.looks.get(name, 0) + 1


def level_of(look: int, level: float) -> float:
    """Return the level of the k-th test on the same queries: `level` for the first, then level / (k (k - 1)).

    The two-sided levels of all looks add up to at most 2 · level. A truly worse model is therefore promoted in at most
    a share `level` of all histories on these queries, for any number of looks.

    >>> [level_of(k, 0.06) for k in (1, 2, 3)]
    [0.06, 0.03, 0.01]
    """
    return level if look == 1 else level / (look * (look - 1))


def digest_of(path: str | os.PathLike[str]) -> str:
    """Return the digest of a model file's bytes."""
    return digest(Path(path).read_bytes())


def digest(content: bytes) -> str:
    """Return the digest of the bytes of a model file."""
    return blake2b(content, digest_size=16).hexdigest()
