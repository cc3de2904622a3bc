"""`truerank describe`: what judged rankings hold, and what in them may surprise."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

from truerank.cli import common

_ENDINGS = (".txt", ".txt.gz", ".txt.xz", ".txt.zst", ".csv", ".parquet", ".arrow", ".feather")


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.description = (
        "Describe judged rankings: queries, grades, and findings such as constant or duplicate features, queries "
        "without pairs, conflicting grades for identical rows, and queries that several files share. Of a folder, the "
        "folds (Fold*/train, vali, test) or the parts (S1 ... S5, or all data files) are read."
    )
    parser.add_argument(
        "data", nargs="+", metavar="DATA", help="LETOR files, tables, folders of folds, or -; with --cluster patterns"
    )
    parser.add_argument("--scores", metavar="FILE", help="scores of the one DATA file, one a line: are they tied?")
    common.add_data_options(parser)
    common.add_column_options(parser, categorical=True)
    common.add_cluster_option(parser)
    common.add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Describe each file, and what files share that should share nothing."""
    if args.cluster is not None and args.scores is not None:
        raise common.UsageError("--scores does not go with --cluster")
    with common.cluster_of(args) as client:
        return _describe(args, client)


def _describe(args: argparse.Namespace, client: Any) -> int:
    from truerank.data.checkup import (
        CODES,
        Finding,
        examine,
        fold_scales,
        in_order,
        scored,
        shared_queries,
        spreads,
    )
    from truerank.measures.file_order import file_order_finding

    on_cluster = args.cluster is not None
    groups = [(None, args.data)] if on_cluster else _groups(args.data)
    if args.scores is not None and sum(len(paths) for _, paths in groups) != 1:
        raise common.UsageError("--scores belongs to one DATA file")
    several = sum(len(paths) for _, paths in groups) > 1
    findings: list[Finding] = []
    files: list[dict[str, Any]] = []
    total: dict[str, Any] = {"rows": 0, "queries": 0, "grades": {}}
    for label, paths in groups:
        names, queries, widths = [], [], {}
        scales: list[dict[str, float]] = []
        for path in paths:
            name = path if label is None else f"{label}/{Path(path).name}"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joined queries become a finding
                data: Any = common.read_partitions(path, args, client) if on_cluster else common.read_data(path, args)
            grades_alone = data.without_features() if on_cluster else data
            grades = _grades(grades_alone)
            files.append({"file": name, "rows": data.n_rows, "queries": data.n_queries, "features": data.n_features,
                          "grades": grades})  # fmt: skip
            names.append(name)
            queries.append(data.query_ids)
            widths[name] = data.n_features
            total["rows"] += data.n_rows
            total["queries"] += data.n_queries
            for grade, count in grades.items():
                total["grades"][grade] = total["grades"].get(grade, 0) + count
            found = [*examine(data), *file_order_finding(grades_alone)]
            if args.scores is not None:
                from truerank.io.scores import read_scores

                scores = read_scores(args.scores, data.n_rows)
                found += scored(data, data.grouped(scores))
            scales.append({} if on_cluster else spreads(data))
            for finding in found:
                if several:
                    finding.where = f"{name}: {finding.where}"
                findings.append(finding)
        findings += shared_queries(names, queries)
        findings += fold_scales(names, scales)
        if len(set(widths.values())) > 1:
            where = ", ".join(f"{name}: {width}" for name, width in widths.items())
            findings.append(Finding("different-width", where, len(set(widths.values())), list(widths)))
    total["grades"] = dict(sorted(total["grades"].items(), key=lambda item: float(item[0])))
    if args.json:
        common.print_json(
            total
            | {"features": max(file["features"] for file in files)}
            | {"findings": [finding.to_dict() for finding in in_order(findings)]}
            | {"files": files}
        )
        return 0
    levels = list(total["grades"])
    rows = [
        [
            file["file"],
            file["rows"],
            file["queries"],
            file["features"],
            *(file["grades"].get(grade, 0) for grade in levels),
        ]
        for file in files
    ]
    print(common.table(rows, ["data", "rows", "queries", "features", *(f"grade {grade}" for grade in levels)]))
    print()
    if not findings:
        print("nothing to remark")
    for code in dict.fromkeys(finding.code for finding in in_order(findings)):
        severity, meaning, advice = CODES[code]
        print(f"{severity}: {code}: {meaning}\n  -> {advice}")
        for finding in findings:
            if finding.code == code:
                print(f"  {finding.count}  {finding.where}")
    return 0


def _grades(data: Any) -> dict[str, int]:
    """Rows of each grade; grades that are no few numbers are shown by their whole part."""
    import numpy as np

    if data.y is None:
        return {}
    values, counts = np.unique(data.y, return_counts=True)
    if len(values) > 20:
        values, counts = np.unique(np.floor(data.y), return_counts=True)
    return {f"{value:g}": int(count) for value, count in zip(values, counts)}


def _groups(paths: list[str]) -> list[tuple[str | None, list[str]]]:
    """Files that should share no query, group by group: those named, and each fold of a folder."""
    groups: list[tuple[str | None, list[str]]] = []
    named = [path for path in paths if path == "-" or not Path(path).is_dir()]
    if named:
        groups.append((None, named))
    for path in paths:
        if path == "-" or not Path(path).is_dir():
            continue
        folder = Path(path)
        folds = sorted(sub for sub in folder.iterdir() if sub.is_dir() and sub.name.lower().startswith("fold"))
        for place in folds or [folder]:
            files = sorted(str(file) for file in place.iterdir() if file.is_file() and file.name.endswith(_ENDINGS))
            parts = [file for file in files if Path(file).name.split(".")[0] in ("S1", "S2", "S3", "S4", "S5")]
            if not files:
                raise common.InvalidInputError(f"{place}: no data files ({', '.join(_ENDINGS)}) in this folder")
            groups.append((place.name, parts or files))
    return groups
