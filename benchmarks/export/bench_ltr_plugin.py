"""Cranfield in OpenSearch with its LTR plugin: models of every type of its store, reranking by `sltr`, and its log.

    TRUERANK_DATA=… TRUERANK_LTR_PLUGIN=opensearch-ltr.zip python -m benchmarks export/bench_ltr_plugin

Starts the engine on loopback (`benchmarks/search_server.py`) with the plugin's archive (`build_ltr_plugin.py` makes one
of its source), and indexes Cranfield. The ten features of `opensearch.py` are stored as a feature set, and once more so
that each matches every document. Judged pairs: the plugin's log beside the scores of named queries. Models are trained
on the odd queries' logged rows and put into the store by `deploy`; the first 200 documents of the even queries are
reranked by `sltr`. XGBoost's own JSON goes there as it is.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks.export.opensearch import INDEX, QUERIES, WINDOW, build, grades_of, read_smart
from benchmarks.search_server import SearchServer
from truerank import (
    AdaRank,
    CalibratedRanker,
    ObliviousBoosting,
    RankBoost,
    RankerPipeline,
    RankingData,
    RidgeRanker,
    import_model,
)
from truerank.core.printing import table
from truerank.export.deployment import deploy
from truerank.export.verification import logged_by_plugin, verify
from truerank.io.documents import read_judgements, read_queries
from truerank.io.engine import Engine, filled
from truerank.io.engine_features import engine_features

FEATURES: dict[str, Any] = QUERIES["features"]
REQUESTS = {"base": QUERIES["base"], "params": {"query": "{{query}}"}}
SETS = {"as they are": "sparse", "matching always": "dense"}


def put_feature_sets(engine: Engine) -> None:
    """The features as they are, and so that a document which a query does not match has a score of 0."""
    engine.request("PUT", "_ltr")
    for name in SETS.values():
        features = [
            {"name": feature, "params": ["query"], "template_language": "mustache", "template": query}
            if name == "sparse"
            else {
                "name": feature, "params": ["query"], "template_language": "mustache",
                "template": {"bool": {"must": {"match_all": {"boost": 0.0}}, "should": query}},
            }
            for feature, query in FEATURES.items()
        ]  # fmt: skip
        engine.request("PUT", f"_ltr/_featureset/{name}", {"featureset": {"name": name, "features": features}})


def compare_logs(engine: Engine, folder: Path) -> None:
    """Print how far the plugin's log is the scores of the same queries with names."""
    queries, judged = read_queries(folder / "cran.qry.gz"), read_judgements(folder / "cranqrel.gz")
    named = {"kind": "named-queries", "index": INDEX, "id": "id", "batch": 200, "features": FEATURES}
    log = named | {"kind": "ltr-log", "featureset": "sparse", "features": list(FEATURES), "params": REQUESTS["params"]}
    (ours, missing, _), (theirs, *_) = (engine_features(engine, spec, queries, judged) for spec in (named, log))
    same = np.array_equal(ours.X, theirs.X) and ours.doc_ids.tolist() == theirs.doc_ids.tolist()
    print(
        f"{ours.n_rows} judged pairs of {ours.n_queries} queries ({len(missing)} not in the index), {ours.n_features} "
        f"features, {np.count_nonzero(ours.X)} values: the plugin's log and named queries give the same table: {same}"
    )


def logged_data(engine: Engine, texts: list[str], grades: dict[tuple[int, str], int]) -> RankingData:
    """The logged features of each query's first documents."""
    X, y, qid = [], [], []
    for number, text in enumerate(texts, 1):
        body = {
            "size": WINDOW, "_source": False, "docvalue_fields": ["id"],
            "query": filled(QUERIES["base"], {"query": text}),
        }  # fmt: skip
        asked = {"featureset": "sparse", "params": {"query": text}}
        found, rows = logged_by_plugin(engine, INDEX, body, asked, list(FEATURES))
        X.append(rows)
        y += [grades.get((number, document), 0) for document in found]
        qid += [number] * len(found)
    return RankingData(np.concatenate(X), np.array(y), np.array(qid), feature_names=list(FEATURES))


def xgboost_trees(train: RankingData, folder: Path) -> tuple[Any, str]:
    """A hundred trees that XGBoost trained, imported, and its own JSON."""
    import xgboost

    model = xgboost.XGBRanker(n_estimators=100, max_depth=4, n_jobs=1, random_state=0)
    model.fit(train.X, train.y, qid=train.qid)
    model.get_booster().feature_names = list(FEATURES)
    model.get_booster().feature_types = ["float"] * len(FEATURES)
    path = folder / "xgboost.json"
    model.save_model(path)
    return import_model(path, feature_names=list(FEATURES)), path.read_text()


def run() -> None:
    plugin, folder = Path(os.environ["TRUERANK_LTR_PLUGIN"]), Path(os.environ["TRUERANK_DATA"]) / "cranfield"
    texts = [own["W"] for own in read_smart(folder / "cran.qry.gz")]
    with SearchServer(plugins=[plugin]) as server, tempfile.TemporaryDirectory() as place:
        print(server.version)
        engine = Engine(server.url)
        build(engine, read_smart(folder / "cran.all.1400.gz"))
        put_feature_sets(engine)
        compare_logs(engine, folder)
        data = logged_data(engine, texts, grades_of(folder))
        odd = np.arange(0, data.n_queries, 2)
        train, test = data.take_queries(odd), data.take_queries(odd[:-1] + 1)
        trees = ObliviousBoosting(n_estimators=100, leaves="constant")
        boosted, saved = xgboost_trees(train, Path(place))
        models: dict[str, Any] = {
            "AdaRank": AdaRank(measure="AP"),
            "ridge": RidgeRanker(),
            "ridge after a scaling": RankerPipeline(StandardScaler(), RidgeRanker()),
            "RankBoost, 300 stumps": RankBoost(300),
            "100 plain trees": trees,
            "ridge, pooled": CalibratedRanker(RidgeRanker(), random_state=0),
            "100 plain trees, pooled": CalibratedRanker(
                ObliviousBoosting(n_estimators=100, leaves="constant"), random_state=0
            ),
        }
        rows = []

        def check(title: str, model: Any, name: str, kind: str, times: float = 1.0) -> None:
            own = verify(
                model, server.url, name, INDEX, REQUESTS, texts[1::2], kind="ltr", window=WINDOW, times=times,
                feature_names=list(FEATURES),
            )  # fmt: skip
            stored = engine.request("GET", f"_ltr/_model/{name}")["_source"]["model"]["model"]
            scale = float(np.abs(model.predict(test)).max())
            rows.append([
                title, stored["type"] + " with normalizers" * bool(stored["feature_normalizers"]), kind,
                f"{own.orders_equal} / {own.queries}", own.documents, f"{own.largest_difference / scale:.1e}",
                f"{own.took_base:.0f}", f"{own.took_rescored:.0f}",
            ])  # fmt: skip

        for k, (title, model) in enumerate(models.items()):
            model.fit(train)
            done = deploy(model, server.url, f"m{k}", kind="ltr", feature_set="sparse", certify=test)
            check(title, model, f"m{k}", "as they are", done["times"])
        done = deploy(boosted, server.url, "boosted", kind="ltr", feature_set="sparse", certify=test)
        check("100 trees of XGBoost", boosted, "boosted", "as they are", done["times"])
        raw = {"type": "model/xgboost+json+raw", "definition": saved}
        for kind, feature_set in SETS.items():
            body = {"name": f"{feature_set}-{len(rows)}", "model": raw}
            engine.request("POST", f"_ltr/_featureset/{feature_set}/_createmodel", {"model": body})
            check("100 trees of XGBoost", boosted, body["name"], kind)
    head = ["model", "in the store", "features", "orders equal", "documents", "difference", "BM25 ms", "sltr ms"]
    print(table(rows, head))
    print("difference: the largest, as a share of the largest score")


if __name__ == "__main__":
    run()
