"""`truerank text index`: index a collection of documents.

Index documents for `search`, `features` and `pipeline`. An index is a folder. The command builds the index in a
temporary folder and moves it into place, so that an interrupted command can be repeated.
"""

from __future__ import annotations

import truerank
from truerank.cli import common, options
from truerank.cli.parser import OutputFolder, argument, option
from truerank.text.analysers import ANALYSERS


class Arguments(options.Bad, options.Json):
    documents: str = argument(
        'JSON lines {"id", "text", other fields …}, a table (.csv .parquet …), TREC SGML or SMART records '
        "(.gz .xz .zst), or ir_datasets:NAME; - is stdin",
        "DOCUMENTS",
    )
    index: OutputFolder = option("output folder of the index", "DIR", names="-o --index")
    fields: list[str] | None = option("text fields to index (default: all)", "FIELD …")
    analysers: list[str] = option(
        "plain words, Porter's stems, stems without stop words", nargs="+", choices=ANALYSERS, default=list(ANALYSERS)
    )


def run(args: Arguments) -> int:
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
