"""The manifest of a run: what its figures depend on."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from reproductions.collections import SOURCES
from truerank.core.files import atomic_write
from truerank.core.printing import plain

LIBRARIES = ("truerank", "numpy", "scipy", "scikit-learn", "numba")


def conventions_of(result: Any, place: str = "") -> dict[str, str]:
    """Every value of the key `convention` in a result, by its place."""
    found: dict[str, str] = {}
    for key, value in result.items() if isinstance(result, dict) else ():
        if key == "convention":
            found[place or "all"] = value
        else:
            found |= conventions_of(value, f"{place}, {key}" if place else str(key))
    return found


def write_manifest(
    path: Path, settings: dict[str, dict[str, Any]], conventions: dict[str, dict[str, str]]
) -> dict[str, Any]:
    """Write and return what the figures depend on: data hashes, versions, settings and conventions by experiment.

    The hashes (SHA-256) are of the files of the collections below `data`.
    """
    manifest = {
        "data": dict(_digests(settings.values())),
        "versions": {name: _version(name) for name in LIBRARIES} | {"python": platform.python_version()},
        "machine": platform.machine(),
        "settings": settings,
        "conventions": conventions,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path, "w") as file:
        file.write(json.dumps(plain(manifest), indent=1, ensure_ascii=False) + "\n")
    return manifest


def _digests(settings: Iterable[dict[str, Any]]) -> Iterable[tuple[str, str]]:
    """Names and hashes of the files that experiments with these settings read."""
    places = {Path(one["data"], folder) for one in settings if one.get("data") for folder in SOURCES}
    for place in sorted(places):
        for file in sorted(place.rglob("*")):
            if file.is_file():
                with open(file, "rb") as content:
                    digest = hashlib.file_digest(content, "sha256").hexdigest()
                yield file.relative_to(place.parent).as_posix(), digest


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
