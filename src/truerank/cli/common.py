"""What sub-commands share: reading data files, options, output, progress. Heavy imports happen inside functions."""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from truerank.core.errors import InvalidInputError, TruerankError

if TYPE_CHECKING:
    from truerank.data.ranking_data import RankingData

CONVENTIONS = ("trec", "letor3", "letor4", "mslr", "ranklib", "lightgbm", "xgboost", "catboost", "sklearn", "ranx")


class UsageError(TruerankError):
    """The command was misused: exit code 2."""


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Options on how a data file is read."""
    group = parser.add_argument_group("reading data")
    group.add_argument(
        "--missing",
        choices=("error", "nan"),
        default="error",
        help="what NULL and nan in the data mean: an error (default) or a missing value",
    )
    group.add_argument("--query-column", metavar="NAME", help="column of the query in a table (default: qid)")
    group.add_argument("--grade-column", metavar="NAME", help="column of the grade in a table (default: y)")
    group.add_argument("--document-column", metavar="NAME", help="column of the document id in a table")


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """`--json`: one JSON object on stdout instead of a table."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_convention_option(parser: argparse.ArgumentParser, default: str = "ranklib") -> None:
    """`--convention`: how measures settle gain, discount, ties and empty queries."""
    parser.add_argument(
        "--convention",
        choices=CONVENTIONS,
        default=default,
        help=f"what a measure's name leaves open: gain, discount, ties, empty queries (default: {default})",
    )


def read_data(path: str, args: argparse.Namespace | None = None) -> RankingData:
    """A LETOR file (`.gz`, `.xz`, `.zst`; `-` is stdin), or a table by its ending (.csv .parquet .arrow .feather)."""
    missing = getattr(args, "missing", "error")
    stem = path.lower()
    if stem.endswith((".csv", ".parquet", ".pq", ".arrow", ".feather", ".tsv")):
        from truerank.data.tables import read_table

        named = {
            "query": getattr(args, "query_column", None),
            "grade": getattr(args, "grade_column", None),
            "document": getattr(args, "document_column", None),
        }
        return read_table(path, missing=missing, **{key: value for key, value in named.items() if value is not None})
    from truerank.data.letor import read_letor

    return read_letor(path, missing=missing)


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """`key=value` strings; values are read as JSON, else taken as strings."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"--set takes key=value, got {pair!r}")
        key = key.strip().replace("-", "_")
        if key in settings:
            raise UsageError(f"--set {key} was given twice")
        try:
            settings[key] = json.loads(text)
        except json.JSONDecodeError:
            settings[key] = text
    return settings


def add_ranker_options(parser: argparse.ArgumentParser) -> None:
    """`--ranker NAME --set key=value … --seed N`, as `make_ranker` reads them."""
    parser.add_argument("--ranker", required=True, metavar="NAME", help="see `truerank rankers`")
    parser.add_argument(
        "--set",
        action="extend",
        nargs="+",
        default=[],
        metavar="key=value",
        help="parameters of the ranker; values are read as JSON, else taken as strings",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="seed of everything that is drawn (default: 0)")


def make_ranker(name: str, settings: dict[str, Any], seed: int | None = None) -> Any:
    """A ranker by its command line name; unknown names and parameters are misuse."""
    from truerank.registry import RANKERS, ranker_class

    if name not in RANKERS:
        raise UsageError(f"unknown ranker {name!r}; known are: {', '.join(RANKERS)}")
    cls = ranker_class(name)
    known = cls().get_params(deep=False)  # type: ignore[attr-defined]
    unknown = [key for key in settings if key not in known]
    if unknown:
        raise UsageError(f"{name} has no parameter {unknown[0]!r}; it has: {', '.join(known)}")
    if seed is not None and "random_state" in known:
        settings = {"random_state": seed} | settings
    return cls(**settings)


@contextmanager
def output(path: str | None) -> Iterator[IO[str]]:
    """A text stream to `path`, written atomically; None or `-` is stdout."""
    if path is None or path == "-":
        yield sys.stdout
        return
    from truerank.core.files import atomic_write

    with atomic_write(path) as stream:
        yield stream


def check_writable(path: str | None) -> None:
    """Fail before the work when the output could not be written after it."""
    if path is None or path == "-":
        return
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise InvalidInputError(f"{path}: the folder {folder} does not exist; make it first")
    if os.path.isdir(path):
        raise InvalidInputError(f"{path}: is a folder; name a file")
    if not os.access(folder, os.W_OK):
        raise InvalidInputError(f"{path}: the folder {folder} is not writable")


def note(message: str) -> None:
    """A message for the person, on stderr."""
    print(message, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """One JSON object on stdout; NumPy numbers become plain ones, nan and infinities null."""
    json.dump(plain(value), sys.stdout, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def plain(value: Any) -> Any:
    """`value` in JSON's own types."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and value - value != 0:
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def table(rows: list[list[Any]], header: list[str]) -> str:
    """A text table: columns aligned, numbers to the right, floats with four digits."""
    cells = [[f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [header, *cells]) for i in range(len(header))]
    right = [all(not isinstance(row[i], str) for row in rows) for i in range(len(header))]

    def line(texts: list[str]) -> str:
        return "  ".join(t.rjust(w) if r else t.ljust(w) for t, w, r in zip(texts, widths, right)).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *map(line, cells)])


def progress(iterable: Iterable[Any], description: str, total: int | None = None) -> Iterable[Any]:
    """`iterable` with a progress bar on stderr after two seconds; none where stderr is no terminal."""
    if not sys.stderr.isatty():
        return iterable
    from tqdm import tqdm

    return tqdm(iterable, desc=description, total=total, delay=2, leave=False, file=sys.stderr)


@contextmanager
def warnings_to_stderr() -> Iterator[None]:
    """Warnings as one line each on stderr, without the place in the source."""

    def show(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        print(f"truerank: warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.showwarning = show
        yield
