"""`truerank text index`: an index of a collection of documents."""

from __future__ import annotations

import argparse

from truerank.cli import common, options

ANALYSERS = ("plain", "porter", "porter-stop")


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.description = (
        "Index documents for `search`, `features` and `pipeline`. An index is a folder; it is written beside its place "
        "and moved there when it is whole, so that a run that was killed can simply be run again."
    )
    parser.add_argument(
        "documents",
        metavar="DOCUMENTS",
        help='JSON lines {"id", "text", other fields …}, a table (.csv .parquet …), TREC SGML or SMART records '
        "(.gz .xz .zst), or ir_datasets:NAME; - is stdin",
    )
    text = "folder of the index"
    parser.add_argument("-o", "--index", type=options.OutputFolder, required=True, metavar="DIR", help=text)
    parser.add_argument("--fields", nargs="+", metavar="FIELD", help="text fields to index (default: all)")
    parser.add_argument(
        "--analysers",
        nargs="+",
        choices=ANALYSERS,
        default=list(ANALYSERS),
        help="words as they are, Porter's stems, stems without stop words (default: all three)",
    )
    add_bad_option(parser)
    options.add_json_option(parser)


def add_bad_option(parser: argparse.ArgumentParser) -> None:
    """`--bad`: treatment of documents that cannot be used."""
    parser.add_argument(
        "--bad",
        choices=("error", "skip"),
        default="error",
        help="documents without id, with an id that came before, that are not JSON or not UTF-8, or of more than "
        "64 MiB: stop at the first (default), or skip them with a note",
    )


def run(args: argparse.Namespace) -> int:
    """Read and index the documents, and print a summary."""
    from truerank.io.documents import read_documents
    from truerank.text.index import ALL, build_index

    reserved = {ALL} if args.fields is None else {ALL} & set(args.fields)
    documents = read_documents(args.documents, bad=args.bad, reserved=reserved)
    index = build_index(documents, args.index, analysers=args.analysers, fields=args.fields)
    summary = {
        "index": str(index.path),
        "documents": index.n_documents,
        "tokens": len(index.tokens),
        "fields": index.fields,
        "terms": {analyser: index.n_terms(analyser) for analyser in index.analysers},
    }
    text = f"wrote {index.path}: {common.counted(index.n_documents, 'document')}, {len(index.tokens)} tokens"
    return common.tell(args, summary, f"{text}, fields {', '.join(index.fields)}")
