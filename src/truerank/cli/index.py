"""`truerank text index`: an index of a collection of documents.

Index documents for `search`, `features` and `pipeline`. An index is a folder. The command builds the index in a
temporary folder and moves it into place, so a killed command can be run again.
"""

from __future__ import annotations

import argparse

import truerank
from truerank.cli import common, options
from truerank.text.analysers import ANALYSERS


def configure(parser: argparse.ArgumentParser) -> None:
    add = options.adder(parser)
    add(
        "documents DOCUMENTS",
        'JSON lines {"id", "text", other fields …}, a table (.csv .parquet …), TREC SGML or SMART records '
        "(.gz .xz .zst), or ir_datasets:NAME; - is stdin",
    )
    add("-o --index DIR", "output folder of the index", type=options.OutputFolder, required=True)
    add("--fields FIELD …", "text fields to index (default: all)")
    text = "plain words, Porter's stems, stems without stop words"
    add("--analysers", text, nargs="+", choices=ANALYSERS, default=list(ANALYSERS))
    options.share(parser, "bad", "json")


def run(args: argparse.Namespace) -> int:
    """Read and index the documents, and print a summary."""
    from truerank.text.index import ALL

    reserved = {ALL} if args.fields is None else {ALL} & set(args.fields)
    documents = truerank.read_documents(args.documents, bad=args.bad, reserved=reserved)
    index = truerank.build_index(documents, args.index, analysers=args.analysers, fields=args.fields)
    summary = {
        "index": str(index.path),
        "documents": index.n_documents,
        "tokens": len(index.tokens),
        "fields": index.fields,
        "terms": {analyser: index.n_terms(analyser) for analyser in index.analysers},
    }
    text = f"wrote {index.path}: {common.counted(index.n_documents, 'document')}, {len(index.tokens)} tokens"
    return common.tell(args, summary, f"{text}, fields {', '.join(index.fields)}")
