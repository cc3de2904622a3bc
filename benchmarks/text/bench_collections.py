"""MAP of base functions and of rankers over features of text on Cranfield, CISI and NPL, as the pipeline has it.

    TRUERANK_DATA=… BENCH_COLLECTIONS=cisi,npl BENCH_RANKERS=adarank python -m benchmarks text/bench_collections

Index, features and tuned baselines are made once for a collection; folds, settings and seeds are the pipeline's own,
so each row is what `truerank text pipeline --ranker NAME` prints. A row whose name ends in "papers" has
`--families papers` (its own candidates); "without FAMILY" has all features but that family's.
Collections default to all three, rankers to the three that the rows name; BENCH_LEAVE_OUT names the rankers that are
trained once more without each family (default: adarank).
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from truerank.cli import pipeline, ranker_options
from truerank.data.columns import take_columns
from truerank.data.splits import query_folds
from truerank.features.score_binning import ScoreBinning
from truerank.inspection.text_evidence import held_out_scores, tuned_baselines
from truerank.io.documents import read_documents, read_judgements, read_queries
from truerank.measures import parse_measure
from truerank.rankers.text_ranker import TextRanker
from truerank.significance import paired_t
from truerank.text.features import _NAMES, FAMILIES, PAPERS, TextFeatures
from truerank.text.index import build_index
from truerank.text.retrieval_functions import FUNCTIONS
from truerank.text.tuning import values_of_functions

FILES = {
    "cranfield": ("cran.all.1400.gz", "cran.qry.gz", "cranqrel.gz"),
    "cisi": ("CISI.ALL.gz", "CISI.QRY.gz", "CISI.REL.gz"),
    "npl": ("doc-text.trec.gz", "query-text.trec.gz", "qrels.gz"),
}
RANKERS = ("adarank", "measure-svm", "oblivious-boosting")


def arguments(files: list[str], ranker: str) -> pipeline.Arguments:
    """The pipeline's arguments at their defaults."""
    documents, queries, qrels = files
    return pipeline.Arguments(documents=documents, queries=queries, qrels=qrels, ranker=ranker, out="-")


def collection(name: str, rankers: list[str], left_out: list[str]) -> None:
    """Both tables of one collection, row by row as they are made."""
    files = [os.path.join(os.environ["TRUERANK_DATA"], name, file) for file in FILES[name]]
    args = arguments(files, rankers[0])
    qrels = read_judgements(args.qrels)
    relevant = {
        q for q, a, b in zip(qrels.query_ids.tolist(), qrels.offsets, qrels.offsets[1:]) if qrels.grades[a:b].max() > 0
    }
    queries = [query for query in read_queries(args.queries) if query.id in relevant]
    with tempfile.TemporaryDirectory() as folder:
        index = build_index(read_documents(args.documents), Path(folder) / "index")
        print(f"\n{name}: {index.n_documents} documents, {len(queries)} queries\n")
        functions = [cls(analyser) for analyser in index.analysers for cls in FUNCTIONS.values()]
        base = values_of_functions(index, queries, qrels, functions).mean(axis=1).reshape(len(index.analysers), -1)
        print(f"| MAP at defaults | {' | '.join(FUNCTIONS)} |\n| --- |{' --- |' * len(FUNCTIONS)}")
        for analyser, row in zip(index.analysers, base):
            print(f"| {analyser} | {' | '.join(f'{value:.4f}' for value in row)} |", flush=True)
        of_column = {column: family for family in FAMILIES for column in _NAMES[family](index)}
        parts = query_folds(len(queries), args.cv, random_state=args.seed)
        tuned, *_ = tuned_baselines(index, queries, qrels, parts, args.depth)
        bm25, best = tuned["bm25"], tuned["best-base"]
        print(f"\n| {name} | MAP | against tuned BM25 | p (paired t) | against best base | p |\n|{' --- |' * 6}")
        for title, values in (("BM25, tuned", bm25), ("best base function, tuned", best)):
            print(f"| {title} | {values.mean():.4f} |  |  |  |  |")

        def report(title: str, values: np.ndarray) -> None:
            cells = [f"{(values - b).mean():+.4f} | {paired_t(values, b).p:.2g}" for b in (bm25, best)]
            print(f"| {title} | {values.mean():.4f} | {cells[0]} | {cells[1]} |", flush=True)

        for families, suffix in ((list(FAMILIES), ""), (list(PAPERS), ", papers")):
            features = TextFeatures(families, depth=args.depth, scaled=True).fit(index)
            data = features.transform(queries, index, qrels)
            if data.n_queries != len(queries):
                raise ValueError(f"{name}: {len(queries) - data.n_queries} queries find nothing; folds would differ")
            plain = np.array([not column.endswith(".scaled") for column in data.feature_names or []])
            for ranker in rankers:
                own_args = arguments(files, ranker)
                own = plain if ranker in pipeline.BINNED else np.ones(len(plain), dtype=bool)

                def train(kept: np.ndarray, own_args: pipeline.Arguments = own_args, data: Any = data) -> Any:
                    columns = take_columns(data, np.flatnonzero(kept))
                    binning = ScoreBinning(output="binned") if own_args.ranker in pipeline.BINNED else None
                    models = [
                        TextRanker(ranker_options.make_ranker(own_args.ranker, one), binning=binning)
                        for one in pipeline._candidates(own_args)
                    ]
                    scores, *_ = held_out_scores(models, columns, parts)
                    return parse_measure("AP", convention="trec").per_query(columns.judgements(), scores)

                report(f"{ranker}{suffix}", train(own))
                if ranker in left_out and not suffix:
                    names = [of_column[column.removesuffix(".scaled")] for column in data.feature_names or []]
                    for family in families:
                        kept = own & np.array([each != family for each in names])
                        if not np.array_equal(kept, own):
                            report(f"{ranker} without {family}", train(kept))


def run() -> None:
    if "TRUERANK_DATA" not in os.environ:
        print("set TRUERANK_DATA to the folder of the collections")
        return
    rankers = os.environ.get("BENCH_RANKERS", ",".join(RANKERS)).split(",")
    left_out = os.environ.get("BENCH_LEAVE_OUT", "adarank").split(",")
    for name in os.environ.get("BENCH_COLLECTIONS", ",".join(FILES)).split(","):
        collection(name, rankers, left_out)


if __name__ == "__main__":
    run()
