"""`truerank reproduce`: run a recorded comparison, evaluation or cross-validation again, and compare its figures.

The option `--record FILE` of these commands writes the command, versions, SHA-256 of the read files, and all figures.
Run `truerank reproduce` in the folder of the recorded command.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import platform
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any

from truerank.cli import common, options
from truerank.cli.parser import argument
from truerank.core.errors import DataFileError
from truerank.core.files import read_text

FAILURE = 2
_RECORD = "record"  # the option of those commands
_FORBIDDEN = f"{_RECORD} history cluster"  # options that write, or connect to other machines
_RECORDED = {"compare": _FORBIDDEN, "evaluate": _FORBIDDEN, "cross-validate": f"{_FORBIDDEN} scores state"}
_SCHEMA = "reproduce/1"
_UNLIKE = {"version", "schema"}  # entries of results that may differ
_CLOSE = 1e-9


class Arguments(options.Json):
    record: str = argument("file that compare, evaluate or cross-validate recorded", "FILE")


def record(args: options.Record, figures: dict[str, Any]) -> None:
    """Write the command that runs and its figures to the file `args.record`, if given."""
    if args.record is None:
        return
    words, kept = iter(args.argv), []
    for word in words:
        if word == f"--{_RECORD}":
            next(words)
        elif not word.startswith(f"--{_RECORD}="):
            kept.append(word)
    read = [path for path in args.read if os.path.isfile(path)]
    found = {
        "schema": _SCHEMA,
        "command": kept,
        "versions": _versions(),
        "files": {path: _digest(path) for path in read},
    }
    with common.output(args.record) as stream:
        json.dump(common.plain(found | {"figures": figures}), stream, ensure_ascii=False, indent=1)
        stream.write("\n")


def run(args: Arguments) -> int:
    """Compare files, run the command, and compare figures; return 1 if a file or a figure differs."""
    from truerank.cli import main

    try:
        told = json.loads(read_text(args.record))
    except ValueError as error:
        raise DataFileError(
            f"not JSON ({error}). Name a file that --{_RECORD} wrote", args.record, code="record"
        ) from error
    kept: dict[str, Any] = dict.fromkeys(("command", "files", "versions", "figures"))
    kept |= told if isinstance(told, dict) else {}
    words = [str(word) for word in kept["command"] or ()] if kept.get("schema") == _SCHEMA else []
    if None in kept.values() or not words or _forbidden(words):
        raise DataFileError(
            f"the file is not a record of {', '.join(_RECORDED)}. Write one with their option --{_RECORD} FILE",
            args.record,
            code="record",
        )
    changed = [path for path, digest in kept["files"].items() if not os.path.isfile(path) or _digest(path) != digest]
    versions = {name: [own, now] for name, now in _versions().items() if (own := kept["versions"].get(name)) != now}
    differ: list[list[Any]] = []
    if not changed:
        printed = io.StringIO()
        with redirect_stdout(printed):
            code = main([*words, *([] if "--json" in words else ["--json"])])
        if code:
            raise common.UsageError(f"the recorded command ended with exit code {code}. Correct the error above")
        before, after = dict(_leaves(kept["figures"])), dict(_leaves(json.loads(printed.getvalue())))
        differ = [[name, before.get(name), after.get(name)] for name in sorted({*before, *after})
                  if not _equal(before.get(name), after.get(name))]  # fmt: skip
    same = not changed and not differ
    report = {"reproduced": same, "changed_files": changed, "versions": versions, "differences": differ}
    lines = [f"{'reproduced' if same else 'NOT reproduced'}: truerank {shlex.join(words)}"]
    lines += [f"{path} is missing or has changed" for path in changed]
    lines += [f"{name} {now} here, {own} in the record" for name, (own, now) in versions.items()]
    lines += [common.table(differ[:20], ["figure", "record", "here"])] if differ else []
    lines += [f"{len(differ) - 20} more figures differ"] if len(differ) > 20 else []
    common.show(args, report, "\n".join(lines))
    return 0 if same else 1


def _forbidden(words: list[str]) -> bool:
    """Return whether a command cannot come from `--record`, because of its name or of options that write."""
    forbidden = tuple(f"--{name}" for name in _RECORDED.get(words[0], "").split())
    return not forbidden or any(word.startswith(forbidden) for word in words)


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    from truerank import __version__

    found = {"truerank": __version__, "python": platform.python_version()}
    return found | {name: version(name) for name in ("numpy", "numba")}


def _digest(path: str) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of each number, text or null."""
    if isinstance(value, dict | list):
        for key, own in value.items() if isinstance(value, dict) else enumerate(value):
            if key not in _UNLIKE:
                yield from _leaves(own, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, float | int) and isinstance(b, float | int):
        return math.isclose(a, b, rel_tol=_CLOSE, abs_tol=_CLOSE)
    return bool(a == b)
