"""`truerank sample --demo`: the main job, end to end, on the data that ship with truerank."""

from __future__ import annotations

import argparse
from pathlib import Path

from truerank.cli import common

MEASURES = ("AP", "nDCG@10", "RR", "P@5")
BM25 = "bm25.porter-stop.all"


def run(args: argparse.Namespace) -> int:
    """Train AdaRank on four fifths of the sample's queries, test it on the fifth, for each fifth; save one of all."""
    import numpy as np

    from truerank.data.samples import load_sample
    from truerank.data.splits import query_folds
    from truerank.features.per_query import MinMaxInQuery
    from truerank.measures import parse_measure
    from truerank.models.model_file import load_model, save_model
    from truerank.rankers.adarank import AdaRank

    folder = "demo-output" if args.out is None else args.out
    common.check_folder_name("DIR", folder)
    common.announce_compilation()
    data = load_sample("cranfield-text")
    names = list(data.feature_names or [])
    # AdaRank adds features up: on one scale within the query no feature outweighs the others by its unit.
    data.X = MinMaxInQuery().fit_transform(data.X, qid=data.qid)
    parts = query_folds(data.n_queries, 5, random_state=args.seed)
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    scores = np.zeros(data.n_rows)
    best_feature = np.zeros(data.n_rows)
    ap = parse_measure("AP").per_query(data.judgements(), data.X.T)
    for part in parts:
        others = np.setdiff1d(np.arange(data.n_queries), part)
        rows = np.isin(data.query_index, part)
        test = data.take_queries(part)
        scores[rows] = AdaRank(measure="AP").fit(data.take_queries(others)).predict(test)
        best_feature[rows] = test.X[:, int(ap[:, others].mean(axis=1).argmax())]
    save_model(AdaRank(measure="AP").fit(data), out / "model.json")
    ranker = load_model(out / "model.json")

    systems = {"adarank": scores, "best feature": best_feature, "bm25": data.X[:, names.index(BM25)]}
    figures, per_query = {}, {}
    for name, system in systems.items():
        values = {m: parse_measure(m).per_query(data.judgements(), system) for m in MEASURES}
        figures[name] = {m: float(v.mean()) for m, v in values.items()}
        per_query[name] = values["AP"]
    compared = common.compared(per_query["adarank"], per_query["bm25"])
    summary = {
        "data": "Cranfield sample",
        "queries": {"test": data.n_queries, "folds": len(parts)},
        "convention": "ranklib",
        "measures": figures,
        "comparison": {"measure": "AP", "a": "adarank", "b": "bm25"} | compared,
        "features": ranker.feature_weights(),
        "model": str(out / "model.json"),
    }
    rows_of_table = [[name, *values.values()] for name, values in figures.items()]
    text = (
        f"Cranfield sample: {data.n_queries} queries in {len(parts)} folds, each tested by a ranker of the other four "
        f"(convention ranklib)\n\n{common.table(rows_of_table, ['ranker', *MEASURES])}\n\n"
        f"adarank against bm25 on AP: {compared['wins']} wins, {compared['losses']} losses, {compared['ties']} ties; "
        f"p = {compared['p']['paired t']:.2g} (paired t), {compared['p']['randomisation']:.2g} (randomisation)\n"
    )
    common.write_summary(out, summary, text)
    files = f"model      {out / 'model.json'}\nsummary    {out / 'summary.txt'}, {out / 'summary.json'}"
    return common.show(args, summary, f"{text}\n{files}")
