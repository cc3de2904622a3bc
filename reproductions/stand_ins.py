"""Stand-ins for collections that cannot be had: Indri's functions on WT10g (SVM-MAP), WSJ, AP and .Gov (AdaRank).

Cranfield, CISI and NPL take the place of WT10g, WSJ and AP, and CACM that of .Gov. Protocols are those of the papers. A
verdict is about the direction of a printed claim.

1. SVM-MAP's tables 6 and 9: five retrieval functions under three analysers, 15 features of the union of the functions'
   best 1,000 documents. Trials of 10, 5 and 35 of 50 topics, which are drawn from the judged ones.
2. AdaRank's figures 3 and 4: the seven features of its table 2, of the union of the functions' best 100 documents. Four
   trials to a deal. BM25 is tuned on the training queries of trial 1. Relevant documents have grade 2, which AP counts.
3. AdaRank's figure 5: BM25 with its best 1,000 documents, their PageRank, and BM25 after propagation of scores and of
   terms along citations in three ways. Links have no direction in CACM: the later document cites the earlier one.
   HostRank and propagation along the tree of a site have no counterpart, because articles have no host.
"""

from __future__ import annotations

import argparse
import gzip
import re
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from reproductions import svm_map
from reproductions.adarank.trials import BEST_FEATURE, CONSTANT, MEASURES, means_of, run_deals
from reproductions.protocol import Collection, ResultStore, add_options, show
from truerank import (
    LinkGraph,
    MinMaxInQuery,
    RankingData,
    TextFeatures,
    build_index,
    join_runs,
    pagerank,
    read_documents,
    read_judgements,
    read_queries,
)
from truerank.core.printing import note, table
from truerank.core.random_streams import stream
from truerank.io.documents import Document
from truerank.io.trec import as_qrels, judge_lists
from truerank.links.propagation import ALONG_LINKS, propagated_run
from truerank.text.analysers import STEMMED_AND_STOPPED
from truerank.text.retrieval import all_scores
from truerank.text.retrieval_functions import BM25, query_weights

# Name -> folder, documents, queries, judgements.
COLLECTIONS = {
    "Cranfield": ("cranfield", "cran.all.1400.gz", "cran.qry.gz", "cranqrel.gz"),
    "CISI": ("cisi", "CISI.ALL.gz", "CISI.QRY.gz", "CISI.REL.gz"),
    "NPL": ("npl", "doc-text.trec.gz", "query-text.trec.gz", "qrels.gz"),
    "CACM": ("cacm", "cacm.all.gz", "query.text.gz", "qrels.text.gz"),
}
TOPICS = 50
CANDIDATES = 100
ROWS = (
    BEST_FEATURE, CONSTANT, "BM25", "Ranking SVM, hinge", "RankBoost", "AdaRank.MAP (paper)", "AdaRank.NDCG (paper)",
    "AdaRank.MAP (adaboost)", "AdaRank.NDCG (adaboost)",
)  # fmt: skip


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the experiment."""
    add_options(parser, "reproduce-output/stand-ins", "cranfield/, cisi/, npl/ and cacm/")
    parser.add_argument(
        "--trials",
        type=int,
        default=10,
        metavar="N",
        help="trials of SVM-MAP (default: 10, with which roles are equal)",
    )
    parser.add_argument("--assignments", type=int, default=2, metavar="N", help="deals of AdaRank (default: 2)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Run what is not finished."""
    args.jobs = None
    args.trials, args.assignments = (2, 1) if args.quick else (args.trials, args.assignments)
    result: dict[str, Any] = {"trials": args.trials, "assignments": args.assignments, "functions": {}, "boosting": {}}
    for name in list(COLLECTIONS)[-2 if args.quick else 0 :]:
        note(f"{name}: features")
        with TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # documents without a text
            collection = TextCollection(args.data, name, folder)
            if name != "CACM":
                result["functions"][name] = functions(collection, args)
            result["boosting"][name] = boosting(collection, args)
    return result


class TextCollection:
    """An index of a collection's documents as one field each, its judged queries, and its judgements with grade 2."""

    streams = ("text",)

    def __init__(self, root: str, name: str, folder: str) -> None:
        self.name, self.place = name, Path(root, COLLECTIONS[name][0])
        documents, queries, judgements = (self.place / file for file in COLLECTIONS[name][1:])
        texts = [Document(one.id, {"text": " ".join(one.text.values())}, {}, {}) for one in read_documents(documents)]
        self.index = build_index(texts, Path(folder, "index"))
        found = as_qrels(_pairs(judgements)) if name == "CACM" else read_judgements(judgements)
        found.grades = 2.0 * (found.grades >= 1)
        self.qrels = found
        relevant = set(found.query_ids.tolist())
        self.queries = [query for query in read_queries(queries) if query.id in relevant]
        self.data: RankingData | None = None

    def judged(self, X: np.ndarray, data: RankingData) -> RankingData:
        """The rows of `data` with the columns `X` and grades, by query in descending order of the document ids."""
        assert data.doc_ids is not None
        order = np.lexsort((-np.unique(data.doc_ids, return_inverse=True)[1], data.query_index))
        rows = RankingData.from_grouped(X[order], None, data.offsets, data.query_ids, doc_ids=data.doc_ids[order])
        return rows.with_judgements(judge_lists(self.qrels, rows.query_ids, rows.doc_ids, rows.offsets))

    def bm25(self, stream: str, k1: float, b: float) -> np.ndarray:
        """BM25 of the rows of `data` (n,)."""
        assert self.data is not None
        assert self.data.doc_ids is not None
        function, texts = BM25(STEMMED_AND_STOPPED, k1=k1, b=b), {one.id: one.text["text"] for one in self.queries}
        number = np.array([self.index.document_number(name) for name in self.data.doc_ids.tolist()])
        parts = np.split(number, self.data.offsets[1:-1])
        weights = (query_weights(self.index, texts[q], STEMMED_AND_STOPPED) for q in self.data.query_ids.tolist())
        return np.concatenate([all_scores(self.index, function, w)[0][rows] for w, rows in zip(weights, parts)])


def functions(collection: TextCollection, args: argparse.Namespace) -> dict[str, Any]:
    """SVM-MAP and the other SVMs trained on five functions under three analysers, and the best three functions."""
    queries = collection.queries
    chosen = stream(args.seed, "topics", collection.name).choice(len(queries), TOPICS, replace=False)
    features = TextFeatures(["functions"], scaled=False).fit(collection.index)
    found = features.transform([queries[k] for k in sorted(chosen)], collection.index)
    rows = collection.judged(found.X, found)
    judgements, measure = rows.judgements(), svm_map.average_precision()
    data = RankingData.from_grouped(rows.X, rows.y, rows.offsets, rows.query_ids, feature_names=found.feature_names)
    columns = {name: np.ascontiguousarray(x) for name, x in zip(found.feature_names or [], data.X.T)}
    values = {name: measure.per_query(judgements, x) for name, x in columns.items()}
    base = dict(sorted(values.items(), key=lambda item: -float(item[1].mean())))
    task = svm_map.Task(data, judgements, base)
    stamp = {"stand-in": collection.name, "seed": args.seed, "grids": svm_map.GRIDS}
    store = ResultStore(Path(args.out, f"functions-{collection.name}.jsonl"), stamp)
    trials = svm_map.Trials(task, None, args.trials, args)
    for methods in svm_map.GROUPS:
        trials.run(methods, store)
    about = {"functions": list(base)[:3], "documents": data.n_rows}
    roles = svm_map.role_counts(trials.roles, data.n_queries)
    return svm_map.part_summary(task, trials.results) | about | {"roles": roles}


def features_of(collection: TextCollection) -> RankingData:
    """AdaRank's features of a collection: those of links on CACM, else the seven of terms."""
    if collection.name == "CACM":
        return collection.judged(*_linked(collection))
    features = TextFeatures(["xu-li"], depth=CANDIDATES).fit(collection.index)
    found = features.transform(collection.queries, collection.index)
    return collection.judged(found.X[:, found.X.shape[1] // 2 :], found)  # the scaled columns, as in LETOR's files


def boosting(collection: TextCollection, args: argparse.Namespace) -> dict[str, Any]:
    """AdaRank and its baselines: test measures over the deals, and tests."""
    collection.data = data = features_of(collection)
    store = ResultStore(Path(args.out, f"boosting-{collection.name}.jsonl"), {"seed": args.seed, "form": 1})
    whole = Collection(collection.name, data, [], "ranklib")
    kept, tests, _, chosen = run_deals(whole, collection, store, ROWS, MEASURES, args.assignments, args.seed)
    sizes = {"queries": data.n_queries, "documents": data.n_rows}
    return sizes | {"means": means_of(kept), "tests": tests, "bm25": chosen["bm25"]}


def _linked(collection: TextCollection) -> tuple[np.ndarray, RankingData]:
    """BM25, its propagation along links and PageRank of the best 1,000 documents by BM25, and their rows."""
    index, queries = collection.index, collection.queries
    with gzip.open(collection.place / COLLECTIONS["CACM"][1], "rt", encoding="latin-1") as text:
        links = re.findall(r"^(\d+)\t5\t(\d+)$", text.read(), re.MULTILINE)
    number = np.array([[index.document_number(name) for name in sorted(link, key=int)] for link in links])
    cited, citing = number[number[:, 0] != number[:, 1]].T
    graph = LinkGraph(citing, cited, index.n_documents)
    runs = [propagated_run(index, queries, graph, "score-uniform-out-link", alpha=1.0)]  # BM25 itself
    runs += [
        propagated_run(index, queries, graph, f"{level}-{way}") for level in ("score", "term") for way in ALONG_LINKS
    ]
    found = join_runs(runs, collection.qrels, names=[str(k) for k in range(len(runs))])
    assert found.doc_ids is not None
    rank = pagerank(graph)[[index.document_number(name) for name in found.doc_ids.tolist()]]
    return MinMaxInQuery().fit_transform(np.column_stack([found.X, rank]), qid=found.query_index), found


def _pairs(path: Path) -> dict[str, dict[str, int]]:
    """CACM's judgements: a query and a relevant document on each line, then two zeros."""
    found: dict[str, dict[str, int]] = {}
    with gzip.open(path, "rt") as stream:
        for query, document, *_ in map(str.split, stream):
            found.setdefault(str(int(query)), {})[document] = 1
    return found


def print_tables(result: dict[str, Any]) -> None:
    """Print MAP of the SVMs and functions, and of AdaRank and its baselines, by collection."""
    for key, value in (("functions", lambda part, row: part["MAP"][row]),
                       ("boosting", lambda part, row: part["means"][row]["AP(rel=2)"]["mean"])):  # fmt: skip
        parts = result[key]
        rows = list(next(iter(parts.values()))["MAP" if key == "functions" else "means"])
        shown = [[row, *(value(part, row) for part in parts.values())] for row in rows]
        show(f"\nMAP, {result['trials' if key == 'functions' else 'assignments']} trials or deals\n")
        show(table(shown, ["", *parts]))
