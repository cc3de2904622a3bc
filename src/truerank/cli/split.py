"""`truerank split`: divide a file by query into training, validation and test files.

Divide a file by query: all rows of a query go to the same file. Writes train, test and, with --validation, validation
files in the format of DATA. The division depends only on the queries and the seed, so that a table, its qrels and its
runs are divided in the same way.
"""

from __future__ import annotations

import argparse
import re
import shlex
import warnings
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from truerank.cli import common, options
from truerank.cli.describe import read_as_found
from truerank.core.errors import DataFileError, TruerankError

if TYPE_CHECKING:
    import numpy as np

_QID = re.compile(rb"^\s*\S+\s+qid:(\S+)")


def configure(parser: argparse.ArgumentParser) -> None:
    add = options.adder(parser)
    add("data DATA", "a table, LETOR text, TREC qrels or a TREC run (text also as .gz, .xz, .zst)")
    add("--test SHARE", "share of the queries", default=0.2)
    add("--validation SHARE", "share of the queries (default: 0, no file)", default=0.0)
    add("-o --output DIR", "output folder", type=options.OutputFolder, default=".")
    add("--query-column NAME", "column of the query in a table (default: qid)")
    options.share(parser, "seed", "replace", "json")


def run(args: argparse.Namespace) -> int:
    """Write the files; a table of what they hold goes to stdout."""
    import numpy as np

    from truerank.data.grouping import group_rows
    from truerank.io.streams import open_outputs

    if args.data == "-":
        raise common.UsageError("split names its files after DATA: give a file instead of standard input (-)")
    for option, share in (("--test", args.test), ("--validation", args.validation)):
        if not 0.0 <= share < 1.0:
            raise common.UsageError(f"{option} must be a share from 0 to below 1, got {share:g}")
    if args.test + args.validation >= 1.0 or args.test + args.validation == 0.0:
        raise common.UsageError(
            f"--test and --validation must have a sum above 0 and below 1, got {args.test:g} and {args.validation:g}"
        )
    kind = common.table_kind(args.data)
    if kind is None:
        common.refuse_idle(args, ["query_column"], "is for tables, and DATA is text")
    source: Any = _Table(args.data, kind, args.query_column) if kind else _Lines(args.data)
    grouping = group_rows(source.queries, len(source.queries))
    parts = _parts(grouping.query_ids, args.test, args.validation, args.seed)
    query = grouping.restore(grouping.query_index)
    ending = "".join(Path(args.data).suffixes[-2:]) if source.compressed else Path(args.data).suffix
    written = {name: f"{name}{ending}" for name in parts}
    folder = common.made_folder(args, args.output, written.values())
    if any((folder / name).exists() and (folder / name).samefile(args.data) for name in written.values()):
        raise common.UsageError(f"{args.data} would be overwritten; choose another folder with -o")
    report = {}
    with open_outputs([str(folder / name) for name in written.values()]) as streams:
        for (name, queries), stream in zip(parts.items(), streams):
            rows = np.flatnonzero(np.isin(query, queries))
            source.write(rows, stream)
            report[name] = {"file": str(folder / written[name]), "queries": len(queries), "rows": len(rows)}
    text = common.table([list(part.values()) for part in report.values()], ["file", "queries", "rows"])
    if kind:
        text += _next_command(args, str(folder / written["train"]))
    return common.show(args, report, text)


def _next_command(args: argparse.Namespace, train: str) -> str:
    """The command that trains on a table, with the options that its columns need; "" if they cannot be found."""
    parser = argparse.ArgumentParser()
    options.add_data_options(parser, categorical=True)
    own = parser.parse_args([] if args.query_column is None else ["--query-column", args.query_column])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            words = read_as_found(args.data, own)[1]
    except TruerankError:
        return ""
    if args.query_column is not None:
        words = ["--query-column", args.query_column, *words]
    return f"\n\nnext: truerank train {shlex.join([train, *words])} --model model.json"


def _parts(query_ids: np.ndarray, test: float, validation: float, seed: int) -> dict[str, np.ndarray]:
    """Numbers of the queries by part; each part that has a share has a query."""
    import numpy as np

    from truerank.core.random_streams import stream
    from truerank.data.grouping import name_order

    n = len(query_ids)
    sizes = {"validation": validation, "test": test}
    counts = {name: max(1, round(share * n)) for name, share in sizes.items() if share}
    if sum(counts.values()) >= n:
        raise common.InvalidInputError(f"{n} queries cannot be divided into {len(counts) + 1} files")
    drawn = name_order(query_ids)[stream(seed, "split").permutation(n)]
    parts, start = {}, 0
    for name in ("test", "validation"):
        if name in counts:
            parts[name] = np.sort(drawn[start : start + counts[name]])
            start += counts[name]
    return {"train": np.sort(drawn[start:])} | dict(sorted(parts.items(), reverse=True))


class _Table:
    """The rows of a table file, all columns as they are."""

    def __init__(self, path: str, kind: str, query: str | None) -> None:
        from truerank.core.checks import as_array
        from truerank.io.table_problems import lacking, likely, message
        from truerank.io.tables import read_file

        name = query or "qid"
        self.kind, self.compressed = kind, Path(path).suffix.lower() in (".gz", ".xz", ".zst")
        self.table = read_file(path, kind, [name])
        names = list(map(str, self.table.column_names))
        found = None if query is not None or name in names else likely("query", names)
        if found is not None:
            common.note(f"truerank split: the queries are those of column {found!r} (--query-column names another)")
            name = found
        if name not in names:
            raise DataFileError(message([lacking("query", name, names)], ["--query-column"]), path)
        self.queries = as_array(self.table.column(names.index(name)), name)
        if any(one is None for one in self.queries.tolist()):
            raise DataFileError(f"column {name!r} has rows without a query id. Every row needs one", path)

    def write(self, rows: np.ndarray, stream: IO[bytes]) -> None:
        """Write a table of these rows."""
        from truerank.io.tables import write_arrow

        write_arrow(self.table.take(rows), self.kind, stream)


class _Lines:
    """The lines of a text file, grouped by qid (LETOR text) or by the first word (qrels and runs)."""

    def __init__(self, path: str) -> None:
        from truerank.io.streams import Source

        self.compressed = Path(path).suffix.lower() in (".gz", ".xz", ".zst")
        with Source(path) as stream:
            text = b"".join(stream.line_blocks())
        self.lines: list[bytes] = []
        queries = []
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            if not line.strip() or line.lstrip().startswith(b"#"):
                continue
            found = _QID.match(line)
            words = line.split()
            if found is None and len(words) not in (4, 6):
                raise DataFileError(
                    "expected LETOR text with qid:, qrels of 4 words or a run of 6 words in a line", path, number
                )
            queries.append(found.group(1) if found else words[0])
            self.lines.append(line if line.endswith(b"\n") else line + b"\n")
        if not queries:
            raise DataFileError("the file holds no rows", path)
        names = [query.decode("utf-8", "surrogateescape") for query in queries]
        self.queries = [int(name) for name in names] if all(map(str.isdecimal, names)) else names

    def write(self, rows: np.ndarray, stream: IO[bytes]) -> None:
        """Write these lines."""
        stream.writelines(self.lines[row] for row in rows.tolist())
