"""`truerank split`: divide a file by query into training, validation and test files.

Divide a file by query: all rows of a query go to the same file. The command writes train, test and, with --validation,
validation files in the format of DATA. The division depends on the queries and the seed alone, so a table, its qrels
and its runs are divided in the same way.
"""

from __future__ import annotations

import re
import shlex
import warnings
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import truerank
from truerank.cli import common, options
from truerank.cli.describe import as_words, given_reading, read_as_found, with_ignored
from truerank.cli.parser import OutputFolder, argument, option
from truerank.core.errors import DataFileError, TruerankError

if TYPE_CHECKING:
    import numpy as np

_QID = re.compile(rb"^\s*\S+\s+qid:(\S+)")


class Arguments(options.Categorical, options.Grades, options.Seed, options.Replace, options.Json):
    data: str = argument("a table, LETOR text, TREC qrels or a TREC run (text also as .gz, .xz, .zst)", "DATA")
    test: float = option("share of the queries", "SHARE", default=0.2)
    validation: float = option("share of the queries (default: 0, no file)", "SHARE", default=0.0)
    output: OutputFolder = option("output folder", "DIR", default=".")


def run(args: Arguments) -> int:
    """Write the files, and print a table of their contents to stdout."""
    import numpy as np

    from truerank.data.grouping import group_rows, id_text
    from truerank.io.letor.store import query_names
    from truerank.io.streams import open_outputs
    from truerank.io.topics import carry_topics

    if args.data == "-":
        raise common.UsageError("split names files after DATA, so - (standard input) has no name. Give a file")
    for name, share in (("--test", args.test), ("--validation", args.validation)):
        if not 0.0 <= share < 1.0:
            raise common.UsageError(f"{name} must be a share from 0 to below 1, got {share:g}")
    if args.test + args.validation >= 1.0 or args.test + args.validation == 0.0:
        raise common.UsageError(
            f"--test and --validation must have a sum above 0 and below 1, got {args.test:g} and {args.validation:g}"
        )
    kind = common.table_kind(args.data)
    if kind is None:
        common.refuse_idle(args, [*common.OF_TABLES, "categorical"], "is for tables, and DATA is text")
    source: Any = _Table(args.data, kind, args.query_column) if kind else _Lines(args.data)
    grouping = group_rows(source.queries, len(source.queries))
    # Tables, qrels and runs are divided in the same way, also where a table has numbers, and a text their digits.
    names = query_names([id_text(name).encode("utf-8") for name in grouping.query_ids.tolist()])
    parts = _parts(names, args.test, args.validation, args.seed)
    query = grouping.restore(grouping.query_index)
    ending = "".join(Path(args.data).suffixes[-2:]) if source.compressed else Path(args.data).suffix
    written = {name: f"{name}{ending}" for name in parts}
    folder = common.made_folder(args, args.output, written.values())
    report = {}
    with open_outputs([str(folder / name) for name in written.values()]) as streams:
        for (name, queries), stream in zip(parts.items(), streams):
            rows = np.flatnonzero(np.isin(query, queries))
            source.write(rows, stream)
            report[name] = {"file": str(folder / written[name]), "queries": len(queries), "rows": len(rows)}
    carry_topics(args.data, folder)
    text = common.table([list(part.values()) for part in report.values()], ["file", "queries", "rows"])
    text += f"\n\nnext: {source.next_command(args, str(folder / written['train']))}"
    return common.show(args, report, text)


def _parts(query_ids: np.ndarray, test: float, validation: float, seed: int) -> dict[str, np.ndarray]:
    """Return the numbers of the queries by part; a part with a share above 0 has at least one query."""
    import numpy as np

    from truerank.core.random_streams import stream
    from truerank.data.grouping import name_order

    n = len(query_ids)
    sizes = {"validation": validation, "test": test}
    counts = {name: max(1, round(share * n)) for name, share in sizes.items() if share}
    if sum(counts.values()) >= n:
        raise common.InvalidInputError(
            f"{common.counted(n, 'query')} cannot be divided into {len(counts) + 1} files. Use smaller shares"
        )
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
        from truerank.data.grouping import as_ids
        from truerank.io.delimited import read_records
        from truerank.io.table_problems import ColumnsError, lacking, likely
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
            raise DataFileError(ColumnsError([lacking("query", name, names)]), path)
        self.queries = as_ids(as_array(self.table.column(names.index(name)), name), f"column {name!r}")
        if None in (ids := self.queries.tolist()):
            raise DataFileError(f"column {name!r} has no query id in row {ids.index(None) + 1}. Add a query id", path)
        is_text = kind in ("csv", "tsv")
        self.records = read_records(path, kind, len(self.queries)) if is_text else None

    def write(self, rows: np.ndarray, stream: IO[bytes]) -> None:
        """Write these rows as a table: records of CSV and TSV unchanged, rows of other files with all columns."""
        from truerank.io.tables import write_arrow

        if self.records is not None:
            stream.writelines([self.records[0], *(self.records[row + 1] for row in rows.tolist())])
            return
        try:
            taken = self.table.take(rows)
        except NotImplementedError:  # Arrow does not take rows of some types, such as views of texts
            from numpy import diff, flatnonzero, split
            from pyarrow import concat_tables

            runs = split(rows, flatnonzero(diff(rows) > 1) + 1)
            taken = concat_tables([self.table.slice(run[0], len(run)) for run in runs])
        write_arrow(taken, self.kind, stream)

    def next_command(self, args: Arguments, train: str) -> str:
        """Return the command that trains with the required options, or `describe` if the options are unknown."""
        from truerank.experiments.policy import about_data

        given = given_reading(args)
        described = f"truerank describe {shlex.join([train, *as_words(given)])}"
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "(?!changes figures)")
                data, found = read_as_found(args.data, args)
        except TruerankError:
            return described
        remarks = about_data(data, trains=True)
        common.remark(options.Options(wording=args.wording), args.data, remarks)
        words = as_words(with_ignored(given | found, remarks))
        command = f"truerank train {shlex.join([train, *words])} --model model.json --set leaves=constant"
        return command if data.n_features else f"{described}\n\n{common.without_features(train)}"


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
                    "expected LETOR text with qid:, qrels of 4 words or a run of 6 words in a line. For other "
                    f"judgements make a table first: truerank convert {shlex.quote(path)} ratings.csv", path, number,
                )  # fmt: skip
            queries.append(found.group(1) if found else words[0])
            self.lines.append(line if line.endswith(b"\n") else line + b"\n")
        if not queries:
            raise DataFileError("the file holds no rows", path)
        self.queries = [query.decode("utf-8", "backslashreplace") for query in queries]
        self.words = 0 if found else len(words)

    def write(self, rows: np.ndarray, stream: IO[bytes]) -> None:
        """Write these lines."""
        stream.writelines(self.lines[row] for row in rows.tolist())

    def next_command(self, args: Arguments, train: str) -> str:
        """Return the command that reads rows, qrels or a run."""
        from truerank.experiments.policy import about_data, about_qrels, about_runs

        with suppress(TruerankError):  # of a file that is divided, and that the next command will not read
            if self.words == 0:
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", "(?!changes figures)")
                    found = about_data(truerank.read_letor(args.data, missing="nan"), trains=True)
            elif self.words == 4:
                found = about_qrels(truerank.read_qrels(args.data))
            else:
                found = about_runs({args.data: truerank.read_run(args.data).contradicts_ranks})
            common.remark(options.Options(wording=args.wording), args.data, found)
        name = shlex.quote(train)
        commands = {4: f"truerank evaluate --qrels {name} RUN", 6: f"truerank evaluate --qrels QRELS {name}"}
        return commands.get(self.words, f"truerank train {name} --model model.json --set leaves=constant")
