"""`truerank predict`: write a score for each row, or a TREC run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import truerank
from truerank.cli import common, options
from truerank.cli.next_command import next_command
from truerank.cli.parser import Output, OutputFolder, argument, one_word, only, option, positive, within
from truerank.core.files import one_step


class Arguments(options.Known, options.QueryField, options.Clustered):
    model: str = argument("a model that `truerank train` wrote", "MODEL")
    data: str | None = argument("a LETOR file (.gz .xz .zst), a table, or -", "[DATA]")
    output: str | None = option(
        "output file (default: stdout)", "FILE", writes=lambda args: OutputFolder if args.cluster else Output
    )
    format: str | None = option(
        "scores: one on each line, in the order of the rows; run: a TREC run (default: scores, or run with --index)",
        choices=("scores", "run"),
    )
    of_runs = within("with --format run")
    tag: str | None = of_runs("name of the run (default: truerank)", "NAME", type=one_word)
    depth: int | None = of_runs("keep the best N documents of each query (default: all)", "N", type=positive)
    texts = within("with a model of `truerank text pipeline`")
    index: str | None = texts("index of the documents", "DIR")
    queries: str | None = texts('JSON lines {"id", "text"}, a table, TREC topics or SMART queries', "Q")
    RULES = (
        only("query_field", "queries", "requires --queries"),
        only("cluster", "data", "applies only to a data file, but --index ranks raw text"),
        only(options.Known, "data", "applies only to a data file, but --index ranks raw text"),
    )


def run(args: Arguments) -> int:
    """Write scores in a form that restores the exact bits, or a run. In a run, equal scores keep the order of the
    file, and a row without a document id has its number as id.
    """
    from truerank.data.columns import as_trained
    from truerank.io.trec import Run
    from truerank.rankers.pipeline import ranker_scores

    of_text = args.index is not None or args.queries is not None
    as_scores = args.format == "scores" or (args.format is None and not of_text)
    if as_scores:
        common.refuse_idle(args, ("tag", "depth", "index", "queries", "query_field"), "requires --format run")
    if of_text:
        return _rank_text(args)
    if args.data is None:
        raise common.UsageError("no data are named. Name the data to score, or add --index DIR --queries FILE")
    advice = "which does not rank rows. A model of raw text needs --index and --queries"
    model = common.load_as(truerank.Ranker, args.model, advice, steps=True)
    if args.cluster is not None:
        return _of_parts(args, args.data, model, as_scores)
    data = common.read_data(args.data, args, model)
    scores = data.restore(ranker_scores(model, as_trained(model, data)))
    if as_scores:
        common.write_scores(args.output, scores)
        written = f"{common.counted(len(scores), 'score')}, in the order of the rows"
        return _tell_written(args, written, model, data.y is not None, scores=[args.output])
    ids, scores = _document_ids(args.data, data), data.grouped(scores)
    run = Run(data.query_ids, data.offsets, ids, scores)
    truerank.write_run(run, args.output or "-", tag=args.tag or "truerank", depth=args.depth)
    written = f"ranked documents of {common.counted(data.n_queries, 'query')}"
    are_qrels = data.y is not None and data.doc_ids is not None
    return _tell_written(args, written, model, are_qrels, systems=[args.output], data=None, qrels=args.data)


def _tell_written(args: Arguments, what: str, model: Any, graded: bool, **files: Any) -> int:
    """Print what was written to a file, and the command that evaluates these files if the rows have grades."""
    from truerank.data.columns import reading_of

    if args.output not in (None, "-"):
        common.note(f"wrote {args.output}: {what}")
        known = {f"{role}_column": name for role, name in reading_of(model).items()}
        columns = {name: getattr(args, name) or known.get(name) for name in common.OF_TABLES}
        readable = "grades_column" not in known and not ("qrels" in files and any(columns.values()))
        if graded and readable:
            next_command(args, "evaluate", features=None, exclude=None, **files, **columns)
    return 0


def _of_parts(args: Arguments, pattern: str, model: Any, as_scores: bool) -> int:
    """Write a file for each partition; a document without an id is named by its partition and row, from 1."""
    import numpy as np

    from truerank.io.trec import Run

    if args.output is None or args.output == "-":
        raise common.UsageError("--cluster writes a file for each partition. Name an output folder with -o DIR")
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    with common.cluster_of(args.cluster) as client:
        data = common.read_partitions(pattern, args, client, model)
        parts = model.predict(data) if as_scores else data.ranked(model)
    with one_step():
        for number, part in enumerate(parts):
            if as_scores:
                common.write_scores(str(folder / f"part-{number:05d}.txt"), part)
                continue
            query_ids, offsets, doc_ids, scores = part
            if doc_ids is None:
                doc_ids = np.char.add(f"{number}-", (np.arange(len(scores)) + 1).astype(str))
            path = folder / f"part-{number:05d}.run"
            run = Run(query_ids, offsets, doc_ids, scores)
            truerank.write_run(run, path, tag=args.tag or "truerank", depth=args.depth)
    return 0


def _rank_text(args: Arguments) -> int:
    """Write a run of the candidates of each query in an index, scored by a model with its features."""
    if args.index is None or args.queries is None or args.data is not None:
        raise common.UsageError("to rank raw text, give --index DIR and --queries FILE, and no data file")
    advice = "which ranks rows of features; make one for raw text with `truerank text pipeline`"
    model = common.load_as(truerank.TextRanker, args.model, advice)
    queries = truerank.read_queries(args.queries, field=args.query_field)
    found = model.rank(queries, truerank.Index(args.index))
    found.write(args.output or "-", tag=args.tag or "truerank", depth=args.depth)
    common.note_nothing_found(queries, found.query_ids.tolist())
    return 0


def _document_ids(name: str, data: truerank.RankingData) -> Any:
    """Return document ids in grouped order, or the numbers of the rows from 1 if there are no ids."""
    import numpy as np

    if data.doc_ids is None:
        common.note("truerank predict: the data have no document ids, so rows are named by their number, from 1")
        return (data.grouped(np.arange(data.n_rows)) + 1).astype(str)
    without = [row for row, doc_id in enumerate(data.doc_ids.tolist()) if not doc_id]
    if without:
        row = without[0]
        place = (row if data.order is None else int(data.order[row])) + 1
        raise common.InvalidInputError(
            f"{name}: row {place} (query {data.qid[row]}) has no document id, but {data.n_rows - len(without)} of "
            f"{data.n_rows} rows have one. End each line with `# docid = <id>`, or remove the ids of all lines to "
            "name documents by their rows"
        )
    return data.doc_ids
