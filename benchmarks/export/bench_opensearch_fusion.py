"""Learned fusion weights in a running OpenSearch: do its bool and hybrid queries give the order that we predict?

Indexes Cranfield in an OpenSearch server on loopback, takes the lists of two queries (the words in the title, the words
in the text) as runs, learns one weight for each on half of the topics, sends the exported query for the other half, and
compares the order and the scores with ours. The bool query is core OpenSearch; the hybrid query needs the plugins
neural-search and what that needs, whose archives OPENSEARCH_PLUGINS names (paths with colons between them). See
`benchmarks/search_server.py` for the server; needs the collections that TRUERANK_DATA names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.search_server import SearchServer
from truerank import RunFusion, RunPool, cross_validate_fusion
from truerank.export.fusion_weights import certify_fusion, engine_scores, export_fusion
from truerank.features.engine_norms import TECHNIQUES
from truerank.io.documents import read_documents, read_judgements, read_queries

DEPTH = 1400  # Cranfield's documents: every match is in the list
FIELDS = ("title", "text")


def compare_orders(engine: str, model: RunFusion, held_out: RunPool, search: Callable[[str], dict[str, float]]) -> None:
    """Print how far the engine's lists are those that we predict by its rule."""
    predicted = held_out.to_run(engine_scores(model, engine, held_out).astype(np.float64), depth=None).to_dict()
    ranks = same = inverted = 0
    largest = 0.0
    for topic, ours in predicted.items():
        theirs = search(topic)
        if theirs.keys() != ours.keys():
            raise ValueError(f"topic {topic}: the engine found {len(theirs)} documents, the runs have {len(ours)}")
        largest = max(largest, max(abs(theirs[name] - ours[name]) for name in theirs))
        ranks += len(theirs)
        same += sum(a == b for a, b in zip(theirs, ours))
        inverted += int((np.diff(np.array([ours[name] for name in theirs])) > 1e-5).sum())
    print(
        f"{engine}: weights { ({name: round(weight, 4) for name, weight in model.run_weights().items()}) }; "
        f"{len(predicted)} held-out topics, {ranks} ranks: the same document at {same}; neighbours in the other order "
        f"by more than 1e-5: {inverted}; scores differ by at most {largest:.2g}\n"
        f"certificate: {certify_fusion(model, engine, held_out)}\n",
        flush=True,
    )


def run() -> None:
    folder = Path(os.environ["TRUERANK_DATA"]) / "cranfield"
    texts = {query.id: " ".join(query.text.values()) for query in read_queries(folder / "cran.qry.gz")}
    qrels = read_judgements(folder / "cranqrel.gz")
    plugins = [Path(path) for path in os.environ.get("OPENSEARCH_PLUGINS", "").split(":") if path]
    with SearchServer(plugins=plugins) as server:
        lines = []
        for document in read_documents(folder / "cran.all.1400.gz"):
            body = {name: document.text.get(name, "") for name in FIELDS}
            lines += [json.dumps({"index": {"_id": document.id}}), json.dumps(body)]
        server.ask("PUT", "/cranfield", {"settings": {"number_of_shards": 1, "number_of_replicas": 0}})
        answer = server.ask("POST", "/cranfield/_bulk?refresh=true", "\n".join(lines) + "\n", lines=True)
        if answer["errors"]:
            raise ValueError(f"the server did not take the documents: {str(answer)[:500]}")

        def parts(topic: str) -> dict[str, Any]:
            return {field: {"match": {field: texts[topic]}} for field in FIELDS}

        lists: dict[str, dict[str, dict[str, float]]] = {field: {} for field in FIELDS}
        for topic in texts:
            for field, query in parts(topic).items():
                lists[field][topic] = server.hits("cranfield", query, DEPTH)
        pool = RunPool(lists, qrels)
        train, held_out = pool.take(range(0, pool.n_queries, 2)), pool.take(range(1, pool.n_queries, 2))
        print(f"{server.version}, {len(lines) // 2} documents, {pool.n_queries} topics\n")
        model = RunFusion(nonnegative=True, features="score").fit(train)

        def by_bool(topic: str) -> dict[str, float]:
            exported = json.loads(export_fusion(model, "bool-query", queries=parts(topic)))
            return server.hits("cranfield", exported["query"], DEPTH)

        compare_orders("bool-query", model, held_out, by_bool)
        if plugins:
            # Ranks of equal scores are those of the engine, whose order of them no run in TREC's format has.
            ordered = {
                field: {
                    topic: {name: -float(place) for place, name in enumerate(own)}
                    for topic, own in lists[field].items()
                }
                for field in FIELDS
            }
            by_rank = RunPool(ordered, qrels)
            features = {"min-max": "min-max"}
            features |= {one: f"engine-scores(technique={one})" for one in TECHNIQUES["opensearch"]}
            for number, text in enumerate(features.values()):
                half, other = train, held_out
                if "rrf" in text:
                    half, other = by_rank.take(range(0, pool.n_queries, 2)), by_rank.take(range(1, pool.n_queries, 2))
                scaled = RunFusion(nonnegative=True, features=text).fit(half)
                pipeline = json.loads(export_fusion(scaled, "opensearch"))
                server.ask("PUT", f"/_search/pipeline/fusion{number}", pipeline)

                def by_hybrid(topic: str, name: str = f"fusion{number}") -> dict[str, float]:
                    query = {"hybrid": {"queries": list(parts(topic).values()), "pagination_depth": DEPTH}}
                    return server.hits("cranfield", query, DEPTH, search_pipeline=name)

                print(text)
                compare_orders("opensearch", scaled, other, by_hybrid)
        print(cross_validate_fusion(pool, model, measures="AP", topics="all"))


if __name__ == "__main__":
    run()
