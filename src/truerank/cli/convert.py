"""`truerank convert`: convert judged rankings or judgements from one file format into another.

Convert judged rankings. Files that end in .csv, .tsv, .parquet, .arrow and .feather are tables, all others are LETOR
text; .gz, .xz and .zst are compressed. --to lightgbm writes text without qid, and
the group sizes to OUT.query; --to xgboost writes the group sizes to OUT.group; --to qrels writes the judgements only.
With --sparse, zeros are omitted from LETOR text.

Convert judgements without features: from Quepid, OpenSearch, RRE, ESCI, BEIR, ranx, PyTerrier and others, found by
content, to the format of --to. Without --to, a table has one row for each grade and judge, and any other output file
is TREC qrels. --join adds the columns of a table of documents, or of queries and documents, or the features that the
LTR plugin logged in answers of a search engine, in lines {"query": …, "response": …}. It lists in OUT.lacking the
judged documents that the table lacks, if these are more than three.
"""

from __future__ import annotations

import shlex

import truerank
from truerank.cli import common, options
from truerank.cli.parser import Output, argument, option, refuse
from truerank.core.errors import DataFileError
from truerank.io.judgements.places import PLACES

ROWS = ("letor", "table", "lightgbm", "xgboost", "qrels")
FORMATS = (*ROWS, *(name for name in PLACES if name not in ("qrels", "json")))


class Arguments(options.Columns, options.Judged):
    categorical: list[str] | None = option(
        "columns of text to keep: a table has their texts, other formats have numbers in alphabetical order, from 0",
        "COLUMN …",
        group="columns",
    )
    input: str = argument("a LETOR file, a table, or - for LETOR text on stdin", "IN")
    output: Output = argument("output file, or - for LETOR text on stdout", "OUT")
    to: str | None = option("format of OUT, if its ending does not name it", choices=FORMATS)
    fold_queries: bool = option(
        "judgements: make one query of texts that differ in case, blanks or the form of letters only"
    )
    join: str | None = option("judgements: add the columns of this table or log, as features", "FILE")
    on: list[str] | None = option(
        "columns of --join: that of document ids, or those of query and document (default: by usual names)",
        "COLUMN …",
        to="join",
    )
    groups: str | None = option("group sizes of IN, whose lines then have no qid", "FILE")
    float32: bool = option("keep values as 32-bit numbers")
    no_comments: bool = option("drop comments, and keep document ids")
    RULES = (
        refuse(
            "features exclude categorical float32 no_comments",
            "to=qrels",
            "has no effect on qrels, which have no features and comments",
        ),
        refuse("no_comments", "to=lightgbm to=xgboost", "has no effect: files for {to} have no comments"),
    )


def run(args: Arguments) -> int:
    """Convert the file, and print a summary."""
    from truerank.io.group_sizes import write_group_sizes
    from truerank.io.letor.write import write_rows
    from truerank.io.streams import open_outputs

    if args.input != "-" and _judgements(args) is not None:
        return 0
    target = args.to or ("table" if common.table_kind(args.output) else "letor")
    if args.output == "-" and target not in ("letor", "qrels"):
        raise common.UsageError(f"--to {target} cannot write to standard output (-). Name a file")
    if target == "table" and not common.table_kind(args.output):
        raise common.UsageError(f"{args.output}: a table's name must end in .csv, .tsv, .parquet, .arrow or .feather")
    data = _read(args)
    written: list[str] = [args.output]
    if target == "table":
        truerank.write_table(data, args.output)
    elif target == "letor":
        truerank.write_letor(data, args.output, comments=not args.no_comments)
    elif target == "qrels":
        _write_qrels(data, args.output)
    else:
        written.append(f"{args.output}.{'query' if target == 'lightgbm' else 'group'}")
        Output(written[-1]).check("-o")
        args.outputs.add(written[-1])
        with open_outputs(written) as (rows, sizes):
            write_rows(data, rows, comments=False, plain=True)
            write_group_sizes(data.group_sizes, sizes)
        if lost := data.beyond_rows():
            common.note(f"truerank: warning: files for {target} cannot contain {lost}")
    if target not in ("table", "qrels"):
        for name, texts in (data.category_names or {}).items():
            shown = ", ".join(f"{place} {text!r:.40}" for place, text in enumerate(texts[:8]))
            common.note(f"truerank: column {name!r} has numbers for its texts: {shown}{', …' * (len(texts) > 8)}")
    if args.output != "-":
        common.note(f"wrote {' and '.join(written)}: {common.size_of(data)}")
    return 0


def _judgements(args: Arguments) -> int | None:
    """Convert judgements that have no features; None if IN has features."""
    from truerank.io.judgements.tables import joined, kind_of, write_rows

    only = args.join or args.aggregate or args.fold_queries or args.to not in (None, *ROWS)
    if not only and (args.groups or args.to not in (None, "table", "qrels")):
        return None
    if not only and not common.holds_judgements(args, args.input, features=args.to == "qrels"):
        return None
    ratings = common.read_ratings(args, args.input, fold=args.fold_queries)
    if args.join:
        if kind_of(args.output) is None:
            raise common.UsageError(
                f"{args.output}: --join writes a table. Its name must end in .csv, .tsv, .parquet or .arrow"
            )
        columns, lacking = joined(ratings.aggregated(), args.join, args.on)
        write_rows(columns, args.output)
        lost = ""
        if lacking:
            lost = f"; {args.join} lacks {common.counted(len(lacking), 'judged document')}: {common.few(lacking)}"
        if len(lacking) > 3:
            Output(every := f"{args.output}.lacking").check("-o")
            args.outputs.add(every)
            with common.output(every) as stream:
                stream.writelines(f"{one}\n" for one in lacking)
            lost += f" (all in {every})"
        common.note(f"wrote {args.output}: {common.counted(len(columns['qid']), 'row')}{lost}")
        common.note(f"next: truerank describe {shlex.quote(args.output)}")
        return 0
    target = args.to if args.to not in (None, "table") else "ratings" if kind_of(args.output) else "qrels"
    truerank.write_ratings(ratings, args.output, target)
    if args.output != "-":
        common.note(f"wrote {args.output}: {ratings}, read as {ratings.format}")
    return 0


def _read(args: Arguments) -> truerank.RankingData:
    if common.table_kind(args.input) and (args.groups or args.sparse or args.n_features):
        raise common.UsageError(
            "--groups, --sparse and --n-features are for LETOR text, but IN is a table. Leave them out"
        )
    try:
        return common.read_data(
            args.input,
            args,
            dtype="float32" if args.float32 else "float64",
            comments=not args.no_comments,
            sizes=args.groups,
            features=[] if args.to == "qrels" else args.features,
        )
    except DataFileError as error:
        if not args.groups or error.column is None:
            raise
        # The query ids that were put into the lines have moved the columns.
        what = str(error).partition(f"column {error.column}: ")[2]
        raise DataFileError(what, str(error.path), error.line) from None


def _write_qrels(data: truerank.RankingData, output: str) -> None:
    import numpy as np

    from truerank.data.grouping import offsets_of
    from truerank.io.trec import Qrels

    if data.doc_ids is None or data.y is None:
        lacking = "document ids. Add them: `# docid = ID`" if data.doc_ids is None else "grades. Add them"
        raise common.InvalidInputError(f"qrels require document ids and grades, but the data have no {lacking}")
    query_ids = np.array([str(name) for name in data.query_ids.tolist()])
    own = data.judgements()
    known = np.ones(data.n_rows, dtype=bool) if own.judged is None else own.judged
    if data.missing_grades is not None and len(data.missing_grades):
        common.note(f"truerank: warning: judged documents without a row are not written: {len(data.missing_grades)}")
    sizes = np.bincount(data.query_index[known], minlength=data.n_queries)
    truerank.write_qrels(Qrels(query_ids, offsets_of(sizes), data.doc_ids[known], own.grades[known]), output)
