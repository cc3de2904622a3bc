"""Functions that commands share, for reading data files, options, output and progress."""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from errno import EISDIR
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import truerank
from truerank.cli import options
from truerank.cli.parser import UsageError as UsageError
from truerank.cli.parser import is_given
from truerank.core.errors import DataFileError as DataFileError
from truerank.core.errors import InvalidInputError as InvalidInputError
from truerank.core.errors import ModelFileError, Wording
from truerank.core.files import read_text
from truerank.core.names import repeated, resolve
from truerank.core.printing import counted as counted
from truerank.core.printing import note as note
from truerank.core.printing import plain as plain
from truerank.core.printing import print_json
from truerank.core.printing import printable as printable
from truerank.core.printing import progress as progress
from truerank.core.printing import table as table
from truerank.core.results import headed

if TYPE_CHECKING:
    import numpy as np

    from truerank.data.ranking_data import RankingData
    from truerank.data.remarks import Remark
    from truerank.io.rows import RowsAt
    from truerank.io.trec import Qrels


def set_categorical(ranker: Any, data: RankingData, args: options.Learning) -> None:
    """Set the columns of `--categorical` as parameter of the ranker; a ranker without categories is misuse."""
    from truerank.data.columns import chosen_columns, names_of

    if "categorical" not in ranker.get_params(deep=False):
        what = f"{args.ranker} cannot use categories" if not args.prepare else "--prepare replaces the columns"
        raise UsageError(f"--categorical has no effect: {what}. Use --ranker oblivious-boosting without --prepare")
    columns = chosen_columns(names_of(data), args.categorical or [])
    ranker.set_params(categorical=[data.feature_names[k] for k in columns] if data.feature_names else columns)


def with_position(data: RankingData, column: str, rankers: Sequence[Any]) -> RankingData:
    """Return the data with the column of `--position` as positions; an error unless a ranker reads positions."""
    from truerank.data.columns import chosen_columns, names_of, take_columns

    columns = chosen_columns(names_of(data), [column])
    if len(columns) != 1:
        raise UsageError(f"--position requires one column, but {column!r} names {len(columns)}. Name one column")
    learners = [getattr(ranker, "ranker", ranker) for ranker in rankers]
    if not all(hasattr(learner, "objective_params") for learner in learners):
        raise UsageError("--position has no effect: only oblivious-boosting reads positions. Leave --position out")
    if not any(learner.objective == "unbiased-lambdarank" for learner in learners):
        raise InvalidInputError(
            'position requires objective="unbiased-lambdarank". Set this objective, or leave position out'
        )
    values = data.X[:, columns]
    position = data.restore((values.toarray() if hasattr(values, "toarray") else values)[:, 0])
    data = take_columns(data, [k for k in range(data.n_features) if k not in columns])
    return data.with_position(position)


@contextmanager
def cluster_of(address: str | None) -> Iterator[Any]:
    """Yield a client for `--cluster`, or None, and close the client; print the address of its dashboard."""
    if address is None:
        yield None
        return
    from truerank.cluster import connect

    client = connect(address)
    try:
        n_workers = len(client.scheduler_info(n_workers=-1)["workers"])
        link = None if client.cluster is not None else client.dashboard_link
        note(f"truerank: {n_workers} workers" + (f"; dashboard {link}" if link else ""))
        yield client
    finally:
        cluster = client.cluster
        client.close()
        if cluster is not None:
            cluster.close()


def holds_judgements(args: options.Reading, path: str, *, features: bool = False) -> bool:
    """Return whether a file holds judgements, read with the columns that options name; features are allowed or not."""
    if path == "-" or any((args.features, args.exclude, args.categorical, args.position)):
        return False
    return resolve("truerank.io.judgements.registry:holds_judgements")(path, features, **_named(args))


def _named(args: options.JudgementOptions) -> dict[str, str | None]:
    return {"query": args.query_column, "grade": args.grade_column, "document": args.document_column}


DATA_FILES = ("train", "valid", "data", "judged", "held_out", "certify", "distil")
"""Arguments that name files to which the options of reading apply."""


def table_kind(path: str | None) -> str | None:
    """Return "csv", "tsv", "parquet" or "arrow" by the ending of a file; None for text, a folder and no file."""
    from truerank.io.tables import table_kind

    return None if path is None or os.path.isdir(path) else table_kind(path)


_OF_LETOR = ("n_features", "sparse", "max_line")
OF_TABLES = ("query_column", "grade_column", "document_column")


def _check_kind(args: options.Reading, path: str, table: bool | None) -> None:
    """Refuse options for reading the other kind of files, unless a file of that kind is named."""
    if not any(is_given(getattr(args, name)) for name in (*_OF_LETOR, *OF_TABLES)):
        return
    table = bool(table_kind(path)) if table is None else table
    kinds = {table}
    for key in DATA_FILES:
        named = vars(args).get(key) or []
        for file in [named] if isinstance(named, str) else named:
            if file != "-":
                kinds.add(bool(table_kind(file)))
    if len(kinds) == 2:
        return
    idle, what = (_OF_LETOR, "LETOR text"), "a table"
    if not table:
        if any(_named(args).values()) and holds_judgements(args, path):
            return
        idle, what = (OF_TABLES, "tables"), "JSON" if ".json" in path else "LETOR text"
    refuse_idle(args, idle[0], f"is for {idle[1]}, and {path} is {what}")


def read_partitions(pattern: str, args: options.Reading, client: Any, *likes: Any, graded: bool = False) -> Any:
    """Return the files of a pattern, one partition each, with the columns that models or training data know by name."""
    from truerank.cluster import read_letor, read_parquet
    from truerank.cluster.partition import expand

    tables = {bool(table_kind(path)) for path in expand(pattern)}
    if len(tables) > 1:
        raise UsageError(f"{pattern} matches both tables and LETOR text. Give a pattern of one kind of files")
    place = place_of(pattern, args, table=tables == {True})
    known, held = place.known(*likes), {"client": client, "hold": not args.out_of_core}
    if tables == {True}:
        return read_parquet(pattern, graded=graded, **held, **place.table_options(known))
    return read_letor(pattern, columns=place.columns(known), **held, **place.text_options(known))


def remember_reading(model: Any, args: options.Reading, like: Any = None) -> None:
    """Store in the model how its data were read, so that later commands do not need these options."""
    from truerank.data.columns import reading_of

    kept = reading_of(like)
    options = _named(args) | {"missing": args.missing, "grades": " ".join(args.grades or ())}
    kept |= {name: value for name, value in options.items() if value}
    if kept:
        model.reading_ = kept


def place_of(path: str, args: options.Reading, *, table: bool | None = None, **own: Any) -> RowsAt:
    """Return the location of rows in a file or folder, with the reading options of the command; `own` are other fields
    of `RowsAt`.

    A folder of published folds is refused by commands that would train on its test queries.
    """
    from truerank.io.rows import RowsAt

    if args.ONE_FILE and os.path.isdir(path):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), path)
    _check_kind(args, path, table)
    settings = {
        "query": args.query_column, "grade": args.grade_column, "document": args.document_column,
        "features": args.features, "exclude": args.exclude, "categories": args.categorical,
        "missing": args.missing, "unless_known": "error", "grades": " ".join(args.grades or ()) or None,
        "sparse": args.sparse, "n_features": args.n_features, "max_line": args.max_line,
        "also": (args.position,) if args.position else (), "ratings": partial(read_ratings, args), "of_caller": True,
    }  # fmt: skip
    return RowsAt(path, **(settings | own))


def read_data(path: str, args: options.Reading, *likes: Any, graded: bool = False, **own: Any) -> RankingData:
    """Read rows according to the options, with the columns that models or training data know by name."""
    place = place_of(path, args, **own)
    return place.read(place.known(*likes), graded=graded)


def read_graded(path: str, args: options.Reading, *likes: Any, client: Any = None, **own: Any) -> Any:
    """Like `read_data`, for data with grades, with remarks on them. With a client, `read_partitions`."""
    from truerank.experiments.policy import about_data

    data: Any = None
    if client is None:
        data = read_data(path, args, *likes, graded=True, **own)
    else:
        data = read_partitions(path, args, client, *likes, graded=True)
    trains = isinstance(args, options.Learner)
    if trains and not data.n_features:
        raise InvalidInputError(
            f"{path}: there are no features to learn from; {without_features(path, '; ').replace(':;', ':', 1)}"
        )
    remark(args, path, about_data(data, args.convention, trains=trains))
    return data


def tell_remarks(args: options.Options, remarks: Iterable[Remark]) -> None:
    """Print each kind of remark once, with its source and in the terms of the command, before or after the result."""
    told = set[str]()
    for one in remarks:
        if one.code not in told:
            note(f"truerank: {one.source}: {one.worded(args.wording)}", late=not isinstance(args, options.Learner))
        told.add(one.code)


def remark(args: options.Options, where: str, remarks: Iterable[Remark]) -> None:
    """Print each kind of remark once in a command, and keep all of them for `--json`; `where` is a file."""
    kept = args.collected.setdefault("remarks", [])
    known = {other["code"] for other in kept}
    placed = [replace(one, source=where) for one in remarks]
    tell_remarks(args, (one for one in placed if one.code not in known))
    for one in placed:
        if (found := one.to_dict()) not in kept:
            kept.append(found)


def worded(text: Any, wording: Wording) -> str:
    """Return a text, or a message with remedies in the terms of the command."""
    return text.worded(wording) if hasattr(text, "worded") else str(text)


def print_report(args: options.Options, report: Any) -> None:
    """Print the report as JSON, which begins with its kind and version and ends with all remarks on the input."""
    if "remarks" in args.collected:
        found = args.collected["remarks"]
        own = [one for one in report.get("remarks", ()) if one not in found]
        report = report | {"remarks": [*own, *found]}
    words = [args.command, *filter(None, [getattr(args, "action", None)])]
    print_json(headed("-".join(" ".join(words).split()), report))


def read_ratings(args: options.JudgementOptions, path: str, fold: bool = False) -> Any:
    """Read the judgements of a file with `--grades` and `--aggregate`; print how well several judges agree."""
    grades = " ".join(args.grades) if args.grades else None
    ratings = truerank.read_ratings(path, grades=grades, fold_queries=fold, **_named(args))
    if args.aggregate is None:
        return ratings
    one = ratings.aggregated(args.aggregate)
    if len(one.grades) < len(ratings.grades):
        note(f"truerank: {path}: {ratings.agreement()}. The {args.aggregate} of a document's grades is used")
    return one


def judgements_of(args: options.JudgementOptions, path: str | None = None) -> Any:
    """Return a file of judgements (default: `--qrels`), or its qrels if `--grades` or `--aggregate` is given."""
    path = args.qrels if path is None else path
    return read_ratings(args, path).qrels() if path and (args.grades or args.aggregate) else path


def qrels_of(args: options.JudgementOptions, path: str | None = None) -> Qrels:
    """Read the qrels of a file in any known format (default: `--qrels`), and print remarks on them."""
    from truerank.experiments.policy import about_qrels

    judgements = judgements_of(args, path)
    qrels: Qrels = truerank.read_judgements(judgements) if isinstance(judgements, str) else judgements
    remark(args, str(args.qrels if path is None else path), about_qrels(qrels, args.convention))
    return qrels


def without_features(path: str, between: str = "\n  ") -> str:
    """Return a text with the commands that compute features for judgements, or that reads those in the same file."""
    from truerank.io.judgements.tables import columns_of_features

    own = shlex.quote(path)
    if columns := columns_of_features(path):
        return f"read {few(columns)} as features: truerank convert {own} rows.parquet --join {own}"
    return between.join([
        "make features, and train on rows.parquet",
        "from a search engine: truerank features --engine URL --index NAME -o features.json, then what it prints",
        f"from texts: truerank text features --index INDEX --qrels {own} -o rows.parquet",
        f"from a table or a log of features: truerank convert {own} rows.parquet --join FILE",
    ])  # fmt: skip


def run_paths(arguments: Iterable[str]) -> list[str]:
    """Return the files, with each folder replaced by its files in the order of names, without hidden files."""
    from truerank.io.streams import files_of
    from truerank.io.topics import TOPICS

    paths: list[str] = []
    for argument in arguments:
        if os.path.isdir(argument):
            inside = [str(path) for path in files_of(argument) if path.name != TOPICS]  # which `read_run` applies
            if not inside:
                raise UsageError(f"{argument}: the folder contains no runs. Name a folder with TREC runs, or the runs")
            paths += inside
        else:
            paths.append(argument)
    return paths


def run_names(paths: list[str]) -> list[str]:
    """Return the names of files (`run_name`). Two runs with one name are misuse."""
    from truerank.io.trec import run_name

    names = list(map(run_name, paths))
    if twice := repeated(names):
        raise UsageError(
            f"two runs have the name {twice[0]!r}, which is their file name without the ending. Rename one of the files"
        )
    return names


def read_runs(args: options.Options, arguments: Iterable[str]) -> dict[str, Any]:
    """Read the TREC runs in files and folders by name, and print remarks on them."""
    from truerank.experiments.policy import about_runs

    paths = run_paths(arguments)
    runs = {name: truerank.read_run(path) for name, path in zip(run_names(paths), progress(paths, "runs"))}
    remark(args, "runs", about_runs({name: run.contradicts_ranks for name, run in runs.items()}))
    return runs


def load_as(kinds: type[Any] | tuple[type[Any], ...], path: str, advice: str, *, steps: bool = False) -> Any:
    """Load a model of these classes, or with `steps` also a pipeline that ends in one.

    In the error, `advice` follows the name of another class.
    """
    model = truerank.load_model(path)
    last = model.steps[-1][1] if steps and hasattr(model, "steps") else model
    if not isinstance(last, kinds):
        raise ModelFileError(f"{path}: holds a {type(last).__name__}, {advice}")
    return model


def load_ranker(path: str) -> Any:
    """Load a ranker, or a pipeline that ends in one."""
    advice = "which does not rank. Name a model of `truerank train`, or a calibrated ranker"
    return load_as(truerank.Ranker, path, advice, steps=True)


def statistics_text(path: str, statistics: Any) -> str:
    """Return the text for the file of `--statistics`; a file with other content is not replaced, and replaced
    statistics cause a note.
    """
    if os.path.exists(path):
        try:
            held = json.loads(read_text(path))
            is_ours = all(isinstance(number, float | int) for own in held.values() for number in own.values())
        except (DataFileError, ValueError, AttributeError):
            is_ours = False
        if not is_ours:
            raise InvalidInputError(f"{path} exists and holds no statistics of categories. Name another file")
        if held != statistics:
            note(f"truerank: {path} held the statistics of another model, and is replaced")
    return json.dumps(statistics, ensure_ascii=False, indent=1)


def over_statistics(model: Any, *data: Any) -> list[Any]:
    """Return the statistics of a model's categories, and the model and data that use them."""
    statistics = model.category_statistics() if hasattr(model, "category_statistics") else {}
    if not statistics:
        raise InvalidInputError(
            "--statistics is for boosted trees with categorical columns, but this model has no statistics of "
            "categories. Leave --statistics out"
        )
    if any("null" in own for own in statistics.values()):
        raise InvalidInputError(
            "a category has the name 'null', which stands for all unknown categories in the file of statistics. "
            "Rename this category, and train again"
        )
    encoded = [None if one is None else one.replaced(X=model.encoded(one.X), category_names=None) for one in data]
    return [statistics, model.over_statistics(), *encoded]


@contextmanager
def output(path: str | None) -> Iterator[IO[str]]:
    """Open a text stream to `path`, written atomically and compressed by its ending; None or `-` is stdout."""
    if path is None or path == "-":
        yield getattr(sys.stdout, "whole", sys.stdout)
        return
    from truerank.io.streams import open_output

    with open_output(path) as raw:
        stream = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", newline="\n")  # names of files
        yield stream
        stream.detach()  # what it wraps ends by itself


def size_of(data: RankingData) -> str:
    """Return the numbers of rows, queries and features in words."""
    return f"{counted(data.n_rows, 'row')}, {counted(data.n_queries, 'query')}, {counted(data.n_features, 'feature')}"


def write_scores(path: str | None, scores: np.ndarray) -> None:
    """Write scores (n,), one on each line, in a form that restores the exact bits."""
    with output(path) as stream:
        stream.writelines(f"{score!r}\n" for score in scores.tolist())


def few(names: Sequence[str]) -> str:
    """Return the first three names, with an ellipsis if there are more."""
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


def note_nothing_found(queries: Iterable[Any], found: Iterable[str]) -> None:
    """Print a note on queries (with an `id`) without a document."""
    there = set(map(str, found))
    without = [str(query.id) for query in queries if str(query.id) not in there]
    if without:
        note(f"truerank: no document was found for {counted(len(without), 'query')}: {few(without)}")


def made_folder(args: options.Replace, path: str, names: Iterable[str]) -> Path:
    """Make a folder; without `--replace`, refuse to overwrite its files `names`."""
    folder, names = Path(path), list(names)
    for name in names:
        args.outputs.add(folder / name)
    taken = [] if args.replace else [name for name in names if os.path.lexists(folder / name)]
    if taken:
        names = ", ".join(taken[:3]) + (f" and {len(taken) - 3} more" if len(taken) > 3 else "")
        raise InvalidInputError(
            f"{folder} already contains {names}. Choose another folder, or add --replace to overwrite "
            f"{'it' if len(taken) == 1 else 'them'}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_summary(folder: Path, summary: dict[str, Any], text: str) -> None:
    """Write `summary.json` and `summary.txt` into a folder."""
    with output(str(folder / "summary.json")) as stream:
        json.dump(plain(summary), stream, indent=1)
        stream.write("\n")
    with output(str(folder / "summary.txt")) as stream:
        stream.write(text)


def read_pairs(lines: Iterable[tuple[int, str]], form: str, path: str) -> dict[str, str]:
    """Return the second word of each numbered line by the first word; messages quote `form`, such as "id URL"."""
    pairs: dict[str, str] = {}
    for number, line in lines:
        words = [word.decode("utf-8") for word in line.encode("utf-8").split()]  # an id may contain other blanks
        if len(words) not in (0, 2):
            raise DataFileError(f"expected {form!r}, got {line.strip()[:60]!r}", path, number)
        if words and pairs.setdefault(words[0], words[1]) != words[1]:
            raise DataFileError(
                f"{words[0]!r} occurs twice, with {pairs[words[0]]!r} and {words[1]!r}. Remove a line", path, number
            )
    return pairs


def show(args: options.Json, report: Any, text: str, put: Callable[[str], None] = print) -> int:
    """Print the report with `--json`, else the text by `put`; returns 0."""
    if args.json:
        print_report(args, report)
    else:
        put(text)
    return 0


tell = partial(show, put=note)
"""Print like `show`, but the text to stderr."""


def show_lines(args: options.Json, target: str | None, report: dict[str, Any], lines: Iterable[str]) -> int:
    """Write the lines to the target; with `--json` print the report, and write lines only to a file. Returns 0."""
    if not args.json or target not in (None, "-"):
        with output(target) as stream:
            stream.writelines(lines)
    if args.json:
        print_report(args, report)
    return 0


def read_names(path: str | None) -> list[str] | None:
    """Read the names in a file, one on each line; return None without a file."""
    if path is None:
        return None
    return [line.strip() for line in read_text(path).split("\n") if line.strip()]


@contextmanager
def counted_looks(path: str | None) -> Iterator[Any]:
    """Yield the history of comparisons in a locked file, and write it after a block without an error."""
    if path is None:
        yield None
        return
    from truerank.core.locks import locked
    from truerank.significance.history import History

    with locked(path):
        history = History.read(path)
        if not os.path.exists(path):
            note(
                f"truerank: {path} does not exist, so that tests on these queries are counted from 1. If it was lost, "
                "restore it, because earlier tests count"
            )
        yield history
        history.write(path)


def check_one_stdin(paths: Sequence[str | None]) -> None:
    """Refuse standard input for more than one file."""
    if paths.count("-") > 1:
        raise UsageError("standard input (-) is named for two files, but can be read only once. Name the other file")


def refuse_idle(args: options.Options, names: Iterable[str], why: str) -> None:
    """Refuse options that have no effect here; `why` follows the name in the message."""
    for name in names:
        if is_given(getattr(args, name)):
            raise UsageError(f"--{name.replace('_', '-')} {why}")


def given(args: options.Options, *names: str) -> dict[str, Any]:
    """Return the given options among `names`, by name."""
    return {name: value for name in names if (value := getattr(args, name)) is not None}
