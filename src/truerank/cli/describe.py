"""`truerank describe`: summarise judged rankings, and report their data quality.

Describe judged rankings: queries, grades, and findings such as constant or duplicate features, queries without pairs,
conflicting grades of identical rows, and queries that several files share. In a folder, the command reads the folds
(Fold*/train, vali, test), the parts S1 to S5, or all data files.
"""

from __future__ import annotations

import argparse
import shlex
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from truerank.cli import common, options
from truerank.cli.next_command import next_command
from truerank.cli.parser import OPTION_NAMES, argument, option, refuse, wording_of
from truerank.core.errors import DataFileError, alternatives

_FOLDS = 5  # of cross-validation
_TREES = ["leaves=constant"]  # which every search engine can read
_ENDINGS = (".txt", ".txt.gz", ".txt.xz", ".txt.zst", ".csv", ".parquet", ".arrow", ".feather")


class Arguments(options.Categorical, options.Judged, options.Clustered, options.Json):
    data: list[str] = argument("LETOR files, tables, folders of folds, or -; with --cluster patterns", "DATA …")
    scores: str | None = option("scores of the rows of a single DATA file, one on each line, to report ties", "FILE")
    RULES = (refuse("scores categorical", "cluster"),)


def run(args: Arguments) -> int:
    """Describe each file, and the queries that several files share."""
    with common.cluster_of(args.cluster) as client:
        return _describe(args, client)


def _describe(args: Arguments, client: Any) -> int:
    from truerank.data.checkup import fold_scales, shared_queries
    from truerank.data.remarks import Remark

    groups = [(None, args.data)] if client is not None else _groups(args.data)
    n_files = sum(len(paths) for _, paths in groups)
    if args.scores is not None and n_files != 1:
        raise common.UsageError("--scores requires a single DATA file. Name one file")
    if args.categorical and not any(common.table_kind(path) for _, paths in groups for path in paths):
        raise common.UsageError(
            "--categorical names columns of tables, but no DATA is a table. Leave --categorical out, or name a CSV or "
            "Parquet file"
        )
    findings: list[Any] = []
    files: list[dict[str, Any]] = []
    for label, paths in groups:
        names, queries, scales = [], [], []
        for path in paths:
            name = path if label is None else f"{label}/{Path(path).name}"
            data, grades, found, spreads = _examined(path, args, client)
            for finding in found:
                if n_files > 1:
                    finding.where = f"{name}: {finding.where}"
            findings += found
            files.append({"file": name, "rows": data.n_rows, "queries": data.n_queries, "features": data.n_features,
                          "grades": grades})  # fmt: skip
            names.append(name)
            queries.append(data.query_ids)
            scales.append(spreads)
        findings += shared_queries(names, queries)
        findings += fold_scales(names, scales)
        widths = {file["file"]: file["features"] for file in files[len(files) - len(paths) :]}
        if len(set(widths.values())) > 1:
            where = ", ".join(f"{name}: {width}" for name, width in widths.items())
            findings.append(Remark("different-width", where, len(set(widths.values())), list(widths)))
    _show(files, findings, args)
    return 0


def _examined(path: str, args: Arguments, client: Any) -> tuple[Any, dict[str, int], list[Any], Any]:
    """Return the data of a file, the number of rows by grade, findings, and the spread of each feature."""
    from truerank.data.checkup import examine, ranks_as_scores, scored, spreads
    from truerank.data.remarks import RemarkWarning
    from truerank.io.scores import read_scores
    from truerank.measures.file_order import file_order_finding

    on_cluster = client is not None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # also joined queries become a remark
        data: Any = common.read_partitions(path, args, client) if on_cluster else _read(path, args)
    grades_alone = data.without_features() if on_cluster else data
    found = [*examine(data), *file_order_finding(grades_alone)]
    for one in caught:
        if isinstance(one.message, RemarkWarning):
            found.append(one.message.remark)
        else:
            common.note(f"truerank: warning: {one.message}")
    if args.scores is not None:
        from truerank.experiments.systems import stated_order

        name, order = stated_order(args.scores)
        scores = data.grouped(read_scores(name, data.n_rows))
        found += scored(data, scores)
        found += ranks_as_scores({name: scores}, data.offsets) if order is None else []
    return data, _grades(grades_alone), found, {} if on_cluster else spreads(data)


def _read(path: str, args: Arguments) -> Any:
    """Read a file with the options that the columns of a table require, and print these options."""
    if not common.table_kind(path):
        return common.read_data(path, args)
    data, found = read_as_found(path, args)
    if found:
        common.note(
            f"truerank describe: {path} is read with these options, which `truerank train` also requires: "
            f"{shlex.join(as_words(found))}"
        )
        args.collected["found"] = found
    return data


def given_reading(args: options.Reading) -> dict[str, Any]:
    """Return the given options of reading a table as arguments of `read_table`."""
    names = ("query", "grade", "document", "categories", "missing", "features", "exclude")
    own = {name: getattr(args, OPTION_NAMES.get(name, name).replace("-", "_")) for name in names}
    own |= {"grades": " ".join(args.grades or ())}
    return {name: value for name, value in own.items() if value}


def as_words(found: dict[str, Any]) -> list[str]:
    """Return arguments of `read_table` as options of a command."""
    parser = argparse.ArgumentParser()
    options.Learning.configure(parser)
    wording = wording_of(parser)
    return shlex.split(" ".join(str(wording.argument(name, value)) for name, value in found.items()))


def with_ignored(found: dict[str, Any], remarks: list[Any]) -> dict[str, Any]:
    """Return arguments of `read_table` that also ignore the features which remarks advise to ignore."""
    ignored = [name for one in remarks if "exclude" in one.remedies[0].arguments for name in one.items]
    return found | {"exclude": list(dict.fromkeys([*found.get("exclude", ()), *ignored]))} if ignored else found


def read_as_found(path: str, args: options.Reading, *, trains: bool = True) -> tuple[Any, dict[str, Any]]:
    """Return the data of a table, and the arguments of `read_table` that its columns require.

    Data that train no ranker may lack grades, and lose their categories.
    """
    place = common.place_of(path, args)
    try:
        return place.read(graded=trains and args.grade_column is None), {}
    except DataFileError as error:
        solution = getattr(error.__cause__, "solution", None)
        if solution is None:
            raise
        if not trains and (texts := solution.pop("categories", [])):
            solution["exclude"] = [*solution.get("exclude", ()), *texts]
        for name, value in solution.items():
            if isinstance(value, list):  # besides those that were given
                solution[name] = list(dict.fromkeys([*(getattr(place, name) or ()), *value]))
        try:
            return replace(place, **solution).read(), solution
        except DataFileError:  # nothing would be left: the first message is clearer
            raise error from error.__cause__


def _show(files: list[dict[str, Any]], findings: list[Any], args: Arguments) -> None:
    """Print the files and the findings as a table and lines, or as one JSON object."""
    from truerank.data.remarks import CODES, in_order

    levels = sorted({grade for file in files for grade in file["grades"]}, key=float)
    findings = in_order(findings)
    if args.json:
        common.print_report(args, {
            "rows": sum(file["rows"] for file in files),
            "queries": sum(file["queries"] for file in files),
            "grades": {grade: sum(file["grades"].get(grade, 0) for file in files) for grade in levels},
            "features": max(file["features"] for file in files),
            "findings": [finding.to_dict() for finding in findings],
            "files": files,
        })  # fmt: skip
        return
    rows = [
        [*(file[key] for key in ("file", "rows", "queries", "features")), *(file["grades"].get(g, 0) for g in levels)]
        for file in files
    ]
    print(common.table(rows, ["data", "rows", "queries", "features", *(f"grade {grade}" for grade in levels)]))
    print()
    if not findings:
        print("no remarks")
    for code in dict.fromkeys(finding.code for finding in findings):
        first = next(finding for finding in findings if finding.code == code)
        print(f"{first.severity}: {code}: {CODES[code].meaning}\n  -> {alternatives(first.remedies, args.wording)}")
        for finding in findings:
            if finding.code == code:
                print(f"  {finding.count}  {finding.where}")
    for file in files:
        if not file["features"]:
            print(f"\nnext: {common.without_features(file['file'])}")
    if len(files) == 1 and levels and Path(args.data[0]).is_file():
        found = with_ignored(args.collected.get("found", {}) | common.given(args, "exclude"), findings)
        if files[0]["features"] > len(found.get("exclude", ())) and files[0]["queries"] >= _FOLDS:
            own = {OPTION_NAMES.get(name, name).replace("-", "_"): value for name, value in found.items()}
            own |= {"folds": args.data[0], "set": _TREES, "scores": "trees.txt"}
            next_command(args, "cross-validate", **own)


def _grades(data: Any) -> dict[str, int]:
    """Return the number of rows by grade; more than 20 grades are counted by their whole part."""
    import numpy as np

    if data.y is None:
        return {}
    values, counts = np.unique(data.y, return_counts=True)
    if len(values) > 20:
        values, counts = np.unique(np.floor(data.y), return_counts=True)
    return {f"{value:g}": int(count) for value, count in zip(values, counts)}


def _groups(paths: list[str]) -> list[tuple[str | None, list[str]]]:
    """Return groups of files that should have no common query: the named files, and each fold of a folder."""
    from truerank.io.letor.folds import fold_folders

    folders = [path for path in paths if path != "-" and Path(path).is_dir()]
    named = [path for path in paths if path not in folders]
    groups: list[tuple[str | None, list[str]]] = [(None, named)] if named else []
    for folder in map(Path, folders):
        if (folder / "qrels").is_dir():  # of BEIR
            groups.append((f"{folder}/qrels", list(map(str, sorted((folder / "qrels").glob("*.tsv"))))))
            continue
        for place in fold_folders(folder) or [folder]:
            files = sorted(str(file) for file in place.iterdir() if file.is_file() and file.name.endswith(_ENDINGS))
            parts = [file for file in files if Path(file).name.split(".")[0] in ("S1", "S2", "S3", "S4", "S5")]
            if not files:
                raise common.InvalidInputError(f"{place}: the folder contains no data files ({', '.join(_ENDINGS)})")
            groups.append((place.name, parts or files))
    return groups
